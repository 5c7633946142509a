#!/usr/bin/env python3
"""Rows that their maker puts where moves would (runtime/scatter.c): windows of attention, onnxruntime's values, and what is copied.

  test_scatter.py [--count N]

Random blocks as Swin and MaxViT have them: a LayerNormalization or a product with weights, its output cut into windows or grids, perhaps
shifted before by Slices and Concats, and put together again; pixels joined to longer rows; values that others read on the way.  Skipped
without oneDNN.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h

import common
import netgen
import test_sink


class Blocks(netgen.Builder):
    def __init__(self, seed):
        super().__init__(seed)
        self.b, self.c = self.rng.choice([1, 1, 2, 3]), self.rng.choice([16, 20, 33, 48, 64, 100, 160])
        self.windows, self.size = [self.rng.choice([1, 2, 3, 4]) for _ in "hw"], [self.rng.choice([2, 3, 4, 7]) for _ in "hw"]
        self.h, self.w = (k * n for k, n in zip(self.windows, self.size))
        self.more = []

    def ints(self, *k):
        return self.given(np.array(k, np.int64))

    def floats(self, *dims):
        return self.given(self.data.standard_normal(dims).astype(np.float32))

    def reshape(self, x, *dims):
        return self.add("Reshape", [x, self.ints(*dims)])

    def norm(self, x):
        return self.add("LayerNormalization", [x, self.floats(self.c)] + ([self.floats(self.c)] if self.rng.random() < 0.7 else []), axis=-1)

    def product(self, x):
        """With a bias, an activation, or neither."""
        w = self.data.standard_normal((self.c, self.c)) / self.c**0.5
        y = self.add("MatMul", [x, self.given(w.astype(np.float32))])
        y = self.add("Add", [y, self.floats(self.c)]) if self.rng.random() < 0.7 else y
        return self.add("Sigmoid", [y]) if self.rng.random() < 0.3 else y

    def shifted(self, x, by):
        """Rolled along both dims, one after the other."""
        for axis, n, k in ((1, self.h, by), (2, self.w, by)):
            cut = lambda a, b: self.add("Slice", [x, self.ints(a), self.ints(b), self.ints(axis)])
            x = self.add("Concat", [cut(k % n, 2**63 - 1), cut(0, k % n)], axis=axis)
        return x

    def padded(self, x):
        """By nothing."""
        return self.add("Pad", [x, self.ints(*[0] * 8)])

    def doubled(self, x):
        """The first of two lines twice, and the other not at all."""
        y = self.add("Concat", [self.add("Slice", [x, self.ints(0), self.ints(2**63 - 1), self.ints(1), self.ints(2)])] * 2, axis=2)
        return self.add("Abs", [self.reshape(self.add("Transpose", [y], perm=[0, 2, 1, 3]), self.b, -1, self.c)])

    def split(self, x, grid):
        (p, q), (k, m) = self.windows, self.size
        y = self.reshape(x, self.b, *((k, p, m, q) if grid else (p, k, q, m)), self.c)
        y = self.add("Transpose", [y], perm=[0, 2, 4, 1, 3, 5] if grid else [0, 1, 3, 2, 4, 5])
        return self.reshape(y, *self.rng.choice([[-1, k, m, self.c], [self.b * p * q, k * m, self.c]]))

    def joined(self, x, grid):
        (p, q), (k, m) = self.windows, self.size
        y = self.add("Transpose", [self.reshape(x, self.b, p, q, k, m, self.c)], perm=[0, 3, 1, 4, 2, 5] if grid else [0, 1, 3, 2, 4, 5])
        return self.reshape(y, self.b, self.h, self.w, self.c)

    def block(self, x):
        rng = self.rng
        grid, by = rng.random() < 0.4, rng.choice([0, 1, 2]) if min(self.h, self.w) > 2 else 0
        y = self.norm(x)
        if rng.random() < 0.2:
            self.more.append(y)
        y = self.shifted(y, by) if by else y
        y = self.padded(y) if rng.random() < 0.3 else y
        y = self.product(self.split(y, grid))
        if rng.random() < 0.2:
            self.more.append(y)
        y = self.joined(self.product(y), grid)
        y = self.shifted(y, -by) if by else y
        return self.add("Add", [x, y]) if rng.random() < 0.8 else y

    def merged(self, x):
        """Pixels of 2 x 2 as one; where there are none, each line's."""
        if self.h % 2 or self.w % 2:
            return self.reshape(self.add("Transpose", [self.product(x)], perm=[0, 2, 1, 3]), self.b, self.w, self.h * self.c)
        y = self.reshape(self.product(x), self.b, self.h // 2, 2, self.w // 2, 2, self.c)
        return self.reshape(self.add("Transpose", [y], perm=[0, 1, 3, 4, 2, 5]), self.b, -1, 4 * self.c)

    def model(self):
        x = "x"
        for _ in range(self.rng.choice([1, 2])):
            x = self.block(x)
        if self.h % 2 == 0 and self.rng.random() < 0.5:
            x = self.add("Add", [x, self.reshape(self.doubled(self.product(x)), self.b, self.h, self.w, self.c)])
            self.more.append(x)
        outputs = [self.add("Neg", [self.merged(x)])] + [self.add("Abs", [v]) for v in self.more]
        g = h.make_graph(self.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [self.b, self.h, self.w, self.c])],
                         [h.make_tensor_value_info(o, T.FLOAT, None) for o in outputs], self.init)
        return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def check(prog, seed, tmp):
    """Are the outputs right? Bytes that were copied, where nobody reads what is in between."""
    net = Blocks(seed)
    model = net.model()
    onnx.save(model, tmp / "m.onnx")
    right = all(got.shape == want.shape and np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
                for got, want in zip(*test_sink.outputs(prog, model, tmp / "m.onnx", tmp)))
    return right, 0 if net.more else common.bench(prog, tmp / "m.onnx")["copied_bytes"]


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=60, help="models")
    args = p.parse_args()
    prog = common.program(args)
    common.need_onednn(prog)
    passed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(args.count):
            right, copied = check(prog, seed, Path(tmp))
            passed += right and not copied
            if not right or copied:
                print(f"seed {seed}: {'right' if right else 'wrong'}, {copied} bytes copied")
    return common.closing(passed, args.count - passed)


if __name__ == "__main__":
    sys.exit(main())
