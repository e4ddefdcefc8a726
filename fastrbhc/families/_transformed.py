"""Families of transformed rows: another family, of log x or of powers of x.

If g(x) follows a distribution of one family, x follows that of another: the logarithm of a
log-normal value is normal, and the k-th power of a Weibull value is exponential. Likelihood ratios
do not change when all rows are transformed by the same g, so d is that of the *base* family for the
rows g(x), and so is its proof, or counterexample, of reducibility.

A class below ``transformed(base)`` has the fields that the methods of the base read. It defines the
domain of the rows, ``check`` and two methods:

``transformed(X)``
    g(X), with g increasing in every column and g(0) = 0 where rows may be sparse. Of type
    `Observations`, because rows that nearly agree need the further digits.
``untransformed(values)``
    g⁻¹ of values, for means in the units of the rows. So a mean is a generalised one: the geometric
    mean for logarithms, a power mean for powers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._engine.clusters.observations import Observations, column_ranges
from fastrbhc._engine.clusters.sparse_rows import SparseObservations, sparse_rows
from fastrbhc._engine.math.powers import fill_logarithms, fill_powers

AnyClass = TypeVar("AnyClass", bound=type)
# Transformed values have to stay within these, as rows themselves do.
_SMALLEST, _LARGEST = 1e-120, 1e120
# What a family does with values once they are transformed.
_OF_VALUES = (
    "phi",
    "divergence",
    "divergence_bound",
    "pair_bound",
    "second_derivative",
    "smoothing_map",
    "variance_function",
)


def transformed(base: Any) -> Callable[[AnyClass], AnyClass]:
    """Complete a class to the family ``base`` of transformed rows; goes below ``@family``."""

    def observe(self: Any, X: Any) -> Observations | SparseObservations:
        if issparse(X):
            powers = X.copy()
            powers.data = self.transformed(X.data[:, None]).means[:, 0]
            return sparse_rows(powers)
        rows: Observations = self.transformed(X)
        return rows

    def in_units_of_rows(self: Any, means: NDArray[np.float64]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = self.untransformed(means)
        return values

    def coordinates(self: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = self.base.coordinates(self.transformed(X).means)
        return values

    def draw_one_cluster(self: Any, X: Any, rng: np.random.Generator) -> Any:
        if issparse(X):
            return None
        drawn = self.base.draw_one_cluster(self.transformed(X).means, rng)
        return None if drawn is None else self.untransformed(drawn)

    def advice(self: Any, X: NDArray[np.float64], names: list[str] | None) -> Sequence[str]:
        sentences: Sequence[str] = self.base.advice(self.transformed(X).means, names)
        return sentences

    def check_rows(self: Any, X: NDArray[np.float64]) -> None:
        ends = np.array(column_ranges(X))
        values = self.transformed(ends).means  # of all others too, because g is increasing
        sizes = np.abs(values[values != 0.0])
        if not ((sizes >= _SMALLEST) & (sizes <= _LARGEST)).all():
            raise ValueError(
                f"values from {ends.min():.3g} to {ends.max():.3g} become {values.min():.3g} to "
                f"{values.max():.3g} as {self}, whose squares are beyond double precision. "
                "Measure in a unit that is nearer to the values."
            )
        self.base.check_rows(values)

    def record_of_base(self: Any) -> Any:
        return base(**{name: getattr(self, name) for name in base._fields if hasattr(self, name)})

    methods: dict[str, Any] = {name: vars(base)[name] for name in _OF_VALUES}
    methods["base"] = property(record_of_base)
    for method in (observe, in_units_of_rows, coordinates, draw_one_cluster, advice, check_rows):
        methods[method.__name__] = method

    def complete(cls: AnyClass) -> AnyClass:
        for name, method in methods.items():
            if name not in vars(cls):
                setattr(cls, name, method)
        return cls

    return complete


def logarithms(X: NDArray[np.float64], unit: float = 1.0) -> Observations:
    """log(x/unit) of every value."""
    high, low = np.empty(X.shape), np.empty(X.shape)
    fill_logarithms(np.ascontiguousarray(X), unit, high, low)
    return Observations(high, low)


def powers(X: NDArray[np.float64], exponent: float) -> Observations:
    """xᵏ of every value."""
    high, low = np.empty(X.shape), np.empty(X.shape)
    fill_powers(np.ascontiguousarray(X), exponent, high, low)
    return Observations(high, low)
