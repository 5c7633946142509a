"""A model in parts, each fed with exact values, so that what is rounded in one is not magnified by those after it.

  for part, inputs in parts.cut(model, inputs, 8): ...
"""
import numpy as np
import onnx
from onnx import helper

import common


def _places(graph):
    """What depends on the inputs, and {number of a node: value} where this value, no input, is all that goes on from there. Bodies are not looked
    into."""
    given = {i.name for i in graph.input} - {t.name for t in graph.initializer}
    follows = set(given)
    last = {x: i for i, n in enumerate(graph.node) for x in n.input}
    last.update((o.name, len(graph.node)) for o in graph.output)
    live, alone = set(follows), {}
    for i, n in enumerate(graph.node):
        if follows.intersection(n.input):
            follows.update(n.output)
            live.update(n.output)
        live = {x for x in live if last.get(x, i) > i}
        if len(live) == 1 and not live & given:
            alone[i], = live
    return follows, alone


def _ends(model, alone, inputs, count):
    """{number of a part's last node: its value, onnxruntime's}, but for the last part."""
    g = model.graph
    alone = {i: x for i, x in alone.items() if i < len(g.node) - 1}
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.extend(onnx.ValueInfoProto(name=x) for x in sorted(set(alone.values())))
    values = dict(zip((o.name for o in probe.graph.output), common.run_ort(probe.SerializeToString(), inputs), strict=True))
    alone = {i: x for i, x in alone.items() if values[x].dtype == np.float32}
    ends = sorted({min(alone, key=lambda i: abs(i - k * len(g.node) // count)) for k in range(1, count)} if alone else ())
    return {str(i): values[alone[i]] for i in ends}


def cut(model, inputs, count, kept=lambda make: make()):
    """[(model of a part, its inputs)], in order: up to count parts of about as many nodes each. Values between them are onnxruntime's, which
    kept(make) may know, or round."""
    g, (follows, alone) = model.graph, _places(model.graph)
    values = {int(i): v for i, v in kept(lambda: _ends(model, alone, inputs, count)).items()}
    found, start, fed = [], 0, inputs
    for end in [*values, len(g.node) - 1]:
        part = onnx.ModelProto()
        part.CopyFrom(model)
        constants = [n for n in g.node[:start] if not follows.intersection(n.output)]
        for field, content in (("node", [*constants, *g.node[start:end + 1]]), ("value_info", ()),
                               ("input", [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in fed.items()]),
                               ("output", [helper.make_tensor_value_info(alone[end], onnx.TensorProto.FLOAT, values[end].shape)] if end in values else g.output)):
            part.graph.ClearField(field)
            getattr(part.graph, field).extend(content)
        found.append((part, fed))
        start, fed = end + 1, {alone[end]: values[end]} if end in values else {}
    return found
