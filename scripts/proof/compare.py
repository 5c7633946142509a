"""The problem that a certificate states against the one rebuilt from the model, and the result against what it claims.

Values are matched by their first tensor; atom i of the file is the atom that stands at place i of that tensor here. Ops are matched
by name, their pins by tensor. A file that allows more than the tables do still bounds from below, so what it may not do is leave out a
configuration; and what it chooses must be one of ours.
"""
import itertools
import math
from collections import Counter, defaultdict
from pathlib import Path

import onnx

from . import Refused, calls
from .atoms import Problem
from .bound import charged, chosen, with_swaps
from .charges import is_dequantized
from .forms import all_shapes
from .formula import evaluate, guess, is_fresh, names_in
from .labels import is_moving
from .model import Graph, Model
from .result import bytes_of, moved, moved_each, takes, transposes_of, unread
from .contents import SMALL
from .symbols import ONE, OTHERS, Symbols, known

MAXENUM = 50_000  # configurations that are listed where forms cannot be compared as such
# Ops of whose small results the program may know more than is followed here: pieces and copies of constant parts, and what is so of any size (4 N > 0).
MAY_BE_KNOWN = {"Cast", "Concat", "Equal", "Expand", "Gather", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Slice", "Split"}
FREE = 65536      # bytes of a computed constant that may be written out instead of what makes it


class Comparison:
    def __init__(self, proof, problem, shapes):
        self.proof, self.problem, self.shapes = proof, problem, shapes
        self.sizes = problem.model.sizes
        self.lost = []      # what could not be rebuilt, by name
        self.symbols = {}   # unknown sizes of the file -> ours
        self.value = {}     # file's value -> ours
        self.said = {}      # and back
        self.atom = {}      # file's value -> its atoms in our numbers
        self.idle = set()   # file's values without elements that are gone here, as constants, and cost nothing there

    def run(self):
        self.match_values()
        self.match_ops()

    # ---- values

    def match_values(self):
        taken = {}
        for v, value in enumerate(self.proof.values):
            member = self.problem.member.get(value.name)
            if member is None:
                if value.name not in self.sizes.elem:
                    raise Refused(f"value {v}: the model has no tensor '{value.name}'")
                if self.problem.model.empty(value.name) and self.costs_nothing(v):
                    self.idle.add(v)
                else:
                    self.lost.append(f"value '{value.name}'")
                continue
            ours = self.problem.values[member.value]
            if member.value in taken:
                raise Refused(f"values {taken[member.value]} and {v} are one: '{value.name}' is a view of '{ours.first}'")
            taken[member.value] = v
            if len(value.sizes) != len(ours.units):
                if self.problem.model.empty(value.name):
                    self.lost.append(f"value '{value.name}'")  # 0 is a multiple of everything: which dims are one atom hangs on how one asks
                    continue
                raise Refused(f"value '{value.name}': {len(value.sizes)} atoms in the file, {len(ours.units)} here: {self.text(ours)}")
            self.value[v], self.atom[v], self.said[member.value] = member.value, member.seq, v
            for i, size in enumerate(value.sizes):
                self.same_size(value.name, size, self.problem.forest.size[ours.units[member.seq[i]]])
            self.same_bytes(value)

    def costs_nothing(self, v):
        """Do only fixed ops read or make it, all of them in the same order?"""
        readers = [op for op in self.proof.ops if any(p.value == v for p in op.pins)]
        return all(op.fixed for op in readers) and len({p.stands for op in readers for p in op.pins if p.value == v}) < 2

    def text(self, ours):
        one = lambda d: str(d[0]) if known(d) else "?"
        return " ".join(one(self.problem.forest.size[u]) for u in ours.units)

    def same_size(self, name, said, ours):
        if isinstance(said, int):
            if not known(ours):
                self.lost.append(f"size {said} of '{name}'")
            elif ours[0] != said:
                raise Refused(f"value '{name}': an atom of {said} in the file, of {ours[0]} here")
            return
        if known(ours):
            raise Refused(f"value '{name}': an atom of unknown size '{said}' in the file, of {ours[0]} here")
        got = evaluate(said, self.sizes.symbols, self.symbols)
        if got is None and "?" not in said:
            raise Refused(f"value '{name}': no size of the model is called '{said}'")
        if got is None:  # a name that the program gave to what nobody knows
            got = self.symbols.setdefault(said, ours)
        if got != ours and "?" in said:
            self.lost.append(f"size {said} of '{name}'")
        elif got != ours:
            raise Refused(f"value '{name}': an atom of '{said}' in the file is another size here")

    def size_of(self, name, value):
        """Counted of the sizes that the file has: where fewer are known to be one, more is a guess."""
        guesses = [d if isinstance(d, int) else guess(d) for d in value.sizes] if value else [None]
        return bytes_of(self.problem.model, name, None if None in guesses else math.prod(max(d, 0) for d in guesses))

    def same_bytes(self, value):
        size = self.size_of(value.name, value)
        if size is None:
            self.lost.append(f"bytes of '{value.name}'")
        elif size != value.bytes:
            raise Refused(f"value '{value.name}': {value.bytes} bytes in the file, {size} here")

    # ---- ops

    def match_ops(self):
        ours = defaultdict(list)
        for s in self.shapes:
            ours[(s.role, s.name)].append(s)
        said = defaultdict(list)
        for k, op in enumerate(self.proof.ops):
            if op.pins:
                said[(op.role, op.name)].append(k)
        for key, ops in said.items():
            if all(p.value in self.idle for k in ops for p in self.proof.ops[k].pins):
                continue
            if any(p.value not in self.value for k in ops for p in self.proof.ops[k].pins):
                self.lost.append(f"{key[0]} '{key[1]}'")
                ours.pop(key, None)
                continue
            if key not in ours:
                raise Refused(f"{key[0]} '{key[1]}' has no part in the problem")
            have = ours[key]
            if key[0] == "node" and len(ops) != len(have) and any(s.unsure for s in have):
                self.lost.append(f"node '{key[1]}'")
                continue
            if key[0] == "node" and len(ops) != len(have):
                raise Refused(f"node '{key[1]}': {len(ops)} ops in the file, {len(have)} here")
            for i, k in enumerate(ops):  # only what an If, Loop or Scan makes has several, and an Einsum
                self.match_op(k, self.proof.ops[k], have[i if key[0] == "node" else 0])
        for key in ours:
            if key not in said and ours[key][0].unsure:
                self.lost.append(f"{key[0]} '{key[1]}'")
            elif key not in said and len(ours[key]) == 1 and [True] == [self.may_be_known(t) for _, t, _ in ours[key][0].pins]:
                self.lost.append(f"contents of '{key[1]}'")  # an output, or a node that makes it of constants alone
            elif key not in said:
                raise Refused(f"{key[0]} '{key[1]}' is missing in the file")

    @staticmethod
    def as_unsure(op, shape):
        """The program knows no more than is known here: to it, too, the op is fixed, and has a pin for those tensors alone whose rank is known."""
        return op.fixed and Counter(p.tensor for p in op.pins) == Counter(t for _, t, _ in shape.pins)

    def match_op(self, k, op, shape):
        if shape.unsure and not self.as_unsure(op, shape):
            self.lost.append(f"{op.role} '{op.name}'")
            return
        what = f"op {k} ({op.role} '{op.name}' {op.type})".replace(" )", ")")
        if op.type != shape.type:
            raise Refused(f"{what}: is a {shape.type}")
        said, have = Counter(p.tensor for p in op.pins), Counter(t for _, t, _ in shape.pins)
        if not said - have and said != have and all(map(self.may_be_known, have - said)):
            self.lost.append(f"contents of '{min(have - said)}'")
            return
        if said != have:
            raise Refused(f"{what}: pins {[p.tensor for p in op.pins]} in the file, {[t for _, t, _ in shape.pins]} here")
        why = None
        for order in pairings([p.tensor for p in op.pins], [t for _, t, _ in shape.pins]):
            why = self.differs(op, shape, order)
            if why is None:
                return
        if op.fixed and all(map(self.problem.model.empty, (p.tensor for p in op.pins))):
            return  # a tensor without elements is a constant, whatever makes it, and an op that reads such a one is fixed
        raise Refused(f"{what}: {why}")

    def may_be_known(self, name):
        """Small, and made by such an op that its contents can be known to the program alone."""
        dims, n = self.sizes.dims[name], self.problem.model.made.get(name)
        return n is not None and n.op in MAY_BE_KNOWN and all(map(known, dims)) and self.sizes.count[name] <= SMALL

    def differs(self, op, shape, order):
        """Why the op's configurations do not do; order[i]: our pin for the file's pin i. None: they do."""
        for i, p in enumerate(op.pins):
            value, _, stands = shape.pins[order[i]]
            if self.value[p.value] != value:
                return f"'{p.tensor}' is of another value"
            if self.ours(p.value, p.stands) != stands:
                return f"'{p.tensor}' stands as {self.ours(p.value, p.stands)} in the file, as {stands} here"
        said = Allowed(op, [self.atom[p.value] for p in op.pins], order)
        have = Allowed.of_shape(shape)
        missing = said.lacks(have) or (self.misprices(op, shape, said, have) if self.proof.rate else None)
        if not missing and not {order[i] for i in op.swaps} <= set(shape.swaps):
            missing = "swaps at other pins"
        if not missing and shape.swaps and self.proof.rate:  # of one token nothing can be swapped: then the file may say that nothing is
            by_time = Allowed(op, [self.atom[p.value] for p in op.pins], order, True), Allowed.of_shape(shape, True)
            missing = by_time[0].lacks(by_time[1]) or by_time[0].dearer(by_time[1])
        if missing:
            return missing
        picked = [None] * len(order)
        for i, (p, atoms) in enumerate(zip(op.pins, chosen(op))):
            picked[order[i]] = self.ours(p.value, atoms)
        if not have.holds(tuple(picked)):
            on = f" on target '{self.problem.target.name}'" if self.problem.target else ""
            return f"chooses {tuple(picked)}, which is no configuration{on}"
        if op.charge and op.charge.rule == "forms" and self.proof.rate:
            said, least = charged(op, op.choice and op.choice[0], ()), have.least(tuple(picked), op.choice is None)
            if said < least:
                return f"the choice is charged {said} tenths, here {least}"
        return None

    def misprices(self, op, shape, said, have):
        """Why what the file charges is not what the target does. It may not be more for any configuration, nor less for the one chosen. Of an op that
        has one configuration nothing hangs on that."""
        c, ours = op.charge, shape.charge
        if op.fixed:
            return None
        if c is None:
            costs = ours and (ours.tenths or any(x for _, x in have.priced()))
            return "is not charged in the file, but here" if costs else None
        if ours is None or c.rule != ours.rule:
            return f"is charged by '{c.rule}', here by '{ours.rule if ours else None}'"
        said_of = self.said.get(self.problem.member[ours.tensor].value)
        size = self.size_of(ours.tensor, None if said_of is None else self.proof.values[said_of])
        if size is None:
            self.lost.append(f"bytes of '{ours.tensor}'")
        elif size != c.bytes:
            return f"is charged by {c.bytes} bytes, '{ours.tensor}' has {size}"
        if c.tenths != ours.tenths:
            return f"is charged {c.tenths} tenths, here {ours.tenths}"
        if c.rule == "forms":
            return said.dearer(have)
        marked = frozenset(said.listed_tokens[t] for t in c.more)
        return None if marked == ours.tokens else "other tokens make its charge"

    def ours(self, value, order):
        at = self.atom[value]
        return tuple(at[a] for a in order)


def pairings(said, have):
    """All ways to pair pins of the same tensor."""
    places = defaultdict(list)
    for i, t in enumerate(have):
        places[t].append(i)
    names = list(places)
    for perms in itertools.islice(itertools.product(*(itertools.permutations(places[n]) for n in names)), 720):
        left = {n: iter(p) for n, p in zip(names, perms)}
        yield [next(left[t]) for t in said]


class Allowed:
    """The configurations of an op in a form that two sides can be compared in: tokens by their atoms at the pins, groups as sets."""

    def __init__(self, op, atom, order, by_time=False):
        n = len(op.pins)
        self.stands = self.arrange([tuple(atom[i][a] for a in p.stands) for i, p in enumerate(op.pins)], order)
        tokens = [self.arrange([tuple(atom[i][a] for a in token[i]) for i in range(n)], order) for token in op.tokens]
        self.tokens, self.listed_tokens = {t for t in tokens if any(t)}, tokens
        tenths = op.charge.more if op.charge and op.charge.rule == "forms" else [0] * len(op.forms)
        forms = with_swaps(op) if by_time else enumerate(op.forms)
        self.price([(canonical(tokens, f.group, self.arrange(list(f.seq), order)), tenths[k]) for k, f in forms])
        self.stands_tenths, self.more = op.charge.tenths if op.charge else 0, ()

    @classmethod
    def of_shape(cls, shape, by_time=False):
        self = cls.__new__(cls)
        self.stands = tuple(o for _, _, o in shape.pins)
        self.tokens = {t for t in shape.tokens if any(t)}
        every = lambda forms: (x for f in forms for x in (shape.swapped(f) if by_time else [f]))
        self.price([(canonical(shape.tokens, *f[:2]), f[2]) for f in every(shape.forms)])
        self.more = [lambda f=f: ((canonical(shape.tokens, *x[:2]), x[2]) for x in every(f())) for f in shape.more]
        self.stands_tenths = shape.charge.tenths if shape.charge else 0
        return self

    def price(self, forms):
        self.tenths = {}
        for f, tenths in forms:
            self.tenths[f] = min(tenths, self.tenths.get(f, tenths))
        self.forms = set(self.tenths)

    def priced(self):
        """All forms with their tenths."""
        return itertools.chain(self.tenths.items(), *(f() for f in self.more))

    def least(self, config, stands):
        """The least tenths of a configuration."""
        if stands:
            return self.stands_tenths
        return min((x for f, x in self.priced() if fits(config, f)), default=self.stands_tenths)

    def dearer(self, ours):
        """What these forms are charged more for than ours, or None."""
        for f, tenths in ours.priced():
            if any(x <= tenths and (f == g or included(f, g)) for g, x in self.tenths.items()):
                continue
            if ways(f) > MAXENUM or any(self.least(c, False) > tenths for c in listed(f)):
                return f"a form is charged more than {tenths} tenths: " + show(f)
        return None

    @staticmethod
    def arrange(x, order):
        out = [None] * len(x)
        for i, k in enumerate(order):
            out[k] = x[i]
        return tuple(out)

    def every(self):
        """All forms, those first that were listed."""
        return (f for f, _ in self.priced())

    def lacks(self, ours):
        """What of our configurations is not among these, or None."""
        if self.tokens == ours.tokens or not self.tokens:
            for f in ours.every():
                if f not in self.forms and not any(included(f, x) for x in self.forms) and not self.lists(f):
                    return "a form is missing: " + show(f)
            return None
        for f in ours.every():
            if not self.lists(f):
                return "its tokens are others here: " + show(f)
        return None

    def lists(self, form):
        """Is each configuration of the form one of these? Looks at all of them, where there are not too many."""
        return ways(form) <= MAXENUM and all(map(self.holds, listed(form)))

    def holds(self, config):
        return config == self.stands or any(fits(config, f) for f in self.every())


def canonical(tokens, group, seqs):
    """(groups, groups at each pin in sequence), a group as the set of its tokens, without what is at no pin."""
    members = defaultdict(set)
    for t, g in zip(tokens, group):
        if any(t):
            members[g].add(t)
    rows = tuple(tuple(frozenset(members[g]) for g in seq if any(t[i] for t in members.get(g, ()))) for i, seq in enumerate(seqs))
    return frozenset(map(frozenset, members.values())), rows


def ways(form):
    n = 1
    for g in form[0]:
        for i in range(len(g)):
            n *= i + 1
    return n


def show(form):
    word = lambda g: "{" + " ".join(str(t) for t in sorted(g)) + "}"
    return " | ".join(" ".join(map(word, row)) for row in form[1])


def listed(form):
    groups = list(form[0])
    for perms in itertools.product(*(itertools.permutations(g) for g in groups)):
        at = dict(zip(groups, perms))
        yield tuple(tuple(a for g in row for t in at[g] for a in t[i]) for i, row in enumerate(form[1]))


def acyclic(chains):
    """Is there one sequence that all chains are part of?"""
    after = defaultdict(set)
    waits = Counter()
    nodes = {x for c in chains for x in c}
    for c in chains:
        for a, b in zip(c, c[1:]):
            if b not in after[a]:
                after[a].add(b)
                waits[b] += 1
    ready = [x for x in nodes if not waits[x]]
    seen = 0
    while ready:
        x = ready.pop()
        seen += 1
        for y in after[x]:
            waits[y] -= 1
            if not waits[y]:
                ready.append(y)
    return seen == len(nodes)


def included(a, b):
    """Every configuration of form a is one of form b: b's groups are unions of a's, which lie together in the same sequence."""
    home = {}
    for g in a[0]:
        home[g] = next((h for h in b[0] if g <= h), None)
        if home[g] is None:
            return False
    for row, wanted in zip(a[1], b[1]):
        merged = [h for h, _ in itertools.groupby(home[g] for g in row)]
        if tuple(merged) != wanted:
            return False
    return all(acyclic([[g for g in row if home[g] == h] for row in a[1]]) for h in b[0])


def fits(config, form):
    """Is this order at each pin a configuration of the form?"""
    chains = defaultdict(list)
    for i, (order, row) in enumerate(zip(config, form[1])):
        at = 0
        for group in row:
            left = {t[i][0]: t for t in group if t[i]}
            chain = []
            while left:
                t = left.pop(order[at], None) if at < len(order) else None
                if t is None or order[at:at + len(t[i])] != t[i]:
                    return False
                at += len(t[i])
                chain.append(t)
            chains[group].append(chain)
        if at != len(order):
            return False
    return all(acyclic(c) for c in chains.values())


# ---------------------------------------------------------------------------------------------------- the result

def is_declared(was, now):
    """May a type of the model be this one in the result? What is open there may have got a number (--dim), and what has no name anything."""
    kind = was.WhichOneof("value")
    if kind is None:
        return True
    if kind != now.WhichOneof("value"):
        return False
    was, now = getattr(was, kind), getattr(now, kind)
    if kind == "map_type":
        return was.key_type == now.key_type and is_declared(was.value_type, now.value_type)
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return not hasattr(was, "elem_type") or is_declared(was.elem_type, now.elem_type)
    if was.elem_type not in (0, now.elem_type):
        return False
    is_open = lambda d: not d.HasField("dim_value") or d.dim_value < 0
    fits = lambda a, b: (a.dim_value == b.dim_value if not (is_open(a) or is_open(b)) else is_open(a) and (not is_open(b) or a.dim_param in ("", b.dim_param)))
    return not was.HasField("shape") or (len(was.shape.dim) == len(now.shape.dim) and all(map(fits, was.shape.dim, now.shape.dim)))


class Rewritten:
    """A graph, the main one or a function, and what became of it: rebuilt once for any number of certificates."""

    def __init__(self, model, out, target):
        self.model, self.out, self.target = model, out, target
        self.blocked, self.problems = None, {}
        self.kept = []  # constants that the file takes for variables
        self.moves = moved_each(out.nodes, out.sizes, out.graph, bool(target and target.charges))
        self.moved = len(self.moves), sum(size for _, size in self.moves)

    def check(self, proof):
        """Raises Refused; returns the names of what could not be rebuilt. Tensors without elements may be constants, and nodes that compute
        constants may be gone: which ones are is the program's to say, so what is refused one way is looked at the other way."""
        empties = [False, True] if any(self.model.empty(v.name) for v in proof.values) else [False]
        why, lost = None, None
        for way in itertools.product(empties, ("", "moved", "any")):
            if why and way[1] and len(self.model.unfolded(way[1] == "any")) == len(self.model.graph.nodes if way[1] == "moved" else self.model.unfolded()):
                continue
            try:
                lost = self.compare(proof, *way)
                break
            except Refused as e:
                why = why or e
        if lost is None:
            raise why
        self.check_result(proof)
        return lost

    def compare(self, proof, empties, folded):
        if proof.rate and (self.target is None or proof.rate != self.target.rate):
            raise Refused(f"the file has a rate of {proof.rate}, the target of {self.target and self.target.rate}")
        self.rebuild(proof)
        key = empties, folded
        if key not in self.problems:
            problem = Problem(self.model, empties, self.target, folded)
            self.problems[key] = problem, all_shapes(problem, bool(proof.rate))
        self.problem, shapes = self.problems[key]
        self.compared = Comparison(proof, self.problem, shapes)
        self.compared.run()
        return self.compared.lost

    def rebuild(self, proof):
        """A tensor that a node computes from constants alone may stay a variable, where its contents are too many for this checker too, the program
        does not compute such an op or does not follow so much, or it hangs on a comparison of open sizes: then it is one in both. No stored constant may. And a
        Transpose of an empty tensor may make a constant of its own."""
        m = self.model
        made = {o: n for n in m.nodes for o in n.output}
        values = {v.name for v in proof.values if v.name in made}
        kept = lambda n: n.op != "Constant" and (not is_moving(n) or m.turned(n) is not None)
        variable = {n for n in values & m.computed if kept(made[n]) and m.sizes.count.get(n) != 0}
        known = variable & set(m.contents) - m.uncomputed() - m.undecided() - m.unfollowed()
        if known:
            raise Refused(f"'{min(known)}' is a constant, and a variable in the file")
        self.kept = sorted(variable)
        names = variable | {n for n in values if made[n].op == "Transpose" and m.empty(n)}
        if (names, proof.rate) != self.blocked:
            self.blocked, self.problems = (names, proof.rate), {}
            self.model.block(names)

    @property
    def conversions(self):
        """Transposes of the result, those of bodies that stay closed among them."""
        return self.moved[0] + self.closed(self.out)

    @staticmethod
    def closed(model):
        return transposes_of([b for n in model.graph.nodes for b in n.graphs])

    def check_result(self, proof):
        """OUT has no more Transposes than the claim and those outside of the problem, nor do as many move more; and the interface of IN. For a target
        that charges two, one after the other, count as one: they may take less time than what they come to. Fewer
        may move more where their number comes first: a Gather that makes its result in another order saves one, and another moves all rows. As many
        may where all takes no more time than is claimed: planned once more, a Resize that is slower than a Transpose behind it has its axes where they
        are faster."""
        for side in ("input", "output"):
            was, now = (m.graph.ports(side) for m in (self.model, self.out))
            if was != now:
                raise Refused(f"the {side}s of the two models have other names")
            was, now = ({v.name: v.type for v in getattr(m.graph.proto, side)} for m in (self.model, self.out))
            for name in self.model.graph.ports(side):
                if not is_declared(was[name], now[name]):
                    raise Refused(f"the {side} '{name}' of the two models has another type or other sizes")
        if unread(self.out.graph) > unread(self.model.graph):
            raise Refused("the result has Transposes that the operator's definition does not know")
        apart = [n for n in self.model.nodes if n.op == "Transpose" and n.domain == "" and self.is_apart(n)]
        outside, _ = moved(apart, self.model.sizes, self.model.graph)
        closed, closed_out = map(self.closed, (self.model, self.out))
        if proof.outside > outside + closed:
            raise Refused(f"the file says that {proof.outside} Transposes are outside, of the model {outside} and {closed} in closed bodies")
        count, size = self.moved
        outside = min(outside, proof.outside)
        if count > outside + proof.cost[0] or closed_out > closed:
            raise Refused(f"the result has {count} Transposes that move data and {closed_out} in closed bodies, the file says {proof.cost[0]}; "
                          f"outside are {outside}, in closed bodies {closed}")
        fewer = not proof.bytes_first and count < proof.cost[0]
        quick = lambda: proof.time and not proof.bytes_first and (time := takes(self.out, self.target, proof.time)) is not None and time <= proof.time.cost[0]
        if not outside and not fewer and size > proof.cost[1] and not quick() and self.moved_as_said(proof) > proof.cost[1]:
            raise Refused(f"the Transposes of the result move {size} bytes, the claim says {proof.cost[1]}")

    def moved_as_said(self, proof):
        """The bytes that the result moves, those of tensors that the model has, too, counted of the sizes in the file, where fewer may be known to be one."""
        def said(name, size):
            m = self.problem.member.get(name)
            v = self.compared.said.get(m.value) if m else None
            of = [(s.elem.get(name), s.dims.get(name)) for s in (self.model.sizes, self.out.sizes)]
            return size if v is None or of[0] != of[1] else proof.values[v].bytes

        return sum(said(name, size) for name, size in self.moves)

    def is_apart(self, n):
        """Of no value: of a tensor that is none, or of a constant from which constants alone lead to what stays as it is made, or that a
        DequantizeLinear makes for others, too; or between two values."""
        if self.model.data(n.inp(0)):
            return self.stays(n.out(0)) or is_dequantized(self.model, n.inp(0))
        return not self.in_value(n.inp(0)) or n.out(0) in self.problem.apart

    def stays(self, name):
        """Leads it, through constants alone, to a result of the graph or of a body, or to more than is written out unpaid?"""
        m, seen, found = self.model, {name}, [name]
        for x in found:
            if x in m.graph.outputs or (m.sizes.count.get(x) or 0) * m.sizes.bits(x) // 8 > FREE:
                return True
            for n in m.readers.get(x, ()):
                if n.ends is not None:
                    return True
                more = [o for o in n.output if m.data(o) and o not in seen]
                seen.update(more)
                found += more
        return False

    def in_value(self, name):
        m = self.problem.member.get(name)
        return m is not None and not self.problem.values[m.value].constant


class Pair:
    """A model and its result. Numbers of unknown sizes may by chance divide each other (ceil(N/8) may be even), so what is refused with some is
    looked at with others; and where the program knows less of a size than is inferred here, with a symbol for it."""

    def __init__(self, path, result, target=None, others=0, open_=()):
        self.again, self.made = (lambda *way: Pair(path, result, target, *way)), {(others, open_): self}
        self.target, self.way = target, self
        self.protos = [onnx.load(p, load_external_data=False) for p in (path, result)]
        self.graphs = [Graph(m, str(Path(p).parent)) for m, p in zip(self.protos, (path, result))]
        symbols = Symbols(others, open_)
        for proto, graph in zip(self.protos, self.graphs):
            if proto.functions:
                calls.Functions(proto, graph)
        model, out = Model(self.graphs[0], symbols), Model(self.graphs[1], symbols, read=False)
        self.types = out.types  # a function may be taken for what all calls in the result agree on
        self.main, self.functions = Rewritten(model, out, target), {}

    @property
    def kept(self):
        functions = self.way.functions.items()
        return self.way.main.kept + [f"{n} in function {self.protos[0].functions[k].name}" for k, f in functions for n in f.kept]

    def check(self, proof):
        """Raises Refused; returns the names of what could not be rebuilt."""
        why, unknown = None, self.unknown(proof)
        for way in dict.fromkeys((others, open_) for open_ in ((), unknown) for others in OTHERS):
            if why and not self.main.model.sizes.symbols.index:
                break
            if way not in self.made:
                self.made[way] = self.again(*way)
            self.way = self.made[way]
            try:
                return self.way.check_once(proof)
            except Refused as e:
                why = why or e
        raise why

    def outside(self, proof):
        """Of the Transposes of the result, at most so many are of tensors that the claim says nothing of."""
        graphs = [(self.way.main, proof)] + [(self.way.function(f.index), f.proof) for f in proof.functions]
        return sum(min(g.outside, rewritten.conversions) for rewritten, g in graphs)

    def unknown(self, proof):
        """(tensor, dim, symbol) where the file has a size that nobody knows, first, or the name that is declared there alone, and here more is known."""
        sizes, graph, found = self.main.model.sizes, self.protos[0].graph, {}
        said = {v.name: [d.dim_param for d in v.type.tensor_type.shape.dim] for v in [*graph.value_info, *graph.output]}
        given = {d.dim_param for v in graph.input for d in v.type.tensor_type.shape.dim}
        for v in proof.values:
            at = [k for k, d in enumerate(sizes.dims.get(v.name) or ()) if d != ONE]
            for k, text in zip(at, v.sizes if len(at) == len(v.sizes) else ()):
                if isinstance(text, int) or sizes.symbols.name.get((0, sizes.dims[v.name][k][0]), ("named",))[0] not in ("named", "cut"):
                    continue
                if is_fresh(text):
                    found.setdefault(text, (v.name, k, ("unknown", v.name, k)))
                elif (name := said[v.name][k] if k < len(said.get(v.name, ())) else "") and name not in given and names_in(text) == {name}:
                    found[v.name, k] = v.name, k, ("named", name)
        return tuple(found.values())

    def check_once(self, proof):
        self.match_functions({f.index: f for f in proof.functions})
        lost = self.main.check(proof)
        for f in proof.functions:
            try:
                lost += [f"{what} in function '{f.name}'" for what in self.function(f.index).check(f.proof)]
            except Refused as e:
                raise Refused(f"function '{f.name}': {e}") from None
        return lost

    def function(self, k):
        if k not in self.functions:
            models = []
            for proto, graph in zip(self.protos, self.graphs):
                f = proto.functions[k]
                models.append(Model(graph.function(f), self.main.model.sizes.symbols, given=self.types.get((f.domain, f.name))))
            self.functions[k] = Rewritten(*models, self.target)
        return self.functions[k]

    def match_functions(self, said):
        """The same functions; what the file says nothing of is as it was."""
        was, now = (list(m.functions) for m in self.protos)
        names = lambda functions: [(f.domain, f.name) for f in functions]
        if names(was) != names(now):
            raise Refused("the functions of the two models have other names")
        for k, f in said.items():
            if k >= len(was) or (f.domain, f.name) != names(was)[k]:
                raise Refused(f"function {k} of the model is not '{f.name}'")
        for k, (a, b) in enumerate(zip(was, now)):
            if k not in said and a.SerializeToString(deterministic=True) != b.SerializeToString(deterministic=True):
                raise Refused(f"function '{a.name}' is not as it was, and the file says nothing of it")
