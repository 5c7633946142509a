"""Session: NumPy arrays in and out of librelayout_runtime."""
from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import Dims, Folder, InvalidArgument, Shapes, _call, _core, _options, _source

STRING = 8
NONE, SEQUENCE = -1, -2
# ONNX's TensorProto.DataType -> NumPy
_NUMPY = {1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8", 14: "c8", 15: "c16"}
# What only ml_dtypes has, its name there, and the bits of an element; without that package: unsigned numbers of the same bits.
_OTHERS = {16: ("bfloat16", 16), 17: ("float8_e4m3fn", 8), 18: ("float8_e4m3fnuz", 8), 19: ("float8_e5m2", 8), 20: ("float8_e5m2fnuz", 8),
           21: ("uint4", 4), 22: ("int4", 4), 23: ("float4_e2m1fn", 4), 24: ("float8_e8m0fnu", 8), 25: ("uint2", 2), 26: ("int2", 2)}


def onednn() -> Optional[Path]:
    """oneDNN as PyPI's onednn-cpu-gomp puts it into this environment, where the system's loader does not look; None where it is not, or
    where RELAYOUT_ONEDNN says what to take."""
    path = Path(sys.prefix, "lib", "libdnnl.so.3")
    return path if "RELAYOUT_ONEDNN" not in os.environ and path.exists() else None


@functools.lru_cache(maxsize=None)
def _load_onednn() -> None:
    """The runtime asks for libdnnl.so.3 by name, and gets the one that is loaded already."""
    path = onednn()
    try:
        if path:
            ctypes.CDLL(str(path))
    except OSError:  # for another machine, say: the reference kernels run
        pass


def _dtype(t: int) -> np.dtype:
    """How elements of ONNX's type t are held in an array: one each, also those of less than a byte."""
    if t in _NUMPY:
        return np.dtype(_NUMPY[t])
    if t == STRING:
        return np.dtype(object)
    name, bits = _OTHERS[t]
    try:
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        return np.dtype("u2" if bits == 16 else "u1")


def _bits(t: int) -> int:
    return _OTHERS[t][1] if t in _OTHERS else 8


def _pack(x: np.ndarray, bits: int) -> np.ndarray:
    """Elements of less than a byte, as ONNX packs them: the first in the low bits."""
    per = 8 // bits
    flat = x.view(np.uint8).reshape(-1) & ((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-flat.size % per, np.uint8)]).reshape(-1, per)
    return np.bitwise_or.reduce(flat << (np.arange(per, dtype=np.uint8) * bits), axis=1).astype(np.uint8)


def _unpack(data: np.ndarray, t: int, shape: Tuple[int, ...]) -> np.ndarray:
    bits = _bits(t)
    per = 8 // bits
    parts = (data[:, None] >> (np.arange(per, dtype=np.uint8) * bits)) & ((1 << bits) - 1)
    flat = parts.reshape(-1)[:int(np.prod(shape, dtype=np.int64))].astype(np.uint8)
    if t in (22, 26):  # int4, int2: the sign
        flat = np.where(flat >> (bits - 1), flat | (0xff << bits & 0xff), flat).astype(np.uint8)
    return flat.view(_dtype(t)).reshape(shape)


def _type_of(x: np.ndarray) -> int:
    """ONNX's type of an array whose type no declaration says."""
    if x.dtype.kind in "OSU":
        return STRING
    for t in (*_NUMPY, 16, 17, 18, 19, 20, 24):
        if _dtype(t) == x.dtype:
            return t
    raise InvalidArgument(f"no element type of ONNX is {x.dtype}")


class Port(NamedTuple):
    """An input or output as the graph declares it."""
    name: str
    dtype: Optional[np.dtype]                   #: None: a sequence or an optional, or not known
    shape: Optional[Tuple[Optional[int], ...]]  #: None: any rank; in it None: any size
    onnx_type: int                              #: TensorProto.DataType


def _port(name: str, t: int, dims: Optional[tuple]) -> Port:
    return Port(name, _dtype(t) if t else None, None if dims is None else tuple(None if n < 0 else n for n in dims), t)


class Session:
    """A model read and prepared once, to be run as often as wanted, on the CPU.

        s = relayout.Session("model.onnx", threads=4)
        y = s.run({"x": x})["y"]                  # all outputs by name
        a, b = s.run([x], outputs=["a", "b"])     # inputs in their order; these outputs as a list

    A sequence is a list of arrays, an optional its content or None.

    Convolutions and products are oneDNN's where it can be loaded (`pip install onednn-cpu-gomp`), else relayout's own, which are slower.
    A model with a node that has no kernel is refused here (Unsupported).  Runs of one session wait for each other.
    """

    def __init__(self, model: Any, *, input_shapes: Optional[Shapes] = None, dims: Optional[Dims] = None, threads: int = 1,
                 max_memory: int = 0, directory: Optional[Folder] = None) -> None:
        _load_onednn()
        options = _options(None, None, 5.0, max_memory, None, None, dims, input_shapes, threads)
        self._lock = threading.Lock()
        self._session = _call(_core.session, _source(model, directory), options)
        inputs, outputs = _core.ports(self._session)
        self.inputs = [_port(*p) for p in inputs]
        self.outputs = [_port(*p) for p in outputs]
        self._bound: Dict[str, np.ndarray] = {}

    def bind(self, name: str, array: Optional[np.ndarray]) -> None:
        """From now on the input of this name is read from this array, or the output written to it, where it is: any view with strides, no copy
        (an output is moved once where its kernel cannot make it so).  None: no longer.

            s.bind("image", frame[:600, :, :3][None])   # in place of run({"image": ...}); fill `frame` again before each run
            s.bind("scores", scores)
            s.run({})
        """
        ports = self.inputs + self.outputs
        port = next((p for p in ports if p.name == name), None)
        if port is None:
            raise InvalidArgument(f"no input or output is called {name!r}; there are {', '.join(p.name for p in ports)}")
        with self._lock:
            if array is None:
                _call(_core.bind, self._session, name, 1, (), (), None, 0)
                self._bound.pop(name, None)
                return
            strides = _strides(name, port, array, name in [p.name for p in self.outputs])
            nbyte = array.itemsize + sum((n - 1) * s for n, s in zip(array.shape, array.strides)) if array.size else 0
            _call(_core.bind, self._session, name, port.onnx_type, array.shape, strides, array.ctypes.data, nbyte)
            self._bound[name] = array

    def _input(self, name: str, value: Any) -> Tuple[tuple, Any]:
        """What _core.run takes, and what must live as long as that."""
        port = next((p for p in self.inputs if p.name == name), None)
        if port is None:
            raise InvalidArgument(f"no input is called {name!r}; there are {', '.join(p.name for p in self.inputs)}")
        if port.dtype is None and value is None:
            return (name, NONE, (), 0, 0), None
        if port.dtype is None and isinstance(value, (list, tuple)):
            items = [_given(None, np.asarray(x), 0, f"input {name!r}") for x in value]
            return (name, SEQUENCE, (len(items),), [x for x, _ in items], 0), items
        x = np.asarray(value) if isinstance(value, np.ndarray) or not port.dtype or port.onnx_type == STRING else np.asarray(value, dtype=port.dtype)
        return _given(name, x, port.onnx_type, f"input {name!r}")

    def run(self, inputs: Union[Mapping[str, Any], Sequence[Any]],
            outputs: Optional[Sequence[str]] = None) -> Union[Dict[str, Any], list]:
        """The outputs by name, or as a list where `outputs` says which.  Inputs by name, or in the graph's order; those with a default may be
        left out.  Arrays must have the declared element type; lists and numbers get it."""
        wanted = [p.name for p in self.inputs if p.name not in self._bound]
        named = inputs if isinstance(inputs, Mapping) else dict(zip(wanted, inputs))
        if not isinstance(inputs, Mapping) and len(named) != len(inputs):
            raise InvalidArgument(f"{len(inputs)} inputs for a model that has {len(wanted)}{' without those that are bound' if self._bound else ''}")
        given = [self._input(name, value) for name, value in named.items()]
        with self._lock:
            there = [self._bound.get(p.name) for p in self.outputs]
            made = _call(_core.run, self._session, [g for g, _ in given], bytes(b is not None for b in there))
        arrays = {p.name: _array(*m) if b is None else b for p, m, b in zip(self.outputs, made, there)}
        if outputs is None:
            return arrays
        missing = [name for name in outputs if name not in arrays]
        if missing:
            raise InvalidArgument(f"no output is called {missing[0]!r}; there are {', '.join(arrays)}")
        return [arrays[name] for name in outputs]


def _strides(name: str, port: Port, x: np.ndarray, written: bool) -> Tuple[int, ...]:
    """In elements."""
    if port.dtype is None or x.dtype != port.dtype or port.onnx_type == STRING or _bits(port.onnx_type) < 8:
        raise InvalidArgument(f"{name!r}: an array of {x.dtype} cannot be bound; the model has {port.dtype}")
    if any(s < 0 or s % x.itemsize for s in x.strides) or (written and not x.flags.writeable):
        raise InvalidArgument(f"{name!r}: strides of whole elements, not negative, are wanted, and for an output an array that can be written")
    return tuple(s // x.itemsize for s in x.strides)


def _given(name: Optional[str], x: np.ndarray, t: int, what: str) -> Tuple[tuple, Any]:
    """An array as _core.run takes it, of ONNX's type t (0: whatever it is), and what must live as long as that."""
    t = t or _type_of(x)
    if t == STRING:
        texts = tuple(s if isinstance(s, bytes) else str(s).encode() for s in x.reshape(-1).tolist())
        return (name, t, x.shape, texts, 8 * len(texts)), texts
    if x.dtype != _dtype(t):
        raise InvalidArgument(f"{what} has element type {x.dtype}, and the model wants {_dtype(t)}")
    x = np.ascontiguousarray(x).reshape(x.shape)
    packed = _pack(x, _bits(t)) if _bits(t) < 8 else x
    return (name, t, x.shape, packed.ctypes.data, packed.nbytes), packed


def _array(t: int, shape: Tuple[int, ...], data: Any) -> Any:
    if t == NONE:
        return None
    if t == SEQUENCE:
        return [_array(*item) for item in data]
    if t == STRING:
        out = np.empty(len(data), dtype=object)
        out[:] = [s.decode(errors="surrogateescape") for s in data]
        return out.reshape(shape)
    if _bits(t) < 8:
        return _unpack(np.frombuffer(data, np.uint8), t, shape)
    return np.frombuffer(data, _dtype(t)).reshape(shape)
