"""Pictures from which people choose the number of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastrbhc._optional import require
from fastrbhc._validation import check_count
from fastrbhc.plotting._frame import (
    Frame,
    label_axis,
    set_scale,
    set_title,
    stretched,
    with_scale,
)
from fastrbhc.plotting._style import (
    DASHES,
    FAINT,
    HUES,
    axes,
    hue,
    ink,
    legend,
    number,
    plural,
    text_colour,
    tick,
    tidy,
)

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram
    from fastrbhc.tree.path import ClusteringPath

_CLUSTERS = 30
_MANY = 60  # points with a logarithmic axis
_STEPS = 3000


def plot_heights(
    tree: Dendrogram,
    ax: Any = None,
    *,
    threshold: float | None = None,
    n_clusters: int | None = None,
    max_clusters: int | None = None,
    scale: str = "sqrt",
) -> Any:
    """Draw merge heights against the number of clusters; ``tree.plot_heights`` is the same.

    The point at k is the merge that would turn k clusters into k − 1. A large drop from one point
    to the next means that the k clusters are well separated: merging them further costs much more
    than the merge before.

    Parameters
    ----------
    tree : Dendrogram
        A tree or forest.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.
    threshold, n_clusters : float or int, optional
        The cut that is marked, with all λ that give the same clusters; by default the λ that was
        chosen for the tree, if any.
    max_clusters : int, optional
        The largest number of clusters shown; by default 30, or twice that of the cut.
    scale : {"sqrt", "linear", "log"}, default="sqrt"
        The scale of the heights.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    Heights are levels, by which trees are cut: inversions are raised to the merges below them.

    Examples
    --------
    >>> import fastrbhc
    >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
    >>> ax = tree.plot_heights(n_clusters=2)
    >>> ax.lines[0].get_xydata().tolist()
    [[2.0, 15.125], [3.0, 1.0], [4.0, 0.25]]
    """
    require("matplotlib", "drawing merge heights")
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    k = None
    threshold, n_clusters = tree.cut_or_chosen(threshold, n_clusters)
    if threshold is not None or n_clusters is not None:
        k = int(tree.cut(threshold=threshold, n_clusters=n_clusters).max()) + 1
    if max_clusters is None:
        max_clusters = max(_CLUSTERS, 2 * (k or 0))
    last = min(check_count(max_clusters, "max_clusters"), tree.n_leaves)
    # The merge that turns k clusters into k − 1 is row n − k.
    counts = np.arange(tree.n_trees + 1, last + 1)
    levels = tree.levels
    heights = levels[tree.n_leaves - counts]
    lower, upper = 0.0, np.inf
    if k is not None:
        made = tree.n_leaves - k
        upper = float(levels[made]) if made < levels.size else tree.threshold
        lower = float(levels[made - 1]) if made else min(0.0, upper)
    ax = axes(ax, (7.0, 4.0))
    ends = [] if k is None else [lower, upper, np.inf if threshold is None else float(threshold)]
    shown = np.append(heights, [end for end in ends if np.isfinite(end)])
    floor = set_scale(ax.yaxis, scale, shown)
    top = float(shown.max(initial=floor))
    top = stretched(scale, floor, top, 1.12) if top > floor else floor + 1.0
    ax.plot(
        counts,
        np.maximum(heights, floor),
        color=hue(0, ax),
        linewidth=1.2,
        marker="o",
        markersize=4 if counts.size <= _MANY else 2,
    )
    if k is not None:
        _mark(ax, k, max(lower, floor), min(max(upper, floor), top))
        if np.isfinite(upper):
            ax.plot(k, max(upper, floor), "o", color=HUES[5], markersize=9, fillstyle="none")
    if threshold is not None and np.isfinite(threshold):
        Frame(ax).draw_threshold(float(threshold), f"λ = {number(float(threshold))}")
    first = min(tree.n_trees, k or last)
    if counts.size > _MANY:
        ax.set_xscale("log")
        ax.set_xlim(0.8 * first, 1.1 * last)
        ax.xaxis.set_major_formatter(FuncFormatter(tick))
    else:
        ax.set_xlim(first - 0.6, max(last, tree.n_trees + 1) + 0.6)
        ax.xaxis.set_major_locator(MaxNLocator(10, integer=True, steps=[1, 2, 5, 10]))
    ax.set_ylim(floor, top)
    label_axis(ax, "x", "number of clusters k", "k")
    label_axis(ax, "y", *with_scale(scale, "height of the merge into k − 1", "height"))
    titles = [f"The last {plural(len(heights), 'merge')} of {len(levels):,}"]
    if k is not None:
        titles = [f"{plural(k, 'cluster')} {_range(lower, upper)}", plural(k, "cluster")]
        _explain(ax, k, lower < upper)
    set_title(ax, *titles)
    tidy(ax, "top", "right")
    return ax


def _range(lower: float, upper: float) -> str:
    """The λ that give the same clusters."""
    if not lower < upper:
        return "(ties: no λ gives exactly these)"
    if not np.isfinite(upper):
        return f"for λ above {number(lower)}"
    return f"for {number(lower)} < λ ≤ {number(upper)}"


def _explain(ax: Any, k: int, has_range: bool) -> None:
    """What the marks of a cut are; the curve falls, so there is room above it."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    ring: Any = {"marker": "o", "markersize": 8, "fillstyle": "none", "linestyle": "none"}
    text = "the first merge not made"
    handles: list[Any] = [Line2D([], [], color=hue(5, ax), label=text, **ring)]
    if has_range:
        band = Patch(facecolor=HUES[1], alpha=0.25, label=f"λ that give {plural(k, 'cluster')}")
        handles.insert(0, band)
    legend(ax, handles, loc="upper right", bbox_to_anchor=(1.0, 0.93))


def _mark(ax: Any, k: int, lower: float, upper: float) -> None:
    """A line at k, and the range of λ that give it."""
    ax.axvline(k, color=FAINT, linewidth=1.0, linestyle=DASHES, zorder=1)
    ax.axhspan(lower, upper, color=HUES[1], alpha=0.25, linewidth=0, zorder=0)
    ax.annotate(
        f"k = {k:,}",
        (k, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(4, 0),
        textcoords="offset points",
        va="top",
        color=ink(ax),
        fontsize=9.0,
    )


def plot_path(path: ClusteringPath, ax: Any = None) -> Any:
    """Draw the number of clusters and their cost against λ; ``path.plot`` is the same.

    Parameters
    ----------
    path : ClusteringPath
        From ``tree.path()``.
    ax : matplotlib.axes.Axes, optional
        Where to draw the number of clusters; by default a new figure. The cost has twin
        Axes, with the scale on the right.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import fastrbhc
    >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [7.0]], "ward")
    >>> tree.path().plot().get_xscale()
    'log'
    """
    require("matplotlib", "drawing a path")
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    ax = axes(ax, (7.0, 4.0))
    # Of very many steps, as many as can be distinguished, denser where clusters are few.
    steps = len(path) - np.unique(np.geomspace(1, len(path), _STEPS).astype(np.int64))[::-1]
    below, n_clusters, costs = (
        column[steps] for column in (path.thresholds, path.n_clusters, path.costs)
    )
    below = below[:-1]
    # Each clustering holds from the threshold before it up to its own.
    if (below >= 0.0).all():
        positive = below[below > 0.0]
        first, last = (positive[0] / 3.0, 3.0 * positive[-1]) if positive.size else (0.3, 3.0)
    else:  # log odds, for instance
        margin = 0.05 * (below[-1] - below[0]) or 1.0
        first, last = below[0] - margin, below[-1] + margin
    edges = np.concatenate([[first], np.maximum(below, first), [last]])
    ax.stairs(n_clusters, edges, baseline=None, color=hue(0, ax), linewidth=1.5)
    if (below >= 0.0).all():
        ax.set_xscale("log")
    ax.set_xlim(edges[0], edges[-1])
    if n_clusters[0] > 10:
        ax.set_yscale("log")
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter(FuncFormatter(tick))
    else:
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    label_axis(ax, "x", "threshold λ", "λ")
    ax.set_ylabel("number of clusters", color=text_colour(HUES[0], ax))
    right = ax.twinx()
    right.stairs(costs, edges, baseline=None, color=HUES[5], linewidth=1.2, linestyle=DASHES)
    right.yaxis.set_major_formatter(FuncFormatter(tick))
    right.set_ylabel("cost within clusters (dashed)", color=text_colour(HUES[5], ax))
    if (costs >= 0.0).all():
        right.set_ylim(bottom=0.0)
    for one in (ax, right):
        tidy(one, "top")
    set_title(ax, plural(len(path), "clustering"))
    return ax
