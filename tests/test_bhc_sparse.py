"""Sparse rows of counts: the tree of the dense rows, without making them dense."""

from __future__ import annotations

import math
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from test_bhc_linkage import certify

import fastrbhc
from fastrbhc import BHC
from fastrbhc.bhc import (
    BetaBernoulli,
    DirichletMultinomial,
    GammaPoisson,
    as_model,
    evidence,
    log_marginal_likelihood,
    registered,
)
from fastrbhc.bhc._interface import log_marginal, upper_bounds
from fastrbhc.bhc._linkage import fit_tree
from fastrbhc.bhc._rows import rows_of
from fastrbhc.bhc.potentials import absorb, clusters_of_rows, potentials_of, scratch_of
from fastrbhc.bhc.predictive import log_densities, log_densities_of_clusters

NAMES = sorted({cls.name for cls in registered().values() if cls.takes_sparse_rows})
every_model = pytest.mark.parametrize("name", NAMES)

D = 30
COLUMNS = np.random.default_rng(99).uniform(0.2, 3.0, (2, D))
# Zeros and ones have ties, unless the columns differ.
WITHOUT_TIES = [
    "poisson",
    GammaPoisson(0.4, 0.7),
    GammaPoisson(COLUMNS[0], 0.7),
    "multinomial",
    DirichletMultinomial(0.3),
    DirichletMultinomial(COLUMNS[0]),
    BetaBernoulli(COLUMNS[0], COLUMNS[1]),
]
without_ties = pytest.mark.parametrize("model", WITHOUT_TIES, ids=lambda model: str(model)[:30])


def draw(name, n, seed, whole=True):
    """Rows of two kinds, mostly zeros, in which a few columns make every row unlike the others."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, D)) < 0.15, rng.poisson(3.0, (n, D)) + 1.0, 0.0)
    X[: n // 2, : D // 3] += rng.poisson(0.5, (n // 2, D // 3))
    X[:, -1] += 1.0 + rng.permutation(n)
    if name == "bernoulli":
        return np.minimum(X, 1.0)
    return X if whole else X * rng.uniform(0.5, 1.5, X.shape)


def grow(X, model, alpha=1.0, hyperparameters="data", n_threads=1):
    """The tree of rows in the layout that they have."""
    return fit_tree(
        X, as_model(model, hyperparameters), alpha, hyperparameters, n_threads, False, 0
    )


def assert_same_tree(X, model, *options):
    reference, computed = grow(X, model, *options), grow(sparse.csr_array(X), model, *options)
    for field in reference.model._fields:
        ours, theirs = getattr(computed.model, field), getattr(reference.model, field)
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    tree = computed.tree
    np.testing.assert_array_equal(tree.merges, reference.tree.merges)
    np.testing.assert_allclose(tree.heights, reference.tree.heights, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(tree.log_trees, reference.tree.log_trees, rtol=1e-10)
    assert tree.log_evidence == pytest.approx(reference.tree.log_evidence, rel=1e-10)


# Trees


@without_ties
@pytest.mark.parametrize("alpha", [0.1, 20.0])
def test_tree_is_that_of_the_dense_rows(model, alpha):
    assert_same_tree(draw(as_model(model).name, 120, 0), model, alpha)


@without_ties
def test_counts_need_not_be_whole(model):
    if as_model(model).domain.upper > 1.0:
        assert_same_tree(draw(as_model(model).name, 60, 1, whole=False), model)


@without_ties
def test_many_merges_fill_and_compact_the_pool(model):
    assert_same_tree(draw(as_model(model).name, 500, 2), model)


@pytest.mark.parametrize("name", ["poisson", "multinomial"])
def test_totals_beyond_the_tables(name, monkeypatch):
    monkeypatch.setattr("fastrbhc.bhc.likelihoods.counts._LARGEST_TABLES", 10)
    monkeypatch.setattr("fastrbhc.bhc.likelihoods.counts._SHORT_TABLES", 6)
    assert_same_tree(draw(name, 80, 3), name)


def test_empty_rows():
    X = draw("poisson", 40, 4)
    X[7], X[:, -2:] = 0.0, 0.0
    assert_same_tree(X, "poisson")


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 14), st.integers(1, 6), st.sampled_from(NAMES))
def test_merges_of_tied_rows_have_the_largest_odds(seed, n, d, name):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.5, (n, d)).astype(float)
    X[:, 0] += X.sum(axis=1) == 0.0
    X = np.minimum(X, 1.0 if name == "bernoulli" else 9.0)
    tree, record = grow(sparse.csr_array(X), name, 0.7)
    certify(tree, X, record, math.log(0.7))


@every_model
def test_bits_do_not_depend_on_order_or_threads(name):
    X = np.minimum(draw(name, 300, 5), 3.0)
    order = np.random.default_rng(5).permutation(300)
    reference = grow(sparse.csr_array(X), name).tree
    np.testing.assert_array_equal(
        grow(sparse.csr_array(X), name, n_threads=3).tree.heights, reference.heights
    )
    np.testing.assert_array_equal(
        grow(sparse.csr_array(X[order]), name).tree.heights, reference.heights
    )


@every_model
def test_marginal_likelihood_and_hyperparameters_of_sparse_rows(name, monkeypatch):
    X = draw(name, 50, 6)
    reference, record = log_marginal_likelihood(X, name), as_model(name)
    always_sparse(monkeypatch)
    assert log_marginal_likelihood(sparse.csr_array(X), name) == pytest.approx(reference, rel=1e-12)
    computed, dense = (record.with_defaults(form) for form in (sparse.csr_array(X), X))
    np.testing.assert_allclose(computed, dense, rtol=1e-12)
    np.testing.assert_allclose(
        dense.log_base_measure(sparse.csr_array(X)), dense.log_base_measure(X), rtol=1e-12
    )


@pytest.mark.parametrize("name", ["poisson", "multinomial"])
def test_search_for_the_largest_evidence(name, monkeypatch):
    X = draw(name, 60, 7)
    reference = grow(X, name, "evidence", "evidence")
    computed = grow(sparse.csr_array(X), name, "evidence", "evidence")
    np.testing.assert_allclose(computed.model, reference.model, rtol=1e-6)
    assert computed.tree.log_alpha == pytest.approx(reference.tree.log_alpha, rel=1e-6)
    monkeypatch.setattr(evidence, "SAMPLE", 25)
    sampled = grow(sparse.csr_array(X), name, "evidence", "evidence")
    assert sampled.tree.n_leaves == 60


@pytest.mark.fast
@every_model
def test_look_ups_stay_within_the_tables(name):
    # Without compilation an index out of range is an error: for a free slot that a hint names, and
    # for a cluster of most rows with itself.
    X = draw(name, 14, 13)
    for form in (X, sparse.csr_array(X)):
        assert grow(form, name).tree.n_leaves == 14


FAR = [
    GammaPoisson(1e-5, 1e-3),
    GammaPoisson(1e5, 1e4),
    DirichletMultinomial(1e-6),
    DirichletMultinomial(1e6),
    BetaBernoulli(1e-5, 1e-2),
    BetaBernoulli(1e4, 1e5),
]


@pytest.mark.parametrize("model", [*WITHOUT_TIES, *FAR], ids=lambda model: str(model)[:30])
def test_bounds_hold_and_are_close(model):
    X = sparse.csr_array(draw(as_model(model).name, 40, 14))
    likelihood = as_model(model).with_defaults(X).likelihood(X)
    geometry = potentials_of(likelihood, 0.0, 40)
    clusters, scratch = clusters_of_rows(geometry, X), scratch_of(geometry, X)
    for i, j in [(0, 1), (0, 2), (3, 4), (0, 3), (10, 11), (20, 21), (20, 22)]:
        absorb(geometry, clusters, i, j, scratch)
    for i in (0, 10, 20, 30):
        upper_bounds(likelihood, clusters, i, 0, 40, scratch)
        bounds = scratch.bounds[:40].copy()
        for j in range(40):
            if np.isnan(clusters.weights[j]) or j == i:
                assert np.isnan(bounds[j])
                continue
            value = log_marginal(likelihood, clusters, i, j, -np.inf, scratch)
            assert value == log_marginal(likelihood, clusters, j, i, -np.inf, scratch)
            assert value <= bounds[j] <= value + 1e-9 * abs(value) + 1e-6


# New rows


@every_model
def test_densities_of_new_rows(name, monkeypatch):
    monkeypatch.setattr("fastrbhc.bhc.predictive._PORTION", 7)
    X, new = draw(name, 80, 8), draw(name, 10, 9)
    tree, record = grow(X, name)
    labels = np.arange(80) % 3
    for rows in (new, new if name == "bernoulli" else 1.5 * new):
        for reference, computed in (
            (log_densities(*forms, record, tree) for forms in both_forms(X, rows)),
            (log_densities_of_clusters(*forms, record, labels) for forms in both_forms(X, rows)),
        ):
            np.testing.assert_allclose(computed, reference, rtol=1e-10)


def both_forms(X, new):
    return (X, new), (sparse.csr_array(X), sparse.csr_array(new))


def always_sparse(monkeypatch):
    """Let every sparse matrix stay sparse."""
    monkeypatch.setattr("fastrbhc._row_validation._FEW_VALUES", 0)
    monkeypatch.setattr("fastrbhc._row_validation._FEW_COLUMNS", 0)
    monkeypatch.setattr("fastrbhc._row_validation._FEW_NONZEROS", 2.0)


@pytest.mark.parametrize("model", ["poisson", "multinomial", WITHOUT_TIES[-1]], ids=range(3))
def test_estimator(model, monkeypatch):
    name = as_model(model).name
    X, new = draw(name, 100, 10), draw(name, 12, 11)
    dense = BHC(model, n_clusters=3).fit(X)
    always_sparse(monkeypatch)
    thin = BHC(model, n_clusters=3).fit(sparse.csr_matrix(X))
    assert sparse.issparse(thin._rows)
    np.testing.assert_array_equal(thin.labels_, dense.labels_)
    for rows in (new, sparse.csr_array(new), sparse.csc_matrix(new)):
        np.testing.assert_array_equal(thin.predict(rows), dense.predict(new))
        np.testing.assert_allclose(
            thin.predict_proba(rows), dense.predict_proba(new), rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(thin.score_samples(rows), dense.score_samples(new), rtol=1e-10)
    restored = pickle.loads(pickle.dumps(thin))
    np.testing.assert_array_equal(restored.predict(new), thin.predict(new))
    np.testing.assert_array_equal(
        BHC(model, n_clusters=3).fit(X).predict(sparse.csr_array(new)), dense.predict(new)
    )


# At the border


@every_model
def test_large_sparse_matrices_stay_sparse_and_others_do_not(name):
    def stays(n, d, share):
        X = sparse.random_array((n, d), density=share, rng=0)
        X.data[:] = 1.0
        X = sparse.hstack([X, np.ones((n, 1))])
        return sparse.issparse(rows_of(X, as_model(name)))

    assert stays(2_000, 1_000, 0.05)
    assert not stays(2_000, 1_000, 0.5)
    assert not stays(100, 100, 0.05)


def test_values_between_zero_and_one_are_named(monkeypatch):
    always_sparse(monkeypatch)
    X = np.eye(6)
    X[4, 2] = 0.5
    with pytest.raises(ValueError, match=r"takes zeros and ones: row 4, column 2 is 0\.5"):
        fastrbhc.bhc_linkage(sparse.csr_array(X), "bernoulli")


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN: row 3, column 1 is nan"), (-2.0, "Negative values .* row 3, column 1 is -2")],
)
def test_bad_values_are_named(value, message, monkeypatch):
    always_sparse(monkeypatch)
    X = sparse.lil_array(np.eye(6))
    X[3, 1] = value
    with pytest.raises(ValueError, match=message):
        fastrbhc.bhc_linkage(sparse.csr_array(X), "poisson")


def test_models_without_sparse_rows_make_them_dense():
    X = sparse.random_array((1_100, 1_000), density=0.01, rng=0)
    record = as_model("poisson")
    assert sparse.issparse(rows_of(X, record))
    dense_only = type("DenseOnly", (type(record),), {"takes_sparse_rows": False})
    assert not sparse.issparse(rows_of(X, dense_only(1.0, 1.0)))


@every_model
def test_memory_is_that_of_the_entries(name):
    n, d, each = 2_000, 20_000, 20
    rng = np.random.default_rng(12)
    columns = rng.integers(200, size=(n, each)) + 200 * rng.integers(100, size=(n, 1))
    X = sparse.csr_array(
        (np.ones(n * each), (np.repeat(np.arange(n), each), columns.ravel())), (n, d)
    )
    X.sum_duplicates()
    X.data[:] = 1.0
    fastrbhc.bhc_linkage(X[:60], name, n_jobs=2)
    tracemalloc.start()
    tree = fastrbhc.bhc_linkage(X, name, n_jobs=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tree.n_leaves == n
    assert peak < 8_000_000  # 320 MB as a dense matrix


def test_columns_have_the_names_that_are_given():
    X = np.tile(draw("poisson", 40, 5), 2)  # more than 50 columns, so that some are named
    words = [f"word{j}" for j in range(X.shape[1])]
    tree = fastrbhc.bhc_linkage(sparse.csr_array(X), "poisson", feature_names=words)
    assert tree.feature_names == tuple(words)
    assert "word" in tree.summary(X, n_clusters=2)["more_of"].iloc[0]
    model = BHC("poisson", n_clusters=2).fit(sparse.csr_array(X), feature_names=words)
    assert model.dendrogram_.feature_names == tuple(words)
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.fit_predict(X, feature_names=words), model.labels_)
    X[3, 4] = -1.0
    for fit in (fastrbhc.bhc_linkage, lambda X, name, **names: BHC(name).fit(X, **names)):
        with pytest.raises(ValueError, match="row 3, column 'word4' is -1"):
            fit(sparse.csr_array(X), "poisson", feature_names=words)
        with pytest.raises(ValueError, match="feature_names"):
            fit(sparse.csr_array(np.abs(X)), "poisson", feature_names=words[1:])
