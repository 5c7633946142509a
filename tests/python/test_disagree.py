#!/usr/bin/env python3
"""Where onnxruntime, the onnx package's reference evaluator and `relayout run` disagree: one small model for each, run by all three, with the
reference kernels and, where they are named, the fast ones, and the table of docs/disagreements.md, which is this file's.

  test_disagree.py             each model gives what the table says, from relayout as well; the table is current
  test_disagree.py --write     the table anew

Skipped without oneDNN, whose answers some are.
"""
import re
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

import common

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import RelayoutBackend

PAGE = common.ROOT / "docs" / "disagreements.md"
X = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)

LOOP = h.make_node("Loop", ["n", "go"], ["y"], body=h.make_graph(
    [h.make_node("Identity", ["d"], ["e"]), h.make_node("Neg", ["x"], ["s"])], "body", [h.make_tensor_value_info("t", T.INT64, []),
    h.make_tensor_value_info("d", T.BOOL, [])], [h.make_tensor_value_info("e", T.BOOL, []), h.make_tensor_value_info("s", T.FLOAT, [1, 5])]))

# Title, what the standard says, opset, type of y, inputs, initializers, the node; or several, which fast kernels run as one, whose answer is another
CASES = [
    ("Resize, align_corners, a scale that leaves a fraction",
     "Places are those of the true size, 7.5: the standard's formula has `length_resized` = scale * length. onnxruntime takes 7, the size of its output.",
     17, T.FLOAT, {"x": X}, {"s": np.array([1, 1, 1.5], np.float32)},
     h.make_node("Resize", ["x", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="align_corners")),
    ("ConvTranspose, auto_pad SAME, a kernel smaller than the stride",
     "The output has input * stride elements, which needs a padding of -1. onnxruntime takes none, and its output is shorter; half of -1, "
     "which comes first, is 0 in relayout and -1 in the reference evaluator.",
     17, T.FLOAT, {"x": X[:, :, :3]}, {"w": np.array([[[1, 10]]], np.float32)},
     h.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[3], auto_pad="SAME_UPPER")),
    ("AveragePool, auto_pad SAME, a kernel smaller than the stride",
     "The windows need no padding. onnxruntime and the reference evaluator compute a negative one and refuse it.",
     17, T.FLOAT, {"x": X}, {},
     h.make_node("AveragePool", ["x"], ["y"], kernel_shape=[1], strides=[3], auto_pad="SAME_LOWER")),
    ("Cast of NaN, and of what is too large, to an integer",
     "Undefined by the standard. On x86 the others give the least int32; relayout 0 for NaN, and else the low bits.",
     17, T.INT32, {"x": np.array([np.nan, 3e9, -3e9], np.float32)}, {}, h.make_node("Cast", ["x"], ["y"], to=T.INT32)),
    ("Pow of integers, a negative exponent",
     "Not said by the standard. NumPy, and so the reference evaluator, refuses.",
     17, T.INT32, {"x": np.array([2, 1], np.int32)}, {"e": np.array([-1, -1], np.int32)}, h.make_node("Pow", ["x", "e"], ["y"])),
    ("Softmax before opset 13, an axis that is not the last",
     "Up to opset 12 all dims from `axis` on are one. The reference evaluator has the meaning of opset 13 only.",
     11, T.FLOAT, {"x": np.array([[[0, 1], [2, 3]]], np.float32)}, {}, h.make_node("Softmax", ["x"], ["y"], axis=1)),
    ("BatchNormalization before opset 14",
     "Mean and variance are inputs 3 and 4. The reference evaluator mixes those of `x` in, as in training.",
     13, T.FLOAT, {"x": X}, {k: np.array([v], np.float32) for k, v in {"s": 1, "b": 0, "m": 1, "v": 4}.items()},
     h.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], epsilon=0.0)),
    ("Loop, what it collects",
     "Each turn gives one slice of a new first dim. The reference evaluator joins the slices along the dim that they have.",
     17, T.FLOAT, {"x": X[0]}, {"n": np.array(2), "go": np.array(True)}, LOOP),
    ("Unsqueeze before opset 13, two negative axes",
     "Axes count the dims of the result. The reference evaluator inserts one after the other, each into what it then has.",
     11, T.FLOAT, {"x": X[0, :, :2].T}, {}, h.make_node("Unsqueeze", ["x"], ["y"], axes=[-3, -1])),
    ("GlobalMaxPool of other than images",
     "All dims but the first two are reduced. The reference evaluator reduces two dims, from number rank - 2 on.",
     17, T.FLOAT, {"x": X}, {}, h.make_node("GlobalMaxPool", ["x"], ["y"])),
    ("ReduceMean of bfloat16",
     "The sum is 263, the mean 33 to the nearest. The reference evaluator adds in bfloat16, where 256 + 1 is 256. onnxruntime has no kernel.",
     17, T.BFLOAT16, {"x": np.array([256, 1, 1, 1, 1, 1, 1, 1], ml_dtypes.bfloat16)}, {}, h.make_node("ReduceMean", ["x"], ["y"])),
    ("Gather of strings, a dim that is not the last",
     "onnxruntime copies the first string of each slice only.",
     17, T.STRING, {"x": np.array([["a", "b"], ["c", "d"]], object)}, {"i": np.array([1, 0])}, h.make_node("Gather", ["x", "i"], ["y"], axis=0)),
    ("Pad of strings, no value",
     "The standard says that it is the empty string. onnxruntime has no kernel.",
     17, T.STRING, {"x": np.array(["a", "b"], object)}, {"p": np.array([1, 0])}, h.make_node("Pad", ["x", "p"], ["y"])),
    ("Relu, Clip and HardSigmoid behind a convolution, NaN",
     "What is no number stays that. oneDNN takes it for the least where it does the op with the convolution, and so do the fast kernels.",
     20, T.FLOAT, {"x": np.array([[[np.nan, -1, 1]]], np.float32)}, {"w": np.ones((1, 1, 1), np.float32)},
     [h.make_node("Conv", ["x", "w"], ["c"]), h.make_node("Relu", ["c"], ["y"])]),
    ("MaxPool, windows of NaN, and of -inf, alone",
     "The standard does not say what the maximum of NaN is; of numbers and NaN all give that of the numbers. oneDNN begins with the least finite number.",
     20, T.FLOAT, {"x": np.array([[[np.nan, np.nan, -np.inf, -np.inf, np.nan, 1]]], np.float32)}, {},
     [h.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[2])]),
    ("Float16, a sum that is not one, taken further",
     "2,049 is 2,048 in float16. The fast kernels round what they do in one step once, at its end, and onnxruntime what it computes in float32, with which it has no other kernels.",
     20, T.FLOAT16, {"x": np.array([2048], np.float16)}, {"one": np.array([1], np.float16)},
     [h.make_node("Add", ["x", "one"], ["a"]), h.make_node("Sub", ["a", "x"], ["y"])]),
]


def elem(x):
    return T.STRING if x.dtype == object else h.np_dtype_to_tensor_dtype(x.dtype)


def model_of(opset, dtype, inputs, init, nodes):
    rank = inputs["x"].ndim + {"Loop": 1, "Unsqueeze": 2}.get(nodes[0].op_type, 0)
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info(k, elem(v), v.shape) for k, v in inputs.items()],
                     [h.make_tensor_value_info("y", dtype, [None] * rank)], [numpy_helper.from_array(v, k) for k, v in init.items()])
    return h.make_model(g, opset_imports=[h.make_opsetid("", opset)], ir_version=8)


def shown(x):
    """Its shape and elements."""
    return f"{list(x.shape)} " + " ".join(f"\"{v}\"" if x.dtype.kind in "OSU" else f"{v:.4g}" for v in x.ravel())


def answers(prog, model, inputs, fast):
    """What each says: numbers as text, or that it refuses."""
    ours = lambda how: RelayoutBackend.prepare(model, program=prog, options=("--kernels", how)).run(inputs)
    engines = {"relayout": lambda: ours("reference"), **({"relayout, fast kernels": lambda: ours("fast")} if fast else {}),
               "onnxruntime": lambda: common.run_ort(model.SerializeToString(), inputs),
               "reference evaluator": lambda: common.run_reference(model.SerializeToString(), inputs)}
    said = {}
    for name, run in engines.items():
        try:
            y = np.asarray(run()[0])
            said[name] = shown(y)
        except Exception:
            said[name] = "refuses"
    return said


def page(prog):
    out = ["# Where runtimes disagree", "",
           "Made by `tests/python/test_disagree.py --write`, which also tests that it is still so. The random tests avoid these; that relayout",
           "optimizes such a model is tested by comparing before with after in one runtime, whichever it is.", ""]
    bad = []
    for title, why, opset, dtype, inputs, init, node in CASES:
        fast = isinstance(node, list)
        model = model_of(opset, dtype, inputs, init, node if fast else [node])
        onnx.checker.check_model(model)
        said = answers(prog, model, inputs, fast)
        if len(set(said.values())) == 1:
            bad.append(f"{title}: all agree by now: {said['relayout']}")
        if said["relayout"] == "refuses":
            bad.append(f"{title}: relayout refuses it")
        text = "; ".join(re.sub(r"\n\s*", " ", onnx.printer.to_text(n).strip()) for n in model.graph.node)
        values = "; ".join(f"`{k}` = {shown(v)}" for k, v in {**inputs, **init}.items())
        out += [f"## {title}", "", why, "", f"`{text}`, opset {opset}, {values}:", "", "| | shape and elements |", "|---|---|"]
        out += [f"| {k} | {v} |" for k, v in said.items()] + [""]
    return "\n".join(out).rstrip() + "\n", bad


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--write", action="store_true")
    args = p.parse_args()
    common.need_onednn(common.program(args))
    text, bad = page(common.program(args))
    if args.write:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        with tempfile.NamedTemporaryFile("w", suffix=".md") as f:
            f.write(text)
            f.flush()
            subprocess.run(["diff", "-u", PAGE, f.name])
        bad.append("docs/disagreements.md is not what the runtimes say now: --write")
    for b in bad:
        print(b)
    return common.closing(len(CASES) - min(len(bad), len(CASES)), len(bad))


if __name__ == "__main__":
    sys.exit(main())
