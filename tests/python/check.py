"""One model through the program, and everything that must hold of the result: used by all tests of real rewrites."""
import dataclasses
from pathlib import Path

import onnx

import common
import counting


@dataclasses.dataclass
class Facts:
    """A model as it came: what the rewritten one is compared with."""
    inputs: list            # one dict per trial
    outputs: list           # one list per trial
    engine: str             # of common.ENGINES
    counts: counting.Counts
    checked: bool           # onnx.checker accepts it
    full: bool              # ... with shape inference
    interface: tuple        # see common.interface


def facts_of(path, model, trials):
    """Runs the model on each dict of inputs. Raises common.Differ where nothing can run it."""
    first, engine = common.run(path, trials[0])
    outputs = [first] + [common.ENGINES[engine](path, x) for x in trials[1:]]
    return Facts(trials, outputs, engine, counting.count_run(model, trials[0]), common.checker_error(path) == "",
                 common.checker_error(path, full=True) == "", common.interface(model))


@dataclasses.dataclass
class Result:
    fail: list = dataclasses.field(default_factory=list)  # what is wrong, one line each
    seconds: float = None
    same: bool = False              # the output file is the input file
    counts: counting.Counts = None
    worst: float = None             # largest difference of an output
    bitexact: bool = None


def rewrite(prog, src, facts, target, tmp, compare=None, trade=False):
    """Optimizes src into tmp/out.onnx and checks: it succeeds; the interface stays; onnx.checker accepts the result; outputs
    agree; Transposes that move data and other moves do not grow; optimizing again changes nothing.
    trade: a node of one kind may stand for one of another that moved as much, but a Transpose for none.
    compare(trial, outputs) gives a common.Diff; the default is common.compare with the original's outputs."""
    compare = compare or (lambda k, got: common.compare(facts.outputs[k], got))
    res, out = Result(), Path(tmp) / "out.onnx"
    r = common.optimize(prog, src, out, target)
    res.seconds = r.seconds
    if r.status != 0:
        res.fail.append(r.text)
        return res
    res.same = common.same_bytes(src, out)
    if res.same:
        res.counts, res.worst, res.bitexact = facts.counts, 0.0, True
    else:
        _changed(res, out, facts, target, compare, trade)
    if res.counts is not None:
        _again(res, prog, out, Path(tmp) / "again.onnx", facts, target)
    return res


OWN_OPS = {"fused", "ort", "ort-cuda"}  # targets that may import com.microsoft


def _interface_stays(model, facts, target):
    now, was = common.interface(model), facts.interface
    if target.split(":")[0] in OWN_OPS:
        now = (now[0], [o for o in now[1] if o in was[1] or o != ("com.microsoft", 1)], *now[2:])
    return now == was


def _changed(res, out, facts, target, compare, trade):
    try:
        model = onnx.load(out)
    except Exception as e:
        res.fail.append(f"the result is no model: {e!r:.200}")
        return
    if not _interface_stays(model, facts, target):
        res.fail.append("inputs, outputs, opsets or metadata changed")
    error = common.checker_error(out, full=facts.full) if facts.checked else ""
    if error:
        res.fail.append(f"onnx.checker: {error}")
    res.worst, res.bitexact = 0.0, True
    try:
        for k, x in enumerate(facts.inputs):
            d = compare(k, common.ENGINES[facts.engine](out, x))
            res.worst, res.bitexact = max(res.worst, d.worst), res.bitexact and d.bitexact
            if not d.ok:
                res.fail.append(f"outputs differ: {d.why}")
                break
    except Exception as e:
        res.fail.append(f"{facts.engine} cannot run the result: {(str(e).splitlines() or [repr(e)])[0][:200]}")
    res.counts = counting.count_run(model, facts.inputs[0])
    if res.counts.permuting > facts.counts.permuting if trade else res.counts.conversions > facts.counts.conversions:
        res.fail.append(f"Transposes grew: {facts.counts.moving} -> {res.counts.moving}")
    grown = res.counts.grown(facts.counts, trade)
    if grown:
        res.fail.append(f"other moves grew: {grown}")


def _again(res, prog, out, again, facts, target):
    r = common.optimize(prog, out, again, target)
    if r.status != 0:
        res.fail.append(f"second optimize: {r.text}")
    elif not common.same_bytes(out, again):
        try:
            moving = counting.count_run(onnx.load(again), facts.inputs[0]).moving
        except Exception as e:
            moving = repr(e)[:100]
        res.fail.append(f"second optimize changes the model ({res.counts.moving} -> {moving} Transposes)")
