// The page: what was measured, what changed, and the graphs of each benchmark.

const DATA = JSON.parse(document.getElementById("data").textContent);
const FACTOR = DATA.factor; // ratios beyond it are coloured
const $main = document.getElementById("main"), $search = document.getElementById("search");
const $machine = document.getElementById("machine"), $tip = document.getElementById("tip");
const view = { kind: "all", slower: false, sort: "name", descending: false };

// ---- what was measured ------------------------------------------------------------------------

function combinations(lists) {
  return lists.reduce((all, list) => all.flatMap((head) => list.map((item) => [...head, item])), [[]]);
}

for (const benchmark of DATA.benchmarks) {
  benchmark.cases = combinations(benchmark.params).map((values, index) => ({
    index, values,
    label: values.map((v, k) => `${benchmark.param_names[k]}=${plain(v)}`).join(", ") || benchmark.name,
  }));
  benchmark.text = [benchmark.name, benchmark.about, benchmark.unit].join(" ").toLowerCase();
}

function plain(parameter) { return parameter.replace(/^'(.*)'$/, "$1"); }

function machine() { return DATA.machines[Number($machine.value) || 0]; }

// The history of one case: values by commit, and how the latest compares.
function history(benchmark, index) {
  const rows = machine().values[benchmark.name] || [], spreads = machine().spreads[benchmark.name] || [];
  const values = rows.map((row) => (row ? row[index] : null));
  const known = values.flatMap((v, c) => (v === null ? [] : [c]));
  if (!known.length) return null;
  const latest = known[known.length - 1], previous = known.length > 1 ? known[known.length - 2] : null;
  const best = known.reduce((a, b) => (values[b] <= values[a] ? b : a));
  const spread = (c) => (spreads[c] && spreads[c][index]) || [values[c], values[c]];
  const against = (c) => {
    if (c === null || !(values[c] > 0)) return null;
    const ratio = values[latest] / values[c];
    // As in `make bench-compare`: beyond the factor, and the middle halves apart.
    const worse = ratio > FACTOR && spread(latest)[0] > spread(c)[1];
    const better = ratio < 1 / FACTOR && spread(latest)[1] < spread(c)[0];
    return { ratio, verdict: worse ? "worse" : better ? "better" : "", commit: c };
  };
  return { values, spread, latest, previous, best, value: values[latest], toPrevious: against(previous), toBest: previous === null ? null : against(best) };
}

function geometricMean(values) {
  return values.length ? Math.exp(values.reduce((sum, v) => sum + Math.log(v), 0) / values.length) : null;
}

function terms() { return $search.value.toLowerCase().split(/\s+/).filter(Boolean); }

function casesFound(benchmark) {
  const wanted = terms();
  return benchmark.cases.filter((one) => {
    const text = benchmark.text + " " + one.label.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

// ---- small parts --------------------------------------------------------------------------------

function chip(compared) {
  if (!compared) return '<span class="muted">–</span>';
  const commit = machine().commits[compared.commit];
  const tip = commit ? `against ${commit.hash.slice(0, 8)} of ${day(commit.date)}\n${commit.subject}` : "";
  return `<span class="chip ${compared.verdict}" data-tip="${escaped(tip)}">×${compared.ratio.toFixed(2)}</span>`;
}

function day(date) { return new Date(date).toISOString().slice(0, 10); }

function facts() {
  const m = machine(), commits = m.commits, last = commits[commits.length - 1];
  const parts = [
    `<b>${escaped(m.name)}</b>`, `${escaped(m.cpu)}${m.num_cpu ? `, ${escaped(m.num_cpu)} cores` : ""}`,
    m.ram ? `${escaped(m.ram)} of memory` : "", escaped(m.os),
    [["Python", m.python], ...Object.entries(m.installed)].filter(([, v]) => v).map(([k, v]) => `${escaped(k)} ${escaped(v)}`).join(", "),
    `${commits.length} ${commits.length === 1 ? "commit" : "commits"}`,
    `latest <b class="mono">${last.hash.slice(0, 8)}</b> of ${day(last.date)} ${escaped(last.subject)}`,
  ];
  document.getElementById("facts").innerHTML = parts.filter(Boolean).map((p) => `<span>${p}</span>`).join("");
}

// ---- overview -------------------------------------------------------------------------------------

function summary(benchmark) {
  const found = casesFound(benchmark).map((one) => history(benchmark, one.index)).filter(Boolean);
  if (!found.length) return null;
  const together = (pick) => {
    const compared = found.map(pick).filter(Boolean);
    if (!compared.length) return null;
    const worst = compared.reduce((a, b) => (b.ratio > a.ratio ? b : a));
    const worse = compared.filter((c) => c.verdict === "worse").length, better = compared.filter((c) => c.verdict === "better").length;
    const ratio = geometricMean(compared.map((c) => c.ratio));
    const verdict = compared.length === 1 ? worst.verdict : worse && ratio > FACTOR ? "worse" : better && ratio < 1 / FACTOR ? "better" : "";
    return { ratio, verdict, worst, worse, better, many: compared.length > 1, commit: worst.commit };
  };
  const trend = machine().commits.map((_, c) => geometricMean(found.filter((h) => h.values[c] > 0 && h.value > 0).map((h) => h.values[c] / h.value)));
  const values = found.map((h) => h.value);
  return { benchmark, found, low: Math.min(...values), high: Math.max(...values), previous: together((h) => h.toPrevious), best: together((h) => h.toBest), trend };
}

const SORTS = {
  name: (r) => r.benchmark.name, cases: (r) => r.found.length, latest: (r) => r.high,
  previous: (r) => (r.previous ? r.previous.worst.ratio : 0), best: (r) => (r.best ? r.best.worst.ratio : 0),
};

function compared(part) {
  if (!part) return '<span class="muted">–</span>';
  const worst = part.many && part.worst.ratio > 1.005 ? `<span class="worst ${part.worst.verdict}">to ×${part.worst.ratio.toFixed(2)}</span>` : "";
  return worst + chip(part);
}

function overview() {
  const rows = DATA.benchmarks.map(summary).filter(Boolean);
  const slower = rows.reduce((sum, r) => sum + (r.previous ? r.previous.worse : 0), 0);
  const faster = rows.reduce((sum, r) => sum + (r.previous ? r.previous.better : 0), 0);
  const shown = rows.filter((r) => (view.kind === "all" || r.benchmark.kind === view.kind) && (!view.slower || (r.previous && r.previous.worse)));
  shown.sort((a, b) => {
    const u = SORTS[view.sort](a), v = SORTS[view.sort](b);
    return (u < v ? -1 : u > v ? 1 : 0) * (view.descending ? -1 : 1);
  });
  const kinds = [["all", "All"], ["time", "Time"], ["peakmemory", "Memory"], ["track", "Ratios and counts"]];
  const buttons = kinds.map(([kind, name]) => `<button data-kind="${kind}" aria-pressed="${view.kind === kind}">${name}</button>`).join("");
  const cases = rows.reduce((sum, r) => sum + r.found.length, 0);
  const since = machine().commits.length > 1 ? ` · since the previous commit <b>${slower}</b> slower or larger, <b>${faster}</b> better` : " · one commit so far";
  const groups = view.sort === "name" ? [...new Set(shown.map((r) => r.benchmark.module))] : [null];
  const tables = groups.map((module) => {
    const mine = shown.filter((r) => module === null || r.benchmark.module === module);
    const heading = module === null ? "" : `<h2>${escaped(module)}<span class="muted">${escaped(DATA.modules[module] || "")}</span></h2>`;
    return `<section class="card">${heading}${overviewTable(mine)}</section>`;
  });
  $main.innerHTML = `<div class="bar">${buttons}<button id="slower" aria-pressed="${view.slower}">Slower only</button>
    <span class="counts">${rows.length} benchmarks, ${cases} cases${since}</span></div>${tables.join("") || '<div class="card empty">Nothing found.</div>'}`;
  for (const button of $main.querySelectorAll("[data-kind]")) button.onclick = () => { view.kind = button.dataset.kind; overview(); };
  document.getElementById("slower").onclick = () => { view.slower = !view.slower; overview(); };
  for (const head of $main.querySelectorAll("th.sortable"))
    head.onclick = () => {
      view.descending = view.sort === head.dataset.sort ? !view.descending : head.dataset.sort !== "name";
      view.sort = head.dataset.sort;
      overview();
    };
  for (const row of $main.querySelectorAll("tr.link")) row.onclick = () => { location.hash = linkTo(row.dataset.name); };
}

// Another page with the same search.
function linkTo(name) {
  const query = new URLSearchParams();
  if ($search.value) query.set("q", $search.value);
  return address(name, query);
}

function overviewTable(rows) {
  const head = [["name", "benchmark", ""], ["cases", "cases", "number"], ["latest", "latest", "number"], ["previous", "÷ previous", "number"], ["best", "÷ best", "number"]]
    .map(([sort, name, style]) => `<th class="sortable ${style}" data-sort="${sort}">${name}${view.sort === sort ? (view.descending ? " ↓" : " ↑") : ""}</th>`).join("");
  const body = rows.map((r) => {
    const b = r.benchmark;
    const latest = r.low === r.high ? formatted(r.low, b.unit) : `${formatted(r.low, b.unit)} – ${formatted(r.high, b.unit)}`;
    const unit = SCALES[b.unit] ? "" : `<span class="muted" style="display:block;font-size:12px">${escaped(b.unit)}</span>`;
    return `<tr class="link" data-name="${escaped(b.name)}"><td class="name"><a href="${escaped(linkTo(b.name))}">${escaped(b.name.slice(b.module.length + 1))}</a><span class="muted">${escaped(b.about)}</span></td>
      <td class="number muted">${r.found.length}</td><td class="number">${latest}${unit}</td>
      <td class="number">${compared(r.previous)}</td><td class="number">${compared(r.best)}</td><td class="spark">${sparkline(r.trend, 150, 30)}</td></tr>`;
  });
  return `<table class="overview"><colgroup><col class="c-name"><col class="c-cases"><col class="c-latest"><col class="c-ratio"><col class="c-ratio"><col class="c-spark"></colgroup>
    <thead><tr>${head}<th>over commits</th></tr></thead><tbody>${body.join("")}</tbody></table>`;
}

// ---- one benchmark ---------------------------------------------------------------------------------

function isNumeric(list) { return list.length > 1 && list.every((v) => v.trim() !== "" && Number.isFinite(Number(v))); }

function detail(benchmark, query) {
  const fixed = Object.fromEntries(benchmark.param_names.map((name) => [name, query.get("p." + name)]));
  const cases = casesFound(benchmark)
    .filter((one) => one.values.every((v, k) => fixed[benchmark.param_names[k]] === null || fixed[benchmark.param_names[k]] === v))
    .map((one) => ({ ...one, history: history(benchmark, one.index) })).filter((one) => one.history);
  // Parameters that still vary, and those of them that can be an axis.
  const seen = benchmark.params.map((_, k) => new Set(cases.map((one) => one.values[k])));
  const vary = benchmark.param_names.map((_, k) => k).filter((k) => seen[k].size > 1);
  const numeric = vary.filter((k) => isNumeric(benchmark.params[k]));
  const wanted = benchmark.param_names.indexOf(query.get("x"));
  const reach = (k) => { const v = [...seen[k]].map(Number); return Math.max(...v) / Math.max(Math.min(...v), 1); };
  const axis = numeric.includes(wanted) ? wanted : numeric.length ? numeric.reduce((a, b) => (reach(b) > reach(a) ? b : a)) : null;
  const lines = vary.filter((k) => k !== axis);
  const asked = benchmark.param_names.indexOf(query.get("panels"));
  const count = new Set(cases.map((one) => lines.map((k) => one.values[k]).join())).size;
  const panel = query.get("panels") === "none" ? null : lines.includes(asked) ? asked : lines.length > 1 && count > 6 ? lines[0] : null;
  const parts = [head(benchmark), controls(benchmark, fixed, numeric, axis, lines, panel, query)];
  if (!cases.length) parts.push('<div class="card empty">No case of this benchmark fits the search and the choices.</div>');
  else {
    const several = machine().commits.length > 1;
    if (axis !== null) parts.push(card(`By ${escaped(benchmark.param_names[axis])}`, several ? "latest results; faint and dotted, the previous ones" : "latest results", panels(benchmark, cases, panel, axis, overParameter)));
    else if (cases.length > 1) parts.push(card("By case", several ? "latest results; a mark where the previous one was" : "latest results", bars(benchmark, cases)));
    if (several) parts.push(card("Over commits", isRelative(benchmark, cases) ? "as ratios to the first result of each" : "bars reach from the lower to the upper quartile", panels(benchmark, cases, panel, null, overCommits)));
    parts.push(caseTable(benchmark, cases));
  }
  parts.push(`<section class="card"><details><summary>Source</summary><pre>${escaped(benchmark.code)}</pre></details></section>`);
  $main.innerHTML = parts.join("");
  for (const select of $main.querySelectorAll(".controls select"))
    select.onchange = () => {
      if (select.value === "") query.delete(select.name); else query.set(select.name, select.value);
      location.hash = address(benchmark.name, query);
    };
  for (const entry of $main.querySelectorAll(".legend [data-part]")) {
    const groups = entry.closest(".inside").querySelectorAll("svg g[data-parts]");
    entry.onmouseenter = () => groups.forEach((g) => g.classList.toggle("faded", !g.dataset.parts.includes(entry.dataset.part)));
    entry.onmouseleave = () => groups.forEach((g) => g.classList.remove("faded"));
  }
}

function head(b) {
  return `<p style="margin:0"><a href="${escaped(linkTo(""))}">← all benchmarks</a></p><h1>${escaped(b.name)}</h1><p class="lead">${escaped(b.about)}${SCALES[b.unit] ? "" : ` In ${escaped(b.unit)}.`}</p>`;
}

function card(title, note, inside) {
  return `<section class="card"><h2>${title}<span class="muted">${note}</span></h2><div class="inside">${inside}</div></section>`;
}

function controls(b, fixed, numeric, axis, lines, panel, query) {
  const option = (value, name, now) => `<option value="${escaped(value)}"${value === now ? " selected" : ""}>${escaped(name)}</option>`;
  const choose = (name, label, options) => `<label>${escaped(label)}<select name="${escaped(name)}">${options}</select></label>`;
  const out = b.param_names.map((name, k) => (b.params[k].length < 2 ? "" : choose("p." + name, name, option("", "all", fixed[name] || "") + b.params[k].map((v) => option(v, plain(v), fixed[name])).join(""))));
  if (numeric.length > 1) out.push(choose("x", "along the axis", numeric.map((k) => option(b.param_names[k], b.param_names[k], b.param_names[axis])).join("")));
  if (lines.length > 1) out.push(choose("panels", "one graph for each", option("none", "none", panel === null ? "none" : "") + lines.map((k) => option(b.param_names[k], b.param_names[k], panel === null ? "" : b.param_names[panel])).join("")));
  out.push(choose("scale", "scale", option("", "automatic", query.get("scale") || "") + option("log", "logarithmic", query.get("scale")) + option("linear", "from zero", query.get("scale"))));
  if (machine().commits.length > 1)
    out.push(choose("commits", "over commits", option("", "automatic", query.get("commits") || "") + option("values", "values", query.get("commits")) + option("ratios", "ratios to the first", query.get("commits"))));
  return `<div class="controls">${out.join("")}</div>`;
}

function scaleAsked(values, otherwise) {
  const asked = route().query.get("scale");
  return asked ? asked === "log" : otherwise(values.filter((v) => v > 0));
}

// How lines are told apart: by colour alone if they are few, or else by colour, dashes and markers, one
// parameter each. The same line looks the same in all graphs of a card.
function styles(b, cases, panel, axis) {
  const vary = b.param_names.map((_, k) => k).filter((k) => k !== axis && k !== panel && new Set(cases.map((one) => one.values[k])).size > 1);
  const values = vary.map((k) => b.params[k].filter((v) => cases.some((one) => one.values[k] === v)));
  const named = (k, v) => (isNumeric(b.params[k]) ? `${b.param_names[k]} = ${plain(v)}` : plain(v));
  const part = (k, v) => `|${b.param_names[k]}=${v}|`;
  const labels = [...new Set(cases.map((one) => vary.map((k) => named(k, one.values[k])).join(", ")))];
  const byColour = vary.length < 2 || labels.length <= 8;
  const pick = (list, place) => (vary.length > place ? (v) => list[values[place].indexOf(v) % list.length] : () => list[0]);
  const [colour, dash, shape] = [pick(COLOURS, 0), pick(DASHES, 1), pick(MARKERS, 2)];
  const of = (one) => {
    const mine = vary.map((k) => one.values[k]);
    const label = vary.map((k) => named(k, one.values[k])).join(", ");
    const parts = vary.map((k) => part(k, one.values[k])).join("");
    const look = byColour ? { colour: COLOURS[labels.indexOf(label) % COLOURS.length], dash: DASHES[Math.floor(labels.indexOf(label) / COLOURS.length) % DASHES.length], shape: "circle" } : { colour: colour(mine[0]), dash: dash(mine[1]), shape: shape(mine[2]) };
    return { label: label || b.name, parts, ...look };
  };
  const legend = (notes) => {
    if (!vary.length) return "";
    const entry = (parts, sample, text) => `<span data-part="${escaped(parts)}">${sample}${text}</span>`;
    const line = (c, d) => `<svg width="26" height="10"><path class="line" stroke="${c}" stroke-dasharray="${d}" d="M1 5 L25 5"/></svg>`;
    if (byColour)
      return labels.map((label) => {
        const look = of(cases.find((one) => vary.map((k) => named(k, one.values[k])).join(", ") === label));
        return entry(look.parts, line(look.colour, look.dash), escaped(label) + (notes[label] ? ` <span class="muted">${notes[label]}</span>` : ""));
      }).join("");
    return vary.slice(0, 3).map((k, place) => `<span class="group"><b>${escaped(b.param_names[k])}</b>${values[place].map((v) =>
      entry(part(k, v), place === 0 ? line(colour(v), "") : place === 1 ? line("var(--muted)", dash(v)) : `<svg width="12" height="12">${marker(shape(v), 6, 6, 4, 'fill="var(--muted)"')}</svg>`, escaped(plain(v)))).join("")}</span>`).join("");
  };
  return { of, legend };
}

function panels(b, cases, panel, axis, draw) {
  const names = panel === null ? [null] : b.params[panel].filter((v) => cases.some((one) => one.values[panel] === v));
  const look = styles(b, cases, panel, axis);
  const room = Math.max(320, Math.min(1450, document.documentElement.clientWidth - 50) - 34), gap = 22;
  const columns = panel === null ? 1 : Math.min(names.length, Math.max(1, Math.floor((room + gap) / (400 + gap))));
  const width = Math.floor((room - gap * (columns - 1)) / columns);
  const notes = {};
  const drawn = names.map((name) => {
    const some = cases.filter((one) => name === null || one.values[panel] === name);
    const { series, options } = draw(b, some, axis, look.of);
    if (panel === null) for (const one of series) if (one.note) notes[one.label] = one.note;
    const title = name === null ? "" : `<h3>${escaped(b.param_names[panel])} = ${escaped(plain(name))}</h3>`;
    return `<div class="panel">${title}${lineGraph(series.filter((one) => one.points.length), { ...options, width, height: panel === null ? 350 : 250, radius: panel === null ? 4 : 3 })}</div>`;
  });
  return `<div class="legend">${look.legend(notes)}</div><div class="panels" style="grid-template-columns:repeat(${columns},1fr)">${drawn.join("")}</div>`;
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
  const commit = machine().commits[c], h = one.history, [low, high] = h.spread(c);
  const range = high > low ? ` (quartiles ${formatted(low, b.unit)} – ${formatted(high, b.unit)})` : "";
  return `${formatted(h.values[c], b.unit)}${SCALES[b.unit] ? "" : " " + b.unit}${range}\n${one.label}\n${commit.hash.slice(0, 8)} of ${day(commit.date)} ${commit.subject}`;
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
    const earlier = sorted.filter((one) => one.history.previous !== null).map((one) => ({ x: x(one), y: one.history.values[one.history.previous] }));
    series.push({ ...line, points: earlier, earlier: true }, { ...line, points, note: growth(points, b.param_names[axis], b.kind) });
  }
  const xs = [...new Set(cases.map((one) => Number(one.values[axis])))].sort((p, q) => p - q);
  const xLog = xs[0] > 0 && xs[xs.length - 1] / xs[0] >= 8;
  const yLog = scaleAsked(series.flatMap((s) => s.points.map((p) => p.y)), (ys) => (xLog && b.kind === "time") || Math.max(...ys) / Math.min(...ys) > 15);
  const options = { kind: "parameter", xLog, yLog, fromZero: true, xTicks: xs.map((v) => [v, shortNumber(v)]), xLabel: b.param_names[axis], yFormat: (y) => formatted(y, b.unit), one: b.unit.includes("/") };
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
        return [{ ...p, y: p.y / scale, low: relative ? undefined : p.low, high: relative ? undefined : p.high }];
      });
    }),
  }));
  const yLog = scaleAsked(series.flatMap((s) => s.points.map((p) => p.y)), (ys) => relative || Math.max(...ys) / Math.min(...ys) > 15);
  const yFormat = relative ? (y) => "×" + digits(y) : (y) => formatted(y, b.unit);
  const options = { kind: "commits", xLog: false, yLog, fromZero: !relative, xTicks: commits.map((commit, c) => [c, commit.hash.slice(0, 7)]), xLabel: "commits, the latest on the right", yFormat, one: relative || b.unit.includes("/") };
  return { series, options };
}

function bars(b, cases) {
  const most = Math.max(...cases.flatMap((one) => [one.history.value, one.history.previous === null ? 0 : one.history.values[one.history.previous]])) || 1;
  const share = (v) => ((100 * v) / most).toFixed(2);
  return `<table class="bars">${cases.map((one) => {
    const h = one.history;
    const mark = h.previous === null ? "" : `<span class="mark" style="left:${share(h.values[h.previous])}%"></span>`;
    return `<tr><td style="white-space:nowrap">${escaped(one.values.map(plain).join(", "))}</td><td style="width:75%"><div class="track"><span class="fill" data-case="${escaped(one.label)}" style="width:${share(h.value)}%" data-tip="${escaped(tip(b, one, h.latest))}"></span>${mark}</div></td><td class="number">${formatted(h.value, b.unit)}</td></tr>`;
  }).join("")}</table>`;
}

function caseTable(b, cases) {
  const names = b.param_names.map((name) => `<th>${escaped(name)}</th>`).join("");
  const rows = cases.map((one) => {
    const h = one.history, stale = h.latest < machine().commits.length - 1;
    const [low, high] = h.spread(h.latest);
    const when = stale ? ` <span class="muted">at ${machine().commits[h.latest].hash.slice(0, 8)}</span>` : "";
    return `<tr>${one.values.map((v) => `<td>${escaped(plain(v))}</td>`).join("")}<td class="number">${formatted(h.value, b.unit)}${when}</td>
      <td class="number muted">${high > low ? `${formatted(low, b.unit)} – ${formatted(high, b.unit)}` : ""}</td><td class="number">${chip(h.toPrevious)}</td><td class="number">${chip(h.toBest)}</td><td class="spark">${sparkline(h.values, 150, 26)}</td></tr>`;
  });
  return `<section class="card"><h2>Values</h2><table><thead><tr>${names}<th class="number">latest</th><th class="number">quartiles</th><th class="number">÷ previous</th><th class="number">÷ best</th><th>over commits</th></tr></thead><tbody>${rows.join("")}</tbody></table></section>`;
}

// ---- which page ------------------------------------------------------------------------------------

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: decodeURIComponent(path), query: new URLSearchParams(query || "") };
}

// The search is part of the address, so that what was found can be sent to others.
function searched() {
  const { name, query } = route();
  if ($search.value) query.set("q", $search.value); else query.delete("q");
  history.replaceState(null, "", address(name, query));
  show();
}

function address(name, query) { return `#/${name}${query.size ? "?" + query : ""}`; }

function show() {
  const { name, query } = route();
  const benchmark = DATA.benchmarks.find((b) => b.name === name);
  facts();
  if (document.activeElement !== $search) $search.value = query.get("q") || "";
  if (benchmark) detail(benchmark, query);
  else overview();
  document.title = benchmark ? `${benchmark.name} · ${DATA.title}` : DATA.title;
}

DATA.machines.forEach((m, k) => $machine.add(new Option([m.name, m.python && "Python " + m.python].filter(Boolean).join(", "), k)));
$machine.hidden = DATA.machines.length < 2;
$machine.onchange = show;
$search.oninput = searched;
window.onhashchange = () => { window.scrollTo(0, 0); show(); };
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== $search) { event.preventDefault(); $search.focus(); }
  if (event.key === "Escape" && document.activeElement === $search) { $search.value = ""; searched(); }
});
document.addEventListener("mousemove", (event) => {
  const text = event.target.dataset ? event.target.dataset.tip : "";
  $tip.style.display = text ? "block" : "none";
  if (!text) return;
  $tip.textContent = text;
  $tip.style.left = Math.min(event.clientX + 14, window.innerWidth - $tip.offsetWidth - 8) + "px";
  $tip.style.top = Math.min(event.clientY + 14, window.innerHeight - $tip.offsetHeight - 8) + "px";
});
show();
