"""Data that the benchmarks share, seeded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def normal(n: int, d: int) -> NDArray[np.float64]:
    """Standard normal rows: nothing to find, so nothing to exploit."""
    return np.random.default_rng(0).normal(size=(n, d))


def uniform(n: int, d: int) -> NDArray[np.float64]:
    """Rows spread evenly over the unit cube."""
    return np.random.default_rng(0).random((n, d))


def image(side: int) -> NDArray[np.float64]:
    """The pixels of a square image in three colours: smooth shades, two borders, and noise."""
    y, x = np.mgrid[:side, :side] / side
    shades = np.stack([np.sin(6 * x + 3 * y), np.cos(15 * x * y), 2.0 * (x > 0.5) + (y > 0.3)], 2)
    noise = np.random.default_rng(0).normal(scale=0.1, size=shades.shape)
    return (shades + noise).reshape(-1, 3)


def counts(n: int, d: int, n_clusters: int = 20) -> NDArray[np.int64]:
    """Poisson counts from clusters with means near 40."""
    rng = np.random.default_rng(0)
    means = rng.gamma(2.0, 20.0, size=(n_clusters, d))
    return rng.poisson(means[rng.integers(n_clusters, size=n)])


def blobs(n: int, d: int, n_clusters: int = 20) -> NDArray[np.float64]:
    """Normal rows from clusters that each have a shape of their own."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=5.0, size=(n_clusters, d))
    shapes = rng.normal(size=(n_clusters, d, d)) / np.sqrt(d)
    rows = rng.normal(size=(n, d))
    labels = rng.integers(n_clusters, size=n)
    for cluster in range(n_clusters):
        mine = labels == cluster
        rows[mine] = rows[mine] @ shapes[cluster] + centres[cluster]
    return rows


def round_blobs(n: int, d: int, n_clusters: int) -> NDArray[np.float64]:
    """Normal rows about centres that are four times as wide apart."""
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.normal(size=(n_clusters, d))
    return centres[rng.integers(n_clusters, size=n)] + rng.normal(size=(n, d))


def proportions(n: int, d: int, n_clusters: int = 20, total: int = 100) -> NDArray[np.int64]:
    """Counts out of a total, from clusters with proportions of their own."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(d), size=n_clusters)
    return rng.multinomial(total, shares[rng.integers(n_clusters, size=n)])


def topics(n: int, d: int, n_topics: int, words: int) -> csr_array:
    """Sparse rows of words, most of them from the 300 words of one topic, a fifth from anywhere."""
    rng = np.random.default_rng(0)
    vocabularies = np.array([rng.choice(d, 300, replace=False) for _ in range(n_topics)])
    frequencies = 1.0 / np.arange(1, 301)
    ranks = rng.choice(300, size=(n, words), p=frequencies / frequencies.sum())
    columns = vocabularies[rng.integers(n_topics, size=n)[:, None], ranks]
    anywhere = rng.random((n, words)) < 0.2
    columns[anywhere] = rng.integers(d, size=int(anywhere.sum()))
    rows = np.repeat(np.arange(n), words)
    found = csr_array((np.ones(n * words), (rows, columns.ravel())), shape=(n, d))
    found.sum_duplicates()
    return found


def shares(n: int, d: int, n_clusters: int = 20) -> NDArray[np.float64]:
    """Values between 0 and 1, from clusters with means of their own."""
    rng = np.random.default_rng(0)
    means = rng.uniform(0.1, 0.9, size=(n_clusters, d))[rng.integers(n_clusters, size=n)]
    return rng.beta(10.0 * means, 10.0 * (1.0 - means))


# Families of columns that `mixed` draws.
MIXED = {
    "gpb": {"ward": [0], "poisson": [1], "bernoulli": [2]},
    "ggppbe": {"ward": [0, 1], "poisson": [2, 3], "bernoulli": [4], "exponential": [5]},
}


def mixed(n: int, kinds: str, n_clusters: int = 50) -> NDArray[np.float64]:
    """A column for each letter: g normal, p Poisson, b zeros and ones, e exponential."""
    rng = np.random.default_rng(0)
    z = rng.integers(n_clusters, size=n)
    draws = {
        "g": lambda: rng.normal(rng.normal(0.0, 5.0, n_clusters)[z], 1.0),
        "p": lambda: rng.poisson(rng.gamma(2.0, 5.0, n_clusters)[z]),
        "b": lambda: rng.random(n) < rng.beta(0.5, 0.5, n_clusters)[z],
        "e": lambda: rng.exponential(rng.gamma(2.0, 2.0, n_clusters)[z]),
    }
    return np.column_stack([draws[kind]() for kind in kinds]).astype(np.float64)


# Families of the columns of `with_levels`.
LEVELS = {"ward": [0], "poisson": [1], "categorical": [2]}


def with_levels(n: int, n_levels: int, n_clusters: int = 10) -> NDArray[np.float64]:
    """A measurement, a count and a level, some of which are frequent; others in each cluster."""
    rng = np.random.default_rng(0)
    z = rng.integers(n_clusters, size=n)
    levels = np.array([rng.permutation(n_levels) for _ in range(n_clusters)])
    places = np.minimum(rng.zipf(1.3, n) - 1, n_levels - 1)
    numbers = rng.normal(2.0 * (z % 4), 1.0), rng.poisson(2.0 + 3.0 * (z % 3))
    return np.column_stack([*numbers, levels[z, places]]).astype(np.float64)


def rows_for(family: str, n: int, d: int) -> NDArray[np.float64]:
    """Rows that a family is made for, no two of them alike, so that n rows are n points."""
    # Here, as processes that time a first call do not need it to make their rows.
    from fastrbhc.families import as_family

    record = as_family(family)
    if np.isfinite(record.domain.upper):
        return shares(n, d)
    if np.isfinite(record.domain.lower):
        return counts(n, d) + np.random.default_rng(1).random((n, d))
    return normal(n, d) if record.separable else blobs(n, d)
