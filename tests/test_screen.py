"""The screen in single precision: no near pair is lost, and few distant pairs pass."""

from __future__ import annotations

import numpy as np
import pytest

from fastrbhc import families
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._engine.clusters.record import free
from fastrbhc._engine.clusters.scratch import BLOCK, GROUP, new_scratch
from fastrbhc._engine.geometry.contract import (
    ALL_WANTED,
    candidate_pairs,
    dissimilarity,
    merge,
    prepare_queries,
)
from fastrbhc._engine.geometry.float32_screen import QUERIES, STRIP, near, screen
from fastrbhc._engine.jit import kernel


@kernel
def let_through(geometry, clusters, queue, cutoffs, scratch, passed):
    """Which pairs of queued slots and all slots may be near."""
    n = clusters.weights.size
    for first in range(0, queue.size, GROUP):
        last = min(first + GROUP, queue.size)
        prepare_queries(geometry, clusters, queue, first, last, scratch)
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            count = candidate_pairs(
                geometry, clusters, queue, first, last, ALL_WANTED, start, stop, cutoffs, scratch
            )
            for pair in scratch.pairs[:count]:
                passed[first + pair // BLOCK, start + pair % BLOCK] = True


@kernel
def all_values(geometry, clusters, scratch, values):
    for i in range(clusters.weights.size):
        for j in range(clusters.weights.size):
            values[i, j] = dissimilarity(geometry, clusters, i, j, np.inf, scratch)


@kernel
def free_slot(clusters, i):
    free(clusters, i)


@kernel
def merge_slots(geometry, clusters, i, j, scratch):
    merge(geometry, clusters, i, j, scratch)


@kernel
def bits_of(block, n_slots, queries, n_queries, bits):
    screen(block, n_slots, queries, n_queries, bits)


def clusters_of(X, weights=None, variance=1.0):
    family = families.SphericalGaussian(variance)
    geometry = family.geometry(X.shape[1])
    clusters = statistics.clusters_of_points(geometry, weighted(family.observe(X), weights))
    return geometry, clusters, new_scratch(geometry, X.shape[1])


def passing(geometry, clusters, scratch, cutoffs):
    n = clusters.weights.size
    passed = np.zeros((n, n), bool)
    let_through(geometry, clusters, np.arange(n), cutoffs, scratch, passed)
    return passed


def assert_none_is_lost(geometry, clusters, scratch, rng):
    """With each value in turn as the cutoff, the pair that has it must pass."""
    n = clusters.weights.size
    values = np.empty((n, n))
    all_values(geometry, clusters, scratch, values)
    alive = ~np.isnan(clusters.weights)
    apart = np.outer(alive, alive) & ~np.eye(n, dtype=bool)
    ordered = np.sort(np.where(apart, values, np.inf), axis=1)
    for place in (0, 1, 2, 5, *rng.integers(0, max(1, alive.sum() - 1), 3)):
        cutoffs = ordered[:, min(place, n - 1)]
        passed = passing(geometry, clusters, scratch, cutoffs)
        within = apart & (values <= cutoffs[:, np.newaxis])
        assert passed[within].all()
        assert not passed[:, ~alive].any()
        assert not passed[~alive].any() or np.isinf(cutoffs[~alive]).all()


WEIGHTS = {
    "equal": lambda rng, n: None,
    "alike": lambda rng, n: rng.uniform(1.0, 3.0, n),
    "far apart": lambda rng, n: 10.0 ** rng.uniform(-6.0, 12.0, n),
    "beyond single precision": lambda rng, n: 10.0 ** rng.uniform(-60.0, 60.0, n),
}
ROWS = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "offset": lambda rng, n, d: 1e8 + rng.normal(size=(n, d)),
    "on a grid": lambda rng, n, d: rng.integers(0, 2, (n, d)).astype(float),
    "copies": lambda rng, n, d: rng.normal(size=(5, d))[rng.integers(0, 5, n)],
    "an outlier": lambda rng, n, d: np.vstack([np.full(d, 1e6), rng.normal(size=(n - 1, d))]),
    "tight groups": lambda rng, n, d: (
        rng.normal(size=(4, d))[rng.integers(0, 4, n)] + 1e-5 * rng.normal(size=(n, d))
    ),
    "a sphere": lambda rng, n, d: (lambda Z: Z / np.linalg.norm(Z, axis=1)[:, np.newaxis])(
        rng.normal(size=(n, d))
    ),
    "tiny": lambda rng, n, d: 1e-150 * rng.normal(size=(n, d)),
    "huge": lambda rng, n, d: 1e140 * rng.normal(size=(n, d)),
}


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_no_near_pair_is_lost(rows, weights):
    rng = np.random.default_rng(0)
    for n, d in [(70, 1), (300, 3), (70, 10), (70, 50), (40, 1000)]:
        X = rows(rng, n, d)
        geometry, clusters, scratch = clusters_of(X, weights(rng, n), rng.choice([1e-3, 1.0, 40.0]))
        assert_none_is_lost(geometry, clusters, scratch, rng)
        for slot in rng.choice(n, n // 5, replace=False):
            free_slot(clusters, slot)
        assert_none_is_lost(geometry, clusters, scratch, rng)
        slots = np.flatnonzero(~np.isnan(clusters.weights))
        for i, j in slots[: slots.size // 2 * 2].reshape(-1, 2)[::2]:
            merge_slots(geometry, clusters, i, j, scratch)
        assert_none_is_lost(geometry, clusters, scratch, rng)


def test_a_pair_just_beyond_the_cutoff_in_single_precision():
    """The smallest steps between doubles: many cutoffs, each the exact value of a pair."""
    rng = np.random.default_rng(1)
    X = 1.0 + 1e-9 * np.arange(200.0)[:, np.newaxis] * rng.normal(size=12)
    X[0] = 1.5
    assert_none_is_lost(*clusters_of(X), rng)


def test_cutoffs_of_zero_and_infinity():
    rng = np.random.default_rng(2)
    X = np.repeat(rng.normal(size=(30, 12)), 3, axis=0)
    geometry, clusters, scratch = clusters_of(X)
    same = np.arange(90)[:, np.newaxis] // 3 == np.arange(90) // 3
    at_zero = passing(geometry, clusters, scratch, np.zeros(90))
    np.testing.assert_array_equal(at_zero, same)
    free_slot(clusters, 7)
    everywhere = passing(geometry, clusters, scratch, np.full(90, np.inf))
    assert np.delete(everywhere, 7, axis=1)[np.arange(90) != 7].all()
    assert not everywhere[:, 7].any()


@pytest.mark.parametrize("n_features", [10, 50])
def test_few_far_pairs_pass(n_features):
    """A screen that passes everything would be valid."""
    rng = np.random.default_rng(3)
    n = 2 * BLOCK + 5
    geometry, clusters, scratch = clusters_of(rng.normal(size=(n, n_features)))
    values = np.empty((n, n))
    all_values(geometry, clusters, scratch, values)
    np.fill_diagonal(values, np.inf)
    cutoffs = values.min(axis=1)
    passed = passing(geometry, clusters, scratch, cutoffs)
    within = values <= 1.001 * cutoffs[:, np.newaxis]
    assert not (passed & ~within & ~np.eye(n, dtype=bool)).any()


@pytest.mark.fast
def test_bits_are_those_of_plain_python():
    rng = np.random.default_rng(4)
    block = rng.integers(-3, 4, (7, 5 * STRIP)).astype(np.float32)  # sums of these are exact
    queries = rng.integers(-3, 4, (2 * QUERIES, 9)).astype(np.float32)
    block[1, 3] = np.nan
    queries[5, -3] = np.inf
    bits = np.zeros((2, 5), np.int64)
    bits_of(block, 5 * STRIP, queries, 2 * QUERIES, bits)
    for four in range(2):
        for strip in range(5):
            assert bits[four, strip] == near(block, strip * STRIP, queries, four * QUERIES)
