"""Merges within a cell, as far as nothing outside can be nearer."""

import numpy as np
import pytest

import fastrbhc
from fastrbhc._engine.agglomeration.cells import (
    Border,
    border_of,
    joined_border,
    merge_locally,
)
from fastrbhc._engine.clusters.kd_cells import siblings
from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.planning import execution
from fastrbhc.families import as_family, geometry_of


def halves(X, family):
    """The points of the left half, and the border of the right one."""
    rows = as_family(family).observe(X)
    left = rows.means[:, 0] <= np.median(rows.means[:, 0])
    inside, outside = (rows.take(np.flatnonzero(half)) for half in (left, ~left))
    return inside, [border_of(outside)], geometry_of(as_family(family), rows)


@pytest.mark.parametrize("family", ["ward", "poisson"])
def test_rows_are_merged_or_left(family):
    X = np.random.default_rng(0).random((400, 2)) * 9
    points, others, geometry = halves(X, family)
    found = merge_locally(geometry, points, others, as_family(family).reducible)
    n, m = points.shape[0], found.merges.heights.size
    assert found.nodes.size + m == n
    assert found.points.weights.sum() == n
    nodes = np.concatenate([found.merges.children.ravel(), found.nodes])
    np.testing.assert_array_equal(np.sort(nodes), np.arange(n + m))  # each once


def test_a_cluster_near_the_border_is_left():
    points = Observations(np.array([[0.0], [1.0], [3.0], [4.2]]))
    others = [Border(np.array([5.0]), np.array([9.0]), 1.0)]
    geometry = as_family("ward").geometry(1)
    for reducible in (True, False):
        found = merge_locally(geometry, points, others, reducible)
        # 4.2 is nearer to 5, and is the neighbour of 3.
        assert found.merges.children.tolist() == [[0, 1]]
        assert found.nodes.tolist() == [4, 2, 3]


def test_little_is_left_of_large_cells():
    # In two dimensions it grows like the square root of the rows.
    points, others, geometry = halves(np.random.default_rng(6).random((40_000, 2)), "ward")
    found = merge_locally(geometry, points, others, True)
    assert found.nodes.size < 0.05 * points.shape[0]


def test_a_single_point_and_none():
    others = [Border(np.array([5.0]), np.array([9.0]), 1.0)]
    for n in (0, 1):
        found = merge_locally(
            as_family("ward").geometry(1), Observations(np.ones((n, 1))), others, True
        )
        assert found.nodes.tolist() == list(range(n))
        assert found.points.all_weights().tolist() == [1.0] * n


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


@pytest.mark.parametrize("n_cells", [1, 2, 8])
def test_siblings_are_all_other_cells(n_cells):
    for cell in range(n_cells):
        others = [other for first, last in siblings(n_cells, cell) for other in range(first, last)]
        assert sorted([*others, cell]) == list(range(n_cells))


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
