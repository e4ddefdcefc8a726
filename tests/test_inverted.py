"""Bounds for sparse clusters, their segments and the inverted index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.record import free
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.segments import compact, lacks_room
from fastrbhc._engine.clusters.sparse_rows import canonical, sparse_rows
from fastrbhc._engine.geometry.contract import dissimilarity, merge
from fastrbhc._engine.geometry.sparse import bound, sparse_geometry
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.inverted import inverted
from fastrbhc._engine.neighbors.postings import begin_scan, run_bounds
from fastrbhc._engine.threads import Threads
from fastrbhc.families import Bernoulli, Multinomial, Poisson

FAMILIES = [Poisson(), Poisson(0.0), Poisson(5.0), Multinomial(), Multinomial(0.9), Bernoulli()]


def some_clusters(family, seed, n=40, d=30, merges=15, largest=50.0):
    """Clusters of very different weights, and the entries of each as a dense row of sums."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.2, rng.integers(1, 4, (n, d)), 0)
    X = X * np.exp(rng.uniform(0.0, np.log(largest), (n, 1))).round()
    X[:, 0] += X.sum(axis=1) == 0
    X = np.minimum(X, 1) if isinstance(family, Bernoulli) else X
    rows = family.observe(sparse.csr_array(X.astype(float)))
    rows = rows.weighted(rng.uniform(0.5, 2.0, n))
    geometry = sparse_geometry(family, d)
    clusters = clusters_of_points(geometry, rows, padded=True)
    scratch = new_scratch(geometry, 0)
    for _ in range(merges):
        if lacks_room(clusters.segments):
            close_gaps(clusters)
        i, j = rng.choice(np.flatnonzero(clusters.weights[:n] > 0.0), 2, replace=False)
        merge(geometry, clusters, int(i), int(j), scratch)
    return geometry, clusters, scratch


def close_gaps(clusters):
    """Compact the pool without moving clusters to other slots."""
    n = clusters.n_slots
    clusters.segments.places[:n][np.isnan(clusters.weights[:n])] = 0
    compact(clusters.segments, n)


def alive_slots(clusters):
    return np.flatnonzero(clusters.weights > 0.0)


def sums_of(clusters, d):
    dense = np.zeros((clusters.weights.size, d))
    for slot, (start, stop) in enumerate(clusters.segments.places):
        dense[slot, clusters.segments.columns[start:stop]] = clusters.segments.sums[start:stop]
    return dense


@kernel
def bounds_to_all(index, geometry, clusters, i, scratch):
    begin_scan(index.postings, clusters, i, scratch)
    run_bounds(index.postings, geometry, clusters, i, 0, clusters.n_slots, scratch)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@given(st.integers(0, 10**6))
def test_bounds_are_not_above_d_and_close_to_it(family, seed):
    geometry, clusters, scratch = some_clusters(family, seed)
    index = inverted(geometry, clusters, Threads([scratch]), False)
    alive, ratios = alive_slots(clusters), []
    for i in alive[:6]:
        bounds_to_all(index, geometry, clusters, int(i), scratch)
        bounds = scratch.matrix[0].copy()
        for j in alive:
            if j == i:
                continue
            d = dissimilarity(geometry, clusters, int(i), int(j), np.inf, scratch)
            assert bounds[j] <= d
            assert bound(geometry, clusters, int(i), int(j)) <= d
            ratios.append(bounds[j] / d if d > 0.0 else 1.0)
    # Tangents suit small smoothings.
    if family in (Poisson(), Poisson(0.0), Multinomial(), Bernoulli()):
        assert np.median(ratios) > 0.9


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_d_is_symmetric_to_the_bit(family):
    geometry, clusters, scratch = some_clusters(family, 1)
    alive = [int(slot) for slot in alive_slots(clusters)]
    for i in alive:
        for j in alive:
            first = dissimilarity(geometry, clusters, i, j, np.inf, scratch)
            assert first == dissimilarity(geometry, clusters, j, i, np.inf, scratch)


def test_unions_have_the_sums_of_their_parts():
    geometry, clusters, scratch = some_clusters(Poisson(), 2, merges=0)
    before, weights = sums_of(clusters, 30), clusters.weights.copy()
    merge(geometry, clusters, 4, 9, scratch)
    np.testing.assert_array_equal(sums_of(clusters, 30)[4], before[4] + before[9])
    assert clusters.weights[4] == weights[4] + weights[9]
    assert np.isnan(clusters.weights[9])


def test_compaction_keeps_all_entries():
    _, clusters, _ = some_clusters(Poisson(), 3, merges=12)
    n = clusters.n_slots
    clusters.segments.places[:n][np.isnan(clusters.weights[:n])] = 0
    before, end = sums_of(clusters, 30), int(clusters.segments.end[0])
    close_gaps(clusters)
    np.testing.assert_array_equal(sums_of(clusters, 30)[:n], before[:n])
    lengths = np.diff(clusters.segments.places[:n], axis=1).sum()
    assert clusters.segments.end[0] == lengths < end


def test_free_slots_have_no_bound():
    geometry, clusters, scratch = some_clusters(Poisson(), 4, merges=0)
    index = inverted(geometry, clusters, Threads([scratch]), False)
    free(clusters, 7)
    bounds_to_all(index, geometry, clusters, 3, scratch)
    assert np.isnan(scratch.matrix[0][7])


def test_canonical_form_leaves_the_matrix_alone():
    X = sparse.csr_array(
        (np.array([1.0, 2.0, 0.0, 3.0]), np.array([2, 2, 0, 1]), np.array([0, 3, 4]))
    )
    data, indices = X.data.copy(), X.indices.copy()
    found = canonical(X)
    np.testing.assert_array_equal(found.toarray(), [[0.0, 0.0, 3.0], [0.0, 3.0, 0.0]])
    assert found.nnz == 2
    np.testing.assert_array_equal(X.data, data)
    np.testing.assert_array_equal(X.indices, indices)
    ordered = sparse.csr_array(np.eye(3))
    assert canonical(ordered) is ordered


def test_equal_rows_are_adjacent_and_counted():
    X = sparse.csr_array(np.array([[1.0, 0, 2], [0, 1, 0], [2, 0, 4], [1, 0, 2]]))
    order, same = sparse_rows(X, np.array([3.0, 1.0, 6.0, 3.0])).order_by_value()
    assert same.sum() == 2
    groups = np.cumsum(~same)
    assert {tuple(sorted(order[groups == g].tolist())) for g in (1, 2)} == {(1,), (0, 2, 3)}
