"""Summaries for notebooks: a small table, and below it a picture inside the page."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

# Dots an inch: what a page shows one to one.
_RESOLUTION = 96


def table(caption: str, lines: Iterable[tuple[str, str]]) -> str:
    """Names and texts as two columns."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in lines
    )
    return f"<table><caption>{html.escape(caption)}</caption>{rows}</table>"


def grid(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Columns of numbers with a head."""
    lines = ["".join(f"<th>{html.escape(name)}</th>" for name in head)]
    lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f"<table style='text-align:right'><caption>{html.escape(caption)}</caption>{body}</table>"
    )


def picture(
    draw: Callable[[Any], Any], size: tuple[float, float], *, as_lines: bool = False
) -> str:
    """What ``draw`` puts on an Axes, as an image element; nothing without matplotlib.

    It is a PNG file, or as lines SVG, which stays sharp however large it is shown.
    """
    try:
        image = svg(draw, size) if as_lines else png(draw, size)
    except ImportError:
        return ""
    kind = "svg+xml" if as_lines else "png"
    # As an image of its own, the names of its parts cannot meet those of another picture.
    return f"<img alt='' src='data:image/{kind};base64,{base64.b64encode(image).decode()}'/>"


def png(draw: Callable[..., Any], size: tuple[float, float], n_axes: int = 1) -> bytes:
    """A PNG file, as bytes, of what ``draw`` puts on Axes side by side; the size is in inches."""
    buffer = io.BytesIO()
    _figure(draw, size, n_axes).savefig(buffer, format="png")
    return buffer.getvalue()


def svg(draw: Callable[..., Any], size: tuple[float, float]) -> bytes:
    """The same as an SVG file, which is the same whenever it is written."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "fastrbhc"}):
        _figure(draw, size, 1).savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _figure(draw: Callable[..., Any], size: tuple[float, float], n_axes: int) -> Any:
    from matplotlib import rcParams
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure

    # Nothing shines through, whatever the page has behind it.
    colour = to_rgba(rcParams["figure.facecolor"])
    behind = colour if colour[3] == 1.0 else "white"
    # Not from pyplot, which would keep the figure and show it once more.
    figure = Figure(figsize=size, dpi=_RESOLUTION, facecolor=behind, layout="constrained")
    draw(*figure.subplots(1, n_axes, squeeze=False)[0])
    return figure


class FittedHTML:
    """For scikit-learn estimators: their own HTML, and once fitted what was found.

    A mixin for classes with ``dendrogram_``, ``labels_`` and ``n_clusters_``, to be named before
    ``BaseEstimator``. A class that has more to tell extends ``_findings``.
    """

    dendrogram_: Any
    labels_: Any
    n_clusters_: int

    def _findings(self) -> list[tuple[str, str]]:
        """Names and texts of the summary."""
        sizes = np.sort(np.bincount(self.labels_))[::-1]
        shown = ", ".join(f"{size:,}" for size in sizes[:8])
        more = f", … ({sizes.size - 8:,} more)" if sizes.size > 8 else ""
        return [
            ("rows", f"{self.dendrogram_.n_leaves:,}"),
            ("clusters", f"{self.n_clusters_:,}"),
            ("rows in each", shown + more),
        ]

    def _draw_findings(self, ax: Any) -> Any:
        threshold = getattr(self, "threshold_", None)
        return self.dendrogram_.plot(ax, threshold=threshold, labels=self.labels_)

    def _findings_html(self) -> str:
        if not hasattr(self, "dendrogram_"):
            return ""
        name = type(self).__name__
        drawing = picture(self._draw_findings, (6.5, 3.4), as_lines=True)
        return table(name, self._findings()) + drawing

    # Both, as scikit-learn has both: IPython asks for the second one, other pages for the first.
    @property
    def _repr_html_(self) -> Callable[[], str]:
        own: Callable[[], str] = super()._repr_html_  # type: ignore[misc]
        return lambda: own() + self._findings_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._findings_html()
        return bundle
