"""From rows to a tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.agglomeration import ALGORITHMS, Merges
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.observations import (
    Collapsed,
    Observations,
    collapse,
    rows_by_point,
    take,
    weighted,
)
from fastrbhc._engine.jit import compiling_for
from fastrbhc._engine.math.principal_axes import turned
from fastrbhc._engine.neighbors import BACKENDS
from fastrbhc._engine.planning import plan, warn_if_long
from fastrbhc._progress import Progress
from fastrbhc._validation import (
    check_algorithm,
    check_audit,
    check_choice,
    check_groups,
    check_rows,
    check_threads,
    check_threshold,
    check_weights,
)
from fastrbhc.families import Family, as_family
from fastrbhc.reducibility.report import first_departure, report_of
from fastrbhc.tree.dendrogram import Dendrogram, dendrogram_of_merges
from fastrbhc.tree.traversal import renumber

# Triples that an audit by sample looks at for each distinct row.
_SAMPLED_EACH = 10
_SAMPLE_SEED = 0


def linkage(
    X: ArrayLike,
    family: str | Family = "gaussian",
    *,
    algorithm: str = "auto",
    neighbors: str = "auto",
    threshold: float | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    audit: bool | str = False,
) -> Dendrogram:
    """Relaxed Bayesian hierarchical clustering of the rows of X.

    Clusters are merged by the dissimilarity of their family,

        d(a, b) = n_a φ(t_a) + n_b φ(t_b) − (n_a + n_b) φ(t_ab),

    where n is the weight of a cluster, t its mean statistic and φ the convex conjugate of the
    family's log-partition function (Lee & Choi 2015, eq. bhc_dis_star).

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows of counts or measurements: an array of any layout, a data frame, or, for families of
        counts, a sparse matrix (made dense, as means of clusters are).
    family : str or record, default="gaussian"
        A record from `fastrbhc.families`, or its name: "spherical_gaussian" (or "ward"),
        "gaussian", "poisson", "multinomial", "bernoulli", "exponential".
    algorithm : {"auto", "greedy", "levels", "nn_chain"}, default="auto"
        "greedy" merges the nearest pair of all at every step, and is exact for every family.
        "levels" merges many pairs at a time that are each other's nearest neighbour, on all
        threads. It is for families that are reducible, and its tree is the greedy one.
        "nn_chain" merges one such pair after another; where a family is not reducible its tree
        can differ from the greedy one. "auto" is "levels" where the family is reducible, and
        "greedy" otherwise.
    neighbors : {"auto", "brute", "kd_tree"}, default="auto"
        How nearest clusters are found: "brute" looks at all of them, "kd_tree" at those in
        boxes that may hold a nearer one. The tree is the same, to the bit. "auto" takes the
        kd-tree where the columns are few. Memory is O(n) with either.
    threshold : float, optional
        λ: a pair is merged only when d < λ, and a forest is left. By default the whole tree is
        built, which can be cut at any λ afterwards; cut at λ, a greedy tree gives that forest. In
        a chain a cluster without a neighbour below λ is finished, even if a union that is made
        later comes nearer to it.
    sample_weight : array-like of shape (n,), optional
        A row with weight 3 counts as three copies. Rows with weight 0 join the row nearest to
        them, at height 0, and change nothing else.
    n_jobs : int, optional
        Number of threads; None for as many as NUMBA_NUM_THREADS says, by default one for each
        core; -1 for the same. The result does not depend on it.
    progress : bool, default=False
        Show a progress bar.
    audit : bool or "sample", default=False
        Count how often reducibility is violated, in all triples of a merge and a third cluster or
        in a random sample of ten a row, and certify that the tree is the greedy one: see
        `fastrbhc.reducibility`. The report is ``audit`` of the tree.

    Returns
    -------
    Dendrogram
        Merges, heights and weights; ``cut`` gives labels.

    Notes
    -----
    Ties: of two pairs at the same d the one with the smaller ranks is merged first, the smaller
    rank of a pair being compared before the larger one. The rank of a distinct row is its place in
    the order of a fixed hash of the values; that of a cluster is the largest among its rows. So a
    tree depends on the values of the rows, never on their order, on their layout in memory or on
    the number of threads. Rows that repeat are merged first, at height 0.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [[9, 1], [8, 2], [1, 9], [2, 7]]
    >>> tree = fastrbhc.linkage(X, "poisson")
    >>> tree.cut(n_clusters=2).tolist()
    [0, 0, 1, 1]
    >>> fastrbhc.linkage(X, "poisson", threshold=1.0).n_trees
    2
    """
    family = as_family(family)
    check_choice(algorithm, "algorithm", ("auto", *ALGORITHMS))
    check_choice(neighbors, "neighbors", ("auto", *BACKENDS))
    check_algorithm(algorithm, family)
    level = check_threshold(threshold)
    n_threads = check_threads(n_jobs)
    audit = check_audit(audit)
    rows = [check_rows(X, family)]
    weights = check_weights(sample_weight, rows[0].shape[0])
    # Handed over rather than lent: what was converted is gone as soon as the points are made.
    return build(
        rows.pop(), family, weights, algorithm, neighbors, level, n_threads, progress, audit
    )


def build(
    X: NDArray[np.float64],
    family: Family,
    sample_weight: NDArray[np.float64] | None,
    algorithm: str,
    neighbors: str,
    threshold: float,
    n_threads: int,
    progress: bool,
    audit: bool | str = False,
) -> Dendrogram:
    """The tree of rows that have been checked."""
    n, n_features = X.shape
    leaf_weights = np.ones(n) if sample_weight is None else sample_weight
    if threshold <= 0.0:  # d < 0 never holds
        none = np.empty((0, 2), np.int64)
        tree = dendrogram_of_merges(none, np.empty(0), leaf_weights, threshold)
        return tree if audit is False else replace(tree, audit=report_of(tree, "proof", True))
    with compiling_for(family):
        geometry = family.geometry(n_features)
        points, point_of_row = _distinct(geometry, weighted(family.observe(X), sample_weight))
        del X
        points = turned(geometry, points)
        n_points = points.means.shape[0]
        chosen = plan(family, n_points, n_features, algorithm, neighbors, n_threads)
        warn_if_long(chosen, geometry, points, stacklevel=4)
        clusters = chosen.clusters(geometry, points)
        again = None if audit is False else points
        del points  # memory: the clusters hold them now
        totals = {"neighbours": n_points, "merging": n_points - 1, "audit": n_points - 1}
        with Progress(progress, totals) as report:
            merges = chosen.agglomerate(geometry, clusters, threshold, report)
            del clusters
            if threshold == np.inf and merges.made[0] < n_points - 1:
                raise ValueError(
                    f"the dissimilarity of the family {family.name!r} is not finite for these rows"
                )
            tally, sample, greedy = None, None, None
            if again is not None and not family.reducible:
                sample = _sample(n_points, int(merges.made[0])) if audit == "sample" else None
                clusters = chosen.clusters(geometry, again, audited=True)
                tally = chosen.audit(geometry, clusters, merges, sample, report)
            if again is not None and chosen.algorithm == "nn_chain":
                exact = plan(family, n_points, n_features, "auto", neighbors, n_threads)
                clusters = exact.clusters(geometry, again)
                greedy = exact.agglomerate(geometry, clusters, threshold, report)
    tree, nodes = _tree(merges, point_of_row, n_points, leaf_weights, threshold)
    if audit is False:
        return tree
    departure = None
    if greedy is not None:
        exact_tree, _ = _tree(greedy, point_of_row, n_points, leaf_weights, threshold)
        departure = first_departure(tree, exact_tree)
        if departure is None and len(exact_tree.merges) > len(tree.merges):
            departure = len(tree.merges)
    method = "proof" if tally is None else "exact" if sample is None else "sample"
    return replace(
        tree,
        audit=report_of(tree, method, departure is None, departure, tally, sample, nodes),
    )


def _tree(
    merges: Merges,
    point_of_row: NDArray[np.int64],
    n_points: int,
    leaf_weights: NDArray[np.float64],
    threshold: float,
) -> tuple[Dendrogram, NDArray[np.int64]]:
    """The tree of the rows from the merges of the distinct points, and the node of each point."""
    count = merges.made[0]
    children, heights, nodes = _with_repeated_rows(
        merges.children[:count], merges.heights[:count], point_of_row, n_points
    )
    return dendrogram_of_merges(children, heights, leaf_weights, threshold), nodes


def _sample(n: int, m: int) -> NDArray[np.int64] | None:
    """Triples of m merges of n clusters, by number; None if there are so few that all will do."""
    total, wanted = m * (n - 2) - m * (m - 1) // 2, _SAMPLED_EACH * n
    if total <= wanted:
        return None
    return np.random.default_rng(_SAMPLE_SEED).integers(0, total, wanted)


def dissimilarity(X0: ArrayLike, X1: ArrayLike, family: str | Family) -> float:
    """The dissimilarity d between two groups of rows.

    Parameters
    ----------
    X0, X1 : array-like of shape (n0, d) and (n1, d)
        The rows of either group.
    family : str or record
        A record from `fastrbhc.families`, or its name.

    Returns
    -------
    float
        d ≥ 0, by which the cost of the clustering grows when the two are merged.

    Examples
    --------
    >>> import fastrbhc
    >>> fastrbhc.dissimilarity([[0.0, 0.0], [2.0, 0.0]], [[1.0, 3.0]], "ward")
    3.0
    """
    family = as_family(family)
    rows0, rows1 = check_groups(X0, X1, family)
    labels = np.repeat([0, 1], [len(rows0), len(rows1)])
    with compiling_for(family):
        geometry = family.geometry(rows0.shape[1])
        rows = family.observe(np.concatenate([rows0, rows1]))
        clusters = statistics.clusters_of_groups(geometry, rows, labels, 2)
        return float(statistics.dissimilarities(geometry, clusters)[0])


def _distinct(geometry: Any, rows: Observations) -> Collapsed:
    """Distinct points; rows of weight 0 belong to the point they are nearest to."""
    if rows.weights is None or rows.weights.all():
        return collapse(rows)
    positive = rows.weights > 0.0
    points, point_of_positive = collapse(take(rows, np.flatnonzero(positive)))
    point_of_row = np.empty(positive.size, np.int64)
    point_of_row[positive] = point_of_positive
    light = take(rows, np.flatnonzero(~positive))._replace(weights=None)
    clusters = statistics.clusters_of_points(geometry, points)
    point_of_row[~positive] = statistics.nearest_clusters(geometry, clusters, light)
    return Collapsed(points, point_of_row)


def _with_repeated_rows(
    children: NDArray[np.int64],
    heights: NDArray[np.float64],
    point_of_row: NDArray[np.int64],
    n_points: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Put the merges of repeated rows, at height 0, before those of the distinct points.

    The rows of a point are joined in rounds, two by two, so that thousands of copies make a
    shallow tree. Returns the merges, their heights and the node of each point.
    """
    n = point_of_row.size
    nodes = rows_by_point(point_of_row, n_points)
    owners = point_of_row[nodes]
    joined: list[NDArray[np.int64]] = []
    next_node = n
    while nodes.size > n_points:
        starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
        place = np.arange(nodes.size) - np.repeat(starts, np.diff(np.r_[starts, nodes.size]))
        left = np.flatnonzero((place % 2 == 0) & (np.r_[owners[1:] == owners[:-1], False]))
        pairs = np.column_stack([nodes[left], nodes[left + 1]])
        nodes[left] = next_node + np.arange(left.size)
        next_node += left.size
        joined.append(np.sort(pairs, axis=1))
        nodes, owners = np.delete(nodes, left + 1), np.delete(owners, left + 1)
    renumber(children, nodes, next_node)
    if not joined:
        return children, heights, nodes
    return (
        np.concatenate([*joined, children]),
        np.concatenate([np.zeros(next_node - n), heights]),
        nodes,
    )
