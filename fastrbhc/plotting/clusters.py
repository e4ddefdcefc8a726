"""Rows as points in the plane, coloured by cluster, with an ellipse around each cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._optional import require
from fastrbhc._row_validation import check_rows, column_names
from fastrbhc._validation import check_count, check_labels
from fastrbhc.families import Family, as_family
from fastrbhc.families._interface import FamilyLike
from fastrbhc.plotting._frame import label_axis, set_title
from fastrbhc.plotting._style import HUES, axes, background, hue, ink, legend, number, plural, tidy

# More clusters than this are too many for numbers.
_MOST_NUMBERED = 30
_SEED = 0
# Where colours begin again, so that clusters of the same one differ.
_MARKERS = ("o", "s", "^", "D")


class Plane(NamedTuple):
    """Rows as a family sees them, and where they lie on the paper."""

    family: Family | None  # None if the place of the rows has nothing to do with it
    means: Any  # (n, d), mean statistics, sparse if the rows are
    trials: NDArray[np.float64]  # (n,), what each row weighs to the family
    axes: NDArray[np.float64]  # (2 or 1, d), orthonormal directions
    points: NDArray[np.float64]  # (n, 2 or 1)
    names: list[str]  # of the directions


def plot_clusters(
    X: ArrayLike | None,
    labels: ArrayLike,
    ax: Any = None,
    *,
    coordinates: ArrayLike | None = None,
    family: FamilyLike = "gaussian",
    n_std: float = 2.0,
    max_points: int = 20_000,
    names: Sequence[str] | None = None,
) -> Any:
    """Draw rows as points, coloured by cluster, and for each cluster the ellipse of its family.

    Rows of more than two columns are seen along their two principal axes. For categories and for
    columns of different families, these are the axes of ``family.coordinates``, in which columns
    compare.

    Parameters
    ----------
    X : array-like of shape (n, d), or None
        Rows of counts or measurements. Wide sparse matrices stay sparse. None will do if
        coordinates are given.
    labels : array-like of shape (n,)
        Cluster of each row, as ``tree.cut`` or ``labels_`` has them. Rows with a
        negative label belong to none and are grey.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    coordinates : array-like of shape (n, 2), optional
        Where to draw the rows instead, as UMAP or t-SNE have placed them, or longitude and
        latitude. Clusters have no ellipses then: those of a family are about its columns.
    family : str or record, default="gaussian"
        A record from `fastrbhc.families`, or its name. ``tree.plot_clusters`` knows it.
    n_std : float, default=2.0
        Size of the ellipses, in standard deviations.
    max_points : int, default=20000
        Of more rows a random sample is drawn; ellipses are of all rows.
    names : sequence of str, optional
        Names of the columns, if X is no data frame.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    An ellipse has the covariance that the family gives to the rows of a cluster, without smoothing:

    - with full covariance, that of the cluster itself; with a diagonal one, its variances in each
      column; for directions, which have no other, that of the cluster's rows again;
    - for the spherical Gaussian one circle for all, of the mean square distance to the centres, as
      its variance only scales the dissimilarities;
    - for other families the variance that belongs to the cluster's mean, 1/φ″: for Poisson counts
      the mean itself, for proportions of m trials (diag(p) − ppᵀ)/m.

    Where points reach far out of their ellipse, the data vary more than the family allows for.
    Multinomial rows are drawn as proportions.

    Examples
    --------
    >>> import numpy as np
    >>> import fastrbhc
    >>> X = np.random.default_rng(0).poisson([[4, 9]] * 50 + [[40, 90]] * 50)
    >>> labels = fastrbhc.linkage(X, "poisson").cut(n_clusters=2)
    >>> ax = fastrbhc.plotting.plot_clusters(X, labels, family="poisson")
    >>> len(ax.patches)
    2
    """
    require("matplotlib", "drawing clusters")
    if coordinates is not None:
        plane = _plane_given(coordinates, X)
    elif X is None:
        raise ValueError("plot_clusters needs X, the rows, or coordinates= to draw them at")
    else:
        plane = plane_of(X, family, names)
    clusters = check_labels(labels, len(plane.points))
    if not n_std > 0.0:
        raise ValueError(f"n_std has to be positive, got {n_std}")
    check_count(max_points, "max_points")
    new = ax is None
    return draw(plane, clusters, axes(ax, (6.8, 5.0)), n_std, max_points, beside=new)


def _plane_given(coordinates: ArrayLike, X: Any) -> Plane:
    """The plane in which somebody else has placed the rows."""
    points = np.asarray(coordinates, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"coordinates have shape {points.shape}, expected (n, 2)")
    if not np.isfinite(points).all():
        raise ValueError("coordinates have NaN or infinite values")
    if X is not None and len(points) != np.shape(X)[0]:
        raise ValueError(f"there are {len(points)} coordinates for {np.shape(X)[0]} rows")
    names = column_names(coordinates) or ["coordinate 1", "coordinate 2"]
    return Plane(None, None, np.ones(len(points)), np.eye(2), points, list(names))


def plane_of(X: ArrayLike, family: FamilyLike, names: Sequence[str] | None = None) -> Plane:
    """Find the plane to draw rows in: their columns, or principal axes where there are many."""
    from sklearn.decomposition import PCA

    family = as_family(family)
    rows = check_rows(X, family, min_rows=1, layout="auto")
    observed = family.observe(rows)
    is_sparse = sparse.issparse(rows)
    weights = observed.all_weights()
    has_levels = isinstance(observed, SparseObservations) or bool(observed.sparse)
    if hasattr(family, "encode") and (rows.shape[1] > 2 or has_levels):
        # Columns in units that do not compare, and levels.
        means = family.coordinates(rows)
        means = np.column_stack([means, np.zeros((len(means), max(0, 3 - means.shape[1])))])
    else:
        means = observed.centred_means() if is_sparse else observed.means
    n, d = means.shape
    if d <= 2:
        named = column_names(X) or list(names or ())
        if len(named) != d:
            named = [f"column {column}" for column in range(d)]
        if family.base is None:
            means = family.in_units_of_rows(means)
        else:  # ellipses are those of transformed rows
            named = [f"{name}, transformed" for name in named]
        return Plane(family, means, weights, np.eye(d), means, named)
    directions = np.zeros((2, d))
    shares = np.zeros(2)
    if n > 1:
        # Sparse rows stay sparse: they are centred in products only.
        solver = "arpack" if is_sparse else "auto"
        model = PCA(min(2, n), svd_solver=solver, random_state=_SEED).fit(means)
        directions[: len(model.components_)] = model.components_
        shares[: len(model.components_)] = model.explained_variance_ratio_
    named = [
        f"principal axis {place} ({100.0 * share:.0f} % of the variance)"
        for place, share in enumerate(np.nan_to_num(shares), start=1)
    ]
    if is_sparse:
        points = means @ directions.T - means.mean(axis=0) @ directions.T
    else:
        points = (means - means.mean(axis=0)) @ directions.T
    return Plane(family, means, weights, directions, points, named)


def draw(
    plane: Plane,
    labels: NDArray[np.int64],
    ax: Any,
    n_std: float = 2.0,
    max_points: int = 20_000,
    beside: bool = False,
) -> Any:
    """Draw rows and ellipses; everything has been checked. The legend may be beside the Axes."""
    from matplotlib.patches import Ellipse
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator

    known, slots = np.unique(labels[labels >= 0], return_inverse=True)
    points, outlines = plane.points, []
    if plane.family is None:
        inside = [points[labels == label] for label in known.tolist()]
        centres = np.array([np.median(part, axis=0) for part in inside]).reshape(-1, 2)
        covariances = np.zeros((known.size, 2, 2))
    else:
        centres, covariances = ellipses(plane, labels, known.size, slots)
    if points.shape[1] == 1:  # one column: a line for each cluster, rows scattered about it
        jitter = np.random.default_rng(_SEED).uniform(-0.3, 0.3, len(points))
        points = np.column_stack([points[:, 0], labels + jitter])
        centres = np.column_stack([centres, known])
    shown = np.arange(len(points))
    if len(points) > max_points:
        chosen = np.random.default_rng(_SEED).choice(len(points), max_points, replace=False)
        shown = np.sort(chosen)
    # Smaller and fainter, the more there are.
    size = float(np.clip(30.0 * (300.0 / shown.size) ** 0.5, 3.0, 30.0))
    colours = np.array([hue(label, ax) for label in (*range(len(HUES)), -1)])
    cycles = np.maximum(labels[shown], 0) // len(HUES)
    for cycle in np.unique(cycles).tolist():
        rows = shown[cycles == cycle]
        ax.scatter(
            *points[rows].T,
            s=size,
            c=colours[np.where(labels[rows] < 0, -1, labels[rows] % len(HUES))],
            marker=_MARKERS[cycle % len(_MARKERS)],
            alpha=0.8 if shown.size < 2000 else 0.5,
            linewidths=0,
            rasterized=shown.size > 2000,
        )
    for slot, label in enumerate(known.tolist()):
        width, height, angle = _axes_of(covariances[slot], n_std)
        if height == 0.0 and points is not plane.points:
            height = 0.6
        if width > 0.0:
            outlines.append((label, Ellipse(centres[slot], width, height, angle=angle)))
    for label, outline in outlines:
        outline.set(facecolor="none", edgecolor=hue(label, ax), linewidth=1.6)
        if label // len(HUES) % 2:
            outline.set_linestyle("--")
        ax.add_patch(outline)
    if known.size <= _MOST_NUMBERED:
        for slot, label in enumerate(known.tolist()):
            ax.annotate(
                str(label),
                centres[slot],
                ha="center",
                va="center",
                fontweight="bold",
                color=ink(ax),
                path_effects=[withStroke(linewidth=3.0, foreground=background(ax))],
            )
    ax.autoscale_view()
    names = plane.names if len(plane.names) == 2 else [plane.names[0], "cluster"]
    label_axis(ax, "x", names[0])
    label_axis(ax, "y", names[1])
    tidy(ax, "top", "right")
    if plane.points.shape[1] == 1:
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    elif plane.family is None or plane.means.shape[1] > 2 or plane.family.quadratic:
        # One scale for all directions: circles have to look like circles.
        ax.set_aspect("equal", adjustable="datalim")
    rows = plural(len(labels), "row")
    if shown.size < len(labels):
        rows = f"{shown.size:,} of {rows}"
    k = plural(known.size, "cluster")
    titles = [f"{k}, {rows}", k]
    family = "" if plane.family is None or not outlines else plane.family.name
    if beside:
        _explain(labels, known, family, n_std, ax)
    elif family:  # a legend would cover points
        what = f"ellipses: {number(n_std)} s.d."
        titles = [f"{titles[0]}; {what} of {family}", f"{k}; {what}", *titles]
    set_title(ax, *titles)
    return ax


def _explain(
    labels: NDArray[np.int64], known: NDArray[np.int64], family: str, n_std: float, ax: Any
) -> None:
    """A legend beside the Axes, of colours as long as they differ, and of ellipses."""
    from matplotlib.lines import Line2D

    point: Any = {"marker": "o", "linestyle": "none", "markersize": 6, "markeredgewidth": 0}
    handles = []
    if known.max(initial=0) < len(HUES):
        counts = np.bincount(labels[labels >= 0], minlength=len(HUES))
        handles = [
            Line2D([], [], color=hue(k, ax), label=f"{k}: {plural(int(counts[k]), 'row')}", **point)
            for k in known.tolist()
        ]
    if (labels < 0).any():
        text = f"in none: {plural(int((labels < 0).sum()), 'row')}"
        handles.append(Line2D([], [], color=hue(-1, ax), label=text, **point))
    if family:
        text = f"{number(n_std)} standard deviation{'' if n_std == 1.0 else 's'}\nof {family}"
        shape: Any = {"marker": "o", "markersize": 9, "fillstyle": "none", "linestyle": "none"}
        handles.append(Line2D([], [], color=ink(ax), label=text, **shape))
    if handles:
        legend(ax, handles, "cluster", loc="upper left", bbox_to_anchor=(1.0, 1.0))


def ellipses(
    plane: Plane, labels: NDArray[np.int64], n_clusters: int, slots: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centre and covariance of each cluster on the paper: (k, p) and (k, p, p)."""
    family: Any = plane.family
    rows = np.flatnonzero(labels >= 0)
    member = sparse.csr_array((np.ones(rows.size), (slots, rows)), shape=(n_clusters, len(labels)))
    counts = member.sum(axis=1)[:, None]
    weights = plane.trials
    by_weight = member * weights  # a cluster's mean is that of all its trials
    totals = by_weight.sum(axis=1)[:, None]
    centres = (by_weight @ plane.points) / totals
    steps = plane.points[rows] - centres[slots]
    p = plane.points.shape[1]
    if not family.separable and family.covariance == "diagonal":
        means = (by_weight @ plane.means) / totals
        squares = member[:, rows] @ (plane.means[rows] - means[slots]) ** 2
        return centres, np.einsum("pj,kj,qj->kpq", plane.axes, squares / counts, plane.axes)
    if not family.separable:
        products = (steps[:, :, None] * steps[:, None, :]).reshape(-1, p * p)
        scatter = member[:, rows] @ products
        return centres, (scatter / counts).reshape(n_clusters, p, p)
    if sparse.issparse(plane.means):
        means = sparse.diags_array(1.0 / totals[:, 0]) @ (by_weight @ plane.means)
    else:
        means = (by_weight @ plane.means) / totals
    if family.quadratic:
        n, d = max(rows.size, 1), plane.means.shape[1]
        squares = _squares(plane.means[rows], means, slots)
        return centres, np.broadcast_to(squares / (n * d) * np.eye(p), (n_clusters, p, p))
    variances, at_zero = _variances(family, means)
    products = (plane.axes[:, None, :] * plane.axes).reshape(p * p, -1)
    covariances = variances @ products.T + at_zero * products.sum(axis=1)
    covariances = covariances.reshape(n_clusters, p, p)
    sums = plane.means.sum(axis=1)
    if np.ptp(sums) <= 1e-9 * np.abs(sums).max() and plane.means.shape[1] > 1:
        # Shares of a whole: no variance along (1, …, 1), where 1/φ″ knows nothing of the sum.
        along = variances @ plane.axes.T + at_zero * plane.axes.sum(axis=1)
        total = (variances.sum(axis=1) + at_zero * plane.axes.shape[1])[:, None, None]
        covariances -= np.divide(
            along[:, :, None] * along[:, None, :], total, out=np.zeros_like(covariances),
            where=total > 0.0,
        )  # fmt: skip
    per_trial = (member @ (1.0 / weights))[:, None] / counts
    return centres, covariances * per_trial[:, :, None]


def _variances(family: Family, means: Any) -> tuple[Any, float]:
    """The variances of columns with these means, less one that is returned too.

    For sparse means that is the variance at 0, so that the differences are sparse as well.
    """
    if not sparse.issparse(means):
        return statistics.variances_at(family, means), 0.0
    at_zero = float(statistics.variances_at(family, np.zeros(1))[0])
    variances = means.copy()
    variances.data = statistics.variances_at(family, means.data) - at_zero
    return variances, at_zero


def _squares(rows: Any, means: Any, slots: NDArray[np.intp]) -> float:
    """The sum of squared distances of rows to the means of their clusters."""
    if not sparse.issparse(rows):
        return float(((rows - means[slots]) ** 2).sum())
    cross = rows.multiply(means[slots]).sum()
    own = means.multiply(means).sum(axis=1)[slots].sum()
    return float((rows.data**2).sum() - 2.0 * cross + own)


def _axes_of(covariance: NDArray[np.float64], n_std: float) -> tuple[float, float, float]:
    """Width, height and angle of an ellipse, in degrees."""
    values, vectors = np.linalg.eigh(covariance)
    lengths = 2.0 * n_std * np.sqrt(np.maximum(values, 0.0))
    if lengths.size == 1:
        return float(lengths[0]), 0.0, 0.0
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return float(lengths[1]), float(lengths[0]), float(angle)
