"""Which family suits a table: one line for each column, and the value of ``family=`` to paste."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastrbhc._advice import is_matrix_of_distances
from fastrbhc._containers import column_names
from fastrbhc._optional import require
from fastrbhc._row_validation import names_of_columns
from fastrbhc.suggesting.choice import choose
from fastrbhc.suggesting.columns import as_table, statistics_of
from fastrbhc.suggesting.kinds import CONSTANT, LEFT_OUT, kinds_of

# Lines of a table that is printed.
_MOST_LINES = 30
_HEAD = ("column", "kind", "family", "why")


@dataclass(frozen=True)
class ColumnSuggestion:
    """What a column holds, and a family for it.

    Attributes
    ----------
    name : str or int
        Name of the column, or its position.
    kind : str
        "count", "binary", "category", "measurement", "positive, skewed", "share", "constant",
        "identifier" or "date or time".
    why : str
        What it was told by.
    family : str, record or None
        A family for this column, None if it is to be left out.
    """

    name: str | int
    kind: str
    why: str
    family: Any

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The line of a table."""
        family = "leave out" if self.family is None else _written(self.family)
        return str(self.name), self.kind, family, self.why


@dataclass(frozen=True)
class Suggestion:
    """A family for a table; from `suggest_family`.

    Attributes
    ----------
    columns : tuple of ColumnSuggestion
        One entry per column; none for a matrix of distances.
    family : str, record, dict or None
        The value for ``family=``. A dict goes from families to lists of columns, by name or by
        position in the table as it was given: columns are then of different kinds. None if the
        table has no rows to cluster.
    reason : str
        Why, in a sentence.
    """

    columns: tuple[ColumnSuggestion, ...]
    family: Any
    reason: str

    def __str__(self) -> str:
        if not self.columns:
            return f"{self.reason}.\n{self._pasted()}"
        lines = [column.cells for column in self.columns[:_MOST_LINES]]
        widths = [max(map(len, cells)) for cells in zip(_HEAD, *lines, strict=True)][:-1]
        text = [
            "  ".join([*(c.ljust(w) for c, w in zip(cells, widths, strict=False)), cells[-1]])
            for cells in (_HEAD, *lines)
        ]
        rest = self.columns[_MOST_LINES:]
        if rest:
            text.append(f"and {len(rest):,} more: {_counted(rest)}")
        return "\n".join([*text, "", f"{self.reason}.", self._pasted()])

    def _pasted(self) -> str:
        return "no family" if self.family is None else f"family={self.family!r}"

    def _repr_html_(self) -> str:
        from fastrbhc.plotting import html

        rows = [column.cells for column in self.columns[:_MOST_LINES]]
        rest = self.columns[_MOST_LINES:]
        if rest:
            rows.append((f"and {len(rest):,} more", "", "", _counted(rest)))
        table = html.grid("Suggested family", _HEAD, rows)
        return table + html.table("", [("reason", self.reason), ("paste", self._pasted())])

    def to_pandas(self) -> Any:
        """The table as a DataFrame, one row per column.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``column``, with kind, family and why.

        Examples
        --------
        >>> import fastrbhc
        >>> fastrbhc.suggest_family([[0.5, 1.0], [1.5, 1.0]]).to_pandas()["kind"].tolist()
        ['measurement', 'constant']
        """
        pd = require("pandas", "to_pandas")
        index = pd.Index([column.name for column in self.columns], name="column")
        entries = [(column.kind, column.family, column.why) for column in self.columns]
        return pd.DataFrame(entries, index, ["kind", "family", "why"])


def suggest_family(X: Any, *, feature_names: Sequence[str] | None = None) -> Suggestion:
    """Look at a table, and say which family suits it and why.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows: an array, lists, a data frame of pandas, polars or pyarrow with text, categories,
        truth values, dates and missing cells, or a sparse matrix, which stays sparse.
    feature_names : sequence of str, optional
        Names of the columns, for X without any.

    Returns
    -------
    Suggestion
        Printed, it is a table with the kind of each column, and ends with a line
        ``family=…`` to paste after ``from fastrbhc.families import *``.

    Notes
    -----
    Counts are whole numbers with zeros and a tail; other whole numbers are taken for measurements,
    and the table says so. Clusters make counts vary more over all rows than within each of them, so
    variances are compared with means within coarse clusters: mixtures of up to 16 components are
    fitted with and without overdispersion, and the Bayesian information criterion decides what
    explains the rows. The dispersion α of a negative binomial then follows by moments. A single
    column, or more clusters than that, cannot tell clusters from dispersion; look at
    `Dendrogram.goodness` after the fit.

    In a product of families, measurements are divided by their widths within coarse clusters, which
    a mixture of all columns together suggests: normal numbers with one covariance for all clusters,
    and shares of categories. Dispersions of counts follow from the same clusters.

    Examples
    --------
    >>> import numpy as np
    >>> import fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> visits = np.concatenate([rng.poisson(1, (50, 2)), rng.poisson(9, (50, 2))])
    >>> fastrbhc.suggest_family(visits).family
    'poisson'
    >>> print(fastrbhc.suggest_family([["red", 0.5], ["blue", 2.5], ["red", 1.5]]))
    column  kind         family                           why
    0       category     categorical                      text, 2 different
    1       measurement  SphericalGaussian(scale=(1.0,))  between 0.5 and 2.5
    <BLANKLINE>
    columns are of different kinds: a product of families.
    family={'categorical': [0], SphericalGaussian(scale=(1.0,)): [1]}
    """
    return suggestion_for(X, feature_names)


def suggestion_for(
    X: Any, feature_names: Sequence[str] | None = None, weights: Any = None
) -> Suggestion:
    """The same for rows with weights, which count in a product of families."""
    table = as_table(X, column_names(X))
    if feature_names is not None:
        names = names_of_columns(None, feature_names, table.values.shape[1])
        table = table._replace(names=names)
    known = statistics_of(table.values)
    if _are_distances(table.values):
        reason = (
            "X looks like a matrix of distances (square, symmetric, with zeros on the diagonal), "
            "which are not rows: give the rows that the distances were computed from"
        )
        return Suggestion((), None, reason)
    choice = choose(table, known, kinds_of(table, known), weights)
    labels: Sequence[str | int] = table.names or range(len(choice.kinds))
    parts = zip(labels, choice.kinds, choice.of_columns, strict=True)
    columns = [ColumnSuggestion(name, *kind, family) for name, kind, family in parts]
    return Suggestion(tuple(columns), choice.family, choice.reason + _remarks(columns, known))


def _remarks(columns: list[ColumnSuggestion], known: Any) -> str:
    """What to do first: columns to leave out, and gaps to fill."""
    text = ""
    without = [repr(c.name) for c in columns if c.kind in LEFT_OUT and c.kind != CONSTANT]
    if without:
        some = ", ".join(without[:5]) + (", …" if len(without) > 5 else "")
        text += f". Leave out the column{'s' * (len(without) > 1)} {some}"
    missing = int(known.missing.sum())
    if missing:
        text += f". {missing:,} cell{'s are' if missing > 1 else ' is'} missing"
    return text


def _are_distances(values: Any) -> bool:
    if issparse(values) or np.isnan(values).any():
        return False
    return is_matrix_of_distances(values)


def _counted(columns: Sequence[ColumnSuggestion]) -> str:
    counts = Counter(column.kind for column in columns)
    return ", ".join(f"{number:,} {kind}" for kind, number in counts.most_common())


def _written(family: Any) -> str:
    return family if isinstance(family, str) else repr(family)
