"""Types of what calls of model-local functions make.

A function is inferred once, with the types that all its calls agree on: F(x f32[2,3]) and F(y f32[5,3]) give it f32[?,3]. Of what it makes
only numbers hold for every call. A call that nothing reads does not count. Functions that call functions need a round for each level.
"""
import copy

import onnx
from onnx import helper

ROUNDS, MOST = 4, 2000


def bodies(model, graph):
    """{(domain, name): the function as a graph}, those alone whose name says which they are; {} where there are too many."""
    found, twice = {}, set()
    for f in model.functions if len(model.functions) <= MOST else ():
        twice.update({(f.domain, f.name)} & set(found))
        value = lambda name: onnx.ValueInfoProto(name=name)
        g = copy.copy(graph)
        g.opsets, g.version = list(f.opset_import), {"" if o.domain == "ai.onnx" else o.domain: o.version for o in f.opset_import}
        g.opened = {}
        g.take(helper.make_graph(f.node, f.name, [value(n) for n in f.input], [value(n) for n in f.output], value_info=f.value_info))
        found[f.domain, f.name] = g
    return {k: g for k, g in found.items() if k not in twice}


def every(graph, read=False):
    """The nodes of a graph, and of the bodies in it that are opened. read: those alone that an output hangs on."""
    live = set(graph.outputs)
    for n in reversed(graph.nodes):
        if live.intersection(filter(None, n.output)):
            live.update(n.input + n.captured)
    for n in graph.nodes:
        if read and not live.intersection(filter(None, n.output)):
            continue
        yield n
        for g in n.graphs if tuple(n.output) in graph.opened else ():
            yield from every(graph.body(g), read)


def meet(types):
    """What the calls agree on; None for other sizes."""
    elems, all_dims = {e for e, _ in types}, [d for _, d in types]
    elem = elems.pop() if len(elems) == 1 else 0
    if any(d is None or len(d) != len(all_dims[0]) for d in all_dims):
        return elem, None
    return elem, tuple(column[0] if len(set(column)) == 1 else None for column in zip(*all_dims))


def inputs_of(callers, key, function):
    """The types of a function's inputs, in one world; None: nobody calls it."""
    calls = [[world.type.get(n.inp(i), (0, None)) for i in range(len(function.inputs))] for world, graph in callers for n in every(graph, True)
             if (n.domain, n.op) == key]
    return [meet(column) for column in zip(*calls)] if calls else None


def infer(functions, main, worlds):
    """{(domain, name): types of the outputs}, with None for what is not a number."""
    callers, left, made = [[(w, main)] for w in worlds], dict(functions), {}
    while left:
        ready = [k for k in left if not any((n.domain, n.op) == k for g in left.values() for n in every(g))]
        for key in ready:
            g, pair = left.pop(key), []
            for w, world in enumerate(worlds):
                types = inputs_of(callers[w], key, g)
                if types is None:
                    break
                pair.append(outputs(world, g, key, types, callers[w]))
            if len(pair) == len(worlds):
                made[key] = [numbers(*x) for x in zip(*pair)]
        if not ready:
            break
    return made


def outputs(world, g, key, types, callers):
    inner = type(world)(g, world.symbols, world.world)
    inner.start()
    for name, (elem, dims) in zip(g.inputs, types):
        fresh = lambda k: world.symbols.number(("call", key, name, k), world.world)
        inner.type[name] = elem, dims and tuple(fresh(k) if d is None else d for k, d in enumerate(dims))
    inner.inner = True
    for n in g.nodes:
        inner.node(n)
    callers.append((inner, g))
    return [inner.type.get(o, (0, None)) for o in g.outputs]


def numbers(a, b):
    if a[1] is None or b[1] is None or len(a[1]) != len(b[1]):
        return a[0], None
    return a[0], tuple(x if x == y else None for x, y in zip(a[1], b[1]))
