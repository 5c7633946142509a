"""After tf2onnx: its NHWC graphs have a Transpose before and after each Conv.

tf2onnx's own optimizer leaves the one behind the input, which has to stay while the graph takes N,H,W,C images.  Where the caller can as
well give N,C,H,W, input_layouts says so, and that one goes, too.
"""
from _common import need, out_folder, say

tf, tf2onnx, onnx, relayout = need("tensorflow", "tf2onnx", "onnx", "relayout")
path = out_folder() / "from_tensorflow.onnx"

net = tf.keras.Sequential([tf.keras.Input((32, 32, 3), name="x"), tf.keras.layers.Conv2D(8, 3, activation="swish"),
                           tf.keras.layers.Conv2D(8, 3, activation="swish"), tf.keras.layers.GlobalAveragePooling2D()])
function = tf.function(lambda x: net(x), input_signature=[tf.TensorSpec((1, 32, 32, 3), tf.float32, name="x")])
model, _ = tf2onnx.convert.from_function(function, input_signature=function.input_signature, opset=17)
model, report = relayout.optimize(model, input_layouts={"x": "nhwc->nchw"})
say(report)
onnx.checker.check_model(model)
onnx.save(model, path)
