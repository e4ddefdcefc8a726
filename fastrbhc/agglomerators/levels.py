"""Reciprocal nearest neighbours, level by level.

Where d is reducible, two clusters that are each other's nearest neighbour may be merged at any
time: the tree stays the greedy one. This order merges all such pairs below a level, many at a
time, looks up the neighbours of the clusters that this concerns, on several threads, and goes
on until no pair is left below the level; then the level rises to the median of what is left.
Staying at one level keeps the clusters alike in size, which is what makes queries cheap:
one large cluster in a sea of points has to look at many of them.

Every cluster stands in the list of those that watch its neighbour. It leaves that list only when
the neighbour is merged, and then the whole list is read, so that a round costs what it changes.
A cluster whose neighbour is gone keeps its old key, which is a lower bound of the new one, since d
is reducible; it is looked up again once the level has passed that key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import kernel
from fastrbhc._threads import Threads
from fastrbhc.agglomerators._merges import (
    Merges,
    close_gaps,
    made,
    many_free,
    new_places,
    no_merges,
    record,
)
from fastrbhc.dendrogram import in_order, subtree_maxima
from fastrbhc.geometry import Clusters, merge
from fastrbhc.neighbors._interface import find_all, merged, rebuild_below, refit, touch

# With so few clusters left, all the rest is one level.
_LAST_LEVEL = 64
# A round of fewer look-ups than this is over before a second thread wakes up.
_THIN_ROUND = 400

# Slots that one call looks through when a level starts.
_STRETCH = 4096

# What a kernel asks for when it returns.
_LOOK_UP, _MERGE, _START, _REBUILD, _PAUSE, _DONE = 0, 1, 2, 3, 4, 5


class Watches(NamedTuple):
    """Who watches whom: a linked list for every slot, threaded through those who watch it."""

    keys: NDArray[np.float64]  # d to the neighbour, or a lower bound where stale
    neighbors: NDArray[np.int32]  # its slot; where stale, −2 − a slot that is likely near, or −1
    heads: NDArray[np.int32]  # the first of those who watch a slot
    nexts: NDArray[np.int32]  # the next of those who watch the same
    queue: NDArray[np.int32]  # slots to be looked up
    found: NDArray[np.int32]  # slots that have been looked up; then pairs to be merged
    counts: NDArray[np.int64]  # (2,), how many are in the queue, and how many were found
    shares: NDArray[np.int64]  # (…, 2), the same for every stretch of slots
    level: NDArray[np.float64]  # (1,)


def levels(
    geometry: Any,
    clusters: Clusters,
    index: Any,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Merges:
    """Merge reciprocal nearest neighbours by rising levels, up to the threshold."""
    merges = no_merges(clusters)
    n = int(merges.alive[0])
    _merge_by_levels(geometry, clusters, index, threshold, threads, report, merges)
    return _by_level(merges, n)


def _merge_by_levels(
    geometry: Any,
    clusters: Clusters,
    index: Any,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
    merges: Merges,
) -> None:
    n, capacity = int(merges.alive[0]), clusters.weights.size
    watches = Watches(
        keys=np.full(capacity, np.inf),
        neighbors=np.full(capacity, -1, np.int32),
        heads=np.full(capacity, -1, np.int32),
        nexts=np.full(capacity, -1, np.int32),
        queue=np.empty(capacity, np.int32),
        found=np.empty(capacity, np.int32),
        counts=np.zeros(2, np.int64),
        shares=np.zeros((-(-capacity // _STRETCH), 2), np.int64),
        level=np.full(1, -np.inf),
    )
    seconds = {"look up": 1e-9 * n * clusters.means.shape[0], "merge": 1e-6}

    def look_up(first: int, last: int, scratch: Any) -> None:
        queue, keys, neighbors = watches.queue, watches.keys, watches.neighbors
        find_all(
            index,
            geometry,
            clusters,
            queue,
            first,
            last,
            False,
            threshold,
            keys,
            neighbors,
            scratch,
        )

    def report_first(begun: int) -> None:
        if merges.made[0] == 0:
            report("neighbours", begun)

    def start_level(first: int, last: int, scratch: Any) -> None:
        _start_level(watches, int(merges.alive[1]), first, last)

    def merge_pairs(first: int, last: int, scratch: Any) -> None:
        _merge_pairs(geometry, clusters, index, merges, watches, first, last, scratch)

    thin = _THIN_ROUND if threads.count > 1 else n + 1
    watches.queue[:n] = np.arange(n)
    watches.counts[0] = n
    status = _LOOK_UP
    while status != _DONE:
        if status == _LOOK_UP:
            count = int(watches.counts[0])
            seconds["look up"] = threads.run(look_up, count, seconds["look up"], report_first)
            _enlist(watches)
        elif status == _MERGE:
            pairs = _pair_up(merges, watches)
            seconds["merge"] = threads.run(merge_pairs, pairs, seconds["merge"])
            made(merges, pairs)
            refit(index, geometry, clusters, threads)
        elif status == _START:
            used = int(merges.alive[1])
            threads.run(start_level, -(-used // _STRETCH), 2e-8 * _STRETCH)
            _close_ranks(watches, used)
        elif status == _REBUILD:
            used = int(merges.alive[1])
            slots = close_gaps(geometry, clusters, index, merges, threads)
            _carry(watches, slots, new_places(slots, used))
        status = _go_on(
            geometry, clusters, index, merges, watches, threshold, thin, threads.scratches[0]
        )
        if merges.made[0]:
            report("merging", int(merges.made[0]))


@kernel
def _go_on(geometry, clusters, index, merges, watches, threshold, thin, scratch):
    """Round after round, as long as they are thin."""
    counts, level = watches.counts, watches.level
    work = 0
    while work < 100_000:
        if counts[1] > thin:
            return _MERGE
        pairs = _pair_up(merges, watches)
        _merge_pairs(geometry, clusters, index, merges, watches, 0, pairs, scratch)
        made(merges, pairs)
        for pair in range(pairs):
            i = np.int64(watches.found[pair])
            merged(index, geometry, clusters, i, np.int64(watches.nexts[i]))
        if counts[0] == 0:
            if merges.alive[0] < 2:
                return _DONE
            if many_free(merges, rebuild_below(index)):
                return _REBUILD
            level[0] = _next_level(watches.keys[: merges.alive[1]], threshold)
            if np.isnan(level[0]):
                return _DONE
            if merges.alive[1] > thin * 100:
                return _START
            _start_level(watches, merges.alive[1], 0, -(-merges.alive[1] // _STRETCH))
            _close_ranks(watches, merges.alive[1])
            continue
        if many_free(merges, rebuild_below(index)):
            return _REBUILD
        if counts[0] > thin:
            return _LOOK_UP
        work += counts[0]
        find_all(
            index,
            geometry,
            clusters,
            watches.queue,
            0,
            counts[0],
            False,
            threshold,
            watches.keys,
            watches.neighbors,
            scratch,
        )
        _enlist(watches)
    return _PAUSE


@kernel
def _next_level(keys, threshold):
    """A level that half of the keys are below, or a few more; NaN if none is left.

    Keys are counted by their exponent and the first four bits after it: one pass, without a
    copy, and the order of the slots does not matter.
    """
    counts = np.zeros(1 << 15, np.int64)
    total = 0
    for key in keys:
        if key < threshold:
            total += 1
            counts[np.float64(key).view(np.int64) >> 48] += 1
    if total == 0:
        return np.nan
    if total < _LAST_LEVEL:
        return threshold
    box, below = 0, counts[0]
    while 2 * below < total:
        box += 1
        below += counts[box]
    return min(np.int64((box + 1) << 48).view(np.float64), threshold)


@kernel
def _enlist(watches):
    """Enter those that have been looked up into the lists of their neighbours."""
    count = watches.counts[0]
    for q in range(count):
        x = watches.queue[q]
        y = watches.neighbors[x]
        watches.found[q] = x
        if y >= 0:
            watches.nexts[x] = watches.heads[y]
            watches.heads[y] = x
    watches.counts[0], watches.counts[1] = 0, count


@kernel
def _start_level(watches, used, first, last):
    """Queue what is stale below the level, and find the pairs that waited for it.

    Each stretch writes to its own part of the lists, so that threads can share them.
    """
    level, keys, neighbors = watches.level[0], watches.keys, watches.neighbors
    for stretch in range(first, last):
        start = stretch * _STRETCH
        count, n_found = start, start
        for x in range(start, min(start + _STRETCH, used)):
            if keys[x] < level:
                y = neighbors[x]
                if y < 0:
                    watches.queue[count] = x
                    count += 1
                elif x < y and neighbors[y] == x:
                    watches.found[n_found] = x
                    n_found += 1
        watches.shares[stretch, 0], watches.shares[stretch, 1] = count - start, n_found - start


@kernel
def _close_ranks(watches, used):
    """Make one list of those of all stretches."""
    count, n_found = 0, 0
    for stretch in range((used + _STRETCH - 1) // _STRETCH):
        start = stretch * _STRETCH
        for x in range(start, start + watches.shares[stretch, 0]):
            watches.queue[count] = watches.queue[x]
            count += 1
        for x in range(start, start + watches.shares[stretch, 1]):
            watches.found[n_found] = watches.found[x]
            n_found += 1
    watches.counts[0], watches.counts[1] = count, n_found


@kernel
def _pair_up(merges, watches):
    """Find the pairs to merge among the slots found; queue their unions and who watched them.

    The slot of each union is left in ``found`` and that of the other part in ``nexts``, which has
    no other use as long as the union watches no one.
    """
    count, level, pairs = watches.counts[0], watches.level[0], 0
    for f in range(watches.counts[1]):
        x = np.int64(watches.found[f])
        y = np.int64(watches.neighbors[x])
        if not (watches.keys[x] < level and y >= 0 and watches.neighbors[y] == x):
            continue
        i, j = min(x, y), max(x, y)
        for part in (i, j):
            z = np.int64(watches.heads[part])
            watches.heads[part] = -1
            while z >= 0:
                if z != i and z != j:
                    watches.neighbors[z] = -2 - i
                    if watches.keys[z] < level:
                        watches.queue[count] = z
                        count += 1
                z = np.int64(watches.nexts[z])
            watches.neighbors[part] = -1
        watches.keys[j] = np.inf
        watches.nexts[i] = j
        watches.found[pairs] = i
        pairs += 1
        watches.queue[count] = i
        count += 1
    watches.counts[0], watches.counts[1] = count, 0
    return pairs


@kernel
def _merge_pairs(geometry, clusters, index, merges, watches, first, last, scratch):
    """Merge some of the pairs, which have no slot in common."""
    for pair in range(first, last):
        i = np.int64(watches.found[pair])
        j = np.int64(watches.nexts[i])
        record(merges, merges.made[0] + pair, i, j, i, watches.keys[i])
        merge(geometry, clusters, i, j, scratch)
        touch(index, i, j)


def _by_level(merges: Merges, n: int) -> Merges:
    """The merges as if made in the order of their heights, which d being reducible allows.

    So the order tells nothing of slots or rounds. Where several merges are equally high, those
    with the fewest merges below come first, and of these the one with the smallest rank.
    """
    count = int(merges.made[0])
    children, heights = merges.children[:count], merges.heights[:count]
    levels = subtree_maxima(children, heights, n)
    order = np.argsort(levels)
    tied = levels[order[1:]] == levels[order[:-1]]
    if tied.any():
        places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
        some = order[places]
        depths, ranks = _depths_and_ranks(children, n)
        order[places] = some[np.lexsort((ranks[some], depths[some], levels[some]))]
    return merges._replace(children=in_order(children, order, n), heights=heights[order])


@kernel
def _depths_and_ranks(children, n):
    """Of each merge how many are below it on the longest path, and its smaller rank.

    A leaf is named by its rank, and a union has the larger rank of its parts, so that no two
    merges have the same smaller rank.
    """
    depths, smaller = np.zeros(children.shape[0], np.int64), np.empty(children.shape[0], np.int64)
    larger = np.empty(children.shape[0], np.int64)
    for i in range(children.shape[0]):
        a, b = children[i, 0] - n, children[i, 1] - n
        rank_a = larger[a] if a >= 0 else a + n
        rank_b = larger[b] if b >= 0 else b + n
        smaller[i], larger[i] = min(rank_a, rank_b), max(rank_a, rank_b)
        if a >= 0:
            depths[i] = max(depths[i], depths[a] + 1)
        if b >= 0:
            depths[i] = max(depths[i], depths[b] + 1)
    return depths, smaller


def _carry(watches: Watches, slots: NDArray[np.int64], places: NDArray[np.int64]) -> None:
    """Move the watches along with their clusters."""
    _carry_watches(watches, slots, places)
    watches.keys[slots.size :] = np.inf


@kernel
def _carry_watches(watches, slots, places):
    n = slots.size
    watches.keys[:n] = watches.keys[slots]
    watches.neighbors[:n] = watches.neighbors[slots]
    watches.heads[:n] = watches.heads[slots]
    watches.nexts[:n] = watches.nexts[slots]
    for x in range(n):
        y = watches.neighbors[x]
        # A slot that was only likely near may be gone, and places is −1 there.
        watches.neighbors[x] = places[y] if y >= 0 else (-2 - places[-2 - y] if y < -1 else -1)
        if watches.heads[x] >= 0:
            watches.heads[x] = places[watches.heads[x]]
        if watches.nexts[x] >= 0:
            watches.nexts[x] = places[watches.nexts[x]]
    for q in range(watches.counts[0]):
        watches.queue[q] = places[watches.queue[q]]
