"""Speed as a ratio: on a noisy machine the only number that keeps."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage as scipy_linkage

import fastrbhc

# Up to so many columns kernels are compiled for that number alone, from 5,000 rows on.
_FEW_COLUMNS = 8
# From so many squares of rows times columns on there are several threads, and other kernels.
_SEVERAL_THREADS = 20_000_000


class Compared(NamedTuple):
    """What came of measuring in turns."""

    ratio: float  # median of our time over the peer's
    seconds: float  # median of ours
    runs: int


def compare(
    ours: Callable[[], object],
    peer: Callable[[], object],
    times: float = 1.0,
    repeats: int = 5,
    patience: float = 40.0,
) -> Compared:
    """Our time over that of so many times the peer's work, measured in turns.

    No new turn begins once the patience, in seconds, is spent.
    """
    begin = time.perf_counter()
    theirs, own = [], []
    while len(own) < repeats and (not own or time.perf_counter() - begin < patience):
        theirs.append(_seconds(peer) * times)
        own.append(_seconds(ours))
    ratios = [mine / other for mine, other in zip(own, theirs, strict=True)]
    return Compared(statistics.median(ratios), statistics.median(own), len(own))


def against_scipy(X: Any) -> Compared:
    """Ward's tree of few rows as anyone would call it, against SciPy's: hundreds of turns."""
    fastrbhc.linkage(X, "ward")
    return compare(
        lambda: fastrbhc.linkage(X, "ward"),
        lambda: scipy_linkage(X, "ward"),
        repeats=2_000,
        patience=5.0,
    )


def warm_up(X: Any, family: Any, **options: Any) -> None:
    """Compile all that a tree of X will need, so that only the work is timed.

    That is, kernels for one thread and for several; for few columns kernels for this number of
    columns and, as long trees are preceded by trees of some of the rows, kernels for any number.
    """
    n_features = X.shape[1]
    few = n_features <= _FEW_COLUMNS
    # Repeated rows are collapsed first: take enough for 6,000 distinct ones to remain.
    sample = np.unique(X[:: max(1, len(X) // 40_000)], axis=0) if few else X
    for size in (300, 6_000 if few else math.isqrt(_SEVERAL_THREADS // n_features) + 2):
        rows = sample[np.linspace(0, len(sample) - 1, min(size, len(sample))).astype(int)]
        fastrbhc.linkage(rows, family, **options)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
