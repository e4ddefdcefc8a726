"""The likelihood of waiting times, continuous or in steps: terms of column totals and n.

With s_k the total of column k in a cluster of n rows,

    ℓ = by_size(n) − Σ_k (a_k + n)·log(1 + s_k)            for exponential times,
    ℓ = by_size(n) − Σ_k log (b_k + s_k)_{a_k + n}         for geometric numbers of steps,

(x)_m = Γ(x + m)/Γ(x). Either has a conjugate prior with a_k events before the first row. In the
second, the totals of the usual formula are exchanged with the numbers of rows: then its two large
logarithms, which nearly cancel, are one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import merge_weights
from fastrbhc._engine.geometry.contract import ScratchShapes, Storage
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record
from fastrbhc.bhc.likelihoods.rising import log_rising

# Covers the rounding of a bound and of the value it bounds, as a share of their terms.
_ROUNDING = 1e-12


@record
class Waiting:
    """The likelihood; ``means`` of clusters are totals."""

    events: NDArray[np.float64]  # (d,), a
    waited: NDArray[np.float64]  # (d,), b, and the unit of the totals if time is continuous
    by_size: NDArray[np.float64]  # (n + 2,)
    in_steps: bool  # whether times are numbers of steps

    def observe(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return X if self.in_steps else X / self.waited

    def for_new_rows(self, new: NDArray[np.float64]) -> Waiting:
        return self

    def storage(self, n_columns: int) -> Storage:
        return Storage()

    def scratch_shapes(self, n_columns: int) -> ScratchShapes:
        return ScratchShapes()

    def join(likelihood, clusters, i, j):
        for k in range(clusters.means.shape[0]):
            clusters.means[k, i] += clusters.means[k, j]
        merge_weights(clusters, i, j)

    def summarise(likelihood, clusters, i, scratch):
        size, terms = clusters.weights[i], 0.0
        for k in range(clusters.means.shape[0]):
            terms += _term(likelihood, k, size, clusters.means[k, i])
        return likelihood.by_size[np.int64(size)] - terms

    def log_marginal(likelihood, clusters, i, j, floor, scratch):
        size = clusters.weights[i] + clusters.weights[j]
        return likelihood.by_size[np.int64(size)] - _terms(likelihood, clusters, i, j, size)

    def upper_bounds(likelihood, clusters, i, start, stop, scratch):
        for s in range(stop - start):
            size = clusters.weights[i] + clusters.weights[start + s]
            if np.isnan(size) or start + s == i:
                scratch.bounds[s] = np.nan
            else:
                rest = likelihood.by_size[np.int64(size)]
                terms = _terms(likelihood, clusters, i, start + s, size)
                scratch.bounds[s] = rest - terms + _ROUNDING * (abs(rest) + abs(terms))


@kernel
def _terms(likelihood, clusters, i, j, size):
    """The sum over the columns of the union of two slots."""
    terms = 0.0
    for k in range(clusters.means.shape[0]):
        terms += _term(likelihood, k, size, clusters.means[k, i] + clusters.means[k, j])
    return terms


@kernel
def _term(likelihood, k, size, total):
    """One column, for so many rows and their total."""
    if likelihood.in_steps:
        return log_rising(likelihood.waited[k] + total, likelihood.events[k] + size)
    return (likelihood.events[k] + size) * math.log1p(total)


def shape_of_events(relative_variance: float) -> float:
    """The a for which single times, in units of their mean, have this variance: a/(a − 2).

    If it is hardly more than 1, that of times at one rate, rates are assumed to vary by a tenth.
    """
    least = 50.0 / 49.0
    ratio = max(relative_variance, least)
    return 2.0 * ratio / (ratio - 1.0)
