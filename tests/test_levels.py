"""Level by level: the greedy tree, whatever the rounds, the threads and the backend."""

from __future__ import annotations

import importlib

import naive
import numpy as np
import pytest
from certificates import certify_greedy
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    FAMILIES,
    REDUCIBLE,
    continuous,
    continuous_rows,
    data_sets,
    gridded_rows,
    tied_data_sets,
)
from trees import merged_values, same_tree

from fastrbhc import dissimilarity, linkage
from fastrbhc._engine.agglomeration.driver import (
    FINISHED,
    OUT_OF_BUDGET,
    WANTS_LOOK_UP,
    WANTS_MERGES,
    WANTS_REBUILD,
)
from fastrbhc.families import as_family

every_family = pytest.mark.parametrize("family", REDUCIBLE)
every_backend = pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])

# This module is hidden by the function of the same name.
levels_module = importlib.import_module("fastrbhc._engine.agglomeration.levels")
threads_module = importlib.import_module("fastrbhc._engine.threads")
plan_module = importlib.import_module("fastrbhc._engine.planning.plan")


def by_levels(X, family, **options):
    return linkage(X, family, algorithm="levels", **options)


def full_grid(family, side=40, n_features=2):
    counts = np.argwhere(np.ones((side,) * n_features))
    return gridded_rows(counts, family)


# The greedy tree


@pytest.mark.fast
@every_backend
@every_family
def test_equals_the_textbook_merge_for_merge(family, neighbors):
    X = continuous_rows(family, 24, 3, seed=1)
    weights = np.random.default_rng(1).uniform(0.1, 10.0, len(X))
    for used in (None, weights):
        reference, heights = naive.greedy(X, used, family)
        computed = by_levels(X, family, neighbors=neighbors, sample_weight=used)
        np.testing.assert_array_equal(computed.merges, reference)
        np.testing.assert_allclose(computed.heights, heights, rtol=1e-9)


@pytest.mark.fast
@every_backend
@every_family
@given(data=st.data())
def test_equals_greedy_where_no_tie_decides(family, neighbors, data):
    X, _ = data.draw(continuous(family))
    reference = linkage(X, family, algorithm="greedy")
    computed = by_levels(X, family, neighbors=neighbors)
    assert same_tree(computed, reference)
    np.testing.assert_array_equal(computed.steps, np.arange(len(computed.merges)))


@every_backend
@every_family
@pytest.mark.parametrize(("n", "n_features"), [(700, 1), (3_000, 2), (1_500, 4), (600, 12)])
def test_equals_greedy_on_more_rows(family, neighbors, n, n_features):
    """Enough rows for many levels, and for many rebuilds."""
    X = continuous_rows(family, n, n_features, seed=2)
    weights = np.random.default_rng(2).uniform(0.1, 10.0, n)
    for options in ({}, {"sample_weight": weights}):
        reference = linkage(X, family, algorithm="greedy", **options)
        computed = by_levels(X, family, neighbors=neighbors, **options)
        assert same_tree(computed, reference)


@every_family
def test_steps_are_in_the_order_of_levels(family):
    for X in (continuous_rows(family, 500, 2, seed=3), full_grid(family, 20)):
        tree = by_levels(X, family)
        np.testing.assert_array_equal(tree.steps, np.arange(len(tree.merges)))
        assert (np.diff(tree.levels) >= 0.0).all()
        assert (tree.merges < tree.n_leaves + np.arange(len(tree.merges))[:, None]).all()


@pytest.mark.fast
@every_backend
@every_family
@given(data=st.data())
def test_every_merge_is_the_nearest_of_all_pairs(family, neighbors, data):
    X, weights = data.draw(st.one_of(data_sets(family), tied_data_sets(family)))
    tree = by_levels(X, family, neighbors=neighbors, sample_weight=weights)
    assert tree.n_trees == 1
    certify_greedy(tree, X, weights, family)


@pytest.mark.fast
@every_family
def test_a_grid_is_certified(family):
    X = full_grid(family, 6)
    certify_greedy(by_levels(X, family), X, None, family)


@every_family
@pytest.mark.parametrize("ratio", [1.02, 1.1, 2.0])
def test_about_one_pair_a_round(family, ratio):
    """Every gap is wider than the one before, so that only the first two rows are near."""
    line = ratio ** np.arange(300.0)[:, None]
    if hasattr(as_family(family), "transformed"):
        line = 1.1 * as_family(family).untransformed(line / line.max())  # gaps as the family sees
    for X in (line, np.column_stack([line, 0.5 * line, np.ones(300)])):
        reference = linkage(X, family, algorithm="greedy")
        assert same_tree(by_levels(X, family), reference)


@every_family
def test_two_rows_and_equal_rows(family):
    X = [[-1.0], [1.0]] if as_family(family).domain.lower < 0.0 else [[1.0], [3.0]]
    assert by_levels(X, family).heights.tolist() == [dissimilarity(X[:1], X[1:], family)]
    np.testing.assert_array_equal(by_levels(np.ones((9, 2)), family).heights, np.zeros(8))


@every_family
def test_order_of_rows_does_not_matter_on_a_grid(family):
    X = full_grid(family)
    order = np.random.default_rng(4).permutation(len(X))
    reference = by_levels(X, family)
    computed = by_levels(X[order], family)
    assert merged_values(computed, X[order]) == merged_values(reference, X)


# Thresholds


def assert_first_part(forest, whole, threshold):
    count = len(forest.merges)
    assert count == np.count_nonzero(whole.levels < threshold)
    np.testing.assert_array_equal(forest.merges, whole.merges[:count])
    np.testing.assert_array_equal(forest.heights, whole.heights[:count])
    np.testing.assert_array_equal(forest.weights, whole.weights[:count])
    np.testing.assert_array_equal(forest.cut(threshold=threshold), whole.cut(threshold=threshold))


@pytest.mark.fast
@every_backend
@every_family
@given(data=st.data())
def test_forest_is_the_first_part_of_the_tree(family, neighbors, data):
    X, weights = data.draw(data_sets(family))
    whole = by_levels(X, family, neighbors=neighbors, sample_weight=weights)
    threshold = data.draw(st.sampled_from(whole.heights)) * data.draw(st.sampled_from([1.0, 1.01]))
    forest = by_levels(X, family, neighbors=neighbors, sample_weight=weights, threshold=threshold)
    assert_first_part(forest, whole, threshold)
    certify_greedy(forest, X, weights, family)


@every_backend
@every_family
def test_forest_is_the_first_part_of_a_larger_tree(family, neighbors):
    for X in (continuous_rows(family, 2_000, 2, seed=5), full_grid(family)):
        whole = by_levels(X, family, neighbors=neighbors)
        for threshold in np.quantile(whole.heights, [0.01, 0.5, 0.9, 0.999, 1.0], method="lower"):
            for near in (threshold, np.nextafter(threshold, np.inf)):
                forest = by_levels(X, family, neighbors=neighbors, threshold=near)
                assert_first_part(forest, whole, near)


# Invariance of the result


@every_family
@pytest.mark.parametrize("kind", ["continuous", "tied"])
def test_threads_and_backends_leave_no_trace(monkeypatch, family, kind):
    monkeypatch.setattr(plan_module, "_WORTH_A_THREAD_BY_LEVELS", 0)
    n_features = 3
    X = (
        continuous_rows(family, 4_000, n_features, seed=6)
        if kind == "continuous"
        else full_grid(family, 16, n_features)
    )
    assert len(X) ** 2 * n_features >= plan_module._WORTH_A_THREAD
    whole = by_levels(X, family, neighbors="brute", n_jobs=1)
    for threshold in (None, float(np.median(whole.heights) * 1.5)):
        reference = by_levels(X, family, neighbors="brute", n_jobs=1, threshold=threshold)
        for neighbors in ("brute", "kd_tree"):
            for n_jobs in (1, 2, 3):
                options = {"neighbors": neighbors, "n_jobs": n_jobs, "threshold": threshold}
                assert same_tree(by_levels(X, family, **options), reference)


@pytest.fixture
def short_work_on_threads(monkeypatch):
    """Share even the smallest jobs, so that tests of the rounds are quick."""
    monkeypatch.setattr(plan_module, "_WORTH_A_THREAD", 0)
    monkeypatch.setattr(plan_module, "_WORTH_A_THREAD_BY_LEVELS", 0)
    monkeypatch.setattr(threads_module, "_WORTH_A_THREAD_SECONDS", 0.0)


@pytest.mark.fast
@every_backend
@every_family
@pytest.mark.parametrize("longest", [0.0, 1e-4, 10.0])
def test_short_and_long_rounds(monkeypatch, short_work_on_threads, family, neighbors, longest):
    data = [
        continuous_rows(family, 60, 2, seed=7),
        full_grid(family, 8),
        1.3 ** np.arange(40.0)[:, None],
    ]
    references = [by_levels(X, family, neighbors="brute", n_jobs=1) for X in data]
    asked, advance = [], levels_module._advance

    def note_what_is_asked(*arguments):
        asked.append(advance(*arguments))
        return asked[-1]

    monkeypatch.setattr(levels_module, "_advance", note_what_is_asked)
    monkeypatch.setattr(levels_module, "LONG_SECONDS", longest)
    for X, reference in zip(data, references, strict=True):
        for n_jobs in (2, 3):
            computed = by_levels(X, family, neighbors=neighbors, n_jobs=n_jobs)
            assert same_tree(computed, reference)
    if longest == 0.0:  # no round was short enough for the kernel
        assert {WANTS_MERGES, WANTS_LOOK_UP} <= {*asked}
    if longest == 10.0:
        assert {*asked} <= {WANTS_REBUILD, OUT_OF_BUDGET, FINISHED}


@every_family
def test_long_rounds_on_more_rows(monkeypatch, family):
    for X in (continuous_rows(family, 6_000, 2, seed=8), full_grid(family, 60)):
        reference = by_levels(X, family, n_jobs=1)
        for longest in (0.0, 1e-5, 10.0):
            monkeypatch.setattr(levels_module, "LONG_SECONDS", longest)
            for neighbors in ("brute", "kd_tree"):
                computed = by_levels(X, family, neighbors=neighbors, n_jobs=2)
                assert same_tree(computed, reference)


# Invalid input


@pytest.mark.fast
@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in REDUCIBLE])
def test_families_that_are_not_reducible_are_refused(family):
    message = rf"'levels' is for reducible families, and '{family}' is not.*Use 'greedy'"
    with pytest.raises(ValueError, match=message):
        by_levels(continuous_rows(family, 9, 2, seed=9), family)
