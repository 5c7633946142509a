"""What the assignment costs, and the least that any costs: docs/proof.md, section 2.

A component's ops are taken in the file's sequence. A state is a set of (value, order) pairs that are paid; all states after the same
ops have named the same values. Naming a first order of a value is free, every further one costs the value's weight.
"""
import itertools

import numpy as np

from . import Refused

MAXCONFIG = 500_000   # configurations of one op
MAXSTATE = 20_000_000  # pairs of a state and a configuration looked at together
CHUNK = 4096          # states that are compared with those kept before, at a time
MAXPAIR = 1_000_000_000  # ... of a state and two configurations


# ---------------------------------------------------------------------------------------------------- configurations

def as_orders(form, tokens, permuted, npin):
    """The order at each pin, for tokens given in sequence within their groups: permuted = {group: tokens}."""
    return tuple(tuple(a for g in form.seq[i] for t in permuted.get(g, ()) for a in tokens[t][i]) for i in range(npin))


def chosen(op):
    """The order at each pin in the assignment."""
    if op.choice is None:
        return tuple(p.stands for p in op.pins)
    form, sequence = op.forms[op.choice[0]], op.choice[1]
    permuted = {}
    for t in sequence:
        permuted.setdefault(form.group[t], []).append(t)
    return as_orders(form, op.tokens, permuted, len(op.pins))


def restrict(order, keep):
    return order if keep is None else tuple(a for a in order if a in keep)


def configurations(op, keep):
    """All of them, as a sorted tuple of tuples: the order at each pin, with the atoms kept there."""
    npin = len(op.pins)
    kept = [None if k is None else set(k) for k in keep]
    found = {tuple(restrict(p.stands, k) for p, k in zip(op.pins, kept))}
    if op.fixed:
        return tuple(found)
    tokens = [tuple(restrict(a, k) for a, k in zip(token, kept)) for token in op.tokens]
    alive = [t for t, token in enumerate(tokens) if any(token)]
    for form in op.forms:
        groups = {}
        for t in alive:
            groups.setdefault(form.group[t], []).append(t)
        size = 1
        for members in groups.values():
            for i in range(len(members)):
                size *= i + 1
        if size > MAXCONFIG:
            raise Refused(f"'{op.name}' has {size} configurations in one form: restrict it")
        for perms in itertools.product(*(itertools.permutations(m) for m in groups.values())):
            found.add(as_orders(form, tokens, dict(zip(groups, perms)), npin))
    return tuple(sorted(found))


# ---------------------------------------------------------------------------------------------------- the table

class Table:
    """The least cost of one component, as far as it is below a limit."""

    def __init__(self, weight, paid, ops, limit):
        """weight[v]; paid[v]: orders that fixed ops name; ops: (values of the pins, configurations), in sequence."""
        self.weight, self.limit, self.ops = weight, limit, ops
        self.ids = {}
        self.element_weight = []
        self.last = {}
        for k, (values, _) in enumerate(ops):
            for v in values:
                self.last[v] = k
        self.named = {v for v, orders in paid.items() if orders}
        start = [self.element(v, o) for v, orders in paid.items() for o in orders]
        self.columns = np.array(start, dtype=np.int64)
        self.rows = np.ones((1, len(start)), dtype=bool)
        self.cost = np.array([sum(weight[v] * (len(orders) - 1) for v, orders in paid.items() if orders)], dtype=np.int64)

    def element(self, v, order):
        key = (v, order)
        if key not in self.ids:
            self.ids[key] = len(self.ids)
            self.element_weight.append((v, self.weight[v]))
        return self.ids[key]

    def below(self):
        """True if an assignment costs less than the limit."""
        self.prepare()
        if not self.cost[0] < self.limit:
            return False
        for k in range(len(self.ops)):
            self.take(k)
            if not len(self.cost):
                return False
        return True

    def prepare(self):
        """Of each op: its configurations as elements, what each adds for values not named before, and what all that come after
        it pay at least: a pair that no earlier op can name is not paid before."""
        self.steps, least, known, named = [], [], set(self.columns.tolist()), set(self.named)
        for values, configs in self.ops:
            c = np.array([[self.element(v, o) for v, o in zip(values, config)] for config in configs], dtype=np.int64)
            once = np.ones(c.shape, dtype=bool)  # a pair that two pins name counts once
            for i in range(c.shape[1]):
                for j in range(i):
                    once[:, i] &= c[:, i] != c[:, j]
            extra = np.zeros(len(c), dtype=np.int64)
            for v in set(values) - named:
                extra += self.weight[v] * (once[:, [i for i, x in enumerate(values) if x == v]].sum(axis=1) - 1)
            old = [i for i, v in enumerate(values) if v in named]
            unknown = np.ones(len(self.ids), dtype=bool)
            unknown[list(known)] = False
            least.append(int((extra + sum((once[:, i] & unknown[c[:, i]]) * self.weight[values[i]] for i in old)).min()))
            known.update(np.unique(c).tolist())
            named.update(values)
            self.steps.append((c, once, extra, old))
        self.future = [sum(least[k + 1:]) for k in range(len(least))]

    def take(self, k):
        values = self.ops[k][0]
        c, once, extra, old = self.steps[k]
        place = np.full(len(self.ids), len(self.columns), dtype=np.int64)
        place[self.columns] = np.arange(len(self.columns))
        has = np.concatenate([self.rows, np.zeros((len(self.rows), 1), dtype=bool)], axis=1)
        if len(has) * len(c) > MAXSTATE:
            raise Refused(f"the table has {len(has)} states: too many")
        cost = self.cost[:, None] + extra[None, :]
        for i in old:
            cost += np.where(has[:, place[c[:, i]]] | ~once[None, :, i], 0, self.weight[values[i]])
        state, config = np.nonzero((cost < self.limit - self.future[k]) & ~self.outdone(k, c, cost))
        self.cost = cost[state, config]
        self.join(k, values, c, state, config)
        self.prune()

    def outdone(self, k, c, cost):
        """[state, config]: another configuration may buy later what this one has, and cost no more."""
        weight = np.array([w if self.last[v] > k else 0 for v, w in self.element_weight], dtype=np.int64)
        drop = np.zeros(cost.shape, dtype=bool)
        if cost.size * len(c) > MAXPAIR:
            return drop
        later = np.zeros((len(c), len(c)), dtype=np.int64)  # [a, b]: the weight of what b has and a has not
        for i in range(c.shape[1]):
            new = ~np.any([c[:, i] == c[:, j] for j in range(i)], axis=0) if i else np.ones(len(c), dtype=bool)
            lacks = ~np.any([c[:, j][:, None] == c[:, i][None, :] for j in range(c.shape[1])], axis=0)
            later += np.where(lacks & new[None, :], weight[c[:, i]][None, :], 0)
        differ = (later > 0) | (later.T > 0) | (np.arange(len(c))[:, None] < np.arange(len(c))[None, :])
        for a in range(len(c)):  # of two that are alike the first stays
            others = differ[a] & (np.arange(len(c)) != a)
            drop[:, others] |= cost[:, a][:, None] + later[a][None, others] <= cost[:, others]
        return drop

    def join(self, k, values, c, state, config):
        """The states after op k: what is paid, of values that a later op names."""
        stays = [v for v in set(values) if self.last[v] > k]
        pins = [i for i, v in enumerate(values) if v in stays]
        keep = np.array([self.last[self.element_weight[e][0]] > k for e in self.columns], dtype=bool)
        columns = np.unique(np.concatenate([self.columns[keep], c[:, pins].ravel()]).astype(np.int64))
        place = np.zeros(len(self.ids), dtype=np.int64)
        place[columns] = np.arange(len(columns))
        old = np.zeros((len(self.rows), len(columns)), dtype=bool)
        old[:, place[self.columns[keep]]] = self.rows[:, keep]
        new = np.zeros((len(c), len(columns)), dtype=bool)
        for i in pins:
            new[np.arange(len(c)), place[c[:, i]]] = True
        sequence = np.argsort(self.cost, kind="stable")
        state, config, self.cost = state[sequence], config[sequence], self.cost[sequence]
        packed = np.packbits(old, axis=1)[state] | np.packbits(new, axis=1)[config]
        if packed.shape[1]:
            _, first = np.unique(packed.view([("", packed.dtype)] * packed.shape[1]).ravel(), return_index=True)
        else:
            first = np.arange(min(1, len(packed)))
        first.sort()
        self.cost = self.cost[first]
        self.rows = np.unpackbits(packed[first], axis=1, count=len(columns)).astype(bool)
        self.columns = columns
        used = self.rows.any(axis=0)
        self.columns, self.rows = self.columns[used], self.rows[:, used]

    def prune(self):
        """Drops a state if another may buy what it has beyond it without costing more. States come cheapest first."""
        if len(self.cost) < 2:
            return
        rare = np.argsort(self.rows.sum(axis=0), kind="stable")  # columns, from the pairs that fewest states have
        self.columns, self.rows = self.columns[rare], self.rows[:, rare]
        weight = np.array([self.element_weight[e][1] for e in self.columns], dtype=np.int64)
        exact = np.float64 if int(self.cost.max()) + int(weight.sum()) < 2 ** 53 else np.int64  # the former is quicker
        states = States(self.rows, self.cost.astype(exact), weight.astype(exact))
        kept = np.zeros(0, dtype=np.int64)
        for start in range(0, len(self.cost), CHUNK):
            left = states.not_bought(kept, np.arange(start, min(start + CHUNK, len(self.cost))))
            new = np.zeros(0, dtype=np.int64)
            for i in range(0, len(left), 256):
                block = left[i:i + 256]
                block = block[~states.bought(new, block).any(axis=0)]
                earlier = np.triu(np.ones((len(block), len(block)), dtype=bool), 1)
                new = np.concatenate([new, block[~(states.bought(block, block) & earlier).any(axis=0)]])
            kept = np.concatenate([kept, new])
        self.cost, self.rows = self.cost[kept], self.rows[kept]


class States:
    """Which states can buy what others have."""

    def __init__(self, rows, cost, weight):
        self.rows, self.cost, self.weight = rows, cost, weight

    def bought(self, a, b):
        """[a, b]: can state a buy what b has beyond it and still cost no more?"""
        heavy = self.rows[b] * self.weight
        return self.cost[a][:, None] + heavy.sum(axis=1)[None, :] - self.rows[a].astype(heavy.dtype) @ heavy.T <= self.cost[b][None, :]

    def not_bought(self, kept, b):
        """Those of b that no kept state can buy. Who can must have one of any pairs that together weigh more than what b costs beyond
        the cheapest, so only those that have one of b's rarest are asked."""
        if len(kept) < 64:
            return b[~self.bought(kept, b).any(axis=0)]
        slack = self.cost[b] - self.cost[kept[0]]
        heavy = self.rows[b] * self.weight
        before = np.cumsum(heavy, axis=1) - heavy
        asked = self.rows[b] & (before <= slack[:, None])
        stays = heavy.sum(axis=1) > slack  # else the cheapest can
        packed = np.packbits(asked, axis=1)
        _, group = np.unique(packed.view([("", packed.dtype)] * packed.shape[1]).ravel(), return_inverse=True)
        have = self.rows[kept]
        sequence = np.argsort(group, kind="stable")
        for members in np.split(sequence, np.flatnonzero(np.diff(group[sequence])) + 1):
            members = members[stays[members]]
            if len(members):
                some = kept[have[:, asked[members[0]]].any(axis=1)]
                stays[members] = ~self.bought(some, b[members]).any(axis=0)
        return b[stays]


# ---------------------------------------------------------------------------------------------------- the whole

def scalar(cost, base, bytes_first):
    """A (conversions, bytes) pair as one number that compares alike, as long as the second of them is below base."""
    return cost[1] * base + cost[0] if bytes_first else cost[0] * base + cost[1]


def less(a, b, bytes_first):
    return (a[::-1] < b[::-1]) if bytes_first else a < b


def add_up(proof, orders):
    """conversions and bytes of {value: set of orders}."""
    n = {v: max(0, len(s) - 1) for v, s in orders.items()}
    return sum(n.values()), sum(n[v] * proof.values[v].bytes for v in n)


def check_cost(proof):
    """The assignment costs what the claim says."""
    orders = {}
    for op in proof.ops:
        for pin, order in zip(op.pins, chosen(op)):
            orders.setdefault(pin.value, set()).add(order)
    cost = add_up(proof, orders)
    if cost != proof.cost:
        raise Refused(f"the assignment has {cost[0]} conversions and {cost[1]} bytes, the claim says {proof.cost[0]} and {proof.cost[1]}")


def fixed_orders(proof):
    """{value: orders} that are named whatever is chosen, restricted to the atoms that are kept."""
    paid = {v: set() for v in range(len(proof.values))}
    for op in proof.ops:
        if not op.may_move:
            for pin in op.pins:
                keep = proof.values[pin.value].keep
                paid[pin.value].add(restrict(pin.stands, None if keep is None else set(keep)))
    return paid


def check_parts(proof):
    """Components share no value, and name each op that may move and has a pin on one of their values."""
    home, listed = {}, set()
    for o, op in enumerate(proof.ops):
        if not op.fixed and not op.may_move and any(op.tokens and op.tokens[0][i] != p.stands for i, p in enumerate(op.pins)):
            raise Refused(f"op {o} has one token, but not as it stands")
    for k, part in enumerate(proof.parts):
        for o in part.ops:
            if proof.ops[o].fixed or o in listed:
                raise Refused(f"component {k}: op {o} is fixed, or listed twice")
            listed.add(o)
            for pin in proof.ops[o].pins:
                if home.setdefault(pin.value, k) != k:
                    raise Refused(f"component {k}: value {pin.value} is in another component too")
    for o, op in enumerate(proof.ops):
        if op.may_move and o not in listed and any(p.value in home for p in op.pins):
            raise Refused(f"op {o} is on the values of a component that does not list it")
    return home


def check_bound(proof):
    """No assignment costs less than the bound that the claim states. Returns how many different components were looked at."""
    home, paid, done, cache = check_parts(proof), fixed_orders(proof), {}, {}
    rest = add_up(proof, {v: s for v, s in paid.items() if v not in home})
    bound = (rest[0] + sum(p.cost[0] for p in proof.parts), rest[1] + sum(p.cost[1] for p in proof.parts))
    if bound != proof.bound:
        raise Refused(f"components and fixed ops come to {bound[0]} and {bound[1]}, the claim says {proof.bound[0]} and {proof.bound[1]}")
    if less(proof.cost, proof.bound, proof.bytes_first):
        raise Refused("the bound is above the cost of the assignment")
    for k, part in enumerate(proof.parts):
        key, args = component(proof, part, paid, cache)
        if key not in done:
            done[key] = Table(*args).below()
        if done[key]:
            raise Refused(f"component {k} can be had for less than {part.cost[0]} conversions and {part.cost[1]} bytes")
    return len(done)


def component(proof, part, paid, cache):
    """What the least cost depends on, equal for equal components; and the arguments of its table."""
    number, ops = {}, []
    keep = lambda v: proof.values[v].keep
    for o in part.ops:
        op = proof.ops[o]
        values = tuple(number.setdefault(p.value, len(number)) for p in op.pins)
        shape = (tuple(p.stands for p in op.pins), tuple(op.tokens), tuple(op.forms), tuple(keep(p.value) for p in op.pins))
        if shape not in cache:
            cache[shape] = configurations(op, shape[3])
        ops.append((values, cache[shape]))
    size = [proof.values[v].bytes for v in number]
    first, second = (part.cost[1], part.cost[0]) if proof.bytes_first else part.cost
    # No state that has not more than the limit of the first measure has as much as `base` of the second.
    most = sum(len(p) for p, _ in ops) + sum(len(paid[v]) for v in number)
    base = max(second, most if proof.bytes_first else first * max(size, default=0)) + 1
    weight = [scalar((1, b), base, proof.bytes_first) for b in size]
    orders = {i: frozenset(paid[v]) for v, i in number.items()}
    limit = scalar(part.cost, base, proof.bytes_first)
    if limit + sum(weight) * max((len(c) for _, c in ops), default=1) >= 2 ** 62:
        raise Refused("costs are too large to be added exactly")
    key = (limit, base, tuple(weight), tuple(orders.items()), tuple((v, id(c)) for v, c in ops))
    return key, (weight, orders, ops, limit)
