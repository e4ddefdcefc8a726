"""All merges at d = 0 of rows with missing cells, beside the greedy algorithm by itself."""

import numpy as np
import pytest
from test_missing import certify, rows_of

from fastrbhc import linkage
from fastrbhc._engine.clusters.build import clusters_of_points
from fastrbhc._engine.clusters.duplicates import collapse
from fastrbhc._engine.clusters.strangers import merge_strangers
from fastrbhc._engine.geometry.contract import separate_columns
from fastrbhc._engine.planning import execution
from fastrbhc._table import placed
from fastrbhc.families import as_family, geometry_of
from fastrbhc.families._missing import observe

NAN = np.nan
every_kind = pytest.mark.parametrize("name", ["spherical_gaussian", "poisson", "inverse_gaussian"])


def tied_rows(name, n, d, seed, share, n_values=None):
    """Rows with many gaps, and with few values if these are to be equal often."""
    X = rows_of(name, n, d, seed=seed, share=share)
    return X if n_values is None else np.ceil(n_values * X / np.nanmax(X))


def both_ways(monkeypatch, X, name, **options):
    """The tree, and the one without the pass."""
    tree = linkage(X, name, missing="ignore", algorithm="greedy", **options)
    with monkeypatch.context() as patch:
        patch.setattr(execution, "merge_strangers", lambda geometry, separate, clusters: None)
        return tree, linkage(X, name, missing="ignore", algorithm="greedy", **options)


def passed(X, name, weights=None):
    """What the pass returns for these rows."""
    rows = observe(as_family(name), np.asarray(X, float)).weighted(weights)
    geometry, points = geometry_of(as_family(name), rows), collapse(rows).points
    clusters = clusters_of_points(geometry, points, padded=True)
    separate = separate_columns(geometry, 0, clusters.means.shape[0], 1.0)
    return merge_strangers(geometry, separate, clusters), clusters


@pytest.mark.filterwarnings("ignore:.*no observed column")
@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
@pytest.mark.parametrize("n_values", [None, 2, 6])
@every_kind
def test_trees_are_the_same_to_the_bit(monkeypatch, name, n_values, neighbors):
    for seed, (d, share) in enumerate([(2, 0.5), (3, 0.4), (5, 0.6), (70, 0.97)]):
        X = tied_rows(name, 260, d, seed, share, n_values)
        weights = np.random.default_rng(seed).choice([0.5, 1.0, 3.0], len(X))
        assert passed(X, name)[0] is not None
        for given in (None, weights):
            options = {"neighbors": neighbors, "sample_weight": given}
            tree, reference = both_ways(monkeypatch, X, name, **options)
            assert np.array_equal(tree.merges, reference.merges)
            assert np.array_equal(tree.heights, reference.heights)
            assert (tree.heights == 0.0).sum() > 20


@pytest.mark.filterwarnings("ignore:.*no observed column")
@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
def test_products_are_the_same_to_the_bit(monkeypatch, neighbors):
    family = {"poisson": ([0, 2], 0.3), "ward": [1], "exponential": [3]}
    for seed, n_values in enumerate([None, 2, 6]):
        X = tied_rows("exponential", 260, 4, seed, 0.6, n_values)
        tree, reference = both_ways(monkeypatch, X, family, neighbors=neighbors)
        assert np.array_equal(tree.merges, reference.merges)
        assert np.array_equal(tree.heights, reference.heights)
        assert (tree.heights == 0.0).sum() > 20


@pytest.mark.fast
def test_blocks_without_gaps_know_no_strangers():
    X = np.array([[1.0, 2.0, NAN], [3.0, 4.0, 5.0]])
    family = placed(as_family({"gaussian": [0, 1], "ward": [2]}), X)
    geometry = geometry_of(family, observe(family, X))
    assert separate_columns(geometry, 0, 4, 1.0) is None
    family = placed(as_family({"poisson": ([0, 1], 0.5), "ward": [2]}), X)
    geometry = geometry_of(family, observe(family, X, gaps=True))
    first, second = separate_columns(geometry, 0, 6, 1.0)
    assert (first.factor, first.values, first.weights) == (0.5, slice(0, 2), slice(2, 4))
    assert (second.factor, second.values, second.weights) == (1.0, slice(4, 5), slice(5, 6))


@pytest.mark.filterwarnings("ignore:.*no observed column")
def test_trees_follow_the_definition():
    X = tied_rows("poisson", 26, 3, 5, 0.5, 3)
    certify(linkage(X, "poisson", missing="ignore", algorithm="greedy"), X, "poisson")


@pytest.mark.filterwarnings("ignore:.*no observed column")
def test_thresholds_and_direct_trees():
    X = tied_rows("ward", 120, 2, 6, 0.5)
    direct = linkage(X, "ward", missing="ignore")
    greedy = linkage(X, "ward", missing="ignore", algorithm="greedy")
    assert np.array_equal(direct.merges, greedy.merges)
    assert np.array_equal(direct.heights, greedy.heights)
    level = float(np.median(greedy.heights))
    forest = linkage(X, "ward", missing="ignore", algorithm="greedy", threshold=level)
    assert np.array_equal(forest.heights, greedy.heights[greedy.heights < level])


@pytest.mark.filterwarnings("ignore:.*no observed column")
def test_everything_may_be_alike():
    X = np.full((9, 9), NAN)
    X[np.arange(9), np.arange(9)] = 1.0
    tree = linkage(X, "ward", missing="ignore", algorithm="greedy")
    assert tree.heights.tolist() == [0.0] * 8
    assert tree.n_trees == 1


def test_unions_are_in_the_slots_of_their_larger_ranks():
    made, clusters = passed([[1.0, NAN], [NAN, 2.0], [3.0, NAN], [NAN, 4.0], [5.0, 6.0]], "ward")
    assert len(made.children) == 2
    alive = np.flatnonzero(~np.isnan(clusters.weights[:5]))
    assert (clusters.means[2:, alive] == 1.0).all()
    for node, (a, b) in zip([5, 6], made.children, strict=True):
        assert max(a, b) in alive
        assert made.nodes[max(a, b)] == node


def test_without_strangers_there_is_no_pass():
    assert passed([[1.0, NAN], [1.0, 2.0], [3.0, 4.0]], "ward")[0] is None


def test_values_that_nearly_agree_are_left_to_the_algorithm(monkeypatch):
    # The squares of their differences underflow, so that d is 0 though they differ.
    X = np.array([[1e-170, NAN], [2e-170, NAN], [NAN, 1.0], [1.0, 2.0], [NAN, 3.0]])
    assert passed(X, "ward")[0] is None
    tree, reference = both_ways(monkeypatch, np.r_[X, X + 1.0], "ward")
    assert np.array_equal(tree.merges, reference.merges)
