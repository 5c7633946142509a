"""Names. Control characters in them reach no terminal, nor break a line in two: what each command prints of them. And what is made in a body has no name of
outside, though an input of it may have had one."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from onnx import helper as h

import common

check = common.Checks()


def names(run, tmp):
    evil = "\x1b[31m\n\x07\x9bminimum 0"
    nodes = [h.make_node("Transpose", ["x" + evil], ["t"], perm=[1, 0], name="t" + evil), h.make_node("Softmax", ["t"], ["s" + evil], axis=-1),
             h.make_node("Transpose", ["s" + evil], ["y" + evil], perm=[1, 0], name="u" + evil)]
    ports = [h.make_tensor_value_info(n + evil, 1, [2, 3]) for n in "xy"]

    def made(name):
        graph = h.make_graph(nodes, "g", ports[:1], ports[1:])
        (tmp / name).write_bytes(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString())
        return tmp / name

    model = made("m.onnx")
    for words in (["stats"], ["explain"], ["print"], ["run"], ["dot"], ["stats", "--json", "-"], ["explain", "--json", "-"], ["bench", "--runs", 1],
                  ["optimize", "-o", tmp / "o.onnx", "--input-layout", f"x{evil}=ba"]):
        status, out, err = run(words[0], model, *words[1:])
        bad = re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", out)
        alike = [line for line in out.splitlines() if line.startswith(b"minimum 0")]
        check(f"names in {words[0]}: {bad}, {alike}", status == 0 and not bad and not alike and not err)
    nodes[0].attribute[0].ints[:] = [1, 1]
    check("names in an error", run("stats", made("bad.onnx"))[2] == f"relayout: {tmp}/bad.onnx: node 't?[31m????minimum 0' (Transpose): perm is no permutation\n")


def hidden(run, tmp):
    case = (common.ROOT / "tests" / "text" / "control" / "loop_input_hides.rlt").read_text()
    (tmp / "hides.rlt").write_text(case[case.index("graph {"):case.index("----")])
    check("a name in a body", run("optimize", tmp / "hides.rlt", "-o", tmp / "o.onnx", "--target", "onnx")[0] == 0)
    graph = onnx.load(tmp / "o.onnx").graph
    made = [o for n in common.every_node(graph) for o in n.output if o]
    check(f"  is none of outside: {made}", len(made) == len(set(made)) and any(n.op_type == "Transpose" for n in common.every_node(graph)))
    onnx.checker.check_model(str(tmp / "o.onnx"), full_check=True)


def main():
    prog = common.program(common.arguments(__doc__).parse_args())

    def run(*words):
        r = subprocess.run([prog, *map(str, words)], capture_output=True)
        return r.returncode, r.stdout, r.stderr.decode()

    with tempfile.TemporaryDirectory() as tmp:
        names(run, Path(tmp))
        hidden(run, Path(tmp))
    return check.closing()


if __name__ == "__main__":
    sys.exit(main())
