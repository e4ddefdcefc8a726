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

from fastrbhc._engine.agglomeration.merge_log import (
    Merges,
    close_gaps,
    made,
    many_free,
    new_places,
    no_merges,
    record,
)
from fastrbhc._engine.geometry.contract import Clusters, merge
from fastrbhc._engine.jit import allocating_kernel, kernel
from fastrbhc._engine.math.radix_sort import stable_order
from fastrbhc._engine.neighbors.contract import (
    find,
    merged,
    rebuild_below,
    refit,
    refit_part,
    refit_parts,
    refit_rest,
    touch,
)
from fastrbhc._engine.team import Team, team_of, together
from fastrbhc._engine.threads import Threads
from fastrbhc.tree.traversal import in_order, subtree_maxima

# With so few clusters left, all the rest is one level.
_LAST_LEVEL = 64

# A round that takes longer is shared by Python, which can be interrupted.
_LONG_SECONDS = 0.1

# Slots that one call looks through when a level starts.
_STRETCH = 4096

# Boxes are fitted again for each pair if there are few pairs, else for all that were touched: with
# more than one pair for so many slots.
_SLOTS_A_PAIR = 256

# Pieces that a round is cut into, a thread, each of so many slots or pairs at least.
_PIECES, _SMALLEST_PIECE = 4, 16

# Kinds of work that are shared, and what a kernel asks for when it returns.
_LOOK_UP, _MERGE, _REFIT, _START = 0, 1, 2, 3
_REBUILD, _PAUSE, _DONE = 4, 5, 6


class Watches(NamedTuple):
    """Who watches whom: a linked list for every slot, threaded through those who watch it."""

    keys: NDArray[np.float64]  # d to the neighbour, or a lower bound where stale
    neighbors: NDArray[np.int32]  # its slot; where stale, −2 − a slot that is likely near, or −1
    heads: NDArray[np.int32]  # the first of those who watch a slot
    nexts: NDArray[np.int32]  # the next of those who watch the same
    queue: NDArray[np.int32]  # slots to be looked up
    found: NDArray[np.int32]  # slots that have been looked up; then pairs to be merged
    counts: NDArray[np.int64]  # (3,), how many are in the queue, were found, are to be merged
    shares: NDArray[np.int64]  # (…, 2), the same for every stretch of slots
    level: NDArray[np.float64]  # (1,)


class Levels(NamedTuple):
    """All that the algorithm works on; a crew, see `team`."""

    geometry: Any
    clusters: Clusters
    index: Any
    threshold: float
    merges: Merges
    watches: Watches
    team: Team

    def work(crew, kind, piece, scratch):
        if kind == _LOOK_UP:
            first, last = _part(crew.watches.counts[0], piece, crew.team.size)
            _look_up(crew, first, last, scratch)
        elif kind == _MERGE:
            first, last = _part(crew.watches.counts[2], piece, crew.team.size)
            _merge_pairs(crew, first, last, scratch)
        elif kind == _REFIT:
            refit_part(crew.index, crew.geometry, crew.clusters, piece)
        else:
            _start_level(crew.watches, crew.merges.alive[1], piece, piece + 1)


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
    crew = Levels(
        geometry,
        clusters,
        index,
        threshold,
        merges,
        _no_watches(clusters.weights.size),
        team_of(threads.count),
    )
    _merge_by_levels(crew, n, threads, report)
    del crew  # memory: the watches are not needed any more
    return _by_level(merges, n)


def _no_watches(capacity: int) -> Watches:
    return Watches(
        keys=np.full(capacity, np.inf),
        neighbors=np.full(capacity, -1, np.int32),
        heads=np.full(capacity, -1, np.int32),
        nexts=np.full(capacity, -1, np.int32),
        queue=np.empty(capacity, np.int32),
        found=np.empty(capacity, np.int32),
        counts=np.zeros(3, np.int64),
        shares=np.zeros((-(-capacity // _STRETCH), 2), np.int64),
        level=np.full(1, -np.inf),
    )


def _merge_by_levels(
    crew: Levels, n: int, threads: Threads, report: Callable[[str, int], None]
) -> None:
    geometry, clusters, index, _, merges, watches, _ = crew
    seconds = {"look up": 1e-9 * n * clusters.means.shape[0], "merge": 1e-6}

    def look_up(first: int, last: int, scratch: Any) -> None:
        _look_up(crew, first, last, scratch)

    def merge_pairs(first: int, last: int, scratch: Any) -> None:
        _merge_pairs(crew, first, last, scratch)

    def report_first(begun: int) -> None:
        if merges.made[0] == 0:
            report("neighbours", begun)

    watches.queue[:n] = np.arange(n)
    watches.counts[0] = n
    status = _LOOK_UP
    while status != _DONE:
        if status == _LOOK_UP:
            count = int(watches.counts[0])
            seconds["look up"] = threads.run(look_up, count, seconds["look up"], report_first)
            _enlist(watches)
        elif status == _MERGE:
            pairs = int(watches.counts[2])
            seconds["merge"] = threads.run(merge_pairs, pairs, seconds["merge"])
            made(merges, pairs)
            watches.counts[2] = 0
            refit(index, geometry, clusters, threads)
        elif status == _REBUILD:
            used = int(merges.alive[1])
            slots = close_gaps(geometry, clusters, index, merges, threads)
            _carry(watches, slots, new_places(slots, used))
        longest_queue = int(_LONG_SECONDS / seconds["look up"])
        longest_list = int(_LONG_SECONDS / seconds["merge"])
        with threads.helping(crew) as scratch:
            status = _go_on(crew, longest_queue, longest_list, scratch)
        if merges.made[0]:
            report("merging", int(merges.made[0]))


@kernel
def _go_on(crew, longest_queue, longest_list, scratch):
    """Round after round, as long as none is too long for a kernel."""
    index, merges, watches = crew.index, crew.merges, crew.watches
    counts, level = watches.counts, watches.level
    budget = max(longest_queue, 1)
    while budget > 0:
        _pair_up(merges, watches)
        if counts[2] > longest_list:
            return _MERGE
        if counts[2] > 0:
            _merge_together(crew, scratch)
        if merges.alive[0] < 2:
            return _DONE
        if many_free(merges, rebuild_below(index)):
            return _REBUILD
        if counts[0] == 0:
            level[0] = _next_level(watches.keys[: merges.alive[1]], crew.threshold)
            if np.isnan(level[0]):
                return _DONE
            together(crew, np.int64(_START), (merges.alive[1] + _STRETCH - 1) // _STRETCH, scratch)
            _close_ranks(watches, merges.alive[1])
            continue
        if counts[0] > longest_queue:
            return _LOOK_UP
        budget -= counts[0]
        together(crew, np.int64(_LOOK_UP), _n_pieces(counts[0], crew.team.size), scratch)
        _enlist(watches)
    return _PAUSE


@kernel
def _merge_together(crew, scratch):
    """Merge the pairs of a round, and let the index know."""
    index, watches, pairs = crew.index, crew.watches, crew.watches.counts[2]
    together(crew, np.int64(_MERGE), _n_pieces(pairs, crew.team.size), scratch)
    made(crew.merges, pairs)
    if pairs * _SLOTS_A_PAIR > crew.merges.alive[1]:
        together(crew, np.int64(_REFIT), np.int64(refit_parts(index)), scratch)
        refit_rest(index, crew.geometry, crew.clusters)
    else:
        for pair in range(pairs):
            i = np.int64(watches.found[pair])
            merged(index, crew.geometry, crew.clusters, i, np.int64(watches.nexts[i]))
    watches.counts[2] = 0


@kernel
def _n_pieces(count, n_threads):
    """How many pieces so many slots or pairs are cut into."""
    return min(1 + count // _SMALLEST_PIECE, _PIECES * n_threads)


@kernel
def _part(count, piece, n_threads):
    """The first of a piece, and the first after it."""
    pieces = _n_pieces(count, n_threads)
    return piece * count // pieces, (piece + 1) * count // pieces


@kernel
def _look_up(crew, first, last, scratch):
    """Look up a part of the queue."""
    find(
        crew.index,
        crew.geometry,
        crew.clusters,
        crew.watches.queue,
        first,
        last,
        False,
        crew.threshold,
        crew.watches.keys,
        crew.watches.neighbors,
        scratch,
    )


@allocating_kernel
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
    watches.counts[0], watches.counts[1], watches.counts[2] = count, 0, pairs


@kernel
def _merge_pairs(crew, first, last, scratch):
    """Merge some of the pairs, which have no slot in common."""
    merges, watches = crew.merges, crew.watches
    for pair in range(first, last):
        i = np.int64(watches.found[pair])
        j = np.int64(watches.nexts[i])
        record(merges, merges.made[0] + pair, i, j, i, watches.keys[i])
        merge(crew.geometry, crew.clusters, i, j, scratch)
        touch(crew.index, i, j)


def _by_level(merges: Merges, n: int) -> Merges:
    """The merges as if made in the order of their heights, which d being reducible allows.

    So the order tells nothing of slots or rounds. Where several merges are equally high, those
    with the fewest merges below come first, and of these the one with the smallest rank.
    """
    count = int(merges.made[0])
    children, heights = merges.children[:count], merges.heights[:count]
    levels = subtree_maxima(children, heights, n)
    order = stable_order(levels)
    tied = levels[order[1:]] == levels[order[:-1]]
    if tied.any():
        places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
        some = order[places]
        depths, ranks = _depths_and_ranks(children, n)
        order[places] = some[np.lexsort((ranks[some], depths[some], levels[some]))]
    return merges._replace(children=in_order(children, order, n), heights=heights[order])


@allocating_kernel
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
    n = slots.size
    for values in (watches.keys, watches.neighbors, watches.heads, watches.nexts):
        values[:n] = np.take(values, slots)
    _name_anew(watches, n, places)
    watches.keys[n:] = np.inf


@kernel
def _name_anew(watches, n, places):
    """Name neighbours and lists by the places that they have moved to."""
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
