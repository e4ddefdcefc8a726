"""Scans of all clusters, block by block, with bounds before exact values.

In the greedy algorithm unions go to new slots after all others: the older clusters are in the slots
before, and each pair is examined only by its younger cluster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters, gather
from fastrbhc._engine.clusters.scratch import BLOCK, GROUP
from fastrbhc._engine.geometry.contract import (
    ALL_WANTED,
    candidate_pairs,
    candidate_slots,
    dissimilarity,
    lower_bounds,
    prepare_queries,
    violation_bounds,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import NONE_LOWERED, Lowered, hint_of
from fastrbhc._engine.neighbors.ordering import comes_before
from fastrbhc._engine.records import record
from fastrbhc._engine.threads import Threads


@record
class Brute:
    """Every query scans all slots; there is nothing to store."""

    # Copying the clusters costs little compared with a round of queries. Time with a half and with
    # three quarters, as a ratio to the time with 0.9: 1.18 and 1.06 (20,000 × 10), 1.22 and 1.10
    # (20,000 × 50).
    rebuild_below: float = 0.9
    unions_in_new_slots: bool = True
    n_parts: int = 0
    lowered: Lowered = NONE_LOWERED

    def rebuild(self, clusters: Clusters, threads: Threads) -> NDArray[np.int64]:
        slots = np.flatnonzero(~np.isnan(clusters.weights[: clusters.n_slots]))
        gather(clusters, slots, threads)
        return slots

    def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
        size = clusters.n_slots
        best, slot = _begin(geometry, clusters, i, hint, size, cutoff, scratch)
        for start in range(0, size, BLOCK):
            stop = min(start + BLOCK, size)
            best, slot = nearest_in(geometry, clusters, i, start, stop, best, slot, scratch)
        return best, slot

    def find(index, geometry, clusters, queries, first, last, scratch):
        # A group of queries scans the blocks together, so that each block is loaded from memory
        # once for all of them.
        values, slots, older = queries.values, queries.neighbors, queries.halved
        size, group, pairs = clusters.n_slots, scratch.group, scratch.pairs
        for begin in range(first, last, GROUP):
            count = take_group(queries.queue, begin, min(begin + GROUP, last), group)
            for q in range(count):
                i = group[q]
                hint, end = hint_of(np.int64(slots[i])), i if older else size
                values[i], slots[i] = _begin(
                    geometry, clusters, i, hint, end, queries.cutoff, scratch
                )
            prepare_queries(geometry, clusters, group, 0, count, scratch)
            for left in range(0, group[0] if older else size, BLOCK):
                right = min(left + BLOCK, size)
                while older and group[count - 1] <= left:
                    count -= 1
                found = candidate_pairs(
                    geometry, clusters, group, 0, count, ALL_WANTED, left, right, values, scratch
                )
                for f in range(found):
                    i = group[pairs[f] // BLOCK]
                    if not scratch.pair_bounds[f] <= values[i]:
                        continue
                    j = left + pairs[f] % BLOCK
                    if j != i and j != slots[i] and not (older and j > i):
                        values[i], slots[i] = closer(
                            geometry, clusters, i, j, values[i], slots[i], scratch
                        )

    def possible_violations(index, geometry, clusters, a, b, height, part, parts, scratch):
        size, count = clusters.n_slots, 0
        for start in range(part * BLOCK, size, parts * BLOCK):
            stop = min(start + BLOCK, size)
            violation_bounds(geometry, clusters, a, b, start, stop, height, scratch)
            for s in range(stop - start):
                if scratch.bounds[s] <= height:
                    scratch.hits[count] = start + s
                    count += 1
        return count


@kernel
def take_group(queue, first, last, group):
    """Copy a range of the queue, the last slots first: they have the most blocks to scan."""
    for q in range(last - first):
        slot, place = np.int64(queue[first + q]), q
        while place > 0 and group[place - 1] < slot:
            group[place] = group[place - 1]
            place -= 1
        group[place] = slot
    return last - first


@kernel
def _begin(geometry, clusters, i, hint, size, cutoff, scratch):
    """The slot of the hint, or else that of the smallest bound in the first block, if nearer."""
    slot = hint if hint < size else -1
    if slot < 0:
        stop, smallest = min(BLOCK, size), np.inf
        lower_bounds(geometry, clusters, i, 0, stop, scratch)
        for j in range(stop):
            if scratch.bounds[j] < smallest and j != i:
                smallest, slot = scratch.bounds[j], j
    if slot < 0:
        return cutoff, np.int64(-1)
    return closer(geometry, clusters, i, slot, cutoff, -1, scratch)


@kernel
def closer(geometry, clusters, i, j, best, slot, scratch):
    """The nearer of the best cluster so far and slot j."""
    value = dissimilarity(geometry, clusters, i, j, best, scratch)
    rank = clusters.ranks[slot] if slot >= 0 else -1
    if comes_before(value, clusters.ranks[j], best, rank):
        return value, np.int64(j)
    return best, np.int64(slot)


@kernel
def nearest_in(geometry, clusters, i, start, stop, best, slot, scratch):
    """The nearest of the best cluster so far and the slots start…stop−1."""
    count = candidate_slots(geometry, clusters, i, start, stop, best, scratch)
    for c in range(count):
        j = scratch.slots[c]
        if j != i and j != slot:
            best, slot = closer(geometry, clusters, i, j, best, slot, scratch)
    return best, np.int64(slot)
