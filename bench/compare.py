#!/usr/bin/env python3
"""What bench/compare.sh prints; needs the packages onnx and, for a column each, the other optimizers.

Each optimizer runs in a process of its own, on a copy of the model. Counted are the Transpose nodes of the file that it writes, in
bodies and functions too; timed is the call alone, without imports. A failure is a -.
"""
import json
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import onnx

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600
PEERS = {  # package: what it does to the model at argv[1], written to argv[2]; t is taken before and after the lines behind ##
    "onnxruntime": "import onnxruntime as r; o = r.SessionOptions(); o.graph_optimization_level = r.GraphOptimizationLevel.ORT_ENABLE_BASIC\n"
                   "o.optimized_model_filepath = argv[2]; o.log_severity_level = 4\n##\nr.InferenceSession(argv[1], o, providers=['CPUExecutionProvider'])",
    "onnxsim": "import onnx, onnxsim\n##\nm, ok = onnxsim.simplify(argv[1])\nonnx.save(m, argv[2])",
    "onnxslim": "import onnx, onnxslim\n##\nm = onnxslim.slim(argv[1])\nonnx.save(m, argv[2])",
    "onnxoptimizer": "import onnx, onnxoptimizer\n##\nm = onnxoptimizer.optimize(onnx.load(argv[1]), fixed_point=True)\nonnx.save(m, argv[2])",
}


def transposes(graph):
    inner = sum(transposes(a.g) for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH)
    return inner + sum(n.op_type == "Transpose" and n.domain in ("", "ai.onnx") for n in graph.node)


def count(path):
    m = onnx.load(path, load_external_data=False)
    return transposes(m.graph) + sum(n.op_type == "Transpose" for f in m.functions for n in f.node)


def run_peer(package, model, out):
    before, work = PEERS[package].split("##\n")
    script = f"from sys import argv\nimport time\n{before}t = time.perf_counter()\n{work}\nprint('\\n%.3f' % (time.perf_counter() - t))"
    try:
        r = subprocess.run([sys.executable, "-c", script, str(model), str(out)], capture_output=True, text=True, timeout=LIMIT)
        return count(out), float(r.stdout.split()[-1])
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError):
        return None


def run_relayout(model, out):
    r = subprocess.run([ROOT / "build" / "relayout", "optimize", model, "-o", out, "--target", "onnx", "--json", "-"], capture_output=True, text=True)
    if r.returncode:
        return None, None
    report = json.loads(r.stdout)
    c = report["conversions"]
    least = {"optimal": f"{c['lower_bound']}", "gap": f">= {c['lower_bound']}", "unchecked": "?"}[c["proof"]]
    return (report["counts"]["after"]["transposes"], report["timings"]["total"]), least


def version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def main():
    models = [Path(m) for m in sys.argv[1:]] or sorted((ROOT / "models").glob("*.onnx")) + sorted((ROOT / "docs" / "cookbook").glob("*.rlt"))
    peers = [p for p in PEERS if version(p)]
    show = lambda x: f"{x[0]} ({x[1]:.2f} s)" if x else "-"
    rows = []
    with tempfile.TemporaryDirectory() as tmp:
        for model in models:
            path, out = model, Path(tmp) / "out.onnx"
            if model.suffix == ".rlt":  # text: as ONNX, with nothing optimized
                path = Path(tmp) / f"{model.stem}.onnx"
                subprocess.run([ROOT / "build" / "relayout", "optimize", model, "-o", path, "-q", "--disable", "normalize,fold,legal,dce"], check=True)
            ours, least = run_relayout(path, Path(tmp) / "ours.onnx")
            found = []
            for p in peers:
                out.unlink(missing_ok=True)
                found.append(show(run_peer(p, path, out)))
            rows.append([model.stem, str(count(path)), *found, show(ours), least or "-"])
    print(f"Transposes left (and seconds). {', '.join(f'{p} {version(p)}' for p in peers)}; relayout --target onnx.\n")
    for row in [["model", "in", *peers, "relayout", "minimum"], ["---"] + ["---:"] * (len(peers) + 3), *rows]:
        print("| " + " | ".join(row) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
