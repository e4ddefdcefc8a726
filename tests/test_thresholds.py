"""Choices of the threshold λ: the k-means heuristic, and those from the heights of a tree."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from strategies import ALL_FAMILIES, ordinary_rows

import fastrbhc
from fastrbhc import families, thresholds
from fastrbhc._engine.clusters.duplicates import collapse

every_family = pytest.mark.parametrize("name", ALL_FAMILIES)


def draw(name, rng, n, n_features=3):
    return ordinary_rows(name, rng, n, n_features)


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


@pytest.mark.parametrize("name", ["exponential", "poisson", "ward"])
def test_the_smallest_rows(name):
    """The smallest rows that are taken; k-means warns if it finds too few clusters."""
    X = draw("ward", np.random.default_rng(1), 60)
    computed = fastrbhc.kmeans_threshold(X * 1e-110, name, 4, random_state=0)
    assert computed < np.inf
    if name == "exponential":  # only ratios matter; k-means sees the rows in another order
        reference = fastrbhc.kmeans_threshold(X, name, 4, random_state=0)
        assert computed == pytest.approx(reference, rel=0.2)


@every_family
def test_the_mean_dissimilarity_of_kmeans_clusters(name):
    X = draw(name, np.random.default_rng(0), 60)
    # k-means gets the distinct points in the order of their hashes.
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


# From the heights of a tree

FROM_TREE = ["gap", "evidence"]


def n_clusters(tree, threshold):
    return len(np.unique(tree.cut(threshold=threshold)))


def log_evidence(X, labels, name):
    """By the definition: a sum over clusters, up to a term that all partitions share."""
    family = families.as_family(name)
    p = family.n_parameters(X.shape[1])
    total = 0.0
    for label in np.unique(labels):
        rows = X[labels == label]
        n = len(rows)
        total += gammaln(n) - 0.5 * p * np.log(1.0 + n) + n_phi(rows, name)
    return total


def n_phi(rows, name):
    """n·φ of the mean, Poisson and Ward, as in the paper's table of families."""
    mean = rows.mean(axis=0)
    if name == "poisson":
        return len(rows) * np.sum((mean + 0.01) * np.log(mean + 0.01) - mean)
    return 0.5 * len(rows) * np.sum(mean**2)


@pytest.mark.parametrize("name", ["poisson", "spherical_gaussian"])
def test_the_evidence_is_largest_among_all_cuts(name):
    X = three_groups("poisson", np.random.default_rng(8), n=15)[0].astype(float)
    if name == "spherical_gaussian":
        X /= 5.0
    tree = fastrbhc.linkage(X, name)
    reference = max(range(1, 23), key=lambda k: log_evidence(X, tree.cut(n_clusters=k), name))
    computed = fastrbhc.evidence_threshold(tree, name, 2)
    assert n_clusters(tree, computed) == reference


def test_the_gap_that_exceeds_its_median_the_most():
    # 1, 2, 3, 4 and 5 times the logarithms of the ratios are 1, 0, 6, 1, 2: their median is 1, and
    # the excess is 0, −1/2, 5/3, 0, 1/5.
    steps = np.array([1.0, 0.0, 2.0, 0.25, 0.4])
    levels = np.exp(-np.concatenate([[0.0], np.cumsum(steps)]))[::-1]
    merges = np.array([[0, 1], [2, 7], [3, 8], [4, 9], [5, 10], [6, 11]])
    tree = fastrbhc.Dendrogram(merges, levels, np.arange(2.0, 8.0), 7)
    threshold = fastrbhc.gap_threshold(tree)
    assert n_clusters(tree, threshold) == 4
    assert threshold == pytest.approx(0.5 * (levels[2] + levels[3]))
    # The third gap is excluded: 1 and 0 remain, with median 1/2.
    assert n_clusters(tree, fastrbhc.gap_threshold(tree, max_clusters=3)) == 2


def test_scaled_spacings_of_rows_without_clusters_are_alike():
    """The null of the gap: without clusters no k has wider spacings than others."""
    rng = np.random.default_rng(9)
    spacings = []
    for _ in range(60):
        levels = fastrbhc.linkage(rng.uniform(size=(400, 2)), "ward").levels[::-1][:25]
        spacings.append(np.arange(1, 25) * np.log(levels[:-1] / levels[1:]))
    means = np.mean(spacings, axis=0)
    thirds = [means[1:8].mean(), means[8:16].mean(), means[16:].mean()]
    assert max(thirds) < 1.6 * min(thirds)


@pytest.mark.parametrize("choice", FROM_TREE)
@pytest.mark.parametrize("name", ["poisson", "multinomial", "gaussian"])
def test_choices_without_a_guess_recover_well_separated_clusters(name, choice):
    X, labels = three_groups(name, np.random.default_rng(7))
    model = fastrbhc.RBHC(name, threshold=choice).fit(X)
    assert adjusted_rand_score(labels, model.labels_) == 1.0
    tree = fastrbhc.linkage(X, name)
    threshold = {
        "gap": lambda: fastrbhc.gap_threshold(tree),
        "evidence": lambda: fastrbhc.evidence_threshold(tree, name, X.shape[1]),
    }[choice]()
    assert model.threshold_ == threshold
    assert model.dendrogram_.n_trees == 1  # the whole tree is kept, to be cut elsewhere


def test_evidence_needs_more_rows_than_numbers():
    """Eleven rows, two columns: 5 parameters per cluster with a covariance, 2 without."""
    X = np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], [4, 4, 3], axis=0)
    X += np.random.default_rng(14).normal(scale=0.3, size=X.shape)
    for name, expected in (("gaussian", 2), ("ward", 3)):
        tree = fastrbhc.linkage(X, name)
        assert n_clusters(tree, fastrbhc.evidence_threshold(tree)) == expected


def test_the_evidence_of_what_the_tree_remembers():
    rng = np.random.default_rng(15)
    X, weights = three_groups("poisson", rng)[0], rng.integers(1, 4, 120)
    tree = fastrbhc.linkage(X, "poisson", sample_weight=weights)
    reference = fastrbhc.evidence_threshold(tree, "poisson", 2, sample_weight=tree.leaf_weights)
    assert fastrbhc.evidence_threshold(tree) == reference
    assert fastrbhc.evidence_threshold(tree, "poisson", 2) == reference
    unknown = dataclasses.replace(tree, origin=None)
    assert fastrbhc.evidence_threshold(unknown, "poisson", 2) == reference
    with pytest.raises(ValueError, match="does not remember its family"):
        fastrbhc.evidence_threshold(unknown)
    with pytest.raises(ValueError, match="does not remember its number of columns"):
        fastrbhc.evidence_threshold(unknown, "poisson")


def test_one_cluster_has_more_evidence_than_two():
    X = np.random.default_rng(10).poisson(30, (300, 3))
    tree = fastrbhc.linkage(X, "poisson")
    assert fastrbhc.evidence_threshold(tree, "poisson", 3) == np.inf


@pytest.mark.parametrize("choice", FROM_TREE)
def test_choices_without_a_guess_do_not_mind_the_unit_or_the_order(choice):
    X, _ = three_groups("gaussian", np.random.default_rng(11))
    rng = np.random.default_rng(12)
    reference = fastrbhc.RBHC("ward", threshold=choice).fit(X)
    shuffled = fastrbhc.RBHC("ward", threshold=choice).fit(rng.permutation(X))
    assert shuffled.threshold_ == reference.threshold_
    if choice == "gap":
        scaled = fastrbhc.RBHC("ward", threshold=choice).fit(100.0 * X)
        np.testing.assert_array_equal(scaled.labels_, reference.labels_)


@pytest.mark.parametrize("choice", FROM_TREE)
def test_weights_are_copies_for_the_choices_from_a_tree(choice):
    rng = np.random.default_rng(13)
    X, _ = three_groups("poisson", rng)
    weights = rng.integers(0, 4, len(X))
    copied = fastrbhc.RBHC("poisson", threshold=choice).fit(X.repeat(weights, axis=0))
    computed = fastrbhc.RBHC("poisson", threshold=choice).fit(X, sample_weight=weights)
    assert computed.threshold_ == pytest.approx(copied.threshold_, rel=1e-12)
    assert computed.n_clusters_ == copied.n_clusters_


def test_trees_with_few_heights():
    same = fastrbhc.linkage(np.ones((5, 2)), "ward")
    assert fastrbhc.gap_threshold(same) == np.inf
    assert fastrbhc.evidence_threshold(same, "ward", 2) == np.inf
    two = fastrbhc.linkage(np.repeat(np.eye(2), 5, axis=0), "ward")
    assert n_clusters(two, fastrbhc.gap_threshold(two)) == 2
    pair = fastrbhc.linkage(np.eye(2), "ward")
    assert fastrbhc.gap_threshold(pair) == pytest.approx(0.5 * pair.heights[0])


def test_heights_whose_ratio_overflows():
    tree = fastrbhc.linkage([[0.0], [1e-110], [1e110]], "ward")
    assert tree.heights[1] / 1e300 > tree.heights[0]
    assert n_clusters(tree, fastrbhc.gap_threshold(tree)) == 2


def test_a_threshold_between_neighbouring_numbers():
    tree = fastrbhc.linkage([[0.0], [1.0], [5.0], [9.0]], "ward")
    for low, high in ((2.0, np.nextafter(2.0, 3.0)), (np.nextafter(2.0, 1.0), 2.0)):
        close = dataclasses.replace(tree, heights=np.array([low, high, 9.0]))
        assert n_clusters(close, thresholds.threshold_for(close, 3)) == 3


def test_numbers_of_clusters_that_some_threshold_yields():
    square = fastrbhc.linkage([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]], "ward")
    assert thresholds.reachable_numbers(square).tolist() == [1, 2, 4]
    copies = fastrbhc.linkage([[0.0], [0.0], [1.0], [5.0]], "ward")
    assert thresholds.reachable_numbers(copies).tolist() == [1, 2, 3]


def test_a_forest_is_refused():
    forest = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward", threshold=1.0)
    with pytest.raises(ValueError, match="2 trees are left: build the whole one"):
        fastrbhc.gap_threshold(forest)
    with pytest.raises(ValueError, match="2 trees are left: build the whole one"):
        fastrbhc.evidence_threshold(forest, "ward", 1)


@pytest.mark.parametrize("wrong", [0, 1])
def test_too_few_clusters_to_look_for(wrong):
    tree = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward")
    with pytest.raises(ValueError, match="max_clusters has to be at least"):
        fastrbhc.gap_threshold(tree, max_clusters=wrong)


@pytest.mark.fast
def test_parameters_of_a_cluster():
    counts = {name: families.as_family(name).n_parameters(4) for name in ALL_FAMILIES}
    assert counts == {
        "spherical_gaussian": 4,
        "gaussian": 14,
        "diagonal_gaussian": 8,
        "von_mises_fisher": 3,
        "poisson": 4,
        "multinomial": 3,
        "bernoulli": 4,
        "exponential": 4,
        "negative_binomial": 4,
        "binomial": 4,
        "geometric": 4,
        "gamma": 4,
        "inverse_gaussian": 4,
        "log_normal": 4,
        "weibull": 4,
        "rayleigh": 4,
        "pareto": 4,
    }
