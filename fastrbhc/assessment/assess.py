"""From a tree, its rows and a cut to the report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from fastrbhc._build import build
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._options import LinkageOptions
from fastrbhc._progress import Progress
from fastrbhc._validation import check_count
from fastrbhc.assessment.measures import (
    costs_of,
    explained_shares,
    levels_of,
    nodes_of_labels,
    parents_of,
    silhouettes,
)
from fastrbhc.assessment.report import ClusterAssessment, verdicts_of
from fastrbhc.assessment.resampling import mean_and_interval, recoveries
from fastrbhc.assessment.splits import deciding_merges, split_p_values
from fastrbhc.families import Family, geometry_of
from fastrbhc.tree.dendrogram import Dendrogram
from fastrbhc.tree.origin import refuse_graph

DEFAULT_RESAMPLES, DEFAULT_ROWS = 20, 2_000


def assess(
    tree: Dendrogram,
    X: Any,
    family: Family,
    labels: NDArray[np.int64],
    *,
    n_resamples: int = DEFAULT_RESAMPLES,
    max_rows: int = DEFAULT_ROWS,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> ClusterAssessment:
    """The report on the clusters of a cut, for rows that have been checked, dense or sparse.

    The labels are 0…k−1, and every cluster is a node of the tree, which may be a forest. The
    other parameters are those of `Dendrogram.stability`.
    """
    refuse_graph(tree, "an assessment of clusters")
    if check_count(n_resamples, "n_resamples") < 2:
        raise ValueError("n_resamples has to be at least 2: an interval needs two subsamples")
    if check_count(max_rows, "max_rows") < 2:
        raise ValueError("max_rows has to be at least 2: a tree needs two rows")
    if X.shape[0] != tree.n_leaves:
        raise ValueError(f"X has {X.shape[0]} rows and the tree has {tree.n_leaves}")
    options = LinkageOptions(n_jobs=n_jobs).checked(family)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    weights, n = tree.leaf_weights, tree.n_leaves
    k = int(labels.max()) + 1
    n_rows = max(2, min(n // 2, max_rows))
    if tree.n_trees > 1:
        tree = build(X, family, weights, options)  # what ends the clusters is above the forest
    nodes = nodes_of_labels(tree, labels, k)
    if (nodes < 0).any():
        raise ValueError(
            "the clusters are not those of the whole greedy tree: build the whole tree first, with "
            "threshold=None or compute_full_tree=True, and cut that"
        )
    parents = parents_of(tree, nodes)
    rows = weighted(family.observe(X), weights)
    geometry = geometry_of(family, rows)
    deciding = deciding_merges(tree, nodes, _points(rows), weights)
    tested = np.unique(deciding[deciding >= 0])
    with Progress(progress, {"subsamples": n_resamples, "splits": tested.size}) as shown:
        found = recoveries(
            X, weights, family, labels, k, n_resamples, n_rows, options, rng,
            lambda done: shown("subsamples", done),
        )  # fmt: skip
        p_of_split = split_p_values(
            tree, X, weights, family, tested, options, rng, lambda done: shown("splits", done)
        )
    p_values = np.ones(k)
    known = deciding >= 0
    p_values[known] = p_of_split[np.searchsorted(tested, deciding[known])]
    jaccard, lower, upper = mean_and_interval(found)
    own_weights = np.ones(n) if weights is None else weights
    cluster_weights = np.bincount(labels, own_weights, k).astype(np.float64)
    with np.errstate(invalid="ignore"):  # a cluster of rows of weight 0 has none
        by_row = silhouettes(geometry, rows, labels, k)
        by_cluster = np.bincount(labels, own_weights * by_row, k) / cluster_weights
    cost_within = float(costs_of(tree)[nodes].sum())
    explained, together = explained_shares(geometry, rows, labels, k, cost_within)
    sizes = np.bincount(labels, minlength=k)
    return ClusterAssessment(
        jaccard=jaccard,
        lower=lower,
        upper=upper,
        p_values=p_values,
        explained=explained,
        silhouettes=by_cluster,
        born=levels_of(tree, nodes, 0.0),
        dies=levels_of(tree, parents, np.inf),
        verdicts=verdicts_of(lower, p_values, (sizes * (n_rows / n)).astype(np.float64)),
        nodes=nodes,
        sizes=sizes,
        weights=cluster_weights,
        explained_together=together,
        n_rows=n_rows,
        recoveries=found,
        labels=labels,
        tree=tree,
    )


def _points(rows: Any) -> NDArray[np.int64]:
    """A number for every row, the same for equal rows."""
    order, same = rows.order_by_value()
    points = np.empty(order.size, np.int64)
    points[order] = np.cumsum(~same)
    return points
