"""Dims cut into atoms, and tensors joined into values.

Each dim of more than one element is a unit. Units that must agree are united, a unit that a Reshape cuts gets two parts (outer, inner),
and what is left uncut are the atoms. Links of ops first, then Transposes, then Reshapes in graph order, each wholly or not at all; a
Reshape that does not match is an op of its own (labels.py: block_reshape). Last, Concat and Split of unequal pieces with a common
inner part.
"""
import dataclasses

from .links import links_of
from .labels import AXIS, FREE, Label, is_moving, work_of
from .symbols import ONE, known, product, quotient

MAXATOM = 24


class Forest:
    def __init__(self):
        self.size, self.up, self.parts, self.done = [], [], [], []

    def new(self, size):
        self.size.append(size)
        self.up.append(None)
        self.parts.append(None)
        return len(self.size) - 1

    def root(self, u):
        while self.up[u] is not None:
            u = self.up[u]
        return u

    def leaves(self, u):
        u = self.root(u)
        if self.parts[u] is None:
            return [u]
        return self.leaves(self.parts[u][0]) + self.leaves(self.parts[u][1])

    def match(self, a, b):
        """Makes two runs of units agree, outermost first; changes nothing where they cannot."""
        undo = []
        if self.walk(list(a)[::-1], list(b)[::-1], undo):
            return True
        for u, up, parts in reversed(undo):
            self.up[u], self.parts[u] = up, parts
        return False

    def change(self, undo, u, up=None, parts=None):
        undo.append((u, self.up[u], self.parts[u]))
        if up is not None:
            self.up[u] = up
        if parts is not None:
            self.parts[u] = parts

    def next_leaf(self, stack):
        """The outermost leaf of what is left, which stays on the stack."""
        while stack:
            u = stack[-1] = self.root(stack[-1])
            if self.parts[u] is None:
                return u
            stack[-1:] = self.parts[u][::-1]
        return None

    def walk(self, a, b, undo):
        while True:
            x, y = self.next_leaf(a), self.next_leaf(b)
            if x is None or y is None:
                return x is y
            if x != y and self.size[x] != self.size[y]:
                small, large = (x, y) if quotient(self.size[y], self.size[x]) else (y, x)
                rest = quotient(self.size[large], self.size[small])
                if rest is None:
                    return False
                self.change(undo, large, parts=(self.new(self.size[small]), self.new(rest)))
                continue
            if x != y:
                self.change(undo, y, up=x)
            a.pop()
            b.pop()


@dataclasses.dataclass
class Member:
    """A tensor in terms of its value's atoms."""
    value: int
    seq: tuple    # atoms, row-major
    start: tuple  # dim i holds seq[start[i]:start[i + 1]]


@dataclasses.dataclass
class Value:
    first: str
    units: list  # of each atom
    constant: bool


class Problem:
    """The assignment problem of a model: units, values, and for each node what it works on, on a target or where only ONNX's ops are."""

    def __init__(self, model, empties, target=None, folded=""):
        """folded: are nodes gone that compute constants from what a Transpose "moved", or "any"? Else they tie dims, too."""
        self.model, self.forest, self.target = model, Forest(), target
        self.empties = empties  # are tensors without elements constants, whatever makes them?
        self.unit = {}
        self.input_sizes = {d for n in model.graph.inputs for d in model.sizes.dims.get(n) or ()}
        nodes = self.nodes = model.unfolded(folded == "any") if folded else model.graph.nodes
        names = list(model.graph.inputs) + list(model.graph.stored) + list(model.graph.sparse) + [o for n in nodes for o in n.input + n.output if o]
        for name in names:
            dims = model.sizes.dims.get(name)
            if dims is not None and name not in self.unit:
                self.unit[name] = [None if d == ONE else self.forest.new(d) for d in dims]
        self.work = {}    # index of a node -> Work or None
        self.links = {}   # index of a Leave -> (works, the tensors of no link)
        self.moves = set()
        self.apart = set()  # what Transposes make whose input's sizes are not known to be the same
        self.refine(nodes)
        self.values, self.member = [], {}
        self.join(nodes)

    # ---- refinement

    def refine(self, nodes):
        for i, n in enumerate(nodes):
            if is_moving(n) and n.op == "Transpose":
                if self.link_transpose(n):
                    self.moves.add(i)
                else:
                    self.apart.add(n.out(0))
        for i, n in enumerate(nodes):
            if n.ends is not None:
                self.links[i] = links_of(self, n)
            elif not is_moving(n):
                self.work[i] = work_of(self, n)
        for i, n in enumerate(nodes):
            if is_moving(n) and n.op != "Transpose":
                if self.link_reshape(n):
                    self.moves.add(i)
                else:
                    self.work[i] = work_of(self, n)
        for i, n in enumerate(nodes):
            if is_moving(n) and i not in self.moves and i not in self.work:
                self.work[i] = None
            if self.work.get(i) and (n.op in ("Concat", "Split") and n.domain == "" or n.op == "QLinearConcat"):
                self.common_inner_part(self.work[i])

    def link_transpose(self, n):
        perm = self.perm(n)
        if perm is None or n.out(0) not in self.unit:
            return False
        x, y = self.unit[n.inp(0)], self.unit[n.out(0)]
        for a, b in zip((x[p] for p in perm), y):
            if (a is None) != (b is None) or (a is not None and not self.forest.match([a], [b])):
                return False
        return True

    def perm(self, n):
        dims = self.model.sizes.dims.get(n.inp(0))
        if dims is None:
            return None
        perm = n.attr("perm", list(range(len(dims)))[::-1])
        return perm if sorted(perm) == list(range(len(dims))) else None

    def is_reshaping(self, n):
        if not is_moving(n) or n.op == "Transpose" or not n.input or n.inp(0) not in self.unit or n.out(0) not in self.unit:
            return False
        return (0, 0) not in self.model.sizes.dims[n.inp(0)] + self.model.sizes.dims[n.out(0)]

    def link_reshape(self, n):
        if not self.is_reshaping(n):
            return False
        real = lambda name: [u for u in self.unit[name] if u is not None]
        return self.forest.match(real(n.inp(0)), real(n.out(0)))

    def common_inner_part(self, work):
        """Pieces of different lengths whose innermost atoms agree: only the rest of the axis is a block."""
        f = self.forest
        axis = next((lab for lab in work.labels if lab.role == AXIS), None)
        pieces = range(1, len(work.operands))
        if axis is None or len(work.operands) < 3 or 0 not in axis.unit or any(o not in axis.unit for o in pieces):
            return
        leaves = {o: f.leaves(axis.unit[o]) for o in pieces}
        n = 0
        while all(n < len(x) and f.size[x[-1 - n]] == f.size[leaves[1][-1 - n]] for x in leaves.values()):
            n += 1
        if n == 0:
            return
        tail = leaves[1][-n:]
        inner = product(f.size[u] for u in tail)
        outer = quotient(f.size[axis.unit[0]], inner)
        if outer is None or outer == ONE:
            return
        parts = [f.new(outer), f.new(inner)]
        if not f.match([parts[1]], tail) or not f.match([axis.unit[0]], parts):
            return
        for o in pieces[1:]:
            if not f.match(tail, f.leaves(axis.unit[o])[-n:]):
                return
        axis.tail = parts[1]
        work.labels.append(Label(FREE, axis.group, dict(axis.at), dict(axis.unit), {}, parts[1]))

    # ---- values

    def join(self, nodes):
        made = {o for n in nodes for o in n.output}
        for name in self.unit:
            if name not in made:
                self.start(name)
        for i, n in enumerate(nodes):
            for name in n.output:
                if name not in self.unit or name in self.member:
                    continue
                if i in self.moves and n.inp(0) in self.member and name == n.out(0):
                    self.follow(n, name)
                else:
                    self.moves.discard(i)
                    self.start(name)

    def cut(self, name):
        """Units of the atoms, row-major, and where each dim starts."""
        units, start = [], [0]
        for u in self.unit[name]:
            if u is not None:
                units += self.forest.leaves(u)
            start.append(len(units))
        return units, tuple(start)

    def start(self, name):
        units, start = self.cut(name)
        if len(units) > MAXATOM:
            return
        self.member[name] = Member(len(self.values), tuple(range(len(units))), start)
        self.values.append(Value(name, units, self.is_stored(name)))

    def follow(self, n, name):
        x = self.member[n.inp(0)]
        units, start = self.cut(name)
        seq = x.seq
        if n.op == "Transpose":
            seq = tuple(a for p in self.perm(n) for a in x.seq[x.start[p]:x.start[p + 1]])
        if len(units) != len(seq):
            raise AssertionError(f"movement does not keep the atoms of '{name}'")
        self.member[name] = Member(x.value, seq, start)

    def is_stored(self, name):
        """A constant whose bytes can be permuted; or one that is only dequantized."""
        return name in self.model.constant and self.model.sizes.bits(name) > 0

    def constant_like(self, name):
        while name not in self.model.constant:
            n = self.model.made.get(name)
            if n is None or not is_moving(n):
                return False
            name = n.inp(0)
        return True

    def is_open(self, d):
        """An unknown size that no dim of an input has: it cannot be looked up."""
        return not known(d) and d not in self.input_sizes
