"""The synthetic data of the paper's Table 2: mixtures of Poisson, multinomial, Gaussian clusters.

Lee & Choi (2015), section 4.1, "Clustering synthetic data". Parameters are interpreted as in
Table 1, see ``_distributions``, with one per cluster. The paper does not state the sizes of
clusters. Here their shares are proportional to uniform random integers from 20 to 100, like the
sizes in its first experiment. Clusters of equal size lead to nearly the same means, see
``docs/paper-tables.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc.experiments._distributions import normal_wishart
from fastrbhc.families import Gaussian, Multinomial, Poisson

_SMALLEST, _LARGEST = 20, 100


class Mixture(NamedTuple):
    """A generator of data sets, and the family to cluster them with.

    ``rows(rng, labels, n_clusters)`` draws one parameter per cluster, and one row per label.
    """

    family: Any
    n_rows: int
    n_clusters: int
    rows: Callable[[np.random.Generator, NDArray[np.int64], int], NDArray[np.float64]]

    def draw(
        self, rng: np.random.Generator, equal: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Rows and their clusters; optionally clusters of equal size."""
        k = self.n_clusters
        if equal:
            labels = np.arange(self.n_rows) % k
        else:
            sizes = rng.integers(_SMALLEST, _LARGEST + 1, k)
            labels = rng.choice(k, size=self.n_rows, p=sizes / sizes.sum())
        return self.rows(rng, labels, k), labels


def _poisson(rng: np.random.Generator, labels: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    rates = rng.gamma(shape=2.0, scale=1.0 / 0.05, size=k)
    return rng.poisson(rates[labels])[:, None].astype(np.float64)


def _multinomial(d: int) -> Callable[..., NDArray[np.float64]]:
    def rows(rng: np.random.Generator, labels: NDArray[np.int64], k: int) -> NDArray[np.float64]:
        shares = rng.dirichlet(np.full(d, 0.5), size=k)
        return rng.multinomial(10, shares[labels]).astype(np.float64)

    return rows


def _gaussian(d: int, degrees: int, strength: float) -> Callable[..., NDArray[np.float64]]:
    def rows(rng: np.random.Generator, labels: NDArray[np.int64], k: int) -> NDArray[np.float64]:
        means, roots = normal_wishart(rng, k, d, degrees, strength)
        noise = rng.standard_normal((labels.size, 1, d))
        return np.asarray(means[labels] + (noise @ roots[labels])[:, 0])

    return rows


# In the order of the paper's table.
MIXTURES = {
    "poisson_1k": Mixture(Poisson(smoothing=0.01), 1_000, 6, _poisson),
    "poisson_2k": Mixture(Poisson(smoothing=0.01), 2_000, 12, _poisson),
    "multinomial_1k": Mixture(Multinomial(smoothing=0.1), 1_000, 6, _multinomial(20)),
    "multinomial_2k": Mixture(Multinomial(smoothing=0.1), 2_000, 12, _multinomial(40)),
    "gaussian_1k": Mixture(Gaussian(smoothing=0.01), 1_000, 6, _gaussian(3, 6, 0.08)),
    "gaussian_2k": Mixture(Gaussian(smoothing=0.01), 2_000, 12, _gaussian(6, 9, 0.2)),
}
