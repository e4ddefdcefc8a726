"""Clusters as a table, against the rows themselves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
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
