"""A smoothing that is derived from the rows."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from trees import same_tree

import fastrbhc
from fastrbhc import RBHC, Dendrogram, dissimilarity, linkage
from fastrbhc._options import LinkageOptions
from fastrbhc.families import Gaussian, as_family
from fastrbhc.families._scaling import SHARES, centre_and_scale
from fastrbhc.selection.held_out import predictions
from fastrbhc.selection.smoothing import resolve

AUTO = Gaussian(smoothing="auto")


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [1.0, 5.0, 0.2] + 9.0 * (np.arange(n) % 2)[:, None]


def grid(n=120, seed=0):
    """Rows with many ties, and many copies."""
    return 0.1 * np.random.default_rng(seed).integers(0, 7, (n, 2))


# What is chosen


def test_of_three_shares_the_one_that_predicts_best():
    X = rows()
    options = LinkageOptions().checked(AUTO)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    candidates = [Gaussian(share, tuple(centre), tuple(scale)) for share in SHARES]
    best = [found.log_likelihoods.max() for found in predictions(candidates, X, None, options)]
    family, prediction = resolve(AUTO, X, None, options)
    assert family.smoothing == SHARES[int(np.argmax(best))]
    np.testing.assert_allclose(family.centre, centre, rtol=1e-12)
    np.testing.assert_allclose(family.scale, scale, rtol=1e-12)
    assert prediction.log_likelihoods.max() == pytest.approx(max(best), rel=1e-9)


def test_numbers_that_are_given_stay():
    assert resolve(Gaussian(0.3), rows(), None, LinkageOptions().checked(AUTO)) == (
        Gaussian(0.3),
        None,
    )


def test_the_tree_is_that_of_scaled_rows():
    X = rows()
    tree = linkage(X, AUTO)
    scaled = (X - np.array(tree.family.centre)) / np.array(tree.family.scale)
    assert same_tree(tree, linkage(scaled, Gaussian(tree.family.smoothing)))


def test_it_is_the_default():
    assert as_family("auto") == AUTO
    assert linkage(rows()).family == linkage(rows(), AUTO).family == RBHC().fit(rows())._family
    assert as_family("gaussian") == Gaussian(0.01)


def test_centre_and_scale():
    X, weights = rows(), np.arange(1.0, 121.0)
    centre, scale = centre_and_scale(X, weights)
    means = np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(centre, means, rtol=1e-12)
    np.testing.assert_allclose(
        scale, np.sqrt(np.average((X - means) ** 2, axis=0, weights=weights)), rtol=1e-12
    )
    assert centre_and_scale(np.full((5, 1), 0.1), None) == ((0.1,), (1.0,))
    tiny, weight_zero = np.array([[1e-110], [3e-110], [9.0]]), np.array([1.0, 1.0, 0.0])
    np.testing.assert_allclose(centre_and_scale(tiny, weight_zero), [[2e-110], [1e-110]])
    smallest, one_row = np.array([[1e-318], [3e-318]]), np.array([1e-30, 1.0])
    assert centre_and_scale(smallest, one_row)[1] == (1.0,)  # a deviation that underflows


def apart_in_one(n=400, seed=0):
    """Five clusters in one column, 12 standard deviations apart, and two columns without any."""
    rng, labels = np.random.default_rng(seed), np.arange(n) % 5
    return rng.normal(size=(n, 3)) + np.outer(12.0 * labels, [1.0, 0.0, 0.0]), labels


def test_clusters_in_one_column_of_several_are_found():
    X, labels = apart_in_one()
    model = RBHC().fit(X)
    _, reference = centre_and_scale(X, None)
    np.testing.assert_allclose(model._family.scale[1:], reference[1:])
    assert reference[0] / 4.0 < model._family.scale[0] < reference[0] / 2.0
    assert adjusted_rand_score(labels, model.labels_) > 0.95
    other = RBHC().fit(X * [1e3, 0.1, 7.0] + [5.0, 0.0, -1.0])
    np.testing.assert_array_equal(other.labels_, model.labels_)


@pytest.mark.parametrize("draw", ["normal", "uniform", "exponential", "standard_cauchy"])
def test_columns_with_one_mode_keep_their_scale(draw):
    X = getattr(np.random.default_rng(0), draw)(size=(300, 4))
    assert len(AUTO.candidates(X, None)) == len(SHARES)


# What does not matter


@pytest.mark.parametrize(
    ("factor", "origin"),
    [(1_000.0, 0.0), (1.0, 5.0), ([1e-3, 7.0, 1e6], 0.0), ([2.0, 0.3, 5.0], [-4.0, 1.0, 100.0])],
)
def test_units_and_origins(factor, origin):
    X = rows()
    reference, computed = linkage(X), linkage(X * factor + origin)
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-9)
    assert computed.family.smoothing == reference.family.smoothing


@pytest.mark.parametrize("data", [rows, grid])
def test_order_and_copies_to_the_bit(data):
    X, rng = data(), np.random.default_rng(1)
    order, copies = rng.permutation(len(X)), rng.integers(1, 4, len(X))
    reference = linkage(X, sample_weight=copies)
    shuffled = linkage(X[order], sample_weight=copies[order])
    repeated = linkage(X.repeat(copies, axis=0))
    assert reference.family == shuffled.family == repeated.family
    np.testing.assert_array_equal(shuffled.heights, reference.heights)
    np.testing.assert_array_equal(
        repeated.heights[repeated.heights > 0.0], reference.heights[reference.heights > 0.0]
    )
    clusters = [set(map(tuple, X[reference.cut(n_clusters=4) == c])) for c in range(4)]
    for tree, values in ((shuffled, X[order]), (repeated, X.repeat(copies, axis=0))):
        labels = tree.cut(n_clusters=4)
        assert [set(map(tuple, values[labels == c])) for c in range(4)] == clusters


def test_order_of_weights_that_are_not_whole_to_the_bit():
    rng = np.random.default_rng(2)
    X, weights = grid(40), rng.gamma(1.0, size=40)
    for _ in range(5):
        order = rng.permutation(40)
        assert centre_and_scale(X[order], weights[order]) == centre_and_scale(X, weights)


# What is remembered


def test_trees_remember_numbers():
    tree = linkage(rows())
    assert tree.family.smoothing in SHARES
    assert len(tree.family.scale) == 3
    for restored in (Dendrogram.from_json(tree.to_json()), pickle.loads(pickle.dumps(tree))):
        assert restored.family == tree.family
    assert repr(tree.family) == f"Gaussian(smoothing={tree.family.smoothing}, scaled in 3 columns)"


def test_dissimilarity_asks_for_a_number():
    X = rows()
    for family in ("auto", AUTO):
        with pytest.raises(ValueError, match=r"smoothing='auto' is derived .* tree\.family"):
            dissimilarity(X[:5], X[5:9], family)
    tree = linkage(X)
    left, right = (tree.members(node) for node in tree.merges[-1])
    assert dissimilarity(X[left], X[right], tree.family) == pytest.approx(tree.heights[-1])


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (Gaussian("automatic"), "a number or 'auto', got 'automatic'"),
        (Gaussian(0.1, (0.0,), None), "given together"),
        (Gaussian(0.1, (0.0,), (1.0, 2.0)), "given together"),
        (Gaussian(0.1, (0.0,), (0.0,)), "scale positive"),
        (Gaussian(0.1, (np.inf,), (1.0,)), "centre has to be finite"),
    ],
    ids=str,
)
def test_parameters_that_are_refused(family, message):
    with pytest.raises(ValueError, match=message):
        linkage(rows(), family)


def test_rows_with_other_columns_are_refused():
    family = linkage(rows()).family
    with pytest.raises(ValueError, match="X has 2 columns, and the family has scales for 3"):
        linkage(rows()[:, :2], family)


# The estimator


def test_means_are_in_the_units_of_the_rows():
    X = pd.DataFrame(rows(), columns=["a", "b", "c"])
    model = RBHC(n_clusters=2).fit(X)
    for table in (model.summary(), model.dendrogram_.summary(X)):
        found = table[["mean_a", "mean_b", "mean_c"]].to_numpy()
        reference = [X[model.labels_ == c].mean() for c in range(2)]
        np.testing.assert_allclose(found, reference, rtol=1e-9)


def test_new_rows():
    X = rows()
    model = RBHC(n_clusters=2).fit(X)
    new = rows(10, seed=1)
    groups = [X[model.labels_ == c] for c in range(2)]
    family = model.dendrogram_.family
    reference = [[dissimilarity(group, row[None], family) for group in groups] for row in new]
    np.testing.assert_allclose(model.transform(new), reference, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(new), np.argmin(reference, axis=1))
    with pytest.raises(ValueError, match="X has 2 features, but RBHC is expecting 3"):
        model.predict(new[:, :2])


def test_rows_that_are_too_far_for_squares():
    X = rows(40) * 1e-100
    model = RBHC(n_clusters=2).fit(X)
    far = np.full((1, 3), 1e110)
    assert np.isfinite(model.transform(far)).all()
    assert model.predict_proba(far).sum() == pytest.approx(1.0)
    # As a row without weight it changes nothing.
    tree = linkage(np.concatenate([X, far]), sample_weight=[1.0] * 40 + [0.0])
    np.testing.assert_array_equal(tree.heights[tree.heights > 0.0], linkage(X).heights)


@pytest.mark.parametrize("family", [AUTO, {AUTO: [0, 1], "ward": [2]}], ids=["alone", "block"])
def test_rows_that_are_too_wide_for_their_scales(family):
    """Nearly all weight is on one row, so the standard deviations are tiny."""
    X, weights = rows(8), np.array([1e49] + 7 * [1e-49])
    with pytest.raises(ValueError, match=r"times as wide as its scale: .* the weight 0, or"):
        linkage(X, family, sample_weight=weights)
    weights[1:] = 1e30
    assert linkage(X, family, sample_weight=weights).n_trees == 1


def test_clusters_much_narrower_than_gaps():
    """Scaled by their entropy, such columns would be too wide for any determinant."""
    X = np.repeat([0.0, 1.0], 40)[:, None] + 1e-13 * rows(80)
    offered = AUTO.candidates(X, None)
    assert [record.smoothing for record in offered] == list(SHARES)
    assert len({record.scale for record in offered}) == 1
    labels = linkage(X, AUTO).cut(n_clusters=2)
    assert adjusted_rand_score(labels, np.repeat([0, 1], 40)) == 1.0


def test_other_thresholds_take_it_too():
    X = rows()
    for name in ("gap", "evidence", "kmeans"):
        model = RBHC(threshold=name, random_state=0).fit(X)
        assert model.dendrogram_.family.smoothing in SHARES
    family = linkage(X).family
    assert RBHC(threshold="kmeans", random_state=0).fit(X).threshold_ == (
        fastrbhc.kmeans_threshold(X, family, 8, random_state=0)
    )
