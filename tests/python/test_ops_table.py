"""The op table src/ops.def holds every op of onnx's own schema list, says nothing of ops that do not exist, and its
attributes and inputs are those of the schemas at the versions that the rows name.

src/schemas.def has every version, attribute, input and output that the installed onnx and onnxruntime have, and nothing else: one
that is new fails here until somebody has looked for what it means to the code that treats the op, and replaced the row."""

import glob
import os
import re
import sys

import onnx
import onnx.defs

import schemas

ROW = re.compile(r'^OP\( (\w+), +"([\w.]*)", +"(\w+)", +(\w+), +"([^"]*)" \)$')
WORD = re.compile(r"^(?:(\d+)\+)?(\w+)(?:@(\d+)|=(-?\d+))?$")
OLDEST, NEWEST = 7, 28
NOT_IN_SCHEMA = {"SimplifiedLayerNormalization"}  # onnxruntime has it in the domain ai.onnx


def read_table(path):
    rows = {}
    with open(path) as f:
        for line in f:
            if line.startswith("OP("):
                m = ROW.match(line)
                assert m, f"not a row: {line!r}"
                ident, domain, kind, cls, roles = m.groups()
                assert (domain, kind) not in rows, f"twice: {line!r}"
                rows[domain, kind] = (cls, [WORD.match(w).groups() for w in roles.split()])
    return rows


def schema_at(kind, version):
    try:
        return onnx.defs.get_schema(kind, version, "")
    except onnx.defs.SchemaError:
        return None


def check_complete(rows):
    """Every op that some opset from OLDEST to NEWEST has, live or since deprecated."""
    history = onnx.defs.get_all_schemas_with_history()
    wanted = {s.name for s in history if s.domain == "" and schema_at(s.name, NEWEST) is not None}
    have = {kind for domain, kind in rows if domain == ""}
    assert not wanted - have, f"no row for {sorted(wanted - have)}"
    known = {s.name for s in history if s.domain == ""} | NOT_IN_SCHEMA
    assert not have - known, f"no such op: {sorted(have - known)}"
    live = {s.name for s in onnx.defs.get_all_schemas() if s.domain == "" and not s.deprecated}
    return len(live)


def word_at(words, name, version):
    """The last word of this name that holds for the version."""
    found = None
    for since, word, slot, default in words:
        if word == name and int(since or 0) <= version:
            found = (slot, default)
    return found


def check_roles(kind, words, version):
    """axis, axes, keepdims ... are attributes or inputs of the schema just as the row says."""
    schema = schema_at(kind, version)
    if schema is None or schema.deprecated:
        return
    where = f"{kind} at opset {version}"
    for name in {w[1] for w in words}:
        word = word_at(words, name, version)
        attr = schema.attributes.get(name)
        if word is None:
            assert attr is None, f"{where}: attribute {name} not in the row"
        elif word[0] is not None:
            assert attr is None, f"{where}: {name} is an attribute"
            assert int(word[0]) < len(schema.inputs), f"{where}: no input {word[0]} for {name}"
        else:
            assert attr is not None, f"{where}: no attribute {name}"
            has_default = attr.default_value.type != onnx.AttributeProto.UNDEFINED
            assert has_default == (word[1] is not None), f"{where}: default of {name}"
            assert not has_default or attr.default_value.i == int(word[1]), f"{where}: default of {name}"
    if words == [] or "axis" not in {w[1] for w in words}:
        return
    axis = word_at(words, "axis", version)
    if axis and axis[0] is not None:
        assert schema.inputs[int(axis[0])].name == "axis", f"{where}: input {axis[0]} is no axis"


def check_axes_inputs(kind, words, version):
    """An input called axes, axis, pads ... is in the row."""
    schema = schema_at(kind, version)
    if schema is None or words == []:
        return
    for slot, formal in enumerate(schema.inputs):
        if formal.name in ("axes", "axis", "starts", "ends", "steps", "pads", "repeats", "split", "indices", "roi", "scales", "sizes"):
            assert word_at(words, formal.name, version) == (str(slot), None), f"{kind} at opset {version}: input {formal.name}"


def check_schemas(root):
    have, wanted = schemas.rows(), schemas.wanted()
    changed = "\n".join(schemas.written(key, *row) for key, row in sorted(wanted.items()) if have.get(key) != row)
    assert not changed, f"not as src/schemas.def has it; look for what is new in the code, then replace:\n{changed}"
    assert not have.keys() - wanted.keys(), f"no such op: {sorted(have.keys() - wanted.keys())}"
    with open(os.path.join(root, "src", "schema.c")) as f:
        newest = {d: int(v) for d, v in re.findall(r'\{"([\w.]*)", (\d+)\}', f.read())}
    read = {d: max(s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.domain == d) for d, _ in have if d != "com.microsoft"}
    assert newest == read | {"": onnx.defs.onnx_opset_version(), "com.microsoft": 1}, f"versions that were read: {newest}, there are: {read}"
    assert {d: v for d, (_, v) in schemas.COVERED.items()} == {d: newest[d] for d in schemas.COVERED}, "scripts/proof/schemas.py"


def check_kernels(root):
    """A kernel of an op that no row knows would never run."""
    rows = schemas.rows()
    for path in glob.glob(os.path.join(root, "runtime", "*.def")) + glob.glob(os.path.join(root, "cuda", "*.def")):
        with open(path) as f:
            for domain, kind in re.findall(r'^KERNEL\("([\w.]*)", (\w+),', f.read(), re.M):
                assert (domain, kind) in rows, f"{path}: {domain}::{kind}"


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    check_schemas(root)
    check_kernels(root)
    rows = read_table(os.path.join(root, "src", "ops.def"))
    live = check_complete(rows)
    if onnx.defs.onnx_opset_version() == NEWEST:
        assert live == 201, live
    for (domain, kind), (cls, words) in rows.items():
        if domain == "" and kind not in NOT_IN_SCHEMA:
            for version in range(OLDEST, NEWEST + 1):
                check_roles(kind, words, version)
                check_axes_inputs(kind, words, version)
    print(f"{len(rows)} rows, {live} live ops: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
