#!/usr/bin/env python3
"""Seeds for the fuzz targets: the models of the ONNX backend suite, the graphs of tests/text, as they are and as ONNX, random models, the
certificates of all of these and of models with functions, values of every type, tables of targets, descriptors of buffers, recipes of models
(model.h), which are random bytes; and what once crashed a target.

  seeds.py RELAYOUT FOLDER     FOLDER/{text,onnx,optimize,run,cert,values,target,structured}
"""
import hashlib
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
import funcgen  # noqa: E402
import graphgen  # noqa: E402
import test_backend  # noqa: E402

RANDOM, LARGEST, SMALL, CERTS, FUNCTIONS = 60, 8000, 1500, 250, 40
RECIPES = 1500
TARGETS = ("text", "onnx", "optimize", "run", "cert", "values", "target", "plan", "structured")


def quietly(*command):
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def put(folder, data):
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def graphs():
    for path in sorted((ROOT / "tests" / "text").rglob("*.rlt")):
        for part in re.split(r"^(?:====|----).*$", path.read_text(), flags=re.M):
            at = part.find("graph")
            if at >= 0 and "{" in part:
                yield part[at:].encode()


def models(prog, folder):
    """As bytes."""
    test_backend.load_cases()
    for _, kind, case in test_backend.CASES:
        if kind != "light":
            yield test_backend.model_of(case)[0].SerializeToString()
    for seed in range(RANDOM):
        yield graphgen.make(seed).proto.SerializeToString()
    src, out = folder / "graph.rlt", folder / "graph.onnx"
    for text in graphs():
        src.write_bytes(text)
        quietly(prog, "optimize", src, "-o", out, "--disable", "legal,movement")
        if out.exists():
            yield out.read_bytes()
            out.unlink()


def values():
    import io
    for t in TensorProto.DataType.values():
        try:
            x = np.arange(6).reshape(2, 3).astype(helper.tensor_dtype_to_np_dtype(t))
            yield 0, numpy_helper.from_array(x, "x").SerializeToString()
            yield 1, numpy_helper.from_list([x, x], "s").SerializeToString()
            yield 2, numpy_helper.from_optional(x, "o").SerializeToString()
            for order in "CF":
                file = io.BytesIO()
                np.save(file, np.asarray(x, order=order))
                yield 3, file.getvalue()
        except Exception:
            continue
    yield 0, helper.make_tensor("x", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]).SerializeToString()
    yield 0, helper.make_tensor("x", TensorProto.STRING, [2], [b"a", b"b"]).SerializeToString()
    yield 2, numpy_helper.from_optional(None, "o").SerializeToString()


def plans():
    """Lines of ops of the model in tests/fuzz/plan.c, in blocks and not."""
    rows = ["0 Conv {0} > {1}", "1 Tanh {0} > {0}", "2 Concat {0} {0} > {0}", "3 MaxPool {0} > {0}", "4 Conv {0} > {1}", "5 GlobalAveragePool {0} > abcd",
            "6 Mul {0} abcd > {0}", "7 Transpose abcd > abcd", "8 Softmax abcd > abcd", "0 Conv {0} {0} > {0} # name"]
    lays = ["abcd", "acdb", "aBcd8b", "aBcd16b", "dcba"]
    for a in lays:
        for b in lays:
            for k in range(1, len(rows)):
                yield b"\1" + "".join(f"op {r.format(a, b)}\n" for r in rows[:k]).encode() + b"end\n"
            yield b"\1" + f"op {rows[0].format(a, b)}\nend\n".encode()
    yield b"\0relayout-plan 1\nmachine x\ngraph 9 0123456789abcdef\npredicted 5\nend\n"


def main():
    prog, folder = sys.argv[1], Path(sys.argv[2])
    for name in TARGETS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for text in graphs():
        put(folder / "text", text)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for data in models(prog, folder):
            if len(data) <= LARGEST:
                for name in ("onnx", "run"):
                    put(folder / name, data)
            if len(data) <= SMALL:      # a large one takes long, and breeds large ones
                put(folder / "optimize", data)
    certified = sorted((folder / "onnx").iterdir())[:CERTS]
    for seed in range(FUNCTIONS):
        certified.append(put(folder / "onnx", funcgen.make(seed)[0].SerializeToString()))
    for path in certified:
        proof = folder / "cert" / path.name
        quietly(prog, "optimize", path, "-o", "/dev/null", "--target", "onnx", "--proof", proof)
        if proof.exists() and proof.stat().st_size > LARGEST:
            proof.unlink()
    for kind, data in values():
        put(folder / "values", bytes([kind]) + data)
    for target in ("onnx", "generic", "ort", "fused"):
        put(folder / "target", subprocess.run([prog, "targets", "--target", target], capture_output=True).stdout)
    for line in (ROOT / "include" / "relayout.h").read_text().splitlines():
        for text in re.findall(r"(?:f|i|u|bf)\d+\[[^\]]*\][^ \"]*(?: (?:offset|strides|pad)=\S+)?", line):
            put(folder / "target", text.encode())
    for text in plans():
        put(folder / "plan", text)
    for seed in range(RECIPES):
        r = random.Random(seed)
        put(folder / "structured", r.randbytes(8 + 8 * r.choice([1, 2, 3, 5, 8, 15, 30, 60])))
    for path in (ROOT / "tests" / "fuzz" / "crashes").glob("*/*"):
        put(folder / path.parent.name, path.read_bytes())
    print({p.name: len(list(p.iterdir())) for p in sorted(folder.iterdir()) if p.is_dir()})


if __name__ == "__main__":
    main()
