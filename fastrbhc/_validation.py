"""Checks of arguments other than rows, made once, before any work begins."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._containers import as_column, as_matrix
from fastrbhc._cores import available_cores
from fastrbhc._options import MISSING_NAMES
from fastrbhc.families import Family
from fastrbhc.families._missing import names_of_those_that_take_missing, takes_missing

LIGHTEST, HEAVIEST = 1e-50, 1e50  # weights of rows, unless they are 0
_MOST_THREADS = 256


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
        (weights > HEAVIEST, f"larger than {HEAVIEST:g}"),
        ((weights > 0.0) & (weights < LIGHTEST), f"smaller than {LIGHTEST:g} and not 0"),
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
        raise ValueError(f"{why_a_forest(tree)}: build the whole one, with {whole_by(tree)}")


def why_a_forest(tree: Any) -> str:
    """Why there are several trees, in words."""
    if tree.threshold == np.inf:
        return f"the graph of the rows is in {tree.n_trees} pieces, with a tree each"
    return (
        f"the tree was built up to threshold {tree.threshold:g} and {tree.n_trees} trees are left"
    )


def whole_by(tree: Any) -> str:
    """The option by which there would be one tree."""
    return "connect=True" if tree.threshold == np.inf else "threshold=None"


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


def check_missing(missing: Any, family: Any, algorithm: str = "auto") -> str:
    """What NaN means; "ignore" is for families whose columns are separate."""
    check_choice(missing, "missing", MISSING_NAMES)
    if missing == "ignore":
        if not takes_missing(family):
            names = ", ".join(names_of_those_that_take_missing())
            raise ValueError(
                f"missing='ignore' is for families whose columns are separate, and {family.name!r} "
                f"is not one: what is missing would have to be known. These can: {names}."
            )
        if algorithm == "levels":
            raise ValueError(
                "algorithm='levels' is for reducible dissimilarities, and with missing='ignore' "
                "they are not. Use 'greedy', which is exact, or 'nn_chain'."
            )
    return str(missing)


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


def check_pairs(pairs: ArrayLike, n: int) -> NDArray[np.int64]:
    """Pairs of rows 0…n−1, in the last dimension of an array."""
    given = np.asarray(pairs)
    if given.ndim == 0 or given.shape[-1] != 2:
        raise ValueError(f"pairs have shape {given.shape}, expected (m, 2): two rows in each")
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"pairs have to be whole numbers, got an array of {given.dtype}")
    if given.size and not (given.min() >= 0 and given.max() < n):
        wrong = given[(given < 0) | (given >= n)][0]
        raise ValueError(f"row {wrong} is not one of the tree's, which are 0 to {n - 1}")
    return given.astype(np.int64)


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
