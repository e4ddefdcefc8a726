"""The greedy algorithm (the paper's Algorithm 1 with λ), in O(n) memory, many merges at a time.

Each cluster has a *link* to the nearest older cluster, and a heap orders the links. A link whose
neighbour has been merged is stale: it is a lower bound, and is looked up again when it reaches the
top. Every pair is covered by the link of its younger cluster, so the top of the heap is the global
minimum at every step. This holds even if d is not reducible and a union is nearer to some cluster
than both of its parts were: the union is the younger one, and no other link has to change.

Single merges would leave nothing for a second thread to do. So merges are made in *batches*: the
pairs that come next unless a union of the batch intervenes. The neighbours of the unions are looked
up together, on all threads, along with stale links near the top. A pair is confirmed if no union of
an earlier pair has a cluster within the height of that pair. The first pair that is not confirmed,
and all pairs after it, are restored from copies. The first pair of a batch is always confirmed, and
the tree is the same to the bit as with single merges.

The code that chooses the merges is compiled once for all families: look-ups and merges are jobs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from fastrbhc._engine.agglomeration.batches import (
    Batch,
    BatchWork,
    after_merging,
    batch_size,
    choose,
    empty_batch,
    look_up_queue,
    merge_pairs,
    settle,
)
from fastrbhc._engine.agglomeration.driver import (
    FINISHED,
    LONG_SECONDS,
    OUT_OF_BUDGET,
    PIECES_PER_THREAD,
    STUCK,
    WANTS_LOOK_UP,
    WANTS_REBUILD,
    run_interruptibly,
)
from fastrbhc._engine.agglomeration.heap import Heap, empty_heap, heapify
from fastrbhc._engine.agglomeration.links import Links, link_all, no_links, relocate_links
from fastrbhc._engine.agglomeration.merge_log import (
    MergeLog,
    Merges,
    close_gaps,
    empty_log,
    finished,
    many_free,
    new_places,
)
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import Lowered, Queries, Search, look_up, refitting
from fastrbhc._engine.records import Job, record
from fastrbhc._engine.team import Team, parallel_for, team_of
from fastrbhc._engine.threads import Threads


@record
class Greedy:
    """The state of the algorithm, of the same type for all families."""

    log: MergeLog
    clusters: Clusters
    links: Links
    heap: Heap
    batch: Batch
    queries: Queries
    threshold: float
    look_up: Job  # for a range of the queue
    merge: Job  # for a range of the pairs
    note_merge: Job  # for one pair, given as its slots
    rebuild_below: float
    unions_in_new_slots: bool
    lowered: Lowered
    team: Team


def greedy(
    space: Space,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Merges:
    """Merge the globally nearest pair until none is nearer than the threshold."""
    log = empty_log(space.clusters)
    state = _initial_state(space, threshold, log, threads)
    clusters, links, heap, batch = state.clusters, state.links, state.heap, state.batch
    n = log.n_alive
    seconds = threads.run(
        state.look_up,
        n,
        1e-9 * n * clusters.width,
        lambda begun: report("neighbours", begun),
    )
    link_all(clusters, log.nodes, links, n)
    heapify(heap, links, clusters.ranks, n)

    def advance(budget: int) -> int:
        nonlocal seconds
        before, start = batch.n_looked_up, time.perf_counter()
        longest = max(1, int(LONG_SECONDS / seconds))
        with threads.helping(state.team) as scratch:
            status = _advance(state, longest, budget, scratch)
        looked_up = batch.n_looked_up - before
        if looked_up > 0:
            seconds = (time.perf_counter() - start) / looked_up
        return int(status)

    def look_up_batch() -> None:
        nonlocal seconds
        seconds = threads.run(state.look_up, batch.n_queued, seconds)

    def rebuild() -> None:
        used = clusters.n_slots
        slots = close_gaps(clusters, space.index, log, threads)
        relocate_links(links, slots, new_places(slots, used))
        heapify(heap, links, clusters.ranks, clusters.n_slots)

    requests = {WANTS_LOOK_UP: look_up_batch, WANTS_REBUILD: rebuild}
    run_interruptibly(advance, requests, lambda: report("merging", log.n_merges))
    return finished(log)


def _initial_state(space: Space, threshold: float, log: MergeLog, threads: Threads) -> Greedy:
    clusters, capacity, n = space.clusters, space.clusters.weights.size, log.n_alive
    links, batch, scratch = no_links(capacity), empty_batch(n, capacity), threads.scratches[0]
    batch.queue[:n] = np.arange(n)[::-1]  # the last slots have the most older clusters
    batch.n_queued = n
    queries = Queries(batch.queue, links.values, links.neighbors, batch.nearest, threshold, True)
    search = Search(space.index, space.geometry, clusters, queries)
    in_index = Job(look_up, search, scratch)
    work = BatchWork(space.geometry, clusters, batch, links, in_index)
    return Greedy(
        log=log,
        clusters=clusters,
        links=links,
        heap=empty_heap(capacity),
        batch=batch,
        queries=queries,
        threshold=threshold,
        look_up=Job(look_up_queue, work, scratch),
        merge=Job(merge_pairs, work, scratch),
        note_merge=refitting(space.index, clusters, scratch).merge,
        rebuild_below=space.index.rebuild_below,
        unions_in_new_slots=space.index.unions_in_new_slots,
        lowered=space.index.lowered,
        team=team_of(threads.count),
    )


@kernel
def _advance(state, longest, budget, scratch):
    """Run batches until one has more than ``longest`` look-ups."""
    log, clusters, batch, team = state.log, state.clusters, state.batch, state.team
    if batch.unsettled:
        batch.unsettled = False
        if not settle(state, scratch):
            return STUCK
    while budget > 0:
        room = batch.copies - clusters.n_slots
        if many_free(log, clusters, state.rebuild_below) or room < batch_size(log, batch):
            return WANTS_REBUILD
        choose(state)
        if batch.n_queued == 0:
            return FINISHED
        parallel_for(team, state.merge, batch.n_pairs, _n_pieces(batch.n_pairs, team), scratch)
        after_merging(state, scratch)
        queued = batch.n_queued
        if queued > longest:
            batch.unsettled = True
            return WANTS_LOOK_UP
        budget -= queued * clusters.n_slots * clusters.width
        batch.n_looked_up += queued
        parallel_for(team, state.look_up, queued, _n_pieces(queued, team), scratch)
        if not settle(state, scratch):
            return STUCK
    return OUT_OF_BUDGET


@kernel
def _n_pieces(count, team):
    """The number of pieces for the look-ups or merges of a batch."""
    return min(count, PIECES_PER_THREAD * team.size)
