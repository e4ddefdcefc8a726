"""Cells of space: halves of halves, split at medians of a sample.

Rows with the same values are in the same cell. A cell is an intersection of half-spaces, and so is
the union of the two cells that a split has made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel


class Splits(NamedTuple):
    """A column and a value for each split; those of split s are splits 2s + 1 and 2s + 2.

    A row is in the first half if its value in that column is at most that of the split.
    """

    columns: NDArray[np.int64]  # (cells − 1,)
    values: NDArray[np.float64]  # (cells − 1,)
    n_columns: int

    @property
    def n_cells(self) -> int:
        """The number of cells, a power of 2."""
        return self.columns.size + 1


def splits_of(sample: NDArray[np.float64], n_cells: int) -> Splits:
    """Splits of the widest column at its median, until there are so many cells.

    Parameters
    ----------
    sample : ndarray of shape (n, d)
        Rows like those to be divided.
    n_cells : int
        A power of 2.
    """
    columns, values = np.zeros(n_cells - 1, np.int64), np.zeros(n_cells - 1)
    parts = [sample]
    for split in range(n_cells - 1):
        part = parts[split]
        if len(part):
            columns[split] = np.argmax(np.ptp(part, axis=0))
            ordered = np.sort(part[:, columns[split]])
            values[split] = ordered[(len(part) - 1) // 2]
        below = part[:, columns[split]] <= values[split]
        parts += [part[below], part[~below]]
    return Splits(columns, values, sample.shape[1])


def cells_of_rows(splits: Splits, rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of each row's cell; the two cells of a last split are adjacent."""
    cells = np.empty(len(rows), np.int64)
    _find_cells(splits.columns, splits.values, np.ascontiguousarray(rows), cells)
    return cells


@kernel
def _find_cells(columns, values, rows, cells):
    n_splits = columns.size
    for row in range(rows.shape[0]):
        split = 0
        while split < n_splits:
            beyond = rows[row, columns[split]] > values[split]
            split = 2 * split + (2 if beyond else 1)
        cells[row] = split - n_splits


def siblings(n_cells: int, cell: int) -> list[tuple[int, int]]:
    """The other cells of so many, put together to as few as possible: first and last one each.

    They are the other halves of the halves that the cell is in.
    """
    found, size = [], 1
    while size < n_cells:
        first = (cell // size ^ 1) * size
        found.append((first, first + size))
        size *= 2
    return found
