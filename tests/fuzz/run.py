"""Run random cases for some minutes: ``PYTHONPATH=tests python -m fuzz.run --minutes 5``.

Each worker is a process. It is killed if a case takes too long, and another one goes on with the
next case, so that neither a crash nor a hang ends the run.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from fastrbhc._engine.compilations import listening
from fuzz.cases import draw
from fuzz.checks import check
from fuzz.shrink import code_of, shrink

# Seconds that a case may take, without compiling, and that one compilation may take.
_CASE_SECONDS, _COMPILING_SECONDS = 20.0, 600.0
_SHRUNK_EACH = 2  # failures of the same kind that are made small
_SEEDS_SHOWN = 8


@dataclass
class Failure:
    """A case that failed."""

    seed: int
    kind: str
    family: str
    text: str
    code: str = ""

    @property
    def signature(self):
        return self.kind, self.family


@dataclass
class Tally:
    """Counts of what was run."""

    cases: int = 0
    counts: collections.Counter = field(default_factory=collections.Counter)

    def add(self, other):
        self.cases += other.cases
        self.counts.update(other.counts)


def note(tally, case, report):
    """Count a case by what it was."""
    tally.cases += 1
    count = tally.counts
    count["family" if not case.model else "model", case.family] += 1
    count["outcome", report.outcome] += 1
    count["scale", case.scale] += 1
    count["form", case.form] += 1
    count["pattern", case.pattern] += 1
    rows = len(case.X)
    bounds = (2, 16, 61, 250, 801)
    words = ("1", "2 to 15", "16 to 60", "61 to 249", "250 to 800", "more")
    count["rows", words[sum(rows >= bound for bound in bounds)]] += 1
    count["columns", f"{case.X.shape[1]}"] += 1
    if not case.model:
        count["algorithm", case.algorithm] += 1
        count["neighbors", case.neighbors] += 1
        count["threads", str(case.n_jobs)] += 1
        count["weights", "none" if case.weights is None else "given"] += 1
        by_name = isinstance(case.threshold, str)
        given = case.threshold if by_name else "none" if case.threshold is None else "given"
        count["threshold", given] += 1
        count["smoothing", "auto" if case.left_to_data else "other"] += 1
        count["audit", str(case.audit)] += 1
        count["missing", case.missing] += 1
    for name in case.patches:
        count["limits lowered", name] += 1
    for name in case.comparisons:
        count["comparison", name] += 1
    count["total", "calls"] += report.calls
    count["total", "merges certified"] += report.merges
    count["total", "of these too near 0 for a relative error"] += report.doubtful


# Workers.


def work(seeds, place, pipe, log):
    """Check cases and report.

    ``place`` is shared: the seed it is at, since when, compilations under way, cases not yet
    reported.
    """
    with open(log, "w") as lines:
        faulthandler.enable(lines)
        faulthandler.register(signal.SIGUSR1, lines, all_threads=True)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

        def begun():
            place[2] += 1.0
            place[1] = time.monotonic()

        def finished():
            place[2] -= 1.0
            place[1] = time.monotonic()

        place[2] += 1.0
        check(draw(0))  # compiles or loads what all cases need
        place[2] -= 1.0
        shrunk = collections.Counter()
        tally, sent = Tally(), time.monotonic()
        with listening(begun, finished):
            for seed in seeds:
                place[0], place[1] = seed, time.monotonic()
                case = draw(seed)
                report = check(case)
                note(tally, case, report)
                place[3] = tally.cases
                for problem in report.problems:
                    failure = failure_of(case, report, problem)
                    shrunk[failure.signature] += 1
                    if shrunk[failure.signature] <= _SHRUNK_EACH:
                        failure.code = shrunk_code(case, problem.kind, place)
                    pipe.send(failure)
                if time.monotonic() - sent > 2.0:
                    pipe.send(tally)
                    place[3] = 0.0
                    tally, sent = Tally(), time.monotonic()
        pipe.send(tally)
        place[3] = 0.0
        pipe.send(None)


def failure_of(case, report, problem):
    return Failure(case.seed, problem.kind, case.family, problem.text)


def shrunk_code(case, kind, place):
    """The shrunk case as code, and what is wrong with it."""
    last = {}

    def fails(candidate):
        place[1] = time.monotonic()
        try:
            report = check(candidate)
        except Exception:  # not a case that could have been drawn
            return False
        found = [problem for problem in report.problems if problem.kind == kind]
        if found:
            last["text"], last["threshold"] = found[0].text, report.threshold
        return bool(found)

    small = shrink(case, fails)
    fails(small)
    comparisons = f"\n# comparisons: {', '.join(small.comparisons)}" if small.comparisons else ""
    return f"{code_of(small, last.get('threshold'))}{comparisons}\n# {last.get('text', kind)}"


class Worker:
    """A process, and what is known of it."""

    def __init__(self, context, number, seeds, directory):
        self.number, self.seeds, self.directory = number, seeds, directory
        self.place = context.Array("d", [-1.0, time.monotonic(), 0.0, 0.0], lock=False)
        self.log = directory / f"worker-{number}-{time.monotonic_ns()}"
        self.pipe, other = context.Pipe(duplex=False)
        self.process = context.Process(
            target=work, args=(seeds, self.place, other, self.log), daemon=True
        )
        self.process.start()
        other.close()
        self.finished = False

    @property
    def too_long(self):
        limit = _COMPILING_SECONDS if self.place[2] > 0.0 else _CASE_SECONDS
        return time.monotonic() - self.place[1] > limit

    def stop(self):
        """Have it write where it is, and end it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGUSR1)
            time.sleep(0.3)
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()

    @property
    def trace(self):
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text().splitlines()[-25:])
        return ""

    def rest(self):
        """The seeds after the one at which it ended."""
        at = int(self.place[0])
        return self.seeds[self.seeds.index(at) + 1 :] if at in self.seeds else self.seeds[:0]


def run(first, n_cases, n_workers, minutes, out=sys.stdout):
    """Run cases on some workers; returns counts and failures."""
    context = multiprocessing.get_context("fork")
    end = time.monotonic() + 60.0 * minutes if minutes else None
    seeds = range(first, first + (n_cases or 10**9))
    total, failures = Tally(), []
    by_signature = collections.Counter()
    began = shown = time.monotonic()

    def failed(failure):
        failures.append(failure)
        by_signature[failure.signature] += 1
        if by_signature[failure.signature] <= _SHRUNK_EACH:
            show(failure, out)

    with tempfile.TemporaryDirectory() as directory:
        n_workers = min(n_workers, len(seeds))
        workers = [
            Worker(context, k, seeds[k::n_workers], Path(directory)) for k in range(n_workers)
        ]
        try:
            while workers and not (end and time.monotonic() > end):
                ready = wait([w.pipe for w in workers], timeout=0.5)
                for worker in list(workers):
                    if worker.pipe in ready:
                        _receive(worker, total, failed)
                    if worker.finished:
                        worker.process.join()
                        workers.remove(worker)
                        continue
                    hangs = worker.too_long
                    if hangs or not worker.process.is_alive():
                        if hangs:
                            worker.stop()
                        _receive(worker, total, failed)
                        if worker.finished:
                            workers.remove(worker)
                            continue
                        failed(_lost(worker, hangs, total))
                        workers.remove(worker)
                        if len(rest := worker.rest()):
                            again = Worker(context, worker.number, rest, Path(directory))
                            workers.append(again)
                if time.monotonic() - shown > 60.0:
                    shown = time.monotonic()
                    print(
                        f"{total.cases:,} cases in {(shown - began) / 60:.1f} minutes, "
                        f"{len(failures)} failures",
                        file=out,
                        flush=True,
                    )
        finally:
            for worker in workers:
                if worker.process.is_alive():
                    os.kill(worker.process.pid, signal.SIGKILL)
                    worker.process.join()
                _receive(worker, total, failed)
                total.cases += int(worker.place[3])
    return total, failures, time.monotonic() - began


def _receive(worker, total, failed):
    with contextlib.suppress(EOFError, OSError):
        while worker.pipe.poll():
            message = worker.pipe.recv()
            if message is None:
                worker.finished = True
            elif isinstance(message, Failure):
                failed(message)
            else:
                total.add(message)


def ends_badly(case, seconds=_CASE_SECONDS / 2):
    """Whether a case hangs or crashes, tried in a process of its own."""
    context = multiprocessing.get_context("fork")
    place = context.Array("d", [0.0, time.monotonic(), 0.0], lock=False)
    process = context.Process(target=_alone, args=(case, place), daemon=True)
    process.start()
    while process.is_alive():
        process.join(0.05)
        limit = _COMPILING_SECONDS if place[2] > 0.0 else seconds
        if time.monotonic() - place[1] > limit:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            return True
    return process.exitcode != 0


def _alone(case, place):
    def begun():
        place[2] += 1.0

    def finished():
        place[2] -= 1.0
        place[1] = time.monotonic()

    with listening(begun, finished), contextlib.suppress(Exception):
        check(case)


def shrink_lost(failures, seconds=120.0):
    """Code for one hang or crash of each kind, made smaller by processes of their own."""
    seen = set()
    for failure in failures:
        ended = failure.kind.startswith(("hang", "crash"))
        if ended and failure.signature not in seen:
            seen.add(failure.signature)
            small = shrink(draw(failure.seed), ends_badly, seconds, most=60)
            failure.code = code_of(small)
            yield failure


def _lost(worker, hangs, total):
    """The failure of a case that ended its worker."""
    seed = int(worker.place[0])
    case = draw(max(seed, 0))
    what = "hang" if hangs else f"crash (exit code {worker.process.exitcode})"
    total.cases += 1 + int(worker.place[3])  # these are missing in the counts by kind
    return Failure(seed, what, case.family, worker.trace, code_of(case))


def show(failure, out):
    print(
        f"\n--- {failure.kind}: {failure.family}\n{failure.text}\n"
        f"PYTHONPATH=tests python -m fuzz.run --seed {failure.seed} --cases 1",
        file=out,
    )
    if failure.code:
        print(f"\n{failure.code}\n", file=out)
    out.flush()


def summary(total, failures, seconds, out=sys.stdout):
    """Print what was run, and what failed."""
    groups: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for (group, name), count in sorted(total.counts.items()):
        groups[group][name] = count
    rate = 1000.0 * seconds / max(total.cases, 1)
    print(f"\n{total.cases:,} cases in {seconds / 60:.1f} minutes, {rate:.1f} ms each", file=out)
    for group, names in groups.items():
        print(f"{group}: " + ", ".join(f"{n} {c:,}" for n, c in names.items()), file=out)
    seeds = collections.defaultdict(list)
    for failure in failures:
        seeds[failure.signature].append(failure.seed)
    print(f"{len(failures)} failures of {len(seeds)} kinds", file=out)
    for (kind, family), some in sorted(seeds.items()):
        shown = " ".join(map(str, some[:_SEEDS_SHOWN]))
        print(f"  {len(some):6,} {kind}: {family}: seeds {shown}", file=out)
    out.flush()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, help="stop after so many")
    parser.add_argument("--cases", type=int, help="stop after so many")
    parser.add_argument("--seed", type=int, help="of the first case; by default from the clock")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    if options.minutes is None and options.cases is None:
        parser.error("say --minutes or --cases")
    first = int(time.time()) * 1000 if options.seed is None else options.seed
    print(f"seed {first}", flush=True)
    found = run(first, options.cases, options.workers, options.minutes)
    for failure in shrink_lost(found[1]):
        show(failure, sys.stdout)
    summary(*found)
    return 1 if found[1] else 0


if __name__ == "__main__":
    sys.exit(main())
