"""Some of many rows, such that neither their order nor copies in place of weights matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def distinct(rows: Floats, weights: Floats, coordinates: Floats) -> tuple[Floats, Floats]:
    """Distinct rows with the weights of all their copies, in the order of a random projection.

    ``coordinates`` are the rows in comparable units, which are projected. Sorting numbers takes far
    less time than sorting rows, and equal rows have equal projections.
    """
    direction = np.random.default_rng(0).normal(size=coordinates.shape[1])
    order = np.argsort((coordinates * direction).sum(axis=1), kind="stable")
    rows, weights = rows[order], weights[order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    summed: Floats = np.bincount(np.cumsum(first) - 1, weights).astype(np.float64)
    return rows[first], summed


def sampled(rows: Floats, weights: Floats, most: int) -> tuple[Floats, Floats]:
    """Rows at even distances in their order, if they are many, weighted by what they stand for."""
    if len(rows) <= most:
        return rows, weights
    passed = np.cumsum(weights)
    levels = (np.arange(most) + 0.5) / most * passed[-1]
    taken, times = np.unique(np.searchsorted(passed, levels), return_counts=True)
    return rows[taken], times.astype(np.float64)
