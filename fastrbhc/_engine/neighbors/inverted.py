"""Nearest neighbours of sparse clusters by an inverted index: for each column, who has it.

`postings` has the index and the bounds of d that come from it, `lists` what each slot remembers of
a search. On news articles two rows of 73 words share 3.5.

The first slots have the clusters of the last rebuild, the heaviest first. Those that are heavier
than a cluster are then a run of slots. Clusters made since then are *recent*: their overlaps are
computed one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters, gather
from fastrbhc._engine.geometry.contract import dissimilarity
from fastrbhc._engine.geometry.sparse import bound, bound_from_spread
from fastrbhc._engine.geometry.sparse_entropy import TOTAL, gather_up, spread
from fastrbhc._engine.geometry.sparse_violations import (
    begin_violations,
    end_violations,
    range_of_weights,
    violation_bound,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import Lowered
from fastrbhc._engine.neighbors.lists import (
    Lists,
    Offers,
    accept,
    enter,
    move_lists,
    new_lists,
    new_offers,
    offer,
)
from fastrbhc._engine.neighbors.ordering import comes_before
from fastrbhc._engine.neighbors.postings import (
    Postings,
    begin_scan,
    fill_postings,
    new_postings,
    run_bounds,
)
from fastrbhc._engine.records import record
from fastrbhc._engine.threads import Threads

# Lighter clusters of a new union whose d may be evaluated.
_CANDIDATES = 8


@record
class Inverted:
    """The postings of the last rebuild, and the slots that have changed since."""

    postings: Postings
    lists: Lists
    offers: Offers
    lowered: Lowered
    totals: NDArray[np.float64]  # (n,), what makes a cluster heavy; ties by slot
    lighter: NDArray[np.float64]  # (n,), d of a new union to the nearest lighter cluster
    recent: NDArray[np.int64]  # (n,), slots whose postings are missing or out of date
    is_recent: NDArray[np.bool_]  # (n,)
    n_recent: int
    rebuild_below: float = 0.9
    unions_in_new_slots: bool = True
    n_parts: int = 0

    def rebuild(self, clusters: Clusters, threads: Threads) -> NDArray[np.int64]:
        slots = np.flatnonzero(~np.isnan(clusters.weights[: clusters.n_slots]))
        slots = np.take(slots, np.argsort(-self.totals[slots], kind="stable"))
        places = np.full(clusters.n_slots, -1, np.int32)
        places[slots] = np.arange(slots.size)
        gather(clusters, slots, threads)
        self.totals[: slots.size] = self.totals[slots]
        move_lists(self.lists, slots, places)
        self.is_recent[:] = False
        self.n_recent = 0
        fill_postings(self.postings, clusters, threads)
        return slots

    def merged(index, clusters, i, j):
        if not index.is_recent[i]:
            index.is_recent[i] = True
            index.recent[index.n_recent] = i
            index.n_recent += 1
        if i >= index.postings.n_slots:  # else the cluster of a slot has come back
            index.totals[i] = clusters.scan_features[TOTAL, i]

    def confirm(index, clusters):
        accept(index.lists, index.offers, clusters.weights, index.lowered)

    def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
        _scan(index, geometry, clusters, i, True, False, index.lists.others, cutoff, scratch)
        return _settle(index, geometry, clusters, i, True, cutoff, scratch)

    def find(index, geometry, clusters, queries, first, last, scratch):
        values, slots, lists = queries.values, queries.neighbors, index.lists
        for q in range(first, last):
            i = np.int64(queries.queue[q])
            index.lighter[i] = np.inf
            new = lists.sizes[i] < 0 or queries.again
            known = queries.halved and not new
            if known and _from_list(index, geometry, clusters, i, values, slots, scratch):
                continue
            whole = not queries.halved or lists.covers_all[i]
            offering = new and not whole and i >= index.postings.n_slots
            _scan(index, geometry, clusters, i, whole, offering, values, queries.cutoff, scratch)
            if lists.covers_all[i] and not whole:
                whole = True
                _scan(index, geometry, clusters, i, True, False, values, queries.cutoff, scratch)
            elif offering:
                index.lighter[i] = _nearest_lighter(geometry, clusters, i, scratch)
            values[i], slots[i] = _settle(
                index, geometry, clusters, i, whole, queries.cutoff, scratch
            )

    def nearest_of_all(index, queries, i):
        return min(queries.values[i], index.lighter[i])

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


def inverted(geometry: Any, clusters: Clusters, threads: Threads, audited: bool) -> Inverted:
    """The backend over clusters that fill the first slots, the heaviest first."""
    n = clusters.weights.size
    totals = np.zeros(n)
    # The order of the slots decides which of two clusters is the heavier one.
    totals[: clusters.n_slots] = np.minimum.accumulate(
        clusters.scan_features[TOTAL, : clusters.n_slots]
    )
    return Inverted(
        postings=new_postings(geometry, clusters, threads),
        lists=new_lists(n),
        offers=new_offers(n),
        lowered=Lowered(np.empty(n, np.int64), np.full(n, np.inf), 0),
        totals=totals,
        lighter=np.full(n, np.inf),
        recent=np.empty(n, np.int64),
        is_recent=np.zeros(n, bool),
        n_recent=0,
    )


@kernel
def _end_of_heavier(index, i):
    """The first slots, before this one, have the clusters of the last rebuild heavier than i."""
    if i < index.postings.n_slots:
        return i
    low, high = 0, index.postings.n_slots
    while low < high:
        middle = (low + high) // 2
        if index.totals[middle] >= index.totals[i]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _is_heavier(index, j, i):
    """Whether the cluster of slot j is heavier than that of slot i; of equal ones, the first."""
    total, other = index.totals[j], index.totals[i]
    return total > other or (total == other and j < i)


@kernel
def _scan(index, geometry, clusters, i, whole, offering, links, cutoff, scratch):
    """Fill the list of slot i with the clusters nearest by their bounds, if below the cutoff.

    These are heavier clusters, or all. If offering, the slot is offered to lighter clusters, and
    those nearest by their bounds are put into scratch.slots. Without room for all offers the slot
    has to cover all its pairs.
    """
    lists, bounds, near = index.lists, scratch.matrix[0], scratch.pairs
    n_posted = index.postings.n_slots
    others = lists.others
    end = n_posted if whole else _end_of_heavier(index, i)
    lists.sizes[i], others[i] = 0, cutoff
    for e in range(_CANDIDATES):
        scratch.other_bounds[e], scratch.slots[e] = cutoff, -1
    begin_scan(index.postings, clusters, i, scratch)
    last = n_posted if offering else end
    for run in range(index.postings.n_runs):
        start, stop = index.postings.runs[run], min(index.postings.runs[run + 1], last)
        if start >= last:
            break
        run_bounds(index.postings, geometry, clusters, i, run, last, scratch)
        for s in range(min(stop, end) - start):
            if bounds[s] < others[i] and start + s != i and not index.is_recent[start + s]:
                enter(lists, i, start + s, bounds[s], cutoff)
        count = 0
        for s in range(max(end - start, 0), stop - start):
            if index.is_recent[start + s]:
                continue
            if bounds[s] < others[start + s] or bounds[s] <= links[start + s]:
                bounds[s] = _offered(
                    geometry, clusters, i, start + s, bounds[s], links[start + s], scratch
                )
                near[count] = s
                count += 1
            if bounds[s] < scratch.other_bounds[_CANDIDATES - 1]:
                _enter_candidate(scratch, start + s, bounds[s])
        if count > 0 and not offer(index.offers, i, start, near, count, bounds):
            lists.covers_all[i] = True
            return
    if index.n_recent > 0:
        _scan_recent(index, geometry, clusters, i, whole, offering, links, cutoff, scratch)


@kernel
def _scan_recent(index, geometry, clusters, i, whole, offering, links, cutoff, scratch):
    """The same for recent clusters."""
    lists, bounds, near = index.lists, scratch.matrix[0], scratch.pairs
    spread(clusters, i, geometry.scale, scratch)
    for r in range(index.n_recent):
        j = index.recent[r]
        if j == i or np.isnan(clusters.weights[j]):
            continue
        heavier = whole or _is_heavier(index, j, i)
        if not heavier and not offering:
            continue
        value = bound_from_spread(geometry, clusters, i, j, scratch)
        if heavier:
            if value < lists.others[i]:
                enter(lists, i, j, value, cutoff)
            continue
        if value < scratch.other_bounds[_CANDIDATES - 1]:
            _enter_candidate(scratch, j, value)
        if value < lists.others[j] or value <= links[j]:
            value = _offered(geometry, clusters, i, j, value, links[j], scratch)
            bounds[0], near[0] = value, 0
            if not offer(index.offers, i, j, near, 1, bounds):
                lists.covers_all[i] = True
    gather_up(clusters, i, scratch)


@kernel
def _offered(geometry, clusters, i, j, value, link, scratch):
    """The bound at which slot i is offered to slot j: a closer one if j's link may be too high.

    A link that is lowered has to be looked up again. If bounds are loose, as those of large counts
    are, nearly all links would be lowered by nearly every union.
    """
    if value <= link:
        value = max(value, bound(geometry, clusters, i, j))
    if value <= link:
        value = dissimilarity(geometry, clusters, i, j, link, scratch)
    return value


@kernel
def _enter_candidate(scratch, slot, value):
    """Put a cluster among those nearest by their bounds, in order, and the last one out."""
    bounds, slots, place = scratch.other_bounds, scratch.slots, _CANDIDATES - 1
    while place > 0 and bounds[place - 1] > value:
        bounds[place], slots[place] = bounds[place - 1], slots[place - 1]
        place -= 1
    bounds[place], slots[place] = value, slot


@kernel
def _nearest_lighter(geometry, clusters, i, scratch):
    """d to the nearest lighter cluster, after a scan that offered slot i; or a lower bound."""
    best = scratch.other_bounds[_CANDIDATES - 1]
    for e in range(_CANDIDATES):
        j = scratch.slots[e]
        if j < 0 or scratch.other_bounds[e] >= best:
            break
        if bound(geometry, clusters, i, j) < best:
            best = min(best, dissimilarity(geometry, clusters, i, j, best, scratch))
    return best


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
def _settle(index, geometry, clusters, i, whole, cutoff, scratch):
    """(d, slot) of the nearest cluster, after a scan; slot −1 if none is below the cutoff."""
    value, slot = _nearest_listed(index, geometry, clusters, i, cutoff, scratch)
    others = index.lists.others[i]
    if value < others or others >= cutoff:
        return value, slot
    # Clusters that found no room in the list may be as near.
    bounds, end = scratch.matrix[0], index.postings.n_slots if whole else _end_of_heavier(index, i)
    begin_scan(index.postings, clusters, i, scratch)
    for run in range(index.postings.n_runs):
        start, stop = index.postings.runs[run], min(index.postings.runs[run + 1], end)
        if start >= end:
            break
        run_bounds(index.postings, geometry, clusters, i, run, end, scratch)
        for s in range(stop - start):
            j = start + s
            if others <= bounds[s] <= value and j != i and j != slot and not index.is_recent[j]:
                value, slot = _closer(geometry, clusters, i, j, value, slot, scratch)
    for r in range(index.n_recent):
        j = index.recent[r]
        if j in (i, slot) or np.isnan(clusters.weights[j]):
            continue
        if whole or _is_heavier(index, j, i):
            value, slot = _closer(geometry, clusters, i, j, value, slot, scratch)
    # No link comes after the bound for clusters that are not listed.
    index.lists.others[i] = value
    return value, slot
