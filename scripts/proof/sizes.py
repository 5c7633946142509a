"""Types and sizes of all tensors of a graph, and the contents of small ones.

An unknown size is worked with as a number that cannot be mistaken for another: every symbol is a large prime in one world, twice another
prime in a second, and a size is the pair of what it is in the two. Equal pairs are equal sizes; a pair of equal numbers is a known size; one
size divides another where it does so in both worlds. So N*3*H, floor(H/2)+1 and whatever a model computes need no algebra.
In a third world every symbol is 64: there bytes are counted.

    x f32[N,3,H,8] -> sizes ((N1,N2), (3,3), (H1,H2), (8,8)); Reshape to [0,-1] -> ((N1,N2), (24*H1, 24*H2))
"""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper

from . import parts
from .contents import ALGEBRA, END, ROUNDING
from .symbols import LEAST, WORLDS, Symbols, known, product, quotient
from .world import World

PACKED = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}  # bits; numpy has a byte for each element
EXACT = 2 ** 24  # below, each whole number is a float


def differ(x, y):
    """Which elements do; types that numpy does not know (four bits, bfloat16) by their bytes."""
    if x.dtype.kind == "V":
        size = x.dtype.itemsize
        rows = [np.frombuffer(a.tobytes(), np.uint8).reshape(*a.shape, size) for a in (x, y)]
        return (rows[0] != rows[1]).any(axis=-1)
    return ~((x == y) | ((x != x) & (y != y)))


def is_exact(node, world):
    """Of integers, without a rest."""
    x, y = (world.data.get(node.inp(k)) for k in (0, 1))
    return x is not None and y is not None and x.dtype.kind in "iu" and bool((y != 0).all()) and not (x % y).any()


def is_decided(world, x, y):
    """Of which elements it hangs on no size which is less: of a size and itself, and of one that has a name, so is at least 1, and what is less."""
    named = np.vectorize(lambda n: np.isfinite(n) and world.symbols.name.get((world.world, int(n)), ("",))[0] == "named", otypes=[bool])
    return ((x == y) & (x < EXACT)) | ((x < 1) & named(y)) | ((y < 1) & named(x))


def follows(node, a, b):
    """May the contents of this node's outputs be believed, though some of what they come from is not known?"""
    unknown = [differ(a.data[n], b.data[n]) for n in node.input if n in a.data and n in b.data and a.data[n].shape == b.data[n].shape]
    if not any(u.any() for u in unknown) or node.op in ALGEBRA:
        return True
    if node.op in ("Min", "Max") and all(n in a.data and n in b.data for n in list(node.input) + list(node.output)):
        x, y = a.data[node.output[0]], b.data[node.output[0]]  # a size is at least 0
        if x.dtype.kind == "i" and x.size and (node.op == "Max" or min(a.data[n].min() for n in node.input) >= 0):
            return False  # see Sizes.extremes_of
        return bool((differ(x, y) | ((x <= 0) if node.op == "Min" else False) | ~np.logical_or.reduce(np.broadcast_arrays(*unknown))).all())
    if node.op == "Cast" and node.attr("to") == TensorProto.BOOL and node.inp(0) in a.data:  # a size that has a name is at least 1
        symbol = lambda x: a.symbols.name.get((0, int(x)), ("",))[0]
        return bool(unknown) and all(symbol(x) == "named" for x in np.atleast_1d(a.data[node.inp(0)])[np.atleast_1d(unknown[0])])
    if node.op == "Div" and all(is_exact(node, w) for w in (a, b)):
        return True
    if node.op in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual") and len(unknown) == 2:
        open_ = np.logical_or.reduce(np.broadcast_arrays(*unknown))
        return bool((~open_ | np.logical_and.reduce([is_decided(w, *np.broadcast_arrays(*(w.data[n] for n in node.input))) for w in (a, b)])).all())
    if node.op not in ROUNDING or not all(n in a.data and n in b.data for n in node.input + node.output if n):
        return False
    x, y = a.data[node.output[0]], b.data[node.output[0]]
    return x.shape == y.shape and not (np.logical_or.reduce(np.broadcast_arrays(*unknown)) & ~differ(x, y)).any()


class Sizes:
    """What the worlds agree on. dims: name -> tuple of sizes (pairs), or None; elem: name -> element type; bytes: name -> bytes of one copy."""

    def __init__(self, graph, symbols=None, given=None):
        """given: types of the inputs in each world, where the graph does not say them."""
        self.symbols = symbols or Symbols()
        self.worlds = worlds = [World(graph, self.symbols, w) for w in range(WORLDS)]
        worlds[-1].first = worlds[0]
        self.chance = set()  # remainders of unknown sizes that are the same in two worlds: nothing is told of them
        self.at_least = {}  # size that a Concat makes -> the numbers among what it is made of
        for k, w in enumerate(worlds):
            w.start()
            w.type.update(given[k] if given else {})
        for node in graph.nodes:
            sizes = [w.type.get(node.inp(0), (0, None))[1] for w in worlds[:2]]
            for w in worlds:
                w.open = sizes[0] != sizes[1]
                w.node(node)
            if node.op == "Slice" and self.symbols.index:
                self.forget_cut(node)
            if self.symbols.index:
                self.guess_broadcast(node)
                self.know_joined(node)
                self.name_rest(node)
            if node.op == "Equal" and node.domain == "" and self.symbols.index:
                self.forget_unequal(node)
            elif self.symbols.index and not follows(node, *worlds[:2]):
                made = self.extremes_of(node) or self.ratio_of(node)
                if node.op == "Mod" and node.domain == "":
                    self.chance.add(node.out(0))
                for k, w in enumerate(worlds):
                    for name in node.output:
                        was = w.data.pop(name, None)
                        if made is not None:
                            w.data[name] = np.full(was.shape, made[k], was.dtype)
            self.note_sure(node)
        a, b, guess = worlds
        self.elem, self.dims, self.content, self.count, self.guessed = {}, {}, {}, {}, {}
        for name, (elem, dims) in a.type.items():
            other = b.type.get(name, (0, None))[1]
            self.elem[name] = elem
            self.dims[name] = None if dims is None or other is None or len(dims) != len(other) else tuple(zip(dims, other))
            third = guess.type.get(name, (0, None))[1]
            self.count[name], self.guessed[name] = None if third is None else math.prod(max(d, 0) for d in third), third
            x, y = a.data.get(name), b.data.get(name)
            if x is not None and y is not None and x.shape == y.shape and not differ(x, y).any():
                self.content[name] = x

    def note_sure(self, node):
        """What comes out alike hangs on no unknown size, though what it is made from does: the second dim of f32[N,17]."""
        for name in node.output:
            x, y = (w.data.get(name) for w in self.worlds[:2])
            if x is not None and y is not None and x.shape == y.shape and not differ(x, y).any():
                self.symbols.sure.add(name)

    def merge_first(self, x, y, depth):
        """y is x with its first dims as one."""
        merged = lambda dims, one: (one(dims[:depth]), *dims[depth:])
        self.dims[y], self.elem[y], self.count[y] = merged(self.dims[x], product), self.elem[x], self.count[x]
        self.guessed[y] = self.guessed[x] and merged(self.guessed[x], math.prod)

    def shape_as(self, x, y, dims):
        """y is x in these sizes, of which as many are not known as of x, and the same."""
        guess = dict(zip(self.dims[x], self.guessed[x] or ()))
        self.dims[y], self.elem[y], self.count[y] = dims, self.elem[x], self.count[x]
        self.guessed[y] = self.guessed[x] and tuple(d[0] if known(d) else guess[d] for d in dims)

    def replace(self, x, y, at, gone, numbers):
        """y is x with these sizes in the place of so many of its dims, from `at` on."""
        put = lambda dims, new: dims[:at] + tuple(new) + dims[at + gone:]
        self.dims[y], self.elem[y] = put(self.dims[x], ((n, n) for n in numbers)), self.elem[x]
        self.guessed[y] = self.guessed[x] and put(self.guessed[x], numbers)
        self.count[y] = None if self.guessed[x] is None else math.prod(max(d, 0) for d in put(self.guessed[x], numbers))

    def drop_last(self, x, y):
        """y is x without its last dim, which has size 1."""
        self.dims[y], self.elem[y], self.count[y] = self.dims[x][:-1], self.elem[x], self.count[x]
        self.guessed[y] = self.guessed[x] and self.guessed[x][:-1]

    def hold(self, name, x):
        """A constant that the model does not have."""
        self.content[name], self.elem[name], self.count[name] = x, helper.np_dtype_to_tensor_dtype(x.dtype), x.size
        self.dims[name], self.guessed[name] = tuple((d, d) for d in x.shape), x.shape

    def guess_broadcast(self, node):
        """What two open sizes broadcast to is a symbol of its own, also where in the third world, or another, they are the same by chance,
        or one is so small that it looks like a number; unless a number is declared."""
        types, guess = [w.type for w in self.worlds[:2]], self.worlds[2].type
        for y in node.output:
            dims = [t.get(y, (0, None))[1] for t in types]
            if None in dims or not (guess.get(y) or (0, None))[1] or len({*map(len, dims), len(guess[y][1])}) != 1:
                continue
            for k, pair in enumerate(zip(*dims)):
                at = k - len(dims[0])
                made = [self.made_broadcast(w, size) or w.joined.get(at) or (w.doubt.get(at) if not known(pair) else None) for w, size in zip(self.worlds, pair)]
                if any(made):
                    numbers = {n for n in made[0][2] & made[1][2] if n < LEAST} if [m and m[1] for m in made] == [0, 1] else set()  # it broadcasts to such a one alone
                    size = self.symbol(made[0] or made[1])
                    said = numbers.pop() if len(numbers) == 1 else self.said_of(y, k, size)
                    size = size if said is None else (said,) * WORLDS
                    for w, d in zip(self.worlds, size):
                        elem, was = w.type[y]
                        w.type[y] = (elem, was[:k] + (d,) + was[k + 1:])

    def said_of(self, name, k, size):
        """The number that is declared for a dim of this size, where the size hangs on what nothing tells; or None."""
        return self.worlds[0].says_number(name, k) if self.worlds[0].hangs_on_unknown(size[0]) else None

    def is_believed(self, left, was):
        """The number that is declared for what a cut leaves: where that hangs on what nothing tells; but the last of a size that was rounded down may be
        none, and of another size it is one."""
        last = self.symbols.name.get((0, left[0]), ("",))[:2] == ("min", 1)
        return not self.is_rounded_down(was) if last else self.worlds[0].hangs_on_unknown(left[0])

    def know_joined(self, node):
        """Off the axis the inputs of a Concat have one size: the number, where one of them has a number. Along it the result has at least the numbers together."""
        y = node.out(0)
        types = [[w.type.get(x, (0, None))[1] for w in self.worlds[:2]] for x in (y, *node.input)] if node.op == "Concat" and not node.domain else [[None]]
        if any(d is None or len(d) != len(types[0][0]) for t in types for d in t if types[0][0] is not None) or types[0][0] is None:
            return
        axis = node.attr("axis", 1) % len(types[0][0])
        for k, column in enumerate(zip(*(zip(*t) for t in types[1:]))):
            numbers = [size[0] for size in column if known(size)]
            if k == axis:
                whole = tuple(d[k] for d in types[0])
                self.at_least[whole] = max(self.at_least.get(whole, 0), sum(numbers))
                continue
            for w in self.worlds if numbers else ():
                elem, dims = w.type[y]
                w.type[y] = (elem, dims[:k] + (numbers[0],) + dims[k + 1:])

    def name_rest(self, node):
        """What a Reshape leaves for its -1, where the numbers do not divide, is what a Div of these sizes gives, whatever it is called."""
        y, asked = node.out(0), [w.data.get(node.inp(1)) for w in self.worlds]
        types = [[w.type.get(n, (0, None))[1] for n in (node.inp(0), y)] for w in self.worlds]
        if node.op != "Reshape" or node.domain or any(a is None or (a == 0).any() or (a < 0).sum() != 1 for a in asked) or any(None in t for t in types):
            return
        k = int(np.argmin(asked[0]))
        divided = [divmod(math.prod(t[0]), math.prod(int(n) for n in a if n > 0)) for t, a in zip(types, asked)]
        if not any(rest for _, rest in divided[:2]) or divided[0][0] == divided[1][0]:
            return
        for w, (size, _) in zip(self.worlds, divided):
            elem, dims = w.type[y]
            w.type[y] = (elem, dims[:k] + (size,) + dims[k + 1:])

    def forget_unequal(self, node):
        """Numbers that differ here may be one in some run: then it is not known whether they are equal."""
        pairs = [np.broadcast_arrays(*(w.data[x] for x in node.input)) for w in self.worlds[:2] if all(x in w.data for x in node.input)]
        if len(pairs) < 2 or pairs[0][0].shape != pairs[1][0].shape:
            return
        flat = [[x.ravel().tolist() for x in pair] for pair in pairs]
        sure = np.array([self.is_told(*x) for x in zip(zip(flat[0][0], flat[1][0]), zip(flat[0][1], flat[1][1]))], bool)
        y = node.out(0)
        for w in self.worlds if not sure.all() else ():
            was = w.data.pop(y)  # of two inputs that are known
            parts.keep(w, y, np.where(sure.reshape(was.shape), was, None))

    def is_told(self, x, y):
        """Are they equal whatever the sizes are, or never? As sizes they are not less than nothing."""
        if (known(x) and known(y)) or x == y or x[0] - y[0] == x[1] - y[1]:
            return True
        number, size = (x, y) if known(x) else (y, x)
        return known(number) and (number[0] < 0 or number[0] < self.least(size))

    def made_broadcast(self, world, size):
        name = self.symbols.name.get((world.world, size), ("",))
        return name if name[0] == "max" else None

    def forget_cut(self, node):
        """What is left of a size after a cut is the smaller of two, and in the worlds always the same one: open sizes are large there."""
        x, y = node.inp(0), node.out(0)
        types = [[w.type.get(n, (0, None))[1] for w in self.worlds] for n in (x, y)]
        if any(d is None for t in types for d in t):
            return
        cuts = [w.cuts(node, len(types[0][0])) for w in self.worlds]
        for k, (was, now) in enumerate(zip(zip(*types[0]), zip(*types[1]))):
            left = self.left(was, now, [c.get(k) for c in cuts]) if None not in cuts else None
            if left and (y, k) in self.symbols.open:
                left = now  # taken for unknown
            said = self.worlds[0].says_number(y, k) if left else None
            if said is not None and self.is_believed(left, was):
                left = (said,) * WORLDS
            for w, size in zip(self.worlds, left or ()):
                elem, dims = w.type[y]
                w.type[y] = (elem, dims[:k] + (size,) + dims[k + 1:])
                w.data.pop(y, None)

    def left(self, was, now, cuts):
        """The size in each world where it is not what it seems to be in two: what a cut from start to end leaves of `was`."""
        if None in cuts:
            return None
        start, end, step = zip(*cuts)
        if known(start) and known(end):
            if set(step) == {1} and 0 <= start[0] < LEAST <= end[0] < END and not known(now):  # as large as a symbol may be
                return self.smaller(now, tuple(e - s for s, e in zip(start, end)))
            if known(was) or not known(now):
                return None
            told = min(step) > 0 and (start[0] >= 0 or end[0] >= END)
            return self.smaller(now, was) if told else self.symbol(("cut", was[:2], start[:2], end[:2], step[:2]))
        if set(step) == {1} and self.falls(start) and max(start) < 0 and (min(end) >= END or end == was):  # the last of them
            return self.smaller(was, tuple(-s for s in start))
        if self.falls(start) or self.falls(end) or set(step) != {1}:
            return self.symbol(("cut", was[:2], start[:2], end[:2], step[:2]))
        end = was if min(end) >= END else self.smaller(was, end)
        size = tuple(e - s for e, s in zip(end, start))
        return size if min(size[:2]) >= 0 else self.symbol(("cut", was[:2], start[:2], end[:2], step[:2]))

    def falls(self, place):
        """Is a place of a cut negative, or would be for large sizes (512-N)? Then it counts from the end. Sizes are larger in the second world."""
        return min(place) < 0 or place[1] < place[0]

    def least(self, size):
        """A named size, and what is a multiple of one, or a little more, is at least 1; and what was joined has its parts."""
        named = [self.symbol(name) for name in list(self.symbols.index) if name[0] == "named"]
        return max(self.at_least.get(tuple(size[:2]), 0), int(any(quotient(size, n) or self.is_more(size, n) for n in named)))

    def is_rounded_down(self, size):
        """Is it a named size divided by some number, without the rest? Then it may be 0."""
        named = [self.symbol(name) for name in list(self.symbols.index) if name[0] == "named"]
        by = lambda n: range(n[0] // (size[0] + 1) + 1, n[0] // size[0] + 1) if 0 < size[0] < n[0] else ()
        return any(n[1] // k == size[1] for n in named for k in by(n)[:LEAST])

    def is_more(self, size, n):
        """Is it as many times n in each world, and as much more, less than what any symbol is?"""
        (times, more), other = (divmod(s, k) for s, k in zip(size[:2], n[:2]))
        return times > 0 and more < LEAST and (times, more) == other

    def extremes_of(self, node):
        """What a Min or Max, or a reduction to one element, makes, in each world: of sizes where it hangs on them which it is; or None."""
        made, least = [w.data.get(node.out(0)) for w in self.worlds], node.op.endswith("Min")
        if node.op not in ("Min", "ReduceMin", "Max", "ReduceMax") or node.domain != "" or any(x is None or x.dtype.kind != "i" for x in made):
            return None
        reduced = node.op.startswith("Reduce")
        read = node.input[:1] if reduced else node.input
        if len({x.shape for x in made}) != 1 or not all(x in w.data for x in read for w in self.worlds) or (reduced and made[0].size != 1):
            return None
        of = lambda w: [[n] for n in w.data[read[0]].ravel().tolist()] if reduced else [np.broadcast_to(w.data[x], made[0].shape).ravel().tolist() for x in read]
        found = [self.extreme_of(sizes, least) for sizes in zip(*(zip(*of(w)) for w in self.worlds))]
        return [np.reshape(x, made[0].shape) for x in zip(*found)] if found and None not in found else None

    def extreme_of(self, given, least):
        """given: in each world the numbers."""
        if len({*map(len, given)}) != 1 or (least and min(map(min, given)) < 0):
            return None
        one, *others = zip(*given)
        for size in others:
            one = self.smaller(one, size) if least else self.larger(one, size)
        return one

    def ratio_of(self, node):
        """What one size divided by another is, where the numbers do not tell: a symbol."""
        given = [[w.data.get(x) for w in self.worlds] for x in (node.inp(0), node.inp(1)) if x]
        if node.op != "Div" or node.domain or any(x is None or x.size != 1 or x.dtype.kind != "i" or x.ravel()[0] <= 0 for w in given for x in w):
            return None
        return self.symbol(("div", *(tuple(int(x.ravel()[0]) for x in w[:2]) for w in given)))

    def symbol(self, name):
        return tuple(self.symbols.number(name, w.world) for w in self.worlds)

    def smaller(self, a, b):
        """Of two sizes; a symbol where that hangs on what they are."""
        one, other = sorted((a, b), key=lambda x: (not known(x), x))
        apart = tuple(x - y for x, y in zip(other, one))
        if apart[0] == apart[1] or (known(one) and one[0] <= self.least(other)) or self.least(apart):
            return tuple(map(min, a, b))
        for least, size in ((a, b), (b, a)):
            if self.is_smaller_of(least, size):
                return least
        return self.symbol(("min", one[0] if known(one) else one[:2], other[:2]))

    def is_smaller_of(self, least, size):
        """Is it the symbol for the smaller of this size and another?"""
        name = self.symbols.name.get((0, least[0]), ("",))
        return name[0] == "min" and name == self.symbols.name.get((1, least[1])) and (size[0] if known(size) else size[:2]) in name[1:]

    def is_larger_of(self, most, size):
        """Is it the symbol for what this size and another broadcast to, or which is larger?"""
        name = self.symbols.name.get((0, most[0]), ("",))
        return name[0] == "max" and name == self.symbols.name.get((1, most[1])) and size[name[1]] in name[2]

    def larger(self, a, b):
        """Of two sizes, of which one may be negative (256-N); a symbol where that hangs on what they are."""
        one, other = sorted((a, b), key=lambda x: (not known(x), x))
        apart = tuple(x - y for x, y in zip(other, one))
        if apart[0] == apart[1]:
            return max(a, b)
        if known(one) and not self.falls(other) and one[0] <= self.least(other):
            return other
        for most, size in ((a, b), (b, a)):
            if self.is_larger_of(most, size) or self.is_smaller_of(size, most):
                return most
        return self.symbol(("most", one[0], other[:2]) if known(one) else ("max", 0, frozenset((a[0], b[0]))))

    def bits(self, name):
        packed = PACKED.get(TensorProto.DataType.Name(self.elem[name])) if self.elem.get(name) else None
        if packed:
            return packed
        try:
            return onnx.helper.tensor_dtype_to_np_dtype(self.elem[name]).itemsize * 8 if self.elem[name] != TensorProto.STRING else 0
        except Exception:
            return 0
