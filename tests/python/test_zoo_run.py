#!/usr/bin/env python3
"""Runs every sample model by `relayout run` on seeded inputs and compares the outputs with onnxruntime's (its optimizations off).

  test_zoo_run.py                  all models
  test_zoo_run.py vit swin         models whose name contains one of these
  test_zoo_run.py --at-least 40    fails when fewer agree
  test_zoo_run.py --kernels reference

An output of floats agrees when max |diff| <= 1e-4 * (max y - min y) + 1e-6 * max |y|, one of other types when it is equal. A model
that the program refuses before it runs is listed by the op that it names, and counts as skipped, as does one that overflows in
onnxruntime; every other one must agree.
"""
import collections
import multiprocessing
import sys
import time

import numpy as np
import onnx

import common
import test_backend_run
import zoo

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import Refused, RelayoutBackend

TIME = 300  # seconds for one model


class NotComparable(Exception):
    """There is nothing to compare with."""


def share_of_bound(expected, got):
    """The largest difference as a share of what is allowed; raises where the outputs cannot be compared."""
    worst = 0.0
    for i, (e, y) in enumerate(zip(expected, got, strict=True)):
        if e.shape != y.shape or e.dtype != y.dtype:
            raise common.Differ(f"output {i}: {y.dtype}{list(y.shape)}, wants {e.dtype}{list(e.shape)}")
        if e.size == 0:
            continue
        if e.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(e, y) else np.inf)
            continue
        if not np.isfinite(e).all():
            raise NotComparable(f"output {i} by onnxruntime is not finite")
        if not np.isfinite(y).all():
            raise common.Differ(f"output {i}: not finite")
        bound = 1e-4 * np.ptp(e) + 1e-6 * np.abs(e).max()
        diff = np.abs(e.astype(np.float64) - y).max()
        worst = max(worst, diff / bound if bound else (0.0 if diff == 0 else np.inf))
    return worst


def run(job):
    """(name, share of the bound, seconds of the program, what is wrong, whether it is skipped)"""
    name, args, prog = job
    try:
        path = zoo.filled(name, args.build / "zoo")
        model = onnx.load(path)
        inputs = zoo.inputs_of(model)
        start = time.time()
        options = ("--device", args.device) if args.device else ("--kernels", args.kernels)
        got = RelayoutBackend.prepare(model, program=prog, path=path, limit=TIME, options=options).run(inputs)
        seconds = time.time() - start
        worst = share_of_bound(common.run_ort(path, inputs), got)
        return name, worst, seconds, "" if worst <= 1 else "outputs differ", False
    except (Refused, NotComparable) as e:
        return name, None, 0, str(e), True
    except Exception as e:
        return name, None, 0, f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}", False


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("names", nargs="*")
    p.add_argument("--kernels", choices=common.KERNELS, default="fast")
    p.add_argument("--at-least", type=int, default=0, help="fail when fewer models agree")
    p.add_argument("--device", help="of relayout run: cuda")
    args = p.parse_args()
    prog = common.program(args)
    if args.kernels == "fast" and not common.has_onednn(prog):
        print("without oneDNN: the reference kernels")
    jobs = [(n, args, prog) for n in zoo.chosen(args.names)]
    if not jobs:
        return common.closing(0, 0, 1)
    npass, nfail, skipped = 0, 0, collections.defaultdict(list)
    with multiprocessing.get_context("fork").Pool(args.jobs) as pool:
        for name, worst, seconds, wrong, is_skipped in common.progress(pool.imap(run, jobs), len(jobs)):
            if is_skipped:
                skipped[test_backend_run.reason(wrong)].append(name)
                continue
            npass += not wrong
            nfail += bool(wrong)
            share = "" if worst is None else f"{worst:9.2g} of the bound {seconds:7.2f} s"
            print(f"{name:34}{share}  {'ok' if not wrong else 'FAIL ' + wrong}", flush=True)
    for what, names in sorted(skipped.items(), key=lambda x: (-len(x[1]), x[0])):
        print(f"skipped {len(names):3d}  {what}: {' '.join(names)}")
    status = common.closing(npass, nfail, sum(map(len, skipped.values())))
    return status or npass < args.at_least


if __name__ == "__main__":
    sys.exit(main())
