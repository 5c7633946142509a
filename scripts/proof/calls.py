"""Types of the inputs of model-local functions, and of what their calls make.

A function is inferred once, with the types that all its calls agree on: F(x f32[2,3]) and F(y f32[5,3]) give it f32[?,3]. Of what it makes
only numbers hold for every call. A call that nothing reads does not count for what is made; for what a function may be taken for it does, if
it is in the file. Functions that call functions need a round for each level, and so does a chain of calls.
"""
ROUNDS = 64


def bodies(model, graph):
    """{(domain, name): the function as a graph}, those alone whose name says which they are."""
    found, twice = {}, set()
    for f in model.functions:
        twice.update({(f.domain, f.name)} & set(found))
        found[f.domain, f.name] = graph.function(f)
    return {k: g for k, g in found.items() if k not in twice}


def every(graph, read=False, known=True):
    """(node, are its tensors' types known) of a graph and of the bodies in it. read: those alone that an output hangs on."""
    live = set(graph.outputs)
    for n in reversed(graph.nodes):
        if live.intersection(filter(None, n.output)):
            live.update(n.input + n.captured)
    for n in graph.nodes:
        if read and not live.intersection(filter(None, n.output)):
            continue
        yield n, known
        for g in n.graphs:
            yield from every(graph.body(g), read, known and tuple(n.output) in graph.opened)


def meet(types):
    """What the calls agree on; None for other sizes."""
    elems, all_dims = {e for e, _ in types}, [d for _, d in types]
    elem = elems.pop() if len(elems) == 1 else 0
    if any(d is None or len(d) != len(all_dims[0]) for d in all_dims):
        return elem, None
    return elem, tuple(column[0] if len(set(column)) == 1 else None for column in zip(*all_dims))


def inputs_of(world, callers, key, function, read):
    """{input: its type}, in one world; None: nobody calls it."""
    calls = [[(w.type.get(n.inp(i)) if known else None) or (0, None) for i in range(len(function.inputs))] for w, graph in callers
             for n, known in every(graph, read) if (n.domain, n.op) == key]
    fresh = lambda name, k: world.symbols.number(("call", key, name, k), world.world)
    agreed = zip(function.inputs, map(meet, zip(*calls)))
    return {name: (elem, dims and tuple(fresh(name, k) if d is None else d for k, d in enumerate(dims))) for name, (elem, dims) in agreed} if calls else None


def infer(functions, main, worlds, read):
    """{(domain, name): types of the inputs in each world}, {(domain, name): types of the outputs, with None for what is not a number}."""
    callers, left, given, made = [[(w, main)] for w in worlds], dict(functions), {}, {}
    calls = {k: {(n.domain, n.op) for n, _ in every(g)} for k, g in functions.items()}
    while left:
        waits = set().union(*(calls[k] for k in left))
        ready = [k for k in left if k not in waits]
        for key in ready:
            g = left.pop(key)
            types = [inputs_of(w, callers[i], key, g, read) for i, w in enumerate(worlds)]
            if None not in types:
                given[key] = types
                made[key] = [numbers(*x) for x in zip(*(outputs(w, g, t, c) for w, t, c in zip(worlds[:2], types, callers)))]
                for w, t, c in zip(worlds[2:], types[2:], callers[2:]):
                    outputs(w, g, t, c)
        if not ready:
            break
    return given, made


def outputs(world, g, types, callers):
    """Adds the function to those that call."""
    inner = type(world)(g, world.symbols, world.world)
    inner.start()
    inner.type.update(types)
    inner.inner = True
    for n in g.nodes:
        inner.node(n)
    callers.append((inner, g))
    return [inner.type.get(o, (0, None)) for o in g.outputs]


def numbers(a, b):
    if a[1] is None or b[1] is None or len(a[1]) != len(b[1]):
        return a[0], None
    return a[0], tuple(x if x == y else None for x, y in zip(a[1], b[1]))
