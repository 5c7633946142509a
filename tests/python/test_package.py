"""The Python package as pip installs it: run by tests/package.sh, in a clean environment (without onnx) and beside onnx.

  package/python tests/python/test_package.py --model before.onnx [--onnx]

--model: a model that the runtime runs (tests/unit/session.rlt), with input `image` f32[batch,4,4,2].  --onnx: what needs that package, too.
"""
import argparse
import ctypes
import filecmp
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing
from pathlib import Path

import numpy as np

import relayout

ROOT = Path(__file__).resolve().parents[2]
CNN = ROOT / "models" / "channels_last_cnn.onnx"
BUILT = ROOT / "build" / "relayout"


def raises(kind, f, *args, **kwargs):
    """The text of what f raises, which must be of this kind."""
    try:
        f(*args, **kwargs)
    except kind as e:
        return str(e)
    except Exception as e:
        raise AssertionError(f"{type(e).__name__} and not {kind.__name__}: {e}") from e
    raise AssertionError(f"no {kind.__name__}")


def same_but_time(a, b):
    """Reports of one model agree in all that does not depend on the run."""
    skip = ("timings", "peak_bytes", "output", "input")
    assert {k: v for k, v in a.items() if k not in skip} == {k: v for k, v in b.items() if k not in skip}


def test_optimize_bytes(model, tmp):
    data = CNN.read_bytes()
    out, report = relayout.optimize(data, target="onnx")
    assert isinstance(out, bytes) and out != data
    assert report["schema"] == "relayout.report/1" and report["changed"] and report["target"] == "onnx"
    assert report["conversions"]["before"] == 32 and report["conversions"]["after"] == 1 and report["conversions"]["proof"] == "optimal"
    again, report = relayout.optimize(out, target="onnx")
    assert again == out and not report["changed"]


def test_optimize_path(model, tmp):
    out, report = relayout.optimize(CNN)
    assert out == relayout.optimize(CNN.read_bytes())[0] and report["input"] == {"path": str(CNN), "bytes": CNN.stat().st_size}
    to = tmp / "out.onnx"
    where, written = relayout.optimize(str(CNN), to)
    assert where == to and to.read_bytes() == out and written["output"] == {"path": str(to), "bytes": len(out)}
    same_but_time(report, written)


def test_options(model, tmp):
    _, report = relayout.optimize(CNN, objective="bytes", dims={"batch": 2}, input_layouts={"image": "nhwc->nchw"})
    assert report["objective"] == "bytes" and report["interface"][0]["input"] == "image" and report["conversions"]["handed_to_caller"] == 1
    assert report["conversions"]["own_interface"]["after"] > report["conversions"]["after"]
    moved = lambda **sizes: relayout.optimize(model, **sizes)[1]["counts"]["before"]["moved_bytes"]
    assert moved(dims={"batch": 3}) == moved(input_shapes={"image": (3, 4, 4, 2)}) == 3 * moved(dims={"batch": 1}) > 0
    fixed, report = relayout.optimize(model, dims={"batch": 3})
    assert report["changed"] and relayout.Session(fixed).inputs[0].shape == (3, 4, 4, 2) and relayout.Session(fixed).outputs[0].shape[0] == 3
    assert relayout.optimize(fixed, input_shapes={"image": (3, 4, 4, 2)})[0] == fixed
    shape = lambda **sizes: relayout.Session(model, **sizes).inputs[0].shape
    assert shape() == (None, 4, 4, 2) and shape(dims={"batch": 3}) == shape(input_shapes={"image": [3, 4, 4, 2]}) == (3, 4, 4, 2)


def test_errors(model, tmp):
    assert "nothing" in raises(relayout.InvalidArgument, relayout.optimize, CNN, target="nothing")
    assert "speed" in raises(ValueError, relayout.optimize, CNN, objective="speed")
    assert "nodim" in raises(relayout.InvalidArgument, relayout.optimize, CNN, dims={"nodim": 1})
    raises(TypeError, relayout.optimize, CNN, dims={"batch": 1.5})
    assert "a dict" in raises(TypeError, relayout.optimize, CNN, dims="batch=1") and "a dict" in raises(TypeError, relayout.Session, CNN, input_shapes=["image=1"])
    for bad in (-1, float("nan"), float("inf")):
        assert "time_limit" in raises(relayout.InvalidArgument, relayout.optimize, CNN, time_limit=bad)
        assert "rtol" in raises(relayout.InvalidArgument, relayout.verify, CNN, CNN, rtol=bad)
        assert "atol" in raises(relayout.InvalidArgument, relayout.verify, CNN, CNN, atol=bad)
    assert "max_memory" in raises(relayout.InvalidArgument, relayout.stats, CNN, max_memory=-1)
    for bad in (0, -1, 1 << 32):
        assert "threads" in raises(relayout.InvalidArgument, relayout.Session, CNN, threads=bad)
    assert "null" in raises(ValueError, relayout.optimize, CNN, dims={"batch\0x": 1})
    raises(relayout.InvalidModel, relayout.optimize, b"no model")
    assert "x.onnx" in raises(OSError, relayout.optimize, tmp / "x.onnx")
    assert "x.onnx" in raises(OSError, relayout.optimize, tmp / "x.onnx", tmp / "y.onnx")
    assert "x.onnx" in raises(relayout.Error, relayout.stats, tmp / "x.onnx")
    raises(TypeError, relayout.optimize, 5)
    raises(TypeError, relayout.optimize, b"bytes", tmp / "y.onnx")
    assert "memory" in raises(relayout.Unsupported, relayout.optimize, CNN, max_memory=10000)
    try:
        relayout.optimize(CNN, target="nothing")
    except relayout.Error as e:
        assert e.status is relayout.Status.USAGE
    assert not (tmp / "y.onnx").exists()


def program(*args):
    p = subprocess.run([sys.executable, "-m", "relayout", *map(str, args)], capture_output=True, text=True)
    return p.returncode, p.stdout, p.stderr


def test_stats_and_explain(model, tmp):
    """The same JSON as the program's."""
    for name, f in (("stats", relayout.stats), ("explain", relayout.explain)):
        status, out, _ = program(name, CNN, "--target", "onnx", "--json", "-")
        assert status == 0 and json.loads(out) == f(CNN, target="onnx"), name
    assert relayout.stats(CNN)["needed"]["moving"] == 1
    conversion, = relayout.explain(CNN, target="onnx")["conversions"]
    assert relayout.explain(CNN, target="onnx", node=conversion["tensor"])["conversions"] == [conversion]
    assert "nobody" in raises(relayout.InvalidArgument, relayout.explain, CNN, node="nobody")


def test_program(model, tmp):
    """python -m relayout is the program: output, messages, status, files."""
    for args in (["--version"], ["--help"], ["optimize", "--help"], ["stats", CNN], ["optimize", "nothing.onnx", "-o", tmp / "n"], ["what"], []):
        want = subprocess.run([BUILT, *map(str, args)], capture_output=True, text=True)
        assert program(*args) == (want.returncode, want.stdout, want.stderr), args
    a, b = tmp / "a.onnx", tmp / "b.onnx"
    assert program("optimize", CNN, "-o", a)[0] == 0
    assert subprocess.run([BUILT, "optimize", CNN, "-o", b], capture_output=True).returncode == 0 and filecmp.cmp(a, b, shallow=False)
    assert a.read_bytes() == relayout.optimize(CNN)[0]
    script = Path(sys.executable).with_name("relayout")
    if script.exists():
        assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout == f"relayout {relayout.__version__}\n"


def expected(x):
    """What tests/unit/session.rlt computes."""
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    c = x @ np.array([[1, 2], [3, 4], [5, 6]], np.float32).T
    e = c * sigmoid(c)
    return sigmoid(e @ np.array([[1, -2, 3], [-4, 5, -6]], np.float32).T)


def check_bound(s, x):
    """A frame with gaps, and one picture for all, read where they are; outputs in arrays of the caller's; then as before."""
    frame, wide, last = np.full((3, 6, 5, 4), 9, np.float32), np.full((3, 4, 4, 5), 9, np.float32), np.empty((2, 3, 4, 4), np.float32)
    s.bind("image", frame[:, 1:5, 1:, ::2])
    for out in (wide[..., 2:4], last.transpose(1, 2, 3, 0), np.empty(x.shape, np.float32)):
        s.bind("probabilities", out)
        for sign in (1, -1):
            frame[:, 1:5, 1:, ::2] = sign * x
            assert s.run([])["probabilities"] is out
            np.testing.assert_allclose(out, expected(sign * x), rtol=1e-4, atol=1e-6)
    assert (np.delete(wide, (2, 3), 3) == 9).all()
    s.bind("image", np.broadcast_to(x[:1], x.shape))
    np.testing.assert_allclose(s.run({})["probabilities"], expected(np.broadcast_to(x[:1], x.shape)), rtol=1e-4, atol=1e-6)
    assert "twice" in raises(relayout.InvalidArgument, s.run, {"image": x})
    assert "without those that are bound" in raises(relayout.InvalidArgument, s.run, [x])
    assert "nobody" in raises(relayout.InvalidArgument, s.bind, "nobody", x)
    assert "float64" in raises(relayout.InvalidArgument, s.bind, "image", x.astype(np.float64))
    assert "not negative" in raises(relayout.InvalidArgument, s.bind, "image", x[::-1])
    assert "can be written" in raises(relayout.InvalidArgument, s.bind, "probabilities", np.broadcast_to(x[:1], x.shape))
    assert "rank" in raises(relayout.InvalidArgument, s.bind, "image", x[0])
    s.bind("probabilities", None)
    s.bind("image", None)


def test_session(model, tmp):
    made, _ = relayout.optimize(model, target="onnx")
    x = np.random.default_rng(0).standard_normal((3, 4, 4, 2)).astype(np.float32)
    for source in (model, made, Path(model)):
        s = relayout.Session(source, threads=2)
        assert s.inputs == [relayout.Port("image", np.dtype("f4"), (None, 4, 4, 2), 1)] and [p.name for p in s.outputs] == ["probabilities"]
        for given in ({"image": x}, [x]):
            y = s.run(given)["probabilities"]
            assert y.dtype == np.float32 and y.shape == x.shape and y.flags.writeable
            np.testing.assert_allclose(y, expected(x), rtol=1e-4, atol=1e-6)
    check_bound(s, x)
    again = np.asfortranarray(x)
    np.testing.assert_array_equal(s.run([again], ["probabilities"])[0], y)
    np.testing.assert_array_equal(s.run([x.tolist()])["probabilities"], y)
    assert "float64" in raises(relayout.InvalidArgument, s.run, [x.astype(np.float64)])
    assert "nobody" in raises(relayout.InvalidArgument, s.run, {"nobody": x})
    assert "nobody" in raises(relayout.InvalidArgument, s.run, [x], ["nobody"])
    assert "rank" in raises(relayout.InvalidArgument, s.run, [x[0]])
    assert "not given" in raises(relayout.InvalidArgument, s.run, {})
    np.testing.assert_array_equal(s.run([x])["probabilities"], y)
    assert "no cpu kernel" in raises(relayout.Unsupported, relayout.Session, broken_model(model))


def broken_model(model):
    """Sigmoid becomes an op that nobody has."""
    data = Path(model).read_bytes()
    assert data.count(b"Sigmoid") > 0
    return data.replace(b"Sigmoid", b"Sigmund")


def test_session_threads(model, tmp):
    """One session, and many, from several threads."""
    x = np.ones((1, 4, 4, 2), np.float32)
    shared, made, wrong = relayout.Session(model), [], []

    def work():
        try:
            own = relayout.Session(model)
            for _ in range(20):
                made.append(shared.run([x])["probabilities"])
                made.append(own.run([x])["probabilities"])
                relayout.optimize(model)
        except Exception as e:
            wrong.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and len(made) == 160 and all(np.array_equal(y, made[0]) for y in made)


def test_lock_is_released(model, tmp):
    """Python goes on in another thread while the library works."""
    reached, go = threading.Event(), threading.Event()

    def progress(step):
        reached.set()
        assert go.wait(20)

    t = threading.Thread(target=relayout.optimize, args=(CNN,), kwargs={"progress": progress})
    t.start()
    assert reached.wait(20)
    go.set()
    t.join(20)
    assert not t.is_alive()
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)

    sys.setswitchinterval(10)  # who holds the lock keeps it, unless it is given away
    t = threading.Thread(target=count)
    t.start()
    try:
        seen = counted[0]
        for _ in range(5):
            relayout.stats(CNN)
        assert counted[0] > seen
    finally:
        stop.set()
        t.join()
        sys.setswitchinterval(0.005)


def test_callbacks(model, tmp):
    steps, lines = [], []
    relayout.optimize(CNN, progress=steps.append, log=lambda level, text: lines.append((level, text)))
    assert steps[0] == "read" and steps[-1] == "write" and "assign" in steps and any(level == 0 and "assign" in text for level, text in lines)

    def fail(step):
        if step == "assign":
            raise KeyError("mine")

    assert "mine" in raises(KeyError, relayout.optimize, CNN, tmp / "n.onnx", progress=fail)
    assert not (tmp / "n.onnx").exists()
    assert relayout.optimize(CNN)[1]["changed"]


def test_interrupt(model, tmp):
    """Ctrl-C ends a call at the library's next question."""
    def progress(step):
        if step == "assign":
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs the tests may have it ignored
    raises(KeyboardInterrupt, relayout.optimize, CNN, tmp / "i.onnx", progress=progress)
    assert not (tmp / "i.onnx").exists()


def test_verify(model, tmp):
    made, _ = relayout.optimize(model, target="onnx")
    relayout.verify(model, made, runs=3, dims={"batch": 2})
    data = Path(model).read_bytes()
    numbers = np.array([1, 2, 3, 4, 5, 6], np.float32).tobytes()
    assert data.count(numbers) == 1
    other = data.replace(numbers, np.array([1, 2, 3, 4, 5, 7], np.float32).tobytes())
    assert "probabilities" in raises(relayout.Different, relayout.verify, model, other)


def test_documented(model, tmp):
    """Everything public has a docstring and types."""
    for name in relayout.__all__:
        x = getattr(relayout, name)
        assert inspect.getdoc(x), name
        if inspect.isfunction(x):
            hints = typing.get_type_hints(x)
            assert set(hints) == set(inspect.signature(x).parameters) | {"return"}, name
    assert (Path(relayout.__file__).parent / "py.typed").exists()


def test_alone(model, tmp):
    """Nothing but NumPy is imported, and the extension needs no library of ours or of protobuf's."""
    code = "import sys, relayout; print([m for m in ('onnx', 'google.protobuf') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    core = Path(relayout._core.__file__)
    assert core.name == "_core.abi3.so"
    if Path("/usr/lib/x86_64-linux-gnu/libprotobuf-c.a").exists():
        assert b"libprotobuf-c.so" not in core.read_bytes()
    assert not hasattr(ctypes.CDLL(str(core)), "rl_optimize_file")


# ---- beside onnx ----

def onnx_model(elem, shape, op="Identity", **attrs):
    import onnx
    from onnx import helper as h
    port = lambda name: h.make_tensor_value_info(name, elem, shape)
    return h.make_model(h.make_graph([h.make_node(op, ["x"], ["y"], **attrs)], "g", [port("x")], [port("y")]),
                        opset_imports=[h.make_opsetid("", 21)], ir_version=10)


def onnx_proto(model, tmp):
    import onnx
    proto = onnx.load(CNN)
    before = proto.SerializeToString()
    made, report = relayout.optimize(proto, target="onnx")
    assert isinstance(made, onnx.ModelProto) and made is not proto and proto.SerializeToString() == before
    onnx.checker.check_model(made)
    assert report["conversions"]["after"] == 1
    assert sum(n.op_type == "Transpose" for n in made.graph.node) == report["counts"]["after"]["transposes"]
    same, report = relayout.optimize(made, target="onnx")
    assert same is made and not report["changed"]


def onnx_external(model, tmp):
    """A ModelProto, and a path, whose weights lie in another file."""
    import onnx
    proto = onnx.load(CNN)
    folder = tmp / "external"
    folder.mkdir()
    onnx.save(proto, folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=64)
    bare = onnx.load(folder / "m.onnx", load_external_data=False)
    made, report = relayout.optimize(bare, target="onnx", directory=Path(folder))
    assert report["conversions"]["after"] == 1
    data, _ = relayout.optimize(folder / "m.onnx", target="onnx")
    assert data == made.SerializeToString(deterministic=True) or onnx.load_from_string(data) == made
    relayout.optimize(folder / "m.onnx", folder / "out.onnx", target="onnx")
    onnx.checker.check_model(str(folder / "out.onnx"))


def onnx_types(model, tmp):
    """Every element type goes in and out."""
    import onnx
    T = onnx.TensorProto
    rng = np.random.default_rng(1)
    for t in (T.FLOAT, T.UINT8, T.INT8, T.UINT16, T.INT16, T.INT32, T.INT64, T.BOOL, T.FLOAT16, T.DOUBLE, T.UINT32, T.UINT64, T.BFLOAT16,
              T.FLOAT8E4M3FN, T.FLOAT8E5M2, T.UINT4, T.INT4):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t)
        x = rng.integers(0, 2 if t == T.BOOL else 8, (3, 5)).astype(dtype)
        if t == T.INT4:
            x = rng.integers(-8, 8, (3, 5)).astype(dtype)
        y = relayout.Session(onnx_model(t, [3, 5])).run([x])["y"]
        assert y.dtype == x.dtype and np.array_equal(y.astype(np.float64), x.astype(np.float64)), T.DataType.Name(t)
    x = np.array([["a", "bc"], ["", "é"]], dtype=object)
    y = relayout.Session(onnx_model(T.STRING, [2, 2])).run([x])["y"]
    assert y.tolist() == x.tolist()
    scalar = relayout.Session(onnx_model(T.FLOAT, [])).run([2.5])["y"]
    assert scalar.shape == () and scalar == 2.5
    empty = relayout.Session(onnx_model(T.FLOAT, [0, 3])).run([np.zeros((0, 3), np.float32)])["y"]
    assert empty.shape == (0, 3)


def onnx_external_data(model, tmp):
    """external_data=: the weights go where it says, also where nothing else changed."""
    import onnx
    want = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(CNN).graph.initializer}
    big = next(t.name for t in onnx.load(CNN).graph.initializer if len(t.raw_data) > 1024)
    for src in (CNN, tmp / "first.onnx"):
        out = tmp / f"{src.stem}2.onnx"
        relayout.optimize(src, out, target="onnx", external_data="w.bin")
        assert onnx.load(out, load_external_data=False).graph.initializer[0].name in want
        made = {t.name: t for t in onnx.load(out, load_external_data=False).graph.initializer}
        assert made[big].data_location == onnx.TensorProto.EXTERNAL and not made[big].raw_data
        onnx.checker.check_model(str(out))
        relayout.verify(CNN, out, dims={"batch": 1})
        relayout.optimize(CNN, tmp / "first.onnx", target="onnx")
    raises(TypeError, relayout.optimize, CNN, external_data="w.bin")
    folder = tmp / "inline"
    folder.mkdir()
    for name, src in (("a", CNN), ("b", tmp / "first.onnx")):
        proto = onnx.load(src)
        onnx.save(proto, folder / f"{name}.onnx", save_as_external_data=True, location=f"{name}.bin", size_threshold=64)
        whole = onnx.load_from_string(relayout.optimize(folder / f"{name}.onnx", target="onnx", external_data="inline")[0])
        bare = onnx.load(folder / f"{name}.onnx", load_external_data=False)
        assert relayout.optimize(bare, target="onnx", directory=str(folder), external_data="inline")[0] == whole
        assert {t.name: onnx.numpy_helper.to_array(t).tobytes() for t in whole.graph.initializer if t.name in want} == {t.name: onnx.numpy_helper.to_array(t).tobytes()
                for t in onnx.load(src).graph.initializer if t.name in {x.name for x in whole.graph.initializer} & set(want)}
        onnx.checker.check_model(whole)
    raises(relayout.InvalidArgument, relayout.optimize, CNN, tmp / "n.onnx", external_data="../w.bin")


def onnx_onednn(model, tmp):
    """A Session loads the oneDNN that pip put beside it, and only where RELAYOUT_ONEDNN does not say another; so does the program."""
    if not Path(sys.prefix, "lib", "libdnnl.so.3").exists():
        print("onnx_onednn skipped: no onednn-cpu-gomp in", sys.prefix)
        return
    code = (f"import relayout, numpy as np; s = relayout.Session({str(CNN)!r}); s.run([np.zeros((1, 96, 96, 3), np.float32)])\n"
            "print('libdnnl.so' in open('/proc/self/maps').read())")
    bench = [sys.executable, "-m", "relayout", "bench", str(CNN), "--dim", "batch=1", "--runs", "1"]
    env = {k: v for k, v in os.environ.items() if k != "RELAYOUT_ONEDNN"}
    for extra, used in (({}, True), ({"RELAYOUT_ONEDNN": ""}, False)):
        said = lambda words: subprocess.run(words, env={**env, **extra}, capture_output=True, text=True, check=True).stdout
        assert said([sys.executable, "-c", code]) == f"{used}\n", extra
        convs = [line for line in said(bench).splitlines() if line.startswith("Conv ")]
        assert convs and any(not line.endswith(" reference") for line in convs) is used, extra


def onnx_sequences(model, tmp):
    """Sequences and optionals go in and out of a Session."""
    import onnx
    from onnx import helper as h
    T = onnx.TensorProto

    def session(nodes, ins, outs):
        graph = h.make_graph(nodes, "g", [h.make_value_info(n, t) for n, t in ins], [h.make_value_info(n, t) for n, t in outs])
        m = h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)
        return relayout.Session(m)

    def same(a, b):
        assert len(a) == len(b) and all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(a, b)), (a, b)

    f32 = h.make_tensor_type_proto(T.FLOAT, None)
    seq, opt, texts = h.make_sequence_type_proto(f32), h.make_optional_type_proto(f32), h.make_sequence_type_proto(h.make_tensor_type_proto(T.STRING, None))
    rng = np.random.default_rng(4)
    xs = [rng.standard_normal(s).astype(np.float32) for s in ((2, 3), (), (0, 4), (5,))]

    s = session([h.make_node("SequenceInsert", ["s", "x"], ["y"])], [("s", seq), ("x", f32)], [("y", seq)])
    assert s.inputs[0].dtype is None and s.inputs[1].dtype == np.float32
    same(s.run({"s": xs, "x": xs[0]})["y"], [*xs, xs[0]])
    same(s.run([tuple(xs[:1]), xs[1].T])["y"], xs[:2])
    same(s.run({"s": [], "x": xs[3]})["y"], [xs[3]])
    same(s.run({"s": [xs[0].T], "x": xs[0]})["y"], [xs[0].T, xs[0]])
    assert "is not given" in raises(relayout.InvalidArgument, s.run, {"x": xs[0]})
    assert "float32" in raises(relayout.InvalidArgument, s.run, {"s": xs, "x": xs[0].astype(np.float64)})
    raises(relayout.Error, s.run, {"s": [np.array(1j, np.complex256)] if hasattr(np, "complex256") else [np.zeros(1, "V3")], "x": xs[0]})
    same(s.run({"s": xs, "x": xs[0]})["y"], [*xs, xs[0]])  # a failed run leaves the session usable

    words = [np.array(["a", "é"], dtype=object), np.array("", dtype=object)]
    s = session([h.make_node("SequenceAt", ["s", "i"], ["y"])], [("s", texts), ("i", h.make_tensor_type_proto(T.INT64, []))],
                [("y", h.make_tensor_type_proto(T.STRING, None))])
    assert s.run({"s": words, "i": 0})["y"].tolist() == ["a", "é"]

    s = session([h.make_node("OptionalHasElement", ["o"], ["has"])], [("o", opt)], [("has", h.make_tensor_type_proto(T.BOOL, []))])
    assert not s.run({"o": None})["has"] and s.run({"o": xs[0]})["has"]
    s = session([h.make_node("Identity", ["o"], ["y"])], [("o", opt)], [("y", opt)])
    assert s.run({"o": None})["y"] is None
    same([s.run({"o": xs[0]})["y"]], [xs[0]])
    s = session([h.make_node("SequenceConstruct", ["x", "x"], ["y"])], [("x", f32)], [("y", seq)])
    same(s.run([xs[0]])["y"], [xs[0]] * 2)


def onnx_backend(model, tmp):
    import onnx
    import relayout.backend as backend
    x = np.random.default_rng(2).standard_normal((2, 3)).astype(np.float32)
    proto = onnx_model(onnx.TensorProto.FLOAT, None, "Transpose", perm=[1, 0])
    y, = backend.prepare(proto).run([x])
    np.testing.assert_array_equal(y, x.T)
    assert backend.run_model(proto, [x], optimize=True).y.shape == (3, 2)
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    sys.path.insert(0, str(ROOT / "python"))
    os.environ.pop("RELAYOUT", None)
    import relayout_backend
    assert isinstance(relayout_backend.RelayoutBackend.prepare(proto), backend.RelayoutRep)
    assert isinstance(relayout_backend.RelayoutBackend.prepare(proto, program=str(BUILT)), relayout_backend.RelayoutRep)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True)
    p.add_argument("--onnx", action="store_true")
    args = p.parse_args()
    failed = 0
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_") or (args.onnx and n.startswith("onnx_") and n != "onnx_model")]
    for name, f in tests:
        try:
            with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
                f(args.model, Path(tmp))
            print(name, "ok")
        except Exception as e:
            failed += 1
            import traceback
            print(f"{name}: {type(e).__name__}: {e}\n{traceback.format_exc()}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
