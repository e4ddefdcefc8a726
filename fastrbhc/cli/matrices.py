"""Counts as biologists and vectorisers store them, read without making them dense.

These are Matrix Market files, folders of 10x Genomics with such a file, and .h5ad files.
"""

from __future__ import annotations

import gzip
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from fastrbhc._containers import as_matrix, check_extent, check_memory
from fastrbhc.anndata import rows_of
from fastrbhc.cli.delimited import positions
from fastrbhc.cli.fast_text import open_text

SUFFIXES = (".mtx", ".mtx.gz")
_MATRIX, _BARCODES, _FEATURES = "matrix.mtx", "barcodes.tsv", ("features.tsv", "genes.tsv")
# The kind of features that is clustered, if a file has several.
_GENES = "Gene Expression"
# Characters of "1 1" with the end of its line.
_SHORTEST_ENTRY = 4


class Matrix(NamedTuple):
    """Rows of numbers, with what the file says of them."""

    values: Any  # a csr_array or a matrix of floats
    ids: list[str] | None
    columns: list[str]
    notes: Mapping[str, Any] = {}  # further columns that describe the rows, by name
    has_counts: bool = False  # in a layer that was not asked for


def transposed(path: Path, matrix: Matrix) -> Matrix:
    """Columns as rows, of a matrix without names."""
    if matrix.ids is not None:
        raise ValueError(
            f"{path.name} has the files of 10x Genomics beside it, which say that cells are rows: "
            "leave out --transpose"
        )
    values = _rows(matrix.values.T)
    return Matrix(values, None, positions(values.shape[1]))


def is_market(path: Path) -> bool:
    """Whether a file is a matrix in the Matrix Market format, by its name."""
    return path.name.lower().endswith(SUFFIXES)


# Matrix Market


def read_market(path: Path) -> Matrix:
    """A Matrix Market file: its rows as they are, or cells if the files of 10x are beside it."""
    prefix, stem, _ = path.name.partition(_MATRIX)
    if stem and _beside(path, prefix, _BARCODES) is not None:
        return _cells(path, prefix)
    values = _rows(_market(path))
    return Matrix(values, None, positions(values.shape[1]))


def _rows(values: Any) -> Any:
    return csr_array(values) if issparse(values) else np.ascontiguousarray(values)


def _market(path: Path) -> Any:
    """Floats as an array, or as entries with their rows and columns."""
    from scipy.io import mminfo, mmread

    try:
        n_rows, n_columns, n_entries, form, field, _ = mminfo(str(path))
        if field == "complex":
            raise ValueError("its entries are complex numbers. Take real and imaginary parts apart")
        if form == "array":
            check_memory((n_rows, n_columns), path.name)
        else:
            check_extent((n_rows, n_columns), n_entries, path.name)
            if path.suffix == ".mtx" and n_entries * _SHORTEST_ENTRY > path.stat().st_size:
                raise ValueError(f"it is cut short: it states {n_entries:,} entries")
        found = mmread(str(path))  # entries of a pattern are ones
    except MemoryError:
        raise
    except (ValueError, OverflowError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
            raise
        raise ValueError(f"{path.name} cannot be read as Matrix Market: {error}") from None
    if not issparse(found):
        return found.astype(np.float64)
    found.data = found.data.astype(np.float64)  # in place, without copies of the indices
    return as_matrix(found, path.name, fits_memory=False)


# 10x Genomics


def read_folder(folder: Path) -> Matrix:
    """A folder of 10x Genomics: matrix.mtx, genes in rows, with barcodes.tsv and features.tsv."""
    found = _matrices(folder, "")
    if not found:
        deeper = _matrices(folder, "*/") or _matrices(folder, "*/*/")
        hint = f": look in {deeper[0].parent}" if deeper else ""
        raise ValueError(
            f"{folder} is a directory without {_MATRIX} or {_MATRIX}.gz{hint or _EXPECTED}"
        )
    prefixes = sorted({path.name.partition(_MATRIX)[0] for path in found})
    if len(prefixes) > 1:
        raise ValueError(
            f"{folder} is a directory with several matrices: give one of them, such as {found[0]}"
        )
    return _cells(found[0], prefixes[0])


_EXPECTED = (
    ", and not a table. Give a file, or a folder of 10x Genomics with matrix.mtx, barcodes.tsv and "
    "features.tsv"
)


def _matrices(folder: Path, depth: str) -> list[Path]:
    return sorted(path for path in folder.glob(f"{depth}*{_MATRIX}*") if is_market(path))


def _beside(path: Path, prefix: str, *stems: str) -> Path | None:
    """The first of some files beside another one, compressed or not."""
    names = [f"{prefix}{stem}{ending}" for stem in stems for ending in ("", ".gz")]
    return next((path.parent / name for name in names if (path.parent / name).is_file()), None)


def _cells(path: Path, prefix: str) -> Matrix:
    """Cells in rows, with their barcodes, and the features that are genes."""
    barcodes, features = _beside(path, prefix, _BARCODES), _beside(path, prefix, *_FEATURES)
    for found, what in ((barcodes, _BARCODES), (features, " or ".join(_FEATURES))):
        if found is None:
            raise ValueError(
                f"there is {path.name} in {path.parent}, but no {what} (or .gz) beside it. It "
                "names the cells and features: add it, one name in a line"
            )
    assert barcodes is not None
    assert features is not None
    cells = [fields[0] for fields in _fields(barcodes)]
    described = _fields(features)
    values = _market(path)
    given = (len(described), len(cells))
    if values.shape == given:
        values = values.T
    elif values.shape != given[::-1]:  # some programs write cells in rows
        short, place = (barcodes, 1) if values.shape[0] == given[0] else (features, 0)
        n = values.shape[place]
        header = ". Is its first line a header? Remove it" if given[place] == n + 1 else ""
        raise ValueError(
            f"{short.name} has {given[place]:,} names, and {path.name} has {n:,} "
            f"{'columns, one for each cell' if place else 'rows, one for each feature'}"
            + (header or ": do they belong together?")
        )
    values = _rows(values)
    names = [fields[min(1, len(fields) - 1)] for fields in described]  # symbols follow the ids
    kinds = np.array([fields[2] if len(fields) > 2 else _GENES for fields in described])
    kept = np.flatnonzero(kinds == _GENES)
    if 0 < kept.size < kinds.size:
        others = ", ".join(sorted(set(kinds.tolist()) - {_GENES}))
        warnings.warn(
            f"{kinds.size - kept.size:,} of {kinds.size:,} features are left out: they count "
            f"something else than genes ({others})",
            UserWarning,
            stacklevel=2,
        )
        values, names = values[:, kept], [names[place] for place in kept]
    return Matrix(values, cells, names)


def _fields(path: Path) -> list[list[str]]:
    """The fields of every line that is not empty."""
    with open_text(path) as text:
        return [line.rstrip("\r\n").split("\t") for line in text if line.strip()]


# AnnData


def read_h5ad(path: Path, layer: str | None) -> Matrix:
    """X of an .h5ad file, or one of its layers."""
    try:
        import anndata
    except ImportError:
        raise ValueError(
            f'{path.name} needs anndata to be read: pip install anndata, or "fastrbhc[anndata]"'
        ) from None
    try:
        adata = anndata.read_h5ad(path, backed="r")  # X stays on disk until it is asked for
    except (MemoryError, PermissionError):
        raise
    except Exception as error:  # of h5py, and of anndata
        raise ValueError(f"{path.name} cannot be read: {error}") from None
    try:
        values: NDArray[Any] = rows_of(adata, layer, path.name)
        return Matrix(
            csr_array(values) if issparse(values) else values,
            [str(name) for name in adata.obs_names],
            [str(name) for name in adata.var_names],
            adata.obs,
            layer is None and "counts" in adata.layers,
        )
    finally:
        adata.file.close()
