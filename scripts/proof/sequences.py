"""Sequences of which constants tell what their elements are: who reads one reads its elements.

    x f32[N,7] -> SplitToSequence 3, axis 1 -> s -> SequenceAt 2 -> y      x -> Split 3,3,1 -> s_piece0, s_piece1, s_piece2 -> y is s_piece2
    a, b -> SequenceConstruct -> ConcatFromSequence new_axis=1 -> y        a -> Unsqueeze -> y_piece0, b likewise -> Concat -> y
"""
import numpy as np

from .symbols import known

MOST = 1024  # elements that are told apart


def axis_of(node, rank):
    axis = node.attr("axis", 0)
    return axis % rank if -rank <= axis < rank else None


def cuts(node, rank, size_at, length):
    """Where a SplitToSequence cuts, along its axis: (axis, sizes, does the dim stay); None where that is not known. size_at: of a dim, its number or
    None; length: what the second input holds, where there is one."""
    axis = axis_of(node, rank)
    whole = None if axis is None else size_at(axis)
    if axis is None or (node.inp(1) and (length is None or length.dtype.kind != "i")):
        return None
    if node.inp(1) and length.ndim:
        sizes = [int(n) for n in length.ravel()]
        fit = 0 < len(sizes) <= MOST and min(sizes) >= 1 and whole in (None, sum(sizes))
        return (axis, sizes, True) if fit else None
    each = int(length) if node.inp(1) else 1
    if whole is None or min(whole, each) < 1 or (whole - 1) // each >= MOST:
        return None
    return axis, [min(each, whole - at) for at in range(0, whole, each)], bool(node.inp(1)) or node.attr("keepdims", 1) == 1


def place(at, count):
    """Which of so many elements, by what a SequenceAt's second input holds; or None."""
    if at is None or at.size != 1 or at.dtype.kind != "i" or not -count <= int(at.ravel()[0]) < count:
        return None
    return int(at.ravel()[0]) % count


class Elements:
    """The rewriting of a graph's nodes. make(op, inputs, outputs, **attributes): a node."""

    def __init__(self, graph, sizes, make):
        self.graph, self.sizes, self.make = graph, sizes, make
        self.held = {}  # sequence -> names of its elements
        self.read = {}  # sequence -> what reads it, and where
        for n in graph.nodes:
            for k, x in enumerate(n.input + n.captured):
                self.read.setdefault(x, []).append((n, k))

    def nodes(self):
        made = []
        for n in self.graph.nodes:
            made += (self.without(n) if n.domain == "" and n.out(0) else None) or [n]
        return made

    def without(self, n):
        """What stands for the node, or None."""
        if n.op == "SequenceConstruct" and all(n.input):
            self.held[n.out(0)] = n.input
        elif n.op == "SplitToSequence":
            return self.split(n)
        elif n.op == "SequenceAt" and n.inp(0) in self.held:
            return self.take(n, self.held[n.inp(0)])
        elif n.op == "ConcatFromSequence" and n.inp(0) in self.held:
            return self.join(n, self.held[n.inp(0)])
        return None

    def content(self, name):
        return None if name in self.graph.replaceable else self.sizes.content.get(name)

    def split(self, n):
        x, s, sizes = n.inp(0), n.out(0), self.sizes
        dims = sizes.dims.get(x)
        cut = dims is not None and cuts(n, len(dims), lambda k: dims[k][0] if known(dims[k]) else None, self.content(n.inp(1)))
        if not cut or not self.is_taken_apart(s, len(cut[1])):
            return None
        axis, lengths, stays = cut
        pieces = [self.graph.fresh(f"{s}_piece{k}") for k in range(len(lengths))]
        for piece, length in zip(pieces, lengths):
            sizes.replace(x, piece, axis, 1, [length])
        made = [self.listed("Split", x, "split", lengths, pieces, f"{s}\0sizes", axis=axis)]
        self.held[s] = pieces if stays else [self.graph.fresh(f"{s}_item{k}") for k in range(len(lengths))]
        for piece, item in zip(pieces, self.held[s] if not stays else ()):
            sizes.replace(piece, item, axis, 1, [])
            made.append(self.listed("Squeeze", piece, "axes", [axis], [item], f"{item}\0axes"))
        return made

    def is_taken_apart(self, s, count):
        read = self.read.get(s, ())
        takes = lambda n: n.op == "SequenceAt" and place(self.content(n.inp(1)), count) is not None or n.op == "ConcatFromSequence"
        return bool(read) and s not in self.graph.outputs and all(n.domain == "" and k == 0 and takes(n) for n, k in read)

    def take(self, n, items):
        at = place(self.content(n.inp(1)), len(items))
        same = at is not None and self.sizes.dims.get(items[at]) is not None and all(of.get(items[at]) == of.get(n.out(0)) for of in (self.sizes.dims, self.sizes.elem))
        return [self.make("Identity", [items[at]], n.output)] if same else None

    def join(self, n, items):
        y, sizes, beside = n.out(0), self.sizes, n.attr("new_axis", 0) != 0
        dims = sizes.dims.get(y)
        axis = None if dims is None else axis_of(n, len(dims))
        if axis is None:
            return None
        off = dims[:axis] + dims[axis + 1:]
        for x in items:
            had = sizes.dims.get(x)
            if had is None or sizes.elem.get(x) != sizes.elem.get(y) or len(had) + beside != len(dims) or (had if beside else had[:axis] + had[axis + 1:]) != off:
                return None
        made, names = [], items
        if beside:
            names = [self.graph.fresh(f"{y}_piece{k}") for k in range(len(items))]
            for x, piece in zip(items, names):
                sizes.replace(x, piece, axis, 0, [1])
                made.append(self.listed("Unsqueeze", x, "axes", [axis], [piece], f"{piece}\0axes"))
        return made + [self.make("Concat", names, [y], axis=axis)]

    def listed(self, op, x, attribute, numbers, outputs, name, **attributes):
        """A node whose numbers are an attribute before opset 13."""
        if self.graph.version.get("", 0) < 13:
            return self.make(op, [x], outputs, **{attribute: numbers}, **attributes)
        self.graph.hold(name, np.array(numbers, np.int64), self.sizes)
        return self.make(op, [x, name], outputs, **attributes)
