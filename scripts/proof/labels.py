"""What each op works on, by the tables of the problem (base, ext and gemm): its labels, i.e. its own dims, and which of them may move.

    Add x[N,C,H] y[C,1]      labels N C H; y has C, and H as size 1
    Softmax x axis=1         labels N, C (axis), H
    MatMul A[b,M,K] B[K,N]   labels b M K N

None from work_of() means: the op is fixed, logical order at every operand. Not used yet, so fixed too: linear and cubic Resize.
"""
import dataclasses

import numpy as np

from .schemas import COVERED
from .model import slices_runs, stretches
from .symbols import ONE, known, product, quotient

FREE, AXIS, PIECES, REDUCED = "free", "axis", "pieces", "reduced"
LEAD, M, K, N, TRAIL = range(5)  # groups of MatMul and Gemm

POINTWISE = set("""Abs Acos Acosh Add And Asin Asinh Atan Atanh BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike
Ceil Celu Clip Cos Cosh Div Dropout Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu
Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal RegexFullMatch Relu Round Selu Shrink Sigmoid Sign Sin
Sinh Softplus Softsign Sqrt StringConcat Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor""".split())
POINTWISE_MS = {"Gelu", "QLinearAdd", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QLinearWhere", "QuickGelu"}
MOVING = {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}
REDUCE = {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
          "ReduceSumSquare"}
FLAT = {"Softmax", "LogSoftmax", "Hardmax"}  # before opset 13 over all dims from the axis on
# Ops that make a row of each row of input 0: the input that is the matrix (None: no matter of what rank), and those that are of the rows, or for each.
ROWS = {"MatMulInteger": (1, (2,)), "QLinearMatMul": (3, (1, 2, 6, 7))}
ROWS_MS = {"QGemm": (3, (1, 2, 7, 8)), "DynamicQuantizeMatMul": (1, ()), "MatMulIntegerToFloat": (1, (2, 4)), "MatMulNBits": (None, ()), "BiasGelu": (None, ()), "FastGelu": (None, ()),
           "SkipLayerNormalization": (None, ()), "SkipSimplifiedLayerNormalization": (None, ())}
# Products of integers: input B, the zero points of A and B, and other inputs. Where each of these is one number, B can stand left.
SCALED_MATMUL = {"MatMulInteger": (1, (2, 3), ()), "QLinearMatMul": (3, (2, 5), (1, 4, 6, 7)), "MatMulIntegerToFloat": (1, (4, 5), (2, 3, 6))}
CONVS = {"Conv": (1, 2, ()), "QLinearConv": (3, 8, (4, 5))}  # inputs: the weight, the bias, and numbers that may be one for each filter
HEADS = {"Attention": 3, "RotaryEmbedding": 1}  # inputs that may have their heads behind the sequence
POOLS = {"AveragePool", "LpPool", "MaxPool"}
MAXWINDOW = 3  # dims of a pool's window that runtimes have
MAXRANK = 24
MAXLABEL = 32


@dataclasses.dataclass
class Operand:
    tensor: str
    slot: int
    out: bool


@dataclasses.dataclass
class Label:
    role: str = FREE
    group: int = 0
    at: dict = dataclasses.field(default_factory=dict)    # operand -> dim
    unit: dict = dataclasses.field(default_factory=dict)  # operand -> unit that it is there; absent: size 1
    until: dict = dataclasses.field(default_factory=dict)  # operand -> end of its dims (block of a Reshape, index of a Gather)
    tail: int = None  # of a cut axis: the unit of its common inner part


@dataclasses.dataclass
class Work:
    node: object
    operands: list = dataclasses.field(default_factory=list)
    labels: list = dataclasses.field(default_factory=list)
    block: bool = False  # a Reshape that only its groups match
    table: bool = False  # Gather out of constant data
    orders: list = dataclasses.field(default_factory=list)  # that the target's rows have for the op: then no others but the logical one


class Fixed(Exception):
    pass


def behind(operand):
    """Of an op on heads: has the operand a form with the heads behind?"""
    return not operand.out or operand.slot == 0


def covered(node):
    return node.domain in COVERED and (node.domain, node.op) not in node.graph.local


def is_moving(node):
    return node.domain == "" and node.op in MOVING and covered(node)


class Builder:
    def __init__(self, problem, node):
        self.problem, self.model, self.node = problem, problem.model, node
        self.work = Work(node)

    # ---- building

    def dims(self, name):
        d = self.model.sizes.dims.get(name) if name else None
        if d is None or len(d) > MAXRANK:
            raise Fixed
        return d

    def size(self, operand, dim):
        return self.dims(self.work.operands[operand].tensor)[dim]

    def operand(self, slot, out=False):
        name = self.node.out(slot) if out else self.node.inp(slot)
        self.dims(name)
        self.work.operands.append(Operand(name, slot, out))
        return len(self.work.operands) - 1

    def label(self, role=FREE, group=0):
        if len(self.work.labels) == MAXLABEL:
            raise Fixed
        self.work.labels.append(Label(role, group))
        return self.work.labels[-1]

    def put(self, label, operand, dim):
        name = self.work.operands[operand].tensor
        if not 0 <= dim < len(self.dims(name)):
            raise Fixed
        label.at[operand] = dim
        unit = self.problem.unit[name][dim]
        if unit is not None:
            label.unit[operand] = unit

    def like_input(self, outputs=1):
        """A label for each dim of input 0, and of the outputs."""
        x = self.operand(0)
        dims = self.dims(self.node.inp(0))
        for d in range(len(dims)):
            self.put(self.label(), x, d)
        for k in range(outputs):
            if self.node.out(k):
                y = self.operand(k, True)
                self.same_rank(y, len(dims))
        return self.work.labels

    def same_rank(self, operand, rank):
        if len(self.dims(self.work.operands[operand].tensor)) != rank:
            raise Fixed
        for d in range(rank):
            self.put(self.work.labels[d], operand, d)

    def broadcast(self, operand, rank):
        r = len(self.dims(self.work.operands[operand].tensor))
        if r > rank:
            raise Fixed
        for d in range(r):
            self.put(self.work.labels[rank - r + d], operand, d)

    def axis(self, default, where=None):
        """The dim that the op works along: an attribute, or the constant input `where`."""
        if where is None:
            a = self.node.attr("axis", default)
        else:
            x = self.model.ints(self.node.inp(where))
            a = x[0] if x is not None and len(x) == 1 else None
        rank = len(self.dims(self.node.inp(0)))
        if a is None or not -rank <= a < rank:
            raise Fixed
        return a % rank

    def axes(self, where=None):
        """(axes, given): sorted; not given: all, or the op's default. None where they are not constant."""
        if where is None:
            if "axes" not in self.node.attrs:
                return [], False
            x = list(self.node.attr("axes"))
            if not x:
                return None
        else:
            if not self.node.inp(where):
                return [], False
            x = self.model.ints(self.node.inp(where))
            if x is None:
                return None
        if not x:
            return [], False
        rank = len(self.dims(self.node.inp(0)))
        if any(not -rank <= a < rank for a in x) or len({a % rank for a in x}) != len(x):
            return None
        return sorted(a % rank for a in x), True

    def data(self, name):
        return self.model.data(name)

    def made(self, name):
        """Is it made for anyone?"""
        return bool(name) and (bool(self.model.readers.get(name)) or name in self.model.graph.outputs)

    def makes_more(self):
        """Any output but the first?"""
        return any(map(self.made, self.node.output[1:]))

    # ---- one method per class of ops

    def pointwise(self):
        y = self.operand(0, True)
        rank = len(self.dims(self.node.out(0)))
        for d in range(rank):
            self.put(self.label(), y, d)
        for k in range(1, len(self.node.output)):
            if self.node.out(k):
                self.same_rank(self.operand(k, True), rank)
        for k in range(len(self.node.input)):
            if self.node.inp(k) and not (self.node.op == "CastLike" and k == 1):
                self.broadcast(self.operand(k), rank)
        if self.node.op == "Dropout" and self.node.inp(2) and not self.model.is_false(self.node.inp(2)):
            raise Fixed  # it may be training
        for label in self.work.labels:
            if not sizes_agree(self.problem, label):
                label.role = AXIS  # wherever it lies

    def expand(self):
        y, x = self.operand(0, True), self.operand(0)
        to, come = self.dims(self.node.out(0)), self.dims(self.node.inp(0))
        for d in range(len(to)):
            self.put(self.label(), y, d)
        self.broadcast(x, len(to))
        for d, size in enumerate(to):
            k = d + len(come) - len(to)
            if (come[k] if k >= 0 else ONE) != size and self.problem.is_open(size):
                raise Fixed  # the shape could not be written again

    def reduce_over(self, gone, keep, role):
        x, y = self.operand(0), self.operand(0, True)
        k = 0
        for d in range(len(self.dims(self.node.inp(0)))):
            lab = self.label(role if d in gone else FREE)
            self.put(lab, x, d)
            if d in gone and not keep:
                continue
            self.put(lab, y, k)
            k += 1
            if d in gone:
                lab.unit.pop(y, None)
        if k != len(self.dims(self.node.out(0))):
            raise Fixed

    def reduce(self):
        rank = len(self.dims(self.node.inp(0)))
        since = 13 if self.node.op == "ReduceSum" else 18
        found = self.axes(1 if self.node.opset >= since else None)
        keep = bool(self.node.attr("keepdims", 1))
        if found is None:  # any dim may be reduced: each is a block, and the axes are mapped
            if not keep or self.node.opset < since:
                raise Fixed
            for lab in self.like_input():
                lab.role = AXIS
            if ONE in self.dims(self.node.inp(0)):
                raise Fixed
            return
        axes, given = found
        if not given and self.node.attr("noop_with_empty_axes", 0):
            axes, given = [], True
        self.reduce_over(set(axes) if given else set(range(rank)), keep, REDUCED)

    def global_pool(self):
        rank = len(self.dims(self.node.inp(0)))
        if rank < 3 or (self.node.op == "GlobalLpPool" and self.node.attr("p", 2) not in (1, 2)):
            raise Fixed
        self.reduce_over(set(range(2, rank)), True, REDUCED)

    def arg(self):
        self.reduce_over({self.axis(0)}, bool(self.node.attr("keepdims", 1)), AXIS)

    def along(self):
        flat = self.node.op in FLAT and self.node.opset < 13
        if self.node.op == "QLinearSoftmax" and self.node.attr("opset", 1) < 13:
            raise Fixed
        labels = self.like_input(len(self.node.output))
        axis = self.axis(1 if flat else -1, 1 if self.node.op in ("CumSum", "CumProd") else None)
        if not flat:
            labels[axis].role = AXIS
            return
        sized = [d for d in range(axis, len(labels)) if self.size(0, d) != ONE]
        if not sized:
            raise Fixed
        for d in sized:
            labels[d].role, labels[d].group = AXIS, 1 + d - axis

    def elements(self):
        labels, axis = self.like_input(), self.axis(0)
        for k in range(1, len(self.node.input)):
            o = self.operand(k)
            self.same_rank(o, len(labels))
            if any(self.size(o, d) != self.size(0, d) for d in range(len(labels)) if d != axis):
                raise Fixed
        labels[axis].role = AXIS

    def one_hot(self):
        x, y = self.operand(0), self.operand(0, True)
        rank, axis = len(self.dims(self.node.out(0))), self.node.attr("axis", -1)
        if len(self.dims(self.node.inp(0))) != rank - 1 or not -rank <= axis < rank:
            raise Fixed
        for d in range(rank):
            lab = self.label(AXIS if d == axis % rank else FREE)
            self.put(lab, y, d)
            if d != axis % rank:
                self.put(lab, x, d - (d > axis % rank))

    def concat_or_split(self):
        concat = self.node.op != "Split"
        pieces = range(len(self.node.input if concat else self.node.output))
        if self.node.op == "QLinearConcat":  # scale and zero point of the result; then piece, scale, zero point
            if len(pieces) % 3 != 2:
                raise Fixed
            pieces = pieces[2::3]
        whole = self.operand(0, concat)
        dims = self.dims(self.work.operands[whole].tensor)
        axis = self.node.attr("axis", None if concat else 0)
        if axis is None or not -len(dims) <= axis < len(dims):
            raise Fixed
        axis %= len(dims)
        for d in range(len(dims)):
            self.put(self.label(AXIS if d == axis else FREE), whole, d)
        for k in pieces:
            o = self.operand(k, not concat)
            self.same_rank(o, len(dims))
            if any(self.size(o, d) != dims[d] for d in range(len(dims)) if d != axis):
                raise Fixed
        self.equal_pieces(whole, axis)

    def equal_pieces(self, whole, axis):
        """The axis of the whole is (index of the piece, piece) where all pieces are alike."""
        forest, n = self.problem.forest, len(self.work.operands) - 1
        piece = self.size(whole + 1, axis)
        if n < 2 or any(self.size(o, axis) != piece for o in range(whole + 1, whole + 1 + n)) or not known(piece) or piece[0] == 0:
            return
        unit = self.work.labels[axis].unit.get(whole)
        if unit is None or quotient(forest.size[unit], piece) != (n, n):
            return
        parts = [forest.new((n, n))] + ([forest.new(piece)] if piece != ONE else [])
        if not forest.match([unit], parts):
            return
        lab = self.label(PIECES)
        lab.at[whole], lab.unit[whole] = axis, parts[0]
        inner = self.work.labels[axis]
        inner.role = FREE
        inner.unit.pop(whole)
        if piece != ONE:
            inner.unit[whole] = parts[1]

    def slice(self):
        labels = self.like_input()
        if self.node.opset >= 10:
            found, starts = self.axes(3), self.dims(self.node.inp(1))
            count = starts[0][0] if len(starts) == 1 and known(starts[0]) else len(labels)
        else:
            found, count = self.axes(), len(self.node.attr("starts", labels))
        if found is None:
            raise Fixed
        runs = slices_runs(self.node, self.model.ints)
        for d in found[0] if found[1] else range(min(count, len(labels))):
            if not runs or self.size(0, d) != self.size(1, d):
                labels[d].role = AXIS

    def pad(self):
        labels = self.like_input()
        pads = self.node.attr("pads") if self.node.opset < 11 else self.model.ints(self.node.inp(1))
        found = self.axes(3) if self.node.opset >= 18 else ([], False)
        if found is None or pads is None:
            raise Fixed
        axes, given = found
        n = len(axes) if given else len(labels)
        if len(pads) != 2 * n:
            raise Fixed
        own = self.model.ints(self.node.inp(3)) if given else range(n)  # in the node's sequence, as pads are
        for i in range(n):
            if pads[i] or pads[i + n]:
                labels[own[i] % len(labels)].role = AXIS

    def tile(self):
        y, x, times = self.operand(0, True), self.operand(0), self.model.ints(self.node.inp(1))
        if times is None or len(times) != len(self.dims(self.node.inp(0))) or len(times) != len(self.dims(self.node.out(0))):
            raise Fixed
        for d, t in enumerate(times):
            lab = self.label(FREE if t == 1 else AXIS)
            self.put(lab, y, d)
            self.put(lab, x, d)

    def gather(self):
        x, axis = self.operand(0), self.axis(0)
        rank, index = len(self.dims(self.node.inp(0))), self.dims(self.node.inp(1))
        given = self.data(self.node.inp(1))
        if len(index) <= 8 and self.data(self.node.inp(0)) and (len(index) > 1 or (len(index) == 1 and not given)):
            self.gather_table(x, self.operand(0, True), axis, rank, len(index))
            return
        if len(index) > 1 or (len(index) == 1 and not given):  # it lies as it does; an index of several dims is one block
            i, whole = self.operand(1), self.label(AXIS, 1)
            self.put(whole, i, 0)
            whole.until = {i: len(index)} if len(index) > 1 else {}
        y = self.operand(0, True)
        for d in range(rank):
            lab = self.label(AXIS if d == axis else FREE)
            self.put(lab, x, d)
            if d != axis or len(index) > 0:
                self.put(lab, y, d if d <= axis else d + len(index) - 1)
            if d == axis and len(index) > 1:
                lab.until = {y: axis + len(index)}

    def gather_table(self, x, y, axis, rank, ri):
        """The table can be stored in any order: index in any order beside row in any order."""
        i = self.operand(1)
        self.work.table = True
        for d in range(rank):
            lab = self.label(AXIS if d == axis else FREE, 2 if d == axis else 1)
            self.put(lab, x, d)
            if d != axis:
                self.put(lab, y, d if d < axis else d + ri - 1)
        for k in range(ri):
            lab = self.label(FREE, 0)
            self.put(lab, i, k)
            self.put(lab, y, axis + k)

    def resize(self):
        n = self.node
        if n.attr("mode", "nearest") != "nearest" or not stretches(n):
            raise Fixed
        labels = self.like_input()
        scales = n.factors(self.model.sizes.content)
        by_scale = scales is not None and scales.size > 0
        if not by_scale and not (n.inp(3) and self.data(n.inp(3))):
            raise Fixed
        for d, lab in enumerate(labels):
            a, b = self.size(0, d), self.size(1, d)
            if not known(a) and a == b and not by_scale:
                raise Fixed  # its size could not be written
            if not known(a) or a != b:
                lab.role = FREE if a == b else AXIS
        if not by_scale:
            return
        axes = n.attr("axes", list(range(len(labels))))
        if scales.dtype != np.float32 or scales.size != len(axes):
            raise Fixed
        for a, s in zip(axes, scales.ravel()):
            d = a % len(labels)
            if s != 1:
                labels[d].role = AXIS
            elif self.size(0, d) != self.size(1, d):
                raise Fixed

    def quantize(self):
        labels = self.like_input()
        scale = self.dims(self.node.inp(1))
        if self.node.attr("block_size", 0):
            labels[self.axis(1)].role = AXIS
            for k in (1, 2):  # constants, permuted along
                if self.node.inp(k):
                    o = self.operand(k)
                    if not self.problem.constant_like(self.node.inp(k)):
                        raise Fixed
                    self.same_rank(o, len(labels))
            return
        if len(scale) > 1:
            raise Fixed
        if not scale:
            return
        default = 1 if self.node.domain == "" and self.node.opset >= 13 else None
        if self.node.domain == "" and self.node.opset < 13:
            raise Fixed
        labels[self.axis(default)].role = AXIS

    def batch_norm(self):
        n = self.node
        if self.makes_more() or n.attr("training_mode", 0) or not n.attr("spatial", 1):
            raise Fixed
        labels = self.like_input()
        if len(labels) < 2 or sum(self.problem.is_open(d) for d in self.dims(n.inp(0))) > 1:
            raise Fixed
        labels[1].role = AXIS

    def norm(self):
        n = self.node
        if self.makes_more():
            raise Fixed
        labels = self.like_input()
        axis = n.attr("axis", -1)
        if not -len(labels) <= axis < len(labels):
            raise Fixed
        axis %= len(labels)
        for lab in labels[axis:]:
            lab.group = 1
        if all(self.size(0, d) == ONE for d in range(axis, len(labels))):
            raise Fixed  # nothing marks the place of what is normalized
        for k in (1, 2):
            if not n.inp(k):
                continue
            o = self.operand(k)
            r = len(self.dims(n.inp(k)))
            if not self.problem.constant_like(n.inp(k)) or r > len(labels) - axis:
                raise Fixed
            self.broadcast(o, len(labels))

    def scaled_matmul(self):
        """Of integers: where each scale and zero point is one number, and nothing is added to a column, as MatMul, else on rows."""
        n = self.node
        b, zeros, more = SCALED_MATMUL[n.op]
        if any(n.inp(k) and self.model.sizes.dims.get(n.inp(k)) not in ((), (ONE,)) for k in (*zeros, *more)):
            self.rows()
        else:
            self.matmul(b)

    def matmul(self, slot=1):
        a, b, y = self.operand(0), self.operand(slot), self.operand(0, True)
        ra, rb, ry = (len(self.dims(self.work.operands[o].tensor)) for o in (a, b, y))
        if ra < 2 or rb < 2 or ry != max(ra, rb):
            raise Fixed
        da, db = self.node.lies(0, ra), self.node.lies(1, rb)
        for d in range(ry - 2):
            lab = self.label(FREE, LEAD)
            self.put(lab, y, d)
            if d + ra >= ry:
                self.put(lab, a, da[d + ra - ry])
            if d + rb >= ry:
                self.put(lab, b, db[d + rb - ry])
        self.product((a, da[-2]), (a, da[-1]), (b, db[-2]), (b, db[-1]), y, ry, M)

    def fused_matmul(self):
        target, elem = self.problem.target, self.model.sizes.elem.get(self.node.inp(0))
        if not target or not elem or not target.has("FUSED_MATMUL", elem):
            raise Fixed
        self.matmul()

    def product(self, am, ak, bk, bn, y, ry, row):
        m, k, n = self.label(FREE, row), self.label(FREE, K), self.label(FREE, N)
        self.put(m, *am)
        self.put(k, *ak)
        self.put(k, *bk)
        self.put(n, *bn)
        self.put(m, y, ry - 2)
        self.put(n, y, ry - 1)
        return m, n

    def gemm(self):
        a, b, y = self.operand(0), self.operand(1), self.operand(0, True)
        if len(self.dims(self.node.inp(0))) != 2 or len(self.dims(self.node.inp(1))) != 2:
            raise Fixed
        ta, tb = bool(self.node.attr("transA", 0)), bool(self.node.attr("transB", 0))
        m, n = self.product((a, int(ta)), (a, int(not ta)), (b, int(tb)), (b, int(not tb)), y, 2, LEAD)
        if not self.node.inp(2):
            return
        c = self.operand(2)
        r = len(self.dims(self.node.inp(2)))
        if r > 2:
            raise Fixed
        if r:
            self.put(n, c, r - 1)
        if r == 2:
            self.put(m, c, 0)

    def block_reshape(self):
        """Groups of dims with equal products; those that do not match are blocks."""
        if not self.problem.is_reshaping(self.node):
            raise Fixed
        self.work.block = True
        x, y = self.operand(0), self.operand(0, True)
        a, b = self.dims(self.node.inp(0)), self.dims(self.node.out(0))
        i = j = 0
        while True:
            while i < len(a) and a[i] == ONE:
                i += 1
            while j < len(b) and b[j] == ONE:
                j += 1
            if i == len(a) and j == len(b):
                return
            i0, j0 = i, j
            i, j = self.smallest_group(a, b, i, j)
            if product(a[i0:i]) != product(b[j0:j]):
                i, j = len(a), len(b)
            single = i == i0 + 1 and j == j0 + 1 and a[i0] == b[j0]
            lab = self.label(FREE if single else AXIS)
            if i > i0:
                self.put(lab, x, i0)
            if j > j0:
                self.put(lab, y, j0)
            if not single:
                lab.until = {x: i, y: j}

    @staticmethod
    def smallest_group(a, b, i, j):
        """Ends of the shortest runs from i and j on with equal products."""
        p = a[i] if i < len(a) else ONE
        q = b[j] if j < len(b) else ONE
        i, j = min(i + 1, len(a)), min(j + 1, len(b))
        while p != q and (i < len(a) or j < len(b)):
            smaller = q[0] < p[0] if known(p) and known(q) else quotient(p, q) is not None
            if j < len(b) and (smaller or i == len(a)):
                q = product([q, b[j]])
                j += 1
            elif i < len(a):
                p = product([p, a[i]])
                i += 1
            else:
                break
        return i, j

    def pool(self):
        """The dims that the window moves over are blocks; the others are as batch and channel."""
        labels = self.like_input()
        n = len(labels) - 2
        kernel, strides, dilations, pads = (self.node.attr(*a) for a in (("kernel_shape", ()), ("strides", [1] * n), ("dilations", [1] * n), ("pads", [0] * 2 * n)))
        if n < 1 or self.makes_more() or [len(x) for x in (kernel, strides, dilations, pads)] != [n, n, n, 2 * n]:
            raise Fixed
        over = [i for i in range(n) if (kernel[i], strides[i], pads[i], pads[n + i]) != (1, 1, 0, 0)] or [n - 1]
        if len(over) > MAXWINDOW or any(self.size(0, 2 + i) == ONE for i in over):
            raise Fixed
        for i in over:
            labels[2 + i].role, labels[2 + i].group = AXIS, K

    def rows(self):
        """The last dim stays last, but of a FastGelu that adds nothing; numbers for each row, where there are more than one, stay with the rows."""
        n, rank = self.node, len(self.dims(self.node.inp(0)))
        matrix, each = (ROWS_MS if n.domain else ROWS)[n.op]
        if rank < 1 or (matrix and len(self.dims(n.inp(matrix))) != 2) or any(n.inp(k) and self.dims(n.inp(k)) not in ((), (ONE,)) for k in each):
            raise Fixed
        if n.op == "QGemm" and (rank != 2 or n.attr("transA", 0) or not known(self.dims(n.inp(0))[0])):
            raise Fixed  # all rows are one dim
        labels = self.like_input()
        if n.op == "FastGelu" and not n.inp(1):
            return
        labels[-1].role, labels[-1].group = AXIS, 1
        if ONE in (self.size(0, rank - 1), self.size(1, rank - 1)):
            raise Fixed
        if n.op.startswith("Skip"):
            self.skip(labels)

    def skip(self, labels):
        """What is added to the rows, and the sums; the kernel takes rows of a matrix, or of three dims."""
        if self.made(self.node.out(1)) or self.made(self.node.out(2)):
            raise Fixed
        for k, out in ((1, False), (3, True)):
            if out and not self.made(self.node.out(k)):
                continue
            o = self.operand(k, out)
            self.same_rank(o, len(labels))
            for d, lab in enumerate(labels):
                lab.role = AXIS
                if self.size(o, d) != self.size(0, d):
                    raise Fixed

    def whole(self):
        """The other outputs are one number each, of all elements in whatever order."""
        self.like_input()
        for k in range(1, len(self.node.output)):
            if self.node.out(k) and self.dims(self.work.operands[self.operand(k, True)].tensor):
                raise Fixed

    def conv(self):
        """Channels are read and made in any order, which constant weights are stored in, or what a DequantizeLinear makes them of; a depthwise one
        makes them as it reads them, as each does the dims of its batch."""
        n = self.node
        weight, bias, rows = CONVS[n.op]
        rank = len(self.dims(n.inp(0)))
        if not 3 <= rank <= 5 or len(self.dims(n.out(0))) != rank or not self.at_hand(n.inp(weight), rank) or (n.inp(bias) and not self.at_hand(n.inp(bias), 1)):
            raise Fixed
        if not all(self.has_bytes(n.inp(k)) and len(self.dims(n.inp(k))) < 2 for k in rows if n.inp(k)):
            raise Fixed
        groups, read, made = n.attr("group", 1), self.dims(n.inp(0))[1], self.dims(n.out(0))[1]
        depthwise = groups > 1 and known(read) and known(made) and read[0] == made[0] == groups
        if not (groups == 1 or depthwise) or not known(read) or not known(made):
            raise Fixed
        x, y = self.operand(0), self.operand(0, True)
        batch, channels = self.label(FREE, 0), self.label(FREE, 1)
        other = channels if depthwise else self.label(FREE, 2)
        for o in (x, y):
            self.put(batch, o, 0)
        self.put(channels, x, 1)
        self.put(other, y, 1)
        for d in range(2, rank):
            lab = self.label(AXIS, len(self.work.labels))
            for o in (x, y):
                self.put(lab, o, d)

    def has_bytes(self, name):
        return name in self.model.stored and self.model.sizes.bits(name) >= 8

    def at_hand(self, name, rank):
        """Is it constant, of whole bytes, or does a DequantizeLinear make it of such, with scales for all or for each place of one dim? A Transpose
        of what that makes for it alone is stored."""
        if len(self.dims(name)) != rank:
            return False
        made = self.model.made.get(name)
        while made is not None and self.model.turned(made) is not None:
            made = self.model.made[made.inp(0)]
        if name in self.model.stored:
            return self.has_bytes(name)
        if made is None or (made.op, made.domain) != ("DequantizeLinear", "") or made.attr("block_size", 0) or name in self.model.graph.outputs:
            return False
        if any(tuple(self.dims(x)) not in ((), (ONE,)) for x in made.input[1:] if x) and not -rank <= made.attr("axis", 1) < rank:
            return False
        return all(self.has_bytes(x) for x in made.input if x) and all(len(self.dims(x)) < 2 for x in made.input[1:] if x)

    def heads(self):
        """Attention and its kin on [B, heads, S, size] may have the heads behind S, as operands of three dims; the outputs that have no
        other form (a cache, the scores) stay."""
        n = self.node
        for _ in range(4):
            self.label(AXIS, len(self.work.labels))
        operands = [self.operand(k) for k in range(HEADS[n.op])]
        operands += [self.operand(k, True) for k in range(len(n.output)) if k == 0 or n.out(k)]
        for o in operands:
            dims = self.dims(self.work.operands[o].tensor)
            if len(dims) != 4 or (behind(self.work.operands[o]) and not (known(dims[1]) and known(dims[3]))):
                raise Fixed
            for d in range(4):
                self.put(self.work.labels[d], o, d)

    def own_orders(self):
        """Of ONNX's ops that demand an order the target may run some in others, input 0 and output 0 alike."""
        n, target = self.node, self.problem.target
        if not target or n.domain or n.graphs or not covered(n) or any(n.output[1:]) or n.inp(0) in n.input[1:]:
            raise Fixed
        elem, rank = self.model.sizes.elem.get(n.inp(0)), len(self.dims(n.inp(0)))
        self.work.orders = target.orders(n.op, elem, rank) if elem else []
        if not self.work.orders or len(self.dims(n.out(0))) != rank:
            raise Fixed
        x, y = self.operand(0), self.operand(0, True)
        for d in range(rank):
            lab = self.label(AXIS, d)
            self.put(lab, x, d)
            self.put(lab, y, d)

    def shape(self):
        pass


def handler_of(node):
    if not covered(node) or node.graphs:
        return None
    if node.domain == "com.microsoft":
        return Builder.pointwise if node.op in POINTWISE_MS else Builder.quantize if node.op in ("DequantizeLinear", "QuantizeLinear") else \
            Builder.fused_matmul if node.op == "FusedMatMul" else Builder.scaled_matmul if node.op in SCALED_MATMUL else Builder.rows if node.op in ROWS_MS else \
            Builder.along if node.op == "QLinearSoftmax" else Builder.concat_or_split if node.op == "QLinearConcat" else None
    for names, method in TABLE:
        if node.op in names:
            return method
    return None


TABLE = (
    (POINTWISE, Builder.pointwise), (REDUCE, Builder.reduce), (MOVING, Builder.block_reshape), ({"Expand"}, Builder.expand),
    (POOLS, Builder.pool), ({"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}, Builder.global_pool), ({"ArgMax", "ArgMin"}, Builder.arg),
    (FLAT | {"CumSum", "CumProd", "LpNormalization", "TopK"}, Builder.along), ({"Concat", "Split"}, Builder.concat_or_split),
    ({"GatherElements", "Scatter", "ScatterElements"}, Builder.elements), ({"OneHot"}, Builder.one_hot), ({"Slice"}, Builder.slice), ({"Pad"}, Builder.pad), ({"Tile"}, Builder.tile), ({"Gather"}, Builder.gather),
    ({"Resize", "Upsample"}, Builder.resize), ({"QuantizeLinear", "DequantizeLinear"}, Builder.quantize),
    (set(ROWS), Builder.scaled_matmul), ({"DynamicQuantizeLinear"}, Builder.whole), ({"BatchNormalization"}, Builder.batch_norm), (set(HEADS), Builder.heads), (set(CONVS), Builder.conv),
    ({"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"}, Builder.norm),
    ({"MatMul"}, Builder.matmul), ({"Gemm"}, Builder.gemm), ({"Shape", "Size"}, Builder.shape),
)


def work_of(problem, node):
    """The op's labels with its free dims linked, or None: it is fixed."""
    work = described(problem, node, Builder.own_orders) or described(problem, node, handler_of(node))
    if work is None or not (operands_known(problem, work) and all(sizes_agree(problem, lab) for lab in work.labels if lab.role == FREE) and link(problem, work)):
        return None
    return work


def described(problem, node, method):
    builder = Builder(problem, node)
    try:
        if method:
            method(builder)
    except Fixed:
        return None
    return builder.work if method else None


def operands_known(problem, work):
    """No operand of unknown type, and none that is empty, but for variables of pointwise ops, where empty ones are no constants."""
    sizes = problem.model.sizes
    pointwise = handler_of(work.node) is Builder.pointwise
    for o in work.operands:
        if not sizes.elem.get(o.tensor):
            return False
        if (0, 0) in sizes.dims[o.tensor] and (not pointwise or problem.empties or problem.model.data(o.tensor)):
            return False
    return True


def sizes_agree(problem, label):
    """A symbolic size that meets another may turn out to be 1 and broadcast."""
    return len({problem.forest.size[u] for u in label.unit.values()}) < 2


def link(problem, work):
    """Free dims are refined alike in all operands."""
    for lab in work.labels:
        if lab.role == AXIS:
            continue
        units = [lab.unit[o] for o in sorted(lab.unit)]
        for u in units[1:]:
            if problem.forest.size[u] != problem.forest.size[units[0]] or not problem.forest.match([units[0]], [u]):
                return False
    return True
