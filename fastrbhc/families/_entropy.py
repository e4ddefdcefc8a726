"""Two functions behind the entropies of counts and positive measurements.

Both are differences that vanish to second order at 0, where the plain formula would
leave no correct digit; near 0 they are summed as series. The bounds are free of
logarithms; they hold for all u > −1 and are close for |u| < ½.
"""

from __future__ import annotations

import math

from fastrbhc._jit import kernel

# Below this |u| the series with the terms u²…u¹⁹ is exact to the last bit or two;
# above it the plain formula loses at most five bits.
_SERIES_BELOW = 0.125


@kernel
def entropy_excess(u):
    """(1+u)·log(1+u) − u, for u ≥ −1: the divergence of x·log x at ratio 1+u."""
    if u <= -1.0:
        return 1.0
    if abs(u) < _SERIES_BELOW:
        total = 0.0
        for k in range(19, 1, -1):
            total = 1.0 / (k * (k - 1.0)) - u * total
        return u * u * total
    return (1.0 + u) * math.log1p(u) - u


@kernel
def entropy_divergence(mean, step):
    """The divergence of x·log x from a mean to mean + step; 0 at 0, where there are no steps."""
    if mean <= 0.0:
        return 0.0
    return mean * entropy_excess(step / mean)


@kernel
def entropy_divergence_bound(mean, step):
    """At most entropy_divergence(mean, step), for step ≥ −mean."""
    if mean <= 0.0:
        return 0.0
    return step * step / (2.0 * (mean + step * (1.0 / 3.0)))


@kernel
def log_excess(ratio, u):
    """u − log(ratio), ratio = 1 + u: the divergence of −log x, from both forms of its argument."""
    if abs(u) < _SERIES_BELOW:
        total = 0.0
        for k in range(19, 1, -1):
            total = 1.0 / k - u * total
        return u * u * total
    # Near u = −1 the ratio holds digits that 1 + u has lost.
    return u - math.log(ratio)


@kernel
def log_excess_bound(u):
    """At most log_excess(1 + u, u), for u > −1."""
    return u * u / (2.0 * (1.0 + u * (2.0 / 3.0)))
