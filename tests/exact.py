"""The dissimilarity from its definition, in 60 digits, from the exact values of the floats."""

from __future__ import annotations

import mpmath
import numpy as np

mpmath.mp.dps = 60
exactly = mpmath.mpf


def conjugate_of_rows(rows, weights, family):
    """f(c) = n·φ(t) of a group of rows, as the paper defines it, and log det for covariances.

    NaN stands for a cell that is not observed: then the columns of the family are separate.
    """
    if hasattr(family, "blocks"):
        return sum(
            exactly(block.weight) * conjugate_of_rows(rows[:, block.columns], weights, block.family)
            for block in family.blocks
        )
    if np.isnan(rows).any():
        seen = ~np.isnan(rows)
        return sum(
            conjugate_of_rows(rows[seen[:, k], k : k + 1], weights[seen[:, k]], family)
            for k in range(rows.shape[1])
            if seen[:, k].any()
        )
    if hasattr(family, "levels"):
        rows = indicators(rows, family.levels)
    rows = [[exactly(float(value)) for value in row] for row in rows]
    weights = [exactly(float(weight)) for weight in weights]
    n_features = len(rows[0])
    smoothing = exactly(float(getattr(family, "smoothing", 0.0)))
    if family.name == "multinomial":
        totals = [sum(row) for row in rows]
        rows = [[value / total for value in row] for row, total in zip(rows, totals, strict=True)]
        if family.weight_by_total:
            weights = [w * total for w, total in zip(weights, totals, strict=True)]
    if family.name == "von_mises_fisher":
        rows = [[value / _length(row) for value in row] for row in rows]
    if family.name in _TRANSFORMED:
        rows = [[_TRANSFORMED[family.name](value, family) for value in row] for row in rows]
    n = sum(weights)
    mean = [
        sum(w * row[k] for w, row in zip(weights, rows, strict=True)) / n for k in range(n_features)
    ]
    if family.name == "gaussian":
        return n * _shape(rows, weights, n, mean, smoothing)
    if family.name == "diagonal_gaussian":
        columns = [[[row[k]] for row in rows] for k in range(n_features)]
        return n * sum(
            _shape(column, weights, n, [t], smoothing)
            for column, t in zip(columns, mean, strict=True)
        )
    if family.name == "von_mises_fisher":
        return n * exactly(float(family.concentration)) * _length(mean)
    return n * sum(_PHI[family.name](t, family, smoothing, n_features) for t in mean)


def indicators(rows, levels):
    """Whether each row has each level of each column; levels are whole numbers as text."""
    held = [[str(int(value)) for value in row] for row in rows]
    return [
        [float(value == level) for value, column in zip(row, levels, strict=True)
         for level in column]
        for row in held
    ]  # fmt: skip


def declare(name, phi):
    """Add φ of one column, a function of mpmath, for a family made from φ."""
    _PHI[name] = lambda t, family, smoothing, n_features: phi(t + smoothing)


def dissimilarity(X0, X1, family, weights0=None, weights1=None):
    """d(a, b) = f(a) + f(b) − f(a∪b), and the largest |f|."""
    X0, X1 = np.atleast_2d(X0), np.atleast_2d(X1)
    weights0 = np.ones(len(X0)) if weights0 is None else weights0
    weights1 = np.ones(len(X1)) if weights1 is None else weights1
    both = np.concatenate([X0, X1]), np.concatenate([weights0, weights1])
    f0 = conjugate_of_rows(X0, weights0, family)
    f1 = conjugate_of_rows(X1, weights1, family)
    f01 = conjugate_of_rows(*both, family)
    return f0 + f1 - f01, max(abs(f0), abs(f1), abs(f01))


def _length(row):
    return mpmath.sqrt(sum(value * value for value in row))


def _x_log_x(x):
    return x * mpmath.log(x) if x > 0 else exactly(0)


def _shape(rows, weights, n, mean, smoothing):
    d = len(mean)
    matrix = mpmath.matrix(d, d)
    for w, row in zip(weights, rows, strict=True):
        steps = [value - centre for value, centre in zip(row, mean, strict=True)]
        for k in range(d):
            for m in range(d):
                matrix[k, m] += w * steps[k] * steps[m] / n
    for k in range(d):
        matrix[k, k] += smoothing
    return -mpmath.log(mpmath.det(matrix)) / 2


def _poisson(t, family, smoothing, n_features):
    return _x_log_x(t + smoothing) - (t + smoothing)


def _multinomial(t, family, smoothing, n_features):
    return _x_log_x((1 - smoothing) * t + smoothing / n_features)


def _bernoulli(t, family, smoothing, n_features):
    share = (1 - smoothing) * t + smoothing / 2
    return _x_log_x(share) + _x_log_x(1 - share)


def _exponential(t, family, smoothing, n_features):
    return -mpmath.log(t + smoothing)


def _spherical_gaussian(t, family, smoothing, n_features):
    return t * t / (2 * exactly(float(family.variance)))


def _negative_binomial(t, family, smoothing, n_features):
    return _overdispersed(t + smoothing, exactly(float(family.dispersion)))


def _geometric(t, family, smoothing, n_features):
    return _overdispersed(t + smoothing, exactly(1))


def _overdispersed(x, dispersion):
    if dispersion == 0:
        return _x_log_x(x) - x
    size = 1 / dispersion
    # Without a linear part, so that nothing cancels for large x.
    return -(x * mpmath.log1p(size / x) if x > 0 else 0) - size * mpmath.log1p(x / size)


def _binomial(t, family, smoothing, n_features):
    trials = exactly(float(family.trials))
    count = (1 - smoothing) * t + smoothing * trials / 2
    return _x_log_x(count) + _x_log_x(trials - count) - _x_log_x(trials)


def _categorical(t, family, smoothing, n_features):
    towards = exactly(len(family.levels)) / n_features
    return _x_log_x((1 - smoothing) * t + smoothing * towards)


def _gamma(t, family, smoothing, n_features):
    return -exactly(float(family.shape)) * mpmath.log(t + smoothing)


def _inverse_gaussian(t, family, smoothing, n_features):
    return exactly(float(family.shape)) / (2 * (t + smoothing))


_PHI = {
    "poisson": _poisson,
    "multinomial": _multinomial,
    "bernoulli": _bernoulli,
    "exponential": _exponential,
    "spherical_gaussian": _spherical_gaussian,
    "negative_binomial": _negative_binomial,
    "geometric": _geometric,
    "binomial": _binomial,
    "gamma": _gamma,
    "inverse_gaussian": _inverse_gaussian,
    "categorical": _categorical,
    "log_normal": _spherical_gaussian,
    "weibull": _exponential,
    "rayleigh": _exponential,
    "pareto": _exponential,
}

# What a value becomes first, where φ is that of transformed rows.
_TRANSFORMED = {
    "log_normal": lambda x, family: mpmath.log(x),
    "weibull": lambda x, family: x ** exactly(float(family.shape)),
    "rayleigh": lambda x, family: x * x,
    "pareto": lambda x, family: mpmath.log(x / exactly(float(family.minimum))),
}
