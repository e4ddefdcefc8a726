"""Approximate trees of wide rows, beside exact ones: time, and the cost of a cut."""

from __future__ import annotations

import functools

import fastrbhc

from .common import Few
from .datasets import blobs


class Approximate(Few):
    """Rows of 50 columns, few enough to compare all pairs, so that pynndescent compiles nothing."""

    params = ([2_000, 8_000, 32_000],)
    param_names = ("n",)

    def setup(self, n):
        """Compile, so that only the work is timed."""
        self.X = _rows(n)

    def time_tree(self, n):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, "ward", neighbors="approximate")

    def track_cost(self, n):
        """The cost of the cut at 100 clusters, over that of the exact tree."""
        trees = (fastrbhc.linkage(self.X, "ward", neighbors=how) for how in ("approximate", "auto"))
        approximate, exact = (tree.heights[: n - 100].sum() for tree in trees)
        return approximate / exact

    track_cost.unit = "of the exact tree"


@functools.cache
def _rows(n):
    X = blobs(n, 50, 200)
    fastrbhc.linkage(X[:1_000], "ward", neighbors="approximate")
    return X
