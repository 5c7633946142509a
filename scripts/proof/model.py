"""An ONNX graph as the checker sees it: nodes in sequence, what is constant, what a body captures.

Prepared as the statement of the problem says: nodes that reach no output are dropped, an Einsum that only permutes dims is a Transpose, a Concat has no
pieces without elements, a Resize to the sizes that are there, or a Cast to the type, an Identity, a GatherND of constant rows of what a Transpose makes a Gather,
ScatterNDs that write every row a Concat, a sequence whose elements are known is these, and whatever constants alone determine is a constant.
"""
import copy
import itertools
import math

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from . import alike, calls, flat, parts, schemas, sequences
from .equation import permutation
from .contents import MOVES, evaluate
from .parts import VIEWS
from .sizes import Sizes
from .symbols import known
from .world import RANDOM, REFERS

SEQUENCES = {"SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SplitToSequence"}  # what they make is no tensor
# Of constants alone these make constants (docs/proof.md); what others make may be a variable.
COMPUTED = set("""Abs Add And Cast CastLike Ceil Clip Concat Constant ConstantOfShape Cos CumSum Div Equal Erf Exp Expand EyeLike Flatten
Floor Gather GatherND Gelu Gemm Greater GreaterOrEqual Identity LayerNormalization Less LessOrEqual Log LogSoftmax MatMul Max Min Mod Mul Neg Not
Or Pad Pow Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Round ScatterND Shape Sigmoid Sign Sin Size
Slice Softmax Split Sqrt Squeeze Sub Sum Tanh Tile Transpose Trilu Unsqueeze Where Xor""".split())
COMPARISONS = {"Clip", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Slice"}
KNOWN = 64  # elements of a known tensor of integers for which its node is dropped
FOLLOWED, HELD = 1024, 4096  # elements, and bytes, up to which the program follows contents through a node that reads a variable


# Of those, these move elements of any type that has whole bytes. The others compute numbers of these types alone.
ANYTYPE = set("""Concat Constant ConstantOfShape Expand Flatten Gather GatherND Identity Pad Reshape ScatterND Shape Size Slice Split Squeeze Tile Transpose
Trilu Unsqueeze Where""".split())
NUMBERS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16,
           TensorProto.INT32, TensorProto.INT64}


def is_computed(n, sizes):
    """The rounding of a Sum of more than two hangs on their order, and of the modes of Pad one is computed."""
    if n.op not in COMPUTED or (n.op == "Sum" and len(n.input) > 2) or (n.op == "Pad" and n.attr("mode", "constant") != "constant"):
        return False
    names = [x for x in n.input + n.output if x]
    return all(sizes.bits(x) >= 8 if n.op in ANYTYPE else sizes.elem.get(x) in NUMBERS for x in names)


class Node:
    ends = None  # of a Leave: what it was

    def __init__(self, proto, graph, made=False):
        """made: here, for the ends of a body."""
        self.proto, self.graph = proto, graph
        self.op = proto.op_type
        self.domain = "" if proto.domain == "ai.onnx" else proto.domain
        self.input, self.output = list(proto.input), list(proto.output)
        self.attrs = {a.name: a for a in proto.attribute}
        self.graphs = flat.graphs_of(proto)
        self.captured = captures(self.graphs)
        self.opset = graph.version.get(self.domain, 0)
        if (self.domain, self.op) not in graph.local and self.domain in schemas.COVERED and not made:
            if not schemas.is_known(self.domain, proto, self.opset):
                self.domain = schemas.UNKNOWN + self.domain
            elif any(a.ref_attr_name for a in proto.attribute):
                self.domain = REFERS + self.domain
        self.key = tuple(sorted(a.SerializeToString(deterministic=True) for a in proto.attribute)) if not self.graphs else None
        self.schema = schema_of(self.op, self.domain, self.opset)  # none of REFERS or UNKNOWN

    def attr(self, name, default=None):
        a = self.attrs.get(name)
        if a is None or a.ref_attr_name:
            return default
        x = helper.get_attribute_value(a)
        return numpy_helper.to_array(x) if isinstance(x, TensorProto) else x.decode("utf-8", "replace") if isinstance(x, bytes) else x

    def constant(self):
        for name, a in self.attrs.items():
            if name == "value":
                return numpy_helper.to_array(a.t)
            if name in ("value_float", "value_floats", "value_int", "value_ints"):
                import numpy as np
                return np.array(helper.get_attribute_value(a), dtype=np.float32 if "float" in name else np.int64)
        raise ValueError("a constant of another kind")

    def lies(self, k, rank):
        """Where a product's operand k has its batch dims and then its rows and columns: FusedMatMul's may be swapped, and the first of
        the two may come before the batch."""
        swapped, ahead = (self.attr(f"trans{what}{'AB'[k]}", 0) for what in ("", "Batch"))
        matrix = [0 if ahead else rank - 2, rank - 1]
        return [d for d in range(rank) if d not in matrix] + (matrix[::-1] if swapped else matrix)

    def factors(self, contents):
        """Of a Resize or Upsample: an attribute of Upsample-7, the second input of Upsample-9 and Resize-10, the third from 11 on."""
        if self.op == "Upsample" and self.opset < 9:
            return np.array(self.attr("scales", []), np.float32)
        return contents.get(self.inp(2 if self.op == "Resize" and self.opset >= 11 else 1))

    def inp(self, i):
        return self.input[i] if i < len(self.input) else ""

    def out(self, i):
        return self.output[i] if i < len(self.output) else ""


def schema_of(op, domain, version):
    """Of a version in which the op was not yet, that of the newest."""
    for which in ((version, domain), (domain,)):
        try:
            return onnx.defs.get_schema(op, *which)
        except Exception:
            continue
    return None


def captures(graphs):
    """Names that bodies read from outside."""
    found = []
    for g in graphs:
        own = {v.name for v in g.input} | {t.name for t in g.initializer} | {t.values.name for t in g.sparse_initializer} | {n for x in g.node for n in x.output}
        read = [n for x in g.node for n in x.input] + [v.name for v in g.output]
        for x in g.node:
            read += captures(flat.graphs_of(x))
        found += [n for n in read if n and n not in own and n not in found]
    return found


class Graph:
    def __init__(self, model, folder):
        self.opsets = list(model.opset_import)
        self.version = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
        self.ir_version, self.folder = model.ir_version, folder
        self.local = {(f.domain, f.name) for f in model.functions}
        self.functions = None  # calls.Functions
        self.name(model.graph)

    def name(self, proto):
        self.take(proto)
        names = flat.Namer(self)
        self.regions, self.opened, self.names = names.regions, names.opened, set()
        self.note_names()

    def take(self, proto):
        self.proto = proto
        self.stored = {t.name: t for t in proto.initializer}
        self.sparse = {t.values.name: t for t in proto.sparse_initializer}
        self.inputs = [v.name for v in proto.input]
        self.outputs = [v.name for v in proto.output]
        # A caller may give such an input another value, from IR version 4 on.
        self.replaceable = {n for n in self.inputs if n in self.stored and self.ir_version >= 4}
        self.nodes = sorted_nodes([Node(n, self) for n in proto.node])

    def note_names(self):
        """Of all tensors that the graph has, also of those that nothing hangs on."""
        self.names |= {x for n in self.nodes for x in n.input + n.captured + n.output} | {*self.stored, *self.sparse, *self.inputs, *self.outputs}

    def fresh(self, name):
        """The name of a tensor that is made here: this one, or where the graph has one so called with a number behind it."""
        return next(x for x in itertools.chain([name], (f"{name}_{k}" for k in itertools.count(2))) if x not in self.names)

    def ports(self, side):
        """Names of what a caller gives or gets. Before IR version 4 every initializer has to be an input, too: no caller gives it."""
        constant = set(self.stored) - self.replaceable if side == "input" else ()
        return [v.name for v in getattr(self.proto, side) if v.name not in constant]

    def body(self, proto):
        """A body of one of the nodes, as a graph of its own."""
        g = copy.copy(self)
        g.take(proto)
        return g

    def function(self, f):
        """A model-local function, as a graph whose inputs have no types."""
        g, value = copy.copy(self), lambda name: onnx.ValueInfoProto(name=name)
        g.opsets, g.version = list(f.opset_import), {"" if o.domain == "ai.onnx" else o.domain: o.version for o in f.opset_import}
        g.name(helper.make_graph(f.node, f.name, [value(n) for n in f.input], [value(n) for n in f.output], value_info=f.value_info))
        return g

    def open(self):
        flat.flatten(self, lambda op, inputs, outputs: Node(helper.make_node(op, inputs, outputs), self, made=True))
        self.note_names()

    def array(self, name):
        return numpy_helper.to_array(self.stored[name], self.folder)

    def live(self):
        """The nodes that an output hangs on."""
        read, nodes = set(self.outputs), []
        for n in reversed(self.nodes):
            if any(o in read for o in n.output if o):
                nodes.append(n)
                read.update(n.input)
                read.update(n.captured)
        return nodes[::-1]

    def drop_dead(self):
        self.nodes = self.live()

    def rename_einsums(self, sizes):
        """An Einsum of one operand that only permutes its dims is a Transpose."""
        for i, n in enumerate(self.nodes):
            perm = permutation(n, sizes) if n.op == "Einsum" and n.domain == "" and len(n.input) == 1 else None
            if perm is not None:
                proto = helper.make_node("Transpose", n.input, n.output)  # its place is that of its output
                proto.attribute.append(helper.make_attribute("perm", perm, attr_type=AttributeProto.INTS))  # of a scalar: []
                self.nodes[i] = Node(proto, self)


    def rename_gathers(self, sizes):
        """A GatherND of indices that constants lead to takes rows, numbered through its first dims: of what a Transpose makes it is a Gather of these."""
        made = {o: n for n in self.nodes for o in n.output if o}
        nodes = []
        for n in self.nodes:
            row = rows(n, self, made, sizes) if n.op == "GatherND" and n.domain == "" else None
            if row is None:
                nodes += self.gather_of_places(n, sizes) if n.op == "GatherND" and n.domain == "" and takes_places(n, made, sizes) else [n]
                continue
            y = n.out(0)
            x, index, taken = self.fresh(y + "_rows"), y + "\0index", y if row.ndim < 2 else self.fresh(y + "_taken")
            sizes.merge_first(n.inp(0), x, sizes.dims[n.inp(1)][-1][0])
            self.hold(index, row.ravel() if row.ndim else row, sizes)
            nodes += [self.reshape(n.inp(0), x, sizes), Node(helper.make_node("Gather", [x, index], [taken]), self, made=True)]
            if taken != y:
                sizes.merge_first(y, taken, row.ndim)
                nodes.append(self.reshape(taken, y, sizes))
        self.nodes = nodes

    def join_scatters(self, sizes):
        """ScatterNDs one behind the other that write every row join what they write: ranges of rows, or each of n every n-th row."""
        made = {o: n for n in self.nodes for o in n.output if o}
        nodes = []
        for n in self.nodes:
            whole = written_whole(n, self, made, sizes) if is_write(n) else None
            nodes += self.joined(n, *whole, sizes) if whole else [n]
        self.nodes = nodes

    def joined(self, n, pieces, apart, rest, sizes):
        nodes, names, y = [], [], n.out(0)
        for k, (update, count) in enumerate(pieces):
            dims = ((count, count), *([(1, 1)] if apart else []), *rest)
            piece = update if sizes.dims[update] == dims else self.fresh(f"{y}_piece{k}")
            if piece != update:
                sizes.shape_as(update, piece, dims)
                nodes.append(self.reshape(update, piece, sizes))
            names.append(piece)
        rows_ = sum(count for _, count in pieces)
        dims = ((pieces[0][1],) * 2, (len(pieces),) * 2, *rest) if apart else ((rows_, rows_), *rest)
        whole = y if sizes.dims[y] == dims else self.fresh(y + "_joined")
        if whole != y:
            sizes.shape_as(y, whole, dims)
        nodes.append(Node(helper.make_node("Concat", names, [whole], axis=int(apart)), self, made=True))
        return nodes + ([self.reshape(whole, y, sizes)] if whole != y else [])

    def gather_of_places(self, n, sizes):
        places = self.fresh(n.out(0) + "_places")
        sizes.drop_last(n.inp(1), places)
        return [self.reshape(n.inp(1), places, sizes), Node(helper.make_node("Gather", [n.inp(0), places], n.output), self, made=True)]

    def hold(self, name, x, sizes):
        sizes.hold(name, x)
        self.stored[name] = numpy_helper.from_array(x, name)

    def reshape(self, x, y, sizes):
        self.hold(y + "\0sizes", np.array([d[0] if known(d) else -1 for d in sizes.dims[y]]), sizes)
        return Node(helper.make_node("Reshape", [x, y + "\0sizes"], [y]), self, made=True)

    def drop_pieces(self, sizes):
        """A Concat joins what has elements: one such piece is it."""
        for i, n in enumerate(self.nodes):
            full = full_pieces(n, sizes) if n.op == "Concat" and n.domain == "" else None
            if full:
                proto = copy.deepcopy(n.proto) if len(full) > 1 else helper.make_node("Identity", [], n.output)
                proto.input[:] = full
                self.nodes[i] = Node(proto, self)

    def rename_copies(self, sizes):
        """A Resize to the sizes that its input has is an Identity, and so is a Cast to its type."""
        for i, n in enumerate(self.nodes):
            if n.domain == "" and (n.op == "Resize" and resizes_nothing(n, sizes) or n.op == "Cast" and casts_nothing(n, sizes)):
                self.nodes[i] = Node(helper.make_node("Identity", n.input[:1], n.output), self)


def full_pieces(node, sizes):
    """The inputs of a Concat that have elements, where some have none; None where that is not known."""
    y, axis = sizes.dims.get(node.out(0)), node.attr("axis")
    if not y or axis is None or not -len(y) <= axis < len(y) or not all(node.input):
        return None
    off = lambda dims: dims[:axis % len(y)] + dims[axis % len(y) + 1:]
    for x in node.input:
        dims = sizes.dims.get(x)
        if dims is None or len(dims) != len(y) or off(dims) != off(y) or not sizes.elem.get(x) or sizes.elem[x] != sizes.elem.get(node.out(0)):
            return None
    full = [x for x in node.input if sizes.dims[x][axis % len(y)] != (0, 0)]
    if len(full) == len(node.input) or (len(full) == 1 and sizes.dims[full[0]] != y):
        return None
    return full


def contents_of(name, graph, made, sizes):
    """What the tensor holds, where constants lead to it, or None."""
    contents, wanted = {}, [name]
    while wanted:
        x = wanted[-1]
        n = made.get(x)
        read = [i for i in n.input if i] if n is not None else []
        if x in sizes.content:
            contents[x] = sizes.content[x]
        elif x in graph.stored and x not in graph.replaceable:
            contents[x] = graph.array(x)
        elif n is None or n.domain or n.graphs or not is_computed(n, sizes):
            return None
        elif all(i in contents for i in read):
            try:
                contents.update(zip(n.output, map(np.asarray, evaluate(n, [contents[i] if i else None for i in n.input]))))
            except Exception:
                return None
        else:
            wanted += [i for i in read if i not in contents]
        if x in contents:
            wanted.pop()
    return contents[name]


def rows(node, graph, made, sizes):
    """The numbers of the rows that a GatherND of indices that constants lead to takes, in an array of the result's first dims; or None."""
    x, indices = node.inp(0), node.inp(1)
    dims = sizes.dims.get(x)
    if node.attr("batch_dims", 0) or x not in made or made[x].op != "Transpose" or indices in graph.replaceable:
        return None
    found = numbered(indices, dims, graph, made, sizes)
    return found[0] if found and found[1] else None


def numbered(indices, dims, graph, made, sizes):
    """The numbers of the rows that constant indices name, and the sizes of a row; or None."""
    at = contents_of(indices, graph, made, sizes)
    if at is None or dims is None or at.size == 0 or at.ndim == 0 or at.dtype.kind != "i":
        return None
    depth = at.shape[-1]
    first, rest = dims[:depth], dims[depth:]
    if len(first) < depth or not all(map(known, first)) or sum(not known(d) for d in rest) > 1 or any(known(d) and d[0] == 0 for d in dims):
        return None
    lens = np.array([d[0] for d in first])
    if ((at < -lens) | (at >= lens)).any():
        return None
    return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(np.where(at < 0, at + lens, at), -1, 0)), tuple(lens.tolist())), np.int64), rest


def is_write(node):
    return node.op == "ScatterND" and node.domain == "" and node.attr("reduction", "none") == "none"


def written_whole(last, graph, made, sizes):
    """By several nodes: [(what is written, rows)] in the sequence of the rows, whether they are interleaved, and the sizes of a row; or None."""
    found, n, left = [], last, None
    while left != 0:
        indices = n.inp(1) if n is not None else ""
        if n is None or not is_write(n) or indices in graph.replaceable or len(found) == 16:
            return None
        row = numbered(indices, sizes.dims.get(n.inp(0)), graph, made, sizes)
        if row is None:
            return None
        row, rest = row
        dims, depth = sizes.dims[n.inp(0)], len(sizes.dims[n.inp(0)]) - len(rest)
        if sizes.elem.get(n.inp(2)) != sizes.elem.get(n.inp(0)) or sizes.dims.get(n.inp(2)) != (*((d, d) for d in row.shape), *rest):
            return None
        size = math.prod(d[0] for d in dims[:depth])
        row = row.ravel()
        if left is None:
            left, step, deep = size, int(row[1] - row[0]) if row.size > 1 else 1, depth
        if step < 1 or depth != deep or (np.diff(row) != step).any():
            return None
        found.append((int(row[0]), n.inp(2), row.size))
        left -= row.size
        if left < 0:
            return None
        n = made.get(n.inp(0))
    found.sort(key=lambda f: f[0])
    if step == 1:
        whole = [f[0] for f in found] == [sum(f[2] for f in found[:k]) for k in range(len(found))]
    else:
        whole = [f[0] for f in found] == list(range(step)) and all(f[2] * step == size for f in found)
    if len(found) < 2 or not whole:
        return None
    return [(u, count) for _, u, count in found], step > 1, tuple(rest)


def takes_places(node, made, sizes):
    """Does a GatherND of what a Transpose makes, in any shape, take places of the first dim alone?"""
    x, at = node.inp(0), sizes.dims.get(node.inp(1))
    if node.attr("batch_dims", 0) or sizes.dims.get(x) is None or at is None or len(at) < 2 or at[-1] != (1, 1):
        return False
    if sum(not known(d) or d[0] == 0 for d in at) > 1:
        return False
    while x in made and made[x].domain == "" and made[x].op in VIEWS:
        x = made[x].inp(0)
    return x in made and made[x].domain == "" and made[x].op == "Transpose"


def stretches(node):
    """Does a Resize take its whole input to the sizes given, and of a dim that keeps its size each element where it is?"""
    maps = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
    return node.attr("coordinate_transformation_mode", maps[0]) in maps and node.attr("keep_aspect_ratio_policy", "stretch") == "stretch"


def resizes_nothing(node, sizes):
    if node.opset < 11 or len(node.input) < 4 or not node.input[3]:
        return False
    x, y = sizes.dims.get(node.input[0]), sizes.dims.get(node.output[0])
    return stretches(node) and x is not None and x == y and all(d[0] == d[1] != 0 for d in x)


def casts_nothing(node, sizes):
    return bool(sizes.elem.get(node.inp(0))) and sizes.elem[node.inp(0)] == node.attr("to")


def slices_runs(node, ints):
    """Does a Slice take every element from a start to an end that are constants?"""
    given = [ints(x) for x in node.input[1:] if x]
    return None not in given and all(step == 1 for step in (ints(node.inp(4)) if node.inp(4) else ()))


def moves(node, dims):
    """Does this Transpose move data? One that only moves dims of size 1 does not."""
    perm = node.attr("perm")
    if perm is None:
        if dims is None:
            return True
        perm = list(range(len(dims)))[::-1]
    sized = [p for p in perm if dims is None or len(dims) != len(perm) or dims[p] != (1, 1)]
    return sized != sorted(sized)


def sorted_nodes(nodes):
    """Each node after what it reads; as early as its place in the file allows."""
    made = {o for n in nodes for o in n.output if o}
    left, ready, out = list(nodes), set(), []
    while left:
        rest = []
        for n in left:
            if all(x not in made or x in ready for x in n.input + n.captured):
                out.append(n)
                ready.update(n.output)
            else:
                rest.append(n)
        if len(rest) == len(left):
            raise ValueError("the graph has a cycle")
        left = rest
    return out


def contents_read(node):
    """The inputs that its result hangs on: of the second one of a CastLike it takes the type."""
    return node.input[:1] if node.op == "CastLike" and node.domain == "" else node.input


def constants(graph, sizes):
    """Names of what constants alone determine, and of integers that sizes alone determine."""
    found = {n for n in graph.stored if n not in graph.replaceable and not (n in graph.inputs and graph.ir_version >= 4)}
    for n in graph.nodes:
        read = contents_read(n)
        if n.op == "Concat" and n.domain == "":  # what adds no element determines nothing
            read = [x for x in read if (0, 0) not in (sizes.dims.get(x) or ())] or read
        computed = (n.op == "Constant" and "sparse_value" not in n.attrs) or (read and all(x in found for x in read if x) and any(read))
        computed = computed and n.op not in ("Enter", "Leave") and n.op not in RANDOM and not n.graphs and n.domain in ("", "com.microsoft") and (n.domain, n.op) not in graph.local
        for k, o in enumerate(n.output):
            if o and (computed or o in sizes.content or is_chosen(n, k, found, sizes)):
                found.add(o)
    return found


class Pieces:
    """What is known of contents where some tensors are taken for variables: of what moves them the other elements are (parts.py)."""

    def __init__(self, sizes, variables):
        self.data, self.some = {n: x for n, x in sizes.content.items() if n not in variables}, {}
        numbers = lambda dims: tuple(d[0] for d in dims) if dims is not None and all(map(known, dims)) else None
        self.type = {n: (elem, numbers(sizes.dims[n])) for n, elem in sizes.elem.items()}

    def lost(self, node, variables):
        """Outputs of a node that reads some which are not known."""
        made = {o for o in node.output if o}
        for o in made:
            self.data.pop(o, None)
        parts.follow(self, node, MOVES)
        lost = {o for o in made if o in variables or o not in self.data}
        for o in lost & variables:
            self.data.pop(o, None)
        return lost


def is_chosen(n, k, constant, sizes):
    """Is output k that of an If whose condition is known, and what the branch gives that it takes a constant?"""
    cond = sizes.content.get(n.inp(0)) if n.op == "Leave" and n.ends is not None and n.ends.op == "If" else None
    return cond is not None and cond.size == 1 and n.inp(1 + k + (0 if cond.ravel()[0] else len(n.output))) in constant


class Model:
    """A graph, prepared: the main one, or a function of a model whose types are given."""

    def __init__(self, graph, symbols, read=True, given=None):
        """read: what no output hangs on goes; else the types of functions are found, by all calls. given: the types of the inputs in each world."""
        self.graph = graph
        if read:
            self.graph.drop_dead()
        main = read and not graph.functions and given is None
        self.sizes = alike.sizes_of(self.graph, symbols) if main else Sizes(self.graph, symbols, given)
        self.types = {} if read or given is not None or not graph.functions else calls.types_of(graph.functions, graph, self.sizes.worlds)  # of the functions' inputs
        self.graph.open()
        self.graph.drop_dead()
        self.graph.nodes = sequences.Elements(self.graph, self.sizes, lambda op, *io, **attr: Node(helper.make_node(op, *io, **attr), self.graph, made=True)).nodes()
        self.graph.drop_dead()
        self.graph.drop_pieces(self.sizes)
        self.graph.join_scatters(self.sizes)
        self.graph.drop_dead()
        self.graph.rename_einsums(self.sizes)
        self.graph.rename_gathers(self.sizes)
        self.graph.rename_copies(self.sizes)
        self.nodes, self.contents = self.graph.nodes, dict(self.sizes.content)
        self.sequences = {n.out(0) for n in self.nodes if n.op in SEQUENCES and n.domain == ""}
        self.computed = constants(self.graph, self.sizes)
        self.block(())

    def drop_known(self):
        """Nodes of which all that they make is known: what they read is not asked for."""
        g = self.graph
        kept = set(g.outputs) | {x for n in g.nodes if n.ends for x in n.input}  # what a body ends in stays what a node makes

        def known(n):
            made = [o for o in n.output if o]
            return n.op not in ("Constant", "Enter", "Leave") and n.input and not n.captured and all(
                (o in self.constant or self.empty(o)) and o in self.sizes.content and o not in kept and self.sizes.content[o].size <= KNOWN
                and self.sizes.content[o].dtype.name in ("int64", "int32", "bool") for o in made)

        g.nodes = [n for n in g.nodes if not known(n)]
        g.drop_dead()

    def turned(self, n):
        """A DequantizeLinear of constants that nothing but this Transpose reads, of constants that lie as the Transpose wants them; or None.

            w[8,4], s[4,4] -> DequantizeLinear axis 0, blocks of 2 -> Transpose -> y      w[4,8], s[4,4] -> DequantizeLinear axis 1 -> y
        """
        dq = next((d for d in self.nodes if n.inp(0) in d.output), None) if n.op == "Transpose" and n.domain == "" else None
        if dq is None or dq.op != "DequantizeLinear" or dq.domain not in ("", "com.microsoft") or n.inp(0) in self.graph.outputs:
            return None
        dims = self.sizes.dims.get(dq.inp(0))
        if not dims or any(x and x not in self.computed for x in dq.input) or sum((m.input + m.captured).count(n.inp(0)) for m in self.nodes) != 1:
            return None
        perm = n.attr("perm", list(range(len(dims)))[::-1])
        blocks = dq.attr("block_size", 0) != 0
        if any(x and len(self.sizes.dims.get(x) or ()) != len(perm) for x in dq.input[:None if blocks else 1]):
            return None
        proto = copy.deepcopy(dq.proto)
        proto.input[:] = [self.lay(x, perm) if x and (k == 0 or blocks) else x for k, x in enumerate(dq.input)]
        proto.output[:] = n.output
        for a in proto.attribute:
            if a.name == "axis":
                a.i = perm.index(a.i % len(perm))
        if "axis" not in dq.attrs:
            proto.attribute.append(helper.make_attribute("axis", perm.index(1 % len(perm))))
        return Node(proto, self.graph)

    def lay(self, name, perm):
        """The constant with its dims in another sequence, as one of its own."""
        new = f"{name}\0{perm}"
        of = self.sizes
        of.dims[new] = tuple(of.dims[name][p] for p in perm)
        of.elem[new], of.count[new] = of.elem[name], of.count[name]
        self.computed.add(new)
        return new

    def block(self, names):
        """These stay tensors that nodes make, although constants alone determine them; and so does what is made of them."""
        # A Transpose of an empty constant is a constant of its own where the file has it so.
        cut = {n for n in names if self.empty(n)}
        turned = {n.out(0): self.turned(n) for n in self.nodes if n.out(0) in names}
        self.graph.nodes = [turned.get(n.out(0)) or n for n in self.nodes if not cut & set(n.output)]
        self.graph.drop_dead()
        self.sizes.content = dict(self.contents)
        blocked = set(names) - cut
        pieces = Pieces(self.sizes, blocked)
        for n in self.graph.nodes:
            if any(x in blocked for x in self.taken(n)) and n.op not in ("Shape", "Size"):
                blocked |= pieces.lost(n, blocked)
        for name in blocked:
            self.sizes.content.pop(name, None)
        self.given = self.computed - blocked
        self.stored = self.given - self.uncomputed()
        self.constant = {n for n in self.given if self.sizes.count.get(n) != 0}  # empty ones are left alone
        self.origin = {o: n for n in self.graph.nodes for o in n.output if o}  # also of what is known
        self.drop_known()
        self.made = {o: n for n in self.graph.nodes for o in n.output if o}
        self.readers = {}
        for n in self.graph.nodes:
            for x in n.input + n.captured:
                if x:
                    self.readers.setdefault(x, []).append(n)

    def taken(self, n):
        """What a node's result hangs on: not what a known condition leaves aside."""
        cond = self.contents.get(n.inp(0)) if n.op == "Where" else None
        return contents_read(n) if cond is None or cond.size == 0 or cond.all() != cond.any() else [n.inp(0), n.inp(1 if cond.all() else 2)]

    def uncomputed(self):
        """What hangs on an op that is not computed, though its inputs are constants."""
        found = set()
        for n in self.nodes:
            if not is_computed(n, self.sizes) or any(x in found for x in contents_read(n)):
                found.update(o for o in n.output if o in self.computed)
        return found

    def unfollowed(self):
        """What is known though its node reads a variable, as of a Where that takes a constant whole, and has too many elements for the program, or
        bytes; and what hangs on that."""
        found = set()
        for n in self.nodes:
            read, made = [x for x in contents_read(n) if x], [o for o in n.output if o in self.computed]
            if n.ends is None and any(x not in self.computed or x not in self.contents for x in read):
                found.update(o for o in made if (count := self.sizes.count.get(o)) is None or count > FOLLOWED or count * self.sizes.bits(o) > 8 * HELD)
            if n.op not in ("Shape", "Size") and any(x in found for x in read):
                found.update(made)
        return found

    def is_constant(self, n):
        """Does it make nothing but constants of constants?"""
        made = [o for o in n.output if o]
        return n.op not in ("Constant", "Enter", "Leave") and not n.captured and bool(made) and all(o in self.stored and o in self.constant for o in made)

    def is_turned(self, n, still):
        if n.op != "Transpose" or n.domain != "":
            return False
        x = n
        while x is not None and x.domain == "" and x.op in ("Transpose", *VIEWS):
            x = self.made.get(x.inp(0))
        return still or x is None or x.op == "Constant" or moves(n, self.sizes.dims.get(n.inp(0)))

    def is_permuted(self, n):
        """A Transpose of a stored constant, in any shape: the program moves elements of every type, also of those that it does not compute with."""
        while n is not None and n.domain == "" and n.op in ("Transpose", *VIEWS):
            x, n = n.inp(0), self.made.get(n.inp(0))
        return n.op == "Constant" if n is not None else x in self.stored

    def unfolded(self, still=False):
        """The nodes without those that are gone where the program stores what constants alone determine: Transposes of stored constants,
        those that move data, or all (still), what is computed of these, and what nothing else reads."""
        gone, nodes, made = set(), [], lambda n: {o for o in n.output if o}
        for n in self.graph.nodes:
            turned = self.is_turned(n, still)
            folds = self.is_constant(n) and (turned or any(x in gone for x in n.input)) or turned and self.is_permuted(n)
            gone |= made(n) if folds else set()
        read = set(self.graph.outputs)
        for n in reversed(self.graph.nodes):
            if not made(n) <= gone and made(n) & read:
                nodes.append(n)
                read.update(n.input + n.captured)
        return nodes[::-1]

    def undecided(self):
        """What hangs on a comparison of open sizes: in the worlds they are large, and a smaller one may have another answer."""
        found, sure = set(), self.sizes.symbols.sure
        for n in self.nodes:
            asks = n.op in COMPARISONS and n.domain == "" and any(x and x not in sure and x not in self.graph.stored for x in n.input)
            if asks or any(x in found for x in n.input):
                found.update(o for o in n.output if o in self.computed)
        return found

    def empty(self, name):
        return (0, 0) in (self.sizes.dims.get(name) or ())

    def data(self, name):
        return name in self.given

    def ints(self, name):
        """The contents of a small constant tensor of integers, or None."""
        x = self.sizes.content.get(name) if name else None
        return None if x is None or x.dtype.kind not in "iu" else [int(i) for i in x.ravel()]

    def is_false(self, name):
        x = self.sizes.content.get(name)
        return x is not None and x.dtype == bool and x.shape == () and not x
