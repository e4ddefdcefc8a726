// The picture: one SVG that is drawn again whenever something has changed.

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
