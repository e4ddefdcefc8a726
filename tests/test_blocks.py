"""Scans by blocks: the same tree as by scanning all slots, to the bit, and boxes that hold them."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from strategies import FAMILIES, REDUCIBLE, continuous_rows, gridded_rows
from trees import same_tree

from fastrbhc import families, linkage
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import (
    block_bounds,
    dissimilarity,
    for_clusters,
    merge,
)
from fastrbhc._engine.jit import PLAIN_PYTHON, kernel
from fastrbhc._engine.neighbors.block_boxes import RUN
from fastrbhc._engine.neighbors.blocks import Blocks, _outward, blocks, scan
from fastrbhc._engine.neighbors.brute import Brute
from fastrbhc._engine.neighbors.contract import merged, refit, refitting, touch
from fastrbhc._engine.simd import LANES
from fastrbhc._engine.threads import Threads
from fastrbhc.families import as_family

# The function of the same name hides the module in its package.
blocks_module = importlib.import_module("fastrbhc._engine.neighbors.blocks")
float32_means = importlib.import_module("fastrbhc._engine.geometry.float32_means")

every_family = pytest.mark.parametrize("family", FAMILIES)
every_way = pytest.mark.parametrize(
    ("family", "algorithm"),
    [(family, "greedy") for family in FAMILIES] + [(family, "levels") for family in REDUCIBLE],
)
N = 70 if PLAIN_PYTHON else 1_500


def always_by_blocks(monkeypatch):
    monkeypatch.setattr(blocks_module, "FEWEST", 2)
    monkeypatch.setattr(blocks_module, "_MOST_LEFT", np.inf)
    monkeypatch.setattr(blocks_module, "_MOST_LEFT_LATER", np.inf)


def grouped(family, n, d, seed):
    """Rows near one of eight others."""
    rng = np.random.default_rng(seed)
    centres = continuous_rows(family, 8, d, seed=seed)
    rows = continuous_rows(family, n, d, seed=seed + 1)
    return 0.9 * centres[rng.integers(0, 8, n)] + 0.1 * rows


def assert_same_by_blocks(monkeypatch, X, family, **options):
    reference = linkage(X, family, neighbors="brute", n_jobs=1, **options)
    for way in (always_by_blocks, scan_all_from_the_first_rebuild):
        with monkeypatch.context() as patch:
            way(patch)
            for n_jobs in (1, 2):
                computed = linkage(X, family, neighbors="brute", n_jobs=n_jobs, **options)
                assert same_tree(computed, reference)


def scan_all_from_the_first_rebuild(monkeypatch):
    monkeypatch.setattr(blocks_module, "FEWEST", 2)
    monkeypatch.setattr(blocks_module, "_MOST_LEFT", np.inf)
    monkeypatch.setattr(blocks_module, "_MOST_LEFT_LATER", -1.0)


# The same tree


@pytest.mark.fast
@every_way
def test_the_tree_is_that_of_a_scan_of_all_slots(family, algorithm, monkeypatch):
    rng = np.random.default_rng(1)
    X = grouped(family, N, 10, seed=1)
    weights = rng.uniform(0.1, 10.0, N)
    duplicated = X[rng.integers(0, N // 4, N)]
    tied = np.unique(gridded_rows(rng.integers(0, 3, (N // 2, 4)), family), axis=0)
    for rows, used in ((X, None), (X, weights), (duplicated, weights), (tied, None)):
        assert_same_by_blocks(monkeypatch, rows, family, algorithm=algorithm, sample_weight=used)


@every_way
def test_with_a_threshold(family, algorithm, monkeypatch):
    X = grouped(family, N, 10, seed=2)
    heights = linkage(X, family, algorithm=algorithm).heights
    for quantile in (0.3, 0.95):
        threshold = np.quantile(heights, quantile)
        assert_same_by_blocks(monkeypatch, X, family, algorithm=algorithm, threshold=threshold)


@pytest.mark.parametrize("family", ["ward", "poisson"])
def test_by_a_chain(family, monkeypatch):
    X = grouped(family, N // 2, 10, seed=3)
    assert_same_by_blocks(monkeypatch, X, family, algorithm="nn_chain")


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_where_unions_are_undone(family, monkeypatch):
    """Unions attract what is near to neither part, so that batches are not fully confirmed."""
    rng = np.random.default_rng(4)
    X = np.abs(np.concatenate([rng.normal(size=(N // 2, 3)) * s + 5.0 for s in (0.01, 2.0)]))
    assert_same_by_blocks(monkeypatch, X, family, algorithm="greedy")


@pytest.mark.parametrize("scale", [1e-100, 1e-60, 1.0, 1e60, 1e118])
def test_values_of_any_size(scale, monkeypatch):
    X = scale * grouped("ward", N // 3, 9, seed=5)
    assert_same_by_blocks(monkeypatch, X, "ward")


@pytest.mark.skipif(PLAIN_PYTHON, reason="thousands of rows")
def test_enough_rows_to_be_put_in_order_again():
    X = grouped("ward", 9_000, 12, seed=6)
    reference = linkage(X, "ward", neighbors="kd_tree")
    assert same_tree(linkage(X, "ward", neighbors="brute"), reference)


# Boxes


@kernel
def bounds_of(index, geometry, clusters, i, g, scratch, bounds):
    near = block_bounds(geometry, clusters, i, index.boxes, g, np.inf, scratch)
    for lane in range(LANES):
        bounds[lane] = scratch.bounds[lane] if (near >> lane) & 1 else np.inf


@kernel
def value_of(geometry, clusters, i, j, scratch):
    return dissimilarity(geometry, clusters, i, j, np.inf, scratch)


@kernel
def merge_slots(index, geometry, clusters, i, j, one_by_one, scratch):
    merge(geometry, clusters, i, j, scratch)
    if one_by_one:
        merged(index, clusters, i, j)
    else:
        touch(index, i, j)


def in_blocks(family, X, weights):
    family, threads = as_family(family), None
    geometry = family.geometry(X.shape[1])
    points = weighted(family.observe(X), weights)
    clusters = statistics.clusters_of_points(geometry, points, padded=True, by_cluster=True)
    scratch = new_scratch(geometry, X.shape[1])
    threads = Threads([scratch])
    index = blocks(geometry, clusters, threads)
    return index, for_clusters(geometry, clusters), clusters, scratch, threads


def assert_bounded(index, geometry, clusters, scratch, queries):
    """No bound of a run is above d to a cluster in it; returns how many are above 0."""
    n, bounds, above = clusters.n_slots, np.empty(LANES), 0
    for i in queries:
        for g in range(-(-n // (LANES * RUN))):
            bounds_of(index, geometry, clusters, i, g, scratch, bounds)
            for j in range(LANES * RUN * g, min(n, LANES * RUN * (g + 1))):
                bound = bounds[(j // RUN) % LANES]
                if j != i and not np.isnan(clusters.weights[j]):
                    assert bound <= value_of(geometry, clusters, i, j, scratch)
                    above += bound > 0.0
    return above


@every_family
def test_bounds_are_not_above_d(family):
    rng = np.random.default_rng(7)
    n = 100 if PLAIN_PYTHON else 700
    X = grouped(family, n, 5, seed=7)
    space = in_blocks(family, X, rng.uniform(0.1, 10.0, n))
    index, geometry, clusters, scratch, threads = space
    for one_by_one in (True, False):
        alive = np.flatnonzero(~np.isnan(clusters.weights[:n]))
        for i, j in rng.permutation(alive)[: n // 4 // 2 * 2].reshape(-1, 2):
            merge_slots(index, geometry, clusters, int(i), int(j), one_by_one, scratch)
        if not one_by_one:
            refit(refitting(index, clusters, scratch), n, threads)
        alive = np.flatnonzero(~np.isnan(clusters.weights[:n]))
        assert_bounded(index, geometry, clusters, scratch, rng.choice(alive, 5).tolist())


@pytest.mark.skipif(PLAIN_PYTHON, reason="thousands of rows")
def test_along_principal_axes():
    """Few axes with most of the variance: bounds hold after merges, and the tree is the same."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(3_000, 4)) @ rng.normal(size=(4, 30)) + 0.1 * rng.normal(size=(3_000, 30))
    index, geometry, clusters, scratch, _ = in_blocks("ward", X, None)
    assert 0 < clusters.mirror.leading <= 8
    assert index.coordinates.shape[0] == clusters.mirror.leading
    for i in range(0, 500, 2):
        merge_slots(index, geometry, clusters, i, i + 1, True, scratch)
    queries = [0, 2, 498, 1_000, 2_999]
    assert assert_bounded(index, geometry, clusters, scratch, queries) > 0
    reference = linkage(X, "ward", neighbors="kd_tree")
    assert same_tree(linkage(X, "ward", neighbors="brute"), reference)


def test_axes_are_turned_only_where_few_have_most_of_the_variance():
    rng = np.random.default_rng(9)
    for d, rotated in ((30, False), (8, False)):
        clusters = in_blocks("ward", rng.normal(size=(2_500, d)), None)[2]
        assert (clusters.mirror.axes.shape[0] > 0) == rotated


# Which scan


def test_blocks_only_where_they_pass_over_something(monkeypatch):
    monkeypatch.setattr(blocks_module, "FEWEST", 1_000)
    rng = np.random.default_rng(10)
    apart = rng.normal(size=(1_500, 20)) + 20.0 * rng.integers(0, 2, (1_500, 20)).cumsum(axis=1)
    for X, expected in (
        (10.0 * rng.integers(0, 8, (1_500, 1)) + rng.normal(size=(1_500, 12)), Blocks),
        (rng.normal(size=(1_500, 30)), Brute),
        (apart[:900], Brute),
    ):
        family = as_family("ward")
        geometry = family.geometry(X.shape[1])
        clusters = statistics.clusters_of_points(geometry, family.observe(X), padded=True)
        threads = Threads([new_scratch(geometry, X.shape[1])])
        assert isinstance(scan(geometry, clusters, threads, False), expected)
        assert isinstance(scan(geometry, clusters, threads, True), Brute)


@pytest.mark.skipif(PLAIN_PYTHON, reason="thousands of rows")
def test_boxes_are_given_up_where_they_come_to_leave_too_much(monkeypatch):
    """A small ridge: single rows are apart, and unions of few rows are near to all others."""
    made = []

    def spy(*given):
        made.append(blocks(*given))
        return made[-1]

    monkeypatch.setattr(blocks_module, "FEWEST", 1_000)
    monkeypatch.setattr(blocks_module, "blocks", spy)
    rng = np.random.default_rng(11)
    X = 4.0 * rng.normal(size=(20, 10))[rng.integers(20, size=3_000)] + rng.normal(size=(3_000, 10))
    for ridge, unbounded in ((0.01, True), (1.0, False)):
        family = families.Gaussian(smoothing=ridge)
        whole = linkage(X, family, neighbors="kd_tree")
        half = linkage(X, family, neighbors="brute", threshold=np.median(whole.heights))
        assert made[-1].unbounded == unbounded
        assert same_tree(half, linkage(X, family, neighbors="kd_tree", threshold=half.threshold))


def test_outward():
    for last in range(7):
        for home in range(last + 1):
            order = [int(_outward(home, step, last)) for step in range(last + 1)]
            assert sorted(order) == list(range(last + 1))
            distances = [abs(g - home) for g in order]
            assert distances == sorted(distances)
