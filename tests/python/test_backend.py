#!/usr/bin/env python3
"""The ONNX backend suite through relayout: node, simple and pytorch sets (2,024 cases in onnx 1.23) and the 9 light models.

  test_backend.py                       all of it, targets onnx and generic
  test_backend.py --fraction 0.25       a seeded quarter of it
  test_backend.py softmax reshape       cases whose name contains one of these

Each case is optimized and evaluated again by the reference evaluator (the light models by onnxruntime, which is fast enough for
them) against the outputs that the suite expects. What passed before must pass after; nothing is refused; no Transpose that
moves data and no other moving node is added; a graph that did not change is the same bytes.
Without --all a case whose bytes stay is not evaluated (its outputs are what they were), and the original is evaluated only where
the rewritten model fails.
"""
import random
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx

import check
import common
import counting

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
CASES = []  # filled before the workers fork


def load_cases():
    warnings.simplefilter("ignore")
    from onnx.backend.test.loader import DATA_DIR, load_model_tests
    for kind in KINDS:
        for c in load_model_tests(kind=kind):
            CASES.append((c.name, kind, c))
    for path in sorted((Path(DATA_DIR) / "light").glob("*.onnx")):
        CASES.append((path.stem, "light", path))
    CASES.sort(key=lambda c: c[:2])


def model_of(case):
    if case.model is not None:
        return case.model, None
    path = Path(case.model_dir) / "model.onnx"
    return onnx.load(path), path.read_bytes()


def data_of(case, model):
    """Pairs of inputs and expected outputs."""
    if case.data_sets is not None:
        array = lambda x: onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x
        return [([array(x) for x in a], [array(x) for x in b]) for a, b in case.data_sets]
    sets = []
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        read = lambda kind, infos: [_read(folder / f"{kind}_{i}.pb", v.type) for i, v in enumerate(infos)]
        given = list(model.graph.input)[:len(list(folder.glob("input_*.pb")))]
        sets.append((read("input", given), read("output", model.graph.output)))
    return sets


def _read(path, type_proto):
    data, kind = path.read_bytes(), type_proto.WhichOneof("value")
    if kind == "sequence_type":
        p = onnx.SequenceProto()
        p.ParseFromString(data)
        return onnx.numpy_helper.to_list(p)
    if kind == "optional_type":
        p = onnx.OptionalProto()
        p.ParseFromString(data)
        return onnx.numpy_helper.to_optional(p)
    p = onnx.TensorProto()
    p.ParseFromString(data)
    return onnx.numpy_helper.to_array(p)


def evaluate(model, sets, rtol, atol):
    """"" when the reference evaluator gives the expected outputs, else what is wrong."""
    from onnx.backend.test.runner import Runner
    from onnx.reference import ReferenceEvaluator
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            session = ReferenceEvaluator(model)
            for given, expected in sets:
                feeds = {i.name: x for i, x in zip(model.graph.input, given)}
                Runner.assert_similar_outputs(expected, session.run(None, feeds), rtol, atol)
    except Exception as e:
        lines = [s.strip() for s in str(e).splitlines() if s.strip()]
        return f"{type(e).__name__}: {' '.join(lines[:4])[:200]}"
    return ""


def run(job):
    """(name, kind, passed before or None, {target: (what fails, what changed)})"""
    i, prog, targets, everything, keep = job
    name, kind, case = CASES[i]
    before, rows = None, {}
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src = Path(tmp) / "in.onnx"
        if kind == "light":
            model = onnx.load(case)
            src.write_bytes(case.read_bytes())
            facts = None
        else:
            model, data = model_of(case)
            src.write_bytes(data or model.SerializeToString())
            if everything:
                before = evaluate(model, data_of(case, model), case.rtol, case.atol) == ""
        for target in targets:
            if kind == "light":
                facts = facts or light_facts(src, model)
                before = True
                res = check.rewrite(prog, src, facts, target, tmp)
                rows[target] = (res.fail, "same" if res.same else "changed")
                continue
            out = Path(tmp) / "out.onnx"
            out.unlink(missing_ok=True)
            r = common.optimize(prog, src, out, target, limit=30)
            if r.status != 0:
                rows[target] = ([r.text], "refused")
                continue
            if common.same_bytes(src, out):
                rows[target] = ([], "same")
                continue
            fail = []
            try:
                after = onnx.load(out)
            except Exception as e:
                rows[target] = ([f"the result is no model: {e!r:.100}"], "changed")
                continue
            fail += judge(model, after)
            what = difference(model, after)
            if what == "nothing":
                fail.append("nothing changed in the graph, but the bytes did")
            error = common.checker_error(out)
            if error and not common.checker_error(src):
                fail.append(f"onnx.checker: {error}")
            sets = data_of(case, model)
            error = evaluate(after, sets, case.rtol, case.atol)
            if error:
                if before is None:
                    before = evaluate(model, sets, case.rtol, case.atol) == ""
                if before:
                    fail.append(error)
            rows[target] = (fail, what)
            if fail and keep:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name}.{target}.in.onnx").write_bytes(src.read_bytes())
                (keep / f"{name}.{target}.out.onnx").write_bytes(out.read_bytes())
    return name, kind, before, rows


def light_facts(src, model):
    return check.facts_of(src, model, [common.random_inputs(model, seed=1)])


def judge(model, after):
    fail = []
    if common.interface(model) != common.interface(after):
        fail.append("inputs, outputs, opsets or metadata changed")
    a, b = counting.count(model), counting.count(after)
    if b.conversions > a.conversions:
        fail.append(f"Transposes grew: {a.moving} -> {b.moving}")
    if b.grown(a, trade=True):
        fail.append(f"other moves grew: {b.grown(a, trade=True)}")
    return fail


def difference(model, after):
    """What the rewrite won: "fewer moves", "fewer views", "fewer nodes", or "other" where none of these fell; "nothing"."""
    if model.SerializeToString(deterministic=True) == after.SerializeToString(deterministic=True):
        return "nothing"
    a, b = counting.count(model), counting.count(after)
    if b.transposes + b.folded + b.nother < a.transposes + a.folded + a.nother:
        return "fewer moves"
    if b.views < a.views:
        return "fewer views"
    return "fewer nodes" if b.nodes < a.nodes else "other"


def choose(args):
    """The cases, by number, that the arguments name, or a fraction of them."""
    found = [i for i, c in enumerate(CASES) if not args.names or any(x in c[0] for x in args.names)]
    return found if args.fraction >= 1 else sorted(random.Random(args.seed).sample(found, max(1, round(len(found) * args.fraction))))


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("names", nargs="*")
    p.add_argument("--fraction", type=float, default=1.0, help="a part of the suite, chosen by --seed")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--target", action="append", help="default: onnx and generic")
    p.add_argument("--all", action="store_true", help="evaluate every original too, and print how many pass")
    p.add_argument("--keep", type=Path, help="folder for failing models")
    args = p.parse_args()
    prog, targets = common.program(args), args.target or ["onnx", "generic"]
    load_cases()
    npass = passed_before = 0
    changed = {t: {} for t in targets}
    chosen = choose(args)
    jobs = [(i, prog, targets, args.all, args.keep) for i in chosen]
    for name, kind, before, rows in common.pooled(run, jobs, args.jobs, 4):
        passed_before += bool(before)
        for target, (fail, what) in rows.items():
            changed[target].setdefault(what, []).append(name)
            for f in fail:
                print(f"{kind} {name} ({target}): {f}", flush=True)
        npass += not any(fail for fail, _ in rows.values())
    for target, by in changed.items():
        print(f"target {target}: " + ", ".join(f"{len(v)} {k}" for k, v in sorted(by.items(), key=lambda x: -len(x[1]))))
        if by.get("other"):
            print(f"  changed without fewer nodes: {' '.join(sorted(by['other'])[:20])}")
    if args.all:
        print(f"{passed_before} of {len(chosen)} pass before")
    return common.closing(npass, len(chosen) - npass)


if __name__ == "__main__":
    sys.exit(main())
