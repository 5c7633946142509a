"""Types and sizes of what com.microsoft's ops make, which onnx's inference does not know: of those that onnxruntime's quantizer and optimizer write."""
from onnx import TensorProto

from . import windows

# Like input 0.
LIKE = {"Gelu", "QuickGelu", "FastGelu", "BiasGelu", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization"}

# Convolutions and pools: the op of ONNX, the input that is the filter, the one whose type the result has, the channels' place where no attribute tells it.
IMAGES = {"FusedConv": ("Conv", 1, 0, 0), "QLinearConv": ("Conv", 3, 7, 0), "NhwcMaxPool": ("MaxPool", None, 0, 1), "QLinearAveragePool": ("AveragePool", None, 0, 0)}


def made(node, types, broadcast, number_of):
    """{output: (element type, dims)}, or None: no rule. types: of the inputs, (0, None) where unknown; number_of(tensor, dim): its size where it is known."""
    elem, x = types[0]
    of = lambda k: types[k] if k < len(types) else (0, None)
    if node.op in LIKE:
        both = one(node, elem, x)
        if both and node.op.startswith("Skip") and node.out(3):
            both[node.out(3)] = both[node.out(0)]  # the sum that it normalizes
        return both
    if node.op in ("DequantizeLinear", "QuantizeLinear"):
        return one(node, of(1)[0] if node.op == "DequantizeLinear" else of(2)[0] or TensorProto.UINT8, x)
    if node.op in ("QLinearAdd", "QLinearMul"):
        return one(node, elem, broadcast([x, of(3)[1]]))
    if node.op == "QLinearWhere":
        return one(node, of(1)[0], broadcast([x, of(1)[1], of(4)[1]]))
    if node.op in ("FusedMatMul", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"):
        return one(node, of(2)[0] if node.op == "MatMulIntegerToFloat" else elem, product(node, x, of(1)[1], broadcast))
    if node.op in IMAGES:
        return image(node, *IMAGES[node.op], types, number_of)
    if node.op == "FusedGemm":
        return one(node, next((t for t, _ in types if t), 0), gemm(node, x, of(1)[1]))
    if node.op in ("EmbedLayerNormalization", "QEmbedLayerNormalization"):
        return embedded(node, x, of(2)[1], of(8)[0] if node.op[0] == "Q" else of(2)[0])
    if node.op == "GatherBlockQuantized" and x and of(1)[1] is not None:
        return gathered(node, elem, x, of(1)[1], of(2)[0])
    if node.op == "QLinearReduceMean" and x and node.attr("axes", None) is not None:
        return one(node, elem, reduced(x, {a % len(x) for a in node.attr("axes", ())}, node.attr("keepdims", 1)))
    if node.op == "MultiHeadAttention":
        return one(node, elem, heads(x, of(1)[1], of(2)[1]))
    if node.op == "MatMulNBits" and x and node.attr("N", None) is not None:
        return one(node, elem, (*x[:-1], node.attr("N", None)))
    if node.op == "QGemm":
        return one(node, of(8)[0] or TensorProto.FLOAT, gemm(node, x, of(3)[1]))
    if node.op == "QLinearConcat":
        return one(node, of(1)[0], joined([dims for _, dims in types[2::3]], node.attr("axis", 0)))
    if node.op == "QLinearGlobalAveragePool" and x and len(x) > 2:
        last = node.attr("channels_last", 0)
        return one(node, elem, reduced(x, set(range(1, len(x) - 1)) if last else set(range(2, len(x))), 1))
    if node.op in ("Attention", "QAttention"):
        return one(node, of(3)[0] if node.op == "QAttention" else elem, attended(node, x, of(1)[1]))
    return recurrent(node, elem, x) if node.op == "DynamicQuantizeLSTM" else None


def one(node, elem, dims):
    return None if dims is None else {node.output[0]: (elem, tuple(dims))}


def product(node, a, b, broadcast):
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return None
    a, b = ([dims[d] for d in node.lies(k, len(dims))] for k, dims in enumerate((a, b)))
    batch = broadcast([a[:-2], b[:-2]], 2)
    return None if batch is None else (*batch, a[-2], b[-1])


def gemm(node, a, b):
    """A matrix, also where of one of the two nothing is known."""
    if any(dims is not None and len(dims) != 2 for dims in (a, b)):
        return None
    return a and a[1 if node.attr("transA", 0) else 0], b and b[0 if node.attr("transB", 0) else 1]


def joined(parts, axis):
    if not parts or any(d is None or len(d) != len(parts[0]) for d in parts) or not -len(parts[0]) <= axis < len(parts[0]):
        return None
    axis %= len(parts[0])
    return parts[0][:axis] + (sum(d[axis] for d in parts),) + parts[0][axis + 1:]


def attended(node, x, w):
    sizes = node.attr("qkv_hidden_sizes", None)
    if x is None or w is None or len(x) != 3 or len(w) != 2:
        return None
    return x[0], x[1], sizes[2] if sizes else w[1] // 3


def recurrent(node, elem, x):
    hidden = node.attr("hidden_size", None)
    if hidden is None or x is None or len(x) != 3 or node.attr("layout", 0):
        return None
    last = 2 if node.attr("direction", "forward") == "bidirectional" else 1, x[1], hidden
    return {name: (elem, (x[0], *last) if k == 0 else last) for k, name in enumerate(node.output) if name}


def image(node, op, filters, like, last, types, number_of):
    """As ONNX's op has it, whose dims are turned where the channels lie last."""
    x, w = types[0][1], () if filters is None else types[filters][1] if filters < len(types) else None
    if not x or like >= len(types) or len(x) < 3:
        return None
    turn = (0, len(x) - 1, *range(1, len(x) - 1)) if node.attr("channels_last", last) else range(len(x))
    y = windows.made(node, op, tuple(x[k] for k in turn), w, lambda k: number_of(node.inp(0), turn[k]) is not None)
    return y and one(node, types[like][0], (y[k] for k in sorted(range(len(x)), key=lambda k: turn[k])))


def embedded(node, ids, words, elem):
    if ids is None or words is None or len(ids) != 2 or len(words) != 2:
        return None
    whole = elem, (*ids, words[1])
    return {name: (TensorProto.INT32, ids[:1]) if k == 1 else whole for k, name in enumerate(node.output) if name}


def gathered(node, elem, x, index, made_of):
    if elem == TensorProto.UINT8 and node.attr("bits", 4) < 8:
        return None
    axis = node.attr("gather_axis", 0) % len(x)
    return one(node, made_of, x[:axis] + index + x[axis + 1:])


def reduced(x, gone, keep):
    return tuple(1 if k in gone else d for k, d in enumerate(x) if keep or k not in gone)


def heads(q, k, v):
    """Query, key and value apart: [batch, length, heads * size], the last two also [batch, heads, length, size]."""
    if q is None or k is None or v is None or len(q) != 3 or len(v) not in (3, 4):
        return None
    return q[0], q[1], v[2] if len(v) == 3 else v[1] * v[3]
