"""The greedy algorithm: merge for merge the textbook's, and certified where there are ties."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from certificates import certify_greedy
from hypothesis import given
from hypothesis import strategies as st
from strategies import FAMILIES, continuous_rows, data_sets, tied_data_sets

from fastrbhc import linkage
from fastrbhc._engine.agglomeration.batches import adapt, empty_batch
from fastrbhc.families import as_family
from fastrbhc.tree.dendrogram import dendrogram_of_merges


@pytest.mark.fast
@pytest.mark.parametrize("family", [name for name in FAMILIES if as_family(name).separable])
def test_phi_as_declared_is_that_of_the_textbook(family):
    X, weights = continuous_rows(family, 24, 3, seed=0), np.arange(1.0, 25.0)
    twin = naive.FAMILIES.get(family, naive.as_declared(as_family(family)))
    n, phi, _ = twin(X, weights)
    declared_n, declared_phi, _ = naive.as_declared(as_family(family))(X, weights)
    assert declared_n == pytest.approx(n, rel=1e-14)
    assert declared_phi == pytest.approx(phi, rel=1e-13)


@pytest.mark.fast
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_textbook_merge_for_merge(family, seed):
    X = continuous_rows(family, 24, 2 + seed, seed)
    reference, heights = naive.greedy(X, None, family)
    computed = linkage(X, family, algorithm="greedy")
    np.testing.assert_array_equal(computed.merges, reference)
    np.testing.assert_allclose(computed.heights, heights, rtol=1e-9)


@pytest.mark.fast
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_textbook_with_weights(family):
    X = continuous_rows(family, 24, 3, seed=5)
    weights = np.random.default_rng(5).uniform(0.1, 10.0, len(X))
    reference, heights = naive.greedy(X, weights, family)
    computed = linkage(X, family, algorithm="greedy", sample_weight=weights)
    np.testing.assert_array_equal(computed.merges, reference)
    np.testing.assert_allclose(computed.heights, heights, rtol=1e-9)


@pytest.mark.fast
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_textbook_at_a_threshold(family):
    X = continuous_rows(family, 24, 2, seed=7)
    threshold = float(np.median(naive.greedy(X, None, family)[1]))
    reference, heights = naive.greedy(X, None, family, threshold)
    computed = linkage(X, family, algorithm="greedy", threshold=threshold * (1.0 + 1e-9))
    # The reference rounds differently: it may not include the merge at the threshold itself.
    np.testing.assert_array_equal(computed.merges[: len(reference)], reference)
    np.testing.assert_allclose(computed.heights[: len(reference)], heights, rtol=1e-9)
    assert len(computed.merges) - len(reference) in (0, 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_matrix_algorithm_on_more_rows(family):
    """Enough rows for several blocks of bounds, and for many rebuilds."""
    X = continuous_rows(family, 600, 3, seed=8)
    reference, heights = naive.greedy_by_matrix(X, family)
    computed = linkage(X, family, algorithm="greedy")
    np.testing.assert_array_equal(computed.merges, reference)
    np.testing.assert_allclose(computed.heights, heights, rtol=1e-6, atol=1e-10)


@pytest.mark.fast
@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_every_merge_is_the_nearest_of_all_pairs(family, data):
    X, weights = data.draw(data_sets(family))
    tree = linkage(X, family, algorithm="greedy", sample_weight=weights)
    assert tree.n_trees == 1
    certify_greedy(tree, X, weights, family)


@pytest.mark.fast
@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data(), quantile=st.floats(0.0, 1.0))
def test_merging_stops_at_the_threshold(family, data, quantile):
    X, weights = data.draw(data_sets(family))
    options = {"algorithm": "greedy", "sample_weight": weights}
    heights = linkage(X, family, **options).heights
    forest = linkage(X, family, threshold=np.quantile(heights, quantile), **options)
    certify_greedy(forest, X, weights, family)


@pytest.mark.fast
@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_ties_are_certified(family, data):
    X, weights = data.draw(tied_data_sets(family))
    tree = linkage(X, family, algorithm="greedy", sample_weight=weights)
    certify_greedy(tree, X, weights, family)


@pytest.mark.fast
@pytest.mark.parametrize("seed", [9, 25, 26])
def test_union_that_comes_nearer_than_its_parts(seed):
    """If d is not reducible, a union may become the nearest neighbour of another cluster.

    For these seeds, a tree built without considering this misses the nearest pair at least once.
    """
    X = np.random.default_rng(seed).normal(size=(25, 2))
    certify_greedy(linkage(X, "gaussian", algorithm="greedy"), X, None, "gaussian")


@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
@pytest.mark.parametrize(("n", "seed"), [(200, 17), (200, 23), (600, 5), (600, 24)])
def test_pairs_of_a_batch_that_do_not_hold_are_taken_back(n, seed, neighbors):
    """The pair of a union and another cluster comes before a later pair of the same batch.

    With 200 rows the other cluster is part of one of these pairs; with 600 rows it is not.
    """
    X = np.random.default_rng(seed).normal(size=(n, 2))
    reference, heights = naive.greedy_by_matrix(X, "gaussian")
    computed = linkage(X, "gaussian", algorithm="greedy", neighbors=neighbors)
    np.testing.assert_array_equal(computed.merges, reference)
    np.testing.assert_allclose(computed.heights, heights, rtol=1e-6, atol=1e-10)


# The certificate itself: it accepts the textbook's tree and rejects all of these.


def textbook_tree(family="gaussian", threshold=np.inf):
    X = continuous_rows(family, 20, 3, seed=11)
    merges, heights = naive.greedy(X, None, family, threshold)
    return X, merges, heights


@pytest.mark.fast
def test_certificate_accepts_the_textbook():
    for family in FAMILIES:
        X, merges, heights = textbook_tree(family)
        certify_greedy(dendrogram_of_merges(merges, heights, np.ones(20)), X, None, family)


@pytest.mark.fast
def test_certificate_refuses_a_wrong_height():
    X, merges, heights = textbook_tree()
    heights[7] *= 1.0 + 1e-6
    with pytest.raises(AssertionError, match="has height"):
        certify_greedy(dendrogram_of_merges(merges, heights, np.ones(20)), X, None, "gaussian")


@pytest.mark.fast
def test_certificate_refuses_a_pair_that_is_not_the_nearest():
    X, _, _ = textbook_tree()
    first = np.array([[0, 1]])
    height = naive.dissimilarity(X[:1], np.ones(1), X[1:2], np.ones(1), "gaussian")
    assert naive.greedy(X, None, "gaussian")[0][0].tolist() != [0, 1]
    tree = dendrogram_of_merges(first, np.array([height]), np.ones(20), height * 1.5)
    with pytest.raises(AssertionError, match="were merged at"):
        certify_greedy(tree, X, None, "gaussian")


@pytest.mark.fast
def test_certificate_refuses_to_stop_early():
    X, merges, heights = textbook_tree()
    tree = dendrogram_of_merges(merges[:-3], heights[:-3], np.ones(20), 2.0 * heights.max())
    with pytest.raises(AssertionError, match="were left apart"):
        certify_greedy(tree, X, None, "gaussian")


@pytest.mark.fast
def test_certificate_refuses_a_node_that_is_used_twice():
    X, merges, heights = textbook_tree()
    merges[5] = merges[4]
    with pytest.raises(AssertionError, match="is not there"):
        certify_greedy(dendrogram_of_merges(merges, heights, np.ones(20)), X, None, "gaussian")


@pytest.mark.fast
def test_fewer_pairs_are_tried_where_they_do_not_hold():
    batch = empty_batch(1000, 1512)
    largest = len(batch.pairs)

    def settled(pairs, holding):
        batch.n_pairs = pairs
        adapt(batch, holding)
        return batch.most_pairs

    assert settled(16, 16) == largest
    assert settled(16, 3) == 3
    assert [settled(3, 3) for _ in range(8)] == [3] * 7 + [6]
    assert settled(4, 4) == 6  # ended by a stale link: no reason to grow
    assert batch.n_held == 0
    assert settled(6, 1) == 1
    for _ in range(200):
        most = settled(batch.most_pairs, batch.most_pairs)
    assert most >= largest
