"""Rows of src/schemas.def as onnx's and onnxruntime's own schemas have them.

    schemas.py    prints what the rows should be, for those that differ"""

import collections
import os
import sys

import onnx.defs

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))

from proof.schemas import COVERED, ops_by_id, rows  # noqa: E402, F401

KIND = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "FLOATS": "F", "INTS": "I", "STRINGS": "S"}
MANY = 2**31 - 1


def needed(schema):
    """How many of the first inputs must be there."""
    optional = [i for i, x in enumerate(schema.inputs) if x.option == onnx.defs.OpSchema.FormalParameterOption.Optional]
    return min(optional + [schema.min_input])


def words_of(schemas):
    """In which versions the op has which inputs, outputs and attributes; the first version stands for those before it too."""
    schemas = sorted(schemas, key=lambda s: s.since_version)
    at = [s.since_version for s in schemas]
    words = []

    def put(name, values):
        for i, value in enumerate(values):
            if value is None or (i and values[i - 1] == value):
                continue
            end = next((v for v, other in zip(at[i:], values[i:]) if other != value), None)
            words.append((f"{at[i]}+" if i else "") + name + value + (f"<{end}" if end else ""))

    def most(n):
        return "*" if n == MANY else str(n)

    least = [needed(s) for s in schemas]
    for i in reversed(range(len(least) - 1)):
        least[i] = min(least[i], least[i + 1])
    put("in=", [most(s.max_input) if n == s.max_input or (n, s.max_input) == (0, MANY) else f"{n}-{most(s.max_input)}" for n, s in zip(least, schemas)])
    put("out=", [most(s.max_output) for s in schemas])
    for name in sorted({a for s in schemas for a in s.attributes}):
        put(name + ":", [KIND.get(str(s.attributes[name].type).rsplit(".", 1)[-1], "o") if name in s.attributes else None for s in schemas])
    return " ".join(str(v) for v in at), " ".join(words)


def by_op(schemas):
    found = collections.defaultdict(list)
    for s in schemas:
        found[s.domain, s.name].append(s)
    return found


def wanted():
    """The rows as the installed packages have them: all ops of onnx, and of onnxruntime's those that src/ops.def names."""
    import onnxruntime.capi.onnxruntime_pybind11_state as ort

    mine, theirs = by_op(onnx.defs.get_all_schemas_with_history()), by_op(ort.get_all_operator_schema())
    keys = set(mine) | set(ops_by_id().values())
    return {key: words_of(mine.get(key) or theirs[key]) for key in keys}


def written(key, versions, words):
    ident = next((i for i, k in ops_by_id().items() if k == key), None)
    head = f"SCHEMA( {ident}," if ident else f'SCHEMA_OTHER( "{key[0]}", "{key[1]}",'
    lines, line = [], f'{head} "{versions}", "'
    for word in words.split():
        if len(line) + len(word) > 134:
            lines, line = lines + [line + '"'], '    "'
        line += word + " "
    return "\n".join(lines + [line.rstrip() + '" )'])


def main():
    have = rows()
    for key, row in sorted(wanted().items()):
        if have.get(key) != row:
            print(written(key, *row))


if __name__ == "__main__":
    sys.exit(main())
