#!/usr/bin/env python3
"""Nodes that say more or less than the definitions of their operators do (src/schemas.def), and operators newer than any definition: the optimizer
leaves them as they are, both checkers take the certificate that says so, and `run` refuses them with one line. The same node
without what is unknown moves, and runs; so do attributes of a function's call, and operators of com.microsoft.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from onnx import TensorProto as T, helper as h

import common

CHECKER = [sys.executable, common.ROOT / "scripts" / "check_proof.py"]
node = h.make_node


def between(middle, dims, opset=28, domain="", elem=T.FLOAT, inits=(), functions=(), made=None):
    """The node `middle`, from t to u, with a Transpose before and one after it that undo each other; dims: those of t."""
    n = len(dims)
    there, back = [n - 1, *range(n - 1)], [*range(1, n), 0]
    first = [dims[p] for p in back]
    made = made or dims
    nodes = [node("Transpose", ["x"], ["t"], perm=there), middle, node("Transpose", ["u"], ["y"], perm=back)]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", elem, first)], [h.make_tensor_value_info("y", elem, [made[p] for p in back])],
                     list(inits), value_info=[h.make_tensor_value_info(o, elem, made) for o in middle.output])
    opsets = [h.make_opsetid("", opset)] + ([h.make_opsetid(domain, 1)] if domain else [])
    return h.make_model(g, opset_imports=opsets, ir_version=10, functions=list(functions))


def branches(**attrs):
    """An If; in each branch a Relu between two Transposes."""
    def branch(name, **more):
        nodes = [node("Transpose", ["x"], [name + "t"], perm=[1, 0]), node("Relu", [name + "t"], [name + "u"], **more),
                 node("Transpose", [name + "u"], [name], perm=[1, 0])]
        return h.make_graph(nodes, name, [], [h.make_tensor_value_info(name, T.FLOAT, [2, 3])],
                            value_info=[h.make_tensor_value_info(name + "u", T.FLOAT, [3, 2])])
    g = h.make_graph([node("If", ["c"], ["y"], then_branch=branch("a"), else_branch=branch("b", **attrs))], "g",
                     [h.make_tensor_value_info("c", T.BOOL, []), h.make_tensor_value_info("x", T.FLOAT, [2, 3])],
                     [h.make_tensor_value_info("y", T.FLOAT, [2, 3])])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 28)], ir_version=10)


def twice(n, **attrs):
    n.attribute.extend(h.make_attribute(name, x) for name, x in attrs.items())
    return n


def axes(*x):
    return h.make_tensor("axes", T.INT64, [len(x)], x)


SCALES = h.make_tensor("scales", T.FLOAT, [3], [1, 1, 2])
SOFT = h.make_function("local", "Soft", ["a"], ["b"], [node("Softmax", ["a"], ["b"])], [h.make_opsetid("", 28)], ["axis"])
SOFT.node[0].attribute.append(onnx.AttributeProto(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT))
ODD = h.make_function("local", "Odd", ["a"], ["b"], [node("Softmax", ["a"], ["b"])], [h.make_opsetid("", 28)], ["axis"])
ODD.node[0].attribute.append(onnx.AttributeProto(name="axle", ref_attr_name="axis", type=onnx.AttributeProto.INT))

DIMS = [2, 3, 4]
# Transposes of an opset that nobody read are no movement that anything is proved of; what such a node makes in a function has no type.
NOT_PROVED = {"an opset after it", "an opset before all", "attribute in a function"}
# name -> (model, does run know it, Transposes that stay)
CASES = {
    "known": (between(node("Relu", ["t"], ["u"]), DIMS), True, 0),
    "attribute": (between(node("Relu", ["t"], ["u"], slope=1), DIMS), False, 2),
    "type of an attribute": (between(node("LeakyRelu", ["t"], ["u"], alpha=1), DIMS), False, 2),
    "the same, of its type": (between(node("LeakyRelu", ["t"], ["u"], alpha=1.0), DIMS), True, 0),
    "attribute of an earlier opset": (between(node("Clip", ["t"], ["u"], min=0.0), DIMS), False, 2),
    "the same, there": (between(node("Clip", ["t"], ["u"], min=0.0), DIMS, opset=10), True, 0),
    "attribute of a later opset": (between(node("Cast", ["t"], ["u"], to=1, saturate=0), DIMS, opset=18), False, 2),
    "the same, there too": (between(node("Cast", ["t"], ["u"], to=1, saturate=0), DIMS, opset=19), True, 0),
    "attribute twice": (between(twice(node("Softmax", ["t"], ["u"], axis=0), axis=1), DIMS), False, 2),
    "input": (between(node("ReduceMax", ["t", "axes"], ["u"]), DIMS, opset=17, inits=[axes(1)], made=[2, 1, 4]), False, 2),
    "the same input, later": (between(node("ReduceMax", ["t", "axes"], ["u"]), DIMS, opset=18, inits=[axes(1)], made=[2, 1, 4]), True, 0),
    "output": (between(node("Relu", ["t"], ["u", "v"]), DIMS), False, 2),
    "no input among any number": (between(node("Concat", ["t", "", "t"], ["u"], axis=0), DIMS, made=[4, 3, 4]), False, 2),
    "no input at the end of any number": (between(node("Concat", ["t", "t", ""], ["u"], axis=0), DIMS, made=[4, 3, 4]), False, 2),
    "the same, whole": (between(node("Concat", ["t", "t"], ["u"], axis=0), DIMS, made=[4, 3, 4]), True, 0),
    "an input that is left out before it may be": (between(node("Resize", ["t", "", "scales"], ["u"], mode="nearest"), DIMS, opset=11,
                                                           inits=[SCALES], made=[2, 3, 8]), True, 0),
    "the newest opset": (between(node("Add", ["t", "t"], ["u"]), DIMS), True, 0),
    "an opset after it": (between(node("Add", ["t", "t"], ["u"]), DIMS, opset=29), False, 2),
    "an opset before all": (between(node("Relu", ["t"], ["u"]), DIMS, opset=6), True, 2),
    "com.microsoft": (between(node("QuickGelu", ["t"], ["u"], alpha=2.0, domain="com.microsoft"), DIMS, domain="com.microsoft"), True, 0),
    "attribute of com.microsoft": (between(node("QuickGelu", ["t"], ["u"], beta=2.0, domain="com.microsoft"), DIMS, domain="com.microsoft"), False, 2),
    "body": (branches(), True, 0),
    "attribute in a body": (branches(slope=1), False, 2),
    "function": (between(node("Soft", ["t"], ["u"], axis=1, domain="local"), DIMS, domain="local", functions=[SOFT]), True, None),
    "attribute in a function": (between(node("Odd", ["t"], ["u"], axis=1, domain="local"), DIMS, domain="local", functions=[ODD]), False, None),
}


def problems(prog, name, folder):
    model, known, stay = CASES[name]
    src, dst, proof = (folder / f for f in ("in.onnx", "out.onnx", "proof.txt"))
    onnx.save(model, src)
    made = common.optimize(prog, src, dst, "onnx", *(["--proof", proof] if name not in NOT_PROVED else []))
    if made.status:
        return f"optimize: status {made.status}, {made.message}"
    left = sum(n.op_type == "Transpose" for n in common.every_node(onnx.load(dst).graph))
    if stay is not None and left != stay:
        return f"{left} Transposes instead of {stay}"
    for words in ([prog, "check-proof"], CHECKER) if name not in NOT_PROVED else ():
        p = subprocess.run([*words, "--target", "onnx", proof, src, dst], capture_output=True, text=True)
        if p.returncode:
            return f"{words[1]}: status {p.returncode}, {(p.stdout + p.stderr).strip()}"
    p = subprocess.run([prog, "explain", src], capture_output=True, text=True)
    outside = not 7 <= model.opset_import[0].version <= 28
    if ("known are 7 to 28" in p.stderr) != outside or p.stdout.count("is not known of Transpose") != (2 if outside else 0):
        return f"explain of opset {model.opset_import[0].version}: {p.stdout}{p.stderr}"
    p = subprocess.run([prog, "run", src, "--output-dir", folder], capture_output=True, text=True)
    if known != (p.returncode == 0):
        return f"run: status {p.returncode}, {p.stderr.strip()}"
    if not known and (p.returncode != 5 or len(p.stderr.strip().splitlines()) != 1 or "known" not in p.stderr):
        return f"run refuses it with status {p.returncode}, {p.stderr.strip()}"
    return ""


def main():
    prog = common.program(common.arguments(__doc__.splitlines()[0]).parse_args())
    bad = 0
    for name in CASES:
        with tempfile.TemporaryDirectory() as tmp:
            why = problems(prog, name, Path(tmp))
        if why:
            print(f"{name}: {why}")
            bad += 1
    return common.closing(len(CASES) - bad, bad)


if __name__ == "__main__":
    sys.exit(main())
