"""Random models with model-local functions: called once or more, with other shapes, of their own results, from each other, from bodies, or by nobody; with default
attributes, attributes that stand for those of a call, and inputs that are left out.

    model, inputs = funcgen.make(7)
"""
import random

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

OPSETS = [h.make_opsetid("", 17), h.make_opsetid("local", 1)]
PERMS = [[0, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]]


def refers(node, name, to, kind):
    """The node with an attribute that stands for one of the call."""
    a = onnx.AttributeProto(name=name, ref_attr_name=to, type=kind)
    node.attribute.append(a)
    return node


class Body:
    """Nodes on tensors of rank 3, of a function or of the main graph."""

    def __init__(self, r, prefix, functions):
        self.r, self.prefix, self.functions, self.nodes, self.count = r, prefix, functions, [], 0

    def name(self):
        self.count += 1
        return f"{self.prefix}{self.count}"

    def add(self, op, inputs, **attrs):
        y = self.name()
        self.nodes.append(h.make_node(op, inputs, [y], **attrs))
        return y

    def call(self, x, turns=True):
        fit = [f for f in self.functions if (turns or not f.name.endswith("turned"))]
        if not fit:
            return self.add("Relu", [x])
        f = self.r.choice(fit)
        inputs = [x] + ([self.bound()] if "low" in f.input and self.r.random() < 0.5 else [])
        attrs = {"axis": self.r.choice([0, 1, 2, -1])} if "axis" in f.attribute or self.r.random() < 0.5 and any(a.name == "axis" for a in f.attribute_proto) else {}
        y = [self.name() for _ in f.output]
        if len(y) > 1 and self.r.random() < 0.3:
            y[1] = ""
        self.nodes.append(h.make_node(f.name, inputs, y, domain="local", **attrs))
        return y[0]

    def bound(self):
        return self.add("Constant", [], value=numpy_helper.from_array(np.array(-0.5, np.float32)))

    def branch(self, x):
        """An If whose branches read x and give the sizes of x."""
        cond = self.add("Less", [self.add("ReduceMax", [x], keepdims=0), self.bound()])
        branches = []
        for _ in range(2):
            b = Body(self.r, f"{self.name()}_", [f for f in self.functions if not f.name.endswith("turned")])
            perm, y = self.r.choice(PERMS), x
            turned = self.r.random() < 0.5
            y = b.add("Transpose", [y], perm=perm) if turned else y
            for _ in range(self.r.randint(1, 2)):
                y = b.call(y) if b.functions and self.r.random() < 0.4 else b.add(self.r.choice(["Relu", "Neg"]), [y])
            y = b.add("Transpose", [y], perm=[perm.index(k) for k in range(3)]) if turned else y
            branches.append(h.make_graph(b.nodes, "branch", [], [h.make_tensor_value_info(y, T.FLOAT, None)]))
        return self.add("If", [cond], then_branch=branches[0], else_branch=branches[1])

    def step(self, x, turns=True):
        k = self.r.random()
        if k < 0.35 and turns:
            return self.add("Transpose", [x], perm=self.r.choice(PERMS))
        if k < 0.6 and [f for f in self.functions if turns or not f.name.endswith("turned")]:
            return self.call(x, turns)
        if k < 0.7:
            return self.branch(x)
        if k < 0.8:
            return self.add("Softmax", [x], axis=self.r.choice([0, 1, 2]))
        return self.add(self.r.choice(["Relu", "Neg", "Sigmoid"]), [x])


def function(r, k, others):
    """Its name tells whether y may have the sizes of x in another sequence."""
    b, y, turned = Body(r, "t", others), "x", r.random() < 0.4
    perm = r.choice(PERMS)
    y = b.add("Transpose", [y], perm=perm) if r.random() < 0.7 else y
    for _ in range(r.randint(1, 4)):
        y = b.step(y, turns=False)
    if len(b.nodes) and b.nodes[0].op_type == "Transpose" and not turned:
        y = b.add("Transpose", [y], perm=[perm.index(k) for k in range(3)])
    name = f"F{k}" + ("_turned" if turned else "")
    inputs, outputs, attributes, defaults = ["x"], ["y"], [], []
    if r.random() < 0.4:
        n = h.make_node("Softmax", [y], ["soft"])
        b.nodes.append(refers(n, "axis", "axis", onnx.AttributeProto.INT))
        y = "soft"
        if r.random() < 0.5:
            attributes.append("axis")
        else:
            defaults.append(h.make_attribute("axis", r.choice([0, 1])))
    if r.random() < 0.3:
        inputs.append("low")
        b.nodes.append(h.make_node("Clip", [y, "low"], ["clipped"]))
        y = "clipped"
    if r.random() < 0.3:
        outputs.append("second")
        b.nodes.append(h.make_node("Transpose", [y], ["second"], perm=r.choice(PERMS)))
    b.nodes.append(h.make_node("Identity" if r.random() < 0.2 else "Relu", [y], ["y"]))
    return h.make_function("local", name, inputs, outputs, b.nodes, OPSETS, attributes, defaults)


def make(seed):
    """A model, and values of its inputs."""
    r, functions = random.Random(seed), []
    for k in range(r.randint(1, 4)):
        functions.append(function(r, k, list(functions)))
    shapes = [r.choice([[2, 3, 4], [2, 4, 1], [3, 1, 4], ["N", 3, 4], ["N", 4, 4]]) for _ in range(r.randint(1, 3))]
    b = Body(r, "v", functions)
    names = [f"in{k}" for k in range(len(shapes))]
    pool, sinks = list(names), []
    for _ in range(r.randint(2, 9)):
        pool.append(b.step(r.choice(pool)))
        if r.random() < 0.4:
            sinks.append(pool[-1])
    info = lambda n, dims: h.make_tensor_value_info(n, T.FLOAT, dims)
    made = {n for x in b.nodes for n in x.output}
    outputs = [s for s in dict.fromkeys(sinks) if s in made] or [b.nodes[-1].output[0]]
    g = h.make_graph(b.nodes, "g", [info(n, s) for n, s in zip(names, shapes)], [info(n, [None] * 3) for n in outputs])
    rng = np.random.default_rng(seed)
    inputs = {n: rng.standard_normal([5 if d == "N" else d for d in s]).astype(np.float32) for n, s in zip(names, shapes)}
    return h.make_model(g, opset_imports=OPSETS, ir_version=9, functions=functions), inputs
