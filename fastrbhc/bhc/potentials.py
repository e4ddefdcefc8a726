"""The recursion in its potential form, as a dissimilarity for the greedy algorithm.

For a cluster c of n rows with the parts a and b (Lee & Choi 2015, section 2.4),

    φ(X_c | H_c) = αΓ(n)·p(X_c | H_c)                    all of c is one cluster,
    φ(X_c | T_c) = φ(X_c | H_c) + φ(X_a | T_a)·φ(X_b | T_b)        or what the trees of a and b say,

and the dissimilarity is the logarithm of the odds *against* merging,

    d(a, b) = log φ(X_a | T_a) + log φ(X_b | T_b) − log φ(X_c | H_c).

It is negative if a merge is more likely than not, and far from reducible: the larger two parts of
one cluster are, the more certain is their union. `fastrbhc._engine.agglomeration.greedy` is exact
nevertheless. `Potentials` is a geometry in the sense of `fastrbhc._engine.geometry.contract`,
without the methods for the kd-tree and audits. All values are logarithms, including log α, without
the terms of a row that do not depend on the cluster.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import gammaln

from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.build_sparse import clusters_of_sparse_points
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters
from fastrbhc._engine.clusters.scratch import Scratch, new_scratch
from fastrbhc._engine.clusters.segments import compact, lacks_room
from fastrbhc._engine.clusters.sparse_rows import SparseObservations, sparse_rows
from fastrbhc._engine.geometry.contract import (
    ScratchShapes,
    Storage,
    dissimilarity,
    refresh,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record, replaced
from fastrbhc._engine.simd import at_most, load
from fastrbhc.bhc._interface import (
    FEATURE_LOG_TREE,
    LOG_MARGINAL,
    LOG_TREE,
    OWN_CACHED,
    OWN_FEATURES,
    join,
    log_marginal,
    summarise,
    upper_bounds,
)

# Covers the rounding of a bound and of the value it bounds, as a share of their terms.
_ROUNDING = 1e-13


@record
class Potentials:
    """The geometry. Cached values of a slot: log φ(X | T), ℓ, and those of the likelihood."""

    likelihood: Any
    log_alpha: float
    log_gammas: NDArray[np.float64]  # (n + 2,), log Γ of the number of rows

    def storage(self, n_columns: int) -> Storage:
        own = self.likelihood.storage(n_columns)
        return own._replace(
            cached=OWN_CACHED + own.cached, scan_features=OWN_FEATURES + own.scan_features
        )

    def blocks_of(self, n_columns: int) -> tuple[tuple[Any, int], ...]:
        # The first values that a block caches are those of the whole: likelihoods leave them alone.
        parts = self.likelihood.parts(n_columns) if hasattr(self.likelihood, "parts") else ()
        return tuple((replaced(self, likelihood=part), columns) for part, columns in parts)

    def scratch_shapes(self, n_columns: int) -> ScratchShapes:
        return self.likelihood.scratch_shapes(n_columns)

    def with_mirror(self, clusters: Clusters) -> Clusters:
        # Free slots stay 0: likelihoods look values up in tables, and NaN is not an index.
        n = clusters.n_slots
        clusters.mirror.values[:, :n] = clusters.means[:, :n]
        return clusters

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        apart = clusters.cached[i, LOG_TREE] + clusters.cached[j, LOG_TREE]
        weight = clusters.weights[i] + clusters.weights[j]
        if np.isnan(weight):  # the hint of a look-up may be a slot that is free by now
            return np.nan
        prior = _log_prior(geometry, weight)
        floor = apart - prior - cutoff
        return apart - (prior + log_marginal(geometry.likelihood, clusters, i, j, floor, scratch))

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        upper_bounds(geometry.likelihood, clusters, i, start, stop, scratch)
        log_trees = clusters.scan_features[FEATURE_LOG_TREE]
        bounds, weight, own = scratch.bounds, clusters.weights[i], log_trees[i]
        for s in range(stop - start):
            # Not for slot i with itself, which may have more rows than there are.
            if not np.isnan(bounds[s]) and start + s != i:
                together, other = bounds[s], log_trees[start + s]
                prior = _log_prior(geometry, weight + clusters.weights[start + s])
                size = abs(own) + abs(other) + abs(prior) + abs(together)
                bounds[s] = own + other - (prior + together) - _ROUNDING * size

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        for s in range(LEAF_SIZE):
            scratch.bounds[s] = np.nan
            if not np.isnan(clusters.weights[start + s]):
                scratch.bounds[s] = dissimilarity(geometry, clusters, i, start + s, cutoff, scratch)
        return at_most(load(scratch.bounds, (0,)), cutoff)

    def merge(geometry, clusters, i, j, scratch):
        apart = clusters.cached[i, LOG_TREE] + clusters.cached[j, LOG_TREE]
        join(geometry.likelihood, clusters, i, j)
        refresh(geometry, clusters, i, scratch)
        either = log_sum(apart, clusters.cached[i, LOG_TREE])
        clusters.cached[i, LOG_TREE] = clusters.scan_features[FEATURE_LOG_TREE, i] = either

    def refresh(geometry, clusters, i, scratch):
        """Treat slot i as a single row, whose tree has one hypothesis."""
        marginal = summarise(geometry.likelihood, clusters, i, scratch)
        together = _log_prior(geometry, clusters.weights[i]) + marginal
        clusters.cached[i, LOG_TREE] = clusters.scan_features[FEATURE_LOG_TREE, i] = together
        clusters.cached[i, LOG_MARGINAL] = marginal


@kernel
def log_sum(a, b):
    """log(eᵃ + eᵇ)."""
    larger, smaller = max(a, b), min(a, b)
    return larger + math.log1p(math.exp(smaller - larger))


@kernel
def _log_prior(geometry, weight):
    """log αΓ(n)."""
    return geometry.log_alpha + geometry.log_gammas[np.int64(weight)]


def potentials_of(likelihood: Any, log_alpha: float, n: int) -> Potentials:
    """The geometry for up to n + 1 rows."""
    sizes = np.maximum(np.arange(n + 2.0), 1.0)
    return Potentials(likelihood, float(log_alpha), gammaln(sizes))


def points_of(X: Any) -> Observations | SparseObservations:
    """The rows as points, to order them by their values."""
    return sparse_rows(X) if issparse(X) else Observations(X)


def clusters_of_rows(geometry: Potentials, X: Any, padded: bool = False) -> Clusters:
    """One slot per row, in the order that decides ties; if padded, with free slots for merging."""
    observed = geometry.likelihood.observe(X)
    if isinstance(observed, SparseObservations):
        return clusters_of_sparse_points(geometry, observed, padded, heaviest_first=False)
    return clusters_of_points(geometry, Observations(observed), padded)


def scratch_of(geometry: Potentials, X: Any) -> Scratch:
    """Scratch memory for clusters of these rows."""
    observed = geometry.likelihood.observe(X[:1])
    return new_scratch(geometry, 0 if issparse(X) else observed.shape[1])


def absorb(geometry: Potentials, clusters: Clusters, i: Any, j: Any, scratch: Scratch) -> None:
    """Put the union of slots i and j into slot i, without regard to their trees; cache its ℓ."""
    if lacks_room(clusters.segments):
        compact(clusters.segments, clusters.weights.size)
    _absorb(geometry, clusters, i, j, scratch)


@kernel
def _absorb(geometry, clusters, i, j, scratch):
    join(geometry.likelihood, clusters, i, j)
    clusters.cached[i, LOG_MARGINAL] = summarise(geometry.likelihood, clusters, i, scratch)
    for k in range(clusters.segments.places.shape[1]):
        clusters.segments.places[j, k] = 0  # nothing to keep when the pool is compacted
