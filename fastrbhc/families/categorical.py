"""Categories: countries, colours, answers to a question."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.partly_observed import PartlyObserved
from fastrbhc._engine.geometry.observed import observed_geometry
from fastrbhc._engine.geometry.separable import separable_geometry
from fastrbhc.families._columns import Table
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import check_contraction, contraction
from fastrbhc.families.multinomial import Multinomial

# The code of a level that the rows of the fit did not have.
_UNSEEN = -1.0

# Rows are made of one number per level.
_MOST_LEVELS = 4096


# Not separable in the sense of the contract: rows have one column for several of the statistic.
@family("categorical", separable=False, reducible=False, domain=Domain(lower=_UNSEEN))
class Categorical(NamedTuple):
    """Categories with independent columns: φ = Σ p log p over the levels of every column.

    A cell is one draw from the levels of its column. So d of one column is that of `Multinomial`
    with one number per level and a total of 1: the increase of entropy by the merge, in units of
    the rows.

    It is not reducible, as `Multinomial` is not.

    Parameters
    ----------
    smoothing : float, default=0.1
        How far the shares of levels are moved towards equal ones, as a share of the way (the
        paper's φ₀).
    levels : tuple of tuples of str
        The levels of each column; by default those that occur in the rows of the fit. A level of
        new rows that is not among them has a share in none: it is nearer to a cluster than a level
        that is rare there, and farther than a frequent one.

    Examples
    --------
    >>> import fastrbhc
    >>> X = [["red", "small"], ["red", "small"], ["blue", "large"], ["blue", "small"]]
    >>> tree = fastrbhc.linkage(X, "categorical")
    >>> tree.cut(n_clusters=2).tolist()
    [0, 0, 1, 1]
    >>> tree.family.levels
    (('blue', 'red'), ('large', 'small'))

    References
    ----------
    A. Banerjee, S. Merugu, I. S. Dhillon, J. Ghosh (2005), Clustering with Bregman divergences,
    Journal of Machine Learning Research 6, 1705–1749.
    """

    smoothing: float = 0.1
    levels: tuple[tuple[str, ...], ...] = ()

    def normalised(self) -> Categorical:
        """The same with its numbers as floats and its levels as text."""
        levels = tuple(tuple(map(str, column)) for column in self.levels)
        return Categorical(float(self.smoothing), levels)

    def check(self) -> None:
        check_contraction(self.smoothing)
        for column in self.levels:
            if len(set(column)) < len(column):
                raise ValueError("a level of the family 'categorical' is named twice")

    def place(self, table: Table) -> Categorical:
        """The same with the levels of these columns, if they are not given."""
        if self.levels:
            if len(self.levels) != table.n_columns:
                raise ValueError(
                    f"the family 'categorical' has levels for {len(self.levels)} columns, and "
                    f"there are {table.n_columns}"
                )
            return self
        found = tuple(
            tuple(sorted({level for level in table.text(k) if level is not None}))
            for k in range(table.n_columns)
        )
        for k, column in enumerate(found):
            if not column:
                raise ValueError(f"all values of {table.label(k)} are missing: leave it out")
        total = sum(map(len, found))
        if total > _MOST_LEVELS:
            most = int(np.argmax([len(column) for column in found]))
            raise ValueError(
                f"the columns of categories have {total:,} levels, {len(found[most]):,} of them in "
                f"{table.label(most)}, and {_MOST_LEVELS:,} are possible. Join rare levels into "
                "one, or leave that column out: identifiers say nothing about clusters"
            )
        return self._replace(levels=found)

    def encode(self, table: Table) -> NDArray[np.float64]:
        """The position of each level, −1 for others, and NaN if the value is missing."""
        if table.n_columns != len(self.levels):
            raise ValueError(
                f"rows have {table.n_columns} columns of categories, and the family has levels "
                f"for {len(self.levels)}"
            )
        values = np.empty((table.n_rows, table.n_columns))
        for k, column in enumerate(self.levels):
            codes: dict[str | None, float] = {None: np.nan}
            codes |= {level: float(place) for place, level in enumerate(column)}
            values[:, k] = [codes.get(level, _UNSEEN) for level in table.text(k)]
        return values

    def width(self, n_columns: int) -> int:
        """The number of levels of all columns."""
        return sum(map(len, self.levels))

    def observe(self, X: NDArray[np.float64]) -> Observations:
        means, start = np.zeros((X.shape[0], self.width(X.shape[1]))), 0
        for k, column in enumerate(self.levels):
            known = np.flatnonzero(X[:, k] >= 0.0)
            means[known, start + X[known, k].astype(np.int64)] = 1.0
            start += len(column)
        return Observations(means)

    def geometry(self, n_features: int) -> Any:
        towards = len(self.levels) / max(n_features, 1)
        scale, offset = contraction(self.smoothing, towards)
        # The same φ; names of levels are nothing for kernels.
        geometry: Any = separable_geometry(Multinomial(), n_features)
        return geometry._replace(scale=scale, offset=offset)

    def observed_geometry(self, rows: PartlyObserved) -> Any:
        """The same if cells are missing: all levels of a column have its weight."""
        whole = self.geometry(rows.width)
        geometry: Any = observed_geometry(Multinomial(), rows.width)
        return geometry._replace(scale=whole.scale, offset=whole.offset)

    def n_parameters(self, n_features: int) -> int:
        return n_features - len(self.levels)

    def in_units_of_rows(self, means: NDArray[np.float64]) -> NDArray[Any]:
        """The most frequent level of each column, with its share."""
        out = np.empty((means.shape[0], len(self.levels)), object)
        ends = np.cumsum([0, *map(len, self.levels)])
        for k, (start, stop) in enumerate(pairwise(ends)):
            for row, shares in enumerate(means[:, start:stop]):
                most = int(np.argmax(shares)) if np.isfinite(shares).all() else -1
                text = f"{self.levels[k][most]} ({shares[most]:.0%})" if most >= 0 else ""
                out[row, k] = text
        return out

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Roots of the shares, doubled, whose variances are about alike."""
        return 2.0 * np.sqrt(self.observe(X).means)

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        return np.column_stack([rng.choice(column, column.size) for column in X.T])
