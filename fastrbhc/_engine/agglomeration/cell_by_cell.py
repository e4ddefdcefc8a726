"""A tree in memory cell by cell, because clusters and their index are there for one cell at a time.

Clusters keep the order that breaks ties. Each has a *key*, the largest of those of its rows, which
increase with the ranks of the rows among all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.cells import (
    LocalMerges,
    border_of,
    joined_border,
    merge_locally,
)
from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.clusters.kd_cells import Splits, cells_of_rows
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.traversal import renumbered

# Rows that are divided among cells together.
_ROWS_AT_A_TIME = 1 << 16


class Cell(NamedTuple):
    """Clusters of rows of one cell, in the order of their keys."""

    points: Observations  # their weights and means
    keys: NDArray[Any]  # (n,), unique, ascending
    nodes: NDArray[Any]  # (n,), which nodes of the whole tree they are


def joined_cells(cells: Sequence[Cell]) -> Cell:
    """The clusters of several cells as those of one."""
    keys = np.concatenate([cell.keys for cell in cells])
    order = np.argsort(keys, kind="stable")
    points = Observations(
        np.concatenate([cell.points.means for cell in cells])[order],
        np.concatenate([cell.points.all_residuals() for cell in cells])[order],
        np.concatenate([cell.points.all_weights() for cell in cells])[order],
    )
    return Cell(points, keys[order], np.concatenate([cell.nodes for cell in cells])[order])


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
        next_node, left = self._n_leaves + first, found.nodes
        self._children[first : self.count] = renumbered(children, cell.nodes, next_node)
        self._heights[first : self.count] = heights
        n = cell.nodes.size
        leaves = cell.nodes[np.minimum(left, n - 1)]
        nodes = np.where(left < n, leaves, left + (next_node - n))
        return Cell(found.points, cell.keys[found.ranks], nodes)

    def made(self) -> Merges:
        """All merges, in the order in which they were added."""
        return Merges(self._children[: self.count], self._heights[: self.count])


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
            found = merge_locally(
                geometry, cell.points, others, True, n_threads, columns, report_merges
            )
            left.append(merges.add(cell, found))
        if len(left) == 1:
            return merges
        pairs = range(0, len(left), 2)
        cells = [joined_cells(left[place : place + 2]) for place in pairs]
        borders = [joined_border(borders[place : place + 2]) for place in pairs]
