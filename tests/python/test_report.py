#!/usr/bin/env python3
"""`relayout report` and `relayout dot`: the page, in a headless Chromium (skipped where none is installed), and the pictures.

  test_report.py                     all
  test_report.py --shots FOLDER      also writes screenshots, to look at

The page is opened from a file:// URL and used as a person would: keys, clicks, search, wheel.  It must ask the network for nothing and
say nothing on the console.  A model whose every name is markup must stay text.  Pictures: boxes do not overlap, what is read
stands below what makes it, and the figures are those of `stats` and `explain`.
"""
import html.parser
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import common
import graphgen
from browser import Browser

CNN = common.ROOT / "models" / "channels_last_cnn.onnx"
ATTENTION = common.ROOT / "models" / "attention_block.onnx"
EVIL = "</script><script>window.evil=1</script><img src=x onerror=evil()>\"'&\\<!--"
LIMIT = 2_000_000
check = common.Checks()


# ---------------------------------------------------------------------------------------------------- models

def save(path, nodes, inputs, outputs, weights=(), name="g", functions=()):
    g = helper.make_graph(nodes, name, inputs, outputs, list(weights))
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def tensor(name, *shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def evil_model(path):
    """Markup as the name of the graph, of inputs, outputs, nodes, tensors, weights, string attributes and bodies."""
    w = numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), EVIL + "w")
    then = helper.make_graph([helper.make_node("Relu", [EVIL + "c"], [EVIL + "t"], name=EVIL + "in then")], EVIL, [], [tensor(EVIL + "t", 1, 4, 6, 6)])
    other = helper.make_graph([helper.make_node("Neg", [EVIL + "c"], [EVIL + "e"], name=EVIL + "in else")], EVIL, [], [tensor(EVIL + "e", 1, 4, 6, 6)])
    nodes = [helper.make_node("Transpose", [EVIL + "x"], [EVIL + "a"], name=EVIL + "1", perm=[0, 3, 1, 2]),
             helper.make_node("Conv", [EVIL + "a", EVIL + "w"], [EVIL + "c"], name=EVIL + "conv", auto_pad=b"VALID"),
             helper.make_node("If", [EVIL + "b"], [EVIL + "i"], name=EVIL + "if", then_branch=then, else_branch=other),
             helper.make_node("Transpose", [EVIL + "i"], [EVIL + "y"], name=EVIL + "2", perm=[0, 2, 3, 1])]
    return save(path, nodes, [tensor(EVIL + "x", 1, 6, 6, 4), tensor(EVIL + "b", kind=TensorProto.BOOL)], [tensor(EVIL + "y", 1, 6, 6, 4)], [w], EVIL)


def large_model(path, blocks=400):
    """As TensorFlow exports it, 2,000 nodes: each Conv between two Transposes, and a branch around every block."""
    nodes, weights, x = [], [numpy_helper.from_array(np.ones((8, 8, 1, 1), np.float32), "some/long/scope/name/weight")], "image"
    for i in range(blocks):
        p = f"network/stage_{i // 20}/block_{i}"
        nodes += [helper.make_node("Transpose", [x], [p + "/to"], name=p + "/Transpose", perm=[0, 3, 1, 2]),
                  helper.make_node("Conv", [p + "/to", "some/long/scope/name/weight"], [p + "/conv"], name=p + "/Conv2D"),
                  helper.make_node("Transpose", [p + "/conv"], [p + "/back"], name=p + "/Transpose_1", perm=[0, 2, 3, 1]),
                  helper.make_node("Relu", [p + "/back"], [p + "/relu"], name=p + "/Relu"),
                  helper.make_node("Add", [p + "/relu", x], [p + "/sum"], name=p + "/add")]
        x = p + "/sum"
    nodes[-1].output[0] = "y"
    return save(path, nodes, [tensor("image", 1, 16, 16, 8)], [tensor("y", 1, 16, 16, 8)], weights)


# ---------------------------------------------------------------------------------------------------- without a browser

class Scripts(html.parser.HTMLParser):
    """The tags of the page and the text of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.inside, self.links = [], [], False, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href") and not v.startswith("data:")]
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside &= tag != "script"

    def handle_data(self, text):
        if self.inside:
            self.scripts[-1] += text


def page_data(path):
    return json.loads(Scripts(path.read_text()).scripts[0])


def places_wrong(s):
    """How many boxes of a sheet stand over another or beyond its border, and how many readers not below what they read."""
    wrong, open_boxes = 0, []
    for y, x, w, h in sorted((n[2], n[1], n[3], n[4]) for n in s["nodes"]):
        open_boxes = [b for b in open_boxes if b[0] + b[3] > y]
        wrong += sum(x < bx + bw and bx < x + w for _, bx, bw, _ in open_boxes) + (x < 0 or x + w > s["width"] or y + h > s["height"])
        open_boxes.append((y, x, w, h))
    maker = {v: n for n in s["nodes"] for v in n[12] if v >= 0}
    return wrong + sum(maker[v][2] + maker[v][4] > n[2] for n in s["nodes"] for v in n[11] if v in maker)


def check_places(what, sheets):
    check(f"{what}: {sum(len(s['nodes']) for s in sheets)} boxes, none over another, readers below makers", sum(map(places_wrong, sheets)) == 0)


def check_random(run, tmp, count, seed):
    """Random models: no box over another, and text for Graphviz with as many lines as are drawn."""
    wrong = []
    for k in range(seed, seed + count):
        onnx.save(graphgen.make(k).proto, tmp / "random.onnx")
        run("report", tmp / "random.onnx", "-o", tmp / "random.html")
        d = page_data(tmp / "random.html")
        if any(places_wrong(s) for s in d["before"] + (d["after"] or [])) or d["report"]["changed"] != bool(d["after"]):
            wrong.append(k)
        ElementTree.fromstring(run("dot", tmp / "random.onnx", "--svg"))
        dot = run("dot", tmp / "random.onnx")
        edges = {(v, j) for j, s in enumerate(d["before"]) for n in s["nodes"] for v in [(id(n), x) for x in n[11] if x >= 0 and s["values"][x][3]]}
        if dot.count(" -> ") != len(edges):
            wrong.append(k)
    check(f"{count} random models from seed {seed} on" + (f", wrong: {wrong}" if wrong else ""), not wrong)


def check_data(run, model, page, *options):
    d = page_data(page)
    stats = json.loads(run("stats", model, "--json", "-", *options))
    explain = json.loads(run("explain", model, "--json", "-", *options))
    moves = [(n[9]) for s in d["before"] for n in s["nodes"] if n[10]]
    check("the figures are those of stats", d["report"]["counts"]["before"] == stats["counts"] and d["report"]["counts"]["after"] == stats["needed"])
    check("the moves are those of stats", len(moves) == stats["counts"]["moving"] and sum(moves) == stats["counts"]["moved_bytes"])
    check("the reasons are those of explain", d["explain"] == explain)
    if d["after"]:
        check("so are those after", sum(n[10] for s in d["after"] for n in s["nodes"]) == stats["needed"]["moving"])
    check_places(model.name, d["before"] + (d["after"] or []))
    return d


def check_pictures(run, tmp, evil):
    svg = ElementTree.fromstring(run("dot", CNN, "--svg"))
    words = ["".join(t.itertext()) for t in svg.iter("{http://www.w3.org/2000/svg}text")]
    check("an SVG of all nodes", words.count("Conv") == 26 and words.count("Transpose") == 52)
    part = run("dot", CNN, "--node", "model/Conv", "--around", "1")
    check("a part of it", re.findall(r'\[label="(\w+)', part) == ["model", "Pad", "Conv", "Transpose"] and part.startswith("digraph"))
    check("Graphviz: quotes in pairs, a box for each node", len(re.findall(r'(?<!\\)"', run("dot", CNN))) % 2 == 0)
    both = ElementTree.fromstring(run("report", CNN, "--svg", "-o", "-"))
    words = ["".join(t.itertext()) for t in both.iter("{http://www.w3.org/2000/svg}text")]
    check("before and after side by side", words[0] == "before: 32 Transposes that move data" and "after: 1" in words)
    svg = run("dot", evil, "--svg")
    check("markup in names is text", {t.tag.split("}")[1] for t in ElementTree.fromstring(svg).iter()} <= {"svg", "style", "rect", "text", "g", "path", "title"})
    after = run("dot", CNN, "--after", "insert")
    check("the graph after a pass, with layouts", "[batch,48,48,16]@adbc" in after)
    for words, says in ((("dot", CNN, "--node", "nowhere"), "no node or tensor 'nowhere'"), (("report", CNN), "where does the page go?"),
                        (("dot", CNN, "--around", "x"), "is no number")):
        r = subprocess.run([run.prog, *map(str, words)], capture_output=True, text=True)
        check(f"{words[0]}: {says}", r.returncode == 2 and says in r.stderr)


def check_evil(page):
    p = Scripts(page.read_text())
    check("no name is markup", p.tags.count("script") == 2 and "img" not in p.tags and not p.links)
    d = json.loads(p.scripts[0])
    check("and every name is there", sum(EVIL in s for s in d["strings"]) >= 12 and any("If" == d["strings"][n[5]] and len(n[13]) == 2 for n in d["before"][0]["nodes"]))


# ---------------------------------------------------------------------------------------------------- in a browser

def text(p, selector):
    return p.eval(f"document.querySelector({json.dumps(selector)})?.textContent")


def selected(p):
    return p.eval("document.querySelector('#graph .selected title')?.textContent.split(' · ')[0] ?? null")


def seen(p):
    """How many nodes, and moves among them, a walk from the top to the bottom meets."""
    return tuple(p.eval("""(() => {
      const all = new Set(), moves = new Set(), was = { ...state };
      for (state.y = 0; state.y > -sheetNow().height * state.k; state.y -= 300) {
        show();
        for (const e of document.querySelectorAll('#graph .n')) (all.add(e.dataset.id), e.classList.contains('move') && moves.add(e.dataset.id));
      }
      Object.assign(state, was);
      show();
      return [all.size, moves.size];
    })()"""))


def check_small(b, page, shot):
    p = b.open(page)
    shot(p, "small-light")
    check("title and figures", p.eval("document.title") == "%s · relayout" % p.eval("document.querySelector('#model').title")
          and "32 → 1" in text(p, "#figures") and "proved minimum: 1" in text(p, "#figures"))
    check("the graph is drawn, its moves coloured", seen(p) == (167, 1))
    check("the ruler shows the moves of both", p.eval("document.querySelectorAll('#ruler .tick:not(.data)').length") == 33)
    p.key("t")
    check("t: before", seen(p) == (198, 32) and p.eval("document.querySelector('[data-view=before]').ariaChecked") == "true")
    p.key("n")
    first = selected(p)
    p.key("n")
    check("n: from move to move", first and selected(p) and first != selected(p) and "2 of 32" in text(p, "#place"))
    p.key("p")
    check("p: and back", selected(p) == first)
    check("what is chosen is told", "perm=[0,3,1,2]" in text(p, "#body") and "f32[batch,96,96,3]" in text(p, "#body") and "Why it stays" in text(p, "#body"))
    p.key("ArrowDown")
    check("arrows go along the lines", selected(p) == "model/Pad")
    p.key(" ")
    check("space: after, with the same node chosen", selected(p) == "model/Pad" and p.eval("location.hash") == "#after/model%2FPad")
    p.key("/")
    p.type("conv_1")
    check("search finds", p.eval("document.querySelectorAll('#results li[role=option]').length") >= 1 and p.eval("document.querySelectorAll('#graph .hit').length") >= 1)
    shot(p, "search")
    p.key("Enter", "\r")
    check("and Enter goes there", "conv_1" in (selected(p) or "").lower())
    p.key("Escape")
    check("Esc: nothing chosen", selected(p) is None and p.eval("document.querySelector('#search').value") == "")
    p.key("1")
    p.click("document.querySelector('.card h3 button')")
    check("a conversion is shown in the graph", p.eval("document.querySelectorAll('#graph .path').length") >= 3 and selected(p) == "model/Transpose"
          and "on" in p.eval("document.querySelector('.card').className"))
    shot(p, "conversion")
    p.key("3")
    check("a bar per op", p.eval("[...document.querySelectorAll('.op')].map(e => e.dataset.op)[0]") == "Transpose" and p.eval("document.querySelector('.op .was').offsetWidth") > 100)
    shot(p, "bytes")
    p.key("2")
    check("where the others went", text(p, "#body h2") == "Cancelled by another Transpose · 31")
    check_pointer(p)
    p.key("d")
    check("d: dark", p.eval("document.documentElement.dataset.theme") == "dark")
    p.key("?")
    check("?: the keys", p.eval("document.querySelector('#keys').open"))
    check("nothing on the console, nothing from the network", p.problems == [] or print(p.problems))


def check_pointer(p):
    where = "document.querySelector('#world').getAttribute('transform')"
    p.key("0")
    was = p.eval(where)
    p.wheel(400, 500, 200)
    p.wait(f"{where} !== {json.dumps(was)}")
    was = p.eval(where)
    p.wheel(400, 500, -300, ctrl=True)
    p.wait(f"{where} !== {json.dumps(was)}")
    scale = [float(re.search(r"scale\((.*)\)", s)[1]) for s in (was, p.eval(where))]
    check("wheel pans, with Ctrl it zooms", scale[1] > scale[0])
    was = p.eval(where)
    p.drag(300, 400, 120, 60)
    check("dragging pans", p.eval(where) != was and p.eval("!document.querySelector('#graph').classList.contains('drags')"))
    p.click("document.querySelector('#next')")
    p.click("document.querySelector('#graph .selected rect')")
    check("a click chooses", "Transpose" in (selected(p) or "") or "f32" in text(p, "#body"))
    p.click("document.querySelector('#ruler [data-lane=before]')")
    check("the ruler goes to the other model", p.eval("document.querySelector('[data-view=before]').ariaChecked") == "true")


def check_dark(b, page, shot):
    p = b.open(page, dark=True)
    shot(p, "dark")
    dark = p.eval("getComputedStyle(document.body).backgroundColor")
    check("dark where the system is", p.eval("document.documentElement.dataset.theme") == "dark" and sum(map(int, re.findall(r"\d+", dark)[:3])) < 150)
    check("a model that stays as it is says so", "nothing to improve" in text(p, "#how") and p.eval("document.querySelector('[data-view=after]').disabled"))
    check("its console is clean", p.problems == [] or print(p.problems))


def check_evil_page(b, page, shot):
    p = b.open(page)
    p.key("t")
    p.key("n")
    shot(p, "markup")
    check("markup in names does nothing", p.eval("window.evil") is None and p.eval("document.querySelectorAll('img').length") == 0)
    check("it is shown as text", p.eval("document.querySelector('#node-name').textContent").startswith(EVIL))
    for key in "1234":
        p.key(key)
    p.eval("(s => { s.value = s.options.length - 1; s.dispatchEvent(new Event('change')); })(document.querySelector('#sheets'))")
    check("a body has a graph of its own", EVIL in p.eval("document.querySelector('#sheets').selectedOptions[0].textContent")
          and p.eval("document.querySelectorAll('#graph .n').length") >= 2)
    check("and a clean console", p.eval("window.evil") is None and (p.problems == [] or print(p.problems)))


def check_large(b, page, shot):
    p = b.open(page)
    shot(p, "large")
    p.key("t")
    check("2,002 boxes are drawn, 800 of them moves", seen(p) == (2002, 800))
    check("though only those in sight at a time", p.eval("document.querySelectorAll('#graph .n').length") < 200)
    p.key("0")
    shot(p, "large-whole")
    p.key("/")
    p.type("block_399/conv")
    p.key("Enter", "\r")
    check("search in it", selected(p) == "network/stage_19/block_399/Conv2D")
    seconds = p.eval("(() => { const t = performance.now(); for (let i = 0; i < 5; i++) { setView('after'); setView('before'); } return (performance.now() - t) / 10000; })()")
    print(f"changing the view: {seconds:.3f} s")
    check("a clean console", p.problems == [] or print(p.problems))


def in_browser(tmp, shots):
    if not Browser.find():
        print("skipped: the page in a browser (no chromium; apt-get install chromium)")
        return

    def shot(p, name):
        if shots:
            p.screenshot(shots / f"{name}.png")

    with Browser() as b:
        check_small(b, tmp / "small.html", shot)
        check_dark(b, tmp / "attention.html", shot)
        check_evil_page(b, tmp / "evil.html", shot)
        check_large(b, tmp / "large.html", shot)


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=40, help="random models (default: 40)")
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    parser.add_argument("--shots", type=Path, help="a folder for screenshots")
    args = parser.parse_args()
    prog = common.program(args)

    def run(*words):
        r = subprocess.run([prog, *map(str, words)], capture_output=True, text=True)
        if r.returncode:
            sys.exit(f"relayout {' '.join(map(str, words))}: {r.stderr}")
        return r.stdout
    run.prog = prog
    with tempfile.TemporaryDirectory() as tmp:
        tmp = Path(tmp)
        models = {"small": CNN, "attention": ATTENTION, "evil": evil_model(tmp / "evil.onnx"), "large": large_model(tmp / "large.onnx")}
        for name, model in models.items():
            run("report", model, "-o", tmp / f"{name}.html")
        check_data(run, CNN, tmp / "small.html")
        d = check_data(run, models["large"], tmp / "large.html")
        size = (tmp / "large.html").stat().st_size
        check(f"a page of 2,000 nodes has {size:,} bytes", len(d["before"][0]["nodes"]) == 2002 and size < LIMIT)
        check_evil(tmp / "evil.html")
        check_pictures(run, tmp, models["evil"])
        check_random(run, tmp, args.count, args.seed)
        if args.shots:
            args.shots.mkdir(parents=True, exist_ok=True)
        in_browser(tmp, args.shots)
    return check.closing()


if __name__ == "__main__":
    sys.exit(main())
