"""The same values in the forms in which rows may be given."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse


def _strided(X):
    padded = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    padded[::2, ::3] = X
    return padded[::2, ::3]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _memmap(X):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        mapped = np.memmap(Path(directory) / "rows", X.dtype, "w+", shape=X.shape)
        mapped[:] = X
        return mapped  # the pages outlive the file


def _unaligned(X):
    raw = np.zeros(X.nbytes + 1, np.uint8)
    view = raw[1:].view(np.float64).reshape(X.shape)
    view[:] = X
    return view


def _frame(X):
    import pandas as pd

    return pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])


def _mixed_frame(X):
    frame = _frame(X)
    for name in frame.columns[::2]:
        with np.errstate(all="ignore"):
            for dtype in ("int64", "float32", "Float64"):
                if _survives(frame[name].to_numpy(), dtype):
                    frame[name] = frame[name].astype(dtype)
                    break
    return frame


def _survives(values, dtype):
    if not np.isfinite(values).all():
        return False
    if dtype == "int64":
        return bool((np.abs(values) < 2**53).all() and (values == np.round(values)).all())
    return dtype == "Float64" or bool((values.astype(dtype) == values).all())


def _polars(X):
    import polars as pl

    return pl.DataFrame({f"c{k}": X[:, k] for k in range(X.shape[1])})


def _duplicated_coo(X):
    """Entries given as two halves each, which are summed; explicit zeros too."""
    rows, columns = np.indices(X.shape).reshape(2, -1)
    values = X.ravel()
    # Halves of the smallest numbers are not exact.
    half = np.where(np.abs(values) > 1e-300, 0.5 * values, values)
    rest = np.where(half == values, 0.0, half)
    place = np.concatenate([rows, rows]), np.concatenate([columns, columns])
    return sparse.coo_array((np.concatenate([half, rest]), place), shape=X.shape)


def _unsorted_csr(X):
    A = sparse.csr_array(X)
    for i in range(X.shape[0]):
        part = slice(A.indptr[i], A.indptr[i + 1])
        A.indices[part], A.data[part] = A.indices[part][::-1].copy(), A.data[part][::-1].copy()
    A.has_sorted_indices = False
    return A


def _explicit_zeros(X):
    rows, columns = np.indices(X.shape).reshape(2, -1)
    return sparse.csr_array((X.ravel(), (rows, columns)), shape=X.shape)


def _long_indices(X):
    A = sparse.csr_matrix(X)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


_DENSE_FORMS = {
    "plain": lambda X: X.copy(),
    "fortran": lambda X: np.asfortranarray(X),
    "strided": _strided,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read_only": _read_only,
    "memmap": _memmap,
    "unaligned": _unaligned,
    "big_endian": lambda X: X.astype(">f8"),
    "lists": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "longdouble": lambda X: X.astype(np.longdouble),
    "masked": lambda X: np.ma.masked_array(X),
    "frame": _frame,
    "mixed_frame": _mixed_frame,
    "polars": _polars,
}
_SPARSE_FORMS = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "lil_matrix": sparse.lil_matrix,
    "dok_array": sparse.dok_array,
    "bsr_array": sparse.bsr_array,
    "dia_array": sparse.dia_array,
    "duplicated_coo": _duplicated_coo,
    "unsorted_csr": _unsorted_csr,
    "explicit_zeros": _explicit_zeros,
    "long_indices": _long_indices,
}
DENSE, SPARSE = list(_DENSE_FORMS), list(_SPARSE_FORMS)
# Number types: values are rounded to them when the case is drawn.
DTYPES = ["float32", "float16", "int64", "int32", "uint8", "bool"]
FORMS = {
    **_DENSE_FORMS,
    **_SPARSE_FORMS,
    **{name: functools.partial(np.ndarray.astype, dtype=name) for name in DTYPES},
}
