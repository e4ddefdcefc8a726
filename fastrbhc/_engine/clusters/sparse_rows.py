"""Sparse rows as weighted points: the step from X to statistics, without a dense copy.

As in `observations`, rows are ordered by a hash of their means, and equal rows are adjacent in this
order. Rows are never copied: points refer to the rows of X that they stand for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.double_double import add, divide, multiply
from fastrbhc._engine.math.fast_log import bits_of

# Of two independent hashes.
SEEDS = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03


class SparseObservations(NamedTuple):
    """Some of the rows of a compressed sparse matrix, with weights.

    The mean statistic of a row is its values divided by its size. ``sizes`` is None if all are 1,
    ``weights`` if they are the sizes.
    """

    columns: NDArray[np.int32]  # (entries,), ascending in each row
    values: NDArray[np.float64]  # (entries,), none of them zero
    starts: NDArray[np.int64]  # (rows + 1,), where the entries of each row begin
    n_columns: int
    which: NDArray[np.int64]  # (n,), the rows
    sizes: NDArray[np.float64] | None = None  # (rows,)
    weights: NDArray[np.float64] | None = None  # (n,)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return self.which.size, self.n_columns

    @property
    def n_entries(self) -> int:
        """The number of entries of all rows together."""
        return int((self.starts[self.which + 1] - self.starts[self.which]).sum())

    @property
    def width(self) -> int:
        """About how many numbers a row has."""
        return 1 + self.n_entries // max(self.which.size, 1)

    def bytes_per_row(self, sizes: Any) -> int:
        """Approximate memory per row while a tree is built, without the row itself."""
        return 8 * sizes.scan_features + 32 * self.width + 300

    def all_weights(self) -> NDArray[np.float64]:
        """The weight of each row."""
        if self.weights is not None:
            return self.weights
        return np.ones(self.which.size) if self.sizes is None else self.sizes[self.which]

    def weighted(self, sample_weight: NDArray[np.float64] | None) -> SparseObservations:
        """The same rows with their weights multiplied by the sample weights."""
        if sample_weight is None:
            return self
        return self._replace(weights=self.all_weights() * sample_weight)

    def take(self, which: NDArray[np.intp]) -> SparseObservations:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[which]
        return self._replace(which=self.which[which], weights=weights)

    def sums(self) -> Any:
        """The values as a CSR matrix."""
        # Other libraries take indices of 32 bits only, if these suffice.
        bits = np.int32 if self.values.size < 2**31 else np.int64
        matrix = sparse.csr_array(
            (self.values, self.columns.astype(bits, copy=False), self.starts.astype(bits)),
            shape=(self.starts.size - 1, self.n_columns),
        )
        whole = self.which.size == matrix.shape[0] and (np.diff(self.which) == 1).all()
        return matrix if whole else matrix[self.which]

    def centred_means(self) -> Any:
        """The means as a CSR matrix; not centred, as it would not be sparse then."""
        means = self.sums()
        if self.sizes is not None:
            counts = self.starts[self.which + 1] - self.starts[self.which]
            means.data = means.data / np.repeat(self.sizes[self.which], counts)
        return means

    def group_sums(
        self, labels: NDArray[np.int64], n_groups: int
    ) -> tuple[SparseObservations, NDArray[np.float64], NDArray[np.float64]]:
        """The groups of rows as rows, further digits of their values, and their weights.

        There are no further digits if sums are exact. Groups without weight have the weight 0.
        """
        weights = self.all_weights()
        sizes = np.ones(1) if self.sizes is None else self.sizes[self.which]
        n = self.which.size
        factors = weights / sizes
        joining = sparse.csr_array((factors, (labels, np.arange(n))), shape=(n_groups, n))
        totals: NDArray[np.float64] = np.bincount(labels, weights, n_groups).astype(np.float64)
        groups = sparse_rows(joining @ self.sums())
        if self.are_whole():
            return groups, np.empty(0), totals
        rests, scratch = np.empty(groups.values.size), np.zeros((2, self.n_columns))
        _add_up(
            self.columns,
            self.values,
            self.starts,
            self._sizes(),
            self.which,
            weights,
            np.argsort(labels, kind="stable"),
            np.cumsum(np.bincount(labels, minlength=n_groups)),
            scratch,
            groups.columns,
            groups.values,
            groups.starts,
            rests,
        )
        return groups, rests, totals

    def order_by_value(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """An order in which equal rows are adjacent, and whether each equals the one before."""
        # Equal rows are ordered by weight, so that their sum does not depend on the order.
        weights = self.all_weights()
        hashes = [self.hashes(SEEDS[0])]
        order = np.lexsort((weights, *hashes))
        same = self._same(hashes[0], order)
        later = np.flatnonzero(same)
        if not self.equal(order[later], order[later - 1]).all():
            # Two different rows have the same hash: about once in 2⁶⁴/n² data sets.
            hashes.append(self.hashes(SEEDS[1]))
            order = np.lexsort((weights, *hashes))
            same = self._same(hashes[0], order) & self._same(hashes[1], order)
        return order, same

    def are_whole(self) -> bool:
        """Whether all sums of rows will be whole numbers that floats represent."""
        weights = self.all_weights()
        sizes = np.ones(1) if self.sizes is None else self.sizes[self.which]
        factors = weights / sizes
        if not (np.floor(factors) == factors).all() or (factors * sizes != weights).any():
            return False
        if not (np.floor(self.values) == self.values).all():
            return False
        return float(np.abs(self.values).sum()) * float(factors.max(initial=1.0)) < 2.0**53

    def hashes(self, seeds: Any) -> NDArray[np.uint64]:
        """A hash of each row, from one seed, or from a number for each row."""
        hashes = np.full(self.which.size, seeds, np.uint64)
        with np.errstate(over="ignore"):  # plain Python would warn
            _hash_rows(self.columns, self.values, self.starts, self.which, self._sizes(), hashes)
        return hashes

    def _sizes(self) -> NDArray[np.float64]:
        return np.ones(1) if self.sizes is None else self.sizes

    @staticmethod
    def _same(hashes: NDArray[np.uint64], order: NDArray[np.intp]) -> NDArray[np.bool_]:
        same = np.zeros(order.size, bool)
        same[1:] = hashes[order[1:]] == hashes[order[:-1]]
        return same

    def equal(self, places: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether rows have the means of other rows."""
        equal = np.empty(places.size, np.bool_)
        parts = (self.columns, self.values, self.starts, self._sizes())
        _find_equal(*parts, self.which[places], self.which[others], equal)
        return equal


def sparse_rows(X: Any, sizes: NDArray[np.float64] | None = None) -> SparseObservations:
    """All rows of a CSR matrix, without zeros or repeated entries and in order if it was so."""
    X = canonical(X)
    return SparseObservations(
        X.indices.astype(np.int32, copy=False),
        X.data,
        X.indptr.astype(np.int64, copy=False),
        X.shape[1],
        np.arange(X.shape[0]),
        sizes,
    )


def canonical(X: Any) -> Any:
    """A CSR matrix with ascending columns, each once in a row, and no zeros; X is left alone."""
    row_starts = np.zeros(X.indices.size + 1, bool)
    row_starts[X.indptr] = True
    in_order = bool((np.diff(X.indices) > 0)[~row_starts[1:-1]].all()) if X.indices.size else True
    if in_order and X.indptr[-1] == X.data.size and X.data.all():
        return X
    X = X.copy()
    X.has_canonical_format = X.has_sorted_indices = False
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


@kernel
def _hash_rows(columns, values, starts, which, sizes, hashes):
    """Multiply and shift, as in `observations`, over columns and means in double-double."""
    for row in range(which.size):
        hashed, x = hashes[row], which[row]
        size = sizes[min(x, sizes.size - 1)]
        for p in range(starts[x], starts[x + 1]):
            high, low = divide(values[p], 0.0, size)
            for word in (np.uint64(columns[p]), bits_of(high), bits_of(low + 0.0)):
                hashed ^= word
                hashed *= np.uint64(0xBF58476D1CE4E5B9)
                hashed ^= hashed >> np.uint64(29)
                hashed *= np.uint64(0x94D049BB133111EB)
                hashed ^= hashed >> np.uint64(32)
        hashes[row] = hashed


@kernel
def _find_equal(columns, values, starts, sizes, rows, others, out):
    """Whether each row has the mean of the other one."""
    for r in range(rows.size):
        x, y = rows[r], others[r]
        count = starts[x + 1] - starts[x]
        out[r] = count == starts[y + 1] - starts[y]
        size0, size1 = sizes[min(x, sizes.size - 1)], sizes[min(y, sizes.size - 1)]
        for p in range(count if out[r] else 0):
            mean0 = divide(values[starts[x] + p], 0.0, size0)
            mean1 = divide(values[starts[y] + p], 0.0, size1)
            if columns[starts[x] + p] != columns[starts[y] + p] or mean0 != mean1:
                out[r] = False
                break


@kernel
def _add_up(
    columns, values, starts, sizes, which, weights, order, ends, scratch,
    group_columns, sums, group_starts, rests,
):  # fmt: skip
    """The sums of groups of rows in double-double; a group ends at its place in the order."""
    first = 0
    for group in range(ends.size):
        for place in range(first, ends[group]):
            row = order[place]
            x = which[row]
            size = sizes[min(x, sizes.size - 1)]
            for p in range(starts[x], starts[x + 1]):
                high, low = divide(values[p], 0.0, size)
                high, low = multiply(weights[row], high, low)
                k = columns[p]
                scratch[0, k], scratch[1, k] = add(scratch[0, k], scratch[1, k], high, low)
        for e in range(group_starts[group], group_starts[group + 1]):
            sums[e], rests[e] = scratch[0, group_columns[e]], scratch[1, group_columns[e]]
        for place in range(first, ends[group]):
            x = which[order[place]]
            for p in range(starts[x], starts[x + 1]):
                scratch[0, columns[p]] = scratch[1, columns[p]] = 0.0
        first = ends[group]


@kernel
def put_rows(columns, values, starts, sizes, which, weights, segments, first):
    """Append the means of rows, times their weights, to the pool; from slot ``first`` on."""
    end = segments.end[0]
    for row in range(which.size):
        x = which[row]
        size = sizes[min(x, sizes.size - 1)]
        segments.places[first + row, 0] = end
        for p in range(starts[x], starts[x + 1]):
            total, rest = values[p], 0.0
            if segments.rests.size == 0:
                total *= weights[row] / size
            elif weights[row] != size:
                high, low = divide(values[p], 0.0, size)
                total, rest = multiply(weights[row], high, low)
            segments.columns[end], segments.sums[end] = columns[p], total
            if segments.rests.size > 0:
                segments.rests[end] = rest
            end += 1
        segments.places[first + row, 1] = end
    segments.end[0] = end
