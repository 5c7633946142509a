#!/usr/bin/env python3
"""Transposes left by relayout beside what other optimizers leave (stored figures), per sample model.

  peers.py [part of a name ...]
"""
import sys

import bench
import common
import counting
import onnx
import zoo

sys.path.insert(0, str(bench.HERE.parent / "python" / "relayout"))
import optimizers  # noqa: E402

STORED = zoo.table("peers.json")
PEERS = {name: label for name, (label, _, _) in optimizers.PEERS.items() if any(name in row for row in STORED.values())}


def main():
    p = bench.arguments(__doc__.splitlines()[0])
    p.set_defaults(target="onnx")
    args = p.parse_args()
    args.build = args.build.resolve()
    prog = common.program(args)
    targets, rows, sums = zoo.table("targets.json"), [], {}
    for name in bench.models(args):
        out = bench.optimized(prog, name, args)
        if out is None:
            continue
        ours = counting.count_run(onnx.load(out), zoo.original(name, args.build / "zoo").inputs[0])
        left = {k: STORED.get(name, {}).get(k, {}).get("transposes") for k in PEERS}
        row = {"in": targets[name]["transposes"], **left, "relayout": ours.transposes + ours.folded, "minimum": targets[name]["min"]}
        if any(row.values()):
            rows.append([name] + ["-" if v is None else v for v in row.values()])
        for k, v in row.items():
            # A sum over all models needs a figure for each: the input's where the tool has none.
            sums[k] = sums.get(k, 0) + (row["in"] if v is None else v)
    if not rows:
        return 0
    rows.append(["all"] + list(sums.values()))
    text = ("Transpose nodes left in the file, whether they move data or not. Models without any are left out. `-`: the tool "
            "failed or refused the model (counted as unchanged in the last row). onnxruntime extended and OpenVINO may use ops "
            f"of their own. relayout: target {args.target}.\n\n" + bench.table(["model", "in", *PEERS.values(), "relayout", "known minimum"], rows))
    bench.write(args, "peers.md", "Transposes left, beside other optimizers", text, "onnx")
    return 0


if __name__ == "__main__":
    sys.exit(main())
