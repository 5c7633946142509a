#!/usr/bin/env python3
"""Random models through relayout: same numbers, never more moves, nothing to do the second time.

  test_random.py --count 1000 --seed 0          models 0 to 999, targets onnx and generic
  test_random.py --seed 123 --count 1 --shrink  one model again; a failing one is made small
  test_random.py --every all                    each model under every target and objective
  test_random.py --own                          and the original by `relayout run`, both kinds of kernels: the same outputs
  test_random.py --every turn                   under onnx and generic, and one more target and objective, which take turns

A failing model goes to BUILD/random-failures/SEED.TARGET.onnx, with its result and, with --shrink, a small one beside it.
Outputs that only exact arithmetic led to must be equal; the others within the usual tolerance, 32 last digits of the largest
value (a sum in another order), or, where the model magnifies rounding, ten times what a change of the inputs in the last digit
does to the original.
"""
import collections
import dataclasses
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

import check
import common
import graphgen
import shrink

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import Refused, RelayoutBackend


# Failures of onnxruntime on models that are valid: there the reference evaluator decides.
ENGINE_FAULT = re.compile(r"GetOrtValue|op_kernel\.cc|op_kernel\.h")


def noise(model, inputs, wanted):
    """Per output: what changing the last bits of inputs and constants does to it."""
    r = np.random.default_rng(0)
    jitter = lambda x: (x * (1 + 2e-7 * r.standard_normal(x.shape))).astype(x.dtype) if x.dtype == np.float32 else x
    m = onnx.ModelProto()
    m.CopyFrom(model)
    for t in m.graph.initializer:
        if t.data_type == onnx.TensorProto.FLOAT and len(t.dims):
            t.CopyFrom(onnx.numpy_helper.from_array(jitter(onnx.numpy_helper.to_array(t)), t.name))
    try:
        got, _ = common.run(m.SerializeToString(), {k: jitter(v) for k, v in inputs.items()})
    except common.Differ:
        return [0.0] * len(wanted)
    size = lambda a, b: float(np.nanmax(np.abs(a.astype(float) - b.astype(float)), initial=0.0)) if a.dtype.kind == "f" and a.shape == b.shape else 0.0
    return [size(a, b) for a, b in zip(wanted, got)]


def judge(prog, g, target, tmp, facts=None):
    """What is wrong, one line each; the original's counts; the result."""
    src = Path(tmp) / "in.onnx"
    src.write_bytes(g.proto.SerializeToString())
    facts = facts or check.facts_of(src, g.proto, g.trials)
    res = check.rewrite(prog, src, facts, target, tmp, trade=True, compare=lambda k, got: outputs(g, facts, k, got))
    if facts.engine == "onnxruntime" and any(ENGINE_FAULT.search(f) for f in res.fail):
        try:
            wanted = [common.run_reference(src, x) for x in facts.inputs]
        except Exception as e:
            raise common.Differ(f"onnxruntime: a fault of its own; reference: {e!r:.200}") from None
        facts = dataclasses.replace(facts, engine="reference", outputs=wanted)
        res = check.rewrite(prog, src, facts, target, tmp, trade=True, compare=lambda k, got: outputs(g, facts, k, got))
    return res.fail, facts.counts, res


def outputs(g, facts, k, got):
    """The outputs of trial k, each by its own rule."""
    want, total, shaken = facts.outputs[k], common.Diff(), None
    if len(want) != len(got):
        return common.compare(want, got)
    for i, (a, b) in enumerate(zip(want, got)):
        d = common.compare([a], [b], g.exact[i])
        if not d.ok and not g.exact[i] and np.isfinite(d.worst):
            shaken = shaken or noise(g.proto, facts.inputs[k], want)
            if d.worst <= max(10 * shaken[i], 4e-6 * float(np.nanmax(np.abs(a.astype(float)), initial=0.0))):
                continue
        if not d.ok and total.ok:
            total.ok, total.why = False, f"output {i} ({g.proto.graph.output[i].name}): {d.why.split(': ', 1)[-1]}"
        total.worst, total.bitexact = max(total.worst, d.worst), total.bitexact and d.bitexact
    return total


def own(prog, g, facts, tmp):
    """What is wrong with the original as relayout's own runtime runs it."""
    src, fail = Path(tmp) / "in.onnx", []
    for kernels in common.KERNELS:
        try:
            got = RelayoutBackend.prepare(g.proto, program=prog, path=src, options=("--kernels", kernels)).run(facts.inputs[0])
        except Refused:
            continue
        d = outputs(g, facts, 0, [np.asarray(x) for x in got])
        if not d.ok:
            fail.append(f"relayout run --kernels {kernels} and {facts.engine} differ: {d.why}")
    return fail


def kind(fail):
    """A failure without its particulars, so that shrinking keeps to one."""
    return fail.split(":")[0].split("(")[0].strip()


def run(job):
    seed, prog, targets, folder, small, runs, common.REFERENCE_ONLY = job
    g = graphgen.make(seed)
    rows = {}
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        facts = None
        for target in targets:
            try:
                if not facts:
                    src = Path(tmp) / "in.onnx"
                    src.write_bytes(g.proto.SerializeToString())
                    facts = check.facts_of(src, g.proto, g.trials)
                    foreign = own(prog, g, facts, tmp) if runs else []
                fail, before, res = judge(prog, g, target, tmp, facts)
                fail, foreign = fail + foreign, []
            except common.Differ as e:
                return seed, None, str(e)
            except Exception as e:
                fail, before, res = [f"{type(e).__name__}: {e!s:.200}"], common.Counts(), check.Result()
            rows[target] = (fail, before.moving, (res.counts or before).moving, res.same)
            if fail:
                folder.mkdir(parents=True, exist_ok=True)
                stem = folder / f"{seed}.{target}"
                onnx.save(g.proto, f"{stem}.onnx")
                out = Path(tmp) / "out.onnx"
                if out.exists():
                    os.replace(out, f"{stem}.out.onnx")
                if small:
                    reduce(prog, g, target, tmp, kind(fail[0]), stem)
    return seed, rows, ""


def reduce(prog, g, target, tmp, what, stem):
    def fails(model, inputs):
        exact = [g.exact[i] for o in model.graph.output for i, p in enumerate(g.proto.graph.output) if p.name == o.name]
        exact += [False] * (len(model.graph.output) - len(exact))
        fail, _, _ = judge(prog, graphgen.Model(model, [inputs], exact), target, tmp)
        return any(kind(f) == what for f in fail)

    for x in g.trials:
        if not fails(g.proto, x):
            continue
        model, _ = shrink.shrink(g.proto, x, fails)
        onnx.save(model, f"{stem}.small.onnx")
        out = Path(tmp) / "out.onnx"
        common.optimize(prog, f"{stem}.small.onnx", out, target)
        text = lambda m: "\n".join(onnx.printer.to_text(m).splitlines())
        print(f"--- {stem.name}: {len(g.proto.graph.node)} -> {len(model.graph.node)} nodes, still: {what}\n{text(model)}", flush=True)
        if out.exists():
            try:
                print(f"--- rewritten:\n{text(onnx.load(out))}", flush=True)
            except Exception as e:
                print(f"--- rewritten: {e}")
        return


def results(jobs, processes):
    """Of common.forked; where the process died, the reference evaluator decides in place of onnxruntime."""
    again = []
    for job, result, died in common.forked(run, jobs, processes):
        if "process died" in died:
            print(f"seed {job[0]}: {died}: once more without onnxruntime", flush=True)
            again.append((*job[:-1], True))
        else:
            yield job, result, died
    yield from common.forked(run, again, processes)


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=0, help="the first one")
    p.add_argument("--target", action="append", help="default: onnx and generic")
    p.add_argument("--every", choices=("all", "turn"), help="targets and objectives: all for each model, or one more for each in turn")
    p.add_argument("--own", action="store_true", help="compare relayout's own runtime with onnxruntime, too")
    p.add_argument("--shrink", action="store_true", help="make failing models small (up to 30 s each)")
    p.add_argument("--max-fail", type=int, default=1000, help="stop after so many")
    args = p.parse_args()
    prog, targets = common.program(args), args.target or ["onnx", "generic"]
    folder = args.build.resolve() / "random-failures"
    pairs = common.every_target()
    of = {None: lambda s: targets, "all": lambda s: pairs, "turn": lambda s: [*targets, pairs[s % len(pairs)]]}[args.every]
    jobs = [(s, prog, of(s), folder, args.shrink, args.own, False) for s in range(args.seed, args.seed + args.count)]
    npass = nfail = nskip = 0
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for job, result, died in common.progress(results(jobs, args.jobs), len(jobs)):
        seed, rows, why = result or (job[0], None, died)
        if rows is None and not died:
            nskip += 1
            print(f"seed {seed}: not a model that can be run: {why}")
            continue
        bad = bool(died)
        if died:
            print(f"seed {seed}: {died}", flush=True)
        for target, (fail, before, after, same) in (rows or {}).items():
            sums[target][0] += before
            sums[target][1] += after
            sums[target][2] += not same
            sums[target][3] += 1
            for f in fail:
                print(f"seed {seed} ({target}): {f}", flush=True)
            bad |= bool(fail)
        npass, nfail = npass + (not bad), nfail + bad
        if nfail >= args.max_fail:
            break
    for target, (before, after, changed, models) in sorted(sums.items()):
        print(f"target {target}: Transposes that move data {before} -> {after}, {changed} of {models} models changed")
    if nfail:
        print(f"failing models are in {folder}")
    return common.closing(npass, nfail, nskip)


if __name__ == "__main__":
    sys.exit(main())
