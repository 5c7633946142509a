"""Reads a certificate and checks its structure: docs/proof.md, section 3.

    value 0 "x" bytes 96 atoms 2 3 4      -> Value(name="x", bytes=96, sizes=(2, 3, 4))
    token 0:0 1:0                         -> ((0,), (0,)): its atoms at each pin, () where it is absent
    form 0 0 1 | 0 1 | 1 0                -> Form(group=(0, 0, 1), seq=((0, 1), (1, 0)))

Every line is checked on its own (indices in range, orders are permutations) as it is read; what needs all lines of an op or the
whole file when it is complete.
"""
import dataclasses
import json
import math
import re

from . import Refused

WORD = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|[^\s"]+')
NUMBER = re.compile(r"0|[1-9][0-9]*")
MOSTTENTHS, MOSTPRICE = 1_000_000, 2 ** 42
MOSTNS, MOSTRATE = 1_000_000, 100_000_000
MOSTDIGITS = 19  # more are beyond 64 bits
MOSTFOLDED = 8  # atoms of a value that is folded
ROLES = ("input", "output", "captured", "reads")


@dataclasses.dataclass
class Value:
    name: str
    bytes: int
    sizes: tuple       # int, or str where unknown
    keep: tuple = None  # the atoms that the bound looks at; None: all
    fold: tuple = None  # for each order of those, by its place in the dictionary, the place of the one that stands in for it
    refold: tuple = None  # the same, when what is paid for certain is out


@dataclasses.dataclass(frozen=True)
class Pin:
    value: int
    tensor: str
    stands: tuple


@dataclasses.dataclass(frozen=True)
class Form:
    group: tuple  # of each token
    seq: tuple    # for each pin its groups, outermost first


@dataclasses.dataclass(frozen=True)
class Charge:
    bytes: int    # tenths are of a conversion that moves so many
    rule: str     # forms, after or last
    tenths: int   # forms: as it stands
    more: tuple   # forms: of each; else tokens


@dataclasses.dataclass
class Op:
    role: str            # node, or input, output, captured, reads
    name: str
    type: str = ""
    fixed: bool = True
    pins: list = dataclasses.field(default_factory=list)
    tokens: list = dataclasses.field(default_factory=list)
    forms: list = dataclasses.field(default_factory=list)
    choice: tuple = None  # (form, tokens group after group)
    charge: Charge = None
    swaps: tuple = ()     # by time: pins where the last two groups of any form may be swapped

    @property
    def may_move(self):
        return not self.fixed and len(self.tokens) > 1


@dataclasses.dataclass
class Span:
    nop: int      # so many ops of its component, in sequence
    least: int    # what they cost at least by themselves
    weigh: dict = dataclasses.field(default_factory=dict)  # value -> {place of an order of the kept atoms in the dictionary: what it weighs}


@dataclasses.dataclass
class Part:
    cost: tuple  # conversions, bytes; or a time, 0
    ops: tuple
    takes: int = 0  # of times: what the assignment takes
    price: int = 0  # and what a conversion costs beside its time
    swaps: bool = False  # and whether its ops swap where they may
    counts: int = 0      # in spans: what a conversion counts beside its bytes
    spans: list = dataclasses.field(default_factory=list)  # all of its ops, or none


@dataclasses.dataclass
class Proof:
    bytes_first: bool = False
    by_time: bool = False
    rate: tuple = None   # ns of a conversion, bytes in a microsecond
    time: object = None  # Proof of times, with the same ops
    values: list = dataclasses.field(default_factory=list)
    ops: list = dataclasses.field(default_factory=list)
    parts: list = dataclasses.field(default_factory=list)
    swapped: dict = dataclasses.field(default_factory=dict)  # of times: op -> (form, tokens, pins): what the assignment swaps
    outside: int = 0
    cost: tuple = None
    bound: tuple = None
    functions: list = dataclasses.field(default_factory=list)  # of the main graph's: Functions, their indices rising

    @property
    def graphs(self):
        return [self] + [f.proof for f in self.functions]


@dataclasses.dataclass(frozen=True)
class Function:
    index: int   # among those of the model
    domain: str
    name: str
    proof: Proof


class Line:
    """The words of a line, taken one by one."""

    def __init__(self, number, text):
        self.number, self.words, self.at = number, WORD.findall(text), 0
        if " ".join(self.words) != text:
            self.fail("words are separated by single spaces")

    def fail(self, why):
        raise Refused(f"line {self.number}: {why}")

    def more(self):
        return self.at < len(self.words)

    def word(self, *wanted):
        if not self.more():
            self.fail(f"ends where {' or '.join(wanted) or 'a word'} should be")
        w = self.words[self.at]
        if wanted and w not in wanted:
            self.fail(f"'{w}' where {' or '.join(wanted)} should be")
        self.at += 1
        return w

    def string(self):
        w = self.word()
        try:
            s = json.loads(w) if w[0] == '"' else None
            if s is not None:
                s.encode("utf-8")  # half of a pair of surrogates is no text
        except ValueError:
            s = None
        if s is None:
            self.fail(f"'{w}' is no string")
        return s

    def word_or_string(self):
        return self.string() if self.more() and self.words[self.at][0] == '"' else self.word()

    def number_below(self, limit, what):
        return self.as_number(self.word(), limit, what)

    def as_number(self, w, limit, what):
        if not NUMBER.fullmatch(w) or len(w) > MOSTDIGITS:
            self.fail(f"'{w[:MOSTDIGITS + 1]}' is no {what}")
        if limit is not None and int(w) >= limit:
            self.fail(f"{what} {w} of {limit}")
        return int(w)

    def numbers(self, limit, what, until=None):
        found = []
        while self.more() and self.words[self.at] != until:
            found.append(self.number_below(limit, what))
        return tuple(found)

    def done(self):
        if self.more():
            self.fail(f"'{self.words[self.at]}' is too much")


class Reader:
    def __init__(self, text):
        self.main = self.proof = self.now = Proof()  # proof: of the graph that lines are about; now: its part
        self.lines = text.split("\n")
        if self.lines[-1] != "":
            raise Refused("the file does not end with a line end")
        self.stage, self.last = 0, None
        self.seen = set()
        self.place = {}  # first number of the last choose, keep, fold or refold

    # Lines in the order of the specification; a kind may only be followed by its own or a later kind. After "time" some come again, after
    # "function" all.
    STAGES = {"rate": 1, "value": 2, "op": 3, "pin": 3, "token": 3, "form": 3, "charge": 3, "swaps": 3, "choose": 4, "keep": 5, "fold": 6, "refold": 7,
              "component": 8, "spans": 8, "span": 8, "weigh": 8, "outside": 9, "claim": 10, "time": 11, "function": 18, "end": 20}
    AGAIN = {"swap": 12, "keep": 13, "fold": 14, "refold": 15, "component": 16, "spans": 16, "span": 16, "weigh": 16, "claim": 17, "function": 18, "end": 20}
    ONCE = ("rate", "outside", "claim", "time", "end")

    def read(self):
        if len(self.lines) < 3 or self.lines[0] != "relayout.proof/1":
            raise Refused("line 1: not a relayout.proof/1")
        if self.lines[1] not in ("objective nodes", "objective bytes"):
            raise Refused("line 2: 'objective nodes' or 'objective bytes'")
        self.proof.bytes_first = self.lines[1] == "objective bytes"
        for i, text in enumerate(self.lines[2:-1], 3):
            line = Line(i, text)
            stages = self.AGAIN if self.now.by_time else self.STAGES
            kind = line.word(*stages)
            stage = stages[kind]
            if stage < self.stage or (kind in self.ONCE and stage == self.stage):
                line.fail(f"'{kind}' is not expected here")
            self.stage = stage
            if self.last in ("spans", "span", "weigh", "component") and kind not in ("span", "weigh"):
                self.close_spans(line)
            getattr(self, kind)(line)
            line.done()
            self.last = kind
        if self.stage != 20:
            raise Refused("the file has no 'end'")
        self.close_graph()
        return self.main

    def close_spans(self, line):
        part = self.now.parts[-1]
        if (self.last == "spans" or part.spans) and sum(s.nop for s in part.spans) != len(part.ops):
            line.fail("the spans before do not have all ops of their component")

    def close_graph(self):
        if self.now.cost is None or "outside" not in self.seen:
            raise Refused("a graph has no 'outside' and 'claim'")
        self.close_op()

    def function(self, line):
        self.close_graph()
        rising = self.main.functions[-1].index if self.main.functions else -1
        index = line.number_below(2 ** 32 - 1, "function")
        if index <= rising:
            line.fail("functions rise")
        self.proof = self.now = Proof(bytes_first=self.main.bytes_first)
        self.main.functions.append(Function(index, line.string(), line.string(), self.proof))
        self.stage, self.seen, self.place = 0, set(), {}

    def rate(self, line):
        self.proof.rate = line.number_below(MOSTNS + 1, "number of ns"), line.number_below(MOSTRATE + 1, "rate")
        if self.proof.rate[1] == 0:
            line.fail("a rate is at least 1")

    def time(self, line):
        """The second part: the same values, which may keep other atoms, and the same ops."""
        self.close_op()
        p = self.proof
        if p.rate is None or p.cost is None:
            line.fail("times come after 'claim', and need a 'rate'")
        values = [dataclasses.replace(v, keep=None, fold=None, refold=None) for v in p.values]
        p.time = self.now = Proof(by_time=True, rate=p.rate, values=values, ops=p.ops)
        self.place = {}

    # ---- values, ops and what belongs to them

    def value(self, line):
        if line.number_below(None, "value") != len(self.proof.values):
            line.fail("values are numbered from 0")
        name = line.string()
        line.word("bytes")
        size = line.number_below(None, "number of bytes")
        line.word("atoms")
        sizes = []
        while line.more():
            sizes.append(line.string() if line.words[line.at][0] == '"' else line.number_below(None, "size"))
        self.proof.values.append(Value(name, size, tuple(sizes)))

    def op(self, line):
        self.close_op()
        if line.number_below(None, "op") != len(self.proof.ops):
            line.fail("ops are numbered from 0")
        role = line.word("node", *ROLES)
        op = Op(role, line.string())
        if role == "node":
            op.type = line.word_or_string()
            op.fixed = line.more()
            if op.fixed:
                line.word("fixed")
        self.proof.ops.append(op)

    def last_op(self, line):
        if not self.proof.ops:
            line.fail("belongs to no op")
        return self.proof.ops[-1]

    def pin(self, line):
        op = self.last_op(line)
        if op.tokens or op.forms:
            line.fail("pins come before tokens and forms")
        value = line.number_below(len(self.proof.values), "value")
        tensor = line.string()
        n = len(self.proof.values[value].sizes)
        order = line.numbers(n, "atom")
        if sorted(order) != list(range(n)):
            line.fail(f"no permutation of the {n} atoms of value {value}")
        op.pins.append(Pin(value, tensor, order))

    def token(self, line):
        op = self.last_op(line)
        if op.fixed or op.forms or op.charge:
            line.fail("tokens belong to ops that may move, before their forms")
        at = [()] * len(op.pins)
        while line.more():
            place, _, atoms = line.word().partition(":")
            k = line.as_number(place, len(op.pins), "pin")
            if at[k]:
                line.fail(f"pin {k} was there before")
            n = len(self.proof.values[op.pins[k].value].sizes)
            at[k] = tuple(line.as_number(w, n, "atom") for w in atoms.split(","))
        op.tokens.append(tuple(at))

    def form(self, line):
        op = self.last_op(line)
        if op.fixed or op.charge:
            line.fail("an op that is fixed has no forms, and they come before its charge")
        group = line.numbers(256, "group", until="|")
        if len(group) != len(op.tokens):
            line.fail(f"groups of {len(group)} tokens, the op has {len(op.tokens)}")
        seq = []
        for k in range(len(op.pins)):
            line.word("|")
            seq.append(line.numbers(256, "group", until="|"))
            if len(set(seq[-1])) != len(seq[-1]):
                line.fail(f"a group stands twice at pin {k}")
            for t, token in enumerate(op.tokens):
                if token[k] and group[t] not in seq[-1]:
                    line.fail(f"pin {k} has token {t}, but not its group {group[t]}")
        op.forms.append(Form(group, tuple(seq)))

    def charge(self, line):
        op = self.last_op(line)
        if op.charge is not None or op.swaps or not op.may_move:
            line.fail("a charge belongs to an op that may move, and stands there once")
        size = line.number_below(None, "number of bytes")
        rule = line.word("forms", "after", "last")
        tenths = line.number_below(MOSTTENTHS + 1, "number of tenths")
        more = line.numbers(MOSTTENTHS + 1, "number of tenths") if rule == "forms" else line.numbers(len(op.tokens), "token")
        if rule == "forms" and len(more) != len(op.forms):
            line.fail(f"charges of {len(more)} forms, the op has {len(op.forms)}")
        if rule != "forms" and list(more) != sorted(set(more)):
            line.fail("tokens are listed once each, in ascending sequence")
        op.charge = Charge(size, rule, tenths, more)

    def swaps(self, line):
        op = self.last_op(line)
        if op.swaps or not op.may_move or (op.charge and op.charge.rule != "forms"):
            line.fail("swaps belong to an op that may move, charged by form or not at all, and stand there once")
        op.swaps = self.pins(line, op)

    def pins(self, line, op):
        found = line.numbers(len(op.pins), "pin")
        if not found or list(found) != sorted(set(found)):
            line.fail("pins are listed once each, in ascending sequence, and there is one")
        return found

    def close_op(self):
        """An op is complete: at each pin its tokens hold each atom once."""
        if not self.proof.ops or self.proof.ops[-1].fixed:
            return
        op, k = self.proof.ops[-1], len(self.proof.ops) - 1
        for i, pin in enumerate(op.pins):
            atoms = sorted(a for token in op.tokens for a in token[i])
            if atoms != sorted(pin.stands):
                raise Refused(f"op {k}: its tokens do not hold the atoms of pin {i} once each")

    # ---- the assignment and the bound

    def choose(self, line):
        self.close_op()
        k = line.number_below(len(self.proof.ops), "op")
        op = self.proof.ops[k]
        self.rises(line, "choose", k)
        op.choice = self.choice(line, k, op)

    def swap(self, line):
        k = line.number_below(len(self.now.ops), "op")
        op = self.now.ops[k]
        self.rises(line, "swap", k)
        form, tokens = self.choice(line, k, op, until="|")
        line.word("|")
        pins = self.pins(line, op)
        if not set(pins) <= set(op.swaps):
            line.fail(f"op {k} cannot swap at all of these pins")
        self.now.swapped[k] = (form, tokens, pins)

    def choice(self, line, k, op, until=None):
        form = line.number_below(len(op.forms), "form")
        tokens = line.numbers(len(op.tokens), "token", until)
        if sorted(tokens) != list(range(len(op.tokens))):
            line.fail(f"no permutation of the {len(op.tokens)} tokens of op {k}")
        groups = [op.forms[form].group[t] for t in tokens]
        if groups != sorted(groups):
            line.fail("the tokens of a group stand together, groups in ascending sequence")
        return form, tokens

    def keep(self, line):
        v = line.number_below(len(self.proof.values), "value")
        value = self.now.values[v]
        value.keep = line.numbers(len(value.sizes), "atom")
        if list(value.keep) != sorted(set(value.keep)):
            line.fail("atoms that are kept are listed once each, in ascending sequence")

        self.rises(line, "keep", v)

    def fold(self, line):
        value, images = self.images(line, "fold")
        value.fold = images

    def refold(self, line):
        value, images = self.images(line, "refold")
        value.refold = images

    def images(self, line, kind):
        v = line.number_below(len(self.proof.values), "value")
        self.rises(line, kind, v)
        value = self.now.values[v]
        n = len(value.sizes if value.keep is None else value.keep)
        orders = math.factorial(n) if n <= MOSTFOLDED else 0
        images = line.numbers(orders, "order")
        if len(images) != orders:
            line.fail(f"images of {len(images)} orders, value {v} has {orders} of them")
        if any(images[x] != x for x in images):
            line.fail("an image is not its own image")
        return value, images

    def rises(self, line, kind, number):
        if number <= self.place.get(kind, -1):
            line.fail(f"lines of '{kind}' rise by their first number")
        self.place[kind] = number

    def component(self, line):
        now = self.now
        if line.number_below(None, "component") != len(now.parts):
            line.fail("components are numbered from 0")
        n = [line.number_below(None, "number") for _ in range(3 if now.by_time else 2)]
        swaps = now.by_time and line.more() and line.words[line.at] == "swaps"
        if swaps:
            line.word("swaps")
        ops = line.numbers(len(now.ops), "op")
        if not ops:
            line.fail("a component has an op")
        if now.by_time and n[2] > MOSTPRICE:
            line.fail(f"a price of {n[2]}")
        now.parts.append(Part((n[1], 0), ops, n[0], n[2], swaps) if now.by_time else Part(tuple(n), ops))

    def spans(self, line):
        if self.last != "component" or self.proof.bytes_first:
            line.fail("'spans' is not expected here")
        self.now.parts[-1].counts = line.number_below(None, "number")

    def span(self, line):
        part = self.now.parts[-1] if self.now.parts else None
        if self.last not in ("spans", "span", "weigh"):
            line.fail("'span' is not expected here")
        nop, least = (line.number_below(None, "number") for _ in range(2))
        if not 0 < nop <= len(part.ops) - sum(s.nop for s in part.spans):
            line.fail(f"a span of {nop} ops")
        part.spans.append(Span(nop, least))

    def weigh(self, line):
        if self.last not in ("span", "weigh"):
            line.fail("'weigh' is not expected here")
        v = line.number_below(len(self.now.values), "value")
        value, known = self.now.values[v], self.now.parts[-1].spans[-1].weigh
        if known and v <= max(known):
            line.fail("values do not rise")
        n = len(value.sizes if value.keep is None else value.keep)
        known[v], before = {}, -1
        while not known[v] or line.more():
            place = line.number_below(math.factorial(n) if n <= MOSTFOLDED else 0, "order")
            if place <= before:
                line.fail("orders do not rise")
            known[v][place], before = line.number_below(None, "number"), place

    def outside(self, line):
        self.seen.add("outside")
        self.proof.outside = line.number_below(None, "number")

    def claim(self, line):
        if self.now.by_time:
            self.now.cost, self.now.bound = ((line.number_below(None, "number"), 0) for _ in range(2))
            return
        n = [line.number_below(None, "number") for _ in range(4)]
        self.proof.cost, self.proof.bound = tuple(n[:2]), tuple(n[2:])

    def end(self, line):
        pass


def read(path):
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("the file is no UTF-8 text") from None
    if "\r" in text:
        raise Refused("the file has carriage returns")
    return Reader(text).read()
