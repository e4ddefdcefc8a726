"""The likelihood of counts for clusters of sparse rows.

ℓ is that of `counts`. A column without counts in a cluster adds log (a_k)_0 = 0. With complements,
which are zeros counted as well, it adds log (b_k)_n, so that the sum of these over all columns is
taken from a table by n, and an entry s adds

    t_k(s, n) = log (a_k)_s + log (b_k)_{n−s} − log (b_k)_n

to it. Without complements t does not depend on n, and the sum of a union is that of its parts but
for the columns that both have:

    Σ t_k(s_i + s_j) = Σ t_k(s_i) + Σ t_k(s_j) + Σ_{both} (t_k(s_i + s_j) − t_k(s_i) − t_k(s_j)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import merge_weights
from fastrbhc._engine.clusters.segments import next_entries, unite_segments
from fastrbhc._engine.clusters.sparse_rows import SparseObservations, sparse_rows
from fastrbhc._engine.geometry.contract import ScratchShapes, Storage
from fastrbhc._engine.jit import kernel, loose_kernel
from fastrbhc._engine.records import record, replaced
from fastrbhc.bhc._interface import OWN_CACHED, OWN_FEATURES
from fastrbhc.bhc.likelihoods.rising import (
    RisingTables,
    log_rising_in,
    of_sizes,
    sums_by_size,
    without_tables,
)

# Covers the rounding of a bound and of the value it bounds, as a share of their terms.
_ROUNDING = 1e-12

# Cached: the sum S of all totals. Scan features: the same, the sum of t, and that of |t|.
_SUM = OWN_CACHED
_FEATURE_SUM, _FEATURE_LOGS, _FEATURE_SIZE = OWN_FEATURES, OWN_FEATURES + 1, OWN_FEATURES + 2

# Rows of scratch.spread: the totals s of a query, and log (a_k)_s. Both are zero between queries.
_TOTALS, _TERMS = 0, 1


@record
class SparseCounts:
    """The likelihood; segments of clusters hold totals."""

    ones: RisingTables  # a
    zeros: RisingTables  # b; of no columns without complements
    by_size: NDArray[np.float64]  # (n + 2,), with complements also Σ_k log (b_k)_n
    slopes: NDArray[np.float64]  # (n + 2,)
    term_sizes: NDArray[np.float64]  # (n + 2,), about what terms of the columns add up to
    pooled: bool
    total_concentration: float
    complement: bool
    alike: bool  # whether one table is for all columns and covers all totals
    n_columns: int

    def observe(self, X: Any) -> SparseObservations:
        return sparse_rows(X)

    def for_new_rows(self, new: Any) -> SparseCounts:
        if (np.floor(new.data) == new.data).all():
            return self
        ones, zeros = without_tables(self.ones), without_tables(self.zeros)
        return replaced(self, ones=ones, zeros=zeros, alike=False)

    def storage(self, n_columns: int) -> Storage:
        return Storage(cached=1, scan_features=3)

    def scratch_shapes(self, n_columns: int) -> ScratchShapes:
        return ScratchShapes(spread=(2, self.n_columns))

    def join(likelihood, clusters, i, j):
        unite_segments(clusters.segments, i, j)
        merge_weights(clusters, i, j)

    def summarise(likelihood, clusters, i, scratch):
        segments, size = clusters.segments, clusters.weights[i]
        total, logs, terms = 0.0, 0.0, 0.0
        for p in range(segments.places[i, 0], segments.places[i, 1]):
            term = _term(likelihood, segments.columns[p], segments.sums[p], size)
            total += segments.sums[p]
            logs += term
            terms += abs(term)
        clusters.cached[i, _SUM] = clusters.scan_features[_FEATURE_SUM, i] = total
        clusters.scan_features[_FEATURE_LOGS, i] = logs
        clusters.scan_features[_FEATURE_SIZE, i] = terms
        return logs + of_sizes(likelihood, np.int64(size), total)

    def log_marginal(likelihood, clusters, i, j, floor, scratch):
        segments, size = clusters.segments, clusters.weights[i] + clusters.weights[j]
        columns, sums, places = segments.columns, segments.sums, segments.places
        p, p_end, q, q_end = places[i, 0], places[i, 1], places[j, 0], places[j, 1]
        logs = 0.0
        while p < p_end or q < q_end:
            p, q, left, right = next_entries(columns, p, p_end, q, q_end)
            column = columns[left if left >= 0 else right]
            both = (sums[left] if left >= 0 else 0.0) + (sums[right] if right >= 0 else 0.0)
            logs += _term(likelihood, column, both, size)
        total = clusters.cached[i, _SUM] + clusters.cached[j, _SUM]
        return logs + of_sizes(likelihood, np.int64(size), total)

    def upper_bounds(likelihood, clusters, i, start, stop, scratch):
        bounds, features, weight = scratch.bounds, clusters.scan_features, clusters.weights[i]
        _spread(likelihood, clusters, i, scratch)
        if likelihood.complement:
            _add_all_terms(likelihood, clusters, i, start, stop, scratch)
        else:
            _add_common_terms(likelihood, clusters, i, start, stop, scratch)
        _gather_up(clusters, i, scratch)
        for s in range(stop - start):
            j = start + s
            if np.isnan(clusters.weights[j]) or j == i:
                bounds[s] = np.nan
                continue
            size = np.int64(weight + clusters.weights[j])
            total = features[_FEATURE_SUM, i] + features[_FEATURE_SUM, j]
            rest = of_sizes(likelihood, size, total)
            terms = features[_FEATURE_SIZE, i] + features[_FEATURE_SIZE, j]
            terms += abs(bounds[s]) + abs(rest) + likelihood.term_sizes[size]
            bounds[s] += rest + _ROUNDING * terms


@kernel
def _term(likelihood, k, total, size):
    """t of column k."""
    value = log_rising_in(likelihood.ones, k, total)
    if likelihood.complement:
        rest = log_rising_in(likelihood.zeros, k, size - total)
        value += rest - log_rising_in(likelihood.zeros, k, size)
    return value


@kernel
def _spread(likelihood, clusters, i, scratch):
    """Spread slot i out over the scratch rows."""
    segments, totals, terms = clusters.segments, scratch.spread[_TOTALS], scratch.spread[_TERMS]
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        column, total = segments.columns[p], segments.sums[p]
        totals[column], terms[column] = total, log_rising_in(likelihood.ones, column, total)


@kernel
def _gather_up(clusters, i, scratch):
    """Set the scratch rows to zero again."""
    segments, totals, terms = clusters.segments, scratch.spread[_TOTALS], scratch.spread[_TERMS]
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        totals[segments.columns[p]] = terms[segments.columns[p]] = 0.0


@kernel
def _add_common_terms(likelihood, clusters, i, start, stop, scratch):
    """Fill scratch.bounds with Σ t of the unions of slot i and a run of slots, if n is not in t."""
    segments, logs, ones = clusters.segments, clusters.scan_features[_FEATURE_LOGS], likelihood.ones
    columns, sums = segments.columns, segments.sums
    totals, terms, own_logs = scratch.spread[_TOTALS], scratch.spread[_TERMS], logs[i]
    for s in range(stop - start):
        j = start + s
        if np.isnan(clusters.weights[j]) or j == i:
            continue
        first, last = segments.places[j, 0], segments.places[j, 1]
        if likelihood.alike:
            gain = _look_up_ones(
                columns[first:last], sums[first:last], ones.values[0], totals, terms
            )
            scratch.bounds[s] = own_logs + gain
            continue
        result = own_logs + logs[j]
        for p in range(first, last):
            column = columns[p]
            own = totals[column]
            if own > 0.0:  # logarithms that are not tabulated cost much more than this
                gain = log_rising_in(ones, column, own + sums[p]) - terms[column]
                result += gain - log_rising_in(ones, column, sums[p])
        scratch.bounds[s] = result


@kernel
def _add_all_terms(likelihood, clusters, i, start, stop, scratch):
    """The same if n is in t: all entries of both are summed, those of slot i once for each n."""
    segments, ones, zeros = clusters.segments, likelihood.ones, likelihood.zeros
    totals, terms = scratch.spread[_TOTALS], scratch.spread[_TERMS]
    columns, sums, before, own_terms = segments.columns, segments.sums, 0.0, 0.0
    for s in range(stop - start):
        j = start + s
        if np.isnan(clusters.weights[j]) or j == i:
            continue
        size = clusters.weights[i] + clusters.weights[j]
        if size != before:
            before, own_terms = size, 0.0
            for p in range(segments.places[i, 0], segments.places[i, 1]):
                own_terms += _term(likelihood, columns[p], sums[p], size)
        first, last = segments.places[j, 0], segments.places[j, 1]
        result = own_terms
        if likelihood.alike:
            theirs, counts = columns[first:last], sums[first:last]
            result += _look_up_ones(theirs, counts, ones.values[0], totals, terms)
            result += _look_up_zeros(theirs, counts, zeros.values[0], totals, size)
        else:
            for p in range(first, last):
                column = columns[p]
                own, rest = totals[column], size - totals[column]
                result += log_rising_in(ones, column, own + sums[p]) - terms[column]
                lost = log_rising_in(zeros, column, rest)
                result += log_rising_in(zeros, column, rest - sums[p]) - lost
        scratch.bounds[s] = result


@loose_kernel
def _look_up_ones(columns, sums, table, totals, terms):
    """Σ log (a)_{own+s} − log (a)_own over the entries of a slot, with one table for all columns.

    Without a branch, so that eight entries are looked up at a time: two fifths of the time.
    """
    result = 0.0
    for p in range(columns.size):
        column = columns[p]
        result += table[np.int32(totals[column] + sums[p])] - terms[column]
    return result


@loose_kernel
def _look_up_zeros(columns, sums, table, totals, size):
    """Σ log (b)_{n−own−s} − log (b)_{n−own} over the entries of a slot."""
    result = 0.0
    for p in range(columns.size):
        rest = size - totals[columns[p]]
        result += table[np.int32(rest - sums[p])] - table[np.int32(rest)]
    return result


def sparse_counts(
    ones: RisingTables,
    zeros: RisingTables,
    by_size: NDArray[np.float64],
    slopes: NDArray[np.float64],
    pooled: bool,
    tabulated: bool,
) -> SparseCounts:
    """The likelihood of sparse rows; ``zeros`` has no columns if there are no complements.

    ``tabulated`` says whether the tables cover all totals.
    """
    sizes = np.arange(float(by_size.size))
    complement = zeros.concentrations.size > 0
    term_sizes = np.zeros(sizes.size)
    if complement:
        of_zeros = sums_by_size(zeros.concentrations, sizes)
        # No t is larger than these, nor are the terms it is made of.
        term_sizes += np.abs(of_zeros) + np.abs(sums_by_size(ones.concentrations, sizes))
        term_sizes += np.abs(np.log(ones.concentrations)).sum()
        term_sizes += np.abs(np.log(zeros.concentrations)).sum()
        by_size = by_size + of_zeros
    return SparseCounts(
        ones=ones,
        zeros=zeros,
        by_size=by_size,
        slopes=slopes,
        term_sizes=term_sizes,
        pooled=pooled,
        total_concentration=float(ones.concentrations.sum()),
        complement=complement,
        alike=tabulated and ones.values.shape[0] == 1 and zeros.values.shape[0] <= 1,
        n_columns=ones.concentrations.size,
    )
