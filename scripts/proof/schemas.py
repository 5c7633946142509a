"""What nodes the definitions of operators allow, by the rows of src/schemas.def (which says what their words are).

A node with an attribute, an input or an output that its definition has not, without an input that it must have, or of a version that no
definition was read of, may mean anything: it is in a domain of its own, of which nothing is known.
"""
import functools
import re
from pathlib import Path

from onnx import AttributeProto

SOURCE = Path(__file__).resolve().parents[2] / "src"
COVERED = {"": (7, 28), "com.microsoft": (1, 1)}
UNKNOWN = "\1"  # before the domain
OP = re.compile(r'^OP\( (\w+), +"([\w.]*)", +"(\w+)"', re.M)
ROW = re.compile(r"^SCHEMA(_OTHER)?\((.*?) \)$", re.M | re.S)
TEXT = re.compile(r'"([^"]*)"')
WORD = re.compile(r"(?:(\d+)\+)?(\w+)([=:])([\w*-]+)(?:<(\d+))?")
KIND = {AttributeProto.FLOAT: "f", AttributeProto.INT: "i", AttributeProto.STRING: "s", AttributeProto.TENSOR: "t", AttributeProto.GRAPH: "g",
        AttributeProto.FLOATS: "F", AttributeProto.INTS: "I", AttributeProto.STRINGS: "S"}


@functools.cache
def ops_by_id():
    """id -> (domain, type), of src/ops.def."""
    return {ident: (domain, kind) for ident, domain, kind in OP.findall((SOURCE / "ops.def").read_text(encoding="utf-8"))}


@functools.cache
def rows():
    """(domain, type) -> (versions, words), of src/schemas.def."""
    found = {}
    for other, body in ROW.findall((SOURCE / "schemas.def").read_text(encoding="utf-8")):
        texts = TEXT.findall(body)
        key = tuple(texts[:2]) if other else ops_by_id()[body.split(",")[0].strip()]
        versions, *words = texts[2:] if other else texts
        assert key not in found, f"twice: {key}"
        found[key] = (versions, "".join(words))
    return found


@functools.cache
def allowed(domain, kind, version):
    """name -> what, of the words that hold for the version."""
    words = [WORD.fullmatch(w).groups() for w in rows()[domain, kind][1].split()] if (domain, kind) in rows() else []
    return {name + sign: what for since, name, sign, what, until in words if int(since or 0) <= version < int(until or version + 1)}


def fits(count, names):
    """count: `least-most`, or one number for both; of any number, with a least, none is left out."""
    least, _, most = count.rpartition("-")
    if most == "*":
        return not least or (len(names) >= int(least) and all(names))
    while names and not names[-1]:
        names = names[:-1]
    return len(names) <= int(most) and all(names[:int(least or most)]) and len(names) >= int(least or most)


def is_known(domain, proto, version):
    """A Constant is what it holds, at any version."""
    row = allowed(domain, proto.op_type, version)
    low, high = COVERED.get(domain, (1, 0))
    if not row or not (low <= version <= high or (domain == "" and proto.op_type == "Constant")):
        return False
    kinds = {a.name + ":": row.get(a.name + ":") if a.ref_attr_name else KIND.get(a.type, "o") for a in proto.attribute}
    known = len(kinds) == len(proto.attribute) and all(kind and row.get(name) == kind for name, kind in kinds.items())
    return known and fits(row["in="], proto.input) and fits("0-" + row["out="], proto.output)
