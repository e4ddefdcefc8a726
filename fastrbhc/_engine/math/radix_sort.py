"""Sorting many numbers by their bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel

# Bits per digit: 2048 counters fit into the L1 cache.
_DIGIT = 11

# Fewer numbers are sorted by NumPy, in less time than a pass over the counters.
_FEW = 2_000

# The leading digits, which nearly always suffice, begin at this bit.
_LEADING = 64 - 3 * _DIGIT

# More numbers that agree in the leading digits, but not in all, are too many for insertion sort.
_LONG_RUN = 64


def stable_order(keys: NDArray[Any]) -> NDArray[np.int64]:
    """A stable argsort of unsigned integers, or of floats that are not negative.

    The numbers are sorted by their leading digits, then by insertion where these agree; if very
    many nearly agree, by all digits, the last digit first. A million takes half of NumPy's time.
    """
    if keys.size < _FEW or keys.size >= 2**31:
        return np.argsort(keys, kind="stable")
    # Adding 0 makes a copy, in which −0.0 and 0.0 have the same bits.
    values = (keys + keys.dtype.type(0)).view(np.uint64)
    order = np.arange(values.size, dtype=np.int32)
    values, order = _by_digits(values, order, _LEADING)
    if not _sort_runs(values, order):
        # Equal numbers are still in the order in which they came.
        values, order = _by_digits(values, order, 0)
    del values  # frees memory
    return order.astype(np.int64)


def _by_digits(
    values: NDArray[np.uint64], order: NDArray[np.int32], lowest: int
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The numbers sorted by their digits from the lowest bit on, and their positions.

    Both arrays are overwritten.
    """
    spare, spare_order = np.empty_like(values), np.empty_like(order)
    starts = np.empty((1 << _DIGIT) + 1, np.int64)
    for shift in range(lowest, 64, _DIGIT):
        _by_digit(values, order, np.uint64(shift), spare, spare_order, starts)
        values, order, spare, spare_order = spare, spare_order, values, order
    return values, order


@kernel
def _sort_runs(values, order):
    """Insertion sort where the leading digits agree; False if that would take long."""
    shift = np.uint64(_LEADING)
    first = 0
    for i in range(1, values.size):
        if values[i] >> shift != values[first] >> shift:
            first = i
        value, source, place = values[i], order[i], i
        if value < values[i - 1] and i - first > _LONG_RUN:
            return False
        while place > first and values[place - 1] > value:
            values[place], order[place] = values[place - 1], order[place - 1]
            place -= 1
        values[place], order[place] = value, source
    return True


@kernel
def _by_digit(values, order, shift, sorted_values, sorted_order, starts):
    """One pass: a stable sort of the values by one digit."""
    mask = np.uint64((1 << _DIGIT) - 1)
    for digit in range(starts.size):
        starts[digit] = 0
    for i in range(values.size):
        starts[np.int64((values[i] >> shift) & mask) + 1] += 1
    for digit in range(1 << _DIGIT):
        starts[digit + 1] += starts[digit]
    for i in range(values.size):
        digit = np.int64((values[i] >> shift) & mask)
        place = starts[digit]
        starts[digit] += 1
        sorted_values[place], sorted_order[place] = values[i], order[i]
