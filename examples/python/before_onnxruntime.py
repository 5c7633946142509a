"""Before an onnxruntime session: optimize in memory, for onnxruntime's CPU kernels."""
import numpy as np
from _common import MODEL, need, out_folder, say

ort, relayout = need("onnxruntime", "relayout")
out_folder()

model, report = relayout.optimize(MODEL, target="ort", dims={"batch": 1})
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
say(report)

# The same results as without it.
x = np.random.default_rng(0).standard_normal((1, 96, 96, 3)).astype(np.float32)
name = session.get_inputs()[0].name
before = ort.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"]).run(None, {name: x})
for a, b in zip(before, session.run(None, {name: x})):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
