"""The likelihood of counts: sums of log rising factorials of column totals.

For all three models of counts, with s_k the total of column k in a cluster of n rows and S the sum
of all s_k,

    ℓ = Σ_k log (a_k)_{s_k}  +  by_size(n) − slope(n)·S − log (A)_S,

(a)_s = Γ(a + s)/Γ(a). The last term is there for the multinomial only. Totals of whole numbers are
whole, so that the rising factorials come from a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from fastrbhc._engine.clusters.record import merge_weights
from fastrbhc._engine.geometry.contract import ScratchShapes, Storage
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record, replaced
from fastrbhc.bhc._interface import OWN_CACHED, OWN_FEATURES
from fastrbhc.bhc.likelihoods.entries import column_sums, entries
from fastrbhc.bhc.likelihoods.rising import log_rising, of_sizes, rising_tables
from fastrbhc.bhc.likelihoods.sparse_counts import SparseCounts, sparse_counts

# The most entries of the tables. Larger totals are computed instead, at twenty times the cost.
_LARGEST_TABLES, _SHORT_TABLES = 1 << 21, 1 << 14

# Covers the rounding of a bound and of the value it bounds, as a share of their terms.
_ROUNDING = 1e-12

# Cached: the sum S of all totals. Scan features: the same, and the sum of log (a_k)_{s_k}.
_SUM = OWN_CACHED
_FEATURE_SUM, _FEATURE_LOGS = OWN_FEATURES, OWN_FEATURES + 1


@record
class Counts:
    """The likelihood; ``means`` of clusters are totals."""

    concentrations: NDArray[np.float64]  # (columns,), a
    tables: NDArray[np.float64]  # (…, L), log (a)_s for each different a and s = 0…L−1
    table_of_column: NDArray[np.int64]  # (columns,)
    by_size: NDArray[np.float64]  # (n + 2,)
    slopes: NDArray[np.float64]  # (n + 2,)
    pooled: bool  # whether there is a last term
    total_concentration: float  # A
    complement: bool  # whether there is a second column, for the complement to 1
    tabulated: bool  # whether the tables cover all totals

    def observe(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([X, 1.0 - X], axis=1) if self.complement else X

    def for_new_rows(self, new: NDArray[np.float64]) -> Counts:
        if (np.floor(new) == new).all():
            return self
        return replaced(self, tables=np.empty((self.tables.shape[0], 0)), tabulated=False)

    def storage(self, n_columns: int) -> Storage:
        # Integer totals within the tables are exact in single precision, which halves the memory.
        return Storage(cached=1, scan_features=2, mirrored=self.tabulated)

    def scratch_shapes(self, n_columns: int) -> ScratchShapes:
        return ScratchShapes()

    def join(likelihood, clusters, i, j):
        for k in range(clusters.means.shape[0]):
            clusters.means[k, i] += clusters.means[k, j]
        mirrored = clusters.mirror.values
        for k in range(mirrored.shape[0]):
            mirrored[k, i] += mirrored[k, j]
        merge_weights(clusters, i, j)

    def summarise(likelihood, clusters, i, scratch):
        total, logs = 0.0, 0.0
        for k in range(clusters.means.shape[0]):
            total += clusters.means[k, i]
            logs += _log_rising_of(likelihood, k, clusters.means[k, i])
        clusters.cached[i, _SUM] = clusters.scan_features[_FEATURE_SUM, i] = total
        clusters.scan_features[_FEATURE_LOGS, i] = logs
        return logs + of_sizes(likelihood, np.int64(clusters.weights[i]), total)

    def log_marginal(likelihood, clusters, i, j, floor, scratch):
        logs = 0.0
        for k in range(clusters.means.shape[0]):
            logs += _log_rising_of(likelihood, k, clusters.means[k, i] + clusters.means[k, j])
        size = np.int64(clusters.weights[i] + clusters.weights[j])
        total = clusters.cached[i, _SUM] + clusters.cached[j, _SUM]
        return logs + of_sizes(likelihood, size, total)

    def upper_bounds(likelihood, clusters, i, start, stop, scratch):
        bounds = scratch.bounds
        if likelihood.tabulated:
            _look_up_sums(likelihood, clusters, i, start, stop, bounds)
        else:
            _compute_sums(likelihood, clusters, i, start, stop, bounds)
        totals = clusters.scan_features[_FEATURE_SUM]
        weight, own = clusters.weights[i], totals[i]
        for s in range(stop - start):
            other = clusters.weights[start + s]
            if np.isnan(other) or start + s == i:
                bounds[s] = np.nan
            else:
                logs = bounds[s]
                size = np.int64(weight + other)
                rest = of_sizes(likelihood, size, own + totals[start + s])
                bounds[s] = logs + rest + _ROUNDING * (abs(logs) + abs(rest))


@kernel
def _look_up_sums(likelihood, clusters, i, start, stop, sums):
    """Σ log (a_k)_{s_k} of slot i and each of a run of slots, from the tables."""
    tables, totals, size = likelihood.tables, clusters.mirror.values, stop - start
    n_features, present = totals.shape[0], 0
    for k in range(n_features):
        present += np.int64(totals[k, i] != 0.0)
    if 2 * present > n_features:
        for s in range(size):
            sums[s] = 0.0
        for k in range(n_features):
            own, row = totals[k, i], likelihood.table_of_column[k]
            for s in range(size):
                sums[s] += tables[row, np.int32(own + totals[k, start + s])]
        return
    # Where slot i has no counts, the sum is that of the other slot alone.
    for s in range(size):
        sums[s] = clusters.scan_features[_FEATURE_LOGS, start + s]
    for k in range(n_features):
        own, row = totals[k, i], likelihood.table_of_column[k]
        if own != 0.0:
            for s in range(size):
                other = totals[k, start + s]
                sums[s] += tables[row, np.int32(own + other)] - tables[row, np.int32(other)]


@kernel
def _compute_sums(likelihood, clusters, i, start, stop, sums):
    """The same, term by term beyond the tables."""
    for s in range(stop - start):
        sums[s] = 0.0
    for k in range(clusters.means.shape[0]):
        own = clusters.means[k, i]
        for s in range(stop - start):
            total = own + clusters.means[k, start + s]
            # Totals of free slots are NaN, which is not an index.
            sums[s] += _log_rising_of(likelihood, k, total if total >= 0.0 else 0.0)


@kernel
def _log_rising_of(likelihood, k, total):
    """log (a_k)_s."""
    if total < likelihood.tables.shape[1]:
        return likelihood.tables[likelihood.table_of_column[k], np.int64(total)]
    return log_rising(likelihood.concentrations[k], total)


def counts(
    X: Any,
    concentrations: NDArray[np.float64],
    *,
    by_size: NDArray[np.float64] | None = None,
    slopes: NDArray[np.float64] | None = None,
    pooled: bool = False,
    complement: bool = False,
) -> Counts | SparseCounts:
    """The likelihood for these rows, with one a_k per column of `observe`.

    With complements, these are the columns of X and then those of 1 − X, for sparse rows as well.
    """
    n, n_columns = X.shape
    n_different = np.unique(concentrations).size
    length, tabulated = 0, False
    values = entries(X)
    if (np.floor(values) == values).all():
        totals = (float(n) if complement else float(column_sums(X).max())) + 1.0
        # Totals are also looked up for a slot with itself, and for free slots.
        tabulated = 2.0 * totals * n_different <= _LARGEST_TABLES
        length = int(2.0 * totals if tabulated else min(totals, _SHORT_TABLES / n_different))
    by_size = np.zeros(n + 2) if by_size is None else by_size
    slopes = np.zeros(n + 2) if slopes is None else slopes
    if issparse(X):
        ones, zeros = concentrations[:n_columns], concentrations[n_columns:]
        tables = rising_tables(ones, length), rising_tables(zeros, length)
        return sparse_counts(*tables, by_size, slopes, pooled, tabulated)
    of_columns = rising_tables(concentrations, length)
    return Counts(
        concentrations=of_columns.concentrations,
        tables=of_columns.values,
        table_of_column=of_columns.table_of_column,
        by_size=by_size,
        slopes=slopes,
        pooled=pooled,
        total_concentration=float(concentrations.sum()),
        complement=complement,
        tabulated=tabulated,
    )
