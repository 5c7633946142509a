#!/usr/bin/env python3
"""The certificate's checker (src/cert*.c) against code that shares nothing with it.

  test_cert.py [--count 300] [--mutants 1000] [--large 40] [--seed 1] [--build build]

1. Random certificates, small enough to try every assignment. A referee (below) reads the file by its own parser, enumerates every
   assignment of every component, and says whether each statement of the file is true. Files made to be true must hold, and print as
   they are; files whose bound or cost is one off must be refused.
2. Mutants: one number, word or line of a file that holds is changed, dropped, doubled or swapped. The referee, never the checker, says
   whether what came out is still true (another choice of the same cost, a name, the bytes of a value that costs nothing). The checker
   must agree with the referee on each, and at least --mutants of them must be false.
   Files with a second part, about times, are made by timegen.py, which knows what is true of them.
   Files with folds at random, few of which are folds: the checker takes those that the referee takes, and a bound that is too high with none.
3. Larger problems, where the minimum comes from the solver (solve_cli): the claim holds, and one conversion or byte more does not.

1 and 3 run through cert_cli_narrow as well, the checker with room for two states after an op: what is done where states are too many.
"""
import argparse
import itertools
import json
import math
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import timegen

ROOT = Path(__file__).resolve().parents[2]
MOST = 20000  # assignments of a component that the referee tries


# --------------------------------------------------------------------------------------------------------- the referee

class Bad(Exception):
    """The file is malformed, or states something false."""


def need(ok, why):
    if not ok:
        raise Bad(why)


WORD = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|[^ "]+')
NUMBER = re.compile(r"0|[1-9][0-9]*")


def split_line(line):
    words = WORD.findall(line)
    need(" ".join(words) == line, "words and single spaces")
    return words


def number(word, most=2**63 - 1):
    need(NUMBER.fullmatch(word) and int(word) <= most, f"a number: {word}")
    return int(word)


def string(word):
    need(word.startswith('"'), "a string")
    try:
        return json.loads(word)
    except ValueError as e:
        raise Bad(str(e)) from e


class Statement:
    """What a file says, read line by line."""

    def __init__(self, text):
        need(text.endswith("\n"), "a line end")
        self.lines = text[:-1].split("\n")
        self.at = 0
        need(self.take() == ["relayout.proof/1"], "head")
        objective = self.take()
        need(objective in (["objective", "nodes"], ["objective", "bytes"]), "objective")
        self.bytes_first = objective[1] == "bytes"
        self.values, self.ops, self.keep, self.parts = [], [], {}, []
        while self.next_is("value"):
            self.read_value(self.take())
        while self.next_is("op"):
            self.read_op(self.take())
        last = -1
        while self.next_is("choose"):
            last = self.read_choose(self.take(), last)
        last = -1
        while self.next_is("keep"):
            w = [number(x) for x in self.take()[1:]]
            need(w and last < w[0] < len(self.values), "keep: values rise")
            last = w[0]
            self.keep[last] = w[1:]
        self.fold, self.refold = self.read_folds("fold"), self.read_folds("refold")
        while self.next_is("component"):
            w = [number(x) for x in self.take()[1:]]
            need(len(w) >= 3 and w[0] == len(self.parts), "component")
            self.parts.append(((w[1], w[2]), w[3:]))
        w = self.take()
        need(len(w) == 2 and w[0] == "outside", "outside")
        number(w[1], 2**32 - 2)
        w = self.take()
        need(len(w) == 5 and w[0] == "claim", "claim")
        self.cost, self.bound = (number(w[1]), number(w[2])), (number(w[3]), number(w[4]))
        need(self.take() == ["end"] and self.at == len(self.lines), "end")

    def read_folds(self, word):
        folds, last = {}, -1
        while self.next_is(word):
            v, *to = [number(x) for x in self.take()[1:]]
            need(last < v and v in self.keep, "fold: values that keep atoms, rising")
            n = math.factorial(len(self.keep[v]))
            need(len(to) == n and all(x < n for x in to) and all(to[x] == x for x in to), "fold: images")
            orders = list(itertools.permutations(self.keep[v]))
            folds[v] = dict(zip(orders, (orders[x] for x in to)))
            last = v
        return folds

    def take(self):
        need(self.at < len(self.lines), "the file ends early")
        self.at += 1
        return split_line(self.lines[self.at - 1])

    def next_is(self, word):
        return self.at < len(self.lines) and self.lines[self.at].split(" ")[0] == word

    def read_value(self, w):
        need(len(w) >= 6 - 1 and number(w[1]) == len(self.values) and w[3] == "bytes" and w[5] == "atoms", "value")
        string(w[2])
        for x in w[6:]:
            string(x) if x.startswith('"') else number(x)
        self.values.append((number(w[4]), len(w) - 6))

    def read_op(self, w):
        need(len(w) >= 4 and number(w[1]) == len(self.ops), "op")
        need(w[2] in ("input", "output", "captured", "reads", "node"), "kind")
        string(w[3])
        op = {"fixed": w[2] != "node", "pins": [], "tokens": [], "forms": [], "choice": None}
        if w[2] == "node":
            need(len(w) in (5, 6), "node")
            if w[4].startswith('"'):
                string(w[4])
            else:
                need(re.fullmatch(r"[A-Za-z0-9_.:-]+", w[4]), "type")
            need(len(w) == 5 or w[5] == "fixed", "fixed")
            op["fixed"] = len(w) == 6
        else:
            need(len(w) == 4, "op")
        while self.next_is("pin"):
            p = self.take()
            need(len(p) >= 3 and number(p[1]) < len(self.values), "pin")
            string(p[2])
            op["pins"].append((int(p[1]), tuple(number(x) for x in p[3:])))
        while self.next_is("token"):
            op["tokens"].append(self.read_token(self.take()[1:], len(op["pins"])))
        while self.next_is("form"):
            op["forms"].append(self.read_form(self.take()[1:], op))
        self.ops.append(op)

    @staticmethod
    def read_token(words, npin):
        token, last = {}, -1
        for x in words:
            pin, colon, atoms = x.partition(":")
            need(colon and last < number(pin) < npin, "token: pins rise")
            last = int(pin)
            token[last] = [number(a) for a in atoms.split(",")]
        return token

    @staticmethod
    def read_form(words, op):
        fields = [[]]
        for x in words:
            if x == "|":
                fields.append([])
            else:
                fields[-1].append(number(x, 254))
        need(len(fields) == len(op["pins"]) + 1 and len(fields[0]) == len(op["tokens"]), "form")
        return fields[0], fields[1:]

    def read_choose(self, w, last):
        w = [number(x) for x in w[1:]]
        need(len(w) >= 2 and last < w[0] < len(self.ops), "choose: ops rise")
        self.ops[w[0]]["choice"] = (w[1], w[2:])
        return w[0]

    # ---- is it so?

    def idle(self, op):
        return op["fixed"] or len(op["tokens"]) < 2

    def check_structure(self):
        for v, atoms in self.keep.items():
            need(atoms == sorted(set(atoms)) and all(a < self.values[v][1] for a in atoms), "keep")
        for op in self.ops:
            for v, order in op["pins"]:
                need(sorted(order) == list(range(self.values[v][1])), "an order is a permutation")
            if op["fixed"]:
                need(not op["tokens"] and not op["forms"] and op["choice"] is None, "fixed")
                continue
            for p, (v, _) in enumerate(op["pins"]):
                atoms = [a for t in op["tokens"] for a in t.get(p, [])]
                need(sorted(atoms) == list(range(self.values[v][1])), "tokens cover the pin")
                for group, seq in op["forms"]:
                    need(len(set(seq[p])) == len(seq[p]), "a group once")
                    need(all(group[k] in seq[p] for k, t in enumerate(op["tokens"]) if p in t), "a group has its place")
            if op["choice"]:
                form, perm = op["choice"]
                need(form < len(op["forms"]) and sorted(perm) == list(range(len(op["tokens"]))), "choice")
                groups = [op["forms"][form][0][t] for t in perm]
                need(groups == sorted(groups), "group after group")
            if self.idle(op):
                for k in range(len(op["forms"])):
                    need(self.orders(op, k, range(len(op["tokens"]))) == self.stands(op), "idle")

    @staticmethod
    def stands(op):
        return tuple(order for _, order in op["pins"])

    @staticmethod
    def orders(op, form, perm):
        group, seq = op["forms"][form]
        return tuple(tuple(a for g in seq[p] for t in perm if group[t] == g for a in op["tokens"][t].get(p, ()))
                     for p in range(len(op["pins"])))

    def configurations(self, op):
        """Every one, in full."""
        out = {self.stands(op)}
        if not self.idle(op):
            for k in range(len(op["forms"])):
                out.update(self.orders(op, k, perm) for perm in itertools.permutations(range(len(op["tokens"]))))
        return sorted(out)

    def cut(self, v, order):
        return order if v not in self.keep else tuple(a for a in order if a in self.keep[v])

    def cost_of(self, used):
        """used: for each value the orders named."""
        n = sum(max(len(u) - 1, 0) for u in used.values())
        size = sum(self.values[v][0] * max(len(u) - 1, 0) for v, u in used.items())
        return n, size

    def key(self, cost):
        return (cost[1], cost[0]) if self.bytes_first else cost

    def pins_of(self, ops, cut):
        """(value, order) that these ops name as they stand."""
        used = {}
        for op in ops:
            for v, order in op["pins"]:
                used.setdefault(v, set()).add(self.cut(v, order) if cut else order)
        return used

    def paid(self, ops):
        """Orders that idle ops name at the values of these."""
        values = {v for i in ops for v, _ in self.ops[i]["pins"]}
        return {v: u for v, u in self.pins_of([o for o in self.ops if self.idle(o)], True).items() if v in values}

    def choices(self, ops):
        """Of each op every configuration, as what it names at its pins."""
        out = []
        for i in ops:
            vs = [v for v, _ in self.ops[i]["pins"]]
            out.append({tuple((v, self.cut(v, o)) for v, o in zip(vs, c)) for c in self.configurations(self.ops[i])})
        return out

    def check_folds(self, ops):
        """By the definition in docs/proof.md."""
        paid = {(v, o) for v, u in self.paid(ops).items() for o in u}
        choices = self.choices(ops)
        elements = paid | {e for configs in choices for c in configs for e in c}
        image = {e: (e[0], self.fold.get(e[0], {}).get(e[1], e[1])) for e in elements}
        again = {e: (e[0], self.refold.get(e[0], {}).get(e[1], e[1])) for e in elements}
        need(all(image[e] in elements and again[e] in elements for e in elements), "an image is an order that some op names")
        need(all(image[e] == e for e in paid), "what is paid stands for itself")
        need(all(tuple(image[e] for e in c) in configs for configs in choices for c in configs), "an image is a configuration")
        left = [[frozenset(c) - paid for c in configs if all(image[e] == e for e in c)] for configs in choices]
        certain = {e for sets in left for e in frozenset.intersection(*sets)}
        live = {e for e in elements - certain if sum(any(e in c for c in sets) for sets in left) > 1}
        for sets in left if self.refold else ():
            cost = lambda c: self.key(tuple(map(sum, zip((0, 0), *((1, self.values[v][0]) for v, o in c - certain - live)))))
            for c in sets:
                names = {again[e] for e in c & live}
                need(any(b & live <= names and cost(b) <= cost(c) and all(again[e] == e for e in b & live) for b in sets), "a second image")

    def least(self, ops):
        """By trying everything."""
        paid, choices = self.paid(ops), self.choices(ops)
        if math.prod(map(len, choices)) > MOST:
            raise OverflowError
        best = None
        for chosen in itertools.product(*choices):
            used = {v: set(u) for v, u in paid.items()}
            for names in chosen:
                for v, o in names:
                    used.setdefault(v, set()).add(o)
            cost = self.key(self.cost_of(used))
            best = cost if best is None else min(best, cost)
        return (0, 0) if best is None else best

    def check(self):
        self.check_structure()
        used = {}
        for op in self.ops:
            chosen = self.orders(op, *op["choice"]) if op["choice"] else self.stands(op)
            for (v, _), o in zip(op["pins"], chosen):
                used.setdefault(v, set()).add(o)
        need(self.cost_of(used) == self.cost, "the assignment's cost")
        need(max(self.cost) < 2**63 and max(self.bound) < 2**63, "range")
        owner, named = {}, set()
        for k, (_, ops) in enumerate(self.parts):
            for i in ops:
                need(i < len(self.ops) and not self.idle(self.ops[i]) and i not in named, "component: ops")
                named.add(i)
                for v, _ in self.ops[i]["pins"]:
                    need(owner.setdefault(v, k) == k, "a value belongs to one component")
        for i, op in enumerate(self.ops):
            need(self.idle(op) or i in named or not any(v in owner for v, _ in op["pins"]), "a component names all its ops")
        rest = {v: u for v, u in self.pins_of([o for o in self.ops if self.idle(o)], False).items() if v not in owner}
        bound = self.cost_of(rest)
        for claim, _ in self.parts:
            bound = bound[0] + claim[0], bound[1] + claim[1]
        need(bound == self.bound, "the bound's sum")
        for claim, ops in self.parts:
            need(self.key(claim) <= self.least(ops), "a component is cheaper")
            if claim != (0, 0):
                self.check_folds(ops)


def is_true(text):
    try:
        Statement(text).check()
        return True
    except Bad:
        return False


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


def test_mutants(rng, checker, want):
    false = true = 0
    while false < want:
        _, _, text, parts, _ = small_certificate(rng)
        if not parts:
            continue
        for _ in range(12):
            mutant = mutate(rng, text)
            try:
                right = is_true(mutant)
            except OverflowError:
                continue
            status, message = checker.check(mutant)
            if "sum of its weights is too large" in message and re.search(r" bytes \d{17}", mutant):
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
    head = [f"{len(values)} {nop} 20 0"] + [f"{weight[v]} {len(number_of[v])}" for v in values]
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
    print("5 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
