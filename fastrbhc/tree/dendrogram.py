"""The tree: merges, their heights, and the clusterings it holds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.math.radix_sort import stable_order
from fastrbhc._engine.traversal import (
    in_order,
    leaves_below,
    merged_sums,
    subtree_maxima,
)
from fastrbhc._stamps import Stamped
from fastrbhc._validation import check_count, check_node, check_threshold, whole_by, why_a_forest
from fastrbhc.reducibility.report import ReducibilityReport
from fastrbhc.tree._conversions import Conversions
from fastrbhc.tree._leaves import Leaves
from fastrbhc.tree._reports import Reports
from fastrbhc.tree._views import Views
from fastrbhc.tree.cuts import Stem, check_min_size, condensed, labels_after
from fastrbhc.tree.origin import Chosen, Origin, is_greedy
from fastrbhc.tree.path import ClusteringPath, path_of

if TYPE_CHECKING:
    from fastrbhc.families import Family


@dataclass(frozen=True, eq=False, repr=False)
class Dendrogram(Stamped, Leaves, Reports, Views, Conversions):
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
    origin : Origin or None
        What the tree was built from: ``family`` with its parameters, ``n_features``,
        ``feature_names`` and the ``version`` of fastrbhc. None if that is unknown, as for trees
        from old files.
    chosen : Chosen or None
        The λ that was chosen for this tree: ``threshold``, and ``by`` what ("given",
        "n_clusters", "kmeans", "gap" or "evidence"). It may lie within a whole tree, as with
        ``RBHC(threshold="gap")``. ``cut``, ``summary`` and the plots use it by default.

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
    >>> tree.family
    SphericalGaussian(variance=1.0)
    """

    merges: NDArray[np.int64]
    heights: NDArray[np.float64]
    weights: NDArray[np.float64]
    n_leaves: int
    threshold: float = np.inf
    steps: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    audit: ReducibilityReport | None = None
    leaf_weights: NDArray[np.float64] | None = None
    origin: Origin | None = None
    chosen: Chosen | None = None

    @property
    def family(self) -> Family | None:
        """The family that the tree was built with; None if that is unknown."""
        return None if self.origin is None else self.origin.family

    @property
    def n_features(self) -> int | None:
        """Number of columns of the rows; None if that is unknown."""
        return None if self.origin is None else self.origin.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of the rows; None if they have none."""
        return None if self.origin is None else self.origin.feature_names

    @property
    def certified(self) -> bool | None:
        """Whether it is the greedy tree for certain: by its family or algorithm, or by an audit.

        None if nothing is known of how it was built.
        """
        return is_greedy(self.origin) if self.audit is None else self.audit.certified

    @property
    def approximate(self) -> bool:
        """Whether it was built with ``neighbors="approximate"``; `approximation` says how well."""
        return self.origin is not None and self.origin.approximate

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
        self,
        *misplaced: Never,
        threshold: float | ArrayLike | None = None,
        n_clusters: int | ArrayLike | None = None,
        min_size: int | None = None,
    ) -> NDArray[np.int64]:
        """Labels of the rows at a threshold, or for a number of clusters.

        Without either, the λ that was chosen for the tree decides (``chosen``), or else the trees
        of a forest are the clusters.

        Parameters
        ----------
        *misplaced
            None: 3 could be three clusters or λ = 3, so that one of the names has to be given.
        threshold : float or list of floats, optional
            Keep the merges whose level is below it (d < λ, strictly). For a greedy tree this is
            the forest that the algorithm builds with this λ.
        n_clusters : int or list of ints, optional
            Undo the last merges so that exactly this many clusters remain.
        min_size : int, optional
            No cluster has fewer rows than this. A merge with fewer on one side is not undone:
            these rows stay with the cluster that they joined. Where that is divided further, they
            go with its larger part. The number of clusters is counted by this rule.

        Returns
        -------
        labels : ndarray of shape (n_leaves,), int64
            Labels 0…k−1. The heaviest cluster is 0. Of equally heavy ones the lower comes first,
            by the largest height within, and if these agree the one with the earlier row. So
            numbers depend on the order of the rows only among such clusters. For a list, one
            column of labels for each of its numbers, (n_leaves, length of the list).

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> tree.cut(threshold=1.0).tolist()
        [0, 0, 1, 2]
        >>> tree.cut(n_clusters=[2, 3]).tolist()
        [[0, 0], [0, 0], [1, 1], [1, 2]]
        >>> far = fastrbhc.linkage([[0.0], [1.0], [5.0], [6.0], [7.0], [99.0]], "ward")
        >>> far.cut(n_clusters=2).tolist()
        [0, 0, 0, 0, 0, 1]
        >>> far.cut(n_clusters=2, min_size=2).tolist()
        [1, 1, 0, 0, 0, 0]
        """
        refuse_misplaced(misplaced)
        if threshold is not None and n_clusters is not None:
            raise ValueError("cut needs either threshold or n_clusters, and not both")
        threshold, n_clusters = self.cut_or_chosen(threshold, n_clusters)
        if threshold is None and n_clusters is None:
            if self.n_trees == 1:
                raise ValueError(
                    "cut needs either threshold or n_clusters: no λ was chosen for this tree"
                )
            n_clusters = self.n_trees
        return self._cut(threshold, n_clusters, min_size)

    def cut_or_chosen(self, threshold: Any, n_clusters: Any) -> tuple[Any, Any]:
        """Where to cut: as given, or else at the λ of the tree; (None, None) if it has none."""
        if threshold is not None or n_clusters is not None:
            return threshold, n_clusters
        if self.chosen is not None and self.chosen.n_clusters is not None:
            return None, self.chosen.n_clusters
        if self.chosen is not None:
            return self.chosen.threshold, None
        return None, None

    def _cut(self, threshold: Any, n_clusters: Any, min_size: Any) -> NDArray[np.int64]:
        """Labels for one of the two, which may be a list of numbers."""
        stem, groups = self._stem(), None
        if min_size is not None:
            stem, groups = condensed(stem, check_min_size(self, min_size))
        given = n_clusters if threshold is None else threshold
        several = np.ndim(given) > 0
        numbers = list(given) if several else [given]
        if threshold is None:
            counts = [self._merges_for(number, stem, min_size) for number in numbers]
        else:
            levels = [self._checked_level(number) for number in numbers]
            counts = np.searchsorted(stem.levels, levels, side="left").tolist()
        labels = labels_after(stem, counts)
        labels = labels if several else labels[:, 0]
        return labels if groups is None else np.take(labels, groups, axis=0)

    def _stem(self) -> Stem:
        """The tree for cuts."""
        # Looking for inversions takes less time than accumulating maxima.
        monotone = bool((self.heights[1:] >= self.heights[:-1]).all())
        levels = self.heights if monotone else self.levels
        return Stem(self.merges, levels, self.weights, levels, self.n_leaves, self.leaf_weights)

    def _checked_level(self, threshold: Any) -> float:
        """A λ at which the tree can be cut."""
        level = check_threshold(threshold)
        if level > self.threshold:
            raise ValueError(
                f"the tree was built up to threshold {self.threshold:g} and cannot be cut at "
                f"{level:g}: build it with threshold=None or a larger one"
            )
        return level

    def _merges_for(self, n_clusters: Any, stem: Stem, min_size: int | None) -> int:
        """The number of merges to keep for a number of clusters."""
        k = check_count(n_clusters, "n_clusters", self.n_leaves)
        if k < self.n_trees:
            raise ValueError(
                f"n_clusters={k} is less than the {self.n_trees} trees: {why_a_forest(self)}. "
                f"Build the tree with {whole_by(self)}"
            )
        if k > stem.n_leaves:
            raise ValueError(
                f"n_clusters={k} is more than the {stem.n_leaves} clusters of at least {min_size} "
                "rows into which this tree can be cut"
            )
        return stem.n_leaves - k

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
    origin: Origin | None = None,
) -> Dendrogram:
    """The tree of merges in the order they were made, which need not be the order of levels."""
    n = leaf_weights.size
    levels = subtree_maxima(children, heights, n)
    if (levels[1:] >= levels[:-1]).all():
        del levels  # frees memory
        steps = np.arange(heights.size)
        owned = children.base is None and (children[:, 0] < children[:, 1]).all()  # no view
        merges = children if owned else np.sort(children, axis=1)
        heights = heights if heights.base is None else heights.copy()
    else:
        steps = stable_order(levels)
        merges, heights = in_order(children, steps, n), heights[steps]
    return Dendrogram(
        merges,
        heights,
        merged_sums(merges, leaf_weights),
        n,
        threshold,
        steps,
        leaf_weights=None if (leaf_weights == 1.0).all() else leaf_weights,
        origin=origin,
    )
