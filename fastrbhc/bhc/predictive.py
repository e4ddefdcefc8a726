"""The predictive density of new rows.

Every clustering consistent with the tree has a posterior probability. In it, a new row x joins
cluster k of n_k rows, or none, as in the Dirichlet process: with the probabilities n_k/(n + α) and
α/(n + α).
Node k is one of the clusters with the probability (Heller & Ghahramani 2005)

    ω_k = r_k Π (1 − r_i),          i on the path from the root to the parent of k,

and r = 1 for leaves. Summed over all clusterings that is a mixture over all nodes,

    p(x | X) = Σ_k ω_k n_k/(n + α)·p(x | X_k) + α/(n + α)·p(x).

Every row is in one cluster, so Σ ω_k n_k = n, and the weights add up to 1. (The ω_k alone add up
to the expected number of clusters.) A predictive density is a ratio of marginal likelihoods,
p(x | X_k) = p(X_k ∪ x)/p(X_k), so a model needs no further methods.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from fastrbhc._engine.jit import kernel
from fastrbhc.bhc._interface import LOG_MARGINAL, Model, log_marginal
from fastrbhc.bhc.dendrogram import BayesianDendrogram
from fastrbhc.bhc.potentials import (
    Potentials,
    absorb,
    clusters_of_rows,
    log_sum,
    potentials_of,
    scratch_of,
)

# New rows that are processed together.
_PORTION = 1024

# Nodes with a weight below e^−200 are left out, such as those inside certain clusters.
_LEAST = -200.0


def log_densities(X: Any, new: Any, model: Model, tree: BayesianDendrogram) -> NDArray[np.float64]:
    """log p(x | X) of every new row, with X the rows of the tree."""
    log_weights = log_node_weights(tree)
    alpha_share = tree.log_alpha - math.log(tree.n_leaves + math.exp(tree.log_alpha))
    n, out = tree.n_leaves, np.empty(new.shape[0])
    for start, geometry, clusters, scratch in _portions(X, new, model):
        part = out[start : start + _PORTION]
        part[:] = alpha_share + clusters.cached[n:, LOG_MARGINAL]
        for leaf in np.flatnonzero(log_weights[:n] >= _LEAST):
            _add_densities(geometry, clusters, leaf, log_weights[leaf], part, scratch)
        slots = np.arange(2 * n - 1)
        for node, (a, b) in enumerate(tree.merges, start=n):
            slots[node] = slots[a]
            absorb(geometry, clusters, slots[a], slots[b], scratch)
            if log_weights[node] >= _LEAST:
                _add_densities(geometry, clusters, slots[node], log_weights[node], part, scratch)
    return out + model.log_base_measure(new)


def log_densities_of_clusters(
    X: Any, new: Any, model: Model, labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """log p(x | X_k) of every new row under each cluster: (new rows, clusters)."""
    out = np.full((int(labels.max()) + 1, new.shape[0]), -np.inf)
    for start, geometry, clusters, scratch in _portions(X, new, model):
        for k, densities in enumerate(out[:, start : start + _PORTION]):
            first, *others = np.flatnonzero(labels == k)
            for row in others:
                absorb(geometry, clusters, first, row, scratch)
            _add_densities(geometry, clusters, first, 0.0, densities, scratch)
    return out.T + model.log_base_measure(new)[:, None]


def log_node_weights(tree: BayesianDendrogram) -> NDArray[np.float64]:
    """log ω_k n_k/(n + α) of every node, leaves first."""
    log_weights = np.empty(2 * tree.n_leaves - 1)
    _descend(tree.merges, tree.heights, tree.weights, log_weights)
    return log_weights - math.log(tree.n_leaves + math.exp(tree.log_alpha))


def _portions(X: Any, new: Any, model: Model) -> Iterator[tuple[int, Potentials, Any, Any]]:
    """New clusters, one slot per row: first the rows of the tree, then some new rows."""
    likelihood = model.likelihood(X).for_new_rows(new)
    geometry = potentials_of(likelihood, 0.0, X.shape[0])
    scratch = scratch_of(geometry, X)
    for start in range(0, new.shape[0], _PORTION):
        parts = [X, new[start : start + _PORTION]]
        rows = vstack(parts, format="csr") if issparse(X) else np.concatenate(parts)
        yield start, geometry, clusters_of_rows(geometry, rows), scratch


@kernel
def _descend(merges: Any, heights: Any, sizes: Any, log_weights: Any) -> None:
    """log ω_k n_k from the root down."""
    n = heights.size + 1
    log_weights[2 * n - 2] = 0.0
    for i in range(n - 2, -1, -1):
        reached, odds_against = log_weights[n + i], heights[i]
        log_weights[merges[i, 0]] = log_weights[merges[i, 1]] = reached - log_sum(
            0.0, -odds_against
        )
        log_weights[n + i] = reached - log_sum(0.0, odds_against) + math.log(sizes[i])


@kernel
def _add_densities(
    geometry: Any, clusters: Any, slot: int, log_weight: float, out: Any, scratch: Any
) -> None:
    """Add the weighted p(x | X_k) to the sums of the new rows, which are in the last slots.

    Without the base measure of x, which is the same for all clusters.
    """
    first = clusters.weights.size - out.size
    for row in range(out.size):
        union = log_marginal(geometry.likelihood, clusters, slot, first + row, -np.inf, scratch)
        out[row] = log_sum(out[row], log_weight + (union - clusters.cached[slot, LOG_MARGINAL]))
