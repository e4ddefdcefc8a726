"""The density of a cut."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fastrbhc.selection.coordinates import Points
from fastrbhc.selection.density import log_density


def by_definition(values, floor, weights, labels, at):
    """A mixture of Gaussians whose covariances are averaged with the one within all clusters."""
    q, total = values.shape[1], weights.sum()
    groups = [(values[labels == c], weights[labels == c]) for c in np.unique(labels)]
    means = [np.average(rows, axis=0, weights=w) for rows, w in groups]
    scatters = [
        sum(one * np.outer(row - mean, row - mean) for row, one in zip(rows, w, strict=True))
        for (rows, w), mean in zip(groups, means, strict=True)
    ]
    within = sum(scatters) / total
    shared = 0.9 * within + 0.1 * np.diag(np.diag(within))
    shared += 1e-6 * np.diag(np.average(values**2, axis=0, weights=weights))
    density = 0.0
    for (_, w), mean, scatter in zip(groups, means, scatters, strict=True):
        n = w.sum()
        covariance = (scatter + (q + 2) * shared) / (n + q + 2) * (1 + 1 / n) + floor
        density += n / total * multivariate_normal(mean, covariance).pdf(at)
    return np.log(density) + 0.5 * q * np.log(2 * np.pi)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("q", [1, 3])
def test_it_is_the_mixture_of_its_definition(k, q):
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(40, q)), rng.uniform(1.0, 4.0, 40)
    labels, at = np.arange(40) % k, rng.normal(size=(7, q))
    floor = np.diag(rng.uniform(0.01, 0.1, q))
    reference = by_definition(values, floor, weights, labels, at)
    computed = log_density(Points(values, floor), weights, labels, Points(at, floor))
    np.testing.assert_allclose(computed, reference, rtol=1e-10)


def test_weights_are_copies():
    rng = np.random.default_rng(1)
    values, copies, labels = rng.normal(size=(30, 2)), rng.integers(1, 4, 30), np.arange(30) % 3
    floor, at = np.zeros((2, 2)), Points(rng.normal(size=(5, 2)), np.zeros((2, 2)))
    repeated = Points(values.repeat(copies, axis=0), floor)
    reference = log_density(repeated, np.ones(copies.sum()), labels.repeat(copies), at)
    computed = log_density(Points(values, floor), copies.astype(float), labels, at)
    np.testing.assert_allclose(computed, reference, rtol=1e-12)


def test_single_points_and_equal_points_have_a_density():
    values = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 3.0]])
    points = Points(values, np.zeros((2, 2)))
    for labels in ([0, 1, 1, 2], [0, 1, 2, 3]):
        found = log_density(points, np.ones(4), np.array(labels), points)
        assert np.isfinite(found).all()
