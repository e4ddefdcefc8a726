"""An estimate of the time for a tree, from timing runs on subsamples."""

from __future__ import annotations

import math
import sys
import time
import warnings
from types import FrameType
from typing import Any

import numpy as np

from fastrbhc._engine.clusters.observations import Observations, take
from fastrbhc._engine.compilations import listening
from fastrbhc._engine.geometry.contract import storage
from fastrbhc._engine.neighbors.backends import BACKENDS
from fastrbhc._engine.neighbors.blocks import FEWEST
from fastrbhc._engine.planning.execution import agglomerate, planned_clusters
from fastrbhc._engine.planning.plan import Plan

# Above this many pairs times columns, timing runs on subsamples come first.
_WORTH_A_PILOT = 5_000_000_000
_PILOT, _PILOT_SECONDS, _LONG_PILOT_SECONDS = 20, 0.01, 0.3
# All timing runs together take at most this long, and at most this share of the estimate.
_MOST_SECONDS, _MOST_SHARE = 2.0, 0.1
_LONG_SECONDS = 600.0
# Sparse rows: runs with fewer rows say little about the growth, which is usually about this, and
# may be steeper by so much in the next run.
_SPARSE_PILOT, _USUAL_GROWTH, _STEEPER = 1_000, 1.5, 0.25


def warn_if_long(chosen: Plan, geometry: Any, points: Observations) -> None:
    """Warn, at the line that called the package, if more than ten minutes are predicted."""
    n, n_features = points.shape
    estimate = estimated_seconds(chosen, geometry, points)
    if estimate > _LONG_SECONDS:
        megabytes = n * points.bytes_per_row(storage(geometry, n_features)) / 1e6
        remedies = (
            "A threshold, fewer columns, a sample of the rows or a simpler family would make it "
            "shorter"
        )
        warnings.warn(
            f"linkage of {n:,} distinct rows with {n_features} columns may take about "
            f"{estimate / 60:,.0f} minutes and {megabytes:,.0f} MB. {remedies}; progress=True "
            "shows a progress bar",
            UserWarning,
            stacklevel=_levels_inside() + 1,
        )


def _levels_inside() -> int:
    """How many callers in a row are in this package; linkage and fit come here by several ways."""
    package = __name__.partition(".")[0]
    levels = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        levels, frame = levels + 1, frame.f_back
    return levels


def estimated_seconds(chosen: Plan, geometry: Any, points: Observations) -> float:
    """Estimated time for all points, from trees of subsamples; 0 for small jobs.

    With scans the time grows as n², unless boxes pass over many blocks of clusters. With those, and
    with the kd-tree, the growth is measured too: little more than n for favourable data. Each run
    is four times as large as the one before. All of them together take two seconds at most, and at
    most a tenth of the estimate. Timing only queries would not do, because full covariances cost
    nothing while all clusters are single points.

    With the inverted index the growth is measured between runs of 320 and 1,280 rows, or more, if
    these limits allow. If it stayed as it is, the estimate would be too low: 0.2 to 0.9 of the
    time. A sum of one part by n and one by n² is usually too high, 0.6 to 2.5, because the lists of
    many rows last longer. The geometric mean of both is taken. Estimates over times, both of the
    processor, twelve estimates in four processes each:

        18,817 news articles    multinomial 1.05 to 1.17, Poisson 0.87 to 1.03
        4,186 cells             multinomial 1.32 to 1.64, Poisson 1.25 to 1.76
        8,677 images            multinomial 0.74 to 0.77, Poisson 0.62 to 0.88
        20,000 rows of topics   1,000 topics 0.62 to 0.82, 20 topics 0.95 to 1.20
        100,000 rows of topics  1,000 topics 0.55 to 0.81
        6,000 news articles     Bernoulli 1.01 to 1.43
    """
    n, n_features = points.shape[0], points.width
    if chosen.algorithm == "direct" or n**2 * n_features <= _WORTH_A_PILOT:
        return 0.0

    spent = 0.0

    def attempt(size: int) -> float:
        nonlocal spent
        start = time.perf_counter()
        # Points are in hash order, so the first of them are a random sample. A suitable λ would
        # depend on the size of the sample; without one the time is an upper bound.
        sample = planned_clusters(chosen, geometry, take(points, np.arange(size)))
        begun = time.perf_counter()
        agglomerate(chosen, geometry, sample, np.inf, lambda *_: None)
        ended = time.perf_counter()
        spent += ended - start
        return max(ended - begun, 1e-9)  # what grows faster than the number of rows

    def seconds(size: int) -> float:
        nonlocal spent
        before, compiled = spent, False

        def finished() -> None:
            nonlocal compiled
            compiled = True

        with listening(lambda: None, finished):
            once = attempt(size)
        if compiled:  # a larger sample may need further kernels: for ties, for example
            spent = before
            return attempt(size)
        return once if once < _LONG_PILOT_SECONDS else min(once, attempt(size))

    size = min(_PILOT, n)
    attempt(size)  # compiles, if necessary
    spent = 0.0
    sparse = BACKENDS[chosen.neighbors].sparse
    # Scans of few rows take less time than their overhead, which would look like linear growth.
    scans = chosen.scans and not sparse
    now = seconds(size)
    growth = 1.0 if sparse else 2.0
    estimate = now * (n / size) ** 2
    rough = estimate
    while 4 * size <= n and spent + _next_run(now, growth) <= min(
        _MOST_SECONDS, _MOST_SHARE * rough
    ):
        size, before, now = 4 * size, now, seconds(4 * size)
        least_growth = 2.0 if scans and size < 4 * FEWEST else 1.0
        measured = min(max(math.log(now / before, 4.0), least_growth), 2.0)
        rough = estimate = now * (n / size) ** measured
        least_rows = 0
        if sparse:
            growth, least_rows = measured, _SPARSE_PILOT
            estimate = math.sqrt(estimate * _linear_and_square(before, now, n / size))
            usual = now * (n / size) ** max(measured, _USUAL_GROWTH)
            rough = usual if size < _SPARSE_PILOT else estimate
        # Short pilots are inaccurate, and suffice only if the estimate is far below the limit.
        far = now > _PILOT_SECONDS and estimate < 0.1 * _LONG_SECONDS
        if size >= least_rows and (far or now > _LONG_PILOT_SECONDS):
            break
    return estimate


def _next_run(now: float, growth: float) -> float:
    """The most that the next run takes, with four times as many rows, if it is repeated."""
    return 2.0 * now * 4.0 ** min(growth + _STEEPER, 2.0)


def _linear_and_square(before: float, now: float, ratio: float) -> float:
    """The time for ``ratio`` times as many rows, if it is a sum of one part by n and one by n².

    ``now`` is the time for some rows, ``before`` for a quarter of them.
    """
    square = min(max((now - 4.0 * before) * 4.0 / 3.0, 0.0), now)
    return (now - square) * ratio + square * ratio**2
