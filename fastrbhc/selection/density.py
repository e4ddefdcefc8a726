"""The density of a cut: a mixture with one Gaussian for each cluster.

The covariance of a small cluster is uncertain. It is averaged with the covariance W within all
clusters, as if that came from q + 2 further rows, for points with q coordinates. W itself is moved
a tenth of the way towards its diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from fastrbhc.selection.coordinates import Points

_TOWARDS_DIAGONAL = 0.1
_SMALLEST_VARIANCE = 1e-6  # of that of all points
_ROUNDING = 1e-12  # beside the largest variance: axes without any variance are not exactly so


def log_density(
    points: Points, weights: NDArray[np.float64], labels: NDArray[np.int64], at: Points
) -> NDArray[np.float64]:
    """The logarithm of the density, up to a constant, at other points."""
    values = points.values
    k, q = int(labels.max()) + 1, values.shape[1]
    total = weights.sum()
    sizes = np.bincount(labels, weights)
    means = np.empty((k, q))
    for column in range(q):
        means[:, column] = np.bincount(labels, weights * values[:, column]) / sizes
    steps = values - means[labels]
    within = (steps.T * weights) @ steps / total
    diagonal = np.diag(np.diag(within))
    variances = np.average(values**2, axis=0, weights=weights)
    smallest = _SMALLEST_VARIANCE * variances + _ROUNDING * variances.max(initial=0.0)
    shared = within + _TOWARDS_DIAGONAL * (diagonal - within) + np.diag(smallest)
    further = q + 2.0
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    covariances = np.empty((k, q, q))
    for cluster, stop in enumerate(ends):
        rows = order[ends[cluster - 1] if cluster else 0 : stop]
        scatter = (steps[rows].T * weights[rows]) @ steps[rows]
        size = sizes[cluster]
        covariances[cluster] = (scatter + further * shared) / (size + further) * (1.0 + 1.0 / size)
    factors = np.linalg.cholesky(covariances + points.floor)
    volumes = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    distances = at.values - means[:, None, :]
    scaled = distances @ np.linalg.inv(factors).transpose(0, 2, 1)
    logarithms = np.log(sizes / total) - volumes
    terms = logarithms[:, None] - 0.5 * np.einsum("kij,kij->ki", scaled, scaled)
    found: NDArray[np.float64] = logsumexp(terms, axis=0)
    return found
