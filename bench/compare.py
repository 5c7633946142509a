#!/usr/bin/env python3
"""One table of what `relayout compare` says of several models; bench/compare.sh calls it, with RELAYOUT_PYTHON set."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "relayout"


def as_onnx(model, folder):
    """relayout's text as a file that the others read, with nothing optimized."""
    if model.suffix != ".rlt":
        return model
    path = folder / f"{model.stem}.onnx"
    subprocess.run([PROGRAM, "optimize", model, "-o", path, "-q", "--disable", "normalize,fold,legal,dce"], check=True)
    return path


def cell(row):
    if row["transposes"] < 0:
        return "-"
    wrong = "" if row["outputs"] in ("same", None) else f", {row['outputs']}"
    return f"{row['transposes']} ({row['seconds']:.2f} s{wrong})" if row["seconds"] >= 0 else str(row["transposes"])


def main():
    models = [Path(m) for m in sys.argv[1:]] or sorted((ROOT / "models").glob("*.onnx")) + sorted((ROOT / "docs" / "cookbook").glob("*.rlt"))
    head, rows = None, []
    with tempfile.TemporaryDirectory() as tmp:
        for model in models:
            r = subprocess.run([PROGRAM, "compare", as_onnx(model, Path(tmp)), "--json", "-"], stdout=subprocess.PIPE, text=True)
            if r.returncode:
                return r.returncode
            found = json.loads(r.stdout)["optimizers"]
            head = ["model", *(" ".join(filter(None, (x["label"], x["version"]))) for x in found)]
            rows.append([model.stem, *map(cell, found)])
    print("Transposes left (seconds; where outputs are not the same, that)\n")
    for row in [head, ["---"] + ["---:"] * (len(head) - 1), *rows]:
        print("| " + " | ".join(row) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
