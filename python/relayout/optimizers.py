"""Other optimizers of ONNX models: which are installed, and what each makes of a model.  `relayout compare` runs this file.

    python optimizers.py MODEL FOLDER [--limit SECONDS] [--only ort_basic,onnxsim]

prints a line for each as it is done, fields of FIELDS between tabs; what is empty does not apply.
`seconds` is the optimizer alone, without its import; `model` is what it wrote to FOLDER, and empty where it has a form of its own
(OpenVINO), of which `transposes` are said here.  `outputs` ("same", "differ: ...", "not checked: ...") is what its own runtime says.  Each runs in a process of its
own, so that one that dies or takes too long is one line.  Needs nothing but what the optimizers need.
"""
import argparse
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import time

FIELDS = ("peer", "label", "version", "seconds", "model", "transposes", "outputs", "error")


def _random_inputs(ports):
    """name -> values for (name, sizes, NumPy type); sizes that are not known are 1."""
    import numpy as np
    random, inputs = np.random.default_rng(0), {}
    for name, sizes, kind in ports:
        sizes = [n if isinstance(n, int) else 1 for n in sizes]
        floats = np.issubdtype(kind, np.floating)
        inputs[name] = (random.standard_normal(sizes) if floats else random.integers(0, 2, sizes)).astype(kind)
    return inputs


def _agree(names, made, want):
    """What is said of outputs."""
    import numpy as np
    for name, x, y in zip(names, made, want):
        if not np.allclose(x, y, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(y).max(initial=0)))):
            return f"differ: {name}"
    return "same"


_ORT_TYPES = {"float": "f4", "double": "f8", "float16": "f2", "int64": "i8", "int32": "i4", "int8": "i1", "uint8": "u1", "bool": "?"}


def _ort(level):
    def run(path, out):
        import numpy as np
        import onnxruntime as ort
        ort.set_default_logger_severity(4)
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.optimized_model_filepath = out
        start = time.perf_counter()
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        result = {"model": out, "seconds": time.perf_counter() - start}
        try:  # for ops of onnxruntime's own that relayout cannot run
            inputs = _random_inputs((i.name, i.shape, np.dtype(_ORT_TYPES[i.type[7:-1]])) for i in session.get_inputs())
            result["outputs"] = _agree([o.name for o in session.get_outputs()], session.run(None, inputs), _reference(path, inputs))
        except Exception as e:  # a size of 1 may not fit: then nothing is said
            result["outputs"] = f"not checked: {type(e).__name__}"
        return result
    return run


def _onnxsim(path, out):
    import onnx
    import onnxsim
    start = time.perf_counter()
    model, ok = onnxsim.simplify(path)
    seconds = time.perf_counter() - start
    if not ok:
        raise RuntimeError("its own check of the result failed")
    onnx.save(model, out)
    return {"model": out, "seconds": seconds}


def _onnxslim(path, out):
    import onnx
    import onnxslim
    start = time.perf_counter()
    model = onnxslim.slim(path)
    seconds = time.perf_counter() - start
    onnx.save(model, out)
    return {"model": out, "seconds": seconds}


def _onnxoptimizer(path, out):
    import onnx
    import onnxoptimizer
    model = onnx.load(path)
    start = time.perf_counter()
    model = onnxoptimizer.optimize(model, onnxoptimizer.get_fuse_and_elimination_passes())
    seconds = time.perf_counter() - start
    onnx.save(model, out)
    return {"model": out, "seconds": seconds}


def _polygraphy(path, out):
    """What `polygraphy surgeon sanitize --fold-constants` does."""
    from polygraphy.backend.onnx import fold_constants, onnx_from_path, save_onnx
    start = time.perf_counter()
    model = fold_constants(onnx_from_path(path), error_ok=False)
    seconds = time.perf_counter() - start
    save_onnx(model, out)
    return {"model": out, "seconds": seconds}


def _reference(path, inputs):
    """What onnxruntime makes of the model as it is, its optimizations off; None where it is not installed."""
    try:
        import onnxruntime as ort
    except ImportError:
        return None
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, inputs)


def _openvino(path, out):
    import openvino as ov
    core = ov.Core()
    start = time.perf_counter()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    seconds = time.perf_counter() - start
    ops = [op.get_rt_info()["layerType"].astype(str) for op in compiled.get_runtime_model().get_ops()]
    result = {"seconds": seconds, "transposes": sum(t == "Transpose" for t in ops), "outputs": "not checked: no onnxruntime to compare with"}
    inputs = _random_inputs((p.get_any_name(), [d.get_length() if d.is_static else None for d in p.get_partial_shape()], p.get_element_type().to_dtype())
                            for p in compiled.inputs)
    want = _reference(path, inputs)
    if want is not None:
        made = compiled(inputs)
        result["outputs"] = _agree([p.get_any_name() for p in compiled.outputs], [made[p] for p in compiled.outputs], want)
    return result


#: name -> (what people call it, the package, what runs it)
PEERS = {"ort_basic": ("onnxruntime basic", "onnxruntime", _ort("ORT_ENABLE_BASIC")),
         "ort_ext": ("onnxruntime extended", "onnxruntime", _ort("ORT_ENABLE_EXTENDED")),
         "onnxsim": ("onnxsim", "onnxsim", _onnxsim),
         "onnxslim": ("onnxslim", "onnxslim", _onnxslim),
         "onnxopt": ("onnxoptimizer", "onnxoptimizer", _onnxoptimizer),
         "polygraphy": ("polygraphy", "polygraphy", _polygraphy),
         "openvino": ("OpenVINO", "openvino", _openvino)}


def _one(name, path, folder):
    """In the peer's process: the result as the last line of stdout."""
    _, package, run = PEERS[name]
    try:
        importlib.import_module(package)
    except ImportError as e:
        result = {"error": "not installed" if e.name == package else f"cannot be imported: {e}"}
    else:
        try:
            result = run(path, os.path.join(folder, name + ".onnx"))
        except Exception as e:  # whatever a peer raises is its answer
            lines = str(e).strip().splitlines()
            result = {"error": f"{type(e).__name__}: {lines[0] if lines else ''}"}
        try:
            result["version"] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    print("\n" + json.dumps(result), flush=True)


def run_peer(name, path, folder, limit):
    """What peer `name` makes of the model, as a dict."""
    row = {"peer": name, "label": PEERS[name][0]}
    try:
        p = subprocess.run([sys.executable, os.path.abspath(__file__), path, folder, "--one", name], capture_output=True, text=True, errors="replace",
                           timeout=limit, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return {**row, "error": f"no end after {limit:g} s"}
    lines = p.stdout.strip().splitlines()
    try:
        return {**row, **json.loads(lines[-1])}
    except (IndexError, ValueError):
        return {**row, "error": f"its process ended with {p.returncode}"}


def _line(row):
    return "\t".join(" ".join(str(row.get(f, "")).split()) for f in FIELDS)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("model")
    p.add_argument("folder")
    p.add_argument("--limit", type=float, default=120.0, help="seconds for each")
    p.add_argument("--only", help="names, separated by commas")
    p.add_argument("--one", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.one:
        return _one(args.one, args.model, args.folder)
    names = args.only.split(",") if args.only else list(PEERS)
    for name in names:
        if name not in PEERS:
            row = {"peer": name, "label": name, "error": f"no such optimizer; there are {', '.join(PEERS)}"}
        else:
            row = run_peer(name, args.model, args.folder, args.limit)
        print(_line(row), flush=True)


if __name__ == "__main__":
    main()
