"""Putting slots into tree order: median splits of the widest column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.geometry.contract import TILE, Clusters
from fastrbhc._engine.jit import allocating_kernel, kernel, length
from fastrbhc._engine.threads import Threads

# Slots that one call sorts at most, so that Ctrl-C is answered in the meantime.
_PART = 1 << 18


def arrange(
    clusters: Clusters, slots: NDArray[np.int64], capacity: int, threads: Threads
) -> NDArray[np.int64]:
    """The given slots in the order of a balanced kd-tree with that many places.

    The left half of every node is full, so that a node's slots are known from its number.
    """
    means, columns = clusters.means, clusters.columns
    rows = np.empty((slots.size, means.shape[0]))
    threads.run(
        lambda first, last, scratch: _rows_of(means, slots, rows, first, last),
        slots.size,
        1e-8,
    )
    parts = [(0, slots.size, capacity)]

    def split(first: int, last: int, scratch: object) -> None:
        for start, stop, size in parts[first:last]:
            _split(rows, slots, columns, start, stop, start + size // 2)

    while parts[0][2] > (_PART if len(parts) >= 2 * threads.count else 1024):
        threads.run(split, len(parts), 1e-8 * slots.size / len(parts))
        parts = [
            half
            for start, stop, size in parts
            for half in (
                (start, min(start + size // 2, stop), size // 2),
                (min(start + size // 2, stop), stop, size // 2),
            )
        ]

    def arrange_parts(first: int, last: int, scratch: object) -> None:
        for start, stop, size in parts[first:last]:
            _arrange(rows, slots, columns, start, stop, size)

    threads.run(arrange_parts, len(parts), 1e-7 * slots.size / len(parts))
    return slots


def gather(clusters: Clusters, slots: NDArray[np.int64], threads: Threads) -> None:
    """Move the clusters of the given slots to the slots 0, 1, …, and free all others."""
    count, used = slots.size, clusters.weights.size
    columns: list[NDArray[Any]] = [clusters.weights, clusters.ranks]
    for values in (clusters.means, clusters.residuals, clusters.coarse, clusters.outlines):
        if values.flags.c_contiguous:
            columns += list(values)
        else:
            columns.append(values.T)
    for values in (clusters.moments, clusters.cached):
        if values.shape[1]:
            columns.append(values)

    def move(first: int, last: int, scratch: object) -> None:
        for values in columns[first:last]:
            (_gather if values.ndim == 1 else _gather_rows)(values, slots)

    threads.run(move, len(columns), 1e-8 * count)
    clusters.weights[count:used] = np.nan
    clusters.means[:, count:used] = np.nan


# Loops, as indexing by arrays takes seconds to compile.


@allocating_kernel
def _gather(values, slots):
    gathered = np.empty(slots.size, values.dtype)
    for i in range(slots.size):
        gathered[i] = values[slots[i]]
    for i in range(slots.size):
        values[i] = gathered[i]


@allocating_kernel
def _gather_rows(values, slots):
    gathered = np.empty((slots.size, values.shape[1]), values.dtype)
    for i in range(slots.size):
        for k in range(values.shape[1]):
            gathered[i, k] = values[slots[i], k]
    for i in range(slots.size):
        for k in range(values.shape[1]):
            values[i, k] = gathered[i, k]


@kernel
def _rows_of(means, slots, rows, first, last):
    for row in range(first, last):
        for k in range(means.shape[0]):
            rows[row, k] = means[k, slots[row]]


@allocating_kernel
def _arrange(rows, slots, columns, start, stop, size):
    """Split rows start…stop−1, which fill a node with that many places, down to the leaves."""
    starts, stops, sizes = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    starts[0], stops[0], sizes[0] = start, stop, size
    depth = 1
    while depth > 0:
        depth -= 1
        first, last, size = starts[depth], stops[depth], sizes[depth]
        while size > TILE:
            size //= 2
            if last - first > size:
                _split(rows, slots, columns, first, last, first + size)
                starts[depth], stops[depth], sizes[depth] = first + size, last, size
                depth += 1
                last = first + size


@kernel
def _split(rows, slots, columns, first, last, middle):
    """Bring the rows that are smaller in the widest column before the middle."""
    if middle >= last:
        return
    widest, column = 0.0, -1
    for k in range(length(columns, rows.shape[1])):
        low, high = rows[first, k], rows[first, k]
        for row in range(first + 1, last):
            low = min(low, rows[row, k])
            high = max(high, rows[row, k])
        if high - low > widest:
            widest, column = high - low, k
    if column >= 0:
        _select(rows, slots, columns, first, last - 1, middle, column)


@kernel
def _select(rows, slots, columns, left, right, target, column):
    """Hoare's quickselect of whole rows."""
    while left < right:
        pivot = _pivot(rows, left, right, target, column)
        i, j = left, right
        while i <= j:
            while rows[i, column] < pivot:
                i += 1
            while rows[j, column] > pivot:
                j -= 1
            if i <= j:
                for k in range(length(columns, rows.shape[1])):
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


@allocating_kernel
def _pivot(rows, left, right, target, column):
    """A value near the one that belongs at target; for long ranges from a sample.

    The sample is read where the target is expected in it, so that two passes of falling length
    mostly suffice, where the median of three values takes four.
    """
    count = right - left + 1
    if count < 200:
        a, b, c = rows[left, column], rows[(left + right) // 2, column], rows[right, column]
        return max(min(a, b), min(max(a, b), c))
    size = 25 if count < 5000 else 101
    sample = np.empty(size)
    for s in range(size):
        value = rows[left + s * (count - 1) // (size - 1), column]
        place = s  # by insertion: NumPy's partition takes seconds to compile
        while place > 0 and sample[place - 1] > value:
            sample[place] = sample[place - 1]
            place -= 1
        sample[place] = value
    expected = (target - left) * (size - 1) / (count - 1)
    # A little past the middle of the range, so that the shorter part holds the target.
    expected += 1.5 if expected < size / 2 else -1.5
    return sample[min(max(int(expected), 0), size - 1)]
