"""Divergences behind the entropies of counts and positive measurements, accurate near 0.

All vanish to second order at u = step/mean = 0. There the plain formula would leave no correct
digit, so near 0 they are summed as series.
"""

from __future__ import annotations

import math

from fastrbhc._engine.jit import kernel

# Both are series in s = u/(2 + u), as log(1+u) = 2·artanh(s) = 2(s + s³/3 + s⁵/5 + …). Below this
# |s| nine terms are exact to the last bit or two; above it the plain formula loses at most four
# bits. A series in u takes 19 terms, for half the range.
_SERIES_BELOW = 0.1


@kernel
def _artanh_rest(square):
    """(artanh(s) − s)/s³ = 1/3 + s²/5 + s⁴/7 + …, from s². Halved: a shorter chain."""
    fourth = square * square
    low = 1.0 / 3.0 + square * (1.0 / 5.0) + fourth * (1.0 / 7.0 + square * (1.0 / 9.0))
    high = 1.0 / 11.0 + square * (1.0 / 13.0) + fourth * (1.0 / 15.0 + square * (1.0 / 17.0))
    return low + fourth * fourth * high


@kernel
def entropy_divergence(mean, step):
    """The divergence of x·log x from a mean to x = mean + step: mean·((1+u)·log(1+u) − u).

    At a mean of 0 it is 0, because x is 0 too. With artanh(s) − s = s³·rest, the bracket is
    2s²/(1−s)·(1 + s·(1+s)·rest), and mean·2s²/(1−s) = s·step.
    """
    if mean <= 0.0:
        return 0.0
    s = step / (mean + (mean + step))
    if abs(s) < _SERIES_BELOW:
        return s * step * (1.0 + s * (1.0 + s) * _artanh_rest(s * s))
    u = step / mean
    if u <= -1.0:
        return mean
    return mean * ((1.0 + u) * math.log1p(u) - u)


@kernel
def log_excess(ratio, u):
    """u − log(ratio), the divergence of −log x, where ratio = 1 + u has digits of its own."""
    s = u / (2.0 + u)
    if abs(s) < _SERIES_BELOW:
        return s * (u - 2.0 * s * s * _artanh_rest(s * s))
    # Near u = −1 the ratio holds digits that 1 + u has lost.
    return u - math.log(ratio)


@kernel
def log_divergence(value, mean, step):
    """The divergence of −log x, value/mean − log(value/mean) − 1: Itakura and Saito's."""
    ratio = value / mean
    if ratio < 1e-300:  # some or all of its digits are lost
        return step / mean - (math.log(value) - math.log(mean))
    return log_excess(ratio, step / mean)


@kernel
def overdispersed_divergence(dispersion, value, mean, step):
    """The divergence of x·log x − (x + r)·log(x + r), where r = 1/dispersion.

    With the shares p = value/(value + r) and q = mean/(mean + r) it is (value + r) times the
    divergence of two Bernoulli variables, p·log(p/q) + (1−p)·log((1−p)/(1−q)), which is the sum of
    two entropies that are not negative. Their step is p − q = r·step/((value + r)(mean + r)). A
    dispersion of 0 leaves the first of them, that of Poisson counts.
    """
    here, there = 1.0 + dispersion * mean, 1.0 + dispersion * value
    shortened, ratio = step / there, there / here
    counts = entropy_divergence(mean, shortened)
    if dispersion == 0.0:
        return counts
    return ratio * (counts + entropy_divergence(1.0, -dispersion * shortened) / dispersion)
