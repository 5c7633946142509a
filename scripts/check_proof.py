#!/usr/bin/env python3
"""Checks a certificate of `relayout optimize --proof` (docs/proof.md) without relayout's code: onnx and numpy only.

  check_proof.py PROOF IN OUT     exit status 0: it holds; 7: it does not, and why; 2: wrong use or a file that cannot be read
  check_proof.py PROOF PLANNED    the same for the certificate of a plan (relayout profile --proof; scripts/proof/plan.py)

Three questions, in this order: does the file hold together and prove its bound (also without models: --alone); is its problem that of
IN, rebuilt here from the model; has OUT the conversions that it claims. Where sizes are known to the program but not to
onnx's inference, what hangs on them cannot be rebuilt and the answer is 7, unless --trust-shapes takes the file's word for those.
"""
import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more of them only get into each other's way

from proof import Refused, bound, plan, text  # noqa: E402


def target_of(args):
    from proof.target import TABLE, Target
    return Target(args.targets or TABLE, args.target or (None if args.targets else "generic"))


def check_models(proof, args, say):
    """How many Transposes of the result may be outside of the claim."""
    from proof.compare import Pair
    pair = Pair(args.model, args.out, target_of(args))
    lost = pair.check(proof)
    some = lambda names: ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    if pair.kept:
        say(f"computed from constants, taken for variables as the file has them: {some(pair.kept)}")
    if lost and not args.trust_shapes:
        raise Refused(f"not rebuilt: {some(lost)}")
    if lost:
        say(f"not rebuilt, the file's word taken: {some(lost)}")
    return pair.outside(proof)


def check_plan(args):
    p = plan.read(args.proof)
    plan.check(p)
    if args.model:
        plan.check_model(p, args.model)
    return f"proved: {p.claim} ns, and no choice of layouts takes less by these costs"


def check(args, say):
    """The closing line; raises Refused."""
    if plan.is_one(args.proof):
        return check_plan(args)
    proof = text.read(args.proof)
    bound.check(proof)
    outside = check_models(proof, args, say) if args.model else sum(g.outside for g in proof.graphs)
    times = [g.time for g in proof.graphs]
    quickest = all(t and t.cost == t.bound and not any(p.price for p in t.parts) for t in times)
    return closing(proof) + (", in a time that none is below" if quickest else "") + (f"; Transposes outside of the claim: {outside}" if outside else "")


def closing(proof):
    """Of the main graph and of all functions, each once."""
    add = lambda tuples: tuple(map(sum, zip(*tuples)))
    (n, size), least = (add(getattr(g, name) for g in proof.graphs) for name in ("cost", "bound"))
    fewest, quick, left, takes, at_least = add(map(bound.shown, proof.graphs))
    many = f"{n} conversion{'' if n == 1 else 's'}"
    if (n, size) == least:
        return f"proved: {many}, {size} bytes, none fewer"
    if proof.bytes_first and size == least[1]:
        return f"proved: {size} bytes, none fewer; {many}, at least {least[0]}"
    if not proof.bytes_first and n == least[0]:
        return f"proved: {many}, none fewer; {size} bytes, at least {least[1]}"
    if quick and not left:
        return f"proved: {many}: {fewest} where none has fewer, {quick} where none that has no more is clearly quicker"
    times = f"; {takes} ns where {left} are open, proved: at least {at_least}" if takes else ""
    return f"gap: {many}, {size} bytes; proved: no fewer than {least[0]}, {least[1]} bytes{times}"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("proof", type=Path)
    p.add_argument("model", type=Path, nargs="?", help="the model that was optimized")
    p.add_argument("out", type=Path, nargs="?", help="the result")
    p.add_argument("--target", default=None, help="what OUT was written for (default: generic; of a file of targets the last one)")
    p.add_argument("--targets", type=Path, help="the table: a file of `relayout targets` or of your own (default: the program's)")
    p.add_argument("--alone", action="store_true", help="check the file, no models")
    p.add_argument("--trust-shapes", action="store_true", help="take the file's word for sizes that cannot be inferred here")
    args = p.parse_args()
    try:
        of_plan = plan.is_one(args.proof)
        if args.alone != (args.model is None) or (args.out is None) != (args.alone or of_plan):
            p.error("PROOF IN OUT, --alone PROOF, or the certificate of a plan and the model that has it")
        print(check(args, print))
        return 0
    except Refused as e:
        print(f"refused: {e}")
        return 7
    except OSError as e:
        print(f"{e.filename}: {e.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
