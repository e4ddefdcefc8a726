"""Print a table of speed and memory against peers, measured in one run: ``make bench-peers``.

Times are ratios to work that another library does on the same data in the same process. The two
take turns, after a call that compiles. KD stands for ``scipy.spatial.cKDTree(X)`` and
``.query(X, k=2, workers=2)``: the nearest neighbour of every point, once. A tree needs these and
much more. Real data are read from the directory named by the environment variable FASTRBHC_DATA;
without it, the rows that need real data are skipped.
"""

from __future__ import annotations

import os

# The batched peers are single calls: one thread each, as NumPy runs its ufuncs.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import contextlib
import gc
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.datasets import blobs, counts, normal, proportions, round_blobs, uniform
from benchmarks.memory import resident
from benchmarks.timing import Compared, against_scipy, compare, warm_up
from descent_peers import against_descent
from distributed_peers import against_memory
from graph_peers import against_spanning_tree, against_ward_tree, growth_with_pixels
from product_peers import against_dearest, against_kd_tree, against_ward
from recorded import add_options, commit_of, keep
from rows import Row, load, machine, printed
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree
from sparse_peers import against_snn, without_zeros

import fastrbhc

Size = Callable[[int], int]
PACKAGE = Path(fastrbhc.__file__).resolve().parents[1]
THREADS = "Two threads, unless a row says otherwise."


class Memory(NamedTuple):
    """Time and memory of a tree in its own process."""

    seconds: float
    grown: int  # peak memory in bytes, minus the resident memory before
    rows: int
    merges: int


def main() -> None:
    """Print the table, each row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="numbers of rows, for example 1,6,7")
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows, to try it")
    add_options(parser)
    arguments = parser.parse_args()
    only = [int(number) for number in arguments.only.split(",")] if arguments.only else list(WORK)
    if not set(only) <= set(WORK):
        parser.error(f"--only takes numbers from 1 to {max(WORK)}")
    if arguments.record and arguments.small:
        parser.error("--record keeps numbers that mean something, and those of --small do not")
    try:
        commit = commit_of(PACKAGE) if arguments.record else None
    except ValueError as error:
        parser.error(str(error))
    about = f"{machine()} {THREADS} {load()}".strip()
    print(f"{about}\n")
    if arguments.small:
        print("A hundredth of the rows: the numbers mean nothing.\n")
    rows = list(printed(measured(only, lambda n: n // 100 if arguments.small else n)))
    keep(arguments, commit, "bench-peers", about, rows)


def measured(numbers: Iterable[int], size: Size) -> Iterator[Row]:
    """Rows by number; a row says so if its data or peer is missing."""
    for number in numbers:
        try:
            yield from WORK[number](size)
        except (FileNotFoundError, ImportError) as error:
            yield Row(f"({number})", f"left out: {error}", "", "")


def points_in_the_plane(size: Size) -> Iterator[Row]:
    """1: a million rows of two columns."""
    n = size(1_000_000)
    for name, make in (("uniform", uniform), ("normal", normal)):
        yield against_kd(f"{n:,} × 2 {name}, Ward, whole tree", make(n, 2), "ward", "≤ 1.2")


def points_in_space(size: Size) -> Iterator[Row]:
    """2: a million rows of three columns."""
    n = size(1_000_000)
    yield against_kd(f"{n:,} × 3 normal, Ward, whole tree", normal(n, 3), "ward", "≤ 1.2")


def five_columns(size: Size) -> Iterator[Row]:
    """3: where kd-trees become slow."""
    n = size(200_000)
    yield against_kd(f"{n:,} × 5 normal, Ward, whole tree", normal(n, 5), "ward", "≤ 1.8")


def ten_million(size: Size) -> Iterator[Row]:
    """4: time and memory of many points."""
    work = "{:,} × 2 uniform, Ward, whole tree"
    n = size(10_000_000)
    yield against_kd(work.format(n), uniform(n, 2), "ward", "≤ 1.3")
    for many, goal in ((10_000_000, "≤ 110 bytes per row"), (1_000_000, "≤ 110 MB")):
        n = size(many)
        found = in_a_process(uniform, n, 2)
        each, megabytes = found.grown / n, found.grown / 1e6
        yield Row(
            work.format(n),
            "memory at its peak, over the input",
            f"{each:.0f} bytes per row, {megabytes:.0f} MB",
            goal,
            found.seconds,
            value=megabytes if goal.endswith("MB") else each,
        )


def growth(size: Size) -> Iterator[Row]:
    """5: ten times as many rows."""
    n = size(1_000_000)
    many, few = uniform(n, 2), uniform(n // 10, 2)
    warm_up(many, "ward")
    found = compare(lambda: tree(many, "ward"), lambda: tree(few, "ward"))
    work = f"{n // 10:,} to {n:,} × 2 uniform, Ward"
    yield of_ratio(work, "growth of the time", found, "≤ 12")


def against_fastcluster(size: Size) -> Iterator[Row]:
    """6: Ward's method from rows, by another library."""
    import fastcluster

    n = size(20_000)
    for d, goal in ((2, "≥ 60"), (10, "≥ 8"), (50, "≥ 6")):
        X = normal(n, d)
        warm_up(X, "ward")
        found = compare(
            lambda X=X: tree(X, "ward"), lambda X=X: fastcluster.linkage_vector(X, "ward")
        )
        measure = "fastcluster.linkage_vector (one thread) ÷ time"
        yield inverse(of_ratio(f"{n:,} × {d} normal, Ward", measure, found, goal), found)


def counts_greedily(size: Size) -> Iterator[Row]:
    """7: a family with logarithms."""
    n = size(100_000)
    work = f"{n:,} × 3 counts of 20 clusters, Poisson, exact greedy"
    yield against_kd(work, counts(n, 3), "poisson", "≤ 8", algorithm="greedy")


def shapes_greedily(size: Size) -> Iterator[Row]:
    """8: full covariance on the kd-tree."""
    n = size(100_000)
    work = f"{n:,} × 3 of 20 blobs, full covariance, exact greedy"
    yield against_kd(work, blobs(n, 3), "gaussian", "≤ 15", algorithm="greedy")


def shapes_by_scanning(size: Size) -> Iterator[Row]:
    """9: full covariance with too many columns for a kd-tree."""
    n = size(10_000)
    work = f"{n:,} × 10 of 20 blobs, full covariance, exact greedy"
    peer = batched(np.linalg.cholesky, 20_000, 10)
    measure = "time ÷ n²/2 batched Cholesky of 10 × 10"
    yield against_pairs(work, blobs(n, 10), "gaussian", peer, 20_000, measure, "≤ 0.5")


def digits(size: Size) -> Iterator[Row]:
    """10: full covariance with many columns, where factorisations stop early."""
    n = size(3_000)
    X = real("mnist_7x7")["X"][:n] / 255.0
    work = f"{n:,} × 49 MNIST, full covariance, exact greedy"
    peer = batched(np.linalg.slogdet, 1_000, 49)
    measure = "time ÷ n²/2 batched log determinants of 49 × 49"
    yield against_pairs(work, X, "gaussian", peer, 1_000, measure, "≤ 0.03")


def visual_words(size: Size) -> Iterator[Row]:
    """11: counts with a thousand columns."""
    file = real("caltech101_bovw1000")
    X = csr_matrix((file["data"], file["indices"], file["indptr"]), shape=file["shape"])
    wanted = np.isin(file["classes"][file["y"]], ("airplanes", "Motorbikes", "Faces_easy"))
    X = X[wanted].astype(np.float64).toarray()
    X = X[np.linspace(0, len(X) - 1, size(len(X))).astype(int)]
    values = np.random.default_rng(0).random(10_000_000) + 0.5
    work = f"{len(X):,} × {X.shape[1]:,} Caltech visual words, multinomial, exact greedy"
    measure = f"time ÷ n²/2 × {X.shape[1]:,} of NumPy's x·log x"
    yield against_pairs(
        work,
        X,
        "multinomial",
        lambda: values * np.log(values),
        values.size // X.shape[1],
        measure,
        "≤ 0.3",
    )


def two_threads(size: Size) -> Iterator[Row]:
    """12: the gain from a second thread."""
    n = size(1_000_000)
    X = uniform(n, 2)
    warm_up(X, "ward")
    found = compare(lambda: tree(X, "ward"), lambda: tree(X, "ward", n_jobs=1))
    row = of_ratio(f"{n:,} × 2 uniform, Ward", "one thread ÷ two threads", found, "≥ 1.6")
    yield inverse(row, found)


def with_threshold(size: Size) -> Iterator[Row]:
    """13: a tree that is not built to the end."""
    n = size(1_000_000)
    X = uniform(n, 2)
    warm_up(X, "ward")
    left = n // 1_000
    threshold = float(np.sort(tree(X, "ward").heights)[n - left])
    remaining = tree(X, "ward", threshold=threshold).n_trees
    found = compare(lambda: tree(X, "ward", threshold=threshold), lambda: tree(X, "ward"))
    work = f"{n:,} × 2 uniform, Ward, a threshold that leaves {remaining:,} clusters"
    yield of_ratio(work, "time ÷ whole tree", found, "≤ 1")


def real_points(size: Size) -> Iterator[Row]:
    """14: millions of points of real data."""
    for name, what in (("gshhg_rivers_2m5", "river points"), ("photo_pixels_4m", "photo pixels")):
        n = size(len(real(name)["X"]))
        found = in_a_process(real_rows, name, n)
        done = "yes" if found.merges == found.rows - 1 else "no"
        reached = f"{done}: {found.merges:,} merges, {found.grown / 1e6:,.0f} MB over the input"
        work = f"{found.rows:,} {what}, Ward, whole tree"
        yield Row(work, "finishes", reached, "yes", found.seconds)


def audits(size: Size) -> Iterator[Row]:
    """15: every violation of reducibility counted."""
    n = size(100_000)
    for name, X, family, goal in (
        (f"{n:,} × 3 normal, Ward", normal(n, 3), "ward", "≤ 2"),
        (f"{n:,} × 3 counts of 20 clusters, Poisson", counts(n, 3), "poisson", "≤ 2"),
        (f"{n:,} × 3 of 20 blobs, full covariance", blobs(n, 3), "gaussian", "≤ 4"),
        (f"{n // 5:,} × 10, multinomial", proportions(n // 5, 10), "multinomial", "≤ 4"),
    ):
        warm_up(X, family)
        warm_up(X, family, audit=True)
        found = compare(
            lambda X=X, family=family: tree(X, family, audit=True),
            lambda X=X, family=family: tree(X, family),
        )
        yield of_ratio(f"{name}, exact audit", "time ÷ time without audit", found, goal)


def small_trees(size: Size) -> Iterator[Row]:
    """16: few rows, as in a loop over many data sets."""
    for many, goal in ((50, "≤ 3"), (200, "≤ 1.5"), (1_000, "≤ 0.3")):
        n = max(size(many), 10)
        found = against_scipy(normal(n, 3))
        yield of_ratio(f"{n:,} × 3 normal, Ward", "time ÷ scipy linkage", found, goal)


def sparse_counts(size: Size) -> Iterator[Row]:
    """17: counts that are mostly zero."""
    yield from against_snn(size, real, of_ratio)


def full_counts(size: Size) -> Iterator[Row]:
    """18: a sparse matrix without zeros."""
    yield from without_zeros(size, real, of_ratio)


def mixed_columns(size: Size) -> Iterator[Row]:
    """19: columns of different kinds, against Ward's method."""
    yield from against_ward(size, of_ratio)


def mixed_columns_and_kd(size: Size) -> Iterator[Row]:
    """20: more of them, against nearest neighbours and against their dearest kind."""
    yield from against_kd_tree(size, of_ratio)
    yield from against_dearest(size, of_ratio)


def beyond_memory(size: Size) -> Iterator[Row]:
    """21: rows in a file, cell by cell."""
    yield from against_memory(size, of_ratio)


def pixels(size: Size) -> Iterator[Row]:
    """23: images, of which only adjacent pixels merge."""
    yield from against_ward_tree(size, of_ratio)
    yield from growth_with_pixels(size, of_ratio)
    yield from against_spanning_tree(lambda n: real_rows("photo_pixels_4m", n), size, of_ratio)


def approximate_trees(size: Size) -> Iterator[Row]:
    """22: wide rows, by near neighbours."""
    yield from against_descent(size, real, of_ratio)


def structure(size: Size) -> Iterator[Row]:
    """24: many columns in which clusters are apart."""
    import fastcluster

    n = size(20_000)
    X = round_blobs(n, 50, 50)
    warm_up(X, "ward")
    found = compare(lambda: tree(X, "ward"), lambda: fastcluster.linkage_vector(X, "ward"))
    measure = "fastcluster.linkage_vector (one thread) ÷ time"
    yield inverse(of_ratio(f"{n:,} × 50 of 50 blobs, Ward", measure, found, "≥ 6"), found)
    values = np.random.default_rng(0).random(10_000_000) + 0.5
    yield against_pairs(
        f"{n:,} × 50 counts of 30 clusters, Poisson, exact greedy",
        counts(n, 50, 30),
        "poisson",
        lambda: values * np.log(values),
        values.size // 50,
        "time ÷ n²/2 × 50 of NumPy's x·log x",
        "≤ 0.3",
    )


WORK: dict[int, Callable[[Size], Iterator[Row]]] = {
    1: points_in_the_plane,
    2: points_in_space,
    3: five_columns,
    4: ten_million,
    5: growth,
    6: against_fastcluster,
    7: counts_greedily,
    8: shapes_greedily,
    9: shapes_by_scanning,
    10: digits,
    11: visual_words,
    12: two_threads,
    13: with_threshold,
    14: real_points,
    15: audits,
    16: small_trees,
    17: sparse_counts,
    18: full_counts,
    19: mixed_columns,
    20: mixed_columns_and_kd,
    21: beyond_memory,
    22: approximate_trees,
    23: pixels,
    24: structure,
}


def tree(X: Any, family: str, *, n_jobs: int = 2, **options: Any) -> fastrbhc.Dendrogram:
    """Our work."""
    return fastrbhc.linkage(X, family, n_jobs=n_jobs, **options)


def kd(X: Any) -> None:
    """The nearest neighbour of every row, by SciPy."""
    cKDTree(X).query(X, k=2, workers=2)


def batched(function: Callable[[Any], object], count: int, d: int) -> Callable[[], object]:
    """One call for many d × d matrices."""
    rows = np.random.default_rng(0).normal(size=(count, d, 2 * d))
    matrices = rows @ rows.transpose(0, 2, 1)
    return lambda: function(matrices)


def against_kd(work: str, X: Any, family: str, goal: str, **options: Any) -> Row:
    """A row of the table: our time divided by that of SciPy's kd-tree."""
    warm_up(X, family, **options)
    found = compare(lambda: tree(X, family, **options), lambda: kd(X))
    return of_ratio(work, "time ÷ KD", found, goal)


def against_pairs(
    work: str,
    X: Any,
    family: str,
    peer: Callable[[], object],
    batch: int,
    measure: str,
    goal: str,
) -> Row:
    """A row of the table: our time divided by that of one evaluation per pair of rows."""
    warm_up(X, family, algorithm="greedy")
    batches = len(X) ** 2 / 2 / batch
    found = compare(lambda: tree(X, family, algorithm="greedy"), peer, batches)
    return of_ratio(work, measure, found, goal)


def of_ratio(work: str, measure: str, found: Compared, goal: str) -> Row:
    """A row of the table."""
    return Row(work, measure, f"{found.ratio:.3g}", goal, found.seconds, found.runs, found.ratio)


def inverse(row: Row, found: Compared) -> Row:
    """The same, for a measure where larger is better."""
    return row._replace(reached=f"{1.0 / found.ratio:.3g}", value=1.0 / found.ratio)


def real(name: str) -> Any:
    """A file of real data."""
    folder = os.environ.get("FASTRBHC_DATA")
    if not folder:
        raise FileNotFoundError("FASTRBHC_DATA does not say where the real data are")
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"FASTRBHC_DATA has no {path.name}")
    return np.load(path)


def real_rows(name: str, n: int) -> Any:
    """The first rows of a file, as floats."""
    return np.ascontiguousarray(real(name)["X"][:n], dtype=np.float64)


def in_a_process(make: Callable[..., Any], *arguments: Any) -> Memory:
    """Time and memory of the tree of make(*arguments), by Ward's method, in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(memory, make, *arguments).result()


def memory(make: Callable[..., Any], *arguments: Any) -> Memory:
    """The same, in this process."""
    X = make(*arguments)
    warm_up(X, "ward")
    gc.collect()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, begin = resident("VmRSS"), time.perf_counter()
    merges = tree(X, "ward").heights.size
    return Memory(time.perf_counter() - begin, resident("VmHWM") - before, len(X), merges)


if __name__ == "__main__":
    main()
