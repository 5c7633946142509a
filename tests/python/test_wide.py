#!/usr/bin/env python3
"""Graphs in which many values are in use at a time, as any node may read what was made long before: with two layouts the fewest conversions
are a largest flow (passes/solve_cut.c), which each checker finds by itself.

  test_wide.py [--nodes 200 1200] [--count 3] [--seed 1]

Each must be proved, both checkers must agree, one conversion more must be refused, and the least number must be that of the integer program
where highspy is there: one variable for each op (its layout) and for each (tensor, layout).
"""
import random
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

import common
import test_proof

DIMS = {0: [1, 8, 6, 5], 1: [1, 6, 5, 8]}  # a tensor with channels first, and last
TO = {0: (0, 3, 1, 2), 1: (0, 2, 3, 1)}


class Wide:
    """ops: [(layout or None, the values it reads, the value it makes)], the problem as the integer program has it."""

    def __init__(self, rng, count, window):
        self.nodes, self.ops, self.n = [], [(0, [], 0)], 0
        values = [("x", 0)]
        for _ in range(count):
            layout, fixed = rng.randrange(2), rng.random() < 0.15
            reads = rng.sample(range(max(0, len(values) - window), len(values)), min(1 if fixed else rng.choice([1, 2, 2, 3]), len(values), window))
            tensors = [self.take(values[i], layout) for i in reads]
            kind = ("Conv", "LRN")[layout] if fixed else "Relu" if len(tensors) == 1 else "Sum"
            values.append((self.node(kind, tensors + ["w"] * (kind == "Conv"), **({"size": 3} if kind == "LRN" else {})), layout))
            self.ops.append((layout if fixed else None, reads, len(values) - 1))
        last = range(max(0, len(values) - window), len(values))
        self.result = self.node("Sum", [self.take(values[i], 0) for i in last])
        self.ops += [(None, list(last), len(values)), (0, [len(values)], None)]

    def node(self, kind, inputs, **attributes):
        self.n += 1
        self.nodes.append(h.make_node(kind, inputs, [f"v{self.n}"], **attributes))
        return f"v{self.n}"

    def take(self, value, layout):
        name, made = value
        return name if made == layout else self.node("Transpose", [name], perm=TO[layout])

    def model(self):
        w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 8, 1, 1), np.float32), "w")
        info = lambda name: h.make_tensor_value_info(name, T.FLOAT, DIMS[0])
        return h.make_model(h.make_graph(self.nodes, "wide", [info("x")], [info(self.result)], [w]), opset_imports=[h.make_opsetid("", 17)], ir_version=8)

    def fewest(self, seconds):
        """By HiGHS; None where it is not there or takes longer. With two layouts the relaxation has whole numbers."""
        try:
            import highspy
        except ImportError:
            return None
        s = highspy.Highs()
        s.setOptionValue("output_flag", False)
        s.setOptionValue("time_limit", float(seconds))
        ops, read = [], set()
        for layout, reads, makes in reversed(self.ops):  # of what reaches the result
            if makes is None or makes in read:
                read |= set(reads)
                ops.append((layout, reads, makes))
        of_op = [s.addVariable(0 if layout is None else layout, 1 if layout is None else layout) for layout, _, _ in ops]
        used = {}
        for op, (_, reads, makes) in zip(of_op, ops):
            for v in {*reads, *([] if makes is None else [makes])}:
                first, last = used.setdefault(v, (s.addVariable(0, 1), s.addVariable(0, 1)))
                s.addConstr(first >= 1 - op)
                s.addConstr(last >= op)
        s.minimize(sum(a + b for a, b in used.values()))
        if s.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return round(s.getInfo().objective_function_value) - len(used)


def one_more(words):
    """The same certificate, in all places with a conversion more that has to stay."""
    first, second = re.search(r"^claim (\d+ \d+) \1$", words, re.M), re.search(r"^component \d+ (\d+)", words, re.M)
    n, size = map(int, first[1].split())
    words = words.replace(first[0], f"claim {n} {size} {n + 1} {size}")
    return words[:second.start(1)] + str(int(second[1]) + 1) + words[second.end(1):]


def check(prog, wide):
    """(what is wrong, conversions)"""
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src, out, proof = (Path(tmp) / n for n in ("in.onnx", "out.onnx", "proof.txt"))
        onnx.save(wide.model(), src)
        try:
            why, lost, _, words, _ = test_proof.check_model("wide", prog, src)
        except test_proof.Unproved as e:
            return [f"nothing is proved: {e}"], 0
        n, _, least, _ = test_proof.claim(words)
        wrong = [why] if why else []
        if n != least:
            wrong.append(f"{n} conversions, proved at least {least}")
        if (fewest := wide.fewest(60)) not in (None, n):
            wrong.append(f"{n} conversions, HiGHS has {fewest}")
        r = common.optimize(prog, src, out, "onnx")
        proof.write_text(one_more(words))
        if common.relayout(prog, "check-proof", str(proof), str(src), str(out)).status == 0 or test_proof.accepts(None, one_more(words))[0] is None:
            wrong.append("a bound that is one too high is accepted")
        return wrong + ([r.text] if r.status else []), n


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--nodes", type=int, nargs=2, default=(200, 1200), metavar=("LEAST", "MOST"))
    p.add_argument("--count", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    prog, nfail, rng = common.program(args), 0, random.Random(args.seed)
    for _ in range(args.count):
        wide = Wide(rng, rng.randint(*args.nodes), window := rng.randint(30, 120))
        wrong, n = check(prog, wide)
        print(f"{len(wide.nodes):5} nodes, {window:3} values at a time: {n} conversions, {'; '.join(wrong) or 'ok'}", flush=True)
        nfail += bool(wrong)
    return common.closing(args.count - nfail, nfail)


if __name__ == "__main__":
    sys.exit(main())
