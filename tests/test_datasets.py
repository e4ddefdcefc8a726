"""The digits that come with the package."""

from __future__ import annotations

from importlib import resources

import numpy as np

from fastrbhc.datasets import load_digit_counts


def test_the_digits_are_what_the_docstring_says():
    X, y = load_digit_counts()
    assert X.shape == (1500, 64)
    assert X.dtype == y.dtype == np.uint8
    assert X.min() == 0
    assert X.max() == 16
    assert np.bincount(y).tolist() == [150] * 10


def test_a_picture_of_a_zero_has_a_hole():
    X, y = load_digit_counts()
    mean = X[y == 0].mean(axis=0).reshape(8, 8)
    assert mean[3:5, 3:5].max() < 2 < 8 < mean[3, 2]


def test_every_call_gives_arrays_of_its_own():
    X, _ = load_digit_counts()
    X[:] = 0
    assert load_digit_counts()[0].any()


def test_the_data_are_small_and_say_where_they_come_from():
    data = resources.files("fastrbhc") / "data"
    assert sum(len(part.read_bytes()) for part in data.iterdir() if part.is_file()) < 200_000
    attribution = (data / "README.md").read_text(encoding="utf-8")
    for word in ("Alpaydin", "Kaynak", "CC BY 4.0", "UCI", "Changes"):
        assert word in attribution
