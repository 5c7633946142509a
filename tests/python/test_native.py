#!/usr/bin/env python3
"""Native layouts: `relayout profile`, and models run by plans.

  test_native.py --count 60 --seed 3

On random networks and a few sample models: the predicted cost is the least there is (the program says that it was found twice; here it is
found again from the costs that it prints, by elimination of one op after the other, where that has few states), its certificate holds for both
checkers and false ones are refused, random plans, blocked and strided layouts mixed at will, give
the reference kernels' outputs, and the lanes that stand for no channel stay zero (a model whose results would show it). Then the
files: the plan in a model's metadata, plans that do not fit, damaged caches. Skipped without oneDNN; sample models where there are none.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

import common
import zoo

sys.path.insert(0, str(common.ROOT / "scripts"))
from proof import Refused, plan  # noqa: E402

MODELS = ["pt_espcn", "pt_mobilenetv3_small_100", "pt_shufflenet_v2", "pt_unet3d"]  # samples
STATES = 20000
MUTANTS = 40  # of a model
CHECKER = str(common.ROOT / "scripts" / "check_proof.py")


class Test:
    def __init__(self, prog, folder):
        self.prog, self.folder, self.passed, self.failed = prog, Path(folder), 0, 0
        self.env = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        (self.folder / "cache").mkdir()

    def check(self, ok, what):
        self.passed += bool(ok)
        self.failed += not ok
        if not ok:
            print(f"FAILED: {what}")
        return ok

    def run(self, *args, env=None):
        return subprocess.run([self.prog, *map(str, args)], capture_output=True, text=True, env=env or self.env, timeout=300)

    def outputs(self, model, name, *more):
        out = Path(tempfile.mkdtemp(prefix=name, dir=self.folder))
        p = self.run("run", model, "--output-dir", out, *more)
        if p.returncode:
            return p, None
        return p, {f.name: np.load(f) for f in sorted(out.glob("*.npy"))}

    def same(self, model, want, name, *more):
        """Do runs with these options give these outputs?"""
        p, got = self.outputs(model, name, *more)
        if not self.check(got is not None, f"{name} runs: {p.stderr.strip()[-200:]}"):
            return
        for k in want:
            scale = float(np.max(np.abs(want[k]))) if want[k].size else 0.0
            ok = want[k].shape == got[k].shape and np.allclose(want[k], got[k], rtol=1e-3, atol=1e-5 + 1e-4 * scale, equal_nan=True)
            self.check(ok, f"{name}: {k} is the reference kernels' ({np.max(np.abs(want[k] - got[k])) if want[k].shape == got[k].shape else 'shape'})")


# ---- the least cost, by other means than the solver's ----

def least(p):
    """The least sum of a profile's costs: ops are taken in their order; for each set of layouts that values with readers ahead have (made in,
    moved to), the cheapest way so far is kept."""
    moves = {(v, a, b): ns for v, a, b, ns in p["reorders"]}
    last = {}
    for i, o in enumerate(p["ops"]):
        for v, _ in o["pins"]:
            last[v] = i
    states = {(): 0}
    for i, o in enumerate(p["ops"]):
        nxt = {}
        for state, cost in states.items():
            at = dict(state)
            for c in o["configurations"]:
                total, now = cost + c["ns"], dict(at)
                for (v, end), lay in zip(o["pins"], c["layouts"]):
                    if end == "out":
                        now[v] = (lay, frozenset([lay]))
                for (v, end), lay in zip(o["pins"], c["layouts"]):
                    if end == "in" and lay not in now[v][1]:
                        made, has = now[v]
                        total += moves[(v, made, lay)]
                        now[v] = (made, has | {lay})
                key = tuple(sorted(((v, s) for v, s in now.items() if last[v] > i), key=lambda x: x[0]))
                if total < nxt.get(key, 1 << 62):
                    nxt[key] = total
        if len(nxt) > STATES:
            return None
        states = nxt
    return min(states.values()) + p["fixed_ns"]


# ---- plans ----

def plan_text(p, text, pick):
    """The plan in `text` with other configurations: pick(op) is one of op["configurations"]."""
    head = text.splitlines()[:4]
    lines = []
    for o in p["ops"]:
        if o["step"] < 0:
            continue
        c = pick(o)
        lays, pins = c["layouts"], o["pins"]
        ins = [x for x, (_, end) in zip(lays, pins) if end == "in"]
        outs = [x for x, (_, end) in zip(lays, pins) if end == "out"]
        lines.append(" ".join(["op", str(o["step"]), o["op"], *ins] + ([">", *outs] if outs else []) + ["plain"] * c["plain"]))
    return "\n".join(head + lines + ["end"]) + "\n"


def most_blocked(rng):
    """Blocks wherever a kernel takes them, of either size."""
    return lambda o: max(o["configurations"], key=lambda c: (sum("b" in x and x[-1] == "b" and x[-2].isdigit() for x in c["layouts"]), rng.random()))


# ---- networks ----

class Network:
    """Convolutions and what stands between them, with channels that fill no block; f(0) != 0 among the pointwise ops."""

    def __init__(self, seed):
        self.rng, self.data, self.n = random.Random(seed), np.random.default_rng(seed), 0
        self.nodes, self.init = [], []
        rank = self.rng.choice([4, 4, 4, 5])
        self.space = [self.rng.choice([5, 8, 9]) for _ in range(rank - 2)] if rank == 4 else [4, 5, 4]
        self.live = []  # (name, channels), all of the same space
        self.batch = self.rng.choice([1, 1, 2])
        self.start = self.rng.choice([3, 8, 20])

    def const(self, *shape):
        self.n += 1
        self.init.append(numpy_helper.from_array(self.data.uniform(-1, 1, shape).astype(np.float32), f"c{self.n}"))
        return f"c{self.n}"

    def add(self, op, inputs, channels, **attributes):
        self.n += 1
        self.nodes.append(h.make_node(op, inputs, [f"v{self.n}"], **attributes))
        self.live.append((f"v{self.n}", channels))
        return f"v{self.n}", channels

    def conv(self, x, c):
        r, k = len(self.space), self.rng.choice([1, 3])
        m = self.rng.choice([8, 12, 16, 20, 24, 33])
        if self.rng.random() < 0.25:  # depthwise
            return self.add("Conv", [x, self.const(c, 1, *[k] * r), self.const(c)], c, pads=[k // 2] * (2 * r), group=c)
        return self.add("Conv", [x, self.const(m, c, *[k] * r), self.const(m)], m, pads=[k // 2] * (2 * r))

    def step(self):
        x, c = self.rng.choice(self.live[-4:])
        kind = self.rng.choice(["conv", "conv", "conv", "unary", "unary", "binary", "channel", "concat", "pool", "norm", "se", "one"])
        ones = [1] * len(self.space)
        if kind == "conv":
            self.conv(x, c)
        elif kind == "unary":  # f(0) != 0 for Sigmoid, Exp, HardSigmoid
            self.add(self.rng.choice(["Relu", "Sigmoid", "Exp", "HardSigmoid", "Tanh", "HardSwish"]), [self.add("Tanh", [x], c)[0]], c)
        elif kind == "binary":
            same = [y for y, d in self.live if d == c]
            self.add(self.rng.choice(["Add", "Mul", "Sub"]), [x, self.rng.choice(same)], c)
        elif kind == "channel":
            self.add(self.rng.choice(["Add", "Mul", "Div"]), [x, self.const(c, *ones)], c)
        elif kind == "concat":
            parts = [self.rng.choice(self.live) for _ in range(self.rng.choice([2, 3]))]
            self.add("Concat", [y for y, _ in parts], sum(d for _, d in parts), axis=1)
        elif kind == "pool":
            r = len(self.space)
            self.add(self.rng.choice(["MaxPool", "AveragePool"]), [x], c, kernel_shape=[3] * r, pads=[1] * (2 * r))
        elif kind == "norm":
            var = self.const(c)
            self.init[-1].CopyFrom(numpy_helper.from_array(np.abs(numpy_helper.to_array(self.init[-1])) + 0.5, var))
            self.add("BatchNormalization", [x, self.const(c), self.const(c), self.const(c), var], c)
        elif kind == "se":
            self.n += 1
            if self.rng.random() < 0.5:
                self.nodes.append(h.make_node("GlobalAveragePool", [x], [f"g{self.n}"]))
            else:
                self.nodes.append(h.make_node("ReduceMean", [x], [f"g{self.n}"], axes=[2 + i for i in range(len(self.space))]))
            self.nodes.append(h.make_node("Sigmoid", [f"g{self.n}"], [f"s{self.n}"]))
            self.add("Mul", [x, f"s{self.n}"], c)
        else:
            self.add("Mul", [x, self.const(1, *self.space)], c)

    def model(self):
        shape = [self.batch, self.start, *self.space]
        self.live = [("x", self.start)]
        self.conv("x", self.start)
        for _ in range(self.rng.randrange(4, 12)):
            self.step()
        # a sum over all channels of what a Reshape sees: lanes that are not zero, or are taken for channels, would show
        x, c = self.live[-1]
        self.nodes.append(h.make_node("Flatten", [x], ["flat"], axis=1))
        self.nodes.append(h.make_node("ReduceSum", ["flat", "axes"], ["y"], keepdims=1))
        self.init.append(numpy_helper.from_array(np.array([1], np.int64), "axes"))
        kept = self.rng.choice(self.live)[0]
        outs = [h.make_tensor_value_info("y", T.FLOAT, [self.batch, 1])]
        if kept != "x":
            outs.append(h.make_tensor_value_info(kept, T.FLOAT, None))
        g = h.make_graph(self.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, shape)], outs, self.init)
        return onnx.shape_inference.infer_shapes(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=9))


def profile(t, model, name, *more):
    plan, report = t.folder / f"{name}.plan", t.folder / f"{name}.json"
    p = t.run("profile", model, "--plan", plan, "--json", report, "--runs", 1, *more)
    if not t.check(p.returncode == 0, f"{name}: profile: {p.stderr.strip()[-300:]}"):
        return None, None
    return json.loads(report.read_text()), plan.read_text()


def check_model(t, model, name, rng, nplan, *more):
    p, text = profile(t, model, name, *more)
    if p is None:
        return 0
    t.check(p["optimal"] and p["checked"] and p["bound_ns"] == p["predicted_ns"], f"{name}: proved, and checked")
    want = least(p)
    if want is not None:
        t.check(want == p["predicted_ns"], f"{name}: predicted {p['predicted_ns']}, and the least is {want}")
    ref, expected = t.outputs(model, "reference", "--kernels", "reference", *[a for a in more if a != "--table"])
    if not t.check(expected is not None, f"{name}: reference: {ref.stderr[-200:]}"):
        return 0
    picks = [None, most_blocked(rng)] + [lambda o: rng.choice(o["configurations"])] * nplan
    blocked = 0
    for i, pick in enumerate(picks):
        file = t.folder / "plan.txt"
        file.write_text(text if pick is None else plan_text(p, text, pick))
        blocked += file.read_text().count("6b") + file.read_text().count("8b")
        t.same(model, expected, f"{name}-{i}", "--plan", file, *[a for a in more if a != "--table"])
    return blocked


# ---- certificates ----

def false_mutants(p, text, rng):
    """Certificates that are wrong in one number: (what, text)."""
    lines = text.splitlines()
    at = lambda word: [i for i, s in enumerate(lines) if s.startswith(word + " ")]
    claim = int(lines[at("claim")[0]].split()[1])

    def changed(i, s):
        return "\n".join(lines[:i] + ([s] if s is not None else []) + lines[i + 1:]) + "\n"

    for more in (-1, 1, -claim, claim):
        yield f"claim {more:+}", changed(at("claim")[0], f"claim {claim + more}")
    yield "fixed", changed(at("fixed")[0], f"fixed {p['fixed_ns'] + 1}")
    several = [o for o in p["ops"] if len(o["configurations"]) > 1]
    ops = at("op")
    for o in several:
        k = p["ops"].index(o)
        begin = ops[k]
        cfg = [i for i in at("cfg") if i > begin][:len(o["configurations"])]
        chosen = next(i for i in at("chosen") if i > begin)
        other = rng.choice([k for k in range(len(cfg)) if k != o["chosen"]])
        words = lines[cfg[o["chosen"]]].split()
        yield "a dearer choice", changed(cfg[o["chosen"]], " ".join(["cfg", str(int(words[1]) + 7), *words[2:]]))
        changes = json.loads(json.dumps(p))
        changes["ops"][k]["chosen"] = other
        if sum_of(changes) != p["predicted_ns"]:
            yield "another choice", changed(chosen, f"chosen {other}")
        changes["ops"][k]["configurations"][other]["ns"] = 0
        best = least(changes)
        if best is not None and best < p["predicted_ns"]:
            yield "a cheaper configuration", changed(cfg[other], " ".join(["cfg", "0", *lines[cfg[other]].split()[2:]]))
        if best is not None and best < p["predicted_ns"]:  # the same, said to be needed by nobody
            with_drop = changed(at("claim")[0], f"drop {k} {other} {o['chosen']}\nclaim {claim}").splitlines()
            with_drop[cfg[other]] = " ".join(["cfg", "0", *lines[cfg[other]].split()[2:]])
            yield "a needed configuration goes", "\n".join(with_drop) + "\n"
    for i in at("move"):
        yield "a move less", changed(i, None)


def sum_of(p):
    """What a choice costs."""
    moves = {(v, a, b): ns for v, a, b, ns in p["reorders"]}
    total, now = p["fixed_ns"], {}
    for o in p["ops"]:
        c = o["configurations"][o["chosen"]]
        total += c["ns"]
        for (v, end), lay in zip(o["pins"], c["layouts"]):
            if end == "out":
                now[v] = lay, {lay}
            elif lay not in now[v][1]:
                total += moves[v, now[v][0], lay]
                now[v][1].add(lay)
    return total


def check_proofs(t, model, name, rng):
    """Both checkers take the certificate of a plan, and refuse what is false."""
    file, out, report = t.folder / f"{name}.cert", t.folder / f"{name}.onnx", t.folder / f"{name}.json"
    plan, wrong = t.folder / f"{name}.plan", t.folder / "wrong.plan"
    r = t.run("profile", model, "--proof", file, "-o", out, "--plan", plan, "--json", report, "--runs", 1, "--table")
    if not t.check(r.returncode == 0, f"{name}: profile --proof: {r.stderr}"):
        return
    p, text = json.loads(report.read_text()), file.read_text()
    both = lambda f, m: (t.run("check-proof", f, m).returncode, subprocess.run([sys.executable, CHECKER, f, m], capture_output=True, text=True).returncode)
    t.check(both(file, out) == (0, 0), f"{name}: both checkers take it: {both(file, out)}")
    t.check(both(file, model) == (7, 7), f"{name}: of a model without the plan")
    wrong.write_text(plan.read_text().rsplit("\n", 2)[0] + "\n")
    t.check([t.run("check-proof", file, model, "--plan", p).returncode for p in (plan, wrong)] == [0, 7], f"{name}: with --plan")
    bad, n = t.folder / "bad.cert", 0
    mutants = list(false_mutants(p, text, rng))
    for what, s in rng.sample(mutants, min(len(mutants), MUTANTS)):
        bad.write_text(s)
        t.check(t.run("check-proof", bad, out).returncode == 7 and refused(bad), f"{name}: {what} is refused")
        n += 1
    for what, s in {"cut": text[:-5], "step": text.replace("\nop 0 ", "\nop 1 ", 1), "type": text.replace("\nop 0 ", "\nop 0 x", 1),
                    "machine": text.replace("machine ", "machine x", 1), "pin": text.replace("pin in 0", "pin in 99", 1)}.items():
        bad.write_text(s)
        t.check(both(bad, out) == (7, 7), f"{name}: {what} is refused: {both(bad, out)}")
    return n


def refused(file):
    """By the second checker, in this process."""
    try:
        plan.check(plan.read(file))
    except Refused:
        return True
    return False


def check_wide(t):
    """The second checker tells where all of 24 values are made, each in one of two layouts, before any is read: as many ways as subsets lead to the least."""
    n, file = 24, t.folder / "wide.cert"

    def text(move):
        ops = [f"op {i} Op\npin out {i}\ncfg 10 0\ncfg 8 1\nchosen 0" for i in range(n)] + [f"op {n + i} Op\npin in {i}\ncfg 0 0\nchosen 0" for i in range(n)]
        moves = [f"move {i} 1 0 {move if i == n // 2 else 2}" for i in range(n)]
        return "\n".join([plan.HEAD, "machine none", "graph 2 5a0b1c2d3e4f5061", "fixed 0", "layouts abcd acdb", *ops, *moves, f"claim {10 * n}", "end", ""])

    for move, wrong in ((2, False), (1, True), (1 << 62, True)):  # the last: sums that no checker of whole numbers of 64 bits adds
        file.write_text(text(move))
        t.check(refused(file) == wrong, f"many values at a time, a move of {move}: {'refused' if wrong else 'taken'}")


def check_broadcast(t, model):
    """A plan that says of everything what runs without one copies as much: a value that is spread over dims lies in no order, and stays so. And an output
    that lies otherwise is made row-major either way, so both take as long."""
    const = lambda name, a: numpy_helper.from_array(np.array(a), name)
    init = [const("w", np.ones((32, 8, 1, 1), np.float32)), const("size", np.array([1, 32, 16, 16], np.int64))]
    nodes = [h.make_node("Conv", ["x", "w"], ["c"]), h.make_node("GlobalAveragePool", ["c"], ["g"]), h.make_node("Expand", ["g", "size"], ["e"]),
             h.make_node("Mul", ["c", "e"], ["m"]), h.make_node("Transpose", ["m"], ["y"], perm=[0, 2, 3, 1])]
    shape = lambda name, dims: h.make_tensor_value_info(name, T.FLOAT, dims)
    g = h.make_graph(nodes, "g", [shape("x", [1, 8, 16, 16])], [shape("y", None)], init)
    onnx.save(onnx.shape_inference.infer_shapes(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=9)), model)
    p, text = profile(t, model, "broadcast", "--table")
    if p is None:
        return
    file = t.folder / "as_is.plan"
    file.write_text(plan_text(p, text, lambda o: o["configurations"][0]))
    copied = [sum(s["copied_bytes"] for s in json.loads(t.run("bench", model, "--runs", 2, "--json", "-", *more).stdout)["steps"]) for more in (("--no-plan",), ("--plan", file))]
    profile(t, model, "broadcast")
    r = t.run("profile", model, "--json", t.folder / "again.json", "--runs", 1)
    again = json.loads((t.folder / "again.json").read_text())
    t.check(not r.stderr and again["measured"] == 0, f"that an op's output lies in no order is kept, too: {again['measured']} measured again; {r.stderr}")
    t.check(copied[0] == copied[1], f"bytes copied without a plan, and with one that changes nothing: {copied}")


def check_files(t, model):
    """What is not a plan of this model, or of this machine, is refused or left out with a line."""
    p, text = profile(t, model, "files")
    out = t.folder / "planned.onnx"
    t.check(t.run("profile", model, "-o", out, "--runs", 1, "--table").returncode == 0, "profile -o")
    before, after = onnx.load(model), onnx.load(out)
    t.check([m.key for m in after.metadata_props] == ["relayout.plan"], "the plan is in the metadata")
    del after.metadata_props[:]
    t.check(before == after, "nothing else changed")
    again = t.folder / "again.onnx"
    t.run("profile", out, "-o", again, "--runs", 1, "--table")
    t.check(len(onnx.load(again).metadata_props) == 1, "a second plan takes the place of the first")
    r = t.run("profile", out, "-o", again, env={**t.env, "RELAYOUT_ONEDNN": ""})
    t.check(r.returncode == 0 and again.read_bytes() == Path(model).read_bytes(), "without oneDNN the model comes out without a plan")
    r = t.run("run", out)
    t.check(r.returncode == 0 and not r.stderr, f"the model's plan is taken: {r.stderr}")
    bench = json.loads(t.run("bench", out, "--runs", 1, "--json", "-").stdout)
    t.check(bench["kernels"] == "fast", "bench runs by it")
    for what, change in {"machine": lambda s: s.replace("machine ", "machine another ", 1), "graph": lambda s: s.replace("graph ", "graph 1", 1),
                         "layout": lambda s: s.replace(" > ", " > zz", 1), "step": lambda s: s.replace("op 0 ", "op 99999 ", 1),
                         "end": lambda s: s[:-4], "empty": lambda s: ""}.items():
        m = onnx.load(out)
        m.metadata_props[0].value = change(m.metadata_props[0].value)
        onnx.save(m, t.folder / "bad.onnx")
        r = t.run("run", t.folder / "bad.onnx")
        t.check(r.returncode == 0 and len(r.stderr.splitlines()) == 1 and "plan" in r.stderr, f"{what}: left out with a line: {r.returncode} {r.stderr}")
        (t.folder / "bad.txt").write_text(change(text))
        r = t.run("run", model, "--plan", t.folder / "bad.txt")
        t.check(r.returncode == (0 if what == "machine" else 4) and len(r.stderr.splitlines()) == 1, f"{what}: --plan says so: {r.returncode} {r.stderr}")
    (t.folder / "below.txt").write_text("\n".join("predicted -5" if line.startswith("predicted ") else line for line in text.splitlines()) + "\n")
    r = t.run("run", model, "--plan", t.folder / "below.txt")
    t.check(r.returncode == 0 and not r.stderr, f"a prediction below 0, as differences of times on a busy machine may add up to, is one: {r.stderr}")
    r = t.run("run", model, "--plan", t.folder / "files.plan", "--kernels", "reference")
    t.check(r.returncode == 0 and "left out" in r.stderr, "the reference kernels know no plan")
    r = t.run("profile", model, env={**t.env, "RELAYOUT_ONEDNN": ""})
    t.check(r.returncode == 0 and len(r.stderr.splitlines()) == 1 and "oneDNN" in r.stderr, f"without oneDNN: {r.stderr}")
    for words in (["--plan", t.folder / "none.plan"], ["--proof", t.folder / "none.cert"], ["-o", t.folder / "none.onnx", "--plan", t.folder / "none.plan", "--json", t.folder / "none.json"]):
        r = t.run("profile", model, *words, env={**t.env, "RELAYOUT_ONEDNN": ""})
        t.check(r.returncode == 5 and len(r.stderr.splitlines()) == 1 and "oneDNN is not found" in r.stderr and not list(t.folder.glob("none.*")), f"a plan without oneDNN: {r.stderr}")


def check_cache(t, model):
    p, _ = profile(t, model, "kept")
    t.check(p["measured"] == 0 and p["known"] > 0, f"known costs are not measured again ({p['measured']})")
    file = next((t.folder / "cache" / "relayout").glob("costs-*.txt"))
    good = file.read_bytes()
    bad = {"cut": good[:len(good) // 2], "empty": b"", "another": good.replace(b"relayout-costs 4", b"relayout-costs 9"), "changed": good.replace(b" 1 a", b" 1 b", 1),
           "bytes": bytes(range(256)) * 20}
    for what, data in bad.items():
        file.write_bytes(data)
        r = t.run("profile", model, "--runs", 1, "--json", t.folder / "r.json")
        t.check(r.returncode == 0 and len(r.stderr.splitlines()) == 1 and "left out" in r.stderr, f"cache {what}: a line: {r.returncode} {r.stderr}")
        t.check(json.loads((t.folder / "r.json").read_text())["measured"] > 0, f"cache {what}: measured again")
    r = t.run("profile", model, "--runs", 1, env={**t.env, "XDG_CACHE_HOME": "/proc/nowhere"})
    t.check(r.returncode == 0, f"no cache folder: {r.stderr}")


def change_costs(path):
    """The first cost that a file keeps becomes 10 us, all others 30 us: the file ends with a hash of them (rl_hash_bytes)."""
    low = lambda x: x & (1 << 64) - 1

    def mix(x):
        for _ in range(2):
            x = low((x ^ x >> 32) * 0xd6e8feb86659fd93)
        return x ^ x >> 32

    lines = path.read_text().splitlines()
    rows = [line.split() for line in lines[2:-1]]
    text = "".join(" ".join([r[0], r[1] if r[1] == "-1" else "30000" if i else "10000", *r[2:]]) + "\n" for i, r in enumerate(rows))
    data = text.encode()
    value = mix(low(len(data) + 0x9e3779b97f4a7c15))
    while len(data) >= 8:
        value = low((value ^ int.from_bytes(data[:8], "little")) * 0x9fb21c651e98df25)
        value, data = value ^ value >> 29, data[8:]
    value = mix(value ^ int.from_bytes(data, "little"))
    path.write_text("\n".join(lines[:2]) + f"\n{text}end {len(rows)} {value:016x}\n")


def check_as_is(t, model):
    """Where nothing takes less than what runs without a plan, the model gets none, and loses the one that it has."""
    shape = lambda name: h.make_tensor_value_info(name, T.FLOAT, [1, 32, 16, 16])
    m = h.make_model(h.make_graph([h.make_node("Relu", ["x"], ["y"])], "g", [shape("x")], [shape("y")]), opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    plain = m.SerializeToString()
    h.set_model_props(m, {"relayout.plan": "an old one"})
    onnx.save(m, model)
    out, report = t.folder / "none.onnx", t.folder / "none.json"
    r = t.run("profile", model, "-o", out, "--json", report)
    t.check(r.returncode == 0 and "has none" in r.stderr and json.loads(report.read_text())["as_is"], f"nothing to gain: {r.returncode} {r.stderr}")
    t.check(out.read_bytes() == plain, "the model without a plan")
    env = {**t.env, "XDG_CACHE_HOME": str(t.folder / "own")}
    (t.folder / "own").mkdir()
    for _ in range(2):  # what runs without a plan costs what it takes there, whatever a second measurement of it alone said
        r = t.run("profile", model, "--json", report, env=env)
        p = json.loads(report.read_text())
        t.check(r.returncode == 0 and p["as_is"] and p["predicted_ns"] == p["whole_ns"], f"as without a plan: {p['predicted_ns']}, not {p['whole_ns']} ({r.stderr})")
        for f in (t.folder / "own").rglob("costs-*"):
            change_costs(f)


def check_joined(t, model):
    """A chain of Reshapes and Transposes runs as its last, which has the time of all."""
    consts = [numpy_helper.from_array(np.random.default_rng(1).uniform(-1, 1, (16, 16, 3, 3)).astype(np.float32), "w"),
              numpy_helper.from_array(np.array([1, 16, 16, 2, 16, 2]), "cut"), numpy_helper.from_array(np.array([4, 256, 16]), "to")]
    nodes = [h.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]), h.make_node("Reshape", ["a", "cut"], ["r"]),
             h.make_node("Transpose", ["r"], ["t"], perm=[0, 3, 5, 2, 4, 1]), h.make_node("Reshape", ["t", "to"], ["s"]),
             h.make_node("Relu", ["s"], ["y"])]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [1, 16, 32, 32])], [h.make_tensor_value_info("y", T.FLOAT, [4, 256, 16])], consts)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)]), model)
    p, _ = profile(t, model, "joined")
    cost = {o["name"]: o["configurations"][0]["ns"] for o in p["ops"] if o["step"] >= 0}  # the first is what runs without a plan
    t.check(cost["r"] == 0 and cost["t"] == 0 and cost["s"] > 0 and cost["a"] > 0 and cost["y"] > 0, f"times of a joined step: {cost}")


def check_threads(t, model):
    """Costs and plans are of a number of threads: those of one say nothing of two."""
    out, files = t.folder / "threads.onnx", lambda: {f.name for f in (t.folder / "cache" / "relayout").glob("costs-*.txt")}
    profile(t, model, "one", "--threads", 1)
    before = files()
    p, text = profile(t, model, "two", "--threads", 2)
    t.check(p["measured"] > 0 and p["machine"].endswith(", 2 threads") and "2 threads" in text, f"two threads: measured for themselves: {p['measured']} on {p['machine']}")
    t.check(len(files() - before) == 1, f"and kept in a file of their own: {files()}")
    p, _ = profile(t, model, "again", "--threads", 2)
    t.check(p["measured"] == 0, f"two threads again: known ({p['measured']})")
    t.run("profile", model, "-o", out, "--runs", 1, "--table", "--threads", 2)
    for threads, lines in ((2, 0), (1, 1)):
        r = t.run("run", out, "--threads", threads)
        t.check(r.returncode == 0 and len(r.stderr.splitlines()) == lines, f"a plan of two threads, {threads}: {r.stderr}")
    t.same(out, t.outputs(model, "reference", "--kernels", "reference")[1], "two threads", "--threads", 2)


def check_plain_loops(t, model):
    """oneDNN's plain loops are no layout's cost, though the library says `conv:any+ref:any` of a deconvolution that runs them."""
    w = numpy_helper.from_array(np.ones((16, 16, 3, 3), np.float32), "w")
    nodes = [h.make_node("ConvTranspose", ["x", "w"], ["t"], pads=[1, 1, 1, 1]), h.make_node("Relu", ["t"], ["y"])]
    shape = lambda name: h.make_tensor_value_info(name, T.FLOAT, [1, 16, 12, 12])
    onnx.save(h.make_model(h.make_graph(nodes, "g", [shape("x")], [shape("y")], [w]), opset_imports=[h.make_opsetid("", 17)], ir_version=8), model)
    p = t.run("profile", model, "--runs", 3, "--threads", 1)
    rows = [line.split() for f in (t.folder / "cache").rglob("costs-*") for line in f.read_text().splitlines()]
    t.check(p.returncode == 0 and rows and not [r for r in rows if r and "+ref" in r[-1]], f"plain loops were measured: {p.stderr[-200:]}")


def main():
    a = common.arguments(__doc__.split("\n")[0])
    a.add_argument("--count", type=int, default=12, help="random networks (default: 12)")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--models", nargs="*", default=MODELS, help="sample models whose names contain one of these")
    args = a.parse_args()
    prog = common.program(args)
    if not common.has_onednn(prog):
        print("skipped: oneDNN is not found")
        return common.closing(0, 0, 1)
    with tempfile.TemporaryDirectory() as folder:
        t = Test(prog, folder)
        blocked = 0
        for i in range(args.count):
            seed = args.seed * 1000 + i
            model = t.folder / "net.onnx"
            onnx.save(Network(seed).model(), model)
            blocked += check_model(t, model, f"net{seed}", random.Random(seed), 2, *(["--table"] if i % 2 else []))
        t.check(blocked > 10 * args.count, f"values in blocks: {blocked}")
        model = t.folder / "files.onnx"
        onnx.save(Network(args.seed * 1000).model(), model)
        check_wide(t)
        check_broadcast(t, t.folder / "broadcast.onnx")
        check_files(t, model)
        check_plain_loops(t, t.folder / "plain.onnx")
        check_threads(t, model)
        check_joined(t, t.folder / "joined.onnx")
        check_as_is(t, t.folder / "relu.onnx")
        check_cache(t, model)
        refused_ones = 0
        for i in range(3):
            onnx.save(Network(args.seed * 1000 + 500 + i).model(), model)
            refused_ones += check_proofs(t, model, f"proof{i}", random.Random(i)) or 0
        t.check(refused_ones >= 60, f"false certificates: {refused_ones}")
        found = zoo.chosen(args.models) if args.models else []
        for m in found:
            check_model(t, zoo.filled(m, args.build / "zoo"), m, random.Random(args.seed), 1)
        print(f"sample models: {', '.join(found) or 'none'}")
    return common.closing(t.passed, t.failed)


if __name__ == "__main__":
    sys.exit(main())
