#!/usr/bin/env python3
"""Networks of float16 and bfloat16, which fast kernels compute as float32 (runtime/halves.c): what is rounded, where, and by which kernels.

  test_halves.py

Every number of the type, times some, against the reference kernels, bit by bit; sums that the type does not have, read by one node and by
several; values that other kernels, bodies and the caller read beside; that no convolution or product runs by a reference kernel. Random
networks: test_fast.py --type. Skipped without oneDNN.
"""
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper, parser

import common
import lowered
from test_fast import outputs

# What float16 has no number for, and the one that it takes: 2^11 + 1, and bfloat16: 2^8 + 1.
LARGE = {"float16": 2048, "bfloat16": 256}

# A value that is read by a Cast, a body, a kernel without a fast one, and the caller; views and moves between convolutions.
MIXED = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,8,6,6] x, bool[1] c) => (float[1,8,6,6] py, float[1,8,6,6] pz, float[1,8,6,6] pu, int64[4] n)
<float[8,8,3,3] w = {576}, float[8,8,1,1] k = {64}, float[8] b = {8}, float[8] one = {8}, int64[5] s = {1, 2, 4, 6, 6}, int64[4] back = {1, 8, 6, 6}> {
    hx = Cast <to: int = TO> (x)
    hw = Cast <to: int = TO> (w)
    hk = Cast <to: int = TO> (k)
    hb = Cast <to: int = TO> (b)
    hone = Cast <to: int = TO> (one)
    a = Conv <pads: ints = [1, 1, 1, 1]> (hx, hw, hb)
    y = Relu(a)
    d = Dropout(y)
    r = Reshape(d, s)
    t = Transpose <perm: ints = [0, 2, 1, 3, 4]> (r)
    f = Reshape(t, back)
    v = InstanceNormalization(f, hone, hb)
    m = MaxPool <kernel_shape: ints = [3, 3], pads: ints = [1, 1, 1, 1]> (v)
    e = Conv(m, hk)
    z = Softsign(e)
    u = If(c) <then_branch = then () => (TYPE[1,8,6,6] p) { p = Add(y, e) }, else_branch = otherwise () => (TYPE[1,8,6,6] q) { q = Identity(e) }>
    n = Shape(y)
    py = Cast <to: int = 1> (y)
    pz = Cast <to: int = 1> (z)
    pu = Cast <to: int = 1> (u)
}"""


def mixed(name, to):
    rng = np.random.default_rng(3)
    text = re.sub(r"{(576|64|8)}", lambda n: "{" + ", ".join(f"{v:.3f}" for v in rng.uniform(-0.5, 0.5, int(n[1]))) + "}", MIXED)
    return parser.parse_model(text.replace("TO", str(to)).replace("TYPE", name))


def model_of(nodes, shape, outputs_, init=()):
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, shape)], [h.make_tensor_value_info(v, T.FLOAT, None) for v in outputs_],
                     [numpy_helper.from_array(np.asarray(a, np.float32), n) for n, a in init])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def every_number(to):
    codes = np.arange(65536, dtype=np.uint16)
    return codes.view(np.float16).astype(np.float32) if to == T.FLOAT16 else (codes.astype(np.uint32) << 16).view(np.float32)


def ran(prog, model, x, folder, how):
    onnx.save(model, folder / "m.onnx")
    return outputs(prog, model, x, folder, how)


def both(prog, model, x, folder):
    return (ran(prog, model, x, folder, ("--kernels", how)) for how in ("fast", "reference"))


def tests(checks, prog, name, folder):
    to, large = lowered.TYPES[name], np.float32(LARGE[name])
    by = model_of([h.make_node("Mul", ["x", "k"], ["y"])], [65536, 1], ["y"], [("k", [[1, 1.5, 2 ** -12, 2 ** 9, 0.7]])])
    got, want = both(prog, lowered.lowered(by, to), every_number(to).reshape(-1, 1), folder)
    checks(f"{name}: every number times five", np.array_equal(got[0], want[0], equal_nan=True))

    more = [h.make_node("Add", ["x", "one"], ["a"]), h.make_node("Sub", ["a", "x"], ["y"])]
    for what, read, rest in (("read again", ["y", "a"], 0), ("joined", ["y"], 1)):
        got, = ran(prog, lowered.lowered(model_of(more, [4], read, [("one", [1])]), to), np.full(4, large), folder, ("--kernels", "fast"))[:1]
        checks(f"{name}: {large:.0f} + 1 - {large:.0f} is {rest} where the sum is {what}", (got == rest).all(), f"{got}")

    for op, weights in (("Conv", np.ones((1, 2, 1, 1))), ("ConvTranspose", np.ones((2, 1, 2, 2))), ("MatMul", np.ones((6, 6)) / 6)):
        x = np.full((1, 2, 6, 6), (large + 2) / 2 if op != "MatMul" else large, np.float32)
        x[:, 1] -= op != "MatMul"
        got, want = both(prog, lowered.lowered(model_of([h.make_node(op, ["x", "w"], ["y"])], list(x.shape), ["y"], [("w", weights)]), to), x, folder)
        checks(f"{name}: {op} rounds its sums", np.array_equal(got[0], want[0]) and np.array_equal(got[0], lowered.nearest(got[0].astype(np.float32), to)))


def tests_of_mixed(checks, prog, name, folder):
    to = lowered.TYPES[name]
    model = mixed(name, to)
    onnx.save(model, folder / "m.onnx")
    np.save(folder / "c.npy", np.array([True]))
    x = np.random.default_rng(1).uniform(-1, 1, (1, 8, 6, 6)).astype(np.float32)
    extra = ("--input", f"c={folder / 'c.npy'}")
    got, want = (outputs(prog, model, x, folder, ("--kernels", how, *extra)) for how in ("fast", "reference"))
    worst = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(got, want))
    checks(f"{name}: read by a Cast, a body, other kernels and the caller", worst < (1e-2 if name == "float16" else 6e-2), f"{worst:.2g}")
    checks(f"{name}: what is put out is of the type", all(np.array_equal(y, lowered.nearest(y.astype(np.float32), to)) for y in got[:3]))
    slow = {s["op"] for s in common.bench(prog, folder / "m.onnx")["steps"] if s["kernel"] == "reference"}
    checks(f"{name}: no reference kernel of what has a fast one", not slow & {"Conv", "Relu", "InstanceNormalization", "MaxPool"}, ", ".join(slow))


def main():
    p = common.arguments(__doc__.splitlines()[0])
    args = p.parse_args()
    prog, checks = common.program(args), common.Checks()
    common.need_onednn(prog)
    with tempfile.TemporaryDirectory() as tmp:
        for name in lowered.TYPES:
            tests(checks, prog, name, Path(tmp))
            tests_of_mixed(checks, prog, name, Path(tmp))
    return checks.closing()


if __name__ == "__main__":
    sys.exit(main())
