#!/usr/bin/env python3
"""Graphs of any number of nodes with the structure of real models, their channels and images small.

  graphs.py ladder 100000 out.onnx

blocks   stacked blocks as PyTorch exports them: a convolution, a block of attention, an MLP with channels last between Transposes;
         each block starts and ends as an image, so the choice falls into many parts
ladder   one long residual stream with channels last, each convolution of it between two Transposes, as TensorFlow exports them; the
         stream is one value from end to end
dense    dense blocks: each layer reads the Concat of all layers before it in its block (12 of them), between two Transposes

Every layer has weights of its own.  Shapes are not written: relayout infers them, and so do its peers.
"""
import sys
from pathlib import Path

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

C, SIZE, HEADS, GROWTH, LAYERS = 8, 8, 2, 4, 12
NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)
BATCH = 4096  # nodes that are held as objects at a time


class Builder:
    """A graph in the making.  Nodes go over into bytes soon: a million objects need gigabytes."""

    def __init__(self):
        self.part, self.done, self.n = GraphProto(), [], 0
        self.rng, self.attrs = np.random.default_rng(0), {}

    def op(self, kind, *inputs, outputs=1, **attrs):
        out = [f"/{kind}_{self.n}_output_{i}" for i in range(outputs)]
        node = NodeProto(op_type=kind, name=f"/{kind}_{self.n}", input=inputs, output=out)
        node.attribute.extend(self.attr(k, v) for k, v in attrs.items())
        self.part.node.append(node)
        self.n += 1
        if len(self.part.node) >= BATCH:
            self.flush()
        return out[0] if outputs == 1 else out

    def attr(self, name, value) -> AttributeProto:
        key = (name, value)
        if key not in self.attrs:
            self.attrs[key] = helper.make_attribute(name, value)
        return self.attrs[key]

    def weight(self, *shape):
        x = self.rng.standard_normal(shape, dtype=np.float32) * 0.1
        return self.tensor(TensorProto.FLOAT, shape, x)

    def ints(self, *x):
        return self.tensor(TensorProto.INT64, [len(x)], np.array(x, np.int64))

    def tensor(self, kind, shape, x):
        name = f"onnx::w_{self.n}_{len(self.part.initializer)}"
        self.part.initializer.append(TensorProto(name=name, data_type=kind, dims=shape, raw_data=x.tobytes()))
        return name

    def flush(self):
        self.done.append(self.part.SerializeToString())
        self.part = GraphProto()

    def save(self, path, y, shape):
        self.part.name = "scale"
        self.part.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, C, SIZE, SIZE]))
        self.part.output.append(helper.make_tensor_value_info(y, TensorProto.FLOAT, shape))
        self.flush()
        head = ModelProto(ir_version=9, producer_name="relayout bench", opset_import=[helper.make_opsetid("", 17)]).SerializeToString()
        size, length = sum(map(len, self.done)), bytearray([7 << 3 | 2])  # field 7, the graph: a length and its bytes
        while size >= 0x80:
            length.append(size & 0x7f | 0x80)
            size >>= 7
        length.append(size)
        with open(path, "wb") as f:
            f.write(head + length)
            f.writelines(self.done)


def conv(b, x, cin, cout, k=3):
    return b.op("Conv", x, b.weight(cout, cin, k, k), b.weight(cout), kernel_shape=(k, k), pads=(k // 2,) * 4)


def linear(b, x, cin, cout):
    return b.op("Add", b.op("MatMul", x, b.weight(cin, cout)), b.weight(cout))


def attention(b, t):
    """t [1, HW, C]."""
    hw = SIZE * SIZE
    n = b.op("LayerNormalization", t, b.weight(C), b.weight(C), axis=-1)
    qkv = b.op("Reshape", linear(b, n, C, 3 * C), b.ints(1, hw, 3, HEADS, C // HEADS))
    parts = b.op("Split", b.op("Transpose", qkv, perm=(2, 0, 3, 1, 4)), outputs=3, axis=0)
    axis = b.ints(0)
    q, k, v = (b.op("Squeeze", p, axis) for p in parts)
    s = b.op("Softmax", b.op("MatMul", q, b.op("Transpose", k, perm=(0, 1, 3, 2))), axis=-1)
    y = b.op("Transpose", b.op("MatMul", s, v), perm=(0, 2, 1, 3))
    return b.op("Add", t, linear(b, b.op("Reshape", y, b.ints(1, hw, C)), C, C))


def blocks(b, x, count):
    while b.n < count:
        x = b.op("Relu", b.op("Add", x, conv(b, b.op("Relu", conv(b, x, C, C)), C, C)))
        t = b.op("Transpose", b.op("Reshape", x, b.ints(1, C, SIZE * SIZE)), perm=(0, 2, 1))
        t = attention(b, t)
        x = b.op("Reshape", b.op("Transpose", t, perm=(0, 2, 1)), b.ints(1, C, SIZE, SIZE))
        m = b.op("LayerNormalization", b.op("Transpose", conv(b, x, C, C), perm=NHWC), b.weight(C), b.weight(C), axis=-1)
        m = linear(b, b.op("Sigmoid", linear(b, m, C, 2 * C)), 2 * C, C)
        x = b.op("Add", x, b.op("Transpose", m, perm=NCHW))
    return x, (1, C, SIZE, SIZE)


def nhwc_conv(b, x, cin, cout, k=3):
    return b.op("Transpose", conv(b, b.op("Transpose", x, perm=NCHW), cin, cout, k), perm=NHWC)


def ladder(b, x, count):
    x = b.op("Transpose", x, perm=NHWC)
    while b.n < count:
        y = b.op("Relu", b.op("Add", b.op("Mul", nhwc_conv(b, x, C, C), b.weight(C)), b.weight(C)))
        x = b.op("Relu", b.op("Add", x, nhwc_conv(b, y, C, C)))
    return x, (1, SIZE, SIZE, C)


def dense(b, x, count):
    x = b.op("Transpose", x, perm=NHWC)
    while b.n < count:
        seen = [x]
        for i in range(LAYERS):
            t = seen[0] if i == 0 else b.op("Concat", *seen, axis=3)
            width = C + i * GROWTH
            t = b.op("Relu", b.op("Add", b.op("Mul", t, b.weight(width)), b.weight(width)))
            seen.append(nhwc_conv(b, t, width, GROWTH))
        x = nhwc_conv(b, b.op("Concat", *seen, axis=3), C + LAYERS * GROWTH, C, 1)
    return x, (1, SIZE, SIZE, C)


FAMILIES = {"blocks": blocks, "ladder": ladder, "dense": dense}


def make(family, count, path):
    """Writes a model of a few nodes more than count; returns how many."""
    b = Builder()
    y, shape = FAMILIES[family](b, "x", count)
    b.save(path, y, shape)
    return b.n


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in FAMILIES:
        sys.exit(f"usage: graphs.py {'|'.join(FAMILIES)} NODES OUT.onnx")
    print(make(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])), "nodes")
