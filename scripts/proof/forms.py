"""Tokens, groups and forms of an op, from its labels and the atoms of its operands.

A form is a tuple of groups of tokens, and for each operand the sequence of those groups:
    MatMul A[b,M,K] W[K,N]   (b M | K | N) as A: 0 1, W: 1 2, Y: 0 2; and others
"""
import dataclasses
import itertools
import math

from onnx import TensorProto

from .charges import einsum_charge, is_dequantized, of_op
from .einsum import works_of
from .labels import AXIS, CONVS, FREE, HEADS, K, LEAD, M, MAXWINDOW, N, PIECES, POOLS, SCALED_MATMUL, TRAIL, behind
from .model import REFERS
from .schemas import UNKNOWN
from .symbols import known

MAXTRAIL = 6  # of a product with a constant the first tokens may trail, or whole dims: 64 splits each (docs/proof.md)
MAXPART = 3  # of a product with parts of a constant the first tokens make these, and few tokens are split in any way (docs/proof.md)
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


@dataclasses.dataclass
class Shape:
    """What an op may do: at each pin a tensor, its value and the order that stands; tokens; forms as (group of token, sequences)."""
    name: str
    role: str
    type: str
    fixed: bool
    pins: list    # (value, tensor, order)
    tokens: list = dataclasses.field(default_factory=list)  # atoms at each pin
    forms: list = dataclasses.field(default_factory=list)   # (groups, tuple of group sequences per pin)
    unsure: bool = False  # a tensor of the node has a rank that is not known here
    more: list = dataclasses.field(default_factory=list)    # functions that give further ones: there may be very many
    charge: object = None  # charges.Charge: what the op is charged; forms are then (groups, sequences, tenths)
    swaps: tuple = ()      # by time: pins where the last two groups of any form may be swapped

    def swapped(self, form):
        """The form, and the same with the groups swapped at any of these pins."""
        found = [form]
        for pin in self.swaps:
            for group, seqs, tenths in list(found):
                *rest, row = seqs[:pin + 1]
                turned = row[:-2] + (row[-1], row[-2]) if len(row) > 1 else row
                found.append((group, (*rest, turned, *seqs[pin + 1:]), tenths))
        return found


def runs(problem, work, lab, o):
    """The atoms that a label has at operand o, in sequence."""
    m = problem.member[work.operands[o].tensor]
    if o not in lab.at:
        return ()
    d = lab.at[o]
    if o in lab.until:
        return m.seq[m.start[d]:m.start[lab.until[o]]]
    if o not in lab.unit:
        return ()
    here = m.seq[m.start[d]:m.start[d + 1]]
    if lab.tail is not None:
        n = len(problem.forest.leaves(lab.tail))
        return here[len(here) - n:] if lab.role == FREE else here[:len(here) - n]
    n = len(problem.forest.leaves(lab.unit[o]))
    if lab.role == PIECES:
        return here[:n]
    return here[len(here) - n:]


def tokens_of(problem, work):
    """[(label, atoms at each operand)]"""
    found = []
    count = len(work.operands)
    for lab in work.labels:
        at = [runs(problem, work, lab, o) for o in range(count)]
        if lab.role in (AXIS, PIECES):
            if any(at):
                found.append((lab, at))
            continue
        longest = max((len(x) for x in at), default=0)
        if any(len(x) not in (0, longest) for x in at):
            raise AssertionError(f"'{work.node.out(0)}': operands of {work.node.op} are not refined alike")
        for i in range(longest):
            found.append((lab, [x[i:i + 1] for x in at]))
    return found


class Forms:
    def __init__(self, problem, work, tokens, pinned, charge=None):
        self.problem, self.work, self.tokens, self.pinned, self.charge = problem, work, tokens, pinned, charge
        self.group = [lab.group for lab, _ in tokens]
        self.found, self.more = [], []

    def add(self, seqs, group=None, kind=""):
        self.found.append(self.form(seqs, group or self.group, kind))

    def form(self, seqs, group, kind=""):
        """With the sequences of the pins alone, and what it is charged."""
        columns = self.columns(group, seqs[2][-1]) if kind == "swapped" else (0, False)
        tenths = self.charge.form(kind, seqs, *columns) if self.charge and self.charge.form else 0
        return tuple(group), tuple(tuple(s) for s, pinned in zip(seqs, self.pinned) if pinned), tenths

    def columns(self, group, last):
        """Of the result, behind the dim that the weight makes; 0: none of their own, or not known; and are they of one atom? last: their group."""
        v = self.problem.values[self.problem.member[self.work.operands[2].tensor].value]
        sizes = [self.problem.forest.size[v.units[a]] for g, (_, at) in zip(group, self.tokens) if g == last for a in at[2]]
        return math.prod(int(s[0]) for s in sizes) if sizes and all(known(s) for s in sizes) else 0, len(sizes) == 1

    def plain(self):
        every = sorted(set(self.group))
        self.add([every] * len(self.work.operands))

    def table(self):
        """data, result, index: (axis, row) (index, row), or (row, axis) (row, index)."""
        self.add([(2, 1), (0, 1), (0,)])
        self.add([(1, 2), (1, 0), (0,)])

    def pool(self):
        """What its window moves over stays side by side, with batch and channel before it, and anything around over which it is 1 wide, in up to MAXWINDOW dims
        in all. Of one dim it leaves two for that: then any order."""
        others = [t for t, g in enumerate(self.group) if g != K]
        over, count = len(self.group) - len(others), len(self.work.operands)
        if over == 1 and self.unknown(others) <= 2:
            self.add([(LEAD,)] * count, [LEAD] * len(self.group))
            return
        for q in self.trails(others) if over > 1 else [()]:
            if max(2, self.unknown(set(others) - set(q))) + over + max(len(q) > 0, self.unknown(q)) <= 2 + MAXWINDOW:
                self.add([(LEAD, K, TRAIL)] * count, self.led(others, q))

    def unknown(self, tokens):
        """How many of the tokens have a size that is a name."""
        v = self.problem.values[self.problem.member[self.work.operands[0].tensor].value]
        return sum(not known(self.problem.forest.size[v.units[self.tokens[t][1][0][0]]]) for t in tokens if self.tokens[t][1][0])

    def has(self, group, operand):
        return any(g == group and at[operand] for g, (_, at) in zip(self.group, self.tokens))

    def merged(self, keep):
        return [g if g in keep else LEAD for g in self.group]

    def writable(self, group, operand, merged=LEAD):
        """A dim that merges several unknown sizes can be taken apart if all but one of them can be looked up."""
        v = self.problem.values[self.problem.member[self.work.operands[operand].tensor].value]
        sizes = [self.problem.forest.size[v.units[at[operand][0]]] for g, (_, at) in zip(group, self.tokens) if g == merged and at[operand]]
        return sum(self.problem.is_open(s) for s in sizes) < 2

    def gemms(self, x, other, free, merge):
        """x as (L K) or (K L), the result as (L free) or (free L), the other operand as (K free) or (free K)."""
        group = self.merged((K, free)) if merge else self.group
        if merge and not self.writable(group, 2):
            return
        for a, y, w in itertools.product(((LEAD, K), (K, LEAD)), ((LEAD, free), (free, LEAD)), ((K, free), (free, K))):
            seqs = [None] * len(self.work.operands)
            seqs[x], seqs[2], seqs[other] = a, y, w
            if len(seqs) == 4:
                seqs[3] = y
            self.add(seqs, group, "gemm")

    def weight_left(self, x, w, free, constant):
        """(P K Q) -> (P free Q): for a constant weight with any split of the other tokens, else with x's own matrix dim as Q."""
        others = [t for t, g in enumerate(self.group) if g not in (K, free)]
        if constant:
            self.more.append(lambda: (self.split(x, w, free, others, q) for q in self.trails(others) if q or w == 0))
        else:
            self.found.append(self.split(x, w, free, others, [t for t in others if self.group[t] != LEAD]))

    def parted(self, x, w, free):
        """(P Q K)(H K free) -> (P H Q free): with parts of a constant w. Where the other has few tokens, any of them are Q and any of the first that w makes H; where
        it has more, up to MAXTRAIL, its own matrix dim, and all that w makes but the last."""
        rows = N if x else M
        others = [t for t, g in enumerate(self.group) if g not in (K, free)]
        makes = [t for t, g in enumerate(self.group) if g == free]
        some = lambda of: (q for n in range(1, len(of) + 1) for q in itertools.combinations(of, n))
        few, own = len(others) <= MAXPART, [t for t in others if self.group[t] != LEAD]
        ways = itertools.product(some(others), some(makes[:MAXPART])) if few else [(own, makes[:-1])] if len(others) <= MAXTRAIL else []
        for q, h in ways:
            group = [rows if t in q else TRAIL if t in h else LEAD if t in others else g for t, g in enumerate(self.group)]
            if q and 0 < len(h) < len(makes) and self.writable(group, 2, rows):
                seqs = [(LEAD, TRAIL, rows, free)] * len(self.work.operands)
                seqs[x], seqs[w] = (LEAD, rows, K), (TRAIL, K, free)
                self.add(seqs, group)

    def may_part(self):
        """Where the target has it, but not of bytes."""
        target, model, operands = self.problem.target, self.problem.model, self.work.operands
        return (target and target.has("PARTED_MATMUL", model.sizes.elem[operands[0].tensor]) and self.pinned[0] != self.pinned[1]
                and not is_dequantized(model, operands[self.pinned[0]].tensor))

    def trails(self, others):
        """What may lie behind K: any of the first tokens; where there are more, also any whole dims."""
        dims = [list(d) for _, d in itertools.groupby(others, lambda t: id(self.tokens[t][0]))]
        for n in range(min(len(others), MAXTRAIL) + 1):
            yield from itertools.combinations(others[:MAXTRAIL], n)
        for n in range(min(len(dims), MAXTRAIL) + 1 if len(others) > MAXTRAIL else 0):
            for some in itertools.combinations(dims[:MAXTRAIL], n):
                trail = [t for d in some for t in d]
                if any(t in others[MAXTRAIL:] for t in trail):
                    yield trail

    def led(self, others, q):
        group = list(self.group)
        for t in others:
            group[t] = TRAIL if t in q else LEAD
        return group

    def split(self, x, w, free, others, q):
        group = self.led(others, q)
        seqs = [None] * len(self.work.operands)
        seqs[x], seqs[w], seqs[2] = (LEAD, K, TRAIL), (free, K), (LEAD, free, TRAIL)
        if len(seqs) == 4:
            seqs[3] = seqs[2]
        return self.form(seqs, group, "swapped" if w else "")

    def gemm(self):
        self.gemms(0, 1, N, False)
        if self.is_linear():
            if not (self.problem.target and self.problem.target["WEIGHT_LEFT"]):  # two nodes take longer yet
                self.weight_left(0, 1, N, True)
            if self.may_part():
                self.parted(0, 1, N)

    def is_linear(self):
        """Is it MatMul of constant weights, and Add of a constant that has one row? Not of bytes."""
        node, model = self.work.node, self.problem.model
        if model.sizes.elem[self.work.operands[0].tensor] not in FLOATS or is_dequantized(model, node.inp(1)):
            return False
        if not self.pinned[0] or self.pinned[1] or node.attr("alpha", 1.0) != 1:
            return False
        return len(self.pinned) < 4 or (node.attr("beta", 1.0) == 1 and not self.pinned[3] and not self.has(LEAD, 3))

    def matmul(self):
        a_batch, b_batch = self.has(LEAD, 0), self.has(LEAD, 1)
        a_var, b_var = self.pinned[0], self.pinned[1]
        floats = self.problem.model.sizes.elem[self.work.operands[0].tensor] in FLOATS
        exchange = self.may_exchange()
        if a_batch and b_batch:
            self.add([(LEAD, M, K), (LEAD, K, N), (LEAD, M, N)])
            if exchange:
                self.add([(LEAD, K, M), (LEAD, N, K), (LEAD, N, M)], kind="swapped")
        elif b_batch or (not a_batch and not a_var and b_var):
            self.weight_left(1, 0, M, not a_var)
            if exchange:
                self.add([(K, M), (LEAD, K), (LEAD, M)], self.merged((K, M)), "swapped")
            if not a_var and floats:
                self.gemms(1, 0, M, True)
            if self.may_part():
                self.parted(1, 0, M)
        else:
            self.add([(LEAD, K), (K, N), (LEAD, N)], self.merged((K, N)))
            if exchange:
                self.weight_left(0, 1, N, not b_var)
            if floats and (not b_var or not a_batch):
                self.gemms(0, 1, N, True)
            if self.may_part():
                self.parted(0, 1, N)

    def may_exchange(self):
        """May B stand left? Integers only of one type (onnxruntime has none of a signed A and an unsigned B), or where a constant can be written in
        the other one's, with its zero point."""
        node, model = self.work.node, self.problem.model
        elem = [model.sizes.elem[o.tensor] for o in self.work.operands[:2]]
        if node.op not in SCALED_MATMUL or elem[0] == elem[1]:
            return True
        zeros = SCALED_MATMUL[node.op][1]
        return any(not pinned and t in (TensorProto.INT8, TensorProto.UINT8) and (not node.inp(z) or node.inp(z) in model.stored)
                   for pinned, t, z in zip(self.pinned, elem, zeros))

    def fused(self):
        """FusedMatMul, where the target has it: any matrix may lie swapped, the result by exchanging the operands."""
        target, elem = self.problem.target, self.problem.model.sizes.elem[self.work.operands[0].tensor]
        if not target or not target.has("FUSED_MATMUL", elem) or not self.has(K, 0):
            return
        a_batch, b_batch = self.has(LEAD, 0), self.has(LEAD, 1)
        if a_batch and b_batch:
            self.fused_batches(target.has("FUSED_BATCH", elem))
        elif b_batch or (not a_batch and not self.pinned[0]):
            self.more.append(lambda: self.fused_matrix(1, 0, M))
        else:
            self.more.append(lambda: self.fused_matrix(0, 1, N))

    def fused_batches(self, flags):
        """Where both have the whole batch, flags let it lie between rows and columns."""
        between = flags and all(at[0] and at[1] for g, (_, at) in zip(self.group, self.tokens) if g == LEAD)
        lies = lambda rows: [seq for p, q in ((rows, K), (K, rows)) for seq in [(LEAD, p, q)] + [(p, LEAD, q)] * between]
        for seqs in itertools.product(lies(M), lies(N), ((LEAD, M, N), (LEAD, N, M))):
            self.add(seqs, kind="fused")

    def fused_matrix(self, x, w, free):
        """(P Q K) or (P K Q) -> (P Q free) or (P free Q), for any split of x's other tokens; a constant w is taken to lie (K free)."""
        others = [t for t, g in enumerate(self.group) if g not in (K, free)]
        matrices = ((K, free), (free, K)) if self.pinned[w] else ((K, free),)
        for q in self.trails(others):
            group = self.led(others, q)
            if not self.writable(group, 2, TRAIL):
                continue
            ways = lambda last: ((LEAD, TRAIL, last), (LEAD, last, TRAIL)) if q else ((LEAD, TRAIL, last),)
            for a, matrix, y in itertools.product(ways(K), matrices, ways(free)):
                seqs = [None] * 3
                seqs[x], seqs[w], seqs[2] = a, matrix, y
                yield self.form(seqs, group, "fused")


def shapes_of_leave(problem, i, node):
    """One for each link, and one for the rest."""
    links, rest = problem.links[i]
    pin = lambda name: (problem.member[name].value, name, problem.member[name].seq)
    variable = lambda name: name in problem.member and not problem.values[problem.member[name].value].constant
    found = []
    for work in links:
        names = [o.tensor for o in work.operands]
        at = [k for k, n in enumerate(names) if variable(n)]
        shape = Shape(name_of(node), "node", "Leave", any(n not in problem.member for n in names), [pin(names[k]) for k in at])
        if not shape.fixed:
            tokens = tokens_of(problem, work)
            forms = Forms(problem, work, tokens, [variable(n) for n in names])
            forms.plain()
            shape.tokens, shape.forms = [tuple(tuple(a[k]) for k in at) for _, a in tokens], forms.found
        found.append(shape)
    unsure = any(n not in problem.unit and n not in problem.model.sequences for n in rest)
    return found + [Shape(name_of(node), "node", "Leave", True, [pin(n) for n in rest if variable(n)], unsure=unsure)]


def shapes_of_einsum(problem, node, works, charges):
    """One for each operand, and for the result: as its groups come, where there are two operands, or any other way, which may be charged; one
    operand by itself is summed along any dims."""
    found = []
    for work in works:
        name = work.operands[0].tensor
        m = problem.member[name]
        if problem.values[m.value].constant:
            continue
        tokens = tokens_of(problem, work)
        two = len(works) == 3
        charge = einsum_charge(name, tokens, two, problem.target, problem.model.sizes) if charges and len(tokens) > 1 else None
        forms = Forms(problem, work, tokens, [True], charge)
        if two:
            forms.add([(0, 1, 2)])
        forms.add([(0,)], [0] * len(tokens), "turned" if len(works) > 2 or work.operands[0].out else "")
        shape = Shape(name_of(node), "node", type_of(node), False, [(m.value, name, m.seq)], charge=charge)
        shape.tokens, shape.forms = [tuple(at) for _, at in tokens], forms.found
        found.append(shape)
    return found


def has_no_choice(problem, work):
    """A Conv whose batch and channels are one atom each has one configuration."""
    free = [lab for lab in work.labels if lab.role == FREE]
    return work.node.op in CONVS and bool(free) and all(len(runs(problem, work, lab, o)) < 2 for lab in free for o in lab.at)


def shape_of_op(problem, i, node, charges):
    """The Shape of a node that is no movement inside a value."""
    work = problem.work.get(i)
    pin = lambda name: (problem.member[name].value, name, problem.member[name].seq)
    variable = lambda name: name in problem.member and not problem.values[problem.member[name].value].constant
    if work is None or any(o.tensor not in problem.member for o in work.operands) or has_no_choice(problem, work):
        names = [n for n in node.input + node.output if n and variable(n)]
        unsure = any(n and n not in problem.unit and n not in problem.model.sequences for n in node.input + node.output)
        return Shape(name_of(node), "node", type_of(node), True, [pin(n) for n in names], unsure=unsure)
    pinned = [variable(o.tensor) for o in work.operands]
    tokens = tokens_of(problem, work)
    charge = of_op(problem, work, tokens, pinned, problem.target) if charges else None
    forms = Forms(problem, work, tokens, pinned, charge)
    if node.op == "MatMul" and node.domain == "":
        forms.matmul()
        forms.fused()
    elif node.op in SCALED_MATMUL and len(work.operands) == 3:
        forms.matmul()
    elif node.op == "FusedMatMul":
        forms.fused()
    elif node.op in HEADS and node.domain == "":
        forms.add([(0, 2, 1, 3) if behind(o) else (0, 1, 2, 3) for o in work.operands])
    elif work.orders:
        for order in work.orders:
            forms.add([order, order])
    elif node.op == "Gemm" and node.domain == "":
        forms.gemm()
    elif work.table:
        forms.table()
    elif node.op in POOLS:
        forms.pool()
    else:
        forms.plain()
    at = [k for k, p in enumerate(pinned) if p]
    shape = Shape(name_of(node), "node", type_of(node), False, [pin(work.operands[k].tensor) for k in at])
    shape.tokens = [tuple(tuple(a[k]) for k in at) for _, a in tokens]
    shape.forms, shape.more, shape.charge = forms.found, forms.more, charge
    if charges and node.op == "MatMul" and node.domain == "" and pinned[0] and pinned[1] and problem.target.takes_swaps:
        shape.swaps = (0, 1)
    return shape


def name_of(node):
    return next((o for o in node.output if o), "")


def type_of(node):
    domain = node.domain.removeprefix(REFERS).removeprefix(UNKNOWN)
    return f"{domain}::{node.op}" if domain else node.op


def all_shapes(problem, charges):
    """Every op of the problem that has pins: nodes, with what the target charges if that is asked for, and demands from outside."""
    model, graph = problem.model, problem.model.graph
    found = []

    def demand(role, name):
        m = problem.member.get(name)
        if m is not None and not problem.values[m.value].constant:
            found.append(Shape(name, role, "", True, [(m.value, name, m.seq)]))

    for name in graph.inputs:
        demand("input", name)
    read = {x for n in problem.nodes for x in n.input + n.captured} | set(graph.outputs)
    for name in (*graph.sparse, *(n for n, t in graph.stored.items() if t.data_type == TensorProto.STRING)):
        if name in read and name not in graph.inputs:  # whose bytes cannot be permuted
            demand("input", name)
    for name in graph.outputs:
        demand("output", name)
    for i, n in enumerate(problem.nodes):
        for name in n.captured:
            demand("captured", name)
        if n.ends is not None:
            found += shapes_of_leave(problem, i, n)
        if n.op in ("Enter", "Leave") and n.domain == "":
            continue
        if i in problem.moves:
            for name in n.input[1:]:
                demand("reads", name)
            continue
        works = works_of(problem, n)
        if works is not None:
            found += shapes_of_einsum(problem, n, works, charges)
            continue
        shape = shape_of_op(problem, i, n, charges)
        found.append(shape)
        work = problem.work.get(i)
        if shape.fixed or n.op in ("Shape", "Size"):
            continue
        for k, name in enumerate(n.input):
            if name and not any(o.slot == k and not o.out for o in work.operands) and not (n.op == "CastLike" and k == 1):
                demand("reads", name)
    return [s for s in found if s.pins]
