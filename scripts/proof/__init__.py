"""The second checker of certificates (docs/proof.md); scripts/check_proof.py runs it.

    text.py     the file: parse and structure
    bound.py    cost of the assignment, configurations, and the claim's sums
    table.py    whether a component can be had for less
    model.py    an ONNX model: constants, sizes, the nodes that matter
    symbols.py  unknown sizes as numbers that cannot be mistaken
    sizes.py    sizes of all tensors, in two worlds of such numbers; world.py: in one of them; bodies.py: what If, Loop and Scan give
    contents.py what ops make of small tensors that are known
    flat.py     bodies and what is around them as one sequence of nodes; links.py: what crosses the border of a body
    calls.py    what calls of model-local functions make
    sequences.py sequences whose elements are known
    equation.py Einsum's; einsum.py: what it works on
    labels.py   what each op works on: its dims, which may move (the tables of the problem)
    atoms.py    dims cut into atoms, tensors joined into values
    target.py   what a target has and charges; charges.py: what it charges an op
    forms.py    tokens, groups and forms of each op
    formula.py  sizes as the file writes unknown ones
    compare.py  the problem of the file against the one that was rebuilt; the Transposes of the result

Nothing here runs relayout; onnx and numpy are all it needs.
"""


class Refused(Exception):
    """The certificate does not hold, and why."""

