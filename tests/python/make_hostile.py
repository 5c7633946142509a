#!/usr/bin/env python3
"""Files that no program should trust: damaged, contradictory, oversized, or pointing where they must not.

  make_hostile.py DIR     writes them all, with DIR/expect.json: for each the exit statuses that are right and words that the
                          message must hold (names of the tensor or node at fault)

Also a module: battery(folder) yields the same as Case. Everything is seeded; most cases are small.
"""
import dataclasses
import json
import os
import random
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.defs
from onnx import GraphProto, ModelProto, TensorProto, helper

FAILS, MODEL, LIMIT, IO = (3, 4, 5), (4,), (5,), (3,)
BOMB = 10 << 20


@dataclasses.dataclass
class Case:
    path: Path
    status: tuple         # exit statuses that are right
    says: tuple = ()      # what the message must hold
    out: str = ""         # an output path to use; "" for a new file


# ---------------------------------------------------------------------------------------------------------- building bytes

def varint(x):
    out = bytearray()
    while x >= 0x80:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    out.append(x)
    return bytes(out)


def head(number, size):
    """What stands before the body of a field with a length."""
    return varint(number << 3 | 2) + varint(size)


def field(number, body):
    """A field with a length."""
    return head(number, len(body)) + body


def scalar(number, x):
    return varint(number << 3) + varint(x & (2 ** 64 - 1))


OPSET = field(8, field(1, b"") + scalar(2, 17))
IR = scalar(1, 8)


def model_bytes(graph):
    return IR + field(7, graph) + OPSET


def f32(name, shape=(2, 3)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def tensor(name="w", dtype=TensorProto.FLOAT, dims=(2, 3), **data):
    t = TensorProto(name=name, data_type=dtype, dims=list(dims))
    for k, v in data.items():
        if isinstance(v, (list, tuple)):
            getattr(t, k).extend(v)
        else:
            setattr(t, k, v)
    return t


def graph(nodes, inputs=None, outputs=None, inits=(), name="g"):
    g = GraphProto(name=name)
    g.node.extend(nodes)
    g.input.extend([f32("x")] if inputs is None else inputs)
    g.output.extend([f32("y")] if outputs is None else outputs)
    g.initializer.extend(inits)
    return g


def model(nodes=None, inputs=None, outputs=None, inits=(), ir=8, opset=17):
    m = ModelProto(ir_version=ir)
    m.graph.CopyFrom(graph([relu("x", "y")] if nodes is None else nodes, inputs, outputs, inits))
    if opset is not None:
        m.opset_import.add().version = opset
    return m


def relu(a, b, name="relu"):
    return helper.make_node("Relu", [a], [b], name=name)


def good():
    """A sound model with a bit of everything."""
    w = tensor("w", dims=(3, 3), raw_data=np.eye(3, dtype=np.float32).tobytes())
    body = lambda n: graph([helper.make_node("Add", ["h", "w"], [n])], [], [f32(n)], name=n)
    nodes = [relu("x", "h"), helper.make_node("MatMul", ["h", "w"], ["m"], name="mm"), helper.make_node("Transpose", ["m"], ["t"], perm=[1, 0], name="t1"),
             helper.make_node("Transpose", ["t"], ["u"], perm=[1, 0], name="t2"),
             helper.make_node("Constant", [], ["c"], value=tensor("", TensorProto.BOOL, (), int32_data=[1])),
             helper.make_node("If", ["c"], ["b"], name="if", then_branch=body("o1"), else_branch=body("o2")),
             helper.make_node("Add", ["u", "u"], ["y"], name="add")]
    nodes[-2].attribute[0].g.initializer.add().CopyFrom(tensor("k", dims=(1,), float_data=[1.0]))
    m = model(nodes, [f32("x", ("N", 3))], [f32("y", ("N", 3)), f32("b", None)], [w])
    m.graph.value_info.add().CopyFrom(f32("m", ("N", 3)))
    m.metadata_props.add().key = "k"
    return m


# ---------------------------------------------------------------------------------------------------------- kinds of harm

def truncated():
    data = good().SerializeToString()
    for k in range(30):
        yield f"cut{k:02}", data[:len(data) * k // 30], MODEL, ()
    for k in (1, 2, 3, 4, 8, 13):
        yield f"cut_last{k:02}", data[:-k], MODEL, ()
    big = model(inits=[tensor("w", dims=(256, 256), raw_data=bytes(256 * 256 * 4))], nodes=[relu("x", "y")]).SerializeToString()
    yield "cut_weights", big[:len(big) // 2], MODEL, ()


def noise():
    for k in range(24):
        r = random.Random(k)
        yield f"random{k:02}", r.randbytes([1, 2, 7, 64, 1000, 100000][k % 6]), MODEL, ()
    yield "zeros", bytes(4096), MODEL, ()
    yield "ones", b"\xff" * 4096, MODEL, ()
    yield "text", b"ir_version: 8\ngraph { }\n", MODEL, ()
    yield "png", b"\x89PNG\r\n\x1a\n" + bytes(100), MODEL, ()
    yield "zip", b"PK\x03\x04" + bytes(100), MODEL, ()
    data = good().SerializeToString()
    for k in range(60):
        r, d = random.Random(1000 + k), bytearray(data)
        for _ in range(1 + k % 4):
            d[r.randrange(len(d))] ^= 1 << r.randrange(8)
        yield f"flip{k:02}", bytes(d), (0,) + FAILS, ()
    for k in range(20):
        r = random.Random(2000 + k)
        i, j = sorted(r.sample(range(len(data)), 2))
        yield f"splice{k:02}", data[:i] + data[j:] if k % 2 else data[:j] + data[i:], (0,) + FAILS, ()


def wire():
    sound = model().graph.SerializeToString()
    yield "empty", b"", MODEL, ("empty",)
    yield "field_zero", b"\x02\x00" + model_bytes(sound), MODEL, ()
    yield "group", b"\x0b\x0c" + model_bytes(sound), MODEL, ()
    yield "wire_type_6", b"\x0e\x00" + model_bytes(sound), MODEL, ()
    yield "long_varint", b"\x08" + b"\x80" * 11 + b"\x01" + model_bytes(sound), MODEL, ()
    yield "open_varint", model_bytes(sound) + b"\x08\x80", MODEL, ()
    yield "length_past_end", IR + b"\x3a\xff\xff\x03" + sound, MODEL, ()
    yield "length_2_63", IR + b"\x3a" + varint(2 ** 63) + sound, MODEL, ()
    yield "length_2_64", IR + b"\x3a" + varint(2 ** 64 - 1) + sound, MODEL, ()
    yield "length_2_31", IR + b"\x3a" + varint(2 ** 31) + sound, MODEL, ()
    yield "tag_2_40", model_bytes(sound) + varint(2 ** 40) + b"\0", MODEL, ()
    yield "two_graphs", IR + field(7, sound) + field(7, sound) + OPSET, MODEL, ()
    yield "graph_is_number", IR + scalar(7, 5) + OPSET, MODEL, ()
    yield "node_is_number", model_bytes(sound + scalar(1, 5)), MODEL, ()
    yield "name_is_number", model_bytes(sound + field(1, scalar(1, 3) + field(4, b"Relu"))), MODEL, ()
    yield "ints_is_string", model_bytes(field(1, field(4, b"Relu") + field(2, b"y") + field(5, field(1, b"a") + field(8, b"\x80")))), MODEL, ()
    yield "dims_open", model_bytes(sound + field(5, field(8, b"w") + scalar(2, 1) + field(1, b"\x80"))), MODEL, ()
    yield "floats_uneven", model_bytes(sound + field(5, field(8, b"w") + scalar(2, 1) + scalar(1, 1) + field(4, b"\0\0\0\0\0"))), MODEL, ("w",)
    yield "int64_open", model_bytes(sound + field(5, field(8, b"w") + scalar(2, 7) + scalar(1, 1) + field(7, b"\x80"))), MODEL, ("w",)
    yield "second_tensor", model_bytes(field(1, field(4, b"C") + field(2, b"y") + field(5, field(1, b"a") + 2 * field(5, b"") + scalar(20, 4)))), MODEL, ()
    yield "trailing", model_bytes(sound) + b"\x3a", MODEL, ()


def header():
    yield "no_ir", model(ir=0), MODEL, ("ir_version",)
    yield "ir_missing", field(7, model().graph.SerializeToString()) + OPSET, MODEL, ("ir_version",)
    yield "ir_negative", model(ir=-1), MODEL, ()
    yield "ir_99", model(ir=99), LIMIT, ("99",)
    yield "no_opset", model(opset=None), MODEL, ("opset",)
    yield "opset_0", model(opset=0), MODEL, ("opset",)
    yield "opset_negative", model(opset=-5), MODEL, ("opset",)
    yield "opset_2_40", model(opset=2 ** 40), MODEL, ("opset",)
    yield "no_graph", IR + OPSET, MODEL, ("graph",)
    yield "empty_graph_with_output", model([]), MODEL, ("y",)
    yield "other_domain", model([helper.make_node("F", ["x"], ["y"], domain="a.b", name="f1")]), MODEL, ("f1", "a.b")
    m = model()
    m.functions.add().domain = "d"
    yield "function_without_name", m, MODEL, ("function",)


def names():
    yield "self_cycle", model([relu("y", "y", "loop")]), MODEL, ("loop",)
    yield "cycle2", model([relu("b", "a", "n1"), relu("a", "b", "n2"), relu("x", "y", "n3")]), MODEL, ("cycle",)
    yield "cycle3", model([relu("c", "a"), relu("a", "b"), relu("b", "c"), relu("c", "y")]), MODEL, ("cycle",)
    ring = [relu(f"v{(i - 1) % 5000}", f"v{i}", f"ring{i}") for i in range(5000)]
    yield "cycle5000", model(ring + [relu("x", "y")]), MODEL, ("cycle", "ring")
    body = graph([relu("y", "o")], [], [f32("o")])
    yield "cycle_body", model([helper.make_node("If", ["x"], ["y"], name="if1", then_branch=body, else_branch=body)]), MODEL, ("if1",)
    yield "twice_made", model([relu("x", "y", "n1"), relu("x", "y", "n2")]), MODEL, ("n2", "y")
    yield "twice_in_node", model([helper.make_node("Split", ["x"], ["y", "y"], name="split")]), MODEL, ("split", "y")
    yield "makes_input", model([relu("x", "x", "n1"), relu("x", "y")]), MODEL, ("n1", "x")
    yield "makes_initializer", model([relu("x", "w", "n1"), relu("w", "y")], inits=[tensor(float_data=[0] * 6)]), MODEL, ("n1", "w")
    yield "input_twice", model(inputs=[f32("x"), f32("x")]), MODEL, ("x",)
    yield "initializer_twice", model(inits=[tensor(float_data=[0] * 6)] * 2), MODEL, ("w",)
    yield "undefined", model([helper.make_node("Add", ["x", "nope"], ["y"], name="add1")]), MODEL, ("add1", "nope")
    yield "undefined_body", model([helper.make_node("If", ["x"], ["y"], name="if1", then_branch=graph([relu("q", "o")], [], [f32("o")]),
                                                    else_branch=graph([relu("x", "p")], [], [f32("p")]))]), MODEL, ("if1", "q")
    yield "output_undefined", model(outputs=[f32("y"), f32("z")]), MODEL, ("z",)
    yield "output_nameless", model(outputs=[f32("")]), MODEL, ("name",)
    yield "input_nameless", model(inputs=[f32(""), f32("x")]), MODEL, ("name",)
    yield "initializer_nameless", model(inits=[tensor("", float_data=[0] * 6)]), MODEL, ("initializer", "name")
    yield "no_op_type", model([helper.make_node("", ["x"], ["y"], name="n1")]), MODEL, ("n1",)
    yield "no_inputs_outputs", model([helper.make_node("Relu", [], [], name="n1"), relu("x", "y")]), MODEL, ("n1",)
    yield "attribute_nameless", model([_with_attr(helper.make_attribute("", 1))]), MODEL, ("relu",)
    a = helper.make_attribute("k", 1)
    a.f = 1.0
    yield "attribute_two_values", model([_with_attr(a)]), MODEL, ("relu", "k")
    a = helper.make_attribute("k", 1)
    a.type = 3
    yield "attribute_wrong_type", model([_with_attr(a)]), MODEL, ("relu", "k")
    a = helper.make_attribute("k", 1)
    a.ClearField("i")
    a.type = 4
    yield "attribute_no_tensor", model([_with_attr(a)]), MODEL, ("relu", "k")
    a.type = 5
    yield "attribute_no_graph", model([_with_attr(a)]), MODEL, ("relu", "k")
    yield "name_100k", model([relu("x", "h" * 100000), relu("h" * 100000, "y")]), LIMIT, ("hhh",)
    yield "name_line_ends", model([relu("x", "a\nb\r\tc\x1b[31m", "n\n1"), relu("nope\n", "y", "n\r\n2")]), MODEL, ()


def _with_attr(a):
    n = relu("x", "y")
    n.attribute.append(a)
    return n


def initializers():
    t = tensor
    cases = {
        "raw_short": t(raw_data=bytes(23)), "raw_long": t(raw_data=bytes(25)), "raw_empty": t(raw_data=b""), "no_data": t(),
        "typed_short": t(float_data=[0] * 5), "typed_long": t(float_data=[0] * 7), "typed_wrong": t(int64_data=[0] * 6),
        "two_forms": t(float_data=[0] * 6, raw_data=bytes(24)), "two_fields": t(float_data=[0] * 3, double_data=[0] * 3),
        "negative_dim": t(dims=(-2, -3), raw_data=bytes(24)), "one_negative": t(dims=(-1, 3), raw_data=bytes(24)),
        "absurd": t(dims=(2 ** 62, 2 ** 62), raw_data=bytes(24)), "absurd_zero": t(dims=(2 ** 40, 2 ** 40, 0)),
        "overflow_to_24": t(dims=(2 ** 61 + 6,), raw_data=bytes(24)), "int64_max": t(dims=(2 ** 63 - 1,), raw_data=bytes(24)),
        "int64_min": t(dims=(-2 ** 63,), raw_data=bytes(24)), "huge": t(dims=(10 ** 6, 10 ** 6), raw_data=bytes(24)),
        "no_type": t(dtype=0, raw_data=bytes(24)), "type_99": t(dtype=99, raw_data=bytes(24)), "type_negative": t(dtype=-1, raw_data=bytes(24)),
        "string_raw": t(dtype=TensorProto.STRING, raw_data=bytes(24)), "string_short": t(dtype=TensorProto.STRING, string_data=[b"a"] * 5),
        "f16_short": t(dtype=TensorProto.FLOAT16, int32_data=[0] * 5), "int4_short": t(dtype=TensorProto.INT4, int32_data=[0] * 2),
        "int4_long": t(dtype=TensorProto.INT4, int32_data=[0] * 6), "complex_short": t(dtype=TensorProto.COMPLEX64, float_data=[0] * 6),
        "bool_raw_short": t(dtype=TensorProto.BOOL, raw_data=bytes(5)), "scalar_empty": t(dims=()), "data_in_zero": t(dims=(0, 3), raw_data=bytes(4)),
    }
    for name, w in cases.items():
        yield f"init_{name}", model(inits=[w]), MODEL, ("initializer 'w'",)
        c = TensorProto()
        c.CopyFrom(w)
        yield f"const_{name}", model([helper.make_node("Constant", [], ["c"], name="k1", value=c), relu("x", "y")]), MODEL, ("k1", "value")
    yield "init_rank_5000", model(inits=[t(dims=(1,) * 5000, raw_data=bytes(4))]), LIMIT, ("w", "rank")
    yield "init_in_body", model([helper.make_node("If", ["x"], ["y"], name="if1", then_branch=graph([relu("w", "o")], [], [f32("o")], [t(raw_data=bytes(3))]),
                                                  else_branch=graph([relu("x", "p")], [], [f32("p")]))]), MODEL, ("if1", "w")
    m = model()
    s = m.graph.sparse_initializer.add()
    s.dims.extend([2, -3])
    s.values.CopyFrom(t("s", dims=(1,), float_data=[1]))
    yield "sparse_negative", m, MODEL, ("s",)
    s.values.name = ""
    yield "sparse_nameless", m, MODEL, ("sparse",)


def attributes():
    """What fuzzing found, and its neighbours: contradictions inside one node, also for `relayout run`."""
    def one(op, inits=(), **attrs):
        return model([helper.make_node(op, ["x", *[t.name for t in inits]], ["y"], name="n1", **attrs)], inits=inits)

    ints = lambda name, *x: tensor(name, TensorProto.INT64, (len(x),), int64_data=x)
    for name, equation in (("dots_twice", "...ab...->ab"), ("dots_apart", ".a.b->ab"), ("dots_out_twice", "...b->...b..."), ("dots_many", "." * 1000 + "->" + ".a" * 1000),
                           ("not_ascii", "\x80\xff.a."), ("empty", ""), ("arrow", "->"), ("letters", "abcdefghij->a")):
        yield f"einsum_{name}", one("Einsum", equation=equation.encode("latin-1")), (0, 4, 5), ()
    for name, step in (("most", 2 ** 63 - 1), ("least", -2 ** 63), ("least_but_one", 1 - 2 ** 63), ("huge", -1008806316530991104)):
        yield f"slice_step_{name}", one("Slice", (ints("s", 0), ints("e", 2), ints("a", 1), ints("t", step))), (0, 4, 5), ()
        yield f"slice_step_{name}_back", one("Slice", (ints("s", -1), ints("e", -2 ** 63), ints("a", 1), ints("t", step))), (0, 4, 5), ()


def bare():
    """Every op with inputs missing or left out, with scalars, with strings, with no outputs."""
    for op in sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""}):
        schema = onnx.defs.get_schema(op)
        nin, nout = max(schema.min_input, min(len(schema.inputs), 4)), max(1, min(len(schema.outputs), 3))
        outs = ["y"] + [f"y{i}" for i in range(1, nout)]
        for name, ins in (("none", []), ("left_out", [""] * nin), ("scalars", ["x"] * nin), ("first", ["x"]), ("first_left_out", ["x"] + [""] * nin), ("late", [""] * (nin - 1) + ["x"] if nin > 1 else ["x", "x", "x"])):
            m = model([helper.make_node(op, ins, outs, name="n1")], inputs=[f32("x", ())], outputs=[f32("y", None)], opset=min(onnx.defs.onnx_opset_version(), 24), ir=10)
            yield f"{op}_{name}", m, (0, 4, 5), ()
        ends = dict(inputs=[f32("x", (1, 2, 3, 4))], outputs=[f32("z", None)])
        turned = lambda ins: [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]), helper.make_node(op, ins, outs, name="n1"),
                              helper.make_node("Transpose", ["y"], ["z"], perm=[0, 3, 1, 2])]
        for name, ins in (("few", ["t"]), ("left_out", ["t"] + [""] * nin), ("two", ["t", "t"]), ("gap", ["t", "", "t", "t"])):
            yield f"{op}_turned_{name}", model(turned(ins), opset=21, ir=10, **ends), (0, 4, 5), ()
        ints = helper.make_tensor_value_info("x", TensorProto.INT64, (1,))
        strings = tensor("s", TensorProto.STRING, (1,), string_data=[b"a"])
        m = model([helper.make_node(op, (["x", "s"] * nin)[:nin], outs, name="n1"), helper.make_node(op, (["s", "x"] * nin)[:nin], [], name="n2")],
                  inputs=[ints], outputs=[f32("y", None)], inits=[strings], opset=18)
        yield f"{op}_mixed", m, (0, 4, 5), ()


def types():
    yield "input_absurd", model(inputs=[f32("x", (2 ** 62, 2 ** 62))]), MODEL, ("x",)
    yield "output_absurd", model(outputs=[f32("y", (2 ** 62, 8))]), MODEL, ("y",)
    yield "input_rank_5000", model(inputs=[f32("x", (1,) * 5000)]), LIMIT, ()
    m = model([relu("x", "h"), relu("h", "y")])
    m.graph.value_info.add().CopyFrom(f32("h", (2 ** 62, 2 ** 62)))
    yield "hint_absurd", m, MODEL, ("h",)
    # The ranks that inference finds wrong: the reader alone accepts them.
    for name, perm in (("short", [0]), ("long", [0, 1, 2]), ("twice", [0, 0]), ("outside", [0, 7]), ("negative", [-9, 0])):
        yield f"perm_{name}", model([helper.make_node("Transpose", ["x"], ["y"], name="t1", perm=perm)]), (0, 4), ()
    w = tensor("w", dims=(3,), float_data=[0] * 3)
    yield "conv_rank", model([helper.make_node("Conv", ["x", "w"], ["y"], name="c1")], inits=[w]), (0, 4), ()
    yield "matmul_dims", model([helper.make_node("MatMul", ["x", "x"], ["y"], name="m1")]), (0, 4), ()
    yield "concat_axis", model([helper.make_node("Concat", ["x", "x"], ["y"], name="c1", axis=99)]), (0, 4), ()
    s = tensor("s", TensorProto.INT64, (1,), int64_data=[-7])
    yield "reshape_negative", model([helper.make_node("Reshape", ["x", "s"], ["y"], name="r1")], inits=[s]), (0, 4), ()
    s = tensor("s", TensorProto.INT64, (2,), int64_data=[2 ** 62, 2 ** 62])
    yield "reshape_absurd", model([helper.make_node("Reshape", ["x", "s"], ["y"], name="r1")], inits=[s]), (0, 4), ()
    yield "expand_absurd", model([helper.make_node("Expand", ["x", "s"], ["y"], name="e1")], inits=[s]), (0, 4), ()
    yield "constant_of_absurd", model([helper.make_node("ConstantOfShape", ["s"], ["y"], name="k1")], inits=[s]), (0, 4), ()
    s = tensor("s", TensorProto.INT64, (2,), int64_data=[2 ** 31, 2 ** 31])
    yield "tile_absurd", model([helper.make_node("Tile", ["x", "s"], ["y"], name="t1")], inits=[s]), (0, 4), ()
    r = [tensor(n, TensorProto.INT64, (), int64_data=[v]) for n, v in (("a", 0), ("b", 2 ** 62), ("c", 1))]
    yield "range_absurd", model([helper.make_node("Range", ["a", "b", "c"], ["y"], name="r1")], inits=r), (0, 4), ()
    yield "range_step_0", model([helper.make_node("Range", ["a", "b", "a"], ["y"], name="r1")], inits=r), (0, 4), ()
    yield "no_inputs_relu", model([helper.make_node("Relu", [], ["y"], name="r1")]), (0, 4), ()
    yield "no_inputs_concat", model([helper.make_node("Concat", [], ["y"], name="c1", axis=0)]), (0, 4), ()
    yield "einsum", model([helper.make_node("Einsum", ["x"], ["y"], name="e1", equation="ij,->->kk...[")]), (0, 4), ()


def nesting():
    def nested(depth, around):
        """around(size): what stands before and behind a body of that size."""
        before, behind, size = [], [], 0
        for _ in range(depth):
            a, b = around(size)
            before.append(a)
            behind.append(b)
            size += len(a) + len(b)
        return b"".join([*reversed(before), *behind])

    def body(size):
        """If bodies: graph -> node -> attribute -> graph."""
        kind = scalar(20, 5)
        attribute = field(1, b"then_branch") + head(6, size)
        node = field(1, b"c") + field(2, b"o") + field(4, b"If") + head(5, len(attribute) + size + len(kind)) + attribute
        return head(1, len(node) + size + len(kind)) + node, kind

    def seq(size):
        element = head(1, size)
        return head(4, len(element) + size) + element, b""

    for depth in (33, 100, 5000):
        yield f"if_{depth}", model_bytes(nested(depth, body)), LIMIT, ()
    for depth in (100, 5000, 100000 if sys.maxsize > 2 ** 32 else 5000):
        yield f"sequence_{depth}", model_bytes(field(11, field(1, b"x") + field(2, nested(depth, seq)))), LIMIT, ()
    m = model().SerializeToString()
    yield "function_if_5000", m + field(25, field(1, b"f") + field(7, field(4, b"If") + field(5, field(6, nested(5000, body))))), LIMIT, ()
    yield "training_5000", m + field(20, field(1, nested(5000, body))), LIMIT, ()
    yield "hint_5000", model_bytes(model().graph.SerializeToString() + field(13, field(1, b"x") + field(2, nested(5000, seq)))), LIMIT, ()


def bombs():
    g = model().graph.SerializeToString()
    many = lambda unit: unit * (BOMB // len(unit))
    yield "bomb_nodes", model_bytes(many(b"\x0a\x00")), MODEL, ("node",)
    yield "bomb_initializers", model_bytes(many(b"\x2a\x00")), MODEL, ("initializer",)
    yield "bomb_inputs", model_bytes(many(b"\x5a\x00")), MODEL, ("input",)
    yield "bomb_hints", model_bytes(g + many(b"\x6a\x00")), (0, 4, 5), ()
    yield "bomb_small_nodes", model_bytes(many(field(1, field(2, b"") + field(4, b"A"))) + g), (0, 5), ()
    yield "bomb_attributes", model_bytes(field(1, field(4, b"Relu") + field(2, b"y") + many(b"\x2a\x00")) + g), FAILS, ()
    yield "bomb_small_attributes", model_bytes(field(1, field(4, b"Relu") + field(2, b"y") + many(field(5, field(1, b"a"))))), FAILS, ()
    yield "bomb_node_inputs", model_bytes(field(1, field(4, b"Relu") + field(2, b"y") + many(b"\x0a\x00"))), (0,) + FAILS, ()
    yield "bomb_dims", model_bytes(field(11, field(1, b"x") + field(2, field(1, field(2, many(b"\x0a\x00")))))), LIMIT, ()
    yield "bomb_shapes", model_bytes(field(11, field(1, b"x") + field(2, field(1, many(b"\x12\x02\x0a\x00"))))), FAILS, ()
    yield "bomb_tensor_dims", model_bytes(g + field(5, field(8, b"w") + scalar(2, 1) + field(1, many(b"\x01")))), LIMIT, ()
    yield "bomb_external_keys", model_bytes(g + field(5, field(8, b"w") + scalar(2, 1) + scalar(14, 1) + many(b"\x6a\x00"))), LIMIT, ()
    yield "bomb_unknown", model_bytes(g + many(b"\xf8\x07\x01")), (0,), ()
    yield "bomb_unknown_in_node", model_bytes(field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu") + many(b"\xf8\x07\x01")) +
                                              field(11, field(1, b"x")) + field(12, field(1, b"y"))), (0,), ()
    yield "bomb_metadata", model_bytes(g) + many(b"\x72\x00"), (0,), ()
    yield "bomb_opsets", model_bytes(g) + b"".join(field(8, field(1, b"d%d" % i) + scalar(2, 1)) for i in range(100000)), LIMIT, ("opset",)
    yield "bomb_functions", model_bytes(g) + b"".join(field(25, field(1, b"f%d" % i) + field(10, b"d")) for i in range(100000)), LIMIT, ("function",)
    empty_if = field(1, field(1, b"c") + field(2, b"") + field(4, b"If") + 2 * field(5, field(1, b"b") + field(6, b"") + scalar(20, 5)))
    yield "bomb_bodies", model_bytes(many(empty_if) + g), LIMIT, ("bodies",)
    yield "bomb_one_string", model_bytes(field(1, field(4, b"A" * BOMB) + field(2, b"y"))), LIMIT, ("AAAA",)
    yield "bomb_strings", model_bytes(field(1, field(4, b"Relu") + field(1, b"x") + field(2, b"y") + field(5, field(1, b"s") + scalar(20, 8) + many(b"\x4a\x00"))) +
                                      field(11, field(1, b"x")) + field(12, field(1, b"y"))), (0, 5), ()


def write_external(folder):
    """Models whose tensor w is elsewhere; beside them what they must not read."""
    (folder / "sub").mkdir()
    data = np.arange(6, dtype=np.float32).tobytes()
    (folder / "w.bin").write_bytes(data)
    (folder / "short.bin").write_bytes(data[:20])
    (folder / "none.bin").write_bytes(b"")
    (folder / "sub" / "w.bin").write_bytes(data)
    (folder.parent / "outside.bin").write_bytes(data)
    (folder / "link.bin").symlink_to("w.bin")
    (folder / "away.bin").symlink_to("../outside.bin")
    (folder / "dir_link").symlink_to("sub")
    (folder / "dangling.bin").symlink_to("nothing.bin")
    (folder / "one.bin").write_bytes(data)
    os.link(folder / "one.bin", folder / "two.bin")
    os.mkfifo(folder / "pipe.bin")


def external():
    def case(location="w.bin", offset="0", length="24", dims=(2, 3), more=(), dtype=TensorProto.FLOAT):
        t = tensor("w", dtype, dims, data_location=TensorProto.EXTERNAL)
        for k, v in (("location", location), ("offset", offset), ("length", length), *more):
            if v is not None:
                e = t.external_data.add()
                e.key, e.value = k, v
        return model(inits=[t])

    for name, where, status in (
            ("missing", "nothing.bin", IO), ("missing_dir", "nowhere/w.bin", IO), ("up", "../outside.bin", MODEL), ("up_inside", "sub/../w.bin", MODEL),
            ("up_hidden", "sub/../../outside.bin", MODEL), ("up_dots", "./../outside.bin", MODEL), ("up_end", "sub/..", MODEL), ("absolute", "/etc/passwd", MODEL),
            ("double_slash", "//etc/passwd", MODEL), ("device", "/dev/zero", MODEL), ("symlink", "link.bin", IO), ("symlink_away", "away.bin", IO),
            ("symlink_dangling", "dangling.bin", IO), ("symlink_dir", "dir_link/w.bin", IO), ("hard_link", "two.bin", IO), ("pipe", "pipe.bin", IO),
            ("folder", "sub", IO), ("empty", "", MODEL), ("dot", ".", MODEL), ("file_as_dir", "w.bin/w.bin", IO), ("long", "a" * 300, IO),
            ("long_path", "a/" * 3000 + "w", IO), ("nul", "w.bin\0../x", FAILS), ("none", None, MODEL), ("short", "short.bin", MODEL), ("empty_file", "none.bin", MODEL)):
        yield f"ext_{name}", case(where), status, ("w",)
    for name, offset, length in (
            ("offset_negative", "-8", "24"), ("offset_text", "abc", "24"), ("offset_end", "24", "24"), ("offset_one", "1", "24"), ("offset_huge", str(2 ** 64 - 8), "24"),
            ("offset_overflow", str(2 ** 70), "24"), ("length_negative", "0", "-24"), ("length_text", "0", "0x18"), ("length_short", "0", "20"), ("length_long", "0", "28"),
            ("length_huge", "0", str(2 ** 63)), ("offset_empty", "", "24"), ("offset_space", " 0", "24"), ("offset_no_length", "4", None)):
        yield f"ext_{name}", case(offset=offset, length=length), MODEL, ("w",)
    yield "ext_absurd", case(dims=(2 ** 61, 2 ** 61)), MODEL, ("w",)
    yield "ext_huge", case(dims=(2 ** 40,), length=str(2 ** 42)), MODEL, ("w",)
    yield "ext_two_locations", case(more=(("location", "short.bin"),)), MODEL, ("w",)
    yield "ext_sound", case(), (0,), ()
    yield "ext_sound_sub", case("sub/./w.bin", length=None), (0,), ()
    yield "ext_sound_scalar", case(dims=(), length="4", offset="20"), (0,), ()


# ---------------------------------------------------------------------------------------------------------- all of it

KINDS = (truncated, noise, wire, header, names, initializers, attributes, bare, types, nesting, bombs)


def _write(folder, cases):
    for name, data, status, says in cases:
        path = folder / f"{name}.onnx"
        path.write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
        yield Case(path, status, says)


def unreadable(folder):
    """Inputs that are no files, and outputs that cannot be written."""
    ok = folder / "sound.onnx"
    ok.write_bytes(good().SerializeToString())
    (folder / "folder.onnx").mkdir()
    yield Case(folder / "nothing.onnx", IO, ("nothing.onnx",))
    yield Case(folder / "folder.onnx", IO, ("folder.onnx",))
    yield Case(folder / "nowhere" / "m.onnx", IO, ("nowhere",))
    yield Case(ok, (0,))
    for out in ("missing/out.onnx", "sound.onnx/out.onnx", "/dev/full", "n" * 300, "/proc/relayout.onnx"):
        yield Case(ok, IO, (out[:20],), out if out.startswith("/") else str(folder / out))


def battery(folder):
    """Writes everything beneath folder; yields a Case for each."""
    for kind in KINDS:
        sub = folder / kind.__name__
        sub.mkdir(parents=True)
        yield from _write(sub, kind())
    sub = folder / "external"
    sub.mkdir()
    write_external(sub)
    yield from _write(sub, external())
    sub = folder / "files"
    sub.mkdir()
    yield from unreadable(sub)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cases = [dict(path=str(c.path), status=c.status, says=c.says, out=c.out) for c in battery(folder)]
    (folder / "expect.json").write_text(json.dumps(cases, indent=1))
    print(f"{len(cases)} cases in {folder}")


if __name__ == "__main__":
    main()
