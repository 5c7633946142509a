#!/usr/bin/env python3
"""Models on a GPU: `relayout bench --device cuda` beside onnxruntime's CUDA provider where that is installed, and the share of the time
that cuDNN's and cuBLASLt's kernels have.

Both with inputs and outputs on the device, and both in the model's own precision: onnxruntime without TF32 unless RELAYOUT_TF32=1.  Of relayout
the recorded graph, by the device's clock; of onnxruntime the better of a CUDA graph and its plain runs, ten under way before the host waits, by the host's
clock, cuDNN's algorithms searched exhaustively (--search).  The whole latency of relayout's, with copies from and to the host, stands beside that. A step counts
as a library's where that alone ran it (`cuDNN`, not `cuDNN+own`).

  gpu_models.py                     ResNet-50 at batch 32 in float32 and float16, and models/*.onnx
  gpu_models.py vit resnet          and the sample models whose name contains one of these, in both types; all: every one
  gpu_models.py --json FOLDER       keeps relayout's own reports
  gpu_models.py --only-prepare      makes the models' files, and the sample models' weights, and measures nothing

A table for bench/results/ on stdout, then the geometric mean of how many times as fast relayout is, and where it is not.  ResNet-50 (v1.5, made here:
[32,224,224,3] in, seeded weights) is the one whose share must be 85 %.
"""
import argparse
import contextlib
import ctypes
import fcntl
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import common
import lowered
import zoo

sys.path.insert(0, str(common.ROOT / "python"))
import relayout_backend

WAYS = {"graph": {}, "plain": {"gpu_graph_id": "-1"}}  # of onnxruntime, and what its runs are told
LIBRARIES = ("cuDNN", "cuBLASLt")
LIMIT = 60  # seconds for a model, on either side
ROUNDS, UNDER_WAY = 15, 10
AT_ONCE = 5  # models that onnxruntime opens; one at a time is measured


class Network:
    """Nodes one after the other, with seeded weights."""

    def __init__(self):
        self.nodes, self.weights, self.rng = [], [], np.random.default_rng(0)

    def weight(self, shape, scale):
        self.weights.append(numpy_helper.from_array((self.rng.standard_normal(shape) * scale).astype(np.float32), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, op, inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def conv(self, x, cin, cout, k, stride=1):
        w = self.weight([cout, cin, k, k], (2 / (cin * k * k)) ** 0.5)
        return self.node("Conv", [x, w, self.weight([cout], 0.1)], pads=[k // 2] * 4, strides=[stride, stride])

    def block(self, x, cin, cmid, stride):
        cout = 4 * cmid
        y = self.node("Relu", [self.conv(x, cin, cmid, 1)])
        y = self.node("Relu", [self.conv(y, cmid, cmid, 3, stride)])
        y = self.conv(y, cmid, cout, 1)
        same = x if stride == 1 and cin == cout else self.conv(x, cin, cout, 1, stride)
        half = self.weight([1], 0)  # so that sums of residuals stay small
        self.weights[-1].CopyFrom(numpy_helper.from_array(np.array([0.5], np.float32), half))
        return self.node("Relu", [self.node("Add", [self.node("Mul", [y, half]), same])])


def resnet50(batch, size=224, classes=1000, blocks=(3, 4, 6, 3)):
    n = Network()
    x = n.node("Relu", [n.conv(n.node("Transpose", ["x"], perm=[0, 3, 1, 2]), 3, 64, 7, 2)])
    x, cin = n.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 64
    for stage, count in enumerate(blocks):
        for i in range(count):
            x, cin = n.block(x, cin, 64 << stage, 2 if stage and not i else 1), 256 << stage
    x = n.node("Flatten", [n.node("GlobalAveragePool", [x])])
    y = n.node("Gemm", [x, n.weight([cin, classes], 0.02), n.weight([classes], 0.1)])
    info = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, size, size, 3]), helper.make_tensor_value_info(y, TensorProto.FLOAT, [batch, classes])]
    return helper.make_model(helper.make_graph(n.nodes, "resnet50", info[:1], info[1:], n.weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@contextlib.contextmanager
def alone():
    """What uses the device has it to itself; a process that ends gives it back."""
    with open(Path(tempfile.gettempdir()) / "relayout-gpu-models.lock", "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def bench(args, path):
    """relayout's own report; the last line on stderr where there is none."""
    words = ["--device", args.device, *(["--runs", str(args.runs)] if args.runs else [])]
    try:
        with tempfile.TemporaryDirectory(prefix="relayout-") as tmp, alone():
            status, said = relayout_backend.ran(args.relayout, ["bench", str(path), *words, "--json", f"{tmp}/report.json"], Path(tmp), LIMIT)
            return json.loads(Path(tmp, "report.json").read_text()) if status == 0 else (said.strip().splitlines() or [f"status {status}"])[-1]
    except subprocess.TimeoutExpired:
        return f"no end after {LIMIT} s"
    except ValueError as e:
        return f"its report: {e}"


def device_waits():
    """Has the device done all? Fails where this thread has no context."""
    try:
        return ctypes.CDLL("libcuda.so.1").cuCtxSynchronize() == 0
    except OSError:
        return False


def timed(session, binding, plain, entries):
    """Milliseconds of a run."""
    import onnxruntime as ort
    session.run_with_iobinding(binding, plain)
    for o, v in zip(session.get_outputs(), binding.get_outputs(), strict=True):
        binding.bind_ortvalue_output(o.name, v)
    waiting, under_way = ort.RunOptions(), ort.RunOptions()
    for o in (waiting, under_way):
        for k, v in entries.items():
            o.add_run_config_entry(k, v)
    for _ in range(5):
        session.run_with_iobinding(binding, waiting)
    if device_waits():  # else each run waits for itself
        under_way.add_run_config_entry("disable_synchronize_execution_providers", "1")
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(UNDER_WAY):
            session.run_with_iobinding(binding, under_way)
        device_waits()
        times.append(time.perf_counter() - start)
    return 1e3 * sorted(times)[ROUNDS // 2] / UNDER_WAY


def bound(path, graph, search):
    """A session of the CUDA provider and its inputs and outputs on the device, at addresses that stay, and how it runs before anything is recorded."""
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.log_severity_level = 4
    options = {"use_tf32": str(int(os.environ.get("RELAYOUT_TF32") == "1")), "enable_cuda_graph": str(int(graph)),
               "cudnn_conv_algo_search": search.upper()}
    s = ort.InferenceSession(str(path), o, providers=[("CUDAExecutionProvider", options)])
    if s.get_providers()[0] != "CUDAExecutionProvider":
        raise RuntimeError("the CUDA provider was not loaded")
    b = s.io_binding()
    for k, v in common.random_inputs(onnx.load(path, load_external_data=False)).items():
        b.bind_ortvalue_input(k, ort.OrtValue.ortvalue_from_numpy(v, "cuda", 0))
    for o in s.get_outputs():
        b.bind_output(o.name, "cuda", 0)
    plain = ort.RunOptions()
    plain.add_run_config_entry("gpu_graph_id", "-1")
    return s, b, plain


def with_onnxruntime(job, ways, search):
    """({way: milliseconds}, what failed); None where there is no CUDA provider."""
    import onnxruntime as ort
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        return None
    times, wrong = {}, []
    for way in ways:
        try:
            session = bound(job.path, way == "graph", search)
            with alone():
                times[way] = timed(*session, WAYS[way])
        except Exception as e:
            wrong.append(f"{way}: {' '.join(str(e).split())[:200]}")
    return times, wrong


class Job:
    """A model in a type, and what relayout says of it."""

    def __init__(self, name, to, path, model):
        self.name, self.to, self.path, self.model, self.report, self.times = name, to, path, model, None, {}

    def make(self):
        """Its file, kept in the build folder; what is wrong."""
        sources = (Path(__file__), Path(lowered.__file__))
        if not self.model or (self.path.exists() and self.path.stat().st_mtime > max(p.stat().st_mtime for p in sources)):
            return ""
        try:
            model = self.model()
            if self.to != "float32":
                model = lowered.lowered(model, lowered.TYPES[self.to])
            zoo.replace(self.path, lambda tmp: onnx.save(model, tmp))
            return ""
        except Exception as e:
            return f"{self.name}, {self.to}: {e}"

    def ratio(self):
        """How many times as fast relayout is; None where one of the two has no time."""
        ours = self.report.get("device_ms") if isinstance(self.report, dict) else None
        return min(self.times.values()) / ours if ours and self.times else None

    def row(self):
        r, name = self.report, f"{self.name}, {self.to}" if self.to else self.name
        way = min(self.times, key=self.times.get, default="")
        other = f"{self.times[way]:.3f} | {way}" if way else " | "
        if isinstance(r, str):
            return f"| {name} | {r[:120]} | | {other} | | | | |"
        total = sum(o["ms"] for o in r["ops"])
        share = sum(o["ms"] for o in r["ops"] if o["kernel"] in LIBRARIES) / total if total else 0
        ours, cpu = r.get("device_ms"), ", ".join(f"{o['op']} {o['on_cpu']}" for o in r["ops"] if o.get("on_cpu"))
        ratio = f"{self.ratio():.2f}" if self.ratio() else ""
        return (f"| {name} | {r['median_ms']:.3f} | {f'{ours:.3f}' if ours else ''} | {other} | {ratio} | {100 * share:.1f} % "
                f"| {recorded(r)} | {cpu} |")


def recorded(report):
    if not report.get("replayed"):
        return "no"
    return "in branches" if "come one after the other" in report.get("branches", "") else "yes"


def complete(name, kept):
    return onnx.load(zoo.filled(name, kept))


def chosen(args):
    """The jobs, what matters most first."""
    kept = args.build / "zoo"
    kept.mkdir(parents=True, exist_ok=True)
    for to in args.types if args.batch else ():
        yield Job(f"ResNet-50, batch {args.batch}", to, kept / f"resnet50.{args.batch}.{args.size}.{to}.onnx", partial(resnet50, args.batch, args.size))
    for name in zoo.chosen([] if args.names == ["all"] else args.names) if args.names else []:
        for to in args.types:
            yield Job(name, to, kept / f"{name}.{zoo.VERSION}.{to}.onnx", partial(complete, name, kept))
    for path in sorted((common.ROOT / "models").glob("*.onnx")):
        yield Job(path.stem, "", path, None)


def prepare(args):
    """All files that a run wants, and the sample models' weights; how many could not be made."""
    kept = args.build / "zoo"
    made = [*common.forked(lambda n: not zoo.filled(n, kept) and n, zoo.names(), args.jobs), *common.forked(Job.make, chosen(args), args.jobs)]
    wrong = [why or said for _, said, why in made if why or said]
    print(*wrong, f"{len(made)} files, {len(wrong)} not made", sep="\n")
    return min(len(wrong), 1)


def measured(args, left):
    """The jobs, with relayout's report, while there is time; the names of the others go to left."""
    start = time.monotonic()
    for job in chosen(args):
        if time.monotonic() - start > args.seconds:
            left.append(f"{job.name} {job.to}".strip())
            continue
        job.report = job.make() or bench(args, job.path)
        if args.json and isinstance(job.report, dict):
            args.json.mkdir(parents=True, exist_ok=True)
            (args.json / (re.sub(r"\W+", "_", f"{job.name} {job.to}".strip()) + ".json")).write_text(json.dumps(job.report, indent=1))
        yield job


def summary(jobs):
    for to in [*dict.fromkeys(j.to for j in jobs), None]:
        ratios = [j.ratio() for j in jobs if j.ratio() and to in (j.to, None)]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"- {'all' if to is None else to or 'models/'}: {mean:.2f} times as fast as onnxruntime, geometric mean of {len(ratios)}")
    slower = sorted((j.ratio(), f"{j.name} {j.to}".strip()) for j in jobs if j.ratio() and j.ratio() < 1)
    if any(j.ratio() for j in jobs):
        print("- below 1: " + (", ".join(f"{name} {r:.2f}" for r, name in slower) or "none"))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("names", nargs="*")
    p.add_argument("--build", type=Path, default=common.ROOT / "build-gpu")
    p.add_argument("--relayout", type=Path)
    p.add_argument("--device", default="cuda")
    p.add_argument("--types", nargs="+", choices=("float32", "float16"), default=("float32", "float16"))
    p.add_argument("--batch", type=int, default=32, help="of ResNet-50; 0: without it")
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--runs", type=int, default=0)
    p.add_argument("--seconds", type=float, default=480, help="no further model after this")
    p.add_argument("--json", type=Path, metavar="FOLDER", help="for relayout's own reports")
    p.add_argument("--ways", nargs="+", choices=WAYS, default=tuple(WAYS), help="of onnxruntime")
    p.add_argument("--search", choices=("exhaustive", "heuristic"), default="exhaustive", help="of onnxruntime for cuDNN's algorithms")
    p.add_argument("--only-prepare", action="store_true")
    p.add_argument("--jobs", type=int, default=max(1, min(14, (os.cpu_count() or 1) - 2)), help="of --only-prepare")
    args = p.parse_args()
    if args.only_prepare:
        return prepare(args)
    args.relayout = (args.relayout or args.build / "relayout").resolve()
    jobs, left, notes = [], [], []
    print("| model | relayout ms, with copies | on the device ms | onnxruntime's CUDA provider ms | as | times as fast "
          "| cuDNN's and cuBLASLt's share of the nodes' time | one recorded graph | nodes on the CPU |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for job, other, why in common.forked(partial(with_onnxruntime, ways=args.ways, search=args.search), measured(args, left), AT_ONCE, limit=AT_ONCE * LIMIT):
        job.times, wrong = other or ({}, [])
        notes += [f"- {job.name} {job.to}: onnxruntime: {x}" for x in (*wrong, why) if x]
        jobs.append(job)
        print(job.row(), flush=True)
    print()
    summary(jobs)
    print(*notes, *([f"- no time for {len(left)}: {', '.join(left)}"] if left else []), sep="\n")
    return int(any(isinstance(j.report, str) for j in jobs))


if __name__ == "__main__":
    sys.exit(main())
