"""Bounds of violations of reducibility for sparse clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import fastrbhc
from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.record import copy_slot
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import dissimilarity, merge, violation_bounds
from fastrbhc._engine.geometry.sparse import sparse_geometry
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import possible_violations
from fastrbhc._engine.neighbors.inverted import inverted
from fastrbhc._engine.threads import Threads
from fastrbhc.families import Bernoulli, Multinomial, Poisson

FAMILIES = [
    Poisson(),
    Poisson(0.0),
    Poisson(5.0),
    Multinomial(),
    Multinomial(0.9),
    Bernoulli(),
    Bernoulli(0.0),
    Bernoulli(0.9),
]
N, D = 24, 20


def some_clusters(family, seed, spread_of_weights):
    """Sparse rows, some of them of ones only, with very different weights."""
    rng = np.random.default_rng(seed)
    X = (rng.random((N, D)) < 0.25) * rng.integers(1, 6, (N, D))
    X[:, 3], X[:3] = 1, 1
    X = np.minimum(X, 1) if isinstance(family, Bernoulli) else X
    weights = 10.0 ** rng.uniform(-spread_of_weights, spread_of_weights, N)
    rows = family.observe(sparse.csr_array(X.astype(float))).weighted(weights)
    geometry = sparse_geometry(family, D)
    clusters = clusters_of_points(geometry, rows, padded=True)
    return geometry, clusters, new_scratch(geometry, 0, most_hits=N)


@kernel
def moved(geometry, clusters, a, b, x, scratch):
    """d(a∪x, b), from copies in the last slots; the pool goes back to where it was."""
    last, end = clusters.weights.size - 2, clusters.segments.end[0]
    copy_slot(clusters, a, last)
    copy_slot(clusters, x, last + 1)
    merge(geometry, clusters, last, last + 1, scratch)
    value = dissimilarity(geometry, clusters, last, b, np.inf, scratch)
    clusters.segments.end[0] = end
    return value


def bounds_and_values(geometry, clusters, scratch, a, b):
    """Bounds for every x, and what they bound."""
    violation_bounds(geometry, clusters, a, b, 0, N, np.inf, scratch)
    bounds = scratch.bounds[:N].copy()
    others = [x for x in range(N) if x not in (a, b)]
    values = [
        max(
            moved(geometry, clusters, a, b, x, scratch),
            moved(geometry, clusters, b, a, x, scratch),
        )
        for x in others
    ]
    assert not scratch.lanes.any()
    return bounds[others], np.array(values)


@pytest.mark.parametrize("spread_of_weights", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("family", FAMILIES, ids=str)
@given(st.integers(0, 10**6))
def test_bounds_are_not_above_what_they_bound(family, spread_of_weights, seed):
    geometry, clusters, scratch = some_clusters(family, seed, spread_of_weights)
    a, b = (int(i) for i in np.random.default_rng(seed).choice(N, 2, replace=False))
    bounds, values = bounds_and_values(geometry, clusters, scratch, a, b)
    assert (bounds <= values).all()


@pytest.mark.parametrize("family", [Poisson(), Multinomial(), Bernoulli()], ids=str)
def test_bounds_are_close(family):
    geometry, clusters, scratch = some_clusters(family, 1, 0.5)
    for b in range(1, 6):
        bounds, values = bounds_and_values(geometry, clusters, scratch, 0, b)
        np.testing.assert_allclose(bounds, values, rtol=0.01, atol=1e-5)


@pytest.mark.parametrize("family", [Poisson(), Multinomial(), Bernoulli()], ids=str)
def test_only_possible_violations_are_examined(family):
    geometry, clusters, scratch = some_clusters(family, 2, 0.5)
    index, found = inverted(geometry, clusters, Threads([scratch]), True), 0
    for b in range(1, N):
        height = dissimilarity(geometry, clusters, 0, b, np.inf, scratch)
        hits = possible_violations(index, geometry, clusters, 0, b, height, 0, 1, scratch)
        some = set(scratch.hits[:hits].tolist())
        parts = set()
        for part in range(4):
            hits = possible_violations(index, geometry, clusters, 0, b, height, part, 4, scratch)
            parts |= set(scratch.hits[:hits].tolist())
        assert parts == some
        found += len(some)
    assert found < 0.5 * (N - 1) * (N - 2)


def rows_with_violations(family, seed):
    """Rows near the ends of their domain, with very different weights."""
    rng = np.random.default_rng(seed)
    if family == "bernoulli":
        X = rng.beta(0.2, 0.2, size=(25, 6))
        return X, 10.0 ** rng.uniform(-2.0, 2.0, 25)
    X = (rng.random((40, 6)) < 0.6) * rng.gamma(0.5, 3.0, (40, 6))
    X[:, 0] += 0.1
    return X, 10.0 ** rng.uniform(-2.0, 2.0, 40)


@pytest.mark.parametrize("family", ["poisson", "multinomial", "bernoulli"])
def test_counts_are_those_of_dense_rows(family):
    some = 0
    for seed in range(12, 24):
        X, weights = rows_with_violations(family, seed)
        reference = fastrbhc.linkage(X, family, sample_weight=weights, audit=True).audit
        options = {"sample_weight": weights, "audit": True, "neighbors": "inverted"}
        audit = fastrbhc.linkage(sparse.csr_array(X), family, **options).audit
        assert audit.violations == reference.violations
        assert audit.consequential == reference.consequential
        some += audit.violations
    assert some > 0
