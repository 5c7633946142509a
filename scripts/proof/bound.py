"""What the assignment costs, and the least that any costs: docs/proof.md, section 2. table.py finds the least of a component."""
import itertools

from . import Refused
from .table import Table

MAXCONFIG = 500_000  # configurations of one op


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


def images(value):
    """{order of the kept atoms: the one that stands in for it}, or None."""
    if value.fold is None:
        return None
    orders = list(itertools.permutations(range(len(value.sizes)) if value.keep is None else value.keep))
    return {o: orders[i] for o, i in zip(orders, value.fold)}


def folded(op, configs, folds):
    """The configurations that are their own images, if each one's image is a configuration."""
    image = lambda c: tuple(o if f is None else f[o] for f, o in zip(folds, c))
    there = set(configs)
    for c in configs:
        if image(c) not in there:
            raise Refused(f"'{op.name}': the image of {c} is no configuration")
    return tuple(c for c in configs if image(c) == c)


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
    """{value: orders} that are named whatever is chosen."""
    paid = {v: set() for v in range(len(proof.values))}
    for op in proof.ops:
        if not op.may_move:
            for pin in op.pins:
                paid[pin.value].add(pin.stands)
    return paid


def restricted(proof, paid):
    """The same with the atoms alone that are kept; all of them are their own images."""
    found = {}
    for v, orders in paid.items():
        value = proof.values[v]
        found[v] = {restrict(o, None if value.keep is None else set(value.keep)) for o in orders}
        f = images(value) if found[v] else None
        if f and any(f[o] != o for o in found[v]):
            raise Refused(f"value {v}: a fixed op names an order that another stands in for")
    return found


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
    paid = restricted(proof, {v: s for v, s in paid.items() if v in home})
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
        shape = (tuple(p.stands for p in op.pins), tuple(op.tokens), tuple(op.forms), tuple(keep(p.value) for p in op.pins),
                 tuple(proof.values[p.value].fold for p in op.pins))
        if shape not in cache:
            cache[shape] = folded(op, configurations(op, shape[3]), [images(proof.values[p.value]) for p in op.pins])
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
