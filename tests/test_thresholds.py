"""The k-means heuristic for the threshold λ."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import fastrbhc
from fastrbhc import families, thresholds
from fastrbhc.observations import collapse

NAMES = ["spherical_gaussian", "gaussian", "poisson", "multinomial", "bernoulli", "exponential"]

every_family = pytest.mark.parametrize("name", NAMES)


def draw(name, rng, n, n_features=3):
    if name == "bernoulli":
        return rng.uniform(size=(n, n_features))
    if name in {"poisson", "multinomial"}:
        return rng.poisson(5.0, (n, n_features)) + 1.0
    return rng.gamma(2.0, 1.0, (n, n_features))


def three_groups(name, rng, n=40):
    """Well separated rows and the group of each."""
    labels = np.repeat([0, 1, 2], n)
    if name == "poisson":
        return rng.poisson(np.array([[5, 60], [60, 5], [200, 200]])[labels]), labels
    if name == "multinomial":
        shares = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
        return np.array([rng.multinomial(200, shares[label]) for label in labels]), labels
    centres = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]])
    return centres[labels] + rng.normal(size=(3 * n, 2)), labels


def mean_over_pairs(X, labels, name):
    groups = [X[labels == label] for label in np.unique(labels)]
    pairs = itertools.combinations(groups, 2)
    return np.mean([fastrbhc.dissimilarity(one, two, name) for one, two in pairs])


@every_family
def test_the_mean_dissimilarity_of_kmeans_clusters(name):
    X = draw(name, np.random.default_rng(0), 60)
    # k-means sees the distinct points in their own order.
    rows = families.as_family(name).observe(X)
    points, point_of_row = collapse(rows)
    model = KMeans(8, random_state=5)
    model.fit(points.means - points.means.mean(axis=0), sample_weight=points.weights)
    reference = mean_over_pairs(X, model.labels_[point_of_row], name)
    computed = fastrbhc.kmeans_threshold(X, name, 2, random_state=5)
    assert computed == pytest.approx(reference, rel=1e-9)


@every_family
def test_weights_are_copies(name):
    rng = np.random.default_rng(1)
    X, weights = draw(name, rng, 30), rng.integers(1, 5, 30)
    copied = fastrbhc.kmeans_threshold(X.repeat(weights, axis=0), name, 2, random_state=0)
    computed = fastrbhc.kmeans_threshold(X, name, 2, sample_weight=weights, random_state=0)
    assert computed == pytest.approx(copied, rel=1e-12)


def test_rows_of_weight_zero_are_left_out():
    rng = np.random.default_rng(2)
    X, weights = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    reference = fastrbhc.kmeans_threshold(
        X[weights > 0], "ward", 2, sample_weight=weights[weights > 0], random_state=0
    )
    computed = fastrbhc.kmeans_threshold(X, "ward", 2, sample_weight=weights, random_state=0)
    assert computed == reference


@every_family
def test_the_order_of_rows_does_not_matter(name):
    rng = np.random.default_rng(3)
    X = draw(name, rng, 50)
    reference = fastrbhc.kmeans_threshold(X, name, 2, random_state=0)
    shuffled = fastrbhc.kmeans_threshold(rng.permutation(X), name, 2, random_state=0)
    assert shuffled == reference


def test_the_seed_decides():
    X = np.random.default_rng(4).normal(size=(200, 3))
    values = [fastrbhc.kmeans_threshold(X, "ward", 3, random_state=seed) for seed in (0, 0, 1)]
    assert values[0] == values[1]
    assert values[0] != values[2]
    generator = np.random.RandomState(0)
    assert fastrbhc.kmeans_threshold(X, "ward", 3, random_state=generator) == values[0]


def test_identical_rows_leave_nothing_to_decide():
    assert fastrbhc.kmeans_threshold(np.ones((10, 2)), "poisson", 3) == np.inf
    assert fastrbhc.kmeans_threshold(np.eye(2), "ward", 1, multiplier=1) == np.inf
    one_left = fastrbhc.kmeans_threshold(np.eye(3), "ward", 3, sample_weight=[0, 1, 0])
    assert one_left == np.inf


def test_more_clusters_asked_for_than_distinct_rows():
    distinct = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    X = distinct.repeat(2, axis=0)
    reference = mean_over_pairs(X, np.repeat([0, 1, 2], 2), "ward")
    assert reference == pytest.approx((9 + 16 + 25) / 2 / 3)
    assert fastrbhc.kmeans_threshold(X, "ward", 50, random_state=0) == pytest.approx(reference)


def test_the_multiplier_multiplies_the_guess():
    X = np.random.default_rng(5).normal(size=(100, 2))
    one = fastrbhc.kmeans_threshold(X, "ward", 6, multiplier=1, random_state=0)
    other = fastrbhc.kmeans_threshold(X, "ward", 2, multiplier=3, random_state=0)
    assert one == other


@pytest.mark.parametrize("name", ["spherical_gaussian", "poisson"])
def test_a_sample_of_the_rows_gives_nearly_the_same(name, monkeypatch):
    X, _ = three_groups(name, np.random.default_rng(6), n=200)
    full = fastrbhc.kmeans_threshold(X, name, 3, multiplier=1, random_state=0)
    monkeypatch.setattr(thresholds, "SUBSAMPLE", 150)
    sampled = fastrbhc.kmeans_threshold(X, name, 3, multiplier=1, random_state=0)
    assert sampled == pytest.approx(full, rel=0.05)


@pytest.mark.parametrize("name", ["poisson", "multinomial", "gaussian"])
def test_recovers_well_separated_clusters(name):
    X, labels = three_groups(name, np.random.default_rng(7))
    threshold = fastrbhc.kmeans_threshold(X, name, 3, random_state=0)
    tree = fastrbhc.linkage(X, name, threshold=threshold)
    assert adjusted_rand_score(labels, tree.cut(threshold=threshold)) == 1.0


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"n_clusters_guess": 0}, ValueError),
        ({"n_clusters_guess": 2.5}, TypeError),
        ({"n_clusters_guess": True}, TypeError),
        ({"n_clusters_guess": 2, "multiplier": 0}, ValueError),
        ({"n_clusters_guess": 2, "multiplier": "4"}, TypeError),
    ],
    ids=str,
)
def test_wrong_numbers(wrong, error):
    with pytest.raises(error, match=r"(n_clusters_guess|multiplier) has to be"):
        fastrbhc.kmeans_threshold(np.eye(3), "ward", **wrong)
