#!/usr/bin/env python3
"""Targets: the table and its files, products with flags, ops that a target runs in orders of its own, and the objective time.

  test_targets.py --count 100      random products and random models for each part

Checked: a printed target reads as the same target; a wrong file is refused with its line; FusedMatMul, QLinearConv and NhwcMaxPool
as relayout writes them give what the original gives in onnxruntime; an op of a user's own target gives it in the reference
evaluator; with --objective time nothing takes less time by the table, and where nothing is charged no other objective's result; both checkers
charge what the program does.
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import common
import graphgen


def run(prog, *args):
    return subprocess.run([prog, *map(str, args)], capture_output=True, text=True, timeout=120)


def optimize(prog, src, dst, *args):
    p = run(prog, "optimize", src, "-o", dst, "--json", "-", *args)
    assert p.returncode == 0, p.stderr
    return json.loads(p.stdout)


def model_of(nodes, inputs, outputs, inits=(), opset=17):
    info = lambda x: h.make_tensor_value_info(*x)
    return h.make_model(h.make_graph(nodes, "g", [info(x) for x in inputs], [info(x) for x in outputs], list(inits)),
                        opset_imports=[h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in {n.domain for n in nodes} - {""}], ir_version=8)


# ---------------------------------------------------------------------------------------------------- the table

def same_text(prog, tmp):
    """Each target, printed, is a file that prints the same."""
    for part in run(prog, "targets").stdout.split("\n\n"):
        path = tmp / "one.def"
        path.write_text(part)
        again = run(prog, "targets", "--target", path)
        name = part.split(",")[0].removeprefix("TARGET( ")
        if f"\n| `{name}`" not in (common.ROOT / "docs" / "targets.md").read_text():
            yield name, "is not in docs/targets.md"
        yield name, "" if again.stdout.strip() == part.strip() else again.stdout + again.stderr


GOOD = 'TARGET( a, "x" )\n'
REFUSED = [  # a file, the line, part of the message
    ("", 1, "no TARGET stands here"),
    ("/* no end\n\n", 1, "no end"),
    (GOOD + 'TARGET( a, "y" )', 2, "stands twice"),
    (GOOD + "LIKE( a, nothing )", 2, "no target 'nothing' stands before"),
    ("CHARGE( a, CONCAT_LAST, 1 )", 1, "stands behind TARGET( a"),
    (GOOD + "\nCHARGE( b, CONCAT_LAST, 1 )", 3, "stands behind TARGET( b"),
    (GOOD + "CHARGE( a, CONCAT_FIRST, 1 )", 2, "no form 'CONCAT_FIRST'"),
    (GOOD + "CHARGE( a, CONCAT_LAST, -1 )", 2, "'-1' is no number"),
    (GOOD + "CHARGE( a, CONCAT_LAST, 1.5 )", 2, "is no number"),
    (GOOD + "CHARGE( a, CONCAT_LAST, 99999999999999999999 )", 2, "is no number"),
    (GOOD + "CHARGE( a, CONCAT_LAST )", 2, "has 2 parts, and takes 3"),
    (GOOD + "CHARGE( a, CONCAT_LAST, 1, 2, 3, 4 )", 2, "too many parts"),
    (GOOD + "MOVE( a, RATE, 0 )", 2, "at least 1"),
    (GOOD + "MOVE( a, SPEED, 1 )", 2, "no 'SPEED'"),
    ('TARGET( "a b", "" )', 1, "'a b' is no name"),
    (GOOD + 'FORM( a, FUSED_MATMUL, "f33" )', 2, "'f33' is no element type"),
    (GOOD + 'FORM( a, FUSED_MATMUL, "" )', 2, "no element type"),
    (GOOD + 'FORM( a, OTHER, "f32" )', 2, "no 'OTHER'"),
    (GOOD + 'RUN( a, Convolve, nhwc, "f32", "b::C" )', 2, "no op 'Convolve'"),
    (GOOD + 'RUN( a, Relu, nhwc, "f32", "b::C" )', 2, "takes others by itself"),
    (GOOD + 'RUN( a, Conv, nhwd, "f32", "b::C" )', 2, "is no order"),
    (GOOD + 'RUN( a, Conv, abcdefghijk, "f32", "b::C" )', 2, "is no order of 1 to 6"),
    (GOOD + 'RUN( a, Conv, nhwc, "f32", "b::C x" )', 2, "domain::Type"),
    (GOOD + 'RUN( a, Conv, nhwc, "f32", "b C" )', 2, "domain::Type"),
    (GOOD + 'RUN( a, Conv, nhwc, "f32", "b::C x=--" )', 2, "domain::Type"),
    (GOOD + 'RUN( a, Conv, nhwc, "f32", "::C" )', 2, "domain::Type"),
    (GOOD + "WALK( a, 1 )", 2, "no row is called 'WALK'"),
    (GOOD + "CHARGE a", 2, "comes ("),
    (GOOD + "CHARGE( a; b )", 2, ", or )"),
    (GOOD + "CHARGE( a,\n", 3, "ends in a row"),
    (GOOD + "CHARGE( ?", 2, "'?' is no name"),
    (GOOD + 'TARGET( b, "no end\n)', 2, "this text has no end"),
]


def refused(prog, tmp):
    path = tmp / "bad.def"
    for text, line, message in REFUSED:
        path.write_text(text)
        p = run(prog, "targets", "--target", path)
        ok = p.returncode == 2 and p.stderr.startswith(f"relayout: {path}:{line}: ") and message in p.stderr and p.stderr.count("\n") == 1
        yield f"refused: {message}", "" if ok else f"status {p.returncode}: {p.stderr}"
    p = run(prog, "targets", "--target", tmp / "missing.def")
    yield "missing file", "" if p.returncode == 3 and "missing.def" in p.stderr else p.stderr
    p = run(prog, "optimize", tmp / "in.onnx", "-o", tmp / "out.onnx", "--target", "ortt")
    yield "unknown name", "" if p.returncode == 2 and "no target 'ortt'" in p.stderr and "ort-cuda" in p.stderr else p.stderr


# ---------------------------------------------------------------------------------------------------- orders of its own

class NhwcConv(OpRun):
    op_domain = "acme"

    def _run(self, x, w, *b, **attrs):
        attrs = {k: v for k, v in attrs.items() if v is not None}
        names = ["x", "w", "b"][:2 + len(b)]
        node = h.make_node("Conv", names, ["y"], **attrs)
        arrays = dict(zip(names, [np.ascontiguousarray(x.transpose(0, 3, 1, 2)), w, *b]))
        m = model_of([node], [(k, T.FLOAT, v.shape) for k, v in arrays.items()], [("y", T.FLOAT, None)])
        return (np.ascontiguousarray(common.run_ort(m.SerializeToString(), arrays)[0].transpose(0, 2, 3, 1)),)


ACME = """/* Runs Conv with the channels last; moving data is cheap. */
TARGET( acme, "an accelerator" )
LIKE( acme, generic )
MOVE( acme, RATE, 400000 )
RUN( acme, Conv, nhwc, "f32", "acme::NhwcConv" )
"""


def own_ops(prog, tmp):
    path = tmp / "acme.def"
    path.write_text(ACME)
    src, dst = common.ROOT / "models" / "channels_last_cnn.onnx", tmp / "out.onnx"
    report = optimize(prog, src, dst, "--target", path)
    feeds = common.random_inputs(onnx.load(src), 0, {"batch": 2})
    attrs = dict(pads=None, strides=None, group=None, dilations=None, kernel_shape=None, auto_pad=None)
    NhwcConv._run.__defaults__ = None
    want, _ = common.run(src, feeds)
    model = onnx.load(dst)
    got = ReferenceEvaluator(model, new_ops=[NhwcConv]).run(None, feeds)
    d = common.compare(want, got)
    kinds = {(n.domain, n.op_type) for n in model.graph.node}
    yield "Conv in NHWC", (report["counts"]["after"]["moving"] and "Transposes left") or (("acme", "NhwcConv") not in kinds and "no NhwcConv") or d.why
    hints = {v.name for v in model.graph.value_info} | {o.name for o in model.graph.output}
    bare = [n.output[0] for n in model.graph.node if n.domain == "acme" and n.output[0] not in hints]
    yield "types of own ops", f"none for {bare[:3]}" if bare else ""


def quantized_model(r, t, n):
    """QLinearConv, MaxPool, QLinearConv with the channels last around."""
    k = lambda x, name: numpy_helper.from_array(np.array(x), name)
    inits = [k(r.integers(-90, 90, s).astype(np.int8), name) for name, s in (("w", (6, 4, 3, 3)), ("v", (8, 3, 1, 1)))]
    inits += [k(np.float32(.02), "s"), k(n(3), "z"), k(np.int8(0), "zw"), k(np.float32(.7), "sy"), k(np.arange(6, dtype=np.int32), "b")]
    nodes = [h.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
             h.make_node("QLinearConv", ["t", "s", "z", "w", "s", "zw", "sy", "z", "b"], ["c"], pads=[1, 0, 1, 1], strides=[2, 1]),
             h.make_node("MaxPool", ["c"], ["p"], kernel_shape=[3, 2], pads=[1, 0, 1, 1], ceil_mode=1, storage_order=0),
             h.make_node("QLinearConv", ["p", "s", "z", "v", "s", "zw", "sy", "z"], ["e"], group=2),
             h.make_node("Transpose", ["e"], ["y"], perm=[0, 2, 3, 1])]
    return model_of(nodes, [("x", t, [2, 9, 8, 4])], [("y", t, [2, None, None, 8])], inits)


def quantized(prog, tmp):
    """None of the Transposes is left, and no bit changes."""
    r = np.random.default_rng(0)
    for t, n in ((T.UINT8, np.uint8), (T.INT8, np.int8)):
        src, dst = tmp / "q.onnx", tmp / "out.onnx"
        onnx.save(quantized_model(r, t, n), src)
        report = optimize(prog, src, dst, "--target", "ort")
        feeds = {"x": r.integers(0, 100, (2, 9, 8, 4)).astype(n)}
        exact = np.array_equal(common.run_ort(src, feeds)[0], common.run_ort(dst, feeds)[0])
        left = report["counts"]["after"]["moving"]
        yield f"quantized {np.dtype(n)}", f"{left} Transposes left" if left else "" if exact else "outputs differ"


# ---------------------------------------------------------------------------------------------------- products

def product(r):
    """A MatMul of random operands between random Transposes, and for a float16, float64 or float32; or a product of integers."""
    return between_transposes(r, r.choice(["MatMul", "MatMul", "MatMulInteger", "QLinearMatMul", "MatMulIntegerToFloat"]))


def integers(r, op, b_dims, inits):
    """The node, of types of A and B that onnxruntime has, and its result as floats."""
    a, b = r.choice([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)] + [(np.int8, np.uint8)] * (op == "MatMulInteger"))
    each = len(b_dims) == 2 and r.random() < 0.3  # a number for each column of B

    def number(t, like=()):
        x = r.randint(1, 5) if t is not np.float32 else r.choice([0.25, 0.5, 1])
        inits.append(numpy_helper.from_array(np.full(like, x, t), f"number{len(inits)}"))
        return inits[-1].name

    one = r.choice([(), (1,)])
    of_b = (b_dims[-1],) if each else one
    if op == "MatMulInteger":
        zeros = r.choice([[], [number(a, one)], [number(a), number(b, of_b)], ["", number(b, of_b)]])
        node = h.make_node(op, ["at", "bt", *zeros], ["i"])
    elif op == "QLinearMatMul":
        node = h.make_node(op, ["at", number(np.float32, one), number(a, one), "bt", number(np.float32, of_b), number(b, of_b), number(np.float32), number(a)], ["i"])
    else:
        zeros = [number(a), number(b, of_b)] if r.random() < 0.7 else []
        node = h.make_node(op, ["at", "bt", number(np.float32), number(np.float32, of_b), *zeros], ["i"], domain="com.microsoft")
    return {"a": a, "b": b}, [node, h.make_node("Cast", ["i"], ["m"], to=T.FLOAT)]


def between_transposes(r, op):
    t, n = r.choice([(T.FLOAT, np.float32), (T.DOUBLE, np.float64), (T.FLOAT16, np.float16)]) if op == "MatMul" else (T.FLOAT, np.float32)
    batch = [r.randint(1, 4) for _ in range(r.randint(0, 2))]
    m, k, c = (r.randint(1, 5) for _ in range(3))
    a, b = [*batch, m, k], [*batch[r.randint(0, len(batch)):], k, c]
    if r.random() < 0.2:
        a = a[len(batch):] if len(b) == len(batch) + 2 else a
    nodes, inputs, inits, arrays = [], [], [], np.random.default_rng(r.randint(0, 1 << 30))
    types, made = ({"a": n, "b": n}, [h.make_node("MatMul", ["at", "bt"], ["m"])]) if op == "MatMul" else integers(r, op, b, inits)
    for name, shape in (("a", a), ("b", b)):
        perm = r.sample(range(len(shape)), len(shape))
        stored = [shape[p] for p in perm]
        nodes.append(h.make_node("Transpose", [name], [name + "t"], perm=[perm.index(i) for i in range(len(shape))]))
        if name == "b" and r.random() < 0.3:
            inits.append(numpy_helper.from_array((arrays.standard_normal(stored) * (1 if op == "MatMul" else 3)).astype(types[name]), name))
        else:
            inputs.append((name, h.np_dtype_to_tensor_dtype(np.dtype(types[name])), stored))
    rank = max(len(a), len(b))
    nodes += [*made, h.make_node("Neg", ["m"], ["n"]),
              h.make_node("Transpose", ["n"], ["y"], perm=r.sample(range(rank), rank))]
    return model_of(nodes, inputs, [("y", t, [None] * rank)], inits)


def one_product(job):
    seed, prog = job
    r = random.Random(seed)
    model, target = product(r), r.choice(["fused", "ort", "onnx"])
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src, dst = Path(tmp) / "in.onnx", Path(tmp) / "out.onnx"
        onnx.save(model, src)
        feeds = common.random_inputs(model, seed)
        optimize(prog, src, dst, "--target", target)
        try:
            d = common.compare(common.run_ort(src, feeds), common.run_ort(dst, feeds))
            after = onnx.load(dst)
            return seed, "" if d.ok else f"{target}: {d.why}", sum(n.op_type == "FusedMatMul" for n in after.graph.node)
        except Exception as e:
            return seed, f"{target}: {e!s:.200}", 0


# ---------------------------------------------------------------------------------------------------- the objective time

def one_time(job):
    """By the table no other result takes less time than that of --objective time. (Where forms are charged this holds of the
    problem, not of results read again: a weight that stands on the left in a file is the file's own choice and costs nothing.)"""
    seed, prog = job
    target = ["onnx", "generic", "fused", "ort", "onnx", "openvino"][seed % 6]
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src, dst, other = (Path(tmp) / x for x in ("in.onnx", "out.onnx", "other.onnx"))
        onnx.save(graphgen.make(seed).proto, src)
        report = optimize(prog, src, dst, "--target", target, "--objective", "time")
        t = report.get("time_ns")
        if not t:
            return seed, None, 0
        if report["conversions"]["proof"] == "optimal" and t["after"] != t["lower_bound"]:
            return seed, f"{target}: proved, and {t}", 0
        for objective in ("nodes", "bytes") if target in ("onnx", "fused") else ():
            optimize(prog, src, other, "--target", target, "--objective", objective)
            takes = optimize(prog, other, dst, "--target", target, "--objective", "time").get("time_ns", {"before": 0})["before"]
            if takes < t["after"]:
                return seed, f"{target}: time {t}, and the result for {objective} takes {takes}", 0
        return seed, "" if t["lower_bound"] <= t["after"] <= t["before"] else str(t), t["after"] < t["before"]


# ---------------------------------------------------------------------------------------------------- charges

def charges(prog, tmp):
    """Both checkers charge the graphs of tests/text/target-generic what the program does."""
    for path in sorted((common.ROOT / "tests" / "text" / "target-generic").glob("*.rlt")):
        for i, case in enumerate(path.read_text().split("====\n")):
            graph, model, out, proof = tmp / "graph.rlt", tmp / "graph.onnx", tmp / "out.onnx", tmp / "out.proof"
            graph.write_text(case[case.index("\ngraph "):case.index("----")])
            run(prog, "optimize", graph, "-o", model, "-q", "--disable", "normalize,fold,legal,dce")
            run(prog, "optimize", model, "-o", out, "-q", "--proof", proof)
            first = run(prog, "check-proof", proof, model, out)
            second = run(sys.executable, common.ROOT / "scripts" / "check_proof.py", proof, model, out)
            yield f"{path.stem} {i}", " ".join(r.stdout + r.stderr for r in (first, second) if r.returncode)


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    prog = common.program(args)
    npass = nfail = nskip = 0
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        tmp = Path(tmp)
        for part in (same_text, refused, own_ops, quantized, charges):
            for name, why in part(prog, tmp):
                print(f"{name}: {why}") if why else None
                npass, nfail = npass + (not why), nfail + bool(why)
    for job, name in ((one_product, "products with flags"), (one_time, "models made quicker")):
        found = 0
        for seed, why, n in common.pooled(job, ((args.seed + k, prog) for k in range(args.count)), args.jobs, ordered=True):
            print(f"{job.__name__} {seed}: {why}") if why else None
            npass, nfail, nskip, found = npass + (why == ""), nfail + bool(why), nskip + (why is None), found + n
        print(f"{name}: {found} of {args.count}")
        nfail += found == 0
    return common.closing(npass, nfail, nskip)


if __name__ == "__main__":
    sys.exit(main())
