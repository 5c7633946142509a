#!/usr/bin/env python3
"""The minimum of graphs whose dims are cut in several ways: windows, and pieces of other sizes (passes/keep_roles.c, passes/lift.c).

Made here: stages of attention in windows, each stage on half of the rows and columns, so that a dim of 32 is five atoms that one stage or
another tells apart. No three atoms show what is needed there: a bound that looks at those proves 2 to 4 conversions. And the orders that the
model names lead to choices that move up to half as many bytes again. Both conversions and bytes must be proved least, whichever comes
first, and the second checker must agree.
"""
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import common

# Rows, window, heads, stages: least conversions, and bytes.
CASES = {(16, 4, 2, 1): (4, 32768), (16, 4, 2, 2): (7, 45056), (32, 4, 2, 2): (7, 180224), (32, 4, 2, 3): (10, 204800), (64, 4, 4, 4): (13, 868352)}


class Net:
    def __init__(self):
        self.nodes, self.init = [], []

    def const(self, array):
        self.init.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.init)}"))
        return self.init[-1].name

    def op(self, kind, *inputs, **attributes):
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def shape(self, x, *dims):
        return self.op("Reshape", x, self.const(np.array(dims, np.int64)))

    def turn(self, x, *perm):
        return self.op("Transpose", x, perm=perm)

    def dense(self, x, a, b):
        return self.op("MatMul", x, self.const(np.ones((a, b), np.float32)))

    def norm(self, x, c):
        return self.op("LayerNormalization", x, self.const(np.ones(c, np.float32)), axis=-1)

    def attention(self, x, windows, tokens, heads, c):
        parts = self.turn(self.shape(self.dense(x, c, 3 * c), windows, tokens, 3, heads, c // heads), 2, 0, 3, 1, 4)
        names = [f"part{len(self.nodes)}_{i}" for i in range(3)]
        self.nodes.append(helper.make_node("Split", [parts, self.const(np.ones(3, np.int64))], names, axis=0))
        q, k, v = (self.shape(t, windows, heads, tokens, c // heads) for t in names)
        a = self.op("Softmax", self.op("MatMul", q, self.turn(k, 0, 1, 3, 2)), axis=-1)
        out = self.shape(self.turn(self.op("MatMul", a, v), 0, 2, 1, 3), windows, tokens, c)
        return self.dense(out, c, c)


def windows(size, window, heads, stages, c=8):
    net, x, s = Net(), "x", size
    for _ in range(stages):
        n = s // window
        y = net.turn(net.shape(net.norm(x, c), n, window, n, window, c), 0, 2, 1, 3, 4)
        y = net.attention(net.shape(y, n * n, window * window, c), n * n, window * window, heads, c)
        y = net.turn(net.shape(y, n, n, window, window, c), 0, 2, 1, 3, 4)
        x = net.op("Add", net.shape(x, s * s, c), net.shape(y, s * s, c))
        s //= 2
        y = net.turn(net.shape(net.norm(x, c), s, 2, s, 2, c), 0, 2, 3, 1, 4)
        x = net.shape(net.dense(net.shape(y, s * s, 4 * c), 4 * c, 2 * c), s, s, 2 * c)
        c *= 2
    tensor = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(net.nodes, "windows", [tensor("x", size, size, 8)], [tensor(x, s, s, c)], net.init)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(prog, case, least, objective, tmp):
    model, out, proof = (tmp / f for f in ("in.onnx", "out.onnx", "proof"))
    onnx.save(windows(*case), model)
    r = common.optimize(prog, model, out, "onnx", "--objective", objective, "--proof", proof)
    if r.status != 0:
        return r.text
    claim = next(line for line in proof.read_text().splitlines() if line.startswith("claim"))
    if claim != f"claim {least[0]} {least[1]} {least[0]} {least[1]}":
        return f"{claim}, should be {least}, proved"
    second = subprocess.run([sys.executable, common.ROOT / "scripts/check_proof.py", proof, model, out, "--target", "onnx"],
                            capture_output=True, text=True)
    return (second.stdout + second.stderr).strip() if second.returncode else None


def main():
    args = common.arguments(__doc__).parse_args()
    prog, failed = common.program(args), 0
    with tempfile.TemporaryDirectory() as tmp:
        for case, objective in itertools.product(CASES, ("nodes", "bytes")):
            why = check(prog, case, CASES[case], objective, Path(tmp))
            failed += why is not None
            print(f"{case} {objective}: {why or 'ok'}")
    return common.closing(2 * len(CASES) - failed, failed)


if __name__ == "__main__":
    sys.exit(main())
