#!/usr/bin/env python3
"""The constant evaluator against the ONNX backend suite: every case of one data set, its inputs made initializers.

  test_eval.py [--build DIR] [--list] [NAME ...]     cases whose name contains one of these

Asserted of each output that is computed: type and shape are those expected; integers and booleans are equal bit for bit, as are
floats that only moved; other floats are within a few units in the last place.  --list names the cases computed, by op.
"""
import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

import test_backend
import test_shape

# Sums and functions of libm may end on another last bit; everything else is exact.
TOLERANCE = {"f": 3e-6, "d": 1e-12}
LEAST = 450  # cases that must be computed


def forms(select):
    """(name, the model with constant inputs, the expected outputs)"""
    test_backend.load_cases()
    test_shape.SMALL = 1 << 20
    for name, kind, case in test_backend.CASES:
        if kind != "node" or (select and not any(s in name for s in select)):
            continue
        model, _ = test_backend.model_of(case)
        sets = test_backend.data_of(case, model)
        if not sets or not 7 <= max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")], default=0) <= 28:
            continue
        given, want = sets[0]
        given = [np.asarray(x) if isinstance(x, np.generic) else x for x in given]
        const = test_shape.with_constants(model, given, 0)
        if const and not const.graph.input:
            del const.graph.output[:]
            const.graph.output.extend(model.graph.output)
            if const.graph.node[0].op_type == "LayerNormalization":  # what only training reads is not computed
                del const.graph.node[0].output[1:], const.graph.output[1:]
            yield name, const, want


def array_of(got):
    dtype = helper.tensor_dtype_to_np_dtype(got["dtype"])
    return np.frombuffer(bytes.fromhex(got["data"]), dtype).reshape(got["dims"])


def difference(got, want):
    """What is wrong with the array, or ''."""
    want = np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)}, wants {want.dtype}{list(want.shape)}"
    if got.tobytes() == want.tobytes():
        return ""
    if want.dtype.char not in TOLERANCE:
        return f"{got.ravel()[:8]}, wants {want.ravel()[:8]}"
    tol = TOLERANCE[want.dtype.char]
    ok = np.isclose(got, want, rtol=tol, atol=tol, equal_nan=True)
    return "" if ok.all() else f"{got[~ok][:8]}, wants {want[~ok][:8]}"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[2] / "build")
    p.add_argument("--list", action="store_true")
    p.add_argument("select", nargs="*")
    a = p.parse_args()
    cases = list(forms(a.select))
    with tempfile.TemporaryDirectory() as tmp:
        paths = [Path(tmp) / f"{i}.onnx" for i in range(len(cases))]
        for path, (_, model, _) in zip(paths, cases):
            onnx.save(model, path)
        run = subprocess.run([a.build / "tests/eval_dump"], input="".join(f"{p}\n" for p in paths), capture_output=True, text=True)
    lines = run.stdout.splitlines()
    if run.returncode or len(lines) != len(cases):
        sys.exit(f"eval_dump ended with status {run.returncode} at case {cases[len(lines)][0]}\n{run.stderr[-3000:]}")
    computed, failed = collections.Counter(), 0
    for line, (name, model, wants) in zip(lines, cases):
        for got, want in zip(json.loads(line), wants):
            if got is None:
                continue
            computed[model.graph.node[-1].op_type] += 1
            wrong = difference(array_of(got), want)
            if wrong:
                failed += 1
                print(f"{name}: {wrong}")
    total = sum(computed.values())
    if a.list:
        print(", ".join(f"{op} {n}" for op, n in sorted(computed.items())))
    if not a.select and total < LEAST:
        print(f"only {total} outputs were computed, wants {LEAST}")
        failed += 1
    print(f"{total} outputs of {len(cases)} cases computed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
