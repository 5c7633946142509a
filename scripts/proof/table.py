"""The table of a component: can its ops cost less than a limit? (docs/proof.md, section 2)

A component's ops are taken in the file's sequence. A state is the set of (value, order) pairs that are paid and that a later op can still
name; orders that fixed ops name are free and in no state. All states after the same ops have named the same values. Naming a first order
of a value that no fixed op names is free, every further one costs the value's weight. What is dropped, and why that is safe:

    limit      a state whose cost, with what the ops to come must pay whatever was paid before, reaches the limit
    bought     a state B, when another state A has cost(A) + weight(B without A) <= cost(B): A may buy what B has
    outdone    the same between two configurations in one state
    merged     where there are too many states some become one: all that any of them paid, at the least cost of them. That is better than
               each of them, so if no merged state stays below the limit, none would
    met        the next pass takes the ops backwards, and knows for each cut between two ops the states of the pass before: what both
               sides paid at the cut was counted twice, and one free first order per value. If no pair is below the limit, neither is
               the whole

Passes alternate, with room for more states each time, until none is left below the limit, or one is and nothing was merged. Where each op has
two configurations at most, one pass that merges is enough: flow.py knows the least cost. Elsewhere ops are joined then (join.py).
"""
import numpy as np

from . import Refused
from . import flow
from .join import joined
from .states import as_words, exact, unbought

FIRST, MOST = 128, 1 << 15  # states of the first pass, and of the last
CHUNK = 4096                # states that are compared with those kept before, at a time
MAXPAIR = 300_000_000       # triples of a state and two configurations
MAXCELL = 60_000_000        # pairs of a state and a configuration
MAXLATER = 4096             # configurations that are compared with each other
LARGE = 2 ** 60             # a few whole numbers below are added exactly


class Table:
    JOINS = True  # where one pass does not do, as it has many ops

    def __init__(self, weight, paid, ops, limit):
        """weight[v]; paid[v]: orders that fixed ops name; ops: (values of the pins, {configuration: what it costs by itself}), in sequence."""
        self.weight, self.paid = weight, paid
        self.limit = limit - sum(weight[v] * (len(orders) - 1) for v, orders in paid.items() if orders)
        self.ids, self.owner, self.ops, self.own = {}, [], [], []
        self.free = np.array([v for v in range(len(weight)) if not paid.get(v)], dtype=np.int64)
        self.element(None, None)  # 0: all that is free
        for values, configs in ops:
            c = np.array([[self.element(v, o) for v, o in zip(values, config)] for config in configs], dtype=np.int64).reshape(len(configs), -1)
            for i in range(1, c.shape[1]):  # a pair that two pins name counts once
                for j in range(i):
                    c[:, i] = np.where(c[:, i] == c[:, j], 0, c[:, i])
            self.ops.append((np.array(values, dtype=np.int64), c))
            self.own.append(np.array(list(configs.values()), dtype=np.int64))
        all_weights = [weight[v] for v in self.owner[1:]]
        if limit + sum(all_weights) + max((x for _, configs in ops for x in configs.values()), default=0) >= LARGE:
            raise Refused("costs are too large to be added exactly")
        self.value = np.array(self.owner, dtype=np.int64)
        self.cost_of = np.array([0] + all_weights, dtype=np.int64)

    def element(self, v, order):
        if v is not None and order in self.paid.get(v, ()):
            return 0
        if (v, order) not in self.ids:
            self.ids[v, order] = len(self.ids)
            self.owner.append(-1 if v is None else v)
        return self.ids[v, order]

    def below(self):
        """True if an assignment costs less than the limit."""
        if self.limit <= 0:
            return False
        layers, room, forward, joined_ = None, FIRST, True, not self.JOINS
        while True:
            run = Pass(self, forward, layers, room)
            if not run.survives():
                return False
            if not run.merged:
                return True
            if room == FIRST and (least := self.by_flow()) is not None:
                return least < self.limit
            if not joined_:
                self.join()
                layers, room, forward, joined_ = None, FIRST, True, True
                continue
            if room >= MOST:
                raise Refused(f"a table of {len(self.ops)} ops needs more than {MOST} states")
            layers, room, forward = run.layers, room * 2, not forward

    def join(self):
        """Fewer ops, that cost the same."""
        found, gone = joined([(c, own) for (_, c), own in zip(self.ops, self.own)], self.value, self.cost_of)
        self.ops, self.own = [(values, configs) for values, configs, _ in found], [own for *_, own in found]
        self.limit += sum(self.weight[v] for v in gone & set(self.free.tolist()))

    def by_flow(self):
        """The least cost, or None."""
        weight = {e: w for e, w in enumerate(self.cost_of.tolist()) if e}
        configs = [[(set(row) - {0}, own) for row, own in zip(c.tolist(), costs.tolist())] for (_, c), costs in zip(self.ops, self.own)]
        least = flow.least(configs, weight)
        return None if least is None else least - sum(self.weight[v] for v in self.free.tolist())


class Pass:
    """All ops once, in one direction. layers[k]: the states at the cut before op k, as (columns, rows, cost)."""

    def __init__(self, table, forward, guide, room):
        self.t, self.guide, self.room, self.forward = table, guide, room, forward
        self.sequence = list(range(len(table.ops)))[::1 if forward else -1]
        self.merged, self.layers = False, {}
        self.last, self.first = dict.fromkeys(table.owner, -1), {}
        for place, k in enumerate(self.sequence):
            for v in table.ops[k][0].tolist():
                self.last[v] = place
                self.first.setdefault(v, place)
        self.columns = np.zeros(0, dtype=np.int64)
        self.rows = np.ones((1, 0), dtype=bool)
        self.cost = np.zeros(1, dtype=np.int64)
        self.prepare()

    def prepare(self):
        """Of each op what its configurations cost when none of their pairs is paid; and what all that come after it pay at least:
        a pair that no earlier op can name is not paid before."""
        t = self.t
        known = np.zeros(len(t.value), dtype=bool)
        least, self.extra = [], []
        for place, k in enumerate(self.sequence):
            values, c = t.ops[k]
            credit = sum(t.weight[v] for v in set(values.tolist()) if self.first[v] == place and not t.paid.get(v))
            self.extra.append(-credit)
            least.append(int((np.where(known[c], 0, t.cost_of[c]).sum(axis=1) + t.own[k]).min()) - credit)
            known[c] = True
        self.future = [sum(least[p + 1:]) for p in range(len(least))]

    def survives(self):
        for place, k in enumerate(self.sequence):
            self.take(place, k)
            if not len(self.cost):
                return False
            self.layers[k + 1 if self.forward else k] = (self.columns, self.rows, self.cost)
        return True

    def take(self, place, k):
        t, (values, c) = self.t, self.t.ops[k]
        at = np.full(len(t.value), len(self.columns), dtype=np.int64)
        at[self.columns] = np.arange(len(self.columns))
        has = np.concatenate([self.rows, np.zeros((len(self.rows), 1), dtype=bool)], axis=1)
        state, config, cost = [], [], []
        step = max(1, MAXCELL // len(c))
        later = self.later(place, c) if len(c) <= MAXLATER else None
        for start in range(0, len(has), step):
            part = has[start:start + step]
            x = self.cost[start:start + step, None] + (t.own[k] + self.extra[place])[None, :]
            for i in range(c.shape[1]):
                x += np.where(part[:, at[c[:, i]]], 0, t.cost_of[c[:, i]])
            s, g = np.nonzero((x < t.limit - self.future[place]) & ~self.outdone(later, x))
            state.append(s + start)
            config.append(g)
            cost.append(x[s, g])
        self.join(place, values, c, np.concatenate(state), np.concatenate(config), np.concatenate(cost))
        self.meet(k + 1 if self.forward else k)
        self.prune()
        if len(self.cost) > self.room:
            self.merge()

    def later(self, place, c):
        """[a, b]: the weight of what configuration b has, a has not, and a later op can name."""
        t = self.t
        alive = np.array([w if v >= 0 and self.last[v] > place else 0 for v, w in zip(t.value.tolist(), t.cost_of.tolist())], dtype=np.int64)
        later = np.zeros((len(c), len(c)), dtype=np.int64)
        for i in range(c.shape[1]):
            lacks = ~np.any([c[:, j][:, None] == c[:, i][None, :] for j in range(c.shape[1])], axis=0)
            later += np.where(lacks, alive[c[:, i]][None, :], 0)
        return later

    def outdone(self, later, cost):
        """[state, config]: another configuration may buy later what this one has, and cost no more."""
        n = cost.shape[1]
        drop = np.zeros(cost.shape, dtype=bool)
        if later is None or cost.size * n > MAXPAIR:
            return drop
        before = np.arange(n)[:, None] < np.arange(n)[None, :]  # of two that are alike the first stays
        differ = (later > 0) | (later.T > 0) | before
        np.fill_diagonal(differ, False)
        for a in range(n):
            b = differ[a]
            drop[:, b] |= cost[:, a][:, None] + later[a][None, b] <= cost[:, b]
        return drop

    def join(self, place, values, c, state, config, cost):
        """The states after an op: what is paid, of values that a later op names; cheapest first."""
        t = self.t
        stays = np.array([v >= 0 and self.last[v] > place for v in t.value.tolist()], dtype=bool)
        keep = stays[self.columns]
        new = np.unique(c[stays[c]])
        columns = np.union1d(self.columns[keep], new)
        at = np.zeros(len(t.value), dtype=np.int64)
        at[columns] = np.arange(len(columns))
        old = np.zeros((len(self.rows), len(columns)), dtype=bool)
        old[:, at[self.columns[keep]]] = self.rows[:, keep]
        named = np.zeros((len(c), len(columns)), dtype=bool)
        for i in range(c.shape[1]):
            here = stays[c[:, i]]
            named[np.flatnonzero(here), at[c[here, i]]] = True
        sequence = np.argsort(cost, kind="stable")
        state, config, cost = state[sequence], config[sequence], cost[sequence]
        packed = np.packbits(old, axis=1)[state] | np.packbits(named, axis=1)[config]
        first = np.sort(np.unique(as_words(packed), return_index=True)[1]) if packed.shape[1] else np.arange(min(1, len(packed)))
        self.cost = cost[first]
        self.rows = np.unpackbits(packed[first], axis=1, count=len(columns)).astype(bool) if len(columns) else np.ones((len(first), 0), dtype=bool)
        used = self.rows.any(axis=0)
        self.columns, self.rows = columns[used], self.rows[:, used]

    def meet(self, cut):
        """Drops what cannot be completed below the limit by any state that the pass before had at this cut."""
        if not self.guide or cut not in self.guide or not len(self.cost):
            return
        t, (columns, rows, cost) = self.t, self.guide[cut]
        place = self.sequence.index(cut - 1 if self.forward else cut)
        credit = sum(t.weight[v] for v in t.free.tolist() if v in self.first and self.first[v] <= place < self.last[v])
        both, mine, theirs = np.intersect1d(self.columns, columns, return_indices=True)
        weight = t.cost_of[both]
        number = exact(weight, self.cost, cost, credit)
        least = np.full(len(self.cost), np.iinfo(np.int64).max, dtype=number)
        a = self.rows[:, mine] * weight.astype(number)
        for start in range(0, len(cost), CHUNK):
            b = rows[start:start + CHUNK, theirs].astype(number)
            for i in range(0, len(a), CHUNK):
                shared = a[i:i + CHUNK] @ b.T
                least[i:i + CHUNK] = np.minimum(least[i:i + CHUNK], (cost[start:start + CHUNK][None, :] - shared).min(axis=1))
        ok = self.cost + least + credit < t.limit
        self.cost, self.rows = self.cost[ok], self.rows[ok]

    def prune(self):
        """Drops a state if another may buy what it has beyond it without costing more. States come cheapest first."""
        if len(self.cost) < 2:
            return
        crowd = len(self.cost) > 20 * self.room  # most will be merged anyway: a quick look will do
        size, most = (64, self.room) if crowd else (256, 4 * self.room)
        kept = unbought(self.rows, self.cost, self.t.cost_of[self.columns], size, most)
        self.cost, self.rows = self.cost[kept], self.rows[kept]

    def merge(self):
        """The cheapest half of the room stays; each other state joins the one of the rest that it differs least from."""
        self.merged = True
        half = self.room // 2
        rest = np.arange(half, len(self.cost))
        pivots = rest[np.linspace(0, len(rest) - 1, half).astype(np.int64)]
        weight = self.t.cost_of[self.columns].astype(np.float64)
        near = np.zeros(len(rest), dtype=np.int64)
        of_pivot = self.rows[pivots] * weight
        for i in range(0, len(rest), CHUNK):
            mine = self.rows[rest[i:i + CHUNK]]
            shared = mine.astype(np.float64) @ of_pivot.T
            apart = (mine * weight).sum(axis=1)[:, None] + of_pivot.sum(axis=1)[None, :] - 2 * shared
            near[i:i + CHUNK] = (apart + np.abs(self.cost[rest[i:i + CHUNK]][:, None] - self.cost[pivots][None, :])).argmin(axis=1)
        rows, cost = np.zeros((half, self.rows.shape[1]), dtype=bool), np.full(half, np.iinfo(np.int64).max)
        np.logical_or.at(rows, near, self.rows[rest])
        np.minimum.at(cost, near, self.cost[rest])
        used = np.unique(near)
        self.rows = np.concatenate([self.rows[:half], rows[used]])
        self.cost = np.concatenate([self.cost[:half], cost[used]])
        sequence = np.argsort(self.cost, kind="stable")
        self.cost, self.rows = self.cost[sequence], self.rows[sequence]
        self.prune()
