"""The picture of an assessment: the verdicts on the branches of the dendrogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastrbhc._engine.traversal import common_labels
from fastrbhc._optional import require
from fastrbhc.plotting._branches import Colouring, draw_branches, leaf_words, name_tips
from fastrbhc.plotting._frame import Frame, label_axis, set_title
from fastrbhc.plotting._style import axes as new_axes
from fastrbhc.plotting._style import background, hue, ink, legend, plural, text_width
from fastrbhc.plotting.trees import leaves_for
from fastrbhc.tree.crown import crown_of

if TYPE_CHECKING:
    from fastrbhc.assessment.report import ClusterAssessment

# The colour of a verdict is that of the cluster of this number; grey for chance, and for none.
_COLOURS = {
    "stable": 0,
    "doubtful": 1,
    "not distinguishable from chance": -1,
    "the only cluster": -1,
}
_SIZE = 8.5
# Room above the tree for the texts of the highest clusters.
_HEADROOM = 1.12


def draw_assessment(report: ClusterAssessment, ax: Any = None) -> Any:
    """The dendrogram with the branches of each cluster in the colour of its verdict.

    Above each cluster is its number and its Jaccard index.

    Parameters
    ----------
    report : ClusterAssessment
        What `Dendrogram.stability` has found.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    require("matplotlib", "drawing an assessment")
    from matplotlib.lines import Line2D

    tree, k = report.tree, len(report)
    codes = np.array([_COLOURS[verdict] for verdict in report.verdicts])
    clusters = common_labels(tree.merges, report.labels)
    # Above the clusters branches are black: that is no verdict.
    above = 2 + max(_COLOURS.values())
    nodes = np.where(clusters >= 0, codes[clusters], above)
    crown = crown_of(tree, leaves_for(k))
    ax = new_axes(ax, (max(8.0, 0.16 * len(crown.tips)), 4.2))
    colouring = Colouring(nodes, None, "", k, colours={above: ink(ax)})
    frame = Frame(ax)
    places = draw_branches(frame, tree, crown, colouring, tree.levels, "sqrt")
    name_tips(frame, tree, crown, colouring, None)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high * _HEADROOM**2 if low == 0.0 else high)
    _write_indices(ax, report, places)
    present = [verdict for verdict in _COLOURS if verdict in report.verdicts]
    handles = [
        Line2D([], [], color=hue(_COLOURS[verdict], ax), linewidth=2.5, label=verdict)
        for verdict in present
    ]
    legend(ax, handles, loc="upper right", framealpha=0.0)
    if ax.get_xlabel():
        words = leaf_words(tree, crown)
        index = [f"{word}; on branches, cluster: Jaccard index" for word in words]
        label_axis(ax, "x", *index, *words)
    counts = ", ".join(f"{report.verdicts.count(verdict)} {verdict}" for verdict in present)
    title = f"{plural(k, 'cluster')}: {counts}" if k > 1 else "1 cluster of all rows"
    set_title(ax, title, plural(k, "cluster"))
    return ax


def _write_indices(ax: Any, report: ClusterAssessment, places: dict[int, float]) -> None:
    """Number and Jaccard index of every cluster that is drawn, at the top of its branch."""
    drawn = [c for c in range(len(report)) if int(report.nodes[c]) in places]
    drawn.sort(key=lambda c: places[int(report.nodes[c])])
    left, right = ax.get_xlim()
    room = Frame(ax).length / (right - left)
    level = 0
    before = -np.inf
    for c in drawn:
        place = places[int(report.nodes[c])] * room
        text = f"{c}: {report.jaccard[c]:.2f}"
        # Neighbours that are too close are written one above the other.
        level = (level + 1) % 3 if place - before < 1.1 * text_width(text, _SIZE) else 0
        before = place
        ax.annotate(
            text,
            (place / room, max(float(report.born[c]), ax.get_ylim()[0])),
            xytext=(0, 3 + 11 * level),
            textcoords="offset points",
            ha="center",
            color=ink(ax),
            fontsize=_SIZE,
            fontweight="bold" if report.verdicts[c] == "stable" else "normal",
            bbox={"facecolor": background(ax), "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
        )
