"""The greedy algorithm (the paper's Algorithm 1 with λ), in O(n) memory, many merges at a time.

Each cluster has a *link*, the nearest of the clusters older than itself; a heap knows the smallest
link of all. A link whose neighbour has been merged away is stale: a lower bound, looked up again
when its turn comes. Of each two clusters the younger one has the older in view, so the top of the
heap is the global minimum at every step, also where d is not reducible and a union comes nearer to
some cluster than both its parts were: the union is the younger one. Nobody else has to be told.

One merge at a time would leave nothing for a second thread to do. So merges are made in *batches*:
the pairs that would come next if the unions stayed out of their way. The unions are looked
up together, on all threads, with the stale links that will be wanted soon. A pair holds if no
union of an earlier pair has anything as near in view as that pair is high. Where one has, that
pair and those after it are taken back, from copies of their clusters. The first pair always
holds; the tree is that of one merge at a time, to the bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.heap import Heap, empty_heap, heapify, insert, remove
from fastrbhc._engine.agglomeration.merge_log import (
    FINISHED,
    OUT_OF_BUDGET,
    WANTS_LOOK_UP,
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
from fastrbhc._engine.geometry.contract import TILE, Clusters, copy_slot, free, merge, tile_values
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import (
    Links,
    find,
    merged,
    rebuild_below,
    slot_of_union,
)
from fastrbhc._engine.simd import lowest
from fastrbhc._engine.team import Team, team_of, together
from fastrbhc._engine.threads import Threads

# A batch whose look-ups take longer is shared by Python, which can be interrupted.
_LONG_SECONDS = 0.1

# Pieces that a batch of look-ups is cut into, a thread: as many as keep all busy to the end.
_PIECES = 4


class Batch(NamedTuple):
    """The next merges, and the slots that have to be looked up after them."""

    pairs: NDArray[np.int64]  # (…, 2), slots
    heights: NDArray[np.float64]  # (…,), in their order
    nearest: NDArray[np.float64]  # (…,), the least that is seen from each union
    queue: NDArray[np.int64]  # (…,), the unions, then those whose links are stale
    places: NDArray[np.int64]  # (…,), of each slot in which pair it is, or −1
    saved: NDArray[np.int64]  # (1,), the first of the slots with copies of the pairs' clusters
    counts: NDArray[np.int64]  # (6,), see below


# Entries of Batch.counts: pairs; slots in the queue; look-ups so far, as far as they were made
# in kernels; whether look-ups that Python shares have yet to be settled; pairs at most, and how
# many batches of so many have held since that was set.
_PAIRS, _QUEUED, _LOOK_UPS, _OPEN, _MOST, _HELD = 0, 1, 2, 3, 4, 5

# So many batches have to hold before twice as many pairs are tried again.
_ENCOURAGED = 8

# Kinds of work that are shared.
_LOOK_UP, _MERGE = 0, 1


class Greedy(NamedTuple):
    """All that the algorithm works on; a crew, see `team`."""

    geometry: Any
    clusters: Clusters
    index: Any
    threshold: float
    merges: Merges
    links: Links
    heap: Heap
    batch: Batch
    team: Team

    def work(crew, kind, piece, scratch):
        count = crew.batch.counts[_QUEUED] if kind == _LOOK_UP else crew.batch.counts[_PAIRS]
        pieces = _n_pieces(count, crew.team.size)
        first, last = piece * count // pieces, (piece + 1) * count // pieces
        if kind == _LOOK_UP:
            _look_up(crew, first, last, scratch)
        else:
            _merge_pairs(crew, first, last, scratch)


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
    links = Links(np.full(capacity, np.inf), *(np.full(capacity, -1) for _ in range(3)))
    batch = _no_batch(n, capacity)
    batch.queue[:n] = np.arange(n)[::-1]  # the last have the most to look at
    batch.counts[_QUEUED] = n
    heap = empty_heap(capacity)
    crew = Greedy(
        geometry, clusters, index, threshold, merges, links, heap, batch, team_of(threads.count)
    )

    def look_up(first: int, last: int, scratch: Any) -> None:
        _look_up(crew, first, last, scratch)

    seconds = threads.run(
        look_up,
        n,
        1e-9 * n * clusters.means.shape[0],
        lambda begun: report("neighbours", begun),
    )
    _name_neighbors(clusters, merges.nodes, links, n)
    heapify(heap, links, clusters.ranks, n)

    def advance(budget: int) -> int:
        nonlocal seconds
        before, start = int(batch.counts[_LOOK_UPS]), time.perf_counter()
        longest = max(1, int(_LONG_SECONDS / seconds))
        with threads.helping(crew) as scratch:
            status = _merge_on(crew, longest, budget, scratch)
        looked_up = int(batch.counts[_LOOK_UPS]) - before
        if looked_up > 0:
            seconds = (time.perf_counter() - start) / looked_up
        return int(status)

    def report_merges() -> None:
        report("merging", int(merges.made[0]))

    while True:
        status = in_portions(advance, report_merges)
        if status == FINISHED:
            return merges
        if status == WANTS_LOOK_UP:
            seconds = threads.run(look_up, int(batch.counts[_QUEUED]), seconds)
        else:
            used = int(merges.alive[1])
            slots = close_gaps(geometry, clusters, index, merges, threads)
            _carry_links(links, slots, new_places(slots, used))
            heapify(heap, links, clusters.ranks, merges.alive[1])


def _no_batch(n: int, capacity: int) -> Batch:
    # Half of the spare slots are for copies, of all pairs but the first, half for unions.
    copies = (capacity - n) // 2 // TILE * TILE
    largest = 1 + copies // 2
    return Batch(
        pairs=np.empty((largest, 2), np.int64),
        heights=np.empty(largest),
        nearest=np.empty(largest),
        queue=np.empty(max(n, 3 * largest), np.int64),
        places=np.full(capacity, -1),
        saved=np.array([capacity - copies]),
        counts=np.array([0, 0, 0, 0, largest, 0]),
    )


@kernel
def _merge_on(crew, longest, budget, scratch):
    """Batch after batch, as long as none has more look-ups than the longest."""
    merges, batch = crew.merges, crew.batch
    if batch.counts[_OPEN]:
        batch.counts[_OPEN] = 0
        _settle(crew, scratch)
    while budget > 0:
        room = batch.saved[0] - merges.alive[1]
        if many_free(merges, rebuild_below(crew.index)) or room < _batch_size(merges, batch):
            return WANTS_REBUILD
        _choose(crew)
        if batch.counts[_QUEUED] == 0:
            return FINISHED
        pairs = batch.counts[_PAIRS]
        together(crew, np.int64(_MERGE), _n_pieces(pairs, crew.team.size), scratch)
        _after_merging(crew)
        if batch.counts[_QUEUED] > longest:
            batch.counts[_OPEN] = 1
            return WANTS_LOOK_UP
        budget -= batch.counts[_QUEUED] * merges.alive[1] * crew.clusters.means.shape[0]
        batch.counts[_LOOK_UPS] += batch.counts[_QUEUED]
        together(
            crew, np.int64(_LOOK_UP), _n_pieces(batch.counts[_QUEUED], crew.team.size), scratch
        )
        _settle(crew, scratch)
    return OUT_OF_BUDGET


@kernel
def _n_pieces(count, n_threads):
    """How many pieces the look-ups or merges of a batch are cut into."""
    return min(count, _PIECES * n_threads)


@kernel
def _choose(crew):
    """Take the next pairs from the heap, and the stale links among them and soon after.

    The first link that is stale, or will be once the pairs have merged, ends the pairs: it may
    lead to a pair that comes before the next one. Stale links a little further on are looked up
    in advance, so that the next batch does not end as soon as it begins: without, batches
    were of one pair, and it took as many look-ups in all.
    """
    threshold, merges, links, heap, batch = (
        crew.threshold,
        crew.merges,
        crew.links,
        crew.heap,
        crew.batch,
    )
    ranks, nodes, queue = crew.clusters.ranks, merges.nodes, batch.queue
    pairs, most = 0, _batch_size(merges, batch)
    while heap.size[0] > 0 and pairs < min(most, batch.counts[_MOST]):
        i = heap.slots[0]
        j = links.neighbors[i]
        if j < 0 or links.values[i] >= threshold or _is_stale(nodes, links, batch, i):
            break
        remove(heap, links, ranks, i)
        remove(heap, links, ranks, j)
        batch.pairs[pairs, 0], batch.pairs[pairs, 1] = i, j
        batch.heights[pairs] = links.values[i]
        batch.places[i] = batch.places[j] = pairs
        pairs += 1
    queued = pairs
    # The first places of a heap are not quite its smallest entries, but at hand.
    for position in range(min(heap.size[0], 2 * most)):
        i = heap.slots[position]
        if (
            links.neighbors[i] >= 0
            and links.values[i] < threshold
            and _is_stale(nodes, links, batch, i)
        ):
            queue[queued] = i
            queued += 1
    for q in range(pairs, queued):
        remove(heap, links, ranks, queue[q])
    batch.counts[_PAIRS], batch.counts[_QUEUED] = pairs, queued


@kernel
def _is_stale(nodes, links, batch, i):
    """Whether the neighbour of slot i is gone, or will be once the pairs have merged."""
    j = links.neighbors[i]
    return nodes[j] != links.nodes[i] or batch.places[j] >= 0


@kernel
def _batch_size(merges, batch):
    """How many pairs to take at most, and how many links further on to look at."""
    return min(max(16, merges.alive[0] // 128), batch.pairs.shape[0])


@kernel
def _merge_pairs(crew, first, last, scratch):
    """Merge some of the pairs, which have no slot in common; of all but the first keep copies."""
    clusters, batch, saved = crew.clusters, crew.batch, crew.batch.saved[0] - 2
    for p in range(first, last):
        i, j = batch.pairs[p, 0], batch.pairs[p, 1]
        if p > 0:
            copy_slot(clusters, i, saved + 2 * p)
            copy_slot(clusters, j, saved + 2 * p + 1)
        merge(crew.geometry, clusters, i, j, scratch)


@kernel
def _after_merging(crew):
    """Let the index know of the pairs, queue their unions, and leave hints."""
    geometry, clusters, index = crew.geometry, crew.clusters, crew.index
    merges, links, batch = crew.merges, crew.links, crew.batch
    queue, pairs = batch.queue, batch.counts[_PAIRS]
    for p in range(pairs):
        i, j = batch.pairs[p, 0], batch.pairs[p, 1]
        union = slot_of_union(index, i)
        if union != i:
            copy_slot(clusters, i, union)
            free(clusters, i)
            merges.alive[1] = union + 1
        merged(index, geometry, clusters, union, j)
        queue[p] = union
        # The older part's neighbour was further than the younger part, but perhaps not much.
        likely = links.neighbors[j]
        links.neighbors[union] = -2 - likely if likely >= 0 and likely != i else -1
    for q in range(pairs, batch.counts[_QUEUED]):
        j = links.neighbors[queue[q]]
        # The union that the neighbour went into, or what stands in its place: perhaps that union.
        likely = queue[batch.places[j]] if batch.places[j] >= 0 else j
        links.neighbors[queue[q]] = -2 - likely if likely != queue[q] else -1
    for p in range(pairs):
        batch.places[batch.pairs[p, 0]] = batch.places[batch.pairs[p, 1]] = -1


@kernel
def _look_up(crew, first, last, scratch):
    """Look up a part of the queue, the unions also among the parts of the pairs after them."""
    geometry, clusters, batch = crew.geometry, crew.clusters, crew.batch
    queue, values, saved = batch.queue, crew.links.values, batch.saved[0]
    _find(crew, first, last, scratch)
    pairs = batch.counts[_PAIRS]
    for p in range(first, min(last, pairs)):
        nearest = values[queue[p]]
        for start in range(2 * p // TILE * TILE, 2 * (pairs - 1), TILE):
            near = tile_values(
                geometry, clusters, queue[p], saved + start, batch.heights[pairs - 1], scratch
            )
            while near:
                s = lowest(near)
                near &= near - 1
                if 2 * p <= start + s < 2 * (pairs - 1) and scratch.bounds[s] < nearest:
                    nearest = scratch.bounds[s]
        batch.nearest[p] = nearest


@kernel
def _find(crew, first, last, scratch):
    """Look up a part of the queue among the clusters of the index."""
    find(
        crew.index,
        crew.geometry,
        crew.clusters,
        crew.batch.queue,
        first,
        last,
        True,
        crew.threshold,
        crew.links.values,
        crew.links.neighbors,
        scratch,
    )


@kernel
def _settle(crew, scratch):
    """Record the pairs that hold, take back the others, and put all links into the heap."""
    geometry, clusters, index = crew.geometry, crew.clusters, crew.index
    merges, links, heap, batch = crew.merges, crew.links, crew.heap, crew.batch
    ranks, nodes, queue, saved = clusters.ranks, merges.nodes, batch.queue, batch.saved[0] - 2
    pairs, queued = batch.counts[_PAIRS], batch.counts[_QUEUED]
    holding, nearest = 0, np.inf
    while holding < pairs and batch.heights[holding] < nearest:
        nearest = min(nearest, batch.nearest[holding])
        holding += 1
    for p in range(holding):
        record(
            merges, merges.made[0], batch.pairs[p, 0], batch.pairs[p, 1], queue[p], batch.heights[p]
        )
        made(merges, 1)
    _adapt(batch, holding)
    if holding < pairs:
        for p in range(holding, pairs):
            i, j = batch.pairs[p, 0], batch.pairs[p, 1]
            free(clusters, queue[p])
            copy_slot(clusters, saved + 2 * p, i)
            copy_slot(clusters, saved + 2 * p + 1, j)
            merged(index, geometry, clusters, i, j)
            _link(clusters, nodes, links, i, batch.heights[p], j)
            insert(heap, links, ranks, i)
            insert(heap, links, ranks, j)
        # The others have seen what is not there, and have to look again.
        for q in range(pairs, queued):
            queue[q - pairs + holding] = queue[q]
        queued -= pairs - holding
        for q in range(queued):
            links.neighbors[queue[q]] = -1
        batch.counts[_LOOK_UPS] += queued
        _find(crew, np.int64(0), queued, scratch)
    for q in range(queued):
        i = queue[q]
        _link(clusters, nodes, links, i, links.values[i], links.neighbors[i])
        insert(heap, links, ranks, i)


@kernel
def _adapt(batch, holding):
    """Try fewer pairs where they do not hold, so that few are taken back, and later more again.

    In Bayesian trees a union mostly has its next partner nearer than any pair was before.
    """
    counts = batch.counts
    if holding < counts[_PAIRS]:
        counts[_MOST], counts[_HELD] = holding, 0
    elif holding == counts[_MOST] and holding < batch.pairs.shape[0]:
        counts[_HELD] += 1
        if counts[_HELD] == _ENCOURAGED:
            counts[_MOST], counts[_HELD] = 2 * holding, 0


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
    neighbors = links.neighbors[:n]
    moved = np.where(neighbors >= 0, places[neighbors], -1)
    # A neighbour that is gone: the slot itself stands for it, being no neighbour of its own,
    # and the link stays what it was, a lower bound.
    links.neighbors[:n] = np.where((neighbors >= 0) & (moved < 0), np.arange(n), moved)
