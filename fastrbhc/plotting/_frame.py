"""Axes with heights along one side and leaves along another, and the room for text around them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._validation import check_choice
from fastrbhc.plotting._style import DASHES, ink, text_width, tick

SCALES = ("linear", "sqrt", "log")
# Ticks are at least this share of an axis apart, and numbers are this wide in points.
_APART, _NUMBER = 1.0 / 7.0, 38.0
# What an axis says about its scale, also in short.
_SCALE_WORDS = {
    "linear": ("", ""),
    "sqrt": (" (square-root scale)", " (√ scale)"),
    "log": (" (logarithmic scale)", " (log scale)"),
}
# The side of the root, and the opposite one, where the leaves are.
_OPPOSITE = {"top": "bottom", "bottom": "top", "left": "right", "right": "left"}
ORIENTATIONS = tuple(_OPPOSITE)
# Of the gap to other Axes, this share is for our text and the rest for theirs.
_OUR_SHARE = 0.6
_SMALLEST_TEXT, _SMALL_NUMBERS = 6.5, 7.5
# Points that an axis needs for its numbers and its label.
_ROOM_OF_LABEL = {"x": 27.0, "y": 34.0}


class Frame(NamedTuple):
    """Axes for a tree whose root is at one of the four sides."""

    ax: Any
    orientation: str = "top"

    @property
    def upright(self) -> bool:
        """Whether heights are vertical."""
        return self.orientation in ("top", "bottom")

    @property
    def leaf_side(self) -> str:
        """The side of the names of the leaves."""
        return _OPPOSITE[self.orientation]

    @property
    def height_axis(self) -> Any:
        """The axis of the heights."""
        return self.ax.yaxis if self.upright else self.ax.xaxis

    @property
    def leaf_axis(self) -> Any:
        """The axis of the leaves."""
        return self.ax.xaxis if self.upright else self.ax.yaxis

    @property
    def length(self) -> float:
        """Length of the axis of the leaves in points."""
        return points_along(self.ax, "x" if self.upright else "y")

    def points(self, places: Any, heights: Any) -> NDArray[np.float64]:
        """Points of the Axes: (…, 2)."""
        both = (places, heights) if self.upright else (heights, places)
        return np.stack(np.broadcast_arrays(*both), axis=-1).astype(float)

    def set_limits(self, places: tuple[float, float], heights: tuple[float, float]) -> None:
        """Limits of both axes; the first leaf is on the left, or at the top."""
        if self.upright:
            self.ax.set_xlim(*places)
            self.ax.set_ylim(*(heights if self.orientation == "top" else heights[::-1]))
        else:
            self.ax.set_ylim(*places[::-1])
            self.ax.set_xlim(*(heights if self.orientation == "right" else heights[::-1]))

    def set_sides(self) -> None:
        """Heights on the left or below, leaves opposite the root, and no lines but for heights."""
        kept = "left" if self.upright else "bottom"
        for side, spine in self.ax.spines.items():
            spine.set_visible(side == kept)
        if self.upright:
            self.ax.xaxis.set_ticks_position(self.leaf_side)
            self.ax.xaxis.set_label_position(self.leaf_side)
        else:
            self.ax.yaxis.set_ticks_position(self.leaf_side)
            self.ax.yaxis.set_label_position(self.leaf_side)
        self.leaf_axis.set_tick_params(length=0)

    def draw_threshold(self, level: float, text: str) -> None:
        """A dashed line with a text at the end of the leaves, which needs room."""
        ax = self.ax
        style = {"color": ink(ax), "linewidth": 1.0, "linestyle": DASHES, "zorder": 1}
        (ax.axhline if self.upright else ax.axvline)(level, **style)
        end: dict[str, Any]
        if self.upright:
            end = {"xy": (1.0, level), "xycoords": ("axes fraction", "data"), "ha": "right"}
            end["xytext"] = (-2, 3)
        else:  # on the side where there is more room
            place = ax.transAxes.inverted().transform(ax.transData.transform((level, 0.0)))[0]
            end = {"xy": (level, 0.0), "xycoords": ("data", "axes fraction")}
            # Above the label of the heights, if that is inside.
            rise = 2 if has_room_for_label(ax, "x") else 13
            side = (-3, "right") if place > 0.5 else (3, "left")
            end |= {"xytext": (side[0], rise), "ha": side[1]}
        ax.annotate(text, textcoords="offset points", color=ink(ax), fontsize=9.0, **end)


def set_scale(axis: Any, scale: str, values: NDArray[np.float64]) -> float:
    """Scale an axis for heights, and return its lower end, where leaves are drawn.

    It is 0, or slightly below the smallest height where 0 is impossible: on a logarithmic scale,
    and if heights are log odds, which may be negative.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    from fastrbhc.plotting._ticks import RootLocator

    check_choice(scale, "scale", SCALES)
    put = axis.axes.set_yscale if axis.axis_name == "y" else axis.axes.set_xscale
    positive = values[values > 0.0]
    if scale == "log" and positive.size:
        put("log")
        return float(positive.min()) / 1.6
    if scale == "sqrt":
        put("function", functions=(signed_root, signed_square))
        axis.set_minor_locator(NullLocator())
    # Numbers side by side need more room than those above one another.
    apart = _APART
    if axis.axis_name == "x":
        apart = max(_APART, _NUMBER / points_along(axis.axes, "x"))
    locator = RootLocator(apart) if scale == "sqrt" else MaxNLocator(max(2, int(0.9 / apart)))
    axis.set_major_locator(locator)
    axis.set_major_formatter(FuncFormatter(tick))
    lowest = float(values.min(initial=0.0))
    return lowest - 0.1 * (float(values.max()) - lowest) if lowest < 0.0 else 0.0


def with_scale(scale: str, *names: str) -> list[str]:
    """Labels of an axis, which say if its scale is not linear; ever shorter ones."""
    long, short = _SCALE_WORDS[scale]
    return [names[0] + long, *(name + short for name in names)]


def stretched(scale: str, floor: float, top: float, factor: float) -> float:
    """The top, moved away from the floor by a factor, in the units of the scale."""
    if scale == "log" and floor > 0.0:
        return float(floor * (top / floor) ** factor)
    if scale == "sqrt":
        low, high = signed_root(floor), signed_root(top)
        return float(signed_square(low + factor * (high - low)))
    return floor + factor * (top - floor)


def signed_root(values: Any) -> Any:
    """The root, with the sign of the value."""
    return np.sign(values) * np.sqrt(np.abs(values))


def signed_square(values: Any) -> Any:
    """The inverse of the signed root."""
    return np.sign(values) * np.square(values)


def room_beside(ax: Any, side: str) -> float:
    """Points between the Axes and what is next on that side: other Axes, or the end of the figure.

    Infinite if the figure has a layout engine, which makes room for text.
    """
    if ax.figure.get_layout_engine() is not None:
        return np.inf
    own, end = ax.get_position(), {"left": 0.0, "right": 1.0, "bottom": 0.0, "top": 1.0}[side]
    across = side in ("left", "right")
    outward = 1.0 if end else -1.0
    edge = {"left": own.x0, "right": own.x1, "bottom": own.y0, "top": own.y1}[side]
    gap = abs(end - edge)
    for other in ax.figure.axes:
        box = other.get_position()
        low, high = (box.y0, box.y1) if across else (box.x0, box.x1)
        start, stop = (own.y0, own.y1) if across else (own.x0, own.x1)
        beside = [box.x0, box.x1] if across else [box.y0, box.y1]
        near = min(outward * (place - edge) for place in beside)
        if other is not ax and low < stop and start < high and near >= 0.0:
            gap = min(gap, _OUR_SHARE * near)
    box = ax.figure.bbox
    return float(gap * (box.width if across else box.height) / ax.figure.dpi * 72.0)


def label_axis(ax: Any, which: str, *wordings: str) -> None:
    """Label the axis "x" or "y" with the first wording that fits along it.

    Where there is no room beyond the numbers of the axis, the label is inside, at its end.
    """
    axis = ax.xaxis if which == "x" else ax.yaxis
    text, size = _fitting(wordings, points_along(ax, which), _size_of("axes.labelsize"))
    if has_room_for_label(ax, which):
        axis.set_label_text(text, color=ink(ax), fontsize=size)
        return
    ax.tick_params(axis=which, labelsize=_SMALL_NUMBERS)
    text, size = _fitting(wordings, 0.6 * points_along(ax, "x"), 0.8 * size)
    corner = {"x": (1.0, 0.0), "y": (0.0, 1.0)}[which]
    inside = {"x": {"xytext": (-2, 3), "ha": "right", "va": "bottom"},
              "y": {"xytext": (4, -2), "ha": "left", "va": "top"}}[which]  # fmt: skip
    place = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(text, corner, color=ink(ax), fontsize=size, **place, **inside)


def has_room_for_label(ax: Any, which: str) -> bool:
    """Whether the label of an axis can be beyond its numbers."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    return room_beside(ax, axis.get_label_position()) >= _ROOM_OF_LABEL[which]


def set_title(ax: Any, *wordings: str) -> None:
    """The first wording that fits above the Axes; in smaller letters if none does."""
    width = points_along(ax, "x")
    room = width + min(0.8 * room_beside(ax, "right"), 0.25 * width)
    text, size = _fitting(wordings, room, _size_of("font.size"))
    ax.set_title(text, loc="left", fontsize=size, color=ink(ax))


def points_along(ax: Any, which: str) -> float:
    """Length of an axis in points."""
    side = ax.bbox.width if which == "x" else ax.bbox.height
    return float(side / ax.figure.dpi * 72.0)


def _size_of(setting: str) -> float:
    """The size of text in points that the style asks for."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    settings: Any = rcParams
    return float(FontProperties(size=settings[setting]).get_size_in_points())


def _fitting(wordings: tuple[str, ...], room: float, size: float) -> tuple[str, float]:
    """The first wording that is not wider than the room; else the shortest, and its size."""
    widths = [text_width(text, size) for text in wordings]
    for text, width in zip(wordings, widths, strict=True):
        if width <= room:
            return text, size
    best = int(np.argmin(widths))
    return wordings[best], max(_SMALLEST_TEXT, size * room / max(widths[best], 1.0))
