"""From rows to a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.agglomeration.direct import direct
from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.agglomeration.merge_order import by_level
from fastrbhc._engine.clusters.duplicates import distinct_points, with_repeated_rows
from fastrbhc._engine.clusters.observations import Observations, weighted
from fastrbhc._engine.clusters.principal_axes import rotate_to_principal_axes
from fastrbhc._engine.planning.cost_model import warn_if_long
from fastrbhc._engine.planning.execution import (
    agglomerate,
    planned_clusters,
    planned_space,
    planned_threads,
)
from fastrbhc._engine.planning.plan import Plan, plan
from fastrbhc._options import DEFAULT_GUESS, DEFAULT_MULTIPLIER, CheckedOptions, LinkageOptions
from fastrbhc._progress import Progress, compiling_shown
from fastrbhc._validation import check_rows, check_weights, column_names
from fastrbhc.families import Family, as_family
from fastrbhc.reducibility.audit import Tally, audit_merges
from fastrbhc.reducibility.compare import first_departure
from fastrbhc.reducibility.report import report_of
from fastrbhc.thresholds import FROM_ROWS, FROM_TREE
from fastrbhc.tree.dendrogram import Dendrogram, dendrogram_of_merges, forest_at
from fastrbhc.tree.origin import Chosen, Origin, remembering

# Number of triples per distinct row in an audit by sample.
_SAMPLED_EACH = 10
_SAMPLE_SEED = 0


def linkage(
    X: ArrayLike,
    family: str | Family = "gaussian",
    *,
    algorithm: str = "auto",
    neighbors: str = "auto",
    threshold: float | str | None = None,
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
        "gaussian", "diagonal_gaussian", "von_mises_fisher" (or "cosine"), "poisson",
        "multinomial", "bernoulli", "exponential".
    algorithm : {"auto", "greedy", "levels", "nn_chain"}, default="auto"
        "greedy" merges the nearest pair of all at every step, and is exact for every family.
        "levels" merges many pairs of reciprocal nearest neighbours at a time, on all threads. It
        is for reducible families, and its tree is the greedy one. "nn_chain" merges one such pair
        after another; if the family is not reducible, its tree can differ from the greedy one.
        "auto" is "levels" if the family is reducible, and "greedy" otherwise.
    neighbors : {"auto", "brute", "kd_tree"}, default="auto"
        How nearest clusters are found: "brute" scans all of them, "kd_tree" searches only boxes
        that may contain a nearer one. The tree is the same, to the bit. "auto" chooses the kd-tree
        for few columns. Memory is O(n) with either.
    threshold : float or {"kmeans", "gap", "evidence"}, optional
        λ: a pair is merged only if d < λ, and the result is a forest. By default the whole tree is
        built, which can be cut at any λ afterwards; a greedy tree cut at λ gives that forest. In a
        chain, a cluster without a neighbour below λ is finished, even if a later union is nearer
        to it. A name says how to choose λ, which is then the ``threshold`` of the tree. "kmeans"
        is `kmeans_threshold` with a guess of 8 clusters and a random seed; it costs a k-means
        before the tree. "gap" and "evidence" need the whole tree: it is built first and cut
        afterwards, so that it takes as long as without a threshold, and the forest is what is
        left of it. To keep the whole tree, call `gap_threshold` or `evidence_threshold` yourself.
    sample_weight : array-like of shape (n,), optional
        A row with weight 3 counts as three copies. Rows with weight 0 join the nearest row, at
        height 0, and change nothing else.
    n_jobs : int, optional
        Number of threads. None or -1 stands for NUMBA_NUM_THREADS, by default one per core that the
        process may use. The result does not depend on it.
    progress : bool, default=False
        Show a progress bar, and the number of kernels compiled, if any.
    audit : bool or "sample", default=False
        Count violations of reducibility, in all triples of a merge and a third cluster or in a
        random sample of ten triples per row, and certify that the tree is the greedy one: see
        `fastrbhc.reducibility`. The report is the attribute ``audit`` of the tree. If λ is chosen
        from the whole tree, the report is on that.

    Returns
    -------
    Dendrogram
        Merges, heights and weights; ``cut`` gives labels. It remembers its family, the names of
        its columns and λ.

    Notes
    -----
    Ties: pairs at the same d are merged in the order of their smaller rank, then of their larger
    rank. The rank of a distinct row is its position in the order of a fixed hash of the values; the
    rank of a cluster is the largest among its rows. So a tree depends on the values of the rows,
    never on their order, their layout in memory or the number of threads. Repeated rows are merged
    first, at height 0.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [[9, 1], [8, 2], [1, 9], [2, 7]]
    >>> tree = fastrbhc.linkage(X, "poisson")
    >>> tree.cut(n_clusters=2).tolist()
    [0, 0, 1, 1]
    >>> fastrbhc.linkage(X, "poisson", threshold=1.0).n_trees
    2
    >>> fastrbhc.linkage(X, "poisson", threshold="gap").n_trees
    2
    """
    family = as_family(family)
    options = LinkageOptions(algorithm, neighbors, threshold, n_jobs, progress, audit)
    checked = options.checked(family)
    rows = [check_rows(X, family)]
    weights = check_weights(sample_weight, rows[0].shape[0])
    names = column_names(X)
    with compiling_shown(checked.progress):
        if checked.choice in FROM_ROWS:
            choose = FROM_ROWS[checked.choice]
            level = choose(rows[0], family, DEFAULT_GUESS, DEFAULT_MULTIPLIER, weights, None)
            checked = replace(checked, threshold=level)
        # Passed without keeping a reference, so that converted rows are freed once points are made.
        tree = build(rows.pop(), family, weights, checked)
        if checked.choice in FROM_TREE:
            tree = forest_at(tree, FROM_TREE[checked.choice](tree))
    if threshold is None:
        return remembering(tree, names)
    return remembering(tree, names, Chosen(tree.threshold, checked.choice or "given"))


def build(
    X: NDArray[np.float64],
    family: Family,
    sample_weight: NDArray[np.float64] | None,
    options: CheckedOptions,
) -> Dendrogram:
    """The tree of rows that have been checked; it remembers this family."""
    n, n_features = X.shape
    origin = Origin(family, n_features)
    leaf_weights = np.ones(n) if sample_weight is None else sample_weight
    if options.threshold <= 0.0:  # d < 0 never holds
        none = np.empty((0, 2), np.int64)
        tree = dendrogram_of_merges(none, np.empty(0), leaf_weights, options.threshold, origin)
        return (
            tree if options.audit is False else replace(tree, audit=report_of(tree, "proof", True))
        )
    geometry = family.geometry(n_features)
    rows = weighted(family.observe(X), sample_weight)
    del X
    points, point_of_row = distinct_points(geometry, rows)
    del rows
    points = rotate_to_principal_axes(geometry, points)
    n_points = points.means.shape[0]
    chosen = plan(
        family.reducible,
        n_points,
        n_features,
        options.algorithm,
        options.neighbors,
        options.n_threads,
    )
    warn_if_long(chosen, geometry, points, stacklevel=4)
    points_for_audit = None if options.audit is False else points
    totals = {"neighbours": n_points, "merging": n_points - 1, "audit": n_points - 1}
    with Progress(options.progress, totals) as report:
        if chosen.algorithm == "direct":
            merges = _directly(family, geometry, points, options.threshold)
            report("merging", merges.heights.size)
        else:
            clusters = planned_clusters(chosen, geometry, points)
            del points  # frees memory: the clusters hold them now
            merges = agglomerate(chosen, geometry, clusters, options.threshold, report)
            del clusters
        if options.threshold == np.inf and merges.heights.size < n_points - 1:
            raise ValueError(
                f"the dissimilarity of the family {family.name!r} is not finite for these rows"
            )
        findings = None
        if points_for_audit is not None:
            findings = _examine(family, geometry, points_for_audit, chosen, merges, options, report)
    tree, nodes = _tree(merges, point_of_row, leaf_weights, options.threshold, origin)
    if findings is None:
        return tree
    departure = None
    if findings.greedy is not None:
        greedy_tree, _ = _tree(
            findings.greedy, point_of_row, leaf_weights, options.threshold, origin
        )
        departure = first_departure(tree, greedy_tree)
        if departure is None and len(greedy_tree.merges) > len(tree.merges):
            departure = len(tree.merges)
    tally, sample = findings.tally, findings.sample
    method = "proof" if tally is None else "exact" if sample is None else "sample"
    audit = report_of(tree, method, departure is None, departure, tally, sample, nodes)
    return replace(tree, audit=audit)


def _directly(family: Family, geometry: Any, points: Observations, threshold: float) -> Merges:
    """The merges of few points; merges at the same height are ordered as with many points."""
    merges = direct(geometry, points, threshold)
    if family.reducible and (merges.heights[1:] <= merges.heights[:-1]).any():
        return by_level(merges, points.means.shape[0])
    return merges


class _Findings(NamedTuple):
    """The findings of an audit."""

    tally: Tally | None  # None if the family is reducible
    sample: NDArray[np.int64] | None  # the triples examined, if not all
    greedy: Merges | None  # the greedy merges, if the audited ones may differ


def _examine(
    family: Family,
    geometry: Any,
    points: Observations,
    chosen: Plan,
    merges: Merges,
    options: CheckedOptions,
    report: Callable[[str, int], None],
) -> _Findings:
    """Count violations of reducibility in the merges, and build the greedy tree to compare with."""
    n, n_features = points.means.shape
    tally, sample, greedy = None, None, None
    if not family.reducible:
        sample = _sample(n, merges.heights.size) if options.audit == "sample" else None
        clusters = planned_clusters(chosen, geometry, points, audited=True)
        with planned_threads(chosen, geometry, clusters, clusters.weights.size) as threads:
            space = planned_space(chosen, geometry, clusters, threads, audited=True)
            tally = audit_merges(space, *merges, sample, threads, report)
    if chosen.algorithm == "nn_chain":
        exact = plan(family.reducible, n, n_features, "auto", options.neighbors, options.n_threads)
        if exact.algorithm == "direct":
            greedy = _directly(family, geometry, points, options.threshold)
        else:
            clusters = planned_clusters(exact, geometry, points)
            greedy = agglomerate(exact, geometry, clusters, options.threshold, report)
    return _Findings(tally, sample, greedy)


def _tree(
    merges: Merges,
    point_of_row: NDArray[np.int64],
    leaf_weights: NDArray[np.float64],
    threshold: float,
    origin: Origin,
) -> tuple[Dendrogram, NDArray[np.int64]]:
    """The tree of the rows from the merges of the distinct points, and the node of each point."""
    n_points = int(point_of_row.max()) + 1
    children, heights, nodes = with_repeated_rows(*merges, point_of_row, n_points)
    return dendrogram_of_merges(children, heights, leaf_weights, threshold, origin), nodes


def _sample(n: int, m: int) -> NDArray[np.int64] | None:
    """Numbers of sampled triples of m merges of n clusters; None to take all, if they are few."""
    total, wanted = m * (n - 2) - m * (m - 1) // 2, _SAMPLED_EACH * n
    if total <= wanted:
        return None
    return np.random.default_rng(_SAMPLE_SEED).integers(0, total, wanted)
