"""Clusters as a table, against the rows themselves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from strategies import wide_counts
from trees import forest_with_ties

from fastrbhc import RBHC, dissimilarity, linkage


def rows(seed=0, n=40):
    return np.random.default_rng(seed).poisson([[3, 9, 1], [20, 4, 8]], (n, 2, 3)).reshape(-1, 3)


def merging_cost(X, family):
    """The cost of joining rows one by one: the sum of d does not depend on the order."""
    return sum(dissimilarity(X[:i], X[i : i + 1], family) for i in range(1, len(X)))


@pytest.mark.parametrize("family", ["ward", "poisson", "multinomial", "gaussian"])
def test_clusters_of_a_model(family):
    X = rows()[:24]
    model = RBHC(family, n_clusters=3).fit(X)
    frame = model.summary()
    assert frame.index.tolist() == [0, 1, 2]
    for cluster, row in frame.iterrows():
        inside = np.flatnonzero(model.labels_ == cluster)
        assert row["size"] == inside.size
        assert model.dendrogram_.members(int(row["node"])).tolist() == inside.tolist()
        if family == "multinomial":
            assert row["weight"] == X[inside].sum()
            mean = X[inside].sum(axis=0) / X[inside].sum()
        else:
            assert row["weight"] == inside.size
            mean = X[inside].mean(axis=0)
        np.testing.assert_allclose(row[["mean_x0", "mean_x1", "mean_x2"]], mean, rtol=1e-12)
        assert row["cost"] == pytest.approx(merging_cost(X[inside], family), rel=1e-9)
    assert frame["level"].max() < model.threshold_


@pytest.mark.parametrize("family", ["poisson", "multinomial"])
def test_a_tree_and_its_rows_tell_the_same_as_a_model(family):
    X, weights = rows(1), np.random.default_rng(1).integers(1, 5, 80)
    model = RBHC(family, n_clusters=4).fit(X, sample_weight=weights)
    tree = linkage(X, family, sample_weight=weights)
    reference = model.summary()
    pd.testing.assert_frame_equal(reference, tree.summary(X, n_clusters=4))
    pd.testing.assert_frame_equal(reference, model.dendrogram_.summary(X))
    given = linkage(X, "ward", sample_weight=weights).summary(X, n_clusters=4, family=family)
    assert given["weight"].sum() == pytest.approx(reference["weight"].sum())


def test_a_tree_that_does_not_remember_its_family_asks_for_it():
    X = rows()
    tree = dataclasses.replace(linkage(X, "poisson"), origin=None)
    with pytest.raises(ValueError, match="does not remember its family: give family="):
        tree.summary(X, n_clusters=2)
    reference = linkage(X, "poisson").summary(X, n_clusters=2)
    pd.testing.assert_frame_equal(tree.summary(X, n_clusters=2, family="poisson"), reference)
    assert len(tree.summary(n_clusters=2)) == 2


def test_names_of_columns_are_those_of_the_tree():
    frame = pd.DataFrame(rows(), columns=["a", "b", "c"])
    tree = linkage(frame, "poisson")
    by_tree = tree.summary(frame.to_numpy(), n_clusters=2).columns[-3:].tolist()
    assert by_tree == ["mean_a", "mean_b", "mean_c"]
    others = tree.summary(frame.to_numpy()[:, :2], n_clusters=2)
    assert others.columns[-2:].tolist() == ["mean_x0", "mean_x1"]


def test_names_of_columns():
    frame = pd.DataFrame(rows(), columns=["a", "weight", "a b"])
    model = RBHC("poisson", n_clusters=2).fit(frame)
    names = ["mean_a", "mean_weight", "mean_a b"]
    assert model.summary().columns[-3:].tolist() == names
    assert model.dendrogram_.summary(frame, n_clusters=2).columns[-3:].tolist() == names


def test_trees_of_a_forest_by_default():
    tree = forest_with_ties()
    frame = tree.summary()
    assert frame["size"].tolist() == [1, 2, 4]
    assert frame["weight"].tolist() == [5.0, 4.0, 4.0]
    assert frame["cost"].sum() == pytest.approx(tree.heights.sum())
    assert frame["level"].tolist() == [0.0, tree.heights[2], 12.5]
    assert frame["node"].iloc[0] == 6
    assert len(tree.summary(threshold=0.3)) == 5


def test_rows_without_weight_have_no_mean_of_their_own():
    X = [[0.0], [1.0], [9.0]]
    model = RBHC("ward", n_clusters=3).fit(X, sample_weight=[1.0, 1.0, 0.0])
    frame = model.summary()
    assert frame["weight"].tolist() == [1.0, 1.0, 0.0]
    assert np.isnan(frame["mean_x0"].iloc[2])
    assert np.isnan(model.dendrogram_.summary(X, n_clusters=3)["mean_x0"]).sum() == 1


def test_what_does_not_fit():
    tree = linkage([[0.0], [1.0], [5.0]], "ward")
    with pytest.raises(ValueError, match="X has 2 rows and the tree has 3"):
        tree.summary([[0.0], [1.0]], n_clusters=2)
    with pytest.raises(NotFittedError):
        RBHC().summary()


# Many columns


def tables_of_words(family, n=90, d=20_000, seed=0, **options):
    """The summary of sparse rows, and that of the same rows made dense."""
    X = wide_counts(family, n, d, seed)
    tree = linkage(X, family)
    for rows in (X, X.toarray()):
        yield tree.summary(rows, n_clusters=3, **options)


@pytest.mark.parametrize("family", ["poisson", "multinomial", "bernoulli"])
def test_sparse_rows_have_the_table_of_dense_ones(family):
    X = wide_counts(family, 90, 20_000, 0)
    computed, reference = tables_of_words(family)
    pd.testing.assert_frame_equal(computed, reference, rtol=1e-9)
    model = RBHC(family, n_clusters=3).fit(X)
    pd.testing.assert_frame_equal(model.summary(), reference, rtol=1e-9)
    assert list(reference.columns) == [
        "node", "size", "weight", "level", "cost", "apart", "top_share", "more_of", "less_of",
    ]  # fmt: skip
    labels = model.labels_
    for cluster in range(3):
        d = dissimilarity(X[labels == cluster], X[labels != cluster], family)
        assert reference["apart"][cluster] == pytest.approx(d, rel=1e-9)


@pytest.mark.parametrize("family", ["ward", "poisson", "diagonal_gaussian", "gaussian"])
def test_columns_are_named_by_their_terms_in_d(family):
    rng = np.random.default_rng(4)
    X = rng.poisson(4.0, (30, 51)).astype(float)
    X[:10] += rng.poisson(np.linspace(0.0, 9.0, 51), (10, 51))
    X[:10, 20] *= 9.0
    X[:10, 30] *= 0.1
    frame = pd.DataFrame(X, columns=[f"word{j}" for j in range(51)])
    model = RBHC(family, n_clusters=3).fit(frame)
    table = model.summary(n_top=7)
    for cluster in range(3):
        own = model.labels_ == cluster
        terms = [dissimilarity(X[own, j : j + 1], X[~own, j : j + 1], family) for j in range(51)]
        more = X[own].mean(axis=0) > X[~own].mean(axis=0)
        top = np.argsort(terms)[::-1][:7]
        for column, expected in (("more_of", top[more[top]]), ("less_of", top[~more[top]])):
            names = [text.split()[0] for text in table[column][cluster].split(", ") if text]
            assert names == [f"word{j}" for j in expected]
        share = np.sort(terms)[::-1][:7].sum() / np.sum(terms)
        assert table["top_share"][cluster] == pytest.approx(share)
        d = dissimilarity(X[own], X[~own], family)
        assert table["apart"][cluster] == pytest.approx(d, rel=1e-9)
        if family != "gaussian":  # whose columns vary together
            assert np.sum(terms) == pytest.approx(d, rel=1e-9)
    pd.testing.assert_frame_equal(table, model.dendrogram_.summary(X, n_top=7))


def test_ratios_and_differences():
    X = np.ones((4, 60))
    X[:2, 7], X[2:, 7] = 30.0, 0.0
    X[:2, 8] = 0.25
    table = RBHC("poisson", n_clusters=2).fit(X).summary(n_top=2)
    assert table["more_of"].tolist() == ["x7 only here", "x8 4×"]
    assert table["less_of"].tolist() == ["x8 0.25×", "x7 0×"]
    table = RBHC("ward", n_clusters=2).fit(X).summary(n_top=2)
    assert table["more_of"].tolist() == ["x7 +30", "x8 +0.75"]
    assert table["less_of"].tolist() == ["x8 -0.75", "x7 -30"]


def test_one_cluster_and_clusters_without_weight_have_nothing_to_tell():
    X = np.random.default_rng(5).poisson(3.0, (6, 60))
    table = linkage(X, "poisson").summary(X, n_clusters=1)
    assert table["apart"].tolist() == [0.0]
    assert table["more_of"].tolist() == table["less_of"].tolist() == [""]
    model = RBHC("poisson", n_clusters=6).fit(X, sample_weight=[1, 1, 1, 1, 1, 0])
    table = model.summary()
    assert (table["more_of"] == "").sum() == 1
    with pytest.raises(ValueError, match="n_top has to be at least 1"):
        model.summary(n_top=-1)


@pytest.mark.parametrize("layout", [sparse.csr_array, np.asarray])
def test_means_or_names_on_demand(layout):
    X = wide_counts("multinomial", 90, 20_000, 0).toarray()
    tree = linkage(X, "multinomial")
    labels = tree.cut(n_clusters=3)
    table = tree.summary(layout(X), n_clusters=3, n_top=0)
    sums = np.array([X[labels == cluster].sum(axis=0) for cluster in range(3)])
    reference = sums / sums.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(table.filter(like="mean_"), reference, rtol=1e-12)
    few = RBHC("multinomial", n_clusters=3).fit(layout(X[:, :40] + 1.0))
    assert "mean_x39" in few.summary()
    assert few.summary(n_top=2)["top_share"].between(0.0, 1.0).all()


def test_few_columns_of_sparse_rows_have_means():
    X = np.random.default_rng(6).poisson(0.3, (40, 20)) + np.eye(40, 20)
    reference = RBHC("poisson", n_clusters=3).fit(X).summary()
    model = RBHC("poisson", n_clusters=3, neighbors="inverted").fit(sparse.csr_array(X))
    pd.testing.assert_frame_equal(model.summary(), reference)
    many = sparse.csr_array(np.tile(X, (1_400, 1)))  # stays sparse
    tree = linkage(many, "poisson")
    pd.testing.assert_frame_equal(
        tree.summary(many, n_clusters=3), tree.summary(many.toarray(), n_clusters=3)
    )
