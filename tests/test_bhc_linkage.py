"""Trees: against the textbook, against all partitions, and with ties."""

from __future__ import annotations

import math

import naive_bhc
import numpy as np
import pytest
from scipy.special import expit
from test_bhc_models import NAMES, draw, every_model
from trees import leaf_sets

import fastrbhc
from fastrbhc.bhc import GammaPoisson, NormalWishart, as_model
from fastrbhc.bhc._linkage import build

ALPHAS = [0.1, 1.0, 20.0]


def distinct(name, rng, n):
    """Rows without two pairs at the same odds, as far as the model allows."""
    if name == "poisson":
        return rng.integers(0, 400, (n, 2)) + rng.random((n, 2))
    if name == "multinomial":
        return rng.gamma(0.5, 20.0, (n, 3))
    if name == "geometric":
        return np.floor(10.0 ** rng.uniform(0.0, 3.5, (n, 2)))
    return draw(name, rng, n, 2)


# Against the textbook


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bernoulli"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_tree_of_the_textbook(name, alpha):
    X = distinct(name, np.random.default_rng(0), 14)
    record = as_model(name).with_defaults(X)
    merges, odds, hypotheses, trees = naive_bhc.tree(X, record, math.log(alpha))
    tree = fastrbhc.bhc_linkage(X, record, alpha)
    np.testing.assert_array_equal(tree.merges, merges)
    np.testing.assert_allclose(tree.log_odds, odds, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(tree.log_hypotheses, hypotheses, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(tree.log_trees, trees, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(tree.probabilities, expit(odds), rtol=1e-8)


def certify(tree, X, record, log_alpha):
    """Every merge has the largest odds of all pairs, up to rounding."""
    groups = naive_bhc.Groups(X, record)
    alive = {i: ((i,), log_alpha + groups.log_marginal([i])) for i in range(len(X))}
    for row, (a, b) in enumerate(tree.merges.tolist()):
        odds = {}
        for u in alive:
            for v in alive:
                if u < v:
                    members = alive[u][0] + alive[v][0]
                    together = log_alpha + math.lgamma(len(members)) + groups.log_marginal(members)
                    odds[u, v] = together - alive[u][1] - alive[v][1]
        assert odds[a, b] == pytest.approx(max(odds.values()), rel=1e-9, abs=1e-9), row
        assert tree.log_odds[row] == pytest.approx(odds[a, b], rel=1e-9, abs=1e-9), row
        members = alive[a][0] + alive[b][0]
        apart = alive.pop(a)[1] + alive.pop(b)[1]
        alive[tree.n_leaves + row] = members, apart + np.logaddexp(0.0, odds[a, b])


@every_model
def test_greedy_with_ties(name):
    rng = np.random.default_rng(1)
    X = np.round(draw(name, rng, 9, 2)).repeat(rng.integers(1, 4, 9), axis=0)
    X += name == "exponential"  # of which no value is 0
    X[~X.any(axis=1), 0] = 1.0  # for a direction in every row
    record = as_model(name).with_defaults(X)
    certify(fastrbhc.bhc_linkage(X, record, 0.7), X, record, math.log(0.7))


def test_copies_need_not_be_merged_first():
    X = np.array([[1.0], [1.0], [60.0], [70.0]])
    tree = fastrbhc.bhc_linkage(X, NormalWishart(0.0, 1.0, 4.0, scale=[[1.0]]))
    assert tree.merges[0].tolist() == [2, 3]
    certify(tree, X, NormalWishart(0.0, 1.0, 4.0, None, [[1.0]]), 0.0)


# Against all partitions


@every_model
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [2, 5, 8])
def test_evidence_is_the_sum_over_the_tree_and_a_bound_of_the_sum_over_all(name, alpha, n):
    X = draw(name, np.random.default_rng(n), n, 2)
    record = as_model(name).with_defaults(X)
    tree = fastrbhc.bhc_linkage(X, record, alpha)
    groups = naive_bhc.Groups(X, record)
    of_tree = naive_bhc.tree_partitions(tree.merges, n)
    everything = list(naive_bhc.partitions(list(range(n))))
    reference = naive_bhc.log_evidence(of_tree, groups, math.log(alpha), n)
    whole = naive_bhc.log_evidence(everything, groups, math.log(alpha), n)
    assert tree.log_evidence == pytest.approx(reference, rel=1e-10)
    assert tree.log_evidence <= whole + 1e-10 * abs(whole)
    if n == 2:
        assert tree.log_evidence == pytest.approx(whole, rel=1e-10)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gamma_is_the_evidence_without_data(alpha):
    X = draw("poisson", np.random.default_rng(3), 8)
    tree = fastrbhc.bhc_linkage(X, "poisson", alpha)
    partitions = naive_bhc.tree_partitions(tree.merges, 8)
    reference = sum(
        math.prod(alpha * math.gamma(len(cluster)) for cluster in partition)
        for partition in partitions
    )
    assert math.exp(tree.log_gammas[-1]) == pytest.approx(reference, rel=1e-12)


# Invariance of the tree


@every_model
def test_tree_depends_on_values_alone(name):
    rng = np.random.default_rng(4)
    X, order = draw(name, rng, 60), rng.permutation(60)
    reference = fastrbhc.bhc_linkage(X, name)
    shuffled = fastrbhc.bhc_linkage(np.asfortranarray(X[order]), name)
    np.testing.assert_array_equal(shuffled.heights, reference.heights)
    assert shuffled.log_evidence == pytest.approx(reference.log_evidence, rel=1e-14)
    if name in {"gaussian", "diagonal_gaussian"}:  # otherwise copies are interchangeable
        sets = [frozenset(order[list(leaves)].tolist()) for leaves in leaf_sets(shuffled)]
        assert sets == leaf_sets(reference)


@pytest.mark.parametrize("name", ["poisson", "gaussian", "diagonal_gaussian"])
def test_tree_does_not_depend_on_threads(name):
    X = draw(name, np.random.default_rng(5), 700)
    one, two = (fastrbhc.bhc_linkage(X, name, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.merges, two.merges)
    np.testing.assert_array_equal(one.heights, two.heights)


@pytest.mark.parametrize("name", ["gaussian", "diagonal_gaussian"])
def test_many_columns(name):
    X = draw(name, np.random.default_rng(6), 10, 11)  # more than eight: along principal axes
    record = as_model(name).with_defaults(X)
    certify(fastrbhc.bhc_linkage(X, record), X, record, 0.0)


# The small-variance limit


def scaled(name, X, beta):
    """Rows and model of the scaled exponential family (Lee & Choi 2015, section 2.6).

    Scaling by β means to count everything β times, with an exposure of β. The prior of a Poisson
    rate that is β times as large has 1/β of its rate parameter; the prior of proportions stays the
    same.
    """
    if name == "poisson":
        return X * beta, GammaPoisson(2.0, 0.5 / beta)
    return X * beta, as_model("multinomial", {"concentration": 1.5})


@pytest.mark.parametrize("name", ["poisson", "multinomial"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_small_variance_limit(name, seed):
    X = np.random.default_rng(seed).gamma(1.0, 10.0, size=(25, 3))
    family = getattr(fastrbhc.families, name.capitalize())(smoothing=0.0)
    relaxed = fastrbhc.linkage(X, family, algorithm="greedy")
    threshold = float(relaxed.heights[14] + relaxed.heights[15]) / 2.0
    below = int(np.count_nonzero(relaxed.levels < threshold))
    assert 10 <= below < 24
    agreeing, off = [], []
    for beta in (1e2, 1e4, 1e6, 1e8):
        rows, model = scaled(name, X, beta)
        tree = build(rows, model, -1.5 * math.log(beta) - beta * threshold, 1)
        equal = (tree.merges[:below] == relaxed.merges[:below]).all(axis=1)
        agreeing.append(int(np.cumprod(equal).sum()))
        implied = threshold + tree.heights[:below] / beta
        off.append(np.abs(implied - relaxed.heights[:below]).max() / threshold)
    # In the end the merges below λ are the same, in the same order, and so is the cut.
    assert agreeing == sorted(agreeing)
    assert agreeing[-1] == below
    np.testing.assert_array_equal(tree.cut(threshold=0.0), relaxed.cut(threshold=threshold))
    np.testing.assert_array_equal(tree.cut(), relaxed.cut(threshold=threshold))
    assert off[3] < 0.05 * off[2]
    assert off[3] < 1e-5


def test_a_tree_that_is_not_finite():
    X = np.array([[1.0], [2.0], [4.0]])
    with pytest.raises(
        ValueError, match="marginal likelihood of the model 'poisson' is not finite"
    ):
        fastrbhc.bhc_linkage(X, GammaPoisson(1e308, 1e-308))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alpha": 0.0}, ValueError, "alpha has to be positive and finite"),
        ({"alpha": "data"}, ValueError, "alpha, if not a number, has to be one of 'evidence'"),
        ({"alpha": True}, TypeError, "alpha has to be a number"),
        ({"hyperparameters": "guess"}, ValueError, "has to be one of 'data', 'evidence'"),
        ({"n_jobs": 0}, ValueError, "n_jobs has to be positive"),
    ],
)
def test_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        fastrbhc.bhc_linkage(np.eye(3), **options)


def test_too_few_rows():
    with pytest.raises(ValueError, match=r"minimum of 2 is required"):
        fastrbhc.bhc_linkage([[1.0, 2.0]])
