#!/usr/bin/env python3
"""Makes the models of this folder with the onnx helper; weights are seeded normal numbers, scaled so that activations stay near 1.

  make.py [FOLDER]     default: this folder; the same bytes every time

Needs onnx and numpy.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes and initializers, with names counted per op as exporters do."""

    def __init__(self, name, prefix=""):
        self.name, self.prefix, self.n = name, prefix, {}
        self.nodes, self.inits = [], []
        self.r = np.random.Generator(np.random.PCG64(sum(map(ord, name))))

    def fresh(self, op):
        k = self.n[op] = self.n.get(op, -1) + 1
        return f"{self.prefix}{op}" + (f"_{k}" if k else "")

    def op(self, op, *ins, **attrs):
        name = self.fresh(op)
        self.nodes.append(helper.make_node(op, ins, [f"{name}:0"], name=name, **attrs))
        return f"{name}:0"

    def const(self, x, name="const"):
        name = self.fresh(name)
        self.inits.append(numpy_helper.from_array(np.asarray(x), name))
        return name

    def weight(self, *shape, fan=None, name="weight"):
        return self.const((self.r.standard_normal(shape) / np.sqrt(fan or shape[0])).astype(np.float32), name)

    def around(self, one, n, name):
        return self.const((one + 0.1 * self.r.standard_normal(n)).astype(np.float32), name)

    def save(self, path, inputs, outputs, opset, doc):
        g = helper.make_graph(self.nodes, self.name, inputs, outputs, self.inits, doc_string=doc)
        m = helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="relayout models/make.py")
        onnx.checker.check_model(m, full_check=True)
        onnx.save(m, path)


def channels_last_cnn(path):
    """A MobileNetV3-like image classifier as TensorFlow exports it when nothing is optimized: every tensor NHWC, a Transpose in
    front of and behind each Conv, depthwise Conv and Pad in NCHW, BatchNormalization folded to Mul and Add in NHWC."""
    g = Graph("channels_last_cnn", "model/")

    def conv(x, cin, cout, k=3, stride=1, group=1):
        x = g.op("Transpose", x, perm=[0, 3, 1, 2])
        w = g.weight(cout, cin // group, k, k, fan=cin // group * k * k, name="kernel")
        pads = [0, 0, 0, 0] if k == 1 else ([1, 1, 1, 1] if stride == 1 else [0, 0, 1, 1])
        if stride == 2:
            x = g.op("Pad", x, g.const(np.array([0, 0, 0, 0, 0, 0, 1, 1], np.int64), "paddings"), g.const(np.float32(0), "value"))
            pads = [0, 0, 0, 0]
        x = g.op("Conv", x, w, kernel_shape=[k, k], strides=[stride, stride], pads=pads, group=group)
        return g.op("Transpose", x, perm=[0, 2, 3, 1])

    def norm(x, c):
        return g.op("Add", g.op("Mul", x, g.around(1, c, "scale")), g.around(0, c, "offset"))

    def hard_swish(x):
        y = g.op("Clip", g.op("Add", x, g.const(np.float32(3), "three")), g.const(np.float32(0), "zero"), g.const(np.float32(6), "six"))
        return g.op("Mul", x, g.op("Mul", y, g.const(np.float32(1 / 6), "sixth")))

    def squeeze_excite(x, c, r):
        s = g.op("ReduceMean", x, axes=[1, 2], keepdims=1)
        s = g.op("Relu", g.op("Add", conv(s, c, r, 1), g.around(0, r, "bias")))
        s = g.op("HardSigmoid", g.op("Add", conv(s, r, c, 1), g.around(0, c, "bias")), alpha=1 / 6, beta=0.5)
        return g.op("Mul", x, s)

    def block(x, cin, mid, cout, stride=1):
        y = hard_swish(norm(conv(x, cin, mid, 1), mid))
        y = hard_swish(norm(conv(y, mid, mid, 3, stride, mid), mid))
        y = norm(conv(squeeze_excite(y, mid, mid // 4), mid, cout, 1), cout)
        return g.op("Add", x, y) if stride == 1 and cin == cout else y

    x = g.op("Sub", g.op("Mul", "image", g.const(np.float32(1 / 127.5), "rescale")), g.const(np.float32(1), "shift"))
    x = hard_swish(norm(conv(x, 3, 16, 3, 2), 16))
    for cin, mid, cout, stride in ((16, 16, 16, 1), (16, 48, 24, 2), (24, 64, 24, 1), (24, 96, 40, 2), (40, 120, 40, 1)):
        x = block(x, cin, mid, cout, stride)
    x = g.op("ReduceMean", x, axes=[1, 2], keepdims=0)
    x = g.op("Add", g.op("MatMul", x, g.weight(40, 10, name="dense")), g.around(0, 10, "bias"))
    g.op("Softmax", x, axis=1)
    g.nodes[-1].output[0] = "probabilities"
    g.save(path, [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 96, 96, 3])],
           [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])], 13,
           channels_last_cnn.__doc__)


def attention_block(path):
    """Two pre-norm transformer encoder blocks with 4 heads, as TorchScript exports them: fused QKV, heads by Reshape and
    Transpose, Softmax over the keys, decomposed Gelu; batch and sequence length are symbolic, shapes are computed in the graph."""
    e, h, f = 48, 4, 96
    g = Graph("attention_block", "/")

    def linear(x, a, b):
        return g.op("Add", g.around(0, b, "bias"), g.op("MatMul", x, g.weight(a, b)))

    def norm(x):
        return g.op("LayerNormalization", x, g.around(1, e, "gamma"), g.around(0, e, "beta"), axis=-1, epsilon=1e-5)

    def scalar(x):
        return g.const(np.float32(x), "scalar")

    def ints(*x):
        return g.const(np.array(x, np.int64), "ints")

    x = "tokens"
    for _ in range(2):
        shape = g.op("Shape", x)
        b, s = (g.op("Unsqueeze", g.op("Gather", shape, g.const(np.int64(i), "index"), axis=0), ints(0)) for i in (0, 1))
        qkv = linear(norm(x), e, 3 * e)
        qkv = g.op("Reshape", qkv, g.op("Concat", b, s, ints(3), ints(h), ints(e // h), axis=0))
        qkv = g.op("Transpose", qkv, perm=[2, 0, 3, 1, 4])
        q, k, v = (g.op("Gather", qkv, g.const(np.int64(i), "index"), axis=0) for i in range(3))
        a = g.op("MatMul", g.op("Mul", q, scalar((e // h) ** -0.5)), g.op("Transpose", k, perm=[0, 1, 3, 2]))
        y = g.op("MatMul", g.op("Softmax", a, axis=-1), v)
        y = g.op("Transpose", y, perm=[0, 2, 1, 3])
        y = g.op("Reshape", y, g.op("Concat", b, s, ints(e), axis=0))
        x = g.op("Add", x, linear(y, e, e))
        y = linear(norm(x), e, f)
        half = g.op("Mul", y, g.op("Add", g.op("Erf", g.op("Div", y, scalar(2 ** 0.5))), scalar(1)))
        x = g.op("Add", x, linear(g.op("Mul", half, scalar(0.5)), f, e))
    g.nodes[-1].output[0] = "features"
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", "sequence", e]) for n in ("tokens", "features")]
    g.save(path, info[:1], info[1:], 17, attention_block.__doc__)


MODELS = {"channels_last_cnn": channels_last_cnn, "attention_block": attention_block}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    for name, make in MODELS.items():
        make(folder / f"{name}.onnx")
        print(folder / f"{name}.onnx")
