#!/usr/bin/env python3
"""Time, memory and Transposes left on graphs of 1 thousand to 1 million nodes (graphs.py), beside onnxruntime and onnxslim in the same run.

  scale.py                                  all of it: 5 to 8 minutes, 5 GB of memory and 2 GB of disk for the largest; writes results/scale.md
  scale.py ladder dense --nodes 10000 100000 --no-peers

On each graph the tools take turns, --repeat times; the run whose CPU time is the median of a tool's counts. A tool that took more than a tenth
of the cap runs once. What takes longer than the cap is stopped: `> 15`. relayout has four times as long.
CPU: seconds that the process ran, in the program and in the system for it; next to them seconds by the clock. On a busy machine only the
first say something. Growth: CPU per node, to that at 10,000 nodes. Aims: 100,000 nodes in 1 s and 500 MB; growth up to 1 million within 20 %.
Peers: onnxruntime as it optimizes offline, at its extended level, reading a model and writing it; onnxslim as it comes. They do without a
proof, and are installed into build/peers where they are not there.
"""
import json
import subprocess
import sys
import tempfile
import venv
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
VERSIONS = {"onnxruntime": "1.31.1", "onnxslim": "0.1.98"}
PEERS = {
    "onnxruntime": """
import sys, onnxruntime
o = onnxruntime.SessionOptions()
o.optimized_model_filepath = sys.argv[2]
o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
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
TRANSPOSE = b'"\x09Transpose'  # a node's op_type, as it stands in a file


def run(cap, *command):
    """(status, seconds by the clock, CPU seconds, peak MB); status -9: it was stopped at the cap, or for want of memory."""
    command = [sys.executable, "-S", "-E", "-c", RUNNER, str(cap), *map(str, command)]
    status, clock, cpu, peak = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return int(status), float(clock), float(cpu), int(peak) * 1024 / 1e6


def peers_python(args):
    """The Python that has the peers; None where it cannot be had."""
    python = args.peers or args.build / "peers" / "bin" / "python"
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
    if subprocess.run([python, "-c", "import onnxruntime, onnxslim"], capture_output=True).returncode == 0:
        return python
    r = subprocess.run([python, "-m", "pip", "install", "--quiet", *(f"{p}=={v}" for p, v in VERSIONS.items())])
    return python if r.returncode == 0 else None


def take_turns(tools, cap, repeat):
    """The median run of each tool by CPU: (status, clock, CPU, MB). tools: name -> (cap, command)."""
    runs = {name: [] for name in tools}
    for _ in range(repeat):
        for name, (most, command) in tools.items():
            if runs[name] and (runs[name][0][0] or runs[name][0][1] > cap / 10):
                continue
            runs[name].append(run(most, *command))
    return {name: sorted(r, key=lambda x: x[2])[len(r) // 2] for name, r in runs.items()}


def left(path):
    return path.read_bytes().count(TRANSPOSE) if path.exists() else "-"


def cells(result, cap, out):
    status, clock, cpu, peak = result
    if status == 0:
        return [f"{clock:.2f}", f"{cpu:.2f}", f"{peak:.0f}", left(out)]
    return [f"> {cap}" if clock >= cap else f"status {status}", "-", f"> {peak:.0f}", "-"]


def over(n, cpu, peak, report, growth):
    bad = [] if report["conversions"]["proof"] == "optimal" else ["proof"]
    if n == AIM_NODES:
        bad += ["time"] * (cpu > AIM_SECONDS) + ["memory"] * (peak > AIM_MB)
    return bad + ["growth"] * (n > BASE and growth is not None and growth > AIM_GROWTH)


def commands(prog, python, model, tmp, args):
    mine = [prog, "optimize", model, "-o", tmp / "relayout.onnx", "--target", args.target, "--json", tmp / "r.json"]
    tools = {"relayout": (4 * args.cap, mine)}
    for name, script in PEERS.items() if python else ():
        tools[name] = (args.cap, [python, "-c", script, model, tmp / f"{name}.onnx"])
    return tools


def measure(prog, python, tmp, args):
    rows, phases, others, missed = [], [], [], []
    for family in args.models or graphs.FAMILIES:
        base = None
        for n in args.nodes:
            name, model = f"{family} {n}", tmp / "in.onnx"
            count = graphs.make(family, n, model)
            tools = commands(prog, python, model, tmp, args)
            best = take_turns(tools, args.cap, args.repeat)
            line = [name, left(model)] + [c for t in tools for c in cells(best[t], tools[t][0], tmp / f"{t}.onnx")]
            print(*line, flush=True)
            status, clock, cpu, peak = best["relayout"]
            others += [line] if python else []
            if status:
                missed.append(name)
                continue
            report = json.loads((tmp / "r.json").read_text())
            base = cpu / count if n == BASE else base
            growth = cpu / count / base if base else None
            bad, c, t = over(n, cpu, peak, report, growth), report["conversions"], report["timings"]
            missed += [name] if bad else []
            rows.append([name, count, f"{model.stat().st_size / 1e6:.1f}", f"{cpu:.2f}", f"{clock:.2f}", f"{peak:.0f}", f"{growth:.2f}" if growth else "-",
                         c["before"], c["after"], c["proof"], " ".join(bad) or "-"])
            phases.append([name, *(f"{t.get(p, 0):.3f}" for p in PHASES), f"{t['total']:.3f}"])
            for old in tmp.glob("*.onnx"):
                old.unlink()
    return rows, phases, others, missed


def main():
    p = bench.arguments(__doc__.splitlines()[0])
    p.set_defaults(target="onnx")
    p.add_argument("--nodes", type=int, nargs="+", default=[1_000, BASE, AIM_NODES, 1_000_000])
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--cap", type=int, default=15, help="most seconds of a peer's run; relayout has four times as long")
    p.add_argument("--peers", type=Path, help="a Python that has them (default: that of build/peers)")
    p.add_argument("--no-peers", action="store_true")
    args = p.parse_args()
    if unknown := set(args.models) - set(graphs.FAMILIES):
        p.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(graphs.FAMILIES)}")
    args.build = args.build.resolve()
    prog = common.program(args)
    python = None if args.no_peers else peers_python(args)
    with tempfile.TemporaryDirectory(dir=args.build) as tmp:
        rows, phases, others, missed = measure(prog, python, Path(tmp), args)
    text = (f"Read, optimize, prove and write; {len(missed)} over an aim{': ' + ', '.join(missed) if missed else ''}. Medians of {args.repeat}, of what takes "
            f"long one run.\n\n"
            + bench.table(["graph", "nodes", "MB", "CPU s", "clock s", "peak MB", "growth", "conversions", "left", "proof", "over"], rows)
            + "\n\nSeconds by the clock, by phase:\n\n" + bench.table(["graph", *PHASES, "total"], phases))
    if others:
        head = ["graph", "Transposes"] + [f"{w} {what}" for w in ["relayout", *PEERS] for what in ("clock s", "CPU s", "peak MB", "left")]
        text += (f"\n\nBeside peers ({', '.join(f'{p} {v}' for p, v in VERSIONS.items())}), in turns, at most {args.cap} s each; left: Transposes. onnxruntime's "
                 "extended level may use ops of its own; peers prove nothing:\n\n" + bench.table(head, others))
    bench.write(args, "scale.md", f"Large graphs, target {args.target}", text, "onnx")
    return 0


if __name__ == "__main__":
    sys.exit(main())
