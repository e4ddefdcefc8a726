"""A table of columns, as families see it that need to know which column is which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Table(Protocol):
    """Columns of rows, as they come: numbers, text, categories."""

    source: Any  # what the user passed
    names: list[str] | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    def label(self, k: int) -> str:
        """A column in a message."""

    def some(self, positions: tuple[int, ...]) -> Table:
        """Some of the columns."""

    def text(self, k: int) -> list[str | None]:
        """A column as text, one per row; None where it is missing."""

    def numbers(self) -> NDArray[np.float64]:
        """All columns as numbers."""


def placed_columns(
    names: Sequence[str], columns: Sequence[Any], table: Table
) -> list[tuple[int, ...]]:
    """The positions of the columns of each block; every column has to be in exactly one.

    Parameters
    ----------
    names : sequence of str
        Names of the blocks, for messages.
    columns : sequence
        The columns of each block, see `Block`.
    table : Table
        The table they are columns of.

    Returns
    -------
    list of tuple of int

    Raises
    ------
    ValueError
        For a column that is absent, in two blocks or in none, with its name.

    Examples
    --------
    >>> from fastrbhc._table import table_of
    >>> from fastrbhc.families._columns import placed_columns
    >>> placed_columns(["poisson", "ward"], [["b"], ["a"]], table_of([[1, 2]], ["a", "b"]))
    [(1,), (0,)]
    """
    found = [positions_of(given, table) for given in columns]
    owners: dict[int, str] = {}
    for name, positions in zip(names, found, strict=True):
        for k in positions:
            if k in owners:
                raise ValueError(
                    f"{table.label(k)} is in two blocks, {owners[k]!r} and {name!r}"
                    if owners[k] != name
                    else f"{table.label(k)} is named twice for {name!r}"
                )
            owners[k] = name
    left_out = [k for k in range(table.n_columns) if k not in owners]
    if left_out:
        labels = ", ".join(table.label(k) for k in left_out[:5])
        more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        raise ValueError(
            f"no block has {labels}{more}. Give every column to a block, or to the key 'ignore'"
        )
    return found


def positions_of(columns: Any, table: Table) -> tuple[int, ...]:
    """The positions of columns given by names, positions, a slice, a mask or a function.

    Parameters
    ----------
    columns : list, slice, mask, callable, str or int
        See `Block`.
    table : Table
        The table they are columns of.

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        For a column that the table does not have, with its name.

    Examples
    --------
    >>> from fastrbhc._table import table_of
    >>> from fastrbhc.families._columns import positions_of
    >>> table = table_of([[1, 2, 3]], ["a", "b", "c"])
    >>> positions_of(["c", "a"], table), positions_of(slice(1, None), table)
    ((2, 0), (1, 2))
    >>> positions_of([True, False, True], table), positions_of(-1, table)
    ((0, 2), (2,))
    """
    n = table.n_columns
    if callable(columns):
        columns = columns(table.source)
    if isinstance(columns, slice):
        if any(isinstance(end, str) for end in (columns.start, columns.stop)):
            return _from_to(columns, table)
        return tuple(range(*columns.indices(n)))
    if isinstance(columns, str) or np.ndim(columns) == 0:
        columns = [columns]
    entries = list(columns)
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        if len(entries) != n:
            raise ValueError(f"a mask of {len(entries)} columns was given, and X has {n}")
        return tuple(np.flatnonzero(entries).tolist())
    return tuple(_position(entry, table) for entry in entries)


def _from_to(columns: slice, table: Table) -> tuple[int, ...]:
    """A slice by names, whose end is part of it as in pandas."""
    start = 0 if columns.start is None else _position(columns.start, table)
    stop = table.n_columns - 1 if columns.stop is None else _position(columns.stop, table)
    return tuple(range(start, stop + 1, columns.step or 1))


def _position(entry: Any, table: Table) -> int:
    names, n = table.names, table.n_columns
    if isinstance(entry, int | np.integer) and (names is None or str(entry) not in names):
        if not -n <= entry < n:
            raise ValueError(f"there is no column {entry}: X has {n}, which count from 0")
        return int(entry) % n
    if names is None:
        raise ValueError(
            f"X has no names of columns, and the family names {entry!r}. Pass a data frame or "
            "feature_names, or give positions, which count from 0"
        )
    if names.count(str(entry)) > 1:
        raise ValueError(f"X has {names.count(str(entry))} columns named {str(entry)!r}")
    if str(entry) not in names:
        from difflib import get_close_matches

        near = get_close_matches(str(entry), names, 1)
        raise ValueError(
            f"X has no column {str(entry)!r}" + (f". Did you mean {near[0]!r}?" if near else "")
        )
    return names.index(str(entry))
