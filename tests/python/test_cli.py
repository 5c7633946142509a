"""The command line as people expect it: pipes, what goes where, hints, statuses (docs/command-line.md)."""
import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import common

CNN = common.ROOT / "models" / "channels_last_cnn.onnx"
failed = passed = skipped = 0


def check(what, ok):
    global failed, passed
    passed += bool(ok)
    failed += not ok
    print(what, "ok" if ok else "FAILED")


def skip(what, why):
    global skipped
    skipped += 1
    print(what, f"skipped: {why}")


def many(run, tmp):
    """Several models in one call."""
    good = [tmp / "a.onnx", tmp / "b.onnx"]
    for p in good:
        shutil.copy(CNN, p)
    bad, out, table = tmp / 'b"ad.onnx', tmp / "made", tmp / "t.csv"
    bad.write_bytes(b"x\n")
    status, text, err = run("optimize", *good, bad, "-o", f"{out}/", "--jobs", 2, "--csv", table)
    single = run("optimize", CNN, "-o", "-", "-q")[1]
    check("one that fails stops no other", status == 4 and [(out / p.name).read_bytes() for p in good] == [single, single])
    check("and leaves nothing behind", sorted(p.name for p in out.iterdir()) == ["a.onnx", "b.onnx"])
    check("one line says why", err == f"relayout: {bad}: not an ONNX model: it has no ir_version\n")
    check("a summary", b"3 models: 2 changed, 0 as they were, 1 failed" in text)
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    check("as CSV", [(r["input"], r["status"]) for r in rows] == [(str(good[0]), "0"), (str(good[1]), "0"), (str(bad), "4")]
          and rows[0]["conversions_after"] < rows[0]["conversions_before"] and rows[2]["error"])
    status, text, _ = run("optimize", *good, bad, "-o", out, "--json", "-")
    reports = json.loads(text)
    check("as JSON", status == 4 and reports["status"] == 4 and [m.get("changed") for m in reports["models"]] == [True, True, None]
          and reports["models"][2]["status"] == 4 and reports["models"][0]["output"]["path"] == str(out / "a.onnx"))
    other = tmp / "other"
    other.mkdir()
    shutil.copy(CNN, other / "a.onnx")
    status, _, err = run("optimize", good[0], other / "a.onnx", "-o", tmp / "twice")
    check("two models to one name", status == 2 and "would both go to" in err and not (tmp / "twice").exists())
    check("a text and a model to one name", run("optimize", tmp / "a.rlt", good[0], "-o", out)[0] == 2)
    check("a file is no folder", run("optimize", *good, "-o", table)[0] == 2 and table.read_text().startswith("input,"))
    check("no folder given", run("optimize", *good, bad)[0] == 2)
    check("stdin among them", run("optimize", "-", good[0], "-o", out)[0] == 2)
    check("one certificate for many", run("optimize", *good, "-o", out, "--proof", tmp / "p")[0] == 2)
    shutil.rmtree(out)
    out.mkdir()
    check("one model to a folder", run("optimize", CNN, "-o", out, "-q")[0] == 0 and [p.name for p in out.iterdir()] == [CNN.name])
    check("in place", run("optimize", *good, "-o", tmp, "-q")[0] == 0 and good[0].read_bytes() == good[1].read_bytes() == single)


def on_terminal(prog, *words, env=None):
    """What the program writes where stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    p = subprocess.Popen([prog, *map(str, words)], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **(env or {})})
    os.close(theirs)
    out = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        out += part
    p.wait()
    os.close(ours)
    return out


def colours(prog, run):
    esc = b"\x1b["
    check("no colour in a file", esc not in run("stats", "--help")[1])
    check("--color=always", esc in run("stats", "--color=always", "--help")[1])
    check("colour on a terminal", esc in on_terminal(prog, "stats", "--help", env={"NO_COLOR": ""}))
    check("--color=never on a terminal", esc not in on_terminal(prog, "stats", "--color", "never", "--help"))
    check("NO_COLOR", esc not in on_terminal(prog, "stats", "--help", env={"NO_COLOR": "1"}))
    check("a dumb terminal", esc not in on_terminal(prog, "stats", "--help", env={"TERM": "dumb", "NO_COLOR": ""}))
    check("the words of --color", "--color is auto, always or never, not 'red'" in run("stats", "--color", "red", CNN)[2])


BASH = """source /dev/stdin <<<"$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _relayout; printf '%s\\n' "${COMPREPLY[@]}"
"""

# What each shell must offer for a line's last word.
OFFERS = ((("op",), {"optimize", "ops"}), (("optimize", "--in"), {"--input-layout", "--input-shape"}), (("layout", "d"), {"describe", "draw"}),
          (("optimize", "--objective", ""), {"nodes", "bytes", "time"}), (("layout", "draw", "--to", ""), {"text", "svg"}),
          (("print", "x.onnx", "--after", "l"), {"legal", "lower"}), (("targets", "--target", "openv"), {"openvino"}))


def completion(prog, run, tmp):
    scripts = {shell: run("completion", shell)[1].decode() for shell in ("bash", "zsh", "fish")}
    names = run("completion", "words")[1].decode().split()
    check("words are the commands", {"optimize", "check-proof", "layout/draw"} <= set(names))
    for name in names:
        words = name.split("/")
        options = re.findall(r"^  (?:-\w,|   ) (--[a-z-]+)", run(*words, "--help")[1].decode(), re.M)
        for shell, text in scripts.items():
            missing = [o for o in options if (o if shell != "fish" else f"-l {o[2:]} ") not in text]
            if missing:
                check(f"{shell}: {name} has {missing}", False)
        check(f"{name} --help lists options", "--help" in options)
    for words, want in OFFERS:
        line = " ".join(words)
        got = subprocess.run(["bash", "-c", BASH, "bash", scripts["bash"], "relayout", *words], capture_output=True, text=True, cwd=tmp).stdout.split()
        check(f"bash: {line!r}", set(got) == want)
        if shutil.which("fish"):
            (tmp / "c.fish").write_text(scripts["fish"])
            got = subprocess.run(["fish", "-c", f"source c.fish; complete -C 'relayout {line}'"], capture_output=True, text=True, cwd=tmp).stdout
            check(f"fish: {line!r}", {x.split("\t")[0] for x in got.splitlines()} == want)
        else:
            skip(f"fish: {line!r}", "no fish")
    if shutil.which("zsh"):
        (tmp / "c.zsh").write_text(scripts["zsh"])
        check("zsh reads it", subprocess.run(["zsh", "-n", str(tmp / "c.zsh")], capture_output=True).returncode == 0)
    else:
        skip("zsh reads it", "no zsh")
    check("another shell", run("completion", "tcsh")[0] == 2)


def pages(run):
    tool = next((t for t in (["groff", "-man", "-ww", "-Tascii"], ["man", "--warnings=w", "-l", "-"]) if shutil.which(t[0])), None)
    for name in ["", *run("completion", "words")[1].decode().split()]:
        text = run(*name.split("/"), "--man")[1] if name else run("--man")[1]
        check(f"page of {name or 'relayout'}", text.startswith(b".TH RELAYOUT") and b".SH SYNOPSIS" in text and b".SH EXAMPLES" in text)
        if tool:
            r = subprocess.run(tool, input=text, capture_output=True)
            check("  troff has nothing against it", r.returncode == 0 and not r.stderr)
    if not tool:
        skip("troff has nothing against the pages", "neither groff nor man")


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
        (Path(tmp) / "many").mkdir()
        many(run, Path(tmp) / "many")
        colours(prog, run)
        completion(prog, run, Path(tmp))
        pages(run)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
