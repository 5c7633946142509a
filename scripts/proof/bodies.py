"""Types of what If, Loop and Scan give, from their bodies; for world.py.

A value that a loop carries keeps the sizes that every turn keeps; what a turn changes is unknown. What is in an opened body
(flat.py) is then known outside too, as its names are its own.
"""


def infer(world, node):
    """{output: (element type, dims)}; {} for other nodes."""
    if node.op == "If" and node.domain == "":
        return infer_if(world, node)
    if node.op == "Loop" and node.domain == "":
        return infer_loop(world, node)
    if node.op == "Scan" and node.domain == "" and node.opset >= 9:
        return infer_scan(world, node)
    return {}


EMPTY = "empty"  # dims of the elements of a sequence that has none


def adopt(world, node, inner):
    if tuple(node.output) in world.graph.opened:
        world.type.update(inner.type)
        world.data.update(inner.data)
        world.sequences.update(inner.sequences)
        world.full |= inner.full


def body_of(world, node, name, types, items=()):
    """The body inferred, with these types of its inputs, and of the elements of those that are sequences."""
    graph = node.graph.body(node.attrs[name].g)
    inner = type(world)(graph, world.symbols, world.world, world)
    inner.start()
    for v, t in zip(graph.inputs, types):
        if t[0]:
            inner.type[v] = t
    inner.sequences.update((v, t) for v, t in zip(graph.inputs, items) if t)
    for n in graph.nodes:
        inner.node(n)
    return graph, inner


def common(a, b):
    """What two types agree on; None for a size that is unknown."""
    if a[1] is None or b[1] is None or len(a[1]) != len(b[1]):
        return a[0] or b[0], None
    return a[0] or b[0], tuple(x if x == y else None for x, y in zip(a[1], b[1]))


def common_item(a, b):
    """The same of the elements of two sequences."""
    if a is None or b is None:
        return None
    return b if a[1] is EMPTY else a if b[1] is EMPTY else common(a, b)


def infer_if(world, node):
    branches = []
    for name in ("then_branch", "else_branch"):
        graph, inner = body_of(world, node, name, [])
        adopt(world, node, inner)
        branches.append((inner, graph.outputs, [inner.type.get(o, (0, None)) for o in graph.outputs]))
    cond = world.data.get(node.inp(0))
    for o, a, b in zip(node.output, branches[0][1], branches[1][1]):
        items = [inner.sequences.get(name) for (inner, _, _), name in zip(branches, (a, b))]
        known = cond is not None and cond.size == 1
        world.sequences[o] = items[0 if cond.ravel()[0] else 1] if known else common_item(*items)
    if cond is not None and cond.size == 1:
        inner, outputs, types = branches[0 if cond.ravel()[0] else 1]
        take_contents(world, node, inner, outputs)
        return dict(zip(node.output, types))
    return {o: common(a, b) for o, a, b in zip(node.output, branches[0][2], branches[1][2])}


def take_contents(world, node, inner, outputs):
    """What the branch gives that a known condition takes is what the If gives."""
    sure = world.symbols.sure
    for o, given in zip(node.output, outputs):
        if o and given in inner.data:
            world.data[o] = inner.data[given]
        if world.world == 0:
            (sure.add if {node.inp(0), given} <= sure else sure.discard)(o)


def infer_loop(world, node):
    carried, gives, graph, inner = repeated(world, node, node.input[2:], [(7, ()), (9, ())], [], 1)
    adopt(world, node, inner)
    turns = count(world, node, graph, inner)
    collected = [(e, None if d is None else (turns,) + closed(world, node, d)) for e, d in gives[len(carried):]]
    return dict(zip(node.output, carried + collected))


def infer_scan(world, node):
    n = len(node.input) - node.attr("num_scan_inputs", 0)
    given = lambda name, i: (list(node.attr(name, [])) + [0] * (i + 1))[i]
    turns, slices = None, []
    for i, name in enumerate(node.input[n:]):
        e, d = world.type.get(name, (0, None))
        if d is not None:
            axis = given("scan_input_axes", i) % len(d)
            turns, d = d[axis] if turns is None else turns, d[:axis] + d[axis + 1:]
        slices.append((e, d))
    carried, gives, _, inner = repeated(world, node, node.input[:n], [], slices, 0)
    adopt(world, node, inner)
    collected = []
    for i, (e, d) in enumerate(gives[n:]):
        if d is not None:
            axis, d = given("scan_output_axes", i) % (len(d) + 1), closed(world, node, d)
            d = d[:axis] + (turns,) + d[axis:]
        collected.append((e, d))
    return dict(zip(node.output, carried + collected))


def repeated(world, node, names, before, after_them, skip):
    """Types that the carried values have in every turn, what the body then gives behind its first `skip` outputs, and the body."""
    carried, items = [world.type.get(n, (0, None)) for n in names], [world.sequences.get(n) for n in names]
    for turn in range(4):
        named = [(e, d and tuple(world.symbols.number(("turn", tuple(node.output), i, k, *world.scope), world.world) if x is None else x for k, x in enumerate(d)))
                 if d is not None else (e, d) for i, (e, d) in enumerate(carried)]
        graph, inner = body_of(world, node, "body", before + named + after_them, [None] * len(before) + items)
        gives = [inner.type.get(o, (0, None)) for o in graph.outputs[skip:]]
        after = [common(a, b) for a, b in zip(carried, [(e, strip(d, n[1], c[1])) for (e, d), n, c in zip(gives, named, carried)])]
        put = [inner.sequences.get(o) for o in graph.outputs[skip:]]
        put = [t and (t if t[1] in (None, EMPTY) else (t[0], closed(world, node, t[1]))) for t in put]
        put = [common_item(a, b) for a, b in zip(items, put)]
        if turn == 2:
            after, put = [(e, None) for e, _ in carried], [None] * len(items)
        if (after, put) == (carried, items):
            break
        carried, items = after, put
    world.sequences.update(zip(node.output, items))
    return carried, gives, graph, inner


def closed(world, node, dims):
    """Sizes inside a body that are open there may be others in each turn; not those of what is given from outside."""
    outer = {d for x in (*node.input, *node.captured) for d in world.type.get(x, (0, None))[1] or ()}
    return tuple(None if world.is_unknown(d) and d not in outer else d for d in dims)


def strip(dims, named, carried):
    """Sizes that are those of the carried value, None where that was unknown."""
    if dims is None or named is None or carried is None or len(dims) != len(carried):
        return dims
    return tuple(c if d == n else d for d, n, c in zip(dims, named, carried))


def count(world, node, graph, inner):
    """How many turns it takes, where that is certain."""
    most, cond = world.data.get(node.inp(0)), world.data.get(node.inp(1))
    if most is None or most.size != 1 or (node.inp(1) and (cond is None or not cond.ravel()[0])):
        return None
    goes = graph.outputs[0]
    made = next((n for n in graph.nodes if goes in n.output), None)
    same = goes == graph.inputs[1] or (made is not None and made.op == "Identity" and made.inp(0) == graph.inputs[1])
    known = inner.data.get(goes)
    if not same and (known is None or known.size != 1 or not known.ravel()[0]):
        return None
    return max(0, int(most.ravel()[0]))
