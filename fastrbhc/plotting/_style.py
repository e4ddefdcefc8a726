"""Colours and words that all pictures share; `_frame` has axes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fastrbhc._optional import require

INK, LIGHT_INK, FAINT = "#222222", "#e6e6e6", "#8c8c8c"
DASHES = (0, (5, 4))

# Clusters, in this order and then from the beginning again. The first are Okabe and Ito's or Tol's.
# Any two differ by at least 13 CIELAB units, also with each of the three kinds of colour
# blindness (by the matrices of Machado et al. 2009).
HUES = (
    "#0072b2", "#e69f00", "#117733", "#cc79a7", "#56b4e9", "#d55e00",
    "#332288", "#a7bd76", "#882255", "#9b13fd", "#e71341", "#0c400c",
)  # fmt: skip

# Contrasts with the background: of lines and areas on light and on dark ones, and of text (WCAG 2,
# level AA). With more the hues of areas could no longer be told apart.
_ON_LIGHT, _ON_DARK, _TEXT = 2.0, 2.5, 4.5
# Text on backgrounds darker than this is light.
_DARK = 0.18


def hue(label: int, ax: Any = None) -> str:
    """The colour of a cluster; grey for a negative label, which stands for none.

    Given Axes, it is lightened where their background is too dark for it.
    """
    colour = FAINT if label < 0 else HUES[label % len(HUES)]
    if ax is None:
        return colour
    return visible(colour, ax, _ON_DARK if is_dark(ax) else _ON_LIGHT)


def ink(ax: Any) -> str:
    """The colour of text and of lines without a cluster."""
    return LIGHT_INK if is_dark(ax) else INK


def is_dark(ax: Any) -> bool:
    """Whether text on the Axes has to be light."""
    return luminance(background(ax)) < _DARK


def text_colour(colour: str, ax: Any) -> str:
    """The colour, as text in it can be read."""
    return visible(colour, ax, _TEXT)


def visible(colour: str, ax: Any, contrast: float) -> str:
    """The colour, mixed with black or white as far as the contrast with the background needs."""
    return contrasting(colour, background(ax), contrast)


def contrasting(colour: str, behind: Any, contrast: float) -> str:
    """The same for a background that is given as a colour."""
    darkness, own = luminance(behind), np.array(_rgb(colour))
    end = 1.0 if darkness < _DARK else 0.0
    for share in np.linspace(0.0, 1.0, 41):
        mixed = (1.0 - share) * own + share * end
        low, high = sorted((luminance(mixed), darkness))
        if (high + 0.05) / (low + 0.05) >= contrast:
            break
    if share == 0.0:
        return colour
    return "#" + "".join(f"{round(255 * part):02x}" for part in mixed)


def hues_on(behind: str) -> dict[str, list[str]]:
    """The colours of clusters on a background: of lines, and of text."""
    lines = _ON_DARK if luminance(behind) < _DARK else _ON_LIGHT
    return {
        "lines": [contrasting(colour, behind, lines) for colour in HUES],
        "text": [contrasting(colour, behind, _TEXT) for colour in HUES],
    }


def luminance(colour: Any) -> float:
    """Relative luminance of a colour, from 0 to 1 (WCAG 2)."""
    rgb = np.array(_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _rgb(colour: Any) -> Any:
    """Red, green and blue; matplotlib is asked for what is not written as #rrggbb."""
    if isinstance(colour, str) and len(colour) == 7 and colour[0] == "#":
        return tuple(int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5))
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def background(ax: Any) -> Any:
    """What is behind the Axes: their own colour, that of the figure, or white."""
    for colour in (ax.get_facecolor(), ax.figure.get_facecolor()):
        if colour[3] > 0.5:
            return colour[:3]
    return (1.0, 1.0, 1.0)


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


def tick(value: float, _: Any = None) -> str:
    """The label of a tick."""
    return number(value)


@functools.lru_cache(maxsize=1024)
def text_width(text: str, size: float) -> float:
    """Width of a text in points."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0.0, 0.0), text, size=size).get_extents().width) if text else 0.0


def shortened(text: str, room: float, size: float) -> str:
    """The text, without its last letters if it is wider than the room in points."""
    width = text_width(text, size)
    if width <= room:
        return text
    # Letters differ in width, so the first guess may be wrong by some.
    for length in range(int(len(text) * room / width), 0, -1):
        cut = text[:length].rstrip() + "…"
        if text_width(cut, size) <= room:
            return cut
    return ""


def legend(ax: Any, handles: list[Any], title: str | None = None, **options: Any) -> Any:
    """A legend without a frame around it, on what is behind."""
    looks = {"fontsize": 8.5, "title_fontsize": 8.5, "labelcolor": ink(ax), "alignment": "left"}
    behind = {"facecolor": background(ax), "edgecolor": "none", "framealpha": 0.8}
    box = ax.legend(handles=handles, title=title, **{**looks, **behind, **options})
    box.get_title().set_color(ink(ax))
    return box


def tidy(ax: Any, *sides: str) -> None:
    """Leave out the frame on these sides."""
    ax.spines[list(sides)].set_visible(False)
