#!/usr/bin/env python3
"""How long relayout takes and how much memory it needs, per sample model, beside a plain copy of the file.

  speed.py [part of a name ...]

Columns: parse + optimize as the program reports it; the whole program by the clock; a copy of the file with fsync; peak memory and
what is allowed (2.2 x the file + 64 MiB). Medians of --repeat runs. Aims: parse + optimize under 0.3 s (swin, swinv2, maxvit: 1 s),
the whole at most that plus the copy.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench
import common
import zoo

AIM = {"pt_swin_tiny_patch4_window7_224": 1.0, "pt_swinv2_tiny_window8_256": 1.0, "pt_maxvit_tiny_rw_224": 1.0}
# A small process starts the program, because a child's peak memory is never below what its parent had.
RUNNER = """
import os, sys, time
null = os.open(os.devnull, os.O_RDWR)
t = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), time.perf_counter() - t, usage.ru_maxrss)
"""


def run(prog, *args):
    out = subprocess.run([sys.executable, "-S", "-E", "-c", RUNNER, prog, *map(str, args)], capture_output=True, text=True).stdout.split()
    return int(out[0]), float(out[1]), int(out[2]) / 1024


def copy_seconds(src, dst):
    """A plain copy with fsync."""
    t = time.perf_counter()
    with open(src, "rb") as a, open(dst, "wb") as b:
        while block := a.read(1 << 22):
            b.write(block)
        b.flush()
        os.fsync(b.fileno())
    seconds = time.perf_counter() - t
    os.unlink(dst)
    return seconds


def reported(report):
    """Seconds of all but writing, from the report's timings (seconds by stage)."""
    t = report.get("timings", {})
    flat = {k: v for k, v in t.items() if isinstance(v, (int, float))}
    return sum(v for k, v in flat.items() if not k.startswith(("write", "total", "check")))


def main():
    p = bench.arguments(__doc__.splitlines()[0])
    p.add_argument("--repeat", type=int, default=5)
    args = p.parse_args()
    args.build = args.build.resolve()
    prog, rows, over = common.program(args), [], []
    print(f"{'model':34}{'MiB':>8}{'optimize':>10}{'whole':>9}{'copy':>9}{'peak MiB':>10}{'allowed':>9}")
    for name in bench.models(args):
        src = zoo.filled(name, args.build / "zoo")
        size = src.stat().st_size / 2 ** 20
        inner, whole, copies, peak = [], [], [], []
        with tempfile.TemporaryDirectory(dir=args.build) as tmp:
            out, report = Path(tmp) / "o.onnx", Path(tmp) / "r.json"
            for _ in range(args.repeat):
                copies.append(copy_seconds(src, Path(tmp) / "copy"))
                status, seconds, mib = run(prog, "optimize", src, "-o", out, "--target", args.target, "--json", report)
                if status:
                    break
                whole.append(seconds), peak.append(mib)
                inner.append(reported(json.loads(report.read_text())))
        if not whole:
            print(f"{name}: status {status}")
            over.append(name)
            continue
        inner, whole, copies, peak = (statistics.median(x) for x in (inner, whole, copies, peak))
        aim, allowed = AIM.get(name, 0.3), 2.2 * size + 64
        bad = [w for w, b in (("optimize", inner > aim), ("whole", whole > aim + copies), ("memory", peak > allowed)) if b]
        over += [name] if bad else []
        row = [name, f"{size:.1f}", f"{inner:.3f}", f"{whole:.3f}", f"{copies:.3f}", f"{peak:.0f}", f"{allowed:.0f}"]
        print(f"{row[0]:34}{row[1]:>8}{row[2]:>10}{row[3]:>9}{row[4]:>9}{row[5]:>10}{row[6]:>9}  {' '.join(bad)}", flush=True)
        rows.append(row + [" ".join(bad) or "-"])
    within = sum(float(r[2]) < 0.05 for r in rows)
    text = (f"{len(rows)} models, {within} of them parsed and optimized in under 50 ms, {len(over)} over an aim"
            f"{': ' + ', '.join(over) if over else ''}. Seconds; medians of {args.repeat} runs.\n\n"
            + bench.table(["model", "MiB", "parse + optimize", "whole", "copy + fsync", "peak MiB", "allowed MiB", "over"], rows))
    bench.write(args, f"speed-{args.target}.md", f"Time and memory of relayout, target {args.target}", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
