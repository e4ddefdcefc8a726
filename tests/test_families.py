"""Families: the dissimilarity against its definition in 60 digits, and declared properties."""

from __future__ import annotations

import itertools

import exact
import mpmath
import numpy as np
import pytest
from scipy import sparse
from strategies import ALL_FAMILIES, ON_THE_WHOLE_LINE, TRANSLATION_INVARIANT, wide_counts

import fastrbhc
from fastrbhc import families
from fastrbhc._engine.geometry.separable_columns import divergence

COUNTS = ["poisson", "multinomial"]
TAKE_SPARSE = [*COUNTS, "bernoulli", "negative_binomial", "geometric", "binomial"]

every_family = pytest.mark.parametrize("name", ALL_FAMILIES)


def draw(name, rng, n, n_features):
    """Rows over the whole domain of the family."""
    shape = (n, n_features)
    if name in ON_THE_WHOLE_LINE:
        return rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 1)
    domain = families.as_family(name).domain
    if np.isfinite(domain.upper):
        return domain.upper * rng.choice([0.0, 1e-9, 0.3, 0.5, 1.0 - 1e-9, 1.0], shape)
    if not domain.includes_lower:
        return domain.lower + 10.0 ** rng.uniform(-9, 9, shape)
    counts = np.floor(10.0 ** rng.uniform(0, 9, shape)) * rng.integers(0, 2, shape)
    counts[:, 0] += name == "multinomial"
    return counts


def nudged(name, X, relative, rng):
    """The same rows, with relative changes of at most that size."""
    domain = families.as_family(name).domain
    origin = domain.lower if np.isfinite(domain.lower) else 0.0
    moved = origin + (X - origin) * (1.0 + relative * rng.uniform(-1.0, 1.0, X.shape))
    return np.clip(moved, domain.lower, domain.upper)


def assert_accurate(computed, X0, X1, family, weights0=None, weights1=None):
    family = families.as_family(family)
    reference, size = exact.dissimilarity(X0, X1, family, weights0, weights1)
    if abs(reference) < 1e-45 * size:  # the same means: the rest is rounding of 60 digits
        assert computed == 0.0
        return
    assert abs(computed - reference) <= 1e-10 * reference


def assert_rows_accurate(X0, X1, family):
    assert_accurate(fastrbhc.dissimilarity(X0, X1, family), X0, X1, family)


def assert_tree_accurate(X, weights, family):
    """Every height of a tree against the definition on the leaves below."""
    tree = fastrbhc.linkage(X, family, sample_weight=weights)
    assert len(tree.heights) == len(X) - 1
    leaves = [[row] for row in range(len(X))]
    for (left, right), height in zip(tree.merges, tree.heights, strict=True):
        a, b = leaves[left], leaves[right]
        assert_accurate(height, X[a], X[b], family, weights[a], weights[b])
        leaves.append(a + b)


# Accuracy


@every_family
def test_single_rows_and_groups(name):
    rng = np.random.default_rng(1)
    for n_features in range(1, 9):
        for n0, n1 in [(1, 1), (1, 4), (3, 2), (5, 5)]:
            X0, X1 = draw(name, rng, n0, n_features), draw(name, rng, n1, n_features)
            assert_rows_accurate(X0, X1, name)


@every_family
def test_rows_nearly_equal(name):
    rng = np.random.default_rng(2)
    for exponent in range(3, 13):
        for n_features in (1, 3, 8):
            X0 = draw(name, rng, 1, n_features)
            assert_rows_accurate(X0, nudged(name, X0, 10.0**-exponent, rng), name)


@pytest.mark.parametrize("name", [*TRANSLATION_INVARIANT, "poisson", "exponential"])
@pytest.mark.parametrize("relative", [1e-3, 1e-6, 1e-9, 1e-12])
def test_groups_with_nearly_equal_means(name, relative):
    rng = np.random.default_rng(3)
    for n_features in (1, 2, 5):
        X0 = rng.uniform(1.0, 10.0, (4, n_features))
        X1 = rng.uniform(1.0, 10.0, (3, n_features))
        X1 *= X0.mean(axis=0) / X1.mean(axis=0) * (1.0 + relative)
        assert_rows_accurate(X0, X1, name)


@pytest.mark.parametrize("relative", [1e-3, 1e-6, 1e-9, 1e-12])
def test_groups_of_shares_with_nearly_equal_means(relative):
    rng = np.random.default_rng(4)
    X0, spread = rng.uniform(0.3, 0.6, (4, 2)), rng.uniform(-0.2, 0.2, (3, 2))
    X1 = X0.mean(axis=0) * (1.0 + relative) + spread - spread.mean(axis=0)
    assert_rows_accurate(X0, X1, "bernoulli")


@pytest.mark.parametrize("weight_by_total", [True, False])
def test_groups_of_counts_with_nearly_equal_proportions(weight_by_total):
    rng = np.random.default_rng(5)
    family = families.Multinomial(weight_by_total=weight_by_total)
    for scale in (1_000, 1_000_000, 1_000_000_000):
        X0 = rng.integers(scale // 2, scale, (4, 3)).astype(float)
        moved = rng.integers(1, scale // 4)
        X1 = X0.copy()
        X1[:2, 0] += [moved, -moved]  # different rows with the same column sums
        assert_rows_accurate(X0, X1, family)
        X1[3, 2] += 1.0
        assert_rows_accurate(X0, X1, family)


@every_family
@pytest.mark.parametrize("fractional", [False, True], ids=["whole", "fractional"])
def test_cluster_sizes_up_to_a_million(name, fractional):
    rng = np.random.default_rng(6)
    for n in range(2, 7):
        X = draw(name, rng, n, int(rng.integers(1, 6)))
        weights = rng.choice([1.0, 7.0, 1e3, 1e6], n)
        if fractional:
            weights *= rng.uniform(0.1, 1.0, n)
        assert_tree_accurate(X, weights, name)


@pytest.mark.parametrize("name", TRANSLATION_INVARIANT)
def test_far_from_the_origin(name):
    rng = np.random.default_rng(7)
    for n_features in range(1, 9):
        X = 1e8 + rng.normal(size=(6, n_features))
        assert_rows_accurate(X[:1], X[1:2], name)
        assert_rows_accurate(X[:2], X[2:], name)
        assert_tree_accurate(X, rng.choice([1.0, 7.0, 1e3, 1e6], 6), name)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_up_to_a_billion(name):
    values = [0.0, 1.0, 5.0, 1e5, 1e9 - 1, 1e9, 1e9 + 1]
    rows = [row for row in itertools.product(values, repeat=2) if sum(row) > 0.0]
    for row0, row1 in itertools.combinations(rows, 2):
        assert_rows_accurate([row0], [row1], name)


def test_zero_against_a_billion_and_billions_that_differ_by_one():
    assert_rows_accurate([[0.0]], [[1e9]], "poisson")
    assert_rows_accurate([[1e9]], [[1e9 + 1]], "poisson")
    assert_rows_accurate([[1e9, 1e9, 1e9]], [[1e9, 1e9, 1e9 + 1]], "multinomial")
    assert_rows_accurate([[1e9, 1e9 + 1]], [[1e9 + 1, 1e9]], "multinomial")


@pytest.mark.parametrize(
    ("family", "X0", "X1"),
    [
        (families.Poisson(smoothing=0.0), [[0.0, 3.0]], [[0.0, 5.0]]),
        (families.Poisson(smoothing=0.0), [[0.0, 3.0]], [[2.0, 0.0]]),
        (families.Poisson(smoothing=2.0), [[0.0, 3.0]], [[1e9, 0.0]]),
        (families.Multinomial(smoothing=0.0), [[0.0, 3.0, 1.0]], [[0.0, 5.0, 0.0]]),
        (families.Multinomial(smoothing=0.99), [[0.0, 3.0]], [[4.0, 5.0]]),
        (families.Bernoulli(smoothing=0.0), [[0.0, 1.0]], [[1.0, 0.5]]),
        (families.Bernoulli(smoothing=1e-9), [[0.0]], [[1.0]]),
        (families.Exponential(), [[1e-120]], [[1e120]]),
        (families.Exponential(smoothing=0.5), [[0.0, 1.0]], [[3.0, 1.0]]),
        (families.NegativeBinomial(dispersion=0.0), [[0.0, 3.0]], [[2.0, 0.0]]),
        (families.NegativeBinomial(dispersion=1e-9), [[0.0, 3.0]], [[1e9, 1.0]]),
        (families.NegativeBinomial(5.0, smoothing=0.0), [[1.0, 3.0]], [[2.0, 1e9]]),
        (families.Geometric(smoothing=1.0), [[0.0, 3.0]], [[2.0, 1e9]]),
        (families.Binomial(trials=20), [[0.0, 20.0, 3.0]], [[20.0, 19.0, 4.0]]),
        (families.Binomial(trials=1_000_000, smoothing=0.0), [[1.0, 999_999.0]], [[2.0, 5e5]]),
        (families.Gamma(shape=1e-3), [[1e-120]], [[1e120]]),
        (families.Gamma(shape=7.0, smoothing=0.5), [[0.0, 1.0]], [[3.0, 1.0]]),
        (families.InverseGaussian(shape=7.0), [[1e-100, 2.0]], [[1e100, 2.1]]),
        (families.InverseGaussian(smoothing=0.5), [[0.0, 1.0]], [[3.0, 1.0]]),
        (families.LogNormal(variance=0.3), [[1e-120, 1.0]], [[1e120, 1.0 + 1e-15]]),
        (families.Weibull(shape=1.5), [[1e-60, 2.0]], [[1e60, 2.0 + 1e-14]]),
        (families.Weibull(shape=0.3, smoothing=0.2), [[0.0, 2.0]], [[1e9, 2.0 + 1e-14]]),
        (families.Rayleigh(smoothing=0.2), [[0.0, 2.0]], [[1e9, 2.0 + 1e-14]]),
        (families.Pareto(minimum=0.7), [[0.7 + 1e-12, 2.0]], [[1e100, 2.0 + 1e-14]]),
        (families.Pareto(minimum=0.7, smoothing=0.1), [[0.7, 2.0]], [[0.7, 2.0 + 1e-14]]),
        (families.SphericalGaussian(variance=3.7), [[1.0, 2.0]], [[2.5, -1.0]]),
        (families.Gaussian(smoothing=2.0), [[1.0, 2.0], [3.0, 2.0]], [[5.0, -1.0]]),
        (families.Gaussian(smoothing=1e-6), [[1.0, 2.0], [3.0, 2.5]], [[5.0, -1.0]]),
        (families.DiagonalGaussian(smoothing=2.0), [[1.0, 2.0], [3.0, 2.0]], [[5.0, -1.0]]),
        (families.DiagonalGaussian(smoothing=1e-6), [[1.0, 2.0], [3.0, 2.5]], [[5.0, -1.0]]),
        (families.VonMisesFisher(concentration=7.5), [[1.0, 2.0], [3.0, 2.5]], [[5.0, -1.0]]),
    ],
    ids=str,
)
def test_parameters(family, X0, X1):
    assert_rows_accurate(X0, X1, family)


def test_shapes_of_any_size():
    """Fourth powers of the last ones overflow."""
    for size in (1e-10, 1e-3, 1e10, 1e80, 1e100):
        X = size * np.array([[1.0], [-1.0], [0.1], [0.3]])
        assert_tree_accurate(X, np.ones(4), "gaussian")


@pytest.mark.parametrize("spread", [1e2, 1e4, 1e6, 1e8])
def test_flat_clusters_of_any_spread(spread):
    """Fewer rows than columns: after cancellation, the determinant consists of the smoothing."""
    rng = np.random.default_rng(12)
    for n_features in (2, 3, 7):
        for n0, n1 in [(1, 2), (2, 3), (3, 6)]:
            X0, X1 = spread * rng.normal(size=(n0, n_features)), rng.normal(size=(n1, n_features))
            assert_rows_accurate(X0, spread * X1, "gaussian")
        line = np.outer(rng.normal(size=5), rng.normal(size=n_features))
        assert_tree_accurate(spread * line, rng.integers(1, 1000, 5) * 1.0, "gaussian")


SLOPES = {
    # Up to a constant, as φ has no linear part there.
    "negative_binomial": lambda t, family: mpmath.log(
        t / (t + 1 / exact.exactly(family.dispersion)) if family.dispersion else t
    ),
    "geometric": lambda t, family: mpmath.log(t / (1 + t)),
    "binomial": lambda t, family: mpmath.log(t / (exact.exactly(family.trials) - t)),
    "bernoulli": lambda t, family: mpmath.log(t / (1 - t)),
    "poisson": lambda t, family: mpmath.log(t),
    "gamma": lambda t, family: -exact.exactly(family.shape) / t,
    "exponential": lambda t, family: -1 / t,
    "inverse_gaussian": lambda t, family: -exact.exactly(family.shape) / (2 * t * t),
    "spherical_gaussian": lambda t, family: t / exact.exactly(family.variance),
}


@pytest.mark.parametrize(
    "family",
    [
        families.Poisson(),
        families.NegativeBinomial(),
        families.NegativeBinomial(dispersion=0.0),
        families.NegativeBinomial(dispersion=1e-6),
        families.NegativeBinomial(dispersion=1e3),
        families.NegativeBinomial(dispersion=1e15),
        families.Geometric(),
        families.Bernoulli(),
        families.Binomial(trials=10.0),
        families.Binomial(trials=1e6),
        families.Exponential(),
        families.Gamma(shape=3.0),
        families.InverseGaussian(shape=2.0),
        families.SphericalGaussian(variance=2.0),
    ],
    ids=str,
)
def test_divergences_keep_fourteen_digits_at_any_step(family):
    """Steps down to 1e-150 of the mean, of which the values themselves know nothing."""
    rng = np.random.default_rng(13)
    sizes = [
        *rng.uniform(-140.0, -3.0, 60),
        *rng.uniform(-3.0, 0.0, 60),
        *rng.uniform(0.0, 4.0, 60),
    ]
    phi, upper = exact._PHI[family.name], family.domain.upper
    bare = family._replace(smoothing=0.0) if hasattr(family, "smoothing") else family
    with mpmath.workdps(340):
        for size in sizes:
            mean = (
                10.0 ** rng.uniform(-6, 9) if np.isinf(upper) else upper * rng.uniform(0.05, 0.95)
            )
            step = float(mean * rng.choice([-1.0, 1.0]) * 10.0**size)
            if not family.domain.lower < mean + step <= upper:
                continue
            t, s = exact.exactly(float(mean)), exact.exactly(step)
            here, there = (phi(x, bare, exact.exactly(0), 1) for x in (t, t + s))
            reference = there - here - SLOPES[family.name](t, family) * s
            if reference > 1e-290:  # smaller numbers have fewer digits
                computed = divergence(family, mean + step, mean, step)
                assert abs(computed - reference) <= 1e-14 * reference, (mean, step)


# Signs, symmetry, zero


@every_family
def test_symmetric_to_the_bit_and_never_negative(name):
    rng = np.random.default_rng(8)
    for trial in range(200):
        n0, n1, n_features = rng.integers(1, 6, 3)
        X0 = draw(name, rng, n0, n_features)
        X1 = nudged(name, X0, 1e-9, rng) if trial % 2 else draw(name, rng, n1, n_features)
        there = fastrbhc.dissimilarity(X0, X1, name)
        back = fastrbhc.dissimilarity(X1, X0, name)
        assert there >= 0.0
        assert there == back


@every_family
@pytest.mark.parametrize("copies", [(1, 1), (3, 1), (7, 3), (10, 9)])
def test_exactly_zero_for_repeated_rows(name, copies):
    domain, (n0, n1) = families.as_family(name).domain, copies
    row = max(domain.lower, 0.0) + np.array([[0.1, 0.3, 0.7]])
    assert fastrbhc.dissimilarity(row.repeat(n0, 0), row.repeat(n1, 0), name) == 0.0


def test_exactly_zero_for_proportional_counts():
    assert fastrbhc.dissimilarity([[1, 2, 4]], [[3, 6, 12]], "multinomial") == 0.0
    assert fastrbhc.dissimilarity([[1e9, 1e9, 3]], [[2e9, 2e9, 6]], "multinomial") == 0.0


# Smoothing


@pytest.mark.fast
def test_contraction_and_shift_are_the_smoothings_of_the_paper():
    t, amount, inner = 0.7, 0.25, 0.5
    scale, offset = families.contraction(amount, towards=inner)
    assert scale * t + offset == (1.0 - amount) * t + amount * inner
    scale, offset = families.shift(amount, along=2.0)
    assert scale * t + offset == t + amount * 2.0


@pytest.mark.fast
@pytest.mark.parametrize(
    ("family", "n_features", "scale", "offset"),
    [
        (families.SphericalGaussian(), 3, 1.0, 0.0),
        (families.Gaussian(smoothing=0.5), 3, 1.0, 0.5),
        (families.DiagonalGaussian(smoothing=0.5), 3, 1.0, 0.5),
        (families.VonMisesFisher(), 3, 1.0, 0.0),
        (families.Poisson(smoothing=0.5), 3, 1.0, 0.5),
        (families.Exponential(smoothing=0.5), 3, 1.0, 0.5),
        (families.Multinomial(smoothing=0.5), 4, 0.5, 0.125),
        (families.Bernoulli(smoothing=0.5), 4, 0.5, 0.25),
        (families.Binomial(trials=10.0, smoothing=0.5), 4, 0.5, 2.5),
        (families.NegativeBinomial(smoothing=0.5), 3, 1.0, 0.5),
        (families.Geometric(smoothing=0.5), 3, 1.0, 0.5),
        (families.Gamma(smoothing=0.5), 3, 1.0, 0.5),
        (families.InverseGaussian(smoothing=0.5), 3, 1.0, 0.5),
        (families.LogNormal(), 3, 1.0, 0.0),
        (families.Weibull(smoothing=0.5), 3, 1.0, 0.5),
    ],
    ids=str,
)
def test_smoothing_of_each_family(family, n_features, scale, offset):
    assert family.smoothing_map(n_features) == families.Smoothing(scale, offset)


# Declared properties


@pytest.mark.fast
@pytest.mark.parametrize(
    ("name", "separable", "reducible", "quadratic", "covariance", "domain"),
    [
        ("spherical_gaussian", True, True, True, "none", "(-inf, inf)"),
        ("gaussian", False, False, False, "full", "(-inf, inf)"),
        ("diagonal_gaussian", False, False, False, "diagonal", "(-inf, inf)"),
        ("von_mises_fisher", False, True, False, "none", "(-inf, inf)"),
        ("poisson", True, False, False, "none", "[0, inf)"),
        ("multinomial", True, False, False, "none", "[0, inf)"),
        ("bernoulli", True, False, False, "none", "[0, 1]"),
        ("exponential", True, False, False, "none", "(0, inf)"),
        ("negative_binomial", True, False, False, "none", "[0, inf)"),
        ("binomial", True, False, False, "none", "[0, 1]"),
        ("geometric", True, False, False, "none", "[0, inf)"),
        ("gamma", True, False, False, "none", "(0, inf)"),
        ("inverse_gaussian", True, False, False, "none", "(0, inf)"),
        ("log_normal", True, True, True, "none", "(0, inf)"),
        ("weibull", True, False, False, "none", "(0, inf)"),
        ("rayleigh", True, False, False, "none", "(0, inf)"),
        ("pareto", True, False, False, "none", "(1, inf)"),
    ],
)
def test_properties(name, separable, reducible, quadratic, covariance, domain):
    family = families.as_family(name)
    stated = (family.name, family.separable, family.reducible, family.quadratic, family.covariance)
    assert stated == (name, separable, reducible, quadratic, covariance)
    assert str(family.domain) == domain
    assert family.domain.needs_positive_total == (name == "multinomial")
    assert family.domain.needs_nonzero_row == (name == "von_mises_fisher")
    assert family.domain.takes_sparse == (name in TAKE_SPARSE)


@pytest.mark.fast
def test_smoothing_opens_the_domain_of_the_exponential():
    assert str(families.Exponential(smoothing=0.1).domain) == "[0, inf)"
    assert families.Exponential(smoothing=0.1).domain.takes_sparse


def test_both_readings_of_counts_that_share_a_total():
    by_total = families.Multinomial()
    by_row = families.Multinomial(weight_by_total=False)
    X0, X1 = [[8.0, 2.0]], [[2.0, 8.0]]
    # Equal totals m: the first reading is m times the second.
    m = 10.0
    assert fastrbhc.dissimilarity(X0, X1, by_total) == pytest.approx(
        m * fastrbhc.dissimilarity(X0, X1, by_row), rel=1e-14
    )
    # Rows of proportions only: totals do not matter.
    longer = [[16.0, 4.0]]
    assert fastrbhc.dissimilarity(longer, X1, by_row) == fastrbhc.dissimilarity(X0, X1, by_row)
    assert fastrbhc.dissimilarity(longer, X1, by_total) > fastrbhc.dissimilarity(X0, X1, by_total)
    # Doubling every count doubles the weights.
    assert fastrbhc.dissimilarity([[16, 4]], [[4, 16]], by_total) == pytest.approx(
        2.0 * fastrbhc.dissimilarity(X0, X1, by_total), rel=1e-14
    )
    assert_rows_accurate([[16.0, 4.0], [1.0, 2.0]], [[2.0, 8.0]], by_total)
    assert_rows_accurate([[16.0, 4.0], [1.0, 2.0]], [[2.0, 8.0]], by_row)


# A row with one low value, and the same with its columns exchanged: all pairs are equally near.
COUNTEREXAMPLES = [
    (families.Poisson(), 0.0, 9.0, 12.3, 9.35),
    (families.Multinomial(), 0.0, 9.0, 8.44, 6.81),
    (families.Bernoulli(), 0.0, 0.5, 0.569, 0.503),
    (families.Exponential(), 1.0, 9.0, 2.04, 1.39),
    (families.NegativeBinomial(), 0.0, 9.0, 7.91, 5.36),
    (families.Geometric(), 0.0, 9.0, 3.82, 2.35),
    (families.Binomial(trials=2), 0.0, 1.0, 1.14, 1.01),
    (families.Gamma(), 1.0, 9.0, 2.04, 1.39),
    (families.InverseGaussian(), 1.0, 9.0, 0.711, 0.412),
    (families.Weibull(), 1.0, 9.0, 2.04, 1.39),
    (families.Rayleigh(), 1.0, 3.0, 2.04, 1.39),
    (families.Pareto(), np.e, np.exp(9.0), 2.04, 1.39),
]


@pytest.mark.parametrize(("family", "low", "high", "apart", "joined"), COUNTEREXAMPLES, ids=str)
def test_a_counterexample_to_reducibility(family, low, high, apart, joined):
    """The numbers are those of the docstring."""
    a, b, x = np.where(np.eye(3) == 1.0, low, high)[:, None]
    for pair in ((a, b), (a, x), (b, x)):
        assert f"{fastrbhc.dissimilarity(*pair, family):.3g}" == f"{apart}"
    union = fastrbhc.dissimilarity(np.concatenate([a, b]), x, family)
    assert f"{union:.3g}" == f"{joined}"
    assert f"d = {apart}" in type(family).__doc__
    assert f"d = {joined}" in type(family).__doc__


@pytest.mark.parametrize("family", [families.Gaussian(), families.DiagonalGaussian()], ids=str)
def test_a_counterexample_with_covariances(family):
    a, b, x = np.array([[0.0]]), np.array([[4.0]]), np.array([[2.0], [2.0]])
    union = np.concatenate([a, b])
    found = [fastrbhc.dissimilarity(*pair, family) for pair in ((a, b), (a, x), (b, x), (union, x))]
    assert [f"{value:.2f}" for value in found] == ["5.99", "6.75", "6.75", "4.61"]


@pytest.mark.fast
def test_every_family_is_reducible_or_has_a_counterexample():
    known = {family.name for family, *_ in COUNTEREXAMPLES} | {"gaussian", "diagonal_gaussian"}
    reducible = {name for name in ALL_FAMILIES if families.as_family(name).reducible}
    assert set(ALL_FAMILIES) == known | reducible
    assert not known & reducible


# Names, records, parameters


@pytest.mark.fast
@pytest.mark.parametrize(
    ("given_name", "expected"),
    [
        ("poisson", families.Poisson()),
        ("Poisson", families.Poisson()),
        ("ward", families.SphericalGaussian()),
        ("spherical-gaussian", families.SphericalGaussian()),
        ("Spherical Gaussian", families.SphericalGaussian()),
        ("itakura_saito", families.Exponential()),
        ("cosine", families.VonMisesFisher()),
        ("von Mises-Fisher", families.VonMisesFisher()),
        (families.Bernoulli, families.Bernoulli()),
        (families.Poisson(1), families.Poisson(1.0)),
    ],
)
def test_a_name_a_class_or_a_record(given_name, expected):
    family = families.as_family(given_name)
    assert type(family) is type(expected)
    assert family == expected


@pytest.mark.fast
@pytest.mark.parametrize(
    ("wrong", "suggested"),
    [
        ("poison", "'poisson'"),
        ("gausian", "'gaussian'"),
        ("multinomal", "'multinomial'"),
        ("spherical", "'spherical_gaussian'"),
        ("wards", "'ward'"),
    ],
)
def test_unknown_names_bring_suggestions(wrong, suggested):
    with pytest.raises(ValueError, match=rf"unknown family '{wrong}': did you mean .*{suggested}"):
        families.as_family(wrong)


@pytest.mark.fast
def test_a_name_like_no_other_brings_the_list():
    with pytest.raises(ValueError, match="unknown family 'xyz': The families are 'bernoulli'"):
        families.as_family("xyz")


@pytest.mark.fast
@pytest.mark.parametrize("wrong", [3, None, (1.0,), dict, ["poisson"]], ids=str)
def test_what_is_no_family(wrong):
    with pytest.raises(TypeError, match="family has to be a name or a record"):
        families.as_family(wrong)


@pytest.mark.fast
def test_records_with_ints_are_records_with_floats():
    family = families.as_family(families.Multinomial(0, False))
    assert [type(value) for value in family] == [float, bool]
    assert family == families.Multinomial(0.0, False)


@pytest.mark.fast
@pytest.mark.parametrize(
    "wrong",
    [
        families.SphericalGaussian(variance=0.0),
        families.SphericalGaussian(variance=-1.0),
        families.SphericalGaussian(variance=np.inf),
        families.SphericalGaussian(variance=np.nan),
        families.Gaussian(smoothing=0.0),
        families.Gaussian(smoothing=np.inf),
        families.DiagonalGaussian(smoothing=0.0),
        families.DiagonalGaussian(smoothing=np.nan),
        families.VonMisesFisher(concentration=0.0),
        families.VonMisesFisher(concentration=np.inf),
        families.Poisson(smoothing=-0.1),
        families.Poisson(smoothing=np.nan),
        families.Multinomial(smoothing=1.0),
        families.Multinomial(smoothing=-0.1),
        families.Bernoulli(smoothing=1.0),
        families.Exponential(smoothing=-1.0),
        families.Exponential(smoothing=np.inf),
        families.NegativeBinomial(dispersion=-1.0),
        families.NegativeBinomial(dispersion=1e-16),
        families.NegativeBinomial(dispersion=np.nan),
        families.NegativeBinomial(smoothing=-1.0),
        families.Geometric(smoothing=-1.0),
        families.Binomial(trials=0),
        families.Binomial(trials=2.5),
        families.Binomial(trials=np.inf),
        families.Binomial(smoothing=1.0),
        families.Gamma(shape=0.0),
        families.Gamma(smoothing=-1.0),
        families.InverseGaussian(shape=np.inf),
        families.LogNormal(variance=0.0),
        families.SphericalGaussian(scale=(1.0, 0.0)),
        families.SphericalGaussian(scale=(np.nan,)),
        families.Weibull(shape=0.001),
        families.Weibull(smoothing=-1.0),
        families.Rayleigh(smoothing=np.nan),
        families.Pareto(minimum=0.0),
        families.Pareto(minimum=np.nan),
    ],
    ids=str,
)
def test_parameters_outside_their_range(wrong):
    with pytest.raises(ValueError, match=rf"({'|'.join(type(wrong)._fields)}) has to .*, got"):
        families.as_family(wrong)


@pytest.mark.fast
def test_the_register_is_a_copy_with_names_and_aliases():
    known = families.registered()
    assert set(known) >= {*ALL_FAMILIES, "ward", "itakura_saito", "cosine"}
    known.clear()
    assert "ward" in families.registered()


@pytest.mark.parametrize("name", [*COUNTS, "bernoulli", "binomial"])
def test_sparse_groups_have_the_dissimilarity_of_dense_ones(name, monkeypatch):
    X = wide_counts(name, 120, 40_000, 0)
    dense = X.toarray()
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    for first in (30, 60):
        reference = fastrbhc.dissimilarity(dense[:first], dense[first:], name)
        for X0, X1 in ((X[:first], X[first:]), (dense[:first], X[first:])):
            computed = fastrbhc.dissimilarity(X0, X1, name)
            assert computed == pytest.approx(reference, rel=1e-10)


@pytest.mark.parametrize("name", ["negative_binomial", "geometric"])
def test_sparse_trees_without_bounds_are_those_of_dense_rows(name, monkeypatch):
    """Rows that do not fit the memory stay sparse, and all pairs are evaluated."""
    X = wide_counts(name, 60, 500, 1)
    algorithms = ("greedy", "nn_chain")
    references = [fastrbhc.linkage(X.toarray(), name, algorithm=way) for way in algorithms]
    monkeypatch.setattr("fastrbhc._row_validation.memory", lambda: 1)
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    for algorithm, reference in zip(algorithms, references, strict=True):
        tree = fastrbhc.linkage(X, name, algorithm=algorithm)
        np.testing.assert_allclose(tree.heights, reference.heights, rtol=1e-10)
    assert families.as_family(name).entropy_share == 0.0


# A width for each column


def test_ward_with_scales_is_ward_of_scaled_columns():
    rng = np.random.default_rng(0)
    X, widths = rng.normal(size=(60, 3)) * [1.0, 1000.0, 0.01] + [0.0, 1e5, 3.0], (2.0, 500.0, 0.03)
    reference = fastrbhc.linkage(X / widths, "ward")
    computed = fastrbhc.linkage(X, families.SphericalGaussian(scale=widths))
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-9)
    labels = computed.cut(n_clusters=4)
    np.testing.assert_array_equal(labels, reference.cut(n_clusters=4))
    expected = [X[labels == 0, column].mean() for column in range(3)]
    summary = computed.summary(X, n_clusters=4)
    np.testing.assert_allclose(summary.iloc[0][["mean_x0", "mean_x1", "mean_x2"]], expected)
    again = fastrbhc.Dendrogram.from_json(computed.to_json())
    assert again.family == computed.family == families.SphericalGaussian(1.0, widths)


def test_scales_in_a_product_and_with_gaps():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(50, 2)) * [1.0, 100.0], rng.poisson(3.0, 50)])
    scaled = X / [1.0, 100.0, 1.0]
    reference = fastrbhc.linkage(scaled, {"ward": [0, 1], "poisson": [2]})
    family = {families.SphericalGaussian(scale=(1.0, 100.0)): [0, 1], "poisson": [2]}
    np.testing.assert_allclose(fastrbhc.linkage(X, family).heights, reference.heights, rtol=1e-9)
    X[3, 1] = scaled[3, 1] = np.nan
    reference = fastrbhc.linkage(scaled[:, :2], "ward", missing="ignore")
    family = families.SphericalGaussian(scale=(1.0, 100.0))
    computed = fastrbhc.linkage(X[:, :2], family, missing="ignore")
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-9)


def test_scales_of_other_columns_are_refused():
    family = families.SphericalGaussian(scale=(1.0, 2.0))
    with pytest.raises(ValueError, match="X has 3 columns, and the family has scales for 2"):
        fastrbhc.linkage(np.ones((4, 3)), family)
    assert str(families.SphericalGaussian()) == "SphericalGaussian(variance=1.0)"
    assert str(family) == "SphericalGaussian(scale=(1.0, 2.0))"
    assert str(families.SphericalGaussian(2.0, (1.0,))).endswith("(variance=2.0, scale=(1.0,))")
