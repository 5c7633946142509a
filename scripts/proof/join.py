"""Ops of a table that are joined to one, value after value (Bertele and Brioschi 1972: elimination).

All ops that name a value become one, whose configurations are theirs in all combinations. What no other op names is paid there:

    a: x1 x2 | x2        b: x1 y1 | x2 y2        joined for x: y1 (costs x1), y2 (x1 and x2), ...

Of two configurations that name the same pairs the dearer goes, and any from which another one may buy what it names. Values whose ops have few
combinations come first. What is left has fewer ops with more configurations, and as many conversions.
"""
import heapq

import numpy as np

from .states import distinct, unbought

MOST = 1 << 14   # combinations that are tried for a value
STAYS = 1 << 10  # configurations of an op that is left


class Op:
    """columns: pairs, ascending; rows: [configuration, column]; own: what each costs, without the pairs."""

    def __init__(self, columns, rows, own):
        self.columns, self.rows, self.own = columns, rows, own

    def values(self, value):
        return set(value[self.columns].tolist())


def op_of(configs, own):
    columns = np.unique(configs)
    columns = columns[columns > 0]
    return Op(columns, np.any(configs[:, :, None] == columns[None, None, :], axis=1), own)


def both(a, b):
    columns = np.union1d(a.columns, b.columns)
    wide = []
    for x in (a, b):
        rows = np.zeros((len(x.own), len(columns)), dtype=bool)
        rows[:, np.searchsorted(columns, x.columns)] = x.rows
        wide.append(rows)
    rows = (wide[0][:, None, :] | wide[1][None, :, :]).reshape(-1, len(columns))
    return Op(columns, rows, (a.own[:, None] + b.own[None, :]).ravel())


def settled(op, here, weight):
    """The pairs `here` (bool, by column), which no other op names, are paid; without the configurations that are never needed."""
    own = op.own + op.rows[:, here] @ weight[op.columns[here]]
    columns, rows = op.columns[~here], op.rows[:, ~here]
    cost = own + rows @ weight[columns]
    stay = distinct(rows, cost)
    stay = stay[unbought(rows[stay], cost[stay], weight[columns])]
    return Op(columns, rows[stay], own[stay])


class Joiner:
    def __init__(self, ops, value, weight):
        self.value, self.weight = value, weight
        self.ops = dict(enumerate(op_of(c, own) for c, own in ops))
        self.users = {}
        for k, op in self.ops.items():
            for v in op.values(value):
                self.users.setdefault(v, set()).add(k)
        self.gone = set()

    def combinations(self, v):
        n = 1
        for k in self.users[v]:
            n *= len(self.ops[k].own)
        return n

    def without(self, v):
        """The op that names all that the ops of v do, but for v; None: it would have too many configurations."""
        parts = sorted((self.ops[k] for k in self.users[v]), key=lambda op: len(op.own))
        op = parts[0]
        for k, part in enumerate(parts[1:]):
            if len(op.own) * len(part.own) > MOST:
                return None
            op = both(op, part)
            op = settled(op, self.value[op.columns] == (v if k == len(parts) - 2 else -1), self.weight)
        op = settled(op, self.value[op.columns] == v, self.weight)
        return op if len(op.own) <= STAYS else None

    def run(self):
        todo = [(self.combinations(v), v) for v in self.users]
        heapq.heapify(todo)
        while todo:
            n, v = heapq.heappop(todo)
            if v in self.gone or n != self.combinations(v) or (op := self.without(v)) is None:
                continue
            place = max(self.users[v])
            for k in self.users.pop(v):
                for u in self.ops.pop(k).values(self.value) - {v}:
                    self.users[u].discard(k)
            self.gone.add(v)
            self.ops[place] = op
            for u in op.values(self.value):
                self.users[u].add(place)
                heapq.heappush(todo, (self.combinations(u), u))
        return [self.ops[k] for k in sorted(self.ops)]


def joined(ops, value, weight):
    """ops: (array [configuration, pin] of pairs, 0: free; what each configuration costs by itself); value[pair], weight[pair]. The ops that are
    left, as (values, configurations, costs), and the values that none of them names any more."""
    joiner = Joiner(ops, value, weight)
    found = []
    for op in joiner.run():
        width = int(op.rows.sum(axis=1).max(initial=0))
        configs = np.zeros((len(op.own), width), dtype=np.int64)
        for row, named in zip(configs, op.rows):
            row[:named.sum()] = op.columns[named]
        found.append((np.unique(value[op.columns]), configs, op.own))
    return found, joiner.gone
