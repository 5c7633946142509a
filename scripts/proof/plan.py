"""The certificate of a plan of layouts (`relayout profile --proof`; docs/proof.md, section 6): reads it, checks that the choice costs what it says
and that no choice costs less, and compares it with the plan in a model's metadata.

    op 12 Conv            -> Op(step="12", type="Conv", pins=[Pin(117, False), Pin(118, True)], configs=[(350, (0, 1), False), ...], chosen=0)
    move 117 0 1 80       -> moves[117, 0, 1] = 80
    drop 4 1 0            -> op 4 needs configuration 1 in no best choice, as 0 does as well
"""
import dataclasses
import re

import numpy as np

from . import Refused

HEAD = "relayout.plan-proof/1"
KEY = "relayout.plan"
STATES = 1 << 16
CHEAPEST, BLOCK = 400, 256  # states that others are compared with; that are compared at a time


@dataclasses.dataclass(frozen=True)
class Pin:
    value: int
    out: bool


@dataclasses.dataclass
class Op:
    step: str
    type: str
    pins: list = dataclasses.field(default_factory=list)
    configs: list = dataclasses.field(default_factory=list)  # (ns, layouts of the pins by number, plain: the kernel that runs without a plan)
    chosen: int = 0


@dataclasses.dataclass
class Plan:
    machine: str = ""
    graph: str = ""
    fixed: int = 0
    layouts: list = dataclasses.field(default_factory=list)
    ops: list = dataclasses.field(default_factory=list)
    moves: dict = dataclasses.field(default_factory=dict)
    drops: list = dataclasses.field(default_factory=list)
    claim: int = 0

    def move(self, value, made, read):
        if made == read:
            return 0
        if (value, made, read) not in self.moves:
            raise Refused(f"moving value {value} from layout {made} to {read} has no cost")
        return self.moves[value, made, read]


# ---- the file ----

N = "(0|[1-9][0-9]*)"  # as it is printed
LINES = {"machine": "(.+)", "graph": "([0-9]+ [0-9a-f]{16})", "fixed": "(-?[0-9]+)", "layouts": "(.+)", "op": "(-|0|[1-9][0-9]*) (.+)", "outside": "(0|[1-9][0-9]*) (.+)", "pin": f"(in|out) {N}",
         "cfg": f"{N}((?: [0-9]+)*)( plain)?", "chosen": N, "move": f"{N} {N} {N} {N}", "drop": f"{N} {N} {N}", "claim": "(-?[0-9]+)"}
FOLLOWS = {"": "machine", "machine": "graph", "graph": "fixed", "fixed": "layouts", "layouts": "op outside move claim", "op": "pin cfg", "outside": "pin cfg", "pin": "pin cfg", "cfg": "cfg chosen",
           "chosen": "op outside move drop claim", "move": "move drop claim", "drop": "drop claim", "claim": "end", "end": ""}


def is_one(path):
    with open(path, "rb") as f:
        return f.read(len(HEAD) + 1) == HEAD.encode() + b"\n"


def read(path):
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    if lines[0] != HEAD or lines[-2:] != ["end", ""]:
        raise Refused("the file does not begin or end as the certificate of a plan")
    p, last = Plan(), ""
    for number, line in enumerate(lines[1:-1], 2):
        word = line.split(" ", 1)[0]
        match = re.fullmatch(f"{word} {LINES[word]}" if word in LINES else "end", line)
        if not match or word not in FOLLOWS[last].split():
            raise Refused(f"line {number}: not a line that belongs there")
        last = word
        take(p, word, match.groups(), number)
    return p


def take(p, word, g, number):
    if word in ("machine", "graph"):
        setattr(p, word, g[0])
    elif word in ("fixed", "claim"):
        setattr(p, word, int(g[0]))
    elif word == "layouts":
        p.layouts = g[0].split(" ")
        if len(set(p.layouts)) != len(p.layouts):
            raise Refused(f"line {number}: a layout twice")
    elif word in ("op", "outside"):  # of what is outside the plan does not speak
        p.ops.append(Op(g[0] if word == "op" else "-", g[1]))
    elif word == "pin":
        p.ops[-1].pins.append(Pin(int(g[1]), g[0] == "out"))
    elif word == "cfg":
        lays = tuple(map(int, g[1].split()))
        if len(lays) != len(p.ops[-1].pins) or any(x >= len(p.layouts) for x in lays):
            raise Refused(f"line {number}: not a layout for each pin")
        p.ops[-1].configs.append((int(g[0]), lays, bool(g[2])))
    elif word == "chosen":
        p.ops[-1].chosen = int(g[0])
        if p.ops[-1].chosen >= len(p.ops[-1].configs):
            raise Refused(f"line {number}: no such configuration")
    elif word == "move":
        v, a, b, ns = map(int, g)
        if (v, a, b) in p.moves or a == b:
            raise Refused(f"line {number}: a move twice, or to where it is")
        p.moves[v, a, b] = ns
    elif word == "drop":
        p.drops.append(tuple(map(int, g)))


# ---- what is claimed ----

class Checker:
    def __init__(self, p):
        if sum(c[0] for o in p.ops for c in o.configs) + sum(p.moves.values()) + abs(p.fixed) + abs(p.claim) >= 2 ** 62:
            raise Refused("costs are too large to be added exactly")
        self.p = p
        self.kept = [set(range(len(o.configs))) for o in p.ops]
        self.maker, self.readers = {}, {}
        for i, o in enumerate(p.ops):
            for k, pin in enumerate(o.pins):
                if k and o.pins[k - 1].out and not pin.out:
                    raise Refused(f"op {i}: an input after an output")
                if pin.out == (pin.value in self.maker):
                    raise Refused(f"op {i}: it makes a value that is there, or reads one that is not")
                if pin.out:
                    self.maker[pin.value] = i, k
                    self.readers[pin.value] = []
                else:
                    self.readers[pin.value].append((i, k))
        for v, ends in self.readers.items():
            for a in self.layouts(self.maker[v]):
                for end in ends:
                    for b in self.layouts(end):
                        p.move(v, a, b)

    def layouts(self, end):
        """Of this pin in what is kept."""
        op, pin = end
        return {self.p.ops[op].configs[c][1][pin] for c in self.kept[op]}

    def cost(self):
        """Of the choice."""
        total, now = self.p.fixed, {}
        for o in self.p.ops:
            ns, lays, _ = o.configs[o.chosen]
            total += ns
            for pin, lay in zip(o.pins, lays):
                if pin.out:
                    now[pin.value] = lay, {lay}
                elif lay not in now[pin.value][1]:
                    total += self.p.move(pin.value, now[pin.value][0], lay)
                    now[pin.value][1].add(lay)
        return total

    def more_to_read(self, value, was, now):
        """At its worst: moving the value to `now`, unless another reader has that done in any case; less the move to `was` where nobody else can want it."""
        others = [self.layouts(end) for end in self.readers[value]]
        there, alone = {now} in others, sum(was in lays for lays in others) == 1
        return max((0 if there else self.p.move(value, a, now)) - (self.p.move(value, a, was) if alone else 0) for a in self.layouts(self.maker[value]))

    def more_to_make(self, value, was, now):
        """At its worst: the moves from `now` and not from `was`, to any of the layouts that may be read, at least one of them."""
        reads = set().union(*[self.layouts(end) for end in self.readers[value]])
        more = [self.p.move(value, now, d) - self.p.move(value, was, d) for d in reads] or [0]
        return sum(x for x in more if x > 0) if len(self.readers[value]) > 1 and max(more) > 0 else max(more)

    def drop(self, op, was, now):
        if op >= len(self.kept) or was == now or not {was, now} <= self.kept[op]:
            raise Refused(f"op {op}: a configuration goes that is not there, or for one that is not")
        o = self.p.ops[op]
        more = o.configs[now][0] - o.configs[was][0]
        for pin, a, b in zip(o.pins, o.configs[was][1], o.configs[now][1]):
            if a != b:
                more += (self.more_to_make if pin.out else self.more_to_read)(pin.value, a, b)
        if more > 0:
            raise Refused(f"op {op}: a configuration goes that a choice may need")
        self.kept[op].discard(was)

    def cheaper(self):
        """Is there a choice below the claim? A state is the least cost of a partial choice, and for each value and layout that is read later
        what it costs yet to have it there; states that another stands for go (`needed`)."""
        p, last, ahead = self.p, {}, [0]
        for i, o in enumerate(p.ops):
            last |= {(pin.value, lay): i for k, pin in enumerate(o.pins) if not pin.out for lay in self.layouts((i, k))}
        for i in reversed(range(len(p.ops))):
            ahead.insert(0, ahead[0] + min(p.ops[i].configs[c][0] for c in self.kept[i]))
        cost, left, slots = np.array([p.fixed]), np.zeros((1, 0), np.int64), []
        for i, o in enumerate(p.ops):
            stay = [k for k, s in enumerate(slots) if last[s] > i]
            outs = [(k, pin.value) for k, pin in enumerate(o.pins) if pin.out]
            made = [(k, v, d) for k, v in outs for d in range(len(p.layouts)) if last.get((v, d), -1) > i]
            ways = []
            for c in sorted(self.kept[i]):
                now, then = self.after(o, c, cost, left, slots)
                under = now + ahead[i + 1] < p.claim
                new = [p.move(v, o.configs[c][1][k], d) for k, v, d in made]
                ways.append((now[under], np.hstack([then[under][:, stay], np.tile(np.array(new, np.int64), (under.sum(), 1))])))
            slots = [slots[k] for k in stay] + [(v, d) for _, v, d in made]
            cost, left = needed(*(np.concatenate(x) for x in zip(*ways)))
            if len(cost) > STATES:
                raise Refused("whether a choice takes less cannot be told within the limits")
        return len(cost) > 0

    def after(self, o, c, cost, left, slots):
        """The states behind configuration c: what it reads is paid for, and is there."""
        ns, lays, _ = o.configs[c]
        cost, left = cost + ns, left.copy()
        for pin, lay in zip(o.pins, lays):
            if not pin.out:
                k = slots.index((pin.value, lay))
                cost = cost + left[:, k]
                left[:, k] = 0
        return cost, left


def needed(cost, left):
    """The states that no cheaper one stands for: one does which, with all that is dearer to have in it, costs no more. Of some thousand
    states the cheapest stand for nearly all that can go, so each is compared with these alone."""
    order = np.argsort(cost, kind="stable")
    cost, left = cost[order], left[order]
    keep = np.ones(len(cost), bool)
    for start in range(0, len(cost), BLOCK):
        block = slice(start, min(start + BLOCK, len(cost)))
        first = min(block.stop, CHEAPEST)
        total = np.repeat(cost[:first, None], block.stop - start, axis=1)
        for k in range(left.shape[1]):
            total += np.maximum(left[:first, k, None] - left[None, block, k], 0)
        before = np.arange(first)[:, None] < np.arange(start, block.stop)
        keep[block] = ~(before & (total <= cost[block])).any(axis=0)
    return cost[keep], left[keep]


def check(p):
    k = Checker(p)
    if k.cost() != p.claim:
        raise Refused(f"the choice takes {k.cost()} ns, not {p.claim} as it says")
    for d in p.drops:
        k.drop(*d)
    if k.cheaper():
        raise Refused(f"a choice takes less than {p.claim} ns")


# ---- the model ----

def lines_of(p):
    """The lines of the plan that the choice is."""
    yield from ("relayout-plan 1", f"machine {p.machine}", f"graph {p.graph}", f"predicted {p.claim}")
    for o in p.ops:
        if o.step == "-":
            continue
        lays = [p.layouts[x] for x in o.configs[o.chosen][1]]
        ins, outs = [x for x, pin in zip(lays, o.pins) if not pin.out], [x for x, pin in zip(lays, o.pins) if pin.out]
        yield " ".join(["op", o.step, o.type, *ins, *([">", *outs] if outs else []), *(["plain"] if o.configs[o.chosen][2] else [])])
    yield "end"


def check_model(p, path):
    import onnx
    has = [m.value for m in onnx.load(path, load_external_data=False).metadata_props if m.key == KEY or m.key.startswith(KEY + ".")]  # the CPU's, devices'
    if not has:
        raise Refused("the model has no plan")
    if all([re.sub(" # .*", "", line) for line in text.splitlines()] != list(lines_of(p)) for text in has):
        raise Refused("the choice is not the model's plan")
