"""Regions of cases that can be left out by name, for what is known and not yet mended."""

from __future__ import annotations

import numpy as np


def _spans(X):
    """The smallest and the largest difference from the first row, over all columns, and values."""
    with np.errstate(all="ignore"):
        steps = np.abs(X - X[0])
    steps = steps[steps > 0.0]
    sizes = np.abs(X[X != 0.0])
    return steps, sizes


def tiny(case):
    """Values whose squares leave double precision."""
    steps, sizes = _spans(case.X)
    both = np.concatenate([steps, sizes])
    return bool(both.size and both.min() < 1e-140)


def small_against_ridge(case):
    """Full covariances of clusters that are small against the smoothing."""
    if case.model or case.family != "gaussian":
        return False
    rows = np.unique(case.X[:400], axis=0)
    with np.errstate(all="ignore"):
        gaps = np.abs(rows[:, None] - rows).max(axis=2)
        gaps[gaps == 0.0] = np.inf
        return bool(gaps.min() < 1e-2 * case.record.smoothing**0.5)


def uneven_weights(case):
    """Full covariances of rows whose weights differ by many powers of ten."""
    if case.model or case.family != "gaussian" or case.weights is None:
        return False
    positive = case.weights[case.weights > 0.0]
    return bool(positive.max() > 1e8 * positive.min())


REGIONS = {
    "tiny": tiny,
    "small_against_ridge": small_against_ridge,
    "uneven_weights": uneven_weights,
}
