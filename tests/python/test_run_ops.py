#!/usr/bin/env python3
"""`relayout run` on what the backend suite does not reach: seeded random numbers (those of the ONNX reference evaluator, which are
NumPy's), Scan along other axes, backwards and of opset 8, sparse initializers, nested sequences, regular expressions, Softmax and
reductions along any axes of views, boxes in heaps, blocks of many taps, bench's JSON, the memory that a run
holds, files of outputs, --dump all, the same bytes in every run, the progress line."""
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper
from onnx.reference import ReferenceEvaluator

import common
from test_cli import on_terminal

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import Refused, RelayoutBackend

check = common.Checks()


def model(nodes, inputs, outputs, opset=20, domains=(), **kwargs):
    g = h.make_graph(nodes, "g", inputs, outputs, **kwargs)
    return h.make_model(g, opset_imports=[h.make_opsetid("", opset), *(h.make_opsetid(d, v) for d, v in domains)], ir_version=10)


def value(name, shape, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def run(m, *inputs):
    return RelayoutBackend.prepare(m, program=PROGRAM, limit=60).run(list(inputs))


def random_ops():
    x = np.linspace(0, 1, 2000, dtype=np.float32).reshape(40, 50)
    for seed in (0.0, 1.0, 77.0):
        for node, given in [
            (h.make_node("RandomUniform", [], ["y"], shape=[40, 50], seed=seed, low=-1.0, high=3.0), []),
            (h.make_node("RandomNormal", [], ["y"], shape=[40, 51], seed=seed, mean=1.0, scale=2.0), []),
            (h.make_node("RandomUniformLike", ["x"], ["y"], seed=seed), [x]),
            (h.make_node("RandomNormalLike", ["x"], ["y"], seed=seed), [x]),
            (h.make_node("Bernoulli", ["x"], ["y"], seed=seed), [x]),
        ]:
            m = model([node], [value("x", [40, 50])] if given else [], [value("y", None)])
            want = ReferenceEvaluator(m).run(None, {"x": x} if given else {})[0]
            check(f"{node.op_type} seed {seed}", np.allclose(run(m, *given)[0], want, rtol=1e-5, atol=1e-6))
    p = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-9]], np.float32))
    y, = run(model([h.make_node("Multinomial", ["x"], ["y"], sample_size=20000, seed=3.0)], [value("x", [2, 3])], [value("y", None, T.INT32)]), p)
    share = np.stack([(y == k).mean(axis=1) for k in range(3)], axis=1)
    check("Multinomial", np.abs(share - np.exp(p)).max() < 0.02)
    m = model([h.make_node("RandomNormal", [], ["a"], shape=[9]), h.make_node("RandomNormal", [], ["b"], shape=[9])], [],
              [value("a", [9]), value("b", [9])])
    a, b = run(m), run(m)
    check("no seed", np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1]) and not np.array_equal(a[0], a[1]))


def old_dropout():
    """Before opset 7 it trains where the node does not say is_test."""
    x = np.ones((4, 50), dtype=np.float32)
    for version, attrs, trains in ((6, {}, True), (6, {"is_test": 1}, False), (1, {"ratio": 0.25}, True), (7, {}, False), (11, {"ratio": 0.25}, False)):
        (y,) = run(model([h.make_node("Dropout", ["x"], ["y"], **attrs)], [value("x", x.shape)], [value("y", x.shape)], opset=version), x)
        scale = np.float32(1 / (1 - attrs.get("ratio", 0.5)))
        check(f"Dropout-{version} {attrs}", set(np.unique(y)) == ({0, scale} if trains else {1}))


def scans():
    body = h.make_graph([h.make_node("Add", ["s", "x"], ["t"]), h.make_node("Identity", ["t"], ["o"])], "body",
                        [value("s", [2]), value("x", [2])], [value("t", [2]), value("o", [2])])
    rng = np.random.default_rng(0)
    s, x = rng.standard_normal(2, np.float32), rng.standard_normal((2, 5), np.float32)
    for back in (0, 1):
        for out_back in (0, 1):
            node = h.make_node("Scan", ["s", "x"], ["t", "o"], body=body, num_scan_inputs=1, scan_input_axes=[-1], scan_output_axes=[1],
                               scan_input_directions=[back], scan_output_directions=[out_back])
            t, o = run(model([node], [value("s", [2]), value("x", [2, 5])], [value("t", [2]), value("o", [2, 5])]), s, x)
            steps = s[:, None] + np.cumsum(x[:, ::-1] if back else x, axis=1)
            good = np.allclose(t, steps[:, -1], atol=1e-5) and np.allclose(o, steps[:, ::-1] if out_back else steps, atol=1e-5)
            check(f"Scan {back} {out_back}", good)
    node = h.make_node("Scan", ["n", "s", "x"], ["t", "o"], body=body, num_scan_inputs=1)
    n, s, x = np.array([2, 4, 0][:2], np.int64), rng.standard_normal((2, 2), np.float32), rng.standard_normal((2, 4, 2), np.float32)
    m = model([node], [value("n", [2], T.INT64), value("s", [2, 2]), value("x", [2, 4, 2])], [value("t", None), value("o", None)], opset=8)
    t, o = run(m, n, s, x)
    want = s[:, None] + np.cumsum(x, axis=1)
    want[0, 2:] = 0
    check("Scan-8", np.allclose(o, want, atol=1e-5) and np.allclose(t, [want[0, 1], want[1, 3]], atol=1e-5))


def written_over():
    """An output that takes the storage of its second operand, the first being one number, or a view with gaps."""
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    for k in (0, 1):
        m = model([h.make_node("ReduceMax", ["x"], ["m"], keepdims=0), h.make_node("Mul", ["c", "m"][::1 - 2 * k], ["y"])],
                  [value("x", [2, 3])], [value("y", None)], initializer=[numpy_helper.from_array(np.float32(2), "c")])
        check(f"a scalar over a scalar {k}", run(m, x)[0] == 12)
        m = model([h.make_node("Slice", ["x", "from", "to", "last", "step"], ["s"]), h.make_node("Relu", ["s"], ["r"]), h.make_node("Neg", ["s"], ["n"]),
                   h.make_node("Exp", ["n"], ["e"]), h.make_node("Sub", ["s", "e"][::1 - 2 * k], ["y"])],
                  [value("x", [2, 3])], [value("y", None), value("r", None)],
                  initializer=[numpy_helper.from_array(np.array([v]), n) for n, v in (("from", 0), ("to", 3), ("last", 1), ("step", 2))])
        s = x[:, ::2]
        check(f"an operand with gaps {k}", np.allclose(run(m, x)[0], (s - np.exp(-s)) * (1 - 2 * k), rtol=1e-5))


def tiny_rows():
    """Rows of few elements, more of them than a block holds: of boxes sliced out and put back, and of operands that lie in other orders."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 75, 40, 40)).astype(np.float32)
    grid = rng.standard_normal((1, 1, 40, 40, 2)).astype(np.float32)
    ints = {"s": [1, 3, 25, 40, 40], "from": [0], "two": [2], "four": [4], "all": [25], "last": [4]}
    cut = [h.make_node("Slice", ["t", a, b, "last"], [y]) for a, b, y in (("from", "two", "a"), ("two", "four", "b"), ("four", "all", "c"))]
    m = model([h.make_node("Relu", ["x"], ["z"]), h.make_node("Reshape", ["z", "s"], ["r"]), h.make_node("Transpose", ["r"], ["t"], perm=[0, 1, 3, 4, 2]), *cut,
               h.make_node("Mul", ["a", "k"], ["d"]), h.make_node("Sub", ["g", "d"], ["e"]), h.make_node("Mul", ["b", "b"], ["f"]),
               h.make_node("Concat", ["e", "f", "c"], ["y"], axis=-1)], [value("x", x.shape)], [value("y", None)],
              initializer=[numpy_helper.from_array(np.array(v), n) for n, v in ints.items()]
              + [numpy_helper.from_array(grid, "g"), numpy_helper.from_array(np.float32(8), "k")])
    t = np.maximum(x, 0).reshape(1, 3, 25, 40, 40).transpose(0, 1, 3, 4, 2)
    want = np.concatenate([grid - t[..., :2] * np.float32(8), t[..., 2:4] ** 2, t[..., 4:]], -1)
    check("boxes", np.allclose(run(m, x)[0], want, rtol=1e-5, atol=1e-5))
    for n in (1, 5, 16, 64, 65):
        p, q = rng.standard_normal((n, 30, 9)).astype(np.float32), rng.standard_normal((1, 30, n)).astype(np.float32)
        m = model([h.make_node("Transpose", ["p"], ["t"], perm=[2, 1, 0]), h.make_node("Add", ["t", "q"], ["u"]), h.make_node("Sub", ["q", "u"], ["y"])],
                  [value("p", p.shape), value("q", q.shape)], [value("y", None)])
        check(f"operands in other orders, rows of {n}", np.allclose(run(m, p, q)[0], q - (p.transpose(2, 1, 0) + q), atol=1e-5))


def gemm():
    """Without C nothing is added, not even infinity times 0; integers wrap, and none is rounded on its way."""
    x = np.array([[np.inf, 1, 2], [-np.inf, 3, 4]], np.float32)
    m = model([h.make_node("Gemm", ["x", "x"], ["y"], transB=1)], [value("x", [2, 3])], [value("y", None)])
    check("Gemm of infinities", np.array_equal(run(m, x)[0], np.array([[np.inf, -np.inf], [-np.inf, np.inf]], np.float32)))
    big = np.array([[2**62 + 1, 2**62 + 2]], np.int64)
    one, c = np.ones((2, 1), np.int64), np.array([[2**62 + 4]], np.int64)
    m = model([h.make_node("Gemm", ["x", "w", "c"], ["y"])], [value("x", [1, 2], T.INT64)], [value("y", None, T.INT64)],
              initializer=[numpy_helper.from_array(one, "w"), numpy_helper.from_array(c, "c")])
    with np.errstate(over="ignore"):
        check("Gemm of large integers", np.array_equal(run(m, big)[0], big @ one + c))


def loop_without_runs():
    body = h.make_graph([h.make_node("Identity", ["c"], ["d"]), h.make_node("Identity", ["s"], ["t"]), h.make_node("Cast", ["i"], ["o"], to=T.FLOAT)],
                        "body", [value("i", [], T.INT64), value("c", [], T.BOOL), value("s", [3])], [value("d", [], T.BOOL), value("t", [3]), value("o", [])])
    m = model([h.make_node("Loop", ["n", "", "s"], ["t", "o"], body=body)], [value("n", [], T.INT64), value("s", [3])], [value("t", [3]), value("o", [None])])
    s = np.arange(3, dtype=np.float32)
    for n in (0, 4):
        t, o = run(m, np.array(n, np.int64), s)
        check(f"Loop {n}", np.array_equal(t, s) and np.array_equal(o, np.arange(n, dtype=np.float32)))


def sparse():
    dense = np.zeros((3, 4), np.float32)
    dense[0, 1], dense[2, 3] = 5, -2
    for name, index in (("places", np.array([1, 11])), ("indices", np.array([[0, 1], [2, 3]])), ("bad", np.array([1, 12]))):
        s = h.make_sparse_tensor(h.make_tensor("w", T.FLOAT, [2], [5.0, -2.0]), onnx.numpy_helper.from_array(index.astype(np.int64)), [3, 4])
        made = [h.make_node("Constant", [], ["w"], sparse_value=s)]
        for kind, nodes, inits in (("initializer", [], {"sparse_initializer": [s]}), ("Constant", made, {})):
            m = model([*nodes, h.make_node("Add", ["x", "w"], ["y"])], [value("x", [3, 4])], [value("y", [3, 4])], **inits)
            try:
                good = np.array_equal(run(m, np.ones((3, 4), np.float32))[0], dense + 1) and name != "bad"
            except Refused:
                good = False
            except RuntimeError as e:
                good = name == "bad" and "do not fit" in str(e)
            check(f"sparse {kind} {name}", good)


def nested_sequences():
    tensor = h.make_tensor_type_proto(T.FLOAT, None)
    nested = h.make_sequence_type_proto(h.make_sequence_type_proto(tensor))
    m = model([h.make_node("Identity", ["x"], ["y"])], [h.make_value_info("x", nested)], [h.make_value_info("y", nested)])
    x = [[np.arange(3, dtype=np.float32)], [], [np.ones((2, 2), np.float32), np.zeros(1, np.float32)]]
    proto = onnx.SequenceProto(elem_type=onnx.SequenceProto.SEQUENCE)
    for items in x:
        proto.sequence_values.append(onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR, tensor_values=[onnx.numpy_helper.from_array(i) for i in items]))
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        onnx.save(m, tmp / "m.onnx")
        (tmp / "x.pb").write_bytes(proto.SerializeToString())
        subprocess.run([PROGRAM, "run", tmp / "m.onnx", "--input", f"x={tmp / 'x.pb'}", "--output-dir", tmp / "out"], check=True, capture_output=True)
        got = onnx.SequenceProto()
        got.ParseFromString((tmp / "out" / "y.pb").read_bytes())
    same = [[onnx.numpy_helper.to_array(t) for t in s.tensor_values] for s in got.sequence_values]
    check("nested", len(same) == 3 and all(len(a) == len(b) and all(np.array_equal(i, k) for i, k in zip(a, b)) for a, b in zip(x, same)))


PATTERNS = [r"a.c", r"[^\d]+", r"[\w.-]*x?", r"(?:ab|c)+?d", r"\W+", r"[a\]^-]+", r"\d{2,3}", r"[^\]a]", r"\^\$", r"\bab\b", r"a|b|", r"[\s\d]+", r"x*?", r".{2}"]
TEXTS = ["abc", "ac", "a\nc", "ababd", "cd", "12", "1234", "]", "^", "-a]", "é", "éa", "日本", "!!", "", "^$", "ab", "a.b-x", " 1\t", "xx", "ß"]
REFUSED = [r"(?i)a", r"\pL", r"(?=a)b", r"\1", r"[[:alpha:]]", r"é|[é]"]


def regexes():
    x = np.array(TEXTS, dtype=object)
    for p in PATTERNS + REFUSED:
        m = model([h.make_node("RegexFullMatch", ["x"], ["y"], pattern=p)], [value("x", [len(x)], T.STRING)], [value("y", None, T.BOOL)])
        try:
            y, = run(m, x)
            want = [re.fullmatch(p, s, re.ASCII) is not None for s in TEXTS]
            check(f"regex {p}: {[s for s, a, b in zip(TEXTS, y, want) if a != b]}", p not in REFUSED and list(y) == want)
        except Refused:
            check(f"regex {p}: refused", p in REFUSED)


def bench_json():
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "m.onnx"
        nodes = [h.make_node("Relu", ["x"], ["a"]), h.make_node("Neg", ["a"], ["b"]), h.make_node("Transpose", ["b"], ["c"], perm=[1, 0]),
                 h.make_node("Concat", ["c", "c"], ["y"], axis=0)]
        onnx.save(model(nodes, [value("x", [64, 128])], [value("y", [256, 64])]), path)
        p = subprocess.run([PROGRAM, "bench", path, "--kernels", "reference", "--runs", "3", "--json", "-"], check=True, capture_output=True)
        b = json.loads(p.stdout)
    ops = {o["op"]: o for o in b["ops"]}
    check("bench runs", b["runs"] == 3 and b["threads"] == 1 and 0 < b["min_ms"] <= b["median_ms"])
    check("bench ops", set(ops) == {"Relu", "Neg", "Transpose", "Concat"} and ops["Transpose"]["bytes"] == 0 and ops["Transpose"]["moves_data"])
    check("bench bytes", ops["Relu"]["bytes"] == ops["Neg"]["bytes"] == 2 * 4 * 64 * 128 and ops["Concat"]["copied_bytes"] == 2 * 4 * 64 * 128)
    # Neg is written over Relu's output; Concat's, twice as large, is alive beside it; the input is the caller's.
    check("bench memory", b["least_bytes"] == b["arena_bytes"] == 3 * 4 * 64 * 128 and b["peak_bytes"] == 4 * 4 * 64 * 128)


def bench_json_on_device():
    """On the emulated device: a recorded graph's own time, by the device's clock, is less than a run's; where a node is the CPU's there is no such graph."""
    emulated = Path(PROGRAM).parent / "cuda" / "relayout_emulated"
    if not emulated.exists():
        return
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "m.onnx"
        for op, there in (("Neg", True), ("LpPool", False)):
            attributes = {} if there else {"kernel_shape": [1]}
            nodes = [h.make_node("Relu", ["x"], ["a"]), h.make_node(op, ["a"], ["y"], **attributes)]
            onnx.save(model(nodes, [value("x", [1, 64, 128])], [value("y", [1, 64, 128])]), path)
            words = [emulated, "bench", path, "--device", "cuda", "--runs", "5"]
            b = json.loads(subprocess.run([*words, "--json", "-"], check=True, capture_output=True).stdout)
            text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            check(f"bench, a recorded graph: {op}", b["replayed"] == there == ("device_ms" in b) == ("as one recorded graph, by its own clock: median" in text))
            check(f"bench, the device's clock: {op}", 0 < b.get("device_ms", b["median_ms"]) <= b["median_ms"])


def powers():
    """Squares and cubes, as GELU's approximation has them, are products."""
    x = np.random.default_rng(0).standard_normal((3, 50), np.float32)
    with tempfile.TemporaryDirectory() as tmp:
        for e in (2, 3):
            m = model([h.make_node("Pow", ["x", "e"], ["y"])], [value("x", [3, 50])], [value("y", [3, 50])], initializer=[numpy_helper.from_array(np.float32(e), "e")])
            check(f"Pow {e}", np.allclose(run(m, x)[0], x ** e, rtol=1e-6))
            onnx.save(m, Path(tmp) / "m.onnx")
            if common.has_onednn(PROGRAM):
                check(f"Pow {e} by products", common.bench(PROGRAM, Path(tmp) / "m.onnx")["steps"][0]["kernel"] == "rows")


def far_below():
    """Softmax and its logarithm of rows with numbers whose powers are small, nothing, or none."""
    inf, nan = np.inf, np.nan
    x = np.array([[0, -inf, -80, -87, -88, -104, -200, 1], [-inf] * 8, [3, nan, 1, 2, 3, 4, 5, 6], [-200] * 8, [1e30, 0, -1e30, 5, 1, 2, 3, 4], [0, -15, -16.5, 0.1, -20, -30, -40, -50]],
                 np.float32)
    x = np.concatenate([x, np.repeat(x, 5, 1)], 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        below = x.astype(np.float64) - x.max(1, keepdims=True)
        want = {"Softmax": np.exp(below) / np.exp(below).sum(1, keepdims=True), "LogSoftmax": below - np.log(np.exp(below).sum(1, keepdims=True))}
    for op, w in want.items():
        y, = run(model([h.make_node(op, ["x"], ["y"], axis=1)], [value("x", x.shape)], [value("y", x.shape)]), x)
        check(f"{op} of what is far below", np.allclose(y, w, rtol=1e-5, atol=2e-38, equal_nan=True))


def kernel_of(m):
    """The kernel that ran a model's one node; "rows" where only the reference kernels can be had."""
    with tempfile.TemporaryDirectory() as tmp:
        onnx.save(m, Path(tmp) / "m.onnx")
        return common.bench(PROGRAM, Path(tmp) / "m.onnx")["steps"][0]["kernel"] if common.has_onednn(PROGRAM) else "rows"


def functions():
    """Functions of one number, by rows: of small and large ones, of what is none, and where their polynomials meet."""
    rng = np.random.default_rng(21)
    edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1, -1, 2.4142137, 0.41421357, 20, -20, 104, -104, 1e30, -1e30], np.float32)
    some = np.concatenate([rng.uniform(-5, 5, 3000), rng.uniform(-200, 200, 3000)]).astype(np.float32)
    mish = lambda x: x * np.tanh(np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0))
    elu = lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0) / b), x)
    by = {"Sin": np.sin, "Cos": np.cos, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan, "Mish": mish, "Celu": lambda x: elu(x, 0.7, 0.7),
          "Selu": lambda x: 1.5 * elu(x, 2, 1), "ThresholdedRelu": lambda x: np.where(x > 0.7, x, 0), "Softsign": lambda x: x / (1 + np.abs(x)), "Sign": np.sign}
    given = {"Celu": {"alpha": 0.7}, "Selu": {"alpha": 2.0, "gamma": 1.5}, "ThresholdedRelu": {"alpha": 0.7}}
    for op, f in by.items():
        for kind, x in (("some", some), ("any", np.concatenate([some, edges])), ("unit", rng.uniform(-1, 1, 3000).astype(np.float32)), ("large", (some * 4999).astype(np.float32))):
            m = model([h.make_node(op, ["x"], ["y"], **given.get(op, {}))], [value("x", x.shape)], [value("y", x.shape)], opset=22)
            with np.errstate(all="ignore"):
                want = f(x.astype(np.float64))
            check(f"{op} of {kind}", np.allclose(run(m, x)[0], want, rtol=1e-6, atol=4e-7, equal_nan=True))
        check(f"{op} by rows", kernel_of(m) == "rows")


def several():
    """Max, Min, Sum and Mean of some operands, which broadcast and lie in other orders, a NaN among them; of more than go in one walk."""
    rng = np.random.default_rng(22)
    by = {"Max": np.maximum, "Min": np.minimum, "Sum": np.add, "Mean": np.add}
    for k in range(24):
        n, dims = int(rng.integers(1, 6)) if k else 12, [int(d) for d in rng.integers(1, 9, 3)]
        shapes = [[d if rng.random() < 0.7 else 1 for d in dims][int(rng.integers(0, 3)) if rng.random() < 0.3 else 0:] for _ in range(n)]
        shapes[int(rng.integers(0, n))] = dims
        feeds = [rng.standard_normal(s[::-1]).astype(np.float32) for s in shapes]
        feeds[0].flat[0] = np.nan if k % 2 else feeds[0].flat[0]
        for op, f in by.items():
            m = model([*(h.make_node("Transpose", [f"x{i}"], [f"t{i}"]) for i in range(0, n, 2)), h.make_node(op, ["xt"[i % 2 == 0] + str(i) for i in range(n)], ["y"])],
                      [value(f"x{i}", x.shape if i % 2 == 0 else x.T.shape) for i, x in enumerate(feeds)], [value("y", dims)], opset=13)
            got, = run(m, *(x if i % 2 == 0 else np.ascontiguousarray(x.T) for i, x in enumerate(feeds)))
            want = feeds[0].T.astype(np.float64)
            for x in feeds[1:]:
                want = f(want, x.T)
            check(f"{op} of {shapes}", np.allclose(got, np.broadcast_to(want / (n if op == "Mean" else 1), dims), rtol=1e-5, atol=1e-6, equal_nan=True))
    for op in by:
        m = model([h.make_node(op, ["a", "b", "c"], ["y"])], [value("a", [5]), value("b", [4, 5]), value("c", [1])], [value("y", [4, 5])], opset=13)
        check(f"{op} by rows", kernel_of(m) == "rows")
    x, slope = rng.standard_normal((3, 4, 50)).astype(np.float32), rng.standard_normal((4, 1)).astype(np.float32)
    x[0, 0, :3] = np.nan, np.inf, -np.inf
    m = model([h.make_node("PRelu", ["x", "slope"], ["y"])], [value("x", x.shape), value("slope", slope.shape)], [value("y", x.shape)], opset=16)
    check("PRelu", np.array_equal(run(m, x, slope)[0], np.where(x < 0, x * slope, x), equal_nan=True))
    check("PRelu by rows", kernel_of(m) == "rows")


def extremes():
    """The first and the last place of the largest and least, in rows as they lie, through a Transpose and with gaps: ties, and what is no number, near and
    far from each other."""
    rng = np.random.default_rng(23)
    for n in (1, 3, 16, 17, 200, 1024, 1025, 5000):
        x = rng.integers(-3, 4, (5, 4, n)).astype(np.float32)
        x[1, :, rng.integers(0, n, 2)] = np.nan
        x[2, :, rng.integers(0, n, 2)] = 9
        x[3, :, n // 2] = -9
        nodes = [h.make_node("Transpose", ["x"], ["t"], perm=[2, 0, 1]), h.make_node("Slice", ["x", "one", "big", "axis"], ["s"])]
        want = []
        for op, f in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
            for last in (0, 1):
                for name, axis, part in (("x", 2, x), ("t", 0, x), ("s", -1, x[:, 1:])):
                    nodes.append(h.make_node(op, [name], [f"y{len(want)}"], axis=axis, keepdims=0, select_last_index=last))
                    want.append(n - 1 - f(part[..., ::-1], -1) if last else f(part, -1))
        m = model(nodes, [value("x", x.shape)], [value(f"y{k}", w.shape, T.INT64) for k, w in enumerate(want)],
                  initializer=[numpy_helper.from_array(np.array([v]), s) for s, v in (("one", 1), ("big", 9), ("axis", 1))])
        check(f"extremes of rows of {n}", all(np.array_equal(y, w) for y, w in zip(run(m, x), want, strict=True)))
        for op, f in (("ReduceMax", np.max), ("ReduceMin", np.min)):
            y, = run(model([h.make_node(op, ["x"], ["y"], axes=[2])], [value("x", x.shape)], [value("y", None)], opset=13), x)
            check(f"{op} of rows of {n}", np.array_equal(y, f(x, 2, keepdims=True), equal_nan=True))
    for op in ("ArgMax", "ArgMin", "ReduceMin", "ReduceL1", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "LpNormalization"):
        how = {"axes": [1]} if op.startswith("Reduce") else {"axis": 1}
        m = model([h.make_node(op, ["x"], ["y"], **how)], [value("x", [4, 30])], [value("y", None, T.INT64 if op.startswith("Arg") else T.FLOAT)], opset=13)
        check(f"{op} by rows", kernel_of(m) == "rows")


def gathers():
    """Gathers along each axis of tensors as they lie and of views of them, in pieces of a few bytes to some KiB; and by their own kernel."""
    for seed, dtype in enumerate((np.float32, np.int64, np.uint8, np.float16, np.complex64)):
        rng, nodes, inputs, feeds, want = np.random.default_rng(seed), [], [], [], []
        for k in range(30):
            dims = [int(d) for d in rng.integers(1, 7, rng.integers(1, 5))]
            if k % 10 == 0:
                dims[0], dims[-1] = 40, 50
            x, perm, axis = (rng.standard_normal(dims) * 50).astype(dtype), rng.permutation(len(dims)), int(rng.integers(0, len(dims)))
            n = dims[perm[axis]]
            index = rng.integers(-n, n, rng.integers(1, 4, rng.integers(0, 3))).astype([np.int64, np.int32][k % 2])
            inputs += [value(name, z.shape, h.np_dtype_to_tensor_dtype(z.dtype)) for name, z in ((f"x{k}", x), (f"i{k}", index))]
            nodes += [h.make_node("Transpose", [f"x{k}"], [f"t{k}"], perm=perm),
                      h.make_node("Gather", [f"t{k}", f"i{k}"], [f"y{k}"], axis=axis - (k % 3 == 0) * len(dims))]
            feeds += [x, index]
            want.append(np.take(x.transpose(perm), index, axis))
        m = model(nodes, inputs, [value(f"y{k}", None, h.np_dtype_to_tensor_dtype(x.dtype)) for k in range(len(want))])
        check(f"gathers of {x.dtype}", all(np.array_equal(y, w) for y, w in zip(run(m, *feeds), want, strict=True)))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for index in (np.zeros((3, 2, 0), np.int64), np.zeros((0, 2), np.int64), np.array([[[1, -1]]])):
        m = model([h.make_node("GatherND", ["x", "i"], ["y"])], [value("x", [2, 3]), value("i", index.shape, onnx.TensorProto.INT64)], [value("y", None)])
        want = np.array([x[tuple(index[k])] for k in np.ndindex(index.shape[:-1])], np.float32).reshape(index.shape[:-1] + x.shape[index.shape[-1]:])
        check(f"GatherND at {index.shape}", np.array_equal(run(m, x, index)[0], want))
    with tempfile.TemporaryDirectory() as tmp:
        m = model([h.make_node("Gather", ["x", "i"], ["y"], axis=1)], [value("x", [5, 7])], [value("y", [5, 2])],
                  initializer=[numpy_helper.from_array(np.array([3, -7]), "i")])
        onnx.save(m, Path(tmp) / "m.onnx")
        if common.has_onednn(PROGRAM):
            check("gathers by rows", common.bench(PROGRAM, Path(tmp) / "m.onnx")["steps"][0]["kernel"] == "rows")


def columns():
    """Softmax along each axis of tensors as they lie and of views of them, before and since opset 13, over its input and not."""
    rng = np.random.default_rng(8)
    for dims in [(3, 4, 5), (2, 196, 4), (1, 21, 30, 33), (2, 1, 7), (3, 20000, 2), (2, 3, 2, 5, 3)]:
        x = rng.standard_normal(dims).astype(np.float32) * 5
        perms = [tuple(range(len(dims))), *(tuple(rng.permutation(len(dims))) for _ in range(2))]
        for perm in perms:
            nodes, want = [h.make_node("Transpose", ["x"], ["t"], perm=perm), h.make_node("Neg", ["x"], ["m"]), h.make_node("Transpose", ["m"], ["v"], perm=perm)], []
            t = x.transpose(perm).astype(np.float64)
            for axis in range(len(dims)):
                nodes += [h.make_node("Softmax", ["t"], [f"s{axis}"], axis=axis), h.make_node("Softmax", ["v"], [f"n{axis}"], axis=axis - len(dims)),
                          h.make_node("Mul", [f"s{axis}", f"n{axis}"], [f"y{axis}"])]
                a, b = np.exp(t - t.max(axis, keepdims=True)), np.exp(t.min(axis, keepdims=True) - t)
                want.append(a / a.sum(axis, keepdims=True) * b / b.sum(axis, keepdims=True))
            m = model(nodes, [value("x", dims)], [value(f"y{k}", t.shape) for k in range(len(dims))])
            got = run(m, x)
            check(f"Softmax of {dims} as {perm}", all(np.allclose(g, w, rtol=1e-4, atol=1e-9) for g, w in zip(got, want, strict=True)))
    m = model([h.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), h.make_node("Softmax", ["t"], ["y"], axis=1)], [value("x", [3, 4, 5])], [value("y", [3, 5, 4])], opset=11)
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    e = np.exp(x.transpose(0, 2, 1))
    check("Softmax before opset 13", np.allclose(run(m, x)[0], e / e.sum((1, 2), keepdims=True), rtol=1e-5))


def reductions():
    """Sums, means, norms and extremes along any dims of views: those that are reduced lie together in memory, in parts, or with gaps."""
    rng = np.random.default_rng(11)
    by = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceL1": lambda x, **k: np.abs(x).sum(**k),
          "ReduceL2": lambda x, **k: np.sqrt((x * x).sum(**k)), "ReduceSumSquare": lambda x, **k: (x * x).sum(**k)}
    for k in range(40):
        dims = [int(d) for d in rng.integers(1, 9, rng.integers(2, 7))]
        x, perm = rng.standard_normal(dims).astype(np.float32), rng.permutation(len(dims))
        t, nodes, want = x.transpose(perm).astype(np.float64), [h.make_node("Transpose", ["x"], ["t"], perm=perm)], []
        init = []
        for i, (op, f) in enumerate(by.items()):
            axes, keeps = np.sort(rng.permutation(len(dims))[: rng.integers(1, len(dims) + 1)]), int(rng.integers(0, 2))
            init.append(numpy_helper.from_array(axes, f"a{i}"))
            nodes.append(h.make_node(op, ["t", f"a{i}"], [f"y{i}"], keepdims=keeps))
            want.append(f(t, axis=tuple(axes), keepdims=bool(keeps)))
        m = model(nodes, [value("x", dims)], [value(f"y{i}", w.shape) for i, w in enumerate(want)], initializer=init)
        check(f"reductions of {dims} as {perm}", all(np.allclose(y, w, rtol=1e-4, atol=1e-5) for y, w in zip(run(m, x), want, strict=True)))
    with tempfile.TemporaryDirectory() as tmp: # statistics of groups of channels, which lie last
        m = model([h.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 4, 1, 2]), h.make_node("ReduceMean", ["t", "a"], ["y"])], [value("x", [2, 5, 6, 4, 8])],
                  [value("y", [2, 4, 1, 1, 1])], initializer=[numpy_helper.from_array(np.array([2, 3, 4]), "a")])
        onnx.save(m, Path(tmp) / "m.onnx")
        x = rng.standard_normal((2, 5, 6, 4, 8)).astype(np.float32)
        check("means of groups", np.allclose(run(m, x)[0].ravel(), x.mean((1, 2, 4)).ravel(), atol=1e-6))
        if common.has_onednn(PROGRAM):
            check("means of groups by rows", "rows" in [s["kernel"] for s in common.bench(PROGRAM, Path(tmp) / "m.onnx")["steps"]])


def suppressed(boxes, scores, most, overlap, centered):
    """NonMaxSuppression, box by box."""
    boxes = boxes.astype(np.float32)
    with np.errstate(invalid="ignore"):
        if centered:
            corner = [np.stack([b[:, 1] - b[:, 3] / 2, b[:, 0] - b[:, 2] / 2, b[:, 1] + b[:, 3] / 2, b[:, 0] + b[:, 2] / 2], 1) for b in boxes]
        else:
            corner = [np.concatenate([np.minimum(b[:, :2], b[:, 2:]), np.maximum(b[:, :2], b[:, 2:])], 1) for b in boxes]
    out = []
    for i, b in enumerate(corner):
        area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        for k, score in enumerate(scores[i]):
            taken = []
            for at in np.argsort(-score, kind="stable"):
                if len(taken) == most:
                    break
                low, high = np.maximum(b[at, :2], b[taken, :2]), np.minimum(b[at, 2:], b[taken, 2:])
                both = np.where((high > low).all(1), np.maximum(high - low, 0).prod(1), 0)
                any_ = area[at] + area[taken] - both
                if not ((both > 0) & (any_ > 0) & (both > np.float32(overlap) * any_)).any():
                    taken.append(at)
            out += [(i, k, at) for at in taken]
    return np.array(out, np.int64).reshape(-1, 3)


def not_numbers():
    """The reference kernels find no maximum where there is one that is no number, as a reduction and as a pool of all: the one may become the other."""
    x = np.array([[[1, np.nan, 3], [4, 5, 6]]], np.float32)
    for node in (h.make_node("GlobalMaxPool", ["x"], ["y"]), h.make_node("ReduceMax", ["x"], ["y"], axes=[2])):
        m = model([node], [value("x", x.shape)], [value("y", [1, 2, 1])], opset=13)
        y, = RelayoutBackend.prepare(m, program=PROGRAM, limit=60, options=("--kernels", "reference")).run([x])
        check(f"{node.op_type} of what is no number: {y}", np.array_equal(y.ravel(), [np.nan, 6], equal_nan=True))


def suppression_model(boxes, scores, most, overlap, **attributes):
    init = [numpy_helper.from_array(np.array([most]), "n"), numpy_helper.from_array(np.array([overlap], np.float32), "o")]
    return model([h.make_node("NonMaxSuppression", ["b", "s", "n", "o"], ["y"], **attributes)], [value("b", boxes.shape), value("s", scores.shape)],
                 [value("y", ["k", 3], T.INT64)], initializer=init)


def suppression():
    """NonMaxSuppression of few and many boxes: side by side, far apart, in heaps; of both kinds; larger than all others, without an area."""
    rng = np.random.default_rng(9)
    for n, spread, size, centered in [(5, 10, 3, 0), (64, 10, 3, 0), (65, 10, 3, 1), (400, 50, 4, 0), (400, 1e5, 4, 1), (900, 30, 25, 0), (900, 1, 0, 0), (700, 3000, 2, 0)]:
        at = rng.integers(0, 8 * int(spread) + 1, (2, n, 2)) / 8
        side = rng.integers(0, 8 * size + 1, (2, n, 2)) / 8
        if n == 700: # one over all others
            at[:, 13], side[:, 13] = 0, 4000
        boxes = np.concatenate([at, side] if centered else [at + side * (rng.random((2, n, 1)) < 0.5), at + side * (rng.random((2, n, 1)) < 0.5)], 2).astype(np.float32)
        scores = rng.permutation(np.linspace(0, 1, 4 * n)).reshape(2, 2, n).astype(np.float32)
        for most, overlap in ((n, 0.4), (7, 0.2), (n, 0.0)):
            m = suppression_model(boxes, scores, most, overlap, center_point_box=centered)
            check(f"NonMaxSuppression of {n} boxes over {spread}, at most {most}, {overlap}", np.array_equal(run(m, boxes, scores)[0], suppressed(boxes, scores, most, overlap, centered)))
    boxes = np.tile(np.array([[0, 0, 1, 1], [0, 0, np.inf, 1], [np.nan, 0, 1, 1], [0, 0, 1, 1], [5, 5, 6, 6]], np.float32), (1, 40, 1))
    scores = np.linspace(1, 0, 200, dtype=np.float32).reshape(1, 1, 200)
    y, = run(suppression_model(boxes, scores, 200, 0.5), boxes, scores)
    check("NonMaxSuppression of boxes that have no size", {0, 4} <= set(y[:, 2]) and not {3, 5, 8, 9} & set(y[:, 2]))


def blocks():
    """ConvTranspose whose windows lie side by side, of more taps than own loops take otherwise; joined with what follows."""
    rng = np.random.default_rng(10)
    for c, m_, k, size in [(16, 1, 16, 4), (16, 3, 12, 5), (8, 2, 17, 3), (64, 40, 16, 2)]:
        x, w, b = (rng.standard_normal(d).astype(np.float32) for d in ((2, c, size, size), (c, m_, k, k), (m_,)))
        m = model([h.make_node("ConvTranspose", ["x", "w", "b"], ["t"], strides=[k, k]), h.make_node("Relu", ["t"], ["y"])], [value("x", x.shape)], [value("y", [2, m_, k * size, k * size])],
                  initializer=[numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
        want = np.einsum("ncij,cmuv->nmiujv", x, w).reshape(2, m_, k * size, k * size) + b[:, None, None]
        check(f"ConvTranspose {c} to {m_} by {k}", np.allclose(run(m, x)[0], np.maximum(want, 0), rtol=1e-4, atol=1e-4))


def emptied():
    """Slices of a dim that has nothing: from its end to its beginning, as exporters write a flip, and otherwise."""
    x = np.zeros((2, 0), np.float32)
    for start, end, step in ((-1, -2**31, -1), (-1, -3, -2), (2**31 - 1, -2**63, -1), (0, -1, -1), (-1, 5, 1), (0, 2**31, 3)):
        m = model([h.make_node("Slice", ["x", "start", "end", "axis", "step"], ["s"]), h.make_node("Neg", ["s"], ["y"])], [value("x", [2, "n"])], [value("y", [2, None])],
                  initializer=[numpy_helper.from_array(np.array([k]), name) for name, k in (("start", start), ("end", end), ("axis", 1), ("step", step))])
        check(f"Slice of nothing, {start}:{end}:{step}", run(m, x)[0].shape == (2, 0))


def backwards():
    """Products with something fused, of operands that a Slice turned round; oneDNN has no description of those."""
    rng = np.random.default_rng(4)
    x, z, b = (rng.standard_normal(d).astype(np.float32) for d in ((2, 6, 6), (2, 6, 6), (6,)))
    ends = [numpy_helper.from_array(np.array([k]), name) for name, k in (("start", -1), ("end", -2**31), ("axis", 2), ("step", -1))]
    turned = h.make_node("Slice", ["z", "start", "end", "axis", "step"], ["r"])
    for left, right, more in (("r", "x", "b"), ("x", "r", "b"), ("r", "b6", "b"), ("x", "z", "r")):
        m = model([turned, h.make_node("MatMul", [left, right], ["p"]), h.make_node("Add", ["p", more], ["y"])], [value("x", x.shape), value("z", z.shape)], [value("y", x.shape)],
                  initializer=[*ends, numpy_helper.from_array(b, "b"), numpy_helper.from_array(z[0], "b6")])
        of = {"x": x, "z": z, "r": z[:, :, ::-1], "b": b, "b6": z[0]}
        check(f"{left} times {right}, and {more}", np.allclose(run(m, x, z)[0], of[left] @ of[right] + of[more], atol=1e-4))


def merged_scores():
    """Attention whose scores are seen with batch and heads in one dim, and whose result is read with the heads behind the rows."""
    x = np.random.default_rng(5).standard_normal((2, 3, 4, 5)).astype(np.float32)
    mask = np.arange(16, dtype=np.float32).reshape(4, 4) / 8
    node = h.make_node
    m = model([node("Transpose", ["x"], ["k"], perm=[0, 1, 3, 2]), node("MatMul", ["x", "k"], ["s"]), node("Reshape", ["s", "one"], ["t"]), node("Add", ["t", "mask"], ["u"]),
               node("Reshape", ["u", "two"], ["v"]), node("Softmax", ["v"], ["p"]), node("MatMul", ["p", "x"], ["o"]), node("Transpose", ["o"], ["q"], perm=[0, 2, 1, 3]),
               node("Reshape", ["q", "rows"], ["y"])], [value("x", x.shape)], [value("y", [2, 4, 15])],
              initializer=[numpy_helper.from_array(np.array(d), name) for name, d in (("one", [6, 4, 4]), ("two", [2, 3, 4, 4]), ("rows", [2, 4, 15]))] + [numpy_helper.from_array(mask, "mask")])
    p = np.exp(x @ x.transpose(0, 1, 3, 2) + mask)
    want = (p / p.sum(-1, keepdims=True) @ x).transpose(0, 2, 1, 3).reshape(2, 4, 15)
    check("attention of scores whose heads are merged", np.allclose(run(m, x)[0], want, atol=1e-4))


def odd_padding():
    """What is odd of a ConvTranspose's padding is at the end for SAME_UPPER, else at the beginning, in all opsets."""
    x, w = np.array([[[1, 10]]], np.float32), np.array([[[1, 2]]], np.float32)
    for opset in (7, 10, 11, 22):
        for attrs, want in (({"auto_pad": "SAME_UPPER"}, [1, 12]), ({"auto_pad": "SAME_LOWER"}, [12, 20]), ({"output_shape": [2]}, [12, 20])):
            m = model([h.make_node("ConvTranspose", ["x", "w"], ["y"], **attrs)], [value("x", x.shape), value("w", w.shape)], [value("y", [1, 1, 2])], opset=opset)
            check(f"ConvTranspose-{opset} {attrs}", run(m, x, w)[0].ravel().tolist() == want)


def folds():
    """A convolution is joined with the DepthToSpace behind it, not with a SpaceToDepth."""
    x, w = np.random.default_rng(2).uniform(-1, 1, (1, 16, 8, 12)).astype(np.float32), np.random.default_rng(3).uniform(-1, 1, (16, 16, 3, 3)).astype(np.float32)
    for op, dims in (("DepthToSpace", [1, 4, 16, 24]), ("SpaceToDepth", [1, 64, 4, 6])):
        m = model([h.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), h.make_node(op, ["c"], ["y"], blocksize=2)], [value("x", x.shape)],
                  [value("y", dims)], initializer=[numpy_helper.from_array(w, "w")])
        check(f"Conv, then {op}", np.allclose(run(m, x)[0], ReferenceEvaluator(m).run(None, {"x": x})[0], atol=1e-4))


def units():
    """What is moved between a DequantizeLinear and a QuantizeLinear of one scale moves bytes, and not where the scales differ or somebody reads the floats."""
    x = np.random.default_rng(4).uniform(-70, 70, (2, 6, 4)).astype(np.float32)
    for what, behind, outputs, left in (("one scale", "s", ["y"], 2), ("two scales", "t", ["y"], 4), ("an output between", "s", ["y", "c"], 4)):
        nodes = [h.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]), h.make_node("DequantizeLinear", ["a", "s", "z"], ["b"]),
                 h.make_node("Transpose", ["b"], ["c"], perm=[0, 2, 1]), h.make_node("QuantizeLinear", ["c", behind, "z"], ["d"]),
                 h.make_node("DequantizeLinear", ["d", behind, "z"], ["y"])]
        m = model(nodes, [value("x", x.shape)], [value(o, [2, 4, 6]) for o in outputs], initializer=[
            numpy_helper.from_array(np.float32(0.3), "s"), numpy_helper.from_array(np.float32(0.7), "t"), numpy_helper.from_array(np.int8(5), "z")])
        check(f"units, {what}", all(np.array_equal(a, b) for a, b in zip(run(m, x), ReferenceEvaluator(m).run(None, {"x": x}), strict=True)))
        with tempfile.TemporaryDirectory() as tmp:
            path = Path(tmp) / "m.onnx"
            onnx.save(m, path)
            p = subprocess.run([PROGRAM, "bench", path, "--runs", "1", "--json", "-"], check=True, capture_output=True)
        scaled = sum(o["nodes"] for o in json.loads(p.stdout)["ops"] if "Linear" in o["op"])
        check(f"units, {what}: {scaled} nodes that scale", not common.has_onednn(PROGRAM) or scaled == left)


def memory():
    """Inputs, the plan's arena, and what one kernel had for itself are all that a run holds; the arena is next to the least."""
    for path in sorted((common.ROOT / "models").glob("*.onnx")):
        for kernels in common.KERNELS:
            p = subprocess.run([PROGRAM, "bench", path, "--kernels", kernels, "--runs", "2", "--json", "-"], check=True, capture_output=True)
            b = json.loads(p.stdout)
            check(f"memory of {path.stem}, {kernels}: {b}", 0 < b["least_bytes"] <= b["arena_bytes"] <= 1.1 * b["least_bytes"] and
                  b["peak_bytes"] <= b["input_bytes"] + b["arena_bytes"] + b["work_bytes"] + b["kept_bytes"] + b["delivered_bytes"])


def heads():
    """Attention's split into heads, K transposed and the merge copy nothing, by kernels that are not oneDNN's plain loops."""
    if not common.has_onednn(PROGRAM):
        return
    weights = [onnx.numpy_helper.from_array(np.random.default_rng(i).standard_normal((24, 24), np.float32), f"w{i}") for i in range(3)]
    shapes = [onnx.numpy_helper.from_array(np.array(s, np.int64), n) for n, s in (("split", [0, 0, 3, 8]), ("merge", [0, 0, 24]))]
    nodes = []
    for i in range(3):
        nodes += [h.make_node("MatMul", ["x", f"w{i}"], [f"m{i}"]), h.make_node("Reshape", [f"m{i}", "split"], [f"r{i}"]),
                  h.make_node("Transpose", [f"r{i}"], [f"t{i}"], perm=[0, 2, 3, 1] if i == 1 else [0, 2, 1, 3])]
    nodes += [h.make_node("MatMul", ["t0", "t1"], ["s"]), h.make_node("Softmax", ["s"], ["p"], axis=-1), h.make_node("MatMul", ["p", "t2"], ["o"]),
              h.make_node("Transpose", ["o"], ["u"], perm=[0, 2, 1, 3]), h.make_node("Reshape", ["u", "merge"], ["y"])]
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "m.onnx"
        onnx.save(model(nodes, [value("x", [2, 16, 24])], [value("y", [2, 16, 24])], initializer=weights + shapes), path)
        p = subprocess.run([PROGRAM, "bench", path, "--runs", "2", "--json", "-"], check=True, capture_output=True)
    b = json.loads(p.stdout)
    check(f"heads: {b['ops']}", b["copied_bytes"] == 0 and all("ref" not in o["kernel"] for o in b["ops"] if o["op"] == "MatMul"))


def files(*words, threads="1"):
    """What `relayout run` writes, by name."""
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([PROGRAM, "run", *words, "--threads", threads, "--output-dir", tmp], check=True, capture_output=True)
        return {p.name: p.read_bytes() for p in Path(tmp).iterdir()}


def output_files():
    names = {"a/b": "a%2Fb.npy", ".x": "%2Ex.npy", "100%": "100%25.npy", "..": "%2E..npy", "é:0": "%C3%A9%3A0.npy", "plain_1.y": "plain_1.y.npy"}
    nodes = [h.make_node("Relu", ["x"], [n]) for n in names] + [
        h.make_node("Cast", ["x"], ["bf"], to=T.BFLOAT16), h.make_node("SequenceConstruct", ["x", "x"], ["list"]), h.make_node("Neg", ["a/b"], ["mid"]),
        h.make_node("Abs", ["mid"], ["end"])]
    outputs = [value(n, [3]) for n in names] + [value("bf", [3], T.BFLOAT16), value("end", [3]),
                                                h.make_tensor_sequence_value_info("list", T.FLOAT, None)]
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "m.onnx"
        onnx.save(model(nodes, [value("x", [3])], outputs), path)
        got, dumped = files(path), files(path, "--dump", "all")
    check(f"names {sorted(got)}", set(got) == {*names.values(), "bf.pb", "list.pb", "end.npy"})
    tensor, items = T(), onnx.SequenceProto()
    tensor.ParseFromString(got["bf.pb"])
    items.ParseFromString(got["list.pb"])
    check("bfloat16 as .pb", tensor.data_type == T.BFLOAT16 and list(tensor.dims) == [3])
    check("a sequence as .pb", len(items.tensor_values) == 2 and onnx.numpy_helper.to_array(items.tensor_values[1]).shape == (3,))
    check(f"dump all {sorted(dumped)}", set(dumped) == {*got, "mid.npy", "x.npy"} and all(dumped[n] == got[n] for n in got))


def same_bytes():
    for path in sorted((common.ROOT / "models").glob("*.onnx")):
        for kernels in common.KERNELS:
            for threads in ("1", "2", "3"):
                first = files(path, "--kernels", kernels, threads=threads)
                check(f"{path.stem}, {kernels}, {threads} threads: the same bytes again", first == files(path, "--kernels", kernels, threads=threads))


def verify():
    """Status 6, and the first output and element that differ; a small element may differ as a usual one may."""
    change = np.zeros((2, 3), np.float32)
    change[1, 2] = 1e-3
    large = 100 - 1e5 * change
    with tempfile.TemporaryDirectory() as tmp:
        tmp, said = Path(tmp), []
        for name, by in (("a", change * 0), ("b", change), ("large", large), ("other", large + change)):
            nodes = [h.make_node("Relu", ["x"], ["same"]), h.make_node("Add", ["same", "w"], ["y"])]
            onnx.save(model(nodes, [value("x", [2, 3])], [value("same", [2, 3]), value("y", [2, 3])],
                            initializer=[onnx.numpy_helper.from_array(by, "w")]), tmp / f"{name}.onnx")
        for words in (["a", "a"], ["a", "b"], ["a", "b", "--atol", "0.01"], ["large", "other"], ["large", "other", "--atol", "1e-6"]):
            p = subprocess.run([PROGRAM, "verify", *(tmp / f"{w}.onnx" for w in words[:2]), *words[2:]], capture_output=True, text=True)
            said.append((p.returncode, p.stderr))
    check(f"verify {said}", [s for s, _ in said] == [0, 6, 0, 0, 6] and "output 'y': element [1,2] is " in said[1][1])


def progress_line():
    """Only for what takes longer than a second, only on a terminal, and gone in the end."""
    with tempfile.TemporaryDirectory() as tmp:
        path, seconds, n = Path(tmp) / "m.onnx", 0, 40
        while seconds < 2:  # as many products as take long enough here
            n *= 2
            nodes = [h.make_node("MatMul", [f"v{i}" if i else "x", "x"], [f"v{i + 1}"]) for i in range(n)]
            onnx.save(model(nodes, [value("x", [512, 512])], [value(f"v{n}", [512, 512])]), path)
            start = time.monotonic()
            silent = subprocess.run([PROGRAM, "run", path, "--kernels", "reference"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
            seconds = time.monotonic() - start
        text = on_terminal(PROGRAM, "run", path, "--kernels", "reference")
    check("no progress where stderr is no terminal", not silent.stderr and b"\r" not in silent.stdout)
    check(f"progress on a terminal {text[-80:]}", re.search(rb"node \d+ of \d+", text) and text.rsplit(b"\r\x1b[K", 1)[1].startswith(b"v%d f32" % n))


def main():
    global PROGRAM
    PROGRAM = common.program(common.arguments(__doc__.splitlines()[0]).parse_args())
    for f in (random_ops, old_dropout, scans, written_over, tiny_rows, loop_without_runs, gemm, sparse, nested_sequences, regexes, bench_json, bench_json_on_device, powers, far_below, functions, several, extremes, gathers, columns, reductions, not_numbers, suppression, blocks, emptied, backwards, merged_scores, odd_padding, folds, units, memory, heads, output_files,
              same_bytes, verify, progress_line):
        f()
    return check.closing()


if __name__ == "__main__":
    sys.exit(main())
