"""Contents of small tensors: what ONNX's ops make of known ones."""
import numpy as np
from onnx import helper

SMALL = 4096  # elements of a tensor whose contents are followed
END = 2 ** 31 - 1  # and beyond: a cut goes on to the end, whatever the size
# What follows from unknown sizes as a polynomial: equal in both worlds is equal always. And what follows where it comes out different.
ALGEBRA = {"Shape", "Size", "Gather", "Concat", "Slice", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Identity", "Transpose", "Add", "Sub", "Mul",
           "Neg", "Split", "Where", "ReduceProd", "ReduceSum", "Expand", "Range", "ConstantOfShape", "Tile"}
ROUNDING = {"Div", "Mod", "Floor", "Ceil", "Round", "Cast", "Sqrt"}


def divide(a, b):
    if a.dtype.kind == "f":
        return a / b
    q = np.abs(a) // np.abs(b)  # towards zero
    return (np.where((a < 0) != (b < 0), -q, q)).astype(a.dtype)


def slice_of(node, x, starts=None, ends=None, axes=None, steps=None):
    if starts is None:
        starts, ends = node.attr("starts", []), node.attr("ends", [])
        axes = node.attr("axes", list(range(len(starts))))
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    parts = [slice(None)] * x.ndim
    for s, e, a, t in zip(starts, ends, axes, steps):
        parts[int(a)] = cut(x.shape[int(a)], int(s), int(e), int(t))
    return x[tuple(parts)]


def cut(n, start, end, step):
    """ONNX's start and end of a dim of n elements as Python's. END is past the last one, though a number for an unknown size be larger."""
    place = lambda x: n if x >= END else -1 if x <= -END else x + n if x < 0 else x
    start, end = place(start), place(end)
    if step > 0:
        return slice(min(max(start, 0), n), min(max(end, 0), n), step)
    start, end = min(max(start, -1), n - 1), min(max(end, -1), n - 1)
    return slice(start, None if end < 0 else end, step) if start >= 0 else slice(0, 0)


def reshape_to(node, x, shape):
    shape = [x.shape[i] if d == 0 and not node.attr("allowzero", 0) else int(d) for i, d in enumerate(shape)]
    return x.reshape(shape)


FAST = {
    "Gather": lambda n, x, i: np.take(x, i, axis=n.attr("axis", 0)),
    "Concat": lambda n, *x: np.concatenate(x, axis=n.attr("axis", 0)),
    "Identity": lambda n, x: x,
    "Cast": lambda n, x: x.astype(helper.tensor_dtype_to_np_dtype(n.attr("to", 1))),
    "Add": lambda n, a, b: a + b,
    "Sub": lambda n, a, b: a - b,
    "Mul": lambda n, a, b: a * b,
    "Div": lambda n, a, b: divide(a, b),
    "Slice": slice_of,
    "Reshape": reshape_to,
    "Equal": lambda n, a, b: a == b,
    "Where": lambda n, c, a, b: np.where(c, a, b).astype(a.dtype),
    "Constant": lambda n: n.constant(),
    "ConstantOfShape": lambda n, s: np.full(s, n.attr("value", np.zeros(1, np.float32)).ravel()[0]),
    "Unsqueeze": lambda n, x, axes=None: unsqueeze(x, n.attr("axes", axes)),
    "Squeeze": lambda n, x, axes=None: np.squeeze(x, axis=None if n.attr("axes", axes) is None else tuple(int(a) for a in n.attr("axes", axes))),
    "Transpose": lambda n, x: np.transpose(x, n.attr("perm", None)),
}

# Of a result's sizes.
FILLED = {
    "ConstantOfShape": lambda n, _, dims: np.full(dims, n.attr("value", np.zeros(1, np.float32)).ravel()[0]),
    "Expand": lambda n, x, dims: np.broadcast_to(x, dims),
    "Reshape": lambda n, x, dims: x.reshape(dims),
    "Tile": lambda n, x, dims: np.broadcast_to(np.tile(x, [d // max(1, e) for d, e in zip(dims, x.shape)]), dims),
}
MOVES = {**FAST, **FILLED}


def unsqueeze(x, axes):
    rank = x.ndim + len(axes)
    where = {int(a) % rank for a in axes}
    dims = iter(x.shape)
    return x.reshape([1 if k in where else next(dims) for k in range(rank)])


def is_open(node, inputs, made):
    """Is the result left open by ONNX, each machine with its own? Of an integer divided by 0, and of a float that its integer cannot hold."""
    x = inputs[0] if inputs else None
    if node.op in ("Div", "Mod"):
        return x.dtype.kind in "iu" and bool((inputs[1] == 0).any())
    if node.op not in ("Cast", "CastLike") or x.dtype.kind != "f" or made.dtype.kind not in "iu":
        return False
    whole, holds = np.trunc(x.astype(np.float64)), np.iinfo(made.dtype)
    return not ((whole >= float(holds.min)) & (whole < float(holds.max) + 1)).all()


def evaluate(node, inputs):
    """Contents of the outputs; raises ValueError where there is more than one answer."""
    while inputs and inputs[-1] is None:
        inputs.pop()
    with np.errstate(all="ignore"):
        if node.op in FAST:
            got = [FAST[node.op](node, *inputs)]
        else:
            from onnx.reference import ReferenceEvaluator
            session = ReferenceEvaluator(node.proto, opsets={d.domain: d.version for d in node.graph.opsets})
            got = session.run(None, {n: x for n, x in zip(node.input, inputs) if n})
    if is_open(node, inputs, np.asarray(got[0])):
        raise ValueError(f"{node.op} of what it does not define")
    return got
