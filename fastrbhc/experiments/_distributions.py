"""Random clusters as in the paper: one parameter per trial, then rows that share it.

Lee & Choi (2015), section 4.1, "Testing the reducibility". Details are interpreted as follows.
Gamma(2, 0.05) is given by shape and rate, so that Poisson means are 40 on average. The
normal-Wishart distribution draws a precision: Λ ~ W(d + 2, Ψ), Ψ = AAᵀ + dI, A a d × d matrix of
standard normal numbers; then Σ = Λ⁻¹ and μ ~ N(0, (0.08Λ)⁻¹).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc.families import Gaussian, Multinomial, Poisson

_CATEGORIES, _DRAWS = 10, 5  # of the multinomial
_COLUMNS = 10  # of the Gaussian


class Draw(NamedTuple):
    """Rows of several trials, one trial after the other, and the true parameters."""

    rows: NDArray[np.float64]  # (sum of the sizes, d)
    means: NDArray[np.float64]  # (trials, d), expected rows of each trial
    covariances: NDArray[np.float64] | None = None  # (trials, d, d), if clusters have one


class Distribution(NamedTuple):
    """A family, with the smoothing of the paper, and how to draw from it.

    ``draw(rng, sizes)`` draws the given number of rows for every trial.
    """

    family: Any
    n_features: int
    draw: Callable[[np.random.Generator, NDArray[np.int64]], Draw]


def _poisson(rng: np.random.Generator, sizes: NDArray[np.int64]) -> Draw:
    rates = rng.gamma(shape=2.0, scale=1.0 / 0.05, size=sizes.size)
    counts = rng.poisson(np.repeat(rates, sizes))
    return Draw(counts[:, None].astype(np.float64), rates[:, None])


def _multinomial(rng: np.random.Generator, sizes: NDArray[np.int64]) -> Draw:
    shares = rng.dirichlet(np.full(_CATEGORIES, 5.0), size=sizes.size)
    counts = rng.multinomial(_DRAWS, np.repeat(shares, sizes, axis=0))
    return Draw(counts.astype(np.float64), shares)


def _gaussian(rng: np.random.Generator, sizes: NDArray[np.int64]) -> Draw:
    d = _COLUMNS
    means, roots = normal_wishart(rng, sizes.size, d, degrees=d + 2, strength=0.08)
    rows = rng.standard_normal((sizes.sum(), d))
    ends = np.cumsum(sizes)
    for start, stop, mean, root in zip(ends - sizes, ends, means, roots, strict=True):
        rows[start:stop] = mean + rows[start:stop] @ root
    return Draw(rows, means, roots.transpose(0, 2, 1) @ roots)


def normal_wishart(
    rng: np.random.Generator, size: int, d: int, degrees: int, strength: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means (size, d) and roots R (size, d, d) of covariances RᵀR, each with its own Ψ.

    Λ ~ W(degrees, Ψ), Ψ = AAᵀ + dI, Σ = Λ⁻¹ and μ ~ N(0, (strength·Λ)⁻¹).
    """
    A = rng.standard_normal((size, d, d))
    psi = A @ A.transpose(0, 2, 1) + d * np.eye(d)
    # Bartlett: Λ = CCᵀ, C = LB, where LLᵀ = Ψ and B is triangular, with standard normal numbers
    # below its diagonal and roots of χ² with ν, ν−1, … degrees of freedom on the diagonal.
    bartlett = np.tril(rng.standard_normal((size, d, d)), -1)
    diagonal = np.arange(d)
    bartlett[:, diagonal, diagonal] = np.sqrt(rng.chisquare(degrees - diagonal, (size, d)))
    # With R = C⁻¹, Σ = RᵀR is the covariance of zR for a row z of standard normal numbers.
    roots = np.asarray(np.linalg.inv(np.linalg.cholesky(psi) @ bartlett), np.float64)
    means = (rng.standard_normal((size, 1, d)) @ roots)[:, 0] / np.sqrt(strength)
    return means, roots


# In the order of the paper's table.
DISTRIBUTIONS = {
    "poisson": Distribution(Poisson(smoothing=0.01), 1, _poisson),
    "multinomial": Distribution(Multinomial(smoothing=0.1), _CATEGORIES, _multinomial),
    "gaussian": Distribution(Gaussian(smoothing=0.01), _COLUMNS, _gaussian),
}
