#!/usr/bin/env python3
"""Certificates through the second checker, scripts/check_proof.py, which shares no code with the program.

  test_proof.py                        hand-made certificates, cases, random models, some sample models, mutations
  test_proof.py --zoo all --count 0    all sample models, nothing random
  test_proof.py --wide 150 --count 0   random models of graphgen_wide.py: opsets 7 to 28, other types
  test_proof.py --random SEED          one random model, with its certificate left in BUILD/proof-failures

Hand-made: the least cost is known from trying every assignment; the checker must accept it and refuse a higher one. Real ones: the file
that `optimize --proof` writes must hold, and its problem must be the one that the checker rebuilds from the model. Mutated:
changes after which the file cannot be true (mutate.py says why) must be refused. Targets: the certificates of those that have more than
ONNX's ops must hold for both checkers, also of models that have FusedMatMul, and those that need rows that a target has not be refused.
"""
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto as T

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import common
import graphgen
import mutate
import proofgen
import referee
import spangen
import test_random
import test_targets
import test_text_run
import timegen
import twingen
import zoo

sys.path.insert(0, str(common.ROOT / "scripts"))
from proof import Refused, bound, table, text  # noqa: E402
from proof.compare import Pair          # noqa: E402
from proof.symbols import Symbols  # noqa: E402
from proof.target import Target  # noqa: E402

# Quick ones that have something to prove; --zoo all takes the rest too.
ZOO = ["pt_gpt", "ptd_gpt", "tf_ssd_lite_raw", "pt_vit_tiny_patch16_224", "tf_mobilenet_v3_small_raw", "pt_mixer_s32_224", "pt_convnext_atto"]


# Of these the second part, about times.
TIMED = [("pt_gpt", "generic"), ("pt_detr", "generic"), ("tf_ssd_lite_raw", "generic:time"), ("pt_vit_tiny_patch16_224", "openvino")]

UNIT = common.ROOT / "tests" / "unit"
SIZES = UNIT / "open_sizes.rlt"

WIDE = 300500  # the first of those of graphgen_wide.py
KNOWN = [("random", 3080), ("random", 5164), ("random", 5353), ("random", 5414), ("wide", 300617), ("wide", 300640), ("wide", 300796), ("wide", 300863),
         ("random", 20783000104), ("random", 20783000434), ("random", 20783001436), ("wide", 20783302526),
         ("random", 20783000737), ("random", 31400000090), ("random", 31400000344), ("random", 31400000429), ("random", 31400001400), ("random", 31400001683),
         ("random", 31500000064), ("random", 31600000112), ("random", 31600000465), ("random", 20783000832),
         ("random", 31400000815), ("random", 91700000123), ("random", 93000000009), ("random", 96000001005), ("random", 93310000193), ("wide", 93350300506)]  # that were refused once

UNPROVED = 0.02  # of the random models the program may leave so many without a proof; it says so itself


class Wrong(Exception):
    """What a test found."""


class Unproved(Exception):
    """The program wrote no certificate, since its own check did not hold."""


def accepts(pair, words):
    """What the checker says of a certificate: (None, what was not rebuilt), or (why it is refused, [])."""
    try:
        proof = text.Reader(words).read()
        bound.check(proof)
        return None, pair.check(proof) if pair else []
    except Refused as e:
        return str(e), []


# ---------------------------------------------------------------------------------------------------- hand-made

def hand_made(seed):
    made = proofgen.make(random.Random(seed))
    why, _ = accepts(None, made.text())
    if why:
        return f"hand-made {seed}: {why}"
    n, size = made.best
    for cost, limit in (((n + 1, size), (n + 1, size)), ((n, size), (n + 1, size)), ((n, size + 1), (n, size + 1))):
        if accepts(None, made.text(cost, limit))[0] is None:
            return f"hand-made {seed}: accepted {cost} and {limit}, the least is {made.best}"
    if made.sequence and not least_is_checked(made):
        return f"hand-made {seed}: a bound above the least is accepted"
    return None


def hand_timed(seed):
    r = random.Random(seed)
    t = timegen.make(r)
    why, _ = accepts(None, t.text())
    if why:
        return f"hand-made with times {seed}: {why}"
    for what, false in timegen.wrong(r, t):
        if accepts(None, false)[0] is None:
            return f"hand-made with times {seed}: accepted {what}"
    return None


def hand_twins(seed):
    """Two components that differ in one thing: as the referee says."""
    words = twingen.make(random.Random(seed))
    why, _ = accepts(None, words)
    try:
        referee.Statement(words).check()
        return why and f"twins {seed}: {why}"
    except referee.Unnamed:
        return None
    except referee.Bad as e:
        return None if why else f"twins {seed}: accepted, but {e}"


def hand_spans(seed):
    """Spans at random: as the referee says."""
    r = random.Random(seed)
    try:
        words, right = spangen.add(r, proofgen.make(r).text())
    except OverflowError:
        return None
    why = accepts(None, words)[0] if words else None
    return None if not words or right == (why is None) else f"spans {seed}: the referee says {right}, the checker {why}"


def hand_wide(seed, room=2):
    """A table with room for a few states and costs that floating-point numbers are too coarse for."""
    r = random.Random(seed)
    weight = [2 ** r.choice([20, 51, 52, 53, 54, 55]) + r.randint(0, 9)] * 3
    ops = [(tuple(r.sample(range(3), 2)), {(r.randrange(4), r.randrange(4)): r.choice([0, 0, 0, 1, 5]) for _ in range(3)}) for _ in range(5)]
    ops.append(((0, 1, 2), {(0, 0, 0): 0}))
    paid = {v: frozenset(r.sample([0], r.randint(0, 1))) for v in range(3)}

    def cost(chosen):
        used = {v: set(orders) for v, orders in paid.items()}
        for (vs, _), (config, _) in zip(ops, chosen):
            for v, o in zip(vs, config):
                used[v].add(o)
        return sum(own for _, own in chosen) + sum(weight[v] * (len(orders) - 1) for v, orders in used.items())
    least = min(map(cost, itertools.product(*(configs.items() for _, configs in ops))))
    with mock.patch.object(table, "FIRST", room):
        found = [table.Table(weight, paid, ops, least + more).below() for more in (0, 1)]
    return None if found == [False, True] else f"wide {seed}: below the least, and one more: {found}"


def false_ones(*_):
    """Of tests/certs, none is true."""
    for path in sorted((common.ROOT / "tests" / "certs").glob("*.cert")):
        if accepts(None, path.read_text())[0] is None:
            yield f"{path.name} is accepted"


def least_is_checked(made):
    """The bound alone, without the assignment: one more of the objective's first measure cannot be proved."""
    n, size = made.best
    proof = text.Reader(made.text((n, size + 1), (n, size + 1))).read()
    try:
        bound.check_bound(proof)
    except Refused as e:
        return "can be had for less" in str(e)
    return False


# ---------------------------------------------------------------------------------------------------- real ones

def prove(prog, src, tmp, more=(), target="onnx"):
    """Runs the program; the certificate's text and the result's path."""
    out, proof = Path(tmp) / "out.onnx", Path(tmp) / "proof.txt"
    r = common.optimize(prog, src, out, target, "--proof", str(proof), *more)
    if r.status == 7 and "nothing was proved" in r.message:
        raise Unproved(r.message.split("nothing was proved: ")[-1])
    if r.status != 0:
        raise Wrong(r.text)
    if "do not show" in r.text:
        raise Wrong("spans that the program's own checker left out")
    return proof.read_text(), out


def check_model(name, prog, src, more=(), target="onnx"):
    """(what is wrong or None, conversions, not rebuilt, seconds of the checker, gap, text, pair)"""
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        words, out = prove(prog, src, tmp, more, target)
        start = time.monotonic()
        pair = Pair(src, out, Target(name=target.split(":")[0]))
        why, lost = accepts(pair, words)
        seconds = time.monotonic() - start
    return why, lost, seconds, words, pair


def claim(words):
    return [int(w) for line in words.split("\n") if line.startswith("claim") for w in line.split()[1:]]


def run(job):
    kind, what, prog, cache = job
    row = {"kind": kind, "name": str(what), "fail": None, "lost": [], "seconds": 0.0, "claim": None, "unproved": None}
    try:
        if kind == "hand-made":
            row["fail"] = hand_made(what) or hand_timed(what) or hand_twins(what) or hand_spans(what) or hand_wide(what)
            return row
        with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
            if kind == "target":
                row["fail"], row["lost"] = on_target(what, prog, Path(tmp))
                return row
            if kind in MODELS:
                row["fail"] = "; ".join(MODELS[kind](prog, Path(tmp))) or None
                return row
            more, target = (), "onnx"
            if kind == "case":
                src = what
            elif kind == "times":
                what, target = what
                src = zoo.filled(what, cache / "zoo")
            elif kind == "zoo":
                src = zoo.filled(what, cache / "zoo")
            else:
                src, made = Path(tmp) / "in.onnx", test_random.MAKERS[kind == "wide"](what)
                test_random.put(made.proto, src, made.external)
                more = ("--objective", "bytes") if what % 4 == 3 else ()
                more += ("-vv",) if Path(prog).name == "relayout_spans" else ()  # what is left out, too
                target = ["onnx", "generic:time", "generic"][what % 3] if what % 4 != 3 else "onnx"
            why, lost, row["seconds"], words, _ = check_model(row["name"], prog, src, more, target)
            row.update(lost=lost, claim=claim(words), fail=why)
            if why and kind in ("random", "wide"):
                keep(cache / "proof-failures", what, made.proto, words)
    except Unproved as e:
        row["unproved" if kind in ("random", "wide", "target") else "fail"] = f"not proved: {e}"
    except Exception as e:
        row["fail"] = f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:300]}"
    return row


def keep(folder, seed, model, words):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{seed}.onnx").write_bytes(model.SerializeToString())
    (folder / f"{seed}.proof").write_text(words)


# ---------------------------------------------------------------------------------------------------- targets

TARGETS = ["fused", "ort", "fused:bytes", "ort:time", "ort-cuda", "ort:bytes"]
BATCH = """TARGET( batch, "FusedMatMul with all flags, which cost nothing" )
LIKE( batch, onnx )
FORM( batch, FUSED_MATMUL, "f32" )
FORM( batch, FUSED_BATCH, "f32" )
"""
CHEAP = """TARGET( cheap, "flags that cost less than those of ort" )
LIKE( cheap, ort )
CHARGE( cheap, FUSED_FLAG, 1 )
"""


def by_both(prog, src, tmp, target):
    """Why one of the checkers refuses what the program writes for a target (its name or file), or None; what was not rebuilt; the certificate;
    the result."""
    words, out = prove(prog, src, tmp, target=target)
    name = target.split(":")[0]
    r = common.relayout(prog, "check-proof", Path(tmp) / "proof.txt", src, out, "--target", name)
    why, lost = accepts(Pair(src, out, Target(name) if "/" in name else Target(name=name)), words)
    return why or (None if r.status == 0 else f"check-proof: {r.message}"), lost, words, out


def on_target(seed, prog, tmp):
    """A random model, and then what was written of it, which has the target's own ops: what is wrong or None, and what was not rebuilt."""
    target = TARGETS[seed % len(TARGETS)]
    src, again = tmp / "in.onnx", tmp / "again.onnx"
    onnx.save(graphgen.make(seed).proto if seed // len(TARGETS) % 4 == 3 else test_targets.product(random.Random(seed)), src)
    why, lost, _, out = by_both(prog, src, tmp, target)
    if why:
        return f"{target}: {why}", lost
    out.rename(again)
    why, more, _, _ = by_both(prog, again, tmp, target)
    return f"{target}, once more: {why}" if why else None, lost + more


def heads():
    """A product of which one operand has its rows before the batch, and the other its matrix swapped."""
    node, info = test_targets.h.make_node, lambda name, dims: (name, T.FLOAT, dims)
    nodes = [node("Transpose", ["a"], ["ta"], perm=[1, 0, 2]), node("Transpose", ["b"], ["tb"], perm=[0, 2, 1]), node("MatMul", ["ta", "tb"], ["y"])]
    return test_targets.model_of(nodes, [info("a", [3, 2, 4]), info("b", [2, 5, 4])], [info("y", [2, 3, 5])])


def of_constants():
    """A Gemm of two constants that is larger than both, so it stays; its result is read as it is and transposed."""
    h, info = test_targets.h, lambda name, dims: (name, T.FLOAT, dims)
    nodes = [h.make_node("Gemm", ["a", "b"], ["g"], transB=1), h.make_node("Relu", ["g"], ["r"]), h.make_node("Transpose", ["r"], ["t"], perm=[1, 0]),
             h.make_node("Add", ["t", "x"], ["y"]), h.make_node("Add", ["r", "w"], ["z"])]
    weights = [onnx.numpy_helper.from_array(np.random.default_rng(0).random(d, np.float32), n) for n, d in (("a", (1024, 2)), ("b", (640, 2)))]
    return test_targets.model_of(nodes, [info("x", [640, 1024]), info("w", [1024, 640])], [info("y", [640, 1024]), info("z", [1024, 640])], weights)


class Net:
    """Nodes and weights of a vision transformer, one after the other."""

    def __init__(self):
        self.nodes, self.weights, self.rng = [], [], np.random.default_rng(0)

    def add(self, op, *ins, outputs=1, **attrs):
        names = [f"t{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(test_targets.h.make_node(op, [self.constant(x) if isinstance(x, np.ndarray) else x for x in ins], names, **attrs))
        return names if outputs > 1 else names[0]

    def constant(self, x):
        self.weights.append(onnx.numpy_helper.from_array(x, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def random(self, *dims):
        return self.rng.random(dims, np.float32)

    def shape(self, x, *dims):
        return self.add("Reshape", x, np.array(dims))

    def turn(self, x, *perm):
        return self.add("Transpose", x, perm=perm)

    def linear(self, x, n, m):
        return self.add("Add", self.add("MatMul", x, self.random(n, m)), self.random(m))

    def norm(self, x, c):
        return self.add("LayerNormalization", x, self.random(c), self.random(c))

    def mlp(self, x, c):
        return self.add("Add", x, self.linear(self.add("Relu", self.linear(self.norm(x, c), c, 4 * c)), 4 * c, c))

    def model(self, size, y, dims):
        info = lambda name, shape: (name, T.FLOAT, shape)
        self.nodes.append(test_targets.h.make_node("Identity", [y], ["y"]))
        return test_targets.model_of(self.nodes, [info("x", [1, 3, size, size])], [info("y", dims)], self.weights)


def windows(size=32, side=4, c=32, heads=4):
    """Attention in windows and then on a grid, as in MaxViT: more configurations than one fold leaves few of."""
    net, tokens, many = Net(), side * side, (size // side) ** 2
    image = [1, size // side, side, size // side, side, c]

    def attention(x, inside, outside):
        """inside: the halves of height and width that a window has, and outside the others."""
        perm = [0, *outside, *inside, 5]
        y = net.shape(net.turn(net.shape(net.norm(x, c), *image), *perm), many, tokens, c)
        parts = net.turn(net.shape(net.linear(y, c, 3 * c), many, tokens, 3, heads, c // heads), 2, 0, 3, 1, 4)
        q, k, v = (net.add("Gather", parts, np.array(i), axis=0) for i in range(3))
        scores = net.add("Add", net.add("MatMul", q, net.turn(k, 0, 1, 3, 2)), net.random(heads, tokens, tokens))
        y = net.turn(net.add("MatMul", net.add("Softmax", scores, axis=-1), v), 0, 2, 1, 3)
        y = net.turn(net.shape(net.linear(net.shape(y, many, tokens, c), c, c), *(image[i] for i in perm)), *np.argsort(perm).tolist())
        return net.mlp(net.add("Add", x, net.shape(y, 1, size, size, c)), c)
    x = net.turn(net.add("Conv", "x", net.random(c, 3, 1, 1)), 0, 2, 3, 1)
    x = attention(attention(x, (2, 4), (1, 3)), (1, 3), (2, 4))
    return net.model(size, net.add("Conv", net.turn(x, 0, 3, 1, 2), net.random(3, c, 1, 1)), [1, 3, size, size])


def pooled(size=56, c=16, depths=(1, 2, 1, 1)):
    """Attention within units of tokens, queries pooled from stage to stage, as in Hiera: one atom of each role is too many, and which to leave out matters."""
    net, unit, heads = Net(), 4 ** (len(depths) - 1), 1
    x = net.turn(net.shape(net.add("Conv", "x", net.random(c, 3, 1, 1)), 1, c, size * size), 0, 2, 1)
    for i in range(len(depths) - 1):
        side = size >> (i + 1)
        x = net.shape(net.turn(net.shape(x, 4 ** i, side, 2, side, 2, c), 0, 2, 4, 1, 3, 5), 4 ** (i + 1), side, side, c)
    x, tokens = net.shape(x, 1, size * size, c), size * size
    for stage, depth in enumerate(depths):
        for block in range(depth):
            pools, was = block == 0 and stage > 0, c
            many = tokens // unit if stage < 2 or (stage == 2 and pools) else 1
            c, heads = (2 * c, 2 * heads) if pools else (c, heads)
            n = net.norm(x, was)
            if pools:
                x = net.add("ReduceMax", net.shape(net.linear(n, was, c), 1, 4, tokens // 4, c), axes=[1], keepdims=0)
            parts = net.turn(net.shape(net.linear(n, was, 3 * c), 1, tokens // many, many, 3, heads, c // heads), 3, 0, 4, 2, 1, 5)
            q, k, v = (net.add("Squeeze", y, np.array([0])) for y in net.add("Split", parts, outputs=3, axis=0))
            if pools:
                q = net.add("ReduceMax", net.shape(q, 1, heads, many, 4, tokens // many // 4, c // heads), axes=[3], keepdims=0)
                tokens, unit = tokens // 4, unit // 4
            half = np.array(0.5, np.float32)
            scores = net.add("MatMul", net.add("Mul", q, half), net.add("Mul", net.turn(k, 0, 1, 2, 4, 3), half))
            y = net.turn(net.add("MatMul", net.add("Softmax", scores, axis=-1), v), 0, 3, 2, 1, 4)
            x = net.mlp(net.add("Add", x, net.linear(net.shape(y, 1, tokens, c), c, c)), c)
    return net.model(size, net.linear(net.add("ReduceMean", x, axes=[1], keepdims=0), c, 10), [1, 10])


def of_quantizer():
    """What onnxruntime's quantizer writes in com.microsoft, each followed by what keeps the order of its result and two Transposes that cancel."""
    h, info = test_targets.h, lambda name, dims, t=T.UINT8: (name, t, dims)
    init = lambda name, x: onnx.numpy_helper.from_array(np.asarray(x), name)
    at = lambda *names: [w for n in names for w in (n, "s", "z")]
    w, r = np.ones((1, 4, 12), np.int8), np.ones((1, 3, 12), np.int8)
    cases = [("QLinearSoftmax", [*at("x"), "s", "z"], {"axis": -1, "opset": 13}, 3), ("QLinearConcat", ["s", "z", *at("x", "x")], {"axis": 1}, 3),
             ("QLinearWhere", ["c", *at("x", "x"), "s", "z"], {}, 3), ("QLinearGlobalAveragePool", [*at("i"), "s", "z"], {}, 4),
             ("QGemm", [*at("m", "n"), "", "s", "z"], {"transB": 1}, 2), ("DynamicQuantizeMatMul", ["f", "w2", "s", "z8"], {}, 3),
             ("DynamicQuantizeLSTM", ["f", "w", "r", "", "", "", "", "", "s1", "z1", "s1", "z1"], {"hidden_size": 3}, 4),
             ("FusedConv", ["g", "k"], {"activation": "Relu", "pads": [1, 0, 1, 0]}, 4), ("NhwcMaxPool", ["i"], {"kernel_shape": [2, 2], "strides": [2, 2]}, 4),
             ("QLinearAveragePool", [*at("i"), "s", "z"], {"kernel_shape": [2, 2], "channels_last": 1}, 4),
             ("QLinearGlobalAveragePool", [*at("i"), "s", "z"], {"channels_last": 1}, 4),
             ("MatMulNBits", ["f", "wb", "sb"], {"K": 4, "N": 3, "bits": 4, "block_size": 16}, 3), ("MultiHeadAttention", ["f", "f", "f"], {"num_heads": 2}, 3),
             ("EmbedLayerNormalization", ["d", "", "t1", "t2", "", "t3", "t3"], {"epsilon": 1e-5}, 3)]
    weights = [init("s", np.float32(0.1)), init("z", np.uint8(3)), init("z8", np.int8(0)), init("s1", np.ones(1, np.float32)), init("z1", np.zeros(1, np.int8)),
               init("w", w), init("r", r), init("w2", np.ones((4, 6), np.int8)), init("n", np.ones((6, 5), np.uint8)),
               init("k", np.ones((2, 3, 2, 1), np.float32)), init("wb", np.ones((3, 1, 8), np.uint8)), init("sb", np.ones(3, np.float32)),
               init("t1", np.ones((7, 6), np.float32)), init("t2", np.ones((9, 6), np.float32)), init("t3", np.ones(6, np.float32))]
    ports = [info("x", ["b", 3, 4]), info("c", ["b", 1, 4], T.BOOL), info("i", ["b", 3, 4, 5]), info("m", ["b", 5]), info("f", ["b", 2, 4], T.FLOAT), info("g", ["b", 3, 4, 5], T.FLOAT),
             info("d", ["b", 2], T.INT32)]
    for op, ins, attrs, rank in cases:
        perm, back = [*range(rank - 1, -1, -1)], [*range(rank - 1, -1, -1)]
        nodes = [h.make_node(op, ins, ["q"], domain="com.microsoft", **attrs), h.make_node("Transpose", ["q"], ["t"], perm=perm),
                 h.make_node("Cast", ["t"], ["u"], to=T.FLOAT), h.make_node("Transpose", ["u"], ["y"], perm=back)]
        m = test_targets.model_of(nodes, [p for p in ports if p[0] in ins], [info("y", None, T.FLOAT)], [x for x in weights if x.name in ins])
        m.opset_import.append(h.make_opsetid("com.microsoft", 1))
        yield op, m


def rows_of_targets(prog, tmp):
    """Wrong answers where they depend on a target's rows. Below: a model, a target, the least conversions there; a target without the row, and
    why that one is refused."""
    acme, batch, cheap = (str(tmp / f"{name}.def") for name in ("acme", "batch", "cheap"))
    for path, rows in ((acme, test_targets.ACME), (batch, BATCH), (cheap, CHEAP)):
        Path(path).write_text(rows)
    for name, model in (("heads", heads()), ("u8", test_targets.quantized_model(np.random.default_rng(0), T.UINT8, np.uint8))):
        onnx.save(model, tmp / f"{name}.onnx")
    for op, model in of_quantizer():
        onnx.save(model, tmp / "contrib.onnx")
        why, lost, words, _ = by_both(prog, tmp / "contrib.onnx", tmp, "onnx")
        if why or lost or claim(words)[0]:
            yield f"{op}: {why or lost or claim(words)}"
    for net, least in ((windows(), 8), (pooled(), 12)):
        onnx.save(net, tmp / "net.onnx")
        why, lost, words, _ = by_both(prog, tmp / "net.onnx", tmp, common.whole(tmp))
        if why or lost or claim(words)[::2] != [least, least] or "\nrefold " not in words:
            yield f"a net of {least} conversions: {why or lost or claim(words)}"
    onnx.save(of_constants(), tmp / "constants.onnx")
    for target in ("generic", "ort:time"):
        why, lost, _, _ = by_both(prog, tmp / "constants.onnx", tmp, target)
        if why or lost:
            yield f"constants.onnx for {target}: {why or lost}"
    product, quantized, convs = tmp / "heads.onnx", tmp / "u8.onnx", common.ROOT / "models" / "channels_last_cnn.onnx"
    for src, target, least, other, says in ((product, "fused", 1, "onnx", "no configuration"), (product, batch, 0, "fused", "no configuration"),
                                            (product, cheap + ":time", 0, "ort", "charged"), (quantized, "ort", 0, "generic", "no configuration"),
                                            (convs, acme, 0, "generic", "")):
        why, lost, words, out = by_both(prog, src, tmp, target)
        if why or lost or claim(words)[0] != least:
            yield f"{src.name} for {target}: {why or lost or claim(words)}"
        refused = accepts(Pair(src, out, Target(name=other)), words)[0]
        if refused is None or says not in refused:
            yield f"{src.name} for {target}, taken for {other}: {refused}"


def unchanged_results(prog, tmp):
    """A model that is not rewritten is not what its certificate says, also for a target that charges, where two Transposes may be one conversion."""
    node, src = test_targets.h.make_node, tmp / "there_and_back.onnx"
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Relu", ["t"], ["u"]), node("Transpose", ["u"], ["y"], perm=[0, 2, 3, 1])]
    onnx.save(test_targets.model_of(nodes, [("x", T.FLOAT, [2, 30, 40, 50])], [("y", T.FLOAT, [2, 30, 40, 50])]), src)
    for target in ("onnx", "generic", "ort"):
        why, lost, words, _ = by_both(prog, src, tmp, target)
        if why or lost:
            yield f"{target}: {why or lost}"
        if common.relayout(prog, "check-proof", tmp / "proof.txt", src, src, "--target", target).status == 0:
            yield f"{target}: check-proof takes the model for its result"
        if accepts(Pair(src, src, Target(name=target)), words)[0] is None:
            yield f"{target}: the second checker takes the model for its result"
    yield from bytes_in_steps(prog, tmp)
    yield from unit_that_stays(prog, tmp)
    yield from turned_pairs(prog, tmp)
    yield from unrolled(prog, tmp)
    yield from rotated_blocks(prog, tmp)


def certified(prog, src, graph, numbers, target):
    """What is wrong with the certificate of a model (nodes, inputs, outputs; numbers: its constants by name), or None; and what it claims."""
    onnx.save(test_targets.model_of(*graph, [onnx.numpy_helper.from_array(np.asarray(x), name) for name, x in numbers.items()]), src)
    why, lost, words, _ = by_both(prog, src, src.parent, target)
    return why or lost, claim(words)


def unit_that_stays(prog, tmp):
    """A unit of floats that is what the choice says, and so stays as it is: one conversion, of bytes."""
    node, src = test_targets.h.make_node, tmp / "unit.onnx"
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]), node("Transpose", ["d"], ["t"], perm=[0, 2, 1]),
             node("QuantizeLinear", ["t", "s", "z"], ["r"]), node("DequantizeLinear", ["r", "s", "z"], ["e"]), node("DequantizeLinear", ["w", "s", "z"], ["f"]),
             node("MatMul", ["e", "f"], ["y"])]
    graph = nodes, [("x", T.FLOAT, [2, 32, 16])], [("y", T.FLOAT, [2, 16, 8])]
    numbers = {"s": np.float32(0.1), "z": np.int8(3), "w": np.arange(256, dtype=np.int8).reshape(32, 8)}
    wrong, claimed = certified(prog, src, graph, numbers, "generic")
    if wrong or claimed[:2] != [1, 2 * 32 * 16]:
        yield f"a unit that stays: {wrong or claimed}"


def turned_pairs(prog, tmp):
    """Rotary embeddings of queries and keys: values of five atoms, of which the closure of the model's own orders says too little of times."""
    node, src = test_targets.h.make_node, tmp / "pairs.onnx"
    nodes = [node("MatMul", ["x", "w"], ["q"]), node("Add", ["x", "b"], ["k"])]
    for v in "qk":
        nodes += [node("Reshape", [v, "heads"], [f"{v}h"]), node("Transpose", [f"{v}h"], [f"{v}t"], perm=[0, 2, 1, 3])]
        for part, start in (("o", "1"), ("e", "0")):
            nodes += [node("Slice", [f"{v}t", start, "end", "3", "2"], [v + part]), node("Unsqueeze", [v + part, "last"], [f"{v}{part}u"])]
        nodes += [node("Concat", [f"{v}ou", f"{v}eu"], [f"{v}p"], axis=-1), node("Reshape", [f"{v}p", "flat"], [f"{v}f"]),
                  node("Add", [f"{v}t", f"{v}f"], ["y" if v == "q" else "ks"])]
    nodes.append(node("Transpose", ["ks"], ["z"], perm=[0, 1, 3, 2]))
    graph = nodes, [("x", T.FLOAT, [64, 16, 32])], [("y", T.FLOAT, [64, 4, 16, 8]), ("z", T.FLOAT, [64, 4, 8, 16])]
    numbers = {"w": np.ones((32, 32), np.float32), "b": np.ones(32, np.float32), "heads": np.array([64, 16, 4, 8]), "flat": np.array([64, 4, 16, 8]),
               "end": np.array([8]), "last": np.array([-1])} | {str(i): np.array([i]) for i in range(4)}
    wrong, claimed = certified(prog, src, graph, numbers, "generic")
    if wrong or claimed[:3:2] != [2, 2]:
        yield f"turned pairs: {wrong or claimed}"


def unrolled(prog, tmp):
    """Tokens in the sequence of their windows (Hiera): of nine atoms the bound has to look at those that tell three sequences apart."""
    node, src = test_targets.h.make_node, tmp / "unrolled.onnx"
    nodes = [node("Reshape", ["x", "cut"], ["c"]), node("Transpose", ["c"], ["ct"], perm=[0, 2, 4, 1, 3, 5]), node("Reshape", ["ct", "tokens"], ["t"]),
             node("MatMul", ["t", "w"], ["m"]), node("Add", ["m", "b"], ["n"]), node("Reshape", ["n", "heads"], ["h"]), node("Transpose", ["h"], ["qkv"], perm=[3, 0, 4, 2, 1, 5]),
             node("Split", ["qkv", "ones"], ["q", "k", "v"], axis=0), node("Squeeze", ["v", "first"], ["vs"]), node("MatMul", ["a", "vs"], ["o"]),
             node("Transpose", ["o"], ["ot"], perm=[0, 3, 2, 1, 4]), node("Reshape", ["ot", "tokens"], ["r"]), node("MatMul", ["r", "u"], ["p"]),
             node("Add", ["p", "d"], ["e"]), node("Add", ["t", "e"], ["y"])]
    part = [1, 2, 1, 4, 64, 24]
    graph = nodes, [("x", T.FLOAT, [8, 2, 2, 4, 4, 24]), ("a", T.FLOAT, [2, 1, 4, 64, 64])], [("q", T.FLOAT, part), ("k", T.FLOAT, part), ("y", T.FLOAT, [2, 256, 24])]
    numbers = {"cut": np.array([32, 2, 2, 2, 2, 24]), "tokens": np.array([2, 256, 24]), "heads": np.array([2, 64, 4, 3, 1, 24]), "ones": np.array([1, 1, 1]),
               "first": np.array([0]), "w": np.ones((24, 72), np.float32), "u": np.ones((24, 24), np.float32), "b": np.ones(72, np.float32), "d": np.ones(24, np.float32)}
    wrong, claimed = certified(prog, src, graph, numbers, common.whole(tmp))
    if wrong or claimed[:3:2] != [2, 2]:
        yield f"unrolled: {wrong or claimed}"


def rotated(part, v, nodes, node):
    """Rotary embedding of all tokens of v but the first, in pairs of channels."""
    nodes += [node("Slice", [v, "0", "1", "2"], [v + "a"]), node("Slice", [v, "1", "17", "2"], [v + "b"]), node("Mul", [v + "b", "cos"], [v + "c"])]
    for half, start in (("o", "1"), ("e", "0")):
        nodes += [node("Slice", [v + "b", start, "8", "3", "2"], [v + half]), node("Neg", [v + half], [v + half + "n"]) if half == "o" else node("Abs", [v + half], [v + half + "n"]),
                  node("Unsqueeze", [v + half + "n", "last"], [v + half + "u"])]
    nodes += [node("Concat", [v + "ou", v + "eu"], [v + "s"], axis=-1), node("Reshape", [v + "s", "rows"], [v + "f"]), node("Mul", [v + "f", "sin"], [v + "m"]),
              node("Add", [v + "c", v + "m"], [v + "r"]), node("Concat", [v + "a", v + "r"], [part], axis=2)]


def rotated_blocks(prog, tmp):
    """Attention with rotary embeddings, block after block: the relaxation falls short by a conversion in each, and what is open between blocks is little. Spans show it."""
    node, src, blocks = test_targets.h.make_node, tmp / "rotated.onnx", 6
    nodes = []
    for i in range(blocks):
        x, b = f"x{i}", f"b{i}"
        nodes += [node("LayerNormalization", [x, "scale"], [b + "n"], axis=-1), node("MatMul", [b + "n", "w"], [b + "w"]), node("Add", [b + "w", "bias"], [b + "l"]),
                  node("Reshape", [b + "l", "heads"], [b + "h"]), node("Transpose", [b + "h"], [b + "t"], perm=[2, 0, 3, 1, 4])]
        for k, v in enumerate("qkv"):
            nodes += [node("Slice", [b + "t", str(k), str(k + 1), "0"], [b + v + "1"]), node("Squeeze", [b + v + "1", "0"], [b + v])]
        for v in "qk":
            rotated(b + v + "x", b + v, nodes, node)
        nodes += [node("Reshape", [b + "kx", "flat"], [b + "g"]), node("Transpose", [b + "g"], [b + "gt"], perm=[0, 2, 1]), node("Reshape", [b + "gt", "keys"], [b + "g4"]),
                  node("Mul", [b + "qx", "half"], [b + "q2"]), node("Mul", [b + "g4", "half"], [b + "k2"]), node("MatMul", [b + "q2", b + "k2"], [b + "p"]),
                  node("Softmax", [b + "p"], [b + "s"], axis=-1), node("MatMul", [b + "s", b + "v"], [b + "o"]), node("Transpose", [b + "o"], [b + "ot"], perm=[0, 2, 1, 3]),
                  node("Reshape", [b + "ot", "tokens"], [b + "of"]), node("MatMul", [b + "of", "u"], [b + "u"]), node("Add", [x, b + "u"], [f"x{i + 1}"])]
    graph = nodes, [("x0", T.FLOAT, [2, 17, 24])], [(f"x{blocks}", T.FLOAT, [2, 17, 24])]
    ints = {"heads": [2, 17, 3, 3, 8], "rows": [2, 3, 16, 8], "flat": [6, 17, 8], "keys": [2, 3, 8, 17], "tokens": [2, 17, 24], "last": [-1]} | {str(i): [i] for i in (0, 1, 2, 3, 8, 17)}
    floats = {"scale": [24], "w": [24, 72], "bias": [72], "u": [24, 24], "cos": [16, 8], "sin": [16, 8], "half": [1]}
    numbers = {k: np.array(v) for k, v in ints.items()} | {k: np.ones(v, np.float32) for k, v in floats.items()}
    wrong, claimed = certified(prog, src, graph, numbers, common.whole(tmp))
    if wrong or claimed[:3:2] != [3 * blocks] * 2:
        yield f"rotated blocks: {wrong or claimed}"


def bytes_in_steps(prog, tmp):
    """Two Transposes of bytes that stay, as they are quicker than the one that they come to, and one conversion; as they stand, and as units of floats."""
    node, src = test_targets.h.make_node, tmp / "steps.onnx"
    moves = [("Reshape", ["a"], {}), ("Transpose", [], {"perm": [0, 3, 1, 4, 2, 5]}), ("Reshape", ["b"], {}), ("Transpose", [], {"perm": [0, 3, 1, 2]})]
    for units in (False, True):
        nodes, at = [node("QuantizeLinear", ["x", "s", "z"], ["q"])], "q"
        for k, (op, more, attrs) in enumerate(moves):
            if units:
                nodes += [node("DequantizeLinear", [at, "s", "z"], [f"d{k}"]), node(op, [f"d{k}", *more], [f"m{k}"], **attrs),
                          node("QuantizeLinear", [f"m{k}", "s", "z"], [f"q{k}"])]
            else:
                nodes.append(node(op, [at, *more], [f"q{k}"], **attrs))
            at = f"q{k}"
        graph = [*nodes, node("DequantizeLinear", [at, "s", "z"], ["y"])], [("x", T.FLOAT, [1, 4, 16, 8])], [("y", T.FLOAT, [1, 8, 8, 8])]
        numbers = {"s": np.float32(0.1), "z": np.int8(3), "a": np.array([1, 2, 2, 4, 4, 8]), "b": np.array([1, 8, 8, 8])}
        wrong, claimed = certified(prog, src, graph, numbers, "generic")
        if wrong or claimed[0] != 1 + units:
            yield f"bytes in steps{', in units' if units else ''}: {wrong or claimed}"


# ---------------------------------------------------------------------------------------------------- open results

# Of floats that no integer of the type is, and of integers divided by 0; and the last that has one answer. (op, inputs, result's type)
NAN, INF = float("nan"), float("inf")
OPEN = [("Cast", [np.array([1, -INF], np.float32)], T.INT64), ("Cast", [np.array([NAN, 1], np.float32)], T.INT32),
        ("Cast", [np.array([1, 256], np.float32)], T.UINT8), ("Cast", [np.array([1, 2.0**63])], T.INT64),
        ("Div", [np.array([1, 2]), np.array([1, 0])], T.INT64), ("Mod", [np.array([1, 2]), np.array([0, 2])], T.INT64),
        ("Cast", [np.array([1, 255.5], np.float32)], T.UINT8), ("Cast", [np.array([1, -2.0**63])], T.INT64)]
DEFINED = 2  # of them, at the end


def open_results(prog, tmp):
    """A constant that no two machines need agree on is a variable, for both checkers; one that all agree on is none."""
    node, info = test_targets.h.make_node, lambda name, elem: (name, elem, [2, 3, 4])
    for k, (op, inputs, elem) in enumerate(OPEN):
        names = [f"c{i}" for i in range(len(inputs))]
        nodes = [node(op, names, ["m"], **({"to": elem} if op == "Cast" else {})), node("Reshape", ["m", "s"], ["r"]),
                 node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), node("Max", ["t", "r"], ["u"]),
                 node("Transpose", ["u"], ["y"], perm=[1, 0, 2])]
        model = test_targets.model_of(nodes, [info("x", elem)], [info("y", elem)])
        weights = [*zip(names, inputs), ("s", np.array([1, 2, 1]))]
        model.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in weights)
        onnx.save(model, tmp / "open.onnx")
        why, lost, words, _ = by_both(prog, tmp / "open.onnx", tmp, "onnx")
        variable = '"m"' in words
        if why or lost or variable != (k < len(OPEN) - DEFINED):
            yield f"{op} of {inputs}: {why or lost or ('a variable' if variable else 'a constant')}"


def cut_model():
    """What NonZero found, cut, in the branches of an If: sizes like '?min(300|?1)'."""
    node, info = test_targets.h.make_node, test_targets.h.make_tensor_value_info

    def branch(o):
        nodes = [node("NonZero", ["x"], [f"{o}n"]), node("Slice", [f"{o}n", "s", "e", "a"], [f"{o}c"]), node("Cast", [f"{o}c"], [f"{o}f"], to=T.FLOAT),
                 node("Transpose", [f"{o}f"], [f"{o}t"], perm=[1, 0]), node("Relu", [f"{o}t"], [o])]
        return test_targets.h.make_graph(nodes, o, [], [info(o, T.FLOAT, [None, 2])])

    inits = [onnx.numpy_helper.from_array(np.array([n]), name) for name, n in (("s", 0), ("e", 300), ("a", 1))]
    return test_targets.model_of([node("If", ["p"], ["y"], then_branch=branch("u"), else_branch=branch("v"))],
                                 [("x", T.FLOAT, [None, 4]), ("p", T.BOOL, [])], [("y", T.FLOAT, [None, 2])], inits)


def last_model():
    """The last of what NonZero found: '?min(1|?1)', which Squeeze takes for 1."""
    node = test_targets.h.make_node
    nodes = [node("NonZero", ["x"], ["n"]), node("Cast", ["n"], ["f"], to=T.FLOAT), node("Transpose", ["f"], ["t"], perm=[1, 0]), node("Slice", ["t", "last", "end", "i0"], ["c"]),
             node("Squeeze", ["c", "i0"], ["q"]), node("Relu", ["q"], ["y"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [2, 4])], [("y", T.FLOAT, [2])], numbered(i0=[0], last=[-1], end=[2**31]))


def asked_model():
    """Whether a tensor of unknown size has no element is not known, and no constant."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Relu", ["t"], ["r"]), node("Transpose", ["r"], ["z"], perm=[1, 0]),
             node("Shape", ["x"], ["s"]), node("ReduceProd", ["s"], ["n"], keepdims=0), node("Equal", ["n", "none"], ["y"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [None, 4])], [("z", T.FLOAT, [None, 4]), ("y", T.BOOL, [])],
                                 [onnx.numpy_helper.from_array(np.array(0), "none")])


def numbered(**arrays):
    return [onnx.numpy_helper.from_array(np.array(x, np.float32 if name.startswith("f") else np.int64), name) for name, x in arrays.items()]


def table_model():
    """A table cut at an open size, beside a tensor of that size, as embeddings of positions are: '?min(512|S)'. The last of floor(S/8): '?min(1|floor(S/8))'.
    And a Slice of sizes that leaves none."""
    node = test_targets.h.make_node
    nodes = [node("Shape", ["x"], ["s"]), node("Slice", ["s", "i1", "i2"], ["n"]), node("Slice", ["ftable", "i0", "n", "i1"], ["p"]),
             node("Add", ["x", "p"], ["a"]), node("Transpose", ["a"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["r"]),
             node("MaxPool", ["r"], ["m"], kernel_shape=[8], strides=[8]), node("Slice", ["m", "last", "end", "i2"], ["e"]),
             node("Shape", ["e"], ["es"]), node("Slice", ["es", "i0", "i2"], ["front"]), node("Slice", ["es", "end", "end"], ["none"]),
             node("Concat", ["front", "none", "open"], ["to"], axis=0),
             node("Reshape", ["e", "to"], ["g"]), node("Transpose", ["g"], ["y"], perm=[0, 2, 1])]
    inits = numbered(i0=[0], i1=[1], i2=[2], last=[-1], end=[2**31], open=[-1], ftable=np.ones((1, 512, 4)))
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", "S", 4])], [("y", T.FLOAT, None)], inits)


def best_model(op):
    """The best 300 of what NonZero found, or all of it, as detectors take them: '?min(300|?0)'. op: ReduceMin."""
    node = test_targets.h.make_node
    nodes = [node("NonZero", ["x"], ["n"]), node("Cast", ["n"], ["f"], to=T.FLOAT), node("Shape", ["f"], ["s"]), node("Slice", ["s", "i1", "i2"], ["size"]),
             node("Concat", ["most", "size"], ["both"], axis=0), node(op, ["both"], ["least"], keepdims=0), node("Reshape", ["least", "flat"], ["k"]),
             node("Transpose", ["f"], ["t"], perm=[1, 0]), node("TopK", ["t", "k"], ["v", "at"], axis=0), node("Relu", ["v"], ["r"]),
             node("Transpose", ["r"], ["y"], perm=[1, 0])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 4])], [("y", T.FLOAT, None)], numbered(i1=[1], i2=[2], most=[300], flat=[-1]))


def repeated_model():
    """x[4*N,6,8] times the rows of z[N,6,8], each repeated 4*N/N times, as repeat_interleave writes it."""
    node = test_targets.h.make_node
    nodes = [node("Reshape", ["z0", "z4"], ["x"]), node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["r"]),
             node("Shape", ["x"], ["xs"]), node("Shape", ["z"], ["zs"]), node("Gather", ["xs", "i0"], ["m"]), node("Gather", ["zs", "i0"], ["n"]),
             node("Div", ["m", "n"], ["d"]), node("Concat", ["i1", "d"], ["v"], axis=0), node("OneHot", ["i1", "four", "v"], ["h"]), node("Reshape", ["h", "flat"], ["times"]),
             node("Transpose", ["z"], ["zt"], perm=[0, 2, 1]), node("Unsqueeze", ["zt", "i1"], ["u"]), node("Tile", ["u", "times"], ["w"]),
             node("Reshape", ["w", "to"], ["k"]), node("Mul", ["r", "k"], ["p"]), node("Transpose", ["p"], ["y"], perm=[0, 2, 1])]
    inits = numbered(i0=[0], i1=[1], four=4, flat=[-1], z4=[-1, 6, 8], to=[-1, 8, 6])
    return test_targets.model_of(nodes, [("z0", T.FLOAT, ["N", 4, 6, 8]), ("z", T.FLOAT, ["N", 6, 8])], [("y", T.FLOAT, None)], inits)


def masked_model():
    """A mask, expanded to the batch, as exporters write attention's; transposed with what it masks."""
    node = test_targets.h.make_node
    nodes = [node("Shape", ["x"], ["s"]), node("Slice", ["s", "i0", "i1"], ["n"]), node("Concat", ["n", "sizes"], ["to"], axis=0),
             node("Expand", ["m", "to"], ["e"]), node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2]), node("Add", ["t", "e"], ["a"]), node("Transpose", ["a"], ["y"], perm=[0, 1, 3, 2])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 4, 5, 6]), ("m", T.FLOAT, [1, 1, 6, 5])], [("y", T.FLOAT, None)],
                                 numbered(i0=[0], i1=[1], sizes=[4, 6, 5]))


def halves_model():
    """Images halved and cut into pairs, on each of some levels, whose rows may be odd: by chance a checker's numbers are all even. And the
    bytes of what two open sizes broadcast to."""
    node = test_targets.h.make_node
    nodes, x, inits = [], "x", numbered(fw=np.ones((2, 2, 1, 1)))
    for k in range(5):
        inits += numbered(**{f"to{k}": [0, 2, -1, 2]})
        nodes += [node("MaxPool", [x], [f"m{k}"], kernel_shape=[2], strides=[2], ceil_mode=1), node("Reshape", [f"m{k}", f"to{k}"], [f"r{k}"]),
                  node("Transpose", [f"r{k}"], [f"t{k}"], perm=[0, 1, 3, 2]), node("Sigmoid", [f"t{k}"], [f"g{k}"]),
                  node("Transpose", [f"g{k}"], [f"y{k}"], perm=[0, 1, 3, 2])]
        x = f"m{k}"
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 2, "H"])], [(f"y{k}", T.FLOAT, None) for k in range(5)], inits)


def wide_model():
    """Two open sizes broadcast: what the result has is a symbol, and 64 for its bytes."""
    node = test_targets.h.make_node
    nodes = [node("MaxPool", ["x"], ["m"], kernel_shape=[4, 4], strides=[4, 4]), node("MaxPool", ["x"], ["n"], kernel_shape=[3, 3], strides=[4, 4]),
             node("Add", ["m", "n"], ["a"]), node("Transpose", ["a"], ["y"], perm=[0, 2, 3, 1])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 3, "H", "W"])], [("y", T.FLOAT, None)])


def last_rows_model():
    """The last S of S+4 rows, as a cache is cut; rows 200-S .. 199+S of a table, as relative positions are taken, and what a product of open
    sizes has, in two layers. Sizes are halved four times, so that they are small in one world."""
    node = test_targets.h.make_node
    nodes = [node("MaxPool", ["x"], ["m"], kernel_shape=[1, 8], strides=[1, 8]), node("Transpose", ["m"], ["x0"], perm=[0, 1, 3, 2]),
             node("Shape", ["x0"], ["s4"]), node("Slice", ["s4", "i2", "i3"], ["s"]), node("Neg", ["s"], ["back"]), node("Sub", ["half", "s"], ["from"]),
             node("Add", ["most", "s"], ["to"]), node("Slice", ["ftable", "from", "to", "i0"], ["rows"]), node("Transpose", ["rows"], ["turned"], perm=[1, 0])]
    for k in range(2):
        nodes += [node("Concat", ["cache", f"x{k}"], [f"j{k}"], axis=2), node("Slice", [f"j{k}", "back", "end", "i2"], [f"l{k}"]),
                  node("Transpose", [f"l{k}"], [f"t{k}"], perm=[0, 1, 3, 2]), node("MatMul", [f"x{k}", f"t{k}"], [f"a{k}"]),
                  node("MatMul", [f"x{k}", "turned"], [f"b{k}"]), node("Add", [f"a{k}", f"b{k}"], [f"c{k}"]), node("Softmax", [f"c{k}"], [f"p{k}"], axis=-1),
                  node("MatMul", [f"p{k}", f"x{k}"], [f"x{k + 1}"])]
    inits = numbered(i0=[0], i2=[2], i3=[3], half=[200], most=[199], end=[2**31], ftable=np.ones((399, 4)))
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 2, 4, "S"]), ("cache", T.FLOAT, ["N", 2, 4, 4])], [("x2", T.FLOAT, None)], inits)


def shared_out_model():
    """Queries of all images, dealt out: Reshape to [N, 8/N, 4]. And to [1, ?, 4], where the size is computed from what the model reads."""
    node = test_targets.h.make_node
    nodes = [node("Shape", ["x"], ["s"]), node("Slice", ["s", "i0", "i1"], ["n"]), node("Div", ["i8", "n"], ["d"]), node("Concat", ["n", "d", "i4"], ["to"], axis=0),
             node("Reshape", ["q", "to"], ["r"]), node("Transpose", ["r"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["y"]),
             node("ReduceMax", ["ids"], ["most"], keepdims=1), node("Concat", ["i1", "most", "i4"], ["room"], axis=0), node("ConstantOfShape", ["room"], ["f"]),
             node("Transpose", ["f"], ["ft"], perm=[0, 2, 1]), node("Sigmoid", ["ft"], ["z"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 3]), ("q", T.FLOAT, [8, 4]), ("ids", T.INT64, [5])], [("y", T.FLOAT, None), ("z", T.FLOAT, None)],
                                 numbered(i0=[0], i1=[1], i4=[4], i8=[8]))


def halves_of_two_model():
    """Two batches put together and taken apart again: '?min(2*N|N)' is N."""
    node = test_targets.h.make_node
    nodes = [node("Concat", ["x", "z"], ["both"], axis=0), node("Relu", ["both"], ["r"]), node("Shape", ["x"], ["s"]), node("Slice", ["s", "i0", "i1"], ["n"]),
             node("Slice", ["r", "i0", "n", "i0"], ["a"]), node("Transpose", ["a"], ["t"], perm=[0, 2, 1]), node("Reshape", ["t", "to"], ["u"]),
             node("Add", ["u", "x"], ["y"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 4, 4]), ("z", T.FLOAT, ["N", 4, 4])], [("y", T.FLOAT, None)],
                                 numbered(i0=[0], i1=[1], to=[-1, 4, 4]))


def pairs_model():
    """Pairs of features by constant indices: a GatherND between Transposes, which is a Gather."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 2, 0]), node("GatherND", ["t", "pairs"], ["g"]), node("Transpose", ["g"], ["u"], perm=[1, 0]),
             node("Relu", ["u"], ["y"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 6, 6])], [("y", T.FLOAT, None)], numbered(pairs=[[1, 0], [2, -5], [5, 4]]))


def last_declared_model(pads):
    """The last row of a window's result, which has one where it has any: declared as 1, and in the program '?min(1|floor(H/8))'; with pads it has one."""
    node = test_targets.h.make_node
    nodes = [node("MaxPool", ["x"], ["p"], kernel_shape=[8, 8], strides=[8, 8], pads=pads), node("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
             node("Slice", ["t", "last", "most", "i1"], ["c"]), node("Add", ["c", "fone"], ["a"]), node("Transpose", ["a"], ["y"], perm=[0, 3, 1, 2])]
    model = test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 4, "H", "W"])], [("y", T.FLOAT, None)], numbered(last=[-1], most=[2**63 - 1], i1=[1], fone=1.5))
    model.graph.value_info.extend(test_targets.h.make_tensor_value_info(v, T.FLOAT, ["N", 1, "V", 4]) for v in "ca")
    return model


def biased_model():
    """A table of biases by constant places, along two dims and by batches: both take it for a constant."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("GatherND", ["fb", "places"], ["g"]), node("GatherND", ["fb", "own"], ["h"], batch_dims=1),
             node("Transpose", ["g"], ["gt"], perm=[1, 0]), node("Transpose", ["h"], ["ht"], perm=[1, 0]), node("Add", ["t", "gt"], ["a"]),
             node("Mul", ["a", "ht"], ["m"]), node("Transpose", ["m"], ["y"], perm=[0, 2, 1])]
    places = [[[0, 0], [0, -1], [0, 1], [0, 0]], [[1, 2], [1, 1], [-1, 0], [1, 1]]]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 2, 4])], [("y", T.FLOAT, None)],
                                 numbered(fb=[[1, 2, 3], [4, 5, 6]], places=places, own=[[[0], [2], [-1], [1]], [[1], [1], [0], [2]]]))


def rest_model():
    """A mask in as many rows as another input has, and places by a Range of what a Div of the same sizes gives."""
    node = test_targets.h.make_node
    nodes = [node("Shape", ["x"], ["n"], end=1), node("Concat", ["n", "last"], ["s"], axis=0), node("Reshape", ["m", "s"], ["v"]), node("Transpose", ["v"], ["t"], perm=[1, 0]),
             node("Size", ["m"], ["all"]), node("Squeeze", ["n"], ["rows"]), node("Div", ["all", "rows"], ["q"]), node("Range", ["i0", "q", "i1"], ["r"]),
             node("Cast", ["r"], ["f"], to=T.FLOAT), node("Unsqueeze", ["f", "last"], ["u"]), node("Add", ["t", "u"], ["a"]), node("Transpose", ["a"], ["y"], perm=[1, 0])]
    model = test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 3]), ("m", T.FLOAT, ["A", "B"])], [("y", T.FLOAT, None)], numbered(last=[-1], i0=0, i1=1))
    model.graph.value_info.append(test_targets.h.make_tensor_value_info("v", T.FLOAT, ["N", "((A*B)//N)"]))
    return model


def skip_model():
    """The sum that a SkipLayerNormalization gives beside its result has the sizes of both, though no type is declared."""
    node = test_targets.h.make_node
    nodes = [node("SkipLayerNormalization", ["x", "z", "fs"], ["n", "", "", "sum"], domain="com.microsoft"), node("MatMul", ["n", "fw"], ["m"]), node("Add", ["m", "sum"], ["a"]),
             node("Reshape", ["a", "to"], ["r"]), node("Transpose", ["r"], ["t"], perm=[0, 3, 1, 2]), node("Relu", ["t"], ["y"])]
    return test_targets.model_of(nodes, [(x, T.FLOAT, [2, 12, 8]) for x in "xz"], [("y", T.FLOAT, None)], numbered(fs=np.ones(8), fw=np.ones((8, 8)), to=[2, 3, 4, 8]))


def written_model():
    """Halves of pairs written one behind the other, and ranges of rows: both take the ScatterNDs for a Concat of what is written."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", [x], [x + "t"], perm=[2, 0, 1]) for x in ("x", "a", "b")]
    nodes += [node("ScatterND", ["xt", "even", "at"], ["s"]), node("ScatterND", ["s", "odd", "bt"], ["w"], reduction="none"), node("Transpose", ["w"], ["u"], perm=[1, 2, 0]),
              node("Relu", ["u"], ["y"]), node("ScatterND", ["w", "last", "bt"], ["v"]), node("ScatterND", ["v", "begin", "at"], ["z"])]
    rows = lambda *k: [[i] for i in k]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 8, 6]), ("a", T.FLOAT, ["N", 8, 3]), ("b", T.FLOAT, ["N", 8, 3])], [("y", T.FLOAT, None), ("z", T.FLOAT, None)],
                                 numbered(even=rows(0, 2, 4), odd=rows(1, 3, 5), begin=rows(0, 1, 2), last=rows(-3, -2, -1)), opset=18)


def type_model():
    """A constant in the type of what hangs on a constant that stays a variable, as nothing computes it, is a constant."""
    node = test_targets.h.make_node
    nodes = [node("BitwiseAnd", ["bits", "more"], ["m"]), node("Cast", ["m"], ["f"], to=T.FLOAT), node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("Mul", ["t", "f"], ["a"]),
             node("CastLike", ["fscale", "a"], ["c"]), node("Sqrt", ["c"], ["r"]), node("Mul", ["a", "r"], ["b"]), node("Transpose", ["b"], ["y"], perm=[0, 2, 1])]
    rows = np.arange(24).reshape(6, 4)
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 4, 6])], [("y", T.FLOAT, None)], numbered(bits=rows, more=rows + 3, fscale=rows), opset=18)


def deep_model():
    """A Transpose of a constant, and more nodes of constants behind it than Python calls."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["fc"], ["v0"], perm=[1, 0])] + [node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(1200)]
    nodes += [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Add", ["t", "v1200"], ["a"]), node("Transpose", ["a"], ["y"], perm=[1, 0])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [4, 6])], [("y", T.FLOAT, None)], numbered(fc=np.ones((4, 6))))


def traced_model():
    """The size of the run that was traced is declared where the size is a symbol."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["a"], perm=[0, 2, 1]), node("Relu", ["a"], ["b"]), node("Softmax", ["b"], ["c"], axis=-1), node("Transpose", ["c"], ["y"], perm=[0, 2, 1])]
    model = test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 6, 4])], [("y", T.FLOAT, ["N", 6, 4])], opset=17)
    model.graph.value_info.append(test_targets.h.make_tensor_value_info("b", T.FLOAT, [1, 4, 6]))
    return model


def declared_model():
    """A Transpose of unknown sizes makes an output whose sizes are declared: it is no conversion, and stands beside what the claim is about."""
    node = test_targets.h.make_node
    nodes = [node("Reshape", ["x", "n"], ["r"]), node("Relu", ["r"], ["c"]), node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
             node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]), node("Relu", ["t"], ["s"]), node("Transpose", ["s"], ["z"], perm=[0, 3, 1, 2])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [2, 3, 4, 5]), ("n", T.INT64, [4])], [("y", T.FLOAT, [2, 4, 5, 3]), ("z", T.FLOAT, [2, 3, 4, 5])], opset=17)


def named_cut_model():
    """Numbers are declared for what a cut leaves of a size that has a name, and for what that is put together to: they stay what they are."""
    node = test_targets.h.make_node
    nodes = [node("Slice", ["x", "zero", "end", "axis"], ["h"]), node("Concat", ["silence", "h"], ["s"], axis=1), node("Unsqueeze", ["s", "axis"], ["u"]),
             node("Expand", ["u", "channels"], ["c"]), node("Transpose", ["c"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["y"])]
    model = test_targets.model_of(nodes, [("x", T.FLOAT, [1, "N"])], [("y", T.FLOAT, None)],
                                  numbered(zero=[0], end=[240], axis=[1], channels=[1, 3, 1]) + [onnx.numpy_helper.from_array(np.zeros((1, 160), np.float32), "silence")])
    model.graph.value_info.extend(test_targets.h.make_tensor_value_info(name, T.FLOAT, [1, n]) for name, n in (("h", 240), ("s", 400)))
    return model


def padded_model():
    """A signal is padded to at least 4 elements, and numbers are declared as a short one has them: how many there are is told, by a size that has a name."""
    node = test_targets.h.make_node
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Sub", ["room", "n"], ["d"]), node("Max", ["d", "zero"], ["m"]),
             node("Sub", ["n", "room"], ["e"]), node("Max", ["e", "zero"], ["k"]), node("Concat", ["zero", "k", "zero", "m"], ["q"], axis=0),
             node("Pad", ["x", "q"], ["w"]), node("Unsqueeze", ["w", "one"], ["u"]), node("Expand", ["u", "channels"], ["c"]),
             node("Transpose", ["c"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["y"])]
    model = test_targets.model_of(nodes, [("x", T.FLOAT, [1, "N"])], [("y", T.FLOAT, None)],
                                  numbered(one=[1], room=[4], zero=[0], channels=[1, 3, 1]))
    model.graph.value_info.extend(test_targets.h.make_tensor_value_info(name, T.FLOAT, dims) for name, dims in (("w", [1, 4]), ("u", [1, 1, 4])))
    return model


def stale_model():
    """A size that is known stays what it is where another one is declared, also of 64, as large as a size that is not known is guessed to be."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["r"]), node("Transpose", ["r"], ["y"], perm=[0, 2, 1])]
    model = test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 8, 64])], [("y", T.FLOAT, ["N", 8, 64])], opset=17)
    model.graph.value_info.append(test_targets.h.make_tensor_value_info("r", T.FLOAT, ["N", 8, 64]))
    return model


def strided_model():
    """Places of a grid, in a tensor that constants lead to: both take the GatherND for a Gather of rows, which may lie anywhere, and a Reshape."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 2, 0, 3]), node("Mul", ["grid", "two"], ["at"]), node("GatherND", ["t", "at"], ["g"]),
             node("Relu", ["g"], ["r"]), node("Transpose", ["r"], ["y"], perm=[2, 0, 1, 3])]
    grid = np.stack(np.meshgrid(np.arange(40), np.arange(40), indexing="ij"), -1)
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 80, 80, 4])], [("y", T.FLOAT, ["N", 40, 40, 4])], numbered(grid=grid, two=[2]), opset=17)


def shared_model():
    """The elements of one input by the size of another: what two near numbers leave is no size of 8."""
    node = test_targets.h.make_node
    nodes = [node("Shape", ["x"], ["n"], start=0, end=1), node("Concat", ["n", "rest"], ["to"], axis=0), node("Reshape", ["m", "to"], ["k"]),
             node("Unsqueeze", ["k", "one"], ["u"]), node("Transpose", ["x"], ["a"], perm=[0, 2, 1]), node("Add", ["a", "u"], ["b"]), node("Transpose", ["b"], ["y"], perm=[0, 2, 1])]
    model = test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 8, 4]), ("m", T.FLOAT, ["M", 8])], [("y", T.FLOAT, None)], opset=17)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.array([i]), name) for i, name in ((-1, "rest"), (1, "one")))
    return model


def scores_model():
    """The batch of scores that have more elements than 63 bits count, where the sizes of an image are large primes."""
    node = test_targets.h.make_node
    nodes = [node("Reshape", ["x", "whole"], ["f"]), node("Transpose", ["f"], ["t"], perm=[0, 2, 1]), node("MatMul", ["t", "f"], ["m"]), node("Shape", ["m"], ["s"]),
             node("Slice", ["s", "i0", "i1"], ["n"]), node("Concat", ["n", "rest"], ["to"], axis=0), node("Abs", ["x"], ["a"]), node("Reshape", ["a", "to"], ["u"]),
             node("Relu", ["u"], ["r"]), node("Transpose", ["r"], ["y"], perm=[2, 0, 1])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 4, "H", "W"])], [("y", T.FLOAT, None), ("m", T.FLOAT, None)],
                                 numbered(whole=[0, 4, -1], i0=[0], i1=[1], rest=[4, -1]))


def ended_model():
    """All but the first of so many rows that by chance a checker's numbers give more than 2^31 - 1, which is the end."""
    node = test_targets.h.make_node
    nodes = [node("Flatten", ["x"], ["f"], axis=3), node("Slice", ["f", "i1", "end", "i0"], ["s"]), node("Transpose", ["s"], ["t"], perm=[1, 0]),
             node("Relu", ["t"], ["r"]), node("Transpose", ["r"], ["y"], perm=[1, 0])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", "H", 8, 3])], [("y", T.FLOAT, None)], numbered(i0=[0], i1=[1], end=[2**31 - 1]))


def unranked_model():
    """Of a tensor of unknown rank: what Flatten makes of it has two dims; what an Expand to its sizes makes of a constant is one, if they are declared."""
    node = test_targets.h.make_node
    nodes = [node("SequenceConstruct", ["x", "z"], ["q"]), node("SequenceAt", ["q", "first"], ["s"]), node("Flatten", ["s"], ["f"], axis=1),
             node("Transpose", ["f"], ["t"], perm=[1, 0]), node("Relu", ["t"], ["r"]), node("Transpose", ["r"], ["y"], perm=[1, 0]),
             node("Shape", ["s"], ["to"]), node("Expand", ["fone", "to"], ["e"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [3, 4, "H"]), ("z", T.FLOAT, [4, 2])], [("y", T.FLOAT, ["A", "B"]), ("e", T.FLOAT, [3, 4, 5])],
                                 numbered(first=0, fone=np.ones((1, 1))))


def squeezed_model():
    """A Squeeze that names no dims leaves as many as it likes of open ones: what is declared of its result's readers is all there is to know of them."""
    node = test_targets.h.make_node
    nodes = [node("Greater", ["x", "fzero"], ["g"]), node("Squeeze", ["g"], ["s"]), node("Cast", ["s"], ["i"], to=T.INT32), node("Gather", ["fnames", "i"], ["y"]),
             node("Squeeze", ["z"], ["u"]), node("Transpose", ["u"], ["t"], perm=[1, 0]), node("Reshape", ["t", "to"], ["r"]), node("Relu", ["r"], ["w"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 1]), ("z", T.FLOAT, [5, 1, "N"])], [("y", T.FLOAT, ["N"]), ("w", T.FLOAT, [None, 5])],
                                 numbered(fzero=0, fnames=[2, 3], to=[-1, 5]))


def flat_model():
    """What a Reshape makes of unknown sizes has as many elements as are declared, and so it is no view of them."""
    node = test_targets.h.make_node
    nodes = [node("SequenceConstruct", ["x", "z"], ["q"]), node("SequenceAt", ["q", "first"], ["s"]), node("Relu", ["s"], ["r"]), node("Reshape", ["r", "flat"], ["f"]),
             node("Sigmoid", ["f"], ["y"])]
    model = test_targets.model_of(nodes, [("x", T.FLOAT, [3, 1]), ("z", T.FLOAT, [3, 6])], [("y", T.FLOAT, [3])], numbered(first=0, flat=[-1]))
    model.graph.value_info.append(test_targets.h.make_tensor_value_info("f", T.FLOAT, [3]))
    return model


def summed_model():
    """What 2*N and an unknown size broadcast to is 2*N, as a Concat says."""
    node = test_targets.h.make_node
    nodes = [node("Reshape", ["x", "two"], ["a"]), node("ReduceSum", ["a", "axes"], ["s"], keepdims=1), node("Sub", ["a", "s"], ["d"]),
             node("Concat", ["d", "a"], ["c"], axis=0), node("Transpose", ["c"], ["t"], perm=[1, 0]), node("Relu", ["t"], ["y"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 4]), ("axes", T.INT64, [1])], [("y", T.FLOAT, None)], numbered(two=[2, -1]))


def extremes_model(op):
    """The larger or smaller ones of the sizes of two tensors, of which each may be either's: no dim of an input has them."""
    node = test_targets.h.make_node
    nodes = [node("Shape", ["x"], ["xs"], end=2), node("Shape", ["z"], ["zs"], end=2), node(op, ["xs", "zs"], ["l"]), node(op, ["xs", "l"], ["m"]), node("Concat", ["m", "last"], ["to"], axis=0),
             node("Cast", ["to"], ["short"], to=T.INT32), node("Cast", ["short"], ["long"], to=T.INT64), node("Expand", ["fone", "long"], ["e"]),
             node("Transpose", ["e"], ["t"], perm=[1, 0, 2]), node("Softmax", ["t"], ["y"], axis=-1), node("ConstantOfShape", ["l"], ["f"]), node("Relu", ["f"], ["v"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [None, 2, 4]), ("z", T.FLOAT, [None, 2, 4])], [("y", T.FLOAT, None), ("v", T.FLOAT, None)],
                                 numbered(last=[3], fone=[1]), opset=17)


def batches_model(op):
    """A product of matrices, of bytes, too, whose batches have no names, put into a shape of which nothing is known: its type is."""
    h = test_targets.h
    x, y = ["x"], ["z"]
    if op == "QLinearMatMul":
        x, y = ["x", "fs", "zero"], ["z", "fs", "zero", "fs", "zero"]
    t, made = (T.FLOAT, T.FLOAT) if op in ("MatMul", "FusedMatMul") else (T.UINT8, T.INT32 if op == "MatMulInteger" else T.UINT8)
    nodes = [h.make_node(op, x + y, ["m"], domain="com.microsoft" if op == "FusedMatMul" else ""), h.make_node("Reshape", ["m", "to"], ["r"]), h.make_node("Squeeze", ["r", "last"], ["s"]), h.make_node("Transpose", ["m"], ["t"], perm=[0, 2, 1]),
             h.make_node("Identity", ["t"], ["u"])]
    return test_targets.model_of(nodes, [("x", t, [None, 12, 20]), ("z", t, [None, 20, 16]), ("to", T.INT64, [5])], [("s", made, [None, 2, 12, 16]), ("u", made, None)],
                                 numbered(last=[4], fs=0.5) + [h.make_tensor("zero", T.UINT8, [], [3])], opset=17)


def expanded_model():
    """An Expand to 1s or to sizes that are given, of which the first is 1 and the others are nobody's: the batch is 1 in both."""
    node = test_targets.h.make_node
    nodes = [node("Concat", ["one", "n", "c"], ["to"], axis=0), node("ConstantOfShape", ["three"], ["ones"], value=onnx.numpy_helper.from_array(np.array([1]))),
             node("Where", ["p", "ones", "to"], ["s"]), node("Expand", ["x", "s"], ["e"]), node("Transpose", ["e"], ["t"], perm=[0, 2, 1]), node("Relu", ["t"], ["r"]),
             node("Reshape", ["r", "flat"], ["y"]), node("Concat", ["n", "one"], ["to2"], axis=0), node("Expand", ["z", "to2"], ["f"]),
             node("Transpose", ["f"], ["y2"], perm=[0, 3, 1, 2])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [1, 1, 64]), ("z", T.FLOAT, ["N", 4, "M", 1]), ("n", T.INT64, [1]), ("c", T.INT64, [1]), ("p", T.BOOL, [3])],
                                 [("y", T.FLOAT, None), ("y2", T.FLOAT, None)], numbered(one=[1], three=[3], flat=[64, -1]), opset=17)


def untyped_model(first):
    """A Conv of weights whose type nothing tells, as an op makes them that ONNX does not have, or of such an input: its result has the type of the input."""
    node = test_targets.h.make_node
    x, w = ("u", "fw") if first else ("x", "u")
    nodes = [node("Remembered", ["n"], ["v"], domain="acme"), node("Reshape", ["v", "dims"], ["u"]), node("Conv", [x, w, "fb"], ["c"], group=6, pads=[1, 1, 1, 1]),
             node("ReduceMean", ["c"], ["m"], axes=[1]), node("Reshape", ["m", "to"], ["r"]), node("Sub", ["c", "r"], ["s"]), node("Transpose", ["s"], ["t"], perm=[0, 2, 3, 1]),
             node("Sigmoid", ["t"], ["y"])]
    inputs = [("n", T.INT64, [1])] if first else [("n", T.INT64, [1]), ("x", T.FLOAT, [None] * 4)]
    return test_targets.model_of(nodes, inputs, [("y", T.FLOAT, None)],
                                 numbered(dims=[1, 6, 8, 8] if first else [6, 1, 3, 3], fw=np.ones((6, 1, 3, 3)), fb=np.zeros(6), to=[1, 1, 8, 8]), opset=17)


def named_alike_model():
    """A size whose name has the names of sizes that nothing tells, as another program's certificate or text may have it: it stays what it is called."""
    node = test_targets.h.make_node
    nodes = [node("Reshape", ["z", "to"], ["r"]), node("Add", ["x", "r"], ["a"]), node("Relu", ["r"], ["b"]), node("Transpose", ["a"], ["t"], perm=[1, 0]),
             node("Softmax", ["t"], ["y"], axis=-1), node("Transpose", ["b"], ["v"], perm=[1, 0])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["floor(?2*?3*?0/32)", 4]), ("z", T.FLOAT, ["N"]), ("to", T.INT64, [2])],
                                 [("y", T.FLOAT, None), ("v", T.FLOAT, None)], opset=17)


def narrowed_model():
    """Sizes in 32 bits, as TensorFlow's exporter computes them, of a batch that three others make: more than 32 bits hold of a checker's numbers."""
    node = test_targets.h.make_node
    nodes = [node("Reshape", ["x", "rows"], ["r"]), node("Shape", ["r"], ["s"]), node("Cast", ["s"], ["s32"], to=T.INT32), node("Slice", ["s32", "zero", "one"], ["n"]),
             node("Cast", ["three"], ["three32"], to=T.INT32), node("Concat", ["n", "three32"], ["to32"], axis=0), node("Cast", ["to32"], ["to"], to=T.INT64),
             node("Expand", ["fzero", "to"], ["e"]), node("Transpose", ["e"], ["et"], perm=[1, 0]), node("Transpose", ["r"], ["rt"], perm=[1, 0]),
             node("Concat", ["et", "rt"], ["c"], axis=0), node("Relu", ["c"], ["a"]), node("Transpose", ["a"], ["y"], perm=[1, 0])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["A", "B", "C", 5])], [("y", T.FLOAT, None)],
                                 numbered(rows=[-1, 5], zero=[0], one=[1], three=[3], fzero=[[0.0]]), opset=17)


def statistics_model():
    """The statistics that a BatchNormalization gives are as many as it is given, whatever the size of what it normalizes is called."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[2, 0, 1]), node("BatchNormalization", ["t", *["fs"] * 4], ["u", "m", "v"], training_mode=1), node("Relu", ["u"], ["r"]),
             node("Transpose", ["r"], ["y"], perm=[1, 2, 0]), node("Relu", ["m"], ["z"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", "M", "M"])], [("y", T.FLOAT, None), ("z", T.FLOAT, [None]), ("v", T.FLOAT, [None])], numbered(fs=np.ones(4)), opset=21)


def blocks_model(op):
    """A SpaceToDepth or DepthToSpace of what an op makes that nobody knows: it has four dims."""
    node = test_targets.h.make_node
    nodes = [node("Remembered", ["n"], ["v"], domain="acme"), node(op, ["v"], ["s"], blocksize=2), node("Transpose", ["s"], ["t"], perm=[0, 2, 3, 1]), node("Sigmoid", ["t"], ["u"]),
             node("Transpose", ["u"], ["y"], perm=[0, 3, 1, 2])]
    return test_targets.model_of(nodes, [("n", T.INT64, [1])], [("y", T.FLOAT, None)], opset=17)


def dense_model():
    """A FusedGemm of what an op makes that nobody knows, of a matrix and a bias: the type is theirs, and the result a matrix of as many columns."""
    node = test_targets.h.make_node
    nodes = [node("Remembered", ["n"], ["v"], domain="acme"), node("FusedGemm", ["v", "fw", "fb"], ["g"], domain="com.microsoft", activation="Relu"),
             node("Transpose", ["g"], ["t"], perm=[1, 0]), node("Sigmoid", ["t"], ["s"]), node("Transpose", ["s"], ["y"], perm=[1, 0])]
    return test_targets.model_of(nodes, [("n", T.INT64, [1])], [("y", T.FLOAT, None)], numbered(fw=np.ones((16, 4)), fb=np.ones(4)), opset=17)


def open_sizes(prog, tmp):
    """Sizes that are not known: both checkers find the problem of the file in the model."""
    for model in (cut_model(), last_model(), asked_model(), table_model(), best_model("ReduceMin"), repeated_model(), masked_model(), halves_model(), wide_model(),
                  traced_model(), declared_model(), named_cut_model(), padded_model(), stale_model(), strided_model(), shared_model(), shared_out_model(), last_rows_model(),
                  last_declared_model([0] * 4), last_declared_model([4, 4, 3, 3]), pairs_model(), skip_model(), rest_model(), biased_model(), written_model(), type_model(), deep_model(),
                  halves_of_two_model(), scores_model(), ended_model(), unranked_model(), squeezed_model(), flat_model(), summed_model(), extremes_model("Max"), extremes_model("Min"),
                  *map(batches_model, ("MatMul", "FusedMatMul", "MatMulInteger", "QLinearMatMul")), expanded_model(), untyped_model(True),
                  untyped_model(False), named_alike_model(), narrowed_model(), dense_model(), statistics_model(), *map(blocks_model, ("DepthToSpace", "SpaceToDepth"))):
        onnx.save(model, tmp / "sizes.onnx")
        why, lost, words, _ = by_both(prog, tmp / "sizes.onnx", tmp, "onnx")
        if why or lost:
            yield f"{model.graph.node[0].op_type}: {why or lost}"
    for k, graph in enumerate(SIZES.read_text().split("====\n")):
        for target in ("onnx", "generic"):  # one that charges by sizes, too
            why, lost, *_ = by_both(prog, test_text_run.as_onnx(prog, graph, tmp / "sizes.onnx"), tmp, target)
            if why or lost:
                yield f"graph {k} of {SIZES.name}, {target}: {why or lost}"
    symbols = Symbols()  # far more in one world than in the other, as bodies of bodies have
    if len({symbols.number(("named", i), 0) for i in range(500)} | {symbols.number(("named", 499), 1)}) != 501:
        yield "500 names: two have one number"


# ---------------------------------------------------------------------------------------------------- sizes that must be equal

def added_model(joined):
    """An Add of sizes by two names, between Transposes, and a Concat of `joined`."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["a"], perm=[0, 2, 1]), node("Transpose", ["z"], ["b"], perm=[0, 2, 1]),
             node("Add", ["a", "b"], ["s"], "sum"), node("Concat", joined, ["c"], axis=1), node("Transpose", ["s"], ["y"], perm=[0, 2, 1])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", "H", 4]), ("z", T.FLOAT, ["N", "A", 4])],
                                 [("y", T.FLOAT, None), ("c", T.FLOAT, None)])


def scaled(x, y, by):
    scales = onnx.numpy_helper.from_array(np.array([1, 1, by, by], np.float32))
    node = test_targets.h.make_node
    return [node("Constant", [], [y + "s"], value=scales), node("Resize", [x, "", y + "s"], [y], mode="nearest")]


def unet_model(levels, stem):
    """Pools (behind a Conv of stride 2) and as many Resizes, as TensorFlow's exporter writes them: what is joined has its channels last."""
    node = test_targets.h.make_node
    back = lambda x, y: node("Transpose", [x], [y], perm=[0, 2, 3, 1])
    forth = lambda x, y: node("Transpose", [x], [y], perm=[0, 3, 1, 2])
    w = onnx.numpy_helper.from_array(np.ones((2, 2, 1, 1), np.float32), "w")
    nodes, skips = [forth("x", "t"), node("Conv", ["t", "w"], ["d0"], strides=[stem, stem])], [back("d0", "s0")]
    for i in range(levels):
        nodes.append(node("MaxPool", [f"d{i}"], [f"d{i + 1}"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1))
        skips.append(back(f"d{i + 1}", f"s{i + 1}"))
    up = f"d{levels}"
    for i in reversed(range(levels)):
        nodes += scaled(up, f"u{i}", 2) + [back(f"u{i}", f"v{i}"), skips[i], node("Concat", [f"v{i}", f"s{i}"], [f"j{i}"], axis=3), forth(f"j{i}", f"k{i}")]
        up = f"k{i}"
    return test_targets.model_of(nodes + [node("Relu", [up], ["y"])], [("x", T.FLOAT, ["N", "H", "W", 2])], [("y", T.FLOAT, None)], [w])


def unequal_model(r):
    """Pointwise ops, some of them in other sequences of the dims, of inputs whose sizes have other names: those of H, A and B may be equal, or some of them 1."""
    node, nodes = test_targets.h.make_node, []
    dims = {"x": ["N", "H", 4, 8], "z": ["N", "A", 4, 8], "m": ["A", 4, 8], "q": ["N", 1, "B", 8], "v": ["A", 1, 1]}

    def add(op, *x, **attrs):
        nodes.append(node(op, list(x), [f"t{len(nodes)}"], **attrs))
        return nodes[-1].output[0]

    whole = ["x", "z"]
    for _ in range(r.randint(2, 5)):
        perm = r.sample(range(4), 4)
        y = add(r.choice(["Add", "Mul", "Max"]), *(add("Transpose", r.choice(whole), perm=perm) for _ in range(2)))
        if r.random() < 0.3:
            y = add("Softmax", y, axis=r.randrange(4))
        y = add("Transpose", y, perm=[perm.index(k) for k in range(4)])
        whole.append(add(r.choice(["Add", "Mul"]), y, r.choice("mqv")) if r.random() < 0.5 else y)
    read = {x for n in nodes for x in n.input}
    return test_targets.model_of(nodes, [(x, T.FLOAT, d) for x, d in dims.items() if x in read], [(whole[-1], T.FLOAT, None)], opset=17)


def run_open(path, sizes, seed):
    """What the model makes of random inputs of these sizes; None where it does not run."""
    try:
        return common.run_ort(path, common.random_inputs(onnx.load(path), seed, sizes))
    except Exception:
        return None


def unequal_sizes(prog, tmp):
    """Sizes of several names, which may be equal or 1: what is added has its dims in any sequence, the same in all operands."""
    src, node = tmp / "unequal.onnx", test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["a"], perm=[0, 2, 1]), node("Transpose", ["z"], ["b"], perm=[0, 2, 1]), node("Add", ["a", "b"], ["s"]),
             node("Transpose", ["s"], ["y"], perm=[0, 2, 1])]
    onnx.save(test_targets.model_of(nodes, [("x", T.FLOAT, ["N", "H", 4]), ("z", T.FLOAT, ["N", "A", 4])], [("y", T.FLOAT, None)]), src)
    why, lost, words, out = by_both(prog, src, tmp, "onnx")
    if why or lost or claim(words)[0]:
        yield f"{why or lost or claim(words)}"
    for seed in range(60):
        onnx.save(unequal_model(random.Random(seed)), src)
        why, lost, _, out = by_both(prog, src, tmp, ("onnx", "generic")[seed % 2])
        if why or lost:
            yield f"random {seed}: {why or lost}"
        for h, a, b in ((5, 5, 5), (5, 1, 5), (1, 5, 5), (5, 5, 1), (1, 1, 7)):
            was, now = (run_open(x, {"N": 2, "H": h, "A": a, "B": b}, seed) for x in (src, out))
            if was and not (now and all(x.shape == y.shape and np.allclose(x, y, atol=1e-5) for x, y in zip(was, now))):
                yield f"random {seed}: other results where H, A, B are {h}, {a}, {b}"


def equal_sizes(prog, tmp):
    """Off a Concat's axis, and along what a MatMul sums, sizes are equal, by whatever name; what is proved by that is refused of a model whose Concat does not say it."""
    node = test_targets.h.make_node
    multiples = [*scaled("x", "a", 2), *scaled("z", "b", 4), *[node("Transpose", [x], [x + "t"], perm=[0, 2, 3, 1]) for x in "ab"],
                 node("Concat", ["at", "bt"], ["c"], axis=3), node("Transpose", ["c"], ["y"], perm=[0, 3, 1, 2])]
    multiples = test_targets.model_of(multiples, [(x, T.FLOAT, ["N", 4, x, 8 if x == "x" else 4]) for x in "xz"], [("y", T.FLOAT, None)])
    double = [node("Concat", ["u", "u"], ["w"], axis=0), *[node("Transpose", [x], [x + "t"], perm=[0, 2, 1]) for x in "abw"], node("Concat", ["at", "bt", "wt"], ["c"], axis=1),
              node("Relu", ["c"], ["r"]), node("Transpose", ["r"], ["y"], perm=[0, 2, 1])]
    double = test_targets.model_of(double, [(x, T.FLOAT, [x, 4, 6]) for x in "abu"], [("y", T.FLOAT, None)])
    back = lambda x: node("Transpose", [x], [x + "t"], perm=[0, 2, 1])
    summed = [back("q"), back("v"), node("Add", ["qt", "m"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "vt"], ["o"]), back("o")]
    summed = test_targets.model_of(summed, [("q", T.FLOAT, ["N", "K", "L"]), ("m", T.FLOAT, ["M"]), ("v", T.FLOAT, ["N", 4, "M"])], [("ot", T.FLOAT, None)])
    for name, model, fewest in [("two names", added_model(["a", "b"]), 1), ("multiples", multiples, 0), ("two names of a double", double, 0), ("summed", summed, 0)] + [(f"U-Net of {n}, stem {s}", unet_model(n, s), 1) for n in (1, 2, 4) for s in (1, 2)]:
        onnx.save(model, tmp / "equal.onnx")
        why, lost, words, out = by_both(prog, tmp / "equal.onnx", tmp, "onnx")
        if why or lost or claim(words)[0] != fewest:
            yield f"{name}: {why or lost or claim(words)}"
        if name != "two names":
            continue
        onnx.save(added_model(["a", "a"]), tmp / "other.onnx")
        refused, _ = accepts(Pair(tmp / "other.onnx", out, Target(name="onnx")), words)
        if not refused or "is another size here" not in refused:
            yield f"of a Concat that says nothing: {refused or 'accepted'}"


# ---------------------------------------------------------------------------------------------------- what constants alone determine

def counted_model(fill):
    """NonZero of a tensor of an open size, filled: it finds all of its elements, or none. And a Range downwards from a size to minus that one."""
    node = test_targets.h.make_node
    nodes = [node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["k"], value=onnx.numpy_helper.from_array(np.array([fill]))),
             node("NonZero", ["k"], ["n"]), node("Cast", ["n"], ["f"], to=T.FLOAT), node("Reshape", ["f", "rows"], ["q"]),
             node("Transpose", ["q"], ["t"], perm=[1, 0, 2]), node("Relu", ["t"], ["r"]), node("Transpose", ["r"], ["y"], perm=[1, 0, 2]),
             node("Gather", ["s", "zero"], ["size"]), node("Neg", ["size"], ["minus"]), node("Range", ["size", "minus", "down"], ["c"]), node("Abs", ["c"], ["z"])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 4])], [("y", T.FLOAT, None), ("z", T.INT64, None)], numbered(rows=[2, -1, 4], zero=0, down=-1))


def chosen_model(takes):
    """An If whose condition is known gives a constant with one branch, else what the model is given; 1,600 elements."""
    h = test_targets.h
    branch = lambda o, x: h.make_graph([h.make_node("Identity", [x], [o])], o, [], [h.make_tensor_value_info(o, T.FLOAT, [40, 40])])
    nodes = [h.make_node("If", ["p"], ["c"], then_branch=branch("u", "fc"), else_branch=branch("v", "x2")), h.make_node("Gather", ["c", "rows"], ["g"]),
             h.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), h.make_node("Relu", ["t"], ["r"]), h.make_node("Add", ["r", "g"], ["a"]),
             h.make_node("Transpose", ["a"], ["y"], perm=[1, 0])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [40, 40]), ("x2", T.FLOAT, [40, 40])], [("y", T.FLOAT, None)],
                                 [onnx.numpy_helper.from_array(np.array(takes), "p"), *numbered(fc=np.arange(1600.0).reshape(40, 40), rows=np.arange(40))])


def tied_model(stored):
    """A bias that another constant is made of: cut and transposed there. That cuts no dim of what the bias is added to, if it is stored."""
    node = test_targets.h.make_node
    nodes = [node("Add", ["x", "fb"], ["a"]), node("Transpose", ["a"], ["t"], perm=[1, 0]), node("Relu", ["t"], ["r"]), node("Transpose", ["r"], ["y"], perm=[1, 0]),
             node("Identity", ["fb"], ["fb2"]), node("Reshape", ["fb2", "heads"], ["c"]), node("Transpose", ["c"], ["d"], perm=[1, 0]),
             node("Exp", ["d"], ["e"]), node("Add", ["z", "e"], ["w"])]
    bias = numbered(fb=np.arange(64.0))
    return test_targets.model_of(nodes, [("x", T.FLOAT, [12, 64]), ("z", T.FLOAT, [16, 4]), *([] if stored else [("fb", T.FLOAT, [64])])],
                                 [("y", T.FLOAT, None), ("w", T.FLOAT, None)], numbered(heads=[4, 16]) + (bias if stored else []))


def masked_by_constants(stored):
    """A mask of a few elements that follows from constants in floats alone; both ends of it, a dim of 32 and one of 4 * 8, are tied if it does not."""
    node = test_targets.h.make_node
    nodes = [node("Exp", ["fm"], ["c"]), node("Less", ["c", "f2"], ["m"]), node("Unsqueeze", ["m", "axis"], ["mu"]), node("Reshape", ["m", "to"], ["mr"]),
             node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Where", ["mu", "t", "f0"], ["a"]), node("Transpose", ["a"], ["y"], perm=[1, 0]),
             node("Where", ["mr", "z", "f0"], ["w"])]
    mask = numbered(fm=np.arange(32) / 32)
    return test_targets.model_of(nodes, [("x", T.FLOAT, [4, 32]), ("z", T.FLOAT, [4, 8]), *([] if stored else [("fm", T.FLOAT, [32])])],
                                 [("y", T.FLOAT, None), ("w", T.FLOAT, None)], numbered(f0=0.0, f2=2.0, axis=[1], to=[4, 8]) + (mask if stored else []), opset=17)


def cast_like_model(stored):
    """An Add of an epsilon in the type of another tensor: a constant beside the mean, no tensor that an order has to be chosen for."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("CastLike", ["eps", "t"], ["e"]), node("Add", ["t", "e"], ["s"]), node("Transpose", ["s"], ["y"], perm=[1, 0])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [4, 32]), *([] if stored else [("eps", T.FLOAT, [4])])], [("y", T.FLOAT, None)],
                                 numbered(eps=np.arange(4) / 8) if stored else {}, opset=17)


def packed_model(stored):
    """A weight of four bits that is permuted in another shape: where it is stored its own dims, 2 and 3, cut no dim of what it is added to."""
    h = test_targets.h
    nodes = [h.make_node("Reshape", ["w", "rows"], ["r"]), h.make_node("Transpose", ["r"], ["p"], perm=[1, 0]), h.make_node("Cast", ["p"], ["c"], to=T.FLOAT),
             h.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), h.make_node("Add", ["t", "c"], ["a"]), h.make_node("Transpose", ["a"], ["y"], perm=[1, 0])]
    weight = [h.make_tensor("w", T.UINT4, [2, 3, 4], [k % 16 for k in range(24)])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [6, 4]), *([] if stored else [("w", T.UINT4, [2, 3, 4])])], [("y", T.FLOAT, None)],
                                 numbered(rows=[6, 4]) + (weight if stored else []), opset=21)


def picked_model(n, by):
    """A Where of a condition that a constant or an input makes: of the constant it takes another one whole, of n times n elements."""
    node = test_targets.h.make_node
    nodes = [node("Less", [by, "fmost"], ["m"]), node("Where", ["m", "fc", "x2"], ["w"]), node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Relu", ["t"], ["r"]),
             node("Add", ["r", "w"], ["a"]), node("Transpose", ["a"], ["y"], perm=[1, 0])]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [n, n]), ("x2", T.FLOAT, [n, n])], [("y", T.FLOAT, None)],
                                 numbered(fc=np.arange(n * n).reshape(n, n), fmost=10000), opset=17)


def constant_parts(prog, tmp):
    """Both checkers take what is computed for what the program takes it; of a model in which it hangs on an input, or is otherwise, the certificate is refused."""
    for name, make, right, wrong in (("counted", counted_model, 1, 0), ("chosen", chosen_model, True, False), ("tied", tied_model, True, False),
                                     ("masked", masked_by_constants, True, False), ("cast", cast_like_model, True, False), ("packed", packed_model, True, False),
                                     ("best", best_model, "ReduceMin", "ReduceMax")):
        onnx.save(make(right), tmp / "constant.onnx")
        why, lost, words, out = by_both(prog, tmp / "constant.onnx", tmp, "onnx")
        if why or lost or claim(words)[0] != 0:
            yield f"{name}: {why or lost or claim(words)}"
        onnx.save(make(wrong), tmp / "other.onnx")
        refused, lost = accepts(Pair(tmp / "other.onnx", out, Target(name="onnx")), words)
        if not refused and not lost:
            yield f"{name}: accepted of another model"
    for n, by in itertools.product((30, 40), ("fc", "x2")):  # the program follows 1,024 elements through what reads a variable
        onnx.save(picked_model(n, by), tmp / "constant.onnx")
        why, lost, words, out = by_both(prog, tmp / "constant.onnx", tmp, "onnx")
        onnx.save(picked_model(n, "fc"), tmp / "other.onnx")
        refused, more = accepts(Pair(tmp / "other.onnx", out, Target(name="onnx")), words)
        if why or lost or more or ("is a constant, and a variable in the file" in (refused or "")) != (by == "x2"):
            yield f"picked, {n}, {by}: {why or lost or refused or more or 'accepted'}"


# ---------------------------------------------------------------------------------------------------- parts of models

def save_pair(path, side, weights=(), opset=12):
    """x[2,3], transposed and back around a Relu, beside what `side` says: nodes, inputs, outputs."""
    node, (nodes, inputs, outputs) = test_targets.h.make_node, side
    pair = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Relu", ["t"], ["r"]), node("Transpose", ["r"], ["y"], perm=[1, 0])]
    model = test_targets.model_of(pair + nodes, [("x", T.FLOAT, [2, 3]), *inputs], [("y", T.FLOAT, [2, 3]), *outputs], opset=opset)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in weights)
    onnx.save(model, path)


def scalar_einsum(prog, tmp):
    """An Einsum of a scalar permutes no dims."""
    nodes = [test_targets.h.make_node("Einsum", ["a"], ["e"], equation="->"), test_targets.h.make_node("Neg", ["e"], ["z"])]
    save_pair(tmp / "scalar.onnx", (nodes, [("a", T.FLOAT, [])], [("z", T.FLOAT, [])]))
    why, lost, words, _ = by_both(prog, tmp / "scalar.onnx", tmp, "onnx")
    if why or lost or claim(words)[0] != 0:
        yield f"{why or lost or claim(words)}"


def group_normalization(prog, tmp):
    """Of its result ONNX's inference knows the type, and not the sizes."""
    node, weights = test_targets.h.make_node, [("s", np.ones(6, np.float32))]
    nodes = [node("GroupNormalization", ["a", "s", "s"], ["n"], num_groups=2), node("Transpose", ["n"], ["z"], perm=[0, 2, 1])]
    save_pair(tmp / "group.onnx", (nodes, [("a", T.FLOAT, [8, 6, 2])], [("z", T.FLOAT, [8, 2, 6])]), weights, 21)
    why, lost, words, _ = by_both(prog, tmp / "group.onnx", tmp, "onnx")
    if why or lost or claim(words)[0] != 1:
        yield f"{why or lost or claim(words)}"


def known_output(prog, tmp):
    """An output that a Split cuts out of a constant part is a constant."""
    node = test_targets.h.make_node
    nodes = [node("Concat", ["a", "c"], ["j"], axis=0), node("Split", ["j"], ["p", "q"], axis=0, split=[2, 4]),
             node("Split", ["q"], ["q1", "q2"], axis=0, split=[1, 3])]
    outputs = [(name, T.FLOAT, [n]) for name, n in (("p", 2), ("q1", 1), ("q2", 3))]
    save_pair(tmp / "known.onnx", (nodes, [("a", T.FLOAT, [3])], outputs), [("c", np.array([1, 2, 3], np.float32))])
    why, lost, words, _ = by_both(prog, tmp / "known.onnx", tmp, "onnx")
    if why or lost or 'output "q2"' in words:
        yield f"{why or lost or 'a variable'}"


def listed_weights(prog, tmp):
    """Before IR version 4 weights are inputs, too, and constants all the same: rewritten, they are new ones, and listed. From 4 on a caller may
    replace them."""
    node = test_targets.h.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]), node("Mul", ["t", "by"], ["m"]), node("Reshape", ["m", "to"], ["f"]),
             node("MatMul", ["f", "w"], ["d"]), node("Add", ["d", "b"], ["y"])]
    weights = {"by": np.arange(3), "w": np.arange(24), "b": np.arange(2)}
    inits = [onnx.numpy_helper.from_array(v.reshape((12, 2) if k == "w" else -1).astype(np.float32), k) for k, v in weights.items()] + numbered(to=[1, 12])
    inputs = [(i.name, i.data_type, list(i.dims)) for i in inits]
    for version, left in ((3, 0), (4, 1)):
        model = test_targets.model_of(nodes, [*inputs[:1], ("x", T.FLOAT, [1, 3, 2, 2]), *inputs[1:]], [("y", T.FLOAT, [1, 2])], inits, opset=8)
        model.ir_version = version
        onnx.save(model, tmp / "listed.onnx")
        why, lost, words, out = by_both(prog, tmp / "listed.onnx", tmp, "onnx")
        result = onnx.load(out)
        onnx.checker.check_model(result, full_check=True)
        stored, given = {i.name for i in result.graph.initializer}, {i.name for i in result.graph.input}
        if why or lost or sum(n.op_type == "Transpose" for n in result.graph.node) != left or given != stored | {"x"}:
            yield f"IR version {version}: {why or lost or sorted(given ^ stored)}"


def scanned_constant(prog, tmp):
    """Distances to each row of a constant, as scikit-learn's neighbours are written: a slice has one dim, and of the constant nothing is chosen."""
    h = test_targets.h
    body = h.make_graph([h.make_node("Identity", ["s"], ["t"]), h.make_node("Sub", ["s", "row"], ["d"]), h.make_node("ReduceSumSquare", ["d"], ["r"], axes=[1], keepdims=0)],
                        "body", [h.make_tensor_value_info("s", T.FLOAT, ["N", 4]), h.make_tensor_value_info("row", T.FLOAT, [4])],
                        [h.make_tensor_value_info("t", T.FLOAT, ["N", 4]), h.make_tensor_value_info("r", T.FLOAT, ["N"])])
    nodes = [h.make_node("Scan", ["x", "frows"], ["last", "all"], body=body, num_scan_inputs=1), h.make_node("Transpose", ["all"], ["p"], perm=[1, 0]),
             h.make_node("Sqrt", ["p"], ["q"]), h.make_node("TopK", ["q", "three"], ["y", "i"], largest=0)]
    model = test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 4])], [("y", T.FLOAT, None), ("i", T.INT64, None)],
                                  numbered(frows=np.arange(20).reshape(5, 4), three=[3]), opset=15)
    onnx.save(model, tmp / "scanned.onnx")
    why, lost, words, _ = by_both(prog, tmp / "scanned.onnx", tmp, "onnx")
    if why or lost or claim(words)[0] != 1:
        yield f"{why or lost or claim(words)}"


def frames(prog, tmp):
    """The two dims of a Conv's batch, of which one is open, are read and made in either order; where another batch is added, in one of them."""
    node, rng = test_targets.h.make_node, np.random.default_rng(0)
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0, 2, 3, 4]), node("Reshape", ["t", "in"], ["r"]), node("Conv", ["r", "fw"], ["c"], pads=[1, 1, 1, 1]),
             node("Relu", ["c"], ["a"]), node("Conv", ["a", "fv"], ["d"], pads=[1, 1, 1, 1], group=6), node("Reshape", ["d", "out"], ["e"]),
             node("Transpose", ["e"], ["y"], perm=[1, 0, 2, 3, 4])]
    weights = numbered(**{"in": [-1, 4, 5, 5], "out": [3, -1, 6, 5, 5]}, fw=rng.standard_normal((6, 4, 3, 3)), fv=rng.standard_normal((6, 1, 3, 3)))
    feeds = {n: rng.standard_normal((2, 3, 4, 5, 5)).astype(np.float32) for n in "xz"}
    added = [node("Reshape", ["z", "in"], ["zr"]), node("Conv", ["zr", "fw"], ["zc"], pads=[1, 1, 1, 1]), node("Add", ["zc", "c"], ["w"])]
    for name, more, inputs, left in (("frames", [], "x", 0), ("two_batches", added, "xz", 1)):
        model = test_targets.model_of(nodes + more, [(i, T.FLOAT, ["N", 3, 4, 5, 5]) for i in inputs], [(o, T.FLOAT, None) for o in ("y", "w")[:len(inputs)]], weights, opset=17)
        onnx.save(model, tmp / f"{name}.onnx")
        why, lost, words, out = by_both(prog, tmp / f"{name}.onnx", tmp, "onnx")
        given = {i: feeds[i] for i in inputs}
        same = all(map(np.allclose, common.run_ort(tmp / f"{name}.onnx", given), common.run_ort(out, given)))
        if why or lost or not same or claim(words)[0] != left:
            yield f"{name}: {why or lost or (same, claim(words))}"


def other_constants(prog, tmp):
    """Sparse constants, and those of strings, are variables that lie as they are stored: a conversion where they are wanted otherwise, none where they are turned, too."""
    h = test_targets.h
    sparse = h.make_sparse_tensor(h.make_tensor("w", T.FLOAT, [2], [5.0, -2.0]), onnx.numpy_helper.from_array(np.array([1, 11])), [3, 4])
    words = h.make_tensor("w", T.STRING, [3, 4], [b"a"] * 12)
    for kind, elem, value in (("sparse_value", T.FLOAT, sparse), ("value", T.STRING, words)):
        for stored, turned in itertools.product((False, True), repeat=2):
            nodes = [h.make_node("Transpose", [x], [x + "t"], perm=[1, 0]) for x in ("xw" if turned else "x")]
            nodes += [h.make_node("Add" if elem == T.FLOAT else "Equal", ["xt", "wt" if turned else "w"], ["a"]), h.make_node("Transpose", ["a"], ["y"], perm=[1, 0])]
            nodes = ([] if stored else [h.make_node("Constant", [], ["w"], **{kind: value})]) + nodes
            model = test_targets.model_of(nodes, [("x", elem, [3, 4] if turned else [4, 3])], [("y", T.FLOAT if elem == T.FLOAT else T.BOOL, None)], opset=19)
            if stored:
                (model.graph.sparse_initializer if kind == "sparse_value" else model.graph.initializer).append(value)
            onnx.save(model, tmp / "other.onnx")
            why, lost, words_, _ = by_both(prog, tmp / "other.onnx", tmp, "onnx")
            if why or lost or claim(words_)[0] != (not turned):
                yield f"{kind}, {'an initializer' if stored else 'a Constant'}{', turned' if turned else ''}: {why or lost or claim(words_)}"


def sequence_model():
    """What turns of a Loop cut out of a tensor, put into a sequence, and joined behind it; and the last of them."""
    h = test_targets.h
    info, node = lambda name, t, dims: h.make_tensor_value_info(name, t, dims), h.make_node
    seq = lambda name: h.make_tensor_sequence_value_info(name, T.FLOAT, None)
    nodes = [node("Unsqueeze", ["i", "zero"], ["k"]), node("Slice", ["x", "zero", "k", "one"], ["c"]), node("Relu", ["c"], ["r"]),
             node("SequenceInsert", ["q", "r"], ["w"]), node("Identity", ["d"], ["g"])]
    body = h.make_graph(nodes, "body", [info("i", T.INT64, []), info("d", T.BOOL, []), seq("q")], [info("g", T.BOOL, []), seq("w")])
    nodes = [node("SequenceEmpty", [], ["e"]), node("Loop", ["n", "go", "e"], ["s"], body=body), node("ConcatFromSequence", ["s"], ["a"], axis=1),
             node("Transpose", ["a"], ["b"], perm=[1, 0, 2]), node("Sigmoid", ["b"], ["f"]), node("Transpose", ["f"], ["y"], perm=[1, 0, 2]),
             node("SequenceAt", ["s", "last"], ["h"]), node("Transpose", ["h"], ["j"], perm=[2, 0, 1]), node("Neg", ["j"], ["l"]),
             node("Transpose", ["l"], ["z"], perm=[1, 2, 0])]
    inits = [onnx.numpy_helper.from_array(np.array(v), name) for name, v in (("go", True), ("last", -1), ("zero", [0]), ("one", [1]))]
    return test_targets.model_of(nodes, [("x", T.FLOAT, [4, 6, 8]), ("n", T.INT64, [])], [("y", T.FLOAT, None), ("z", T.FLOAT, None)], inits)


def body_of_relu(before, after, name):
    """before, turned, a Relu, and turned back: after."""
    node = test_targets.h.make_node
    return [node("Transpose", [before], [name + "t"], perm=[1, 0]), node("Relu", [name + "t"], [name + "r"]), node("Transpose", [name + "r"], [after], perm=[1, 0])]


def names_of_outside(prog, tmp):
    """Inputs of a body that have names of values outside, as Paddle writes them, hide these; a result that has one keeps its body closed, as does an op that
    is not looked into: the Transposes there are outside of what is proved. Of what the Loop carries from one dim to two nothing is known."""
    h = test_targets.h
    node, info = h.make_node, lambda name, t, dims: h.make_tensor_value_info(name, t, dims)
    loop = h.make_graph([*body_of_relu("x", "b", ""), node("Add", ["b", "v"], ["a"]), node("Identity", ["go"], ["g"]), node("Neg", ["b"], ["o"])], "body",
                        [info("n", T.INT64, []), info("go", T.BOOL, []), info("x", T.FLOAT, [2, 3]), info("w", T.FLOAT, None)],
                        [info("g", T.BOOL, []), info("a", T.FLOAT, [2, 3]), info("o", T.FLOAT, None)])
    carried = [node("Transpose", ["w"], ["u"], perm=[1, 0]), node("Exp", ["u"], ["e"]), node("Transpose", ["e"], ["v"], perm=[1, 0]),
               node("Loop", ["n", "go", "x", "fone"], ["y", "other"], body=loop)]
    hides = [h.make_graph(body_of_relu("x", "b", "w"), "then", [], [info("b", T.FLOAT, [2, 3])]),
             h.make_graph([node("Neg", ["x"], ["o"])], "else", [], [info("o", T.FLOAT, [2, 3])])]
    branches = [node("Sign", ["w"], ["wr"]), node("Add", ["wr", "wr"], ["v"]), node("If", ["go"], ["y"], then_branch=hides[0], else_branch=hides[1])]
    mapped = h.make_graph(body_of_relu("s", "b", ""), "body", [info("s", T.FLOAT, [2, 3])], [info("b", T.FLOAT, [2, 3])])
    each = [node("SequenceConstruct", ["x", "w"], ["q"]), node("SequenceMap", ["q"], ["m"], body=mapped), node("SequenceAt", ["m", "n"], ["y"])]
    ports = [("w", T.FLOAT, [2, 3]), ("x", T.FLOAT, [2, 3]), ("n", T.INT64, []), ("go", T.BOOL, [])]
    feeds = {n: np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32) for n in "wx"} | {"n": np.array(1), "go": np.array(True)}
    for name, nodes, left in (("carried", carried, 0), ("branches", branches, 2), ("each", each, 2)):
        src = tmp / f"{name}.onnx"
        onnx.save(test_targets.model_of(nodes, ports, [("y", T.FLOAT, [2, 3])], numbered(fone=[1])), src)
        why, lost, words, out = by_both(prog, src, tmp, "onnx")
        same = name == "branches" or all(map(np.array_equal, common.run_ort(src, feeds), common.run_ort(out, feeds)))  # which onnxruntime refuses
        stay = sum(n.op_type == "Transpose" for n in common.every_node(onnx.load(out).graph))
        if why or lost or not same or claim(words)[0] != 0 or f"outside {left}\n" not in words or stay != left:
            yield f"{name}: {why or lost or (same, claim(words), stay)}"


def sequences(prog, tmp):
    """The types of elements are known through a Loop that carries a sequence, here and in the program: none of the Transposes is left."""
    onnx.save(sequence_model(), tmp / "sequence.onnx")
    why, lost, words, out = by_both(prog, tmp / "sequence.onnx", tmp, "onnx")
    feeds = {"x": np.random.default_rng(0).standard_normal((4, 6, 8)).astype(np.float32), "n": np.array(3)}
    same = all(map(np.array_equal, common.run_ort(tmp / "sequence.onnx", feeds), common.run_ort(out, feeds)))
    left = [n.name for n in onnx.load(out).graph.node if n.op_type == "Transpose"]
    if why or lost or claim(words)[0] or left or not same:
        yield f"{why or lost or claim(words)} {left} {same}"


def elements_model(opset):
    """Pieces taken out of sequences, of one size, of listed ones and without their dim, joined again and side by side; in a branch, too."""
    h = test_targets.h
    node, info = h.make_node, lambda name: h.make_tensor_value_info(name, T.FLOAT, None)
    branch = lambda op: h.make_graph([node("SplitToSequence", ["t", "i2"], [op + "s"], axis=-1), node("SequenceAt", [op + "s", "i1"], [op + "a"]),
                                      node(op, [op + "a"], [op + "r"]), node("Transpose", [op + "r"], [op + "o"], perm=[0, 2, 1])], op, [], [info(op + "o")])
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("SplitToSequence", ["t", "i4"], ["s"], axis=1), node("SequenceAt", ["s", "i0"], ["a"]),
             node("SequenceAt", ["s", "i2"], ["b"]), node("ConcatFromSequence", ["s"], ["c"], axis=1), node("Mul", ["a", "a"], ["aa"]),
             node("Transpose", ["aa"], ["y"], perm=[0, 2, 1]), node("Transpose", ["b"], ["z"], perm=[0, 2, 1]), node("Transpose", ["c"], ["u"], perm=[0, 2, 1]),
             node("SplitToSequence", ["t", "sizes"], ["l"], axis=2), node("SequenceAt", ["l", "last"], ["d"]), node("Transpose", ["d"], ["v"], perm=[0, 2, 1]),
             node("SplitToSequence", ["t"], ["k"], axis=2, keepdims=0), node("SequenceAt", ["k", "i1"], ["e"]), node("SequenceAt", ["k", "last"], ["f"]),
             node("SequenceConstruct", ["e", "f"], ["m"]), node("ConcatFromSequence", ["m"], ["g"], axis=1, new_axis=1), node("Transpose", ["g"], ["w"], perm=[0, 2, 1]),
             node("If", ["x_is"], ["o"], then_branch=branch("Relu"), else_branch=branch("Neg"))]
    inits = numbered(i0=0, i1=1, i2=2, i4=4, last=-1, sizes=[1, 2, 3]) + [onnx.numpy_helper.from_array(np.array(True), "x_is")]
    return test_targets.model_of(nodes, [("x", T.FLOAT, ["N", 6, 9])], [(y, T.FLOAT, None) for y in "yzuvwo"], inits, opset)


def known_elements(prog, tmp):
    """Sequences whose elements are known are gone, and all Transposes with them."""
    for opset in (11, 13, 18):
        onnx.save(elements_model(opset), tmp / "elements.onnx")
        why, lost, words, out = by_both(prog, tmp / "elements.onnx", tmp, "onnx")
        feeds = {"x": np.random.default_rng(0).standard_normal((2, 6, 9)).astype(np.float32)}
        same = all(map(np.array_equal, common.run_ort(tmp / "elements.onnx", feeds), common.run_ort(out, feeds)))
        left = [n.op_type for n in onnx.load(out).graph.node if n.op_type == "Transpose" or "Sequence" in n.op_type]
        if why or lost or claim(words)[0] or left or not same:
            yield f"opset {opset}: {why or lost or claim(words)} {left} {same}"


def rotary(prog, tmp):
    """Attention whose heads turn in part, proved by shares of the orders' weights, in pairs, by a fold that moves an atom everywhere, and side by side with key and
    value, by atoms that a fold of all candidates names; nothing else bounds them."""
    for name, least in (("partial_rotary", 6), ("pair_rotary", 9), ("fused_rotary", 6)):
        src, proof, out, report = UNIT / f"{name}.rlt", tmp / "proof.txt", tmp / "out.onnx", tmp / "report.json"
        common.relayout(prog, "optimize", src, "-o", out, "--target", common.whole(tmp), "--proof", proof, "--json", report)
        found, r = json.loads(report.read_text())["conversions"], common.relayout(prog, "check-proof", proof, src, out, "--target", common.whole(tmp))
        if r.status or (found["after"], found["lower_bound"]) != (least, least):
            yield f"{name}: {r.message} {found}"


def written_nowhere(prog, tmp):
    """Masks that exporters write window by window, x[:0, 3:] = 1: where a window is empty, so are the rows and what is written. The nodes of the small mask
    are gone, as what they make is stored; so are those of the large one to the checker, but the file has them."""
    node = test_targets.h.make_node
    nodes = [node("Slice", ["range", "zero", "zero"], ["none"]), node("Unsqueeze", ["none", "last"], ["a"]), node("Unsqueeze", ["range", "zero"], ["b"]),
             node("Add", ["a", "b"], ["sum"]), node("Shape", ["sum"], ["grid"]), node("Expand", ["a", "grid"], ["rows"]),
             node("Expand", ["b", "grid"], ["columns"]), node("Unsqueeze", ["rows", "last"], ["r"]), node("Unsqueeze", ["columns", "last"], ["c"]),
             node("Concat", ["r", "c"], ["at"], axis=-1)]
    for k in "pq":
        nodes += [node("Expand", ["one", "grid"], [f"ones{k}"]), node("ConstantOfShape", [f"size{k}"], [f"empty{k}"]),
                  node("ScatterND", [f"empty{k}", "at", f"ones{k}"], [f"mask{k}"]), node("Reshape", [f"mask{k}", f"cut{k}"], [f"m{k}"]),
                  node("Transpose", [f"m{k}"], [f"tiles{k}"], perm=[0, 2, 1, 3])]
    nodes += [node("Add", ["x", "tilesp"], ["s"]), node("Transpose", ["s"], ["t"], perm=[0, 3, 4, 1, 2]), node("Softmax", ["t"], ["y"], axis=-1),
              node("Add", ["z", "tilesq"], ["u"])]
    weights = {"range": np.arange(3), "zero": np.array([0]), "last": np.array([-1]), "one": np.ones(1, np.float32), "sizep": np.array([300, 300]),
               "cutp": np.array([30, 10, 30, 10]), "sizeq": np.array([72, 72]), "cutq": np.array([9, 8, 9, 8])}
    model = test_targets.model_of(nodes, [("x", T.FLOAT, [2, 30, 30, 10, 10]), ("z", T.FLOAT, [2, 9, 9, 8, 8])], [("y", T.FLOAT, None), ("u", T.FLOAT, None)], opset=17)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in weights.items())
    onnx.save(model, tmp / "written.onnx")
    why, lost, words, out = by_both(prog, tmp / "written.onnx", tmp, "onnx")
    if why or lost or claim(words)[0] != 1:
        yield f"{why or lost or claim(words)}"


def fewer_of_more_bytes(prog, tmp):
    """Attention over two joined sequences, of which one is cut out again: a Slice that writes its rows in the heads' order saves a small Transpose, and another
    moves all rows, so fewer Transposes move more bytes than the claim's."""
    node, nodes = test_targets.h.make_node, []
    heads = lambda y, part, n: nodes.extend([node("MatMul", [part, f"w{y}"], [y + part]), node("Reshape", [y + part, f"s{n}"], [y + part + "r"]),
                                             node("Transpose", [y + part + "r"], [y + part + "t"], perm=[0, 2, 1, 3])])
    for y in "qkv":
        heads(y, "a", 8), heads(y, "b", 3)
        nodes.append(node("Concat", [f"{y}at", f"{y}bt"], [y], axis=2))
    nodes += [node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "kt"], ["p"]), node("Softmax", ["p"], ["r"]),
              node("MatMul", ["r", "v"], ["h"]), node("Transpose", ["h"], ["t"], perm=[0, 2, 1, 3]), node("Reshape", ["t", "flat"], ["f"]),
              node("Slice", ["f", "zero", "eight", "one"], ["c"]), node("MatMul", ["c", "wq"], ["o"]), node("Add", ["o", "a"], ["z"]),
              node("LayerNormalization", ["z", "scale"], ["y"])]
    weights = {f"w{y}": np.ones((64, 64), np.float32) for y in "qkv"} | {f"s{n}": np.array([2, n, 4, 16]) for n in (8, 3)}
    weights |= {"flat": np.array([2, 11, 64]), "zero": np.array([0]), "eight": np.array([8]), "one": np.array([1]), "scale": np.ones(64, np.float32)}
    model = test_targets.model_of(nodes, [("a", T.FLOAT, [2, 8, 64]), ("b", T.FLOAT, [2, 3, 64])], [("y", T.FLOAT, [2, 8, 64])], opset=17)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in weights.items())
    onnx.save(model, tmp / "joined.onnx")
    why, lost, words, out = by_both(prog, tmp / "joined.onnx", tmp, common.whole(tmp))
    count, size = Pair(tmp / "joined.onnx", out).main.moved
    if why or lost or not (count < claim(words)[0] and size > claim(words)[1]):
        yield f"{why or lost or (claim(words), count, size)}"


# ---------------------------------------------------------------------------------------------------- what ties the result to the model

def closing_lines(prog, proof, src, out, target="onnx"):
    """(status, last line) of check-proof and of check_proof.py."""
    commands = ([prog, "check-proof"], [sys.executable, common.ROOT / "scripts" / "check_proof.py"])
    runs = [subprocess.run([*c, proof, src, out, "--target", target], capture_output=True, text=True) for c in commands]
    return [(r.returncode, (r.stdout + r.stderr).strip().split("\n")[-1]) for r in runs]


def permuted(op, count, x="x", y="y", **attrs):
    """So many nodes one behind the other."""
    names = [x, *(f"p{i}" for i in range(1, count)), y]
    return [test_targets.h.make_node(op, [a], [b], **attrs) for a, b in zip(names, names[1:])]


def other_results(prog, tmp):
    """Of a model whose certificate allows two conversions: what has another interface, or more of them under whatever name, is not its result."""
    h, model = test_targets.h, test_targets.model_of
    node, src, out = h.make_node, tmp / "model.onnx", tmp / "other.onnx"
    x, y = ("x", T.FLOAT, [2, 3]), ("y", T.FLOAT, [2, 3])
    turned = lambda x, y: [node("Transpose", [x], ["a"], perm=[1, 0]), node("Trilu", ["a"], ["b"]), node("Transpose", ["b"], [y], perm=[1, 0])]
    onnx.save(model(turned("x", "y"), [x], [y], opset=18), src)
    prove(prog, src, tmp)
    older = model(permuted("Transpose", 6, perm=[1, 0]), [x], [y], opset=18)
    older.opset_import[0].version = 6
    renamed = lambda x, y: model(turned(x, y), [(x, T.FLOAT, [2, 3])], [(y, T.FLOAT, [2, 3])], opset=18)
    cases = {"itself": (renamed("x", "y"), True), "another input": (renamed("z", "y"), False), "another output": (renamed("x", "z"), False),
             "a further input": (model(turned("x", "y"), [x, ("z", T.FLOAT, [1])], [y], opset=18), False),
             "a further output": (model(turned("x", "y"), [x], [y, ("b", T.FLOAT, [3, 2])], opset=18), False),
             "another type": (model([node("Cast", ["x"], ["y"], to=T.INT64)], [x], [("y", T.INT64, [2, 3])], opset=18), False),
             "other sizes": (model([node("Neg", ["x"], ["y"])], [("x", T.FLOAT, [7, 9])], [("y", T.FLOAT, [7, 9])], opset=18), False),
             "an open size": (model(turned("x", "y"), [("x", T.FLOAT, [2, "N"])], [y], opset=18), False),
             "another rank": (model([node("Reshape", ["x", "s"], ["y"])], [x], [("y", T.FLOAT, [6])], numbered(s=[6]), opset=18), False),
             "no sizes": (model(turned("x", "y"), [x], [("y", T.FLOAT, None)], opset=18), False),
             "Einsums": (model(permuted("Einsum", 4, equation="ij->ji"), [x], [y], opset=18), False),
             "two Einsums": (model(permuted("Einsum", 2, equation="ij->ji"), [x], [y], opset=18), True),
             "an older opset": (older, False), "an attribute": (model(permuted("Transpose", 6, perm=[1, 0], foo=1), [x], [y], opset=18), False)}
    for name, (proto, good) in cases.items():
        onnx.save(proto, out)
        for status, line in closing_lines(prog, tmp / "proof.txt", src, out):
            if status != (0 if good else 7):
                yield f"{name}: {status}, {line}"


def open_interface(prog, tmp):
    """A size that is open in the model may have got a number, by --dim; a name stays."""
    node, src, out = test_targets.h.make_node, tmp / "model.onnx", tmp / "out.onnx"
    make = lambda *dims: test_targets.model_of([node("Transpose", ["x"], ["a"], perm=[1, 0, 2]), node("Trilu", ["a"], ["y"])], [("x", T.FLOAT, list(dims))],
                                               [("y", T.FLOAT, [dims[1], dims[0], None])], opset=18)
    onnx.save(make("N", "M", 4), src)
    prove(prog, src, tmp, ("--dim", "N=5"))
    for args, status in ((("--dim", "N=5"), 0), ((), 7)):
        if (r := common.relayout(prog, "check-proof", tmp / "proof.txt", src, out, "--target", "onnx", *args)).status != status:
            yield f"{args}: {r.text}"
    words = (tmp / "proof.txt").read_text()
    why, lost = accepts(Pair(src, out, Target(name="onnx")), words)
    if why or not lost:
        yield f"--dim, the second checker: {why or 'rebuilt'}"
    words, _ = prove(prog, src, tmp)
    for name, proto, good in (("itself", make("N", "M", 4), True), ("a number", make(5, "M", 4), True), ("another name", make("N", "K", 4), False)):
        onnx.save(proto, out)
        for status, line in closing_lines(prog, tmp / "proof.txt", src, out):
            if (status == 0) != good and not (good and "not rebuilt" in line):
                yield f"{name}: {status}, {line}"


def einsums(prog, tmp):
    """Einsums that only permute are conversions of the model, too: fewer Transposes are better than they, and where they stay they are counted."""
    node, src = test_targets.h.make_node, tmp / "einsums.onnx"
    turn = lambda x, y: node("Einsum", [x], [y], equation="ij->ji")
    x, triu = [("x", T.FLOAT, [2, 3])], lambda x, y, k: node("Trilu", [x], [y], upper=k)
    twice = [turn("x", "a"), triu("a", "y", 1), turn("x", "b"), triu("b", "z", 0)]
    chain = [turn("x", "a"), node("Relu", ["a"], ["c"]), turn("c", "d"), triu("d", "f", 1), turn("f", "g"), triu("g", "y", 0)]
    for name, nodes, outputs, kinds in (("one", [turn("x", "a"), triu("a", "y", 1)], "y", ["Einsum", "Trilu"]), ("twice", twice, "yz", ["Transpose", "Trilu", "Trilu"]),
                                        ("chain", chain, "y", ["Relu", "Trilu", "Transpose", "Trilu"])):
        onnx.save(test_targets.model_of(nodes, x, [(o, T.FLOAT, [3, 2]) for o in outputs], opset=18), src)
        for target in ("onnx", "generic"):
            why, lost, words, out = by_both(prog, src, tmp, target)
            left = [n.op_type for n in onnx.load(out).graph.node]
            if why or lost or claim(words)[0] != 1 or claim(words)[2] != 1 or left != kinds:
                yield f"{name}, {target}: {why or lost or (claim(words), left)}"


def said_outside(prog, tmp):
    """Transposes of which nothing is claimed: the closing lines and the report say how many there are."""
    node, src = test_targets.h.make_node, tmp / "model.onnx"
    swap = lambda rank: [1, 0, *range(2, rank)]
    for name, dims, rank, count in (("too many dims", [2] * 25, 25, 2), ("unknown rank", None, 3, 1), ("none", [2, 3, 4], 3, 0)):
        nodes = [node("Transpose", ["x"], ["a"], perm=swap(rank)), node("Relu", ["a"], ["b"]), node("Transpose", ["b"], ["y"], perm=swap(rank))]
        onnx.save(test_targets.model_of(nodes, [("x", T.FLOAT, dims)], [("y", T.FLOAT, dims)], opset=18), src)
        _, out = prove(prog, src, tmp, ("--json", tmp / "report.json"))
        lines = closing_lines(prog, tmp / "proof.txt", src, out)
        said = json.loads((tmp / "report.json").read_text())["conversions"]
        wanted = f"; Transposes outside of the claim: {count}"
        if any(status or line.endswith(wanted) != bool(count) or ("outside" in line) != bool(count) for status, line in lines) or said["outside"] != count:
            yield f"{name}: {lines} {said}"


def taken_names(prog, tmp):
    """The least number does not hang on what tensors are called: also where one has the name of what is made of a GatherND, or of a sequence."""
    node, src = test_targets.h.make_node, tmp / "model.onnx"
    for name in ("e", "g_rows", "g_taken", "g_rows_2"):
        nodes = [node("Trilu", ["x"], [name]), node("Transpose", ["x"], ["a"], perm=[1, 0, 2]), node("GatherND", ["a", "i"], ["g"]), node("Transpose", ["g"], ["y"], perm=[1, 0]),
                 node("Relu", [name], ["z"])]
        onnx.save(test_targets.model_of(nodes, [("x", T.FLOAT, [2, 3, 4])], [("y", T.FLOAT, [4, 2]), ("z", T.FLOAT, [2, 3, 4])], numbered(i=[[0, 1], [2, 0]]), opset=18), src)
        why, lost, words, _ = by_both(prog, src, tmp, "onnx")
        if why or lost or claim(words)[0] != 1:
            yield f"{name}: {why or lost or claim(words)}"
    for name in ("e", "s_piece0", "s_item1", "y_piece1"):
        nodes = [node("Relu", ["x"], [name]), node("Transpose", ["x"], ["t"], perm=[1, 0]), node("SplitToSequence", ["t"], ["s"], axis=0, keepdims=0),
                 node("ConcatFromSequence", ["s"], ["y"], axis=1, new_axis=1)]
        onnx.save(test_targets.model_of(nodes, [("x", T.FLOAT, [2, 3])], [("y", T.FLOAT, [2, 3]), (name, T.FLOAT, [2, 3])], opset=18), src)
        why, lost, words, _ = by_both(prog, src, tmp, "onnx")
        if why or lost or claim(words)[0] != 0:
            yield f"{name}: {why or lost or claim(words)}"


# ---------------------------------------------------------------------------------------------------- certificates that are hard to read or to check

def crowded(natom, nop, nform, moves=0):
    """A certificate of nop ops that permute all atoms of one value, in as many equal forms; each op has groups of its own number that no token is in."""
    every = " ".join(map(str, range(natom)))
    lines = ["relayout.proof/1", "objective nodes", f'value 0 "v" bytes 4 atoms {" ".join(["2"] * natom)}', 'op 0 input "v"', f'pin 0 "v" {every}',
             'op 1 output "v"', f'pin 0 "v" {" ".join(map(str, reversed(range(natom))))}']
    for k in range(nop):
        lines += [f'op {2 + k} node "n{k}" X', f'pin 0 "v" {every}', *(f"token 0:{a}" for a in range(natom))]
        lines += [f'form {" ".join(["0"] * natom)} | 0 {" ".join(map(str, range(1, k + 2)))}'] * nform
    least = 1 + moves
    lines += [f"choose 2 0 1 0 {' '.join(map(str, range(2, natom)))}"] * moves
    lines += [f"component 0 {least} {4 * least} {' '.join(str(2 + k) for k in range(nop))}", "outside 0", f"claim {least} {4 * least} {least} {4 * least}", "end", ""]
    return "\n".join(lines)


def hostile_proofs(prog, tmp):
    """Small files that state large problems, or have words that are none, are refused: in bounded time and memory, and with the status of a refusal."""
    node, src, proof = test_targets.h.make_node, tmp / "model.onnx", tmp / "proof.txt"
    onnx.save(test_targets.model_of([node("Transpose", ["v"], ["y"], perm=[1, 0])], [("v", T.FLOAT, [2, 3])], [("y", T.FLOAT, [3, 2])]), src)
    good = crowded(3, 1, 1)
    swapped = lambda a, b: good.replace(a, b, 1)
    cases = {"many digits": swapped("claim 1", "claim 1" + "0" * 5000), "digits of an atom": swapped("token 0:0", "token 0:" + "1" * 5000),
             "digits of a pin": swapped("token 0:0", f"token {'1' * 5000}:0"), "an escape": swapped(" X\n", ' "\\q"\n'), "half a pair": swapped('"n0"', '"\\ud800"'),
             "deep": swapped('"n0"', "[" * 100000), "no type": swapped(" X\n", "\n"), "forms": crowded(9, 1, 20), "later": crowded(8, 1, 1, 1), "ops": crowded(8, 150, 1)}
    if (why := accepts(None, good)[0]) is not None:
        yield f"a good one: {why}"
    script = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_AS, (3 << 30,) * 2); resource.setrlimit(resource.RLIMIT_CPU, (60,) * 2); sys.argv = sys.argv[1:]; sys.path.insert(0, sys.argv[0].rpartition('/')[0]); runpy.run_path(sys.argv[0], run_name='__main__')"
    for name, words in cases.items():
        proof.write_text(words)
        second = subprocess.run([sys.executable, "-c", script, str(common.ROOT / "scripts" / "check_proof.py"), "--alone", str(proof)], capture_output=True, text=True)
        if second.returncode != 7 or not second.stdout.startswith("refused: "):
            yield f"{name}: {second.returncode}, {(second.stdout + second.stderr).strip()[-200:]}"
        r = common.relayout(prog, "check-proof", proof, src, src, "--target", "onnx", "--memory-limit", "400")
        if r.status != 7 or (name == "ops" and "too many to look at" not in r.text):
            yield f"{name}: check-proof {r.status}, {r.text[:200]}"


# ---------------------------------------------------------------------------------------------------- mutated

MODELS = {"rows of targets": rows_of_targets, "unchanged results": unchanged_results, "open results": open_results, "open sizes": open_sizes, "other constants": other_constants, "equal sizes": equal_sizes, "unequal sizes": unequal_sizes, "constant parts": constant_parts, "Einsum of a scalar": scalar_einsum,
          "GroupNormalization": group_normalization, "known output": known_output, "listed weights": listed_weights, "scanned constant": scanned_constant,
          "sequences": sequences, "known elements": known_elements, "frames": frames, "names of outside": names_of_outside, "rotary": rotary,
          "written nowhere": written_nowhere, "fewer of more bytes": fewer_of_more_bytes, "false ones": false_ones,
          "other results": other_results, "open interface": open_interface, "Einsums": einsums, "outside": said_outside, "taken names": taken_names,
          "hostile certificates": hostile_proofs}


def mutated(prog, cache, sources, count, seed):
    """Wrong acceptances, one line each; and how many of each kind were tried."""
    r, wrong, kinds, done = random.Random(seed), [], {}, 0
    models = []
    with tempfile.TemporaryDirectory(prefix="relayout-") as tmp:
        for k, (src, target) in enumerate(sources):
            try:
                words, out = prove(prog, src, tmp, target=target)
            except Unproved:
                continue
            pair = Pair(src, out, Target(name=target.split(":")[0]))
            if accepts(pair, words) == (None, []) and " bytes 0 " not in words:  # of values without elements anything is true
                models.append((Path(src).stem, mutate.Text(words), pair))
        if not models:
            return ["no certificate to mutate"], kinds, 0
        while done < count:
            name, original, pair = models[done % len(models)]
            kind, words = original.mutate(r)
            done += 1
            kinds[kind] = kinds.get(kind, 0) + 1
            if accepts(pair, words) == (None, []):
                differ = [(a, b) for a, b in zip(original.lines, words.split("\n")) if a != b][:1]
                wrong.append(f"{name}, {kind}: accepted; {differ}")
    return wrong, kinds, done


def main():
    p = common.arguments(__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=200, help="random models (default: 200)")
    p.add_argument("--seed", type=int, default=0, help="the first one")
    p.add_argument("--random", type=int, help="this one alone")
    p.add_argument("--wide", type=int, default=50, help="random models of the wider kind (default: 50)")
    p.add_argument("--made", type=int, default=300, help="hand-made certificates (default: 300)")
    p.add_argument("--targets", type=int, default=120, help="random models for targets that have more than ONNX's ops (default: 120)")
    p.add_argument("--mutations", type=int, default=1000)
    p.add_argument("--zoo", nargs="*", default=ZOO, help="parts of names, or all")
    args = p.parse_args()
    prog, cache = common.program(args), args.build.resolve()
    cases = sorted((common.SHARED / "cases").glob("*.onnx"))
    samples = zoo.names() if args.zoo == ["all"] else [n for n in zoo.names() if n in args.zoo]
    seeds = [("random", args.random)] if args.random is not None else [("random", s) for s in range(args.seed, args.seed + args.count)]
    seeds += [("wide", s) for s in range(WIDE + args.seed, WIDE + args.seed + args.wide)] + KNOWN if args.random is None else []
    jobs = [("zoo", n, prog, cache) for n in samples] + [("case", c, prog, cache) for c in cases]
    jobs += [("times", t, prog, cache) for t in TIMED if t[0] in samples or args.zoo == ZOO]
    jobs += [("hand-made", s, prog, cache) for s in range(args.seed, args.seed + args.made)]
    jobs += [(kind, "", prog, cache) for kind in MODELS] + [("target", s, prog, cache) for s in range(args.seed, args.seed + args.targets)]
    jobs = ([] if args.random is not None else jobs) + [(*s, prog, cache) for s in seeds]
    if (spans := cache / "tests" / "relayout_spans").exists():  # the program, where small components are bounded by spans
        jobs += [(*s, str(spans), cache) for s in seeds[:args.count // 2] + seeds[args.count:][:args.wide // 2]]
    npass = nfail = nlost = ngap = nopen = 0
    for row in common.pooled(run, jobs, args.jobs):
        n = row["claim"]
        if row["kind"] == "zoo":
            print(f"{row['name']:34}{n[0] if n else '-':>5} conversions {row['seconds']:7.2f} s {'gap' if n and n[:2] != n[2:] else ''}", flush=True)
        if row["fail"]:
            print(f"{row['kind']} {Path(row['name']).stem}: {row['fail']}", flush=True)
        if row["unproved"]:
            nopen += 1
            print(f"{row['kind']} {row['name']}: {row['unproved']}", flush=True)
        if row["lost"]:
            nlost += 1
            print(f"{row['kind']} {Path(row['name']).stem}: not rebuilt: {', '.join(row['lost'][:3])}", flush=True)
        ngap += bool(n and n[:2] != n[2:])
        npass += not (row["fail"] or row["lost"] or row["unproved"])
        nfail += bool(row["fail"])
    print(f"{nlost} models with parts that could not be rebuilt, {ngap} gaps, {nopen} random models not proved")
    if nopen > max(1, UNPROVED * (len(seeds) + args.targets)):
        print(f"more than {UNPROVED:.0%} of the random models were not proved")
        nfail += 1
    if args.mutations and args.random is None:
        with tempfile.TemporaryDirectory() as tmp:
            sources = [(str(c), "onnx") for c in cases] + [(str(zoo.filled(n, cache / "zoo")), "onnx") for n in samples if n in ZOO[:3]]
            sources += [(str(zoo.filled(n, cache / "zoo")), t) for n, t in TIMED[:3] if n in samples]
            for s in range(40):
                path = Path(tmp) / f"{s}.onnx"
                onnx.save(graphgen.make(args.seed + s).proto, path)
                sources.append((str(path), ["onnx", "generic:time"][s % 2]))
            for s, target in enumerate(TARGETS):
                path = Path(tmp) / f"{target.replace(':', '-')}.onnx"
                onnx.save(test_targets.product(random.Random(args.seed + s)), path)
                sources.append((str(path), target))
            wrong, kinds, done = mutated(prog, cache, sources, args.mutations, args.seed)
        for w in wrong:
            print(w)
        print(f"{done} mutated certificates of {len(kinds)} kinds, {len(wrong)} accepted")
        npass, nfail = npass + (done - len(wrong)), nfail + len(wrong)
    return common.closing(npass, nfail, nlost + nopen)


if __name__ == "__main__":
    sys.exit(main())
