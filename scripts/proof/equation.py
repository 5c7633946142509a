"""Equations of Einsum, with a letter for each dim:

    ...ij,...jk     of ranks 4 and 3: abij,bjk->abik, as ... is right-aligned, and a result that is not told has the letters that come once
"""
import re

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
TERM = re.compile(r"(?: |[A-Za-z])*(?:\.\.\.(?: |[A-Za-z])*)?")


def terms(node, dims):
    """A letter for each dim of each input and of the result, and the letters that ... stands for; None: the equation does not say.
    dims: of each input."""
    equation = node.attr("equation")
    if isinstance(equation, bytes):
        equation = equation.decode("latin-1")
    if not isinstance(equation, str) or len(node.output) != 1 or not node.input or any(d is None for d in dims):
        return None
    left, arrow, right = equation.partition("->")
    parts = left.split(",")
    if len(parts) != len(dims) or not all(TERM.fullmatch(p) for p in parts + [right]):
        return None
    parts, right = [p.replace(" ", "") for p in parts], right.replace(" ", "")
    dots = [len(d) - len(p.replace("...", "")) for p, d in zip(parts, dims)]
    if any(n < 0 or (n and "..." not in p) for p, n in zip(parts, dots)):
        return None
    used = "".join(parts).replace(".", "")
    spare = [c for c in LETTERS if c not in used][:max(dots)]
    if len(spare) < max(dots):
        return None
    if not arrow:
        right = "..." * any("..." in p for p in parts) + "".join(sorted(c for c in set(used) if used.count(c) == 1))
    plain = right.replace("...", "")
    if len(set(plain)) != len(plain) or not set(plain) <= set(used):
        return None
    if ("..." in right and not any("..." in p for p in parts)) or (spare and "..." not in right):
        return None
    spread = lambda p, n: p.replace("...", "".join(spare[len(spare) - n:]))
    return [spread(p, n) for p, n in zip(parts, dots)] + [spread(right, len(spare))], spare


def permutation(node, sizes):
    """Of an Einsum of one operand that only permutes its dims: the perm of the Transpose that it is."""
    found = terms(node, [sizes.dims.get(node.input[0])])
    if found is None or len(found[0][0]) != len(found[0][1]):
        return None
    return [found[0][0].index(c) for c in found[0][1]]
