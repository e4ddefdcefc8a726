"""The greedy algorithm (the paper's Algorithm 1 with λ), in O(n) memory.

Each cluster knows its nearest neighbour; a heap knows the nearest pair of all. A pair whose
partner has been merged away stays in the heap as a lower bound and is looked up again only
when it comes to the top. A new cluster c looks at all others once: for its own nearest
neighbour, and for every x that it is nearer to than x's neighbour was. Without the second
part, a dissimilarity that is not reducible could hide the true minimum behind a key that is
too high. With it, the pair on top is the global minimum at every step, for every family.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import kernel
from fastrbhc.agglomerators._merges import (
    FINISHED,
    OUT_OF_BUDGET,
    WANTS_REBUILD,
    Merges,
    close_gaps,
    in_portions,
    many_free,
    no_merges,
    record,
)
from fastrbhc.agglomerators.heap import empty_heap, heapify, remove, sift_down, update
from fastrbhc.geometry import Clusters, merge, new_scratch
from fastrbhc.neighbors._interface import (
    Links,
    find_links,
    nearest,
    nearest_and_undercut,
)


def greedy(
    geometry: Any,
    clusters: Clusters,
    index: Any,
    threshold: float,
    n_threads: int,
    report: Callable[[str, int], None],
) -> Merges:
    """Merge the globally nearest pair until none is nearer than the threshold."""
    n = clusters.weights.size
    merges, heap = no_merges(n), empty_heap(n)
    links = Links(np.empty(n), *(np.empty(n, np.int64) for _ in range(3)))
    hits, values, new_slots = np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64)
    scratch = new_scratch(geometry, clusters.means.shape[0])
    _link_all(geometry, clusters, index, threshold, links, n_threads, report)
    heapify(heap, links, clusters.ranks, n)

    def advance(budget: int) -> int:
        return _merge_on(
            geometry, clusters, index, threshold, merges, links, heap, hits, values, scratch, budget
        )

    def report_merges() -> None:
        report("merging", int(merges.made[0]))

    while in_portions(advance, report_merges) == WANTS_REBUILD:
        used = close_gaps(geometry, clusters, index, merges, new_slots)
        _carry_links(links, new_slots[:used])
        heapify(heap, links, clusters.ranks, merges.alive[1])
    return merges


def _link_all(
    geometry: Any,
    clusters: Clusters,
    index: Any,
    threshold: float,
    links: Links,
    n_threads: int,
    report: Callable[[str, int], None],
) -> None:
    n_features, n = clusters.means.shape
    scratches = [new_scratch(geometry, n_features) for _ in range(n_threads)]
    done = [0]

    def advance(budget: int) -> int:
        start, stop = done[0], min(n, done[0] + n_threads + budget // (n * n_features))
        bounds = np.linspace(start, stop, n_threads + 1).astype(int)
        # Each slot writes its own link only, so the number of threads leaves no trace.
        jobs = [
            pool.submit(find_links, index, geometry, clusters, threshold, first, last, links, own)
            for first, last, own in zip(bounds[:-1], bounds[1:], scratches, strict=True)
        ]
        for job in jobs:
            job.result()
        done[0] = stop
        return FINISHED if stop == n else OUT_OF_BUDGET

    with ThreadPoolExecutor(n_threads) as pool:
        in_portions(advance, lambda: report("neighbours", done[0]))


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
            value, slot = nearest(index, geometry, clusters, i, i + 1, threshold, scratch)
            _link(clusters, nodes, links, i, value, slot)
            sift_down(heap, links, ranks, heap.positions[i])
            continue
        height = links.values[i]
        i, j = max(i, j), min(i, j)
        remove(heap, links, ranks, j)
        record(merges, i, j, height)
        merge(geometry, clusters, i, j, scratch)
        value, slot, count = nearest_and_undercut(
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
def _link(clusters, nodes, links, i, value, slot):
    links.values[i] = value
    links.neighbors[i] = slot
    links.nodes[i] = nodes[slot] if slot >= 0 else -1
    links.ranks[i] = clusters.ranks[slot] if slot >= 0 else -1


def _carry_links(links: Links, new_slots: NDArray[np.int64]) -> None:
    """Move the links along with their clusters, and renumber the neighbours."""
    old = np.flatnonzero(new_slots >= 0)
    new = new_slots[old]
    for values in links:
        values[new] = values[old]
    neighbors = links.neighbors[new]
    moved = np.where(neighbors >= 0, new_slots[neighbors], -1)
    # A neighbour that is gone: the slot itself stands for it, being no neighbour of its own,
    # and the link stays what it was, a lower bound.
    links.neighbors[new] = np.where((neighbors >= 0) & (moved < 0), new, moved)
