#!/usr/bin/env python3
"""The declaration is executed: every row of src/ops.def that is not OPAQUE becomes graphs of one node, at every opset where
the op or its row changes, with Transposes by a random order on its inputs, its outputs, or both.

  test_ops_executed.py                  all rows
  test_ops_executed.py Softmax Pad      these rows
  test_ops_executed.py --seed 7         other sizes, orders and numbers

Each graph, optimized for onnx and generic, must do what check.py asks (same outputs, never more moves, nothing to do the second
time).  With Transposes by one order before the node and its inverse after it no Transpose may stay: that is what the row claims.
EXCEPTIONS names the forms that do not claim it; one that is no longer needed fails too.

Sizes are pairwise different; then one of them is 1; two are equal; one is a symbol (6, then 1).  Graphs of many nodes, each by
itself, stand for many graphs of one node; where one of them fails, its nodes are tried alone.
"""
import dataclasses
import itertools
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

import check
import common
from test_ops_table import read_table

TARGETS = ["onnx", "generic"]
MS = "com.microsoft"
F, I64, I32, U8, I8, BOOL, STR = T.FLOAT, T.INT64, T.INT32, T.UINT8, T.INT8, T.BOOL, T.STRING
NO_SCHEMA = {"SimplifiedLayerNormalization"}  # onnxruntime has it in the domain of ONNX

# Forms that keep the order that the model has: why.
EXCEPTIONS = {
    "indices": "MaxPool counts its Indices in the order that the model has",
    "training": "Dropout with an input training_mode that is no constant may be training",
    "resize": "Resize by other than the nearest neighbour, and Upsample, run fastest in the order that the model has",
    "pads": "pads that are computed could pad any dim",
    "repeats": "repeats that are computed could repeat any dim",
    "power": "GlobalLpPool has a reduction to be written as for p = 1 and 2 only",
    "unit": "normalized dims that all have size 1: nothing marks their place",
    "statistics": "LayerNormalization whose mean is used",
    "flat": "what Softmax before opset 13 takes together stays together and last",
    "end": "normalized dims stay last",
    "vector": "a product with a vector",
    "cut": "a Reshape of dims that the order takes apart",
    "shape": "a Reshape to a shape that is computed",
}
# Forms (row, number) that nothing here can run at any opset: why.
NOT_RUN = {}


@dataclasses.dataclass
class Arg:
    """An operand. dims: labels, one word per dim ("a bc D 3"): several letters are a product, a capital is size 1 here, a number
    is itself. Transposed unless data is given: an initializer, or, if fed, an input of that value."""
    dims: str
    dtype: int = F
    size: dict = None           # label -> size where it is another than the op's
    data: np.ndarray = None
    fed: bool = False
    fill: str = "whole"


@dataclasses.dataclass
class Case:
    op: str
    ins: list
    outs: list
    attrs: dict
    groups: str = ""            # "a,b|cd": a and b in any order, then c d; default: all labels in any order
    each: bool = False          # every operand in an order of its own
    static: str = ""            # labels whose size is written into the node
    why: str = ""               # key of EXCEPTIONS
    domain: str = ""
    note: str = ""              # "no unit": not where a size is 1; "open": the output's sizes are not said


def const(x, dtype=np.float32):
    return Arg("", data=np.asarray(x, dtype=dtype))


def ints(*x):
    return const(x, np.int64)


def fed(x, dtype=np.float32):
    return Arg("", data=np.asarray(x, dtype=dtype), fed=True)


# ---------------------------------------------------------------------------------------------------- forms, by class
# Each is a generator of Case for op k at opset v with sizes s (label -> size) and r, a random generator; it yields the same
# number of cases for any sizes, None where these do not fit.

UNARY = {"Acos": "unit", "Asin": "unit", "Atanh": "unit", "Acosh": "above", "Log": "above", "Sqrt": "above", "Reciprocal": "above",
         "Not": BOOL, "BitwiseNot": I32, "RegexFullMatch": STR}
ATTRS = {"RegexFullMatch": {"pattern": "a.*"}, "Celu": {"alpha": 0.5}, "Elu": {"alpha": 0.5}, "HardSigmoid": {"alpha": 0.3, "beta": 0.1},
         "LeakyRelu": {"alpha": 0.25}, "Selu": {"alpha": 2.0, "gamma": 0.5}, "Shrink": {"lambd": 1.5, "bias": 1.0},
         "ThresholdedRelu": {"alpha": 1.0}, "IsInf": {"detect_negative": 0}, "Swish": {"alpha": 2.0}}
BINARY = {"Add": F, "Sub": F, "Mul": F, "Div": F, "And": BOOL, "Or": BOOL, "Xor": BOOL, "Equal": F, "Greater": F, "Less": F,
          "GreaterOrEqual": F, "LessOrEqual": F, "Pow": F, "PRelu": F, "Mod": I64, "BitShift": T.UINT32, "BitwiseAnd": I32, "BitwiseOr": I32,
          "BitwiseXor": I32, "StringConcat": STR, "Max": F, "Min": F, "Mean": F, "Sum": F, "CastLike": F, "SwiGLU": F}
VARIADIC = {"Max", "Min", "Mean", "Sum"}
TO_BOOL = {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor", "Not", "IsInf", "IsNaN", "RegexFullMatch"}


def pointwise(k, v, s, r, words):
    if k in ("Clip", "Dropout", "Where", "Cast", "BitCast") or k.startswith("QLinear"):
        yield from special(k, v, s, r)
        return
    if k not in BINARY:
        fill = UNARY.get(k, "normal")
        t = fill if isinstance(fill, int) else F
        for dims in ("a b c d", "a B c"):
            yield Case(k, [Arg(dims, t, fill=fill if t == F else "")], [Arg(dims, BOOL if k in TO_BOOL else t)], ATTRS.get(k, {}))
        return
    t = BINARY[k]
    if k == "Equal" and v < 11:
        t = I64
    out = Arg("a b c d", BOOL if k in TO_BOOL else t)
    attrs = {"direction": "LEFT"} if k == "BitShift" else {}
    fill = "above" if k in ("Pow", "Div", "Mod", "BitShift") else "whole"
    arg = lambda dims, **kw: Arg(dims, t, fill=fill, **kw)
    yield Case(k, [arg("a b c d"), arg("a b c d")], [out], attrs)
    if k == "SwiGLU" or (k in VARIADIC and v < 8):
        return
    if k == "CastLike":
        yield Case(k, [arg("a b c d"), fed([[1, 2]], np.int64)], [Arg("a b c d", I64)], attrs)
        yield Case(k, [arg("a b c d"), const([1], np.int64)], [Arg("a b c d", I64)], attrs)
        return
    yield Case(k, [arg("a b c d"), arg("b C d")], [out], attrs)
    yield Case(k, [arg("a b c d"), arg("c D")], [out], attrs)
    np_type = helper.tensor_dtype_to_np_dtype(t) if t != STR else object
    whole = lambda shape: const(common.random_tensor(r, t, shape) if t in (STR, BOOL) else r.integers(1, 4, shape), np_type)
    yield Case(k, [arg("a b c d"), whole((s["c"], 1))], [out], attrs, static="c")
    yield Case(k, [arg("a b c d"), whole(())], [out], attrs)
    if k == "PRelu":  # the slope may not widen the result
        return
    yield Case(k, [arg("a B c d"), arg("A b C d")], [out], attrs)
    yield Case(k, [arg("c D"), arg("a b c d")], [out], attrs)
    yield Case(k, [whole((s["b"], s["c"], s["d"])), arg("a b c d")], [out], attrs, static="bcd")
    if k in VARIADIC:
        yield Case(k, [arg("a b c d"), arg("b c D"), arg("a B C d")], [out], attrs)
        yield Case(k, [arg("a b c d")], [out], attrs)


def special(k, v, s, r):
    x = Arg("a b c d")
    q = lambda: [const(0.5), const(3, np.uint8)]
    if k == "Clip" and v < 11:
        yield Case(k, [x], [x], {"min": -2.0, "max": 3.0})
    elif k == "Clip":
        yield Case(k, [x, const(-2), const(3)], [x], {})
        yield Case(k, [x, None, fed(2)], [x], {})
    elif k == "Dropout":
        y = Arg("a b c d", BOOL if v >= 10 else F)
        attrs = {"ratio": 0.3} if v < 12 else {}
        yield Case(k, [x], [x], attrs)
        yield Case(k, [x], [x, y], attrs)
        if v >= 12:
            yield Case(k, [x, const(0.3)], [x, y], {})
            yield Case(k, [x, const(0.3), const(False, bool)], [x, y], {})
            yield Case(k, [x, const(0.3), fed(False, bool)], [x, y], {}, why="training")
    elif k == "Where":
        yield Case(k, [Arg("b C d", BOOL), x, Arg("a B c D")], [x], {})
        yield Case(k, [Arg("a b c d", BOOL), const(1), Arg("c d")], [x], {})
    elif k == "Cast":
        yield Case(k, [x], [Arg("a b c d", I64)], {"to": I64})
        yield Case(k, [Arg("a b c d", BOOL)], [x], {"to": F})
    elif k == "BitCast":
        yield Case(k, [x], [Arg("a b c d", I32)], {"to": I32})
    elif k == "QLinearWhere":
        y = Arg("a b c d", U8)
        yield Case(k, [Arg("b C d", BOOL), y, *q(), Arg("a B c d", U8), *q(), *q()], [y], {}, domain=MS)
    elif k in ("QLinearAdd", "QLinearMul"):
        y = Arg("a b c d", U8)
        yield Case(k, [y, *q(), y, *q(), *q()], [y], {}, domain=MS)
        yield Case(k, [y, *q(), Arg("b C d", U8), *q(), *q()], [y], {}, domain=MS)
    else:
        y = Arg("a b c d", U8)
        yield Case(k, [y, *q(), *q()], [y], {"alpha": 0.5} if k == "QLinearLeakyRelu" else {}, domain=MS)


def scale_and_zero():
    return [const(0.5), const(7, np.uint8)]


SCALED = {"MatMulInteger": I32, "QLinearMatMul": U8, "MatMulIntegerToFloat": F}


def scaled(k, a, b, of_b=const):
    """The inputs of a product of integers. of_b: the zero point of B, and what is added, of a type."""
    zero = const(3, np.uint8), (const(5, np.uint8) if of_b is const else of_b(np.uint8))
    if k == "MatMulInteger":
        return [a, b, *zero]
    if k == "QLinearMatMul":
        return [a, const(0.5), zero[0], b, const(0.25), zero[1], *scale_and_zero()]
    return [a, b, const(0.5), const(0.25), *zero] + ([] if of_b is const else [of_b(np.float32)])


def rows(k, v, s, r, words):
    """A matrix [d, 5], or a vector, of constants: the last dim stays last."""
    if s["d"] == 1 and k not in ("BiasGelu", "FastGelu"):
        yield from [None] * (2 if k in SCALED else 3)
        return
    n, q, z = 5, scale_and_zero(), const(3, np.uint8)
    w = const(r.integers(0, 9, (s["d"], n)), np.uint8)
    columns = lambda t: const(r.integers(1, 4, n), t)
    x, y = lambda t: Arg("a b c d", t), lambda t: Arg("a b c d", t, size={"d": n})
    kw = {"groups": "a,b,c|d", "static": "d"}
    if k in ("BiasGelu", "FastGelu"):
        bias = const(r.integers(-2, 3, s["d"]))
        why = {"why": "unit"} if s["d"] == 1 else {}
        yield Case(k, [x(F), bias], [x(F)], {}, **kw, **why)
        yield Case(k, [x(F), bias], [x(F)], {}, **{**kw, "groups": "", "why": "end"})
        yield Case(k, [x(F)], [x(F)], {}, **{**kw, "groups": "a,b,c,d"}) if k == "FastGelu" else Case(k, [x(F), bias], [x(F)], {}, **kw, **why)
    elif k.startswith("Skip"):  # of three dims at most
        z, ws = Arg("a b d"), [const(r.integers(-2, 3, s["d"])) for _ in range(1 if k == "SkipSimplifiedLayerNormalization" else 2)]
        kw["groups"] = "a,b|d"
        yield Case(k, [z, z, *ws], [z], {"epsilon": 0.5}, **kw)
        yield Case(k, [z, z, *ws, ws[0]], [z], {"epsilon": 0.5}, **kw)
        yield Case(k, [z, z, *ws], [z], {"epsilon": 0.5}, **{**kw, "groups": "", "why": "end"})
    elif k in SCALED:  # a zero point for each column
        made = y(SCALED[k])
        yield Case(k, scaled(k, x(U8), w, columns), [made], {}, **kw)
        yield Case(k, scaled(k, x(U8), w, columns), [made], {}, **{**kw, "groups": "", "why": "end"})
    elif k == "QGemm":
        a, b, c = Arg("a d", U8), Arg("a d", U8, size={"d": n}), const(r.integers(-9, 10, n), np.int32)  # rows of several dims: tests/text/ops/qgemm.rlt
        yield Case(k, [a, *q, w, *q, c, *q], [b], {}, static="d", why="end")
        yield Case(k, [a, *q, const(w.data.T, np.uint8), *q, c, *q], [b], {"transB": 1}, static="d", why="end")
        yield None
    elif k == "DynamicQuantizeMatMul":
        yield Case(k, [x(F), w, const(0.5), z], [y(F)], {}, **kw)
        yield Case(k, [x(F), w, columns(np.float32), columns(np.uint8), columns(np.float32)], [y(F)], {}, **kw)
        yield Case(k, [x(F), w, const(0.5), z], [y(F)], {}, **{**kw, "groups": "", "why": "end"})
    else:
        packed, scales = const(r.integers(0, 256, (n, 1, 16)), np.uint8), const(np.full(n, 0.25))
        attrs = {"K": s["d"], "N": n, "bits": 4, "block_size": 32}
        yield Case(k, [x(F), packed, scales], [y(F)], attrs, **kw)
        yield Case(k, [x(F), packed, scales, const(np.full(n, 7), np.uint8)], [y(F)], attrs, **kw)
        yield Case(k, [x(F), packed, scales], [y(F)], attrs, **{**kw, "groups": "", "why": "end"})


def whole(k, v, s, r, words):
    x = Arg("a b c d")
    yield Case(k, [x], [Arg("a b c d", U8), Arg(""), Arg("", U8)], {})


def expand(k, v, s, r, words):
    yield Case(k, [Arg("a B c D"), ints(1, s["b"], 1, s["d"])], [Arg("a b c d")], {}, static="bd")
    yield Case(k, [Arg("b C"), ints(s["a"], s["b"], s["c"])], [Arg("a b c")], {}, static="abc")
    yield Case(k, [Arg("a b C"), ints(s["a"], s["b"], 1)], [Arg("a b C")], {}, static="ab")


def with_axes(k, v, words, ins, axes, **kw):
    """axes as an attribute or as an input, as the row says."""
    slot = None
    for since, name, at, _ in words:
        if name == "axes" and int(since or 0) <= v:
            slot = at
    if axes is None:
        return ins, kw
    return (ins + [ints(*axes)], kw) if slot else (ins, {"axes": axes, **kw})


def reduce(k, v, s, r, words):
    x = Arg("a b c d", fill="above" if k == "ReduceLogSum" else "whole")
    for axes, out, keep in (([1], "a B c d", 1), ([0, 3], "b c", 0), ([2, 0], "A b C d", 1), ([1, 2], "a d", 0), (None, "A B C D", 1), (None, "", 0)):
        if v >= 11 and axes and r.random() < 0.5:
            axes = [a - 4 for a in axes]
        ins, attrs = with_axes(k, v, words, [x], axes, keepdims=keep)
        yield Case(k, ins, [Arg(out)], attrs)
    ins, attrs = with_axes(k, v, words, [x], [3])
    yield Case(k, ins, [Arg("a b c D")], attrs)
    if len(ins) == 2:
        yield Case(k, [x], [x], {"noop_with_empty_axes": 1})
        yield Case(k, [x, fed([2], np.int64)], [Arg("a b C d")], {}, note="no unit open")


def global_pool(k, v, s, r, words):
    for dims, out in (("a b c d", "a b C D"), ("a b c", "a b C"), ("a b c d e", "a b C D E")):
        yield Case(k, [Arg(dims)], [Arg(out)], {})
    if k == "GlobalLpPool":
        yield Case(k, [Arg("a b c d")], [Arg("a b C D")], {"p": 1})
        yield Case(k, [Arg("a b c d")], [Arg("a b C D")], {"p": 3}, why="power")


def arg(k, v, s, r, words):
    for axis, out, keep in ((1, "a B c d", 1), (3, "a b c", 0), (0, "b c d", 0)):
        attrs = {"axis": axis - 4 if v >= 11 and keep else axis, "keepdims": keep}
        if v >= 12 and axis == 1:
            attrs["select_last_index"] = 1
        yield Case(k, [Arg("a b c d")], [Arg(out, I64)], attrs)
    yield Case(k, [Arg("a b c d")], [Arg("A b c d", I64)], {})


def along(k, v, s, r, words):
    x = Arg("a b c d")
    if k in ("CumSum", "CumProd"):
        for axis, attrs in ((1, {}), (-1, {"exclusive": 1}), (2, {"reverse": 1}), (0, {"exclusive": 1, "reverse": 1})):
            yield Case(k, [x, const(axis, np.int64 if axis < 2 else np.int32)], [x], attrs)
    elif k == "TopK":
        for axis, n in ((1, 2), (-1, 1), (0, 2)):
            dim = "abcd"[axis]
            n = min(n, s[dim])
            out = lambda t: Arg("a b c d", t, size={dim: n})
            attrs = {"axis": axis if v >= 11 or axis >= 0 else 3}
            if v >= 11 and axis == 1:
                attrs["largest"] = 0
            yield Case(k, [x] + ([ints(n)] if v >= 10 else []), [out(F), out(I64)], attrs if v >= 10 else {**attrs, "k": n}, static=dim)
    elif k == "QLinearSoftmax":
        q, x = scale_and_zero(), Arg("a b c d", U8)
        for axis, opset in ((1, 13), (-1, 13), (0, 18), (2, 11)):
            yield Case(k, [x, *q, *q], [x], {"axis": axis, "opset": opset}, domain=MS, **({"why": "flat"} if opset < 13 else {}))
    elif v < 13 and k != "LpNormalization":
        for axis, groups in ((2, "a,b|c|d"), (3, "a,b,c|d"), (None, "")):
            if axis is None:  # [a, bcd]
                yield Case(k, [x], [x], {}, why="flat")
            else:
                unit = "unit" if all(s[d] == 1 for d in "abcd"[axis:]) else ""
                yield Case(k, [x], [x], {"axis": axis - 4 if v >= 11 and axis == 2 else axis}, groups=groups, why=unit)
    else:
        for axis in (1, -1, 0, None):
            attrs = {} if axis is None else {"axis": axis}
            yield Case(k, [x], [x], {**attrs, "p": 1} if k == "LpNormalization" and axis == 1 else attrs)


def concat(k, v, s, r, words):
    n = s["b"]
    if k == "QLinearConcat":
        q, piece = scale_and_zero, lambda m, b="b": Arg("a b c d", U8, size={b: m})
        yield Case(k, [*q(), piece(n), *q(), piece(2), *q()], [piece(n + 2)], {"axis": 1}, static="b", domain=MS)
        yield Case(k, [*q(), piece(n), *q(), piece(n), *q(), piece(n), *q()], [piece(3 * n)], {"axis": 1}, static="b", domain=MS)
        return
    piece = lambda m, dims="a b c d", b="b": Arg(dims, size={b: m})
    yield Case(k, [piece(n), piece(2), piece(3)], [piece(n + 5)], {"axis": 1}, static="b")
    yield Case(k, [piece(n), piece(n)], [piece(2 * n)], {"axis": -3 if v >= 11 else 1}, static="b")
    yield Case(k, [Arg("a b c"), const(r.integers(-3, 4, (s["a"], s["b"], 2))), Arg("a b c")], [Arg("a b c", size={"c": 2 * s["c"] + 2})],
               {"axis": 2}, static="abc")
    yield Case(k, [piece(1, b="a"), piece(1, b="a")], [piece(2, b="a")], {"axis": 0}, static="a")
    yield Case(k, [Arg("a b c d")], [Arg("a b c d")], {"axis": 3})


def split(k, v, s, r, words):
    def one(sizes, axis, given=True):
        dim = "abcd"[axis]
        outs = [Arg("a b c d", size={dim: n}) for n in sizes]
        ins, attrs = [Arg("a b c d", size={dim: sum(sizes)})], {"axis": axis - 4 if v >= 11 and axis == 2 else axis}
        if given and v >= 13:
            ins.append(ints(*sizes))
        elif given:
            attrs["split"] = list(sizes)
        elif v >= 18:
            attrs["num_outputs"] = len(sizes)
        return Case(k, ins, outs, attrs, static=dim)
    yield one([2, 2, 2], 2)
    yield one([3, 3], 1, False)
    yield one([1, 1, 1], 0, False)
    yield one([1, 3, 2], 3)
    yield one([2, 4], 1)
    if v >= 18:
        yield one([3, 3, 1], 2, False)


def slice_(k, v, s, r, words):
    def one(dims, starts, ends, axes, steps=None, size=None, t=np.int64, computed=False):
        x, y = Arg(dims), Arg(dims, size=size)
        static = "".join(size)
        if 0 in size.values():
            return None
        if v < 10:
            return None if steps else Case(k, [x], [y], {"starts": starts, "ends": ends, **({"axes": axes} if axes else {})}, static=static)
        number = fed if computed else const
        ins = [x, number(starts, t), number(ends, t)] + ([const(axes, t)] if axes else []) + ([const(steps, t)] if steps else [])
        return Case(k, ins, [y], {}, static=static, note="open" if computed else "")
    n = s["c"]
    yield one("a b c d", [1], [2 ** 31 - 1], [2], size={"c": n - 1})
    yield one("a b c d", [0, 0], [s["a"], 1], None, size={"a": s["a"], "b": 1})
    yield one("a b c d", [-1, 0], [-2 ** 31, 1], [3, 1], [-1, 1], size={"d": s["d"], "b": 1})
    yield one("a b c", [0], [n], [-1], [2], size={"c": (n + 1) // 2}, t=np.int32)
    yield one("a b c", [1, 0], [s["b"], 1], [-2, 0], [1, 1], size={"b": s["b"] - 1, "a": 1}, t=np.int32)
    yield one("a b c", [1], [n], [2], [1], size={"c": n - 1}, computed=True) if v >= 10 else None


def pad(k, v, s, r, words):
    def one(dims, pads, mode="constant", value=None, axes=None, why="", computed=False):
        labels = dims.split()
        ax = axes or list(range(len(labels)))
        size = {labels[a]: s[labels[a]] + pads[i] + pads[i + len(ax)] for i, a in enumerate(ax) if pads[i] or pads[i + len(ax)]}
        if any(n < 1 for n in size.values()) or (mode != "constant" and any(s[x] < 3 for x in size)):
            return None
        attrs = {} if mode == "constant" and r.random() < 0.5 else {"mode": mode}
        if v < 11:
            return None if axes or computed else Case(k, [Arg(dims)], [Arg(dims, size=size)], {**attrs, "pads": pads, "value": float(value or 0)}, static="".join(size))
        ins = [Arg(dims), fed(pads, np.int64) if computed else ints(*pads), const(value) if value is not None else None, ints(*axes) if axes else None]
        while ins[-1] is None:
            ins.pop()
        return Case(k, ins, [Arg(dims, size=size)], attrs, static="".join(size) + (dims.replace(" ", "") if computed else ""), why=why)
    yield one("a b c d", [0, 1, 0, 0, 0, 2, 0, 0], value=-2)
    yield one("a b c d", [0, 1, 0, 0, 0, 0, 0, 3])
    yield one("a b c", [0, 0, 1, 0, 0, 2], "reflect")
    yield one("a b c", [2, 0, 0, 0, 0, 1], "edge")
    yield one("a b c", [1, 0, 0, -1, 0, 1])
    if v >= 11:
        yield one("a b c", [1, 0, 0, 0, 0, 1], why="pads", computed=True)
    if v >= 18:
        yield one("a b c d", [1, 0, 2, 3], value=1, axes=[3, 1])
        yield one("a b c d", [1, 1], axes=[-2]) if s["c"] else None
    if v >= 19:
        yield one("a b c", [0, 1, 0, 0, 2, 0], "wrap")


def tile(k, v, s, r, words):
    yield Case(k, [Arg("a b c d"), ints(1, 2, 1, 3)], [Arg("a b c d", size={"b": 2 * s["b"], "d": 3 * s["d"]})], {}, static="bd")
    yield Case(k, [Arg("a b c"), ints(2, 1, 1)], [Arg("a b c", size={"a": 2 * s["a"]})], {}, static="a")
    yield Case(k, [Arg("a b c"), fed([1, 2, 1], np.int64)], [Arg("a b c", size={"b": 2 * s["b"]})], {}, static="abc", why="repeats")


def gather(k, v, s, r, words):
    low = -s["b"] if v >= 11 else 0
    index = const(r.integers(low, s["b"], 4), np.int64)
    yield Case(k, [Arg("a b c d"), index], [Arg("a b c d", size={"b": 4})], {"axis": -3 if v >= 11 else 1}, static="b")
    yield Case(k, [Arg("a b c d"), const([0], np.int32)], [Arg("a b c d", size={"d": 1})], {"axis": 3}, static="d")
    yield Case(k, [Arg("a b c d"), const(0, np.int64)], [Arg("a c d")], {"axis": 1})
    yield Case(k, [Arg("a b c d"), fed(1 % s["a"], np.int32)], [Arg("b c d")], {}, static="a")
    table = const(r.integers(-3, 4, (8, s["e"])))
    yield Case(k, [table, Arg("a b c", I64)], [Arg("a b c e")], {}, groups="a,b,c|e", static="e")
    yield Case(k, [table, Arg("a b c", I64)], [Arg("a b c e")], {"axis": 0}, groups="e|a,b,c", static="e")
    table = const(r.integers(-3, 4, (s["d"], 8, s["e"])))
    yield Case(k, [table, Arg("a b", I32)], [Arg("d a b e")], {"axis": 1}, groups="d,e|a,b", static="de")
    rows = lambda *n: fed(r.integers(low, s["b"], n), np.int64)
    groups = {"groups": "b|a,c,d", "static": "b"}  # of an index of several dims, which stands still here
    yield Case(k, [Arg("a b c d"), rows(4)], [Arg("a b c d", size={"b": 4})], {"axis": 1}, static="b")
    yield Case(k, [Arg("a b c d"), rows(1)], [Arg("a b c d", size={"b": 1})], {"axis": 1}, static="b")
    yield Case(k, [Arg("b a c d"), const(r.integers(low, s["b"], (2, 2)), np.int64)], [Arg("2 2 a c d")], {}, **groups)
    yield Case(k, [Arg("b a c d"), rows(3, 1, 2)], [Arg("3 1 2 a c d")], {}, **groups)


def elements(k, v, s, r, words):
    for axis, n in ((0, 2), (1, 1), (-1, 3), (2, 5)):
        dim = "abcd"[axis]
        index = const(r.integers(-s[dim], s[dim], [n if d == dim else s[d] for d in "abcd"]), np.int64)
        if k == "GatherElements":
            yield Case(k, [Arg("a b c d"), index], [Arg("a b c d", size={dim: n})], {"axis": axis}, static="abcd")
            yield Case(k, [Arg("a b c d", size={dim: 8}), Arg("a b c d", I64)], [Arg("a b c d")], {"axis": axis}, static=dim)
        else:
            attrs = {"reduction": "add"} if v >= 16 and n != 2 else {}
            yield Case(k, [Arg("a b c d"), index, Arg("a b c d", size={dim: n})], [Arg("a b c d")], {"axis": axis, **attrs}, static="abcd")
            yield Case(k, [Arg("a b c d", size={dim: 8}), Arg("a b c d", I64), Arg("a b c d")], [Arg("a b c d", size={dim: 8})], {"axis": axis, **attrs}, static=dim)


def one_hot(k, v, s, r, words):
    for axis, out in ((1, "a d b c"), (-1, "a b c d"), (0, "d a b c"), (-2, "a b d c"), (None, "a b c d")):
        yield Case(k, [Arg("a b c", I64), const(s["d"], np.int64), const([0.5, 2])], [Arg(out)], {} if axis is None else {"axis": axis}, static="d")


def qdq(k, v, s, r, words):
    to = k == "QuantizeLinear"
    x, y = (Arg("a b c d"), Arg("a b c d", U8)) if to else (Arg("a b c d", U8), Arg("a b c d"))
    scale = lambda *n: const(r.choice([0.5, 1.0, 2.0], n))
    zero = lambda *n: const(r.integers(0, 9, n), np.uint8)
    axis = {"domain": MS} if v == 1 else {}
    yield Case(k, [x, scale(), zero()], [y], {}, **axis)
    yield Case(k, [x, fed(0.5), zero()], [y], {}, **axis)
    if v >= 10:
        yield Case(k, [x, scale()], [y], {})
    if v >= 13 or v == 1:
        yield Case(k, [x, scale(s["c"]), zero(s["c"])], [y], {"axis": 2}, static="c", **axis)
    if v >= 13:
        yield Case(k, [x, scale(s["b"]), zero(s["b"])], [y], {}, static="b")
        yield Case(k, [x, scale(s["d"])], [y], {"axis": -1}, static="d")
        yield Case(k, [x, fed(r.choice([0.5, 2.0], s["a"])), zero(s["a"])], [y], {"axis": 0}, static="a")
    if v >= 21:
        blocked = lambda t: Arg("a b c", t, size={"b": 4})
        yield Case(k, [blocked(x.dtype), const(r.choice([0.5, 2.0], (s["a"], 2, s["c"]))), const(r.integers(0, 9, (s["a"], 2, s["c"])), np.uint8)],
                   [blocked(y.dtype)], {"axis": 1, "block_size": 2}, static="abc")


def batch_norm(k, v, s, r, words):
    p = lambda fn=const: [fn(r.integers(-2, 3, s["b"])), fn(r.integers(-2, 3, s["b"])), fn(r.integers(-2, 3, s["b"])), fn(r.choice([1.0, 4.0], s["b"]))]
    for dims in ("a b c d", "a b", "a b c", "a b c d e"):
        yield Case(k, [Arg(dims), *p()], [Arg(dims)], {"epsilon": 0.5}, static="b")
    yield Case(k, [Arg("a b c d"), *p(fed)], [Arg("a b c d")], {"epsilon": 0.5}, static="b")


def norm(k, v, s, r, words):
    w = lambda *d: const(r.integers(-2, 3, [s[x] for x in d]))
    x, d = Arg("a b c d"), {}
    many = k == "LayerNormalization"
    unit = lambda d: "unit" if all(s[c] == 1 for c in d) else ""
    yield Case(k, [x, w("d")], [x], {"epsilon": 0.5}, groups="a,b,c|d", static="d", why=unit("d"))
    yield Case(k, [x, w("c", "d")] + ([w("c", "d")] if many else []), [x], {"axis": 2, "epsilon": 0.5}, groups="a,b|c,d", static="cd")
    yield Case(k, [x, w("b", "c", "d")], [x], {"axis": -3, "epsilon": 0.5}, groups="a|b,c,d", static="bcd")
    yield Case(k, [x, w("d")] + ([w("d")] if many else []), [x], {"axis": -1, "epsilon": 0.5}, why="end", static="d")
    if many:
        yield Case(k, [x, w("c", "d"), w("d")], [x], {"axis": 2, "epsilon": 0.5}, groups="a,b|c,d", static="cd")
        yield Case(k, [x, w("d"), w("d")], [x, Arg("a b c D")], {"epsilon": 0.5}, groups="a,b,c|d", static="d", why="statistics")


def scaled_matmul(k, v, s, r, words):
    w, x = (lambda *d: const(r.integers(0, 9, [s[x] for x in d]), np.uint8)), lambda names: Arg(names, U8)
    case = lambda a, b, y="a b c e", **kw: Case(k, scaled(k, a, b), [Arg(y, SCALED[k])], {}, **kw)
    yield case(x("a b c d"), w("d", "e"), groups="a,b,c|d|e", static="de")
    yield case(x("a b c d"), x("d e"), groups="a,b,c|d|e")
    yield case(x("a b c d"), x("a b d e"), groups="a,b|c|d|e")
    yield case(x("a b c d"), x("a b d e"), groups="a,b|e|d|c")
    yield case(x("a b c d"), x("b d e"), groups="a,b|c|d|e")
    yield case(x("a B c d"), x("A b d e"), groups="a,b|c|d|e")
    yield case(w("b", "c", "d"), x("a b d e"), groups="a,b|e|d|c", static="bcd")
    yield case(w("c", "d"), x("a b d e"), groups="a,e|d,c|b", static="cd")
    yield case(x("a b c d"), w("d", "e"), groups="b|d,e|a,c", static="de")
    yield case(x("a c"), x("c e"), "a e", groups="a|c|e")
    yield case(x("a c"), x("c e"), "a e", groups="e|c|a")
    yield case(x("a b c d"), w("d"), "a b c", groups="a,b,c|d", static="d", why="vector")
    yield from rows(k, v, s, r, words)


def matmul(k, v, s, r, words):
    if k in SCALED:
        yield from scaled_matmul(k, v, s, r, words)
        return
    w = lambda *d: const(r.integers(-2, 3, [s[x] for x in d]))
    yield Case(k, [Arg("a b c d"), w("d", "e")], [Arg("a b c e")], {}, groups="a,b,c|d|e", static="de")
    yield Case(k, [Arg("a b c d"), Arg("d e")], [Arg("a b c e")], {}, groups="a,b,c|d|e")
    yield Case(k, [Arg("a b c d"), Arg("a b d e")], [Arg("a b c e")], {}, groups="a,b|c|d|e")
    yield Case(k, [Arg("a b c d"), Arg("a b d e")], [Arg("a b c e")], {}, groups="a,b|e|d|c")
    yield Case(k, [Arg("a b c d"), Arg("b d e")], [Arg("a b c e")], {}, groups="a,b|c|d|e")
    yield Case(k, [Arg("a B c d"), Arg("A b d e")], [Arg("a b c e")], {}, groups="a,b|c|d|e")
    yield Case(k, [Arg("a b c d"), w("b", "d", "e")], [Arg("a b c e")], {}, groups="a,b|c|d|e", static="bde")
    yield Case(k, [w("b", "c", "d"), Arg("a b d e")], [Arg("a b c e")], {}, groups="a,b|e|d|c", static="bcd")
    yield Case(k, [w("c", "d"), Arg("a b d e")], [Arg("a b c e")], {}, groups="a,b,e|d|c", static="cd")
    yield Case(k, [w("c", "d"), Arg("a b d e")], [Arg("a b c e")], {}, groups="a,e|d,c|b", static="cd")
    yield Case(k, [Arg("a b c d"), w("d", "e")], [Arg("a b c e")], {}, groups="b|d,e|a,c", static="de")
    yield Case(k, [Arg("a b c d"), w("d", "e")], [Arg("a b c e")], {}, groups="d|e|a,b,c", static="de")
    yield Case(k, [Arg("a c"), Arg("c e")], [Arg("a e")], {}, each=True)
    yield Case(k, [Arg("a c"), w("c", "e")], [Arg("a e")], {}, each=True, static="ce")
    yield Case(k, [Arg("a b c d"), w("d")], [Arg("a b c")], {}, groups="a,b,c|d", static="d", why="vector")


def gemm(k, v, s, r, words):
    for ta, tb in itertools.product((0, 1), (0, 1)):
        a, b = "c a" if ta else "a c", "e c" if tb else "c e"
        need = [const(0.0)] if v < 11 else []
        attrs = {**({"transA": 1} if ta else {}), **({"transB": tb} if r.random() < 0.8 or tb else {})}
        yield Case(k, [Arg(a), Arg(b)] + need, [Arg("a e")], attrs, each=True)
        w = const(r.integers(-2, 3, [s[x] for x in b.split()]))
        for bias in ([s["e"]], [1, s["e"]], [s["a"], 1], [s["a"], s["e"]], []):
            yield Case(k, [Arg(a), w, const(r.integers(-2, 3, bias))], [Arg("a e")], {**attrs, "alpha": 2.0, "beta": 0.5}, each=True, static="ace")
    yield Case(k, [Arg("a c"), Arg("c e"), Arg("a e")], [Arg("a e")], {}, groups="a,c,e")
    yield Case(k, [Arg("a c"), Arg("c e"), Arg("A e")], [Arg("a e")], {}, groups="a,c,e")
    yield Case(k, [const(r.integers(-2, 3, (s["a"], s["c"]))), Arg("c e")] + ([const(0.0)] if v < 11 else []), [Arg("a e")], {}, each=True, static="ac")


def einsum(k, v, s, r, words):
    w = lambda *d: const(r.integers(-2, 3, [s[x] for x in d]))
    case = lambda equation, *ins, out, **kw: Case(k, [a if isinstance(a, Arg) else Arg(a) for a in ins], [Arg(out)], {"equation": equation}, each=True, **kw)
    yield case("abcd,abed->abce", "a b c d", "a b e d", out="a b c e")
    yield case("abcd , abde", "a b c d", "a b d e", out="c e")
    yield case("abcd,de->abce", "a b c d", w("d", "e"), out="a b c e", static="de")
    yield case("ed,abcd->abce", w("e", "d"), "a b c d", out="a b c e", static="de")
    yield case("...cd,...de->...ce", "a b c d", "b d e", out="a b c e")
    yield case("...cd,...de->...ce", "a b c d", "A b d e", out="a b c e")
    yield case("c...,...d->d...c", "c a b", "a b d", out="d a b c")
    yield case("c...B,d...", "c a b", "d a", out="a b c d")
    yield case("abcd,ae->abe", "a b c d", "a e", out="a b e")
    yield case("abcd->bd", "a b c d", out="b d")
    yield case("abcd->", "a b c d", out="")
    yield case("aabc,ab->bac", "a a b c", "a b", out="b a c")
    yield case("abc,bcd,cde->ea", "a b c", "b c d", "c d e", out="e a")
    yield case("abc,,bd->dca", "a b c", const(2.0), "b d", out="d c a")
    yield case("abc,abc->bca", "a b c", "a B c", out="b c a")


def pool(k, v, s, r, words):
    if s["c"] < 2 or s["d"] < 2:
        for _ in range(3 if k == "MaxPool" else 2):
            yield None
        return
    out = Arg("a b c d", size={"c": s["c"] - 1, "d": s["d"] - 1})
    yield Case(k, [Arg("a b c d")], [out], {"kernel_shape": [2, 2]}, groups="a,b|cd", static="cd")
    yield Case(k, [Arg("a b c")], [Arg("a b c", size={"c": s["c"] - 1})], {"kernel_shape": [2]}, groups="a,b|c", static="c")
    if k == "MaxPool":
        yield Case(k, [Arg("a b c d")], [out, Arg("a b c d", I64, size=out.size)], {"kernel_shape": [2, 2]}, why="indices", static="cd")


def resize(k, v, s, r, words):
    x, y = Arg("a b c d"), Arg("a b c d", size={"c": 2 * s["c"], "d": 3 * s["d"]})
    scales = const([1, 1, 2, 3])
    if k == "Upsample":
        yield Case(k, [x] + ([scales] if v >= 9 else []), [y], {"mode": "nearest"} if v >= 9 else {"scales": [1.0, 1.0, 2.0, 3.0]}, why="resize", static="cd")
        return
    if v == 10:
        yield Case(k, [x, scales], [y], {"mode": "nearest"}, why="resize", static="cd")
        return
    floor = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    roi = None if v >= 13 else const([])
    sizes = ints(s["a"], s["b"], 2 * s["c"], 3 * s["d"])
    yield Case(k, [x, roi, scales], [y], floor, static="cd")
    yield Case(k, [x, roi, scales], [y], {"mode": "nearest"}, static="cd")
    yield Case(k, [x, roi, None if v >= 13 else const([]), sizes], [y], floor, static="abcd")
    yield Case(k, [x, roi, scales], [y], {"mode": "linear"}, why="resize", static="cd")
    if v >= 18:
        yield Case(k, [x, None, const([3, 2])], [y], {**floor, "axes": [3, 2]}, static="cd")
        yield Case(k, [x, None, None, ints(2 * s["c"], 3 * s["d"])], [y], {**floor, "axes": [-2, -1]}, static="abcd")


def moving(k, v, s, r, words):
    x = Arg("a b c d")
    if k == "Identity":
        yield Case(k, [x], [x], {})
        yield Case(k, [Arg("a b c", STR if v >= 13 else I64)], [Arg("a b c", STR if v >= 13 else I64)], {})
    elif k == "Transpose":
        yield Case(k, [x], [Arg("c a d b")], {"perm": [2, 0, 3, 1]})
        yield Case(k, [Arg("a B c", I64)], [Arg("c B a", I64)], {})
    elif k == "Flatten":
        for axis, out, groups in ((1, "a bcd", "a,bcd"), (2, "ab cd", "ab,cd"), (0, "1 abcd", ""), (4, "abcd 1", ""), (-1, "abc d", "abc,d")):
            yield Case(k, [x], [Arg(out)], {"axis": axis}, groups=groups, why="" if groups else "cut") if axis >= 0 or v >= 11 else None
        yield Case(k, [x], [Arg("a bcd")], {}, groups="a,bcd")
    elif k == "Squeeze":
        for axes, dims, out in (([1, 3], "a B c D", "a c"), ([2], "a B C d", "a B d"), ([-1], "a b C", "a b")):
            if axes[0] < 0 and v < 11:
                axes = [2]
            ins, attrs = with_axes(k, v, words, [Arg(dims)], axes)
            yield Case(k, ins, [Arg(out)], attrs)
        yield Case(k, [Arg("a B c D")], [Arg("a c")], {}, note="no unit", static="ac")
    elif k == "Unsqueeze":
        for axes, dims, out in (([1, 3], "a c", "a B c D"), ([0], "b c d", "A b c d"), ([-1], "a b", "a b C")):
            if axes[0] < 0 and v < 11:
                axes = [2]
            ins, attrs = with_axes(k, v, words, [Arg(dims)], axes)
            yield Case(k, ins, [Arg(out)], attrs)
    else:
        yield Case(k, [x, ints(s["a"] * s["b"], s["c"], -1)], [Arg("ab c d")], {}, groups="ab,c,d", static="abc")
        yield Case(k, [x, ints(0, -1, s["d"])], [Arg("a bc d")], {}, groups="a,bc,d", static="d")
        yield Case(k, [Arg("ab c d"), ints(s["a"], s["b"], -1, s["d"])], [x], {}, groups="ab,c,d", static="abd")
        yield Case(k, [Arg("ab cd"), ints(s["a"], s["b"] * s["c"], s["d"])], [Arg("a bc d")], {}, static="abcd", why="cut")
        yield Case(k, [x, fed([s["a"], s["b"] * s["c"] * s["d"]], np.int64)], [Arg("a bcd")], {}, static="abcd", why="shape")


def shape(k, v, s, r, words):
    if k == "Size":
        yield Case(k, [Arg("a b c d")], [Arg("", I64)], {})
        return
    yield Case(k, [Arg("a b c d")], [Arg("4", I64)], {})
    if v >= 15:
        yield Case(k, [Arg("a b c d")], [Arg("2", I64)], {"start": 1, "end": -1})
        yield Case(k, [Arg("a b c d")], [Arg("1", I64)], {"start": -1})
        yield Case(k, [Arg("a b c d")], [Arg("3", I64)], {"end": 3})


FORMS = {"POINTWISE": pointwise, "EXPAND": expand, "REDUCE": reduce, "GLOBALPOOL": global_pool, "ARG": arg, "ALONG": along, "CONCAT": concat, "ROWS": rows, "WHOLE": whole,
         "SPLIT": split, "SLICE": slice_, "PAD": pad, "TILE": tile, "GATHER": gather, "ELEMENTS": elements, "ONEHOT": one_hot, "QDQ": qdq, "BATCHNORM": batch_norm, "NORM": norm,
         "MATMUL": matmul, "GEMM": gemm, "EINSUM": einsum, "POOL": pool, "RESIZE": resize, "MOVE": moving, "SHAPE": shape}


# ---------------------------------------------------------------------------------------------------- one graph of one node

SIZES = ("different", "one", "equal", "symbol")
VARIANTS = ("both", "in", "out")


@dataclasses.dataclass
class Part:
    """A case with its sizes, its order and where Transposes stand: a component of a model."""
    row: str
    opset: int
    case: Case
    size: dict
    sizes: str                 # of SIZES
    symbol: str                # the label that is symbolic, or ""
    orders: list               # of each operand that is transposed: its labels, outermost first
    variant: str               # of VARIANTS
    index: int = 0             # of the case among its row's

    @property
    def claims(self):
        return self.variant == "both" and not self.case.why

    def __str__(self):
        words = [f"{self.row} at opset {self.opset}, form {self.index}", f"sizes {self.sizes}", f"Transposes {self.variant}"]
        words += ["order " + " / ".join(dict.fromkeys(" ".join(o) for o in self.orders))] + ([f"{self.symbol} is a symbol"] if self.symbol else [])
        return ", ".join(words) + f": {','.join(a.dims if a and a.data is None else '-' for a in self.case.ins)} -> " \
            f"{','.join(a.dims for a in self.case.outs)} {self.case.attrs or ''}"


def labels(case):
    """Of all operands, in the order in which they come."""
    return list(dict.fromkeys(c.lower() for a in (*case.ins, *case.outs) if a for c in a.dims if c.isalpha()))


def an_order(case, r):
    """Units (runs of labels that stay together) in an order that the case is free to have."""
    groups = case.groups or ",".join(labels(case))
    out = []
    for g in groups.split("|"):
        units = g.split(",")
        out += [units[i] for i in r.permutation(len(units))]
    return out


def sorted_dims(a, order):
    """The dims of an operand as the order has them: places of its own dims."""
    place = {c: i for i, c in enumerate("".join(order))}
    dims = a.dims.split()
    return sorted(range(len(dims)), key=lambda k: place.get(dims[k][0].lower(), -1))


def dim_size(a, word, size):
    """Of one dim of an operand."""
    n = 1
    for c in word:
        n *= int(c) if c.isdigit() else 1 if c.isupper() else (a.size or {}).get(c, size[c])
    return n


def dim_type(a, word, size, symbol):
    """As a type writes it: a number, a symbol, or nothing where it is computed from one."""
    if symbol not in word or not symbol or word.isupper():
        return dim_size(a, word, size)
    return "S" if word == symbol and symbol not in (a.size or {}) else None


def transposable(a):
    return a is not None and a.data is None and not a.dims.replace(" ", "").isdigit()


def add(part, name, g, r):
    """Puts a part into the lists of a graph: nodes, inputs, outputs, initializers, and the two sets of inputs."""
    c, ins = part.case, []
    orders = iter(part.orders)
    for i, a in enumerate(c.ins):
        if a is None:
            ins.append("")
            continue
        v = f"{name}_x{i}"
        ins.append(v)
        if a.data is not None and not a.fed:
            g.inits.append(numpy_helper.from_array(a.data, v))
            continue
        if a.data is not None:
            g.inputs.append(helper.make_tensor_value_info(v, helper.np_dtype_to_tensor_dtype(a.data.dtype), a.data.shape))
            for f in g.feeds:
                f[v] = a.data
            continue
        words = a.dims.split()
        dims = sorted_dims(a, next(orders)) if transposable(a) else []
        if part.variant == "out":
            dims.sort()
        outer = v
        if dims != sorted(dims):
            outer = f"{name}_g{i}"
            g.nodes.append(helper.make_node("Transpose", [outer], [v], perm=[dims.index(k) for k in range(len(dims))]))
        g.inputs.append(helper.make_tensor_value_info(outer, a.dtype, [dim_type(a, words[k], part.size, part.symbol) for k in dims]))
        for trial, f in enumerate(g.feeds):
            size = {**part.size, part.symbol: (6, 1)[trial]} if part.symbol else part.size
            f[outer] = fill(r, a, [dim_size(a, words[k], size) for k in dims])
    outs = [f"{name}_y{i}" for i in range(len(c.outs))]
    after = []
    for i, a in enumerate(c.outs):
        words = a.dims.split()
        dims = sorted_dims(a, next(orders)) if transposable(a) else list(range(len(words)))
        if part.variant == "in":
            dims.sort()
        final = outs[i]
        if dims != sorted(dims):
            final = f"{name}_o{i}"
            after.append(helper.make_node("Transpose", [outs[i]], [final], perm=dims))
        shape = [None if "open" in c.note else dim_type(a, words[k], part.size, part.symbol) for k in dims]
        g.outputs.append(helper.make_tensor_value_info(final, a.dtype, shape))
    g.nodes.append(helper.make_node(c.op, ins, outs, domain=c.domain, name=name, **c.attrs))
    g.nodes.extend(after)


def fill(r, a, shape):
    if a.dtype != F:
        x = common.random_tensor(r, a.dtype, shape)
        return np.maximum(x, 1).astype(x.dtype) if a.fill == "above" else x
    if a.fill == "normal":
        return r.standard_normal(shape).astype(np.float32)
    if a.fill == "unit":
        return r.uniform(-0.9, 0.9, shape).astype(np.float32)
    if a.fill == "above":
        return r.integers(1, 5, shape).astype(np.float32)
    return r.integers(-4, 5, shape).astype(np.float32)


class Lists:
    def __init__(self, trials):
        self.nodes, self.inputs, self.outputs, self.inits, self.feeds = [], [], [], [], [{} for _ in range(trials)]


def model_of(parts):
    """A model of these parts, and its two sets of inputs (one where nothing is symbolic)."""
    g = Lists(2 if any(p.symbol for p in parts) else 1)
    for i, p in enumerate(parts):
        add(p, f"p{i}", g, np.random.default_rng(zlib.crc32(str(p).encode())))
    opsets = [helper.make_opsetid("", parts[0].opset)]
    ir = max(helper.find_min_ir_version_for(opsets, True), 4)  # initializers that are no inputs
    opsets += [helper.make_opsetid(MS, 1)] if any(p.case.domain for p in parts) else []
    graph = helper.make_graph(g.nodes, "executed", g.inputs, g.outputs, g.inits)
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir), g.feeds


# ---------------------------------------------------------------------------------------------------- all graphs

def versions(kind, domain, words):
    """Opsets where the op or its row changes, the newest, and for ops of onnxruntime one of each sort."""
    if domain:
        return [13, 21]
    if kind in NO_SCHEMA:
        return [13]
    newest = min(28, onnx.defs.onnx_opset_version())
    since = [s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == kind and s.domain == ""]
    out = {max(n, 7) for n in since} | {int(w[0]) for w in words if w[0]} | {newest}
    if onnx.defs.get_schema(kind, max(since), "").deprecated:
        out = {n for n in out if n < max(since)}
    return sorted(n for n in out if min(since) <= n <= newest)


def cases(row, opset, size, seed):
    domain, kind, cls, words = row
    r = np.random.default_rng(seed)
    v = 1 if domain == MS and cls == "QDQ" else opset
    out = list(FORMS[cls](kind, v, size, r, words))
    for c in out:
        if c and domain:
            c.domain = domain
    return out


def parts_of(row, opset, seed):
    domain, kind, cls, words = row
    r = np.random.default_rng([seed, opset, zlib.crc32((domain + kind).encode())])
    base = dict(zip("abcdef", (int(n) for n in r.permutation([2, 3, 4, 5, 6, 7]))))
    fixed_seed, out = int(r.integers(1 << 30)), []
    for index, first in enumerate(cases(row, opset, base, fixed_seed)):
        for sizes in SIZES:
            size, symbol = dict(base), ""
            names = labels(first) if first else list("abcd")
            if sizes == "one" and names:
                size[names[r.integers(len(names))]] = 1
            if sizes == "equal" and len(names) > 1:
                x, y = r.permutation(names)[:2]
                size[x] = size[y]
            case = cases(row, opset, size, fixed_seed)[index]
            if case is None or ("no unit" in case.note and 1 in size.values()):
                continue
            if sizes == "symbol":
                free = [c for c in names if c not in case.static and any(c in a.dims for a in case.ins if transposable(a))]
                if not free or "no unit" in case.note:
                    continue
                symbol = free[r.integers(len(free))]
                size[symbol] = 6
            for variant in VARIANTS if sizes == "different" else ("both", VARIANTS[1 + int(r.integers(2))]):
                part = Part(kind, opset, case, size, sizes, symbol, [], variant, index)
                if choose_order(part, r):
                    out.append(part)
    return out


def choose_order(part, r):
    """Orders that move something, where there are such."""
    c = part.case
    operands = [a for a in (*c.ins, *c.outs) if transposable(a)]
    for _ in range(20):
        one = an_order(c, r)
        part.orders = [[x.lower() for x in r.permutation(a.dims.split())] if c.each else one for a in operands]
        if any(d != sorted(d) for d in map(sorted_dims, operands, part.orders)):
            return True
    return False


def engine_of(parts):
    """What runs these parts: "onnxruntime", "reference", or why nothing does."""
    model, feeds = model_of(parts)
    try:
        return common.run(model.SerializeToString(), feeds[0])[1]
    except common.Differ as e:
        return str(e)


def prepare(job):
    """The parts of a row at an opset, with the engine of each; forms are tried one by one where they cannot run together."""
    row, opset, seed = job
    parts = parts_of(row, opset, seed)
    if not parts:
        return row, opset, []
    together = engine_of(parts)
    if together == "onnxruntime":
        return row, opset, [(p, together) for p in parts]
    engine = {i: engine_of([p for p in parts if p.index == i]) for i in {p.index for p in parts}}
    return row, opset, [(p, engine[p.index]) for p in parts]


def left_in(path, n):
    """Transposes that move data, of each part: by the graph input that they come from."""
    model = common.infer(onnx.load(path))
    shape = {v.name: common.shape_of(v.type) for v in (*model.graph.value_info, *model.graph.input, *model.graph.output)}
    part = {i.name: int(i.name[1:].split("_")[0]) for i in model.graph.input}
    left = [0] * n
    for node in model.graph.node:
        of = max((part.get(i, -1) for i in node.input), default=-1)
        part.update((o, of) for o in node.output)
        if node.op_type == "Transpose" and of >= 0:
            perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
            dims = shape.get(node.input[0]) or [None] * len(perm or [None] * 8)
            moved = [k for k in perm or range(len(dims))[::-1] if dims[k] != 1]
            left[of] += moved != sorted(moved)
    return left


def judge(parts, prog):
    """Per target: what is wrong with these parts as one model, and how many Transposes each has left."""
    model, feeds = model_of(parts)
    out = {}
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src = Path(tmp) / "in.onnx"
        src.write_bytes(model.SerializeToString())
        facts = check.facts_of(src, model, feeds)
        before = left_in(src, len(parts))
        for target in TARGETS:
            res = check.rewrite(prog, src, facts, target, tmp)
            if res.counts is None:
                out[target] = res.fail, before
                continue
            left = left_in(Path(tmp) / "out.onnx", len(parts))
            for p, x, y in zip(parts, before, left):
                if y > x and target == "onnx":  # generic may pay one to save more elsewhere in the part
                    res.fail.append(f"Transposes grew: {x} -> {y} ({p})")
                elif y and p.claims and target == "onnx":
                    res.fail.append(f"{y} of {x} Transposes stay ({p})")
            out[target] = res.fail, left
    return out


def run(job):
    """Failures as (part, target, why), and per part the Transposes left under onnx."""
    parts, prog = job
    try:
        res = judge(parts, prog)
    except Exception as e:
        res = {t: ([f"{type(e).__name__}: {e!s:.200}"], [0] * len(parts)) for t in TARGETS}
    bad = [(parts[0], t, f) for t, (fail, _) in res.items() for f in fail]
    if bad and len(parts) > 1:
        alone = [run(([p], prog)) for p in parts]
        bad = [f for one, _ in alone for f in one] or [(p, t, f"among {len(parts)} parts: {f}") for p, t, f in bad]
    return bad, list(zip(parts, res["onnx"][1]))


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("rows", nargs="*", help="ops; default: all")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--size", type=int, default=48, help="nodes that are put into one model")
    p.add_argument("--keep", type=Path, help="folder for the graphs that fail")
    args = p.parse_args()
    prog = common.program(args)
    rows = [(d, k, cls, words) for (d, k), (cls, words) in read_table(common.ROOT / "src" / "ops.def").items() if cls != "OPAQUE"]
    rows = [x for x in rows if not args.rows or x[1] in args.rows]
    fails, chunks, executed, left_out, npart = [], {}, set(), {}, 0
    jobs = [(x, v, args.seed) for x in rows for v in versions(x[1], x[0], x[3])]
    for row, opset, parts in common.pooled(prepare, jobs, args.jobs, 4):
        for part, engine in parts:
            if engine in common.ENGINES:
                executed.add((*row[:2], part.index))
                sort = opset, engine, part.case.domain, row[1] in NO_SCHEMA
                chunks.setdefault(sort, []).append(part)
                npart += 1
            else:
                left_out[*row[:2], part.index] = f"{part}: nothing runs it at any opset: {engine}"
    fails += [why for form, why in left_out.items() if form not in executed and form[1:] not in NOT_RUN]
    fails += [f"{x[1]}: no graph of this row was executed" for x in rows if x[:2] not in {f[:2] for f in executed}]
    jobs = [(x[i:i + args.size], prog) for x in chunks.values() for i in range(0, len(x), args.size)]
    claimed, needed, bad = set(), {}, set()
    for failed, left in common.pooled(run, jobs, args.jobs):
        for part, target, why in failed:
            fails.append(f"{part} ({target}): {why}")
            bad.add(str(part))
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                onnx.save(model_of([part])[0], args.keep / f"{part.row}.{part.opset}.{part.index}.{part.sizes}.{part.variant}.onnx")
        for part, n in left:
            if part.claims:
                claimed.add(part.row)
            if part.case.why and part.variant == "both":
                needed[part.case.why] = needed.get(part.case.why, 0) + n
    for why, n in needed.items():
        if n == 0 and not args.rows:
            fails.append(f'the exception "{why}" is not needed: no Transpose stays')
    for f in sorted(fails):
        print(f)
    freed = [x[1] for x in rows if x[1] not in claimed]
    print(f"{len({f[:2] for f in executed})} of {len(rows)} rows executed, {len(executed)} forms, at {len({c[0] for c in chunks})} opsets; rows that claim nothing: {' '.join(freed) or 'none'}")
    return common.closing(npart - len(bad), len(fails))


if __name__ == "__main__":
    sys.exit(main())
