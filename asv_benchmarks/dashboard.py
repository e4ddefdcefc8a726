"""One page of all results, which needs no network: ``make dashboard``.

It shows the results that asv saved on this machine, and the ratios in the repository (recorded.py).

asv's own page loads jQuery, flot and Bootstrap from the network and stays blank without it. This
one is a single file with the results inside, and a little JavaScript that draws them as SVG.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import math
import string
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from recorded import RECORDED, history
from regressions import FACTOR
from suite import BENCHMARKS, ENVIRONMENTS, HERE, RESULTS, ROOT, cases

TITLE = "fastrbhc benchmarks"
PAGE = HERE / "page"
SCRIPTS = ("graphs.js", "measured.js", "overview.js", "detail.js", "recorded.js", "page.js")
# Versions of the formats that asv writes; others may mean something else.
_BENCHMARKS_FORMAT, _RESULTS_FORMAT = 2, 2


class Commit(NamedTuple):
    """A commit that results belong to."""

    hash: str
    date: int  # milliseconds since 1970
    subject: str


class Saved(NamedTuple):
    """One benchmark in one file of results."""

    version: str
    started_at: int
    values: dict[tuple[str, ...], float | None]  # by parameters
    spreads: dict[tuple[str, ...], list[float] | None]  # lower and upper quartile


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="where asv saved them")
    parser.add_argument("--recorded", type=Path, default=RECORDED, help="ratios that are kept")
    parser.add_argument("--to", type=Path, default=ROOT / ".asv" / "dashboard" / "index.html")
    arguments = parser.parse_args()
    try:
        data = collect(arguments.results, kept=arguments.recorded)
    except FileNotFoundError as error:
        print(f"no results yet ({error}): `make bench` measures some", file=sys.stderr)
        return 1
    arguments.to.parent.mkdir(parents=True, exist_ok=True)
    arguments.to.write_text(page(data), encoding="utf-8")
    print(arguments.to.resolve().as_uri())
    return 0


def page(data: dict[str, Any]) -> str:
    """The page as text."""
    template = string.Template((PAGE / "page.html").read_text(encoding="utf-8"))
    scripts = [(PAGE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    # Inside a script element only "</" can end the text too early.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", r"<\/")
    return template.substitute(
        title=data["title"],
        made=datetime.date.today(),
        style=(PAGE / "page.css").read_text(encoding="utf-8"),
        script="\n".join(scripts),
        data=text,
    )


def collect(results: Path, repository: Path = ROOT, kept: Path = RECORDED) -> dict[str, Any]:
    """The data of the page, from the directories of results and of recorded ratios."""
    listed = results / "benchmarks.json"
    benchmarks = _described(listed) if listed.exists() else {}
    recorded = history(kept)
    places: dict[tuple[str, str], dict[str, Any]] = {}
    for folder in sorted(path.parent for path in results.glob("*/machine.json")):
        about = json.loads((folder / "machine.json").read_text())
        for path in sorted(set(folder.glob("*.json")) - {folder / "machine.json"}):
            file = json.loads(path.read_text())
            if file.get("version") != _RESULTS_FORMAT:
                raise ValueError(f"{path}: format {file.get('version')} of results is not known")
            python = "" if "/" in file["python"] or file["python"] == "same" else file["python"]
            place = places.setdefault(
                (about["machine"], python),
                {"about": about, "python": python, "files": [], "versions": {}},
            )
            place["files"].append(file)
            place["versions"] |= _versions(results, file)
    if not places and not recorded["commits"]:
        raise FileNotFoundError(f"{results} has no results of any commit")
    subjects = _subjects(
        {file["commit_hash"] for place in places.values() for file in place["files"]}, repository
    )
    machines = [_machine(place, benchmarks, subjects) for place in places.values()]
    measured = set().union(*(machine["values"] for machine in machines))
    return {
        "title": TITLE,
        "factor": FACTOR,
        "modules": _modules(),
        "benchmarks": [benchmark for name, benchmark in benchmarks.items() if name in measured],
        "machines": machines,
        "recorded": recorded,
    }


def _described(path: Path) -> dict[str, dict[str, Any]]:
    """The benchmarks as asv found them, each with a sentence from its docstring."""
    file = json.loads(path.read_text())
    if file.pop("version") != _BENCHMARKS_FORMAT:
        raise ValueError(f"{path}: this format of benchmarks is not known")
    classes = _class_docstrings()
    return {
        name: {
            "name": name,
            "module": name.split(".")[0],
            "about": " ".join(
                filter(None, [_docstring(found["code"]), classes.get(name.rpartition(".")[0])])
            ),
            "kind": found["type"],
            "unit": found["unit"],
            "version": found["version"],
            "param_names": found["param_names"],
            "params": found["params"],
            "code": found["code"],
        }
        for name, found in sorted(file.items())
    }


def _docstring(code: str) -> str:
    """The first line of documentation of the first function in a piece of code."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef):
            return (ast.get_docstring(node) or "").split("\n")[0]
    return ""


def _sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(BENCHMARKS.glob("*.py")):
        yield path.stem, ast.parse(path.read_text(encoding="utf-8"))


def _modules() -> dict[str, str]:
    return {name: (ast.get_docstring(tree) or "").split("\n")[0] for name, tree in _sources()}


def _class_docstrings() -> dict[str, str]:
    return {
        f"{name}.{node.name}": (ast.get_docstring(node) or "").split("\n")[0]
        for name, tree in _sources()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def _versions(results: Path, file: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Versions that were installed when a file of results was written, if recorded."""
    noted = results.parent / ENVIRONMENTS.name
    if not noted.exists():
        return {}
    found = json.loads(noted.read_text()).get(file["env_name"], {}).get(file["commit_hash"])
    return {file["commit_hash"]: found} if found else {}


def _subjects(hashes: set[str], repository: Path) -> dict[str, tuple[int, str]]:
    """The position in history and the subject of commits, if the repository has them."""
    found = {}
    for commit in hashes:
        git = ["git", "log", "-1", "--format=%s", commit]
        told = subprocess.run(git, cwd=repository, capture_output=True, text=True)
        if told.returncode == 0:
            found[commit] = told.stdout.strip()
    git = ["git", "rev-list", "--topo-order", "--reverse", *found]
    order = []
    if found:
        told = subprocess.run(git, cwd=repository, capture_output=True, text=True, check=True)
        order = [commit for commit in told.stdout.split() if commit in found]
    return {commit: (order.index(commit), subject) for commit, subject in found.items()}


def _machine(
    place: dict[str, Any],
    benchmarks: dict[str, dict[str, Any]],
    subjects: dict[str, tuple[int, str]],
) -> dict[str, Any]:
    """All results of one machine and one kind of environment, by commit."""
    dates = {file["commit_hash"]: file["date"] for file in place["files"]}
    known = {commit: subjects.get(commit, (-1, "")) for commit in dates}
    hashes = sorted(dates, key=lambda commit: (dates[commit], known[commit][0]))
    commits = [Commit(commit, dates[commit], known[commit][1]) for commit in hashes]
    newest: dict[str, dict[str, Saved]] = defaultdict(dict)  # by benchmark and commit
    for file in place["files"]:
        for name, saved in _saved(file):
            current = name in benchmarks and saved.version == benchmarks[name]["version"]
            before = newest[name].get(file["commit_hash"])
            if current and (before is None or before.started_at < saved.started_at):
                newest[name][file["commit_hash"]] = saved
    values, spreads = {}, {}
    for name, by_commit in newest.items():
        described = {**benchmarks[name], "type": ""} if name in benchmarks else None
        if described is None:
            continue
        wanted = [case.parameters for case in cases(described)]
        rows = [by_commit.get(commit.hash) for commit in commits]
        table = [row and [row.values.get(one) for one in wanted] for row in rows]
        if any(value is not None for row in table if row for value in row):
            values[name] = table
            spreads[name] = [row and [row.spreads.get(one) for one in wanted] for row in rows]
    about = place["about"]
    ram = about.get("ram", "")
    installed = place["versions"].get(hashes[-1], {})
    return {
        "name": about["machine"],
        "cpu": about.get("cpu", ""),
        "num_cpu": about.get("num_cpu", ""),
        "ram": f"{int(ram) / 1e9:.0f} GB" if ram.isdigit() else ram,
        "os": about.get("os", ""),
        "python": installed.get("Python", place["python"]),
        "installed": {name: found for name, found in installed.items() if name != "Python"},
        "commits": [commit._asdict() for commit in commits],
        "values": values,
        "spreads": spreads,
    }


def _saved(file: dict[str, Any]) -> Iterator[tuple[str, Saved]]:
    """The benchmarks in one file of results."""
    for name, row in file["results"].items():
        found = dict(zip(file["result_columns"], row, strict=False))  # the end may be left out
        described = {"name": name, "params": found["params"], "type": "", "unit": ""}
        parameters = [case.parameters for case in cases(described)]
        missing = [None] * len(parameters)
        lower = found.get("stats_q_25") or missing
        upper = found.get("stats_q_75") or missing
        values = [_number(value) for value in found["result"] or missing]
        pairs = [
            None if value is None or low is None or high is None else [low, high]
            for value, low, high in zip(values, lower, upper, strict=True)
        ]
        yield (
            name,
            Saved(
                found.get("version", ""),
                found.get("started_at") or 0,
                dict(zip(parameters, values, strict=True)),
                dict(zip(parameters, pairs, strict=True)),
            ),
        )


def _number(value: Any) -> float | None:
    """A result, or None if the benchmark was skipped or failed."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


if __name__ == "__main__":
    sys.exit(main())
