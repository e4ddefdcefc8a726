"""Building trees by scanning."""

from __future__ import annotations

import fastcluster

import fastrbhc

from .datasets import counts, normal
from .timing import ratio


class Families:
    """2,000 rows of 6 columns, by family and algorithm."""

    params = (
        ["spherical_gaussian", "gaussian", "poisson", "multinomial", "exponential"],
        ["greedy", "nn_chain"],
    )
    param_names = ("family", "algorithm")

    def setup(self, family, algorithm):
        """Compile, so that only the work is timed."""
        self.X = counts(2_000, 6) + 1.0
        fastrbhc.linkage(self.X[:50], family, algorithm=algorithm)

    def time_linkage(self, family, algorithm):
        """The whole tree."""
        fastrbhc.linkage(self.X, family, algorithm=algorithm)

    def peakmem_linkage(self, family, algorithm):
        """Resident memory at its peak."""
        fastrbhc.linkage(self.X, family, algorithm=algorithm)


class AgainstFastcluster:
    """Ward's method on one thread, as a ratio in one run."""

    unit = "fastcluster / fastrbhc"

    def setup(self):
        """Compile, so that only the work is timed."""
        self.X = normal(10_000, 10)
        fastrbhc.linkage(self.X[:50], "ward")

    def track_scan(self):
        """Larger is better; 1 is as fast."""
        return ratio(
            lambda: fastcluster.linkage_vector(self.X, "ward"),
            lambda: fastrbhc.linkage(self.X, "ward", algorithm="greedy", n_jobs=1),
        )
