"""The command line as people expect it: pipes, what goes where, hints, statuses (docs/command-line.md)."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import common

CNN = common.ROOT / "models" / "channels_last_cnn.onnx"
failed = passed = 0


def check(what, ok):
    global failed, passed
    passed += bool(ok)
    failed += not ok
    print(what, "ok" if ok else "FAILED")


def main():
    prog = common.program(common.arguments(__doc__).parse_args())

    def run(*words, stdin=None):
        r = subprocess.run([prog, *map(str, words)], input=stdin, capture_output=True)
        return r.returncode, r.stdout, r.stderr.decode()

    with tempfile.TemporaryDirectory() as tmp:
        file = Path(tmp) / "out.onnx"
        model = CNN.read_bytes()
        status, out, err = run("optimize", CNN, "-o", file)
        made = file.read_bytes()
        check("a table on stdout, nothing on stderr", status == 0 and b"conversions needed" in out and not err)
        status, out, err = run("optimize", "-", "-o", "-", stdin=model)
        check("a model from stdin to stdout, the table on stderr", status == 0 and out == made and "conversions needed" in err)
        check("the same with -q, and no table", run("optimize", "-", "-", "-q", stdin=model) == (0, made, ""))
        check("what is not better goes through as it is", run("optimize", "-", "-o", "-", "-q", stdin=made) == (0, made, ""))
        turned = run("optimize", CNN, "-o", "-", "-q", "--input-layout", "image=nhwc->nchw")[1]
        check("a changed interface goes to stdout, too", turned not in (made, model, b""))
        check("-q to a file", run("optimize", CNN, "-q", "-o", file) == (0, b"", ""))
        status, out, _ = run("optimize", CNN, "-o", file, "--json", "-")
        check("JSON on stdout, alone", status == 0 and json.loads(out)["changed"])
        status, out, err = run("optimize", CNN, "-o", "-", "--json", "-")
        check("two things to stdout", status == 2 and not out and "only one thing can go to stdout" in err)
        check("stats of stdin", run("stats", "-", stdin=model)[1] == run("stats", CNN)[1])
        check("explain of stdin", run("explain", "-", stdin=model)[1].splitlines()[1:] == run("explain", CNN)[1].splitlines()[1:])
        check("stdin that is no model",
              run("stats", "-", stdin=b"x\n") == (4, b"", "relayout: stdin: not an ONNX model: it has no ir_version\n"))
        check("run wants a file", run("run", "-", stdin=model)[0] == 2)
        status, out, err = run("optimize", CNN, "-v", "-o", file)
        steps = all(f"  {p}: " in err for p in ("normalize", "legal", "assign", "lower"))
        check("-v says the steps on stderr", status == 0 and b"conversions needed" in out and steps)

        for words, says in ((["optimise", CNN], "no command 'optimise'; did you mean optimize?"),
                            (["optimize", CNN, "--input-layuot", "x=nhwc"], "no option --input-layuot; did you mean --input-layout?"),
                            (["stats", CNN, "--taget=onnx"], "no option --taget; did you mean --target?"),
                            (["stats", CNN, "--frobnicate"], "no option --frobnicate;"),
                            (["stats", CNN, "-x"], "no option -x"),
                            (["optimize", CNN, "-o"], "-o wants a value"),
                            (["optimize", CNN, "--target"], "--target wants a value"),
                            (["optimize", CNN, "--verbose=3"], "--verbose takes no value")):
            status, out, err = run(*words)
            check(says, status == 2 and not out and err.count("\n") == 1 and says in err)
        status, out, err = run("model-that-is-not-there.onnx", file)
        check("a file that is missing is no command", status == 3 and "did you mean" not in err)
        check("a word far from all is no command either", "did you mean" not in run("zzzzzz", file)[2])
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
