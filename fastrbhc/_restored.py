"""An estimator of a tree that was built before, from the rows that it was made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.observations import take, weighted
from fastrbhc._validation import check_weights
from fastrbhc.estimators import RBHC
from fastrbhc.families import geometry_of
from fastrbhc.families._missing import observe
from fastrbhc.tree.dendrogram import Dendrogram
from fastrbhc.tree.origin import family_for, missing_in

# So many merges of two rows are computed again, to see whether rows belong to a tree.
_MOST_COMPARED = 16
_ROUNDING = 1e-6


def restored(
    tree: Dendrogram, X: ArrayLike, *, sample_weight: ArrayLike | None = None, **cut: Any
) -> RBHC:
    """An estimator with the clusters of a tree, as if it had been fitted.

    Parameters
    ----------
    tree : Dendrogram
        A tree that remembers its family, such as one from JSON.
    X : array-like of shape (n_samples, n_features)
        The rows it was made of, in the same order. They are compared with the tree: their number,
        their weights, and d of some merges of two rows.
    sample_weight : array-like of shape (n_samples,), optional
        Their weights.
    **cut
        Where to cut: ``threshold`` or ``n_clusters``, as in `Dendrogram.cut`.

    Returns
    -------
    RBHC
        For ``predict`` and the other methods for new rows.

    Examples
    --------
    >>> import fastrbhc
    >>> from fastrbhc._restored import restored
    >>> X = [[9, 1], [8, 2], [1, 9], [2, 7]]
    >>> tree = fastrbhc.Dendrogram.from_json(fastrbhc.linkage(X, "poisson").to_json())
    >>> restored(tree, X, n_clusters=2).predict([[7, 1], [0, 8]]).tolist()
    [0, 1]
    """
    family, missing = family_for(tree, None), missing_in(tree)
    model = RBHC(family, missing=missing, **{"threshold": None, **cut})
    rows = model._check(X, family, reset=True, layout="auto", missing=missing)
    weights = check_weights(sample_weight, rows.shape[0])
    if rows.shape[0] != tree.n_leaves:
        raise ValueError(
            f"there are {rows.shape[0]:,} rows, and the tree was made of {tree.n_leaves:,}"
        )
    points = weighted(observe(family, rows, gaps=missing == "ignore"), weights)
    _compare_weights(tree, np.ones(rows.shape[0]) if weights is None else weights)
    _compare_heights(tree, family, points)
    model._keep_tree(tree, **cut)
    model._keep_clusters(rows, family, weights, missing)
    return model


def _compare_weights(tree: Dendrogram, weights: NDArray[np.float64]) -> None:
    """Reject rows of other weights than the leaves of the tree."""
    expected = tree.node_weights[: tree.n_leaves]
    wrong = np.flatnonzero(np.abs(weights - expected) > _ROUNDING * expected)
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(
            f"these are not the rows that the tree was made of, or not their weights: row {row} "
            f"has weight {weights[row]:g}, and {expected[row]:g} in the tree"
        )


def _compare_heights(tree: Dendrogram, family: Any, points: Any) -> None:
    """Reject rows whose d is not the height at which the tree merges them."""
    # Rows of weight 0 join whichever row is nearest to them.
    heavy = (tree.node_weights[: tree.n_leaves] > 0.0)[np.minimum(tree.merges, tree.n_leaves - 1)]
    pairs = np.flatnonzero((tree.merges < tree.n_leaves).all(axis=1) & heavy.all(axis=1))
    chosen = pairs[np.linspace(0, pairs.size - 1, min(pairs.size, _MOST_COMPARED)).astype(int)]
    for merge in chosen:
        two = take(points, tree.merges[merge])
        geometry = geometry_of(family, two)
        clusters = statistics.clusters_of_groups(geometry, two, np.array([0, 1]), 2)
        d, height = float(statistics.dissimilarities(geometry, clusters)[0]), tree.heights[merge]
        if abs(d - height) > _ROUNDING * max(abs(d), abs(height)) + 1e-12 * tree.heights.max():
            a, b = tree.merges[merge].tolist()
            raise ValueError(
                f"these are not the rows that the tree was made of: it merges rows {a} and {b} at "
                f"{height:.6g}, and their dissimilarity is {d:.6g}"
            )
