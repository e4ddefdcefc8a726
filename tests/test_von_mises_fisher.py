"""Von Mises–Fisher: angles to the last digit, reducibility, and bounds from directions."""

from __future__ import annotations

import numpy as np
import pytest
from certificates import certify_greedy
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Data, data_sets
from test_families import assert_rows_accurate, assert_tree_accurate
from test_geometry import assert_bounds_below_values, points, with_merges
from test_kd_tree import assert_boxes_hold, indexed
from trees import same_tree

from fastrbhc import RBHC, dissimilarity, families, linkage

NAME = "von_mises_fisher"
WEIGHTS = [0.1, 1.0, 7.0, 1e6]


def rows(kind, rng, n, n_features):
    X = rng.normal(size=(n, n_features))
    if kind == "narrow":  # nearly parallel
        X = 1.0 + 1e-7 * X
    if kind == "opposite":
        X = rng.choice([-1.0, 1.0], (n, 1)) * (1.0 + 1e-5 * X)
    if kind == "grid":
        X = rng.integers(-2, 3, (n, n_features)) * 1.0
        X[~X.any(axis=1), 0] = 1.0
    if kind == "axes":  # sums that cancel
        X = np.eye(n_features)[rng.integers(n_features, size=n)] * rng.choice([-1.0, 1.0], (n, 1))
    return X * 10.0 ** rng.uniform(-9, 9, (n, 1))


KINDS = ["normal", "narrow", "opposite", "grid", "axes"]
every_kind = pytest.mark.parametrize("kind", KINDS)


# Accuracy


@pytest.mark.fast
@pytest.mark.parametrize("theta", [1e-12, 1e-8, 1e-4, 0.1, 1.0, 2.0, 3.0, 3.14159])
def test_two_rows_by_their_angle(theta):
    X0, X1 = [[3.0, 0.0]], [[np.cos(theta), np.sin(theta)]]
    # 2 − 2 cos(θ/2), without cancellation.
    reference = 4.0 * np.sin(theta / 4.0) ** 2
    assert dissimilarity(X0, X1, NAME) == pytest.approx(reference, rel=1e-14)
    assert dissimilarity(X0, X1, families.VonMisesFisher(5.0)) == pytest.approx(
        5.0 * reference, rel=1e-14
    )


@pytest.mark.fast
def test_opposite_rows():
    assert dissimilarity([[1.0, 2.0]], [[-2.0, -4.0]], NAME) == pytest.approx(2.0, rel=1e-15)
    assert dissimilarity([[1.0, 2.0]] * 3, [[-2.0, -4.0]], NAME) == pytest.approx(2.0, rel=1e-15)
    assert dissimilarity([[1.0, 2.0], [-1.0, -2.0]], [[5.0, 1.0]], NAME) == 0.0
    for exponent in range(1, 13):
        nearly = [[-1.0, -2.0 + 10.0**-exponent]]
        assert_rows_accurate([[1.0, 2.0]], nearly, NAME)
        assert_rows_accurate([[1.0, 2.0], *nearly], [[5.0, 1.0]], NAME)


@pytest.mark.fast
@pytest.mark.parametrize("n_features", range(1, 13))
def test_any_number_of_columns(n_features):
    rng = np.random.default_rng(n_features)
    for kind in KINDS:
        X = rows(kind, rng, 9, n_features)
        assert_rows_accurate(X[:1], X[1:2], NAME)
        if kind in ("normal", "narrow", "opposite"):
            assert_rows_accurate(X[:4], X[4:], NAME)
            assert_tree_accurate(X, rng.choice(WEIGHTS, 9), NAME)


@pytest.mark.fast
@pytest.mark.parametrize("relative", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
def test_groups_with_nearly_the_same_direction(relative):
    rng = np.random.default_rng(1)
    for n_features in (2, 3, 7):
        X0 = rng.normal(size=(4, n_features))
        X1 = X0 * (1.0 + relative * rng.uniform(-1.0, 1.0, X0.shape))
        assert_rows_accurate(X0, X1, NAME)
        assert_rows_accurate(X0, np.concatenate([X1, X1[:1], X1[:1]]), NAME)


@pytest.mark.fast
def test_lengths_of_rows_do_not_matter():
    rng = np.random.default_rng(2)
    X = rng.integers(-9, 10, (20, 3)) + np.array([0.0, 0.0, 20.0])
    for factor in (2.0, 3.0, 7.0, 2.0**-60, 2.0**90):
        assert dissimilarity(X[:5], factor * X[5:], NAME) == dissimilarity(X[:5], X[5:], NAME)
        both = linkage(np.concatenate([X, factor * X]), NAME)
        assert np.count_nonzero(both.heights == 0.0) >= len(X)
    for unit in (1e-100, 1e100):
        np.testing.assert_allclose(linkage(unit * X, NAME).heights, linkage(X, NAME).heights)


@pytest.mark.fast
def test_rows_of_zeros_are_refused():
    for call in (lambda X: linkage(X, NAME), lambda X: RBHC(NAME, n_clusters=2).fit(X)):
        with pytest.raises(
            ValueError, match=r"2 rows of zeros, the first being row 1\..*direction"
        ):
            call([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0], [0.0, -0.0]])
    with pytest.raises(ValueError, match="contains NaN"):
        linkage([[1.0, np.nan], [1.0, 1.0]], NAME)


# Reducibility


def d(a, b):
    """By the definition, in long doubles."""
    return np.linalg.norm(a, axis=1) + np.linalg.norm(b, axis=1) - np.linalg.norm(a + b, axis=1)


@pytest.mark.fast
@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_unions_of_nearest_pairs_do_not_come_nearer(n_features):
    """Three sums span at most three dimensions. Both steps of the proof, and their conclusion."""
    rng = np.random.default_rng(n_features)
    for spread in (0.0, 0.3, 3.0):
        a, b, x = (
            (u * 10.0 ** rng.normal(scale=spread, size=(200_000, 1))).astype(np.longdouble)
            for u in rng.normal(size=(3, 200_000, n_features))
        )
        between, union = d(a, b), d(a + b, x)
        nearest = np.minimum(d(a, x), d(b, x))
        rounding = 1e-15 * sum(np.linalg.norm(s, axis=1) for s in (a, b, x))
        assert (union <= between + rounding)[union < nearest - rounding].all()
        assert (union >= between - rounding)[between <= nearest].all()
        assert (union >= nearest - rounding)[between <= nearest].all()


@every_kind
@pytest.mark.parametrize("n_features", [2, 3, 5, 12])
def test_all_algorithms_build_the_same_tree(kind, n_features):
    rng = np.random.default_rng(3)
    for weights in (None, rng.choice(WEIGHTS, 300)):
        X = rows(kind, rng, 300, n_features)
        reference = linkage(X, NAME, algorithm="greedy", sample_weight=weights)
        for neighbors in ("brute", "kd_tree"):
            options = {"neighbors": neighbors, "sample_weight": weights}
            assert same_tree(linkage(X, NAME, algorithm="greedy", **options), reference)
            levels = linkage(X, NAME, algorithm="levels", **options)
            np.testing.assert_array_equal(levels.heights, reference.heights)
            if kind in ("normal", "narrow"):  # no ties
                np.testing.assert_array_equal(levels.merges, reference.merges)


@pytest.mark.fast
def test_heights_rise_and_audits_are_proofs():
    X = rows("normal", np.random.default_rng(4), 80, 3)
    tree = linkage(X, NAME, audit=True)
    assert (np.diff(tree.heights) >= 0.0).all()
    assert tree.audit.method == "proof"
    assert tree.audit.certified


# Trees


@pytest.mark.fast
@settings(max_examples=40)
@given(data=st.data())
def test_every_merge_is_the_nearest_pair(data):
    X, weights = data.draw(data_sets(NAME))
    neighbors = data.draw(st.sampled_from(["brute", "kd_tree"]))
    for algorithm in ("greedy", "levels"):
        options = {"algorithm": algorithm, "neighbors": neighbors, "sample_weight": weights}
        tree = linkage(X, NAME, **options)
        certify_greedy(tree, X, weights, NAME)
        threshold = float(np.median(tree.heights))
        if threshold > 0.0:
            certify_greedy(linkage(X, NAME, threshold=threshold, **options), X, weights, NAME)


@pytest.mark.fast
def test_concentration_scales_heights():
    X = rows("normal", np.random.default_rng(5), 40, 3)
    reference, computed = linkage(X, NAME), linkage(X, families.VonMisesFisher(8.0))
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_array_equal(computed.heights, 8.0 * reference.heights)


@pytest.mark.fast
def test_new_rows_join_the_cluster_of_their_direction():
    rng = np.random.default_rng(6)
    centres = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    labels = np.arange(60) % 3
    X = (centres[labels] + 0.1 * rng.normal(size=(60, 3))) * rng.gamma(1.0, size=(60, 1))
    model = RBHC(NAME, n_clusters=3).fit(X)
    found = model.predict(1e6 * centres)
    np.testing.assert_array_equal(model.labels_, found[labels])


# Bounds


@every_kind
@pytest.mark.parametrize("n_features", [1, 2, 3, 8, 12])
def test_bounds_never_exceed_values(kind, n_features):
    rng = np.random.default_rng(7)
    for concentration in (1e-100, 1.0, 1e100):
        family = families.VonMisesFisher(concentration)
        X = rows(kind, rng, 90, n_features)
        weights = rng.choice([1e-50, 0.1, 1.0, 1e9, 1e50], 90)
        assert_bounds_below_values(*points(family, X, weights))
        assert_bounds_below_values(*with_merges(family, X, rng, 60)[:3])
        for n_merges in (0, 30, 60):
            geometry, clusters, index, _ = indexed(family, Data(X, weights), n_merges)
            assert_boxes_hold(index, geometry, clusters)


def test_bounds_in_many_columns_tell_directions_apart():
    X = np.random.default_rng(8).normal(size=(50, 400))
    geometry, clusters, scratch, _ = with_merges(NAME, X, np.random.default_rng(9), 20)
    assert_bounds_below_values(geometry, clusters, scratch)
