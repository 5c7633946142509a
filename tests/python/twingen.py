"""Certificates to deceive a checker with: two components, the second like the first but for one thing, and the claims of both those of the first.

make(rng) -> the text; whether it is true is for referee.py to say.  Both parts, with atoms left out, folds at random, prices, charges and swaps.
Nothing here uses a checker.
"""
import copy
import dataclasses
import math

import proofgen
import timegen
from referee import Bad, Statement


@dataclasses.dataclass
class Bound:
    """How a part of the file looks at the component."""
    keep: dict
    fold: dict
    refold: dict
    sequence: list
    price: int
    swapping: bool


@dataclasses.dataclass
class Twin:
    values: list   # (bytes, number of atoms)
    ops: list      # as in proofgen.py: (fixed, pins, tokens, forms)
    charges: dict  # op -> (bytes, rule, tenths, tuple)
    swaps: dict    # op -> pins
    choice: dict   # op -> (form, tokens)
    swapped: dict  # op -> (form, tokens, pins)
    count: Bound
    time: Bound


def may_move(op):
    return not op[0] and len(op[2]) > 1


def random_choice(r, op):
    f = r.randrange(len(op[3]))
    return f, sorted(r.sample(range(len(op[2])), len(op[2])), key=lambda t: op[3][f][0][t])


def random_fold(r, n):
    to = list(range(n))
    for _ in range(r.randint(1, 2)):
        x = r.randrange(n)
        to = [x if y == r.randrange(n) else y for y in to]
        to[x] = x
    return to


def random_bound(r, values, sequence):
    keep, folds = {}, [{}, {}]
    for v, (_, n) in enumerate(values):
        if r.random() < 0.6:
            keep[v] = sorted(r.sample(range(n), r.randint(0 if r.random() < 0.1 else 1, n)))
    for fold in folds:
        if r.random() < 0.4:
            fold.update((v, random_fold(r, math.factorial(len(k)))) for v, k in keep.items() if len(k) in (2, 3) and r.random() < 0.5)
    return Bound(keep, *folds, r.sample(sequence, len(sequence)), r.choice([0, 0, 1, 7, 1000]), r.random() < 0.6)


def random_op(r, values):
    fixed, pins, tokens, forms = proofgen.random_op(r, values)
    if r.random() < 0.3:  # it has no choice but to stay as it stands
        each = list(range(len(tokens)))
        forms = [(each, [r.sample(each, len(each)) for _ in pins])]
    if r.random() < 0.5 and len(tokens) > 1:
        form, perm = random_choice(r, (fixed, pins, tokens, forms))
        orders = proofgen.orders_of(tokens, *forms[form], perm)
        pins = [(v, o) for (v, _), o in zip(pins, orders)]
    return fixed, pins, tokens, forms


def first(r):
    while True:
        values = [(r.choice([0, 8, 8, 24, 1000]), r.choice([1, 2, 2, 3, 3])) for _ in range(r.choice([1, 1, 2, 3]))]
        ops = [random_op(r, values) for _ in range(r.choice([1, 1, 2, 3]))]
        sequence = [k for k, op in enumerate(ops) if may_move(op)]
        if sequence:
            break
    for v, (_, n) in enumerate(values):
        ops += [(True, [(v, tuple(r.sample(range(n), n)))], [], []) for _ in range(r.choice([0, 0, 1, 1, 2]))]
    charges = {k: timegen.random_charge(r, ops[k]) for k in sequence if r.random() < 0.6}
    swaps = {k: timegen.random_pins(r, range(len(ops[k][1]))) for k in sequence if (k not in charges or charges[k][1] == "forms") and r.random() < 0.5}
    choice = {k: random_choice(r, ops[k]) for k in sequence if r.random() < 0.5}
    return Twin(values, ops, charges, swaps, choice, {}, random_bound(r, values, sequence), random_bound(r, values, sequence))


# ---------------------------------------------------------------------------------------------------- one thing

def change_order(r, t):
    k = r.randrange(len(t.ops))
    fixed, pins, tokens, forms = t.ops[k]
    p = r.randrange(len(pins))
    pins[p] = pins[p][0], tuple(r.sample(pins[p][1], len(pins[p][1])))


def change_unseen(r, t):
    """Where an atom lies that is left out."""
    keep = r.choice([t.count, t.time]).keep
    places = [(pins, p) for _, pins, _, _ in t.ops for p, (v, o) in enumerate(pins) if v in keep and len(keep[v]) < len(o)]
    if places:
        pins, p = r.choice(places)
        v, order = pins[p]
        atom = r.choice(sorted(set(order) - set(keep[v])))
        rest = [a for a in order if a != atom]
        rest.insert(r.randint(0, len(rest)), atom)
        pins[p] = v, tuple(rest)


def change_tokens(r, t):
    k = r.choice([k for k, op in enumerate(t.ops) if may_move(op)])
    _, pins, tokens, _ = t.ops[k]
    p = r.randrange(len(pins))
    a, b = r.randrange(len(tokens)), r.randrange(len(tokens))
    x, y = list(map(list, tokens[a])), list(map(list, tokens[b]))
    if r.random() < 0.5:
        x[p], y[p] = y[p], x[p]
    elif a != b and len(x[p]) > 1:
        y[p].append(x[p].pop(0))
    else:
        y[p].reverse()
    tokens[a], tokens[b] = tuple(map(tuple, x)), tuple(map(tuple, y))


def change_form(r, t):
    forms = r.choice([op for op in t.ops if may_move(op)])[3]
    k = r.randrange(len(forms))
    group, seqs = forms[k]
    if r.random() < 0.5:
        group[r.randrange(len(group))] = r.choice(group)
    else:
        p = r.randrange(len(seqs))
        seqs[p] = r.sample(seqs[p] + [7] if r.random() < 0.3 else seqs[p], len(seqs[p]) + (0 if 7 in seqs[p] else 0))


def change_charge(r, t):
    k = r.choice([k for k, op in enumerate(t.ops) if may_move(op)])
    if k in t.charges and r.random() < 0.3:
        del t.charges[k]
    elif k in t.charges:
        size, rule, tenths, more = t.charges[k]
        how = r.randrange(3)
        more = tuple(r.choice([0, 3, 15]) for _ in more) if rule == "forms" else timegen.random_pins(r, range(len(t.ops[k][2])))
        t.charges[k] = (size + 8 * (how == 0), rule, tenths + (how == 1), more if how == 2 else t.charges[k][3])
    elif k not in t.swaps:
        t.charges[k] = timegen.random_charge(r, t.ops[k])


def change_swaps(r, t):
    k = r.choice([k for k, op in enumerate(t.ops) if may_move(op)])
    if k in t.swaps and r.random() < 0.5:
        del t.swaps[k]
    elif k not in t.charges or t.charges[k][1] == "forms":
        t.swaps[k] = timegen.random_pins(r, range(len(t.ops[k][1])))


def change_value(r, t):
    v = r.randrange(len(t.values))
    t.values[v] = t.values[v][0] + r.choice([1, 8, 100]), t.values[v][1]


def change_pin(r, t):
    k = r.randrange(len(t.ops))
    pins = t.ops[k][1]
    p = r.randrange(len(pins))
    v = r.choice([w for w, (_, n) in enumerate(t.values) if n == t.values[pins[p][0]][1]])
    pins[p] = v, pins[p][1]


def change_bound(r, t):
    for b in (t.count, t.time):
        other = random_bound(r, t.values, b.sequence)
        what = r.choice(["keep", "fold", "refold", "sequence", "price", "swapping"])
        setattr(b, what, getattr(other, what))
        if what == "keep":
            b.fold, b.refold = {}, {}
        b.fold, b.refold = ({v: f for v, f in x.items() if v in b.keep and len(f) == math.factorial(len(b.keep[v]))} for x in (b.fold, b.refold))


CHANGES = [change_order, change_unseen, change_unseen, change_tokens, change_form, change_charge, change_charge, change_swaps, change_value, change_pin, change_bound, lambda r, t: None]


# ---------------------------------------------------------------------------------------------------- the file

def swaps_of(r, t):
    """Some, each by a form that writes what is chosen."""
    for k, pins in t.swaps.items():
        _, own, tokens, forms = t.ops[k]
        named = tuple(o for _, o in own) if k not in t.choice else proofgen.orders_of(tokens, *forms[t.choice[k][0]], t.choice[k][1])
        ways = [(f, perm) for f in range(len(forms)) for _ in range(3) for perm in [random_choice(r, (0, 0, tokens, [forms[f]]))[1]]
                if proofgen.orders_of(tokens, *forms[f], perm) == named]
        if ways and r.random() < 0.6:
            t.swapped[k] = (*r.choice(ways), timegen.random_pins(r, pins))


def bound_lines(twins, which, claims):
    """claims: of each, (the numbers of its line)."""
    bounds, at = [getattr(t, which) for t in twins], 0
    starts = [0, len(twins[0].values)]
    for what in ("keep", "fold", "refold"):
        for start, b in zip(starts, bounds):
            yield from (f"{what} {v + start}" + "".join(f" {x}" for x in to) for v, to in sorted(getattr(b, what).items()))
    for k, (t, b, claim) in enumerate(zip(twins, bounds, claims)):
        swaps = " swaps" if which == "time" and b.swapping else ""
        yield f"component {k} " + " ".join(map(str, claim)) + swaps + "".join(f" {o + at}" for o in b.sequence)
        at += len(t.ops)


def op_lines(t, k, op, start, at):
    fixed, pins, tokens, forms = op
    yield f'op {at + k} node "n{at + k}" Some' + (" fixed" if fixed else "")
    yield from (f'pin {v + start} "t{at + k}.{i}"' + "".join(f" {a}" for a in o) for i, (v, o) in enumerate(pins))
    yield from ("token" + "".join(f" {i}:{','.join(map(str, a))}" for i, a in enumerate(x) if a) for x in tokens)
    yield from ("form" + "".join(f" {g}" for g in group) + "".join(" |" + "".join(f" {g}" for g in s) for s in seqs) for group, seqs in forms)
    if k in t.charges:
        size, rule, tenths, more = t.charges[k]
        yield f"charge {size} {rule} {tenths}" + "".join(f" {x}" for x in more)
    if k in t.swaps:
        yield "swaps" + "".join(f" {p}" for p in t.swaps[k])


def text_of(twins, head, counts, times, claims):
    lines, at, starts = list(head), [0, len(twins[0].ops)], [0, len(twins[0].values)]
    for start, t in zip(starts, twins):
        lines += [f'value {start + v} "v{start + v}" bytes {size} atoms' + " 2" * n for v, (size, n) in enumerate(t.values)]
    for start, a, t in zip(starts, at, twins):
        for k, op in enumerate(t.ops):
            lines += op_lines(t, k, op, start, a)
    for a, t in zip(at, twins):
        lines += [f"choose {a + k} {f} " + " ".join(map(str, perm)) for k, (f, perm) in sorted(t.choice.items())]
    lines += bound_lines(twins, "count", counts)
    lines += ["outside 0", "claim " + " ".join(map(str, claims[0])), "time"]
    for a, t in zip(at, twins):
        lines += [f"swap {a + k} {f} " + " ".join(map(str, perm)) + " |" + "".join(f" {p}" for p in pins) for k, (f, perm, pins) in sorted(t.swapped.items())]
    lines += bound_lines(twins, "time", times)
    return "\n".join([*lines, "claim " + " ".join(map(str, claims[1])), "end", ""])


def make(r):
    """(text, whether it may count as a fold, ...)."""
    while True:
        a = first(r)
        b = copy.deepcopy(a)
        for t in (a, b):
            swaps_of(r, t)
        if r.random() < 0.5:
            b.swapped = copy.deepcopy(a.swapped)
        r.choice(CHANGES)(r, b)
        twins = [a, b] if r.random() < 0.7 else [b, a]
        head = ["relayout.proof/1", r.choice(["objective nodes", "objective bytes"]), r.choice(["rate 0 100", "rate 3 100"])]
        try:
            return filled(r, twins, head)
        except (Bad, OverflowError):
            continue


def filled(r, twins, head):
    zero = [(0, 0)] * 2
    s = Statement(text_of(twins, head, zero, [(0, 0, t.time.price) for t in twins], [(0, 0, 0, 0), (0, 0)]))
    s.check_structure()
    counts, times, sums = [], [], []
    for part in (s, s.time):
        used, charges = part.assignment()
        total = part.cost_of(used)
        least = []
        for _, ops, _, price, swaps in map(part.part, part.parts):
            key = part.key(part.least(ops, price, swaps))
            least.append((max(0, key[0] - (price * part.standing(ops) if price else 0)), key[1]))
        which = [least[0], least[0] if r.random() < 0.8 else least[1]]
        if r.random() < 0.15:
            k = r.randrange(2)
            which[k] = which[k][0] + 1, which[k][1]
        if r.random() < 0.2:  # true of the first, but perhaps not to be seen with atoms left out
            _, ops, _, price, swaps = part.part(part.parts[0])
            which = [part.key(part.whole(ops, swaps, part.standing(ops) if price else math.inf))] * 2
        rest = part.rest({v for _, ops, *_ in part.parts for i in ops for v, _ in part.ops[i]["pins"]})
        bound = [rest[i] + sum(w[i] for w in which) for i in range(2)]
        if part.by_time:
            times = [(part.takes(ops, used, charges), w[0], price) for w, (_, ops, _, price, _) in zip(which, part.parts)]
            sums.append((total[0] + sum(charges), bound[0]))
        else:
            counts = which
            sums.append((*total, *bound))
    return text_of(twins, head, counts, times, sums)
