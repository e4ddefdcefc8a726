"""Repeated rows become weighted points, in an order that depends only on the values."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from certificates import certify_greedy
from hypothesis import given
from hypothesis import strategies as st
from strategies import gridded, gridded_rows, repeated
from strategies import weighted as weighted_data
from trees import merged_values

from fastrbhc import linkage
from fastrbhc._engine.clusters.duplicates import collapse
from fastrbhc._engine.clusters.observations import Observations, take, weighted
from fastrbhc.families import as_family

pytestmark = pytest.mark.fast

observations = importlib.import_module("fastrbhc._engine.clusters.observations")


def constant_hash(rows):
    return np.zeros(rows.means.shape[0], np.uint64)


def two_hashes(rows):
    """Every row shares its hash with about half of the others."""
    return (rows.means.sum(axis=1) > np.median(rows.means.sum(axis=1))).astype(np.uint64)


def check_collapsed(rows, collapsed):
    """Each row is assigned to a point equal to it, and no two points are equal."""
    points, point_of_row = collapsed
    np.testing.assert_array_equal(points.means[point_of_row], rows.means)
    assert len(np.unique(points.means, axis=0)) == len(points.means)
    weights = np.ones(len(rows.means)) if rows.weights is None else rows.weights
    summed = np.bincount(point_of_row, weights)
    given_weights = np.ones(len(points.means)) if points.weights is None else points.weights
    np.testing.assert_allclose(given_weights, summed, rtol=1e-14)


@pytest.mark.parametrize("hashing", [None, constant_hash, two_hashes])
@given(data=st.data())
def test_equal_rows_are_collapsed(hashing, data):
    X = data.draw(st.one_of(gridded("poisson"), repeated("spherical_gaussian"))).X
    with pytest.MonkeyPatch.context() as patch:
        if hashing is not None:
            patch.setattr(observations, "hash_rows", hashing)
        check_collapsed(Observations(X), collapse(Observations(X)))


@pytest.mark.parametrize("hashing", [None, constant_hash, two_hashes])
@given(data=st.data(), seed=st.integers(0, 1000))
def test_points_do_not_depend_on_the_order_of_rows(hashing, data, seed):
    X, weights = data.draw(weighted_data("poisson"))
    order = np.random.default_rng(seed).permutation(len(X))
    with pytest.MonkeyPatch.context() as patch:
        if hashing is not None:
            patch.setattr(observations, "hash_rows", hashing)
        reference, point_of_row = collapse(Observations(X, weights=weights))
        computed, point_of_moved = collapse(Observations(X[order], weights=weights[order]))
    np.testing.assert_array_equal(computed.means, reference.means)
    np.testing.assert_array_equal(computed.weights, reference.weights)
    np.testing.assert_array_equal(point_of_moved, point_of_row[order])


@pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
@pytest.mark.parametrize("family", ["spherical_gaussian", "multinomial", "poisson"])
def test_trees_survive_hash_collisions(monkeypatch, family, algorithm):
    monkeypatch.setattr(observations, "hash_rows", constant_hash)
    rng = np.random.default_rng(4)
    X = gridded_rows(rng.integers(0, 4, size=(22, 2)), family)
    tree = linkage(X, family, algorithm=algorithm)
    if algorithm == "greedy":
        certify_greedy(tree, X, None, family)
    for _ in range(5):
        order = rng.permutation(len(X))
        moved = linkage(X[order], family, algorithm=algorithm)
        assert merged_values(moved, X[order]) == merged_values(tree, X)


def test_further_digits_keep_rows_apart():
    means, residuals = np.ones((3, 1)), np.array([[0.0], [1e-20], [0.0]])
    points, point_of_row = collapse(Observations(means, residuals))
    assert points.weights.sum() == 3.0
    assert point_of_row[0] == point_of_row[2] != point_of_row[1]


def test_further_digits_keep_rows_apart_when_hashes_collide(monkeypatch):
    monkeypatch.setattr(observations, "hash_rows", constant_hash)
    means, residuals = np.ones((3, 1)), np.array([[0.0], [1e-20], [0.0]])
    _, point_of_row = collapse(Observations(means, residuals))
    assert point_of_row[0] == point_of_row[2] != point_of_row[1]


def test_negative_zero_is_zero():
    _, point_of_row = collapse(Observations(np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]])))
    assert point_of_row[0] == point_of_row[1] != point_of_row[2]


def test_hash_tells_columns_and_rows_apart():
    grid = np.stack(np.meshgrid(np.arange(60.0), np.arange(60.0)), axis=-1).reshape(-1, 2)
    assert len(np.unique(observations.hash_rows(Observations(grid)))) == len(grid)


def test_weights_multiply():
    rows = Observations(np.ones((2, 1)), weights=np.array([2.0, 5.0]))
    assert weighted(rows, None) is rows
    np.testing.assert_array_equal(weighted(rows, np.array([3.0, 0.5])).weights, [6.0, 2.5])
    plain = weighted(Observations(np.ones((2, 1))), np.array([3.0, 0.5]))
    np.testing.assert_array_equal(plain.weights, [3.0, 0.5])


def test_take_keeps_what_is_not_there():
    rows = take(Observations(np.arange(6.0).reshape(3, 2)), np.array([2, 0]))
    assert rows.means.tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert rows.residuals is None
    assert rows.weights is None


def test_proportional_counts_are_one_multinomial_point():
    rows = as_family("multinomial").observe(np.array([[1.0, 2.0], [10.0, 20.0], [3.0, 1.0]]))
    points, point_of_row = collapse(rows)
    assert point_of_row[0] == point_of_row[1] != point_of_row[2]
    assert points.weights[point_of_row[0]] == 33.0
