#!/usr/bin/env python3
"""Bandwidth of the move kernel (rl_move, from the build folder) beside memcpy, oneDNN's reorder, NumPy's copy and onnxruntime's Transpose, on
the grid of `relayout bench-move`.

  move.py                          all points, 64 KiB to 256 MiB, elements of 1, 2, 4 and 8 bytes, one thread
  move.py nchw --most 4194304      points whose name contains this, arrays of at most so many bytes; --least likewise
  move.py --threads 2              by the clock; with one thread by the time that it has a processor, so that other work does not count
  move.py nchw --result move.md    adds the points to those that bench/results/move.md has: the grid may be run in pieces

All take turns on the same two arrays, which were written before; who comes first and whom he follows changes from round to round, and small arrays are
moved for 4 ms before the clock starts, as the caches have lost them after a slow run. A ratio is the median of those of the rounds; GB/s are of the round that took
the least time. Small arrays take turns MANY times where a ratio, memcpy's aside, is as near 1 as NEAR after the first rounds, so that noise decides neither way.
What each makes is compared with what NumPy makes. A ratio of 1.10: relayout moves
10 % more bytes in a second. Absent are: oneDNN for elements of 8 bytes, which it has not on processors; NumPy where there are more threads than its
one. Past the caches are arrays of 32 MiB and more.
"""
import ctypes as c
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import bench
import common

KINDS = {1: ("i8", np.int8), 2: ("bf16", np.uint16), 4: ("f32", np.float32), 8: ("f64", np.float64)}
PEERS = ("memcpy", "oneDNN", "NumPy", "onnxruntime")
PAST = 32  # MiB
NEAR, MANY = 0.03, 51
POINT = ["point", "bytes of an element", "MiB", "GB/s", *PEERS]


def strides_of(dims, perm):
    """Of a dense array whose dims lie in this order."""
    out, step = [0] * len(dims), 1
    for a in reversed(perm):
        out[a], step = step, step * dims[a]
    return out


def relayout(rl, point, x, y, threads):
    name, size, dims, perm = point
    kind = KINDS[size][0]
    a, b = rl.strided(kind, dims), rl.strided(kind, dims, strides_of(dims, perm))
    nbyte, e, move = c.c_size_t.from_param(a.nbytes), rl._Error(), rl._lib.rl_move
    p, q = (c.c_void_p.from_param(z.ctypes.data) for z in (x, y))
    options = (c.c_uint64 * 2)(16, threads)  # rl_move_options: struct_size, threads
    said = (c.byref(b.c), q, nbyte, c.byref(a.c), p, nbyte, c.byref(options), c.byref(e))

    def run():
        if move(*said):
            raise RuntimeError(e.text.decode())
    return run


def memcpy(x, y):
    """The C library's; None: it has one thread, as NumPy."""
    copy = c.CDLL(None).memcpy
    copy.argtypes = (c.c_void_p, c.c_void_p, c.c_size_t)
    return lambda: copy(y.ctypes.data, x.ctypes.data, x.nbytes)


def onednn_sides(one, point):
    """Descriptors of both sides; None: oneDNN has no such element."""
    name, size, dims, perm = point
    if size == 8 or not one:
        return None
    kind, dense = KINDS[size][0], list(range(len(dims)))
    if "nChw16c" in name:  # as users of oneDNN say it, with a tag
        n, blocks, *rest = dims
        image = [n, blocks * 16, *(rest[1:] if name.startswith("nchw") else rest[:2])]
        tags = ("abcd", "aBcd16b") if name.startswith("nchw") else ("aBcd16b", "abcd")
        return [one.desc(image, one.tags[t], kind) for t in tags]
    return [one.strided(dims, strides_of(dims, order), kind) for order in (dense, perm)]


def transpose(point, x, y, threads):
    """onnxruntime's Transpose, from x's bytes to y's."""
    name, size, dims, perm = point
    out = [dims[a] for a in perm]
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(KINDS[size][1]))
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([onnx.helper.make_node("Transpose", ["x"], ["y"], perm=perm)], "g", [info("x", kind, dims)], [info("y", kind, out)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    io = session.io_binding()
    io.bind_input("x", "cpu", 0, x.dtype, dims, x.ctypes.data)
    io.bind_output("y", "cpu", 0, y.dtype, out, y.ctypes.data)
    return lambda: session.run_with_iobinding(io)


def warm(run):
    """Until the caches hold what they will: they lose much of the arrays to others during a slow run, and take several quick ones to have it again."""
    end = time.perf_counter() + 4e-3
    while time.perf_counter() < end:
        run()


def turn(runs, n, times, small, clock):
    """Seconds of each in round n."""
    took = [0.0] * len(runs)
    for k in range(len(runs)):
        i = (n + k if n % 2 else n - k) % len(runs)
        if not runs[i]:
            continue
        if small:
            warm(runs[i])
        start = clock()
        for _ in range(times):
            runs[i]()
        took[i] = (clock() - start) / times
    return took


def turns(runs, nbyte, clock):
    """Bytes in a second of the first one, in billions, and for each of the others how many times as long it takes; None where there is none."""
    small, rounds = nbyte <= 8 << 20, []
    times = max(1, (16 << 20) // nbyte) if small else 1

    def measured(many):
        rounds.extend(turn(runs, n, times, small, clock) for n in range(len(rounds), many))
        return [statistics.median(r[i] / r[0] for r in rounds) if run else None for i, run in enumerate(runs)]
    ratios = measured(3 if nbyte > 64 << 20 else 9)
    if small and any(r and abs(r - 1) <= NEAR for r in ratios[2:]):
        ratios = measured(MANY)
    return [nbyte / min(r[0] for r in rounds) * 1e-9, *ratios[1:]]


def check(point, runs, want, y):
    for who, run in zip(("relayout", *PEERS), runs):
        if run and who != "memcpy":
            y[:] = 0
            run()
            if not np.array_equal(y, want):
                raise common.Differ(f"{point}: {who}'s bytes are others")


def measure(rl, one, point, threads):
    """A point: name, bytes of an element, MiB, GB/s, and for each peer how many times as long it takes, or None."""
    name, size, dims, perm = point
    n, dtype = math.prod(dims), KINDS[size][1]
    x = (np.arange(n) % 120 + (0x3f80 if size == 2 else 0)).astype(dtype)  # of bf16 1.0 and more: oneDNN makes denormals 0
    y, view = np.zeros_like(x), x.reshape(dims).transpose(perm)
    numpy = None if threads > 1 else lambda: np.copyto(y.reshape(view.shape), view)
    sides, copy = onednn_sides(one, point), None if threads > 1 else memcpy(x, y)
    runs = [relayout(rl, point, x, y, threads), copy, None, numpy, transpose(point, x, y, threads)]
    clock = time.thread_time if threads == 1 else time.perf_counter
    want = view.ravel()
    if not sides:
        check(point, runs, want, y)
        return [name, size, x.nbytes / 2 ** 20, *turns(runs, x.nbytes, clock)]
    with one.reorder(sides[0], x, sides[1], y) as runs[2]:
        check(point, runs, want, y)
        found = turns(runs, x.nbytes, clock)
    for md in sides:
        one.drop(md)
    return [name, size, x.nbytes / 2 ** 20, *found]


def mean(ratios):
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else "-"


def ratios(found, peer):
    """(ratio to this peer, point) where it has a figure."""
    i = 4 + PEERS.index(peer)
    return [(r[i], f"{r[0]}, {r[1]} bytes, {r[2]:.3g} MiB") for r in found if r[i]]


def row(name, found):
    large = [r for r in found if r[2] >= PAST]
    cells = [f"{sum(r[3] for r in large) / len(large):.1f}" if large else "-", mean([r for r, _ in ratios(large, "memcpy")])]
    for peer in PEERS[1:]:
        every = [r for r, _ in ratios(found, peer)]
        cells += [mean(every), f"{min(every):.2f}" if every else "-"]
    return [name, len(found), *cells]


def points(found):
    text = [[r[0], r[1], f"{r[2]:.3f}", f"{r[3]:.1f}", *(f"{x:.2f}" if x else "-" for x in r[4:])] for r in found]
    return bench.table(POINT, text)


def known(path):
    """Points of an earlier result."""
    lines = path.read_text().splitlines() if path.exists() else []
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [[c[0], int(c[1]), float(c[2]), float(c[3]), *(float(x) if x != "-" else None for x in c[4:])]
            for c in cells if len(c) == len(POINT) and c[1].isdigit()]


def merge(before, found):
    """What was measured again stands in place of what there was, in the grid's order."""
    key = lambda r: (r[0], r[1], round(r[2], 3))
    every = {key(r): r for r in before + found}
    names = list(dict.fromkeys(r[0] for r in before + found))
    return sorted(every.values(), key=lambda r: (names.index(r[0]), r[2], r[1]))


def summary(found):
    lines = []
    for peer in PEERS:
        every = ratios([r for r in found if peer != "memcpy" or r[2] >= PAST], peer)
        if every:
            worst, where = min(every)
            lines.append(f"- {peer}{', past the caches' if peer == 'memcpy' else ''}: geometric mean {mean([r for r, _ in every])}, the least {worst:.2f} "
                         f"({where}), below 1.00 at {sum(r < 1 for r, _ in every)} of {len(every)} points")
    return "\n".join(lines)


def cache():
    """Of the last level, in words."""
    path = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return f"last level of cache {path.read_text().strip()}iB" if path.exists() else "cache of unknown size"


def grid(args):
    lines = subprocess.run([common.program(args), "bench-move", "--list", "--most", str(args.most)], capture_output=True, text=True, check=True).stdout
    for line in lines.splitlines():
        name, size, dims, perm = line.split()
        point = (name, int(size), [int(i) for i in dims.split(",")], [int(i) for i in perm.split(",")])
        chosen = not args.models or any(m in name for m in args.models)
        if chosen and math.prod(point[2]) * point[1] >= args.least:
            yield point


def main():
    p = bench.arguments(__doc__)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--most", type=int, default=256 << 20)
    p.add_argument("--least", type=int, default=0)
    args = p.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    os.environ["RELAYOUT_LIBRARY"] = str(args.build.resolve() / "librelayout.so")
    sys.path.insert(0, str(common.ROOT / "python"))
    import onednn
    import relayout_layouts as rl
    rl._lib.rl_move = c.CDLL(str(args.build.resolve() / "librelayout_runtime.so")).rl_move
    one, found = onednn.load(), []
    args.result = args.result or (None if args.models or args.least else "move.md" if args.threads == 1 else f"move-{args.threads}.md")
    before = known(bench.HERE / "results" / args.result) if args.result else []
    for point in grid(args):
        found.append(measure(rl, one, point, args.threads))
        r = found[-1]
        print(f"{r[0]:15} {r[1]} {r[2]:9.3f} MiB {r[3]:6.2f} GB/s", *(f"{peer} {x:5.2f}" if x else f"{peer}     -" for peer, x in zip(PEERS, r[4:])), flush=True)
    found = merge(before, found)
    names = dict.fromkeys(r[0] for r in found)
    rows = [row(name, [r for r in found if r[0] == name]) for name in names] + [row("all", found)]
    head = ["conversion", "points", "GB/s past the caches", "of memcpy there", "of oneDNN", "the least", "of NumPy", "the least", "of onnxruntime", "the least"]
    text = (f"{summary(found)}\n\n{bench.table(head, rows)}\n\nPast the caches: arrays of 32 MiB and more; {cache()}; elements of 1, 2, 4 and 8 bytes. Where the grid was run in pieces, the command and the versions are the "
            f"last one's. A ratio is the median of 9 rounds; of {MANY} where that of an array of up to 8 MiB came within {NEAR:.0%} of 1 (memcpy's aside), so that noise decides "
            "neither way.\n\n"
            f"Each point, and how many times as long the others take:\n\n{points(found)}")
    bench.write(args, None, f"Moving data: relayout beside memcpy, oneDNN {one.version if one else '(not here)'}, NumPy and onnxruntime", text,
                "numpy", "onnxruntime")


if __name__ == "__main__":
    main()
