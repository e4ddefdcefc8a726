"""How well clusters come back in trees of subsamples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fastrbhc._build import build
from fastrbhc._engine.traversal import best_overlaps
from fastrbhc._options import CheckedOptions
from fastrbhc.families import Family

CONFIDENCE = 0.95
# A cluster of one row comes back in any tree, as a leaf.
_FEWEST_ROWS = 2


def recoveries(
    X: Any,
    weights: NDArray[np.float64] | None,
    family: Family,
    labels: NDArray[np.int64],
    n_clusters: int,
    n_resamples: int,
    n_rows: int,
    options: CheckedOptions,
    rng: np.random.Generator,
    report: Callable[[int], None],
) -> NDArray[np.float64]:
    """Jaccard index of each cluster in each subsample of n_rows rows: (n_resamples, n_clusters).

    It is the largest over all nodes of the subsample's tree. NaN where fewer than two rows of a
    cluster are in the subsample. Rows without weight are left out.
    """
    candidates = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    found = np.empty((n_resamples, n_clusters))
    for which in range(n_resamples):
        report(which)
        chosen = np.sort(rng.choice(candidates, min(n_rows, candidates.size), replace=False))
        own = None if weights is None else weights[chosen]
        tree = build(X[chosen], family, own, options)
        shares = np.ones(chosen.size) if own is None else own
        found[which] = best_overlaps(tree.merges, labels[chosen], shares, n_clusters)
        few = np.bincount(labels[chosen], minlength=n_clusters) < _FEWEST_ROWS
        found[which, few] = np.nan
    report(n_resamples)
    return found


def mean_and_interval(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of each column without its NaN, and the two ends of its confidence interval.

    The interval is Student's, clipped to [0, 1]: how much other subsamples could change the mean.
    It is everything if there are fewer than two values.
    """
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    filled = np.where(known, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = filled.sum(axis=0) / counts
        squares = np.where(known, np.square(values - means), 0.0).sum(axis=0)
        errors = np.sqrt(squares / (counts - 1) / counts)
        reach = stats.t.ppf(0.5 + 0.5 * CONFIDENCE, np.maximum(counts - 1, 1)) * errors
    lower = np.where(counts > 1, np.clip(means - reach, 0.0, 1.0), 0.0)
    upper = np.where(counts > 1, np.clip(means + reach, 0.0, 1.0), 1.0)
    return np.array([means, lower, upper])
