"""PyTorch's memory formats: rl_is_contiguous, rl_suggest_format, rl_to_format and rl_propagate against torch on random sizes and strides
(contiguous in any order of the axes, sliced, broadcast, entangled; sizes 0 and 1), for one to three operands.

Where torch can be imported it is asked, --count times; elsewhere what it answered before is (tests/golden/torch.json, which --record writes).
"""
import itertools
import json
import os
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "torch.json"
sys.path.insert(0, str(ROOT / "python"))


# ---------------------------------------------------------------------------------------------------- cases

def packed(shape, order):
    """Strides with the axes in this order, outermost first."""
    strides, step = [0] * len(shape), 1
    for a in reversed(order):
        strides[a] = step
        step *= max(shape[a], 1)
    return strides


def random_strides(r, shape):
    n = len(shape)
    order = r.choice([list(range(n)), [0, *range(2, n), 1] if n > 2 else list(range(n)), r.sample(range(n), n)])
    strides = packed([s + r.choice([0, 0, 0, 2]) if r.random() < 0.3 else s for s in shape], order)
    for a in range(n):
        if r.random() < 0.1:
            strides[a] = 0
        elif r.random() < 0.07:
            strides[a] = r.randint(1, 30)
        elif shape[a] == 1 and r.random() < 0.4:
            strides[a] = r.choice([1, strides[0], strides[-1], r.randint(1, 40)])
    return strides


def random_case(r):
    n = r.choice([0, 1, 2, 3, 4, 4, 4, 4, 5, 5])
    shape = [r.choice([1, 1, 2, 3, 4, 5]) if r.random() > 0.03 else 0 for _ in range(n)]
    operands = []
    for _ in range(r.choice([1, 1, 2, 2, 3])):
        own = [1 if operands and r.random() < 0.2 else s for s in shape]
        own = own[r.randint(0, n):] if operands and r.random() < 0.2 else own
        operands.append([own, random_strides(r, own)])
    if len(operands) > 1 and r.random() < 0.4:
        operands[1] = [list(x) for x in operands[0]]
    r.shuffle(operands)
    return operands


# ---------------------------------------------------------------------------------------------------- torch's answers

def suggested(torch, x):
    """What suggest_memory_format says: the layout that nearest upsampling, which asks it, gives its output."""
    if x.dim() not in (4, 5) or 0 in x.shape:
        return None
    size = (2, 3) if x.dim() == 4 else (2, 3, 4)
    y = torch.nn.functional.interpolate(x, size=size, mode="nearest")
    last = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    marked = torch.empty(y.shape).contiguous(memory_format=last)
    is_last = y.stride() == torch.empty(y.shape, memory_format=last).stride() and y.stride() != torch.empty(y.shape).stride()
    assert is_last or y.stride() == torch.empty(y.shape).stride() or y.stride() == marked.stride()
    return ("channels_last" if x.dim() == 4 else "channels_last_3d") if is_last else "contiguous"


def ask(torch, operands):
    base = torch.zeros(20000)
    xs = [base.as_strided(*o) for o in operands]
    x = xs[0]
    formats = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last, "channels_last_3d": torch.channels_last_3d}
    rank = {"contiguous": x.dim(), "channels_last": 4, "channels_last_3d": 5}
    to = {}
    for name, f in formats.items():
        if rank[name] == x.dim():
            y = x.contiguous(memory_format=f)
            to[name] = [list(y.stride()), y is not x and y.data_ptr() != x.data_ptr() or (y.numel() == 0 and y is not x)]
    op = {1: lambda a: a.neg(), 2: lambda a, b: a + b, 3: lambda a, b, c: torch.addcmul(a, b, c)}[len(xs)]
    return {"is": {name: x.is_contiguous(memory_format=f) for name, f in formats.items()}, "to": to, "suggest": suggested(torch, x),
            "clone": list(x.clone().stride()), "result": list(op(*xs).stride())}


# ---------------------------------------------------------------------------------------------------- ours

def answer(rl, operands, want):
    xs = [rl.strided("f32", *o) for o in operands]
    x = xs[0]
    to = {}
    for name in want["to"]:
        y, copies = x.to_format(name)
        to[name] = [list(y.strides), copies]
    return {"is": {name: x.is_contiguous(name) for name in want["is"]}, "to": to, "suggest": x.suggested if want["suggest"] else None,
            "clone": list(x.to_format("preserve")[0].strides), "result": list(rl.propagate(*xs).strides)}


def compare(rl, cases):
    failed = 0
    for operands, want in cases:
        got = answer(rl, operands, want)
        if got != want:
            failed += 1
            if failed <= 5:
                print(f"{operands}\n  torch {want}\n  ours  {got}")
    return failed


def main():
    import argparse
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--count", type=int, default=5000)
    p.add_argument("--record", action="store_true", help="write what torch answers on the first 400 cases")
    args = p.parse_args()
    os.environ.setdefault("RELAYOUT_LIBRARY", str(args.build.resolve() / "librelayout.so"))
    import relayout_layouts as rl
    try:
        import torch
    except ImportError:
        torch = None
    if torch:
        r = random.Random(1)
        cases = [(c, ask(torch, c)) for c in itertools.islice(iter(lambda: random_case(r), None), args.count)]
        if args.record:
            text = ",\n".join(json.dumps(c) for c in cases[:400])
            GOLDEN.write_text(f'{{"torch": "{torch.__version__}", "cases": [\n{text}\n]}}\n')
        source = f"torch {torch.__version__}"
    else:
        golden = json.loads(GOLDEN.read_text())
        cases, source = golden["cases"], f"recorded from torch {golden['torch']}"
    failed = compare(rl, cases)
    print(f"{len(cases)} cases, {source}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
