"""What the assignment costs, and the least that any costs: docs/proof.md, sections 2 and 5. table.py finds the least of a component.

Costs are (conversions, bytes), or in the part about times (time, 0)."""
import collections
import dataclasses
import itertools

from . import Refused
from . import spans
from .table import Table

MAXCONFIG = 2 ** 20  # configurations of one op
MAXLISTED = 2 ** 21  # of all ops of a file, but for those that are alike, and of the ops of one component; the largest of the sample models has 80,000
MAXTIME = 2 ** 42    # of a conversion
ENOUGH = 95          # percent of what a component takes that no assignment may be below, for it to be quick


# ---------------------------------------------------------------------------------------------------- configurations

def as_orders(form, tokens, permuted, npin):
    """The order at each pin, for tokens given in sequence within their groups: permuted = {group: tokens}."""
    return tuple(tuple(a for g in form.seq[i] for t in permuted.get(g, ()) for a in tokens[t][i]) for i in range(npin))


def swapped(form, pins):
    """The form with the last two groups exchanged at these pins."""
    seq = [s[:-2] + s[:-3:-1] if i in pins else s for i, s in enumerate(form.seq)]
    return dataclasses.replace(form, seq=tuple(seq))


def with_swaps(op):
    """(number, form) of all forms, by time: also with any of the pins swapped that may be."""
    ways = lambda: (pins for n in range(len(op.swaps) + 1) for pins in itertools.combinations(op.swaps, n))
    return ((k, swapped(form, pins)) for k, form in enumerate(op.forms) for pins in ways())


def chosen(op):
    """The order at each pin in the assignment."""
    if op.choice is None:
        return tuple(p.stands for p in op.pins)
    return written(op, op.forms[op.choice[0]], op.choice[1])


def written(op, form, sequence):
    permuted = {}
    for t in sequence:
        permuted.setdefault(form.group[t], []).append(t)
    return as_orders(form, op.tokens, permuted, len(op.pins))


def restrict(order, keep):
    return order if keep is None else tuple(a for a in order if a in keep)


def charged(op, form, sequence, whole=True):
    """Tenths for a form (None: as it stands) whose tokens lie in this sequence at pin 0; whole: no atom is left out there."""
    c = op.charge
    if c is None:
        return 0
    if c.rule == "forms":
        return c.tenths if form is None else c.more[form]
    if c.rule == "last":
        return c.tenths if whole and sequence and sequence[-1] in c.more else 0
    return c.tenths if behind(sequence, c.more) else 0


def behind(sequence, marked):
    """Does a token that is not marked lie anywhere behind one that is?"""
    return any(t not in marked for t in itertools.dropwhile(lambda t: t not in marked, sequence))


def lying(op, order):
    """The tokens at pin 0 in the sequence in which an order of its atoms, or of some of them, has them."""
    of = {a: t for t, token in enumerate(op.tokens) for a in token[0]}
    return [t for t, _ in itertools.groupby(of[a] for a in order)]


def choice_charged(proof, k):
    """The op's tenths in the assignment. What is swapped is charged as the form is that writes it: that of the choice may write the same, but not swapped."""
    op = proof.ops[k]
    form = proof.swapped[k][0] if k in proof.swapped else op.choice and op.choice[0]
    return charged(op, form, lying(op, chosen(op)[0])) if op.charge else 0


class Listed:
    """How many configurations were listed."""
    count = 0


def configurations(op, keep, by_time=False, swaps=False, listed=None):
    """All of them, with swaps if its component has them, {the order at each pin, with the atoms kept there: the least tenths that it is charged, by time}, sorted."""
    charge = op.charge if by_time else None
    npin = len(op.pins)
    kept = [None if k is None else set(k) for k in keep]
    as_is = tuple(restrict(p.stands, k) for p, k in zip(op.pins, kept))
    if op.fixed:
        return {as_is: 0}
    whole = npin > 0 and (kept[0] is None or len(kept[0]) == len(op.pins[0].stands))
    found = {as_is: charged(op, None, lying(op, as_is[0]), whole) if charge else 0}
    tokens = [tuple(restrict(a, k) for a, k in zip(token, kept)) for token in op.tokens]
    alive = [t for t, token in enumerate(tokens) if any(token)]
    total, listed = 0, listed or Listed()
    for k, form in with_swaps(op) if swaps else enumerate(op.forms):
        groups = {}
        for t in alive:
            groups.setdefault(form.group[t], []).append(t)
        size = 1
        for members in groups.values():
            for i in range(len(members)):
                size *= i + 1
        total, listed.count = total + size, listed.count + size
        if total > MAXCONFIG:
            raise Refused(f"'{op.name}' has more than {MAXCONFIG} configurations: restrict it")
        if listed.count > MAXLISTED:
            raise Refused(f"'{op.name}': with it there are more than {MAXLISTED} configurations to list: restrict it")
        for perms in itertools.product(*(itertools.permutations(m) for m in groups.values())):
            permuted = dict(zip(groups, perms))
            config = as_orders(form, tokens, permuted, npin)
            lie = [t for g in form.seq[0] for t in permuted.get(g, ()) if tokens[t][0]] if charge else ()
            found[config] = min(charged(op, k, lie, whole) if charge else 0, found.get(config, MAXTIME))
    return dict(sorted(found.items()))


def images(value, fold):
    """{order of the kept atoms: the one that stands in for it}, or None."""
    if fold is None:
        return None
    orders = list(itertools.permutations(range(len(value.sizes)) if value.keep is None else value.keep))
    return {o: orders[i] for o, i in zip(orders, fold)}


def folded(op, configs, folds):
    """The configurations that are their own images, if each one's image is a configuration, and charged no more."""
    image = lambda c: tuple(o if f is None else f[o] for f, o in zip(folds, c))
    for c, tenths in configs.items():
        if configs.get(image(c), MAXTIME) > tenths:
            raise Refused(f"'{op.name}': the image of {c} is no configuration" + (", or is charged more" if op.charge else ""))
    return {c: tenths for c, tenths in configs.items() if image(c) == c}


def refolded(ops, orders, weight, again):
    """Of ops, [(values of the pins, {configuration: what it costs by itself})], the configurations that are left when what is paid for certain is out and
    the rest folded again. orders, weight: of each value; again: its {order: image}, or None."""
    sets = [{c: frozenset((v, o) for v, o in zip(values, c) if o not in orders[v]) for c in configs} for values, configs in ops]
    named = collections.Counter(e for s in sets for e in frozenset().union(*s.values()))
    certain = frozenset().union(*(frozenset.intersection(*s.values()) for s in sets))
    live = {e for e, n in named.items() if n > 1 and e not in certain}
    image = lambda e: (e[0], again[e[0]][e[1]]) if again[e[0]] else e
    left = []
    for (values, configs), s in zip(ops, sets):
        own = {c: x + sum(weight[e[0]] for e in s[c] if e not in live and e not in certain) for c, x in configs.items()}
        stays = {c: s[c] & live for c in configs if all(image(e) == e for e in s[c] & live)}
        by = collections.defaultdict(list)
        for c, found in stays.items():
            for e in found or (None,):
                by[e].append(c)
        for c in configs:
            of = {image(e) for e in s[c] & live}
            if c not in stays and not any(stays[b] <= of and own[b] <= own[c] for e in itertools.chain((None,), of) for b in by[e]):
                raise Refused(f"the second image of {c}, of values {values}, is no configuration, or costs more")
        left.append((values, {c: configs[c] for c in stays}))
    return left


# ---------------------------------------------------------------------------------------------------- the whole

def scalar(cost, base, bytes_first):
    """A (conversions, bytes) pair as one number that compares alike, as long as the second of them is below base."""
    return cost[1] * base + cost[0] if bytes_first else cost[0] * base + cost[1]


def less(a, b, bytes_first):
    return (a[::-1] < b[::-1]) if bytes_first else a < b


def weight_of(proof, v):
    if not proof.by_time:
        return 1, proof.values[v].bytes
    return time_of(proof, proof.values[v].bytes), 0


def time_of(proof, size):
    """A conversion of so many bytes."""
    fixed, rate = proof.rate
    return max(1, min(MAXTIME, fixed * rate // 100 + 10 * min(MAXTIME, size)))


def unit(proof, op):
    """What a tenth costs of what the op is charged by."""
    return time_of(proof, op.charge.bytes) // 10 if proof.by_time and op.charge else 0


def add_up(proof, orders):
    """What {value: set of orders} costs."""
    n = {v: max(0, len(s) - 1) for v, s in orders.items()}
    weight = {v: weight_of(proof, v) for v in n if n[v]}
    return sum(n[v] * w[0] for v, w in weight.items()), sum(n[v] * w[1] for v, w in weight.items())


def counted(proof, k, op):
    """The order at each pin in the assignment, by time as it counts: with what is swapped."""
    if k not in proof.swapped:
        return chosen(op)
    number, sequence, pins = proof.swapped[k]
    form = op.forms[number]
    if written(op, form, sequence) != chosen(op):
        raise Refused(f"'{op.name}': a swap of what it does not name")
    return written(op, swapped(form, pins), sequence)


def all_orders(proof):
    """{value: orders that the assignment names}"""
    orders = {}
    for k, op in enumerate(proof.ops):
        for pin, order in zip(op.pins, counted(proof, k, op)):
            orders.setdefault(pin.value, set()).add(order)
    return orders


def part_cost(proof, part, orders):
    ops = [proof.ops[o] for o in part.ops]
    cost = add_up(proof, {p.value: orders[p.value] for op in ops for p in op.pins})
    return cost[0] + sum(choice_charged(proof, o) * unit(proof, proof.ops[o]) for o in part.ops), cost[1]


def check_times(proof):
    """The same of the part about times: in all, and of each component."""
    if not set(proof.swapped) <= {o for part in proof.parts if part.swaps for o in part.ops}:
        raise Refused("what is swapped is in no component that does")
    orders = all_orders(proof)
    cost = add_up(proof, orders)[0] + sum(choice_charged(proof, k) * unit(proof, op) for k, op in enumerate(proof.ops))
    if (cost, 0) != proof.cost:
        raise Refused(f"the assignment takes a time of {cost}, the claim says {proof.cost[0]}")
    for k, part in enumerate(proof.parts):
        if (takes := part_cost(proof, part, orders)[0]) != part.takes:
            raise Refused(f"component {k} takes a time of {takes}, the file says {part.takes}")


def check(proof):
    """All graphs of a file: each assignment costs what its claim says, and none costs less than its bound."""
    listed = Listed()
    for graph in proof.graphs:
        check_cost(graph)
        check_bound(graph, listed)


def check_cost(proof):
    """The assignment costs what the claim says."""
    cost = add_up(proof, all_orders(proof))
    if proof.time:
        check_times(proof.time)
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
        f = images(value, value.fold) if found[v] else None
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


def check_bound(proof, listed=None):
    """No assignment costs less than the bound that the claim states. Returns how many different components were looked at."""
    listed = listed or Listed()
    return check_table(proof, listed) + (check_table(proof.time, listed) if proof.time else 0)


def check_table(proof, listed):
    home, paid, done, cache = check_parts(proof), fixed_orders(proof), {}, {}
    rest = add_up(proof, {v: s for v, s in paid.items() if v not in home})
    bound = (rest[0] + sum(p.cost[0] for p in proof.parts), rest[1] + sum(p.cost[1] for p in proof.parts))
    if bound != proof.bound:
        raise Refused(f"components and fixed ops come to {bound[0]} and {bound[1]}, the claim says {proof.bound[0]} and {proof.bound[1]}")
    if not proof.by_time and less(proof.cost, proof.bound, proof.bytes_first):  # a price leaves out what has more conversions
        raise Refused("the bound is above the cost of the assignment")
    paid = restricted(proof, {v: s for v, s in paid.items() if v in home and proof.parts[home[v]].cost != (0, 0)})
    for k, part in enumerate(proof.parts):
        if part.cost == (0, 0):
            continue  # no cost is negative
        key, below = component(proof, part, paid, cache, listed)
        if key not in done:
            done[key] = below()
        if done[key]:
            if part.spans:
                raise Refused(f"the spans of component {k} do not show what it claims")
            if proof.by_time:
                raise Refused(f"component {k} can be had in less than a time of {part.cost[0]}")
            raise Refused(f"component {k} can be had for less than {part.cost[0]} conversions and {part.cost[1]} bytes")
    return len(done)


def shown(proof):
    """Conversions of the assignment: where none has fewer (objective bytes: moves fewer), where none is clearly quicker, and the rest.
    Then what the rest takes, and what nothing is below, in ns, where such a bound is stated."""
    orders, fixed, few, quick = all_orders(proof), fixed_orders(proof), set(), set()
    values = lambda part: {p.value for o in part.ops for p in proof.ops[o].pins}
    for part in proof.parts:
        cost = part_cost(proof, part, orders)
        if cost == part.cost or (not proof.bytes_first and cost[0] == part.cost[0]):
            few |= values(part)
    found = [0] * 5
    for part in proof.time.parts if proof.time else ():
        if part.cost[0] >= part.takes - part.takes // 100 * (100 - ENOUGH):
            quick |= values(part)
        elif not values(part) <= few:
            found[3] += part.takes * 100 // proof.time.rate[1]
            found[4] += part.cost[0] * 100 // proof.time.rate[1]
    for v, s in orders.items():
        found[0 if v in few or s == fixed[v] else 1 if v in quick else 2] += len(s) - 1
    return tuple(found)


def standing(proof, values):
    """Conversions of these values as the model stands."""
    orders = {v: set() for v in values}
    for op in proof.ops:
        for p in op.pins:
            if p.value in orders:
                orders[p.value].add(p.stands)
    return sum(len(s) - 1 for s in orders.values())


def component(proof, part, paid, cache, listed):
    """What the least cost depends on, equal for equal components; and a function that tells whether it is below what the part claims, or, of spans, whether they fail to show that it is not."""
    number, ops = {}, []
    keep = lambda v: proof.values[v].keep
    for o in part.ops:
        op = proof.ops[o]
        values = tuple(number.setdefault(p.value, len(number)) for p in op.pins)
        shape = (tuple(p.stands for p in op.pins), tuple(op.tokens), tuple(op.forms), tuple(keep(p.value) for p in op.pins),
                 tuple(proof.values[p.value].fold for p in op.pins), op.charge and (op.charge.rule, op.charge.tenths, op.charge.more), part.swaps and op.swaps)
        if shape not in cache:
            cache[shape] = folded(op, configurations(op, shape[3], proof.by_time, part.swaps, listed), [images(v, v.fold) for v in (proof.values[p.value] for p in op.pins)])
        ops.append((values, (cache[shape], unit(proof, op))))
    if sum(len(c) for _, (c, _) in ops) > MAXLISTED:
        raise Refused(f"the component of '{proof.ops[part.ops[0]].name}' has more than {MAXLISTED} configurations: restrict it")
    weight, limit = times(proof, part, number) if proof.by_time else conversions(proof, part, number, ops, paid)
    orders = {i: frozenset(paid[v]) for v, i in number.items()}
    again = tuple(proof.values[v].refold for v in number)
    weighs = tuple((s.nop, s.least, tuple((number.get(v), tuple(w.items())) for v, w in s.weigh.items())) for s in part.spans)
    key = (limit, tuple(weight), tuple(orders.items()), again, tuple((v, id(c), u) for v, (c, u) in ops), part.counts, weighs)

    def below():
        costs = [(v, {o: x * u for o, x in c.items()}) for v, (c, u) in ops]
        if any(again):
            costs = refolded(costs, orders, weight, [images(v, v.refold) for v in (proof.values[v] for v in number)])
        if part.spans:
            return not spans.shown(*in_spans(proof, part, number, weight, orders, costs, limit))
        return Table(weight, orders, costs, limit).below()
    return key, below


def in_spans(proof, part, number, weight, orders, ops, limit):
    """Arguments of spans.shown, of those of the table."""
    sizes = [proof.values[v].bytes for v in number]
    found = []
    for s in part.spans:
        if not s.weigh.keys() <= number.keys():
            raise Refused("a span weighs orders of a value of another component")
        weighs = {(number[v], o): w for v, more in s.weigh.items() for o, w in spans.places(proof.values[v], more).items()}
        found.append(dataclasses.replace(s, weigh=weighs))
    if proof.by_time:
        ops = [(values, {c: x * part.counts for c, x in configs.items()}) for values, configs in ops]
        return found, part.counts, len(number), lambda v: weight[v] * part.counts, orders, ops, limit, 0, 0
    return found, part.counts, len(number), lambda v: part.counts + sizes[v], orders, ops, *part.cost, max(sizes)


def conversions(proof, part, number, ops, paid):
    size = [proof.values[v].bytes for v in number]
    first, second = (part.cost[1], part.cost[0]) if proof.bytes_first else part.cost
    # No state that has not more than the limit of the first measure has as much as `base` of the second.
    most = sum(len(p) for p, _ in ops) + sum(len(paid[v]) for v in number)
    base = max(second, most if proof.bytes_first else first * max(size, default=0)) + 1
    return [scalar((1, b), base, proof.bytes_first) for b in size], scalar(part.cost, base, proof.bytes_first)


def times(proof, part, number):
    """With a price a conversion costs that, too, and each that the model itself has there may be paid for."""
    limit = part.cost[0] + part.price * (standing(proof, number) if part.price else 0)
    if limit >= 2 ** 52:
        raise Refused("times are too large to be added exactly")
    return [weight_of(proof, v)[0] + part.price for v in number], limit
