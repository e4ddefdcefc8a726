"""The yardstick Y of compile times: seconds to compile a chain of 21 small kernels.

Each calls the next and hands on a record of three arrays, as our kernels hand on theirs. A first
call in units of Y keeps its value on another machine and beside other work; seconds would not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

KERNELS = 21
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


class Record(NamedTuple):
    """What the kernels hand on."""

    centres: NDArray[np.float64]
    weights: NDArray[np.float64]
    heights: NDArray[np.float64]


def chain() -> Any:
    """The outermost of the kernels, none of which is compiled."""

    @njit(**OPTIONS)
    def kernel(record, row):
        return record.centres[row] + record.weights[row] * record.heights[row]

    for _ in range(KERNELS - 1):
        kernel = _around(kernel)
    return kernel


def _around(inner: Any) -> Any:
    """One more kernel: a loop that calls another one, a branch, and an array that is written."""

    @njit(**OPTIONS)
    def kernel(record, row):
        total = 0.0
        for other in range(row + 1):
            total += inner(record, row) + record.centres[other]
        if total > 1e9 and row < 0:  # never, which the compiler cannot know
            record.weights[row] = total
        return total

    return kernel


def set_numba_up() -> None:
    """What Numba does once in a process, whoever compiles, and whatever is on disk."""
    njit(lambda x: x + 1)(1)


def seconds(clock: Callable[[], float]) -> float:
    """Y, in a process that has compiled nothing yet: what Numba sets up once is not part of it."""
    set_numba_up()
    outermost, record = chain(), Record(np.zeros(8), np.zeros(8), np.zeros(8))
    begin = clock()
    outermost(record, 0)
    return clock() - begin


if __name__ == "__main__":
    print(seconds(getattr(time, sys.argv[1])))
