"""Random valid ONNX models for test_random.py: make(seed) gives a model with its inputs and which outputs must be exact.

Values are whole numbers of small size wherever the ops allow, so that sums are exact in any order and outputs compare bit for bit
unless an op rounds (Softmax, a mean, tanh ...).  Ops that jump (ArgMax, TopK, comparisons, rounding) are put on exact values only.

Dims are pairs of sizes with a tag: a symbolic dim has another size in the second set of inputs, and two dims are the same only
if their tags are, so a model is valid for both sets.
"""
import dataclasses
import math
import random
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LIMIT = 3000          # elements of a tensor

TYPES = {"f": TensorProto.FLOAT, "i64": TensorProto.INT64, "i32": TensorProto.INT32, "b": TensorProto.BOOL,
         "i8": TensorProto.INT8, "u8": TensorProto.UINT8}
NUMPY = {"f": np.float32, "i64": np.int64, "i32": np.int32, "b": bool, "i8": np.int8, "u8": np.uint8}


class Dim(NamedTuple):
    a: int          # size in the first set of inputs
    b: int          # in the second
    coef: int       # tag: coef * product of syms
    syms: tuple

    @property
    def static(self):
        return not self.syms


def fixed(n):
    return Dim(n, n, n, ())


ONE = fixed(1)


def times(*dims):
    d = ONE
    for x in dims:
        d = Dim(d.a * x.a, d.b * x.b, d.coef * x.coef, tuple(sorted(d.syms + x.syms)))
    return d


@dataclasses.dataclass
class Value:
    name: str
    shape: tuple            # of Dim
    dtype: str = "f"
    mag: float = 4.0        # largest absolute value
    frac: int = 0           # binary digits after the point
    exact: bool = True
    const: bool = False
    data: np.ndarray = None  # of constants

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return max(math.prod(d.a for d in self.shape), math.prod(d.b for d in self.shape))


@dataclasses.dataclass
class Model:
    proto: onnx.ModelProto
    trials: list            # dicts of inputs
    exact: list             # per output
    external: bool = False  # its weights are to be in a file of their own


class Stop(Exception):
    """The chosen op does not fit; nothing was added."""


class Generator:
    OPSETS = 9, 24        # the first and the last
    EXACT = 2.0 ** 20     # whole numbers up to here are exact whatever is done to them next
    MOST = 1e6            # no value is larger

    def __init__(self, seed, size=None):
        self.r = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.opset = self.r.randint(*self.OPSETS)
        self.size = size or self.r.choice([1, 2, 3, 5, 8, 12, 20, 30, 45, 60])
        self.nodes, self.inits, self.inputs, self.pool, self.functions = [], [], [], [], []
        self.used = set()
        self.count = 0
        self.depth = 0                           # bodies around what is added
        self.symbolic = self.r.random() < 0.3
        self.empty = self.r.random() < 0.03      # some dim is 0
        self.symbols = {}
        self.domains = set()
        self.external = False
        self.style = self.r.choice(["v{}", "v{}", "/layer{}/out_0", "x:{}", "Transpose_{}", "v {}"])

    # ------------------------------------------------------------------------------------------------ building blocks

    def chance(self, p):
        return self.r.random() < p

    def name(self):
        self.count += 1
        return self.style.format(self.count)

    def need(self, condition):
        if not condition:
            raise Stop

    def dim(self, choices=(1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 12)):
        if self.symbolic and self.chance(0.3):
            s = self.r.choice("NSHW")
            a, b = self.symbols.setdefault(s, (self.r.choice([2, 3, 4, 5]), self.r.choice([2, 3, 6, 7])))
            return Dim(a, b, 1, (s,))
        if self.empty and self.chance(0.3):
            return fixed(0)
        return fixed(self.r.choice(choices))

    def opaque(self, a, b):
        """A dim that depends on symbols in a way that no product says."""
        self.count += 1
        return Dim(a, b, 1, (f"?{self.count}",))

    def derived(self, d, f):
        """f of a dim: fixed where the dim is."""
        if d.static:
            self.need(f(d.a) >= 1)
            return fixed(f(d.a))
        self.need(f(d.a) > 1 and f(d.b) > 1)
        return self.opaque(f(d.a), f(d.b))

    def add_input(self, shape, dtype="f", mag=4.0):
        v = Value(self.name(), tuple(shape), dtype, mag)
        self.inputs.append(v)
        self.pool.append(v)
        return v

    def const(self, data, dtype="f"):
        """A constant: an initializer, or now and then a Constant node."""
        data = np.asarray(data).astype(NUMPY[dtype])
        v = Value(self.name(), tuple(fixed(n) for n in data.shape), dtype,
                  float(np.max(np.abs(data.astype(float)))) if data.size else 0.0, 0, True, True, data)
        if dtype == "f" and data.size and np.any(data != np.round(data)):
            v.frac = 3
            v.exact = bool(np.all(data * 8 == np.round(data * 8)))
        t = numpy_helper.from_array(data, v.name)
        if self.chance(0.2):
            t.name = ""
            self.nodes.append(helper.make_node("Constant", [], [v.name], value=t))
        else:
            self.inits.append(t)
        return v

    def ints(self, *x):
        return self.const(np.array(x, dtype=np.int64), "i64")

    def whole(self, shape, mag=2):
        return self.const(self.np.integers(-mag, mag + 1, shape))

    def emit(self, op, ins, shape, dtype=None, mag=None, exact=None, frac=None, n=None, domain="", **attrs):
        """Adds a node with one output value (or the shapes of several, as a list)."""
        many = isinstance(shape, list)
        shapes = shape if many else [shape]
        src = next((v for v in ins if v is not None), None)
        dtypes = dtype if isinstance(dtype, list) else [dtype] * len(shapes)
        frac = frac if frac is not None else max((v.frac for v in ins if v is not None), default=0)
        mag = mag if mag is not None else max((v.mag for v in ins if v is not None), default=1)
        exact = (all(v.exact for v in ins if v is not None) if exact is None else exact)
        if dtypes[0] in (None, "f"):
            self.need(mag < self.MOST)
            exact = exact and mag * 2.0 ** frac <= self.EXACT
        outs = []
        for s, t in zip(shapes, dtypes):
            v = Value(self.name(), tuple(s), t or (src.dtype if src else "f"), mag, frac, exact,
                      bool(ins) and all(v.const for v in ins if v is not None))
            self.need(v.size <= LIMIT and v.rank <= 7)
            outs.append(v)
        names = [v.name if v is not None else "" for v in ins]
        attrs = {k: a for k, a in attrs.items() if a is not None}
        node = helper.make_node(op, names, [v.name for v in outs], domain=domain,
                                name=self.r.choice(["", f"{op}_{self.count}", f"node {self.count}"]), **attrs)
        if domain:
            self.domains.add(domain)
        self.nodes.append(node)
        self.used.update(names)
        self.pool.extend(outs)
        return outs if many else outs[0]

    def pick(self, test=lambda v: True, dtype="f", constants=False):
        """A value from the pool, more likely a late one."""
        fit = [v for v in self.pool if (dtype is None or v.dtype == dtype) and (constants or not v.const) and test(v)]
        self.need(fit)
        return fit[max(self.r.randrange(len(fit)), self.r.randrange(len(fit)))] if self.chance(0.6) else self.r.choice(fit)

    def any(self, test=lambda v: True):
        return self.pick(test, None)

    def axis(self, v):
        self.need(v.rank)
        return self.r.randrange(v.rank)

    def signed(self, axis, rank):
        return axis - rank if self.chance(0.3) else axis

    # ------------------------------------------------------------------------------------------------ moves and views

    def transpose(self, v, perm):
        perm = list(perm)
        drop = perm == list(range(v.rank))[::-1] and self.chance(0.5)
        return self.emit("Transpose", [v], tuple(v.shape[p] for p in perm), perm=None if drop or not perm else perm)

    def op_transpose(self):
        v = self.any(lambda v: v.rank >= 1)
        perm = list(range(v.rank))
        last = self.nodes[-1] if self.nodes else None
        kind = self.r.random()
        source = next((n for n in reversed(self.nodes) if n.op_type == "Transpose" and n.attribute
                       and len(n.attribute[0].ints) == v.rank), last)
        if kind < 0.45 and source is not None and source.op_type == "Transpose" and source.attribute \
                and len(source.attribute[0].ints) == v.rank:
            inverse = [0] * v.rank
            for i, p in enumerate(source.attribute[0].ints):
                inverse[p] = i
            perm = inverse
        elif kind < 0.6 and v.rank >= 3:
            perm = [0, *range(2, v.rank), 1] if self.chance(0.5) else [0, v.rank - 1, *range(1, v.rank - 1)]
        elif kind < 0.7 and v.rank >= 2:
            perm[-1], perm[-2] = perm[-2], perm[-1]
        else:
            self.r.shuffle(perm)
        self.transpose(v, perm)

    def op_branch_of_transposes(self):
        """The same permutation on several values that meet again."""
        v = self.pick(lambda v: v.rank >= 2)
        perm = self.r.sample(range(v.rank), v.rank)
        back = [perm.index(i) for i in range(v.rank)]
        w = self.transpose(v, perm)
        parts = [self.emit(op, [w], w.shape) for op in self.r.choices(["Relu", "Neg", "Abs", "Identity"], k=self.r.randint(1, 3))]
        if len(parts) > 1 and self.chance(0.6):
            self.transpose(self.emit("Add", parts[:2], w.shape, mag=w.mag * 2), back)
        else:
            for p in parts:
                self.transpose(p, back if self.chance(0.7) else self.r.sample(range(v.rank), v.rank))

    def op_add_transposed_self(self):
        """add(transpose(x), x)."""
        pairs = []
        for v in self.pool:
            if v.dtype == "f" and not v.const and v.rank >= 2:
                pairs += [(v, i, j) for i in range(v.rank) for j in range(i) if v.shape[i] == v.shape[j]]
        self.need(pairs)
        v, i, j = self.r.choice(pairs)
        perm = list(range(v.rank))
        perm[i], perm[j] = j, i
        t = self.transpose(v, perm)
        self.emit(self.r.choice(["Add", "Sub"]), [t, v] if self.chance(0.5) else [v, t], v.shape, mag=v.mag * 2)

    def regroup(self, v):
        """A random new grouping: per new dim (Dim, old axes multiplied, divisor or factor)."""
        parts = [(d, (i,), 1) for i, d in enumerate(v.shape)]
        for _ in range(self.r.randint(1, 3)):
            kind = self.r.random()
            if kind < 0.4 and len(parts) >= 2:
                i = self.r.randrange(len(parts) - 1)
                (d, p, f), (e, q, g) = parts[i:i + 2]
                if f == 1 and g == 1:
                    parts[i:i + 2] = [(times(d, e), p + q, 1)]
            elif kind < 0.75 and len(parts) <= 5 and parts:
                i = self.r.randrange(len(parts))
                d, p, f = parts[i]
                divisors = [k for k in range(2, d.coef) if d.coef % k == 0] if f == 1 else []
                if divisors:
                    k = self.r.choice(divisors)
                    rest = Dim(d.a // k, d.b // k, d.coef // k, d.syms)
                    two = [(fixed(k), (), k), (rest, p, -k)]
                    parts[i:i + 1] = two if self.chance(0.5) else two[::-1]
            elif kind < 0.87 and len(parts) <= 5:
                parts.insert(self.r.randint(0, len(parts)), (ONE, (), 1))
            else:
                ones = [i for i, p in enumerate(parts) if p[0] == ONE]
                if ones:
                    del parts[self.r.choice(ones)]
        return parts

    def op_reshape(self):
        v = self.any(lambda v: all(d.a and d.b for d in v.shape))
        self.reshape(v, self.regroup(v))

    def reshape(self, v, parts):
        shape = tuple(p[0] for p in parts)
        symbolic = [i for i, d in enumerate(shape) if not d.static]
        copy = [i for i in symbolic if i < v.rank and v.shape[i] == shape[i]]
        rest = [i for i in symbolic if i not in copy]
        spec = [d.a for d in shape]
        if len(rest) > 1 or (symbolic and self.chance(0.4)):
            return self.emit("Reshape", [v, self.computed_shape(v, parts)], shape, exact=v.exact, mag=v.mag, frac=v.frac, dtype=v.dtype)
        for i in copy:
            spec[i] = 0
        if rest:
            spec[rest[0]] = -1
        elif shape and self.chance(0.4) and all(shape[i].a for i in range(len(shape))):
            spec[self.r.randrange(len(spec))] = -1
        for i in range(len(spec)):
            if i < v.rank and spec[i] > 0 and v.shape[i] == shape[i] and self.chance(0.15):
                spec[i] = 0
        if spec.count(-1) and any(d.a == 0 for d in shape):
            raise Stop
        return self.emit("Reshape", [v, self.ints(*spec)], shape, exact=v.exact, mag=v.mag, frac=v.frac, dtype=v.dtype)

    def node(self, op, ins, **attrs):
        """A helper node whose output is not offered to others; its name."""
        out = self.name()
        self.nodes.append(helper.make_node(op, ins, [out], **attrs))
        self.used.update(ins)
        return out

    def computed_shape(self, v, parts):
        """The shape as exporters compute it: Shape, Gather, Mul, Div, Concat."""
        s = self.node("Shape", [v.name])
        pieces = []
        for d, axes, f in parts:
            if d.static:
                pieces.append(self.ints(d.a).name)
                continue
            one = None
            for a in axes:
                shape, at = s, a
                if self.chance(0.3):  # of another tensor that has this size
                    w = self.r.choice(self.pool)
                    if v.shape[a] in w.shape:
                        shape, at = self.node("Shape", [w.name]), w.shape.index(v.shape[a])
                g = self.node("Gather", [shape, self.ints(at).name], axis=0) if self.chance(0.7) or self.opset < 10 else \
                    self.node("Slice", [shape, self.ints(at).name, self.ints(at + 1).name, self.ints(0).name])
                one = g if one is None else self.node("Mul", [one, g])
            if f < 0:
                one = self.node("Div", [one, self.ints(-f).name])
            pieces.append(one)
        return Value(self.node("Concat", pieces, axis=0), (fixed(len(pieces)),), "i64")

    def op_flatten(self):
        v = self.any(lambda v: v.rank >= 1 and all(d.a for d in v.shape) and (self.opset >= 9))
        k = self.r.randint(0, v.rank)
        self.emit("Flatten", [v], (times(*v.shape[:k]), times(*v.shape[k:])), axis=self.signed(k, v.rank) if self.opset >= 11 and k < v.rank else k)

    def op_unsqueeze(self):
        v = self.any(lambda v: v.rank <= 5)
        n = self.r.randint(1, 2)
        axes = sorted(self.r.sample(range(v.rank + n), n))
        shape = list(v.shape)
        for a in axes:
            shape.insert(a, ONE)
        if self.opset >= 11 and self.chance(0.3):
            axes = [a - len(shape) for a in axes]
        self.with_axes("Unsqueeze", v, axes, tuple(shape), 13)

    def op_squeeze(self):
        v = self.any(lambda v: ONE in v.shape)
        ones = [i for i, d in enumerate(v.shape) if d == ONE]
        axes = sorted(self.r.sample(ones, self.r.randint(1, len(ones))))
        shape = tuple(d for i, d in enumerate(v.shape) if i not in axes)
        if len(axes) == len(ones) and all(d.static for d in v.shape) and self.chance(0.2):
            self.emit("Squeeze", [v], shape, mag=v.mag)
            return
        if self.opset >= 11 and self.chance(0.3):
            axes = [a - v.rank for a in axes]
        self.with_axes("Squeeze", v, axes, shape, 13)

    def with_axes(self, op, v, axes, shape, since, **kw):
        """axes as an input from opset `since` on, before that as an attribute."""
        kw = {"mag": v.mag, "exact": v.exact, "frac": v.frac, "dtype": v.dtype, **kw}
        if self.opset >= since:
            return self.emit(op, [v, self.ints(*axes)] if axes is not None else [v], shape, **kw)
        return self.emit(op, [v], shape, axes=axes, **kw)

    def op_concat(self):
        v = self.any(lambda v: v.rank >= 1 and v.dtype in ("f", "i64"))
        ax = self.axis(v)
        rest = lambda w: [d for i, d in enumerate(w.shape) if i != ax]
        fits = [w for w in self.pool if w.dtype == v.dtype and w.rank == v.rank and rest(w) == rest(v)]
        parts = [v] + self.r.choices(fits, k=self.r.randint(1, 3))
        if v.dtype == "f" and all(d.static for d in rest(v)) and self.chance(0.2):
            shape = [d.a for d in v.shape]
            shape[ax] = self.r.randint(1, 3)
            parts.insert(self.r.randint(0, len(parts)), self.whole(shape))
        self.r.shuffle(parts)
        dims = [p.shape[ax] for p in parts]
        if all(d.static for d in dims):
            total = fixed(sum(d.a for d in dims))
        elif all(d == dims[0] for d in dims):
            total = times(fixed(len(dims)), dims[0])
        else:
            total = self.opaque(sum(d.a for d in dims), sum(d.b for d in dims))
        shape = list(v.shape)
        shape[ax] = total
        self.emit("Concat", parts, tuple(shape), axis=self.signed(ax, v.rank))

    def op_split(self):
        v = self.any(lambda v: v.rank and v.dtype in ("f", "i64", "i32"))
        axes = [i for i, d in enumerate(v.shape) if d.static and d.a >= 2]
        self.need(axes)
        ax = self.r.choice(axes)
        n = v.shape[ax].a
        k = self.r.randint(2, min(n, 4))
        if n % k == 0 and self.chance(0.6):
            sizes = [n // k] * k
        else:
            cuts = sorted(self.r.sample(range(1, n), k - 1))
            sizes = [b - a for a, b in zip([0, *cuts], [*cuts, n])]
        equal = len(set(sizes)) == 1
        shapes = []
        for s in sizes:
            shape = list(v.shape)
            shape[ax] = fixed(s)
            shapes.append(tuple(shape))
        ins, attrs = [v], {"axis": self.signed(ax, v.rank) if self.opset >= 11 else ax}
        if equal and self.chance(0.5):
            if self.opset >= 18:
                attrs["num_outputs"] = k
        elif self.opset >= 13:
            ins.append(self.ints(*sizes))
        else:
            attrs["split"] = sizes
        outs = self.emit("Split", ins, shapes, dtype=[v.dtype] * k, mag=v.mag, exact=v.exact, frac=v.frac, **attrs)
        if equal and self.chance(0.4):
            self.emit("Concat", self.r.sample(outs, k), v.shape, axis=ax)

    def op_slice(self):
        v = self.any(lambda v: v.rank >= 1)
        axes = self.r.sample(range(v.rank), self.r.randint(1, min(2, v.rank)))
        shape, starts, ends, steps = list(v.shape), [], [], []
        for ax in axes:
            d = v.shape[ax]
            if not d.static:
                start, end, step = (0, 2 ** 31 - 1, -1) if self.chance(0.3) and self.opset >= 10 else (1, 2 ** 31 - 1, 1)
                if step < 0:
                    start, end = 2 ** 31 - 1, -2 ** 31
                else:
                    shape[ax] = self.derived(d, lambda n: n - 1)
            else:
                self.need(d.a >= 1)
                step = self.r.choice([1, 1, 1, 2, -1, -2]) if self.opset >= 10 else 1
                start, end = sorted(self.r.sample(range(d.a + 1), 2))
                ids = list(range(d.a))[start:end]
                if step < 0:
                    start, end, ids = end - 1, start - 1, ids[::-1]
                    if end < 0:
                        end = -d.a - 1
                elif self.chance(0.3):
                    end = 2 ** 31 - 1
                    ids = list(range(d.a))[start:]
                    if start and self.chance(0.5):
                        start -= d.a
                ids = ids[::abs(step)]
                shape[ax] = fixed(len(ids))
            starts.append(start), ends.append(end), steps.append(step)
        if self.opset < 10:
            self.emit("Slice", [v], tuple(shape), starts=starts, ends=ends, axes=axes)
        else:
            ins = [v, self.ints(*starts), self.ints(*ends), self.ints(*[self.signed(a, v.rank) for a in axes])]
            if any(s != 1 for s in steps) or self.chance(0.3):
                ins.append(self.ints(*steps))
            self.emit("Slice", ins, tuple(shape), dtype=v.dtype, mag=v.mag, exact=v.exact, frac=v.frac)

    def op_pad(self):
        v = self.pick(lambda v: v.rank >= 1)
        mode = self.r.choice(["constant", "constant", "constant", "edge", "reflect"])
        self.need(mode == "constant" or all(d.a > 2 and d.b > 2 for d in v.shape))
        before = [self.r.choice([0, 0, 1, 2]) for _ in v.shape]
        after = [self.r.choice([0, 0, 0, 1]) for _ in v.shape]
        self.need(any(before) or any(after))
        shape = [d if not p + q else self.derived(d, lambda n: n + p + q) for d, p, q in zip(v.shape, before, after)]
        value = self.r.choice([0.0, 0.0, 1.0, -2.0])
        kw = {"mag": max(v.mag, 2), "exact": v.exact, "frac": v.frac, "mode": mode, "dtype": "f"}
        if self.opset < 11:
            self.emit("Pad", [v], tuple(shape), pads=before + after, value=value, **kw)
            return
        axes = list(range(v.rank))
        ins = [v, None, self.const(np.float32(value)) if mode == "constant" and self.chance(0.6) else None]
        if self.opset >= 18 and self.chance(0.5):
            axes = [a for a in axes if before[a] or after[a]]
            self.r.shuffle(axes)
            ins.append(self.ints(*[self.signed(a, v.rank) for a in axes]))
        ins[1] = self.ints(*[before[a] for a in axes], *[after[a] for a in axes])
        while ins[-1] is None:
            ins.pop()
        self.emit("Pad", ins, tuple(shape), **kw)

    def op_tile(self):
        v = self.pick(lambda v: v.rank >= 1)
        n = [self.r.choice([1, 1, 2, 3]) for _ in v.shape]
        self.emit("Tile", [v, self.ints(*n)], tuple(times(d, fixed(k)) if d.a else d for d, k in zip(v.shape, n)),
                  mag=v.mag, exact=v.exact, frac=v.frac, dtype="f")

    def op_expand(self):
        v = self.pick(lambda v: v.rank <= 5)
        target = [fixed(self.r.randint(2, 4)) if d == ONE and self.chance(0.7) else d for d in v.shape]
        target = [fixed(self.r.randint(1, 3)) for _ in range(self.r.choice([0, 0, 1]))] + target
        spec = [d.a if d.static else 1 for d in target]
        while len(spec) > 1 and spec[0] == 1 and target[0].static and len(spec) > v.rank:
            spec, target = spec[1:], target[1:]
        self.emit("Expand", [v, self.ints(*spec)], tuple(target), mag=v.mag, exact=v.exact, frac=v.frac, dtype="f")

    def op_gather(self):
        v = self.any(lambda v: v.rank >= 1 and v.dtype in ("f", "i64", "i32"))
        axes = [i for i, d in enumerate(v.shape) if d.static and d.a >= 1]
        self.need(axes)
        ax = self.r.choice(axes)
        n = v.shape[ax].a
        shape = self.r.choice([(), (), (1,), (2,), (3,), (n,), (2, 2)])
        ids = self.np.permutation(n) if shape == (n,) and self.chance(0.6) else self.np.integers(-n if self.opset >= 11 else 0, n, shape)
        idx = self.const(ids, self.r.choice(["i64", "i64", "i32"]))
        if idx.dtype == "i64" and n > 1 and ids.size and int(ids.flat[0]) % 3 == 0 and self.opset >= 11:  # no draw of its own: seeds keep their models
            idx = Value(self.name(), idx.shape, "i64", n - 1)
            self.inputs.append(idx)
        out = (*v.shape[:ax], *idx.shape, *v.shape[ax + 1:])
        self.emit("Gather", [v, idx], out, dtype=v.dtype, mag=v.mag, exact=v.exact, frac=v.frac, axis=self.signed(ax, v.rank))

    def op_embedding(self):
        """Rows of a constant, chosen by an input."""
        i = self.pick(lambda v: v.mag <= 7, "i64") if any(v.dtype == "i64" and not v.const and v.mag <= 7 for v in self.pool) else \
            self.add_input([self.dim() for _ in range(self.r.randint(1, 3))], "i64", 7)
        rows = self.whole((8, self.r.randint(2, 6)))
        self.emit("Gather", [rows, i], (*i.shape, rows.shape[1]), dtype="f", mag=2, exact=True, frac=0, axis=0)

    def op_depth_to_space(self):
        v = self.pick(lambda v: v.rank == 4)
        n, c, h, w = v.shape
        if self.chance(0.5):
            self.need(c.static and c.a % 4 == 0 and c.a)
            self.emit("DepthToSpace", [v], (n, fixed(c.a // 4), times(h, fixed(2)), times(w, fixed(2))), blocksize=2,
                      mode=self.r.choice(["DCR", "CRD"]) if self.opset >= 11 else None)
        else:
            self.need(h.static and w.static and h.a % 2 == 0 and w.a % 2 == 0 and h.a and w.a)
            self.emit("SpaceToDepth", [v], (n, times(c, fixed(4)), fixed(h.a // 2), fixed(w.a // 2)), blocksize=2)

    # ------------------------------------------------------------------------------------------------ element by element

    def op_unary(self):
        v = self.pick()
        exact = ["Relu", "Neg", "Abs", "Identity", "Sign", "Clip", "Dropout", "Relu", "Neg"]
        rough = ["Sigmoid", "Tanh", "Erf", "Elu", "Softplus", "Softsign", "HardSigmoid", "Selu", "LeakyRelu"]
        rough += ["HardSwish"] * (self.opset >= 14) + ["Mish"] * (self.opset >= 18) + ["Gelu"] * (self.opset >= 20) + ["Celu"] * (self.opset >= 12)
        op = self.r.choice(exact if self.chance(0.7) else rough)
        if op == "Clip":
            if self.opset < 11:
                self.emit("Clip", [v], v.shape, min=-3.0, max=6.0)
            else:
                ins = [v, self.const(np.float32(-3)) if self.chance(0.8) else None, self.const(np.float32(6)) if self.chance(0.8) else None]
                while ins[-1] is None:
                    ins.pop()
                self.emit("Clip", ins, v.shape, mag=max(v.mag, 6), exact=v.exact, frac=v.frac)
        elif op in exact:
            self.emit(op, [v], v.shape, mag=1 if op == "Sign" else v.mag)
        else:
            if self.chance(0.1) and op in ("Gelu", "Erf"):
                self.emit("QuickGelu", [v], v.shape, exact=False, domain="com.microsoft")
            else:
                self.emit(op, [v], v.shape, exact=False)

    def op_cast(self):
        if self.chance(0.5):
            v = self.pick(lambda v: v.exact and v.frac == 0 and v.mag < 1000)
            self.cast(v, self.r.choice(["i64", "i32", "b"]))
        else:
            v = self.pick(dtype=self.r.choice(["i64", "i32", "b"]))
            self.cast(v, "f")

    def cast(self, v, dtype):
        return self.emit("Cast", [v], v.shape, dtype=dtype, to=TYPES[dtype], mag=1 if "b" in (dtype, v.dtype) else v.mag,
                         exact=True, frac=0)

    def partner(self, v):
        """A value that broadcasts with v (v's shape is the result), or a constant."""
        kind = self.r.random()
        if kind < 0.15:
            return v
        if kind < 0.55:
            same = [w for w in self.pool if w.dtype == v.dtype and w.shape == v.shape and w is not v and not w.const]
            if same:
                return self.r.choice(same)
            turned = [w for w in self.pool if w.dtype == v.dtype and not w.const and w.rank == v.rank >= 2
                      and sorted(w.shape) == sorted(v.shape)]
            if turned:
                w = self.r.choice(turned)
                free, perm = list(range(w.rank)), []
                for d in v.shape:
                    p = next(i for i in free if w.shape[i] == d)
                    free.remove(p)
                    perm.append(p)
                return self.transpose(w, perm)
        if kind < 0.65:
            narrow = [w for w in self.pool if w.dtype == v.dtype and not w.const and w.rank <= v.rank and w is not v
                      and all(d in (ONE, e) for d, e in zip(w.shape[::-1], v.shape[::-1]))]
            if narrow:
                return self.r.choice(narrow)
        shape = [d.a if d.static and self.chance(0.6) else 1 for d in v.shape]
        kind = self.r.random()
        if kind < 0.3:
            shape = []
        elif kind < 0.6 and v.rank:
            k = self.axis(v)
            shape = [v.shape[k].a if v.shape[k].static else 1] + [1] * (v.rank - 1 - k)
        elif kind < 0.7 and v.rank:
            shape = shape[self.r.randrange(v.rank):]
        if v.dtype == "f":
            return self.whole(shape)
        return self.const(self.np.integers(0, 2 if v.dtype == "b" else 4, shape), v.dtype)

    def op_binary(self):
        v = self.pick()
        w = self.partner(v)
        op = self.r.choice(["Add", "Add", "Add", "Sub", "Mul", "Mul", "Max", "Min", "Sum", "Div", "PRelu", "Pow"])
        ins = [v, w] if self.chance(0.6) else [w, v]
        if op in ("Add", "Sub"):
            self.emit(op, ins, v.shape, mag=v.mag + w.mag)
        elif op == "Mul":
            self.need(v.mag * w.mag < 1e5)
            self.emit(op, ins, v.shape, mag=max(v.mag * w.mag, 1), frac=v.frac + w.frac)
        elif op in ("Max", "Min", "Sum"):
            if self.chance(0.3):
                ins.append(self.partner(v))
            self.emit(op, ins, v.shape, mag=sum(x.mag for x in ins))
        elif op == "Div":
            shape = [d.a if d.static and self.chance(0.5) else 1 for d in v.shape]
            self.emit("Div", [v, self.const(self.np.choice([1.0, 2.0, 3.0, -2.0], shape))], v.shape, mag=v.mag, exact=False)
        elif op == "PRelu":
            k = self.axis(v)
            shape = [v.shape[k].a if v.shape[k].static else 1] + [1] * (v.rank - 1 - k)
            self.emit("PRelu", [v, self.whole(shape)], v.shape, mag=v.mag * 2)
        else:
            self.need(v.mag < 100)
            self.emit("Pow", [v, self.const(np.float32(2))], v.shape, mag=v.mag ** 2, exact=False)

    def op_integers(self):
        v = self.pick(lambda v: v.mag < 1e6, self.r.choice(["i64", "i32"]))
        self.emit(self.r.choice(["Add", "Sub", "Mul"]), [v, self.partner(v)], v.shape, dtype=v.dtype, mag=v.mag * v.mag + 10)

    def op_compare(self):
        v = self.pick(lambda v: v.exact)
        w = self.partner(v)
        self.need(w.exact)
        self.emit(self.r.choice(["Less", "Greater"]), [v, w], v.shape, dtype="b", mag=1, frac=0, exact=True)

    def op_logic(self):
        v = self.pick(dtype="b")
        if self.chance(0.4):
            self.emit("Not", [v], v.shape)
        else:
            self.emit(self.r.choice(["And", "Or", "Xor"]), [v, self.partner(v)], v.shape, dtype="b")

    def op_where(self):
        v = self.pick()
        w = self.partner(v)
        cs = [c for c in self.pool if c.dtype == "b" and c.rank <= v.rank and
              all(d in (ONE, e) for d, e in zip(c.shape[::-1], v.shape[::-1]))]
        c = self.r.choice(cs) if cs and self.chance(0.8) else \
            self.const(self.np.integers(0, 2, [d.a if d.static else 1 for d in v.shape]), "b")
        self.emit("Where", [c, *([v, w] if self.chance(0.5) else [w, v])], v.shape, dtype="f", mag=max(v.mag, w.mag),
                  frac=max(v.frac, w.frac), exact=v.exact and w.exact)

    # ------------------------------------------------------------------------------------------------ along axes

    def op_reduce(self):
        v = self.pick(lambda v: v.rank >= 1 and all(d.a for d in v.shape))
        op = self.r.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                            "ReduceSum", "ReduceMean", "ReduceLogSumExp", "ReduceProd"])
        axes = sorted(self.r.sample(range(v.rank), self.r.randint(1, v.rank)))
        keep = self.r.choice([0, 1])
        n = math.prod(max(v.shape[a].a, v.shape[a].b) for a in axes)
        mag, exact = {"ReduceSum": (v.mag * n, v.exact), "ReduceL1": (v.mag * n, v.exact), "ReduceMax": (v.mag, v.exact),
                      "ReduceMin": (v.mag, v.exact), "ReduceSumSquare": (v.mag ** 2 * n, v.exact)}.get(op, (v.mag * 2, False))
        frac = v.frac * (2 if op == "ReduceSumSquare" else 1)
        if op == "ReduceL2":
            mag = v.mag * n
        if op == "ReduceProd":
            self.need(v.mag <= 4 and n <= 8)
            mag, exact = v.mag ** n, False
        if op == "ReduceLogSumExp":
            self.need(v.mag < 50)
        shape = tuple(ONE if i in axes else d for i, d in enumerate(v.shape) if keep or i not in axes)
        since = 13 if op == "ReduceSum" else 18
        if len(axes) == v.rank and self.chance(0.3):
            axes = None
        else:
            self.r.shuffle(axes)
            if self.opset >= 11:
                axes = [self.signed(a, v.rank) for a in axes]
        self.with_axes(op, v, axes, shape, since, mag=mag, exact=exact, frac=frac, keepdims=None if keep and self.chance(0.5) else keep)

    def op_reduce_computed(self):
        """One axis that is known only when the model runs; what it leaves, whose shape nothing says, meets the whole again."""
        v = self.pick(lambda v: v.rank >= 2 and all(d.a > 1 for d in v.shape))
        op = self.r.choice(["ReduceSum", "ReduceMax", "ReduceMean"])
        self.need(self.opset >= (13 if op == "ReduceSum" else 18))
        ax = self.axis(v)
        i = next((i for i in self.inputs if i.dtype == "i64" and i.shape == (ONE,)), None) or self.add_input([ONE], "i64", 1)
        zero = self.node("Sub", [i.name, self.node("Identity", [i.name])])
        axes = Value(self.node("Add", [zero, self.ints(self.signed(ax, v.rank)).name]), (ONE,), "i64", v.rank)
        n = max(v.shape[ax].a, v.shape[ax].b)
        shape = tuple(ONE if k == ax else d for k, d in enumerate(v.shape))
        y = self.emit(op, [v, axes], shape, dtype="f", mag=v.mag * n, exact=v.exact and op != "ReduceMean", frac=v.frac)
        self.pool.remove(y)
        self.emit("Sub", [v, y], v.shape, mag=v.mag + y.mag)

    def op_arg(self):
        v = self.pick(lambda v: v.rank >= 1 and v.exact and all(d.a for d in v.shape))
        ax, keep = self.axis(v), self.r.choice([0, 1])
        shape = tuple(ONE if i == ax else d for i, d in enumerate(v.shape) if keep or i != ax)
        self.emit(self.r.choice(["ArgMax", "ArgMin"]), [v], shape, dtype="i64", mag=20, frac=0, keepdims=keep,
                  axis=self.signed(ax, v.rank) if self.opset >= 11 else ax,
                  select_last_index=1 if self.opset >= 12 and self.chance(0.3) else None)

    def op_softmax(self):
        v = self.pick(lambda v: v.rank >= 1 and v.mag < 1000 and all(d.a for d in v.shape))
        op = self.r.choice(["Softmax", "Softmax", "Softmax", "LogSoftmax", "Hardmax"])
        ax = self.axis(v)
        if op == "Hardmax":
            self.need(v.exact)
        if self.opset < 11 or self.chance(0.5):
            axis = ax
        else:
            axis = ax - v.rank
        if self.chance(0.15):
            axis = None
            self.need(v.rank >= 2)
        self.emit(op, [v], v.shape, mag=1 if op != "LogSoftmax" else v.mag * 2 + 5, frac=0 if op == "Hardmax" else None,
                  exact=True if op == "Hardmax" else False, axis=axis)

    def op_cumsum(self):
        self.need(self.opset >= 11)
        v = self.pick(lambda v: v.rank >= 1)
        ax = self.axis(v)
        n = max(v.shape[ax].a, v.shape[ax].b, 1)
        self.emit("CumSum", [v, self.const(np.array(self.signed(ax, v.rank)), self.r.choice(["i64", "i32"]))], v.shape, mag=v.mag * n,
                  exact=v.exact, frac=v.frac, dtype="f", exclusive=self.r.choice([None, 1]), reverse=self.r.choice([None, 1]))

    def op_topk(self):
        v = self.pick(lambda v: v.rank >= 1 and v.exact and any(d.static and d.a for d in v.shape))
        ax = self.r.choice([i for i, d in enumerate(v.shape) if d.static and d.a])
        k = self.r.randint(1, v.shape[ax].a)
        shape = list(v.shape)
        shape[ax] = fixed(k)
        kw = {"mag": max(v.mag, v.shape[ax].a), "exact": True, "frac": v.frac}
        if self.opset < 10:
            self.emit("TopK", [v], [tuple(shape)] * 2, dtype=["f", "i64"], k=k, axis=ax, **kw)
        else:
            self.emit("TopK", [v, self.ints(k)], [tuple(shape)] * 2, dtype=["f", "i64"], axis=self.signed(ax, v.rank) if self.opset >= 11 else ax,
                      largest=self.r.choice([None, 0]) if self.opset >= 11 else None, **kw)

    def op_layer_norm(self):
        v = self.pick(lambda v: v.rank >= 1 and v.shape[-1].static and v.shape[-1].a > 1 and all(d.a for d in v.shape))
        if self.opset < 17 or self.chance(0.3):
            return self.decomposed_layer_norm(v)
        ax = v.rank - 1
        while ax > 0 and v.shape[ax - 1].static and self.chance(0.3):
            ax -= 1
        shape = [d.a for d in v.shape[ax:]]
        ins = [v, self.whole(shape)] + ([self.whole(shape)] if self.chance(0.7) else [])
        if self.chance(0.2):
            ins[1:] = [self.emit("Identity", [w], w.shape) for w in ins[1:]]
        elif self.chance(0.1) and len(shape) > 1:
            turned = self.whole(shape[::-1])
            ins[1] = self.transpose(turned, range(len(shape))[::-1])
        if self.opset >= 23 and self.chance(0.3):
            return self.emit("RMSNormalization", ins[:2], v.shape, mag=20, exact=False, axis=self.signed(ax, v.rank))
        self.emit("LayerNormalization", ins, v.shape, mag=20, exact=False, axis=self.signed(ax, v.rank), epsilon=0.5)

    def decomposed_layer_norm(self, v):
        mean = self.with_axes("ReduceMean", v, [-1] if self.opset >= 11 else [v.rank - 1], (*v.shape[:-1], ONE), 18, exact=False)
        d = self.emit("Sub", [v, mean], v.shape, mag=v.mag * 2)
        self.need(v.mag < 100)
        sq = self.emit("Pow", [d, self.const(np.float32(2))], v.shape, mag=v.mag ** 2 * 4, exact=False)
        var = self.with_axes("ReduceMean", sq, [-1] if self.opset >= 11 else [v.rank - 1], (*v.shape[:-1], ONE), 18, exact=False)
        e = self.emit("Add", [var, self.const(np.float32(0.5))], var.shape, exact=False)
        s = self.emit("Sqrt", [e], var.shape, exact=False)
        n = self.emit("Div", [d, s], v.shape, mag=20, exact=False)
        n = self.emit("Mul", [n, self.whole([v.shape[-1].a])], v.shape, mag=40, exact=False)
        return self.emit("Add", [n, self.whole([v.shape[-1].a])], v.shape, mag=42, exact=False)

    def op_batch_norm(self):
        v = self.pick(lambda v: v.rank >= 2 and v.shape[1].static and v.shape[1].a and v.mag < 1e4)
        c = v.shape[1].a
        pos = self.const(self.np.choice([1.0, 4.0, 0.25], c))
        self.emit("BatchNormalization", [v, self.whole(c), self.whole(c), self.whole(c), pos], v.shape, mag=v.mag * 8 + 10, exact=False, epsilon=0.0001)

    def op_norm(self):
        v = self.pick(lambda v: v.rank in (3, 4) and v.shape[1].static and v.shape[1].a and all(d.a for d in v.shape))
        c = v.shape[1].a
        kind = self.r.random()
        if kind < 0.5:
            self.emit("InstanceNormalization", [v, self.whole(c), self.whole(c)], v.shape, mag=20, exact=False, epsilon=0.5)
        elif kind < 0.7 and self.opset >= 21 and c % 2 == 0:
            self.emit("GroupNormalization", [v, self.whole(c), self.whole(c)], v.shape, mag=20, exact=False, epsilon=0.5, num_groups=2)
        elif kind < 0.85 and v.rank == 4:
            self.emit("LRN", [v], v.shape, mag=v.mag, exact=False, size=3)
        else:
            self.emit("LpNormalization", [v], v.shape, mag=1, exact=False, axis=self.r.randrange(v.rank), p=2)

    # ------------------------------------------------------------------------------------------------ products

    def op_matmul(self):
        v = self.pick(lambda v: v.rank >= 2 and v.mag < 500 and all(d.a for d in v.shape))
        k = v.shape[-1]
        kind = self.r.random()
        if kind < 0.5:
            self.need(k.static)
            n = self.r.choice([1, 2, 3, 4, 6])
            lead = [v.shape[0].a] if v.rank >= 3 and v.shape[0].static and self.chance(0.1) and v.rank == 3 else []
            w = self.whole([*lead, k.a, n]) if self.chance(0.9) else self.whole([k.a])
            shape = (*v.shape[:-1], fixed(n)) if w.rank > 1 else v.shape[:-1]
            y = self.emit("MatMul", [v, w], shape, mag=v.mag * 2 * k.a)
            if w.rank > 1 and self.chance(0.5):
                self.emit("Add", [y, self.whole([n])], shape, mag=y.mag + 2)
        elif kind < 0.65:
            m = v.shape[-2]
            self.need(m.static)
            n = self.r.choice([1, 2, 3, 4])
            self.emit("MatMul", [self.whole([n, m.a]), v], (*v.shape[:-2], fixed(n), k), mag=v.mag * 2 * m.a, exact=v.exact, frac=v.frac, dtype="f")
        else:
            fits = [w for w in self.pool if w.dtype == "f" and not w.const and w.rank == v.rank and w.mag < 500 and w.shape[:-2] == v.shape[:-2]
                    and (w.shape[-2] == k or w.shape[-1] == k)]
            self.need(fits)
            w = self.r.choice(fits)
            if w.shape[-2] != k:
                perm = list(range(w.rank))
                perm[-1], perm[-2] = perm[-2], perm[-1]
                w = self.transpose(w, perm)
            self.emit("MatMul", [v, w], (*v.shape[:-1], w.shape[-1]), mag=v.mag * w.mag * max(k.a, k.b), frac=v.frac + w.frac)

    def op_matmul_broadcast(self):
        """Operands of different ranks, dims of size 1 that broadcast, vectors; a constant on either side or none."""
        v = self.pick(lambda v: v.rank >= 2 and v.mag < 300 and all(d.a for d in v.shape))
        left = self.chance(0.5)
        k = v.shape[-2] if left else v.shape[-1]
        self.need(k.static)
        if self.chance(0.12):
            w, shape = self.whole([k.a]), (*v.shape[:-2], v.shape[-1]) if left else v.shape[:-1]
        else:
            n = self.r.choice([1, 2, 3, 4])
            lead = [d if d.static and self.chance(0.5) else ONE for d in v.shape[:-2]]
            lead = lead[self.r.randint(0, len(lead)):]
            if len(lead) == v.rank - 2 and v.rank < 5 and self.chance(0.3):
                lead = [fixed(self.r.choice([1, 2, 3])), *lead]
            dims = [d.a for d in lead] + ([n, k.a] if left else [k.a, n])
            w = self.whole(dims)
            if self.chance(0.35):  # no constant any more
                z = self.add_input([fixed(d) for d in dims], "f", 2) if len(self.inputs) < 4 else None
                w = z or w
            batch = [*v.shape[:-2]]
            wide = [ONE] * (len(batch) - len(lead)) + lead
            batch = [ONE] * (len(wide) - len(batch)) + batch
            batch = [a if b == ONE else b for a, b in zip(batch, wide)]
            shape = (*batch, fixed(n), v.shape[-1]) if left else (*batch, v.shape[-2], fixed(n))
        self.emit("MatMul", [w, v] if left else [v, w], shape, dtype="f", mag=v.mag * 2 * k.a, exact=v.exact, frac=v.frac)

    def op_gemm(self):
        v = self.pick(lambda v: v.rank == 2 and v.mag < 500 and all(d.a for d in v.shape))
        ta, tb = self.r.choice([0, 1]), self.r.choice([0, 1])
        right = self.chance(0.3)  # v is the second operand
        t = tb if right else ta
        k, free = (v.shape[1], v.shape[0]) if (t == 1) == right else (v.shape[0], v.shape[1])
        self.need(k.static)
        n = self.r.choice([1, 2, 3, 5])
        dims = [n, k.a] if (ta == 0 if right else tb == 1) else [k.a, n]
        w = next((x for x in self.pool if x.dtype == "f" and not x.const and x is not v and x.mag < 100
                  and list(x.shape) == [fixed(d) for d in dims]), None) if self.chance(0.4) else None
        w = w or self.whole(dims)
        m, o = (fixed(n), free) if right else (free, fixed(n))
        ins = [w, v] if right else [v, w]
        if self.chance(0.7) or self.opset < 11:
            forms = [[], [1], [1, 1]] + ([[o.a], [1, o.a]] if o.static else []) + ([[m.a, 1]] if m.static else []) \
                + ([[m.a, o.a]] if m.static and o.static else [])
            bias = self.r.choice(forms)
            have = [x for x in self.pool if x.dtype == "f" and not x.const and x.mag < 1000 and x.rank in (1, 2)
                    and all(d in (ONE, e) for d, e in zip(x.shape[::-1], (o, m)))]
            ins.append(self.r.choice(have) if have and self.chance(0.4) else self.whole(bias))
        attrs = {"transA": ta or None, "transB": tb or None, "alpha": 2.0 if self.chance(0.2) else None,
                 "beta": 0.5 if self.chance(0.2) and len(ins) > 2 else None}
        mag = v.mag * max(w.mag, 1) * k.a * 2 + (ins[2].mag if len(ins) > 2 else 0)
        self.emit("Gemm", ins, (m, o), dtype="f", mag=mag, frac=v.frac + w.frac + 1 + (ins[2].frac if len(ins) > 2 else 0), **attrs)

    def weight(self, dims, axis):
        """A constant of whole numbers as quantized models have it: DequantizeLinear of int8, maybe stored in another order.
        axis: the dim that has a scale per element, where there are such."""
        perm = self.r.sample(range(len(dims)), len(dims)) if self.chance(0.5) else list(range(len(dims)))
        stored = [0] * len(dims)
        for i, p in enumerate(perm):
            stored[p] = dims[i]
        q = self.const(self.np.integers(-3, 4, stored), "i8")
        kw = {}
        if self.opset >= 13 and self.chance(0.6):
            at = perm[axis] if self.chance(0.8) else self.r.randrange(len(dims))
            n = stored[at]
            scale = self.const(self.np.choice([1.0, 2.0, 0.5], n))
            zero = self.const(self.np.integers(-1, 2, n), "i8")
            kw = {} if at == 1 and self.chance(0.5) else {"axis": self.signed(at, len(dims))}
        else:
            scale, zero = self.const(np.float32(self.r.choice([1, 2, 0.5]))), self.const(np.array(self.r.randint(-1, 1)), "i8")
        w = self.emit("DequantizeLinear", [q, scale, zero][:2 if self.chance(0.3) else 3], tuple(fixed(d) for d in stored), dtype="f",
                      mag=8, exact=True, frac=1, **kw)
        return w if perm == sorted(perm) and self.chance(0.8) else self.transpose(w, perm)

    def quantized_conv(self, v, scale, zero):
        """QLinearConv of bytes, of which each filter has a scale, or all."""
        c, out, k = v.shape[1].a, self.r.randint(1, 4), self.r.choice([1, 1, 3])
        rows = [] if self.chance(0.5) else [out]
        each = [self.const(np.asarray(self.np.choice([0.5, 1.0], rows), np.float32)), self.const(self.np.integers(0, 1, rows), "i8")]
        bias = [self.const(self.np.integers(-3, 4, [out]), "i32")] if self.chance(0.5) else []
        w = self.const(self.np.integers(-3, 4, [out, c, k, k]), "i8")
        y = self.emit("QLinearConv", [v, scale, zero, w, *each, scale, zero, *bias], (v.shape[0], fixed(out), *v.shape[2:]), dtype="i8", mag=130, exact=True, frac=0,
                      pads=[k // 2] * 4)
        return self.emit("DequantizeLinear", [y, scale, zero], y.shape, dtype="f", mag=260, exact=True, frac=0)

    def op_quantized_weight(self):
        """Q and DQ around an op, its weight through DequantizeLinear."""
        self.need(self.opset >= 10)
        v = self.pick(lambda v: v.rank in (2, 3, 4) and v.exact and v.frac == 0 and v.mag < 100 and all(d.a for d in v.shape))
        if self.chance(0.6):
            scale, zero = self.const(np.float32(self.r.choice([1, 2]))), self.const(np.array(self.r.randint(0, 3)), "i8")
            v = self.emit("QuantizeLinear", [v, scale, zero], v.shape, dtype="i8", mag=130, exact=True, frac=0)
            if v.rank == 4 and v.shape[1].static and self.chance(0.4):
                return self.quantized_conv(v, scale, zero)
            v = self.emit("DequantizeLinear", [v, scale, zero], v.shape, dtype="f", mag=260, exact=True, frac=0)
        if v.rank == 4 and v.shape[1].static and self.chance(0.6):
            c, k, out = v.shape[1].a, self.r.choice([1, 1, 3]), self.r.randint(1, 4)
            y = self.emit("Conv", [v, self.weight([out, c, k, k], 0)], (v.shape[0], fixed(out), *v.shape[2:]), mag=v.mag * c * k * k * 8,
                          pads=[k // 2] * 4)
        else:
            k, n = v.shape[-1], self.r.randint(1, 5)
            self.need(k.static)
            if v.rank == 2 and self.chance(0.5):
                tb = self.r.choice([0, 1])
                ins = [v, self.weight([n, k.a] if tb else [k.a, n], 1 - tb)] + ([self.whole([n])] if self.chance(0.5) or self.opset < 11 else [])
                y = self.emit("Gemm", ins, (v.shape[0], fixed(n)), mag=v.mag * k.a * 8 + 2, transB=tb or None)
            else:
                y = self.emit("MatMul", [v, self.weight([k.a, n], 1)], (*v.shape[:-1], fixed(n)), mag=v.mag * k.a * 8)
        if self.chance(0.5):
            self.transpose(y, self.r.sample(range(y.rank), y.rank))

    def op_einsum(self):
        self.need(self.opset >= 12)
        v = self.pick(lambda v: v.rank in (2, 3, 4) and all(d.a for d in v.shape))
        if v.rank == 3 and v.mag < 100 and self.chance(0.4):
            b, m, k = v.shape
            self.need(k.static)
            self.emit("Einsum", [v, v], (b, m, m), mag=v.mag ** 2 * k.a, frac=2 * v.frac, equation="bik,bjk->bij")
            return
        letters = "abcd"[:v.rank]
        if v.mag < 100 and self.chance(0.6):
            self.einsum_of_two(v, letters)
            return
        perm = self.r.sample(range(v.rank), v.rank)
        self.emit("Einsum", [v], tuple(v.shape[p] for p in perm), equation=f"{letters}->{''.join(letters[p] for p in perm)}")

    def einsum_of_two(self, v, letters):
        """v and a Transpose of it or a weight, some of their letters shared, in any order; the result told, or not. The result of a sum is whole
        numbers, so the sizes of what is summed are known."""
        size = dict(zip(letters, v.shape))
        shared = [c for c in letters if self.chance(0.6)]
        own = [c for c in letters if c not in shared]
        weight = self.chance(0.4) and all(size[c].static for c in shared)
        if weight:
            size["z"] = fixed(self.r.randint(1, 4))
            other = self.r.sample(shared + ["z"], len(shared) + 1)
            w = self.weight([size[c].a for c in other], other.index("z"))
        else:
            perm = self.r.sample(range(v.rank), v.rank)
            w = self.transpose(v, perm)
            names = {c: c if c in shared else "wxyz"[k] for k, c in enumerate(letters)}
            other = [names[letters[p]] for p in perm]
            size.update({names[c]: size[c] for c in letters})
        every = sorted(set(letters) | set(other))
        told = self.chance(0.7)
        out = [c for c in every if (c in letters) != (c in other)]
        if told:
            out = self.r.sample(every, len(every))[:self.r.randint(min(2, len(every)), min(4, len(every)))]
        summed = [c for c in every if c not in out]
        self.need(all(size[c].static for c in summed) and all(size[c].a for c in every))
        terms = 1
        for c in summed:
            terms *= size[c].a
        self.need(terms <= 300)
        equation = f"{letters},{''.join(other)}" + (f"->{''.join(out)}" if told else "")
        y = self.emit("Einsum", [v, w], tuple(size[c] for c in out), mag=v.mag * (8 if weight else v.mag) * terms, frac=v.frac + (0 if weight else v.frac),
                      equation=equation if self.chance(0.8) else equation.replace(",", " , "))
        if len(out) > 1 and self.chance(0.6):
            self.transpose(y, self.r.sample(range(len(out)), len(out)))

    def op_conv(self):
        v = self.pick(lambda v: v.rank in (3, 4, 5) and v.mag < 200 and v.shape[1].static and v.shape[1].a and all(d.a for d in v.shape))
        c, s = v.shape[1].a, v.rank - 2
        k = self.r.choice([1, 1, 3]) if s < 3 else 1
        group = self.r.choice([g for g in (1, 1, 1, 2, c) if c % g == 0])
        out = group * self.r.randint(1, 3)
        pad, stride = (k // 2 if self.chance(0.8) else 0), self.r.choice([1, 1, 2])
        spatial = tuple(d if k == 1 and stride == 1 or (stride == 1 and 2 * pad == k - 1)
                        else self.derived(d, lambda n: (n + 2 * pad - k) // stride + 1) for d in v.shape[2:])
        if group == 1 and self.chance(0.12):
            w = self.whole([c, out, *[k] * s], 1)
            stride, pad = 2, 0
            spatial = tuple(self.derived(d, lambda n: (n - 1) * 2 + k) for d in v.shape[2:])
            self.emit("ConvTranspose", [v, w], (v.shape[0], fixed(out), *spatial), mag=v.mag * c * k ** s, exact=v.exact, frac=v.frac, strides=[2] * s)
            return
        w = self.whole([out, c // group, *[k] * s], 1)
        ins = [v, w] + ([self.whole([out])] if self.chance(0.6) else [])
        y = self.emit("Conv", ins, (v.shape[0], fixed(out), *spatial), mag=v.mag * c * k ** s + 2, group=group if group > 1 else None,
                      pads=[pad] * (2 * s) if pad else None, strides=[stride] * s if stride > 1 else None, kernel_shape=[k] * s if self.chance(0.5) else None)
        if self.chance(0.4):
            self.emit("Relu", [y], y.shape)

    def op_pool(self):
        v = self.pick(lambda v: v.rank in (3, 4) and all(d.a for d in v.shape))
        s = v.rank - 2
        if self.chance(0.3):
            op = self.r.choice(["GlobalAveragePool", "GlobalMaxPool"])
            return self.emit(op, [v], (*v.shape[:2], *[ONE] * s), exact=v.exact and op == "GlobalMaxPool")
        op = self.r.choice(["MaxPool", "AveragePool"])
        stride = self.r.choice([1, 2])
        spatial = tuple(self.derived(d, lambda n: (n - 2) // stride + 1) for d in v.shape[2:])
        self.emit(op, [v], (*v.shape[:2], *spatial), kernel_shape=[2] * s, strides=[stride] * s)

    def op_resize(self):
        """By scales or sizes, any dims, nearest or linear."""
        v = self.pick(lambda v: v.rank in (3, 4) and all(d.a for d in v.shape))
        if self.opset < 11:
            self.need(v.rank == 4 and self.opset in (9, 10))
            shape = (*v.shape[:2], times(v.shape[2], fixed(2)), times(v.shape[3], fixed(2)))
            self.emit("Upsample" if self.opset == 9 else "Resize", [v, self.const(np.array([1, 1, 2, 2.0]))], shape, mag=v.mag, exact=v.exact,
                      frac=v.frac, dtype="f", mode="nearest")
            return
        dims = self.r.sample(range(v.rank), self.r.randint(1, 2)) if self.chance(0.4) else list(range(2, v.rank))
        linear = self.chance(0.2) and dims == list(range(2, v.rank))
        shape = tuple(times(d, fixed(2)) if i in dims else d for i, d in enumerate(v.shape))
        attrs = {"mode": "linear" if linear else "nearest", "coordinate_transformation_mode": "asymmetric"}
        if not linear:
            attrs["nearest_mode"] = self.r.choice(["floor", "round_prefer_floor"])
        axes = list(range(v.rank))
        if self.opset >= 18 and self.chance(0.4):
            axes = attrs["axes"] = self.r.sample(dims, len(dims))
        empty = lambda: None if self.opset >= 13 else self.const(np.zeros(0))
        if all(shape[a].static for a in axes) and self.chance(0.4):
            ins = [v, empty(), empty(), self.ints(*[shape[a].a for a in axes])]
        else:
            ins = [v, empty(), self.const(np.array([2.0 if a in dims else 1.0 for a in axes]))]
        self.emit("Resize", ins, shape, mag=v.mag, exact=v.exact and not linear, frac=v.frac, dtype="f", **attrs)

    def op_nhwc_conv(self):
        """As TensorFlow exports it: Transpose, Conv, Transpose, and something in between."""
        v = self.pick(lambda v: v.rank == 4 and v.shape[3].static and 0 < v.shape[3].a <= 8 and v.mag < 100 and all(d.a for d in v.shape))
        x = self.transpose(v, [0, 3, 1, 2])
        c = self.r.choice([v.shape[3].a, 4])
        k = self.r.choice([1, 3])
        y = self.emit("Conv", [x, self.whole([c, v.shape[3].a, k, k], 1)], (x.shape[0], fixed(c), *x.shape[2:]),
                      mag=v.mag * v.shape[3].a * k * k, pads=[k // 2] * 4)
        y = self.transpose(y, [0, 2, 3, 1])
        if self.chance(0.6):
            y = self.emit("Add", [y, self.whole([c])], y.shape, mag=y.mag + 2)
        if self.chance(0.6):
            y = self.emit("Relu", [y], y.shape)
        if y.shape == v.shape and self.chance(0.6):
            self.emit("Add", [y, v], v.shape, mag=y.mag + v.mag)

    # ------------------------------------------------------------------------------------------------ larger shapes of graphs

    def op_attention(self):
        """Scores of one or two heads, with the Transposes that exporters write."""
        v = self.pick(lambda v: v.rank == 3 and v.shape[2].static and v.shape[2].a % 2 == 0 and v.shape[2].a and v.mag < 50
                      and all(d.a for d in v.shape))
        b, s, e = v.shape
        h, d = fixed(2), fixed(e.a // 2)
        n = b.a * s.a * e.a
        self.need(n <= 400)
        def heads(perm):
            q = self.emit("MatMul", [v, self.whole([e.a, e.a], 1)], v.shape, mag=v.mag * e.a)
            q = self.reshape(q, [(b, (0,), 1), (s, (1,), 1), (h, (), 1), (d, (), 1)])
            return self.transpose(q, perm)
        q, k, w = heads([0, 2, 1, 3]), heads([0, 2, 3, 1]), heads([0, 2, 1, 3])
        a = self.emit("MatMul", [q, k], (b, h, s, s), mag=q.mag * k.mag * d.a)
        a = self.emit("Mul", [a, self.const(np.float32(1 / 64))], a.shape, mag=a.mag / 64 + 1, frac=6)
        self.need(a.mag < 1000)
        a = self.emit("Softmax", [a], a.shape, mag=1, exact=False, axis=3)
        y = self.emit("MatMul", [a, w], (b, h, s, d), mag=w.mag * 4, exact=False)
        y = self.transpose(y, [0, 2, 1, 3])
        self.reshape(y, [(b, (0,), 1), (s, (1,), 1), (e, (2, 3), 1)])

    def op_fused_attention(self):
        """Query, key and value from one product, taken apart by Split or Gather, with a mask and what follows."""
        v = self.pick(lambda v: v.rank == 3 and v.shape[2].static and v.shape[2].a % 2 == 0 and v.shape[2].a and v.mag < 50
                      and all(d.a for d in v.shape))
        b, s, e = v.shape
        h, d = fixed(2), fixed(e.a // 2)
        self.need(b.a * s.a * e.a <= 400 and b.b * s.b * e.a <= 400)
        wide = self.emit("MatMul", [v, self.whole([e.a, 3 * e.a], 1)], (b, s, fixed(3 * e.a)), mag=v.mag * e.a)
        if self.chance(0.5):
            wide = self.emit("Add", [wide, self.whole([3 * e.a])], wide.shape, mag=wide.mag + 2)
        rows = [(b, (0,), 1), (s, (1,), 1)]
        kind = self.r.choice(["split", "gather", "inner", "five"])
        equal = lambda v, axis, shape: self.emit("Split", [v] + ([self.ints(*[shape[axis].a] * 3)] if self.opset >= 13 else []), [shape] * 3,
                                                 dtype=["f"] * 3, axis=axis)
        if kind == "split":  # [b, s, 3e] cut, each to heads
            parts = [self.reshape(x, rows + [(h, (), 1), (d, (), 1)]) for x in equal(wide, 2, (b, s, e))]
            q, k, w = [self.transpose(x, p) for x, p in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))]
        elif kind == "gather":  # [3, b, h, s, d]
            x = self.transpose(self.reshape(wide, rows + [(fixed(3), (), 1), (h, (), 1), (d, (), 1)]), [2, 0, 3, 1, 4])
            q, k, w = [self.emit("Gather", [x, self.const(np.array(i), "i64")], (b, h, s, d), axis=0, dtype="f", mag=x.mag, exact=x.exact, frac=x.frac)
                       for i in range(3)]
            k = self.transpose(k, [0, 1, 3, 2])
        elif kind == "inner":  # [b, h, s, 3d] cut
            x = self.transpose(self.reshape(wide, rows + [(h, (), 1), (fixed(3 * d.a), (), 1)]), [0, 2, 1, 3])
            q, k, w = equal(x, 3, (b, h, s, d))
            k = self.transpose(k, [0, 1, 3, 2])
        else:  # [b, s, 3, h, d] cut and squeezed
            x = self.reshape(wide, rows + [(fixed(3), (), 1), (h, (), 1), (d, (), 1)])
            parts = [self.with_axes("Squeeze", y, [2], (b, s, h, d), 13) for y in equal(x, 2, (b, s, ONE, h, d))]
            q, k, w = [self.transpose(y, p) for y, p in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))]
        if self.chance(0.3):
            q = self.rotary(q)
        a = self.emit("MatMul", [q, k], (b, h, s, s), mag=q.mag * k.mag * d.a)
        a = self.emit("Mul", [a, self.const(np.float32(1 / 64))], a.shape, mag=a.mag / 64 + 1, frac=6)
        self.need(a.mag < 1000)
        if s.static and self.chance(0.4):
            mask = self.const(self.np.integers(0, 2, [s.a, s.a]), "b")
            a = self.emit("Where", [mask, a, self.const(np.float32(-100))], a.shape, dtype="f", mag=a.mag + 100, exact=a.exact, frac=a.frac)
        a = self.emit("Softmax", [a], a.shape, mag=1, exact=False, axis=3)
        y = self.emit("MatMul", [a, w], (b, h, s, d), mag=w.mag * 4, exact=False)
        y = self.reshape(self.transpose(y, [0, 2, 1, 3]), [(b, (0,), 1), (s, (1,), 1), (e, (2, 3), 1)])
        if self.chance(0.6):
            y = self.emit("MatMul", [y, self.whole([e.a, e.a], 1)], v.shape, mag=y.mag * e.a)
            self.emit("Add", [v, y], v.shape, mag=v.mag + y.mag)

    def rotary(self, v):
        """Halves of the last dim turned against each other."""
        half = v.shape[-1].a // 2
        if v.shape[-1].a % 2 or not half:
            return v
        cut = (*v.shape[:-1], fixed(half))
        a, b = self.emit("Split", [v] + ([self.ints(half, half)] if self.opset >= 13 else []), [cut, cut], dtype=["f", "f"], axis=v.rank - 1)
        turned = self.emit("Concat", [self.emit("Neg", [b], cut), a], v.shape, axis=v.rank - 1 if self.chance(0.5) else -1 if self.opset >= 11 else v.rank - 1)
        cos, sin = (self.emit("Mul", [x, self.whole([v.shape[-1].a], 1)], v.shape, mag=v.mag) for x in (v, turned))
        return self.emit("Add", [cos, sin], v.shape, mag=2 * v.mag)

    def op_rotary(self):
        self.rotary(self.pick(lambda v: v.rank >= 2 and v.shape[-1].static and v.shape[-1].a and v.shape[-1].a % 2 == 0 and v.mag < 1e4))

    def op_detector(self):
        """Heads of a detector: convolutions, Transpose to channels last, Reshape to [n, anchors, 4], joined."""
        v = self.pick(lambda v: v.rank == 4 and v.shape[1].static and 0 < v.shape[1].a <= 8 and v.mag < 100 and all(d.a for d in v.shape))
        heads, whole = [], 4 if self.chance(0.7) else 6
        for _ in range(self.r.randint(2, 3)):
            k, x = self.r.randint(1, 2), v
            if self.chance(0.4) and all(d.static and d.a % 2 == 0 for d in v.shape[2:]):
                x = self.emit("MaxPool", [v], (*v.shape[:2], *[fixed(d.a // 2) for d in v.shape[2:]]), kernel_shape=[2, 2], strides=[2, 2])
            c = v.shape[1].a
            y = self.emit("Conv", [x, self.whole([k * whole, c, 1, 1], 1)], (x.shape[0], fixed(k * whole), *x.shape[2:]), mag=x.mag * c)
            y = self.transpose(y, [0, 2, 3, 1])
            n, h, w, _ = y.shape
            heads.append(self.reshape(y, [(n, (0,), 1), (times(h, w, fixed(k)), (1, 2, 3), -whole), (fixed(whole), (), 1)]))
        dims = [x.shape[1] for x in heads]
        total = fixed(sum(d.a for d in dims)) if all(d.static for d in dims) else self.opaque(sum(d.a for d in dims), sum(d.b for d in dims))
        y = self.emit("Concat", heads, (heads[0].shape[0], total, fixed(whole)), axis=1)
        kind = self.r.random()
        if kind < 0.3:
            self.transpose(y, [0, 2, 1])
        elif kind < 0.6:
            self.emit("Softmax", [y], y.shape, mag=1, exact=False, axis=2)
        elif kind < 0.9:
            cut = self.r.randint(1, whole - 1)
            sizes = [cut, whole - cut]
            attrs, more = ({}, [self.ints(*sizes)]) if self.opset >= 13 else ({"split": sizes}, [])
            a, b = self.emit("Split", [y, *more], [(*y.shape[:2], fixed(n)) for n in sizes], dtype=["f", "f"], mag=y.mag, exact=y.exact, frac=y.frac,
                             axis=2, **attrs)
            self.emit("Sigmoid", [a], a.shape, exact=False)
            self.transpose(b, [0, 2, 1])

    def op_windows(self):
        """Windows of an image, channels last, something inside them, and back; maybe shifted."""
        v = self.pick(lambda v: v.rank == 4 and v.mag < 100 and all(d.a for d in v.shape) and all(d.static and d.a % 2 == 0 for d in v.shape[1:3])
                      and v.shape[3].static)
        b, h, w, c = v.shape
        m, n, two = fixed(h.a // 2), fixed(w.a // 2), fixed(2)
        x = v
        shift = self.chance(0.4) and self.opset >= 10
        def roll(x, k):
            for ax, d in ((1, h), (2, w)):
                parts = []
                for start, end in ((k, d.a), (0, k)) if k > 0 else ((d.a + k, d.a), (0, d.a + k)):
                    shape = list(x.shape)
                    shape[ax] = fixed(end - start)
                    parts.append(self.emit("Slice", [x, self.ints(start), self.ints(end), self.ints(ax)], tuple(shape), dtype="f", mag=x.mag,
                                           exact=x.exact, frac=x.frac))
                x = self.emit("Concat", parts, v.shape, axis=ax)
            return x
        if shift:
            x = roll(x, 1)
        x = self.reshape(x, [(b, (0,), 1), (m, (), 1), (two, (), 1), (n, (), 1), (two, (), 1), (c, (), 1)])
        x = self.transpose(x, [0, 1, 3, 2, 4, 5])
        many = times(b, fixed(m.a * n.a))
        x = self.reshape(x, [(many, (0, 1, 2), 1), (fixed(4), (), 1), (c, (), 1)])
        kind = self.r.random()
        if kind < 0.4:
            x = self.emit("MatMul", [x, self.whole([c.a, c.a], 1)], x.shape, mag=x.mag * c.a)
        elif kind < 0.6:
            x = self.emit("Softmax", [x], x.shape, mag=1, exact=False, axis=2)
        elif kind < 0.8:
            x = self.emit("Add", [x, self.whole([4, c.a])], x.shape, mag=x.mag + 2)
        x = self.reshape(x, [(b, (0,), -(m.a * n.a)), (m, (), 1), (n, (), 1), (two, (), 1), (two, (), 1), (c, (), 1)])
        x = self.reshape(self.transpose(x, [0, 1, 3, 2, 4, 5]), [(b, (0,), 1), (h, (), 1), (w, (), 1), (c, (), 1)])
        if shift:
            x = roll(x, -1)
        self.emit("Add", [v, x], v.shape, mag=v.mag + x.mag)

    def op_others(self):
        """Ops that keep the order of their dims."""
        kind = self.r.choice(["Trilu", "GatherElements", "OneHot", "ScatterND", "Size", "glu"])
        if kind == "Trilu":
            self.need(self.opset >= 14)
            v = self.pick(lambda v: v.rank >= 2 and v.rank and all(d.a for d in v.shape))
            self.emit("Trilu", [v], v.shape, upper=self.r.choice([0, 1]))
        elif kind == "GatherElements":
            self.need(self.opset >= 11)
            v = self.pick(lambda v: v.rank >= 1 and all(d.static and d.a for d in v.shape))
            ax = self.axis(v)
            shape = [d.a for d in v.shape]
            shape[ax] = self.r.randint(1, 3)
            self.emit("GatherElements", [v, self.const(self.np.integers(0, v.shape[ax].a, shape), "i64")], tuple(fixed(n) for n in shape),
                      axis=ax, dtype="f", mag=v.mag, exact=v.exact, frac=v.frac)
        elif kind == "OneHot":
            v = self.pick(lambda v: 1 <= v.rank <= 4 and v.mag < 100, "i64")
            ax = self.r.randint(0, v.rank)
            shape = [*v.shape[:ax], fixed(3), *v.shape[ax:]]
            self.emit("OneHot", [v, self.const(np.array(3), "i64"), self.const(np.array([0.0, 2.0]))], tuple(shape), dtype="f", mag=2, exact=True, frac=0, axis=ax)
        elif kind == "ScatterND":
            self.need(self.opset >= 11)
            v = self.pick(lambda v: v.rank >= 1 and all(d.static and d.a for d in v.shape))
            self.emit("ScatterND", [v, self.const([[0]], "i64"), self.whole([1] + [d.a for d in v.shape[1:]])], v.shape, dtype="f", mag=max(v.mag, 2),
                      exact=v.exact, frac=v.frac)
        elif kind == "Size":
            v = self.pick()
            n = self.emit("Size", [v], (), dtype="i64", mag=v.size, exact=True, frac=0)
            self.pool.remove(n)
            self.emit("Add", [v, self.cast(n, "f")], v.shape, mag=v.mag + v.size)
        else:
            v = self.pick(lambda v: v.rank >= 2 and v.mag < 1000 and any(d.static and d.a and d.a % 2 == 0 for d in v.shape))
            ax = self.r.choice([i for i, d in enumerate(v.shape) if d.static and d.a and d.a % 2 == 0])
            shape = tuple(fixed(d.a // 2) if i == ax else d for i, d in enumerate(v.shape))
            a, b = self.emit("Split", [v] + ([self.ints(shape[ax].a, shape[ax].a)] if self.opset >= 13 else []), [shape] * 2, dtype=["f"] * 2, axis=ax)
            self.emit("Mul", [a, self.emit("Sigmoid", [b], shape, mag=1, exact=False)], shape, mag=v.mag)

    def op_shuffle(self):
        """Channel shuffle, pixel shuffle or window partition as Reshape, Transpose, Reshape."""
        v = self.pick(lambda v: v.rank == 4 and all(d.static and d.a for d in v.shape))
        n, c, h, w = v.shape
        kind = self.r.choice("cpw")
        if kind == "c":
            self.need(c.a % 2 == 0 and c.a > 2)
            y = self.reshape(v, [(n, (), 1), (fixed(2), (), 1), (fixed(c.a // 2), (), 1), (h, (), 1), (w, (), 1)])
            y = self.transpose(y, [0, 2, 1, 3, 4])
            self.reshape(y, [(n, (), 1), (c, (), 1), (h, (), 1), (w, (), 1)])
        elif kind == "p":
            self.need(c.a % 4 == 0)
            y = self.reshape(v, [(n, (), 1), (fixed(c.a // 4), (), 1), (fixed(2), (), 1), (fixed(2), (), 1), (h, (), 1), (w, (), 1)])
            y = self.transpose(y, [0, 1, 4, 2, 5, 3])
            self.reshape(y, [(n, (), 1), (fixed(c.a // 4), (), 1), (fixed(h.a * 2), (), 1), (fixed(w.a * 2), (), 1)])
        else:
            self.need(c.a % 2 == 0 and h.a % 2 == 0)
            y = self.reshape(v, [(n, (), 1), (fixed(c.a // 2), (), 1), (fixed(2), (), 1), (fixed(h.a // 2), (), 1), (fixed(2), (), 1), (w, (), 1)])
            y = self.transpose(y, [0, 1, 3, 2, 4, 5])
            y = self.reshape(y, [(fixed(n.a * c.a // 2 * (h.a // 2)), (), 1), (fixed(4), (), 1), (w, (), 1)])
            self.emit("Relu", [y], y.shape)

    def op_squeeze_excite(self):
        v = self.pick(lambda v: v.rank == 4 and v.shape[1].static and v.shape[1].a and v.mag < 100 and all(d.a for d in v.shape))
        c = v.shape[1].a
        p = self.emit("GlobalAveragePool", [v], (*v.shape[:2], ONE, ONE), exact=False)
        p = self.emit("Conv", [p, self.whole([c, c, 1, 1], 1)], p.shape, mag=v.mag * c)
        p = self.emit("Sigmoid", [p], p.shape, mag=1, exact=False)
        self.emit("Mul", [v, p], v.shape, mag=v.mag)

    def op_quantize(self):
        v = self.pick(lambda v: v.exact and v.frac == 0 and v.rank >= 1)
        self.need(self.opset >= 10)
        t = self.r.choice(["u8", "i8"])
        axis = None
        if self.opset >= 13 and self.chance(0.5):
            axes = [i for i, d in enumerate(v.shape) if d.static and d.a]
            self.need(axes)
            axis = self.r.choice(axes)
            n = v.shape[axis].a
            scale, zero = self.const(self.np.choice([1.0, 2.0], n)), self.const(self.np.integers(0, 4, n), t)
        else:
            scale, zero = self.const(np.float32(self.r.choice([1, 2]))), self.const(np.array(self.r.randint(0, 3)), t)
        kw = {} if axis is None or (axis == 1 and self.chance(0.5)) else {"axis": self.signed(axis, v.rank)}
        q = self.emit("QuantizeLinear", [v, scale, zero], v.shape, dtype=t, mag=130, exact=True, frac=0, **kw)
        if self.chance(0.4) and axis is None:
            q = self.transpose(q, self.r.sample(range(v.rank), v.rank))
        if self.chance(0.8):
            self.emit("DequantizeLinear", [q, scale, zero], q.shape, dtype="f", mag=520, exact=True, frac=0, **kw)

    def op_shape(self):
        """A shape as data: given out, or used to make a tensor of that shape."""
        v = self.any(lambda v: v.rank >= 1)
        kind = self.r.random()
        if self.opset >= 15 and self.chance(0.4):
            a = self.r.randrange(v.rank)
            b = self.r.randint(a + 1, v.rank)
            s = self.emit("Shape", [v], (fixed(b - a),), dtype="i64", mag=20, exact=True, frac=0, start=a, end=b if self.chance(0.7) else b - v.rank or None)
            self.pool.remove(s)
            self.cast(s, "f")
            return
        if kind < 0.5 and v.dtype == "f":
            s = self.node("Shape", [v.name])
            z = self.emit("ConstantOfShape", [Value(s, (fixed(v.rank),), "i64")], v.shape, dtype="f", mag=1, exact=True, frac=0,
                          value=helper.make_tensor("", TensorProto.FLOAT, [1], [1.0]))
            self.emit("Add", [v, z], v.shape, mag=v.mag + 1)
        elif kind < 0.75 and v.dtype == "f":
            s = self.node("Shape", [v.name])
            c = self.whole([1] * self.r.randint(1, v.rank))
            e = self.emit("Expand", [c, Value(s, (fixed(v.rank),), "i64")], v.shape, dtype="f", mag=2, exact=True, frac=0)
            e.const = False
        else:
            s = self.emit("Shape", [v], (fixed(v.rank),), dtype="i64", mag=20, exact=True, frac=0)
            self.pool.remove(s)
            self.cast(s, "f")

    def op_if(self):
        v = self.pick(lambda v: v.rank >= 1)
        if self.chance(0.5):
            cond = self.const(np.array(self.chance(0.5)), "b")
        else:
            cond = next((i for i in self.inputs if i.dtype == "b" and not i.rank), None) or self.add_input([], "b", 1)
        perm = self.r.sample(range(v.rank), v.rank)
        if self.chance(0.4):
            v = self.transpose(v, [perm.index(i) for i in range(v.rank)])
        w = self.partner(v) if self.chance(0.5) else v
        def branch(op):
            t, o = self.name(), self.name()
            nodes = [helper.make_node("Transpose", [v.name], [t], perm=perm)]
            if op == "Add":
                u = self.name()
                nodes = [helper.make_node("Add", [v.name, w.name], [u]), helper.make_node("Transpose", [u], [t], perm=perm)]
            nodes.append(helper.make_node("Identity" if op == "Add" else op, [t], [o]))
            return helper.make_graph(nodes, f"branch{self.count}", [],
                                     [helper.make_tensor_value_info(o, TensorProto.FLOAT, [None] * v.rank)])
        self.used.update([v.name, w.name])
        self.emit("If", [cond], tuple(v.shape[p] for p in perm), dtype="f", mag=v.mag + w.mag, exact=v.exact and w.exact,
                  frac=max(v.frac, w.frac), then_branch=branch(self.r.choice(["Relu", "Add"])), else_branch=branch(self.r.choice(["Neg", "Add"])))

    def op_loop(self):
        self.need(self.opset >= 11)
        v = self.pick(lambda v: v.rank >= 2)
        w = next((x for x in self.pool if x.dtype == "f" and x.shape == v.shape and x is not v), v)
        perm = self.r.sample(range(v.rank), v.rank)
        back = [perm.index(i) for i in range(v.rank)]
        n = {k: self.name() for k in ("it", "ci", "c", "co", "t", "r", "u", "s", "y")}
        body = helper.make_graph(
            [helper.make_node("Identity", [n["ci"]], [n["co"]]), helper.make_node("Transpose", [n["c"]], [n["t"]], perm=perm),
             helper.make_node("Relu", [n["t"]], [n["r"]]), helper.make_node("Transpose", [n["r"]], [n["u"]], perm=back),
             helper.make_node("Add", [n["u"], w.name], [n["y"]]), helper.make_node("Transpose", [n["y"]], [n["s"]], perm=perm)],
            f"body{self.count}",
            [helper.make_tensor_value_info(n["it"], TensorProto.INT64, []), helper.make_tensor_value_info(n["ci"], TensorProto.BOOL, []),
             helper.make_tensor_value_info(n["c"], TensorProto.FLOAT, [None] * v.rank)],
            [helper.make_tensor_value_info(n["co"], TensorProto.BOOL, []), helper.make_tensor_value_info(n["y"], TensorProto.FLOAT, [None] * v.rank),
             helper.make_tensor_value_info(n["s"], TensorProto.FLOAT, [None] * v.rank)])
        self.used.add(w.name)
        turned = tuple(v.shape[p] for p in perm)
        self.emit("Loop", [self.const(np.array(2), "i64"), self.const(np.array(True), "b"), v], [v.shape, (fixed(2), *turned)],
                  dtype=["f", "f"], mag=v.mag + 2 * w.mag, exact=v.exact and w.exact, frac=max(v.frac, w.frac), body=body)

    def op_scan(self):
        v = self.pick(lambda v: v.rank >= 2 and v.mag < 1000 and all(d.a for d in v.shape) and all(d.static for d in v.shape[1:]))
        rest = v.shape[1:]
        perm = self.r.sample(range(len(rest)), len(rest))
        back = [perm.index(i) for i in range(len(rest))]
        outer = self.transpose(v, [0, *[p + 1 for p in perm]]) if self.chance(0.5) else None
        x = outer or v
        n = {k: self.name() for k in ("s", "x", "t", "r", "u", "so", "y")}
        held = tuple(x.shape[1 + p] for p in (back if outer else range(len(rest))))
        init = self.whole([d.a for d in held])
        nodes = [helper.make_node("Relu", [n["x"]], [n["r"]]),
                 helper.make_node("Transpose", [n["r"]], [n["u"]], perm=back if outer else list(range(len(rest)))),
                 helper.make_node("Add", [n["s"], n["u"]], [n["so"]]), helper.make_node("Transpose", [n["so"]], [n["y"]], perm=perm)]
        info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, [d.a for d in shape])
        turned = tuple(held[p] for p in perm)
        body = helper.make_graph(nodes, f"body{self.count}", [info(n["s"], held), info(n["x"], x.shape[1:])], [info(n["so"], held), info(n["y"], turned)])
        size = max(v.shape[0].a, v.shape[0].b)
        self.emit("Scan", [init, x], [held, (v.shape[0], *turned)], dtype=["f", "f"], mag=2 + v.mag * size, exact=v.exact, frac=v.frac,
                  body=body, num_scan_inputs=1)

    # ------------------------------------------------------------------------------------------------ bodies of any ops

    def inside(self, build):
        """What build() adds goes to a body; its nodes and initializers, and what build gives. Values of outside may be captured."""
        keep = self.nodes, self.inits, self.pool
        self.nodes, self.inits, self.pool = [], [], list(self.pool)
        self.depth += 1
        try:
            result = build()
            return self.nodes, self.inits, result
        finally:
            self.nodes, self.inits, self.pool = keep
            self.depth -= 1

    def some_ops(self, n):
        """n random ops, Transposes above all."""
        names = ["transpose", "branch_of_transposes", "reshape", "unary", "binary", "reduce", "concat", "slice", "pad", "softmax",
                 "matmul", "layer_norm", "unsqueeze", "squeeze", "expand", "where", "shape", "nhwc_conv", "control"]
        weights = [10, 3, 2, 5, 5, 1.5, 1.5, 1, 1, 1, 2, 1, 0.7, 0.7, 0.7, 0.7, 0.7, 0.5, 1.5 if self.depth < 3 else 0]
        for _ in range(4 * n):
            if n <= 0:
                return
            state = len(self.nodes), len(self.inits), len(self.inputs), len(self.pool), set(self.used)
            try:
                getattr(self, "op_" + self.r.choices(names, weights)[0])()
                n -= 1
            except Stop:
                del self.nodes[state[0]:], self.inits[state[1]:], self.inputs[state[2]:], self.pool[state[3]:]
                self.used = state[4]

    def own(self, outside, test=lambda v: True):
        """A value that the body itself makes, or one of outside, as a new value."""
        mine = [v for v in self.pool if v not in outside and v.dtype == "f" and not v.const and test(v)]
        if mine:
            v = mine[max(self.r.randrange(len(mine)), self.r.randrange(len(mine)))]
            if self.chance(0.9) or v.rank < 2:
                return v
            return self.transpose(v, self.r.sample(range(v.rank), v.rank))
        v = self.pick(test)
        return v if self.chance(0.05) else self.emit(self.r.choice(["Relu", "Neg", "Identity"]), [v], v.shape)

    def info(self, v, full):
        """Types of body inputs and outputs, more or less complete."""
        kind = 0.5 if full else self.r.random()
        shape = None if kind < 0.2 and v.rank else [d.a if d.static and kind < 0.7 else None for d in v.shape]
        return helper.make_tensor_value_info(v.name, TYPES[v.dtype], shape)

    def body(self, nodes, inits, ins, outs, full=False):
        self.need(len({v.name for v in outs}) == len(outs))     # onnxruntime gives one of two equal outputs wrong values
        return helper.make_graph(nodes, f"body{self.count}", [self.info(v, full) for v in ins],
                                 [self.info(v, full) for v in outs], inits)

    def held(self, outside, v, limit):
        """A new value of v's shape for the next turn, made of whatever has its dims; whole numbers up to the limit."""
        fits = [w for w in self.pool if w not in outside and w.dtype == "f" and w.exact and sorted(w.shape) == sorted(v.shape)]
        w = self.r.choice(fits) if fits and self.chance(0.9) else v
        perm, left = [], list(range(w.rank))
        for d in v.shape:
            i = next(i for i in left if w.shape[i] == d)
            left.remove(i)
            perm.append(i)
        if perm != sorted(perm) or self.chance(0.2):
            w = self.transpose(w, perm)
        if w.frac:
            w = self.emit("Floor", [w], w.shape, frac=0)
        if w.mag > limit:
            w = self.emit("Min", [w, self.const(np.float32(limit))], w.shape, mag=limit)
            w = self.emit("Max", [w, self.const(np.float32(-limit))], w.shape, mag=limit)
        return w

    def stacked(self, v, axis, n):
        shape = list(v.shape)
        shape.insert(axis, n)
        self.need(math.prod(d.a for d in shape) <= LIMIT)
        return tuple(shape)

    def op_control(self):
        """An If, Loop or Scan with random ops in its bodies, others of its kind among them."""
        kind = self.r.choice(["if", "if", "loop", "loop", "scan"])
        getattr(self, "control_" + kind)()

    def branch(self, shapes):
        """A body without inputs; with shapes: its outputs have these."""
        def build():
            outside = list(self.pool)
            self.some_ops(self.r.randint(0, 5))
            if shapes is None:
                return [self.own(outside) for _ in range(self.r.randint(1, 2))]
            outs = []
            for s in shapes:
                fits = [v for v in self.pool if v.dtype == "f" and not v.const and sorted(v.shape) == sorted(s)]
                self.need(fits)
                v = max(self.r.sample(fits, min(2, len(fits))), key=lambda v: v not in outside)
                perm, left = [], list(range(v.rank))
                for d in s:
                    i = next(i for i in left if v.shape[i] == d)
                    left.remove(i)
                    perm.append(i)
                outs.append(self.transpose(v, perm) if perm != sorted(perm) or v in outside else v)
            return outs
        return self.inside(build)

    def control_if(self):
        cond = self.const(np.array(self.chance(0.5)), "b") if self.chance(0.2) else \
            next((i for i in self.inputs if i.dtype == "b" and not i.rank), None) or self.add_input([], "b", 1)
        start = self.count
        nodes, inits, then = self.branch(None)
        end, ninput = self.count, len(self.inputs)
        again = self.chance(0.5)
        if again:
            self.count = start      # the same names in both branches
        nodes2, inits2, other = self.branch([v.shape for v in then])
        self.count = max(end, self.count)
        self.need(not again or len(self.inputs) == ninput)      # an input of the graph has a name of its own
        self.need(all(a.shape == b.shape for a, b in zip(then, other)))
        both = list(zip(then, other))
        self.emit("If", [cond], [v.shape for v in then], dtype=["f"] * len(then), mag=max(v.mag for p in both for v in p),
                  exact=all(v.exact for p in both for v in p), frac=max(v.frac for p in both for v in p),
                  then_branch=self.body(nodes, inits, [], then), else_branch=self.body(nodes2, inits2, [], other))

    def control_loop(self):
        self.need(self.opset >= 11)
        turns = self.r.choice([0, 1, 2, 2, 3])
        carried = [self.pick(lambda v: v.exact and v.frac == 0 and v.mag <= 64) for _ in range(self.r.choice([0, 1, 1, 2]))]
        def build():
            it, go = Value(self.name(), (), "i64", 8), Value(self.name(), (), "b", 1)
            ins = [Value(self.name(), v.shape, "f", 64) for v in carried]
            outside = list(self.pool)
            self.pool.extend(ins)
            self.some_ops(self.r.randint(1, 6))
            on = Value(self.node("Identity", [go.name]), (), "b") if self.chance(0.8) else self.const(np.array(True), "b")
            outs = [self.held(outside, v, 64) if self.chance(0.9) else v for v in ins]
            scans = [self.own(outside) for _ in range(self.r.choice([0, 1, 1, 2]) if carried else 1)]
            return [it, go, *ins], [on, *outs], scans
        nodes, inits, (ins, outs, scans) = self.inside(build)
        self.need(all(v.const is False for v in scans))
        # After no turn at all, the dims of a scan output are what the body declares, and 0 where it does not.
        self.need(turns or all(d.static for v in scans for d in v.shape))
        shapes = [v.shape for v in carried] + [self.stacked(v, 0, fixed(turns)) for v in scans]
        many = [*carried, *scans]
        made = self.emit("Loop", [self.const(np.array(turns), "i64"), self.const(np.array(True), "b") if self.chance(0.7) else None, *carried], shapes,
                  dtype=["f"] * len(shapes), mag=max([64, *[v.mag for v in many]]), exact=all(v.exact for v in many),
                  frac=max([0, *[v.frac for v in many]]), body=self.body(nodes, inits, ins, [*outs, *scans], turns == 0))
        for v in made[len(carried):] if turns == 0 else []:     # what is empty breaks many kernels: a part of something at once
            self.pool.remove(v)
            one = self.whole([1] + [d.a for d in v.shape[1:]])
            self.emit("Concat", [v, one], one.shape, axis=0)

    def control_scan(self):
        self.need(not self.empty)                                # onnxruntime divides by zero
        sized = lambda v: all(d.a for d in v.shape)
        states = [self.pick(lambda v: v.exact and v.frac == 0 and v.mag <= 64 and sized(v)) for _ in range(self.r.choice([0, 1, 1]))]
        x = self.pick(lambda v: v.rank >= 1 and sized(v) and any(d.static and 0 < d.a < 9 for d in v.shape))
        axis = self.r.choice([i for i, d in enumerate(x.shape) if d.static and 0 < d.a < 9])
        turns = x.shape[axis]
        def build():
            ins = [Value(self.name(), v.shape, "f", 64) for v in states]
            ins.append(Value(self.name(), x.shape[:axis] + x.shape[axis + 1:], "f", x.mag, x.frac, x.exact))
            outside = list(self.pool)
            self.pool.extend(ins)
            self.some_ops(self.r.randint(1, 5))
            outs = [self.held(outside, v, 64) for v in ins[:-1]]
            scan = self.own(outside)
            # onnxruntime gives a Scan's output that is directly an input of the body the wrong values.
            fresh = lambda v: self.emit("Identity", [v], v.shape) if v in ins else v
            return ins, [fresh(v) for v in outs], [fresh(scan)]
        nodes, inits, (ins, outs, scans) = self.inside(build)
        self.need(not scans[0].const and sized(scans[0]))
        at = self.r.randint(0, scans[0].rank)
        many = [*states, *scans]
        self.emit("Scan", [*states, x], [*[v.shape for v in states], self.stacked(scans[0], at, turns)], dtype=["f"] * (len(states) + 1),
                  mag=max([64, *[v.mag for v in many]]), exact=all(v.exact for v in many), frac=max(v.frac for v in many),
                  body=self.body(nodes, inits, ins, [*outs, *scans]), num_scan_inputs=1,
                  scan_input_axes=[self.signed(axis, x.rank)] if axis or self.chance(0.3) else None,
                  scan_output_axes=[self.signed(at, scans[0].rank + 1)] if at or self.chance(0.3) else None)

    def op_function(self):
        """A call of a model-local function with Transposes in it, an old one or a new one."""
        self.need(self.opset >= 15)
        v = self.pick(lambda v: v.rank == 3)
        turns = [f.name.endswith("turned") for f in self.functions]
        if not self.functions or self.chance(0.5):
            turned, node = self.chance(0.5), helper.make_node
            name = f"F{len(self.functions)}" + ("_turned" if turned else "")
            nodes = [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["y" if turned else "r"])]
            if not turned:
                nodes.append(node("Transpose", ["r"], ["y"], perm=[0, 2, 1]))
            if any(not t for t in turns) and self.chance(0.5):      # calls another one first
                inner = self.r.choice([f.name for f, t in zip(self.functions, turns) if not t])
                nodes = [node(inner, ["x"], ["x1"], domain="local")] + nodes
                nodes[1].input[0] = "x1"
            imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("local", 1)]
            self.functions.append(helper.make_function("local", name, ["x"], ["y"], nodes, imports))
        name = self.r.choice(self.functions).name
        self.emit(name, [v], (v.shape[0], v.shape[2], v.shape[1]) if name.endswith("turned") else v.shape, domain="local")

    def op_sequence(self):
        self.need(self.opset >= 11)
        v = self.pick()
        s = self.node("SequenceConstruct", [v.name, self.pick().name])
        y = self.emit("SequenceAt", [Value(s, v.shape, "f", v.mag, v.frac, v.exact), self.const(np.array(0), "i64")], v.shape,
                      mag=v.mag, exact=v.exact, frac=v.frac, dtype="f")
        return y

    def op_again(self):
        """The last node once more, on the same inputs."""
        self.need(self.nodes)
        n = self.nodes[-1]
        out = [v for v in self.pool if v.name in n.output]
        self.need(n.op_type != "Constant" and len(out) == len(n.output) and not any(a.type == a.GRAPH for a in n.attribute))
        m = onnx.NodeProto()
        m.CopyFrom(n)
        m.name = ""
        del m.output[:]
        for v in out:
            w = dataclasses.replace(v, name=self.name())
            m.output.append(w.name)
            self.pool.append(w)
        self.nodes.append(m)

    WEIGHTS = {
        "transpose": 26, "branch_of_transposes": 4, "add_transposed_self": 3, "reshape": 10, "flatten": 2, "unsqueeze": 4, "squeeze": 4,
        "concat": 5, "split": 5, "slice": 5, "pad": 4, "tile": 2, "expand": 3, "gather": 5, "embedding": 1, "depth_to_space": 1.5,
        "unary": 12, "cast": 3, "binary": 16, "integers": 2, "compare": 2, "logic": 2, "where": 3, "reduce": 6, "arg": 2, "softmax": 4,
        "cumsum": 2, "topk": 2, "layer_norm": 4, "batch_norm": 2, "norm": 1.5, "matmul": 7, "gemm": 3, "einsum": 1, "conv": 4, "pool": 2.5,
        "resize": 1, "nhwc_conv": 4, "attention": 2, "shuffle": 2.5, "squeeze_excite": 1.5, "quantize": 3, "shape": 2.5, "if": 1, "loop": 0.7,
        "function": 0.5, "sequence": 0.4, "again": 1.5, "reduce_computed": 1, "matmul_broadcast": 3, "quantized_weight": 2.5,
        "fused_attention": 2, "rotary": 1, "detector": 1.5, "windows": 1.5, "others": 2.5, "scan": 0.7,
        "control": 2,
    }

    # ------------------------------------------------------------------------------------------------ the whole model

    def build(self):
        for _ in range(self.r.choice([1, 1, 2, 3])):
            rank = self.r.choice([0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5])
            shape = [self.dim() for _ in range(rank)]
            while math.prod(max(d.a, d.b) for d in shape) > 800:
                shape[self.r.randrange(rank)] = fixed(2)
            if self.inputs and self.chance(0.3):
                shape = self.r.sample(self.inputs[0].shape, self.inputs[0].rank)
            self.add_input(shape)
        if self.chance(0.25):
            self.add_input([self.dim() for _ in range(self.r.randint(1, 3))], self.r.choice(["i64", "b"]), 1)
        # Each model prefers other ops, so that combinations meet that an even choice would hardly bring together.
        names, weights = list(self.WEIGHTS), [w * self.r.choice([0.2, 1, 1, 4]) for w in self.WEIGHTS.values()]
        weights[names.index("transpose")] = self.r.choice([10, 30, 60])
        tries = 0
        while len(self.nodes) < self.size and tries < 20 * self.size + 50:
            tries += 1
            state = len(self.nodes), len(self.inits), len(self.inputs), len(self.pool), len(self.functions), set(self.used)
            try:
                getattr(self, "op_" + self.r.choices(names, weights)[0])()
            except Stop:
                # Take back what a template with several nodes had added.
                del self.nodes[state[0]:], self.inits[state[1]:], self.inputs[state[2]:], self.pool[state[3]:], self.functions[state[4]:]
                self.used = state[5]
        return self.finish()

    def finish(self):
        sinks = [v for v in self.pool if v.name not in self.used and v not in self.inputs and not v.const]
        self.r.shuffle(sinks)
        outs = sinks[:8]
        outs += [v for v in self.pool if v not in outs and v not in self.inputs and not v.const and self.chance(0.04)]
        if self.chance(0.03) or not outs:
            outs.append(self.r.choice(self.inputs))
        if not any(v.name in self.used for v in self.inputs):
            outs.append(self.inputs[0])
        outs = list({v.name: v for v in outs}.values())
        self.r.shuffle(outs)
        info = lambda v, shape: helper.make_tensor_value_info(v.name, TYPES[v.dtype], shape)
        inputs = [info(v, [d.a if d.static else d.syms[0] for d in v.shape]) for v in self.inputs]
        named = lambda d: d.a if d.static else (d.syms[0] if d.coef == 1 and len(d.syms) == 1 and d.syms[0] in self.symbols else None)
        outputs = [info(v, [named(d) for d in v.shape]) for v in outs]
        inits = list(self.inits)
        self.r.shuffle(inits)
        graph = helper.make_graph(self.nodes, self.r.choice(["g", "main graph"]), inputs, outputs, inits)
        opsets = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 1) for d in sorted(self.domains)]
        ir = max(helper.find_min_ir_version_for(opsets[:1], True), 8 if self.functions else 4)
        if self.chance(0.3):
            ir = max(ir, self.r.randint(8, 10))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=ir, functions=self.functions, producer_name="graphgen")
        override = self.overridable(model) if self.chance(0.1) else {}
        if self.chance(0.3):
            model = onnx.shape_inference.infer_shapes(model)
        hide(model.graph, random.Random(self.count), set())
        trials = []
        for which in (0, 1) if self.symbolic else (0,):
            feed = {}
            for v in self.inputs:
                shape = [d[which] for d in v.shape]
                feed[v.name] = self.some_input(v, shape)
            trials.append(feed)
        if override:
            trials.append({**trials[0], **override})
        return Model(model, trials, [v.exact for v in outs], self.external)

    def some_input(self, v, shape):
        x = self.np.integers(-4, 5, shape) if v.dtype == "f" else self.np.integers(0, 2 if v.dtype == "b" else int(v.mag) + 1, shape)
        return np.asarray(x).astype(NUMPY[v.dtype])

    def overridable(self, model):
        """Makes an initializer an input too, so that the user may replace it and it is no constant; another value for it."""
        fixed_by_op = {i for n in model.graph.node if n.op_type in ("Resize", "Upsample", "QuantizeLinear", "DequantizeLinear", "Clip", "Pad",
                                                                    "BatchNormalization") for i in n.input}
        for t in model.graph.initializer:
            if t.data_type == TensorProto.FLOAT and t.dims and t.name not in fixed_by_op:
                model.graph.input.append(helper.make_tensor_value_info(t.name, t.data_type, t.dims))
                return {t.name: numpy_helper.to_array(t) + 1}
        return {}


def bodies(graph):
    return [a.g for n in graph.node for a in n.attribute if a.type == a.GRAPH]


def rename(graph, old, new):
    """In the graph and the bodies in it."""
    for v in [*graph.input, *graph.output, *graph.value_info]:
        v.name = new if v.name == old else v.name
    for n in graph.node:
        n.input[:] = [new if x == old else x for x in n.input]
        n.output[:] = [new if x == old else x for x in n.output]
    for body in bodies(graph):
        rename(body, old, new)


def names_in(graph):
    return {v.name for v in [*graph.input, *graph.initializer]} | {x for n in graph.node for x in [*n.input, *n.output]} | set().union(*map(names_in, bodies(graph)))


def hide(graph, r, outside):
    """Some inputs of bodies get names of values outside that these do not read, as Paddle has them."""
    outside = outside | {v.name for v in [*graph.input, *graph.initializer]} | {x for n in graph.node for x in n.output if x}
    for body in bodies(graph):
        for v in body.input:
            free = sorted(outside - names_in(body))
            if free and r.random() < 0.3:
                rename(body, v.name, r.choice(free))
        hide(body, r, outside)


def make(seed, size=None):
    return Generator(seed, size).build()
