"""The top of a tree: as many merges as a picture can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.traversal import leaf_spans, merged_minima

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram


class Crown(NamedTuple):
    """The part of a tree that is drawn."""

    rows: NDArray[np.int64]  # merges, children before parents
    tips: NDArray[np.int64]  # nodes that end the picture, from left to right
    roots: NDArray[np.int64]  # of the trees that are drawn
    sizes: NDArray[np.int64]  # of all nodes
    starts: NDArray[np.int64]  # of all nodes: the place of their first row, from left to right

    def labels(self, n_leaves: int) -> NDArray[np.int64]:
        """The tip of every row, counted from the left; −1 for rows of trees that are not drawn."""
        places, first = self.starts[:n_leaves], self.starts[self.tips]
        found = np.searchsorted(first, places, side="right") - 1
        drawn = (found >= 0) & (places < (first + self.sizes[self.tips])[found])
        return np.where(drawn, found, -1)


def crown_of(
    tree: Dendrogram,
    max_leaves: int,
    order: NDArray[np.int64] | None = None,
    by_size: bool = False,
) -> Crown:
    """The highest merges, or those of the most rows, of all trees or of the largest ones."""
    n, m = tree.n_leaves, len(tree.merges)
    starts, sizes = leaf_spans(tree.merges, n)
    if order is not None:
        places = np.argsort(order)
        starts = np.concatenate([places, merged_minima(tree.merges, places)])
    is_root = np.ones(n + m, bool)
    is_root[tree.merges] = False
    roots, most_trees = np.flatnonzero(is_root), max(max_leaves // 2, 1)
    rows = np.arange(m)
    if roots.size > most_trees:
        largest = np.lexsort((starts[roots], -sizes[roots]))[:most_trees]
        roots = roots[largest]
        roots = roots[np.argsort(starts[roots])]
        tree_before = np.searchsorted(starts[roots], starts[n:], side="right") - 1
        within = (tree_before >= 0) & (
            starts[n:] < starts[roots[tree_before]] + sizes[roots[tree_before]]
        )
        rows = np.flatnonzero(within)
    if by_size:  # a merge has more rows than those below it
        rows = rows[np.argsort(sizes[n + rows], kind="stable")]
    rows = np.sort(rows[max(0, rows.size - (max_leaves - roots.size)) :])
    tips = np.setdiff1d(np.concatenate([tree.merges[rows].ravel(), roots]), n + rows)
    return Crown(rows, tips[np.argsort(starts[tips])], roots, sizes, starts)


def check_order(order: ArrayLike, tree: Dendrogram) -> NDArray[np.int64]:
    """An order of the rows in which those of every node are adjacent."""
    given, n = np.asarray(order), tree.n_leaves
    if given.dtype.kind not in "iu" or given.shape != (n,):
        raise ValueError(f"order has to hold each of the {n} rows once, as tree.leaves_order does")
    if not np.array_equal(np.sort(given), np.arange(n)):
        raise ValueError(f"order has to hold each of the rows 0 to {n - 1} once")
    places = np.argsort(given)
    first, last = merged_minima(tree.merges, places), -merged_minima(tree.merges, -places)
    if not np.array_equal(last - first + 1, leaf_spans(tree.merges, n)[1][n:]):
        raise ValueError(
            "order is not one of this tree: the rows of every merge have to stand side by side, as "
            "in tree.leaves_order(optimal=True, X=X)"
        )
    return given.astype(np.int64)
