#!/usr/bin/env python3
"""Every command in README.md, docs/*.md and the examples of --help (which are those of the man pages) is run, and what it prints is what the page says; links lead somewhere; generated pages are current.

  test_docs.py                 all pages
  test_docs.py cookbook        pages whose name contains one of these words

A fenced block says what it is: sh and console are run in a scratch folder (one for each page, its blocks in order, with bash -eu), python is run
likewise, text, json and c are not commands. The examples in comments of include/relayout.h are compiled. In a console block a line `$ COMMAND` is followed by what it prints; `...` stands for any lines, and
seconds for any seconds. A block that cannot be run here says so behind its language, for whoever reads the source:

  ```sh (not run: needs a network)      never; counted, with the reason
  ```sh (needs: dot)                    only where there is such a program, or Python module; oneDNN: where relayout finds that

The folder has relayout on its PATH, models/ and docs/cookbook/, and in.onnx, which is models/channels_last_cnn.onnx.
"""
import fnmatch
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import common

RUN, WORDS = {"sh", "console", "python"}, {"text", "json", "c"}
LIMIT = 120  # seconds for a block
PRELUDE = 'import numpy as np, onnx\nmodel = onnx.load("in.onnx")\nx = np.zeros((1, 96, 96, 3), np.float32)\n'  # what a page's Python takes for given
COMMANDS = re.compile(r"`(relayout [^`]*)`")


class Failed(Exception):
    pass


def blocks(path):
    """(line, language, note, text) of each fenced block."""
    lines = path.read_text().split("\n")
    at = 0
    while at < len(lines):
        if lines[at].startswith("```"):
            end = next((i for i in range(at + 1, len(lines)) if lines[i] == "```"), None)
            m = re.fullmatch(r"```(\w*)(?: \((.*)\))?", lines[at])
            if end is None or not m:
                raise Failed(f"{path.name}:{at + 1}: a fence that does not end, or that cannot be read")
            yield at + 1, m[1], m[2] or "", "\n".join(lines[at + 1:end]) + "\n"
            at = end
        at += 1


def why_not(language, note, text, env):
    """The reason not to run a block, or None."""
    kind, _, what = note.partition(": ")
    if kind == "not run" and what:
        return what
    if (kind, what) == ("needs", "oneDNN"):
        return None if common.has_onednn(shutil.which("relayout", path=env["PATH"])) else "no oneDNN here"
    if kind == "needs" and what:
        return None if shutil.which(what) or importlib.util.find_spec(what) else f"no {what} here"
    if note:
        raise Failed(f"'({note})' is neither (not run: REASON) nor (needs: NAME)")
    if language == "python" and re.search(r"\bimport relayout\b", text) and "PACKAGE" not in env:
        return "the package is not installed; tests/package.sh does that"
    return None


def shell(text, folder, env):
    r = subprocess.run(["bash", "-euc", text], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
    return r.returncode, r.stdout


def alike(want, got):
    """Line by line, `...` for any number of lines, and any seconds for seconds."""
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.sub(r"\d+\\\.\d{3}\\ s", r"\\d+\\.\\d{3} s", re.escape(line)) + r"\n" for line in want.splitlines())
    return re.fullmatch(pattern, got) is not None


def run_console(text, folder, env):
    if not text.startswith("$ "):
        raise Failed("a console block starts with $")
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, want = part.partition("\n")
        _, got = shell(command, folder, env)
        if not alike(want, got):
            raise Failed(f"$ {command}\nprints\n{got}\nthe page says\n{want}")


def run_block(language, text, folder, env):
    if language == "console":
        return run_console(text, folder, env)
    if language == "python":
        r = subprocess.run([sys.executable, "-c", PRELUDE + text], cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT)
        status, out = r.returncode, r.stderr
    else:
        status, out = shell(text, folder, env)
    if status:
        raise Failed(f"{text}\nends with {status}:\n{out}")


def scratch(folder, prog, build):
    (folder / "bin").mkdir()
    (folder / "bin" / "relayout").symlink_to(prog)
    for name in ("models", "docs/cookbook", "scripts"):
        shutil.copytree(common.ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(common.ROOT / "models" / "channels_last_cnn.onnx", folder / "in.onnx")
    env = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "RELAYOUT_LIBRARY": str(build / "librelayout.so"), "NO_COLOR": "1"}
    paths = [str(common.ROOT / "python")]  # relayout_layouts
    if (build / "site" / "relayout").exists():
        env["PACKAGE"] = "1"
        paths.insert(0, str(build / "site"))
    env["PYTHONPATH"] = ":".join(paths)
    return env


def check_links(path):
    """Files that the page names exist, and the section of this or another page that it points to."""
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"\w+:", link) and not (path.parent / link.split("#")[0]).exists():
            raise Failed(f"{link}: there is no such file")


def check_names(path, commands, options):
    """Commands and options in the text are those that there are."""
    for words in COMMANDS.findall(path.read_text()):
        command = words.split()[1]
        if re.fullmatch(r"[a-z][a-z-]*", command) and command not in commands:
            raise Failed(f"`{words}`: no such command")
        for option in re.findall(r"(?<!\S)--([a-z-]+)", words):
            if option not in options:
                raise Failed(f"`{words}`: no option --{option}")


def check_page(path, prog, build, commands, options, skipped):
    """How many blocks ran."""
    ran = 0
    check_links(path)
    check_names(path, commands, options)
    with tempfile.TemporaryDirectory() as tmp:
        env = scratch(Path(tmp), prog, build)
        for line, language, note, text in blocks(path):
            where = f"{path.name}:{line}"
            try:
                if language not in RUN | WORDS:
                    raise Failed(f"a block of {language or 'nothing'}: it says one of {', '.join(sorted(RUN | WORDS))}")
                reason = why_not(language, note, text, env) if language in RUN else None
                if reason:
                    skipped.append(f"{where}: {reason}")
                elif language in RUN:
                    run_block(language, text, Path(tmp), env)
                    ran += 1
            except Failed as e:
                raise Failed(f"line {line}: {e}") from None
    return ran


# What examples of --help name and the scratch folder does not have, and what it has instead.
STAND_INS = {"image=1,3,224,224": "image=1,96,96,3", "/block/Transpose_2": "model/Transpose_2", "/block/Transpose": "model/Transpose", "x=x.npy": "image=image.npy",
             "venv/bin/python": sys.executable, "--peers onnxsim,onnxslim": "--peers polygraphy"}
def example_not_run(line, prog):
    """The reason, or None."""
    if line.startswith("relayout reduce"):
        return "it needs a model that fails; test_reduce.py has some"
    if line.startswith("relayout profile") and "--plan" in line and not common.has_onednn(prog):
        return "no oneDNN here"
    return "no dot here" if "| dot " in line and not shutil.which("dot") else None


def prepare_examples(folder, env):
    """The files that the examples begin with."""
    code = ("import numpy as np; np.save('image.npy', np.zeros((1, 96, 96, 3), 'f4')); np.save('x.npy', np.zeros((1, 8, 4, 4), 'f4'));"
            "np.zeros(64 * 64 * 9, 'f4').tofile('w.bin')")
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    status, said = shell("relayout optimize in.onnx -o out.onnx --proof p.cert && mkdir -p .zfunc .config/fish/completions many && cp in.onnx many/a.onnx", folder, env)
    if status:
        raise Failed(said)


def check_examples(prog, build, commands, help_of, skipped):
    """How many examples ran."""
    seen = set()
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        env = {**scratch(folder, prog, build), "HOME": tmp}
        prepare_examples(folder, env)
        names = subprocess.run([prog, "completion", "words"], capture_output=True, text=True).stdout.split()
        for name in names:
            text = help_of(*name.split("/"))
            examples = re.findall(r"^  (\S.*?)(?: {2,}# .*)?$", text.partition("\nexamples:\n")[2], re.M)
            if not examples:
                raise Failed(f"{name} --help has no examples")
            for line in examples:
                if line in seen:
                    continue
                seen.add(line)
                why = example_not_run(line, prog)
                if why:
                    skipped.append(f"{name} --help: {line}: {why}")
                    continue
                command = line
                for a, b in STAND_INS.items():
                    command = command.replace(a, b)
                if "*.onnx" in command:
                    command = f"cd many && {command}"
                status, out = shell(command, folder, env)
                if status:
                    raise Failed(f"{name} --help: {command}\nends with {status}:\n{out}")
    return len(seen)


# What examples in C take for given.
C_PRELUDE = """#include <stdatomic.h>
#include <stdio.h>
#include "relayout.h"
extern const void *in;
extern size_t nin;
extern rl_result r;
extern rl_error e;
extern rl_session *s;
extern const rl_array *y;
extern float x[192], w[192], scores[1000];
extern int64_t dim[4];
extern unsigned char picture[4 * 640 * 480];
extern void use(const void *p, size_t n);
"""


def check_header():
    """How many examples there are in comments of include/relayout.h, which compile: what is indented there and has statements."""
    text = (common.ROOT / "include" / "relayout.h").read_text()
    found = [[line[7:].removesuffix(" */") for line in m[0].splitlines()] for m in re.finditer(r"(?:^ \*     .*\n)+", text, re.M)]
    examples = [x for x in found if any(";" in line for line in x)]
    outside = [line for x in examples for line in x if line.startswith("#") or line.startswith("static") and line.endswith("}")]
    code = [C_PRELUDE, *outside]
    for i, x in enumerate(examples):
        code += [f"void example{i}(void);", f"void example{i}(void) {{", *(line for line in x if line not in outside), "}"]
    with tempfile.TemporaryDirectory() as tmp:
        (Path(tmp) / "examples.c").write_text("\n".join(code) + "\n")
        r = subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-fsyntax-only", "-Wall", "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Werror",
                            "-I", common.ROOT / "include", "examples.c"], cwd=tmp, capture_output=True, text=True)
    if r.returncode:
        raise Failed(f"an example in include/relayout.h does not compile:\n{r.stderr}")
    return len(examples)


def check_itself():
    """That the comparison can fail."""
    assert alike("a\n...\nb 0.004 s\n", "a\nx\ny\nb 12.345 s\n") and alike("a\n...\n", "a\n")
    assert not alike("a\n", "b\n") and not alike("a\n...\nb\n", "a\nc\n") and not alike("a 1 s\n", "a 2 s\n") and not alike("a.c\n", "abc\n")


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("pages", nargs="*", help="parts of names; none: all")
    args = p.parse_args()
    prog, build = common.program(args), args.build.resolve()
    help_of = lambda *words: subprocess.run([prog, *words, "--help"], capture_output=True, text=True).stdout
    commands = set(re.findall(r"^  ([a-z][a-z-]*) ", help_of(), re.M)) | {"layout"}
    options = {o for c in sorted(commands) for o in re.findall(r"--([a-z][a-z-]*)", help_of(c))} | {"to", "help"}
    pages = [common.ROOT / "README.md", *sorted((common.ROOT / "docs").glob("*.md"))]
    pages = [x for x in pages if not args.pages or any(fnmatch.fnmatch(str(x.relative_to(common.ROOT)), f"*{w}*") for w in args.pages)]
    skipped, ran, passed, failed = [], 0, 0, 0
    check_itself()
    for path in pages:
        try:
            count = check_page(path, prog, build, commands, options, skipped)
            print(f"{path.relative_to(common.ROOT)}: {count} blocks ok")
            passed, ran = passed + 1, ran + count
        except (Failed, subprocess.TimeoutExpired) as e:
            print(f"{path.relative_to(common.ROOT)}: {e}")
            failed += 1
    if not args.pages:
        try:
            print(f"include/relayout.h: {check_header()} examples ok")
            passed += 1
        except Failed as e:
            print(e)
            failed += 1
        try:
            print(f"--help: {check_examples(prog, build, commands, help_of, skipped)} examples ok")
            passed += 1
        except (Failed, subprocess.TimeoutExpired) as e:
            print(e)
            failed += 1
    current = subprocess.run([sys.executable, common.ROOT / "scripts" / "docs.py", "--check", "--relayout", prog], capture_output=True, text=True)
    print("what is generated is current " + ("ok" if current.returncode == 0 else f"FAILED\n{current.stdout}{current.stderr}"))
    passed, failed = passed + (current.returncode == 0), failed + (current.returncode != 0)
    for s in skipped:
        print("not run:", s)
    print(f"{ran} blocks of commands run, {len(skipped)} not run; {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
