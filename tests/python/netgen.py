"""What random networks of tests are built with: nodes one after the other, and the constants that they take, each under a new name."""
import random

import numpy as np
from onnx import helper, numpy_helper


class Builder:
    """nodes, init: what has been made; rng, data: where choices and numbers come from."""

    def __init__(self, seed):
        self.rng, self.data = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.init, self.n = [], [], 0

    def add(self, op, inputs, **attributes):
        self.n += 1
        self.nodes.append(helper.make_node(op, inputs, [f"v{self.n}"], **attributes))
        return f"v{self.n}"

    def given(self, a):
        self.n += 1
        self.init.append(numpy_helper.from_array(np.asarray(a), f"c{self.n}"))
        return f"c{self.n}"
