"""Sparse draws against the distributions that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fastrbhc.families import as_family
from fastrbhc.families._draws import (
    distinct_rows,
    sparse_binary,
    sparse_multinomial,
    sparse_poisson,
)

MEANS = np.array([0.0, 0.02, 0.4, 1.0, 7.0, 40.0])


def test_poisson_counts_have_their_means_and_variances():
    drawn = sparse_poisson(MEANS, 20_000, np.random.default_rng(0)).toarray()
    spread = np.sqrt(np.maximum(MEANS, 1e-12) / 20_000)
    assert (np.abs(drawn.mean(axis=0) - MEANS) <= 5.0 * spread).all()
    np.testing.assert_allclose(drawn.var(axis=0), MEANS, rtol=0.1)
    assert np.abs(np.corrcoef(drawn[:, 1:].T) - np.eye(5)).max() < 0.04


@pytest.mark.parametrize("total", [3, 500])  # word by word, and row by row
def test_multinomial_counts_have_their_totals_and_proportions(total):
    proportions = np.array([0.5, 0.0, 0.3, 0.15, 0.05])
    totals = np.full(10_000, total)
    totals[7] = 0
    drawn = sparse_multinomial(totals, proportions, np.random.default_rng(1)).toarray()
    np.testing.assert_array_equal(drawn.sum(axis=1), totals)
    np.testing.assert_allclose(drawn.sum(axis=0) / totals.sum(), proportions, atol=0.01)
    expected = total * proportions * (1.0 - proportions)
    np.testing.assert_allclose(drawn.var(axis=0), expected, rtol=0.1)


def test_zeros_and_ones():
    means = np.array([0.0, 0.001, 0.3, 0.9, 1.0])
    drawn = sparse_binary(means, 20_000, np.random.default_rng(2)).toarray()
    assert set(np.unique(drawn)) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.mean(axis=0), means, atol=0.02)
    assert np.abs(np.corrcoef(drawn[:, 1:4].T) - np.eye(3)).max() < 0.04


@pytest.mark.parametrize("chances", [np.ones(40), np.r_[np.full(20, 1e9), np.ones(19), 0.0]])
def test_rows_of_a_column_are_distinct(chances):
    counts = np.array([0, 1, 3, 5, 39, 0, 25, 5])
    rows, columns = distinct_rows(counts, chances, np.random.default_rng(3))
    np.testing.assert_array_equal(np.bincount(columns, minlength=8), counts)
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == counts.sum()
    assert (chances[rows] > 0.0).all()


@pytest.mark.parametrize("counts", [np.full(3_000, 1), np.full(3_000, 3), np.full(3_000, 9)])
def test_rows_come_as_often_as_their_chances_say(counts):
    chances = np.repeat([1.0, 3.0], 15)  # with 9 of 30 rows, drawn by waiting times
    rows, _ = distinct_rows(counts, chances, np.random.default_rng(4))
    rng = np.random.default_rng(5)
    reference = np.concatenate(
        [rng.choice(30, count, replace=False, p=chances / 60.0) for count in counts]
    )
    found, expected = (np.mean(which >= 15) for which in (rows, reference))
    assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("name", ["poisson", "multinomial", "bernoulli"])
def test_families_draw_sparse_rows_of_sparse_rows(name):
    rng = np.random.default_rng(6)
    X = sparse.random_array(
        (400, 30), density=0.1, random_state=6, data_sampler=lambda size: np.ones(size)
    )
    X = sparse.csr_array(
        X + sparse.csr_array((np.ones(400), (np.arange(400), np.full(400, 3))), shape=X.shape)
    )
    if name == "bernoulli":
        X.data[:] = 1.0
    family = as_family(name)
    drawn = family.draw_one_cluster(X, rng)
    assert sparse.issparse(drawn)
    assert drawn.shape == X.shape
    assert drawn.data.max() <= family.domain.upper
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.2)
    if name == "multinomial":
        np.testing.assert_array_equal(np.sort(drawn.sum(axis=1)), np.sort(X.sum(axis=1)))
    X.data[0] = 0.5
    assert family.draw_one_cluster(X, rng) is None
