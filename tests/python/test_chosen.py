#!/usr/bin/env python3
"""Which loops run a convolution (`relayout bench --json`), and that they give the reference kernels' numbers.

  test_chosen.py

One convolution behind another of 1 x 1, which makes its input channels-last, for each row of the tables; and DequantizeLinear of int32.  No step may run oneDNN's plain
loops, named ref, nor let it do the bias or post-ops of a transposed convolution in such (ONEDNN_VERBOSE tells).  Skipped without oneDNN,
and the choice where the processor has no AVX2.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

import common
from test_fast import differs, outputs

# channels in, out, size, window, what else the node has, the op behind it, what the name of its kernel begins with
CONVS = {
    "depthwise": (64, 64, 28, 3, {"group": 64}, "Relu", "direct:depthwise"),
    "depthwise, large": (160, 160, 60, 3, {"group": 160}, "Relu", "direct:depthwise"),
    "depthwise, channels past a vector": (37, 37, 12, 5, {"group": 37, "strides": [2, 2]}, "", "direct:depthwise"),
    "depthwise, small": (96, 96, 7, 3, {"group": 96}, "Relu", "direct:depthwise"),
    "depthwise, most windows cut": (96, 96, 7, 5, {"group": 96}, "Relu", "br"),
    "one pixel": (64, 32, 1, 1, {}, "Relu", "direct"),
    "1 x 1": (64, 64, 14, 1, {}, "Relu", "br"),
    "1 x 1, an exponential behind": (64, 64, 14, 1, {}, "Sigmoid", "direct"),
    "3 x 3": (64, 64, 15, 3, {}, "Relu", "direct:winograd"),
    "3 x 3, channels past a vector": (37, 70, 9, 3, {}, "", "direct:winograd"),
    "3 x 3, an exponential behind": (32, 40, 20, 3, {}, "Sigmoid", "direct:winograd"),
    "3 x 3, few channels": (8, 64, 14, 3, {}, "Relu", "br"),
    "3 x 3, two apart": (64, 64, 14, 3, {"strides": [2, 2]}, "Relu", "br"),
    "3 x 3, dilated": (64, 64, 14, 3, {"dilations": [2, 2]}, "Relu", "br"),
    "3 x 3, in groups": (64, 64, 14, 3, {"group": 4}, "Relu", ""),
    "3 x 3, weights that are too many": (640, 640, 7, 3, {}, "Relu", "br"),
}
# channels, group, window, bias, what is behind
TRANSPOSED = [(c, g, k, bias, op) for c, g in ((32, 32), (32, 4), (24, 1)) for k in (3, 4) for bias in (False, True) for op in ("", "Relu", "Add", "BatchNormalization")]


def network(rng, op, m, w, bias, behind, size, **more):
    """x -> 1 x 1 convolution -> the op, named C -> what is behind it."""
    given = {"first": rng.standard_normal((w.shape[0] if op == "ConvTranspose" else w.shape[1] * more.get("group", 1), 4, 1, 1)), "w": w}
    if bias:
        given["b"] = rng.standard_normal(m)
    nodes = [h.make_node("Conv", ["x", "first"], ["x1"]), h.make_node(op, ["x1", "w"] + ["b"] * bias, ["c"], name="C", **more)]
    if behind == "Add":
        nodes.append(h.make_node("Add", ["c", "c2"], ["y"]))
        nodes.insert(1, h.make_node(op, ["x1", "w"], ["c2"], **more))
    elif behind == "BatchNormalization":
        given.update({n: rng.uniform(0.5, 2, m) for n in ("scale", "shift", "mean", "var")})
        nodes.append(h.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"]))
        nodes.append(h.make_node("Relu", ["n"], ["y"]))
    else:
        nodes.append(h.make_node(behind or "Identity", ["c"], ["y"]))
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [1, 4, size, size])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                     [numpy_helper.from_array(v.astype(np.float32), n) for n, v in given.items()])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def of_int32(size):
    nodes = [h.make_node("Cast", ["x"], ["i"], to=T.INT32), h.make_node("DequantizeLinear", ["i", "s"], ["y"], "C")]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [1, 4, size, size])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                     [numpy_helper.from_array(np.float32([1, 2, 3, 4]), "s")])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def gelu_is_infinite(prog, folder):
    """Of infinity, behind a convolution in groups, which is oneDNN's."""
    nodes = [h.make_node("Conv", ["x", "w"], ["c"], group=2), h.make_node("Gelu", ["c"], ["y"])]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [1, 4, 4, 4])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                     [numpy_helper.from_array(np.ones((4, 2, 1, 1), np.float32), "w")])
    model, x = h.make_model(g, opset_imports=[h.make_opsetid("", 20)], ir_version=9), np.ones((1, 4, 4, 4), np.float32)
    onnx.save(model, folder / "m.onnx")
    x[:, :, 1, 1] = np.inf
    y, = outputs(prog, model, x, folder, ("--kernels", "fast"))
    return (y[:, :, 1, 1] == np.inf).all() and np.isfinite(y[:, :, 0]).all()


def plain(prog, model, folder):
    """What oneDNN did in plain loops, else an empty text."""
    p = subprocess.run([prog, "run", folder / "m.onnx"], capture_output=True, text=True, timeout=60, env={**os.environ, "ONEDNN_VERBOSE": "1"})
    for line in p.stdout.splitlines():
        part = line.split(",")
        if not line.startswith("onednn_verbose,exec"):
            continue
        ends = "post-ops" in line or "bia_f32" in line
        if part[4].startswith("ref") or (part[4].startswith("conv:") and (ends or "+ref" in part[4])):
            return line
    return ""


def wrong(prog, model, folder, kernel, size):
    """What is wrong, else an empty text."""
    onnx.save(model, folder / "m.onnx")
    x = np.random.default_rng(0).uniform(-1, 1, (1, 4, size, size)).astype(np.float32)
    ran = next((s["kernel"] for s in common.bench(prog, folder / "m.onnx")["steps"] if s["node"] == "C"), "no such step")
    if not ran.startswith(kernel) or (kernel == "direct" and ran != kernel):
        return f"{ran} ran it, not {kernel}"
    got, want = [outputs(prog, model, x, folder, ("--kernels", k)) for k in ("fast", "reference")]
    return differs(model, got, want) or plain(prog, model, folder)


def has_avx2():
    return "avx2" in Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else False


def main():
    prog, passed, failed = common.program(common.arguments(__doc__.splitlines()[0]).parse_args()), 0, 0
    common.need_onednn(prog)
    rng, jobs = np.random.default_rng(1), []
    for name, (c, m, size, k, more, behind, kernel) in CONVS.items():
        w = rng.standard_normal((m, c // more.get("group", 1), k, k))
        pads = more.get("dilations", [1])[0] * (k // 2)
        jobs.append((name, network(rng, "Conv", m, w, True, behind, size, pads=[pads] * 4, **more), kernel if has_avx2() else "", size))
    for c, g, k, bias, behind in TRANSPOSED:
        w = rng.standard_normal((c, c // g, k, k))
        jobs.append((f"transposed, {c} channels in {g} groups, {k} x {k}{', bias' * bias}, {behind or 'nothing behind'}",
                     network(rng, "ConvTranspose", c, w, bias, behind, 10, group=g, strides=[2, 2], pads=[1] * 4), "", 10))
    for behind in ("", "Relu", "BatchNormalization"): # more output than oneDNN's windows reach: pads below zero
        jobs.append((f"transposed, a wide output, {behind or 'nothing behind'}",
                     network(rng, "ConvTranspose", 8, rng.standard_normal((8, 8, 3, 3)), True, behind, 6, strides=[2, 2], output_shape=[20, 20]), "", 6))
    jobs.append(("DequantizeLinear of int32", of_int32(6), "rows", 6))
    with tempfile.TemporaryDirectory() as tmp:
        for name, model, kernel, size in jobs:
            what = wrong(prog, model, Path(tmp), kernel, size)
            passed, failed = passed + (not what), failed + bool(what)
            if what:
                print(f"{name}: {what}")
        infinite = gelu_is_infinite(prog, Path(tmp))
        passed, failed = passed + infinite, failed + (not infinite)
        if not infinite:
            print("Gelu behind a convolution: of infinity it is not that")
    return common.closing(passed, failed)


if __name__ == "__main__":
    sys.exit(main())
