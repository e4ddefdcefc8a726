"""The picture of an audit: violations of reducibility along the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastrbhc._optional import require

if TYPE_CHECKING:
    from fastrbhc.reducibility.report import ReducibilityReport

# Up to this many violations per merge, the axis is linear.
_FEW = 10


def draw_audit(report: ReducibilityReport, ax: Any = None) -> Any:
    """How many violations each merge has, and how large they are.

    Parameters
    ----------
    report : ReducibilityReport
        What an audit has found.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    require("matplotlib", "drawing an audit")
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    from fastrbhc.plotting._frame import label_axis, set_title
    from fastrbhc.plotting._style import axes, tick, tidy

    ax = axes(ax, (7.0, 4.0))
    some = np.flatnonzero(report.counts)
    some = some[np.argsort(report.deficits[some])]  # the largest deficits on top
    points = ax.scatter(
        report.heights[some], report.counts[some], s=18, c=100.0 * report.deficits[some],
        cmap="viridis_r", linewidths=0,
    )  # fmt: skip
    positive = report.heights[report.heights > 0.0]
    if positive.size:
        ax.set_xscale("log")
        ax.set_xlim(positive.min() / 1.2, positive.max() * 1.2)
    most = int(report.counts.max(initial=0))
    if some.size:
        ax.figure.colorbar(points, ax=ax, label="largest deficit of d, %")
    if most > _FEW:
        ax.set_yscale("log")
        ax.set_ylim(0.7, 1.5 * most)
    else:
        ax.set_ylim(0.0, 1.15 * max(most, 1))
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(tick))
        axis.set_minor_formatter(NullFormatter())
    tidy(ax, "top", "right")
    label_axis(ax, "x", "height of the merge")
    label_axis(ax, "y", "clusters that violate reducibility", "clusters in violation")
    found = f"{report.violations:,} violations"
    set_title(
        ax,
        f"{found} in {report.triples:,} triples, {report.consequential:,} consequential",
        f"{found}, {report.consequential:,} consequential",
        found,
    )
    return ax
