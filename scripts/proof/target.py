"""A target, from rows as `relayout targets` prints them (docs/targets.md): what it charges, and what it has beyond ONNX.

    CHARGE( generic, SOFTMAX_OFF_LAST, 16 )           a Softmax with something behind its axis: 16 tenths of a conversion of the result
    MOVE( generic, FIXED, 500 )                       ns of a conversion beside its bytes
    FORM( fused, FUSED_MATMUL, "f32 f64 f16" )        FusedMatMul with transA and transB, for these types
    RUN( ort, MaxPool, nhwc, "u8 i8", "domain::Op" )  runs MaxPool with its data and its result in this order, for these types
"""
import copy
import dataclasses
import re
from pathlib import Path

from . import Refused

COMMENT = re.compile(r'("[^"\n]*")|/\*.*?\*/|//[^\n]*', re.S)
ROW = re.compile(r'(\w+)\s*\(((?:[^")]|"[^"\n]*")*)\)')
WORD = re.compile(r'"([^"\n]*)"|([^\s,"]+)')
TABLE = Path(__file__).resolve().parents[2] / "src" / "targets.def"
# Names of element types, by ONNX's numbers.
TYPES = """undef f32 u8 i8 u16 i16 i32 i64 string bool f16 f64 u32 u64 c64 c128 bf16 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz u4 i4 f4e2m1
    f8e8m0 u2 i2""".split()
DIMS = ("abcdef", "ncw", "nchw", "ncdhw")  # what letters an order is written in, those of the logical one


@dataclasses.dataclass
class Rows:
    number: dict = dataclasses.field(default_factory=dict)  # CHARGE and MOVE
    charge: dict = dataclasses.field(default_factory=dict)  # CHARGE alone
    types: dict = dataclasses.field(default_factory=dict)   # FORM -> names of types
    run: list = dataclasses.field(default_factory=list)     # (op, order, names of types)


def read(path, tables):
    """Puts the targets of a file into tables; their names, in sequence."""
    names = []
    text = COMMENT.sub(lambda m: m[1] or " ", Path(path).read_text(encoding="utf-8"))
    for kind, rest in ROW.findall(text):
        name, *word = [quoted or plain for quoted, plain in WORD.findall(rest)]
        if kind == "TARGET":
            names.append(name)
            tables[name] = Rows()
        elif kind == "LIKE":
            tables[name] = copy.deepcopy(tables.get(word[0], Rows()))
        elif kind in ("CHARGE", "MOVE"):
            tables[name].number[word[0]] = int(word[1])
            if kind == "CHARGE":
                tables[name].charge[word[0]] = int(word[1])
        elif kind == "FORM":
            tables[name].types[word[0]] = word[1].split()
        elif kind == "RUN":
            tables[name].run.append((word[0], word[1], word[2].split()))
    return names


class Target:
    """The last target of that name in a file; name None: the last one. A file's targets may be like those of the program."""

    def __init__(self, path=TABLE, name=None):
        tables = {}
        names = read(TABLE, tables)
        if Path(path) != TABLE:
            names = read(path, tables)
        if not names or (name and name not in names):
            raise Refused(f"{path} has no target '{name}'")
        self.name = name or names[-1]
        self.rows = tables[self.name]

    def __getitem__(self, row):
        return self.rows.number.get(row, 0)

    @property
    def charges(self):
        """Does it charge for any form?"""
        return any(self.rows.charge.values())

    @property
    def rate(self):
        return self["FIXED"], self.rows.number.get("RATE", 8192)

    @property
    def takes_swaps(self):
        """Does a MatMul take in a Transpose that swaps the last two groups of an operand?"""
        return self.rows.number.get("INTO_MATMUL", 10) == 0

    def has(self, form, elem):
        """Does it have what FORM names for this element type?"""
        return TYPES[elem] in self.rows.types.get(form, ())

    def orders(self, op, elem, rank):
        """Those that it runs ONNX's op in besides the logical one: the i-th number is the logical dim that comes i-th."""
        return [order_of(order, op) for name, order, types in self.rows.run if name == op and len(order) == rank and TYPES[elem] in types]


def order_of(text, op):
    for dims in DIMS:
        if sorted(text.lower()) == sorted(dims[:len(text)]):
            return tuple(map(dims.index, text.lower()))
    raise Refused(f"the target runs {op} in the order {text}, which this checker does not know")
