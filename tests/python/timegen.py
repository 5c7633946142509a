"""Hand-made certificates with a second part, about times (docs/proof.md, section 5), and what is true of them by trying every assignment.

make(rng) -> Timed: a certificate of proofgen.py with random charges, and the least time of its component; text(...) says it, or another.
Nothing here uses a checker.
"""
import dataclasses
import itertools

import proofgen

MOST = 3000  # assignments that are tried


@dataclasses.dataclass
class Timed:
    made: proofgen.Made
    rate: tuple
    charges: dict    # op -> (bytes, rule, tenths, tuple)
    choice: list     # per op: (form, tokens), or None
    cost: tuple      # conversions and bytes of the choice
    takes: int       # the time of the choice in the component
    rest: int        # the time of all values that are not in it
    price: int
    least: int       # of the component: nothing that has no more conversions than the model as it stands is below, as the price shows
    swaps: dict      # op -> pins where it may swap
    swapping: bool   # the component does
    swapped: dict    # op -> pins: what the choice swaps
    plain: int       # the least without swaps

    def text(self, bound=None, takes=None, charges=None, keep=(), price=None, total=None, swaps=None, swapping=None, swapped=None):
        bound, takes = self.least if bound is None else bound, self.takes if takes is None else takes
        lines = self.made.text(self.cost, self.made.best, self.choice).split("\n")[:-2]
        lines.insert(2, "rate {} {}".format(*self.rate))
        for k, (size, rule, tenths, more) in (self.charges if charges is None else charges).items():
            at = next(i for i, s in enumerate(lines) if s.startswith(f"op {k} "))
            while lines[at + 1].split()[0] in ("pin", "token", "form"):
                at += 1
            lines.insert(at + 1, f"charge {size} {rule} {tenths}" + "".join(f" {x}" for x in more))
        for k, pins in (self.swaps if swaps is None else swaps).items():
            at = next(i for i, s in enumerate(lines) if s.startswith(f"op {k} "))
            while lines[at + 1].split()[0] in ("pin", "token", "form", "charge"):
                at += 1
            lines.insert(at + 1, "swaps" + "".join(f" {p}" for p in pins))
        lines.append("time")
        for k, pins in (self.swapped if swapped is None else swapped).items():
            form, tokens = self.choice[k]
            lines.append(f"swap {k} {form}" + "".join(f" {t}" for t in tokens) + " |" + "".join(f" {p}" for p in pins))
        lines += [f"keep {v}" + "".join(f" {a}" for a in atoms) for v, atoms in keep]
        lines.append(f"component 0 {takes} {bound} {self.price if price is None else price}"
                     + (" swaps" if (self.swapping if swapping is None else swapping) else "") + "".join(f" {k}" for k in self.made.sequence))
        lines += [f"claim {self.takes + self.rest if total is None else total} {bound + self.rest}", "end", ""]
        return "\n".join(lines)


def tenths_of(op, charge, choice):
    """Of a choice: (form, tokens), or None: as it stands."""
    if charge is None:
        return 0
    _, pins, tokens, forms = op
    _, rule, tenths, more = charge
    if rule == "forms":
        return tenths if choice is None else more[choice[0]]
    if choice is None:
        lie = [t for t, _ in itertools.groupby(next(t for t, x in enumerate(tokens) if a in x[0]) for a in pins[0][1])]
    else:
        group, seqs = forms[choice[0]]
        lie = [t for g in seqs[0] for t in choice[1] if group[t] == g and tokens[t][0]]
    if rule == "last":
        return tenths if lie and lie[-1] in more else 0
    return tenths if any(a in more and b not in more for a, b in itertools.combinations(lie, 2)) else 0


def turned(seqs, pins):
    """With the last two groups exchanged at these pins."""
    return [(*s[:-2], s[-1], s[-2]) if p in pins and len(s) > 1 else tuple(s) for p, s in enumerate(seqs)]


def subsets(pins):
    return [c for n in range(len(pins) + 1) for c in itertools.combinations(pins, n)]


def choices_of(op, charge, swaps=()):
    """{orders at the pins: (the least tenths, all choices that name them)}; swaps: pins where they may swap."""
    fixed, pins, tokens, forms = op
    found = {tuple(o for _, o in pins): [None]}
    for f, (group, seqs) in enumerate(forms if not fixed else ()):
        for perm in itertools.permutations(range(len(tokens))):
            if [group[t] for t in perm] == sorted(group):
                for way in subsets(swaps):
                    found.setdefault(proofgen.orders_of(tokens, group, turned(seqs, way), perm), []).append((f, perm))
    return {o: (min(tenths_of(op, charge, c) for c in cs), cs) for o, cs in found.items()}


def conversion(rate, size):
    return max(1, rate[0] * rate[1] // 100 + 10 * size)


def random_charge(r, op):
    tokens, forms = op[2], op[3]
    size, rule, tenths = r.choice([8, 96, 1000]), r.choice(["forms", "after", "after", "last"]), r.choice([1, 3, 15, 40])
    some = tuple(sorted(r.sample(range(len(tokens)), r.randint(1, len(tokens) - 1))))
    return size, rule, tenths, tuple(r.choice([0, 0, 3, 15, 40]) for _ in forms) if rule == "forms" else some


def times(m, rate, charges, picked, held):
    """(conversions, time) inside of the component, and the time outside. picked: per op (orders, tenths)."""
    used = {}
    for op, (orders, _) in zip(m.ops, picked):
        for (v, _), o in zip(op[1], orders):
            used.setdefault(v, set()).add(o)
    inner, count = 0, 0
    for k, (_, tenths) in enumerate(picked):
        inner += tenths * (conversion(rate, charges[k][0]) // 10) if k in charges else 0
    outer = 0
    for v, orders in used.items():
        t = (len(orders) - 1) * conversion(rate, m.values[v][0])
        inner, outer = (inner + t, outer) if v in held else (inner, outer + t)
        count += len(orders) - 1 if v in held else 0
    return count, inner, outer


def make(r):
    while True:
        m = proofgen.make(r)
        rate = r.choice([(0, 100), (500, 8192), (3, 100)])
        charges = {k: random_charge(r, m.ops[k]) for k in m.sequence if r.random() < 0.7}
        may = [k for k in m.sequence if k not in charges or charges[k][1] == "forms"]
        swaps = {k: random_pins(r, range(len(m.ops[k][1]))) for k in sorted(may) if r.random() < 0.6}
        swapping = r.random() < 0.7
        all_choices = [choices_of(op, charges.get(k)) for k, op in enumerate(m.ops)]
        timed = [choices_of(op, charges.get(k), swaps.get(k, ()) if swapping else ()) for k, op in enumerate(m.ops)]
        size = 1
        for c in timed:
            size *= len(c)
        if not m.sequence or size > MOST:
            continue
        return finish(r, m, rate, charges, all_choices, timed, swaps, swapping)


def random_pins(r, pins):
    return tuple(sorted(r.sample(pins, r.randint(1, len(pins)))))


def finish(r, m, rate, charges, all_choices, timed, swaps, swapping):
    held = {v for k in m.sequence for v, _ in m.ops[k][1]}
    price = r.choice([0, 0, 1, 100, 50000])
    own = times(m, rate, charges, [(tuple(o for _, o in op[1]), 0) for op in m.ops], held)[0]
    try_all = lambda choices: [times(m, rate, charges, [(o, c[o][0]) for o, c in zip(pick, choices)], held)[:2]
                               for pick in itertools.product(*choices)]
    least_of = lambda tried: min(t + price * n for n, t in tried) - (price * own if price else 0)
    tried = try_all(timed)
    least = least_of(tried)
    assert all(t >= least for n, t in tried if n <= own or not price)
    orders = [r.choice(sorted(c)) for c in all_choices]
    choice = [r.choice(c[o][1]) if r.random() < 0.5 else c[o][1][0] for o, c in zip(orders, all_choices)]
    swapped = {k: random_pins(r, pins) for k, pins in swaps.items() if swapping and choice[k] and r.random() < 0.6}
    counted = list(orders)
    for k, pins in swapped.items():
        _, _, tokens, forms = m.ops[k]
        group, seqs = forms[choice[k][0]]
        counted[k] = proofgen.orders_of(tokens, group, turned(seqs, pins), choice[k][1])
    picked = [(o, tenths_of(op, charges.get(k), x)) for k, (o, op, x) in enumerate(zip(counted, m.ops, choice))]
    _, takes, rest = times(m, rate, charges, picked, held)
    return Timed(m, rate, charges, choice, proofgen.price(m.values, m.ops, orders), takes, rest, price, max(0, least), swaps,
                 swapping, swapped, max(0, least_of(try_all(all_choices))))


def wrong(r, t):
    """(what was done, the text): files that say something false."""
    yield "a bound above the least", t.text(bound=t.least + 1)
    keep = [(v, sorted(r.sample(range(n), r.randint(1, n)))) for v, (_, n) in enumerate(t.made.values) if r.random() < 0.7]
    yield "the same, with atoms left out", t.text(bound=t.least + 1, keep=keep)
    yield "what the component takes", t.text(takes=t.takes + r.choice([-1, 1]))
    yield "what all takes", t.text(total=t.takes + t.rest + r.choice([-1, 1]))
    if t.swapping and t.plain > t.least:
        yield "a bound that holds without swaps", t.text(bound=t.plain)
    for k, pins in t.swapped.items():
        yield "a swap of a component that has none", t.text(swapping=False)
        yield "a swap of an op that may not", t.text(swaps={a: x for a, x in t.swaps.items() if a != k})
        if others := sorted(set(range(len(t.made.ops[k][1]))) - set(t.swaps[k])):
            yield "a swap at a pin that may not", t.text(swapped={**t.swapped, k: (others[0],)})
        form, tokens = t.choice[k]
        yield "a swap of a form that is not there", t.text().replace(f"\nswap {k} {form} ", f"\nswap {k} {len(t.made.ops[k][3])} ")
    for k, (size, rule, tenths, more) in t.charges.items():
        if t.choice[k] and rule == "forms":
            now = tuple(x + (f == t.choice[k][0]) for f, x in enumerate(more))
            yield "the charge of the form that is chosen", t.text(charges={**t.charges, k: (size, rule, tenths, now)})
        elif tenths_of(t.made.ops[k], t.charges[k], t.choice[k]):
            yield "the tenths of the choice", t.text(charges={**t.charges, k: (size, rule, tenths + 1, more)})
            yield "no charge, though the choice is charged", t.text(charges={a: c for a, c in t.charges.items() if a != k})
