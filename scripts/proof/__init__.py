"""The second checker of certificates (docs/proof.md); scripts/check_proof.py runs it.

    text.py     the file: parse and structure
    bound.py    cost of the assignment, and the least cost of each component
    model.py    an ONNX model: constants, sizes, the nodes that matter
    sizes.py    sizes of all tensors, unknown ones as numbers that cannot be mistaken
    labels.py   what each op works on: its dims, which may move (the tables of the problem)
    atoms.py    dims cut into atoms, tensors joined into values
    forms.py    tokens, groups and forms of each op
    compare.py  the problem of the file against the one that was rebuilt; the Transposes of the result

Nothing here runs relayout or reads its sources; onnx and numpy are all it needs.
"""


class Refused(Exception):
    """The certificate does not hold, and why."""
