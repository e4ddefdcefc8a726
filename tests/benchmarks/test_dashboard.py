"""The page of benchmark results: what it reads, and what it draws in a browser without network."""

from __future__ import annotations

import json
import re
from itertools import product

import numpy as np
import pytest
from dashboard import collect, main, page
from recorded import Commit, record, run_of
from rows import Row

COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a"]
COLUMNS += ["stats_ci_99_b", "stats_q_25", "stats_q_75"]

# Four commits; the last makes trees of "gaussian" half as slow again.
HASHES = [digit * 40 for digit in "abcd"]
SPEED = {"gaussian": [1.0, 1.0, 0.8, 1.2], "poisson": [1.0, 1.01, 1.0, 1.0]}
ROWS = ["1000", "10000", "100000"]


def seconds(family, rows, commit):
    """A tree whose time grows as n^1.5."""
    return 1e-7 * int(rows) ** 1.5 * SPEED[family.strip("'")][commit]


BENCHMARKS = {
    "linkage.Made.time_tree": {
        "params": [["'gaussian'", "'poisson'"], ROWS],
        "param_names": ["family", "n"],
        "type": "time",
        "unit": "seconds",
        "values": lambda commit: [
            seconds(family, n, commit) for family, n in product(["gaussian", "poisson"], ROWS)
        ],
    },
    "memory.Made.peakmem_tree": {
        "params": [],
        "param_names": [],
        "type": "peakmemory",
        "unit": "bytes",
        "values": lambda commit: [2.5e8 + 1e6 * commit],
    },
    "ratios.Made.track_peers": {
        "params": [["'scipy'", "'</script>'", "'absent'"]],
        "param_names": ["peer"],
        "type": "track",
        "unit": "our time / peer's",
        "values": lambda commit: [0.5, 0.25, float("nan")],
    },
}


def described(name):
    code = f'class Made:\n    def {name.split(".")[-1]}(self):\n        """Says what."""'
    found = {key: value for key, value in BENCHMARKS[name].items() if key != "values"}
    return {**found, "name": name, "version": "1", "code": code}


def file_of(commit, values, version="1", started_at=0):
    """A file as asv saves it; quartiles lie a hundredth apart from the medians of times."""
    results = {}
    for name, found in values.items():
        timed = BENCHMARKS[name]["type"] == "time"
        quartiles = [[factor * value for value in found] for factor in (0.99, 1.01)]
        spread = quartiles if timed else []
        row = [found, BENCHMARKS[name]["params"], version, started_at, 1.0, None, None, *spread]
        results[name] = row
    return {
        "version": 2,
        "commit_hash": HASHES[commit],
        "env_name": "existing",
        "date": 1_700_000_000_000 + 86_400_000 * commit,
        "params": {},
        "python": "/some/python",
        "requirements": {},
        "result_columns": COLUMNS,
        "results": results,
    }


@pytest.fixture
def results(tmp_path):
    """Results of four commits, as asv lays them out."""
    folder = tmp_path / ".asv" / "results"
    machine = {"machine": "made-up", "cpu": "Abacus", "num_cpu": "2", "ram": "16000000000"}
    (folder / "made-up").mkdir(parents=True)
    (folder / "made-up" / "machine.json").write_text(json.dumps({**machine, "version": 1}))
    listed = {name: described(name) for name in BENCHMARKS}
    (folder / "benchmarks.json").write_text(json.dumps({**listed, "version": 2}))
    for commit in range(len(HASHES)):
        values = {name: found["values"](commit) for name, found in BENCHMARKS.items()}
        save(folder, f"{HASHES[commit][:8]}-existing", file_of(commit, values))
    noted = {"existing": {HASHES[-1]: {"Python": "3.11.7", "numba": "0.68.1"}}}
    (tmp_path / ".asv" / "environments.json").write_text(json.dumps(noted))
    return folder


def save(folder, name, file):
    (folder / "made-up" / f"{name}.json").write_text(json.dumps(file))


# ---- what is read --------------------------------------------------------------------------------


def test_values_by_commit_and_case(results, tmp_path):
    data = collect(results, repository=tmp_path)
    (machine,) = data["machines"]
    assert [commit["hash"] for commit in machine["commits"]] == HASHES
    computed = machine["values"]["linkage.Made.time_tree"]
    reference = [BENCHMARKS["linkage.Made.time_tree"]["values"](commit) for commit in range(4)]
    np.testing.assert_array_equal(computed, reference)
    np.testing.assert_allclose(
        machine["spreads"]["linkage.Made.time_tree"],
        np.stack([0.99 * np.array(reference), 1.01 * np.array(reference)], axis=-1),
    )
    assert machine["values"]["ratios.Made.track_peers"][0] == [0.5, 0.25, None]
    assert machine["ram"] == "16 GB"
    assert machine["python"] == "3.11.7"
    assert machine["installed"] == {"numba": "0.68.1"}
    assert data["benchmarks"][0]["about"] == "Says what."


def test_results_of_another_version_of_a_benchmark_are_left_out(results, tmp_path):
    values = {"memory.Made.peakmem_tree": [1.0]}
    save(results, f"{HASHES[0][:8]}-existing", file_of(0, values, version="0"))
    (machine,) = collect(results, repository=tmp_path)["machines"]
    assert machine["values"]["memory.Made.peakmem_tree"][0] is None
    assert machine["values"]["memory.Made.peakmem_tree"][1] == [2.51e8]


def test_the_newest_of_two_results_of_a_commit_is_taken(results, tmp_path):
    values = {"memory.Made.peakmem_tree": [7.0]}
    save(results, f"{HASHES[1][:8]}-elsewhere", file_of(1, values, started_at=99))
    (machine,) = collect(results, repository=tmp_path)["machines"]
    assert machine["values"]["memory.Made.peakmem_tree"][1] == [7.0]
    assert machine["values"]["linkage.Made.time_tree"][1] is not None


def test_parameters_that_came_later(results, tmp_path):
    early = file_of(0, {"linkage.Made.time_tree": [3.0, 4.0]})
    early["results"]["linkage.Made.time_tree"][1] = [["'poisson'"], ["10000", "1000"]]
    save(results, f"{HASHES[0][:8]}-existing", early)
    (machine,) = collect(results, repository=tmp_path)["machines"]
    first = machine["values"]["linkage.Made.time_tree"][0]
    assert first == [None, None, None, 4.0, 3.0, None]


def test_formats_that_are_not_known_are_refused(results, tmp_path):
    save(results, "odd", {**file_of(0, {}), "version": 3})
    with pytest.raises(ValueError, match="format 3"):
        collect(results, repository=tmp_path)


def test_without_results_it_says_how_to_get_some(tmp_path, capsys, monkeypatch):
    empty = ["--results", str(tmp_path), "--recorded", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["dashboard.py", *empty])
    assert main() == 1
    assert "make bench" in capsys.readouterr().err


@pytest.fixture
def kept(tmp_path):
    """Ratios of three recorded commits, the last of which makes Ward quicker."""
    folder = tmp_path / "recorded"
    for number, (ward, peer) in enumerate([(4.8, 30.0), (4.0, 60.0), (1.0, 20.0)]):
        commit = Commit("abc"[number] * 7, f"2026-01-0{number + 1}T10:00:00+00:00", f"No. {number}")
        rows = [Row("Ward <b>", "time ÷ Y", "", "≤ 1.2", value=ward)]
        record(commit, run_of("bench-compile", f"Abacus {number}", rows), folder)
        if number != 1:
            rows = [Row("20,000 × 2", "fastcluster ÷ time", "", "≥ 25", value=peer)]
            record(commit, run_of("bench-peers", "Abacus", rows), folder)
    return folder


def test_recorded_ratios_are_enough_for_a_page(kept, tmp_path):
    data = collect(tmp_path / "absent", repository=tmp_path, kept=kept)
    assert data["machines"] == data["benchmarks"] == []
    assert [commit["commit"][0] for commit in data["recorded"]["commits"]] == ["a", "b", "c"]
    assert [row["values"] for row in data["recorded"]["rows"]] == [
        [4.8, 4.0, 1.0],
        [30.0, None, 20.0],
    ]


# ---- what is drawn -------------------------------------------------------------------------------


def test_the_page_refers_to_nothing_outside(results, tmp_path):
    text = page(collect(results, repository=tmp_path))
    assert not re.findall(r"(?:https?:|ftp:)?//[a-z0-9.-]+\.[a-z]{2,}", text)
    assert not re.findall(r"\bsrc\s*=|@import|url\(|\bfetch\(|XMLHttpRequest", text)
    assert set(re.findall(r'<(?:a|link)\b[^>]*href="([^"$]*)"', text)) == {
        "#/",
        "#/recorded",
        "data:,",
    }
    assert "default-src 'none'" in text  # browsers refuse what the page might ask for


@pytest.fixture
def written(results, tmp_path):
    path = tmp_path / "index.html"
    path.write_text(page(collect(results, repository=tmp_path)), encoding="utf-8")
    return path


def vertices(element):
    return np.array(re.findall(r"[ML]([\d.-]+) ([\d.-]+)", element["d"]), dtype=float)


def assert_drawn_to_scale(pixels, values):
    """One straight relation takes all values to pixels, to a twentieth of one."""
    design = np.column_stack([values, np.ones(len(values))])
    solution = np.linalg.lstsq(design, pixels, rcond=None)[0]
    np.testing.assert_allclose(design @ solution, pixels, atol=0.05)
    assert abs(solution[0]) * np.ptp(values) > 50.0  # and they are seen to differ


def test_overview(written, browser):
    elements = browser(written)
    rows = elements.of("tr", class_="link")
    assert [row["data-name"] for row in rows] == list(BENCHMARKS)
    assert len(elements.of("svg", class_="sparkline")) == 3
    trees, memory, ratios = (row["text"] for row in rows)
    assert "2.53 ms" not in trees  # the latest, not the best
    assert "3.16 ms – 3.79 s" in trees
    assert "253 MB" in memory
    assert "0.25 – 0.5" in ratios
    # Half as slow again for three of six cases: by their geometric mean, and at the worst.
    assert f"×{1.5**0.5:.2f}" in trees
    assert "to ×1.50" in trees
    assert f"×{253 / 252:.2f}" in memory
    facts = elements.of("div", id="facts")[0]["text"]
    assert all(part in facts for part in ("made-up", "Abacus", "16 GB", "numba 0.68.1", "dddddddd"))
    assert "3 slower or larger, 0 better" in elements.of("span", class_="counts")[0]["text"]


def test_graphs_over_parameters_and_commits(written, browser):
    elements = browser(written, "#/linkage.Made.time_tree?commits=values&scale=log")
    graphs = elements.of("svg", class_="graph")
    assert [graph["data-graph"] for graph in graphs] == ["parameter", "commits"]
    assert (graphs[0]["data-x"], graphs[0]["data-y"]) == ("log", "log")
    # Paths that belong to a case, without the dotted ones of the previous commit.
    drawn = [path for path in elements.of("path", class_="line") if "data-case" in path]
    latest = {path["data-case"]: path for path in drawn if "earlier" not in path["class"]}
    rows = np.log([float(n) for n in ROWS])
    lines = [vertices(latest[family]) for family in ("gaussian", "poisson")]
    values = [[seconds(family, n, 3) for n in ROWS] for family in ("gaussian", "poisson")]
    assert_drawn_to_scale(np.concatenate(lines)[:, 0], np.tile(rows, 2))
    assert_drawn_to_scale(np.concatenate(lines)[:, 1], np.log(np.ravel(values)))
    names = [(family, n) for family in ("gaussian", "poisson") for n in ROWS]
    lines = [vertices(latest[f"{family}, n = {n}"]) for family, n in names]
    values = [[seconds(family, n, commit) for commit in range(4)] for family, n in names]
    assert_drawn_to_scale(np.concatenate(lines)[:, 0], np.tile(np.arange(4), 6))
    assert_drawn_to_scale(np.concatenate(lines)[:, 1], np.log(np.ravel(values)))
    legend = elements.of("div", class_="legend")[0]["text"]
    assert legend.count("n1.50") == 2  # time grows as n to the 1.5
    # Points lie above one another only if values do: up is slower.
    by_commit = vertices(latest["gaussian, n = 1000"])[:, 1]
    assert by_commit[3] < by_commit[0] < by_commit[2]
    assert len(elements.of("circle", class_="point")) == 2 * 3 + 6 * 4


def test_changes_as_ratios_to_the_first(written, browser):
    elements = browser(written, "#/linkage.Made.time_tree?commits=ratios&p.n=1000&scale=linear")
    line = {path.get("data-case"): path for path in elements.of("path", class_="line")}["gaussian"]
    assert_drawn_to_scale(vertices(line)[:, 1], np.array(SPEED["gaussian"]))


def test_search_finds_cases(written, browser):
    elements = browser(written, "#/?q=gaussian%2010000")
    (row,) = elements.of("tr", class_="link")
    assert row["data-name"] == "linkage.Made.time_tree"
    assert f"{1e3 * seconds('gaussian', '10000', 3):.0f} ms – 3.79 s" in row["text"]
    assert "×1.50" in row["text"]


def test_typing_and_clicking(written, browser):
    actions = """<script>
      document.querySelector("th[data-sort=latest]").click();  // the largest number first
      document.querySelector("button[data-kind=time]").click();
      const field = document.getElementById("search");
      field.focus();
      field.value = "poisson";
      field.dispatchEvent(new Event("input"));
      document.body.dataset.address = location.hash;
      document.body.dataset.listed = document.querySelectorAll("tr.link").length;
      document.querySelector("tr.link").click();
    </script></body>"""
    written.write_text(written.read_text().replace("</body>", actions))
    elements = browser(written)
    (body,) = elements.of("body")
    assert body["data-address"] == "#/?q=poisson"
    assert body["data-listed"] == "1"
    # The page of the benchmark is opened, with the cases that were searched for.
    assert elements.of("h1")[0]["text"] == "linkage.Made.time_tree"
    cases = {path.get("data-case") for path in elements.of("path", class_="line")}
    assert {"n = 1000", "n = 10000", "n = 100000"} <= cases
    assert not [case for case in cases if case and "gaussian" in case]


def test_one_commit_is_enough_for_a_page(results, tmp_path, browser):
    for commit in HASHES[:-1]:
        (results / "made-up" / f"{commit[:8]}-existing.json").unlink()
    path = tmp_path / "index.html"
    path.write_text(page(collect(results, repository=tmp_path)), encoding="utf-8")
    elements = browser(path, "#/ratios.Made.track_peers")
    bars = elements.of("span", class_="fill")
    # A name that looks like the end of the script does no harm.
    assert [bar["data-case"] for bar in bars] == ["peer=scipy", "peer=</script>"]
    assert [bar["style"] for bar in bars] == ["width:100.00%", "width:50.00%"]
    assert not elements.of("svg", class_="graph")


@pytest.mark.parametrize("fresh", [True, False])
def test_recorded_ratios(fresh, results, kept, tmp_path, browser):
    path = tmp_path / "index.html"
    saved = tmp_path / "absent" if fresh else results
    path.write_text(page(collect(saved, repository=tmp_path, kept=kept)), encoding="utf-8")
    # A fresh clone has nothing else to show.
    elements = browser(path, "" if fresh else "#/recorded")
    assert elements.of("h1")[0]["text"] == "Recorded ratios"
    ward, peer = elements.of("tr", class_="recorded")
    assert all(text in ward["text"] for text in ("Ward <b>", "≤ 1.2", "4.8", "4", "1", "×0.25"))
    assert "×1.50" in peer["text"]  # a third less of what should be large
    chips = [
        (chip["text"], chip["class"].split()[1:]) for chip in elements.of("span", class_="chip")
    ]
    assert chips[:4] == [
        ("4.8", ["worse"]),
        ("4", ["worse"]),
        ("1", ["better"]),
        ("×0.25", ["better"]),
    ]
    assert chips[4:] == [("30", ["better"]), ("20", ["worse"]), ("×1.50", ["worse"])]
    lines = [len(vertices(path)) for path in elements.of("path", class_="line")]
    assert lines == [3, 2]
    (head,) = [th for th in elements.of("th") if th["text"] == "ccccccc"][:1]
    assert "Abacus 2" in head["data-tip"]
    assert ("hidden" in elements.of("div", id="facts")[0]) == fresh


def test_search_finds_recorded_ratios(results, kept, tmp_path, browser):
    path = tmp_path / "index.html"
    path.write_text(page(collect(results, repository=tmp_path, kept=kept)), encoding="utf-8")
    (row,) = browser(path, "#/recorded?q=fastcluster").of("tr", class_="recorded")
    assert "20,000 × 2" in row["text"]
    overview = browser(path)
    assert len(overview.of("tr", class_="link")) == 3
    assert "hidden" not in overview.of("a", id="recorded")[0]
