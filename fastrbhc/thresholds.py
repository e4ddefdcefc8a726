"""Choosing λ, the threshold that decides the number of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from fastrbhc import statistics
from fastrbhc._jit import compiling_for
from fastrbhc.families import Family, as_family
from fastrbhc.observations import Observations, collapse, take, weighted
from fastrbhc.validation import check_count, check_rows, check_weights

# k-means centres are found on at most this many rows; all rows are then assigned to them.
SUBSAMPLE = 100_000


def kmeans_threshold(
    X: ArrayLike,
    family: str | Family,
    n_clusters_guess: int,
    *,
    multiplier: int = 4,
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
) -> float:
    """The paper's heuristic: the mean d between clusters that k-means finds.

    With a rough guess k̃ of the number of clusters, k-means (Euclidean, on the mean statistics)
    divides the rows into ``multiplier``·k̃ clusters, and λ is the average dissimilarity over all
    pairs of them, each with its own weight and statistics (Lee & Choi 2015, section 3.1).

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows of counts or measurements.
    family : str or record
        A record from `fastrbhc.families`, or its name.
    n_clusters_guess : int
        k̃, a rough guess. A larger one makes λ smaller; another seed moves λ by some per cent, and
        with it the merges that lie close to it.
    multiplier : int, default=4
        How many k-means clusters there are for each cluster guessed.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    random_state : int, RandomState or None
        Seed of k-means.

    Returns
    -------
    float
        λ; infinite if all rows are the same, as nothing then speaks against one cluster.

    Notes
    -----
    Above 100,000 distinct rows the centres come from a random sample of 100,000 of them. All rows
    are then assigned to the nearest centre, since d grows with the size of clusters.

    Examples
    --------
    >>> import numpy as np, fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(5, (50, 2)), rng.poisson(50, (50, 2))])
    >>> threshold = fastrbhc.kmeans_threshold(X, "poisson", 2, random_state=0)
    >>> fastrbhc.linkage(X, "poisson", threshold=threshold).n_trees
    2
    """
    family = as_family(family)
    check_count(n_clusters_guess, "n_clusters_guess")
    check_count(multiplier, "multiplier")
    rows = check_rows(X, family)
    weights = check_weights(sample_weight, rows.shape[0])
    return heuristic(rows, family, n_clusters_guess, multiplier, weights, random_state)


def heuristic(
    X: NDArray[np.float64],
    family: Family,
    n_clusters_guess: int,
    multiplier: int,
    sample_weight: NDArray[np.float64] | None,
    random_state: Any,
) -> float:
    """The threshold for rows that have been checked."""
    with compiling_for(family):
        rows = weighted(family.observe(X), sample_weight)
        if rows.weights is not None:
            rows = take(rows, np.flatnonzero(rows.weights))
        # Distinct points, in an order of their own: copies and weights, and rows in any order,
        # lead to the same k-means clusters.
        points = collapse(rows).points
        labels, n_groups = _kmeans(points, multiplier * n_clusters_guess, random_state)
        if n_groups < 2:
            return np.inf
        geometry = family.geometry(X.shape[1])
        clusters = statistics.clusters_of_groups(geometry, points, labels, n_groups)
        return float(statistics.dissimilarities(geometry, clusters).mean())


def _kmeans(points: Observations, k: int, random_state: Any) -> tuple[NDArray[np.int64], int]:
    """Labels of at most k clusters of distinct points, none of them empty, and their number."""
    n = points.means.shape[0]
    if min(k, n) < 2:
        return np.zeros(n, np.int64), 1
    random = check_random_state(random_state)
    centred = points.means - points.means.mean(axis=0)
    weights = np.ones(n) if points.weights is None else points.weights
    chosen = np.arange(n)
    if n > SUBSAMPLE:
        chosen = np.sort(random.choice(n, SUBSAMPLE, replace=False))
    model = KMeans(min(k, n), random_state=random)
    model.fit(centred[chosen], sample_weight=weights[chosen])
    labels = model.labels_ if chosen.size == n else model.predict(centred)
    used, numbered = np.unique(labels, return_inverse=True)
    return numbered.astype(np.int64), len(used)
