"""Tables that are saved in the repository for the dashboard, one file per recorded commit.

The results of asv are valid for one machine only, and git ignores them. Ratios are meaningful on
other machines too. So the ratios of selected commits are saved here, and a fresh clone has a
history to show.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rows import Row
from sentences import sentence
from suite import HERE, ROOT

RECORDED = HERE / "recorded"


class Commit(NamedTuple):
    """The commit that was measured."""

    commit: str  # abbreviated
    date: str  # of the commit, so that files can be sorted without git
    subject: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all tables share."""
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the rows in asv_benchmarks/recorded, in the file of the commit",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to a file too")
    parser.add_argument("--note", default="", help="a remark that is kept with the rows")


def commit_of(package: Path) -> Commit:
    """The commit of a checkout; ValueError if the package has uncommitted changes."""
    if _git(package, "status", "--porcelain", "--", "fastrbhc"):
        raise ValueError("fastrbhc has changes that no commit has: commit them before you record")
    told = _git(package, "log", "-1", "--format=%h%x00%cI%x00%s").split("\0")
    return Commit(*told)


def _git(where: Path, *arguments: str) -> str:
    git = ["git", "-c", "core.abbrev=7", *arguments]
    told = subprocess.run(git, cwd=where, capture_output=True, text=True)
    if told.returncode:
        raise ValueError(f"git does not know the commit: {told.stderr.strip()}")
    return told.stdout.strip()


def run_of(by: str, about: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Rows as they are saved: values and targets."""
    kept = [
        {
            "work": row.work,
            "measure": row.measure,
            "value": float(f"{row.value:.3g}"),
            "to_reach": row.to_reach,
        }
        for row in rows
        if row.value is not None
    ]
    return {"by": by, "about": about, "rows": kept}


def keep(
    arguments: argparse.Namespace, commit: Commit | None, by: str, about: str, rows: Sequence[Row]
) -> None:
    """Save the rows of a table as the options say."""
    run = run_of(by, " ".join(filter(None, [about, arguments.note])), rows)
    if arguments.json:
        arguments.json.write_text(as_text({"runs": [run]}), encoding="utf-8")
    if commit is not None:
        path = record(commit, run)
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        print(f"\n{len(run['rows'])} rows kept in {shown}")


def record(commit: Commit, run: dict[str, Any], folder: Path | None = None) -> Path:
    """Add rows to the file of a commit. They replace rows of the same name."""
    folder = RECORDED if folder is None else folder
    path = folder / f"{commit.commit}.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": []}
    new = {_name(run["by"], row) for row in run["rows"]}
    for earlier in found["runs"]:
        earlier["rows"] = [row for row in earlier["rows"] if _name(earlier["by"], row) not in new]
    runs = [earlier for earlier in found["runs"] if earlier["rows"]]
    folder.mkdir(exist_ok=True)
    path.write_text(as_text({**commit._asdict(), "runs": [*runs, run]}), encoding="utf-8")
    return path


def as_text(file: dict[str, Any]) -> str:
    """JSON with one line per row, so that changes are readable."""
    rows = {f"@{k}@": run["rows"] for k, run in enumerate(file["runs"])}
    runs = [{**run, "rows": f"@{k}@"} for k, run in enumerate(file["runs"])]
    text = json.dumps({**file, "runs": runs}, ensure_ascii=False, indent=1)
    for place, some in rows.items():
        lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in some)
        text = text.replace(f'"{place}"', f"[\n{lines}\n   ]")
    return f"{text}\n"


def history(folder: Path = RECORDED) -> dict[str, Any]:
    """The whole history: commits in order, and for each row its values by commit."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    files.sort(key=lambda file: file["date"])
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for place, file in enumerate(files):
        for run in file["runs"]:
            for row in run["rows"]:
                found = rows.setdefault(
                    _name(run["by"], row),
                    {"by": run["by"], **row, "values": [None] * len(files)},
                )
                found["values"][place] = row["value"]
                found["to_reach"] = row["to_reach"]  # the newest one
    for found in rows.values():
        del found["value"]
        found["sentence"] = sentence(found["measure"])
    commits = [
        {
            **{field: file[field] for field in Commit._fields},
            "about": [f"{run['by']}: {run['about']}" for run in file["runs"]],
        }
        for file in files
    ]
    return {"commits": commits, "rows": list(rows.values())}


def _name(by: str, row: dict[str, Any]) -> tuple[str, str, str]:
    return by, row["work"], row["measure"]
