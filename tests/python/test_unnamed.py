#!/usr/bin/env python3
"""Results without names: each model of ONNX's suite with each of its nodes once more, none of its results named, and once with the last alone.

  test_unnamed.py                  a seeded part of the suite, as large as BACKEND_FRACTION says, else a quarter
  test_unnamed.py --fraction 1     all of it

Nothing reads what the nodes make, so that each command ends as it does without them.
"""
import os
import random
import sys
import tempfile
import warnings
from pathlib import Path

import onnx
from onnx.backend.test.case.node import collect_testcases

import common


def doubled(model):
    m = onnx.ModelProto()
    m.CopyFrom(model)
    for node in list(m.graph.node):
        for keep in {len(node.output), max(len(node.output) - 1, 1)}:  # from this result on they keep names
            more = m.graph.node.add()
            more.CopyFrom(node)
            more.name = ""
            more.output[:] = ["" if k < keep or not o else f"{o}_again" for k, o in enumerate(node.output)]
    return m


def check(job):
    """What is wrong with a model, or ""."""
    prog, model = job
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        plain, more, out = (Path(tmp) / f"{n}.onnx" for n in ("plain", "more", "out"))
        plain.write_bytes(model.SerializeToString())
        more.write_bytes(doubled(model).SerializeToString())
        for words in (["run"], ["run", "--kernels", "reference"], ["optimize", "-o", str(out)], ["optimize", "-o", str(out), "--target", "onnx"], ["explain"]):
            was, now = (common.relayout(prog, words[0], str(path), *words[1:]) for path in (plain, more))
            if was.status != now.status:
                return f"{' '.join(words[:1] + words[1 + 2 * ('-o' in words):])}: status {now.status}, without them {was.status}: {now.text}"
    return ""


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--fraction", type=float, default=float(os.environ.get("BACKEND_FRACTION", 0.25)))
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    warnings.simplefilter("ignore")  # of what the suite computes
    found = collect_testcases(None)
    chosen = random.Random(args.seed).sample(found, round(len(found) * min(args.fraction, 1)))
    prog, bad = common.program(args), 0
    for case, why in zip(chosen, common.pooled(check, [(prog, c.model) for c in chosen], args.jobs, 8, ordered=True)):
        bad += bool(why)
        if why:
            print(f"{case.name}: {why}")
    return common.closing(len(chosen) - bad, bad)


if __name__ == "__main__":
    sys.exit(main())
