"""Which benchmarks became slower since another commit: ``make bench-compare BASE=main``.

The package of that commit, in its own git worktree, and the package of the working tree run the
same benchmarks in the same environment. They take turns sample by sample, so that other work on the
machine affects both. Only ratios are reported; seconds are not comparable later.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from regressions import FACTOR, Comparison, compare
from run import environment, git
from suite import BENCHMARKS, HERE, QUICK_TO_COMPARE, ROOT, Case, cases, chosen
from tqdm import tqdm

WORKTREES = ROOT / ".asv" / "worktrees"
_LONGEST = 900.0  # seconds for one answer; a setup may compile


class Samples(NamedTuple):
    """The measurements of one case."""

    before: list[float]
    now: list[float]


class Worker:
    """The benchmarks with the package of one tree."""

    def __init__(self, tree: Path, benchmarks: Path, cache: Path | None = None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, HERE / "worker.py", str(theirs.fileno()), tree, benchmarks],
                pass_fds=[theirs.fileno()],
                env=environment(tree, cache),
            )
        self._connection: Any = Connection(ours.detach())

    def ask(self, command: str, argument: str | None = None) -> Any:
        """Send a command and wait for the answer."""
        try:
            self._connection.send((command, argument))
            if not self._connection.poll(_LONGEST):
                raise TimeoutError(f"no answer to {command} {argument or ''}")
            return self._connection.recv()
        except (EOFError, ConnectionError) as error:
            raise SystemExit("a process that runs benchmarks has ended: see above") from error

    def tell(self, command: str) -> None:
        """Send a command that has no answer."""
        self._connection.send((command, None))

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.wait()


def main() -> int:
    """Compare, and exit with 1 if anything became slower."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base", help="commit, branch or tag to compare with")
    parser.add_argument("--factor", type=float, default=FACTOR, help="slower from this ratio on")
    parser.add_argument("--rounds", type=int, default=2, help="processes for each case")
    parser.add_argument("--samples", type=int, default=5, help="measurements for each process")
    parser.add_argument("--bench", action="append", metavar="REGEX", help="not the quick set")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))  # so that the worktree is removed
    patterns = arguments.bench or QUICK_TO_COMPARE
    with _worktree(arguments.base) as tree, _workers(tree) as (base, present):
        print(f"{git('describe', '--always', arguments.base)} against the present tree", flush=True)
        wanted = chosen((case for found in present.ask("list") for case in cases(found)), patterns)
        if not wanted:
            parser.error("no benchmark fits")

        def more(case: Case) -> Samples | None:
            return measure(base, present, case, arguments.samples)

        found = examine(wanted, more, arguments.rounds, arguments.factor)
    for line in report(found, arguments.factor):
        print(line)
    return int(any(one is not None and one.slower for one in found.values()))


def examine(
    wanted: Sequence[Case],
    measure_once: Callable[[Case], Samples | None],
    rounds: int,
    factor: float,
    say: Callable[[str], None] = lambda line: print(line, flush=True),
) -> dict[Case, Comparison | None]:
    """Measure all cases in rounds; cases that look slower then get twice as many further rounds.

    A case is None if it could not be measured on both sides.
    """
    samples: dict[Case, Samples] = defaultdict(lambda: Samples([], []))
    left_out: set[Case] = set()

    def once_more(case: Case) -> None:
        found = measure_once(case)
        if found is None:
            left_out.add(case)
            return
        samples[case].before.extend(found.before)
        samples[case].now.extend(found.now)

    def decision(case: Case) -> Comparison | None:
        return None if case in left_out else compare(*samples[case], factor)

    for number in range(rounds):
        say(f"round {number + 1} of {rounds}: {len(wanted)} cases")
        for case in tqdm(wanted, disable=None, leave=False):
            if case not in left_out:
                once_more(case)
    doubtful = [case for case in wanted if (found := decision(case)) and found.doubtful]
    if doubtful:
        say(f"{2 * rounds} more rounds of what looks slower: {len(doubtful)} cases")
    for _ in range(2 * rounds):
        for case in doubtful:
            once_more(case)
    return {case: decision(case) for case in wanted}


def report(found: dict[Case, Comparison | None], factor: float) -> Iterator[str]:
    """The lines of the report, worst first."""
    known = {case: one for case, one in found.items() if one is not None}
    slower = {case: one for case, one in known.items() if one.slower}
    faster = {case: one for case, one in known.items() if one.faster}
    for title, some, sign in (("slower", slower, -1.0), ("faster", faster, 1.0)):
        for case, one in sorted(some.items(), key=lambda item, sign=sign: sign * item[1].ratio):
            yield f"{title}  × {one.ratio:.2f}  {case}"
    for case in found:
        if case not in known:
            yield f"left out        {case}"
    yield (
        f"{len(known)} cases: {len(slower)} slower and {len(faster)} faster by more than a factor "
        f"of {factor:g}, {len(found) - len(known)} left out"
    )


def measure(base: Worker, present: Worker, case: Case, count: int) -> Samples | None:
    """Values of one case from two fresh processes, one per package, which take turns."""
    answers = [worker.ask("case", case.identifier) for worker in (base, present)]
    sides = zip((base, present), answers, strict=True)
    ready = [worker for worker, (answer, _) in sides if answer == "ready"]
    for side, (answer, message) in zip(("base", "present"), answers, strict=True):
        if answer == "failed":
            print(f"{case} failed ({side}): {message.strip().splitlines()[-1]}", flush=True)
    values: dict[Worker, list[float]] = {base: [], present: []}
    # A process has one peak of memory, and benchmarks of ratios already alternate.
    for number in range(count if case.kind == "time" else 1):
        if len(ready) < 2:
            break
        for worker in (ready, ready[::-1])[number % 2]:
            answer, value = worker.ask("sample")
            if answer == "failed":
                ready.remove(worker)
                print(f"{case} failed: {value.strip().splitlines()[-1]}", flush=True)
                break
            values[worker].append(float(value))
    for worker in ready:
        worker.tell("done")
    return Samples(values[base], values[present]) if len(ready) == 2 else None


@contextlib.contextmanager
def _workers(tree: Path) -> Iterator[tuple[Worker, Worker]]:
    # Kernels of the other commit are kept for the next comparison with it.
    base = Worker(tree, BENCHMARKS, cache=ROOT / ".asv" / "numba")
    present = Worker(ROOT, BENCHMARKS)
    try:
        yield base, present
    finally:
        base.close()
        present.close()


@contextlib.contextmanager
def _worktree(base: str) -> Iterator[Path]:
    """The files of a commit, while they are needed."""
    commit = git("rev-parse", "--verify", f"{base}^{{commit}}")
    tree = WORKTREES / commit[:12]
    shutil.rmtree(tree, ignore_errors=True)
    git("worktree", "prune")
    git("worktree", "add", "--detach", "--quiet", str(tree), commit)
    try:
        # Numba knows compiled kernels by path and time of the source. With the same time for the
        # same commit, comparing with it again need not compile again.
        when = int(git("show", "--no-patch", "--format=%ct", commit))
        for path in (tree / "fastrbhc").rglob("*.py"):
            os.utime(path, (when, when))
        yield tree
    finally:
        git("worktree", "remove", "--force", str(tree))


if __name__ == "__main__":
    sys.exit(main())
