#!/usr/bin/env python3
"""The certificate's checker (src/cert*.c) against code that shares nothing with it.

  test_cert.py [--count 300] [--mutants 1000] [--twins 500] [--large 40] [--seed 1] [--build build]

1. Random certificates, small enough to try every assignment. A referee (referee.py) reads the file by its own parser, enumerates every
   assignment of every component, and says whether each statement of the file is true. Files made to be true must hold, and print as
   they are; files whose bound or cost is one off must be refused.
2. Mutants: one number, word or line of a file that holds is changed, dropped, doubled or swapped. The referee, never the checker, says
   whether what came out is still true (another choice of the same cost, a name, the bytes of a value that costs nothing). The checker
   must agree with the referee on each, and at least --mutants of them must be false.
   Files with a second part, about times, are made by timegen.py, which knows what is true of them.
   Files with folds at random, few of which are folds: the checker takes those that the referee takes, and a bound that is too high with none.
   Files with spans that weigh orders at random (spangen.py): the checker takes those that the referee takes.
   Files of two components that differ in one thing, with the claims of one for both (twingen.py): the checker takes those that the referee takes,
   and no bound that is above the least of whole orders. tests/certs: files that a checker once took, though what they say is false.
3. Larger problems, where the minimum comes from the solver (solve_cli): the claim holds, and one conversion or byte more does not.

1 and 3 run through cert_cli_narrow as well, the checker with room for two states after an op: what is done where states are too many.
"""
import argparse
import math
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import spangen
import timegen
import twingen
from referee import Bad, Statement, is_true

ROOT = Path(__file__).resolve().parents[2]


# ------------------------------------------------------------------------------------------------- random certificates

def shuffled(rng, items):
    items = list(items)
    rng.shuffle(items)
    return items


class Maker:
    """Grows a random problem; `limits`: atoms of a value, tokens of an op, pins of an op."""

    def __init__(self, rng, nop, atoms, far):
        self.rng, self.natom, self.bytes, self.ops = rng, [], [], []
        self.most, self.far = atoms, far
        self.style = rng.choice(["equal", "few", "any", "zero"])
        self.new_value()
        for _ in range(nop):
            self.new_op()

    def new_value(self, natom=None):
        self.natom.append(self.rng.randint(1, self.most) if natom is None else natom)
        pick = {"equal": [96], "few": [64, 96], "any": range(1, 999), "zero": [0, 0, 5]}[self.style]
        self.bytes.append(self.rng.choice(list(pick)))
        return len(self.natom) - 1

    def pick_value(self):
        n = len(self.natom)
        if n == 1 or self.rng.random() < 0.3:
            return self.new_value(self.natom[-1] if self.rng.random() < 0.7 else None)
        return self.rng.randrange(max(0, n - self.far), n)

    def new_op(self):
        rng = self.rng
        if rng.random() < 0.35:
            v = self.pick_value()
            kind = rng.choice(["input", "output", "captured", "reads", "node"])
            self.ops.append({"kind": kind, "fixed": True, "pins": [(v, shuffled(rng, range(self.natom[v])))]})
            return
        values = [self.pick_value() for _ in range(rng.choice([1, 2, 2, 2, 3]))]
        ntoken = max([rng.randint(1, 3)] + [min(self.natom[v], 3) for v in values] + ([4] if self.most > 3 else []))
        tokens = [{} for _ in range(ntoken)]
        for p, v in enumerate(values):  # cut the atoms into runs, give them to tokens
            atoms = shuffled(rng, range(self.natom[v])) if rng.random() < 0.3 else list(range(self.natom[v]))
            nrun = min(len(atoms), ntoken)
            cuts = [0] + sorted(rng.sample(range(1, len(atoms)), nrun - 1)) + [len(atoms)] if nrun else [0]
            who = sorted(rng.sample(range(ntoken), nrun)) if rng.random() < 0.7 else rng.sample(range(ntoken), nrun)
            for k, t in enumerate(who):
                tokens[t][p] = atoms[cuts[k]:cuts[k + 1]]
        forms = []
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            ngroup = rng.choice([1, 1, 2, 3])
            group = [rng.randrange(ngroup) for _ in range(ntoken)]
            forms.append((group, [shuffled(rng, range(ngroup)) if rng.random() < 0.5 else list(range(ngroup)) for _ in values]))
        op = {"kind": "node", "fixed": False, "pins": [(v, None) for v in values], "tokens": tokens, "forms": forms}
        perm = self.random_choice(op)
        orders = Statement.orders({"forms": forms, "tokens": tokens, "pins": values}, *perm)
        if rng.random() < 0.15 and ntoken > 1:
            orders = [shuffled(rng, o) for o in orders]
        op["pins"] = [(v, list(o)) for v, o in zip(values, orders)]
        if ntoken == 1:
            op["forms"] = forms[:1]
        self.ops.append(op)

    def random_choice(self, op):
        k = self.rng.randrange(len(op["forms"]))
        group = op["forms"][k][0]
        return k, sorted(shuffled(self.rng, range(len(group))), key=lambda t: group[t])

    def components(self):
        up = list(range(len(self.natom)))

        def root(x):
            while up[x] != x:
                x = up[x]
            return x
        flexible = [i for i, op in enumerate(self.ops) if not op["fixed"] and len(op["tokens"]) > 1 and op["pins"]]
        for i in flexible:
            for v, _ in self.ops[i]["pins"]:
                up[root(v)] = root(self.ops[i]["pins"][0][0])
        out = {}
        for i in flexible:
            out.setdefault(root(self.ops[i]["pins"][0][0]), []).append(i)
        return list(out.values())

    def text(self, objective, choices, keep, parts, cost, bound):
        out = ["relayout.proof/1", f"objective {objective}"]
        for v, n in enumerate(self.natom):
            sizes = " ".join('"N"' if (v + a) % 5 == 4 else str(a + 2) for a in range(n))
            out.append(f'value {v} "v{v}" bytes {self.bytes[v]} atoms {sizes}'.rstrip())
        for i, op in enumerate(self.ops):
            tail = f" {'Relu' if i % 3 else 'com.acme::Thing'}{' fixed' if op['fixed'] else ''}" if op["kind"] == "node" else ""
            out.append(f'op {i} {op["kind"]} "o{i}"{tail}')
            out += [f'pin {v} "t{i}.{p}" {" ".join(map(str, o))}'.rstrip() for p, (v, o) in enumerate(op["pins"])]
            if op["fixed"]:
                continue
            for t in op["tokens"]:
                out.append(" ".join(["token"] + [f"{p}:{','.join(map(str, a))}" for p, a in sorted(t.items())]))
            for group, seq in op["forms"]:
                out.append(" ".join(["form"] + [str(g) for g in group] + [" ".join(["|"] + [str(g) for g in s]) for s in seq]))
        out += [f"choose {i} {k} {' '.join(map(str, perm))}".rstrip() for i, (k, perm) in sorted(choices.items())]
        out += [f"keep {v} {' '.join(map(str, a))}".rstrip() for v, a in sorted(keep.items())]
        out += [" ".join(map(str, ["component", k, *least, *ops])) for k, (least, ops) in enumerate(parts)]
        out += ["outside 0", f"claim {cost[0]} {cost[1]} {bound[0]} {bound[1]}", "end"]
        return "\n".join(out) + "\n"


def draft(rng, maker, with_keep):
    """Objective, choices and keeps at random, and the statement without its sums."""
    objective = rng.choice(["nodes", "nodes", "bytes"])
    flexible = [i for i, op in enumerate(maker.ops) if not op["fixed"]]
    choices = {i: maker.random_choice(maker.ops[i]) for i in flexible if rng.random() < 0.6}
    keep = {}
    for v, n in enumerate(maker.natom):
        if with_keep and rng.random() < 0.5:
            keep[v] = sorted(rng.sample(range(n), rng.randint(0, n)))
    return objective, choices, keep, Statement(maker.text(objective, choices, keep, [], (0, 0), (0, 0)))


def total(statement, choices):
    used = {}
    for i, op in enumerate(statement.ops):
        chosen = statement.orders(op, *choices[i]) if i in choices else statement.stands(op)
        for (v, _), o in zip(op["pins"], chosen):
            used.setdefault(v, set()).add(o)
    return statement.cost_of(used)


def finish(rng, maker, objective, choices, keep, s, least_of):
    """The text of a true certificate; least_of(ops): the least key of a component."""
    parts, listed = [], set()
    for ops in maker.components():
        least = s.key(least_of(ops))  # its own inverse: (conversions, bytes)
        if least != (0, 0) or rng.random() < 0.2:
            parts.append((least, shuffled(rng, ops) if rng.random() < 0.5 else ops))
            listed.update(v for i in ops for v, _ in s.ops[i]["pins"])
    rest = {v: u for v, u in s.pins_of([o for o in s.ops if s.idle(o)], False).items() if v not in listed}
    bound = s.cost_of(rest)
    bound = bound[0] + sum(p[0][0] for p in parts), bound[1] + sum(p[0][1] for p in parts)
    return maker.text(objective, choices, keep, parts, total(s, choices), bound), parts, bound


# ------------------------------------------------------------------------------------------------------------ mutation

def mutate(rng, text):
    """One change: a number, a word, a line."""
    lines = text[:-1].split("\n")
    how = rng.random()
    i = rng.randrange(len(lines))
    if how < 0.7:
        i = rng.choice([k for k, x in enumerate(lines) if re.search(r"\d", x)])
        spots = [m for m in re.finditer(r"\d+", lines[i])]
        m = rng.choice(spots)
        x = int(m.group())
        new = rng.choice([x + 1, max(x - 1, 0), x + 1, rng.randint(0, 5), x * 10, 2**32 - 1, 2**63 - 1, 2**64])
        lines[i] = lines[i][:m.start()] + str(new) + lines[i][m.end():]
    elif how < 0.78:
        del lines[i]
    elif how < 0.84:
        lines.insert(i, lines[i])
    elif how < 0.9:
        j = rng.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
    else:
        words = lines[i].split(" ")
        j, k = rng.randrange(len(words)), rng.randrange(len(words))
        if rng.random() < 0.5:
            words[j], words[k] = words[k], words[j]
        elif rng.random() < 0.5:
            del words[j]
        else:
            words.insert(j, words[k])
        lines[i] = " ".join(words)
    return "\n".join(lines) + "\n"


# --------------------------------------------------------------------------------------------------------------- tests

class Checker:
    """cert_cli each: one process for all files."""

    def __init__(self, program, folder):
        self.program, self.path = program, Path(folder) / f"{program.name}.cert"
        self.process = subprocess.Popen([program, "each"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def check(self, text):
        self.path.write_text(text)
        self.process.stdin.write(f"{self.path}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"cert_cli died on {self.path}:\n{text}")
        status, _, message = line.strip().partition(" ")
        return int(status), message

    def printed(self, text):
        self.path.write_text(text)
        return subprocess.run([self.program, "print", self.path], capture_output=True, text=True, check=True).stdout

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def undecided(message):
    """The problem is too wide for the checker, which says so."""
    return "states" in message or "not decided" in message


class Both:
    """Two checkers that must agree."""

    def __init__(self, wide, narrow):
        self.wide, self.narrow, self.open = wide, narrow, 0

    def check(self, text):
        wide, narrow = self.wide.check(text), self.narrow.check(text)
        if undecided(narrow[1]):
            self.open += 1
        else:
            expect(wide[0] == narrow[0], f"with little room {narrow}, else {wide}", text)
        return wide


class Failed(Exception):
    pass


def expect(ok, what, text):
    if not ok:
        raise Failed(f"{what}\n{text}")


def small_certificate(rng):
    """A true one that the referee can decide, with its parts and bound."""
    while True:
        maker = Maker(rng, rng.randint(2, 9), rng.choice([2, 3, 3, 4]), rng.choice([2, 4]))
        d = draft(rng, maker, rng.random() < 0.4)
        try:
            return (maker, d) + finish(rng, maker, *d, d[3].least)
        except (OverflowError, Bad):
            continue


def off_by_one(maker, d, parts, bound):
    """One component's least, and the bound, one conversion or one byte higher."""
    for k, (least, ops) in enumerate(parts):
        for plus in ((1, 0), (0, 1)):
            more = [(tuple(a + b for a, b in zip(x, plus)) if j == k else x, o) for j, (x, o) in enumerate(parts)]
            yield maker.text(*d[:3], more, total(d[3], d[1]), (bound[0] + plus[0], bound[1] + plus[1]))


def test_small(rng, checker, count):
    proved = 0
    for _ in range(count):
        maker, d, text, parts, bound = small_certificate(rng)
        expect(is_true(text), "the referee refuses what was made to be true", text)
        expect(checker.check(text) == (0, "holds"), f"refused: {checker.check(text)}", text)
        expect(checker.wide.printed(text) == text, "printed as another text", text)
        for wrong in off_by_one(maker, d, parts, bound):
            proved += 1
            expect(not is_true(wrong), "the referee believes a bound that is too high", wrong)
            expect(checker.check(wrong)[0] == 7, "a bound that is too high holds", wrong)
    return proved


def some_fold(rng, norder):
    """Few orders move; some change places, and then none of the two stands for itself."""
    to = list(range(norder))
    for _ in range(rng.randint(1, 2)):
        x, y = rng.randrange(norder), rng.randrange(norder)
        to[x] = to[y]
        if rng.random() < 0.1:
            to[y] = x
    return to


def test_folds(rng, checker, want):
    """Random ones, until so many that are no identity hold; those that do not must be as many."""
    folded, refused = {"fold": 0, "refold": 0}, 0
    while min(*folded.values(), refused) < want:
        maker, d, _, parts, bound = small_certificate(rng)
        values = sorted({v for least, ops in parts if least != (0, 0) for i in ops for v, _ in maker.ops[i]["pins"] if maker.natom[v] in (2, 3)})
        if not values:
            continue
        keep = dict(d[2])
        kind = min(folded, key=folded.get)
        lines = []
        for v in values:
            keep.setdefault(v, list(range(maker.natom[v])))
            if len(keep[v]) > 1 and rng.random() < 0.7:
                lines.append(" ".join(map(str, [kind, v, *some_fold(rng, math.factorial(len(keep[v])))])))
        if not lines:
            continue
        d = d[0], d[1], keep, d[3]
        fold = lambda text: re.sub(r"^component 0 ", "\n".join(lines) + "\ncomponent 0 ", text, flags=re.M)
        text = fold(maker.text(*d[:3], parts, total(d[3], d[1]), bound))
        right, got = is_true(text), checker.check(text)
        expect(right == (got[0] == 0), f"the referee says {right}, the checker {got}", text)
        moved = any(list(map(int, x.split()[2:])) != list(range(len(x.split()) - 2)) for x in lines)
        folded[kind] += right and moved
        refused += not right
        for wrong in off_by_one(maker, d, parts, bound):
            expect(checker.check(fold(wrong))[0] == 7, "a bound that is too high holds", fold(wrong))
    return folded, refused


def test_spans(rng, checker, want):
    """Random ones, until so many hold, and so many do not."""
    true = false = 0
    while min(true, false) < want:
        try:
            text, right = spangen.add(rng, small_certificate(rng)[2])
        except OverflowError:
            continue
        if text is None:
            continue
        got = checker.check(text)
        expect(right == (got[0] == 0), f"the referee says {right}, the checker {got}", text)
        expect(checker.wide.printed(text) == text, "printed as another text", text)
        true, false = true + right, false + (not right)
    return true, false


def test_times(rng, checker, count):
    """Second parts whose truth is known (timegen.py)."""
    refused = 0
    for _ in range(count):
        t = timegen.make(rng)
        text = t.text()
        expect(checker.check(text) == (0, "holds"), f"refused: {checker.check(text)}", text)
        expect(checker.wide.printed(text) == text, "printed as another text", text)
        for what, false in timegen.wrong(rng, t):
            refused += 1
            expect(checker.check(false)[0] == 7, f"holds: {what}", false)
    return refused


def test_false(checker):
    """Of tests/certs, none is true."""
    files = sorted((ROOT / "tests" / "certs").glob("*.cert"))
    for path in files:
        expect(not is_true(path.read_text()), f"the referee believes {path.name}", path)
        expect(checker.check(path.read_text())[0] == 7, f"{path.name} holds", path)
    return len(files)


def test_twins(seed, checker, count):
    """Of random ones, how many are true and how many false."""
    found = [0, 0]
    for k in range(count):
        text = twingen.make(random.Random(seed * 1000003 + k))
        right, got = is_true(text), checker.check(text)
        expect(right == (got[0] == 0), f"{k}: the referee says {right}, the checker {got}", text)
        if right:
            holds_whole(text)
        found[right] += 1
    return found


def holds_whole(text):
    try:
        Statement(text).check_whole()
    except OverflowError:
        pass
    except Bad as e:
        raise Failed(f"{e}\n{text}") from e


def test_mutants(rng, checker, want):
    false = true = 0
    while false < want:
        _, _, text, parts, _ = small_certificate(rng)
        if rng.random() < 0.3:
            text = twingen.make(rng)
        elif rng.random() < 0.1:  # these take the referee long
            try:
                text = spangen.add(rng, text)[0] or text
            except OverflowError:
                continue
        if not parts or not is_true(text):
            continue
        for _ in range(12):
            mutant = mutate(rng, text)
            try:
                right = is_true(mutant)
            except OverflowError:
                continue
            status, message = checker.check(mutant)
            if ("sum of its weights is too large" in message or "spans do not show" in message) and re.search(r" \d{17}", mutant):
                continue  # beyond what the checker counts with: refused, true or not
            expect(status in (0, 7), f"status {status}: {message}", mutant)
            expect((status == 0) == right, f"the referee says {right}, the checker {status} {message}; from\n{text}\nto", mutant)
            if mutant != text:
                false, true = false + (not right), true + right
    return false, true


def solver_least(program, s, ops):
    """The least key of a component, from solve_cli; weights are one number, so bytes stay below 2^30 there."""
    big = 1 << 30
    number_of, values = {}, {}
    paid = s.pins_of([o for o in s.ops if s.idle(o)], True)
    lines = []

    def name(v, o):
        values.setdefault(v, len(values))
        number_of.setdefault(v, {}).setdefault(o, len(number_of.get(v, {})))
        return number_of[v][o]

    def one(rows, vs):
        lines.append(f"{len(vs)} {len(rows)} " + " ".join(str(values[v]) for v in vs))
        lines.extend("0 " + " ".join(map(str, r)) for r in rows)
    for i in ops:
        vs = [v for v, _ in s.ops[i]["pins"]]
        rows = sorted({tuple(name(v, s.cut(v, o)) for v, o in zip(vs, c)) for c in s.configurations(s.ops[i])})
        one(rows, vs)
    nop = len(ops)
    for v in list(values):
        for o in paid.get(v, ()):
            row = (name(v, o),)
            one([row], [v])
            nop += 1
    weight = {v: s.values[v][0] * big + 1 if s.bytes_first else big + s.values[v][0] for v in values}
    head = [f"{len(values)} {nop} 20 0 0"] + [f"{weight[v]} {len(number_of[v])}" for v in values]
    out = subprocess.run([program], input="\n".join(head + lines) + "\n", capture_output=True, text=True, check=True).stdout.split()
    if out[0] != "0" or out[3] != "1":
        raise OverflowError
    return divmod(int(out[1]), big)


def test_large(rng, checker, solver, count):
    done = 0
    for _ in range(count):
        maker = Maker(rng, rng.randint(20, 60), rng.choice([3, 4, 5]), rng.choice([2, 3, 5]))
        d = draft(rng, maker, rng.random() < 0.3)
        try:
            text, parts, bound = finish(rng, maker, *d, lambda ops: solver_least(solver, d[3], ops))
        except OverflowError:
            continue
        status, message = checker.check(text)
        if undecided(message):
            continue
        done += 1
        expect(status == 0, f"refused: {message}", text)
        for wrong in off_by_one(maker, d, parts, bound):
            expect(checker.check(wrong)[0] == 7, "a bound that is too high holds", wrong)
    return done


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--count", type=int, default=300)
    a.add_argument("--mutants", type=int, default=1000)
    a.add_argument("--twins", type=int, default=500)
    a.add_argument("--large", type=int, default=40)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--build", default="build")
    args = a.parse_args()
    rng = random.Random(args.seed)
    tests = ROOT / args.build / "tests"
    with tempfile.TemporaryDirectory() as folder:
        checker, narrow = Checker(tests / "cert_cli", folder), Checker(tests / "cert_cli_narrow", folder)
        both = Both(checker, narrow)
        try:
            proved = test_small(rng, both, args.count)
            print(f"{args.count} certificates hold, {proved} bounds that are one too high are refused")
            refused = test_times(random.Random(args.seed), both, args.count)
            print(f"{args.count} certificates with times hold, {refused} that are false are refused")
            folded, refused = test_folds(random.Random(args.seed), both, args.count // 10)
            print(f"{folded['fold']} folds and {folded['refold']} second ones hold, {refused} that are none are refused")
            true, false = test_spans(random.Random(args.seed), both, args.count // 10)
            print(f"{true} in spans hold, {false} that do not are refused")
            print(f"{test_false(both)} false ones of tests/certs are refused")
            false, true = test_twins(args.seed, both, args.twins)
            print(f"{true} of two alike hold, {false} that are false are refused")
            if not args.twins // 5 < false < args.twins * 4 // 5:
                raise Failed("twins: too few of one kind")
            false, true = test_mutants(rng, checker, args.mutants)
            print(f"{false} false mutants are refused, {true} true ones hold")
            large = test_large(rng, both, tests / "solve_cli", args.large)
            print(f"{large} of {args.large} larger ones hold, and no more than that")
            print(f"with room for two states, {both.open} are left open")
            if checker.close() != 0 or narrow.close() != 0 or large * 2 < args.large or proved < args.count // 3:
                raise Failed("too few cases, or cert_cli ended badly")
            if both.open > (args.large + proved) // 4:
                raise Failed("too many are left open")
        except Failed as e:
            print(f"FAILED: {e}\n0 passed, 1 failed")
            return 1
    print("8 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
