"""Counts of violations, against a loop over all triples written from the definition."""

from __future__ import annotations

import importlib

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import FAMILIES, continuous_rows, data_sets, fit_to_domain

from fastrbhc import linkage
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import box_violation_bound, violation_bounds
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.kd_tree import kd_tree
from fastrbhc._engine.planning import plan as plan_module
from fastrbhc._engine.threads import Threads
from fastrbhc.families import as_family

build_module = importlib.import_module("fastrbhc._build")

SEARCHED = [name for name in FAMILIES if not as_family(name).reducible]
every_family = pytest.mark.parametrize("family", SEARCHED)
every_algorithm = pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
every_backend = pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])


def data(family, seed):
    """Rows and weights that vary with the seed: some without weights, some with unequal ones."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 15)), int(rng.integers(2 if family == "multinomial" else 1, 4))
    if seed % 4 == 3:  # one heavy row among light ones
        X = fit_to_domain(rng.normal(size=(n, d)) * 3.0, family)
        return X, np.append(1000.0, rng.uniform(0.1, 1.0, n - 1))
    weights = 10.0 ** rng.uniform(-1.5, 1.5, n) if seed % 4 == 2 else None
    return continuous_rows(family, n, d, seed), weights


def assert_as_found(report, found):
    assert report.triples == found.triples
    certain, possible = len(found.certain), len(found.certain | found.open)
    assert certain <= report.violations <= possible
    serious = found.consequential | found.consequential_open
    assert len(found.consequential) <= report.consequential <= len(serious)
    if found.certain:
        deficit, merge, x = report.worst
        # Where both distances are rounding errors, the definition in floats cannot tell.
        decided = [value for place, value in found.deficits.items() if place not in found.open]
        assert deficit >= max(decided) * (1.0 - 1e-6) - 1e-9
        assert deficit <= max(found.deficits.values()) * (1.0 + 1e-6) + 1e-9
        assert found.deficits[merge, x] == pytest.approx(deficit, rel=1e-6, abs=1e-9)
        for row in {row for row, _ in found.certain}:
            largest = max(found.deficits[place] for place in found.deficits if place[0] == row)
            assert report.deficits[row] == pytest.approx(largest, rel=1e-6, abs=1e-9)
    for bands in (report.by_height, report.by_size):
        assert sum(band.violations for band in bands) == report.violations
        assert sum(band.consequential for band in bands) == report.consequential
        assert sum(band.triples for band in bands) == report.triples


@every_backend
@every_algorithm
@every_family
def test_counts_of_a_triple_loop(family, algorithm, neighbors):
    some = 0
    for seed in range(100):
        X, weights = data(family, seed)
        options = {"algorithm": algorithm, "neighbors": neighbors, "sample_weight": weights}
        tree = linkage(X, family, audit=True, **options)
        found = naive.violations(tree, X, weights, family)
        assert_as_found(tree.audit, found)
        assert tree.audit.premises == tree.audit.violations
        some += tree.audit.violations
    assert some > 0 or family not in ("gaussian", "poisson")  # these do have violations


@pytest.mark.parametrize(
    ("family", "seeds"),
    [
        (family, seeds)
        for family, seeds in [("multinomial", (40, 49)), ("bernoulli", (13, 16, 18, 22))]
        if family in FAMILIES
    ],
)
def test_violations_of_shares(family, seeds):
    """Proportions near 0 and 1 with very unequal weights; each of these seeds has a violation."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        if family == "multinomial":
            X = rng.dirichlet(np.full(6, 0.3), 25)
        else:
            X = rng.beta(0.2, 0.2, size=(25, 6))
        weights = 10.0 ** rng.uniform(-2, 2, 25)
        tree = linkage(X, family, sample_weight=weights, audit=True)
        assert tree.audit.violations == 1
        assert_as_found(tree.audit, naive.violations(tree, X, weights, family))


@every_family
@given(sets=st.data())
def test_counts_with_ties_duplicates_weights_and_extremes(family, sets):
    X, weights = sets.draw(data_sets(family))
    neighbors = sets.draw(st.sampled_from(["brute", "kd_tree"]))
    tree = linkage(X, family, sample_weight=weights, neighbors=neighbors, audit=True)
    assert_as_found(tree.audit, naive.violations(tree, X, weights, family))


@every_algorithm
@every_family
def test_counts_up_to_a_threshold(family, algorithm):
    for seed in range(30):
        X, weights = data(family, seed)
        options = {"algorithm": algorithm, "sample_weight": weights}
        threshold = float(np.median(linkage(X, family, **options).heights))
        forest = linkage(X, family, threshold=threshold, audit=True, **options)
        assert_as_found(forest.audit, naive.violations(forest, X, weights, family))


@every_backend
def test_many_violations(neighbors):
    """Weights of many sizes, so that light clusters lie between heavy ones."""
    rng = np.random.default_rng(653)
    X = rng.normal(size=(20, 2)) * 10 ** rng.uniform(-1, 1.5)
    weights = 10.0 ** rng.uniform(-rng.uniform(0, 3), rng.uniform(0, 3), 20)
    tree = linkage(X, "gaussian", sample_weight=weights, neighbors=neighbors, audit=True)
    found = naive.violations(tree, X, weights, "gaussian")
    assert len(found.certain) > 20
    assert_as_found(tree.audit, found)


@every_backend
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_threads_and_backends_leave_no_trace(monkeypatch, family, neighbors):
    monkeypatch.setattr(plan_module, "_WORTH_A_THREAD", 0)
    X = continuous_rows(family, 700, 2, seed=3)
    for algorithm in ("greedy", "nn_chain"):
        options = {"algorithm": algorithm, "audit": True}
        reference = linkage(X, family, neighbors="brute", n_jobs=1, **options).audit
        for n_jobs in (1, 2, 3):
            computed = linkage(X, family, neighbors=neighbors, n_jobs=n_jobs, **options).audit
            assert str(computed) == str(reference)
            np.testing.assert_array_equal(computed.counts, reference.counts)
        assert family == "poisson" or reference.violations > 0


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_batches_of_any_size(monkeypatch, family):
    """Batches of one merge see every cluster exactly as it was."""
    audit_module = importlib.import_module("fastrbhc.reducibility.audit")
    X = continuous_rows(family, 300, 2, seed=4)
    reference = linkage(X, family, audit=True).audit
    for largest in (1, 2, 7):
        monkeypatch.setattr(audit_module, "_LARGEST_BATCH", largest)
        for neighbors in ("brute", "kd_tree"):
            computed = linkage(X, family, neighbors=neighbors, audit=True).audit
            np.testing.assert_array_equal(computed.counts, reference.counts)


@kernel
def all_bounds(geometry, clusters, index, a, b, cutoff, slots, boxes, scratch):
    """Bounds of all slots and of all leaves."""
    for start in range(0, slots.size, 8):
        violation_bounds(geometry, clusters, a, b, start, start + 8, cutoff, scratch)
        for s in range(8):
            slots[start + s] = scratch.bounds[s]
    for leaf in range(boxes.size):
        node = index.n_leaves + leaf
        heaviest = index.heaviest[node]
        boxes[leaf] = box_violation_bound(
            geometry, clusters, a, b, index.boxes, node, heaviest, cutoff, scratch
        )


def nearest_to_violating(X, groups, family):
    """The larger of d(a∪x, b) and d(b∪x, a) by the textbook, where a and b are the first two."""

    def d(members, others):
        ones = np.ones(len(X))
        return naive.dissimilarity(X[members], ones[members], X[others], ones[others], family)

    a, b = groups[:2]
    return np.array(
        [
            max(d(np.concatenate([a, x]), b), d(np.concatenate([b, x]), a)) if g > 1 else 0.0
            for g, x in enumerate(groups)
        ]
    )


@every_family
def test_bounds_pass_a_cutoff_only_with_what_they_bound(family):
    rng, excluded = np.random.default_rng(5), np.zeros(2, int)
    record, d, n, k = as_family(family), 3, 120, 32
    for trial in range(12):
        X = continuous_rows(family, n, d, seed=trial)
        sizes = np.sort(rng.choice(n - 1, k - 1, replace=False)) + 1
        groups = np.array_split(np.argsort(X[:, 0]), sizes)  # near each other
        labels = np.empty(n, np.int64)
        for g, members in enumerate(groups):
            labels[members] = g
        geometry = record.geometry(d)
        clusters = statistics.clusters_of_groups(geometry, record.observe(X), labels, k)
        scratch = new_scratch(geometry, d)
        index = kd_tree(geometry, clusters, Threads([scratch]), audited=True)
        true = nearest_to_violating(X, [groups[rank] for rank in clusters.ranks], family)
        slots, boxes = np.empty(k), np.empty(k // 8)
        for cutoff in np.quantile(true[2:], [0.02, 0.3, 0.6, 0.9]):
            all_bounds(geometry, clusters, index, 0, 1, cutoff, slots, boxes, scratch)
            assert (true[2:][slots[2:] > cutoff] >= cutoff * (1.0 - 1e-9)).all()
            for leaf in np.flatnonzero(boxes > cutoff):
                members = np.arange(8 * leaf, 8 * leaf + 8)
                assert (true[members[members > 1]] >= cutoff * (1.0 - 1e-9)).all()
            excluded += (slots > cutoff).sum(), (boxes > cutoff).sum()
    assert (excluded > 0).all()


# By sample


@every_family
def test_a_sample_of_few_triples_is_all_of_them(family):
    X = continuous_rows(family, 15, 2, seed=6)
    reference = linkage(X, family, audit=True).audit
    computed = linkage(X, family, audit="sample").audit
    assert str(computed) == str(reference)


def test_a_sample_estimates_the_rate(monkeypatch):
    X = 10.0 * np.random.default_rng(7).normal(size=(400, 2))
    exact = linkage(X, "gaussian", audit=True).audit
    assert exact.violations > 50
    inside = 0
    for seed in range(20):
        monkeypatch.setattr(build_module, "_SAMPLE_SEED", seed)
        computed = linkage(X, "gaussian", audit="sample").audit
        assert computed.method == "sample"
        assert computed.triples == 10 * 400
        lower, upper = computed.interval
        assert lower <= computed.rate <= upper
        inside += lower <= exact.rate <= upper
    assert inside >= 17  # 19 of 20 on average


def test_every_triple_can_be_in_the_sample(monkeypatch):
    """With all triples in the sample, it finds the same as a search."""
    X = np.random.default_rng(8).normal(size=(60, 2))
    monkeypatch.setattr(
        build_module, "_sample", lambda n, m: np.arange(m * (n - 2) - m * (m - 1) // 2)
    )
    reference = linkage(X, "gaussian", audit=True).audit
    computed = linkage(X, "gaussian", audit="sample").audit
    assert computed.method == "sample"
    np.testing.assert_array_equal(computed.counts, reference.counts)
    assert computed.consequential == reference.consequential
    assert computed.worst == reference.worst
    assert computed.by_height == reference.by_height
