#!/usr/bin/env python3
"""Latency in onnxruntime of models that move much data: relayout's output, onnxslim's and onnxsim's, side by side in one run.

  movement_latency.py                  the models below, one thread
  movement_latency.py shuffle conformer --seconds 10

All sessions of a model run in turn, with a second copy of the original that shows the noise (see latency.py). What a tool leaves as it is,
byte for byte, counts as 1. The tools stand in an environment of their own, build/peers, made when missing (by pip, from PyPI).
Beside the figures stands what the original spends on movement in onnxruntime: less than that share cannot be saved. Needs an idle machine.
"""
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import bench
import common
import counting
import latency
import zoo

MODELS = {"first": ["pt_shufflenet_v2", "tf_ssd_lite_raw", "tf_ssd_lite_opt"],
          "rest": ["pt_swin_tiny_patch4_window7_224", "pt_swinv2_tiny_window8_256", "pt_mobilevit_xxs", "pt_conformer", "pt_gpt", "ptd_gpt",
                   "pt_yolohead", "pt_espcn", "ptd_espcn", "tf_superres_opt"]}
PEERS = {"onnxslim": "0.1.98", "onnxsim": "0.8.1"}
MOVES = counting.OTHERS | counting.VIEWS | {"Transpose"}


def peers_python(build):
    """The environment that has the peers; None where it cannot be made."""
    folder = build / "peers"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    have = subprocess.run([python, "-c", "import onnxslim, onnxsim"], capture_output=True)
    if have.returncode:
        r = subprocess.run([python, "-m", "pip", "install", "--quiet", *(f"{p}=={v}" for p, v in PEERS.items())])
        if r.returncode:
            return None
    return python


def by_peer(python, peer, src, out):
    """The path of what the peer makes of src; None where it fails."""
    out.parent.mkdir(parents=True, exist_ok=True)
    r = subprocess.run([python, "-m", peer, src, out], capture_output=True, text=True) if peer == "onnxsim" else \
        subprocess.run([python.parent / "onnxslim", src, out], capture_output=True, text=True)
    if r.returncode or not out.exists():
        print(f"{src.stem}: {peer} fails: {(r.stderr.strip().splitlines() or [''])[-1][:150]}")
        return None
    return out


def movement_share(path, x):
    """What the nodes that only move data take of all nodes' time in onnxruntime; the reorders of its own layouts are in the second figure."""
    import onnxruntime
    with tempfile.TemporaryDirectory() as tmp:
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads, o.enable_profiling, o.profile_file_prefix = 1, True, str(Path(tmp) / "profile")
        s = onnxruntime.InferenceSession(str(path), o, providers=["CPUExecutionProvider"])
        for _ in range(50):
            s.run(None, x)
        events = [e for e in json.loads(Path(s.end_profiling()).read_text()) if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
    least = {}
    for e in events:
        least[e["name"]] = min(least.get(e["name"], (1 << 60, ""))[0], e["dur"]), e["args"]["op_name"]
    share = lambda ops: sum(t for t, op in least.values() if op in ops) / sum(t for t, _ in least.values())
    own = {"ReorderInput", "ReorderOutput", "NhwcTranspose"}
    return share(MOVES - own), share(MOVES)


def main():
    p = bench.arguments(__doc__.splitlines()[0])
    p.add_argument("--noise", type=float, default=0.01)
    p.add_argument("--seconds", type=float, default=60, help="most time per model")
    args = p.parse_args()
    args.build = args.build.resolve()
    prog, python = common.program(args), peers_python(args.build)
    columns = ["relayout"] + (list(PEERS) if python else [])
    rows, ratios, chosen = [], {g: {c: [] for c in columns} for g in MODELS}, bench.models(args)
    for group, names in MODELS.items():
        for name in (n for n in names if n in chosen):
            original = zoo.filled(name, args.build / "zoo")
            made = [bench.optimized(prog, name, args)] + [by_peer(python, c, original, args.build / "bench" / c / f"{name}.onnx") for c in columns[1:]]
            x = zoo.original(name, args.build / "zoo").inputs[0]
            differ = [m for m in made if m and not common.same_bytes(original, m)]
            ms, got, noise, error, blocks = latency.measure_all(latency.Onnxruntime, original, differ, x, 1, args)
            by = dict(zip(map(str, differ), zip(got, error)))
            cells = []
            for c, m in zip(columns, made):
                ratio, e = by.get(str(m), (1.0, 0.0)) if m else (None, None)
                if ratio is not None:
                    ratios[group][c].append(ratio)
                cells.append("failed" if ratio is None else "same file" if str(m) not in by else
                             f"{ratio:.3f}" + ("*" if max(abs(noise - 1), e) >= args.noise else ""))
            share, all_share = movement_share(original, x)
            rows.append([name, f"{ms:.2f}", f"{100 * share:.0f} %", f"{100 * all_share:.0f} %", *cells, f"{noise:.3f}"])
            print(*rows[-1], flush=True)
    lines = [f"- {title}: " + ", ".join(f"{c} {latency.geomean(ratios[g][c]):.3f}" for c in columns if ratios[g][c])
             for g, title in (("first", "geometric mean of ShuffleNetV2 and the SSD"), ("rest", "geometric mean of the rest")) if any(ratios[g].values())]
    text = "\n".join(lines) + "\n\n" + bench.table(["model", "ms", "movement", "with reorders", *columns, "noise"], rows)
    bench.write(args, f"movement-latency-{args.target}.md", f"Latency of models that move much data, onnxruntime, one thread, target {args.target}: ratio to the original",
                text, "onnxruntime", "onnx", "numpy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
