"""All checks of arguments, made once, before any work begins."""

from __future__ import annotations

import numbers
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.utils import check_array

from fastrbhc._containers import as_column, as_matrix, check_memory, column_names, memory
from fastrbhc._cores import available_cores
from fastrbhc._engine.clusters.observations import column_ranges
from fastrbhc._engine.clusters.sparse_rows import canonical
from fastrbhc.families import Domain, Family

# Squares of differences, times the total weight and summed over columns, have to stay finite.
_LARGEST = 1e120
# And so do squares of the largest difference in a column, its reciprocal and what is left of them
# once they are divided by the total weight.
_SMALLEST = 1e-120
_LIGHTEST, _HEAVIEST = 1e-50, 1e50
_MOST_THREADS = 256
# Sparse matrices with less than this share of non-zeros stay sparse, if they have more columns and
# more values than these.
_FEW_NONZEROS, _FEW_COLUMNS, _FEW_VALUES = 0.25, 16, 1_000_000


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
) -> Any:
    """X as a float64 matrix of rows in the domain of the family, or of the model.

    It is dense, or sparse, or ("auto") what suits the rows if they are sparse. The names of its
    columns, by default its own, are for messages.
    """
    values = as_rows(X, family, min_rows=min_rows, name=name, layout=layout)
    columns = names_of_columns(X, feature_names, values.shape[1])
    return check_values(values, family, columns, name, layout)


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
    if _is_matrix(X, min_rows):
        return X
    return check_array(
        as_matrix(X, name, fits_memory=layout == "dense"),
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


def check_groups(X0: ArrayLike, X1: ArrayLike, family: Family) -> tuple[Any, Any]:
    """Two groups of rows with the same columns, both dense or both sparse."""
    rows0 = check_rows(X0, family, min_rows=1, name="X0", layout="auto")
    rows1 = check_rows(X1, family, min_rows=1, name="X1", layout="auto")
    if issparse(rows0) != issparse(rows1):
        rows0, rows1 = csr_array(rows0), csr_array(rows1)
    if rows0.shape[1] != rows1.shape[1]:
        raise ValueError(f"X0 has {rows0.shape[1]} columns and X1 has {rows1.shape[1]}")
    return rows0, rows1


def check_values(
    values: Any,
    family: HasDomain,
    columns: list[str] | None = None,
    name: str = "X",
    layout: str = "dense",
) -> Any:
    """Reject values outside the domain of a family, naming the first such row and column."""
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
                place, row = row, int(np.searchsorted(whole.indptr, row, side="right")) - 1
                column = int(whole.indices[place])
            label = f"column {column}" if columns is None else f"column {columns[column]!r}"
            counting = " Rows and columns count from 0." if columns is None else ""
            others = int(wrong.sum()) - 1
            more = f" (and {others} more)" if others else ""
            raise ValueError(
                f"{what}: row {row}, {label} is {whole[row, column]:g}{more}. {advice}{counting}"
            )

    # One pass over all values decides whether to search for an invalid one.
    lowest, highest = values.min(initial=np.inf), values.max(initial=-np.inf)
    if whole is not values:
        lowest, highest = min(lowest, 0.0), max(highest, 0.0)
    domain = family.domain
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        advice = "Drop such rows or fill in the values first."
        refuse(np.isnan(values), f"Input {name} contains NaN", advice)
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
            raise ValueError(
                f"Input {name} contains {empty.size} rows without any count, the first being "
                f"row {empty[0]}. The {kind} {family.name!r} needs a positive total in every "
                "row: drop such rows."
            )
    if domain.needs_nonzero_row:
        zero = np.flatnonzero(~values.any(axis=1))
        if zero.size:
            raise ValueError(
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


def _stays_sparse(X: Any, family: HasDomain) -> bool:
    """Whether the rows of a sparse matrix are better left sparse.

    Small matrices, few columns and many non-zeros are faster dense, and so are families without
    bounds for sparse rows, as long as that fits a quarter of the memory.
    """
    n, n_columns = X.shape
    if 32 * n * n_columns > memory():
        return True
    bounded = getattr(family, "entropy_share", 0.0) > 0.0
    return (
        bounded
        and n_columns > _FEW_COLUMNS
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


def check_covariance(given: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """A covariance as floats: finite, symmetric, without a direction of negative variance."""
    covariance = np.asarray(as_matrix(given, "covariance"), dtype=np.float64)
    if covariance.shape != (n_features, n_features):
        raise ValueError(
            f"the covariance has shape {covariance.shape}, expected ({n_features}, {n_features})"
        )
    if not np.isfinite(covariance).all():
        raise ValueError("the covariance contains NaN or infinity")
    rounding = 1e-10 * np.abs(covariance).max()
    if np.abs(covariance - covariance.T).max() > rounding:
        raise ValueError("the covariance is not symmetric")
    if np.linalg.eigvalsh(covariance)[0] < -rounding:
        raise ValueError("the covariance is not positive: some direction has a negative variance")
    return covariance


def check_variances(given: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """One variance per column as floats: finite, not negative."""
    variances = as_column(given, "the variances").astype(np.float64)
    if variances.shape != (n_features,):
        raise ValueError(f"the variances have shape {variances.shape}, expected ({n_features},)")
    if not (np.isfinite(variances).all() and (variances >= 0.0).all()):
        raise ValueError("the variances have to be finite and not negative")
    return variances


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Sample weights as floats: finite, not negative, not all zero."""
    if sample_weight is None:
        return None
    given = as_column(sample_weight, "sample_weight")
    if np.iscomplexobj(given):
        raise TypeError("sample_weight has to hold real numbers, got complex ones")
    weights = given.astype(np.float64) if given.ndim else np.full(n, given, np.float64)
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({n},): one number for every row"
        )
    for wrong, what in (
        (~np.isfinite(weights), "not finite"),
        (weights < 0.0, "negative"),
        (weights > _HEAVIEST, f"larger than {_HEAVIEST:g}"),
        ((weights > 0.0) & (weights < _LIGHTEST), f"smaller than {_LIGHTEST:g} and not 0"),
    ):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"sample_weight is {what} in row {row}: {weights[row]:g}. Weights are finite "
                "numbers of at least 0; correct that one, or drop the row."
            )
    if not weights.any():
        raise ValueError("sample_weight is zero in every row: nothing is left to cluster")
    return weights


def check_threshold(threshold: Any) -> float:
    """The level at which merging stops, as a float; infinite for None."""
    if threshold is None:
        return np.inf
    if isinstance(threshold, bool) or not isinstance(threshold, numbers.Real):
        raise TypeError(f"threshold has to be a number or None, got {threshold!r}")
    level = _as_float(threshold, "threshold")
    if not level >= 0.0:
        raise ValueError(f"threshold has to be at least 0, got {level}")
    return level


def check_number(value: Any, name: str) -> float:
    """A number as a float; infinite ones too."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} has to be a number, got {value!r}")
    number = _as_float(value, name)
    if np.isnan(number):
        raise ValueError(f"{name} has to be a number, got {number}")
    return number


def _as_float(value: Any, name: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{name} is too large for double precision, which ends at 1.8e308"
        ) from None


def check_share(value: Any, name: str) -> float:
    """A number between 0 and 1, both included."""
    share = check_number(value, name)
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"{name} has to lie between 0 and 1, got {share}")
    return share


def check_positive(value: Any, name: str) -> float:
    """A finite number above 0."""
    number = check_number(value, name)
    if not 0.0 < number < np.inf:
        raise ValueError(f"{name} has to be positive and finite, got {number}")
    return number


def check_whole(tree: Any) -> None:
    """Reject a forest, in which the heights of the remaining merges are unknown."""
    if tree.n_trees > 1:
        raise ValueError(
            f"the tree was built up to threshold {tree.threshold:g} and {tree.n_trees} trees are "
            "left: build the whole one, with threshold=None"
        )


def check_count(value: Any, name: str, largest: int | None = None) -> int:
    """An integer from 1 to the number of rows."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} has to be a whole number, got {value!r}")
    count = int(value)
    if count < 1:
        raise ValueError(f"{name} has to be at least 1, got {count}")
    if largest is not None and count > largest:
        raise ValueError(
            f"{name}={count} is more than the number of rows, {largest}: ask for at most that many"
        )
    return count


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """One of the admissible words."""
    if value not in choices:
        raise ValueError(f"{name} has to be one of {', '.join(map(repr, choices))}, got {value!r}")
    return str(value)


def check_threads(n_jobs: int | None) -> int:
    """The number of threads: None for one per core, negative to count down from it."""
    available = available_cores()
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral):
        raise TypeError(f"n_jobs has to be a whole number or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs has to be positive, or negative to count from all cores, got 0")
    # More threads than that wait for one another, and a typing error should not start a million.
    most = max(_MOST_THREADS, available)
    return min(int(n_jobs), most) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


def check_algorithm(algorithm: str, family: Family) -> None:
    """Reject an algorithm whose tree would be wrong for the family."""
    if algorithm == "levels" and not family.reducible:
        raise ValueError(
            f"algorithm='levels' is for reducible families, and {family.name!r} is not one: its "
            "tree could differ from the greedy one. Use 'greedy', which is exact, or 'nn_chain'."
        )


def check_audit(audit: Any) -> bool | str:
    """False, True or "sample"."""
    if isinstance(audit, bool | np.bool_):
        return bool(audit)
    if audit != "sample":
        raise ValueError(f"audit has to be False, True or 'sample', got {audit!r}")
    return str(audit)


def check_node(node: Any, n_nodes: int) -> int:
    """A node of a tree."""
    if isinstance(node, bool) or not isinstance(node, numbers.Integral):
        raise TypeError(f"node has to be a whole number, got {node!r}")
    if not 0 <= int(node) < n_nodes:
        raise ValueError(f"node {node} is not one of the tree's, which are 0 to {n_nodes - 1}")
    return int(node)


def check_labels(labels: ArrayLike, n: int) -> NDArray[np.int64]:
    """Labels of n rows as integers; negative ones stand for no cluster."""
    given = np.asarray(labels)
    if given.dtype.kind not in "iu":
        raise TypeError(f"labels have to be whole numbers, got an array of {given.dtype}")
    if given.shape != (n,):
        raise ValueError(f"labels have shape {given.shape}, expected ({n},): one for every row")
    return given.astype(np.int64)


def check_names(names: Any, n: int, what: str = "names") -> list[str] | None:
    """Names of n rows, or of columns, as text."""
    if names is None:
        return None
    texts = [str(name) for name in names]
    if len(texts) != n:
        raise ValueError(f"there are {len(texts)} {what}, expected {n}")
    return texts
