"""Rows whose columns are of different kinds, before they are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._containers import as_floats, as_matrix, column_names, columns_of

Placed = TypeVar("Placed")


@dataclass(frozen=True)
class ColumnTable:
    """Columns as they come, with their names."""

    source: Any
    columns: list[Any]
    names: list[str] | None
    places: tuple[int, ...]  # the positions of the columns in X

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def label(self, k: int) -> str:
        """A column in a message."""
        return f"column {self.places[k]}" if self.names is None else f"column {self.names[k]!r}"

    def some(self, positions: Sequence[int]) -> ColumnTable:
        """Some of the columns."""
        return ColumnTable(
            self.source,
            [self.columns[k] for k in positions],
            None if self.names is None else [self.names[k] for k in positions],
            tuple(self.places[k] for k in positions),
        )

    def text(self, k: int) -> list[str | None]:
        """A column as text, None where it is missing.

        Whole numbers have no decimal point, whatever their type.
        """
        values = np.asarray(self.columns[k])
        if values.dtype.kind in "biuf":
            values = values.astype(object)
        texts: list[str | None] = []
        for value in values.tolist():
            if value is None or type(value).__name__ == "NAType" or value != value:
                texts.append(None)
                continue
            whole = isinstance(value, float) and value.is_integer()
            texts.append(str(int(value)) if whole else str(value))
        return texts

    def numbers(self) -> NDArray[np.float64]:
        """All columns as numbers."""
        out = np.empty((self.n_rows, self.n_columns))
        for k, column in enumerate(self.columns):
            try:
                out[:, k] = as_floats(np.asarray(column), self.label(k))
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"{self.label(k)} of X holds text or other things that are not numbers "
                    f"({error}). Give it to the family 'categorical', or leave it out with "
                    "the key 'ignore'"
                ) from error
        return out


def table_of(X: Any, feature_names: Any = None) -> ColumnTable:
    """The columns of X: a data frame, an array, also of objects, or a list of rows."""
    names = column_names(X)
    if names is not None:
        columns = columns_of(X)
    else:
        if issparse(X):
            raise TypeError(
                "a product of families takes dense rows, and X is a sparse matrix: pass X.toarray()"
            )
        if isinstance(X, str | bytes) or X is None:
            as_matrix(X)  # raises what it always does
        try:
            values = np.asarray(X)
            if values.dtype.kind in "US":
                values = np.array(X, dtype=object)
        except ValueError:
            values = np.array(X, dtype=object)
        if values.ndim != 2 or values.shape[1] == 0:
            raise ValueError(
                f"Expected 2D array, got an array of shape {values.shape} instead as X: rows of "
                "the same length were expected"
            )
        columns = list(values.T)
    if feature_names is not None:
        names = [str(name) for name in feature_names]
        if len(names) != len(columns):
            raise ValueError(f"feature_names has {len(names)} names for {len(columns)} columns")
    return ColumnTable(X, columns, names, tuple(range(len(columns))))


def placed(family: Placed, *groups: Any, feature_names: Any = None) -> Placed:
    """The family or model with the positions and levels of its columns, if it needs to know them.

    The rows may come in several groups, with the same columns.
    """
    record: Any = family
    if not hasattr(record, "place") or (hasattr(record, "n_columns") and record.n_columns > 0):
        return family
    first, *others = (table_of(X, feature_names) for X in groups)
    if any(other.n_columns != first.n_columns for other in others):
        return cast(Placed, record.place(first))  # which the check of the groups refuses
    columns = [
        np.concatenate([np.asarray(table.columns[k], object) for table in (first, *others)])
        for k in range(first.n_columns)
    ]
    whole = ColumnTable(first.source, columns, first.names, first.places)
    return cast(Placed, record.place(whole))


def encoded(X: Any, family: Any, feature_names: Any = None) -> Any:
    """The rows as numbers, if the family is one that takes text; else as they are."""
    return family.encode(table_of(X, feature_names)) if hasattr(family, "encode") else X
