"""Columns of different kinds: trees by number of rows."""

from __future__ import annotations

import functools

import fastrbhc

from .common import Few
from .datasets import LEVELS, MIXED, mixed, with_levels
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


class ManyLevels(Few):
    """A measurement, a count and a category of so many levels."""

    params = ([2, 100, 10_000], [1_000, 10_000])
    param_names = ("levels", "n")

    def setup(self, levels, n):
        """Compile, so that only the work is timed."""
        self.X = _rows_with_levels(levels, n)

    def time_tree(self, levels, n):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, LEVELS)


@functools.cache
def _rows(kinds, n):
    X = mixed(n, kinds)
    warm_up(X, MIXED[kinds])
    return X


@functools.cache
def _rows_with_levels(levels, n):
    X = with_levels(n, levels)
    warm_up(X, LEVELS)
    return X
