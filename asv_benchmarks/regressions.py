"""Which of two sets of measurements is slower: by ratio, never by seconds.

A benchmark counts as slower if the median of its values grew by more than a factor **and** the
middle halves of the two do not overlap: the lower quartile now lies above the upper quartile
before. The first says that it matters, the second that it is not the noise of the machine. The
rule needs no distribution, and suits twenty times as well as two measurements of memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

FACTOR = 1.15


class Comparison(NamedTuple):
    """Values before and now, of which smaller ones are better."""

    ratio: float  # of the medians, now over before
    apart: bool  # the middle halves do not overlap
    factor: float

    @property
    def slower(self) -> bool:
        """Beyond the factor, and not by chance."""
        return self.apart and self.ratio > self.factor

    @property
    def faster(self) -> bool:
        """The same the other way round."""
        return self.apart and self.ratio * self.factor < 1.0

    @property
    def doubtful(self) -> bool:
        """Whether the medians alone, half of the way to the factor, ask for more measurements."""
        return self.ratio > self.factor**0.5


def compare(
    before: Sequence[float], now: Sequence[float], factor: float = FACTOR
) -> Comparison | None:
    """Decide; None if there is nothing to compare or a ratio has no meaning."""
    if not before or not now:
        return None
    old, new = statistics.median(before), statistics.median(now)
    if old == new:
        return Comparison(1.0, False, factor)
    if old <= 0.0:
        return None
    lower_before, upper_before = quartiles(before)
    lower_now, upper_now = quartiles(now)
    return Comparison(new / old, lower_now > upper_before or upper_now < lower_before, factor)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper one, interpolated, as NumPy's percentiles."""
    if len(values) == 1:
        return values[0], values[0]
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, upper
