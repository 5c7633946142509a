"""Counting what moves data in a model: Transposes, other nodes that do, views.  By onnx.shape_inference, and by a run where that does not tell;
nothing here uses relayout's own code."""
import dataclasses

import numpy as np
from onnx import AttributeProto, TensorProto, numpy_helper

import common

SMALL = 64  # elements of an integer tensor that counts as shape arithmetic
VIEWS = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}
OTHERS = {"Gather", "GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND", "TensorScatter", "Slice", "Split",
          "SplitToSequence", "Concat", "ConcatFromSequence", "Pad", "Tile", "Expand", "DepthToSpace", "SpaceToDepth", "Einsum",
          "Compress", "ReverseSequence", "CenterCropPad", "Col2Im", "Unique", "NhwcTranspose", "ReorderInput", "ReorderOutput"}
RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}


@dataclasses.dataclass
class Counts:
    transposes: int = 0    # all Transpose nodes
    moving: int = 0        # those that move data: some dim that is not 1 changes its place among such dims
    folded: int = 0        # Transposes of what is computed from constants alone (in neither of the two above)
    others: dict = dataclasses.field(default_factory=dict)  # op type -> count, other nodes that move data
    views: int = 0
    nodes: int = 0
    unknown: list = dataclasses.field(default_factory=list)  # tensors that decide, and whose shape inference did not tell

    @property
    def nother(self):
        return sum(self.others.values())

    @property
    def permuting(self):
        """Transposes, and Einsums: one that only permutes may become a Transpose, but not more than one."""
        return self.moving + self.others.get("Einsum", 0)

    @property
    def conversions(self):
        """Nodes that permute, under whatever name."""
        return self.permuting + sum(self.others.get(op, 0) for op in ("DepthToSpace", "SpaceToDepth"))

    def grown(self, before, trade=False):
        """Other data-moving nodes that `before` had fewer of, as text; "" where their total did not grow (trade: with the Transposes that
        move data, for which another node may stand)."""
        if self.nother <= before.nother or (trade and self.moving + self.nother <= before.moving + before.nother):
            return ""
        return ", ".join(f"{k} {before.others.get(k, 0)} -> {n}" for k, n in sorted(self.others.items())
                         if n > before.others.get(k, 0))


def count(model, runtime_shapes=None):
    """Counts of a model (with weights, so that permutation matrices are seen). runtime_shapes: name -> shape, used for
    tensors of the main graph that shape inference says nothing about."""
    c = Counts()
    perms = {t.name for t in model.graph.initializer if _is_permutation(t)}
    perms |= {n.output[0] for n in model.graph.node if n.op_type == "Constant"
              for a in n.attribute if a.name == "value" and _is_permutation(a.t)}
    for n in model.graph.node:
        if n.op_type in ("Identity", "Transpose") and perms.intersection(n.input):
            perms.update(n.output)
    at = _Where(perms, runtime_shapes or {}, _static(model), model.ir_version)
    _count_graph(common.infer(model).graph, c, {}, set(), set(), at)
    unknown = list(c.unknown)
    for f in model.functions:
        consts, shapelike = set(), set()
        for n in f.node:
            _count_node(n, c, {}, consts, shapelike, at)
    c.unknown = unknown  # a run gives no shapes of tensors inside
    return c


@dataclasses.dataclass
class _Where:
    perms: set      # names of constants that are permutation matrices
    runtime: dict   # name -> shape
    static: bool    # every shape in the model is fixed, so that Shape gives a constant
    ir: int


def _static(model):
    """Fixed input shapes, and no op whose output's shape depends on data."""
    return (all(isinstance(d, int) for i in common.model_inputs(model) for d in (common.shape_of(i.type) or [None]))
            and not any(n.op_type in ("NonZero", "Compress", "Unique", "NonMaxSuppression", "If", "Loop", "Scan")
                        or n.domain not in ("", "ai.onnx") for n in model.graph.node))


def _is_permutation(t):
    """A float matrix (a 1x1 kernel counts) with one 1 in each row and column."""
    dims = [d for d in t.dims if d != 1]
    if t.data_type not in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE) or len(dims) != 2 or dims[0] != dims[1]:
        return False
    if t.data_location == TensorProto.EXTERNAL or dims[0] < 2:
        return False
    a = numpy_helper.to_array(t).reshape(dims)
    if not np.all((a[0] == 0) | (a[0] == 1)):
        return False
    return bool(np.all((a == 0) | (a == 1)) and np.all(a.sum(0) == 1) and np.all(a.sum(1) == 1))


def _count_graph(g, c, types, consts, shapelike, at):
    types, consts, shapelike = dict(types), set(consts), set(shapelike)
    for v in (*g.value_info, *g.output, *g.input):
        types[v.name] = (common.shape_of(v.type), v.type.tensor_type.elem_type)
    inputs = {v.name for v in g.input}
    own = inputs | {o for n in g.node for o in n.output}
    consts, shapelike = consts - own, shapelike - own  # a body's names may be those of constants outside
    for t in g.initializer:
        types[t.name] = (list(t.dims), t.data_type)
        if at.ir < 4 or t.name not in inputs:
            consts.add(t.name)
    for n in g.node:
        _count_node(n, c, types, consts, shapelike, at)


def _count_node(n, c, types, consts, shapelike, at):
    bodies = [b for a in n.attribute for b in ([a.g] if a.type == AttributeProto.GRAPH else a.graphs)]
    ins = [i for i in n.input if i]
    const = all(i in consts for i in ins) and n.op_type not in RANDOM and not bodies
    const |= at.static and n.op_type in ("Shape", "Size")
    if const:
        consts.update(n.output)
    if not const and (n.op_type in ("Shape", "Size") or (not bodies and all(i in consts or i in shapelike for i in ins))):
        shapelike.update(n.output)
    for b in bodies:
        _count_graph(b, c, types, consts, shapelike, at)
    c.nodes += 1
    op = n.op_type
    if op in VIEWS:
        c.views += 1
    elif op == "Transpose":
        if const:
            c.folded += 1
            return
        c.transposes += 1
        if _transpose_moves(n, c, types, at.runtime):
            c.moving += 1
    elif not const and (op in OTHERS or (op in ("MatMul", "Gemm", "Conv") and any(i in at.perms for i in n.input[:2]))):
        if not _shape_arithmetic(n, c, types, shapelike, at.runtime):
            c.others[op] = c.others.get(op, 0) + 1


def _shape_arithmetic(n, c, types, shapelike, runtime):
    """Integer outputs, each of up to 64 elements (or of unknown size, but computed from shapes alone)."""
    outs = [o for o in n.output if o]
    for o in outs:
        dtype = types.get(o, (None, 0))[1]
        if dtype not in (TensorProto.INT64, TensorProto.INT32) and not (dtype == 0 and o in shapelike):
            return False
    small = True
    for o in outs:
        shape = types.get(o, (None, 0))[0]
        if shape is None or any(not isinstance(d, int) for d in shape):
            shape = runtime.get(o)
        if shape is None:
            c.unknown.append(o)
            small &= o in shapelike
        else:
            small &= int(np.prod(shape)) <= SMALL
    return small


def _transpose_moves(n, c, types, runtime):
    shape = types.get(n.input[0], (None, 0))[0]
    perm = next((list(a.ints) for a in n.attribute if a.name == "perm"), None)
    if shape is None or any(not isinstance(d, int) for d in shape):
        known = runtime.get(n.input[0])
        if known is not None:
            shape = list(known)
        elif perm != sorted(perm or []):
            c.unknown.append(n.input[0])
    if perm is None:
        if shape is None:
            return True
        perm = list(range(len(shape)))[::-1]
    if shape is not None and len(shape) == len(perm):  # inference may have it wrong in a model that is
        perm = [p for p in perm if shape[p] != 1]
    return perm != sorted(perm)


def runtime_shapes(model, names, inputs):
    return {k: v.shape for k, v in common.runtime_values(model, names, inputs).items() if isinstance(v, np.ndarray)}


def count_run(model, inputs):
    """As count, with runtime shapes where inference left a Transpose undecided."""
    c = count(model)
    if c.unknown and inputs is not None:
        shapes = runtime_shapes(model, c.unknown, inputs)
        if shapes:
            c = count(model, shapes)
    return c
