"""A tree together with what is left to the data: parameters of the family, and λ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._build import build
from fastrbhc._options import DEFAULT_GUESS, DEFAULT_MULTIPLIER, CheckedOptions
from fastrbhc.families import Family
from fastrbhc.selection.held_out import predictions
from fastrbhc.selection.number import FROM_PREDICTION, PredictiveChoice
from fastrbhc.selection.smoothing import resolve
from fastrbhc.thresholds import FROM_ROWS, FROM_TREE
from fastrbhc.tree.dendrogram import Dendrogram


class Guess(NamedTuple):
    """The settings of the heuristic "kmeans"."""

    n_clusters: int = DEFAULT_GUESS
    multiplier: int = DEFAULT_MULTIPLIER
    random_state: Any = None


class Grown(NamedTuple):
    """A tree, its family with all parameters, λ, and the choice if it was made by prediction."""

    tree: Dendrogram
    family: Family
    threshold: float
    choice: PredictiveChoice | None


def grow(
    rows: list[NDArray[np.float64]],
    family: Family,
    weights: NDArray[np.float64] | None,
    options: CheckedOptions,
    guess: Guess,
    *,
    whole: bool = False,
) -> Grown:
    """Build the tree, up to λ if that is known before and ``whole`` is not asked for.

    ``rows`` is a list of one matrix, and is emptied: rows that were converted are freed once the
    points are made of them.
    """
    level, by_name = options.threshold, options.choice
    family, prediction = resolve(family, rows[0], weights, options)
    if by_name in FROM_ROWS:
        level = FROM_ROWS[by_name](rows[0], family, *guess[:2], weights, guess.random_state)
    if by_name in FROM_PREDICTION and prediction is None:
        prediction = predictions([family], rows[0], weights, options)[0]
    stop = np.inf if whole else level
    tree = build(rows.pop(), family, weights, replace(options, threshold=stop))
    if by_name in FROM_TREE:
        level = FROM_TREE[by_name](tree)
    choice = None
    if by_name in FROM_PREDICTION:
        choice = FROM_PREDICTION[by_name](tree, prediction)
        level = choice.threshold
    return Grown(tree, family, level, choice)
