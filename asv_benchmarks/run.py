"""Run benchmarks in the present environment and save the results for the dashboard: ``make bench``.

asv itself is what runs them. Results are saved under the present commit, so they are not if
there are changes that no commit has.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from suite import HERE, QUICK, ROOT


def main() -> int:
    """Run asv with the right options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="all benchmarks; takes hours")
    parser.add_argument(
        "--bench",
        action="append",
        metavar="REGEX",
        help="benchmarks by name and parameters, instead of the quick set",
    )
    parser.add_argument("--once", action="store_true", help="each once, to see whether they run")
    arguments = parser.parse_args()
    patterns = arguments.bench or ([] if arguments.all else QUICK)
    describe_machine()
    return subprocess.run(
        [*command(patterns, uncommitted()), *(["--quick"] if arguments.once else [])],
        cwd=HERE,
        env=environment(ROOT),
    ).returncode


def command(patterns: list[str] | tuple[str, ...], dirty: bool) -> list[str]:
    """asv's command line."""
    if dirty:
        print("There are changes that are not committed: the results are shown, not saved.")
    return [
        *(sys.executable, "-m", "asv", "run", "--show-stderr"),
        *("-E", f"existing:{sys.executable}", "--set-commit-hash", "HEAD"),
        *(["--dry-run"] if dirty else []),
        *(part for pattern in patterns for part in ("--bench", pattern)),
    ]


def environment(tree: Path) -> dict[str, str]:
    """Variables for processes that measure the package in a tree, whatever is installed."""
    return {**os.environ, "ASV_PYTHONPATH": str(tree), "PYTHONPATH": str(tree)}


def uncommitted() -> bool:
    """Whether what is measured differs from the present commit."""
    git = ["git", "status", "--porcelain", "--", "fastrbhc", "asv_benchmarks/benchmarks"]
    return bool(subprocess.run(git, cwd=ROOT, capture_output=True, check=True).stdout)


def describe_machine() -> None:
    """Have asv note what this machine is, without the questions it would ask."""
    subprocess.run(
        [sys.executable, "-m", "asv", "machine", "--yes"],
        cwd=HERE,
        check=True,
        stdout=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    sys.exit(main())
