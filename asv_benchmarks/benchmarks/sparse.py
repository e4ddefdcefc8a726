"""Sparse counts: trees by number of rows, and their memory."""

from __future__ import annotations

import functools

import fastrbhc

from .common import Few
from .datasets import topics
from .memory import grown


class Topics(Few):
    """Rows of 60 words out of 20,000, from 200 topics."""

    params = (["multinomial", "poisson"], [1_000, 4_000, 16_000])
    param_names = ("family", "n")

    def setup(self, family, n):
        """Compile, so that only the work is timed."""
        self.X = _topics(family, n)

    def time_tree(self, family, n):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, family, neighbors="inverted")

    def track_each_entry(self, family, n):
        """What the tree takes at its peak over what was there before, a non-zero; Linux only."""
        return grown(lambda: fastrbhc.linkage(self.X, family, neighbors="inverted")) / self.X.nnz

    track_each_entry.unit = "bytes / non-zero"


@functools.cache
def _topics(family, n):
    X = topics(n, 20_000, 200, 60)
    fastrbhc.linkage(X[:300], family, neighbors="inverted")
    return X
