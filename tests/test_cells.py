"""Trees made cell by cell are those of `linkage`, to the bit."""

import numpy as np
import pytest

import fastrbhc
from fastrbhc._engine.agglomeration.cells import (
    Border,
    Cell,
    border_of,
    joined_border,
    merge_in_cells,
    merge_locally,
)
from fastrbhc._engine.clusters.duplicates import distinct_points, with_repeated_rows
from fastrbhc._engine.clusters.kd_cells import splits_of
from fastrbhc._engine.clusters.observations import Observations, weighted
from fastrbhc._engine.planning import execution
from fastrbhc.families import as_family, geometry_of


def by_cells(X, n_cells, weights=None, n_threads=1):
    """Merges and heights of Ward's tree, from cells."""
    family = as_family("ward")
    rows = weighted(family.observe(X), weights)
    geometry = geometry_of(family, rows)
    points, point_of_row = distinct_points(geometry, rows)
    merges = merge_in_cells(geometry, points, splits_of(X[:100], n_cells), n_threads)
    return with_repeated_rows(*merges, point_of_row, points.shape[0])[:2]


def compare(X, n_cells, weights=None, n_threads=1):
    reference = fastrbhc.linkage(X, "ward", sample_weight=weights)
    merges, heights = by_cells(X, n_cells, weights, n_threads)
    np.testing.assert_array_equal(np.sort(merges, axis=1), np.sort(reference.merges, axis=1))
    np.testing.assert_array_equal(heights, reference.heights)


@pytest.mark.parametrize("n_cells", [1, 2, 4, 16])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_tree_of_linkage(d, n_cells):
    compare(np.random.default_rng(d).normal(size=(500, d)), n_cells)


@pytest.mark.parametrize("n_cells", [2, 8])
def test_ties_and_repeated_rows_on_borders(n_cells):
    for seed in range(5):
        X = np.random.default_rng(seed).integers(-6, 6, (400, 2)).astype(float)
        compare(X, n_cells)


@pytest.mark.parametrize("n_cells", [2, 8])
def test_weights(n_cells):
    rng = np.random.default_rng(3)
    compare(rng.normal(size=(300, 2)), n_cells, rng.exponential(size=300))
    compare(rng.normal(size=(300, 2)), n_cells, 10.0 ** rng.uniform(-6, 6, 300))


def test_values_far_from_zero():
    compare(1e6 + np.random.default_rng(4).normal(size=(400, 2)), 8)


def test_cells_that_are_empty_or_one_row():
    X = np.concatenate([np.zeros((50, 1)), np.arange(1.0, 4.0)[:, None]])
    compare(X, 16)
    compare(np.zeros((20, 2)), 4)
    compare(np.array([[0.0, 1.0]] * 3 + [[5.0, 1.0]]), 8)


def test_threads_make_no_difference():
    compare(np.random.default_rng(5).normal(size=(3000, 2)), 4, n_threads=2)


def test_little_is_left_of_large_cells():
    # In two dimensions it grows like the square root of the rows.
    X = np.random.default_rng(6).random((40_000, 2))
    family = as_family("ward")
    rows = family.observe(X)
    half = X[:, 0] <= 0.5
    points = rows.take(np.flatnonzero(half))
    n = points.shape[0]
    others = [border_of(rows.take(np.flatnonzero(~half)))]
    cell = Cell(points, np.arange(n), np.arange(n))
    found = merge_locally(geometry_of(family, rows), cell, others)
    assert found.left.keys.size < 0.05 * n
    assert found.left.keys.size + found.merges.heights.size == n
    assert found.left.points.weights.sum() == n


def test_borders():
    points = Observations(np.array([[1.0, 5.0], [3.0, 4.0]]), weights=np.array([2.0, 0.5]))
    border, nothing = border_of(points), border_of(points.take(np.arange(0)))
    assert border.lowest.tolist() == [1.0, 4.0]
    assert border.highest.tolist() == [3.0, 5.0]
    assert border.lightest == 0.5
    joined = joined_border([border, nothing, Border(np.zeros(2), np.ones(2), 1.0)])
    assert joined.lowest.tolist() == [0.0, 0.0]
    assert joined.highest.tolist() == [3.0, 5.0]
    assert joined.lightest == 0.5


# Many points


def in_cells_and_not(monkeypatch, X, **options):
    """Trees of `linkage` with cells and without; whether there were any."""
    reference = fastrbhc.linkage(X, **options)
    divided = []

    def noting(points):
        divided.append(points.shape[0])
        return planned(points)

    planned = execution.planned_cells
    with monkeypatch.context() as patched:
        patched.setattr("fastrbhc._build.planned_cells", noting)
        for d in execution.MANY_POINTS:
            patched.setitem(execution.MANY_POINTS, d, 1_000)
        computed = fastrbhc.linkage(X, **options)
    for name in ("merges", "heights", "weights", "steps"):
        np.testing.assert_array_equal(getattr(computed, name), getattr(reference, name))
    return bool(divided)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_many_points_are_merged_in_cells(monkeypatch, d, n_jobs):
    rng = np.random.default_rng(d)
    X, weights = rng.random((6_000, d)), rng.integers(0, 4, 6_000) * 0.5
    assert in_cells_and_not(monkeypatch, X, family="ward", n_jobs=n_jobs)
    assert in_cells_and_not(monkeypatch, X, family="log_normal", n_jobs=n_jobs, progress=True)
    assert in_cells_and_not(monkeypatch, X, family="ward", sample_weight=weights, audit=True)
    lattice = rng.integers(0, 6_000 if d == 1 else 60, (6_000, d)).astype(float)
    assert in_cells_and_not(monkeypatch, lattice, family="ward", n_jobs=n_jobs)


def test_not_all_points_are_divided(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((3_000, 3)) + 0.1
    for family in ("von_mises_fisher", "poisson"):
        assert not in_cells_and_not(monkeypatch, X, family=family)
    assert not in_cells_and_not(monkeypatch, rng.random((3_000, 4)), family="ward")
    options = {"threshold": 0.01}, {"algorithm": "nn_chain"}, {"neighbors": "brute"}
    for option in (*options, {"sample_weight": 10.0 ** rng.uniform(-6, 0, 3_000)}):
        assert not in_cells_and_not(monkeypatch, X, family="ward", **option)
