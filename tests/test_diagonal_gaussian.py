"""Diagonal Gaussian: accuracy of variances, bounds of slots and boxes, and audits."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from certificates import certify_greedy, certify_nn_chain
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Data, data_sets
from test_audit import assert_as_found
from test_families import assert_rows_accurate, assert_tree_accurate
from test_full_covariance import rows
from test_geometry import assert_bounds_below_values, points, with_merges
from test_kd_tree import assert_boxes_hold, indexed
from trees import same_tree

from fastrbhc import dissimilarity, families, linkage
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.fast_log import quick_logs
from fastrbhc._engine.simd import load, store

NAME = "diagonal_gaussian"
KINDS = ["normal", "flat", "far", "grid", "uneven"]
WEIGHTS = [0.1, 1.0, 7.0, 1e6]

every_kind = pytest.mark.parametrize("kind", KINDS)
every_backend = pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])


# Accuracy


@pytest.mark.fast
def test_two_rows_by_hand():
    X0, X1 = [[1.0, 5.0]], [[1.5, 5.0]]
    assert dissimilarity(X0, X1, NAME) == pytest.approx(np.log1p(0.25 * 0.25 / 0.01), rel=1e-15)


@pytest.mark.fast
def test_columns_add_up():
    rng = np.random.default_rng(0)
    X0, X1 = rng.normal(size=(5, 12)), rng.normal(size=(9, 12))
    parts = [dissimilarity(X0[:, [k]], X1[:, [k]], NAME) for k in range(12)]
    assert dissimilarity(X0, X1, NAME) == pytest.approx(sum(parts), rel=1e-13)


@pytest.mark.fast
def test_one_column_is_a_gaussian_of_one_column():
    rng = np.random.default_rng(1)
    for offset in (0.0, 1e8):
        X = offset + rng.normal(size=(40, 1))
        reference, computed = linkage(X, "gaussian"), linkage(X, NAME)
        np.testing.assert_array_equal(computed.merges, reference.merges)
        np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-12)


@pytest.mark.fast
@pytest.mark.parametrize("n_features", range(1, 13))
def test_any_number_of_columns(n_features):
    rng = np.random.default_rng(n_features)
    for kind in KINDS:
        X = rows(kind, rng, 9, n_features)
        assert_rows_accurate(X[:1], X[1:2], NAME)
        assert_rows_accurate(X[:4], X[4:], NAME)
        assert_tree_accurate(X, rng.choice(WEIGHTS, 9), NAME)


@pytest.mark.fast
@pytest.mark.parametrize("exponent", [-3, -6, -9, -12])
def test_the_same_means_and_variances_nearly_the_same(exponent):
    """The rest of d is of second order in the difference of the variances."""
    rng = np.random.default_rng(2)
    spread = np.round(rng.normal(size=(5, 3)) * 2.0**20) / 2.0**20
    both = np.concatenate([spread, -spread])
    for offset in (0.0, 2.0**27):
        other = offset + both * (1.0 + 2.0 ** (3 * exponent))
        assert_rows_accurate(offset + both, other, NAME)
        assert_rows_accurate(offset + both, other[[0, 3, 5, 8]], NAME)


@pytest.mark.parametrize("scale", [1e-15, 1e-8, 1e8, 1e100])
@pytest.mark.parametrize("smoothing", [1e-6, 0.01, 1e3])
def test_variances_of_any_size(scale, smoothing):
    rng = np.random.default_rng(3)
    X = scale * rng.normal(size=(6, 5)) * 10.0 ** rng.uniform(-3, 3, 5)
    assert_tree_accurate(X, rng.choice(WEIGHTS, 6), families.DiagonalGaussian(smoothing))


@pytest.mark.fast
def test_columns_that_are_too_wide():
    with pytest.raises(ValueError, match="too wide for the smoothing 1e-09"):
        linkage([[0.0], [1e119]], families.DiagonalGaussian(1e-9))


# Trees


@pytest.mark.fast
@settings(max_examples=40)
@given(data=st.data())
def test_every_merge_is_the_nearest_pair(data):
    X, weights = data.draw(data_sets(NAME))
    neighbors = data.draw(st.sampled_from(["brute", "kd_tree"]))
    tree = linkage(X, NAME, sample_weight=weights, neighbors=neighbors)
    certify_greedy(tree, X, weights, NAME)
    threshold = float(np.median(tree.heights))
    if threshold > 0.0:
        forest = linkage(X, NAME, sample_weight=weights, threshold=threshold)
        certify_greedy(forest, X, weights, NAME)
    chain = linkage(X, NAME, sample_weight=weights, algorithm="nn_chain")
    certify_nn_chain(chain, X, weights, NAME)


@pytest.mark.parametrize("n_features", range(1, 13))
@pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
def test_either_backend_to_the_bit(n_features, algorithm):
    rng = np.random.default_rng(n_features)
    for kind, weights in ((kind, w) for kind in KINDS for w in (None, rng.choice(WEIGHTS, 300))):
        X = rows(kind, rng, 300, n_features)
        trees = [
            linkage(X, NAME, algorithm=algorithm, neighbors=neighbors, sample_weight=weights)
            for neighbors in ("brute", "kd_tree")
        ]
        assert same_tree(*trees)


# Bounds


@every_kind
@pytest.mark.parametrize("n_features", [1, 3, 4, 5, 8, 12])
def test_bounds_never_exceed_values(kind, n_features):
    rng = np.random.default_rng(4)
    for smoothing in (1e-6, 0.01, 1e6):
        family = families.DiagonalGaussian(smoothing)
        X = rows(kind, rng, 90, n_features)
        weights = rng.choice([1e-50, 0.1, 1.0, 1e9, 1e50], 90)
        assert_bounds_below_values(*points(family, X, weights))
        assert_bounds_below_values(*with_merges(family, X, rng, 60)[:3])
        for n_merges in (0, 30, 60):
            geometry, clusters, index, _ = indexed(family, Data(X, weights), n_merges)
            assert_boxes_hold(index, geometry, clusters)


def test_bounds_where_products_of_variances_overflow():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 9)) * 1e100 * 10.0 ** rng.choice([-150.0, -90.0, 0.0], (60, 1))
    assert_bounds_below_values(*with_merges(NAME, X, rng, 30)[:3])
    geometry, clusters, index, _ = indexed(NAME, Data(X), 30)
    assert_boxes_hold(index, geometry, clusters)
    trees = [linkage(X, NAME, neighbors=neighbors) for neighbors in ("brute", "kd_tree")]
    assert same_tree(*trees)


@kernel
def logs_of_eight(values, out):
    store(out, quick_logs(load(values, (0,))))


def test_logarithms_of_eight_numbers():
    rng, out = np.random.default_rng(6), np.empty(8)
    for low, high in ((-300.0, 308.0), (-1.0, 1.0), (-1e-6, 1e-6)):
        for _ in range(200):
            values = 10.0 ** rng.uniform(low, high, 8)
            logs_of_eight(values, out)
            np.testing.assert_allclose(out, np.log(values), rtol=0.0, atol=1e-9)
    logs_of_eight(np.full(8, np.inf), out)
    assert (out <= 1024.0 * np.log(2.0)).all()


# Audits


@every_backend
def test_audits_find_what_a_triple_loop_finds(neighbors):
    """Weights of many sizes, so that light clusters lie between heavy ones."""
    violations = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 1 + seed % 5)) * 10 ** rng.uniform(-1, 1.5) + 1e8 * (seed % 2)
        weights = 10.0 ** rng.uniform(-2, 2, 20)
        tree = linkage(X, NAME, sample_weight=weights, neighbors=neighbors, audit=True)
        found = naive.violations(tree, X, weights, NAME)
        assert_as_found(tree.audit, found)
        violations += tree.audit.violations
    assert violations > 20


def test_audits_of_many_rows_on_either_backend():
    X = np.random.default_rng(7).normal(size=(600, 3))
    trees = [linkage(X, NAME, neighbors=backend, audit=True) for backend in ("brute", "kd_tree")]
    assert trees[0].audit.violations > 0
    np.testing.assert_array_equal(trees[0].audit.counts, trees[1].audit.counts)
