"""Reading a table of numbers, and of text on request, with errors that name the cell."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from fastrbhc._containers import ColumnError, as_column, as_matrix, frame_numbers
from fastrbhc._files import Arrays
from fastrbhc.cli import delimited as _delimited
from fastrbhc.cli import matrices as _matrices

_FORMATS = ".csv, .tsv, .npy, .npz, .parquet, .mtx or .h5ad"

# Files that are often at hand, and not read.
_FOREIGN = {
    ".xlsx": "a spreadsheet", ".xls": "a spreadsheet", ".ods": "a spreadsheet",
    ".bz2": "compressed by bzip2", ".xz": "compressed by xz", ".zst": "compressed by zstd",
    ".zip": "an archive", ".tar": "an archive", ".tgz": "an archive", ".7z": "an archive",
    ".json": "JSON", ".jsonl": "JSON", ".feather": "Feather", ".arrow": "Arrow", ".orc": "ORC",
    ".h5": "HDF5", ".hdf5": "HDF5", ".loom": "HDF5", ".mat": "MATLAB's",
    ".pkl": "a pickle", ".pickle": "a pickle", ".joblib": "a pickle", ".rds": "R's",
}  # fmt: skip


class Table(NamedTuple):
    """Numbers, with the names of their rows and columns."""

    values: Any  # a matrix of floats, a csr_array, or objects where columns are text
    ids: list[str] | None
    columns: list[str]
    weights: NDArray[np.float64] | None = None
    has_counts: bool = False  # in a layer that was not asked for
    places_by_name: Mapping[str, int] = MappingProxyType({})  # as columns were asked for

    def places(self, columns: Sequence[str]) -> list[bool]:
        """Which of the values are the columns that were asked for by these names."""
        meant = {self.places_by_name[column] for column in columns}
        return [place in meant for place in range(len(self.columns))]

    def without_empty_rows(self) -> tuple[Table, NDArray[np.intp]]:
        """The rows that are not all zero, and their positions.

        If some are left out, rows without names are named by their positions from 0.
        """
        n_values: Any = (self.values != 0).sum(axis=1)
        kept = np.flatnonzero(np.ravel(n_values))
        if kept.size == self.values.shape[0]:
            return self, kept
        names = list(map(str, range(self.values.shape[0]))) if self.ids is None else self.ids
        return self._replace(
            values=self.values[kept],
            ids=[names[row] for row in kept],
            weights=None if self.weights is None else self.weights[kept],
        ), kept


def read_table(
    path: str | Path,
    ids: str | None = None,
    *,
    weights: str | None = None,
    drop: Sequence[str] = (),
    columns: Mapping[str, bool] | None = None,
    only: bool = False,
    text: bool | None = False,
    layer: str | None = None,
    transpose: bool = False,
    missing: str = "error",
) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : str or Path
        The suffix determines the format. ``.npy``: a matrix. ``.npz``: the array ``X``, or
        the only one, or the parts of a sparse matrix as SciPy's ``save_npz`` names them.
        ``.mtx``, ``.mtx.gz``: Matrix Market. A folder of 10x Genomics, or its ``matrix.mtx``:
        cells are rows, named by ``barcodes.tsv``, and genes are columns. ``.h5ad``: needs anndata.
        ``.parquet``: needs pyarrow. Anything else is text, which may end in ``.gz``: commas,
        semicolons, tabs or blanks between the cells, with or without a header.
    ids : str, optional
        The column with the names of the rows: its name, or its position in the file counted from 1.
        A name takes precedence over a position. By default a first column with an empty name, as
        written for the index of a data frame, is used, and otherwise rows have no names. Of an
        ``.h5ad`` file it may be a column of ``obs``; names of cells are the default.
    weights : str, optional
        The column with the weights of the rows, given in the same way.
    drop : sequence of str
        Columns to leave out.
    columns : dict, optional
        All columns of values, and whether each is read as text. Others in the file have to be left
        out.
    only : bool, default=False
        Take these columns in this order, and leave out all others.
    text : bool or None, default=False
        Read all values as text, if ``columns`` does not say; with None, the columns that hold text
        rather than numbers. Matrices have none.
    layer : str, optional
        The layer of an ``.h5ad`` file, by default X.
    transpose : bool, default=False
        Take columns for rows: genes are in rows where 10x Genomics writes a ``.mtx`` file. Only
        for ``.mtx``, ``.npy`` and ``.npz`` files, which name neither.
    missing : {"error", "ignore"}, default="error"
        With "ignore", empty cells of a text, ``NA`` and the like become NaN, and so do nulls of a
        ``.parquet`` file. Weights are never missing.

    Returns
    -------
    Table
        ``values``, float64 of shape (n, d), sparse if the file is, and of objects if some columns
        are text; ``ids``, or None; ``columns``,
        names from the header, or positions counted from 1; ``weights``, or None.

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
    if layer is not None and path.suffix.lower() != ".h5ad":
        raise ValueError(f"{path.name} has no layers: --layer is for .h5ad files")
    wanted = _Wanted(ids, weights, drop, columns, text, missing == "ignore", only)
    is_folder = path.is_dir()
    if not (is_folder or path.is_file()):
        raise ValueError(f"{path} is a pipe or a device, and tables are read twice: save it first")
    if not is_folder and path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty")
    suffix = "" if is_folder else path.suffix.lower()
    if suffix in _FOREIGN:
        raise ValueError(
            f"by its name {path.name} is {_FOREIGN[suffix]}, which is not read: give a {_FORMATS} "
            "file; .csv and .mtx may be compressed to .csv.gz and .mtx.gz"
        )
    without_names = suffix in (".npy", ".npz") or (not is_folder and _matrices.is_market(path))
    if transpose and not without_names:
        raise ValueError(
            "--transpose is for .mtx, .npy and .npz files, which name neither rows nor columns, "
            f"and {path.name} is none"
        )
    if suffix in (".npy", ".npz"):
        return _from_array(path, wanted, transpose)
    if suffix in (".parquet", ".pq"):
        return _from_parquet(path, wanted)
    if suffix == ".h5ad":
        return _named(path, _matrices.read_h5ad(path, layer), wanted)
    try:
        if is_folder:
            return _named(path, _matrices.read_folder(path), wanted)
        if _matrices.is_market(path):
            matrix = _matrices.read_market(path)
            return _named(path, _turned(path, matrix, transpose), wanted)
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
        raise ValueError(f"{path.name} is not a text in UTF-8: give a {_FORMATS} file") from None


class _Wanted(NamedTuple):
    """Columns as the caller named them."""

    ids: str | None
    weights: str | None
    drop: Sequence[str]
    columns: Mapping[str, bool] | None
    text: bool | None
    with_gaps: bool = False
    only: bool = False


class _Chosen(NamedTuple):
    """The roles of the columns of the file, counted from 0."""

    values: list[int]
    ids: int | None
    weights: int | None
    text: list[int]  # those of the values that are text
    asked: dict[str, int]  # names that were given, and positions among the values

    @property
    def numeric(self) -> list[int]:
        """The columns of numbers, with the weights last."""
        numbers = [column for column in self.values if column not in self.text]
        return numbers + ([] if self.weights is None else [self.weights])


def _place(file: str, names: list[str], column: str) -> int:
    """The place of a column that is given by its name, or by its position counted from 1."""
    if names.count(column) == 1:
        return names.index(column)
    if column in names:
        raise ValueError(f"{file} has several columns {column!r}: give a position, counted from 1")
    if column.isdecimal() and 1 <= int(column) <= len(names):
        return int(column) - 1
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    raise ValueError(f"{file} has no column {column!r}. Its {len(names)} columns are {shown}")


def _choose(path: Path, names: list[str], wanted: _Wanted) -> _Chosen:
    def place(column: str) -> int:
        return _place(path.name, names, column)

    ids, weights = (place(column) if column is not None else None for column in wanted[:2])
    if ids is None and len(names) > 1 and names[0] == "":
        ids = 0
    others = {ids, weights, *map(place, wanted.drop)}
    values = [column for column in range(len(names)) if column not in others]
    if not values:
        raise ValueError(f"{path.name} has no column of values left")
    if wanted.columns is None:
        return _Chosen(values, ids, weights, values if wanted.text else [], {})
    places = {column: place(column) for column in wanted.columns}
    if wanted.only:
        values = [found for found in places.values() if found in values]
    for column, found in places.items():
        if found not in values:
            raise ValueError(
                f"column {column!r} of {path.name} has the names of the rows or their weights, or "
                "is left out: no family can have it"
            )
    left = [column for column in values if column not in places.values()]
    if left:
        shown = ", ".join(repr(names[column]) for column in left[:5])
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        raise ValueError(
            f"no family has {shown}{more} of {path.name}. Give every column to a family, or leave "
            f"it out: ignore:{names[left[0]]}"
        )
    text = {places[column] for column, is_text in wanted.columns.items() if is_text}
    asked = {column: values.index(found) for column, found in places.items()}
    return _Chosen(values, ids, weights, sorted(text), asked)


def _table(
    numbers: Any,
    ids: list[str] | None,
    names: list[str],
    chosen: _Chosen,
    texts: Sequence[Sequence[Any]] = (),
) -> Table:
    """The numbers of a file, with the weights last, and its columns of text."""
    d = len(chosen.values) - len(texts)
    values = numbers if d == numbers.shape[1] else numbers[:, :d]
    if texts:
        values = _with_text(values, texts, [column in chosen.text for column in chosen.values])
    return Table(
        csr_array(values) if issparse(values) else np.ascontiguousarray(values),
        ids,
        [names[column] for column in chosen.values],
        None if chosen.weights is None else _column(numbers, d),
        places_by_name=chosen.asked,
    )


def _with_text(
    numbers: NDArray[np.float64], texts: Sequence[Sequence[Any]], is_text: list[bool]
) -> NDArray[Any]:
    """Columns of numbers and of text, as objects."""
    out = np.empty((len(texts[0]), len(is_text)), object)
    out[:, np.flatnonzero(~np.array(is_text))] = numbers
    for column, text in zip(np.flatnonzero(is_text), texts, strict=True):
        out[:, column] = text
    return out


def _column(numbers: Any, column: int) -> NDArray[np.float64]:
    one = numbers[:, [column]]
    return np.ravel(one.toarray() if issparse(one) else one)


def _from_text(path: Path, wanted: _Wanted) -> Table:
    layout = _delimited.layout_of(path)
    chosen = _choose(path, layout.names, wanted)
    try:
        numbers, ids = _numbers(path, layout, chosen, wanted)
    except UnicodeDecodeError:
        raise
    except ValueError:
        if wanted.text is not None or wanted.columns is not None:
            raise
        chosen = chosen._replace(text=_delimited.columns_of_words(path, layout, chosen.values))
        if not chosen.text:
            raise
        numbers, ids = _numbers(path, layout, chosen, wanted)
    texts = []
    if chosen.text:
        texts = _delimited.load_text(path, layout, chosen.text, wanted.with_gaps)
    return _table(numbers, ids, layout.names, chosen, texts)


def _numbers(
    path: Path, layout: _delimited.Layout, chosen: _Chosen, wanted: _Wanted
) -> tuple[NDArray[np.float64], list[str] | None]:
    gaps = len(chosen.numeric) - (chosen.weights is not None) if wanted.with_gaps else 0
    return _delimited.load(path, layout, chosen.numeric, chosen.ids, gaps)


def _turned(path: Path, matrix: _matrices.Matrix, transpose: bool) -> _matrices.Matrix:
    return _matrices.transposed(path, matrix) if transpose else matrix


def _from_array(path: Path, wanted: _Wanted, transpose: bool) -> Table:
    array = Arrays(path).matrix()
    if array.ndim != 2:
        raise ValueError(
            f"{path.name} holds an array of shape {array.shape}: a matrix of rows and columns "
            "was expected"
        )
    if array.dtype.kind not in "biufmM":
        raise ValueError(f"{path.name} holds values of type {array.dtype}: numbers were expected")
    array = as_matrix(array, path.name, fits_memory=False)
    matrix = _matrices.Matrix(array, None, _delimited.positions(array.shape[1]))
    return _named(path, _turned(path, matrix, transpose), wanted)


def _named(path: Path, matrix: _matrices.Matrix, wanted: _Wanted) -> Table:
    """The columns of a matrix by their roles; some may be described outside of it."""
    noted = {name: matrix.notes[name] for name in wanted[:2] if name and name in matrix.notes}
    inside = wanted._replace(
        ids=None if wanted.ids in noted else wanted.ids,
        weights=None if wanted.weights in noted else wanted.weights,
    )
    chosen = _choose(path, matrix.columns, inside)._replace(text=[])
    numbers, ids = matrix.values, matrix.ids
    if chosen.ids is not None:
        ids = [str(value) for value in _column(numbers, chosen.ids)]
    if wanted.ids in noted:
        ids = [str(value) for value in noted[wanted.ids]]
    if chosen.numeric != list(range(len(matrix.columns))):
        numbers = numbers[:, chosen.numeric]
    numbers = numbers.astype(np.float64, copy=False)
    table = _table(numbers, ids, matrix.columns, chosen)
    if wanted.weights in noted:
        weights = as_column(noted[wanted.weights], f"column {wanted.weights!r} of {path.name}")
        table = table._replace(weights=weights.astype(np.float64))
    return table._replace(has_counts=matrix.has_counts)


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
    if wanted.text is None and wanted.columns is None:
        chosen = chosen._replace(text=[k for k in chosen.values if _is_text(frame.field(k).type)])
    options = [_delimited.option_for(names, column) for column in chosen.numeric]
    numeric = frame.select(chosen.numeric)
    for column in sorted([*chosen.numeric, *chosen.text]):
        values, option = frame.column(column), _delimited.option_for(names, column)
        if values.null_count and not (wanted.with_gaps and column in chosen.values):
            row = int(np.flatnonzero(values.is_null().to_numpy())[0])
            raise ValueError(
                f"{path.name}, row {row}, column {names[column]!r}: missing value. Fill it in, "
                f"drop the row, say --missing ignore, or leave the column out with --drop {option}"
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
    texts = [frame.column(column).to_pylist() for column in chosen.text]
    return _table(numbers, ids, names, chosen, texts)


def _is_text(kind: Any) -> bool:
    """Whether a type of pyarrow is that of text or of categories."""
    return str(kind).startswith(("string", "large_string", "dictionary"))
