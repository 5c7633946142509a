#!/usr/bin/env python3
"""Compares the solver with HiGHS on random structured problems.

  test_solve.py [--count 200] [--seed 1] [--ops 10 200] [--solver PROGRAM]

A problem is a graph of ops like a network's: chains, stars, diamonds, residuals, concatenations, broadcasts, splits that
merge, matrix products. Each value has 2-8 orders; every pin sees them through a relabelling of its own, as behind a Transpose. Beside these,
wide problems, one for ten: two orders, hundreds of ops and dozens of values in use at a time. These must be proved.
HiGHS gets the integer program of the definition: one 0-1 variable per (op, configuration) and per (value, order). Without
--solver, the program is compiled from tests/unit/solve_cli.c; it is also compiled with a cap of 2 states, which takes small
problems through every stage, and must agree. Skips without highspy.
"""
import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Problem:
    def __init__(self):
        self.values = []  # (weight, number of orders)
        self.ops = []     # (pins, configurations as (cost, orders))
        self.slack = 0

    def value(self, weight, norder):
        self.values.append((weight, norder))
        return len(self.values) - 1

    def op(self, pins, configs):
        self.ops.append((list(pins), [(c, tuple(o)) for c, o in configs]))

    def text(self, seconds, start=None):
        lines = [f"{len(self.values)} {len(self.ops)} {seconds} {self.slack} {int(start is not None)}"]
        lines += [f"{w} {n}" for w, n in self.values]
        for pins, configs in self.ops:
            lines.append(f"{len(pins)} {len(configs)} " + " ".join(map(str, pins)))
            lines += [f"{c} " + " ".join(map(str, o)) for c, o in configs]
        if start is not None:
            lines.append(" ".join(map(str, start)))
        return "\n".join(lines) + "\n"

    def cost(self, chosen):
        used = [set() for _ in self.values]
        total = 0
        for (pins, configs), c in zip(self.ops, chosen):
            total += configs[c][0]
            for v, o in zip(pins, configs[c][1]):
                used[v].add(o)
        return total + sum(w * max(len(u) - 1, 0) for (w, _), u in zip(self.values, used))


def with_ties(p, rng):
    """The same, dearer where it fits, and with what only decides among equals: less than the slack in all. Returns how much dearer, too."""
    dearer = 1 << (4 * len(p.ops)).bit_length()
    if dearer * (sum(w * n for w, n in p.values) + sum(max(c for c, _ in configs) for _, configs in p.ops)) >> 60:
        return p, 1
    q = Problem()
    q.values = [(w * dearer, n) for w, n in p.values]
    q.ops = [(pins, [(c * dearer + rng.randint(0, 1), o) for c, o in configs]) for pins, configs in p.ops]
    q.slack = dearer // 2
    return q, dearer


# ------------------------------------------------------------------------------------------------------ random problems

def random_problem(rng, nop):
    """Grows a graph op by op; `window` says how far back an op may reach, so how many values are in use at a time."""
    p = Problem()
    norder = rng.randint(2, 8)
    weights = rng.choice(["one", "few", "bytes", "lexicographic", "some zero"])
    twist = rng.choice([0.1, 0.5, 1])      # how often a pin relabels
    fixed = rng.choice([0.05, 0.2, 0.4])   # how often an op has one configuration
    window = rng.choice([2, 4, 8])
    charged = rng.choice([0, 0, 0.3])      # how often a configuration costs something

    def weight():
        bulk = rng.choice([1, 4, 16, 49, 196]) * 64
        return {"one": 1, "few": rng.randint(1, 4), "bytes": bulk, "lexicographic": (1 << 40) + bulk,
                "some zero": rng.randint(0, 2)}[weights]

    def new():
        return p.value(weight(), norder)

    def frame():
        f = list(range(norder))
        if rng.random() < twist:
            rng.shuffle(f)
        return f

    def cost():
        return rng.choice([1, weight()]) if rng.random() < charged else 0

    def flexible(pins, orders=None):
        frames = [frame() for _ in pins]
        p.op(pins, [(cost(), [f[o] for f in frames]) for o in orders or range(norder)])

    def only(pins):
        p.op(pins, [(0, [rng.randrange(norder) for _ in pins])])

    live = [new()]

    def pick():
        return rng.choice(live[-window:])

    def product(a, b, out):  # rows, columns and the inner dim each in one of a few orders
        fa, fb, fo = frame(), frame(), frame()
        half = max(norder // 2, 1)
        configs = [(cost(), (fa[(m * half + k) % norder], fb[(k * half + n) % norder], fo[(m + n * half) % norder]))
                   for m, k, n in itertools.product(range(min(3, norder)), repeat=3)]
        p.op([a, b, out], configs)

    while len(p.ops) < nop:
        kind = rng.choice(["unary", "unary", "residual", "concat", "star", "diamond", "broadcast", "product", "table"])
        if rng.random() < fixed:
            kind = "fixed"
        if kind == "fixed":
            x, y = pick(), new()
            only([x, y])
            live.append(y)
        elif kind == "unary":
            x, y = pick(), new()
            flexible([x, y])
            live.append(y)
        elif kind == "residual":
            x = y = pick()
            for _ in range(rng.randint(1, 3)):
                y, z = new(), y
                only([z, y]) if rng.random() < fixed else flexible([z, y])
            out = new()
            flexible([x, y, out])
            live.append(out)
        elif kind == "concat":
            out = new()
            flexible([pick() for _ in range(rng.randint(2, 4))] + [out], rng.sample(range(norder), rng.randint(1, norder)))
            live.append(out)
        elif kind == "star":
            x = pick()
            for _ in range(rng.randint(2, 5)):
                y = new()
                flexible([x, y])
                live.append(y)
        elif kind == "diamond":
            x, a, b, out = pick(), new(), new(), new()
            flexible([x, a])
            flexible([x, b], rng.sample(range(norder), rng.randint(1, norder)))
            flexible([a, b, out])
            live.append(out)
        elif kind == "broadcast":  # the small operand keeps half of the order
            x, small, out = pick(), pick(), new()
            fx, fs, fo = frame(), frame(), frame()
            p.op([x, small, out], [(cost(), (fx[o], fs[o // 2], fo[o])) for o in range(norder)])
            live.append(out)
        elif kind == "product":
            out = new()
            product(pick(), pick(), out)
            live.append(out)
        else:
            out, x = new(), pick()
            p.op([x, out, x][:rng.randint(2, 3)], [(cost(), [rng.randrange(norder) for _ in range(3)]) for _ in range(rng.randint(1, 9))])
            p.ops[-1] = (p.ops[-1][0], [(c, o[:len(p.ops[-1][0])]) for c, o in p.ops[-1][1]])
            live.append(out)
    for v in live[-rng.randint(1, 3):]:
        only([v])
    return p


def wide_problem(rng):
    """Two orders, which some ops fix and the others pass on; any op may reach far back, so that many values are in use at a time."""
    p = Problem()
    nop, window, fixed = rng.randint(200, 900), rng.randint(20, 90), rng.choice([0.05, 0.1, 0.3])
    lexicographic = rng.random() < 0.5
    charged = 0 if lexicographic else rng.choice([0, 0.3])
    named = []  # which number each value has for the first of the two orders

    def new():
        named.append(rng.randrange(2))
        return p.value((lexicographic << 40) + rng.randint(1, 64) * 64, 2)

    def add(pins, orders):
        p.op(pins, [(rng.randint(1, 64) if rng.random() < charged else 0, [o ^ named[v] for v in pins]) for o in orders])

    live = [new() for _ in range(3)]
    for v in live:
        add([v], [rng.randrange(2)])
    for _ in range(nop):
        pins = rng.sample(live[-window:], min(len(live[-window:]), rng.choice([1, 1, 2, 2, 3])))
        live.append(new())
        add(pins + [live[-1]], [rng.randrange(2)] if rng.random() < fixed else rng.sample([0, 1], 2))
    add([live[-1]], [rng.randrange(2)])
    return p


# --------------------------------------------------------------------------------------------------------------- HiGHS

def highs_optimum(p, limit):
    """The least cost by integer programming, or None when the time did not suffice. Lexicographic weights are solved on
    small numbers: counts first and bytes second, as 2^40 would drown in double precision."""
    import highspy
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("time_limit", float(limit))
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 1e-6)
    h.setOptionValue("mip_feasibility_tolerance", 1e-9)
    inf = highspy.kHighsInf
    scale = 1 << 20
    small = lambda w: (w >> 40) * scale + (w & ((1 << 40) - 1)) // 64 if w >> 39 else w
    used = {}
    lexicographic = any(w >> 39 for w, _ in p.values)
    weigh = small if lexicographic else (lambda w: w)
    col = 0
    base = 0
    rows = []
    for pins, configs in p.ops:
        first = col
        by = {}
        for c, (cost, orders) in enumerate(configs):
            h.addVar(0, 1)
            h.changeColCost(col, weigh(cost))
            for key in set(zip(pins, orders)):
                by.setdefault(key, []).append(col)
            col += 1
        rows.append((1, 1, list(range(first, col)), [1.0] * (col - first)))
        for key, columns in by.items():
            used.setdefault(key, []).append(columns)
    integral = list(range(col))
    touched = {v for pins, _ in p.ops for v in pins}
    for (v, o), lists in used.items():
        h.addVar(0, 1)
        h.changeColCost(col, weigh(p.values[v][0]))
        for columns in lists:
            rows.append((0, inf, [col] + columns, [1.0] + [-1.0] * len(columns)))
        col += 1
    base = sum(weigh(p.values[v][0]) for v in touched)
    for lo, hi, index, value in rows:
        h.addRow(lo, hi, len(index), index, value)
    for c in integral:
        h.changeColIntegrality(c, highspy.HighsVarType.kInteger)
    h.run()
    if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    x = h.getSolution().col_value
    at, chosen = 0, []
    for _, configs in p.ops:
        chosen.append(max(range(len(configs)), key=lambda c: x[at + c]))
        at += len(configs)
    return p.cost(chosen)


# -------------------------------------------------------------------------------------------------------------- running

def compile_solver(folder, cap=None):
    """cap: states that the solver's first runs keep; a low one sends small problems through all of its stages."""
    out = Path(folder) / f"solve_cli{cap or ''}"
    sources = [ROOT / "tests/unit/solve_cli.c", ROOT / "src/base.c", ROOT / "src/hash.c", *sorted((ROOT / "passes").glob("solve*.c"))]
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-O2", "-D_POSIX_C_SOURCE=200809L", "-D_DEFAULT_SOURCE",
                    *([f"-DRL_SOLVE_CAP={cap}"] if cap else []), *map(str, sources), "-o", str(out), "-lm"], check=True)
    return out


def solve(program, problems, starts, seconds):
    text = "".join(p.text(seconds, s) for p, s in zip(problems, starts))
    lines = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    for head, chosen in zip(lines[::2], lines[1::2]):
        status, cost, bound, optimal, took = head.split()
        yield int(status), int(cost), int(bound), optimal == "1", float(took), [int(c) for c in chosen.split()]


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--count", type=int, default=200)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--ops", type=int, nargs=2, default=(10, 200), metavar=("LEAST", "MOST"))
    a.add_argument("--solver", type=Path)
    a.add_argument("--seconds", type=int, default=20, help="limit for each problem (default: 20)")
    a.add_argument("--limit", type=float, default=5, help="seconds for HiGHS on each problem (default: 5)")
    args = a.parse_args()
    try:
        import highspy  # noqa: F401
    except ImportError:
        print("skipped: no highspy")
        return 0
    rng = random.Random(args.seed)
    problems, starts = [], []
    for _ in range(args.count):
        p = random_problem(rng, int(round(args.ops[0] * (args.ops[1] / args.ops[0]) ** rng.random())))
        problems.append(p)
        starts.append([rng.randrange(len(c)) for _, c in p.ops] if rng.random() < 0.5 else None)
    wide = random.Random(args.seed)
    problems += [wide_problem(wide) for _ in range(args.count // 10)]
    starts += [None] * (args.count // 10)
    with tempfile.TemporaryDirectory() as folder:
        results = list(solve(args.solver or compile_solver(folder), problems, starts, args.seconds))
        narrow = compile_solver(folder, 2)
        small = list(solve(narrow, problems, starts, args.seconds))
        tied = [with_ties(p, wide) for p in problems]
        ties = list(solve(narrow, [q for q, _ in tied], starts, args.seconds))
    if not len(results) == len(small) == len(ties) == len(problems):
        print(f"FAILED: {len(results)}, {len(small)} and {len(ties)} results for {len(problems)} problems")
        return 1
    nfail = nunproven = nunknown = 0
    for i, (a, b) in enumerate(zip(results, small)):
        if b[2] > a[1] or a[2] > b[1] or a[3] and b[3] and a[1] != b[1] or problems[i].cost(b[5]) != b[1]:
            nfail += 1
            print(f"FAILED: problem {i} of seed {args.seed}: cost {a[1]} bound {a[2]}, with a small cap {b[1]} bound {b[2]}")
        if i >= args.count and not (a[3] and b[3]):
            nfail += 1
            print(f"FAILED: wide problem {i} of seed {args.seed}: cost {a[1]} bound {a[2]}, with a small cap {b[1]} bound {b[2]}")
    for i, (a, t, (q, dearer)) in enumerate(zip(results, ties, tied)):
        if t[2] > t[1] or a[3] and (not t[3] or t[2] // dearer > a[1] or t[1] // dearer != a[1]) or q.cost(t[5]) != t[1]:
            nfail += 1
            print(f"FAILED: problem {i} of seed {args.seed}: cost {a[1]}, with ties {t[1] / dearer} bound {t[2] / dearer} proven {t[3]}")
    slowest, theirs = 0, 0
    for i, (p, (status, cost, bound, optimal, took, chosen)) in enumerate(zip(problems, results)):
        t = time.perf_counter()
        want = highs_optimum(p, args.limit)
        theirs += time.perf_counter() - t
        slowest = max(slowest, took)
        nunproven += not optimal
        nunknown += want is None
        wrong = (status != 0 or p.cost(chosen) != cost or bound > cost or optimal != (bound == cost)
                 or want is not None and (bound > want or cost < want or optimal and cost != want))
        if wrong:
            nfail += 1
            print(f"FAILED: problem {i} of seed {args.seed} ({len(p.ops)} ops): status {status} cost {cost} bound {bound} "
                  f"optimal {optimal}, assignment costs {p.cost(chosen)}, HiGHS {want}")
    print(f"{len(problems)} problems, {sum(len(p.ops) for p in problems)} ops: {nfail} wrong, {nunproven} not proven, "
          f"{nunknown} not solved by HiGHS; seconds {sum(r[4] for r in results):.2f} (most {slowest:.3f}), HiGHS {theirs:.1f}")
    return int(nfail > 0)


if __name__ == "__main__":
    sys.exit(main())
