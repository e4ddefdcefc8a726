"""Data as they come, lists, frames and sparse matrices, as arrays of numbers.

Everything from outside passes through here before another library sees it, from the function, the
estimator and the command line alike. NumPy would take a date for a number of days, and SciPy
follows the indices of a sparse matrix wherever they lead.
"""

from __future__ import annotations

import datetime
import math
import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
# What a name of a row or column and an entry of a sparse matrix take at least.
_BYTES_PER_NAME, _BYTES_PER_ENTRY = 64, 12
_NO_UNIT = "holds dates or times, which have no unit here. Convert it to numbers, or drop it."


class ColumnError(ValueError):
    """A column without numbers; the command line adds the options that leave it out."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.column = column


def as_matrix(X: Any, name: str = "X", *, fits_memory: bool = True) -> Any:
    """X as an array of numbers or a sound sparse matrix; shape and values are not checked."""
    if isinstance(X, str | bytes | os.PathLike):
        raise ValueError(
            f"Input {name} is the text {str(X)[:40]!r}, and rows of numbers were expected. If it "
            "names a file, read that first, as numpy.loadtxt or pandas.read_csv do."
        )
    if X is None:
        raise ValueError(f"Input {name} is None, and rows of numbers were expected")
    if is_anndata(X):
        raise TypeError(
            f"Input {name} is an AnnData, which holds more than rows of numbers. Call "
            f"fastrbhc.anndata.cluster(adata), or pass {name}.X and feature_names={name}.var_names"
        )
    if type(X).__module__.startswith("polars") and type(X).__name__ == "LazyFrame":
        raise TypeError(
            f"Input {name} is a polars.LazyFrame, a query that has not been run. Run it first: "
            f"pass {name}.collect()"
        )
    if sparse.issparse(X):
        return sound_sparse(X, name, fits_memory=fits_memory)
    if column_names(X) is not None:
        return frame_numbers(X, name)
    rows = X if isinstance(X, list | tuple) else [X]
    if any(np.ma.is_masked(row) for row in rows):
        raise ValueError(f"Input {name} has masked values. Drop such rows or fill them in first.")
    values = np.asarray(X)
    if values.dtype.kind == "V":
        raise ValueError(
            f"Input {name} has named fields. Make it a matrix first: "
            f"numpy.lib.recfunctions.structured_to_unstructured({name})"
        )
    if values.ndim == 0 and values.dtype.kind == "O":
        raise ValueError(
            f"Input {name} is of the type {type(X).__name__}, and rows of numbers were expected"
        )
    if _holds_times(values):
        raise ValueError(f"Input {name} {_NO_UNIT}")
    return as_floats(values, f"Input {name}")


def is_anndata(X: Any) -> bool:
    """Whether X is a table of the package anndata, which need not be installed."""
    return type(X).__module__.startswith("anndata.") and type(X).__name__ == "AnnData"


def as_column(given: Any, name: str) -> NDArray[Any]:
    """One value per row as an array of numbers; its shape is not checked."""
    if sparse.issparse(given):
        raise ValueError(f"{name} is a sparse matrix: pass an array, one number for every row")
    parts = given if isinstance(given, list | tuple) else [given]
    if any(np.ma.is_masked(part) for part in parts):
        raise ValueError(f"{name} has masked values. Fill them in, or drop such rows.")
    if hasattr(given, "iloc") and given.ndim == 1:
        return _column_numbers(given, name)
    values = np.asarray(given)
    if _holds_times(values):
        raise ValueError(f"{name} {_NO_UNIT}")
    try:
        return as_floats(values, name)
    except ColumnError:
        raise
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{name} holds text or other things that are not numbers ({error})"
        ) from error


def as_floats(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Text and objects as floats; numbers, complex ones too, as they are."""
    if values.dtype.kind in "biufc":
        with np.errstate(over="ignore"):  # infinity, which is refused later on
            return values if values.dtype != np.longdouble else values.astype(np.float64)
    if values.dtype.kind == "O" and any(t.__name__ == "NAType" for t in _types(values)):
        missing = [type(value).__name__ == "NAType" for value in values.ravel()]
        values = np.where(np.reshape(missing, values.shape), np.nan, values)
    try:
        # By way of objects, for messages that show text as it is.
        return values.astype(object).astype(np.float64)
    except OverflowError:
        raise ColumnError(
            f"{what} contains a whole number too large for double precision, which ends at 1.8e308"
        ) from None


def _types(values: NDArray[Any]) -> set[type]:
    """The types of the objects in an array."""
    return set(map(type, values.ravel().tolist()))


def _holds_times(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "O":
        return values.dtype.kind in "mM"
    return any(issubclass(t, _TIMES) or t.__name__ == "Period" for t in _types(values))


# Frames


def column_names(X: Any) -> list[str] | None:
    """The names of the columns of a data frame; None for anything else."""
    names = X.column_names if _is_arrow(X) else getattr(X, "columns", None)
    return None if names is None else [str(name) for name in names]


def _is_arrow(X: Any) -> bool:
    """Whether X is a Table or a RecordBatch of pyarrow."""
    return type(X).__module__.startswith("pyarrow") and hasattr(X, "column_names")


def frame_numbers(X: Any, name: str) -> NDArray[np.float64]:
    """The numbers of a data frame of pandas, polars or pyarrow; missing values are NaN."""
    names = column_names(X)
    assert names is not None
    dtypes = list(getattr(X, "dtypes", [])) if hasattr(X, "iloc") else []
    if dtypes and all(isinstance(t, np.dtype) and t.kind in "biuf" for t in dtypes):
        plain: NDArray[np.float64] = X.to_numpy(dtype=np.float64)
        return plain
    n_rows = X.num_rows if _is_arrow(X) else X.shape[0]  # old record batches have no shape
    values = np.empty((n_rows, len(names)))
    for place, (label, column) in enumerate(zip(names, columns_of_frame(X), strict=True)):
        try:
            values[:, place] = _column_numbers(column, f"column {label!r} of {name}")
        except ColumnError as error:
            error.column = place
            raise
    return values


def columns_of_frame(X: Any) -> list[Any]:
    """The columns by position: two of them may have the same name."""
    if hasattr(X, "iloc"):
        return [X.iloc[:, place] for place in range(X.shape[1])]
    if hasattr(X, "get_columns"):
        return list(X.get_columns())
    return list(X.columns) if _is_arrow(X) else [X[name] for name in X.columns]


def _column_numbers(column: Any, what: str) -> NDArray[np.float64]:
    dtype = getattr(column, "dtype", None)
    kind = getattr(dtype, "kind", "O")
    if kind in "mM":  # pandas would make objects of those with a time zone
        raise ColumnError(f"{what} {_NO_UNIT}")
    if hasattr(column, "iloc") and not isinstance(dtype, np.dtype):
        # Types of pandas' own: missing values would be objects that are no numbers.
        wanted = np.float64 if kind in "biuf" else object
        values = column.to_numpy(dtype=wanted, na_value=np.nan)
    else:
        values = np.asarray(column)
    if _holds_times(values):
        raise ColumnError(f"{what} {_NO_UNIT}")
    if values.ndim != 1 or values.dtype.kind == "V":
        raise ColumnError(
            f"{what} holds several values in each row. Make them columns, or drop it."
        )
    if values.dtype.kind == "c":
        raise ColumnError(f"{what} holds complex numbers. Take real and imaginary parts apart.")
    try:
        return as_floats(values, what)
    except ColumnError:
        raise
    except (ValueError, TypeError) as error:
        raise ColumnError(
            f"{what} holds text or other things that are not numbers ({error}). Encode it as "
            "numbers, or drop it."
        ) from error


# Sparse matrices


def sound_sparse(X: Any, name: str, *, fits_memory: bool = True) -> Any:
    """A sparse matrix of floats whose indices have been checked, in one of SciPy's formats.

    With ``fits_memory`` it has to fit the memory as a dense matrix.
    """
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got a sparse array of shape {X.shape} instead as {name}"
        )
    if X.dtype.kind not in "biufc":
        raise ValueError(f"Input {name} is a sparse matrix of {X.dtype}, and not of numbers")
    try:
        if X.format == "lil":
            fault = _fault_of_lists(X)
            X = X.tocsr() if fault is None else X
        else:
            X = X.tocoo() if X.format == "dok" else X
            fault = None
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        fault = str(error)
    fault = fault or _fault(X)
    if fault is not None:
        raise ValueError(f"Input {name} is a sparse matrix with a broken structure: {fault}")
    if fits_memory:
        check_memory(X.shape, f"Input {name}")
    else:
        check_extent(X.shape, X.nnz, f"Input {name}")
    # Half precision and other byte orders are beyond SciPy's conversions.
    return X if X.dtype == np.float64 or X.dtype.kind == "c" else X.astype(np.float64)


def check_memory(shape: tuple[int, ...], what: str) -> None:
    """Refuse a dense matrix larger than the machine's memory, before any of it is taken."""
    needed, present = 8 * math.prod(int(n) for n in shape), memory()
    if needed > present:
        extent = " x ".join(f"{int(n):,}" for n in shape)
        raise MemoryError(
            f"{what} has {extent} values, which take {needed / 2**30:,.0f} GiB as a dense "
            f"matrix, and this machine has {present / 2**30:,.0f} GiB"
        )


def check_extent(shape: tuple[int, ...], n_entries: int, what: str) -> None:
    """Refuse a sparse matrix that does not fit the memory, even if it is left sparse.

    A short file may state any numbers of rows and columns, and each takes a few numbers and a name.
    """
    if _BYTES_PER_NAME * sum(shape) + _BYTES_PER_ENTRY * n_entries > memory():
        n_rows, n_columns = shape
        raise MemoryError(
            f"{what} states {n_rows:,} rows, {n_columns:,} columns and {n_entries:,} entries, "
            f"and this machine has {memory() / 2**30:,.0f} GiB of memory"
        )


def memory() -> int:
    """The memory of the machine in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return sys.maxsize


def _fault(X: Any) -> str | None:
    """What is wrong with the structure of a sparse matrix."""
    if X.format == "coo":
        parts = {"row": X.row, "col": X.col}
        fault = _fault_of_types(parts)
        for (label, part), n in zip(parts.items(), X.shape, strict=True):
            fault = fault or _fault_of_lengths(label, part, X.data) or _outside(label, part, n)
        return fault
    if X.format == "dia":
        fault = _fault_of_types({"offsets": X.offsets})
        if fault is None and X.data.ndim != 2:
            fault = f"data has shape {X.data.shape}, expected one row per offset"
        fault = fault or _fault_of_lengths("offsets", X.offsets, X.data)
        if fault is None and np.unique(X.offsets).size < X.offsets.size:
            fault = "an offset occurs twice"
        return fault
    if X.format not in ("csr", "csc", "bsr"):
        return f"its format is {X.format!r}"
    block = X.data.shape[1:] if X.format == "bsr" else (1, 1)
    if X.data.ndim != (3 if X.format == "bsr" else 1) or 0 in block:
        return f"data has shape {X.data.shape}"
    if any(n % width for n, width in zip(X.shape, block, strict=True)):
        return f"blocks of shape {block} do not fill {X.shape}"
    major, minor = (n // width for n, width in zip(X.shape, block, strict=True))
    if X.format == "csc":
        major, minor = minor, major
    return _fault_of_compressed(X.data, X.indices, X.indptr, major, minor)


def _fault_of_compressed(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], major: int, minor: int
) -> str | None:
    fault = _fault_of_types({"indices": indices, "indptr": indptr})
    fault = fault or _fault_of_lengths("indices", indices, data)
    if fault is not None:
        return fault
    if indptr.size != major + 1:
        return f"indptr has {indptr.size} entries, expected {major + 1}"
    if indptr[0] != 0:
        return f"indptr begins with {indptr[0]}, expected 0"
    if (indptr[1:] < indptr[:-1]).any():
        return "indptr decreases"
    if indptr[-1] > indices.size:
        return f"indptr ends with {indptr[-1]}, and there are {indices.size} indices"
    return _outside("indices", indices[: indptr[-1]], minor)


def _fault_of_types(parts: dict[str, NDArray[Any]]) -> str | None:
    for label, part in parts.items():
        if part.ndim != 1 or part.dtype not in (np.int32, np.int64):
            return (
                f"{label} is an array of {part.dtype} with {part.ndim} dimensions, expected whole "
                "numbers of 32 or 64 bits in one"
            )
    return None


def _fault_of_lengths(label: str, part: NDArray[Any], data: NDArray[Any]) -> str | None:
    if data.ndim and len(part) == len(data):
        return None
    return f"{label} has {len(part)} entries and data has shape {data.shape}"


def _outside(label: str, part: NDArray[Any], n: int) -> str | None:
    if part.size == 0:
        return None
    worst = part.min() if part.min() < 0 else part.max()
    return None if 0 <= worst < n else f"{label} holds {worst}, expected 0 to {n - 1}"


def _fault_of_lists(X: Any) -> str | None:
    """What is wrong with a matrix of lists, before SciPy joins them."""
    if not X.rows.shape == X.data.shape == (X.shape[0],):
        return f"rows has shape {X.rows.shape} and data {X.data.shape}"
    if any(len(a) != len(b) for a, b in zip(X.rows, X.data, strict=True)):
        return "a row has more indices than values, or fewer"
    return None
