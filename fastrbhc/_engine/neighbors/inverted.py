"""Nearest neighbours of sparse clusters by an inverted index: for each column, who has it.

The bounds of `sparse_entropy` need only the columns that two clusters share. So a query adds up
what it shares with all clusters at once, column by column, as a product of sparse matrices does,
and then passes over the clusters with a few operations each. On news articles two rows of 73 words
share 3.5.

Every slot keeps a *list* of the clusters that were nearest by their bounds when it was looked up,
and a bound for all others. In the greedy algorithm only older clusters count, and these become
fewer. So when the neighbour of a slot has been merged, the next one is in its list, and the
clusters are scanned again only when the list is used up. Lists of one entry took nine scans per
merge for 6,000 articles.

The postings are those of the last rebuild. Clusters made since then are *recent*: their overlaps
are computed one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters, gather
from fastrbhc._engine.geometry.contract import ROUNDING, dissimilarity
from fastrbhc._engine.geometry.sparse import SLOTS_AT_A_TIME, bound, bound_from_spread
from fastrbhc._engine.geometry.sparse_complement import (
    complement_overlaps,
    complement_overlaps_at,
    subtract_complement_costs,
)
from fastrbhc._engine.geometry.sparse_entropy import (
    bounds_from_overlaps,
    gather_up,
    overlaps,
    overlaps_at,
    spread,
)
from fastrbhc._engine.geometry.sparse_violations import (
    begin_violations,
    end_violations,
    range_of_weights,
    violation_bound,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.ordering import comes_before
from fastrbhc._engine.records import record
from fastrbhc._engine.threads import Threads

# Clusters in the list of a slot.
_LISTED = 12

# Smaller sums are rounded up to this.
_SMALLEST_FLOAT32 = 1.2e-38

# If n·o varies by no more than this share of the smallest sum, its smallest value stands for all.
_SMALL_SHARE = 0.02


@record
class Postings:
    """For each column, the slots that have it, ascending, and their sums, rounded up."""

    starts: NDArray[np.int64]  # (columns + 1,)
    slots: NDArray[np.int32]  # (entries,)
    values: NDArray[np.float32]  # (entries,)
    weights: NDArray[np.float64]  # (…, 2), the smallest and largest weight in a run of slots
    smallest: float  # of all sums


@record
class Lists:
    """The clusters nearest to each slot by their bounds, ascending, when it was looked up."""

    slots: NDArray[np.int32]  # (n, _LISTED)
    bounds: NDArray[np.float64]  # (n, _LISTED)
    sizes: NDArray[np.int32]  # (n,), −1 if it has not been looked up
    others: NDArray[np.float64]  # (n,), no other cluster is nearer than this


@record
class Inverted:
    """The postings of the last rebuild, and the slots that have changed since."""

    postings: Postings
    lists: Lists
    recent: NDArray[np.int64]  # (n,), slots whose postings are missing or out of date
    is_recent: NDArray[np.bool_]  # (n,)
    n_recent: int
    rebuild_below: float = 0.95
    unions_in_new_slots: bool = True
    n_parts: int = 0

    def rebuild(self, clusters: Clusters, threads: Threads) -> NDArray[np.int64]:
        slots = np.flatnonzero(~np.isnan(clusters.weights[: clusters.n_slots]))
        places = np.full(clusters.n_slots, -1, np.int32)
        places[slots] = np.arange(slots.size)
        gather(clusters, slots, threads)
        _move_lists(self.lists, slots, places)
        self.is_recent[:] = False
        self.n_recent = 0
        _fill_postings(self.postings, clusters)
        return slots

    def merged(index, clusters, i, j):
        if not index.is_recent[i]:
            index.is_recent[i] = True
            index.recent[index.n_recent] = i
            index.n_recent += 1

    def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
        _scan(index, geometry, clusters, i, False, cutoff, scratch)
        return _settle(index, geometry, clusters, i, False, cutoff, scratch)

    def find(index, geometry, clusters, queries, first, last, scratch):
        values, slots, older = queries.values, queries.neighbors, queries.older
        for q in range(first, last):
            i = np.int64(queries.queue[q])
            known = older and not queries.again and index.lists.sizes[i] >= 0
            if not (known and _from_list(index, geometry, clusters, i, values, slots, scratch)):
                _scan(index, geometry, clusters, i, older, queries.cutoff, scratch)
                values[i], slots[i] = _settle(
                    index, geometry, clusters, i, older, queries.cutoff, scratch
                )

    def possible_violations(index, geometry, clusters, a, b, height, part, parts, scratch):
        count, n = 0, clusters.n_slots
        lightest, heaviest = range_of_weights(clusters, 0, n)
        knots = begin_violations(geometry, clusters, a, b, lightest, heaviest, scratch)
        for x in range(part, n, parts):
            if np.isnan(clusters.weights[x]) or x in (a, b):
                continue
            if violation_bound(geometry, clusters, a, b, x, height, knots, scratch) <= height:
                scratch.hits[count] = x
                count += 1
        end_violations(clusters, a, b, scratch)
        return count


def inverted(
    clusters: Clusters, box_features: tuple[int, ...], threads: Threads, audited: bool
) -> Inverted:
    """The backend over clusters that fill the first slots."""
    n, segments = clusters.weights.size, clusters.segments
    entries, n_columns = int(segments.end[0]), segments.n_columns
    index = Inverted(
        postings=Postings(
            np.zeros(n_columns + 1, np.int64),
            np.empty(entries, np.int32),
            np.empty(entries, np.float32),
            np.empty((-(-n // SLOTS_AT_A_TIME), 2)),
            np.inf,
        ),
        lists=Lists(
            np.empty((n, _LISTED), np.int32),
            np.empty((n, _LISTED)),
            np.full(n, -1, np.int32),
            np.full(n, -np.inf),
        ),
        recent=np.empty(n, np.int64),
        is_recent=np.zeros(n, bool),
        n_recent=0,
    )
    _fill_postings(index.postings, clusters)
    return index


def _move_lists(lists: Lists, slots: NDArray[np.int64], places: NDArray[np.int32]) -> None:
    """Move the lists along with their clusters; merged clusters become slot −1."""
    n = slots.size
    for values in (lists.slots, lists.bounds, lists.sizes, lists.others):
        values[:n] = np.take(values, slots, axis=0)
    lists.sizes[n:] = -1
    _renumber(lists, places, n)


@kernel
def _renumber(lists, places, n):
    for i in range(n):
        for e in range(lists.sizes[i]):
            if lists.slots[i, e] >= 0:
                lists.slots[i, e] = places[lists.slots[i, e]]


@kernel
def _fill_postings(postings, clusters):
    """Sort the entries of all clusters by column; slots stay ascending."""
    segments, starts = clusters.segments, postings.starts
    for k in range(starts.size):
        starts[k] = 0
    postings.smallest = np.inf
    for start in range(0, clusters.n_slots, SLOTS_AT_A_TIME):
        lightest, heaviest = np.inf, 0.0
        for i in range(start, min(start + SLOTS_AT_A_TIME, clusters.n_slots)):
            lightest, heaviest = (
                min(lightest, clusters.weights[i]),
                max(heaviest, clusters.weights[i]),
            )
        postings.weights[start // SLOTS_AT_A_TIME, 0] = lightest
        postings.weights[start // SLOTS_AT_A_TIME, 1] = heaviest
    for i in range(clusters.n_slots):
        for p in range(segments.places[i, 0], segments.places[i, 1]):
            starts[segments.columns[p] + 1] += 1
    for k in range(starts.size - 1):
        starts[k + 1] += starts[k]
    for i in range(clusters.n_slots):
        for p in range(segments.places[i, 0], segments.places[i, 1]):
            column = segments.columns[p]
            place = starts[column]
            postings.slots[place] = i
            postings.values[place] = max(segments.sums[p] * (1.0 + 2.0**-22), _SMALLEST_FLOAT32)
            starts[column] += 1
            postings.smallest = min(postings.smallest, segments.sums[p])
    # Every start has moved to that of the next column.
    for k in range(starts.size - 1, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


@kernel
def _scan(index, geometry, clusters, i, older, cutoff, scratch):
    """Fill the list of slot i with the clusters nearest by their bounds, if below the cutoff."""
    lists, bounds = index.lists, scratch.matrix[0]
    lists.sizes[i], lists.others[i] = 0, cutoff
    _start(index, clusters, i, scratch)
    end = i if older else clusters.n_slots
    for start in range(0, end, SLOTS_AT_A_TIME):
        stop = min(start + SLOTS_AT_A_TIME, end)
        _block_bounds(index, geometry, clusters, i, start, stop, scratch)
        for s in range(stop - start):
            if bounds[s] < lists.others[i] and start + s != i and not index.is_recent[start + s]:
                _insert(lists, i, start + s, bounds[s], cutoff)
    if index.n_recent > 0:
        spread(clusters, i, geometry.scale, scratch)
        for r in range(index.n_recent):
            j = index.recent[r]
            if j == i or (older and j > i) or np.isnan(clusters.weights[j]):
                continue
            value = bound_from_spread(geometry, clusters, i, j, scratch)
            if value < lists.others[i]:
                _insert(lists, i, j, value, cutoff)
        gather_up(clusters, i, scratch)


@kernel
def _start(index, clusters, i, scratch):
    """Put the first posting of every column of slot i into scratch.bits."""
    segments, positions = clusters.segments, scratch.bits[0]
    first = segments.places[i, 0]
    for p in range(first, segments.places[i, 1]):
        positions[p - first] = index.postings.starts[segments.columns[p]]


@kernel
def _block_bounds(index, geometry, clusters, i, start, stop, scratch):
    """Fill scratch.matrix[0] with lower bounds of d from slot i to a run of slots.

    The run has to follow that of the last call.
    """
    segments, postings, positions = clusters.segments, index.postings, scratch.bits[0]
    out, others, shifts = scratch.matrix[0], scratch.matrix[1], scratch.matrix[2]
    scale, offset, weight = geometry.scale, geometry.offset, clusters.weights[i]
    run = start // SLOTS_AT_A_TIME
    lightest, heaviest = postings.weights[run, 0], postings.weights[run, 1]
    alike = (heaviest - lightest) * offset <= _SMALL_SHARE * scale * postings.smallest
    for s in range(stop - start):
        out[s] = 0.0
    first = segments.places[i, 0]
    for p in range(first, segments.places[i, 1]):
        begin, end = positions[p - first], postings.starts[segments.columns[p] + 1]
        size = 0
        while begin + size < end and postings.slots[begin + size] < stop:
            others[size] = scale * postings.values[begin + size]
            size += 1
        if size == 0:
            continue
        if geometry.ceiling > 0.0:
            _add_complements(postings, geometry, clusters, i, p, begin, size, start, scratch)
        if alike:
            overlaps_at(scale * segments.sums[p], others, (weight + lightest) * offset, size)
        else:
            for e in range(size):
                shifts[e] = (weight + clusters.weights[postings.slots[begin + e]]) * offset
            overlaps(scale * segments.sums[p], others, shifts, size)
        for e in range(size):
            out[postings.slots[begin + e] - start] += others[e]
        positions[p - first] = begin + size
    if geometry.ceiling > 0.0:
        subtract_complement_costs(clusters, i, start, stop, geometry.ceiling, out)
    bounds_from_overlaps(clusters, i, start, stop, offset, out)
    factor = geometry.entropy_share * ROUNDING
    for s in range(stop - start):
        # NaN, if terms overflow, becomes 0, which is a bound too; free slots stay NaN.
        out[s] = out[s] * factor if out[s] > 0.0 else 0.0 * clusters.weights[start + s]


@kernel
def _add_complements(postings, geometry, clusters, i, p, begin, size, start, scratch):
    """Add Δ′ of entry p of slot i and some postings of its column to scratch.matrix[0]."""
    out, others, ceilings = scratch.matrix[0], scratch.matrix[2], scratch.matrix[3]
    weight, own = clusters.weights[i], geometry.scale * clusters.segments.sums[p]
    run = start // SLOTS_AT_A_TIME
    lightest, heaviest = postings.weights[run, 0], postings.weights[run, 1]
    for e in range(size):
        others[e] = geometry.scale * postings.values[begin + e]
    if heaviest - lightest <= _SMALL_SHARE * lightest:
        complement_overlaps_at(own, others, (weight + lightest) * geometry.ceiling, size)
    else:
        for e in range(size):
            other = clusters.weights[postings.slots[begin + e]]
            ceilings[e] = (weight + other) * geometry.ceiling
        complement_overlaps(own, others, ceilings, size)
    for e in range(size):
        out[postings.slots[begin + e] - start] += others[e]


@kernel
def _insert(lists, i, slot, value, cutoff):
    """Put a cluster into the list of slot i, in order, and the last one out if it is full."""
    size, bounds, slots = lists.sizes[i], lists.bounds[i], lists.slots[i]
    full = size == bounds.size
    place = size - 1 if full else size
    while place > 0 and bounds[place - 1] > value:
        bounds[place], slots[place] = bounds[place - 1], slots[place - 1]
        place -= 1
    bounds[place], slots[place] = value, slot
    if not full:
        lists.sizes[i] = size + 1
        size += 1
    if size == bounds.size:
        lists.others[i] = min(bounds[size - 1], cutoff)


@kernel
def _nearest_listed(index, geometry, clusters, i, cutoff, scratch):
    """The nearest cluster in the list of slot i, with d below the cutoff."""
    lists, best, slot = index.lists, cutoff, np.int64(-1)
    for e in range(lists.sizes[i]):
        if lists.bounds[i, e] > best:
            break
        j = np.int64(lists.slots[i, e])
        if j >= 0 and not np.isnan(clusters.weights[j]):
            best, slot = _closer(geometry, clusters, i, j, best, slot, scratch)
    return best, slot


@kernel
def _closer(geometry, clusters, i, j, best, slot, scratch):
    """The nearer of the best cluster so far and slot j."""
    if bound(geometry, clusters, i, j) > best:
        return best, slot
    value = dissimilarity(geometry, clusters, i, j, best, scratch)
    rank = clusters.ranks[slot] if slot >= 0 else -1
    if comes_before(value, clusters.ranks[j], best, rank):
        return value, np.int64(j)
    return best, slot


@kernel
def _from_list(index, geometry, clusters, i, values, slots, scratch):
    """Enter the neighbour of slot i, or a better bound, if its list has one; whether it has."""
    others = index.lists.others[i]
    value, slot = _nearest_listed(index, geometry, clusters, i, others, scratch)
    if slot < 0 and not value > values[i]:
        return False
    values[i], slots[i] = value, slot if slot >= 0 else i
    return True


@kernel
def _settle(index, geometry, clusters, i, older, cutoff, scratch):
    """(d, slot) of the nearest cluster, after a scan; slot −1 if none is below the cutoff."""
    value, slot = _nearest_listed(index, geometry, clusters, i, cutoff, scratch)
    others = index.lists.others[i]
    if value < others or others >= cutoff:
        return value, slot
    # Clusters that found no room in the list may be as near.
    bounds = scratch.matrix[0]
    _start(index, clusters, i, scratch)
    end = i if older else clusters.n_slots
    for start in range(0, end, SLOTS_AT_A_TIME):
        stop = min(start + SLOTS_AT_A_TIME, end)
        _block_bounds(index, geometry, clusters, i, start, stop, scratch)
        for s in range(stop - start):
            j = start + s
            if others <= bounds[s] <= value and j != i and j != slot and not index.is_recent[j]:
                value, slot = _closer(geometry, clusters, i, j, value, slot, scratch)
    for r in range(index.n_recent):
        j = index.recent[r]
        if j != i and j != slot and not (older and j > i) and not np.isnan(clusters.weights[j]):
            value, slot = _closer(geometry, clusters, i, j, value, slot, scratch)
    return value, slot
