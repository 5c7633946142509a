#!/usr/bin/env python3
"""`relayout explain`: every reason names a real path of the model, and both ends of it demand what is said.

  test_explain.py               texts (tests/explain/), sample models, sample cases, random models
  test_explain.py vit detr      sample models whose name contains one of these, and nothing else
  test_explain.py --update      writes the texts that come out over those that were expected

The model is read here with onnx alone.  Each path is walked in it: nodes and tensors exist and are joined.  The needs of the ops
are looked up in a table of this file.  Where one end of a path wants one order only, the clash itself is checked by numbers: the
place in memory of each element is carried along the path, and at the other end the order that it has must not be one that the op
takes; with the change that explain proposes (a graph input or a Conv in another order) it must be.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import common
import graphgen
import zoo

TEXTS = common.ROOT / "tests" / "explain"
IMAGES = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "Resize", "DepthToSpace", "SpaceToDepth", "InstanceNormalization",
          "GlobalAveragePool", "BatchNormalization", "LRN"}
BODIES = {"If", "Loop", "Scan"}                                          # what these read in a body is no input
FIXED = IMAGES | BODIES | {"LSTM", "GRU", "RNN", "Einsum"}  # these may be named as taking one order
PRODUCTS = {"MatMul", "Gemm"}
NORMS = {"LayerNormalization", "RMSNormalization", "SkipLayerNormalization", "SimplifiedLayerNormalization"}
VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
MOVES = VIEWS | {"Transpose"}
BLOCKS = {"Softmax", "LogSoftmax", "Pad", "Slice", "CumSum"}             # [their axis] together
OLD = {"Softmax", "LogSoftmax"}                                          # before opset 13 of all dims from the axis on
FREE = {"Add", "Sub", "Mul", "Div", "Relu", "Sigmoid", "Clip", "Erf", "Tanh", "HardSwish", "HardSigmoid", "Cast", "LeakyRelu", "Neg", "Sqrt",
        "Exp", "Pow", "Gelu", "BatchNormalization", "Min", "Max", "Where", "PRelu", "Elu", "Abs"}
LETTERS = {3: "NCW", 4: "NCHW", 5: "NCDHW"}
BIGGEST = 4_000_000  # elements of a tensor whose places are carried along


class Model:
    """Names and joins of a model as the user has it."""

    def __init__(self, proto):
        g = proto.graph
        self.opset = max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)
        self.nodes = {(n.name or None, n.op_type, next((o for o in n.output if o), None)): n for n in g.node}
        self.maker = {o: n for n in g.node for o in n.output if o}
        self.inputs, self.outputs = [i.name for i in g.input], [o.name for o in g.output]
        self.tensors = set(self.inputs) | set(self.maker) | {t.name for t in g.initializer}
        self.const = {t.name: t for t in g.initializer}
        self.shape, self.rank = {}, {}
        self.bodies = any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for n in g.node for a in n.attribute)
        for v in [*g.input, *g.output, *g.value_info]:
            dims = v.type.tensor_type.shape.dim if v.type.tensor_type.HasField("shape") else None
            if dims is not None:
                self.rank[v.name] = len(dims)
            if dims is not None and all(d.HasField("dim_value") for d in dims):
                self.shape[v.name] = tuple(d.dim_value for d in dims)
        for t in g.initializer:
            self.shape[t.name] = tuple(t.dims)

    def node(self, x):
        return self.nodes.get((x["name"], x["op"], x["output"]))


def load(path):
    proto = common.light(onnx.load(path))
    try:
        return Model(common.infer(proto))
    except Exception:
        return Model(proto)


def attribute(node, name, default):
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


# ---------------------------------------------------------------------------------------------------- places in memory

def carried(model, steps, places):
    """The places of the elements of the path's last tensor, from those of its first; None where this file cannot tell."""
    names = [s["tensor"] for s in steps if "tensor" in s]
    nodes = {}
    last = None
    for s in steps:  # the nodes between a tensor and the next
        if "tensor" in s:
            last = s["tensor"]
        elif last is not None:
            nodes.setdefault(last, s)
    for a, b in zip(names, names[1:]):
        node, shape = model.node(nodes[a]), model.shape.get(b)
        if shape is None or a not in model.shape:
            return None
        forward = a in node.input and b in node.output
        if node.op_type == "Transpose":
            perm = list(attribute(node, "perm", range(places.ndim)[::-1]))
            places = places.transpose(perm if forward else np.argsort(perm))
        elif node.op_type in VIEWS and int(np.prod(shape)) == places.size:
            places = places.reshape(shape)
        elif node.op_type not in FREE or places.shape != shape:
            return None
    return places


def in_order(places):
    flat = places.reshape(-1)
    return bool(np.all(flat[1:] > flat[:-1]))


def takes(model, node, places):
    """Whether the op takes a tensor that lies so; None where this file does not know."""
    if node is None or node.op_type in FIXED:
        return in_order(places)
    if node.op_type in NORMS:
        axis = attribute(node, "axis", -1) % places.ndim
        rows = places.reshape(int(np.prod(places.shape[:axis])), -1)
        return bool(np.all(rows.max(1) - rows.min(1) == rows.shape[1] - 1))
    if node.op_type in OLD and model.opset >= 13:
        steps = np.diff(places, axis=attribute(node, "axis", -1))
        return steps.size == 0 or bool(np.all(steps == steps.flat[0]))
    return None


def end_of(model, demand):
    return model.node(demand["node"]) if demand["node"] else None


def wants_one(demand):
    return demand["what"] in ("input", "output", "fixed")


def logical(shape):
    return np.arange(int(np.prod(shape))).reshape(shape)


def lying(shape, axes):
    """Places of a tensor that lies in this order of its axes."""
    places = np.empty(shape, dtype=np.int64)
    places.transpose(axes)[...] = np.arange(int(np.prod(shape))).reshape([shape[a] for a in axes])
    return places


def axes_in(order, rank, letters):
    """The axes of "N,H,W,C" or "0,2,3,1"; None where pieces lie apart."""
    names = order.split(",")
    axes = [LETTERS[rank].find(x) if letters else int(x) if x.isdigit() else -1 for x in names]
    return axes if sorted(axes) == list(range(rank)) else None


def check_numbers(model, c):
    """What is wrong with a pair, and how many statements were checked by numbers."""
    path, ends, bad, n = c["paths"][0]["steps"], c["demands"], [], 0
    names = [s["tensor"] for s in path if "tensor" in s]
    if not ends[0]["tensors"][0] == names[0]:
        ends = ends[::-1]
    if not wants_one(ends[0]):
        path, ends, names = path[::-1], ends[::-1], names[::-1]
    shape = model.shape.get(names[0])
    if not wants_one(ends[0]) or shape is None or not 0 < np.prod(shape) <= BIGGEST or ends[0]["tensors"] != [names[0]] or ends[1]["tensors"] != [names[-1]]:
        return bad, n
    far = lambda places: None if (p := carried(model, path, places)) is None else takes(model, end_of(model, ends[1]), p)
    fits = far(logical(shape))
    if fits is None:
        return bad, n
    n += 1
    if fits:
        bad.append(f"'{c['tensor']}': its two demands do not clash")
    for r in c["removed_by"]:
        order = None
        if r["kind"] in ("input-layout", "output-layout") and r["tensor"] == names[0]:
            order = axes_in(r["axes"], len(shape), False)
        elif r["kind"] == "target-order" and r["tensor"] == names[0] and len(shape) in LETTERS:
            order = axes_in(r["order"], len(shape), True)
        if order:
            n += 1
            if not far(lying(shape, order)):
                bad.append(f"'{c['tensor']}': {r['kind']} {order} of '{r['tensor']}' does not remove it")
    return bad, n


# ---------------------------------------------------------------------------------------------------- one model

def check_path(model, way):
    """Nodes and tensors take turns, exist, and each tensor is read or made by the nodes on both its sides."""
    bad, steps = [], way["steps"]
    for s in steps:
        if "tensor" in s and s["tensor"] not in model.tensors:
            bad.append(f"no tensor '{s['tensor']}'")
        if "tensor" not in s and model.node(s) is None:
            bad.append(f"no node {s}")
    for a, b in zip(steps, steps[1:]):
        if ("tensor" in a) == ("tensor" in b):
            bad.append(f"nothing between {a} and {b}")
            continue
        node, tensor = (b, a) if "tensor" in a else (a, b)
        n = model.node(node)
        if n is not None and n.op_type not in BODIES and tensor["tensor"] not in [*n.input, *n.output]:
            bad.append(f"'{tensor['tensor']}' is no tensor of {node}")
    if way["loop"] and steps and steps[0] != steps[-1]:
        bad.append("a loop that does not close")
    return bad


def check_demand(model, d, on_path):
    node, op = None, d["node"] and d["node"]["op"]
    if d["what"] in ("input", "output"):
        known = model.inputs if d["what"] == "input" else model.outputs
        return [] if d["tensors"][0] in known else [f"'{d['tensors'][0]}' is no graph {d['what']}"]
    node = model.node(d["node"])
    if node is None:
        return [f"no node {d['node']}"]
    bad = [f"'{t}' is no tensor of {d['node']}" for t in d["tensors"] if t not in [*node.input, *node.output] and op not in BODIES]
    if d["node"]["output"] not in on_path:
        bad.append(f"{d['node']} is on no path")
    for way in d["ways"]:
        for need, tensor in zip(way, d["tensors"]):
            if d["what"] == "fixed" and op in ("Conv", "ConvTranspose") and need[0].isalpha() and tensor in model.rank:
                right = need.split(", which is ")[0] == ",".join(LETTERS[model.rank[tensor]])
            elif d["what"] == "form" and op in NORMS:
                right = need.endswith(" last")
            elif d["what"] == "form" and op in BLOCKS and not (op in OLD and model.opset < 13):
                right = re.fullmatch(r"(\[.*\] together|any order)", need)
            else:
                right = d["what"] != "form" or op not in FIXED
            if not right:
                bad.append(f"{op} does not need '{need}'")
    return bad


def check_conversion(model, c):
    bad = [] if c["tensor"] in model.tensors else [f"no tensor '{c['tensor']}'"]
    for x in [c["maker"], *c["readers"], *(r["node"] for r in c["removed_by"])]:
        if x is not None and model.node(x) is None and not (x["op"] is None and x["output"] in model.outputs):
            bad.append(f"no node {x}")
    on_path = {s["output"] for w in c["paths"] for s in w["steps"] if "output" in s}
    demanding = {d["node"]["output"] for d in c["demands"] if d["node"]}
    for w in c["paths"]:
        bad += check_path(model, w)
        for s in w["steps"]:
            if "op" in s and s["op"] in PRODUCTS | NORMS | {"Conv", "LSTM"} and s["output"] not in demanding:
                bad.append(f"{s} takes no order, and is not among the demands")
    for d in c["demands"]:
        bad += check_demand(model, d, on_path)
    if c["made"] == c["needed"]:
        bad.append("made as it is needed")
    if c["reason"] in ("pair", "together") and not c["paths"]:
        bad.append("no path")
    if c["reason"] == "pair":
        steps = c["paths"][0]["steps"]
        ends = {str(s.get("output") or s.get("tensor")) for s in (steps[0], steps[-1])}
        if ends != {d["node"]["output"] if d["node"] else d["tensors"][0] for d in c["demands"]}:
            bad.append("the path does not go from one demand to the other")
    size = model.shape.get(c["tensor"])
    if size and c["shape"].startswith("f32[") and c["bytes"] != 4 * int(np.prod(size)):
        bad.append(f"{c['bytes']} bytes for {size}")
    return [f"conversion {c['id']}: {b}" for b in bad]


def check_transpose(model, t):
    node = model.node(t["node"])
    if node is None or node.op_type not in ("Transpose", "Einsum"):
        return [f"no Transpose {t['node']}"]
    bad = []
    if t["path"]:
        bad = check_path(model, {"steps": t["path"], "loop": False})
        if t["path"][0] != t["node"] or t["path"][-1] not in t["with"]:
            bad.append("a path from another node, or to one")
    if t["fate"] == "cancelled" and any(x["op"] not in ("Transpose", "Einsum") for x in t["with"]):
        bad.append("cancelled with something that is no Transpose")
    if (t["fate"] in ("cancelled", "absorbed")) != bool(t["with"]) or (t["fate"] in ("kept", "moved")) != bool(t["conversions"]):
        bad.append(f"{t['fate']}: with what?")
    return [f"Transpose {t['node']['output']}: {b}" for b in bad]


def check(prog, path, *options):
    """What is wrong; how many conversions, how many of them pairs, how many statements checked by numbers."""
    run = subprocess.run([prog, "explain", str(path), "--json", "-", *options], capture_output=True, text=True, timeout=120)
    if run.returncode:
        return [f"status {run.returncode}: {run.stderr.strip()[-300:]}"], 0, 0, 0
    x, model, bad, n = json.loads(run.stdout), load(path), [], 0
    stats = json.loads(subprocess.run([prog, "stats", str(path), "--json", "-", *options], capture_output=True, text=True, timeout=120).stdout)
    for c in x["conversions"]:
        bad += check_conversion(model, c)
        if c["reason"] == "pair" and not bad:
            wrong, k = check_numbers(model, c)
            bad += wrong
            n += k
        if c["reason"] == "open" or (c["reason"] == "choice" and "onnx" in options and x["changed"]):
            bad.append(f"conversion {c['id']}: no reason")
    if x["changed"] and not model.bodies and not len(x["conversions"]) >= x["conversions_after"] >= stats["needed"]["moving"]:
        bad.append(f"{len(x['conversions'])} explained, {x['conversions_after']} written, {stats['needed']['moving']} counted")
    for t in x["transposes"]:
        bad += check_transpose(model, t)
    if len(x["transposes"]) != len({json.dumps(t["node"]) for t in x["transposes"]}) or (len(x["transposes"]) < len(stats["transposes"]) and not model.bodies):
        bad.append("not every Transpose is told once")
    return bad, len(x["conversions"]), sum(c["reason"] == "pair" for c in x["conversions"]), n


# ---------------------------------------------------------------------------------------------------- the suites

class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, name, bad):
        self.passed += not bad
        self.failed += bool(bad)
        for b in bad[:5]:
            print(f"{name}: {b}")


def texts(prog, tally, update):
    for path in sorted(TEXTS.glob("*.rlt")):
        head, _, expected = path.read_text().partition("\n----\n")
        options = re.search(r"^options: *(.*)$", head, re.M)
        with tempfile.TemporaryDirectory() as tmp:
            graph = "\n".join(s for s in head.splitlines() if not s.startswith(("options:", "#")))
            (Path(tmp) / "in.rlt").write_text(graph + "\n")
            run = subprocess.run([prog, "explain", "in.rlt", *(options[1].split() if options else [])], cwd=tmp, capture_output=True, text=True)
        got = run.stdout + run.stderr
        if update and got != expected:
            path.write_text(f"{head}\n----\n{got}")
        tally.add(path.name, [] if got == expected else [f"another text came out:\n{got}"])


def models(prog, tally, paths, options):
    total = pairs = numbers = 0
    for name, path in paths:
        bad, n, p, k = check(prog, path, *options)
        total, pairs, numbers = total + n, pairs + p, numbers + k
        tally.add(name, bad)
    return total, pairs, numbers


def random_models(prog, tally, count):
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(count):
            path = Path(tmp) / "in.onnx"
            path.write_bytes(graphgen.make(seed).proto.SerializeToString())
            for target in ("onnx", "generic"):
                tally.add(f"seed {seed} {target}", check(prog, path, "--target", target)[0])


def one_node(prog, tally):
    """--node leaves what has to do with it, and refuses a name that nothing has."""
    path = common.ROOT / "models" / "channels_last_cnn.onnx"
    run = lambda *a: subprocess.run([prog, "explain", str(path), "--target", "onnx", "--json", "-", *a], capture_output=True, text=True)
    whole = json.loads(run().stdout)
    t = whole["transposes"][0]["node"]
    some = json.loads(run("--node", t["name"] or t["output"]).stdout)
    bad = [] if t in [x["node"] for x in some["transposes"]] else ["--node does not find a Transpose"]
    if len(some["transposes"]) >= len(whole["transposes"]):
        bad.append("--node leaves nothing out")
    if run("--node", "no such name").returncode != 2:
        bad.append("--node with a wrong name is no usage error")
    tally.add("--node", bad)


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("models", nargs="*", help="parts of names of sample models; none: everything")
    p.add_argument("--update", action="store_true")
    p.add_argument("--random", type=int, default=150, help="random models")
    args = p.parse_args()
    prog, tally = common.program(args), Tally()
    cache = args.build.resolve() / "zoo"
    if not args.models:
        texts(prog, tally, args.update)
        one_node(prog, tally)
        random_models(prog, tally, args.random)
        for target in ("onnx", "generic"):
            cases = [(c.stem, c) for c in sorted((common.SHARED / "cases").glob("*.onnx")) + sorted((common.ROOT / "models").glob("*.onnx"))]
            models(prog, tally, cases, ("--target", target))
    names = [(n, zoo.filled(n, cache)) for n in zoo.chosen(args.models)]
    total, pairs, numbers = models(prog, tally, names, ("--target", "onnx"))
    if names:
        print(f"sample models: {total} conversions, {pairs} with two demands, {numbers} statements checked by numbers")
    else:
        tally.skipped += 1
    return common.closing(tally.passed, tally.failed, tally.skipped)


if __name__ == "__main__":
    sys.exit(main())
