#!/usr/bin/env python3
"""What runs are compared with, kept in a folder (references.py): taken again for the same model, inputs and way, never for others; and models in
parts (parts.py), whose values may come from there."""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

import common
import parts
import references


def check_kept(checks, folder):
    x, made = {"x": np.arange(6, dtype=np.float32)}, []

    def kept(what="a", model=b"m", inputs=x, result=x["x"], folder=folder):
        return references.kept(folder, what, model, inputs, lambda: made.append(1) or {"0": result})["0"]

    checks("made once", np.array_equal(kept(), kept()) and len(made) == 1)
    checks("another's is not taken", kept(result=x["x"] + 1)[0] == 0)
    others = {"way": {"what": "b"}, "model": {"model": b"n"}, "value": {"inputs": {"x": x["x"] + 1}}, "name": {"inputs": {"y": x["x"]}},
              "shape": {"inputs": {"x": x["x"].reshape(2, 3)}}, "type": {"inputs": {"x": x["x"].view(np.int32)}}, "no folder": {"folder": None}}
    for name, other in others.items():
        before = len(made)
        kept(**other)
        checks(f"another {name}", len(made) == before + 1)
    large = np.random.default_rng(0).standard_normal(references.MOST).astype(np.float32)
    checks("a large one is not kept", np.array_equal(kept(what="c", result=large), large) and not references.there(folder, "c", b"m", x))
    checks("which is said", references.there(folder, "a", b"m", x) and not references.there(None, "a", b"m", x))


def check_parts(checks):
    """Constants first, where all that goes on is still the input; then ten nodes in a row."""
    nodes = [helper.make_node("Constant", [], [f"c{i}"], value_float=0.5 + i) for i in range(10)]
    nodes += [helper.make_node("Add", [f"v{i}" if i else "x", f"c{i}"], [f"v{i + 1}"]) for i in range(10)]
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [3]) for n in ("x", "v10")]
    model = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]), ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    inputs, asked = {"x": np.ones(3, np.float32)}, []
    whole, = common.run_ort(model.SerializeToString(), inputs)
    found = parts.cut(model, inputs, 4, lambda make: asked.append(make()) or asked[0])
    checks("more than one part", len(found) > 1)
    checks("none passes its input on", all({i.name for i in p.graph.input}.isdisjoint(o.name for o in p.graph.output) for p, _ in found))
    ends = [common.run_ort(p.SerializeToString(), fed)[0] for p, fed in found]
    checks("they make what the whole makes", np.allclose(ends[-1], whole))
    again = parts.cut(model, inputs, 4, lambda make: {i: v + 1 for i, v in asked[0].items()})
    checks("values that are kept are taken", np.allclose(next(iter(again[1][1].values())), ends[0] + 1))


def main():
    common.arguments(__doc__.splitlines()[0]).parse_args()
    checks = common.Checks()
    with tempfile.TemporaryDirectory() as folder:
        check_kept(checks, Path(folder))
    check_parts(checks)
    return checks.closing()


if __name__ == "__main__":
    sys.exit(main())
