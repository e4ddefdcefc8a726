"""Two passes over the partitions: what the rows are like, and which cell each belongs to."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.cells import Border, border_of
from fastrbhc._engine.clusters.kd_cells import Splits, cells_of_rows
from fastrbhc._engine.clusters.observations import Observations, hash_rows, weighted
from fastrbhc._engine.math.radix_sort import stable_order
from fastrbhc._row_validation import check_rows
from fastrbhc._validation import check_weights
from fastrbhc.distributed._partitions import Partition, named_errors
from fastrbhc.distributed._scratch import compact, new_folder, write_array
from fastrbhc.families import Family
from fastrbhc.families._missing import observe


class Survey(NamedTuple):
    """What the rows of a partition are like."""

    n_rows: int
    n_columns: int
    total_weight: float
    digest: int  # of values, weights and their order
    rows: NDArray[np.float64]  # some of them, at random
    weights: NDArray[np.float64] | None  # of these


class Piece(NamedTuple):
    """The rows of a partition that belong to one cell."""

    folder: Path
    start: int
    stop: int
    first_row: int  # of the partition


class Divided(NamedTuple):
    """A partition whose rows have been put into cells."""

    folder: Path
    starts: NDArray[np.int64]  # (cells + 1,), where the rows of each cell begin
    borders: list[Border]  # (cells,)

    def piece(self, cell: int, first_row: int) -> Piece:
        """Its rows of a cell."""
        return Piece(self.folder, int(self.starts[cell]), int(self.starts[cell + 1]), first_row)


def checked_rows(
    partition: Partition, family: Family
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The rows and weights of a partition; errors name it."""
    with named_errors(partition):
        X, weights = partition.read()
        if len(X) != partition.n_rows:
            raise ValueError(
                f"it has {len(X):,} rows, and {partition.n_rows:,} were expected: it has changed "
                "since it was opened"
            )
        rows = check_rows(X, family, min_rows=1, feature_names=partition.names)
        checked = check_weights(weights, len(rows))
    if checked is not None and not checked.all():
        row = int(np.flatnonzero(checked == 0.0)[0])
        raise ValueError(
            f"{partition}: row {row} has the weight 0. Drop such rows: what they are nearest to "
            "may be in any other partition"
        )
    return rows, checked


def survey(partition: Partition, family: Family, n_sampled: int, seed: int) -> Survey:
    """Check the rows of a partition, and draw some of them."""
    if partition.n_rows == 0:
        return Survey(0, -1, 0.0, 0, np.empty((0, 0)), None)
    X, weights = checked_rows(partition, family)
    hashes = hash_rows(Observations(X))
    if weights is not None:
        hashes ^= hash_rows(Observations(weights[:, None])) << np.uint64(1)
    odd = 2 * np.arange(len(X), dtype=np.uint64) + np.uint64(1)
    rng = np.random.default_rng([seed, partition.number])
    drawn = np.sort(rng.choice(len(X), min(n_sampled, len(X)), replace=False))
    return Survey(
        len(X),
        X.shape[1],
        float(len(X) if weights is None else weights.sum()),
        int((hashes * odd).sum()),
        X[drawn],
        None if weights is None else weights[drawn],
    )


def divide(partition: Partition, family: Family, splits: Splits, folder: Path) -> Divided:
    """Write the rows of a partition to the folder, those of one cell after another."""
    target = folder / f"{partition.number:05d}"
    if not target.exists():
        with new_folder(target) as files:
            _divide(partition, family, splits, files)
    with np.load(target / "cells.npz") as cells:
        boxes = zip(cells["lowest"], cells["highest"], cells["lightest"], strict=True)
        borders = [Border(lowest, highest, float(weight)) for lowest, highest, weight in boxes]
        return Divided(target, cells["starts"], borders)


def _divide(partition: Partition, family: Family, splits: Splits, files: Path) -> None:
    n_cells = splits.n_cells
    X, weights = np.empty((0, splits.n_columns)), None
    points, cells = Observations(X), np.empty(0, np.int64)
    if partition.n_rows:
        X, weights = checked_rows(partition, family)
        points = weighted(observe(family, X), weights)
        cells = cells_of_rows(splits, points.means)
    order = stable_order(cells.astype(np.uint64))
    starts = np.append(0, np.cumsum(np.bincount(cells, minlength=n_cells)))
    borders = [border_of(points.take(order[first:last])) for first, last in pairwise(starts)]
    write_array(files / "rows.npy", np.take(X, order, axis=0))
    write_array(files / "places.npy", compact(order))
    if weights is not None:
        write_array(files / "weights.npy", weights[order])
    lowest, highest, lightest = (np.array(values) for values in zip(*borders, strict=True))
    np.savez(files / "cells.npz", starts=starts, lowest=lowest, highest=highest, lightest=lightest)
