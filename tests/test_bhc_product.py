"""Products of Bayesian models."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import fastrbhc
from fastrbhc.bhc import (
    BHC,
    DirichletCategorical,
    GammaPoisson,
    ProductOfModels,
    bhc_linkage,
    log_marginal_likelihood,
)

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


def test_one_block_of_some_columns_is_its_model_of_these():
    X = mixed(40, 5)
    found = bhc_linkage(X, {"gaussian": [2, 1], "ignore": [0, 3]})
    reference = bhc_linkage(np.ascontiguousarray(X[:, [2, 1]]), "gaussian")
    # Rows are in another order, and so are the sums behind the defaults.
    np.testing.assert_allclose(found.heights, reference.heights, rtol=1e-10)
    model = BHC({"gaussian": [2, 1], "ignore": [0, 3]}).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.predict(X * [7.0, 1.0, 1.0, 0.0]))


def categories(n, seed=0):
    """Text in two columns, of three kinds of rows."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    country = np.array(["FR", "DE", "IT"])[(kind + (rng.random(n) < 0.1)) % 3]
    answer = np.where(rng.random(n) < np.array([0.1, 0.9, 0.5])[kind], "yes", "no")
    return np.column_stack([country, answer]).astype(object)


def log_marginal_of_levels(X, levels, a):
    """By the definition."""
    value = 0.0
    for column, names in zip(X.T, levels, strict=True):
        total = a * len(names)
        value += gammaln(total) - gammaln(total + len(column))
        value += sum(gammaln(a + (column == name).sum()) - gammaln(a) for name in names)
    return value


def test_the_marginal_likelihood_of_categories():
    X = categories(20)
    levels = (("DE", "FR", "IT"), ("no", "yes"))
    for model, a in (("categorical", 1.0), (DirichletCategorical(0.3), 0.3)):
        reference = log_marginal_of_levels(X, levels, a)
        assert log_marginal_likelihood(X, model) == pytest.approx(reference, rel=1e-13)
    assert bhc_linkage(X, "categorical").model == DirichletCategorical(1.0, levels)


def test_categories_are_blocks():
    X, text = mixed(60, 6), categories(60, 6)
    frame = pd.DataFrame({"visits": X[:, 0], "country": text[:, 0], "answer": text[:, 1]})
    blocks = {"poisson": ["visits"], "categorical": ["country", "answer"]}
    reference = log_marginal_likelihood(X[:, [0]], "poisson")
    reference += log_marginal_likelihood(text, "categorical")
    assert log_marginal_likelihood(frame, blocks) == pytest.approx(reference, rel=1e-13)
    model = BHC(blocks).fit(frame)
    assert model.n_clusters_ == 3
    assert (model.predict(frame) == model.labels_).mean() > 0.9
    new = frame.head(1).assign(country="ES")  # a level that the fit did not see
    assert np.isfinite(model.score_samples(new)).all()


def test_trees_of_categories_are_those_of_the_definition():
    X = np.column_stack([mixed(9, 7)[:, 1], categories(9, 7)]).astype(object)  # without ties
    tree = bhc_linkage(X, {"diagonal_gaussian": [0], "categorical": [1, 2]}, alpha=0.7)
    reference = greedy_by_definition(X, tree.model, math.log(0.7))
    np.testing.assert_allclose(tree.heights, reference, rtol=1e-9, atol=1e-9)


def test_evidence_of_the_hyperparameters_of_blocks():
    X = mixed(60, 8)
    blocks = {GammaPoisson(rate=0.2): [0], "gaussian": [1, 2], "bernoulli": [3]}
    start = bhc_linkage(X, blocks)
    found = bhc_linkage(X, blocks, hyperparameters="evidence", random_state=0)
    assert found.log_evidence > start.log_evidence + 1.0
    before, after = ([block.model for block in tree.model.blocks] for tree in (start, found))
    assert after[0].rate == 0.2  # as it was given
    assert after[0].shape != before[0].shape
    assert after[2].yes != before[2].yes


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
        ({}, "no block has|at least one block"),
        ({ProductOfModels((("poisson", (0,)),)): slice(None)}, "cannot be a block of another"),
    ],
    ids=str,
)
def test_what_is_wrong_with_blocks(blocks, message):
    with pytest.raises(ValueError, match=message):
        fastrbhc.bhc_linkage(mixed(12), blocks)
