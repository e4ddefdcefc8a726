"""The calls that compile ahead of time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import issparse

from fastrbhc._compile_jobs import _case, _rows, _sparse_rows, _whole_rows
from fastrbhc._precompile import families_of_the_package, models_of_the_package
from fastrbhc._row_validation import check_rows
from fastrbhc._table import placed
from fastrbhc.bhc import as_model
from fastrbhc.bhc._rows import rows_of
from fastrbhc.families import as_family


@pytest.mark.parametrize("name", families_of_the_package())
def test_every_family_admits_the_rows(name):
    X = _rows(name, 50, 3)
    assert check_rows(X, as_family(name)).shape == (50, 3)
    assert len(np.unique(X, axis=0)) == 50


@pytest.mark.parametrize("n_columns", [1, 3, 12])
@pytest.mark.parametrize("name", models_of_the_package())
def test_every_model_admits_the_rows(name, n_columns):
    X = _whole_rows(name, 40, n_columns)
    assert rows_of(X, as_model(name)).shape == (40, n_columns)


@pytest.mark.parametrize("n_columns", [1, 3, 12])
def test_every_block_of_a_product_admits_its_columns(n_columns):
    X, family = _case("ward+bernoulli+categorical", 50, n_columns)
    family = placed(family, X)
    assert [block.family.name for block in family.blocks] == [
        "spherical_gaussian",
        "bernoulli",
        "categorical",
    ]
    assert check_rows(X, family).shape == (50, max(3, n_columns))


@pytest.mark.parametrize("n", [2, 20, 600])
def test_sparse_rows_stay_sparse(n):
    X = _sparse_rows(n)
    for name in ("poisson", "multinomial", "bernoulli"):
        rows = check_rows(X, as_family(name), layout="auto")
        assert issparse(rows)
        assert (abs(rows - X)).nnz == 0
    assert len(np.unique(X.toarray()[:, :2_000], axis=0)) == n
