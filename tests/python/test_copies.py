#!/usr/bin/env python3
"""What a run copies in transformers, from the first product on to the last (`relayout bench --json`, its steps).

  test_copies.py                   small models of BERT's, GPT's and ViT's kind, and ViT, GPT and Swin of the samples
  test_copies.py bert --verbose    models whose name contains one of these; with what each step copied

The small models are generated in two styles of exporters: sizes computed in the graph (Shape, Gather, Concat), Gelu and the scale written out,
q, k and v by Gather; and sizes as numbers, k transposed in one step, a scale on both sides, q, k and v by Split.  Nothing may be copied.
Swin and Swin v2 may copy where windows are cut, rolled and put together: Concat, Pad, and the last of the Reshapes behind a Transpose of 5 dims
or more.
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

import common
import zoo

WINDOWS = ("swin",)
SAMPLES = ("_vit", "gpt", "swin")


class Transformer:
    """`computed`: the first of the two styles."""

    def __init__(self, computed, tokens, width, heads):
        self.rng, self.computed, self.tokens, self.width, self.heads = np.random.default_rng(1), computed, tokens, width, heads
        self.nodes, self.init, self.n = [], [], 0

    def given(self, a):
        self.n += 1
        self.init.append(numpy_helper.from_array(np.asarray(a), f"c{self.n}"))
        return f"c{self.n}"

    def weights(self, *shape):
        return self.given((self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def number(self, x):
        return self.given(np.float32(x))

    def ints(self, *x):
        return self.given(np.array(x, np.int64))

    def add(self, op, inputs, outputs=1, **attributes):
        self.n += 1
        made = [f"v{self.n}_{i}" for i in range(outputs)]
        self.nodes.append(h.make_node(op, inputs, made, name=f"{op}_{self.n}", **attributes))
        return made[0] if outputs == 1 else made

    def reshape(self, x, like, *sizes):
        """Sizes of -2: the batch or the tokens, as `like` has them there."""
        if not self.computed:
            return self.add("Reshape", [x, self.ints(*[d if d > -2 else (1 if i == 0 else self.tokens) for i, d in enumerate(sizes)])])
        shape = self.add("Shape", [like])
        dims = [self.ints(d) if d > -2 else self.add("Unsqueeze", [self.add("Gather", [shape, self.given(np.int64(i))], axis=0), self.ints(0)])
                for i, d in enumerate(sizes)]
        return self.add("Reshape", [x, self.add("Concat", dims, axis=0)])

    def linear(self, x, n, m):
        y = self.add("MatMul", [x, self.weights(n, m)])
        return self.add("Add", [y, self.weights(m)]) if not self.computed else self.add("Add", [self.weights(m), y])

    def norm(self, x):
        if not self.computed:
            return self.add("LayerNormalization", [x, self.weights(self.width), self.weights(self.width)], axis=-1)
        d = self.add("Sub", [x, self.add("ReduceMean", [x], axes=[-1])])
        v = self.add("ReduceMean", [self.add("Pow", [d, self.number(2)])], axes=[-1])
        y = self.add("Div", [d, self.add("Sqrt", [self.add("Add", [v, self.number(1e-5)])])])
        return self.add("Add", [self.add("Mul", [y, self.weights(self.width)]), self.weights(self.width)])

    def gelu(self, x):
        e = self.add("Add", [self.add("Erf", [self.add("Div", [x, self.number(2 ** 0.5)])]), self.number(1)])
        return self.add("Mul", [self.add("Mul", [x, e]), self.number(0.5)])

    def heads_of(self, x, kind):
        """q, k, v as [batch, heads, tokens, size], and whether k is transposed."""
        c, n, size = self.width, self.heads, self.width // self.heads
        if kind == "bert":
            part = [self.reshape(self.linear(x, c, c), x, -2, -2, n, size) for _ in range(3)]
            q, v = (self.add("Transpose", [part[i]], perm=[0, 2, 1, 3]) for i in (0, 2))
            return q, self.add("Transpose", [part[1]], perm=[0, 2, 3, 1]), v, True
        if kind == "gpt":
            part = [self.reshape(y, x, -2, -2, n, size) for y in self.add("Split", [self.linear(x, c, 3 * c)], 3, axis=-1)]
            return (*[self.add("Transpose", [y], perm=[0, 2, 1, 3]) for y in part], False)
        y = self.add("Transpose", [self.reshape(self.linear(x, c, 3 * c), x, -2, -2, 3, n, size)], perm=[2, 0, 3, 1, 4])
        if self.computed:
            return (*[self.add("Gather", [y, self.given(np.int64(i))], axis=0) for i in range(3)], False)
        return (*[self.add("Squeeze", [z, self.ints(0)]) for z in self.add("Split", [y], 3, axis=0)], False)

    def attention(self, x, kind, mask):
        size = self.width // self.heads
        q, k, v, turned = self.heads_of(x, kind)
        if not turned:
            k = self.add("Transpose", [k], perm=[0, 1, 3, 2])
        if not self.computed:
            q, k = (self.add("Mul", [y, self.number(size ** -0.25)]) for y in (q, k))
        s = self.add("MatMul", [q, k])
        if self.computed:
            s = self.add("Div", [s, self.number(size ** 0.5)])
        if kind == "bert":
            s = self.add("Add", [s, mask])
        if kind == "gpt":
            s = self.add("Where", [mask, s, self.number(-np.inf)])
        y = self.add("Transpose", [self.add("MatMul", [self.add("Softmax", [s], axis=-1), v])], perm=[0, 2, 1, 3])
        return self.linear(self.reshape(y, x, -2, -2, self.width), self.width, self.width)

    def model(self, kind):
        c = self.width
        inputs = [h.make_tensor_value_info("x", T.FLOAT, [1, 3, 32, 32] if kind == "vit" else [1, self.tokens, c])]
        mask, x = None, "x"
        if kind == "vit":
            x = self.add("Conv", ["x", self.weights(c, 3, 8, 8)], kernel_shape=[8, 8], strides=[8, 8])
            x = self.add("Transpose", [self.add("Reshape", [x, self.ints(1, c, 16)])], perm=[0, 2, 1])
            x = self.add("Add", [self.add("Concat", [self.weights(1, 1, c), x], axis=1), self.weights(1, 17, c)])
        if kind == "bert":
            inputs.append(h.make_tensor_value_info("mask", T.FLOAT, [1, self.tokens]))
            mask = self.add("Unsqueeze", ["mask", self.ints(1, 2)])
            mask = self.add("Mul", [self.add("Sub", [self.number(1), mask]), self.number(-1e4)])
        if kind == "gpt":
            mask = self.given(np.tril(np.ones((1, 1, self.tokens, self.tokens), bool)))
        for _ in range(2):
            x = self.add("Add", [x, self.attention(self.norm(x), kind, mask)])
            x = self.add("Add", [x, self.linear(self.gelu(self.linear(self.norm(x), c, 4 * c)), 4 * c, c)])
        y = self.add("MatMul", [self.norm(x), self.weights(c, 10)])
        g = h.make_graph(self.nodes, kind, inputs, [h.make_tensor_value_info(y, T.FLOAT, None)], self.init)
        return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def small_models():
    for kind, tokens in (("bert", 33), ("gpt", 50), ("vit", 17)):
        for computed in (True, False):
            yield f"{kind} with sizes {'computed' if computed else 'as numbers'}", Transformer(computed, tokens, 48, 4).model(kind)


def may_copy(model, step):
    """Part of what moves windows."""
    node = next(n for n in model.graph.node if n.name == step["node"])
    if node.op_type != "Reshape":
        return node.op_type in ("Concat", "Pad")
    before = node
    while before is not None and before.op_type == "Reshape":  # one step
        before = next((n for n in model.graph.node if before.input[0] in n.output), None)
    perm = before is not None and next((a.ints for a in before.attribute if a.name == "perm"), [])
    return before is not None and before.op_type == "Transpose" and len(perm) >= 5


def check(prog, name, path, model, verbose):
    """What is wrong, or an empty text."""
    steps = common.bench(prog, path)["steps"]
    products = [i for i, s in enumerate(steps) if s["op"] in ("MatMul", "Gemm")]
    copies = [s for s in steps[products[0]:products[-1] + 1] if s["copied_bytes"]]
    joined = sum(s["kernel"] == "attention" for s in steps)
    if verbose:
        print(f"{name}: {len(steps)} steps, {joined} of attention", *[f"  {s['op']} {s['node']}: {s['copied_bytes']}" for s in copies], sep="\n")
    if joined != sum(n.op_type == "Softmax" for n in model.graph.node):
        return f"{joined} steps of attention for {sum(n.op_type == 'Softmax' for n in model.graph.node)} Softmaxes"
    bad = [s for s in copies if not (any(w in name for w in WINDOWS) and may_copy(model, s))]
    return ", ".join(f"{s['op']} {s['node']} copies {s['copied_bytes']} bytes" for s in bad)


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("names", nargs="*")
    p.add_argument("--verbose", action="store_true")
    args = p.parse_args()
    prog, passed, failed = common.program(args), 0, 0
    common.need_onednn(prog)
    with tempfile.TemporaryDirectory() as tmp:
        models = []
        for name, model in small_models():
            models.append((name, Path(tmp) / f"{len(models)}.onnx", model))
            onnx.save(model, models[-1][1])
        for name in zoo.chosen(SAMPLES):
            path = zoo.filled(name, args.build / "zoo")
            models.append((name, path, onnx.load(path, load_external_data=False)))
        for name, path, model in models:
            if args.names and not any(n in name for n in args.names):
                continue
            wrong = check(prog, name, path, model, args.verbose)
            if wrong:
                print(f"{name}: {wrong}")
            passed, failed = passed + (not wrong), failed + bool(wrong)
    return common.closing(passed, failed)


if __name__ == "__main__":
    sys.exit(main())
