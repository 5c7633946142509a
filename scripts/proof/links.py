"""What crosses the border of a body: the ops of a Leave, each a Work, and the rest, which is fixed.

    If    output k           then, else and the result lie alike
    Loop  carried value k    outside, in the body, what the body gives, and the result lie alike; scan output k: the result has the turns first
    Scan  state k            as a carried value; scan input or output k: the whole has the scanned axis, first where it is first

A dim that has the same size in all of them is free; any other is a block. What no link takes (a condition, a trip count) stays as it is.
"""
from .labels import AXIS, FREE, MAXRANK, Label, Operand, Work
from .symbols import ONE


class Linker:
    def __init__(self, problem, leave):
        self.problem, self.leave, self.ends = problem, leave, leave.ends
        self.enter = self.ends.enter
        self.taken = set()  # (which end, is it made, slot)
        self.found = []

    def place(self, out, inside):
        """What is read outside or made inside a body is Enter's, the rest is Leave's."""
        return "enter" if out == inside and self.enter is not None else "leave"

    def tensor(self, end, out, slot):
        n = self.enter if end == "enter" else self.leave
        return n.out(slot) if out else n.inp(slot)

    def is_known(self, name):
        p = self.problem
        return name in p.unit and len(p.unit[name]) <= MAXRANK and bool(p.model.sizes.elem.get(name))

    def operands(self, *wanted):
        """[(place, Operand)] of (is it made, inside a body, slot); None: nothing is known of one."""
        got = []
        for out, inside, slot in wanted:
            end = self.place(out, inside)
            name = self.tensor(end, out, slot)
            if not name and out:
                continue  # a result that nobody reads
            if not name or not self.is_known(name):
                return None
            got.append(((end, out, slot), Operand(name, slot, out)))
        return got

    def dims(self, operand):
        return self.problem.model.sizes.dims[operand.tensor]

    def link(self, got, columns):
        """columns: (dim at each operand or None, group, is it an axis)"""
        if any((0, 0) in self.dims(o) for _, o in got):
            return
        work = Work(self.leave, [o for _, o in got])
        work.labels = [self.label(work, *c) for c in columns]
        self.taken.update(place for place, _ in got)
        self.found.append(work)

    def label(self, work, dims, group, axis):
        f, lab = self.problem.forest, Label(FREE, group)
        sizes = []
        for o, d in enumerate(dims):
            unit = None
            if d is not None:
                lab.at[o] = d
                unit = self.problem.unit[work.operands[o].tensor][d]
            if unit is not None:
                lab.unit[o] = unit
            sizes.append(ONE if unit is None else f.size[unit])
        alike = not axis and len(set(sizes)) == 1
        units = [lab.unit[o] for o in sorted(lab.unit)]
        if not alike or not all(f.match([units[0]], [u]) for u in units[1:]):
            lab.role = AXIS
        return lab

    def alike(self, *wanted):
        got = self.operands(*wanted)
        if got is None or len({len(self.dims(o)) for _, o in got}) != 1:
            return
        self.link(got, [([d] * len(got), 0, False) for d in range(len(self.dims(got[0][1])))])

    def stacked(self, whole, axis, *wanted):
        """Operand `whole` has one dim more; a first one stays first."""
        got = self.operands(*wanted)
        if got is None or len(got) != 2:
            return
        rank = len(self.dims(got[whole][1]))
        if len(self.dims(got[1 - whole][1])) + 1 != rank or not -rank <= axis < rank:
            return
        axis %= rank
        columns = []
        for d in range(rank):
            dims = [None, None]
            dims[whole] = d
            dims[1 - whole] = None if d == axis else d - (d > axis)
            columns.append((dims, int(axis == 0 and d != axis), d == axis))
        self.link(got, columns)

    # ---- by kind: (made, inside, slot)

    def links_if(self):
        each = (len(self.leave.input) - 1) // 2
        for k in range(len(self.leave.output)):
            self.alike((False, True, 1 + k), (False, True, 1 + each + k), (True, False, k))

    def links_loop(self):
        n = len(self.enter.input) - 2
        for k in range(n):
            self.alike((False, False, 2 + k), (True, True, 2 + k), (False, True, 2 + k), (True, False, k))
        for k in range(n, len(self.leave.output)):
            self.stacked(1, 0, (False, True, 2 + k), (True, False, k))

    def links_scan(self):
        was, nin = self.ends.node, len(self.enter.input)
        scanned = was.attr("num_scan_inputs", 0)
        if was.opset < 9 or not 0 <= scanned <= nin:
            return
        n = nin - scanned
        axis = lambda name, i: (list(was.attr(name, [])) + [0] * (i + 1))[i] if len(was.attr(name, [])) > i else 0
        for k in range(n):
            self.alike((False, False, k), (True, True, k), (False, True, 1 + k), (True, False, k))
        for k in range(n, nin):
            self.stacked(0, axis("scan_input_axes", k - n), (False, False, k), (True, True, k))
        for k in range(n, len(self.leave.output)):
            self.stacked(1, axis("scan_output_axes", k - n), (False, True, 1 + k), (True, False, k))

    def rest(self):
        """Names of the tensors that no link took."""
        names = []
        for end, node in (("enter", self.enter), ("leave", self.leave)):
            for out in (False, True):
                for i, name in enumerate(() if node is None else node.output if out else node.input):
                    if name and not name.startswith("\0") and (end, out, i) not in self.taken:
                        names.append(name)
        return names


def links_of(problem, leave):
    """(works, names of the rest)"""
    linker = Linker(problem, leave)
    getattr(linker, "links_" + leave.ends.op.lower())()
    return linker.found, linker.rest()
