"""Einsum: each operand, and the result, may have its dims in any order, as the equation names them; one Work for each.

    bhqd,bhkd->bhqk      x as b q h d is read by bqhd,bhkd->bhqk

Of two operands runtimes make a product of matrices; a target may charge for dims that do not lie as that wants them (group).
"""
from .equation import terms
from .labels import AXIS, MAXRANK, Label, Operand, Work, covered
from .symbols import ONE


def group(letters, term, c):
    """letters: of each term, where it has more than one element. Where runtimes want the dim, of two operands: in all three terms first; then the first operand has its own, then the summed ones, the
    second the summed ones, then its own, and the result those of the first and of the second."""
    a, b, y = (c in t for t in letters)
    if a and b:
        return 0 if y else 2 - term
    return (2 if b else 1) if term == 2 else 1 + term


def works_of(problem, node):
    """[Work]: inputs, then the result. None: the node is fixed."""
    sizes = problem.model.sizes
    if node.op != "Einsum" or node.domain or not covered(node) or node.graphs or node.captured:
        return None
    if not all(n and n in problem.unit and sizes.elem.get(n) for n in node.input + node.output):
        return None
    names = node.input + node.output
    dims = [sizes.dims[n] for n in names]
    if any(len(d) > MAXRANK or (0, 0) in d for d in dims):
        return None
    found = terms(node, dims[:-1])
    if found is None or [len(t) for t in found[0]] != [len(d) for d in dims]:
        return None
    letters, dots = found
    for c in dots:  # with a letter not all runtimes broadcast
        if len({d[t.index(c)] for t, d in zip(letters[:-1], dims) if c in t} - {ONE}) > 1:
            return None
    works, many = [], [{c for c, d in zip(t, ds) if d != ONE} for t, ds in zip(letters, dims)]
    for k, name in enumerate(names):
        out = k == len(node.input)
        work = Work(node, [Operand(name, 0 if out else k, out)])
        for d, c in enumerate(letters[k]):
            unit = problem.unit[name][d]
            work.labels.append(Label(AXIS, group(many, k, c) if len(names) == 3 else 0, {0: d}, {} if unit is None else {0: unit}))
        works.append(work)
    return works
