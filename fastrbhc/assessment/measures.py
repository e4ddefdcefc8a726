"""Measures of clusters that need no resampling: silhouettes, shares of the cost, lifetimes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.build import clusters_of_groups
from fastrbhc._engine.clusters.comparison import row_dissimilarities, separations
from fastrbhc._engine.clusters.observations import Observations, take
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.traversal import common_labels, merged_sums, subtree_sums
from fastrbhc.tree.dendrogram import Dendrogram

# A row is compared with the nine tenths of its cluster that it is not one of.
_FOLDS = 10


def silhouettes(
    geometry: Any,
    rows: Observations | SparseObservations,
    labels: NDArray[np.int64],
    n_clusters: int,
) -> NDArray[np.float64]:
    """The Bregman silhouette (b − a)/max(a, b) of every row, O(n k).

    a is d between the row and its own cluster, b the smallest d between the row and another
    cluster. A row must not count as evidence for its own cluster, so a tenth of the rows of its
    cluster, this one among them, is left out for a; in clusters of up to ten rows, the row alone.
    A row that is alone in its cluster has silhouette 0, and with one cluster all have NaN.
    """
    values = np.full(labels.size, np.nan)
    if n_clusters < 2:
        return values
    whole = clusters_of_groups(geometry, rows, labels, n_clusters)
    folds = _positions_within(labels) % _FOLDS
    for fold in range(min(_FOLDS, int(folds.max()) + 1)):
        out = np.flatnonzero(folds == fold)
        kept = np.flatnonzero(folds != fold)
        without = clusters_of_groups(geometry, take(rows, kept), labels[kept], n_clusters)
        left_out, own = take(rows, out), (np.arange(out.size), labels[out])
        a = row_dissimilarities(geometry, without, left_out)[own]
        others = row_dissimilarities(geometry, whole, left_out)
        others[own] = np.inf
        b = others.min(axis=1)
        with np.errstate(invalid="ignore"):
            s = (b - a) / np.maximum(a, b)
        # Alone, or as near to both; without any other cluster that has weight, it is in its own.
        values[out] = np.where(np.isinf(a), 0.0, np.where(np.isinf(b), 1.0, np.nan_to_num(s)))
    return values


def _positions_within(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The position of every row among the rows of its label."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    starts = np.searchsorted(ordered, ordered)
    positions = np.empty(labels.size, np.int64)
    positions[order] = np.arange(labels.size) - starts
    return positions


def explained_shares(
    geometry: Any,
    rows: Observations | SparseObservations,
    labels: NDArray[np.int64],
    n_clusters: int,
    cost_within: float,
) -> tuple[NDArray[np.float64], float]:
    """Share of the total cost that each cluster explains, and that all of them explain together.

    With f(c) = n φ(t), the cost of all rows in one cluster is F = Σ f({x}) − f(all), which is the
    sum of all heights of a tree. Setting cluster c apart from the rest saves
    d(c, rest) = f(c) + f(rest) − f(all) of it: its share is d(c, rest)/F. All clusters together
    save Σ f(c) − f(all). The shares of single clusters do not add up to that.
    """
    clusters = clusters_of_groups(geometry, rows, labels, n_clusters)
    saved, together = separations(geometry, clusters)
    total = together + cost_within
    if total <= 0.0:
        return np.zeros(n_clusters), 0.0
    return saved / total, together / total


def nodes_of_labels(
    tree: Dendrogram, labels: NDArray[np.int64], n_clusters: int
) -> NDArray[np.int64]:
    """The node of each cluster; −1 if its rows are not those of a node."""
    ones = np.ones(tree.n_leaves, np.int64)
    sizes = np.concatenate([ones, merged_sums(tree.merges, ones)])
    common = common_labels(tree.merges, labels)
    known = np.flatnonzero(common >= 0)
    nodes = np.full(n_clusters, -1)
    nodes[common[known]] = known  # the last node of a label is the largest
    return np.where(sizes[nodes] == np.bincount(labels, minlength=n_clusters), nodes, -1)


def parents_of(tree: Dendrogram, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The merge that joins each node with another, as a node; −1 for a root."""
    n = tree.n_leaves
    parents = np.full(n + len(tree.merges), -1)
    parents[tree.merges] = n + np.arange(len(tree.merges))[:, None]
    return parents[nodes]


def levels_of(tree: Dendrogram, nodes: NDArray[np.int64], otherwise: float) -> NDArray[np.float64]:
    """The level of each node: 0 for a single row, and another value for the node −1."""
    levels = np.concatenate([np.zeros(tree.n_leaves), tree.levels])
    return np.where(nodes < 0, otherwise, levels[nodes])


def costs_of(tree: Dendrogram) -> NDArray[np.float64]:
    """The cost of every node: the sum of the heights in its subtree."""
    sums = subtree_sums(tree.merges, tree.heights, tree.n_leaves)
    return np.concatenate([np.zeros(tree.n_leaves), sums])
