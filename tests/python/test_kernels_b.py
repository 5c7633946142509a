#!/usr/bin/env python3
"""Random one-node models of the ops along axes, over heads and over time, by `relayout run` and by onnxruntime (else the onnx
reference evaluator): reductions, softmax, choices, gathering and scattering, casts, normalizations, Einsum, TopK, losses, transforms, attention, recurrent networks.

  test_kernels_b.py [--count N] [--seed S] [NAME ...]     families whose name contains one of these

Half of the models read their first input through a Transpose, which is a view in relayout: kernels see it with its strides.
"""
import collections
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T, helper

import common

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import RelayoutBackend

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
# (of the largest result, of each result): what sums in another order may differ by
TOLERANCE = {F32: (2e-6, 2e-5), F64: (1e-13, 1e-11), F16: (1e-3, 2e-3), BF16: (8e-3, 1.6e-2)}
FAMILIES = {}


def family(f):
    FAMILIES[f.__name__] = f
    return f


class Case:
    """One node: inputs by position (None: left out), attributes, how many outputs."""

    def __init__(self, op, inputs, nout=1, opset=18, domain="", reference=False, **attrs):
        self.op, self.inputs, self.nout, self.opset, self.domain, self.reference, self.attrs = op, inputs, nout, opset, domain, reference, attrs


def floats(r, shape, dtype=F32, scale=1.0):
    return (r.standard_normal(shape) * scale).astype(dtype)


def numbers(r, shape, dtype):
    if np.dtype(dtype).kind in "iu":
        return r.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, shape).astype(dtype)
    return floats(r, shape, dtype)


def shape_of(r, least=1, most=4, size=7):
    return [int(r.integers(1, size)) for _ in range(r.integers(least, most + 1))]


def lines_of(r):
    """A shape with more lines side by side than go together (runtime/ref_axis.c) now and then."""
    s = shape_of(r, 1, 4, 9)
    return s[:-1] + [pick(r, s[-1], s[-1], int(r.integers(120, 300)))]


def pick(r, *of):
    return of[r.integers(len(of))]


def coin(r):
    return bool(r.integers(2))


# ------------------------------------------------------------------------------------------------------------ families

@family
def reduce(r):
    op = pick(r, "Sum", "Mean", "L1", "L2", "SumSquare", "LogSum", "LogSumExp", "Prod", "Max", "Min")
    dtype = pick(r, F32, F32, F64, np.int32, np.int64) if op in ("Sum", "Max", "Min", "Prod") else pick(r, F32, F32, F64)
    shape = shape_of(r, 1, 5, pick(r, 4, 9, 90 if coin(r) else 5))
    shape = [int(n) for n in shape[:5]] if np.prod(shape) < 1e6 else shape[:3]
    x = numbers(r, shape, dtype)
    if op == "LogSum":
        x = np.abs(x) + F32(0.1)
        x = x.astype(dtype)
    axes = r.choice(len(shape), r.integers(0, len(shape) + 1), replace=False)
    axes = np.array([int(a) - (len(shape) if coin(r) else 0) for a in axes], np.int64)
    keepdims = int(coin(r))
    if coin(r):
        return Case("Reduce" + op, [x, axes], opset=18, keepdims=keepdims, noop_with_empty_axes=int(coin(r) and op in ("Sum", "Mean", "Max", "Min")))
    opset = 13 if op == "Sum" else pick(r, 11, 13)
    if op == "Sum":
        return Case("ReduceSum", [x, axes], opset=opset, keepdims=keepdims)
    return Case("Reduce" + op, [x], opset=opset, keepdims=keepdims, **({"axes": axes.tolist()} if len(axes) else {}))


@family
def softmax(r):
    dtype, op = pick(r, F32, F32, F64, F16), pick(r, "Softmax", "LogSoftmax", "Hardmax")
    x = floats(r, shape_of(r, 1, 4, pick(r, 5, 12 if dtype == F16 else 40)), dtype, 4)
    if dtype == F16:  # onnxruntime has none; the reference evaluator has only the semantics of opset 13, and rounds logarithms of f16
        return Case(pick(r, "Softmax", "Hardmax"), [x], opset=13, axis=int(r.integers(-x.ndim, x.ndim)), reference=True)
    opset = 13 if op == "Hardmax" and dtype == F64 else pick(r, 11, 13)
    return Case(op, [x], opset=opset, axis=int(r.integers(-x.ndim, x.ndim)))


@family
def extremes(r):
    x = numbers(r, lines_of(r), pick(r, F32, np.int32, F64))
    x = np.round(x * 2) / 2 if x.dtype.kind == "f" else x
    return Case(pick(r, "ArgMax", "ArgMin"), [x.astype(x.dtype)], opset=13, axis=int(r.integers(-x.ndim, x.ndim)), keepdims=int(coin(r)),
                select_last_index=int(coin(r)))


@family
def cumulate(r):
    x = numbers(r, lines_of(r), pick(r, F32, F64, np.int32, np.int64))
    axis = np.array(r.integers(-x.ndim, x.ndim), np.int64)
    prod = coin(r)
    return Case("CumProd" if prod else "CumSum", [x, axis], opset=26 if prod else 14, exclusive=int(coin(r)), reverse=int(coin(r)), reference=prod)


@family
def remainder(r):
    """Of floats; of some the quotient is large, or none."""
    x, y = (numbers(r, shape_of(r, 1, 3, 40), pick(r, F32, F32, F64)) for _ in range(2))
    y = (y.flat[r.integers(y.size, size=x.shape)] * 10.0 ** r.integers(-30, 10, x.shape)).astype(x.dtype)
    y[r.random(x.shape) < 0.05] = pick(r, 0, -0.0, np.inf)
    return Case("Mod", [x, y], opset=13, fmod=1)


@family
def diagonal(r):
    return Case("EyeLike", [numbers(r, [int(n) for n in r.integers(1, 9, 2)], F32)], opset=9, k=int(r.integers(-9, 10)))


@family
def topk(r):
    x = numbers(r, shape_of(r, 1, 4, 12), pick(r, F32, F64, np.int64, np.int32))
    axis = int(r.integers(-x.ndim, x.ndim))
    return Case("TopK", [x, np.array([r.integers(0, x.shape[axis] + 1)], np.int64)], 2, opset=11, axis=axis, largest=int(coin(r)))


@family
def choose(r):
    """Where; each operand broadcasts in its own way."""
    shape, dtype = shape_of(r, 1, 4, pick(r, 6, 70)), pick(r, F32, F32, F32, F64, np.int32, np.int64)
    shape = shape if np.prod(shape) < 1e6 else shape[:2]
    part = lambda: [1 if r.random() < 0.3 else n for n in shape][r.integers(len(shape)) if coin(r) else 0:] if r.random() < 0.9 else []
    return Case("Where", [r.random(part()) < 0.5, np.asarray(numbers(r, part(), dtype)), np.asarray(numbers(r, part(), dtype))], opset=16)


@family
def gather_elements(r):
    x = numbers(r, shape_of(r, 1, 4, 9), pick(r, F32, F64, F16, np.int64, np.uint8))
    axis = int(r.integers(-x.ndim, x.ndim))
    to = [int(r.integers(1, n + 1)) for n in x.shape]
    to[axis] = int(r.integers(1, 12))
    return Case("GatherElements", [x, r.integers(-x.shape[axis], x.shape[axis], to).astype(pick(r, np.int64, np.int32))], opset=13, axis=axis)


@family
def scatter_elements(r):
    x, how = numbers(r, shape_of(r, 1, 4, 9), pick(r, F32, F32, F64, F16, np.int64, np.int32)), pick(r, "none", "add", "mul", "min", "max")
    if x.dtype == F16:
        how = "none"  # what onnxruntime rounds each time is rounded once here
    axis = int(r.integers(-x.ndim, x.ndim))
    to = [int(r.integers(1, n + 1)) for n in x.shape]
    index = np.argsort(r.random(x.shape), axis)[tuple(slice(n) for n in to)] if how == "none" else r.integers(-x.shape[axis], x.shape[axis], to)
    return Case("ScatterElements", [x, index.astype(pick(r, np.int64, np.int32)), numbers(r, to, x.dtype)], opset=18, axis=axis, reduction=how)


@family
def scatter_nd(r):
    x = numbers(r, shape_of(r, 1, 4, 7), pick(r, F32, F64, np.int64, np.int32))
    depth, how = int(r.integers(1, x.ndim + 1)), pick(r, "none", "none", "add", "max")
    every = r.permutation(int(np.prod(x.shape[:depth])))[:int(r.integers(1, 9))]  # each place once: else which one stays is not said
    at = np.stack(np.unravel_index(every, x.shape[:depth]), -1).astype(np.int64)
    at = np.where(r.random(at.shape) < 0.3, at - x.shape[:depth], at)
    return Case("ScatterND", [x, at, numbers(r, at.shape[:1] + x.shape[depth:], x.dtype)], opset=18, reduction=how)


@family
def cast(r):
    kinds = {F32: T.FLOAT, F64: T.DOUBLE, F16: T.FLOAT16, np.int32: T.INT32, np.int64: T.INT64, np.uint8: T.UINT8, np.bool_: T.BOOL}
    have, want = pick(r, *kinds), pick(r, *kinds)
    x = (r.standard_normal(shape_of(r, 1, 4, pick(r, 5, 20))) * pick(r, 1, 10, 60)).astype(np.int64 if np.dtype(have).kind in "iu" else F32)
    return Case("Cast", [np.abs(x).astype(have) if np.uint8 in (have, want) else x.astype(have)], opset=13, to=kinds[want])


@family
def nearest(r):
    x = numbers(r, shape_of(r, 4, 4, 9), pick(r, F32, F32, np.uint8, np.int32))
    scale = np.array([1, 1, *(pick(r, 1, 2, 3, 0.5) for _ in range(2))], F32)
    scale = np.where(np.floor(scale * x.shape) < 1, 1, scale).astype(F32)
    return Case("Resize", [x, None, scale], opset=13, mode="nearest", coordinate_transformation_mode=pick(r, "asymmetric", "half_pixel"),
                nearest_mode=pick(r, "floor", "round_prefer_floor"))


@family
def layer_norm(r):
    dtype = pick(r, F32, F32, F64)
    x = floats(r, shape_of(r, 1, 4, 6) if coin(r) else shape_of(r, 1, 2, 70), dtype, 3) + dtype(2)
    axis = int(r.integers(0, x.ndim))
    normalized = x.shape[axis:]
    scale, bias = floats(r, normalized, dtype), floats(r, normalized, dtype)
    if coin(r):
        return Case("RMSNormalization", [x, scale], opset=23, axis=axis - x.ndim, reference=True)
    return Case("LayerNormalization", [x, scale, bias if coin(r) else None], 3 if dtype == F32 else 1, opset=17, axis=axis)


def laid(x, swapped, ahead):
    """A FusedMatMul's operand as it lies where its rows and columns are swapped, and the first of them lies before the batch."""
    x = np.swapaxes(x, -1, -2) if swapped else x
    return np.ascontiguousarray(np.moveaxis(x, -2, 0) if ahead else x)


@family
def fused(r):
    x = floats(r, shape_of(r, 2, 3, 9))
    n = x.shape[-1]
    rows = [floats(r, [n]) for _ in range(4)]
    w = floats(r, [*x.shape[:-2], n, 5])
    op = pick(r, "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "BiasGelu", "FastGelu", "QuickGelu", "Gelu", "FusedMatMul", "Shrink")
    ms = {"domain": "com.microsoft", "opset": 17}
    if op.startswith("Skip"):
        x = floats(r, [2, 3, n])
        return Case(op, [x, floats(r, x.shape), *rows[:3 if "Simplified" not in op and coin(r) else 2 if "Simplified" in op else 1]], 1, epsilon=1e-5, **ms)
    if op == "FusedMatMul":
        ways = [(int(coin(r)), int(coin(r) and x.ndim > 2)) for _ in range(2)]
        flags = {name + side: way[k] for side, way in zip("AB", ways) for k, name in enumerate(("trans", "transBatch"))}
        return Case(op, [laid(x, *ways[0]), laid(w, *ways[1])], alpha=0.5, **flags, **ms)
    if op == "Shrink":
        return Case(op, [numbers(r, [4, 5], pick(r, F32, np.int32))], opset=9, bias=float(r.integers(0, 3)), lambd=1.5)
    return Case(op, [x, rows[0]] if op in ("BiasGelu", "FastGelu") else [x], **ms)


@family
def quantized_product(r):
    """What onnxruntime joins products of bytes with: scales, by column perhaps, zero points, a bias."""
    k, n = int(r.integers(1, 9)), int(r.integers(1, 9))
    dtype = pick(r, np.uint8, np.int8)
    info = np.iinfo(dtype)
    w = r.integers(info.min, info.max + 1, [k, n]).astype(dtype)
    columns = [n] if coin(r) else [1]
    scale = np.abs(floats(r, columns)) + F32(0.01)
    zero = r.integers(info.min, info.max + 1, columns).astype(dtype) if coin(r) else None
    bias = floats(r, [n]) if coin(r) else None
    ms = {"domain": "com.microsoft", "opset": 17}
    if coin(r):
        return Case("DynamicQuantizeMatMul", [floats(r, [*shape_of(r, 1, 2), k]), w, scale, zero, bias], **ms)
    x = r.integers(0, 256, [*shape_of(r, 1, 2), k]).astype(np.uint8)
    return Case("MatMulIntegerToFloat", [x, w, np.abs(floats(r, [1])), scale, r.integers(0, 256, [1]).astype(np.uint8) if coin(r) else None, zero, bias], **ms)


@family
def einsum(r):
    dims = {c: int(r.integers(1, 6)) for c in "abcdefgXY"}
    equation = pick(r, "ab,bc->ac", "abc->ca", "aab->b", "aa", "ab->", "abc,cd,de->abe", "a,b->ab", "abcd,abed->abce", "ab,ab->", "...ab,...bc->...ac",
                    "a...b->...ba", "ab,b", "bXa,cXa->bcX", "abc,bd,ce->ade", "ab,cd->", "aXb,Xb->...", "abcd,efd->abcef", "...,...a->...a")
    given = equation.split("->")[0].split(",")
    dots = [2, 3]
    if equation == "aXb,Xb->...":
        equation = "aXb,Xb->aX"
    inputs = [floats(r, sum(([*dots] if c == "." else [dims[c]] for c in t.replace("...", ".")), [])) for t in given]
    if coin(r):
        inputs = [np.round(x * 3).astype(np.int64) for x in inputs]
    return Case("Einsum", inputs, opset=12, reference=inputs[0].dtype.kind == "i", equation=equation)


@family
def loss(r):
    n, classes, more = int(r.integers(1, 5)), int(r.integers(2, 6)), [int(r.integers(1, 4)) for _ in range(r.integers(0, 3))]
    x, target = floats(r, [n, classes, *more]), r.integers(0, classes, [n, *more]).astype(np.int64)
    weight = np.abs(floats(r, [classes])) + F32(0.5) if coin(r) else None
    attrs = {"ignore_index": int(r.integers(0, classes))} if coin(r) else {}
    attrs["reduction"] = pick(r, "none", "sum", "mean")
    if attrs["reduction"] == "mean":
        attrs.pop("ignore_index", None)  # all targets may be ignored
    if coin(r):
        return Case("NegativeLogLikelihoodLoss", [x, target, weight], opset=13, **attrs)
    return Case("SoftmaxCrossEntropyLoss", [x, target, weight], 2, opset=13, **attrs)


@family
def transform(r):
    dtype = pick(r, F32, F64)
    kind = pick(r, "dft", "stft", "det", "rfft")
    if kind == "det":
        n = int(r.integers(1, 6))
        return Case("Det", [floats(r, [*shape_of(r, 0, 2, 4), n, n], F32)], opset=11)
    n = int(r.integers(2, 50)) if coin(r) else pick(r, 64, 97, 127, 194, 254, 509) # with primes that go by a convolution
    if kind == "stft":
        n, size = n + 16, pick(r, 8, 12, 15)
        return Case("STFT", [floats(r, [2, n, 1], F64), np.array(pick(r, 3, 5), np.int64), floats(r, [size], F64), np.array(size, np.int64)],
                    opset=17, onesided=int(coin(r)))
    x = floats(r, [2, n, 3, 2 if kind == "dft" else 1], dtype)
    length = np.array(n + int(r.integers(-1, 4)), np.int64) if coin(r) else None
    return Case("DFT", [x, length, np.array(pick(r, 1, -3), np.int64)], opset=20, inverse=int(kind == "dft" and coin(r)),
                onesided=int(kind == "rfft" and coin(r)), reference=True)


@family
def attention(r):
    b, kv, group, size, vsize = int(r.integers(1, 3)), int(r.integers(1, 3)), int(r.integers(1, 4)), int(r.integers(2, 9)), int(r.integers(2, 9))
    nq, nk, past, dtype = int(r.integers(1, 8)), int(r.integers(1, 20)), pick(r, 0, 0, 3), pick(r, F32, F32, F64)
    heads, attrs, flat = kv * group, {}, coin(r)
    q, k, v = (floats(r, s, dtype) for s in ([b, heads, nq, size], [b, kv, nk, size], [b, kv, nk, vsize]))
    total = nk + past
    causal = coin(r)
    mask = pick(r, None, floats(r, [nq, total], dtype), floats(r, [b, 1, nq, total], dtype), r.integers(0, 4, [heads, nq, total]) > 0,
                r.integers(0, 4, [b, heads, 1, total]) > 0, floats(r, [nq, pick(r, 1, int(r.integers(1, total + 1)))], dtype))
    if mask is not None and mask.shape[-2] != nq:
        causal = False  # the reference evaluator takes the number of queries from the mask
    if flat:
        q, k, v = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(b, x.shape[2], -1) for x in (q, k, v))
        attrs = {"q_num_heads": heads, "kv_num_heads": kv}
    if coin(r):
        attrs["softcap"] = 2.0
    if coin(r):
        attrs["scale"] = 0.25
    opset = pick(r, 23, 24, 25)
    if opset == 25 and coin(r):
        attrs["left_window_size"], attrs["right_window_size"] = int(r.integers(-1, 4)), int(r.integers(-1, 4))
    inputs, nout = [q, k, v, mask], 1
    if past:
        inputs += [floats(r, [b, kv, past, size], dtype), floats(r, [b, kv, past, vsize], dtype)]
        nout = 4
        attrs["qk_matmul_output_mode"] = pick(r, 1, 2, 3) if "softcap" in attrs else pick(r, 0, 2, 3)
    elif opset > 23 and coin(r):
        inputs += [None, None, r.integers(0, total + 1, [b]).astype(np.int64)]
    return Case("Attention", inputs, nout, opset=opset, is_causal=int(causal), reference=True, **attrs)


@family
def linear_attention(r):
    b, t, kv, group, dk, dv = (int(r.integers(1, 4)) for _ in range(6))
    rule = pick(r, "linear", "gated", "delta", "gated_delta")
    q, k, v = floats(r, [b, t, kv * group * dk]), floats(r, [b, t, kv * dk], scale=0.4), floats(r, [b, t, kv * dv])
    past = floats(r, [b, kv, dk, dv]) if coin(r) else None
    decay = -np.abs(floats(r, [b, t, pick(r, kv, kv * dk)])) if "gated" in rule else None
    beta = np.abs(floats(r, [b, t, pick(r, kv, 1)], scale=0.3)) if "delta" in rule else None
    return Case("LinearAttention", [q, k, v, past, decay, beta], 2, opset=27, q_num_heads=kv * group, kv_num_heads=kv, update_rule=rule, reference=True)


@family
def rotary(r):
    b, heads, n, half, rest = int(r.integers(1, 3)), int(r.integers(1, 4)), int(r.integers(1, 6)), int(r.integers(1, 4)), pick(r, 0, 0, 2)
    size, by_position, flat = 2 * half + rest, coin(r), coin(r)
    x = floats(r, [b, n, heads * size] if flat else [b, heads, n, size])
    cache = [floats(r, [9, half] if by_position else [b, n, half]) for _ in range(2)]
    position = r.integers(0, 9, [b, n]).astype(np.int64) if by_position else None
    return Case("RotaryEmbedding", [x, *cache, position], opset=23, reference=True, interleaved=int(coin(r)), num_heads=heads,
                rotary_embedding_dim=2 * half if rest else 0)


@family
def recurrent(r):
    op, t, b, n, h = pick(r, "LSTM", "GRU", "RNN"), int(r.integers(1, 6)), int(r.integers(1, 7)), int(r.integers(1, 5)), int(r.integers(1, 10))
    gates, nact = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 1)}[op]
    direction = pick(r, "forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    state = lambda: floats(r, [d, b, h]) if coin(r) else None
    inputs = [floats(r, [t, b, n]), floats(r, [d, gates * h, n], scale=0.5), floats(r, [d, gates * h, h], scale=0.5),
              floats(r, [d, 2 * gates * h]) if coin(r) else None, r.integers(1, t + 1, [b]).astype(np.int32) if coin(r) else None, state()]
    attrs = {"hidden_size": h, "direction": direction}
    if coin(r):
        names = {"LSTM": ["HardSigmoid", "Softsign", "Relu"], "GRU": ["Sigmoid", "Softsign"], "RNN": ["LeakyRelu"]}[op]
        attrs["activations"] = names * d
        if op == "LSTM":
            attrs["activation_alpha"], attrs["activation_beta"] = [0.25] * d, [0.4] * d
    if coin(r):
        attrs["clip"] = 0.7
    if op == "LSTM":
        inputs += [state(), floats(r, [d, 3 * h]) if coin(r) else None]
        attrs["input_forget"] = int(r.integers(4) == 0)
    if op == "GRU":
        attrs["linear_before_reset"] = int(coin(r))
    return Case(op, inputs, 3 if op == "LSTM" else 2, opset=14, **attrs)


@family
def dynamic_lstm(r):
    """As onnxruntime's dynamic quantizer writes an LSTM: weights of bytes, the gates behind; what goes in becomes bytes, too."""
    t, b, n, h = int(r.integers(1, 6)), int(r.integers(1, 5)), int(r.integers(1, 9)), int(r.integers(1, 10))
    direction = pick(r, "forward", "reverse", "bidirectional")
    d, dtype = 2 if direction == "bidirectional" else 1, pick(r, np.uint8, np.int8)
    info, columns = np.iinfo(dtype), coin(r)
    weight = lambda k: r.integers(info.min, info.max + 1, [d, k, 4 * h]).astype(dtype)
    scale = lambda: np.abs(floats(r, [d, 4 * h] if columns else [d], scale=0.01)) + F32(0.001)
    zero = lambda s: np.full(s.shape, 0 if dtype == np.int8 else r.integers(100, 156), dtype)
    ws, rs = scale(), scale()
    state = lambda: floats(r, [d, b, h]) if coin(r) else None
    inputs = [floats(r, [t, b, n]), weight(n), weight(h), floats(r, [d, 8 * h]) if coin(r) else None, r.integers(1, t + 1, [b]).astype(np.int32) if coin(r) and b == 1
              else None, state(), state(), floats(r, [d, 3 * h]) if coin(r) else None, ws, zero(ws), rs, zero(rs)]
    return Case("DynamicQuantizeLSTM", inputs, 3, opset=14, domain="com.microsoft", hidden_size=h, direction=direction, input_forget=int(r.integers(4) == 0))


def padding(r, b, s, t):
    """Which keys are no padding, in one of the forms that onnxruntime takes. Each query sees one: what is hidden is far below, where sums are coarse."""
    form = r.integers(6)
    ends = r.integers(1, t + 1, [b])
    if form == 0:
        return ends.astype(np.int32)
    if form == 1:
        return np.concatenate([ends, r.integers(0, ends)]).astype(np.int32)
    if form in (2, 3):
        seen = r.integers(0, 2, [b, s, t] if form == 2 else [b, t]).astype(np.int32)
        seen[..., 0] = 1
        return seen
    return np.ones([b, 1], np.int32) if form == 4 and t > 1 else None


@family
def projected_attention(r):
    """Attention and QAttention, which make query, key and value themselves; without a bias onnxruntime takes the process with it."""
    b, s, heads, size, width, p = (int(r.integers(1, n)) for n in (4, 8, 4, 6, 9, 5))
    d, past = heads * size, coin(r)
    v = d if past or coin(r) else heads * int(r.integers(1, 6))
    bytes_ = coin(r)
    v = d if bytes_ else v
    ms = {"domain": "com.microsoft", "opset": 17, "num_heads": heads, "unidirectional": int(coin(r))}
    if coin(r):
        ms["scale"] = 0.3
    if coin(r):
        ms["mask_filter_value"] = -50.0
    mask = padding(r, b, s, s + p * past)
    old = floats(r, [2, b, heads, p, size]) if past else None
    nout = 2 if past else 1
    if bytes_:
        wtype = pick(r, np.uint8, np.int8)
        info, columns = np.iinfo(wtype), [3 * d] if coin(r) else [1]
        w, zero = (r.integers(info.min, info.max + 1, n).astype(wtype) for n in ([width, 3 * d], columns))
        return Case("QAttention", [r.integers(0, 256, [b, s, width]).astype(np.uint8), w, floats(r, [3 * d]), np.full([1], 0.02, F32),
                                   np.abs(floats(r, columns, scale=0.01)) + F32(0.001), mask, r.integers(0, 256, [1]).astype(np.uint8), zero, old], nout, **ms)
    if v != d:
        ms["qkv_hidden_sizes"] = [d, d, v]
    bias = floats(r, [pick(r, 1, b), pick(r, 1, heads), s, s]) if coin(r) and not past else None
    return Case("Attention", [floats(r, [b, s, width]), floats(r, [width, 2 * d + v]), floats(r, [2 * d + v]), mask, old, bias], nout, **ms)


@family
def multi_head(r):
    b, s, heads, size, length, p = (int(r.integers(1, n)) for n in (4, 8, 4, 6, 9, 5))
    d, past, cross = heads * size, coin(r), r.integers(4) == 0
    vsize = int(r.integers(1, 6)) if not past and not cross and coin(r) else size
    ms = {"domain": "com.microsoft", "opset": 17, "num_heads": heads}
    q, k, v, bias = floats(r, [b, s, d]), floats(r, [b, length, d]), floats(r, [b, length, heads * vsize]), None
    if cross:
        k, v, past = floats(r, [b, heads, length, size]), floats(r, [b, heads, length, size]), False
    elif coin(r):
        bias = floats(r, [2 * d + heads * vsize])
    total = length + p * past
    mask = padding(r, b, s, total)
    mask = None if mask is None or mask.ndim == 1 and len(mask) != b or mask.ndim == 2 and mask.shape[1] != total else mask
    old = [floats(r, [b, heads, p, size]) if past else None for _ in range(2)]
    scores = floats(r, [pick(r, 1, b), pick(r, 1, heads), s, total]) if coin(r) else None
    if coin(r):
        ms["scale"] = 0.4
    return Case("MultiHeadAttention", [q, k, v, bias, mask, scores, *old], 3 if past else 1, **ms)


@family
def activated(r):
    """A convolution or product that onnxruntime joined with an activation, and perhaps with a sum before it."""
    ms = {"domain": "com.microsoft", "opset": pick(r, 10, 17)}
    name = pick(r, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Clip")
    x, channels = floats(r, [2, 3, 5, 6]), int(r.integers(1, 5))
    params = {"LeakyRelu": [0.2], "HardSigmoid": [0.3, 0.4], "Clip": [-0.5, 0.7]}.get(name, [])
    if coin(r):
        w, z = floats(r, [channels, 3, 3, 3]), floats(r, [2, channels, 5, 6]) if coin(r) else None
        if z is not None:
            name, params = "Relu", []
        more = {"activation_params": params} if params else {}
        return Case("FusedConv", [x, w, floats(r, [channels]) if coin(r) else None, z], activation=name, pads=[1, 1, 1, 1], **more, **ms)
    name, params = ("Relu", []) if name == "Clip" else (name, params)
    more = dict(zip(("activation_alpha", "activation_beta"), params))
    return Case("FusedGemm", [x[0, 0], floats(r, [channels, 6]), floats(r, [channels]) if coin(r) else None], activation=name, transB=1, alpha=0.5, **more, **ms)


@family
def few_bits(r):
    """Weights and tables in blocks of 2, 4 or 8 bits."""
    bits, size, k, n = int(pick(r, 4, 4, 8, 2)), pick(r, 16, 32), int(r.integers(1, 80)), int(r.integers(1, 9))
    count, ms = -(-k // size), {"domain": "com.microsoft", "opset": 21}
    if coin(r):
        table = r.integers(0, 16, [7, 32 * count]).astype(ml_dtypes.uint4)
        inputs = [table, r.integers(0, 7, shape_of(r, 1, 2)), np.abs(floats(r, [7, count])), r.integers(0, 16, [7, count]).astype(ml_dtypes.uint4) if coin(r) else None]
        return Case("GatherBlockQuantized", inputs, block_size=32, gather_axis=0, quantize_axis=1, **ms)
    w = r.integers(0, 256, [n, count, size * bits // 8]).astype(np.uint8)
    zero = pick(r, None, r.integers(0, 256, [n * -(-count * bits // 8)]).astype(np.uint8))
    bias = floats(r, [n]) if coin(r) else None
    return Case("MatMulNBits", [floats(r, [*shape_of(r, 1, 2), k]), w, np.abs(floats(r, [n * count], scale=0.1)), zero, None, bias], K=k, N=n, bits=bits, block_size=size, **ms)


@family
def embedding(r):
    b, s, n = int(r.integers(1, 4)), int(r.integers(1, 7)), int(r.integers(1, 9))
    ids, segments = r.integers(0, 9, [b, s]).astype(np.int32), r.integers(0, 2, [b, s]).astype(np.int32) if coin(r) else None
    mask = r.integers(0, 2, [b, s]).astype(np.int32) if coin(r) else None
    places = r.integers(0, 8, [pick(r, 1, b), s]).astype(np.int32) if coin(r) else None
    ms = {"domain": "com.microsoft", "opset": 17, "epsilon": 1e-5}
    if coin(r):
        table = lambda *shape: r.integers(0, 256, shape).astype(np.uint8)
        tables = [table(9, n), table(8, n), None if segments is None else table(2, n), table(n), table(n)]
        scales, zeros = ([None if t is None else of() for t in tables] for of in (lambda: np.array(0.02, F32), lambda: np.array(r.integers(90, 160), np.uint8)))
        return Case("QEmbedLayerNormalization", [ids, segments, *tables, mask, *scales, *zeros], 2, **ms)
    tables = [floats(r, [9, n]), floats(r, [8, n]), None if segments is None else floats(r, [2, n]), floats(r, [n]), floats(r, [n])]
    return Case("EmbedLayerNormalization", [ids, segments, *tables, mask, places], 3, **ms)


@family
def not_finite(r):
    """What element-wise ops make of what is no number, and of infinities."""
    x = floats(r, shape_of(r, 1, 3), scale=4.0)
    x[r.random(x.shape) < 0.3] = np.nan
    x[r.random(x.shape) < 0.2] = np.inf
    x[r.random(x.shape) < 0.2] = -np.inf
    op = pick(r, "HardSigmoid", "Celu", "Relu", "LeakyRelu", "Elu", "Selu", "HardSwish", "ThresholdedRelu", "Shrink", "Sign", "Abs", "Sigmoid", "Tanh", "Softsign", "Clip", "Max", "Min")
    if op == "Clip":
        return Case(op, [x, np.array(-1, F32), np.array(2.5, F32)], opset=17)
    return Case(op, [x, floats(r, x.shape)] if op in ("Max", "Min") else [x], opset=17, **({"alpha": 0.3} if op in ("HardSigmoid", "Celu", "LeakyRelu", "Elu") else {}))


# ------------------------------------------------------------------------------------------------------------- running

def elem(x):
    return helper.np_dtype_to_tensor_dtype(x.dtype)


def model_of(case, r):
    """The model and its inputs."""
    nodes, graph_in, feeds, names, init = [], [], {}, [], []
    for i, x in enumerate(case.inputs):
        if x is None:
            names.append("")
            continue
        name = f"x{i}"
        if x.dtype == ml_dtypes.uint4:  # which onnxruntime takes of nobody
            init.append(onnx.numpy_helper.from_array(x, name))
            names.append(name)
            continue
        if i == 0 and x.ndim > 1 and coin(r):
            perm = r.permutation(x.ndim).tolist()
            nodes.append(helper.make_node("Transpose", ["t"], [name], perm=perm))
            x = np.ascontiguousarray(x.transpose(np.argsort(perm)))
            feeds["t"] = x
        else:
            feeds[name] = x
        graph_in.append(helper.make_tensor_value_info(list(feeds)[-1], elem(x), list(x.shape)))
        names.append(name)
    while names and not names[-1]:
        names.pop()
    outs = [f"y{i}" for i in range(case.nout)]
    nodes.append(helper.make_node(case.op, names, outs, domain=case.domain, **case.attrs))
    graph = helper.make_graph(nodes, "g", graph_in, [helper.make_empty_tensor_value_info(o) for o in outs], init)
    opsets = [helper.make_opsetid("", case.opset)] + ([helper.make_opsetid(case.domain, 1)] if case.domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def difference(got, want):
    want = np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, wants {want.dtype}{list(want.shape)}"
    if want.dtype.type not in TOLERANCE:
        return "" if np.array_equal(got, want) else f"{got.ravel()[:6]}, wants {want.ravel()[:6]}"
    most, each = TOLERANCE[want.dtype.type]
    a, b = got.astype(F64), want.astype(F64)
    top = np.abs(b[np.isfinite(b)]).max(initial=0)
    ok = np.isclose(a, b, rtol=each, atol=most * top + 1e-300, equal_nan=True)
    return "" if ok.all() else f"{got[~ok][:4]}, wants {want[~ok][:4]}"


def run(job):
    """(what is wrong, the engine)"""
    name, seed = job
    r = np.random.default_rng([seed, *name.encode()])
    case = FAMILIES[name](r)
    model, feeds = model_of(case, r)
    label = f"{name} seed {seed}: {case.op}-{case.opset} {[None if x is None else f'{x.dtype}{list(x.shape)}' for x in case.inputs]} {case.attrs}"
    try:
        if case.reference:
            want, engine = common.run_reference(model, feeds), "reference"
        else:
            want, engine = common.run(model.SerializeToString(), feeds)
    except Exception as e:
        return f"{label}: no oracle: {str(e).splitlines()[0][:200]}", "none"
    try:
        got = RelayoutBackend.prepare(model, program=PROGRAM, limit=60, options=OPTIONS).run(feeds)
    except Exception as e:
        return f"{label}: {type(e).__name__}: {e}", engine
    for i, (g, w) in enumerate(zip(got, want)):
        wrong = difference(g, w)
        if wrong:
            return f"{label}: output {i}: {wrong} ({engine})", engine
    return "", engine


def main():
    global PROGRAM, OPTIONS
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=25, help="models of each family")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("names", nargs="*")
    p.add_argument("--device", help="of relayout run: cuda")
    args = p.parse_args()
    PROGRAM, OPTIONS = common.program(args), ("--device", args.device) if args.device else ("--threads", "2")
    jobs = [(f, args.seed + i) for f in FAMILIES if not args.names or any(n in f for n in args.names) for i in range(args.count)]
    engines, nfail = collections.Counter(), 0
    for wrong, engine in common.pooled(run, jobs, args.jobs, 8):
        engines[engine] += 1
        nfail += bool(wrong)
        if wrong:
            print(wrong)
    print(", ".join(f"{n} by {e}" for e, n in engines.items()))
    return common.closing(len(jobs) - nfail, nfail)


if __name__ == "__main__":
    sys.exit(main())
