"""Data that the benchmarks share, seeded."""

from __future__ import annotations

import numpy as np


def normal(n: int, d: int) -> np.ndarray:
    """Standard normal rows: nothing to find, so nothing to exploit."""
    return np.random.default_rng(0).normal(size=(n, d))


def counts(n: int, d: int, n_clusters: int = 20) -> np.ndarray:
    """Poisson counts from clusters with means near 40."""
    rng = np.random.default_rng(0)
    means = rng.gamma(2.0, 20.0, size=(n_clusters, d))
    return rng.poisson(means[rng.integers(n_clusters, size=n)])
