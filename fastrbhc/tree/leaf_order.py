"""The order of rows in which similar clusters are neighbours, and the distances it goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.clusters.build import clusters_of_groups, dissimilarities
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._engine.leaf_ordering import best_order
from fastrbhc._engine.traversal import leaf_spans, roots_after
from fastrbhc._row_validation import check_rows
from fastrbhc._validation import check_count
from fastrbhc.families import Family, geometry_of
from fastrbhc.families._missing import observe
from fastrbhc.tree.origin import family_for, missing_in

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

# More would take memory and time: O(k²) and O(k³).
_MOST_NODES = 5_000


def optimal_order(
    tree: Dendrogram,
    X: ArrayLike,
    *,
    max_nodes: int = 1_000,
    family: str | Family | None = None,
) -> NDArray[np.int64]:
    """The rows in the order of ``tree.leaves_order(optimal=True, X=X)``, which describes it."""
    k = check_count(max_nodes, "max_nodes")
    if k > _MOST_NODES:
        raise ValueError(f"max_nodes is at most {_MOST_NODES:,}, got {k:,}: time grows as its cube")
    family = family_for(tree, family)
    rows = check_rows(X, family, min_rows=1, layout="auto", missing=missing_in(tree))
    n, m = tree.n_leaves, len(tree.merges)
    if rows.shape[0] != n:
        raise ValueError(f"X has {rows.shape[0]} rows and the tree has {n}")
    undone = max(0, min(m, k - tree.n_trees))
    starts, _ = leaf_spans(tree.merges, n)
    if not undone:
        return np.argsort(starts[:n])
    tips, labels = np.unique(roots_after(tree.merges, n, m - undone), return_inverse=True)
    # A tree of the highest merges, whose leaves are the parts that they join.
    numbers = np.full(n + m, -1)
    numbers[tips] = np.arange(tips.size)
    numbers[n + m - undone :] = tips.size + np.arange(undone)
    top = numbers[tree.merges[m - undone :]]
    distances = distances_of_groups(family, rows, labels, tree.node_weights[:n])
    first = np.empty(tips.size, np.int64)  # the place of each part, from left to right
    first[best_order(top, tips.size, distances)] = np.arange(tips.size)
    # Rows of a part stay as they are.
    return np.lexsort((starts[:n], first[labels]))


def distances_of_groups(
    family: Family,
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """d of all pairs of groups of rows, as if each group weighed 1, as a square matrix.

    d of the groups as they are grows with their weights, so that light groups would seem to be near
    to everything. With weights of 1 it is φ(s) + φ(t) − 2φ((s + t)/2), for means s and t.
    """
    observed = weighted(observe(family, rows), weights)
    own = observed.all_weights()
    totals, k = np.bincount(labels, own), int(labels.max()) + 1
    counts = np.bincount(labels)
    # The mean of rows without weight is as good as any.
    shares = np.where(totals > 0.0, 1.0 / np.where(totals > 0.0, totals, 1.0), 0.0)[labels]
    shares = np.where(totals[labels] > 0.0, own * shares, 1.0 / counts[labels])
    observed = observed._replace(weights=shares)
    geometry = geometry_of(family, observed)
    pairs = dissimilarities(geometry, clusters_of_groups(geometry, observed, labels, k))
    square = np.zeros((k, k))
    square[np.triu_indices(k, 1)] = pairs
    return square + square.T
