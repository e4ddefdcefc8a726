"""The calls that compile ahead of time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import issparse

from fastrbhc._compile_jobs import _rows, _sparse_rows
from fastrbhc._precompile import families_of_the_package
from fastrbhc._row_validation import check_rows
from fastrbhc.families import as_family


@pytest.mark.parametrize("name", families_of_the_package())
def test_every_family_admits_the_rows(name):
    X = _rows(name, 50, 3)
    assert check_rows(X, as_family(name)).shape == (50, 3)
    assert len(np.unique(X, axis=0)) == 50


@pytest.mark.parametrize("n", [2, 20, 600])
def test_sparse_rows_stay_sparse(n):
    X = _sparse_rows(n)
    for name in ("poisson", "multinomial", "bernoulli"):
        rows = check_rows(X, as_family(name), layout="auto")
        assert issparse(rows)
        assert (abs(rows - X)).nnz == 0
    assert len(np.unique(X.toarray()[:, :2_000], axis=0)) == n
