"""Makes a failing model small: keeps one output, cuts what is above a value, takes single nodes out, as long as it still fails."""
import time

import numpy as np
import onnx
from onnx import helper

import common


def needed(model, outputs, given):
    """The model with only the nodes that these outputs need, and values in `given` (name -> array) turned into inputs."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    keep, want = [], set(outputs)
    for n in reversed(model.graph.node):
        if any(o in want and o not in given for o in n.output):
            keep.append(n)
            want.update(i for i in n.input if i)
            want.update(captured(n))
    del m.graph.node[:]
    m.graph.node.extend(keep[::-1])
    del m.graph.initializer[:]
    m.graph.initializer.extend(t for t in model.graph.initializer if t.name in want and t.name not in given)
    del m.graph.input[:]
    m.graph.input.extend(i for i in model.graph.input if i.name in want and i.name not in given)
    for name, x in given.items():
        if name in want:
            m.graph.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
    types = {v.name: v for v in (*model.graph.value_info, *model.graph.output, *model.graph.input)}
    del m.graph.output[:]
    for o in outputs:
        m.graph.output.append(types.get(o) or onnx.ValueInfoProto(name=o))
    del m.graph.value_info[:]
    return m


def captured(node):
    """Outer values that the bodies of a node read."""
    out = set()
    for a in node.attribute:
        for g in ([a.g] if a.type == a.GRAPH else a.graphs):
            own = {i.name for i in g.input} | {t.name for t in g.initializer} | {o for n in g.node for o in n.output}
            out |= {i for n in g.node for i in (*n.input, *captured(n)) if i and i not in own}
            out |= {o.name for o in g.output if o.name not in own}
    return out


def typed(model):
    """The model with a type on every output: what the checker wants and pruning may have lost."""
    if all(o.type.WhichOneof("value") for o in model.graph.output):
        return model
    g = onnx.shape_inference.infer_shapes(model).graph
    inferred = {v.name: v for v in (*g.value_info, *g.output) if v.type.WhichOneof("value")}
    for o in model.graph.output:
        if not o.type.WhichOneof("value") and o.name in inferred:
            o.CopyFrom(inferred[o.name])
    return model


def shrink(model, inputs, fails, seconds=30):
    """fails(model, inputs) says whether a candidate still shows the failure. Returns the smallest (model, inputs) found in time."""
    end = time.time() + seconds
    best, feed = model, inputs
    progress = True
    while progress and time.time() < end:
        progress = False
        for candidate, x in candidates(best, feed):
            if time.time() > end:
                break
            try:
                candidate = typed(candidate)
                onnx.checker.check_model(candidate)
                bad = fails(candidate, x)
            except Exception:
                continue
            if bad:
                best, feed, progress = candidate, x, True
                break
    return best, feed


def candidates(model, inputs):
    """Smaller models, the boldest first."""
    nodes, outs = list(model.graph.node), [o.name for o in model.graph.output]
    if len(outs) > 1:
        for o in outs:
            yield needed(model, [o], {}), inputs
        for o in outs:
            yield needed(model, [p for p in outs if p != o], {}), inputs
    made = [o for n in nodes if n.op_type != "Constant" for o in n.output if o]
    values = {k: v for k, v in common.runtime_values(model, made, inputs).items() if isinstance(v, np.ndarray)}
    for o in made:  # end earlier
        if [o] != outs and o in values:
            yield needed(model, [o], {}), inputs
    for o in reversed(made):  # begin later
        if o in values and o not in outs:
            yield needed(model, outs, {o: values[o]}), {**inputs, o: values[o]}
    for n in nodes:  # leave one out whose first input is like its output
        if n.input and n.output and n.op_type != "Constant" and n.output[0] not in outs and n.output[0] in values:
            src = values.get(n.input[0], inputs.get(n.input[0]))
            if isinstance(src, np.ndarray) and src.shape == values[n.output[0]].shape and src.dtype == values[n.output[0]].dtype:
                m = onnx.ModelProto()
                m.CopyFrom(model)
                for k in m.graph.node:
                    for i, name in enumerate(k.input):
                        if name == n.output[0]:
                            k.input[i] = n.input[0]
                yield needed(m, outs, {}), inputs
