// Ratios that the repository keeps: a row for each, over the commits that were recorded.

const RECORDED = "recorded"; // the address of the page
const COLUMNS = 4; // commits whose values are shown as numbers; the line has them all
const TABLES = {
  "bench-compile": "What a first call costs; Y is the time to compile 21 small kernels",
  "bench-peers": "Trees against the work of other libraries",
};

// Most of what is measured should be small, some of it large: what is to be reached says which.
function goalOf(row) {
  const found = /^([≤≥])\s*([\d.]+)/.exec(row.to_reach);
  return found && { less: found[1] === "≤", value: Number(found[2]) };
}

function verdict(row, value) {
  const goal = goalOf(row);
  if (!goal) return "";
  return (goal.less ? value <= goal.value : value >= goal.value) ? "better" : "worse";
}

// How the latest value compares with the one before: above 1 is worse, whichever way is up.
function sincePrevious(row) {
  const known = row.values.filter((v) => v !== null);
  if (known.length < 2) return '<span class="muted">–</span>';
  const [before, now] = known.slice(-2);
  const goal = goalOf(row);
  const ratio = goal && !goal.less ? before / now : now / before;
  const style = ratio > FACTOR ? "worse" : ratio < 1 / FACTOR ? "better" : "";
  return `<span class="chip ${style}">×${ratio.toFixed(2)}</span>`;
}

function recordedTable(by, rows) {
  const commits = DATA.recorded.commits;
  const shown = commits.map((commit, place) => ({ ...commit, place })).slice(-COLUMNS);
  const about = (commit) =>
    [commit.date.slice(0, 10) + " " + commit.subject, ...commit.about.filter((a) => a.startsWith(by))].join(
      "\n",
    );
  const heads = shown
    .map((c) => `<th class="number mono" data-tip="${escaped(about(c))}">${escaped(c.commit)}</th>`)
    .join("");
  const body = rows.map((row) => {
    const values = shown
      .map(({ place }) => {
        const value = row.values[place];
        const cell =
          value === null
            ? '<span class="muted">–</span>'
            : `<span class="chip ${verdict(row, value)}">${digits(value)}</span>`;
        return `<td class="number">${cell}</td>`;
      })
      .join("");
    return `<tr class="recorded"><td class="name">${escaped(row.work)}<span class="muted">${escaped(row.measure)}</span><span class="sentence">${escaped(row.sentence)}</span></td>
      <td class="number muted">${escaped(row.to_reach)}</td>${values}
      <td class="number">${sincePrevious(row)}</td><td class="spark">${sparkline(row.values, 150, 30)}</td></tr>`;
  });
  return `<section class="card"><h2>${escaped(by)}<span class="muted">${escaped(TABLES[by] || "")}</span></h2>
    <table><thead><tr><th>work</th><th class="number">to reach</th>${heads}
    <th class="number">÷ previous</th><th>over commits</th></tr></thead>
    <tbody>${body.join("")}</tbody></table></section>`;
}

function recordedPage() {
  const wanted = terms();
  const found = DATA.recorded.rows.filter((row) => {
    const text = [row.by, row.work, row.measure, row.sentence].join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  const tables = [...new Set(found.map((row) => row.by))].map((by) =>
    recordedTable(
      by,
      found.filter((row) => row.by === by),
    ),
  );
  const back = DATA.machines.length
    ? `<p class="back"><a href="${escaped(linkTo(""))}">← all benchmarks</a></p>`
    : "";
  $main.innerHTML = `${back}<h1>Recorded ratios</h1>
    <p class="lead">Kept in the repository, one file for each recorded commit. Green has reached what is to be
    reached. The heading of a column says what it was measured on.</p>
    ${tables.join("") || '<div class="card empty">Nothing found.</div>'}`;
}
