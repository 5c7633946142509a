"""oneDNN 3 by ctypes: its memory descriptors and its reorder, for test_layout_onednn.py and bench/move.py.

    one = onednn.load()                                 # None where there is none
    a, b = one.desc([1, 3, 2, 2], one.tags["abcd"]), one.desc([1, 3, 2, 2], one.tags["aBcd8b"])
    one.size(b)                                         # 128 bytes
    with one.reorder(a, x, b, y) as run:                # x, y: NumPy arrays
        run()

The numbers are those of its dnnl_types.h, which every 3.x keeps (runtime/dnnl.h has more of them); the tags are what it calls them itself.
"""
import ctypes as c
import ctypes.util
import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path

TYPES = {"f16": 1, "bf16": 2, "f32": 3, "i32": 4, "i8": 5, "u8": 6, "f64": 7}
SRC, DST = 1, 17


class Arg(c.Structure):
    _fields_ = [("arg", c.c_int), ("memory", c.c_void_p)]


class Version(c.Structure):
    _fields_ = [("major", c.c_int), ("minor", c.c_int), ("patch", c.c_int)]


def load():
    """The file that RELAYOUT_ONEDNN names, the one that scripts/setup.sh installs, or the system's."""
    named = os.environ.get("RELAYOUT_ONEDNN")
    own = Path(sys.prefix) / "lib" / "libdnnl.so.3"
    path = named if named is not None else str(own) if own.exists() else ctypes.util.find_library("dnnl")
    try:
        one = OneDNN(path) if path else None
    except OSError:
        return None
    return one if one and one.version.startswith("3.") else None


class OneDNN:
    def __init__(self, path):
        self.lib = c.CDLL(path)
        self.lib.dnnl_memory_desc_get_size.restype = c.c_size_t
        self.lib.dnnl_fmt_tag2str.restype = c.c_char_p
        self.lib.dnnl_version.restype = c.POINTER(Version)
        v = self.lib.dnnl_version().contents
        self.version = f"{v.major}.{v.minor}.{v.patch}"
        self.engine, self.stream = c.c_void_p(), c.c_void_p()
        self.check(self.lib.dnnl_engine_create(c.byref(self.engine), 1, c.c_size_t(0)))
        self.check(self.lib.dnnl_stream_create(c.byref(self.stream), self.engine, 1))
        self.tags = {}  # "aBcd8b" -> its number; there is no end of them that one could ask for
        for value in range(2, 4096):
            name = self.lib.dnnl_fmt_tag2str(value).decode()
            if re.fullmatch("[A-La-l]+([0-9]+[a-l])*", name):
                self.tags[name] = value

    def check(self, status):
        if status:
            raise RuntimeError(f"oneDNN says {status}")

    def desc(self, dims, tag, dtype="f32"):
        """A memory descriptor, or None where oneDNN has none for these sizes."""
        md = c.c_void_p()
        bad = self.lib.dnnl_memory_desc_create_with_tag(c.byref(md), len(dims), (c.c_int64 * 12)(*dims), TYPES[dtype], tag)
        return None if bad else md

    def strided(self, dims, strides, dtype="f32"):
        md = c.c_void_p()
        self.check(self.lib.dnnl_memory_desc_create_with_strides(c.byref(md), len(dims), (c.c_int64 * 12)(*dims), TYPES[dtype],
                                                                 (c.c_int64 * 12)(*strides)))
        return md

    def size(self, md):
        return self.lib.dnnl_memory_desc_get_size(md)

    def drop(self, md):
        self.lib.dnnl_memory_desc_destroy(md)

    @contextmanager
    def reorder(self, source, x, md, y):
        """A function that copies x, which lies as `source` says, to y, as md says. RuntimeError: oneDNN has none."""
        pd, prim, a, b = (c.c_void_p() for _ in range(4))
        self.check(self.lib.dnnl_reorder_primitive_desc_create(c.byref(pd), source, self.engine, md, self.engine, None))
        self.check(self.lib.dnnl_primitive_create(c.byref(prim), pd))
        self.check(self.lib.dnnl_memory_create(c.byref(a), source, self.engine, c.c_void_p(x.ctypes.data)))
        self.check(self.lib.dnnl_memory_create(c.byref(b), md, self.engine, c.c_void_p(y.ctypes.data)))
        args = (Arg * 2)(Arg(SRC, a), Arg(DST, b))
        execute, wait = self.lib.dnnl_primitive_execute, self.lib.dnnl_stream_wait
        on = c.c_void_p.from_param(self.stream.value)
        said = (c.c_void_p.from_param(prim.value), on, c.c_int.from_param(2), c.byref(args))

        def run():  # looked up and converted before: small tensors take hardly longer than that
            self.check(execute(*said) or wait(on))
        yield run
        for free, what in (("memory", b), ("memory", a), ("primitive", prim), ("primitive_desc", pd)):
            getattr(self.lib, f"dnnl_{free}_destroy")(what)
