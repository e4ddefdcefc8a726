"""Checks of missing cells: where they may be, and what else to do about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._containers import as_matrix
from fastrbhc._table import table_of
from fastrbhc.families._missing import filled, names_of_those_that_take_missing, takes_missing


def on_ignoring(family: Any) -> str:
    """A further remedy for NaN: the option, or families that have it."""
    option = "missing='ignore' (--missing ignore on the command line)"
    if takes_missing(family):
        return f" Or say {option}: then NaN stands for cells that were not observed."
    return (
        f" Families whose columns are separate, such as 'ward' and 'poisson', take {option}: then "
        "NaN stands for cells that were not observed."
    )


def refuse_empty_rows(values: NDArray[np.float64], name: str) -> None:
    """Refuse rows that nothing is known of."""
    empty = np.flatnonzero(np.isnan(values).all(axis=1))
    if empty.size:
        more = f" (and {empty.size - 1} more)" if empty.size > 1 else ""
        raise ValueError(
            f"Input {name} has a row of which no cell is observed: row {empty[0]}{more}. "
            "Nothing tells where it belongs: drop such rows. Rows count from 0."
        )


def refuse_gaps_of_block(
    part: NDArray[np.float64], family: Any, names: list[str], name: str
) -> None:
    """Name the first missing cell of a block whose family has to know all of them."""
    gone = np.isnan(part)
    row, column = (int(place) for place in np.argwhere(gone)[0])
    others = int(gone.sum()) - 1
    more = f" (and {others} more)" if others else ""
    raise ValueError(
        f"Input {name} has a missing cell in the block {family.name!r}: row {row}, column "
        f"{names[column]!r}{more}. missing='ignore' is for blocks whose columns are separate. Fill "
        "in the values, drop such rows, or give this block another family: "
        f"{', '.join(names_of_those_that_take_missing())}."
    )


def with_valid_values(values: NDArray[np.float64], family: Any) -> NDArray[np.float64]:
    """Rows whose gaps are filled from the valid values, so that errors are of observed cells."""
    domain = family.domain
    valid = np.isfinite(values) & (values >= domain.lower) & (values <= domain.upper)
    if not domain.includes_lower:
        valid &= values > domain.lower
    return np.where(np.isnan(values), filled(np.where(valid, values, np.nan), family), values)


def refuse_gaps(X: Any, family: Any) -> None:
    """Refuse missing cells where rows without any are drawn for comparison."""
    if issparse(X):
        return
    rows = family.encode(table_of(X)) if hasattr(family, "encode") else as_matrix(X)
    if np.isnan(np.asarray(rows, dtype=np.float64)).any():
        raise ValueError(
            "X contains NaN, and whether clusters are real is assessed by comparing with rows "
            "without missing cells. Fill in the values, and build a tree of these rows first."
        )
