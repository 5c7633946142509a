#!/usr/bin/env python3
"""Bandwidth of the move kernel (rl_desc_convert, from the build folder) beside oneDNN's reorder and memcpy, on the grid of `relayout bench-move`.

  move.py                          all cases, 64 KiB to 256 MiB, elements of 1, 2, 4 and 8 bytes, one thread
  move.py nchw --most 4194304      cases whose name contains this, arrays of at most so many bytes
  move.py --threads 2              by the clock; with one thread by the time that it has a processor, so that other work does not count

The three take turns; a figure is the least time of its rounds. What oneDNN makes is compared with what relayout makes. It has no elements of
8 bytes on processors: "-". A ratio of 1.10 to oneDNN: relayout moves 10 % more bytes in a second.
"""
import ctypes as c
import math
import os
import subprocess
import sys
import time

import numpy as np

import bench
import common

KINDS = {1: ("i8", np.int8), 2: ("bf16", np.uint16), 4: ("f32", np.float32), 8: ("f64", np.float64)}


def strides_of(dims, perm):
    """Of a dense array whose dims lie in this order."""
    out, step = [0] * len(dims), 1
    for a in reversed(perm):
        out[a], step = step, step * dims[a]
    return out


def ours(rl, point, x, y, threads):
    name, size, dims, perm = point
    kind = KINDS[size][0]
    a, b = rl.strided(kind, dims), rl.strided(kind, dims, strides_of(dims, perm))
    nbyte, p, q, e = c.c_size_t(a.nbytes), c.c_void_p(x.ctypes.data), c.c_void_p(y.ctypes.data), rl._Error()
    options = (c.c_uint64 * 2)(16, threads)  # rl_move_options: struct_size, threads

    def run():
        if rl._lib.rl_move(c.byref(b.c), q, nbyte, c.byref(a.c), p, nbyte, options, c.byref(e)):
            raise RuntimeError(e.text.decode())
    return run


def theirs(one, point):
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


def least(runs, nbyte, clock):
    """Seconds of one run of each."""
    times, best = max(1, (4 << 20) // nbyte), [math.inf] * len(runs)
    for _ in range(4 if nbyte > 64 << 20 else 9):
        for i, run in enumerate(runs):
            start = clock()
            for _ in range(times):
                run()
            best[i] = min(best[i], (clock() - start) / times)
    return best


def measure(rl, one, point, threads):
    """(bytes, seconds of relayout, memcpy, oneDNN or None)"""
    name, size, dims, perm = point
    n, numpy = math.prod(dims), KINDS[size][1]
    x = (np.arange(n) % 120 + (0x3f80 if size == 2 else 0)).astype(numpy)  # of bf16 1.0 and more: oneDNN makes denormals 0
    y, z, w = (np.zeros_like(x) for _ in range(3))
    clock = time.thread_time if threads == 1 else time.perf_counter
    runs, sides = [ours(rl, point, x, y, threads), lambda: np.copyto(w, x)], theirs(one, point)
    if not sides:
        return [x.nbytes, *least(runs, x.nbytes, clock), None]
    with one.reorder(sides[0], x, sides[1], z) as run:
        seconds = least([*runs, run], x.nbytes, clock)
    for md in sides:
        one.drop(md)
    if not np.array_equal(y, z):
        raise common.Differ(f"{name} {size} {dims}: oneDNN's bytes are others")
    return [x.nbytes, *seconds]


def mean(ratios):
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else "-"


def row(name, found):
    """found: (bytes of an element, bytes, seconds of relayout, memcpy, oneDNN)"""
    large = [b / t * 1e-9 for _, b, t, _, _ in found if b >= 32 << 20]
    reorder = {size: [r / t for s, _, t, _, r in found if r and s == size] for size in (1, 2, 4)}
    every = sum(reorder.values(), [])
    return [name, len(found), f"{sum(large) / len(large):.1f}" if large else "-", mean([m / t for _, _, t, m, _ in found]),
            *(mean(reorder[size]) for size in (1, 2, 4)), f"{min(every):.2f}" if every else "-"]


def main():
    p = bench.arguments(__doc__)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--most", type=int, default=256 << 20)
    args = p.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    os.environ["RELAYOUT_LIBRARY"] = str(args.build.resolve() / "librelayout.so")
    sys.path.insert(0, str(common.ROOT / "python"))
    import onednn
    import relayout_layouts as rl
    rl._lib.rl_move = c.CDLL(str(args.build.resolve() / "librelayout_runtime.so")).rl_move
    one = onednn.load()
    lines = subprocess.run([common.program(args), "bench-move", "--list", "--most", str(args.most)], capture_output=True, text=True, check=True).stdout
    points, rows = {}, []
    for line in lines.splitlines():
        name, size, dims, perm = line.split()
        if not args.models or any(m in name for m in args.models):
            points.setdefault(name, []).append((name, int(size), [int(i) for i in dims.split(",")], [int(i) for i in perm.split(",")]))
    everything = []
    for name, grid in points.items():
        found = [(point[1], *measure(rl, one, point, args.threads)) for point in grid]
        rows.append(row(name, found))
        print(*rows[-1], flush=True)
        everything += found
    rows.append(row("all", everything))
    text = bench.table(["conversion", "points", "GB/s, 32 MiB and more", "of memcpy", "of oneDNN's reorder: i8", "bf16", "f32", "the least"], rows)
    bench.write(args, f"move-{args.threads}.md", f"Moving data: relayout, memcpy, oneDNN {one.version if one else '(not here)'}", text, "numpy")


if __name__ == "__main__":
    main()
