"""How well clusters come back in subsamples."""

from __future__ import annotations

import numpy as np
from scipy import stats

from fastrbhc._options import LinkageOptions
from fastrbhc.assessment.resampling import mean_and_interval, recoveries
from fastrbhc.families import as_family

WARD = as_family("ward")


def recovered(X, labels, n_rows, weights=None, times=6):
    options, done = LinkageOptions(n_jobs=1).checked(WARD), []
    rng, k = np.random.default_rng(0), int(labels.max()) + 1
    found = recoveries(X, weights, WARD, labels, k, times, n_rows, options, rng, done.append)
    assert done == list(range(times + 1))
    return found


def test_separate_heaps_come_back_whole():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(40, 2)), rng.normal(size=(50, 2)) + 20.0, [[90.0, 90.0]]]
    labels = np.repeat([1, 0, 2], [40, 50, 1])
    found = recovered(X, labels, 45)
    assert (found[:, :2] == 1.0).all()
    assert np.isnan(found[:, 2]).all()  # a single row proves nothing


def test_halves_of_a_heap_do_not():
    X = np.random.default_rng(1).normal(size=(200, 2))
    found = recovered(X, np.arange(200) % 2, 100)
    assert (found < 0.75).all()


def test_rows_without_weight_are_left_out():
    rng = np.random.default_rng(2)
    X = np.r_[rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 20.0]
    labels, weights = np.repeat([0, 1], 30), np.ones(60)
    weights[::2] = 0.0
    labels[::2] = 1 - labels[::2]  # wrong, but nobody looks at them
    assert (recovered(X, labels, 20, weights) == 1.0).all()


def test_mean_and_interval():
    values = np.array([[0.5, 1.0, np.nan], [0.7, 1.0, 0.3], [0.6, np.nan, np.nan]])
    means, lower, upper = mean_and_interval(values)
    np.testing.assert_allclose(means, [0.6, 1.0, 0.3])
    reference = stats.t.interval(0.95, 2, 0.6, stats.sem([0.5, 0.7, 0.6]))
    np.testing.assert_allclose([lower[0], upper[0]], reference)
    assert (lower[1], upper[1]) == (1.0, 1.0)
    assert (lower[2], upper[2]) == (0.0, 1.0)
    assert np.isnan(mean_and_interval(np.full((3, 1), np.nan))[0, 0])
