#!/usr/bin/env python3
"""Latency of the runtime (librelayout_runtime, from the build folder) beside onnxruntime's (all its optimizations) and, if installed,
OpenVINO's (float32), on the sample models.

  runtime.py                       all sample models, one and two threads
  runtime.py vit swin --threads 1  models whose name contains one of these
  runtime.py --optimize            relayout runs what `relayout optimize` makes of the model
  runtime.py --movement            what moving data takes of onnxruntime's time instead, one thread
  runtime.py --load                load time and peak memory instead, of a fresh process for each (about 5 minutes for all)
  runtime.py resnet18 vit_tiny --quantize channel        models in bytes, as onnxruntime's quantizer makes them
  runtime.py --type float16        models in float16, as tests/python/lowered.py makes them
  runtime.py --seconds 2           all models with one and two threads in about 9 minutes, half of that for the sessions of the others

The sessions of a model live in this process and run in turn, a round of each after the other in random order; a figure is the median
over the rounds, a ratio the median of the ratios within a round, so that what else the machine does hits all alike. Printed: how
many times as fast as the others relayout is (1.10: it takes 10 % less of the time), and geometric means. With --cpu the processor
time of the process is taken instead of the clock's, for a machine that is busy.

--load: milliseconds from the model's path to a session, and of the first run, which relayout packs weights in; the most memory that the
process had resident (VmHWM) after three runs, with Python and the engine's library in it. The file was read before (page cache), and
a model of one node was opened and run in the process: libraries, which a process loads once, are no part of a model's load time.
"""
import ctypes
import importlib.util
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

import bench
import common
import latency
import lowered
import movement_latency
import zoo


class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_uint32), ("dim", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p), ("nbyte", ctypes.c_size_t)]


class Model(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("data", ctypes.c_void_p), ("nbyte", ctypes.c_size_t)]


class Options(ctypes.Structure):
    """rl_options up to `threads`."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("objective", ctypes.c_char_p), ("time_limit", ctypes.c_double),
                ("max_memory", ctypes.c_size_t), ("input_layouts", ctypes.c_char_p), ("output_layouts", ctypes.c_char_p),
                ("context", ctypes.c_void_p), ("dims", ctypes.c_void_p), ("input_shapes", ctypes.c_void_p), ("directory", ctypes.c_char_p),
                ("report", ctypes.c_void_p), ("threads", ctypes.c_uint32)]


class Relayout:
    library = None

    def __init__(self, path, threads):
        lib = Relayout.library
        options = Options(struct_size=ctypes.sizeof(Options), threads=threads)
        self.s = ctypes.c_void_p()
        status = lib.rl_session_new(ctypes.byref(Model(path=str(path).encode())), ctypes.byref(options), ctypes.byref(self.s), None)
        if status:
            raise common.Differ(f"rl_session_new: status {status}")

    def run(self, x):
        types = {"float32": 1, "int64": 7, "int32": 6, "bool": 9, "float64": 11}
        a, keep = (Array * len(x))(), []
        for i, (name, v) in enumerate(x.items()):
            v = np.ascontiguousarray(v)
            dim = (ctypes.c_int64 * max(v.ndim, 1))(*v.shape)
            keep.append((v, dim))
            a[i] = Array(name.encode(), types[v.dtype.name], v.ndim, dim, v.ctypes.data, v.nbytes)
        out = ctypes.POINTER(Array)()
        status = Relayout.library.rl_session_run(self.s, a, len(x), ctypes.byref(out), None)
        if status:
            raise common.Differ(f"rl_session_run: status {status}")

    def __del__(self):
        if self.s:
            Relayout.library.rl_session_free(self.s)


def load(build):
    lib = Relayout.library = ctypes.CDLL(str(build / "librelayout_runtime.so"))
    lib.rl_session_free.argtypes = [ctypes.c_void_p]
    lib.rl_session_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p]
    lib.rl_session_new.argtypes = [ctypes.c_void_p] * 4


def measure(sessions, x, clock, seconds):
    """Milliseconds of each session (median), and of each the median of its ratio to the first in the same round."""
    rng, names, times = random.Random(0), list(sessions), {n: [] for n in sessions}
    for s in sessions.values():
        s.run(x)
        s.run(x)
    start = clock()
    sessions[names[0]].run(x)
    reps = max(1, math.ceil(0.004 / max(clock() - start, 1e-6)))
    end = time.monotonic() + seconds
    while len(times[names[0]]) < 5 or (time.monotonic() < end and len(times[names[0]]) < 200):
        rng.shuffle(names)
        for n in names:
            start = clock()
            for _ in range(reps):
                sessions[n].run(x)
            times[n].append((clock() - start) / reps)
    first = times["relayout"]
    return ({n: 1e3 * statistics.median(t) for n, t in times.items()},
            {n: statistics.median(a / b for a, b in zip(t, first)) for n, t in times.items() if n != "relayout"})


# ---- load time and memory ----

def resident():
    """The most so far, MB."""
    return int(next(s for s in Path("/proc/self/status").read_text().splitlines() if s.startswith("VmHWM")).split()[1]) / 1024


def child(engine, path, threads, inputs, build, clock):
    """In a process of its own: prints what measure_load wants."""
    x, made = dict(np.load(inputs)), ENGINES[engine]
    if engine == "relayout":
        load(Path(build))
    else:
        __import__(engine)
    made(Path(inputs).with_name("first.onnx"), threads).run({"x": np.ones(4, np.float32)})
    start, before = clock(), resident()
    session = made(path, threads)
    ready, loaded = clock(), resident()
    session.run(x)
    first = clock()
    session.run(x)
    session.run(x)
    print(json.dumps({"load": 1e3 * (ready - start), "first": 1e3 * (first - ready), "before": before, "loaded": loaded, "peak": resident()}))


def measure_load(names, made, args, threads):
    """A table; of each figure the least of some processes."""
    ratios, rows = {n: {"load": [], "both": [], "peak": []} for n in made if n != "relayout"}, []
    with tempfile.TemporaryDirectory() as tmp:
        onnx.save(onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 13]> g (float[4] x) => (float[4] y) { y = Relu(x) }'), Path(tmp) / "first.onnx")
        for name in names:
            path = zoo.filled(name, args.build / "zoo")
            np.savez(Path(tmp) / "x.npz", **zoo.inputs_of(onnx.load(path, load_external_data=False)))
            got = {}
            for engine in [e for _ in range(args.rounds) for e in made]:
                r = subprocess.run([sys.executable, __file__, "--child", engine, path, str(threads), str(Path(tmp) / "x.npz"), str(args.build)]
                                   + (["--cpu"] if args.cpu else []), capture_output=True, text=True)
                if r.returncode:
                    print(f"{name}: {engine}: {(r.stderr.splitlines() or [''])[-1][:200]}")
                    continue
                now = json.loads(r.stdout.splitlines()[-1])
                now["both"] = now["load"] + now["first"]
                got[engine] = {k: min(v, got.get(engine, now)[k]) for k, v in now.items()}
            if len(got) < len(made):
                continue
            for n, r in ratios.items():
                for k in r:
                    r[k].append((got["relayout"][k] / got[n][k], name))
            rows.append([name] + [f"{got[e][k]:.0f}" for k in ("load", "first", "peak") for e in made]
                        + [f"{ratios[n][k][-1][0]:.2f}" for n in ratios for k in ratios[n]])
            print(" | ".join(rows[-1]), flush=True)
    head = ["model"] + [f"{e} {k}" for k in ("load ms", "first ms", "peak MB") for e in made] + [f"{k} / {n}'s" for n in ratios for k in ratios[n]]
    lines = [bench.table(head, rows), ""]
    for n, r in ratios.items():
        for k, v in r.items():
            if v:
                lines.append(f"- {k} of relayout / {n}'s: {latency.geomean([x for x, _ in v]):.2f} (geometric mean of {len(v)}), the most {max(v)[0]:.2f} "
                             f"({max(v)[1]}); above 1: {', '.join(m for x, m in v if x > 1) or 'none'}")
    return lines


def in_type(path, name):
    made = path.with_suffix(f".{name}.onnx")
    onnx.save(lowered.lowered(onnx.load(path), lowered.TYPES[name]), made)
    return made


def movement(names, build):
    """A table: what nodes that only move data take of all nodes' time in onnxruntime, without and with the reorders of its own layouts."""
    rows = []
    for name in names:
        path = zoo.filled(name, build / "zoo")
        rows.append([name] + [f"{100 * s:.1f} %" for s in movement_latency.movement_share(path, zoo.inputs_of(onnx.load(path, load_external_data=False)))])
        print(" | ".join(rows[-1]), flush=True)
    return [bench.table(["model", "movement", "with reorders"], rows)]


ENGINES = {"relayout": Relayout, "onnxruntime": latency.Onnxruntime, "openvino": latency.Openvino}


def main():
    if "--child" in sys.argv:
        engine, path, threads, inputs, build = sys.argv[2:7]
        return child(engine, path, int(threads), inputs, build, time.process_time if "--cpu" in sys.argv else time.perf_counter)
    p = bench.arguments(__doc__.splitlines()[0])
    p.add_argument("--threads", type=int, action="append", help="default: 1 and 2")
    p.add_argument("--seconds", type=float, default=5, help="for each model and number of threads")
    p.add_argument("--optimize", action="store_true", help="relayout runs the rewritten model, the others the original")
    p.add_argument("--quantize", choices=bench.QUANTIZED, help="models in bytes")
    p.add_argument("--type", choices=lowered.TYPES, help="models in this type; onnxruntime and OpenVINO run float16 alone")
    p.add_argument("--cpu", action="store_true", help="processor time of this process, not the clock's")
    p.add_argument("--load", action="store_true", help="load time and peak memory instead, each in a process of its own")
    p.add_argument("--movement", action="store_true", help="the share of movement in onnxruntime's time instead")
    p.add_argument("--rounds", type=int, default=1, help="with --load: processes for each figure, the least counts")
    args = p.parse_args()
    args.build = args.build.resolve()
    prog, names, clock = common.program(args), bench.models(args), time.process_time if args.cpu else time.perf_counter
    load(args.build)
    made = dict(ENGINES)
    if importlib.util.find_spec("openvino") is None:
        print("openvino is not installed")
        del made["openvino"]
    if not common.has_onednn(prog):
        print("there is no oneDNN: relayout runs its reference kernels")
    lines = [f"{bench.machine()}; {bench.versions('onnxruntime', 'openvino')}", ""]
    print(lines[0])
    if args.load or args.movement:
        for threads in args.threads or [1]:
            lines += (movement(names, args.build) if args.movement else measure_load(names, made, args, threads)) + [""]
            print("\n".join(lines[2:]))
        if args.result:
            (bench.HERE / "results" / args.result).write_text("\n".join(lines))
        return
    for threads in args.threads or [1, 2]:
        ratios = {n: [] for n in made if n != "relayout"}
        lines += [f"| model, {threads} thread{'s' * (threads > 1)} | " + " | ".join(f"{n} ms" for n in made) + " | " +
                  " | ".join(f"times as fast as {n}" for n in ratios) + " |", "|---" * (1 + len(made) + len(ratios)) + "|"]
        print("\n".join(lines[-2:]))
        for name in names:
            path = zoo.filled(name, args.build / "zoo")
            x = zoo.inputs_of(onnx.load(path, load_external_data=False))
            try:
                path = bench.quantized(path, args.quantize) if args.quantize else in_type(path, args.type) if args.type else path
                sessions = {n: make(bench.optimized(prog, name, args) if args.optimize and n == "relayout" else path, threads)
                            for n, make in made.items()}
                ms, ratio = measure(sessions, x, clock, args.seconds)
            except Exception as e:
                print(f"{name}: {type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}")
                continue
            for n, r in ratio.items():
                ratios[n].append(r)
            lines.append(f"| {name} | " + " | ".join(f"{ms[n]:.3g}" for n in made) + " | " + " | ".join(f"{ratio[n]:.2f}" for n in ratios) + " |")
            print(lines[-1], flush=True)
        for n, r in ratios.items():
            if r:
                lines.append(f"- {threads} thread{'s' * (threads > 1)}, {len(r)} models: {latency.geomean(r):.3f} times as fast as {n} "
                             f"(geometric mean), {min(r):.2f} at least; below 0.6: {sum(v < 0.6 for v in r)}")
                print(lines[-1])
        lines.append("")
    if args.result:
        (bench.HERE / "results" / args.result).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
