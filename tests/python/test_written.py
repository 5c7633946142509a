#!/usr/bin/env python3
"""What `optimize` writes into the file of what constants make: with how few copies, and how much larger the file may be for it.

  test_written.py

Layers with a mask each, which nodes compute and which is wanted in another order: equal ones are written once. Where a Transpose is among what computes
them, all that comes after it goes, too, if what comes out is small, or equal to what is there, or paid for. The outputs are onnxruntime's.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

import common

TOKENS, LAYERS = 160, 5  # a mask has 100 KiB
MASK = 4 * TOKENS * TOKENS


def network(values, transposed, weights):
    """Layers that add a mask each, computed from so many different constants; weights: bytes that are multiplied at the end."""
    init, nodes, x = [], [], "x"

    def const(a):
        init.append(numpy_helper.from_array(np.asarray(a), f"c{len(init)}"))
        return init[-1].name

    def add(op, *inputs, **attributes):
        nodes.append(h.make_node(op, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    for i in range(LAYERS):
        place = np.arange(TOKENS, dtype=np.float32) % (7 + i % values)
        less = add("Less", const(place[:, None]), const(place[None]))
        mask = add("Where", less, const(np.float32(-2)), const(np.float32(0.5)))
        if transposed:
            rows = add("Softmax", add("Reshape", add("Transpose", mask, perm=[1, 0]), const(np.array([256, 100]))), axis=1)
            x = add("Relu", add("Add", x, add("Reshape", rows, const(np.array([TOKENS, TOKENS])))))
        else:
            turned = add("Add", add("Transpose", x, perm=[0, 2, 1]), mask)
            x = add("Relu", add("Transpose", turned, perm=[0, 2, 1]))
    if weights:
        x = add("MatMul", x, const(np.full((TOKENS, weights // 4 // TOKENS), 0.01, np.float32)))
    out = h.make_tensor_value_info(x, T.FLOAT, None)
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [2, TOKENS, TOKENS])], [out], init)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


# What is made; Softmaxes of constants that stay, as what they make is not written; copies of masks in the file. Transposes: none.
CASES = {"in another order, equal": ((1, False, 0), 0, 1), "in another order, each its own": ((LAYERS, False, 0), 0, LAYERS),
         "computed from equal ones, nothing pays": ((1, True, 0), LAYERS, 1), "computed from equal ones, the weights pay for one": ((1, True, 16 * MASK), 0, 1),
         "computed from two, the weights pay for one": ((2, True, 20 * MASK), 2, 2), "computed from each its own, the weights pay for all": ((LAYERS, True, 16 * LAYERS * MASK), 0, LAYERS)}


def wrong_with(prog, tmp, case):
    made, computed, masks = CASES[case]
    model = network(*made)
    onnx.save(model, tmp / "in.onnx")
    common.optimize(prog, tmp / "in.onnx", tmp / "out.onnx", "onnx")
    out = onnx.load(tmp / "out.onnx")
    inputs = common.random_inputs(model)
    ops, there = [n.op_type for n in out.graph.node], sum(numpy_helper.to_array(t).size == TOKENS * TOKENS for t in out.graph.initializer)
    if (ops.count("Transpose"), ops.count("Softmax"), there) != (0, computed, masks):
        return f"{ops.count('Transpose')} Transposes, {ops.count('Softmax')} Softmaxes and {there} masks, not 0, {computed} and {masks}"
    if not common.compare(*(common.run_ort(tmp / name, inputs) for name in ("in.onnx", "out.onnx"))).ok:
        return "other outputs"
    return ""


def main():
    prog, bad = common.program(common.arguments(__doc__.splitlines()[0]).parse_args()), 0
    with tempfile.TemporaryDirectory() as tmp:
        for case in CASES:
            wrong = wrong_with(prog, Path(tmp), case)
            print(f"{case}: {wrong or 'ok'}")
            bad += bool(wrong)
    return common.closing(len(CASES) - bad, bad)


if __name__ == "__main__":
    sys.exit(main())
