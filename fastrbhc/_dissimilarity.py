"""d between two groups of rows, and the paper's Taylor value of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from fastrbhc._containers import as_column, column_names
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import curvature, put_covariances
from fastrbhc._engine.jit import kernel
from fastrbhc._row_validation import check_groups, check_rows, joined
from fastrbhc._table import placed
from fastrbhc._validation import check_covariance, check_missing, check_variances
from fastrbhc.families import Family, as_family, geometry_of
from fastrbhc.families._interface import FamilyLike
from fastrbhc.families._missing import observe


def dissimilarity(
    X0: ArrayLike, X1: ArrayLike, family: FamilyLike, *, missing: str = "error"
) -> float:
    """The dissimilarity d between two groups of rows.

    Parameters
    ----------
    X0, X1 : array-like of shape (n0, d) and (n1, d)
        The rows of either group. Wide sparse matrices stay sparse.
    family : str or record
        A record from `fastrbhc.families`, or its name.
    missing : {"error", "ignore"}, default="error"
        What NaN means; with "ignore", a cell that was not observed: see `linkage`.

    Returns
    -------
    float
        d ≥ 0, by which the cost of the clustering grows when the two are merged.

    Examples
    --------
    >>> import fastrbhc
    >>> fastrbhc.dissimilarity([[0.0, 0.0], [2.0, 0.0]], [[1.0, 3.0]], "ward")
    3.0
    >>> nan = float("nan")
    >>> fastrbhc.dissimilarity([[0.0, 0.0], [2.0, nan]], [[1.0, 3.0]], "ward", missing="ignore")
    2.25
    """
    family = placed(as_family(family), X0, X1)
    check_missing(missing, family)
    rows0, rows1 = check_groups(X0, X1, family, missing)
    labels = np.repeat([0, 1], [rows0.shape[0], rows1.shape[0]])
    rows = observe(family, joined(rows0, rows1))
    geometry = geometry_of(family, rows)
    clusters = statistics.clusters_of_groups(geometry, rows, labels, 2)
    return float(statistics.dissimilarities(geometry, clusters)[0])


def taylor_dissimilarity(
    X0: ArrayLike, X1: ArrayLike, family: FamilyLike, mean: Any = None
) -> float:
    """The second-order Taylor value of the dissimilarity d between two groups of rows.

    With n₀, n₁ the weights of the groups and t₀, t₁ their mean statistics it is

        n₀n₁ / (2(n₀ + n₁)) · (t₀ − t₁)ᵀ φ″(μ) (t₀ − t₁),

    φ″ being the second derivative of the smoothed φ at the mean μ. It is reducible, which d in
    general is not, and d comes close to it as groups of one distribution grow: that is the
    paper's reason why d is reducible in most cases (Lee & Choi 2015, section 3.2).

    Parameters
    ----------
    X0, X1 : array-like of shape (n0, d) and (n1, d)
        The rows of either group. Wide sparse matrices stay sparse.
    family : str or record
        A record from `fastrbhc.families`, or its name.
    mean : array-like of shape (d,), or a pair (mean, covariance), optional
        μ, as a row of the data: what rows are on the average, such as the rates of the Poisson
        family; for multinomial counts only the proportions matter. Where clusters have a
        covariance, as in the Gaussian family, the pair of the mean, of shape (d,), and the
        covariance, of shape (d, d), without the smoothing. Where they have variances alone, the
        pair of the mean and the variances, both of shape (d,). For a product of families and for
        categories, rows with the same columns as X0, whose mean statistic is μ: several rows for
        shares of levels, and where a block has covariances. By default all rows of X0 and X1
        together.

    Returns
    -------
    float
        The Taylor value, at least 0. For the spherical Gaussian it is d itself.

    Notes
    -----
    Around μ the cost f = nφ(t) of a cluster is, up to terms of third order,

        nφ(μ) + nφ′(μ)·(t − μ) + n/2·(t − μ)ᵀφ″(μ)(t − μ).

    In d = f(a) + f(b) − f(a∪b) the first two terms cancel, because n = n₀ + n₁ and
    nt = n₀t₀ + n₁t₁. Of the third one is left n₀n₁/(2n) times the form in t₀ − t₁, as for numbers
    n₀x² + n₁y² − (n₀x + n₁y)²/n = (n₀n₁/n)(x − y)².

    For a separable family the form is Σⱼ φ₁″(μⱼ)(t₀ⱼ − t₁ⱼ)². Smoothing by φ(αt + γ) makes that
    α²φ₁″(αμⱼ + γ). For the Gaussian with full covariance t is the pair of mean and second moment,
    and along its difference (u, U) the form is

        uᵀM⁻¹u + ½ tr((M⁻¹M′)²),    M = Σ + εI,    M′ = U − uμᵀ − μuᵀ.

    Examples
    --------
    >>> import fastrbhc
    >>> X0, X1 = [[39, 8], [42, 11]], [[45, 9]]
    >>> round(fastrbhc.dissimilarity(X0, X1, "poisson"), 4)
    0.1678
    >>> round(fastrbhc.taylor_dissimilarity(X0, X1, "poisson"), 4)
    0.1696
    >>> round(fastrbhc.taylor_dissimilarity(X0, X1, "poisson", mean=[40, 10]), 4)
    0.177
    """
    family = placed(as_family(family), X0, X1)
    rows0, rows1 = check_groups(X0, X1, family)
    n_features = rows0.shape[1]
    if not hasattr(family.geometry(n_features), "curvature"):
        raise TypeError(f"the family {family.name!r} does not define its second derivative")
    # Sums are taken in one order, so that the last digit does not depend on which group is first.
    if isinstance(rows0, np.ndarray) and rows1.tobytes() < rows0.tobytes():
        rows0, rows1 = rows1, rows0
    centre, covariance = _centre(rows0, rows1, family, mean)
    labels = np.repeat([0, 1, 2], [rows0.shape[0], rows1.shape[0], centre.shape[0]])
    with np.errstate(all="ignore"):
        rows = family.observe(joined(rows0, rows1, centre))
        geometry = geometry_of(family, rows)
        clusters = statistics.clusters_of_groups(geometry, rows, labels, 3)
        if covariance is not None:
            put_covariances(geometry, clusters, np.array([2]), covariance[None])
        value = float(taylor_value(geometry, clusters, 0, 1, 2, new_scratch(geometry, n_features)))
    if not np.isfinite(value):
        raise ValueError(
            f"the second derivative of the family {family.name!r} is not finite at this mean. "
            "Choose a mean inside its domain, or a smoothing that brings it there."
        )
    return value


def _centre(
    rows0: Any,
    rows1: Any,
    family: Family,
    mean: Any,
) -> tuple[Any, NDArray[np.float64] | None]:
    """Rows whose mean is μ, and the covariance there if it is not theirs."""
    if mean is None:
        return joined(rows0, rows1), None
    if hasattr(family, "encode"):
        return _mean_rows(family, mean), None
    covariance = None
    if family.covariance != "none":
        if not (isinstance(mean, (tuple, list)) and len(mean) == 2):
            what = "covariance" if family.covariance == "full" else "variances"
            raise TypeError(f"for the family {family.name!r} mean has to be a pair (mean, {what})")
        mean, covariance = mean
    row = as_column(mean, "mean").astype(np.float64)
    n_features = rows0.shape[1]
    if row.shape != (n_features,):
        raise ValueError(f"mean has shape {row.shape}, expected ({n_features},)")
    if covariance is not None:
        check = check_covariance if family.covariance == "full" else check_variances
        covariance = check(covariance, n_features)
    layout = "sparse" if issparse(rows0) else "dense"
    return check_rows(row[None], family, min_rows=1, name="mean", layout=layout), covariance


def _mean_rows(family: Any, mean: Any) -> NDArray[np.float64]:
    """Rows whose mean statistic is μ; one row may be given by itself."""
    if column_names(mean) is None and np.ndim(np.asarray(mean, object)) == 1:
        mean = np.asarray(mean, object)[None]
    rows: NDArray[np.float64] = check_rows(mean, family, min_rows=1, name="mean")
    scattered = [
        block.family.name
        for block in getattr(family, "blocks", ())
        if block.family.covariance != "none"
    ]
    if scattered and rows.shape[0] == 1:
        raise ValueError(
            f"mean is one row, and the block {scattered[0]!r} has covariances: give several rows"
        )
    return rows


@kernel
def taylor_value(geometry, clusters, i, j, centre, scratch):
    """The Taylor value of d between slots i and j, φ″ at the mean statistic of a third slot."""
    w0, w1 = clusters.weights[i], clusters.weights[j]
    form = curvature(geometry, clusters, i, j, centre, scratch)
    return 0.5 * (w0 * w1 / (w0 + w1)) * form
