"""What a target charges for an op's configurations: docs/targets.md.

An op's charge is, as in the certificate, by form, or where something lies behind the marked tokens, or where a marked one lies innermost.
"""
import dataclasses
import math

from onnx import TensorProto

from .labels import AXIS, FREE, K, LEAD, PIECES, POOLS, REDUCED, SCALED_MATMUL
from .parts import VIEWS
from .symbols import ONE, known, quotient

SHORT = 1024   # bytes of a piece that is short
FEW = 16       # elements
ONES = 3       # pieces of one element that are few
VECTOR = 32    # columns that a product computes at a time
NEAR = 4       # times that an element comes
WIDE = 4       # elements that a pool computes at a time
LARGE = 16384  # bytes
SCALED = ("QuantizeLinear", "DequantizeLinear")
JOINS = ("Concat", "QLinearConcat", "Split")
REPEATS = ("Expand", "Tile")  # operands: the result, what is repeated
MOVES = ("Transpose", *VIEWS)
FLAGS = ("transA", "transB", "transBatchA", "transBatchB")


@dataclasses.dataclass
class Charge:
    tensor: str      # tenths are of a conversion of this
    rule: str        # forms, after or last
    tenths: int      # forms: as it stands
    tokens: frozenset = frozenset()  # the marked ones, as their atoms at the pins
    form: object = None              # tenths of a form, as (kind, sequences at all operands, columns of a product with the weight on the left, or 0, and whether they are of one atom)


def of_op(problem, work, tokens, pinned, target):
    """The op's Charge, or None. tokens: (label, atoms at each operand)."""
    node, operands = work.node, work.operands
    if len(tokens) < 2 or node.domain not in ("", "com.microsoft"):
        return None
    where = 0 if node.op in (*JOINS, *REPEATS) else 1 if node.op in (*SCALED, "GatherElements") else -1
    value = operands[where].tensor  # the whole, or the result, or a Gemm's bias
    if node.op in ("MatMul", "Gemm", "FusedMatMul") or (node.op in SCALED_MATMUL and len(operands) == 3):
        return of_product(node, tokens, pinned, target, value, operands[2].tensor, problem.model)
    if not pinned[0]:
        return None
    at = [k for k, p in enumerate(pinned) if p]
    marked = lambda ok: frozenset(tuple(tuple(atoms[k]) for k in at) for lab, atoms in tokens if atoms[0] and ok(lab))
    if node.op in ("Softmax", "LogSoftmax", "Hardmax", "QLinearSoftmax"):
        return charge(value, "after", target["SOFTMAX_OFF_LAST"], marked(lambda lab: lab.role == AXIS))
    if node.op.startswith("Reduce"):
        return charge(value, "after", target["REDUCE_OFF_LAST"], marked(lambda lab: lab.role == REDUCED))
    if node.op == "GatherElements":
        return charge(value, "after", target["ELEMENTS_OFF_LAST"], marked(lambda lab: lab.role == AXIS))
    if node.op in POOLS:
        over = sum(lab.role == AXIS for lab, _ in tokens)
        return charge(value, "after", target["POOL_OFF_LAST"], marked(lambda lab: lab.role == AXIS)) if over > 1 else narrow(problem, work, tokens, at, value, target)
    if node.op in ("Resize", "Upsample"):
        return charge(value, "after", target["RESIZE_OFF_LAST"], marked(lambda lab: lab.role == AXIS))
    again = [all(not atoms[1] for lab, atoms in tokens if lab is x) for x in work.labels] if node.op in REPEATS else []
    tenths = {tuple(tuple(atoms[k]) for k in at): last(problem, work, lab, value, target, again) for lab, atoms in tokens if atoms[0]}
    tenths = {t: n for t, n in tenths.items() if n}
    return Charge(value, "last", min(tenths.values()), frozenset(tenths)) if tenths else None


def narrow(problem, work, tokens, at, value, target):
    """Of a pool over one dim: where one of few elements that it is 1 wide over lies innermost."""
    elements, bits = problem.model.sizes.count.get(value), problem.model.sizes.bits(work.operands[0].tensor)
    if elements is None or elements * bits // 8 < LARGE:
        return None
    v = problem.values[problem.member[work.operands[0].tensor].value]
    size = lambda atoms: problem.forest.size[v.units[atoms[0][0]]]
    few = [(tuple(tuple(atoms[k]) for k in at), size(atoms)[0]) for lab, atoms in tokens if lab.role == FREE and atoms[0] and known(size(atoms)) and size(atoms)[0] < WIDE]
    return charge(value, "last", min((target["POOL_NARROW"] // n for _, n in few), default=0), frozenset(t for t, _ in few))


def charge(value, rule, tenths, tokens):
    return Charge(value, rule, tenths, tokens) if tenths else None


def last(problem, work, lab, value, target, again):
    """Tenths that an op is charged where the label's token lies innermost. again: of each label, whether elements come again along it."""
    place = next(i for i, x in enumerate(work.labels) if x is lab)
    repeats = bool(again) and again[place]
    pieces = lab.role == PIECES and work.node.op != "Split"
    if lab.role != AXIS and not pieces and not repeats:
        return 0
    op, sizes, run, tenths = work.node.op, problem.model.sizes, run_of(problem, work, lab), 0
    bits, elements = sizes.bits(work.operands[0].tensor), sizes.count.get(value)
    if elements is not None and elements * bits // 8 >= LARGE:
        if repeats:
            tenths = repeated(problem, work, place, again, target)
        elif op in SCALED or op in ("CumSum", "CumProd"):
            tenths = target["ALONG_LAST"]
        elif run and run < FEW:
            ones = target["RUN_ONE"] and op in JOINS and len(work.operands) <= 1 + ONES and (lab.role == PIECES or count(problem, work, lab, 0) < len(work.operands))
            tenths = target["RUN_ONE" if ones else "RUN_LAST"] // run
    return max(tenths, target["CONCAT_LAST"]) if op in JOINS and not pieces and run * (bits // 8) < SHORT else tenths


def repeated(problem, work, place, again, target):
    """Of an Expand or Tile of single elements: by how often each comes along the dims side by side with this label's."""
    first, end, times, model = place, place + 1, 1, problem.model
    while first and again[first - 1]:
        first -= 1
    while end < len(again) and again[end]:
        end += 1
    for lab in work.labels[first:end]:
        times *= count(problem, work, lab, 0)
    times = max(times, 1)
    tenths = target["RUN_LAST"] if work.node.op == "Tile" else target["EXPAND_LAST"] // times if times < FEW else 0
    both = math.prod(count(problem, work, lab, 0) for lab, repeats in zip(work.labels, again) if repeats)
    made, x = model.origin.get(work.node.inp(0)), work.node.inp(0)
    viewed = is_move(made)
    while is_move(made):
        x = made.inp(0)
        made = model.origin.get(x)
    before = made is not None and made.domain == "" and made.op in REPEATS and few(model.sizes, made.inp(0), x)
    image = viewed and times <= NEAR and (before or times < both <= NEAR * times)  # of two dims: it becomes a Resize
    if image and model.sizes.elem.get(work.node.inp(0)) == TensorProto.FLOAT and model.graph.version.get("", 0) >= 11:
        return min(tenths, target["REPEAT_LAST"])
    return tenths


def is_move(node):
    return node is not None and node.domain == "" and node.op in MOVES


def few(sizes, x, y):
    """Does y have each element of x a few times? Unknown sizes are guessed."""
    if sizes.guessed.get(x) is None or sizes.guessed.get(y) is None:
        return False
    of = lambda name: math.prod(int(n) for n in sizes.guessed[name])
    return of(y) <= NEAR * of(x)


def run_of(problem, work, lab):
    """How many elements the op copies at a time where the axis's token lies innermost; 0: it does not copy."""
    op = work.node.op
    if op == "Gather" or lab.role == PIECES:
        return 1
    if op == "Tile":
        return count(problem, work, lab, 1)  # operands: the result, what is repeated
    return max(count(problem, work, lab, 0) // max(len(work.operands) - 1, 1), 1) if op in JOINS else 0  # on the average


def count(problem, work, lab, k):
    """The elements of a label's token at an operand: its dim, less what is carried along within; unknown sizes are guessed."""
    sizes, name = problem.model.sizes, work.operands[k].tensor
    guessed = sizes.guessed.get(name)
    if guessed is None:
        return SHORT * 1024
    dim = int(guessed[lab.at[k]])
    if lab.tail is None:
        return dim
    inner = problem.forest.size[lab.tail]
    outer = quotient(sizes.dims[name][lab.at[k]], inner)
    return dim // inner[0] if known(inner) else outer[0] if known(outer) else dim


def is_dequantized(model, tensor):
    """Does a DequantizeLinear make it, or what it is a Transpose or view of?"""
    made = model.origin.get(tensor)
    while is_move(made):
        made = model.origin.get(made.inp(0))
    return made is not None and made.op == "DequantizeLinear"


def of_product(node, tokens, pinned, target, value, result, model):
    if not any(lab.group == K for lab, _ in tokens):
        return None  # a vector lies the same either way
    if not (pinned[0] or pinned[1]):
        return None  # two constants lie as one likes
    a, out = target["GEMM_TRANS_A"], target["GEMM_TRANS_OUT"]
    two = pinned[0] and pinned[1]
    more = 0
    if node.op in SCALED_MATMUL:
        more = target["OF_BYTES"]
    elif is_dequantized(model, node.inp(1 if pinned[0] else 0)):  # the weight, or the right operand of two
        more, value = target["OF_BYTES"], result
    stands = 0
    if is_fused(node):
        stands = target["FUSED_FLAG"] * sum(bool(node.attr(flag, 0)) for flag in FLAGS)
    elif node.op == "Gemm" and pinned[0]:
        stands = a if node.attr("transA", 0) else 0
    elif node.op == "Gemm":
        stands = (0 if node.attr("transB", 0) else a) + out  # the data stands on the right

    def right(seqs, k):
        """The right operand of two, read transposed: tenths of its conversion, as tenths of the result's."""
        if seqs[k][0] == K or node.op != "MatMul":
            return 0
        size = lambda name: math.prod(int(n) for n in model.sizes.guessed[name])
        return target["GEMM_TRANS_B"] * size(node.inp(k)) // max(size(result), 1)

    def plain(kind, seqs, columns, one):
        if kind == "swapped":
            if two:
                return target["SWAPPED_PRODUCT"]
            small = (model.sizes.count.get(result) or 0) * model.sizes.bits(result) // 8 < LARGE
            even = one and columns and columns % VECTOR == 0 and target["LEFT_EVEN"]
            return max(target["LEFT_EVEN" if even else "WEIGHT_LEFT"], target["LEFT_NARROW"] // columns if 0 < columns < FEW and small else 0)
        if kind == "fused":
            return target["FUSED_FLAG"] * flags(seqs)
        if kind != "gemm":
            return 0
        if two:
            first = 0 if seqs[2][0] in seqs[0] else 1
            return (a if seqs[first][0] == K else 0) + right(seqs, 1 - first)
        x = 0 if pinned[0] else 1
        return (a if seqs[x][0] == K else 0) + (0 if seqs[2][0] in seqs[x] else out)

    def of_bytes(tenths, kind):
        other = tenths
        if two:
            other = node.op == "MatMul" and kind and (kind != "swapped" or not is_dequantized(model, node.inp(0)))
        return tenths + more if other else tenths

    return Charge(value, "forms", of_bytes(stands, ""), form=lambda kind, seqs, *columns: of_bytes(plain(kind, seqs, *columns), kind))


def einsum_charge(name, tokens, two, target, sizes):
    """Of an operand or the result: where its groups, outermost first, do not come in sequence; as it stands more if it has dims of size 1."""
    tenths = target["EINSUM_TURNED"]
    groups = [lab.group for lab, _ in tokens]
    stands = tenths if two and groups != sorted(groups) else 0
    large = sizes.count.get(name) is not None and sizes.count[name] * sizes.bits(name) // 8 >= LARGE
    if ONE in sizes.dims[name] and large:
        stands = stands * target.rows.number.get("OTHER", 10) // 10
    return Charge(name, "forms", stands, form=lambda kind, *_: tenths if kind == "turned" else 0) if tenths else None


def is_fused(node):
    return node.domain == "com.microsoft" and node.op == "FusedMatMul"


def flags(seqs):
    """How many FusedMatMul needs for operands that lie so. The one with the rows of the result stands left and is read (rows K), the
    other (K columns); each may have its batch in between."""
    left = 0 if seqs[2][1] in seqs[0] else 1
    count = 0
    for right, lies in enumerate((seqs[left], seqs[1 - left])):
        matrix = [g for g in lies if g != LEAD]
        count += (matrix[right] == K) + (0 < lies.index(LEAD) if LEAD in lies else 0)
    return count
