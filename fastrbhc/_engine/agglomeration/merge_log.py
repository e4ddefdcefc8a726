"""The list of merges, while it is written, and the loop that writes it in portions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.geometry.contract import Clusters
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import rebuild
from fastrbhc._engine.threads import Threads

# What a kernel says when it returns.
FINISHED, OUT_OF_BUDGET, WANTS_REBUILD, WANTS_LOOK_UP = 0, 1, 2, 3

# A kernel cannot be interrupted: it is called for about this long at a time, so that Ctrl-C
# and the progress bar are answered well within half a second.
_PORTION_SECONDS = 0.1

# Some sixty slots are looked through in less time than Python takes to move them.
_FEW_SLOTS = 64


class Merges(NamedTuple):
    """Merges in the order they were made. Nodes: leaves 0…n−1, the i-th merge makes n+i."""

    children: NDArray[np.int64]  # (n − 1, 2)
    heights: NDArray[np.float64]  # (n − 1,)
    made: NDArray[np.int64]  # (1,), how many
    nodes: NDArray[np.int64]  # (n,), the node in each slot, −1 for a free slot
    alive: NDArray[np.int64]  # (2,), clusters in slots, slots in use


def no_merges(clusters: Clusters) -> Merges:
    """Every cluster is a leaf, named by its rank."""
    n = int(np.count_nonzero(~np.isnan(clusters.weights)))
    return Merges(
        np.empty((n - 1, 2), np.int64),
        np.empty(n - 1),
        np.zeros(1, np.int64),
        clusters.ranks.copy(),
        np.array([n, n]),
    )


@kernel
def record(merges, place, i, j, union, height):
    """Note at a place of the list that slots i and j became the one in slot union."""
    n_leaves = merges.heights.size + 1
    merges.children[place, 0] = min(merges.nodes[i], merges.nodes[j])
    merges.children[place, 1] = max(merges.nodes[i], merges.nodes[j])
    merges.heights[place] = height
    merges.nodes[i] = merges.nodes[j] = -1
    merges.nodes[union] = n_leaves + place


@kernel
def made(merges, count):
    """Count merges that have been recorded."""
    merges.made[0] += count
    merges.alive[0] -= count


@kernel
def many_free(merges, share):
    """Whether less than that share of the slots holds a cluster: it is time to close the gaps.

    Not with so few slots that looking at the free ones is quicker than moving the others.
    """
    return merges.alive[1] > _FEW_SLOTS and merges.alive[0] < share * merges.alive[1]


def close_gaps(
    geometry: Any, clusters: Clusters, index: Any, merges: Merges, threads: Threads
) -> NDArray[np.int64]:
    """Let the index move the clusters together, and the nodes along; returns their old slots."""
    slots: NDArray[np.int64] = rebuild(index, geometry, clusters, threads)
    merges.nodes[: slots.size] = merges.nodes[slots]
    merges.nodes[slots.size :] = -1
    merges.alive[1] = slots.size
    return slots


def new_places(slots: NDArray[np.int64], used: int) -> NDArray[np.int64]:
    """Where each of the slots in use went; −1 for those that were free."""
    places = np.full(used, -1)
    places[slots] = np.arange(slots.size)
    return places


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
