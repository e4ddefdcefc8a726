"""Reading a table of numbers from a file, with errors that name the cell."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._containers import ColumnError, as_matrix, frame_numbers
from fastrbhc._files import Arrays
from fastrbhc.cli import delimited as _delimited

# Files that are often at hand, and not read.
_FOREIGN = {
    ".xlsx": "a spreadsheet", ".xls": "a spreadsheet", ".ods": "a spreadsheet",
    ".bz2": "compressed by bzip2", ".xz": "compressed by xz", ".zst": "compressed by zstd",
    ".zip": "an archive", ".tar": "an archive", ".tgz": "an archive", ".7z": "an archive",
    ".json": "JSON", ".jsonl": "JSON", ".feather": "Feather", ".arrow": "Arrow", ".orc": "ORC",
    ".h5": "HDF5", ".hdf5": "HDF5", ".h5ad": "HDF5", ".mtx": "Matrix Market", ".mat": "MATLAB's",
    ".pkl": "a pickle", ".pickle": "a pickle", ".joblib": "a pickle", ".rds": "R's",
}  # fmt: skip


class Table(NamedTuple):
    """Numbers, with the names of their rows and columns."""

    values: NDArray[np.float64]
    ids: list[str] | None
    columns: list[str]
    weights: NDArray[np.float64] | None = None


def read_table(
    path: str | Path,
    ids: str | None = None,
    *,
    weights: str | None = None,
    drop: Sequence[str] = (),
) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : str or Path
        The suffix determines the format. ``.npy``: a matrix. ``.npz``: the array ``X``, or
        the only one, or the parts ``data, indices, indptr, shape`` of a sparse matrix in CSR form.
        ``.parquet``: needs pyarrow. Anything else is text, which may end in ``.gz``: commas,
        semicolons, tabs or blanks between the cells, with or without a header.
    ids : str, optional
        The column with the names of the rows: its name, or its position in the file counted from 1.
        A name takes precedence over a position. By default a first column with an empty name, as
        written for the index of a data frame, is used, and otherwise rows have no names.
    weights : str, optional
        The column with the weights of the rows, given in the same way.
    drop : sequence of str
        Columns to leave out.

    Returns
    -------
    Table
        ``values``, float64 of shape (n, d); ``ids``, or None; ``columns``, names from the header,
        or positions counted from 1; ``weights``, or None.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        A cell of the file is not a number; the message says where, and what to do about it.

    Notes
    -----
    The first line of a text is a header if one of its cells is a word above a number. Lines at the
    top that begin with # are skipped, or give the names if there are as many as columns.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("name,height,width\\na,1,2\\nb,3,4\\n")
    >>> table = read_table(path, ids="name")
    >>> table.values.tolist(), table.ids, table.columns
    ([[1.0, 2.0], [3.0, 4.0]], ['a', 'b'], ['height', 'width'])
    """
    path = Path(path)
    if not path.exists():
        hint = ". Standard input is not read: save it first" if str(path) == "-" else ""
        raise FileNotFoundError(f"there is no file {path}{hint}")
    if path.is_dir():
        raise ValueError(f"{path} is a directory, not a table")
    if not path.is_file():
        raise ValueError(f"{path} is a pipe or a device, and tables are read twice: save it first")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty")
    wanted = _Wanted(ids, weights, drop)
    suffix = path.suffix.lower()
    if suffix in _FOREIGN:
        raise ValueError(
            f"by its name {path.name} is {_FOREIGN[suffix]}, which is not read: give a .csv, .tsv, "
            ".npy, .npz or .parquet file; .csv may be compressed to .csv.gz"
        )
    if suffix in (".npy", ".npz"):
        return _from_array(path, wanted)
    if suffix in (".parquet", ".pq"):
        return _from_parquet(path, wanted)
    try:
        return _from_text(path, wanted)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path.name} is damaged, or not compressed by gzip as its name says: {error}"
        ) from None
    except csv.Error as error:
        raise ValueError(
            f"{path.name} cannot be read: {error}. Is a quotation mark left open?"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(
            f"{path.name} is not a text in UTF-8: give a .csv, .tsv, .npy, .npz or .parquet file"
        ) from None


class _Wanted(NamedTuple):
    """Columns as the caller named them."""

    ids: str | None
    weights: str | None
    drop: Sequence[str]


class _Chosen(NamedTuple):
    """The roles of the columns of the file, counted from 0."""

    values: list[int]
    ids: int | None
    weights: int | None

    @property
    def numeric(self) -> list[int]:
        """The columns of numbers, with the weights last."""
        return self.values + ([] if self.weights is None else [self.weights])


def _choose(path: Path, names: list[str], wanted: _Wanted) -> _Chosen:
    def place(column: str) -> int:
        if names.count(column) == 1:
            return names.index(column)
        if column in names:
            raise ValueError(
                f"{path.name} has several columns {column!r}: give a position, counted from 1"
            )
        if column.isdecimal() and 1 <= int(column) <= len(names):
            return int(column) - 1
        shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
        raise ValueError(
            f"{path.name} has no column {column!r}. Its {len(names)} columns are {shown}"
        )

    ids, weights = (place(column) if column is not None else None for column in wanted[:2])
    if ids is None and len(names) > 1 and names[0] == "":
        ids = 0
    others = {ids, weights, *map(place, wanted.drop)}
    values = [column for column in range(len(names)) if column not in others]
    if not values:
        raise ValueError(f"{path.name} has no column of values left")
    return _Chosen(values, ids, weights)


def _table(
    numbers: NDArray[np.float64], ids: list[str] | None, names: list[str], chosen: _Chosen
) -> Table:
    d = len(chosen.values)
    return Table(
        np.ascontiguousarray(numbers[:, :d]),
        ids,
        [names[column] for column in chosen.values],
        None if chosen.weights is None else numbers[:, d].copy(),
    )


def _from_text(path: Path, wanted: _Wanted) -> Table:
    layout = _delimited.layout_of(path)
    chosen = _choose(path, layout.names, wanted)
    numbers, ids = _delimited.load(path, layout, chosen.numeric, chosen.ids)
    return _table(numbers, ids, layout.names, chosen)


def _from_array(path: Path, wanted: _Wanted) -> Table:
    array = Arrays(path).matrix()
    if array.ndim != 2:
        raise ValueError(
            f"{path.name} holds an array of shape {array.shape}: a matrix of rows and columns "
            "was expected"
        )
    if array.dtype.kind not in "biufmM":
        raise ValueError(f"{path.name} holds values of type {array.dtype}: numbers were expected")
    array = as_matrix(array, path.name)
    names = _delimited.positions(array.shape[1])
    chosen = _choose(path, names, wanted)
    ids = None if chosen.ids is None else [str(value) for value in array[:, chosen.ids]]
    if chosen.numeric != list(range(len(names))):
        array = array[:, chosen.numeric]
    return _table(array.astype(np.float64, copy=False), ids, names, chosen)


def _from_parquet(path: Path, wanted: _Wanted) -> Table:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError(
            f"{path.name} needs pyarrow to be read: pip install pyarrow, or save it as .csv"
        ) from None
    try:
        frame = pyarrow.parquet.read_table(path)
    except PermissionError:
        raise
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}") from None
    # The name that data frames give to an index without one.
    names = ["" if name == "__index_level_0__" else name for name in frame.column_names]
    if "" in names[1:]:
        last = names.index("")
        order = [last, *range(last), *range(last + 1, len(names))]
        frame, names = frame.select(order), [names[column] for column in order]
    chosen = _choose(path, names, wanted)
    options = [_delimited.option_for(names, column) for column in chosen.numeric]
    numeric = frame.select(chosen.numeric)
    for values, column, option in zip(numeric.columns, chosen.numeric, options, strict=True):
        if values.null_count:
            row = int(np.flatnonzero(values.is_null().to_numpy())[0])
            raise ValueError(
                f"{path.name}, row {row}, column {names[column]!r}: missing value. Fill it in, "
                f"drop the row, or leave the column out with --drop {option}"
            )
    try:
        numbers = frame_numbers(numeric, path.name)
    except ColumnError as error:
        option = options[error.column]
        raise ValueError(
            f"{error} If the column names the rows, say --id {option}; leave it out with --drop "
            f"{option}"
        ) from None
    ids = None
    if chosen.ids is not None:
        ids = [str(value) for value in frame.column(chosen.ids).to_pylist()]
    return _table(numbers, ids, names, chosen)
