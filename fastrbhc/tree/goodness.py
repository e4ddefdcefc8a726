"""How much rows vary within the clusters of a cut, beside what the family allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._optional import require
from fastrbhc._row_validation import check_rows, column_names
from fastrbhc.families import Family
from fastrbhc.tree.origin import family_for

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

# Rows that vary so many times as much as the family allows are worth a sentence.
TOO_MUCH = 3.0
# Clusters with fewer rows say little; a column counts as so many rows where ratios are shrunk.
FEWEST_ROWS = 5
# Columns that are named, and lines and columns that are printed.
_MOST_NAMED, _MOST_LINES, _MOST_SHOWN = 3, 20, 8
_BY_FAMILY = "the variance function of the family"
_BY_COLUMN = "the variance of the column within all clusters, because each cluster has its own"
_BY_ALL = "the variance within all clusters, the same in all columns for the family"
_BY_BLOCK = "what the family of each column is compared with"
_BY_NOTHING = "nothing: levels vary as draws with their shares do"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Goodness:
    """Variances within clusters over what the family allows; from ``tree.goodness``.

    1 is what the family expects, 3 is three times as much. A cluster of few rows says little by
    itself: ``shrunk`` draws it towards its column.

    Attributes
    ----------
    ratios : ndarray of shape (k, d)
        The variance of each column within each cluster, over what the family allows at the mean of
        that cluster. NaN for clusters of a single row, and where the family allows no variance,
        such as for counts that are all 0.
    shrunk : ndarray of shape (k, d)
        The same, averaged with five rows of the ratio of the column.
    of_columns : ndarray of shape (d,)
        Within all clusters together.
    total : float
        The median over columns.
    dispersions : ndarray of shape (d,)
        The α of a variance m + αm² within clusters, by moments. 0 if the variance is not larger
        than the mean, and NaN if values may be negative or only shares count.
    few : ndarray of shape (k,)
        Whether a cluster has fewer than five rows.
    sizes : ndarray of shape (k,)
        Total weight of the rows in each cluster; a row of weight 3 is three rows.
    compared_with : str
        What "allows" stands for. A family with a variance function states it: m for Poisson counts,
        m + αm² for negative binomial ones, p(1 − p) per draw for multinomial ones. A Gaussian whose
        clusters have covariances of their own allows any variance: each is compared with that of
        the column within all clusters. Ward's method and directions have one variance for all
        columns, and each is compared with that.
    family : record
        The family.
    names : tuple of str
        Names of the columns; those that a product leaves out are not among them.
    blocks : tuple of Goodness
        That of each block of a product.

    Notes
    -----
    Categories have no ratios: a level is one draw, and cannot vary more than its share says. Nor
    can zeros and ones vary more than Bernoulli values of the same mean: their ratios are near 1
    whatever the clusters are like. Clusters that are cut too fine vary less than the family allows,
    because they were made of rows that agree.

    Examples
    --------
    >>> import numpy as np
    >>> import fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.negative_binomial(2, 2 / (2 + m), (200, 2)) for m in (3, 90)])
    >>> found = fastrbhc.linkage(X, "poisson").goodness(X, n_clusters=2)
    >>> found.ratios.shape
    (2, 2)
    """

    ratios: Floats
    shrunk: Floats
    of_columns: Floats
    total: float
    dispersions: Floats
    few: NDArray[np.bool_]
    sizes: Floats
    compared_with: str
    family: Family
    names: tuple[str, ...] = field(repr=False)
    blocks: tuple[Goodness, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is worth to know, in words; empty if the family suits the rows."""
        if self.blocks:
            return tuple(sentence for block in self.blocks for sentence in block.sentences)
        if self.compared_with != _BY_FAMILY:
            return ()
        over = np.flatnonzero(np.nan_to_num(self.of_columns) >= TOO_MUCH)
        if over.size == 0:
            return ()
        over = over[np.argsort(-self.of_columns[over], kind="stable")]
        worst = [f"{self.names[j]!r} {self.of_columns[j]:.2g} times" for j in over[:_MOST_NAMED]]
        some = ", ".join(worst) + (", …" if over.size > _MOST_NAMED else "")
        start = (
            f"{over.size} of {len(self.names)} columns vary within clusters at least "
            f"{TOO_MUCH:g} times as much as the family {self.family.name!r} allows ({some})"
        )
        dispersion = float(f"{np.median(self.dispersions[over]):.2g}")
        remedy = self.family.if_overdispersed(dispersion)
        return (f"{start}: {remedy or 'there may be more clusters, or another family may suit'}",)

    def to_pandas(self) -> Any:
        """The ratios as a DataFrame, one row per cluster and a last one for all together.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``cluster``, "all" being the last, with size, few and the columns.

        Examples
        --------
        >>> import fastrbhc
        >>> X = [[0.0], [1.0], [5.0], [7.0]]
        >>> found = fastrbhc.linkage(X, "ward").goodness(X, n_clusters=2)
        >>> found.to_pandas()["x0"].tolist()
        [0.4, 1.6, 1.0]
        """
        pd = require("pandas", "to_pandas")
        clusters = pd.Index([*range(len(self.sizes)), "all"], name="cluster")
        heading = pd.DataFrame(
            {
                "size": [*self.sizes, self.sizes.sum()],
                "few": [*self.few, self.sizes.sum() < FEWEST_ROWS],
            },
            index=clusters,
        )
        values = np.vstack([self.ratios, self.of_columns])
        return pd.concat([heading, pd.DataFrame(values, clusters, list(self.names))], axis=1)

    def __str__(self) -> str:
        shown = np.arange(len(self.names))
        if shown.size > _MOST_SHOWN:  # those that vary most
            shown = np.argsort(-np.nan_to_num(self.of_columns), kind="stable")[:_MOST_SHOWN]
        clusters = range(min(len(self.sizes), _MOST_LINES))
        lines = [["cluster", "size", *(self.names[j] for j in shown)]]
        lines += [
            [
                str(c),
                f"{self.sizes[c]:g}{'?' * bool(self.few[c])}",
                *map(_text, self.ratios[c, shown]),
            ]
            for c in clusters
        ]
        lines.append(["all", f"{self.sizes.sum():g}", *map(_text, self.of_columns[shown])])
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        table = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        ]
        notes = [f"Variance within clusters over {self.compared_with}."]
        if len(self.sizes) > _MOST_LINES:
            notes.append(f"{len(self.sizes) - _MOST_LINES:,} more clusters are not shown.")
        if shown.size < len(self.names):
            notes.append(f"{len(self.names) - shown.size:,} more columns vary less.")
        if self.few.any():
            notes.append(f"? fewer than {FEWEST_ROWS} rows")
        return "\n".join([*table, *notes, *(f"{sentence}." for sentence in self.sentences)])

    def _repr_html_(self) -> str:
        from fastrbhc.plotting import html

        lines = [("all columns", _text(self.total)), ("compared with", self.compared_with)]
        lines += [("note", sentence) for sentence in self.sentences]
        return f"<pre>{html.html.escape(str(self))}</pre>" + html.table("Goodness", lines)


def goodness_of_cut(
    tree: Dendrogram,
    X: ArrayLike,
    *,
    threshold: float | None = None,
    n_clusters: int | None = None,
    family: Any = None,
) -> Goodness:
    """How much rows vary within the clusters of a cut; ``tree.goodness`` has the documentation."""
    threshold, n_clusters = tree.cut_or_chosen(threshold, n_clusters)
    if threshold is None and n_clusters is None:
        n_clusters = tree.n_trees
    labels = tree.cut(threshold=threshold, n_clusters=n_clusters)
    known = family_for(tree, family)
    rows = check_rows(X, known, min_rows=1, layout="auto")
    n, n_columns = rows.shape
    if n != tree.n_leaves:
        raise ValueError(f"X has {n} rows and the tree has {tree.n_leaves}")
    names: Sequence[str] | None = column_names(X)
    if names is None and tree.n_features == n_columns:
        names = tree.feature_names
    copies = np.asarray(tree.node_weights[:n], dtype=np.float64)
    return goodness_of_clusters(known, rows, labels, copies, names)


def goodness_of_clusters(
    family: Family, rows: Any, labels: NDArray[np.int64], copies: Floats, names: Any = None
) -> Goodness:
    """The same for rows that have been checked, with their labels and weights."""
    if hasattr(family, "blocks"):
        return _of_product(family, rows, labels, copies, names)
    k = int(labels.max()) + 1
    sizes = np.bincount(labels, copies, k).astype(np.float64)
    freedom = np.maximum(sizes - 1.0, 0.0)[:, None]
    if hasattr(family, "levels"):
        means = squares = allowed = np.zeros((k, rows.shape[1]))
        compared_with = _BY_NOTHING
    else:
        means, squares = _moments(family.observe(rows), labels, copies, k)
        allowed, compared_with = _allowed(family, means, squares, freedom)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where((freedom > 0.0) & (allowed > 0.0), squares / (freedom * allowed), np.nan)
        of_columns = squares.sum(axis=0) / (freedom * allowed).sum(axis=0)
    of_columns = np.where(np.isfinite(of_columns), of_columns, np.nan)
    shrunk = (np.nan_to_num(ratios) * freedom + FEWEST_ROWS * of_columns) / (freedom + FEWEST_ROWS)
    varied = of_columns[~np.isnan(of_columns)]
    given = tuple(f"x{j}" for j in range(means.shape[1])) if names is None else tuple(names)
    return Goodness(
        ratios,
        np.where(np.isnan(ratios), of_columns, shrunk),
        of_columns,
        float(np.median(varied)) if varied.size else np.nan,
        _dispersions(family, means, squares, freedom),
        sizes < FEWEST_ROWS,
        sizes,
        compared_with,
        family,
        given,
    )


def _of_product(
    family: Any, rows: Any, labels: NDArray[np.int64], copies: Floats, names: Any
) -> Goodness:
    """Each block by itself, and the columns of all together in their order."""
    found, columns = [], []
    for block, (record, part) in zip(family.blocks, family.parts(rows), strict=True):
        given = [f"x{j}" if names is None else names[j] for j in block.columns]
        found.append(goodness_of_clusters(record, part, labels, copies, given))
        columns += block.columns
    order = np.argsort(columns)

    def together(attribute: str) -> Floats:
        joined: Floats = np.concatenate([getattr(part, attribute) for part in found], axis=-1)
        return joined[..., order]

    of_columns = together("of_columns")
    varied = of_columns[~np.isnan(of_columns)]
    labelled = [name for part in found for name in part.names]
    return Goodness(
        together("ratios"),
        together("shrunk"),
        of_columns,
        float(np.median(varied)) if varied.size else np.nan,
        together("dispersions"),
        found[0].few,
        found[0].sizes,
        _BY_BLOCK,
        family,
        tuple(labelled[place] for place in order),
        tuple(found),
    )


def _moments(
    observed: Any, labels: NDArray[np.int64], copies: Floats, k: int
) -> tuple[Floats, Floats]:
    """Means of each cluster and column, and weighted sums of squares around them: (k, d)."""
    n = labels.size
    if isinstance(observed, SparseObservations):
        values, own = _as_csr(observed)
        member = sparse.csr_array((copies * own, (labels, np.arange(n))), shape=(k, n))
        totals = np.maximum(member.sum(axis=1), np.finfo(float).tiny)[:, None]
        means = (member @ values).toarray() / totals
        squares = (member @ values.power(2)).toarray() - totals * means**2
        return means, np.maximum(squares, 0.0)
    weights = copies * observed.all_weights()
    member = sparse.csr_array((weights, (labels, np.arange(n))), shape=(k, n))
    totals = np.maximum(member.sum(axis=1), np.finfo(float).tiny)[:, None]
    means = (member @ observed.means) / totals
    return means, member @ np.square(observed.means - means[labels])


def _as_csr(observed: SparseObservations) -> tuple[Any, Floats]:
    """The mean statistics of rows just observed, as a sparse matrix, and their weights."""
    values = observed.values
    if observed.sizes is not None:
        values = values / np.repeat(observed.sizes, np.diff(observed.starts))
    parts = (values, observed.columns, observed.starts)
    return sparse.csr_array(parts, shape=observed.shape), observed.all_weights()


def _allowed(family: Family, means: Floats, squares: Floats, freedom: Floats) -> tuple[Floats, str]:
    """The variance that each cluster may have in each column, and where that is from."""
    if family.separable and not family.quadratic:
        second: Any = family
        with np.errstate(divide="ignore", invalid="ignore"):
            curvatures = np.array([second.second_derivative(mean) for mean in means.ravel()])
            allowed = 1.0 / curvatures.reshape(means.shape)
        allowed = np.where(np.isfinite(allowed) & (allowed > 0.0), allowed, 0.0)
        if family.domain.needs_positive_total:  # shares of one draw, which add up to 1
            allowed = allowed * (1.0 - np.minimum(means, 1.0))
        return allowed, _BY_FAMILY
    pooled = squares.sum(axis=0) / max(float(freedom.sum()), np.finfo(float).tiny)
    if family.covariance == "none":
        return np.full(means.shape, pooled.mean()), _BY_ALL
    return np.broadcast_to(pooled, means.shape), _BY_COLUMN


def _dispersions(family: Family, means: Floats, squares: Floats, freedom: Floats) -> Floats:
    if family.domain.lower < 0.0 or family.domain.needs_positive_total:
        return np.full(means.shape[1], np.nan)
    excess = (squares - freedom * means).sum(axis=0)
    second = (freedom * means**2).sum(axis=0)
    return np.maximum(excess, 0.0) / np.where(second > 0.0, second, np.inf)


def _text(ratio: float) -> str:
    return "–" if np.isnan(ratio) else f"{ratio:.2g}" if ratio < 100.0 else f"{ratio:,.0f}"
