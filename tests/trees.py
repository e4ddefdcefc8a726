"""Trees in a form that can be compared whatever the order of rows and merges."""

from __future__ import annotations

import numpy as np

from fastrbhc import Dendrogram, linkage


def leaf_sets(tree):
    """The leaves below each merge."""
    sets = [frozenset([leaf]) for leaf in range(tree.n_leaves)]
    for a, b in tree.merges:
        sets.append(sets[a] | sets[b])
    return sets[tree.n_leaves :]


def merged_sets(tree, order=None):
    """{leaf set: height}; with an order, leaf i of the tree is called order[i]."""
    names = np.arange(tree.n_leaves) if order is None else order
    sets = (frozenset(int(names[leaf]) for leaf in leaves) for leaves in leaf_sets(tree))
    return dict(zip(sets, tree.heights.tolist(), strict=True))


def merged_values(tree, X):
    """The merges above height 0 as (sorted rows below, height), sorted.

    Rows are identified by their values, because copies of a row are interchangeable.
    """
    rows = [tuple(row) for row in (np.asarray(X, float) + 0.0).tolist()]
    return sorted(
        (sorted(rows[leaf] for leaf in leaves), height)
        for leaves, height in zip(leaf_sets(tree), tree.heights.tolist(), strict=True)
        if height > 0.0
    )


def same_tree(tree0, tree1):
    """Whether two trees agree in every bit."""
    return all(
        np.array_equal(getattr(tree0, name), getattr(tree1, name))
        for name in ("merges", "heights", "weights", "n_leaves", "threshold", "steps")
    )


def chain(n):
    """A tree of the largest possible depth: every merge adds one leaf."""
    merges = np.column_stack([np.arange(1, n), np.arange(n - 1, 2 * n - 2)])
    merges[0] = [0, 1]
    return Dendrogram(merges, np.arange(1.0, n), np.arange(2.0, n + 1.0), n, steps=np.arange(n - 1))


def forest_with_ties():
    """Two trees and a single row, with weights; two merges have the same height."""
    return linkage(
        [[0.0], [1.0], [5.0], [6.0], [20.0], [21.5], [60.0]],
        "ward",
        threshold=20.0,
        sample_weight=[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 5.0],
    )
