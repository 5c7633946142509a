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
from . import bodies, contrib, parts
from onnx import TensorProto, TypeProto, helper, numpy_helper
from .equation import terms

ELEMENTS = {f"tensor({name.lower()})": elem for name, elem in TensorProto.DataType.items()}
PACKED = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}  # bits; numpy has a byte for each element
SMALL = 4096  # elements of a tensor whose contents are followed
GUESS = 64
LEAST = 10_007  # no symbol is smaller
APART = 100, 150
LARGEST = 2 ** 63 - 1  # that inference and contents can hold
END = 2 ** 31 - 1  # and beyond: a cut goes on to the end, whatever the size
EXACT = 2 ** 24  # below, each whole number is a float
WORLDS = 3    # two of primes, and one in which every symbol is GUESS
RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
REFERS = "\0"  # before the domain of a node of which an attribute is one of a function's call: only its outputs' types may be known
# ONNX's own that give what they take, whatever their attributes are.
ALIKE = set("""Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Clip Cos Cosh CumProd CumSum Elu Erf Exp Floor Gelu GroupNormalization
    HardSigmoid HardSwish Hardmax InstanceNormalization LRN LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg PRelu
    Reciprocal Relu ReverseSequence RotaryEmbedding Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus
    Softsign Sqrt Swish Tan Tanh TensorScatter ThresholdedRelu Trilu""".split())


def primes(start, count, apart, rest=None):
    """So far apart that none is another one and a little: sizes like N + 2 are no symbol by chance. rest: of a division by 128, if it is asked for."""
    found, n = [], start | 1
    while len(found) < count:
        if rest in (None, n % 128) and all(n % d for d in range(3, int(n ** 0.5) + 1, 2)):
            found.append(n)
            n += apart
        n += 2
    return found


class Symbols:
    """A number for each unknown size, by name, in each world."""

    def __init__(self, others=0, open_=()):
        """open_: (tensor, dim, symbol) of sizes that are taken for unknown, whatever is inferred. others: not the first numbers that are tried, but such that ceil(N/2), ceil(N/4) ... are odd in one world, and floor(N/2) ... in the other."""
        self.rests = (1, 63) if others else (None, None)
        self.index, self.name, self.open = {}, {}, {x[:2]: x[2] for x in open_}
        self.given = {}    # name -> its numbers in all worlds, where they are others (alike.py)
        self.calls = {}    # what functions of the model give (calls.py)
        self.sure = set()  # tensors whose contents hang on no unknown size
        odd, even = (primes(n, 64, apart, rest) for n, apart, rest in zip((LEAST, 20_011), APART, self.rests))
        self.numbers = [odd, [2 * p for p in even]]

    def number(self, name, world):
        i = self.index.setdefault(name, len(self.index))
        if name in self.given:
            return self.given[name][world]
        if world == 2:
            return GUESS
        while i >= len(self.numbers[world]):
            times = 1 + world
            more = primes(self.numbers[world][-1] // times + APART[world], len(self.numbers[world]), APART[world], self.rests[world])
            self.numbers[world] += [times * p for p in more]
        self.name[world, self.numbers[world][i]] = name
        return self.numbers[world][i]


class World:
    """Inference with every symbol replaced by its number."""

    def __init__(self, graph, symbols, world, outer=None):
        self.graph, self.symbols, self.world = graph, symbols, world
        self.type = dict(outer.type) if outer else {}   # name -> (element type, dims or None); dims of int
        self.data = dict(outer.data) if outer else {}   # name -> array, of small ones
        self.parts = dict(outer.parts) if outer else {}  # name -> its elements, with None for those that are not known, of what Concat made
        self.doubt = {}  # of the node at hand, (dim, from the end) -> the symbol of what was broadcast, where one size was taken for a number
        self.joined = {}  # and where it has that symbol
        self.some = dict(outer.some) if outer else {}    # name -> the same of any small tensor: parts.py
        self.windowed = set(outer.windowed) if outer else set()  # sizes that a Conv or pool makes of such as nothing tells
        self.sequences = dict(outer.sequences) if outer else {}
        self.full = set(outer.full) if outer else set()  # tensors of which no element is 0, however many there are
        self.inner = outer is not None
        self.first = None  # of the world of guesses: the one that knows which sizes are symbols
        self.cache = outer.cache if outer else {}
        self.declared = {v.name: v.type for v in list(graph.proto.value_info) + list(graph.proto.output)}

    def dims_of(self, type_proto, owner):
        """Element type and dims of a declared type; unnamed unknown dims get names of their own."""
        if not type_proto.HasField("tensor_type"):
            return 0, None
        t = type_proto.tensor_type
        if not t.HasField("shape"):
            return t.elem_type, None
        dims = []
        for i, d in enumerate(t.shape.dim):
            if d.HasField("dim_value") and d.dim_value >= 0:
                dims.append(d.dim_value)
            else:
                dims.append(self.symbols.number(("named", d.dim_param) if d.dim_param else ("unknown", owner, i), self.world))
        return t.elem_type, tuple(dims)

    def start(self):
        g = self.graph
        for v in g.proto.input:
            self.type[v.name] = self.dims_of(v.type, v.name)
        for name, t in g.stored.items():
            self.type[name] = (t.data_type, tuple(t.dims))
            if np.prod(t.dims, dtype=object) <= SMALL and name not in g.replaceable:
                self.data[name] = g.array(name)
                self.symbols.sure.add(name)

    # ---- one node

    def node(self, node):
        self.doubt, self.joined = {}, {}
        for name in node.output:
            self.data.pop(name, None)
            self.some.pop(name, None)
        self.values(node)
        if not all(n in self.type and self.type[n][1] is not None for n in node.output if n):
            self.infer(node)
        self.values_after(node)

    def infer(self, node):
        got = {}
        key = None
        if not node.graphs and not node.op.startswith("Sequence") and node.op != "NonZero":
            key = (node.op, node.domain, node.key, len(node.output), tuple(self.type.get(n) for n in node.input),
                   tuple(self.data[n].tobytes() if n in self.data else self.parts.get(n) for n in node.input))
            got = self.cache.get(key)
            if got is not None:
                got = dict(zip(node.output, got))
        if not got:
            got = bodies.infer(self, node) or self.own(node) or self.schema(node)
            if key is not None and not self.doubt and not self.joined:
                self.cache[key] = [got.get(n) for n in node.output]
        self.note_windows(node, got)
        for i, name in enumerate(node.output):
            if not name:
                continue
            elem, dims = got.get(name) or (0, None)
            if name in self.declared:
                elem, dims = self.merge(elem, self.close_sum(node, dims, self.declared[name]), self.declared[name], name)
            if dims is not None:
                dims = tuple(self.symbols.number(self.symbols.open.get((name, k), ("unknown", name, k)), self.world)
                             if d is None or (name, k) in self.symbols.open else d for k, d in enumerate(dims))
            self.type[name] = (elem, self.guessed(name, dims))

    def guessed(self, name, dims):
        """A guess stays one where the size is a symbol, although a number is declared, or guesses divide; and a number that is as large as a guess is
        none, whatever is declared. And where the number was believed, it is here, too."""
        known = self.first and self.first.type.get(name, (0, None))[1]
        if not known or not dims:
            return dims
        guess = [k == GUESS or (0, k) in self.symbols.name for k in known]
        return tuple(GUESS if is_guess else k if self.says_number(name, i) == k else d for i, (is_guess, k, d) in enumerate(zip(guess, known, dims)))

    def says_number(self, name, k):
        """The number that is declared for a dim, or None."""
        declared = self.declared.get(name)
        dims = declared.tensor_type.shape.dim if declared is not None else ()
        return dims[k].dim_value if k < len(dims) and dims[k].HasField("dim_value") else None

    def merge(self, elem, dims, declared, name):
        t = declared.tensor_type
        if not declared.HasField("tensor_type"):
            return elem, dims
        elem = elem or t.elem_type
        if t.HasField("shape") and (dims is None or len(dims) == len(t.shape.dim)):
            said = self.dims_of(declared, name)[1] if dims is None or any(map(self.hangs_on_unknown, dims)) else dims
            dims = said if dims is None else tuple(self.tighter(a, b) for a, b in zip(dims, said))
        return elem, dims

    def tighter(self, size, said):
        """What was inferred, unless it is open and a number is declared: a name would hide that other tensors have the same open size."""
        number = (self.world, said) not in self.symbols.name
        return said if size is None or (number and said != size and self.hangs_on_unknown(size)) else size

    def close_sum(self, node, dims, declared):
        """A sum of sizes of which one is unknown gives way to a number that is declared."""
        said = declared.tensor_type.shape.dim
        if node.op != "Concat" or node.domain or not dims or len(said) != len(dims):
            return dims
        axis = node.attr("axis", 1) % len(dims)
        pieces = [self.type.get(n, (0, None))[1] for n in node.input]
        open_sum = any(d is not None and len(d) == len(dims) and self.is_unknown(d[axis]) for d in pieces)
        return tuple(said[k].dim_value if open_sum and k == axis and said[k].HasField("dim_value") else d for k, d in enumerate(dims))

    def is_unknown(self, size):
        """Is it a size that nothing tells, not even in terms of others?"""
        if self.world == 2:
            return size is None or size == GUESS
        return size is None or self.symbols.name.get((self.world, size), ("named",))[0] != "named"

    def hangs_on_unknown(self, size):
        """Is it such a size, a multiple of one, or what windows leave of one?"""
        if self.is_unknown(size) or size in self.windowed:
            return True
        return size > 0 and any(w == self.world and name[0] != "named" and size % n == 0 for (w, n), name in self.symbols.name.items())

    def note_windows(self, node, got):
        x, y = self.type.get(node.inp(0), (0, None))[1], (got.get(node.out(0)) or (0, None))[1]
        if self.world < 2 and x and y and len(x) == len(y) and ("Conv" in node.op or node.op in ("AveragePool", "LpPool", "MaxPool")):
            self.windowed.update(b for a, b in zip(x[2:], y[2:]) if a and b and a != b and self.hangs_on_unknown(a))

    def own(self, node):
        """Rules where the schema has none, or refuses sizes that might broadcast."""
        types = [self.type.get(n, (0, None)) for n in node.input]
        if (node.domain, node.op) in self.graph.local:
            return dict(zip(node.output, self.symbols.calls.get((node.domain, node.op), ())))
        if node.domain == REFERS and node.op in ALIKE and types[0][1] is not None:
            return {node.output[0]: types[0]}
        if node.op.startswith("Reduce") and node.domain == "" and node.attr("keepdims", 1) and node.inp(1) and node.inp(1) not in self.data:
            elem, dims = types[0]
            return {node.output[0]: (elem, None if dims is None else (None,) * len(dims))}
        if node.domain == "com.microsoft":
            return contrib.made(node, types, self.broadcast)
        if node.domain == "" and node.op == "Slice":
            return self.slice(node, types)
        if node.domain == "" and node.op in ("Flatten", "Transpose") and types[0][1] is None:  # of whatever: two dims, or as many as it names
            return {node.output[0]: (types[0][0], (None, None) if node.op == "Flatten" else tuple(None for _ in node.attr("perm", [])) or None)}
        if node.domain == "" and node.op == "Concat":
            return self.concat(node, types)
        if node.domain == "" and node.op == "Squeeze":
            return self.squeeze(node, types[0])
        if node.domain == "" and node.op == "Split":
            return self.split(node, types[0])
        if node.domain == "" and node.op == "Einsum":
            return self.einsum(node, types)
        if node.domain == "" and node.op.startswith("Sequence"):
            return self.sequence(node, types)
        if node.domain == "" and node.op == "NonZero":
            return self.nonzero(node, types[0][1])
        if node.domain == "" and node.op == "ConstantOfShape" and node.inp(0) in self.parts:
            value = node.attr("value", np.zeros(1, np.float32))
            return {node.output[0]: (helper.np_dtype_to_tensor_dtype(value.dtype), self.parts[node.inp(0)])}
        if node.domain == "" and node.op == "Reshape" and node.inp(1) in self.parts and types[0][1] is not None:
            return self.partly(node, types[0])
        if node.domain == "" and node.op == "TopK" and node.inp(1) in self.data:
            return self.top(node, types[0])
        return None

    def einsum(self, node, types):
        """Inference takes the first size of a letter, also where that is 1 and broadcast."""
        found = terms(node, [dims for _, dims in types])
        if found is None:
            return None
        sizes = {}
        for letters, (_, dims) in zip(found[0], types):
            for c, d in zip(letters, dims):
                sizes.setdefault(c, []).append((d,))
        letters = found[0][-1]
        return {node.output[0]: (types[0][0], tuple(self.broadcast(sizes[c], len(letters) - 1 - k)[0] for k, c in enumerate(letters)))}

    def top(self, node, x):
        """Inference refuses a number of elements that is a symbol's, and by chance more than there are."""
        k = self.data[node.inp(1)].ravel()
        if not x[1] or len(k) != 1:
            return None
        axis = node.attr("axis", -1) % len(x[1])
        dims = x[1][:axis] + (int(k[0]),) + x[1][axis + 1:]
        return dict(zip(node.output, ((x[0], dims), (TensorProto.INT64, dims))))

    def nonzero(self, node, dims):
        """As many columns as there are elements that are not 0, where these hang on no unknown size."""
        x = self.data.get(node.inp(0)) if node.inp(0) in self.symbols.sure else None
        if dims is None or (x is None and node.inp(0) not in self.full):
            return None
        count = np.prod(dims, dtype=object) if x is None else np.count_nonzero(x)
        return {node.output[0]: (TensorProto.INT64, (len(dims), int(count)))}

    def squeeze(self, node, x):
        """Dims that are named go, also where nothing here says that they are 1: inference refuses those."""
        axes = node.attr("axes", self.data.get(node.inp(1)))
        if axes is None or not x[1]:
            return None
        gone = {int(a) % len(x[1]) for a in np.asarray(axes).ravel()}
        return {node.output[0]: (x[0], tuple(d for k, d in enumerate(x[1]) if k not in gone))}

    def split(self, node, x):
        """Pieces of given lengths, also where nothing here says that they are all there is: inference refuses those."""
        pieces = node.attr("split", self.data.get(node.inp(1)))
        if pieces is None or not x[1] or len(pieces) != len(node.output):
            return None
        axis = node.attr("axis", 0) % len(x[1])
        return {o: (x[0], x[1][:axis] + (int(n),) + x[1][axis + 1:]) for o, n in zip(node.output, pieces)}

    def concat(self, node, types):
        """Of an input of unknown rank the others tell the sizes off the axis."""
        ranked = [d for _, d in types if d is not None]
        if not ranked or not ranked[0] or any(len(d) != len(ranked[0]) for d in ranked):
            return None
        out = [next((x for x in column if not self.is_unknown(x)), column[0]) for column in zip(*ranked)]
        axis = node.attr("axis", 1)
        out[axis] = sum(d[axis] for d in ranked) if len(ranked) == len(types) else None
        return {node.output[0]: (types[0][0], tuple(out))}

    def cuts(self, node, rank):
        """{dim: (start, end, step)} of a Slice, or None where they are not known."""
        if node.opset < 10:
            starts, ends, axes, steps = node.attr("starts"), node.attr("ends"), node.attr("axes"), None
        else:
            given = [self.data.get(node.inp(k)) for k in range(1, 5)]
            if any(g is None and node.inp(k) for k, g in enumerate(given, 1)):
                return None
            starts, ends, axes, steps = (None if g is None else g.ravel().tolist() for g in given)
        if starts is None or ends is None:
            return None
        axes = range(len(starts)) if axes is None else axes
        return {a % rank: (starts[i], ends[i], 1 if steps is None else steps[i]) for i, a in enumerate(axes)}

    def slice(self, node, types):
        elem, dims = types[0]
        cuts = None if dims is None else self.cuts(node, len(dims))
        if cuts is None:
            return None
        out = list(dims)
        for a, (start, end, step) in cuts.items():
            out[a] = len(range(dims[a])[cut(dims[a], start, end, step)])
            if self.inner and (dims[a] >= LEAST > out[a] or any(LEAST <= abs(x) < END for x in (start, end))):
                out[a] = None  # see Sizes.forget_cut
        return {node.output[0]: (elem, tuple(out))}

    def sequence(self, node, types):
        """The type of a sequence is that of its elements, with None for what they do not agree on."""
        own, new = self.sequences.get(node.inp(0)), None
        if node.op == "SequenceConstruct":
            new = types[0]
            for t in types[1:]:
                new = bodies.common(new, t)
        elif node.op == "SequenceInsert" and own:
            new = bodies.common(own, types[1])
        elif node.op == "SequenceErase" and own:
            new = own
        elif node.op == "SequenceAt" and own:
            return {node.output[0]: own}
        if new:
            self.sequences[node.output[0]] = new
        return None

    def broadcast(self, all_dims, behind=0):
        """behind: how many dims more the result has."""
        if any(d is None for d in all_dims):
            return None
        rank = max(map(len, all_dims), default=0)
        out = []
        for k in range(rank):
            here = {d[k - rank + len(d)] for d in all_dims if k - rank + len(d) >= 0} - {1}
            known = {x for x in here if (x < LEAST if self.world < 2 else x != GUESS)}
            here -= self.cut_of(here)
            name = ("max", self.world, frozenset(here))
            if len(here) > 1 and len(known) == 1:
                self.doubt[k - rank - behind] = name
            elif len(here) > 1:
                self.joined[k - rank - behind] = name
            out.append(1 if not here else here.pop() if len(here) == 1 else known.pop() if len(known) == 1 else self.symbols.number(name, self.world))
        return tuple(out)

    def cut_of(self, sizes):
        """Those that broadcast with another one of them to that: what is left of it, for then nothing was cut, and what it was broadcast from."""
        name = lambda x: self.symbols.name.get((self.world, x), ("",))
        cut = {x for x in sizes if name(x)[0] == "min" and any(type(p) is tuple and p[self.world] in sizes - {x} for p in name(x)[1:])}
        return cut | {x for x in sizes for m in sizes if name(m)[0] == "max" and x in name(m)[2]}

    def schema(self, node):
        schema = node.schema
        if schema is None or node.domain:  # what other domains' ops make is not asked for (docs/proof.md)
            return {}
        types, data = {}, {}
        taken = {self.type[n][0] for n in node.input if n in self.type}
        some = {}  # of inputs without an element type: how the schema calls it -> one that no other input has
        for k, name in enumerate(node.input):
            if not name or name not in self.type:
                continue
            elem, dims = self.type[name]
            if not elem:
                formal = schema.inputs[min(k, len(schema.inputs) - 1)]
                may = [ELEMENTS[t] for t in sorted(formal.types) if t in ELEMENTS]
                elem = some.setdefault(formal.type_str, next((t for t in may if len(may) == 1 or t not in taken), TensorProto.FLOAT))
            held = dims if dims is None else [d if d <= LARGEST else None for d in dims]
            types[name] = helper.make_tensor_type_proto(elem, held)
            if name in self.data:
                data[name] = numpy_helper.from_array(self.data[name], name)
        open_ = [len(f.types) > 1 and some.get(f.type_str) for f in (schema.outputs[min(k, len(schema.outputs) - 1)] for k in range(len(node.output)))]
        open_ = dict(zip(node.output, open_))
        out = {}
        for s in dict.fromkeys((schema, onnx.defs.get_schema(node.op, node.domain))):  # older ones do not know negative axes
            try:
                got = onnx.shape_inference.infer_node_outputs(s, node.proto, types, data, opset_imports=node.graph.opsets,
                                                              ir_version=node.graph.ir_version)
            except Exception:
                continue
            for name, t in got.items():
                if t.HasField("tensor_type") and (name not in out or out[name][1] is None):
                    d = t.tensor_type.shape.dim if t.tensor_type.HasField("shape") else None
                    out[name] = (t.tensor_type.elem_type if t.tensor_type.elem_type != open_[name] else 0, None if d is None else tuple(x.dim_value if x.HasField("dim_value") else None for x in d))
            if all(out.get(o, (0, None))[1] is not None for o in node.output if o):
                break
        if any(dims is not None for _, dims in out.values()):
            return out
        return self.alike(node) or out or self.after_failure(node)

    def alike(self, node):
        """Inference may know the type alone, as of a GroupNormalization."""
        elem, dims = self.type.get(node.inp(0), (0, None)) if node.inp(0) else (0, None)
        return {node.output[0]: (elem, dims)} if node.op in ALIKE and node.domain == "" and dims is not None else {}

    def after_failure(self, node):
        """Sizes that differ but may be 1 when the model runs: inference calls that a mistake. Nor has it an answer where another input's type
        is unknown, as that of a bound in a function which some calls leave out."""
        types = [self.type.get(n, (0, None)) for n in node.input if n]
        if node.op == "Reshape" and node.inp(1) in self.data and types[0][1] is not None:
            return self.rest(node, types[0])
        if node.op == "Expand" and node.inp(1) in self.data:
            return {node.output[0]: (types[0][0], self.broadcast([types[0][1], tuple(map(int, self.data[node.inp(1)]))]))}
        if node.op == "MatMul" and all(d and len(d) > 1 for _, d in types):
            x, y = (d for _, d in types)
            batch = self.broadcast([x[:-2], y[:-2]], 2)
            return {node.output[0]: (types[0][0], batch + (x[-2], y[-1]))}
        if len(node.output) == 1 and len(types) > 1:
            elem = types[1][0] if node.op == "Where" else types[0][0]
            if node.op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
                elem = TensorProto.BOOL
            if node.op in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum", "Where", "And", "Or", "Xor", "Mod", "PRelu",
                           "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift") or elem == TensorProto.BOOL:
                return {node.output[0]: (elem, self.broadcast([t[1] for t in types]))}
        return {}

    def rest(self, node, x):
        """A Reshape whose -1 stands for what is left, by a size that does not divide the number that a symbol has here; or one to sizes
        that are no others only where the model runs."""
        to = [x[1][i] if d == 0 and not node.attr("allowzero", 0) and i < len(x[1]) else int(d) for i, d in enumerate(self.data[node.inp(1)].ravel())]
        others = int(np.prod([d for d in to if d != -1], dtype=object))
        if to and min(to) > 0:
            return {node.output[0]: (x[0], tuple(to))}
        if to.count(-1) != 1 or others <= 0:
            return {}
        size = int(np.prod(x[1], dtype=object))
        by = others // math.gcd(size, others)
        left = size // others if by < LEAST else None  # by a symbol: two near numbers would leave a small one
        return {node.output[0]: (x[0], tuple(left if d == -1 else d for d in to))}

    def partly(self, node, x):
        """A Reshape to sizes of which some are not known."""
        to = self.parts[node.inp(1)]
        dims = [x[1][i] if d == 0 and not node.attr("allowzero", 0) and i < len(x[1]) else None if d == -1 else d for i, d in enumerate(to)]
        return {node.output[0]: (x[0], tuple(dims))}

    # ---- contents

    def values(self, node):
        """Contents of the outputs, where they follow from small contents or from sizes alone."""
        if node.op in ("Shape", "Size") and node.domain == "":
            dims = self.type.get(node.input[0], (0, None))[1]
            if dims is not None and (max(dims, default=0) if node.op == "Shape" else np.prod(dims, dtype=object)) <= LARGEST:
                x = np.array(dims, dtype=np.int64)
                sure = all(d < LEAST for d in dims)
                if self.world == 0:
                    (self.symbols.sure.update if sure else self.symbols.sure.difference_update)([node.output[0]])
                if node.op == "Shape":
                    self.data[node.output[0]] = x[node.attr("start", 0):node.attr("end", len(dims))]
                else:
                    self.data[node.output[0]] = np.array(np.prod(x), dtype=np.int64)
                self.note(node)

    def values_after(self, node):
        if node.op == "ConstantOfShape" and node.domain == "" and np.all(node.attr("value", np.zeros(1))):
            self.full.add(node.output[0])
        if node.op == "Where" and node.domain == "" and self.picked(node):
            return
        if node.op in ("Shape", "Size") or node.op in RANDOM or node.graphs or node.domain != "" or node.schema is None:
            return
        if not node.input and node.op != "Constant":
            return
        if not all(n in self.data for n in node.input if n):
            self.join(node)
            self.fill(node)
            return self.follow(node)
        if not self.is_sure(node):
            return
        for n in node.output:
            dims = self.type.get(n, (0, None))[1] if n else ()
            if n and (dims is None or np.prod(dims, dtype=object) > SMALL):
                return
        try:
            got = evaluate(node, [self.data[n] if n else None for n in node.input])
        except Exception:
            return
        for name, x in zip(node.output, got):
            if name:
                self.data[name] = np.asarray(x)
        self.note(node)

    def join(self, node):
        """The elements that are known of sizes put together, where others are not."""
        lengths = [self.type.get(n, (0, None)) for n in node.input]
        if node.op == "Concat" and all(elem == TensorProto.INT64 and dims is not None and len(dims) == 1 and dims[0] <= SMALL for elem, dims in lengths):
            parts = [self.data[n].tolist() if n in self.data else [None] * dims[0] for n, (_, dims) in zip(node.input, lengths)]
            self.parts[node.output[0]] = tuple(x for p in parts for x in p)

    def fill(self, node):
        """What its sizes say of a result, though the input that asks for them is not known."""
        dims, x = self.type.get(node.out(0), (0, None))[1], self.data.get(node.inp(0))
        if node.op not in FILLED or dims is None or np.prod(dims, dtype=object) > SMALL or (x is None and node.op != "ConstantOfShape"):
            return
        try:
            self.data[node.out(0)] = FILLED[node.op](node, x, dims)
        except ValueError:  # a declared size may be wrong
            pass

    def follow(self, node):
        try:
            parts.follow(self, node, MOVES)
        except (IndexError, KeyError, TypeError, ValueError):  # a declared size may be wrong
            pass

    def is_sure(self, node):
        """In a body the worlds do not go side by side: there only what must be equal in both if it is in one is followed."""
        if self.world == 0:
            if all(n in self.symbols.sure for n in node.input if n):
                self.symbols.sure.update(n for n in node.output if n)
            else:
                self.symbols.sure.difference_update(node.output)
        return not self.inner or node.op in ALGEBRA or all(n in self.symbols.sure for n in node.input if n)

    def picked(self, node):
        """Where of a condition that is the same everywhere takes one of its inputs whole."""
        cond, dims = self.data.get(node.inp(0)), self.type.get(node.out(0), (0, None))[1]
        if dims is not None and 0 in dims:
            self.data[node.output[0]] = np.zeros(dims, dtype=helper.tensor_dtype_to_np_dtype(self.type[node.out(0)][0]))
            return True
        if cond is None or cond.size == 0 or cond.all() != cond.any() or dims is None or np.prod(dims, dtype=object) > SMALL:
            return False
        x = self.data.get(node.inp(1 if cond.all() else 2))
        if x is not None:
            self.data[node.output[0]] = np.broadcast_to(x, dims)
        return x is not None

    def note(self, node):
        for n in node.output:
            if n in self.data:
                x = self.data[n]
                self.type[n] = (helper.np_dtype_to_tensor_dtype(x.dtype), tuple(x.shape))


# ---------------------------------------------------------------------------------------------------- contents of small tensors

def divide(a, b):
    if a.dtype.kind == "f":
        return a / b
    q = np.abs(a) // np.abs(b)  # towards zero
    return (np.where((a < 0) != (b < 0), -q, q)).astype(a.dtype)


def slice_of(node, x, starts=None, ends=None, axes=None, steps=None):
    if starts is None:
        starts, ends = node.attr("starts", []), node.attr("ends", [])
        axes = node.attr("axes", list(range(len(starts))))
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    parts = [slice(None)] * x.ndim
    for s, e, a, t in zip(starts, ends, axes, steps):
        parts[int(a)] = cut(x.shape[int(a)], int(s), int(e), int(t))
    return x[tuple(parts)]


def cut(n, start, end, step):
    """ONNX's start and end of a dim of n elements as Python's. END is past the last one, though a number for an unknown size be larger."""
    place = lambda x: n if x >= END else -1 if x <= -END else x + n if x < 0 else x
    start, end = place(start), place(end)
    if step > 0:
        return slice(min(max(start, 0), n), min(max(end, 0), n), step)
    start, end = min(max(start, -1), n - 1), min(max(end, -1), n - 1)
    return slice(start, None if end < 0 else end, step) if start >= 0 else slice(0, 0)


def reshape_to(node, x, shape):
    shape = [x.shape[i] if d == 0 and not node.attr("allowzero", 0) else int(d) for i, d in enumerate(shape)]
    return x.reshape(shape)


FAST = {
    "Gather": lambda n, x, i: np.take(x, i, axis=n.attr("axis", 0)),
    "Concat": lambda n, *x: np.concatenate(x, axis=n.attr("axis", 0)),
    "Identity": lambda n, x: x,
    "Cast": lambda n, x: x.astype(helper.tensor_dtype_to_np_dtype(n.attr("to", 1))),
    "Add": lambda n, a, b: a + b,
    "Sub": lambda n, a, b: a - b,
    "Mul": lambda n, a, b: a * b,
    "Div": lambda n, a, b: divide(a, b),
    "Slice": slice_of,
    "Reshape": reshape_to,
    "Equal": lambda n, a, b: a == b,
    "Where": lambda n, c, a, b: np.where(c, a, b).astype(a.dtype),
    "Constant": lambda n: n.constant(),
    "ConstantOfShape": lambda n, s: np.full(s, n.attr("value", np.zeros(1, np.float32)).ravel()[0]),
    "Unsqueeze": lambda n, x, axes=None: unsqueeze(x, n.attr("axes", axes)),
    "Squeeze": lambda n, x, axes=None: np.squeeze(x, axis=None if n.attr("axes", axes) is None else tuple(int(a) for a in n.attr("axes", axes))),
    "Transpose": lambda n, x: np.transpose(x, n.attr("perm", None)),
}

# Of a result's sizes.
FILLED = {
    "ConstantOfShape": lambda n, _, dims: np.full(dims, n.attr("value", np.zeros(1, np.float32)).ravel()[0]),
    "Expand": lambda n, x, dims: np.broadcast_to(x, dims),
    "Reshape": lambda n, x, dims: x.reshape(dims),
    "Tile": lambda n, x, dims: np.broadcast_to(np.tile(x, [d // max(1, e) for d, e in zip(dims, x.shape)]), dims),
}
MOVES = {**FAST, **FILLED}


def unsqueeze(x, axes):
    rank = x.ndim + len(axes)
    where = {int(a) % rank for a in axes}
    dims = iter(x.shape)
    return x.reshape([1 if k in where else next(dims) for k in range(rank)])


def is_open(node, inputs, made):
    """Is the result left open by ONNX, each machine with its own? Of an integer divided by 0, and of a float that its integer cannot hold."""
    x = inputs[0] if inputs else None
    if node.op in ("Div", "Mod"):
        return x.dtype.kind in "iu" and bool((inputs[1] == 0).any())
    if node.op not in ("Cast", "CastLike") or x.dtype.kind != "f" or made.dtype.kind not in "iu":
        return False
    whole, holds = np.trunc(x.astype(np.float64)), np.iinfo(made.dtype)
    return not ((whole >= float(holds.min)) & (whole < float(holds.max) + 1)).all()


def evaluate(node, inputs):
    """Contents of the outputs; raises ValueError where there is more than one answer."""
    while inputs and inputs[-1] is None:
        inputs.pop()
    with np.errstate(all="ignore"):
        if node.op in FAST:
            got = [FAST[node.op](node, *inputs)]
        else:
            from onnx.reference import ReferenceEvaluator
            session = ReferenceEvaluator(node.proto, opsets={d.domain: d.version for d in node.graph.opsets})
            got = session.run(None, {n: x for n, x in zip(node.input, inputs) if n})
    if is_open(node, inputs, np.asarray(got[0])):
        raise ValueError(f"{node.op} of what it does not define")
    return got


# ---------------------------------------------------------------------------------------------------- all worlds together

# What follows from unknown sizes as a polynomial: equal in both worlds is equal always. And what follows where it comes out different.
ALGEBRA = {"Shape", "Size", "Gather", "Concat", "Slice", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Identity", "Transpose", "Add", "Sub", "Mul",
           "Neg", "Split", "Where", "ReduceProd", "ReduceSum", "Expand", "Range", "ConstantOfShape", "Tile"}
ROUNDING = {"Div", "Floor", "Ceil", "Round", "Cast", "Sqrt"}


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
        for k, w in enumerate(worlds):
            w.start()
            w.type.update(given[k] if given else {})
        for node in graph.nodes:
            for w in worlds:
                w.node(node)
            if node.op == "Slice" and self.symbols.index:
                self.forget_cut(node)
            if self.symbols.index:
                self.guess_broadcast(node)
                self.believe_known(node)
            if node.op == "Equal" and node.domain == "" and self.symbols.index:
                self.forget_unequal(node)
            elif self.symbols.index and not follows(node, *worlds[:2]):
                least = self.least_of(node) or self.ratio_of(node)
                for k, w in enumerate(worlds):
                    for name in node.output:
                        was = w.data.pop(name, None)
                        if least is not None:
                            w.data[name] = np.full(was.shape, least[k], was.dtype)
        a, b, guess = worlds
        self.elem, self.dims, self.content, self.count, self.guessed = {}, {}, {}, {}, {}
        for name, (elem, dims) in a.type.items():
            other = b.type.get(name, (0, None))[1]
            self.elem[name] = elem
            self.dims[name] = None if dims is None or other is None or len(dims) != len(other) else tuple(zip(dims, other))
            third = guess.type.get(name, (0, None))[1]
            self.count[name], self.guessed[name] = None if third is None else int(np.prod(third, dtype=object)), third
            x, y = a.data.get(name), b.data.get(name)
            if x is not None and y is not None and x.shape == y.shape and not differ(x, y).any():
                self.content[name] = x

    def merge_first(self, x, y, depth):
        """y is x with its first dims as one."""
        merged = lambda dims, one: (one(dims[:depth]), *dims[depth:])
        self.dims[y], self.elem[y], self.count[y] = merged(self.dims[x], product), self.elem[x], self.count[x]
        self.guessed[y] = self.guessed[x] and merged(self.guessed[x], math.prod)

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
                    said = self.worlds[0].says_number(y, k)
                    size = self.symbol(made[0] or made[1]) if said is None else (said,) * WORLDS
                    for w, d in zip(self.worlds, size):
                        elem, was = w.type[y]
                        w.type[y] = (elem, was[:k] + (d,) + was[k + 1:])

    def believe_known(self, node):
        """Off the axis the inputs of a Concat have one size: the number, where one of them has a number."""
        y = node.out(0)
        types = [[w.type.get(x, (0, None))[1] for w in self.worlds[:2]] for x in (y, *node.input)] if node.op == "Concat" and not node.domain else [[None]]
        if any(d is None or len(d) != len(types[0][0]) for t in types for d in t if types[0][0] is not None) or types[0][0] is None:
            return
        axis = node.attr("axis", 1) % len(types[0][0])
        for k, column in enumerate(zip(*(zip(*t) for t in types[1:]))):
            number = next((size[0] for size in column if known(size)), None)
            for w in self.worlds if k != axis and number is not None else ():
                elem, dims = w.type[y]
                w.type[y] = (elem, dims[:k] + (number,) + dims[k + 1:])

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
            left, said = self.left(was, now, [c.get(k) for c in cuts]) if None not in cuts else None, self.worlds[0].says_number(y, k)
            left = (said,) * WORLDS if left and said is not None else left
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
            return self.smaller(now, was) if not known(was) and known(now) else None
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
        """A named size, and what is a multiple of one, or a little more, is at least 1."""
        named = [self.symbol(name) for name in list(self.symbols.index) if name[0] == "named"]
        return int(any(quotient(size, n) or self.is_more(size, n) for n in named))

    def is_more(self, size, n):
        """Is it as many times n in each world, and as much more, less than what any symbol is?"""
        (times, more), other = (divmod(s, k) for s, k in zip(size[:2], n[:2]))
        return times > 0 and more < LEAST and (times, more) == other

    def least_of(self, node):
        """What the one element is that a Min or ReduceMin makes, in each world: of sizes where it hangs on them which is least; or None."""
        made = [w.data.get(node.out(0)) for w in self.worlds]
        if node.op not in ("Min", "ReduceMin") or node.domain != "" or any(x is None or x.size != 1 or x.dtype.kind != "i" for x in made):
            return None
        read = node.input[:1] if node.op == "ReduceMin" else node.input
        given = [np.concatenate([w.data[x].ravel() for x in read]).tolist() if all(x in w.data for x in read) else [] for w in self.worlds]
        sizes = list(zip(*given))
        if len({*map(len, given)}) != 1 or not sizes or min(map(min, sizes)) < 0:
            return None
        least = sizes[0]
        for size in sizes[1:]:
            least = self.smaller(least, size)
        return least

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
        return self.symbol(("min", one[0] if known(one) else one[:2], other[:2]))

    def bits(self, name):
        packed = PACKED.get(TensorProto.DataType.Name(self.elem[name])) if self.elem.get(name) else None
        if packed:
            return packed
        try:
            return onnx.helper.tensor_dtype_to_np_dtype(self.elem[name]).itemsize * 8 if self.elem[name] != TensorProto.STRING else 0
        except Exception:
            return 0


ONE = (1, 1)


def known(d):
    return d[0] == d[1]


def quotient(a, b):
    """a / b, or None where b does not divide a."""
    if b[0] <= 0 or b[1] <= 0 or a[0] % b[0] or a[1] % b[1]:
        return None
    return a[0] // b[0], a[1] // b[1]


def product(dims):
    p, q = 1, 1
    for d in dims:
        p, q = p * d[0], q * d[1]
    return p, q


__all__ = ["Sizes", "Symbols", "ONE", "known", "quotient", "product", "TypeProto"]
