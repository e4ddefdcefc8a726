"""Print the table of speed in the README, in seconds and megabytes: ``make readme-speed``.

Every number is from a process of its own, which first warms up on some of the rows. Memory is what
the process grew by at its peak. Libraries take turns, but for those that took a minute, and the
median of the turns is printed.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.datasets import counts, normal, topics, uniform
from benchmarks.memory import resident
from rows import load, machine

import fastrbhc

Work = Callable[[Any], object]
_PATIENCE = 900.0  # seconds for a process
_ENOUGH = 60.0  # seconds after which a library has no further turn


class Task(NamedTuple):
    """Rows, and what each library does with them; a text says why it does nothing."""

    name: str
    rows: Callable[[int], Any]  # by number
    n: int
    by: dict[str, Work | str]


def scipy_ward(X: Any) -> object:
    """The tree by SciPy."""
    return import_module("scipy.cluster.hierarchy").linkage(X, "ward")


def sklearn_ward(X: Any) -> object:
    """The tree by scikit-learn."""
    return import_module("sklearn.cluster").ward_tree(X)


def fastcluster_ward(X: Any) -> object:
    """The tree by fastcluster, in memory that grows with n."""
    return import_module("fastcluster").linkage_vector(X, "ward")


def sklearn_hdbscan(X: Any) -> object:
    """Clusters of density by scikit-learn."""
    return import_module("sklearn.cluster").HDBSCAN(copy=True).fit(X)


def hdbscan(X: Any) -> object:
    """Clusters of density by the package hdbscan, in this process."""
    return import_module("hdbscan").HDBSCAN(core_dist_n_jobs=1).fit(X)


def ours(family: str) -> Work:
    """The whole tree by fastrbhc, with two threads."""
    return lambda X: fastrbhc.linkage(X, family, n_jobs=2)


def image(n: int) -> Any:
    """Pixels of a square image of slowly changing colours, with noise."""
    side = round(n**0.5)
    y, x = np.mgrid[:side, :side] / side
    waves = np.stack([np.sin(9 * x + 4 * y), np.cos(7 * x * y), np.sin(5 * y)], axis=-1)
    return (waves + normal(side * side, 3).reshape(side, side, 3) / 10).reshape(-1, 3)


def _side(X: Any) -> int:
    return round(len(X) ** 0.5)


def ours_on_grid(X: Any) -> object:
    """The tree of pixels by fastrbhc."""
    return fastrbhc.linkage(X, "ward", connectivity=fastrbhc.grid(_side(X), _side(X)), n_jobs=2)


def sklearn_on_grid(X: Any) -> object:
    """The tree of pixels by scikit-learn."""
    extraction = import_module("sklearn.feature_extraction.image")
    graph = extraction.grid_to_graph(_side(X), _side(X))
    return import_module("sklearn.cluster").ward_tree(X, connectivity=graph)


def words(n: int) -> Any:
    """Words of texts on 20 topics, a sparse matrix."""
    return topics(n, 5_000, 20, 100)


NO_COUNTS, NO_GRAPH = "no counts", "no graph"
NEED_DENSE = ("SciPy", "scikit-learn", "fastcluster")
DENSE = {
    "SciPy": scipy_ward,
    "scikit-learn": sklearn_ward,
    "fastcluster": fastcluster_ward,
    "HDBSCAN (scikit-learn)": sklearn_hdbscan,
    "hdbscan": hdbscan,
}
LARGE = {
    "SciPy": "4 TB",
    "scikit-learn": "4 TB",
    "fastcluster": "time n²",
    "HDBSCAN (scikit-learn)": sklearn_hdbscan,
    "hdbscan": hdbscan,
}
TASKS = [
    Task("20,000 × 2, Ward", lambda n: normal(n, 2), 20_000, {"fastrbhc": ours("ward"), **DENSE}),
    Task("20,000 × 50, Ward", lambda n: normal(n, 50), 20_000, {"fastrbhc": ours("ward"), **DENSE}),
    Task(
        "1,000,000 × 2, Ward",
        lambda n: uniform(n, 2),
        1_000_000,
        {"fastrbhc": ours("ward")} | LARGE,
    ),
    Task(
        "100,000 × 3, Poisson counts",
        lambda n: counts(n, 3),
        100_000,
        {"fastrbhc": ours("poisson")} | dict.fromkeys(DENSE, NO_COUNTS),
    ),
    Task(
        "512 × 512 pixels along their grid, Ward",
        image,
        512 * 512,
        {"fastrbhc": ours_on_grid}
        | dict.fromkeys(DENSE, NO_GRAPH)
        | {"scikit-learn": sklearn_on_grid},
    ),
    Task(
        "10,000 × 5,000 sparse words, multinomial",
        words,
        10_000,
        {"fastrbhc": ours("multinomial")} | DENSE | dict.fromkeys(NEED_DENSE, "no sparse rows"),
    ),
]
LIBRARIES = ["fastrbhc", *DENSE]


class Measured(NamedTuple):
    """What one call took."""

    seconds: float
    processor_seconds: float
    megabytes: float


def main() -> None:
    """Print the table, a row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="numbers of rows, for example 1,3")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--processor-time", action="store_true", help="for a machine that others use as well"
    )
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # a task and a library
    arguments = parser.parse_args()
    if arguments.one:
        number, library = arguments.one
        print(json.dumps(measured(TASKS[int(number)], library)))
        return
    chosen = (
        [int(k) - 1 for k in arguments.only.split(",")] if arguments.only else range(len(TASKS))
    )
    clock = "processor time of all threads" if arguments.processor_time else "elapsed time"
    turns = f"Medians of up to {arguments.turns} turns, {clock}."
    print(f"{machine()} {', '.join(versions())}. {turns} {load()}\n")
    print(f"| whole tree | {' | '.join(LIBRARIES)} |\n|---|{'---|' * len(LIBRARIES)}")
    for number in chosen:
        cells = row(number, arguments.turns, arguments.processor_time)
        print(f"| {TASKS[number].name} | {' | '.join(cells)} |", flush=True)


def versions() -> Iterator[str]:
    """Versions of the peers that `machine` does not name."""
    for name in ("scikit-learn", "fastcluster", "hdbscan"):
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"without {name}"


def row(number: int, turns: int, processor_time: bool) -> list[str]:
    """The cells of a task, one for each library."""
    by = TASKS[number].by
    found: dict[str, list[Measured]] = {name: [] for name in by}
    missing = {name: reason for name, reason in by.items() if isinstance(reason, str)}
    for _ in range(turns):
        for name in by.keys() - missing.keys():
            if sum(one.seconds for one in found[name]) > _ENOUGH:
                continue
            try:
                found[name].append(in_a_process(number, name))
            except subprocess.TimeoutExpired:
                missing[name] = f"> {_PATIENCE:.0f} s"
            except (subprocess.CalledProcessError, json.JSONDecodeError):
                missing[name] = "not installed, or it failed"
    which = Measured._fields.index("processor_seconds" if processor_time else "seconds")
    return [missing.get(name) or cell(found[name], which) for name in LIBRARIES]


def cell(found: list[Measured], which: int) -> str:
    """Medians as text."""
    seconds = statistics.median(one[which] for one in found)
    megabytes = statistics.median(one.megabytes for one in found)
    return (
        f"{seconds:.2g} s, {megabytes:,.0f} MB"
        if seconds < 10
        else f"{seconds:.0f} s, {megabytes:,.0f} MB"
    )


def in_a_process(number: int, library: str) -> Measured:
    """One call in a fresh process."""
    command = [sys.executable, __file__, "--one", str(number), library]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE)
    return Measured(*json.loads(done.stdout.splitlines()[-1]))


def measured(task: Task, library: str) -> Measured:
    """One call in this process, after one with some of the rows."""
    work = task.by[library]
    assert callable(work)
    if library == "fastrbhc":  # all kernels: for a few rows, and for many
        work(task.rows(7_000 if task.n > 7_000 else task.n))
    work(task.rows(400))
    X = task.rows(task.n)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # gives back what the warm-up left
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident("VmRSS")
    begin, processor_begin = time.perf_counter(), time.process_time()
    work(X)
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor_begin
    return Measured(seconds, processor, (resident("VmHWM") - before) / 1e6)


if __name__ == "__main__":
    main()
