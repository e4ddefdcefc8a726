"""Families for columns of different kinds, in one unit: widths are those within coarse clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastrbhc.families import LogNormal, NegativeBinomial, SphericalGaussian
from fastrbhc.families.product import IGNORE
from fastrbhc.suggesting import kinds as kind
from fastrbhc.suggesting.columns import Table
from fastrbhc.suggesting.dispersion import Dispersion
from fastrbhc.suggesting.kinds import Kind
from fastrbhc.suggesting.widths import within_clusters

# Beside columns of other kinds, counts that vary so many times as much as Poisson counts count so
# many times too much. The factor of some hundred Poisson rows is below this.
OVERDISPERSED = 1.2
# Numbers that take so few values have steps.
_FEW_VALUES = 11
# Values of a sparse matrix that may become dense.
_MOST_DENSE = 1_000_000
# Parameters of families with a block for each; every combination of blocks is compiled.
_COARSE = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)

Floats = NDArray[np.float64]


class Widths(NamedTuple):
    """Deviations of numeric columns within clusters, of logarithms where a column is skewed."""

    deviations: dict[int, float]
    counted: list[int]
    dispersion: Dispersion | None


def widths_of(table: Table, kinds: list[Kind], used: list[int], weights: Floats | None) -> Widths:
    """How much numbers and counts vary within clusters that all columns together suggest."""
    numeric = [place for place in used if kinds[place].kind in kind.MEASURED]
    counted = [place for place in used if kinds[place].kind == kind.COUNT]
    others = [place for place in used if place not in {*numeric, *counted}]
    if not (numeric or counted):
        return Widths({}, [], None)
    values, rows = _without_gaps(table.values, used)
    numbers = values[:, numeric]
    for place, column in enumerate(numeric):
        if kinds[column].kind == kind.SKEWED:
            numbers[:, place] = np.log(numbers[:, place])
    steps = np.array([_step(column) for column in numbers.T])
    found = within_clusters(
        numbers,
        values[:, counted],
        values[:, others],
        steps,
        None if weights is None else weights[rows],
    )
    deviations = dict(zip(numeric, found.deviations.tolist(), strict=True))
    return Widths(deviations, counted, found.dispersion)


def families_of(kinds: list[Kind], used: list[int], within: Widths) -> list[Any]:
    """A family for each column of a product; None for those to leave out."""
    families: list[Any] = [None] * len(kinds)
    usual = {kind.BINARY: "bernoulli", kind.CATEGORY: "categorical", kind.COUNT: "poisson"}
    for column in used:
        what = kinds[column].kind
        if what == kind.SKEWED:
            families[column] = LogNormal(variance=_coarsely(within.deviations[column] ** 2))
        elif column in within.deviations:
            families[column] = SphericalGaussian(scale=(_two_digits(within.deviations[column]),))
        else:
            families[column] = usual[what]
    if within.dispersion is not None:
        parts = zip(within.counted, *within.dispersion[:2], strict=True)
        for column, alpha, factor in parts:
            if factor >= OVERDISPERSED:
                families[column] = NegativeBinomial(dispersion=_coarsely(float(alpha)))
    return families


def product_of(families: list[Any], names: list[str] | None) -> Any:
    """From families to columns; a single family if all columns have it, and none is left out."""
    labels: Any = names or range(len(families))
    blocks: dict[Any, list[Any]] = {}
    scales: list[float] = []
    first = next((one for one in families if _is_scaled(one)), None)
    for label, one in zip(labels, families, strict=True):
        if one is not None:
            if _is_scaled(one):  # one block, with a scale for each of its columns
                scales += one.scale
                one = first
            blocks.setdefault(one, []).append(label)
    product = {SphericalGaussian(scale=tuple(scales)) if one is first else one: columns
               for one, columns in blocks.items()}  # fmt: skip
    if len(product) == 1:
        return next(iter(product))
    left_out = [label for label, one in zip(labels, families, strict=True) if one is None]
    return product | {IGNORE: left_out} if left_out else product


def rounded(number: float) -> float:
    """A parameter in two digits, and not too small."""
    return _two_digits(max(number, 1e-3))


def _two_digits(number: float) -> float:
    return float(f"{number:.2g}")


def _coarsely(number: float) -> float:
    """The nearest of six numbers per decade, so that columns that vary alike share a block."""
    power = np.floor(np.log10(max(number, 1e-3)))
    near = np.array([*_COARSE, 10.0]) * 10.0**power
    return _two_digits(near[np.argmin(np.abs(np.log(near / max(number, 1e-3))))])


def _is_scaled(family: Any) -> bool:
    return getattr(family, "scale", None) is not None


def _without_gaps(values: Any, used: list[int]) -> tuple[Floats, NDArray[np.int64]]:
    """Rows without gaps in the columns in use, and which they are.

    If they are few, gaps of all rows are filled with values of their columns at random: widths are
    those over all rows then, as far as cells are missing.
    """
    every = np.arange(values.shape[0])
    if sparse.issparse(values):
        step = -(-int(np.prod(values.shape)) // _MOST_DENSE)
        every, values = every[::step], values.tocsr()[::step].toarray()
    else:
        values = values.copy()
    gone = np.isnan(values)
    whole = ~gone[:, used].any(axis=1)
    if whole.sum() >= min(kind.FEWEST_ROWS, len(values)):
        return values[whole], every[whole]
    rng = np.random.default_rng(0)
    for column in used:
        there = np.sort(values[~gone[:, column], column])
        values[gone[:, column], column] = rng.choice(there, int(gone[:, column].sum()))
    return values, every


def _step(values: Floats) -> float:
    """The smallest difference of values that are few, 0 otherwise."""
    few = np.unique(values)
    return float(np.diff(few).min()) if 1 < few.size <= _FEW_VALUES else 0.0
