#!/usr/bin/env python3
"""Random models through relayout: same numbers, never more moves, nothing to do the second time.

  test_random.py --count 1000 --seed 0          models 0 to 999, targets onnx and generic
  test_random.py --seed 123 --count 1 --shrink  one model again; a failing one is made small
  test_random.py --every all                    each model under every target and objective
  test_random.py --own                          and the original by `relayout run`, both kinds of kernels: the same outputs; so has
                                                the result, in the reference kernels
  test_random.py --wide                         models of graphgen_wide.py: opsets 7 to 28, other types; says what they contain
  test_random.py --every turn                   under onnx and generic, and one more target and objective, which take turns

A failing model goes to BUILD/random-failures/SEED.TARGET.onnx, with its result and, with --shrink, a small one beside it.
Outputs that only exact arithmetic led to must be equal; the others within the usual tolerance, 32 last digits of the largest
value (a sum in another order), or, where the model magnifies rounding, ten times what a change in the last digit of the inputs and of
all that is computed does to the original.
"""
import collections
import dataclasses
import functools
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

import check
import common
import counting
import graphgen
import graphgen_wide
import shrink

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import Refused, RelayoutBackend


# The reference evaluator does not know ops that a target adds: there `relayout run` decides.
NO_FUSED = re.compile(r"from domain 'com.microsoft' is unknown")
ENOUGH = 300  # models of the wider kind among which each of its kinds is to be
KNOWN = 3061, 3080, 108732, 109508, 5200264, 7200297  # models that once failed, and are too large to be a text case
MAKERS = {False: graphgen.make, True: graphgen_wide.make}


# The last digits of a type, doubled.
LAST = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-7, "float64": 4e-16}
EXACT_OPS = counting.VIEWS | counting.OTHERS | {"Transpose"}
CANCEL = {"Gelu", "QuickGelu", "Mish", "Elu", "Selu", "Celu", "Softplus", "LogSoftmax"}  # inside: what is left has the last digits of the input


def shaky(model, values, jitter):
    """The model with the last bits of all that it computes changed: v = Op(x) becomes w = Op(x), v = Mul(w, about 1)."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    for t in m.graph.initializer:
        x = onnx.numpy_helper.to_array(t)
        if x.dtype.name in LAST and len(t.dims):
            t.CopyFrom(onnx.numpy_helper.from_array(jitter(x), t.name))
    nodes = list(m.graph.node)
    del m.graph.node[:]
    for n in nodes:
        m.graph.node.append(n)
        at = len(m.graph.node) - 1
        for i, o in enumerate(n.output):
            x = values.get(o)
            if n.op_type in EXACT_OPS or not isinstance(x, np.ndarray) or x.dtype.name not in LAST:
                continue
            m.graph.node[at].output[i] = o + "/exact"
            m.graph.initializer.append(onnx.numpy_helper.from_array(jitter(np.ones(x.shape, x.dtype)), o + "/one"))
            m.graph.node.append(onnx.helper.make_node("Mul", [o + "/exact", o + "/one"], [o]))
            given = values.get(n.input[0]) if n.op_type in CANCEL else None
            if isinstance(given, np.ndarray):
                m.graph.node[-1].output[0] = o + "/near"
                m.graph.initializer.append(onnx.numpy_helper.from_array(jitter(given) - given, o + "/last"))
                m.graph.node.append(onnx.helper.make_node("Add", [o + "/near", o + "/last"], [o]))
    return m


def noise(model, inputs, wanted, engine):
    """Per output: what changing the last bits of inputs, constants and all that is computed does to it."""
    r = np.random.default_rng(0)
    jitter = lambda x: np.asarray(x * (1 + LAST[x.dtype.name] * r.standard_normal(x.shape))).astype(x.dtype) if x.dtype.name in LAST else x
    made = [o for n in model.graph.node if n.op_type != "Constant" for o in n.output if o]
    size = lambda a, b: float(np.nanmax(np.abs(a.astype(float) - b.astype(float)), initial=0.0)) if a.dtype.name in LAST and a.shape == b.shape else 0.0
    most = [0.0] * len(wanted)
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        for values in ({**common.runtime_values(model, made, inputs), **inputs}, inputs):
            path = Path(tmp) / "shaky.onnx"
            path.write_bytes(shaky(model, values, jitter).SerializeToString())
            try:
                got = common.ENGINES[engine](path, {k: jitter(v) for k, v in inputs.items()})
            except Exception:
                continue    # not even that can be changed everywhere
            most = [max(n, size(a, np.asarray(b))) for n, a, b in zip(most, wanted, got)]
    return most


def put(model, path, external):
    """The model as a file, its weights in another where that is asked for."""
    if external:
        m = onnx.ModelProto()
        m.CopyFrom(model)
        onnx.save(m, path, save_as_external_data=True, location=path.stem + ".weights", size_threshold=100)   # shapes stay: onnxruntime wants them
    else:
        path.write_bytes(model.SerializeToString())


def run_own(prog, kernels, path, inputs):
    """Outputs by `relayout run`."""
    model = onnx.load(path, load_external_data=False)
    given = {i.name for i in model.graph.input}
    rep = RelayoutBackend.prepare(model, program=prog, path=path, options=("--kernels", kernels))
    return [np.asarray(x) for x in rep.run({k: v for k, v in inputs.items() if k in given})]


def misread(model):
    """Does the reference evaluator take it for another model? (docs/disagreements.md)"""
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    until = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "BatchNormalization": 14, "GlobalMaxPool": 99}
    negative = lambda n: n.op_type == "Unsqueeze" and any(a.name == "axes" and len(a.ints) > 1 and min(a.ints) < 0 for a in n.attribute)
    collects = lambda n: n.op_type == "Loop" and len(n.output) > len(n.input) - 2
    short = any(i.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for i in model.graph.input)
    sums = lambda n: short and n.op_type in ("ReduceMean", "ReduceSum")
    return any(opset < until.get(n.op_type, 0) or negative(n) or collects(n) or sums(n) for n in common.every_node(model.graph))


def by_relayout(src, g, why):
    """Facts of `relayout run`, where the others cannot say; why they cannot."""
    try:
        wanted = [common.ENGINES["relayout"](src, x) for x in g.trials]
    except Exception as e:
        raise common.Differ(f"{why}; relayout: {e!s:.200}") from None
    counts = counting.count_run(g.proto, g.trials[0])
    return check.Facts(g.trials, wanted, "relayout", counts, common.checker_error(src) == "", common.checker_error(src, full=True) == "",
                       common.interface(g.proto))


def facts_of(src, g):
    """By onnxruntime, else by the reference evaluator, else by `relayout run`."""
    try:
        facts = check.facts_of(src, g.proto, g.trials)
    except common.Differ as e:
        return by_relayout(src, g, e)
    return by_relayout(src, g, "the reference evaluator misreads it") if facts.engine == "reference" and misread(g.proto) else facts


def judge(prog, g, target, tmp, facts=None):
    """What is wrong, one line each; the original's facts, by what could run both; the result."""
    src = Path(tmp) / "in.onnx"
    if not facts:
        put(g.proto, src, g.external)
        facts = facts_of(src, g)
    rewrite = lambda: check.rewrite(prog, src, facts, target, tmp, trade=True, compare=lambda k, got: outputs(g, facts, k, got))
    res = rewrite()
    if facts.engine == "reference" and any(NO_FUSED.search(f) for f in res.fail):
        facts = by_relayout(src, g, "the reference evaluator has not the result's ops")
        res = rewrite()
    return res.fail, facts, res


def largest(tensors):
    """Of the numbers in tensors by name, without a sign."""
    return max((float(np.nanmax(np.abs(x.astype(float)), initial=0.0)) for x in tensors.values() if isinstance(x, np.ndarray) and x.dtype.kind not in "OSUV"), default=0.0)


def outputs(g, facts, k, got):
    """The outputs of trial k, each by its own rule."""
    want, total, shaken = facts.outputs[k], common.Diff(), None
    if len(want) != len(got):
        return common.compare(want, got)
    for i, (a, b) in enumerate(zip(want, got)):
        d = common.compare([a], [b], g.exact[i])
        if not d.ok and not g.exact[i] and np.isfinite(d.worst):
            shaken = shaken or noise(g.proto, facts.inputs[k], want, facts.engine)
            alone = 2.0 ** -23 * largest(facts.inputs[k]) if a.size == 1 else 0.0  # nothing beside it has the size of what is rounded on the way: x (1 + erf(x))
            if d.worst <= max(10 * shaken[i], 4e-6 * largest({"": a}), alone):
                continue
        if not d.ok and total.ok:
            total.ok, total.why = False, f"output {i} ({g.proto.graph.output[i].name}): {d.why.split(': ', 1)[-1]}"
        total.worst, total.bitexact = max(total.worst, d.worst), total.bitexact and d.bitexact
    return total


def own(prog, g, facts, tmp):
    """What is wrong with the original as relayout's own runtime runs it; the reference kernels' outputs."""
    src, fail, reference = Path(tmp) / "in.onnx", [], None
    for kernels in common.KERNELS:
        try:
            got = run_own(prog, kernels, src, facts.inputs[0])
        except Refused:
            continue
        reference = got if kernels == "reference" else None
        d = outputs(g, facts, 0, got)
        if not d.ok:
            fail.append(f"relayout run --kernels {kernels} and {facts.engine} differ: {d.why}")
    return fail, reference


def own_after(prog, g, facts, tmp, before):
    """What is wrong with the result there."""
    try:
        got = run_own(prog, "reference", Path(tmp) / "out.onnx", facts.inputs[0])
    except Refused:
        return []
    d = outputs(g, dataclasses.replace(facts, engine="relayout", outputs=[before]), 0, got)
    return [] if d.ok else [f"in relayout run, before and after: {d.why}"]


def kind(fail):
    """A failure without its particulars, so that shrinking keeps to one."""
    return fail.split(":")[0].split("(")[0].strip()


@dataclasses.dataclass
class Done:
    rows: dict      # per target: what is wrong, Transposes before and after, whether the file stayed as it was; None: it cannot be run
    why: str        # ... and why
    kinds: set      # what the model contains
    engine: str     # what ran it
    refused: str    # why onnxruntime did not


def refusal(src, inputs):
    """Why onnxruntime does not run it, in a few words."""
    try:
        common.run_ort(src, inputs)
    except Exception as e:
        why = str(e)
    else:
        return ""
    known = {"only *guarantees* support": "opset beyond its last", "Unsupported model IR version": "opset beyond its last",
             "Numpy_type": "bfloat16 that is not float to Python", "Could not find an implementation": "an op without a kernel for the type",
             "Type Error": "types that are not in its schemas", "outer scope value being returned": "a body's output that is an outer value"}
    return next((v for k, v in known.items() if k in why), why.splitlines()[0][:100])


def run(job):
    seed, prog, targets, folder, small, runs, wide, common.REFERENCE_ONLY = job
    common.ENGINES["relayout"] = functools.partial(run_own, prog, "reference")
    g = MAKERS[wide](seed)
    done = Done({}, "", graphgen_wide.kinds(g), "", "")
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        src = Path(tmp) / "in.onnx"
        put(g.proto, src, g.external)
        try:
            facts = facts_of(src, g)
            foreign, reference = own(prog, g, facts, tmp) if runs else ([], None)
        except common.Differ as e:
            return dataclasses.replace(done, rows=None, why=str(e))
        except Exception as e:
            facts, foreign, reference = None, [f"{type(e).__name__}: {e!s:.200}"], None
        done.engine = facts.engine if facts else ""
        done.refused = refusal(src, facts.inputs[0]) if facts and facts.engine != "onnxruntime" and not common.REFERENCE_ONLY else ""
        for target in targets:
            try:
                fail, by, res = judge(prog, g, target, tmp, facts)
                before = by.counts
                if facts and by.engine != facts.engine:
                    done.engine = f"{facts.engine}, where it fails on the result {by.engine}"
                if reference is not None and not res.same and not fail:
                    fail += own_after(prog, g, facts, tmp, reference)
            except common.Differ as e:
                return dataclasses.replace(done, rows=None, why=str(e))
            except Exception as e:
                fail, before, res = [f"{type(e).__name__}: {e!s:.200}"], counting.Counts(), check.Result()
            fail, foreign = fail + foreign, []
            done.rows[target] = (fail, before.moving, (res.counts or before).moving, res.same)
            if fail:
                keep(prog, g, target, tmp, fail, folder / f"{seed}{'w' * wide}.{target}", small)
    return done


def keep(prog, g, target, tmp, fail, stem, small):
    stem.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(g.proto, f"{stem}.onnx")
    out = Path(tmp) / "out.onnx"
    if out.exists():
        os.replace(out, f"{stem}.out.onnx")
    if small:
        reduce(prog, g, target, tmp, kind(fail[0]), stem)


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
    p.add_argument("--known", action="store_true", help="models that once failed")
    p.add_argument("--wide", action="store_true", help="models of graphgen_wide.py")
    p.add_argument("--shrink", action="store_true", help="make failing models small (up to 30 s each)")
    p.add_argument("--max-fail", type=int, default=1000, help="stop after so many")
    args = p.parse_args()
    prog, targets = common.program(args), args.target or ["onnx", "generic"]
    folder = args.build.resolve() / "random-failures"
    pairs = common.every_target()
    of = {None: lambda s: targets, "all": lambda s: pairs, "turn": lambda s: [*targets, pairs[s % len(pairs)]]}[args.every]
    jobs = [(s, prog, of(s), folder, args.shrink, args.own, args.wide, False) for s in (KNOWN if args.known else range(args.seed, args.seed + args.count))]
    npass = nfail = nskip = 0
    sums, kinds, engines, refused = collections.defaultdict(lambda: [0, 0, 0, 0]), *(collections.Counter() for _ in range(3))
    for job, done, died in common.progress(results(jobs, args.jobs), len(jobs)):
        seed = job[0]
        if done and done.rows is None:
            nskip += 1
            print(f"seed {seed}: not a model that can be run: {done.why}")
            continue
        bad = bool(died)
        if died:
            print(f"seed {seed}: {died}", flush=True)
        else:
            kinds.update(done.kinds)
            engines[done.engine] += 1
            refused[done.refused] += bool(done.refused)
        for target, (fail, before, after, same) in (done.rows if done else {}).items():
            for i, n in enumerate((before, after, not same, 1)):
                sums[target][i] += n
            for f in fail:
                print(f"seed {seed} ({target}): {f}", flush=True)
            bad |= bool(fail)
        npass, nfail = npass + (not bad), nfail + bad
        if nfail >= args.max_fail:
            break
    for target, (before, after, changed, models) in sorted(sums.items()):
        print(f"target {target}: Transposes that move data {before} -> {after}, {changed} of {models} models changed")
    print("run by " + ", ".join(f"{e or 'none'}: {n}" for e, n in engines.most_common()))
    if +refused:
        print("onnxruntime refuses " + ", ".join(f"{k}: {n}" for k, n in (+refused).most_common()))
    nfail += report_kinds(kinds, args) if args.wide else 0
    if nfail:
        print(f"failing models are in {folder}")
    return common.closing(npass, nfail, nskip)


def report_kinds(kinds, args):
    """Prints what the models that were run contain; how many kinds are missing though there were enough models."""
    print("models with " + ", ".join(f"{k}: {kinds[k]}" for k in graphgen_wide.WANTED))
    missing = [k for k in graphgen_wide.WANTED if not kinds[k]] if args.count >= ENOUGH else []
    for k in missing:
        print(f"no model with {k}")
    return len(missing)


if __name__ == "__main__":
    sys.exit(main())
