// The page of `relayout report`. Data: see src/page.h and src/picture_json.c. Whatever comes from the model gets onto the page as text
// (textContent, createTextNode), never as markup.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const NODE = 0, INPUT = 1, OUTPUT = 2;
const VIEWS_OPS = new Set(["Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"]); // what a conversion is written with, beside its Transpose

// ---- elements and words

function add(parent, tag, attributes = {}, ...children) {
  const e = parent instanceof SVGElement ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter(c => c !== null && c !== undefined && c !== ""));
  parent.append(e);
  return e;
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  for (; n >= 1024 && u < units.length - 1; u++) n /= 1024;
  return (u && n < 100 ? n.toFixed(1) : Math.round(n)) + " " + units[u];
}

const many = (n, one, more = one + "s") => `${n} ${n === 1 ? one : more}`;

// ---- the model: sheets of nodes and values

/* What a node can be looked up by: op and name, op and first output, a tensor that it makes; an input's or output's own name. */
const plain = op => op.split("::").pop();
const nameKey = (op, name) => name === null ? "" : `n${op}\n${name}`, outKey = (op, output) => `o${op}\n${output}`;
const tensorKey = name => `t${name}`, endKey = name => `e${name}`;
function indexOf(nodes) {
  const index = new Map(), put = (key, n) => { if (!index.has(key)) index.set(key, n); };
  for (const n of nodes) {
    for (const v of n.outs) if (v) put(tensorKey(v.name), n);
    if (n.kind !== NODE) put(endKey((n.ins[0] ?? n.outs[0])?.name), n);
    else if (n.name !== null) put(nameKey(plain(n.op), n.name), n);
    if (n.kind === NODE && n.outs[0]) put(outKey(plain(n.op), n.outs[0].name), n);
  }
  return index;
}

function readSheet(s, view) {
  const text = i => i < 0 ? null : data.strings[i];
  const values = s.values.map(([name, type, constant, path]) => ({ name: text(name), type: text(type), constant: !!constant, path, maker: null, readers: [] }));
  const nodes = s.nodes.map(([kind, x, y, w, h, op, name, line, attrs, moved, transpose, ins, outs, bodies], id) => ({
    id, kind, x, y, w, h, op: text(op), name: text(name), line: text(line), attrs: text(attrs), moved, transpose: !!transpose,
    ins: ins.map(v => values[v] ?? null), outs: outs.map(v => values[v] ?? null), bodies: bodies.map(([attr, sheet]) => ({ attr: text(attr), sheet })) }));
  const sheet = { view, title: text(s.title), width: s.width, height: s.height, nodes, values };
  for (const n of nodes) {
    n.sheet = sheet;
    n.top = n.y;
    n.bottom = n.y + n.h;
    for (const v of n.outs) if (v) v.maker = n;
    for (const v of n.ins) if (v && v.readers.at(-1) !== n) v.readers.push(n);
  }
  for (const v of values) {
    v.top = v.maker?.bottom;
    v.bottom = v.readers.reduce((y, n) => Math.max(y, n.top), 0);
  }
  sheet.index = indexOf(nodes);
  sheet.moves = nodes.filter(n => n.transpose).sort((a, b) => a.y - b.y || a.x - b.x);
  return sheet;
}

const models = { before: data.before.map(s => readSheet(s, "before")) };
models.after = data.after ? data.after.map(s => readSheet(s, "after")) : models.before;
const everyNode = view => models[view].flatMap(s => s.nodes);
const most = Math.max(0, ...everyNode("before").map(n => n.moved), ...everyNode("after").map(n => n.moved));

function heat(moved) { // as rl_picture_heat
  let h = 4;
  for (let m = most; h && moved < m / 4; m /= 4) h--;
  return h;
}

const label = n => n.kind === NODE ? n.name ?? n.op + " → " + (n.outs.find(v => v)?.name ?? "?") : n.name;

// explain names a node by its name and first output, and the body that it stands in.
const bodyTitle = b => !b ? "main graph" : "function" in b ? `function ${b.function}` : `${b.attribute} of ${b.of.name ?? b.of.op}`;
function find(view, x) {
  if (!x) return null;
  const title = bodyTitle(x.body);
  const sheets = [...models[view]].sort((a, b) => (b.title === title) - (a.title === title));
  const key = "tensor" in x ? tensorKey(x.tensor) : x.op ? null : endKey(x.output);
  for (const s of sheets) {
    const n = s.index.get(key ?? nameKey(x.op, x.name)) ?? (key ? null : s.index.get(outKey(x.op, x.output)));
    if (n) return n;
  }
  return null;
}
const called = x => !x ? "" : x.op ? (x.name ? `${x.name} (${x.op})` : `${x.op} → ${x.output}`) : x.output;

// ---- what explain says, joined with the nodes of both pictures

/* The compute node, input or tensor on the other side of what only reshapes. */
function throughViews(n, up) {
  const found = [], seen = new Set([n]);
  for (const list = [n]; list.length;) {
    const m = list.pop();
    const beside = up ? m.ins.slice(0, 1).map(v => v?.maker) : m.outs.flatMap(v => v ? v.readers : []);
    for (const k of beside) {
      if (!k || seen.has(k)) continue;
      seen.add(k);
      if (k.kind === NODE && VIEWS_OPS.has(k.op)) list.push(k);
      else found.push(k);
    }
  }
  return found;
}

function names(n, x) { // is n what explain calls x?
  if (!x) return false;
  if (n.kind !== NODE) return !x.op && (n.ins[0] ?? n.outs[0])?.name === x.output;
  return !!x.op && ((x.name && n.name === x.name) || n.outs.some(v => v && v.name === x.output));
}

const conversions = data.explain.conversions, transposes = data.explain.transposes;
const conversionById = new Map(conversions.map(c => [c.id, c]));
const fateOf = new Map(), conversionOf = new Map(); // node of the picture before -> what became of it; of either picture -> conversion
for (const t of transposes) {
  t.found = find("before", t.node);
  if (!t.found) continue;
  fateOf.set(t.found, t);
  for (const id of t.conversions) {
    conversionOf.set(t.found, conversionById.get(id));
    conversionById.get(id).before = t.found;
  }
}
for (const c of conversions) {
  c.maker ??= { name: null, op: null, output: c.tensor }; // an input
  const isIt = n => throughViews(n, true).some(m => names(m, c.maker)) && throughViews(n, false).some(m => c.readers.some(r => names(m, r)));
  const all = models.after.flatMap(s => s.moves).filter(n => data.after ? !conversionOf.has(n) : conversionOf.get(n) === c);
  c.written = all.find(isIt) ?? (data.after ? null : all[0] ?? null);
  if (c.written) conversionOf.set(c.written, c);
  c.steps = c.paths.flatMap(p => p.steps);
  // explain and the counts take an unknown size for different numbers: where there is a node, the page says what that moves.
  c.moved = c.written?.moved ?? c.before?.moved ?? c.bytes;
}

// ---- state

const state = { view: data.after ? "after" : "before", sheet: 0, selected: null, lit: null, tab: conversions.length ? "stay" : "gone", x: 0, y: 0, k: 1 };
const sheetNow = () => models[state.view][state.sheet] ?? models[state.view][0];

// ---- drawing

// Only what is in sight, and a screen above and below, has elements: a graph of any length is as quick as a short one.

let hits = new Set();            // what the search found
let shapes = new Map();          // node -> its <g>
let wires = new Map();           // value -> its <path>
let drawn = { from: 0, to: -1 }; // in the graph's own pixels

function draw() {
  drawn = { from: 0, to: -1 };
  reveal();
  drawRuler();
}

function reveal() {
  const h = canvasSize().h / state.k, top = -state.y / state.k;
  if (top >= drawn.from && top + h <= drawn.to) return;
  drawn = { from: top - h, to: top + 2 * h };
  const s = sheetNow(), world = $("world"), inside = x => x.top <= drawn.to && x.bottom >= drawn.from;
  world.replaceChildren();
  shapes = new Map();
  wires = new Map();
  for (const v of s?.values ?? []) if (v.path && inside(v)) wires.set(v, add(world, "path", { d: v.path }));
  for (const n of s?.nodes ?? []) {
    if (!inside(n)) continue;
    const kind = n.transpose ? `move h${heat(n.moved)}` : n.kind !== NODE ? "io" : n.moved >= 0 ? "data" : "";
    const g = add(world, "g", { class: `n ${kind}`, "data-id": n.id, transform: `translate(${n.x} ${n.y})` });
    add(g, "title", {}, label(n) + (n.moved >= 0 ? ` · ${bytes(n.moved)} moved` : ""));
    add(g, "rect", { width: n.w, height: n.h, rx: n.kind === NODE ? 5 : 13 });
    add(g, "text", { x: n.w / 2, y: n.line ? 16 : 17 }, n.kind === NODE ? n.op : n.name);
    if (n.line) add(g, "text", { x: n.w / 2, y: 30, class: "l" }, n.line);
    shapes.set(n, g);
  }
  mark();
}

function mark() {
  for (const g of $("world").querySelectorAll(".selected, .path, .end")) g.classList.remove("selected", "path", "end");
  for (const p of $("world").querySelectorAll(".lit")) p.classList.remove("lit");
  for (const [n, g] of shapes) g.classList.toggle("hit", hits.has(n));
  for (const step of state.lit?.steps ?? []) if (!("tensor" in step)) shapes.get(find(state.view, step))?.classList.add("path");
  for (const x of state.lit ? [state.lit.maker, ...state.lit.readers] : []) shapes.get(find(state.view, x))?.classList.add("end");
  const n = state.selected;
  shapes.get(n)?.classList.add("selected");
  for (const v of n ? [...n.ins, ...n.outs] : []) wires.get(v)?.classList.add("lit");
}

function show() {
  const { x, y, k } = state;
  $("world").setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
  $("graph").classList.toggle("far", k < 0.42);
  reveal();
  moveWindow();
}

// ---- the ruler: both models from end to end, a tick for each move

const LANE = 25, RULER_TOP = 16;
function rulerHeight() { return $("ruler").clientHeight - RULER_TOP - 4; }

function sheetOf(view) {
  const s = sheetNow();
  return !s || s.view === view ? s : models[view].find(m => m.title === s.title);
}

function drawRuler() {
  const ruler = $("ruler"), tall = rulerHeight();
  ruler.replaceChildren();
  ["before", "after"].forEach((view, i) => {
    const x = 4 + i * (LANE + 4), s = sheetOf(view);
    add(ruler, "rect", { class: `lane ${view === state.view ? "on" : ""}`, x, y: RULER_TOP, width: LANE, height: Math.max(0, tall), rx: 3, "data-lane": view });
    add(ruler, "text", { x: x + LANE / 2, y: 11 }, view);
    for (const n of s?.nodes ?? []) {
      if (n.moved < 0) continue;
      const wide = 5 + heat(n.moved) * 5;
      add(ruler, "rect", { class: n.transpose ? `tick h${heat(n.moved)}` : "tick data", x, width: n.transpose ? wide : 4, height: 2.5,
        y: RULER_TOP + n.y / s.height * (tall - 3) });
    }
  });
  add(ruler, "rect", { class: "window", width: LANE + 2, rx: 3 });
  moveWindow();
}

function moveWindow() {
  const box = $("ruler").querySelector(".window"), s = sheetNow();
  if (!box || !s) return;
  const tall = rulerHeight(), from = Math.max(0, -state.y / state.k / s.height), to = Math.min(1, (canvasSize().h - state.y) / state.k / s.height);
  box.setAttribute("x", 3 + (state.view === "after" ? LANE + 4 : 0));
  box.setAttribute("y", RULER_TOP + from * tall);
  box.setAttribute("height", Math.max(5, (to - from) * tall));
}

// ---- pan and zoom

const canvasSize = () => ({ w: $("graph").clientWidth - 62, h: $("graph").clientHeight });

function zoomAt(factor, px = canvasSize().w / 2, py = canvasSize().h / 2) {
  const k = Math.min(3, Math.max(0.02, state.k * factor));
  state.x = px - (px - state.x) * k / state.k;
  state.y = py - (py - state.y) * k / state.k;
  state.k = k;
  show();
}

function pan(dx, dy) {
  state.x += dx;
  state.y += dy;
  show();
}

function fit() {
  const s = sheetNow(), { w, h } = canvasSize();
  if (!s || !s.nodes.length) return;
  state.k = Math.max(0.12, Math.min(1.2, w / s.width, h / s.height)); // of what is taller still, the ruler shows the whole
  state.x = (w - s.width * state.k) / 2;
  state.y = Math.max(0, (h - s.height * state.k) / 2);
  show();
}

function centre(n, k = Math.max(state.k, 0.9)) {
  const { w, h } = canvasSize();
  state.k = k;
  state.x = w / 2 - (n.x + n.w / 2) * k;
  state.y = h / 2 - (n.y + n.h / 2) * k;
  show();
}

/* All of it where it can be read, else the largest move. */
function start() {
  const s = sheetNow(), { w, h } = canvasSize();
  if (!s || !s.nodes.length) return;
  if (Math.min(w / s.width, h / s.height) >= 0.5) return fit();
  const large = [...s.moves].sort((a, b) => b.moved - a.moved)[0] ?? s.nodes[0];
  centre(large, 0.95);
  state.y = Math.max(Math.min(state.y, 0), h - s.height * state.k); // no empty margin
  show();
}

// ---- choosing

function setView(view, sheet = null) {
  if (view === state.view && sheet === null) return;
  const old = sheetNow(), { w, h } = canvasSize();
  const middle = n => Math.hypot((n.x + n.w / 2) * state.k + state.x - w / 2, (n.y + n.h / 2) * state.k + state.y - h / 2);
  const other = models[view][sheet ?? models[view].findIndex(s => s.title === old?.title)] ?? models[view][0];
  // What is in the middle stays in the middle, where it is in both.
  const twin = n => other?.index.get(n.kind !== NODE ? endKey((n.ins[0] ?? n.outs[0])?.name) : n.name !== null ? nameKey(plain(n.op), n.name)
    : outKey(plain(n.op), n.outs[0]?.name)) ?? null;
  const chosen = state.selected && view !== state.view ? twin(state.selected) : null; // null: nothing that is in both
  let anchor = chosen && state.selected, to = chosen;
  if (!anchor && old && view !== state.view) {
    anchor = [...old.nodes].sort((a, b) => middle(a) - middle(b)).slice(0, 40).find(n => (to = twin(n)));
  }
  if (anchor && to) {
    state.x += (anchor.x + anchor.w / 2 - to.x - to.w / 2) * state.k;
    state.y += (anchor.y - to.y) * state.k;
  }
  state.view = view;
  state.sheet = Math.max(0, models[view].indexOf(other));
  state.selected = chosen;
  if (!to) start();
  for (const b of $("views").children) b.setAttribute("aria-checked", b.dataset.view === view);
  fillSheets();
  draw();
  show();
  fillPanel();
  sayPlace();
  remember();
}

function goTo(n, tab = null) {
  if (!n) return;
  if (n.sheet !== sheetNow()) setView(models.after === models.before ? state.view : n.sheet.view, models[n.sheet.view].indexOf(n.sheet));
  centre(n);
  select(n, tab);
}

function select(n, tab = "node") {
  state.selected = n;
  if (n && tab) state.tab = tab;
  mark();
  fillPanel();
  sayPlace();
  remember();
}

function step(by) {
  const moves = sheetNow()?.moves ?? [];
  if (!moves.length) return;
  let i = moves.indexOf(state.selected);
  if (i < 0 && by < 0) i = 0;
  goTo(moves[(i + by + moves.length) % moves.length], "node");
}

function sayPlace() {
  const moves = sheetNow()?.moves ?? [], i = moves.indexOf(state.selected);
  $("place").textContent = i < 0 ? many(moves.length, "move") : `${i + 1} of ${many(moves.length, "move")}`;
}

/* From node to node: up to what makes its first input that is made, down to its first reader, aside in its layer. */
function walk(key) {
  const n = state.selected;
  if (!n) return false;
  const aside = sign => n.sheet.nodes.filter(m => Math.abs(m.y + m.h / 2 - n.y - n.h / 2) < 20 && sign * (m.x - n.x) > 0).sort((a, b) => sign * (a.x - b.x))[0];
  const to = key === "ArrowUp" ? n.ins.find(v => v?.maker)?.maker : key === "ArrowDown" ? n.outs.find(v => v?.readers.length)?.readers[0]
    : aside(key === "ArrowRight" ? 1 : -1);
  if (to) goTo(to, "node");
  return true;
}

function remember() {
  const n = state.selected;
  const hash = `#${state.view}${n ? "/" + encodeURIComponent(n.name ?? n.outs.find(v => v)?.name ?? "") : ""}`;
  try { history.replaceState(null, "", hash); } catch { /* not in this kind of window */ }
}

function recall() {
  const [view, word] = location.hash.slice(1).split(/\/(.*)/s);
  if (Object.hasOwn(models, view) && data.after) state.view = view;
  let name = null;
  try { name = word && decodeURIComponent(word); } catch { /* typed by hand */ }
  return name ? everyNode(state.view).find(n => n.name === name || n.outs[0]?.name === name) : null;
}

// ---- search

let found = [], foundAt = -1;
function search() {
  const word = $("search").value.trim().toLowerCase(), list = $("results");
  const has = s => s !== null && s !== undefined && s.toLowerCase().includes(word);
  found = word ? everyNode(state.view).filter(n => has(n.op) || has(n.name) || n.outs.some(v => v && has(v.name)) || n.ins.some(v => v?.constant && has(v.name))) : [];
  foundAt = -1;
  hits = new Set(found);
  mark();
  list.replaceChildren();
  found.slice(0, 60).forEach((n, i) => {
    const li = add(list, "li", { role: "option", id: `hit${i}`, onclick: () => { choose(i); closeSearch(); } });
    add(li, "span", {}, n.kind === NODE ? n.op + "  " : "");
    add(li, "small", {}, n.name ?? n.outs.find(v => v)?.name ?? "");
  });
  if (word) add(list, "li", { "aria-disabled": "true" }, found.length > 60 ? `${found.length} found, 60 shown` : found.length ? `${found.length} found` : "nothing found");
  list.hidden = !word;
  $("search").setAttribute("aria-expanded", !!word);
}

function choose(i) {
  foundAt = (i + found.length) % found.length;
  [...$("results").children].forEach((li, k) => li.setAttribute("aria-selected", k === foundAt));
  $("results").children[foundAt]?.scrollIntoView({ block: "nearest" });
  goTo(found[foundAt], "node");
}

function closeSearch() {
  $("results").hidden = true;
  $("search").setAttribute("aria-expanded", false);
}

// ---- the panel

const TABS = { stay: "Stay", gone: "Went", ops: "Bytes", node: "Node" };

function fillTabs() {
  const counts = { stay: conversions.length, gone: transposes.filter(t => t.fate !== "kept" && t.fate !== "outside").length };
  $("tabs").replaceChildren();
  for (const [id, title] of Object.entries(TABS)) {
    const b = add($("tabs"), "button", { role: "tab", type: "button", id: `tab-${id}`, "aria-selected": state.tab === id, "aria-controls": "body",
      onclick: () => { state.tab = id; fillPanel(); } }, title);
    if (id in counts) add(b, "span", { class: "count" }, String(counts[id]));
  }
}

function fillPanel() {
  fillTabs();
  const body = $("body");
  body.setAttribute("aria-labelledby", `tab-${state.tab}`);
  body.replaceChildren();
  ({ stay: fillStay, gone: fillGone, ops: fillOps, node: fillNode })[state.tab](body);
}

function link(parent, text, node, tab = "node") {
  if (!node) return add(parent, "span", {}, text);
  return add(parent, "button", { type: "button", onclick: e => { e.stopPropagation(); goTo(node, tab); } }, text);
}

const WHAT = { input: "comes in", output: "must go out in", captured: "is read by a body in", parameter: "is read as it is, in", fixed: "needs", form: "needs",
  considered: "was considered in" };

function demandLine(ul, d) {
  const li = add(ul, "li");
  link(li, called(d.node) || d.tensors.join(", "), find("before", d.node));
  const ways = d.ways.map(w => w.join("; ")), full = d.ways.map(w => w.map((o, i) => `${d.tensors[i]}: ${o}`).join("\n")).join("\nor\n");
  const short = ways.slice(0, 2).map(w => w.length > 48 ? w.slice(0, 46) + "…" : w);
  li.append(` ${WHAT[d.what]} `);
  add(li, "span", { class: "mono", title: full }, short.join(" or ") + (ways.length > 2 || d.more_ways ? ", …" : ""));
}

// "0,3,1,2" as --input-layout has it: adbc; "" where it is of parts of dims.
const letters = axes => /^\d+(,\d+)*$/.test(axes || "") ? axes.split(",").map(a => String.fromCharCode(97 + Number(a))).join("") : "";
const portInOrder = (side, r) => `graph ${side} ${r.tensor} in ${r.order || "another order"}` + (letters(r.axes) ? `: --${side}-layout '${r.tensor}=${letters(r.axes)}'` : "");

const REMEDY = {
  "input-layout": r => portInOrder("input", r), "output-layout": r => portInOrder("output", r),
  "target-order": r => `a target that runs ${called(r.node)} in ${r.order}`, "target-flags": r => `MatMul with transpose flags (--target fused, ort): ${called(r.node)}`,
  rewrite: r => `${called(r.node)} written in parts that take any order`, kernel: r => `another op in place of ${called(r.node)} that takes ${r.order}` };

const REASON = { pair: "Two ops want it in different orders, and everything between keeps the order:", together: "These ops together exclude any order without it:",
  choice: "Nothing forces it: the target charges more for the forms that do without it.", open: "No reason was found within the limits of the search." };

function card(parent, c) {
  const e = add(parent, "div", { class: `card ${state.lit === c ? "on" : ""}`, "data-conversion": c.id, onclick: () => light(c) });
  const h = add(e, "h3");
  add(h, "span", { class: `swatch h${heat(c.moved)}` });
  add(h, "button", { type: "button" }, c.tensor);
  add(h, "span", {}, bytes(c.moved));
  const o = add(e, "div", { class: "orders mono" });
  add(o, "span", {}, c.made);
  o.append("→");
  add(o, "span", {}, c.needed);
  add(o, "small", {}, c.shape);
  add(e, "p", { class: "why" }, REASON[c.reason]);
  const ul = add(e, "ul");
  for (const d of c.demands) demandLine(ul, d);
  for (const x of c.charges) link(add(ul, "li"), `${(x.tenths / 10).toFixed(1)} conversions: ${called(x.node)}`, find("before", x.node));
  if (c.paths.length) add(e, "div", { class: "path-line" }, "path: " + c.paths[0].steps.filter(s => !("tensor" in s)).map(s => s.name ?? s.op ?? s.output).join(" › "));
  if (c.removed_by.length) {
    add(e, "p", { class: "why" }, "Would be removed by any of");
    const list = add(e, "ul");
    for (const r of c.removed_by.slice(0, 6)) add(list, "li", {}, REMEDY[r.kind](r));
  }
  if (c.written) link(add(e, "p", { class: "why" }, "Written as "), label(c.written), c.written, "stay");
  else if (data.after) add(e, "p", { class: "why hint" }, "No Transpose in the result is this conversion alone: it is part of other movement there, or several are one.");
}

function light(c) {
  state.lit = c;
  const to = c.written ?? find(state.view, c.maker) ?? find("before", c.maker);
  if (to) goTo(to, "stay");
  else fillPanel();
}

function fillStay(body) {
  if (!conversions.length) return add(body, "p", {}, "No conversion stays: every op gets its data in the order in which it is made.");
  add(body, "p", { class: "hint" }, `${many(conversions.length, "conversion")} needed in the model ${data.after ? "that relayout writes" : "as it is"}, and why. `
    + "Click one to see it in the graph, with the ops that want it.");
  for (const c of [...conversions].sort((a, b) => b.moved - a.moved)) card(body, c);
}

const FATE = { cancelled: "Cancelled by another Transpose", absorbed: "Absorbed by the op that reads or makes it", moved: "Moved elsewhere, to a conversion that stays",
  kept: "Kept", folded: "Done in a constant", unused: "Reached no output", "not-needed": "Nothing needed it",
  outside: "Kept outside of the plan: axes of unknown number, or too many" };

function fillGone(body) {
  if (!transposes.length) return add(body, "p", {}, "The model has no Transpose that moves data.");
  if (!data.after) add(body, "p", { class: "hint" }, "The model stays as it is; this is what became of its Transposes in the plan.");
  for (const [fate, title] of Object.entries(FATE)) {
    const all = transposes.filter(t => t.fate === fate);
    if (!all.length) continue;
    add(body, "h2", {}, `${title} · ${all.length}`);
    const list = add(body, "ul", { class: "list" });
    for (const t of all) {
      const li = add(list, "li");
      link(li, called(t.node), t.found, "gone");
      if (t.with.length) add(li, "small", {}, (fate === "absorbed" ? "by " : "with ") + t.with.map(called).join(", ") + (t.form ? `, now ${t.form}` : ""));
      if (t.conversions.length && fate !== "kept") add(li, "small", {}, "conversion of " + t.conversions.map(id => conversionById.get(id)?.tensor).join(", "));
    }
  }
}

function byOp(view) {
  const sum = new Map();
  for (const n of everyNode(view)) {
    if (n.moved < 0) continue;
    const s = sum.get(n.op) ?? { bytes: 0, nodes: 0, transpose: n.transpose };
    s.bytes += n.moved;
    s.nodes++;
    sum.set(n.op, s);
  }
  return sum;
}

function fillOps(body) {
  const was = byOp("before"), now = byOp("after");
  const ops = [...new Set([...was.keys(), ...now.keys()])].map(op => ({ op, was: was.get(op), now: now.get(op) }));
  const size = o => Math.max(o.was?.bytes ?? 0, o.now?.bytes ?? 0), largest = Math.max(1, ...ops.map(size));
  add(body, "p", { class: "hint" }, "Bytes moved, by op: grey before, coloured after. Of a Transpose the bytes that it moves, of the others what they write.");
  for (const o of ops.sort((a, b) => size(b) - size(a))) {
    const e = add(body, "div", { class: "op", "data-op": o.op });
    const head = add(e, "div", { class: "head" });
    add(head, "span", {}, o.op);
    add(head, "span", {}, `${bytes(o.was?.bytes ?? 0)} (${o.was?.nodes ?? 0}) → ${bytes(o.now?.bytes ?? 0)} (${o.now?.nodes ?? 0})`);
    for (const [which, x] of [["was", o.was], ["now", o.now]]) {
      const track = add(e, "div", { class: "track" });
      if (x?.bytes) add(track, "i", { class: `${which} ${o.op === "Transpose" ? "" : "data"}` }).style.width = `${100 * x.bytes / largest}%`;
    }
  }
  if (!ops.length) add(body, "p", {}, "Nothing moves data.");
}

function row(table, title) {
  const tr = add(table, "tr");
  add(tr, "th", {}, title);
  return add(tr, "td");
}

function valueRow(table, title, v, to) {
  const td = row(table, title);
  if (!v) return td.append("–");
  link(td, v.name || "(no name)", to);
  add(td, "div", { class: "mono" }, v.type, v.constant ? " constant" : "");
}

/* The same node in the other model: its result may lie in another order there. */
function twinRow(table, n) {
  if (!data.after || n.kind !== NODE || !n.outs[0]) return;
  const other = n.sheet.view === "before" ? "after" : "before";
  const twin = find(other, { name: n.name, op: plain(n.op), output: n.outs[0].name });
  if (!twin?.outs[0] || (n.transpose && !twin)) return;
  const td = row(table, other);
  link(td, label(twin), twin);
  add(td, "div", { class: "mono" }, twin.outs[0].type, twin.outs[0].type !== n.outs[0].type ? "  — in another order" : "");
}

function fillNode(body) {
  const n = state.selected;
  if (!n) return add(body, "p", { class: "hint" }, "Click a node, or search (/), to see what it reads and makes, and in which shapes.");
  add(body, "h2", { class: "op-name" }, n.kind === NODE ? n.op : n.kind === INPUT ? "input" : n.kind === OUTPUT ? "output" : "from outside");
  const table = add(body, "table", { class: "facts" });
  if (n.name) add(row(table, "name"), "span", { id: "node-name" }, n.name);
  if (n.attrs) add(row(table, "attributes"), "span", { class: "mono" }, n.attrs);
  n.ins.forEach((v, i) => valueRow(table, n.ins.length > 1 ? `input ${i}` : "input", v, v?.maker));
  n.outs.forEach((v, i) => {
    valueRow(table, n.outs.length > 1 ? `output ${i}` : "output", v, null);
    for (const r of v?.readers.slice(0, 8) ?? []) link(add(table.lastChild.lastChild, "div", {}, "read by "), label(r), r);
    if (v?.readers.length > 8) add(table.lastChild.lastChild, "div", {}, `and ${v.readers.length - 8} more`);
  });
  if (n.moved >= 0) row(table, "bytes moved").append(bytes(n.moved) + ` (${n.moved.toLocaleString("en")})`);
  for (const b of n.bodies) link(row(table, b.attr), "show", models[n.sheet.view][b.sheet]?.nodes[0]);
  twinRow(table, n);
  const t = n.sheet.view === "before" ? fateOf.get(n) : null, c = conversionOf.get(n);
  if (t) row(table, "what became of it").append(FATE[t.fate] + (t.with.length ? ": " + t.with.map(called).join(", ") : ""));
  if (!c) return;
  add(body, "h2", {}, "Why it stays");
  card(body, c);
}

// ---- head

function figure(title, was, now, small, good) {
  const div = add($("figures"), "div");
  add(div, "dt", {}, title);
  const dd = add(div, "dd");
  add(dd, "span", { class: "was" }, String(was));
  dd.append(" → ");
  add(dd, "span", { class: good ? "less" : "" }, String(now));
  if (small) add(div, "dd", { class: `small ${small.startsWith("proved") ? "proved" : ""}` }, small);
}

function fillHead() {
  const r = data.report, was = r.counts.before, now = r.counts.after, c = r.conversions;
  $("model").textContent = r.input.path.split("/").pop();
  $("model").title = r.input.path;
  $("how").textContent = `target ${r.target}, ${{ nodes: "fewest conversions", bytes: "fewest bytes", time: "least time" }[r.objective]}` + (r.changed ? "" : " — nothing to improve: the model stays as it is");
  const proof = { optimal: c.lower_bound < c.after ? `at least ${c.lower_bound}; the rest is proved quicker` : `proved minimum: ${c.lower_bound}`, gap: `at least ${c.lower_bound} (proved)`, unchecked: "minimum not proved" }[c.proof];
  figure("Conversions needed", c.before, c.after, proof, c.after < c.before);
  const saved = was.moved_bytes ? Math.floor(1000 * (1 - now.moved_bytes / was.moved_bytes)) / 10 : 0;
  figure("Transposes that move data", was.moving, now.moving, `of ${was.transposes} → ${now.transposes} Transposes`, now.moving < was.moving);
  figure("Bytes they move", bytes(was.moved_bytes), bytes(now.moved_bytes), saved > 0 ? `${saved > 99 ? saved : Math.floor(saved)} % less` : "", now.moved_bytes < was.moved_bytes);
  figure("All nodes", was.nodes, now.nodes, "", now.nodes < was.nodes);
}

function fillSheets() {
  const list = $("sheets");
  list.replaceChildren();
  models[state.view].forEach((s, i) => add(list, "option", { value: i, selected: i === state.sheet }, s.title));
  list.hidden = models[state.view].length < 2;
}

function fillLegend() {
  const legend = $("legend");
  if (!most) return void (legend.hidden = true);
  add(legend, "div", {}, `bytes moved by a Transpose, up to ${bytes(most)}`);
  const scale = add(legend, "div", { class: "scale" });
  for (let h = 0; h < 5; h++) add(scale, "i", { class: `h${h}` });
  add(scale, "i", { class: "data" });
  scale.append(" moves data, too");
}

const KEYS = [["Space, t", "before or after"], ["n, p", "next, previous move"], ["/", "search; Enter: next, Shift+Enter: previous"],
  ["arrows", "from node to node; with nothing chosen: pan"], ["Shift + arrows", "pan"], ["+  −  0", "zoom; the whole graph"], ["1 – 4", "stay, went, bytes, node"],
  ["d", "dark or light"], ["Esc", "nothing chosen"], ["?", "this"]];

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

// ---- events

function onKey(e) {
  const typing = e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement;
  if (e.key === "Escape") {
    if (typing) { $("search").value = ""; search(); $("graph").focus(); }
    state.lit = null;
    return select(null);
  }
  if (typing || e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
  const arrows = { ArrowUp: [0, 90], ArrowDown: [0, -90], ArrowLeft: [90, 0], ArrowRight: [-90, 0] };
  const onButton = e.target instanceof HTMLButtonElement;
  if (e.key in arrows && !$("panel").contains(e.target)) {
    if (e.shiftKey || !walk(e.key)) pan(...arrows[e.key]);
  } else if ((e.key === " " && !onButton) || e.key === "t") { if (data.after) setView(state.view === "after" ? "before" : "after"); }
  else if (e.key === "n") step(1);
  else if (e.key === "p") step(-1);
  else if (e.key === "/") $("search").focus();
  else if (e.key === "+" || e.key === "=") zoomAt(1.25);
  else if (e.key === "-") zoomAt(0.8);
  else if (e.key === "0") fit();
  else if (e.key === "d") setTheme(document.documentElement.dataset.theme !== "dark");
  else if (e.key === "?") $("keys").showModal();
  else if ("1234".includes(e.key)) { state.tab = Object.keys(TABS)[e.key - 1]; fillPanel(); }
  else return;
  e.preventDefault();
}

function listenToPointers() {
  const graph = $("graph"), down = new Map();
  let moved = 0, target = null;
  graph.addEventListener("pointerdown", e => {
    down.set(e.pointerId, [e.clientX, e.clientY]);
    target = e.target.closest(".n");
    moved = 0;
    graph.setPointerCapture(e.pointerId);
  });
  graph.addEventListener("pointermove", e => {
    const last = down.get(e.pointerId);
    if (!last) return;
    const [dx, dy] = [e.clientX - last[0], e.clientY - last[1]];
    const other = [...down].find(([id]) => id !== e.pointerId)?.[1];
    if (other) { // a pinch
      const box = graph.getBoundingClientRect(), far = (x, y) => Math.hypot(x - other[0], y - other[1]);
      zoomAt(far(e.clientX, e.clientY) / Math.max(1, far(...last)), (e.clientX + other[0]) / 2 - box.left, (e.clientY + other[1]) / 2 - box.top);
    }
    moved += Math.abs(dx) + Math.abs(dy);
    if (moved > 4) graph.classList.add("drags");
    if (moved > 4) pan(other ? dx / 2 : dx, other ? dy / 2 : dy);
    down.set(e.pointerId, [e.clientX, e.clientY]);
  });
  const up = e => {
    if (!down.delete(e.pointerId)) return;
    graph.classList.remove("drags");
    if (moved <= 4 && e.type === "pointerup") select(target ? sheetNow().nodes[+target.dataset.id] : null);
  };
  graph.addEventListener("pointerup", up);
  graph.addEventListener("pointercancel", up);
  graph.addEventListener("wheel", e => {
    e.preventDefault();
    const box = graph.getBoundingClientRect(), scale = e.deltaMode === 1 ? 20 : 1;
    if (e.ctrlKey || e.metaKey) zoomAt(Math.exp(-e.deltaY * scale * 0.004), e.clientX - box.left, e.clientY - box.top);
    else pan(-e.deltaX * scale, -e.deltaY * scale);
  }, { passive: false });
}

function listenToRuler() {
  const jump = e => {
    const box = $("ruler").getBoundingClientRect(), view = e.clientX - box.left < 4 + LANE + 2 ? "before" : "after";
    if (data.after && view !== state.view) setView(view);
    const s = sheetNow(), at = (e.clientY - box.top - RULER_TOP) / rulerHeight() * s.height, { w, h } = canvasSize();
    const near = s.nodes.reduce((a, b) => Math.abs(b.y - at) < Math.abs(a.y - at) ? b : a);
    state.k = Math.max(state.k, 0.6);
    state.x = w / 2 - (near.x + near.w / 2) * state.k;
    state.y = h / 2 - at * state.k;
    show();
  };
  $("ruler").addEventListener("pointerdown", e => { $("ruler").setPointerCapture(e.pointerId); jump(e); });
  $("ruler").addEventListener("pointermove", e => { if (e.buttons) jump(e); });
}

function listen() {
  document.addEventListener("keydown", onKey);
  listenToPointers();
  listenToRuler();
  for (const b of $("views").children) b.addEventListener("click", () => setView(b.dataset.view));
  $("sheets").addEventListener("change", e => { setView(state.view, +e.target.value); start(); });
  $("next").addEventListener("click", () => step(1));
  $("previous").addEventListener("click", () => step(-1));
  $("in").addEventListener("click", () => zoomAt(1.25));
  $("out").addEventListener("click", () => zoomAt(0.8));
  $("fit").addEventListener("click", fit);
  $("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
  $("keys-button").addEventListener("click", () => $("keys").showModal());
  $("search").addEventListener("input", search);
  $("search").addEventListener("focus", () => { if ($("search").value) $("results").hidden = false; });
  $("search").addEventListener("blur", () => setTimeout(closeSearch, 200));
  $("search").addEventListener("keydown", e => {
    if (!found.length || !["Enter", "ArrowDown", "ArrowUp"].includes(e.key)) return;
    e.preventDefault();
    choose(foundAt + (e.key === "ArrowUp" || e.shiftKey ? -1 : 1));
  });
  new ResizeObserver(() => { drawRuler(); show(); }).observe($("canvas"));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
setTheme(dark.matches);
dark.addEventListener("change", e => setTheme(e.matches));
for (const [key, what] of KEYS) { add(add($("keylist"), "dt"), "kbd", {}, key); add($("keylist"), "dd", {}, what); }
const wanted = recall();
fillHead();
fillLegend();
fillSheets();
for (const b of $("views").children) {
  b.disabled = !data.after && b.dataset.view === "after";
  b.setAttribute("aria-checked", b.dataset.view === state.view);
}
draw();
start();
fillPanel();
sayPlace();
listen();
if (wanted) goTo(wanted);
document.documentElement.dataset.ready = "";
