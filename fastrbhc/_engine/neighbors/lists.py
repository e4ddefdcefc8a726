"""Lists of near clusters, so that a lost neighbour is replaced without a search.

In the greedy algorithm each pair of clusters has to be covered by the link of one of them. Here it
is the *lighter* one. Light clusters are near to everything and are merged early. If heavy clusters
had links to them, these would be lost again and again.

So a slot lists the heavier clusters that are nearest by their lower bounds, and has a bound for all
heavier clusters that it does not list. A union is heavier than many clusters that were there before
it. When it is looked up for the first time it is *offered* to these: it enters their lists if it
is nearer than their bounds for all others. The links of these slots may have to be *lowered*.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record
from fastrbhc._engine.team import fetch_add

# Clusters in the list of a slot.
LISTED = 12


@record
class Lists:
    """The clusters nearest to each slot by their bounds, ascending."""

    slots: NDArray[np.int32]  # (n, LISTED), −1 if it was merged
    bounds: NDArray[np.float32]  # (n, LISTED), rounded down
    sizes: NDArray[np.int32]  # (n,), −1 if it has not been looked up
    others: NDArray[np.float64]  # (n,), no other cluster is nearer than this
    covers_all: NDArray[np.bool_]  # (n,), whether lighter clusters count as well


@record
class Offers:
    """New unions for the lists of lighter clusters."""

    unions: NDArray[np.int32]  # −1 where the offers of a union did not fit
    slots: NDArray[np.int32]
    bounds: NDArray[np.float64]
    end: NDArray[np.int64]  # (1,), their number; more than there is room for if some are missing


def new_lists(n: int) -> Lists:
    """Lists of n slots, none of which has been looked up."""
    return Lists(
        np.empty((n, LISTED), np.int32),
        np.empty((n, LISTED), np.float32),
        np.full(n, -1, np.int32),
        np.full(n, -np.inf),
        np.zeros(n, bool),
    )


def new_offers(n: int) -> Offers:
    """Room for n offers."""
    return Offers(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n), np.zeros(1, np.int64))


def move_lists(lists: Lists, slots: NDArray[np.int64], places: NDArray[np.int32]) -> None:
    """Move the lists along with their clusters; merged clusters become slot −1."""
    n = slots.size
    for values in (lists.slots, lists.bounds, lists.sizes, lists.others, lists.covers_all):
        values[:n] = np.take(values, slots, axis=0)
    lists.sizes[n:] = -1
    lists.covers_all[n:] = False
    _renumber(lists, places, n)


@kernel
def _renumber(lists, places, n):
    for i in range(n):
        for e in range(lists.sizes[i]):
            if lists.slots[i, e] >= 0:
                lists.slots[i, e] = places[lists.slots[i, e]]


@kernel
def enter(lists, i, slot, value, cutoff):
    """Put a cluster into the list of slot i, in order, and the last one out if it is full."""
    size, bounds, slots = lists.sizes[i], lists.bounds[i], lists.slots[i]
    value = _rounded_down(value)
    full = size == LISTED
    place = size - 1 if full else size
    while place > 0 and bounds[place - 1] > value:
        bounds[place], slots[place] = bounds[place - 1], slots[place - 1]
        place -= 1
    bounds[place], slots[place] = value, slot
    if not full:
        lists.sizes[i] = size + 1
        size += 1
    if size == LISTED:
        lists.others[i] = min(bounds[size - 1], cutoff)


@kernel
def _rounded_down(value):
    """A bound in single precision, not above the given one."""
    return np.float32(max(min(value * (1.0 - 2.0**-22), 3e38), 0.0))


@kernel
def offer(offers, i, start, near, count, bounds):
    """Offer slot i to the slots start + near[:count]; whether there is room."""
    place = fetch_add(offers.end, 0, count)
    if place + count > offers.slots.size:
        for e in range(place, offers.slots.size):
            offers.unions[e] = -1
        return False
    for e in range(count):
        offers.unions[place + e] = i
        offers.slots[place + e] = start + near[e]
        offers.bounds[place + e] = bounds[near[e]]
    return True


@kernel
def accept(lists, offers, weights, lowered):
    """Enter the offers of unions that are still there, and say which links to lower."""
    for e in range(min(offers.end[0], offers.slots.size)):
        union, i, value = np.int64(offers.unions[e]), np.int64(offers.slots[e]), offers.bounds[e]
        if union < 0 or np.isnan(weights[union]) or np.isnan(weights[i]):
            continue
        if value >= lists.others[i] or _add(lists, weights, i, union, value):
            if lowered.bounds[i] == np.inf:
                lowered.slots[lowered.count] = i
                lowered.count += 1
            lowered.bounds[i] = min(lowered.bounds[i], value)
    offers.end[0] = 0


@kernel
def _add(lists, weights, i, union, value):
    """Put a union into the list of slot i, or lower its bound for all others; False if it has it.

    Clusters that were merged are taken out first.
    """
    bounds, slots, size = lists.bounds[i], lists.slots[i], 0
    for e in range(lists.sizes[i]):
        if slots[e] == union:
            return False
    for e in range(lists.sizes[i]):
        if slots[e] >= 0 and not np.isnan(weights[slots[e]]):
            bounds[size], slots[size] = bounds[e], slots[e]
            size += 1
    value = _rounded_down(value)
    if size == LISTED:
        lists.others[i] = min(lists.others[i], max(value, bounds[size - 1]))
        size -= 1
        if value >= bounds[size]:
            lists.sizes[i] = LISTED
            return True
    place = size
    while place > 0 and bounds[place - 1] > value:
        bounds[place], slots[place] = bounds[place - 1], slots[place - 1]
        place -= 1
    bounds[place], slots[place] = value, union
    lists.sizes[i] = size + 1
    return True
