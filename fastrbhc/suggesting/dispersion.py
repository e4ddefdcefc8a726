"""How much counts vary within clusters that are not known yet.

Over all rows, counts of several clusters vary more than those of one, so the variance over the mean
of a column (the Fano factor) says nothing about the family. Here coarse mixtures of k clusters,
k = 1 to 16, are fitted: with several dispersions α, 0 among them, and with one for each column. A
negative binomial of known α is an exponential family: the mean of a component is the mean of its
rows, and the log likelihood is linear in the counts. The Bayesian information criterion decides
whether more clusters or more dispersion explain the rows. The dispersion of each column then
follows by moments within the components of that mixture.

All is a function of the distinct rows and their weights: neither their order nor copies in place of
weights matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from threadpoolctl import threadpool_limits

from fastrbhc.families._scaling import roots_of_counts
from fastrbhc.suggesting.samples import distinct, sampled

_CLUSTERS = (1, 2, 3, 4, 6, 8, 12, 16)
_DISPERSIONS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
_STEPS = 12
# Distinct rows and columns that are looked at.
_MOST_ROWS, _MOST_COLUMNS = 600, 60
# Fewer rows say nothing about dispersion.
_FEWEST_ROWS = 20
_TINY = 1e-12
# Smaller dispersions than this are none.
_LEAST = 1e-6

Floats = NDArray[np.float64]


class Dispersion(NamedTuple):
    """Of each column: α by moments, and the variance within clusters over that of Poisson counts.

    ``together`` and ``factor_together`` are the same for all columns, each by its number of counts.
    """

    alphas: Floats
    factors: Floats
    together: float
    factor_together: float
    n_clusters: int


def dispersion_of(counts: Floats, weights: Floats | None = None) -> Dispersion | None:
    """The dispersion of columns of counts, none of them missing; None if rows are too few."""
    weights = np.ones(len(counts)) if weights is None else weights
    counts, weights = counts[weights > 0.0], weights[weights > 0.0]
    if weights.sum() < _FEWEST_ROWS:
        return None
    rows, weights = distinct(counts, weights, roots_of_counts(counts))
    rows, weights = sampled(rows, weights, _MOST_ROWS)
    looked_at = np.linspace(0, rows.shape[1] - 1, min(rows.shape[1], _MOST_COLUMNS)).astype(int)
    with threadpool_limits(1):  # more threads only slow such small matrices down
        shares = _best_mixture(rows[:, looked_at], weights)
        return by_moments(rows, weights, shares)


def _best_mixture(rows: Floats, weights: Floats) -> Floats:
    """Memberships of the rows in the components of the best mixture: (rows, k)."""
    from sklearn.cluster import KMeans

    total, n_columns = weights.sum(), rows.shape[1]
    coordinates = roots_of_counts(rows)
    best, least = np.ones((len(rows), 1)), np.inf
    worse = 0
    for k in _CLUSTERS:
        if k > 1 and (k * 5 > total or k >= len(rows)):
            break
        labels = np.zeros(len(rows), dtype=np.int64)
        if k > 1:
            grouping = KMeans(k, n_init=1, random_state=0)
            labels = grouping.fit(coordinates, sample_weight=weights).labels_
        found = np.inf
        start = np.eye(k)[labels]
        for alpha in (*_DISPERSIONS, None):
            shares, likelihood = _mixture(rows, weights, start, alpha)
            n_dispersions = n_columns if alpha is None else alpha > 0.0
            n_parameters = k * n_columns + k - 1 + n_dispersions
            criterion = n_parameters * np.log(total) - 2.0 * likelihood
            found = min(found, criterion)
            if criterion < least:
                best, least = shares, criterion
        worse = worse + 1 if found > least else 0
        if worse == 2:  # further clusters explain nothing
            break
    return best


def _mixture(
    rows: Floats, weights: Floats, shares: Floats, alpha: float | None
) -> tuple[Floats, float]:
    """Memberships and the log likelihood, by steps of the EM algorithm.

    With None, each column has a dispersion of its own, by moments in each step.
    """
    alphas = np.full(rows.shape[1], alpha or 0.0)
    likelihood, kept = -np.inf, shares
    for _ in range(_STEPS):
        if alpha is None:
            alphas = by_moments(rows, weights, shares).alphas
            alphas[alphas <= _LEAST] = 0.0  # as in `_constant`
        sizes = weights @ shares
        means = (shares * weights[:, None]).T @ rows / np.maximum(sizes, _TINY)[:, None] + _TINY
        stretched = np.log1p(alphas * means)
        slopes = np.log(means) - stretched
        offsets = np.where(alphas > 0.0, stretched / np.maximum(alphas, _TINY), means)
        logs = rows @ slopes.T - offsets.sum(axis=1)
        logs += np.log(np.maximum(sizes, _TINY) / sizes.sum())
        highest = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - highest)
        sums = shares.sum(axis=1, keepdims=True)
        shares /= sums
        reached = float(weights @ (highest + np.log(sums))[:, 0])
        if alpha is None:
            reached += float(weights @ _constant(rows, alphas))
        if reached - likelihood < 1e-3:
            break
        likelihood, kept = reached, shares
    if alpha is not None:
        likelihood += float(weights @ _constant(rows, alphas))
    return kept, likelihood


def _constant(rows: Floats, alphas: Floats) -> Floats:
    """The terms of the log likelihood of each row that do not depend on the means."""
    terms = -gammaln(rows + 1.0)
    spread = alphas > 0.0
    sizes, counts = 1.0 / alphas[spread], rows[:, spread]
    terms[:, spread] += gammaln(counts + sizes) - gammaln(sizes) - counts * np.log(sizes)
    summed: Floats = terms.sum(axis=1)
    return summed


def by_moments(rows: Floats, weights: Floats, shares: Floats) -> Dispersion:
    """α from variances and means: the variance of a negative binomial is m + αm²."""
    belonging = shares * weights[:, None]
    sizes = belonging.sum(axis=0)
    large = sizes > 2.0
    belonging, sizes = belonging[:, large], sizes[large]
    means = belonging.T @ rows / sizes[:, None]
    squares = np.zeros(means.shape)
    for component, mean in enumerate(means):
        squares[component] = belonging[:, component] @ np.square(rows - mean)
    freedom = (sizes - 1.0)[:, None]
    within, expected = squares.sum(axis=0), (freedom * means).sum(axis=0)
    # The square of a mean is too large by the variance of that mean.
    second = (freedom * (means**2 - squares / (freedom * sizes[:, None]))).sum(axis=0)
    second = np.maximum(second, _TINY)
    alphas = np.maximum(within - expected, 0.0) / second
    factors = np.where(expected > 0.0, within / np.maximum(expected, _TINY), 1.0)
    # Each column by itself has a factor; large counts alone would decide a sum over all.
    parts = expected > 0.0
    together = factor = 0.0
    if parts.any():
        scale = np.maximum(expected[parts], _TINY)
        excess = (within - expected)[parts] / scale
        together = max(float(excess.sum() / (second[parts] / scale).sum()), 0.0)
        factor = 1.0 + float(excess.mean())
    return Dispersion(alphas, factors, together, factor, int(sizes.size))
