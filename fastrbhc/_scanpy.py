"""The tree of clusters in the form that scanpy's plots read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from fastrbhc._engine.traversal import common_labels, leaf_spans, merged_sums
from fastrbhc.tree.dendrogram import Dendrogram

# SciPy draws leaves at 5, 15, 25, …, and scanpy counts on it.
_FIRST, _STEP = 5.0, 10.0


def tree_of_clusters(
    tree: Dendrogram, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The merges above the clusters of a cut, and their levels. Leaf i is the cluster i.

    A cut undoes the last merges, so that these are the ones.
    """
    n, k = tree.n_leaves, int(labels.max()) + 1
    first = n - k
    numbers = common_labels(tree.merges, labels)
    numbers[n + first :] = k + np.arange(len(tree.merges) - first)
    return np.sort(numbers[tree.merges[first:]], axis=1), tree.levels[first:]


def scanpy_dendrogram(
    tree: Dendrogram, labels: NDArray[np.int64], X: Any, key: str, source: str
) -> dict[str, Any]:
    """What ``scanpy.tl.dendrogram`` stores for two or more clusters, with heights of this tree."""
    merges, levels = tree_of_clusters(tree, labels)
    k = len(merges) + 1
    starts, _ = leaf_spans(merges, k)
    order = np.argsort(starts[:k])
    names = [str(label) for label in order]
    return {
        "linkage": np.column_stack([merges, levels, merged_sums(merges, np.ones(k))]),
        "groupby": [key],
        "use_rep": source,
        "cor_method": "pearson",
        "linkage_method": "rbhc",
        "categories_ordered": names,
        "categories_idx_ordered": order.tolist(),
        "dendrogram_info": {**_branches(merges, levels, order), "ivl": names, "leaves": order},
        "correlation_matrix": _correlations(X, labels),
    }


def _branches(
    merges: NDArray[np.int64], levels: NDArray[np.float64], order: NDArray[np.int64]
) -> dict[str, Any]:
    """The corners of every bracket of the picture, as SciPy gives them but without recursion."""
    k = len(order)
    places, tops = np.empty(2 * k - 1), np.append(np.zeros(k), levels)
    places[order] = _FIRST + _STEP * np.arange(k)
    for merge, (left, right) in enumerate(merges):
        places[k + merge] = 0.5 * (places[left] + places[right])
    left, right = merges.T
    across = np.column_stack([places[left], places[left], places[right], places[right]])
    up = np.column_stack([tops[left], levels, levels, tops[right]])
    return {
        "icoord": across,
        "dcoord": up,
        "color_list": ["C0"] * (k - 1),
        "leaves_color_list": ["C0"] * k,
    }


def _correlations(X: Any, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Pearson's correlations of the mean rows of clusters; 0 where a mean row is constant."""
    member = csr_array((np.ones(labels.size), (labels, np.arange(labels.size))))
    sums = member @ X
    means = (sums.toarray() if issparse(sums) else sums) / np.bincount(labels)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.nan_to_num(np.corrcoef(means))
    np.fill_diagonal(found, 1.0)
    return np.clip(found, -1.0, 1.0)
