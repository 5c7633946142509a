#!/usr/bin/env python3
"""Chains of Reshapes and Transposes, which fast kernels take as one step (runtime/turns.c): the values of NumPy, and one move at most.

  test_turns.py [--count N]

Random chains of several types, of tensors as the caller gives them, transposed, sliced, and channels-last as a convolution makes them;
MobileViT's unfolding and folding, of which the bytes that are copied are counted.  Pads, Reshapes and Slices in a row (runtime/shear.c): nothing
is copied where they only shift rows.  Skipped without oneDNN.
"""
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

import common

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import RelayoutBackend

TYPES = {T.FLOAT: np.float32, T.INT8: np.int8, T.INT64: np.int64, T.BOOL: np.bool_}


def factors(rng, n):
    """A random way to write n as a product."""
    dims = []
    while n > 1:
        d = rng.choice([d for d in range(2, n + 1) if n % d == 0][:4] + [n])
        dims.append(d)
        n //= d
    for _ in range(rng.choice([0, 0, 1, 2])):
        dims.insert(rng.randrange(len(dims) + 1), 1)
    return rng.sample(dims, len(dims))


class Chains:
    def __init__(self, seed):
        self.rng, self.data = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.init, self.inputs, self.outputs, self.given, self.want = [], [], [], [], [], []

    def constant(self, a):
        self.init.append(numpy_helper.from_array(np.asarray(a), f"c{len(self.init)}"))
        return self.init[-1].name

    def add(self, op, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(h.make_node(op, inputs, [name], **attributes))
        return name

    def start(self):
        """An input, or what some op makes of it, in several orders of memory."""
        rng, kind = self.rng, self.rng.choice(["plain", "turned", "sliced", "conv"])
        t = T.FLOAT if kind == "conv" else rng.choice(list(TYPES))
        shape = [1, rng.choice([4, 6, 16]), rng.choice([2, 4, 6]), rng.choice([4, 8])] if kind == "conv" else rng.choices([1, 2, 3, 4, 6], k=rng.choice([2, 3, 4]))
        x = self.data.integers(-9, 9, shape).astype(TYPES[t])
        name = f"x{len(self.inputs)}"
        self.inputs.append(h.make_tensor_value_info(name, t, shape))
        self.given.append(x)
        if kind == "turned":
            perm = rng.sample(range(x.ndim), x.ndim)
            return self.add("Transpose", [name], perm=perm), x.transpose(perm)
        if kind == "sliced":
            axis = rng.randrange(x.ndim)
            cut = [np.array([v], np.int64) for v in (-1, -99, axis, -1)] if rng.random() < 0.5 else [np.array([v], np.int64) for v in (0, 99, axis, 2)]
            step = int(cut[3][0])
            y = np.flip(x, axis) if step < 0 else x.take(range(0, x.shape[axis], 2), axis)
            return self.add("Slice", [name, *map(self.constant, cut)]), y
        if kind == "conv":
            w = self.data.integers(-2, 2, (x.shape[1], x.shape[1], 1, 1)).astype(np.float32)
            return self.add("Conv", [name, self.constant(w)]), np.einsum("nchw,mc->nmhw", x, w[:, :, 0, 0])
        return name, x

    def chain(self):
        name, x = self.start()
        for _ in range(self.rng.randint(2, 6)):
            if self.rng.random() < 0.5:
                perm = self.rng.sample(range(x.ndim), x.ndim)
                given = {} if perm == list(range(x.ndim))[::-1] else {"perm": perm}
                name, x = self.add("Transpose", [name], **given), x.transpose(perm)
                continue
            dims = factors(self.rng, x.size)
            said = np.array(dims, np.int64)
            if dims and self.rng.random() < 0.3:
                said[self.rng.randrange(len(dims))] = -1
            elif dims and x.ndim and dims[0] == x.shape[0]:
                said[0] = 0
            name, x = self.add("Reshape", [name, self.constant(said)]), x.reshape(dims)
        self.outputs.append(h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(x.dtype), list(x.shape)))
        self.want.append(x)

    def model(self):
        g = h.make_graph(self.nodes, "g", self.inputs, self.outputs, self.init)
        return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def random_chains(prog, seed):
    c = Chains(seed)
    for _ in range(30):
        c.chain()
    got = RelayoutBackend.prepare(c.model(), program=prog, limit=60).run(c.given)
    return all(np.array_equal(a, b) for a, b in zip(got, c.want))


def copied_bytes(prog, model):
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "m.onnx"
        onnx.save(model, path)
        return common.bench(prog, path)["copied_bytes"]


def fold(prog, n, ch, side):
    """Copied bytes of a tensor's between two convolutions around images that are cut into 2 x 2 blocks, normalized, and put together."""
    c = Chains(0)
    half = side // 2
    c.inputs, c.given = [h.make_tensor_value_info("x", T.FLOAT, [n, ch, side, side])], [c.data.standard_normal((n, ch, side, side)).astype(np.float32)]

    def reshape(x, *dims):
        return c.add("Reshape", [x, c.constant(np.array(dims, np.int64))])

    def conv(x):
        return c.add("Conv", [x, c.constant(c.data.standard_normal((ch, ch, 1, 1)).astype(np.float32))])

    y = reshape(conv("x"), n * ch * half, 2, half, 2)
    y = reshape(c.add("Transpose", [y], perm=[0, 2, 1, 3]), n, ch, half * half, 4)
    y = reshape(c.add("Transpose", [y], perm=[0, 3, 2, 1]), n * 4, half * half, ch)
    y = c.add("LayerNormalization", [y, c.constant(np.ones(ch, np.float32))])
    y = c.add("Transpose", [reshape(y, n, 4, half * half, ch)], perm=[0, 3, 2, 1])
    y = c.add("Transpose", [reshape(y, n * ch * half, half, 2, 2)], perm=[0, 2, 1, 3])
    y = conv(reshape(y, n, ch, side, side))
    c.outputs = [h.make_tensor_value_info(y, T.FLOAT, [n, ch, side, side])]
    want = RelayoutBackend.prepare(c.model(), program=prog, limit=60, options=("--kernels", "reference")).run(c.given)[0]
    got = RelayoutBackend.prepare(c.model(), program=prog, limit=60).run(c.given)[0]
    return copied_bytes(prog, c.model()) / c.given[0].nbytes, np.abs(got - want).max() < 1e-4 * np.abs(want).max()


def shear(prog, b, rows, w, value=0.0, keep=None):
    """Bytes copied by a shift of row i by i, as BoTNet's relative positions are written; `keep` columns of what there is then (w: no pads)."""
    c, keep = Chains(b), keep or w
    dim = 2 * w - 1
    c.inputs, c.given = [h.make_tensor_value_info("x", T.FLOAT, [b, rows, dim])], [c.data.standard_normal((b, rows, dim)).astype(np.float32)]
    fill = c.constant(np.float32(value))

    def pad(x, *by):
        return c.add("Pad", [x, c.constant(np.array(by, np.int64)), fill])

    def cut(x, axis, start, end):
        return c.add("Slice", [x, *(c.constant(np.array([v], np.int64)) for v in (start, end, axis))])

    y = c.add("Flatten", [pad(c.add("Neg", ["x"]), 0, 0, 0, 0, 0, 1)], axis=1)
    y = c.add("Reshape", [pad(y, 0, 0, 0, dim - rows), c.constant(np.array([-1, rows + 1, dim], np.int64))])
    y = c.add("Abs", [cut(cut(y, 1, 0, rows), 2, w - 1, w - 1 + keep)])
    c.outputs = [h.make_tensor_value_info(y, T.FLOAT, [b, rows, keep])]
    padded = np.pad(-c.given[0], ((0, 0), (0, 0), (0, 1)), constant_values=value).reshape(b, -1)
    want = np.pad(padded, ((0, 0), (0, dim - rows)), constant_values=value).reshape(b, rows + 1, dim)[:, :rows, w - 1:w - 1 + keep]
    got = RelayoutBackend.prepare(c.model(), program=prog, limit=60).run(c.given)[0]
    return copied_bytes(prog, c.model()), np.array_equal(got, np.abs(want))


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=20, help="models, of 30 chains each")
    args = p.parse_args()
    prog = common.program(args)
    common.need_onednn(prog)
    results = {f"random chains, seed {seed}": random_chains(prog, seed) for seed in range(args.count)}
    for n, ch, side in ((1, 48, 16), (1, 8, 6), (2, 20, 8)):
        copied, same = fold(prog, n, ch, side)
        results[f"fold {n} x {ch} x {side}: {copied:.2f} of 1 copied, same: {same}"] = same and copied <= 1
    for b, rows, w, value, keep in ((8, 4, 4, 0.0, 4), (3, 5, 7, 0.0, 3), (4, 4, 4, 2.5, 4), (2, 6, 5, 0.0, 5)):
        copied, same = shear(prog, b, rows, w, value, keep)
        good = same and (copied == 0 or value != 0 or rows > w)
        results[f"shift of {rows} rows of {2 * w - 1}, {keep} kept, pads of {value}: {copied} bytes copied, same: {same}"] = good
    print("\n".join(name for name, good in results.items() if not good))
    return common.closing(sum(results.values()), len(results) - sum(results.values()))


if __name__ == "__main__":
    sys.exit(main())
