#!/usr/bin/env python3
"""Gathers and Slices that write their rows in another order: random models, with and without the pass that has them in view.

  test_pick.py [--count N] [--seed FIRST]

A model is one to three blocks of attention, written at random: where the 3 of query, key and value lies, how each of them is taken out (Gather of one
place or of a list, Slice), in which orders and by how many Transposes each gets to where it is multiplied, what stands in between, and what
else is an output.  It is rewritten for the target `onnx` and checked as check.py says; the pass leaves never more Transposes, and in
some models fewer.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import check
import common
import counting

FEWER = 8  # models of which one at least has fewer


class Blocks:
    def __init__(self, seed):
        self.r = np.random.default_rng(seed)
        self.nodes, self.consts, self.outputs = [], [], []
        self.shape = {}
        pick = lambda *x: int(self.r.choice(x))
        self.t, self.b, self.h, self.d = pick(5, 6, 10), pick(1, 2, 3), pick(2, 4), pick(4, 8, 16, 32)
        self.shape["x"] = [self.t, self.b, self.h * self.d]
        y = "x"
        for _ in range(pick(1, 2, 3)):
            y = self.block(y)
        self.outputs = list(dict.fromkeys([y, *self.outputs]))

    def chance(self, p):
        return self.r.random() < p

    def const(self, a):
        name = f"c{len(self.consts)}"
        self.consts.append(numpy_helper.from_array(np.asarray(a), name))
        return name

    def add(self, op, inputs, shape, **attrs):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        self.shape[name] = [int(d) for d in shape]
        if self.chance(0.03):
            self.outputs.append(name)
        return name

    def reshape(self, x, dims):
        return x if self.shape[x] == dims else self.add("Reshape", [x, self.const(np.array(dims))], dims)

    def transpose(self, x, perm):
        return self.add("Transpose", [x], [self.shape[x][p] for p in perm], perm=perm)

    def linear(self, x, n):
        w = self.const(self.r.integers(-1, 2, (self.shape[x][-1], n)).astype(np.float32))
        return self.add("MatMul", [x, w], [*self.shape[x][:-1], n])

    def unary(self, x):
        return self.add(str(self.r.choice(["Relu", "Neg", "Abs"])), [x], self.shape[x]) if self.chance(0.3) else x

    def take(self, x, axis, i):
        """Place i along the axis, which goes."""
        s = self.shape[x]
        gone = s[:axis] + s[axis + 1:]
        if self.chance(0.5):
            return self.add("Gather", [x, self.const(np.array(i))], gone, axis=axis)
        if self.chance(0.5):
            y = self.add("Gather", [x, self.const(np.array([i]))], [*s[:axis], 1, *s[axis + 1:]], axis=axis)
        else:
            y = self.add("Slice", [x, *(self.const(np.array([v])) for v in (i, i + 1, axis))], [*s[:axis], 1, *s[axis + 1:]])
        return self.reshape(y, gone)

    def dims_to(self, x, have, want):
        """Letters of x's dims in another order, by one Transpose or two."""
        if self.chance(0.3):
            mid = [str(c) for c in self.r.permutation(list(have))]
            x, have = self.transpose(x, [have.index(c) for c in mid]), "".join(mid)
            x = self.unary(x)
        return x if have == want else self.transpose(x, [have.index(c) for c in want])

    def block(self, x):
        size = {"t": self.t, "b": self.b, "h": self.h, "d": self.d, "3": 3}
        have = str(self.r.choice(["tb3hd", "tb3hd", "tbh3d"]))
        y = self.reshape(self.unary(self.linear(x, 3 * self.h * self.d)), [size[c] for c in have])
        if self.chance(0.6):
            now = [str(c) for c in self.r.permutation(list(have[:-1]))] + ["d"]
            y, have = self.transpose(y, [have.index(c) for c in now]), "".join(now)
        each = []
        for i in range(3):
            v = self.unary(self.take(y, have.index("3"), i))
            if self.chance(0.2):
                axis = have.replace("3", "").index("t")
                v = self.add("Gather", [v, self.const(self.r.permutation(self.t))], self.shape[v], axis=axis)
            each.append(self.dims_to(v, have.replace("3", ""), "bhdt" if i == 1 else "bhtd"))
        s = self.add("MatMul", each[:2], [self.b, self.h, self.t, self.t])
        y = self.dims_to(self.add("MatMul", [self.unary(s), each[2]], [self.b, self.h, self.t, self.d]), "bhtd", "tbhd")
        y = self.linear(self.reshape(y, [self.t, self.b, self.h * self.d]), self.h * self.d)
        y = self.add("Add", [x, y], self.shape[x]) if self.chance(0.5) else y
        return self.add("Clip", [y, self.const(np.float32(-2)), self.const(np.float32(2))], self.shape[y])

    def model(self):
        info = lambda v: helper.make_tensor_value_info(v, TensorProto.FLOAT, self.shape[v])
        graph = helper.make_graph(self.nodes, "g", [info("x")], [info(v) for v in self.outputs], self.consts)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def input(self):
        return {"x": self.r.integers(-2, 3, self.shape["x"]).astype(np.float32)}


def judge(seed, prog, tmp):
    """What is wrong, one line each; how many Transposes fewer."""
    blocks = Blocks(seed)
    model, inputs = blocks.model(), blocks.input()
    src, without = Path(tmp) / "in.onnx", Path(tmp) / "without.onnx"
    onnx.save(model, src)
    facts = check.facts_of(src, model, [inputs])
    res = check.rewrite(prog, src, facts, "onnx", tmp)
    r = common.optimize(prog, src, without, "onnx", "--disable", "pick")
    if r.status != 0:
        res.fail.append(f"without: {r.text}")
    if res.counts is None or r.status != 0:
        return res.fail, 0
    was = counting.count_run(onnx.load(without), inputs)
    if res.counts.moving > was.moving:
        res.fail.append(f"Transposes {was.moving} without, {res.counts.moving} with")
    return res.fail, was.moving - res.counts.moving


def job(args):
    seed, prog, folder = args
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        try:
            fail, fewer = judge(seed, prog, tmp)
        except Exception as e:
            fail, fewer = [f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"], 0
        if fail:
            folder.mkdir(parents=True, exist_ok=True)
            for f in Path(tmp).glob("*.onnx"):
                (folder / f"{seed}.{f.name}").write_bytes(f.read_bytes())
    return seed, fail, fewer


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=0, help="the first one")
    args = p.parse_args()
    folder = args.build.resolve() / "pick-failures"
    jobs = [(s, common.program(args), folder) for s in range(args.seed, args.seed + args.count)]
    npass = nfail = models = fewer = 0
    for seed, fail, less in common.pooled(job, jobs, args.jobs, 4):
        npass += not fail
        nfail += bool(fail)
        models, fewer = models + (less > 0), fewer + less
        for f in fail:
            print(f"seed {seed}: {f}", flush=True)
    print(f"{fewer} Transposes fewer, in {models} models")
    if models < args.count // FEWER:
        print("so few models show nothing: the generator is at fault, or the pass does nothing")
        nfail += 1
    if nfail:
        print(f"failing models are in {folder}")
    return common.closing(npass, nfail)


if __name__ == "__main__":
    sys.exit(main())
