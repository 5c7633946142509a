#!/usr/bin/env python3
"""Models with model-local functions, run: `run` gives what onnxruntime, or onnx's reference evaluator, gives, and `verify`, `bench` and
`optimize --check` take such models.

  test_calls.py [--count 60] [--build build]
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper
from onnx.reference import ReferenceEvaluator

import common
import funcgen

node = h.make_node


def opsets(version):
    return [h.make_opsetid("", version), h.make_opsetid("local", 1)]


def info(name, dims, elem=T.FLOAT):
    return h.make_tensor_value_info(name, elem, dims)


def model(nodes, inputs, outputs, functions, version=17):
    g = h.make_graph(nodes, "g", [info(n, d) for n, d in inputs.items()], [info(n, d) for n, d in outputs.items()])
    return h.make_model(g, opset_imports=opsets(version), ir_version=9, functions=functions)


def refers(n, **names):
    """The node with attributes of a call: name=(its name there, type)."""
    for name, (there, kind) in names.items():
        n.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=there, type=kind))
    return n


def function(name, inputs, outputs, nodes, version=17, attributes=(), defaults=()):
    return h.make_function("local", name, inputs, outputs, nodes, opsets(version), list(attributes), list(defaults))


def call(name, inputs, outputs, **attrs):
    return node(name, inputs, outputs, domain="local", **attrs)


AXIS = ("axis", onnx.AttributeProto.INT)
SOFT = function("Soft", ["x"], ["y"], [refers(node("Softmax", ["x"], ["y"]), axis=AXIS)], attributes=["axis"])
GIVEN = function("Given", ["x"], ["y"], [refers(node("Softmax", ["x"], ["y"]), axis=AXIS)], defaults=[h.make_attribute("axis", 0)])
NESTED = function("Nested", ["x"], ["y"], [refers(call("Soft", ["x"], ["t"]), axis=("dim", onnx.AttributeProto.INT)), node("Neg", ["t"], ["y"])],
                  attributes=["dim"])
VALUE = function("Value", ["x"], ["y"], [refers(node("Constant", [], ["c"]), value_floats=("c", onnx.AttributeProto.FLOATS)), node("Mul", ["x", "c"], ["y"])],
                 attributes=["c"])
BOUND = function("Bound", ["x", "low", "high"], ["y"], [node("Clip", ["x", "low", "high"], ["y"])])
SQUEEZE = function("Old", ["x"], ["y"], [node("Squeeze", ["x"], ["y"], axes=[1])], version=11)
SAME = function("Same", ["x"], ["x", "y"], [node("Relu", ["x"], ["y"])])
BOTH = function("Both", ["x"], ["a", "b"], [node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["b"])])


def branches():
    """A function of an If that reads its input two levels out, calls another in a branch, and takes an attribute in one."""
    inner = h.make_graph([node("Add", ["x", "t"], ["i"])], "inner", [], [info("i", None)])
    other = h.make_graph([call("Soft", ["x"], ["j"], axis=1)], "other", [], [info("j", None)])
    then = h.make_graph([node("If", ["flag"], ["k"], then_branch=inner, else_branch=other)], "then", [], [info("k", None)])
    els = h.make_graph([refers(node("Softmax", ["t"], ["l"]), axis=AXIS)], "else", [], [info("l", None)])
    zero = node("Constant", [], ["zero"], value=numpy_helper.from_array(np.array(0, np.float32)))
    return function("Branches", ["x"], ["y"], [node("Relu", ["x"], ["t"]), zero, node("ReduceMax", ["x"], ["m"], keepdims=0), node("Less", ["zero", "m"], ["flag"]),
                                               node("If", ["flag"], ["y"], then_branch=then, else_branch=els)], attributes=["axis"])


def loop():
    """A Loop whose body calls, and captures from outside."""
    body = h.make_graph([call("Soft", ["a"], ["b"], axis=0), node("Add", ["b", "x"], ["c"]), node("Identity", ["go"], ["more"])], "body",
                        [info("i", [], T.INT64), info("go", [], T.BOOL), info("a", None)], [info("more", [], T.BOOL), info("c", None), info("b", None)])
    const = lambda name, x: node("Constant", [], [name], value=numpy_helper.from_array(x))
    return [const("n", np.array(3, np.int64)), const("true", np.array(True)), node("Loop", ["n", "true", "x"], ["y", "z"], body=body)]


X = {"x": [2, 3]}
CASES = {
    "attribute of the call": model([call("Soft", ["x"], ["y"], axis=0)], X, {"y": [2, 3]}, [SOFT]),
    "attribute that nobody gives": model([call("Soft", ["x"], ["y"])], X, {"y": [2, 3]}, [SOFT]),
    "default attribute": model([call("Given", ["x"], ["a"]), call("Given", ["x"], ["b"], axis=1)], X, {"a": [2, 3], "b": [2, 3]}, [GIVEN]),
    "nested, attribute handed on": model([call("Nested", ["x"], ["y"], dim=0)], X, {"y": [2, 3]}, [NESTED, SOFT]),
    "a Constant's value": model([call("Value", ["x"], ["y"], c=[1.0, 2.0, 3.0])], X, {"y": [2, 3]}, [VALUE]),
    "inputs left out": model([node("ReduceMax", ["x"], ["m"], keepdims=0), call("Bound", ["x", "", "m"], ["a"]), call("Bound", ["x", "m"], ["b"])], X, {"a": [2, 3], "b": [2, 3]}, [BOUND]),
    "outputs left out": model([call("Both", ["x"], ["", "b"]), call("Both", ["x"], ["a"])], X, {"a": [2, 3], "b": [2, 3]}, [BOTH]),
    "opset of its own": model([call("Old", ["x"], ["y"])], {"x": [2, 1, 3]}, {"y": [2, 3]}, [SQUEEZE]),
    "an input is an output": model([call("Same", ["x"], ["a", "b"])], X, {"a": [2, 3], "b": [2, 3]}, [SAME]),
    "two calls, other sizes": model([call("Soft", ["x"], ["a"], axis=0), call("Soft", ["z"], ["b"], axis=2)], {**X, "z": [2, 1, 4]}, {"a": [2, 3], "b": [2, 1, 4]}, [SOFT]),
    "names of the caller": model([node("Neg", ["x"], ["t"]), call("Nested", ["t"], ["y"], dim=1), node("Add", ["y", "t"], ["z"])], X, {"z": [2, 3]}, [NESTED, SOFT]),
    "bodies in a function": model([call("Branches", ["x"], ["y"], axis=0)], X, {"y": [2, 3]}, [branches(), SOFT]),
    "calls in a body": model(loop(), X, {"y": [2, 3], "z": [3, 2, 3]}, [SOFT]),
}
ITSELF = function("Itself", ["x"], ["y"], [call("Other", ["x"], ["y"])])
OTHER = function("Other", ["x"], ["y"], [call("Itself", ["x"], ["t"]), call("Itself", ["t"], ["y"])])
LONG = [function(f"L{k}", ["x"], ["y"], [call(f"L{k + 1}", ["x"], ["t"]), call(f"L{k + 1}", ["t"], ["y"])] if k < 40 else [node("Neg", ["x"], ["y"])])
        for k in range(41)]
REFUSED = {
    "a function that calls itself": (model([call("Itself", ["x"], ["y"])], X, {"y": [2, 3]}, [ITSELF, OTHER]), "leads to itself"),
    "2 to the 40 nodes": (model([call("L0", ["x"], ["y"])], X, {"y": [2, 3]}, LONG), "more than"),
    "an input too many": (model([call("Soft", ["x", "x"], ["y"])], X, {"y": [2, 3]}, [SOFT]), "inputs"),
}


def wanted(m, inputs):
    """Of onnxruntime as the model stands; onnx's evaluator takes functions of another opset, and forgets default attributes."""
    try:
        options = ort.SessionOptions()
        options.graph_optimization_level, options.log_severity_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
        return ort.InferenceSession(m.SerializeToString(), options).run(None, inputs)
    except Exception:
        return ReferenceEvaluator(m).run(None, inputs)


def run(prog, m, inputs, tmp, name="in.onnx"):
    """(outputs, None) or (None, why)"""
    path, more = tmp / name, []
    onnx.save(m, path)
    for n, x in inputs.items():
        np.save(tmp / f"{n}.npy", x)
        more += ["--input", f"{n}={tmp / n}.npy"]
    r = subprocess.run([prog, "run", path, *more, "--output-dir", tmp / "out"], capture_output=True, text=True)
    if r.returncode:
        return None, r.stderr.strip()
    return [np.load(tmp / "out" / f"{o.name}.npy") for o in m.graph.output], None


def differ(a, b):
    return next((f"output {k}" for k, (x, y) in enumerate(zip(a, b)) if x.shape != y.shape or not np.allclose(x, y, atol=1e-5)), None)


def good(prog, m, inputs, tmp):
    got, why = run(prog, m, inputs, tmp)
    return why or differ(wanted(m, inputs), got)


def commands(prog, tmp):
    """Of a model with functions that optimize improves."""
    m, _ = funcgen.make(4)
    src, out = tmp / "c.onnx", tmp / "c.out.onnx"
    onnx.save(m, src)
    for args in (["optimize", src, "-o", out, "--check"], ["verify", src, out], ["bench", src]):
        r = subprocess.run([prog, *args], capture_output=True, text=True)
        if r.returncode:
            return f"{args[0]}: {r.stderr.strip()}"
    return None


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=60, help="random models (default: 60)")
    args = p.parse_args()
    prog = common.program(args)
    rng, results = np.random.default_rng(1), {}
    with tempfile.TemporaryDirectory(prefix="relayout-") as name:
        tmp = Path(name)
        for what, m in CASES.items():
            inputs = {i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32) for i in m.graph.input}
            results[what] = good(prog, m, inputs, tmp)
        for what, (m, message) in REFUSED.items():
            got, why = run(prog, m, {"x": np.zeros((2, 3), np.float32)}, tmp)
            results[what] = None if got is None and message in why and "\n" not in why else f"not refused so: {why}"
        for seed in range(args.count):
            results[f"random {seed}"] = good(prog, *funcgen.make(seed), tmp)
        results["commands"] = commands(prog, tmp)
    for what, why in results.items():
        if why:
            print(f"{what}: {why}")
    bad = sum(map(bool, results.values()))
    return common.closing(len(results) - bad, bad)


if __name__ == "__main__":
    sys.exit(main())
