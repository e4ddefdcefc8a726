"""The data that ship with the package."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from fastrbhc.datasets import load_digit_counts, load_mnist_7x7


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


def test_the_pictures_are_what_the_docstring_says():
    X, y = load_mnist_7x7()
    assert X.shape == (12_000, 49)
    assert X.dtype == y.dtype == np.uint8
    assert (X.min(), X.max()) == (0, 255)
    assert np.flatnonzero(np.bincount(y)).tolist() == [0, 3, 7, 9]
    mean = X[y == 0].mean(axis=0).reshape(7, 7)
    assert mean[3, 3] < 20 < 100 < mean[3, 1:6].max()  # a hole


@pytest.mark.parametrize("load", [load_digit_counts, load_mnist_7x7])
def test_every_call_gives_arrays_of_its_own(load):
    X, _ = load()
    X[:] = 0
    assert load()[0].any()


def test_the_data_are_small_and_say_where_they_come_from():
    data = resources.files("fastrbhc") / "data"
    assert sum(len(part.read_bytes()) for part in data.iterdir() if part.is_file()) < 400_000
    attribution = (data / "README.md").read_text(encoding="utf-8")
    for word in ("Alpaydin", "Kaynak", "CC BY 4.0", "UCI", "Changes"):
        assert word in attribution
    for word in ("LeCun", "Cortes", "Burges", "MNIST", "CC BY-SA 3.0"):
        assert word in attribution
