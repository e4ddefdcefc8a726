// What was measured: cases, their histories, and how the latest values compare.

const DATA = JSON.parse(document.getElementById("data").textContent);
const FACTOR = DATA.factor; // ratios beyond it are coloured
const $main = document.getElementById("main"),
  $search = document.getElementById("search");
const $machine = document.getElementById("machine"),
  $tip = document.getElementById("tip");

function combinations(lists) {
  return lists.reduce((all, list) => all.flatMap((head) => list.map((item) => [...head, item])), [[]]);
}

for (const benchmark of DATA.benchmarks) {
  benchmark.cases = combinations(benchmark.params).map((values, index) => ({
    index,
    values,
    label: values.map((v, k) => `${benchmark.param_names[k]}=${plain(v)}`).join(", ") || benchmark.name,
  }));
  benchmark.text = [benchmark.name, benchmark.about, benchmark.unit].join(" ").toLowerCase();
}

function plain(parameter) {
  return parameter.replace(/^'(.*)'$/, "$1");
}

function machine() {
  return DATA.machines[Number($machine.value) || 0];
}

// The history of one case: values by commit, and how the latest compares.
function historyOf(benchmark, index) {
  const rows = machine().values[benchmark.name] || [],
    spreads = machine().spreads[benchmark.name] || [];
  const values = rows.map((row) => (row ? row[index] : null));
  const known = values.flatMap((v, c) => (v === null ? [] : [c]));
  if (!known.length) return null;
  const latest = known[known.length - 1],
    previous = known.length > 1 ? known[known.length - 2] : null;
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
  return {
    values,
    spread,
    latest,
    previous,
    best,
    value: values[latest],
    toPrevious: against(previous),
    toBest: previous === null ? null : against(best),
  };
}

function geometricMean(values) {
  return values.length ? Math.exp(values.reduce((sum, v) => sum + Math.log(v), 0) / values.length) : null;
}

function terms() {
  return $search.value.toLowerCase().split(/\s+/).filter(Boolean);
}

function casesFound(benchmark) {
  const wanted = terms();
  return benchmark.cases.filter((one) => {
    const text = benchmark.text + " " + one.label.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

function chip(compared) {
  if (!compared) return '<span class="muted">–</span>';
  const commit = machine().commits[compared.commit];
  const tip = commit ? `against ${commit.hash.slice(0, 8)} of ${day(commit.date)}\n${commit.subject}` : "";
  return `<span class="chip ${compared.verdict}" data-tip="${escaped(tip)}">×${compared.ratio.toFixed(2)}</span>`;
}

function day(date) {
  return new Date(date).toISOString().slice(0, 10);
}

function facts() {
  const m = machine();
  document.getElementById("facts").hidden = !m;
  if (!m) return;
  const commits = m.commits,
    last = commits[commits.length - 1];
  const parts = [
    `<b>${escaped(m.name)}</b>`,
    `${escaped(m.cpu)}${m.num_cpu ? `, ${escaped(m.num_cpu)} cores` : ""}`,
    m.ram ? `${escaped(m.ram)} of memory` : "",
    escaped(m.os),
    [["Python", m.python], ...Object.entries(m.installed)]
      .filter(([, v]) => v)
      .map(([k, v]) => `${escaped(k)} ${escaped(v)}`)
      .join(", "),
    `${commits.length} ${commits.length === 1 ? "commit" : "commits"}`,
    `latest <b class="mono">${last.hash.slice(0, 8)}</b> of ${day(last.date)} ${escaped(last.subject)}`,
  ];
  document.getElementById("facts").innerHTML = parts
    .filter(Boolean)
    .map((p) => `<span>${p}</span>`)
    .join("");
}
