#!/usr/bin/env python3
"""Runs the graphs of the text cases (tests/text) and compares outputs: the runner, tests/run.c, compares texts only.

  test_text_run.py [part of a path ...]
  test_text_run.py --device cuda       each input, and what it becomes, run there instead: against onnxruntime, or the reference evaluator; where
                                       these read the standard otherwise (docs/disagreements.md), against the reference kernels on the CPU

For each case: each input is written as ONNX as it is, then optimized, with all the checks of check.rewrite, and compared again by
`relayout verify`, whose kernels are its own; and the expected graph, written as ONNX too, must give what the first input gives. Of a case that the runner skips, only the latter. A
case is skipped where nothing can run its graph (unknown ops); an expected graph, where its text does not say all: layouts,
Moves, weights that stand as a seed.
"""
import collections
import dataclasses
import math
import re
import sys
import tempfile
from pathlib import Path

import onnx

import check
import common

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import Refused, RelayoutBackend

TEXT = common.ROOT / "tests" / "text"
PASSES = "normalize,fold,legal,assign,insert,lower,dce,movement"
ROOM = 2 ** 28  # elements
SIZES = {"N": 2, "H": 4, "W": 6, "C": 3, "S": 5, "": 2}


@dataclasses.dataclass
class Case:
    path: Path
    line: int
    keys: dict                                     # pass, target, ...
    inputs: list = dataclasses.field(default_factory=list)
    expected: str = None
    error: bool = False

    def __str__(self):
        return f"{self.path.relative_to(TEXT)}:{self.line}"


class Sizes(dict):
    """Sizes of symbols, and of expressions of them: 2*N+1."""

    def get(self, name, default=None):
        if name in self:
            return self[name]
        if not name or not re.fullmatch(r"[A-Za-z0-9_+*() -]+", name) or not re.search(r"[+*-]", name):
            return default
        known = lambda m: str(super(Sizes, self).get(m.group(), self[""]))
        return eval(re.sub(r"[A-Za-z_]\w*", known, name), {"__builtins__": {}})


def cases_of(path):
    """The cases of a file, as tests/run.c reads them."""
    case = part = None
    for k, line in enumerate(path.read_text().splitlines(), 1):
        if line == "====":
            case = None
            continue
        if case is None:
            case, part = Case(path, k, {}), None
            yield case
        key = re.match(r"(pass|target|objective|disable|time|skip|stats|proof|error):\s*(.*)", line)
        if key and (part is None or key[1] in ("stats", "proof", "error")):
            case.keys[key[1]], case.error, part = key[2], case.error or key[1] == "error", None if part is None else ""
        elif line == "same:":
            case.inputs.append("")
            part = "input"
        elif line == "----":
            case.expected, part = "", "expected"
        elif part is None and line and not line.startswith("#"):
            case.inputs.append(line + "\n")
            part = "input"
        elif part == "input":
            case.inputs[-1] += line + "\n"
        elif part == "expected":
            case.expected += line + "\n"


class CannotRun(Exception):
    pass


def as_onnx(prog, text, path):
    """Writes a graph in text form as ONNX, unchanged."""
    src = path.with_suffix(".rlt")
    src.write_text(text)
    r = common.relayout(prog, "optimize", src, "-o", path, "--disable", PASSES)
    if r.status != 0:
        raise common.Differ(f"cannot be written as ONNX: {r.text}")
    return path


def trials_of(path):
    """Inputs that the model runs on; whole numbers, so that sums are exact in any order."""
    model, good = onnx.load(path), []
    if any(math.prod(d.dim_value or 1 for d in i.type.tensor_type.shape.dim) > ROOM for i in model.graph.input):
        raise CannotRun("larger than memory")
    for seed in range(8):
        x = common.random_inputs(model, seed=seed, dims=Sizes(SIZES), integers=True, high=2)
        try:
            common.run(path, x)
        except common.Differ as e:
            last = e
            continue
        good.append(x)
        if len(good) == 2:
            return good
    if not good:
        raise CannotRun(str(last))
    return good


def by_place(model, inputs, names):
    """The inputs of one model under another's names."""
    return {i.name: inputs[n] for i, n in zip(common.model_inputs(model), names)}


def check_expected(prog, case, facts, names, tmp):
    path = as_onnx(prog, case.expected, tmp / "expected.onnx")
    model = onnx.load(path)
    for want, x in zip(facts.outputs, facts.inputs):
        d = common.compare(want, common.ENGINES[facts.engine](path, by_place(model, x, names)))
        if not d.ok:
            return [f"the expected graph: {d.why}"]
    return []


def has_layouts(text):
    return re.search(r"= Move\(|\]@", text)


def is_whole(text):
    """Whether the text says all that there is to run. Sizes of more elements than memory can hold are not written."""
    large = any(math.prod(map(int, re.findall(r"\d+", dims))) > 2 ** 46 for dims in re.findall(r"in %\S+ \w+\[([\d,]+)\]", text))
    return not has_layouts(text) and not re.search(r"seed=|external", text) and not large


VERIFIED = collections.Counter()  # by exit status


def verify(prog, before, after):
    """By the reference kernels. What they refuse (status 5; some ops of onnxruntime's own), or a graph that does not run on random values,
    compares nothing."""
    names = {d.dim_param for i in onnx.load(before).graph.input for d in i.type.tensor_type.shape.dim}
    sizes = [x for n in sorted(names) if n in SIZES and n for x in ("--dim", f"{n}={SIZES[n]}")]
    r = common.relayout(prog, "verify", before, after, *sizes)
    alone = r if r.status in (0, 5) else common.relayout(prog, "run", before, "--kernels", "reference", *sizes)
    VERIFIED[r.status] += 1
    return [f"relayout verify: {r.text}"] if alone.status != r.status else []


def run_there(prog, case, device, tmp):
    """The inputs of the case, and their rewrites, on the device."""
    bad, on = [], lambda path, x, *options: RelayoutBackend.prepare(onnx.load(path), program=prog, path=path, limit=60, options=options).run(x)
    for k, text in enumerate(case.inputs):
        if has_layouts(text):
            raise CannotRun("layouts are no ONNX")
        if re.search(r"= (Random|Bernoulli|Multinomial|Dropout)", text):
            raise CannotRun("draws at random")
        path = as_onnx(prog, text, tmp / f"in{k}.onnx")
        facts = check.facts_of(path, onnx.load(path), trials_of(path))
        paths = [path]
        if "skip" not in case.keys and common.optimize(prog, path, tmp / f"out{k}.onnx", case.keys.get("target", "generic")).status == 0:
            paths.append(tmp / f"out{k}.onnx")
        for p in paths:
            try:
                made = [on(p, x, "--device", device) for x in facts.inputs]
                diffs = [common.compare(*pair) for pair in zip(facts.outputs, made)]
                if not all(d.ok for d in diffs):
                    diffs = [common.compare(on(p, x, "--kernels", "reference"), y) for x, y in zip(facts.inputs, made)]
            except Refused as e:
                raise CannotRun(str(e)) from None
            except RuntimeError as e:
                if common.relayout(prog, "run", p, "--kernels", "reference").status == 0:
                    raise
                raise CannotRun(f"not on the CPU either: {e}") from None
            bad += [f"{p.name} on the device: {d.why}" for d in diffs if not d.ok]
    return bad


def run_case(prog, case, tmp):
    """What is wrong, one line each."""
    bad = []
    for k, text in enumerate(case.inputs):
        if has_layouts(text):
            raise CannotRun("layouts are no ONNX")
        path = as_onnx(prog, text, tmp / f"in{k}.onnx")
        facts = check.facts_of(path, onnx.load(path), trials_of(path))
        same = False
        if "skip" not in case.keys:
            res = check.rewrite(prog, path, facts, case.keys.get("target", "generic"), tmp, trade=True)
            bad, same = bad + res.fail, res.same
            bad += [] if same else verify(prog, path, tmp / "out.onnx")
        if k == 0 and case.expected and not same and is_whole(text + case.expected):
            names = [i.name for i in common.model_inputs(onnx.load(path))]
            bad += check_expected(prog, case, facts, names, tmp)
    return bad


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("cases", nargs="*")
    p.add_argument("--device", help="of relayout run: cuda")
    args = p.parse_args()
    prog = common.program(args)
    cases = [c for f in sorted(TEXT.rglob("*.rlt")) for c in cases_of(f) if not args.cases or any(x in str(f) for x in args.cases)]
    passed = failed = skipped = 0
    for case in common.progress(cases, len(cases)):
        if case.error or not case.inputs:
            skipped += 1
            continue
        try:
            with tempfile.TemporaryDirectory() as tmp:
                bad = run_there(prog, case, args.device, Path(tmp)) if args.device else run_case(prog, case, Path(tmp))
        except CannotRun:
            skipped += 1
            continue
        except Exception as e:
            bad = [f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"]
        passed += not bad
        failed += bool(bad)
        for b in bad:
            print(f"{case}: {b}")
    if not args.device:
        print(f"{VERIFIED[0]} rewrites gave the same in relayout's kernels; not run there: {sum(n for s, n in VERIFIED.items() if s not in (0, 6))}")
    return common.closing(passed, failed, skipped)


if __name__ == "__main__":
    sys.exit(main())
