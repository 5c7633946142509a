#!/usr/bin/env python3
"""Random networks of what the fast kernels join and lay out in their own way: `relayout run --kernels fast` against `--kernels reference`.

  test_fast.py --count 300 --seed 7
  test_fast.py --type float16       the networks in that type (runtime/halves.c): near the reference kernels' outputs, or those in float32

Convolutions of 1 to 3 dims (groups, depthwise, dilation, a Pad before, of slices and for a Concat), DepthToSpace, ConvTranspose (of large weights in a network of its own, the last of 20; the one before has attention with LogSoftmax), products, pools, BatchNormalization,
activations whole and as patterns, chains of pointwise ops with operands that broadcast, from both sides, twice the same, residual Adds, LSTM, GRU
and RNN, Transposes between, attention with masks and biases, Concats, Splits and shuffles of channels; values that two nodes or the caller read. Symbolic sizes half the time. Skipped without oneDNN.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h

import common
import lowered
import netgen

UNARY = {"Relu": {}, "LeakyRelu": {"alpha": 0.1}, "Sigmoid": {}, "HardSigmoid": {"alpha": 0.3}, "HardSwish": {}, "Tanh": {}, "Elu": {"alpha": 0.7},
         "Abs": {}, "Neg": {}, "Exp": {}, "Erf": {}, "Softplus": {}, "Floor": {}, "Ceil": {}, "Round": {}}

# Networks that were wrong once: of what is no number; of a batch of none, whose -1 in a Reshape was 0 here and not there.
KNOWN = [91000000536, 91000003034, 92000000097, 92000001309, 92000003954]


# The unit of a number in [1, 2); what may differ, as a share of an output's largest.
UNIT = {None: 2.0 ** -23, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}
BOUND = {None: 2e-4, "float16": 2e-2, "bfloat16": 1e-1}


class Network(netgen.Builder):
    """Nodes one after the other; `live`: values so far by name, with their shapes."""

    def __init__(self, seed):
        super().__init__(seed)
        self.live = {}

    def const(self, *shape, low=-1.0, high=1.0, dtype=np.float32):
        a = self.data.uniform(low, high, shape).astype(dtype)
        return self.given(a)

    def add(self, op, inputs, shape, **attributes):
        y = super().add(op, inputs, **attributes)
        self.live[y] = shape
        return y

    def unary(self, x):
        op = self.rng.choice(list(UNARY))
        return self.add(op, [x], self.live[x], **UNARY[op])

    def pattern(self, x):
        s, kind = self.live[x], self.rng.choice(["silu", "gelu", "gelu2", "clip", "square", "hard_swish"])
        if kind == "silu":
            return self.add("Mul", [x, self.add("Sigmoid", [x], s)], s)
        if kind == "clip":
            return self.add("Clip", [x, self.given(np.float32(-0.5)), self.given(np.float32(self.rng.choice([0.6, -0.7])))], s)
        if kind == "square":
            if self.rng.random() < 0.5:
                return self.add("Pow", [x, self.given(np.float32(self.rng.choice([2, 2, 3])))], s)
            return self.add("Mul", [x, x], s)
        if kind == "hard_swish":
            limits = [self.given(np.float32(0)), self.given(np.float32(self.rng.choice([6, 6, 5])))]
            six = self.add("Clip", [self.add("Add", [x, self.given(np.float32(3))], s), *limits], s)
            sixth = lambda v: self.add(*self.rng.choice([("Div", [v, self.given(np.float32(6))]), ("Mul", [self.given(np.float32(1 / 6)), v])]), s)
            if self.rng.random() < 0.5:
                return self.add("Mul", [x, sixth(six)], s)
            return sixth(self.add("Mul", [six, x], s))
        e = self.add("Erf", [self.add("Div", [x, self.given(np.float32(2 ** 0.5))], s)], s)
        e = self.add("Add", [e, self.given(np.float32(1))], s)
        half = self.given(np.float32(0.5))
        if kind == "gelu":
            return self.add("Mul", [self.add("Mul", [x, e], s), half], s)
        return self.add("Mul", [self.add("Mul", [x, half], s), e], s)

    def binary(self, x):
        s, op = self.live[x], self.rng.choice(["Add", "Sub", "Mul", "Div"])
        same = [v for v, d in self.live.items() if d == s and v != x]
        form = self.rng.choice(["same", "channel", "scalar", "row", "batch"])
        if form == "same" and same:
            other = self.rng.choice(same)
        elif form == "channel" and len(s) > 2:
            other = self.const(s[1], *[1] * (len(s) - 2), low=0.5, high=1.5)
        elif form == "row":
            other = self.const(s[-1], low=0.5, high=1.5)
        elif form == "batch":
            other = self.const(*[1 if self.rng.random() < 0.5 else d for d in s], low=0.5, high=1.5)
        else:
            other = self.given(np.float32(self.rng.uniform(0.5, 2)))
        if op == "Div" and other in self.live:
            op = "Add"
        swapped = self.rng.random() < 0.3 and not (op == "Div" and x in self.live)
        return self.add(op, [other, x] if swapped else [x, other], s)

    def conv(self, x):
        s, r = self.live[x], self.rng
        rank, c = len(s) - 2, s[1]
        g = r.choice([d for d in (1, 1, 2, 4, c, c) if c % d == 0])
        m = g * r.choice([1, 2, 3, 5] if g < c else [1, 1, 2]) if g > 1 else r.choice([1, 3, 8, 16, 20, 37])
        k, stride, dilation = [r.choice([1, 2, 3, 5] if g == c else [1, 2, 3]) for _ in range(rank)], r.choice([1, 1, 2]), r.choice([1, 1, 2])
        pads = [r.choice([0, 1, 3] if g == c else [0, 1]) for _ in range(2 * rank)]
        if r.random() < 0.3:
            before = [r.choice([0, 1, 2]) for _ in range(2 * rank)]
            amounts = np.array([0, 0] + before[:rank] + [0, 0] + before[rank:], np.int64)
            s = s[:2] + [d + a + b for d, a, b in zip(s[2:], before[:rank], before[rank:])]
            x = self.add("Pad", [x, self.given(amounts)], s)
        out = [(d + pads[i] + pads[rank + i] - (k[i] - 1) * dilation - 1) // stride + 1 for i, d in enumerate(s[2:])]
        if min(out) < 1:
            return x
        bias = [self.const(m)] if r.random() < 0.5 else []
        return self.add("Conv", [x, self.const(m, c // g, *k)] + bias, [s[0], m] + out, group=g, pads=pads, strides=[stride] * rank,
                        dilations=[dilation] * rank, kernel_shape=k)

    def same(self, x):
        """A convolution, whole or depthwise, whose output is as its input."""
        s, r = self.live[x], self.rng
        k, g = r.choice([1, 1, 3, 5]), r.choice([1, s[1]])
        y = self.add("Conv", [x, self.const(s[1], s[1] // g, *[k] * (len(s) - 2)), self.const(s[1])], s, group=g, pads=[k // 2] * 2 * (len(s) - 2))
        y = self.add("Add", [y, r.choice([v for v, d in self.live.items() if list(d) == list(s) and v != y])], s) if r.random() < 0.3 else y
        return self.unary(y) if r.random() < 0.5 else y

    def parts(self, x):
        """Slices of the channels, one of them by convolutions, joined again."""
        s, r = list(self.live[x]), self.rng
        if s[1] < 2:
            return self.same(x)
        cut = r.randrange(1, s[1])
        self.n += 1
        names = [f"v{self.n}a", f"v{self.n}b"]
        self.nodes.append(h.make_node("Split", [x, self.given(np.array([cut, s[1] - cut], np.int64))], names, axis=1))
        for v, c in zip(names, (cut, s[1] - cut)):
            self.live[v] = [s[0], c] + s[2:]
        pieces = [names[0], self.same(self.same(names[1]))]
        r.shuffle(pieces)
        return self.same(self.add("Concat", pieces, s, axis=1))

    def conv_transpose(self, x):
        s, r = self.live[x], self.rng
        rank, c, m, stride = len(s) - 2, s[1], r.choice([1, 4, 9]), r.choice([1, 2])
        if max(s[2:]) > 24:
            return x
        bias = [self.const(m)] if r.random() < 0.5 else []
        return self.add("ConvTranspose", [x, self.const(c, m, *[3] * rank)] + bias, [s[0], m] + [(d - 1) * stride + 1 for d in s[2:]],
                        strides=[stride] * rank, pads=[1] * 2 * rank)

    def pixels(self, x):
        """Channels as blocks of pixels, behind a convolution and before what is done to each element; or blocks by a ConvTranspose; or back."""
        s, r = list(self.live[x]), self.rng
        rank, kind = len(s) - 2, r.choice(["depth", "depth", "depth", "transposed", "transposed", "space"])
        after = lambda y: r.choice([self.unary, self.pattern, self.binary, lambda v: v])(y)
        if kind == "space" and rank == 2 and any(s[2] % b == 0 and s[3] % b == 0 for b in (2, 3, 4)):
            b = next(b for b in (4, 3, 2) if s[2] % b == 0 and s[3] % b == 0)
            return self.add("SpaceToDepth", [x], [s[0], s[1] * b * b, s[2] // b, s[3] // b], blocksize=b)
        if kind == "transposed" or rank != 2:
            block, m = [r.choice([1, 2, 2, 3]) for _ in range(rank)], r.choice([1, 3, 8, 33])
            bias = [self.const(m)] if r.random() < 0.5 else []
            made = [s[0], m] + [d * b for d, b in zip(s[2:], block)]
            y = after(self.add("ConvTranspose", [x, self.const(s[1], m, *block)] + bias, made, strides=block))
            if r.random() < 0.5:
                y = self.add("Concat", r.sample([y, self.unary(y)], 2), [made[0], 2 * m] + made[2:], axis=1)
            return y
        b, k = r.choice([1, 2, 2, 3]), r.choice([1, 3, 3])
        m = b * b * r.choice([1, 2, 3, 7, 16])
        if s[1] < 12:
            x = self.add("Conv", [x, self.const(13, s[1], 1, 1)], [s[0], 13] + s[2:])
        y = self.add("Conv", [x, self.const(m, self.live[x][1], k, k, low=-0.2, high=0.2), self.const(m)], [s[0], m] + s[2:], pads=[k // 2] * 4)
        y = after(y)
        y = self.add("DepthToSpace", [y], [s[0], m // b // b, s[2] * b, s[3] * b], blocksize=b, **({"mode": "CRD"} if r.random() < 0.5 else {}))
        return after(after(y))

    def deep_transposed(self):
        """A ConvTranspose whose weights are larger than a cache, with a bias, what is done with it, or both."""
        r = self.rng
        depth, k, stride = r.choice([(1024, 4, 2), (1024, 4, 4), (512, 8, 2), (256, 8, 8)])
        m, spatial, bias = r.choice([3, 8, 64]), [r.choice([2, 3]), 3], r.random() < 0.7
        self.live["x"] = shape = [r.choice([1, 2]), depth, *spatial]
        made = [shape[0], m] + [(d - 1) * stride + k for d in spatial]
        y = self.add("ConvTranspose", ["x", self.const(depth, m, k, k, low=-0.1, high=0.1)] + ([self.const(m)] if bias else []), made, strides=[stride] * 2)
        if not bias or r.random() < 0.5:
            y = self.add("Add", [y, self.const(*r.choice([[m, 1, 1], made]))], made)
        y = self.unary(y) if r.random() < 0.5 else y
        return self.finished(shape, [y], False)

    def nearly_attention(self):
        """Attention but for the logarithm of its Softmax."""
        b, h, m, d = shape = [self.rng.choice([1, 2]), 2, self.rng.choice([5, 16]), 8]
        self.live["x"] = shape
        scores = self.add("MatMul", ["x", self.add("Transpose", ["x"], [b, h, d, m], perm=[0, 1, 3, 2])], [b, h, m, m])
        y = self.add("MatMul", [self.add("LogSoftmax", [scores], [b, h, m, m], axis=-1), "x"], shape)
        return self.finished(shape, [y], False)

    def normalization(self, x):
        c = self.live[x][1]
        return self.add("BatchNormalization", [x, self.const(c), self.const(c), self.const(c), self.const(c, low=0.3, high=2)], self.live[x])

    def pool(self, x):
        s, rank = self.live[x], len(self.live[x]) - 2
        op = self.rng.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean"])
        if op.startswith("Global") or op == "ReduceMean":
            y = self.add(op, [x], s[:2] + [1] * rank, **({"axes": list(range(2, 2 + rank))} if op == "ReduceMean" else {}))
            return self.add("Mul", [x, y], s)
        if min(s[2:]) < 3:
            return x
        ceil = self.rng.choice([0, 1])
        out = [-(-(d + 2 - 3) // 2) + 1 if ceil else (d + 2 - 3) // 2 + 1 for d in s[2:]]
        out = [o - ((o - 1) * 2 >= d + 1) if ceil else o for o, d in zip(out, s[2:])]
        more = {"count_include_pad": self.rng.choice([0, 1])} if op == "AveragePool" else {}
        return self.add(op, [x], s[:2] + out, kernel_shape=[3] * rank, strides=[2] * rank, pads=[1] * 2 * rank, ceil_mode=ceil, **more)

    def product(self, x):
        s, n = self.live[x], self.rng.choice([1, 5, 16, 33])
        y = self.add("MatMul", [x, self.const(s[-1], n)], s[:-1] + [n])
        return self.add("Add", [y, self.const(n)], s[:-1] + [n]) if self.rng.random() < 0.7 else y

    def attention(self, x):
        s, r = self.live[x], len(self.live[x])
        perm = list(range(r - 2)) + [r - 1, r - 2]
        scaled = self.add("Mul", [x, self.given(np.float32(0.3))], s)
        scores = self.add("MatMul", [scaled, self.add("Transpose", [x], [s[i] for i in perm], perm=perm)], s[:-1] + [s[-2]])
        return self.add("MatMul", [self.add("Softmax", [scores], s[:-1] + [s[-2]], axis=-1), x], s)

    def heads(self, x):
        """Attention of some heads over rows of a rank-3 value: split and merged by Reshape and Transpose."""
        s = self.live[x]
        if len(s) != 3:
            return self.attention(x)
        count = self.rng.choice([d for d in (1, 2, 3, 4) if s[-1] % d == 0])
        width, turned = s[-1] // count, [s[0], count, s[1], s[-1] // count]
        part = []
        for _ in range(3):
            y = self.add("Add", [self.add("MatMul", [x, self.const(s[-1], s[-1])], s), self.const(s[-1])], s)
            y = self.add("Reshape", [y, self.given(np.array([0, s[1], count, width], np.int64))], [*s[:2], count, width])
            part.append(self.add("Transpose", [y], turned, perm=[0, 2, 1, 3]))
        key = self.add("Transpose", [part[1]], [s[0], count, width, s[1]], perm=[0, 1, 3, 2])
        scores = self.add("Softmax", [self.add("MatMul", [part[0], key], [s[0], count, s[1], s[1]])], [s[0], count, s[1], s[1]], axis=-1)
        y = self.add("MatMul", [scores, part[2]], turned)
        if self.rng.random() < 0.3:
            y = self.unary(y)
        y = self.add("Transpose", [y], [*s[:2], count, width], perm=[0, 2, 1, 3])
        return self.add("Reshape", [y, self.given(np.array([0, s[1], -1], np.int64))], s)

    def change(self, scores, shape, read):
        """One thing that exporters do to scores [batch, heads, queries, keys]."""
        r, (b, h, m, n) = self.rng, shape
        kind = r.choice(["bias", "bias", "mask", "keys", "where", "other way", "per head", "windows", "from the left", "number", "live"])
        if kind == "bias":
            return self.add("Add", r.choice([[scores, self.const(1, h, m, n)], [self.const(m, n), scores]]), shape)
        if kind == "mask":
            return self.add("Add", [scores, self.given(np.where(self.data.random((1, 1, m, n)) < 0.7, 0, -1e9).astype(np.float32))], shape)
        if kind == "keys":
            return self.add("Sub", [scores, self.const(1, 1, 1, n)], shape)
        if kind in ("where", "other way"):
            seen = np.tril(np.ones((m, n), bool)) if r.random() < 0.6 else self.data.random(r.choice([(1, h, m, n), (m, 1), (1, 1, 1, n)])) < 0.8
            least = self.given(np.float32(r.choice([-np.inf, -1e9])))
            return self.add("Where", [self.given(seen), scores, least] if kind == "where" else [self.given(~seen), least, scores], shape)
        if kind == "per head":
            return self.add(r.choice(["Mul", "Div"]), [scores, self.const(h, 1, 1, low=0.5, high=2)], shape)
        if kind == "windows":  # what is done to each of the batch
            apart = [1, b, h, m, n]
            y = self.add("Reshape", [scores, self.given(np.array([1, -1, h, m, n], np.int64))], apart)
            y = self.add("Add", [y, self.const(1, b if self.fixed else 1, 1, m, n)], apart)
            y = self.add("Reshape", [y, self.given(np.array([-1, h, m, n], np.int64))], shape)
            return y
        if kind == "from the left":
            return self.add("Sub", [self.const(1, 1, m, 1), scores], shape)
        if kind == "number":
            return self.add(r.choice(["Mul", "Div", "Add"]), [scores, self.given(np.float32(r.choice([0.5, -0.7, 1.5])))], shape)
        y = self.add("MatMul", [read, self.const(self.live[read][-1], n)], [b, h, m, n])  # a bias that depends on the queries
        return self.add("Add", [y, scores], shape)

    def masked(self, x):
        """Attention with scales, biases and masks in the forms in which exporters write them, fewer queries than keys, scores that are read."""
        s, r = self.live[x], self.rng
        if len(s) != 3:
            return self.attention(x)
        b, n, c = s
        h = r.choice([d for d in (1, 2, 3, 4) if c % d == 0])
        m, w, values = (n if r.random() < 0.7 else r.randrange(1, n + 1)), c // h, r.choice([c // h, 1, 17, 40])
        rows = x if m == n else self.add("Slice", [x, self.given(np.array([0], np.int64)), self.given(np.array([m], np.int64)),
                                                   self.given(np.array([1], np.int64))], [b, m, c])
        split = lambda v, k, d, perm, to: self.add("Transpose", [self.add("Reshape", [
            self.add("MatMul", [v, self.const(c, h * d)], [b, k, h * d]), self.given(np.array([0, k, h, d], np.int64))], [b, k, h, d])], to, perm=perm)
        q = split(rows, m, w, [0, 2, 1, 3], [b, h, m, w])
        if r.random() < 0.5:
            k = split(x, n, w, [0, 2, 3, 1], [b, h, w, n])
        else:
            k = self.add("Transpose", [split(x, n, w, [0, 2, 1, 3], [b, h, n, w])], [b, h, w, n], perm=[0, 1, 3, 2])
        v = split(x, n, values, [0, 2, 1, 3], [b, h, n, values])
        read, where = q, r.choice(["q", "k", "both", "product", "divided", "nowhere"])
        scale = lambda y, op="Mul": self.add(op, [y, self.given(np.array(r.choice([0.35, 0.6, [0.4]]), np.float32))], self.live[y])
        if where in ("q", "both"):
            q = scale(q)
        if where in ("k", "both"):
            k = scale(k)
        y = self.add("MatMul", [q, k], [b, h, m, n])
        if where in ("product", "divided"):
            y = scale(y, "Mul" if where == "product" else "Div")
        for _ in range(r.choice([0, 1, 1, 2, 3])):
            y = self.change(y, [b, h, m, n], read)
        if r.random() < 0.15:
            self.unary(y)
        y = self.add("MatMul", [self.add("Softmax", [y], [b, h, m, n], axis=r.choice([-1, 3])), v], [b, h, m, values])
        y = self.add("Transpose", [y], [b, m, h, values], perm=[0, 2, 1, 3])
        return self.add("Reshape", [y, self.given(np.array([0, m, h * values], np.int64))], [b, m, h * values])

    def norms(self, x):
        """Rows by their lengths."""
        s = self.live[x]
        if s[-1] < 4:
            return self.unary(x)
        y = self.add("Clip", [self.add("ReduceL2", [x], s[:-1] + [1], axes=[-1], keepdims=1), self.given(np.float32(0.1))], s[:-1] + [1])
        return self.add("Div", [x, y], s)

    def recurrent(self, x):
        """Of a rank-3 value: as steps, batch, inputs."""
        s, r = self.live[x], self.rng
        if len(s) != 3:
            return self.unary(x)
        op, hidden = r.choice(["LSTM", "GRU", "RNN"]), r.choice([3, 16, 70, 130])
        direction, gates = r.choice(["forward", "reverse", "bidirectional"]), {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
        d = 1 + (direction == "bidirectional")
        weights = [self.const(d, gates * hidden, s[-1], low=-0.3, high=0.3), self.const(d, gates * hidden, hidden, low=-0.1, high=0.1)]
        bias = [self.const(d, 2 * gates * hidden)] if r.random() < 0.7 else []
        more = {"linear_before_reset": r.choice([0, 1])} if op == "GRU" else {"clip": 0.5} if r.random() < 0.2 else {}
        y = self.add(op, [x] + weights + bias, [s[0], d, s[1], hidden], hidden_size=hidden, direction=direction, **more)
        y = self.add("Transpose", [y], [s[0], s[1], d, hidden], perm=[0, 2, 1, 3])
        return self.add("Reshape", [y, self.given(np.array([0, 0, -1], np.int64))], [s[0], s[1], d * hidden])

    def turn(self, x):
        s = self.live[x]
        perm = self.rng.sample(range(1, len(s)), len(s) - 1)
        return self.add("Transpose", [x], [s[0]] + [s[i] for i in perm], perm=[0] + perm)

    def shuffle(self, x):
        """Channels, or another axis, of two or three pieces in turn."""
        r, s = self.rng, list(self.live[x])
        axis = r.choice([1, 1, len(s) - 1])
        count = r.choice([2, 2, 3])
        pieces = [x] + [r.choice([v for v, d in self.live.items() if list(d) == s] + [self.unary(x)]) for _ in range(count - 1)]
        y = self.add("Concat", pieces, s[:axis] + [count * s[axis]] + s[axis + 1:], axis=axis)
        apart = s[:axis] + [count] + s[axis:]
        perm = list(range(len(apart)))
        perm[axis], perm[axis + 1] = axis + 1, axis
        stacked = self.add("Reshape", [y, self.given(np.array([0] + (apart[1:] if r.random() < 0.7 else [-1] + apart[2:]), np.int64))], apart)
        if r.random() < 0.8:
            del self.live[y]
        turned = self.add("Transpose", [stacked], [apart[i] for i in perm], perm=perm)
        y = self.add("Reshape", [turned, self.given(np.array([0] + s[1:axis] + [count * s[axis]] + s[axis + 1:], np.int64))],
                     s[:axis] + [count * s[axis]] + s[axis + 1:])
        if len(s) > 3 or r.random() < 0.8:
            del self.live[stacked], self.live[turned]
        return y

    def blocks(self, x):
        """ShuffleNet's: slices of the channels go on, or through convolutions; all are joined, and most often shuffled, again and again. What is in
        between is read by others or the caller now and then."""
        r, s = self.rng, list(self.live[x])
        if len(s) not in (4, 5):
            return self.same(x)
        groups, c = r.choice([2, 2, 3]), r.choice([4, 16, 20, 34])
        shape, known = [s[0], c] + s[2:], dict(self.live)
        one = lambda v, m: self.add("Conv", [v, self.const(m, self.live[v][1], *[1] * (len(s) - 2), low=-0.3, high=0.3), self.const(m)], [s[0], m] + self.live[v][2:])
        parts = [one(x, c) for _ in range(groups)]
        for _ in range(r.choice([1, 2, 3])):
            y = self.add("Concat", parts, [s[0], groups * c] + s[2:], axis=1)
            if r.random() < 0.9:
                apart, perm = [s[0], groups, c] + s[2:], [0, 2, 1] + list(range(3, len(s) + 1))
                y = self.add("Reshape", [y, self.given(np.array([0, groups, c] + s[2:], np.int64))], apart)
                y = self.add("Transpose", [y], [apart[i] for i in perm], perm=perm)
                y = self.add("Reshape", [y, self.given(np.array([0, groups * c] + s[2:], np.int64))], [s[0], groups * c] + s[2:])
            if r.random() < 0.5:
                self.n += 1
                parts = [f"v{self.n}s{i}" for i in range(groups)]
                self.nodes.append(h.make_node("Split", [y, self.given(np.array([c] * groups, np.int64))], parts, axis=1))
                self.live.update({v: shape for v in parts})
            else:
                ends = lambda i: [self.given(np.array([k], np.int64)) for k in (i * c, (i + 1) * c, 1)]
                parts = [self.add("Slice", [y, *ends(i), self.given(np.array([1], np.int64))], shape) for i in range(groups)]
            parts[-1] = self.same(one(parts[-1], c))
        y = self.add("Concat", r.sample(parts, groups), [s[0], groups * c] + s[2:], axis=1)
        kind = r.choice(["depthwise", "one", "three", "nothing"])
        if kind == "depthwise":
            y = self.add("Conv", [y, self.const(groups * c, 1, *[3] * (len(s) - 2)), self.const(groups * c)], [s[0], groups * c] + [(d + 1) // 2 for d in s[2:]],
                         group=groups * c, pads=[1] * 2 * (len(s) - 2), strides=[2] * (len(s) - 2))
        if kind in ("depthwise", "one"):
            y = one(y, 16)
        elif kind == "three":
            y = self.add("Conv", [y, self.const(16, groups * c, *[3] * (len(s) - 2), low=-0.1, high=0.1)], [s[0], 16] + s[2:], pads=[1] * 2 * (len(s) - 2))
        if r.random() < 0.8:
            self.live = known | {y: self.live[y]}
        else:
            self.live = {v: d for v, d in self.live.items() if len(d) == len(s)}
        return y

    def concat(self, x):
        """Of pieces that were made for it, or of what there is, also twice the same; sometimes again with more, or of views."""
        r, s = self.rng, list(self.live[x])
        axis = r.randrange(1, len(s)) if s[0] == 1 or r.random() < 0.5 else 1
        same = [v for v, d in self.live.items() if list(d) == s]
        pieces = [x]
        for _ in range(r.choice([1, 1, 2])):
            kind = r.choice(["made", "made", "conv", "conv", "live", "const", "turned", "joined"])
            if kind == "conv":
                pieces.append(self.same(r.choice([v for v in pieces if v in self.live])))
            elif kind == "made":
                pieces.append(r.choice([self.unary, self.binary])(r.choice([v for v in pieces if v in self.live])))
            elif kind == "const":
                pieces.append(self.const(*s))
            elif kind == "turned":
                turned = s[:-2] + [s[-1], s[-2]]
                perm = list(range(len(s) - 2)) + [len(s) - 1, len(s) - 2]
                y = self.add("Transpose", [x], turned, perm=perm)
                pieces.append(self.add("Transpose", [self.unary(y)], s, perm=perm))
            elif kind == "joined" and int(np.prod(s[1:])) <= 4000:
                flat = self.given(np.array([0, -1], np.int64))
                y = self.add("Reshape", [self.unary(x), flat], [s[0], int(np.prod(s[1:]))])
                pieces.append(self.add("Reshape", [y, self.given(np.array([0, *s[1:]], np.int64))], s))
                del self.live[y]  # of rank 2
            else:
                pieces.append(r.choice(same))
        r.shuffle(pieces)
        join = lambda parts: self.add("Concat", parts, s[:axis] + [s[axis] * len(parts)] + s[axis + 1:], axis=axis - r.choice([0, len(s)]))
        y = join(pieces)
        if r.random() < 0.4 and np.prod(self.live[y]) < 20000:
            before = self.unary(y) if r.random() < 0.5 else None
            y = join(pieces + [self.unary(x)])
            if before and r.random() < 0.5:
                self.unary(before)
        return y

    def layer_norm(self, x):
        n = self.live[x][-1]
        return self.add("LayerNormalization", [x, self.const(n), self.const(n)], self.live[x])

    def instance_norm(self, x):
        c = self.live[x][1]
        return self.add("InstanceNormalization", [x, self.const(c), self.const(c)], self.live[x])

    def whole_norm(self, x):
        """Of one group, or some, as exporters write GroupNormalization; what is in between is read by others now and then."""
        s, r = list(self.live[x]), self.rng
        g, known = r.choice([d for d in (1, 1, 1, 2, s[1]) if s[1] % d == 0]), dict(self.live)
        flat = [s[0], g, int(np.prod(s[1:])) // g]
        y = self.add("Reshape", [x, self.given(np.array([0, g, -1], np.int64))], flat)
        y = self.add("InstanceNormalization", [y, self.const(g), self.const(g)], flat)
        y = self.add("Reshape", [y, self.given(np.array([0] + s[1:], np.int64))], s)
        y = self.add("Mul", [y, self.const(s[1], *[1] * (len(s) - 2))], s)
        if r.random() < 0.8:
            self.live = known | {y: s}
        return y

    def model(self):
        r = self.rng
        shape = [r.choice([1, 1, 2]), r.choice([1, 3, 4, 8, 16])] + [r.choice([1, 5, 7, 12]) for _ in range(r.choice([1, 2, 2, 2, 3]))]
        tokens = r.random() < 0.2
        if tokens:
            shape = [r.choice([1, 2]), r.choice([1, 16, 49, 50, 65, 130]), r.choice([8, 12, 20, 48])]
        symbolic = r.random() < 0.5
        self.live["x"], self.fixed = shape, not symbolic
        x = "x"
        steps = [self.unary] * 3 + [self.binary] * 4 + [self.pattern] * 2 + [self.conv] * 4 + [self.same, self.parts] + [self.normalization] * 2 + [
            self.conv_transpose, self.pixels, self.pixels, self.pool, self.product, self.product, self.attention, self.heads, self.heads, self.recurrent, self.turn, self.concat, self.concat, self.shuffle, self.blocks, self.layer_norm, self.instance_norm, self.whole_norm, self.masked, self.masked, self.norms]
        if tokens:
            steps = [self.masked] * 3 + [self.heads, self.product, self.layer_norm, self.unary, self.pattern, self.binary, self.norms]
        for _ in range(r.randrange(3, 14)):
            x = r.choice(steps)(x if r.random() < 0.85 else r.choice(list(self.live)))
            if np.prod(self.live[x]) > 40000 or (tokens and len(self.nodes) > 60):
                break
        made = [v for v in self.live if v != "x"]
        outputs = list(dict.fromkeys([x] + r.sample(made, min(len(made), r.choice([0, 0, 1]))))) if x != "x" else made[-1:]
        return self.finished(shape, outputs, symbolic)

    def finished(self, shape, outputs, symbolic):
        declared = h.make_tensor_value_info("x", T.FLOAT, ["N"] + shape[1:] if symbolic else shape)
        g = h.make_graph(self.nodes, "g", [declared], [h.make_tensor_value_info(v, T.FLOAT, None) for v in outputs], self.init)
        return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), shape


class Refused(Exception):
    pass


def outputs(prog, model, x, folder, how):
    """What the model in the folder makes of x."""
    np.save(folder / "x.npy", x)
    p = subprocess.run([prog, "run", folder / "m.onnx", *how, "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "out"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, timeout=60)
    if p.returncode:
        raise Refused(f"{how[1]}: status {p.returncode} {p.stderr.decode()[-200:]}")
    return [np.load(folder / "out" / f"{o.name}.npy").astype(np.float64) for o in model.graph.output]


def run(job):
    """The seed, and what is wrong."""
    seed, prog, device, type_ = job
    net = Network(seed)
    model, shape = {18: net.nearly_attention, 19: net.deep_transposed}.get(seed % 20, net.model)()
    if not model.graph.output:
        return seed, ""
    bound, floats, to = BOUND[type_], model, lowered.TYPES.get(type_)
    if to:
        model = lowered.lowered(model, to)
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        onnx.save(model, tmp / "m.onnx")
        x, threads = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32), ("--threads", str(1 + seed % 2))
        reference = lambda x: outputs(prog, model, x, tmp, ("--kernels", "reference", *threads))
        how = ("--device", device) if device else ("--kernels", "fast", *threads)
        try:
            got = outputs(prog, model, x, tmp, how)
            want = reference(x)
            if to and not all(np.isfinite(y).all() for y in want):  # too large a number for the type: which, hangs on how often it is rounded
                return seed, ""
            wrong = differs(model, got, want, bound) or empty_differs(model, prog, x, tmp, how, reference)
            if wrong and to:  # the fast kernels round less often, and may be nearer to what rounds nothing; nor says it anything where that is far from both
                onnx.save(lowered.rounded(floats, to), tmp / "m.onnx")
                rounded, want = want, reference(x)
                wrong = "" if differs(model, rounded, want, bound) else differs(model, got, want, bound)
            # a network that multiplies the last bit of its input up to such a difference says nothing of the kernels
            return seed, wrong if wrong and not differs(model, reference(x + np.abs(x) * np.float32(UNIT[type_])), want, bound) else ""
        except Refused as e:
            return seed, str(e)


def empty_differs(model, prog, x, folder, how, reference):
    """What is wrong with a batch of none, where the reference kernels take it."""
    if not model.graph.input[0].type.tensor_type.shape.dim[0].dim_param:
        return ""
    try:
        want = reference(x[:0])
    except Refused:
        return ""
    return differs(model, outputs(prog, model, x[:0], folder, how), want)


def differs(model, got, want, bound=BOUND[None]):
    """What of the outputs is not as wanted, else an empty text."""
    for o, a, b in zip(model.graph.output, got, want):
        if a.shape != b.shape:
            return f"{o.name}: {a.shape} and {b.shape}"
        finite = np.isfinite(b)
        pooled = any(n.op_type == "MaxPool" for n in model.graph.node)  # ONNX does not say what the maximum of NaN is
        if not np.array_equal(np.isfinite(a), finite):
            if pooled:
                continue
            return f"{o.name}: not finite in other places"
        scale = np.abs(b[finite]).max(initial=1e-3)
        if not finite.any() or scale > 1e6:
            continue
        if np.abs(a - b)[finite].max() > bound * scale and not any(n.op_type in ("Floor", "Ceil", "Round") for n in model.graph.node):
            return f"{o.name}: differs by {np.abs(a - b)[finite].max() / scale:.2g} of the largest; {[n.op_type for n in model.graph.node]}"
    return ""


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--device", help="this beside the reference kernels: cuda")
    p.add_argument("--type", choices=lowered.TYPES, help="the networks in this type")
    args = p.parse_args()
    prog = common.program(args)
    if not args.device:
        common.need_onednn(prog)
    bad, seeds = [], KNOWN + [args.seed * 100000 + i for i in range(args.count)]
    for seed, wrong in common.pooled(run, [(seed, prog, args.device, args.type) for seed in seeds], args.jobs, 4):
        if wrong:
            bad.append(f"seed {seed}: {wrong}")
    print("\n".join(bad))
    return common.closing(len(seeds) - len(bad), len(bad))


if __name__ == "__main__":
    sys.exit(main())
