"""Looking at every cluster, block by block, bounds before exact values.

In the greedy algorithm unions go to new slots after all others: the older clusters are those in the
slots before, and of each two clusters only the younger one looks at the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.geometry.contract import (
    BLOCK,
    GROUP,
    Clusters,
    aim,
    candidates,
    dissimilarity,
    lower_bounds,
    pull_bounds,
    suspects,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import comes_before
from fastrbhc._engine.neighbors.kd_order import gather
from fastrbhc._engine.threads import Threads


class Brute(NamedTuple):
    """Every query scans all slots; there is nothing to store but how many there are."""

    size: NDArray[np.int64]  # (1,), slots in use

    def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
        size = index.size[0]
        best, slot = _begin(geometry, clusters, i, hint, size, cutoff, scratch)
        for start in range(0, size, BLOCK):
            stop = min(start + BLOCK, size)
            best, slot = _nearest_in(geometry, clusters, i, start, stop, best, slot, scratch)
        return best, slot

    def nearest_and_undercut(index, geometry, clusters, i, cutoff, links, hits, values, scratch):
        bounds = scratch.bounds
        rank = clusters.ranks[i]
        best, best_slot, best_rank = cutoff, -1, -1
        count = 0
        for start in range(0, index.size[0], BLOCK):
            stop = min(start + BLOCK, index.size[0])
            lower_bounds(geometry, clusters, i, start, stop, scratch)
            for j in range(start, stop):
                limit = max(best, links.values[j])
                if bounds[j - start] <= limit and j != i:
                    value = dissimilarity(geometry, clusters, i, j, limit, scratch)
                    if comes_before(value, clusters.ranks[j], best, best_rank):
                        best, best_slot, best_rank = value, j, clusters.ranks[j]
                    if comes_before(value, rank, links.values[j], links.ranks[j]):
                        hits[count], values[count] = j, value
                        count += 1
        return best, best_slot, count

    def find(index, geometry, clusters, queue, start, stop, older, cutoff, values, slots, scratch):
        # A group of queries goes through the blocks together, so that a block comes from memory
        # once for all of them.
        size, group = index.size[0], scratch.group
        for first in range(start, stop, GROUP):
            count = _take_group(queue, first, min(first + GROUP, stop), group)
            for q in range(count):
                i = group[q]
                hint, end = -2 - np.int64(slots[i]), i if older else size
                values[i], slots[i] = _begin(geometry, clusters, i, hint, end, cutoff, scratch)
            aim(geometry, clusters, group, 0, count, scratch)
            for left in range(0, group[0] if older else size, BLOCK):
                right = min(left + BLOCK, size)
                while older and group[count - 1] <= left:
                    count -= 1
                found = suspects(geometry, clusters, group, 0, count, left, right, values, scratch)
                for f in range(found):
                    i = group[scratch.suspects[f] // BLOCK]
                    if not scratch.suspect_bounds[f] <= values[i]:
                        continue
                    j = left + scratch.suspects[f] % BLOCK
                    if j != i and j != slots[i] and not (older and j > i):
                        values[i], slots[i] = _closer(
                            geometry, clusters, i, j, values[i], slots[i], scratch
                        )

    def pulled(index, geometry, clusters, a, b, height, part, parts, scratch):
        size, count = index.size[0], 0
        for start in range(part * BLOCK, size, parts * BLOCK):
            stop = min(start + BLOCK, size)
            pull_bounds(geometry, clusters, a, b, start, stop, height, scratch)
            for s in range(stop - start):
                if scratch.bounds[s] <= height:
                    scratch.hits[count] = start + s
                    count += 1
        return count

    def slot_of_union(index, i):
        index.size[0] += 1
        return index.size[0] - 1

    def merged(index, geometry, clusters, i, j):
        return

    def relink(index, links, i):
        return

    def relink_all(index, links):
        return

    def touch(index, i, j):
        return

    def refit_parts(index):
        return 0

    def refit_part(index, geometry, clusters, part):
        return

    def refit_rest(index, geometry, clusters):
        return

    def rebuild(index, geometry, clusters, threads):
        slots = np.flatnonzero(~np.isnan(clusters.weights[: index.size[0]]))
        index.size[0] = slots.size
        gather(clusters, slots, threads)
        return slots

    def rebuild_below(index):
        # Copying the clusters is little beside a round of queries. Time with a half and with three
        # quarters over that with 0.9: 1.18 and 1.06 (20,000 × 10), 1.22 and 1.10 (20,000 × 50).
        return 0.9


def brute(geometry: Any, clusters: Clusters, threads: Threads, audited: bool = False) -> Brute:
    """The backend over clusters that fill the first slots."""
    return Brute(np.array([np.count_nonzero(~np.isnan(clusters.weights))]))


@kernel
def _take_group(queue, first, last, group):
    """Copy some of the queue, the last slots first: they have the most blocks to look at."""
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
    return _closer(geometry, clusters, i, slot, cutoff, -1, scratch)


@kernel
def _closer(geometry, clusters, i, j, best, slot, scratch):
    """The better of the best so far and slot j."""
    value = dissimilarity(geometry, clusters, i, j, best, scratch)
    rank = clusters.ranks[slot] if slot >= 0 else -1
    if comes_before(value, clusters.ranks[j], best, rank):
        return value, np.int64(j)
    return best, np.int64(slot)


@kernel
def _nearest_in(geometry, clusters, i, start, stop, best, slot, scratch):
    """The better of the best so far and the slots start…stop−1."""
    count = candidates(geometry, clusters, i, start, stop, best, scratch)
    for c in range(count):
        j = scratch.slots[c]
        if j != i and j != slot:
            best, slot = _closer(geometry, clusters, i, j, best, slot, scratch)
    return best, np.int64(slot)
