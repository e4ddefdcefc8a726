"""Putting slots into tree order: median splits of the widest column."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record, replaced
from fastrbhc._engine.threads import Threads

# The most slots that one call sorts, so that Ctrl-C acts promptly.
_PART = 1 << 18

# Rows of a node from which variances are taken.
_ROWS_FOR_VARIANCE = 500


@record
class Copying:
    """The task of `_copy_means`."""

    means: NDArray[np.float64]  # (d, n) of the clusters
    widths: NDArray[np.float64]  # (d,), factors that make columns comparable
    slots: NDArray[np.int64]
    rows: NDArray[np.float64]


@record
class Parts:
    """Slots that are being ordered, with copies of their means, and the nodes so far."""

    rows: NDArray[np.float64]  # (…, d), in the order so far
    slots: NDArray[np.int64]  # (…,)
    starts: NDArray[np.int64]  # the first row of each node
    stops: NDArray[np.int64]  # the first row after it
    size: int  # number of places per node
    leaf: int  # number of places below which the order does not matter
    by_variance: bool  # whether to split the column of largest variance, not the widest


def tree_order(
    clusters: Clusters,
    widths: NDArray[np.float64],
    slots: NDArray[np.int64],
    capacity: int,
    threads: Threads,
) -> NDArray[np.int64]:
    """The given slots in the order of a balanced kd-tree with the given number of places.

    The left half of every node is full, so that a node's slots are known from its number.
    """
    rows = np.empty((slots.size, clusters.means.shape[0]))
    copying = Copying(clusters.means, widths, slots, rows)
    threads.run(partial(_copy_means, copying), slots.size, 1e-8)
    return order_of_rows(rows, slots, capacity, threads)


def order_of_rows(
    rows: NDArray[np.float64],
    slots: NDArray[np.int64],
    capacity: int,
    threads: Threads,
    leaf: int = LEAF_SIZE,
    by_variance: bool = False,
) -> NDArray[np.int64]:
    """The same for the rows of the slots, which are overwritten, and leaves of any size."""
    starts, stops = np.zeros(1, np.int64), np.array([slots.size])
    parts = Parts(rows, slots, starts, stops, capacity, leaf, by_variance)
    while parts.size > (_PART if starts.size >= 2 * threads.count else max(1024, leaf)):
        threads.run(partial(_split_parts, parts), starts.size, 1e-8 * slots.size / starts.size)
        half = parts.size // 2
        middles = np.minimum(starts + half, stops)
        starts = np.column_stack([starts, middles]).ravel()
        stops = np.column_stack([middles, stops]).ravel()
        parts = replaced(parts, starts=starts, stops=stops, size=half)
    threads.run(partial(_arrange_parts, parts), starts.size, 1e-7 * slots.size / starts.size)
    return slots


@kernel
def _copy_means(copying, first, last, scratch):
    means, widths, slots, rows = copying.means, copying.widths, copying.slots, copying.rows
    for row in range(first, last):
        for k in range(means.shape[0]):
            rows[row, k] = widths[k] * means[k, slots[row]]


@kernel
def _split_parts(parts, first, last, scratch):
    """Split a range of the nodes in two."""
    for part in range(first, last):
        start, stop = parts.starts[part], parts.stops[part]
        _split(parts, start, stop, start + parts.size // 2, scratch.bounds)


@kernel
def _arrange_parts(parts, first, last, scratch):
    """Split a range of the nodes down to the leaves."""
    waiting = scratch.nodes  # first and last row, and places, of nodes to be split
    for part in range(first, last):
        waiting[0], waiting[1], waiting[2] = parts.starts[part], parts.stops[part], parts.size
        depth = 1
        while depth > 0:
            depth -= 1
            start, stop, size = waiting[3 * depth], waiting[3 * depth + 1], waiting[3 * depth + 2]
            while size > parts.leaf:
                size //= 2
                if stop - start > size:
                    _split(parts, start, stop, start + size, scratch.bounds)
                    waiting[3 * depth], waiting[3 * depth + 1] = start + size, stop
                    waiting[3 * depth + 2] = size
                    depth += 1
                    stop = start + size


@kernel
def _split(parts, first, last, middle, sample):
    """Move the rows with the smaller values in the widest column before the middle."""
    if middle >= last:
        return
    rows, slots, widest, column = parts.rows, parts.slots, 0.0, -1
    for k in range(rows.shape[1]):
        if parts.by_variance:
            variance = _variance(rows, k, first, last)
            if variance > widest:
                widest, column = variance, k
            continue
        low, high = rows[first, k], rows[first, k]
        for row in range(first + 1, last):
            low = min(low, rows[row, k])
            high = max(high, rows[row, k])
        if high - low > widest:
            widest, column = high - low, k
    if column >= 0:
        _select(rows, slots, first, last - 1, middle, column, sample)


@kernel
def _variance(rows, column, first, last):
    """The variance of a column in a range of rows, from some hundred of them."""
    step = 1 + (last - first) // _ROWS_FOR_VARIANCE
    origin, total, squares, count = rows[first, column], 0.0, 0.0, 0
    for row in range(first, last, step):
        value = rows[row, column] - origin
        total += value
        squares += value * value
        count += 1
    return squares - total * total / count


@kernel
def _select(rows, slots, left, right, target, column, sample):
    """Hoare's quickselect of whole rows."""
    while left < right:
        pivot = _pivot(rows, left, right, target, column, sample)
        i, j = left, right
        while i <= j:
            while rows[i, column] < pivot:
                i += 1
            while rows[j, column] > pivot:
                j -= 1
            if i <= j:
                for k in range(rows.shape[1]):
                    rows[i, k], rows[j, k] = rows[j, k], rows[i, k]
                slots[i], slots[j] = slots[j], slots[i]
                i += 1
                j -= 1
        if target <= j:
            right = j
        elif target >= i:
            left = i
        else:
            return


@kernel
def _pivot(rows, left, right, target, column, sample):
    """A value close to the one that belongs at the target; for long ranges from a sample.

    It is the quantile of the sample at which the target is expected, so that two passes of
    decreasing length mostly suffice, where the median of three values takes four.
    """
    count = right - left + 1
    if count < 200:
        a, b, c = rows[left, column], rows[(left + right) // 2, column], rows[right, column]
        return max(min(a, b), min(max(a, b), c))
    size = 25 if count < 5000 else 101
    for s in range(size):
        value = rows[left + s * (count - 1) // (size - 1), column]
        place = s  # by insertion: NumPy's partition takes seconds to compile
        while place > 0 and sample[place - 1] > value:
            sample[place] = sample[place - 1]
            place -= 1
        sample[place] = value
    expected = (target - left) * (size - 1) / (count - 1)
    # Slightly past the target, towards the middle, so that the shorter part contains the target.
    expected += 1.5 if expected < size / 2 else -1.5
    return sample[min(max(int(expected), 0), size - 1)]
