"""The likelihood of measurements with independent columns: logarithms of sums of squares.

Rows are measured in units of the prior: z = (x − c)/√ψ, with c the middle of the data. A cluster
has its number of rows n and for each column the mean z̄ and the sum of squares S about it, and with
m the prior mean

    ℓ = by_size(n) − ½(ν + n) Σ log(1 + C),      C = S + κn/(κ + n)·(z̄ − m)².
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import difference, merge_means
from fastrbhc._engine.geometry.contract import ScratchShapes, Storage
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record
from fastrbhc.bhc._interface import OWN_FEATURES
from fastrbhc.bhc.likelihoods.unions import LARGE_PRODUCT, steps_of_union, weights_of_union

# Columns whose factors are multiplied in scans; only one if a factor may exceed _LARGE_FACTOR.
_TOGETHER, _LARGE_FACTOR = 8, 1e38

# The largest error of a bound, as a share of its terms, and of a sum of squares.
_ROUNDING, _OFF = 1e-12, 1e-9

# The first row of scan features with sums of squares, one row per column.
_SQUARES = OWN_FEATURES


@record
class Columns:
    """The likelihood; scan features hold the sums of squares."""

    centre: NDArray[np.float64]  # (d,), c
    units: NDArray[np.float64]  # (d,), √ψ
    prior_mean: NDArray[np.float64]  # (d,), m in units of the prior
    strength: float  # κ
    degrees: float  # ν
    by_size: NDArray[np.float64]  # (n + 2,)
    reach: float  # the farthest that a row or the prior mean lies from c, in one column

    def observe(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return (X - self.centre) / self.units

    def for_new_rows(self, new: NDArray[np.float64]) -> Columns:
        return self

    def storage(self, n_columns: int) -> Storage:
        return Storage(scan_features=n_columns)

    def scratch_shapes(self, n_columns: int) -> ScratchShapes:
        return ScratchShapes()

    def join(likelihood, clusters, i, j):
        w0, w1 = clusters.weights[i], clusters.weights[j]
        factor = w0 * w1 / (w0 + w1)
        squares = clusters.scan_features[_SQUARES:]
        for k in range(clusters.means.shape[0]):
            step = difference(clusters, i, j, k)
            squares[k, i] = (squares[k, i] + squares[k, j]) + factor * (step * step)
        merge_means(clusters, i, j)

    def summarise(likelihood, clusters, i, scratch):
        weight = clusters.weights[i]
        half = 0.5 * (likelihood.degrees + weight)
        return likelihood.by_size[np.int64(weight)] - half * _logs(likelihood, clusters, i, -1)

    def log_marginal(likelihood, clusters, i, j, floor, scratch):
        size = clusters.weights[i] + clusters.weights[j]
        half = 0.5 * (likelihood.degrees + size)
        return likelihood.by_size[np.int64(size)] - half * _logs(likelihood, clusters, i, j)

    def upper_bounds(likelihood, clusters, i, start, stop, scratch):
        bounds, products, logs = scratch.bounds, scratch.shares[0], scratch.shares[1]
        size, n_features = stop - start, clusters.means.shape[0]
        weight = clusters.weights[i]
        strength = likelihood.strength + weight
        prior = likelihood.strength * weight / strength
        squares = clusters.scan_features[_SQUARES:]
        for s in range(size):
            other = clusters.weights[start + s]
            bounds[s] = strength * other / (strength + other)
            products[s], logs[s] = 0.0, 0.0
        largest = (clusters.weights.size + likelihood.strength) * likelihood.reach**2 * 4.0
        together = _TOGETHER if largest < _LARGE_FACTOR else 1
        for k in range(n_features):
            # With the posterior of slot i as the prior, the union is its posterior.
            away = clusters.means[k, i] - likelihood.prior_mean[k]
            own = squares[k, i] + prior * (away * away)
            mean = likelihood.prior_mean[k] + weight / strength * away
            for s in range(size):
                step = clusters.means[k, start + s] - mean
                term = (own + squares[k, start + s] + bounds[s] * (step * step)) * (1.0 - _OFF)
                products[s] += term + products[s] * term
            if k % together == together - 1 or k == n_features - 1:
                for s in range(size):
                    logs[s] += math.log1p(products[s])
                    products[s] = 0.0
        off = 4e-15 * n_features * likelihood.reach  # as in `full`, for both squares
        for s in range(size):
            other = clusters.weights[start + s]
            if np.isnan(other):
                bounds[s] = np.nan
            else:
                rest = likelihood.by_size[np.int64(weight + other)]
                half = 0.5 * (likelihood.degrees + (weight + other))
                least = logs[s] - off * (math.sqrt(bounds[s]) + math.sqrt(prior))
                slack = _ROUNDING * (abs(rest) + half * (1.0 + logs[s]))
                bounds[s] = rest - half * least + slack


@kernel
def _logs(likelihood, clusters, i, j):
    """Σ log(1 + C) of the union of slots i and j, or of slot i for j = −1."""
    between, from_prior, share0, share1 = weights_of_union(likelihood, clusters, i, j)
    squares = clusters.scan_features[_SQUARES:]
    logs, product = 0.0, 0.0
    for k in range(clusters.means.shape[0]):
        step, away = steps_of_union(likelihood, clusters, i, j, k, share0, share1)
        term = squares[k, i]
        if j >= 0:
            term = (term + squares[k, j]) + between * (step * step)
        term += from_prior * (away * away)
        product += term + product * term
        if product > LARGE_PRODUCT:
            logs += math.log1p(product)
            product = 0.0
    return logs + math.log1p(product)
