"""Cells of space: halves of halves, split at medians of a sample.

Rows with the same values are in the same cell. A cell is an intersection of half-spaces, and so is
the union of the two cells that a split has made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Splits(NamedTuple):
    """A column and a value for each split; those of split s are splits 2s + 1 and 2s + 2.

    A row is in the first half if its value in that column is at most that of the split.
    """

    columns: NDArray[np.int64]  # (cells − 1,)
    values: NDArray[np.float64]  # (cells − 1,)

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
    return Splits(columns, values)


def cells_of_rows(splits: Splits, rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of each row's cell; the two cells of a last split are adjacent."""
    places = np.zeros(len(rows), np.int64)
    for _ in range(splits.n_cells.bit_length() - 1):
        own = rows[np.arange(len(rows)), splits.columns[places]]
        places = 2 * places + 1 + (own > splits.values[places])
    return places - (splits.n_cells - 1)
