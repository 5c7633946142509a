#!/usr/bin/env python3
"""Random small networks with permutations of channels and features between their layers: what is stored in weights is right.

  test_absorb.py [--count N] [--seed FIRST]

Layers: Conv (plain, depthwise, with groups), BatchNormalization, element-wise ops with and without constants along the channels, x * sigmoid(x),
pools, residual sums, then Gemm and MatMul; in some networks weights and data in bytes, of one scale or one for each channel, and QLinearConv.
Permutations: Gather, channel shuffle, Split and Concat in another order, Focus, blocks that half of the channels go by. Data and weights are small integers, so that sums are exact in any order wherever no Sigmoid is met and
results are far below what a float counts to.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import check
import common


class Network:
    def __init__(self, seed):
        self.r = np.random.default_rng([7, seed])
        self.nodes, self.consts, self.of_bytes, self.exact = [], [], [], True
        self.c, self.size, self.now = int(self.r.choice([4, 6, 8, 12])), 8, "x"
        self.bytes = self.r.random() < 0.4
        self.first = (1, self.c, self.size, self.size)
        for _ in range(int(self.r.integers(3, 10))):
            getattr(self, str(self.r.choice(IMAGE + BYTES * self.bytes)))()
        if self.r.random() < 0.5:
            self.head()
        self.outputs = [self.now]
        if self.r.random() < 0.15:
            self.outputs.append(str(self.r.choice([o for n in self.nodes[:-1] for o in n.output if o not in self.of_bytes] or [self.now])))
        self.outputs = list(dict.fromkeys(self.outputs))

    def const(self, shape, low=-2, high=3, dtype=np.float32, values=None):
        name = f"c{len(self.consts)}"
        a = self.r.integers(low, high, shape) if values is None else values
        self.consts.append(numpy_helper.from_array(np.asarray(a, dtype), name))
        return name

    def add(self, op, *inputs, **attrs):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attrs))
        return name

    def scales(self, n):
        """A scale and a zero point for all, or one for each of n."""
        each = () if self.r.random() < 0.5 else (n,)
        return each, [self.const(each, 1, 4), self.const(each, 0, 2, np.int8)]

    def weight(self, *shape):
        if not self.bytes or self.r.random() < 0.3:
            return self.const(shape)
        axis = int(self.r.integers(0, len(shape)))
        each, of = self.scales(shape[axis])
        return self.add("DequantizeLinear", self.const(shape, dtype=np.int8), *of, **({"axis": axis} if each else {}))

    def conv(self, groups=1, out=None):
        out, k = out or int(self.r.choice([4, 6, 8, 12])), int(self.r.choice([1, 3]))
        ins = [self.now, self.weight(out, self.c // groups, k, k)] + ([self.weight(out)] if self.r.random() < 0.5 else [])
        self.now, self.c = self.add("Conv", *ins, group=groups, pads=[k // 2] * 4), out

    def depthwise(self):
        self.conv(self.c, self.c * int(self.r.choice([1, 1, 2])))

    def grouped(self):
        self.conv(2, int(self.r.choice([4, 8])))

    def norm(self):
        self.now = self.add("BatchNormalization", self.now, *(self.const(self.c) for _ in range(3)), self.const(self.c, values=np.ones(self.c)), epsilon=0.0)

    def unary(self):
        self.now = self.add(str(self.r.choice(["Relu", "Neg", "Abs"])), self.now)

    def scale(self):
        shape = [(1, self.c, 1, 1), (self.c, 1, 1), (1, 1, 1), (1,)][int(self.r.integers(0, 4))]
        self.now = self.add(str(self.r.choice(["Add", "Mul"])), self.now, self.const(shape))

    def silu(self):
        self.exact = False
        self.now = self.add("Mul", self.now, self.add("Sigmoid", self.now))

    def residual(self):
        before, c = self.now, self.c
        self.conv(out=c)
        self.now = self.add("Add", self.now, before)

    def quantized(self):
        if self.exact:  # what was rounded another way before would be another byte
            each, of = self.scales(self.c)
            at = {"axis": 1} if each else {}
            self.of_bytes.append(self.add("QuantizeLinear", self.now, *of, **at))
            self.now = self.add("DequantizeLinear", self.of_bytes[-1], *of, **at)

    def qlinear(self):
        if not self.exact:
            return
        of = [self.const((), 1, 4), self.const((), 0, 2, np.int8)]
        out = int(self.r.choice([4, 6, 8, 12]))
        rows = [self.const(each, 1, 3) if i == 0 else self.const(each, 0, 1, np.int8) for each in [() if self.r.random() < 0.5 else (out,)] for i in range(2)]
        bias = [self.const(out, dtype=np.int32)] if self.r.random() < 0.5 else []
        self.of_bytes.append(self.add("QuantizeLinear", self.now, *of))
        if self.r.random() < 0.5:
            self.of_bytes.append(self.permuted(self.of_bytes[-1]))
        self.of_bytes.append(self.add("QLinearConv", self.of_bytes[-1], *of, self.const((out, self.c, 1, 1), dtype=np.int8), *rows, *of, *bias))
        self.now, self.c = self.add("DequantizeLinear", self.of_bytes[-1], *of), out

    def pool(self):
        self.now = self.add("MaxPool", self.now, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def permuted(self, x):
        return self.add("Gather", x, self.const(0, dtype=np.int64, values=self.r.permutation(self.c)), axis=1)

    def gather(self):
        self.now = self.permuted(self.now)

    def shuffle(self):
        ints = lambda *d: self.const(0, dtype=np.int64, values=d)
        g = int(self.r.choice([k for k in (2, 3, 4) if self.c % k == 0]))
        a = self.add("Reshape", self.now, ints(1, g, self.c // g, self.size, self.size))
        self.now = self.add("Reshape", self.add("Transpose", a, perm=[0, 2, 1, 3, 4]), ints(1, self.c, self.size, self.size))

    def swap(self):
        a = int(self.r.integers(1, self.c))
        parts = [f"p{len(self.nodes)}_{i}" for i in range(2)]
        self.nodes.append(helper.make_node("Split", [self.now, self.const(0, dtype=np.int64, values=[a, self.c - a])], parts, axis=1))
        self.now = self.add("Concat", *reversed(parts), axis=1)

    def unit(self):
        """A block as in ShuffleNetV2: half of the channels goes by, both halves are shuffled together; some pieces are read elsewhere too."""
        if self.c % 4:
            return
        half = self.c // 2
        near, far = (f"u{len(self.nodes)}_{i}" for i in range(2))
        self.nodes.append(helper.make_node("Split", [self.now, self.const(0, dtype=np.int64, values=[half, half])], [near, far], axis=1))
        self.now, self.c = far, half
        for _ in range(int(self.r.integers(1, 3))):
            getattr(self, str(self.r.choice(["conv", "conv", "depthwise", "grouped", "unary", "norm"])))()
        self.conv(out=half)
        self.unary()
        self.now, self.c = self.add("Concat", *self.r.permutation([near, self.now]), axis=1), 2 * half
        if self.r.random() < 0.8:
            self.shuffle()

    def units(self):
        for _ in range(int(self.r.integers(2, 5))):
            self.unit()

    def focus(self):
        if self.size < 4 or self.c > 8:
            return
        ints = lambda *d: self.const(0, dtype=np.int64, values=d)
        cut = lambda h, w: self.add("Slice", self.now, ints(h, w), ints(99, 99), ints(2, 3), ints(2, 2))
        order = [(0, 0), (1, 0), (0, 1), (1, 1)] if self.r.random() < 0.6 else [(int(k) // 2, int(k) % 2) for k in self.r.permutation(4)]
        self.now = self.add("Concat", *[cut(*o) for o in order], axis=1)
        self.c, self.size = 4 * self.c, self.size // 2

    def head(self):
        self.now = self.add("Flatten", self.add("GlobalMaxPool", self.now))
        for _ in range(int(self.r.integers(1, 4))):
            if self.r.random() < 0.6:
                self.gather()
            n, flip = int(self.r.choice([3, 5, 6])), bool(self.r.random() < 0.5)
            if self.r.random() < 0.5:
                self.now = self.add("MatMul", self.now, self.weight(self.c, n))
            else:
                bias = [self.const((n,) if self.r.random() < 0.5 else (1, n))] if self.r.random() < 0.6 else []
                self.now = self.add("Gemm", self.now, self.weight(*((n, self.c) if flip else (self.c, n))), *bias, transB=int(flip))
            self.c = n
            if self.r.random() < 0.5:
                self.now = self.add("Relu", self.now)

    def model(self):
        value = lambda n, shape: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
        g = helper.make_graph(self.nodes, "network", [value("x", self.first)], [value(o, None) for o in self.outputs], self.consts)
        return helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


IMAGE = ["conv", "conv", "depthwise", "grouped", "norm", "unary", "scale", "silu", "residual", "pool", "gather", "gather", "shuffle", "shuffle", "swap", "units", "focus"]
BYTES = ["quantized", "qlinear"]


def job(args):
    seed, prog, folder = args
    net = Network(seed)
    model, fail, counts = net.model(), [], (0, 0)
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src = Path(tmp) / "in.onnx"
        try:
            onnx.save(model, src)
            facts = check.facts_of(src, model, [common.random_inputs(model, seed=seed, integers=True)])
            exact = net.exact and all(np.abs(o).max(initial=0) < 2 ** 20 for o in facts.outputs[0])
            for target in ("onnx", "generic"):
                res = check.rewrite(prog, src, facts, target, tmp, trade=True, compare=lambda k, got: common.compare(facts.outputs[k], got, exact))
                fail += [f"{target}: {f}" for f in res.fail]
                counts = (facts.counts.moving + facts.counts.nother, res.counts.moving + res.counts.nother if res.counts else 0)
        except Exception as e:
            fail.append(f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}")
        if fail:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{seed}.onnx").write_bytes(src.read_bytes())
    return seed, fail, counts


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=150)
    p.add_argument("--seed", type=int, default=0, help="the first one")
    args = p.parse_args()
    folder = args.build.resolve() / "absorb-failures"
    jobs = [(s, common.program(args), folder) for s in range(args.seed, args.seed + args.count)]
    nfail = before = after = 0
    for seed, fail, counts in common.pooled(job, jobs, args.jobs, 4):
        nfail += bool(fail)
        before, after = before + counts[0], after + counts[1]
        for f in fail:
            print(f"seed {seed}: {f}", flush=True)
    print(f"nodes that move data {before} -> {after}")
    if nfail:
        print(f"failing models are in {folder}")
    return common.closing(len(jobs) - nfail, nfail)


if __name__ == "__main__":
    sys.exit(main())
