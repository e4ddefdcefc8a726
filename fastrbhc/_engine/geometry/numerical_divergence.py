"""The divergence of a φ of which only φ and φ′ are known, or φ″ as well.

The divergence from a mean y to y + s is φ(y + s) − φ(y) − φ′(y)·s. For a long step s this is
accurate. For a short one almost all digits of the terms cancel. Then it is computed from

    s²·∫₀¹ u·q(us) du,        q(t) = (φ′(y + t) − φ′(y))/t,

where q is a smooth function that does not know of the step: it is interpolated through Chebyshev
points within a radius that is long enough for the differences of φ′ to keep their digits. The last
coefficients of the polynomial, and the digits that cancel in the differences, say how far the
result can be trusted. The right radius depends on φ. So several are tried, until one of them is
good, and the best of all counts. If φ″ is known, nothing cancels in s²·∫₀¹ (1−u)·φ″(y + us) du.
"""

from __future__ import annotations

import numpy as np

from fastrbhc._engine.geometry.separable_columns import second_derivative
from fastrbhc._engine.jit import kernel, open_contract

_EPSILON = 2.0**-52
# Relative errors that are good enough: of the definition, so that it is not interpolated, and of an
# interpolation, so that no other radius is tried.
_GOOD, _GOOD_NEAR = 2e-14, 1e-12

# Points at which φ′ is interpolated, and T_j of each: of even number, so that none is at the mean.
_POINTS = 14
_ANGLES = (np.arange(_POINTS) + 0.5) * np.pi / _POINTS
_CHEBYSHEV = np.cos(_ANGLES)
_COSINES = np.cos(np.outer(np.arange(_POINTS), _ANGLES)) * (2.0 / _POINTS)
_COSINES[0] *= 0.5
# Digits that differences of φ′ lose are few if the nearest point is not too near.
_NEAREST = float(np.abs(_CHEBYSHEV).min())

# The radius as a share of the distance to 0 or to the ends of the domain, and how it is varied.
_SHARE, _FACTOR, _ATTEMPTS = 0.25, 4.0, 13
# Points of the largest radius stay inside the domain.
_INSIDE = 0.9


def _gauss(count: int) -> np.ndarray:
    """Gauss–Legendre nodes on (0, 1), and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return np.array([0.5 * (nodes + 1.0), 0.5 * weights])


# Exact for a polynomial of degree 14; the second checks integrals of a φ″ that is given.
_GAUSS, _FEWER = _gauss(8), _gauss(5)


@open_contract
def potential(family, x):
    """φ of one column."""


@open_contract
def slope(family, x):
    """φ′ of one column."""


@open_contract
def limits(family):
    """The ends of the domain of one column, as two numbers."""


def divergence_by_slopes(family, value, mean, step):
    """The divergence from φ and φ′, a method of families."""
    if step == 0.0:
        return 0.0
    far, doubt = _long_step(family, value, mean, step)
    if doubt <= _GOOD:
        return far
    near, best = _short_step(family, mean, step, np.empty(_POINTS))
    return max(near if best < doubt else far, 0.0)


def divergence_by_curvature(family, value, mean, step):
    """The divergence from φ, φ′ and φ″, a method of families that define ``second_derivative``."""
    if step == 0.0:
        return 0.0
    far, doubt = _long_step(family, value, mean, step)
    if doubt <= _GOOD:
        return far
    near, check = 0.0, 0.0
    for point in range(_GAUSS.shape[1]):
        share = _GAUSS[0, point]
        near += _GAUSS[1, point] * (1.0 - share) * second_derivative(family, mean + share * step)
    for point in range(_FEWER.shape[1]):
        share = _FEWER[0, point]
        check += _FEWER[1, point] * (1.0 - share) * second_derivative(family, mean + share * step)
    if abs(near - check) < doubt * near:
        far = step * (step * near)
    return max(far, 0.0)


def curvature_by_slopes(family, mean):
    """φ″ from φ′, a method of families."""
    return 2.0 * _short_step(family, mean, 0.0, np.empty(_POINTS))[0]


@kernel
def _long_step(family, value, mean, step):
    """The divergence by its definition, and its relative error, infinite if it is not known."""
    there, here, rise = potential(family, value), potential(family, mean), slope(family, mean)
    found = (there - here) - rise * step
    lost = abs(there) + abs(here) + abs(rise * step)
    # The value has fewer digits than the step.
    lost += abs((slope(family, value) - rise) * value)
    doubt = _EPSILON * lost / found
    return found, doubt if doubt >= 0.0 else np.inf


@kernel
def _short_step(family, mean, step, coefficients):
    """The divergence by interpolation, and its relative error; a step of 0 stands for one of 1."""
    lower, upper = limits(family)
    room = min(mean - lower, upper - mean)
    unit = min(abs(mean), room) if mean != 0.0 else min(1.0, room)
    first = max(_SHARE * unit, min(2.0 * abs(step), _INSIDE * room))
    best, least = 0.0, np.inf
    for attempt in range(_ATTEMPTS):
        power = (attempt + 1) // 2 * (1 - 2 * (attempt % 2))  # 0, −1, 1, −2, 2, …
        radius = first * _FACTOR**power
        if abs(step) <= radius <= _INSIDE * room:
            doubt = _interpolate(family, mean, radius, coefficients)
            if doubt < least:
                best, least = _integral(coefficients, step / radius), doubt
                if doubt <= _GOOD_NEAR:
                    break
    if step == 0.0:
        return best, least
    return step * (step * best), least


@kernel
def _interpolate(family, mean, radius, coefficients):
    """Chebyshev coefficients of q, and their error relative to q at the mean."""
    rise, largest = slope(family, mean), 0.0
    coefficients[:] = 0.0
    for point in range(_POINTS):
        place = mean + radius * _CHEBYSHEV[point]
        there = slope(family, place)
        quotient = (there - rise) / (place - mean)
        largest = max(largest, abs(there))
        for j in range(_POINTS):
            coefficients[j] += quotient * _COSINES[j, point]
    middle = _polynomial(coefficients, 0.0)
    missing = abs(coefficients[_POINTS - 1]) + abs(coefficients[_POINTS - 2])
    lost = _EPSILON * (abs(rise) + largest) / (_NEAREST * radius)
    doubt = (missing + lost) / middle
    return doubt if doubt >= 0.0 else np.inf


@kernel
def _polynomial(coefficients, x):
    """A sum of Chebyshev polynomials, by Clenshaw's recurrence."""
    one, two = 0.0, 0.0
    for j in range(_POINTS - 1, 0, -1):
        one, two = coefficients[j] + 2.0 * x * one - two, one
    return coefficients[0] + x * one - two


@kernel
def _integral(coefficients, step):
    """∫₀¹ u·q(us) du, for a step in units of the radius."""
    total = 0.0
    for point in range(_GAUSS.shape[1]):
        share = _GAUSS[0, point]
        total += _GAUSS[1, point] * share * _polynomial(coefficients, share * step)
    return total
