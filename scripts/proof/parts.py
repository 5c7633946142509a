"""Contents of which some elements are known, through what only moves them; for world.py.

    Where {F,T,T} of x and 7 -> {7, ?, ?};  Concat with {1} -> {7, ?, ?, 1};  Split -> {7, ?} and {?, 1};  Gather {0, 3} -> {7, 1}, which is known

An array of objects stands for a tensor, None for an element that is not known.
"""
import numpy as np
from onnx import TensorProto, helper

WHOLE = {TensorProto.INT32, TensorProto.INT64}  # a Cast of sizes; those of 32 bits are held in 64 (world.py: is_narrowed)
MOST = 64  # elements
VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")  # the same elements in the same sequence
SPREAD = ("Expand", "Tile")
MOVED = {"Concat": None, "Where": 3, **dict.fromkeys(("Slice", "Gather", "Split", "Transpose", "Cast", *VIEWS, *SPREAD), 1)}  # how many inputs are; None: all


def follow(world, node, moves):
    """Sets what is known of the outputs of a node that moves, some of whose inputs are not known. moves: {op: what it does}."""
    if node.op not in MOVED or node.domain or (node.op == "Cast" and not {node.attr("to"), world.type.get(node.inp(0), (0,))[0]} <= WHOLE):
        return
    n = MOVED[node.op] or len(node.input)
    moved, others = node.input[:n], node.input[n:]
    given, dims = [known(world, x) for x in moved], world.type.get(node.out(0), (0, None))[1]
    if dims is None or (node.op in SPREAD and np.prod(dims, dtype=object) > MOST) or any(x is None for x in given) or not any(x in world.data or x in world.some for x in moved):
        return
    if node.op == "Where":
        made = [choose(*np.broadcast_arrays(*given))]
    elif node.op == "Split":
        axis = node.attr("axis", 0)
        made = np.split(given[0], np.cumsum([world.type[o][1][axis] for o in node.output])[:-1], axis=axis)
    elif node.op in VIEWS or node.op == "Cast":
        made = [given[0].reshape(dims)]
    elif node.op in SPREAD:
        made = [moves[node.op](node, given[0], dims)]
    elif all(x in world.data for x in others if x):
        made = [moves[node.op](node, *given, *(world.data[x] if x else None for x in others))]
    else:
        return
    for name, x in zip(node.output, made):
        keep(world, name, np.asarray(x, dtype=object))  # of one element NumPy gives the element


def known(world, name):
    """As objects; None where it has too many, or unknown sizes."""
    elem, dims = world.type.get(name, (0, None))
    x = world.data.get(name, world.some.get(name))
    if x is not None:
        return x.astype(object) if x.size <= MOST else None
    return np.full(dims, None) if dims is not None and np.prod(dims, dtype=object) <= MOST else None


def choose(cond, x, y):
    same = np.frompyfunc(lambda c, a, b: (a if c else b) if c is not None else a if a == b and repr(a) == repr(b) and a is not None else None, 3, 1)
    return np.asarray(same(cond, x, y), dtype=object)


def keep(world, name, x):
    """All known is contents."""
    elem, dims = world.type.get(name, (0, None))
    if not name or dims is None or tuple(dims) != x.shape or not elem or x.size == 0:
        return
    lost = np.equal(x, None)
    if not lost.any():
        world.data[name] = x.astype(np.int64 if elem in WHOLE else helper.tensor_dtype_to_np_dtype(elem))
    elif not lost.all():
        world.some[name] = x
