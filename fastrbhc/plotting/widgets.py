"""A slider for λ in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastrbhc._optional import require
from fastrbhc._validation import check_count
from fastrbhc.families._interface import FamilyLike
from fastrbhc.plotting import html as _html
from fastrbhc.tree.origin import family_for

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

_SIZE = (10.5, 4.4)
_STEPS = 200  # of the slider
_LEAVES, _MOST_LEAVES = 24, 60  # of the tree, in half a page


def explore(
    tree: Dendrogram,
    X: ArrayLike,
    *,
    family: FamilyLike | None = None,
    max_clusters: int = 50,
    max_points: int = 5_000,
) -> Any:
    """Move λ in a notebook, and see the clusters change; ``tree.explore`` is the same.

    Parameters
    ----------
    tree : Dendrogram
        A tree or forest.
    X : array-like of shape (n_leaves, d)
        The rows of the tree.
    family : str or record, optional
        Another family of the ellipses than that of the tree.
    max_clusters : int, default=50
        The smallest λ gives at most this many clusters.
    max_points : int, default=5000
        If there are more rows, a random sample is drawn.

    Returns
    -------
    ipywidgets.VBox
        A slider for λ on a logarithmic scale, a line with the number of clusters, and the rows next
        to the tree. ``box.children[0].value`` is λ, at first the one chosen for the tree, if any.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [7.0, 1.0]]
    >>> box = fastrbhc.linkage(X, "ward").explore(X)
    >>> slider, line, _ = box.children
    >>> slider.value = 2.0
    >>> line.value
    'λ = 2: 2 clusters, the heaviest of weight 2, cost 1.25'
    """
    widgets = require("ipywidgets", "explore")
    require("matplotlib", "explore")
    from fastrbhc.plotting import clusters

    check_count(max_clusters, "max_clusters")
    check_count(max_points, "max_points")
    plane = clusters.plane_of(X, family_for(tree, family), tree.feature_names)
    if len(plane.points) != tree.n_leaves:
        raise ValueError(f"X has {len(plane.points)} rows and the tree has {tree.n_leaves}")
    path = tree.path()
    first = int(np.argmax(path.n_clusters <= max(max_clusters, tree.n_trees)))
    # The last threshold is infinite, or where the tree ends; the one before it is the last merge.
    ends = path.thresholds[max(first - 1, 0) : -1]
    ends = ends[ends > 0.0]
    lowest, highest = (ends[0], ends[-1]) if ends.size else (1.0, 1.0)
    limit = path.thresholds[-1]
    lower = np.log10((1.0 + 1e-6) * lowest if first else 0.9 * lowest)
    upper = max(np.log10(min(1.1 * highest, limit)), lower + 1e-6)
    start = float(np.sqrt(lowest * highest))
    if tree.chosen is not None and 10.0**lower <= tree.chosen.threshold <= 10.0**upper:
        start = tree.chosen.threshold
    slider = widgets.FloatLogSlider(
        value=start,
        min=float(lower),
        max=float(upper),
        step=float((upper - lower) / _STEPS),
        description="λ",
        readout_format=".4g",
        layout={"width": "60%"},
    )
    line = widgets.Label()
    image = widgets.Image(format="png")

    def redraw(_: Any = None) -> None:
        threshold = min(slider.value, limit)
        place = path.at(threshold)
        k, cost = int(path.n_clusters[place]), path.costs[place]
        noun = "cluster" if k == 1 else "clusters"
        line.value = (
            f"λ = {threshold:.4g}: {k:,} {noun}, the heaviest of weight "
            f"{path.largest[place]:,.6g}, cost {cost:,.6g}"
        )
        labels = tree.cut(threshold=threshold)

        def draw(left: Any, right: Any) -> None:
            clusters.draw(plane, labels, left, max_points=max_points)
            tree.plot(right, threshold=threshold, max_leaves=max(_LEAVES, min(2 * k, _MOST_LEAVES)))

        image.value = _html.png(draw, _SIZE, n_axes=2)

    slider.observe(redraw, names="value")
    redraw()
    return widgets.VBox([slider, line, image])
