#!/usr/bin/env python3
"""Inputs and outputs in other orders: relayout optimize --input-layout, --output-layout.

  test_interface.py --count 300 --seed 0      hand-made models; random ones with random orders, given and free; and, for a
                                              quarter as many, one free port against each of its orders

Of every result: inputs fed in the new order give the outputs of the original in their new order; the declared shapes are the
original's, permuted, symbolic sizes by name; what the caller converts is counted in `handed_to_caller`; the conversions that
are left are at most those of the model with its own interface plus one for each port that was given an order.
"""
import itertools
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

import common
import graphgen
import test_random

LETTERS = "abcdefghijklmnop"


# ---------------------------------------------------------------------------------------------------- one run

def dims(value):
    """Declared sizes and names; None: unknown rank."""
    t = value.type.tensor_type
    return [d.dim_param or d.dim_value for d in t.shape.dim] if value.type.HasField("tensor_type") and t.HasField("shape") else None


def optimize(prog, src, dst, ins, outs, target):
    """ins, outs: name -> order. (status, report, message)"""
    args = [f"--input-layout={k}={v}" for k, v in ins.items()] + [f"--output-layout={k}={v}" for k, v in outs.items()]
    p = subprocess.run([prog, "optimize", src, "-o", dst, "--target", target, "--json", "-", *args], capture_output=True, text=True, timeout=120)
    return p.returncode, json.loads(p.stdout) if p.returncode == 0 else None, p.stderr.strip().splitlines()[-1] if p.stderr else ""


def unproved(prog, src, dst, ins, outs, target, report):
    """Why the certificate, if there is one, does not hold of the model with the interface that the report has."""
    layout = lambda kind, name, wanted: wanted if wanted != "free" else next(x["layout"] for x in report["interface"] if x.get(kind) == name)
    words = lambda chosen: [f"--{kind}-layout={k}={chosen(kind, k, v)}" for kind, of in (("input", ins), ("output", outs)) for k, v in of.items()]
    proof = dst.with_suffix(".proof")
    if common.relayout(prog, "optimize", src, "-o", dst, "-q", "--target", target, "--proof", proof, *words(lambda kind, k, v: v)).status:
        return ""  # not proved
    r = common.relayout(prog, "check-proof", proof, src, dst, "--target", target, *words(layout))
    return r.message if r.status else ""


def orders(report):
    """(kind, name) -> perm"""
    return {(kind, x[kind]): [LETTERS.index(c) for c in x["layout"]] for x in report["interface"] for kind in ("input", "output") if kind in x}


def moves(perm, shape):
    real = [p for p in perm if shape[p] != 1]
    return real != sorted(real)


def given(model):
    """The inputs: before IR version 4 initializers, which are constants, have to be among them."""
    constants = {t.name for t in model.graph.initializer} if model.ir_version < 4 else {}
    return [x for x in model.graph.input if x.name not in constants]


def check_shapes(model, after, perms):
    for kind, was, now in (("input", given(model), given(after)), ("output", model.graph.output, after.graph.output)):
        if [x.name for x in was] != [x.name for x in now]:
            return f"the {kind}s are {[x.name for x in now]}"
        for a, b in zip(was, now):
            da, db, perm = dims(a), dims(b), perms.get((kind, a.name))
            if perm and da is not None and perm != sorted(perm) and db != [da[p] for p in perm]:
                return f"{kind} {a.name} {da} is {db} now, with order {perm}"
            if (not perm or perm == sorted(perm)) and a.SerializeToString() != b.SerializeToString():
                return f"{kind} {a.name} changed"
    return ""


def run_turned(path, model, after, perms, inputs, engine):
    """The result's outputs, in the original's orders."""
    turn = lambda k, x: np.ascontiguousarray(x.transpose(perms["input", k])) if ("input", k) in perms else x
    got = common.ENGINES[engine](path, {k: turn(k, x) for k, x in inputs.items()})
    back = lambda o, y: y.transpose(np.argsort(perms["output", o.name])) if ("output", o.name) in perms else y
    return [back(o, y) for o, y in zip(model.graph.output, got)]


def check_counts(report, model, perms, wanted, feeds, results):
    c = report["conversions"]
    shape = {("input", k): x.shape for k, x in feeds.items()} | {("output", o.name): y.shape for o, y in zip(model.graph.output, results)}
    handed = sum(moves(p, shape[k]) for k, p in perms.items() if k in shape)
    symbolic = any(isinstance(d, str) or d == 0 for v in [*model.graph.input, *model.graph.output] for d in dims(v) or [""])
    if c["handed_to_caller"] != handed and not symbolic:
        return f"handed_to_caller {c['handed_to_caller']}, counted {handed}"
    given = sum(v not in ("free", "keep") for v in wanted)
    if c["after"] > c["own_interface"]["after"] + given:
        return f"{c['after']} conversions left, {c['own_interface']['after']} with the own interface, {given} orders given"
    return ""


# ---------------------------------------------------------------------------------------------------- models made by hand

def model_of(nodes, inputs, outputs, inits=(), opset=17, ir=8):
    info = lambda x: h.make_tensor_value_info(x[0], x[1], x[2])
    return h.make_model(h.make_graph(nodes, "g", [info(x) for x in inputs], [info(x) for x in outputs], list(inits)),
                        opset_imports=[h.make_opsetid("", opset)], ir_version=ir)


def captured():
    """Branches of an If read the input and an inner value that is an output, too; one of them hands the input on."""
    then = h.make_graph([h.make_node("Add", ["x", "r"], ["t"])], "then", [], [h.make_tensor_value_info("t", T.FLOAT, [2, 3, 4])])
    inner = h.make_graph([h.make_node("Neg", ["x"], ["n"])], "inner", [], [h.make_tensor_value_info("n", T.FLOAT, [2, 3, 4])])
    other = h.make_graph([h.make_node("Relu", ["r"], ["q"])], "other", [], [h.make_tensor_value_info("q", T.FLOAT, [2, 3, 4])])
    deep = h.make_graph([h.make_node("If", ["c"], ["e"], then_branch=inner, else_branch=other)], "else", [],
                        [h.make_tensor_value_info("e", T.FLOAT, [2, 3, 4])])
    nodes = [h.make_node("Relu", ["x"], ["r"]), h.make_node("If", ["c"], ["y"], then_branch=then, else_branch=deep)]
    return model_of(nodes, [("x", T.FLOAT, [2, 3, 4]), ("c", T.BOOL, [])], [("y", T.FLOAT, [2, 3, 4]), ("r", T.FLOAT, [2, 3, 4])])


def looped():
    """A Loop's body captures the input."""
    body = h.make_graph([h.make_node("Add", ["s", "x"], ["s2"]), h.make_node("Identity", ["k"], ["k2"])], "body",
                        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("k", T.BOOL, []),
                         h.make_tensor_value_info("s", T.FLOAT, [2, 3, 4])],
                        [h.make_tensor_value_info("k2", T.BOOL, []), h.make_tensor_value_info("s2", T.FLOAT, [2, 3, 4])])
    three = onnx.numpy_helper.from_array(np.array(3, np.int64), "three")
    true = onnx.numpy_helper.from_array(np.array(True), "true")
    nodes = [h.make_node("Loop", ["three", "true", "x"], ["y"], body=body)]
    return model_of(nodes, [("x", T.FLOAT, [2, 3, 4])], [("y", T.FLOAT, [2, 3, 4])], [three, true])


def conv(dim=5):
    """Channels-last outside, Conv inside: both Transposes are the caller's on request."""
    w = onnx.numpy_helper.from_array(np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype("f"), "w")
    nodes = [h.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), h.make_node("Conv", ["t", "w"], ["c"], pads=[1, 1, 1, 1]),
             h.make_node("Relu", ["c"], ["r"]), h.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 3, 1])]
    return model_of(nodes, [("x", T.FLOAT, ["N", dim, "W", 3])], [("y", T.FLOAT, ["N", dim, "W", 4])], [w])


def shared_name():
    """An input that is an output, and is used."""
    nodes = [h.make_node("Relu", ["x"], ["y"])]
    return model_of(nodes, [("x", T.FLOAT, [2, 3, 4])], [("x", T.FLOAT, [2, 3, 4]), ("y", T.FLOAT, [2, 3, 4])])


def inner_output():
    """An output that other nodes read."""
    nodes = [h.make_node("Exp", ["x"], ["y"]), h.make_node("Softmax", ["y"], ["z"], axis=1)]
    return model_of(nodes, [("x", T.FLOAT, [2, 3, 4])], [("y", T.FLOAT, [2, 3, 4]), ("z", T.FLOAT, [2, 3, 4])])


def old_file(ir=3):
    """Initializers are inputs, of sizes of 1: constants in IR version 3, which wants them there, later what the caller may replace."""
    w = onnx.numpy_helper.from_array(np.arange(6, dtype="f").reshape(1, 3, 1, 2), "w")
    nodes = [h.make_node("Mul", ["x", "w"], ["y"])]
    return model_of(nodes, [("x", T.FLOAT, [1, 3, 5, 2]), ("w", T.FLOAT, [1, 3, 1, 2])], [("y", T.FLOAT, [1, 3, 5, 2])], [w], opset=9, ir=ir)


# model, inputs, outputs, conversions left and handed over (None: not looked at), or the refusal
CASES = [
    ("given both", conv(), {"x": "nhwc->nchw"}, {"y": "nhwc->nchw"}, (0, 2)),
    ("free both", conv(), {"x": "free"}, {"y": "free"}, (0, 2)),
    ("free input", conv(), {"x": "free"}, {}, (1, 1)),
    ("letters", conv(), {"x": "adbc"}, {}, (1, 1)),
    ("buffer", conv(), {"x": "f32[2,5,6,3] strides=[500,6,30,1]"}, {"y": "f32[2,5,6,4]@acbd"}, None),
    ("buffer, by name", conv(), {"x": "f32[1,5,6,3] strides=[90,6,1,30] offset=7"}, {"y": "f32[2,5,6,4] strides=[120,6,1,30]"}, (0, 2)),
    ("keep", conv(), {"x": "keep"}, {"y": "nchw"}, (2, 0)),
    ("captured", captured(), {"x": "cab"}, {"r": "bca"}, None),
    ("captured, free", captured(), {"x": "free"}, {"r": "free", "y": "free"}, (0, 0)),
    ("looped", looped(), {"x": "cba"}, {"y": "nwc"}, None),
    ("inner output", inner_output(), {"x": "acb"}, {"y": "bac", "z": "cab"}, None),
    ("input is output", shared_name(), {"x": "acb"}, {"x": "acb", "y": "acb"}, (0, 3)),
    ("old file", old_file(), {"x": "nhwc"}, {"y": "nhwc"}, (0, 2)),
    ("default", old_file(ir=8), {"x": "nhwc"}, {"y": "nhwc"}, (1, 2)), # it may be replaced, so it is converted
    ("one of two", shared_name(), {"x": "acb"}, {}, "input and output at once"),
    ("one of two, free", shared_name(), {"x": "free"}, {"x": "free"}, "input and output at once"),
    ("no such input", conv(), {"z": "nhwc"}, {}, "input layout 'z=nhwc': no input has this name"),
    ("no such output", conv(), {}, {"x": "nhwc"}, "output layout 'x=nhwc': no output has this name"),
    ("rank", conv(), {"x": "nwc"}, {}, "one letter for each dim (it has rank 4)"),
    ("blocked", conv(), {"x": "aBcd2b"}, {}, "pieces of an axis"),
    ("buffer with blocks", conv(), {"x": "f32[2,5,6,3]@aBcd4b"}, {}, "blocks or padding"),
    ("buffer of another type", conv(), {"x": "f16[2,5,6,3]"}, {}, "another type or other sizes"),
    ("buffer of other sizes", conv(), {"x": "f32[2,5,6,4]"}, {}, "another type or other sizes"),
    ("buffer that overlaps", conv(), {}, {"y": "f32[2,5,6,4] strides=[0,24,4,1]"}, "overlap"),
    ("no buffer", conv(), {"x": "f32[2,5,6,3] strides=[1]"}, {}, "strides"),
    ("twice a letter", conv(), {"x": "aacd"}, {}, "each axis once"),
    ("arrow", conv(), {"x": "nhwc->nch"}, {}, "both sides"),
    ("no order", conv(), {"x": ""}, {}, "NAME=ORDER"),
    ("default given", old_file(ir=8), {"w": "nhwc"}, {}, "default value"),
    ("constant", old_file(), {"w": "nhwc"}, {}, "no input has this name"),
    ("no tensor rank", captured(), {"c": "a"}, {}, "one letter for each dim (it has rank 0)"),
]


def hand_made(prog, target, tmp):
    for name, model, ins, outs, wanted in CASES:
        src, dst = Path(tmp) / "in.onnx", Path(tmp) / "out.onnx"
        dst.unlink(missing_ok=True)
        onnx.save(model, src)
        status, report, message = optimize(prog, src, dst, ins, outs, target)
        if isinstance(wanted, str):
            ok = status == 2 and wanted in message and not dst.exists()
            yield name, "" if ok else f"status {status}, message {message!r}"
            continue
        if status:
            yield name, message
            continue
        sizes = {"N": 2, "W": 6}
        feeds = common.random_inputs(model, 0, sizes)
        want, engine = common.run(src, feeds)
        yield name, (judge(model, dst, report, feeds, want, engine, [*ins.values(), *outs.values()])
                     or (wanted and [report["conversions"][k] for k in ("after", "handed_to_caller")] != list(wanted) and str(report["conversions"])) or "")


def judge(model, dst, report, feeds, want, engine, orders_given, compare=common.compare):
    after, perms = onnx.load(dst), orders(report)
    why = check_shapes(model, after, perms) or check_counts(report, model, perms, orders_given, feeds, want)
    error = common.checker_error(dst)
    if why or error:
        return why or error
    d = compare(want, run_turned(dst, model, after, perms, feeds, engine))
    return "" if d.ok else f"outputs differ: {d.why}"


# ---------------------------------------------------------------------------------------------------- random models

def pick_order(r, rank):
    if r.random() < 0.3:
        return "free"
    return "".join(r.sample(LETTERS[:rank], rank))


def pick_ports(r, model, feeds, want):
    consts = {t.name for t in model.graph.initializer}
    both = {i.name for i in model.graph.input} & {o.name for o in model.graph.output}
    usable = lambda v: dims(v) is not None and v.name not in consts | both and len(dims(v)) > 1
    ins = {v.name: pick_order(r, len(dims(v))) for v in model.graph.input if usable(v) and r.random() < 0.7}
    outs = {v.name: pick_order(r, len(dims(v))) for v in model.graph.output if usable(v) and r.random() < 0.7}
    return ins, outs


def random_one(job):
    seed, prog, target = job
    g, r = graphgen.make(seed), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src, dst = Path(tmp) / "in.onnx", Path(tmp) / "out.onnx"
        onnx.save(g.proto, src)
        feeds = g.trials[0]
        try:
            want, engine = common.run(src, feeds)
        except common.Differ:
            return seed, None, {}
        ins, outs = pick_ports(r, g.proto, feeds, want)
        if not ins and not outs:
            return seed, None, {}
        status, report, message = optimize(prog, src, dst, ins, outs, target)
        if status == 2 and "constant" in message:
            return seed, None, {}
        if status:
            return seed, message, {}
        if why := unproved(prog, src, dst, ins, outs, target, report):
            return seed, f"check-proof: {why}   {ins} {outs}", {}
        facts = type("facts", (), {"outputs": [want], "inputs": [feeds]})
        try:
            why = judge(g.proto, dst, report, feeds, want, engine, [*ins.values(), *outs.values()],
                        lambda _, got: test_random.outputs(g, facts, 0, got))
        except Exception as e:
            why = f"{type(e).__name__}: {e!s:.300}"
        return seed, f"{why}   {ins} {outs}" if why else "", report["conversions"]


def best_free(job):
    """A free port leaves no more conversions than the best of all its orders, each given."""
    seed, prog = job
    g, r = graphgen.make(seed, 8), random.Random(seed)
    consts = {t.name for t in g.proto.graph.initializer}
    ports = [(k, v.name, len(dims(v))) for k, vs in ((0, g.proto.graph.input), (1, g.proto.graph.output)) for v in vs
             if dims(v) is not None and v.name not in consts and 2 <= len(dims(v)) <= 3]
    if not ports:
        return seed, None
    kind, name, rank = r.choice(ports)
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src, dst = Path(tmp) / "in.onnx", Path(tmp) / "out.onnx"
        onnx.save(g.proto, src)
        left = {}
        for order in ["free", *map("".join, itertools.permutations(LETTERS[:rank]))]:
            ports = [{}, {}]
            ports[kind][name] = order
            status, report, message = optimize(prog, src, dst, *ports, "onnx")
            if status:
                return seed, None if "constant" in message or "at once" in message else message
            left[order] = report["conversions"]["after"]
    best = min(v for k, v in left.items() if k != "free")
    return seed, "" if left["free"] <= best else f"{name}: {left}"


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--target", default="onnx")
    args = p.parse_args()
    prog = common.program(args)
    npass = nfail = nskip = 0
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        for name, why in hand_made(prog, args.target, tmp):
            print(f"{name}: {why}") if why else None
            npass, nfail = npass + (not why), nfail + bool(why)
    left = handed = own = 0
    jobs = ((args.seed + k, prog, args.target) for k in range(args.count))
    for seed, why, c in common.pooled(random_one, jobs, args.jobs, ordered=True):
        if why:
            print(f"seed {seed}: {why}")
        npass, nfail, nskip = npass + (why == ""), nfail + bool(why), nskip + (why is None)
        left, handed, own = left + c.get("after", 0), handed + c.get("handed_to_caller", 0), own + c.get("own_interface", {}).get("after", 0)
    for seed, why in common.pooled(best_free, ((args.seed + k, prog) for k in range(args.count // 4)), args.jobs, ordered=True):
        if why:
            print(f"seed {seed}, free: {why}")
        npass, nfail, nskip = npass + (why == ""), nfail + bool(why), nskip + (why is None)
    print(f"target {args.target}: {left} conversions left, {handed} handed to the caller; {own} with the models' own interfaces")
    return common.closing(npass, nfail, nskip)


if __name__ == "__main__":
    sys.exit(main())
