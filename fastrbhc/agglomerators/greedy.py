"""The greedy algorithm (the paper's Algorithm 1 with λ), in O(n) memory.

Each cluster knows the nearest of those it looked at; a heap knows the nearest pair of all. A pair
whose partner has been merged away stays in the heap as a lower bound and is looked up again only
when it comes to the top. A new cluster looks at the others once. Where d is not reducible it may be
nearer to some x than both its parts were, below x's own key; the pair is not missed, since
one of the two has it in view (see neighbors/_interface). So the pair on top is the global minimum
at every step, for every family.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import kernel
from fastrbhc._threads import Threads
from fastrbhc.agglomerators._merges import (
    FINISHED,
    OUT_OF_BUDGET,
    WANTS_REBUILD,
    Merges,
    close_gaps,
    in_portions,
    made,
    many_free,
    new_places,
    no_merges,
    record,
)
from fastrbhc.agglomerators.heap import empty_heap, heapify, remove, sift_down, update
from fastrbhc.geometry import Clusters, merge
from fastrbhc.neighbors._interface import (
    Links,
    find_all,
    meet,
    merged,
    nearest,
)


def greedy(
    geometry: Any,
    clusters: Clusters,
    index: Any,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Merges:
    """Merge the globally nearest pair until none is nearer than the threshold."""
    merges = no_merges(clusters)
    n, capacity = int(merges.alive[0]), clusters.weights.size
    heap = empty_heap(n)
    links = Links(np.full(capacity, np.inf), *(np.full(capacity, -1) for _ in range(3)))
    hits, values = np.empty(n, np.int64), np.empty(n)

    def find_links(first: int, last: int, scratch: Any) -> None:
        values, neighbors = links.values, links.neighbors
        find_all(
            index,
            geometry,
            clusters,
            every,
            first,
            last,
            True,
            threshold,
            values,
            neighbors,
            scratch,
        )

    def report_links(begun: int) -> None:
        report("neighbours", begun)

    every = np.arange(n)
    threads.run(find_links, n, 1e-9 * n * clusters.means.shape[0], report_links)
    _name_neighbors(clusters, merges.nodes, links, n)
    links.values[n:] = -np.inf
    heapify(heap, links, clusters.ranks, n)

    def advance(budget: int) -> int:
        scratch = threads.scratches[0]
        return _merge_on(
            geometry, clusters, index, threshold, merges, links, heap, hits, values, scratch, budget
        )

    def report_merges() -> None:
        report("merging", int(merges.made[0]))

    while in_portions(advance, report_merges) == WANTS_REBUILD:
        used = int(merges.alive[1])
        slots = close_gaps(geometry, clusters, index, merges, threads)
        _carry_links(links, slots, new_places(slots, used))
        heapify(heap, links, clusters.ranks, merges.alive[1])
    return merges


@kernel
def _merge_on(
    geometry, clusters, index, threshold, merges, links, heap, hits, values, scratch, budget
):
    """Merge until the budget is spent, the gaps are many or no pair is below the threshold."""
    ranks, nodes = clusters.ranks, merges.nodes
    while budget > 0:
        if heap.size[0] < 2:
            return FINISHED
        i = heap.slots[0]
        j = links.neighbors[i]
        if j < 0 or links.values[i] >= threshold:
            return FINISHED
        budget -= merges.alive[1] * clusters.means.shape[0]
        if nodes[j] != links.nodes[i]:
            # The neighbour is gone; what stood in the heap was a lower bound.
            value, slot = nearest(index, geometry, clusters, i, i + 1, -1, threshold, scratch)
            _link(clusters, nodes, links, i, value, slot)
            sift_down(heap, links, ranks, heap.positions[i])
            continue
        height = links.values[i]
        i, j = max(i, j), min(i, j)
        remove(heap, links, ranks, j)
        links.values[j] = -np.inf
        record(merges, merges.made[0], i, j, height)
        made(merges, 1)
        merge(geometry, clusters, i, j, scratch)
        merged(index, geometry, clusters, i, j)
        value, slot, count = meet(
            index, geometry, clusters, i, threshold, links, hits, values, scratch
        )
        _link(clusters, nodes, links, i, value, slot)
        update(heap, links, ranks, i)
        for hit in range(count):
            _link(clusters, nodes, links, hits[hit], values[hit], i)
            update(heap, links, ranks, hits[hit])
        if many_free(merges):
            return WANTS_REBUILD
    return OUT_OF_BUDGET


@kernel
def _name_neighbors(clusters, nodes, links, n):
    for i in range(n):
        _link(clusters, nodes, links, i, links.values[i], links.neighbors[i])


@kernel
def _link(clusters, nodes, links, i, value, slot):
    links.values[i] = value
    links.neighbors[i] = slot
    links.nodes[i] = nodes[slot] if slot >= 0 else -1
    links.ranks[i] = clusters.ranks[slot] if slot >= 0 else -1


def _carry_links(links: Links, slots: NDArray[np.int64], places: NDArray[np.int64]) -> None:
    """Move the links along with their clusters, and renumber the neighbours."""
    n = slots.size
    for values in links:
        values[:n] = values[slots]
    links.values[n:] = -np.inf
    neighbors = links.neighbors[:n]
    moved = np.where(neighbors >= 0, places[neighbors], -1)
    # A neighbour that is gone: the slot itself stands for it, being no neighbour of its own,
    # and the link stays what it was, a lower bound.
    links.neighbors[:n] = np.where((neighbors >= 0) & (moved < 0), np.arange(n), moved)
