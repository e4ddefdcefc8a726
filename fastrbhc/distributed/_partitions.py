"""Rows in partitions, each read when it is needed."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._containers import as_column, as_matrix, column_names, columns_of
from fastrbhc.distributed._scratch import new_file, write_values


class FileRows(NamedTuple):
    """Rows start to stop of an array that a file holds row by row."""

    path: str
    dtype: str
    offset: int  # of the first row of the file, in bytes
    width: int  # numbers per row
    start: int
    stop: int

    def read(self) -> NDArray[Any]:
        """The rows."""
        dtype, count = np.dtype(self.dtype), (self.stop - self.start) * self.width
        place = self.offset + self.start * self.width * dtype.itemsize
        values = np.fromfile(self.path, dtype, count, offset=place)
        if values.size < count:
            raise ValueError(
                f"{self.path} is cut short: rows {self.start:,} to {self.stop:,} were expected"
            )
        return values.reshape(-1, self.width)


class ArrayRows(NamedTuple):
    """Rows start to stop of an array in memory."""

    array: NDArray[Any]
    start: int
    stop: int

    @property
    def width(self) -> int:
        """Numbers per row."""
        return self.array.shape[1]

    def read(self) -> NDArray[Any]:
        """The rows."""
        return self.array[self.start : self.stop]


class ParquetRows(NamedTuple):
    """Some row groups of a parquet file."""

    path: str
    groups: tuple[int, ...]
    columns: tuple[str, ...]

    @property
    def width(self) -> int:
        """Numbers per row."""
        return len(self.columns)

    def read(self) -> NDArray[Any]:
        """The rows."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            table = file.read_row_groups(list(self.groups), columns=list(self.columns))
        values = np.empty((table.num_rows, len(self.columns)))
        for k, name in enumerate(self.columns):
            column = table.column(name).to_numpy()
            if column.dtype.kind not in "biuf":
                raise ValueError(
                    f"column {name!r} of {self.path} holds {table.column(name).type}, and numbers "
                    "were expected: name the columns to take, columns=[...]"
                )
            values[:, k] = column
        return values


class Partition(NamedTuple):
    """Some of the rows, and where they are."""

    number: int
    n_rows: int
    rows: Any
    weights: Any  # a column, or None
    where: str  # for messages
    names: tuple[str, ...] | None  # of the columns

    def read(self) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """The rows and their weights."""
        X = self.rows.read()
        return X, None if self.weights is None else self.weights.read()[:, 0]

    def __str__(self) -> str:
        return f"partition {self.number}{self.where}"

    @property
    def width(self) -> int:
        """Number of columns."""
        width: int = self.rows.width
        return width


class Source(NamedTuple):
    """All partitions."""

    partitions: list[Partition]
    names: list[str] | None  # of the columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(partition.n_rows for partition in self.partitions)


@contextlib.contextmanager
def named_errors(where: object) -> Iterator[None]:
    """Errors in reading rows say which ones."""
    try:
        yield
    except FileNotFoundError as error:
        message = f"{where} is gone"
        raise FileNotFoundError(errno.ENOENT, message, error.filename) from error
    except OSError as error:
        message = f"{where} cannot be read: {error.strerror or error}"
        raise OSError(error.errno or errno.EIO, message, error.filename) from error
    except ValueError as error:  # plain ones: others may want more than a message
        raise ValueError(f"{where}: {error}") from error
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from error


def write_block(
    folder: Path, number: int, block: Any, columns: Any = None, weight: str | None = None
) -> Partition:
    """Write the rows of a block to a file in the folder.

    Parameters
    ----------
    folder : Path
        Where to write.
    number : int
        Of the partition.
    block : array, data frame or pair
        Rows, or a pair of rows and weights.
    columns : sequence of str, optional
        Those of a data frame to take.
    weight : str, optional
        The column of a data frame that has the weights.
    """
    rows, weights = block if isinstance(block, tuple) and len(block) == 2 else (block, None)
    with named_errors(f"partition {number}"):
        if columns is not None or weight is not None:
            if weights is not None and weight is not None:
                raise ValueError("weights come as a column or in a pair, and not both")
            rows, found = split_frame(rows, columns, weight)
            weights = weights if found is None else found
        names = column_names(rows)
        X = as_matrix(rows, fits_memory=False)
        if not isinstance(X, np.ndarray):
            raise TypeError(f"dense rows were expected, got the type {type(rows).__name__}")
        if X.ndim != 2:
            raise ValueError(f"rows and columns were expected, got the shape {X.shape}")
        if np.iscomplexobj(X):
            raise ValueError("real numbers were expected, got complex ones")
        own = None if weights is None else as_column(weights, "sample_weight")
        if own is not None and own.shape != (len(X),):
            raise ValueError(f"sample_weight has shape {own.shape}, expected ({len(X)},)")
    stored = write_rows(folder / f"{number:05d}.rows", X)
    column = None
    if own is not None:
        column = write_rows(folder / f"{number:05d}.weights", own.reshape(-1, 1))
    return Partition(number, len(X), stored, column, "", None if names is None else tuple(names))


def write_rows(path: Path, values: NDArray[Any]) -> FileRows:
    """Write rows to a file of plain numbers."""
    values = np.ascontiguousarray(values, np.float64)
    with new_file(path) as beside, beside.open("wb") as file:
        write_values(file, values)
    return FileRows(str(path), values.dtype.str, 0, values.shape[1], 0, len(values))


def names_to_take(present: list[str], columns: Any, weight: str | None) -> list[str]:
    """The names of the columns of rows, by default all but that of the weights."""
    if isinstance(columns, str):
        raise TypeError(f"columns has to be a list of names, got the text {columns!r}")
    wanted = [name for name in present if name != weight] if columns is None else [*columns]
    for name in (*wanted, *(() if weight is None else (weight,))):
        if name not in present:
            raise ValueError(f"there is no column {name!r}; the columns are {present}")
    if not wanted:
        raise ValueError("there is no column of rows")
    return wanted


def split_frame(frame: Any, columns: Any, weight: str | None) -> tuple[Any, Any]:
    """The columns of rows of a data frame, and that of their weights."""
    present = column_names(frame)
    if present is None:
        raise ValueError(
            f"names of columns are for data frames, and this is of the type {type(frame).__name__}"
        )
    wanted = names_to_take(present, columns, weight)
    places = [present.index(name) for name in wanted]
    rows = frame.iloc[:, places] if hasattr(frame, "iloc") else frame.select(wanted)
    return rows, None if weight is None else columns_of(frame)[present.index(weight)]
