#!/usr/bin/env python3
"""Random networks of bytes: `relayout run --kernels fast` against `--kernels reference`.

  test_bytes.py --count 300 --seed 7

First the ops of com.microsoft that a quantizer writes, by both kernels against onnxruntime, which may be one step apart.
Convolutions of 1 to 3 dims (groups, depthwise, strides, dilation) and products between DequantizeLinear and QuantizeLinear, with scales for all or for
each channel, zero points, biases and Relus; QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger behind DynamicQuantizeLinear; pointwise ops between
such pairs; values that a joined step and others read; pairs by axis on values that lie transposed. Sums of i32 are equal; of quantized numbers one in
fifty may be one other (the reference rounds sums of floats), and then what follows. Skipped without oneDNN.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper as h

import common
import netgen
from test_fast import Refused, outputs

BYTES = {np.int8: T.INT8, np.uint8: T.UINT8}


class Network(netgen.Builder):
    def number(self, a, dtype):
        return self.given(np.asarray(a, dtype))

    def point(self, dtype, n=None):
        """A zero point, or some."""
        info = np.iinfo(dtype)
        return self.number(self.data.integers(info.min, info.max + 1, n) if self.rng.random() < 0.6 else np.zeros(n or (), int), dtype)

    def leads(self):
        return any(n.op_type in ("Conv", "MatMul", "Gemm") for n in self.nodes)

    def pair(self, x, peak):
        """x, up to `peak`, quantized and taken back."""
        r = self.rng
        dtype, scale = r.choice(list(BYTES)), np.float32(2 * peak / 255 * r.choice([0.7, 1, 1]))
        info = np.iinfo(dtype)
        zero = self.number(r.choice([info.min, (info.min + info.max + 1) // 2, (info.min + info.max + 1) // 2 + 3]), dtype)
        s = self.number(scale, np.float32)
        self.q = self.add("QuantizeLinear", [x, s, zero])
        self.xscale, self.quantum = scale, scale
        return self.add("DequantizeLinear", [self.q, s, zero])

    def weights(self, shape, axis):
        """Quantized weights, taken back, and their scales."""
        r = self.rng
        n = shape[axis]
        dtype, each = r.choice([np.int8, np.int8, np.int8, np.uint8]), r.random() < 0.5
        info = np.iinfo(dtype)
        w = self.number(self.data.integers(info.min // 2 if info.min else 64, (info.max + 1) // 2 if info.min else 192, shape), dtype)
        zero = self.number(np.full(n if each else (), 0 if info.min else 128), dtype)
        scale = np.float32(self.data.uniform(0.01, 0.02, n if each else None))
        return self.add("DequantizeLinear", [w, self.given(scale), zero], axis=r.choice([axis, axis - len(shape)])), scale * np.ones(n, np.float32)

    def bias(self, scale):
        """In units of x's scale times the weights'."""
        if self.rng.random() < 0.4:
            return []
        n, s = len(scale), (scale * self.xscale).astype(np.float32)
        return [self.add("DequantizeLinear", [self.number(self.data.integers(-500, 500, n), np.int32), self.given(s)] +
                         ([self.number(np.zeros(n), np.int32)] if self.rng.random() < 0.5 else []), axis=0)]

    def window(self, s):
        """(group, outputs, attributes) of a convolution."""
        r, rank, c = self.rng, len(s) - 2, s[1]
        g = r.choice([d for d in (1, 1, 2, c) if c % d == 0])
        m = g * r.choice([1, 2, 5, 16] if g < c else [1, 1, 2])
        k = [r.choice([d for d in (1, 2, 3) if d <= n]) for n in s[2:]]
        return g, m, {"kernel_shape": k, "pads": [r.choice([0, 1]) for _ in range(2 * rank)], "strides": [r.choice([1, 2]) for _ in k], "group": g}

    def spatial(self, s, m, a):
        rank = len(s) - 2
        return [s[0], m] + [(d + a["pads"][i] + a["pads"][rank + i] - a["kernel_shape"][i]) // a["strides"][i] + 1 for i, d in enumerate(s[2:])]

    def conv(self, x, s):
        g, m, a = self.window(s)
        w, scale = self.weights([m, s[1] // g, *a["kernel_shape"]], 0)
        y = self.add("Conv", [x, w] + self.bias(scale), **a)
        return y, self.spatial(s, m, a), 0.6 * (s[1] // g * np.prod(a["kernel_shape"])) ** 0.5

    def product(self, x, s):
        n, k = self.rng.choice([1, 5, 16, 33]), s[-1]
        if len(s) == 2 and self.rng.random() < 0.7:
            turned = self.rng.random() < 0.5
            w, scale = self.weights([n, k] if turned else [k, n], 0 if turned else 1)
            y = self.add("Gemm", [x, w] + self.bias(scale), transB=int(turned))
        else:
            y = self.add("MatMul", [x, self.weights([k, n], 1)[0]])
        return y, s[:-1] + [n], 0.6 * k ** 0.5

    def layers(self, x, s):
        """Some leads, one after the other, each between pairs."""
        r, peak = self.rng, 1.0
        x = self.pair(x, peak)
        for _ in range(r.choice([1, 1, 2])):
            before, kept = x, list(s)
            x, s, grows = self.conv(x, s) if len(s) > 2 and r.random() < 0.7 else self.product(x, s)
            peak *= grows
            if r.random() < 0.4:
                x = self.add("Relu", [x])
            x = self.pair(x, peak)
            if r.random() < 0.5:  # what others read, too
                x = self.add(r.choice(["Add", "Mul"]), [x, before if list(s) == kept else self.given(np.float32(0.7))])
                x = self.pair(self.add("Sigmoid", [x]), 1.0) if r.random() < 0.5 else self.pair(x, 2 * peak)
                peak = 1.0 if r.random() < 0.5 else peak
            if r.random() < 0.2:
                x = self.add("DequantizeLinear", [self.q, *self.nodes[-1].input[1:]]) if self.nodes[-1].op_type == "DequantizeLinear" else x
        return x, T.FLOAT

    def rounded(self, x, s):
        """Pairs by axis or for all, of what lies transposed or in pieces."""
        r = self.rng
        perm = r.sample(range(len(s)), len(s))
        x, s = self.add("Transpose", [x], perm=perm), [s[i] for i in perm]
        if s[-1] > 2 and r.random() < 0.4:
            one = lambda v: self.number([v], np.int64)
            x, s = self.add("Slice", [x, one(1), one(s[-1]), one(-1)]), s[:-1] + [s[-1] - 1]
        axis, dtype = r.randrange(len(s)), r.choice(list(BYTES))
        n = s[axis] if r.random() < 0.7 else None
        scale, zero = self.given(np.float32(self.data.uniform(0.004, 0.02, n))), self.point(dtype, n)
        q = self.add("QuantizeLinear", [x, scale, zero], axis=axis)
        if r.random() < 0.4:
            return q, BYTES[dtype]
        return self.add("DequantizeLinear", [q, scale, zero if r.random() < 0.9 else self.point(dtype, n)], axis=axis - r.choice([0, len(s)])), T.FLOAT

    def integers(self, x, s):
        """ConvInteger or MatMulInteger of what was quantized as it came."""
        r = self.rng
        self.n += 1
        q, scale, zero = (f"d{self.n}{i}" for i in "qsz")
        self.nodes.append(h.make_node("DynamicQuantizeLinear", [x], [q, scale, zero]))
        dtype = r.choice(list(BYTES))
        info = np.iinfo(dtype)
        ints = lambda shape: self.number(self.data.integers(info.min, info.max + 1, shape), dtype)
        zeros = [zero] + ([self.number(0 if info.min else r.choice([127, 128]), dtype)] if r.random() < 0.7 else [])
        if len(s) > 2 and r.random() < 0.5:
            g, m, a = self.window(s)
            y = self.add("ConvInteger", [q, ints([m, s[1] // g, *a["kernel_shape"]])] + zeros, **a)
        else:
            y = self.add("MatMulInteger", [q, ints([s[-1], r.choice([1, 16, 33])])] + zeros)
        if r.random() < 0.5:
            return y, T.INT32
        self.quantum = 0
        return self.add("Mul", [self.add("Cast", [y], to=T.FLOAT), scale]), T.FLOAT

    def operator(self, x, s):
        """QLinearConv or QLinearMatMul."""
        r = self.rng
        self.pair(x, 1.0)
        q, (scale, zero) = self.q, self.nodes[-1].input[1:]
        dtype, to = r.choice(list(BYTES)), r.choice(list(BYTES))
        info = np.iinfo(dtype)
        ints = lambda shape: self.number(self.data.integers(info.min, info.max + 1, shape), dtype)
        conv = len(s) > 2 and r.random() < 0.6
        g, m, a = self.window(s) if conv else (1, r.choice([1, 8, 33]), {})
        k = s[1] // g * int(np.prod(a["kernel_shape"])) if conv else s[-1]
        each = m if r.random() < 0.5 else None
        w = [ints([m, s[1] // g, *a["kernel_shape"]] if conv else [k, m]), self.given(np.float32(self.data.uniform(0.01, 0.02, each))),
             self.number(np.full(each or (), 0 if info.min else 128), dtype)]
        y = [self.number(2 * 1.2 * k ** 0.5 / 255, np.float32), self.number((0 if to == np.int8 else 128) + r.choice([0, 9]), to)]
        bias = [self.number(self.data.integers(-900, 900, m), np.int32)] if conv and r.random() < 0.5 else []
        self.quantum = 1
        return self.add("QLinearConv" if conv else "QLinearMatMul", [q, scale, zero, *w, *y, *bias], **a), BYTES[to]

    def model(self):
        r = self.rng
        shape = [r.choice([1, 2]), r.choice([1, 3, 8, 16])] + [r.choice([1, 4, 7, 12]) for _ in range(r.choice([0, 1, 2, 2, 2, 3]))]
        self.quantum = 0.02
        y, t = r.choice([self.layers, self.layers, self.layers, self.rounded, self.integers, self.operator])("x", shape)
        named = ["N"] + shape[1:] if r.random() < 0.2 else shape
        g = h.make_graph(self.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, named)], [h.make_tensor_value_info(y, t, None)], self.init)
        return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), shape


def differs(net, a, b):
    """What is wrong with a, where b is wanted."""
    if a.shape != b.shape:
        return f"{a.shape} and {b.shape}"
    t = net.nodes[-1].op_type
    apart = np.abs(a - b)
    if t in ("ConvInteger", "MatMulInteger", "QuantizeLinear", "DequantizeLinear") and not net.leads():
        return "" if not apart.max(initial=0) else f"{t}: differs by {apart.max()}"
    if not net.quantum:
        return "" if apart.max() <= 1e-5 * np.abs(b).max(initial=1) else f"{t}: differs by {apart.max()}"
    off = np.mean(apart > 1e-4 * net.quantum)
    if apart.max() > 3.01 * net.quantum or (off > 0.02 and (apart > 1e-4 * net.quantum).sum() > 2):
        return f"{t}: {off:.3f} of the numbers differ, by {apart.max() / net.quantum:.2f} steps; {[n.op_type for n in net.nodes]}"
    return ""


def run(job):
    """The seed, and what is wrong."""
    seed, prog = job
    net = Network(seed)
    model, shape = net.model()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        onnx.save(model, tmp / "m.onnx")
        x, threads = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32), ("--threads", str(1 + seed % 2))
        try:
            got, want = (outputs(prog, model, x, tmp, ("--kernels", k, *threads))[0] for k in ("fast", "reference"))
        except Refused as e:
            return seed, str(e)
        return seed, differs(net, got, want)


# ---- ops of com.microsoft ----

def quantized(op, domain="com.microsoft", channels=8, **attributes):
    """A model of one op between what quantizes its inputs, and its output's bytes."""
    net = Network(len(op) + sum(map(ord, op)))
    f, u8 = lambda a: net.number(a, np.float32), lambda a: net.number(a, np.uint8)
    s, z, out = f(0.02), u8(120), [f(0.015), u8(60)]
    x = net.add("QuantizeLinear", ["x", s, z])
    y = net.add("QuantizeLinear", ["y", f(0.018), u8(131)]) if op in ("QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearMatMul", "QLinearWhere") else None
    second = [y, net.nodes[-1].input[1], net.nodes[-1].input[2]] if y else []
    a, shape, other = [x, s, z], [2, channels, 6, 7], [2, channels, 6, 7]
    ints = lambda *n: net.number(net.data.integers(-90, 90, n), np.int8)
    weights = lambda *n: [ints(*n), net.given(np.float32(net.data.uniform(0.01, 0.02, n[0]))), net.number(np.zeros(n[0]), np.int8)]
    if op == "QLinearConcat":
        inputs = out + a + second
    elif op == "QGemm":
        shape, bias = [5, 12], [net.number(net.data.integers(-300, 300, 9), np.int32)]
        inputs = a + weights(9, 12) + bias + out
    elif op == "QLinearMatMul":
        other = [2, channels, 7, 5]
        inputs = a + second + out
    elif op == "QLinearConv":
        shape = [2, 6, 7, 8]
        inputs = a + weights(4, 8, 3, 3) + out
    elif op == "QLinearWhere":
        inputs = [net.given(net.data.integers(0, 2, [1, channels, 6, 1]).astype(bool))] + a + second + out
    elif op == "NhwcMaxPool":
        inputs = [x]
    else:
        inputs = a + second + out
    net.nodes.append(h.make_node(op, inputs, ["q"], domain=domain, **attributes))
    declared = [h.make_tensor_value_info("x", T.FLOAT, shape)] + ([h.make_tensor_value_info("y", T.FLOAT, other)] if y else [])
    g = h.make_graph(net.nodes, "g", declared, [h.make_tensor_value_info("q", T.UINT8, None)], net.init)
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)], ir_version=8)


OPERATORS = [("QLinearAdd", {}), ("QLinearMul", {}), ("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearConcat", {"axis": 1}),
             ("QLinearSoftmax", {"axis": -1, "opset": 13}), ("QLinearAveragePool", {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]}),
             ("QLinearGlobalAveragePool", {}), ("QLinearWhere", {}),
             ("QLinearAveragePool", {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "channels_last": 1}), ("QLinearGlobalAveragePool", {"channels_last": 1}), ("QGemm", {"transB": 1}), ("QLinearMatMul", {"domain": ""}),
             ("QLinearConv", {"channels_last": 1, "pads": [1, 1, 1, 1]}), ("NhwcMaxPool", {"kernel_shape": [2, 2]})]


def operator_differs(prog, op, attributes):
    model = quantized(op, **attributes)
    rng = np.random.default_rng(1)
    x = {i.name: rng.uniform(-2, 2, [d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32) for i in model.graph.input}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    want = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, x)[0].astype(int)
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        onnx.save(model, tmp / "m.onnx")
        given = []
        for name, a in x.items():
            np.save(tmp / f"{name}.npy", a)
            given += ["--input", f"{name}={tmp / name}.npy"]
        for kernels in ("reference", "fast"):
            r = subprocess.run([prog, "run", tmp / "m.onnx", "--kernels", kernels, *given, "--output-dir", tmp / "out"], capture_output=True, text=True)
            if r.returncode:
                return f"{kernels}: status {r.returncode} {r.stderr.strip()[-200:]}"
            got = np.load(tmp / "out" / "q.npy").astype(int)
            some = 0.2 if op == "QLinearSoftmax" else 0.02  # onnxruntime's powers come from a table
            if got.shape != want.shape or np.abs(got - want).max() > 1 or np.sum(got != want) > max(1, some * got.size):
                return f"{kernels}: {np.mean(got != want):.3f} of the numbers differ, by {np.abs(got - want).max()}"
    return ""


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=150)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    prog = common.program(args)
    common.need_onednn(prog)
    bad = [f"{op}: {wrong}" for op, attributes in OPERATORS if (wrong := operator_differs(prog, op, attributes))]
    for seed, wrong in common.pooled(run, [(args.seed * 100000 + i, prog) for i in range(args.count)], args.jobs, 4):
        if wrong:
            bad.append(f"seed {seed}: {wrong}")
    print("\n".join(bad))
    return common.closing(args.count + len(OPERATORS) - len(bad), len(bad))


if __name__ == "__main__":
    sys.exit(main())
