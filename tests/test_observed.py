"""The geometry of rows with missing cells: bounds below values, statistics of unions."""

from __future__ import annotations

import numpy as np
import pytest
from test_audit import all_bounds
from test_geometry import evaluate, merge_slots
from test_kd_tree import alive_below
from test_kd_tree import evaluate as evaluate_boxes

from fastrbhc._engine.clusters.build import clusters_of_groups, clusters_of_points
from fastrbhc._engine.clusters.record import selected
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import dissimilarity
from fastrbhc._engine.geometry.observed import Observed, ObservedOneByOne, Quadratic
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.kd_tree import kd_tree
from fastrbhc._engine.threads import Threads
from fastrbhc.families import as_family, geometry_of
from fastrbhc.families._missing import observe

# One family per kind of geometry and bounds.
FEW = ["spherical_gaussian", "poisson", "inverse_gaussian"]
every_kind = pytest.mark.parametrize("name", FEW)
every_scale = pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])


def clusters_with_gaps(name, scale=1.0, n=60, d=3, n_merges=25, padded=False, seed=0):
    """Rows with gaps, some of them merged at random; also the rows of each slot."""
    rng, family = np.random.default_rng(seed), as_family(name)
    X = rng.exponential(size=(n, d)) * 10.0 ** rng.uniform(-3.0, 3.0, size=(n, d))
    X *= scale
    gaps = rng.random((n, d)) < 0.4
    gaps[np.arange(n), rng.integers(0, d, n)] = False
    X[gaps] = np.nan
    rows = observe(family, X).weighted(10.0 ** rng.uniform(-2.0, 2.0, n))
    geometry = geometry_of(family, rows)
    clusters, scratch = clusters_of_points(geometry, rows, padded), new_scratch(geometry, 2 * d)
    members = {slot: [slot] for slot in range(n)}
    for _ in range(n_merges):
        i, j = (int(slot) for slot in rng.choice(list(members), 2, replace=False))
        merge_slots(geometry, clusters, i, j, scratch)
        members[i] += members.pop(j)
    return rows, geometry, clusters, scratch, members


@every_scale
@every_kind
def test_bounds_of_runs_are_below_values(name, scale):
    _, geometry, clusters, scratch, members = clusters_with_gaps(name, scale)
    values, bounds = evaluate(geometry, clusters, scratch)
    alive = np.isin(np.arange(clusters.weights.size), list(members))
    pairs = np.outer(alive, alive) & ~np.eye(alive.size, dtype=bool)
    assert np.isfinite(values[pairs]).all()
    assert (bounds[pairs] <= values[pairs]).all()
    assert (bounds[pairs] > 0.0).any()
    assert np.isnan(bounds[:, ~alive]).all()
    np.testing.assert_array_equal(values[alive][:, alive], values[alive][:, alive].T)


@every_scale
@every_kind
def test_bounds_of_boxes_are_below_values(name, scale):
    _, geometry, clusters, scratch, _ = clusters_with_gaps(name, scale, padded=True)
    with Threads([scratch]) as threads:
        index = kd_tree(geometry, clusters, threads, False)
    n = clusters.weights.size
    values, bounds = np.empty((n, n)), np.empty((n, 2 * index.n_leaves))
    evaluate_boxes(index, geometry, clusters, np.inf, scratch, values, bounds)
    alive, positive = np.flatnonzero(~np.isnan(clusters.weights)), 0
    for node in range(1, 2 * index.n_leaves):
        below = alive_below(index, clusters, node)
        for i in alive:
            others = below[below != i]
            if others.size:
                assert bounds[i, node] <= values[i, others].min()
                positive += bounds[i, node] > 0.0
        if not below.size:
            assert np.isnan(bounds[alive, node]).all()
    assert positive > 0


@every_scale
@every_kind
def test_bounds_of_violations_are_below_values(name, scale):
    excluded = np.zeros(2, int)
    for seed in range(4):
        _, geometry, clusters, scratch, _ = clusters_with_gaps(
            name, scale, n=64, n_merges=20, padded=True, seed=seed
        )
        with Threads([scratch]) as threads:
            index = kd_tree(geometry, clusters, threads, audited=True)
        alive = np.flatnonzero(~np.isnan(clusters.weights))
        slots, boxes = np.empty(clusters.weights.size), np.empty(index.n_leaves)
        for a, b in zip(alive[::5], alive[1::5], strict=False):
            values = values_with_unions(geometry, clusters, a, b, alive, scratch)
            for cutoff in np.quantile(values[np.isfinite(values)], [0.05, 0.5]):
                all_bounds(geometry, clusters, index, a, b, cutoff, slots, boxes, scratch)
                assert (values[slots > cutoff] >= cutoff * (1.0 - 1e-9)).all()
                assert np.isnan(slots[np.isnan(clusters.weights)]).all()
                for leaf in np.flatnonzero(boxes > cutoff):
                    inside = np.arange(8 * leaf, 8 * leaf + 8)
                    assert (values[inside] >= cutoff * (1.0 - 1e-9)).all()
                excluded += (slots > cutoff).sum(), (boxes > cutoff).sum()
    # Steps that are far below the smoothing are lost in its rounding, and nothing is excluded.
    assert (excluded > 0).all() or (name, scale) == ("poisson", 1e-60)


def values_with_unions(geometry, clusters, a, b, alive, scratch):
    """The larger of d(a∪x, b) and d(b∪x, a) for every cluster x but these; infinite for others."""
    values = np.full(clusters.weights.size, np.inf)
    for x in set(alive.tolist()) - {a, b}:
        found = []
        for one, other in ((a, b), (b, a)):
            three = selected(clusters, np.array([one, x, other]))
            merge_slots(geometry, three, 0, 1, scratch)
            found.append(value_of(geometry, three, 0, 2, scratch))
        values[x] = max(found)
    return values


@kernel
def value_of(geometry, clusters, i, j, scratch):
    return dissimilarity(geometry, clusters, i, j, np.inf, scratch)


@every_kind
def test_unions_are_those_of_their_rows(name):
    rows, geometry, clusters, _, members = clusters_with_gaps(name)
    labels = np.empty(rows.shape[0], np.int64)
    for place, slots in enumerate(members.values()):
        labels[slots] = place
    groups, slots = clusters_of_groups(geometry, rows, labels, len(members)), list(members)
    d = rows.shape[1]
    np.testing.assert_allclose(clusters.weights[slots], groups.weights, rtol=1e-15)
    np.testing.assert_allclose(clusters.means[d:, slots], groups.means[d:], rtol=1e-15)
    known = groups.means[d:] > 0.0
    np.testing.assert_allclose(
        clusters.means[:d, slots][known], groups.means[:d][known], rtol=1e-15
    )


@pytest.mark.fast
def test_kinds_of_geometry():
    rows = observe(as_family("ward"), np.array([[1.0, np.nan]]))
    assert geometry_of(as_family("ward"), rows) == Observed(Quadratic(0.5), 1.0, 0.0)
    assert type(geometry_of(as_family("poisson"), rows)) is Observed
    assert type(geometry_of(as_family("inverse_gaussian"), rows)) is ObservedOneByOne
