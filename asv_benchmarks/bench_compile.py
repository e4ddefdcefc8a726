"""Print a table of the cost of first calls, measured in one run: ``make bench-compile``.

Every first call runs in its own process with an empty NUMBA_CACHE_DIR, so that it compiles. Neither
the import nor the preparation of the data is timed. Y is the yardstick, the time to compile 21
small kernels that have nothing to do with ours. It is measured in separate processes before and
after each measurement. The second process uses the cache that the first one left.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.processes import (
    CALLS,
    ELAPSED,
    PROCESSOR,
    Cold,
    Setting,
    another_number_of_columns,
    cold,
    second_process,
)
from recorded import add_options, commit_of, keep
from rows import Row, load, machine, printed
from suite import ROOT

COLD = "first call, empty cache ÷ Y"
COLUMNS = "first call less a later call ÷ Y"
SECOND = "first call less a later call, full cache, seconds"
SECOND_PROCESSES = 5


class Run:
    """The setting of one run, and the number of repetitions."""

    def __init__(self, setting: Setting, repeats: int) -> None:
        self.setting = setting
        self.repeats = repeats
        self.yardsticks: list[float] = []

    @contextlib.contextmanager
    def caches(self) -> Iterator[list[Path]]:
        """Empty folders, one per repetition."""
        with tempfile.TemporaryDirectory() as folder:
            yield [Path(folder, str(repetition)) for repetition in range(self.repeats)]

    def row(self, work: str, measure: str, goal: str, found: list[Cold]) -> Row:
        """A row of the table: seconds divided by Y."""
        self.yardsticks += [one.yardstick for one in found]
        ratio, seconds = median(one.ratio for one in found), median(one.seconds for one in found)
        return Row(work, measure, f"{ratio:.3g}", goal, seconds, len(found), ratio)

    def first_call(self, name: str, goal: str, *, second: bool = False) -> Iterator[Row]:
        """Rows of the table: a first call and, optionally, its overhead in the next process."""
        call = CALLS[name]
        with self.caches() as caches:
            found = [cold(call, cache, self.setting) for cache in caches]
            yield self.row(name, COLD, goal, found)
            if not second:
                return
            count = SECOND_PROCESSES * self.repeats
            left = second_process(call, caches[0], self.setting, count)
        for work, seconds in (
            (f"{name}, second process", left.whole),
            (f"{name}, second process, Numba set up", left.ours),
        ):
            yield Row(work, SECOND, f"{seconds:.2g}", "≤ 0.15 s", seconds, count, seconds)


def ward(run: Run) -> Iterator[Row]:
    """1: the method that most users try first."""
    yield from run.first_call("Ward 1,000 × 3", "≤ 1.2", second=True)


def poisson(run: Run) -> Iterator[Row]:
    """2: a family with logarithms."""
    yield from run.first_call("Poisson 1,000 × 3", "≤ 1.7", second=True)


def full_covariance(run: Run) -> Iterator[Row]:
    """3: a family with matrices."""
    yield from run.first_call("full covariance 1,000 × 3", "≤ 2.5", second=True)


def audit(run: Run) -> Iterator[Row]:
    """4: enough rows for all kernels, with an audit."""
    yield from run.first_call("full covariance 10,000 × 3, audit", "≤ 4")


def columns(run: Run) -> Iterator[Row]:
    """5: the same with another number of columns."""
    work = "Ward 10,000 × 4, once 10,000 × 3 is compiled"
    with run.caches() as caches:
        found = [another_number_of_columns(cache, run.setting) for cache in caches]
    yield run.row(work, COLUMNS, "≤ 0.6", found)


def bayesian(run: Run) -> Iterator[Row]:
    """6: the original algorithm."""
    yield from run.first_call("BHC gaussian 1,000 × 3", "≤ 3")


WORK: dict[int, Callable[[Run], Iterator[Row]]] = {
    1: ward,
    2: poisson,
    3: full_covariance,
    4: audit,
    5: columns,
    6: bayesian,
}


def main() -> None:
    """Print the table, each row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="numbers of rows, for example 1,4")
    parser.add_argument("--repeats", type=int, default=1, help="how often each row is measured")
    parser.add_argument(
        "--package", type=Path, default=ROOT, help="another checkout, whose fastrbhc is measured"
    )
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="count the processor's time, not the clock's: for a machine that others use",
    )
    add_options(parser)
    arguments = parser.parse_args()
    only = [int(number) for number in arguments.only.split(",")] if arguments.only else list(WORK)
    if not set(only) <= set(WORK):
        parser.error(f"--only takes numbers from 1 to {max(WORK)}")
    if arguments.repeats < 1:
        parser.error("--repeats takes 1 or more")
    package = arguments.package.resolve()
    try:
        commit = commit_of(package) if arguments.record else None
    except ValueError as error:
        parser.error(str(error))
    about = f"{machine()} {load()}".strip()
    if arguments.processor_time:
        about += " Processor time, as others used the machine."
    print(f"{about}\n")
    clock = PROCESSOR if arguments.processor_time else ELAPSED
    run = Run(Setting(package, clock), arguments.repeats)
    rows = list(printed(row for number in only for row in WORK[number](run)))
    low, high = min(run.yardsticks), max(run.yardsticks)
    yardstick = f"Y: {median(run.yardsticks):.1f} s ({low:.1f} to {high:.1f})."
    print(f"\n{yardstick}")
    keep(arguments, commit, "bench-compile", f"{about} {yardstick}", rows)


if __name__ == "__main__":
    main()
