"""The list of merges, while it is written, and the loop that writes it in portions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import kernel
from fastrbhc.geometry import Clusters
from fastrbhc.neighbors._interface import rebuild

# What a kernel says when it returns.
FINISHED, OUT_OF_BUDGET, WANTS_REBUILD = 0, 1, 2

# A kernel cannot be interrupted: it is called for about this long at a time, so that Ctrl-C
# and the progress bar are answered well within half a second.
_PORTION_SECONDS = 0.1

# Free slots cost scanning time, closing the gaps costs copying: measured best near here.
_REBUILD_BELOW = 0.75


class Merges(NamedTuple):
    """Merges in the order they were made. Nodes: leaves 0…n−1, the i-th merge makes n+i."""

    children: NDArray[np.int64]  # (n − 1, 2)
    heights: NDArray[np.float64]  # (n − 1,)
    made: NDArray[np.int64]  # (1,), how many
    nodes: NDArray[np.int64]  # (n,), the node in each slot, −1 for a free slot
    alive: NDArray[np.int64]  # (2,), clusters in slots, slots in use


def no_merges(n: int) -> Merges:
    return Merges(
        np.empty((n - 1, 2), np.int64),
        np.empty(n - 1),
        np.zeros(1, np.int64),
        np.arange(n),
        np.array([n, n]),
    )


@kernel
def record(merges, i, j, height):
    """Note that slots i and j became the union in slot i."""
    count = merges.made[0]
    n_leaves = merges.heights.size + 1
    merges.children[count, 0] = min(merges.nodes[i], merges.nodes[j])
    merges.children[count, 1] = max(merges.nodes[i], merges.nodes[j])
    merges.heights[count] = height
    merges.nodes[i] = n_leaves + count
    merges.nodes[j] = -1
    merges.made[0] += 1
    merges.alive[0] -= 1


@kernel
def many_free(merges):
    """Whether closing the gaps has become worth its while."""
    return merges.alive[0] < _REBUILD_BELOW * merges.alive[1]


def close_gaps(
    geometry: Any, clusters: Clusters, index: Any, merges: Merges, new_slots: NDArray[np.int64]
) -> int:
    """Let the index move the clusters together, and the nodes along; returns the old size."""
    used = int(merges.alive[1])
    size = rebuild(index, geometry, clusters, new_slots)
    old = np.flatnonzero(new_slots[:used] >= 0)
    merges.nodes[new_slots[old]] = merges.nodes[old]
    merges.nodes[size:] = -1
    merges.alive[1] = size
    return used


def in_portions(advance: Callable[[int], int], report: Callable[[], None]) -> int:
    """Call ``advance(budget)`` until it is not out of budget; budgets adapt to the clock.

    The budget counts pairs of columns looked at. How the work is cut into portions never
    changes its result.
    """
    budget = 1_000_000
    while True:
        start = time.perf_counter()
        status = advance(budget)
        report()
        if status != OUT_OF_BUDGET:
            return status
        elapsed = max(time.perf_counter() - start, 1e-4)
        budget = max(1, int(budget * min(max(_PORTION_SECONDS / elapsed, 0.25), 4.0)))
