#!/usr/bin/env python3
"""Model-local functions, whose types are those that all calls agree on: calls that nothing reads, or that are gone once shapes are
known, do not count, so that optimizing again finds nothing that the first time had not seen."""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

import check
import common

OPSETS = [h.make_opsetid("", 17), h.make_opsetid("local", 1)]
TURNED = h.make_function("local", "F", ["x"], ["y"], [h.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), h.make_node("Relu", ["t"], ["y"])], OPSETS)


def model(nodes, outputs, inputs, ints):
    call = lambda x, y: h.make_node("F", [x], [y], domain="local")
    nodes = [call("x", "a"), call("z", "b"), h.make_node("Transpose", ["a"], ["y"], perm=[0, 2, 1]), *nodes]
    info = lambda n, dims: h.make_tensor_value_info(n, T.FLOAT, dims)
    g = h.make_graph(nodes, "g", [info(n, d) for n, d in inputs.items()], [info(n, [None] * rank) for n, rank in outputs.items()],
                     [numpy_helper.from_array(np.array(x, np.int64), n) for n, x in ints.items()])
    return h.make_model(g, opset_imports=OPSETS, ir_version=8, functions=[TURNED])


def transposes(path):
    m = onnx.load(path)
    return sum(n.op_type == "Transpose" for g in (m.graph, *m.functions) for n in g.node)


# Name, Transposes of the result, the model
CASES = [
    ("all calls are read", 2, model([], {"y": 3, "b": 3}, {"x": [2, 4, 1], "z": [2, 4, 5]}, {})),
    ("a call that nothing reads", 0, model([], {"y": 3}, {"x": [2, 4, 1], "z": [2, 4, 5]}, {})),
    ("a call whose shape alone is read, and known", 0,
     model([h.make_node("Shape", ["b"], ["s"]), h.make_node("Gather", ["s", "zero"], ["n"], axis=0), h.make_node("ConstantOfShape", ["n"], ["e"]),
            h.make_node("Transpose", ["x"], ["c"], perm=[0, 2, 1]), h.make_node("Reshape", ["c", "flat"], ["d"])],
           {"y": 3, "e": 1, "d": 2}, {"x": [2, 4, 1], "z": [2, 4, 5]}, {"zero": [0], "flat": [8, 1]})),
]


def main():
    prog = common.program(common.arguments(__doc__.splitlines()[0]).parse_args())
    npass = nfail = 0
    for target in ("onnx", "generic"):
        for name, wanted, m in CASES:
            with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
                src = Path(tmp) / "in.onnx"
                onnx.save(m, src)
                res = check.rewrite(prog, src, check.facts_of(src, m, [common.random_inputs(m)]), target, tmp)
                n = transposes(Path(tmp) / "out.onnx")
            if n != wanted:
                res.fail.append(f"{n} Transposes, not {wanted}")
            for f in res.fail:
                print(f"{name} ({target}): {f}")
            npass, nfail = npass + (not res.fail), nfail + bool(res.fail)
    return common.closing(npass, nfail)


if __name__ == "__main__":
    sys.exit(main())
