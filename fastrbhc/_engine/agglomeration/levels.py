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

from fastrbhc._engine.agglomeration.driver import (
    FINISHED,
    LONG_SECONDS,
    OUT_OF_BUDGET,
    PIECES_PER_THREAD,
    STUCK,
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
from fastrbhc._engine.agglomeration.rounds import (
    STRETCH,
    LevelStart,
    Rounds,
    compact_lists,
    enlist,
    new_rounds,
    next_level,
    pair_up,
    queue_contradicted,
    relocate,
    settle,
    start_level,
)
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.geometry.contract import merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import (
    Refitting,
    Search,
    look_up,
    refit,
    refitting,
    touch,
)
from fastrbhc._engine.records import Job, call, record
from fastrbhc._engine.team import Team, parallel_for, team_of
from fastrbhc._engine.threads import Threads

# With more than one pair per this many slots, all touched boxes are refitted together; otherwise
# boxes are refitted pair by pair.
_SLOTS_PER_PAIR = 256

# The smallest number of slots or pairs per piece of a round.
_SMALLEST_PIECE = 16


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
    one_sided: bool
    team: Team


@record
class Merging:
    """The task of `_merge_pairs`."""

    geometry: Any
    clusters: Clusters
    index: Any
    log: MergeLog
    rounds: Rounds


def levels(
    space: Space,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Merges:
    """Merge reciprocal nearest neighbours by rising levels, up to the threshold.

    The merges are in the order of the rounds; `merge_order` has the one of the greedy tree.
    """
    return finished(log_of_levels(space, threshold, threads, report))


def log_of_levels(
    space: Space,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> MergeLog:
    """The merges in the order of the rounds, and which node each slot holds afterwards."""
    log = empty_log(space.clusters)
    state = _initial_state(space, threshold, log, threads)
    _merge_by_levels(state, space.index, threads, report)
    return log


def _initial_state(space: Space, threshold: float, log: MergeLog, threads: Threads) -> Levels:
    clusters, capacity, n = space.clusters, space.clusters.weights.size, log.n_alive
    scratch = threads.scratches[0]
    rounds = new_rounds(n, capacity, threshold)
    search = Search(space.index, space.geometry, clusters, rounds.queries)
    merging = Merging(space.geometry, clusters, space.index, log, rounds)
    return Levels(
        log=log,
        clusters=clusters,
        rounds=rounds,
        look_up=Job(look_up, search, scratch),
        merge=Job(_merge_pairs, merging, scratch),
        start=Job(start_level, LevelStart(clusters, rounds), scratch),
        refitting=refitting(space.index, clusters, scratch),
        rebuild_below=space.index.rebuild_below,
        one_sided=getattr(space.index, "one_sided", False),
        team=team_of(threads.count),
    )


def _merge_by_levels(
    state: Levels, index: Any, threads: Threads, report: Callable[[str, int], None]
) -> None:
    log, clusters, rounds = state.log, state.clusters, state.rounds
    seconds_per_query = 1e-9 * log.n_alive * clusters.width
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
        rounds.n_pairs = rounds.n_corrections = 0
        refit(state.refitting, clusters.n_slots, threads)

    def rebuild() -> None:
        used = clusters.n_slots
        slots = close_gaps(clusters, index, log, threads)
        relocate(rounds, slots, new_places(slots, used))

    def advance(budget: int) -> int:
        longest_queue = int(LONG_SECONDS / seconds_per_query)
        longest_list = int(LONG_SECONDS / seconds_per_merge)
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
            enlist(rounds)
        pair_up(rounds)
        if rounds.n_pairs > longest_list:
            return WANTS_MERGES
        if rounds.n_pairs > 0:
            _merge_round(state, scratch)
        if log.n_alive < 2:
            return FINISHED
        if many_free(log, clusters, state.rebuild_below):
            return WANTS_REBUILD
        if rounds.n_queued == 0:
            rounds.level = next_level(rounds, clusters.n_slots)
            if np.isnan(rounds.level):
                return FINISHED
            n_stretches = (clusters.n_slots + STRETCH - 1) // STRETCH
            parallel_for(team, state.start, n_stretches, n_stretches, scratch)
            compact_lists(rounds, n_stretches)
            idle = rounds.n_queued + rounds.n_found == 0
            if idle and state.one_sided:
                idle = settle(rounds, clusters.n_slots) == 0
            if idle:
                queue_contradicted(rounds, clusters.n_slots)
                # Otherwise the cluster with the smallest key has a reciprocal neighbour. Each
                # correction lowers a key, so that there are few of them if d is symmetric.
                if rounds.n_queued == 0 or rounds.n_corrections > log.n_alive:
                    return STUCK
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
    rounds.n_corrections = 0
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
    return min(1 + count // _SMALLEST_PIECE, PIECES_PER_THREAD * n_threads)


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
