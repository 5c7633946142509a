"""What the Python tests and benchmarks share: running relayout, running models, comparing outputs, looking into models.

Nothing here uses relayout's own code: shapes come from onnx.shape_inference, numbers from onnxruntime (its optimizations
off) or, where onnxruntime does not know an op or a type, from the onnx reference evaluator.
"""
import argparse
import dataclasses
import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("RELAYOUT_SHARED", ROOT.parent / "shared"))  # sample models that are no part of the project; tests that use them skip without


# ---------------------------------------------------------------------------------------------------- running relayout

def arguments(description):
    """An argument parser with the options that every test has."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--build", type=Path, default=ROOT / "build", help="build folder (default: build)")
    p.add_argument("--relayout", type=Path, help="the program (default: BUILD/relayout)")
    p.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes (default: 2)")
    return p


def program(args):
    """The absolute path of the relayout program; ends the test when there is none."""
    path = (args.relayout or args.build / "relayout").resolve()
    if not os.access(path, os.X_OK):
        sys.exit(f"{path}: no such program; build it first (scripts/test.sh does)")
    return str(path)


@dataclasses.dataclass
class Run:
    status: int      # exit status; negative: killed by that signal; 124: it took longer than the limit
    seconds: float
    message: str     # the last line on stderr

    @property
    def text(self):
        return f"status {self.status}" + (f": {self.message}" if self.message else "")


def relayout(prog, *args, limit=120):
    t = time.perf_counter()
    try:
        p = subprocess.run([prog, *map(str, args)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=limit)
    except subprocess.TimeoutExpired:
        return Run(124, time.perf_counter() - t, f"no end after {limit} s")
    seconds = time.perf_counter() - t
    lines = p.stderr.decode(errors="replace").strip().splitlines()
    bad = next((s for s in lines if "ERROR: AddressSanitizer" in s or "runtime error:" in s), "")
    return Run(p.returncode, seconds, bad or (lines[-1] if lines else ""))


KERNELS = ("fast", "reference")


def has_onednn(prog):
    """Does `relayout run` have its fast kernels here?"""
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "relu.rlt"
        path.write_text("graph g {\n  in %x f32[4]\n  %y = Relu(%x)\n  out %y\n}\n")
        return bench(prog, path)["kernels"] == "fast"


def need_onednn(prog):
    """Ends a test that says nothing without it."""
    if not has_onednn(prog):
        print("skipped: there is no oneDNN")
        sys.exit(closing(0, 0, 1))


def bench(prog, path, limit=120):
    """What `relayout bench` says of one run, as its JSON has it."""
    p = subprocess.run([prog, "bench", path, "--runs", "1", "--json", "-"], capture_output=True, text=True, timeout=limit)
    if p.returncode:
        raise Differ(p.stderr.strip()[-300:] or f"{path}: status {p.returncode}")
    return json.loads(p.stdout)


def optimize(prog, src, dst, target, *more, limit=120):
    """target: a name, or NAME:OBJECTIVE."""
    name, _, objective = target.partition(":")
    more = (*more, "--objective", objective) if objective else more
    return relayout(prog, "optimize", src, "-o", dst, "--target", name, *more, limit=limit)


WHOLE = """TARGET( whole, "as onnx, where constant matrices stay whole" )
LIKE( whole, onnx )
FORM( whole, PARTED_MATMUL, "f64" )
"""


def whole(tmp):
    """The file of a target that has no float32 in parts: of models whose proofs want what only more conversions have."""
    path = Path(tmp) / "whole.def"
    path.write_text(WHOLE)
    return str(path)


def every_target():
    """Each target of the table with each objective, as optimize takes them."""
    names = re.findall(r"^TARGET\(\s*([^\s,]+)", (ROOT / "src" / "targets.def").read_text(), flags=re.M)
    return [f"{name}:{objective}" for name in names for objective in ("nodes", "bytes", "time")]


def forked(fn, jobs, processes, limit=600):
    """Yields (job, fn(job), "") as they are done, from so many processes; (job, None, why) where the process died (onnxruntime may take it
    with it), took more than limit seconds, or raised."""
    context = multiprocessing.get_context("fork")

    def work(pipe):
        while True:
            try:
                job = pipe.recv()
            except EOFError:
                return
            try:
                answer = fn(job), ""
            except Exception as e:
                answer = None, f"{type(e).__name__}: {e!s:.300}"
            pipe.send(answer)

    def start():
        ours, theirs = context.Pipe()
        p = context.Process(target=work, args=(theirs,), daemon=True)
        p.start()
        theirs.close()
        return p, ours

    todo, busy, idle = iter(jobs), {}, [start() for _ in range(max(1, processes))]
    while True:
        while idle and (job := next(todo, None)) is not None:
            p, pipe = idle.pop()
            pipe.send(job)
            busy[pipe] = p, job, time.time()
        if not busy:
            break
        ready = wait(list(busy), timeout=1)
        for pipe in [c for c in busy if c in ready or time.time() - busy[c][2] > limit]:
            p, job, _ = busy.pop(pipe)
            try:
                if pipe not in ready:
                    raise TimeoutError
                result, why = pipe.recv()
                idle.append((p, pipe))
            except (EOFError, ConnectionError, TimeoutError) as e:
                if isinstance(e, TimeoutError):
                    p.kill()
                p.join()
                pipe.close()
                result, why = None, f"no end after {limit} s" if isinstance(e, TimeoutError) else f"the process died ({p.exitcode})"
                idle.append(start())
            yield job, result, why
    for p, _ in idle:
        p.terminate() # it waits for a job; later processes have its pipe too, so closing that would not end it
        p.join()


def progress(it, total, every=2.0):
    """Passes items on and, on a terminal, says how many are done."""
    last = time.time()
    for i, x in enumerate(it, 1):
        if sys.stderr.isatty() and time.time() - last > every:
            print(f"\r{i}/{total} ", end="", file=sys.stderr, flush=True)
            last = time.time()
        yield x
    if sys.stderr.isatty():
        print("\r         \r", end="", file=sys.stderr)


def pooled(fn, jobs, processes, chunk=1, ordered=False):
    """Yields fn(job) as they are done, or in the jobs' order, from so many processes that take so many jobs at once."""
    jobs = list(jobs)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        yield from progress((pool.imap if ordered else pool.imap_unordered)(fn, jobs, chunk), len(jobs))


def closing(npass, nfail, nskip=0):
    """The last line of every test; the exit status."""
    print(f"{npass} passed, {nfail} failed" + (f", {nskip} skipped" if nskip else ""))
    return 1 if nfail else 0


class Checks:
    """What a test asks one after the other: checks(what, holds), a line each."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def __call__(self, what, ok, why=""):
        self.passed += bool(ok)
        self.failed += not ok
        print(what, "ok" if ok else f"FAILED{why and ': '}{why}", flush=True)

    def skip(self, what, why):
        self.skipped += 1
        print(what, f"skipped: {why}")

    def closing(self):
        return closing(self.passed, self.failed, self.skipped)


# ---------------------------------------------------------------------------------------------------- running models

class Differ(Exception):
    """A model that cannot be run, or outputs that differ."""


def session(model, optimized=False, threads=1):
    """An onnxruntime session; model: a path or bytes."""
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    o = ort.SessionOptions()
    o.log_severity_level = 4
    if not optimized:
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = threads
    o.inter_op_num_threads = 1
    o.add_session_config_entry("session.intra_op.allow_spinning", "1" if optimized else "0")
    # Else the threads of one session still spin while the next one is timed.
    o.add_session_config_entry("session.force_spinning_stop", "1")
    return ort.InferenceSession(str(model) if isinstance(model, Path) else model, o, providers=["CPUExecutionProvider"])


def run_ort(model, inputs, threads=1, optimized=False):
    """Outputs by onnxruntime; inputs: a dict. What the model does not take is left out."""
    s = session(model, optimized, threads)
    names = {i.name for i in s.get_inputs()} | {i.name for i in s.get_overridable_initializers()}
    return s.run(None, {k: v for k, v in inputs.items() if k in names})


def run_reference(model, inputs):
    """Outputs by the reference evaluator."""
    import warnings
    from onnx.reference import ReferenceEvaluator
    if isinstance(model, (str, Path)):
        model = onnx.load(model)
    elif isinstance(model, bytes):
        model = onnx.load_from_string(model)
    names = {i.name for i in model.graph.input}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(model).run(None, {k: v for k, v in inputs.items() if k in names})


ENGINES = {"onnxruntime": run_ort, "reference": run_reference}


REFERENCE_ONLY = False  # set where onnxruntime took a process with it


def run(model, inputs):
    """Outputs and the engine that made them: onnxruntime where it can, else the reference evaluator."""
    try:
        if REFERENCE_ONLY:
            raise Differ("left out")
        return run_ort(model, inputs), "onnxruntime"
    except Exception as e:
        first = e
    try:
        return run_reference(model, inputs), "reference"
    except Exception as e:
        raise Differ(f"onnxruntime: {str(first).splitlines()[0][:200]}; reference: {e!r:.200}") from None


def model_inputs(model):
    """Graph inputs that the user must give: those without an initializer."""
    ini = {t.name for t in model.graph.initializer} | {t.values.name for t in model.graph.sparse_initializer}
    return [i for i in model.graph.input if i.name not in ini]


def random_inputs(model, seed=0, dims=None, integers=False, high=8):
    """Seeded inputs by name. dims: sizes of symbols (by name; "" is the default, 2), or of a whole input (a list, by its name).
    integers: whole floats from -4 to 4, so that sums are exact."""
    dims, out = dims or {}, {}
    for i in model_inputs(model):
        t = i.type.tensor_type
        if i.type.WhichOneof("value") != "tensor_type":
            raise Differ(f"input {i.name}: not a tensor")
        shape = dims.get(i.name)
        if not isinstance(shape, (list, tuple)):
            shape = [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else dims.get(d.dim_param, dims.get("", 2))
                     for d in t.shape.dim]
        r = np.random.default_rng([seed, *hashlib.sha256(i.name.encode()).digest()[:8]])
        out[i.name] = random_tensor(r, t.elem_type, shape, integers, high)
    return out


def random_tensor(r, dtype, shape, integers=False, high=8):
    np_type = helper.tensor_dtype_to_np_dtype(dtype)
    if dtype == TensorProto.STRING:
        return r.choice(np.array(["a", "b", "ab"], dtype=object), size=shape)
    if dtype == TensorProto.BOOL:
        return r.integers(0, 2, shape).astype(bool)
    if dtype in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return (r.integers(-4, 5, shape) + 1j * r.integers(-4, 5, shape)).astype(np_type)
    if np_type in (np.float32, np.float64, np.float16) or np_type.name.startswith(("bfloat", "float")):
        x = r.integers(-4, 5, shape) if integers else r.standard_normal(shape)
        return np.asarray(x).astype(np_type)
    return np.asarray(r.integers(0, high, shape)).astype(np_type)


# ---------------------------------------------------------------------------------------------------- comparing

@dataclasses.dataclass
class Diff:
    ok: bool = True
    worst: float = 0.0   # the largest |difference|
    ratio: float = 0.0   # the largest |difference| over what is allowed
    bitexact: bool = True
    why: str = ""        # the first difference, in words


def compare(want, got, exact=False):
    """Compares two lists of outputs. Floats: max |d| <= 1e-4 (max y - min y) + 1e-6 max |y| (wider for half precision),
    the same infinities and NaNs; everything else, and floats if exact: equal."""
    d = Diff()
    if len(want) != len(got):
        return Diff(False, np.inf, np.inf, False, f"{len(got)} outputs instead of {len(want)}")
    for i, (a, b) in enumerate(zip(want, got)):
        why = _compare_one(a, b, d, exact)
        if why and d.ok:
            d.ok, d.why = False, f"output {i}: {why}"
    return d


def _compare_one(a, b, d, exact):
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)) or a is None or b is None:
        if type(a) is not type(b) or (a is not None and len(a) != len(b)):
            d.bitexact = False
            return "another type or length"
        return next(filter(None, (_compare_one(x, y, d, exact) for x, y in zip(a or [], b or []))), "")
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        d.bitexact, d.worst, d.ratio = False, np.inf, np.inf
        return f"{b.dtype}{list(b.shape)} instead of {a.dtype}{list(a.shape)}"
    if a.dtype == object or a.size == 0:
        same = bool(np.all(a == b))
        d.bitexact &= same
        return "" if same else "other strings"
    if np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes():
        return ""
    d.bitexact = False
    if a.dtype.kind in "biu" or not (a.dtype.kind in "fc" or a.dtype.name.startswith(("bfloat", "float"))):
        n = int(np.sum(a != b))
        d.worst, d.ratio = np.inf, np.inf
        return f"{n} of {a.size} elements differ"
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    # Half precision: a reordered sum may round twice the other way.
    coarse = {"float16": 2.0 ** -9, "bfloat16": 2.0 ** -6}.get(a.dtype.name, 0.25 if a.dtype.itemsize == 1 else 0.0)
    a, b = a.astype(wide), b.astype(wide)
    fa, fb = np.isfinite(a), np.isfinite(b)
    if not np.array_equal(fa, fb) or not np.array_equal(a[~fa], b[~fb], equal_nan=True):
        d.worst, d.ratio = np.inf, np.inf
        return "NaN or infinity in other places"
    if not fa.any():
        return ""
    a, b = a[fa], b[fa]
    span = np.max(a.real) - np.min(a.real)
    allowed = 0.0 if exact else max(1e-4 * span + 1e-6 * np.max(np.abs(a)), coarse * np.max(np.abs(a)))
    worst = float(np.max(np.abs(a - b)))
    d.worst = max(d.worst, worst)
    d.ratio = max(d.ratio, worst / allowed if allowed else (np.inf if worst else 0.0))
    return f"max |d| {worst:.3g}, allowed {allowed:.3g}" if worst > allowed else ""


# ---------------------------------------------------------------------------------------------------- looking into models

def every_node(graph):
    """The nodes of a graph and of the bodies in it."""
    for n in graph.node:
        yield n
        for a in n.attribute:
            if a.type == AttributeProto.GRAPH:
                yield from every_node(a.g)


def light(model):
    """A copy without large weights, for shape inference (a model over 2 GB has no other way, and it is fast)."""
    def strip(g):
        for t in g.initializer:
            strip_tensor(t)
        for n in g.node:
            for a in n.attribute:
                if a.type == AttributeProto.TENSOR:
                    strip_tensor(a.t)
                for b in ([a.g] if a.type == AttributeProto.GRAPH else a.graphs):
                    strip(b)

    def strip_tensor(t):
        if int(np.prod(t.dims)) > 1024 and t.data_type != TensorProto.STRING and t.data_location != TensorProto.EXTERNAL:
            for f in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
                t.ClearField(f)

    m = onnx.ModelProto()
    m.CopyFrom(model)
    strip(m.graph)
    return m


def infer(model):
    """Shape inference that never fails: the model as it is where inference does."""
    try:
        return onnx.shape_inference.infer_shapes(light(model), data_prop=True)
    except Exception:
        return model


def shape_of(t):
    """Dims of a type: numbers, names, or None; None for an unknown rank."""
    if t.WhichOneof("value") != "tensor_type" or not t.tensor_type.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else (d.dim_param or None) for d in t.tensor_type.shape.dim]


def runtime_values(model, names, inputs):
    """Tensors of the main graph, by running it once with them as outputs. {} where onnxruntime cannot."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    made = {o for n in m.graph.node for o in n.output} | {i.name for i in m.graph.input}
    names = [n for n in dict.fromkeys(names) if n in made]
    have = {o.name for o in m.graph.output}
    for n in names:
        if n not in have:
            m.graph.output.add().name = n
    try:
        return dict(zip(names, session(m.SerializeToString()).run(names, inputs)))
    except Exception:
        return {}


# ---------------------------------------------------------------------------------------------------- the rest

def checker_error(path, full=False):
    """What onnx.checker says against a model file, in one line; "" if nothing."""
    try:
        onnx.checker.check_model(str(path), full_check=full)
        return ""
    except Exception as e:
        return (str(e).strip().splitlines() or [type(e).__name__])[0][:200]


def interface(model):
    """What must never change: names, order and types of inputs and outputs, IR version, opsets, metadata."""
    g = model.graph
    return (model.ir_version, sorted((o.domain, o.version) for o in model.opset_import),
            [i.SerializeToString() for i in g.input], [o.SerializeToString() for o in g.output],
            [(p.key, p.value) for p in model.metadata_props], model.producer_name, g.name, model.doc_string, g.doc_string)


def same_bytes(a, b):
    """Are two files equal? Block by block: hashes of both take ten times as long."""
    if Path(a).stat().st_size != Path(b).stat().st_size:
        return False
    with open(a, "rb") as f, open(b, "rb") as g:
        while block := f.read(1 << 20):
            if block != g.read(1 << 20):
                return False
    return True
