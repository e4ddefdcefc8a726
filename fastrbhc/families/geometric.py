"""Numbers of failures before a success: counts as spread out as their mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastrbhc._engine.math.entropy import overdispersed_divergence
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._sharing import sharing
from fastrbhc.families._smoothing import check_shift
from fastrbhc.families.negative_binomial import NegativeBinomial


@family("geometric", separable=True, reducible=False, domain=Domain(lower=0.0))
@sharing(
    NegativeBinomial,
    "advice",
    "check_rows",
    "coordinates",
    "draw_one_cluster",
    "phi",
    "smoothing_map",
)
class Geometric(NamedTuple):
    """Geometric with independent columns: φ(x) = Σⱼ xⱼ log xⱼ − (xⱼ + 1) log(xⱼ + 1).

    Counts start at 0: subtract 1 if they are numbers of trials, the success included. φ is shifted
    by the smoothing. This is the `NegativeBinomial` with dispersion 1. The divergence of one column
    is x log(x/y) − (x + 1) log((x + 1)/(y + 1)), the variance function 1/φ″(m) = m + m².

    Not reducible. The rows (0, 9, 9), (9, 0, 9) and (9, 9, 0) are equally near to each other,
    d = 3.82. The union of any two is nearer to the third, d = 2.35.

    Parameters
    ----------
    smoothing : float, default=0.01
        Added to every mean (the paper's φ₁), so that φ has a finite slope at a count of zero.

    References
    ----------
    A. Banerjee, S. Merugu, I. S. Dhillon, J. Ghosh (2005), Clustering with Bregman divergences,
    Journal of Machine Learning Research 6, 1705–1749, for the divergences of exponential families.

    Examples
    --------
    >>> from fastrbhc import dissimilarity
    >>> round(dissimilarity([[3, 0]], [[5, 1]], "geometric"), 6)
    0.53316
    """

    smoothing: float = 0.01

    @property
    def dispersion(self) -> float:
        """α of the negative binomial distribution."""
        return 1.0

    def check(self) -> None:
        check_shift(self.smoothing)

    def if_overdispersed(self, dispersion: float) -> str:
        return f"NegativeBinomial(dispersion={dispersion:g}) allows that"

    def divergence(family, value, mean, step):
        return overdispersed_divergence(1.0, value, mean, step)

    def second_derivative(family, mean):
        return 1.0 / (mean * (1.0 + mean))

    def variance_function(family, mean):
        return mean * (np.float32(1.0) + mean)
