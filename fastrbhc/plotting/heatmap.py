"""Heat maps with the tree of their rows, and one of their columns, beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._optional import require
from fastrbhc._validation import check_choice, check_count, check_names
from fastrbhc.plotting._branches import Colouring, Places, draw_branches, tip_texts
from fastrbhc.plotting._frame import Frame, label_axis, with_scale
from fastrbhc.plotting._style import DASHES, background, hue, ink, plural, text_colour
from fastrbhc.plotting.trees import colouring_of
from fastrbhc.tree.crown import Crown, crown_of
from fastrbhc.tree.profiles import Profiles, profiles_of

if TYPE_CHECKING:
    from fastrbhc.families import Family
    from fastrbhc.tree.dendrogram import Dendrogram

ROW_HEIGHTS = ("rows", "equal")
# Widths in inches of the tree, of the strip of colours, and of a column at most.
_TREE, _STRIP, _COLUMN = 1.7, 0.22, 0.3
_WIDTHS, _HEIGHTS = (2.2, 7.0), (3.5, 7.5)
_LARGEST, _SMALLEST, _LINE = 9.0, 4.5, 1.2
# Colours end at this share of the values, so that one of them cannot make all others pale.
_SHOWN = 0.99
_ORDERED = 500  # nodes of the order


class ClusterMap(NamedTuple):
    """The parts of a cluster map, named as seaborn names them, and what it shows."""

    figure: Any
    ax_heatmap: Any
    ax_row_dendrogram: Any
    ax_row_colors: Any
    """The strip of clusters; None if there are none."""
    ax_col_dendrogram: Any
    """None without a tree of the columns."""
    ax_cbar: Any
    data: NDArray[np.float64]
    """The numbers that are drawn, from the top down and from left to right."""
    nodes: NDArray[np.int64]
    """The node of the tree that each row of the picture is."""
    columns: list[str]
    """Names of the columns, from left to right."""


def clustermap(
    X: ArrayLike,
    tree: Dendrogram,
    *,
    threshold: float | None = None,
    n_clusters: int | None = None,
    labels: ArrayLike | None = None,
    z_score: bool = True,
    column_tree: bool | Dendrogram = True,
    row_heights: str = "rows",
    max_leaves: int = 200,
    max_columns: int = 60,
    optimal: bool = True,
    names: Sequence[Any] | None = None,
    feature_names: Sequence[str] | None = None,
    cmap: Any = None,
    scale: str = "sqrt",
    family: str | Family | None = None,
    figure: Any = None,
) -> ClusterMap:
    """Draw a heat map of the rows with their tree beside it; ``tree.plot_clustermap`` is the same.

    Parameters
    ----------
    X : array-like of shape (n_leaves, d)
        The rows of the tree, of any number. Large sparse matrices stay sparse.
    tree : Dendrogram
        A tree or forest of any size. Of large ones the parts with the most rows are divided until
        there are ``max_leaves``, and the rows of each part are averaged.
    threshold, n_clusters, labels : optional
        The clusters, as in `plot_dendrogram`: they colour the branches and a strip beside the heat
        map, and white lines divide them. By default those of the λ that was chosen for the tree.
    z_score : bool, default=True
        Show by how many standard deviations a part is above or below the mean of each column; both
        are of the parts that are drawn, by the weights of their rows. With False, show the means:
        those of the family, as in ``tree.summary``.
    column_tree : bool or Dendrogram, default=True
        The tree of the columns: Ward's, of the z-scores that are drawn, a given tree over all
        columns, or False to leave columns as they are.
    row_heights : {"rows", "equal"}, default="rows"
        A part is as high as it has rows, so that areas are numbers of rows, or all are equally
        high. With "equal" the parts are those of the highest merges, as in `plot_dendrogram`, and
        small clusters can be seen.
    max_leaves : int, default=200
        Number of parts. A tree with fewer rows is drawn row by row.
    max_columns : int, default=60
        Of more columns, those are drawn that tell the clusters from one another, or else the
        parts, as ``tree.summary`` finds them. A given tree of the columns has all of them.
    optimal : bool, default=True
        Order both trees so that neighbours are similar, see ``tree.leaves_order``.
    names : sequence of length n_leaves, optional
        Names of the rows.
    feature_names : sequence of str, optional
        Names of the columns, if neither X nor the tree has them.
    cmap : str or Colormap, optional
        Colours, by default "RdBu_r" for z-scores and "viridis" for means. They end at the 99th
        percentile of the values; the colour bar has a tip if there are values beyond.
    scale : {"sqrt", "linear", "log"}, default="sqrt"
        The scale of the heights.
    family : str or record, optional
        Another family of the means than that of the tree.
    figure : Figure or SubFigure of matplotlib, optional
        Where to draw; by default a new figure.

    Returns
    -------
    ClusterMap
        ``figure``, the Axes by the names that seaborn gives them (``ax_heatmap``,
        ``ax_row_dendrogram``, ``ax_col_dendrogram``, ``ax_row_colors``, ``ax_cbar``), and what is
        shown: ``data``, ``nodes``, ``columns``.

    Notes
    -----
    Categories have a column for each level, with the share of the rows that have it. Cells without
    any observed value are grey.

    Examples
    --------
    >>> import numpy as np
    >>> import fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.repeat(rng.gamma(2.0, 5.0, size=(3, 8)), 50, axis=0))
    >>> found = fastrbhc.linkage(X, "poisson").plot_clustermap(X, n_clusters=3)
    >>> found.data.shape, len(found.columns)
    ((150, 8), 8)
    >>> found.figure.savefig("clusters.pdf")  # doctest: +SKIP
    """
    require("matplotlib", "drawing a cluster map")
    check_choice(row_heights, "row_heights", ROW_HEIGHTS)
    names = check_names(names, tree.n_leaves)
    if check_count(max_leaves, "max_leaves") < 2:
        raise ValueError(f"max_leaves has to be at least 2, got {max_leaves}")
    colouring = colouring_of(tree, threshold, n_clusters, labels)
    order = None
    if optimal:
        nodes = min(max_leaves, _ORDERED)
        order = tree.leaves_order(optimal=True, X=X, max_nodes=nodes, family=family)
    crown = crown_of(tree, max_leaves, order, by_size=row_heights == "rows")
    given = not isinstance(column_tree, bool)
    n_shown = np.shape(X)[1] if given else check_count(max_columns, "max_columns")
    parts = crown.labels(tree.n_leaves)
    clusters = None if colouring.nodes is None else colouring.nodes[: tree.n_leaves]
    profiles = profiles_of(tree, X, parts, n_shown, family, feature_names, clusters)
    values = standardised(profiles)
    by_columns = _tree_of_columns(values, column_tree)
    first = np.arange(values.shape[1])
    if by_columns is not None:
        filled = np.nan_to_num(values.T)
        first = by_columns.leaves_order()
        if optimal and values.shape[1] <= _ORDERED and by_columns.n_features == filled.shape[1]:
            first = by_columns.leaves_order(optimal=True, X=filled)
    shown = (values if z_score else profiles.means)[:, first]
    columns = [profiles.columns[column].label for column in first.tolist()]
    sizes = crown.sizes[crown.tips] if row_heights == "rows" else np.ones(len(crown.tips))
    edges = np.concatenate([[0.0], np.cumsum(sizes, dtype=float)])
    figure = _new_figure(shown.shape) if figure is None else figure
    grid = _axes_of(figure, shown.shape, by_columns is not None, colouring.nodes is not None)
    heat, strip = grid["heat"], grid.get("strip")
    image, extend = _draw_heat(heat, edges, shown, z_score, cmap)
    _draw_row_tree(grid["rows"], tree, crown, colouring, edges, scale)
    if strip is not None:
        _draw_strip(strip, heat, crown, colouring, edges)
    if by_columns is not None:
        _draw_column_tree(grid["columns"], by_columns, first, scale)
    _name_rows(heat, tree, crown, edges, names)
    _name_columns(heat, columns, profiles.n_columns)
    bar = figure.colorbar(image, ax=heat, extend=extend, shrink=0.6, aspect=25, pad=0.02)
    bar.set_label("z-score of the mean" if z_score else "mean", color=ink(heat))
    bar.outline.set_visible(False)
    what = f"{plural(tree.n_leaves, 'row')}, {plural(profiles.n_columns, 'column')}"
    if colouring.n_clusters:
        what += f", {plural(colouring.n_clusters, 'cluster')}"
    top = grid["columns"] if by_columns is not None else heat
    top.set_title(what, loc="left", fontsize="medium", color=ink(heat))
    return ClusterMap(
        figure,
        heat,
        grid["rows"],
        strip,
        grid.get("columns"),
        bar.ax,
        shown,
        crown.tips,
        columns,
    )


def standardised(profiles: Profiles) -> NDArray[np.float64]:
    """Differences from the mean of each column, in standard deviations of the parts."""
    means = profiles.means
    weights = np.where(np.isnan(means), 0.0, profiles.weights[:, None])
    totals = np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
    filled = np.nan_to_num(means)
    centre = (weights * filled).sum(axis=0) / totals
    variances = (weights * (filled - centre) ** 2).sum(axis=0) / totals
    # What only rounding tells apart is no difference.
    widths = np.sqrt(variances)
    apart = widths > 1e-12 * np.abs(centre)
    result: NDArray[np.float64] = (means - centre) / np.where(apart, widths, 1.0)
    return np.where(apart, result, 0.0 * means)


def _tree_of_columns(values: NDArray[np.float64], given: bool | Dendrogram) -> Dendrogram | None:
    """The tree over the columns, if there is to be one."""
    d = values.shape[1]
    if not isinstance(given, bool):
        if given.n_leaves != d:
            raise ValueError(f"column_tree has {given.n_leaves} leaves, and there are {d} columns")
        return given
    if not given or d < 2:
        return None
    from fastrbhc import linkage

    return linkage(np.nan_to_num(values.T), "ward")


def _new_figure(shape: tuple[int, ...]) -> Any:
    """A figure with room for that many rows and columns."""
    pyplot = require("matplotlib.pyplot", "drawing a cluster map")
    width = float(np.clip(_COLUMN * shape[1], *_WIDTHS))
    height = float(np.clip(0.16 * shape[0], *_HEIGHTS))
    return pyplot.figure(figsize=(width + 3.4, height + 1.6), layout="constrained")


def _axes_of(
    figure: Any, shape: tuple[int, ...], has_columns: bool, has_clusters: bool
) -> dict[str, Any]:
    """Axes for the heat map and for what is beside it."""
    box = figure.bbox
    width, height = (float(side / figure.dpi) for side in (box.width, box.height))
    widths = {"rows": _TREE, "strip": _STRIP, "heat": max(width - _TREE - 1.6, 1.0)}
    if not has_clusters:
        del widths["strip"]
    heights = [0.16 * height, 0.84 * height] if has_columns else [1.0]
    grid = figure.add_gridspec(
        len(heights), len(widths), width_ratios=list(widths.values()), height_ratios=heights,
        wspace=0.02, hspace=0.02,
    )  # fmt: skip
    last, found = len(heights) - 1, {}
    for place, name in enumerate(widths):
        found[name] = figure.add_subplot(grid[last, place])
    if has_columns:
        found["columns"] = figure.add_subplot(grid[0, len(widths) - 1])
    return found


def _draw_heat(
    ax: Any, edges: NDArray[np.float64], values: NDArray[np.float64], z_score: bool, cmap: Any
) -> tuple[Any, str]:
    """The heat map, and on which sides its colours end before the values do."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba

    known = values[np.isfinite(values)]
    colours = ("RdBu_r" if z_score else "viridis") if cmap is None else cmap
    map_ = colormaps[colours] if isinstance(colours, str) else colours
    map_ = map_.with_extremes(bad=to_rgba("#9a9a9a", 0.6))
    if z_score:
        high = float(np.quantile(np.abs(known), _SHOWN)) if known.size else 1.0
        low, high = -(high or 1.0), high or 1.0
    else:
        ends = np.quantile(known, [1.0 - _SHOWN, _SHOWN]) if known.size else np.array([0.0, 1.0])
        low, high = (float(end) for end in ends)
    image = ax.pcolormesh(
        np.arange(values.shape[1] + 1.0) - 0.5,
        edges,
        np.ma.masked_invalid(values),
        cmap=map_,
        vmin=low,
        vmax=high if high > low else low + 1.0,
        rasterized=values.size > 5_000,
        linewidth=0,
    )
    ax.set_ylim(edges[-1], 0.0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    below, above = bool((known < low).any()), bool((known > high).any())
    extend = "both" if below and above else "min" if below else "max" if above else "neither"
    return image, extend


def _draw_row_tree(
    ax: Any,
    tree: Dendrogram,
    crown: Crown,
    colouring: Colouring,
    edges: NDArray[np.float64],
    scale: str,
) -> None:
    frame = Frame(ax, "left")
    middles, halves = 0.5 * (edges[1:] + edges[:-1]), 0.4 * np.diff(edges)
    where = Places(middles, halves, (0.0, float(edges[-1])))
    width = 1.2 if len(crown.tips) <= 80 else 0.7
    draw_branches(frame, tree, crown, colouring, tree.levels, scale, where, width)
    if colouring.line is not None:
        ax.axvline(colouring.line, color=ink(ax), linewidth=0.8, linestyle=DASHES)
    ax.set_yticks([])
    ax.tick_params(axis="x", labelsize=7.0)
    label_axis(ax, "x", *with_scale(scale, "height"))


def _draw_column_tree(ax: Any, tree: Dendrogram, first: NDArray[np.int64], scale: str) -> None:
    d = tree.n_leaves
    crown = crown_of(tree, max(d, 2), first)
    where = Places(np.arange(d, dtype=float), np.full(d, 0.3), (-0.5, d - 0.5))
    draw_branches(
        Frame(ax), tree, crown, Colouring(None, None, "", 0), tree.levels, scale, where, 0.9
    )
    ax.set_axis_off()


def _draw_strip(
    ax: Any, heat: Any, crown: Crown, colouring: Colouring, edges: NDArray[np.float64]
) -> None:
    """The clusters as a strip with their numbers, and lines between them in the heat map."""
    from matplotlib.colors import to_rgb

    assert colouring.nodes is not None
    tips = crown.tips.tolist()
    labels = colouring.nodes[crown.tips]
    colours = np.array([[to_rgb(colouring.of(tip, ax))] for tip in tips])
    ax.pcolormesh([0.0, 1.0], edges, colours)
    ax.set_ylim(edges[-1], 0.0)
    ax.set_axis_off()
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    for start in starts[1:].tolist():
        for one in (ax, heat):
            one.axhline(edges[start], color=background(heat), linewidth=1.2)
    height = ax.bbox.height / ax.figure.dpi * 72.0 / edges[-1]
    for start, stop in zip(starts, np.r_[starts[1:], len(tips)], strict=True):
        if labels[start] < 0 or (edges[stop] - edges[start]) * height < 1.1 * _LARGEST:
            continue
        colour = hue(int(labels[start]), ax)
        ax.text(
            0.5,
            0.5 * (edges[start] + edges[stop]),
            str(labels[start]),
            ha="center",
            va="center_baseline",
            fontsize=8.0,
            fontweight="bold",
            color=_on(colour),
        )


def _on(colour: str) -> str:
    """Black or white, whichever can be read on the colour."""
    from fastrbhc.plotting._style import luminance

    return "#ffffff" if luminance(colour) < 0.3 else "#111111"


def _name_rows(
    ax: Any,
    tree: Dendrogram,
    crown: Crown,
    edges: NDArray[np.float64],
    names: Sequence[Any] | None,
) -> None:
    """Names of rows, or numbers of rows in parentheses, of the parts that are high enough."""
    ax.yaxis.tick_right()
    ax.tick_params(axis="y", length=0)
    ax.set_yticks([])
    heights = np.diff(edges) * ax.bbox.height / ax.figure.dpi * 72.0 / edges[-1]
    size = min(_LARGEST, float(np.median(heights)) / _LINE)
    if size >= _SMALLEST:
        named = np.flatnonzero(heights >= 0.9 * size)
        texts = tip_texts(tree, crown, names)
        middles = 0.5 * (edges[1:] + edges[:-1])
        ax.set_yticks(middles[named], [texts[k] for k in named.tolist()], fontsize=size)
        for text in ax.get_yticklabels():
            text.set_color(text_colour(ink(ax), ax))


def _name_columns(ax: Any, columns: list[str], n_columns: int) -> None:
    """Names of the columns, if there is room for them."""
    width = ax.bbox.width / ax.figure.dpi * 72.0 / len(columns)
    size = min(_LARGEST, width / _LINE)
    ax.tick_params(axis="x", length=0)
    if size >= _SMALLEST:
        short = [name if len(name) <= 24 else name[:23] + "…" for name in columns]
        ax.set_xticks(range(len(columns)), short, rotation=90, fontsize=size, color=ink(ax))
    else:
        ax.set_xticks([])
    if len(columns) < n_columns:
        label_axis(ax, "x", f"the {len(columns)} most telling of {n_columns:,} columns")
    elif size < _SMALLEST:
        label_axis(ax, "x", plural(n_columns, "column"))
