"""Rows in partitions: files, arrays, Dask collections and blocks, each read when it is needed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._containers import as_matrix, column_names
from fastrbhc._optional import require
from fastrbhc.distributed._memory import rows_at_a_time
from fastrbhc.distributed._runners import Runner
from fastrbhc.distributed._scratch import disk_errors


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

    def read(self) -> NDArray[Any]:
        """The rows."""
        return self.array[self.start : self.stop]


class ParquetRows(NamedTuple):
    """Some row groups of a parquet file."""

    path: str
    groups: tuple[int, ...]
    columns: tuple[str, ...]

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

    def read(self) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """The rows and their weights."""
        X = self.rows.read()
        return X, None if self.weights is None else self.weights.read()[:, 0]

    def __str__(self) -> str:
        return f"partition {self.number}{self.where}"


class Source(NamedTuple):
    """All partitions."""

    partitions: list[Partition]
    names: list[str] | None  # of the columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(partition.n_rows for partition in self.partitions)


def source_of(
    data: Any,
    weights: Any,
    columns: Sequence[str] | None,
    limit: int,
    folder: Path,
    runner: Runner,
) -> Source:
    """The partitions of data that are not a Dask collection.

    Parameters
    ----------
    data : path, array or iterator of blocks
        See `fastrbhc.distributed.linkage`.
    weights : path, array, name of a column or None
        Weights of the rows.
    columns : sequence of str or None
        The columns to take from parquet files.
    limit : int
        Of the memory of a task, in bytes.
    folder : Path
        Blocks are written to it, because they come only once.
    runner : Runner
        Which runs the tasks that read the partitions.
    """
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
        if path.suffix == ".npy" and path.is_file():
            return _of_array(np.load(path, mmap_mode="r"), weights, limit, runner)
        return _of_parquet(path, weights, columns, limit)
    if columns is not None:
        raise ValueError("columns= is for parquet files: choose the columns of an array yourself")
    if isinstance(data, Iterator) or (
        isinstance(data, list | tuple) and len(data) > 0 and _is_block(data[0])
    ):
        if weights is not None:
            raise ValueError(
                "sample_weight with blocks: let each block be a pair (rows, weights of the rows)"
            )
        return _written(data, folder)
    array = data if isinstance(data, np.ndarray) else as_matrix(data)
    if getattr(array, "ndim", 2) != 2 or not isinstance(array, np.ndarray):
        raise ValueError(
            f"data of the type {type(data).__name__} cannot be divided: rows and columns of "
            "numbers were expected, in an array, a file or blocks"
        )
    names = column_names(data)
    if runner.shared and not isinstance(_file_rows(array), FileRows):
        size = rows_at_a_time(limit, array.shape[1], len(array), runner.n_at_a_time)
        return _written(_slices(array, weights, size), folder)._replace(names=names)
    return _of_array(array, weights, limit, runner)._replace(names=names)


def _is_block(part: Any) -> bool:
    if isinstance(part, tuple) and len(part) == 2:
        part = part[0]
    return column_names(part) is not None or getattr(part, "ndim", 0) == 2


def _slices(array: NDArray[Any], weights: Any, size: int) -> Iterator[Any]:
    for start in range(0, len(array), size):
        rows = array[start : start + size]
        yield rows if weights is None else (rows, np.asarray(weights)[start : start + size])


# Arrays


def _of_array(array: NDArray[Any], weights: Any, limit: int, runner: Runner) -> Source:
    if array.ndim != 2:
        raise ValueError(f"rows and columns were expected, got an array of shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"numbers were expected, got an array of {array.dtype}")
    n, found, column = len(array), _file_rows(array), None
    if weights is not None:
        if isinstance(weights, str | os.PathLike):
            weights = np.load(weights, mmap_mode="r")
        weights = weights if isinstance(weights, np.ndarray) else np.asarray(weights)
        if weights.shape != (n,):
            raise ValueError(f"sample_weight has shape {weights.shape}, expected ({n},)")
        column = _file_rows(weights.reshape(-1, 1))
    partitions = []
    size = rows_at_a_time(limit, array.shape[1], n, runner.n_at_a_time)
    for number, start in enumerate(range(0, n, size)):
        stop = min(start + size, n)
        rows = found._replace(start=start, stop=stop)
        own = None if column is None else column._replace(start=start, stop=stop)
        where = f" (rows from {start:,} on)"
        partitions.append(Partition(number, stop - start, rows, own, where))
    return Source(partitions, None)


def _file_rows(array: NDArray[Any]) -> FileRows | ArrayRows:
    """Where the rows are in the file of a memory map, or the array itself."""
    base: Any = array
    while isinstance(getattr(base, "base", None), np.memmap):
        base = base.base
    if isinstance(base, np.memmap) and base.filename is not None and array.flags.c_contiguous:
        begin = base.offset + array.__array_interface__["data"][0]
        begin -= base.__array_interface__["data"][0]
        width = array.shape[1]
        return FileRows(str(base.filename), array.dtype.str, int(begin), width, 0, len(array))
    return ArrayRows(array, 0, len(array))


# Parquet


def _of_parquet(path: Path, weights: Any, columns: Sequence[str] | None, limit: int) -> Source:
    pq = require("pyarrow.parquet", "reading parquet files")
    files = [path] if path.is_file() else sorted(path.glob("**/*.parquet"))
    if not files:
        raise FileNotFoundError(f"there is no parquet file in {path}")
    if weights is not None and not isinstance(weights, str):
        raise ValueError("sample_weight for parquet files is the name of their column of weights")
    partitions: list[Partition] = []
    wanted: tuple[str, ...] | None = None if columns is None else tuple(columns)
    for file in files:
        with pq.ParquetFile(file) as opened:
            present, sizes = opened.schema_arrow.names, opened.metadata
            counts = [sizes.row_group(g).num_rows for g in range(sizes.num_row_groups)]
        if wanted is None:
            wanted = tuple(name for name in present if name != weights)
        named = (*wanted, *(() if weights is None else (weights,)))
        lacking = [name for name in named if name not in present]
        extra = [name for name in present if columns is None and name not in named]
        if lacking or extra:
            what = f"lacks the column {lacking[0]!r}" if lacking else f"has a column {extra[0]!r}"
            others = " that the files before it have not" if extra else ""
            raise ValueError(
                f"partition {len(partitions)} ({file.name}) {what}{others}. It has "
                f"{len(present)} columns, {', '.join(map(repr, present[:8]))}; name those to take, "
                "columns=[...]"
            )
        for groups in _groups(counts, rows_at_a_time(limit, len(wanted), sum(counts), 1)):
            n_rows = sum(counts[group] for group in groups)
            where = f" ({file.name}, row group {groups[0]})"
            rows = ParquetRows(str(file), groups, wanted)
            own = None if weights is None else rows._replace(columns=(weights,))
            partitions.append(Partition(len(partitions), n_rows, rows, own, where))
    return Source(partitions, list(wanted or ()))


def _groups(counts: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """Runs of row groups with at most so many rows, or one group each."""
    run: list[int] = []
    for group, count in enumerate(counts):
        if run and sum(counts[k] for k in run) + count > most:
            yield tuple(run)
            run = []
        run.append(group)
    if run:
        yield tuple(run)


# Blocks


def _written(blocks: Iterable[Any], folder: Path) -> Source:
    """The partitions of blocks, which are written to the folder one by one."""
    partitions, names = [], None
    for number, block in enumerate(blocks):
        partition, found = write_block(folder, number, block)
        partitions.append(partition)
        names = found if number == 0 else names
    if not partitions:
        raise ValueError("there are no blocks of rows")
    return Source(partitions, names)


def write_block(folder: Path, number: int, block: Any) -> tuple[Partition, list[str] | None]:
    """Write the rows of a block, or a pair of rows and weights, to files in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, weights = block if isinstance(block, tuple) else (block, None)
    try:
        X = np.ascontiguousarray(as_matrix(rows, fits_memory=False), np.float64)
        if X.ndim != 2:
            raise ValueError(f"rows and columns were expected, got the shape {X.shape}")
        own = None if weights is None else np.asarray(weights, np.float64).reshape(-1, 1)
        if own is not None and len(own) != len(X):
            raise ValueError(f"{len(X)} rows have {len(own)} weights")
    except (ValueError, TypeError) as error:
        raise type(error)(f"partition {number}: {error}") from error
    with disk_errors(folder / f"{number:05d}"):
        parts = [
            None if values is None else _saved(folder / f"{number:05d}.{what}", values)
            for what, values in (("rows", X), ("weights", own))
        ]
    return Partition(number, len(X), parts[0], parts[1], ""), column_names(rows)


def _saved(path: Path, values: NDArray[np.float64]) -> FileRows:
    beside = path.with_suffix(path.suffix + ".part")
    try:
        values.tofile(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return FileRows(str(path), values.dtype.str, 0, values.shape[1], 0, len(values))
