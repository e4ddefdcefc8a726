"""Columns of different kinds: trees by number of rows."""

from __future__ import annotations

import functools

import fastrbhc

from .common import Few
from .datasets import MIXED, mixed
from .timing import warm_up


class Mixed(Few):
    """Three columns of three kinds, and six of four; g Ward, p Poisson, b Bernoulli, e others."""

    params = (list(MIXED), [1_000, 10_000, 100_000])
    param_names = ("kinds", "n")

    def setup(self, kinds, n):
        """Compile, so that only the work is timed."""
        self.X = _rows(kinds, n)

    def time_tree(self, kinds, n):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, MIXED[kinds])


@functools.cache
def _rows(kinds, n):
    X = mixed(n, kinds)
    warm_up(X, MIXED[kinds])
    return X
