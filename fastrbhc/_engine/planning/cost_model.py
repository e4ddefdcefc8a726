"""How long a tree will take, from trees of some of the points."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np

from fastrbhc._engine.clusters.observations import Observations, take
from fastrbhc._engine.geometry.contract import storage
from fastrbhc._engine.planning.execution import agglomerate, planned_clusters
from fastrbhc._engine.planning.plan import Plan

# Above so many pairs times columns, trees of some of the points are built first, to see how
# long all of them will take.
_WORTH_A_PILOT = 5_000_000_000
_PILOT, _PILOT_SECONDS, _LONG_PILOT_SECONDS = 500, 0.01, 0.3
_LONG_SECONDS = 600.0


def warn_if_long(chosen: Plan, geometry: Any, points: Observations, stacklevel: int) -> None:
    """Warn if timing runs on some of the points predict more than ten minutes."""
    n, n_features = points.means.shape
    estimate = estimated_seconds(chosen, geometry, points)
    if estimate > _LONG_SECONDS:
        megabytes = n * bytes_per_row(geometry, n_features) / 1e6
        remedies = (
            "A threshold, fewer columns, a sample of the rows or a simpler family would make it "
            "shorter"
        )
        warnings.warn(
            f"linkage of {n:,} distinct rows with {n_features} columns may take about "
            f"{estimate / 60:,.0f} minutes and {megabytes:,.0f} MB. {remedies}; progress=True "
            "shows how far it is",
            UserWarning,
            stacklevel=stacklevel,
        )


def estimated_seconds(chosen: Plan, geometry: Any, points: Observations) -> float:
    """About how long all points will take, from trees of some of them; 0 for small jobs.

    By scanning it grows as n². By the kd-tree that is measured too: little more than n where the
    data let it. Queries alone would not tell, as full covariances cost nothing while all clusters
    are points.
    """
    n, n_features = points.means.shape
    if n**2 * n_features <= _WORTH_A_PILOT:
        return 0.0

    def seconds(size: int) -> float:
        once = attempt(size)
        # Another size may take another way, which has to be compiled first: look again.
        return once if once < _LONG_PILOT_SECONDS else min(once, attempt(size))

    def attempt(size: int) -> float:
        start = time.perf_counter()
        # Points come in no order, so the first of them are a sample. λ grows with the sample's
        # gaps, so none is set: an upper bound.
        sample = planned_clusters(chosen, geometry, take(points, np.arange(size)))
        agglomerate(chosen, geometry, sample, np.inf, lambda *_: None)
        return time.perf_counter() - start

    attempt(min(20, n))  # compiles, perhaps
    # Few rows are scanned in less time than it takes to begin, which would look like a growth of n.
    least_growth = 2.0 if chosen.scans else 1.0
    size = min(_PILOT, n)
    now = seconds(size)
    estimate = now * (n / size) ** 2
    while 4 * size <= n:
        size, before, now = 4 * size, now, seconds(4 * size)
        growth = min(max(math.log(now / before, 4.0), least_growth), 2.0)
        estimate = now * (n / size) ** growth
        # Short pilots are rough, and believed only if they are far from the limit.
        far = now > _PILOT_SECONDS and estimate < 0.1 * _LONG_SECONDS
        if far or now > _LONG_PILOT_SECONDS:
            break
    return estimate


def bytes_per_row(geometry: Any, n_features: int) -> int:
    """About what one distinct row needs while the tree is built, beside the row itself."""
    sizes = storage(geometry, n_features)
    numbers = 2 + 2 * n_features + sizes.scatter + sizes.cached + sizes.scan_features
    return 8 * numbers + (4 * n_features if sizes.mirrored else 0) + 5 * n_features + 100
