"""Taylor values: against second derivatives in 60 digits, and against d of large clusters."""

from __future__ import annotations

import math
from typing import NamedTuple

import exact
import mpmath
import numpy as np
import pytest
from scipy import sparse
from strategies import ALL_FAMILIES, continuous_rows, wide_counts

import fastrbhc
from fastrbhc import families
from fastrbhc._engine.geometry.second_derivative import second_derivative_by_steps
from fastrbhc._engine.geometry.separable_columns import second_derivative
from fastrbhc.families import _interface

SEPARABLE = [name for name in ALL_FAMILIES if families.as_family(name).separable]
every_family = pytest.mark.parametrize("name", ALL_FAMILIES)


class Quartic(NamedTuple):
    """φ(x) = x⁴/12 + shift·x², with nothing but a divergence."""

    shift: float = 0.0

    def phi(self, x):
        return x**4 / 12.0 + self.shift * x**2

    def divergence(family, value, mean, step):
        # value⁴ − mean⁴ − 4·mean³·step = step²·(6·mean² + 4·mean·step + step²)
        quartic = step * step * (6.0 * mean * mean + step * (4.0 * mean + step)) / 12.0
        return quartic + family.shift * step * step


class Softplus(NamedTuple):
    """φ(x) = log(1 + exp(x)), as a difference of large terms."""

    rate: float = 1.0

    def divergence(family, value, mean, step):
        slope = 1.0 / (1.0 + math.exp(-mean))
        return math.log1p(math.exp(value)) - math.log1p(math.exp(mean)) - slope * step


@pytest.fixture(scope="module", autouse=True)
def families_of_ones_own():
    whole_line = {"separable": True, "reducible": False, "domain": families.Domain()}
    families.family("quartic", **whole_line)(Quartic)
    families.family("softplus", **whole_line)(Softplus)
    yield
    del _interface._REGISTER["quartic"], _interface._REGISTER["softplus"]


# The reference: along the line from t₀ to t₁ through μ, φ as a function of one number, with 60
# digits, differentiated twice by mpmath.


def taylor_by_definition(X0, X1, family, mean=None):
    """n₀n₁/(2n) times the second derivative of s ↦ φ(μ + s·(t₁ − t₀)) at 0."""
    n0, t0 = statistic(X0, family)
    n1, t1 = statistic(X1, family)
    mu = statistic(np.concatenate([X0, X1]), family)[1] if mean is None else mean
    line = [(exact.exactly(m), b - a) for m, a, b in zip(mu, t0, t1, strict=True)]
    curvature = mpmath.diff(lambda s: phi([m + s * u for m, u in line], family, len(X0[0])), 0, 2)
    return n0 * n1 / (n0 + n1) * curvature / 2


def statistic(rows, family):
    """Weight and mean statistic; for covariances the mean, then the second moments."""
    rows = [[exact.exactly(float(value)) for value in row] for row in rows]
    weights = [exact.exactly(1)] * len(rows)
    if family.name == "multinomial":
        weights = [sum(row) for row in rows]
        rows = [[value / sum(row) for value in row] for row in rows]
    if family.name == "diagonal_gaussian":
        rows = [row + [a * a for a in row] for row in rows]
    if family.name == "von_mises_fisher":
        rows = [[value / exact._length(row) for value in row] for row in rows]
    if family.name == "gaussian":
        rows = [row + [a * b for a in row for b in row] for row in rows]
    if family.name in exact._TRANSFORMED:
        transform = exact._TRANSFORMED[family.name]
        rows = [[transform(value, family) for value in row] for row in rows]
    n = sum(weights)
    columns = zip(*rows, strict=True)
    return n, [sum(w * x for w, x in zip(weights, c, strict=True)) / n for c in columns]


def phi(t, family, d):
    """φ of a mean statistic, smoothed."""
    if family.name == "gaussian":
        matrix = mpmath.matrix(d, d)
        for k in range(d):
            for m in range(d):
                matrix[k, m] = t[d + k * d + m] - t[k] * t[m] + (k == m) * family.smoothing
        return -mpmath.log(mpmath.det(matrix)) / 2
    if family.name == "diagonal_gaussian":
        return -sum(mpmath.log(t[d + k] - t[k] ** 2 + family.smoothing) for k in range(d)) / 2
    if family.name == "von_mises_fisher":
        return family.concentration * exact._length(t)
    if family.name == "quartic":
        return sum(x**4 / 12 + family.shift * x**2 for x in t)
    smoothing = exact.exactly(float(getattr(family, "smoothing", 0.0)))
    return sum(exact._PHI[family.name](x, family, smoothing, d) for x in t)


def assert_taylor(X0, X1, family, mean=None, mu=None, rel=1e-11):
    family = families.as_family(family)
    reference = taylor_by_definition(X0, X1, family, mu)
    computed = fastrbhc.taylor_dissimilarity(X0, X1, family, mean)
    assert computed == pytest.approx(float(reference), rel=rel)


@pytest.mark.fast
@every_family
def test_at_the_pooled_mean(name):
    for seed, (n0, n1, d) in enumerate([(1, 1, 1), (3, 5, 2), (4, 2, 3), (7, 7, 5)]):
        if families.as_family(name).domain.needs_nonzero_row:
            d = max(d, 2)  # in one column directions cancel
        X = continuous_rows(name, n0 + n1, d, seed)
        assert_taylor(X[:n0], X[n0:], name)


@pytest.mark.fast
@pytest.mark.parametrize("name", SEPARABLE)
def test_at_a_mean_that_is_given(name):
    X = continuous_rows(name, 9, 3, 10)
    mean = continuous_rows(name, 1, 3, 11)[0]
    assert_taylor(X[:4], X[4:], name, mean, statistic([mean], families.as_family(name))[1])


@pytest.mark.fast
def test_at_a_mean_and_covariance_that_are_given():
    rng = np.random.default_rng(0)
    X, mean, A = rng.normal(size=(12, 3)), rng.normal(size=3), rng.normal(size=(3, 3))
    covariance = A @ A.T
    second_moment = covariance + np.outer(mean, mean)
    mu = [*mean.tolist(), *second_moment.ravel().tolist()]
    assert_taylor(X[:5], X[5:], "gaussian", (mean, covariance), mu)


@pytest.mark.fast
def test_at_a_mean_and_variances_that_are_given():
    rng = np.random.default_rng(0)
    X, mean, variances = rng.normal(size=(12, 3)), rng.normal(size=3), rng.gamma(1.0, size=3)
    mu = [*mean.tolist(), *(variances + mean**2).tolist()]
    assert_taylor(X[:5], X[5:], "diagonal_gaussian", (mean, variances), mu)


@pytest.mark.fast
def test_at_a_direction_that_is_given():
    X, mean = np.random.default_rng(1).normal(size=(12, 3)), [0.0, 3.0, 4.0]
    assert_taylor(X[:5], X[5:], "von_mises_fisher", mean, [0.0, 0.6, 0.8])


@pytest.mark.fast
def test_the_moments_of_the_rows_are_the_default():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4))
    mean, covariance = X.mean(axis=0), np.cov(X.T, bias=True)
    reference = fastrbhc.taylor_dissimilarity(X[:10], X[10:], "gaussian")
    computed = fastrbhc.taylor_dissimilarity(X[:10], X[10:], "gaussian", (mean, covariance))
    assert computed == pytest.approx(reference, rel=1e-12)
    counts = rng.poisson(5.0, (30, 4))
    reference = fastrbhc.taylor_dissimilarity(counts[:10], counts[10:], "poisson")
    computed = fastrbhc.taylor_dissimilarity(
        counts[:10], counts[10:], "poisson", counts.mean(axis=0)
    )
    assert computed == pytest.approx(reference, rel=1e-13)


@pytest.mark.fast
def test_proportions_are_what_matters_of_a_mean_of_counts():
    X0, X1 = [[5, 2, 3], [1, 7, 2]], [[4, 4, 2]]
    reference = fastrbhc.taylor_dissimilarity(X0, X1, "multinomial", [0.5, 0.3, 0.2])
    computed = fastrbhc.taylor_dissimilarity(X0, X1, "multinomial", [50, 30, 20])
    assert computed == pytest.approx(reference, rel=1e-13)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("family", "X0", "X1"),
    [
        (families.Poisson(smoothing=2.0), [[0.0, 3.0]], [[9.0, 0.0]]),
        (families.Multinomial(smoothing=0.5), [[0.0, 3.0]], [[4.0, 5.0]]),
        (families.Bernoulli(smoothing=0.3), [[0.0, 1.0]], [[1.0, 0.5]]),
        (families.Exponential(smoothing=0.5), [[0.0, 1.0]], [[3.0, 1.0]]),
        (families.SphericalGaussian(variance=3.7), [[1.0, 2.0]], [[2.5, -1.0]]),
        (families.Gaussian(smoothing=2.0), [[1.0, 2.0], [3.0, 2.0]], [[5.0, -1.0]]),
        (families.Gaussian(smoothing=1e-6), [[1.0, 2.0], [3.0, 2.5]], [[5.0, -1.0]]),
    ],
    ids=str,
)
def test_parameters(family, X0, X1):
    assert_taylor(X0, X1, family)


@pytest.mark.fast
def test_a_column_of_zeros_adds_nothing():
    """Though φ″ is infinite there."""
    family = families.Poisson(smoothing=0.0)
    reference = taylor_by_definition([[3.0]], [[5.0]], family)
    computed = fastrbhc.taylor_dissimilarity([[0.0, 3.0]], [[0.0, 5.0]], family)
    assert computed == pytest.approx(float(reference), rel=1e-13)


@pytest.mark.fast
def test_far_from_the_origin():
    """Second moments of such rows have lost the covariance."""
    X = 1e8 + np.random.default_rng(2).normal(size=(9, 3))
    assert_taylor(X[:4], X[4:], "gaussian")
    assert_taylor(X[:4], X[4:], "spherical_gaussian")


@pytest.mark.fast
def test_flat_clusters():
    """Fewer rows than columns, and a spread of many times the smoothing."""
    for spread in (1.0, 1e3):
        X = spread * np.random.default_rng(3).normal(size=(5, 6))
        assert_taylor(X[:2], X[2:], "gaussian", rel=1e-8)


@pytest.mark.fast
@every_family
def test_symmetric_to_the_bit_and_zero_for_the_same_rows(name):
    X = continuous_rows(name, 12, 4, 20)
    there = fastrbhc.taylor_dissimilarity(X[:5], X[5:], name)
    assert there == fastrbhc.taylor_dissimilarity(X[5:], X[:5], name) > 0.0
    assert fastrbhc.taylor_dissimilarity(X[:5], X[:5], name) == 0.0


@pytest.mark.parametrize("name", ["poisson", "multinomial", "bernoulli"])
def test_sparse_groups_have_the_value_of_dense_ones(name, monkeypatch):
    X = wide_counts(name, 120, 40_000, 0)
    dense = X.toarray()
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    mean = dense[10:70].mean(axis=0) + 0.001
    for given in (None, mean):
        reference = fastrbhc.taylor_dissimilarity(dense[:40], dense[40:], name, given)
        for X1 in (X[40:], dense[40:]):
            computed = fastrbhc.taylor_dissimilarity(X[:40], X1, name, given)
            assert computed == pytest.approx(reference, rel=1e-10)


def test_sparse_groups_that_agree_to_ten_digits(monkeypatch):
    """The sums of such rows have no room for the digits in which their means differ."""
    rng = np.random.default_rng(5)
    dense = np.zeros((120, 40_000))
    dense[:, ::4_000] = 3e7 + rng.random((120, 10))
    X = sparse.csr_array(dense)
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    for value in (fastrbhc.taylor_dissimilarity, fastrbhc.dissimilarity):
        reference = value(dense[:40], dense[40:], "poisson")
        computed = value(X[:40], X[40:], "poisson")
        assert computed == pytest.approx(reference, rel=1e-12, abs=0.0)


# d itself


@pytest.mark.fast
def test_it_is_d_for_the_spherical_gaussian():
    X = np.random.default_rng(4).normal(size=(11, 3))
    reference = fastrbhc.dissimilarity(X[:4], X[4:], "ward")
    assert fastrbhc.taylor_dissimilarity(X[:4], X[4:], "ward") == pytest.approx(
        reference, rel=1e-14
    )


@pytest.mark.parametrize("name", [*ALL_FAMILIES, "quartic"])
def test_it_comes_close_to_d_as_large_clusters_become_alike(name):
    """The error is of third order: a tenth of the way apart, a tenth of the relative error."""
    X = continuous_rows(name, 4_000, 3, 30)
    errors = []
    for share in (0.4, 0.04, 0.004):  # the share of rows in one half that are replaced
        replaced = X[:2_000].copy()
        replaced[: int(share * 2_000)] = X[2_000 : 2_000 + int(share * 2_000)]
        d = fastrbhc.dissimilarity(X[:2_000], replaced, name)
        errors.append(abs(fastrbhc.taylor_dissimilarity(X[:2_000], replaced, name) / d - 1.0))
    assert errors[-1] < 0.01
    assert families.as_family(name).quadratic or errors[-1] < errors[0]


# Families that define only a divergence


@pytest.mark.fast
def test_a_family_of_ones_own():
    X = np.random.default_rng(5).normal(size=(9, 3))
    assert_taylor(X[:4], X[4:], Quartic(shift=0.5))
    assert_taylor(X[:4], X[4:], Quartic(), mean=[1.0, -2.0, 0.0], mu=[1.0, -2.0, 0.0])


@pytest.mark.fast
@pytest.mark.parametrize("name", SEPARABLE)
def test_steps_find_the_second_derivative_that_is_stated(name):
    family = families.as_family(name)
    for mean in np.array([1e-6, 1e-3, 0.1, 0.3, 0.5, 0.9]):
        reference = second_derivative(family, mean)
        assert second_derivative_by_steps(family, mean) == pytest.approx(reference, rel=1e-11)


def test_steps_in_kernels_leave_the_domain_and_come_back():
    """Near 1 the first step would lead beyond it, where logarithms are NaN."""
    family = families.Bernoulli()
    X0, X1 = [[0.2]], [[0.7]]
    for mean in (0.99, 0.999999):
        reference = fastrbhc.taylor_dissimilarity(X0, X1, families.Bernoulli(0.0), [mean])
        value = second_derivative_by_steps(family, mean)
        assert 0.5 * 0.5 * value * 0.5**2 == pytest.approx(reference, rel=1e-9)


@pytest.mark.fast
@pytest.mark.parametrize("mean", [0.0, 1e-12, -1e-3, 0.5, -3.0])
def test_a_divergence_that_loses_digits_for_tiny_steps(mean):
    reference = 1.0 / (2.0 + 2.0 * math.cosh(mean))
    computed = second_derivative_by_steps(Softplus(), mean)
    assert computed == pytest.approx(reference, rel=1e-8)


@pytest.mark.fast
def test_a_second_derivative_of_zero():
    assert second_derivative_by_steps(Quartic(), 0.0) == pytest.approx(0.0, abs=1e-12)


# Invalid input


@pytest.mark.fast
@pytest.mark.parametrize(
    ("family", "mean", "error", "message"),
    [
        ("poisson", [1.0], ValueError, r"mean has shape \(1,\), expected \(2,\)"),
        ("poisson", [[1.0, 2.0]], ValueError, r"mean has shape \(1, 2\)"),
        ("poisson", [1.0, -2.0], ValueError, "Negative values in data passed as mean"),
        ("poisson", [1.0, np.nan], ValueError, "mean contains NaN"),
        (families.Poisson(0.0), [1.0, 0.0], ValueError, "not finite at this mean"),
        ("gaussian", [1.0, 2.0, 3.0], TypeError, r"has to be a pair \(mean, covariance\)"),
        ("gaussian", ([1.0, 2.0], [1.0, 2.0]), ValueError, r"covariance has shape \(2,\)"),
        ("gaussian", ([1.0], np.eye(2)), ValueError, r"mean has shape \(1,\)"),
        ("diagonal_gaussian", [1.0, 2.0, 3.0], TypeError, r"has to be a pair \(mean, variances\)"),
        ("diagonal_gaussian", ([1.0, 2.0], np.eye(2)), ValueError, r"have shape \(2, 2\)"),
        ("diagonal_gaussian", ([1.0, 2.0], [1.0, -2.0]), ValueError, "not negative"),
        ("von_mises_fisher", [0.0, 0.0], ValueError, "needs a direction in every row"),
        ("gaussian", ([1.0, 2.0], -np.eye(2)), ValueError, "negative variance"),
        ("gaussian", ([1.0, 2.0], [[1.0, 0.5], [0.0, 1.0]]), ValueError, "not symmetric"),
        ("gaussian", ([1.0, 2.0], np.full((2, 2), np.inf)), ValueError, "NaN or infinity"),
    ],
)
def test_means_that_will_not_do(family, mean, error, message):
    with pytest.raises(error, match=message):
        fastrbhc.taylor_dissimilarity([[1.0, 2.0]], [[3.0, 5.0]], family, mean)


@pytest.mark.fast
def test_groups_with_different_columns():
    with pytest.raises(ValueError, match="X0 has 2 columns and X1 has 1"):
        fastrbhc.taylor_dissimilarity([[1.0, 2.0]], [[3.0]], "poisson")
