"""Marginal likelihoods from their definition, in 60 digits, from the exact values of the floats."""

from __future__ import annotations

import mpmath
import numpy as np

mpmath.mp.dps = 60
exactly = mpmath.mpf


def log_marginal_likelihood(X, model):
    """log p(X | H) under a complete model, as its docstring defines it."""
    rows = [[exactly(float(value)) for value in row] for row in np.atleast_2d(X)]
    return _OF[model.name](rows, model)


def _each(value, n):
    return [exactly(float(entry)) for entry in np.broadcast_to(value, (n,))]


def _log_factorial(x):
    return mpmath.loggamma(x + 1)


def _poisson(rows, model):
    n, d = len(rows), len(rows[0])
    b, total = exactly(float(model.rate)), exactly(0)
    for k, a in enumerate(_each(model.shape, d)):
        s = sum(row[k] for row in rows)
        total += a * mpmath.log(b) - (a + s) * mpmath.log(b + n)
        total += mpmath.loggamma(a + s) - mpmath.loggamma(a)
    return total - sum(_log_factorial(x) for row in rows for x in row)


def _multinomial(rows, model):
    d = len(rows[0])
    a = _each(model.concentration, d)
    totals = [sum(row) for row in rows]
    total = mpmath.loggamma(sum(a)) - mpmath.loggamma(sum(a) + sum(totals))
    for k in range(d):
        total += mpmath.loggamma(a[k] + sum(row[k] for row in rows)) - mpmath.loggamma(a[k])
    total += sum(_log_factorial(m) for m in totals)
    return total - sum(_log_factorial(x) for row in rows for x in row)


def _bernoulli(rows, model):
    n, d, total = len(rows), len(rows[0]), exactly(0)
    for k, (a, b) in enumerate(zip(_each(model.yes, d), _each(model.no, d), strict=True)):
        s = sum(row[k] for row in rows)
        total += mpmath.log(mpmath.beta(a + s, b + n - s) / mpmath.beta(a, b))
    return total


def _geometric(rows, model):
    n, d, total = len(rows), len(rows[0]), exactly(0)
    for k, (a, b) in enumerate(zip(_each(model.yes, d), _each(model.no, d), strict=True)):
        s = sum(row[k] for row in rows)
        total += _log_beta(a + n, b + s) - _log_beta(a, b)
    return total


def _log_beta(a, b):
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)


def _exponential(rows, model):
    n, d, total = len(rows), len(rows[0]), exactly(0)
    for k, (a, b) in enumerate(zip(_each(model.shape, d), _each(model.waited, d), strict=True)):
        s = sum(row[k] for row in rows)
        total += a * mpmath.log(b) - (a + n) * mpmath.log(b + s)
        total += mpmath.loggamma(a + n) - mpmath.loggamma(a)
    return total


def _diagonal_gaussian(rows, model):
    d = len(rows[0])
    means, scales = _each(model.mean, d), _each(model.scale, d)
    return sum(
        _normal([[row[k]] for row in rows], [means[k]], mpmath.matrix([[scales[k]]]), model)
        for k in range(d)
    )


def _gaussian(rows, model):
    scale = mpmath.matrix(np.asarray(model.scale, float).tolist())
    return _normal(rows, _each(model.mean, len(rows[0])), scale, model)


def _normal(rows, m, scale, model):
    n, d = len(rows), len(m)
    r, nu = exactly(float(model.strength)), exactly(float(model.degrees))
    mean = [sum(row[k] for row in rows) / n for k in range(d)]
    posterior = scale.copy()
    for k in range(d):
        for j in range(d):
            posterior[k, j] += sum((row[k] - mean[k]) * (row[j] - mean[j]) for row in rows)
            posterior[k, j] += r * n / (r + n) * (mean[k] - m[k]) * (mean[j] - m[j])
    total = -exactly(n * d) / 2 * mpmath.log(mpmath.pi)
    for column in range(d):
        total += mpmath.loggamma((nu + n - column) / 2) - mpmath.loggamma((nu - column) / 2)
    total += nu / 2 * mpmath.log(mpmath.det(scale))
    total -= (nu + n) / 2 * mpmath.log(mpmath.det(posterior))
    return total + exactly(d) / 2 * mpmath.log(r / (r + n))


def _von_mises_fisher(rows, model):
    d, kappa, strength = (
        len(rows[0]),
        *(exactly(float(x)) for x in (model.concentration, model.strength)),
    )
    total = [strength * x for x in _direction(_each(model.mean, d))]
    for row in rows:
        total = [t + kappa * x for t, x in zip(total, _direction(row), strict=True)]
    length = mpmath.sqrt(sum(t * t for t in total))
    found = len(rows) * _log_normaliser(kappa, d) + _log_normaliser(strength, d)
    return found - _log_normaliser(length, d)


def _direction(row):
    length = mpmath.sqrt(sum(x * x for x in row))
    return [x / length for x in row]


def _log_normaliser(kappa, d):
    order = exactly(d) / 2 - 1
    power = order * mpmath.log(kappa) - (order + 1) * mpmath.log(2 * mpmath.pi)
    return power - mpmath.log(mpmath.besseli(order, kappa))


_OF = {
    "von_mises_fisher": _von_mises_fisher,
    "geometric": _geometric,
    "exponential": _exponential,
    "poisson": _poisson,
    "multinomial": _multinomial,
    "bernoulli": _bernoulli,
    "gaussian": _gaussian,
    "diagonal_gaussian": _diagonal_gaussian,
}
