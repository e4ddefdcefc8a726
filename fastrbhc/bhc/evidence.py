"""Hyperparameters: as given, from the data, or with the largest evidence.

The evidence is the lower bound of the marginal likelihood given by a tree, so every evaluation
costs one tree. It is maximised over the logarithms of a few hyperparameters by the Nelder–Mead
method, which tolerates the small steps of the bound where the tree changes. Above `SAMPLE` rows a
random sample is used: hyperparameters describe clusters, not rows, and a sample determines them
nearly as well. Moments, on which the other values depend, are always those of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._validation import check_choice, check_positive
from fastrbhc.bhc._interface import Model

# The most rows of a tree in the search, and the number of trees per hyperparameter.
SAMPLE = 2_000
TRIALS_EACH = 40

# Hyperparameters are searched within this factor of the starting point. The search ends when the
# simplex is smaller than that share and its evidences differ by less than a tenth.
_REACH = math.log(1e6)
_SHARE, _DIFFERENCE = 0.02, 0.1

# The loss if the evidence is not finite.
_NOTHING = 1e300


def check_search(alpha: Any, hyperparameters: Any) -> None:
    """Reject unknown words for the source of hyperparameters, and an α that is not positive."""
    if isinstance(alpha, str):
        check_choice(alpha, "alpha, if not a number,", ("evidence",))
    else:
        check_positive(alpha, "alpha")
    if isinstance(hyperparameters, str):
        check_choice(hyperparameters, "hyperparameters, if a word,", ("data", "evidence"))


def search(
    X: Any,
    model: Model,
    alpha: float | str,
    hyperparameters: Any,
    build: Callable[[Any, Model, float], Any],
    report: Callable[[str, int], None],
    random_state: Any,
) -> tuple[Model, float]:
    """The complete model and log α; ``build(rows, model, log_alpha)`` makes a tree."""
    from scipy.optimize import minimize
    from sklearn.utils import check_random_state

    complete = model.with_defaults(X)
    complete.check(X.shape[1])
    wanted = isinstance(hyperparameters, str) and hyperparameters == "evidence"
    names = free_fields(model, complete) if wanted else ()
    fixed_alpha = None if isinstance(alpha, str) else math.log(alpha)
    start = [math.log(value_of(complete, name)) for name in names]
    if fixed_alpha is None:
        start.append(0.0)
    if not start:
        assert fixed_alpha is not None
        return complete, fixed_alpha
    rows, n = X, X.shape[0]
    if n > SAMPLE:
        chosen = check_random_state(random_state).choice(n, SAMPLE, replace=False)
        rows = X[np.sort(chosen)]
    trials = 0

    def proposed(logs: NDArray[np.float64]) -> tuple[Model, float]:
        changed = model
        for name, value in zip(names, logs, strict=False):
            changed = with_value(changed, name, math.exp(value))
        log_alpha = float(logs[-1]) if fixed_alpha is None else fixed_alpha
        return changed.with_defaults(X), log_alpha

    def loss(logs: NDArray[np.float64]) -> float:
        nonlocal trials
        trials += 1
        report("evidence", trials)
        try:
            return -float(build(rows, *proposed(logs)).log_evidence)
        except ValueError:  # hyperparameters so extreme that nothing is finite
            return _NOTHING

    n_free, most = len(start), most_trials(len(start))
    best, least, step = np.array(start), np.inf, 1.0  # a factor of e
    # The simplex may shrink onto a step of the bound: restart the other way while it helps.
    while trials < most:
        found = minimize(
            loss,
            best,
            method="Nelder-Mead",
            bounds=[(value - _REACH, value + _REACH) for value in start],
            options={
                "initial_simplex": best + step * np.eye(n_free + 1, n_free, -1),
                "maxfev": most - trials,
                "xatol": _SHARE,
                "fatol": _DIFFERENCE,
            },
        )
        gained, least = least - found.fun, min(least, found.fun)
        best, step = found.x, -0.5 * step
        if gained < _DIFFERENCE:
            break
    return proposed(best)


def most_trials(n_free: int) -> int:
    """The most trees that a search takes."""
    return TRIALS_EACH * n_free


class Place(NamedTuple):
    """A field of a model, or of the model of one block of a product."""

    field: str
    block: int | None = None


def places_of(model: Model) -> list[Place]:
    """All fields that can be searched."""
    if hasattr(model, "blocks"):
        return [
            Place(name, k) for k, block in enumerate(model.blocks) for name in block.model.tunable
        ]
    return [Place(name) for name in model.tunable]


def free_fields(model: Model, complete: Model) -> tuple[Place, ...]:
    """The fields to search: tunable ones left open, unless another field replaces them."""
    return tuple(
        place
        for place in places_of(model)
        if value_of(model, place) is None and value_of(complete, place) is not None
    )


def value_of(model: Any, place: Place) -> Any:
    """The value of a field."""
    owner = model if place.block is None else model.blocks[place.block].model
    return getattr(owner, place.field)


def with_value(model: Any, place: Place, value: float) -> Any:
    """The model with another value of a field."""
    if place.block is None:
        return model._replace(**{place.field: value})
    blocks = list(model.blocks)
    block = blocks[place.block]
    blocks[place.block] = block._replace(model=block.model._replace(**{place.field: value}))
    return model._replace(blocks=tuple(blocks))
