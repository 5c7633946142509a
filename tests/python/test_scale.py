#!/usr/bin/env python3
"""Large graphs (bench/graphs.py), and one of many parts that nothing joins: proved minimal, in the memory that they may take, which grows as the graphs do.

  test_scale.py                       10,000 and 100,000 nodes of each family
  test_scale.py --large 1000000       and more: 5 GB

Time is not looked at: that needs a machine that does nothing else (bench/scale.py). Memory is the same everywhere.
"""
import json
import sys
import tempfile
from pathlib import Path

import common

sys.path.insert(0, str(common.ROOT / "bench"))
import graphs  # noqa: E402
import scale   # noqa: E402

SMALL = 10_000
START_MB = 5  # what the program takes for no graph at all
PARTS, PARTS_MB = 3000, 200
MOST_MB = {"blocks": 330, "ladder": 270, "dense": 295}  # that 100,000 nodes may take
# Conversions that have to stay: three in each block of 37 nodes, two at the ends of the others of which one can go.
LEFT = {"blocks": lambda nodes: 3 * (nodes // 37), "ladder": lambda nodes: 1, "dense": lambda nodes: 1}


def optimize(prog, model, left, tmp):
    """Peak memory in MB; what is wrong."""
    out, report = tmp / "out.onnx", tmp / "report.json"
    status, *_, peak = scale.run(600, prog, "optimize", model, "-o", out, "--target", "onnx", "--json", report)
    if status != 0:
        return peak, [f"status {status}"]
    c = json.loads(report.read_text())["conversions"]
    wrong = [] if c["proof"] == "optimal" and c["after"] == c["lower_bound"] else [f"{c['after']} left, proved at least {c['lower_bound']}"]
    if c["after"] != left:
        wrong.append(f"{c['after']} conversions left, not {left}")
    return peak, wrong


def measure(prog, family, n, tmp):
    """How many nodes; and the same."""
    model = tmp / "in.onnx"
    count = graphs.make(family, n, model)
    return count, *optimize(prog, model, LEFT[family](count), tmp)


def apart(prog, tmp):
    """Parts of other sizes each, so that none has another's bound: each is bounded by itself, for the memory of one. Two conversions of each stay."""
    lines, outs = [], []
    for k in range(PARTS):
        lines += [f"in %x{k} f32[1,{5 + k},7,4]", f"%a{k}_0 = Transpose(%x{k}) perm=[0,3,1,2]"]
        for i in range(4):
            lines += [f"%b{k}_{i} = GlobalAveragePool(%a{k}_{i})", f"%c{k}_{i} = Mul(%a{k}_{i}, %b{k}_{i})", f"%a{k}_{i + 1} = LRN(%c{k}_{i}) size=3"]
        lines.append(f"%y{k} = Transpose(%a{k}_4) perm=[0,2,3,1]")
        outs.append(f"%y{k}")
    model = tmp / "in.rlt"
    model.write_text("\n".join(["graph g {", *lines, f"out {', '.join(outs)}", "}", ""]))
    peak, wrong = optimize(prog, model, 2 * PARTS, tmp)
    if peak > PARTS_MB:
        wrong.append(f"more than {PARTS_MB} MB")
    print(f"apart   {PARTS:>8} parts {peak:6.1f} MB  {'; '.join(wrong) or 'ok'}", flush=True)
    return not wrong


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--large", type=int, default=scale.AIM_NODES, help="nodes of the larger graph (default: %(default)s)")
    args = p.parse_args()
    prog, nfail = common.program(args), 0
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        nfail += not apart(prog, Path(tmp))
        for family in graphs.FAMILIES:
            small, large = (measure(prog, family, n, Path(tmp)) for n in (SMALL, args.large))
            growth = (large[1] - START_MB) / large[0] / ((small[1] - START_MB) / small[0])
            wrong = small[2] + large[2]
            most = MOST_MB[family] * args.large / scale.AIM_NODES
            if large[1] > most:
                wrong.append(f"more than {most:.0f} MB")
            if growth > scale.AIM_GROWTH:
                wrong.append(f"memory of a node grows by more than {scale.AIM_GROWTH}")
            print(f"{family:8}{small[0]:>8} nodes {small[1]:6.1f} MB{large[0]:>9} nodes {large[1]:6.1f} MB  growth {growth:.2f}  {'; '.join(wrong) or 'ok'}", flush=True)
            nfail += bool(wrong)
    return common.closing(len(graphs.FAMILIES) + 1 - nfail, nfail)


if __name__ == "__main__":
    sys.exit(main())
