"""The recursion in its potential form, as a dissimilarity that the greedy algorithm can merge by.

For a cluster c of n rows with the parts a and b (Lee & Choi 2015, section 2.4),

    φ(X_c | H_c) = αΓ(n)·p(X_c | H_c)                    all of c is one cluster,
    φ(X_c | T_c) = φ(X_c | H_c) + φ(X_a | T_a)·φ(X_b | T_b)        or what the trees of a and b say,

and the dissimilarity is the logarithm of the odds *against* merging,

    d(a, b) = log φ(X_a | T_a) + log φ(X_b | T_b) − log φ(X_c | H_c).

It is negative where a merge is more likely than not, and far from reducible: the larger two parts
of one cluster have grown, the surer is their union. `fastrbhc._engine.agglomeration.greedy` is
exact all the same. `Potentials` is a geometry as `fastrbhc._engine.geometry.contract` describes
them, but for what only the kd-tree and audits ask. Everything is a logarithm, log α too, and
leaves out what a row adds whatever the cluster.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from fastrbhc._engine.geometry.contract import (
    SPARE,
    TILE,
    Clusters,
    Sizes,
    candidates_by_bounds,
    dissimilarity,
    refresh,
    suspects_one_by_one,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.simd import at_most, load
from fastrbhc.bhc._interface import join, log_marginal, summarise, upper_bounds

# Covers the rounding of a bound and of the value it bounds, as a share of their terms.
_ROUNDING = 1e-13


class Potentials(NamedTuple):
    """The geometry. Cached of a slot: log φ(X | T), and ℓ, see `_interface`."""

    likelihood: Any
    log_alpha: float
    log_gammas: NDArray[np.float64]  # (n + 2,), log Γ of the number of rows

    def sizes(self, n_columns: int) -> Sizes:
        return self.likelihood.sizes(n_columns)

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        apart = clusters.cached[i, 0] + clusters.cached[j, 0]
        prior = _log_prior(geometry, clusters.weights[i] + clusters.weights[j])
        floor = apart - prior - cutoff
        return apart - (prior + log_marginal(geometry.likelihood, clusters, i, j, floor, scratch))

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        upper_bounds(geometry.likelihood, clusters, i, start, stop, scratch)
        bounds, weight, own = scratch.bounds, clusters.weights[i], clusters.outlines[0, i]
        for s in range(stop - start):
            if not np.isnan(bounds[s]):
                together, other = bounds[s], clusters.outlines[0, start + s]
                prior = _log_prior(geometry, weight + clusters.weights[start + s])
                size = abs(own) + abs(other) + abs(prior) + abs(together)
                bounds[s] = own + other - (prior + together) - _ROUNDING * size

    def candidates(geometry, clusters, i, start, stop, cutoff, scratch):
        return candidates_by_bounds(geometry, clusters, i, start, stop, cutoff, scratch)

    def aim(geometry, clusters, queue, first, last, scratch):
        return

    def suspects(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch):
        return suspects_one_by_one(
            geometry, clusters, queue, first, last, start, stop, cutoffs, scratch
        )

    def tile_values(geometry, clusters, i, start, cutoff, scratch):
        for s in range(TILE):
            scratch.bounds[s] = np.nan
            if not np.isnan(clusters.weights[start + s]):
                scratch.bounds[s] = dissimilarity(geometry, clusters, i, start + s, cutoff, scratch)
        return at_most(load(scratch.bounds, (0,)), cutoff)

    def merge(geometry, clusters, i, j, scratch):
        apart = clusters.cached[i, 0] + clusters.cached[j, 0]
        join(geometry.likelihood, clusters, i, j)
        refresh(geometry, clusters, i, scratch)
        together = clusters.cached[i, 0]
        larger, smaller = max(apart, together), min(apart, together)
        either = larger + math.log1p(math.exp(smaller - larger))
        clusters.cached[i, 0] = clusters.outlines[0, i] = either

    def refresh(geometry, clusters, i, scratch):
        """As if slot i were a point, whose tree is its only hypothesis."""
        marginal = summarise(geometry.likelihood, clusters, i, scratch)
        together = _log_prior(geometry, clusters.weights[i]) + marginal
        clusters.cached[i, 0] = clusters.outlines[0, i] = together
        clusters.cached[i, 1] = marginal


@kernel
def _log_prior(geometry, weight):
    """log αΓ(n)."""
    return geometry.log_alpha + geometry.log_gammas[np.int64(weight)]


def potentials_of(likelihood: Any, log_alpha: float, n: int) -> Potentials:
    """The geometry of up to n rows, and one more."""
    sizes = np.maximum(np.arange(n + 2.0), 1.0)
    return Potentials(likelihood, float(log_alpha), gammaln(sizes))


def clusters_of_rows(
    geometry: Potentials, X: NDArray[np.float64], scratch: Any, spare: int | None = None
) -> Clusters:
    """One slot for every row, in the order that decides ties, and spare ones.

    By default so many as the greedy algorithm wants, after as many as fill up the last tile.
    """
    rows = geometry.likelihood.observe(X)
    n, n_columns = rows.shape
    tiles = -(-n // TILE) * TILE
    capacity = tiles + min(SPARE, tiles) if spare is None else n + spare
    sizes = geometry.sizes(n_columns)
    clusters = Clusters(
        weights=np.full(capacity, np.nan),
        means=np.full((n_columns, capacity), np.nan),
        residuals=np.zeros((n_columns, capacity)),
        coarse=np.zeros((n_columns if sizes.coarse else 0, capacity), np.float32),
        order=np.arange(n_columns),
        centre=np.zeros(n_columns),
        radius=np.ones(1),
        slack=np.zeros(1),
        moments=np.zeros((capacity, sizes.moments)),
        cached=np.zeros((capacity, sizes.cached)),
        outlines=np.zeros((sizes.outline, capacity)),
        ranks=np.arange(capacity),
        columns=(),
    )
    clusters.weights[:n] = 1.0
    clusters.means[:, :n] = rows.T
    clusters.coarse[:, :n] = rows.T[: clusters.coarse.shape[0]]
    _refresh_all(geometry, clusters, n, scratch)
    return clusters


@kernel
def absorb(geometry, clusters, i, j, scratch):
    """Put the union of slots i and j into slot i, whatever their trees were, and know its ℓ."""
    join(geometry.likelihood, clusters, i, j)
    clusters.cached[i, 1] = summarise(geometry.likelihood, clusters, i, scratch)


@kernel
def _refresh_all(geometry, clusters, count, scratch):
    for i in range(count):
        refresh(geometry, clusters, i, scratch)
