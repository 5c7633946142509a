#!/usr/bin/env python3
"""The loader and writer alone (tests/unit/onnx_roundtrip.c), on every model at hand: the ONNX backend suite, the sample cases,
the models of this folder.

  schema    proto/onnx.proto has every message, field, number, type and label of the onnx package's descriptors, and no other
  same      a model that nobody touched comes back byte for byte
  repack    nodes, attributes, initializers and bodies packed anew mean the same
  new       a model made from the graph alone: the same nodes and constants, and onnx.checker accepts it
  edit      a node put into each graph: onnx.checker accepts it where it accepted the original; outputs of some are the same
  beside    external data goes along to another folder, is never overwritten, and is left where it is in the same folder
  heads     onnx's inference gets through an Attention whose operands were made to have heads and their size in one dim, of open sizes
"""
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor as F
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import common

CHUNK = 200


# ---------------------------------------------------------------------------------------------------------- the schema

def schema_of_file(path):
    """{(message, field): (label, type, number, packed)} and {enum: {name: number}} of a .proto file."""
    fields, enums, stack = {}, {}, []
    for line in path.read_text().splitlines():
        line = line.split("//")[0].strip()
        if m := re.match(r"(message|enum|oneof) (\w+) \{", line):
            stack.append(m.groups())
        elif line == "}":
            stack.pop()
        elif stack and stack[-1][0] == "enum" and (m := re.match(r"(\w+) = (\d+);", line)):
            enums.setdefault(".".join(n for _, n in stack), {})[m[1]] = int(m[2])
        elif stack and (m := re.match(r"(?:(optional|repeated) )?(\w+) (\w+) = (\d+)( \[packed = true\])?;", line)):
            name = ".".join(n for k, n in stack if k == "message")
            fields[name, m[3]] = (m[1] or "optional", m[2], int(m[4]), bool(m[5]))
    return fields, enums


def schema_of_package():
    fields, types = {}, {v: k[5:].lower() for k, v in vars(F).items() if k.startswith("TYPE_")}

    def add(d, prefix):
        for f in d.fields:
            kind = f.message_type.name if f.message_type else f.enum_type.name if f.enum_type else types[f.type]
            fields[prefix + d.name, f.name] = ("repeated" if f.is_repeated else "optional", kind, f.number, bool(f.GetOptions().packed))
        for n in d.nested_types:
            add(n, prefix + d.name + ".")

    for d in onnx.onnx_ml_pb2.DESCRIPTOR.message_types_by_name.values():
        add(d, "")
    return fields


def test_schema():
    got, enums = schema_of_file(common.ROOT / "proto" / "onnx.proto")
    want = schema_of_package()
    wrong = [f"{k[0]}.{k[1]}: {got.get(k)} instead of {want.get(k)}" for k in sorted(set(got) | set(want)) if got.get(k) != want.get(k)]
    for name, pb in (("AttributeProto.AttributeType", AttributeProto.AttributeType), ("TensorProto.DataLocation", TensorProto.DataLocation)):
        if enums.get(name) != dict(pb.items()):
            wrong.append(f"{name}: {enums.get(name)}")
    return wrong


# ---------------------------------------------------------------------------------------------------------- models

def write_backend(folder):
    """Every model of the backend suite as a file."""
    warnings.simplefilter("ignore")
    from onnx.backend.test.loader import load_model_tests
    paths = []
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator", "real"):
        for c in load_model_tests(kind=kind):
            file = Path(c.model_dir) / "model.onnx" if c.model is None and c.model_dir else None
            if file is not None and file.exists():
                paths.append(file)
            elif c.model is not None:
                paths.append(folder / f"{kind}_{c.name}.onnx")
                onnx.save(c.model, paths[-1])
    return paths


def odd_models():
    """What the suites lack: typed data fields of every type, external data, functions, sparse, nested bodies, training."""
    yield "typed", typed_data()
    yield "ops", odd_fields()
    yield "nested", nested()
    yield "sparse", sparse()
    yield "unsorted", unsorted()
    yield "old", model_of([helper.make_node("Add", ["x", "w"], ["y"])], [info("x"), info("w", [3])], [info("y")],
                          [helper.make_tensor("w", 1, [3], [1, 2, 3])], ir=3, opset=8)


def model_of(nodes, inputs, outputs, inits=(), ir=14, opset=21, **more):
    g = helper.make_graph(nodes, "g", inputs, outputs, initializer=list(inits))
    return helper.make_model(g, ir_version=ir, opset_imports=[helper.make_opsetid("", opset)], **more)


def info(name, shape=(2, 3), t=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, t, shape)


def typed_data():
    inits = []
    for t in range(1, 27):
        if t in (TensorProto.STRING,):
            continue
        np_type = helper.tensor_dtype_to_np_dtype(t)
        x = np.array([0, 1, 2, 1, 3, 0, 1][:7]).astype(np_type) if t != TensorProto.FLOAT8E8M0 else np.array([1, 2, 4, 1, 2, 1, 2], np.float32).astype(np_type)
        inits.append(numpy_helper.from_array(x, f"raw{t}"))
        try:
            inits.append(helper.make_tensor(f"typed{t}", t, [7], x.tolist() if x.dtype.kind == "c" else x.astype(np.float64).tolist()))
        except Exception:
            pass
    single = TensorProto(name="single", data_type=TensorProto.INT64, dims=[3])
    single.int64_data.extend([-1, 300, -(2 ** 63)])
    inits.append(single)
    inits.append(helper.make_tensor("str", TensorProto.STRING, [2], [b"a", b"\xff\0b"]))
    inits.append(helper.make_tensor("scalar", TensorProto.FLOAT, [], [5.0]))
    inits.append(helper.make_tensor("none", TensorProto.FLOAT, [0, 3], []))
    return model_of([helper.make_node("Relu", ["x"], ["y"])], [info("x")], [info("y")], inits)


def odd_fields():
    n = helper.make_node("Relu", ["x"], ["h"], name="r", doc_string="doc\0doc")
    e = n.metadata_props.add()
    e.key, e.value = "k", "v\0w"
    d = n.device_configurations.add()
    d.configuration_id = "dev"
    s = d.sharding_spec.add()
    s.tensor_name = "x"
    f = helper.make_function("my", "F", ["a"], ["b"], [helper.make_node("Abs", ["a"], ["b"])], [helper.make_opsetid("", 21)])
    nodes = [n, helper.make_node("F", ["h"], ["y"], domain="my"),
             helper.make_node("Thing", ["y", "", ""], ["", "z"], domain="com.acme", f=1.5, i=-3, s=b"\0\xff", fs=[1.0, 2.0], ints=[1, -1], ss=["a", "b"],
                              t=helper.make_tensor("t", TensorProto.FLOAT16, [2], [1, 2]),
                              ts=[helper.make_tensor("t", TensorProto.FLOAT, [2], [1, 2])])]
    m = model_of(nodes, [info("x", ("N", None))], [info("z", None)], functions=[f])
    m.opset_import.extend([helper.make_opsetid("my", 1), helper.make_opsetid("com.acme", 3)])
    m.graph.value_info.extend([info("h", ("N", "M")), info("gone")])
    c = m.configuration.add()
    c.name, c.num_devices = "dev", 2
    m.metadata_props.add().key = "meta"
    return onnx.ModelProto.FromString(m.SerializeToString() + b"\xa2\x3e\x03abc\xaa\x3e\x02\x08\x01")  # unknown fields 996 and 997


def nested():
    def branch(name, inner):
        return helper.make_graph(inner, name, [], [info(name + "_o")], initializer=[helper.make_tensor(name + "_w", 1, [3], [1, 2, 3])])
    deep = branch("deep", [helper.make_node("Add", ["x", "deep_w"], ["deep_t"]), helper.make_node("Add", ["deep_t", "h"], ["deep_o"])])
    flat = branch("flat", [helper.make_node("Mul", ["h", "flat_w"], ["flat_o"])])
    outer = branch("outer", [helper.make_node("If", ["c"], ["outer_o"], then_branch=deep, else_branch=flat)])
    other = branch("other", [helper.make_node("Neg", ["h"], ["other_o"])])
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("If", ["c"], ["y"], then_branch=outer, else_branch=other)]
    return model_of(nodes, [info("x"), info("c", (), TensorProto.BOOL)], [info("y")])


def sparse():
    m = model_of([helper.make_node("Add", ["x", "s"], ["y"])], [info("x")], [info("y")])
    s = m.graph.sparse_initializer.add()
    s.values.CopyFrom(helper.make_tensor("s", TensorProto.FLOAT, [2], [1, 2]))
    s.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, [2], [1, 2]))
    s.dims.extend([2, 3])
    return m


def unsorted():
    return model_of([helper.make_node("Relu", ["b"], ["y"]), helper.make_node("Abs", ["x"], ["b"])], [info("x")], [info("y")])


# ---------------------------------------------------------------------------------------------------------- meaning

def tensor_of(t):
    if t.data_location == TensorProto.EXTERNAL or t.HasField("segment") or t.data_type > 26:
        return t.SerializeToString(deterministic=True)
    if t.data_type == TensorProto.STRING:
        return t.name, tuple(t.dims), tuple(t.string_data)
    packed = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}.get(t.data_type)
    if t.HasField("raw_data"):
        data = t.raw_data
    elif packed:
        data = bytes(x & 255 for x in t.int32_data)
    else:
        data = numpy_helper.to_array(t).tobytes()
    return t.name, t.data_type, tuple(t.dims), data


def attr_of(a):
    if a.type == AttributeProto.TENSOR:
        t = TensorProto()
        t.CopyFrom(a.t)
        t.ClearField("name")  # names of attribute tensors mean nothing
        return a.name, tensor_of(t)
    if a.type == AttributeProto.GRAPH:
        return a.name, graph_of(a.g)
    b = AttributeProto()
    b.CopyFrom(a)
    b.ClearField("doc_string")
    return a.name, b.SerializeToString(deterministic=True)


def node_of(n, loose):
    rest = onnx.NodeProto()
    rest.CopyFrom(n)
    for f in ("input", "output", "name", "op_type", "domain", "attribute"):
        rest.ClearField(f)
    return (list(n.input), list(n.output), n.name, n.op_type, n.domain.replace("ai.onnx", "", 1) if n.domain == "ai.onnx" else n.domain,
            [attr_of(a) for a in n.attribute], b"" if loose else rest.SerializeToString(deterministic=True))


def graph_of(g, loose=False):
    rest = onnx.GraphProto()
    rest.CopyFrom(g)
    for f in ("node", "initializer"):
        rest.ClearField(f)
    # A type declared for a value that nothing makes goes, as soon as the graph is written anew.
    made = {o for n in g.node for o in n.output} | {v.name for v in g.input} | {t.name for t in g.initializer}
    hints = [v for v in rest.value_info if v.name in made]
    del rest.value_info[:]
    rest.value_info.extend(hints)
    nodes = sorted((node_of(n, loose) for n in g.node), key=repr)
    return nodes, sorted((tensor_of(t) for t in g.initializer), key=repr), b"" if loose else rest.SerializeToString(deterministic=True)


def same_meaning(a, b):
    x, y = onnx.load(a, load_external_data=False), onnx.load(b, load_external_data=False)
    if graph_of(x.graph) != graph_of(y.graph):
        return "the graph differs"
    x.ClearField("graph"), y.ClearField("graph")
    return "" if x.SerializeToString(deterministic=True) == y.SerializeToString(deterministic=True) else "the model differs"


def same_graph(a, b):
    """Nodes only: a model made anew has no value_info, documentation, functions."""
    x, y = (onnx.load(p, load_external_data=False) for p in (a, b))
    strip = lambda g: [n[:5] for n in graph_of(g, True)[0]]
    if strip(x.graph) != strip(y.graph):
        return "the nodes differ"
    tensors = all(v.type.WhichOneof("value") == "tensor_type" for v in (*x.graph.input, *x.graph.output))
    inits = len(y.graph.initializer) == len(x.graph.initializer)  # strings have no bytes in the graph
    if common.checker_error(a) or not tensors or not inits or x.functions or x.graph.sparse_initializer:
        return ""
    return common.checker_error(b)


def valid_edit(a, b):
    x = onnx.load(a, load_external_data=False)
    for full in (False, True):
        if common.checker_error(a, full) == "" and (why := common.checker_error(b, full)):
            return why
    if Path(a).stem in ("odd_nested", "odd_old"):
        given = common.random_inputs(x, dims={"": 2})
        return common.compare(common.run_reference(x, given), common.run_reference(b, given), exact=True).why
    return ""


# ---------------------------------------------------------------------------------------------------------- the runs

def run(prog, *args):
    p = subprocess.run([prog, *map(str, args)], capture_output=True, text=True, errors="replace")
    return p.returncode, (p.stdout + p.stderr).strip()


def test_same(prog, paths):
    bad = []
    for i in range(0, len(paths), CHUNK):
        status, out = run(prog, *paths[i:i + CHUNK])
        if status:
            bad += out.splitlines()[:-1] or [out or f"status {status}"]
    return bad


def test_packed(prog, paths, mode, compare, tmp):
    bad, out = [], tmp / "out.onnx"
    for p in paths:
        status, text = run(prog, mode, p, out)
        why = text or f"status {status}" if status else compare(p, out)
        if why:
            bad.append(f"{p}: {why}")
    return bad


def external_model(path, location):
    path.parent.mkdir(parents=True, exist_ok=True)
    w = np.arange(6, dtype=np.float32)
    t = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for k, v in (("location", location), ("offset", "8"), ("length", "24")):
        e = t.external_data.add()
        e.key, e.value = k, v
    m = model_of([helper.make_node("Add", ["x", "w"], ["y"])], [info("x")], [info("y")], [t])
    path.write_bytes(m.SerializeToString())
    data = path.parent / location
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_bytes(b"12345678" + w.tobytes())
    return data


def test_beside(prog, tmp):
    bad = []

    def want(ok, what):
        if not ok:
            bad.append(what)

    src, data = tmp / "a" / "m.onnx", external_model(tmp / "a" / "m.onnx", "data/w.bin")
    (tmp / "b").mkdir()
    status, text = run(prog, "-w", src, tmp / "b" / "m.onnx")
    want(status == 0 and (tmp / "b/data/w.bin").read_bytes() == data.read_bytes(), f"not copied: {text}")
    status, text = run(prog, "-w", src, tmp / "b" / "again.onnx")
    want(status == 0, f"the same data in place refused: {text}")
    (tmp / "b/data/w.bin").write_bytes(b"mine")
    status, text = run(prog, "-w", src, tmp / "b" / "third.onnx")
    want(status == 3 and (tmp / "b/data/w.bin").read_bytes() == b"mine" and not (tmp / "b/third.onnx").exists(), f"overwritten: {text}")
    status, text = run(prog, "-w", src, tmp / "a" / "copy.onnx")
    want(status == 0 and sorted(p.name for p in (tmp / "a").iterdir()) == ["copy.onnx", "data", "m.onnx"], f"same folder: {text}")
    status, text = run(prog, "-r", src, tmp / "c.onnx")  # packed anew: the data is inside
    want(status == 0 and not (tmp / "data").exists() and numpy_helper.to_array(onnx.load(tmp / "c.onnx").graph.initializer[0]).sum() == 15, f"inline: {text}")
    status, text = run(prog, "-w", src, tmp / "nowhere" / "m.onnx")
    want(status == 3 and not (tmp / "nowhere").exists(), f"missing folder: {text}")
    return bad


def test_heads(relayout, tmp):
    """Two heads of the key and of the value for each of the query: their sizes are computed, and inference does not follow."""
    ints = lambda name, *x: numpy_helper.from_array(np.array(x, np.int64), name)
    nodes = [helper.make_node("Shape", ["x"], ["n"], start=0, end=2), helper.make_node("Concat", ["n", "four", "eight"], ["apart"], axis=0)]
    nodes += [helper.make_node("Slice", ["n", "zero", "one"], ["b"]), helper.make_node("Slice", ["n", "one", "two"], ["s"]),
              helper.make_node("Concat", ["b", "two", "two", "s", "eight"], ["wide"], axis=0), helper.make_node("Concat", ["b", "four", "s", "eight"], ["all"], axis=0)]
    for name, heads in (("q", "apart"), ("k", "half"), ("v", "half")):
        nodes += [helper.make_node("MatMul", ["x", "w" + name], [name]), helper.make_node("Reshape", [name, heads], [name + "4"]),
                  helper.make_node("Transpose", [name + "4"], [name + "t"], perm=[0, 2, 1, 3])]
    nodes.insert(2, helper.make_node("Concat", ["n", "two", "eight"], ["half"], axis=0))
    for name in "kv":
        nodes += [helper.make_node("Unsqueeze", [name + "t", "two"], [name + "5"]), helper.make_node("Expand", [name + "5", "wide"], [name + "e"]),
                  helper.make_node("Reshape", [name + "e", "all"], [name + "a"])]
    nodes += [helper.make_node("Attention", ["qt", "ka", "va"], ["a"]), helper.make_node("Transpose", ["a"], ["t"], perm=[0, 2, 1, 3]),
              helper.make_node("Concat", ["n", "last"], ["flat"], axis=0), helper.make_node("Reshape", ["t", "flat"], ["y2"]), helper.make_node("MatMul", ["y2", "wy"], ["y"])]
    weights = [numpy_helper.from_array(np.ones(d, np.float32), n) for n, d in (("wq", (32, 32)), ("wk", (32, 16)), ("wv", (32, 16)), ("wy", (32, 32)))]
    m = model_of(nodes, [info("x", ("b", "s", 32))], [info("y", ("b", "s", 32))],
                 weights + [ints("zero", 0), ints("one", 1), ints("two", 2), ints("four", 4), ints("eight", 8), ints("last", -1)], opset=23)
    onnx.checker.check_model(m, full_check=True)
    onnx.save(m, tmp / "heads.onnx")
    status, text = run(relayout, "optimize", tmp / "heads.onnx", "-o", tmp / "out.onnx", "--target", "onnx", "-q")
    if status:
        return [text]
    out = onnx.load(tmp / "out.onnx")
    left = sum(n.op_type == "Transpose" for n in out.graph.node)
    try:
        onnx.checker.check_model(out, full_check=True)
    except Exception as e:
        return [f"the result is refused: {e}"]
    return [f"{left} Transposes are left"] if left else []


def main():
    args = common.arguments(__doc__)
    args.add_argument("--roundtrip", type=Path, help="the program (default: BUILD/tests/onnx_roundtrip)")
    args.add_argument("--fraction", type=float, default=0.25, help="of the models that are packed anew (default: 0.25)")
    args.add_argument("files", nargs="*", type=Path, help="these models instead")
    args = args.parse_args()
    prog = str((args.roundtrip or args.build / "tests" / "onnx_roundtrip").resolve())
    npass = nfail = 0
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        paths = list(args.files)
        if not paths:
            (tmp / "suite").mkdir()
            paths = write_backend(tmp / "suite") + sorted(common.SHARED.glob("cases/*.onnx")) + sorted(common.ROOT.glob("models/*.onnx"))
            for name, m in odd_models():
                paths.append(tmp / "suite" / f"odd_{name}.onnx")
                onnx.save(m, paths[-1])
        few = paths[::max(1, round(1 / args.fraction))]
        (tmp / "out").mkdir()
        for name, n, bad in (("schema", 1, test_schema()), ("same", len(paths), test_same(prog, paths)),
                             ("repack", len(few), test_packed(prog, few, "-r", same_meaning, tmp / "out")),
                             ("new", len(few), test_packed(prog, few, "-n", same_graph, tmp / "out")),
                             ("edit", len(few), test_packed(prog, few, "-e", valid_edit, tmp / "out")), ("beside", 1, test_beside(prog, tmp)),
                             ("heads", 1, test_heads(str((args.build / "relayout").resolve()), tmp))):
            for b in bad[:40]:
                print(f"{name}: {b}")
            print(f"{name}: {n} models, {len(bad)} wrong")
            npass, nfail = npass + max(0, n - len(bad)), nfail + len(bad)
    return common.closing(npass, nfail)


if __name__ == "__main__":
    sys.exit(main())
