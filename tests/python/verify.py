#!/usr/bin/env python3
"""Optimizes models and checks each result against the original in onnxruntime (its optimizations off).

  verify.py MODEL[@SHAPE[,SHAPE...]] ...     SHAPE: 2x3x48x320, sizes for the first input, one trial each

Shows the program's own table per model. Without onnxruntime it optimizes, says that nothing was checked, and ends with 1.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import onnx

    import check
    import common
except ImportError as e:
    print(f"{e}: the Python packages of scripts/setup.sh are needed for the check", file=sys.stderr)
    common = None

SIZES = {"": 2, "batch": 2, "sequence": 17}


def trials(model, shapes):
    """Inputs: one trial per shape, or two seeds with default sizes for symbols."""
    if not shapes:
        return [common.random_inputs(model, seed=s, dims=SIZES) for s in (0, 1)]
    first = common.model_inputs(model)[0].name
    return [common.random_inputs(model, seed=i, dims={**SIZES, first: s}) for i, s in enumerate(shapes)]


def verify(prog, arg, target, folder, tmp):
    path, _, shapes = arg.partition("@")
    shapes = [[int(n) for n in s.split("x")] for s in shapes.split(",")] if shapes else []
    path = Path(path)
    out = (folder or Path(tmp)) / f"{path.stem}.relayout.onnx"
    print(f"\n== {path.name}", flush=True)
    status = subprocess.run([prog, "optimize", path, "-o", out, "--target", target]).returncode
    if status:
        return [f"relayout ended with status {status}"]
    model = onnx.load(path)
    facts = check.facts_of(path, model, trials(model, shapes))
    res = check.rewrite(prog, path, facts, target, tmp)
    if res.counts:
        print(f"checked: Transposes that move data {facts.counts.moving} -> {res.counts.moving}, "
              f"other moves {facts.counts.nother} -> {res.counts.nother} (counted independently); {len(facts.inputs)} inputs, "
              + ("outputs bit for bit equal" if res.bitexact else f"largest difference {res.worst:.2g}"), flush=True)
    return res.fail


def main():
    if common is None:
        return unchecked()
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("models", nargs="+")
    p.add_argument("--target", default="onnx")
    p.add_argument("--out", type=Path, help="folder for the optimized models (default: none is kept)")
    args = p.parse_args()
    prog = common.program(args)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    nfail = 0
    with tempfile.TemporaryDirectory() as tmp:
        for arg in args.models:
            try:
                fail = verify(prog, arg, args.target, args.out, tmp)
            except Exception as e:
                fail = [f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"]
            for f in fail:
                print(f"FAILED: {f}", flush=True)
            nfail += bool(fail)
    print()
    return common.closing(len(args.models) - nfail, nfail)


def unchecked():
    args, build = sys.argv[1:], Path("build")
    for a in args:
        if a.endswith(".onnx") or ".onnx@" in a:
            path = Path(a.partition("@")[0])
            with tempfile.TemporaryDirectory() as tmp:
                subprocess.run([build / "relayout", "optimize", path, "-o", Path(tmp) / path.name, "--target", "onnx"])
    print("optimized, but no output was checked: onnxruntime is not there")
    return 1


if __name__ == "__main__":
    sys.exit(main())
