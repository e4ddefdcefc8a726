"""Which algorithm and which backend, and how long they will take.

The choice depends on the number of points, the number of columns and the properties of the family,
never on the values, so that the same shape always takes the same way.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration import ALGORITHMS, Merges
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.observations import Observations, take
from fastrbhc._engine.geometry.contract import Clusters, new_scratch
from fastrbhc._engine.neighbors import BACKENDS
from fastrbhc._engine.threads import Threads
from fastrbhc.families import Family
from fastrbhc.reducibility.audit import Tally, audit_merges

# Up to so many columns the kd-tree is quicker than scanning, if the points are not very few. Time
# by the kd-tree over time by scanning, 20,000 standard normal rows, Ward: 0.3 with 6 columns, 0.8
# with 8, 2.4 with 10. With more rows, or with clusters in them, the kd-tree gains.
_FEW_COLUMNS = 8
_FEW_POINTS = 200

# Kernels that know the number of columns are compiled anew for each: worth it from here on.
_WORTH_COMPILING = 5_000

# Below this much work, in pairs times columns, a second thread costs more than it brings.
_WORTH_A_THREAD = 20_000_000
# By levels on the kd-tree so many points: 20,000 × 2 took 30 ms on one thread and 22 ms on two.
_WORTH_A_THREAD_BY_LEVELS = 5_000

# Above so many pairs times columns, trees of some of the points are built first, to see how
# long all of them will take.
_WORTH_A_PILOT = 5_000_000_000
_PILOT, _PILOT_SECONDS, _LONG_PILOT_SECONDS = 500, 0.01, 0.3
_LONG_SECONDS = 600.0


class Plan(NamedTuple):
    """The way from points to merges."""

    algorithm: str
    neighbors: str
    n_threads: int
    columns: tuple[int, ...]  # d entries, if kernels are to know d; or none

    def clusters(self, geometry: Any, points: Observations, audited: bool = False) -> Clusters:
        """One cluster a point, with what the backend needs of it."""
        coarse = self.neighbors == "brute"  # the kd-tree looks at few enough for exact values
        clusters = statistics.clusters_of_points(
            geometry, points, padded=True, coarse=coarse, by_cluster=not audited
        )
        return clusters._replace(columns=self.columns)

    def agglomerate(
        self,
        geometry: Any,
        clusters: Clusters,
        threshold: float,
        report: Callable[[str, int], None],
    ) -> Merges:
        """The merges of the clusters, which are used up."""
        with self._threads(geometry, clusters) as threads:
            index = BACKENDS[self.neighbors](geometry, clusters, threads)
            return ALGORITHMS[self.algorithm](geometry, clusters, index, threshold, threads, report)

    def audit(
        self,
        geometry: Any,
        clusters: Clusters,
        merges: Merges,
        sample: NDArray[np.int64] | None,
        report: Callable[[str, int], None],
    ) -> Tally:
        """The violations of reducibility in these merges of the clusters, which are used up."""
        made = int(merges.made[0])
        children, heights = merges.children[:made], merges.heights[:made]
        with self._threads(geometry, clusters, most_hits=clusters.weights.size) as threads:
            index = BACKENDS[self.neighbors](geometry, clusters, threads, audited=True)
            return audit_merges(
                geometry, clusters, index, children, heights, sample, threads, report
            )

    def _threads(self, geometry: Any, clusters: Clusters, most_hits: int = 0) -> Threads:
        n_features = clusters.means.shape[0]
        return Threads(
            [new_scratch(geometry, n_features, most_hits) for _ in range(self.n_threads)]
        )


def plan(
    family: Family, n: int, n_features: int, algorithm: str, neighbors: str, n_threads: int
) -> Plan:
    """Decide what was left to "auto"."""
    if algorithm == "auto":
        algorithm = "levels" if family.reducible else "greedy"
    if neighbors == "auto":
        few_columns = n_features <= _FEW_COLUMNS and n > _FEW_POINTS
        neighbors = "kd_tree" if few_columns else "brute"
    on_a_tree = neighbors == "kd_tree"
    quick = on_a_tree and algorithm == "levels" and n < _WORTH_A_THREAD_BY_LEVELS
    if quick or n**2 * n_features < _WORTH_A_THREAD:
        n_threads = 1
    known = on_a_tree and n >= _WORTH_COMPILING and n_features <= _FEW_COLUMNS
    return Plan(algorithm, neighbors, n_threads, tuple(range(n_features)) if known else ())


def warn_if_long(chosen: Plan, geometry: Any, points: Observations, stacklevel: int) -> None:
    """Say so, once, if trees of some of the points foretell many minutes."""
    n, n_features = points.means.shape
    estimate = foretold_seconds(chosen, geometry, points)
    if estimate > _LONG_SECONDS:
        megabytes = n * bytes_each(geometry, n_features) / 1e6
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


def foretold_seconds(chosen: Plan, geometry: Any, points: Observations) -> float:
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
        sample = chosen.clusters(geometry, take(points, np.arange(size)))
        chosen.agglomerate(geometry, sample, np.inf, lambda *_: None)
        return time.perf_counter() - start

    attempt(min(20, n))  # compiles, perhaps
    # Few rows are scanned in less time than it takes to begin, which would look like a growth of n.
    least_growth = 2.0 if chosen.neighbors == "brute" else 1.0
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


def bytes_each(geometry: Any, n_features: int) -> int:
    """About what one distinct row needs while the tree is built, beside the row itself."""
    sizes = geometry.sizes(n_features)
    clusters = 8 * (2 + 2 * n_features + sizes.moments + sizes.cached + sizes.outline)
    return clusters + (4 * n_features if sizes.coarse else 0) + 5 * n_features + 100
