"""Sparse rows without clusters that otherwise resemble given rows.

The populations for dense rows keep variances and correlations of all columns, and neither is to be
had for rows with thousands of columns that are mostly zero. There are others.

shuffled
    Every column keeps its values, the zeros among them, but they fall on other rows, at random and
    independently of other columns. A row with twice as many entries gets a value twice as often. So
    words stay as rare as they are, and words that come in bursts still do; long texts stay long.
    What is lost is which words go together, and that is what makes a cluster.
the family's own
    Independent draws from one distribution of the family, if the values are counts: multinomial
    rows with the totals of the rows, Poisson counts, or zeros and ones, with the means of the rows.
scaled
    For counts without a total of their own, such as Poisson counts: rows that differ in their
    totals, which divides a tree, but have the same proportions.

For families that know a total, lengths and totals are those of the rows. For others these are part
of what may make a cluster. So they are drawn from the nearest distribution with one mode, as the
columns of dense rows are.

None of these has words that go together without clusters, such as a gradient from one topic to
another. Against a gradient stands only that its halves do not come back in subsamples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastrbhc.assessment.populations import one_mode
from fastrbhc.families import Family
from fastrbhc.families._draws import distinct_rows, sparse_multinomial

# The least chance of a row, beside the longest one: any row may have any column.
_LEAST = 1e-6

SparseDraw = Callable[[np.random.Generator], Any]


def sparse_populations(
    X: Any, weights: NDArray[np.float64] | None, family: Family
) -> list[SparseDraw]:
    """Functions that draw as many sparse rows as X has, each from another population.

    Weights are those of the rows of X; the draws have none.
    """
    n = X.shape[0]
    shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    lengths = np.diff(X.indptr).astype(np.float64)
    totals = np.asarray(X.sum(axis=1))
    has_total = family.domain.needs_positive_total
    proportions = shares @ X / max(float(shares @ totals), _LEAST)
    of_lengths, of_totals = one_mode(lengths, shares), one_mode(totals, shares)

    def chosen(rng: np.random.Generator) -> NDArray[np.int64]:
        return np.arange(n) if weights is None else rng.choice(n, n, p=shares)

    def shuffled(rng: np.random.Generator) -> Any:
        which = chosen(rng)
        chances = lengths[which] if has_total else _drawn(of_lengths, n, rng)
        drawn = shuffle(X[which], np.maximum(chances, _LEAST * lengths.max()), rng)
        return _without_empty_rows(drawn, X, family, rng)

    def of_the_family(rng: np.random.Generator) -> Any:
        drawn = family.draw_one_cluster(X[chosen(rng)], rng)
        return _without_empty_rows(drawn, X, family, rng)

    def scaled(rng: np.random.Generator) -> Any:
        sums = np.round(np.maximum(_drawn(of_totals, n, rng), 0.0)).astype(np.int64)
        return sparse_multinomial(sums, proportions, rng)

    if family.draw_one_cluster(X, np.random.default_rng(0)) is None or not X.nnz:
        return [shuffled]
    if has_total or np.isfinite(family.domain.upper):
        return [shuffled, of_the_family]
    return [shuffled, of_the_family, scaled]


def _drawn(
    distribution: tuple[NDArray[np.float64], NDArray[np.float64]],
    n: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Values of a distribution that `one_mode` has found."""
    edges, below = distribution
    return np.interp(rng.uniform(size=n), below, edges)


def shuffle(X: Any, chances: NDArray[np.float64], rng: np.random.Generator) -> Any:
    """The values of each column on other rows, each of which has a chance above 0."""
    by_column = sparse.csc_array(X)
    counts = np.diff(by_column.indptr).astype(np.int64)
    rows, columns = distinct_rows(counts, chances, rng)
    # Rows with large chances tend to be drawn first: values have to come in any order.
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
