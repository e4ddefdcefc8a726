"""One column of d: the methods of a separable family, and bounds from them.

One column of d, at the values y₀ and y₁ with the shares s₀ = n₀/n and s₁ = n₁/n, is

    n·(s₀·B(y₀, m) + s₁·B(y₁, m)),        m = s₀y₀ + s₁y₁.

**The bound of a column.** B(y₀, m) is the integral of φ″(x)·(x − y₀) from y₀ to m: the mean of φ″
under a weight that is a triangle of area (m − y₀)²/2 with its centroid at c₀ = (y₀ + 2m)/3. If φ″
is convex, its mean is at least its value at the centroid (Jensen): B(y₀, m) ≥ (m − y₀)²·φ″(c₀)/2.
The same holds for y₁. With m − y₀ = s₁·step and V = 1/φ″, the variance function of the exponential
family,

    d ≥ n·s₀s₁/2 · step²·(s₁/V(c₀) + s₀/V(c₁)) = n·s₀s₁/2 · step²·(s₁V(c₁) + s₀V(c₀))/(V(c₀)V(c₁)):

one division and no logarithm. Any V above 1/φ″ gives a bound too.
"""

from __future__ import annotations

import numpy as np

from fastrbhc._engine.jit import open_contract

# Added to products of variances, which may underflow: a larger denominator is a lower bound.
_TINY = 1e-300


@open_contract
def divergence(family, value, mean, step):
    """Bregman divergence of one column, a method of every separable family."""


@open_contract
def divergence_bound(family, value, mean, step):
    """A quick lower bound of the divergence, a method of every separable family."""


@open_contract
def variance_function(family, mean):
    """At least 1/φ″, a method of every separable family; infinite if it is not known."""


@open_contract
def second_derivative(family, mean):
    """φ″ of one column, a method of every separable family."""


@open_contract
def pair_bound(family, value0, value1, step, share0, share1):
    """At most share0·B(value0, m) + share1·B(value1, m), a method that `family` adds."""


def unknown_variance(family, mean):
    """The variance function of families that define none."""
    return np.inf


def pair_bound_by_divergences(family, value0, value1, step, share0, share1):
    """The ``pair_bound`` of families without a variance function."""
    mean = share0 * value0 + share1 * value1
    bound0 = divergence_bound(family, value0, mean, -share1 * step)
    bound1 = divergence_bound(family, value1, mean, share0 * step)
    return share0 * bound0 + share1 * bound1


def pair_bound_by_variance(family, value0, value1, step, share0, share1):
    """The ``pair_bound`` of families with one; see the top of this module."""
    twice = 2.0 * (share0 * value0 + share1 * value1)
    variance0 = variance_function(family, (value0 + twice) * (1.0 / 3.0))
    variance1 = variance_function(family, (value1 + twice) * (1.0 / 3.0))
    ratio = (share1 * variance1 + share0 * variance0) / (variance0 * variance1 + _TINY)
    return 0.5 * (share0 * step) * (share1 * step) * ratio
