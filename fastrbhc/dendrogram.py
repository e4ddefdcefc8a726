"""The tree: merges, their heights, and the clusterings it holds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import kernel
from fastrbhc._sorting import stable_order
from fastrbhc.reducibility import ReducibilityReport
from fastrbhc.validation import check_count, check_threshold


@dataclass(frozen=True, eq=False, repr=False)
class Dendrogram:
    """A binary tree over the rows of a data set, or a forest where merging stopped at λ.

    Merges are listed by *level*: the level of a merge is the largest height in the subtree that
    it makes, so children come before their parents. For a greedy tree this is the order
    in which the merges were made, inversions included. A merge belongs to the clustering at λ
    iff its level is below λ.

    Attributes
    ----------
    merges : ndarray of shape (m, 2), int64
        The two nodes that each merge joins, in SciPy's numbering: leaves are 0…n−1 and
        row i makes node n + i.
    heights : ndarray of shape (m,), float64
        The dissimilarity at each merge, as it is. Where d is not reducible a parent may lie below
        its child (an inversion).
    weights : ndarray of shape (m,), float64
        Total weight of each merged cluster; the number of rows without sample weights.
    n_leaves : int
        Number of rows.
    threshold : float
        The λ at which merging was stopped; infinite for a whole tree.
    steps : ndarray of shape (m,), int64
        When each merge was made, counting from 0.
    audit : ReducibilityReport or None
        What ``linkage(..., audit=True)`` found out about reducibility.

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

    @property
    def n_trees(self) -> int:
        """Number of trees: 1, or more where merging stopped at a threshold."""
        return self.n_leaves - len(self.merges)

    @property
    def levels(self) -> NDArray[np.float64]:
        """For each merge the largest height up to it; never decreasing."""
        return np.maximum.accumulate(self.heights)

    @property
    def n_inversions(self) -> int:
        """Number of merges that lie below one of their parts."""
        own = np.concatenate([np.full(self.n_leaves, -np.inf), self.heights])
        return int(np.count_nonzero(self.heights < own[self.merges].max(axis=1, initial=-np.inf)))

    def cut(
        self, threshold: float | None = None, *, n_clusters: int | None = None
    ) -> NDArray[np.int64]:
        """Labels of the rows at a threshold, or for a number of clusters.

        Parameters
        ----------
        threshold : float, optional
            Keep the merges whose level is below it (d < λ, strictly). For a greedy tree that is
            the forest at which the algorithm stops with this λ.
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
        return _labels(self.merges, self.n_leaves, count)

    def to_numpy(self) -> NDArray[np.float64]:
        """The merges as one array: two nodes, height, weight.

        Examples
        --------
        >>> import fastrbhc
        >>> fastrbhc.linkage([[0.0], [1.0]], "ward").to_numpy().tolist()
        [[0.0, 1.0, 0.25, 2.0]]
        """
        return np.column_stack([self.merges, self.heights, self.weights])

    def to_scipy(self) -> NDArray[np.float64]:
        """A linkage matrix for ``scipy.cluster.hierarchy``, valid whatever the tree.

        SciPy wants one tree whose heights never decrease. Where this tree has inversions, each
        merge is given its level, the height of its highest part; where it is a forest, its trees
        are joined at the threshold. A warning tells how many merges that concerns. The fourth
        column counts rows, without weights.

        Returns
        -------
        Z : ndarray of shape (n_leaves - 1, 4), float64

        Examples
        --------
        >>> import fastrbhc
        >>> from scipy.cluster.hierarchy import fcluster
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> fcluster(tree.to_scipy(), 2, "maxclust").tolist()
        [1, 1, 2, 2]
        """
        changes = []
        levels = self.levels
        raised = int(np.count_nonzero(levels > self.heights))
        if raised:
            changes.append(
                f"raised {raised} of {len(levels)} merges to the height of an earlier one "
                "(inversions; tree.heights has the raw values)"
            )
        merges = self.merges
        if self.n_trees > 1:
            changes.append(f"joined {self.n_trees} trees at the threshold {self.threshold:g}")
            merges = np.concatenate([merges, self._joins()])
            levels = np.append(levels, np.full(self.n_trees - 1, self.threshold))
        if changes:
            warnings.warn(f"to_scipy {' and '.join(changes)}", UserWarning, stacklevel=2)
        counts = merged_sums(merges, np.ones(self.n_leaves))
        return np.column_stack([merges, levels, counts])

    def _joins(self) -> NDArray[np.int64]:
        """Merges that would make the forest one tree, root after root."""
        n, m = self.n_leaves, len(self.merges)
        is_root = np.ones(n + m, bool)
        is_root[self.merges] = False
        roots = np.flatnonzero(is_root)
        joins = np.empty((roots.size - 1, 2), np.int64)
        joins[:, 0] = roots[1:]
        joins[0, 1] = roots[0]
        joins[1:, 1] = n + m + np.arange(roots.size - 2)
        return np.sort(joins, axis=1)

    def __repr__(self) -> str:
        shape = f"{self.n_leaves} leaves, {len(self.merges)} merges"
        if self.n_trees > 1:
            shape += f", {self.n_trees} trees below {self.threshold:g}"
        highest = f", heights up to {self.heights.max():.6g}" if len(self.heights) else ""
        return f"<Dendrogram: {shape}{highest}>"


def dendrogram_of_merges(
    children: NDArray[np.int64],
    heights: NDArray[np.float64],
    leaf_weights: NDArray[np.float64],
    threshold: float = np.inf,
) -> Dendrogram:
    """The tree of merges in the order they were made, which is not always that of their levels."""
    n = leaf_weights.size
    levels = subtree_maxima(children, heights, n)
    in_their_order = bool((levels[1:] >= levels[:-1]).all())
    steps = np.arange(levels.size) if in_their_order else stable_order(levels)
    merges = in_order(children, steps, n)
    return Dendrogram(
        merges, heights[steps], merged_sums(merges, leaf_weights), n, threshold, steps
    )


@kernel
def in_order(children, steps, n_leaves):
    """The merges in the order of the steps, renumbered, the smaller node first."""
    place = np.empty(steps.size, np.int64)
    for i in range(steps.size):
        place[steps[i]] = n_leaves + i
    merges = np.empty(children.shape, np.int64)
    for i in range(steps.size):
        a, b = children[steps[i], 0], children[steps[i], 1]
        a = a if a < n_leaves else place[a - n_leaves]
        b = b if b < n_leaves else place[b - n_leaves]
        merges[i, 0], merges[i, 1] = min(a, b), max(a, b)
    return merges


@kernel
def renumber(children, nodes, next_node):
    """Name the leaves by their nodes, and number the merges on from next_node."""
    for i in range(children.shape[0]):
        for side in range(2):
            child = children[i, side]
            children[i, side] = (
                nodes[child] if child < nodes.size else child - nodes.size + next_node
            )


@kernel
def subtree_maxima(children, heights, n_leaves):
    """The largest height in the subtree of each merge."""
    maxima = heights.copy()
    for i in range(heights.size):
        for side in range(2):
            child = children[i, side] - n_leaves
            if child >= 0:
                maxima[i] = max(maxima[i], maxima[child])
    return maxima


@kernel
def merged_sums(merges, values):
    """For each merge the sum of the values of its leaves: of weights, its total weight."""
    n = values.size
    sums = np.empty(merges.shape[0], values.dtype)
    for i in range(merges.shape[0]):
        a, b = merges[i, 0], merges[i, 1]
        sums[i] = (values[a] if a < n else sums[a - n]) + (values[b] if b < n else sums[b - n])
    return sums


@kernel
def _labels(merges, n_leaves, count):
    """Labels after the first `count` merges, numbered by first appearance."""
    root = np.arange(n_leaves + count)
    for i in range(count - 1, -1, -1):
        root[merges[i, 0]] = root[n_leaves + i]
        root[merges[i, 1]] = root[n_leaves + i]
    number = np.full(n_leaves + count, -1)
    labels = np.empty(n_leaves, np.int64)
    used = 0
    for leaf in range(n_leaves):
        if number[root[leaf]] < 0:
            number[root[leaf]] = used
            used += 1
        labels[leaf] = number[root[leaf]]
    return labels
