"""Which nodes of a model go wrong first, where two runs of it differ: every value of float32 is made an output of it.

  print(first_off.said(model, inputs, beside, share))    # Conv stem/conv1, MaxPool stem/pool

What joins nodes into one does less of it then: where all agree so, that is said.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper

import common

MOST = 3


def exposed(model, inputs):
    """A new model; values in bodies stay there."""
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    g = probe.graph
    delivered = {o.name for o in g.output}
    names = [x for n in g.node for x in n.output if x and x not in delivered]
    g.output.extend(onnx.ValueInfoProto(name=x) for x in names)
    values = common.run_ort(probe.SerializeToString(), inputs)[len(delivered):]
    del g.output[len(delivered):]
    g.output.extend(helper.make_tensor_value_info(x, TensorProto.FLOAT, v.shape) for x, v in zip(names, values, strict=True)
                    if isinstance(v, np.ndarray) and v.dtype == np.float32)
    return probe


def said(model, inputs, beside, share):
    """beside(model, inputs): (outputs wanted, outputs got); share(wanted, got): of the bound, or raises common.Differ."""
    def is_off(wanted, got):
        try:
            return share(wanted, got) > 1
        except common.Differ:
            return True

    probe = exposed(model, inputs)
    off = {o.name for o, wanted, got in zip(probe.graph.output, *beside(probe, inputs), strict=True) if is_off(wanted, got)}
    first = [f"{n.op_type} {n.name or n.output[0]}" for n in model.graph.node if off.intersection(n.output) and not off.intersection(n.input)]
    more = f" and {len(first) - MOST} more" if len(first) > MOST else ""
    return ", ".join(first[:MOST]) + more or "none by itself"
