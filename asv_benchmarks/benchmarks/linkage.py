"""Building trees: time and memory by number of rows, by family and by number of columns."""

from __future__ import annotations

import fastrbhc

from .datasets import blobs, counts, normal, uniform
from .timing import warm_up


class Few:
    """What all benchmarks here share: trees are long, and one run of each is much like another."""

    number = 1
    repeat = 3
    rounds = 1
    warmup_time = 0.0
    timeout = 600.0  # setup may compile


class Scaling(Few):
    """Ward's method, level by level on the kd-tree, by number of rows."""

    params = ([10_000, 100_000, 1_000_000], [2, 3])
    param_names = ("n", "d")

    def setup(self, n, d):
        """Compile, so that only the work is timed."""
        self.X = uniform(n, d)
        warm_up(self.X, "ward")

    def time_whole_tree(self, n, d):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, "ward")

    def peakmem_whole_tree(self, n, d):
        """Resident memory at its peak, the rows and the compiler's memory included."""
        fastrbhc.linkage(self.X, "ward")


class Threshold(Few):
    """A tree that stops early."""

    def setup(self):
        """Compile, and find a threshold that leaves 100 clusters."""
        self.X = uniform(100_000, 2)
        heights = fastrbhc.linkage(self.X, "ward").heights
        self.threshold = float(sorted(heights)[-99])

    def time_forest(self):
        """Down to 100 clusters."""
        fastrbhc.linkage(self.X, "ward", threshold=self.threshold)


class Families(Few):
    """20,000 rows of 3 columns, greedily on the kd-tree, by family."""

    params = (["spherical_gaussian", "gaussian", "poisson", "multinomial", "exponential"],)
    param_names = ("family",)
    n = 20_000

    def setup(self, family):
        """Compile, so that only the work is timed."""
        # Halves of units, so that few rows repeat, and nothing on the boundary.
        self.X = counts(self.n, 3) + 0.5 if family != "gaussian" else blobs(self.n, 3)
        warm_up(self.X, family, algorithm="greedy", neighbors="kd_tree")

    def time_greedy(self, family):
        """The exact greedy tree."""
        fastrbhc.linkage(self.X, family, algorithm="greedy", neighbors="kd_tree")

    def peakmem_greedy(self, family):
        """Resident memory at its peak."""
        fastrbhc.linkage(self.X, family, algorithm="greedy", neighbors="kd_tree")


class Scanning(Few):
    """4,000 rows of many columns, by scanning; 1,000 with full covariances."""

    params = (["spherical_gaussian", "gaussian", "poisson"], [10, 50])
    param_names = ("family", "d")
    n = 4_000

    def setup(self, family, d):
        """Compile, so that only the work is timed."""
        make = {"spherical_gaussian": normal, "gaussian": blobs, "poisson": counts}[family]
        self.X = make(self.n // 4 if family == "gaussian" else self.n, d)
        warm_up(self.X, family, neighbors="brute")

    def time_tree(self, family, d):
        """The algorithm that "auto" stands for."""
        fastrbhc.linkage(self.X, family, neighbors="brute")

    def peakmem_tree(self, family, d):
        """Resident memory at its peak."""
        fastrbhc.linkage(self.X, family, neighbors="brute")


class Algorithms(Few):
    """5,000 rows of 2 columns, every algorithm on every backend."""

    params = (["levels", "greedy", "nn_chain"], ["kd_tree", "brute"])
    param_names = ("algorithm", "neighbors")

    def setup(self, algorithm, neighbors):
        """Compile, so that only the work is timed."""
        self.X = normal(5_000, 2)
        warm_up(self.X, "ward", algorithm=algorithm, neighbors=neighbors)

    def time_tree(self, algorithm, neighbors):
        """Ward's method."""
        fastrbhc.linkage(self.X, "ward", algorithm=algorithm, neighbors=neighbors)
