"""The marginal likelihood of rows as one cluster."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fastrbhc._table import placed
from fastrbhc.bhc._interface import LOG_MARGINAL, ModelLike, as_model
from fastrbhc.bhc._rows import rows_of
from fastrbhc.bhc.potentials import absorb, clusters_of_rows, potentials_of, scratch_of


def log_marginal_likelihood(X: ArrayLike, model: ModelLike) -> float:
    """log p(X | H): the log marginal likelihood of the rows as one cluster.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The rows.
    model : str or record
        A conjugate model from `fastrbhc.bhc`, or its name. Hyperparameters that it leaves open
        are taken from these rows.

    Returns
    -------
    float
        The logarithm, with all constants, so that models can be compared.

    Examples
    --------
    >>> from fastrbhc.bhc import GammaPoisson, log_marginal_likelihood
    >>> round(log_marginal_likelihood([[2], [3]], GammaPoisson(shape=1.0, rate=1.0)), 6)
    -4.289089
    """
    record = placed(as_model(model), X)
    rows = rows_of(X, record, min_rows=1)
    complete = record.with_defaults(rows)
    complete.check(rows.shape[1])
    likelihood = complete.likelihood(rows)
    geometry = potentials_of(likelihood, 0.0, rows.shape[0])
    scratch = scratch_of(geometry, rows)
    clusters = clusters_of_rows(geometry, rows)
    for row in range(1, rows.shape[0]):
        absorb(geometry, clusters, 0, row, scratch)
    marginal = float(clusters.cached[0, LOG_MARGINAL])
    return marginal + float(np.sum(complete.log_base_measure(rows)))
