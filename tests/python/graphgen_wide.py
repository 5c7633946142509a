"""Random models of a wider kind than graphgen's: opsets 7 to 28, whole models of float16, bfloat16 or double, tensors of any element type
(strings and four bits among them) that are moved about, quantization by blocks, ops of the latest opsets, weights in a file of their own.

Ops and types are asked of the onnx package's schemas, so a model is valid by what it says; whether a runtime has kernels for it is another
question (test_random.py counts).  kinds() says what is in a model, by the model alone.
"""
import ml_dtypes
import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import graphgen
from graphgen import ONE, NUMPY, TYPES, Value, fixed

MORE = {"h": (TensorProto.FLOAT16, np.float16), "d": (TensorProto.DOUBLE, np.float64), "bf": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
        "i16": (TensorProto.INT16, np.int16), "u16": (TensorProto.UINT16, np.uint16), "u32": (TensorProto.UINT32, np.uint32),
        "u64": (TensorProto.UINT64, np.uint64), "s": (TensorProto.STRING, object), "i4": (TensorProto.INT4, ml_dtypes.int4),
        "u4": (TensorProto.UINT4, ml_dtypes.uint4)}
TYPES.update({k: t for k, (t, _) in MORE.items()})
NUMPY.update({k: n for k, (_, n) in MORE.items()})

# What takes the place of float: whole numbers that it holds, the largest value
FLOATS = {"f": (2.0 ** 20, 1e6), "h": (2.0 ** 11, 2e4), "bf": (2.0 ** 8, 1e6), "d": (2.0 ** 20, 1e6)}
MOVED = ["i8", "u8", "i16", "u16", "u32", "u64", "i32", "b", "b", "s", "s", "h", "h", "d", "bf", "i4", "u4"]
WORDS = np.array(["", "a", "b", "ab", "ü"], dtype=object)


def type_name(elem):
    """As schemas call it."""
    return f"tensor({TensorProto.DataType.Name(elem).lower()})"


class Wide(graphgen.Generator):
    OPSETS = 7, 28

    def __init__(self, seed, size=None):
        super().__init__(seed, size)
        self.float = self.r.choice(["f"] * 5 + ["h", "h", "bf", "d"])
        self.EXACT, self.MOST = FLOATS[self.float]
        self.external = self.chance(0.15)

    WEIGHTS = {**graphgen.Generator.WEIGHTS, "moved": 12, "blocked": 5, "attention_op": 4, "rotary_op": 4, "latest": 3, "sequences": 1, "function": 1.5,
               "control": 3, "quantize": 4, "quantized_weight": 4}

    # ---------------------------------------------------------------------------------------------- what schemas allow

    def elem(self, dtype):
        return TYPES[self.float if dtype == "f" else dtype]

    def allowed(self, node, dtypes=None):
        """Has this opset the op, with these attributes, that many inputs, and inputs of these types?"""
        if node.domain:
            return node.domain != "com.microsoft" or self.float == "f"
        try:
            schema = onnx.defs.get_schema(node.op_type, self.opset, "")
        except Exception:
            return False
        names = {a.name for a in node.attribute}
        if schema.deprecated or names - set(schema.attributes) or not schema.min_input <= len(node.input) <= schema.max_input:
            return False
        if any(a.required and k not in names for k, a in schema.attributes.items()):
            return False
        for i, t in enumerate(dtypes or []):
            formal = schema.inputs[min(i, len(schema.inputs) - 1)]
            if t is not None and type_name(self.elem(t)) not in formal.types:
                return False
        return True

    def emit(self, op, ins, shape, *args, **kw):
        if self.opset < 8 and op in ("Sum", "Max", "Min", "Mean"):     # their operands do not broadcast yet
            self.need(all(v.shape == ins[0].shape for v in ins))
        out = super().emit(op, ins, shape, *args, **kw)
        node, outs = self.nodes[-1], out if isinstance(shape, list) else [out]
        self.need(self.allowed(node, [v and v.dtype for v in ins]))
        formal = [] if node.domain else onnx.defs.get_schema(op, self.opset, "").outputs
        self.need(all(type_name(self.elem(v.dtype)) in formal[min(i, len(formal) - 1)].types for i, v in enumerate(outs) if formal))
        return out

    def node(self, op, ins, **attrs):
        out = super().node(op, ins, **attrs)
        self.need(self.allowed(self.nodes[-1]))
        return out

    def const(self, data, dtype="f"):
        if dtype not in MORE:
            v = super().const(data, dtype)
            if self.opset < 9 and dtype != "f" and self.nodes and v.name in self.nodes[-1].output:     # a Constant is float there
                t = self.nodes.pop().attribute[0].t
                t.name = v.name
                self.inits.append(t)
            return v
        data = np.asarray(data).astype(NUMPY[dtype])
        v = Value(self.name(), tuple(fixed(n) for n in data.shape), dtype, 16, 0, True, True, data)
        values = [x.encode() for x in data.ravel()] if dtype == "s" else data.ravel().tolist()
        self.inits.append(helper.make_tensor(v.name, TYPES[dtype], data.shape, values))
        return v

    # ---------------------------------------------------------------------------------------------- any type, moved about

    def other(self):
        """A value of another type: made of exact numbers, an input, or a constant."""
        t = self.r.choice(MOVED + ["i4", "u4"] * 3 * (self.opset >= 21))
        self.need(t != self.float)
        have = [v for v in self.pool if v.dtype == t and not v.const]
        if have and self.chance(0.6):
            return self.r.choice(have)
        if t in ("s", "i4", "u4") or self.chance(0.2):
            shape = [self.dim((1, 2, 3, 4)) for _ in range(self.r.randint(1, 4))]
            if t in ("i4", "u4") or self.chance(0.3):   # numpy has no such input
                dims = [d.a if d.static else 2 for d in shape]
                some = self.np.choice(WORDS, dims) if t == "s" else self.np.integers(0, 2, dims)
                v = self.const(some, t)
                if t in ("i4", "u4"):
                    v.const = False                     # all the same: nothing else has these types
                    return v
                return self.emit("Identity", [v], v.shape)
            self.need(len(self.inputs) < 6)
            return self.add_input(shape, t, 4)
        v = self.pick(lambda v: v.exact and v.frac == 0 and v.mag <= 100)
        if t.startswith("u"):
            v = self.emit("Abs", [v], v.shape)
        return self.emit("Cast", [v], v.shape, dtype=t, to=TYPES[t], mag=1 if t == "b" else v.mag, exact=True, frac=0)

    def move(self, v):
        """One node that moves it."""
        same = {"dtype": v.dtype, "mag": v.mag, "exact": v.exact, "frac": v.frac}
        kind = self.r.choice(["transpose", "transpose", "transpose", "reshape", "concat", "split", "gather", "slice", "expand", "tile", "where", "pad", "s2d"])
        ax = self.axis(v) if v.rank else 0
        cut = [i for i, d in enumerate(v.shape) if d.static and d.a >= 2]
        if kind == "transpose" or not v.rank:
            return self.transpose(v, self.r.sample(range(v.rank), v.rank))
        if kind == "reshape":
            self.need(all(d.a and d.b for d in v.shape))
            return self.reshape(v, self.regroup(v))
        if kind == "concat":
            w = self.transpose(v, sorted(range(v.rank), key=lambda i: v.shape[i] != v.shape[0])) if self.chance(0.3) else v
            self.need(w.shape == v.shape and v.shape[ax].static)
            shape = tuple(fixed(2 * d.a) if i == ax else d for i, d in enumerate(v.shape))
            return self.emit("Concat", [v, w], shape, axis=ax, **same)
        if kind == "where":
            cond = self.const(self.np.integers(0, 2, [d.a if d.static else 1 for d in v.shape]), "b")
            return self.emit("Where", [cond, v, v], v.shape, **same)
        if kind == "expand":
            return self.emit("Expand", [v, self.ints(2, *[1] * v.rank)], (fixed(2), *v.shape), **same)
        if kind == "tile":
            times = [self.r.choice([1, 1, 2]) for _ in v.shape]
            shape = tuple(fixed(d.a * k) if k > 1 else d for d, k in zip(v.shape, times))
            self.need(all(k == 1 or d.static for d, k in zip(v.shape, times)))
            return self.emit("Tile", [v, self.ints(*times)], shape, **same)
        if kind == "pad":
            self.need(self.opset >= 11 and v.dtype != "s" and all(d.static for d in v.shape))   # docs/disagreements.md
            before = [self.r.choice([0, 0, 1]) for _ in v.shape]
            return self.emit("Pad", [v, self.ints(*before, *[0] * v.rank)], tuple(fixed(d.a + p) for d, p in zip(v.shape, before)), **same)
        if kind == "s2d":
            self.need(v.rank == 4 and v.shape[1].static and v.shape[1].a % 4 == 0 and v.shape[1].a)
            n, c, h, w = v.shape
            return self.emit("DepthToSpace", [v], (n, fixed(c.a // 4), graphgen.times(h, fixed(2)), graphgen.times(w, fixed(2))), blocksize=2, **same)
        self.need(cut)
        ax = self.r.choice(cut)
        n = v.shape[ax].a
        part = lambda k: tuple(fixed(k) if i == ax else d for i, d in enumerate(v.shape))
        if kind == "split":
            k = self.r.randint(1, n - 1)
            ins, attrs = ([v, self.ints(k, n - k)], {}) if self.opset >= 13 else ([v], {"split": [k, n - k]})
            return self.emit("Split", ins, [part(k), part(n - k)], axis=ax, **attrs, **{**same, "dtype": [v.dtype] * 2})[0]
        if kind == "gather":
            self.need(v.dtype != "s")       # docs/disagreements.md
            at = self.np.permutation(n) if self.chance(0.5) else self.np.integers(0, n, self.r.randint(1, 3))
            return self.emit("Gather", [v, self.const(at, "i64")], part(len(at)), axis=ax, **same)
        self.need(self.opset >= 10)
        k = self.r.randint(1, n)
        step = self.r.choice([1, -1])
        return self.emit("Slice", [v, self.ints(0 if step > 0 else n - 1), self.ints(k if step > 0 else n - 1 - k if k < n else -n - 1), self.ints(ax),
                                   self.ints(step)], part(k), **same)

    def op_moved(self):
        v = self.other()
        for _ in range(self.r.randint(1, 4)):
            v = self.move(v)
            if v.dtype in ("h", "d", "bf") and self.chance(0.4):
                v = self.emit(self.r.choice(["Relu", "Neg", "Abs"]), [v], v.shape)
            elif v.dtype in ("i8", "i32", "h", "d") and self.chance(0.2):
                v = self.emit("Add", [v, v], v.shape, mag=min(2 * v.mag, 100))
            elif v.dtype == "b" and self.chance(0.3):
                v = self.emit("Not", [v], v.shape)
        if v.dtype in ("i4", "u4") or (v.dtype != "s" and self.chance(0.7)):    # an output of four bits is beyond most runtimes
            self.emit("Cast", [v], v.shape, dtype="f", to=TYPES["f"], mag=max(v.mag, 128), exact=True, frac=0)
            if v.dtype in ("i4", "u4"):
                self.pool = [x for x in self.pool if x.dtype not in ("i4", "u4") or x.const]

    # ---------------------------------------------------------------------------------------------- later ops

    def op_blocked(self):
        """Blocks of a dim that share a scale: of a weight, of what flows."""
        self.need(self.opset >= 21)
        scale = lambda dims: self.const(self.np.choice([1.0, 2.0, 0.5], dims))
        if self.chance(0.6):
            v = self.pick(lambda v: v.rank >= 2 and v.shape[-1].static and v.shape[-1].a % 2 == 0 and v.shape[-1].a and v.mag < 50 and v.frac < 3)
            k, n, t = v.shape[-1].a, self.r.randint(1, 4), self.r.choice(["i8", "u8", "i4", "u4"])
            turned = self.chance(0.5)
            dims, axis = ([n, k], 1) if turned else ([k, n], 0)
            blocks = [d // 2 if i == axis else d for i, d in enumerate(dims)]
            q = self.const(self.np.integers(0 if t[0] == "u" else -3, 4, dims), t)
            ins = [q, scale(blocks)] + ([self.const(self.np.integers(0, 2, blocks), t)] if self.chance(0.6) else [])
            w = self.emit("DequantizeLinear", ins, tuple(map(fixed, dims)), dtype="f", mag=16, exact=True, frac=1, axis=axis, block_size=2)
            w = self.transpose(w, [1, 0]) if turned else w
            y = self.emit("MatMul", [v, w], (*v.shape[:-1], fixed(n)), mag=v.mag * 16 * k, frac=v.frac + 1)
            if y.rank > 2 and self.chance(0.4):
                self.transpose(y, self.r.sample(range(y.rank), y.rank))
            return
        v = self.pick(lambda v: v.rank >= 1 and v.exact and v.frac == 0 and v.mag < 50 and all(d.static and d.a for d in v.shape)
                      and any(d.a % 2 == 0 for d in v.shape))
        axis = self.r.choice([i for i, d in enumerate(v.shape) if d.a % 2 == 0])
        blocks = [d.a // 2 if i == axis else d.a for i, d in enumerate(v.shape)]
        s, z = scale(blocks), self.const(self.np.integers(0, 4, blocks), "i8")
        how = {"axis": self.signed(axis, v.rank), "block_size": 2}
        q = self.emit("QuantizeLinear", [v, s, z], v.shape, dtype="i8", mag=130, exact=True, frac=0, **how)
        y = self.emit("DequantizeLinear", [q, s, z], v.shape, dtype="f", mag=260, exact=True, frac=1, **how)
        self.transpose(y, self.r.sample(range(y.rank), y.rank))

    def heads(self, test):
        """Queries, or what else has batch, heads, sequence and features."""
        self.need(self.opset >= 23)
        fit = [v for v in self.pool if v.dtype == "f" and not v.const and v.rank == 4 and all(d.static and d.a for d in v.shape) and test(v)]
        self.need(fit or len(self.inputs) < 5)
        return self.r.choice(fit) if fit else self.add_input([fixed(self.r.choice([1, 2])), fixed(2), fixed(3), fixed(4)])

    def op_attention_op(self):
        v = self.heads(lambda v: v.mag < 8)
        v = self.transpose(v, [0, 2, 1, 3]) if self.chance(0.5) else v
        k = self.transpose(v, [1, 0, 2, 3]) if v.shape[0] == v.shape[1] and self.chance(0.5) else v
        y = self.emit("Attention", [v, k, v], v.shape, mag=v.mag, exact=False)
        if self.chance(0.7):
            self.transpose(y, [0, 2, 1, 3])

    def op_rotary_op(self):
        v = self.heads(lambda v: v.mag < 100 and v.shape[3].a % 2 == 0)
        v = self.transpose(v, [0, 2, 1, 3]) if self.chance(0.5) else v
        cache = [v.shape[0].a, v.shape[2].a, v.shape[3].a // 2]
        y = self.emit("RotaryEmbedding", [v, self.whole(cache, 1), self.whole(cache, 1)], v.shape, mag=2 * v.mag)
        if self.chance(0.5):
            self.transpose(y, [0, 2, 1, 3])

    def op_latest(self):
        kind = self.r.choice(["Swish", "CumProd", "TensorScatter", "BitShift", "Mod", "Celu", "ReduceLogSum"])
        v = self.pick(lambda v: v.rank >= 1 and all(d.a for d in v.shape))
        if kind in ("Swish", "Celu"):
            self.emit(kind, [v], v.shape, exact=False)
        elif kind == "CumProd":
            s = self.emit("Sign", [v], v.shape, mag=1)
            self.emit("CumProd", [s, self.const(np.array(self.signed(self.axis(v), v.rank)), "i64")], v.shape, mag=1)
        elif kind == "TensorScatter":
            self.need(v.rank == 4 and all(d.static for d in v.shape))
            b, h, s, d = v.shape
            self.emit("TensorScatter", [v, self.whole([b.a, h.a, 1, d.a]), self.ints(*[s.a - 1] * b.a)], v.shape, mag=max(v.mag, 2))
        elif kind == "BitShift":
            self.need(v.exact and v.frac == 0 and v.mag < 100 and self.opset >= 11)
            u = self.emit("Cast", [self.emit("Abs", [v], v.shape)], v.shape, dtype="u8", to=TYPES["u8"], exact=True, frac=0)
            u = self.emit("BitShift", [u, self.const(np.array(1), "u8")], v.shape, direction="RIGHT")
            self.emit("Cast", [self.transpose(u, self.r.sample(range(u.rank), u.rank))], self.nodes_shape(), dtype="f", to=TYPES["f"], exact=True, frac=0)
        elif kind == "Mod":
            self.need(v.exact and v.frac == 0 and v.mag < 1000 and self.opset >= 10)
            i = self.emit("Cast", [v], v.shape, dtype="i32", to=TYPES["i32"], exact=True, frac=0)
            self.emit("Mod", [i, self.const(np.array(3), "i32")], v.shape, mag=3)
        else:
            a = self.emit("Abs", [v], v.shape)
            self.emit("ReduceLogSum", [self.emit("Add", [a, self.const(np.array(1.0))], v.shape, mag=v.mag + 1)], (ONE,) * v.rank, mag=20, exact=False)

    def nodes_shape(self):
        """Of the value made last."""
        return self.pool[-1].shape

    def op_sequence(self):
        self.need(self.float != "bf")               # not among the types of sequences
        super().op_sequence()

    def op_sequences(self):
        """A sequence of a tensor and itself turned about, joined again."""
        self.need(self.opset >= 11 and self.float != "bf")
        v = self.pick(lambda v: v.rank >= 1 and v.shape[0].static and v.shape[0].a)
        s = self.node("SequenceConstruct", [v.name, self.emit("Neg", [v], v.shape).name])
        seq = Value(s, v.shape, v.dtype, v.mag, v.frac, v.exact)
        out = (fixed(2 * v.shape[0].a), *v.shape[1:])
        y = self.emit("ConcatFromSequence", [None], out, dtype="f", mag=v.mag, exact=v.exact, frac=v.frac, axis=0)
        self.nodes[-1].input[0] = seq.name
        self.used.add(seq.name)
        self.transpose(y, self.r.sample(range(y.rank), y.rank))

    # ---------------------------------------------------------------------------------------------- the whole model

    def some_input(self, v, shape):
        if v.dtype == "s":
            return self.np.choice(WORDS, shape)
        if v.dtype in MORE:
            return np.asarray(self.np.integers(0, 5, shape)).astype(NUMPY[v.dtype])
        x = super().some_input(v, shape)
        return x.astype(NUMPY[self.float]) if v.dtype == "f" else x

    def finish(self):
        model = super().finish()
        if self.float != "f":
            retype(model.proto, TYPES[self.float])
            for feed in model.trials:                # a default that is overridden was float as well
                for k, x in feed.items():
                    feed[k] = x.astype(NUMPY[self.float]) if x.dtype == np.float32 else x
        return model


def retype(model, elem):
    """All that is float becomes elem."""
    numbers = helper.tensor_dtype_to_np_dtype(elem)

    def tensor(t):
        if t.data_type == TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(numbers), t.name))

    def info(v):
        t = v.type.sequence_type.elem_type if v.type.WhichOneof("value") == "sequence_type" else v.type
        if t.tensor_type.elem_type == TensorProto.FLOAT:
            t.tensor_type.elem_type = elem

    def graph(g):
        for v in (*g.input, *g.output, *g.value_info):
            info(v)
        for t in g.initializer:
            tensor(t)
        for n in g.node:
            for a in n.attribute:
                if a.type == AttributeProto.TENSOR:
                    tensor(a.t)
                elif a.type == AttributeProto.GRAPH:
                    graph(a.g)
                elif n.op_type == "Cast" and a.name == "to" and a.i == TensorProto.FLOAT:
                    a.i = elem

    graph(model.graph)


# ---------------------------------------------------------------------------------------------- what a model contains

# What a run of some hundreds of models must have.
WANTED = ["opset 7-8", "opset 9-12", "opset 13-20", "opset 21-24", "opset 25-28", "FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "UINT8", "INT16",
          "BOOL", "STRING", "INT4", "UINT4", "symbolic", "If", "Loop", "Scan", "captured", "QDQ per tensor", "QDQ per axis", "QDQ blocked",
          "external data", "function", "sequence", "Attention", "RotaryEmbedding"]


def kinds(g):
    """What is in a graphgen.Model, as a set of words."""
    m = g.proto
    opset = next(o.version for o in m.opset_import if not o.domain)
    bands = ((7, 8), (9, 12), (13, 20), (21, 24), (25, 28))
    found = {f"opset {a}-{b}" for a, b in bands if a <= opset <= b}
    found |= {"external data"} if g.external and any(len(t.raw_data) >= 100 for t in m.graph.initializer) else set()
    found |= {"function"} if m.functions else set()
    found |= {"symbolic"} if any(d.dim_param for i in m.graph.input for d in i.type.tensor_type.shape.dim) else set()
    found |= {TensorProto.DataType.Name(v.type.tensor_type.elem_type) for v in (*m.graph.input, *m.graph.output)}
    ranks = {t.name: len(t.dims) for t in m.graph.initializer}
    ranks.update({n.output[0]: len(a.t.dims) for n in m.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"})
    of_graph(m.graph, found, ranks, set())
    return found


def of_graph(g, found, ranks, outside):
    found |= {TensorProto.DataType.Name(t.data_type) for t in g.initializer}
    here = {i.name for i in g.input} | {t.name for t in g.initializer} | {o for n in g.node for o in n.output}
    for n in g.node:
        attrs = {a.name: a for a in n.attribute}
        if n.op_type in ("If", "Loop", "Scan", "Attention", "RotaryEmbedding"):
            found.add(n.op_type)
        if n.op_type == "SequenceConstruct":
            found.add("sequence")
        if n.op_type == "Cast":
            found.add(TensorProto.DataType.Name(attrs["to"].i))
        if n.op_type in ("QuantizeLinear", "DequantizeLinear"):
            blocked, rank = "block_size" in attrs, ranks.get(n.input[1])
            found.add("QDQ blocked" if blocked else "QDQ per axis" if rank == 1 else "QDQ per tensor")
        if any(i in outside and i not in here for i in n.input):
            found.add("captured")
        for a in n.attribute:
            if a.type == AttributeProto.GRAPH:
                of_graph(a.g, found, ranks, outside | here)


def is_valid(model):
    """By what the onnx package says: bodies are not asked op by op."""
    try:
        onnx.checker.check_model(model)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        return True
    except Exception:
        return False


def make(seed, size=None):
    """The first valid one of those that the seed leads to."""
    return next(g for k in range(100) if is_valid((g := Wide(seed + (k << 40), size).build()).proto))
