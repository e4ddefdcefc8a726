"""The search for violations of reducibility in one batch of merges; see `audit`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.merge_log import MergeLog
from fastrbhc._engine.clusters.record import Clusters, copy_slot
from fastrbhc._engine.clusters.scratch import BLOCK
from fastrbhc._engine.geometry.contract import dissimilarity, merge, violation_bounds
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import UNKNOWN, Queries, possible_violations
from fastrbhc._engine.records import Job, call, record

# Values of d are good to ten digits or more, so a deficit has to be larger than this share of d.
TOLERANCE = 1e-10


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


@kernel
def unite(examination, first, last, scratch):
    """Make the unions of some of the pairs in spare slots, from copies."""
    clusters, batch = examination.clusters, examination.batch
    for p in range(first, last):
        union = batch.unions + 2 * p
        copy_slot(clusters, batch.pairs[p, 0], union)
        copy_slot(clusters, batch.pairs[p, 1], union + 1)
        merge(examination.geometry, clusters, union, union + 1, scratch)


@kernel
def search(examination, first, last, scratch):
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
def examine(examination, first, last, scratch):
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
