"""Checks of rows, made once, before any work begins: their shape, layout and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, vstack

from fastrbhc._containers import as_matrix, check_memory, column_names, memory
from fastrbhc._engine.clusters.observations import column_ranges
from fastrbhc._engine.clusters.sparse_rows import canonical
from fastrbhc._gaps import (
    on_ignoring,
    refuse_empty_rows,
    refuse_gaps_of_block,
    with_valid_values,
)
from fastrbhc._table import table_of
from fastrbhc._validation import check_names
from fastrbhc.families import Domain, Family
from fastrbhc.families._missing import has_gaps, takes_missing, used_columns

# Squares of differences, times the total weight and summed over columns, have to stay finite.
_LARGEST = 1e120
# And so do squares of the largest difference in a column, its reciprocal and what is left of them
# once they are divided by the total weight.
_SMALLEST = 1e-120
# Sparse matrices with less than this share of non-zeros stay sparse, if they have more columns and
# more values than these.
_FEW_NONZEROS, _FEW_COLUMNS, _FEW_VALUES = 0.25, 16, 1_000_000


class EmptyRowsError(ValueError):
    """Rows of zeros that a family cannot take; the command line adds the option to drop them."""


class HasDomain(Protocol):
    """A family or a Bayesian model, as far as the checks of rows are concerned."""

    name: str

    @property
    def domain(self) -> Domain:
        """The values that a row may hold."""

    def check_rows(self, X: NDArray[np.float64]) -> None:
        """Refuse rows within the domain that do not suit the parameters."""


def check_rows(
    X: ArrayLike,
    family: HasDomain,
    *,
    min_rows: int = 2,
    name: str = "X",
    layout: str = "dense",
    feature_names: Any = None,
    missing: str | None = None,
) -> Any:
    """X as a float64 matrix of rows in the domain of the family, or of the model.

    It is dense, or sparse, or ("auto") what suits the rows if they are sparse. The names of its
    columns, by default its own, are for messages. ``missing`` says what NaN means; None if the
    caller has no such option.
    """
    values = as_rows(X, family, min_rows=min_rows, name=name, layout=layout)
    columns = names_of_columns(X, feature_names, values.shape[1])
    return check_values(values, family, columns, name, layout, missing)


def refuse_without_a_family(values: Any, name: str, option: str) -> None:
    """Refuse a large sparse matrix if nobody has said which family it is for.

    The default family is for measurements. It would make the rows dense, and a covariance of
    thousands of columns takes very long. ``option`` is how to name one, with {} in its place.
    """
    if issparse(values) and _is_large_and_sparse(values):
        n, n_columns = values.shape
        raise ValueError(
            f"{name} is a sparse matrix of {n:,} rows and {n_columns:,} columns, and the default "
            f"family is for measurements in few columns. Say {option.format('multinomial')} for "
            f"words or genes, {option.format('poisson')} for clicks or visits, or "
            f"{option.format('bernoulli')} for zeros and ones. {option.format('gaussian')} would "
            "make it dense, and may take very long"
        )


def dense_if_needed(values: Any, family: HasDomain, name: str) -> Any:
    """Sparse rows as they are if the family takes them, and dense otherwise."""
    if not issparse(values) or family.domain.takes_sparse:
        return values
    try:
        check_memory(values.shape, name)
    except MemoryError as error:
        raise MemoryError(
            f"{error}. The family {family.name!r} needs that. Families of counts, such as "
            "multinomial and poisson, take sparse rows as they are"
        ) from None
    return values.toarray()


def names_of_columns(X: Any, given: Any, n_features: int) -> list[str] | None:
    """The names that are given for the columns, or else those of a data frame; None if none."""
    if given is None:
        return column_names(X)
    if isinstance(given, str | bytes) or np.ndim(given) != 1:
        raise ValueError(
            f"feature_names is {str(given)[:40]!r}: a list with one name for every column was "
            "expected, as get_feature_names_out() of a vectoriser returns it"
        )
    return check_names(given, n_features, "feature_names")


def as_rows(
    X: ArrayLike,
    family: HasDomain,
    *,
    min_rows: int = 2,
    name: str = "X",
    layout: str = "dense",
) -> Any:
    """X as a float64 matrix, sparse if it was and the family takes that; values unchecked."""
    if hasattr(family, "encode"):
        X = family.encode(table_of(X))
    if _is_matrix(X, min_rows):
        return X
    matrix = as_matrix(X, name, fits_memory=layout == "dense")
    if issparse(matrix) and not family.domain.takes_sparse:
        kinds = "Models" if getattr(family, "kind", "family") == "model" else "Families"
        raise TypeError(
            f"Input {name} is a sparse matrix, and {family.name!r} takes dense rows only. {kinds} "
            "of counts take sparse rows as they are: 'multinomial' for words or genes, 'poisson' "
            "for clicks or visits, 'bernoulli' for zeros and ones. If it holds measurements in few "
            f"columns, pass {name}.toarray()."
        )
    from sklearn.utils import check_array  # arrays of floats do without scikit-learn

    return check_array(
        matrix,
        accept_sparse="csr" if family.domain.takes_sparse else False,
        dtype=np.float64,
        order="C",
        ensure_all_finite=False,
        ensure_min_samples=min_rows,
        input_name=name,
    )


def joined(*groups: Any) -> Any:
    """Groups of rows, all dense or all sparse, as one matrix."""
    return vstack(groups, "csr") if issparse(groups[0]) else np.concatenate(groups)


def _is_matrix(X: Any, min_rows: int) -> bool:
    """Whether X needs no conversion: a shortcut for callers with many small data sets."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.shape[0] >= min_rows
        and X.shape[1] >= 1
        and X.flags.c_contiguous
        and X.flags.aligned
    )


def check_groups(
    X0: ArrayLike, X1: ArrayLike, family: Family, missing: str | None = None
) -> tuple[Any, Any]:
    """Two groups of rows with the same columns, both dense or both sparse."""
    rows0 = check_rows(X0, family, min_rows=1, name="X0", layout="auto", missing=missing)
    rows1 = check_rows(X1, family, min_rows=1, name="X1", layout="auto", missing=missing)
    if issparse(rows0) != issparse(rows1):
        rows0, rows1 = csr_array(rows0), csr_array(rows1)
    if rows0.shape[1] != rows1.shape[1]:
        raise ValueError(f"X0 has {rows0.shape[1]} columns and X1 has {rows1.shape[1]}")
    return rows0, rows1


def check_values(
    values: Any,
    family: HasDomain,
    columns: Sequence[str | int] | None = None,
    name: str = "X",
    layout: str = "dense",
    missing: str | None = None,
) -> Any:
    """Reject values outside the domain of a family, naming the first such row and column.

    ``columns`` are their names, or their positions if they have no names.
    """
    if hasattr(family, "parts"):
        return _check_parts(values, family, columns, name, layout, missing)
    if missing == "ignore":
        return _check_observed(values, family, columns, name, layout)
    if layout == "sparse" and family.domain.takes_sparse:
        values = csr_array(values)
    elif layout == "sparse":
        raise ValueError(
            f"neighbors='inverted' is for families of counts, which take zeros, and "
            f"{family.name!r} is none"
        )
    if issparse(values):
        values = canonical(values)
        if layout == "dense" or (layout == "auto" and not _stays_sparse(values, family)):
            check_memory(values.shape, f"Input {name}")
            values = values.toarray()
    whole, values = values, values.data[:, None] if issparse(values) else values

    def refuse(wrong: NDArray[np.bool_], what: str, advice: str) -> None:
        if wrong.any():
            row, column = (int(place) for place in np.argwhere(wrong)[0])
            if whole is not values:
                entry, row = row, int(np.searchsorted(whole.indptr, row, side="right")) - 1
                column = int(whole.indices[entry])
            label = column if columns is None else columns[column]
            counting = " Rows and columns count from 0." if isinstance(label, int) else ""
            others = int(wrong.sum()) - 1
            more = f" (and {others} more)" if others else ""
            place = f"row {row}, column {label!r} is {whole[row, column]:g}{more}"
            raise ValueError(f"{what}: {place}. {advice}{counting}")

    # One pass over all values decides whether to search for an invalid one.
    lowest, highest = values.min(initial=np.inf), values.max(initial=-np.inf)
    if whole is not values:
        lowest, highest = min(lowest, 0.0), max(highest, 0.0)
    domain = family.domain
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        advice = "Drop such rows or fill in the values first."
        if hasattr(family, "levels"):
            advice = "Drop such rows, or make it a level of its own, such as 'unknown'."
        # Sparse rows have no cells that were not observed.
        ignoring = "" if missing is None or whole is not values else on_ignoring(family)
        nan = "a missing value" if hasattr(family, "levels") else "NaN"
        refuse(np.isnan(values), f"Input {name} contains {nan}", advice + ignoring)
        refuse(np.isinf(values), f"Input {name} contains infinity", advice)
    if max(-lowest, highest) > _LARGEST:
        refuse(
            np.abs(values) > _LARGEST,
            f"Input {name} contains values whose squares overflow when summed",
            f"Measure that column in a larger unit: up to {_LARGEST:g} will do.",
        )
    kind = getattr(family, "kind", "family")
    takes = f"The {kind} {family.name!r} takes values in {domain}"
    remedy = f"correct or drop such rows, or choose another {kind}."
    if lowest < domain.lower:
        sign = "Negative values" if domain.lower == 0.0 else "Too small values"
        refuse(values < domain.lower, f"{sign} in data passed as {name}", f"{takes}: {remedy}")
    if lowest == domain.lower and not domain.includes_lower:
        advice = f"{takes}."
        if hasattr(family, "smoothing"):
            advice = f"{takes}; with a positive smoothing it takes the boundary too."
        refuse(values == domain.lower, f"Input {name} reaches {domain.lower:g}", advice)
    if highest > domain.upper:
        refuse(
            values > domain.upper,
            f"Too large values in data passed as {name}",
            f"{takes}: {remedy}",
        )
    if domain.needs_positive_total:
        empty = np.flatnonzero(np.asarray(whole.sum(axis=1)).ravel() <= 0.0)
        if empty.size:
            raise EmptyRowsError(
                f"Input {name} contains {empty.size} rows without any count, the first being "
                f"row {empty[0]}. The {kind} {family.name!r} needs a positive total in every "
                "row: drop such rows."
            )
    if domain.needs_nonzero_row:
        zero = np.flatnonzero(~values.any(axis=1))
        if zero.size:
            raise EmptyRowsError(
                f"Input {name} contains {zero.size} rows of zeros, the first being row {zero[0]}. "
                f"The {kind} {family.name!r} needs a direction in every row: drop such rows."
            )
    if whole is not values:
        # Any column is 0 in some row: two rows with its range stand for all.
        values = np.array([[0.0], [highest]])
        if domain.needs_positive_total:
            values = np.asarray(whole.sum(axis=1)).reshape(-1, 1)
    _check_resolution(values, family, name)
    family.check_rows(values)
    return whole


def _check_parts(
    values: Any,
    family: Any,
    columns: Sequence[str | int] | None,
    name: str,
    layout: str,
    missing: str | None,
) -> Any:
    """The same for a product: each block of columns by its own family."""
    if layout == "sparse":
        raise ValueError("neighbors='inverted' is for a single family of counts, not for products")
    names = range(values.shape[1]) if columns is None else columns
    if missing == "ignore" and has_gaps(values):
        refuse_empty_rows(used_columns(family, values), name)
    for block, (distribution, part) in zip(family.blocks, family.parts(values), strict=True):
        own = [names[k] for k in block.columns]
        if missing == "ignore" and has_gaps(part):
            if not takes_missing(distribution):
                refuse_gaps_of_block(part, distribution, own, name)
            part = with_valid_values(part, distribution)
        check_values(part, distribution, own, name, missing="error" if missing else None)
    return values


def _check_observed(
    values: Any, family: HasDomain, columns: Sequence[str | int] | None, name: str, layout: str
) -> Any:
    """The same for rows in which NaN stands for a missing cell."""
    if layout == "sparse":
        raise ValueError(
            "neighbors='inverted' makes rows sparse, and missing='ignore' is for dense rows"
        )
    if issparse(values):
        rows = check_values(values, family, columns, name, layout)
        if issparse(rows):
            raise ValueError(
                f"Input {name} is a sparse matrix, and missing='ignore' is for dense rows: what a "
                "sparse matrix leaves out is 0, and not missing. Leave the option out."
            )
        return rows
    if has_gaps(values):
        refuse_empty_rows(values, name)
        check_values(with_valid_values(values, family), family, columns, name, layout)
        return values
    return check_values(values, family, columns, name, layout)


def _stays_sparse(X: Any, family: HasDomain) -> bool:
    """Whether the rows of a sparse matrix are better left sparse.

    Small matrices, few columns and many non-zeros are faster dense, and so are families without
    bounds for sparse rows, as long as that fits a quarter of the memory.
    """
    if 32 * X.shape[0] * X.shape[1] > memory():
        return True
    return getattr(family, "entropy_share", 0.0) > 0.0 and _is_large_and_sparse(X)


def _is_large_and_sparse(X: Any) -> bool:
    n, n_columns = X.shape
    return bool(
        n_columns > _FEW_COLUMNS
        and n * n_columns > _FEW_VALUES
        and X.nnz < _FEW_NONZEROS * n * n_columns
    )


def _check_resolution(values: NDArray[np.float64], family: HasDomain, name: str) -> None:
    """Reject rows so small that their dissimilarities would underflow."""
    domain = family.domain
    advice = f"Measure in a smaller unit: multiply by a power of ten, so that {name} is"
    if domain.needs_positive_total:
        totals = values.sum(axis=1)
        small = np.flatnonzero(totals < _SMALLEST)
        if small.size:
            raise ValueError(
                f"Input {name} contains rows with very small totals: row {small[0]} adds up to "
                f"{totals[small[0]]:g}. Scale all counts by the same factor, so that totals are at "
                f"least {_SMALLEST:g}."
            )
        return
    if domain.needs_nonzero_row:
        small = np.flatnonzero(np.abs(values).max(axis=1) < _SMALLEST)
        if small.size:
            raise ValueError(
                f"Input {name} contains rows whose squares underflow: row {small[0]} has no value "
                f"above {_SMALLEST:g}. Only directions matter here: multiply such rows by any "
                "large number."
            )
        return
    if not domain.includes_lower and 0.0 <= values.min() - domain.lower < _SMALLEST:
        raise ValueError(
            f"Input {name} contains values as small as {values.min():g}, whose reciprocals "
            f"overflow when squared. {advice} at least {_SMALLEST:g}."
        )
    # Two rows that differ enough settle it without a pass over all values.
    if np.abs(values[0] - values[-1]).max() >= _SMALLEST:
        return
    lowest, highest = column_ranges(values)
    width = (highest - lowest).max()
    if 0.0 < width < _SMALLEST:
        raise ValueError(
            f"Input {name} contains values that differ by at most {width:g}, and their squares "
            f"underflow. {advice} at least {_SMALLEST:g} wide in some column."
        )
