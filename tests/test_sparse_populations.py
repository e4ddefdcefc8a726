"""Sparse rows without clusters that resemble given rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from strategies import wide_counts

from fastrbhc.assessment.sparse_populations import shuffle, sparse_populations
from fastrbhc.families import as_family
from fastrbhc.families._draws import sparse_multinomial

COUNTS = ["poisson", "multinomial", "bernoulli"]


def test_shuffled_columns_keep_their_values_and_lose_their_groups():
    X = wide_counts("poisson", 300, 2_000, 0)
    drawn = shuffle(X, np.ones(300), np.random.default_rng(0))
    assert drawn.shape == X.shape
    for found, expected in zip(drawn.toarray().T, X.toarray().T, strict=True):
        np.testing.assert_array_equal(np.sort(found), np.sort(expected))

    def between(rows):
        """How far the means of the three groups are apart."""
        means = np.array([rows[group::3].mean(axis=0) for group in range(3)])
        return np.square(means - means.mean(axis=0)).sum()

    assert between(drawn) < 0.1 * between(X)


def test_shuffled_rows_stay_as_long_as_they_are():
    rng = np.random.default_rng(1)
    lengths = np.repeat([10, 100], 200)
    rows = np.repeat(np.arange(400), lengths)
    columns = rng.integers(5_000, size=rows.size)
    X = sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(400, 5_000))
    drawn = np.diff(shuffle(X, np.diff(X.indptr), rng).indptr)
    assert drawn[:200].mean() == pytest.approx(10.0, rel=0.1)
    assert drawn[200:].mean() == pytest.approx(100.0, rel=0.1)


def test_a_column_that_all_rows_have_stays_in_all_rows():
    X = sparse.csr_array(wide_counts("poisson", 50, 100, 2).toarray() + np.eye(1, 100, 7))
    drawn = shuffle(X, np.arange(1.0, 51.0), np.random.default_rng(2)).toarray()
    assert (drawn[:, 7] > 0.0).all()
    assert not np.array_equal(drawn[:, 7], X.toarray()[:, 7])


@pytest.mark.parametrize("name", COUNTS)
def test_draws_are_sparse_and_in_the_domain(name):
    family, X = as_family(name), wide_counts(name, 80, 20_000, 3, per_row=2)
    drawing = sparse_populations(X, None, family)
    assert len(drawing) == (3 if name == "poisson" else 2)
    for draw in drawing:
        drawn = draw(np.random.default_rng(3))
        assert sparse.issparse(drawn)
        assert drawn.shape == X.shape
        assert drawn.data.max() <= family.domain.upper
        assert not family.domain.needs_positive_total or (drawn.sum(axis=1) > 0.0).all()


def rows_of_lengths(totals):
    """Rows with these totals, all of the same proportions."""
    return sparse_multinomial(totals, np.full(4_000, 1.0 / 4_000), np.random.default_rng(6))


def test_lengths_have_one_mode_unless_the_family_knows_totals():
    X = rows_of_lengths(np.random.default_rng(6).poisson(np.repeat([20, 100], 200)))

    def between(draw):
        lengths = np.diff(draw(np.random.default_rng(7)).indptr)
        return np.count_nonzero((lengths > 45) & (lengths < 70))

    assert [between(draw) for draw in sparse_populations(X, None, as_family("multinomial"))] == [
        0,
        0,
    ]
    shuffled, _, scaled = sparse_populations(X, None, as_family("poisson"))
    assert between(shuffled) > 40
    assert between(scaled) > 40


def test_scaled_rows_differ_in_their_totals_as_the_rows_do():
    X = rows_of_lengths(np.random.default_rng(6).poisson(50.0 * np.linspace(0.5, 1.5, 400)))
    *_, scaled = sparse_populations(X, None, as_family("poisson"))
    totals = scaled(np.random.default_rng(8)).sum(axis=1)
    assert totals.mean() == pytest.approx(X.sum(axis=1).mean(), rel=0.05)
    assert totals.std() == pytest.approx(X.sum(axis=1).std(), rel=0.1)


def test_values_that_are_no_counts_are_shuffled_only():
    X = 0.5 * wide_counts("poisson", 30, 1_000, 4)
    assert len(sparse_populations(X, None, as_family("poisson"))) == 1


def test_weights_count_as_copies():
    X, weights = wide_counts("poisson", 200, 50, 5), np.repeat([1.0, 9.0], 100)
    X = sparse.csr_array(X + sparse.csr_array(np.outer(weights > 5.0, np.eye(1, 50)[0])))
    expected = (weights @ X)[0] / weights.sum()
    for draw in sparse_populations(X, weights, as_family("poisson")):
        rng = np.random.default_rng(5)
        means = np.mean([draw(rng).mean(axis=0)[0] for _ in range(20)])
        assert means == pytest.approx(expected, rel=0.05)
