"""What a model moves as it stands, and the time that this takes by the target's table: docs/proof.md, sections 4 and 5."""
import itertools
from collections import Counter, defaultdict

from .atoms import Problem
from .bound import behind, time_of
from .flat import graphs_of, turns
from .forms import all_shapes
from .model import moves
from .parts import VIEWS
from .schemas import UNKNOWN

CAP = 10 ** 12  # bytes of one copy are not counted further


def movers(nodes, sizes, graph):
    """Transposes that move data, each with the tensor whose bytes it moves: between a DequantizeLinear and QuantizeLinears those that the floats
    stand for."""
    made = {o: n for n in graph.nodes for o in n.output if o}
    readers = readers_of(graph)
    for n in nodes:
        if n.op == "Transpose" and n.domain == "" and moves(n, sizes.dims.get(n.inp(0))):
            maker = made.get(n.inp(0))
            unit = maker is not None and (maker.op, maker.domain) == ("DequantizeLinear", "") and n.out(0) not in graph.outputs
            yield n, maker.inp(0) if unit and readers[n.out(0)] == {("QuantizeLinear", "")} else n.out(0)


def unread(graph):
    """Transposes of which the definitions do not say what they are, and Einsums that may be such: they stay as they are."""
    return sum(n.domain == UNKNOWN and (n.op == "Transpose" or (n.op == "Einsum" and len(n.input) == 1)) for n in graph.nodes)


def is_unit(quantize, dequantize):
    """Of one scale for all?"""
    kinds = [(n.op, n.domain) for n in (quantize, dequantize)]
    return kinds == [("QuantizeLinear", ""), ("DequantizeLinear", "")] and list(quantize.input[1:]) == list(dequantize.input[1:])


def in_one(nodes, graph):
    """(node, tensor) of movers, without those that move on what one of them, but for its shape, and for a QuantizeLinear and DequantizeLinear of one scale,
    makes for them alone, of what an output hangs on: the two are one conversion."""
    made = {o: n for n in graph.nodes for o in n.output if o}
    uses = Counter(x for n in graph.live() for x in n.input)
    moving = {n.out(0) for n, _ in nodes}

    def is_second(n):
        x = n.inp(0) if uses[n.out(0)] or n.out(0) in graph.outputs else ""
        while uses[x] == 1 and x not in graph.outputs and x in made:
            if x in moving:
                return True
            before = made.get(made[x].inp(0))
            if before is not None and uses[before.out(0)] == 1 and before.out(0) not in graph.outputs and is_unit(before, made[x]):
                x = before.inp(0)
                continue
            if made[x].domain or made[x].op not in (*VIEWS, "Transpose"):
                return False
            x = made[x].inp(0)
        return False

    return [(n, of) for n, of in nodes if not is_second(n)]


def readers_of(graph):
    """{tensor: the kinds of nodes that read it}"""
    found = defaultdict(set)
    for n in graph.nodes:
        for x in n.input:
            found[x].add((n.op, n.domain))
    return found


def moved_each(nodes, sizes, graph, steps=False):
    """(tensor, bytes) of each; steps: two that are one conversion count as that."""
    every = list(movers(nodes, sizes, graph))
    return [(of, min(CAP, (sizes.count.get(n.out(0)) or 0) * sizes.bits(of) // 8)) for n, of in (in_one(every, graph) if steps else every)]


def moved(nodes, sizes, graph, steps=False):
    """How many there are, and their bytes."""
    each = moved_each(nodes, sizes, graph, steps)
    return len(each), sum(size for _, size in each)


def transposes_of(bodies):
    """In bodies that stay closed (flat.py) and those in them, but for such as name each dim in its place, and with Einsums that may be such: sizes are not
    asked for."""
    found = 0
    for n in (n for g in bodies for n in g.node):
        perm = next((list(a.ints) for a in n.attribute if a.name == "perm"), None)
        onnx = n.domain in ("", "ai.onnx")
        found += onnx and n.op_type == "Transpose" and (perm is None or perm != sorted(perm))
        found += onnx and n.op_type == "Einsum" and len(n.input) == 1
        found += transposes_of(graphs_of(n))
    return found


def bytes_of(model, name, count=None):
    """Of a copy, as often as its body runs; None: not known. count: of its elements, where not as many as are counted here."""
    bits, count = model.sizes.bits(name), model.sizes.count.get(name) if count is None else count
    return None if count is None else min(CAP, count * turns(model.graph, name, model.ints) * bits // 8)


def takes(model, target, proof):
    """The time of conversions and of what is charged; None: a size is not known. A MatMul may take in what swaps the last two dims for it alone."""
    readers = readers_of(model.graph)
    alone = lambda n: target.takes_swaps and readers[n.out(0)] == {("MatMul", "")} and n.out(0) not in model.graph.outputs
    swaps = lambda perm: perm[-2:] == [len(perm) - 1, len(perm) - 2] and perm[:-2] == list(range(len(perm) - 2))
    conversions = [bytes_of(model, of) for n, of in movers(model.nodes, model.sizes, model.graph) if not (alone(n) and swaps(n.attr("perm", [0])))]
    charges = [(n, bytes_of(model, s.charge.tensor)) for s in all_shapes(Problem(model, False, target), True) if s.charge and (n := tenths(s))]
    if None in conversions or any(size is None for _, size in charges):
        return None
    return sum(time_of(proof, size) for size in conversions) + sum(n * (time_of(proof, size) // 10) for n, size in charges)


def tenths(shape):
    """What an op is charged as it stands."""
    c = shape.charge
    if c.rule == "forms":
        return c.tenths
    token = {a: t for t in shape.tokens for a in t[0]}
    order = [t for t, _ in itertools.groupby(token[a] for a in shape.pins[0][2])]
    hit = order[-1:] and order[-1] in c.tokens if c.rule == "last" else behind(order, c.tokens)
    return c.tenths if hit else 0
