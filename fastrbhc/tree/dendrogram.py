"""The tree: merges, their heights, and the clusterings it holds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.math.radix_sort import stable_order
from fastrbhc._engine.traversal import (
    in_order,
    labels_after,
    leaf_spans,
    leaves_below,
    merged_sums,
    subtree_maxima,
)
from fastrbhc._validation import check_count, check_node, check_threshold
from fastrbhc.families import Family
from fastrbhc.plotting import html as _html
from fastrbhc.reducibility.report import ReducibilityReport
from fastrbhc.tree import exports
from fastrbhc.tree.path import ClusteringPath, path_of


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

    @property
    def node_weights(self) -> NDArray[np.float64]:
        """Weights of all nodes: those of the leaves, then those of the merges."""
        leaves = np.ones(self.n_leaves) if self.leaf_weights is None else self.leaf_weights
        return np.concatenate([leaves, self.weights])

    @property
    def merge_costs(self) -> NDArray[np.float64]:
        """What each merge adds to the cost of a clustering, which is its height."""
        return self.heights

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
        return labels_after(self.merges, self.n_leaves, count)

    def members(self, node: int) -> NDArray[np.int64]:
        """The rows that belong to a node.

        Parameters
        ----------
        node : int
            A leaf 0…n−1, or n + i for what row i of ``merges`` makes.

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
        """The rows as they stand below a drawing of the tree, from left to right.

        The rows of every node are side by side; of the two parts of a merge the one with the
        smaller number is on the left, as in SciPy's ``leaves_list``. The trees of a forest follow
        one another as ``cut`` numbers them.

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
            Arrays, a DataFrame and a picture of them; computed once.

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

    def summary(
        self,
        X: ArrayLike | None = None,
        *,
        threshold: float | None = None,
        n_clusters: int | None = None,
        family: str | Family = "gaussian",
    ) -> Any:
        """The clusters of a cut: size, weight, cost and, given the rows, mean parameters.

        Parameters
        ----------
        X : array-like of shape (n_leaves, d), optional
            The rows that the tree is of.
        threshold, n_clusters : float or int, optional
            Where to cut; by default the trees as they are.
        family : str or record, default="gaussian"
            Whose mean parameters; those of the multinomial are proportions.

        Returns
        -------
        pandas.DataFrame
            The columns are described in `fastrbhc.summaries.summary_of_clusters`.

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> tree.summary(n_clusters=2)["cost"].tolist()
        [0.25, 1.0]
        """
        from fastrbhc.tree.summaries import summary_of_cut

        return summary_of_cut(self, X, threshold=threshold, n_clusters=n_clusters, family=family)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the highest merges, coloured at a threshold or number of clusters.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **options
            ``threshold``, ``n_clusters``, ``labels``, ``max_leaves``, ``names``, ``scale`` and
            ``raw_heights`` of `fastrbhc.plotting.plot_dendrogram`.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> ax = tree.plot(threshold=2.0)
        >>> [text.get_text() for text in ax.get_xticklabels()]
        ['0', '1', '2', '3']
        """
        from fastrbhc.plotting import plot_dendrogram

        return plot_dendrogram(self, ax, **options)

    def plot_heights(self, ax: Any = None, **options: Any) -> Any:
        """Draw merge heights against the number of clusters, to choose one.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **options
            ``threshold``, ``n_clusters``, ``max_clusters`` and ``scale`` of
            `fastrbhc.plotting.plot_heights`.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> tree.plot_heights(n_clusters=2).get_title(loc="left")
        '2 clusters for 1 < λ ≤ 15.12'
        """
        from fastrbhc.plotting import plot_heights

        return plot_heights(self, ax, **options)

    def explore(self, X: ArrayLike, **options: Any) -> Any:
        """Move λ in a notebook, and see the clusters change.

        Parameters
        ----------
        X : array-like of shape (n_leaves, d)
            The rows that the tree is of.
        **options
            ``family``, ``max_clusters`` and ``max_points`` of `fastrbhc.widgets.explore`.

        Returns
        -------
        ipywidgets.VBox

        See Also
        --------
        fastrbhc.widgets.explore
        """
        from fastrbhc.plotting.widgets import explore

        return explore(self, X, **options)

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

    def to_pandas(self) -> Any:
        """The merges as a DataFrame; `fastrbhc.exports.to_pandas` tells the columns.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward")
        >>> tree.to_pandas()["size"].tolist()
        [2, 3]
        """
        return exports.to_pandas(self)

    def to_networkx(self, names: Sequence[Any] | None = None) -> Any:
        """A directed graph from root to leaves; more in `fastrbhc.exports.to_networkx`.

        Parameters
        ----------
        names : sequence of length n_leaves, optional
            Names of the rows.

        Returns
        -------
        networkx.DiGraph

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward")
        >>> sorted(tree.to_networkx().successors(4))
        [2, 3]
        """
        return exports.to_networkx(self, names)

    def to_newick(self, names: Sequence[Any] | None = None) -> str:
        """The tree in the Newick format; more in `fastrbhc.exports.to_newick`.

        Parameters
        ----------
        names : sequence of length n_leaves, optional
            Names of the rows; by default their numbers.

        Returns
        -------
        str
            One tree a line.

        Examples
        --------
        >>> import fastrbhc
        >>> fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward").to_newick()
        '(2:6.75,(0:0.25,1:0.25):6.5);'
        """
        return exports.to_newick(self, names)

    def to_json(self, names: Sequence[Any] | None = None) -> str:
        """The tree as JSON; `fastrbhc.exports.to_json` describes the format.

        Parameters
        ----------
        names : sequence of length n_leaves, optional
            Names of the rows, to be written along.

        Returns
        -------
        str

        Examples
        --------
        >>> import fastrbhc
        >>> fastrbhc.linkage([[0.0], [1.0]], "ward").to_json()[:33]
        '{"format": "fastrbhc.dendrogram",'
        """
        return exports.to_json(self, names)

    @staticmethod
    def from_json(text: str | bytes) -> Dendrogram:
        """Read a tree that `to_json` has written.

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
        return exports.from_json(text)

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

    def _repr_html_(self) -> str:
        lines = [("leaves", f"{self.n_leaves:,}"), ("merges", f"{len(self.merges):,}")]
        if self.n_trees > 1:
            lines.append(("trees", f"{self.n_trees:,} below λ = {self.threshold:.6g}"))
        if len(self.heights):
            lines.append(("heights", f"{self.heights.min():.6g} to {self.heights.max():.6g}"))
        lines.append(("inversions", f"{self.n_inversions:,}"))
        return _html.table("Dendrogram", lines) + _html.picture(self.plot, (6.5, 3.2))


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
        merges,
        heights[steps],
        merged_sums(merges, leaf_weights),
        n,
        threshold,
        steps,
        leaf_weights=None if (leaf_weights == 1.0).all() else leaf_weights,
    )
