// An interactive tree. Nodes are numbered: first the tips, from left to right, then the merges,
// children before parents. Nothing is loaded from elsewhere, and text is never read as HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const K = data.size.length - data.pairs.length; // tips
const N = data.size.length;
const NONE = -1;

const MARGIN = { left: 74, right: 14, top: 14, bottom: 40 };
const LETTERS = 22; // of a name below the tree
const CLOSE = 14; // pixels from a branch within which the pointer means it

// ---- the tree ------------------------------------------------------------------------------------

const parent = new Int32Array(N).fill(NONE);
data.pairs.forEach(([a, b], i) => { parent[a] = parent[b] = K + i; });
const roots = [...Array(N).keys()].filter((v) => parent[v] === NONE);
// Tips below each node: a range.
const first = new Int32Array(N), last = new Int32Array(N);
for (let v = 0; v < N; v++) {
  if (v < K) first[v] = last[v] = v;
  else {
    const [a, b] = data.pairs[v - K];
    first[v] = Math.min(first[a], first[b]);
    last[v] = Math.max(last[a], last[b]);
  }
}
const childrenOf = (v) =>
  v < K ? [] : [...data.pairs[v - K]].sort((a, b) => first[a] - first[b]);

// Levels of the merges that can be undone, the highest first.
const levels = [...Array(N - K).keys()].map((i) => data.level[K + i]).sort((a, b) => b - a);
const floor = Math.min(0, ...levels);
const top = levels.length ? levels[0] : 1;
const limit = data.threshold === null ? Infinity : data.threshold;

/** The λ that gives this many clusters, between two merges: null if ties leave no room for one. */
function lambdaFor(count) {
  const undone = count - roots.length;
  const above = undone > 0 ? levels[undone - 1] : Math.min(limit, 1.12 * top || 1);
  const below = undone < levels.length ? levels[undone] : data.below ?? floor;
  if (undone < 0 || undone > levels.length || !(above > below)) return null;
  return unscaled(0.5 * (scaled(above) + scaled(below)));
}

/** The clusters at λ, as nodes: numbered as tree.cut numbers them, the heaviest first. */
function clustersAt(lambda) {
  const found = [];
  for (let v = 0; v < N; v++) {
    const whole = v < K || data.level[v] < lambda;
    if (whole && (parent[v] === NONE || !(data.level[parent[v]] < lambda))) found.push(v);
  }
  const inner = (v) => (data.size[v] > 1 ? data.level[v] : 0);
  return found.sort((a, b) =>
    data.weight[b] - data.weight[a] || inner(a) - inner(b) || data.row[a] - data.row[b]);
}

// ---- state ---------------------------------------------------------------------------------------

const state = {
  lambda: 0, clusters: [], scale: data.scale, folded: new Set(), selected: NONE,
  from: 0, to: 1, // what is seen of the axis of leaves
};
let place = new Float64Array(N); // along the axis of leaves
let half = new Float64Array(N); // half of the width of what is below
let visible = [];
let width = 0; // of all leaves

/** Give a place to everything that is not inside a collapsed node. */
function arrange() {
  visible = [];
  width = 0;
  const begin = new Float64Array(N);
  const stack = roots.slice().sort((a, b) => first[b] - first[a]).map((v) => [v, false]);
  while (stack.length) {
    const [v, done] = stack.pop();
    if (done) {
      const [a, b] = data.pairs[v - K];
      place[v] = 0.5 * (place[a] + place[b]);
      half[v] = 0.5 * (width - begin[v]);
      visible.push(v);
    } else if (v < K || state.folded.has(v)) {
      place[v] = width + 0.5;
      half[v] = 0.5;
      width += 1;
      visible.push(v);
    } else {
      begin[v] = width;
      stack.push([v, true]);
      for (const child of childrenOf(v).reverse()) stack.push([child, false]);
    }
  }
}

function scaled(value) {
  if (state.scale === "sqrt") return Math.sign(value) * Math.sqrt(Math.abs(value));
  if (state.scale === "log") return Math.log(Math.max(value, lowest));
  return value;
}
function unscaled(value) {
  if (state.scale === "sqrt") return Math.sign(value) * value * value;
  return state.scale === "log" ? Math.exp(value) : value;
}
const positive = data.level.filter((level, v) => level > 0 && data.size[v] > 1);
const lowest = positive.length ? Math.min(...positive) / 1.6 : 1;

const svg = document.getElementById("tree");
const byId = (id) => document.getElementById(id);
const box = { width: 800, height: 400 };
const xOf = (where) =>
  MARGIN.left + (where - state.from) / (state.to - state.from) * (box.width - MARGIN.left - MARGIN.right);
const whereOf = (x) =>
  state.from + (x - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right) * (state.to - state.from);
function ends() {
  const low = scaled(state.scale === "log" ? lowest : floor);
  const highest = limit < Infinity ? Math.max(limit, top) : top;
  const high = scaled(highest);
  return [low, low + 1.08 * (high - low || 1)];
}
function yOf(level) {
  const [low, high] = ends();
  const share = (Math.max(scaled(level), low) - low) / (high - low);
  return box.height - MARGIN.bottom - share * (box.height - MARGIN.bottom - MARGIN.top);
}
function levelOf(y) {
  const [low, high] = ends();
  const share = (box.height - MARGIN.bottom - y) / (box.height - MARGIN.bottom - MARGIN.top);
  return unscaled(low + share * (high - low));
}

// ---- words ---------------------------------------------------------------------------------------

function shown(value) {
  const size = Math.abs(value);
  if (size >= 1e3 && size < 1e7) return Math.round(value).toLocaleString("en");
  if (value !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(3);
  return String(Number(value.toPrecision(4)));
}
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** What is known of a node: pairs of a word and a text. */
function facts(v) {
  const lines = [];
  const number = clusterOf(v);
  if (data.name[v] !== null) lines.push(["row", data.name[v]]);
  else lines.push(["node", String(data.node[v])]);
  lines.push(["rows", `${data.size[v].toLocaleString("en")} (${share(data.size[v] / data.rows)})`]);
  if (data.weighted) lines.push(["weight", shown(data.weight[v])]);
  if (data.size[v] > 1) {
    lines.push(["height", shown(data.height[v])]);
    if (data.level[v] > data.height[v]) lines.push(["level", shown(data.level[v])]);
  }
  if (number !== NONE) lines.push(["cluster", String(number)]);
  if (data.more) {
    if (data.more[v]) lines.push(["more", data.more[v]]);
    if (data.less[v]) lines.push(["less", data.less[v]]);
  }
  if (data.labels) lines.push(["labels", data.labels[v]]);
  return lines;
}
const share = (part) => (part >= 0.0995 ? `${(100 * part).toFixed(0)} %` : `${Number((100 * part).toPrecision(2))} %`);

/** The cluster that a node is, or belongs to; NONE above the cut. */
let owner = new Int32Array(N).fill(NONE);
function clusterOf(v) { return owner[v]; }

function assign() {
  owner = new Int32Array(N).fill(NONE);
  state.clusters.forEach((v, number) => { owner[v] = number; });
  for (let v = N - 1; v >= 0; v--) {
    if (parent[v] !== NONE && owner[parent[v]] !== NONE) owner[v] = owner[parent[v]];
  }
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
/** The colour of a node's cluster, for "lines" or for "text". */
function colour(v, kind = "lines") {
  if (owner[v] === NONE) return "var(--above)";
  const hues = data.hues[isDark() ? "dark" : "light"][kind];
  return hues[owner[v] % hues.length];
}

// ---- drawing -------------------------------------------------------------------------------------

function element(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const ROUND = [1, 1.5, 2, 3, 4, 5, 6, 8];
function ticks() {
  const [low, high] = ends();
  if (state.scale === "log") {
    const found = [];
    for (let e = Math.ceil(low / Math.LN10); e <= high / Math.LN10; e++) found.push(10 ** e);
    return found.filter((_, i) => i % Math.ceil(found.length / 6) === 0);
  }
  const found = [];
  for (let i = 0; i <= 5; i++) {
    const value = unscaled(low + i / 5 * (high - low));
    const unit = 10 ** Math.floor(Math.log10(Math.abs(value) || 1));
    const size = Math.abs(value) / unit;
    const round = Math.sign(value) * unit * Math.max(...ROUND.filter((number) => number <= size), 0);
    if (!found.includes(round) && round >= floor) found.push(round);
  }
  return found;
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => { waiting = false; draw(); }, 0); // all that one event changes is drawn at once
}

function draw() {
  const size = svg.getBoundingClientRect();
  box.width = size.width || 800;
  box.height = size.height || 400;
  const seen = visible.filter((v) => {
    const [from, to] = spanOf(v);
    return to >= state.from && from <= state.to;
  });
  const names = namesOf(seen);
  MARGIN.bottom = names.length ? 30 + Math.max(...names.map(({ text, upright }) => upright ? 14 : 6.4 * text.length)) : 30;
  const bottom = box.height - MARGIN.bottom;
  const parts = [];
  // The axis of the heights.
  for (const tick of ticks()) {
    const y = yOf(tick);
    parts.push(element("line", { class: "tick", x1: MARGIN.left - 12, x2: MARGIN.left - 7, y1: y, y2: y }));
    parts.push(element("text", { class: "quiet", x: MARGIN.left - 15, y: y + 4, "text-anchor": "end" }, shown(tick)));
  }
  parts.push(element("line", { class: "axis", x1: MARGIN.left - 7, x2: MARGIN.left - 7, y1: MARGIN.top, y2: bottom }));
  const words = { sqrt: "height (√ scale)", log: "height (log scale)", linear: "height" }[state.scale];
  parts.push(element("text", {
    class: "quiet", "text-anchor": "middle",
    transform: `translate(12 ${0.5 * (MARGIN.top + bottom)}) rotate(-90)`,
  }, words));
  const view = element("svg", {
    x: MARGIN.left - 4, y: 0, width: box.width - MARGIN.left - MARGIN.right + 8, height: box.height,
    viewBox: `${MARGIN.left - 4} 0 ${box.width - MARGIN.left - MARGIN.right + 8} ${box.height}`,
  });
  if (state.selected !== NONE && visible.includes(state.selected)) {
    const v = state.selected;
    const left = xOf(spanOf(v)[0]), right = xOf(spanOf(v)[1]);
    view.append(element("rect", {
      class: "band", x: left, width: Math.max(right - left, 3), y: yOf(data.level[v]) - 6,
      height: bottom - yOf(data.level[v]) + 10,
    }));
  }
  for (const v of seen) {
    const x = xOf(place[v]), y = yOf(data.size[v] > 1 ? data.level[v] : floor);
    const up = parent[v] === NONE
      ? (limit < Infinity ? yOf(limit) : MARGIN.top) : yOf(data.level[parent[v]]);
    let path = `M${x.toFixed(1)} ${up.toFixed(1)}V${y.toFixed(1)}`;
    if (v >= K && !state.folded.has(v)) {
      const [a, b] = data.pairs[v - K];
      path += `M${xOf(place[a]).toFixed(1)} ${y.toFixed(1)}H${xOf(place[b]).toFixed(1)}`;
    } else if (data.size[v] > 1) {
      const side = Math.min(0.42 * (xOf(1) - xOf(0)), 14);
      view.append(element("path", {
        class: "fold", fill: colour(v), stroke: colour(v), "data-fold": data.node[v],
        d: `M${(x - side).toFixed(1)} ${bottom}L${x.toFixed(1)} ${y.toFixed(1)}L${(x + side).toFixed(1)} ${bottom}Z`,
      }));
    }
    view.append(element("path", {
      class: "branch", d: path, stroke: colour(v), "data-node": data.node[v], "data-cluster": owner[v],
    }));
  }
  for (const { v, text, upright } of names) {
    const x = xOf(place[v]);
    view.append(element("text", upright
      ? { x, y: bottom + 15, "text-anchor": "middle" }
      : { transform: `translate(${x + 4} ${bottom + 6}) rotate(-90)`, "text-anchor": "end" }, text));
  }
  numberClusters(view);
  parts.push(view);
  const y = yOf(state.lambda);
  parts.push(element("line", { class: "cut", x1: MARGIN.left - 4, x2: box.width - MARGIN.right, y1: y, y2: y }));
  parts.push(element("text", { class: "cut-text", x: box.width - MARGIN.right - 2, y: y - 5 }, cutText()));
  parts.push(element("line", {
    class: "grip", id: "grip", x1: MARGIN.left - 4, x2: box.width - MARGIN.right, y1: y, y2: y,
    role: "slider", "aria-label": "Cut", "aria-valuemin": roots.length, "aria-valuemax": K,
    "aria-valuenow": state.clusters.length, "aria-valuetext": cutText(),
  }));
  svg.replaceChildren(...parts);
}

/** The part of the axis of leaves that a node covers. */
function spanOf(v) {
  if (v < K || state.folded.has(v)) return [place[v] - 0.5, place[v] + 0.5];
  return [begins(v), begins(v) + 2 * half[v]];
}
function begins(v) {
  while (v >= K && !state.folded.has(v)) v = childrenOf(v)[0];
  return place[v] - 0.5;
}

/** The texts below the leaves, if there is room for them. */
function namesOf(seen) {
  const apart = xOf(1) - xOf(0);
  if (apart < 10) return [];
  const named = seen.filter((v) => v < K || state.folded.has(v)).map((v) => {
    const text = data.name[v] ?? `(${data.size[v].toLocaleString("en")})`;
    return { v, text: text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text };
  });
  const longest = Math.max(0, ...named.map(({ text }) => text.length));
  return named.map((one) => ({ ...one, upright: apart > 7 * longest + 6 }));
}

function numberClusters(view) {
  state.clusters.forEach((v, number) => {
    const shownAt = visibleAncestor(v);
    if (shownAt !== v) return;
    const [from, to] = spanOf(v).map(xOf);
    if (to - from < 6 + 7 * String(number).length || to < MARGIN.left || from > box.width) return;
    const text = element("text", { class: "number", x: 0.5 * (from + to), y: box.height - 6 }, number);
    text.style.fill = colour(v, "text");
    view.append(text);
  });
}
function visibleAncestor(v) {
  let found = v;
  for (let node = v; node !== NONE; node = parent[node]) if (state.folded.has(node)) found = node;
  return found;
}

function cutText() {
  return `${plural(state.clusters.length, "cluster")}, λ = ${shown(state.lambda)}`;
}

// ---- what changes --------------------------------------------------------------------------------

const least = () => (data.below === null ? floor : data.below);
function cutAt(lambda) {
  const low = least(), high = limit < Infinity ? limit : unscaled(ends()[1]);
  // Merges below what is drawn are never undone: λ stays above all of them.
  const lowEnd = low + 1e-9 * Math.max(Math.abs(low), 1e-300);
  state.lambda = Math.min(Math.max(lambda, lowEnd), high);
  state.clusters = clustersAt(state.lambda);
  assign();
  tell();
  redraw();
}
function cutInto(count) {
  const step = count > state.clusters.length ? 1 : -1;
  for (let k = count; k >= roots.length && k <= K; k += step) {
    const lambda = lambdaFor(k);
    if (lambda !== null) { cutAt(lambda); return; }
  }
  tell();
}

function tell() {
  const k = state.clusters.length;
  byId("count").value = k;
  byId("code").textContent = `tree.cut(n_clusters=${k})`;
  const table = byId("clusters");
  const head = document.createElement("tr");
  const columns = ["cluster", "rows", data.more ? "differs by" : data.labels ? "labels" : "height"];
  columns.forEach((name, i) => {
    const cell = document.createElement("th");
    cell.textContent = name;
    if (i === 1) cell.className = "number";
    head.append(cell);
  });
  const rows = state.clusters.slice(0, 60).map((v, number) => {
    const row = document.createElement("tr");
    const cells = [0, 1, 2].map(() => document.createElement("td"));
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = colour(v);
    const button = document.createElement("button");
    button.textContent = number;
    button.addEventListener("click", () => { select(v); reveal(v); });
    cells[0].append(swatch, button);
    cells[1].textContent = data.size[v].toLocaleString("en");
    cells[1].className = "number";
    const differs = data.more ? [data.more[v], data.less[v]].filter((text) => text).join(", ") : "";
    cells[2].textContent = data.more ? differs : data.labels ? data.labels[v] : shown(data.height[v]);
    row.append(...cells);
    return row;
  });
  table.replaceChildren(head, ...rows);
  if (k > 60) {
    const row = document.createElement("tr"), cell = document.createElement("td");
    cell.colSpan = 3;
    cell.textContent = `and ${k - 60} more`;
    row.append(cell);
    table.append(row);
  }
  describe(state.selected, byId("selected"));
}

function describe(v, list) {
  const parts = [];
  for (const [name, text] of v === NONE ? [["", "nothing: click a branch"]] : facts(v)) {
    const term = document.createElement("dt"), words = document.createElement("dd");
    term.textContent = name;
    words.textContent = text;
    parts.push(term, words);
  }
  list.replaceChildren(...parts);
}

function select(v) {
  state.selected = v;
  describe(v, byId("selected"));
  redraw();
}

/** Move the view so that a node is seen. */
function reveal(v) {
  const [from, to] = spanOf(visibleAncestor(v));
  const seen = state.to - state.from;
  if (to - from > seen) look(from - 0.05 * (to - from), to + 0.05 * (to - from));
  else if (from < state.from) look(from, from + seen);
  else if (to > state.to) look(to - seen, to);
}

function look(from, to) {
  const least = Math.min(4, width), span = Math.min(Math.max(to - from, least), width);
  const middle = 0.5 * (from + to);
  state.from = Math.min(Math.max(middle - 0.5 * span, 0), width - span);
  state.to = state.from + span;
  redraw();
}
function zoom(factor, around = 0.5 * (state.from + state.to)) {
  look(around + (state.from - around) * factor, around + (state.to - around) * factor);
}

function toggle(v) {
  if (v < K || v === NONE) return;
  const [from, to] = [state.from / width, state.to / width];
  if (!state.folded.delete(v)) state.folded.add(v);
  const isWhole = from <= 0 && to >= 1;
  arrange();
  if (isWhole) look(0, width);
  else look(from * width, to * width);
  reveal(v);
}

// ---- pointer and keys ----------------------------------------------------------------------------

/** The node whose branch or bar is next to a point. */
function nodeAt(x, y) {
  let best = NONE, nearest = CLOSE;
  for (const v of visible) {
    const level = yOf(data.size[v] > 1 ? data.level[v] : floor);
    const up = parent[v] === NONE ? MARGIN.top : yOf(data.level[parent[v]]);
    const alongBranch = y >= up - 2 && y <= level + 2;
    let distance = alongBranch ? Math.abs(x - xOf(place[v])) : Infinity;
    if (v >= K && !state.folded.has(v)) {
      const [a, b] = data.pairs[v - K].map((child) => xOf(place[child]));
      if (x >= Math.min(a, b) && x <= Math.max(a, b)) distance = Math.min(distance, Math.abs(y - level));
    } else if (y > level && y <= box.height - MARGIN.bottom + 40) {
      distance = Math.min(distance, Math.abs(x - xOf(place[v])));
    }
    if (distance < nearest) { nearest = distance; best = v; }
  }
  return best;
}

const tip = byId("tip");
function showTip(v, event) {
  if (v === NONE) { tip.hidden = true; return; }
  const list = document.createElement("dl");
  describe(v, list);
  tip.replaceChildren(list);
  tip.hidden = false;
  const size = tip.getBoundingClientRect();
  const x = event.clientX + 14 + size.width > innerWidth ? event.clientX - 14 - size.width : event.clientX + 14;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - size.height - 4)}px`;
}

let drag = null;
function inside(event) {
  const frame = svg.getBoundingClientRect();
  return [event.clientX - frame.left, event.clientY - frame.top];
}
svg.addEventListener("pointerdown", (event) => {
  const [x, y] = inside(event);
  const onLine = Math.abs(y - yOf(state.lambda)) < 9;
  drag = { line: onLine, x, from: state.from, to: state.to, moved: false };
  try { svg.setPointerCapture(event.pointerId); } catch { /* a pointer that is no more */ }
});
svg.addEventListener("pointermove", (event) => {
  const [x, y] = inside(event);
  if (!drag) { showTip(nodeAt(x, y), event); return; }
  tip.hidden = true;
  drag.moved = drag.moved || Math.abs(x - drag.x) > 3 || drag.line;
  if (drag.line) cutAt(levelOf(y));
  else if (drag.moved) {
    const shift = (drag.x - x) / (box.width - MARGIN.left - MARGIN.right) * (drag.to - drag.from);
    look(drag.from + shift, drag.to + shift);
  }
});
svg.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) select(nodeAt(...inside(event)));
  drag = null;
});
svg.addEventListener("pointercancel", () => { drag = null; });
svg.addEventListener("pointerleave", () => { tip.hidden = true; });
svg.addEventListener("dblclick", (event) => toggle(nodeAt(...inside(event))));
svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(0.0015 * event.deltaY), whereOf(inside(event)[0]));
}, { passive: false });

/** The node next to a visible one, at the same depth if there is one. */
function beside(v, step) {
  if (parent[v] === NONE) {
    const sorted = roots.slice().sort((a, b) => first[a] - first[b]);
    return sorted[sorted.indexOf(v) + step] ?? v;
  }
  const pair = childrenOf(parent[v]);
  const other = pair[pair.indexOf(v) + step];
  if (other !== undefined) return other;
  const above = beside(parent[v], step);
  if (above === parent[v]) return v;
  if (above < K || state.folded.has(above)) return above;
  return childrenOf(above)[step > 0 ? 0 : 1];
}

svg.addEventListener("keydown", (event) => {
  const v = state.selected;
  const move = (to) => { select(to); reveal(to); };
  const starts = { ArrowUp: 1, ArrowDown: 1, ArrowLeft: 1, ArrowRight: 1 };
  if (starts[event.key] && v === NONE) move(roots[0]);
  else if (event.key === "ArrowUp") move(parent[v] === NONE ? v : parent[v]);
  else if (event.key === "ArrowDown") move(v < K || state.folded.has(v) ? v : childrenOf(v)[0]);
  else if (event.key === "ArrowLeft") move(beside(v, -1));
  else if (event.key === "ArrowRight") move(beside(v, 1));
  else if (event.key === "Enter" || event.key === " ") toggle(v);
  else if (event.key === "PageDown") cutInto(state.clusters.length + 1);
  else if (event.key === "PageUp") cutInto(state.clusters.length - 1);
  else if (event.key === "+" || event.key === "=") zoom(0.7);
  else if (event.key === "-") zoom(1 / 0.7);
  else if (event.key === "0") look(0, width);
  else if (event.key === "Escape") select(NONE);
  else return;
  event.preventDefault();
});
svg.addEventListener("focus", () => { if (state.selected === NONE) select(roots[0]); });

byId("fewer").addEventListener("click", () => cutInto(state.clusters.length - 1));
byId("more").addEventListener("click", () => cutInto(state.clusters.length + 1));
byId("count").addEventListener("change", (event) => {
  cutInto(Math.min(Math.max(Math.round(Number(event.target.value)) || 1, roots.length), K));
});
byId("scale").addEventListener("change", (event) => { state.scale = event.target.value; redraw(); });
byId("in").addEventListener("click", () => zoom(0.6));
byId("out").addEventListener("click", () => zoom(1 / 0.6));
byId("all").addEventListener("click", () => look(0, width));
byId("unfold").addEventListener("click", () => { state.folded.clear(); arrange(); look(0, width); });
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  tell();
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { tell(); redraw(); });
new ResizeObserver(redraw).observe(svg);

byId("summary").textContent = data.summary;
byId("scale").value = state.scale;
byId("count").min = roots.length;
byId("count").max = K;
if (floor < 0) byId("scale").querySelector("option[value=log]").disabled = true;
arrange();
look(0, width);
if (data.cut.lambda !== null) cutAt(data.cut.lambda);
else cutInto(data.cut.count);
draw();
