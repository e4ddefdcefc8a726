"""Which of two sets of measurements is slower: by ratio, never by seconds.

A benchmark counts as slower if the median of its values grew by more than a factor **and** the
interquartile ranges do not overlap: the lower quartile now is above the upper quartile before. The
first condition says that the change matters, the second that it is not noise. The rule assumes no
distribution, and applies to twenty times as well as to two measurements of memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

FACTOR = 1.15


class Comparison(NamedTuple):
    """Values before and now; smaller is better."""

    ratio: float  # of the medians, now over before
    apart: bool  # the interquartile ranges do not overlap
    factor: float

    @property
    def slower(self) -> bool:
        """Whether it is slower by more than the factor, and not by chance."""
        return self.apart and self.ratio > self.factor

    @property
    def faster(self) -> bool:
        """Whether it is faster by more than the factor, and not by chance."""
        return self.apart and self.ratio * self.factor < 1.0

    @property
    def doubtful(self) -> bool:
        """Whether the medians alone, above the root of the factor, call for more measurements."""
        return self.ratio > self.factor**0.5


def compare(
    before: Sequence[float], now: Sequence[float], factor: float = FACTOR
) -> Comparison | None:
    """Compare; None if there is nothing to compare or the ratio has no meaning."""
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
    """The lower and the upper quartile, interpolated as by NumPy's percentiles."""
    if len(values) == 1:
        return values[0], values[0]
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, upper
