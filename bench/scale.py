#!/usr/bin/env python3
"""Time and memory on graphs of 1 thousand to 1 million nodes (graphs.py), beside onnxruntime and onnxslim where these are installed.

  scale.py                                  all of it: some 20 minutes, and 6 GB of memory for the largest
  scale.py ladder dense --nodes 10000 100000 --no-peers

CPU: seconds that the process ran, in the program and in the system for it; next to them seconds by the clock, whole and by phase as
the report gives them. On a busy machine only the first say something. Growth: CPU per node, to that at 10,000 nodes.
Aims: 100,000 nodes in 1 s and 500 MB; growth up to 1 million within 20 %. Peers have --cap seconds each, and do without a proof:
onnxruntime at its basic level, reading a model and writing it; onnxslim as it comes.
"""
import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import bench
import common
import graphs

# A small process starts the program, because a child's peak memory is never below what its parent had.
RUNNER = """
import os, signal, sys, time
null = os.open(os.devnull, os.O_RDWR)
t = time.perf_counter()
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
signal.alarm(int(sys.argv[1]))
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), time.perf_counter() - t, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""
PEERS = {
    "onnxruntime": """
import sys, onnxruntime
o = onnxruntime.SessionOptions()
o.optimized_model_filepath = sys.argv[2]
o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
o.log_severity_level = 4
onnxruntime.InferenceSession(sys.argv[1], o, providers=["CPUExecutionProvider"])
""",
    "onnxslim": """
import sys, onnxslim
onnxslim.slim(sys.argv[1], sys.argv[2])
""",
}
PHASES = ("read", "shapes", "legal", "assign", "prove", "lower", "movement", "write")
BASE, AIM_NODES, AIM_SECONDS, AIM_MB, AIM_GROWTH = 10_000, 100_000, 1.0, 500, 1.2


def run(cap, *command):
    """(status, seconds by the clock, CPU seconds, peak MB); status -9: it was stopped at the cap, or for want of memory."""
    command = [sys.executable, "-S", "-E", "-c", RUNNER, str(cap), *map(str, command)]
    status, clock, cpu, peak = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return int(status), float(clock), float(cpu), int(peak) * 1024 / 1e6


def ours(prog, model, tmp, args):
    """The median run by CPU, with its report; None where it fails."""
    runs = []
    for _ in range(args.repeat):
        r = run(args.cap, prog, "optimize", model, "-o", tmp / "o.onnx", "--target", args.target, "--json", tmp / "r.json")
        if r[0]:
            print(f"{model.name}: status {r[0]} after {r[1]:.1f} s")
            return None
        runs.append((r[2], r[1], r[3], json.loads((tmp / "r.json").read_text())))
    return sorted(runs, key=lambda x: x[0])[len(runs) // 2]


def peer(name, model, tmp, args):
    status, clock, cpu, peak = run(args.cap, sys.executable, "-c", PEERS[name], model, tmp / "peer.onnx")
    if status == 0:
        return [f"{clock:.2f}", f"{cpu:.2f}", f"{peak:.0f}"]
    return [f"> {args.cap}" if clock >= args.cap else f"status {status}", "-", "-"]


def over(n, cpu, peak, report, growth):
    bad = [] if report["conversions"]["proof"] == "optimal" else ["proof"]
    if n == AIM_NODES:
        bad += ["time"] * (cpu > AIM_SECONDS) + ["memory"] * (peak > AIM_MB)
    return bad + ["growth"] * (n > BASE and growth is not None and growth > AIM_GROWTH)


def measure(prog, tmp, args):
    rows, phases, others, missed = [], [], [], []
    peers = [] if args.no_peers else [p for p in PEERS if find_spec(p)]
    for family in args.models or graphs.FAMILIES:
        base = None
        for n in args.nodes:
            name, model = f"{family} {n}", tmp / f"{family}-{n}.onnx"
            count = graphs.make(family, n, model)
            best = ours(prog, model, tmp, args)
            if best is None:
                missed.append(name)
                continue
            cpu, clock, peak, report = best
            base = cpu / count if n == BASE else base
            growth = cpu / count / base if base else None
            bad, c, t = over(n, cpu, peak, report, growth), report["conversions"], report["timings"]
            missed += [name] if bad else []
            rows.append([name, count, f"{model.stat().st_size / 1e6:.1f}", f"{cpu:.2f}", f"{clock:.2f}", f"{peak:.0f}", f"{growth:.2f}" if growth else "-",
                         c["before"], c["after"], c["proof"], " ".join(bad) or "-"])
            print(*rows[-1], flush=True)
            phases.append([name, *(f"{t.get(p, 0):.3f}" for p in PHASES), f"{t['total']:.3f}"])
            cells = [x for p in peers for x in peer(p, model, tmp, args)]
            if peers:
                others.append([name, f"{clock:.2f}", f"{cpu:.2f}", f"{peak:.0f}", *cells])
                print("  peers", *cells, flush=True)
            model.unlink()
    return rows, phases, others, missed, peers


def main():
    p = bench.arguments(__doc__.splitlines()[0])
    p.set_defaults(target="onnx")
    p.add_argument("--nodes", type=int, nargs="+", default=[1_000, BASE, AIM_NODES, 1_000_000])
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--cap", type=int, default=60, help="most seconds of a run, ours or a peer's")
    p.add_argument("--no-peers", action="store_true")
    args = p.parse_args()
    if unknown := set(args.models) - set(graphs.FAMILIES):
        p.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(graphs.FAMILIES)}")
    args.build = args.build.resolve()
    prog = common.program(args)
    with tempfile.TemporaryDirectory(dir=args.build) as tmp:
        rows, phases, others, missed, peers = measure(prog, Path(tmp), args)
    text = (f"Read, optimize, prove and write; {len(missed)} over an aim{': ' + ', '.join(missed) if missed else ''}. Medians of {args.repeat}.\n\n"
            + bench.table(["graph", "nodes", "MB", "CPU s", "clock s", "peak MB", "growth", "conversions", "left", "proof", "over"], rows)
            + "\n\nSeconds by the clock, by phase:\n\n" + bench.table(["graph", *PHASES, "total"], phases))
    if others:
        head = ["graph"] + [f"{w} {what}" for w in ["relayout", *peers] for what in ("clock s", "CPU s", "peak MB")]
        text += f"\n\nBeside peers, at most {args.cap} s each; they write other results, and prove nothing:\n\n" + bench.table(head, others)
    bench.write(args, f"scale-{args.target}.md", f"Large graphs, target {args.target}", text, "onnx", *peers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
