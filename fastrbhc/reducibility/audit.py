"""Exact counts of the violations of reducibility in a tree, by repeating its merges.

When a and b are merged into c, another cluster x violates reducibility if c is nearer to it than
both parts were: d(c, x) < min(d(a, x), d(b, x)). For any φ, by writing out f(a) + f(b) − f(a∪b)
everywhere,

    d(c, x) − d(a, x) = d(a∪x, b) − d(a, b),        and the same with a and b exchanged.

So x violates it iff both d(a∪x, b) and d(b∪x, a) are below the height d(a, b) of the merge: adding
x moves a towards b, and b towards a. A lower bound of either rules out x, or all x in a box (see
``violation_bounds`` and ``box_violation_bound`` in `contract`); the definition decides the rest.

The merges of a finished tree are repeated, in their order, on a separate index. *Batches* of
merges, none of which needs the union of another, are searched on all threads: for the p-th merge of
a batch, the active clusters are those in the index without the parts of the earlier pairs, and the
unions of these pairs, which are in spare slots. Then the merges of the batch are made one by one.
If a merge has violations, they are examined once more before it is made, among the clusters active
then: how large they are, and whether they have consequences.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.driver import (
    FINISHED,
    OUT_OF_BUDGET,
    STUCK,
    WANTS_REBUILD,
    run_interruptibly,
)
from fastrbhc._engine.agglomeration.merge_log import MergeLog, close_gaps, many_free
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters, copy_slot, free
from fastrbhc._engine.clusters.segments import most_entries
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import (
    UNKNOWN,
    Queries,
    Search,
    look_up,
    refitting,
)
from fastrbhc._engine.records import Job, call, record
from fastrbhc._engine.team import Team, parallel_for, team_of
from fastrbhc._engine.threads import Threads
from fastrbhc.reducibility.examination import (
    Batch,
    Examination,
    Sample,
    Tally,
    examine,
    search,
    unite,
)

# The most merges per batch, and the most pairs times columns that a batch may examine.
_LARGEST_BATCH, _MOST_PAIRS = 64, 20_000_000

# Parts of the index that threads share if a batch has too few merges to keep them busy, as in a
# chain, where each merge needs the one before.
_PARTS = 16


@record
class Replay:
    """The state of the audit, of the same type for all families."""

    clusters: Clusters
    log: MergeLog
    slots: NDArray[np.int64]  # (n + m,), the slot of each active node
    batch: Batch
    sample: Sample
    unite: Job  # for a range of the batch
    search: Job  # for a range of the batch's merges times parts of the index
    examine: Job  # for one merge of the batch
    note_merge: Job  # for one pair, given as its slots
    rebuild_below: float
    team: Team


def audit_merges(
    space: Space,
    children: NDArray[np.int64],
    heights: NDArray[np.float64],
    sample: NDArray[np.int64] | None,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Tally:
    """Repeat the merges and count violations; clusters and index are overwritten.

    A sample lists triples by number: first the triples of the first merge, then of the second, …
    """
    clusters = space.clusters
    n, m, capacity = clusters.n_slots, heights.size, clusters.weights.size
    slots = np.full(n + m, -1, np.int64)
    slots[clusters.ranks[:n]] = np.arange(n)
    tally = Tally(
        violations=np.zeros(m, np.int64),
        consequential=np.zeros(m, np.int64),
        deficits=np.zeros(m),
        n_premise_holds=0,
        worst_merge=-1,
        worst_node=-1,
    )
    log = MergeLog(children, heights, clusters.ranks.copy(), 0, n)
    triples = _by_merge(sample, n, m, capacity)
    # Two spare slots per merge, behind the last leaf that may contain a cluster.
    largest = min(_LARGEST_BATCH, (capacity - -(-n // LEAF_SIZE) * LEAF_SIZE) // 2)
    batch = Batch(
        pairs=np.empty((largest, 2), np.int64),
        found=np.zeros((largest, _PARTS), np.int64),
        pair_of_slot=np.full(capacity, -1),
        unions=capacity - 2 * largest,
        size=0,
        n_parts=1,
    )
    replay = _new_replay(space, log, slots, batch, triples, tally, threads)

    def advance(budget: int) -> int:
        with threads.helping(replay.team) as scratch:
            return int(_advance(replay, budget, scratch))

    def rebuild() -> None:
        close_gaps(clusters, space.index, log, threads)
        alive = log.n_alive
        slots[log.nodes[:alive]] = np.arange(alive)
        triples.alive[:alive] = triples.positions[:alive] = np.arange(alive)

    run_interruptibly(advance, {WANTS_REBUILD: rebuild}, lambda: report("audit", log.n_merges))
    return tally


def _new_replay(
    space: Space,
    log: MergeLog,
    slots: NDArray[np.int64],
    batch: Batch,
    sample: Sample,
    tally: Tally,
    threads: Threads,
) -> Replay:
    clusters, index, scratch = space.clusters, space.index, threads.scratches[0]
    capacity = clusters.weights.size
    queries = Queries(
        queue=np.zeros(1, np.int64),
        values=np.empty(capacity),
        neighbors=np.full(capacity, UNKNOWN),
        nearest=np.empty(0),
        cutoff=np.inf,
        halved=False,
    )
    nearest = Job(look_up, Search(index, space.geometry, clusters, queries), scratch)
    examination = Examination(
        space.geometry,
        clusters,
        index,
        log,
        batch,
        sample,
        tally,
        queries,
        nearest,
    )
    return Replay(
        clusters=clusters,
        log=log,
        slots=slots,
        batch=batch,
        sample=sample,
        unite=Job(unite, examination, scratch),
        search=Job(search, examination, scratch),
        examine=Job(examine, examination, scratch),
        note_merge=refitting(index, clusters, scratch).merge,
        rebuild_below=index.rebuild_below,
        team=team_of(threads.count),
    )


def _by_merge(sample: NDArray[np.int64] | None, n: int, m: int, capacity: int) -> Sample:
    alive, positions = np.arange(n), np.arange(capacity)
    if sample is None:
        return Sample(np.empty(0, np.int64), np.empty(0, np.int64), alive, positions)
    others = n - 2 - np.arange(m)
    ends = np.cumsum(others)
    sample = np.sort(sample)
    of_merge = np.searchsorted(ends, sample, side="right")
    starts = np.searchsorted(of_merge, np.arange(m + 1))
    return Sample(starts, sample - (ends - others)[of_merge], alive, positions)


@kernel
def _advance(replay, budget, scratch):
    """Run batches until the budget is spent."""
    log, batch, team, clusters = replay.log, replay.batch, replay.team, replay.clusters
    n_columns = clusters.width
    while budget > 0:
        if log.n_merges == log.heights.size:
            return FINISHED
        if many_free(log, clusters, replay.rebuild_below):
            return WANTS_REBUILD
        count = _choose(replay, budget)
        if count == 0:
            return STUCK
        batch.size = count
        batch.n_parts = 1 if team.size == 1 or count >= 4 * team.size else _PARTS
        parallel_for(team, replay.unite, count, count, scratch)
        if replay.sample.starts.size == 0:
            pieces = count * batch.n_parts
            parallel_for(team, replay.search, pieces, pieces, scratch)
            budget -= count * clusters.n_slots * n_columns
        budget -= count * n_columns
        for p in range(count):
            _make(replay, p, scratch)
    return OUT_OF_BUDGET


@kernel
def _choose(replay, budget):
    """Take the next merges, up to the first that needs a union of the batch; how many.

    Nor more than the budget allows, however dear a pair is: with full covariances and many columns
    a batch may take seconds.
    """
    log, batch, slots, clusters = replay.log, replay.batch, replay.slots, replay.clusters
    pairs_each = clusters.n_slots * clusters.width
    most = min(batch.pairs.shape[0], 1 + min(_MOST_PAIRS, budget) // pairs_each)
    first, count = log.n_merges, 0
    room = clusters.segments.columns.size - clusters.segments.end[0]
    while count < most and first + count < log.heights.size:
        a = slots[log.children[first + count, 0]]
        b = slots[log.children[first + count, 1]]
        if a < 0 or b < 0:
            break
        room -= most_entries(clusters.segments, a, b)
        if room < 0:
            break
        batch.pairs[count, 0], batch.pairs[count, 1] = a, b
        batch.pair_of_slot[a] = batch.pair_of_slot[b] = count
        count += 1
    return count


@kernel
def _make(replay, p, scratch):
    """Record the violations of the p-th merge of the batch, and make it."""
    clusters, log, batch, slots = replay.clusters, replay.log, replay.batch, replay.slots
    a, b, union = batch.pairs[p, 0], batch.pairs[p, 1], batch.unions + 2 * p
    if replay.sample.starts.size:
        call(replay.examine, p, p + 1, scratch)
    else:
        found = 0
        for part in range(batch.n_parts):
            found += batch.found[p, part]
        if found > 0:
            call(replay.examine, p, p + 1, scratch)
    copy_slot(clusters, union, a)
    free(clusters, b)
    call(replay.note_merge, a, b, scratch)
    batch.pair_of_slot[a] = batch.pair_of_slot[b] = -1
    place = log.n_merges
    slots[log.children[place, 0]] = slots[log.children[place, 1]] = -1
    log.nodes[b] = -1
    log.nodes[a] = slots.size - log.heights.size + place
    slots[log.nodes[a]] = a
    log.n_merges += 1
    log.n_alive -= 1
