"""A model of float32 as one of float16 or bfloat16: weights, constants and what the ops compute; its inputs and outputs stay float32, by a Cast
at each.  What ops want as float32 whatever they compute (Resize's scales, say) stays.

  lowered(model, onnx.TensorProto.BFLOAT16)
  rounded(model, onnx.TensorProto.BFLOAT16)    its weights and constants rounded to that type, but computed in float32
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Inputs that are float32 in every form of the op, by their numbers.
KEPT = {"Resize": (1, 2), "Upsample": (1,), "QuantizeLinear": (1,), "DequantizeLinear": (1,), "Range": (0, 1, 2), "NonMaxSuppression": (0, 1, 3, 4)}
TYPES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


class CannotLower(Exception):
    """The model has what this does not know."""


def _bits(a, to):
    """The float32 array in the other type, rounded to nearest, ties to even."""
    if to == TensorProto.FLOAT16:
        return np.clip(a, -65504, 65504).astype(np.float16)
    u = a.view(np.uint32).astype(np.uint64)
    return ((u + 0x7FFF + (u >> 16 & 1)) >> 16).astype(np.uint16)


def nearest(a, to):
    """The float32 array with numbers that the other type has."""
    bits = _bits(a, to)
    return bits.astype(np.float32) if to == TensorProto.FLOAT16 else (bits.astype(np.uint32) << 16).view(np.float32)


def _tensor(t, to):
    if t.data_type == TensorProto.FLOAT:
        bits = _bits(numpy_helper.to_array(t).astype(np.float32), to)
        t.CopyFrom(TensorProto(name=t.name, data_type=to, dims=t.dims, raw_data=bits.tobytes()))


def _widened(t, to):
    if t.data_type == TensorProto.FLOAT:
        t.CopyFrom(numpy_helper.from_array(nearest(numpy_helper.to_array(t).astype(np.float32), to), t.name))


def rounded(model, to):
    """A new model; scales of resizing and the like stay."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    kept = {n.input[k] for n in m.graph.node for k in KEPT.get(n.op_type, ()) if k < len(n.input)}
    for t in m.graph.initializer:
        if t.name not in kept:
            _widened(t, to)
    for n in m.graph.node:
        for a in n.attribute:
            if a.name == "value" and a.type == onnx.AttributeProto.TENSOR and n.output[0] not in kept:
                _widened(a.t, to)
    return m


def _node(n, to):
    for a in n.attribute:
        if a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
            raise CannotLower(f"{n.op_type}: a body")
        if a.name == "value" and a.type == onnx.AttributeProto.TENSOR:
            _tensor(a.t, to)
        if a.name in ("to", "dtype") and a.type == onnx.AttributeProto.INT and a.i == TensorProto.FLOAT:
            a.i = to
        if n.op_type == "Constant" and a.name in ("value_float", "value_floats"):
            values = [a.f] if a.name == "value_float" else list(a.floats)
            t = numpy_helper.from_array(np.array(values[0] if a.name == "value_float" else values, np.float32))
            _tensor(t, to)
            a.CopyFrom(helper.make_attribute("value", t))


def lowered(model, to):
    """A new model; the old one is not changed."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    g, nodes = m.graph, []
    if m.functions:
        raise CannotLower("functions")
    if not any(o.domain in ("", "ai.onnx") for o in m.opset_import):
        raise CannotLower("no opset that has Cast")
    for t in g.initializer:
        _tensor(t, to)
    for n in g.node:
        for k in KEPT.get(n.op_type, ()):
            if k < len(n.input) and n.input[k]:
                name = f"{n.input[k]}.f32.{len(nodes)}"
                nodes.append(helper.make_node("Cast", [n.input[k]], [name], to=TensorProto.FLOAT))
                n.input[k] = name
        _node(n, to)
        nodes.append(n)
    first = [_cast_input(g, i, nodes, to) for i in g.input if i.name not in {t.name for t in g.initializer}]
    last = [_cast_output(o, nodes, to) for o in g.output]
    every = [n for n in first if n] + nodes + [n for n in last if n]
    del g.node[:]
    g.node.extend(every)
    del g.value_info[:]
    return m


def _cast_input(g, i, nodes, to):
    if i.type.tensor_type.elem_type != TensorProto.FLOAT:
        return None
    low = f"{i.name}.low"
    for n in nodes:
        for k, name in enumerate(n.input):
            if name == i.name:
                n.input[k] = low
    return helper.make_node("Cast", [i.name], [low], to=to)


def _cast_output(o, nodes, to):
    if o.type.tensor_type.elem_type != TensorProto.FLOAT:
        return None
    low = f"{o.name}.low"
    for n in nodes:
        for names in (n.input, n.output):
            for k, name in enumerate(names):
                if name == o.name:
                    names[k] = low
    return helper.make_node("Cast", [low], [o.name], to=TensorProto.FLOAT)
