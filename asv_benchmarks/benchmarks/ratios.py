"""Speed against other libraries, and against ourselves, as ratios in one run."""

from __future__ import annotations

import importlib

from scipy.spatial import cKDTree

import fastrbhc

from .datasets import blobs, counts, normal, uniform
from .timing import compare, ratio, warm_up


class AgainstCKDTree:
    """Our tree over SciPy's nearest neighbours of all rows, both on two threads."""

    unit = "fastrbhc / cKDTree build and query"
    timeout = 600.0
    params = (["ward 2", "ward 3", "ward 5", "poisson 3", "gaussian 3"],)
    param_names = ("work",)
    n = 50_000

    def setup(self, work):
        """Compile, so that only the work is timed."""
        self.family, columns = work.split()
        make = {"ward": normal, "poisson": counts, "gaussian": blobs}[self.family]
        self.X = make(self.n, int(columns))
        warm_up(self.X, self.family)

    def track_time(self, work):
        """Smaller is better."""
        return compare(
            lambda: fastrbhc.linkage(self.X, self.family, n_jobs=2),
            lambda: cKDTree(self.X).query(self.X, k=2, workers=2),
        ).ratio


class AgainstFastcluster:
    """Ward's method by fastcluster, over ours; skipped where fastcluster is not installed."""

    unit = "fastcluster / fastrbhc"
    timeout = 600.0
    params = ([2, 10, 50],)
    param_names = ("d",)
    n = 5_000

    def setup(self, d):
        """Compile, so that only the work is timed."""
        try:
            self.peer = importlib.import_module("fastcluster")
        except ImportError as error:
            raise NotImplementedError("fastcluster is not installed") from error
        self.X = normal(self.n, d)
        warm_up(self.X, "ward")
        warm_up(self.X, "ward", algorithm="greedy", neighbors="brute")

    def track_auto(self, d):
        """Larger is better; 1 is as fast."""
        return ratio(
            lambda: self.peer.linkage_vector(self.X, "ward"),
            lambda: fastrbhc.linkage(self.X, "ward"),
        )

    def track_scan(self, d):
        """The same, greedily by scanning, and on one thread as fastcluster."""
        return ratio(
            lambda: self.peer.linkage_vector(self.X, "ward"),
            lambda: fastrbhc.linkage(
                self.X, "ward", algorithm="greedy", neighbors="brute", n_jobs=1
            ),
        )


class AgainstOurselves:
    """Ward's method in the plane: threads, growth and thresholds."""

    unit = "ratio"
    timeout = 600.0
    n = 200_000

    def setup(self):
        """Compile, so that only the work is timed."""
        self.X = uniform(self.n, 2)
        warm_up(self.X, "ward")

    def track_two_threads(self):
        """One thread over two: larger is better."""
        return ratio(
            lambda: fastrbhc.linkage(self.X, "ward", n_jobs=1),
            lambda: fastrbhc.linkage(self.X, "ward", n_jobs=2),
        )

    def track_growth(self):
        """Ten times as many rows: 10 is linear."""
        few = self.X[: self.n // 10]
        return compare(
            lambda: fastrbhc.linkage(self.X, "ward"), lambda: fastrbhc.linkage(few, "ward")
        ).ratio
