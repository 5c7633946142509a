#!/usr/bin/env python3
"""Writes what in docs/ is generated: the op table (docs/ops.md) and the pictures of layouts and graphs.

  docs.py            writes
  docs.py --check    changes nothing; status 1, and the names, where something is not current

Needs the built program (--relayout, default build/relayout). tests/python/test_docs.py runs the check.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYOUTS = {"nchw": "NCHW", "nhwc": "NHWC", "nchw4": "NCHW4", "nchw16c": "nChw16c", "chwn4": "CHWN4"}


def op_rows():
    """(domain, type, class, roles) of src/ops.def."""
    text = (ROOT / "src" / "ops.def").read_text()
    return re.findall(r'^OP\(\s*\w+,\s*"([^"]*)",\s*"([^"]*)",\s*(\w+),\s*"([^"]*)" \)', text, re.M)


def class_words():
    """What the head of src/ops.h says of each class."""
    text = (ROOT / "src" / "ops.h").read_text()
    rows = re.findall(r"^ \*   ([A-Z]{3,}(?: [A-Z]{3,})*) +((?![A-Z]{3,} ).*(?:\n \* {8,}\S.*)*)", text, re.M)
    return {name: re.sub(r"\s*\n \*\s*", " ", words) for names, words in rows for name in names.split()}


def kernels():
    """Ops that `relayout run` runs, also as others."""
    text = "".join(p.read_text() for p in sorted((ROOT / "runtime").glob("kernels_*.def")))
    spread = re.findall(r'^    \{"(\w+)", RL_OP_', (ROOT / "runtime" / "spread.c").read_text(), re.M)
    return set(re.findall(r'^KERNEL\("([^"]*)", (\w+),', text, re.M)) | {("com.microsoft", kind) for kind in spread}


def ops_page():
    rows, words, runs = op_rows(), class_words(), kernels()
    names = [f"{d}::{t}" if d else t for d, t, _, _ in rows]
    assert len(rows) == len(re.findall(r"^OP\(", (ROOT / "src" / "ops.def").read_text(), re.M)) and len(set(names)) == len(names)
    classes = sorted({c for _, _, c, _ in rows}, key=lambda c: (c == "OPAQUE", -sum(r[2] == c for r in rows), c))
    free = sum(c != "OPAQUE" for _, _, c, _ in rows)
    out = ["# Ops", "", "Made by `scripts/docs.py` from `src/ops.def`, `src/ops.h`, `runtime/kernels_*.def` and `runtime/spread.c`; do not edit.", "",
           f"{len(rows)} ops have a row, {free} of them with some freedom in the order of their dims. What has no row is like OPAQUE: it gets its data in the "
           "order that ONNX says, and stays as it is. *Parameters* says where the numbers are that follow the order: an attribute, with its default, or "
           "`axes@1`, the constant input 1; `18+`: from that opset on. ✓: `relayout run` runs it. [`extend.md`](extend.md) adds a row.", ""]
    for c in classes:
        mine = [r for r in rows if r[2] == c]
        out += [f"## {c}", "", (words[c][0].upper() + words[c][1:]).rstrip(".") + ".", ""]
        named = [(f"{d}::{t}" if d else t, roles, (d, t) in runs) for d, t, _, roles in mine]
        plain = [f"{n}{' ✓' if k else ''}" for n, roles, k in named if not roles]
        if plain:
            out += [", ".join(plain) + ".", ""]
        if len(plain) < len(named):
            out += ["| op | parameters |", "| --- | --- |", *[f"| {n}{' ✓' if k else ''} | `{roles}` |" for n, roles, k in named if roles], ""]
    return "\n".join(out).rstrip() + "\n"


def made(relayout):
    """{path: text} of everything that is generated."""
    run = lambda *words: subprocess.run([relayout, *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    out = {"docs/ops.md": ops_page()}
    for file, name in LAYOUTS.items():
        out[f"docs/layouts/{file}.svg"] = run("layout", "draw", "--to", "svg", "--shape", "2,64,3,3", name)
    out["docs/pictures/detector.svg"] = run("report", "docs/cookbook/detector.rlt", "--target", "onnx", "--svg", "-o", "-")
    out["docs/pictures/block.svg"] = run("dot", "models/channels_last_cnn.onnx", "--node", "model/Conv_1", "--around", "4", "--svg")
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--relayout", type=Path, default=ROOT / "build" / "relayout", help="the program (default: build/relayout)")
    p.add_argument("--check", action="store_true", help="write nothing")
    args = p.parse_args()
    old = {name: text for name, text in made(args.relayout.resolve()).items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text}
    for name, text in old.items():
        print(name, "is not current: run scripts/docs.py" if args.check else "written")
        if not args.check:
            (ROOT / name).parent.mkdir(exist_ok=True)
            (ROOT / name).write_text(text)
    return 1 if args.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
