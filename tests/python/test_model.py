#!/usr/bin/env python3
"""The models that the structured fuzz target makes of bytes (tests/fuzz/model.h): valid, the same each time, small where the bytes are few;
every op of the table has a row there.

  test_model.py                 200 random ones
  test_model.py --count 5000    and each op that a model can have is in one of them
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

import common

# Ops of onnxruntime in ONNX's domain; one whose function in ONNX has constants that its own checker refuses in older opsets.
NOT_ONNX = {"SimplifiedLayerNormalization", "MeanVarianceNormalization"}
ENOUGH = 3000   # models, for each op to be in one


def rows(path, macro):
    return re.findall(rf"^{macro}\( ?(\w+),", (common.ROOT / path).read_text(), flags=re.M)


def make(prog, seed, path):
    r = subprocess.run([prog, "--seed", str(seed), path], capture_output=True, text=True)
    if r.returncode:
        return f"status {r.returncode}: {r.stderr.strip()[-200:]}"
    return ""


def judge(prog, seed, folder, seen):
    first, second = folder / "a.onnx", folder / "b.onnx"
    why = make(prog, seed, first) or make(prog, seed, second)
    if why:
        return why
    if first.read_bytes() != second.read_bytes():
        return "another model the second time"
    model = onnx.load(first)
    ops = [(n.domain, n.op_type) for n in common.every_node(model.graph)]
    seen.update(ops)
    if len(ops) > 160:
        return f"{len(ops)} nodes"
    if any(domain == "com.microsoft" or op in NOT_ONNX for domain, op in ops):
        return ""
    try:
        onnx.checker.check_model(str(first))
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as e:
        return str(e).strip().replace("\n", " ")[:300]
    return ""


def main():
    args = common.arguments(__doc__)
    args.add_argument("--count", type=int, default=200)
    args.add_argument("--seed", type=int, default=0)
    args = args.parse_args()
    prog, seen, npass, nfail = args.build / "tests" / "model_file", set(), 0, 0
    missing = set(rows("src/ops.def", "OP")) - set(rows("tests/fuzz/model_ops.def", "GEN"))
    if missing:
        print(f"without a row in tests/fuzz/model_ops.def: {', '.join(sorted(missing))}")
        nfail += 1
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(args.seed, args.seed + args.count):
            why = judge(prog, seed, Path(tmp), seen)
            npass, nfail = npass + (not why), nfail + bool(why)
            if why:
                print(f"seed {seed}: {why}")
    if args.count >= ENOUGH:
        table = re.findall(r'^OP\( \w+, +"(.*?)", +"(\w+)"', (common.ROOT / "src/ops.def").read_text(), flags=re.M)
        never = sorted(op for domain, op in set(table) - seen if not domain) # what others want is known to them alone
        print(f"never made: {', '.join(never) or 'none'}")
        nfail += bool(never)
    print(f"{len(seen)} ops")
    return common.closing(npass, nfail)


if __name__ == "__main__":
    sys.exit(main())
