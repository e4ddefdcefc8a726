"""Auditing trees: what the exact count of violations costs, as a ratio to the tree alone."""

from __future__ import annotations

import numpy as np

import fastrbhc

from .datasets import blobs, counts, normal, proportions
from .timing import ratio, warm_up

DATA = {
    "spherical_gaussian": lambda n: normal(n, 3),
    "poisson": lambda n: counts(n, 3),
    "gaussian": lambda n: blobs(n, 3),
    "multinomial": lambda n: proportions(n // 5, 10),
}


class Audit:
    """100,000 × 3 rows, and 20,000 × 10 of the multinomial."""

    params = (list(DATA),)
    param_names = ("family",)
    timeout = 900.0
    unit = "ratio"
    n = 100_000

    def setup(self, family):
        """Compile, so that only the work is timed."""
        self.X = DATA[family](self.n)
        warm_up(self.X, family, audit=True)
        warm_up(self.X, family)

    def track_exact(self, family):
        """Time with the exact audit over time without."""
        return 1.0 / ratio(
            lambda: fastrbhc.linkage(self.X, family),
            lambda: fastrbhc.linkage(self.X, family, audit=True),
            repeats=3,
        )

    def track_sample(self, family):
        """The same by sample."""
        return 1.0 / ratio(
            lambda: fastrbhc.linkage(self.X, family),
            lambda: fastrbhc.linkage(self.X, family, audit="sample"),
            repeats=3,
        )

    def track_violations(self, family):
        """How many there are: a number that may only change with the data."""
        return float(np.sum(fastrbhc.linkage(self.X, family, audit=True).audit.violations))

    track_violations.unit = "violations"
