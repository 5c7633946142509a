"""What a target charges for an op's configurations: docs/targets.md.

An op's charge is, as in the certificate, by form, or where something lies behind the marked tokens, or where a marked one lies innermost.
"""
import dataclasses

from .labels import AXIS, K, LEAD, REDUCED

SHORT = 1024  # bytes of a piece that is short
FLAGS = ("transA", "transB", "transBatchA", "transBatchB")


@dataclasses.dataclass
class Charge:
    tensor: str      # tenths are of a conversion of this
    rule: str        # forms, after or last
    tenths: int      # forms: as it stands
    tokens: frozenset = frozenset()  # the marked ones, as their atoms at the pins
    form: object = None              # tenths of a form, as (kind, sequences at all operands)


def of_op(problem, work, tokens, pinned, target):
    """The op's Charge, or None. tokens: (label, atoms at each operand)."""
    node, operands = work.node, work.operands
    if len(tokens) < 2 or (node.domain and not is_fused(node)):
        return None
    value = operands[0 if node.op in ("Concat", "Split") else -1].tensor  # the whole, or the result, or a Gemm's bias
    if node.op in ("MatMul", "Gemm", "FusedMatMul"):
        return of_product(node, tokens, pinned, target, value)
    if not pinned[0]:
        return None
    at = [k for k, p in enumerate(pinned) if p]
    marked = lambda ok: frozenset(tuple(tuple(atoms[k]) for k in at) for lab, atoms in tokens if atoms[0] and ok(lab))
    if node.op in ("Softmax", "LogSoftmax"):
        return charge(value, "after", target["SOFTMAX_OFF_LAST"], marked(lambda lab: lab.role == AXIS))
    if node.op.startswith("Reduce"):
        return charge(value, "after", target["REDUCE_OFF_LAST"], marked(lambda lab: lab.role == REDUCED))
    if node.op in ("Concat", "Split"):
        whole = operands[0].tensor
        short = lambda lab: row_bytes(problem, whole, lab.at[0]) // max(len(operands) - 1, 1) < SHORT
        found = marked(lambda lab: lab.role == AXIS and short(lab))
        return charge(value, "last", target["CONCAT_LAST"], found) if found else None
    return None


def charge(value, rule, tenths, tokens):
    return Charge(value, rule, tenths, tokens) if tenths else None


def row_bytes(problem, name, dim):
    """Of what one index of the outer dims has, in as far as it lies in this dim; unknown sizes are guessed."""
    sizes = problem.model.sizes
    guessed = sizes.guessed.get(name)
    return sizes.bits(name) // 8 * int(guessed[dim]) if guessed is not None else SHORT * 1024


def of_product(node, tokens, pinned, target, value):
    if not any(lab.group == K for lab, _ in tokens):
        return None  # a vector lies the same either way
    a, out = target["GEMM_TRANS_A"], target["GEMM_TRANS_OUT"]
    two = pinned[0] and pinned[1]
    stands = 0
    if is_fused(node):
        stands = target["FUSED_FLAG"] * sum(bool(node.attr(flag, 0)) for flag in FLAGS)
    elif node.op == "Gemm" and pinned[0]:
        stands = a if node.attr("transA", 0) else 0
    elif node.op == "Gemm":
        stands = (0 if node.attr("transB", 0) else a) + out  # the data stands on the right

    def form(kind, seqs):
        if kind == "swapped":
            return target["SWAPPED_PRODUCT"] if two else target["WEIGHT_LEFT"]
        if kind == "fused":
            return target["FUSED_FLAG"] * flags(seqs)
        if kind != "gemm":
            return 0
        if two:
            first = 0 if seqs[2][0] in seqs[0] else 1
            return a if seqs[first][0] == K else 0
        x = 0 if pinned[0] else 1
        return (a if seqs[x][0] == K else 0) + (0 if seqs[2][0] in seqs[x] else out)

    return Charge(value, "forms", stands, form=form)


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
