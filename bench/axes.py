#!/usr/bin/env python3
"""What ops cost by the place of their axis: last, in the middle or first of three dims, beside a Transpose of the result (T).

  axes.py --runtime onnxruntime       one thread; the charges of src/targets.def are rounded from this
"""
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper, save

import bench
import latency

OTHERS = (256, 64)  # the two dims beside the axis
ints = lambda *x: np.array(x, np.int64)


def at(place, value, rest):
    """Three values: this one at the axis's place."""
    x = list(rest)
    x.insert(place, value)
    return x


def scales(n):
    return np.linspace(0.1, 1, n, dtype=np.float32)


# name: length of the axis, before and after; for its place the op, its constant inputs and its attributes
OPS = {
    "Tile of 1, 20 times": (1, 20, lambda p: ("Tile", [ints(*at(p, 20, (1, 1)))], {})),
    "Tile of 8, 4 times": (8, 32, lambda p: ("Tile", [ints(*at(p, 4, (1, 1)))], {})),
    "Tile of 32, 4 times": (32, 128, lambda p: ("Tile", [ints(*at(p, 4, (1, 1)))], {})),
    "Expand of 1 to 4": (1, 4, lambda p: ("Expand", [ints(*at(p, 4, OTHERS))], {})),
    "Expand of 1 to 49": (1, 49, lambda p: ("Expand", [ints(*at(p, 49, OTHERS))], {})),
    "Gather, 64 of 64": (64, 64, lambda p: ("Gather", [ints(*np.random.default_rng(0).permutation(64))], {"axis": p})),
    "Gather, 1 of 16": (16, 1, lambda p: ("Gather", [ints(3)], {"axis": p})),
    "Concat of 1 and 1": (1, 2, lambda p: ("Concat", ["x"], {"axis": p})),
    "Concat of 2 and 2": (2, 4, lambda p: ("Concat", ["x"], {"axis": p})),
    "Concat of 16 of 1": (1, 16, lambda p: ("Concat", ["x"] * 15, {"axis": p})),
    "Slice, 1 of 16": (16, 1, lambda p: ("Slice", [ints(3), ints(4), ints(p)], {})),
    "Slice, every second of 64": (64, 32, lambda p: ("Slice", [ints(0), ints(64), ints(p), ints(2)], {})),
    "CumSum over 64": (64, 64, lambda p: ("CumSum", [np.int64(p)], {})),
    "Hardmax over 64": (64, 64, lambda p: ("Hardmax", [], {"axis": p})),
    "QuantizeLinear, 64 scales": (64, 64, lambda p: ("QuantizeLinear", [scales(64), np.zeros(64, np.uint8)], {"axis": p})),
    "Pad of 62 by 1": (62, 64, lambda p: ("Pad", [ints(*(at(p, 1, (0, 0)) * 2))], {})),
    "Mul by one of 1 to 4": (4, 4, lambda p: ("Mul", [np.ones(at(p, 1, OTHERS), np.float32)], {})),
}


def written(path, shape, op, inputs, attrs):
    const = [numpy_helper.from_array(np.asarray(x), f"c{i}") for i, x in enumerate(inputs) if not isinstance(x, str)]
    names = [x if isinstance(x, str) else f"c{i}" for i, x in enumerate(inputs)]
    out = h.make_tensor_value_info("y", T.UINT8 if op == "QuantizeLinear" else T.FLOAT, None)
    graph = h.make_graph([h.make_node(op, ["x", *names], ["y"], **attrs)], op, [h.make_tensor_value_info("x", T.FLOAT, shape)], [out], const)
    save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)
    return path


def seconds(runs):
    """The median of each, taken in turn."""
    times = [[] for _ in runs]
    for _ in range(9):
        for (session, x), found in zip(runs, times):
            session.run(x)
            start = time.perf_counter()
            for _ in range(4):
                session.run(x)
            found.append((time.perf_counter() - start) / 4)
    return [statistics.median(t) for t in times]


def main():
    p = bench.arguments(__doc__.splitlines()[0])
    p.add_argument("--runtime", choices=list(latency.RUNTIMES), default="onnxruntime")
    args = p.parse_args()
    make, rows = latency.RUNTIMES[args.runtime], []
    for name, (length, result, op) in OPS.items():
        with tempfile.TemporaryDirectory() as tmp:
            made = lambda i, shape, *rest: (make(written(Path(tmp) / f"{i}.onnx", shape, *rest), 1), {"x": np.ones(shape, np.float32)})
            runs = [made(place, at(place, length, OTHERS), *op(place)) for place in (2, 1, 0)]
            t, *at_place = reversed(seconds(runs + [made(3, [256, 64, result], "Transpose", [], {"perm": [0, 2, 1]})]))
            rows.append([name, f"{t * 1e6:.0f}", *(f"{x / t:.2f}" for x in reversed(at_place))])
    bench.write(args, f"axes-{args.runtime}.md", f"Ops by the place of their axis in {args.runtime}, one thread",
                bench.table(["op", "T, us", "last", "middle", "first"], rows), *make.packages, "onnx", "numpy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
