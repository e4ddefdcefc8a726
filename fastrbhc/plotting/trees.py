"""Dendrograms of any size, truncated to their highest merges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.traversal import common_labels, leaf_spans
from fastrbhc._optional import require
from fastrbhc._validation import check_count, check_labels, check_names
from fastrbhc.plotting._style import (
    INK,
    axes,
    draw_threshold,
    hue,
    number,
    plural,
    points_wide,
    set_scale,
    signed_root,
    signed_square,
    stretched,
    text_width,
    tidy,
)

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

_LEAVES, _MOST_LEAVES = 40, 80
# Sizes of text in points, and how high a line is in multiples of that.
_LARGEST, _SMALLEST, _LINE = 9.0, 4.5, 1.25
_SIDEWAYS = 12  # with fewer leaves and short names, text stays upright
_LONGEST = 24  # letters of a name


class Crown(NamedTuple):
    """The part of a tree that is drawn."""

    rows: NDArray[np.int64]  # merges, children before parents
    tips: NDArray[np.int64]  # nodes that end the picture, from left to right
    roots: NDArray[np.int64]  # of the trees that are drawn
    sizes: NDArray[np.int64]  # of all nodes


class Colouring(NamedTuple):
    """Which cluster a node belongs to, and where the line of the cut is."""

    nodes: NDArray[np.int64] | None  # label of each node, −1 for none
    line: float | None
    text: str  # beside the line
    n_clusters: int
    colours: dict[int, str] | None = None  # of labels whose colour is not that of a cluster


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

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    A triangle is a subtree that is not drawn; its tip is at its last merge. Takes O(n) time,
    without recursion.

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
    colouring = _colouring(tree, threshold, n_clusters, labels)
    if max_leaves is None:
        max_leaves = leaves_for(colouring.n_clusters)
    crown = crown_of(tree, check_count(max_leaves, "max_leaves"))
    ax = axes(ax, (max(8.0, 0.16 * len(crown.tips)), 4.2))
    draw_branches(ax, tree, crown, colouring, levels, scale)
    offset = name_tips(ax, tree, crown, colouring, names)
    if colouring.line is not None:
        draw_threshold(ax, colouring.line, colouring.text)
    if colouring.nodes is not None:
        _number_clusters(ax, tree, crown, colouring, offset)
    ax.set_title(_title(tree, crown, colouring), loc="left", fontsize="medium", color=INK)
    return ax


def _colouring(
    tree: Dendrogram, threshold: float | None, n_clusters: int | None, labels: ArrayLike | None
) -> Colouring:
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


def crown_of(tree: Dendrogram, max_leaves: int) -> Crown:
    """The highest merges, of all trees or of the largest ones."""
    n, m = tree.n_leaves, len(tree.merges)
    starts, sizes = leaf_spans(tree.merges, n)
    is_root = np.ones(n + m, bool)
    is_root[tree.merges] = False
    roots, most_trees = np.flatnonzero(is_root), max(max_leaves // 2, 1)
    if roots.size <= most_trees:
        rows = np.arange(max(0, m - (max_leaves - roots.size)), m)
    else:
        by_size = np.lexsort((starts[roots], -sizes[roots]))
        roots = roots[by_size[:most_trees]]
        roots = roots[np.argsort(starts[roots])]
        tree_before = np.searchsorted(starts[roots], starts[n:], side="right") - 1
        within = (tree_before >= 0) & (
            starts[n:] < starts[roots[tree_before]] + sizes[roots[tree_before]]
        )
        rows = np.flatnonzero(within)
        rows = rows[max(0, rows.size - (max_leaves - roots.size)) :]
    tips = np.setdiff1d(np.concatenate([tree.merges[rows].ravel(), roots]), n + rows)
    return Crown(rows, tips[np.argsort(starts[tips])], roots, sizes)


def draw_branches(
    ax: Any,
    tree: Dendrogram,
    crown: Crown,
    colouring: Colouring,
    levels: NDArray[np.float64],
    scale: str,
) -> dict[int, float]:
    """Draw each merge as a bar, and the branches from there down to its parts.

    Returns the horizontal place of every node that is drawn.
    """
    from matplotlib.collections import LineCollection, PolyCollection

    n = tree.n_leaves
    drawn = np.concatenate([crown.rows, crown.tips[crown.tips >= n] - n])
    heights = np.append(levels[drawn], [] if colouring.line is None else colouring.line)
    floor = set_scale(ax, scale, heights)
    top = float(heights.max(initial=floor))
    if top <= floor:
        top = floor + 1.0  # nothing but copies of one row

    def level(node: int) -> float:
        return max(float(levels[node - n]), floor) if node >= n else floor

    places = {int(tip): float(place) for place, tip in enumerate(crown.tips)}
    lines, colours = [], []
    for row in crown.rows.tolist():
        node, pair = n + row, tree.merges[row].tolist()
        height = level(node)
        places[node] = 0.5 * (places[pair[0]] + places[pair[1]])
        lines.append([(places[child], height) for child in pair])
        colours.append(_colour(colouring, node))
        for child in pair:
            lines.append([(places[child], level(child)), (places[child], height)])
            colours.append(_colour(colouring, child))
    ceiling = stretched(scale, floor, top, 1.06)
    for root in crown.roots.tolist():
        end = min(tree.threshold, ceiling)
        lines.append([(places[root], level(root)), (places[root], end)])
        colours.append(_colour(colouring, root))
    ax.add_collection(LineCollection(lines, colors=colours, linewidths=1.5, capstyle="projecting"))
    hidden = [tip for tip in crown.tips.tolist() if tip >= n]
    ax.add_collection(
        PolyCollection(
            [
                [(places[tip] - 0.3, floor), (places[tip], level(tip)), (places[tip] + 0.3, floor)]
                for tip in hidden
            ],
            facecolors=[_colour(colouring, tip) for tip in hidden],
            edgecolors=[_colour(colouring, tip) for tip in hidden],
            alpha=0.35,
            linewidths=0.8,
        )
    )
    # On the right there is room for the text of the line.
    text = 1.1 * text_width(colouring.text, _LARGEST) / points_wide(ax)
    width = len(crown.tips) + 0.6
    ax.set_xlim(-0.8, width / max(1.0 - text, 0.5) - 0.8)
    ax.set_ylim(floor, ceiling)
    ax.set_ylabel("height of a merge", color=INK)
    tidy(ax, "top", "right", "bottom")
    return places


def _colour(colouring: Colouring, node: int) -> str:
    if colouring.nodes is None:
        return INK
    label = int(colouring.nodes[node])
    return (colouring.colours or {}).get(label) or hue(label)


def name_tips(
    ax: Any, tree: Dendrogram, crown: Crown, colouring: Colouring, names: Sequence[Any] | None
) -> float:
    """Label the leaves with names or sizes; returns the height of the labels in points."""
    texts = []
    for tip in crown.tips.tolist():
        if tip >= tree.n_leaves:
            texts.append(f"({crown.sizes[tip]:,})")
        else:
            name = str(tip if names is None else names[tip])
            texts.append(name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…")
    upright = len(texts) <= _SIDEWAYS and max(map(len, texts)) <= 8
    left, right = ax.get_xlim()
    room = points_wide(ax) / (right - left)
    size = min(_LARGEST, room if upright else room / _LINE)
    ax.tick_params(axis="x", length=0)
    ax.set_xticks(range(len(texts)))
    ax.set_xlabel("row, or (number of rows)", color=INK)
    if not upright and size < _SMALLEST:
        ax.set_xticklabels([])
        return 4.0
    size = max(size, _SMALLEST)
    ax.set_xticklabels(texts, rotation=0 if upright else 90, fontsize=size)
    for text, tip in zip(ax.get_xticklabels(), crown.tips.tolist(), strict=True):
        text.set_color(_colour(colouring, tip))
    return 7.0 + 1.06 * (size if upright else max(text_width(text, size) for text in texts))


def _number_clusters(
    ax: Any, tree: Dendrogram, crown: Crown, colouring: Colouring, offset: float
) -> None:
    """Put the number of each cluster below the names of its leaves, if there is room for it."""
    assert colouring.nodes is not None
    labels = colouring.nodes[crown.tips]
    # Leaves of a cluster stand side by side; labels from elsewhere may come several times.
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    middles = 0.5 * (starts + np.r_[starts[1:], labels.size] - 1.0)
    known = labels[starts] >= 0
    left, right = ax.get_xlim()
    gaps = np.diff(middles[known]) * points_wide(ax) / (right - left)
    widest = text_width("8" * len(str(labels.max())), _LARGEST)
    if not known.any() or gaps.min(initial=np.inf) < 1.3 * widest:
        return
    for label, middle in zip(labels[starts][known].tolist(), middles[known].tolist(), strict=True):
        ax.annotate(
            str(label),
            (middle, 0.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -offset),
            textcoords="offset points",
            ha="center",
            va="top",
            color=hue(label),
            fontsize=_LARGEST,
            fontweight="bold",
            annotation_clip=False,
        )
    ax.set_xlabel("row, or (number of rows); below it the cluster", color=INK)
    ax.xaxis.labelpad += 1.6 * _LARGEST


def _title(tree: Dendrogram, crown: Crown, colouring: Colouring) -> str:
    if len(crown.rows) == len(tree.merges):
        what = plural(tree.n_leaves, "row")
    else:
        what = f"the last {plural(len(crown.rows), 'merge')} of {len(tree.merges):,}"
    if len(crown.roots) < tree.n_trees:
        what = f"the {len(crown.roots):,} largest of {tree.n_trees:,} trees"
    if colouring.n_clusters:
        what += f", {plural(colouring.n_clusters, 'cluster')}"
    return what[0].upper() + what[1:]
