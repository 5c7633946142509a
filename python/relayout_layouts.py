"""Layouts of buffers from Python: librelayout's descriptors, on NumPy arrays without copying.

    import numpy as np, relayout_layouts as rl
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    a, b = rl.of_array(x), rl.Desc("f32[1,3,2,2]@nChw8c")
    y = np.empty(b.nbytes // 4, np.float32)
    rl.convert(b, y, a, x)                  # x may be any view of an array; nothing else is copied
    b.offset(0, 2, 1, 0)                    # 18
    print(b.draw())

The library is build/librelayout.so beside this folder, or what RELAYOUT_LIBRARY names, with librelayout_runtime.so in the same folder.  include/relayout.h documents each function.
"""
import ctypes as c
import os
from pathlib import Path

import numpy as np

RANK, DIGITS = 8, 24
SAME, VIEW, COPY = range(3)
FORMATS = {"contiguous": 0, "channels_last": 1, "channels_last_3d": 2, "preserve": 3}
COO, CSR = range(2)


class _Digit(c.Structure):
    _fields_ = [("axis", c.c_uint32), ("size", c.c_int64), ("stride", c.c_int64)]


class _Desc(c.Structure):
    _fields_ = [("dtype", c.c_int32), ("rank", c.c_uint32), ("ndigit", c.c_uint32), ("dim", c.c_int64 * RANK), ("offset", c.c_int64),
                ("digit", _Digit * DIGITS)]


class _Error(c.Structure):
    _fields_ = [("text", c.c_char * 256)]


class _Comparison(c.Structure):
    _fields_ = [("relation", c.c_int), ("moved_bytes", c.c_int64), ("padding_bytes", c.c_int64), ("select_axis", c.c_int32)]


class _Sparse(c.Structure):
    _fields_ = [("kind", c.c_int), ("dtype", c.c_int32), ("rank", c.c_uint32), ("dim", c.c_int64 * RANK), ("nnz", c.c_int64),
                ("index", c.c_void_p), ("values", c.c_void_p)]


def _load():
    path = Path(os.environ.get("RELAYOUT_LIBRARY") or Path(__file__).resolve().parents[1] / "build" / "librelayout.so")
    lib = c.CDLL(str(path))
    moves = c.CDLL(str(path.with_name("librelayout_runtime.so")))
    for name in ("rl_desc_convert", "rl_sparse_count", "rl_to_sparse", "rl_from_sparse"):
        setattr(lib, name, getattr(moves, name))
    for name in ("rl_desc_offset", "rl_desc_elements", "rl_desc_bytes", "rl_min_buffer_bytes"):
        getattr(lib, name).restype = c.c_int64
    lib.rl_desc_print.restype = c.c_size_t
    return lib


_lib = _load()


class LayoutError(ValueError):
    pass


def _call(name, *args):
    e = _Error()
    if getattr(_lib, name)(*args, c.byref(e)):
        raise LayoutError(e.text.decode())


def _ints(x):
    return (c.c_int64 * max(len(x), 1))(*map(int, x))


class Desc:
    """A descriptor: Desc("i8[2,64,3,3]@NCHW4 offset=5")."""

    def __init__(self, text=None):
        self.c = _Desc()
        if text is not None:
            _call("rl_desc_parse", text.encode(), c.byref(self.c))

    def _made(self, name, *args):
        out = Desc()
        _call(name, c.byref(self.c), *args, c.byref(out.c))
        return out

    shape = property(lambda d: tuple(d.c.dim[:d.c.rank]))
    strides = property(lambda d: tuple(next(g.stride for g in d.c.digit if g.axis == a) for a in range(d.c.rank)))  # of the outer digits
    digits = property(lambda d: [(g.axis, g.size, g.stride) for g in d.c.digit[:d.c.ndigit]])
    elements = property(lambda d: _lib.rl_desc_elements(c.byref(d.c)))
    nbytes = property(lambda d: _lib.rl_desc_bytes(c.byref(d.c)))
    min_buffer_bytes = property(lambda d: _lib.rl_min_buffer_bytes(c.byref(d.c)))
    is_dense = property(lambda d: bool(_lib.rl_desc_is_dense(c.byref(d.c))))
    suggested = property(lambda d: list(FORMATS)[_lib.rl_suggest_format(c.byref(d.c))])

    def __str__(self):
        s = c.create_string_buffer(1024)
        _lib.rl_desc_print(c.byref(self.c), s, c.c_size_t(len(s)))
        return s.value.decode()

    def __eq__(self, other):
        return bool(_lib.rl_desc_equal(c.byref(self.c), c.byref(other.c)))

    def offset(self, *index):
        if len(index) != self.c.rank or any(not 0 <= i < n for i, n in zip(index, self.shape)):
            raise LayoutError(f"index {index} of shape {self.shape}")
        return _lib.rl_desc_offset(c.byref(self.c), _ints(index))

    def is_contiguous(self, memory_format="contiguous"):
        return bool(_lib.rl_is_contiguous(c.byref(self.c), FORMATS[memory_format]))

    def to_format(self, memory_format):
        """(the layout of x.to(memory_format=...), whether that is a copy)"""
        copies = c.c_int()
        out = Desc()
        _call("rl_to_format", c.byref(self.c), FORMATS[memory_format], c.byref(out.c), c.byref(copies))
        return out, bool(copies.value)

    def permute(self, *perm):
        return self._made("rl_desc_permute", (c.c_uint32 * max(len(perm), 1))(*perm))

    def slice(self, axis, start, step, count):
        return self._made("rl_desc_slice", c.c_uint32(axis), c.c_int64(start), c.c_int64(step), c.c_int64(count))

    def expand(self, *shape):
        return self._made("rl_desc_expand", c.c_uint32(len(shape)), _ints(shape))

    def reshape(self, *shape):
        return self._made("rl_desc_reshape", c.c_uint32(len(shape)), _ints(shape))

    def draw(self, kind="text"):
        p = c.c_void_p()
        _call("rl_desc_draw", c.byref(self.c), kind.encode(), c.byref(p))
        text = c.string_at(p).decode()
        _lib.rl_free(p)
        return text


def strided(dtype, shape, strides=None, offset=0):
    """Sizes and strides in elements; dtype is a name (f32, int8, u4)."""
    out = Desc()
    _call("rl_desc_strided", Desc(dtype + "[]").c.dtype, c.c_uint32(len(shape)), _ints(shape), _ints(strides) if strides is not None else None,
          c.c_int64(offset), c.byref(out.c))
    return out


def of_array(x):
    """The descriptor of an array's elements, as seen from its first one; strides must be whole elements and not negative."""
    if any(s % x.itemsize for s in x.strides):
        raise LayoutError(f"strides {x.strides} are no multiples of {x.itemsize} bytes")
    return strided(x.dtype.name, x.shape, [s // x.itemsize for s in x.strides])


def _buffer(d, x):
    """Address and bytes of an array's storage from its first element on: what a view reaches, or the whole of a contiguous array."""
    if x.flags.c_contiguous:
        return c.c_void_p(x.ctypes.data), c.c_size_t(x.nbytes)
    if of_array(x) != d:
        raise LayoutError("a strided array is described by of_array")
    return c.c_void_p(x.ctypes.data), c.c_size_t(d.nbytes)


def convert(to, out, source, x):
    """Writes x's elements, which lie as `source` says, to the array out as `to` says."""
    if not out.flags.writeable:
        raise LayoutError("the output array cannot be written")
    _call("rl_desc_convert", c.byref(to.c), *_buffer(to, out), c.byref(source.c), *_buffer(source, x))


def compare(a, b):
    """(SAME, VIEW or COPY, bytes moved, bytes of padding, the index_select that it is or None)"""
    r = _Comparison()
    _call("rl_desc_compare", c.byref(a.c), c.byref(b.c), c.byref(r))
    select = None
    if r.select_axis >= 0:
        index = _ints([0] * a.shape[r.select_axis])
        _lib.rl_desc_select(c.byref(a.c), c.byref(b.c), index)
        select = (r.select_axis, list(index))
    return r.relation, r.moved_bytes, r.padding_bytes, select


def propagate(*operands):
    """The layout of an element-wise op's result."""
    out = Desc()
    _call("rl_propagate", c.c_uint32(len(operands)), (_Desc * len(operands))(*(d.c for d in operands)), c.byref(out.c))
    return out


def to_sparse(d, x, kind):
    """(index, values) of an array: COO's rows of indices, or CSR's row starts and columns in one."""
    p, n = _buffer(d, x)
    nnz = c.c_int64()
    _call("rl_sparse_count", c.byref(d.c), p, n, c.byref(nnz))
    size = len(d.shape) * nnz.value if kind == COO else d.shape[0] + 1 + nnz.value
    index, values = np.zeros(size, np.int64), np.zeros(nnz.value, x.dtype)
    s = _Sparse(kind=kind, nnz=nnz.value, index=index.ctypes.data, values=values.ctypes.data)
    _call("rl_to_sparse", c.byref(d.c), p, n, c.byref(s))
    return index, values


def from_sparse(kind, index, values, to, out):
    index, values = np.ascontiguousarray(index, np.int64), np.ascontiguousarray(values)
    s = _Sparse(kind=kind, dtype=to.c.dtype, rank=to.c.rank, dim=to.c.dim, nnz=len(values), index=index.ctypes.data, values=values.ctypes.data)
    _call("rl_from_sparse", c.byref(s), c.byref(to.c), *_buffer(to, out))
