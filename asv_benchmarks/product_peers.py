"""The rows of `bench_peers` for columns of different kinds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.datasets import MIXED, mixed
from benchmarks.timing import compare, warm_up
from rows import Row
from scipy.spatial import cKDTree

import fastrbhc

Size = Callable[[int], int]


def against_ward(size: Size, of_ratio: Callable[..., Row]) -> Iterator[Row]:
    """A measurement, a count and a zero or one, against Ward's method on the same numbers."""
    n = size(1_000_000)
    X, family = mixed(n, "gpb"), MIXED["gpb"]
    warm_up(X, family)
    warm_up(X, "ward")
    found = compare(
        lambda: fastrbhc.linkage(X, family, n_jobs=2),
        lambda: fastrbhc.linkage(X, "ward", n_jobs=2),
    )
    work = f"{n:,} × 3 of three kinds (Ward, Poisson, Bernoulli), exact greedy, whole tree"
    yield of_ratio(work, "time ÷ Ward on the same numbers", found, "≤ 6")


def against_kd_tree(size: Size, of_ratio: Callable[..., Row]) -> Iterator[Row]:
    """Six columns of four kinds, against a search for all nearest neighbours."""
    n = size(100_000)
    X, family = mixed(n, "ggppbe"), MIXED["ggppbe"]
    warm_up(X, family)
    found = compare(lambda: fastrbhc.linkage(X, family, n_jobs=2), lambda: _kd(X))
    work = f"{n:,} × 6 of four kinds (Ward, Poisson, Bernoulli, exponential), exact greedy"
    yield of_ratio(work, "time ÷ KD", found, "≤ 20")


def against_dearest(size: Size, of_ratio: Callable[..., Row]) -> Iterator[Row]:
    """Columns of two kinds, against as many of the dearer kind, by kd-tree and by scans."""
    for n, d in ((size(100_000), 4), (size(10_000), 20)):
        kinds = "p" * (d // 2) + "g" * (d // 2)
        # No two rows alike, so that both have n points.
        parts = np.random.default_rng(1).random((n, d))
        X, alone = mixed(n, kinds) + parts, mixed(n, "p" * d) + parts
        family = {"poisson": list(range(d // 2)), "ward": list(range(d // 2, d))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice on counts that are not whole
            warm_up(X, family)
            warm_up(alone, "poisson")
            found = compare(
                lambda X=X, family=family: fastrbhc.linkage(X, family, n_jobs=2),
                lambda alone=alone: fastrbhc.linkage(alone, "poisson", n_jobs=2),
            )
        work = f"{n:,} × {d} of two kinds (Poisson, Ward), exact greedy, whole tree"
        yield of_ratio(work, f"time ÷ {d} columns of counts", found, "≤ 1.5")


def _kd(X: Any) -> None:
    cKDTree(X).query(X, k=2, workers=2)
