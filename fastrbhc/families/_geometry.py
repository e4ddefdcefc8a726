"""The geometry that a family has for rows of each kind."""

from __future__ import annotations

from typing import Any

from fastrbhc._engine.clusters.partly_observed import PartlyObserved
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.geometry.sparse import sparse_geometry
from fastrbhc.families._interface import Family


def geometry_of(family: Family, rows: Any) -> Any:
    """The geometry of a family for rows that it has observed: dense, sparse or with gaps.

    Parameters
    ----------
    family : record
        A family.
    rows : Observations or SparseObservations
        What ``family.observe`` returned.

    Returns
    -------
    record
        Its methods are listed in ``fastrbhc._engine.geometry.contract``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastrbhc.families import Poisson, geometry_of
    >>> rows = Poisson().observe(np.ones((3, 2)))
    >>> type(geometry_of(Poisson(), rows)).__name__
    'Separable'
    """
    n_columns = rows.shape[1]
    if isinstance(rows, SparseObservations) and family.separable:
        return sparse_geometry(family, n_columns)
    if isinstance(rows, PartlyObserved):
        return family.observed_geometry(rows)
    return family.geometry(n_columns)
