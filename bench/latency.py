#!/usr/bin/env python3
"""Latency of the rewritten models against the originals, in onnxruntime (default optimizations) and, if installed, OpenVINO.

  latency.py                       all sample models, one and two threads
  latency.py vit swin --runtime onnxruntime --threads 1
  latency.py gpt conformer --quantize channel    models in bytes, as onnxruntime's quantizer makes them

Three sessions run in turn: the original, the rewritten model, and a second copy of the original, whose ratio shows the noise.
They are made anew in every block, because where memory lands matters as much as what runs. Blocks are repeated until that
ratio and the spread over the blocks are within 1 % (--noise) or the model's time (--seconds) is up; a ratio that stayed noisier
is marked with *. Models that relayout leaves as they are count as 1.
Needs an idle machine; for OpenVINO, `.venv/bin/pip install openvino==2026.4.1`.
"""
import math
import random
import statistics
import sys
import time

import bench
import common
import zoo


class Onnxruntime:
    packages = ("onnxruntime",)

    def __init__(self, path, threads):
        self.s = common.session(path, optimized=True, threads=threads)

    def run(self, x):
        self.s.run(None, x)


class Openvino:
    packages = ("openvino",)

    def __init__(self, path, threads):
        import openvino
        c = openvino.Core().compile_model(str(path), "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
                                                             "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": "1"})
        self.names = [p.get_names() for p in c.inputs]
        self.r = c.create_infer_request()

    def run(self, x):
        self.r.infer([next(v for k, v in x.items() if k in names) for names in self.names])


RUNTIMES = {"onnxruntime": Onnxruntime, "openvino": Openvino}


def block(make, paths, x, threads, rng, budget):
    """Median seconds of the first path, and the median of each one's ratio to it in the same round, in fresh sessions."""
    order = list(range(len(paths)))
    rng.shuffle(order)
    s = [None] * len(paths)
    for i in order:
        s[i] = make(paths[i], threads)
        s[i].run(x)
    t = time.perf_counter()
    s[0].run(x)
    one = time.perf_counter() - t
    reps = max(1, math.ceil(0.004 / max(one, 1e-6)))
    rounds = max(5, min(200, int(budget / (len(paths) * reps * max(one, 1e-6)))))
    times = [[] for _ in paths]
    for _ in range(rounds):
        rng.shuffle(order)
        for i in order:
            t = time.perf_counter()
            for _ in range(reps):
                s[i].run(x)
            times[i].append((time.perf_counter() - t) / reps)
    ratio = lambda v: statistics.median(a / b for a, b in zip(v, times[0]))
    return statistics.median(times[0]), [ratio(v) for v in times]


def measure_all(make, original, others, x, threads, args):
    """(ms of the original, [ratio of each other], ratio of a second copy of the original, [error of each ratio estimated from the
    blocks], blocks)."""
    rng, blocks, end = random.Random(0), [], time.time() + args.seconds
    paths = [original, *others, original]
    middle = lambda i: statistics.median(ratios[i] for _, ratios in blocks)
    while True:
        blocks.append(block(make, paths, x, threads, rng, args.seconds / 10))
        if len(blocks) < 4:
            continue
        n, noise, ratio = len(blocks), middle(len(paths) - 1), [middle(i + 1) for i in range(len(others))]
        error = [1.86 * statistics.median(abs(r[i + 1] - ratio[i]) for _, r in blocks) / math.sqrt(n) for i in range(len(others))]
        if max(abs(noise - 1), *error) < args.noise or time.time() > end:
            return 1e3 * statistics.median(t for t, _ in blocks), ratio, noise, error, n


def measure(make, original, rewritten, x, threads, args):
    """The same of one."""
    ms, ratio, noise, error, n = measure_all(make, original, [rewritten], x, threads, args)
    return ms, ratio[0], noise, error[0], n


def geomean(x):
    return math.exp(statistics.fmean(map(math.log, x))) if x else None


def summary(results, runtime, threads):
    """Lines with the figures that the project promises."""
    out = []
    targets = zoo.table("targets.json")
    moving = [n for n in results if n.startswith(("pt_", "ptd_")) and targets.get(n, {}).get("transposes")]
    raw = [n for n in results if n.startswith("tf_") and n.endswith("_raw")]
    for what, names in (("PyTorch models with Transposes", moving), ("tf_*_raw models", raw), ("all models", list(results))):
        ratios = [results[n][threads][1] if results[n][threads] else 1.0 for n in names if threads in results[n]]
        if ratios:
            g = geomean(ratios)
            worst = max(ratios)
            out.append(f"- {threads} thread{'s' * (threads > 1)}, {what} ({len(ratios)}): geometric mean {g:.3f} ({1 / g:.2f} times as fast), largest {worst:.3f}")
    return out


def main():
    p = bench.arguments(__doc__.splitlines()[0])
    p.add_argument("--runtime", action="append", choices=list(RUNTIMES), help="default: those installed")
    p.add_argument("--threads", type=int, action="append", help="default: 1 and 2")
    p.add_argument("--quantize", choices=bench.QUANTIZED, help="models in bytes")
    p.add_argument("--noise", type=float, default=0.01)
    p.add_argument("--seconds", type=float, default=30, help="most time per model, runtime and number of threads")
    args = p.parse_args()
    args.build = args.build.resolve()
    prog, threads, names = common.program(args), args.threads or [1, 2], bench.models(args)
    originals = [(n, zoo.filled(n, args.build / "zoo")) for n in names]
    if args.quantize:
        originals = [(n, bench.quantized(path, args.quantize)) for n, path in originals]
    pairs = [(n, path, bench.optimized(prog, n, args, path)) for n, path in originals]
    for runtime in args.runtime or RUNTIMES:
        make = RUNTIMES[runtime]
        try:
            __import__(runtime)
        except ImportError:
            print(f"{runtime} is not installed: skipped")
            continue
        results = {}
        print(f"{runtime}: ratio to the original, second copy of the original behind it")
        for name, original, rewritten in pairs:
            if rewritten is None:
                continue
            x = zoo.original(name, args.build / "zoo").inputs[0]
            if common.same_bytes(original, rewritten):
                results[name] = {t: None for t in threads}
                print(f"{name:34} the same file")
                continue
            results[name] = {}
            for t in threads:
                try:
                    results[name][t] = measure(make, original, rewritten, x, t, args)
                except Exception as e:
                    print(f"{name}: {runtime} cannot run it: {(str(e).splitlines() or [''])[0][:150]}")
                    break
                ms, ratio, noise, error, blocks = results[name][t]
                print(f"{name:34}{t:2} thr {ms:9.3f} ms  {ratio:6.3f} +- {error:.3f}  ({noise:5.3f}, {blocks} blocks)", flush=True)
            if not results[name]:
                del results[name]
        rows = []
        for name, by in results.items():
            cells = []
            for t in threads:
                if by.get(t, 0) is None:
                    cells += ["-", "same file", "-"]
                    continue
                ms, ratio, noise, error, _ = by.get(t, (math.nan,) * 5)
                cells += [f"{ms:.2f}", f"{ratio:.3f}" + ("*" if not max(abs(noise - 1), error) < args.noise else ""), f"{noise:.3f}"]
            rows.append([name, *cells])
        head = ["model"] + [h for t in threads for h in (f"ms, {t} thr", "ratio", "noise")]
        lines = [s for t in threads for s in summary(results, runtime, t)]
        bench.write(args, f"latency-{runtime}-{args.target}.md", f"Latency in {runtime}, target {args.target}: rewritten / original",
                    "\n".join(lines) + "\n\n" + bench.table(head, rows), *make.packages, "onnx", "numpy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
