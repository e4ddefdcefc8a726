"""Variances within clusters beside what the family allows, compared with definitions in NumPy."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from fastrbhc import RBHC, linkage
from fastrbhc._table import encoded
from fastrbhc.families import (
    Binomial,
    Domain,
    Gamma,
    LogNormal,
    Multinomial,
    NegativeBinomial,
    Poisson,
    as_family,
    from_phi,
)
from fastrbhc.tree.goodness import goodness_of_clusters


def overdispersed(n=200, seed=0):
    rng = np.random.default_rng(seed)
    size = 5.0
    return np.concatenate([rng.negative_binomial(size, size / (size + m), (n, 3)) for m in (3, 60)])


def two_clusters(X, family):
    """The tree, its labels for two clusters and what is found."""
    tree = linkage(X, family)
    return tree, tree.cut(n_clusters=2), tree.goodness(X, n_clusters=2)


# Ratios


@pytest.mark.parametrize(
    ("family", "variance"),
    [
        (Poisson(), lambda m: m),
        (NegativeBinomial(dispersion=0.2), lambda m: m + 0.2 * m**2),
        (Binomial(trials=500), lambda m: m * (1.0 - m / 500.0)),
    ],
)
def test_ratios_are_variances_over_the_variance_function(family, variance):
    X = overdispersed()
    _, labels, computed = two_clusters(X, family)
    for cluster in (0, 1):
        rows = X[labels == cluster]
        reference = rows.var(axis=0, ddof=1) / variance(rows.mean(axis=0))
        np.testing.assert_allclose(computed.ratios[cluster], reference)
    np.testing.assert_array_equal(computed.sizes, np.bincount(labels))


def test_positive_measurements():
    X = np.random.default_rng(1).gamma(3.0, 2.0, (80, 2))
    _, labels, computed = two_clusters(X, Gamma(shape=3))
    rows = X[labels == 0]
    reference = rows.var(axis=0, ddof=1) / (rows.mean(axis=0) ** 2 / 3.0)
    np.testing.assert_allclose(computed.ratios[0], reference)


def test_a_family_without_a_second_derivative():
    X = np.random.default_rng(2).random((40, 2)) + 0.5
    cubes = from_phi(lambda x: x * x * x, lambda x: 3.0 * x * x, domain=Domain(lower=0.0))
    _, labels, computed = two_clusters(X, cubes)
    rows = X[labels == 0]
    reference = rows.var(axis=0, ddof=1) * 6.0 * rows.mean(axis=0)
    np.testing.assert_allclose(computed.ratios[0], reference, rtol=1e-6)


def test_shares_of_totals():
    rng = np.random.default_rng(3)
    totals = rng.integers(20, 90, 120)
    X = rng.multinomial(totals, [0.2, 0.3, 0.5]).astype(float)
    computed = linkage(X, "multinomial").goodness(X, n_clusters=1)
    shares = X.sum(axis=0) / X.sum()
    expected = totals[:, None] * shares
    reference = ((X - expected) ** 2 / (expected * (1.0 - shares))).sum(axis=0) / 119
    np.testing.assert_allclose(computed.of_columns, reference)
    assert computed.sentences == ()
    assert np.isnan(computed.dispersions).all()


def test_columns_beside_all_clusters():
    X = overdispersed()
    _, labels, computed = two_clusters(X, "poisson")
    groups = [X[labels == cluster] for cluster in (0, 1)]
    within = sum((len(rows) - 1) * rows.var(axis=0, ddof=1) for rows in groups)
    allowed = sum((len(rows) - 1) * rows.mean(axis=0) for rows in groups)
    np.testing.assert_allclose(computed.of_columns, within / allowed)
    assert computed.total == np.median(computed.of_columns)


@pytest.mark.parametrize("family", ["gaussian", "diagonal_gaussian", "auto"])
def test_clusters_with_variances_of_their_own(family):
    X = np.random.default_rng(4).normal(size=(60, 3)) * [1.0, 3.0, 9.0]
    _, labels, computed = two_clusters(X, family)
    variances = np.array([X[labels == cluster].var(axis=0, ddof=1) for cluster in (0, 1)])
    freedom = np.bincount(labels)[:, None] - 1
    pooled = (freedom * variances).sum(axis=0) / freedom.sum()
    np.testing.assert_allclose(computed.ratios, variances / pooled)
    np.testing.assert_allclose(computed.of_columns, 1.0)
    assert "each cluster has its own" in computed.compared_with
    assert computed.sentences == ()


@pytest.mark.parametrize(("family", "g"), [("ward", np.asarray), (LogNormal(), np.log)])
def test_one_variance_for_all_columns(family, g):
    X = np.exp(np.random.default_rng(5).normal(size=(60, 2)) * [1.0, 0.2])
    computed = linkage(X, family).goodness(X, n_clusters=1)
    variances = g(X).var(axis=0)
    np.testing.assert_allclose(computed.of_columns, variances / variances.mean())


def test_zeros_and_ones_vary_as_they_must():
    X = (np.random.default_rng(6).random((90, 3)) < 0.4).astype(float)
    computed = linkage(X, "bernoulli").goodness(X, n_clusters=1)
    np.testing.assert_allclose(computed.ratios, 90 / 89)


# Weights, gaps, sparse rows


@pytest.mark.parametrize("family", ["poisson", "multinomial"])
def test_weights_are_copies(family):
    rows = overdispersed(30) + 1
    weights = np.random.default_rng(7).integers(1, 4, len(rows))
    copies = np.repeat(rows, weights, axis=0)
    reference = linkage(copies, family).goodness(copies, n_clusters=2)
    computed = linkage(rows, family, sample_weight=weights).goodness(rows, n_clusters=2)
    np.testing.assert_allclose(computed.ratios, reference.ratios)
    np.testing.assert_array_equal(computed.sizes, reference.sizes)


@pytest.mark.parametrize("family", ["poisson", "multinomial", Multinomial(weight_by_total=False)])
def test_sparse_rows(family):
    rng = np.random.default_rng(8)
    X = sparse.random_array((1_200, 1_000), density=0.02, format="csr", rng=rng)
    X.data = rng.poisson(2.0, X.data.size) + 1.0
    tree = linkage(X, family)
    reference = tree.goodness(X.toarray(), n_clusters=3)
    computed = tree.goodness(X, n_clusters=3)
    np.testing.assert_allclose(computed.ratios, reference.ratios, rtol=1e-9)
    np.testing.assert_allclose(computed.shrunk, reference.shrunk, rtol=1e-9)


def test_single_rows_and_zeros_say_nothing():
    X = np.array([[0.0, 3.0], [0.0, 5.0], [0.0, 4.0], [900.0, 0.0]])
    computed = linkage(X, "poisson").goodness(X, n_clusters=2)
    assert np.isnan(computed.ratios[1]).all()
    assert np.isnan(computed.ratios[0, 0])
    assert computed.ratios[0, 1] == pytest.approx(0.25)
    assert computed.few.tolist() == [True, True]
    assert computed.shrunk[1, 1] == computed.of_columns[1]
    assert "–" in str(computed)
    assert "? fewer than 5 rows" in str(computed)


# Words


def test_a_poisson_that_is_overdispersed():
    X = overdispersed()
    _, _, computed = two_clusters(X, "poisson")
    assert (computed.of_columns > 5.0).all()
    (sentence,) = computed.sentences
    assert sentence.startswith("3 of 3 columns vary within clusters at least 3 times as much")
    dispersion = float(sentence.split("NegativeBinomial(dispersion=")[1].split(")")[0])
    assert dispersion == pytest.approx(0.2, rel=0.3)
    assert str(computed).endswith(f"{sentence}.")
    suited = linkage(X, NegativeBinomial(dispersion)).goodness(X, n_clusters=2)
    assert suited.sentences == ()


def test_a_multinomial_that_is_overdispersed():
    rng = np.random.default_rng(9)
    X = np.array([rng.multinomial(80, shares) for shares in rng.dirichlet([3, 3, 3], 100)])
    (sentence,) = linkage(X, "multinomial").goodness(X, n_clusters=1).sentences
    assert "Multinomial(weight_by_total=False)" in sentence


def test_nothing_to_say_about_counts_of_the_family():
    X = np.random.default_rng(10).poisson(6.0, (200, 3))
    assert linkage(X, "poisson").goodness(X, n_clusters=1).sentences == ()


def test_the_table():
    pytest.importorskip("pandas")
    X = overdispersed()
    _, _, computed = two_clusters(X, "poisson")
    frame = computed.to_pandas()
    assert frame.index.tolist() == [0, 1, "all"]
    assert frame.columns.tolist() == ["size", "few", "x0", "x1", "x2"]
    np.testing.assert_array_equal(frame.loc["all", ["x0", "x1", "x2"]], computed.of_columns)
    assert "<pre>" in computed._repr_html_()


def test_only_the_columns_that_vary_most_are_printed():
    X = np.random.default_rng(11).poisson(3.0, (40, 12))
    X[:, 7] *= 10
    text = str(linkage(X, "poisson").goodness(X, n_clusters=1))
    assert text.split()[2] == "x7"
    assert "4 more columns vary less." in text


# Cuts


def test_names_and_the_cut_of_the_tree():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(overdispersed(), columns=["a", "b", "c"])
    tree = linkage(frame, "poisson", threshold="gap")
    computed = tree.goodness(frame)
    assert computed.names == ("a", "b", "c")
    assert len(computed.sizes) == tree.n_trees
    assert tree.goodness(frame.to_numpy(), family="ward").names == ("a", "b", "c")
    with pytest.raises(ValueError, match="X has 3 rows and the tree has 400"):
        tree.goodness(frame[:3])


def test_the_estimator_has_the_same():
    X = overdispersed()
    model = RBHC("poisson", n_clusters=2).fit(X)
    reference = model.dendrogram_.goodness(X, n_clusters=2)
    np.testing.assert_array_equal(model.goodness(X).ratios, reference.ratios)
    with pytest.raises(ValueError, match="X has 3 rows and the fit had 400"):
        model.goodness(X[:3])


def test_blocks_of_a_product_are_judged_by_their_own_families():
    rng = np.random.default_rng(11)
    table = pd.DataFrame(
        {
            "id": np.arange(200),
            "orders": rng.negative_binomial(1, 1 / 21, 200),  # mean 20, variance 420
            "colour": rng.choice(list("abc"), 200),
            "age": rng.normal(40.0, 5.0, 200),
        }
    )
    labels = np.arange(200) % 2
    family = {"ward": ["age"], "categorical": ["colour"], "poisson": ["orders"], "ignore": ["id"]}
    tree = linkage(table, family)
    computed = goodness_of_clusters(
        tree.family, encoded(table, tree.family), labels, np.ones(200), table.columns
    )
    assert computed.names == ("orders", "colour", "age")
    for column, name in ((0, "poisson"), (2, "ward")):
        part = table[[computed.names[column]]].to_numpy(float)
        alone = goodness_of_clusters(as_family(name), part, labels, np.ones(200))
        np.testing.assert_array_equal(computed.ratios[:, column], alone.ratios[:, 0])
        assert computed.of_columns[column] == alone.of_columns[0]
    assert np.isnan(computed.ratios[:, 1]).all()
    (sentence,) = computed.sentences
    assert "'orders'" in sentence
    assert "'poisson'" in sentence
