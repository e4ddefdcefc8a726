"""The report on the clusters of a cut: what each is worth, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._optional import require

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

STABLE, DOUBTFUL, CHANCE = "stable", "doubtful", "not distinguishable from chance"
VERDICTS = (STABLE, DOUBTFUL, CHANCE)
# All rows in one cluster: no split separates it from anything.
ONLY = "the only cluster"
# A cluster that is stable comes back with a Jaccard index above this (Hennig 2007).
LEAST_JACCARD = 0.75
# The largest p-value at which a split is not ascribed to chance.
SIGNIFICANCE = 0.05
# With fewer rows in a subsample, a cluster comes back too easily.
FEWEST_ROWS = 5


@dataclass(frozen=True, eq=False, repr=False)
class ClusterAssessment:
    """Whether the clusters of a cut are real; from ``tree.stability`` or ``RBHC.assess``.

    A cluster is *stable* if two things hold. The split that separates it from its sibling in the
    tree leaves less of the cost than splits of one population do (``p_value`` at most 0.05). And
    the lower end of the interval of its Jaccard index is at least 0.75: it comes back in trees of
    other rows. It is *doubtful* if only the first holds, or if it has fewer than five rows in a
    subsample, too few to tell. Otherwise it is *not distinguishable from chance*. If all rows are
    in one cluster, there is nothing to compare it with, and the verdict is *the only cluster*.

    Attributes
    ----------
    jaccard, lower, upper : ndarray of shape (k,)
        How well each cluster comes back: in each subsample, the largest Jaccard index
        ``|A∩B|/|A∪B|`` of its rows with the rows of any node of the subsample's tree; the mean over
        subsamples, and its 95 % confidence interval (Student's). The index counts weights. NaN,
        from 0 to 1, if no two rows of the cluster were in a subsample.
    p_values : ndarray of shape (k,)
        The probability that a split of one population would explain as much of the cost as the
        split between the cluster and its sibling, adjusted for the number of splits. 1 for the only
        cluster, and for fewer than five distinct rows, effectively. See the notes.
    explained : ndarray of shape (k,)
        Share of the total cost that is saved by setting the cluster apart from all other rows,
        d(c, rest) / (Σ f({x}) − f(all)), with f = n·φ(t).
    silhouettes : ndarray of shape (k,)
        The mean over the rows of (b − a)/max(a, b), where a is d between the row and its own
        cluster without it, and b the smallest d to another cluster; from −1 to 1.
    born, dies : ndarray of shape (k,)
        The level at which the cluster is complete, and the level of the merge that ends it;
        infinite for all rows in one cluster. It is a cluster of the cut for all λ between.
    verdicts : tuple of str
        "stable", "doubtful", "not distinguishable from chance", or "the only cluster".
    nodes, sizes, weights : ndarray of shape (k,)
        Node of each cluster in ``tree``, number and total weight of its rows.
    explained_together : float
        Share of the total cost that all clusters explain.
    n_rows : int
        Number of rows in a subsample.
    recoveries : ndarray of shape (n_resamples, k)
        The Jaccard index of each cluster in each subsample.
    labels : ndarray of shape (n,)
        Cluster of each row.
    tree : Dendrogram
        The whole tree.

    Notes
    -----
    The Jaccard index alone does not tell real clusters from chance: half of an elongated cloud
    comes back too, with an index of 0.8 and more. So each split is compared with splits of rows
    that resemble those of both clusters but have one mode, drawn at random, as the guide explains
    under "Are they real?". Siblings of fewer than five distinct rows are passed over: the next
    merge above is tested. The verdict is about the split that ends the cluster: of a cluster that
    contains two others it says that it is separate from the rest, not that it is one.

    References
    ----------
    C. Hennig, *Cluster-wise assessment of cluster stability*, Computational Statistics & Data
    Analysis 52 (2007). P. K. Kimes, Y. Liu, D. N. Hayes and J. S. Marron, *Statistical
    significance for hierarchical clustering*, Biometrics 73 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> import fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 9.0])
    >>> report = fastrbhc.linkage(X, "ward").stability(X, n_clusters=2)
    >>> report.verdicts
    ('stable', 'stable')
    """

    jaccard: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    p_values: NDArray[np.float64]
    explained: NDArray[np.float64]
    silhouettes: NDArray[np.float64]
    born: NDArray[np.float64]
    dies: NDArray[np.float64]
    verdicts: tuple[str, ...]
    nodes: NDArray[np.int64]
    sizes: NDArray[np.int64]
    weights: NDArray[np.float64]
    explained_together: float
    n_rows: int
    recoveries: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    tree: Dendrogram = field(repr=False)

    def __len__(self) -> int:
        return self.jaccard.size

    @property
    def sentence(self) -> str:
        """The verdict on all clusters in one sentence."""
        share = f"{100 * self.explained_together:.0f} % of the cost"
        if len(self) == 1:
            return "There is one cluster, and nothing to compare it with."
        counts = [self.verdicts.count(verdict) for verdict in VERDICTS]
        if counts[0] == len(self):
            every = "Both" if len(self) == 2 else f"All {len(self)}"
            return f"{every} clusters are stable; together they explain {share}."
        if counts[2] == len(self):
            none = "Neither" if len(self) == 2 else f"None of the {len(self)}"
            return f"{none} cluster{'s' * (len(self) > 2)} is distinguishable from chance."
        parts = [
            f"{count} {'is' if count == 1 else 'are'} {verdict}"
            for count, verdict in zip(counts, VERDICTS, strict=True)
            if count
        ]
        listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
        return f"Of {len(self)} clusters {listed}; together they explain {share}."

    def to_pandas(self) -> Any:
        """All numbers as a DataFrame, one row per cluster.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``cluster``, with the columns node, size, weight, jaccard, lower, upper,
            p_value, silhouette, explained, born, dies, verdict.

        Examples
        --------
        >>> import fastrbhc
        >>> X = [[0.0], [1.0], [2.0], [50.0], [51.0], [52.0]]
        >>> report = fastrbhc.linkage(X, "ward").stability(X, n_clusters=2)
        >>> report.to_pandas()[["size", "born", "explained"]].round(3).values.tolist()
        [[3.0, 0.75, 0.999], [3.0, 0.75, 0.999]]
        """
        pd = require("pandas", "to_pandas")
        columns = {
            "node": self.nodes,
            "size": self.sizes,
            "weight": self.weights,
            "jaccard": self.jaccard,
            "lower": self.lower,
            "upper": self.upper,
            "p_value": self.p_values,
            "silhouette": self.silhouettes,
            "explained": self.explained,
            "born": self.born,
            "dies": self.dies,
            "verdict": list(self.verdicts),
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self), name="cluster"))

    def plot(self, ax: Any = None) -> Any:
        """Draw the dendrogram with the verdicts: colours of branches, and Jaccard indices.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import fastrbhc
        >>> X = [[0.0], [1.0], [2.0], [50.0], [51.0], [52.0]]
        >>> report = fastrbhc.linkage(X, "ward").stability(X, n_clusters=2)
        >>> ax = report.plot()
        """
        from fastrbhc.plotting.assessment import draw_assessment

        return draw_assessment(self, ax)

    def _cells(self) -> tuple[tuple[str, ...], list[list[str]]]:
        head = (
            "cluster", "size", "Jaccard", "95 % interval", "p-value", "silhouette", "explained",
            "born", "dies", "verdict",
        )  # fmt: skip
        rows = [
            [
                str(i),
                f"{self.sizes[i]:,}",
                f"{self.jaccard[i]:.2f}",
                f"{self.lower[i]:.2f} to {self.upper[i]:.2f}",
                f"{self.p_values[i]:.2g}",
                f"{self.silhouettes[i]:.2f}",
                f"{100 * self.explained[i]:.1f} %",
                f"{self.born[i]:.4g}",
                f"{self.dies[i]:.4g}",
                self.verdicts[i],
            ]
            for i in range(len(self))
        ]
        return head, rows

    def __repr__(self) -> str:
        head, rows = self._cells()
        table = [list(head), *rows]
        widths = [max(len(line[column]) for line in table) for column in range(len(head))]
        lines = ["  ".join(map(str.rjust, line, widths)) for line in table]
        return "\n".join([self.sentence, "", *lines])

    def _repr_html_(self) -> str:
        from fastrbhc.plotting import html

        return html.grid(self.sentence, *self._cells()) + html.picture(self.plot, (7.0, 3.6))


def verdicts_of(
    lower: NDArray[np.float64],
    p_values: NDArray[np.float64],
    rows_in_subsample: NDArray[np.float64],
) -> tuple[str, ...]:
    """The verdict on each cluster."""
    if lower.size == 1:
        return (ONLY,)
    separate = p_values <= SIGNIFICANCE
    comes_back = (lower >= LEAST_JACCARD) & (rows_in_subsample >= FEWEST_ROWS)
    return tuple(
        STABLE if separate[i] and comes_back[i] else DOUBTFUL if separate[i] else CHANCE
        for i in range(lower.size)
    )
