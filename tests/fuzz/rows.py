"""Rows drawn at random, of several patterns and scales."""

from __future__ import annotations

import numpy as np


def pick(rng, choices, shares=None):
    """One of the choices; shares need not add up to 1."""
    if shares is None:
        return choices[int(rng.integers(len(choices)))]
    bounds = np.cumsum(shares)
    return choices[int(np.searchsorted(bounds, rng.random() * bounds[-1], side="right"))]


def _blobs(rng, n, d):
    centres = rng.normal(scale=3.0, size=(3, d))
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, d))


def _grid(rng, n, d):
    return rng.integers(-3, 4, size=(n, d)) * 1.0


def _repeated(rng, n, d):
    few = max(1, n // 3)
    return rng.normal(size=(few, d))[rng.integers(few, size=n)]


def _collinear(rng, n, d):
    return rng.normal(size=(n, 1)) * rng.normal(size=d)


def _whole_line(rng, n, d):
    return rng.integers(-9, 10, size=(n, 1)) * rng.integers(-2, 3, size=d) * 1.0


def _constant(rng, n, d):
    X = rng.normal(size=(n, d))
    X[:, rng.integers(d)] = rng.normal()
    return X


def _far(rng, n, d):
    return 1e8 * rng.normal(size=d) + rng.normal(size=(n, d))


def _far_grid(rng, n, d):
    return 1e8 + rng.integers(0, 5, size=(n, d))


def _outlier(rng, n, d):
    X = rng.normal(size=(n, d))
    X[rng.integers(n)] *= 10.0 ** rng.integers(3, 9)
    return X


def _close(rng, n, d):
    """Pairs that differ by a few units in the last place, or by little more."""
    X = rng.normal(size=(n, d))
    copies = rng.integers(n, size=n)
    steps = 10.0 ** rng.integers(-16, -2, size=(n, 1)) * rng.normal(size=(n, d))
    return np.where(rng.random((n, 1)) < 0.5, X, X[copies] * (1.0 + steps))


def _eighths(rng, n, d):
    return rng.integers(0, 9, size=(n, d)) / 8.0


def _sparse(rng, n, d):
    return rng.poisson(0.4, size=(n, d)) * 1.0


def _counts(rng, n, d):
    return 1.0 * rng.poisson(rng.gamma(1.0, 12.0, size=(3, d))[rng.integers(3, size=n)])


def _orders(rng, n, d):
    return 10.0 ** rng.uniform(-8.0, 8.0, size=(n, d)) * rng.choice([-1.0, 1.0], size=(n, d))


def _wide_orders(rng, n, d):
    return 10.0 ** rng.uniform(-120.0, 100.0, size=(n, d)) * rng.choice([-1.0, 1.0], size=(n, d))


def _zeros(rng, n, d):
    return np.zeros((n, d)) + (rng.random((n, d)) < 0.15)


def _extremes(rng, n, d):
    return rng.choice([0.0, 5e-324, 1e-310, 2.2e-308, 1e-160, 1e-154, 1.0, 1e100], size=(n, d))


PATTERNS = {
    "blobs": _blobs,
    "grid": _grid,
    "repeated": _repeated,
    "collinear": _collinear,
    "whole_line": _whole_line,
    "constant": _constant,
    "far": _far,
    "far_grid": _far_grid,
    "outlier": _outlier,
    "close": _close,
    "eighths": _eighths,
    "sparse": _sparse,
    "counts": _counts,
    "orders": _orders,
    "wide_orders": _wide_orders,
    "zeros": _zeros,
    "extremes": _extremes,
}
RARE = {"wide_orders": 0.3, "zeros": 0.3, "extremes": 0.2}
SHARES = [RARE.get(name, 1.0) for name in PATTERNS]


def in_domain(rng, X, domain):
    """Values moved into the domain of a family, so that ties stay ties."""
    if np.isfinite(domain.upper):
        X = np.abs(X)
        largest = X.max(initial=0.0)
        if largest > 1.0:
            X = X / 2.0 ** np.ceil(np.log2(largest))
    elif np.isfinite(domain.lower):
        X = np.abs(X)
    if not domain.includes_lower:
        X[X == 0.0] = 1.0
    empty = ~X.any(axis=1)
    if domain.needs_positive_total or domain.needs_nonzero_row:
        X[empty, rng.integers(X.shape[1])] = 1.0
    return X


def scales(rng, d, bounded):
    """Powers of ten for the columns, and a word for them."""
    kind = pick(rng, ["1", "near", "any", "mixed", "mixed_any"], [0.45, 0.2, 0.2, 0.08, 0.07])
    if kind == "1":
        return np.zeros(d), "1"
    reach = (-6, 7) if kind in ("near", "mixed") else (-320, 301)
    if kind in ("near", "any"):
        exponents = np.full(d, rng.integers(*reach))
    else:
        exponents = rng.integers(*reach, size=d)
    if bounded:
        exponents = -np.abs(exponents)
    if kind == "mixed_any":
        return exponents, "mixed"
    middle = int(np.round(np.median(exponents)))
    for bound in (-300, -150, -50, -6, 6, 50, 120):
        if middle < bound:
            return exponents, f"below 1e{bound}"
    return exponents, "above 1e120"


def rescaled(X, exponents):
    """In two steps, because 10^−320 has few digits."""
    with np.errstate(all="ignore"):
        half = np.trunc(exponents / 2.0)
        return (X * 10.0**half) * 10.0 ** (exponents - half)
