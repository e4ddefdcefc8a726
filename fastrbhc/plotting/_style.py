"""Colours, numbers and axes that all pictures share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._optional import require
from fastrbhc._validation import check_choice

INK, FAINT = "#222222", "#9a9a9a"
DASHES = (0, (5, 4))

# Clusters, in this order and then from the beginning again. The first are Okabe and Ito's or Tol's.
# Any two differ by at least 13 CIELAB units, also with each of the three kinds of colour
# blindness (by the matrices of Machado et al. 2009).
HUES = (
    "#0072b2", "#e69f00", "#117733", "#cc79a7", "#56b4e9", "#d55e00",
    "#332288", "#a7bd76", "#882255", "#9b13fd", "#e71341", "#0c400c",
)  # fmt: skip

SCALES = ("linear", "sqrt", "log")


def hue(label: int) -> str:
    """The colour of a cluster; grey for a negative label, which stands for none."""
    return FAINT if label < 0 else HUES[label % len(HUES)]


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """The given Axes, or those of a new figure of the given size in inches."""
    if ax is not None:
        if not hasattr(ax, "transData"):
            raise TypeError(
                f"ax has to be Axes of matplotlib, got {ax!r}. Options go by their names, such as "
                "n_clusters= for a number of clusters or threshold= for λ"
            )
        return ax
    pyplot = require("matplotlib.pyplot", "drawing")
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def number(value: float) -> str:
    """A number as people write it: 0.1234, 12.34, 1,234, 1.234e+07."""
    if 1e3 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def set_scale(ax: Any, scale: str, values: NDArray[np.float64]) -> float:
    """Scale the vertical axis for heights, and return its lower end, where leaves are drawn.

    It is 0, or slightly below the smallest height where 0 is impossible: on a logarithmic scale,
    and if heights are log odds, which may be negative.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    from fastrbhc.plotting._ticks import RootLocator

    check_choice(scale, "scale", SCALES)
    positive = values[values > 0.0]
    if scale == "log" and positive.size:
        ax.set_yscale("log")
        return float(positive.min()) / 1.6
    if scale == "sqrt":
        ax.set_yscale("function", functions=(signed_root, signed_square))
        ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(RootLocator() if scale == "sqrt" else MaxNLocator(6))
    ax.yaxis.set_major_formatter(FuncFormatter(tick))
    lowest = float(values.min(initial=0.0))
    return lowest - 0.1 * (float(values.max()) - lowest) if lowest < 0.0 else 0.0


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


def tick(value: float, _: Any = None) -> str:
    """The label of a tick."""
    return number(value)


def points_wide(ax: Any) -> float:
    """Width of the Axes in points, as text is measured."""
    return float(ax.bbox.width / ax.figure.dpi * 72.0)


def text_width(text: str, size: float) -> float:
    """Width of a text in points."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0.0, 0.0), text, size=size).get_extents().width) if text else 0.0


def draw_threshold(ax: Any, level: float, text: str) -> None:
    """A dashed line with a text at its right end, which needs room."""
    ax.axhline(level, color=INK, linewidth=1.0, linestyle=DASHES, zorder=1)
    ax.annotate(
        text,
        (1.0, level),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        color=INK,
        fontsize=9.0,
    )


def tidy(ax: Any, *sides: str) -> None:
    """Leave out the frame on these sides."""
    ax.spines[list(sides)].set_visible(False)
