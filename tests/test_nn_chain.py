"""The nearest-neighbour chain: always reciprocal pairs; the greedy tree if d is reducible."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from certificates import certify_nn_chain
from hypothesis import given
from hypothesis import strategies as st
from strategies import FAMILIES, REDUCIBLE, continuous, continuous_rows, data_sets, tied_data_sets
from trees import same_tree

from fastrbhc import linkage
from fastrbhc.families import as_family
from fastrbhc.tree.dendrogram import dendrogram_of_merges

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_every_merge_is_of_a_reciprocal_pair(family, data):
    X, weights = data.draw(data_sets(family))
    tree = linkage(X, family, algorithm="nn_chain", sample_weight=weights)
    assert tree.n_trees == 1
    certify_nn_chain(tree, X, weights, family)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_ties_are_certified(family, data):
    X, weights = data.draw(tied_data_sets(family))
    tree = linkage(X, family, algorithm="nn_chain", sample_weight=weights)
    certify_nn_chain(tree, X, weights, family)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data(), quantile=st.floats(0.0, 1.0))
def test_merging_stops_at_the_threshold(family, data, quantile):
    X, weights = data.draw(data_sets(family))
    heights = linkage(X, family, sample_weight=weights).heights
    threshold = np.quantile(heights, quantile)
    forest = linkage(X, family, algorithm="nn_chain", sample_weight=weights, threshold=threshold)
    certify_nn_chain(forest, X, weights, family, reducible=as_family(family).reducible)


@pytest.mark.parametrize("family", REDUCIBLE)
@given(data=st.data())
def test_equals_greedy_where_reducible(family, data):
    X, _ = data.draw(continuous(family))
    reference = linkage(X, family, algorithm="greedy")
    computed = linkage(X, family, algorithm="nn_chain")
    np.testing.assert_array_equal(computed.merges, reference.merges)
    np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-12)


@pytest.mark.parametrize("family", REDUCIBLE)
def test_equals_the_textbook_chain_where_reducible(family):
    X = continuous_rows(family, 20, 3, seed=2)
    for threshold in (np.inf, 1.0):
        merges, heights = naive.nn_chain(X, None, family, threshold)
        reference = dendrogram_of_merges(merges, heights, np.ones(20), threshold)
        computed = linkage(X, family, algorithm="nn_chain", threshold=threshold)
        np.testing.assert_array_equal(computed.merges, reference.merges)
        np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-119, 1e-60, 1e60, 1e119])
def test_scans_lose_no_pair_at_the_ends_of_double_precision(scale):
    rng = np.random.default_rng(4)
    for _ in range(5):
        X, weights = rng.normal(size=(60, 2)) * scale, 10.0 ** rng.uniform(-49, 49, size=60)
        options = {"algorithm": "nn_chain", "sample_weight": weights}
        with np.errstate(over="ignore"):  # plain Python warns if a bound overflows
            reference = linkage(X, "ward", neighbors="kd_tree", **options)
            assert same_tree(linkage(X, "ward", neighbors="brute", **options), reference)


@pytest.mark.parametrize("seed", [143, 333, 379, 408])
def test_chain_that_has_to_be_cut_back(seed):
    """A union comes nearer to a member of the chain than the next member is.

    For these seeds a chain that is not cut back merges a pair that is not reciprocal.
    """
    X = np.random.default_rng(seed).normal(size=(12, 2))
    certify_nn_chain(linkage(X, "gaussian", algorithm="nn_chain"), X, None, "gaussian")


def test_chain_may_differ_from_greedy_where_not_reducible():
    differing = 0
    for seed in range(12):
        X = np.random.default_rng(seed).normal(size=(20, 2))
        tree = linkage(X, "gaussian", algorithm="nn_chain")
        certify_nn_chain(tree, X, None, "gaussian")
        differing += set(tree.heights) != set(linkage(X, "gaussian").heights)
    assert differing > 0  # otherwise these seeds test nothing


# The certificate itself: it accepts the textbook's tree and rejects all of these.


def test_certificate_accepts_the_textbook():
    for family in FAMILIES:
        X = continuous_rows(family, 15, 2, seed=3)
        for threshold in (np.inf, float(np.median(naive.nn_chain(X, None, family)[1]))):
            merges, heights = naive.nn_chain(X, None, family, threshold)
            tree = dendrogram_of_merges(merges, heights, np.ones(15), threshold)
            certify_nn_chain(tree, X, None, family, reducible=as_family(family).reducible)


def test_certificate_refuses_a_pair_that_is_not_reciprocal():
    X = np.array([[0.0], [1.0], [1.5], [9.0]])
    merges, heights = np.array([[0, 1], [2, 3], [4, 5]]), np.array([0.25, 14.0625, 22.5625])
    with pytest.raises(AssertionError, match="were merged at"):
        certify_nn_chain(
            dendrogram_of_merges(merges, heights, np.ones(4)), X, None, "spherical_gaussian"
        )


def test_certificate_refuses_a_wrong_height():
    X = np.array([[0.0], [1.0], [5.0]])
    tree = dendrogram_of_merges(np.array([[0, 1], [2, 3]]), np.array([0.3, 6.75]), np.ones(3))
    with pytest.raises(AssertionError, match="has height"):
        certify_nn_chain(tree, X, None, "spherical_gaussian")


def test_certificate_refuses_to_stop_early():
    X = np.array([[0.0], [1.0], [5.0], [6.0]])
    tree = dendrogram_of_merges(np.array([[0, 1]]), np.array([0.25]), np.ones(4), 1.0)
    with pytest.raises(AssertionError, match="left"):
        certify_nn_chain(tree, X, None, "spherical_gaussian", reducible=True)
    with pytest.raises(AssertionError, match="left"):
        certify_nn_chain(tree, X, None, "spherical_gaussian")
