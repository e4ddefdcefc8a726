"""Data as partitions: arrays, files and blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._containers import as_column, as_matrix, column_names
from fastrbhc._optional import require
from fastrbhc.distributed._memory import rows_at_a_time
from fastrbhc.distributed._partitions import (
    ArrayRows,
    FileRows,
    ParquetRows,
    Partition,
    Source,
    split_frame,
    write_block,
    write_rows,
)
from fastrbhc.distributed._runners import Runner


class Reading(NamedTuple):
    """How data are read."""

    limit: int  # of the memory of a task, in bytes
    folder: Path  # for blocks, because they come only once
    runner: Runner  # which runs the tasks that read the partitions
    rows_each: int | None  # in partitions of an array, if an earlier call has decided that


def source_of(data: Any, weights: Any, columns: Sequence[str] | None, reading: Reading) -> Source:
    """The partitions of data that are not a Dask collection.

    Parameters
    ----------
    data : path, array, data frame or iterator of blocks
        See `fastrbhc.distributed.linkage`.
    weights : path, array, name of a column or None
        Weights of the rows.
    columns : sequence of str or None
        The columns to take from files and data frames that have names.
    reading : Reading
        How they are read.
    """
    names = None
    if isinstance(data, str | os.PathLike):
        path = _existing(data)
        if path.suffix != ".npy" or path.is_dir():
            return _of_parquet(path, weights, columns, reading.limit)
        array: Any = _opened(path)
    elif _are_blocks(data):
        if weights is not None and not isinstance(weights, str):
            raise ValueError(
                "sample_weight with blocks is the name of a column, or let each block be a pair "
                "(rows, weights of the rows)"
            )
        return _written(data, reading.folder, columns, weights)
    else:
        if column_names(data) is not None:
            data, column = split_frame(data, columns, weights if isinstance(weights, str) else None)
            weights = weights if column is None else column
            names, columns = column_names(data), None
        array = as_matrix(data)
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"data of the type {type(data).__name__} cannot be divided: rows and columns of "
            "numbers were expected, in an array, a file or blocks"
        )
    if columns is not None:
        raise ValueError("columns= is for names: choose the columns of an array yourself")
    return _of_array(array, weights, names, reading)


def _existing(path: Any) -> Path:
    if "://" in str(path):
        raise ValueError(
            f"{path} is an address, and a file was expected: read it as a Dask collection, with "
            "dask.dataframe.read_parquet for example"
        )
    found = Path(path).absolute()  # workers may be in another folder
    if not found.exists():
        raise FileNotFoundError(f"{found} does not exist")
    return found


def _are_blocks(data: Any) -> bool:
    if isinstance(data, Iterator):
        return True
    if not isinstance(data, list | tuple) or not data:
        return False
    first = data[0][0] if isinstance(data[0], tuple) and len(data[0]) == 2 else data[0]
    return column_names(first) is not None or getattr(first, "ndim", 0) == 2


# Arrays


def _opened(path: Path) -> NDArray[Any]:
    """The array in an .npy file, of which nothing has been read yet."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _of_array(
    array: NDArray[Any], weights: Any, names: list[str] | None, reading: Reading
) -> Source:
    limit, folder, runner, rows_each = reading
    if array.ndim != 2:
        raise ValueError(f"rows and columns were expected, got an array of shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"numbers were expected, got an array of {array.dtype}")
    n, rows = len(array), _file_rows(array)
    column = None if weights is None else _file_rows(_weights(weights, n).reshape(-1, 1))
    size = rows_each or rows_at_a_time(limit, array.shape[1], n, runner.n_at_a_time)
    starts = range(0, n, size)
    if runner.shared and isinstance(rows, ArrayRows):
        slices = (ArrayRows(array, start, min(start + size, n)).read() for start in starts)
        blocks = [write_block(folder, number, rows) for number, rows in enumerate(slices)]
        stored = [block.rows for block in blocks]
    else:
        stored = [rows._replace(start=start, stop=min(start + size, n)) for start in starts]
    if runner.shared and isinstance(column, ArrayRows):
        # In a file: the array would go along with every task.
        column = write_rows(folder / "weights", column.array)
    partitions = []
    for number, (start, part) in enumerate(zip(starts, stored, strict=True)):
        stop = min(start + size, n)
        own = None if column is None else column._replace(start=start, stop=stop)
        where = f" (rows from {start:,} on)"
        given = None if names is None else tuple(names)
        partitions.append(Partition(number, stop - start, part, own, where, given))
    return Source(partitions, names)


def _weights(weights: Any, n: int) -> NDArray[Any]:
    if isinstance(weights, str | os.PathLike):
        weights = _opened(_existing(weights))
    values = as_column(weights, "sample_weight")
    if values.shape != (n,):
        raise ValueError(f"sample_weight has shape {values.shape}, expected ({n},)")
    return values


def _file_rows(array: NDArray[Any]) -> FileRows | ArrayRows:
    """Where the rows are in the file of a memory map, or the array itself."""
    base: Any = array
    while isinstance(getattr(base, "base", None), np.memmap):
        base = base.base
    in_memory = ArrayRows(array, 0, len(array))
    # In mode "c" changes are in memory only.
    if not isinstance(base, np.memmap) or base.filename is None or base.mode == "c":
        return in_memory
    if not array.flags.c_contiguous or array.size == 0:
        return in_memory
    begin = base.offset + array.__array_interface__["data"][0]
    begin -= base.__array_interface__["data"][0]
    dtype, width = array.dtype.str, array.shape[1]
    found = FileRows(str(base.filename), dtype, int(begin), width, 0, len(array))
    for place in (0, len(array) - 1):
        # The file may have been removed or replaced since, and the map would still be the old one.
        try:
            row = found._replace(start=place, stop=place + 1).read()
        except (OSError, ValueError):
            return in_memory
        if row.tobytes() != array[place].tobytes():
            return in_memory
    return found


# Parquet


def _of_parquet(path: Path, weights: Any, columns: Sequence[str] | None, limit: int) -> Source:
    pq = require("pyarrow.parquet", "reading parquet files")
    files = [path] if path.is_file() else sorted(path.glob("**/*.parquet"))
    if not files:
        raise FileNotFoundError(f"there is no parquet file in {path}")
    if weights is not None and not isinstance(weights, str):
        raise ValueError("sample_weight for parquet files is the name of their column of weights")
    if isinstance(columns, str):
        raise TypeError(f"columns has to be a list of names, got the text {columns!r}")
    partitions: list[Partition] = []
    wanted: tuple[str, ...] | None = None if columns is None else tuple(columns)
    for file in files:
        present, counts = _columns_and_groups(pq, file)
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
            partitions.append(Partition(len(partitions), n_rows, rows, own, where, wanted))
    return Source(partitions, list(wanted or ()))


def _columns_and_groups(pq: Any, file: Path) -> tuple[list[str], list[int]]:
    """The names of the columns of a file, and the numbers of rows of its row groups."""
    try:
        with pq.ParquetFile(file) as opened:
            counts = opened.metadata
            sizes = [counts.row_group(k).num_rows for k in range(counts.num_row_groups)]
            return opened.schema_arrow.names, sizes
    except (ValueError, OSError) as error:
        if getattr(error, "errno", None):
            raise
        raise ValueError(f"{file} cannot be read as a parquet file: {error}") from error


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


def _written(
    blocks: Iterable[Any], folder: Path, columns: Sequence[str] | None, weight: str | None
) -> Source:
    """The partitions of blocks, which are written to the folder one by one."""
    partitions: list[Partition] = []
    for number, block in enumerate(blocks):
        partitions.append(write_block(folder, number, block, columns, weight))
        refuse_other_columns(partitions[0], partitions[-1])
    if not partitions:
        raise ValueError("there are no rows: no block came")
    return source_of_blocks(partitions)


def source_of_blocks(partitions: list[Partition]) -> Source:
    """The source of blocks that have been written."""
    for partition in partitions:
        refuse_other_columns(partitions[0], partition)
    names = partitions[0].names if partitions else None
    return Source(partitions, None if names is None else list(names))


def refuse_other_columns(first: Partition, other: Partition) -> None:
    """Refuse a partition whose columns are not those of the first one."""
    if other.width != first.width:
        raise ValueError(f"{other} has {other.width} columns, and {first} has {first.width}")
    if None not in (first.names, other.names) and first.names != other.names:
        raise ValueError(f"{other} has the columns {other.names}, and {first} has {first.names}")
