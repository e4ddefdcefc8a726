"""Dendrograms of any size, truncated to their highest merges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastrbhc._engine.traversal import common_labels
from fastrbhc._optional import require
from fastrbhc._validation import check_choice, check_count, check_labels, check_names
from fastrbhc.plotting._branches import Colouring, draw_branches, name_tips, number_clusters
from fastrbhc.plotting._frame import (
    ORIENTATIONS,
    Frame,
    points_along,
    set_title,
    signed_root,
    signed_square,
)
from fastrbhc.plotting._style import HUES, axes, hue, legend, number, plural
from fastrbhc.tree.crown import Crown, check_order, crown_of

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

_LEAVES, _MOST_LEAVES = 40, 80
_NAME_ROOM = 0.17  # inches of a leaf, in a new figure
_LEGEND_WIDTH, _LEGEND_LINE = 52.0, 12.5  # points


def plot_dendrogram(
    tree: Dendrogram,
    ax: Any = None,
    *,
    threshold: float | None = None,
    n_clusters: int | None = None,
    labels: ArrayLike | None = None,
    max_leaves: int | None = None,
    names: Sequence[Any] | None = None,
    scale: str = "sqrt",
    raw_heights: bool = False,
    orientation: str = "top",
    order: ArrayLike | None = None,
) -> Any:
    """Draw the highest merges of a tree; ``tree.plot`` is the same.

    Parameters
    ----------
    tree : Dendrogram
        A tree or forest of any size. The trees of a forest are drawn side by side and reach up to
        the threshold at which merging stopped; of very many, the largest are drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    threshold, n_clusters : float or int, optional
        Colour the clusters of this cut, numbered as ``tree.cut`` numbers them, and draw a dashed
        line: at λ, or between the last merge that is made and the first that is not. By default the
        λ that was chosen for the tree is used. If there is none, the trees of a forest are
        coloured, but not a single tree.
    labels : array-like of shape (n_leaves,), optional
        Colour by these labels instead: branches whose rows all have the same label. Negative labels
        mean no cluster. A threshold then only draws its line.
    max_leaves : int, optional
        Number of leaves in the picture, each of which may be a subtree. By default 40, or twice the
        number of clusters up to 80, if all clusters are visible with that many.
    names : sequence of length n_leaves, optional
        Names of the rows, for leaves that are single rows; by default their numbers. Other
        leaves show their number of rows, in parentheses.
    scale : {"sqrt", "linear", "log"}, default="sqrt"
        The scale of the heights, which span orders of magnitude. For Ward's method the
        root is proportional to a distance.
    raw_heights : bool, default=False
        By default merges are drawn at their levels, by which trees are cut: a merge below one of
        its parts (an inversion) is drawn level with it. With True they are drawn at their heights,
        and inversions appear as branches that turn down.
    orientation : {"top", "bottom", "left", "right"}, default="top"
        The side of the root. The names of the leaves are on the opposite side. On the right there
        is room for long names with ``orientation="left"``.
    order : array-like of shape (n_leaves,), optional
        The rows from left to right, or from the top down, as
        ``tree.leaves_order(optimal=True, X=X)`` returns them.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    A triangle is a subtree that is not drawn; its tip is at its last merge. Takes O(n) time,
    without recursion. On Axes of a figure without a layout engine, text is made to fit the room
    around them: names are cut, and the label of the axis and at last the names are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import fastrbhc
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> tree = fastrbhc.linkage(X, "ward")
    >>> ax = fastrbhc.plotting.plot_dendrogram(tree, n_clusters=5)
    >>> len(ax.get_xticks())
    40
    """
    require("matplotlib", "drawing a tree")
    names = check_names(names, tree.n_leaves)
    levels = tree.heights if raw_heights else tree.levels
    colouring = colouring_of(tree, threshold, n_clusters, labels)
    if max_leaves is None:
        max_leaves = leaves_for(colouring.n_clusters)
    if order is not None:
        order = check_order(order, tree)
    check_choice(orientation, "orientation", ORIENTATIONS)
    crown = crown_of(tree, check_count(max_leaves, "max_leaves"), order)
    long = _NAME_ROOM * len(crown.tips)
    size = (max(8.0, long), 4.2) if orientation in ("top", "bottom") else (6.4, max(4.2, long))
    frame = Frame(axes(ax, size), orientation)
    draw_branches(frame, tree, crown, colouring, levels, scale)
    offset = name_tips(frame, tree, crown, colouring, names)
    if colouring.line is not None:
        frame.draw_threshold(colouring.line, colouring.text)
    numbered = offset is not None and (
        colouring.nodes is None or number_clusters(frame, crown, colouring, offset)
    )
    if colouring.nodes is not None and not numbered:
        _explain_colours(frame, crown, colouring)
    set_title(frame.ax, *_titles(tree, crown, colouring))
    return frame.ax


def _explain_colours(frame: Frame, crown: Crown, colouring: Colouring) -> None:
    """A legend of the clusters, as long as each has a colour of its own."""
    from matplotlib.lines import Line2D

    assert colouring.nodes is not None
    labels = np.unique(colouring.nodes[crown.tips])
    labels = labels[labels >= 0]
    if not labels.size or labels.max() >= len(HUES):
        return
    n_columns = 1 + labels.size // 7
    # On small Axes it would cover the tree.
    wide = points_along(frame.ax, "x") > 4.0 * _LEGEND_WIDTH * n_columns
    high = points_along(frame.ax, "y") > 3.0 * _LEGEND_LINE * (2 + labels.size / n_columns)
    if wide and high:
        handles = [
            Line2D([], [], color=hue(label, frame.ax), linewidth=2.5, label=str(label))
            for label in labels.tolist()
        ]
        corner = {"left": "upper left", "bottom": "lower right"}
        place = corner.get(frame.orientation, "upper right")
        legend(frame.ax, handles, "cluster", loc=place, ncols=n_columns)


def colouring_of(
    tree: Dendrogram, threshold: float | None, n_clusters: int | None, labels: ArrayLike | None
) -> Colouring:
    """The clusters of a cut, of labels, or the trees of a forest, and the line between them."""
    line, text = None, ""
    if labels is None:
        threshold, n_clusters = tree.cut_or_chosen(threshold, n_clusters)
    if labels is not None:
        if n_clusters is not None:
            raise ValueError("give either labels or n_clusters, and not both")
        clusters = check_labels(labels, tree.n_leaves)
        line = None if threshold is None else float(threshold)
    elif threshold is not None or n_clusters is not None:
        clusters = tree.cut(threshold=threshold, n_clusters=n_clusters)
        line = None if threshold is None else float(threshold)
    elif tree.n_trees > 1:
        clusters = tree.cut(n_clusters=tree.n_trees)
    else:
        return Colouring(None, None, "", 0)
    if line is None and tree.n_trees > 1 and n_clusters is None:
        line = tree.threshold
    if line is not None:
        text = f"λ = {number(line)}"
    elif n_clusters is not None:
        line, text = _between(tree, n_clusters), plural(n_clusters, "cluster")
    if line is not None and not np.isfinite(line):
        line = None
    n_found = np.unique(clusters[clusters >= 0]).size
    return Colouring(common_labels(tree.merges, clusters), line, text, int(n_found))


def _between(tree: Dendrogram, n_clusters: int) -> float | None:
    """A λ that gives this many clusters; None if there is none, or if any above the tree does."""
    made, levels = tree.n_leaves - n_clusters, tree.levels
    above = levels[made] if made < levels.size else tree.threshold
    below = levels[made - 1] if made else min(0.0, above)
    if not (np.isfinite(above) and above > below):
        return None
    return float(signed_square(0.5 * (signed_root(below) + signed_root(above))))


def leaves_for(n_clusters: int) -> int:
    """The number of leaves in a picture with so many clusters, if none is given."""
    if n_clusters >= _MOST_LEAVES:
        return _LEAVES
    return max(_LEAVES, min(2 * n_clusters, _MOST_LEAVES))


def _titles(tree: Dendrogram, crown: Crown, colouring: Colouring) -> list[str]:
    """What is drawn, in ever fewer words."""
    if len(crown.rows) == len(tree.merges):
        what, short = plural(tree.n_leaves, "row"), plural(tree.n_leaves, "row")
    else:
        what = f"the last {plural(len(crown.rows), 'merge')} of {len(tree.merges):,}"
        short = f"{len(crown.rows):,} of {plural(len(tree.merges), 'merge')}"
    if len(crown.roots) < tree.n_trees:
        what = f"the {len(crown.roots):,} largest of {tree.n_trees:,} trees"
        short = f"{len(crown.roots):,} of {tree.n_trees:,} trees"
    clusters = plural(colouring.n_clusters, "cluster") if colouring.n_clusters else ""
    wordings = [f"{text}, {clusters}" if clusters else text for text in (what, short)]
    return [text[0].upper() + text[1:] for text in (*wordings, clusters or short)]
