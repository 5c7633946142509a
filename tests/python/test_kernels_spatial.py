#!/usr/bin/env python3
"""Kernels with windows, resampling, normalization and quantization on random shapes and attributes: one-node models run by
`relayout run`, compared with onnxruntime or, where that does not take a model, with the onnx reference evaluator.

  test_kernels_spatial.py                  all ops
  test_kernels_spatial.py Conv Resize      these
  test_kernels_spatial.py --seed 7         other models

In every third model the first input comes through a Transpose and a Slice, so that the kernel sees a view with gaps.
"""
import sys
import warnings

import numpy as np
import onnx
from onnx import helper

import common

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import RelayoutBackend

EACH = 16      # models per op
MAKERS = {}    # op -> function of a generator that returns a Case


class Case:
    def __init__(self, op, inputs, nout=1, opset=21, tol=2e-5, exact=False, **attrs):
        self.op, self.nout, self.opset, self.tol, self.exact = op, nout, opset, tol, exact
        self.inputs = [x if x is None else np.asarray(x) for x in inputs]
        self.attrs = {k: v for k, v in attrs.items() if v is not None}

    def model(self, gaps):
        """The model and its inputs. gaps: input 0 is transposed and cut in the model."""
        given, nodes, names, inits = {}, [], [], []
        for i, x in enumerate(self.inputs):
            if x is None:
                names.append("")
                continue
            name = f"x{i}"
            if i == 0 and gaps and x.ndim > 1 and self.opset >= 10:
                perm = [int(p) for p in np.argsort(np.arange(x.ndim) * 7 % x.ndim if x.ndim not in (1, 7) else np.arange(x.ndim)[::-1])]
                wide = np.repeat(x, 2, axis=-1)
                wide[..., 1::2] = 1
                given["raw"] = np.ascontiguousarray(wide.transpose(np.argsort(perm)))
                inits.append(onnx.numpy_helper.from_array(np.array([2 ** 31 - 1]), "end"))
                for n, v in (("start", 0), ("axis", x.ndim - 1), ("step", 2)):
                    inits.append(onnx.numpy_helper.from_array(np.array([v]), n))
                nodes.append(helper.make_node("Transpose", ["raw"], ["turned"], perm=perm))
                nodes.append(helper.make_node("Slice", ["turned", "start", "end", "axis", "step"], [name]))
            else:
                given[name] = x
            names.append(name)
        outs = [f"y{i}" for i in range(self.nout)]
        nodes.append(helper.make_node(self.op, names, outs, **self.attrs))
        info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()]
        made = [onnx.ValueInfoProto(name=n) for n in outs]
        graph = helper.make_graph(nodes, "g", info, made, inits)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        model = onnx.shape_inference.infer_shapes(model)
        for o in model.graph.output:
            if not o.type.tensor_type.elem_type:  # a function, which inference leaves alone: the type of its input
                o.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(self.inputs[0].dtype)
        return model, given


def maker(f):
    MAKERS[f.__name__] = f
    return f


def floats(r, shape, dtype=np.float32):
    return r.standard_normal(shape).astype(dtype)


def float_type(r):
    return r.choice([np.float32] * 5 + [np.float64, np.float16])


def pick(r, *x):
    return x[int(r.integers(len(x)))]


def window(r, rank, transposed=False):
    """kernel_shape, strides, dilations, pads or auto_pad."""
    k = [int(v) for v in r.integers(1, 4, rank)]
    a = {"kernel_shape": k, "strides": [int(v) for v in r.integers(1, 4, rank)], "dilations": [int(v) for v in r.integers(1, 3, rank)]}
    how = pick(r, "pads", "pads", "none", "SAME_UPPER", "SAME_LOWER", "VALID")
    if how == "pads":
        a["pads"] = [int(v) for v in r.integers(0, np.array(k + k), 2 * rank)]
    elif how != "none":
        a["auto_pad"] = how
        if not transposed and how != "VALID":
            a["dilations"] = [1] * rank
            a["kernel_shape"] = [max(v, s) for v, s in zip(k, a["strides"])]  # onnxruntime pads pools of less by less than nothing
    return a


def convolution(r, op, types):
    rank, group = int(r.integers(1, 4)), pick(r, 1, 1, 2, 3)
    c, m, n = group * int(r.integers(1, 6)), group * int(r.integers(1, 9)), int(r.integers(1, 3))
    if r.random() < 0.2:
        c = m = group = int(r.integers(2, 9))
    a = window(r, rank, op == "ConvTranspose")
    x = types(r, (n, c, *r.integers(7, 15 if rank < 3 else 9, rank)))
    w = types(r, (c, m // group, *a["kernel_shape"]) if op == "ConvTranspose" else (m, c // group, *a["kernel_shape"]))
    return x, w, m, dict(a, group=group)


@maker
def Conv(r):
    t = float_type(r)
    x, w, m, a = convolution(r, "Conv", lambda r, s: floats(r, s, t))
    return Case("Conv", [x, w, pick(r, None, floats(r, m, t))], tol=5e-3 if t == np.float16 else 2e-5, **a)


@maker
def ConvWide(r):
    """Shapes that fill whole blocks of the product."""
    c, m, s = pick(r, 16, 40, 130), pick(r, 24, 100, 33), pick(r, 14, 20, 9)
    k = pick(r, 1, 3)
    return Case("Conv", [floats(r, (1, c, s, s + 3)), floats(r, (m, c, k, k)), floats(r, m)], strides=[pick(r, 1, 2)] * 2,
                pads=[k // 2] * 4)


@maker
def ConvTranspose(r):
    x, w, m, a = convolution(r, "ConvTranspose", floats)
    if "auto_pad" in a and "SAME" in a["auto_pad"]:
        del a["auto_pad"]  # onnxruntime puts the odd element on the other side than the standard says
    if r.random() < 0.4:
        a["output_padding"] = [int(r.integers(0, max(s, d))) for s, d in zip(a["strides"], a["dilations"])]
    return Case("ConvTranspose", [x, w, pick(r, None, floats(r, m))], **a)


@maker
def MatMul(r):
    m, k, n = (int(v) for v in r.integers(1, 70, 3))
    if r.random() < 0.3:
        m, k, n = m * 3, k * 9, n * 7
    left, right = pick(r, ((), ()), ((3,), (3,)), ((2, 1), (3,)), ((), (4,)), ((5,), ()), ((2, 3), (2, 3)))
    t = pick(r, np.float32, np.float64, np.int32, np.int64)
    make = lambda s: floats(r, s, t) if t in (np.float32, np.float64) else r.integers(-9, 9, s).astype(t)
    return Case("MatMul", [make((*left, m, k)), make((*right, k, n))])


@maker
def Gemm(r):
    m, k, n = (int(v) for v in r.integers(1, 200, 3))
    ta, tb = int(r.integers(2)), int(r.integers(2))
    bias = pick(r, None, floats(r, (n,)), floats(r, (m, 1)), floats(r, (m, n)))
    return Case("Gemm", [floats(r, (k, m) if ta else (m, k)), floats(r, (n, k) if tb else (k, n)), bias], transA=ta, transB=tb,
                alpha=0.5, beta=2.0)


def pooling(r, op, **more):
    rank = int(r.integers(1, 4))
    a = window(r, rank)
    if "auto_pad" not in a:
        a["ceil_mode"] = int(r.integers(2))
    dim = r.integers(6, 11, rank)
    if r.random() < 0.1:
        dim[-1] = 5000  # more than a kernel takes of a line at a time
    return floats(r, (2, 3, *dim)), dict(a, **more)


@maker
def MaxPool(r):
    x, a = pooling(r, "MaxPool")
    if r.random() < 0.2:
        x = (x * 50).astype(pick(r, np.int8, np.uint8))
    return Case("MaxPool", [x], nout=pick(r, 1, 2), storage_order=int(r.integers(2)), exact=True, **a)


@maker
def AveragePool(r):
    x, a = pooling(r, "AveragePool", count_include_pad=int(r.integers(2)))
    return Case("AveragePool", [x], **a)


@maker
def LpPool(r):
    x, a = pooling(r, "LpPool", p=int(r.integers(1, 4)))
    return Case("LpPool", [x], **a)


@maker
def Global(r):
    return Case(pick(r, "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), [floats(r, (2, 5, *r.integers(1, 9, int(r.integers(1, 4)))))])


@maker
def RoiAlign(r):
    x, n = floats(r, (2, 3, 9, 11)), 4
    corner, size = r.random((n, 2)) * 8, r.random((n, 2)) * 9
    box = np.concatenate([corner, corner + size], 1).astype(np.float32)
    return Case("RoiAlign", [x, box, r.integers(0, 2, n)], output_height=3, output_width=2, sampling_ratio=int(r.integers(0, 3)),
                spatial_scale=pick(r, 1.0, 0.5), mode=pick(r, "avg", "max"),
                coordinate_transformation_mode=pick(r, "half_pixel", "output_half_pixel"))


@maker
def MaxRoiPool(r):
    box = np.concatenate([r.integers(0, 2, (4, 1)), r.random((4, 2)) * 6, 5 + r.random((4, 2)) * 6], 1).astype(np.float32)
    return Case("MaxRoiPool", [floats(r, (2, 3, 9, 11)), box], pooled_shape=[3, 2], spatial_scale=pick(r, 1.0, 0.5))


@maker
def BatchNormalization(r):
    c, trains = int(r.integers(1, 6)), int(r.integers(2))
    x = floats(r, (3, c, *r.integers(1, 7, int(r.integers(1, 4)))))
    p = [floats(r, c), floats(r, c), floats(r, c), r.random(c).astype(np.float32) + 0.1]
    return Case("BatchNormalization", [x, *p], nout=3 if trains else 1, training_mode=trains, momentum=0.7, tol=1e-4)


@maker
def InstanceNormalization(r):
    c = int(r.integers(1, 6))
    return Case("InstanceNormalization", [floats(r, (2, c, *r.integers(2, 9, int(r.integers(1, 4))))), floats(r, c), floats(r, c)], tol=1e-4)


@maker
def GroupNormalization(r):
    g = int(r.integers(1, 4))
    c, opset = g * int(r.integers(1, 4)), pick(r, 18, 21)
    n = c if opset == 21 else g
    return Case("GroupNormalization", [floats(r, (2, c, *r.integers(2, 9, 2))), floats(r, n), floats(r, n)], num_groups=g, opset=opset, tol=1e-4)


@maker
def LRN(r):
    return Case("LRN", [floats(r, (2, int(r.integers(1, 9)), 4, 5))], size=pick(r, 1, 3, 5), alpha=0.1, beta=0.6, bias=1.5)


@maker
def LpNormalization(r):
    x = floats(r, r.integers(2, 7, 3))
    return Case("LpNormalization", [x], axis=int(r.integers(-3, 3)), p=int(r.integers(1, 3)), tol=1e-4)


@maker
def MeanVarianceNormalization(r):
    return Case("MeanVarianceNormalization", [floats(r, (2, 3, 5, 6))], axes=pick(r, None, [0], [1, 2], [-1, 0]), tol=1e-4)


@maker
def Resize(r):
    mode = pick(r, "nearest", "linear", "cubic")
    x = floats(r, (1, 2, *r.integers(3, 9, 2)))
    a = dict(mode=mode, coordinate_transformation_mode=pick(r, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                                                            "half_pixel_symmetric"))
    if mode == "nearest":
        a["nearest_mode"] = pick(r, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    if mode == "cubic":
        a["exclude_outside"] = int(r.integers(2))
        a["cubic_coeff_a"] = pick(r, -0.5, -0.75)
    to = r.integers(1, 15, 2)
    if r.random() < 0.5:
        return Case("Resize", [x, None, None, np.array([1, 2, *to])], **a)
    scale = np.array([pick(r, 0.5, 2.0, 3.0, 1.5, 1.0) for _ in range(2)])
    if a["coordinate_transformation_mode"] == "align_corners":
        scale = np.round(scale + 0.2)  # scales that leave a fraction: onnxruntime differs from the standard's cases
    return Case("Resize", [x, None, np.array([1, 1, *scale], np.float32)], **a)


@maker
def ResizeCrop(r):
    roi = np.array([0, 0, 0.1, 0.2, 1, 1, 0.7, 1.1], np.float32)
    return Case("Resize", [floats(r, (1, 2, 6, 7)), roi, None, np.array([1, 2, 5, 6])], mode=pick(r, "nearest", "linear", "cubic"),
                coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=4.0)


@maker
def Upsample(r):
    x, scales = floats(r, (1, 2, 4, 5)), [1.0, 1.0, pick(r, 1.0, 2.0, 3.0), pick(r, 2.0, 1.5)]
    return Case("Upsample", [x, np.array(scales, np.float32)], mode=pick(r, "nearest", "linear"), opset=9)


@maker
def GridSample(r):
    rank = pick(r, 2, 2, 3)
    x, grid = floats(r, (2, 3, *r.integers(2, 7, rank))), (r.random((2, *r.integers(2, 5, rank), rank)) * 3 - 1.5).astype(np.float32)
    return Case("GridSample", [x, grid], mode=pick(r, "nearest", "linear", *(["cubic"] if rank == 2 else [])), opset=20,
                padding_mode=pick(r, "zeros", "border", "reflection"), align_corners=int(r.integers(2)), tol=1e-4)


@maker
def DeformConv(r):
    og, g = int(r.integers(1, 3)), int(r.integers(1, 3))
    x, w = floats(r, (2, 4, 6, 7)), floats(r, (4, 4 // g, 2, 3))
    offset, mask = floats(r, (2, og * 12, 7, 7)), pick(r, None, floats(r, (2, og * 6, 7, 7)))
    return Case("DeformConv", [x, w, offset, pick(r, None, floats(r, 4)), mask], group=g, offset_group=og, pads=[1, 1, 1, 1], opset=22,
                kernel_shape=[2, 3], strides=[1, 1], dilations=[1, 1], tol=1e-4)


@maker
def Col2Im(r):
    image, block, pads = r.integers(5, 9, 2), r.integers(1, 4, 2), int(r.integers(0, 2))
    steps = (image + 2 * pads - block) // 1 + 1
    x = floats(r, (2, 3 * int(block.prod()), int(steps.prod())))
    return Case("Col2Im", [x, image, block], pads=[pads] * 4)


def quantized(r, shape, t):
    info = np.iinfo(t)
    return r.integers(info.min, info.max + 1, shape).astype(t)


@maker
def QuantizeLinear(r):
    x, t = floats(r, (3, 4, 6)) * 3, pick(r, np.uint8, np.int8, np.uint16, np.int16)
    how = pick(r, "tensor", "axis", "block")
    axis = int(r.integers(0, 3))
    shape = () if how == "tensor" else (x.shape[axis],) if how == "axis" else tuple(-(-d // 2) if i == axis else d for i, d in enumerate(x.shape))
    scale = (r.random(shape) * 0.1 + 0.01).astype(np.float32)
    return Case("QuantizeLinear", [x, scale, pick(r, None, quantized(r, shape, t))], axis=axis, block_size=2 if how == "block" else None, exact=True)


@maker
def DequantizeLinear(r):
    t, axis = pick(r, np.uint8, np.int8, np.int16, np.int32), int(r.integers(0, 3))
    x = quantized(r, (3, 4, 6), t)
    shape = pick(r, (), (x.shape[axis],))
    return Case("DequantizeLinear", [x, r.random(shape).astype(np.float32), None if t == np.int32 else pick(r, None, quantized(r, shape, t))], axis=axis)


@maker
def DynamicQuantizeLinear(r):
    return Case("DynamicQuantizeLinear", [floats(r, (4, 9)) * 3], nout=3)


@maker
def QLinearConv(r):
    t, wt = pick(r, (np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    x, w, m, a = convolution(r, "Conv", lambda r, s: r.integers(0, 100, s))
    shape = pick(r, (), (m,)) if wt == np.int8 else ()
    scale = lambda s: (r.random(s) * 0.02 + 0.01).astype(np.float32)
    wzero = np.zeros(shape, wt) if wt == np.int8 else np.array(7, wt)
    return Case("QLinearConv", [x.astype(t), scale(()), np.array(5, t), w.astype(wt), scale(shape), wzero, np.float32(0.7),
                                np.array(9, t), pick(r, None, r.integers(-99, 99, m).astype(np.int32))], **a, exact=True)


@maker
def QLinearMatMul(r):
    m, k, n = (int(v) for v in r.integers(1, 20, 3))
    t = pick(r, np.uint8, np.int8)
    scale = lambda s=(): (r.random(s) * 0.02 + 0.01).astype(np.float32)
    return Case("QLinearMatMul", [quantized(r, (2, m, k), t), scale(), np.array(5, t), quantized(r, (k, n), t), scale(), np.array(3, t),
                                  scale() * 30, np.array(9, t)], exact=True)


@maker
def Integer(r):
    if r.random() < 0.5:
        m, k, n = (int(v) for v in r.integers(1, 20, 3))
        return Case("MatMulInteger", [quantized(r, (2, m, k), np.uint8), quantized(r, (k, n), np.uint8), np.array(5, np.uint8),
                                      pick(r, np.array(7, np.uint8), quantized(r, (n,), np.uint8))], exact=True)
    x, w, m, a = convolution(r, "Conv", lambda r, s: quantized(r, s, np.uint8))
    return Case("ConvInteger", [x, w, np.array(5, np.uint8), np.array(7, np.uint8)], **a, exact=True)


@maker
def CenterCropPad(r):
    return Case("CenterCropPad", [floats(r, (5, 6, 7)), r.integers(3, 10, 2)], axes=pick(r, [0, 1], [-1, 0]), exact=True, opset=18)


@maker
def Old(r):
    """Versions that say the same in other ways."""
    x, c = floats(r, (2, 3, 6, 7)), [floats(r, 3), floats(r, 3), floats(r, 3), r.random(3).astype(np.float32) + 0.1]
    scales = np.array([1, 1, pick(r, 0.5, 2, 0.7), pick(r, 2, 1.5, 0.6)], np.float32)
    return pick(r, lambda: Case("BatchNormalization", [x, *c], opset=pick(r, 7, 9), tol=1e-4),
                lambda: Case("Upsample", [x], opset=7, scales=[1.0, 1.0, 2.0, pick(r, 1.0, 3.0)], mode=pick(r, "nearest", "linear")),
                lambda: Case("Resize", [x, scales], opset=10, mode=pick(r, "nearest", "linear")),
                lambda: Case("MaxPool", [x], opset=7, kernel_shape=[2, 3], strides=[2, 1]),
                lambda: Case("AveragePool", [x], opset=7, kernel_shape=[2, 3], pads=[1, 1, 1, 1], count_include_pad=1),
                lambda: Case("RoiAlign", [x, np.array([[0, 1, 5, 4]], np.float32), np.array([1])], opset=10, output_height=2, output_width=3),
                lambda: Case("LpNormalization", [x], opset=9), lambda: Case("LpPool", [x], opset=7, kernel_shape=[2, 2], p=2))()


@maker
def Half(r):
    """Types of 16 bits."""
    t = np.float16
    x, c = floats(r, (2, 4, 6, 7), t), [floats(r, 4, t), floats(r, 4, t)]
    return pick(r, lambda: Case("AveragePool", [x], kernel_shape=[3, 2], pads=[1, 1, 1, 1], tol=2e-3),
                lambda: Case("MaxPool", [x], kernel_shape=[3, 2], strides=[2, 2], nout=2, exact=True),
                lambda: Case("BatchNormalization", [x, *c, c[0], abs(c[1]) + t(0.1)], tol=5e-3),
                lambda: Case("InstanceNormalization", [x, *c], tol=5e-3),
                lambda: Case("ConvTranspose", [x, floats(r, (4, 3, 2, 2), t)], strides=[2, 2], tol=5e-3),
                lambda: Case("GlobalAveragePool", [x], tol=2e-3),
                lambda: Case("Resize", [x, None, np.array([1, 1, 2, 2], np.float32)], mode=pick(r, "nearest", "linear"), tol=2e-3),
                lambda: Case("MatMul", [x, floats(r, (7, 5), t)], tol=5e-3), lambda: Case("LRN", [x], size=3, opset=13, tol=2e-3))()


def difference(case, expected, got):
    """What is wrong, or "". """
    for i, (e, y) in enumerate(zip(expected, got)):
        e = np.asarray(e)
        if e.shape != y.shape or e.dtype != y.dtype:
            return f"output {i}: {y.dtype}{list(y.shape)}, wants {e.dtype}{list(e.shape)}"
        if e.size == 0:
            continue
        a, b = e.astype(np.float64), y.astype(np.float64)
        bad = np.isnan(a) != np.isnan(b)
        a, b = np.nan_to_num(a), np.nan_to_num(b)
        bound = 0 if case.exact else case.tol * (np.ptp(a) + np.abs(a).max()) + 1e-7
        bad |= np.abs(a - b) > bound
        if bad.any():
            at = tuple(int(v) for v in np.argwhere(bad)[0])
            return f"output {i}: {bad.sum()} of {e.size} differ; at {list(at)} {y[at]}, wants {e[at]}"
    return ""


def run(job):
    """(name, engine or None for no model, what is wrong)"""
    op, k, seed = job
    name = f"{op} {k}"
    case = None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            case = MAKERS[op](np.random.default_rng([seed, k, *op.encode()]))
            model, given = case.model(k % 3 == 0)
            expected, engine = common.run(model.SerializeToString(), given)
            got = RelayoutBackend.prepare(model, program=PROGRAM, limit=60, options=("--device", DEVICE) if DEVICE else ("--threads", str(1 + k % 2))).run(given)
            return name, engine, difference(case, expected, got)
    except (common.Differ, onnx.shape_inference.InferenceError) as e:
        return name, None, str(e)
    except Exception as e:
        return name, "", f"{type(e).__name__}: {e}"[:200] + f" {case.attrs if case else ''}"


def main():
    global PROGRAM, DEVICE
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("ops", nargs="*")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--each", type=int, default=EACH, help="models per op")
    p.add_argument("--device", help="of relayout run: cuda")
    args = p.parse_args()
    PROGRAM, DEVICE = common.program(args), args.device
    jobs = [(op, k, args.seed) for op in MAKERS if not args.ops or op in args.ops for k in range(args.each)]
    npass = nfail = nskip = 0
    engines = {}
    for name, engine, wrong in common.pooled(run, jobs, args.jobs, 4, ordered=True):
        if engine is None:
            nskip += 1
            continue
        engines.setdefault(name.split()[0], set()).add(engine)
        npass += not wrong
        nfail += bool(wrong)
        if wrong:
            print(f"{name} ({engine}): {wrong}")
    unseen = [op for op in MAKERS if (not args.ops or op in args.ops) and op not in engines]
    for op in unseen:
        print(f"{op}: no model of it runs anywhere")
    return common.closing(npass, nfail + len(unseen), nskip)


if __name__ == "__main__":
    sys.exit(main())
