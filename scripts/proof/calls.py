"""What calls of model-local functions make, and the types of the functions' inputs.

A call makes what its function makes of what the call gives: the function is inferred with that. What a function may be taken for when it is written
anew is what all its calls agree on: F(x f32[2,3]) and F(y f32[5,3]) give it f32[?,3].
"""


class Functions:
    """Of a model: graphs, by (domain, name), those alone whose name says which they are; and the keys in a sequence in which each comes after those
    that call it, without those that lead to themselves and what these call."""

    def __init__(self, model, graph):
        found, twice = {}, set()
        for f in model.functions:
            twice.update({(f.domain, f.name)} & set(found))
            found[f.domain, f.name] = graph.function(f)
        called = {k: {(n.domain, n.op) for n, _ in every(g)} for k, g in found.items()}
        left, self.order = dict(found), []
        while ready := [k for k in left if not any(k in called[by] for by in left)]:
            self.order += ready
            for k in ready:
                del left[k]
        self.order = [k for k in self.order if k not in twice]
        self.graphs = {k: found[k] for k in self.order}
        self.made = {}  # (function, world, types of what it is given) -> types of what it makes, where these are the same for each such call
        for g in (graph, *self.graphs.values()):
            g.functions = self


def every(graph, known=True):
    """(node, are its tensors' types known) of a graph and of the bodies in it."""
    for n in graph.nodes:
        yield n, known
        for g in n.graphs:
            yield from every(graph.body(g), known and tuple(n.output) in graph.opened)


def meet(types):
    """What the calls agree on; None for other sizes."""
    elems, all_dims = {e for e, _ in types}, [d for _, d in types]
    elem = elems.pop() if len(elems) == 1 else 0
    if any(d is None or len(d) != len(all_dims[0]) for d in all_dims):
        return elem, None
    return elem, tuple(column[0] if len(set(column)) == 1 else None for column in zip(*all_dims))


def inputs_of(world, callers, key, function):
    """{input: its type} that all calls agree on, in one world; None: nobody calls it."""
    calls = [[(w.type.get(n.inp(i)) if known else None) or (0, None) for i in range(len(function.inputs))] for w, graph in callers
             for n, known in every(graph) if (n.domain, n.op) == key]
    fresh = lambda name, k: world.symbols.number(("call", key, name, k), world.world)
    agreed = zip(function.inputs, map(meet, zip(*calls)))
    return {name: (elem, dims and tuple(fresh(name, k) if d is None else d for k, d in enumerate(dims))) for name, (elem, dims) in agreed} if calls else None


def types_of(functions, main, worlds):
    """{(domain, name): types of the inputs in each world}"""
    callers, given = [[(w, main)] for w in worlds], {}
    for key in functions.order:
        g = functions.graphs[key]
        types = [inputs_of(w, by, key, g) for w, by in zip(worlds, callers)]
        if None not in types:
            given[key] = types
            for w, t, by in zip(worlds, types, callers):
                by.append((inferred(w, g, t, ()), g))
    return given


def inferred(world, g, types, scope):
    """The function with these types of its inputs, as a world."""
    inner = type(world)(g, world.symbols, world.world)
    inner.start()
    inner.type.update(types)
    inner.inner, inner.scope, inner.cache = True, scope, world.cache
    for n in g.nodes:
        inner.node(n)
    return inner


def made(world, node):
    """{output: its type} of a call; a size that nothing tells is another one in each call."""
    functions, key = world.graph.functions, (node.domain, node.op)
    if functions is None or key not in functions.graphs:
        return {}
    g = functions.graphs[key]
    given = tuple(world.type.get(node.inp(i), (0, None)) for i in range(len(g.inputs)))
    known = functions.made.get((key, world.world, given))
    if known is None:
        inner = inferred(world, g, dict(zip(g.inputs, given)), (node.out(0), *world.scope))
        known = [inner.type.get(o, (0, None)) for o in g.outputs]
        sizes = {d for _, dims in given for d in dims or ()}
        if all(d in sizes or world.is_number(d) for _, dims in known for d in dims or ()):
            functions.made[key, world.world, given] = known
    return dict(zip(node.output, known))
