#!/usr/bin/env python3
"""`relayout reduce`: random models shrink to the one node that a shell command asks for, or to a chain of two; each result is a sound model.

  test_reduce.py --count 12
"""
import collections
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import common
import graphgen

check = common.Checks()


def reduce(prog, src, out, command, *more):
    p = subprocess.run([prog, "reduce", str(src), "-o", str(out), "--if", command, *more], capture_output=True, text=True, timeout=120)
    return p.returncode, p.stdout, p.stderr


def has(*patterns):
    """Status 9 where the printed model has a line for each pattern."""
    greps = " && ".join(f"printf '%s' \"$text\" | grep -q -- '{p}'" for p in patterns)
    return f'text=$("$RL_SELF" print "$1") || exit 5; {greps} && exit 9; exit 0'


def random_models(prog, tmp, count):
    """The rarest op of each model alone is left: one node, or what holds the body that it is in."""
    for seed in range(count):
        m = graphgen.make(seed).proto
        src, out = tmp / "in.onnx", tmp / "out.onnx"
        onnx.save(m, src)
        op = min(sorted(collections.Counter(n.op_type for n in common.every_node(m.graph) if n.domain == "").items()), key=lambda x: x[1])[0]
        status, said, err = reduce(prog, src, out, has(f" = {op}("))
        if "nothing fails" in err:      # it is in a function, which print does not show
            continue
        check(f"seed {seed} ({op})", status == 0 and "still status 9" in said, said + err)
        if status:
            continue
        small = onnx.load(out)
        check(f"seed {seed} ({op}): nodes", len(small.graph.node) == 1 and op in [n.op_type for n in common.every_node(small.graph)],
              onnx.printer.to_text(small.graph)[:500])
        error = common.checker_error(out)
        check(f"seed {seed} ({op}): checker", error == "", error)
        check(f"seed {seed} ({op}): left behind", not list(tmp.glob("*.try.onnx")))


# Status 9 where one goes by first inputs from the last Add to the Sigmoid.
PATH = """
/ = / {
    split($0, side, " = "); split(side[1], made, " "); split(side[2], word, "[(,)]")
    op[made[1]] = word[1]; from[made[1]] = word[2]
    if (word[1] == "Add") at = made[1]
}
END {
    while ((at in op) && op[at] != "Sigmoid") at = from[at]
    exit (at in op) ? 9 : 0
}
"""


def chain(n, op="Relu"):
    w = numpy_helper.from_array(np.ones((2, 3), np.float32), "w")
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(n)]
    nodes.insert(n // 2, helper.make_node("Sigmoid", [f"v{n // 2}"], ["s"]))
    nodes[n // 2 + 1].input[0] = "s"
    nodes.append(helper.make_node("Add", [f"v{n}", "w"], ["y"]))
    nodes.append(helper.make_node("Tanh", ["y"], ["z"]))
    io = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(nodes, "g", [io("v0")], [io("y"), io("z")], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def chains(prog, tmp):
    src, out = tmp / "in.onnx", tmp / "out.onnx"
    onnx.save(chain(40), src)
    status, said, err = reduce(prog, src, out, has(" = Add(", " = Sigmoid("))
    ops = [n.op_type for n in onnx.load(out).graph.node]
    check("two nodes far apart", status == 0 and sorted(ops) == ["Add", "Sigmoid"], f"{ops} {said}{err}")
    # Only a path from one to the other fails: those between are bypassed.
    (tmp / "path.awk").write_text(PATH)
    path = f'text=$("$RL_SELF" print "$1") || exit 5; printf "%s" "$text" | awk -f {tmp}/path.awk'
    status, said, err = reduce(prog, src, out, path)
    ops = [n.op_type for n in onnx.load(out).graph.node]
    check("a path", status == 0 and ops == ["Sigmoid", "Add"], f"{ops} {said}{err}")
    check("a path: checker", common.checker_error(out, full=True) == "", common.checker_error(out, full=True))
    status, said, _ = reduce(prog, src, out, 'kill -SEGV $$')
    check("a crash is status 139", status == 0 and "1 nodes" in said and "status 139" in said, said)
    status, _, err = reduce(prog, src, tmp / "none.onnx", "true")
    check("nothing fails", status == 2 and "nothing fails" in err and not (tmp / "none.onnx").exists(), err)
    status, _, err = reduce(prog, src, tmp / "none.onnx", "/nonexistent/program")
    check("no such command", status == 2 and "cannot be run" in err, err)
    p = subprocess.run([prog, "reduce", str(src), "-o", str(out)], capture_output=True, text=True, timeout=60)
    check("optimize --check finds nothing in a sound model", p.returncode == 2 and "nothing fails" in p.stderr, p.stderr)


def old(prog, tmp):
    """Before IR version 4 initializers are inputs, and stay so."""
    m = chain(5)
    m.ir_version = 3
    m.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 3]))
    del m.opset_import[:]
    m.opset_import.append(helper.make_opsetid("", 8))
    onnx.save(m, tmp / "old.onnx")
    status, said, err = reduce(prog, tmp / "old.onnx", tmp / "out.onnx", has(" = Add("))
    small = onnx.load(tmp / "out.onnx")
    check("an old model", status == 0 and len(small.graph.node) == 1 and "w" in [i.name for i in small.graph.input] and
          common.checker_error(tmp / "out.onnx") == "", said + err + common.checker_error(tmp / "out.onnx"))


def main():
    args = common.arguments(__doc__.splitlines()[0])
    args.add_argument("--count", type=int, default=12)
    args = args.parse_args()
    prog = common.program(args)
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        chains(prog, Path(tmp))
        old(prog, Path(tmp))
        random_models(prog, Path(tmp), args.count)
    return check.closing()


if __name__ == "__main__":
    sys.exit(main())
