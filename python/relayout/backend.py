"""relayout as a backend of the onnx package (onnx.backend.base), in this process.

    import onnx, relayout.backend as backend
    y, = backend.prepare(onnx.load("model.onnx")).run([x])
    backend.prepare(model, optimize=True, target="ort")        # the same after relayout.optimize
"""
from __future__ import annotations

from typing import Any

from onnx.backend.base import Backend, BackendRep, namedtupledict

from . import Session
from . import optimize as optimize_model


class RelayoutRep(BackendRep):
    """A prepared model."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple:
        """inputs: in the graph's order, or by name; one array where there is one input.  A named tuple of arrays, in the order of outputs."""
        if not isinstance(inputs, (list, tuple, dict)):
            inputs = [inputs]
        made: Any = self.session.run(inputs)
        return namedtupledict("Outputs", list(made))(*made.values())


class RelayoutBackend(Backend):
    """Models are run by Session: a sequence is a list of arrays, an optional its content or None."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", *, optimize: bool = False, target: str = "generic", **kwargs: Any) -> RelayoutRep:
        """kwargs: of Session."""
        if optimize:
            model, _ = optimize_model(model, target=target, directory=kwargs.get("directory"))
        return RelayoutRep(Session(model, **kwargs))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


prepare = RelayoutBackend.prepare
run_model = RelayoutBackend.run_model
supports_device = RelayoutBackend.supports_device
