"""Every format tag of oneDNN (rank up to 8), canonical (aBcd16b) and by name (nChw16c): strides, inner blocks, padded sizes and bytes are those
of its memory descriptor, and converting to it gives the bytes of its reorder.

What it answered before is compared (tests/golden/onednn.txt, which --record writes): its tags, their sizes, strides and blocks, a checksum
of the reordered bytes. Where oneDNN 3 is there (scripts/setup.sh installs it), it is asked too, on random sizes and five element types: the
bytes of each canonical tag, and its reorder to and fro. With its headers (--onednn DIR with include/ and lib/, or ONEDNN_DIR): all of this,
for all names.
"""
import argparse
import ctypes as c
import os
import re
import sys
import zlib
from pathlib import Path

import numpy as np

import onednn

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "onednn.txt"
MOST = 1 << 22  # bytes of a buffer that is converted
MISNAMED = {"gIOhw2i8o16i2o", "gIOdhw2i8o16i2o"}  # oneDNN 3.2 says IO, but they stand for aBC..., which is OI
sys.path.insert(0, str(ROOT / "python"))


def read_enum(text, name):
    """The enumerators in order, {name: value}."""
    body = re.search(r"typedef enum \{((?:(?!typedef enum).)*?)\} " + name + ";", text, re.S).group(1)
    values, last = {}, -1
    for item in re.sub(r"//[^\n]*|/\*.*?\*/|^#[^\n]*", "", body, flags=re.S | re.M).split(","):
        if item.strip():
            key, _, value = (x.strip() for x in item.partition("="))
            last = last + 1 if not value else values[value] if value in values else int(value, 0)
            values[key] = last
    return values


class WithHeaders(onednn.OneDNN):
    """All names, and what a descriptor says of itself."""

    def __init__(self, folder):
        super().__init__(str(next((Path(folder) / "lib").glob("libdnnl.so*"))))
        text = "".join(p.read_text() for p in sorted((Path(folder) / "include/oneapi/dnnl").glob("dnnl*_types.h")))
        self.query = read_enum(text, "dnnl_query_t")
        tags = read_enum(text, "dnnl_format_tag_t")
        canonical = {}
        for name, value in tags.items():
            canonical.setdefault(value, name)
        self.names = [(n[5:], v, canonical[v][5:]) for n, v in tags.items() if v > tags["dnnl_format_tag_any"] and n != "dnnl_format_tag_last"]

    def ask(self, md, what, n):
        p = c.POINTER(c.c_int64)()
        self.check(self.lib.dnnl_memory_desc_query(md, self.query[what], c.byref(p)))
        return p[:n]

    def answer(self, dims, md):
        count = c.c_int()
        self.check(self.lib.dnnl_memory_desc_query(md, self.query["dnnl_query_inner_nblks_s32"], c.byref(count)))
        n = len(dims)
        return {"bytes": self.lib.dnnl_memory_desc_get_size(md), "strides": self.ask(md, "dnnl_query_strides", n),
                "padded": self.ask(md, "dnnl_query_padded_dims", n), "blocks": self.ask(md, "dnnl_query_inner_blks", count.value),
                "axes": self.ask(md, "dnnl_query_inner_idxs", count.value)}


def numbers(n):
    """The input of a conversion: none is 0."""
    return np.arange(1, n + 1, dtype=np.float32)


def dims_of(rank, turn=0):
    return [[5, 19, 3, 2, 2, 1, 2, 1], [18, 3, 4, 1, 3, 2, 1, 2], [16, 32, 1, 2, 1, 3, 1, 2], [2, 9, 17, 2, 2, 1, 1, 1]][turn][:rank]


def ours(rl, dims, tag):
    """The same facts from our descriptor."""
    d = rl.Desc(f"f32[{','.join(map(str, dims))}]@{tag}")
    by_axis = {}
    for axis, size, stride in d.digits:
        by_axis.setdefault(axis, []).append((size, stride))
    inner = sorted(((s, -k, a, n) for a, g in by_axis.items() for k, (n, s) in enumerate(g[1:])), reverse=True)
    return d, {"bytes": d.nbytes, "strides": [by_axis[a][0][1] for a in range(len(dims))],
               "padded": [int(np.prod([n for n, _ in by_axis[a]])) for a in range(len(dims))],
               "blocks": [n for _, _, _, n in inner], "axes": [a for _, _, a, _ in inner]}


def converted(rl, dims, d):
    x, y = numbers(int(np.prod(dims))).reshape(dims), np.full(d.nbytes // 4, 7, np.float32)
    rl.convert(d, y, rl.of_array(x), x)
    return x, y


def compare_live(rl, one, record):
    passed = failed = 0
    lines = []
    for name, value, canonical in (t for t in one.names if t[0] not in MISNAMED):
        rank = len(re.match("[A-Za-z]+", canonical).group())
        for turn in range(4 if name == canonical else 1):
            dims = dims_of(rank, turn)
            if rank > 8 or not (md := one.desc(dims, value)):
                continue
            want = one.answer(dims, md)
            d, got = ours(rl, dims, name)
            same = got == want
            if same and want["bytes"] <= MOST:
                x, y = converted(rl, dims, d)
                z = np.full(y.size, 9, np.float32)
                with one.reorder(one.desc(dims, one.tags["abcdefgh"[:rank]]), x, md, z) as run:
                    run()
                same = np.array_equal(y, z)
            if turn == 0 and want["bytes"] <= MOST:
                facts = " ".join(",".join(map(str, want[k])) or "-" for k in ("strides", "padded", "blocks", "axes"))
                lines.append(f"{name} {want['bytes']} {facts} {zlib.crc32(z.tobytes()) if same else 0:08x}")
            passed, failed = passed + same, failed + (not same)
            if not same and failed < 6:
                print(f"{name} {dims}\n  oneDNN {want}\n  ours   {got}")
    if record:
        GOLDEN.write_text("# tag, bytes, strides, padded sizes, inner blocks, their axes, crc32 of the reordered numbers 1, 2, ...\n" + "\n".join(lines) + "\n")
    return passed, failed


def compare_library(rl, one, rng):
    """Each canonical tag on random sizes: the bytes, the reorder to it from row-major, and the one back."""
    kinds = (("f32", np.float32), ("f16", np.float16), ("bf16", np.uint16), ("i8", np.int8), ("i32", np.int32))
    passed = failed = 0
    for tag, value in one.tags.items():
        rank = len(re.match("[A-Za-z]+", tag).group())
        if rank > 8:
            continue
        for turn in range(2):
            dims = [int(n) for n in rng.integers(1, {1: 200, 2: 90, 3: 40, 4: 20, 5: 9}.get(rank, 4), rank)]
            kind, numpy = kinds[rng.integers(len(kinds))]
            md, plain = one.desc(dims, value, kind), one.desc(dims, one.tags["abcdefgh"[:rank]], kind)
            if not md:
                continue
            d, row = (rl.Desc(f"{kind}[{','.join(map(str, dims))}]@{t}") for t in (tag, "abcdefgh"[:rank]))
            same = d.nbytes == one.size(md)
            if same and d.nbytes <= MOST:
                x = (rng.integers(1, 100, dims) + 0x3f80 * (kind == "bf16")).astype(numpy) # bits of 1.0 and more: oneDNN makes denormals 0
                y, z, back = (np.full(n // x.itemsize, 7, numpy) for n in (d.nbytes, d.nbytes, row.nbytes))
                rl.convert(d, y, row, x)
                with one.reorder(plain, x, md, z) as run:
                    run()
                rl.convert(row, back, d, z)
                same = np.array_equal(y, z) and np.array_equal(back.reshape(dims), x)
            passed, failed = passed + same, failed + (not same)
            if not same:
                print(f"{kind}{dims}@{tag}: {d.nbytes} bytes, oneDNN has {one.size(md)}, or other places")
            one.drop(md)
            one.drop(plain)
    return passed, failed


def compare_golden(rl):
    passed = failed = 0
    for line in GOLDEN.read_text().splitlines()[1:]:
        name, nbyte, *facts, crc = line.split()
        want = {k: [int(x) for x in f.split(",")] if f != "-" else [] for k, f in zip(("strides", "padded", "blocks", "axes"), facts)}
        dims = dims_of(len(want["strides"]))
        d, got = ours(rl, dims, name)
        same = got == {"bytes": int(nbyte), **want} and zlib.crc32(converted(rl, dims, d)[1].tobytes()) == int(crc, 16)
        passed, failed = passed + same, failed + (not same)
        if not same:
            print(f"{name} {dims}: oneDNN {want}, ours {got}")
    return passed, failed


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--onednn", default=os.environ.get("ONEDNN_DIR"))
    p.add_argument("--record", action="store_true")
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    os.environ.setdefault("RELAYOUT_LIBRARY", str(args.build.resolve() / "librelayout.so"))
    import relayout_layouts as rl
    if args.onednn:
        passed, failed = compare_live(rl, WithHeaders(args.onednn), args.record)
        print(f"all names in oneDNN's headers: {passed} passed, {failed} failed")
    else:
        passed, failed = compare_golden(rl)
        print(f"recorded from oneDNN, all its names: {passed} passed, {failed} failed")
    one = onednn.load()
    asked, wrong = compare_library(rl, one, np.random.default_rng(args.seed)) if one else (0, 0)
    print(f"oneDNN {one.version}, {len(one.tags)} tags: {asked} passed, {wrong} failed" if one else "oneDNN is not here to be asked")
    passed, failed = passed + asked, failed + wrong
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
