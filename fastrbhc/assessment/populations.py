"""Rows without clusters that otherwise resemble given rows: what a real cluster has to beat.

A tree divides any rows, also those of one population, and some populations are easier to divide
than others. So rows are compared with several populations of one mode that have their mean and
their covariance:

uniform
    Along each principal axis an independent uniform distribution. Of all symmetric distributions
    with one mode and a given variance, two halves of the uniform one explain the most of it.
unimodal
    Along each principal axis the distribution of the rows themselves, smoothed by the smallest
    Gaussian kernel that leaves one mode (Silverman 1981), and scaled back to its variance. It keeps
    what is skewed or has long tails.
the family's own
    Independent draws from one distribution of the family, such as Poisson counts.

Draws are made to look like the rows: whole numbers where a column has nothing else, and values in
the domain of the family.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fastrbhc.families import Family

# The histogram of an axis: bins, and over how many times the range of the values. It is smoothed
# on a circle, so that there has to be room for tails.
_BINS, _RANGES = 1_024, 8.0
# Kernels at most this wide, in ranges of the values: normal distributions whose means differ by
# less than two standard deviations have one mode together.
_WIDEST = 0.5
_BISECTIONS = 12
# A density that rises by less than this share of its maximum does not rise.
_FLAT = 1e-7

Draw = Callable[[np.random.Generator], NDArray[np.float64]]


def populations(
    X: NDArray[np.float64], weights: NDArray[np.float64] | None, family: Family
) -> list[Draw]:
    """Functions that draw as many rows as X has, each from another population of one mode.

    Weights are those of the rows of X; the draws have none.
    """
    shares = np.ones(len(X)) if weights is None else weights
    shares = shares / shares.sum()
    mean = shares @ X
    centred = X - mean
    _, values, axes = np.linalg.svd(np.sqrt(shares)[:, None] * centred, full_matrices=False)
    scores = centred @ axes.T
    widths = critical_bandwidths(scores, shares)
    shrinkage = values / np.sqrt(np.maximum(values**2 + widths**2, 1e-300))
    dressed = _dressing(X, family)

    def uniform(rng: np.random.Generator) -> NDArray[np.float64]:
        z = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (len(X), values.size))
        return dressed(mean + (z * values) @ axes, rng)

    def unimodal(rng: np.random.Generator) -> NDArray[np.float64]:
        chosen = rng.choice(len(X), (len(X), values.size), p=shares)
        z = np.take_along_axis(scores, chosen, axis=0) + widths * rng.normal(size=chosen.shape)
        return dressed(mean + (z * shrinkage) @ axes, rng)

    def of_the_family(rng: np.random.Generator) -> NDArray[np.float64]:
        chosen = X if weights is None else X[rng.choice(len(X), len(X), p=shares)]
        drawn = family.draw_one_cluster(chosen, rng)
        assert drawn is not None  # it was not when tried below
        return dressed(drawn, rng)

    if family.draw_one_cluster(X, np.random.default_rng(0)) is None:
        return [uniform, unimodal]
    return [uniform, unimodal, of_the_family]


def critical_bandwidths(
    values: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """For each column, the smallest width of a Gaussian kernel that leaves the density one mode."""
    lowest, highest = values.min(axis=0), values.max(axis=0)
    span = np.where(highest > lowest, highest - lowest, 1.0)
    start, bin_width = 0.5 * (lowest + highest) - 0.5 * _RANGES * span, _RANGES * span / _BINS
    bins = np.clip(((values - start) / bin_width).astype(np.int64), 0, _BINS - 1)
    columns = np.arange(values.shape[1])
    histogram = np.zeros((values.shape[1], _BINS))
    np.add.at(histogram, (columns[None, :], bins), shares[:, None])
    spectrum = np.fft.rfft(histogram)
    squares = np.square(2.0 * np.pi * np.arange(spectrum.shape[1]) / _BINS)
    below, above = np.zeros(columns.size), np.full(columns.size, _WIDEST * _BINS / _RANGES)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (below + above)
        damping = np.exp(-0.5 * np.square(middle)[:, None] * squares)
        density = np.fft.irfft(spectrum * damping, _BINS)
        steps = np.diff(density) / density.max(axis=1, keepdims=True)
        has_fallen = np.maximum.accumulate(steps < -_FLAT, axis=1)
        one_mode = ~(has_fallen & (steps > _FLAT)).any(axis=1)
        below, above = np.where(one_mode, below, middle), np.where(one_mode, middle, above)
    return above * bin_width


def _dressing(
    X: NDArray[np.float64], family: Family
) -> Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]:
    """A function that rounds and clips draws, so that they could have been rows like X."""
    domain = family.domain
    whole = (np.round(X) == X).all(axis=0)
    lowest, highest = X.min(axis=0), X.max(axis=0)
    least = np.full(X.shape[1], domain.lower) if domain.includes_lower else lowest
    least = np.where(whole, lowest, np.maximum(least, domain.lower))
    most = np.where(whole, highest, domain.upper)

    def dressed(drawn: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        rows = np.clip(np.where(whole, np.round(drawn), drawn), least, most)
        empty = np.zeros(len(rows), bool)
        if domain.needs_positive_total:
            empty = rows.sum(axis=1) <= 0.0
        if domain.needs_nonzero_row:
            empty = ~rows.any(axis=1)
        rows[empty] = X[rng.integers(0, len(X), int(empty.sum()))]
        return rows

    return dressed
