// A row for each benchmark.

const view = { kind: "all", slower: false, sort: "name", descending: false };

function summary(benchmark) {
  const found = casesFound(benchmark)
    .map((one) => historyOf(benchmark, one.index))
    .filter(Boolean);
  if (!found.length) return null;
  const together = (pick) => {
    const compared = found.map(pick).filter(Boolean);
    if (!compared.length) return null;
    const worst = compared.reduce((a, b) => (b.ratio > a.ratio ? b : a));
    const worse = compared.filter((c) => c.verdict === "worse").length,
      better = compared.filter((c) => c.verdict === "better").length;
    const ratio = geometricMean(compared.map((c) => c.ratio));
    const verdict =
      compared.length === 1
        ? worst.verdict
        : worse && ratio > FACTOR
          ? "worse"
          : better && ratio < 1 / FACTOR
            ? "better"
            : "";
    return { ratio, verdict, worst, worse, better, many: compared.length > 1, commit: worst.commit };
  };
  const trend = machine().commits.map((_, c) =>
    geometricMean(found.filter((h) => h.values[c] > 0 && h.value > 0).map((h) => h.values[c] / h.value)),
  );
  const values = found.map((h) => h.value);
  return {
    benchmark,
    found,
    low: Math.min(...values),
    high: Math.max(...values),
    previous: together((h) => h.toPrevious),
    best: together((h) => h.toBest),
    trend,
  };
}

const SORTS = {
  name: (r) => r.benchmark.name,
  cases: (r) => r.found.length,
  latest: (r) => r.high,
  previous: (r) => (r.previous ? r.previous.worst.ratio : 0),
  best: (r) => (r.best ? r.best.worst.ratio : 0),
};

function compared(part) {
  if (!part) return '<span class="muted">–</span>';
  const worst =
    part.many && part.worst.ratio > 1.005
      ? `<span class="worst ${part.worst.verdict}">to ×${part.worst.ratio.toFixed(2)}</span>`
      : "";
  return worst + chip(part);
}

function overview() {
  const rows = DATA.benchmarks.map(summary).filter(Boolean);
  const slower = rows.reduce((sum, r) => sum + (r.previous ? r.previous.worse : 0), 0);
  const faster = rows.reduce((sum, r) => sum + (r.previous ? r.previous.better : 0), 0);
  const shown = rows.filter(
    (r) =>
      (view.kind === "all" || r.benchmark.kind === view.kind) &&
      (!view.slower || (r.previous && r.previous.worse)),
  );
  shown.sort((a, b) => {
    const u = SORTS[view.sort](a),
      v = SORTS[view.sort](b);
    return (u < v ? -1 : u > v ? 1 : 0) * (view.descending ? -1 : 1);
  });
  const kinds = [
    ["all", "All"],
    ["time", "Time"],
    ["peakmemory", "Memory"],
    ["track", "Ratios and counts"],
  ];
  const buttons = kinds
    .map(
      ([kind, name]) => `<button data-kind="${kind}" aria-pressed="${view.kind === kind}">${name}</button>`,
    )
    .join("");
  const cases = rows.reduce((sum, r) => sum + r.found.length, 0);
  const since =
    machine().commits.length > 1
      ? ` · since the previous commit <b>${slower}</b> slower or larger, <b>${faster}</b> better`
      : " · one commit so far";
  const groups = view.sort === "name" ? [...new Set(shown.map((r) => r.benchmark.module))] : [null];
  const tables = groups.map((module) => {
    const mine = shown.filter((r) => module === null || r.benchmark.module === module);
    const heading =
      module === null
        ? ""
        : `<h2>${escaped(module)}<span class="muted">${escaped(DATA.modules[module] || "")}</span></h2>`;
    return `<section class="card">${heading}${overviewTable(mine)}</section>`;
  });
  $main.innerHTML = `<div class="bar">${buttons}<button id="slower" aria-pressed="${view.slower}">Slower only</button>
    <span class="counts">${rows.length} benchmarks, ${cases} cases${since}</span></div>
    ${tables.join("") || '<div class="card empty">Nothing found.</div>'}`;
  for (const button of $main.querySelectorAll("[data-kind]"))
    button.onclick = () => {
      view.kind = button.dataset.kind;
      overview();
    };
  document.getElementById("slower").onclick = () => {
    view.slower = !view.slower;
    overview();
  };
  for (const head of $main.querySelectorAll("th.sortable"))
    head.onclick = () => {
      view.descending = view.sort === head.dataset.sort ? !view.descending : head.dataset.sort !== "name";
      view.sort = head.dataset.sort;
      overview();
    };
  for (const row of $main.querySelectorAll("tr.link"))
    row.onclick = () => {
      location.hash = linkTo(row.dataset.name);
    };
}

// Another page with the same search.
function linkTo(name) {
  const query = new URLSearchParams();
  if ($search.value) query.set("q", $search.value);
  return address(name, query);
}

function overviewTable(rows) {
  const head = [
    ["name", "benchmark", ""],
    ["cases", "cases", "number"],
    ["latest", "latest", "number"],
    ["previous", "÷ previous", "number"],
    ["best", "÷ best", "number"],
  ]
    .map(
      ([sort, name, style]) =>
        `<th class="sortable ${style}" data-sort="${sort}">${name}${view.sort === sort ? (view.descending ? " ↓" : " ↑") : ""}</th>`,
    )
    .join("");
  const body = rows.map((r) => {
    const b = r.benchmark;
    const latest =
      r.low === r.high
        ? formatted(r.low, b.unit)
        : `${formatted(r.low, b.unit)} – ${formatted(r.high, b.unit)}`;
    const unit = SCALES[b.unit]
      ? ""
      : `<span class="muted" style="display:block;font-size:12px">${escaped(b.unit)}</span>`;
    const link = `<a href="${escaped(linkTo(b.name))}">${escaped(b.name.slice(b.module.length + 1))}</a>`;
    return `<tr class="link" data-name="${escaped(b.name)}">
      <td class="name">${link}<span class="muted">${escaped(b.about)}</span></td>
      <td class="number muted">${r.found.length}</td><td class="number">${latest}${unit}</td>
      <td class="number">${compared(r.previous)}</td><td class="number">${compared(r.best)}</td>
      <td class="spark">${sparkline(r.trend, 150, 30)}</td></tr>`;
  });
  const widths = ["name", "cases", "latest", "ratio", "ratio", "spark"];
  return `<table class="overview"><colgroup>${widths.map((name) => `<col class="c-${name}">`).join("")}</colgroup>
    <thead><tr>${head}<th>over commits</th></tr></thead><tbody>${body.join("")}</tbody></table>`;
}
