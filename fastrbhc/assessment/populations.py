"""Rows without clusters that otherwise resemble given rows: what a real cluster has to beat.

A tree divides any rows, also those of one population, and some populations are easier to divide
than others. So rows are compared with several populations of one mode that have their means, their
variances and, nearly, their correlations:

uniform
    Along each principal axis an independent uniform distribution. Of all symmetric distributions
    with one mode and a given variance, two halves of the uniform one explain the most of it.
unimodal
    In each column the distribution with one mode that is nearest to that of the rows, see
    `one_mode`. It keeps what is skewed or has long tails. Columns go together as they do in a
    normal population with the same correlations of ranks.
the family's own
    Independent draws from one distribution of the family, such as Poisson counts.

Draws are made to look like the rows: whole numbers where a column has nothing else, and values in
the domain of the family. A family that scales its columns does not know whole numbers from others,
because units do not matter to it. For such a family the principal axes are those of the scaled
columns, and a column of few values keeps to these.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.isotonic import isotonic_regression

from fastrbhc.families import Family

# Where a mode may be: in the middle of the shortest interval with this share of the rows.
_SHARES_AT_MODE = (0.5, 0.125)
# A scaled column with at most so many distinct values has no others.
_FEW_VALUES = 20
_ROUNDING = 1e-9

Draw = Callable[[np.random.Generator], NDArray[np.float64]]
Dressing = Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]


def populations(
    X: NDArray[np.float64], weights: NDArray[np.float64] | None, family: Family
) -> list[Draw]:
    """Functions that draw as many rows as X has, each from another population of one mode.

    Weights are those of the rows of X; the draws have none.
    """
    if family.base is not None:  # one mode where the family sees it
        inner = populations(family.observe(X).means, weights, family.base)
        return [_in_units_of_rows(draw, family) for draw in inner]
    n, units = len(X), _units(family, X.shape[1])
    shares = np.ones(n) if weights is None else weights
    shares = shares / shares.sum()
    dressed = dressing_for(X, family)

    def of_the_family(rng: np.random.Generator) -> NDArray[np.float64]:
        chosen = X if weights is None else X[rng.choice(n, n, p=shares)]
        drawn: NDArray[np.float64] = family.draw_one_cluster(chosen, rng)
        return drawn

    draws = of_one_mode(X, shares, units)
    if family.draw_one_cluster(X, np.random.default_rng(0)) is not None:
        draws.append(of_the_family)
    return [_in_clothes(draw, dressed) for draw in draws]


def _in_clothes(draw: Draw, dressed: Dressing) -> Draw:
    return lambda rng: dressed(draw(rng), rng)


def dressing_for(X: NDArray[np.float64], family: Family) -> Dressing:
    """A function that makes draws look like the rows X of a family."""
    scaled = (_units(family, X.shape[1]) != 1.0).any()
    return _snapping(X) if scaled else _dressing(X, family)


def of_one_mode(
    X: NDArray[np.float64], shares: NDArray[np.float64], units: NDArray[np.float64]
) -> list[Draw]:
    """Functions that draw from the uniform and the unimodal population."""
    n, mean = len(X), shares @ X
    _, values, axes = np.linalg.svd(
        np.sqrt(shares)[:, None] * (X - mean) / units, full_matrices=False
    )
    columns = [one_mode(column, shares) for column in X.T]
    normal_scores = ndtri((rankdata(X, axis=0) - 0.5) / n)
    _, sizes, directions = np.linalg.svd(
        np.sqrt(shares)[:, None] * normal_scores, full_matrices=False
    )

    def uniform(rng: np.random.Generator) -> NDArray[np.float64]:
        z = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (n, values.size))
        drawn: NDArray[np.float64] = mean + (z * values) @ axes * units
        return drawn

    def unimodal(rng: np.random.Generator) -> NDArray[np.float64]:
        together = (rng.normal(size=(n, sizes.size)) * sizes) @ directions
        drawn = np.empty(X.shape)
        for j, (edges, below) in enumerate(columns):
            values_of_column = np.interp(rng.uniform(size=n), below, edges)
            drawn[np.argsort(together[:, j]), j] = np.sort(values_of_column)
        return drawn

    return [uniform, unimodal]


def _in_units_of_rows(draw: Draw, family: Family) -> Draw:
    return lambda rng: family.in_units_of_rows(draw(rng))


def one_mode(
    values: NDArray[np.float64], shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The distribution with one mode that fits the values best: points, and probability below them.

    Around each distinct value is a cell, up to halfway to its neighbours, with the share of that
    value. Densities of cells are replaced by the nearest that rise up to the mode and fall after it
    (Grenander 1956), for several places of the mode; the one whose distribution function is nearest
    to that of the values counts. In the end variance and mean are those of the values.
    """
    distinct, where = np.unique(values, return_inverse=True)
    if distinct.size < 2:
        return np.repeat(distinct, 2), np.array([0.0, 1.0])
    masses = np.bincount(where, shares)
    gaps = np.diff(distinct)
    edges = np.concatenate(
        [
            [distinct[0] - 0.5 * gaps[0]],
            distinct[:-1] + 0.5 * gaps,
            [distinct[-1] + 0.5 * gaps[-1]],
        ]
    )
    widths, below = np.diff(edges), np.concatenate([[0.0], np.cumsum(masses)])
    fits, distances = [], []
    for mode in sorted(_places_of_a_mode(distinct, below)):
        rising = isotonic_regression(
            masses[: mode + 1] / widths[: mode + 1], sample_weight=widths[: mode + 1]
        )
        falling = isotonic_regression(
            masses[mode + 1 :] / widths[mode + 1 :],
            sample_weight=widths[mode + 1 :],
            increasing=False,
        ) if mode + 1 < distinct.size else np.empty(0)  # fmt: skip
        fitted = np.concatenate([rising, falling]) * widths
        fits.append(fitted)
        distances.append(np.abs(np.cumsum(fitted - masses)).max())
    fitted = fits[_first_least(np.array(distances), 1.0)]
    mean, centre = masses @ distinct, fitted @ distinct
    variance = fitted @ np.square(distinct - centre)
    scale = np.sqrt(masses @ np.square(distinct - mean) / variance)
    below = np.concatenate([[0.0], np.cumsum(fitted)])
    return mean + scale * (edges - centre), below / below[-1]


def _places_of_a_mode(distinct: NDArray[np.float64], below: NDArray[np.float64]) -> set[int]:
    """Cells where the mode may be: the ends, and the middles of the shortest intervals."""
    places, width = {0, distinct.size - 1}, float(distinct[-1] - distinct[0])
    for share in _SHARES_AT_MODE:
        last = np.searchsorted(below, below[:-1] + share - 1e-12) - 1
        inside = np.flatnonzero(last < distinct.size)
        lengths = distinct[last[inside]] - distinct[inside]
        first = inside[_first_least(lengths, width)]
        middle = 0.5 * (distinct[first] + distinct[last[first]])
        places.add(_first_least(np.abs(distinct - middle), width))
    return places


def _first_least(values: NDArray[np.float64], scale: float) -> int:
    """Where the smallest value is; of several that only rounding tells apart, the first."""
    return int(np.argmax(values <= values.min() + _ROUNDING * scale))


def _units(family: Family, n_features: int) -> NDArray[np.float64]:
    """What 1 is in each column, in the units of the rows, as the family sees it."""
    ends = family.in_units_of_rows(np.array([[0.0], [1.0]]) * np.ones(n_features))
    return ends[1] - ends[0]


def _snapping(
    X: NDArray[np.float64],
) -> Dressing:
    """A function that moves draws to the nearest values of their columns that have few."""
    distinct = [np.unique(column) for column in X.T]

    def dressed(drawn: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        rows = drawn.copy()
        for j, values in enumerate(distinct):
            if values.size <= _FEW_VALUES:
                halfway = 0.5 * (values[1:] + values[:-1])
                rows[:, j] = values[np.searchsorted(halfway, drawn[:, j])]
        return rows

    return dressed


def _dressing(X: NDArray[np.float64], family: Family) -> Dressing:
    """A function that rounds and clips draws, so that they could have been rows like X."""
    domain = family.domain
    whole = (np.round(X) == X).all(axis=0)
    lowest, highest = X.min(axis=0), X.max(axis=0)
    least = np.full(X.shape[1], domain.lower) if domain.includes_lower else lowest
    least = np.where(whole, lowest, np.maximum(least, domain.lower))
    most = np.where(whole, highest, domain.upper)

    def dressed(drawn: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        rows = np.clip(np.where(whole, np.round(drawn), drawn), least, most)
        empty: NDArray[np.bool_] = np.zeros(len(rows), np.bool_)
        if domain.needs_positive_total:
            empty = np.asarray(rows.sum(axis=1) <= 0.0)
        if domain.needs_nonzero_row:
            empty = np.asarray(~rows.any(axis=1))
        rows[empty] = X[rng.integers(0, len(X), int(empty.sum()))]
        return rows

    return dressed
