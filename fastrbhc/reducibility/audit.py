"""Counting the violations of reducibility in a tree, exactly, by making its merges again.

When a and b become c, another cluster x violates reducibility if c is nearer to it than both parts
were: d(c, x) < min(d(a, x), d(b, x)). For any φ, by writing out f(a) + f(b) − f(a∪b) everywhere,

    d(c, x) − d(a, x) = d(a∪x, b) − d(a, b),        and the same with a and b exchanged.

So x violates it iff both d(a∪x, b) and d(b∪x, a) are below the height d(a, b) of the merge: x has
to pull a towards b, and b towards a. A lower bound of either rules x out, or a whole box of x (see
``pull_bounds`` and ``box_pull_bound`` in `contract`); what is left is decided by the definition.

The merges of a finished tree are made once more, in their order, on an index of their own.
*Batches* of merges, none of which needs the union of another, are searched on all threads: for the
p-th of them the clusters alive are those in the index, less the parts of the pairs before it, and
the unions of these, which wait in spare slots. Then the merges of the batch are made one by
one. Where one has violations, they are looked at again before it is made, one by one, among the
clusters then alive: how large they are, and whether they have consequences.
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
from fastrbhc._engine.agglomeration.merge_log import MergeLog, close_gaps, many_free
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters, copy_slot, free
from fastrbhc._engine.clusters.scratch import BLOCK
from fastrbhc._engine.geometry.contract import dissimilarity, merge, violation_bounds
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import (
    UNKNOWN,
    Queries,
    Search,
    look_up,
    possible_violations,
    refitting,
)
from fastrbhc._engine.records import Job, call, record
from fastrbhc._engine.team import Team, parallel_for, team_of
from fastrbhc._engine.threads import Threads

# Values of d are good to ten digits or more, so a deficit has to be larger than this share of d.
TOLERANCE = 1e-10

# Merges that are searched together, and pairs times columns that one batch may look at.
_LARGEST_BATCH, _MOST_PAIRS = 64, 20_000_000

# Parts of the index that a search is cut into where there are fewer merges than keep all threads
# busy: as in a chain, each of whose merges needs the one before.
_PARTS = 16


@record
class Tally:
    """What has been found so far."""

    violations: NDArray[np.int64]  # (m,), of every merge
    consequential: NDArray[np.int64]  # (m,), those with c nearer to x than all others were
    deficits: NDArray[np.float64]  # (m,), the largest 1 − d(c, x) / min(d(a, x), d(b, x)) of each
    n_premise_holds: int  # violations with d(a, b) at most d(a, x) and d(b, x)
    worst_merge: int  # the merge with the largest deficit of all, or −1
    worst_node: int  # and its x


@record
class Sample:
    """Triples to be looked at instead of all, by merge."""

    starts: NDArray[np.int64]  # (m + 1,), the first triple of each merge; empty for all triples
    others: NDArray[np.int64]  # (…,), which of the other clusters alive it is
    alive: NDArray[np.int64]  # (n,), the slots of clusters alive, in an order of no meaning
    positions: NDArray[np.int64]  # (capacity,), where each slot stands in ``alive``


@record
class Batch:
    """The merges that are being searched together."""

    pairs: NDArray[np.int64]  # (…, 2), slots
    found: NDArray[np.int64]  # (…, _PARTS), violations by merge and part of the index
    pair_of_slot: NDArray[np.int64]  # (capacity,), of each slot in which pair it is, or −1
    unions: int  # the first of the slots for unions, two for each merge
    size: int  # merges in the batch
    n_parts: int  # parts of the index


@record
class Examination:
    """All that the search for violations depends on."""

    geometry: Any
    clusters: Clusters
    index: Any
    log: MergeLog
    batch: Batch
    sample: Sample
    tally: Tally
    queries: Queries  # of one slot, for the cluster nearest to it
    nearest: Job


@record
class Replay:
    """A tree that is being built again, but for what knows the family."""

    clusters: Clusters
    log: MergeLog
    slots: NDArray[np.int64]  # (n + m,), the slot of each node alive
    batch: Batch
    sample: Sample
    unite: Job  # some of the batch
    search: Job  # some of the batch's merges, times parts of the index
    examine: Job  # one merge of the batch
    note_merge: Job  # one pair, given as its slots
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
    """Make the merges again and count; clusters and index are used up.

    A sample lists triples by number: those of the first merge, then those of the second, and so on.
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
    # Two spare slots for each merge, behind the last leaf that may hold a cluster.
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
        cutoff=np.inf,
        older=False,
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
        unite=Job(_unite, examination, scratch),
        search=Job(_search, examination, scratch),
        examine=Job(_examine, examination, scratch),
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
    """Batch after batch, until the budget is spent."""
    log, batch, team, clusters = replay.log, replay.batch, replay.team, replay.clusters
    n_columns = clusters.means.shape[0]
    while budget > 0:
        if log.n_merges == log.heights.size:
            return FINISHED
        if many_free(log, clusters, replay.rebuild_below):
            return WANTS_REBUILD
        count = _choose(replay)
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
def _choose(replay):
    """Take the next merges, up to the first that needs a union of these; how many they are."""
    log, batch, slots, clusters = replay.log, replay.batch, replay.slots, replay.clusters
    pairs_each = clusters.n_slots * clusters.means.shape[0]
    most = min(batch.pairs.shape[0], 1 + _MOST_PAIRS // pairs_each)
    first, count = log.n_merges, 0
    while count < most and first + count < log.heights.size:
        a = slots[log.children[first + count, 0]]
        b = slots[log.children[first + count, 1]]
        if a < 0 or b < 0:
            break
        batch.pairs[count, 0], batch.pairs[count, 1] = a, b
        batch.pair_of_slot[a] = batch.pair_of_slot[b] = count
        count += 1
    return count


@kernel
def _make(replay, p, scratch):
    """Note the violations of the p-th merge of the batch, and make it."""
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


@kernel
def _unite(examination, first, last, scratch):
    """Make the unions of some of the pairs in spare slots, from copies."""
    clusters, batch = examination.clusters, examination.batch
    for p in range(first, last):
        union = batch.unions + 2 * p
        copy_slot(clusters, batch.pairs[p, 0], union)
        copy_slot(clusters, batch.pairs[p, 1], union + 1)
        merge(examination.geometry, clusters, union, union + 1, scratch)


@kernel
def _search(examination, first, last, scratch):
    """Count the violations of some merges in some parts of the index."""
    parts = examination.batch.n_parts
    for piece in range(first, last):
        _search_part(examination, piece // parts, piece % parts, scratch)


@kernel
def _search_part(examination, p, part, scratch):
    """Count the violations of the p-th merge in a part of the index."""
    geometry, clusters, batch = examination.geometry, examination.clusters, examination.batch
    a, b, unions = batch.pairs[p, 0], batch.pairs[p, 1], batch.unions
    height = examination.log.heights[examination.log.n_merges + p]
    union = unions + 2 * p
    hits, found = scratch.hits, 0
    count = possible_violations(
        examination.index, geometry, clusters, a, b, height, part, batch.n_parts, scratch
    )
    for h in range(count):
        x = hits[h]
        # The parts of this pair and of those before it are not among the others.
        earlier = 0 <= batch.pair_of_slot[x] <= p
        if not earlier and _violates(geometry, clusters, a, b, union, x, scratch):
            found += 1
    if part == 0:
        for start in range(unions, union, BLOCK):
            stop = min(start + BLOCK, union)
            violation_bounds(geometry, clusters, a, b, start, stop, height, scratch)
            count = 0
            for s in range(stop - start):
                if scratch.bounds[s] <= height:
                    hits[count] = start + s
                    count += 1
            for h in range(count):
                if _violates(geometry, clusters, a, b, union, hits[h], scratch):
                    found += 1
    batch.found[p, part] = found


@kernel
def _violates(geometry, clusters, a, b, union, x, scratch):
    """Whether the union is nearer to x than both a and b are."""
    value = dissimilarity(geometry, clusters, union, x, np.inf, scratch)
    cutoff = value * (1.0 + 4.0 * TOLERANCE)
    if not value < dissimilarity(geometry, clusters, a, x, cutoff, scratch) * (1.0 - TOLERANCE):
        return False
    return value < dissimilarity(geometry, clusters, b, x, cutoff, scratch) * (1.0 - TOLERANCE)


@kernel
def _examine(examination, first, last, scratch):
    """Note the violations of the next merge, the one of the batch from first up to last."""
    batch = examination.batch
    a, b, union = batch.pairs[first, 0], batch.pairs[first, 1], batch.unions + 2 * first
    if examination.sample.starts.size:
        _examine_sample(examination, a, b, union, scratch)
    else:
        _examine_all(examination, a, b, union, scratch)


@kernel
def _examine_all(examination, a, b, union, scratch):
    """Note all violations of the next merge, among the clusters now alive."""
    log = examination.log
    count = possible_violations(
        examination.index,
        examination.geometry,
        examination.clusters,
        a,
        b,
        log.heights[log.n_merges],
        0,
        1,
        scratch,
    )
    for h in range(count):
        x = scratch.hits[h]
        if x != a and x != b:
            _examine_triple(examination, a, b, union, x, scratch)


@kernel
def _examine_sample(examination, a, b, union, scratch):
    """Note the violations of the next merge in the sample, and let b leave the list."""
    sample, place = examination.sample, examination.log.n_merges
    alive, positions = sample.alive, sample.positions
    last = examination.log.n_alive - 1
    # The two parts at the end of the list, and before them all others.
    for slot, end in ((a, last - 1), (b, last)):
        other, position = alive[end], positions[slot]
        alive[position], positions[other] = other, position
        alive[end], positions[slot] = slot, end
    for t in range(sample.starts[place], sample.starts[place + 1]):
        _examine_triple(examination, a, b, union, alive[sample.others[t]], scratch)


@kernel
def _examine_triple(examination, a, b, union, x, scratch):
    """Note it if x violates reducibility in the next merge."""
    geometry, clusters, tally = (
        examination.geometry,
        examination.clusters,
        examination.tally,
    )
    if not _violates(geometry, clusters, a, b, union, x, scratch):
        return
    log, queries = examination.log, examination.queries
    place = log.n_merges
    value = dissimilarity(geometry, clusters, union, x, np.inf, scratch)
    before = min(
        dissimilarity(geometry, clusters, a, x, np.inf, scratch),
        dissimilarity(geometry, clusters, b, x, np.inf, scratch),
    )
    tally.violations[place] += 1
    tally.n_premise_holds += np.int64(log.heights[place] <= before)
    deficit, node = 1.0 - value / before, log.nodes[x]
    largest = tally.deficits[tally.worst_merge] if tally.worst_merge >= 0 else 0.0
    same = deficit == largest and place == tally.worst_merge and node < tally.worst_node
    if deficit > largest or same:
        tally.worst_merge, tally.worst_node = place, node
    tally.deficits[place] = max(tally.deficits[place], deficit)
    # Anything as near as the union will be: then it has no consequences.
    queries.queue[0], queries.neighbors[x] = x, UNKNOWN
    queries.cutoff = np.nextafter(value, np.inf)
    call(examination.nearest, 0, 1, scratch)
    tally.consequential[place] += np.int64(queries.neighbors[x] < 0)
