"""Layouts from Python and from the command line: NumPy's strides are the oracle for views and conversions, the drawings and command
outputs in docs/layouts.md are what the command prints, .npy files convert there and back."""
import os
import re
import shlex
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

import numpy as np

from common import ROOT, arguments, program

sys.path.insert(0, str(ROOT / "python"))


def check_views(rl, rng):
    for _ in range(3000):
        rank = int(rng.integers(1, 5))
        x = np.arange(int(np.prod(shape := rng.integers(1, 5, rank)))).reshape(shape).astype(np.int32)
        d = rl.of_array(x)
        for _ in range(3):
            kind = rng.integers(0, 4)
            if kind == 0:
                p = rng.permutation(x.ndim)
                x, d = x.transpose(p), d.permute(*map(int, p))
            elif kind == 1:
                a = int(rng.integers(x.ndim))
                start, step = int(rng.integers(x.shape[a])), int(rng.integers(1, 3))
                count = len(range(start, x.shape[a], step))
                x, d = x[(slice(None),) * a + (slice(start, None, step),)], d.slice(a, start, step, count)
            elif kind == 2 and x.ndim < 5:
                shape = (2,) + tuple(5 if n == 1 else n for n in x.shape)
                x, d = np.broadcast_to(x, shape), d.expand(*shape)
            elif x.size:
                shape = (x.shape[0] * x.shape[1],) + x.shape[2:] if x.ndim > 1 else (1, x.shape[0])
                try:
                    y = x.view()
                    y.shape = shape
                except AttributeError:
                    continue  # NumPy would copy; ours may still be a view, of more digits
                x, d = y, d.reshape(*shape)
        assert d.shape == x.shape
        base = d.offset(*[0] * x.ndim)
        for k in range(min(x.size, 40)):
            i = np.unravel_index(int(rng.integers(x.size)), x.shape)
            at = sum(int(a) * s for a, s in zip(i, x.strides)) // x.itemsize
            assert d.offset(*map(int, i)) - base == at, (str(d), x.shape, x.strides)


def check_conversions(rl, rng):
    for dtype in (np.int8, np.float16, np.float32, np.float64, np.complex128):
        for _ in range(60):
            x = rng.integers(-99, 99, rng.integers(1, 9, 4)).astype(dtype)
            v = x.transpose(rng.permutation(4))[::1, :, ::2]
            a = rl.of_array(v)
            for name in ("nchw", "nhwc", "nChw8c", "CHWN4", "ABcd4b2a"):
                b = rl.Desc(f"{str(a).split('[')[0]}[{','.join(map(str, v.shape))}]@{name}")
                y, back = np.full(b.nbytes // v.itemsize, 77, dtype), np.zeros(v.shape, dtype)
                rl.convert(b, y, a, v)
                rl.convert(rl.of_array(back), back, b, y)
                assert np.array_equal(back, v), (name, v.shape)
                assert np.count_nonzero(y) == np.count_nonzero(v)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for bad in (lambda: rl.convert(rl.of_array(x), x[::-1], rl.of_array(x), x), lambda: rl.Desc("f32[2,3]@nhwc"), lambda: rl.of_array(x).offset(2, 0)):
        try:
            bad()
        except rl.LayoutError:
            continue
        raise AssertionError("not refused")


def check_sparse(rl, rng):
    for _ in range(200):
        x = rng.integers(-2, 3, rng.integers(0, 6, 2)).astype(np.float32) * (rng.random() > 0.2)
        x = (x if rng.random() < 0.5 else x.T) * np.float32(-1)  # makes -0.0, which is a zero
        i = np.array(np.nonzero(x))
        index, values = rl.to_sparse(rl.of_array(x), x, rl.COO)
        assert np.array_equal(index.reshape(2, -1), i) and np.array_equal(values, x[x != 0])
        index, values = rl.to_sparse(rl.of_array(x), x, rl.CSR)
        assert np.array_equal(np.diff(index[:len(x) + 1]), np.count_nonzero(x, axis=1)) and np.array_equal(index[len(x) + 1:], i[1])
        y = np.full(x.shape, 7, np.float32)
        rl.from_sparse(rl.CSR, index, values, rl.of_array(y), y)
        assert np.array_equal(x, y)


def check_propagation_of_documents(rl):
    x = rl.strided("f32", (10, 3, 32, 32))
    assert x.strides == (3072, 1024, 32, 1)
    y, copies = x.to_format("channels_last")
    assert y.strides == (3072, 1, 96, 3) and copies and y.is_contiguous("channels_last") and not y.to_format("channels_last")[1]


def run(prog, *args):
    p = subprocess.run([prog, "layout", *map(str, args)], capture_output=True, text=True)
    return p.returncode, p.stdout + p.stderr


def check_docs(prog):
    """Each `$ relayout layout ...` in the document is followed by what it prints; each picture is what draw --to svg makes."""
    text = (ROOT / "docs" / "layouts.md").read_text()
    blocks = re.findall(r"```console\n(\$ relayout.*?)```", text, re.S)
    commands = 0
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, want = part.partition("\n")
            words = shlex.split(line)
            assert words[:2] == ["relayout", "layout"], line
            status, out = run(prog, *words[2:])
            assert out == want, f"{line}\nprints\n{out}\nthe document says\n{want}"
            commands += 1
    pictures = re.findall(r"!\[`([^`]*)`\]\((\S+\.svg)\)", text)
    for line, path in pictures:
        status, out = run(prog, *shlex.split(line)[2:])
        assert status == 0 and out == (ROOT / "docs" / path).read_text(), f"{path} is not what {line} draws"
        boxes = ElementTree.fromstring(out).findall("{http://www.w3.org/2000/svg}rect")
        places = {(b.get("x"), b.get("y")) for b in boxes}
        assert len(places) == len(boxes) > 80, path
    assert commands > 10 and len(pictures) >= 5


def check_files(prog, rng):
    with tempfile.TemporaryDirectory() as tmp:
        path = lambda name: os.path.join(tmp, name)
        x = rng.integers(0, 99, (2, 20, 3, 5)).astype(np.int8)
        np.save(path("x.npy"), x)
        np.save(path("last.npy"), np.ascontiguousarray(x.transpose(0, 2, 3, 1)))
        np.save(path("fortran.npy"), np.asfortranarray(x))
        want = np.zeros((2, 32, 3, 5), np.int8)
        want[:, :20] = x
        want = want.reshape(2, 2, 16, 3, 5).transpose(0, 1, 3, 4, 2)
        for name, layout in (("x.npy", "nchw"), ("last.npy", "nhwc"), ("fortran.npy", "nchw")):
            assert run(prog, "convert", path(name), path("y.bin"), "--from", layout, "--to", "nChw16c")[0] == 0
            assert np.array_equal(np.fromfile(path("y.bin"), np.int8), want.ravel()), name
        assert run(prog, "convert", path("x.npy"), path("y.npy"), "--from", "nchw", "--to", "nChw16c")[0] == 0
        assert np.array_equal(np.load(path("y.npy")), want)
        for source in ("y.bin", "y.npy"):
            status, out = run(prog, "convert", path(source), path("z.npy"), "--from", "nChw16c", "--shape", "2,20,3,5", "--dtype", "int8", "--to", "nchw")
            assert status == 0 and np.array_equal(np.load(path("z.npy")), x), out
        status, out = run(prog, "convert", path("y.bin"), path("z.npy"), "--from", "nChw16c", "--shape", "2,40,3,5", "--dtype", "int8", "--to", "nchw")
        assert status == 2 and "has 960 bytes, i8[2,40,3,5]@aBcd16b needs 1440" in out, out
        open(path("long.bin"), "wb").write(bytes(13))
        status, out = run(prog, "convert", path("long.bin"), path("z.bin"), "--from", "nchw", "--to", "nhwc", "--shape", "1,3,2,2", "--dtype", "i8")
        assert status == 2 and "has 13 bytes" in out and "needs 12" in out and not os.path.exists(path("z.bin"))
        open(path("rows.bin"), "wb").write(bytes(10))
        assert run(prog, "convert", path("rows.bin"), path("z.bin"), "--from", "i8[2,3] strides=[5,1]", "--to", "i8[2,3]")[0] == 0
        assert run(prog, "convert", path("none.npy"), path("z.npy"), "--from", "nchw", "--to", "nhwc")[0] == 3
        assert run(prog, "convert", path("x.npy"), path("z.npy"), "--from", "nChw16c", "--to", "nhwc")[0] == 2
        open(path("four.bin"), "wb").write(bytes([0x10, 0x32, 0x54, 0x76, 0x98, 0xBA]))
        assert run(prog, "convert", path("four.bin"), path("five.bin"), "--from", "nchw", "--to", "nhwc", "--shape", "1,3,2,2", "--dtype", "u4")[0] == 0
        assert open(path("five.bin"), "rb").read() == bytes([0x40, 0x18, 0x95, 0x62, 0x3A, 0xB7])


def main():
    args = arguments(__doc__).parse_args()
    prog = program(args)
    os.environ.setdefault("RELAYOUT_LIBRARY", str(args.build.resolve() / "librelayout.so"))
    import relayout_layouts as rl
    rng = np.random.default_rng(1)
    checks = [lambda: check_views(rl, rng), lambda: check_conversions(rl, rng), lambda: check_sparse(rl, rng),
              lambda: check_propagation_of_documents(rl), lambda: check_files(prog, rng), lambda: check_docs(prog)]
    for check in checks:
        check()
    print(f"{len(checks)} passed, 0 failed")


if __name__ == "__main__":
    main()
