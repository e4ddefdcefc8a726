"""The tree with probabilities: cuts and exports."""

from __future__ import annotations

import math
import pickle

import naive_bhc
import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage
from trees import leaf_sets

import fastrbhc
from fastrbhc.bhc import GammaPoisson
from fastrbhc.bhc.dendrogram import bayesian_dendrogram

MERGES = np.array([[0, 1], [2, 3], [4, 5], [6, 7]])


def tree_of(log_odds, merges=MERGES, log_alpha=0.0):
    n = len(merges) + 1
    return bayesian_dendrogram(merges, -np.array(log_odds), np.zeros(n), log_alpha)


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.choice([3.0, 20.0, 90.0], size=(40, 1)), size=(40, 2))
    return fastrbhc.bhc_linkage(X, GammaPoisson(1.0, 0.05), 0.5)


@pytest.mark.fast
def test_recursion_of_potentials():
    tree = tree_of([1.0, 2.0], np.array([[0, 1], [2, 3]]), math.log(0.5))
    # Leaves have φ = 1; the odds of the first merge are e, so its φ(X | H) is e.
    first, second = math.e, math.exp(2.0) * (math.e + 1.0)
    np.testing.assert_allclose(np.exp(tree.log_hypotheses), [first, second])
    np.testing.assert_allclose(np.exp(tree.log_trees), [first + 1.0, second + first + 1.0])
    gamma = 0.5 + 0.25
    np.testing.assert_allclose(np.exp(tree.log_gammas), [gamma, 0.5 * 2.0 + 0.5 * gamma])
    assert tree.weights.tolist() == [2.0, 3.0]
    normaliser = 0.5 * 1.5 * 2.5  # Γ(α + 3)/Γ(α)
    assert math.exp(tree.log_evidence) == pytest.approx((second + first + 1.0) / normaliser)


@pytest.mark.fast
def test_tiny_alpha_does_not_underflow():
    tree = tree_of([1.0, 2.0], np.array([[0, 1], [2, 3]]), -1e6)
    assert tree.log_evidence == pytest.approx(1e6, rel=1e-5)
    assert np.isfinite(tree.log_gammas).all()


@pytest.mark.fast
def test_cut_from_the_root_down():
    # The unlikely pair of leaves 0 and 1 lies in a likely cluster; the root is not likely.
    tree = tree_of([-1.0, 3.0, 2.0, -5.0])
    assert tree.merges.tolist() == MERGES.tolist()
    assert tree.cut().tolist() == [0, 0, 1, 1, 0]
    assert tree.cut(probability=0.9).tolist() == [1, 2, 0, 0, 3]
    assert tree.cut(probability=0.0).tolist() == [0, 0, 0, 0, 0]
    assert tree.cut(probability=1.0).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.fast
def test_cut_where_merging_would_have_stopped():
    tree = tree_of([3.0, -1.0, 2.0, -5.0])
    assert tree.cut(threshold=0.0).tolist() == [0, 0, 1, 2, 3]
    assert tree.cut(threshold=1.5).tolist() == [0, 0, 1, 1, 0]
    assert tree.cut(threshold=-4.0).tolist() == [0, 1, 2, 3, 4]
    assert tree.cut(threshold=np.inf).tolist() == [0, 0, 0, 0, 0]


@pytest.mark.fast
def test_lists_and_crumbs():
    tree = tree_of([3.0, -1.0, 2.0, -5.0])
    reference = np.column_stack([tree.cut(threshold=t) for t in (-4.0, 1.5)])
    np.testing.assert_array_equal(tree.cut(threshold=[-4.0, 1.5]), reference)
    assert tree.cut(n_clusters=2, min_size=2).tolist() == tree.cut(n_clusters=2).tolist()
    with pytest.raises(ValueError, match="min_size needs threshold or n_clusters"):
        tree.cut(min_size=2)


@pytest.mark.fast
def test_equally_large_clusters_are_numbered_by_what_is_within():
    # The pair of rows 2 and 3 is the more likely one, and comes first.
    tree = tree_of([-2.0, 3.0, -9.0], np.array([[0, 1], [2, 3], [4, 5]]))
    assert tree.cut(n_clusters=2).tolist() == [1, 1, 0, 0]


@pytest.mark.fast
def test_a_node_of_exactly_that_probability_is_a_cluster():
    tree = tree_of([0.0], np.array([[0, 1]]))
    assert tree.cut().tolist() == [0, 0]
    assert tree.cut(threshold=0.0).tolist() == [0, 1]  # d < λ, strictly, as everywhere


def test_cut_by_definition(tree):
    sets = leaf_sets(tree)
    for probability in (0.3, 0.5, 0.99):
        likely = [s for s, r in zip(sets, tree.probabilities, strict=True) if r >= probability]
        reference = [s for s in likely if not any(s < other for other in likely)]
        labels = tree.cut(probability=probability)
        found = {frozenset(np.flatnonzero(labels == k).tolist()) for k in range(labels.max() + 1)}
        assert {s for s in found if len(s) > 1} == set(reference)


@pytest.mark.parametrize("n_clusters", [1, 2, 17, 40])
def test_cut_into_so_many_clusters(tree, n_clusters):
    assert len(set(tree.cut(n_clusters=n_clusters).tolist())) == n_clusters


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"threshold": 0.0, "n_clusters": 2}, ValueError, "one of threshold, n_clusters and"),
        ({"probability": 1.5}, ValueError, "probability has to lie between 0 and 1"),
        ({"probability": "half"}, TypeError, "probability has to be a number"),
        ({"threshold": np.nan}, ValueError, "threshold has to be a number"),
        ({"n_clusters": 41}, ValueError, "n_clusters=41 is more than the number of rows"),
    ],
)
def test_cuts_that_are_refused(tree, options, error, message):
    with pytest.raises(error, match=message):
        tree.cut(**options)


def test_costs_along_the_path():
    X = np.array([[3], [4], [9], [40], [38], [90]])
    model, alpha = GammaPoisson(1.0, 0.1), 0.5
    tree = fastrbhc.bhc_linkage(X, model, alpha)

    def minus_log_joint(labels):
        groups = [X[labels == k] for k in range(labels.max() + 1)]
        log_potentials = (
            math.log(alpha)
            + math.lgamma(len(rows))
            + naive_bhc.log_marginal_likelihood(rows, model)
            for rows in groups
        )
        return -sum(log_potentials)

    path = tree.path()
    reference = np.array([minus_log_joint(tree.cut(threshold=t)) for t in path.thresholds])
    assert len(path) > 3
    np.testing.assert_allclose(path.costs, reference - reference[0], atol=1e-10)


def test_to_scipy(tree):
    with pytest.warns(UserWarning, match="inversions"):
        Z = tree.to_scipy()
    assert is_valid_linkage(Z)
    for level in np.unique(tree.levels)[:-1]:
        labels = fcluster(Z, level - tree.heights.min(), "distance")
        above = np.nextafter(level, np.inf)
        assert len(set(labels)) == len(set(tree.cut(threshold=above).tolist()))


def test_repr_and_pickle(tree):
    assert "40 leaves" in repr(tree)
    assert "log evidence" in repr(tree)
    restored = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(restored.log_trees, tree.log_trees)
    np.testing.assert_array_equal(restored.cut(), tree.cut())


def test_cut_takes_names_only():
    tree = fastrbhc.bhc_linkage([[3], [4], [40], [38]], "poisson")
    with pytest.raises(TypeError, match=r"Write cut\(n_clusters=2\)"):
        tree.cut(2)
