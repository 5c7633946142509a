"""Types, sizes and contents of a graph's tensors in one world, where every symbol is a number; sizes.py has them side by side."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from . import bodies, calls, contrib, parts, sequences, windows
from .contents import ALGEBRA, END, FILLED, MOVES, SMALL, cut, evaluate
from .equation import terms
from .symbols import GUESS, LEAST
from .windows import CONVS, POOLS, TURNED

ELEMENTS = {f"tensor({name.lower()})": elem for name, elem in TensorProto.DataType.items()}
LARGEST = 2 ** 63 - 1  # that inference and contents can hold
PLENTY = 64  # dims
FAR = 1024  # strides
RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
REFERS = "\0"  # before the domain of a node of which an attribute is one of a function's call: only its outputs' types may be known
SHARED = set("Add BitShift BitwiseAnd BitwiseOr BitwiseXor Concat Div Gemm MatMul Max Mean Min Mod Mul Sub Sum".split())  # inputs and output of one type
# ONNX's own that give what they take, whatever their attributes are.
ALIKE = set("""Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BitwiseNot Ceil Celu Clip Cos Cosh CumProd CumSum Elu Erf Exp Floor Gelu GroupNormalization
    HardSigmoid HardSwish Hardmax InstanceNormalization LRN LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg PRelu
    Reciprocal Relu ReverseSequence RotaryEmbedding Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus
    Softsign Sqrt Swish Tan Tanh TensorScatter ThresholdedRelu Trilu""".split())


def in_full(node):
    """The node with a default that inference has wrong: STFT is one-sided."""
    if (node.domain, node.op) != ("", "STFT") or any(a.name == "onesided" for a in node.proto.attribute):
        return node.proto
    full = onnx.NodeProto()
    full.CopyFrom(node.proto)
    full.attribute.append(helper.make_attribute("onesided", 1))
    return full


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
        self.windowed = set(outer.windowed) if outer else set()  # sizes that a Conv or pool, a Pad, a Slice or a Concat makes of such as nothing tells
        self.sequences = dict(outer.sequences) if outer else {}
        self.elements = {}  # sequence -> the types of its elements, where they are told apart: within a body alone, as in the program
        self.constants = set()  # what Constants make here
        self.full = set(outer.full) if outer else set()  # tensors of which no element is 0, however many there are
        self.open = False  # has the first input of the node at hand a size that is not known?
        self.inner = outer is not None
        self.scope = outer.scope if outer else ()  # in a function: the call that it is inferred for, and those around that
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
                dims.append(self.symbols.number(("named", d.dim_param) if d.dim_param else ("unknown", owner, i, *self.scope), self.world))
        return t.elem_type, tuple(dims)

    def start(self):
        g = self.graph
        for v in g.proto.input:
            self.type[v.name] = self.dims_of(v.type, v.name)
        for name, t in g.sparse.items():
            self.type.setdefault(name, (t.values.data_type, tuple(t.dims)))
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
        if node.op == "Constant" and not node.domain:
            self.constants.update(node.output)
        self.values(node)
        if not all(n in self.type and self.type[n][1] is not None for n in node.output if n):
            self.infer(node)
        self.values_after(node)

    def infer(self, node):
        got = {}
        key = None
        alone = node.op in ("NonZero", "Unique") or node.op == "MaxPool" and node.out(1)  # what these make may have names of their own
        if not node.graphs and "Sequence" not in node.op and not alone and (node.domain, node.op) not in self.graph.local:
            known = self.first and self.first.type.get(node.inp(0), (0, None))[1]
            key = (node.op, node.domain, node.key, len(node.output), known and tuple(d < LEAST for d in known), tuple(self.type.get(n) for n in node.input),
                   tuple(self.data[n].tobytes() if n in self.data else self.listed(n) for n in node.input))
            got = self.cache.get(key)
            if got is not None:
                got = dict(zip(node.output, got))
        if not got:
            got = bodies.infer(self, node) or self.own(node) or self.below_windows(node, self.schema(node))
            if key is not None and not self.doubt and not self.joined:
                self.cache[key] = [got.get(n) for n in node.output]
        self.note_windows(node, got)
        for i, name in enumerate(node.output):
            if not name:
                continue
            elem, dims = got.get(name) or (0, None)
            if name in self.declared:
                elem, dims = self.merge(elem, self.close_sum(node, dims, self.declared[name]), self.declared[name], name)
            self.type[name] = (elem, self.guessed(name, dims and self.named_unknown(name, dims)))

    def named_unknown(self, name, dims):
        """With symbols for sizes that are not known, or taken for that."""
        symbol = lambda k: self.symbols.number(self.symbols.open.get((name, k), ("unknown", name, k, *self.scope)), self.world)
        return tuple(symbol(k) if d is None or (name, k) in self.symbols.open else d for k, d in enumerate(dims))

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
        return size is None or self.symbols.is_untold(self.symbols.name.get((self.world, size), ("named",)), self.world)

    def is_number(self, size):
        """Is it the same whatever the sizes are? Of a guess that cannot be told."""
        return size is not None and size < LEAST and self.world < 2

    def hangs_on_unknown(self, size):
        """Is it such a size, a multiple of one, or what windows, pads, cuts or pieces make of one?"""
        return self.is_unknown(size) or size in self.windowed or self.symbols.hangs(size, self.world)

    def note_windows(self, node, got):
        x, y = self.type.get(node.inp(0), (0, None))[1], (got.get(node.out(0)) or (0, None))[1]
        first = 0 if node.op in ("Concat", "Pad", "Slice") else 2 if "Conv" in node.op or node.op in POOLS else None
        if self.world == 2 or not x or not y or len(x) != len(y) or first is None:
            return
        pieces = [d for d in (self.type.get(n, (0, None))[1] for n in node.input[:None if node.op == "Concat" else 1]) if d and len(d) == len(y)]
        for k, b in enumerate(y[first:], first):
            if b and b >= LEAST and any(d[k] and d[k] != b and self.hangs_on_unknown(d[k]) for d in pieces):
                self.windowed.add(b)

    def strides(self, node):
        """{dim: stride} of the dim that an STFT's frames go along, the same in its input and its result."""
        step = self.data.get(node.inp(1)) if (node.domain, node.op) == ("", "STFT") else None
        return {} if step is None or step.size != 1 else {1: int(step.ravel()[0])}

    def below_windows(self, node, got):
        """Of a guess that is smaller than the window: inference rounds towards zero, so that it is asked of a larger one, by whole strides."""
        x, name = self.type.get(node.inp(0), (0, None)), node.out(0)
        strides = self.strides(node) if self.world == 2 and x[1] and None not in x[1] else {}
        dims = (got.get(name) or (0, None))[1]
        if not strides or dims is None or min((d for k, d in enumerate(dims) if k in strides and d is not None), default=2) > 1:
            return got
        self.type[node.inp(0)] = (x[0], tuple(d + FAR * strides.get(k, 0) for k, d in enumerate(x[1])))
        less = lambda k, d: d - FAR if d and k in strides else d
        got = {y: (elem, dims and tuple(less(k, d) for k, d in enumerate(dims))) for y, (elem, dims) in self.schema(node).items()}
        self.type[node.inp(0)] = x
        return got

    def own(self, node):
        """Rules where the schema has none, or refuses sizes that might broadcast."""
        types = [self.type.get(n, (0, None)) for n in node.input]
        if (node.domain, node.op) in self.graph.local:
            return calls.made(self, node)
        if node.domain == REFERS and node.op in ALIKE and types[0][1] is not None:
            return {node.output[0]: types[0]}
        if node.op.startswith("Reduce") and node.domain == "" and node.attr("keepdims", 1) and node.inp(1) and node.inp(1) not in self.data:
            elem, dims = types[0]
            return {node.output[0]: (elem, None if dims is None else (None,) * len(dims))}
        if node.domain == "com.microsoft":
            return contrib.made(node, types, self.broadcast, self.number_of)
        if node.domain == "" and node.op == "SimplifiedLayerNormalization":  # onnxruntime's, which ONNX does not define
            return {node.output[0]: types[0]}
        if node.domain == "" and node.op in (*CONVS, *POOLS, *TURNED):
            return self.windows(node, types)
        if node.domain == "" and node.op == "Dropout" and node.opset < 10:  # the mask is of the input's type, too
            return {o: types[0] for o in node.output if o}
        if node.domain == "" and node.op == "BatchNormalization" and len(node.output) > 1 and len(types) > 3:  # the statistics are as large as those it is given
            return {o: types[3 if k else 0] for k, o in enumerate(node.output) if o}
        if node.domain == "" and node.op == "Slice":
            return self.slice(node, types)
        if node.domain == "" and node.op in ("DepthToSpace", "Flatten", "SpaceToDepth", "Tile", "Transpose") and types[0][1] is None:
            return {node.output[0]: (types[0][0], self.unranked(node, types))}
        if node.domain == "" and node.op == "STFT" and types[0][1] is None:
            return {node.output[0]: (types[0][0], (None, None, self.bins(node), 2))}
        if node.domain == "" and node.op == "Gemm" and None in (types[0][1], types[1][1]):
            return self.gemm(node, types)
        if node.domain == "" and node.op == "Concat":
            return self.concat(node, types)
        if node.domain == "" and node.op == "Squeeze":
            return self.squeeze(node, types[0])
        if node.domain == "" and node.op in ("Resize", "Upsample"):
            return self.resize(node, types[0][1])
        if node.domain == "" and node.op == "Split":
            return self.split(node, types[0])
        if node.domain == "" and node.op == "Einsum":
            return self.einsum(node, types)
        if node.domain == "" and (node.op.startswith("Sequence") or node.op in ("ConcatFromSequence", "SplitToSequence") or node.inp(0) in self.sequences):
            return self.sequence(node, types)
        if node.domain == "" and node.op == "NonZero":
            return self.nonzero(node, types[0][1])
        if node.domain == "" and node.op == "Unique":
            return self.unique(node, *types[0])
        if node.domain == "" and node.op == "ConstantOfShape" and self.listed(node.inp(0)):
            value = node.attr("value", np.zeros(1, np.float32))
            return {node.output[0]: (helper.np_dtype_to_tensor_dtype(value.dtype), self.listed(node.inp(0)))}
        if node.domain == "" and node.op == "Reshape" and self.listed(node.inp(1)):
            return self.partly(node, types[0])
        if node.domain == "" and node.op == "Expand" and self.listed(node.inp(1)) and node.inp(1) not in self.data and types[0][1] is not None:
            return {node.output[0]: (types[0][0], self.expanded(node, types[0][1]))}
        if node.domain == "" and node.op == "Pad" and self.listed(node.inp(1)) and types[0][1] is not None and not node.inp(3):
            return self.padded(node, types[0])
        if node.domain == "" and node.op == "TopK" and node.inp(1) in self.data:
            return self.top(node, types[0])
        return None

    def unranked(self, node, types):
        """Dims that a node names, of whatever it is given: Flatten makes two, SpaceToDepth four, a Transpose and a Tile as many as they list."""
        if node.op == "Tile":
            times = types[1][1] or (0,)
            return (None,) * times[0] if 0 < times[0] <= PLENTY else None
        if node.op in ("DepthToSpace", "SpaceToDepth"):
            return (None,) * 4
        return (None, None) if node.op == "Flatten" else tuple(None for _ in node.attr("perm", [])) or None

    def bins(self, node):
        """How many frequencies an STFT makes, by the length of its frames or of its window."""
        told, window = self.data.get(node.inp(3)), self.type.get(node.inp(2), (0, None))[1]
        length = int(told.ravel()[0]) if told is not None and told.size == 1 else window[0] if window and not node.inp(3) else None
        return length // 2 + 1 if length is not None and node.attr("onesided", 1) else length

    def gemm(self, node, types):
        """A matrix, also where of one of the two nothing is known."""
        sides = [dims and dims[of] for (_, dims), of in zip(types, (node.attr("transA", 0), 1 - node.attr("transB", 0)))]
        return {node.output[0]: (self.shared(node), tuple(sides))}

    def windows(self, node, types):
        """Their sizes by the definition, where it tells them."""
        got = self.schema(node)
        weight = () if node.op in POOLS else next((dims for _, dims in types[3 if node.op == "QLinearConv" else 1:]), None)
        dims = windows.made(node, node.op, types[0][1], weight, lambda k: self.number_of(node.inp(0), k) is not None)
        if dims is None:
            return got
        elem, name = types[0][0] if node.op in POOLS else 0, node.out(0)
        kinds = [(got.get(y) or (0, None))[0] or (TensorProto.INT64 if k else elem) for k, y in enumerate(node.output)]
        if node.out(1) and name in self.declared:  # the indices have the sizes of what they are of
            kinds[0], dims = self.merge(kinds[0], dims, self.declared[name], name)
        dims = self.named_unknown(name, dims) if node.out(1) else dims
        return {y: (kind, dims) for y, kind in zip(node.output, kinds) if y}

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

    def unique(self, node, elem, dims):
        """Values, their first places and their counts are as many; for each element, or slice, there is its place among them."""
        axis = node.attr("axis")
        if dims is None or (axis is not None and not -len(dims) <= axis < len(dims)):
            return None
        k = 0 if axis is None else axis % len(dims)
        name, made = node.output[0], (None,) if axis is None else (*dims[:k], None, *dims[k + 1:])
        if name in self.declared:
            elem, made = self.merge(elem, made, self.declared[name], name)
        some = self.symbols.number(("unknown", name, k, *self.scope), self.world) if made[k] is None else made[k]
        places = math.prod(dims) if axis is None else dims[k]
        types = [(elem, (*made[:k], some, *made[k + 1:])), *((TensorProto.INT64, (n,)) for n in (some, places, some))]
        return {name: t for name, t in zip(node.output, types) if name}

    def squeeze(self, node, x):
        """Dims that are named go, also where nothing here says that they are 1: inference refuses those. Where none are, any that is open may be 1."""
        axes = node.attr("axes", self.data.get(node.inp(1)))
        if axes is None and not node.inp(1) and self.open:
            return {node.output[0]: (x[0], None)}
        if axes is None or not x[1]:
            return None
        gone = {int(a) % len(x[1]) for a in np.asarray(axes).ravel()}
        return {node.output[0]: (x[0], tuple(d for k, d in enumerate(x[1]) if k not in gone))}

    def resize(self, node, dims):
        """By factors in their own type, as runtimes do: 20 * 1.3 are 26, though the float is a little less than 1.3. To sizes of which some are known."""
        got, factors, sizes = self.schema(node), node.factors(self.data), self.listed(node.inp(3))
        elem, y = got.get(node.output[0], (0, None))
        if y is None or dims is None:
            return got
        axes = [a % len(dims) for a in node.attr("axes", range(len(dims)))]
        if node.inp(3) and node.attr("keep_aspect_ratio_policy", "stretch") != "stretch" and any(self.number_of(node.inp(0), a) is None for a in axes):
            return {node.output[0]: (elem, tuple(None if a in axes else d for a, d in enumerate(dims)))}  # of one that is open nothing is told of the others
        if sizes is not None and node.attr("keep_aspect_ratio_policy", "stretch") == "stretch":
            named = dict(zip(axes, sizes))
            return {node.output[0]: (elem, tuple(named.get(a, d) for a, d in enumerate(dims)))}
        if factors is None or node.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
            return got
        y = list(y)
        for a, f in zip(axes, factors.astype(np.float32).ravel()):
            y[a] = int(np.floor(np.float32(dims[a]) * f)) if dims[a] < LEAST else y[a]
        return {node.output[0]: (elem, tuple(y))}

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
        return {node.output[0]: (self.shared(node), tuple(out))}

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
            return self.cut_somewhere(node, types)
        out = list(dims)
        for a, (start, end, step) in cuts.items():
            out[a] = len(range(dims[a])[cut(dims[a], start, end, step)])
            beyond = any(LEAST <= abs(x) < END for x in (start, end)) and not (dims[a] < LEAST and self.symbols.sure.issuperset(filter(None, node.input[1:])))
            if self.inner and (dims[a] >= LEAST > out[a] or beyond):
                out[a] = None  # see Sizes.forget_cut
        return {node.output[0]: (elem, tuple(out))}

    def cut_somewhere(self, node, types):
        """Of a Slice of which only the axes are known: the other dims stay."""
        elem, dims = types[0]
        axes, starts = self.data.get(node.inp(3)), types[1][1] if len(types) > 1 else None
        if axes is None and not node.inp(3) and starts:
            axes = np.arange(starts[0])
        if dims is None or axes is None:
            return None
        cut_dims = {int(a) % len(dims) for a in axes.ravel()}
        return {node.output[0]: (elem, tuple(None if k in cut_dims else d for k, d in enumerate(dims)))}

    def sequence(self, node, types):
        """The type of a sequence is that of its elements, with None for what they do not agree on; of one that is made of known pieces those of all are kept."""
        own, new, each = self.sequences.get(node.inp(0)), None, self.elements.get(node.inp(0))
        if node.op == "SequenceConstruct":
            new, self.elements[node.out(0)] = types[0], types
            for t in types[1:]:
                new = bodies.common(new, t)
        elif node.op == "SequenceEmpty":
            new = node.attr("dtype", TensorProto.FLOAT), bodies.EMPTY
        elif node.op == "SplitToSequence":
            new = self.piece(node, *types[0])
        elif node.op == "SequenceInsert" and own:
            new = bodies.common_item(own, types[1])
        elif node.op in ("SequenceErase", "Identity") and own:
            new = own
        elif node.op == "SequenceAt" and own:
            at = sequences.place(self.fixed(node.inp(1)), len(each)) if each else None
            return {node.output[0]: each[at] if at is not None else (own[0], None if own[1] is bodies.EMPTY else own[1])}
        elif node.op == "ConcatFromSequence" and own and own[1] not in (None, bodies.EMPTY):
            new_axis = node.attr("new_axis", 0) != 0
            axis = node.attr("axis", 0) % (len(own[1]) + new_axis)
            sizes = [dims[axis] for _, dims in each] if each and not new_axis else [None]
            joined = len(each) if each and new_axis else None if None in sizes else sum(sizes)
            return {node.output[0]: (own[0], own[1][:axis] + (joined,) + own[1][axis + (not new_axis):])}
        if new:
            self.sequences[node.output[0]] = new
        return None

    def number_of(self, name, k):
        """The size of a dim where it is known, or None."""
        size = (self.first or self).type[name][1][k]
        return None if size >= LEAST or (self.world == 2 and not self.first and size == GUESS) else size

    def fixed(self, name):
        """What the tensor holds, where that hangs on no size; or None."""
        sure = name in self.symbols.sure or name in self.graph.stored and name not in self.graph.replaceable or name in self.constants
        return self.data.get(name) if sure else None

    def piece(self, node, elem, dims):
        """What a SplitToSequence makes: pieces of known lengths, or of lengths that differ."""
        if dims is None:
            return elem, None
        cut = sequences.cuts(node, len(dims), lambda k: self.number_of(node.inp(0), k), self.fixed(node.inp(1)))
        if cut is None:
            axis = node.attr("axis", 0) % len(dims)
            return elem, dims[:axis] + ((None,) if node.inp(1) else (1,) if node.attr("keepdims", 1) else ()) + dims[axis + 1:]
        axis, lengths, stays = cut
        each = self.elements[node.out(0)] = [(elem, dims[:axis] + ((n,) if stays else ()) + dims[axis + 1:]) for n in lengths]
        return elem, each[0][1] if len({*lengths}) == 1 else dims[:axis] + (None,) + dims[axis + 1:]

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
        told = {}  # how the schema calls it -> those of all inputs that it calls so
        formals = [schema.inputs[min(k, len(schema.inputs) - 1)] for k in range(len(node.input))]
        for name, formal in zip(node.input, formals):
            if name in self.type:
                told.setdefault(formal.type_str, []).append(self.type[name][0])
        for name, formal in zip(node.input, formals):
            if not name or name not in self.type:
                continue
            elem, dims = self.type[name]
            elem = elem or self.shared(node) or next(filter(None, told[formal.type_str] if formal.is_homogeneous else ()), 0)
            if not elem:
                may = [ELEMENTS[t] for t in sorted(formal.types) if t in ELEMENTS]
                elem = some.setdefault(formal.type_str, next((t for t in may if len(may) == 1 or t not in taken), TensorProto.FLOAT))
            held = dims if dims is None else [d if d <= LARGEST else None for d in dims]
            types[name] = helper.make_tensor_type_proto(elem, held)
            if name in self.data:
                data[name] = numpy_helper.from_array(self.data[name], name)
        untold = {t for t, elems in told.items() if not elems[0]} if not self.shared(node) else {}  # that of the first one counts, as in the program
        open_ = [len(f.types) > 1 and f.type_str in untold for f in (schema.outputs[min(k, len(schema.outputs) - 1)] for k in range(len(node.output)))]
        open_ = dict(zip(node.output, open_))
        out = {}
        for s in dict.fromkeys((schema, onnx.defs.get_schema(node.op, node.domain))):  # older ones do not know negative axes
            try:
                got = onnx.shape_inference.infer_node_outputs(s, in_full(node), types, data, opset_imports=node.graph.opsets,
                                                              ir_version=node.graph.ir_version)
            except Exception:
                continue
            for name, t in got.items():
                if t.HasField("tensor_type") and (name not in out or out[name][1] is None):
                    d = t.tensor_type.shape.dim if t.tensor_type.HasField("shape") else None
                    out[name] = (0 if open_[name] else t.tensor_type.elem_type, None if d is None else tuple(x.dim_value if x.HasField("dim_value") else None for x in d))
            if all(out.get(o, (0, None))[1] is not None for o in node.output if o):
                break
        if any(dims is not None for _, dims in out.values()):
            return out
        return self.alike(node) or out or self.after_failure(node)

    def shared(self, node):
        """The element type of one input that has one, where all have the same."""
        return next((e for e in (self.type.get(n, (0, None))[0] for n in node.input) if e), 0) if node.op in SHARED and node.domain == "" else 0

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
        if node.op == "Gemm":
            return self.gemm(node, types)
        if node.op in ("MatMul", "MatMulInteger", "QLinearMatMul"):
            return self.product(node)
        if len(node.output) == 1 and len(types) > 1:
            elem = types[1][0] if node.op == "Where" else types[0][0] or self.shared(node)
            if node.op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
                elem = TensorProto.BOOL
            if node.op in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum", "Where", "And", "Or", "Xor", "Mod", "PRelu",
                           "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift") or elem == TensorProto.BOOL:
                return {node.output[0]: (elem, self.broadcast([t[1] for t in types]))}
        return {}

    def product(self, node):
        """Of matrices or vectors, whose batches differ here, or what is summed."""
        scaled = node.op == "QLinearMatMul"
        x, y = (self.type.get(node.inp(k), (0, None))[1] for k in ((0, 3) if scaled else (0, 1)))
        elem = TensorProto.INT32 if node.op == "MatMulInteger" else self.type.get(node.inp(7), (0, None))[0] if scaled else self.shared(node)
        if not x or not y:
            return {node.output[0]: (elem, None)}
        rows, columns = x[-2:-1], y[-1:] if len(y) > 1 else ()
        return {node.output[0]: (elem, self.broadcast([x[:-2], y[:-2]], len(rows + columns)) + rows + columns)}

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

    def listed(self, name):
        """The elements of a list of sizes of which some are known, else None."""
        some = self.some.get(name)
        return tuple(some.tolist()) if some is not None and some.ndim == 1 and name not in self.data else self.parts.get(name)

    def partly(self, node, x):
        """A Reshape to sizes of which some are not known; of one the others leave what it is."""
        to = self.listed(node.inp(1))
        if x[1] is None:
            return {node.output[0]: (x[0], tuple(d if d is not None and (d > 0 or d == 0 and node.attr("allowzero", 0)) else None for d in to))}
        dims = [x[1][i] if d == 0 and not node.attr("allowzero", 0) and i < len(x[1]) else None if d == -1 else d for i, d in enumerate(to)]
        size, others = (int(np.prod([d for d in of if d is not None], dtype=object)) for of in (x[1], dims))
        if dims.count(None) == 1 and others > 0 and size % others == 0:
            dims[dims.index(None)] = size // others
        return {node.output[0]: (x[0], tuple(dims))}

    def expanded(self, node, dims):
        """To sizes of which some are not known: there a number stays that is not 1."""
        to = self.listed(node.inp(1))
        rank, out = max(len(dims), len(to)), []
        for k, size in enumerate((1,) * (rank - len(to)) + to, len(dims) - rank):
            was = dims[k] if k >= 0 else 1
            stays = k >= 0 and self.number_of(node.inp(0), k) not in (None, 1)
            out.append(self.broadcast([(was,), (size,)], len(dims) - 1 - k)[0] if size is not None else was if stays else None)
        return tuple(out)

    def padded(self, node, x):
        """By pads of which some are not known."""
        pads, n = self.listed(node.inp(1)), len(x[1])
        if len(pads) != 2 * n:
            return None
        return {node.output[0]: (x[0], tuple(None if None in of else sum(of) for of in zip(x[1], pads, pads[n:])))}

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
        asked = self.data[node.input[-1]] if node.op in ("ConstantOfShape", "Expand", "Tile") and node.domain == "" else ()
        if not self.is_sure(node):
            return
        if np.prod(asked, dtype=object) > SMALL:  # more than may be declared of it
            return self.fill(node)
        for n in node.output:
            dims = self.type.get(n, (0, None))[1] if n else ()
            if n and (dims is None or np.prod(dims, dtype=object) > SMALL):
                return
        try:
            got = [self.data[node.input[0]]] if self.is_narrowed(node) else evaluate(node, [self.data[n] if n else None for n in node.input])
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

    def is_narrowed(self, node):
        """Is it a Cast of sizes to 32 bits? They fit, but the number of a symbol may not, nor that of a product: they stay what they are."""
        return node.op == "Cast" and node.attr("to") == TensorProto.INT32 and self.data[node.input[0]].dtype == np.int64 and node.input[0] not in self.symbols.sure

    def note(self, node):
        for n in node.output:
            if n in self.data:
                x, elem = self.data[n], self.type.get(n, (0, None))[0]
                narrowed = elem == TensorProto.INT32 and x.dtype == np.int64
                self.type[n] = (elem if narrowed else helper.np_dtype_to_tensor_dtype(x.dtype), tuple(x.shape))
