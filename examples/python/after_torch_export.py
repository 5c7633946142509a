"""After torch.onnx.export: the exported ModelProto goes through relayout before it is saved."""
from _common import need, out_folder, say

torch, onnx, relayout = need("torch", "onnx", "relayout")
path = out_folder() / "from_torch.onnx"


class Block(torch.nn.Module):
    """A ConvNeXt block: depthwise Conv on N,C,H,W, then LayerNorm and Linear on N,H,W,C."""

    def __init__(self, n=32):
        super().__init__()
        self.conv = torch.nn.Conv2d(n, n, 7, padding=3, groups=n)
        self.norm = torch.nn.LayerNorm(n)
        self.up, self.down = torch.nn.Linear(n, 4 * n), torch.nn.Linear(4 * n, n)

    def forward(self, x):
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        return x + self.down(torch.nn.functional.gelu(self.up(y))).permute(0, 3, 1, 2)


torch.onnx.export(torch.nn.Sequential(Block(), Block()).eval(), (torch.randn(1, 32, 14, 14),), str(path), dynamo=False)
model, report = relayout.optimize(onnx.load(path), target="ort")  # it will run in onnxruntime: that decides which forms pay
say(report)
onnx.checker.check_model(model)
onnx.save(model, path)
