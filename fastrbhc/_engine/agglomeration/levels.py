"""Reciprocal nearest neighbours, level by level.

If d is reducible, two clusters that are each other's nearest neighbour may be merged at any time:
the tree is still the greedy one. A round merges all such pairs below a level, and looks up the
neighbours of the affected clusters, on several threads. When no pair below the level remains, the
level rises to the median of the remaining keys. The clusters active at one level are similar in
size, which keeps queries cheap: a large cluster among single points has to examine many of them.

Every cluster is in the reverse-neighbour list of its nearest neighbour. It leaves that list only
when the neighbour is merged, and then the whole list is read, so that the cost of a round is
proportional to the changes. A cluster whose neighbour was merged keeps its old key, which is a
lower bound of the new one because d is reducible; it is looked up again once the level has passed
that key.

The code that chooses the merges is compiled once for all families: look-ups and merges are jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.driver import (
    FINISHED,
    OUT_OF_BUDGET,
    WANTS_LOOK_UP,
    WANTS_MERGES,
    WANTS_REBUILD,
    run_interruptibly,
)
from fastrbhc._engine.agglomeration.merge_log import (
    MergeLog,
    Merges,
    advance_count,
    close_gaps,
    empty_log,
    finished,
    many_free,
    new_places,
    record_merge,
)
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.geometry.contract import merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.radix_sort import stable_order
from fastrbhc._engine.neighbors.contract import (
    UNKNOWN,
    Queries,
    Refitting,
    Search,
    as_hint,
    hint_of,
    look_up,
    refit,
    refitting,
    touch,
)
from fastrbhc._engine.neighbors.ordering import rank_of_union
from fastrbhc._engine.records import Job, call, record
from fastrbhc._engine.team import Team, parallel_for, team_of
from fastrbhc._engine.threads import Threads
from fastrbhc._engine.traversal import in_order, subtree_maxima

# With fewer keys than this, all remaining merges are one level.
_LAST_LEVEL = 64

# Longer rounds are distributed by Python, which can be interrupted.
_LONG_SECONDS = 0.1

# Number of slots per piece when a level starts.
_STRETCH = 4096

# With at most one pair per this many slots, boxes are refitted pair by pair; otherwise all touched
# boxes are refitted together.
_SLOTS_PER_PAIR = 256

# Pieces of a round per thread, and the smallest number of slots or pairs per piece.
_PIECES, _SMALLEST_PIECE = 4, 16

# Keys are counted by their exponent and the first four bits after it.
_KEY_SHIFT, _KEY_COUNTS = 48, 1 << 15


@record
class ReverseNeighbors:
    """A linked list for every slot, of the slots whose nearest neighbour it is."""

    head: NDArray[np.int32]  # the first slot of each list
    next: NDArray[np.int32]  # the next slot in the same list


@record
class Rounds:
    """The queues and lists from which the merges of a level are chosen."""

    reverse: ReverseNeighbors
    queries: Queries  # values are the keys: d to the neighbour, or a lower bound if stale
    found: NDArray[np.int32]  # slots that have been looked up
    unions: NDArray[np.int32]  # slot of the union, for each pair to be merged
    partners: NDArray[np.int32]  # slot of the other part
    stretches: NDArray[np.int64]  # (…, 2), numbers queued and found per stretch of slots
    counts: NDArray[np.int64]  # number of keys per value of the leading bits
    n_queued: int
    n_found: int
    n_pairs: int
    looked_up: bool  # whether results of the queue have yet to enter the lists
    level: float  # only pairs below it are merged


@record
class Levels:
    """The state of the algorithm, of the same type for all families."""

    log: MergeLog
    clusters: Clusters
    rounds: Rounds
    look_up: Job  # for a range of the queue
    merge: Job  # for a range of the pairs
    start: Job  # for a range of stretches of a new level
    refitting: Refitting
    rebuild_below: float
    team: Team


@record
class Merging:
    """The task of `_merge_pairs`."""

    geometry: Any
    clusters: Clusters
    index: Any
    log: MergeLog
    rounds: Rounds


@record
class LevelStart:
    """The task of `_start_level`."""

    clusters: Clusters
    rounds: Rounds


def levels(
    space: Space,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Merges:
    """Merge reciprocal nearest neighbours by rising levels, up to the threshold."""
    log = empty_log(space.clusters)
    n = log.n_alive
    state = _initial_state(space, threshold, log, threads)
    _merge_by_levels(state, space.index, threads, report)
    del state  # frees memory: neighbours are no longer needed
    return by_level(finished(log), n)


def _initial_state(space: Space, threshold: float, log: MergeLog, threads: Threads) -> Levels:
    clusters, capacity, n = space.clusters, space.clusters.weights.size, log.n_alive
    scratch = threads.scratches[0]
    queries = Queries(
        queue=np.empty(capacity, np.int32),
        values=np.full(capacity, np.inf),
        neighbors=np.full(capacity, UNKNOWN, np.int32),
        cutoff=threshold,
        older=False,
    )
    queries.queue[:n] = np.arange(n)
    reverse = ReverseNeighbors(np.full(capacity, -1, np.int32), np.full(capacity, -1, np.int32))
    most_pairs = capacity // 2 + 1
    rounds = Rounds(
        reverse=reverse,
        queries=queries,
        found=np.empty(capacity, np.int32),
        unions=np.empty(most_pairs, np.int32),
        partners=np.empty(most_pairs, np.int32),
        stretches=np.zeros((-(-capacity // _STRETCH), 2), np.int64),
        counts=np.zeros(_KEY_COUNTS, np.int64),
        n_queued=n,
        n_found=0,
        n_pairs=0,
        looked_up=False,
        level=-np.inf,
    )
    search = Search(space.index, space.geometry, clusters, queries)
    merging = Merging(space.geometry, clusters, space.index, log, rounds)
    return Levels(
        log=log,
        clusters=clusters,
        rounds=rounds,
        look_up=Job(look_up, search, scratch),
        merge=Job(_merge_pairs, merging, scratch),
        start=Job(_start_level, LevelStart(clusters, rounds), scratch),
        refitting=refitting(space.index, clusters, scratch),
        rebuild_below=space.index.rebuild_below,
        team=team_of(threads.count),
    )


def _merge_by_levels(
    state: Levels, index: Any, threads: Threads, report: Callable[[str, int], None]
) -> None:
    log, clusters, rounds = state.log, state.clusters, state.rounds
    seconds_per_query = 1e-9 * log.n_alive * clusters.means.shape[0]
    seconds_per_merge = 1e-6

    def look_up_queue() -> None:
        nonlocal seconds_per_query

        def report_first(begun: int) -> None:
            if log.n_merges == 0:
                report("neighbours", begun)

        seconds_per_query = threads.run(
            state.look_up, rounds.n_queued, seconds_per_query, report_first
        )
        rounds.looked_up = True

    def merge_pairs() -> None:
        nonlocal seconds_per_merge
        seconds_per_merge = threads.run(state.merge, rounds.n_pairs, seconds_per_merge)
        advance_count(log, rounds.n_pairs)
        rounds.n_pairs = 0
        refit(state.refitting, clusters.n_slots, threads)

    def rebuild() -> None:
        used = clusters.n_slots
        slots = close_gaps(clusters, index, log, threads)
        _relocate(rounds, slots, new_places(slots, used))

    def advance(budget: int) -> int:
        longest_queue = int(_LONG_SECONDS / seconds_per_query)
        longest_list = int(_LONG_SECONDS / seconds_per_merge)
        with threads.helping(state.team) as scratch:
            return int(_advance(state, longest_queue, longest_list, scratch))

    def report_merges() -> None:
        if log.n_merges:
            report("merging", log.n_merges)

    look_up_queue()
    requests = {
        WANTS_LOOK_UP: look_up_queue,
        WANTS_MERGES: merge_pairs,
        WANTS_REBUILD: rebuild,
    }
    run_interruptibly(advance, requests, report_merges)


@kernel
def _advance(state, longest_queue, longest_list, scratch):
    """Run rounds until one is too long for a kernel."""
    log, clusters, rounds, team = state.log, state.clusters, state.rounds, state.team
    budget = max(longest_queue, 1)
    while budget > 0:
        if rounds.looked_up:
            _enlist(rounds)
        _pair_up(rounds)
        if rounds.n_pairs > longest_list:
            return WANTS_MERGES
        if rounds.n_pairs > 0:
            _merge_round(state, scratch)
        if log.n_alive < 2:
            return FINISHED
        if many_free(log, clusters, state.rebuild_below):
            return WANTS_REBUILD
        if rounds.n_queued == 0:
            rounds.level = _next_level(rounds, clusters.n_slots)
            if np.isnan(rounds.level):
                return FINISHED
            n_stretches = (clusters.n_slots + _STRETCH - 1) // _STRETCH
            parallel_for(team, state.start, n_stretches, n_stretches, scratch)
            _compact_lists(rounds, n_stretches)
            continue
        if rounds.n_queued > longest_queue:
            return WANTS_LOOK_UP
        budget -= rounds.n_queued
        queued = rounds.n_queued
        parallel_for(team, state.look_up, queued, _n_pieces(queued, team.size), scratch)
        rounds.looked_up = True
    return OUT_OF_BUDGET


@kernel
def _merge_round(state, scratch):
    """Merge the pairs of a round, and update the index."""
    rounds, refitting, team, pairs = state.rounds, state.refitting, state.team, state.rounds.n_pairs
    parallel_for(team, state.merge, pairs, _n_pieces(pairs, team.size), scratch)
    advance_count(state.log, pairs)
    if pairs * _SLOTS_PER_PAIR > state.clusters.n_slots:
        parts = refitting.n_parts
        parallel_for(team, refitting.parts, parts, parts, scratch)
        call(refitting.parts, parts, parts + 1, scratch)
    else:
        for p in range(pairs):
            call(refitting.merge, np.int64(rounds.unions[p]), np.int64(rounds.partners[p]), scratch)
    rounds.n_pairs = 0


@kernel
def _n_pieces(count, n_threads):
    """The number of pieces for ``count`` slots or pairs."""
    return min(1 + count // _SMALLEST_PIECE, _PIECES * n_threads)


@kernel
def _next_level(rounds, n_slots):
    """A level above half of the keys, or slightly more; NaN if there are no keys.

    Keys are counted by their leading bits: one pass, without a copy, and the order of the slots
    does not matter.
    """
    keys, counts, threshold = rounds.queries.values, rounds.counts, rounds.queries.cutoff
    for box in range(counts.size):
        counts[box] = 0
    total = 0
    for x in range(n_slots):
        if keys[x] < threshold:
            total += 1
            counts[keys[x].view(np.int64) >> _KEY_SHIFT] += 1
    if total == 0:
        return np.nan
    if total < _LAST_LEVEL:
        return threshold
    box, below = 0, counts[0]
    while 2 * below < total:
        box += 1
        below += counts[box]
    return min(np.int64((box + 1) << _KEY_SHIFT).view(np.float64), threshold)


@kernel
def _enlist(rounds):
    """Enter the slots that have been looked up into the lists of their neighbours."""
    reverse, queries, count = rounds.reverse, rounds.queries, rounds.n_queued
    for q in range(count):
        x = queries.queue[q]
        y = queries.neighbors[x]
        rounds.found[q] = x
        if y >= 0:
            reverse.next[x] = reverse.head[y]
            reverse.head[y] = x
    rounds.n_queued, rounds.n_found, rounds.looked_up = 0, count, False


@kernel
def _start_level(task, first, last, scratch):
    """Queue stale slots below the level, and find the reciprocal pairs below it.

    Each stretch writes to its own part of the lists, so that threads can share them.
    """
    rounds, used = task.rounds, task.clusters.n_slots
    level, keys, neighbors = rounds.level, rounds.queries.values, rounds.queries.neighbors
    for stretch in range(first, last):
        start = stretch * _STRETCH
        n_queued, n_found = start, start
        for x in range(start, min(start + _STRETCH, used)):
            if keys[x] < level:
                y = neighbors[x]
                if y < 0:
                    rounds.queries.queue[n_queued] = x
                    n_queued += 1
                elif x < y and neighbors[y] == x:
                    rounds.found[n_found] = x
                    n_found += 1
        rounds.stretches[stretch, 0] = n_queued - start
        rounds.stretches[stretch, 1] = n_found - start


@kernel
def _compact_lists(rounds, n_stretches):
    """Join the lists of all stretches."""
    queue, found, stretches = rounds.queries.queue, rounds.found, rounds.stretches
    n_queued, n_found = 0, 0
    for stretch in range(n_stretches):
        start = stretch * _STRETCH
        for x in range(start, start + stretches[stretch, 0]):
            queue[n_queued] = queue[x]
            n_queued += 1
        for x in range(start, start + stretches[stretch, 1]):
            found[n_found] = found[x]
            n_found += 1
    rounds.n_queued, rounds.n_found = n_queued, n_found


@kernel
def _pair_up(rounds):
    """Find pairs among the slots found; queue unions and slots whose neighbour is merged."""
    queries, reverse, level = rounds.queries, rounds.reverse, rounds.level
    keys, neighbors, queue = queries.values, queries.neighbors, queries.queue
    n_queued, pairs = rounds.n_queued, 0
    for f in range(rounds.n_found):
        x = np.int64(rounds.found[f])
        y = np.int64(neighbors[x])
        if not (keys[x] < level and y >= 0 and neighbors[y] == x):
            continue
        i, j = min(x, y), max(x, y)
        for part in (i, j):
            z = np.int64(reverse.head[part])
            reverse.head[part] = -1
            while z >= 0:
                if z != i and z != j:
                    neighbors[z] = as_hint(i)
                    if keys[z] < level:
                        queue[n_queued] = z
                        n_queued += 1
                z = np.int64(reverse.next[z])
            neighbors[part] = UNKNOWN
        keys[j] = np.inf
        rounds.unions[pairs], rounds.partners[pairs] = i, j
        pairs += 1
        queue[n_queued] = i
        n_queued += 1
    rounds.n_queued, rounds.n_found, rounds.n_pairs = n_queued, 0, pairs


@kernel
def _merge_pairs(merging, first, last, scratch):
    """Merge a range of the pairs, which have no slot in common."""
    log, rounds, clusters = merging.log, merging.rounds, merging.clusters
    n_leaves = log.heights.size + 1
    for pair in range(first, last):
        i, j = np.int64(rounds.unions[pair]), np.int64(rounds.partners[pair])
        place, height = log.n_merges + pair, rounds.queries.values[i]
        record_merge(log, n_leaves, place, i, j, i, height)
        merge(merging.geometry, clusters, i, j, scratch)
        touch(merging.index, i, j)


def by_level(merges: Merges, n: int) -> Merges:
    """The merges in the order of their heights, which is valid because d is reducible.

    So the order does not depend on slots or rounds. Of several merges at the same height, those
    with the shortest path below come first, and of these the one with the smallest rank.
    """
    children, heights = merges
    levels = subtree_maxima(children, heights, n)
    order = stable_order(levels)
    tied = levels[order[1:]] == levels[order[:-1]]
    if tied.any():
        places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
        some = order[places]
        depths, ranks = _depths_and_ranks(children, n)
        order[places] = some[np.lexsort((ranks[some], depths[some], levels[some]))]
    return Merges(in_order(children, order, n), heights[order])


def _depths_and_ranks(
    children: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of merges on the longest path below each merge, and its smaller rank.

    A leaf is numbered by its rank, and no two merges have the same smaller rank.
    """
    depths, smaller, unions = np.zeros((3, children.shape[0]), np.int64)
    _find_depths_and_ranks(children, n, depths, smaller, unions)
    return depths, smaller


@kernel
def _find_depths_and_ranks(children, n, depths, smaller, unions):
    for i in range(children.shape[0]):
        a, b = children[i, 0] - n, children[i, 1] - n
        rank_a = unions[a] if a >= 0 else a + n
        rank_b = unions[b] if b >= 0 else b + n
        smaller[i], unions[i] = min(rank_a, rank_b), rank_of_union(rank_a, rank_b)
        if a >= 0:
            depths[i] = max(depths[i], depths[a] + 1)
        if b >= 0:
            depths[i] = max(depths[i], depths[b] + 1)


def _relocate(rounds: Rounds, slots: NDArray[np.int64], places: NDArray[np.int64]) -> None:
    """Move neighbours and lists along with their clusters."""
    n, queries, reverse = slots.size, rounds.queries, rounds.reverse
    for values in (queries.values, queries.neighbors, reverse.head, reverse.next):
        values[:n] = np.take(values, slots)
    _remap_slots(rounds, n, places)
    queries.values[n:] = np.inf


@kernel
def _remap_slots(rounds, n, places):
    """Renumber neighbours and lists by their new slots."""
    neighbors, reverse = rounds.queries.neighbors, rounds.reverse
    for x in range(n):
        y = np.int64(neighbors[x])
        if y >= 0:
            neighbors[x] = places[y]
        elif y != UNKNOWN:
            # The slot of a hint may have been merged, and places is −1 there.
            neighbors[x] = as_hint(places[hint_of(y)])
        if reverse.head[x] >= 0:
            reverse.head[x] = places[reverse.head[x]]
        if reverse.next[x] >= 0:
            reverse.next[x] = places[reverse.next[x]]
    for q in range(rounds.n_queued):
        rounds.queries.queue[q] = places[rounds.queries.queue[q]]
