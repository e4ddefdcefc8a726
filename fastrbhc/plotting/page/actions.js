// What the reader does: cuts, selects, zooms, collapses, with pointer and keys.

// ---- what changes --------------------------------------------------------------------------------

function cutAt(lambda) {
  const low = data.below ?? floor, high = limit < Infinity ? limit : unscaled(ends()[1]);
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
  // Trees that are not drawn have clusters of their own.
  byId("code").textContent = data.undrawn
    ? `tree.cut(threshold=${state.lambda})` : `tree.cut(n_clusters=${k})`;
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
  const span = Math.min(Math.max(to - from, Math.min(4, width)), width);
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
