#!/usr/bin/env python3
"""Model-local functions.

  test_functions.py [--count 40] [--mutations 300] [--build build]

1. A call makes what its function makes of what it is given. A function's own types are those that all calls agree on: those that are gone do not
   count, so that optimizing again finds nothing that the first time had not seen; but those that stay in the file do.
2. Random models with functions (funcgen.py): the result runs as the model, every node of it; both checkers hold its certificate to be true.
3. False certificates of functions are refused by both: mutated ones, ones that leave a function out or speak of another, results that have
   more Transposes in a function than it says.
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
from onnx import TensorProto as T, helper as h, numpy_helper
from onnx.reference import ReferenceEvaluator

import check
import common
import funcgen
import mutate

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from proof import Refused, bound, text  # noqa: E402
from proof.compare import Pair  # noqa: E402
from proof.target import Target  # noqa: E402

OPSETS = [h.make_opsetid("", 17), h.make_opsetid("local", 1)]
TURNED = h.make_function("local", "F", ["x"], ["y"], [h.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), h.make_node("Relu", ["t"], ["y"])], OPSETS)


def model(nodes, outputs, inputs, ints):
    call = lambda x, y: h.make_node("F", [x], [y], domain="local")
    nodes = [call("x", "a"), call("z", "b"), h.make_node("Transpose", ["a"], ["y"], perm=[0, 2, 1]), *nodes]
    info = lambda n, dims: h.make_tensor_value_info(n, T.FLOAT, dims)
    g = h.make_graph(nodes, "g", [info(n, d) for n, d in inputs.items()], [info(n, [None] * rank) for n, rank in outputs.items()],
                     [numpy_helper.from_array(np.array(x, np.int64), n) for n, x in ints.items()])
    return h.make_model(g, opset_imports=OPSETS, ir_version=8, functions=[TURNED])


def transposes(path):
    m = onnx.load(path)
    return sum(n.op_type == "Transpose" for g in (m.graph, *m.functions) for n in g.node)


# Name, Transposes of the result, the model
CASES = [
    ("all calls are read", 1, model([], {"y": 3, "b": 3}, {"x": [2, 4, 1], "z": [2, 4, 5]}, {})),
    ("a call that nothing reads", 0, model([], {"y": 3}, {"x": [2, 4, 1], "z": [2, 4, 5]}, {})),
    ("a call whose shape alone is read, and known", 0,
     model([h.make_node("Shape", ["b"], ["s"]), h.make_node("Gather", ["s", "zero"], ["n"], axis=0), h.make_node("ConstantOfShape", ["n"], ["e"]),
            h.make_node("Transpose", ["x"], ["c"], perm=[0, 2, 1]), h.make_node("Reshape", ["c", "flat"], ["d"])],
           {"y": 3, "e": 1, "d": 2}, {"x": [2, 4, 1], "z": [2, 4, 5]}, {"zero": [0], "flat": [8, 1]})),
]


def evaluate(model, inputs):
    """Runs every node, also those that nothing reads."""
    return ReferenceEvaluator(onnx.inliner.inline_local_functions(model)).run(None, inputs)


def dead_call(prog, tmp):
    """The main graph is no better without it, so it stays, and runs: the function may not be made one of the other call's sizes."""
    call = lambda x, y: h.make_node("F", [x], [y], domain="local")
    info = lambda n, dims: h.make_tensor_value_info(n, T.FLOAT, dims)
    g = h.make_graph([call("x", "y"), call("z", "b"), h.make_node("Relu", ["b"], ["c"])], "g", [info("x", [2, 4, 1]), info("z", [2, 4, 5])],
                     [info("y", [None] * 3)])
    src, out = tmp / "dead.onnx", tmp / "dead.out.onnx"
    onnx.save(h.make_model(g, opset_imports=OPSETS, ir_version=8, functions=[TURNED]), src)
    r = common.optimize(prog, src, out, "onnx")
    if r.status != 0:
        return r.text
    got = evaluate(onnx.load(out), {"x": np.ones((2, 4, 1), np.float32), "z": np.ones((2, 4, 5), np.float32)})
    return None if got[0].shape == (2, 1, 4) else f"y has the shape {got[0].shape}"


def imported(prog, tmp):
    """A function imports what its new nodes are of, as runtimes ask of it, and nothing twice."""
    body = [h.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), h.make_node("MatMul", ["t", "z"], ["m"]), h.make_node("Relu", ["m"], ["y"])]
    info = lambda n, dims: h.make_tensor_value_info(n, T.FLOAT, dims)
    g = h.make_graph([h.make_node("P", ["x", "z"], ["y"], domain="local")], "g", [info("x", [2, 4, 3]), info("z", [2, 4, 5])], [info("y", [2, 3, 5])])
    product = h.make_function("local", "P", ["x", "z"], ["y"], body, OPSETS)
    _, _, out = optimized(prog, h.make_model(g, opset_imports=OPSETS, ir_version=8, functions=[product]), "fused", tmp)
    f = onnx.load(out).functions[0]
    has, wants = [o.domain for o in f.opset_import], {n.domain for n in f.node}
    return None if "com.microsoft" in wants and wants <= set(has) and len(has) == len(set(has)) else f"nodes of {wants}, imports {has}"


def modules():
    """As exporters write modules: functions in functions, of which one has a tensor from its call; sizes of the inner one's result are known once its
    type has come out, and of f32[2,4,1] no Transpose moves anything."""
    node, make = h.make_node, lambda name, nodes, attrs=(): h.make_function("local", name, ["x"], ["y"], nodes, OPSETS, attributes=list(attrs))
    held = node("Constant", [], ["c"])
    held.attribute.append(onnx.AttributeProto(name="value", type=onnx.AttributeProto.TENSOR, ref_attr_name="held"))
    inner = make("Inner", [held, node("PRelu", ["x", "c"], ["y"])], ["held"])
    middle = make("Middle", [node("Inner", ["x"], ["i"], domain="local", held=numpy_helper.from_array(np.ones(1, np.float32))), node("Shape", ["i"], ["s"]),
                             node("Constant", [], ["first"], value_ints=[0, 1]), node("Constant", [], ["rest"], value_ints=[-1]),
                             node("Gather", ["s", "first"], ["front"]), node("Concat", ["front", "rest"], ["to"], axis=0), node("Reshape", ["i", "to"], ["y"])])
    outer = make("Outer", [node("Middle", ["x"], ["m"], domain="local"), node("Transpose", ["m"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["y"])])
    g = h.make_graph([node("Outer", ["x"], ["y"], domain="local")], "g", [h.make_tensor_value_info("x", T.FLOAT, [2, 4, 1])],
                     [h.make_tensor_value_info("y", T.FLOAT, [2, 1, 4])])
    return h.make_model(g, opset_imports=OPSETS, ir_version=8, functions=[outer, middle, inner])


def layers(op):
    """A layer that takes another one's result, so that nothing is known of what it takes. Its result is a matrix if it is a Gemm; of a MatMul's the type
    alone is known, and of what that is cut into the numbers that the cut names."""
    node, matrix = h.make_node, op == "Gemm"
    layer = h.make_function("local", "Layer", ["x", "w"], ["y"], [node(op, ["x", "w"], ["y"])], OPSETS)
    nodes = [node("Layer", ["x", "w"], ["a"], domain="local"), node("Layer", ["a", "w"], ["b"], domain="local"), node("Shape", ["b"], ["s"]),
             node("Gather", ["s", "first"], ["n"]), node("Concat", ["n", "cut"], ["to"], axis=0), node("Reshape", ["b", "to"], ["c"])]
    perm, x = ([1, 0], "b") if matrix else ([0, 2, 1], "c")
    nodes = nodes[:2 if matrix else None] + [node("Transpose", [x], ["t"], perm=perm), node("Relu", ["t"], ["r"]), node("Transpose", ["r"], ["y"], perm=perm)]
    arrays = [("w", np.ones((6, 6), np.float32))] + ([] if matrix else [("first", np.array([0])), ("cut", np.array([2, 3]))])
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [4, 6])], [h.make_tensor_value_info("y", T.FLOAT, [None, 6] if matrix else [None, 2, 3])],
                     [numpy_helper.from_array(x, name) for name, x in arrays])
    return h.make_model(g, opset_imports=OPSETS, ir_version=8, functions=[layer])


def chain():
    """A function of its own result, which calls another one, and of something else: of f32[N,8,1] the Transpose moves nothing. How many rows there are, which
    nothing tells, is another number in each call."""
    node, make = h.make_node, lambda name, nodes: h.make_function("local", name, ["x"], ["y"], nodes, OPSETS)
    inner = make("Inner", [node("Sigmoid", ["x"], ["y"])])
    layer = make("Layer", [node("Inner", ["x"], ["i"], domain="local"), node("Add", ["i", "x"], ["y"])])
    rows = make("Rows", [node("NonZero", ["x"], ["n"]), node("Cast", ["n"], ["y"], to=T.FLOAT)])
    call = lambda name, x, y: node(name, [x], [y], domain="local")
    nodes = [call("Layer", "x", "a"), node("Relu", ["a"], ["b"]), call("Layer", "b", "c"), node("Transpose", ["c"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["y"]),
             call("Layer", "z", "w"), call("Rows", "z", "m"), call("Rows", "w", "n")]
    info = lambda n, dims: h.make_tensor_value_info(n, T.FLOAT, dims)
    g = h.make_graph(nodes, "g", [info("x", ["N", 8, 1]), info("z", [5, 3])], [info("y", ["N", 1, 8]), info("m", [2, "k"]), info("n", [2, "l"])])
    return h.make_model(g, opset_imports=OPSETS, ir_version=8, functions=[layer, inner, rows])


def nested(prog, tmp):
    """No Transpose of any is left, and both checkers hold that to be least."""
    for model in (modules(), layers("Gemm"), layers("MatMul"), chain()):
        words, src, out = optimized(prog, model, "onnx", tmp)
        pair = Pair(src, out, Target(name="onnx"))
        (status, message), why = held(prog, words, src, out, pair, tmp)
        left, lost = transposes(out), pair.check(text.Reader(words).read()) if not why else []
        if status or why or lost or left:
            return f"{message or why or lost}, {left} Transposes left"
    return None


def optimized(prog, model, target, tmp):
    """(certificate, paths of the model and the result)"""
    src, out, proof = tmp / "in.onnx", tmp / "out.onnx", tmp / "proof"
    onnx.save(model, src)
    r = common.optimize(prog, src, out, target, "--proof", str(proof))
    if r.status != 0:
        raise AssertionError(r.text)
    return proof.read_text(), src, out


def held(prog, words, src, out, pair, tmp, target="onnx"):
    """What the two checkers say of a certificate: (status, message), why it is refused or None. What cannot be rebuilt is passed over."""
    path = tmp / "checked"
    path.write_text(words)
    r = subprocess.run([prog, "check-proof", path, src, out, "--target", target], capture_output=True, text=True)
    try:
        proof = text.Reader(words).read()
        bound.check(proof)
        pair.check(proof)
        return (r.returncode, r.stderr), None
    except Refused as e:
        return (r.returncode, r.stderr), str(e)


def random_model(prog, seed, target, tmp):
    model, inputs = funcgen.make(seed)
    wanted = evaluate(model, inputs)
    words, src, out = optimized(prog, model, target, tmp)
    got = evaluate(onnx.load(out), inputs)
    if not all(a.shape == b.shape and np.allclose(a, b, atol=1e-5) for a, b in zip(wanted, got)):
        return "the outputs differ"
    (status, message), why = held(prog, words, src, out, Pair(src, out, Target(name=target)), tmp, target)
    if status != 0 or why:
        return message or why
    again = tmp / "again.onnx"
    r = common.optimize(prog, out, again, target)
    return None if r.status == 0 and common.same_bytes(out, again) else "a second optimize changes the model"


# ---- false certificates

def sections(words):
    """The lines of the main graph, and of each function with the line that names it."""
    found = [[]]
    for line in words.split("\n")[:-2]:
        if line.startswith("function "):
            found.append([])
        found[-1].append(line)
    return found


def whole(parts):
    return "\n".join(line for p in parts for line in p) + "\nend\n"


def mutants(words, count, seed):
    """(kind, text) of certificates of which one function's part is false."""
    r, parts = random.Random(seed), sections(words)
    for _ in range(count):
        k = r.randrange(1, len(parts))
        alone = parts[0][:2] + parts[k][1:]
        kind, changed = mutate.Text(whole([alone])).mutate(r)
        lines = changed.split("\n")
        if lines[:2] != alone[:2] or lines[-2:] != ["end", ""]:
            continue  # not in the part
        yield kind, whole([*parts[:k], [parts[k][0], *lines[2:-2]], *parts[k + 1:]])


def others(words):
    """(what, text): parts that are missing, twice, or of another function."""
    parts = sections(words)
    head = parts[1][0].split(" ")
    yield "a part left out", whole([parts[0], *parts[2:]])
    yield "no part", whole(parts[:1])
    yield "a part twice", whole([*parts, parts[-1]])
    yield "another name", whole([parts[0], [f'{" ".join(head[:3])} "G"', *parts[1][1:]], *parts[2:]])
    yield "another domain", whole([parts[0], [f'{head[0]} {head[1]} "" {head[3]}', *parts[1][1:]], *parts[2:]])
    yield "no such function", whole([parts[0], [f"function 77 {head[2]} {head[3]}", *parts[1][1:]]])
    yield "a leading zero", whole([parts[0], [f"function 0{head[1]} {head[2]} {head[3]}", *parts[1][1:]], *parts[2:]])
    yield "the main graph's part for it", whole([parts[0], [parts[1][0], *parts[0][2:]], *parts[2:]])


def two_calls():
    """F has a pair of Transposes too many, G one that stays; the main graph has one."""
    node = h.make_node
    f = h.make_function("local", "F", ["x"], ["y"], [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["r"]),
                                                      node("Transpose", ["r"], ["y"], perm=[0, 2, 1])], OPSETS)
    g = h.make_function("local", "G", ["x"], ["y"], [node("F", ["x"], ["a"], domain="local"), node("Transpose", ["a"], ["t"], perm=[1, 0, 2]),
                                                      node("Softmax", ["t"], ["y"], axis=2)], OPSETS)
    info = lambda n, dims: h.make_tensor_value_info(n, T.FLOAT, dims)
    nodes = [node("G", ["x"], ["a"], domain="local"), node("F", ["z"], ["b"], domain="local"), node("Transpose", ["b"], ["c"], perm=[2, 1, 0]),
             node("Softmax", ["c"], ["d"], axis=1)]
    graph = h.make_graph(nodes, "g", [info("x", [2, 3, 4]), info("z", ["N", 3, 4])], [info("a", [3, 2, 4]), info("d", [4, 3, "N"])])
    return h.make_model(graph, opset_imports=OPSETS, ir_version=9, functions=[f, g])


def false_ones(prog, count, tmp):
    """Wrong acceptances, and how many were tried."""
    words, src, out = optimized(prog, two_calls(), "onnx", tmp)
    pair, wrong, done = Pair(src, out), [], 0
    first, why = held(prog, words, src, out, pair, tmp)
    if first[0] != 0 or why:
        return [f"the true one is refused: {first} {why}"], 1
    for kind, changed in [*others(words), *mutants(words, count, 1)]:
        (status, message), why = held(prog, changed, src, out, pair, tmp)
        done += 1
        if status != 7 or why is None:
            wrong.append(f"{kind}: check-proof {status} {message.strip()}, check_proof.py {why or 'holds'}")
    worse = onnx.load(out)
    worse.functions[0].CopyFrom(onnx.load(src).functions[0])  # with the pair of Transposes
    onnx.save(worse, tmp / "worse.onnx")
    (status, message), why = held(prog, words, src, tmp / "worse.onnx", Pair(src, tmp / "worse.onnx"), tmp)
    if status != 7 or why is None:
        wrong.append(f"more Transposes in a function: check-proof {status}, check_proof.py {why or 'holds'}")
    return wrong, done + 1


def counts(prog, tmp):
    """The report has the conversions of all functions, each once."""
    words, src, _ = optimized(prog, two_calls(), "onnx", tmp)
    claims = [tuple(map(int, line.split()[1:])) for line in words.split("\n") if line.startswith("claim ")]
    common.optimize(prog, src, tmp / "o.onnx", "onnx", "--json", str(tmp / "report"))
    said = json.loads((tmp / "report").read_text())["conversions"]
    least = tuple(map(sum, zip(*claims)))
    if len(claims) != 3 or (said["after"], said["lower_bound"], said["proof"]) != (least[0], least[2], "optimal") or least[0] != 2:
        return f"{said}, the certificate {claims}"
    return None


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=40, help="random models (default: 40)")
    p.add_argument("--seed", type=int, default=0, help="the first one")
    p.add_argument("--mutations", type=int, default=300)
    args = p.parse_args()
    prog = common.program(args)
    npass = nfail = nlost = 0
    with tempfile.TemporaryDirectory(prefix="relayout-") as name:
        tmp = Path(name)
        for what, job in (("a call that nothing reads, and that stays", dead_call), ("counts", counts), ("imports", imported), ("modules", nested)):
            why = job(prog, tmp)
            if why:
                print(f"{what}: {why}")
            npass, nfail = npass + (not why), nfail + bool(why)
        for seed in range(args.seed, args.seed + args.count):
            why = random_model(prog, seed, ["onnx", "generic"][seed % 2], tmp)
            if why:
                print(f"random {seed}: {why}")
            npass, nfail = npass + (not why), nfail + bool(why)
        wrong, done = false_ones(prog, args.mutations, tmp)
        for w in wrong:
            print(w)
        print(f"{done} false certificates of functions, {len(wrong)} accepted")
        npass, nfail = npass + done - len(wrong), nfail + len(wrong)
    for target in ("onnx", "generic"):
        for name, wanted, m in CASES:
            with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
                src = Path(tmp) / "in.onnx"
                onnx.save(m, src)
                res = check.rewrite(prog, src, check.facts_of(src, m, [common.random_inputs(m)]), target, tmp)
                n = transposes(Path(tmp) / "out.onnx")
            if n != wanted:
                res.fail.append(f"{n} Transposes, not {wanted}")
            for f in res.fail:
                print(f"{name} ({target}): {f}")
            npass, nfail = npass + (not res.fail), nfail + bool(res.fail)
    return common.closing(npass, nfail)


if __name__ == "__main__":
    sys.exit(main())
