"""Run benchmarks in the current environment and save the results for the dashboard: ``make bench``.

asv runs them. Results are saved under the current commit, unless there are uncommitted changes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from suite import ENVIRONMENTS, HERE, QUICK, RESULTS, ROOT

# Packages that determine our speed, and our peers.
INSTALLED = ("numba", "llvmlite", "numpy", "scipy", "scikit-learn", "fastcluster")


def main() -> int:
    """Run asv with the right options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="all benchmarks, for hours")
    parser.add_argument(
        "--bench",
        action="append",
        metavar="REGEX",
        help="benchmarks by name and parameters, instead of the quick set",
    )
    parser.add_argument("--once", action="store_true", help="each once, to see whether they run")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    patterns = arguments.bench or ([] if arguments.all else QUICK)
    dirty = bool(git("status", "--porcelain", "--", "fastrbhc", "asv_benchmarks/benchmarks"))
    if dirty:
        print("There are changes that are not committed: results are shown, not saved.", flush=True)
    asv("machine", "--yes", quietly=True)  # describes this machine, without its questions
    status = asv(
        *("run", "--show-stderr", "-E", f"existing:{sys.executable}", "--set-commit-hash", "HEAD"),
        *(part for pattern in patterns for part in ("--bench", pattern)),
        *(["--dry-run"] if dirty else []),
        *(["--quick"] if arguments.once else []),
    )
    if not dirty:
        note_versions(git("rev-parse", "HEAD"))
    return status


def git(*arguments: str) -> str:
    """The output of a git command in this tree."""
    told = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return told.stdout.strip()


def asv(*arguments: str, quietly: bool = False) -> int:
    """Run asv, and show its output without the cases that were not requested."""
    with subprocess.Popen(
        [sys.executable, "-m", "asv", *arguments],
        cwd=HERE,
        env=environment(ROOT),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            for line in worth_showing(process.stdout or ()):
                if not quietly:
                    print(line, end="", flush=True)
        except (KeyboardInterrupt, SystemExit):
            # Any other signal would leave the process that runs benchmarks behind.
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
    return process.returncode


def environment(tree: Path, cache: Path | None = None) -> dict[str, str]:
    """Environment variables for measuring the package in a tree, whatever is installed."""
    # asv replaces PYTHONPATH by ASV_PYTHONPATH.
    found = {**os.environ, "ASV_PYTHONPATH": str(tree), "PYTHONPATH": str(tree)}
    return found if cache is None else {**found, "NUMBA_CACHE_DIR": str(cache)}


def worth_showing(lines: Iterable[str]) -> Iterator[str]:
    """The output of asv, without table rows that have no result and without skipped cases."""
    held = ""  # the parameters of a message, until it is clear what the message is
    for line in lines:
        if "For parameters: " in line:
            held = line
            continue
        cells = re.split(r"\s{2,}", line.strip())
        # Parameters are words and integers; a result has a unit or a decimal point.
        result = any(re.search(r"±|\d\.\d|\d[A-Za-z]+$|failed", cell) for cell in cells)
        if "asv: skipped: " not in line and ("n/a" not in cells or result):
            yield held
            yield line
        held = ""


def note_versions(commit: str, where: Path = ENVIRONMENTS, results: Path = RESULTS) -> None:
    """Save the installed versions next to asv's results, which do not include them."""
    noted = json.loads(where.read_text()) if where.exists() else {}
    versions = installed(INSTALLED)
    for path in results.glob(f"*/{commit[:8]}-existing*.json"):
        name = json.loads(path.read_text())["env_name"]
        noted.setdefault(name, {})[commit] = versions
    where.write_text(json.dumps(noted, indent=1))


def installed(packages: Sequence[str]) -> dict[str, str]:
    """Versions of Python and of the packages that are installed."""
    found = {"Python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
