"""The number of clusters: how many predict held-out rows, and where the tree has its gap.

Two questions are asked in turn, because each has a weakness that the other has not.

1. Which numbers of clusters predict new rows? Half of the rows tell how dense the other half is:
   see ``held_out``. Rows without clusters are predicted best by one cluster. But real classes are
   not Gaussian, and more clusters describe their shapes better and better: the best number is an
   upper limit. The smallest number that reaches half of the gain is the lower one.
2. Where between these limits do the heights of the tree have their largest gap, compared with rows
   without clusters? See `fastrbhc.gap_threshold`. The gap alone always finds clusters, and often
   far too few or too many.

If no number of clusters gains enough, the answer is one cluster. What is enough depends on the
rows. Rows that are uniform in a box are not Gaussian either, and several clusters describe them a
little better, the more so the more rows there are to estimate clusters from. The gain has to exceed
theirs. Where a family says how widely the rows of a cluster vary, as those of counts do, there is
no such gain, and 0.1 natural units per row are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._options import LinkageOptions
from fastrbhc._row_validation import check_rows
from fastrbhc._validation import check_weights, check_whole
from fastrbhc.families._interface import FamilyLike
from fastrbhc.selection.held_out import Prediction, predictions
from fastrbhc.thresholds import gap_excess, reachable_numbers, threshold_for
from fastrbhc.tree.dendrogram import Dendrogram
from fastrbhc.tree.origin import family_for, missing_in, refuse_graph

# The largest gain of uniform rows, in natural units per row: for numbers of rows, and for 1, 2, …
# coordinates. With 8 or more there is none. (20, 16, 10, 8 and 8 draws of each.)
_UNIFORM_ROWS = (100, 250, 600, 1200, 2000)
_UNIFORM_GAINS = (
    (0.15, 0.15, 0.12, 0.14, 0.14),
    (0.11, 0.17, 0.15, 0.18, 0.20),
    (0.05, 0.12, 0.14, 0.18, 0.22),
    (0.00, 0.03, 0.12, 0.17, 0.21),
    (0.00, 0.00, 0.05, 0.12, 0.18),
    (0.00, 0.00, 0.00, 0.05, 0.10),
    (0.00, 0.00, 0.00, 0.00, 0.04),
)
# By how much that has to be exceeded, and what is required in any case.
_MARGIN, _LEAST_GAIN = 0.04, 0.08
_LEAST_GAIN_OF_COUNTS = 0.1
# The share of the largest gain that the smallest number of clusters reaches.
_SHARE_OF_GAIN = 0.5
# How many more clusters than predict best may be found: each half has half of the rows, from which
# fewer clusters can be estimated.
_FURTHER = 1
# The gap is compared with the median of this many, or of all up to the largest number.
_HEIGHTS = 40


@dataclass(frozen=True, repr=False)
class PredictiveChoice:
    """A number of clusters, and how sure it is.

    Attributes
    ----------
    threshold : float
        λ; infinite if there is one cluster.
    n_clusters : int
        The number of clusters at λ.
    fewest, most : int
        Numbers of clusters between these predict new rows about as well: at least half as much
        better than one cluster does as the best number.
    gain, gain_error : float
        By how much the best number predicts held-out rows better than one cluster, as the mean
        logarithm of a ratio of densities, and the standard error of that.
    required : float
        The gain that is required for more than one cluster.
    numbers, log_likelihoods : ndarray
        Numbers of clusters that were tried, and the mean log likelihood of held-out rows.
    """

    threshold: float
    n_clusters: int
    fewest: int
    most: int
    gain: float
    gain_error: float
    required: float
    numbers: NDArray[np.int64]
    log_likelihoods: NDArray[np.float64]

    def __str__(self) -> str:
        measured = f"{self.gain:.2f} ± {self.gain_error:.2f}"
        if self.n_clusters == 1 and self.gain >= self.required:
            return (
                f"One cluster: up to {self.most} predict held-out rows better (gain {measured} per "
                "row), but no λ divides the tree into more than one and about so few."
            )
        if self.n_clusters == 1:
            return (
                "One cluster: no number of clusters predicts held-out rows clearly better (gain "
                f"{measured} per row; {self.required:.2f} would be clear)."
            )
        if self.fewest == self.most:
            range_of = "No other number predicts held-out rows as well"
        else:
            range_of = (
                f"Between {self.fewest} and {self.most} predict held-out rows about as well, "
                "and the tree has its largest gap here"
            )
        return f"{self.n_clusters} clusters. {range_of} (gain over one cluster {measured} per row)."

    def __repr__(self) -> str:
        return f"<PredictiveChoice: {self}>"


def predictive_threshold(
    tree: Dendrogram,
    X: ArrayLike,
    *,
    family: FamilyLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> PredictiveChoice:
    """The λ whose clusters predict new rows and are divided by a gap; it may be one cluster.

    This is the default of `RBHC`. It needs neither a guess nor a seed.

    Parameters
    ----------
    tree : Dendrogram
        A whole tree, built without a threshold.
    X : array-like of shape (n_leaves, d)
        The rows of the tree.
    family : str or record, optional
        Another family than the one that the tree remembers.
    sample_weight : array-like of shape (n_leaves,), optional
        Weights of the rows; by default those of the tree.

    Returns
    -------
    PredictiveChoice
        Its ``threshold`` is λ. Printed, it says how sure it is.

    Notes
    -----
    At most 2,000 distinct rows are used to see which numbers of clusters predict, in 2 to 6
    divisions into halves; so it takes 4 to 12 trees of at most 1,000 rows. The sample and the
    halves follow from the values of the rows: the same rows always give the same answer, in any
    order. At most 97 clusters are found.

    ``docs/are-they-real.md`` compares this choice with others on 230 kinds of data, and shows
    where it fails.

    Examples
    --------
    >>> import numpy as np, fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 100, axis=0)
    >>> choice = fastrbhc.predictive_threshold(fastrbhc.linkage(X, "ward"), X)
    >>> choice.n_clusters, choice.fewest, choice.most
    (3, 2, 3)
    >>> noise = rng.normal(size=(300, 2))
    >>> fastrbhc.predictive_threshold(fastrbhc.linkage(noise, "ward"), noise).n_clusters
    1
    """
    family = family_for(tree, family)
    refuse_graph(tree, "predictive_threshold")
    check_whole(tree)
    missing = missing_in(tree)
    rows = check_rows(X, family, layout="auto", missing=missing)
    if rows.shape[0] != tree.n_leaves:
        raise ValueError(f"X has {rows.shape[0]} rows and the tree has {tree.n_leaves}")
    weights = check_weights(sample_weight, tree.n_leaves)
    weights = tree.leaf_weights if weights is None else weights
    options = LinkageOptions(missing=missing).checked(family)
    return choose(tree, predictions([family], rows, weights, options)[0])


def choose(tree: Dendrogram, prediction: Prediction) -> PredictiveChoice:
    """The number of clusters of a whole tree, from how well numbers of clusters predict."""
    gains, best = prediction.gains, prediction.best
    fewest, most = 1, int(prediction.numbers[best])
    number = 1
    required = least_gain(prediction)
    if gains[best] >= required:
        enough = int(np.argmax(gains >= _SHARE_OF_GAIN * gains[best]))
        fewest = int(prediction.numbers[enough])
        number = _largest_gap(tree, max(fewest, 2), most + _FURTHER)
        # A range of numbers that were tried, and the one that was found.
        fewest, most = min(fewest, number), max(most, number)
    return PredictiveChoice(
        threshold_for(tree, number),
        number,
        fewest,
        most,
        float(gains[best]),
        float(prediction.errors[best]),
        required,
        prediction.numbers,
        prediction.log_likelihoods,
    )


def least_gain(prediction: Prediction) -> float:
    """The gain from which there is more than one cluster."""
    if prediction.known_spread:
        return _LEAST_GAIN_OF_COUNTS
    if prediction.n_coordinates > len(_UNIFORM_GAINS):
        return _LEAST_GAIN
    gains = _UNIFORM_GAINS[max(prediction.n_coordinates, 1) - 1]
    gain = np.interp(np.log(prediction.n_rows), np.log(_UNIFORM_ROWS), gains)
    return max(_LEAST_GAIN, float(gain) + _MARGIN)


def _largest_gap(tree: Dendrogram, fewest: int, most: int) -> int:
    """The number of clusters, within limits, at which the gap between heights is largest.

    Only numbers that some λ yields count. If none is within the limits, the nearest one is taken.
    """
    excess = gap_excess(tree, max(_HEIGHTS, most + 1))
    numbers, reachable = np.arange(2, 2 + excess.size), reachable_numbers(tree)
    within = (numbers >= fewest) & (numbers <= most) & np.isin(numbers, reachable)
    if not within.any():
        return int(reachable[np.argmin(np.abs(reachable - reachable.clip(fewest, most)))])
    return int(numbers[np.argmax(np.where(within, excess, -np.inf))])


# Ways to choose λ from the whole tree and a `Prediction`, by name.
FROM_PREDICTION: dict[str, Callable[[Dendrogram, Any], PredictiveChoice]] = {"predictive": choose}
