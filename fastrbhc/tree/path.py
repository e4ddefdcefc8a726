"""All clusterings of a tree, from single rows to the root, along λ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._optional import require
from fastrbhc.plotting import html as _html

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

_ROWS_SHOWN = 12


@dataclass(frozen=True, eq=False, repr=False)
class ClusteringPath:
    """Every distinct clustering that a tree gives as λ grows; from ``tree.path()``.

    Clustering j is the one for all λ with ``thresholds[j − 1] < λ ≤ thresholds[j]``, so that
    ``tree.cut(threshold=path.thresholds[j])`` has ``path.n_clusters[j]`` clusters. Merges at the
    same level are one step.

    Attributes
    ----------
    thresholds : ndarray of shape (r,), float64
        The largest λ that gives each clustering, in increasing order. The last is infinite, or the
        λ at which merging was stopped.
    n_clusters : ndarray of shape (r,), int64
        Number of clusters.
    largest : ndarray of shape (r,), float64
        Weight of the heaviest cluster; its number of rows without sample weights.
    costs : ndarray of shape (r,), float64
        Total cost of the clusters. The cost of a cluster c is Σ f({x}) − f(c) over its
        rows x, where f = n·φ(t): for Ward's method the sum of squares about its mean, over 2σ². A
        merge of a and b adds f(a) + f(b) − f(a∪b) = d(a, b) to it, so that the cost is the sum of
        the heights of all merges made. For a Bayesian tree, the negative log probability of the
        clustering relative to single rows: the lowest is the most probable.

    Examples
    --------
    >>> import fastrbhc
    >>> path = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward").path()
    >>> path.n_clusters.tolist()
    [4, 3, 2, 1]
    >>> path.thresholds.tolist()
    [0.25, 1.0, 15.125, inf]
    >>> path.costs.tolist()
    [0.0, 0.25, 1.25, 16.375]
    """

    thresholds: NDArray[np.float64]
    n_clusters: NDArray[np.int64]
    largest: NDArray[np.float64]
    costs: NDArray[np.float64]

    def __len__(self) -> int:
        return self.thresholds.size

    def at(self, threshold: float) -> int:
        """The clustering that a threshold gives, as an index.

        Parameters
        ----------
        threshold : float
            λ, no larger than the last of ``thresholds``.

        Returns
        -------
        int
            An index into the arrays.

        Examples
        --------
        >>> import fastrbhc
        >>> path = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward").path()
        >>> int(path.n_clusters[path.at(2.0)])
        2
        """
        level = float(threshold)
        if not level <= self.thresholds[-1]:
            raise ValueError(f"the tree was built up to threshold {self.thresholds[-1]:g} only")
        return int(np.searchsorted(self.thresholds, level, side="left"))

    def to_pandas(self) -> Any:
        """All clusterings as a DataFrame, one row each.

        Returns
        -------
        pandas.DataFrame
            With the columns threshold, n_clusters, largest, cost.

        Examples
        --------
        >>> import fastrbhc
        >>> path = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward").path()
        >>> path.to_pandas()["largest"].tolist()
        [1.0, 2.0, 3.0]
        """
        return require("pandas", "to_pandas").DataFrame(
            {
                "threshold": self.thresholds,
                "n_clusters": self.n_clusters,
                "largest": self.largest,
                "cost": self.costs,
            }
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the number of clusters and their cost against λ.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        See Also
        --------
        fastrbhc.plotting.plot_path
        """
        from fastrbhc.plotting import plot_path

        return plot_path(self, ax)

    def __repr__(self) -> str:
        first, last = int(self.n_clusters[0]), int(self.n_clusters[-1])
        return f"<ClusteringPath: {len(self)} clusterings, {first} to {last} clusters>"

    def _repr_html_(self) -> str:
        head = ("threshold λ, up to", "clusters", "largest", "cost")
        columns = (self.thresholds, self.n_clusters, self.largest, self.costs)
        last = zip(*(column[-_ROWS_SHOWN:].tolist() for column in columns), strict=True)
        rows = [[f"{value:,.6g}" for value in row] for row in last]
        caption = f"{len(self):,} clusterings"
        if len(rows) < len(self):
            caption += f", the last {len(rows)}"
        return _html.grid(caption, head, rows) + _html.picture(self.plot, (6.0, 3.2))


def path_of(tree: Dendrogram) -> ClusteringPath:
    """The path of a tree; O(n), because merges are listed by level."""
    levels = tree.levels
    steps = np.flatnonzero(levels[1:] > levels[:-1]) + 1
    # Number of merges made in each clustering.
    made = np.concatenate([[0], steps, [levels.size]]) if levels.size else np.zeros(1, np.int64)
    # A union is at least as heavy as its parts, so the largest weight so far is the largest now.
    heaviest = np.maximum.accumulate(tree.node_weights)[tree.n_leaves - 1 :]
    return ClusteringPath(
        thresholds=np.append(levels, tree.threshold)[made],
        n_clusters=tree.n_leaves - made,
        largest=heaviest[made],
        costs=np.append(0.0, np.cumsum(tree.merge_costs))[made],
    )
