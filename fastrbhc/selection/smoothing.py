"""The smoothing of a family with ``smoothing="auto"``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._options import CheckedOptions
from fastrbhc.families import Family
from fastrbhc.selection.held_out import Prediction, predictions


def resolve(
    family: Family,
    X: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    options: CheckedOptions,
) -> tuple[Family, Prediction | None]:
    """The family with all its parameters, and how well its cuts predict if that was computed.

    Of the records that the family offers, the one whose best cut predicts held-out rows best.
    """
    offered = list(family.candidates(X, sample_weight))
    if not offered:
        return family, None
    found = predictions(offered, X, sample_weight, options)
    best = int(np.argmax([prediction.log_likelihoods.max() for prediction in found]))
    return offered[best], found[best]
