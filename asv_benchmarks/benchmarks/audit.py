"""Auditing trees: what counting the violations of reducibility costs beside the tree alone."""

from __future__ import annotations

import functools

import numpy as np

import fastrbhc

from .datasets import blobs, counts, normal, proportions
from .timing import compare, warm_up

DATA = {
    "spherical_gaussian": lambda n: normal(n, 3),
    "poisson": lambda n: counts(n, 3),
    "gaussian": lambda n: blobs(n, 3),
    "multinomial": lambda n: proportions(n // 5, 10),
}


class Audit:
    """n rows of 3 columns; of the multinomial a fifth of them, with 10 columns."""

    params = (list(DATA), [10_000, 100_000])
    param_names = ("family", "n")
    timeout = 900.0
    unit = "time with audit / without"

    def setup(self, family, n):
        """Compile, so that only the work is timed."""
        self.X = _compiled(family, n)

    def track_exact(self, family, n):
        """The exact audit, of all triples."""
        return self._overhead(family, True)

    def track_sample(self, family, n):
        """The audit of a sample."""
        return self._overhead(family, "sample")

    def track_violations(self, family, n):
        """How many there are: it changes only if the trees do."""
        return float(np.sum(fastrbhc.linkage(self.X, family, audit=True).audit.violations))

    track_violations.unit = "violations"

    def _overhead(self, family, audit):
        return compare(
            lambda: fastrbhc.linkage(self.X, family, audit=audit),
            lambda: fastrbhc.linkage(self.X, family),
            repeats=3,
        ).ratio


@functools.cache
def _compiled(family, n):
    X = DATA[family](n)
    warm_up(X, family, audit=True)
    warm_up(X, family)
    return X
