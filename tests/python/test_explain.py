#!/usr/bin/env python3
"""`relayout explain`: every reason names a real path of the model, and both ends of it demand what is said.

  test_explain.py               texts (tests/explain/), sample models, sample cases, random models
  test_explain.py vit detr      sample models whose name contains one of these, and nothing else
  test_explain.py --update      writes the texts that come out over those that were expected

The model is read here with onnx alone.  Each path is walked in it, into bodies and out of them: nodes and tensors exist and are joined.
As many conversions are explained as `optimize` says that it leaves.  The needs of the ops
are looked up in a table of this file.  Where one end of a path wants one order only, the clash itself is checked by numbers: the
place in memory of each element is carried along the path, and at the other end the order that it has must not be one that the op
takes; with the change that explain proposes (a graph input or a Conv in another order) it must be.
"""
import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

import common
import funcgen
import graphgen
import zoo

TEXTS = common.ROOT / "tests" / "explain"
IMAGES = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "Resize", "DepthToSpace", "SpaceToDepth", "InstanceNormalization",
          "GlobalAveragePool", "BatchNormalization", "LRN"}
BODIES = {"If", "Loop", "Scan"}                                          # what these read in a body is no input
FIXED = IMAGES | BODIES | {"LSTM", "GRU", "RNN"}  # these may be named as taking one order
PRODUCTS = {"MatMul", "Gemm"}
NORMS = {"LayerNormalization", "RMSNormalization", "SkipLayerNormalization", "SimplifiedLayerNormalization"}
VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
MOVES = VIEWS | {"Transpose"}
WINDOWS = {"Conv", "MaxPool", "AveragePool", "LpPool"}
BLOCKS = {"Softmax", "LogSoftmax", "Pad", "Slice", "CumSum", "BatchNormalization"}  # [their axis, or channels] together
OLD = {"Softmax", "LogSoftmax"}                                          # before opset 13 of all dims from the axis on
FREE = {"Add", "Sub", "Mul", "Div", "Relu", "Sigmoid", "Clip", "Erf", "Tanh", "HardSwish", "HardSigmoid", "Cast", "LeakyRelu", "Neg", "Sqrt",
        "Exp", "Pow", "Gelu", "BatchNormalization", "Min", "Max", "Where", "PRelu", "Elu", "Abs"}
LETTERS = {3: "NCW", 4: "NCHW", 5: "NCDHW"}
BIGGEST = 4_000_000  # elements of a tensor whose places are carried along


def body_key(body):
    """Which graph a node or tensor stands in; () for the main graph."""
    if body is None:
        return ()
    return ("function", body["domain"] or "", body["function"]) if "function" in body else (body["attribute"], node_key(body["of"]))


def node_key(x):
    return (x["name"], x["op"], x["output"], body_key(x.get("body")))


def tensor_key(x):
    return (x["tensor"], body_key(x.get("body")))


def key_of(step):
    return tensor_key(step) if "tensor" in step else node_key(step)


def tensors_of(demand):
    return [tensor_key(t) for t in demand.get("places") or [{"tensor": t} for t in demand["tensors"]]]


class Model:
    """Names and joins of a model as the user has it: its graph, the bodies in it, its functions.  A tensor is (name, body)."""

    def __init__(self, proto):
        self.opset = max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)
        self.nodes, self.joins, self.captures, self.links = {}, {}, {}, {}
        self.inputs, self.outputs, self.tensors, self.shape, self.rank = set(), set(), set(), {}, {}
        self.graph(proto.graph, (), {})
        for f in proto.functions:
            body, scope = ("function", f.domain, f.name), {}
            self.declare([*f.input, *(o for n in f.node for o in n.output)], body, scope)
            self.interface(f.input, f.output, scope)
            self.walk(f.node, body, scope)

    def declare(self, names, body, scope):
        scope.update({n: (n, body) for n in names if n})
        self.tensors |= {(n, body) for n in names if n}

    def interface(self, inputs, outputs, scope):
        self.inputs |= {scope[i] for i in inputs}
        self.outputs |= {scope[o] for o in outputs}

    def graph(self, g, body, outside):
        scope = dict(outside)
        consts = [*g.initializer, *(t.values for t in g.sparse_initializer)]
        self.declare([*(i.name for i in g.input), *(t.name for t in consts), *(o for n in g.node for o in n.output)], body, scope)
        for v in [*g.input, *g.output, *g.value_info]:
            dims = v.type.tensor_type.shape.dim if v.type.tensor_type.HasField("shape") else None
            if dims is not None:
                self.rank[v.name, body] = len(dims)
            if dims is not None and all(d.HasField("dim_value") for d in dims):
                self.shape[v.name, body] = tuple(d.dim_value for d in dims)
        for t in g.initializer:
            self.shape[t.name, body] = tuple(t.dims)
        if not body:
            self.interface([i.name for i in g.input], [o.name for o in g.output], scope)
        self.walk(g.node, body, scope)
        return scope

    def walk(self, nodes, body, scope):
        for n in nodes:
            key = (n.name or None, n.op_type, next((o for o in n.output if o), None), body)
            self.nodes[key] = n
            own = lambda names: [scope.get(x) for x in names]
            self.joins[key] = {t for t in own([*n.input, *n.output]) if t}
            self.captures[key], ends = set(), []
            for a in n.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    inner = self.graph(a.g, (a.name, key), scope)
                    ends.append(([inner.get(i.name) for i in a.g.input], [inner.get(o.name) for o in a.g.output]))
                    self.captures[key] |= set(scope.values())
            for ins, outs in ends:
                self.joins[key] |= {t for t in ins + outs if t}
            self.links[key] = linked(n, own(n.input), own(n.output), ends)

    def node(self, x):
        return self.nodes.get(node_key(x))


def linked(node, ins, outs, ends):
    """What lies alike on all sides of a body: lists of tensors, and which of them have the same shape."""
    if node.op_type == "If" and len(ends) == 2:
        return [([out, *(e[1][k] for e in ends)], True) for k, out in enumerate(outs)]
    if node.op_type not in ("Loop", "Scan") or not ends:
        return []
    bins, bouts = ends[0]
    skip = 2 if node.op_type == "Loop" else 0
    n = len(ins) - skip - attribute(node, "num_scan_inputs", 0)
    bouts = bouts[1:] if node.op_type == "Loop" else bouts
    links = [([a, b, c, d], True) for a, b, c, d in zip(ins[skip:skip + n], bins[skip:], bouts, outs)]
    links += [([a, b], False) for a, b in zip(ins[skip + n:], bins[skip + n:])]
    return links + [([a, b], False) for a, b in zip(bouts[n:], outs[n:])]


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
    names = [tensor_key(s) for s in steps if "tensor" in s]
    nodes = {}
    last = None
    for s in steps:  # the nodes between a tensor and the next
        if "tensor" in s:
            last = tensor_key(s)
        elif last is not None:
            nodes.setdefault(last, s)
    for a, b in zip(names, names[1:]):
        node, shape = model.node(nodes[a]), model.shape.get(b)
        if shape is None or a not in model.shape:
            return None
        if node.op_type in BODIES:
            alike = any(same and a in link and b in link for link, same in model.links[node_key(nodes[a])])
            if not alike or places.shape != shape:
                return None
            continue
        forward = a[0] in node.input and b[0] in node.output
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
    names = [tensor_key(s) for s in path if "tensor" in s]
    if not tensors_of(ends[0])[0] == names[0]:
        ends = ends[::-1]
    if not wants_one(ends[0]):
        path, ends, names = path[::-1], ends[::-1], names[::-1]
    shape = model.shape.get(names[0])
    if not wants_one(ends[0]) or shape is None or not 0 < np.prod(shape) <= BIGGEST or tensors_of(ends[0]) != [names[0]] or tensors_of(ends[1]) != [names[-1]]:
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
        if r["kind"] in ("input-layout", "output-layout") and tensor_key(r) == names[0]:
            order = axes_in(r["axes"], len(shape), False)
        elif r["kind"] == "target-order" and tensor_key(r) == names[0] and len(shape) in LETTERS:
            order = axes_in(r["order"], len(shape), True)
        if order:
            n += 1
            if not far(lying(shape, order)):
                bad.append(f"'{c['tensor']}': {r['kind']} {order} of '{r['tensor']}' does not remove it")
    return bad, n


# ---------------------------------------------------------------------------------------------------- one model

def check_path(model, way, fixed=(), captured=()):
    """Nodes and tensors take turns, exist, and each tensor is read or made by the nodes on both its sides.  An If, Loop or Scan has the
    inputs and outputs of its bodies too, and joins what lies alike; fixed: nodes that want one order; captured: whose bodies read."""
    bad, steps = [], way["steps"]
    for s in steps:
        if "tensor" in s and tensor_key(s) not in model.tensors:
            bad.append(f"no tensor {s}")
        if "tensor" not in s and model.node(s) is None:
            bad.append(f"no node {s}")
    for a, b in zip(steps, steps[1:]):
        if ("tensor" in a) == ("tensor" in b):
            bad.append(f"nothing between {a} and {b}")
            continue
        node, tensor = (b, a) if "tensor" in a else (a, b)
        n = model.node(node)
        key = node_key(node)
        if n is not None and tensor_key(tensor) not in model.joins[key] | (model.captures[key] if key in captured else set()):
            bad.append(f"{tensor} is no tensor of {node}")
    for a, s, b in zip(steps, steps[1:], steps[2:]):
        if s.get("op") not in BODIES or node_key(s) in fixed or node_key(s) in captured:
            continue
        if not any(tensor_key(a) in link and tensor_key(b) in link for link, _ in model.links.get(node_key(s), [])):
            bad.append(f"{s} does not join {a} and {b}")
    if way["loop"] and steps and steps[0] != steps[-1]:
        bad.append("a loop that does not close")
    return bad


def moved_over(pool):
    """How many dims the window moves over: over the others it takes each element by itself."""
    a = {x.name: list(x.ints) for x in pool.attribute}
    n = len(a["kernel_shape"])
    strides, pads = a.get("strides", [1] * n), a.get("pads", [0] * 2 * n)
    return sum((k, s, b, e) != (1, 1, 0, 0) for k, s, b, e in zip(a["kernel_shape"], strides, pads, pads[n:]))


def is_window_form(node, need, rank):
    """A Conv: batch, channels in any order, the image's dims; a pool: its window's dims side by side, the others before them or around. Dims of one element are left out."""
    groups = re.findall(r"\([^)]*\)|\[[^\]]*\]|[^,]+", need)
    if node.op_type == "Conv":
        return rank is None or len(groups) <= rank and not any(g.startswith("(") for g in groups[2:])
    sizes = [len(re.findall(r"\[[^\]]*\]|[^,()]+", g)) for g in groups]
    return len(sizes) <= 3 and moved_over(node) in (sizes if len(sizes) < 3 else sizes[1:2])


def check_demand(model, d, on_path):
    node, op = None, d["node"] and d["node"]["op"]
    if d["what"] in ("input", "output"):
        known = model.inputs if d["what"] == "input" else model.outputs
        return [] if tensors_of(d)[0] in known else [f"'{d['tensors'][0]}' is no graph {d['what']}"]
    node = model.node(d["node"])
    if node is None:
        return [f"no node {d['node']}"]
    key = node_key(d["node"])
    known = model.captures[key] if d["what"] == "captured" else model.joins[key]
    bad = [f"{t} is no tensor of {d['node']}" for t in tensors_of(d) if t not in known]
    if key not in on_path:
        bad.append(f"{d['node']} is on no path")
    for way in d["ways"]:
        for need, tensor in zip(way, tensors_of(d)):
            if d["what"] == "fixed" and op in ("Conv", "ConvTranspose") and need[0].isalpha() and tensor in model.rank:
                right = need.split(", which is ")[0] == ",".join(LETTERS[model.rank[tensor]])
            elif d["what"] == "form" and op in WINDOWS:
                right = is_window_form(node, need.split(", which is ")[0], model.rank.get(tensor))
            elif d["what"] == "form" and op in NORMS:
                right = need.endswith(" last")
            elif d["what"] == "form" and op in BLOCKS and not (op in OLD and model.opset < 13):
                right = re.fullmatch(r"(\[.*\] together|any order)", need)
            else:
                right = d["what"] != "form" or op not in FIXED - BODIES
            if not right:
                bad.append(f"{op} does not need '{need}'")
    return bad


def check_conversion(model, c):
    bad = [] if tensor_key(c) in model.tensors else [f"no tensor '{c['tensor']}'"]
    for x in [c["maker"], *c["readers"], *(r["node"] for r in c["removed_by"])]:
        if x is not None and model.node(x) is None and not (x["op"] is None and (x["output"], body_key(x.get("body"))) in model.outputs):
            bad.append(f"no node {x}")
    on_path = {node_key(s) for w in c["paths"] for s in w["steps"] if "output" in s}
    demanding = {node_key(d["node"]) for d in c["demands"] if d["node"]}
    kind = lambda what: {node_key(d["node"]) for d in c["demands"] if d["what"] == what}
    for w in c["paths"]:
        bad += check_path(model, w, kind("fixed"), kind("captured"))
        for s in w["steps"]:
            if "op" in s and s["op"] in PRODUCTS | NORMS | {"Conv", "LSTM"} and node_key(s) not in demanding:
                bad.append(f"{s} takes no order, and is not among the demands")
    for d in c["demands"]:
        bad += check_demand(model, d, on_path)
    if c["made"] == c["needed"]:
        bad.append("made as it is needed")
    if c["reason"] in ("pair", "together") and not c["paths"]:
        bad.append("no path")
    if c["reason"] == "pair":
        steps = c["paths"][0]["steps"]
        if [key_of(s) for s in (steps[0], steps[-1])] != [node_key(d["node"]) if d["node"] else tensors_of(d)[0] for d in c["demands"]]:
            bad.append("the path does not go from one demand to the other")
    size = model.shape.get(tensor_key(c))
    if size and c["shape"] == f"f32[{','.join(map(str, size))}]" and c["bytes"] != 4 * int(np.prod(size)):
        bad.append(f"{c['bytes']} bytes for {size}")
    return [f"conversion {c['id']}: {b}" for b in bad]


def check_transpose(model, t):
    node = model.node(t["node"])
    if node is None or node.op_type not in ("Transpose", "Einsum"):
        return [f"no Transpose {t['node']}"]
    bad = []
    if t["fate"] == "outside" and node.input and ((known := (node.input[0], body_key(t["node"].get("body")))) in model.rank or known in model.shape):
        bad.append("outside, but its rank is known")
    if t["path"]:
        bad += check_path(model, {"steps": t["path"], "loop": False})
        if t["path"][0] != t["node"] or t["path"][-1] not in t["with"]:
            bad.append("a path from another node, or to one")
    if t["fate"] == "cancelled" and any(x["op"] not in ("Transpose", "Einsum") for x in t["with"]):
        bad.append("cancelled with something that is no Transpose")
    if (t["fate"] in ("cancelled", "absorbed")) != bool(t["with"]) or (t["fate"] in ("kept", "moved")) != bool(t["conversions"]):
        bad.append(f"{t['fate']}: with what?")
    return [f"Transpose {t['node']['output']}: {b}" for b in bad]


def conversions_of(prog, path, *options, out="/dev/null"):
    """What optimize says of the conversions that it leaves."""
    p = subprocess.run([prog, "optimize", str(path), "-o", str(out), "--json", "-", *options], capture_output=True, check=True, timeout=120)
    return json.loads(p.stdout)["conversions"]


def optimized(prog, path, *options):
    """The model that optimize writes."""
    with tempfile.TemporaryDirectory() as tmp:
        out = Path(tmp) / "out.onnx"
        conversions_of(prog, path, *options, out=out)
        return load(out)


def check(prog, path, model, *options):
    """What is wrong with what is said of a model (read: load); how many conversions, how many of them pairs, how many statements checked by numbers."""
    run = subprocess.run([prog, "explain", str(path), "--json", "-", *options], capture_output=True, text=True, timeout=120)
    if run.returncode:
        return [f"status {run.returncode}: {run.stderr.strip()[-300:]}"], 0, 0, 0
    x, bad, n = json.loads(run.stdout), [], 0
    stats = json.loads(subprocess.run([prog, "stats", str(path), "--json", "-", *options], capture_output=True, text=True, timeout=120).stdout)
    for c in x["conversions"]:
        bad += check_conversion(model, c)
        if c["reason"] == "pair" and not bad:
            wrong, k = check_numbers(model, c)
            bad += wrong
            n += k
        if c["reason"] == "open" or (c["reason"] == "choice" and "onnx" in options and x["changed"]):
            bad.append(f"conversion {c['id']}: no reason")
    said = conversions_of(prog, path, *options)
    after = said["after"]
    if said["proof"] == "optimal" and after == said["lower_bound"] and not x["solved"]:
        bad.append(f"{after} are proved to be the fewest, and explain says that fewer may do")
    if x["solved"] and not len(x["conversions"]) == x["conversions_after"] == after:
        bad.append(f"{len(x['conversions'])} explained, {x['conversions_after']} said, optimize leaves {after}")
    outside = [t["node"] for t in x["transposes"] if t["fate"] == "outside"]
    if outside:
        result = optimized(prog, path, *options)
        bad += [f"Transpose {t['output']}: outside, but gone" for t in outside if result.node(t) is None]
    if x["changed"] and not after + len(outside) >= stats["needed"]["moving"]:
        bad.append(f"{after} left, {stats['needed']['moving']} counted, {len(outside)} of them outside")
    for t in x["transposes"]:
        bad += check_transpose(model, t)
    told = collections.Counter(node_key(t["node"]) for t in x["transposes"])
    names = collections.Counter(t["node"]["name"] or t["node"]["output"] for t in x["transposes"])
    known = collections.Counter(t["name"] for t in stats["transposes"] if "?" not in t["shape"])  # ?: perhaps it moves nothing
    if max(told.values(), default=1) > 1 or known - names:
        bad.append(f"not every Transpose is told once: {known - names}")
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


def models(prog, tally, paths):
    total = pairs = numbers = 0
    for name, path in paths:
        model = load(path)
        for target in ("onnx", "generic"):
            bad, n, p, k = check(prog, path, model, "--target", target)
            total, pairs, numbers = total + n, pairs + p, numbers + k
            tally.add(f"{name} {target}", bad)
    return total, pairs, numbers


def random_models(prog, tally, count):
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(count):
            path = Path(tmp) / "in.onnx"
            path.write_bytes(graphgen.make(seed).proto.SerializeToString())
            models(prog, tally, [(f"seed {seed}", path)])


def function_models(prog, tally, count):
    """Models with model-local functions: what their calls make has a type, also where an attribute is one of the call."""
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(count):
            path = Path(tmp) / "in.onnx"
            path.write_bytes(funcgen.make(seed)[0].SerializeToString())
            tally.add(f"functions {seed}", check(prog, path, load(path), "--target", "onnx")[0])


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
    p.add_argument("--random", type=int, default=100, help="random models; half as many with functions")
    args = p.parse_args()
    prog, tally = common.program(args), Tally()
    cache = args.build.resolve() / "zoo"
    if not args.models:
        texts(prog, tally, args.update)
        one_node(prog, tally)
        random_models(prog, tally, args.random)
        function_models(prog, tally, args.random // 2)
        models(prog, tally, [(c.stem, c) for c in sorted((common.SHARED / "cases").glob("*.onnx")) + sorted((common.ROOT / "models").glob("*.onnx"))])
    names = [(n, zoo.filled(n, cache)) for n in zoo.chosen(args.models)]
    total, pairs, numbers = models(prog, tally, names)
    if names:
        print(f"sample models: {total} conversions, {pairs} with two demands, {numbers} statements checked by numbers")
    else:
        tally.skipped += 1
    return common.closing(tally.passed, tally.failed, tally.skipped)


if __name__ == "__main__":
    sys.exit(main())
