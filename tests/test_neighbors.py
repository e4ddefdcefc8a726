"""Backends: nearest clusters, against all dissimilarities; and the tie rule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from strategies import FAMILIES, continuous_rows, gridded_rows

from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.record import copy_slot, free
from fastrbhc._engine.clusters.scratch import GROUP, new_scratch
from fastrbhc._engine.geometry.contract import dissimilarity, for_clusters, merge
from fastrbhc._engine.jit import PLAIN_PYTHON, kernel
from fastrbhc._engine.neighbors.backends import BACKENDS
from fastrbhc._engine.neighbors.contract import UNKNOWN, Queries, Search, as_hint, hint_of, look_up
from fastrbhc._engine.neighbors.ordering import comes_before, rank_of_union, ranks_before
from fastrbhc._engine.records import Job
from fastrbhc._engine.threads import Threads
from fastrbhc.families import as_family

pytestmark = pytest.mark.fast

every_family = pytest.mark.parametrize("family", FAMILIES)
every_backend = pytest.mark.parametrize(
    "neighbors", [name for name, backend in BACKENDS.items() if not backend.sparse]
)


@kernel
def all_values(geometry, clusters, scratch, values):
    for i in range(clusters.n_slots):
        for j in range(clusters.n_slots):
            values[i, j] = dissimilarity(geometry, clusters, i, j, np.inf, scratch)


@kernel
def merge_into_new_slot(geometry, clusters, i, j, scratch):
    merge(geometry, clusters, i, j, scratch)
    copy_slot(clusters, i, clusters.n_slots)
    free(clusters, i)
    clusters.n_slots += 1


def clusters_and_index(family, X, neighbors, n_merges):
    """Clusters with some unions, in slots after all others, and an index over them."""
    family, backend = as_family(family), BACKENDS[neighbors]
    geometry = family.geometry(X.shape[1])
    clusters = statistics.clusters_of_points(
        geometry, family.observe(X), padded=True, mirrored=backend.scans, by_cluster=True
    )
    geometry, scratch = for_clusters(geometry, clusters), new_scratch(geometry, X.shape[1])
    rng = np.random.default_rng(len(X))
    for _ in range(n_merges):
        alive = np.flatnonzero(~np.isnan(clusters.weights[: clusters.n_slots]))
        i, j = (int(slot) for slot in rng.choice(alive, 2, replace=False))
        merge_into_new_slot(geometry, clusters, i, j, scratch)
    index = backend.make_index(geometry, clusters, Threads([scratch]), False)
    return geometry, clusters, index, scratch


def nearest_of(values, ranks, i, others, cutoff):
    """By value, then by rank: (d, slot), or the cutoff and −1 if nothing is nearer."""
    ordered = sorted((values[i, j], ranks[j], j) for j in others if values[i, j] < cutoff)
    return (ordered[0][0], ordered[0][2]) if ordered else (cutoff, -1)


@every_backend
@every_family
@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_neighbours_that_are_looked_up(family, neighbors, tied):
    """More queries than scan a block together, with good hints, bad hints and none."""
    rng = np.random.default_rng(0)
    n = 24 if PLAIN_PYTHON else GROUP + 60
    X = continuous_rows(family, n, 3, seed=0)
    if tied:
        X = np.unique(gridded_rows(rng.integers(0, 4, size=(n, 3)), family), axis=0)
    geometry, clusters, index, scratch = clusters_and_index(family, X, neighbors, n_merges=n // 5)
    size = clusters.n_slots
    values = np.empty((size, size))
    all_values(geometry, clusters, scratch, values)
    alive = np.flatnonzero(~np.isnan(clusters.weights[:size]))
    middle = float(np.median(values[np.ix_(alive, alive)]))
    for older, cutoff in itertools.product((False, True), (np.inf, middle, 0.0)):
        capacity = clusters.weights.size
        queries = Queries(
            queue=rng.permutation(alive),
            values=np.full(capacity, np.nan),
            neighbors=np.full(capacity, -1),
            nearest=np.full(3, np.nan),
            cutoff=cutoff,
            halved=older,
        )
        for i in alive:
            hints = [UNKNOWN, as_hint(-1), *(as_hint(j) for j in alive if j != i)]
            queries.neighbors[i] = rng.choice(hints)
        job = Job(look_up, Search(index, geometry, clusters, queries), scratch)
        job(0, 5, scratch)
        job(5, alive.size, scratch)
        for i in alive:
            found = queries.values[i], queries.neighbors[i]
            complete = nearest_of(values, clusters.ranks, i, alive[alive != i], cutoff)
            if older:  # the younger ones may be left out
                some = nearest_of(values, clusters.ranks, i, alive[alive < i], cutoff)
                assert found in (some, complete)
            else:
                assert found == complete


def test_hints_and_slots_are_told_apart():
    assert [hint_of(as_hint(slot)) for slot in (-1, 0, 7)] == [-1, 0, 7]
    assert all(as_hint(slot) < 0 for slot in (-1, 0, 7))
    assert hint_of(UNKNOWN) == -1


def test_of_equally_near_neighbours_the_one_of_smaller_rank():
    for near, other in itertools.product(itertools.product((0.5, 1.0), (0, 3)), repeat=2):
        assert comes_before(*near, *other) == (near < other)
    assert not comes_before(np.nan, 0, 1.0, 1)


def test_of_equally_near_pairs_the_one_of_smaller_ranks():
    pairs = list(itertools.combinations(range(5), 2))
    for a, b in itertools.product(pairs, repeat=2):
        for first, second in itertools.product((a, a[::-1]), (b, b[::-1])):
            assert ranks_before(*first, *second) == (a < b)


def test_a_union_has_the_larger_rank():
    assert rank_of_union(3, 8) == rank_of_union(8, 3) == 8
