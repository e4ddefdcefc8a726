"""All clusterings of a tree along λ."""

from __future__ import annotations

from fastrbhc.tree.path import ClusteringPath

__all__ = ["ClusteringPath"]
