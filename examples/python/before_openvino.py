"""Before OpenVINO: optimize a file, then read it; as the compiled model takes NHWC images as they come, so may the graph."""
import numpy as np
from _common import MODEL, need, out_folder, say

ov, relayout = need("openvino", "relayout")
path = out_folder() / "for_openvino.onnx"

_, report = relayout.optimize(MODEL, path, target="generic", dims={"batch": 1})
say(report)

core = ov.Core()
x = np.random.default_rng(0).standard_normal((1, 96, 96, 3)).astype(np.float32)
before, after = (core.compile_model(core.read_model(str(p)), "CPU")(x)[0] for p in (MODEL, path))
np.testing.assert_allclose(before, after, rtol=1e-3, atol=1e-5)
