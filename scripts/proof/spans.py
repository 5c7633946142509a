"""A component whose table is taken in spans: docs/proof.md, section 2.

Runs of its ops, one after another, are tables of their own, in which a pair (value, order) weighs a part of its weight. Costs are one number: a conversion
counts `counts` of the file, beside its bytes. With what is paid for certain, and what one op alone can name, out of the way,

    cost >= what is paid for certain - one order of each value that no fixed op names + the sum of what the spans cost at least
"""
import collections
import itertools

from . import Refused
from .table import LARGE, Table


class Weighed(Table):
    """A table of few ops, whose pairs weigh what is said of each; all that have no weight are free."""
    JOINS = False

    def __init__(self, number, ops, weight, limit):
        super().__init__([0] * number, {v: (None,) for v in range(number)}, ops, limit)
        self.cost_of[1:] = [weight[e] for e in self.ids if e != (None, None)]


def settled(ops, paid):
    """(what is paid for certain, [(values, {order at each pin, None where nothing is left to pay: what it costs beyond that})]): what one op alone can name is
    in what it costs. ops: as of Table; paid: function that tells what a pair weighs, 0 for one that fixed ops name."""
    sets = [[frozenset(e for e in zip(values, c) if paid(e)) for c in configs] for values, configs in ops]
    users = collections.Counter(e for s in sets for e in frozenset().union(*s))
    certain = frozenset().union(*(frozenset.intersection(*s) for s in sets))
    cost, left = sum(map(paid, certain)), []
    for (values, configs), s in zip(ops, sets):
        found = {}
        for (c, own), named in zip(configs.items(), s):
            alone = {e for e in named if users[e] == 1 and e not in certain}
            shown = tuple(e[1] if e in named and e not in certain and e not in alone else None for e in zip(values, c))
            found[shown] = min(own + sum(map(paid, alone)), found.get(shown, own + sum(map(paid, alone))))
        least = min(found.values())
        cost += least
        left.append((values, {c: own - least for c, own in found.items()}))
    return cost, left


def shares(spans, ops, size):
    """For each span {pair: what it weighs there}: as it says; what no span says anything of, in the first that names it, as a whole."""
    given = collections.Counter()
    for span in spans:
        given.update(span.weigh)
    if any(w > size(v) for (v, _), w in given.items()):
        raise Refused("an order weighs more in the spans than it does")
    seen, found, at = set(given), [], 0
    for span in spans:
        named = {e for values, configs in ops[at:at + span.nop] for c in configs for e in zip(values, c) if e[1] is not None}
        found.append({e: span.weigh[e] if e in span.weigh else 0 if e in seen else size(e[0]) for e in named})
        seen, at = seen | named, at + span.nop
    return found


def without(ops, weight):
    """The ops where only pairs that weigh something are named."""
    left = []
    for values, configs in ops:
        found = {}
        for c, own in configs.items():
            shown = tuple(o if o is not None and weight[v, o] else None for v, o in zip(values, c))
            found[shown] = min(own, found.get(shown, own))
        left.append((values, found))
    return left


def shown(spans, counts, number, size, fixed, ops, claim, minor, most):
    """Do the spans show that no choice costs less than (claim, minor)? size(v): what a conversion of it costs; fixed: {value: orders that fixed ops name}; ops: as of Table, costs as
    size has them; most: what a conversion moves at most, of what minor counts."""
    weight = lambda e: 0 if e[1] in fixed[e[0]] else size(e[0])
    named = {e for values, configs in ops for c in configs for e in zip(values, c)}
    if sum(map(weight, named)) + claim * counts + max((x for _, configs in ops for x in configs.values()), default=0) * len(ops) >= LARGE:
        raise Refused("costs are too large to be added exactly")
    certain, ops = settled(ops, weight)
    cost = certain + sum(size(v) * (len(fixed[v]) - 1) for v in range(number)) + sum(s.least for s in spans)
    if cost <= (claim - 1) * (counts + most) or (minor and cost < claim * counts + minor):
        return False
    at = 0
    for span, weighs in zip(spans, shares(spans, ops, size)):
        once, left = settled(without(ops[at:at + span.nop], weighs), lambda e: 0 if e[1] is None else weighs[e])
        limit = span.least - once
        if limit > 0 and Weighed(number, left, weighs, limit).below():
            return False
        at += span.nop
    return True


def places(value, weighs):
    """{order: weight} of {place in the dictionary of the kept atoms' orders: weight}"""
    orders = list(itertools.permutations(range(len(value.sizes)) if value.keep is None else value.keep))
    return {orders[i]: w for i, w in weighs.items()}
