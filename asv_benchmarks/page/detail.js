// The page of one benchmark: graphs over its parameters and over commits, and all values.

function isNumeric(list) {
  return list.length > 1 && list.every((v) => v.trim() !== "" && Number.isFinite(Number(v)));
}

function detail(benchmark, query) {
  const fixed = Object.fromEntries(benchmark.param_names.map((name) => [name, query.get("p." + name)]));
  const cases = casesFound(benchmark)
    .filter((one) =>
      one.values.every(
        (v, k) => fixed[benchmark.param_names[k]] === null || fixed[benchmark.param_names[k]] === v,
      ),
    )
    .map((one) => ({ ...one, history: historyOf(benchmark, one.index) }))
    .filter((one) => one.history);
  // Parameters that still vary, and those of them that can be an axis.
  const seen = benchmark.params.map((_, k) => new Set(cases.map((one) => one.values[k])));
  const vary = benchmark.param_names.map((_, k) => k).filter((k) => seen[k].size > 1);
  const numeric = vary.filter((k) => isNumeric(benchmark.params[k]));
  const wanted = benchmark.param_names.indexOf(query.get("x"));
  const reach = (k) => {
    const v = [...seen[k]].map(Number);
    return Math.max(...v) / Math.max(Math.min(...v), 1);
  };
  const axis = numeric.includes(wanted)
    ? wanted
    : numeric.length
      ? numeric.reduce((a, b) => (reach(b) > reach(a) ? b : a))
      : null;
  const lines = vary.filter((k) => k !== axis);
  const asked = benchmark.param_names.indexOf(query.get("panels"));
  const count = new Set(cases.map((one) => lines.map((k) => one.values[k]).join())).size;
  const panel =
    query.get("panels") === "none"
      ? null
      : lines.includes(asked)
        ? asked
        : lines.length > 1 && count > 6
          ? lines[0]
          : null;
  const parts = [head(benchmark), controls(benchmark, fixed, numeric, axis, lines, panel, query)];
  if (!cases.length)
    parts.push('<div class="card empty">No case of this benchmark fits the search and the choices.</div>');
  else {
    const several = machine().commits.length > 1;
    if (axis !== null)
      parts.push(
        card(
          `By ${escaped(benchmark.param_names[axis])}`,
          several ? "latest results; faint and dotted, the previous ones" : "latest results",
          panels(benchmark, cases, panel, axis, overParameter),
        ),
      );
    else if (cases.length > 1)
      parts.push(
        card(
          "By case",
          several ? "latest results; a mark where the previous one was" : "latest results",
          bars(benchmark, cases),
        ),
      );
    if (several)
      parts.push(
        card(
          "Over commits",
          isRelative(benchmark, cases)
            ? "as ratios to the first result of each"
            : "bars reach from the lower to the upper quartile",
          panels(benchmark, cases, panel, null, overCommits),
        ),
      );
    parts.push(caseTable(benchmark, cases));
  }
  parts.push(
    `<section class="card"><details><summary>Source</summary><pre>${escaped(benchmark.code)}</pre></details></section>`,
  );
  $main.innerHTML = parts.join("");
  for (const select of $main.querySelectorAll(".controls select"))
    select.onchange = () => {
      if (select.value === "") query.delete(select.name);
      else query.set(select.name, select.value);
      location.hash = address(benchmark.name, query);
    };
  for (const entry of $main.querySelectorAll(".legend [data-part]")) {
    const groups = entry.closest(".inside").querySelectorAll("svg g[data-parts]");
    entry.onmouseenter = () =>
      groups.forEach((g) => g.classList.toggle("faded", !g.dataset.parts.includes(entry.dataset.part)));
    entry.onmouseleave = () => groups.forEach((g) => g.classList.remove("faded"));
  }
}

function head(b) {
  const unit = SCALES[b.unit] ? "" : ` In ${escaped(b.unit)}.`;
  return `<p class="back"><a href="${escaped(linkTo(""))}">← all benchmarks</a></p>
    <h1>${escaped(b.name)}</h1><p class="lead">${escaped(b.about)}${unit}</p>`;
}

function card(title, note, inside) {
  return `<section class="card"><h2>${title}<span class="muted">${note}</span></h2><div class="inside">${inside}</div></section>`;
}

function controls(b, fixed, numeric, axis, lines, panel, query) {
  const option = (value, name, now) =>
    `<option value="${escaped(value)}"${value === now ? " selected" : ""}>${escaped(name)}</option>`;
  const choose = (name, label, options) =>
    `<label>${escaped(label)}<select name="${escaped(name)}">${options}</select></label>`;
  const out = b.param_names.map((name, k) =>
    b.params[k].length < 2
      ? ""
      : choose(
          "p." + name,
          name,
          option("", "all", fixed[name] || "") +
            b.params[k].map((v) => option(v, plain(v), fixed[name])).join(""),
        ),
  );
  if (numeric.length > 1)
    out.push(
      choose(
        "x",
        "along the axis",
        numeric.map((k) => option(b.param_names[k], b.param_names[k], b.param_names[axis])).join(""),
      ),
    );
  if (lines.length > 1)
    out.push(
      choose(
        "panels",
        "one graph for each",
        option("none", "none", panel === null ? "none" : "") +
          lines
            .map((k) =>
              option(b.param_names[k], b.param_names[k], panel === null ? "" : b.param_names[panel]),
            )
            .join(""),
      ),
    );
  out.push(
    choose(
      "scale",
      "scale",
      option("", "automatic", query.get("scale") || "") +
        option("log", "logarithmic", query.get("scale")) +
        option("linear", "from zero", query.get("scale")),
    ),
  );
  if (machine().commits.length > 1)
    out.push(
      choose(
        "commits",
        "over commits",
        option("", "automatic", query.get("commits") || "") +
          option("values", "values", query.get("commits")) +
          option("ratios", "ratios to the first", query.get("commits")),
      ),
    );
  return `<div class="controls">${out.join("")}</div>`;
}

function scaleAsked(values, otherwise) {
  const asked = route().query.get("scale");
  return asked ? asked === "log" : otherwise(values.filter((v) => v > 0));
}

// How lines are told apart: by colour alone if they are few, or else by colour, dashes and markers, one
// parameter each. The same line looks the same in all graphs of a card.
function styles(b, cases, panel, axis) {
  const vary = b.param_names
    .map((_, k) => k)
    .filter((k) => k !== axis && k !== panel && new Set(cases.map((one) => one.values[k])).size > 1);
  const values = vary.map((k) => b.params[k].filter((v) => cases.some((one) => one.values[k] === v)));
  const named = (k, v) => (isNumeric(b.params[k]) ? `${b.param_names[k]} = ${plain(v)}` : plain(v));
  const part = (k, v) => `|${b.param_names[k]}=${v}|`;
  const labels = [...new Set(cases.map((one) => vary.map((k) => named(k, one.values[k])).join(", ")))];
  const byColour = vary.length < 2 || labels.length <= 8;
  const pick = (list, place) =>
    vary.length > place ? (v) => list[values[place].indexOf(v) % list.length] : () => list[0];
  const [colour, dash, shape] = [pick(COLOURS, 0), pick(DASHES, 1), pick(MARKERS, 2)];
  const of = (one) => {
    const mine = vary.map((k) => one.values[k]);
    const label = vary.map((k) => named(k, one.values[k])).join(", ");
    const parts = vary.map((k) => part(k, one.values[k])).join("");
    const look = byColour
      ? {
          colour: COLOURS[labels.indexOf(label) % COLOURS.length],
          dash: DASHES[Math.floor(labels.indexOf(label) / COLOURS.length) % DASHES.length],
          shape: "circle",
        }
      : { colour: colour(mine[0]), dash: dash(mine[1]), shape: shape(mine[2]) };
    return { label: label || b.name, parts, ...look };
  };
  const legend = (notes) => {
    if (!vary.length) return "";
    const entry = (parts, sample, text) => `<span data-part="${escaped(parts)}">${sample}${text}</span>`;
    const line = (c, d) =>
      `<svg width="26" height="10"><path class="line" stroke="${c}" stroke-dasharray="${d}" d="M1 5 L25 5"/></svg>`;
    if (byColour)
      return labels
        .map((label) => {
          const look = of(cases.find((one) => vary.map((k) => named(k, one.values[k])).join(", ") === label));
          return entry(
            look.parts,
            line(look.colour, look.dash),
            escaped(label) + (notes[label] ? ` <span class="muted">${notes[label]}</span>` : ""),
          );
        })
        .join("");
    return vary
      .slice(0, 3)
      .map(
        (k, place) =>
          `<span class="group"><b>${escaped(b.param_names[k])}</b>${values[place]
            .map((v) =>
              entry(
                part(k, v),
                place === 0
                  ? line(colour(v), "")
                  : place === 1
                    ? line("var(--muted)", dash(v))
                    : `<svg width="12" height="12">${marker(shape(v), 6, 6, 4, 'fill="var(--muted)"')}</svg>`,
                escaped(plain(v)),
              ),
            )
            .join("")}</span>`,
      )
      .join("");
  };
  return { of, legend };
}

function panels(b, cases, panel, axis, draw) {
  const names =
    panel === null ? [null] : b.params[panel].filter((v) => cases.some((one) => one.values[panel] === v));
  const look = styles(b, cases, panel, axis);
  const room = Math.max(320, Math.min(1450, document.documentElement.clientWidth - 50) - 34),
    gap = 22;
  const columns =
    panel === null ? 1 : Math.min(names.length, Math.max(1, Math.floor((room + gap) / (400 + gap))));
  const width = Math.floor((room - gap * (columns - 1)) / columns);
  const notes = {};
  const drawn = names.map((name) => {
    const some = cases.filter((one) => name === null || one.values[panel] === name);
    const { series, options } = draw(b, some, axis, look.of);
    if (panel === null) for (const one of series) if (one.note) notes[one.label] = one.note;
    const title = name === null ? "" : `<h3>${escaped(b.param_names[panel])} = ${escaped(plain(name))}</h3>`;
    return `<div class="panel">${title}${lineGraph(
      series.filter((one) => one.points.length),
      { ...options, width, height: panel === null ? 350 : 250, radius: panel === null ? 4 : 3 },
    )}</div>`;
  });
  const grid = `grid-template-columns:repeat(${columns},1fr)`;
  return `<div class="legend">${look.legend(notes)}</div>
    <div class="panels" style="${grid}">${drawn.join("")}</div>`;
}

// One line for each way the parameters other than the axis are set.
function grouped(cases, style) {
  const groups = new Map();
  for (const one of cases) {
    const look = style(one);
    if (!groups.has(look.parts)) groups.set(look.parts, { ...look, members: [] });
    groups.get(look.parts).members.push(one);
  }
  return [...groups.values()];
}

function tip(b, one, c) {
  const commit = machine().commits[c],
    h = one.history,
    [low, high] = h.spread(c);
  const range = high > low ? ` (quartiles ${formatted(low, b.unit)} – ${formatted(high, b.unit)})` : "";
  const value = formatted(h.values[c], b.unit) + (SCALES[b.unit] ? "" : " " + b.unit);
  const when = `${commit.hash.slice(0, 8)} of ${day(commit.date)} ${commit.subject}`;
  return `${value}${range}\n${one.label}\n${when}`;
}

function point(b, one, c, x) {
  const [low, high] = one.history.spread(c);
  return { x, y: one.history.values[c], low, high, tip: tip(b, one, c) };
}

function overParameter(b, cases, axis, style) {
  const series = [];
  for (const line of grouped(cases, style)) {
    const sorted = [...line.members].sort((p, q) => Number(p.values[axis]) - Number(q.values[axis]));
    const x = (one) => Number(one.values[axis]);
    const points = sorted.map((one) => point(b, one, one.history.latest, x(one)));
    const earlier = sorted
      .filter((one) => one.history.previous !== null)
      .map((one) => ({ x: x(one), y: one.history.values[one.history.previous] }));
    series.push(
      { ...line, points: earlier, earlier: true },
      { ...line, points, note: growth(points, b.param_names[axis], b.kind) },
    );
  }
  const xs = [...new Set(cases.map((one) => Number(one.values[axis])))].sort((p, q) => p - q);
  const xLog = xs[0] > 0 && xs[xs.length - 1] / xs[0] >= 8;
  const yLog = scaleAsked(
    series.flatMap((s) => s.points.map((p) => p.y)),
    (ys) => (xLog && b.kind === "time") || Math.max(...ys) / Math.min(...ys) > 15,
  );
  const options = {
    kind: "parameter",
    xLog,
    yLog,
    fromZero: true,
    xTicks: xs.map((v) => [v, shortNumber(v)]),
    xLabel: b.param_names[axis],
    yFormat: (y) => formatted(y, b.unit),
    one: b.unit.includes("/"),
  };
  return { series, options };
}

// The exponent of the last step, where times or bytes are concerned: 1 is linear.
function growth(points, name, kind) {
  if (kind === "track" || points.length < 2) return "";
  const [p, q] = points.slice(-2);
  if (!(p.y > 0 && q.y > 0 && p.x > 0 && q.x / p.x >= 2)) return "";
  return `~ ${escaped(name)}<sup>${(Math.log(q.y / p.y) / Math.log(q.x / p.x)).toFixed(2)}</sup>`;
}

function isRelative(b, cases) {
  const asked = route().query.get("commits");
  return asked ? asked === "ratios" : cases.length > 4;
}

function overCommits(b, cases, axis, style) {
  const commits = machine().commits;
  // Many lines far apart would hide every change: they meet at 1 instead.
  const relative = isRelative(b, cases);
  const series = grouped(cases, style).map((line) => ({
    ...line,
    points: line.members.flatMap((one) => {
      const scale = relative ? one.history.values.find((v) => v !== null) : 1;
      if (!(scale > 0)) return [];
      return commits.flatMap((_, c) => {
        if (one.history.values[c] === null || one.history.values[c] === undefined) return [];
        const p = point(b, one, c, c);
        return [
          { ...p, y: p.y / scale, low: relative ? undefined : p.low, high: relative ? undefined : p.high },
        ];
      });
    }),
  }));
  const yLog = scaleAsked(
    series.flatMap((s) => s.points.map((p) => p.y)),
    (ys) => relative || Math.max(...ys) / Math.min(...ys) > 15,
  );
  const yFormat = relative ? (y) => "×" + digits(y) : (y) => formatted(y, b.unit);
  const options = {
    kind: "commits",
    xLog: false,
    yLog,
    fromZero: !relative,
    xTicks: commits.map((commit, c) => [c, commit.hash.slice(0, 7)]),
    xLabel: "commits, the latest on the right",
    yFormat,
    one: relative || b.unit.includes("/"),
  };
  return { series, options };
}

function bars(b, cases) {
  const most =
    Math.max(
      ...cases.flatMap((one) => [
        one.history.value,
        one.history.previous === null ? 0 : one.history.values[one.history.previous],
      ]),
    ) || 1;
  const share = (v) => ((100 * v) / most).toFixed(2);
  return `<table class="bars">${cases
    .map((one) => {
      const h = one.history;
      const mark =
        h.previous === null ? "" : `<span class="mark" style="left:${share(h.values[h.previous])}%"></span>`;
      const told = `data-case="${escaped(one.label)}" data-tip="${escaped(tip(b, one, h.latest))}"`;
      const bar = `<span class="fill" ${told} style="width:${share(h.value)}%"></span>`;
      return `<tr><td>${escaped(one.values.map(plain).join(", "))}</td>
        <td class="bar-cell"><div class="track">${bar}${mark}</div></td>
        <td class="number">${formatted(h.value, b.unit)}</td></tr>`;
    })
    .join("")}</table>`;
}

function caseTable(b, cases) {
  const names = b.param_names.map((name) => `<th>${escaped(name)}</th>`).join("");
  const rows = cases.map((one) => {
    const h = one.history,
      stale = h.latest < machine().commits.length - 1;
    const [low, high] = h.spread(h.latest);
    const when = stale
      ? ` <span class="muted">at ${machine().commits[h.latest].hash.slice(0, 8)}</span>`
      : "";
    return `<tr>${one.values.map((v) => `<td>${escaped(plain(v))}</td>`).join("")}<td class="number">${formatted(h.value, b.unit)}${when}</td>
      <td class="number muted">${high > low ? `${formatted(low, b.unit)} – ${formatted(high, b.unit)}` : ""}</td>
      <td class="number">${chip(h.toPrevious)}</td><td class="number">${chip(h.toBest)}</td>
      <td class="spark">${sparkline(h.values, 150, 26)}</td></tr>`;
  });
  const numbers = ["latest", "quartiles", "÷ previous", "÷ best"]
    .map((name) => `<th class="number">${name}</th>`)
    .join("");
  return `<section class="card"><h2>Values</h2><table>
    <thead><tr>${names}${numbers}<th>over commits</th></tr></thead>
    <tbody>${rows.join("")}</tbody></table></section>`;
}
