"""Sparse rows without clusters that otherwise resemble given rows.

The populations for dense rows keep variances and correlations of all columns, and neither is to be
had for rows with thousands of columns that are mostly zero. There are two others.

shuffled
    Every column keeps its values, the zeros among them, but they fall on other rows, at random and
    independently of other columns. A row with twice as many entries gets a value twice as often. So
    words stay as rare as they are, and words that come in bursts still do; long texts stay long.
    What is lost is which words go together, and that is what makes a cluster.
the family's own
    Independent draws from one distribution of the family, if the values are counts: multinomial
    rows with the totals of the rows, Poisson counts, or zeros and ones, with the means of the rows.

Neither has words that go together without clusters, such as a gradient from one topic to another.
Against these stands only that halves of a gradient do not come back in subsamples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastrbhc.families import Family
from fastrbhc.families._draws import distinct_rows

SparseDraw = Callable[[np.random.Generator], Any]


def sparse_populations(
    X: Any, weights: NDArray[np.float64] | None, family: Family
) -> list[SparseDraw]:
    """Functions that draw as many sparse rows as X has, each from another population.

    Weights are those of the rows of X; the draws have none.
    """
    n = X.shape[0]

    def chosen(rng: np.random.Generator) -> Any:
        return X if weights is None else X[rng.choice(n, n, p=weights / weights.sum())]

    def shuffled(rng: np.random.Generator) -> Any:
        return _without_empty_rows(shuffle(chosen(rng), rng), X, family, rng)

    def of_the_family(rng: np.random.Generator) -> Any:
        drawn = family.draw_one_cluster(chosen(rng), rng)
        return _without_empty_rows(drawn, X, family, rng)

    if family.draw_one_cluster(X, np.random.default_rng(0)) is None:
        return [shuffled]
    return [shuffled, of_the_family]


def shuffle(X: Any, rng: np.random.Generator) -> Any:
    """The values of each column on other rows, more of them on rows that have more entries."""
    by_column = sparse.csc_array(X)
    counts = np.diff(by_column.indptr).astype(np.int64)
    entries = np.diff(X.indptr).astype(np.float64)
    rows, columns = distinct_rows(counts, entries, rng)
    # The rows that are drawn first have more entries: values have to come in any order.
    order = np.lexsort((rng.random(rows.size), columns))
    return sparse.csr_array((by_column.data[order], (rows, columns)), shape=X.shape)


def _without_empty_rows(drawn: Any, X: Any, family: Family, rng: np.random.Generator) -> Any:
    """Rows of X in the place of empty ones, if the family cannot take these."""
    if not family.domain.needs_positive_total:
        return drawn
    n = drawn.shape[0]
    empty = np.flatnonzero(np.diff(drawn.indptr) == 0)
    which = np.arange(n)
    which[empty] = n + rng.integers(n, size=empty.size)
    return sparse.vstack([drawn, X], "csr")[which] if empty.size else drawn
