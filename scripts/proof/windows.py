"""Sizes that windows make: convolutions and pools, and ConvTranspose, which goes the other way.

By ONNX's definition: its inference rounds towards zero (a window that does not fit has no place), counts a last window that lies behind the tensor where
nothing is padded (auto_pad VALID), and has no answer to an output_shape that is less than the input's sizes.
"""
CONVS = ("Conv", "ConvInteger", "QLinearConv")
POOLS = ("AveragePool", "LpPool", "MaxPool")
TURNED = ("ConvTranspose",)


class Windows:
    def __init__(self, node, kernel):
        """kernel: sizes that a weight has, or None."""
        kernel = tuple(node.attr("kernel_shape", kernel) or ())
        n = self.n = len(kernel)
        self.auto = node.attr("auto_pad", "NOTSET")
        lists = [node.attr(name, default) for name, default in (("strides", [1] * n), ("dilations", [1] * n), ("output_padding", [0] * n))]
        self.pads = node.attr("pads", [0] * 2 * n) if self.auto == "NOTSET" else [0] * 2 * n
        self.is_read = bool(n) and all(len(x) == n for x in lists) and len(self.pads) == 2 * n and min(kernel) > 0 and min(lists[0]) > 0
        self.strides, dilations, self.extra = lists
        self.reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel)]
        self.ceil = node.attr("ceil_mode", 0)

    def places(self, i, size, is_known):
        """How many there are along a dim of this size; None: that cannot be told of one that is not known, or there can be none at all."""
        stride, before, after = self.strides[i], self.pads[i], self.pads[self.n + i]
        if self.auto.startswith("SAME"):
            return -(-size // stride)
        room = size + before + after - self.reach[i]
        count = (-(-room // stride) if self.ceil else room // stride) + 1
        if self.ceil and stride + after > self.reach[i]:  # the last one may lie in the padding alone
            if not is_known:
                return None
            count -= count > 1 and (count - 1) * stride >= size + before
        return None if is_known and count < 0 else count

    def turned(self, i, size):
        """Of one that is padded to less than its windows reach runtimes differ in what there is."""
        whole = self.strides[i] * (size - 1) + self.reach[i] - self.pads[i] - self.pads[self.n + i] + self.extra[i]
        if not self.auto.startswith("SAME"):
            return whole
        return size * self.strides[i] if self.reach[i] + self.extra[i] >= self.strides[i] else None


def made(node, op, dims, weight, is_known):
    """The sizes of the result, or None where this has no answer. op: of ONNX, which the node is like; dims: of the input; weight: of the weight, of a pool ();
    is_known(k): has dim k of the input a number?"""
    if not dims or len(dims) < 3 or None in dims or weight is None or (weight and len(weight) != len(dims)):
        return None
    w = Windows(node, weight[2:])
    if not w.is_read or w.n != len(dims) - 2:
        return None
    if op in POOLS:
        return (*dims[:2], *(w.places(i, d, is_known(2 + i)) for i, d in enumerate(dims[2:])))
    if op in CONVS:
        return (dims[0], weight[0], *(w.places(i, d, is_known(2 + i)) for i, d in enumerate(dims[2:])))
    asked = list(node.attr("output_shape", []))[-w.n:]  # old models ask for batch and channels, too
    if asked and (len(asked) < w.n or min(asked) < 0):
        return None
    channels = weight[1] * node.attr("group", 1) if weight[1] is not None else None
    return (dims[0], channels, *(asked or (w.turned(i, d) for i, d in enumerate(dims[2:]))))
