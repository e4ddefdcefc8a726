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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.merge_log import (
    FINISHED,
    OUT_OF_BUDGET,
    WANTS_REBUILD,
    Merges,
    close_gaps,
    in_portions,
    many_free,
)
from fastrbhc._engine.geometry.contract import (
    BLOCK,
    TILE,
    Clusters,
    copy_slot,
    dissimilarity,
    free,
    merge,
    pull_bounds,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import merged, nearest, pulled, rebuild_below
from fastrbhc._engine.team import Team, team_of, together
from fastrbhc._engine.threads import Threads

# Values of d are good to ten digits or more, so a deficit has to be larger than this share of d.
TOLERANCE = 1e-10

# Merges that are searched together, and pairs times columns that one batch may look at.
_LARGEST_BATCH, _MOST_PAIRS = 64, 20_000_000

# Parts of the index that a search is cut into where there are fewer merges than keep all threads
# busy: as in a chain, each of whose merges needs the one before.
_PARTS = 16

# Kinds of work that are shared.
_UNITE, _SEARCH = 0, 1


class Tally(NamedTuple):
    """What has been found so far."""

    violations: NDArray[np.int64]  # (m,), of every merge
    consequential: NDArray[np.int64]  # (m,), those with c nearer to x than all others were
    premises: NDArray[np.int64]  # (1,), violations with d(a, b) at most d(a, x) and d(b, x)
    deficits: NDArray[np.float64]  # (m,), the largest 1 − d(c, x) / min(d(a, x), d(b, x)) of each
    worst: NDArray[np.int64]  # (2,), the merge and the node x with the largest of all


class Sample(NamedTuple):
    """Triples to be looked at instead of all, by merge."""

    starts: NDArray[np.int64]  # (m + 1,), the first triple of each merge; empty for all triples
    others: NDArray[np.int64]  # (…,), which of the other clusters alive it is
    alive: NDArray[np.int64]  # (n,), the slots of clusters alive, in an order of no meaning
    positions: NDArray[np.int64]  # (capacity,), where each slot stands in ``alive``


class Batch(NamedTuple):
    """The merges that are being searched together."""

    pairs: NDArray[np.int64]  # (…, 2), slots
    found: NDArray[np.int64]  # (…, _PARTS), violations by merge and part of the index
    places: NDArray[np.int64]  # (capacity,), of each slot in which pair it is, or −1
    saved: int  # the first of the slots for unions, two for each merge
    counts: NDArray[np.int64]  # (2,), merges in the batch, parts of the index


class Replay(NamedTuple):
    """A tree that is being built again; a crew, see `team`."""

    geometry: Any
    clusters: Clusters
    index: Any
    merges: Merges
    slots: NDArray[np.int64]  # (n + m,), the slot of each node alive
    batch: Batch
    sample: Sample
    tally: Tally
    team: Team

    def work(crew, kind, piece, scratch):
        if kind == _UNITE:
            _unite(crew, piece, scratch)
        else:
            parts = crew.batch.counts[1]
            _search(crew, piece // parts, piece % parts, scratch)


def audit_merges(
    geometry: Any,
    clusters: Clusters,
    index: Any,
    children: NDArray[np.int64],
    heights: NDArray[np.float64],
    sample: NDArray[np.int64] | None,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Tally:
    """Make the merges again and count; clusters and index are used up.

    A sample lists triples by number: those of the first merge, then those of the second, and so on.
    """
    n, capacity = int(np.count_nonzero(~np.isnan(clusters.weights))), clusters.weights.size
    m = heights.size
    slots = np.full(n + m, -1, np.int64)
    slots[clusters.ranks[:n]] = np.arange(n)
    # Two spare slots for each merge, behind the last tile that may hold a cluster.
    largest = min(_LARGEST_BATCH, (capacity - -(-n // TILE) * TILE) // 2)
    crew = Replay(
        geometry,
        clusters,
        index,
        Merges(children, heights, np.zeros(1, np.int64), clusters.ranks.copy(), np.array([n, n])),
        slots,
        Batch(
            np.empty((largest, 2), np.int64),
            np.zeros((largest, _PARTS), np.int64),
            np.full(capacity, -1),
            capacity - 2 * largest,
            np.zeros(2, np.int64),
        ),
        _by_merge(sample, n, m, capacity),
        Tally(
            np.zeros(m, np.int64),
            np.zeros(m, np.int64),
            np.zeros(1, np.int64),
            np.zeros(m),
            np.full(2, -1),
        ),
        team_of(threads.count),
    )

    def advance(budget: int) -> int:
        with threads.helping(crew) as scratch:
            return int(_replay_on(crew, budget, scratch))

    def report_merges() -> None:
        report("audit", int(crew.merges.made[0]))

    while in_portions(advance, report_merges) == WANTS_REBUILD:
        close_gaps(geometry, clusters, index, crew.merges, threads)
        alive = int(crew.merges.alive[0])
        slots[crew.merges.nodes[:alive]] = np.arange(alive)
        crew.sample.alive[:alive] = crew.sample.positions[:alive] = np.arange(alive)
    return crew.tally


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
def _replay_on(crew, budget, scratch):
    """Batch after batch, until the budget is spent."""
    merges, batch, n_columns = crew.merges, crew.batch, crew.clusters.means.shape[0]
    while budget > 0:
        if merges.made[0] == merges.heights.size:
            return FINISHED
        if many_free(merges, rebuild_below(crew.index)):
            return WANTS_REBUILD
        count = _choose(crew)
        batch.counts[0], batch.counts[1] = count, 1 if count >= 4 * crew.team.size else _PARTS
        if crew.team.size == 1:
            batch.counts[1] = 1
        together(crew, np.int64(_UNITE), count, scratch)
        if crew.sample.starts.size == 0:
            together(crew, np.int64(_SEARCH), count * batch.counts[1], scratch)
            budget -= count * merges.alive[1] * n_columns
        budget -= count * n_columns
        for p in range(count):
            _make(crew, p, scratch)
    return OUT_OF_BUDGET


@kernel
def _choose(crew):
    """Take the next merges, up to the first that needs a union of these; how many they are."""
    merges, batch, slots = crew.merges, crew.batch, crew.slots
    pairs_each = merges.alive[1] * crew.clusters.means.shape[0]
    most = min(batch.pairs.shape[0], 1 + _MOST_PAIRS // pairs_each)
    first, count = merges.made[0], 0
    while count < most and first + count < merges.heights.size:
        a = slots[merges.children[first + count, 0]]
        b = slots[merges.children[first + count, 1]]
        if a < 0 or b < 0:
            break
        batch.pairs[count, 0], batch.pairs[count, 1] = a, b
        batch.places[a] = batch.places[b] = count
        count += 1
    return count


@kernel
def _unite(crew, p, scratch):
    """Make the union of the p-th pair in a spare slot, from copies."""
    clusters, union = crew.clusters, crew.batch.saved + 2 * p
    copy_slot(clusters, crew.batch.pairs[p, 0], union)
    copy_slot(clusters, crew.batch.pairs[p, 1], union + 1)
    merge(crew.geometry, clusters, union, union + 1, scratch)


@kernel
def _search(crew, p, part, scratch):
    """Count the violations of the p-th merge in a part of the index."""
    geometry, clusters, batch = crew.geometry, crew.clusters, crew.batch
    a, b, saved = batch.pairs[p, 0], batch.pairs[p, 1], batch.saved
    height = crew.merges.heights[crew.merges.made[0] + p]
    union = saved + 2 * p
    hits, found = scratch.hits, 0
    count = pulled(crew.index, geometry, clusters, a, b, height, part, batch.counts[1], scratch)
    for h in range(count):
        x = hits[h]
        # The parts of this pair and of those before it are not among the others.
        if not 0 <= batch.places[x] <= p and _violates(geometry, clusters, a, b, union, x, scratch):
            found += 1
    if part == 0:
        for start in range(saved, union, BLOCK):
            stop = min(start + BLOCK, union)
            pull_bounds(geometry, clusters, a, b, start, stop, height, scratch)
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
def _make(crew, p, scratch):
    """Note the violations of the p-th merge of the batch, and make it."""
    clusters, merges, batch, slots = crew.clusters, crew.merges, crew.batch, crew.slots
    a, b, union = batch.pairs[p, 0], batch.pairs[p, 1], batch.saved + 2 * p
    if crew.sample.starts.size:
        _look_at_sample(crew, a, b, union, scratch)
    else:
        found = 0
        for part in range(batch.counts[1]):
            found += batch.found[p, part]
        if found > 0:
            _look_at_all(crew, a, b, union, scratch)
    copy_slot(clusters, union, a)
    free(clusters, b)
    merged(crew.index, crew.geometry, clusters, a, b)
    batch.places[a] = batch.places[b] = -1
    made = merges.made[0]
    slots[merges.children[made, 0]] = slots[merges.children[made, 1]] = -1
    merges.nodes[b] = -1
    merges.nodes[a] = slots.size - merges.heights.size + made
    slots[merges.nodes[a]] = a
    merges.made[0] += 1
    merges.alive[0] -= 1


@kernel
def _look_at_all(crew, a, b, union, scratch):
    """Note all violations of the next merge, among the clusters now alive."""
    height = crew.merges.heights[crew.merges.made[0]]
    count = pulled(crew.index, crew.geometry, crew.clusters, a, b, height, 0, 1, scratch)
    for h in range(count):
        x = scratch.hits[h]
        if x != a and x != b:
            _look_at(crew, a, b, union, x, scratch)


@kernel
def _look_at_sample(crew, a, b, union, scratch):
    """Note the violations of the next merge in the sample, and let b leave the list."""
    alive, positions, made = crew.sample.alive, crew.sample.positions, crew.merges.made[0]
    last = crew.merges.alive[0] - 1
    # The two parts at the end of the list, and before them all others.
    for slot, place in ((a, last - 1), (b, last)):
        other, position = alive[place], positions[slot]
        alive[position], positions[other] = other, position
        alive[place], positions[slot] = slot, place
    for t in range(crew.sample.starts[made], crew.sample.starts[made + 1]):
        _look_at(crew, a, b, union, alive[crew.sample.others[t]], scratch)


@kernel
def _look_at(crew, a, b, union, x, scratch):
    """Note it if x violates reducibility in the next merge."""
    geometry, clusters, tally = crew.geometry, crew.clusters, crew.tally
    if not _violates(geometry, clusters, a, b, union, x, scratch):
        return
    made = crew.merges.made[0]
    value = dissimilarity(geometry, clusters, union, x, np.inf, scratch)
    before = min(
        dissimilarity(geometry, clusters, a, x, np.inf, scratch),
        dissimilarity(geometry, clusters, b, x, np.inf, scratch),
    )
    tally.violations[made] += 1
    tally.premises[0] += np.int64(crew.merges.heights[made] <= before)
    deficit, node, worst = 1.0 - value / before, crew.merges.nodes[x], tally.worst
    largest = tally.deficits[worst[0]] if worst[0] >= 0 else 0.0
    if deficit > largest or (deficit == largest and made == worst[0] and node < worst[1]):
        worst[0], worst[1] = made, node
    tally.deficits[made] = max(tally.deficits[made], deficit)
    # Anything as near as the union will be: then it has no consequences.
    beyond = np.nextafter(value, np.inf)
    _, near = nearest(crew.index, geometry, clusters, x, -1, beyond, scratch)
    tally.consequential[made] += np.int64(near < 0)
