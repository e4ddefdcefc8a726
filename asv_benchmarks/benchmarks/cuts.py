"""From trees to labels and to other libraries."""

from __future__ import annotations

import functools

import fastrbhc

from .common import Few
from .datasets import uniform
from .timing import warm_up


class Cut(Few):
    """Ward trees of up to a million leaves."""

    params = ([10_000, 100_000, 1_000_000], [10, 1_000])
    param_names = ("n", "clusters")

    def setup(self, n, clusters):
        """Build the tree, and cut it once to compile."""
        self.tree = _tree(n)
        self.threshold = float(self.tree.levels[n - clusters])
        self.tree.cut(n_clusters=clusters)

    def time_by_number(self, n, clusters):
        """Labels of so many clusters."""
        self.tree.cut(n_clusters=clusters)

    def time_by_threshold(self, n, clusters):
        """Labels at the threshold that leaves so many."""
        self.tree.cut(threshold=self.threshold)


class Export(Few):
    """Ward trees as other libraries want them."""

    params = ([10_000, 100_000, 1_000_000],)
    param_names = ("n",)

    def setup(self, n):
        """Build the tree."""
        self.tree = _tree(n)

    def time_to_scipy(self, n):
        """A valid linkage matrix for SciPy."""
        self.tree.to_scipy()


@functools.cache
def _tree(n):
    X = uniform(n, 2)
    warm_up(X, "ward")
    return fastrbhc.linkage(X, "ward")
