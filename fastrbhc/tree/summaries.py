"""The clusters of a cut as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from fastrbhc._engine.clusters.build import clusters_of_groups
from fastrbhc._engine.clusters.build_sparse import means_of
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._engine.clusters.partly_observed import PartlyObserved
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.traversal import common_labels
from fastrbhc._optional import require
from fastrbhc._row_validation import check_rows, column_names
from fastrbhc._validation import check_count
from fastrbhc.families import Family, geometry_of
from fastrbhc.families._interface import FamilyLike
from fastrbhc.families._missing import observe
from fastrbhc.tree.observed_columns import geometry_of_clusters, layout_of, observed_columns
from fastrbhc.tree.origin import family_for, missing_in
from fastrbhc.tree.telling_columns import top_columns

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

# Means of more columns than these are no table for readers.
_MOST_COLUMNS, _DEFAULT_TOP = 50, 10


def summary_of_cut(
    tree: Dendrogram,
    X: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    n_clusters: int | None = None,
    family: FamilyLike | None = None,
    n_top: int | None = None,
) -> Any:
    """The clusters of a cut, one row per cluster; ``tree.summary`` is the same.

    Parameters
    ----------
    tree : Dendrogram
        A tree or forest.
    X : array-like of shape (n_leaves, d), optional
        The rows of the tree, for the means of the clusters.
    threshold, n_clusters : float or int, optional
        Where to cut; by default at the λ that was chosen, or else the trees as they are.
    family : str or record, optional
        The family of the means, by default that of the tree. For multinomial counts they are means
        of the proportions, weighted by the totals of the rows; for von Mises–Fisher, means of the
        directions; for all other families, means of the values.
    n_top : int, optional
        The number of columns that are named for each cluster, in the place of means: by default 10
        if there are more than 50 columns. 0 for means of however many columns.

    Returns
    -------
    pandas.DataFrame
        See `summary_of_clusters`; clusters are numbered as in ``tree.cut``.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [[0.0], [1.0], [5.0], [7.0]]
    >>> tree = fastrbhc.linkage(X, "ward")
    >>> frame = tree.summary(X, n_clusters=2)
    >>> frame[["size", "cost", "mean_x0"]].values.tolist()
    [[2.0, 0.25, 0.5], [2.0, 1.0, 6.0]]
    """
    threshold, n_clusters = tree.cut_or_chosen(threshold, n_clusters)
    if threshold is None and n_clusters is None:
        n_clusters = tree.n_trees
    labels = tree.cut(threshold=threshold, n_clusters=n_clusters)
    weights = tree.node_weights[: tree.n_leaves]
    if X is None:
        return summary_of_clusters(tree, labels, np.bincount(labels, weights).astype(np.float64))
    family = family_for(tree, family)
    rows = check_rows(X, family, min_rows=1, layout="auto", missing=missing_in(tree))
    n, n_columns = rows.shape
    if n != tree.n_leaves:
        raise ValueError(f"X has {n} rows and the tree has {tree.n_leaves}")
    names: Sequence[str] | None = column_names(X)
    if names is None and tree.n_features == n_columns:
        names = tree.feature_names
    observed = weighted(observe(family, rows), weights)
    n_top = number_of_top_columns(n_top, n_columns)
    if n_top or _has_other_means(observed):
        geometry = geometry_of(family, observed)
        clusters = clusters_of_groups(geometry, observed, labels, int(labels.max()) + 1)
        return summary_of_statistics(tree, labels, family, clusters, n_columns, names, n_top)
    member = sparse.csr_array((observed.weights, (labels, np.arange(labels.size))))
    totals = member.sum(axis=1)
    with np.errstate(invalid="ignore"):  # a cluster of rows of weight 0 has no mean
        means = family.in_units_of_rows((member @ observed.means) / totals[:, None])
    return summary_of_clusters(tree, labels, totals, *_of_used_columns(family, means, names))


def number_of_top_columns(n_top: Any, n_columns: int) -> int:
    """How many columns a table names for each cluster; 0 if it has the means of all."""
    if n_top is None:
        return _DEFAULT_TOP if n_columns > _MOST_COLUMNS else 0
    return 0 if n_top == 0 else check_count(n_top, "n_top")


def summary_of_statistics(
    tree: Dendrogram,
    labels: NDArray[np.int64],
    family: Family,
    clusters: Clusters,
    n_columns: int,
    names: Sequence[str] | None,
    n_top: int,
) -> Any:
    """The same from the statistics of the clusters: means, or the telling columns."""
    weights = np.nan_to_num(clusters.weights)
    is_sparse = clusters.segments.n_columns > 0
    gaps = not is_sparse and any(gap for _, gap in layout_of(family, clusters, n_columns))
    if n_top:
        frame = summary_of_clusters(tree, labels, weights)
        if gaps:
            frame["observed"] = observed_columns(family, clusters, n_columns).shares
        geometry = None
        if not family.separable:
            geometry = geometry_of_clusters(family, clusters, n_columns)
        top = top_columns(family, geometry, clusters, n_columns, names, n_top)
        return frame.assign(**top)
    if gaps:
        return _summary_of_gaps(tree, labels, family, clusters, n_columns, names)
    means: Any = means_of(clusters)
    if family.separable and sparse.issparse(means):
        means = np.where(np.isnan(clusters.weights)[:, None], np.nan, means.toarray())
    used = _of_used_columns(family, family.in_units_of_rows(means), names)
    return summary_of_clusters(tree, labels, weights, *used)


def _has_other_means(observed: Any) -> bool:
    """Whether the mean of a cluster is not just that of dense rows."""
    if isinstance(observed, SparseObservations | PartlyObserved):
        return True
    return bool(observed.sparse)


def _of_used_columns(
    family: Any, means: NDArray[Any], names: Sequence[str] | None
) -> tuple[NDArray[Any], Sequence[str] | None]:
    """Means and names without the columns that a product leaves out."""
    if not hasattr(family, "blocks"):
        return means, names
    used = sorted(k for block in family.blocks for k in block.columns)
    return means[:, used], [f"x{k}" if names is None else names[k] for k in used]


def _summary_of_gaps(
    tree: Dendrogram,
    labels: NDArray[np.int64],
    family: Family,
    clusters: Clusters,
    n_columns: int,
    names: Sequence[str] | None,
) -> Any:
    """The same if cells are missing: means of what is observed, and its share of all cells."""
    means, shares = observed_columns(family, clusters, n_columns)
    used = _of_used_columns(family, family.in_units_of_rows(means), names)
    frame = summary_of_clusters(tree, labels, np.nan_to_num(clusters.weights), *used)
    frame.insert(frame.columns.get_loc("cost") + 1, "observed", shares)
    return frame


def summary_of_clusters(
    tree: Dendrogram,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64] | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """The clusters with these labels, each of which is a node of the tree; one row per cluster.

    Parameters
    ----------
    tree : Dendrogram
        A tree or forest.
    labels : ndarray of shape (n_leaves,)
        Cluster of each row, 0…k−1.
    weights : ndarray of shape (k,)
        Weight n of each cluster.
    means : ndarray of shape (k, d), optional
        Mean parameters of each cluster.
    names : sequence of str, optional
        Names of the d columns; by default x0, x1, …

    Returns
    -------
    pandas.DataFrame
        Indexed by ``cluster``, with these columns.

        ``node``
            The node of the cluster in the tree.
        ``size``, ``weight``
            Number of rows, and their total weight n.
        ``level``
            The largest height within: the cluster is not divided for any λ above it.
        ``cost``
            The cost of the cluster, Σ f({x}) − f(c) with f = n·φ(t): the sum of the heights of its
            merges.
        ``mean_…``
            The mean parameter of each column. If cells are missing, that of the observed ones, and
            NaN if there are none.
        ``observed``
            The share of the cluster's cells that are observed, if the tree was built with
            ``missing="ignore"`` and cells are missing.

        Of rows with more than 50 columns ``tree.summary`` and ``RBHC.summary`` have these instead
        of means, and for fewer columns too if ``n_top`` is given.

        ``apart``
            d between the cluster and all other rows together.
        ``more_of``, ``less_of``
            The columns with the largest terms in that d, of which there is more or less in the
            cluster: the largest first, each with the ratio of the two means ("only here" if the
            others have none), or for measurements their difference.
        ``top_share``
            The share of these columns in d.

    Notes
    -----
    For separable families d is a sum over columns, and the terms are exact. For a Gaussian with
    covariances the term is d of the column by itself, for directions that of Ward's d.
    """
    pd = require("pandas", "summary")
    n, k = tree.n_leaves, int(labels.max()) + 1
    label_of_node = common_labels(tree.merges, labels)
    label_of_merge = label_of_node[n:]
    inside = label_of_merge >= 0
    node, level = np.full(k, -1), np.zeros(k)
    # Later nodes replace earlier ones: the last node of a label is the whole cluster.
    node[labels] = np.arange(n)
    node[label_of_merge[inside]] = n + np.flatnonzero(inside)
    level[label_of_merge[inside]] = tree.levels[inside]
    clusters = pd.RangeIndex(k, name="cluster")
    frame = pd.DataFrame(
        {
            "node": node,
            "size": np.bincount(labels, minlength=k),
            "weight": weights,
            "level": level,
            "cost": np.bincount(label_of_merge[inside], tree.heights[inside], k),
        },
        index=clusters,
    )
    if means is None:
        return frame
    given = [f"x{column}" for column in range(means.shape[1])] if names is None else names
    columns = [f"mean_{name}" for name in given]
    # Numbers beside text stay numbers.
    return pd.concat([frame, pd.DataFrame(means, clusters, columns).infer_objects()], axis=1)
