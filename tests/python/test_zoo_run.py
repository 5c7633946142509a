#!/usr/bin/env python3
"""Runs every sample model, and those that installed PyPI packages bring, by `relayout run` on seeded inputs and compares the outputs
with onnxruntime's (its optimizations off).

  test_zoo_run.py                  all models
  test_zoo_run.py vit swin         models whose name contains one of these
  test_zoo_run.py --at-least 40    fails when fewer agree
  test_zoo_run.py --kernels reference
  test_zoo_run.py --device cuda --type float16    the models in that type, against the CPU's reference kernels on the same: within 2e-2; where these are
                                   further than that from float32 themselves, in parts of the model, each fed with exact values
  test_zoo_run.py --references FOLDER [--only-references]    what is compared with is taken from there, and kept there where it is not: see
                                                             references.py.  Only: that is made, and nothing compared

An output of floats agrees when max |diff| <= 1e-4 * (max y - min y) + 1e-6 * max |y|, one of other types when it is equal. A model
that the program refuses before it runs is listed by the op that it names, and counts as skipped; every other one must agree, and with
a device no node of a sample model may be left to the host; with --replayed each run must be one graph of the device's, recorded once.
The seeded weights of a deep model may overflow: then all weights are halved until they do not. `relayout bench` of each model must
hold no more memory than its inputs, the plan's arena, at most 1.1 times what any plan needs, and what one kernel had for itself.
"""
import collections
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

import common
import first_off
import lowered
import parts
import references
import test_backend_run
import zoo

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import Refused, RelayoutBackend

TIME = 300  # seconds for one model
PARTS = 8
SHIPPED = ("rapidocr_onnxruntime", "onnxruntime")  # packages with models
SIZES = {"ch_PP-OCRv4_rec_infer": [2, 3, 48, 320], "ch_PP-OCRv4_det_infer": [1, 3, 160, 224], "ch_ppocr_mobile_v2.0_cls_infer": [2, 3, 48, 192]}


class Overflows(Exception):
    """An output of onnxruntime is not finite."""


def shipped(patterns):
    """Models in installed packages, by name."""
    found = {}
    for package in SHIPPED:
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations if spec else []:
            found.update({p.stem: p for p in sorted(Path(folder).rglob("*.onnx"))})
    return {n: p for n, p in found.items() if not patterns or any(x in n for x in patterns)}


def calmed(model):
    """All weights halved."""
    for t in model.graph.initializer:
        if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) > 1:
            t.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t) / 2, t.name))
    return model


def share_of_bound(expected, got, lower=False):
    """The largest difference as a share of what is allowed; raises where the outputs cannot be compared. lower: of shorter floats."""
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
            raise Overflows
        bound = 2e-2 * np.abs(e).max() if lower else 1e-4 * np.ptp(e) + 1e-6 * np.abs(e).max()
        diff = np.abs(e.astype(np.float64) - y).max() if np.isfinite(y).all() else np.inf
        worst = max(worst, diff / bound if bound else (0.0 if diff == 0 else np.inf))
    return worst


def _named(outputs):
    return {str(i): y for i, y in enumerate(outputs)}


class Beside:
    """Runs a model by the program, on a device or with the fast kernels, and by what that is compared with: onnxruntime in float32; in a shorter type, in
    which the model is made here, the CPU's reference kernels.  seconds: the program's; left: the ops that a device had no kernel for."""

    def __init__(self, prog, args, options, tmp):
        self.prog, self.args, self.options, self.file = prog, args, options, Path(tmp, "model.onnx")
        self.to, self.seconds, self.left = lowered.TYPES.get(args.type), 0, ""

    def _file(self, model):
        if isinstance(model, Path):
            if not self.to:
                return model
            model = onnx.load(model, load_external_data=False)
        self.file.write_bytes((lowered.lowered(model, self.to) if self.to else model).SerializeToString())
        return self.file

    def _ran(self, path, fed, options):
        start = time.time()
        rep = RelayoutBackend.prepare(onnx.load(path, load_external_data=False), program=self.prog, path=path, limit=TIME, options=options)
        outputs = rep.run(fed)
        left = re.search(r"for want of a kernel: [1-9]\d* \((.*)\)", rep.said)
        self.seconds, self.left = self.seconds + time.time() - start, self.left or (left[1] if left else "")
        return outputs

    def __call__(self, model, fed, folder=None):
        """(outputs wanted, outputs got) of a file or a model of float32; the first may lie in the folder."""
        path = self._file(model)

        def wanted():
            return _named(self._ran(path, fed, ("--kernels", "reference")) if self.to else common.run_ort(path, fed))

        expected = list(references.kept(folder, f"reference-{self.args.type}" if self.to else "onnxruntime", path.read_bytes(), fed, wanted).values())
        return expected, expected if self.args.only_references else self._ran(path, fed, self.options)


def compared(beside, path, inputs, args):
    """Share of the bound, how it was compared, what is wrong: on a device with the nodes where it begins."""
    def share(model, fed, folder=args.references):
        nonlocal expected
        expected, got = beside(model, fed, folder)
        return share_of_bound(expected, got, lower=bool(args.type))

    expected = None
    worst, how, place = share(path, inputs), "", None
    if args.type and (1 < worst < np.inf or args.only_references):  # what is not finite is none of rounding's
        found, folder = cut_for_rounding(path, inputs, args, expected)
        if found:
            worst, how, place = max(((share(*at, folder), "in parts", at) for at in found), key=lambda x: x[0])
    wrong = "outputs differ" if worst > 1 else ""
    if wrong and args.device:
        model, fed = place or (onnx.load(path, load_external_data=False), inputs)
        wrong += "; first " + first_off.said(model, fed, beside, lambda e, y: share_of_bound([e], [y], lower=bool(args.type)))
    return worst, how, wrong


def cut_for_rounding(path, inputs, args, reference):
    """[(part, its inputs)] where rounding alone takes the reference kernels' outputs out of the bound, else none; where what they give lies."""
    def rounding():
        return {"share": np.array(share_of_bound(common.run_ort(rounded, inputs), reference, lower=True))}

    def ends(make):
        """Rounded, as the part's first nodes would: half of the bytes to keep."""
        return references.kept(*these, lambda: {i: lowered.nearest(v, to) for i, v in make().items()})

    model, to = onnx.load(path, load_external_data=False), lowered.TYPES[args.type]
    rounded = lowered.rounded(model, to).SerializeToString()
    if references.kept(args.references, f"rounding-{args.type}", rounded, inputs, rounding)["share"] <= 1:
        return [], None
    these = args.references, f"ends{PARTS}-{args.type}", path.read_bytes(), inputs
    found = parts.cut(model, inputs, PARTS, ends)
    return found, args.references if references.there(*these) else None  # onnxruntime's values may be others elsewhere


def benched(prog, path, sizes, *words, **environment):
    """What `relayout bench` says."""
    words = [*words, *(x for name, dims in sizes.items() for x in ("--input-shape", f"{name}={','.join(map(str, dims))}"))]
    p = subprocess.run([prog, "bench", path, "--json", "-", *words], capture_output=True, timeout=TIME, env=os.environ | environment)
    if p.returncode:
        raise RuntimeError(f"bench: {p.stderr.decode()[-200:]}")
    return json.loads(p.stdout)


def replays(prog, path, sizes, device):
    """What is wrong where its runs are not one recorded graph each, or its branches not right."""
    b = benched(prog, path, sizes, "--device", device, "--runs", "2", RELAYOUT_CUDA_BRANCHES="1")
    said = b.get("branches", "")
    wrong = [w for w in ("results are others", "share memory", "CUDA: ") if w in said]
    return f"branches: {said}" if wrong else "" if b["replayed"] else "not replayed"


def held(prog, path, sizes, kernels):
    """What is wrong with the memory of its runs."""
    b = benched(prog, path, sizes, "--kernels", kernels, "--runs", "1")
    caller = b["input_bytes"] + b["delivered_bytes"]
    few = b["arena_bytes"] <= 1.1 * b["least_bytes"] and b["peak_bytes"] <= caller + b["arena_bytes"] + b["work_bytes"] + b["kept_bytes"]
    return "" if few else "memory: " + ", ".join(f"{k} {v}" for k, v in b.items() if k.endswith("_bytes"))


def run(job):
    """(name, share of the bound, seconds of the program, how it was compared, what is wrong, whether it is skipped)"""
    name, path, args, prog = job
    try:
        own = path or zoo.filled(name, args.build / "zoo")
        model = onnx.load(own, load_external_data=False)
        sizes = {model.graph.input[0].name: SIZES[name]} if name in SIZES else {}
        inputs = common.random_inputs(model, seed=1, dims=sizes) if path else zoo.inputs_of(model)
        options = ("--device", args.device) if args.device else ("--kernels", args.kernels)
        with tempfile.TemporaryDirectory() as tmp:
            used, beside = own, Beside(prog, args, options, tmp)
            for _ in range(12):
                try:
                    worst, how, wrong = compared(beside, used, inputs, args)
                    break
                except Overflows:
                    used = Path(tmp) / "calmed.onnx"
                    onnx.save(calmed(model), used)
            else:
                return name, None, 0, "", "its output is never finite", False
        wrong = wrong or (f"not on the device: {beside.left}" if beside.left and not path else "")
        if args.only_references:
            pass
        elif not wrong and args.replayed:
            wrong = replays(prog, own, sizes, args.device)
        elif not wrong and not args.device and not args.type:
            wrong = held(prog, own, sizes, args.kernels)
        return name, worst, beside.seconds, how, wrong, False
    except (Refused, lowered.CannotLower) as e:
        return name, None, 0, "", str(e), True
    except Exception as e:
        return name, None, 0, "", f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}", False


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("names", nargs="*")
    p.add_argument("--kernels", choices=common.KERNELS, default="fast")
    p.add_argument("--at-least", type=int, default=0, help="fail when fewer models agree")
    p.add_argument("--device", help="of relayout run: cuda")
    p.add_argument("--replayed", action="store_true", help="with --device: fail where it does not record the graph and replay it")
    p.add_argument("--type", choices=lowered.TYPES, help="the models in this type")
    p.add_argument("--references", type=Path, metavar="FOLDER", help="what is compared with is taken from there, and kept there")
    p.add_argument("--only-references", action="store_true", help="nothing is compared")
    args = p.parse_args()
    prog = common.program(args)
    if args.kernels == "fast" and not common.has_onednn(prog):
        print("without oneDNN: the reference kernels")
    jobs = [(n, None, args, prog) for n in zoo.chosen(args.names)] + [(n, p, args, prog) for n, p in shipped(args.names).items()]
    if not jobs:
        return common.closing(0, 0, 1)
    npass, nfail, skipped = 0, 0, collections.defaultdict(list)
    for name, worst, seconds, how, wrong, is_skipped in common.pooled(run, jobs, args.jobs, ordered=True):
        if is_skipped:
            skipped[test_backend_run.reason(wrong)].append(name)
            continue
        npass += not wrong
        nfail += bool(wrong)
        share = "" if worst is None else f"{worst:9.2g} of the bound {seconds:7.2f} s"
        print(f"{name:34}{share}  {how:8}  {'ok' if not wrong else 'FAIL ' + wrong}", flush=True)
    for what, names in sorted(skipped.items(), key=lambda x: (-len(x[1]), x[0])):
        print(f"skipped {len(names):3d}  {what}: {' '.join(names)}")
    status = common.closing(npass, nfail, sum(map(len, skipped.values())))
    return status or npass < args.at_least


if __name__ == "__main__":
    sys.exit(main())
