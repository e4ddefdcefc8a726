"""What a tree says of new rows.

A clustering that the tree holds has a posterior probability, and in it a new row x joins cluster k
of n_k rows, or none, as in the Dirichlet process: with the probabilities n_k/(n + α) and α/(n + α).
Node k is one of the clusters with the probability (Heller & Ghahramani 2005)

    ω_k = r_k Π (1 − r_i),          i on the path from the root to the parent of k,

and r = 1 for leaves. Summed over all clusterings that is a mixture over all nodes,

    p(x | X) = Σ_k ω_k n_k/(n + α)·p(x | X_k) + α/(n + α)·p(x).

Every row lies in one cluster, so Σ ω_k n_k = n, and the weights add up to 1. (The ω_k alone add up
to the expected number of clusters.) A predictive density is a ratio of marginal likelihoods,
p(x | X_k) = p(X_k ∪ x)/p(X_k), so no model has to say more than it does for merging.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import compiling_for, kernel
from fastrbhc.bhc._interface import Model, join, log_marginal, summarise
from fastrbhc.bhc.dendrogram import BayesianDendrogram, log_sum
from fastrbhc.bhc.potentials import Potentials, clusters_of_rows, potentials_of
from fastrbhc.geometry import new_scratch

# New rows that are looked at together.
_PORTION = 256

# Nodes whose weight is less than e^−200 are left out: sure clusters are not taken apart.
_LEAST = -200.0


def log_densities(
    X: NDArray[np.float64], new: NDArray[np.float64], model: Model, tree: BayesianDendrogram
) -> NDArray[np.float64]:
    """log p(x | X) of every new row, X being the rows of the tree."""
    log_weights = log_node_weights(tree)
    alpha_share = tree.log_alpha - math.log(tree.n_leaves + math.exp(tree.log_alpha))
    out = np.empty(len(new))
    with compiling_for(model):
        for start, geometry, clusters, scratch in _portions(X, new, model):
            part = out[start : start + _PORTION]
            _mix(geometry, clusters, tree.merges, log_weights, alpha_share, part, scratch)
    return out + model.log_base(new)


def log_densities_of_clusters(
    X: NDArray[np.float64], new: NDArray[np.float64], model: Model, labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """log p(x | X_k) of every new row under each cluster: (new rows, clusters)."""
    out = np.empty((len(new), int(labels.max()) + 1))
    with compiling_for(model):
        for start, geometry, clusters, scratch in _portions(X, new, model):
            _compare(geometry, clusters, labels, out[start : start + _PORTION], scratch)
    return out + model.log_base(new)[:, None]


def log_node_weights(tree: BayesianDendrogram) -> NDArray[np.float64]:
    """log ω_k n_k/(n + α) of every node, leaves first."""
    log_weights = np.empty(2 * tree.n_leaves - 1)
    _descend(tree.merges, tree.heights, tree.weights, log_weights)
    return log_weights - math.log(tree.n_leaves + math.exp(tree.log_alpha))


def _portions(
    X: NDArray[np.float64], new: NDArray[np.float64], model: Model
) -> Iterator[tuple[int, Potentials, Any, Any]]:
    """Clusters of the rows and after them of some new rows, each a slot, afresh every time."""
    likelihood = model.likelihood(X).taking(new)
    geometry = potentials_of(likelihood, 0.0, len(X))
    scratch = new_scratch(geometry, likelihood.observe(X[:1]).shape[1])
    for start in range(0, len(new), _PORTION):
        rows = np.concatenate([X, new[start : start + _PORTION]])
        yield start, geometry, clusters_of_rows(geometry, rows, scratch, spare=0), scratch


@kernel
def _descend(merges, heights, sizes, log_weights):
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
def _mix(geometry, clusters, merges, log_weights, alpha_share, out, scratch):
    """The mixture over all nodes: leaves as they are, then the merges one by one."""
    n = merges.shape[0] + 1
    slots = np.empty(2 * n - 1, np.int64)
    for row in range(out.size):
        out[row] = alpha_share + clusters.cached[n + row, 1]
    for node in range(2 * n - 1):
        slots[node] = node
        if node >= n:
            a, b = slots[merges[node - n, 0]], slots[merges[node - n, 1]]
            join(geometry.likelihood, clusters, a, b)
            clusters.cached[a, 1] = summarise(geometry.likelihood, clusters, a, scratch)
            slots[node] = a
        if log_weights[node] < _LEAST:
            continue
        for row in range(out.size):
            value = log_weights[node] + _predictive(
                geometry, clusters, slots[node], n + row, scratch
            )
            out[row] = log_sum(out[row], value)


@kernel
def _compare(geometry, clusters, labels, out, scratch):
    """Join the rows of each cluster in its first one, and look at the new rows."""
    n, firsts = labels.size, np.full(out.shape[1], -1)
    for row in range(n):
        first = firsts[labels[row]]
        if first < 0:
            firsts[labels[row]] = row
        else:
            join(geometry.likelihood, clusters, first, row)
    for k in range(out.shape[1]):
        slot = firsts[k]
        clusters.cached[slot, 1] = summarise(geometry.likelihood, clusters, slot, scratch)
        for row in range(out.shape[0]):
            out[row, k] = _predictive(geometry, clusters, slot, n + row, scratch)


@kernel
def _predictive(geometry, clusters, slot, row, scratch):
    """log p(x | X_k) but for what x adds to every marginal likelihood."""
    union = log_marginal(geometry.likelihood, clusters, slot, row, -np.inf, scratch)
    return union - clusters.cached[slot, 1]
