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
    """Full covariances of data that are small against the smoothing."""
    if case.model or case.family != "gaussian":
        return False
    steps, _ = _spans(case.X)
    return bool(steps.size and steps.max() ** 2 < 1e-4 * case.record.smoothing)


REGIONS = {"tiny": tiny, "small_against_ridge": small_against_ridge}
