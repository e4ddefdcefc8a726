"""The input of an agglomerator: clusters, their geometry and an index of neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastrbhc._engine.clusters.record import Clusters


@dataclass(frozen=True)
class Space:
    """Clusters with their geometry and an index over them."""

    geometry: Any
    clusters: Clusters
    index: Any
