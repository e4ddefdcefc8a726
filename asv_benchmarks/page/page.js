// Which page is shown, and what the whole of it listens to.

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: decodeURIComponent(path), query: new URLSearchParams(query || "") };
}

// The search is part of the address, so that what was found can be sent to others.
function searched() {
  const { name, query } = route();
  if ($search.value) query.set("q", $search.value);
  else query.delete("q");
  history.replaceState(null, "", address(name, query));
  show();
}

function address(name, query) {
  return `#/${name}${query.size ? "?" + query : ""}`;
}

function show() {
  const { name, query } = route();
  const benchmark = DATA.benchmarks.find((b) => b.name === name);
  facts();
  if (document.activeElement !== $search) $search.value = query.get("q") || "";
  // A fresh clone has nothing but what the repository keeps.
  const recorded = name === RECORDED || !DATA.machines.length;
  if (recorded) recordedPage();
  else if (benchmark) detail(benchmark, query);
  else overview();
  const title = recorded ? "Recorded ratios" : benchmark && benchmark.name;
  document.title = title ? `${title} · ${DATA.title}` : DATA.title;
}

DATA.machines.forEach((m, k) =>
  $machine.add(new Option([m.name, m.python && "Python " + m.python].filter(Boolean).join(", "), k)),
);
document.getElementById("recorded").hidden = !DATA.recorded.rows.length;
$machine.hidden = DATA.machines.length < 2;
$machine.onchange = show;
$search.oninput = searched;
window.onhashchange = () => {
  window.scrollTo(0, 0);
  show();
};
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== $search) {
    event.preventDefault();
    $search.focus();
  }
  if (event.key === "Escape" && document.activeElement === $search) {
    $search.value = "";
    searched();
  }
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
