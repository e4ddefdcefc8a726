"""The kd-tree: the same tree as by scanning, to the bit, and boxes that contain their clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import FAMILIES, REDUCIBLE, Data, continuous_rows, data_sets, tied_data_sets
from trees import same_tree

from fastrbhc import families, linkage
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._engine.clusters.record import LEAF_SIZE
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import box_bounds, dissimilarity, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import merged, nearest, refit, refitting, touch
from fastrbhc._engine.neighbors.kd_order import tree_order
from fastrbhc._engine.neighbors.kd_tree import kd_tree
from fastrbhc._engine.simd import LANES
from fastrbhc._engine.threads import Threads
from fastrbhc.families import as_family

every_family = pytest.mark.parametrize("family", FAMILIES)
every_way = pytest.mark.parametrize(
    ("family", "algorithm"),
    [(family, algorithm) for family in FAMILIES for algorithm in ("greedy", "nn_chain")]
    + [(family, "levels") for family in REDUCIBLE],
)


def assert_same_with_either_backend(data, family, **options):
    """Returns the tree."""
    options["sample_weight"] = data.weights
    reference = linkage(data.X, family, neighbors="brute", **options)
    computed = linkage(data.X, family, neighbors="kd_tree", **options)
    assert same_tree(computed, reference)
    return reference


# The same tree as by scanning


@pytest.mark.fast
@every_way
@given(data=st.data())
def test_any_data(family, algorithm, data):
    drawn = data.draw(data_sets(family))
    assert_same_with_either_backend(drawn, family, algorithm=algorithm)


@pytest.mark.fast
@every_way
@given(data=st.data())
def test_ties(family, algorithm, data):
    drawn = data.draw(tied_data_sets(family))
    assert_same_with_either_backend(drawn, family, algorithm=algorithm)


@pytest.mark.fast
@every_way
@given(data=st.data(), quantile=st.floats(0.0, 1.0))
def test_any_threshold(family, algorithm, data, quantile):
    drawn = data.draw(data_sets(family))
    heights = linkage(drawn.X, family, algorithm=algorithm, sample_weight=drawn.weights).heights
    threshold = np.quantile(heights, quantile)
    assert_same_with_either_backend(drawn, family, algorithm=algorithm, threshold=threshold)


def in_domain(unit, family, width=10.0):
    """Numbers between 0 and 1 as values of the domain; if it is unbounded, up to the width."""
    domain = as_family(family).domain
    if np.isfinite(domain.upper):
        return domain.lower + (domain.upper - domain.lower) * unit
    return (0.0 if np.isinf(domain.lower) else domain.lower) + width * unit


def clouds(family, n, rng):
    return Data(continuous_rows(family, n, 3, seed=n))


def weighted_clouds(family, n, rng):
    return Data(continuous_rows(family, n, 2, seed=n), rng.uniform(0.1, 10.0, n))


def line(family, n, rng):
    ends = np.array([[0.9, 0.1, 0.5], [0.2, 0.7, 0.6]])
    along = rng.uniform(size=(n, 1))
    return Data(in_domain(along * ends[0] + (1.0 - along) * ends[1], family))


def far_outlier(family, n, rng):
    unit = 1e-7 * (0.1 + rng.uniform(size=(n, 2)))
    unit[0] = 1.0
    return Data(in_domain(unit, family, 1e7))


def grid(family, n, rng):
    """Integers, or multiples of 1/32: hundreds of distances, and of d itself, are tied."""
    side = int(np.sqrt(n))
    counts = np.argwhere(np.ones((side, side)))[1:] + 0.0
    domain = as_family(family).domain
    if np.isfinite(domain.upper):
        return Data(domain.upper * counts / 32.0)
    return Data(max(domain.lower, 0.0) + counts + 1.0)


def nested_scales(family, n, rng):
    return Data(in_domain(10.0 ** rng.uniform(-12.0, 0.0, (n, 2)), family, 1e6))


def geometric_spacing(family, n, rng):
    """One column, with each gap slightly wider than the last: about one pair is near at a time."""
    unit = 10.0 ** np.linspace(-12.0, 0.0, n)
    return Data(in_domain(np.column_stack([unit, np.full(n, 0.5)]), family, 1e6))


def heavy_duplicates(family, n, rng):
    return Data(in_domain(rng.uniform(0.1, 0.9, (n // 8, 2)), family)[rng.integers(n // 8, size=n)])


def one_huge_weight(family, n, rng):
    weights = rng.uniform(0.01, 1.0, n)
    weights[n // 2] = 1e9
    return Data(in_domain(rng.uniform(0.1, 0.9, (n, 2)), family), weights)


def far_from_the_origin(family, n, rng):
    """Shifted by 1e8: most digits are the same in all rows."""
    return Data(in_domain(0.5 + 1e-8 * rng.uniform(-1.0, 1.0, (n, 3)), family, 2e8))


def the_last_digits(family, n, rng):
    """Few units in the last place apart, so that the means of unions are not floats."""
    units = rng.integers(0, 2 * int(np.sqrt(n)), (n, 2))
    return Data(in_domain(0.75 + units * 2.0**-53, family, 2.0**26))


def one_column(family, n, rng):
    return Data(in_domain(rng.uniform(0.1, 0.9, (n, 1)), family))


ADVERSARIAL = [
    clouds,
    weighted_clouds,
    line,
    far_outlier,
    grid,
    nested_scales,
    geometric_spacing,
    heavy_duplicates,
    one_huge_weight,
    far_from_the_origin,
    the_last_digits,
    one_column,
]


@every_way
@pytest.mark.parametrize("kind", ADVERSARIAL, ids=lambda kind: kind.__name__)
def test_adversarial_data(family, algorithm, kind):
    n = 300 if family == "gaussian" else 900
    data = kind(family, n, np.random.default_rng(1))
    tree = assert_same_with_either_backend(data, family, algorithm=algorithm)
    for quantile in (0.3, 0.9):
        threshold = float(np.quantile(tree.heights, quantile))
        assert_same_with_either_backend(data, family, algorithm=algorithm, threshold=threshold)


@pytest.mark.parametrize(
    ("family", "algorithm", "n_features"),
    [("ward", "levels", 2), ("ward", "levels", 3), ("poisson", "greedy", 3)],
)
def test_kernels_that_know_the_number_of_columns(family, algorithm, n_features):
    """At least 5,000 points; the second data set has tied counts."""
    rng = np.random.default_rng(2)
    X = rng.gamma(2.0, 3.0, size=(5_500, n_features))
    assert_same_with_either_backend(Data(X), family, algorithm=algorithm)
    counts = rng.integers(0, 90 if n_features == 2 else 25, size=(12_000, n_features))
    assert len(np.unique(counts, axis=0)) > 5_000
    assert_same_with_either_backend(Data(counts), family, algorithm=algorithm)


# Boxes


@kernel
def evaluate(index, geometry, clusters, cutoff, scratch, values, bounds):
    """d of all pairs of slots, and bounds of every node for every slot; NaN if above the cutoff."""
    for i in range(clusters.weights.size):
        for j in range(clusters.weights.size):
            values[i, j] = dissimilarity(geometry, clusters, i, j, np.inf, scratch)
        near = 0
        for node in range(2 * index.n_leaves):
            group, lane = node // LANES, node % LANES
            if lane == 0:
                near = box_bounds(geometry, clusters, i, index.boxes, group, cutoff, scratch)
            bounds[i, node] = scratch.bounds[lane] if (near >> lane) & 1 else np.nan


@kernel
def merge_slots(geometry, clusters, i, j, scratch):
    merge(geometry, clusters, i, j, scratch)


@kernel
def take_note(index, clusters, i, j):
    merged(index, clusters, i, j)


@kernel
def find_nearest(index, geometry, clusters, i, hint, cutoff, scratch):
    return nearest(index, geometry, clusters, i, hint, cutoff, scratch)


def slots_below(index, node):
    """The slots of the leaves below a node."""
    n_leaves = index.n_leaves
    first, last = node, node
    while first < n_leaves:
        first, last = 2 * first, 2 * last + 1
    return np.arange((first - n_leaves) * LEAF_SIZE, (last - n_leaves + 1) * LEAF_SIZE)


def alive_below(index, clusters, node):
    slots = slots_below(index, node)
    slots = slots[slots < clusters.weights.size]
    return slots[~np.isnan(clusters.weights[slots])]


def indexed(family, data, n_merges=0, seed=0):
    """A geometry, clusters of which some were merged at random, their index, and threads."""
    family, n_features = as_family(family), data.X.shape[1]
    geometry = family.geometry(n_features)
    rows = weighted(family.observe(data.X), data.weights)
    clusters = statistics.clusters_of_points(geometry, rows, padded=True, mirrored=False)
    threads = Threads([new_scratch(geometry, n_features)])
    merge_at_random(geometry, clusters, n_merges, seed)
    return geometry, clusters, kd_tree(geometry, clusters, threads, audited=False), threads


def values_and_bounds(index, geometry, clusters, cutoff=np.inf):
    n_features, n = clusters.means.shape
    values, bounds = np.empty((n, n)), np.empty((n, 2 * index.n_leaves))
    scratch = new_scratch(geometry, n_features)
    evaluate(index, geometry, clusters, cutoff, scratch, values, bounds)
    return values, bounds


def merge_at_random(geometry, clusters, n_merges, seed):
    """Merge slots, near and far in the tree; returns the pairs."""
    rng, scratch = np.random.default_rng(seed), new_scratch(geometry, clusters.means.shape[0])
    pairs = []
    for _ in range(n_merges):
        alive = np.flatnonzero(~np.isnan(clusters.weights))
        place = int(rng.integers(alive.size - 1))
        other = place + 1 if rng.random() < 0.5 else int(rng.integers(place + 1, alive.size))
        i, j = (int(slot) for slot in rng.permutation([alive[place], alive[other]]))
        merge_slots(geometry, clusters, i, j, scratch)
        pairs.append((i, j))
    return pairs


def assert_boxes_hold(index, geometry, clusters):
    """Every box tightly contains its clusters, and its bound is below d to each of them."""
    n_features = clusters.means.shape[0]
    features = clusters.cached[:, index.features]
    values, bounds = values_and_bounds(index, geometry, clusters)
    queries = np.flatnonzero(~np.isnan(clusters.weights))
    for node in range(1, 2 * index.n_leaves):
        slots = alive_below(index, clusters, node)
        if slots.size == 0:
            # Never near, not even with an infinite cutoff.
            assert np.isnan(bounds[queries, node]).all()
            continue
        box = index.boxes[node // LANES, :, node % LANES]
        low, high = box[: 2 * n_features].reshape(-1, 2).T
        lightest, ranges = box[2 * n_features], box[2 * n_features + 1 :]
        means = clusters.means[:, slots]
        assert (low <= means.min(axis=1)).all()
        assert (high >= means.max(axis=1)).all()
        np.testing.assert_allclose(low, means.min(axis=1), rtol=1e-14)
        np.testing.assert_allclose(high, means.max(axis=1), rtol=1e-14)
        assert lightest == clusters.weights[slots].min()
        np.testing.assert_array_equal(ranges[0::2], features[slots].min(axis=0))
        np.testing.assert_array_equal(ranges[1::2], features[slots].max(axis=0))
        for i in queries:
            others = slots[slots != i]
            assert (bounds[i, node] <= values[i, others]).all()


@every_family
@pytest.mark.parametrize("kind", ADVERSARIAL, ids=lambda kind: kind.__name__)
def test_no_bound_of_a_box_exceeds_d_to_a_cluster_in_it(family, kind):
    data = kind(family, 90, np.random.default_rng(4))
    for n_merges in (0, 20, 60):
        geometry, clusters, index, _ = indexed(family, data, n_merges if len(data.X) > 60 else 0)
        assert_boxes_hold(index, geometry, clusters)


@every_family
def test_bounds_of_boxes_are_of_use(family):
    """A bound of 0 would be valid; for points of equal weight most bounds are much better."""
    data = Data(continuous_rows(family, 200, 2, seed=5))
    geometry, clusters, index, _ = indexed(family, data)
    values, bounds = values_and_bounds(index, geometry, clusters)
    ratios = [
        bounds[i, node] / values[i, alive_below(index, clusters, node)].min()
        for node in range(index.n_leaves, 2 * index.n_leaves)
        for i in range(200)
        if alive_below(index, clusters, node).size and i not in slots_below(index, node)
    ]
    assert np.median(ratios) > 0.4


@every_family
def test_boxes_that_may_hold_something_near_are_never_left_out(family):
    """For any cutoff: some bounds are not computed if their logarithms would not pay."""
    data = Data(continuous_rows(family, 90, 3, seed=3))
    geometry, clusters, index, _ = indexed(family, data, n_merges=40)
    alive = np.flatnonzero(~np.isnan(clusters.weights))
    values, _ = values_and_bounds(index, geometry, clusters)
    left_out = 0
    for cutoff in (0.0, *np.quantile(values[np.ix_(alive, alive)], [0.03, 0.2, 0.6])):
        _, bounds = values_and_bounds(index, geometry, clusters, cutoff)
        for node in range(1, 2 * index.n_leaves):
            slots = alive_below(index, clusters, node)
            for i in alive[np.isnan(bounds[alive, node])]:
                others = slots[slots != i]
                assert (values[i, others] > cutoff).all()
                left_out += others.size > 0
    assert left_out > 0


@every_family
def test_boxes_follow_the_merges(family):
    """One by one, or all at once: the same boxes."""
    data = Data(continuous_rows(family, 150, 3, seed=6))
    geometry, one_by_one, index, _ = indexed(family, data)
    _, at_once, other_index, threads = indexed(family, data)
    for n_merges in (1, 1, 5, 20, 60, 60):
        for _ in range(n_merges):
            for i, j in merge_at_random(geometry, one_by_one, 1, seed=n_merges):
                take_note(index, one_by_one, i, j)
            for i, j in merge_at_random(geometry, at_once, 1, seed=n_merges):
                touch(other_index, i, j)
        jobs = refitting(other_index, at_once, threads.scratches[0])
        refit(jobs, at_once.n_slots, threads)
        assert_boxes_hold(index, geometry, one_by_one)
        np.testing.assert_array_equal(other_index.boxes, index.boxes)


@pytest.mark.fast
@every_family
def test_the_nearest_of_every_slot(family):
    rng, domain = np.random.default_rng(7), as_family(family).domain
    last = np.full((1, 2), min(max(domain.lower, 0.0) + 1.0, domain.upper))
    data = Data(np.concatenate([continuous_rows(family, 40, 2, 7), last]))
    geometry, clusters, index, threads = indexed(family, data, n_merges=12)
    scratch = threads.scratches[0]
    alive = np.flatnonzero(~np.isnan(clusters.weights))
    for i in alive:
        others = alive[alive != i]
        values = [dissimilarity(geometry, clusters, i, j, np.inf, scratch) for j in others]
        reference = min(zip(values, clusters.ranks[others], others, strict=True))
        hint = int(rng.choice(others))
        for cutoff in (np.inf, 1.5 * reference[0]):
            value, slot = find_nearest(index, geometry, clusters, i, hint, cutoff, scratch)
            assert slot == reference[2]
            assert value == pytest.approx(reference[0], rel=1e-12)
        value, slot = find_nearest(index, geometry, clusters, i, -1, 0.5 * reference[0], scratch)
        assert slot == -1


def test_boxes_past_the_last_slot_are_not_read():
    """Their memory is never written to, so that it may hold anything."""
    data = Data(continuous_rows("spherical_gaussian", 5_003, 2, seed=8))
    geometry, clusters, index, threads = indexed("spherical_gaussian", data)
    scratch = threads.scratches[0]
    for n_merges in (0, 1_500, 1_000):
        merge_at_random(geometry, clusters, n_merges, seed=8)
        index.boxes[1:] = 0.0  # boxes that hold whatever is asked for
        index.boxes[1:, 0], index.boxes[1:, 2] = -np.inf, -np.inf
        index.boxes[1:, 1], index.boxes[1:, 3] = np.inf, np.inf
        index.rebuild(clusters, threads)
        weights, means = clusters.weights[: clusters.n_slots], clusters.means
        for i in range(0, clusters.n_slots, 97):
            squares = ((means[:, : clusters.n_slots] - means[:, i : i + 1]) ** 2).sum(axis=0)
            values = squares * weights * weights[i] / (weights + weights[i])
            values[i] = np.inf
            value, slot = find_nearest(index, geometry, clusters, i, -1, np.inf, scratch)
            assert slot == np.argmin(values)
            assert 2.0 * value == pytest.approx(values[slot], rel=1e-9)


# The order of the slots


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65, 1000, 5000])
def test_slots_are_arranged_as_in_a_tree(n, n_features):
    X = np.random.default_rng(n).normal(size=(n, n_features))
    for rows in (X, np.round(X), np.zeros_like(X)):
        assert_arranged(rows, 1)


def test_threads_do_not_change_the_order():
    X = np.random.default_rng(8).normal(size=(30_000, 2))
    for rows in (X, np.round(4.0 * X)):
        reference = assert_arranged(rows, 1)
        for n_threads in (2, 3):
            np.testing.assert_array_equal(assert_arranged(rows, n_threads), reference)


def assert_arranged(X, n_threads):
    """Check that every slot occurs once and every split is in order; returns the order."""
    family = families.SphericalGaussian()
    geometry = family.geometry(X.shape[1])
    clusters = statistics.clusters_of_points(geometry, family.observe(X), padded=True)
    capacity = LEAF_SIZE
    while capacity < len(X):
        capacity *= 2
    with Threads([new_scratch(geometry, X.shape[1]) for _ in range(n_threads)]) as threads:
        order = tree_order(clusters, np.ones(X.shape[1]), np.arange(len(X)), capacity, threads)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(X)))
    parts = [(0, capacity)]
    while parts:
        start, size = parts.pop()
        middle, stop = start + size // 2, min(start + size, len(X))
        if size == LEAF_SIZE or middle >= stop:
            parts += [(start, size // 2)] if size > LEAF_SIZE else []
            continue
        rows = X[order[start:stop]]
        column = np.argmax(np.ptp(rows, axis=0))
        left, right = np.split(rows[:, column], [middle - start])
        assert left.max() <= right.min()
        parts += [(start, size // 2), (middle, size // 2)]
    return order


@pytest.mark.parametrize("n", [2, 8, 9, 100, 129])
def test_clusters_move_into_the_order_of_the_tree(n):
    data = Data(continuous_rows("gaussian", n, 2, seed=9))
    geometry, clusters, index, threads = indexed("gaussian", data)
    places = np.argsort(clusters.ranks[:n])
    np.testing.assert_array_equal(clusters.means[:, places].T, data.X)
    assert clusters.n_slots == n
    assert index.n_leaves * LEAF_SIZE >= n
    merge_at_random(geometry, clusters, n // 2, seed=9)
    weights, means, ranks, cached = (
        part.copy() for part in (clusters.weights, clusters.means, clusters.ranks, clusters.cached)
    )
    slots = index.rebuild(clusters, threads)
    np.testing.assert_array_equal(np.sort(slots), np.flatnonzero(~np.isnan(weights)))
    count = slots.size
    assert clusters.n_slots == count
    np.testing.assert_array_equal(clusters.weights[:count], weights[slots])
    np.testing.assert_array_equal(clusters.means[:, :count], means[:, slots])
    np.testing.assert_array_equal(clusters.ranks[:count], ranks[slots])
    np.testing.assert_array_equal(clusters.cached[:count], cached[slots])
    assert np.isnan(clusters.weights[count:]).all()
    assert_boxes_hold(index, geometry, clusters)
