"""Bounds for sparse proportions: the part of 1 − y."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.clusters.segments import lacks_room
from fastrbhc._engine.geometry.contract import dissimilarity, merge
from fastrbhc._engine.geometry.sparse import bound, bound_from_spread, sparse_geometry
from fastrbhc._engine.geometry.sparse_entropy import gather_up, spread
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.inverted import inverted
from fastrbhc._engine.neighbors.postings import begin_scan, run_bounds
from fastrbhc._engine.threads import Threads
from fastrbhc.families import Bernoulli

SMOOTHINGS = [0.0, 1e-12, 0.1, 0.5, 0.99]
N, D = 30, 25


def some_clusters(smoothing, seed, spread_of_weights, binary):
    """Clusters with a column of ones only, rows of ones only and rows of one entry."""
    rng = np.random.default_rng(seed)
    X = (rng.random((N, D)) < 0.25) * (1.0 if binary else rng.random((N, D)))
    X[:, 3], X[:4], X[4:8] = 1.0, 1.0, np.eye(D)[:4]
    family = Bernoulli(smoothing)
    weights = 10.0 ** rng.uniform(-spread_of_weights, spread_of_weights, N)
    rows = family.observe(sparse.csr_array(X)).weighted(weights)
    geometry = sparse_geometry(family, D)
    clusters = clusters_of_points(geometry, rows, padded=True)
    scratch = new_scratch(geometry, 0)
    for _ in range(10):
        if lacks_room(clusters.segments):
            break
        i, j = rng.choice(np.flatnonzero(clusters.weights[:N] > 0.0), 2, replace=False)
        merge(geometry, clusters, int(i), int(j), scratch)
    return geometry, clusters, scratch


@kernel
def all_bounds(index, geometry, clusters, i, scratch, out):
    """Bounds from slot i to all others: of a run, by spreading and by walking."""
    begin_scan(index.postings, clusters, i, scratch)
    run_bounds(index.postings, geometry, clusters, i, 0, clusters.n_slots, scratch)
    for j in range(clusters.n_slots):
        out[0, j] = scratch.matrix[0, j]
    spread(clusters, i, geometry.scale, scratch)
    for j in range(clusters.n_slots):
        if clusters.weights[j] > 0.0:
            out[1, j] = bound_from_spread(geometry, clusters, i, j, scratch)
            out[2, j] = bound(geometry, clusters, i, j)
            out[3, j] = dissimilarity(geometry, clusters, i, j, np.inf, scratch)
    gather_up(clusters, i, scratch)


def bounds_and_values(geometry, clusters, scratch):
    """(3, …) bounds and d of all pairs."""
    index, found = inverted(geometry, clusters, Threads([scratch]), False), []
    alive = np.flatnonzero(clusters.weights[:N] > 0.0)
    for i in alive:
        out = np.full((4, N), np.nan)
        all_bounds(index, geometry, clusters, int(i), scratch, out)
        found.append(out[:, alive[alive != i]])
    values = np.concatenate(found, axis=1)
    return values[:3], values[3]


@pytest.mark.parametrize("spread_of_weights", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@given(st.integers(0, 10**6), st.booleans())
def test_bounds_are_not_above_d(smoothing, spread_of_weights, seed, binary):
    bounds, d = bounds_and_values(*some_clusters(smoothing, seed, spread_of_weights, binary))
    assert (bounds <= d).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 0.1, 0.3])
def test_bounds_are_close_to_d(smoothing):
    bounds, d = bounds_and_values(*some_clusters(smoothing, 1, 0.5, True))
    apart = d > 0.01 * np.median(d)
    in_run, by_spreading, by_walking = (bounds / np.where(apart, d, 1.0))[:, apart]
    assert by_walking.min() > 1.0 - 1e-4
    assert min(np.median(in_run), np.median(by_spreading)) > 0.95


def test_other_families_store_no_more():
    from fastrbhc._engine.geometry.contract import storage
    from fastrbhc.families import Poisson

    more = storage(sparse_geometry(Bernoulli(), D), D).scan_features
    assert storage(sparse_geometry(Poisson(), D), D).scan_features < more
