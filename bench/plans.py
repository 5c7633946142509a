#!/usr/bin/env python3
"""Plans of layouts (`relayout profile`) of the sample models: is the choice proved to be the least for the measured costs, by both checkers of its
certificate, and does the model take with the plan what was predicted before it ran?

  plans.py                     all sample models, one thread; about 10 seconds for each where nothing was measured before, else 4
  plans.py vit swin            models whose name contains one of these
  plans.py vit --result plans.md   adds the rows to those that bench/results/plans.md has: the list may be run in pieces

Times are the least of the runs, in milliseconds of processor time. Predicted: what the model took without a plan, measured before the plan was made,
and the differences of the measured costs, in the end those of runs by a plan (docs/runtime.md, Plans). Kept: profile -o writes the plan into the model, as the run with it was not
slower; as it is: nothing takes less than what runs without a plan, so the model has none.
"""
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench
import common
import zoo

HEAD = ["model", "proved", "predicted", "with the plan", "measured / predicted", "without", "times as fast", "moves", "kept", "seconds"]
CHECKER = common.ROOT / "scripts" / "check_proof.py"


def measure(prog, name, args, tmp):
    """A row, as text."""
    model, proof, out, report = zoo.filled(name, args.build / "zoo"), tmp / "cert", tmp / "planned.onnx", tmp / "report.json"
    start = time.monotonic()
    r = subprocess.run([prog, "profile", model, "--threads", str(args.threads), "--proof", proof, "-o", out, "--json", report], capture_output=True, text=True)
    seconds = time.monotonic() - start
    if r.returncode:
        return [name, "no: " + r.stderr.strip().replace(f"relayout: {model}: ", "")[-100:]] + ["-"] * (len(HEAD) - 2)
    p = json.loads(report.read_text())
    kept = b"relayout-plan 1" in out.read_bytes()
    checks = [subprocess.run(c, capture_output=True, text=True) for c in ([sys.executable, CHECKER, "--alone", proof], *[[prog, "check-proof", proof, out]] * kept)]
    for c in checks:
        if c.returncode:
            print(f"{name}: {(c.stdout + c.stderr).strip()[-200:]}")
    predicted = p["predicted_ns"] * 1e-6
    return [name, "yes" if p["optimal"] and p["checked"] and not any(c.returncode for c in checks) else "no", f"{predicted:.3f}", f"{p['plan_min_ms']:.3f}", f"{p['plan_min_ms'] / predicted:.3f}",
            f"{p['default_min_ms']:.3f}", f"{p['default_min_ms'] / p['plan_min_ms']:.3f}", str(p["moves"]), "yes" if kept else "as it is" if p["as_is"] else "no", f"{seconds:.0f}"]


def known(path):
    """Rows of an earlier result."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {r[0]: r for r in rows if len(r) == len(HEAD) and r[0] in zoo.names()}


def summary(rows):
    done = [r for r in rows if r[2] != "-"]
    within = [r for r in done if 0.9 <= float(r[4]) <= 1.1]
    ratios = sorted(float(r[4]) for r in done) or [0]
    return [f"- proved to be the least for the measured costs, by both checkers: {sum(r[1] == 'yes' for r in rows)} of {len(rows)}",
            f"- measured within 10 % of predicted: {len(within)} of {len(rows)} ({ratios[0]:.2f} to {ratios[-1]:.2f}); others: "
            + (", ".join(r[0] for r in done if r not in within) or "none"),
            f"- kept, as the model is not slower with it: {sum(r[8] == 'yes' for r in rows)} of {len(rows)}; nothing to gain in {sum(r[8] == 'as it is' for r in rows)}",
            f"- seconds of profile: {sum(float(r[9]) for r in done):.0f} for all, {max([float(r[9]) for r in done] or [0]):.0f} at most"]


def main():
    p = bench.arguments(__doc__)
    p.add_argument("--threads", type=int, default=1)
    args = p.parse_args()
    args.build = args.build.resolve()
    prog = common.program(args)
    if not common.has_onednn(prog):
        print("skipped: oneDNN is not found")
        return
    rows = known(bench.HERE / "results" / args.result) if args.result else {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was measured is written
    try:
        with tempfile.TemporaryDirectory() as tmp:
            for name in bench.models(args):
                rows[name] = measure(prog, name, args, Path(tmp))
                print(" | ".join(rows[name]), flush=True)
    finally:
        write(args, rows)


def write(args, rows):
    rows = [rows[n] for n in sorted(rows)]
    bench.write(args, "plans.md", "Plans of layouts: predicted and measured", bench.table(HEAD, rows) + "\n\n" + "\n".join(summary(rows))
                + "\n\nWhere the list was run in pieces, the command and the versions are the last one's; of a model that was measured twice the last run stands.", "onednn-cpu-gomp")


if __name__ == "__main__":
    main()
