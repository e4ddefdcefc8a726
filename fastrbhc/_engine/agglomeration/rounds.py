"""The state from which `levels` chooses merges: nearest and reverse neighbours.

Every cluster is in the list of its nearest neighbour. It leaves that list only when the neighbour
is merged, and then the whole list is read, so that the cost of a round is proportional to the
changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import UNKNOWN, Queries, as_hint, hint_of
from fastrbhc._engine.records import record

# With fewer keys than this, all remaining merges are one level.
_LAST_LEVEL = 64

# Number of slots per stretch; threads share the stretches when a level starts.
STRETCH = 4096

# Keys are counted by their exponent and the first four bits of their mantissa.
_KEY_SHIFT, _KEY_COUNTS = 48, 1 << 15


@record
class ReverseNeighbors:
    """The clusters whose nearest neighbour is a given slot: one linked list per slot."""

    head: NDArray[np.int32]  # by slot: the first cluster in its list
    next: NDArray[np.int32]  # by slot: the next cluster with the same neighbour


@record
class Rounds:
    """The state of the rounds of a level."""

    reverse: ReverseNeighbors
    queries: Queries  # its values are the keys: d to the neighbour, or a lower bound if stale
    found: NDArray[np.int32]  # slots that have been looked up
    unions: NDArray[np.int32]  # by pair: the slot that will hold the union
    partners: NDArray[np.int32]  # by pair: the slot of the other part
    stretches: NDArray[np.int64]  # (…, 2), numbers of slots queued and found per stretch
    counts: NDArray[np.int64]  # numbers of keys by their leading bits
    n_queued: int
    n_found: int
    n_pairs: int
    n_corrections: int  # number of `queue_contradicted` since the last merge
    looked_up: bool  # whether the queue has been looked up but not yet entered into the lists
    level: float  # only pairs below it are merged


@record
class LevelStart:
    """The task of `start_level`."""

    clusters: Clusters
    rounds: Rounds


def new_rounds(n: int, capacity: int, threshold: float) -> Rounds:
    """The initial state, with the first n slots to be looked up."""
    queries = Queries(
        queue=np.empty(capacity, np.int32),
        values=np.full(capacity, np.inf),
        neighbors=np.full(capacity, UNKNOWN, np.int32),
        nearest=np.empty(0),
        cutoff=threshold,
        halved=False,
    )
    queries.queue[:n] = np.arange(n, dtype=np.int32)
    reverse = ReverseNeighbors(np.full(capacity, -1, np.int32), np.full(capacity, -1, np.int32))
    most_pairs = capacity // 2 + 1
    return Rounds(
        reverse=reverse,
        queries=queries,
        found=np.empty(capacity, np.int32),
        unions=np.empty(most_pairs, np.int32),
        partners=np.empty(most_pairs, np.int32),
        stretches=np.zeros((-(-capacity // STRETCH), 2), np.int64),
        counts=np.zeros(_KEY_COUNTS, np.int64),
        n_queued=n,
        n_found=0,
        n_pairs=0,
        n_corrections=0,
        looked_up=False,
        level=-np.inf,
    )


@kernel
def next_level(rounds, n_slots):
    """A level with half of the keys below it, or a few more; NaN if no key is left.

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
def enlist(rounds):
    """Enter the slots that were looked up into the lists of their neighbours."""
    reverse, queries, count = rounds.reverse, rounds.queries, rounds.n_queued
    # Before the first level nothing is merged, and the list of all slots is not needed.
    noted = count if rounds.level > -np.inf else 0
    for q in range(count):
        x = queries.queue[q]
        y = queries.neighbors[x]
        if q < noted:
            rounds.found[q] = x
        if y >= 0:
            reverse.next[x] = reverse.head[y]
            reverse.head[y] = x
    rounds.n_queued, rounds.n_found, rounds.looked_up = 0, noted, False


@kernel
def start_level(task, first, last, scratch):
    """Queue the clusters with stale keys below the level, and find the reciprocal pairs below it.

    Each stretch writes to its own part of the lists, so that threads can share them.
    """
    rounds, used = task.rounds, task.clusters.n_slots
    level, keys, neighbors = rounds.level, rounds.queries.values, rounds.queries.neighbors
    for stretch in range(first, last):
        start = stretch * STRETCH
        n_queued, n_found = start, start
        for x in range(start, min(start + STRETCH, used)):
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
def compact_lists(rounds, n_stretches):
    """Close the gaps between the stretches of both lists."""
    queue, found, stretches = rounds.queries.queue, rounds.found, rounds.stretches
    n_queued, n_found = 0, 0
    for stretch in range(n_stretches):
        start = stretch * STRETCH
        for x in range(start, start + stretches[stretch, 0]):
            queue[n_queued] = queue[x]
            n_queued += 1
        for x in range(start, start + stretches[stretch, 1]):
            found[n_found] = found[x]
            n_found += 1
    rounds.n_queued, rounds.n_found = n_queued, n_found


@kernel
def pair_up(rounds):
    """Find pairs to merge among the slots found; queue unions, and clusters losing a neighbour."""
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
def settle(rounds, n_slots):
    """Take out clusters whose nearest neighbour will never be merged; returns how many there are.

    A cluster of a cell has no neighbour if something outside the cell may be nearer. It stays where
    it is, and so remains the neighbour of those that are nearest to it.
    """
    keys, neighbors = rounds.queries.values, rounds.queries.neighbors
    threshold, settled, before = rounds.queries.cutoff, 0, -1
    while settled > before:
        before = settled
        for x in range(n_slots):
            y = np.int64(neighbors[x])
            if keys[x] < threshold and y >= 0 and not keys[y] < threshold:
                keys[x] = np.inf
                settled += 1
    return settled


@kernel
def queue_contradicted(rounds, n_slots):
    """Queue clusters that are nearer to another one than their own key says.

    If d is reducible there are none, but for rounding: a union may be nearer by the last digit than
    both of its parts were, and the neighbour that it finds does not know it.
    """
    rounds.n_corrections += 1
    queries, level = rounds.queries, rounds.level
    keys, neighbors = queries.values, queries.neighbors
    for x in range(n_slots):
        y = np.int64(neighbors[x])
        if not (keys[x] < level and y >= 0 and keys[x] < keys[y]):
            continue
        if neighbors[y] < 0 and keys[y] < level:
            continue  # it is in the queue already
        if neighbors[y] >= 0:
            _leave_list(rounds.reverse, np.int64(neighbors[y]), y)
        neighbors[y], keys[y] = as_hint(x), keys[x]
        queries.queue[rounds.n_queued] = y
        rounds.n_queued += 1


@kernel
def _leave_list(reverse, neighbor, slot):
    """Take a slot out of the list of its neighbour."""
    z = np.int64(reverse.head[neighbor])
    if z == slot:
        reverse.head[neighbor] = reverse.next[slot]
        return
    while z >= 0:
        following = np.int64(reverse.next[z])
        if following == slot:
            reverse.next[z] = reverse.next[slot]
            return
        z = following


def relocate(rounds: Rounds, slots: NDArray[np.int64], places: NDArray[np.int32]) -> None:
    """Move neighbours and lists along with their clusters."""
    n, queries, reverse = slots.size, rounds.queries, rounds.reverse
    for values in (queries.values, queries.neighbors, reverse.head, reverse.next):
        values[:n] = np.take(values, slots)
    _remap_slots(rounds, n, places)
    queries.values[n:] = np.inf


@kernel
def _remap_slots(rounds, n, places):
    """Replace slots in neighbours, lists and queue by their new places."""
    neighbors, reverse = rounds.queries.neighbors, rounds.reverse
    for x in range(n):
        y = np.int64(neighbors[x])
        if y >= 0:
            neighbors[x] = places[y]
        elif y != UNKNOWN:
            # The slot of a hint may be free by now; its new place is then −1.
            neighbors[x] = as_hint(places[hint_of(y)])
        if reverse.head[x] >= 0:
            reverse.head[x] = places[reverse.head[x]]
        if reverse.next[x] >= 0:
            reverse.next[x] = places[reverse.next[x]]
    for q in range(rounds.n_queued):
        rounds.queries.queue[q] = places[rounds.queries.queue[q]]
