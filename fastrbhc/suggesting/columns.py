"""Tables as they come, with text, dates and gaps, and what can be said of each column at once.

Statistics are arrays with one entry per column, so that tables with thousands of columns take no
loop in Python. Those of a sparse matrix come from its non-zeros.
"""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastrbhc._containers import as_matrix, column_names, columns_of, is_anndata

# Rows in which different values are counted, which takes a sort.
_MOST_ROWS = 10_000
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)

Floats = NDArray[np.float64]


class Table(NamedTuple):
    """Numbers, NaN where one is missing, and what is known of columns that held something else."""

    values: Any  # an array, or a sparse matrix in CSC format
    names: list[str] | None
    texts: dict[int, int]  # columns of text or categories: the number of different ones
    truths: set[int]  # columns of truth values
    times: set[int]  # columns of dates or times

    @property
    def numeric(self) -> NDArray[np.bool_]:
        """The columns that hold numbers."""
        found = np.ones(self.values.shape[1], dtype=bool)
        found[list({*self.texts, *self.times})] = False
        return found


class Statistics(NamedTuple):
    """What is known of each column, without missing cells."""

    present: NDArray[np.int64]
    missing: NDArray[np.int64]
    lowest: Floats
    highest: Floats
    means: Floats
    variances: Floats
    skewness: Floats
    zeros: Floats  # share of zeros
    at_most: Floats  # share of the largest value
    whole: NDArray[np.bool_]
    all_different: NDArray[np.bool_]  # among the rows that were looked at
    levels: NDArray[np.int64]  # different values among them; 0 if they were not counted


def as_table(X: Any, names: list[str] | None) -> Table:
    """X as a table; shape and type are checked, and nothing else."""
    if sparse.issparse(X) or is_anndata(X) or X is None or isinstance(X, str | bytes):
        return Table(sparse.csc_array(as_matrix(X, fits_memory=False)), names, {}, set(), set())
    if column_names(X) is not None:
        parts = columns_of(X)
    else:
        values = np.asarray(X, dtype=object) if _is_ragged_in_type(X) else np.asarray(X)
        if values.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {values.ndim}D array instead: give rows of a table"
            )
        if values.dtype.kind in "biuf":
            truths = set(range(values.shape[1])) if values.dtype.kind == "b" else set()
            return Table(values.astype(np.float64), names, {}, truths, set())
        parts = list(values.T)
    found = [_as_column(part) for part in parts]
    if not found or len(found[0].values) == 0:
        raise ValueError("X has no rows or no columns")
    return Table(
        np.column_stack([column.values for column in found]),
        names,
        {place: column.levels for place, column in enumerate(found) if column.kind == "text"},
        {place for place, column in enumerate(found) if column.kind == "truth"},
        {place for place, column in enumerate(found) if column.kind == "time"},
    )


def _is_ragged_in_type(X: Any) -> bool:
    """Whether a list holds cells of different types, which NumPy would all turn into text."""
    if not isinstance(X, list | tuple) or not all(isinstance(row, list | tuple) for row in X):
        return False
    return any(not isinstance(cell, int | float | np.number) for row in X for cell in row)


class _Column(NamedTuple):
    values: Floats
    kind: str = "number"
    levels: int = 0


def _as_column(part: Any) -> _Column:
    """A column as numbers; text becomes the positions of its words in alphabetical order."""
    dtype = getattr(part, "dtype", None)
    kind = getattr(dtype, "kind", "")
    is_category = str(dtype).lower().startswith(("category", "categorical", "enum"))
    if kind in ("b", "i", "u", "f") and not is_category:
        values = (
            part.to_numpy(dtype=np.float64, na_value=np.nan)
            if hasattr(part, "iloc")
            else np.asarray(part, dtype=np.float64)
        )
        return _Column(values, "truth" if kind == "b" else "number")
    cells = np.asarray(part, dtype=object)
    gone = np.array([_is_missing(cell) for cell in cells], dtype=bool)
    there = cells[~gone].tolist()
    values = np.full(len(cells), np.nan)
    if kind in ("m", "M") or any(isinstance(cell, _TIMES) for cell in there):
        values[~gone] = 0.0
        return _Column(values, "time")
    if there and all(isinstance(cell, bool | np.bool_) for cell in there):
        values[~gone] = np.array(there, dtype=np.float64)
        return _Column(values, "truth")
    if not is_category and all(isinstance(cell, int | float | np.number) for cell in there):
        values[~gone] = np.array(there, dtype=np.float64)
        return _Column(values)
    words, codes = np.unique([str(cell) for cell in there], return_inverse=True)
    values[~gone] = codes
    return _Column(values, "text", len(words))


def _is_missing(cell: Any) -> bool:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))


def statistics_of(values: Any) -> Statistics:
    """The statistics of all columns of an array, NaN where a cell is missing, or of a CSC array."""
    if np.isinf(values.data if sparse.issparse(values) else values).any():
        raise ValueError("Input X contains infinity. Drop such rows or fill them in first.")
    if sparse.issparse(values):
        return _of_nonzeros(values)
    gone = np.isnan(values)
    missing = gone.sum(axis=0)
    present = len(values) - missing
    divisor = np.maximum(present, 1)
    filled = np.where(gone, 0.0, values) if missing.any() else values
    lowest = np.where(gone, np.inf, values).min(axis=0)
    highest = np.where(gone, -np.inf, values).max(axis=0)
    means = filled.sum(axis=0) / divisor
    apart = np.where(gone, 0.0, values - means)
    variances = np.square(apart).sum(axis=0) / divisor
    third = (apart**3).sum(axis=0) / divisor
    few = values[:: -(-len(values) // _MOST_ROWS)]
    ordered = np.sort(few, axis=0)  # missing cells come last
    levels = 1 + (np.diff(ordered, axis=0) > 0.0).sum(axis=0)
    return Statistics(
        present=present,
        missing=missing,
        lowest=np.where(present > 0, lowest, 0.0),
        highest=np.where(present > 0, highest, 0.0),
        means=means,
        variances=variances,
        skewness=_skewness(third, variances),
        zeros=((values == 0.0).sum(axis=0)) / divisor,
        at_most=(values == highest).sum(axis=0) / divisor,
        whole=(np.rint(filled) == filled).all(axis=0),
        all_different=levels == (~np.isnan(few)).sum(axis=0),
        levels=levels,
    )


def _of_nonzeros(X: Any) -> Statistics:
    """The same from the non-zeros of each column; explicit zeros do no harm."""
    n, d = X.shape
    owner = np.repeat(np.arange(d), np.diff(X.indptr))
    gone = np.isnan(X.data)
    missing = np.bincount(owner[gone], minlength=d)
    owner, data = owner[~gone], X.data[~gone]
    present = n - missing
    divisor = np.maximum(present, 1)
    nonzero = np.bincount(owner[data != 0.0], minlength=d)
    zeros = present - nonzero
    lowest, highest = np.full(d, np.inf), np.full(d, -np.inf)
    np.minimum.at(lowest, owner, data)
    np.maximum.at(highest, owner, data)
    lowest, highest = (
        np.where(zeros > 0, combine(end, 0.0), end)
        for combine, end in ((np.minimum, lowest), (np.maximum, highest))
    )
    means = np.bincount(owner, data, d) / divisor
    apart, stored = data - means[owner], np.bincount(owner, minlength=d)
    variances = (np.bincount(owner, apart**2, d) + (present - stored) * means**2) / divisor
    third = (np.bincount(owner, apart**3, d) - (present - stored) * means**3) / divisor
    broken = np.bincount(owner[np.rint(data) != data], minlength=d)
    at_most = np.bincount(owner[data == highest[owner]], minlength=d)
    at_most = np.where(highest == 0.0, zeros, at_most)
    return Statistics(
        present=present,
        missing=missing,
        lowest=np.where(present > 0, lowest, 0.0),
        highest=np.where(present > 0, highest, 0.0),
        means=means,
        variances=variances,
        skewness=_skewness(third, variances),
        zeros=zeros / divisor,
        at_most=at_most / divisor,
        whole=broken == 0,
        all_different=np.zeros(d, dtype=bool),
        levels=np.zeros(d, dtype=np.int64),
    )


def _skewness(third: Floats, variances: Floats) -> Floats:
    return third / np.where(variances > 0.0, variances, 1.0) ** 1.5
