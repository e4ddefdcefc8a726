"""The likelihood of directions with a known concentration: lengths of sums.

Rows are unit vectors times the concentration κ. With s the sum of those of a cluster, and κ₀m₀ the
prior mean direction m₀ times its strength κ₀,

    ℓ = by_size(n) + L(‖κ₀m₀ + s‖),

where L is the logarithm of the normalising constant of the von Mises–Fisher distribution, up to a
constant: see `fastrbhc._engine.math.bessel`. It grows with the length.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import merge_weights
from fastrbhc._engine.geometry.contract import ScratchShapes, Storage
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.bessel import log_bessel
from fastrbhc._engine.records import record

# Covers the rounding of a bound and of the value it bounds, as a share of their terms.
_ROUNDING = 1e-12


@record
class SumsOfDirections:
    """The likelihood; ``means`` of clusters are sums."""

    prior: NDArray[np.float64]  # (d,), κ₀m₀
    concentration: float  # κ
    order: float  # of the Bessel function, d/2 − 1
    by_size: NDArray[np.float64]  # (n + 2,)

    def observe(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.concentration * unit_vectors(X)

    def for_new_rows(self, new: NDArray[np.float64]) -> SumsOfDirections:
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
        squares = 0.0
        for k in range(clusters.means.shape[0]):
            entry = likelihood.prior[k] + clusters.means[k, i]
            squares += entry * entry
        rest = likelihood.by_size[np.int64(clusters.weights[i])]
        return rest + log_bessel(likelihood.order, math.sqrt(squares))

    def log_marginal(likelihood, clusters, i, j, floor, scratch):
        size = clusters.weights[i] + clusters.weights[j]
        length = _length_of_union(likelihood, clusters, i, j)
        return likelihood.by_size[np.int64(size)] + log_bessel(likelihood.order, length)

    def upper_bounds(likelihood, clusters, i, start, stop, scratch):
        for s in range(stop - start):
            size = clusters.weights[i] + clusters.weights[start + s]
            if np.isnan(size) or start + s == i:
                scratch.bounds[s] = np.nan
            else:
                rest = likelihood.by_size[np.int64(size)]
                length = _length_of_union(likelihood, clusters, i, start + s)
                term = log_bessel(likelihood.order, length)
                scratch.bounds[s] = rest + term + _ROUNDING * (1.0 + abs(rest) + term)


@kernel
def _length_of_union(likelihood, clusters, i, j):
    """‖κ₀m₀ + s‖ of two slots together."""
    squares = 0.0
    for k in range(clusters.means.shape[0]):
        entry = likelihood.prior[k] + (clusters.means[k, i] + clusters.means[k, j])
        squares += entry * entry
    return math.sqrt(squares)


def unit_vectors(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows divided by their lengths; squares of large and of small entries are avoided."""
    scaled = X / np.abs(X).max(axis=1, keepdims=True)
    directions: NDArray[np.float64] = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return directions
