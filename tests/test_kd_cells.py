"""Cells of space by median splits."""

import numpy as np
import pytest

from fastrbhc._engine.clusters.kd_cells import cells_of_rows, splits_of


@pytest.mark.parametrize("n_cells", [1, 2, 8, 16])
def test_cells_of_a_sample_are_of_equal_size(n_cells):
    X = np.random.default_rng(0).normal(size=(1600, 3))
    counts = np.bincount(cells_of_rows(splits_of(X, n_cells), X), minlength=n_cells)
    assert counts.tolist() == [1600 // n_cells] * n_cells


def test_equal_rows_are_in_the_same_cell():
    X = np.random.default_rng(1).integers(0, 4, (500, 2)).astype(float)
    cells = cells_of_rows(splits_of(X[:50], 8), X)
    for row in np.unique(X, axis=0):
        assert np.unique(cells[(row == X).all(axis=1)]).size == 1


def test_the_two_cells_of_a_split_are_adjacent():
    X = np.random.default_rng(2).random((400, 2))
    halves, quarters = (cells_of_rows(splits_of(X, n_cells), X) for n_cells in (2, 4))
    np.testing.assert_array_equal(quarters // 2, halves)


def test_a_sample_without_rows_or_with_equal_ones():
    X = np.array([[1.0], [2.0], [3.0]])
    assert splits_of(np.empty((0, 1)), 4).n_cells == 4
    cells = cells_of_rows(splits_of(np.full((5, 1), 2.0), 4), X)
    assert cells[0] == cells[1] != cells[2]
