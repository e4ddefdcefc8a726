"""The parts of a dendrogram: branches, names of leaves, numbers of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc.plotting._frame import (
    Frame,
    label_axis,
    room_beside,
    set_scale,
    stretched,
    with_scale,
)
from fastrbhc.plotting._style import hue, ink, shortened, text_colour, text_width
from fastrbhc.tree.crown import Crown

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

# Sizes of text in points, and how high a line is in multiples of that.
LARGEST, _SMALLEST, _LINE = 9.0, 4.5, 1.25
_SIDEWAYS = 12  # with fewer leaves and short names, text below them stays upright
_LONGEST, _LONGEST_BESIDE = 24, 40  # letters of a name below the tree, or beside it
# Room in points: for the label of the axis of leaves, for a row of numbers, for pads,
# for the title.
_LABEL, _NUMBERS, _PADS, _TITLE = 15.0, 13.0, 9.0, 18.0
_SHORTEST = 26.0  # names are not cut below this width, but left out


class Colouring(NamedTuple):
    """Which cluster a node belongs to, and where the line of the cut is."""

    nodes: NDArray[np.int64] | None  # label of each node, −1 for none
    line: float | None
    text: str  # beside the line
    n_clusters: int
    colours: dict[int, str] | None = None  # of labels whose colour is not that of a cluster

    def of(self, node: int, ax: Any) -> str:
        """The colour of a branch."""
        if self.nodes is None:
            return ink(ax)
        label = int(self.nodes[node])
        return (self.colours or {}).get(label) or hue(label, ax)


class Places(NamedTuple):
    """Where the tips are along the axis of leaves, and half of the width of their triangles."""

    middles: NDArray[np.float64]
    halves: NDArray[np.float64]
    limits: tuple[float, float]


def evenly(crown: Crown) -> Places:
    """One place for each tip."""
    k = len(crown.tips)
    return Places(np.arange(k, dtype=float), np.full(k, 0.3), (-0.8, k - 0.2))


def draw_branches(
    frame: Frame,
    tree: Dendrogram,
    crown: Crown,
    colouring: Colouring,
    levels: NDArray[np.float64],
    scale: str,
    where: Places | None = None,
    linewidth: float = 1.5,
) -> dict[int, float]:
    """Draw each merge as a bar, and the branches from there down to its parts.

    Returns the place of every node that is drawn, along the axis of leaves.
    """
    from matplotlib.collections import LineCollection, PolyCollection

    n, ax = tree.n_leaves, frame.ax
    drawn = np.concatenate([crown.rows, crown.tips[crown.tips >= n] - n])
    heights = np.append(levels[drawn], [] if colouring.line is None else colouring.line)
    floor = set_scale(frame.height_axis, scale, heights)
    top = float(heights.max(initial=floor))
    if top <= floor:
        top = floor + 1.0  # nothing but copies of one row

    def level(node: int) -> float:
        return max(float(levels[node - n]), floor) if node >= n else floor

    middles, halves, limits = evenly(crown) if where is None else where
    places = dict(zip(crown.tips.tolist(), middles.tolist(), strict=True))
    lines, colours = [], []
    for row in crown.rows.tolist():
        node, pair = n + row, tree.merges[row].tolist()
        height = level(node)
        places[node] = 0.5 * (places[pair[0]] + places[pair[1]])
        lines.append([(places[child], height) for child in pair])
        colours.append(colouring.of(node, ax))
        for child in pair:
            lines.append([(places[child], level(child)), (places[child], height)])
            colours.append(colouring.of(child, ax))
    ceiling = stretched(scale, floor, top, 1.06)
    for root in crown.roots.tolist():
        end = min(tree.threshold, ceiling)
        lines.append([(places[root], level(root)), (places[root], end)])
        colours.append(colouring.of(root, ax))
    segments = [frame.points(*np.transpose(line)) for line in lines]
    ax.add_collection(
        LineCollection(segments, colors=colours, linewidths=linewidth, capstyle="projecting")
    )
    hidden = np.flatnonzero(crown.tips >= n)
    faces = [colouring.of(tip, ax) for tip in crown.tips[hidden].tolist()]
    triangles = [
        frame.points(
            middles[k] + halves[k] * np.array([-1.0, 0.0, 1.0]),
            [floor, level(int(crown.tips[k])), floor],
        )
        for k in hidden.tolist()
    ]
    ax.add_collection(
        PolyCollection(triangles, facecolors=faces, edgecolors=faces, alpha=0.35, linewidths=0.8)
    )
    # At the end there is room for the text of the line.
    text = 0.0
    if colouring.text and where is None:
        text = 1.1 * text_width(colouring.text, LARGEST) if frame.upright else 1.6 * LARGEST
    stretch = 1.0 / max(1.0 - text / frame.length, 0.5)
    end = limits[0] + stretch * (limits[1] - limits[0])
    frame.set_limits((limits[0], end), (floor, ceiling))
    frame.set_sides()
    if where is None:
        labels = with_scale(scale, "height of a merge", "height")
        label_axis(ax, "y" if frame.upright else "x", *labels)
    return places


def name_tips(
    frame: Frame, tree: Dendrogram, crown: Crown, colouring: Colouring, names: Sequence[Any] | None
) -> float | None:
    """Label the leaves with names or sizes, as far as there is room.

    Returns how far the labels reach from the Axes, in points; None if no number fits beyond them.
    """
    ax = frame.ax
    texts = tip_texts(tree, crown, names, _LONGEST if frame.upright else _LONGEST_BESIDE)
    low, high = sorted(ax.get_xlim() if frame.upright else ax.get_ylim())
    apart = frame.length / (high - low)
    level = frame.upright and len(texts) <= _SIDEWAYS and max(map(len, texts)) <= 8
    widest = max(text_width(text, LARGEST) for text in texts)
    level = level and widest < apart
    size = min(LARGEST, apart if level else apart / _LINE)
    shown = level or size >= _SMALLEST
    size = max(size, _SMALLEST)
    room = room_beside(ax, frame.leaf_side) - (_TITLE if frame.leaf_side == "top" else 0.0)
    numbered = _NUMBERS if colouring.nodes is not None else 0.0
    needed = _PADS + (0.0 if not shown else size if level else size / LARGEST * widest)
    # The label of the axis is what can be done without first, and then the numbers of clusters.
    labelled = room >= min(needed, _PADS + 2.0 * _SHORTEST) + numbered + _LABEL
    left = room - (_LABEL if labelled else 0.0) - _PADS
    if left - numbered < min(needed - _PADS, _SHORTEST):
        numbered = 0.0
    left -= numbered
    frame.leaf_axis.set_ticks([])
    if labelled:
        words = leaf_words(tree, crown)
        numbers = [f"{word}; bold: cluster" for word in words] if numbered else []
        label_axis(ax, "x" if frame.upright else "y", *numbers, *words)
    if not shown or (not level and left < min(needed - _PADS, _SHORTEST)):
        return 4.0 if numbered else None
    if not level and np.isfinite(left):
        texts = [shortened(text, left, size) for text in texts]
    frame.leaf_axis.set_ticks(range(len(texts)))
    frame.leaf_axis.set_ticklabels(
        texts, rotation=90 if frame.upright and not level else 0, fontsize=size
    )
    for text, tip in zip(frame.leaf_axis.get_ticklabels(), crown.tips.tolist(), strict=True):
        text.set_color(text_colour(colouring.of(tip, ax), ax))
    reach = size if level else max(text_width(text, size) for text in texts)
    return 7.0 + 1.06 * reach if numbered else None


def leaf_words(tree: Dendrogram, crown: Crown) -> list[str]:
    """What the leaves of the picture are, in ever fewer words."""
    hidden = crown.tips >= tree.n_leaves
    if not hidden.any():
        return ["row"]
    if hidden.all():
        return ["(number of rows) of each triangle", "(rows)"]
    return ["row, or (number of rows) of a triangle", "row, or (rows)"]


def tip_texts(
    tree: Dendrogram, crown: Crown, names: Sequence[Any] | None, longest: int = _LONGEST
) -> list[str]:
    """The names of rows, or how many there are in a tip."""
    texts = []
    for tip in crown.tips.tolist():
        if tip >= tree.n_leaves:
            texts.append(f"({crown.sizes[tip]:,})")
        else:
            name = str(tip if names is None else names[tip])
            texts.append(name if len(name) <= longest else name[: longest - 1] + "…")
    return texts


def number_clusters(frame: Frame, crown: Crown, colouring: Colouring, offset: float) -> bool:
    """Put the number of each cluster beyond the names of its leaves; False if there is no room."""
    assert colouring.nodes is not None
    ax, labels = frame.ax, colouring.nodes[crown.tips]
    # Leaves of a cluster stand side by side; labels from elsewhere may come several times.
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    middles = 0.5 * (starts + np.r_[starts[1:], labels.size] - 1.0)
    known = labels[starts] >= 0
    low, high = sorted(ax.get_xlim() if frame.upright else ax.get_ylim())
    gaps = np.diff(middles[known]) * frame.length / (high - low)
    needed = LARGEST
    if frame.upright:
        needed = text_width("8" * len(str(labels.max())), LARGEST)
    if not known.any() or gaps.min(initial=np.inf) < 1.3 * needed:
        return False
    side = frame.leaf_side
    outward = -1.0 if side in ("left", "bottom") else 1.0
    edge = 0.0 if side in ("left", "bottom") else 1.0
    place: dict[str, Any]
    for label, middle in zip(labels[starts][known].tolist(), middles[known].tolist(), strict=True):
        if frame.upright:
            place = {"xy": (middle, edge), "xycoords": ("data", "axes fraction")}
            place |= {"xytext": (0, outward * offset), "ha": "center"}
            place["va"] = "top" if side == "bottom" else "bottom"
        else:
            place = {"xy": (edge, middle), "xycoords": ("axes fraction", "data")}
            place |= {"xytext": (outward * offset, 0), "va": "center"}
            place["ha"] = "right" if side == "left" else "left"
        ax.annotate(
            str(label),
            textcoords="offset points",
            color=text_colour(hue(label, ax), ax),
            fontsize=LARGEST,
            fontweight="bold",
            annotation_clip=False,
            **place,
        )
    frame.leaf_axis.labelpad += 1.6 * LARGEST
    return True
