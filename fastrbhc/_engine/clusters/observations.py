"""Rows as weighted points: the step from X to statistics.

Columns are dense, and some blocks of columns of a product may be sparse beside them.

The rows are ordered by a hash of their values, which breaks ties between dissimilarities. Equal
rows are adjacent in this order, and `duplicates` collapses them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from fastrbhc._engine.clusters.sparse_rows import SEEDS, SparseObservations
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.fast_log import bits_of
from fastrbhc._engine.math.radix_sort import stable_order


class Observations(NamedTuple):
    """Mean statistics, one row per observation: leading digits, further digits, weights.

    ``residuals`` is None if there are no further digits, ``weights`` if all are 1. ``sparse`` has
    the same rows in each of the sparse blocks, whose weights are these. ``blocks`` is for rows with
    missing cells: see `partly_observed`.
    """

    means: NDArray[np.float64]
    residuals: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    sparse: tuple[SparseObservations, ...] = ()
    blocks: tuple[tuple[int, bool], ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of dense columns."""
        n, n_columns = self.means.shape
        return n, n_columns

    @property
    def width(self) -> int:
        """About how many numbers a row has."""
        return self.means.shape[1] + sum(part.width for part in self.sparse)

    def bytes_per_row(self, sizes: Any) -> int:
        """Approximate memory per row while a tree is built, without the row itself.

        ``sizes`` is what `storage` of the geometry returns.
        """
        width = self.shape[1]
        numbers = 1 + 2 * width + sizes.scatter + sizes.cached + sizes.scan_features
        entries = sum(16 + 32 * part.width for part in self.sparse)
        return 8 * numbers + (4 * width if sizes.mirrored else 0) + 5 * width + entries + 100

    def all_weights(self) -> NDArray[np.float64]:
        """The weight of each row."""
        return np.ones(len(self.means)) if self.weights is None else self.weights

    def all_residuals(self) -> NDArray[np.float64]:
        """The further digits of each row."""
        return np.zeros(self.means.shape) if self.residuals is None else self.residuals

    def weighted(self, sample_weight: NDArray[np.float64] | None) -> Observations:
        """The same rows with their weights multiplied by the sample weights."""
        if sample_weight is None:
            return self
        weights = sample_weight if self.weights is None else self.weights * sample_weight
        return self._replace(weights=weights)

    def take(self, which: NDArray[np.intp]) -> Observations:
        """Some of the rows."""
        return self._replace(
            means=np.take(self.means, which, axis=0),
            residuals=None if self.residuals is None else np.take(self.residuals, which, axis=0),
            weights=None if self.weights is None else self.weights[which],
            sparse=tuple(part.take(which) for part in self.sparse),
        )

    def slot_values(self) -> NDArray[np.float64]:
        """What a slot stores as the mean of each row, if that is a cluster by itself."""
        return self.means

    def centred_means(self) -> Any:
        """The means less the mean of all, so that other methods do not lose digits.

        Sparse blocks stay as they are.
        """
        centred = self.means - self.means.mean(axis=0)
        if not self.sparse:
            return centred
        return hstack([csr_array(centred), *(part.centred_means() for part in self.sparse)], "csr")

    def order_by_value(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """An order in which equal rows are adjacent, and whether each equals the one before."""
        return order_by_value(self)


def weighted(rows: Any, sample_weight: NDArray[np.float64] | None) -> Any:
    """The same rows with their weights multiplied by the sample weights."""
    return rows.weighted(sample_weight)


def take(rows: Any, which: NDArray[np.intp]) -> Any:
    """Some of the rows."""
    return rows.take(which)


def column_ranges(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The smallest and the largest value of each column.

    With few columns, NumPy's reduction over rows has a tenth of the speed of column by column.
    """
    if X.shape[1] > 16:
        return X.min(axis=0), X.max(axis=0)
    return (
        np.array([column.min() for column in X.T]),
        np.array([column.max() for column in X.T]),
    )


def order_by_value(rows: Observations) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """An order in which equal rows are adjacent, and whether each row equals the one before."""
    hashes = _hashes(rows)
    # Equal rows are ordered by weight, so that the sum does not depend on the order of the rows.
    weights = () if rows.weights is None else (rows.weights,)
    order = np.lexsort((*weights, hashes)) if weights else stable_order(hashes)
    same = np.zeros(order.size, bool)
    hashes = hashes[order]
    same[1:] = hashes[1:] == hashes[:-1]
    del hashes
    candidates = np.flatnonzero(same)
    if not _equal_rows(rows, order[candidates], order[candidates - 1]).all():
        # Two different rows have the same hash: about once in 2⁶⁴/n² data sets. Their values decide
        # which of them comes first, so that the rows of a part are in the same order.
        parts = [rows.means] if rows.residuals is None else [rows.means, rows.residuals]
        columns = [column for part in parts for column in part.T]
        columns += [part.hashes(seed) for part in rows.sparse for seed in SEEDS]
        order = np.lexsort((*weights, *columns, _hashes(rows)))
        same[1:] = _equal_rows(rows, order[1:], order[:-1])
    return order, same


def _hashes(rows: Observations) -> NDArray[np.uint64]:
    """The hashes of rows with their sparse blocks."""
    hashes = hash_rows(rows)
    for part in rows.sparse:
        hashes = part.hashes(hashes)
    return hashes


def _equal_rows(
    rows: Observations, which: NDArray[np.intp], others: NDArray[np.intp]
) -> NDArray[np.bool_]:
    equal = (rows.means[which] == rows.means[others]).all(axis=1)
    if rows.residuals is not None:
        equal &= (rows.residuals[which] == rows.residuals[others]).all(axis=1)
    for part in rows.sparse:
        equal &= part.equal(which, others)
    return equal


def hash_rows(rows: Observations) -> NDArray[np.uint64]:
    """A 64-bit hash of each row's values: multiply and shift, as in splitmix64."""
    hashes = np.full(rows.means.shape[0], 0x9E3779B97F4A7C15, np.uint64)
    with np.errstate(over="ignore"):  # plain Python would warn
        for part in (rows.means, rows.residuals):
            if part is not None:
                _add_to_hashes(part, hashes)
    return hashes


@kernel
def _add_to_hashes(values, hashes):
    for row in range(values.shape[0]):
        hashed = hashes[row]
        for k in range(values.shape[1]):
            hashed ^= bits_of(values[row, k] + 0.0)  # −0.0 and 0.0 are equal
            hashed *= np.uint64(0xBF58476D1CE4E5B9)
            hashed ^= hashed >> np.uint64(29)
            hashed *= np.uint64(0x94D049BB133111EB)
            hashed ^= hashed >> np.uint64(32)
        hashes[row] = hashed
