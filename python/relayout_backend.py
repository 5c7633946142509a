"""relayout as a backend of the onnx package (onnx.backend.base), for every kind of input: each run is one `relayout run`, in a process of its
own.  Where the Python package `relayout` is installed, and no program is named, a model of tensors runs in this process instead
(relayout.backend).

  from relayout_backend import RelayoutBackend
  y, = RelayoutBackend.prepare(model).run([x])

Inputs are a list in the order of the graph's inputs, or a dict by name. What NumPy has no type for goes through .pb files.
RELAYOUT_SERVING: a program that runs many command lines in one process (tests/serve.c), for the tests.
"""
import os
import select
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend, BackendRep

UNSUPPORTED = 5  # exit status
NPY_KINDS = "biufc"


class Refused(RuntimeError):
    """The program says before it runs that it does not support the model."""


def default_program():
    return os.environ.get("RELAYOUT", str(Path(__file__).resolve().parents[1] / "build" / "relayout"))


def _write(folder, i, value, declared):
    """The value as a file; its path."""
    if isinstance(value, np.ndarray) or np.isscalar(value):
        array = np.asarray(value)
        if array.dtype.kind in NPY_KINDS and array.dtype.isbuiltin == 1:
            path = folder / f"in{i}.npy"
            np.save(path, array, allow_pickle=False)
            return path
    path = folder / f"in{i}.pb"
    kind = declared.WhichOneof("value")
    if kind == "optional_type":
        inner = declared.optional_type.elem_type.WhichOneof("value")
        proto = numpy_helper.from_optional(value, None) if value is not None else onnx.OptionalProto()
        assert value is None or inner in ("tensor_type", "sequence_type")
    elif kind == "sequence_type":
        proto = numpy_helper.from_list(value)
    elif isinstance(value, onnx.TensorProto):
        proto = value
    else:
        array = np.asarray(value)
        if array.dtype.kind in "OSU" and declared.tensor_type.elem_type == onnx.TensorProto.STRING:
            proto = onnx.helper.make_tensor("", onnx.TensorProto.STRING, array.shape, [_bytes(s) for s in array.flatten()])
        else:
            proto = numpy_helper.from_array(array)
    path.write_bytes(proto.SerializeToString())
    return path


def _bytes(s):
    return s if isinstance(s, bytes) else str(s).encode()


def _file_of(folder, name):
    """The program's file for an output: bytes that file names should not have are %XX."""
    plain = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-+=@,"
    text = "".join(chr(b) if b in plain or (b == 46 and i) else f"%{b:02X}" for i, b in enumerate(name.encode()))
    for end in (".npy", ".pb"):
        if (folder / (text + end)).exists():
            return folder / (text + end)
    raise RuntimeError(f"no file for the output {name!r}")


def _read(path, declared):
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    data = path.read_bytes()
    if not data:
        return None
    kind = declared.WhichOneof("value")
    if kind == "optional_type":
        kind = declared.optional_type.elem_type.WhichOneof("value")
    proto = onnx.SequenceProto() if kind == "sequence_type" else onnx.TensorProto()
    proto.ParseFromString(data)
    if kind == "sequence_type":
        return numpy_helper.to_list(proto)
    return numpy_helper.to_array(proto)


_server = None, None  # the process that it is of, the program


def _served(serving, args, said, limit):
    """The exit status, as subprocess has it, of a run in a process that has others before and after; its stderr is in the file."""
    global _server
    if _server[0] != os.getpid() or _server[1].poll() is not None:
        _server = os.getpid(), subprocess.Popen([serving], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    p = _server[1]
    p.stdin.write("\t".join([str(said), *args]).encode() + b"\n")
    if not select.select([p.stdout], [], [], limit)[0]:
        p.kill()
        raise subprocess.TimeoutExpired(args, limit)
    answer = p.stdout.readline()
    if answer and int(answer) not in (0, UNSUPPORTED):
        p.kill()  # a device that failed once may not answer again
        p.wait()  # so that the next run is not this one's, whose end takes a while with a device
    return int(answer) if answer else p.wait()


def ran(program, args, tmp, limit):
    """(exit status, stderr) of a command line; tmp: a folder for it."""
    if "RELAYOUT_SERVING" in os.environ:
        status = _served(os.environ["RELAYOUT_SERVING"], args, tmp / "said", limit)
        said = tmp / "said"
        return status, said.read_text(errors="replace") if said.exists() else ""
    p = subprocess.run([program, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=limit)
    return p.returncode, p.stderr.decode(errors="replace")


def _only_tensors(graph):
    return all(p.type.WhichOneof("value") == "tensor_type" for p in [*graph.input, *graph.output])


class RelayoutRep(BackendRep):
    def __init__(self, model, program, path, limit, options):
        self.model, self.program, self.path, self.limit, self.options = model, program, path, limit, options
        self.said = ""  # the last run's lines about itself

    def run(self, inputs, **kwargs):
        graph = self.model.graph
        if not isinstance(inputs, dict):
            inputs = {i.name: x for i, x in zip(graph.input, inputs)}
        declared = {i.name: i.type for i in graph.input}
        with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
            tmp = Path(tmp)
            model = self.path
            if model is None:
                model = tmp / "model.onnx"
                model.write_bytes(self.model.SerializeToString())
            args = ["run", str(model), "--output-dir", str(tmp / "out"), *self.options]
            for i, (name, value) in enumerate(inputs.items()):
                args += ["--input", f"{name}={_write(tmp, i, value, declared[name])}"]
            status, self.said = ran(self.program, args, tmp, self.limit)
            if status:
                lines = self.said.strip().splitlines() or [f"status {status}"]
                error = Refused if status == UNSUPPORTED else RuntimeError
                raise error(lines[-1] if status > 0 else f"killed by signal {-status}")
            return tuple(_read(_file_of(tmp / "out", o.name), o.type) for o in graph.output)


class RelayoutBackend(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", program=None, path=None, limit=None, options=(), **kwargs):
        """path: the model's file where its weights lie beside it."""
        if program is None and "RELAYOUT" not in os.environ and not options and _only_tensors(model.graph):
            try:
                from relayout.backend import RelayoutBackend as InProcess
            except ImportError:
                pass
            else:
                return InProcess.prepare(path or model, device)
        return RelayoutRep(model, program or default_program(), path, limit, options)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"
