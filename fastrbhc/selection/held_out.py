"""How well the cuts of trees predict held-out rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from fastrbhc._build import build
from fastrbhc._options import CheckedOptions, of_a_sample
from fastrbhc.families import Family
from fastrbhc.families._missing import filled, has_gaps
from fastrbhc.selection.coordinates import Points, known_spread, points_of_rows
from fastrbhc.selection.density import log_density
from fastrbhc.selection.halves import Half, Sample, divisions, sample_of

# Numbers of clusters to try; those beyond the bar only while prediction still improves.
_NUMBERS = (*range(1, 13), 14, 16, 18, 20, 23, 26, 30, 35, 40)
_LARGER_NUMBERS = (48, 57, 68, 81, 96)


class Prediction(NamedTuple):
    """How well the cuts into some numbers of clusters predict held-out rows.

    ``log_likelihoods`` are logarithms of densities, averaged over all held-out rows. ``errors``
    are standard errors of the differences from one cluster. They are of ``n_rows`` rows, as points
    with ``n_coordinates`` coordinates, and ``known_spread`` says whether the family determines how
    widely the rows of a cluster vary.
    """

    numbers: NDArray[np.int64]
    log_likelihoods: NDArray[np.float64]
    errors: NDArray[np.float64]
    n_rows: int
    n_coordinates: int
    known_spread: bool

    @property
    def gains(self) -> NDArray[np.float64]:
        """What is gained over one cluster, in natural units per row."""
        return self.log_likelihoods - self.log_likelihoods[0]

    @property
    def best(self) -> int:
        """The place of the best number; the smallest, of equal ones."""
        return int(np.argmax(self.log_likelihoods))


def predictions(
    families: list[Family],
    X: Any,
    sample_weight: NDArray[np.float64] | None,
    options: CheckedOptions,
) -> list[Prediction]:
    """For each family, how well the cuts of its trees predict held-out rows.

    All families are judged on the same halves and by the same kind of density.
    """
    sample = sample_of(families[0], X, sample_weight)
    # Points have no gaps: the means of columns stand for what is missing.
    rows = filled(sample.rows, families[0]) if has_gaps(sample.rows) else sample.rows
    points = points_of_rows(families[0], rows, sample.weights)
    halves = [half for division in divisions(families[0], sample) for half in division]
    options = of_a_sample(options)
    with threadpool_limits(1, "blas"):  # more threads only slow such small matrices down
        return [_prediction(family, sample, points, halves, options) for family in families]


def _prediction(
    family: Family, sample: Sample, points: Points, halves: list[Half], options: CheckedOptions
) -> Prediction:
    """The halves come in pairs; each is predicted from the other."""
    columns: list[list[NDArray[np.float64]]] = [[] for _ in halves]
    cuts = [_Cuts(family, sample, half, options) for half in halves]
    numbers: list[int] = []
    for k in (*_NUMBERS, *_LARGER_NUMBERS):
        if 2 * k > min(half.places.size for half in halves) and k > 1:
            break
        if k > _NUMBERS[-1] and np.argmax(_averages(columns, halves)) < len(numbers) - 1:
            break
        for place, half in enumerate(halves):
            other = halves[place ^ 1]
            known = Points(points.values[other.places], points.floor)
            new = Points(points.values[half.places], points.floor)
            labels = cuts[place ^ 1].labels(k)
            columns[place].append(log_density(known, other.weights, labels, new))
        numbers.append(k)
    averages = _averages(columns, halves)
    weights = np.concatenate([half.weights for half in halves])
    gains = np.concatenate([np.array(found) - found[0] for found in columns], axis=1)
    spread = np.average((gains - (averages - averages[0])[:, None]) ** 2, axis=1, weights=weights)
    # The divisions are of the same rows: only those of one division count as independent.
    independent = weights.sum() / (len(halves) // 2)
    errors = np.sqrt(spread / independent)
    n_rows, n_coordinates = points.values.shape
    spread_known = known_spread(family)
    return Prediction(np.array(numbers), averages, errors, n_rows, n_coordinates, spread_known)


def _averages(columns: list[list[NDArray[np.float64]]], halves: list[Half]) -> NDArray[np.float64]:
    """Log likelihoods averaged over all held-out rows, one for each number of clusters."""
    total = sum(half.weights.sum() for half in halves)
    sums = [np.array(found) @ half.weights for found, half in zip(columns, halves, strict=True)]
    return np.asarray(np.sum(sums, axis=0) / total)


class _Cuts:
    """The cuts of the tree of one half."""

    def __init__(self, family: Family, sample: Sample, half: Half, options: CheckedOptions) -> None:
        rows = sample.rows[half.places]
        self._tree = build(rows, family, half.weights, options)

    def labels(self, n_clusters: int) -> NDArray[np.int64]:
        return self._tree.cut(n_clusters=n_clusters)
