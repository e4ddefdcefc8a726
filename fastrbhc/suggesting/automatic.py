"""What family="auto" stands for: the suggestion where it is clear, and measurements otherwise.

The rule is short, so that it can be foretold. At least 20 rows, all of zeros and ones, are
"bernoulli", or "multinomial" with a single 1 in every row. At least 20 rows of counts, which are
whole numbers with zeros and a tail, are "multinomial", "poisson" or a negative binomial, as
`suggest_family` says. A table of at least 20 rows with a column of text is a product of families,
which it names too. Everything else is for measurements, ``Gaussian(smoothing="auto")``.

Only distinct rows and their weights count, so that copies in place of weights change nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastrbhc._containers import as_column, as_matrix, column_names, columns_of
from fastrbhc.families import Family, as_family
from fastrbhc.suggesting import kinds as kind
from fastrbhc.suggesting.choice import ForCounts, for_counts, for_zeros_and_ones, some
from fastrbhc.suggesting.columns import Statistics, Table, statistics_of
from fastrbhc.suggestions import suggestion_for


class Resolved(NamedTuple):
    """A family, and a sentence for the user if it is another one than that for measurements."""

    family: Family
    sentence: str | None = None
    reason: str = ""  # of the sentence


def resolve(family: Any, X: Any, sample_weight: Any = None) -> Resolved:
    """A family as it was given, or what "auto" stands for with these rows."""
    if isinstance(family, str) and family == "auto":
        return resolve_auto(X, sample_weight)
    return Resolved(as_family(family))


def resolve_auto(X: Any, sample_weight: Any = None, names: list[str] | None = None) -> Resolved:
    """What "auto" stands for with these rows and weights.

    Rows that are not valid get the default, and errors are left to the checks that follow. Arrays
    of objects are tables if they come with names of their columns.
    """
    default = Resolved(as_family("auto"))
    if _holds_text(X, names):
        return _product(X, sample_weight, names) or default
    values = _whole_numbers(X, sample_weight)
    if values is None:
        return default
    rows, weights = values
    known = _weighted(statistics_of(rows), rows, weights)
    if known.highest.max() == 1.0:
        found = for_zeros_and_ones(rows)
    else:
        every = np.arange(rows.shape[1])
        if kind.is_picture(known) or not kind.looks_like_counts(known, every):
            return default
        kinds = kind.kinds_of(Table(rows, None, {}, set(), set()), known)
        if any(what not in (kind.COUNT, kind.CONSTANT) for what, _ in kinds):
            return default  # columns of different kinds, all of them numbers
        varied = np.flatnonzero(known.highest > known.lowest)  # as the suggestion does
        found = for_counts(rows[:, varied], some(known, varied), weights)
    return Resolved(as_family(found.family), _sentence(found), found.reason)


def _holds_text(X: Any, names: list[str] | None) -> bool:
    """Whether X is a table of enough rows with a column of text or categories."""
    # A query that has not been run has no length, and that of a sparse matrix is ambiguous.
    if sparse.issparse(X) or not hasattr(X, "__len__") or len(X) < kind.FEWEST_ROWS:
        return False
    if names is not None and isinstance(X, np.ndarray):
        return X.dtype == object and any(_is_text(column[:100]) for column in X.T)
    if column_names(X) is None:
        return False
    return any(_is_text(np.asarray(column[:100])) for column in columns_of(X))


def _is_text(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "USO" and any(isinstance(value, str) for value in values.tolist())


def _product(X: Any, sample_weight: Any, names: list[str] | None) -> Resolved | None:
    """What the suggestion says of a table with text; None if it has none."""
    try:
        weights = None if sample_weight is None else as_column(sample_weight, "sample_weight")
        if weights is not None and not _are_weights(weights, len(X)):
            return None
        suggestion = suggestion_for(X, names, weights)
    except (ValueError, TypeError):
        return None
    found = suggestion.family
    if isinstance(found, str):
        found = {found: slice(None)}
    if not isinstance(found, dict):
        return None
    sentence = (
        f"family='auto' is {found!r} for this table, whose columns are of different kinds. Name a "
        "family to choose yourself"
    )
    return Resolved(as_family(found), sentence, suggestion.reason)


def _are_weights(weights: NDArray[Any], n: int) -> bool:
    sound = weights.dtype.kind in "biuf" and weights.shape == (n,)
    return bool(sound and (weights >= 0.0).all() and 0.0 < weights.sum() < np.inf)


def _sentence(found: ForCounts) -> str:
    return (
        f"family='auto' is {found.family!r} for these rows ({found.reason}). Name a family to "
        "choose yourself: Gaussian(smoothing='auto') takes them for measurements"
    )


def _whole_numbers(X: Any, sample_weight: Any) -> tuple[Any, NDArray[np.float64] | None] | None:
    """Rows with weight, and their weights, if all values are whole and none is negative."""
    is_matrix = type(X) is np.ndarray and X.dtype.kind == "f" and X.ndim == 2 and X.size > 0
    if is_matrix and not _are_whole(X[0]):  # most measurements end here
        return None
    try:
        values = as_matrix(X, fits_memory=False)
        weights = None if sample_weight is None else as_column(sample_weight, "sample_weight")
    except (ValueError, TypeError, MemoryError, OverflowError):
        return None
    if getattr(values, "ndim", 0) != 2 or 0 in values.shape or values.dtype.kind not in "biuf":
        return None
    if weights is not None and weights.dtype.kind not in "biuf":
        return None
    if weights is not None and (weights.shape != values.shape[:1] or not (weights >= 0.0).all()):
        return None
    rows = sparse.csr_array(values) if sparse.issparse(values) else values.astype(np.float64)
    if weights is not None:
        rows, weights = rows[weights > 0.0], weights[weights > 0.0]
    present = rows.shape[0] if weights is None else weights.sum()
    if not kind.FEWEST_ROWS <= present < np.inf:
        return None
    cells = rows.data if sparse.issparse(rows) else rows
    if cells.size == 0 or not _are_whole(cells) or cells.min() < 0.0 or cells.max() == 0.0:
        return None
    return (rows.tocsc() if sparse.issparse(rows) else rows), weights


def _are_whole(values: NDArray[np.float64]) -> bool:
    return bool((np.isfinite(values) & (np.rint(values) == values)).all())


def _weighted(known: Statistics, rows: Any, weights: NDArray[np.float64] | None) -> Statistics:
    """The shares and means that decide, with weights in the place of copies."""
    if weights is None:
        return known
    total = weights.sum()
    zeros = 1.0 - (weights @ (rows != 0)) / total
    if sparse.issparse(rows):
        at_most = rows.copy()
        at_most.data = (rows.data == np.repeat(known.highest, np.diff(rows.indptr))).astype(float)
    else:
        at_most = (rows == known.highest).astype(np.float64)
    return known._replace(
        present=np.full(rows.shape[1], total),
        zeros=zeros,
        means=(weights @ rows) / total,
        at_most=(weights @ at_most) / total,
    )
