"""Building trees: by family, algorithm, backend, number of rows and number of columns."""

from __future__ import annotations

import functools

import numpy as np

import fastrbhc
from fastrbhc.families import as_family

from .common import FAMILIES, Few, prepared
from .datasets import counts, normal, round_blobs, uniform
from .timing import warm_up

# Above so many steps a tree takes the better part of a minute.
_TOO_MANY = 1e10


class Trees(Few):
    """Every family by every algorithm on every backend, where that makes sense."""

    params = (
        list(FAMILIES),
        ["levels", "greedy", "nn_chain"],
        ["kd_tree", "brute"],
        [1_000, 10_000, 100_000],
        [2, 8, 32],
    )
    param_names = ("family", "algorithm", "neighbors", "n", "d")

    def setup(self, family, algorithm, neighbors, n, d):
        """Compile, so that only the work is timed."""
        record = as_family(family)
        if algorithm == "levels" and not record.reducible:
            raise NotImplementedError("levels are for reducible families")
        if neighbors == "kd_tree" and d > 8:
            raise NotImplementedError("a kd-tree of so many columns looks at everything")
        looked_at = min(n, 100 * 2**d) if neighbors == "kd_tree" else n
        if n * looked_at * d * (1 if record.separable else d) > _TOO_MANY:
            raise NotImplementedError("it takes too long to be repeated")
        self.X = prepared(family, n, d, algorithm=algorithm, neighbors=neighbors)

    def time_tree(self, family, algorithm, neighbors, n, d):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, family, algorithm=algorithm, neighbors=neighbors)


# Rows with structure that scans can see, and rows without.
STRUCTURES = {
    "50 blobs, 50 columns": ("ward", lambda n: round_blobs(n, 50, 50)),
    "50 blobs, 16 columns": ("ward", lambda n: round_blobs(n, 16, 50)),
    "near 10 of 50 axes": (
        "ward",
        lambda n: normal(n, 10) @ normal(10, 50) + 0.1 * normal(n, 50),
    ),
    "none, 50 columns": ("ward", lambda n: normal(n, 50)),
    "30 clusters of counts": ("poisson", lambda n: counts(n, 50, 30)),
    "20 blobs, full covariance": ("gaussian", lambda n: round_blobs(n, 10, 20)),
}


class Structure(Few):
    """Scans of rows in many columns, with structure and without."""

    params = (list(STRUCTURES), [5_000, 20_000])
    param_names = ("structure", "n")

    def setup(self, structure, n):
        """Compile, so that only the work is timed."""
        self.family, rows = STRUCTURES[structure]
        if self.family != "ward" and n > 5_000:
            raise NotImplementedError("it takes too long to be repeated")
        self.X = rows(n)
        fastrbhc.linkage(rows(5_000), self.family)

    def time_tree(self, structure, n):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, self.family)


class Scaling(Few):
    """Ward's method in the plane and in space, as "auto" does it, up to a million rows."""

    params = ([1_000, 10_000, 100_000, 1_000_000], [2, 3])
    param_names = ("n", "d")

    def setup(self, n, d):
        """Compile, so that only the work is timed."""
        self.X = _plane(n, d)

    def time_ward(self, n, d):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, "ward")


class Threads(Few):
    """Ward's method by number of threads."""

    params = ([100_000, 1_000_000], [1, 2])
    param_names = ("n", "n_jobs")

    def setup(self, n, n_jobs):
        """Compile, so that only the work is timed."""
        self.X = _plane(n, 2)

    def time_ward(self, n, n_jobs):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, "ward", n_jobs=n_jobs)


class Threshold(Few):
    """Ward's method of 100,000 rows in the plane, stopped when so many clusters are left."""

    params = ([10, 1_000, 50_000],)
    param_names = ("clusters",)

    def setup(self, clusters):
        """Compile, and find the threshold."""
        self.X = _plane(100_000, 2)
        self.threshold = float(_sorted_heights(100_000, 2)[-clusters])

    def time_forest(self, clusters):
        """All merges below the threshold."""
        fastrbhc.linkage(self.X, "ward", threshold=self.threshold)


@functools.cache
def _plane(n, d):
    X = uniform(n, d)
    warm_up(X, "ward")
    return X


@functools.cache
def _sorted_heights(n, d):
    return np.sort(fastrbhc.linkage(_plane(n, d), "ward").heights)
