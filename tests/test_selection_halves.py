"""A sample of the rows, and its divisions into two halves."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import ALL_FAMILIES

from fastrbhc._options import LinkageOptions
from fastrbhc._validation import HEAVIEST
from fastrbhc.families import Gaussian, SphericalGaussian, as_family
from fastrbhc.selection import halves
from fastrbhc.selection.halves import divisions, sample_of
from fastrbhc.selection.held_out import predictions

WARD = as_family("ward")
every_family = pytest.mark.parametrize("name", ALL_FAMILIES)


def shares(rng, n):
    return rng.uniform(0.1, 0.9, (n, 3))


@every_family
def test_the_order_of_rows_does_not_matter(name):
    rng = np.random.default_rng(0)
    # With rows that are equal, and rows that differ by a factor, if only shares count.
    X = shares(rng, 60)
    X = np.r_[X, X[:9], 0.5 * X[:20]]
    weights, order = rng.integers(1, 4, len(X)).astype(float), rng.permutation(len(X))
    reference = sample_of(as_family(name), X, weights)
    computed = sample_of(as_family(name), X[order], weights[order])
    np.testing.assert_array_equal(computed.rows, reference.rows)
    np.testing.assert_allclose(computed.weights, reference.weights, rtol=1e-12)
    np.testing.assert_array_equal(X[reference.places], reference.rows)


@every_family
def test_weights_are_copies(name):
    rng = np.random.default_rng(1)
    X, copies = shares(rng, 50), rng.integers(0, 4, 50)
    reference = sample_of(as_family(name), X.repeat(copies, axis=0), None)
    computed = sample_of(as_family(name), X, copies.astype(float))
    np.testing.assert_array_equal(computed.rows, reference.rows)
    np.testing.assert_allclose(computed.weights, reference.weights, rtol=1e-12)
    assert computed.weights.min() == 1.0


def test_units_and_origins_do_not_matter():
    X = np.random.default_rng(2).normal(size=(200, 2))
    reference = sample_of(WARD, X, None).places
    for factor, origin in [(1e3, 0.0), (0.37, 5.0), ([1.0, 1e-4], [3.0, -1.0])]:
        np.testing.assert_array_equal(sample_of(WARD, X * factor + origin, None).places, reference)


def test_a_sample_has_distinct_rows_and_not_too_many(monkeypatch):
    monkeypatch.setattr(halves, "MOST_ROWS", 40)
    X = np.random.default_rng(3).integers(0, 9, (500, 2)).astype(float)
    sample = sample_of(WARD, X, None)
    assert len(sample.rows) == len(np.unique(sample.rows, axis=0)) == 40
    # Full covariances of many columns take longer: half as many rows.
    wide = np.random.default_rng(4).normal(size=(100, 30))
    assert len(sample_of(Gaussian(), wide, None).rows) == 20


@pytest.mark.parametrize("n", [2, 3, 50, 701])
def test_halves_are_disjoint_and_balanced(n):
    sample = sample_of(WARD, np.random.default_rng(5).normal(size=(n, 2)), None)
    found = divisions(WARD, sample)
    assert 2 <= len(found) <= 6
    for first, second in found:
        together = np.concatenate([first.places, second.places])
        assert sorted(together) == list(range(n))
        assert 0 <= first.places.size - second.places.size <= 1
        assert (first.weights == 1.0).all()
    if n > 3:
        assert len({tuple(first.places) for first, _ in found}) == len(found)


def test_rows_of_several_copies_are_in_both_halves():
    X, weights = np.arange(20.0)[:, None], np.r_[np.full(5, 4.0), np.ones(15)]
    sample = sample_of(WARD, X, weights)
    heavy = set(np.flatnonzero(sample.weights == 4.0))
    for first, second in divisions(WARD, sample):
        assert set(first.places) & set(second.places) == heavy
        assert first.weights.sum() + second.weights.sum() == weights.sum()
        assert set(first.weights) == {1.0, 2.0}


def test_no_row_weighs_more_than_rows_may():
    """d is finite for rows that pass the checks, and for weights up to the largest one."""
    X, weights = np.array([[0.0], [0.2], [0.7]]), np.array([8e37, 6e48, 4e-50])
    found = sample_of(WARD, X, weights)
    assert found.weights.max() == HEAVIEST
    np.testing.assert_allclose(found.weights / HEAVIEST, weights[found.places] / 6e48, rtol=1e-12)
    family = SphericalGaussian(variance=1e-227)
    options = LinkageOptions().checked(family)
    assert np.isfinite(predictions([family], X, weights, options)[0].log_likelihoods).all()


def test_larger_samples_are_divided_less_often():
    numbers = [
        len(divisions(WARD, sample_of(WARD, np.arange(float(n))[:, None], None)))
        for n in (100, 1_500, 5_000)
    ]
    assert numbers == [6, 4, 3]
