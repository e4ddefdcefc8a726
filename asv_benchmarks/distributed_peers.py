"""The rows of `bench_peers` for rows that stay in a file."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from benchmarks.datasets import uniform
from benchmarks.memory import grown
from benchmarks.timing import compare, warm_up
from rows import Row

import fastrbhc
from fastrbhc import distributed

Size = Callable[[int], int]


def against_memory(size: Size, of_ratio: Callable[..., Row]) -> Iterator[Row]:
    """Cells of a memory map one after another, against the tree of the same rows in memory."""
    n = size(10_000_000)
    work = f"{n:,} × 2 uniform in a file, Ward, 8 cells, whole tree in files"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        X = uniform(n, 2)
        np.save(path, X)
        warm_up(X, "ward")
        _in_cells(X[: min(n, 400_000)])
        found = compare(lambda: _in_cells(path), lambda: fastrbhc.linkage(X, "ward", n_jobs=2))
        yield of_ratio(work, "time ÷ linkage of rows in memory", found, "≤ 2.5")
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            bytes_grown = pool.submit(_memory, path).result()
        each = bytes_grown / n
        yield Row(
            work,
            "memory at its peak",
            f"{each:.0f} bytes per row, {bytes_grown / 1e6:.0f} MB",
            "",
            value=each,
        )


def _in_cells(rows: object) -> None:
    distributed.linkage(rows, "ward", n_cells=8, output="files", n_jobs=2)


def _memory(path: Path) -> int:
    """Bytes by which this process grows."""
    _in_cells(np.array(np.load(path, mmap_mode="r")[:400_000]))
    return grown(lambda: _in_cells(path))
