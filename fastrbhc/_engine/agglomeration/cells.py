"""Merges within cells of space, and of what they leave over.

If d is reducible, clusters that are each other's nearest neighbours may be merged at any time. A
cell merges those pairs of which nothing outside can be nearer (`neighbors.bordered`), whatever the
other cells do at the same time. What is left of several cells is merged in the same way, with the
cells that are still apart outside, and at last without any. All merges together are those of the
greedy tree: `by_level` puts them in order.

Clusters keep the order that breaks ties. Each has a *key*, the largest of those of its rows, which
increase with the ranks of the rows among all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.levels import log_of_levels
from fastrbhc._engine.agglomeration.merge_log import Merges, finished
from fastrbhc._engine.agglomeration.merge_order import by_level
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.kd_cells import Splits, cells_of_rows
from fastrbhc._engine.clusters.observations import Observations, column_ranges
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import for_clusters, with_columns
from fastrbhc._engine.neighbors.bordered import bordered, boxes_around
from fastrbhc._engine.neighbors.kd_tree import kd_tree
from fastrbhc._engine.threads import Threads
from fastrbhc._engine.traversal import renumbered

# Rows that are divided among cells together.
_ROWS_AT_A_TIME = 1 << 16


class Cell(NamedTuple):
    """Clusters of rows of one cell, in the order of their keys."""

    points: Observations  # their weights and means
    keys: NDArray[Any]  # (n,), unique, ascending
    nodes: NDArray[Any]  # (n,), which nodes of the whole tree they are


class Border(NamedTuple):
    """The box around the rows of a cell, which holds the means of all its clusters."""

    lowest: NDArray[np.float64]  # (d,)
    highest: NDArray[np.float64]  # (d,)
    lightest: float  # the smallest weight of a row; infinite if there is none


class LocalMerges(NamedTuple):
    """The merges of a cell, and what is left of it.

    Nodes of the merges are those of the cell's clusters, 0 to n − 1, and then of the merges.
    """

    merges: Merges
    left: Cell  # nodes are those of the merges here


def border_of(points: Observations) -> Border:
    """The box around points."""
    n, d = points.shape
    if n == 0:
        return Border(np.full(d, np.inf), np.full(d, -np.inf), np.inf)
    lowest, highest = column_ranges(points.means)
    return Border(lowest, highest, float(points.all_weights().min()))


def joined_border(borders: Sequence[Border]) -> Border:
    """The box around the rows of several cells."""
    return Border(
        np.min([border.lowest for border in borders], axis=0),
        np.max([border.highest for border in borders], axis=0),
        min(border.lightest for border in borders),
    )


def joined_cells(cells: Sequence[Cell]) -> Cell:
    """The clusters of several cells as those of one."""
    keys = np.concatenate([cell.keys for cell in cells])
    order = np.argsort(keys, kind="stable")
    rests = [
        np.zeros(cell.points.shape) if cell.points.residuals is None else cell.points.residuals
        for cell in cells
    ]
    points = Observations(
        np.concatenate([cell.points.means for cell in cells])[order],
        np.concatenate(rests)[order],
        np.concatenate([cell.points.all_weights() for cell in cells])[order],
    )
    return Cell(points, keys[order], np.concatenate([cell.nodes for cell in cells])[order])


def merge_locally(
    geometry: Any,
    cell: Cell,
    others: Sequence[Border],
    n_threads: int = 1,
    columns: tuple[int, ...] = (),
    report: Callable[[str, int], None] = lambda stage, done: None,
) -> LocalMerges:
    """Merge reciprocal nearest neighbours of a cell, of which nothing in other cells is nearer.

    ``columns`` has one entry per column if kernels are to know their number.
    """
    n, d = cell.points.shape
    if n < 2:
        nothing = Merges(np.empty((0, 2), np.int64), np.empty(0))
        return LocalMerges(nothing, cell._replace(nodes=np.arange(n)))
    clusters = clusters_of_points(geometry, cell.points, padded=True, mirrored=False)
    outside = boxes_around(
        geometry,
        np.array([border.lowest for border in others]).reshape(-1, d),
        np.array([border.highest for border in others]).reshape(-1, d),
        np.array([border.lightest for border in others]),
    )
    with Threads([new_scratch(geometry, d) for _ in range(n_threads)]) as threads:
        index = bordered(kd_tree(geometry, clusters, threads, False), outside)
        space = Space(with_columns(for_clusters(geometry, clusters), columns), clusters, index)
        log = log_of_levels(space, np.inf, threads, report)
    slots = np.flatnonzero(~np.isnan(clusters.weights[: clusters.n_slots]))
    ranks = clusters.ranks[slots]
    slots, ranks = slots[np.argsort(ranks)], np.sort(ranks)
    points = Observations(
        np.ascontiguousarray(clusters.means[:, slots].T),
        np.ascontiguousarray(clusters.residuals[:, slots].T),
        clusters.weights[slots],
    )
    return LocalMerges(finished(log), Cell(points, cell.keys[ranks], log.nodes[slots]))


class MergesOfCells:
    """The merges of all cells so far, with nodes of the whole tree."""

    def __init__(self, n_leaves: int) -> None:
        self._children = np.empty((n_leaves - 1, 2), np.int64)
        self._heights = np.empty(n_leaves - 1)
        self._n_leaves, self.count = n_leaves, 0

    def add(self, cell: Cell, found: LocalMerges) -> Cell:
        """Number the merges of a cell; returns what is left, with nodes of the whole tree."""
        children, heights = found.merges
        first, self.count = self.count, self.count + heights.size
        next_node, left = self._n_leaves + first, found.left.nodes
        self._children[first : self.count] = renumbered(children, cell.nodes, next_node)
        self._heights[first : self.count] = heights
        n = cell.nodes.size
        leaves = cell.nodes[np.minimum(left, n - 1)]
        return found.left._replace(nodes=np.where(left < n, leaves, left + (next_node - n)))

    def made(self) -> Merges:
        """All merges, in the order in which they were added."""
        return Merges(self._children[: self.count], self._heights[: self.count])

    def in_order(self) -> Merges:
        """All merges, in the order of `linkage`."""
        return by_level(self.made(), self._n_leaves)


def cells_of_points(points: Observations, splits: Splits) -> list[Cell]:
    """The points of each cell. Their order decides ties, as in all other algorithms."""
    n = points.shape[0]
    label = np.empty(n, np.int32)
    for start in range(0, n, _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        label[part] = cells_of_rows(splits, points.means[part])
    members = [np.flatnonzero(label == number) for number in range(splits.n_cells)]
    numbers = [own.astype(np.int32) for own in members]
    return [
        Cell(points.take(own), number, number) for own, number in zip(members, numbers, strict=True)
    ]


def merge_cells(
    geometry: Any,
    cells: list[Cell],
    n_threads: int,
    columns: tuple[int, ...] = (),
    report: Callable[[str, int], None] = lambda stage, done: None,
) -> MergesOfCells:
    """Merge cell by cell, then two cells at a time, until there is one. The list is emptied."""
    merges = MergesOfCells(sum(cell.keys.size for cell in cells))
    borders = [border_of(cell.points) for cell in cells]

    def report_merges(stage: str, done: int) -> None:
        if stage == "merging":
            report(stage, merges.count + done)

    while True:
        left: list[Cell] = []
        for place in range(len(borders)):
            cell, others = cells.pop(0), borders[:place] + borders[place + 1 :]
            found = merge_locally(geometry, cell, others, n_threads, columns, report_merges)
            left.append(merges.add(cell, found))
        if len(left) == 1:
            return merges
        pairs = range(0, len(left), 2)
        cells = [joined_cells(left[place : place + 2]) for place in pairs]
        borders = [joined_border(borders[place : place + 2]) for place in pairs]


def merge_in_cells(geometry: Any, points: Observations, splits: Splits, n_threads: int) -> Merges:
    """The tree of points, from cells."""
    return merge_cells(geometry, cells_of_points(points, splits), n_threads).in_order()
