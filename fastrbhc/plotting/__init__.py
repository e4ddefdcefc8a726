"""Everything drawn, with matplotlib alone.

Every function takes an Axes, or makes one, and returns it; `clustermap` fills a figure.
Nothing is imported from matplotlib before something is drawn.
"""

from __future__ import annotations

from fastrbhc.plotting.clusters import plot_clusters
from fastrbhc.plotting.heatmap import ClusterMap, clustermap
from fastrbhc.plotting.heights import plot_heights, plot_path
from fastrbhc.plotting.trees import plot_dendrogram

__all__ = [
    "ClusterMap",
    "clustermap",
    "plot_clusters",
    "plot_dendrogram",
    "plot_heights",
    "plot_path",
]
