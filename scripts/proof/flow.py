"""The least cost of a component where each op has two configurations at most, by a flow (docs/proof.md, section 2).

Of an op's two configurations one is called a, the other b, so that no pair (value, order) is in an a of one op and in a b of another. An
op that takes b lies on the source's side of a cut, one that takes a on the sink's; arcs of the cut are what is paid:

    source -> pair of a's -> op -> pair of b's -> sink

from the source and to the sink the weight of the pair, between pairs and ops no limit. What a costs by itself is an arc from the source to the
op, what b costs one from the op to the sink. The least cut is as large as the largest flow; each flow is a bound.
"""
from collections import deque

SOURCE, SINK = "source", "sink"


def sides(ops):
    """ops: [(pairs of one configuration, pairs of the other)], sets. The configuration of each op that is its a; None where there is no
    such naming."""
    namers, a, stack = {}, {}, []
    for o, configs in enumerate(ops):
        for c, pairs in enumerate(configs):
            for e in pairs:
                namers.setdefault(e, []).append((o, c))
    for first in range(len(ops)):
        if first in a:
            continue
        a[first] = 0
        stack.append(first)
        while stack:
            o = stack.pop()
            for c, pairs in enumerate(ops[o]):
                for e in pairs:
                    for other, k in namers[e]:
                        want = k if c == a[o] else 1 - k
                        if other not in a:
                            a[other] = want
                            stack.append(other)
                        elif a[other] != want:
                            return None
    return a


class Network:
    def __init__(self):
        self.number, self.out, self.to, self.room = {}, [], [], []

    def node(self, name):
        if name not in self.number:
            self.number[name] = len(self.out)
            self.out.append([])
        return self.number[name]

    def arc(self, start, end, room):
        if room:
            for u, v, r in ((start, end, room), (end, start, 0)):
                self.out[self.node(u)].append(len(self.to))
                self.to.append(self.node(v))
                self.room.append(r)

    def levels(self, source):
        """Distances from the source over arcs that have room."""
        level, queue = {source: 0}, deque([source])
        while queue:
            u = queue.popleft()
            for i in self.out[u]:
                if self.room[i] and self.to[i] not in level:
                    level[self.to[i]] = level[u] + 1
                    queue.append(self.to[i])
        return level

    def largest(self):
        """The largest flow from source to sink."""
        source, sink, flow = self.node(SOURCE), self.node(SINK), 0
        while sink in (level := self.levels(source)):
            todo, path, u = [list(arcs) for arcs in self.out], [], source
            while True:
                if u == sink:
                    least = min(self.room[i] for i in path)
                    for i in path:
                        self.room[i] -= least
                        self.room[i ^ 1] += least
                    flow += least
                    full = next(k for k, i in enumerate(path) if not self.room[i])
                    u, path = self.to[path[full] ^ 1], path[:full]
                while todo[u] and not (self.room[todo[u][-1]] and level.get(self.to[todo[u][-1]]) == level[u] + 1):
                    todo[u].pop()
                if todo[u]:
                    path.append(todo[u][-1])
                    u = self.to[path[-1]]
                elif not path:
                    break
                else:
                    u = self.to[path.pop() ^ 1]
                    todo[u].pop()
        return flow


def least(configs, weight):
    """configs: for each op [(set of pairs, its own cost)]; weight[pair]. None where this file has nothing to say."""
    if any(len(c) > 2 for c in configs):
        return None
    certain = set().union(*(set.intersection(*(pairs for pairs, _ in c)) for c in configs))
    total = sum(weight[e] for e in certain) + sum(c[0][1] for c in configs if len(c) == 1)
    two = [c for c in configs if len(c) == 2]
    a = sides([(c[0][0] - certain, c[1][0] - certain) for c in two])
    if a is None:
        return None
    n, limit = Network(), sum(weight.values()) + sum(own for c in two for _, own in c) + 1
    outer = set()
    for o, c in enumerate(two):
        (in_a, own_a), (in_b, own_b) = c[a[o]], c[1 - a[o]]
        n.arc(SOURCE, ("op", o), own_a)
        n.arc(("op", o), SINK, own_b)
        for e in in_a - certain:
            n.arc(e, ("op", o), limit)
            outer.add((SOURCE, e))
        for e in in_b - certain:
            n.arc(("op", o), e, limit)
            outer.add((e, SINK))
    for start, end in sorted(outer, key=str):
        n.arc(start, end, weight[end if start == SOURCE else start])
    return total + n.largest()
