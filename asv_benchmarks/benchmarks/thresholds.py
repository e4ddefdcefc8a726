"""Choosing λ: the paper's heuristic by k-means."""

from __future__ import annotations

import functools

import fastrbhc

from .common import FAMILIES, Few
from .datasets import rows_for


class KMeansThreshold(Few):
    """4 · 10 clusters by k-means and the mean dissimilarity of all pairs of them, 8 columns."""

    params = (list(FAMILIES), [1_000, 10_000, 100_000])
    param_names = ("family", "n")

    def setup(self, family, n):
        """Compile, so that only the work is timed."""
        self.X = _compiled(family, n)

    def time_heuristic(self, family, n):
        """With a guess of 10 clusters."""
        fastrbhc.kmeans_threshold(self.X, family, 10, random_state=0)


@functools.cache
def _compiled(family, n):
    X = rows_for(family, n, 8)
    fastrbhc.kmeans_threshold(X[:200], family, 10, random_state=0)
    return X
