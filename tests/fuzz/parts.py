"""References for what is a sum of parts: products, rows with missing cells, and families of φ.

A part is a family with its columns, a factor, and weights of its own for the rows. A row whose cell
is missing has weight 0 in the part of that column. Transformed rows, and those that are divided by
a number of trials, are computed with many digits and kept as double-doubles: then the part is one
that `fuzz.reference` knows. Other parts are evaluated by the definition, with as many digits as it
takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import exact
import mpmath
import numpy as np

from fastrbhc import families
from fuzz.reference import (
    KINDS,
    SMALLEST,
    TOLERANCE,
    Replayed,
    merge_slots,
    scratch_for,
    state_of,
    value_of_pair,
)

_DIGITS = 60  # of transformed rows
_MEAN_OFF = 2.0**-96  # what a mean may be off by, in the package too
_VALUE_OFF = 1e-13


# φ of families that are made from it: what the package gets, φ″, and φ for many digits.


def pseudo_huber(x):
    return math.sqrt(1.0 + x * x)


def _pseudo_huber_slope(x):
    return x / math.sqrt(1.0 + x * x)


def burg(x):
    return -math.log(x)


def _burg_slope(x):
    return -1.0 / x


def _burg_curvature(x):
    return 1.0 / (x * x)


def from_pseudo_huber():
    """A family on the whole line, from φ and φ′."""
    return families.from_phi(pseudo_huber, _pseudo_huber_slope)


def from_burg():
    """A family of positive numbers, from φ, φ′ and φ″."""
    positive = families.Domain(lower=0.0, includes_lower=False)
    return families.from_phi(burg, _burg_slope, _burg_curvature, domain=positive)


exact.declare(from_pseudo_huber().name, lambda x: mpmath.sqrt(1 + x * x))
exact.declare(from_burg().name, lambda x: -mpmath.log(x))

# φ″ of the families that only the definition gives, for what a value may be off by.
CURVATURE = {
    "negative_binomial": lambda m, family: 1.0 / (m * (1.0 + family.dispersion * m)),
    "geometric": lambda m, family: 1.0 / (m * (1.0 + m)),
    "inverse_gaussian": lambda m, family: family.shape / m / m / m,
    from_pseudo_huber().name: lambda m, family: (1.0 + m * m) ** -1.5,
    from_burg().name: lambda m, family: _burg_curvature(m),
}


# Parts.


class Known:
    """A part that `fuzz.reference` knows."""

    def __init__(self, state):
        self.state = state
        self.scratch = scratch_for(state.means.shape[1])

    def value(self, a, b):
        return value_of_pair(self.state, a, b, self.scratch)

    def merge(self, a, b):
        merge_slots(self.state, a, b, self.scratch)


@dataclass
class ByDefinition:
    """A part of separate columns, evaluated by the definition."""

    family: object
    X: np.ndarray
    weights: np.ndarray
    members: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self):
        self.members = {i: [i] if self.weights[i] > 0.0 else [] for i in range(len(self.X))}
        self.known: dict = {}
        self.conjugates: dict = {}

    def value(self, a, b):
        rows0, rows1 = self.members[a], self.members[b]
        if not rows0 or not rows1:
            return 0.0, 0.0
        key = frozenset([tuple(rows0), tuple(rows1)])
        if key not in self.known:
            value = definition(self.family, self.X, self.weights, rows0, rows1, self.conjugates)
            self.known[key] = float(value), self._off(rows0, rows1, float(value))
        return self.known[key]

    def _off(self, rows0, rows1, value):
        weights = [self.weights[rows].sum() for rows in (rows0, rows1)]
        means = [
            np.average(self.X[rows], axis=0, weights=self.weights[rows]) for rows in (rows0, rows1)
        ]
        step, off = np.abs(means[0] - means[1]), _MEAN_OFF * np.maximum(*np.abs(means))
        smoothing = getattr(self.family, "smoothing", 0.0)
        lower = np.minimum(*means) + smoothing
        curvature = np.array([CURVATURE[self.family.name](m, self.family) for m in lower.tolist()])
        joint = weights[0] * weights[1] / sum(weights)
        doubt = joint * ((2.0 * step + off) * off * curvature).sum()
        return doubt + _VALUE_OFF * value + SMALLEST * (1.0 + sum(weights))

    def merge(self, a, b):
        self.members[a] = sorted(self.members[a] + self.members[b])


def definition(family, X, weights, rows0, rows1, known=None):
    """d of two groups of rows by its definition, with as many digits as it takes.

    ``known`` remembers f of groups.
    """
    known = {} if known is None else known
    rows0, rows1 = (tuple(int(row) for row in rows) for rows in (rows0, rows1))
    groups = rows0, rows1, tuple(sorted(rows0 + rows1))

    def conjugate(rows):
        if (rows, digits) not in known:
            some = list(rows)
            known[rows, digits] = exact.conjugate_of_rows(X[some], weights[some], family)
        return known[rows, digits]

    value = size = mpmath.mpf(0)
    for digits in (60, 200, 800):
        with mpmath.workdps(digits):
            f0, f1, f01 = map(conjugate, groups)
            value, size = f0 + f1 - f01, max(abs(f0), abs(f1), abs(f01))
            if abs(value) > size * mpmath.mpf(10) ** (25 - digits):
                return value
    return mpmath.mpf(0) if abs(value) < size * mpmath.mpf(10) ** -700 else value


class Sum:
    """The sum of parts, each with its factor."""

    def __init__(self, family, X, weights):
        self.parts = list(_parts(family, X, np.ones(len(X)) if weights is None else weights))

    def value(self, a, b):
        """d of two slots, and what it may be off by."""
        found = [(factor, *part.value(a, b)) for factor, part in self.parts]
        return sum(f * value for f, value, _ in found), sum(f * doubt for f, _, doubt in found)

    def merge(self, a, b):
        """Put the union of both slots into slot a."""
        for _, part in self.parts:
            part.merge(a, b)


def is_sum(family, X):
    """Whether a family of these rows is a sum of parts, and none of `fuzz.reference`."""
    return family.name not in KINDS or bool(np.isnan(X).any())


def _parts(family, X, weights):
    """Factors and parts."""
    if hasattr(family, "blocks"):
        for block in family.blocks:
            for factor, part in _parts(block.family, X[:, list(block.columns)], weights):
                yield block.weight * factor, part
    elif np.isnan(X).any():
        for column in X.T:
            seen = ~np.isnan(column)
            if seen.any():
                values = np.where(seen, column, column[seen][0])
                yield from _parts(family, values[:, None], np.where(seen, weights, 0.0))
    elif family.name in CURVATURE:
        yield 1.0, ByDefinition(family, X, np.asarray(weights, float))
    elif family.name in _AS_KNOWN:
        factor, base, high, low = _AS_KNOWN[family.name](family, X)
        yield factor, Known(state_of(base, high, weights, low))
    elif hasattr(family, "levels"):
        yield 1.0, Known(_of_levels(family, X, weights))
    else:
        yield 1.0, Known(state_of(family, X, weights))


def _of_levels(family, X, weights):
    """Shares of levels: proportions whose smoothing goes towards equal shares in each column."""
    rows = np.array(exact.indicators(X, family.levels))
    state = state_of(families.Poisson(0.0), rows, weights)  # which has the same x log x
    state.parameters[0] = 1.0 - family.smoothing
    towards = family.smoothing * len(family.levels) / rows.shape[1]
    state.offsets[:] = np.ldexp(towards, state.exponents)
    return state


def _digits(function, X):
    """function(x) of every cell, as two numbers."""
    with mpmath.workdps(_DIGITS):
        values = [[function(mpmath.mpf(x)) for x in row] for row in X.tolist()]
        high = np.array([[float(v) for v in row] for row in values])
        low = np.array(
            [[float(v - mpmath.mpf(h)) for v, h in zip(*pair, strict=True)]
             for pair in zip(values, high.tolist(), strict=True)]
        )  # fmt: skip
    return high, low


def _gamma(family, X):
    return family.shape, families.Exponential(family.smoothing), X, None


def _binomial(family, X):
    shares = _digits(lambda x: x / mpmath.mpf(family.trials), X)
    return family.trials, families.Bernoulli(family.smoothing), *shares


def _log_normal(family, X):
    return 1.0, families.SphericalGaussian(family.variance), *_digits(mpmath.log, X)


def _weibull(family, X):
    powers = _digits(lambda x: x ** mpmath.mpf(family.shape), X)
    return 1.0, families.Exponential(family.smoothing), *powers


def _rayleigh(family, X):
    return 1.0, families.Exponential(family.smoothing), *_digits(lambda x: x * x, X)


def _pareto(family, X):
    logs = _digits(lambda x: mpmath.log(x / mpmath.mpf(family.minimum)), X)
    return 1.0, families.Exponential(family.smoothing), *logs


# A family that is another one for other rows: a factor, that family, and the rows in two parts.
_AS_KNOWN = {
    "gamma": _gamma,
    "binomial": _binomial,
    "log_normal": _log_normal,
    "weibull": _weibull,
    "rayleigh": _rayleigh,
    "pareto": _pareto,
}


# Replays.


def replay(family, X, weights, children, unions, everywhere, ignored):
    """Make merges again, as `fuzz.reference.replay` does."""
    clusters, n, m = Sum(family, X, weights), len(X), len(children)
    values, doubts, nearest = np.empty(m), np.empty(m), np.full(m, np.inf)
    pairs = np.full((m, 2), -1)
    slot_of = {i: i for i in range(n)}  # of the nodes that are there
    upper: dict[tuple[int, int], float] = {}

    def at_most(x, y):
        """The most that d of two nodes may be, remembered while both are there."""
        pair = min(x, y), max(x, y)
        if pair not in upper:
            value, doubt = clusters.value(slot_of[pair[0]], slot_of[pair[1]])
            upper[pair] = value * (1.0 + TOLERANCE) + doubt
        return upper[pair]

    def least(some):
        return min(((at_most(x, y), (x, y)) for x, y in some), default=(np.inf, (-1, -1)))

    def all_pairs():
        nodes = sorted(slot_of)
        return ((x, y) for k, x in enumerate(nodes) for y in nodes[:k])

    for step, (a, b) in enumerate(np.asarray(children).tolist()):
        values[step], doubts[step] = clusters.value(slot_of[a], slot_of[b])
        others = [x for x in slot_of if x not in (a, b) and not ignored[x]]
        some = all_pairs() if everywhere else ((x, end) for x in others for end in (a, b))
        nearest[step], pairs[step] = least(some)
        clusters.merge(slot_of[a], slot_of[b])
        slot_of[int(unions[step])] = slot_of.pop(a)
        del slot_of[b]
    left, left_pair = least(all_pairs())
    return Replayed(values, doubts, nearest, pairs, left, np.array(left_pair))


def dissimilarity(family, X0, X1, weights0, weights1):
    """d of two groups of rows, and what it may be off by."""
    clusters = Sum(family, np.concatenate([X0, X1]), np.concatenate([weights0, weights1]))
    for first, last in ((0, len(X0)), (len(X0), len(X0) + len(X1))):
        for row in range(first + 1, last):
            clusters.merge(first, row)
    return clusters.value(0, len(X0))
