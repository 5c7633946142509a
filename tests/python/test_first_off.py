#!/usr/bin/env python3
"""first_off: which nodes go wrong first, where runs differ in what some nodes do."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

import common
import first_off


def model():
    f = TensorProto.FLOAT
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="one"), helper.make_node("Neg", ["a"], ["b"], name="two"), helper.make_node("Shape", ["x"], ["s"]),
             helper.make_node("Exp", ["a"], ["c"], name="three"), helper.make_node("Add", ["b", "c"], ["d"], name="four"),
             helper.make_node("Reshape", ["d", "s"], ["y"], name="five")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", f, [4])], [helper.make_tensor_value_info("y", f, [4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def differing(changed):
    """As what compares a device does: there the named nodes give something else."""
    def beside(probe, inputs):
        other = onnx.ModelProto()
        other.CopyFrom(probe)
        for n in other.graph.node:
            n.op_type = changed.get(n.name, n.op_type)
        return common.run_ort(probe.SerializeToString(), inputs), common.run_ort(other.SerializeToString(), inputs)
    return beside


def share(wanted, got):
    if not np.isfinite(got).all():
        raise common.Differ("not finite")
    return np.abs(wanted - got).max() / 1e-4


CASES = (({}, "none by itself"), ({"three": "Log"}, "Exp three"), ({"two": "Identity", "three": "Cos"}, "Neg two, Exp three"),
         ({"four": "Mul"}, "Add four"), ({"one": "Identity", "four": "Mul"}, "Relu one"))


def main():
    inputs, failed = {"x": np.array([-1, 0, 1, 2], np.float32)}, 0
    for changed, wanted in CASES:
        said = first_off.said(model(), inputs, differing(changed), share)
        if said != wanted:
            print(f"FAIL {changed}: {said}, wants {wanted}")
            failed += 1
    return common.closing(len(CASES) - failed, failed)


if __name__ == "__main__":
    sys.exit(main())
