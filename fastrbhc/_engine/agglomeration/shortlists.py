"""Greedy merging among near neighbours only, for rows that are too wide and too many to search.

Each cluster has a *shortlist* of clusters that are near to it, in the order of d. At every step the
nearest pair of all lists merges, by the exact d. The list of a union has the nearest of those on
the lists of both parts, as many as there is room for.

What an entry says may be out of date, because a cluster has merged. Then its value is d from the
time before. If d is reducible and all neighbours are known, that is a lower bound: so an entry is
looked at again only when it is the first of its list. Otherwise it is a guess, and a pair may be
found a little late. This saves most values of d: some 30 per merge are computed with 15
neighbours each (100,000 rows in 50 columns), where lists that keep all neighbours of both parts
needed 100 (50,000 rows), and more for larger clusters. Costs of cuts were as low.

What is lost are pairs that are on neither list. So the tree is approximate, and clusters whose
lists are empty are left, even if they are near to one another.

The code that chooses the merges is compiled once for all families, as in `contraction`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.driver import (
    FINISHED,
    OUT_OF_BUDGET,
    WANTS_REBUILD,
    run_interruptibly,
)
from fastrbhc._engine.agglomeration.link_queue import (
    LinkQueue,
    drop_empty,
    empty_queue,
    order_of_pair,
    push,
    refill,
    remove_first,
)
from fastrbhc._engine.agglomeration.merge_log import MergeLog, advance_count, record_merge
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.clusters.segments import Segments, compact_slots, lacks_room
from fastrbhc._engine.geometry.contract import dissimilarity, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.ordering import comes_before
from fastrbhc._engine.prefetch import prefetch
from fastrbhc._engine.records import Job, call, record
from fastrbhc._engine.threads import Threads

_LAST_STAMP = 2**31 - 2

# Memory is asked for so many entries of a list ahead, and numbers of a cache line.
_AHEAD, _LINE = 6, 8


@record
class Shortlists:
    """The lists, and what is known of each slot."""

    slots: NDArray[np.int32]  # (n, room), the nearest first
    nodes: NDArray[np.int32]  # (n, room), what they held when d was computed
    values: NDArray[np.float64]  # (n, room), d
    counts: NDArray[np.int32]  # (n,), the length of each list
    owners: NDArray[np.int32]  # (n,), the slot that a slot was merged into, or itself
    held: NDArray[np.int32]  # (n,), the node of the tree in each slot, −1 for a free slot
    marks: NDArray[np.int32]  # (n,), the last search that came by
    found: NDArray[np.int32]  # (room,), the candidates for a list
    known: NDArray[np.float64]  # (room,), d to them; NaN if it is to be computed
    stamp: int  # the number of searches
    computed: int  # the number of values of d in the last search


@record
class Lookups:
    """The task of the jobs."""

    geometry: Any
    clusters: Clusters
    lists: Shortlists
    given: NDArray[np.int32]  # (n, k), neighbours to begin with; −1 for none
    queue: LinkQueue


@record
class ShortlistMerging:
    """The state of the algorithm, of the same type for all families."""

    log: MergeLog
    lists: Shortlists
    queue: LinkQueue
    weights: NDArray[np.float64]
    ranks: NDArray[Any]
    segments: Segments
    width: int
    enough: int  # stop if so many clusters are left
    merge: Job  # for one pair, given as its slots
    settle: Job  # the list of a slot
    ask: Job  # for the memory of the next links


def merge_along_shortlists(
    geometry: Any,
    clusters: Clusters,
    given: NDArray[np.int32],
    room: int,
    enough: int,
    log: MergeLog,
    threads: Threads,
    report: Callable[[str, int], None],
) -> NDArray[np.int64]:
    """Merge the nearest pair of all lists until ``enough`` clusters are left, or no list has any.

    ``given`` has the neighbours of each slot to begin with, ``room`` is the longest list. The log
    has the node of each slot, and merges are added to it. Returns the slot that each slot has
    become part of; those that are left are their own.
    """
    n = clusters.n_slots
    lists = _new_lists(n, room, log.nodes[:n])
    queue = empty_queue(n)
    task = Lookups(geometry, clusters, lists, given, queue)
    scratch = threads.scratches[0]
    own_log = MergeLog(log.children, log.heights, lists.held, log.n_merges, log.n_alive)
    state = ShortlistMerging(
        log=own_log,
        lists=lists,
        queue=queue,
        weights=clusters.weights,
        ranks=clusters.ranks,
        segments=clusters.segments,
        width=clusters.width,
        enough=enough,
        merge=Job(_merge, task, scratch),
        settle=Job(_settle, task, scratch),
        ask=Job(_ask_for_links, task, scratch),
    )
    per_slot = 1e-8 * clusters.width * given.shape[1]
    threads.run(
        Job(_begin_lists, task, scratch), n, per_slot, lambda begun: report("neighbours", begun)
    )
    drop_empty(queue.far, n)

    def advance(budget: int) -> int:
        return int(_advance(state, budget, scratch))

    def rebuild() -> None:
        compact_slots(clusters.segments, np.flatnonzero(lists.held >= 0))

    run_interruptibly(
        advance, {WANTS_REBUILD: rebuild}, lambda: report("merging", own_log.n_merges)
    )
    log.n_merges, log.n_alive = own_log.n_merges, own_log.n_alive
    log.nodes[:n] = lists.held
    return _roots(lists.owners.astype(np.int64))


def _roots(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """The end of each path to an owner."""
    while True:
        above = owners[owners]
        if np.array_equal(above, owners):
            return above
        owners = above


def _new_lists(n: int, room: int, nodes: NDArray[np.int64]) -> Shortlists:
    table = np.full((n, 4), -1, np.int32)  # a slot is rarely near in memory: one cache line
    owners, held, marks, counts = (table[:, k] for k in range(4))
    owners[:], held[:], counts[:] = np.arange(n), nodes, 0
    return Shortlists(
        slots=np.empty((n, room), np.int32),
        nodes=np.empty((n, room), np.int32),
        values=np.empty((n, room)),
        counts=counts,
        owners=owners,
        held=held,
        marks=marks,
        found=np.empty(room, np.int32),
        known=np.empty(room),
        stamp=0,
        computed=0,
    )


@kernel
def _begin_lists(task, first, last, scratch):
    """Make the lists of a range of slots, and the links to their first entries."""
    lists, given, far = task.lists, task.given, task.queue.far
    for i in range(first, last):
        for place in range(given.shape[1]):
            j = np.int64(given[i, place])
            if j >= 0 and j != i:
                value = dissimilarity(task.geometry, task.clusters, i, j, np.inf, scratch)
                _insert(lists, task.clusters.ranks, i, j, value)
        far.values[i], far.orders[i] = np.inf, 0
        far.slots[i], far.nodes[i] = i, lists.held[i]
        if lists.counts[i] > 0:
            ranks = task.clusters.ranks
            far.values[i] = lists.values[i, 0]
            far.orders[i] = order_of_pair(ranks[i], ranks[lists.slots[i, 0]])


@kernel
def _advance(state, budget, scratch):
    """Take one link after another from the queue, until the budget is spent or none is left."""
    log, queue, lists, weights = state.log, state.queue, state.lists, state.weights
    near, held = queue.near, lists.held
    n_leaves = log.heights.size + 1
    while budget > 0:
        if log.n_alive <= state.enough:
            return FINISHED
        if near.size == 0:
            budget -= queue.far.size
            refill(queue, held)
            if near.size == 0:
                return FINISHED
        if lacks_room(state.segments):
            return WANTS_REBUILD
        i, node, value = np.int64(near.slots[0]), near.nodes[0], near.values[0]
        remove_first(near)
        if held[i] != node:  # it was merged with a cluster whose link was before
            continue
        if near.size > 0:
            call(state.ask, 0, min(near.size, 3), scratch)
        j = np.int64(lists.slots[i, 0])
        if held[j] == lists.nodes[i, 0]:
            if weights[i] < weights[j]:  # paths to owners stay short
                i, j = j, i
            record_merge(log, n_leaves, log.n_merges, i, j, i, value)
            advance_count(log, 1)
            call(state.merge, i, j, scratch)
            lists.owners[j] = i
            _unite_lists(lists, i, j)
        call(state.settle, i, i + 1, scratch)
        if lists.counts[i] > 0:
            order = order_of_pair(state.ranks[i], state.ranks[lists.slots[i, 0]])
            push(queue, lists.values[i, 0], order, i, held[i])
        budget -= (1 + lists.computed) * state.width
    return OUT_OF_BUDGET


@kernel
def _unite_lists(lists, i, j):
    """Let slot i have the nearest entries of its list and that of slot j, which was merged into it.

    d to them is not computed yet: what it was from the part is taken for a lower bound.
    """
    marks, found, known = lists.marks, lists.found, lists.known
    if lists.stamp >= _LAST_STAMP:
        for slot in range(marks.size):
            marks[slot] = -1
        lists.stamp = 0
    lists.stamp += 1
    stamp, count, room = lists.stamp, 0, lists.slots.shape[1]
    marks[i] = stamp
    p, q, p_end, q_end = 0, 0, np.int64(lists.counts[i]), np.int64(lists.counts[j])
    while count < room and (p < p_end or q < q_end):
        if q >= q_end or (p < p_end and lists.values[i, p] <= lists.values[j, q]):
            slot, value = np.int64(lists.slots[i, p]), lists.values[i, p]
            p += 1
        else:
            slot, value = np.int64(lists.slots[j, q]), lists.values[j, q]
            q += 1
        slot = _owner(lists.owners, slot)
        if marks[slot] != stamp:
            marks[slot] = stamp
            found[count], known[count] = slot, value
            count += 1
    for place in range(count):
        lists.slots[i, place], lists.values[i, place] = found[place], known[place]
        lists.nodes[i, place] = -1
    lists.counts[i] = count


@kernel
def _owner(owners, slot):
    """The slot of the cluster that a slot belongs to; the path there is halved."""
    above = np.int64(owners[slot])
    while above != slot:
        top = np.int64(owners[above])
        owners[slot] = top
        slot, above = top, np.int64(owners[top])
    return slot


@kernel
def _merge(task, i, j, scratch):
    merge(task.geometry, task.clusters, i, j, scratch)


@kernel
def _settle(task, i, last, scratch):
    """Compute d to the first entry of a list until it is the nearest."""
    lists = task.lists
    slots, nodes, held = lists.slots, lists.nodes, lists.held
    task.lists.computed = 0
    for place in range(min(_AHEAD, np.int64(lists.counts[i]))):
        if nodes[i, place] < 0:
            _ask_for(task.clusters, slots[i, place])
    while lists.counts[i] > 0:
        if lists.counts[i] > _AHEAD and nodes[i, _AHEAD] < 0:
            _ask_for(task.clusters, slots[i, _AHEAD])
        j = _owner(lists.owners, np.int64(slots[i, 0]))
        if slots[i, 0] == j and nodes[i, 0] == held[j]:
            return
        _remove_first_entry(lists, i)
        if j != i and not _is_listed(lists, i, j):
            lists.computed += 1
            value = dissimilarity(task.geometry, task.clusters, i, j, np.inf, scratch)
            _insert(lists, task.clusters.ranks, i, j, value)


@kernel
def _ask_for_links(task, first, last, scratch):
    """Ask for the lists of a range of the heap's links, and for the means that the first needs."""
    near, lists = task.queue.near, task.lists
    for place in range(first, last):
        slot = np.int64(near.slots[place])
        for k in range(0, lists.slots.shape[1], 2 * _LINE):
            prefetch(lists.slots[slot], k)
            prefetch(lists.nodes[slot], k)
            prefetch(lists.values[slot], k)
            prefetch(lists.values[slot], k + _LINE)
    slot = np.int64(near.slots[first])
    _ask_for(task.clusters, slot)
    _ask_for(task.clusters, lists.slots[slot, 0])


@kernel
def _ask_for(clusters, slot):
    """Ask for the mean of a cluster, in whatever order means are stored."""
    means, residuals = clusters.means[:, slot], clusters.residuals[:, slot]
    for k in range(0, means.size, _LINE):
        prefetch(means, k)
        prefetch(residuals, k)


@kernel
def _remove_first_entry(lists, i):
    slots, nodes, values = lists.slots, lists.nodes, lists.values
    lists.counts[i] -= 1
    for place in range(lists.counts[i]):
        slots[i, place], nodes[i, place] = slots[i, place + 1], nodes[i, place + 1]
        values[i, place] = values[i, place + 1]


@kernel
def _is_listed(lists, i, j):
    """Whether the list of slot i has slot j as it is now."""
    for place in range(lists.counts[i]):
        if lists.slots[i, place] == j and lists.nodes[i, place] == lists.held[j]:
            return True
    return False


@kernel
def _insert(lists, ranks, i, j, value):
    """Put slot j into the list of slot i, if it is near enough."""
    slots, nodes, values, room = lists.slots, lists.nodes, lists.values, lists.slots.shape[1]
    count = np.int64(lists.counts[i])
    limit = values[i, room - 1] if count == room else np.inf
    if not value < limit:
        return
    place = min(count, room - 1)
    while place > 0 and comes_before(
        value, ranks[j], values[i, place - 1], ranks[slots[i, place - 1]]
    ):
        slots[i, place], nodes[i, place] = slots[i, place - 1], nodes[i, place - 1]
        values[i, place] = values[i, place - 1]
        place -= 1
    slots[i, place], nodes[i, place], values[i, place] = j, lists.held[j], value
    lists.counts[i] = min(count + 1, room)
