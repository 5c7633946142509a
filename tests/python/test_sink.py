#!/usr/bin/env python3
"""Networks as TensorFlow's exporters write them: all values channels-last, each convolution between two Transposes.

  test_sink.py [--count N]

Random networks (padded and depthwise convolutions, activations, scales by channel, residuals, squeeze and excitation, Concats, pools,
joints of a U-Net) are written twice, so and without the Transposes.  The runtime takes the same steps for both, copies nothing more, joins
activations that are written out (hard swish) to their convolutions, and gives what onnxruntime does.
Skipped without oneDNN.
"""
import collections
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

VIEWS = ("Transpose", "Reshape", "Squeeze", "Identity")


class Network(netgen.Builder):
    """last: values are N, H, W, C."""

    def __init__(self, seed, last):
        super().__init__(seed)
        self.last, self.adds, self.pooled = last, 0, set()  # adds: the most steps that may begin with one

    def floats(self, *shape):
        return self.given((self.data.standard_normal(shape) / 3).astype(np.float32))

    def image_op(self, op, inputs, **attributes):
        if not self.last:
            return self.add(op, inputs, **attributes)
        y = self.add(op, [self.add("Transpose", inputs[:1], perm=[0, 3, 1, 2])] + inputs[1:], **attributes)
        return self.add("Transpose", [y], perm=[0, 2, 3, 1])

    def conv(self, x, c, m, k=1, group=1, pads=None):
        w = self.floats(m, c // group, k, k)
        return self.image_op("Conv", [x, w], kernel_shape=[k, k], pads=[k // 2] * 4 if pads is None else pads, group=group)

    def padded(self, x, c, k):
        d = [0, k - 1, k - 1, 0] if self.last else [0, 0, k - 1, k - 1]
        y = self.add("Pad", [x, self.given(np.array([0] * 4 + d, np.int64))])
        return self.conv(y, c, c, k, pads=[0] * 4)

    def by_channel(self, op, x, c):
        return self.add(op, [x, self.floats(c) if self.last else self.floats(c, 1, 1)])

    def activation(self, x):
        kind = self.rng.choice(["Relu", "Clip", "silu", "Tanh", "hard swish"])
        if kind == "hard swish":
            y = self.add("Add", [x, self.given(np.float32(3))])
            y = self.add("Clip", [y, self.given(np.float32(0)), self.given(np.float32(6))])
            return self.add("Mul", [x, self.add("Mul", [y, self.given(np.float32(1 / 6))])])
        if kind == "silu":
            return self.add("Mul", [x, self.add("Sigmoid", [x])])
        return self.add(kind, [x] + ([self.given(np.float32(0)), self.given(np.float32(6))] if kind == "Clip" else []))

    def excited(self, x, c):
        """Channels times what is made of their means."""
        s = self.add("ReduceMean", [x], axes=[1, 2] if self.last else [2, 3], keepdims=1)
        s = self.conv(self.activation(self.conv(s, c, 4)), 4, c)
        return self.add("Mul", [x, self.add("Sigmoid", [s])])

    def enlarged(self, x, c):
        """Made smaller and larger again, by one of the ops that do so."""
        size = self.size
        if self.rng.random() < 0.3:
            y = self.image_op("DepthToSpace", [self.conv(x, c, 4 * c)], blocksize=2)
            return self.image_op("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2])
        y = self.activation(self.conv(self.image_op("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]), c, c, 3))
        to = self.given(np.array([1, c, size, size], np.int64))
        return self.image_op("Resize", [y, "", "", to], mode=self.rng.choice(["nearest", "linear"]))

    def block(self, x, c):
        kind = self.rng.choice(["plain", "deep", "padded", "residual", "excited", "joined", "pool", "joint"])
        if kind == "joint":
            y = self.add("Concat", [self.enlarged(x, c), x], axis=3 if self.last else 1)
            return self.activation(self.conv(y, 2 * c, c, 3))
        if kind == "plain":
            return self.activation(self.by_channel("Add", self.conv(x, c, c, 3), c))
        if kind == "deep":
            return self.activation(self.by_channel("Add", self.by_channel("Mul", self.conv(x, c, c, 3, c), c), c))
        if kind == "padded":
            self.adds += x in self.pooled  # a hard swish of its own
            return self.activation(self.padded(self.activation(x), c, 3))
        if kind == "residual":
            self.adds += 1
            return self.add("Add", [self.activation(self.conv(self.activation(self.conv(x, c, c)), c, c, 3)), x])
        if kind == "excited":
            return self.excited(self.activation(self.conv(x, c, c, 3, c)), c)
        if kind == "pool":
            y = self.image_op("MaxPool", [x], kernel_shape=[3, 3], pads=[1] * 4)
            self.pooled.add(y)
            return y
        pieces = [self.activation(self.conv(x, c, c, k)) for k in (1, 3)]
        return self.activation(self.by_channel("Mul", self.conv(self.add("Concat", pieces, axis=3 if self.last else 1), 2 * c, c), c))


def made(seed, last):
    net = Network(seed, last)
    c, size = net.rng.choice([8, 16, 20]), net.rng.choice([6, 9, 14])
    net.size = size
    x = net.activation(net.conv("x", 3, c, 3))
    for _ in range(net.rng.randrange(3, 8)):
        x = net.block(x, c)
    axes = [1, 2] if last else [2, 3]
    y = net.add("ReduceMean", [x], axes=axes, keepdims=0)
    shape = [1, size, size, 3] if last else [1, 3, size, size]
    g = h.make_graph(net.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, shape)],
                     [h.make_tensor_value_info(y, T.FLOAT, None), h.make_tensor_value_info(x, T.FLOAT, None)], net.init)
    return h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8), net.adds


def steps(prog, path):
    """The ops of the steps that do something, counted, and the bytes that the run copied."""
    found = common.bench(prog, path)
    return collections.Counter(s["op"] for s in found["steps"] if s["op"] not in VIEWS), found["copied_bytes"]


def outputs(prog, model, path, tmp):
    x = np.random.default_rng(0).standard_normal([d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]).astype(np.float32)
    np.save(tmp / "x.npy", x)
    p = subprocess.run([prog, "run", path, "--input", f"x={tmp / 'x.npy'}", "--output-dir", tmp / "out"], capture_output=True, text=True, timeout=60)
    if p.returncode:
        raise common.Differ(p.stderr[-200:])
    names = [o.name for o in model.graph.output]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # which takes a Pad of zeros for one that a MaxPool leaves out
    want = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(names, {"x": x})
    return [np.load(tmp / "out" / f"{n}.npy") for n in names], want


def check(prog, seed, tmp):
    found = []
    for last in (False, True):
        (model, adds), path = made(seed, last), tmp / f"{last}.onnx"
        onnx.save(model, path)
        found.append(steps(prog, path))
        for got, want in zip(*outputs(prog, model, path, tmp)):
            if got.shape != want.shape or np.abs(got - want).max() > 1e-4 * max(1, np.abs(want).max()):
                raise common.Differ("onnxruntime gives something else")
    if found[0][0] != found[1][0]:
        raise common.Differ(f"with Transposes {dict(found[1][0])}, without {dict(found[0][0])}")
    if found[0][0]["Add"] > adds:
        raise common.Differ(f"{found[0][0]['Add']} steps begin with an Add, of {adds} at most")
    if found[1][1] > found[0][1]:
        raise common.Differ(f"{found[1][1]} bytes are copied, {found[0][1]} without Transposes")


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=40)
    args = p.parse_args()
    prog = common.program(args)
    common.need_onednn(prog)
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(args.count):
            try:
                check(prog, seed, Path(tmp))
            except common.Differ as e:
                print(f"seed {seed}: {e}")
                failed += 1
    return common.closing(args.count - failed, failed)


if __name__ == "__main__":
    sys.exit(main())
