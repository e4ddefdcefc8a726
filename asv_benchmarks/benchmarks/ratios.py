"""Our time as a ratio to that of other libraries on the same rows, taking turns in one process.

Smaller is better in all of them, and 1 is as fast. The peers' own versions are those installed.
"""

from __future__ import annotations

import functools
import importlib

from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial import cKDTree
from sklearn.cluster import AgglomerativeClustering

import fastrbhc

from .common import prepared
from .datasets import normal, uniform
from .timing import against_scipy, compare, warm_up


def _fastcluster(X):
    return importlib.import_module("fastcluster").linkage_vector(X, "ward")


def _scipy(X):
    return scipy_linkage(X, "ward")


def _sklearn(X):
    return AgglomerativeClustering(distance_threshold=0.0, n_clusters=None).fit(X)


PEERS = {"fastcluster": _fastcluster, "scipy": _scipy, "sklearn": _sklearn}


class WardAgainstPeers:
    """Ward trees: fastcluster.linkage_vector, scipy linkage, sklearn AgglomerativeClustering."""

    params = (list(PEERS), [2_000, 10_000], [2, 10, 50])
    param_names = ("peer", "n", "d")
    timeout = 900.0
    unit = "our time / peer's"

    def setup(self, peer, n, d):
        """Compile, and ask the peer whether it is installed."""
        try:
            PEERS[peer](normal(10, 2))
        except ImportError as error:
            raise NotImplementedError(f"{peer} is not installed") from error
        self.X = _normal(n, d)

    def track_auto(self, peer, n, d):
        """As "auto" does it, on all threads."""
        return compare(lambda: fastrbhc.linkage(self.X, "ward"), lambda: PEERS[peer](self.X)).ratio

    def track_one_thread(self, peer, n, d):
        """The same on one thread, as the peers."""
        return compare(
            lambda: fastrbhc.linkage(self.X, "ward", n_jobs=1), lambda: PEERS[peer](self.X)
        ).ratio


class SmallTrees:
    """Ward trees of few rows of 3 columns, as in a loop over many data sets, against SciPy's."""

    params = ([50, 200, 1_000],)
    param_names = ("n",)
    timeout = 900.0
    unit = "our time / scipy's"

    def track_time(self, n):
        """As "auto" does it."""
        return against_scipy(normal(n, 3)).ratio


class AgainstNeighbours:
    """A whole tree over the nearest neighbour of every row by SciPy's cKDTree, on two threads."""

    params = (["spherical_gaussian", "poisson", "gaussian"], [2, 3, 5])
    param_names = ("family", "d")
    timeout = 900.0
    unit = "our time / cKDTree's"
    n = 50_000

    def setup(self, family, d):
        """Compile, so that only the work is timed."""
        self.X = prepared(family, self.n, d)

    def track_time(self, family, d):
        """Our tree against building theirs and asking it once for each row."""
        return compare(
            lambda: fastrbhc.linkage(self.X, family, n_jobs=2),
            lambda: cKDTree(self.X).query(self.X, k=2, workers=2),
        ).ratio


class AgainstOurselves:
    """Ward's method in the plane, 200,000 rows."""

    timeout = 900.0
    n = 200_000

    def setup(self):
        """Compile, so that only the work is timed."""
        self.X = _uniform(self.n)

    def track_two_threads(self):
        """What the second thread brings: 0.5 at best."""
        return compare(
            lambda: fastrbhc.linkage(self.X, "ward", n_jobs=2),
            lambda: fastrbhc.linkage(self.X, "ward", n_jobs=1),
        ).ratio

    track_two_threads.unit = "two threads / one"

    def track_growth(self):
        """Ten times as many rows: 10 is linear."""
        few = self.X[: self.n // 10]
        return compare(
            lambda: fastrbhc.linkage(self.X, "ward"), lambda: fastrbhc.linkage(few, "ward")
        ).ratio

    track_growth.unit = "200,000 rows / 20,000"


@functools.cache
def _normal(n, d):
    X = normal(n, d)
    warm_up(X, "ward")
    return X


@functools.cache
def _uniform(n):
    X = uniform(n, 2)
    warm_up(X, "ward")
    return X
