"""Sparse rows: the tree of the dense rows, without making them dense."""

import tracemalloc

import numpy as np
import pytest
from certificates import certify_greedy, certify_nn_chain
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import fastrbhc
from fastrbhc.families import Multinomial, Poisson

pytestmark = pytest.mark.filterwarnings("ignore:this family is for counts")

COUNTS = ["poisson", "multinomial", "bernoulli"]
MORE = [*COUNTS, Poisson(smoothing=0.0), Multinomial(smoothing=0.0), Multinomial(0.3, False)]


def mostly_zero(n, d, seed, family="poisson", density=0.1):
    """Rows without ties in two groups, none of them empty."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < density, rng.gamma(2.0, 1.0, (n, d)), 0.0)
    X[: n // 2, : d // 3] += rng.gamma(1.0, 0.5, (n // 2, d // 3)) * (rng.random(d // 3) < 0.3)
    X[np.arange(n), rng.integers(d, size=n)] += rng.random(n)
    return X / X.max() if family == "bernoulli" else X


def small_counts(n, d, seed):
    """Small whole numbers, with many ties and repeated rows."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.3, (n, d)).astype(float)
    X[:, 0] += 1.0 * (X.sum(axis=1) == 0.0)
    return X


def sparse_tree(X, family, **options):
    return fastrbhc.linkage(sparse.csr_array(X), family, neighbors="inverted", **options)


def assert_same_tree(tree, reference):
    np.testing.assert_allclose(tree.heights, reference.heights, rtol=1e-10)
    np.testing.assert_array_equal(tree.merges, reference.merges)


@pytest.mark.parametrize("family", MORE, ids=str)
def test_tree_is_that_of_the_dense_rows(family):
    X = mostly_zero(160, 40, 0, family)
    assert_same_tree(sparse_tree(X, family), fastrbhc.linkage(X, family))


@pytest.mark.parametrize("family", COUNTS)
def test_chain_is_that_of_the_dense_rows(family):
    X = mostly_zero(120, 40, 1, family)
    reference = fastrbhc.linkage(X, family, algorithm="nn_chain")
    assert_same_tree(sparse_tree(X, family, algorithm="nn_chain"), reference)


@pytest.mark.parametrize("family", COUNTS)
def test_thresholds_and_weights(family):
    X = mostly_zero(150, 30, 2, family)
    weights = np.random.default_rng(2).uniform(0.5, 3.0, 150)
    whole = fastrbhc.linkage(X, family, sample_weight=weights)
    level = float(whole.heights[70:72].mean())
    reference = fastrbhc.linkage(X, family, sample_weight=weights, threshold=level)
    assert 1 < reference.n_trees < 150
    assert_same_tree(sparse_tree(X, family, sample_weight=weights, threshold=level), reference)


@pytest.mark.parametrize("family", COUNTS)
def test_many_merges_fill_and_compact_the_pool(family):
    # Clusters become dense, so that unions are longer and longer.
    X = mostly_zero(900, 60, 3, family, density=0.05)
    assert_same_tree(sparse_tree(X, family), fastrbhc.linkage(X, family))


@given(st.integers(0, 10**6), st.integers(2, 24), st.integers(1, 12), st.sampled_from(COUNTS))
def test_merges_of_tied_counts_are_the_nearest(seed, n, d, family):
    X = small_counts(n, d, seed)
    X = np.minimum(X, 1.0) if family == "bernoulli" else X
    weights = np.random.default_rng(seed).integers(1, 4, n).astype(float)
    certify_greedy(sparse_tree(X, family), X, None, family)
    certify_greedy(sparse_tree(X, family, sample_weight=weights), X, weights, family)


@given(st.integers(0, 10**6), st.integers(2, 20), st.integers(1, 8), st.sampled_from(COUNTS))
def test_chains_of_tied_counts_join_reciprocal_neighbours(seed, n, d, family):
    X = small_counts(n, d, seed)
    X = np.minimum(X, 1.0) if family == "bernoulli" else X
    certify_nn_chain(sparse_tree(X, family, algorithm="nn_chain"), X, None, family)


def test_bits_do_not_depend_on_how_the_matrix_is_stored():
    X = small_counts(80, 30, 4)
    reference = sparse_tree(X, "multinomial")
    csr = sparse.csr_array(X)
    coo = sparse.coo_array(X)
    doubled = sparse.coo_array(
        (
            np.r_[0.25 * coo.data, 0.75 * coo.data],
            (np.r_[coo.row, coo.row], np.r_[coo.col, coo.col]),
        ),
        shape=X.shape,
    )
    rows, columns = np.flatnonzero(X.sum(axis=1) > 0)[:5], np.array([29, 28, 27, 26, 25])
    with_zeros = sparse.coo_array(
        (np.r_[coo.data, np.zeros(5)], (np.r_[coo.row, rows], np.r_[coo.col, columns])),
        shape=X.shape,
    )
    unsorted = csr.copy()
    for start, stop in zip(csr.indptr[:-1], csr.indptr[1:], strict=True):
        unsorted.indices[start:stop] = csr.indices[start:stop][::-1]
        unsorted.data[start:stop] = csr.data[start:stop][::-1]
    wide = sparse.csr_array(
        (csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=csr.shape
    )
    for form in (
        X,
        sparse.csr_matrix(X),
        sparse.csc_array(X),
        coo,
        doubled,
        with_zeros,
        unsorted,
        wide,
        csr.astype(np.int16),
        sparse.lil_array(X),
        sparse.dok_array(X),
    ):
        tree = fastrbhc.linkage(form, "multinomial", neighbors="inverted")
        np.testing.assert_array_equal(tree.merges, reference.merges)
        np.testing.assert_array_equal(tree.heights, reference.heights)
    np.testing.assert_array_equal(doubled.toarray(), X)  # left alone


@pytest.mark.parametrize("family", COUNTS)
def test_bits_do_not_depend_on_order_or_threads(family):
    X = np.minimum(small_counts(300, 40, 5), 1.0 if family == "bernoulli" else 9.0)
    order = np.random.default_rng(5).permutation(300)
    reference = sparse_tree(X, family, n_jobs=1)
    np.testing.assert_array_equal(sparse_tree(X, family, n_jobs=3).heights, reference.heights)
    moved = sparse_tree(X[order], family, n_jobs=2)
    np.testing.assert_array_equal(moved.heights, reference.heights)
    labels = np.empty(300, int)
    labels[order] = moved.cut(n_clusters=7)
    pairs = set(zip(labels.tolist(), reference.cut(n_clusters=7).tolist(), strict=True))
    assert len(pairs) == 7


def test_repeated_and_proportional_rows_merge_at_zero():
    X = np.array([[2, 0, 4, 0], [1, 0, 2, 0], [2, 0, 4, 0], [0, 3, 0, 0], [0, 1, 0, 1]], float)
    tree = sparse_tree(X, "multinomial")
    np.testing.assert_array_equal(tree.heights[:2], 0.0)
    assert tree.cut(n_clusters=3).tolist() == [0, 0, 0, 1, 2]
    np.testing.assert_allclose(tree.heights, fastrbhc.linkage(X, "multinomial").heights, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-118, 1e-60, 1.0, 1e50, 1e110])
@pytest.mark.parametrize("family", ["poisson", "multinomial"])
def test_any_unit(family, unit):
    X = unit * mostly_zero(40, 12, 13)
    family = fastrbhc.families.as_family(family)._replace(smoothing=0.0)
    assert_same_tree(sparse_tree(X, family), fastrbhc.linkage(X, family))


def test_rows_that_agree_to_ten_digits():
    # Sums of two such rows have no room for the digits in which they differ.
    X = 3e7 + np.random.default_rng(14).random((30, 3))
    np.testing.assert_allclose(
        sparse_tree(X, "poisson").heights, fastrbhc.linkage(X, "poisson").heights, rtol=1e-10
    )


def test_empty_rows_and_rows_without_weight():
    X = mostly_zero(40, 20, 6)
    X[3], X[7] = 0.0, 0.0  # rows of zeros are ordinary for Poisson
    weights = np.ones(40)
    weights[[1, 5]] = 0.0
    reference = fastrbhc.linkage(X, "poisson", sample_weight=weights)
    tree = sparse_tree(X, "poisson", sample_weight=weights)
    np.testing.assert_allclose(tree.heights, reference.heights, rtol=1e-10, atol=1e-300)
    np.testing.assert_array_equal(tree.cut(n_clusters=9), reference.cut(n_clusters=9))


@pytest.mark.parametrize("audit", [True, "sample"])
@pytest.mark.parametrize("family", ["poisson", "multinomial"])
def test_audit_is_that_of_the_dense_rows(family, audit):
    X = mostly_zero(90, 25, 7, family)
    reference = fastrbhc.linkage(X, family, audit=audit).audit
    found = sparse_tree(X, family, audit=audit).audit
    assert found.violations == reference.violations
    assert found.method == reference.method


@pytest.mark.parametrize("family", COUNTS)
def test_estimator_on_sparse_rows(family):
    X, new = mostly_zero(200, 30, 8, family), mostly_zero(20, 30, 9, family)
    for options in ({"n_clusters": 4}, {"threshold": "gap"}, {}):
        dense = fastrbhc.RBHC(family, **options).fit(X)
        model = fastrbhc.RBHC(family, neighbors="inverted", **options).fit(sparse.csr_array(X))
        np.testing.assert_array_equal(model.labels_, dense.labels_)
        np.testing.assert_array_equal(model.predict(sparse.csr_array(new)), dense.predict(new))
        np.testing.assert_array_equal(model.predict(new), dense.predict(new))
        np.testing.assert_allclose(model.transform(new), dense.transform(new), rtol=1e-10)


def test_kmeans_threshold_of_sparse_rows():
    X = mostly_zero(300, 30, 10)
    model = fastrbhc.RBHC("poisson", threshold="kmeans", neighbors="inverted", random_state=0)
    levels = [model.fit(sparse.csr_array(X)).threshold_ for _ in range(2)]
    assert levels[0] == levels[1]
    assert 0.2 < levels[0] / fastrbhc.kmeans_threshold(X, "poisson", 8, random_state=0) < 5.0


def wide_topics(n, d, words, seed):
    rng = np.random.default_rng(seed)
    topics = rng.integers(d, size=(20, 200))
    rows = np.repeat(np.arange(n), words)
    columns = topics[rng.integers(20, size=n)][:, rng.integers(200, size=words)].ravel()
    return sparse.csr_array((np.ones(n * words), (rows, columns)), shape=(n, d))


def test_memory_is_that_of_the_entries():
    X = wide_topics(4_000, 60_000, 60, 11)  # 1.9 GB as a dense matrix
    fastrbhc.linkage(X[:50], "multinomial", neighbors="inverted")
    tracemalloc.start()
    tree = fastrbhc.linkage(X, "multinomial")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tree.n_trees == 1
    # What does not grow with the rows: scratch rows of the threads, and postings by column.
    assert peak < 36 * X.nnz + 400 * X.shape[0] + 40 * X.shape[1] + 2_000_000


def test_large_sparse_matrices_stay_sparse_and_others_do_not():
    from fastrbhc._row_validation import check_rows

    family = fastrbhc.families.as_family("poisson")

    def stays(X):
        return sparse.issparse(check_rows(X, family, layout="auto"))

    assert stays(sparse.random_array((2_000, 1_000), density=0.05, random_state=0))
    assert not stays(sparse.random_array((2_000, 1_000), density=0.5, random_state=0))
    assert not stays(sparse.random_array((100, 100), density=0.05, random_state=0))
    assert not stays(sparse.random_array((200_000, 8), density=0.05, random_state=0))
    assert not stays(np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "contains NaN: row 3, column 17 is nan"),
        (np.inf, "contains infinity: row 3, column 17 is inf"),
        (-2.0, "Negative values in data passed as X: row 3, column 17 is -2"),
    ],
)
def test_bad_values_are_named(value, message):
    X = sparse.lil_array(wide_topics(30, 50, 5, 12))
    X[3, 17] = value
    with pytest.raises(ValueError, match=message):
        fastrbhc.linkage(sparse.csr_array(X), "poisson", neighbors="inverted")


def test_empty_rows_of_a_multinomial_are_named():
    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]))
    with pytest.raises(ValueError, match="1 rows without any count, the first being row 1"):
        fastrbhc.linkage(X, "multinomial", neighbors="inverted")


def test_index_out_of_range_is_refused():
    X = sparse.csr_array(np.eye(3))
    X.indices[1] = 7
    with pytest.raises(ValueError, match="indices holds 7, expected 0 to 2"):
        fastrbhc.linkage(X, "poisson")


def test_families_that_do_not_take_zeros_say_so():
    with pytest.raises(TypeError, match="'spherical_gaussian' takes dense rows only"):
        fastrbhc.linkage(sparse.csr_array(np.eye(3)), "ward")
    for fit in (fastrbhc.RBHC().fit, fastrbhc.linkage, fastrbhc.BHC().fit):
        with pytest.raises(TypeError, match=r"'multinomial' for words.* pass X\.toarray\(\)"):
            fit(sparse.csr_array(np.eye(3)))
    with pytest.raises(ValueError, match="neighbors='inverted' is for families of counts"):
        fastrbhc.linkage(np.eye(3), "ward", neighbors="inverted")


def test_rows_of_weight_zero_join_the_same_point_as_dense_ones():
    X, weights = np.array([[27.0, 7.0], [27.0, 9.0], [0.0, 9.0]]), [1.0, 4.0, 0.0]
    reference = fastrbhc.linkage(X, "multinomial", sample_weight=weights, neighbors="brute")
    computed = fastrbhc.linkage(X, "multinomial", sample_weight=weights, neighbors="inverted")
    np.testing.assert_array_equal(computed.merges, reference.merges)


def test_rows_with_the_same_shares_are_one_point():
    family = Multinomial(weight_by_total=False)
    computed = fastrbhc.linkage([[1.0, 2.0], [11000.0, 22000.0]], family, neighbors="inverted")
    assert computed.heights.tolist() == [0.0]
