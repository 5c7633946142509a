"""What a certificate says (docs/proof.md), read and looked at by code that shares nothing with either checker: every assignment of a component is tried.

Statement(text).check() raises Bad where the file is malformed or states something false, OverflowError where that are too many.
"""
import copy
import itertools
import json
import math
import re

MOST = 20000  # assignments of a component that are tried


class Bad(Exception):
    """The file is malformed, or states something false."""


class Unnamed(Bad):
    """A second image that no op names: the program refuses it, though what is proved with it holds."""


def need(ok, why, kind=Bad):
    if not ok:
        raise kind(why)


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
    """What a file says, read line by line. time: the same of the second part, or None."""

    def __init__(self, text):
        need(text.endswith("\n"), "a line end")
        self.lines = text[:-1].split("\n")
        self.at = 0
        need(self.take() == ["relayout.proof/1"], "head")
        objective = self.take()
        need(objective in (["objective", "nodes"], ["objective", "bytes"]), "objective")
        self.bytes_first = objective[1] == "bytes"
        self.by_time, self.time, self.rate, self.swapped = False, None, None, {}
        if self.next_is("rate"):
            w = self.take()[1:]
            need(len(w) == 2, "rate")
            self.rate = tuple(number(x, most) for x, most in zip(w, (10**6, 10**8)))
            need(self.rate[1], "a rate is at least 1")
        self.values, self.ops = [], []
        while self.next_is("value"):
            self.read_value(self.take())
        while self.next_is("op"):
            self.read_op(self.take())
        last = -1
        while self.next_is("choose"):
            last = self.read_choose(self.take(), last)
        self.read_bound()
        w = self.take()
        need(len(w) == 2 and w[0] == "outside", "outside")
        number(w[1], 2**32 - 2)
        w = self.take()
        need(len(w) == 5 and w[0] == "claim", "claim")
        self.cost, self.bound = (number(w[1]), number(w[2])), (number(w[3]), number(w[4]))
        if self.next_is("time"):
            self.read_time()
        need(self.take() == ["end"] and self.at == len(self.lines), "end")

    def read_bound(self):
        """parts: (claim, ops), or of times (claim, ops, what the assignment takes, price, whether ops swap)"""
        self.keep, self.parts, self.spans, last = {}, [], {}, -1
        while self.next_is("keep"):
            w = [number(x) for x in self.take()[1:]]
            need(w and last < w[0] < len(self.values), "keep: values rise")
            last = w[0]
            self.keep[last] = w[1:]
        self.fold, self.refold = self.read_folds("fold"), self.read_folds("refold")
        while self.next_is("component"):
            words, n = self.take()[1:], 4 if self.by_time else 3
            swaps = self.by_time and words[n:n + 1] == ["swaps"]
            w = [number(x) for x in words[:n] + words[n + swaps:]]
            need(len(w) >= n and w[0] == len(self.parts), "component")
            self.parts.append(((w[2], 0), w[n:], w[1], w[3], swaps) if self.by_time else ((w[1], w[2]), w[n:]))
            if self.next_is("spans"):
                need(not self.bytes_first, "spans are of conversions")
                self.spans[len(self.parts) - 1] = self.read_spans(self.take()[1:], w[n:])

    def read_spans(self, words, ops):
        """What a conversion counts, and [(ops, what they cost at least, {(value, order): what it weighs})]"""
        need(len(words) == 1, "spans")
        counts, spans = number(words[0]), []
        while self.next_is("span"):
            w = [number(x) for x in self.take()[1:]]
            need(len(w) == 2 and 0 < w[0] <= len(ops), "a span has ops")
            nop, least = w
            weigh, last = {}, -1
            while self.next_is("weigh"):
                v, *pairs = [number(x) for x in self.take()[1:]] or [-1]
                need(last < v < len(self.values) and pairs and len(pairs) % 2 == 0, "weigh: values rise")
                orders = list(itertools.permutations(self.keep.get(v, range(self.values[v][1]))))
                need(all(a < b for a, b in itertools.pairwise([-1, *pairs[::2], len(orders)])), "weigh: orders rise")
                weigh |= {(v, orders[place]): w for place, w in zip(pairs[::2], pairs[1::2])}
                last = v
            spans.append((ops[:nop], least, weigh))
            ops = ops[nop:]
        need(spans and not ops, "spans have all ops")
        return counts, spans

    def read_time(self):
        need(self.take() == ["time"] and self.rate, "time")
        t = self.time = copy.copy(self)
        t.by_time, t.time, t.bytes_first, t.swapped, last = True, None, False, {}, -1
        while t.next_is("swap"):
            w = t.take()[1:]
            need("|" in w, "swap")
            bar = w.index("|")
            k, form, *perm = (number(x) for x in w[:bar])
            need(last < k < len(t.ops), "swap: ops rise")
            t.swapped[k], last = (form, perm, self.read_pins(w[bar + 1:], t.ops[k])), k
        t.read_bound()
        w = t.take()
        need(len(w) == 3 and w[0] == "claim", "claim")
        t.cost, t.bound = (number(w[1]), 0), (number(w[2]), 0)
        self.at = t.at

    @staticmethod
    def read_pins(words, op):
        pins = [number(x) for x in words]
        need(pins and pins == sorted(set(pins)) and pins[-1] < min(4, len(op["pins"])), "pins rise")
        return pins

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
        op = {"fixed": w[2] != "node", "pins": [], "tokens": [], "forms": [], "choice": None, "charge": None, "swaps": []}
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
        if self.next_is("charge"):
            size, rule, *w = self.take()[1:]
            op["charge"] = number(size), rule, *(number(x) for x in w)
            need(rule in ("forms", "after", "last") and w, "charge")
        if self.next_is("swaps"):
            op["swaps"] = self.read_pins(self.take()[1:], op)
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
            if op["charge"]:
                _, rule, tenths, *more = op["charge"]
                need(not self.idle(op) and op["pins"] and tenths <= 10**6, "charge")
                if rule == "forms":
                    need(len(more) == len(op["forms"]) and all(x <= 10**6 for x in more), "charge of forms")
                else:
                    need(more == sorted(set(more)) and all(t < len(op["tokens"]) for t in more), "charge of tokens")
            need(not op["swaps"] or (not self.idle(op) and (not op["charge"] or op["charge"][1] == "forms")), "swaps")
            if self.idle(op):
                for k in range(len(op["forms"])):
                    need(self.orders(op, k, range(len(op["tokens"]))) == self.stands(op), "idle")

    @staticmethod
    def stands(op):
        return tuple(order for _, order in op["pins"])

    @staticmethod
    def orders(op, form, perm, swapped=()):
        group, seqs = op["forms"][form]
        turn = lambda p, seq: [*seq[:-2], seq[-1], seq[-2]] if p in swapped and len(seq) > 1 else seq
        return tuple(tuple(a for g in turn(p, seqs[p]) for t in perm if group[t] == g for a in op["tokens"][t].get(p, ()))
                     for p in range(len(op["pins"])))

    def ways(self, op, swaps=False):
        """Every configuration in full, as (form or None, the orders that it names, the orders that count)."""
        yield None, self.stands(op), self.stands(op)
        if self.idle(op):
            return
        turns = [c for n in range(len(op["swaps"]) + 1) for c in itertools.combinations(op["swaps"], n)] if swaps else [()]
        for k, (group, _) in enumerate(op["forms"]):
            for perm in itertools.permutations(range(len(op["tokens"]))):
                named = self.orders(op, k, perm)
                yield from ((k, named, self.orders(op, k, perm, turn)) for turn in turns)

    def configurations(self, op):
        """Every one, in full."""
        return sorted({named for _, named, _ in self.ways(op)})

    def tenths(self, op, form, order):
        """What is charged for a form that has this order of some atoms at pin 0."""
        if not self.by_time or not op["charge"]:
            return 0
        _, rule, tenths, *more = op["charge"]
        if rule == "forms":
            return tenths if form is None else more[form]
        lie = [t for t, _ in itertools.groupby(next(t for t, token in enumerate(op["tokens"]) if a in token.get(0, ())) for a in order)]
        if rule == "last":
            return tenths if len(order) == self.values[op["pins"][0][0]][1] and lie and lie[-1] in more else 0
        return tenths if any(a in more and b not in more for a, b in itertools.combinations(lie, 2)) else 0

    def time_of(self, size):
        return max(1, min(2**42, self.rate[0] * self.rate[1] // 100 + 10 * min(2**42, size)))

    def charge(self, op, form, order):
        return self.tenths(op, form, order) * (self.time_of(op["charge"][0]) // 10 if op["charge"] and self.by_time else 0)

    def cut(self, v, order):
        return order if v not in self.keep else tuple(a for a in order if a in self.keep[v])

    def weight(self, v):
        return (self.time_of(self.values[v][0]), 0) if self.by_time else (1, self.values[v][0])

    def cost_of(self, used):
        """used: for each value the orders named."""
        costs = [(self.weight(v), max(len(u) - 1, 0)) for v, u in used.items()]
        return sum(w[0] * n for w, n in costs), sum(w[1] * n for w, n in costs)

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

    def choices(self, ops, swaps=False):
        """Of each op every configuration that is left, as what it names at its pins: the least that it is charged."""
        out = []
        for op in (self.ops[i] for i in ops):
            found = {}
            for form, _, counted in self.ways(op, swaps):
                names = tuple((v, self.cut(v, o)) for (v, _), o in zip(op["pins"], counted))
                charge = self.charge(op, form, names[0][1]) if names else 0
                found[names] = min(charge, found.get(names, charge))
            out.append(found)
        return out

    def check_folds(self, ops, price=0, swaps=False):
        """By the definition in docs/proof.md."""
        paid = {(v, o) for v, u in self.paid(ops).items() for o in u}
        choices = self.choices(ops, swaps)
        elements = paid | {e for configs in choices for c in configs for e in c}
        image = {e: (e[0], self.fold.get(e[0], {}).get(e[1], e[1])) for e in elements}
        again = {e: (e[0], self.refold.get(e[0], {}).get(e[1], e[1])) for e in elements}
        need(all(image[e] in elements for e in elements), "an image is an order that some op names")
        need(all(image[e] == e for e in paid), "what is paid stands for itself")
        for configs in choices:
            for c, charge in configs.items():
                need(configs.get(tuple(image[e] for e in c), charge + 1) <= charge, "an image is a configuration that is charged no more")
        left = [[(frozenset(c) - paid, x) for c, x in configs.items() if all(image[e] == e for e in c)] for configs in choices]
        certain = {e for sets in left for e in frozenset.intersection(*(c for c, _ in sets))}
        live = {e for e in elements - certain if sum(any(e in c for c, _ in sets) for sets in left) > 1}

        def cost(c, charge):
            weights = [self.weight(v) for v, _ in c - certain - live]
            return self.key((charge + sum(w[0] + price for w in weights), sum(w[1] for w in weights)))
        need(all(again[e] in elements for e in elements), "a second image is an order that some op names", Unnamed)
        for sets in left if self.refold else ():
            for c, x in sets:
                names = {again[e] for e in c & live}
                need(any(b & live <= names and cost(b, y) <= cost(c, x) and all(again[e] == e for e in b & live) for b, y in sets), "a second image")

    def check_spans(self, counts, spans, limit, ops, price, swaps):
        """By the definition in docs/proof.md."""
        fixed = self.paid(ops)
        weigh = lambda v: (self.weight(v)[0] + price) * counts + self.weight(v)[1]
        image = lambda fold, e: fold.get(e[0], {}).get(e[1], e[1]) == e[1]
        sets = [[({e for e in c if e[1] not in fixed.get(e[0], ())}, x * counts) for c, x in configs.items() if all(image(self.fold, e) for e in c)] for configs in self.choices(ops, swaps)]
        for _ in range(2):  # before the second fold, and after it
            certain = {e for configs in sets for e in set.intersection(*(c for c, _ in configs))}
            live = {e for configs in sets for c, _ in configs for e in c if e not in certain and sum(any(e in c for c, _ in other) for other in sets) > 1}
            sets = [[(c, x) for c, x in configs if all(image(self.refold, e) for e in c & live)] for configs in sets]
        values = {v for i in ops for v, _ in self.ops[i]["pins"]}
        private = lambda c: sum(weigh(e[0]) for e in c - certain - live)
        sets = [[(c, x + private(c)) for c, x in configs] for configs in sets]
        least = [min(x for _, x in configs) for configs in sets]
        sets = [[(c, x - low) for c, x in configs] for configs, low in zip(sets, least)]
        total = sum(weigh(v) * (len(fixed.get(v, ())) - 1) for v in values) + sum(weigh(v) for v, _ in certain) + sum(least)
        listed = {e for _, _, w in spans for e in w}
        need(all(v in values and sum(w.get((v, o), 0) for _, _, w in spans) <= weigh(v) for v, o in listed), "an order weighs no more than it does")
        for span, least, w in spans:
            here, sets = sets[:len(span)], sets[len(span):]
            named = {e for configs in here for c, _ in configs for e in c & live}
            weights = {e: w[e] if e in w else 0 if e in listed else weigh(e[0]) for e in named}
            listed |= named
            total += least
            if math.prod(map(len, here)) > MOST:
                raise OverflowError
            found = min(sum(x for _, x in chosen) + sum(weights[e] for e in set().union(*(c & live for c, _ in chosen))) for chosen in itertools.product(*here))
            need(least <= found, "a span is cheaper")
        most = 0 if self.by_time else max(self.values[v][0] for v in values)
        need(total > (limit[0] - 1) * (counts + most) and (limit[1] == 0 or total >= limit[0] * counts + limit[1]), "the spans come to the claim")

    def least(self, ops, price=0, swaps=False):
        """Of what is left, by trying everything."""
        paid, choices = self.paid(ops), self.choices(ops, swaps)
        if math.prod(map(len, choices)) > MOST:
            raise OverflowError
        best = None
        for chosen in itertools.product(*(c.items() for c in choices)):
            used = {v: set(u) for v, u in paid.items()}
            for names, _ in chosen:
                for v, o in names:
                    used.setdefault(v, set()).add(o)
            first, second = self.cost_of(used)
            cost = self.key((first + sum(x for _, x in chosen) + price * sum(len(u) - 1 for u in used.values()), second))
            best = cost if best is None else min(best, cost)
        return (0, 0) if best is None else best

    def standing(self, ops):
        """Conversions of the component as the model stands."""
        values = {v for i in ops for v, _ in self.ops[i]["pins"]}
        return sum(len(u) - 1 for v, u in self.pins_of(self.ops, False).items() if v in values)

    def whole(self, ops, swaps=False, most=math.inf):
        """Of whole orders, the least of the assignments that have no more conversions than that: what a bound must not be above."""
        values = {v for i in ops for v, _ in self.ops[i]["pins"]}
        paid = {v: u for v, u in self.pins_of([o for o in self.ops if self.idle(o)], False).items() if v in values}
        choices = []
        for op in (self.ops[i] for i in ops):
            found = {}
            for form, named, counted in self.ways(op, swaps):
                charge = self.charge(op, form, named[0]) if named else 0
                found[named, counted] = min(charge, found.get((named, counted), charge))
            choices.append([([v for v, _ in op["pins"]], *both, x) for both, x in found.items()])
        if math.prod(map(len, choices)) > MOST:
            raise OverflowError
        best = None
        for chosen in itertools.product(*choices):
            named, counted = ({v: set(u) for v, u in paid.items()} for _ in range(2))
            for pins, a, b, _ in chosen:
                for v, x, y in zip(pins, a, b):
                    named.setdefault(v, set()).add(x)
                    counted.setdefault(v, set()).add(y)
            if sum(len(u) - 1 for u in named.values()) > most:
                continue
            first, second = self.cost_of(counted)
            cost = self.key((first + sum(c[3] for c in chosen), second))
            best = cost if best is None else min(best, cost)
        return best

    def part(self, part):
        """(claim, ops, what it takes or None, price, swaps)"""
        return part if self.by_time else (*part, None, 0, False)

    def assignment(self):
        """The orders that count at each value, and what each op is charged."""
        used, charges = {}, []
        for k, op in enumerate(self.ops):
            chosen = self.orders(op, *op["choice"]) if op["choice"] else self.stands(op)
            form = op["choice"] and op["choice"][0]
            if k in self.swapped:
                form, perm, pins = self.swapped[k]
                need(set(pins) <= set(op["swaps"]) and form < len(op["forms"]) and sorted(perm) == list(range(len(op["tokens"]))), "swap")
                groups = [op["forms"][form][0][t] for t in perm]
                need(groups == sorted(groups) and self.orders(op, form, perm) == chosen, "a swap is of what is named")
                need(any(k in ops and swaps for _, ops, _, _, swaps in self.parts), "a swap in a component that does")
                counted = self.orders(op, form, perm, pins)
            else:
                counted = chosen
            charges.append(self.charge(op, form, chosen[0]) if chosen else 0)
            for (v, _), o in zip(op["pins"], counted):
                used.setdefault(v, set()).add(o)
        return used, charges

    def takes(self, ops, used, charges):
        values = {v for i in ops for v, _ in self.ops[i]["pins"]}
        return self.cost_of({v: used[v] for v in values})[0] + sum(charges[i] for i in ops)

    def check_assignment(self):
        used, charges = self.assignment()
        total = self.cost_of(used)
        need((total[0] + sum(charges), total[1]) == self.cost, "the assignment's cost")
        for _, ops, takes, _, _ in map(self.part, self.parts):
            need(all(i < len(self.ops) for i in ops), "component: ops")
            need(takes in (None, self.takes(ops, used, charges)), "what a component takes")

    def rest(self, held):
        """What fixed ops make the values cost that are in no component."""
        return self.cost_of({v: u for v, u in self.pins_of([o for o in self.ops if self.idle(o)], False).items() if v not in held})

    def check(self):
        self.check_structure()
        self.check_assignment()
        need(max(self.cost) < 2**63 and max(self.bound) < 2**63, "range")
        owner, named = {}, set()
        for k, (_, ops, *_) in enumerate(self.parts):
            for i in ops:
                need(i < len(self.ops) and not self.idle(self.ops[i]) and i not in named, "component: ops")
                named.add(i)
                for v, _ in self.ops[i]["pins"]:
                    need(owner.setdefault(v, k) == k, "a value belongs to one component")
        for i, op in enumerate(self.ops):
            need(self.idle(op) or i in named or not any(v in owner for v, _ in op["pins"]), "a component names all its ops")
        bound = self.rest(owner)
        for claim, *_ in self.parts:
            bound = bound[0] + claim[0], bound[1] + claim[1]
        need(bound == self.bound, "the bound's sum")
        for k, (claim, ops, _, price, swaps) in enumerate(map(self.part, self.parts)):
            need(price <= 2**42, "a price")
            if claim == (0, 0):
                continue  # no cost is negative
            limit = (claim[0] + (price * self.standing(ops) if price else 0), claim[1])
            right = self.key(limit) <= self.least(ops, price, swaps)
            self.check_folds(ops, price, swaps)
            if k in self.spans:
                self.check_spans(*self.spans[k], limit, ops, price, swaps)
                assert right, "spans that come to more than the least"
            need(right, "a component is cheaper")
        if self.time:
            self.time.check()

    def check_whole(self):
        """The same of bounds alone, and by whole orders."""
        for claim, ops, _, price, swaps in map(self.part, self.parts):
            least = self.whole(ops, swaps, self.standing(ops) if price else math.inf)
            need(claim == (0, 0) or self.key(claim) <= least, "a bound that is above the least")
        if self.time:
            self.time.check_whole()


def is_true(text):
    try:
        Statement(text).check()
        return True
    except Bad:
        return False
