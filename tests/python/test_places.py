#!/usr/bin/env python3
"""Plans of layouts on a GPU: `relayout profile --device cuda`, and models run by its plans.

  test_places.py --count 12 --seed 3                                           on the emulated device
  test_places.py --relayout build-gpu/relayout --device cuda --measured        on a GPU

On random networks of bytes (QLinearConv of every kind, and between DequantizeLinear and QuantizeLinear), floats and float16: the predicted cost is the
least that there is for the table, found again by other means, and no choice that costs as little has fewer conversions; both checkers take the
certificate; the plan, and random ones with blocked layouts mixed at will, give the CPU's reference outputs, also where the device's kernels fail.
Then cuDNN's vectors of 32 channels, on the libraries that stand in for NVIDIA's, and the plan in a model's metadata.
"""
import itertools
import json
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

import common
import lowered
import test_native
from test_native import CHECKER, Network, least, plan_text, sum_of

KNOWN = {"floats": [97004024]}  # a joined step that the device cannot do: what its parts make was taken for values of the plan
BLOCKED = ("aBcd4b", "aBcd32b", "Bcda4b")
DEVICE = ["--device", "cuda"]


class Bytes:
    """Convolutions of bytes and what stands between them; scales are powers of two, so that every product is exact."""

    def __init__(self, seed):
        self.rng, self.data, self.n = random.Random(seed), np.random.default_rng(seed), 0
        self.nodes, self.init, self.live = [], [], []
        self.batch, self.space = self.rng.choice([1, 2, 32]), self.rng.choice([3, 5, 6])

    def const(self, a):
        self.n += 1
        self.init.append(numpy_helper.from_array(np.asarray(a), f"c{self.n}"))
        return f"c{self.n}"

    def name(self):
        self.n += 1
        return f"v{self.n}"

    def numbers(self, kind, zero=None):
        """Scale and zero point of an activation."""
        z = zero if zero is not None else self.rng.choice([0, 0, 3]) if kind == np.int8 else self.rng.choice([128, 0, 131])
        return self.const(np.float32(2.0 ** self.rng.choice([-4, -5]))), self.const(kind(z))

    def weights(self, m, c, k):
        scale = np.float32(2.0 ** -5) if self.rng.random() < 0.5 else (2.0 ** self.data.integers(-6, -3, m)).astype(np.float32)
        zero = np.zeros(scale.shape, np.int8)
        return [self.const(self.data.integers(-20, 21, (m, c, k, k)).astype(np.int8)), self.const(scale), self.const(zero)]

    def first(self, x, c):
        kind = self.rng.choice([np.int8, np.int8, np.uint8])
        s, z = self.numbers(kind)
        y = self.name()
        self.nodes.append(h.make_node("QuantizeLinear", [x, s, z], [y]))
        self.live.append((y, c, kind, s, z))

    def conv(self, at):
        x, c, kind, xs, xz = at
        k, m = self.rng.choice([1, 3]), self.rng.choice([4, 6, 8, 20, 32, 33, 64])
        group = c if self.rng.random() < 0.2 else 1
        m = c if group > 1 else m
        to = self.rng.choice([np.int8, np.int8, np.uint8])
        s, z = self.numbers(to)
        ins = [x, xs, xz, *self.weights(m, c // group, k), s, z]
        if self.rng.random() < 0.5:
            ins.append(self.const(self.data.integers(-300, 300, m).astype(np.int32)))
        y = self.name()
        self.nodes.append(h.make_node("QLinearConv", ins, [y], pads=[k // 2] * 4, group=group))
        self.live.append((y, m, to, s, z))

    def floats(self, at):
        """Taken back, computed as floats, quantized again."""
        x, c, kind, xs, xz = at
        f, g = self.name(), self.name()
        self.nodes.append(h.make_node("DequantizeLinear", [x, xs, xz], [f]))
        same = [o for o in self.live if o[1] == c]
        what = self.rng.choice(["add", "relu", "clip", "scale", "pool", "conv"])
        if what == "add":
            o, b = self.rng.choice(same), self.name()
            self.nodes.append(h.make_node("DequantizeLinear", [o[0], o[3], o[4]], [b]))
            self.nodes.append(h.make_node("Add", [f, b], [g]))
        elif what == "scale":
            self.nodes.append(h.make_node("Mul", [f, self.const(np.full((c, 1, 1), 0.5, np.float32))], [g]))
        elif what == "clip":
            self.nodes.append(h.make_node("Clip", [f, self.const(np.float32(-1)), self.const(np.float32(1))], [g]))
        elif what == "pool":
            self.nodes.append(h.make_node("MaxPool", [f], [g], kernel_shape=[3, 3], pads=[1] * 4))
        elif what == "conv":  # joined to one step of bytes on the device
            w, b = self.name(), self.weights(c, c, 1)
            self.nodes.append(h.make_node("DequantizeLinear", b, [w], axis=0))
            self.nodes.append(h.make_node("Conv", [f, w], [g]))
        else:
            self.nodes.append(h.make_node("Relu", [f], [g]))
        s, z = self.numbers(np.int8)
        y = self.name()
        self.nodes.append(h.make_node("QuantizeLinear", [g, s, z], [y]))
        self.live.append((y, c, np.int8, s, z))

    def bytes(self, at):
        """A maximum or a join of bytes as they are."""
        x, c, kind, s, z = at
        y = self.name()
        if self.rng.random() < 0.5:
            self.nodes.append(h.make_node("MaxPool", [x], [y], kernel_shape=[3, 3], pads=[1] * 4))
        else:
            same = [o for o in self.live if o[2] == kind]
            other = self.rng.choice(same)
            self.nodes.append(h.make_node("Concat", [x, other[0], x], [y], axis=1))
            c = 2 * c + other[1]
        self.live.append((y, c, kind, s, z))

    def model(self, steps):
        c = self.rng.choice([3, 4, 8, 32])
        self.first("x", c)
        for _ in range(steps):
            at = self.rng.choice(self.live[-2:])
            self.rng.choice([self.conv, self.conv, self.conv, self.floats, self.bytes])(at)
        y, c, kind, s, z = self.live[-1]
        self.nodes.append(h.make_node("DequantizeLinear", [y, s, z], ["f"]))
        self.nodes.append(h.make_node("GlobalAveragePool", ["f"], ["y"]))
        out, oc, ot = self.rng.choice(self.live)[:3]
        types = {np.int8: T.INT8, np.uint8: T.UINT8}
        outs = [h.make_tensor_value_info("y", T.FLOAT, [self.batch, c, 1, 1]),
                h.make_tensor_value_info(out, types[ot], [self.batch, oc, self.space, self.space])]
        shape = [self.batch, self.live[0][1], self.space, self.space]
        g = h.make_graph(self.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, shape)], outs, self.init)
        return onnx.shape_inference.infer_shapes(h.make_model(g, opset_imports=[h.make_opsetid("", 19)], ir_version=9))


# ---- plans ----

def fewest(p):
    """The least cost, and the fewest conversions of the choices that cost so: each move weighs a little more."""
    k = 1 << 12
    q = {**p, "fixed_ns": p["fixed_ns"] * k, "reorders": [(v, a, b, ns * k + 1) for v, a, b, ns in p["reorders"]],
         "ops": [{**o, "configurations": [{**c, "ns": c["ns"] * k} for c in o["configurations"]]} for o in p["ops"]]}
    found = least(q)
    return None if found is None else divmod(found, k)


def conversions(p):
    """Of the choice: a value is moved once to each layout that it is read in and not made in."""
    has, n = {}, 0
    for o in p["ops"]:
        for (v, end), lay in zip(o["pins"], o["configurations"][o["chosen"]]["layouts"]):
            n += end == "in" and lay not in has[v]
            has.setdefault(v, set()).add(lay)
    return n


def every_choice(p, most=100000):
    """The least cost by trying every choice; None: there are too many."""
    counts = [len(o["configurations"]) for o in p["ops"]]
    if np.prod([float(n) for n in counts]) > most:
        return None
    return min(sum_of({**p, "ops": [{**o, "chosen": c} for o, c in zip(p["ops"], pick)]}) for pick in itertools.product(*map(range, counts)))


def outputs(t, model, name, *more):
    p, got = t.outputs(model, name, *more)
    t.check(got is not None, f"{name} runs: {p.stderr.strip()[-300:]}")
    return got


def compare(t, want, got, name, bound):
    for k in want if got is not None else []:
        a, b = want[k].astype(np.float64), got[k].astype(np.float64)
        if not t.check(a.shape == b.shape, f"{name}: {k} has the reference's dims"):
            continue
        there = np.isfinite(a)  # float16 ends at 65504
        off, scale = (float(np.max(x[there], initial=0)) for x in (np.abs(a - b), np.abs(a)))
        t.check(off <= bound * max(1e-6, scale), f"{name}: {k} is the reference's: {off} of {scale} off")


def check_model(t, model, name, rng, bound, table, faults):
    plan, report, proof, out = (t.folder / f"{name}.{x}" for x in ("plan", "json", "proof", "onnx"))
    r = t.run("profile", model, *DEVICE, *table, "--plan", plan, "--json", report, "--runs", 1, "-o", out, *([] if not table else ["--proof", proof]))
    if not t.check(r.returncode == 0, f"{name}: profile: {r.stderr.strip()[-300:]}"):
        return 0, False
    p, text = json.loads(report.read_text()), plan.read_text()
    t.check(p["optimal"] and p["checked"] and p["bound_ns"] == p["predicted_ns"], f"{name}: proved, and checked")
    t.check(p["moves"] == conversions(p), f"{name}: {p['moves']} conversions in the run, {conversions(p)} in the choice")
    found, tried = fewest(p), every_choice(p)
    if found:
        t.check(found == (p["predicted_ns"], p["moves"]), f"{name}: {p['predicted_ns']} ns and {p['moves']} conversions, the least is {found}")
    if tried is not None:
        t.check(tried == p["predicted_ns"], f"{name}: predicted {p['predicted_ns']}, the least of all choices is {tried}")
    if table:
        t.check(t.run("check-proof", proof, out, *DEVICE).returncode == 0, f"{name}: check-proof")
        t.check(subprocess.run([sys.executable, CHECKER, proof, out]).returncode == 0, f"{name}: check_proof.py")
    want = outputs(t, model, "reference", "--kernels", "reference")
    compare(t, want, outputs(t, out, f"{name}-own", *DEVICE), f"{name}-own", bound)
    blocked = 0
    picks = [lambda o: max(o["configurations"], key=lambda c: (sum(x in BLOCKED for x in c["layouts"]), rng.random()))] + [lambda o: rng.choice(o["configurations"])] * 2
    for i, pick in enumerate(picks):
        file = t.folder / "plan.txt"
        file.write_text(plan_text(p, text, pick))
        blocked += sum(file.read_text().count(x) for x in BLOCKED)
        compare(t, want, outputs(t, model, f"{name}-{i}", *DEVICE, "--plan", file), f"{name}-{i}", bound)
        if faults and i == 0:  # kernels that cannot be launched: what they do is done another way, in the plan's layouts
            for fault in ("launch:dp4a", "launch:recode", "launch:each", "launch:pool"):
                env, was = {**t.env, "RELAYOUT_EMULATE_FAULT": fault}, t.env
                t.env = env
                compare(t, want, outputs(t, model, f"{name}-{fault}", *DEVICE, "--plan", file), f"{name}-{fault}", bound)
                t.env = was
    return blocked, tried is not None


# ---- cuDNN's vectors ----

def vectors_net(path):
    """Signed bytes, no zero points, one scale, no bias: what cuDNN takes in vectors of 32 channels."""
    r, init, nodes = np.random.default_rng(5), [], []
    const = lambda a, name: init.append(numpy_helper.from_array(np.asarray(a), name)) or name
    const(np.float32(2.0 ** -4), "s"), const(np.int8(0), "z"), const(np.float32(2.0 ** -7), "ws")
    nodes.append(h.make_node("QuantizeLinear", ["x", "s", "z"], ["v0"]))
    for i in range(3):
        const(r.integers(-20, 21, (64, 64, 3, 3)).astype(np.int8), f"w{i}")
        nodes.append(h.make_node("QLinearConv", [f"v{i}", "s", "z", f"w{i}", "ws", "z", "s", "z"], [f"v{i + 1}"], pads=[1] * 4))
    nodes.append(h.make_node("DequantizeLinear", ["v3", "s", "z"], ["y"]))
    shape = [1, 64, 5, 5]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, shape)], [h.make_tensor_value_info("y", T.FLOAT, shape)], init)
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 19)], ir_version=9), path)


def check_vectors(t, prog, stand_in):
    """Plans that say NCHW32 or NCHW4 give the library vectors, on both sides of each convolution."""
    model, plan, report = t.folder / "vectors.onnx", t.folder / "vectors.plan", t.folder / "vectors.json"
    vectors_net(model)
    was, t.env, t.prog, own = t.env, {**t.env, "LD_LIBRARY_PATH": str(stand_in)}, prog, t.prog
    r = t.run("profile", model, *DEVICE, "--table", "--runs", 1, "--plan", plan, "--json", report)
    if t.check(r.returncode == 0, f"vectors: {r.stderr}"):
        p = json.loads(report.read_text())
        for lay in ("aBcd32b", "aBcd4b"):
            convs = [c for o in p["ops"] if o["op"] == "QLinearConv" for c in o["configurations"] if c["layouts"] == [lay, lay]]
            t.check(len(convs) == 3 and all(c["kernel"] == "cuDNN" for c in convs), f"vectors: the library takes {lay}: {[c['kernel'] for c in convs]}")
        chosen = [o["configurations"][o["chosen"]]["layouts"] for o in p["ops"] if o["op"] == "QLinearConv"]
        print(f"vectors: the plan has {chosen}")
        want = outputs(t, model, "vectors-reference", "--kernels", "reference")
        for lay in ("aBcd32b", "aBcd4b"):
            (t.folder / "v.plan").write_text(plan_text(p, plan.read_text(), lambda o: next((c for c in o["configurations"] if c["layouts"] == [lay, lay]), o["configurations"][0])))
            compare(t, want, outputs(t, model, f"vectors-{lay}", *DEVICE, "--plan", t.folder / "v.plan"), f"vectors {lay}", 0)
    t.env, t.prog = was, own


# ---- files ----

def check_files(t, model):
    """The device's plan and the CPU's are two, and each keeps to its own."""
    both, out = t.folder / "both.onnx", t.folder / "cuda.onnx"
    t.check(t.run("profile", model, *DEVICE, "--table", "--runs", 1, "-o", out).returncode == 0, "profile -o")
    m = onnx.load(out)
    t.check([x.key for x in m.metadata_props] == ["relayout.plan.cuda"], f"the metadata's key: {[x.key for x in m.metadata_props]}")
    r = t.run("run", out)
    t.check(r.returncode == 0 and not r.stderr, f"the CPU does not look at it: {r.stderr}")
    r = t.run("run", out, *DEVICE)
    t.check(r.returncode == 0 and not r.stderr, f"the device takes it: {r.stderr}")
    if common.has_onednn(t.prog):
        t.check(t.run("profile", out, "--table", "--runs", 1, "-o", both).returncode == 0, "profile of a model that has one")
        t.check(sorted(x.key for x in onnx.load(both).metadata_props) == ["relayout.plan", "relayout.plan.cuda"], "both are there")
    m.metadata_props[0].value = m.metadata_props[0].value.replace("machine ", "machine another ", 1)
    onnx.save(m, out)
    r = t.run("run", out, *DEVICE)
    t.check(r.returncode == 0 and len(r.stderr.splitlines()) == 1 and "another machine" in r.stderr, f"of another device: {r.stderr}")
    p = t.folder / "bad.plan"
    p.write_text("\n".join(m.metadata_props[0].value.replace("Bcda4b", "aBcd8b").replace("acdb", "aBcd8b").replace(" plain", "").splitlines()) + "\n")
    r = t.run("run", model, *DEVICE, "--plan", p)
    t.check("aBcd8b" not in p.read_text() or (r.returncode == 4 and "cannot have" in r.stderr), f"a layout that the device has not: {r.returncode} {r.stderr}")


def check_refusal(t):
    """Nothing computes with numbers of 4 bits: one line."""
    model = t.folder / "int4.rlt"
    model.write_text("graph g opset=21 {\n  in %x i4[1,64,4,4]\n  in %w i4[8,64,1,1]\n  %y = Conv(%x, %w)\n  out %y\n}\n")
    r = t.run("run", model, *DEVICE)
    t.check(r.returncode == 5 and len(r.stderr.splitlines()) == 1 and "i4" in r.stderr, f"4 bits are refused: {r.returncode} {r.stderr}")


def main():
    a = common.arguments(__doc__.split("\n")[0])
    a.add_argument("--count", type=int, default=9, help="random networks of each kind (default: 9)")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--device", help="taken and left out: this test is of cuda")
    a.add_argument("--measured", action="store_true", help="costs by measurement, not by the table")
    args = a.parse_args()
    emulated = args.relayout is None
    args.relayout = args.relayout or args.build / "cuda" / "relayout_emulated"
    if emulated and not args.relayout.exists():
        print("skipped: no emulated device in this build")
        return common.closing(0, 0, 1)
    prog = common.program(args)
    table = [] if args.measured else ["--table"]
    kinds = {"bytes": (lambda s: Bytes(s).model(random.Random(s).randrange(1, 6)), 0), "floats": (lambda s: Network(s).model(), 1e-4),
             "halves": (lambda s: lowered.lowered(Network(s).model(), T.FLOAT16), 2e-2)}
    with tempfile.TemporaryDirectory() as folder:
        t = test_native.Test(prog, folder)
        blocked, tried = {}, 0
        for kind, (make, bound) in kinds.items():
            for i, seed in enumerate([*range(args.seed * 1000, args.seed * 1000 + args.count), *KNOWN.get(kind, ())]):
                model = t.folder / "net.onnx"
                onnx.save(make(seed), model)
                n, all_choices = check_model(t, model, f"{kind}{seed}", random.Random(seed), bound, table, emulated and i % 3 == 0)
                blocked[kind] = blocked.get(kind, 0) + n
                tried += all_choices
        onnx.save(Bytes(args.seed * 1000).model(3), t.folder / "net.onnx")
        check_files(t, t.folder / "net.onnx")
        check_refusal(t)
        stand_in = args.build / "cuda" / "stand_in"
        if emulated and (stand_in / "libcudnn.so.9").exists():
            check_vectors(t, str((args.build / "relayout").resolve()), stand_in.resolve())
        else:
            print("skipped: cuDNN's vectors: no libraries that stand in")
        t.check(blocked["bytes"] > 20 * args.count, f"bytes in blocks: {blocked}")
        t.check(tried > 0 or args.measured, "networks of which every choice was tried")
        print(f"pins in blocks: {blocked}; every choice tried of {tried} networks")
    return common.closing(t.passed, t.failed)


if __name__ == "__main__":
    sys.exit(main())
