"""Clusters as a table."""

from __future__ import annotations

from fastrbhc.tree.summaries import summary_of_clusters, summary_of_cut

__all__ = ["summary_of_clusters", "summary_of_cut"]
