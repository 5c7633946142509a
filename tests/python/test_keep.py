#!/usr/bin/env python3
"""The minimum of graphs whose dims are cut in several ways: windows, and pieces of other sizes (passes/keep_roles.c, passes/lift.c).

Made here: stages of attention in windows, each stage on half of the rows and columns, so that a dim of 32 is five atoms that one stage or
another tells apart. No three atoms show what is needed there: a bound that looks at those proves 2 to 4 conversions. And the orders that the
model names lead to choices that move up to half as many bytes again. Both conversions and bytes must be proved least, whichever comes
first, and the second checker must agree.

And networks as Swin, of opset 11: what a norm consists of there takes any order, so that an op has some hundred configurations in the bound.
That is found, and checked, in the time that there is, where shares are near the best (passes/solve_share.c, src/cert_share.c).
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


# Rows, window, heads, stages, blocks of a stage: likewise.
SWINS = {(28, 7, 3, 2, 1): (6, 475104), (28, 7, 3, 1, 2): (6, 376320), (28, 7, 3, 2, 2): (13, 602112)}
# With weights in parts as many, and fewer bytes.
PARTS = {(28, 7, 3, 2, 1): (6, 188160), (28, 7, 3, 1, 2): (6, 225792)}
SLOW = {(28, 7, 3, 2, 2)}  # for the second checker: 80 s


class Net:
    def __init__(self, opset=17):
        self.nodes, self.init, self.opset = [], [], opset

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

    def number(self, x):
        return self.const(np.float32(x))

    def norm(self, x, c):
        if self.opset >= 17:
            return self.op("LayerNormalization", x, self.const(np.ones(c, np.float32)), axis=-1)
        d = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        v = self.op("ReduceMean", self.op("Pow", d, self.number(2)), axes=[-1])
        y = self.op("Div", d, self.op("Sqrt", self.op("Add", v, self.number(1e-5))))
        return self.op("Add", self.op("Mul", y, self.const(np.ones(c, np.float32))), self.const(np.zeros(c, np.float32)))

    def linear(self, x, a, b):
        return self.op("Add", self.dense(x, a, b), self.const(np.zeros(b, np.float32)))

    def mlp(self, x, c):
        h = self.linear(self.norm(x, c), c, 4 * c)
        e = self.op("Add", self.op("Erf", self.op("Div", h, self.number(2 ** 0.5))), self.number(1))
        return self.linear(self.op("Mul", self.op("Mul", h, e), self.number(0.5)), 4 * c, c)

    def shift(self, x, by):
        for axis in (1, 2):
            part = lambda a, b: self.op("Slice", x, *(self.const(np.array([k], np.int64)) for k in (a, b, axis)))
            x = self.op("Concat", part(by, 2 ** 31), part(0, by), axis=axis)
        return x

    def thirds(self, x):
        names = [f"part{len(self.nodes)}_{i}" for i in range(3)]
        if self.opset >= 13:
            self.nodes.append(helper.make_node("Split", [x, self.const(np.ones(3, np.int64))], names, axis=0))
        else:
            self.nodes.append(helper.make_node("Split", [x], names, axis=0, split=[1, 1, 1]))
        return names

    def attention(self, x, windows, tokens, heads, c):
        parts = self.turn(self.shape(self.dense(x, c, 3 * c), windows, tokens, 3, heads, c // heads), 2, 0, 3, 1, 4)
        q, k, v = (self.shape(t, windows, heads, tokens, c // heads) for t in self.thirds(parts))
        a = self.op("MatMul", q, self.turn(k, 0, 1, 3, 2))
        if self.opset < 17:
            a = self.op("Add", a, self.const(np.zeros((heads, tokens, tokens), np.float32)))
        a = self.op("Softmax", a, axis=3)
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


def swin(size, window, heads, stages, blocks, c=12):
    net, s = Net(11), size
    stem = net.op("Conv", "x", net.const(np.ones((c, 3, 4, 4), np.float32)), strides=[4, 4])
    x = net.norm(net.turn(stem, 0, 2, 3, 1), c)
    for stage in range(stages):
        if stage:
            s //= 2
            y = net.turn(net.shape(x, s, 2, s, 2, c), 0, 2, 3, 1, 4)
            x, c, heads = net.dense(net.norm(net.shape(y, 1, s, s, 4 * c), 4 * c), 4 * c, 2 * c), 2 * c, 2 * heads
        n = s // window
        for k in range(blocks):
            by = window // 2 if k % 2 and n > 1 else 0
            y = net.norm(x, c)
            y = net.shift(y, by) if by else y
            y = net.shape(net.turn(net.shape(y, 1, n, window, n, window, c), 0, 1, 3, 2, 4, 5), n * n, window * window, c)
            y = net.shape(net.attention(y, n * n, window * window, heads, c), 1, n, n, window, window, c)
            y = net.shape(net.turn(y, 0, 1, 3, 2, 4, 5), 1, s, s, c)
            y = net.shift(y, s - by) if by else y
            x = net.shape(net.op("Add", x, y), 1, s * s, c)
            x = net.shape(net.op("Add", x, net.mlp(x, c)), 1, s, s, c)
    y = net.op("ReduceMean", net.norm(x, c), axes=[1, 2], keepdims=0)
    tensor = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(net.nodes, "swin", [tensor("x", 1, 3, 4 * size, 4 * size)], [tensor(y, 1, c)], net.init)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


def check(prog, make, case, least, objective, target, tmp):
    model, out, proof = (tmp / f for f in ("in.onnx", "out.onnx", "proof"))
    onnx.save(make(*case), model)
    r = common.optimize(prog, model, out, target, "--objective", objective, "--proof", proof)
    if r.status != 0:
        return r.text
    claim = next(line for line in proof.read_text().splitlines() if line.startswith("claim"))
    if claim != f"claim {least[0]} {least[1]} {least[0]} {least[1]}":
        return f"{claim}, should be {least}, proved"
    if common.optimize(prog, out, tmp / "again.onnx", target, "--objective", objective).status != 0 or (tmp / "again.onnx").read_bytes() != out.read_bytes():
        return "the second time changes the result"
    if case in SLOW:
        return None
    second = subprocess.run([sys.executable, common.ROOT / "scripts/check_proof.py", proof, model, out, *(["--targets", target] if "/" in target else ["--target", target])],
                            capture_output=True, text=True)
    return (second.stdout + second.stderr).strip() if second.returncode else None


def main():
    args = common.arguments(__doc__).parse_args()
    prog, failed = common.program(args), 0
    with tempfile.TemporaryDirectory() as tmp:
        whole = common.whole(tmp)
        todo = [(windows, case, least, objective, whole) for (case, least), objective in itertools.product(CASES.items(), ("nodes", "bytes"))]
        todo += [(swin, case, least, "nodes", target) for cases, target in ((SWINS, whole), (PARTS, "onnx")) for case, least in cases.items()]
        for make, case, least, objective, target in todo:
            why = check(prog, make, case, least, objective, target, Path(tmp))
            failed += why is not None
            print(f"{make.__name__}{case} {objective}, {Path(target).stem}: {why or 'ok'}")
    return common.closing(len(todo) - failed, failed)


if __name__ == "__main__":
    sys.exit(main())
