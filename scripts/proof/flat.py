"""One graph of the nodes of all bodies: an If, Loop or Scan becomes Enter and Leave with its bodies' nodes between them.

    y, s = Loop(n, c, x) body { in i, d, a; b = Relu(a); out d, b, b }      i, d, a, t = Enter(n, c, x);  b = Relu(a);  y, s = Leave(t, d, b, b)
    y = If(c) then { out p } else { out q }                                y = Leave(c, p, q)

Two steps. First tensors get names that no other graph has: a body's tensor whose name is taken goes by name#n, n being the number of
its region. Regions: 0 is the graph; the bodies of a node get the next numbers, then what is in the first of them, then in the
second. Sizes are inferred from bodies as they stand, by these names; then the nodes are put into one sequence.

Not opened, so nodes like any other: those whose bodies have other inputs or outputs than the node, or a result or constant with the
name of a tensor outside (an input may have one).
"""
import dataclasses

from onnx import AttributeProto

TURNS, MAXTURNS = 16, 65536  # of a loop whose number of turns is not known; of nested ones in all


@dataclasses.dataclass
class Region:
    parent: int
    repeats: bool = False
    trips: str = ""  # the tensor that says how many turns a Loop takes at most


@dataclasses.dataclass
class Ends:
    """What was the node."""
    op: str
    node: object
    bodies: int
    enter: object = None


def graphs_of(proto):
    """All that a node's attributes hold."""
    return [g for a in proto.attribute for g in ([a.g] if a.type == AttributeProto.GRAPH else a.graphs)]


def bodies_of(node):
    """The bodies of an If, Loop or Scan that fit; []: it stays as it is."""
    if node.domain != "" or node.op not in ("If", "Loop", "Scan"):
        return []
    names = ("then_branch", "else_branch") if node.op == "If" else ("body",)
    if any(n not in node.attrs for n in names):
        return []
    bodies = [node.attrs[n].g for n in names]
    old = node.op == "Scan" and node.opset < 9
    least = {"If": 0, "Loop": 2, "Scan": 1 + old}[node.op]
    nin = 0 if node.op == "If" else len(node.input) - old
    nout = len(node.output) + (node.op == "Loop")
    fits = lambda b: len(b.input) == nin and (len(b.output) >= nout if node.op == "Loop" else len(b.output) == nout)
    return bodies if len(node.input) >= least and all(map(fits, bodies)) else []


def made(proto):
    return {t.name for t in proto.initializer} | {o for n in proto.node for o in n.output if o}


def own(proto):
    return {v.name for v in proto.input} | made(proto)


class Namer:
    def __init__(self, graph):
        self.graph, self.taken = graph, own(graph.proto)
        self.regions, self.opened = [Region(-1)], {}
        scope = {n: n for n in self.taken}
        self.walk(graph.nodes, scope, 0)
        graph.take(graph.proto)

    def walk(self, nodes, scope, region):
        for n in nodes:
            bodies = bodies_of(n)
            if any(made(b) & set(scope) for b in bodies):
                bodies = []
            if not bodies:
                for g in n.graphs:
                    self.rename_seen(g, scope)
                continue
            first = len(self.regions)
            self.opened[tuple(n.proto.output)] = first
            self.regions += [Region(region, n.op != "If", n.proto.input[0] if n.op == "Loop" else "") for _ in bodies]
            for k, b in enumerate(bodies):
                self.body(b, scope, first + k)

    def body(self, proto, scope, region):
        nodes = self.graph.body(proto).nodes
        inner = dict(scope)
        for name in sorted(own(proto)):
            inner[name] = name
            while inner[name] in self.taken:
                inner[name] += f"#{region}"
        self.taken |= {inner[n] for n in own(proto)}
        self.rename(proto, inner)
        self.walk(nodes, inner, region)

    @staticmethod
    def rename(proto, scope):
        for v in list(proto.input) + list(proto.output) + list(proto.initializer) + list(proto.value_info):
            v.name = scope.get(v.name, v.name)
        for n in proto.node:
            n.input[:] = [scope.get(x, x) for x in n.input]
            n.output[:] = [scope.get(x, x) for x in n.output]

    def rename_seen(self, proto, scope):
        """A body that stays one: what it reads from outside has the new names."""
        left = {a: b for a, b in scope.items() if a not in own(proto)}
        self.rename(proto, left)
        for n in proto.node:
            for g in graphs_of(n):
                self.rename_seen(g, left)


def flatten(graph, make):
    """Puts the nodes of all opened bodies into graph.nodes. make(op, inputs, outputs): a node."""
    graph.home = {}
    tokens = iter(f"\0{k}" for k in range(len(graph.regions)))

    def put(nodes, region):
        for n in nodes:
            first = graph.opened.get(tuple(n.output)) if n.graphs else None
            if first is None:
                keep(n, region)
                continue
            bodies = [graph.body(b) for b in bodies_of(n)]
            ends = Ends(n.op, n, len(bodies))
            head = n.input[0]
            if n.op != "If":
                head = next(tokens)
                ends.enter = make("Enter", n.input, bodies[0].inputs + [head])
                keep(ends.enter, region)
                graph.home.update((x, first) for x in bodies[0].inputs)
            for k, b in enumerate(bodies):
                graph.stored.update(b.stored)
                put(b.nodes, first + k)
            leave = make("Leave", [head] + [o for b in bodies for o in b.outputs], n.output)
            leave.ends = ends
            keep(leave, region)

    def keep(n, region):
        found.append(n)
        graph.home.update((o, region) for o in n.output if o)

    found, nodes = [], graph.nodes
    graph.stored = dict(graph.stored)
    put(nodes, 0)
    graph.nodes = found


def turns(graph, name, ints):
    """How often the tensor is made, as a guess. ints(name): contents of a constant."""
    count, r = 1, graph.home.get(name, 0)
    while r > 0:
        region = graph.regions[r]
        if region.repeats:
            x = ints(region.trips) if region.trips else None
            one = max(1, x[0]) if x is not None and len(x) == 1 else TURNS
            count *= min(one, MAXTURNS // count + 1)
        r = region.parent
    return min(count, MAXTURNS)
