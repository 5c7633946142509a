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

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import common

CNN = common.ROOT / "models" / "channels_last_cnn.onnx"
check = common.Checks()


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
    status, _, err = run("optimize", *good)
    check("nor for two, of which none is written over", status == 2 and "where does the result go? -o DIR/" in err and good[1].read_bytes() == CNN.read_bytes())
    check("IN OUT, without a command", run(good[0], tmp / "short.onnx", "-q")[0] == 0 and (tmp / "short.onnx").read_bytes() == single)
    check("stdin among them", run("optimize", "-", good[0], "-o", out)[0] == 2)
    check("one certificate for many", run("optimize", *good, "-o", out, "--proof", tmp / "p")[0] == 2)
    shutil.rmtree(out)
    out.mkdir()
    check("one model to a folder", run("optimize", CNN, "-o", out, "-q")[0] == 0 and [p.name for p in out.iterdir()] == [CNN.name])
    status, text, _ = run("optimize", CNN, "-o", f"{tmp}/new/", "--csv", "-", "-q")
    check("a pattern that is one model", status == 0 and len(text.splitlines()) == 2 and (tmp / "new" / CNN.name).read_bytes() == single)
    status, _, _ = run("optimize", CNN, "-o", tmp / "newest", "--csv", tmp / "one.csv", "--json", tmp / "one.json", "-q")
    check("and JSON as of several", status == 0 and len(json.loads((tmp / "one.json").read_text())["models"]) == 1 and (tmp / "newest" / CNN.name).read_bytes() == single
          and len((tmp / "one.csv").read_text().splitlines()) == 2)
    run("optimize", CNN, "-o", f"{tmp}/newest/", "--json", tmp / "one.json", "-q")
    check("but of one without a summary", json.loads((tmp / "one.json").read_text())["schema"] == "relayout.report/1")
    for out in ("-", tmp / "no.onnx", table):
        check(f"a summary, and no folder ({Path(out).name})", "--csv is for several models" in run("optimize", CNN, "-o", out, "--csv", tmp / "no.csv")[2] and not (tmp / "no.csv").exists())
    check("a folder that is not there", run("optimize", CNN, "-o", f"{tmp}/newer/", "-q")[0] == 0 and (tmp / "newer" / CNN.name).read_bytes() == single)
    check("in place", run("optimize", *good, "-o", tmp, "-q")[0] == 0 and good[0].read_bytes() == good[1].read_bytes() == single)


def dying(prog, run, tmp):
    """A model's process that is killed: a limit on what it may write ends it by a signal."""
    small, large = weights_model(tmp / "small.onnx", n=64), weights_model(tmp / "large.onnx", n=1 << 16)
    r = subprocess.run(["sh", "-c", 'ulimit -f 8; "$@"; exit $?', "sh", prog, "optimize", str(large), str(small), "-o", str(tmp / "out")], capture_output=True)
    check("a process that dies stops no other", r.returncode == 1 and b"its process ended by signal" in r.stderr and b"1 changed" in r.stdout
          and (tmp / "out/small.onnx").exists() and not (tmp / "out/large.onnx").exists())


def outputs(run, tmp):
    """What is written goes over nothing that is read, but a model over its own file; no two outputs go to one place."""
    model, link, new = tmp / "m.onnx", tmp / "link.onnx", tmp / "new"
    shutil.copy(CNN, model)
    os.link(model, link)
    for words in (["report", "-o"], ["dot", "--svg", "-o"], ["stats", "--json"], ["explain", "--json"], ["bench", "--json"],
                  ["optimize", "-o", new, "--proof"], ["optimize", "-o", new, "--json"], ["profile", "--plan"]):
        for path in (model, link):
            status, out, err = run(words[0], model, *words[1:], path)
            check(f"{words[0]} {words[-1]} over the model", status == 2 and not out and "would write over" in err)
    check("and the model is as it was", model.read_bytes() == CNN.read_bytes() and not new.exists())
    for words in (["-o", new, "--json", new], ["-o", new, "--json", tmp / "x", "--proof", tmp / "x"], [new, "--proof", new]):
        status, _, err = run(*(["optimize"] if words[0] == "-o" else []), model, *words)
        check("two outputs to one file", status == 2 and "would both go to" in err and not new.exists())
    check("a device takes what comes", run("optimize", model, "-o", new, "-q", "--json", "/dev/null", "--proof", "/dev/null") == (0, b"", ""))
    status, _, err = run("optimize", model, new, "-o", tmp / "out.onnx")
    check("a folder that is called like a model", status == 2 and "called like a model" in err and not (tmp / "out.onnx").exists())
    proof = run("optimize", model, "-o", new, "--proof", "-")[1]
    check("a certificate on stdout, alone", proof.startswith(b"relayout.proof/") and proof.endswith(b"end\n"))
    check("and from stdin", run("check-proof", "-", model, new, stdin=proof)[1].startswith(b"proved: 1 conversion, "))
    turned = run("optimize", model, "-o", new, "-q", "--input-layout", "image=adbc", "--proof", "-")[1]
    check_turned = lambda *words: run("check-proof", "-", model, new, *words, stdin=turned)
    status, _, err = check_turned()
    check("a certificate of another interface", status == 7 and "asked for here, too" in err)
    status, out, _ = check_turned("--input-layout", "image=adbc")
    check("of the one that is asked for", status == 0 and out.startswith(b"proved: "))
    check("of a third one", check_turned("--input-layout", "image=acbd")[0] == 7)
    check("of no order", check_turned("--input-layout", "image=free")[0] == 2 and check_turned("--input-layout", "picture=adbc")[0] == 2)
    (tmp / "x.plan").write_text("hello\n")
    status, _, err = run("run", model, "--plan", tmp / "x.plan")
    check("a plan that is none", status == 4 and f"{tmp}/x.plan: no plan: its first line" in err)
    check("a report where there is no folder", run("stats", model, "--json", tmp / "none/x")[0] == 3
          and "none/x: cannot write: No such file" in run("optimize", model, "-o", new, "--json", tmp / "none/x")[2])
    check("a path that none can be as long as", "cannot write: File name too long" in run("optimize", model, "-o", new, "--json", f"{tmp}/{'x/' * 2500}y")[2])


def inputs(run, tmp):
    """What is written goes over no file that is read, nor two things to one: external data, files of options."""
    kept = weights_model(tmp / "e/m.onnx", "w.bin")
    model, blob, out = kept.read_bytes(), (tmp / "e/w.bin").read_bytes(), tmp / "e/out.onnx"
    os.link(tmp / "e/w.bin", tmp / "again.bin")
    (tmp / "mine.def").write_bytes(run("targets", "--target", "onnx")[1].replace(b"onnx", b"mine"))
    shutil.copy(tmp / "mine.def", tmp / "mine.txt")
    np.save(tmp / "x.npy", np.zeros([2, 64], np.float32))
    data, mine, x = tmp / "again.bin", tmp / "mine.def", tmp / "x.npy"
    os.unlink(data)
    data.symlink_to("e/w.bin")
    refused = ((["optimize", "-o", data], "--output would write over"), (["optimize", "-o", out, "--proof", data], "--proof would write over"),
               (["optimize", "-o", out, "--json", data], "--json would write over"), (["report", "-o", data], "--output would write over"),
               (["dot", "-o", data], "--output would write over"), (["stats", "--json", data], "--json would write over"),
               (["explain", "--json", data], "--json would write over"), (["profile", "-o", data], "--output would write over"),
               (["profile", "--plan", data], "--plan would write over"), (["bench", "--json", data], "--json would write over"),
               (["reduce", "-o", data, "--if", "false"], "--output would write over"), (["optimize", "-o", f"{tmp}/./e/../e/w.bin"], "--output would write over"),
               (["optimize", "-o", out, "--target", mine, "--json", mine], "mine.def, which --target reads"), (["optimize", "-o", mine, "--target", mine], "which --target reads"),
               (["stats", "--target", tmp / "mine.txt", "--json", tmp / "mine.txt"], "which --target reads"),
               (["bench", "--input", f"x={x}", "--json", x], "x.npy, which --input reads"),
               (["optimize", "-o", tmp / "new", "--json", f"{tmp}/./new"], "would both go to"),
               (["optimize", "-o", out, "--external-data", "new.bin", "--json", tmp / "e/new.bin"], "would both go to"),
               (["optimize", "-o", out, "--external-data", "new.bin", "--proof", tmp / "e/new.bin"], "would both go to"),
               (["optimize", "-o", tmp / "far.onnx", "--json", tmp / "w.bin"], "would both go to"),
               (["optimize", "-o", tmp / "w.bin"], "that is the model itself"), (["optimize", "-o", out, "--external-data", "./out.onnx"], "that is the model itself"),
               (["optimize", "-o", out, "--external-data", "../mine.def", "--target", mine], "beneath the model's folder"),
               (["optimize", "-o", tmp / "far.onnx", "--external-data", "mine.def", "--target", mine], "would both go to"))
    before = sorted(tmp.rglob("*"))
    for words, says in refused:
        status, text, err = run(words[0], kept, *words[1:])
        check(f"{words[0]} {' '.join(str(w).replace(str(tmp), '') for w in words[1:])}: {says}", status == 2 and not text and says in err and err.count("\n") == 1 and sorted(tmp.rglob("*")) == before)
        if sorted(tmp.rglob("*")) != before:
            print(err, set(tmp.rglob("*")) - set(before))
            before = sorted(tmp.rglob("*"))
    check("all is as it was", kept.read_bytes() == model and (tmp / "e/w.bin").read_bytes() == blob and data.is_symlink())
    for words in (["a.onnx", "b.onnx", "-o", "many/", "--json", "many/a.onnx"], ["a.onnx", "-o", "many/", "--json", "many/a.onnx"], ["a.onnx", "b.onnx", "-o", "many", "--csv", "many/b.onnx"]):
        (tmp / "many").mkdir(exist_ok=True)
        shutil.copy(CNN, tmp / "a.onnx")
        shutil.copy(CNN, tmp / "b.onnx")
        status, _, err = run("optimize", *(w if w[0] == "-" else tmp / w if w != "many/" else f"{tmp}/many/" for w in words))
        check(f"optimize {' '.join(words)}", status == 2 and "would both go to" in err and not list((tmp / "many").iterdir()))
    status, _, err = run("optimize", kept, tmp / "a.onnx", "-o", tmp / "many", "--json", tmp / "many/w.bin")
    check("of several, data and the summary", status == 2 and "would both go to" in err and [p.name for p in (tmp / "many").iterdir() if p.suffix == ".onnx"] == ["a.onnx"])


def given(run, tmp):
    """Files for inputs that are not what the model declares are no fault of the model's."""
    good = np.zeros([2, 96, 96, 3], np.float32)
    for name, x, how, says in (("f64", good.astype(np.float64), [], "has f64[2,96,96,3], and the model wants f32[batch,96,96,3]"),
                               ("rank", good[0], [], "has f32[96,96,3], and the model wants f32[batch,96,96,3]"),
                               ("dim", good[:, :3], [], "has f32[2,3,96,3], and the model wants f32[batch,96,96,3]"),
                               ("batch", good, ["--dim", "batch=3"], "has f32[2,96,96,3], and the model wants f32[3,96,96,3]")):
        file = tmp / f"{name}.npy"
        np.save(file, x)
        for words in (["run", CNN], ["verify", CNN, CNN], ["bench", CNN, "--runs", 1]):
            status, text, err = run(*words, "--input", f"image={file}", *how)
            check(f"{words[0]}: an input of another {name}", status == 2 and not text and f"input 'image': {file} {says}" in err and err.count("\n") == 1)
    np.save(tmp / "good.npy", good)
    check("and one that fits", run("run", CNN, "--input", f"image={tmp}/good.npy", "--dim", "batch=2")[0] == 0 and run("run", CNN, "--input", f"image={tmp}/good.npy")[0] == 0)


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


def weights_model(path, data=None, n=4096):
    """Two products behind Transposes that cancel: weights of n floats inline, or in the file `data` beside it (one of them small)."""
    r = np.random.default_rng(0)
    sizes, inits, at = {"a/w": (64, n // 64), "small": (4,)}, [], 0
    blob = b""
    for name, shape in sizes.items():
        w = r.standard_normal(shape).astype(np.float32)
        t = numpy_helper.from_array(w, name)
        if data:
            t.ClearField("raw_data")
            t.data_location = TensorProto.EXTERNAL
            for k, v in (("location", data), ("offset", str(len(blob))), ("length", str(w.nbytes))):
                e = t.external_data.add()
                e.key, e.value = k, v
        blob += w.tobytes()
        inits.append(t)
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Relu", ["t"], ["r"]),
             helper.make_node("Transpose", ["r"], ["u"], perm=[1, 0]), helper.make_node("MatMul", ["u", "a/w"], ["m"]),
             helper.make_node("ReduceSum", ["small"], ["s"], keepdims=0), helper.make_node("Mul", ["m", "s"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [2, 64])], [helper.make_tensor_value_info("y", 1, [2, n // 64])], inits)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    if data:
        (path.parent / data).write_bytes(blob)
    return path


def streams(prog, tmp):
    """What is open already, under its names, is written behind what is there; pipes are read as stdin is."""
    def sh(line, text=b""):
        r = subprocess.run(["bash", "-c", line], input=text, capture_output=True, cwd=tmp, env={**os.environ, "R": prog, "IN": str(CNN)})
        return r.returncode, r.stdout, r.stderr.decode()

    single = sh('"$R" optimize "$IN" -o - -q')[1]
    for name, fd in (("/dev/stdout", 1), ("/dev/fd/1", 1), ("/proc/self/fd/1", 1), ("/dev/stderr", 2), ("/dev/fd/3", 3)):
        status, _, err = sh(f'(echo before; "$R" optimize "$IN" -o z.onnx -q --json {name}; echo after) {fd}>log' + ("" if fd == 1 else f" >&{fd}"))
        log = (tmp / "log").read_bytes()
        check(f"--json {name} to a log", status == 0 and not err and log.startswith(b"before\n{") and log.endswith(b"}\nafter\n")
              and json.loads(log[7:-6])["changed"] and (tmp / "z.onnx").read_bytes() == single)
    for words, want in (("-o /dev/stdout", single), ("-o /dev/fd/1 -q", single)):
        status, out, err = sh(f'"$R" optimize "$IN" {words} | cat')
        check(f"optimize {words} to a pipe", status == 0 and out == want and ("conversions needed" in err) == ("-q" not in words))
    for words in ("optimize $IN -o z --json /dev/stdout", "stats $IN --json /dev/stdout", "explain $IN --json /dev/stdout", "bench $IN --runs 1 --json /dev/stdout"):
        status, out, _ = sh(f'"$R" {words} | cat')
        check(f"{words} to a pipe", status == 0 and json.loads(out))
    for name in ("/dev/fd/3", "/proc/self/fd/3"):
        check(f"-o {name}", sh(f'(printf x >&3; "$R" optimize "$IN" -o {name} -q; printf y >&3) 3>three')[0] == 0 and (tmp / "three").read_bytes() == b"x" + single + b"y")
    check("a certificate and a picture", sh('"$R" optimize "$IN" -o z --proof /dev/stdout | "$R" check-proof - "$IN" z')[0] == 0
          and sh('"$R" layout draw "i8[1,8,2,2]@NCHW4" --to svg -o /dev/stdout; "$R" layout draw "i8[1,8,2,2]@NCHW4" -o -')[1].count(b"</svg>") == 1 and not (tmp / "-").exists())
    check("a summary of several", sh('cp "$IN" a.onnx; "$R" optimize a.onnx "$IN" -o many -q --csv /dev/stdout | wc -l')[1].strip() == b"3")
    for words in ("-o /dev/stdout --json -", "-o - --json /dev/fd/1", "-o z --json /dev/stdout --proof /proc/self/fd/1"):
        check(words, "only one thing can go to stdout" in sh(f'"$R" optimize "$IN" {words}')[2])
    status, _, err = sh('"$R" optimize "$IN" -o new.onnx --json /dev/fd/9')
    check("what is not open", status == 3 and "/dev/fd/9: cannot write: Bad file descriptor" in err and not (tmp / "new.onnx").exists())
    weights_model(tmp / "e" / "m.onnx", "w.bin")
    status, out, _ = sh('"$R" optimize e/m.onnx -o /dev/fd/3 -q 3>open.onnx; "$R" optimize e/m.onnx -o - -q')
    check("data of what goes to an open file stays", status == 0 and (tmp / "open.onnx").read_bytes() == out and not Path("/dev/w.bin").exists())
    check("and has no folder", "has no folder" in sh('"$R" optimize e/m.onnx -o /dev/fd/3 -q --external-data v.bin 3>open.onnx')[2])

    model = CNN.read_bytes()
    for line in ('cat "$IN" | "$R" stats /dev/stdin', '"$R" stats <(cat "$IN")', '"$R" stats - <"$IN"', 'mkfifo p; cat "$IN" >p & "$R" stats p', '"$R" stats /dev/stdin <"$IN"'):
        check(line, sh(line)[1] == sh('"$R" stats "$IN"')[1])
    check("optimize of a pipe", sh('"$R" optimize <(cat "$IN") -o o.onnx -q --check')[0] == 0 and (tmp / "o.onnx").read_bytes() == single)
    check("more than one reading", sh('"$R" explain <(cat "$IN")')[0] == 0 and sh('"$R" optimize <(cat "$IN") -o - -q --input-layout "image=nhwc->nchw" | "$R" stats /dev/stdin')[0] == 0)
    check("all of check-proof's", sh('"$R" optimize "$IN" -o o.onnx -q --proof o.cert; "$R" check-proof <(cat o.cert) <(cat "$IN") <(cat o.onnx)')[1].startswith(b"proved:"))
    check("its second", sh('"$R" check-proof o.cert - o.onnx', model)[0] == 0 and sh('"$R" check-proof o.cert "$IN" - <o.onnx')[0] == 0)
    check("verify, run and bench", sh('"$R" verify - o.onnx && "$R" verify "$IN" /dev/stdin <o.onnx && "$R" verify <(cat "$IN") <(cat o.onnx)', model)[0] == 0
          and sh('"$R" run - && "$R" bench <(cat "$IN") --runs 1', model)[0] == 0)
    check("two from stdin", "only one thing can come from stdin" in sh('"$R" verify - -', model)[2])
    status, _, err = sh('"$R" stats <(echo x)')
    check("a pipe that has no model", status == 4 and re.fullmatch(r"relayout: /dev/fd/\d+: not an ONNX model: it has no ir_version\n", err))
    for line in ('"$R" compare <(cat "$IN")', '"$R" reduce - -o z --if false', '"$R" profile <(cat "$IN")'):
        status, _, err = sh(line)
        check(line, status == 2 and "wants its model as a file" in err)
    check("devices are no models", "not a regular file" in sh('"$R" stats /dev/zero')[2])
    check("a target by a pipe", "not a regular file" in sh('mkfifo t.def; "$R" targets >t.def & "$R" stats "$IN" --target t.def')[2])


def beside(prog, run, tmp):
    """Models of other folders whose data has one name, written at the same time: none goes over another's, and what one drops none has."""
    models = [weights_model(tmp / x / f"m{x}.onnx", "w.bin", 1 << 20) for x in "ab"]
    mine, other = (tmp / "a/w.bin").read_bytes(), bytes(1 << 20) + (tmp / "b/w.bin").read_bytes()[1 << 20:]
    (tmp / "b/w.bin").write_bytes(other)

    def whole(out):
        return {p.name for p in out.iterdir()}, (out / "w.bin").read_bytes()

    for k in range(8):
        out = tmp / f"out{k}"
        out.mkdir()
        if k % 2:
            runs = [subprocess.Popen([prog, "optimize", str(m), "-o", str(out / m.name)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for m in models]
            said = [p.communicate()[1] for p in runs]
            statuses, err = sorted(p.returncode for p in runs), b"".join(said).decode()
        else:
            status, _, err = run("optimize", *models, "-o", out, "--jobs", 2)
            statuses = [0, status]
        names, data = whole(out)
        check(f"data of one name, {'two calls' if k % 2 else 'one call'}", statuses == [0, 3] and "a file with other contents is in its place" in err
              and (names, data) in (({"ma.onnx", "w.bin"}, mine), ({"mb.onnx", "w.bin"}, other)))
    (tmp / "b/w.bin").write_bytes(mine)
    for k in range(8):
        out = tmp / f"drop{k}"
        (out / "ma.onnx").mkdir(parents=True)
        status, _, err = run("optimize", *models, "-o", out, "--jobs", 2)
        check("what fails drops no other's data", status == 3 and "Is a directory" in err and whole(out) == ({"ma.onnx", "mb.onnx", "w.bin"}, mine))


def lost(prog):
    """A full stdout: every command says so."""
    for words in (["--help"], ["--man"], ["stats", "--help"], ["run", "--man"], ["--version"], ["stats", "--version"], ["passes"], ["ops"], ["targets"], ["completion", "zsh"],
                  ["completion", "words"], ["layout", "describe", "f32[2]"], ["layout", "draw", "f32[2]"], ["layout", "compare", "f32[2]", "f32[2]"],
                  ["layout", "offset", "f32[2]", "--index", "1"], ["bench-move", "--list"], ["stats", CNN]):
        with open("/dev/full", "w") as full:
            r = subprocess.run([prog, *map(str, words)], stdout=full, stderr=subprocess.PIPE)
        check(f"{' '.join(map(str, words))} to a full stdout", (r.returncode, r.stderr) == (3, f"relayout: {f'{CNN}: ' if CNN in words else ''}stdout: No space left on device\n".encode()))


def external(run, tmp):
    """--external-data: where weights go, and that nothing of the input is lost."""
    want = {t.name: numpy_helper.to_array(t) for t in onnx.load(weights_model(tmp / "in" / "inline.onnx")).graph.initializer}
    kept = weights_model(tmp / "in" / "m.onnx", "m.bin")
    blob = (tmp / "in/m.bin").read_bytes()

    def made(name, src, how, folder="out"):
        dst = tmp / folder / name
        dst.parent.mkdir(exist_ok=True)
        status, _, err = run("optimize", src, "-o", dst, "-q", "--external-data", how)
        if status:
            return err
        model = onnx.load(dst)
        onnx.checker.check_model(str(dst))
        same = all(np.array_equal(numpy_helper.to_array(t), want[t.name]) for t in model.graph.initializer) and len(model.graph.initializer) == 2
        bare = onnx.load(dst, load_external_data=False)
        out = {t.name: t.data_location == TensorProto.EXTERNAL and {e.key: e.value for e in t.external_data} for t in bare.graph.initializer}
        return out if same and sum(n.op_type == "Transpose" for n in model.graph.node) == 0 else "other weights"

    for src in (kept, tmp / "in/inline.onnx"):
        what = src.stem
        check(f"{what}: to one file", made("a.onnx", src, "w.bin") == {"a/w": {"location": "w.bin", "offset": "0", "length": "16384"}, "small": False})
        check(f"{what}: to a file each", made("b.onnx", src, "data/") == {"a/w": {"location": "data/a_w", "offset": "0", "length": "16384"}, "small": False})
        check(f"{what}: into the model", made("c.onnx", src, "inline") == {"a/w": False, "small": False})
        check(f"{what}: as it is", made("d.onnx", src, "keep", f"keep_{what}") not in (None, "other weights"))
    check("a file goes along to another folder", (tmp / "keep_m/m.bin").read_bytes() == blob and not (tmp / "keep_inline/m.bin").exists())
    check("done again, the same", made("a.onnx", kept, "w.bin")["small"] is False)
    check("the same data for another model", made("f.onnx", kept, "w.bin")["small"] is False)
    (tmp / "out/w.bin").write_bytes(b"mine")
    err = made("g.onnx", kept, "w.bin")
    check("other data, which may be another model's", "w.bin: the model's external data goes here, but a file with other contents is in its place" in err
          and (tmp / "out/w.bin").read_bytes() == b"mine" and not (tmp / "out/g.onnx").exists())
    check("where the model is replaced, its data is", made("a.onnx", kept, "w.bin")["small"] is False and (tmp / "out/w.bin").read_bytes() != b"mine")
    other = made("e.onnx", tmp / "out/a.onnx", "moved.bin", "out2")
    check("what is optimized already is moved, too", other["a/w"]["location"] == "moved.bin" and not (tmp / "out2/w.bin").exists())
    for how, says in (("m.bin", "a file of the input"), ("../w.bin", "beneath the model's folder"), ("/w.bin", "beneath the model's folder"),
                      ("n.onnx", "the model itself"), ("", "beneath the model's folder")):
        err = made("n.onnx", kept, how, "in")
        check(f"--external-data '{how}': {says}", says in err and not (tmp / "in/n.onnx").exists())
    check("the input's data is as it was", (tmp / "in/m.bin").read_bytes() == blob)
    check("in place, to another file", made("m.onnx", kept, "new.bin", "in")["a/w"]["location"] == "new.bin" and (tmp / "in/m.bin").read_bytes() == blob)
    check("no folder for stdout", run("optimize", kept, "-o", "-", "--external-data", "w.bin")[0] == 2)
    whole = tmp / "out/whole.onnx"
    check("into the model, to a file", run("optimize", kept, "-o", whole, "-q", "--external-data", "inline")[0] == 0)
    check("into the model, to stdout", run("optimize", kept, "-o", "-", "-q", "--external-data", "inline") == (0, whole.read_bytes(), ""))
    shutil.copy(tmp / "out/a.onnx", tmp / "out/done.onnx")
    check("also where nothing improved", onnx.load_from_string(run("optimize", tmp / "out/done.onnx", "-o", "-", "-q", "--external-data", "inline")[1]).graph.node
          == onnx.load(tmp / "out/done.onnx").graph.node)
    (tmp / "in/bad").mkdir()
    weights_model(tmp / "in/bad/m.onnx", "m.bin")
    (tmp / "in/bad/m.bin").write_bytes(blob[:-1])
    check("too short a file", "the file has" in made("m.onnx", tmp / "in/bad/m.onnx", "w.bin", "short") and not list((tmp / "short").iterdir()))
    large(run, tmp / "large")


def sizes(run, tmp):
    """--dim and --input-shape: the result has the sizes that it was made for."""
    def declared(path):
        return [[d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in (*onnx.load(path).graph.input, *onnx.load(path).graph.output)]

    out, again, turn = tmp / "out.onnx", tmp / "again.onnx", tmp / "turn.onnx"
    for words in (["--dim", "batch=2"], ["--input-shape", "image=2,96,96,3"]):
        check(f"{words[0]}: both ports", run("optimize", CNN, "-o", out, *words)[0] == 0 and declared(out) == [[2, 96, 96, 3], [2, 10]])
        onnx.checker.check_model(str(out), full_check=True)
        check("  the original is run with the same", run("verify", CNN, out)[0] == 0 and run("verify", out, CNN)[0] == 0)
        check("  and says so", run("verify", CNN, out, *words)[0] == 0)
        check("  nothing to do again", run("optimize", out, "-o", again)[0] == 0 and again.read_bytes() == out.read_bytes())
    small = tmp / "small.onnx"
    node = helper.make_node("Relu", ["x"], ["y"])
    ports = [helper.make_tensor_value_info(n, 1, ["n", None, 4]) for n in "xy"]
    small.write_bytes(helper.make_model(helper.make_graph([node], "g", ports[:1], ports[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    status, text, _ = run("optimize", small, "-o", out, "--dim", "n=3", "--json", "-")
    check("also where nothing improved", status == 0 and json.loads(text)["changed"] and declared(out) == [[3, "", 4], [3, "", 4]])
    check("to stdout, too", run("optimize", small, "-o", "-", "--dim", "n=3", "-q")[1] == out.read_bytes())
    for words, how in (([], b"byte for byte"), (["--external-data", "inline"], b"written anew")):
        check(f"nothing improved: {how.decode()}", b"the output is the input, " + how in run("optimize", small, "-o", again, *words)[1])
    other = onnx.load(small)
    other.graph.node[0].domain, other.graph.node[0].op_type = "acme", "Thing"
    other.opset_import.add(domain="acme", version=1)
    again.write_bytes(other.SerializeToString())
    check("verify says whose node it is", all(f"{again}: node" in run("verify", *two)[2] for two in ((small, again), (again, small))))
    check("what is a number already", run("optimize", out, "-o", again, "--input-shape", "x=3,5,4")[0] == 0 and declared(again)[0] == [3, 5, 4]
          and run("optimize", again, "-o", out, "--input-shape", "x=3,5,4", "--json", "-")[1].count(b'"changed": false') == 1)
    check("in another order", run("optimize", CNN, "-o", turn, "--dim", "batch=2", "--input-layout", "image=nhwc->nchw")[0] == 0 and declared(turn) == [[2, 3, 96, 96], [2, 10]])
    check("a certificate", run("optimize", CNN, "-o", out, "--dim", "batch=2", "--proof", tmp / "p")[0] == 0
          and run("check-proof", tmp / "p", CNN, out, "--dim", "batch=2")[0] == 0)
    check("a symbol that is none", run("verify", CNN, out, "--dim", "bath=2")[0] == 2)
    # The graph stays as it is, and a function of it does not.
    function = helper.make_function("d", "F", ["x"], ["y"], [helper.make_node("Transpose", ["x"], ["a"], perm=[1, 0]), helper.make_node("Relu", ["a"], ["b"]),
                                                             helper.make_node("Transpose", ["b"], ["y"], perm=[1, 0])], [helper.make_opsetid("", 17)])
    ports = [helper.make_tensor_value_info(n, 1, ["n", 4]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("F", ["x"], ["z"], domain="d"), helper.make_node("Neg", ["z"], ["y"])], "g", ports[:1], ports[1:])
    onnx.save(helper.make_model(graph, functions=[function], opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("d", 1)], ir_version=8), small)
    check("functions", run("optimize", small, "-o", out, "--dim", "n=3")[0] == 0 and declared(out) == [[3, 4], [3, 4]]
          and [n.op_type for n in onnx.load(out).functions[0].node] == ["Relu"])


def large(run, tmp):
    """3 GB of weights, most of them holes; 64 MB without any: neither comes through this process's memory."""
    n = 3 << 28
    (tmp / "out").mkdir(parents=True)
    most = json.loads(run("optimize", CNN, "-o", tmp / "small.onnx", "--json", "-")[1])["peak_bytes"] + (16 << 20)
    tensor = TensorProto(name="w", data_type=1, dims=[1024, n // 1024], data_location=TensorProto.EXTERNAL)
    for k, v in (("location", "w.bin"), ("length", str(4 * n))):
        e = tensor.external_data.add()
        e.key, e.value = k, v
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Relu", ["t"], ["r"]),
             helper.make_node("Transpose", ["r"], ["u"], perm=[1, 0]), helper.make_node("MatMul", ["u", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [2, 1024])], [helper.make_tensor_value_info("y", 1, None)], [tensor])
    (tmp / "m.onnx").write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    ends = b"first" + bytes(59), b"last" + bytes(60)
    with open(tmp / "w.bin", "wb") as f:
        f.write(ends[0])
        f.seek(4 * n - 64)
        f.write(ends[1])
    if os.stat(tmp / "w.bin").st_blocks * 512 > 1 << 20:
        check.skip("3 GB of weights", "no holes in files here")
        return
    for how, data in (("keep", "w.bin"), ("all.bin", "all.bin"), ("each/", "each/w")):
        status, text, err = run("optimize", tmp / "m.onnx", "-o", tmp / "out/m.onnx", "--external-data", how, "--json", "-")
        made = tmp / "out" / data
        ok = status == 0 and made.stat().st_size == 4 * n
        if ok:
            with open(made, "rb") as f:
                ok = f.read(64) == ends[0] and f.seek(4 * n - 64) and f.read() == ends[1]
        peak = json.loads(text)["peak_bytes"] if status == 0 else 0
        check(f"3 GB of weights, {how}: {peak >> 20} MiB held {err}", ok and 0 < peak < most)
        made.unlink(missing_ok=True)
    check("3 GB inline", "protobuf ends at 2 GiB" in run("optimize", tmp / "m.onnx", "-o", tmp / "out/n.onnx", "--external-data", "inline")[2])
    dense = weights_model(tmp / "dense.onnx", "dense.bin", 1 << 24)
    text = run("optimize", dense, "-o", tmp / "out/dense.onnx", "--external-data", "d.bin", "--json", "-")[1]
    same = (tmp / "out/d.bin").read_bytes() == (tmp / "dense.bin").read_bytes()[:1 << 26]
    check("64 MB of weights", same and 0 < json.loads(text)["peak_bytes"] < most)


def rewritten(run, tmp):
    """2.25 GiB of weights that are turned: too many for the model, so they go to a file beside it, and the input's stay as they were."""
    n = (9 << 28) // 1024
    tensor = TensorProto(name="w", data_type=TensorProto.INT8, dims=[1024, n], data_location=TensorProto.EXTERNAL)
    for k, v in (("location", "w.bin"), ("length", str(1024 * n))):
        e = tensor.external_data.add()
        e.key, e.value = k, v
    nodes = [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]), helper.make_node("Gather", ["t", "i"], ["y"], axis=0)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("i", TensorProto.INT64, [2])],
                              [helper.make_tensor_value_info("y", TensorProto.INT8, [2, 1024])], [tensor])
    (tmp / "m.onnx").write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    with open(tmp / "w.bin", "wb") as f:
        f.write(bytes(range(100)))
        f.seek(1024 * n - 1)
        f.write(b"\7")
    status, _, err = run("optimize", tmp / "m.onnx", "-o", tmp / "m.onnx", "-q")
    made = tmp / "m.onnx.data"
    check(f"2.25 GiB of weights turned, in place {err}", status == 0 and made.stat().st_size == (tmp / "w.bin").stat().st_size == 1024 * n)
    turned = np.memmap(made, np.uint8, "r", shape=(n, 1024))
    check("every element where it belongs", turned[:101, 0].tolist() == [*range(100), 0] and turned[-1, -2:].tolist() == [0, 7])
    model = onnx.load(tmp / "m.onnx", load_external_data=False)
    check("the model names that file", [x.op_type for x in model.graph.node] == ["Gather"]
          and {e.key: e.value for e in model.graph.initializer[0].external_data}["location"] == "m.onnx.data")


def compared(prog, run, tmp):
    """compare: relayout's own rows always; other optimizers where they are installed, and stand-ins that fail in every way."""
    def ask(*words, python=sys.executable, tmp=tmp):
        r = subprocess.run([prog, "compare", CNN, *map(str, words)], capture_output=True, env={**os.environ, "RELAYOUT_PYTHON": python, "TMPDIR": str(tmp)})
        return r.returncode, r.stdout, r.stderr.decode()

    status, text, err = ask("--json", "-", "--peers", "ort_basic,ort_ext")
    rows = {r["label"]: r for r in json.loads(text)["optimizers"]}
    ours = rows["relayout, onnx"]
    check("relayout's own", status == 0 and ours["outputs"] == "same" and ours["moving"] == 1 < rows["as it is"]["moving"] == 32)
    for names in ("nobody", "onnxsim,", "onnxsim,ort", "", "onnxsim, onnxslim"):
        status, text, err = ask("--peers", names)
        check(f"--peers '{names}'", status == 2 and not text and "no optimizer '" in err and "there are ort_basic, ort_ext" in err)
    try:
        import onnxruntime  # noqa: F401
        check("onnxruntime", all(rows[f"onnxruntime {x}"]["outputs"] == "same" and rows[f"onnxruntime {x}"]["seconds"] > 0
                                 and ours["transposes"] <= rows[f"onnxruntime {x}"]["transposes"] < 52 for x in ("basic", "extended")))
    except ImportError:
        check.skip("onnxruntime", "not installed")
    status, text, err = ask("--peers", "ort_basic", tmp=tmp / ("d" * 200))
    check("a folder with a long name", status == 3 and not text and "TMPDIR is longer than 200 bytes" in err)
    status, text, _ = ask("--target", "ort", "--peers", "onnxsim", "--no-run")
    check("one target, nothing run", status == 0 and b"relayout, ort" in text and b"relayout, onnx" not in text and b"same" not in text)
    check("no Python", (lambda s, t, _: s == 0 and b"no python3" in t and b"relayout, onnx" in t)(*ask(python=str(tmp / "none"))))
    # Optimizers that are wrong, die, hang, or write what is no model.
    fake = tmp / "fake"
    fake.mkdir()
    turn = "\nm.graph.node[-1].op_type = 'Neg' if m.graph.node[-1].op_type != 'Neg' else 'Abs'\ndel m.graph.node[-1].attribute[:]\ndel m.graph.node[-1].input[1:]"
    (fake / "onnxsim.py").write_text("import onnx\ndef simplify(p):\n    m = onnx.load(p)" + turn.replace("\n", "\n    ") + "\n    return m, True\n")
    (fake / "onnxslim.py").write_text("import os\ndef slim(p):\n    os.abort()\n")
    (fake / "onnxoptimizer.py").write_text("import time\ndef get_fuse_and_elimination_passes(): return []\ndef optimize(m, p): time.sleep(60)\n")
    (fake / "openvino.py").write_text("raise ImportError('a library is missing')\n")
    launch = tmp / "python"
    launch.write_text(f"#!/bin/sh\nPYTHONPATH={fake} exec {sys.executable} \"$@\"\n")
    launch.chmod(0o755)
    status, text, _ = ask("--json", "-", "--peers", "onnxsim,onnxslim,onnxopt,openvino", "--limit", "4", python=str(launch))
    rows = {r["name"]: r for r in json.loads(text)["optimizers"]}
    lines = on_terminal(prog, "compare", CNN, "--peers", "onnxopt", "--limit", "2", env={"RELAYOUT_PYTHON": str(launch), "TMPDIR": str(tmp)})
    check("progress on a terminal, and gone in the end", b"\r\x1b[Konnxoptimizer" in lines and lines.rstrip().rsplit(b"\x1b[K", 1)[1].startswith(b"        "))
    silent = subprocess.run([prog, "compare", CNN, "--peers", "onnxopt", "--limit", "2"], capture_output=True, env={**os.environ, "RELAYOUT_PYTHON": str(launch)})
    check("no progress anywhere else", silent.returncode == 0 and not silent.stderr and b"\r" not in silent.stdout)
    check("one that is wrong", status == 0 and (rows["onnxsim"]["outputs"] or "").startswith("differ"))
    check("one that dies", "its process ended with" in rows["onnxslim"]["error"])
    check("one that hangs", "no end after 4 s" in rows["onnxopt"]["error"])
    check("one that cannot be imported", "a library is missing" in rows["openvino"]["error"])
    check("nothing is left behind", not list(tmp.glob("relayout-*")))
    check("no model", run("compare", tmp / "none.onnx")[0] == 3 and run("compare", "-")[0] == 2)


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
            check.skip(f"fish: {line!r}", "no fish")
    if shutil.which("zsh"):
        (tmp / "c.zsh").write_text(scripts["zsh"])
        check("zsh reads it", subprocess.run(["zsh", "-n", str(tmp / "c.zsh")], capture_output=True).returncode == 0)
    else:
        check.skip("zsh reads it", "no zsh")
    check("another shell", run("completion", "tcsh")[0] == 2)


# What somebody who never saw the project asks --help: command, and what its help must say in one line.
ASKED = {"keep I/O names": ("optimize", r"Inputs and outputs keep their names"),
         "pin a shape": ("optimize", r"--input-shape \S+ +# pin a shape|--input-shape X=N,N,... .*in OUT too"),
         "choose a target": ("optimize", r"--target NAME +what runs it and what that costs: generic \(default\), onnx, ort .*relayout targets"),
         "see why a Transpose stayed": ("explain", r"relayout explain in.onnx +# why did a Transpose stay\?")}


def helps(run):
    first = run("--help")[1].decode()
    for question, (command, answer) in ASKED.items():
        text = run(command, "--help")[1].decode()
        check(f"--help: {question}?", re.search(answer, text) and re.search(rf"^  {command} ", first, re.M))
    check("the first page answers, too", all(re.search(x, first) for x in (r"# pin a shape", r"# why did a Transpose stay\?", r"--target ort .*# for onnxruntime")))
    check("help is --help", run("help") == run("--help") and all(run("help", *w) == run(*w, "--help") for w in (["optimize"], ["layout"], ["layout", "draw"])))
    check("of no command", run("help", "optimise")[0] == 2 and "no command 'optimise'" in run("help", "optimise")[2])
    status, text, _ = run("optimize")
    check("nothing given: what is missing, and where help is", status == 2 and b"--help" in run("optimize")[1] + run("optimize")[2].encode())


def pages(run):
    tool = next((t for t in (["groff", "-man", "-ww", "-Tascii"], ["man", "--warnings=w", "-l", "-"]) if shutil.which(t[0])), None)
    for name in ["", *run("completion", "words")[1].decode().split()]:
        text = run(*name.split("/"), "--man")[1] if name else run("--man")[1]
        check(f"page of {name or 'relayout'}", text.startswith(b".TH RELAYOUT") and b".SH SYNOPSIS" in text and b".SH EXAMPLES" in text)
        if tool:
            r = subprocess.run(tool, input=text, capture_output=True)
            check("  troff has nothing against it", r.returncode == 0 and not r.stderr)
    if not tool:
        check.skip("troff has nothing against the pages", "neither groff nor man")


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--large", action="store_true", help="also 2.25 GiB of weights that change: as much of the disk, and of memory")
    args = parser.parse_args()
    prog = common.program(args)

    def run(*words, stdin=None):
        # By a shell, whose memory the program's peak starts at, not this process's.
        r = subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", prog, *map(str, words)], input=stdin, capture_output=True)
        return r.returncode, r.stdout, r.stderr.decode()

    with tempfile.TemporaryDirectory() as tmp:
        file = Path(tmp) / "out.onnx"
        model = CNN.read_bytes()
        status, out, err = run("optimize", CNN, "-o", file)
        made = file.read_bytes()
        check("a table on stdout, nothing on stderr", status == 0 and b"conversions needed" in out and not err)
        status, out, err = run("optimize", "-", "-o", "-", stdin=model)
        check("a model from stdin to stdout, the table on stderr", status == 0 and out == made and "conversions needed" in err)
        check("the same with -q, and no table", run("-", "-", "-q", stdin=model) == (0, made, ""))
        check("what is not better goes through as it is", run("optimize", "-", "-o", "-", "-q", stdin=made) == (0, made, ""))
        turned = run("optimize", CNN, "-o", "-", "-q", "--input-layout", "image=nhwc->nchw")[1]
        check("a changed interface goes to stdout, too", turned not in (made, model, b""))
        check("-q to a file", run("optimize", CNN, "-q", "-o", file) == (0, b"", ""))
        status, out, _ = run("optimize", CNN, "-o", file, "--json", "-")
        check("JSON on stdout, alone", status == 0 and json.loads(out)["changed"])
        status, out, err = run("optimize", CNN, "-o", "-", "--json", "-")
        check("two things to stdout", status == 2 and not out and "only one thing can go to stdout" in err)
        for words in (["report", "-", "-o", "-"], ["dot", "-", "-o", "-"], ["stats", "-", "--json", "-"], ["explain", "-", "--json", "-"]):
            status, out, err = run(*words, stdin=model)
            check(f"{words[0]} from stdin to stdout", status == 0 and out and not err)
        check("stats of stdin", run("stats", "-", stdin=model)[1] == run("stats", CNN)[1])
        said = [json.loads(run(c, CNN, *o, "--json", "-")[1]) for c, o in (("stats", ()), ("optimize", ("-o", file)))]
        check("stats and optimize say the same of what is proved", all(said[0][k] == said[1][k] for k in ("target", "objective", "conversions", "proved")))
        check("explain of stdin", run("explain", "-", stdin=model)[1].splitlines()[1:] == run("explain", CNN)[1].splitlines()[1:])
        check("stdin that is no model",
              run("stats", "-", stdin=b"x\n") == (4, b"", "relayout: stdin: not an ONNX model: it has no ir_version\n"))
        status, out, err = run("optimize", CNN, "-v", "-o", file)
        steps = all(f"  {p}: " in err for p in ("normalize", "legal", "assign", "lower"))
        check("-v says the steps on stderr", status == 0 and b"conversions needed" in out and steps)

        for words, says in ((["optimise", CNN], "no command 'optimise'; did you mean optimize?"),
                            (["optimize", CNN, "--input-layuot", "x=nhwc"], "no option --input-layuot; did you mean --input-layout?"),
                            (["stats", CNN, "--taget=onnx"], "no option --taget; did you mean --target?"),
                            (["stats", CNN, "--frobnicate"], "no option --frobnicate;"),
                            (["stats", CNN, "-x"], "no option -x; see relayout stats --help"),
                            (["stats", CNN, "-q"], "stats takes no -q"),
                            (["layout", "draw", "--foo"], "no option --foo; see relayout layout draw --help"),
                            (["print", CNN, "--after", "none"], "no pass 'none'; see relayout passes"),
                            (["frobnicate"], "no command 'frobnicate', and no file; see relayout --help"),
                            (["stats", CNN, "--dim", "bath=1"], "no dim is called 'bath'; those of the inputs: batch"),
                            (["stats", CNN, "--dim", "batch=x"], ": dim 'batch=x' is not NAME=N"),
                            (["stats", CNN, "--input-shape", "imge=1"], "no input is called 'imge'; there are image"),
                            (["run", CNN, "--input", "imge=x"], "no input is called 'imge'; there are image"),
                            (["optimize", CNN, "-o"], "-o wants a value"),
                            (["optimize", CNN, "-o", ""], "--output: its file has no name"),
                            (["optimize", CNN, "-o", file, "--json="], "--json: its file has no name"),
                            (["optimize", "", "-o", file], "optimize: an operand is empty: IN -o OUT"),
                            (["run", CNN, "--threads", "16777216"], "--threads '16777216' is no number from 1 to 1000000"),
                            (["optimize", CNN, CNN, "--jobs", "0"], "--jobs '0' is no number from 1 to 1000000"),
                            (["run", CNN, "--seed", "9223372036854775808"], "--seed '9223372036854775808' is no number from 0 to 9223372036854775807"),
                            (["stats", CNN, "--time-limit", "inf"], "--time-limit 'inf' is no number above 0"),
                            (["stats", CNN, "--time-limit", "1e400"], "--time-limit '1e400' is no number above 0"),
                            (["stats", CNN, "--time-limit", "0x10"], "--time-limit '0x10' is no number above 0"),
                            (["verify", CNN, CNN, "--rtol", "nan"], "--rtol 'nan' is no number from 0 on"),
                            (["layout", "describe", "f32[2]", "--dtype", "i8"], "--dtype goes with a layout's name, and 'f32[2]' has all"),
                            (["layout", "compare", "f32[2]", "f32[2]", "--shape", "2"], "--shape goes with a layout's name"),
                            (["layout", "draw", "f32[2]", "--offset", "1"], "--offset goes with a layout's name"),
                            (["optimize", CNN, "--target"], "--target wants a value"),
                            (["optimize", CNN, "-o", "out.rlt"], "optimize -o out.rlt: the result is an ONNX file; relayout print shows it as text"),
                            (["optimize", CNN, "--verbose=3"], "--verbose takes no value")):
            status, out, err = run(*words)
            check(says, status == 2 and not out and err.count("\n") == 1 and says in err)
        odd, plain = "no\n\x1b[31m\u0085.onnx", "no??[31m??.onnx"
        for words in (["stats", odd], ["optimize", odd, "-o", file], ["optimize", CNN, "-o", file, "--json", f"none/{odd}"], ["stats", CNN, odd],
                      ["optimize", odd, CNN, "-o", f"{tmp}/odd/", "-q"], ["stats", CNN, f"--{odd}"], ["stats", CNN, "--target", f"./{odd}"]):
            status, out, err = run(*words)
            check(f"{words[0]}: a name with control characters", status in (2, 3) and plain in err and err.count("\n") == 1 and "\x1b" not in err)
        status, out, err = run("model-that-is-not-there.onnx", file)
        check("a file that is missing is no command", status == 3 and "did you mean" not in err)
        check("a word far from all is no command either", "did you mean" not in run("zzzzzz", file)[2])
        (Path(tmp) / "many").mkdir()
        many(run, Path(tmp) / "many")
        (Path(tmp) / "outputs").mkdir()
        outputs(run, Path(tmp) / "outputs")
        (Path(tmp) / "given").mkdir()
        given(run, Path(tmp) / "given")
        (Path(tmp) / "inputs").mkdir()
        inputs(run, Path(tmp) / "inputs")
        (Path(tmp) / "dying").mkdir()
        dying(prog, run, Path(tmp) / "dying")
        (Path(tmp) / "streams").mkdir()
        streams(prog, Path(tmp) / "streams")
        (Path(tmp) / "beside").mkdir()
        beside(prog, run, Path(tmp) / "beside")
        (Path(tmp) / "external").mkdir()
        external(run, Path(tmp) / "external")
        if args.large:
            (Path(tmp) / "rewritten").mkdir()
            rewritten(run, Path(tmp) / "rewritten")
        (Path(tmp) / "sizes").mkdir()
        sizes(run, Path(tmp) / "sizes")
        (Path(tmp) / "compare").mkdir()
        compared(prog, run, Path(tmp) / "compare")
        colours(prog, run)
        lost(prog)
        completion(prog, run, Path(tmp))
        pages(run)
        helps(run)
    return check.closing()


if __name__ == "__main__":
    sys.exit(main())
