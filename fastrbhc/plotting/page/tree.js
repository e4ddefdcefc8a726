// An interactive tree. Nodes are numbered: first the tips, from left to right, then the merges,
// children before parents. Nothing is loaded from elsewhere, and text is never read as HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const K = data.size.length - data.pairs.length; // tips
const N = data.size.length;
const NONE = -1;

const MARGIN = { left: 88, right: 14, top: 14, bottom: 40 };
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
const top = levels.length ? levels[0] : 1;
// Where leaves are drawn: at 0, or somewhat below heights that are negative, such as log odds.
const least = Math.min(0, ...levels);
const floor = least < 0 ? least - 0.1 * (top - least) : 0;
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
  if (value !== 0 && (size < 1e-4 || size >= 1e7)) return Number(value.toPrecision(4)).toExponential();
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
