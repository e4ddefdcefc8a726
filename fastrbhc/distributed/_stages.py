"""The work of a stage: from the rows of a cell, or from what other stages have left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.cells import Border, merge_locally
from fastrbhc._engine.agglomeration.direct import direct
from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.agglomeration.merge_order import (
    OrderedMerges,
    Ordering,
    joined_orderings,
    ordered,
    ordering_of,
)
from fastrbhc._engine.clusters.duplicates import collapse, with_repeated_rows
from fastrbhc._engine.clusters.observations import Observations, hash_rows, weighted
from fastrbhc._engine.geometry.contract import WORTH_COMPILING, usual_backend
from fastrbhc._engine.planning.cost_model import warn_if_long
from fastrbhc._engine.planning.execution import agglomerate, planned_clusters
from fastrbhc._engine.planning.plan import plan
from fastrbhc._engine.traversal import merged_minima
from fastrbhc.distributed._dividing import Piece
from fastrbhc.distributed._scratch import new_folder, read_slice
from fastrbhc.distributed._stage_files import (
    Leaves,
    Left,
    Stage,
    StageFiles,
    stage_files,
    write_stage,
)
from fastrbhc.families import Family, geometry_of
from fastrbhc.families._missing import observe

# Repeated rows are merged before all others at height 0: their depths are counted from here.
_BEFORE_POINTS = -(2**30)


class Setting(NamedTuple):
    """What all stages have in common."""

    family: Family
    n_columns: int  # of the statistics
    folder: Path  # where stages are written
    n_threads: int = 1


class _Found(NamedTuple):
    """The merges of clusters, and the clusters that are left."""

    merges: OrderedMerges
    nodes: NDArray[np.int64]
    points: Observations
    ordering: Ordering


def merge_cell(
    number: int, pieces: Sequence[Piece], others: Sequence[Border], setting: Setting
) -> StageFiles:
    """The stage of the rows of one cell."""
    return _written(number, setting, lambda: _of_rows(pieces, others, setting))


def merge_left(
    number: int, stages: Sequence[StageFiles], others: Sequence[Border], setting: Setting
) -> StageFiles:
    """The stage of what several stages have left, with the cells that are still apart outside."""
    return _written(number, setting, lambda: _of_left(stages, others, setting))


def _written(number: int, setting: Setting, make: Callable[[], Stage]) -> StageFiles:
    """A stage in files, made now if it is not there yet."""
    target = setting.folder / f"{number:05d}"
    if not target.exists():
        stage = make()
        with new_folder(target) as files:
            write_stage(files, stage)
    return stage_files(number, target)


def rows_of_cell(
    pieces: Sequence[Piece],
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, NDArray[np.int64]]:
    """Rows of a cell, their weights and their numbers among all rows, in the order of these."""
    values, weights, rows = [], [], [np.empty(0, np.int64)]
    for folder, start, stop, first_row in pieces:
        values.append(read_slice(folder / "rows.npy", start, stop))
        rows.append(first_row + read_slice(folder / "places.npy", start, stop).astype(np.int64))
        if (folder / "weights.npy").exists():
            weights.append(read_slice(folder / "weights.npy", start, stop))
    X = np.concatenate(values) if values else np.empty((0, 1))
    return X, np.concatenate(weights) if weights else None, np.concatenate(rows)


def _of_rows(pieces: Sequence[Piece], others: Sequence[Border], setting: Setting) -> Stage:
    X, weights, rows = rows_of_cell(pieces)
    n = rows.size
    leaves = Leaves(np.ones(n) if weights is None else weights, rows, np.zeros(n), None, None)
    if n == 0:
        return _nothing(leaves, setting)
    observed = weighted(observe(setting.family, X), weights)
    del X
    points, point_of_row = collapse(observed)
    del observed
    m = points.shape[0]
    keys = _as_keys(hash_rows(points))
    found = _merged(points, Ordering(np.zeros(m), np.zeros(m, np.int64), keys), others, setting)
    # Rows become the leaves, in place of points.
    merges = found.merges
    children, heights, nodes = with_repeated_rows(merges.children, merges.heights, point_of_row, m)
    copies = Merges(children[: n - m], heights[: n - m])
    depths = np.full(n, _BEFORE_POINTS)
    first, _ = ordering_of(copies, Ordering(np.zeros(n), depths, keys[point_of_row]))
    all_merges = OrderedMerges(
        children,
        heights,
        joined_orderings([first, merges.ordering]),
        np.concatenate([np.arange(n - m), n - m + merges.steps]),
    )
    nodes = np.concatenate([nodes, 2 * n - m + np.arange(merges.heights.size)])
    return _stage(leaves, found._replace(merges=all_merges, nodes=nodes[found.nodes]))


def _as_keys(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Hashes as signed numbers in the same order."""
    return (hashes ^ np.uint64(2**63)).view(np.int64)


def _of_left(stages: Sequence[StageFiles], others: Sequence[Border], setting: Setting) -> Stage:
    found = [(stage.number, stage.read_left()) for stage in stages if stage.n_left]
    if not found:
        none = np.empty(0, np.int64)
        no_leaves = Leaves(np.empty(0), none, np.empty(0), none.astype(np.int32), none)
        return _nothing(no_leaves, setting)
    orderings = joined_orderings([left.ordering for _, left in found])
    order = np.argsort(orderings.keys, kind="stable")

    def joined(part: Callable[[Left], NDArray[Any]]) -> NDArray[Any]:
        values: NDArray[Any] = np.concatenate([part(left) for _, left in found])[order]
        return values

    points = Observations(
        joined(lambda left: left.points.means),
        joined(lambda left: left.points.all_residuals()),
        joined(lambda left: left.points.all_weights()),
    )
    ordering = orderings.take(order)
    sources = [np.full(left.nodes.size, number, np.int32) for number, left in found]
    leaves = Leaves(
        points.all_weights(),
        joined(lambda left: left.firsts),
        ordering.levels,
        np.concatenate(sources)[order],
        joined(lambda left: np.arange(left.nodes.size)),
    )
    return _stage(leaves, _merged(points, ordering, others, setting))


def _merged(
    points: Observations, leaves: Ordering, others: Sequence[Border], setting: Setting
) -> _Found:
    """What becomes of clusters of a cell."""
    n = points.shape[0]
    geometry = geometry_of(setting.family, points)
    if not others and n > 1:
        merges = _all_merges(geometry, points, setting)
        root = np.array([2 * n - 2])
        # Nothing is merged with the root any more.
        nothing = Observations(np.full((1, points.shape[1]), np.nan))
        in_their_order, clusters = ordered(merges, leaves)
        return _Found(in_their_order, root, nothing, clusters.take(root))
    columns = tuple(range(points.shape[1])) if n >= WORTH_COMPILING else ()
    found = merge_locally(
        geometry, points, others, setting.family.reducible, setting.n_threads, columns
    )
    in_their_order, clusters = ordered(found.merges, leaves)
    places = np.empty_like(in_their_order.steps)
    places[in_their_order.steps] = np.arange(places.size)
    numbers = np.concatenate([np.arange(n), n + places])
    return _Found(in_their_order, numbers[found.nodes], found.points, clusters.take(found.nodes))


def _all_merges(geometry: Any, points: Observations, setting: Setting) -> Merges:
    """The whole tree of points, as `linkage` makes it: nothing is outside."""
    chosen = plan(
        setting.family.reducible,
        points.shape[0],
        points.width,
        "auto",
        "auto",
        setting.n_threads,
        usual_backend(geometry, points.shape[1]),
    )
    warn_if_long(chosen, geometry, points)
    if chosen.algorithm == "direct":
        return direct(geometry, points, np.inf)
    clusters = planned_clusters(chosen, geometry, points)
    return agglomerate(chosen, geometry, clusters, np.inf, lambda *_: None)


def _stage(leaves: Leaves, found: _Found) -> Stage:
    children = found.merges.children
    firsts = np.concatenate([leaves.firsts, merged_minima(children, leaves.firsts)])
    left = Left(found.points, found.ordering, found.nodes, firsts[found.nodes])
    return Stage(leaves, found.merges, left)


def _nothing(leaves: Leaves, setting: Setting) -> Stage:
    """The stage of no rows."""
    none = np.empty(0, np.int64)
    ordering = Ordering(np.empty(0), none, none)
    points = Observations(np.empty((0, setting.n_columns)))
    merges = OrderedMerges(np.empty((0, 2), np.int64), np.empty(0), ordering, none)
    return Stage(leaves, merges, Left(points, ordering, none, none))
