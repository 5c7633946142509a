#!/usr/bin/env python3
"""Time, memory and Transposes left on graphs of 1 thousand to 1 million nodes (graphs.py), beside onnxruntime and onnxslim in the same run.

  scale.py --graphs build/scale             all of it: 6 to 10 minutes, of which making the graphs is half and only the first time; 5 GB of memory,
                                            2 GB of disk; writes results/scale.md
  scale.py ladder dense --nodes 10000 100000 --no-peers

Each run is a process of its own. The sizes take turns, --repeat times, so that what the machine does meanwhile falls on all of them; up to
10,000 nodes run twenty times in a turn. Each figure is that of the median run. Peers run once, in the first round; what takes longer than the
cap is stopped: `> 15`.
Seconds that the process ran, in the program (user) and in the system for it; next to them seconds by the clock. On a busy machine only the
first say something. Growth: user and system time per node, to that at 10,000 nodes. Aims: 100,000 nodes in 1 s and 500 MB; growth up to 1
million within 20 %.
Plain: what no program that makes such a file can do without. Loops that read the model's bytes, write as many as relayout's peak once, to
memory that the process has not had before, and write a file as large as relayout's output, directly after its run; user and system time.
What that takes more per node at 1 million is the machine's alone: new pages, caches, a host that gives a virtual machine its memory back when
it is used. Alone: the growth that relayout would have if only that grew. Rest: relayout less plain; its growth is what is left of relayout's
own. And what it takes to read 8 of the peak's bytes at places drawn by chance: by how much a step to another node grows dearer where nothing
is in the caches.
Instructions (--instructions, counted by valgrind: 10 minutes more): the work itself, whatever the memory does; growth likewise.
Peers: onnxruntime as it optimizes offline, at its extended level, reading a model and writing it; onnxslim as it comes. They do without a
proof, and are installed into build/peers where they are not there.
"""
import json
import re
import statistics
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
print(os.waitstatus_to_exitcode(status), time.perf_counter() - t, usage.ru_utime, usage.ru_stime, usage.ru_maxrss)
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
# Pages of 4 KB, as a program's own memory has them: NumPy's own arrays ask for larger ones. The first round is for Python alone; a small model
# has many, as its runs follow upon each other.
PLAIN = """
import mmap, os, statistics, sys, time
import numpy as np
def since(t):
    return time.process_time() - t
n, reads, model, out, size = int(sys.argv[1]) // 8, 2_000_000, sys.argv[2], sys.argv[3], int(sys.argv[4])
at, block = np.random.default_rng(0).integers(0, n, reads), bytes(1 << 16)
def least(n, size, most):
    t = time.process_time()
    with open(model, "rb") as f:
        np.frombuffer(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)[: min(os.path.getsize(model), most) // 8 * 8].view(np.int64).sum()
    x = np.frombuffer(mmap.mmap(-1, 8 * n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.int64)
    x.fill(1)
    with open(out, "wb", buffering=0) as f:
        for at_byte in range(0, size, len(block)):
            f.write(block[: size - at_byte])
    return since(t), x
least(1, 8, 8)
rounds = []
for _ in range(20 if n < 1 << 23 else 1):
    took, x = least(n, size, 1 << 62)
    rounds.append(took)
t = time.process_time()
x.take(at).sum()
print(statistics.median(rounds), since(t) / reads * 1e9)
"""
PHASES = ("read", "shapes", "legal", "assign", "prove", "lower", "movement", "write")
OWN_CAP = 60
BASE, AIM_NODES, AIM_SECONDS, AIM_MB, AIM_GROWTH = 10_000, 100_000, 1.0, 500, 1.2
TRANSPOSE = b'"\x09Transpose'  # a node's op_type, as it stands in a file


def run(cap, *command):
    """(status, seconds by the clock, user seconds, system seconds, peak MB); status -9: it was stopped at the cap, or for want of memory."""
    command = [sys.executable, "-S", "-E", "-c", RUNNER, str(cap), *map(str, command)]
    status, clock, user, system, peak = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return int(status), float(clock), float(user), float(system), int(peak) * 1024 / 1e6


def plain(peak, model, out):
    """Seconds to read the model, write peak MB and a file as large as `out`; ns of a read of these MB."""
    other = out.with_suffix(".plain")
    r = subprocess.run([sys.executable, "-c", PLAIN, str(int(peak * 1e6)), model, other, str(out.stat().st_size if out.exists() else 0)], capture_output=True,
                       text=True, check=True)
    other.unlink()
    return tuple(map(float, r.stdout.split()))


def median(runs):
    """The run whose user and system time together is the median, these by their share in all runs: the system counts them in ticks."""
    middle = sorted(runs, key=lambda r: (r[0] == 0, r[2] + r[3]))[0 if any(r[0] for r in runs) else len(runs) // 2]
    status, clock, user, system, peak = middle
    share = sum(r[2] for r in runs) / max(sum(r[2] + r[3] for r in runs), 1e-9)
    return status, clock, (user + system) * share, (user + system) * (1 - share), peak


def instructions(prog, model, out, args):
    """What valgrind counts in one run."""
    log = out.with_suffix(".log")
    subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={log}", prog, "optimize", model, "-o", out,
                    "--target", args.target], check=True, capture_output=True)
    return int(re.search(r"I +refs: +([\d,]+)", log.read_text())[1].replace(",", ""))


def peers_python(args):
    """The Python that has the peers; None where it cannot be had."""
    python = args.peers or args.build / "peers" / "bin" / "python"
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
    if subprocess.run([python, "-c", "import onnxruntime, onnxslim"], capture_output=True).returncode == 0:
        return python
    r = subprocess.run([python, "-m", "pip", "install", "--quiet", *(f"{p}=={v}" for p, v in VERSIONS.items())])
    return python if r.returncode == 0 else None


def left(path):
    return path.read_bytes().count(TRANSPOSE) if path.exists() else "-"


def cells(result, cap, out):
    status, clock, user, system, peak = result
    if status == 0:
        return [f"{clock:.2f}", f"{user + system:.2f}", f"{peak:.0f}", left(out)]
    return [f"> {cap}" if clock >= cap else f"status {status}", "-", f"> {peak:.0f}", "-"]


def made(family, n, folder):
    """Path of the graph, and how many nodes it has; made where it is not there."""
    path, count = folder / f"{family}.{n}.onnx", folder / f"{family}.{n}.count"
    if not count.exists():
        count.write_text(str(graphs.make(family, n, path)))
    return path, int(count.read_text())


def take_turns(prog, python, family, folder, tmp, args):
    """For each size: relayout's runs, the plain loops beside them, the peers' rows."""
    ours, loops, peers = ({n: [] for n in args.nodes} for _ in range(3))
    for k in range(args.repeat):
        for n in args.nodes:
            model, out = made(family, n, folder)[0], tmp / "out.onnx"
            for _ in range(20 if n <= BASE else 1):
                ours[n].append(run(OWN_CAP, prog, "optimize", model, "-o", out, "--target", args.target, "--json", tmp / f"{n}.json"))
            loops[n].append(plain(ours[n][-1][-1], model, out))
            if k == 0 and python:
                peers[n] = [f"{family} {n}", left(model), *cells(ours[n][0], OWN_CAP, out)]
                for script in PEERS.values():
                    out.unlink(missing_ok=True)
                    peers[n] += cells(run(args.cap, python, "-c", script, model, out), args.cap, out)
            print(f"{family} {n}", *(f"{x:.3g}" for x in (*ours[n][-1], *loops[n][-1])), flush=True)
            out.unlink(missing_ok=True)
    return ours, loops, peers


def over(n, cpu, peak, report, growth):
    bad = [] if report["conversions"]["proof"] == "optimal" else ["proof"]
    if n == AIM_NODES:
        bad += ["time"] * (cpu > AIM_SECONDS) + ["memory"] * (peak > AIM_MB)
    return bad + ["growth"] * (n > BASE and growth is not None and growth > AIM_GROWTH)


def ratio(x, base):
    return f"{x / base:.2f}" if base else "-"


def per_node(middle, loop, ran, count):
    """Microseconds and instructions per node, by what the table of growth tells; ns of a read."""
    _, _, user, system, _ = middle
    least = loop[0] / count * 1e6
    each = {"user": user / count * 1e6, "system": system / count * 1e6, "plain": least, "ran": ran / count, "read": loop[1]}
    each["all"] = each["user"] + each["system"]
    each["rest"] = each["all"] - least
    return each


def growth_row(name, x, base):
    """base: at BASE; None: before it."""
    def grown(key):
        return ratio(x[key], base and base[key])
    alone = ratio(x["plain"] + base["rest"], base["all"]) if base else "-"
    return [name, f"{x['user']:.2f}", f"{x['system']:.2f}", grown("all"), grown("user"), f"{x['plain']:.2f}", grown("plain"), alone, f"{x['rest']:.2f}",
            grown("rest"), f"{x['ran']:.0f}" if x["ran"] else "-", grown("ran"), f"{x['read']:.1f}", grown("read")]


GROWTH_HEAD = ["graph", "user", "system", "growth", "of user", "plain", "growth", "alone", "rest", "growth", "instructions", "growth", "read ns", "growth"]


def measure(prog, python, folder, tmp, args):
    rows, growths, phases, others, missed = [], [], [], [], []
    for family in args.models or graphs.FAMILIES:
        for n in args.nodes:
            made(family, n, folder)
        ours, loops, peers = take_turns(prog, python, family, folder, tmp, args)
        others += [peers[n] for n in args.nodes if peers[n]]
        base = None
        for n in args.nodes:
            name, (model, count), (status, clock, user, system, peak) = f"{family} {n}", made(family, n, folder), median(ours[n])
            if status:
                missed.append(name)
                continue
            report = json.loads((tmp / f"{n}.json").read_text())
            loop = [statistics.median(x) for x in zip(*loops[n])]
            ran = instructions(prog, model, tmp / "out.onnx", args) if args.instructions else 0
            each = per_node(median(ours[n]), loop, ran, count)
            base = each if n == BASE else base
            bad, c, t = over(n, user + system, peak, report, each["all"] / base["all"] if base else None), report["conversions"], report["timings"]
            missed += [name] if bad else []
            rows.append([name, count, f"{model.stat().st_size / 1e6:.1f}", f"{user:.2f}", f"{system:.2f}", f"{clock:.2f}", f"{peak:.0f}", c["before"],
                         c["after"], c["proof"], " ".join(bad) or "-"])
            growths.append(growth_row(name, each, base))
            phases.append([name, *(f"{t.get(p, 0):.3f}" for p in PHASES), f"{t['total']:.3f}"])
    return rows, growths, phases, others, missed


def main():
    p = bench.arguments(__doc__.splitlines()[0])
    p.set_defaults(target="onnx")
    p.add_argument("--nodes", type=int, nargs="+", default=[1_000, BASE, AIM_NODES, 1_000_000])
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--cap", type=int, default=15, help="most seconds of a peer's run; relayout has a minute")
    p.add_argument("--graphs", type=Path, help="where the graphs are kept for the next run (default: nowhere)")
    p.add_argument("--peers", type=Path, help="a Python that has them (default: that of build/peers)")
    p.add_argument("--no-peers", action="store_true")
    p.add_argument("--instructions", action="store_true", help="count them, too")
    args = p.parse_args()
    if unknown := set(args.models) - set(graphs.FAMILIES):
        p.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(graphs.FAMILIES)}")
    args.build = args.build.resolve()
    prog = common.program(args)
    python = None if args.no_peers else peers_python(args)
    with tempfile.TemporaryDirectory(dir=args.build) as tmp:
        folder = args.graphs or Path(tmp)
        folder.mkdir(parents=True, exist_ok=True)
        rows, growths, phases, others, missed = measure(prog, python, folder, Path(tmp), args)
    text = (f"Read, optimize, prove and write; {len(missed)} over an aim{': ' + ', '.join(missed) if missed else ''}. Medians of {args.repeat}.\n\n"
            + bench.table(["graph", "nodes", "MB", "user s", "system s", "clock s", "peak MB", "conversions", "left", "proof", "over"], rows)
            + "\n\nMicroseconds per node, in the program and in the system; growth from 10,000 nodes on, in all and of user time. Plain: loops that "
            "read the model, write as many bytes as the peak once and a file as large as the output; their growth is the machine's alone; alone: the "
            "growth in all if nothing but that grew. Rest: relayout less plain. Instructions per node. And ns to read at a place of the peak's bytes "
            "drawn by chance:\n\n"
            + bench.table(GROWTH_HEAD, growths)
            + "\n\nSeconds by the clock, by phase, in the last run:\n\n" + bench.table(["graph", *PHASES, "total"], phases))
    if others:
        head = ["graph", "Transposes"] + [f"{w} {what}" for w in ["relayout", *PEERS] for what in ("clock s", "CPU s", "peak MB", "left")]
        text += (f"\n\nBeside peers ({', '.join(f'{p} {v}' for p, v in VERSIONS.items())}), in turns, at most {args.cap} s each; left: Transposes. onnxruntime's "
                 "extended level may use ops of its own; peers prove nothing:\n\n" + bench.table(head, others))
    bench.write(args, "scale.md", f"Large graphs, target {args.target}", text, "onnx")
    return 0


if __name__ == "__main__":
    sys.exit(main())
