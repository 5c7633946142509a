#!/usr/bin/env python3
"""The ONNX backend suite run by `relayout run`: node, simple, pytorch-converted, pytorch-operator (2,024 cases in onnx 1.23) and the
9 light models, compared with the suite's outputs by the suite's own comparison and tolerances.

  test_backend_run.py                       all of it
  test_backend_run.py softmax reshape       cases whose name contains one of these
  test_backend_run.py --at-least 1000       fails when fewer pass
  test_backend_run.py --kernels reference   without oneDNN
  test_backend_run.py --joined              each output behind another tensor in a Concat, so that kernels write to where they do not begin

A case that is not supported must be refused with status 5 before anything runs; any other failure is listed by name. Prints how many
fail for each op or reason.
"""
import collections
import re
import sys
import warnings

import common
import test_backend

sys.path.insert(0, str(common.ROOT / "python"))
from relayout_backend import Refused, RelayoutBackend

RANDOM = {f"test_bernoulli{x}" for x in ("", "_double", "_seed", "_expanded", "_double_expanded", "_seed_expanded")}
TIME = 120  # seconds for one case


def same(expected, got, rtol, atol):
    """The suite's comparison; sequences item by item, since its own walk over them cannot take items without dims."""
    from onnx.backend.test.runner import Runner
    for a, b in zip(expected, got):
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            same(a, b, rtol, atol)
        else:
            Runner.assert_similar_outputs([a], [b], rtol, atol)
    assert len(expected) == len(got)


def same_kind(expected, got):
    """Types and shapes, where the suite's values are one draw of many."""
    for a, b in zip(expected, got):
        assert a.dtype == b.dtype and a.shape == b.shape and set(b.flatten()) <= {0, 1}
    assert len(expected) == len(got)


def joined(model, expected):
    """The model with each output behind a tensor like it, and the outputs of that. Scalars and sequences stay as they are."""
    import numpy as np
    import onnx
    m, expected, made = onnx.ModelProto.FromString(model.SerializeToString()), list(expected), {o for n in model.graph.node for o in n.output}
    if "" not in {o.domain for o in m.opset_import}:
        m.opset_import.append(onnx.helper.make_opsetid("", 13))
    for k, (o, y) in enumerate(zip(m.graph.output, expected)):
        if o.name not in made or not isinstance(y, np.ndarray) or y.ndim == 0 or y.size == 0:
            continue
        before, after, dtype = f"before {o.name}", f"joined {o.name}", o.type.tensor_type.elem_type
        m.graph.initializer.append(onnx.numpy_helper.from_array(y, before))
        m.graph.node.append(onnx.helper.make_node("Concat", [before, o.name], [after], axis=0))
        o.CopyFrom(onnx.helper.make_tensor_value_info(after, dtype, (2 * y.shape[0], *y.shape[1:])))
        expected[k] = np.concatenate([y, y])
    return m, expected


def run(i):
    """(name, kind, "" or what is wrong, refused)"""
    from onnx.backend.test.runner import Runner
    import numpy as np
    name, kind, case = test_backend.CASES[i]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if kind == "light":
                import onnx
                model = onnx.load(case)
                inputs = common.random_inputs(model, seed=1)
                got = RelayoutBackend.prepare(model, program=PROGRAM, path=case, options=OPTIONS).run(inputs)
                Runner.assert_similar_outputs(common.run_ort(case, inputs), got, 1e-3, 1e-4)
                return name, kind, "", False
            model, data = test_backend.model_of(case)
            prepared = RelayoutBackend.prepare(model, program=PROGRAM, limit=TIME, options=OPTIONS)
            for given, expected in test_backend.data_of(case, model):
                if JOINED:
                    with_concats, expected = joined(model, expected)
                    prepared = RelayoutBackend.prepare(with_concats, program=PROGRAM, limit=TIME, options=OPTIONS)
                if name in RANDOM:
                    same_kind(expected, prepared.run(given))
                    return name, "random", "", False
                same(expected, prepared.run(given), case.rtol, case.atol)
    except Refused as e:
        return name, kind, str(e), True
    except Exception as e:
        lines = [s.strip() for s in str(e).splitlines() if s.strip()]
        return name, kind, f"{type(e).__name__}: {' '.join(lines[:4])[:160]}", False
    return name, kind, "", False


def reason(message):
    """The op of a refusal: "no cpu kernel for Foo-13" -> "Foo"; else the message without the node's name."""
    m = re.search(r"no cpu kernel for ([\w.:]+)-\d+", message)
    if m:
        return m.group(1)
    m = re.search(r"\((\w+)\): (.*)", message)
    return f"{m.group(1)}: {m.group(2)}" if m else message


# Cases that differ, and why; any other difference fails.
DIFFER = {
    "test_attention_4d_causal_fp16": "on a device, whose weights are float16, one step of float16 in four elements",
    "test_attention_4d_causal_fp16_expanded": "one step of float16 in two elements: 1.04e-3, where 1e-3 is allowed",
    "test_dft_inverse": "the rounding noise of NumPy's float32 is expected, 1.9e-7, where this gives 3e-15",
    "test_dft_inverse_opset19": "the same",
}


def main():
    global PROGRAM, OPTIONS, JOINED
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("names", nargs="*")
    p.add_argument("--kernels", choices=common.KERNELS, default="fast")
    p.add_argument("--fraction", type=float, default=1.0, help="a part of the suite, chosen by --seed")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--at-least", type=int, default=0, help="fail when fewer cases pass")
    p.add_argument("--device", help="of relayout run: cuda")
    p.add_argument("--joined", action="store_true", help="each output behind another tensor in a Concat")
    args = p.parse_args()
    JOINED = args.joined
    PROGRAM = common.program(args)
    OPTIONS = ("--device", args.device) if args.device else ("--kernels", args.kernels)
    if not args.device and args.kernels == "fast":
        common.need_onednn(PROGRAM)
    test_backend.load_cases()
    chosen = test_backend.choose(args)
    refused, wrong, npass, light, ndraw = collections.Counter(), [], 0, 0, 0
    for name, kind, message, is_refused in common.pooled(run, chosen, args.jobs, 8):
        npass += not message and kind not in ("light", "random")
        ndraw += not message and kind == "random"
        light += not message and kind == "light"
        if is_refused:
            refused[reason(message)] += 1
        elif message:
            wrong.append(f"{kind} {name}: {message}")
    print("\n".join(sorted(wrong)))
    for what, n in sorted(refused.items(), key=lambda x: (-x[1], x[0])):
        print(f"refused {n:4d}  {what}")
    known = [w for w in wrong if w.split(":")[0].split()[1] in DIFFER]
    print(f"{ndraw} draw at random: their types and shapes are the suite's")
    print(f"{light} light models pass; {sum(refused.values())} refused, {len(wrong)} wrong")
    for w in known:
        print(f"differs  {w.split(':')[0]}: {DIFFER[w.split(':')[0].split()[1]]}")
    few = npass < args.at_least
    if few:
        print(f"{npass} cases pass, {args.at_least} did")
    return common.closing(npass, len(wrong) - len(known) + few, sum(refused.values()) + len(known))


if __name__ == "__main__":
    sys.exit(main())
