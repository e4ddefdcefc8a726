"""The conjugate models: marginal likelihoods, hyperparameters from data, invalid input."""

from __future__ import annotations

import exact_bhc
import naive_bhc
import numpy as np
import pytest
from scipy import sparse

import fastrbhc
from fastrbhc.bhc import (
    BetaBernoulli,
    BetaGeometric,
    DirichletMultinomial,
    GammaExponential,
    GammaPoisson,
    NormalGamma,
    NormalWishart,
    VonMisesFisherDirections,
    as_model,
    log_marginal_likelihood,
    model,
    registered,
)
from fastrbhc.bhc.likelihoods.rising import log_rising
from fastrbhc.families import Domain

NAMES = [
    "poisson",
    "multinomial",
    "bernoulli",
    "geometric",
    "exponential",
    "gaussian",
    "diagonal_gaussian",
    "von_mises_fisher",
]
every_model = pytest.mark.parametrize("name", NAMES)


def draw(name, rng, n, n_features=3):
    if name == "bernoulli":
        return (rng.random((n, n_features)) < 0.4) * 1.0
    if name in {"poisson", "multinomial"}:
        return rng.poisson(4.0, (n, n_features)) + np.eye(1, n_features)
    if name == "geometric":
        return rng.geometric(0.2, (n, n_features)) - 1.0
    if name == "exponential":
        return rng.exponential(3.0, (n, n_features))
    return rng.normal(size=(n, n_features)) @ rng.normal(size=(n_features, n_features))


def agree(X, record):
    """The logarithm is right to ten digits, or the likelihood itself if |log p| < 1."""
    complete = record.with_defaults(np.asarray(X, float))
    reference = exact_bhc.log_marginal_likelihood(X, complete)
    computed = log_marginal_likelihood(X, record)
    assert abs(computed - reference) <= 1e-10 * max(1.0, abs(reference)), (computed, reference)


# Marginal likelihoods


@every_model
@pytest.mark.parametrize("n", [1, 2, 9])
def test_marginal_likelihood_is_the_product_of_predictive_densities(name, n):
    X = draw(name, np.random.default_rng(n), n)
    record = as_model(name).with_defaults(X)
    reference = naive_bhc.log_marginal_likelihood(X, record)
    assert log_marginal_likelihood(X, record) == pytest.approx(reference, rel=1e-10)


@every_model
@pytest.mark.parametrize("n", [1, 2, 30])
def test_marginal_likelihood_by_definition(name, n):
    agree(draw(name, np.random.default_rng(n + 1), n), as_model(name))


@pytest.mark.fast
@pytest.mark.parametrize(("a", "b"), [(0.7, 2.0), (3.0, 1.5)])
def test_waiting_times_by_integration_over_the_prior(a, b):
    mp = exact_bhc.mpmath
    steps, times = [[3.0], [0.0], [7.0]], [[0.5], [2.25], [1.0]]
    by_probability = mp.quad(
        lambda p: p ** (a - 1 + 3) * (1 - p) ** (b - 1 + 10) / mp.beta(a, b), [0, 0.1, 0.5, 1]
    )
    by_rate = mp.quad(
        lambda r: b**a / mp.gamma(a) * r ** (a - 1 + 3) * mp.exp(-r * (b + 3.75)), [0, 1, 9, mp.inf]
    )
    for X, record, reference in (
        (steps, BetaGeometric(a, b), by_probability),
        (times, GammaExponential(a, b), by_rate),
    ):
        computed = log_marginal_likelihood(X, record)
        assert computed == pytest.approx(float(mp.log(reference)), rel=1e-12)


FAR = [1e-6, 1e-3, 1e3, 1e6]


@pytest.mark.fast
@pytest.mark.parametrize("first", FAR)
@pytest.mark.parametrize("second", FAR)
def test_counts_with_hyperparameters_far_from_one(first, second):
    rng = np.random.default_rng(2)
    agree(draw("poisson", rng, 6), GammaPoisson(first, second))
    agree(draw("bernoulli", rng, 6), BetaBernoulli(first, second))
    agree(draw("multinomial", rng, 6), DirichletMultinomial([first, second, 1.0]))
    agree(draw("geometric", rng, 6), BetaGeometric(first, second))
    agree(draw("exponential", rng, 6), GammaExponential(first, second))


@pytest.mark.fast
@pytest.mark.parametrize("strength", FAR)
@pytest.mark.parametrize("degrees", [2.001, 5.0, 1e3, 1e6])
@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_measurements_with_hyperparameters_far_from_one(strength, degrees, factor):
    X = draw("gaussian", np.random.default_rng(3), 5)
    agree(X, NormalWishart(0.3, strength, degrees, factor))
    agree(X, NormalGamma(0.3, strength, degrees, factor))


@pytest.mark.fast
@pytest.mark.parametrize("offset", [1e3, 1e8, -1e10])
@pytest.mark.parametrize("mean", [None, 0.0], ids=["mean of data", "mean 0"])
def test_measurements_far_from_zero(offset, mean):
    X = np.round(draw("gaussian", np.random.default_rng(4), 8), 4) + offset
    agree(X, NormalWishart(mean, scale=np.diag([0.5, 1.0, 3.0]) + 0.4))
    agree(X, NormalGamma(mean, scale=[0.5, 1.0, 3.0]))
    agree(X, NormalWishart(mean))


@pytest.mark.fast
@pytest.mark.parametrize("unit", [1e-100, 1e-12, 1e12, 1e100])
def test_measurements_in_other_units(unit):
    agree(draw("exponential", np.random.default_rng(5), 7) * unit, GammaExponential())
    X = draw("gaussian", np.random.default_rng(5), 7) * unit
    agree(X, NormalWishart())
    agree(X, NormalGamma())


@pytest.mark.fast
def test_clusters_that_are_flat_but_for_the_prior():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(4, 1)) * np.array([1.0, 2.0, -1.0, 0.5, 3.0])  # one direction
    for scale in (1e-10, 1e-14, 1e-18):
        agree(X, NormalWishart(0.0, scale=scale * np.eye(5)))


@pytest.mark.fast
@pytest.mark.parametrize("d", [1, 2, 3, 10, 60, 400])
@pytest.mark.parametrize("concentration", [1e-6, 1.0, 30.0, 1e5])
def test_directions_in_any_number_of_columns(d, concentration):
    X = np.random.default_rng(14).normal(size=(6, d)) + 0.5
    for strength in (1e-6, 1.0, 1e3):
        agree(X, VonMisesFisherDirections(concentration, np.ones(d), strength))
    agree(1e100 * X, VonMisesFisherDirections())


@pytest.mark.fast
def test_awkward_counts():
    agree(np.zeros((5, 2)), GammaPoisson(0.5, 2.0))
    agree(np.zeros((1, 1)), GammaPoisson())
    agree([[0.0, 0.0, 7.0]], DirichletMultinomial(0.1))
    agree([[3e9, 1.0], [2e9, 0.0]], GammaPoisson(2.0, 1e-9))
    agree([[1e12, 1.0], [5.0, 1e12]], DirichletMultinomial(1.0))
    agree([[0.25, 3.5], [1e-9, 2.0]], GammaPoisson(1.5, 0.5))
    agree([[1.0, 0.0], [1.0, 0.0]], BetaBernoulli())
    agree([[1.0], [1.0]], BetaBernoulli())
    agree(np.zeros((5, 2)), BetaGeometric())
    agree([[3e9, 1.0], [2e9, 0.0]], BetaGeometric(2.0, 1e9))
    agree([[1e12, 1.0], [5.0, 1e12]], BetaGeometric([1.5, 3.0], [2.0, 0.1]))
    agree([[1e100, 1e-100], [1e-100, 1e100]], GammaExponential())


@pytest.mark.fast
@pytest.mark.parametrize("a", [1e-300, 1e-5, 0.5, 19.9, 20.1, 1e4, 1e12])
@pytest.mark.parametrize("s", [0.5, 1.0, 7.0, 1e3, 1e9])
def test_log_rising(a, s):
    mp = exact_bhc.mpmath
    reference = mp.loggamma(mp.mpf(a) + mp.mpf(s)) - mp.loggamma(mp.mpf(a))
    assert log_rising(a, s) == pytest.approx(float(reference), rel=1e-13, abs=1e-13)


def test_totals_beyond_the_tables(monkeypatch):
    X = draw("poisson", np.random.default_rng(7), 20)
    reference = fastrbhc.bhc_linkage(X, "poisson")
    monkeypatch.setattr("fastrbhc.bhc.likelihoods.counts._LARGEST_TABLES", 10)
    monkeypatch.setattr("fastrbhc.bhc.likelihoods.counts._SHORT_TABLES", 10)
    computed = fastrbhc.bhc_linkage(X, "poisson")
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-12)


# Hyperparameters from the data


@pytest.mark.fast
def test_gaussian_hyperparameters_of_the_paper():
    X = draw("gaussian", np.random.default_rng(8), 50, 4)
    complete = NormalWishart(scale_factor=0.7).with_defaults(X)
    np.testing.assert_allclose(complete.mean, X.mean(axis=0))
    np.testing.assert_allclose(complete.scale, 0.7 * np.cov(X.T, bias=True), rtol=1e-4, atol=1e-4)
    assert (complete.strength, complete.degrees) == (0.1, 10.0)


@pytest.mark.fast
def test_gamma_and_dirichlet_of_the_data_are_those_it_came_from():
    rng = np.random.default_rng(9)
    counts = rng.poisson(rng.gamma(2.0, 1.0 / 0.05, size=(20_000, 1)))
    shape, rate = GammaPoisson().with_defaults(counts.astype(float))
    assert shape == pytest.approx(2.0, rel=0.05)
    assert rate == pytest.approx(0.05, rel=0.05)
    shares = rng.dirichlet(np.full(10, 0.5), size=5_000)
    rows = rng.multinomial(30, shares).astype(float)
    assert DirichletMultinomial().with_defaults(rows).concentration == pytest.approx(0.5, rel=0.05)


@pytest.mark.fast
def test_priors_of_waiting_times_are_those_the_data_came_from():
    rng = np.random.default_rng(13)
    times = rng.exponential(1.0 / rng.gamma(8.0, 1.0 / 30.0, size=(200_000, 1)))
    shape, waited = GammaExponential().with_defaults(times)
    assert shape == pytest.approx(8.0, rel=0.1)
    assert waited[0] == pytest.approx(30.0, rel=0.1)
    steps = rng.geometric(rng.beta(8.0, 30.0, size=(200_000, 1))) - 1.0
    yes, no = BetaGeometric().with_defaults(steps)
    assert yes == pytest.approx(8.0, rel=0.1)
    assert no == pytest.approx(30.0, rel=0.1)


@pytest.mark.fast
@every_model
def test_given_hyperparameters_stay(name):
    X = draw(name, np.random.default_rng(10), 12)
    complete = as_model(name).with_defaults(X)
    for field in complete.tunable:
        given = {field: 3.25 * getattr(complete, field)}
        changed = as_model(name, given).with_defaults(X)
        assert getattr(changed, field) == given[field]


@pytest.mark.fast
@every_model
def test_data_without_spread(name):
    X = np.ones((4, 2))
    complete = as_model(name).with_defaults(X)
    complete.check(2)
    assert np.isfinite(log_marginal_likelihood(X, complete))


@pytest.mark.fast
def test_more_columns_than_rows():
    X = np.random.default_rng(11).normal(size=(3, 6))
    X[:, 2] = 1.0
    agree(X, NormalWishart())
    agree(np.random.default_rng(12).normal(size=(1, 10)), NormalWishart())


# Names and invalid input


@pytest.mark.fast
def test_names():
    assert set(NAMES) <= set(registered())
    assert as_model("normal-wishart") == NormalWishart()
    assert as_model(GammaPoisson) == GammaPoisson()
    assert as_model("poisson", GammaPoisson(1.0, 2.0)) == GammaPoisson(1.0, 2.0)
    assert as_model("poisson", {"rate": 2.0}) == GammaPoisson(rate=2.0)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("given_model", "hyperparameters", "error", "message"),
    [
        ("gausian", "data", ValueError, "did you mean 'gaussian'"),
        (3, "data", TypeError, "a name or a record"),
        ("poisson", {"scale": 1.0}, ValueError, "no hyperparameter 'scale': they are 'shape'"),
        ("poisson", 3.0, TypeError, "hyperparameters has to be 'data', 'evidence', a dict"),
        ("poisson", NormalGamma(), ValueError, "are those of the model 'diagonal_gaussian'"),
    ],
)
def test_what_is_no_model(given_model, hyperparameters, error, message):
    with pytest.raises(error, match=message):
        as_model(given_model, hyperparameters)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("record", "message"),
    [
        (GammaPoisson(shape=0.0), "shape has to be positive"),
        (GammaPoisson(shape=[1.0, 2.0]), "shape has to be a number or 3 numbers"),
        (GammaPoisson(rate=[1.0, 2.0, 3.0]), "rate has to be a number, got an array"),
        (DirichletMultinomial(np.inf), "concentration has to be positive and finite"),
        (NormalWishart(degrees=2.0), "degrees has to be more than 2 with 3 columns"),
        (NormalWishart(mean=[0.0, np.nan, 0.0]), "mean contains NaN"),
        (NormalWishart(mean=[0.0]), r"mean has shape \(1,\), expected \(3,\)"),
        (NormalWishart(scale=np.ones((3, 3))), "scale is not positive definite"),
        (NormalWishart(scale=1e-130 * np.eye(3)), "squares of that overflow"),
        (NormalGamma(scale=-1.0), "scale has to be positive"),
        (BetaGeometric(yes=0.0), "yes has to be positive"),
        (VonMisesFisherDirections(mean=[0.0, 0.0, 0.0]), "mean has to be a direction"),
        (VonMisesFisherDirections(mean=[1.0]), r"mean has shape \(1,\), expected \(3,\)"),
        (VonMisesFisherDirections(concentration=0.0), "concentration has to be positive"),
        (NormalGamma(strength=np.nan), "strength has to be positive"),
    ],
    ids=str,
)
def test_wrong_hyperparameters(record, message):
    with pytest.raises(ValueError, match=message):
        log_marginal_likelihood(np.eye(3), record)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("name", "X", "message"),
    [
        ("bernoulli", [[0.0, 0.5], [1.0, 0.0]], "takes zeros and ones: row 0, column 1 is 0.5"),
        ("bernoulli", [[2.0], [1.0]], r"The model 'bernoulli' takes values in \[0, 1\]"),
        ("poisson", [[-1.0], [1.0]], "Negative values in data"),
        ("multinomial", [[0.0, 0.0], [1.0, 2.0]], "needs a positive total"),
        ("gaussian", [[np.nan], [1.0]], "contains NaN"),
        ("geometric", [[0.5], [1.0]], "takes whole numbers: row 0, column 0 is 0.5"),
        ("exponential", [[0.0], [1.0]], r"The model 'exponential' takes values in \(0, inf\)"),
    ],
)
def test_wrong_rows(name, X, message):
    with pytest.raises(ValueError, match=message):
        fastrbhc.bhc_linkage(X, name)


def test_sparse_counts():
    X = draw("poisson", np.random.default_rng(12), 10)
    reference = fastrbhc.bhc_linkage(X, "poisson")
    computed = fastrbhc.bhc_linkage(sparse.csr_array(X), "poisson")
    np.testing.assert_array_equal(computed.heights, reference.heights)


@pytest.mark.fast
def test_a_model_says_what_it_lacks():
    with pytest.raises(
        TypeError, match="has to define with_defaults, check, likelihood, log_base_measure"
    ):
        model("nothing", domain=Domain(), tunable=())(type("Nothing", (tuple,), {}))
