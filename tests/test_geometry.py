"""Geometries: bounds below values, values above the cutoff, statistics of unions."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from strategies import ALL_FAMILIES, ON_THE_WHOLE_LINE

from fastrbhc import families
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.observations import Observations, weighted
from fastrbhc._engine.clusters.record import difference, selected
from fastrbhc._engine.clusters.scratch import BLOCK, new_scratch
from fastrbhc._engine.geometry.contract import (
    candidate_slots,
    dissimilarity,
    for_clusters,
    lower_bounds,
    merge,
)
from fastrbhc._engine.geometry.full_covariance import FullCovariance
from fastrbhc._engine.geometry.separable import MirroredSeparable, Separable, SeparableOneByOne
from fastrbhc._engine.geometry.separable_columns import unknown_variance
from fastrbhc._engine.geometry.ward import Ward
from fastrbhc._engine.jit import config, kernel

SCALES = {"unit": 1.0, "tiny": 1e-60, "huge": 1e60}

every_family = pytest.mark.parametrize("name", ALL_FAMILIES)


@kernel
def values_and_bounds(geometry, clusters, scratch, values, bounds):
    """Values and bounds from the first slots to all slots."""
    n = clusters.weights.size
    for i in range(values.shape[0]):
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            lower_bounds(geometry, clusters, i, start, stop, scratch)
            for s in range(stop - start):
                bounds[i, start + s] = scratch.bounds[s]
        for j in range(n):
            values[i, j] = dissimilarity(geometry, clusters, i, j, np.inf, scratch)


@kernel
def values_with_cutoffs(geometry, clusters, scratch, cutoffs, values):
    for i in range(clusters.weights.size):
        for j in range(clusters.weights.size):
            values[i, j] = dissimilarity(geometry, clusters, i, j, cutoffs[i, j], scratch)


@kernel
def merge_slots(geometry, clusters, i, j, scratch):
    merge(geometry, clusters, i, j, scratch)


def draw(name, rng, n, n_features, scale=1.0):
    if name in ON_THE_WHOLE_LINE:
        return scale * rng.normal(size=(n, n_features))
    domain = families.as_family(name).domain
    if np.isfinite(domain.upper):
        return domain.upper * rng.choice([0.0, 0.2, 0.5, 1.0], (n, n_features))
    if domain.lower > 0.0:
        return domain.lower + max(scale, 1.0) * rng.exponential(size=(n, n_features))
    if not domain.includes_lower:
        return scale * rng.exponential(size=(n, n_features))
    counts = scale * rng.poisson(3.0, (n, n_features))
    counts[:, 0] += scale
    return counts


def points(family, X, weights=None):
    """A geometry, one cluster per row, and scratch memory."""
    family = families.as_family(family)
    geometry = family.geometry(X.shape[1])
    rows = weighted(family.observe(X), weights)
    clusters = statistics.clusters_of_points(geometry, rows)
    return for_clusters(geometry, clusters), clusters, new_scratch(geometry, X.shape[1])


def with_merges(family, X, rng, n_merges):
    """Points, some of them merged at random; also returns the rows of each slot."""
    geometry, clusters, scratch = points(family, X)
    members = {slot: [slot] for slot in range(len(X))}
    for _ in range(n_merges):
        i, j = (int(slot) for slot in rng.choice(list(members), 2, replace=False))
        merge_slots(geometry, clusters, i, j, scratch)
        members[i] += members.pop(j)
    return geometry, clusters, scratch, members


def evaluate(geometry, clusters, scratch, stop=None):
    n = clusters.weights.size
    values, bounds = (np.empty((n if stop is None else stop, n)) for _ in range(2))
    values_and_bounds(geometry, clusters, scratch, values, bounds)
    return values, bounds


def assert_bounds_below_values(geometry, clusters, scratch):
    values, bounds = evaluate(geometry, clusters, scratch)
    alive = ~np.isnan(clusters.weights)
    pairs = np.outer(alive, alive) & ~np.eye(alive.size, dtype=bool)
    assert np.isfinite(values[pairs]).all()
    assert (bounds[pairs] <= values[pairs]).all()
    assert np.isnan(bounds[:, ~alive]).all()  # free slots are never near
    np.testing.assert_array_equal(values[alive][:, alive], values[alive][:, alive].T)


@every_family
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_bounds_never_exceed_values(name, scale):
    rng = np.random.default_rng(0)
    # The smoothing of covariances is in the squared unit of the data.
    family = families.as_family(name)
    if family.covariance != "none":
        family = family._replace(smoothing=0.01 * scale**2)
    for n_features in (1, 2, 5, 8):
        X = draw(name, rng, 40, n_features, scale)
        assert_bounds_below_values(*points(family, X))
        assert_bounds_below_values(*points(family, X, rng.choice([0.1, 1.0, 1e6], 40)))
        assert_bounds_below_values(*with_merges(family, X, rng, 25)[:3])


@every_family
def test_bounds_are_of_use(name):
    """A bound of 0 would be valid; for points of equal weight, bounds are close to the values."""
    X = draw(name, np.random.default_rng(1), 60, 3)
    values, bounds = evaluate(*points(name, X))
    apart = values > 1e-3 * values.max()
    assert np.median(bounds[apart] / values[apart]) > 0.5


@pytest.mark.parametrize("name", [*ON_THE_WHOLE_LINE, "poisson", "exponential"])
def test_bounds_far_from_the_origin(name):
    rng = np.random.default_rng(2)
    for offset in (1e8, 1e12):
        X = offset + rng.uniform(size=(40, 3))
        assert_bounds_below_values(*points(name, X))
        assert_bounds_below_values(*with_merges(name, X, rng, 25)[:3])


@pytest.mark.parametrize("name", ON_THE_WHOLE_LINE)
def test_bounds_for_nearby_points_in_a_wide_frame(name):
    """Means in single precision cannot distinguish these points."""
    rng = np.random.default_rng(3)
    X = 1e-7 * rng.normal(size=(40, 3))
    X[0] = 1e6
    assert_bounds_below_values(*points(name, X))


# Families with a variance function, and so with bounds in single precision.
MIRRORED = [
    name
    for name in ALL_FAMILIES
    if getattr(type(families.as_family(name)), "variance_function", unknown_variance)
    is not unknown_variance
    and families.as_family(name).domain.lower == 0.0
    and not families.as_family(name).quadratic
]


def extreme_rows(name, rng, n, n_features, low, high):
    """Values of many sizes, zeros, equal rows, and rows that agree in some of their digits."""
    X = 10.0 ** rng.uniform(low, high, (n, n_features))
    X[1::7] = X[0]
    for row, digits in zip(range(2, n, 7), itertools.cycle([1, 4, 7, 9, 12, 15]), strict=False):
        X[row] = X[row - 1] * (1.0 + 10.0**-digits * rng.normal(size=n_features))
    domain = families.as_family(name).domain
    if np.isfinite(domain.upper):
        X = np.minimum(X / 10.0**high, 1.0)
        X = domain.upper * np.where(rng.random(X.shape) < 0.3, 1.0 - X, X)
    if domain.includes_lower:
        X[rng.random(X.shape) < 0.3] = 0.0
        X[X.sum(axis=1) == 0.0, 0] = 10.0**low
    return X


@pytest.mark.parametrize("name", MIRRORED)
@pytest.mark.parametrize("bare", [True, False], ids=["bare", "smoothed"])
@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), (-5, 9), (-20, -8), (-12, 14), (-60, 60)], ids=str
)
def test_bounds_of_extreme_values_and_weights(name, bare, low, high):
    """Inside the range of mirrored values, across its ends, and outside."""
    family = families.as_family(name)
    family = family._replace(smoothing=0.0) if bare else family
    rng = np.random.default_rng(abs(low) + high)
    for n_features in (1, 3, 40):
        X = extreme_rows(name, rng, 50, n_features, low, high)
        assert_bounds_below_values(*points(family, X))
        weights = 10.0 ** rng.choice([-50.0, -20.0, -2.0, 0.0, 1.0, 20.0, 50.0], 50)
        assert_bounds_below_values(*points(family, X, weights))
        assert_bounds_below_values(*with_merges(family, X, rng, 30)[:3])


@kernel
def which_candidates(geometry, clusters, scratch, i, cutoff, found):
    n = clusters.weights.size
    for start in range(0, n, BLOCK):
        count = candidate_slots(
            geometry, clusters, i, start, min(start + BLOCK, n), cutoff, scratch
        )
        for c in range(count):
            found[scratch.slots[c]] = True


@every_family
@pytest.mark.parametrize("n_features", [3, 70])
def test_candidates_are_all_within_the_cutoff_and_few_others(name, n_features):
    rng = np.random.default_rng(10)
    X = draw(name, rng, BLOCK + 90, n_features)
    geometry, clusters, scratch, members = with_merges(name, X, rng, 60)
    values, bounds = evaluate(geometry, clusters, scratch, stop=5)
    for i in range(5):
        if i not in members:
            continue
        others = values[i][np.arange(len(X)) != i]
        for cutoff in (*np.nanquantile(others, [0.0, 0.01, 0.3]), np.inf):
            found = np.zeros(len(X), bool)
            which_candidates(geometry, clusters, scratch, i, cutoff, found)
            assert found[values[i] <= cutoff].all()
            # Up to the rounding of single precision, only slots with such bounds are found.
            assert not found[~(bounds[i] <= cutoff * (1.0 + 1e-5))].any()


@pytest.mark.fast
def test_values_out_of_the_range_of_single_precision_are_bounded_by_doubles():
    rng = np.random.default_rng(11)
    for scale, rows in ((1.0, 3), (1e-6, 0), (1e20, 0)):
        clusters = points("exponential", scale * rng.exponential(size=(40, 3)))[1]
        assert clusters.mirror.values.shape[0] == rows
        values, bounds = evaluate(*points("exponential", scale * rng.exponential(size=(40, 3))))
        apart = values > 1e-3 * values.max()
        assert np.median(bounds[apart] / values[apart]) > 0.5


@pytest.mark.parametrize(
    "name",
    ["spherical_gaussian", "poisson", "multinomial", "diagonal_gaussian", "von_mises_fisher"],
)
def test_bounds_in_many_columns(name):
    rng = np.random.default_rng(9)
    X = draw(name, rng, 20, 1001)
    assert_bounds_below_values(*points(name, X))
    assert_bounds_below_values(*with_merges(name, X, rng, 12)[:3])


@every_family
def test_values_below_the_cutoff_are_exact_and_others_not_below_it(name):
    rng = np.random.default_rng(4)
    for n_features in (1, 4, 8):
        X = draw(name, rng, 30, n_features)
        geometry, clusters, scratch, members = with_merges(name, X, rng, 15)
        slots = np.array(sorted(members))
        clusters = selected(clusters, slots)
        values, _ = evaluate(geometry, clusters, scratch)
        for factor in (0.0, 0.3, 0.999999, 1.0, 1.000001, 3.0):
            cutoffs = factor * values
            computed = np.empty_like(values)
            values_with_cutoffs(geometry, clusters, scratch, cutoffs, computed)
            below = values < cutoffs
            np.testing.assert_array_equal(computed[below], values[below])
            assert (computed[~below] >= cutoffs[~below]).all()
            np.testing.assert_array_equal(computed, computed.T)


@every_family
def test_merge_gives_the_statistics_of_the_union(name):
    rng = np.random.default_rng(5)
    X = draw(name, rng, 20, 3)
    _, clusters, _, members = with_merges(name, X, rng, 12)
    rows = families.as_family(name).observe(X)
    weights = np.ones(len(X)) if rows.weights is None else rows.weights
    for slot, which in members.items():
        total = weights[which].sum()
        mean = weights[which] @ rows.means[which] / total
        if families.as_family(name).domain.needs_nonzero_row:
            mean /= np.linalg.norm(mean)  # directions are stored in place of means
        assert clusters.weights[slot] == pytest.approx(total, rel=1e-14)
        np.testing.assert_allclose(clusters.means[:, slot], mean, rtol=1e-13, atol=1e-15)
        assert clusters.ranks[slot] == max(which)
        if name == "gaussian":
            steps = rows.means[which] - mean
            scatter = (steps.T * weights[which]) @ steps
            lower = scatter[np.tril_indices(3)]
            leading = clusters.scatter[slot, : lower.size]
            np.testing.assert_allclose(leading, lower, rtol=1e-12, atol=1e-13)
        if name == "diagonal_gaussian":
            variances = np.average((rows.means[which] - mean) ** 2, axis=0, weights=weights[which])
            leading = clusters.scatter[slot, : variances.size]
            np.testing.assert_allclose(leading, variances, rtol=1e-12, atol=1e-13)
    free = sorted(set(range(len(X))) - set(members))
    assert np.isnan(clusters.weights[free]).all()


@every_family
def test_a_merged_cluster_is_the_group_of_its_rows(name):
    """Merging one by one, or all rows at once: the same dissimilarities."""
    rng = np.random.default_rng(6)
    X = draw(name, rng, 20, 3)
    geometry, clusters, _, members = with_merges(name, X, rng, 14)
    slots = np.array(sorted(members))
    one_by_one = statistics.dissimilarities(geometry, selected(clusters, slots))
    labels = np.empty(len(X), np.int64)
    for group, slot in enumerate(slots):
        labels[members[slot]] = group
    rows = families.as_family(name).observe(X)
    groups = statistics.clusters_of_groups(geometry, rows, labels, slots.size)
    at_once = statistics.dissimilarities(geometry, groups)
    np.testing.assert_allclose(one_by_one, at_once, rtol=1e-10, atol=1e-12)


@every_family
def test_merging_is_the_same_to_the_bit_either_way(name):
    rng = np.random.default_rng(7)
    X = draw(name, rng, 12, 4)
    X *= 1.0 if np.isfinite(families.as_family(name).domain.upper) else 1.1
    weights = rng.uniform(0.1, 5.0, 12)
    for _ in range(20):
        i, j, third, fourth = (int(slot) for slot in rng.choice(12, 4, replace=False))
        results = []
        for order in [(i, j), (j, i)]:
            geometry, clusters, scratch = points(name, X, weights)
            merge_slots(geometry, clusters, i, third, scratch)
            merge_slots(geometry, clusters, j, fourth, scratch)
            merge_slots(geometry, clusters, *order, scratch)
            results.append((clusters, order[0]))
        (there, slot), (back, other) = results
        assert there.weights[slot] == back.weights[other]
        assert there.ranks[slot] == back.ranks[other]
        for name_of in ("means", "residuals", "scan_features"):
            one, two = getattr(there, name_of), getattr(back, name_of)
            np.testing.assert_array_equal(one[:, slot], two[:, other])
        np.testing.assert_array_equal(there.mirror.values[:, slot], back.mirror.values[:, other])
        np.testing.assert_array_equal(there.scatter[slot], back.scatter[other])
        np.testing.assert_array_equal(there.cached[slot], back.cached[other])


def test_a_block_is_as_long_as_the_scratch_memory():
    """Bounds for the largest run of slots allowed, each the same as for a run of one."""
    X = np.random.default_rng(8).normal(size=(BLOCK + 1, 2))
    geometry, clusters, scratch = points("spherical_gaussian", X)
    lower_bounds(geometry, clusters, 0, 1, BLOCK + 1, scratch)
    together = scratch.bounds.copy()
    for slot in (1, 17, BLOCK):
        lower_bounds(geometry, clusters, 0, slot, slot + 1, scratch)
        assert scratch.bounds[0] == together[slot - 1]


@pytest.mark.fast
def test_which_geometry_a_family_gets():
    ward = families.SphericalGaussian(variance=4.0).geometry(3)
    assert ward == Ward(half_curvature=0.125)
    poisson = families.Poisson(smoothing=0.5)
    assert poisson.geometry(3) == Separable(poisson, 1.0, 0.5)
    assert families.Gaussian(smoothing=0.5).geometry(3) == FullCovariance(ridge=0.5)
    assert families.Gaussian().geometry(3).storage(3).scatter == 2 * 6


@pytest.mark.fast
def test_scans_use_the_mirror_that_clusters_have():
    family = families.Poisson()
    rows = family.observe(np.random.default_rng(12).poisson(3.0, (20, 3)) + 0.0)
    geometry = family.geometry(3)
    for mirrored, kind in ((True, MirroredSeparable), (False, Separable)):
        clusters = statistics.clusters_of_points(geometry, rows, mirrored=mirrored)
        assert type(for_clusters(geometry, clusters)) is kind


@pytest.mark.fast
def test_differences_keep_the_further_digits():
    geometry = families.SphericalGaussian().geometry(1)
    rows = Observations(np.array([[1.0], [1.0]]), np.array([[2.0**-60], [3.0 * 2.0**-60]]))
    clusters = statistics.clusters_of_points(geometry, rows)
    assert difference(clusters, 0, 1, 0) == 2.0**-59
    assert difference(clusters, 1, 0, 0) == -(2.0**-59)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="arrays of plain Python take anything")
@pytest.mark.parametrize(
    ("variance", "geometry"),
    [
        (lambda family, mean: mean * mean * mean, Separable),
        (lambda family, mean: mean * mean * mean if mean > 1.0 else mean, SeparableOneByOne),
        (None, SeparableOneByOne),
    ],
)
def test_bounds_in_eights_where_the_variance_allows(variance, geometry):
    class Own(NamedTuple):
        def divergence(family, value, mean, step):
            return (step / mean) ** 2 / (2.0 * value)

    if variance is not None:
        Own.variance_function = variance
    domain = families.Domain(lower=0.0, includes_lower=False)
    own = families.family("own", separable=True, reducible=False, domain=domain)(Own)
    families._interface._REGISTER.pop("own")
    assert type(own().geometry(2)) is geometry
