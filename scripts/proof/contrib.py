"""Types and sizes of what com.microsoft's ops make, which onnx's inference does not know: of those that onnxruntime's quantizer and optimizer write."""
from onnx import TensorProto

# Like input 0.
LIKE = {"Gelu", "QuickGelu", "FastGelu", "BiasGelu", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization"}


def made(node, types, broadcast):
    """{output: (element type, dims)}, or None: no rule. types: of the inputs, (0, None) where unknown."""
    elem, x = types[0]
    of = lambda k: types[k] if k < len(types) else (0, None)
    if node.op in LIKE:
        return one(node, elem, x)
    if node.op in ("DequantizeLinear", "QuantizeLinear"):
        return one(node, of(1)[0] if node.op == "DequantizeLinear" else of(2)[0] or TensorProto.UINT8, x)
    if node.op in ("QLinearAdd", "QLinearMul"):
        return one(node, elem, broadcast([x, of(3)[1]]))
    if node.op == "QLinearWhere":
        return one(node, of(1)[0], broadcast([x, of(1)[1], of(4)[1]]))
    if node.op in ("FusedMatMul", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"):
        return one(node, of(2)[0] if node.op == "MatMulIntegerToFloat" else elem, product(node, x, of(1)[1], broadcast))
    if node.op == "QGemm":
        return one(node, of(8)[0] or TensorProto.FLOAT, gemm(node, x, of(3)[1]))
    if node.op == "QLinearConcat":
        return one(node, of(1)[0], joined([dims for _, dims in types[2::3]], node.attr("axis", 0)))
    if node.op == "QLinearGlobalAveragePool" and x and not node.attr("channels_last", 0):
        return one(node, elem, x[:2] + (1,) * (len(x) - 2))
    if node.op in ("Attention", "QAttention"):
        return one(node, of(3)[0] if node.op == "QAttention" else elem, attended(node, x, of(1)[1]))
    return recurrent(node, elem, x) if node.op == "DynamicQuantizeLSTM" else None


def one(node, elem, dims):
    return None if dims is None else {node.output[0]: (elem, tuple(dims))}


def product(node, a, b, broadcast):
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return None
    a, b = ([dims[d] for d in node.lies(k, len(dims))] for k, dims in enumerate((a, b)))
    batch = broadcast([a[:-2], b[:-2]])
    return None if batch is None else (*batch, a[-2], b[-1])


def gemm(node, a, b):
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return None
    return a[1 if node.attr("transA", 0) else 0], b[0 if node.attr("transB", 0) else 1]


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
