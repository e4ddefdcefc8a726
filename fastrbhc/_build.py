"""From rows to a tree: statistics, distinct points, a plan, merges, the audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._build_approximate import build_approximate
from fastrbhc._build_on_graph import build_on_graph
from fastrbhc._engine.agglomeration.direct import direct
from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.agglomeration.merge_order import by_level
from fastrbhc._engine.clusters.duplicates import distinct_points, with_repeated_rows
from fastrbhc._engine.clusters.observations import Observations, weighted
from fastrbhc._engine.clusters.partly_observed import PartlyObserved
from fastrbhc._engine.clusters.principal_axes import rotate_to_principal_axes
from fastrbhc._engine.geometry.contract import usual_backend
from fastrbhc._engine.planning.cost_model import warn_if_long
from fastrbhc._engine.planning.execution import (
    agglomerate,
    agglomerate_cells,
    in_order,
    planned_cells,
    planned_clusters,
    planned_space,
    planned_threads,
    worth_dividing,
)
from fastrbhc._engine.planning.plan import Plan, plan
from fastrbhc._options import APPROXIMATE, CheckedOptions
from fastrbhc._progress import Progress
from fastrbhc.families import Family, geometry_of
from fastrbhc.families._missing import observe
from fastrbhc.reducibility.audit import Tally, audit_merges
from fastrbhc.reducibility.compare import first_departure
from fastrbhc.reducibility.report import report_of
from fastrbhc.tree.dendrogram import Dendrogram, dendrogram_of_merges
from fastrbhc.tree.origin import Origin

# Number of triples per distinct row in an audit by sample.
_SAMPLED_EACH = 10
_SAMPLE_SEED = 0
# What a tree says of algorithms that have another name there.
_ALGORITHMS = {"direct": "greedy"}


def build(
    X: Any,
    family: Family,
    sample_weight: NDArray[np.float64] | None,
    options: CheckedOptions,
) -> Dendrogram:
    """The tree of rows that have been checked, dense or sparse; it remembers this family."""
    n, n_features = X.shape
    origin = Origin(family, n_features, missing=options.missing)
    if options.threshold <= 0.0:  # d < 0 never holds
        graph = None if options.connections is None else "graph"
        origin = replace(origin, algorithm="greedy", connectivity=graph)
        none = Merges(np.empty((0, 2), np.int64), np.empty(0))
        tree = _tree(*none, sample_weight, n, options.threshold, origin)
        return (
            tree if options.audit is False else replace(tree, audit=report_of(tree, "proof", True))
        )
    if options.connections is not None:
        return build_on_graph(X, family, sample_weight, options, origin)
    if options.neighbors == APPROXIMATE:
        return build_approximate(X, family, sample_weight, options, origin)
    rows = weighted(observe(family, X), sample_weight)
    geometry = geometry_of(family, rows)
    del X
    points, point_of_row = distinct_points(geometry, rows)
    del rows
    points = rotate_to_principal_axes(geometry, points)
    n_points = points.shape[0]
    reducible = _is_reducible(family, points)
    chosen = plan(
        reducible,
        n_points,
        points.width,
        options.algorithm,
        options.neighbors,
        options.n_threads,
        usual_backend(geometry, points.shape[1]),
    )
    origin = replace(origin, algorithm=_ALGORITHMS.get(chosen.algorithm, chosen.algorithm))
    points_for_audit = None if options.audit is False else points
    totals = {"neighbours": n_points, "merging": n_points - 1, "audit": n_points - 1}
    with Progress(options.progress, totals) as report:
        report("merging" if chosen.algorithm == "nn_chain" else "neighbours", 0)  # at once
        warn_if_long(chosen, geometry, points)
        if chosen.algorithm == "direct":
            merges = _directly(reducible, geometry, points, options.threshold)
            report("merging", merges.heights.size)
        elif worth_dividing(chosen, geometry, points, options.threshold):
            cells = planned_cells(points)
            del points  # frees memory: the cells hold them now
            merges = in_order(chosen, agglomerate_cells(chosen, geometry, cells, report), n_points)
        else:
            clusters = planned_clusters(chosen, geometry, points)
            del points  # frees memory: the clusters hold them now
            made = agglomerate(chosen, geometry, clusters, options.threshold, report)
            del clusters  # before the merges are sorted
            merges = in_order(chosen, made, n_points)
            del made
        if options.threshold == np.inf and merges.heights.size < n_points - 1:
            raise ValueError(
                f"the dissimilarity of the family {family.name!r} is not finite for these rows"
            )
    children, heights, nodes = with_repeated_rows(*merges, point_of_row, n_points)
    if points_for_audit is None:
        del merges  # frees memory
        return _tree(children, heights, sample_weight, n, options.threshold, origin)
    tree = _tree(children, heights, sample_weight, n, options.threshold, origin)
    with Progress(options.progress, totals) as report:
        return audited(
            tree, nodes, merges, points_for_audit, point_of_row, geometry, chosen, options, report
        )


def audited(
    tree: Dendrogram,
    nodes: NDArray[np.int64],
    merges: Merges,
    points: Observations,
    point_of_row: NDArray[np.int32],
    geometry: Any,
    chosen: Plan,
    options: CheckedOptions,
    report: Callable[[str, int], None],
) -> Dendrogram:
    """The tree with the report on its merges of distinct points, in the order they were made.

    ``nodes`` are those of the points in the tree; of merges, they are numbered in that order.
    """
    family, origin = tree.family, tree.origin
    assert family is not None
    assert origin is not None
    findings = _examine(family, geometry, points, chosen, merges, options, report)
    departure = None
    if findings.greedy is not None:
        children, heights, _ = with_repeated_rows(*findings.greedy, point_of_row, len(nodes))
        greedy_tree = _tree(
            children, heights, tree.leaf_weights, tree.n_leaves, options.threshold, origin
        )
        departure = first_departure(tree, greedy_tree)
        if departure is None and len(greedy_tree.merges) > len(tree.merges):
            departure = len(tree.merges)
    tally, sample = findings.tally, findings.sample
    method = "proof" if tally is None else "exact" if sample is None else "sample"
    found = report_of(tree, method, departure is None, departure, tally, sample, nodes)
    return replace(tree, audit=found)


def _is_reducible(family: Family, points: Observations) -> bool:
    """Whether d is reducible; never if cells are missing, as `geometry.observed` shows."""
    return family.reducible and not isinstance(points, PartlyObserved)


def _directly(reducible: bool, geometry: Any, points: Observations, threshold: float) -> Merges:
    """The merges of few points; merges at the same height are ordered as with many points."""
    merges = direct(geometry, points, threshold)
    if reducible and (merges.heights[1:] <= merges.heights[:-1]).any():
        return by_level(merges, points.shape[0])
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
    n = points.shape[0]
    tally, sample, greedy = None, None, None
    reducible = _is_reducible(family, points)
    if not reducible:
        sample = _sample(n, merges.heights.size) if options.audit == "sample" else None
        clusters = planned_clusters(chosen, geometry, points, audited=True)
        with planned_threads(chosen, geometry, clusters, clusters.weights.size) as threads:
            space = planned_space(chosen, geometry, clusters, threads, audited=True)
            tally = audit_merges(space, *merges, sample, threads, report)
    if chosen.algorithm == "nn_chain":
        exact = plan(
            reducible,
            n,
            points.width,
            "auto",
            options.neighbors,
            options.n_threads,
            usual_backend(geometry, points.shape[1]),
        )
        if exact.algorithm == "direct":
            greedy = _directly(reducible, geometry, points, options.threshold)
        else:
            clusters = planned_clusters(exact, geometry, points)
            made = agglomerate(exact, geometry, clusters, options.threshold, report)
            greedy = in_order(exact, made, n)
    return _Findings(tally, sample, greedy)


def _tree(
    children: NDArray[np.int64],
    heights: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    n: int,
    threshold: float,
    origin: Origin,
) -> Dendrogram:
    """The tree of n rows."""
    leaf_weights = np.ones(n) if sample_weight is None else sample_weight
    return dendrogram_of_merges(children, heights, leaf_weights, threshold, origin)


def _sample(n: int, m: int) -> NDArray[np.int64] | None:
    """Numbers of sampled triples of m merges of n clusters; None to take all, if they are few."""
    total, wanted = m * (n - 2) - m * (m - 1) // 2, _SAMPLED_EACH * n
    if total <= wanted:
        return None
    return np.random.default_rng(_SAMPLE_SEED).integers(0, total, wanted)
