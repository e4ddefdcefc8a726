"""Full covariance: bounds from leading columns, candidates, and rotation to principal axes."""

from __future__ import annotations

from fractions import Fraction

import exact
import mpmath
import numpy as np
import pytest
from certificates import certify_greedy
from test_families import assert_tree_accurate
from test_geometry import assert_bounds_below_values, evaluate, points, with_merges

from fastrbhc import dissimilarity, families, linkage
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters import principal_axes as rotation
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.geometry.contract import candidate_slots
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.fast_log import quick_log


@kernel
def slots_within(geometry, clusters, i, cutoff, scratch, found):
    count = candidate_slots(geometry, clusters, i, 0, clusters.weights.size, cutoff, scratch)
    for c in range(count):
        found[scratch.slots[c]] = True


@kernel
def logs(values, out):
    for k in range(values.size):
        out[k] = quick_log(values[k])


def rows(kind, rng, n, n_features):
    if kind == "flat":  # fewer directions than leading columns
        return rng.normal(size=(n, 2)) @ rng.normal(size=(2, n_features)) * 10.0
    if kind == "far":
        return 1e8 + rng.normal(size=(n, n_features))
    if kind == "grid":
        return rng.integers(0, 3, (n, n_features)) * 1.0
    if kind == "uneven":
        return rng.normal(size=(n, n_features)) * 10.0 ** rng.uniform(-4, 4, n_features)
    return rng.normal(size=(n, n_features))


every_kind = pytest.mark.parametrize("kind", ["normal", "flat", "far", "grid", "uneven"])


@every_kind
@pytest.mark.parametrize("n_features", [2, 6, 9, 13])
def test_bounds_never_exceed_values(kind, n_features):
    rng = np.random.default_rng(0)
    for smoothing in (1e-6, 0.01, 10.0):
        family = families.Gaussian(smoothing)
        X = rows(kind, rng, 90, n_features)
        assert_bounds_below_values(*points(family, X, rng.choice([0.1, 1.0, 1e9], 90)))
        assert_bounds_below_values(*with_merges(family, X, rng, 60)[:3])


@every_kind
def test_candidates_hold_all_that_is_within_the_cutoff(kind):
    rng = np.random.default_rng(1)
    X = rows(kind, rng, 90, 9)
    geometry, clusters, scratch, members = with_merges("gaussian", X, rng, 50)
    values, _ = evaluate(geometry, clusters, scratch)
    for i in members:
        others = np.array([j for j in members if j != i])
        for cutoff in (0.0, *np.quantile(values[i, others], [0.0, 0.1, 0.7])):
            found = np.zeros(90, bool)
            slots_within(geometry, clusters, i, cutoff, scratch, found)
            assert found[others[values[i, others] <= cutoff]].all()
            assert not found[np.isnan(clusters.weights)].any()


def test_leading_columns_tell_apart_what_the_means_do_not():
    """Two covariances about one mean: the distance is 0, but the bound is not."""
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(size=(30, 9)), 0.01 * rng.normal(size=(30, 9))])
    X[:30] -= X[:30].mean(axis=0)
    X[30:] -= X[30:].mean(axis=0)
    family = families.as_family("gaussian")
    geometry, observed = family.geometry(9), family.observe(X)
    clusters = statistics.clusters_of_groups(geometry, observed, np.repeat([0, 1], 30), 2)
    scratch = points("gaussian", X)[2]
    values, bounds = evaluate(geometry, clusters, scratch)
    assert bounds[0, 1] > 0.5 * values[0, 1] > 1.0


@pytest.mark.fast
def test_the_quick_logarithm():
    values = np.concatenate([np.geomspace(1e-300, 1e300, 20_001), np.geomspace(0.5, 2.0, 20_001)])
    out = np.empty(values.size)
    logs(values, out)
    assert abs(out - np.log(values)).max() < 1e-9


# Small against the smoothing


def assert_heights_are_exact(X, family, weights=None):
    """To 1e-10 of the definition in 700 digits, as many as it takes at the smallest scales."""
    tree, family = linkage(X, family, sample_weight=weights), families.as_family(family)
    weights = np.ones(len(X)) if weights is None else weights
    leaves = [[row] for row in range(len(X))]
    for (left, right), height in zip(tree.merges, tree.heights, strict=True):
        a, b = leaves[left], leaves[right]
        leaves.append(a + b)
        with mpmath.workdps(700):
            reference, _ = exact.dissimilarity(X[a], X[b], family, weights[a], weights[b])
            assert abs(height - reference) <= 1e-10 * reference


@pytest.mark.parametrize("exponent", [-118, -60, -20, -12, -8, -6, -4, -2, 0, 3, 6, 8])
def test_heights_have_ten_digits_at_any_scale(exponent):
    rng = np.random.default_rng(8)
    X = 10.0**exponent * rng.normal(size=(9, 2))
    assert_heights_are_exact(X, "gaussian")
    assert_heights_are_exact(X, families.Gaussian(100.0), rng.uniform(0.1, 9.0, 9))


@pytest.mark.parametrize("exponent", [-100, -9, -5, -2, 0, 4])
def test_clusters_about_one_mean(exponent):
    """Only their shapes differ, and by the square of what is small."""
    pair = np.array([[1.0, 0.0], [-1.0, 0.0]])
    X = 10.0**exponent * np.concatenate([pair, 1.125 * pair, pair[:, ::-1], 64.0 * pair[:, ::-1]])
    labels = np.repeat([0, 1, 2, 3], 2)
    family = families.as_family("gaussian")
    for a, b in ((0, 1), (0, 2), (1, 2), (0, 3)):
        computed = dissimilarity(X[labels == a], X[labels == b], "gaussian")
        with mpmath.workdps(900):
            reference, _ = exact.dissimilarity(X[labels == a], X[labels == b], family)
            assert abs(computed - reference) <= max(1e-10 * reference, 1e-300)


@pytest.mark.parametrize("s", [1e-8, 1e-4, 1.0])
def test_merges_are_the_smallest_at_any_scale(s):
    X = s * np.random.default_rng(9).normal(size=(30, 3))
    for neighbors in ("brute", "kd_tree"):
        tree = linkage(X, "gaussian", algorithm="greedy", neighbors=neighbors)
        direct = linkage(X, "gaussian")
        np.testing.assert_array_equal(tree.merges, direct.merges)
        np.testing.assert_array_equal(tree.heights, direct.heights)
    # Far below the smoothing, d is Ward's cost over it.
    if s <= 1e-8:
        ward = linkage(X, families.SphericalGaussian(0.01))
        np.testing.assert_array_equal(ward.merges, direct.merges)
        np.testing.assert_allclose(ward.heights, direct.heights, rtol=1e-10)


@pytest.mark.parametrize("n_features", [2, 3, 7])
def test_rows_almost_on_a_line(n_features):
    """So long that the rounding of a difference is large against the distance from the line."""
    end = 2.0**31 - np.arange(n_features)
    X = np.stack([end, -end - 1.0, np.zeros(n_features), 0.5 * end])
    assert_heights_are_exact(X, families.Gaussian(0.38))


# Uneven weights


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_boxes_hold_for_uneven_weights(seed):
    """A light cluster of some extent beside heavy points: their shapes differ, and must not count
    for more than they do."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([1e5 * rng.normal(size=(8, 1)), 1e5 * rng.normal(size=(60, 1))])
    weights = 10.0 ** np.concatenate([rng.uniform(-3, 0, 8), rng.uniform(15, 45, 60)])
    options = {"algorithm": "nn_chain", "sample_weight": weights}
    reference = linkage(X, "gaussian", neighbors="brute", **options)
    computed = linkage(X, "gaussian", neighbors="kd_tree", **options)
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_array_equal(computed.heights, reference.heights)


@pytest.mark.parametrize(
    ("X", "smoothing", "weights"),
    [
        ([[0.0], [-5e-116]], 0.01, [1e43, 5e-43]),
        ([[6.77895584061587], [6.778955840615584]], 4.67e219, [2e48, 3e-28]),
        ([[0.0], [1e116]], 0.01, [2e42, 2e34]),
    ],
)
def test_weights_at_both_ends_of_their_range(X, smoothing, weights):
    assert_heights_are_exact(np.array(X), families.Gaussian(smoothing), np.array(weights))


# Principal axes


def exactly(turned, row):
    digits = zip(turned.means[row], turned.residuals[row], strict=True)
    return [Fraction(float(high)) + Fraction(float(low)) for high, low in digits]


@every_kind
def test_turning_keeps_distances_to_twenty_five_digits(kind):
    X = rows(kind, np.random.default_rng(3), 50, 9)
    turned = rotation.along_principal_axes(Observations(X))
    for i, j in [(0, 1), (2, 30), (7, 49)]:
        before = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(X[i], X[j], strict=True))
        there, here = exactly(turned, i), exactly(turned, j)
        after = sum((a - b) ** 2 for a, b in zip(there, here, strict=True))
        assert abs(after - before) <= Fraction(1, 10**25) * before


def test_the_widest_axis_comes_first():
    X = rows("uneven", np.random.default_rng(4), 200, 10)
    turned = rotation.along_principal_axes(Observations(X)).means
    widths = turned.var(axis=0)
    assert (np.diff(widths) <= 0.0).all()
    assert widths.sum() == pytest.approx(X.var(axis=0).sum(), rel=1e-12)


def test_equal_points_are_left_alone():
    same = Observations(np.ones((5, 9)))
    assert rotation.along_principal_axes(same) is same


@pytest.fixture
def always_turned(monkeypatch):
    monkeypatch.setattr(rotation, "_FEW_POINTS", 2)


@pytest.mark.usefixtures("always_turned")
@every_kind
def test_turned_trees_are_greedy(kind):
    X = rows(kind if kind != "flat" else "normal", np.random.default_rng(5), 24, 9)
    certify_greedy(linkage(X, "gaussian"), X, None, "gaussian")


@pytest.mark.usefixtures("always_turned")
def test_turned_trees_are_accurate():
    rng = np.random.default_rng(6)
    weights = rng.choice([1.0, 7.0, 1e3, 1e6], 7)
    for X in (1e8 + rng.normal(size=(7, 9)), rows("uneven", rng, 7, 9)):
        assert_tree_accurate(X, weights, "gaussian")
    for spread in (1e2, 1e5, 1e8):  # flat: determinants consist of the smoothing
        assert_tree_accurate(spread * rng.normal(size=(6, 9)), np.ones(6), "gaussian")


@every_kind
def test_turned_trees_do_not_depend_on_order_threads_or_backend(kind):
    rng = np.random.default_rng(7)
    X = rows(kind, rng, 130, 9)
    tree = linkage(X, "gaussian", n_jobs=1)
    order = rng.permutation(130)
    np.testing.assert_array_equal(linkage(X[order], "gaussian", n_jobs=2).heights, tree.heights)
    other = linkage(X, "gaussian", neighbors="kd_tree")
    np.testing.assert_array_equal(other.merges, tree.merges)
    np.testing.assert_array_equal(other.heights, tree.heights)
