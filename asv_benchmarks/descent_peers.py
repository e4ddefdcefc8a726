"""The rows of `bench_peers` for approximate trees of wide rows.

NND stands for pynndescent's ``NNDescent(X, n_neighbors=16, random_state=0, n_jobs=2)``: fifteen
near neighbours of every row, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.timing import compare
from numpy.typing import NDArray
from rows import Row

import fastrbhc
from fastrbhc import _near_rows

Size = Callable[[int], int]


def against_descent(
    size: Size, real: Callable[[str], Any], of_ratio: Callable[..., Row]
) -> Iterator[Row]:
    """Many blobs against the neighbours alone, and real data against the exact tree."""
    from pynndescent import NNDescent

    n, k = size(1_000_000), size(1_000)
    rng = np.random.default_rng(1)
    X = 4.0 * rng.normal(size=(k, 50))[rng.integers(k, size=n)]
    X += rng.normal(size=X.shape)

    def descend(rows: NDArray[np.float64]) -> object:
        rows = rows.astype(np.float32)
        return NNDescent(rows, n_neighbors=16, random_state=0, n_jobs=2).neighbor_graph

    def tree(rows: NDArray[np.float64]) -> Any:
        return fastrbhc.linkage(rows, "ward", neighbors="approximate", n_jobs=2)

    few = X[: min(n, 50_000)]
    compared, _near_rows.MOST_COMPARED = _near_rows.MOST_COMPARED, 0
    try:  # so that both compile before they are timed
        descend(few)
        tree(few)
        found = compare(lambda: tree(X), lambda: descend(X), repeats=2)
    finally:
        _near_rows.MOST_COMPARED = compared
    work = f"{n:,} × 50, {k:,} blobs, Ward, approximate, whole tree"
    yield of_ratio(work, "time ÷ NND", found, "≤ 2")
    X = np.ascontiguousarray(real("mnist_7x7")["X"], np.float64)[: size(70_000)]
    approximate, exact = tree(X), fastrbhc.linkage(X, "ward")
    for clusters in (10, 100, 1_000):
        if clusters < len(X):
            kept = len(X) - clusters
            ratio = approximate.heights[:kept].sum() / exact.heights[:kept].sum()
            yield Row(
                f"{len(X):,} × 49 MNIST digits, Ward, approximate, {clusters:,} clusters",
                "cost ÷ exact tree",
                f"{ratio:.4f}",
                "≤ 1.03",
                value=ratio,
            )
