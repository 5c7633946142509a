"""The sample models as complete files with their reference outputs, made once and kept in the build folder.

Used by test_zoo.py and by bench/: filled(name) is the path of a complete model, original(name) its facts.
"""
import contextlib
import fcntl
import importlib.util
import json
import os
import pickle

import numpy as np
import onnx

import check
import common

ZOO = common.SHARED / "zoo"
VERSION = 7  # of what original() and filled() store


def names():
    """All models of the sample folder; empty where there is none."""
    return sorted(p.stem for p in ZOO.glob("*.onnx"))


def table(name):
    """targets.json or peers.json."""
    path = ZOO / name
    return json.loads(path.read_text()) if path.exists() else {}


def chosen(patterns):
    """Names that contain one of the patterns; all for none."""
    return [n for n in names() if not patterns or any(p in n for p in patterns)]


def replace(path, write):
    tmp = path.with_name(f"{path.name}.{os.getpid()}")
    write(tmp)
    os.replace(tmp, path)


@contextlib.contextmanager
def _alone(path):
    """Suites beside each other wait for what one of them makes, and do not make it again."""
    with open(path.with_name(f"{path.name}.lock"), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _shake(model):
    """Untrained scales and biases are all ones or all zeros, which hides a wrong order of their elements, and a branch that
    ends in zeros hides everything before it: give them seeded values of their own."""
    rng = np.random.default_rng(1)
    for t in model.graph.initializer:
        if t.data_type != onnx.TensorProto.FLOAT or not 1 <= len(t.dims) <= 2:
            continue
        a = onnx.numpy_helper.to_array(t)
        if a.size > 1 and a.std() == 0:
            t.CopyFrom(onnx.numpy_helper.from_array((a + rng.uniform(0.2, 1, a.shape)).astype(np.float32), t.name))
    return model


def filled(name, cache):
    """Path of the model with its weights filled in; made when missing or older than its source."""
    cache.mkdir(parents=True, exist_ok=True)
    src, dst = ZOO / f"{name}.onnx", cache / f"{name}.{VERSION}.onnx"
    is_made = lambda: dst.exists() and dst.stat().st_mtime >= src.stat().st_mtime
    if not is_made():
        with _alone(dst):
            if not is_made():
                _fill(src, dst)
    return dst


def _fill(src, dst):
    spec = importlib.util.spec_from_file_location("zoo_fill", ZOO / "zoo.py")
    fill = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fill)
    model = _shake(fill.fill(onnx.load(src, load_external_data=False)))
    replace(dst, lambda p: onnx.save(model, p))


def inputs_of(model):
    """Seeded inputs: normal floats, token ids below 50."""
    return common.random_inputs(model, seed=1, high=50)


def original(name, cache):
    """check.Facts of the model as it came, kept in the cache."""
    import onnxruntime
    path = filled(name, cache)
    key = (VERSION, path.stat().st_mtime_ns, path.stat().st_size, onnxruntime.__version__, onnx.__version__, np.__version__)
    store = cache / f"{name}.pickle"
    with _alone(store):
        if store.exists():
            try:
                saved = pickle.loads(store.read_bytes())
                if saved[0] == key:
                    return saved[1]
            except Exception:
                pass
        model = onnx.load(path)
        facts = check.facts_of(path, model, [inputs_of(model)])
        replace(store, lambda p: p.write_bytes(pickle.dumps((key, facts))))
        return facts
