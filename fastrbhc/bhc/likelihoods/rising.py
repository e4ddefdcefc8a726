"""Logarithms of rising factorials, Γ(a + s) / Γ(a), the terms of all marginal likelihoods."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record, replaced

# From here on, five terms of Stirling's series are accurate to the last digit.
_LARGE = 20.0


@kernel
def log_rising(a, s):
    """log Γ(a + s) − log Γ(a) for a > 0 and s ≥ 0.

    For a large a the two logarithms agree in many digits, so Stirling's series is subtracted term
    by term: (a − ½) log(1 + s/a) + s (log(a + s) − 1) and the rest of the series.
    """
    if s == 0.0:
        return 0.0
    if a < _LARGE:
        return math.lgamma(a + s) - math.lgamma(a)
    leading = (a - 0.5) * math.log1p(s / a) + s * (math.log(a + s) - 1.0)
    return leading + (_stirling(a + s) - _stirling(a))


@kernel
def _stirling(x):
    """log Γ(x) − (x − ½) log x + x − ½ log 2π for x ≥ 20."""
    y = 1.0 / (x * x)
    series = 1.0 / 12.0 - y * (
        1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y * (1.0 / 1188.0)))
    )
    return series / x


@kernel
def _fill(a, steps, out):
    for i in range(steps.size):
        out[i] = log_rising(a, steps[i])


@record
class RisingTables:
    """log (a_k)_s of every column, tabulated for small whole s."""

    concentrations: NDArray[np.float64]  # (columns,), a
    values: NDArray[np.float64]  # (…, L), for each different a and s = 0…L−1
    table_of_column: NDArray[np.int64]  # (columns,)


@kernel
def log_rising_in(tables, k, s):
    """log (a_k)_s, from the table if it is there."""
    if s < tables.values.shape[1]:
        return tables.values[tables.table_of_column[k], np.int64(s)]
    return log_rising(tables.concentrations[k], s)


@kernel
def of_sizes(likelihood, size, total):
    """The terms of ℓ that depend on the number of rows and the sum of all totals."""
    value = likelihood.by_size[size] - likelihood.slopes[size] * total
    if likelihood.pooled:
        value -= log_rising(likelihood.total_concentration, total)
    return value


def log_rising_table(a: float, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """`log_rising` for one a and many s."""
    out = np.empty(steps.size)
    _fill(float(a), np.ascontiguousarray(steps, np.float64), out)
    return out


def rising_tables(concentrations: NDArray[np.float64], length: int) -> RisingTables:
    """The tables of all columns, for s below the length."""
    different, table_of_column = np.unique(concentrations, return_inverse=True)
    steps = np.arange(float(length))
    values = np.empty((different.size, length))
    for table, a in zip(values, different, strict=True):
        table[:] = log_rising_table(a, steps)
    return RisingTables(
        # A copy: a read-only array would be another type, and compile the kernels again.
        concentrations=np.array(concentrations, np.float64),
        values=values,
        table_of_column=table_of_column.astype(np.int64),
    )


def without_tables(tables: RisingTables) -> RisingTables:
    """The same with all values computed, for totals that are not whole."""
    computed: RisingTables = replaced(tables, values=np.empty((tables.values.shape[0], 0)))
    return computed


def sums_by_size(
    concentrations: NDArray[np.float64], sizes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Σ_k log (a_k)_n for many n."""
    result = np.zeros(sizes.size)
    for a, times in zip(*np.unique(concentrations, return_counts=True), strict=True):
        result += times * log_rising_table(a, sizes)
    return result
