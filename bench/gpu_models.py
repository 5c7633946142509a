#!/usr/bin/env python3
"""Models on a GPU: `relayout bench --device cuda` beside onnxruntime's CUDA provider where that is installed, and the share of the time
that cuDNN's and cuBLASLt's kernels have.

Both with inputs and outputs on the device: of relayout the recorded graph, by the device's clock; of onnxruntime a run with what is bound there, by
the host's, which has its launches in it. The whole latency of relayout's, with copies from and to the host, stands beside that. A step counts
as a library's where that alone ran it (`cuDNN`, not `cuDNN+own`).

  gpu_models.py                     ResNet-50 at batch 32 in float32 and float16, and models/*.onnx
  gpu_models.py vit resnet          and the sample models whose name contains one of these; all: every one

A table for bench/results/ on stdout.  ResNet-50 (v1.5, made here: [32,224,224,3] in, seeded weights) is the one whose share must be 85 %.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import common
import lowered
import zoo

LIBRARIES = ("cuDNN", "cuBLASLt")


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
    return helper.make_model(helper.make_graph(n.nodes, "resnet50", info[:1], info[1:], n.weights), opset_imports=[helper.make_opsetid("", 17)])


def bench(prog, path, device, runs):
    """relayout's own report; the last line on stderr where there is none."""
    words = ["--device", device, *(["--runs", str(runs)] if runs else [])]
    p = subprocess.run([prog, "bench", path, *words, "--json", "-"], capture_output=True, text=True, timeout=240)
    return json.loads(p.stdout) if p.returncode == 0 else (p.stderr.strip().splitlines() or [f"status {p.returncode}"])[-1]


def with_onnxruntime(path, model):
    """Milliseconds by the CUDA provider, inputs and outputs on the device; None where there is none."""
    import onnxruntime as ort
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        return None
    s = ort.InferenceSession(str(path), providers=["CUDAExecutionProvider"])
    b = s.io_binding()
    for k, v in common.random_inputs(model).items():
        b.bind_ortvalue_input(k, ort.OrtValue.ortvalue_from_numpy(v, "cuda", 0))
    for o in s.get_outputs():
        b.bind_output(o.name, "cuda", 0)
    times = []
    for _ in range(60):
        start = time.perf_counter()
        s.run_with_iobinding(b)
        b.synchronize_outputs()
        times.append(time.perf_counter() - start)
    return 1e3 * sorted(times[10:])[25]


def row(args, name, path, model):
    r = bench(args.relayout, path, args.device, args.runs)
    if isinstance(r, str):
        print(f"| {name} | {r[:120]} | | | | | | |", flush=True)
        return False
    total = sum(o["ms"] for o in r["ops"])
    share = sum(o["ms"] for o in r["ops"] if o["kernel"] in LIBRARIES) / total if total else 0
    try:
        other = with_onnxruntime(path, model)
    except Exception as e:
        other = None
        print(f"{name}: onnxruntime: {str(e).splitlines()[0][:200]}", file=sys.stderr)
    ours, cpu = r.get("device_ms"), ", ".join(f"{o['op']} {o['on_cpu']}" for o in r["ops"] if o["on_cpu"])
    beside = f"{other:.3f} | {f'{other / ours:.2f}' if ours else ''}" if other else " | "
    print(f"| {name} | {r['median_ms']:.3f} | {f'{ours:.3f}' if ours else ''} | {beside} | {100 * share:.1f} % | {'yes' if r['replayed'] else 'no'} | {cpu} |", flush=True)
    return True


def models(args, folder):
    """(name, path)"""
    if args.batch:
        for to in (None, "float16"):
            model = resnet50(args.batch, args.size)
            path = Path(folder) / f"resnet50_{to or 'float32'}.onnx"
            onnx.save(lowered.lowered(model, lowered.TYPES[to]) if to else model, path)
            yield f"ResNet-50, batch {args.batch}, {to or 'float32'}", path
    for path in sorted((common.ROOT / "models").glob("*.onnx")):
        yield path.stem, path
    for name in zoo.chosen([] if args.names == ["all"] else args.names) if args.names else []:
        yield name, zoo.filled(name, args.build / "zoo")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("names", nargs="*")
    p.add_argument("--build", type=Path, default=common.ROOT / "build-gpu")
    p.add_argument("--relayout", type=Path)
    p.add_argument("--device", default="cuda")
    p.add_argument("--batch", type=int, default=32, help="of ResNet-50; 0: without it")
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--runs", type=int, default=0)
    p.add_argument("--seconds", type=float, default=480, help="no further model after this")
    args = p.parse_args()
    args.relayout = (args.relayout or args.build / "relayout").resolve()
    start, bad, left = time.monotonic(), 0, []
    print("| model | relayout ms, with copies | on the device ms | onnxruntime's CUDA provider ms | times as fast | cuDNN's and cuBLASLt's share of the nodes' time "
          "| one recorded graph | nodes on the CPU |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, path in models(args, folder):
            if time.monotonic() - start > args.seconds:
                left.append(name)
                continue
            bad += not row(args, name, path, onnx.load(path))
    if left:
        print(f"\nNo time for {len(left)}: {', '.join(left)}")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
