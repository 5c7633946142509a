#!/usr/bin/env python3
"""What convolutional networks copy: the bytes that moves write, beside those that all ops read and write, as `relayout bench --json` counts.

  test_concat_copies.py

Small networks of the kinds that join channels again and again, with random sizes: pieces are made where the Concat wants them, and what
reads slices of channels reads them where they lie.  The outputs are onnxruntime's.  Skipped without oneDNN.
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h

import common
import netgen
import test_sink


class Network(netgen.Builder):
    def conv(self, x, c, m, k=1, group=1, act=True, stride=1):
        w = self.given(self.data.standard_normal((m, c // group, k, k)).astype(np.float32))
        b = self.given(self.data.standard_normal(m).astype(np.float32))
        y = self.add("Conv", [x, w, b], kernel_shape=[k, k], pads=[k // 2] * 4, group=group, strides=[stride] * 2)
        return self.add("Relu", [y]) if act else y

    def depthwise(self, x, c, k=3, **more):
        return self.conv(x, c, c, k, c, **more)


def ghost(net, x, c):
    """GhostNet: half of the channels by a cheap depthwise convolution of the other half; a residual."""
    for _ in range(3):
        a = net.conv(x, c, c // 2)
        y = net.add("Concat", [a, net.depthwise(a, c // 2, 3)], axis=1)
        b = net.conv(y, c, c // 2, act=False)
        x = net.add("Add", [net.add("Concat", [b, net.depthwise(b, c // 2, 5, act=False)], axis=1), x])
    return net.conv(x, c, c)


def dense(net, x, c):
    """DenseNet: each layer reads all that were made before."""
    made = [net.conv(x, c, 12, 3)]
    for i in range(4):
        y = net.add("Concat", made, axis=1) if i else made[0]
        made.append(net.conv(net.conv(y, 12 * (i + 1), 24), 24, 12, 3, act=False))
    return net.conv(net.add("Concat", made, axis=1), 60, c)


def cells(net, x, c):
    """NASNet: sums of separable convolutions, joined."""
    for _ in range(2):
        pieces = []
        for _ in range(3):
            a = net.conv(net.depthwise(x, c, net.rng.choice([3, 5, 7]), act=False), c, c, act=False)
            pieces.append(net.add("Add", [a, net.conv(net.depthwise(x, c, 3), c, c, act=False)]))
        x = net.conv(net.add("Relu", [net.add("Concat", pieces, axis=1)]), 3 * c, c)
    return x


def padded(net, x, c):
    """NASNet's reductions: convolutions of several sizes, one of them twice, read what one Pad made."""
    def bare(x, c, k):
        w = net.given(net.data.standard_normal((c, 1, k, k)).astype(np.float32))
        return net.add("Conv", [x, w], kernel_shape=[k, k], group=c)

    for n in (1, 2, 3):
        y = net.add("Pad", [x, net.given(np.array([0, 0, n, n] * 2, np.int64))])
        x = net.conv(net.add("Add", [bare(y, c, 2 * n + 1), bare(y, c, 2 * n + 1)]), c, c)
    return x


def pooled(net, x, c):
    """As Keras writes pools with pads: a Pad of zeros apart, of values below 0 too, which pools of one or both kinds read."""
    k, stride = net.rng.choice([2, 3]), net.rng.choice([1, 2])
    by = [net.rng.randrange(k) for _ in range(3)] + [1]
    net.rng.shuffle(by)
    x = net.add("Pad", [net.conv(x, c, c, act=False), net.given(np.array([0, 0, by[0], by[1], 0, 0, by[2], by[3]], np.int64))])
    kinds = net.rng.choice([["MaxPool"], ["AveragePool"], ["MaxPool", "AveragePool"]])
    made = [net.add(kind, [x], kernel_shape=[k, k], strides=[stride] * 2) for kind in kinds]
    return net.conv(net.add("Add", made) if len(made) > 1 else made[0], c, c)


def subsampled(net, x, c):
    """NASNet's reductions: a convolution of every other pixel beside one of every other from the second on, with what a Pad has behind."""
    def every_other(x):
        y = net.add("AveragePool", [x], kernel_shape=[1, 1], strides=[2, 2])
        return net.conv(y, c, c, act=False)

    for _ in range(2):
        k = net.rng.choice([1, 2])
        y = net.add("Pad", [x, net.given(np.array([0] * 6 + [k, k], np.int64))])
        numbers = lambda *k: net.given(np.array(k, np.int64))
        y = net.add("Slice", [y, numbers(k, k), numbers(2**63 - 1, 2**63 - 1), numbers(2, 3)])
        x = net.add("Relu", [net.add("Add", [every_other(x), every_other(y)])])
    return x


def halves(net, x, c):
    """CSP and ShuffleNet without the shuffle: one half of a Split goes on as it is."""
    for _ in range(3):
        net.n += 1
        a, b = f"a{net.n}", f"b{net.n}"
        net.nodes.append(h.make_node("Split", [x], [a, b], axis=1))
        b = net.conv(net.depthwise(net.conv(b, c // 2, c // 2), c // 2, 3, act=False), c // 2, c // 2)
        x = net.conv(net.add("Concat", [net.conv(a, c // 2, c // 2), b], axis=1), c, c)
    return x


def shuffle(net, parts, c):
    """The channels of pieces of c in turn."""
    y, n, side = net.add("Concat", parts, axis=1), len(parts), net.side
    y = net.add("Reshape", [y, net.given(np.array([0, n, c, side, side], np.int64))])
    y = net.add("Transpose", [y], perm=[0, 2, 1, 3, 4])
    return net.add("Reshape", [y, net.given(np.array([0, n * c, side, side], np.int64))])


def cut(net, y, n, c):
    if net.rng.random() < 0.5:
        net.n += 1
        names = [f"a{net.n}_{i}" for i in range(n)]
        net.nodes.append(h.make_node("Split", [y], names, axis=1))
        return names
    numbers = lambda i: [net.given(np.array([k], np.int64)) for k in (i * c, (i + 1) * c, 1)]
    return [net.add("Slice", [y, *numbers(i)]) for i in range(n)]


def shuffled(net, x, c):
    """ShuffleNetV2, of two parts and of three: one goes through convolutions, all are shuffled, again and again; the end of a stage."""
    n, w = net.rng.choice([2, 2, 3]), net.rng.choice([16, 20, 29, 48])
    parts = [net.conv(x, c, w) for _ in range(n)]
    for _ in range(net.rng.choice([1, 2, 3])):
        parts = cut(net, shuffle(net, parts, w), n, w)
        parts[-1] = net.conv(net.depthwise(net.conv(parts[-1], w, w), w, act=False), w, w)
    y = shuffle(net, parts, w)
    a = net.conv(net.depthwise(y, n * w, act=False, stride=2), n * w, w)
    b = net.conv(net.depthwise(net.conv(y, n * w, w), w, act=False, stride=2), w, w)
    net.side = (net.side + 1) // 2
    return net.conv(shuffle(net, [a, b], w), 2 * w, 32)


def joints(net, x, c):
    """U-Net as TensorFlow's exporters write it, values channels-last: what was made smaller and larger again, beside what it was made of.
    Activations stand before the Transposes or behind them."""
    w, size = net.rng.choice([16, 32, 40]), net.side
    first, last = (lambda y, perm=perm: net.add("Transpose", [y], perm=perm) for perm in ([0, 3, 1, 2], [0, 2, 3, 1]))
    early = net.rng.random() < 0.5

    def conv(y, c):
        y = last(net.conv(first(y), c, w, 3, act=early))
        return y if early else net.add("Relu", [y])

    x = conv(last(x), c)
    for _ in range(2):
        y = first(conv(last(net.add("MaxPool", [first(x)], kernel_shape=[2, 2], strides=[2, 2])), w))
        to = net.given(np.array([net.batch, w, size, size], np.int64))
        y = net.add("Resize", [y, "", "", to], mode=net.rng.choice(["nearest", "linear"]))
        x = conv(net.add("Concat", [last(y), x], axis=3), 2 * w)
    return first(x)


def pixels(net, x, c, sizes=((2, 3), (2, 16), (3, 2), (3, 7), (4, 1), (4, 3))):
    """ESPCN and its kin: channels become blocks of pixels, activations and a Concat behind that."""
    b, m = net.rng.choice(sizes)
    parts = []
    many = 16 <= b * b * m <= 64
    for k in (1, 3, 3):
        y = net.conv(net.conv(x, c, 16), 16, b * b * m if k == 3 or many else 16, k, act=net.rng.random() < 0.5)
        if k == 3 or many:
            y = net.add("DepthToSpace", [y], blocksize=b, **({"mode": "CRD"} if net.rng.random() < 0.5 else {}))
            parts.append(net.add(net.rng.choice(["Tanh", "Relu", "Sigmoid"]), [y]) if net.rng.random() < 0.7 else y)
    net.side *= b
    return net.conv(net.add("Concat", parts, axis=1), len(parts) * m, 16, 3) if len(parts) > 1 else parts[0]


def planes(net, x, c):
    """The same for images of one channel each."""
    return pixels(net, x, c, [(4, 1), (5, 1)])


def transposed(net, x, c):
    """U-Net whose smaller images are made larger by ConvTransposes of windows that lie side by side, each beside what it was made of."""
    x, c = net.conv(x, c, 20), 20
    for k in (2, net.rng.choice([2, 3])):
        small = net.conv(net.add("MaxPool", [x], kernel_shape=[k, k], strides=[k, k], pads=[0, 0] + [-net.side % k] * 2), c, c, 3)
        w = [net.given(net.data.standard_normal((c, 20, k, k)).astype(np.float32)), net.given(net.data.standard_normal(20).astype(np.float32))]
        y = net.add("ConvTranspose", [small] + w, strides=[k, k])
        if net.side % k:
            numbers = lambda *k: net.given(np.array(k, np.int64))
            y = net.add("Slice", [y, numbers(0, 0), numbers(net.side, net.side), numbers(2, 3)])
            x = net.conv(net.add("Relu", [net.add("Add", [y, net.conv(x, c, 20)])]), 20, c)
        else:
            y = net.add("Relu", [y]) if net.rng.random() < 0.5 else y
            x = net.conv(net.add("Concat", [y, x], axis=1), 20 + c, c, 3)
    return x


def detector(net, x, c, bare=False):
    """The heads of a detector: for each pixel three boxes, of whose numbers some become places and others sizes (bare: or stay what they are); of
    images of two sizes."""
    side, heads = net.side, []

    def reshape(x, *dims):
        return net.add("Reshape", [x, net.given(np.array(dims, np.int64))])

    for level in range(1 if net.batch > 1 else 2):
        if level:
            x, side = net.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]), side // 2
        y = net.add("Transpose", [reshape(net.conv(x, c, 24, act=False), net.batch, 3, 8, side, side)], perm=[0, 1, 3, 4, 2])
        y = net.add("Sigmoid", [y])
        if bare and net.rng.random() < 0.5:
            cut = [f"{y}_{i}" for i in range(2)]
            net.nodes.append(h.make_node("Split", [y, net.given(np.array([2, 6], np.int64))], cut, axis=-1))
        else:
            cut = [net.add("Slice", [y, *(net.given(np.array([v], np.int64)) for v in (a, b, 4))]) for a, b in ((0, 2), (2, 8))]
        cut[0] = net.add("Mul", [cut[0], net.given(np.float32(2))])
        if not bare:
            cut[1] = net.add("Mul", [cut[1], net.given(net.data.standard_normal(6).astype(np.float32))])
        heads.append(reshape(net.add("Concat", cut, axis=-1), net.batch, 3 * side * side, 8))
    y = net.add("Concat", heads, axis=1) if len(heads) > 1 else heads[0]
    return reshape(y, net.batch, -1, 8, 1)


def classes(net, x, c):
    """The same, of which classes stay what they are."""
    return detector(net, x, c, True)


def share(prog, kind, seed, tmp):
    """Copied bytes of those that all nodes read and write."""
    net = Network(seed)
    n, c, size = net.rng.choice([1, 1, 2]), net.rng.choice([8, 12, 20, 48]), net.rng.choice([7, 12, 14])
    x, net.side, net.batch = net.conv("x", 3, c, 3, stride=2), size, n
    y = kind(net, x, c)
    g = h.make_graph(net.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [n, 3, 2 * size, 2 * size])],
                     [h.make_tensor_value_info(net.add("GlobalAveragePool", [y]), T.FLOAT, None)], net.init)
    model = h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp / "m.onnx")
    for got, want in zip(*test_sink.outputs(prog, model, tmp / "m.onnx", tmp)):
        if got.shape != want.shape or np.abs(got - want).max() > 1e-4 * np.abs(want).max():
            raise common.Differ(f"{kind.__name__}, seed {seed}: onnxruntime gives something else")
    found = common.bench(prog, tmp / "m.onnx")
    return found["copied_bytes"] / found["bytes"]


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=10, help="of each kind")
    args = p.parse_args()
    prog = common.program(args)
    common.need_onednn(prog)
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as tmp:
        for kind in (ghost, dense, cells, padded, pooled, subsampled, halves, shuffled, joints, pixels, planes, transposed, detector, classes):
            shares = [share(prog, kind, seed, Path(tmp)) for seed in range(args.count)]
            print(f"{kind.__name__:8} {100 * max(shares):6.2f} % of the bytes are copied, at most")
            bad = sum(s > 0 for s in shares)
            passed, failed = passed + len(shares) - bad, failed + bad
    return common.closing(passed, failed)


if __name__ == "__main__":
    sys.exit(main())
