"""The tree: merges, their heights, and the clusterings it holds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Never

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.math.radix_sort import stable_order
from fastrbhc._engine.traversal import (
    in_order,
    labels_after,
    leaf_spans,
    leaves_below,
    merged_sums,
    subtree_maxima,
)
from fastrbhc._stamps import Stamped
from fastrbhc._validation import check_count, check_node, check_threshold
from fastrbhc.reducibility.report import ReducibilityReport
from fastrbhc.tree._views import Views
from fastrbhc.tree.path import ClusteringPath, path_of


@dataclass(frozen=True, eq=False, repr=False)
class Dendrogram(Stamped, Views):
    """A binary tree over the rows of a data set, or a forest if merging stopped at λ.

    Merges are listed by *level*: the level of a merge is the largest height in its subtree, so
    children come before their parents. For a greedy tree this is the order in which the merges were
    made, inversions included. A merge belongs to the clustering at λ iff its level is below λ.

    Attributes
    ----------
    merges : ndarray of shape (m, 2), int64
        The two nodes that each merge joins, in SciPy's numbering: leaves are 0…n−1, and
        ``merges[i]`` creates node n + i.
    heights : ndarray of shape (m,), float64
        The dissimilarity at each merge. If d is not reducible, a parent may be below its child (an
        inversion).
    weights : ndarray of shape (m,), float64
        Total weight of each merged cluster; without sample weights, its number of rows.
    n_leaves : int
        Number of rows.
    threshold : float
        The λ at which merging was stopped; infinite for a whole tree.
    steps : ndarray of shape (m,), int64
        The position of each merge in the order in which merges were made, from 0.
    audit : ReducibilityReport or None
        The report on reducibility, if built with ``linkage(..., audit=True)``.
    leaf_weights : ndarray of shape (n_leaves,), float64, or None
        Sample weight of each row; None if all are 1.

    Examples
    --------
    >>> import fastrbhc
    >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
    >>> tree.merges.tolist()
    [[0, 1], [2, 3], [4, 5]]
    >>> tree.heights.tolist()
    [0.25, 1.0, 15.125]
    >>> tree.cut(n_clusters=2).tolist()
    [0, 0, 1, 1]
    """

    merges: NDArray[np.int64]
    heights: NDArray[np.float64]
    weights: NDArray[np.float64]
    n_leaves: int
    threshold: float = np.inf
    steps: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    audit: ReducibilityReport | None = None
    leaf_weights: NDArray[np.float64] | None = None

    @property
    def n_trees(self) -> int:
        """Number of trees: 1, or more if merging stopped at a threshold."""
        return self.n_leaves - len(self.merges)

    @property
    def levels(self) -> NDArray[np.float64]:
        """The largest height in the subtree of each merge; never decreasing."""
        return np.maximum.accumulate(self.heights)

    @property
    def n_inversions(self) -> int:
        """Number of merges below one of their parts."""
        own = np.concatenate([np.full(self.n_leaves, -np.inf), self.heights])
        return int(np.count_nonzero(self.heights < own[self.merges].max(axis=1, initial=-np.inf)))

    @property
    def node_weights(self) -> NDArray[np.float64]:
        """Weights of all nodes: first the leaves, then the merges."""
        leaves = np.ones(self.n_leaves) if self.leaf_weights is None else self.leaf_weights
        return np.concatenate([leaves, self.weights])

    @property
    def merge_costs(self) -> NDArray[np.float64]:
        """The contribution of each merge to the cost of a clustering: its height."""
        return self.heights

    def cut(
        self, *misplaced: Never, threshold: float | None = None, n_clusters: int | None = None
    ) -> NDArray[np.int64]:
        """Labels of the rows at a threshold, or for a number of clusters.

        Parameters
        ----------
        *misplaced
            None: 3 could be three clusters or λ = 3, so that one of the names has to be given.
        threshold : float, optional
            Keep the merges whose level is below it (d < λ, strictly). For a greedy tree this is
            the forest that the algorithm builds with this λ.
        n_clusters : int, optional
            Undo the last merges so that exactly this many clusters remain.

        Returns
        -------
        labels : ndarray of shape (n_leaves,), int64
            Labels 0…k−1, numbered by first appearance.

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> tree.cut(threshold=1.0).tolist()
        [0, 0, 1, 2]
        """
        refuse_misplaced(misplaced)
        if (threshold is None) == (n_clusters is None):
            raise ValueError("cut needs either threshold or n_clusters, and not both")
        if n_clusters is None:
            level = check_threshold(threshold)
            if level > self.threshold:
                raise ValueError(
                    f"the tree was built up to threshold {self.threshold:g} and cannot be cut at "
                    f"{level:g}: build it with threshold=None or a larger one"
                )
            count = int(np.searchsorted(self.levels, level, side="left"))
        else:
            check_count(n_clusters, "n_clusters", self.n_leaves)
            if n_clusters < self.n_trees:
                raise ValueError(
                    f"n_clusters={n_clusters} is less than the {self.n_trees} trees that were "
                    f"left at threshold {self.threshold:g}: build the tree with threshold=None"
                )
            count = self.n_leaves - n_clusters
        return labels_after(self.merges, self.n_leaves, count)

    def members(self, node: int) -> NDArray[np.int64]:
        """The rows that belong to a node.

        Parameters
        ----------
        node : int
            A leaf 0…n−1, or n + i for the union made by row i of ``merges``.

        Returns
        -------
        ndarray of int64
            Rows in ascending order; O(n).

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [5.0], [1.0], [7.0]], "ward")
        >>> tree.members(4).tolist(), tree.members(3).tolist()
        ([0, 2], [3])
        """
        check_node(node, self.n_leaves + len(self.merges))
        return np.flatnonzero(leaves_below(self.merges, self.n_leaves, int(node)))

    def leaves_order(self) -> NDArray[np.int64]:
        """The order of the rows below a drawing of the tree, from left to right.

        The rows of every node are adjacent; the part of a merge with the smaller number is on
        the left, as in SciPy's ``leaves_list``. The trees of a forest are in the order in which
        ``cut`` numbers them.

        Returns
        -------
        ndarray of shape (n_leaves,), int64

        Examples
        --------
        >>> import fastrbhc
        >>> fastrbhc.linkage([[0.0], [5.0], [1.0], [7.0]], "ward").leaves_order().tolist()
        [0, 2, 1, 3]
        """
        starts, _ = leaf_spans(self.merges, self.n_leaves)
        order = np.empty(self.n_leaves, np.int64)
        order[starts[: self.n_leaves]] = np.arange(self.n_leaves)
        return order

    def path(self) -> ClusteringPath:
        """Every distinct clustering along λ: λ, number of clusters, heaviest cluster, cost.

        Returns
        -------
        ClusteringPath
            As arrays, a DataFrame or a plot; computed once.

        Examples
        --------
        >>> import fastrbhc
        >>> path = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward").path()
        >>> path.n_clusters.tolist(), path.costs.tolist()
        ([4, 3, 2, 1], [0.0, 0.25, 1.25, 16.375])
        """
        return self._path

    @cached_property
    def _path(self) -> ClusteringPath:
        return path_of(self)

    @staticmethod
    def from_json(text: str | bytes) -> Dendrogram:
        """Read a tree written by `to_json`.

        Parameters
        ----------
        text : str or bytes
            JSON.

        Returns
        -------
        Dendrogram

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0]], "ward")
        >>> fastrbhc.Dendrogram.from_json(tree.to_json())
        <Dendrogram: 2 leaves, 1 merges, heights up to 0.25>
        """
        from fastrbhc.tree import json_format

        return json_format.from_json(text)


def refuse_misplaced(given: tuple[Any, ...]) -> None:
    """Explain what is meant by a cut, if a value came without its name."""
    if given:
        shown = ", ".join(map(repr, given))
        raise TypeError(
            f"cut({shown}) could mean two things. Write cut(n_clusters={given[0]!r}) for that many "
            f"clusters, or cut(threshold={given[0]!r}) for λ"
        )


def forest_at(tree: Dendrogram, level: float) -> Dendrogram:
    """The forest that is left if merging stops at a level, from the whole tree."""
    count = int(np.searchsorted(tree.levels, level, side="left"))
    steps = tree.steps[:count]
    return replace(
        tree,
        merges=tree.merges[:count].copy(),  # views would keep the whole tree in memory
        heights=tree.heights[:count].copy(),
        weights=tree.weights[:count].copy(),
        threshold=level,
        steps=np.argsort(np.argsort(steps)) if steps.size else steps,
    )


def dendrogram_of_merges(
    children: NDArray[np.int64],
    heights: NDArray[np.float64],
    leaf_weights: NDArray[np.float64],
    threshold: float = np.inf,
) -> Dendrogram:
    """The tree of merges in the order they were made, which need not be the order of levels."""
    n = leaf_weights.size
    levels = subtree_maxima(children, heights, n)
    in_their_order = bool((levels[1:] >= levels[:-1]).all())
    steps = np.arange(levels.size) if in_their_order else stable_order(levels)
    merges = in_order(children, steps, n)
    return Dendrogram(
        merges,
        heights[steps],
        merged_sums(merges, leaf_weights),
        n,
        threshold,
        steps,
        leaf_weights=None if (leaf_weights == 1.0).all() else leaf_weights,
    )
