"""What a target charges for an op's configurations: docs/targets.md, from rows as `relayout targets` prints them.

    CHARGE( generic, SOFTMAX_OFF_LAST, 16 )   a Softmax with something behind its axis: 16 tenths of a conversion of the result
    MOVE( generic, FIXED, 500 )               ns of a conversion beside its bytes

An op's charge is, as in the certificate, by form, or where something lies behind the marked tokens, or where a marked one lies innermost.
"""
import dataclasses
import re
from pathlib import Path

from . import Refused
from .labels import AXIS, K, REDUCED

ROW = re.compile(r'\s*(\w+)\(\s*([^")]*?)\s*(?:,\s*"[^)]*)?\)')
TABLE = Path(__file__).resolve().parents[2] / "src" / "targets.def"
SHORT = 1024  # bytes of a piece that is short


class Target:
    """The last target of that name in a file; name None: the last one."""

    def __init__(self, path=TABLE, name=None):
        tables, last = {}, None
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", Path(path).read_text(encoding="utf-8"), flags=re.S)
        for kind, rest in ROW.findall(text):
            word = [w.strip() for w in rest.split(",")]
            if kind == "TARGET":
                last = word[0]
                tables[last] = {}
            elif kind == "LIKE":
                tables[last] = dict(tables.get(word[1], {}))
            elif kind in ("CHARGE", "MOVE"):
                tables[last][word[1]] = int(word[2])
        if (name or last) not in tables:
            raise Refused(f"{path} has no target '{name}'")
        self.name, self.row = name or last, tables[name or last]

    def __getitem__(self, form):
        return self.row.get(form, 0)

    @property
    def rate(self):
        return self["FIXED"], self.row.get("RATE", 8192)


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
    if node.domain or len(tokens) < 2:
        return None
    value = operands[0 if node.op in ("Concat", "Split") else -1].tensor  # the whole, or the result, or a Gemm's bias
    if node.op in ("MatMul", "Gemm"):
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
    if node.op == "Gemm" and pinned[0]:
        stands = a if node.attr("transA", 0) else 0
    elif node.op == "Gemm":
        stands = (0 if node.attr("transB", 0) else a) + out  # the data stands on the right

    def form(kind, seqs):
        if kind == "swapped":
            return target["SWAPPED_PRODUCT"] if two else target["WEIGHT_LEFT"]
        if kind != "gemm":
            return 0
        if two:
            first = 0 if seqs[2][0] in seqs[0] else 1
            return a if seqs[first][0] == K else 0
        x = 0 if pinned[0] else 1
        return (a if seqs[x][0] == K else 0) + (0 if seqs[2][0] in seqs[x] else out)

    return Charge(value, "forms", stands, form=form)
