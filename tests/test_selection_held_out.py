"""How well the cuts of trees predict held-out rows."""

from __future__ import annotations

import numpy as np
import pytest

from fastrbhc import linkage
from fastrbhc._options import LinkageOptions
from fastrbhc.families import Gaussian, as_family
from fastrbhc.selection.coordinates import Points, points_of_rows
from fastrbhc.selection.density import log_density
from fastrbhc.selection.halves import divisions, sample_of
from fastrbhc.selection.held_out import Prediction, predictions

WARD = as_family("ward")


def predicted(X, weights=None, family=WARD, **options):
    return predictions([family], X, weights, LinkageOptions(**options).checked(family))[0]


def heaps(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 8.0 * np.eye(3)[:, :2][np.arange(n) % 3]


def test_each_half_is_predicted_from_the_other():
    X = heaps(61)
    sample = sample_of(WARD, X, None)
    points = points_of_rows(WARD, sample.rows, sample.weights)
    logs = {1: [], 3: []}
    for first, second in divisions(WARD, sample):
        for known, new in ((first, second), (second, first)):
            tree = linkage(sample.rows[known.places], "ward")
            at = Points(points.values[new.places], points.floor)
            given = Points(points.values[known.places], points.floor)
            for k, found in logs.items():
                labels = tree.cut(n_clusters=k)
                found.append(log_density(given, known.weights, labels, at))
    computed = predicted(X)
    for k, found in logs.items():
        place = computed.numbers.tolist().index(k)
        reference = np.concatenate(found)
        assert computed.log_likelihoods[place] == pytest.approx(reference.mean(), rel=1e-12)
    gains = np.concatenate(logs[3]) - np.concatenate(logs[1])
    # Every row is held out once in each division, and counts as one.
    assert computed.errors[2] == pytest.approx(gains.std() / np.sqrt(61), rel=1e-9)
    assert computed.n_coordinates == 2


def test_gains_are_over_one_cluster():
    found = Prediction(np.array([1, 2, 3]), np.array([-4.0, -1.0, -1.0]), np.zeros(3), 9, 2, False)
    assert found.gains.tolist() == [0.0, 3.0, 3.0]
    assert found.best == 1


def test_true_clusters_predict_best():
    found = predicted(heaps(600))
    assert found.numbers[found.best] == 3
    assert found.gains[2] > 20 * found.errors[2]


@pytest.mark.parametrize("n", [2, 3, 4, 7, 40])
def test_no_more_clusters_than_half_of_the_rows_of_a_half(n):
    found = predicted(np.arange(float(n))[:, None] ** 1.1)
    assert found.numbers[0] == 1
    assert found.numbers.max() <= max(n // 4, 1)
    assert np.isfinite(found.log_likelihoods).all()
    assert found.errors[0] == 0.0


def test_many_clusters_are_tried_while_they_predict_better():
    rng = np.random.default_rng(1)
    centres = 20.0 * np.stack(np.meshgrid(range(8), range(8)), axis=-1).reshape(-1, 2)
    found = predicted(centres.repeat(15, axis=0) + rng.normal(size=(960, 2)))
    assert found.numbers.max() > 57
    assert 57 <= found.numbers[found.best] <= 68
    assert predicted(heaps(960)).numbers.max() == 40


@pytest.mark.parametrize("family", [WARD, Gaussian(), as_family("multinomial")], ids=str)
def test_order_weights_and_threads_leave_no_trace(family):
    rng = np.random.default_rng(2)
    X, weights = np.abs(heaps(90)), rng.integers(1, 4, 90)
    reference = predicted(X, weights.astype(float), family, n_jobs=1)
    order = rng.permutation(90)
    for computed in (
        predicted(X[order], weights[order].astype(float), family, n_jobs=1),
        predicted(X.repeat(weights, axis=0), None, family, n_jobs=1),
        predicted(X, weights.astype(float), family, n_jobs=2),
    ):
        np.testing.assert_array_equal(computed.numbers, reference.numbers)
        np.testing.assert_allclose(
            computed.log_likelihoods, reference.log_likelihoods, rtol=1e-9, atol=1e-9
        )


def test_families_are_judged_on_the_same_rows():
    X = heaps()
    few, many = Gaussian(0.1), Gaussian(10.0)
    checked = LinkageOptions().checked(few)
    together = predictions([few, many], X, None, checked)
    for computed, family in zip(together, (few, many), strict=True):
        reference = predicted(X, family=family)
        np.testing.assert_array_equal(computed.log_likelihoods, reference.log_likelihoods)
