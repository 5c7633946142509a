"""In a pipeline of optimizers, here around onnxslim: what folds constants and fuses goes first, relayout last; and nothing that a later
step hid stays, as each step takes and gives a ModelProto."""
from _common import MODEL, need, out_folder, say

onnxslim, onnx, relayout = need("onnxslim", "onnx", "relayout")

STEPS = [("onnxslim", lambda m: onnxslim.slim(m)), ("relayout", lambda m: relayout.optimize(m, target="ort")[0])]

model = onnx.load(MODEL)
for name, step in STEPS:
    model = step(model)
    print(f"{name}: {sum(n.op_type == 'Transpose' for n in model.graph.node)} Transposes")
onnx.checker.check_model(model)
onnx.save(model, out_folder() / "slim.onnx")
say(relayout.optimize(model, target="ort")[1])
