"""Rows without clusters that resemble the rows of a product of families, or of categories.

The numbers of all blocks are drawn together, as `populations` draws those of one family, so columns
of different blocks go together as they do in the rows. Units of blocks do not compare: principal
axes are those of columns divided by their standard deviations.

Levels of a category have no order, hence no mode. Their columns are drawn with the shares of the
levels, each on its own: that categories depend on each other, or on numbers, is what speaks for
clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc.assessment.populations import Draw, dressing_for, of_one_mode


def mixed_populations(
    X: NDArray[np.float64], weights: NDArray[np.float64] | None, family: Any
) -> list[Draw]:
    """Functions that draw as many rows as X has, each from another population of one mode.

    Levels in X are codes. Weights are those of the rows of X; the draws have none.
    """
    n = len(X)
    shares = np.ones(n) if weights is None else weights
    shares = shares / shares.sum()
    blocks = [(record, list(columns)) for record, columns in _blocks(family, X.shape[1])]
    categories = [k for record, columns in blocks if hasattr(record, "levels") for k in columns]
    measured = [(record, columns) for record, columns in blocks if not hasattr(record, "levels")]

    def with_categories(rng: np.random.Generator) -> NDArray[np.float64]:
        rows = np.zeros(X.shape)
        for k in categories:
            rows[:, k] = rng.choice(X[:, k], n, p=shares)
        return rows

    def of_the_family(rng: np.random.Generator) -> NDArray[np.float64]:
        chosen = X if weights is None else X[rng.choice(n, n, p=shares)]
        drawn: NDArray[np.float64] = family.draw_one_cluster(chosen, rng)
        return drawn

    if not measured:
        return [with_categories]
    seen = [_seen(record, X[:, columns]) for record, columns in measured]
    together = np.concatenate(seen, axis=1)
    units = np.sqrt(shares @ (together - shares @ together) ** 2)
    ends = np.cumsum([part.shape[1] for part in seen])[:-1]
    dressings = [
        dressing_for(part, record.base or record)
        for (record, _), part in zip(measured, seen, strict=True)
    ]

    def whole(draw: Draw) -> Draw:
        def rows_of(rng: np.random.Generator) -> NDArray[np.float64]:
            rows = with_categories(rng)
            parts = np.split(draw(rng), ends, axis=1)
            for (record, columns), part, dressed in zip(measured, parts, dressings, strict=True):
                values = dressed(part, rng)
                rows[:, columns] = (
                    values if record.base is None else record.in_units_of_rows(values)
                )
            return rows

        return rows_of

    draws = list(map(whole, of_one_mode(together, shares, np.where(units > 0.0, units, 1.0))))
    if family.draw_one_cluster(X, np.random.default_rng(0)) is not None:
        draws.append(of_the_family)
    return draws


def _blocks(family: Any, n_columns: int) -> list[tuple[Any, Any]]:
    """Families with their columns."""
    if hasattr(family, "blocks"):
        return [(block.family, block.columns) for block in family.blocks]
    return [(family, range(n_columns))]


def _seen(record: Any, part: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows as a family of transformed rows sees them; others as they are."""
    if record.base is None:
        return part
    means: NDArray[np.float64] = record.observe(np.ascontiguousarray(part)).means
    return means
