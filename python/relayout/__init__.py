"""relayout: ONNX models with the fewest layout conversions (Transposes that move data) that their outputs allow.

    import relayout
    model, report = relayout.optimize(model)                        # an onnx.ModelProto in, one out
    data, report = relayout.optimize("in.onnx", target="ort")       # a path or bytes in, bytes out
    relayout.optimize("in.onnx", "out.onnx", dims={"batch": 1})     # file to file, also beyond 2 GB
    report["conversions"]                                           # {'before': 32, 'after': 1, 'lower_bound': 1, ...}

    relayout.stats("in.onnx")["needed"]["moving"]                   # how many have to stay
    for c in relayout.explain("in.onnx")["conversions"]: ...        # why
    relayout.verify("in.onnx", "out.onnx")                          # the same outputs on random inputs, or Different
    y = relayout.Session("out.onnx").run({"x": x})["y"]             # on the CPU

A model is a path (str or os.PathLike), bytes, or an onnx.ModelProto.  Inputs and outputs keep their names, order and types; a result that is
not better is not taken: then the model comes back as it was and report["changed"] is False.  All functions release the interpreter
lock while they work, may run in several threads at once, and end on Ctrl-C.

The package onnx is not needed, except to pass ModelProto.  Reports are the JSON of the program's --json: docs/report.md, docs/explain.md.
"""
from __future__ import annotations

import json
import os
from enum import IntEnum
from operator import index
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from . import _core

__version__: str = _core.version
__all__ = ["optimize", "stats", "explain", "verify", "Session", "Port", "Status", "Error", "InvalidArgument", "CannotReadOrWrite",
           "InvalidModel", "Unsupported", "Different", "Stopped"]

Dims = Mapping[str, int]
Shapes = Mapping[str, Sequence[int]]
Layouts = Union[str, Mapping[str, str]]
Folder = Union[str, os.PathLike]
Model = TypeVar("Model")


class Status(IntEnum):
    """What went wrong; also the program's exit status."""
    INTERNAL = 1
    USAGE = 2
    IO = 3
    MODEL = 4
    LIMIT = 5
    DIFFER = 6
    PROOF = 7
    ASSERT = 8
    STOPPED = 9


class Error(RuntimeError):
    """The library refuses; `status` says of what kind, the text names object and place."""
    status = Status.INTERNAL


class InvalidArgument(Error, ValueError):
    """A wrong option or name."""
    status = Status.USAGE


class CannotReadOrWrite(Error, OSError):
    """A file that cannot be read or written."""
    status = Status.IO


class InvalidModel(Error, ValueError):
    """The bytes are not a valid ONNX model."""
    status = Status.MODEL


class Unsupported(Error):
    """Valid, but over a limit or not supported; also out of memory."""
    status = Status.LIMIT


class Different(Error, AssertionError):
    """verify: the outputs differ."""
    status = Status.DIFFER


class Stopped(Error):
    """The call was asked to stop."""
    status = Status.STOPPED


_ERRORS = {c.status: c for c in (InvalidArgument, CannotReadOrWrite, InvalidModel, Unsupported, Different, Stopped)}


def _call(f: Callable[..., Any], *args: Any) -> Any:
    try:
        return f(*args)
    except _core.Failure as e:
        status, message = e.args
        error = _ERRORS.get(status, Error)(message)
        error.status = Status(status)
    raise error


def _source(model: Any, directory: Optional[Folder]) -> Tuple[Optional[str], Optional[bytes], Optional[str]]:
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), None, None
    folder = None if directory is None else os.fspath(directory)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return None, bytes(model), folder
    if hasattr(model, "SerializeToString") and hasattr(model, "graph"):
        return None, model.SerializeToString(), folder
    raise TypeError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")


def _layouts(x: Optional[Layouts]) -> Optional[str]:
    return x if x is None or isinstance(x, str) else ",".join(f"{name}={order}" for name, order in x.items())


def _options(target: Optional[str] = None, objective: Optional[str] = None, time_limit: float = 5.0, max_memory: int = 0,
             input_layouts: Optional[Layouts] = None, output_layouts: Optional[Layouts] = None, dims: Optional[Dims] = None,
             input_shapes: Optional[Shapes] = None, threads: int = 1, progress: Optional[Callable[[str], object]] = None,
             log: Optional[Callable[[int, str], object]] = None, external_data: Optional[str] = None) -> tuple:
    for what, given in (("dims", dims), ("input_shapes", input_shapes)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{what} is a dict, {{name: size}}, not {type(given).__name__}")
    if not 1 <= index(threads) <= 1000000:
        raise InvalidArgument(f"threads is a number from 1 to 1000000, not {threads}")
    sizes = tuple(f"{name}={index(n)}".encode() for name, n in (dims or {}).items())
    shapes = tuple(f"{name}={','.join(str(index(n)) for n in shape)}".encode() for name, shape in (input_shapes or {}).items())
    return (target, objective, float(time_limit), max_memory, _layouts(input_layouts), _layouts(output_layouts), sizes, shapes, threads,
            progress, log, external_data)


def optimize(model: Model, output: Union[str, os.PathLike, None] = None, *, target: str = "generic", objective: str = "nodes",
             input_shapes: Optional[Shapes] = None, dims: Optional[Dims] = None, input_layouts: Optional[Layouts] = None,
             output_layouts: Optional[Layouts] = None, time_limit: float = 5.0, max_memory: int = 0, directory: Optional[Folder] = None,
             progress: Optional[Callable[[str], object]] = None, log: Optional[Callable[[int, str], object]] = None,
             external_data: Optional[str] = None) -> Tuple[Any, dict]:
    """Rewrites a model with the fewest conversions: (model, report).

    model           a path, bytes or an onnx.ModelProto; the result is bytes for the first two, a new ModelProto for the third
    output          a path: the result is written there (the old file or the whole new one) and the path is what comes back
    target          what runs it and what forms cost there: "generic", "onnx", "ort", ... (`relayout targets`), or a FILE.def
    objective       "nodes": fewest conversions; "bytes": fewest bytes moved; "time": least time by the target's table
    input_shapes    {"x": [1, 3, 224, 224]}: shapes that the model leaves open; the result has them
    dims            {"batch": 1}: symbolic sizes, likewise
    input_layouts   {"x": "nhwc"}: graph inputs that come in another order of dims, "free" for whichever is best; "x=nhwc,z=free" too
    output_layouts  the same for graph outputs
    time_limit      seconds for the solver; then the best found is taken
    max_memory      bytes; 0: 1 GiB (8 GiB where models are run), plus 32 for each byte of the model and its external data
    directory       of external data, where the model is bytes or a ModelProto that has some
    progress        is called with the name of each step; what it raises ends the call
    log             is called with a level (0 debug, 1 info, 2 warning) and a line
    external_data   where the weights go: "keep" (default), "inline" into the model; with output also one file's name in its folder, or a
                    folder's, "data/"
    """
    if external_data not in (None, "keep", "inline") and output is None:
        raise TypeError('external_data= is "keep" or "inline" without output=: what comes back in memory has no folder')
    options = _options(target, objective, time_limit, max_memory, input_layouts, output_layouts, dims, input_shapes, 1, progress, log,
                       external_data)
    path, data, folder = _source(model, directory)
    name = path
    if output is not None and data is not None:
        raise TypeError("output= goes with a path; what comes from memory comes back in memory")
    if output is not None:
        _, _, report = _call(_core.optimize, (path, None, None), os.fspath(output), options)
        return output, json.loads(report)
    if name is not None:
        try:
            with open(name, "rb") as f:
                data = f.read()
        except OSError as e:
            raise CannotReadOrWrite(f"{name}: cannot read: {e.strerror}") from e
        folder = os.path.dirname(name) or "."
    made, changed, report = _call(_core.optimize, (None, data, folder), None, options)
    found = json.loads(report)
    found["input"]["path"] = name
    if not hasattr(model, "SerializeToString"):
        return made, found
    if not changed and external_data != "inline":
        return model, found
    proto: Any = type(model)()
    proto.ParseFromString(made)
    return proto, found


def stats(model: Any, *, target: str = "generic", objective: str = "nodes", input_shapes: Optional[Shapes] = None,
          dims: Optional[Dims] = None, time_limit: float = 5.0, max_memory: int = 0, directory: Optional[Folder] = None) -> dict:
    """What moves data in a model ("counts", "transposes") and how much of it is needed ("needed", "transposes_needed"), as of optimize."""
    options = _options(target, objective, time_limit, max_memory, None, None, dims, input_shapes)
    return json.loads(_call(_core.stats, _source(model, directory), options))


def explain(model: Any, *, node: Optional[str] = None, target: str = "generic", objective: str = "nodes",
            input_shapes: Optional[Shapes] = None, dims: Optional[Dims] = None, time_limit: float = 5.0, max_memory: int = 0,
            directory: Optional[Folder] = None) -> dict:
    """Why each conversion stays, and where the other Transposes went (docs/explain.md).  node: only what this node or tensor has to do
    with."""
    options = _options(target, objective, time_limit, max_memory, None, None, dims, input_shapes)
    return json.loads(_call(_core.explain, _source(model, directory), options, node))


def verify(a: Any, b: Any, *, runs: int = 1, seed: int = 0, rtol: float = 1e-4, atol: float = 0, input_shapes: Optional[Shapes] = None,
           dims: Optional[Dims] = None, threads: int = 1, max_memory: int = 0, directory: Optional[Folder] = None) -> None:
    """Runs both models on the same random inputs.  Raises Different, naming the first output and element, and Unsupported where a node
    has no kernel.  atol 0: 1e-6, or rtol of the median of an output where that is more."""
    options = _options(None, None, 5.0, max_memory, None, None, dims, input_shapes, threads)
    _call(_core.verify, _source(a, directory), _source(b, directory), options, runs, seed, rtol, atol)


from ._session import Port, Session  # noqa: E402  (needs what is above)
