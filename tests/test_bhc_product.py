"""Products of Bayesian models."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import fastrbhc
from fastrbhc.bhc import BHC, GammaPoisson, ProductOfModels, bhc_linkage, log_marginal_likelihood

BLOCKS = {"poisson": [0], "gaussian": [1, 2], "bernoulli": [3]}


def mixed(n, seed=0):
    """Rows of three kinds."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    return np.column_stack(
        [
            rng.poisson(np.array([2, 10, 30])[kind]),
            rng.normal(np.array([0, 5, 0])[kind], 1.0),
            rng.normal(size=n),
            rng.random(n) < np.array([0.1, 0.9, 0.5])[kind],
        ]
    ).astype(float)


def test_the_marginal_likelihood_is_the_product_over_the_blocks():
    X = mixed(30)
    reference = sum(log_marginal_likelihood(X[:, k], name) for name, k in BLOCKS.items())
    assert log_marginal_likelihood(X, BLOCKS) == pytest.approx(reference, rel=1e-13)


def greedy_by_definition(X, model, log_alpha):
    """Heights of the tree: at every step the merge of the largest posterior odds."""

    def joint(members):
        # log α Γ(n) p(X_c)
        return log_alpha + float(gammaln(len(members))) + log_marginal_likelihood(X[members], model)

    alive = {(i,): joint([i]) for i in range(len(X))}
    heights = []
    while len(alive) > 1:
        pairs = [(a, b) for a in alive for b in alive if a < b]
        odds = {
            pair: alive[pair[0]] + alive[pair[1]] - joint([*pair[0], *pair[1]]) for pair in pairs
        }
        a, b = min(odds, key=odds.get)
        heights.append(odds[a, b])
        apart = alive.pop(a) + alive.pop(b)
        alive[tuple(sorted(a + b))] = np.logaddexp(apart, apart - heights[-1])
    return np.array(heights)


def test_trees_are_those_of_the_definition():
    X = mixed(11, 1)
    tree = bhc_linkage(X, BLOCKS, alpha=0.7)
    reference = greedy_by_definition(X, tree.model, math.log(0.7))
    np.testing.assert_allclose(tree.heights, reference, rtol=1e-9, atol=1e-9)


def test_one_block_is_its_model():
    X = mixed(40, 2)[:, [1, 2]]
    found, reference = bhc_linkage(X, {"gaussian": [0, 1]}), bhc_linkage(X, "gaussian")
    np.testing.assert_array_equal(found.heights, reference.heights)


def test_the_estimator():
    X = mixed(90, 3)
    model = BHC(BLOCKS).fit(X)
    assert model.n_clusters_ == 3
    assert (model.predict(X) == model.labels_).mean() > 0.95
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples(X)).all()


def test_names_records_and_columns_left_out():
    X = mixed(40, 4)
    frame = pd.DataFrame(X, columns=["visits", "age", "income", "member"]).assign(id="text")
    blocks = {
        GammaPoisson(shape=2.0): ["visits"],
        "gaussian": ["age", "income"],
        "bernoulli": ["member"],
        "ignore": ["id"],
    }
    tree = bhc_linkage(frame, blocks)
    reference = bhc_linkage(X, {GammaPoisson(shape=2.0): [0], "gaussian": [1, 2], "bernoulli": [3]})
    # Rows are in another order, and so are the sums behind the defaults.
    np.testing.assert_allclose(tree.heights, reference.heights, rtol=1e-10)
    assert tree.model.blocks[0].model.shape == 2.0
    assert tree.feature_names == ("visits", "age", "income", "member", "id")


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({"poisson": [0]}, "no block has column 1"),
        ({"poisson": [0, 1, 2, 3]}, "[Nn]egative values|poisson"),
        ({"poisson": [0], "ignore": [1, 2, 3]}, "that model of the other columns"),
        ({}, "no block has|at least one block"),
        ({ProductOfModels((("poisson", (0,)),)): slice(None)}, "cannot be a block of another"),
    ],
    ids=str,
)
def test_what_is_wrong_with_blocks(blocks, message):
    with pytest.raises(ValueError, match=message):
        fastrbhc.bhc_linkage(mixed(12), blocks)
