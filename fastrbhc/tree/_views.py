"""Methods of a tree for plots and notebooks.

`Dendrogram` inherits them, so that its own module does not depend on how trees are presented. Their
dependencies are imported when they are called.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from fastrbhc.families._description import family_lines
from fastrbhc.tree.origin import family_for, missing_in

if TYPE_CHECKING:
    from fastrbhc.families import Family
    from fastrbhc.families._interface import FamilyLike


# What merged, by `Origin.connectivity`.
_JOINED = {
    "graph": "adjacent clusters only",
    "joined": "adjacent clusters, and at last the pieces of the graph",
}


def _without_gaps(tree: Any, X: ArrayLike, family: Family) -> Any:
    """The rows of a tree as points that can be drawn: means of columns for missing cells."""
    if missing_in(tree) == "error":
        return X
    from fastrbhc._row_validation import check_rows
    from fastrbhc.families._missing import filled, has_gaps, in_words

    rows = check_rows(X, family, min_rows=1, missing="ignore")
    return in_words(filled(rows, family), family) if has_gaps(rows) else X


class Views:
    """Base class of `Dendrogram`, with its methods for plots and notebooks."""

    def plot(self: Any, ax: Any = None, **options: Any) -> Any:
        """Draw the highest merges, coloured at a threshold or number of clusters.

        By default that is the λ which was chosen for the tree, if any.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **options
            ``threshold``, ``n_clusters``, ``labels``, ``max_leaves``, ``names``, ``scale``,
            ``raw_heights``, ``orientation`` and ``order`` of `fastrbhc.plotting.plot_dendrogram`.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> ax = tree.plot(threshold=2.0)
        >>> [text.get_text() for text in ax.get_xticklabels()]
        ['0', '1', '2', '3']
        """
        from fastrbhc.plotting import plot_dendrogram

        return plot_dendrogram(self, ax, **options)

    def plot_heights(self: Any, ax: Any = None, **options: Any) -> Any:
        """Draw merge heights against the number of clusters, to choose one.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        **options
            ``threshold``, ``n_clusters``, ``max_clusters`` and ``scale`` of
            `fastrbhc.plotting.plot_heights`.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import fastrbhc
        >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
        >>> tree.plot_heights(n_clusters=2).get_title(loc="left")
        '2 clusters for 1 < λ ≤ 15.12'
        """
        from fastrbhc.plotting import plot_heights

        return plot_heights(self, ax, **options)

    def plot_clusters(
        self: Any,
        X: ArrayLike,
        ax: Any = None,
        *,
        threshold: float | None = None,
        n_clusters: int | None = None,
        family: FamilyLike | None = None,
        **options: Any,
    ) -> Any:
        """Draw the rows as points, coloured by cluster, with the ellipses of the tree's family.

        Parameters
        ----------
        X : array-like of shape (n_leaves, d)
            The rows of the tree. Missing cells, if the tree was built with ``missing="ignore"``,
            are drawn at the mean of their column.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.
        threshold, n_clusters : float or int, optional
            Where to cut; by default as ``cut`` without them.
        family : str or record, optional
            Another family than that of the tree.
        **options
            ``coordinates``, ``n_std`` and ``max_points`` of `fastrbhc.plotting.plot_clusters`.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        >>> import fastrbhc
        >>> X = [[9, 1], [8, 2], [1, 9], [2, 7]]
        >>> ax = fastrbhc.linkage(X, "poisson").plot_clusters(X, n_clusters=2)
        >>> ax.get_title(loc="left")
        '2 clusters, 4 rows'
        """
        from fastrbhc.plotting import plot_clusters

        labels = self.cut(threshold=threshold, n_clusters=n_clusters)
        known, names = family_for(self, family), self.feature_names
        X = _without_gaps(self, X, known)
        return plot_clusters(X, labels, ax, family=known, names=names, **options)

    def plot_clustermap(self: Any, X: ArrayLike, **options: Any) -> Any:
        """Draw a heat map of the rows, with the tree beside it.

        Parameters
        ----------
        X : array-like of shape (n_leaves, d)
            The rows of the tree.
        **options
            ``threshold``, ``n_clusters``, ``labels``, ``z_score``, ``column_tree``,
            ``row_heights``, ``max_leaves``, ``max_columns`` and the others of
            `fastrbhc.plotting.clustermap`.

        Returns
        -------
        fastrbhc.plotting.ClusterMap
            The figure, its Axes, and what they show.

        Examples
        --------
        >>> import fastrbhc
        >>> X = [[9, 1, 0], [8, 2, 1], [1, 9, 1], [2, 7, 0]]
        >>> found = fastrbhc.linkage(X, "poisson").plot_clustermap(X, n_clusters=2)
        >>> found.nodes.tolist()
        [0, 1, 3, 2]
        """
        from fastrbhc.plotting import clustermap

        return clustermap(X, self, **options)

    def explore(self: Any, X: ArrayLike, **options: Any) -> Any:
        """Move λ in a notebook, and see the clusters change.

        Parameters
        ----------
        X : array-like of shape (n_leaves, d)
            The rows of the tree.
        **options
            ``family``, ``max_clusters`` and ``max_points`` of `fastrbhc.widgets.explore`.

        Returns
        -------
        ipywidgets.VBox

        See Also
        --------
        fastrbhc.widgets.explore
        """
        from fastrbhc.plotting.widgets import explore

        known = family_for(self, options.get("family"))
        return explore(self, _without_gaps(self, X, known), **options)

    def __repr__(self: Any) -> str:
        shape = f"{self.n_leaves} leaves, {len(self.merges)} merges"
        if self.n_trees > 1:
            below = "" if math.isinf(self.threshold) else f" below {self.threshold:g}"
            shape += f", {self.n_trees} trees{below}"
        if self.origin is not None and self.origin.connectivity == "joined":
            shape += ", pieces of a graph joined at last"
        if self.approximate:
            shape += ", approximate"
        highest = f", heights up to {self.heights.max():.6g}" if len(self.heights) else ""
        return f"<Dendrogram: {shape}{highest}>"

    def _repr_html_(self: Any) -> str:
        lines = [("leaves", f"{self.n_leaves:,}"), ("merges", f"{len(self.merges):,}")]
        if self.n_trees > 1:
            whole = math.isinf(self.threshold)
            below = ", the pieces of its graph" if whole else f" below λ = {self.threshold:.6g}"
            lines.append(("trees", f"{self.n_trees:,}{below}"))
        if len(self.heights):
            lines.append(("heights", f"{self.heights.min():.6g} to {self.heights.max():.6g}"))
        lines.append(("inversions", f"{self.n_inversions:,}"))
        if self.origin is not None and self.origin.connectivity is not None:
            lines.append(("merges join", _JOINED[self.origin.connectivity]))
        if self.approximate:
            lines.append(("approximate", "yes: tree.approximation(X) says how good it is"))
        if self.family is not None:
            lines += family_lines(self.family, self.feature_names)
        if self.n_features is not None:
            lines.append(("columns", f"{self.n_features:,}"))
        if self.chosen is not None:
            lines.append(("chosen λ", str(self.chosen)))
        from fastrbhc.plotting import html

        drawing = html.picture(self.plot, (6.5, 3.2), as_lines=True)
        return html.table("Dendrogram", lines) + drawing
