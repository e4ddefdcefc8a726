"""From kinds of columns to families: one for all columns, or one for each kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastrbhc.families import LogNormal, Multinomial, NegativeBinomial
from fastrbhc.suggesting import kinds as kind
from fastrbhc.suggesting.columns import Statistics, Table
from fastrbhc.suggesting.dispersion import Dispersion, dispersion_of
from fastrbhc.suggesting.kinds import Kind
from fastrbhc.suggesting.products import families_of, product_of, rounded, widths_of

# Counts that vary so many times as much as Poisson counts within clusters are called overdispersed.
OVERDISPERSED = 2.0
# Counts in so many columns, so many of them zero, are words or genes: their proportions matter.
_MANY_COLUMNS, _MANY_ZEROS = 50, 0.75
# Values of a sparse matrix that may become dense for statistics.
_MOST_DENSE = 1_000_000

Floats = NDArray[np.float64]


class Choice(NamedTuple):
    """A family for all columns, why, and one for each column; None for those to leave out."""

    family: Any
    reason: str
    of_columns: list[Any]
    kinds: list[Kind]


class ForCounts(NamedTuple):
    """A family for columns of counts, and why."""

    family: Any
    reason: str
    dispersion: Dispersion | None = None


def for_counts(values: Any, known: Statistics, weights: Floats | None = None) -> ForCounts:
    """One family for columns that are all counts; ``values`` without missing cells."""
    n_columns, totals = values.shape[1], kind.row_totals(values)
    if n_columns > 1 and kind.are_equal(totals):
        reason = f"the total of every row is {totals[0]:g}: counts out of a total"
        return ForCounts("multinomial", reason)
    zeros = float(known.zeros.mean())
    if n_columns >= _MANY_COLUMNS and zeros >= _MANY_ZEROS and totals.min() > 0.0:
        return ForCounts(
            "multinomial",
            f"counts in {n_columns:,} columns, {100 * zeros:.0f} % of them 0, as of words or "
            "genes: proportions are compared. Say 'poisson' if totals of rows matter",
        )
    found = None
    if not sparse.issparse(values) or np.prod(values.shape) <= _MOST_DENSE:
        dense = values.toarray() if sparse.issparse(values) else values
        found = dispersion_of(dense, weights)
    if found is None:
        return ForCounts("poisson", "counts, with different totals of rows")
    within = f"the variance within coarse clusters is {found.factor_together:.2g} times the mean"
    if found.factor_together < OVERDISPERSED:
        return ForCounts("poisson", f"counts: {within}", found)
    alpha = rounded(found.together)
    return ForCounts(NegativeBinomial(dispersion=alpha), f"overdispersed counts: {within}", found)


def for_zeros_and_ones(values: Any) -> ForCounts:
    """The same for zeros and ones."""
    totals = kind.row_totals(values)
    if values.shape[1] > 1 and kind.are_equal(totals) and totals[0] == 1.0:
        return ForCounts("multinomial", "a single 1 in every row: one of several categories")
    return ForCounts("bernoulli", "all values are 0 or 1")


def choose(
    table: Table, known: Statistics, kinds: list[Kind], weights: Floats | None = None
) -> Choice:
    """A family for the table; weights of its rows count in a product."""
    used = [place for place, (what, _) in enumerate(kinds) if what not in kind.LEFT_OUT]
    present = {kinds[place].kind for place in used}
    if not used:
        return Choice("auto", "no column tells rows apart", [None] * len(kinds), kinds)
    whole_rows = _of_rows(table, known, kinds, used, present)
    if whole_rows is not None:
        family, reason = whole_rows
        return Choice(family, reason, _everywhere(family, kinds), kinds)
    if present == {kind.COUNT}:
        found = for_counts(_complete(table.values, used), some(known, used))
        kinds = _with_dispersion(kinds, used, found.dispersion)
        return Choice(found.family, found.reason, _everywhere(found.family, kinds), kinds)
    return _by_kind(table, kinds, used, weights)


def _of_rows(
    table: Table, known: Statistics, kinds: list[Kind], used: list[int], present: set[str]
) -> tuple[Any, str] | None:
    """A family that follows from the rows as wholes: directions, compositions, zeros and ones."""
    if present == {kind.CATEGORY}:
        return "categorical", "all columns hold categories"
    if present == {kind.BINARY}:
        found = for_zeros_and_ones(table.values)
        return found.family, found.reason
    if not present <= kind.MEASURED or known.missing.any():
        return None
    if kind.have_unit_length(table.values):
        return "von_mises_fisher", "every row has length 1: directions"
    totals = kind.row_totals(table.values)
    enough = len(used) > 2 and totals.size >= kind.FEWEST_ROWS
    if enough and known.lowest.min() >= 0.0 and kind.are_equal(totals):
        if known.whole.all():
            return "multinomial", f"the total of every row is {totals[0]:g}: counts out of a total"
        reason = f"the total of every row is {totals[0]:g}: shares of a whole"
        return Multinomial(weight_by_total=False), reason
    return None


def _by_kind(table: Table, kinds: list[Kind], used: list[int], weights: Floats | None) -> Choice:
    """A family for each column; a single one if they agree, and else a product."""
    present = {kinds[place].kind for place in used}
    if present <= kind.MEASURED - {kind.SKEWED}:
        return Choice("auto", "all columns hold measurements", _everywhere("auto", kinds), kinds)
    within = widths_of(table, kinds, used, weights)
    if present == {kind.SKEWED}:
        common = np.median(list(within.deviations.values()))
        single = LogNormal(variance=rounded(float(common**2)))
        reason = f"all columns are of the kind {kind.SKEWED!r}"
        return Choice(single, reason, _everywhere(single, kinds), kinds)
    kinds = _with_dispersion(kinds, within.counted, within.dispersion)
    families = families_of(kinds, used, within)
    reason = "columns are of different kinds: a product of families"
    return Choice(product_of(families, table.names), reason, families, kinds)


def _everywhere(family: Any, kinds: list[Kind]) -> list[Any]:
    return [None if what.kind in kind.LEFT_OUT else family for what in kinds]


def _complete(values: Any, columns: list[int]) -> Any:
    """Some columns, of the rows without gaps in them."""
    some = values[:, columns]
    if sparse.issparse(some):
        return some
    return some[~np.isnan(some).any(axis=1)]


def some(known: Statistics, columns: Any) -> Statistics:
    """The statistics of some columns."""
    parts: Any = [part[columns] for part in known]
    return Statistics(*parts)


def _with_dispersion(kinds: list[Kind], columns: list[int], found: Dispersion | None) -> list[Kind]:
    """The same kinds, with what the dispersion of counts says."""
    if found is None:
        return kinds
    kinds = list(kinds)
    for place, column in enumerate(columns):
        why = f"{kinds[column].why}, {found.factors[place]:.2g} × mean within coarse clusters"
        kinds[column] = kinds[column]._replace(why=why)
    return kinds
