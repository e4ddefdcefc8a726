"""What clusters know of each column, if cells are missing: means and weights, block by block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.partly_observed import PartlyObserved
from fastrbhc._engine.clusters.record import Clusters


class ObservedColumns(NamedTuple):
    """Means of the statistics, NaN where nothing was observed, and the shares of observed cells."""

    means: NDArray[np.float64]  # (k, …)
    shares: NDArray[np.float64]  # (k,)


def statistics_of(family: Any, n_columns: int) -> int:
    """The number of columns of a family's statistics."""
    return int(family.width(n_columns)) if hasattr(family, "width") else n_columns


def views_of_blocks(clusters: Clusters, count: int) -> list[Clusters]:
    """The clusters as each block sees them: a pair has the first one and all others."""
    views = []
    for _ in range(count - 1):
        first, clusters = clusters.blocks
        views.append(first)
    return [*views, clusters]


def layout_of(family: Any, clusters: Clusters, n_columns: int) -> tuple[tuple[int, bool], ...]:
    """The number of statistics of each block, and whether it has gaps: see `partly_observed`."""
    return tuple(
        (width, _has_gaps(view, width)) for _, view, width in _blocks(family, clusters, n_columns)
    )


def geometry_of_clusters(family: Any, clusters: Clusters, n_columns: int) -> Any:
    """The geometry that the clusters were made with."""
    layout = layout_of(family, clusters, n_columns)
    if not any(gaps for _, gaps in layout):
        return family.geometry(clusters.means.shape[0])
    nothing = np.empty((0, clusters.means.shape[0]))
    return family.observed_geometry(PartlyObserved(nothing, blocks=layout))


def observed_columns(family: Any, clusters: Clusters, n_columns: int) -> ObservedColumns:
    """Means and shares of what the clusters have observed."""
    weights = np.nan_to_num(clusters.weights)
    means, known, cells = [], np.zeros(weights.size), 0
    for distribution, view, width in _blocks(family, clusters, n_columns):
        own = np.broadcast_to(weights, (width, weights.size))
        if _has_gaps(view, width):
            own = np.nan_to_num(view.means[width:])
        means.append(np.where(own > 0.0, view.means[:width], np.nan))
        if hasattr(distribution, "levels"):  # which all have the weight of their column
            own = own[np.cumsum([0, *map(len, distribution.levels[:-1])])]
        known, cells = known + own.sum(axis=0), cells + len(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ObservedColumns(np.concatenate(means).T, known / (cells * weights))


def _has_gaps(view: Clusters, width: int) -> bool:
    """Whether each column has a weight of its own."""
    return view.means.shape[0] == 2 * width


def _blocks(family: Any, clusters: Clusters, n_columns: int) -> list[tuple[Any, Clusters, int]]:
    """Each family, the clusters as it sees them, and the number of columns of its statistics."""
    if not hasattr(family, "blocks"):
        return [(family, clusters, statistics_of(family, n_columns))]
    views = views_of_blocks(clusters, len(family.blocks))
    return [
        (block.family, view, statistics_of(block.family, len(block.columns)))
        for block, view in zip(family.blocks, views, strict=True)
    ]
