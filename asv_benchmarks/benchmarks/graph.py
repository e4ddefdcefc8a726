"""Trees of which only adjacent clusters merge: time by number of pixels."""

from __future__ import annotations

import functools

import fastrbhc

from .common import Few
from .datasets import image


class Pixels(Few):
    """A square image in three colours, with so many pixels on a side."""

    params = ([64, 256, 1024], ["spherical_gaussian", "gaussian"])
    param_names = ("side", "family")

    def setup(self, side, family):
        """Compile, so that only the work is timed."""
        self.X, self.grid = _pixels(side, family), fastrbhc.grid(side, side)

    def time_tree(self, side, family):
        """All n − 1 merges."""
        fastrbhc.linkage(self.X, family, connectivity=self.grid)


@functools.cache
def _pixels(side, family):
    # Trees of many rows have kernels of their own.
    for few in (16, 128):
        fastrbhc.linkage(image(few), family, connectivity=fastrbhc.grid(few, few))
    return image(side)
