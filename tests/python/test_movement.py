#!/usr/bin/env python3
"""Random chains of nodes that only move data, optimized: bit for bit the same in onnxruntime, never more nodes or bytes.

  test_movement.py [--count N] [--seed FIRST]

A model has one input (rank 1 to 6, sizes 0 and 1 among them, some dims symbolic; integers, floats, bool, strings) and 2 to 8 steps, of
which each moves what came out of an earlier one, mostly the last: Transpose, Reshape and its kin, Slice with steps of either sign,
Gather, pieces of a Split joined in some order, a roll, Expand, Tile, Pad, DepthToSpace, SpaceToDepth, an Einsum that permutes,
ScatterND that overwrites everything.  One in ten stands in the branches of an If, one in ten in a function.  Checked with both targets, and with the movement pass alone, which
may add no node at all (the layout passes' conversions may add views).  Bytes are those that the nodes write which are no views, measured by running both models.
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

TYPES = [TensorProto.FLOAT] * 6 + [TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32,
                                  TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING]
PADDABLE = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL}
LARGE = 4096  # elements that no step goes beyond
OPSET = 17


class Chain:
    def __init__(self, seed):
        self.r = np.random.default_rng(seed)
        self.nodes, self.consts, self.last = [], [], None
        self.dtype = int(self.r.choice(TYPES))
        rank = int(self.r.integers(1, 7))
        self.shape = {"x": tuple(int(d) for d in self.r.choice([0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 12], rank, p=[.01] + [.09] * 11))}
        if np.prod(self.shape["x"]) > LARGE:
            self.shape["x"] = self.shape["x"][:3]
        self.symbolic = [bool(self.r.random() < 0.15) for _ in self.shape["x"]]
        self.last = "x"
        steps = int(self.r.integers(2, 9))
        for _ in range(40):
            if steps == 0:
                break
            steps -= self.step()
        self.outputs = [self.last] + ([str(self.r.choice(self.made()))] if self.made() and self.r.random() < 0.2 else [])
        self.outputs = list(dict.fromkeys(self.outputs))
        self.where = str(self.r.choice(["", "If", "taken", "function"], p=[.8, .05, .05, .1]))
        self.yes = np.array(bool(self.r.integers(0, 2)))

    def made(self):
        return [o for n in self.nodes for o in n.output]

    def const(self, a, dtype=np.int64):
        name = f"c{len(self.consts)}"
        self.consts.append(numpy_helper.from_array(np.asarray(a, dtype), name))
        return name

    def add(self, op, inputs, shape, **attrs):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        self.shape[name] = tuple(int(d) for d in shape)
        self.last = name
        return name

    def step(self):
        """One more movement; False where the op that was drawn does not fit."""
        x = self.last if self.r.random() < 0.9 or not self.nodes else str(self.r.choice(["x", *self.made()]))
        return bool(getattr(self, str(self.r.choice(STEPS)))(x, self.shape[x]))

    def axis(self, s, least=1):
        fits = [i for i, d in enumerate(s) if d >= least]
        return int(self.r.choice(fits)) if fits else None

    def transpose(self, x, s):
        if len(s) < 2:
            return False
        p = [int(i) for i in self.r.permutation(len(s))]
        if self.r.random() < 0.15 and self.dtype == TensorProto.FLOAT:
            letters = "abcdef"[:len(s)]
            return self.add("Einsum", [x], [s[i] for i in p], equation=f"{letters}->{''.join(letters[i] for i in p)}")
        return self.add("Transpose", [x], [s[i] for i in p], perm=p)

    def reshape(self, x, s):
        n = int(np.prod(s))
        if n == 0:
            return False
        dims, left = [], n
        for _ in range(int(self.r.integers(0, 5))):
            d = int(self.r.choice([k for k in range(1, left + 1) if left % k == 0]))
            dims.append(d)
            left //= d
        dims.insert(int(self.r.integers(0, len(dims) + 1)), left)
        return self.add("Reshape", [x, self.const(dims)], dims)

    def split_dim(self, x, s):
        """A Reshape that cuts one dim in two and a Transpose right after it: shuffles and windows."""
        a = self.axis(s, 4)
        if a is None or len(s) > 5:
            return False
        cuts = [k for k in range(2, s[a]) if s[a] % k == 0]
        if not cuts:
            return False
        k = int(self.r.choice(cuts))
        d = [*s[:a], k, s[a] // k, *s[a + 1:]]
        y = self.add("Reshape", [x, self.const(d)], d)
        p = list(range(len(d)))
        p[a], p[a + 1] = a + 1, a
        if self.r.random() < 0.5:
            p = [int(i) for i in self.r.permutation(len(d))]
        return self.add("Transpose", [y], [d[i] for i in p], perm=p)

    def merge_dims(self, x, s):
        if len(s) < 2 or np.prod(s) == 0:
            return False
        a = int(self.r.integers(0, len(s) - 1))
        d = [*s[:a], s[a] * s[a + 1], *s[a + 2:]]
        return self.add("Reshape", [x, self.const(d)], d)

    def squeeze(self, x, s):
        ones = [i for i, d in enumerate(s) if d == 1]
        if ones and self.r.random() < 0.5:
            a = int(self.r.choice(ones))
            return self.add("Squeeze", [x, self.const([a])], s[:a] + s[a + 1:])
        if len(s) > 5:
            return False
        a = int(self.r.integers(0, len(s) + 1))
        return self.add("Unsqueeze", [x, self.const([a])], [*s[:a], 1, *s[a:]])

    def slice(self, x, s):
        a = self.axis(s)
        if a is None:
            return False
        step = int(self.r.choice([1, 1, 2, 3, -1, -1, -2]))
        lo, hi = sorted(int(i) for i in self.r.integers(0, s[a] + 1, 2))
        if self.r.random() < 0.3:
            lo, hi = 0, s[a]
        start, end = (lo, hi) if step > 0 else (hi - 1, lo - 1)
        n = len(range(s[a])[lo:hi:step] if step > 0 else range(lo, hi)[::step])
        if n == 0:
            return False
        end = {True: np.iinfo(np.int64).min + 1, False: end}[step < 0 and end < 0]
        ins = [x, *(self.const([v]) for v in (start, end, a, step))]
        return self.add("Slice", ins, [*s[:a], n, *s[a + 1:]])

    def gather(self, x, s):
        a = self.axis(s)
        if a is None or self.dtype == TensorProto.STRING:  # onnxruntime's Gather copies one string of each run
            return False
        kind = self.r.integers(0, 3)
        index = self.r.permutation(s[a]) if kind < 2 else self.r.integers(-s[a], s[a], int(self.r.integers(1, 6)))
        return self.add("Gather", [x, self.const(index)], [*s[:a], len(index), *s[a + 1:]], axis=a)

    def pieces(self, x, s):
        a = self.axis(s, 2)
        if a is None:
            return False
        k = int(self.r.integers(2, min(4, s[a]) + 1))
        cuts = sorted(int(i) for i in self.r.choice(np.arange(1, s[a]), k - 1, replace=False))
        sizes = np.diff([0, *cuts, s[a]])
        names = [f"p{len(self.nodes)}_{i}" for i in range(k)]
        self.nodes.append(helper.make_node("Split", [x, self.const(sizes)], names, axis=a))
        for name, d in zip(names, sizes):
            self.shape[name] = (*s[:a], int(d), *s[a + 1:])
        order = list(range(k)) if self.r.random() < 0.5 else [int(i) for i in self.r.permutation(k)]
        return self.add("Concat", [names[i] for i in order], s, axis=a)

    def roll(self, x, s):
        a = self.axis(s, 2)
        if a is None:
            return False
        k = int(self.r.integers(1, s[a]))
        part = lambda lo, hi: self.add("Slice", [x, self.const([lo]), self.const([hi]), self.const([a])], [*s[:a], hi - lo, *s[a + 1:]])
        hi = part(k, s[a])
        return self.add("Concat", [hi, part(0, k)], s, axis=a)

    def expand(self, x, s):
        ones = [i for i, d in enumerate(s) if d == 1]
        if not ones:
            return False
        d = list(s)
        d[int(self.r.choice(ones))] = int(self.r.integers(2, 4))
        return np.prod(d) <= LARGE and self.add("Expand", [x, self.const(d)], d)

    def tile(self, x, s):
        rep = [int(i) for i in self.r.choice([1, 1, 1, 2, 3], len(s))]
        d = [a * b for a, b in zip(s, rep)]
        return np.prod(d) <= LARGE and self.add("Tile", [x, self.const(rep)], d)

    def pad(self, x, s):
        a = self.axis(s, 2)
        if a is None or self.dtype not in PADDABLE:
            return False
        before, after = [0] * len(s), [0] * len(s)
        before[a], after[a] = (int(i) for i in self.r.integers(0, s[a], 2))
        d = [n + i + k for n, i, k in zip(s, before, after)]
        return np.prod(d) <= LARGE and self.add("Pad", [x, self.const(before + after)], d, mode=str(self.r.choice(["constant", "edge", "reflect"])))

    def crop(self, x, s):
        """What a Pad added goes again."""
        n = next((n for n in reversed(self.nodes) if n.op_type == "Pad" and n.output[0] == x), None)
        if n is None:
            return False
        pads = numpy_helper.to_array(next(c for c in self.consts if c.name == n.input[1]))
        lo, hi = pads[:len(s)], [d - p for d, p in zip(s, pads[len(s):])]
        return self.add("Slice", [x, self.const(lo), self.const(hi)], [b - a for a, b in zip(lo, hi)])

    def blocks(self, x, s):
        if len(s) != 4 or 0 in s or self.dtype not in (TensorProto.FLOAT, TensorProto.DOUBLE):
            return False
        if s[1] % 4 == 0:
            return self.add("DepthToSpace", [x], [s[0], s[1] // 4, s[2] * 2, s[3] * 2], blocksize=2, mode=str(self.r.choice(["DCR", "CRD"])))
        if s[2] % 2 == 0 and s[3] % 2 == 0:
            return self.add("SpaceToDepth", [x], [s[0], s[1] * 4, s[2] // 2, s[3] // 2], blocksize=2)
        return False

    def scatter(self, x, s):
        if not s or s[0] == 0 or self.dtype == TensorProto.STRING:
            return False
        rows = [[int(i)] for i in self.r.permutation(s[0])]
        zero = self.const(np.zeros(s), helper.tensor_dtype_to_np_dtype(self.dtype))
        return self.add("ScatterND", [zero, self.const(rows), x], s)

    def renamed(self, prefix, consts):
        """The nodes, with what they make (and read of constants, if asked) under another name."""
        mine = set(self.made()) | ({c.name for c in self.consts} if consts else set())
        new = lambda names: [prefix + n if n in mine else n for n in names]
        out = []
        for n in self.nodes:
            out.append(onnx.NodeProto())
            out[-1].CopyFrom(n)
            out[-1].input[:], out[-1].output[:] = new(n.input), new(n.output)
        return out, new(self.outputs)

    def inside(self):
        """The nodes in both branches of an If, whose condition is an input or a constant, or in a function: (nodes of the graph, initializers, functions)."""
        if self.where in ("If", "taken"):
            branch = {}
            for name, prefix in (("then_branch", "a_"), ("else_branch", "b_")):
                nodes, outputs = self.renamed(prefix, False)
                values = [helper.make_tensor_value_info(o, self.dtype, [None] * len(self.shape[was])) for o, was in zip(outputs, self.outputs)]
                branch[name] = helper.make_graph(nodes, name, [], values)
            yes = [numpy_helper.from_array(self.yes, "yes")] if self.where == "taken" else []
            return [helper.make_node("If", ["yes"], self.outputs, **branch)], self.consts + yes, []
        nodes, outputs = self.renamed("f_", True)
        consts = [helper.make_node("Constant", [], ["f_" + c.name], value=c) for c in self.consts]
        f = helper.make_function("acme", "Chain", ["x"], outputs, consts + nodes, [helper.make_opsetid("", OPSET)])
        return [helper.make_node("Chain", ["x"], self.outputs, domain="acme")], [], [f]

    def model(self):
        dims = [f"D{i}" if sym else d for i, (d, sym) in enumerate(zip(self.shape["x"], self.symbolic))]
        value = lambda name: helper.make_tensor_value_info(name, self.dtype, [None] * len(self.shape[name]))
        nodes, consts, functions = self.inside() if self.where else (self.nodes, self.consts, [])
        inputs = [helper.make_tensor_value_info("x", self.dtype, dims)]
        if self.where == "If":
            inputs.append(helper.make_tensor_value_info("yes", TensorProto.BOOL, []))
        g = helper.make_graph(nodes, "chain", inputs, [value(o) for o in self.outputs], consts)
        opsets = [helper.make_opsetid("", OPSET)] + [helper.make_opsetid("acme", 1)] * len(functions)
        return helper.make_model(g, opset_imports=opsets, ir_version=9, functions=functions)

    def input(self):
        n = int(np.prod(self.shape["x"]))
        if self.dtype == TensorProto.STRING:
            a = np.array([f"s{i}" for i in range(n)], dtype=object)
        elif self.dtype == TensorProto.BOOL:
            a = self.r.integers(0, 2, n).astype(bool)
        else:
            a = np.arange(n).astype(helper.tensor_dtype_to_np_dtype(self.dtype))
        return {"x": a.reshape(self.shape["x"])} | ({"yes": self.yes} if self.where == "If" else {})


STEPS = ["transpose", "transpose", "reshape", "split_dim", "merge_dims", "squeeze", "slice", "slice", "gather", "gather", "pieces", "roll", "expand",
         "tile", "pad", "crop", "crop", "blocks", "blocks", "scatter"]


def run(model, inputs):
    """Outputs, and the bytes that nodes write which are no views."""
    names = [o.name for o in model.graph.output]
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    moved = [o for n in model.graph.node if n.op_type not in counting.VIEWS for o in n.output]
    whole.graph.output.extend(helper.make_empty_tensor_value_info(o) for o in moved if o not in names)
    got = dict(zip([o.name for o in whole.graph.output], common.run_ort(whole.SerializeToString(), inputs)))
    return [got[n] for n in names], sum(got[o].nbytes for o in moved)


def judge(seed, prog, tmp):
    """What is wrong, one line each; None where onnxruntime cannot run the chain; nodes before and after."""
    chain = Chain(seed)
    model, inputs = chain.model(), chain.input()
    if len(chain.nodes) < 2:
        return None, (0, 0)
    try:
        want, bytes_before = run(model, inputs)
    except Exception:
        return None, (0, 0)
    src, fail, count = Path(tmp) / "in.onnx", [], (0, 0)
    onnx.save(model, src)
    taken = chain.where == "taken"
    if taken:  # what is written has no If, unless nothing was better
        chain.where = ""
        model = chain.model()
        bytes_before = run(model, inputs)[1]
    for target, *more in (("generic",), ("onnx",), ("generic", "--disable", "lower")):
        out = Path(tmp) / "out.onnx"
        r = common.optimize(prog, src, out, target, *more)
        if r.status != 0:
            fail.append(f"{target}: {r.text}")
            continue
        now = onnx.load(out)
        onnx.checker.check_model(now, full_check=True)
        got, bytes_after = run(now, inputs)
        d = common.compare(want, got, exact=True)
        if not d.ok or not d.bitexact:
            fail.append(f"{target}: {d.why or 'not bit for bit the same'}")
        if taken and out.read_bytes() == src.read_bytes():
            continue
        # A dim that nobody can know to be 1 before the run moves: layouts are chosen before.
        counted = (lambda m: counting.count(m)) if any(chain.symbolic) else (lambda m: counting.count_run(m, inputs))
        moves = lambda m: (lambda c: c.moving + c.nother)(counted(m))
        nodes = (lambda m: sum(n.op_type != "Constant" for n in m.graph.node)) if more else moves
        if nodes(now) > nodes(model):
            fail.append(f"{target}: nodes {nodes(model)} -> {nodes(now)}")
        guessed = chain.where or (not more and any(chain.symbolic))  # in bodies not measured; layouts are chosen for a guess of what is unknown
        if bytes_after > bytes_before and not guessed:
            fail.append(f"{target}: bytes {bytes_before} -> {bytes_after}")
        count = (nodes(model), nodes(now))
    return fail, count


def by_matrices(prog):
    """Products by a constant permutation, which one of them reads itself, the others a copy of it or its Transpose: no more than before."""
    node, p = helper.make_node, np.eye(12, dtype=np.float32)[np.random.default_rng(0).permutation(12)]
    nodes = [node("Identity", ["p"], ["i"]), node("Transpose", ["p"], ["j"]), node("Transpose", ["x"], ["t"]), node("Relu", ["t"], ["r"]),
             node("Transpose", ["r"], ["u"]), *(node("MatMul", ["u", by], [f"y{by}"]) for by in "pij")]
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 12])
    graph = helper.make_graph(nodes, "g", [info("x")], [info(f"y{by}") for by in "pij"], [numpy_helper.from_array(p, "p")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src = Path(tmp) / "in.onnx"
        onnx.save(model, src)
        res = check.rewrite(prog, src, check.facts_of(src, model, [common.random_inputs(model, seed=1)]), "onnx", tmp)
    return res.fail + (["nothing changed"] if res.same else [])


def job(args):
    seed, prog, folder = args
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        try:
            fail, count = judge(seed, prog, tmp)
        except Exception as e:
            fail, count = [f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"], (0, 0)
        if fail:
            folder.mkdir(parents=True, exist_ok=True)
            for f in Path(tmp).glob("*.onnx"):
                (folder / f"{seed}.{f.name}").write_bytes(f.read_bytes())
    return seed, fail, count


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=500)
    p.add_argument("--seed", type=int, default=0, help="the first one")
    args = p.parse_args()
    folder = args.build.resolve() / "movement-failures"
    jobs = [(s, common.program(args), folder) for s in range(args.seed, args.seed + args.count)]
    npass = nfail = nskip = before = after = 0
    for f in by_matrices(common.program(args)):
        print(f"products by permutations: {f}")
        nfail += 1
    for seed, fail, count in common.pooled(job, jobs, args.jobs, 4):
        nskip += fail is None
        npass += fail == []
        nfail += bool(fail)
        before, after = before + count[0], after + count[1]
        for f in fail or []:
            print(f"seed {seed}: {f}", flush=True)
    print(f"nodes {before} -> {after}")
    if nskip > args.count // 10:
        print("too many chains that onnxruntime cannot run: the generator is at fault")
        nfail += 1
    if nfail:
        print(f"failing models are in {folder}")
    return common.closing(npass, nfail, nskip)


if __name__ == "__main__":
    sys.exit(main())
