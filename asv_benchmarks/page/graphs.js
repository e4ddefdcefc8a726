"use strict";
// Graphs as SVG text. Nothing here knows about benchmarks.

const COLOURS = [
  "#2f6fdb",
  "#e07b00",
  "#1a9850",
  "#c23b7f",
  "#7a52c7",
  "#0d9ba8",
  "#b5542a",
  "#7b8798",
  "#a39a00",
  "#d0342c",
];
const DASHES = ["", "7 4", "2 3", "11 3 2 3"];
const MARKERS = ["circle", "square", "triangle", "diamond"];

function escaped(text) {
  return String(text).replace(
    /[&<>"']/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c],
  );
}

// Three digits, without the zeros that say nothing.
function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
  const text = size >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString();
  return text;
}

const SCALES = {
  seconds: [
    [1e-9, "ns"],
    [1e-6, "µs"],
    [1e-3, "ms"],
    [1, "s"],
    [60, "min"],
  ],
  bytes: [
    [1, "B"],
    [1e3, "kB"],
    [1e6, "MB"],
    [1e9, "GB"],
  ],
};

function formatted(value, unit) {
  if (value === null || value === undefined) return "–";
  const scale = SCALES[unit];
  if (!scale || value === 0) return digits(value);
  let best = scale[0];
  for (const step of scale) if (Math.abs(value) >= step[0] * 0.9995) best = step;
  return digits(value / best[0]) + " " + best[1];
}

function shortNumber(value) {
  for (const [size, letter] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ])
    if (value >= size) return digits(value / size) + letter;
  return digits(value);
}

// Round values between two others: 1, 2 and 5 times powers of ten, or powers alone if those are many.
function logTicks(low, high) {
  const ticks = [];
  const first = Math.floor(Math.log10(low)),
    last = Math.ceil(Math.log10(high));
  const decades = last - first;
  const steps = decades > 8 ? [1] : decades > 3 ? [1] : decades > 1 ? [1, 3] : [1, 2, 5];
  for (let power = first; power <= last; power++)
    for (const step of steps) {
      const tick = step * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  return ticks.length >= 2 ? ticks : linearTicks(low, high);
}

function linearTicks(low, high) {
  const rough = (high - low) / 5.5 || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
    ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

function marker(shape, x, y, r, attributes) {
  if (shape === "circle") return `<circle cx="${x}" cy="${y}" r="${r}" ${attributes}/>`;
  const at = (dx, dy) => `${(Number(x) + dx).toFixed(2)},${(Number(y) + dy).toFixed(2)}`;
  const corners = {
    square: [
      [-r, -r],
      [r, -r],
      [r, r],
      [-r, r],
    ],
    triangle: [
      [0, -1.2 * r],
      [1.15 * r, 0.9 * r],
      [-1.15 * r, 0.9 * r],
    ],
    diamond: [
      [0, -1.35 * r],
      [1.35 * r, 0],
      [0, 1.35 * r],
      [-1.35 * r, 0],
    ],
  }[shape];
  return `<polygon points="${corners.map(([dx, dy]) => at(dx, dy)).join(" ")}" ${attributes}/>`;
}

function scaleOf(values, log, from, to, fromZero, margin) {
  let low = Math.min(...values),
    high = Math.max(...values);
  if (log) {
    const room = low === high ? 2 : (high / low) ** margin;
    low /= room;
    high *= room;
    const a = Math.log(low),
      b = Math.log(high);
    return {
      low,
      high,
      ticks: () => logTicks(low, high),
      place: (v) => from + ((Math.log(v) - a) / (b - a)) * (to - from),
    };
  }
  if (fromZero) {
    low = Math.min(0, low);
    high = high > 0 ? high * (1 + margin) : 1;
  } else if (low === high) {
    low -= 0.5;
    high += 0.5;
  } else {
    const room = (high - low) * margin;
    low -= room;
    high += room;
  }
  return {
    low,
    high,
    ticks: () => linearTicks(low, high),
    place: (v) => from + ((v - low) / (high - low)) * (to - from),
  };
}

// series: [{label, parts, colour, dash, shape, earlier, points: [{x, y, low, high, tip}]}]
// options: {kind, width, height, xLog, yLog, xTicks: [[place, label]], xLabel, yFormat, one,
// fromZero, radius}
function lineGraph(series, options) {
  const { width, height } = options;
  const left = 66,
    right = 12,
    top = 10,
    bottom = 42,
    inner = 26;
  const points = series.flatMap((one) => one.points);
  const ys = points.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]).filter((y) => !options.yLog || y > 0);
  if (options.one && Math.min(...ys) < 4 && Math.max(...ys) > 0.25) ys.push(1);
  const xs = options.xTicks ? options.xTicks.map((t) => t[0]) : points.map((p) => p.x);
  const X = scaleOf(xs, options.xLog, left + inner, width - right - inner, false, 0);
  const Y = scaleOf(ys, options.yLog, height - bottom, top, options.fromZero, 0.06);
  const out = [];
  for (const tick of Y.ticks()) {
    const y = Y.place(tick).toFixed(2);
    out.push(
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${y}" y2="${y}"/>`,
      `<text x="${left - 8}" y="${y}" dy="0.35em" text-anchor="end">${escaped(options.yFormat(tick))}</text>`,
    );
  }
  const xTicks = options.xTicks || X.ticks().map((t) => [t, shortNumber(t)]);
  const every = Math.ceil(xTicks.length / Math.max(2, Math.floor((width - left) / 70)));
  xTicks.forEach(([at, label], k) => {
    if ((xTicks.length - 1 - k) % every) return;
    const x = X.place(at).toFixed(2);
    out.push(
      `<line class="grid" x1="${x}" x2="${x}" y1="${top}" y2="${height - bottom}"/>`,
      `<text x="${x}" y="${height - bottom + 17}" text-anchor="middle">${escaped(label)}</text>`,
    );
  });
  out.push(
    `<line class="axis" x1="${left}" x2="${width - right}" y1="${height - bottom}" y2="${height - bottom}"/>`,
  );
  if (options.one && Y.low <= 1 && Y.high >= 1)
    out.push(
      `<line class="one" x1="${left}" x2="${width - right}" y1="${Y.place(1).toFixed(2)}" y2="${Y.place(1).toFixed(2)}"/>`,
    );
  if (options.xLabel)
    out.push(
      `<text x="${(left + width - right) / 2}" y="${height - 6}" text-anchor="middle">${escaped(options.xLabel)}</text>`,
    );
  for (const one of series) {
    const drawn = one.points
      .filter((p) => !options.yLog || p.y > 0)
      .map((p) => ({ ...p, px: X.place(p.x).toFixed(2), py: Y.place(p.y).toFixed(2) }));
    if (!drawn.length) continue;
    const path = drawn.map((p, k) => `${k ? "L" : "M"}${p.px} ${p.py}`).join(" ");
    const dash = one.dash && !one.earlier ? ` stroke-dasharray="${one.dash}"` : "";
    out.push(
      `<g data-parts="${escaped(one.parts)}"><path class="line${one.earlier ? " earlier" : ""}"`,
      ` data-case="${escaped(one.label)}" stroke="${one.colour}"${dash} d="${path}"/>`,
    );
    if (!one.earlier)
      for (const p of drawn) {
        if (p.low !== undefined && p.high > p.low && (p.low > 0 || !options.yLog))
          out.push(
            `<line class="whisker" stroke="${one.colour}" x1="${p.px}" x2="${p.px}"`,
            ` y1="${Y.place(p.low).toFixed(2)}" y2="${Y.place(p.high).toFixed(2)}"/>`,
          );
        out.push(
          marker(
            one.shape,
            p.px,
            p.py,
            options.radius,
            `class="point" fill="${one.colour}" data-tip="${escaped(p.tip || "")}"`,
          ),
        );
      }
    out.push("</g>");
  }
  const scales = `data-x="${options.xLog ? "log" : "linear"}" data-y="${options.yLog ? "log" : "linear"}"`;
  return `<svg class="graph" data-graph="${options.kind}" ${scales} ${sized(width, height)} role="img"
    aria-label="graph over ${escaped(options.xLabel)}">${out.join("")}</svg>`;
}

function sized(width, height) {
  return `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
}

function sparkline(values, width, height) {
  const known = values.map((v, k) => [k, v]).filter(([, v]) => v !== null && v > 0);
  if (!known.length) return "";
  const logs = known.map(([, v]) => Math.log(v));
  const low = Math.min(...logs),
    high = Math.max(...logs);
  // A change of a tenth is not drawn as a mountain: the height stands for a third at least.
  const middle = (low + high) / 2,
    half = Math.max((high - low) / 2, 0.15);
  const x = (k) => (values.length < 2 ? width / 2 : 4 + (k / (values.length - 1)) * (width - 8)).toFixed(1);
  const y = (log) => (height / 2 - ((log - middle) / half) * (height / 2 - 4)).toFixed(1);
  const path = known.map(([k], j) => `${j ? "L" : "M"}${x(k)} ${y(logs[j])}`).join(" ");
  const last = known.length - 1;
  return `<svg class="sparkline" ${sized(width, height)}><path class="line" d="${path}"/>
    <circle cx="${x(known[last][0])}" cy="${y(logs[last])}" r="2.6"/></svg>`;
}
