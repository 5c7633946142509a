#!/usr/bin/env python3
"""Shape inference against onnx.shape_inference and against what the models really compute.

  test_shape.py [--list] [NAME ...]     the ONNX backend suite, its light models, and the models of shared/zoo

Every model is inferred without its value_info and without its outputs' shapes, in up to five forms:
  plain      as it is
  const      small inputs but the first become initializers
  symbols    the same, and every dim of the inputs left is a symbol
  shared     the same, and equal sizes are one symbol; zoo: only dim 0 of the inputs
  folded     all inputs become initializers, so that small outputs are computed
Asserted of each: no model is refused; where onnx infers a dtype, a rank or a number, so do we, the same; a number, or an
expression evaluated with the inputs' real sizes, is the size that the suite expects (zoo: that form plain has); contents
and folded constants are the expected values, bit for bit.  --list names what we and onnx leave unknown.
"""
import collections
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

import common
import test_backend

SMALL = 64
MODEL_TIME = 0.05  # seconds that inferring the largest model may take

ATTENTION = {"Y", "qk_matmul_output"}
# Where onnx is wrong (STFT: onesided is 1 by default) or sees what we do not (an optional input's type).
EXCUSED = {("test_stft", "output"), ("test_stft_with_window", "output"), ("test_optional_get_element_optional_tensor", "output")}


# ------------------------------------------------------------------------------------------------------------- the models

def strip_types(model):
    """A copy without value_info and without the outputs' shapes; tensors keep their dtype.  Up to IR version 3 every
    initializer had to be an input too: those go, so that they are constants."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    del m.graph.value_info[:]
    known = {t.name for t in m.graph.initializer}
    if m.ir_version < 4:
        m.ir_version = 4
        for i in reversed(range(len(m.graph.input))):
            if m.graph.input[i].name in known:
                del m.graph.input[i]
    for o in m.graph.output:
        if o.type.HasField("tensor_type"):
            o.type.tensor_type.ClearField("shape")
    return m


def with_constants(model, arrays, first):
    """Inputs from `first` on whose arrays are small become initializers; None when there are none."""
    m = strip_types(model)
    gone = []
    known = {t.name for t in m.graph.initializer}
    for i, (info, a) in enumerate(zip(model.graph.input, arrays)):
        if i < first or not isinstance(a, np.ndarray) or a.size > SMALL or info.name in known:
            continue
        t = info.type.tensor_type.elem_type
        if not info.type.HasField("tensor_type") or (a.dtype == object and t != TensorProto.STRING):
            continue
        try:
            tensor = numpy_helper.from_array(a, info.name)
        except Exception:
            continue
        if tensor.data_type != t:
            continue
        m.graph.initializer.append(tensor)
        gone.append(i)
    for i in reversed(gone):
        del m.graph.input[i]
    return m if gone else None


def with_symbols(model, name):
    """Dim k of input i, of size n, becomes the symbol name(i, k, n); {symbol: size}."""
    m = strip_types(model)
    known = {t.name for t in m.graph.initializer}
    sizes = {}
    for i, info in enumerate(m.graph.input):
        if not info.type.HasField("tensor_type") or info.name in known:
            continue
        for k, d in enumerate(info.type.tensor_type.shape.dim):
            symbol = name(i, k, d.dim_value) if d.dim_value else None
            if symbol:
                sizes[symbol] = d.dim_value
                d.dim_param = symbol
    return m, sizes


Form = collections.namedtuple("Form", "name form model sizes expected")


def arrays_of(model, sets):
    """The first data set: input arrays, {output name: array}."""
    if not sets:
        return [], {}
    given, want = sets[0]
    return list(given), {o.name: w for o, w in zip(model.graph.output, want) if isinstance(w, np.ndarray)}


def backend_forms(select):
    test_backend.load_cases()
    for name, kind, case in test_backend.CASES:
        if select and not any(s in name for s in select):
            continue
        if kind == "light":
            yield Form(name, "plain", strip_types(onnx.load(case)), {}, {})
            continue
        model, _ = test_backend.model_of(case)
        if not 7 <= max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")], default=0) <= 28:
            continue
        given, want = arrays_of(model, test_backend.data_of(case, model))
        yield Form(name, "plain", strip_types(model), {}, want)
        const = with_constants(model, given, 1) or strip_types(model)
        if len(const.graph.input) < len(model.graph.input):
            yield Form(name, "const", const, {}, want)
        symbols, sizes = with_symbols(const, lambda i, k, n: f"d{i}_{k}")
        if sizes:
            yield Form(name, "symbols", symbols, sizes, want)
            yield Form(name, "shared", *with_symbols(const, lambda i, k, n: f"s{n}" if n > 1 else None), want)
        folded = with_constants(model, given, 0)
        if folded and not folded.graph.input:
            yield Form(name, "folded", folded, {}, want)


def tensors_of(graph):
    yield from graph.initializer
    for n in graph.node:
        for a in n.attribute:
            if a.type == a.TENSOR:
                yield a.t
            elif a.type == a.GRAPH:
                yield from tensors_of(a.g)


def zoo_forms(select, tmp):
    """The weights are zeros, all the same ones in a sparse file: shapes do not need them."""
    longest = 1
    for path in sorted((common.SHARED / "zoo").glob("*.onnx")):
        if select and not any(s in path.stem for s in select):
            continue
        model = onnx.load(path, load_external_data=False)
        for t in tensors_of(model.graph):
            if t.data_location != TensorProto.EXTERNAL:
                continue
            n = int(np.prod(t.dims)) * helper.tensor_dtype_to_np_dtype(t.data_type).itemsize
            longest = max(longest, n)
            del t.external_data[:]
            for k, v in ("location", "zeros.bin"), ("length", str(n)):
                e = t.external_data.add()
                e.key, e.value = k, v
        with open(tmp / "zeros.bin", "wb") as f:
            f.truncate(longest)
        yield Form(path.stem, "plain", strip_types(model), {}, {})
        yield Form(path.stem, "shared", *with_symbols(model, lambda i, k, n: "N" if k == 0 else None), {})


# ------------------------------------------------------------------------------------------------------------ what is known

def dump(program, paths):
    import json
    text = "".join(f"{p}\n" for p in paths)
    out = subprocess.run([program], input=text, capture_output=True, text=True)
    lines = out.stdout.splitlines()
    if out.returncode or len(lines) != len(paths):
        sys.exit(f"shape_dump ended with status {out.returncode} after {len(lines)} of {len(paths)} models\n{out.stderr[-3000:]}")
    return [json.loads(s) for s in lines]


def onnx_types(model):
    """{name: (dtype, dims or None)} of the main graph's values, dims numbers, names, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            m = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        except Exception:
            try:
                m = shape_inference.infer_shapes(model, data_prop=True)
            except Exception:
                return {}
    types = {}
    for v in list(m.graph.value_info) + list(m.graph.output):
        if not v.type.HasField("tensor_type"):
            continue
        t = v.type.tensor_type
        dims = None
        if t.HasField("shape"):
            dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in t.shape.dim]
        types[v.name] = (t.elem_type, dims)
    return types


def evaluate(expr, sizes):
    """The number that the expression is, or None where it has unknown parts."""
    if not isinstance(expr, str):
        return expr
    if "?" in expr or "'" in expr:
        return None
    return eval(re.sub(r"floor\(", "(", expr.replace("/", "//")), {}, dict(sizes))


# --------------------------------------------------------------------------------------------------------------- comparing

class Tally(collections.Counter):
    def __init__(self, listing):
        super().__init__()
        self.listing, self.failures = listing, []

    def fail(self, form, text):
        self.failures.append(f"{form.name} ({form.form}): {text}")

    def note(self, form, text):
        if self.listing:
            print(f"  {form.name} ({form.form}): {text}")


def compare_onnx(form, ours, tally):
    opaque = {o for n in form.model.graph.node if n.domain not in ("", "ai.onnx") for o in n.output}
    for name, (dtype, dims) in onnx_types(form.model).items():
        mine = ours.get(name)
        if mine is None or name in opaque or (form.name.split("_expanded")[0], name) in EXCUSED:
            tally["not compared"] += 1
            continue
        what = f"{name}: {mine['dtype']} {mine['dims']}, onnx {dtype} {dims}"
        if dtype and mine["dtype"] != dtype:
            tally.fail(form, "dtype of " + what)
            continue
        if dims is None:
            tally["better" if mine["dims"] is not None else "unknown to both"] += 1
            if mine["dims"] is None:
                tally.note(form, f"{name} is not ranked")
            continue
        if mine["dims"] is None or len(mine["dims"]) != len(dims):
            tally.fail(form, "rank of " + what)
            continue
        zero = 0 if form.sizes and name in ATTENTION else None  # onnx computes with symbols as if they were 0
        worse = [a for a, b in zip(mine["dims"], dims) if isinstance(b, int) and a != b and b != zero]
        if worse:
            tally.fail(form, "dims of " + what)
        elif any(isinstance(a, int) and not isinstance(b, int) for a, b in zip(mine["dims"], dims)):
            tally["better"] += 1
        else:
            tally["agree"] += 1
        if any(isinstance(a, str) and "?" in a for a in mine["dims"]):
            tally["with unknown dims"] += 1
            tally.note(form, what)


def compare_array(form, name, v, array, tally):
    if v["dims"] is None:
        return
    got = [evaluate(d, form.sizes) for d in v["dims"]]
    if len(got) != array.ndim or any(g is not None and g != n for g, n in zip(got, array.shape)):
        tally.fail(form, f"{name}: inferred {v['dims']} = {got}, really {list(array.shape)}")
        return
    tally["sizes right"] += 1
    if v["data"] is not None and array.dtype != object:
        data = bytes.fromhex(v["data"])
        tally["constants"] += 1
        if np.asarray(array, order="C").tobytes() != data:
            tally.fail(form, f"{name}: folded to {np.frombuffer(data, array.dtype) if len(data) == array.nbytes else data}, really {array}")
    for e, a in zip(v["elem"] or [], array.ravel().tolist() if v["elem"] else []):
        e = evaluate(e, form.sizes)
        tally["elements"] += e is not None
        if e is not None and e != a:
            tally.fail(form, f"{name}: contents {v['elem']}, really {array.ravel().tolist()}")
            break


def compare_sizes(form, ours, static, tally):
    """A model with a symbol in place of a size against the same with the number."""
    for name, v in ours.items():
        dims = static.get(name, {}).get("dims")
        if v["dims"] is None or dims is None:
            continue
        got = [evaluate(d, form.sizes) for d in v["dims"]]
        unknown = any(g is None for g in got)
        tally["symbolic, not known" if unknown else "symbolic, right"] += 1
        if unknown:
            tally.note(form, f"{name}: {v['dims']}, really {dims}")
        if len(dims) != len(got) or any(isinstance(d, int) and g is not None and g != d for g, d in zip(got, dims)):
            tally.fail(form, f"{name}: inferred {v['dims']} = {got}, without symbols {dims}")


def compare(form, result, tally):
    if result["status"]:
        tally.fail(form, f"refused: {result['error']}")
        return
    tally["models"] += 1
    ours = {v["name"]: v for v in result["values"] if v["graph"] == 0}
    compare_onnx(form, ours, tally)
    for name, array in form.expected.items():
        if name in ours:
            compare_array(form, name, ours[name], array, tally)


def batches(forms, size=400):
    batch = []
    for f in forms:
        batch.append(f)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--dump", type=Path, help="the program (default: BUILD/tests/shape_dump)")
    p.add_argument("--list", action="store_true", help="name what is left unknown")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    program = (args.dump or args.build / "tests" / "shape_dump").resolve()
    tally, slowest, plain = Tally(args.list), (0, ""), ("", {})

    def everything(tmp):
        yield from backend_forms(args.names)
        yield from zoo_forms(args.names, tmp)

    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        tmp = Path(tmp)
        for batch in batches(everything(tmp)):
            paths = []
            for i, f in enumerate(batch):
                paths.append(tmp / f"{i}.onnx")
                paths[-1].write_bytes(f.model.SerializeToString())
            for f, r in zip(batch, dump(program, paths)):
                compare(f, r, tally)
                ours = {v["name"]: v for v in r["values"] if v["graph"] == 0}
                if f.form == "plain":
                    plain = f.name, ours
                elif f.form == "shared" and plain[0] == f.name:
                    compare_sizes(f, ours, plain[1], tally)
                slowest = max(slowest, (r["seconds"], f.name))
    for f in tally.failures:
        print(f)
    print(", ".join(f"{v} {k}" for k, v in sorted(tally.items())) + f"; slowest {slowest[1]} {slowest[0] * 1e3:.1f} ms")
    return common.closing(tally["models"], len(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
