"""Categories: countries, colours, answers to a question."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._engine.clusters.partly_observed import PartlyObserved
from fastrbhc._engine.clusters.sparse_rows import SparseObservations
from fastrbhc._engine.geometry.observed import observed_geometry
from fastrbhc._engine.geometry.sparse import sparse_geometry
from fastrbhc.families._columns import Table
from fastrbhc.families._interface import Domain, family
from fastrbhc.families._smoothing import check_contraction, contraction
from fastrbhc.families.multinomial import Multinomial

# The code of a level that the rows of the fit did not have.
_UNSEEN = -1.0

# A column with more levels than this share of the rows is probably an identifier.
_SHARE_OF_IDENTIFIERS, _FEWEST_IDENTIFIERS = 0.9, 100

# The most levels that coordinates tell apart in one column; they are for pictures and densities.
_MOST_COORDINATES = 50


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
        new rows that is not among them is one more level, which no cluster has.

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

    @property
    def n_levels(self) -> int:
        """The number of levels of all columns together."""
        return sum(map(len, self.levels))

    def width(self, n_columns: int) -> int:
        """The number of columns of the statistics: one for each level, and one for all others."""
        return self.n_levels + len(self.levels)

    def observe(self, X: NDArray[np.float64]) -> SparseObservations:
        """One entry for each cell, however many levels there are.

        Other levels of a column, which new rows may have, share a place after all levels.
        """
        n, n_columns = X.shape
        starts = np.cumsum([0, *map(len, self.levels)])[:-1]
        others = self.n_levels + np.arange(n_columns)
        places = np.where(X >= 0.0, starts + X, others).astype(np.int32)
        places.sort(axis=1)
        return SparseObservations(
            columns=places.ravel(),
            values=np.ones(places.size),
            starts=n_columns * np.arange(n + 1),
            n_columns=self.n_levels + n_columns,
            which=np.arange(n),
        )

    def geometry(self, n_features: int) -> Any:
        scale, offset = contraction(self.smoothing, len(self.levels) / max(self.n_levels, 1))
        # The same φ; names of levels are nothing for kernels.
        geometry = sparse_geometry(Multinomial(), self.width(n_features))
        return geometry._replace(scale=scale, offset=offset)

    def indicators(self, X: NDArray[np.float64]) -> Observations:
        """One number for each level, and then for all others of each column: for missing cells."""
        codes = [np.arange(len(column)) for column in self.levels]
        ones = [cells[:, None] == own for cells, own in zip(X.T, codes, strict=True)]
        return Observations(np.concatenate([*ones, X < 0.0], axis=1).astype(np.float64))

    def observed_geometry(self, rows: PartlyObserved) -> Any:
        """The same if cells are missing: all levels of a column have its weight."""
        whole = self.geometry(rows.width)
        geometry: Any = observed_geometry(Multinomial(), rows.width)
        return geometry._replace(scale=whole.scale, offset=whole.offset)

    def n_parameters(self, n_features: int) -> int:
        return self.n_levels - len(self.levels)

    def in_units_of_rows(self, means: Any) -> NDArray[Any]:
        """The most frequent level of each column, with its share; means may be sparse."""
        out = np.empty((means.shape[0], len(self.levels)), object)
        ends = np.cumsum([0, *map(len, self.levels)])
        for k, (start, stop) in enumerate(pairwise(ends)):
            shares = means[:, start:stop]
            most, largest = np.ravel(shares.argmax(axis=1)), shares.max(axis=1)
            largest = largest.toarray().ravel() if issparse(largest) else largest
            out[:, k] = [
                f"{self.levels[k][place]} ({share:.0%})" if share > 0.0 else ""
                for place, share in zip(most.tolist(), largest, strict=True)
            ]
        return out

    def coordinates(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Roots of the shares, doubled, whose variances are about alike.

        Of many levels in a column, the most frequent ones, and one coordinate for all others.
        """
        parts = []
        for k, column in enumerate(self.levels):
            codes = X[:, k].astype(np.int64)
            counts = np.bincount(codes[codes >= 0], minlength=len(column))
            frequent = np.arange(len(column))
            if len(column) > _MOST_COORDINATES:
                frequent = np.sort(np.argsort(-counts, kind="stable")[: _MOST_COORDINATES - 1])
            is_level = codes[:, None] == frequent
            parts.append(is_level)
            if frequent.size < len(column):
                parts.append(~is_level.any(axis=1, keepdims=True))
        return 2.0 * np.concatenate(parts, axis=1)

    def advice(self, X: NDArray[np.float64], names: list[str] | None) -> list[str]:
        """Columns that are probably identifiers."""
        found, n = [], X.shape[0]
        for k, column in enumerate(self.levels):
            if len(column) > _SHARE_OF_IDENTIFIERS * n and n >= _FEWEST_IDENTIFIERS:
                label = f"column {k}" if names is None else f"the column {names[k]!r}"
                found.append(
                    f"{label} has {len(column):,} levels in {n:,} rows. Identifiers say nothing "
                    "about clusters: leave it out"
                )
        return found

    def draw_one_cluster(self, X: Any, rng: np.random.Generator) -> Any:
        return np.column_stack([rng.choice(column, column.size) for column in X.T])
