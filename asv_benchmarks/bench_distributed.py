"""Measure trees beyond memory and beyond one process: the figures of docs/beyond-one-machine.md.

Every measurement prints one line. Sizes are options, so that all of it can be tried small;
docs/benchmarks.md has an example.

Files of rows and merges go to the folder --scratch, and are removed afterwards: 16 bytes per row
for the rows, about 80 for the tree. Real data are read from the directory named by the environment
variable FASTRBHC_DATA.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench_peers import PACKAGE, real
from benchmarks.memory import resident
from benchmarks.timing import warm_up
from recorded import add_options, commit_of, keep
from rows import Row, load, machine, printed

import fastrbhc
from fastrbhc import distributed
from fastrbhc._engine.agglomeration.cells import Border, merge_locally
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc.families import as_family, geometry_of

# Rows that are written to a file at a time.
_AT_A_TIME = 5_000_000
# Rows of a first tree, so that kernels are compiled and loaded before anything is timed.
_FIRST = 400_000
# Rows of cells whose share is compared.
_SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)


class Spent(NamedTuple):
    """What a tree took in its own process."""

    seconds: float
    peak: int  # resident memory of the process at its peak, in bytes
    n_left: int  # clusters that all cells have left
    n_cells: int


def main() -> None:
    """Print the measurements, each as soon as it is made."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    names = ", ".join(WORK)
    parser.add_argument("--only", nargs="+", choices=list(WORK), metavar="NAME", help=names)
    parser.add_argument("--rows", type=number, default=100_000_000, help="of 'memory'")
    parser.add_argument("--memory-limit", default="4GB", help="of 'memory'")
    parser.add_argument("--rows-on-dask", type=number, default=20_000_000, help="of 'workers'")
    parser.add_argument("--rows-per-cell", type=number, default=3_000_000, help="of 'left'")
    parser.add_argument("--rows-of-growth", type=number, default=3_000_000, help="at most")
    parser.add_argument("--cells", type=int, default=8, help="of 'workers' and 'real'")
    parser.add_argument("--at-most", type=number, help="rows of the files of 'real'")
    parser.add_argument(
        "--output", default="files", choices=["files", "memory"], help="of 'workers'"
    )
    parser.add_argument("--repeats", type=int, default=1, help="turns of 'workers'")
    parser.add_argument("--scratch", help="a folder for files, on a disk with enough room")
    add_options(parser)
    arguments = parser.parse_args()
    try:
        commit = commit_of(PACKAGE) if arguments.record else None
    except ValueError as error:
        parser.error(str(error))
    about = f"{machine()} {load()}".strip()
    print(f"{about}\n")
    with tempfile.TemporaryDirectory(prefix="fastrbhc-bench-", dir=arguments.scratch) as folder:
        rows = list(printed(measured(arguments, Path(folder))))
    keep(arguments, commit, "bench-distributed", about, rows)


def number(text: str) -> int:
    """A whole number, also as 1e6."""
    return int(float(text))


def measured(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Rows by name; a row says so if its data or a package is missing."""
    for name in arguments.only or WORK:
        try:
            yield from WORK[name](arguments, folder)
        except (FileNotFoundError, ImportError) as error:
            yield Row(f"({name})", f"left out: {error}", "", "")


def out_of_core(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Rows of a memory map within a limit of memory, against ten times a tenth of them."""
    n, limit = arguments.rows, arguments.memory_limit
    path = written(folder / "rows.npy", n)
    scratch = folder / "scratch"
    tenths = [in_a_process(tenth, path, n // 10)]
    found = in_a_process(in_cells, path, scratch, limit)
    stored = sum(file.stat().st_size for file in scratch.rglob("*") if file.is_file())
    shutil.rmtree(scratch)
    tenths.append(in_a_process(tenth, path, n // 10))
    path.unlink()
    base = 10 * statistics.mean(spent.seconds for spent in tenths)
    work = f"{n:,} × 2 uniform from a file, Ward, {found.n_cells} cells within {limit}"
    ratio, peak = found.seconds / base, found.peak / 1e9
    yield Row(work, "peak resident memory", f"{peak:.2f} GB", "≤ 5 GB", found.seconds, value=peak)
    measure = f"time ÷ 10 × that of linkage on {n // 10:,} rows ({base:.3g} s)"
    yield Row(work, measure, f"{ratio:.3g}", "≤ 2.5", found.seconds, value=ratio)
    share = found.n_left / n
    yield Row(work, "left by the cells", f"{share:.2%}", "≤ 2 %", value=share)
    each = stored / n
    yield Row(work, "scratch folder", f"{each:.0f} bytes per row", "", value=each)


def on_dask(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Two workers against one, and against the tree in memory, in turns."""
    n, cells = arguments.rows_on_dask, arguments.cells
    path, few = written(folder / "rows.npy", n), written(folder / "few.npy", min(n, _FIRST))
    X = np.load(path)
    warm_up(X, "ward")
    one, two, memory = [], [], []
    for _ in range(arguments.repeats):
        one.append(by_workers(1, path, few, cells, arguments.output, folder))
        memory.append(seconds(lambda: fastrbhc.linkage(X, "ward", n_jobs=2)))
        two.append(by_workers(2, path, few, cells, arguments.output, folder))
    path.unlink()
    few.unlink()
    work = f"{n:,} × 2 uniform from a file, Ward, {cells} cells, Dask, 2 workers × 1 thread"
    spent, runs = statistics.median(two), len(two)
    for measure, ratio, goal in (
        ("time of 1 worker ÷ time", statistics.median(one) / spent, "≥ 1.6"),
        ("time ÷ linkage, n_jobs=2", spent / statistics.median(memory), "≤ 2.5"),
    ):
        yield Row(work, measure, f"{ratio:.3g}", goal, spent, runs, ratio)


def left_over(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """The share that cells leave: four of a square, and one with others on all sides."""
    n = arguments.rows_per_cell
    path = written(folder / "rows.npy", 4 * n)
    tree = distributed.linkage(path, "ward", n_cells=4, output="files", scratch=folder / "scratch")
    share = max(stage.n_left / stage.n_leaves for stage in tree.stages[:4])
    shutil.rmtree(folder / "scratch")
    path.unlink()
    measure = "left by the cell that leaves most"
    yield Row(f"4 × {n:,} × 2 uniform, Ward", measure, f"{share:.2%}", "≤ 2 %", value=share)
    work = f"{n:,} × 2 uniform in a cell with others on all sides, Ward"
    yield of_left(work, left_in_a_cube(n, 2) / n, "≤ 2 %")


def growth(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """The share left by a cell with others on all sides, by its number of rows."""
    for d in (2, 3, 5):
        sizes = [n for n in _SIZES if n <= arguments.rows_of_growth]
        found = [left_in_a_cube(n, d) for n in sizes]
        for n, left in zip(sizes, found, strict=True):
            yield of_left(f"{n:,} × {d} uniform in a cell with others on all sides", left / n)
        for k, many in enumerate(sizes[1:]):
            slope = np.log(found[k + 1] / found[k]) / np.log(many / sizes[k]) - 1
            work = f"{sizes[k]:,} to {many:,} × {d}"
            yield Row(work, "exponent of the share", f"{slope:.3f}", "", value=float(slope))
        if len(sizes) > 2:
            a, b, error = fitted(np.array(sizes, float), np.array(found), d)
            terms = f"√n ({a:.3g} + {b:.3g} log n)"
            if d > 2:
                terms = f"{a:.3g} n^({d - 1}/{d}) − {-b:.3g} n^({d}/{d + 2})"
            yield Row(f"all sizes × {d}", terms, f"to {error:.1%}", "", value=error)


def fitted(n: Any, left: Any, d: int) -> tuple[float, float, float]:
    """Coefficients of the two terms of docs/beyond-one-machine.md, and their largest error."""
    first = n ** ((d - 1) / d)
    second = first * np.log(n) if d == 2 else n ** (d / (d + 2))
    terms = np.column_stack([first, second]) / left[:, None]
    (a, b), *_ = np.linalg.lstsq(terms, np.ones(n.size), rcond=None)
    return float(a), float(b), float(np.abs(terms @ (a, b) - 1.0).max())


def real_data(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Points of rivers and pixels of a photo: the tree of linkage, to the bit."""
    for name in ("gshhg_rivers_2m5", "photo_pixels_4m"):
        X = np.ascontiguousarray(real(name)["X"][: arguments.at_most], dtype=np.float64)
        path = folder / "rows.npy"
        np.save(path, X)
        begin = time.perf_counter()
        tree = distributed.linkage(path, "ward", n_cells=arguments.cells, output="memory")
        spent = time.perf_counter() - begin
        expected = fastrbhc.linkage(X, "ward")
        different = np.count_nonzero((tree.merges != expected.merges).any(axis=1))
        heights = np.count_nonzero(tree.heights != expected.heights)
        path.unlink()
        reached = "same merges and heights"
        if different or heights:
            reached = f"{different:,} merges and {heights:,} heights differ"
        work = f"{len(X):,} × {X.shape[1]} {name}, Ward, {arguments.cells} cells"
        goal = "the tree of linkage, to the bit"
        yield Row(work, goal, reached, "same", spent, value=float(different + heights))


WORK: dict[str, Callable[[argparse.Namespace, Path], Iterator[Row]]] = {
    "memory": out_of_core,
    "workers": on_dask,
    "left": left_over,
    "growth": growth,
    "real": real_data,
}


def of_left(work: str, share: float, goal: str = "") -> Row:
    """A row of the table."""
    return Row(work, "left", f"{share:.3%}", goal, value=share)


def written(path: Path, n: int) -> Path:
    """Uniform rows of two columns in an .npy file, never all of them in memory."""
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, "w+", np.float64, (n, 2))
    for start in range(0, n, _AT_A_TIME):
        stop = min(start + _AT_A_TIME, n)
        rows[start:stop] = rng.random((stop - start, 2))
    rows.flush()
    return path


def seconds(work: Callable[[], object]) -> float:
    """The time that work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def in_a_process(work: Callable[..., Spent], *arguments: Any) -> Spent:
    """The same in a fresh process, whose peak is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, *arguments).result()


def tenth(path: Path, n: int) -> Spent:
    """The tree of the first rows of a file, in memory."""
    X = np.array(np.load(path, mmap_mode="r")[:n])
    warm_up(X, "ward")
    spent = seconds(lambda: fastrbhc.linkage(X, "ward"))
    return Spent(spent, resident("VmHWM"), 0, 1)


def in_cells(path: Path, scratch: Path, limit: str) -> Spent:
    """The tree of a file within a limit of memory, in files."""
    first = np.array(np.load(path, mmap_mode="r")[:_FIRST])
    distributed.linkage(first, "ward", n_cells=4, output="files")
    del first
    begin = time.perf_counter()
    tree = distributed.linkage(path, "ward", memory_limit=limit, scratch=scratch, output="files")
    spent = time.perf_counter() - begin
    cells = [stage for stage in tree.stages if stage.of_rows]
    n_left = sum(stage.n_left for stage in cells)
    return Spent(spent, resident("VmHWM"), n_left, len(cells))


def by_workers(count: int, path: Path, few: Path, cells: int, output: str, folder: Path) -> float:
    """The time of a tree on so many Dask workers of one thread each, once they are warm."""
    from dask.distributed import Client, LocalCluster

    where = {"dashboard_address": None, "local_directory": str(folder)}
    with (
        LocalCluster(n_workers=count, threads_per_worker=1, **where) as cluster,
        Client(cluster) as client,
    ):

        def tree(rows: Path) -> None:
            scratch = folder / "scratch"
            distributed.linkage(
                rows, "ward", n_cells=cells, output=output, scratch=scratch, client=client
            )
            shutil.rmtree(scratch)

        tree(few)
        return seconds(lambda: tree(path))


def left_in_a_cube(n: int, d: int) -> int:
    """The clusters that are left of rows in a cube, with rows of weight 1 beyond all its sides."""
    points = Observations(np.random.default_rng(0).random((n, d)))
    geometry = geometry_of(as_family("ward"), points)
    return merge_locally(geometry, points, list(_all_sides(d)), True).nodes.size


def _all_sides(d: int) -> Iterator[Border]:
    for column in range(d):
        for low, high in ((-1.0, 0.0), (1.0, 2.0)):
            lowest, highest = np.full(d, -1.0), np.full(d, 2.0)
            lowest[column], highest[column] = low, high
            yield Border(lowest, highest, 1.0)


if __name__ == "__main__":
    main()
