#!/usr/bin/env python3
"""Models with one thing wrong, for the targets that read models: of every seed (seeds.py) each input and output of each node left out or
another's, each attribute left out or extreme, each type with another rank, no rank, no element, sizes that are large or negative, of another
element type, each initializer without elements, of another rank; and of another opset.  What a mutation would have to hit by luck, each in turn.

  damage.py SEEDS FOUND EVERY TARGET...     SEEDS: a folder of models; TARGET: a program (build-fuzz/tests/fuzz_run), which executes each
                                            EVERYth; what ends it is kept in FOUND
"""
import collections
import hashlib
import itertools
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
from onnx import TensorProto, helper, numpy_helper
from google.protobuf.message import DecodeError

LARGEST = 6000  # bytes of a model
LIMITS = ["-timeout=30", "-rss_limit_mb=2048", "-detect_leaks=0"]
NO_LEAKS = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # nor at the end, where LeakSanitizer may fail (scripts/fuzz.sh)
MOST = 12  # nodes, values, initializers of a model that are changed


def graphs_of(graph):
    yield graph
    for n in graph.node:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from graphs_of(a.g)


def names_of(graph):
    return list(dict.fromkeys(x for n in graph.node for x in [*n.input, *n.output] if x))


def copies(messages):
    made = []
    for m in messages:
        made.append(type(m)())
        made[-1].CopyFrom(m)
    return made


def with_name(names, i, name):
    """The list has another name in one place until the generator goes on."""
    old = names[i]
    names[i] = name
    yield
    names[i] = old


def wrong_nodes(graph):
    names = names_of(graph)
    for n in graph.node[:MOST]:
        for i in range(len(n.input)):
            for name in ["", names[0], names[-1]]:
                if name != n.input[i]:
                    yield from with_name(n.input, i, name)
        for i in range(len(n.output)):
            yield from with_name(n.output, i, "")
        attributes = copies(n.attribute)
        for i, old in enumerate(attributes):
            for _ in wrong_attribute(n.attribute[i], old):
                yield
                n.attribute[i].CopyFrom(old)
            del n.attribute[i]
            yield
            del n.attribute[:]
            n.attribute.extend(attributes)
        whole = list(n.input)
        for k in range(len(whole)):
            del n.input[k:]
            yield
            n.input.extend(whole[k:])
        n.input.append(names[0])
        yield
        n.input.pop()


def wrong_attribute(a, old):
    for x in (0, -1, 1, 99, 2**31, 2**63 - 1, -2**63) if old.type == old.INT else ():
        a.i = x
        yield
    for x in (0, -1, 2**31, 2**63 - 1, -2**63) if old.type == old.INTS else ():
        for i in {0, len(old.ints) - 1} if old.ints else ():
            a.ints[:] = [*old.ints[:i], x, *old.ints[i + 1:]]
            yield
        a.ints[:] = [x] * len(old.ints)
        yield
    if old.type == old.INTS:
        for x in ([], old.ints[:-1], [*old.ints, 1], [*old.ints] * 9):
            a.ints[:] = x
            yield
    for x in (0.0, -1.0, float("inf"), float("nan"), 1e30) if old.type == old.FLOAT else ():
        a.f = x
        yield
    for x in (b"", old.s[:1], old.s + old.s, bytes([255])) if old.type == old.STRING else ():
        a.s = x
        yield


def wrong_types(graph):
    for k, v in enumerate([*graph.input, *graph.output, *graph.value_info][:MOST]):
        [whole] = copies([v.type])
        t, old = v.type.tensor_type, whole.tensor_type

        def sized(*dims):
            t.CopyFrom(old)
            t.shape.ClearField("dim")
            t.shape.SetInParent()
            for d in dims:
                if d is None:
                    t.shape.dim.add()
                elif isinstance(d, str):
                    t.shape.dim.add(dim_param=d)
                else:
                    t.shape.dim.add(dim_value=d)

        now = [d.dim_value for d in old.shape.dim]
        shapes = [(), now + [1], now[:-1], [0] * len(now), [None] * len(now), ["n"] * len(now), [1] * len(now), [-1] * len(now)]
        shapes += [now[:i] + [x] + now[i + 1:] for i in range(len(now)) for x in (0, 2**31, 2**62, "n")]
        for s in shapes:
            sized(*s)
            yield
        t.CopyFrom(old)
        t.ClearField("shape")
        yield
        for kind in (TensorProto.UNDEFINED, TensorProto.BOOL, TensorProto.INT4, TensorProto.STRING, TensorProto.COMPLEX128, 99):
            t.CopyFrom(old)
            t.elem_type = kind
            yield
        v.type.CopyFrom(whole)
        if k < len(graph.input) and 0 < (n := math.prod(now)) < 1000:  # targets make up no strings
            t.elem_type = TensorProto.STRING
            graph.initializer.append(helper.make_tensor(v.name, TensorProto.STRING, now, [b"a"] * n))
            yield
            del graph.initializer[-1]
            v.type.CopyFrom(whole)


def wrong_constants(graph):
    for x in graph.initializer[:MOST]:
        [old] = copies([x])
        try:
            a = numpy_helper.to_array(old)
        except (ValueError, TypeError):
            continue
        tries = [a.reshape(-1)[:0], a.reshape(-1), a.reshape((1,) + a.shape), a.reshape(-1)[:1].reshape(()) if a.size else a]
        if a.dtype.kind in "iu" and a.size:
            low, high = a.copy(), a.copy()
            low.reshape(-1)[:] = 2**63 - 1 if a.dtype == "int64" else 127
            high.reshape(-1)[-1] = -2**63 if a.dtype == "int64" else 0
            tries += [low, high, a[::-1] if a.ndim else a, a - a.reshape(-1)[:1].reshape(())]
        for y in tries:
            x.CopyFrom(numpy_helper.from_array(y, old.name))
            yield
        for kind in (TensorProto.FLOAT, TensorProto.INT32, TensorProto.BOOL, TensorProto.UNDEFINED):
            x.CopyFrom(old)
            x.data_type = kind
            yield
        x.CopyFrom(old)


def damages(model):
    """The model has one damage after the other."""
    for o in model.opset_import:
        old = o.version
        for o.version in (1, 7, 10, 12, 17, 20, 28, 99):
            yield model
        o.version = old
    for g in graphs_of(model.graph):
        for change in (wrong_nodes, wrong_types, wrong_constants):
            for _ in change(g):
                yield model


def damaged(seeds):
    for path in sorted(seeds.iterdir()):
        data = path.read_bytes()
        if len(data) > LARGEST:
            continue
        try:
            model = onnx.load_from_string(data)
        except DecodeError:
            continue
        yield from damages(model)


def distinct(models):
    seen = set()
    for model in models:
        data = model.SerializeToString()
        key = hashlib.sha256(data).digest()[:16]
        if key not in seen:
            seen.add(key)
            yield data


def execute(target, models, found):
    """All of them, in one process as far as none ends it. Yields what is said of those that do."""
    with tempfile.TemporaryDirectory() as tmp:
        paths = [Path(tmp) / f"{i:04}" for i in range(len(models))]
        for path, data in zip(paths, models):
            path.write_bytes(data)
        while paths:
            p = subprocess.run([target, *LIMITS, f"-artifact_prefix={tmp}/", *paths], capture_output=True, text=True, errors="replace", env=NO_LEAKS)
            if p.returncode == 0:
                return
            last = Path(re.findall(r"^Running: (.*)$", p.stderr, flags=re.M)[-1])
            kept = found / f"damaged-{target.name}-{hashlib.sha256(last.read_bytes()).hexdigest()[:16]}"
            kept.write_bytes(last.read_bytes())
            yield kept, f"status {p.returncode}\n" + p.stderr[p.stderr.rindex("Running: "):]
            paths = paths[paths.index(last) + 1:]


def parts(models):
    return iter(lambda: list(itertools.islice(models, 1000)), [])


def main():
    seeds, found, every, targets = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), [Path(x) for x in sys.argv[4:]]
    n, bad = 0, collections.Counter()
    for part in parts(distinct(itertools.islice(damaged(seeds), None, None, every))):
        for target in targets:
            n += len(part)
            for path, text in execute(target, part, found):
                what = "".join((re.findall(r"SUMMARY: (.*)|(must hold.*)", text) or re.findall(r"^(status )(.*)", text))[0])
                if not bad[what]:
                    print(f"artifact {path}\n" + "\n".join(re.findall(r"^.*(?:ERROR|must hold|runtime error|SUMMARY|#[0-9] ).*$", text, flags=re.M)))
                bad[what] += 1
    for what, times in bad.most_common():
        print(f"{times} times: {what}")
    print(f"number_of_executed_units: {n}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
