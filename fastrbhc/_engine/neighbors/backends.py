"""The backends by name, and their properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.neighbors.blocks import scan
from fastrbhc._engine.neighbors.inverted import inverted
from fastrbhc._engine.neighbors.kd_tree import kd_tree
from fastrbhc._engine.threads import Threads


class Backend(NamedTuple):
    """How to make an index, and its properties."""

    make_index: Callable[[Any, Clusters, Threads, bool], Any]
    scans: bool  # whether it scans all clusters, and so uses their mirror
    sparse: bool = False  # whether it is for clusters of sparse rows, and only for these


BACKENDS = {
    "brute": Backend(scan, scans=True),
    "kd_tree": Backend(kd_tree, scans=False),
    "inverted": Backend(inverted, scans=True, sparse=True),
}
