"""Stages as records and as files.

A stage is the merges of one cell, of cells that are joined, or of all that is left. It begins with
leaves, which are rows or the clusters that earlier stages have left, and leaves clusters itself.
Its nodes are its leaves, 0 to n − 1, and then its merges, in their order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.merge_order import OrderedMerges, Ordering
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc.distributed._scratch import compact, read_json, read_table, write_json, write_table


class Leaves(NamedTuple):
    """What a stage begins with."""

    weights: NDArray[np.float64]
    firsts: NDArray[np.int64]  # the first row of each
    levels: NDArray[np.float64]  # the largest height within each; 0 for rows
    sources: NDArray[np.int32] | None  # the stages that have left them; None for rows
    places: NDArray[np.int64] | None  # which of the clusters left there they are


class Left(NamedTuple):
    """The clusters that a stage leaves, in the order of their keys."""

    points: Observations
    ordering: Ordering
    nodes: NDArray[np.int64]
    firsts: NDArray[np.int64]


class Stage(NamedTuple):
    """The merges of a stage, from leaves to what is left."""

    leaves: Leaves
    merges: OrderedMerges
    left: Left


class StageFiles(NamedTuple):
    """A stage in files."""

    number: int
    folder: Path
    n_leaves: int
    n_merges: int
    n_left: int
    n_columns: int  # of the statistics
    of_rows: bool  # whether its leaves are rows

    def read_leaves(self) -> Leaves:
        """Its leaves."""
        path = self.folder / "leaves.parquet"
        if self.of_rows:
            weights, firsts = read_table(path, "weight", "row")
            return Leaves(weights, firsts, np.zeros(firsts.size), None, None)
        names = ("weight", "first_row", "level", "stage", "place")
        return Leaves(*read_table(path, *names))

    def read_children(self) -> NDArray[np.int64]:
        """The two nodes that each merge joins."""
        pairs = read_table(self.folder / "merges.parquet", "left", "right")
        return np.column_stack(pairs).astype(np.int64)

    def read_heights(self) -> NDArray[np.float64]:
        """The dissimilarity at each merge."""
        (heights,) = read_table(self.folder / "merges.parquet", "height")
        return heights

    def read_ordering(self) -> Ordering:
        """What decides the place of the merges among those of all stages."""
        levels, depths, keys = read_table(self.folder / "merges.parquet", "level", "depth", "key")
        return Ordering(levels, depths.astype(np.int64), keys)

    def read_levels(self) -> NDArray[np.float64]:
        """The largest height within each merge; never decreasing."""
        (levels,) = read_table(self.folder / "merges.parquet", "level")
        return levels

    def read_steps(self) -> NDArray[np.int64]:
        """The position of each merge in the order in which they were made."""
        (steps,) = read_table(self.folder / "merges.parquet", "step")
        return steps.astype(np.int64)

    def read_left_nodes(self) -> NDArray[np.int64]:
        """The nodes that it leaves."""
        (nodes,) = read_table(self.folder / "left.parquet", "node")
        return nodes

    def read_left(self) -> Left:
        """The clusters that it leaves."""
        path = self.folder / "left.parquet"
        means, residuals = (
            np.column_stack(read_table(path, *(f"{kind}_{k}" for k in range(self.n_columns))))
            for kind in ("mean", "residual")
        )
        names = ("weight", "level", "depth", "key", "node", "first_row")
        weights, levels, depths, keys, nodes, firsts = read_table(path, *names)
        ordering = Ordering(levels, depths, keys)
        return Left(Observations(means, residuals, weights), ordering, nodes, firsts)


def write_stage(folder: Path, stage: Stage) -> None:
    """Write a stage to a folder."""
    leaves, merges, left = stage
    table: dict[str, NDArray[Any]]
    if leaves.sources is None or leaves.places is None:
        table = {"row": leaves.firsts, "weight": leaves.weights}
    else:
        table = {
            "stage": leaves.sources,
            "place": leaves.places,
            "weight": leaves.weights,
            "level": leaves.levels,
            "first_row": leaves.firsts,
        }
    write_table(folder / "leaves.parquet", table)
    write_table(
        folder / "merges.parquet",
        {
            "left": compact(merges.children[:, 0]),
            "right": compact(merges.children[:, 1]),
            "height": merges.heights,
            "level": merges.ordering.levels,
            "depth": compact(merges.ordering.depths),
            "key": merges.ordering.keys,
            "step": compact(merges.steps),
        },
    )
    n_columns = left.points.shape[1]
    statistics: dict[str, NDArray[Any]] = {}
    for kind, values in (("mean", left.points.means), ("residual", left.points.all_residuals())):
        statistics |= {f"{kind}_{k}": values[:, k] for k in range(n_columns)}
    others = {
        "weight": left.points.all_weights(),
        "level": left.ordering.levels,
        "depth": left.ordering.depths,
        "key": left.ordering.keys,
        "node": left.nodes,
        "first_row": left.firsts,
    }
    write_table(folder / "left.parquet", statistics | others)
    counts = {
        "n_leaves": leaves.firsts.size,
        "n_merges": merges.heights.size,
        "n_left": left.nodes.size,
        "n_columns": n_columns,
        "of_rows": leaves.sources is None,
    }
    write_json(folder / "stage.json", counts)


def stage_files(number: int, folder: Path) -> StageFiles:
    """The stage that has been written to a folder."""
    path = folder / "stage.json"
    try:
        return StageFiles(number, folder, **read_json(path))
    except TypeError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
