"""The sample models as complete files with their reference outputs, made once and kept in the build folder.

Used by test_zoo.py and by bench/: filled(name) is the path of a complete model, original(name) its facts.
"""
import importlib.util
import json
import os
import pickle

import numpy as np
import onnx

import check
import common

ZOO = common.SHARED / "zoo"
VERSION = 6  # of what original() stores


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


def _replace(path, write):
    tmp = path.with_name(f"{path.name}.{os.getpid()}")
    write(tmp)
    os.replace(tmp, path)


def filled(name, cache):
    """Path of the model with its weights filled in; made when missing or older than its source."""
    cache.mkdir(parents=True, exist_ok=True)
    src, dst = ZOO / f"{name}.onnx", cache / f"{name}.onnx"
    if dst.exists() and dst.stat().st_mtime >= src.stat().st_mtime:
        return dst
    spec = importlib.util.spec_from_file_location("zoo_fill", ZOO / "zoo.py")
    fill = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fill)
    model = fill.fill(onnx.load(src, load_external_data=False))
    _replace(dst, lambda p: onnx.save(model, p))
    return dst


def inputs_of(model):
    """Seeded inputs: normal floats, token ids below 50."""
    return common.random_inputs(model, seed=1, high=50)


def original(name, cache):
    """check.Facts of the model as it came, kept in the cache."""
    import onnxruntime
    path = filled(name, cache)
    key = (VERSION, path.stat().st_mtime_ns, path.stat().st_size, onnxruntime.__version__, onnx.__version__, np.__version__)
    store = cache / f"{name}.pickle"
    if store.exists():
        try:
            saved = pickle.loads(store.read_bytes())
            if saved[0] == key:
                return saved[1]
        except Exception:
            pass
    model = onnx.load(path)
    facts = check.facts_of(path, model, [inputs_of(model)])
    _replace(store, lambda p: p.write_bytes(pickle.dumps((key, facts))))
    return facts
