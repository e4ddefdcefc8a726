"""The smoothing of a family with ``smoothing="auto"``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._options import CheckedOptions
from fastrbhc.families import Family
from fastrbhc.selection.held_out import Prediction, predictions

# By how much, in natural units per row, other scales of the columns have to predict better.
_CLEARLY = 0.15


def resolve(
    family: Family,
    X: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    options: CheckedOptions,
) -> tuple[Family, Prediction | None]:
    """The family with all its parameters, and how well its cuts predict if that was computed.

    Of the records that the family offers, the one whose best cut predicts held-out rows best. One
    with other scales than the first has to predict clearly better.
    """
    offered = list(family.candidates(X, sample_weight))
    if not offered:
        return family, None
    found = predictions(offered, X, sample_weight, options)
    scores = np.array([prediction.log_likelihoods.max() for prediction in found])
    scales = [getattr(record, "scale", None) for record in offered]
    scores -= [0.0 if scale == scales[0] else _CLEARLY for scale in scales]
    best = int(np.argmax(scores))
    return offered[best], found[best]
