"""Scans that pass over runs of slots whole: boxes around the clusters of each run.

Slots are in the order of a kd-tree, so that near clusters are next to each other. A run of 64 slots
has a box, and eight runs have one together; `kd_tree` says what is in a box. A query scans the runs
whose bounds are not above the best value so far, in the way of `brute`. In many columns a kd-tree
with leaves of eight slots has to visit most of them, one by one. A run is scanned at the speed of
a scan, and several queries share it.

A union takes the slot of one of its parts, so the order of the slots is not that of creation. If
one link for each pair is enough, `ages` tells which cluster is the older one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters, gather
from fastrbhc._engine.clusters.scratch import BLOCK
from fastrbhc._engine.geometry.contract import (
    block_bounds,
    block_coordinates,
    box_rows,
    candidate_pairs,
    column_widths,
    dissimilarity,
    for_clusters,
    lower_bounds,
    prepare_queries,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.block_boxes import RUN, fit_run, fit_wide_box, include
from fastrbhc._engine.neighbors.brute import Brute, closer, nearest_in, take_group
from fastrbhc._engine.neighbors.contract import NONE_LOWERED, Lowered, hint_of, refit, refitting
from fastrbhc._engine.neighbors.kd_order import order_of_rows
from fastrbhc._engine.neighbors.kd_tree import BoxLayout, box_layout
from fastrbhc._engine.records import record
from fastrbhc._engine.simd import LANES, lowest_set_bit
from fastrbhc._engine.threads import Threads

# Slots of a group of eight runs, whose boxes are bounded together, and of eight groups.
_GROUP_OF_RUNS, _WIDE_GROUP = LANES * RUN, LANES * LANES * RUN

# Queries that scan runs together: each is a bit of a number that is not negative.
_TOGETHER = 60

# With fewer clusters a scan of all takes a tenth of a second.
FEWEST = 4_096
# What boxes pass over is tried with so many queries. If they leave more than this share of the
# runs, as they do if there is no structure, all slots are scanned.
_QUERIES_TRIED, _MOST_LEFT = 200, 0.6
# If they come to leave more than this between two rebuilds, the same happens from then on: with
# full covariances, boxes rule out less the more shapes are in them.
_MOST_LEFT_LATER = 0.8
# The order takes the widest coordinates in a sample.
_MOST_ORDERED, _SAMPLE = 64, 2_000

# A bit for each of eight boxes.
_EIGHT = (1 << LANES) - 1

# Threads share the boxes to be refitted in so many parts.
_PARTS = 16


@record
class Blocks:
    """Boxes around runs of slots; see the module's documentation."""

    coordinates: NDArray[Any]  # (d, n), of the clusters: boxes hold ranges of these
    boxes: NDArray[np.float64]  # (…, rows, 8), of eight runs each
    wide_boxes: NDArray[np.float64]  # (…, rows, 8), each around eight runs
    columns: NDArray[np.int64]  # these four are as in `KDTree`
    weights: NDArray[np.int64]
    features: NDArray[np.int64]
    feature_rows: NDArray[np.int64]
    widths: NDArray[np.float64]
    touched: NDArray[np.bool_]  # by group of eight runs: boxes to be refitted
    ages: NDArray[np.int32]  # by slot: the older of two clusters has the smaller number
    former_ages: NDArray[np.int32]  # by slot, before its last union
    eldest: NDArray[np.int32]  # by run: no age in it is smaller
    n_ages: int
    n_ordered: int  # number of clusters when they were last put in order
    # Pairs of a query and a run since the last rebuild, and how many of them boxes have left.
    # Threads may lose some of each other's counts, which matters little to the ratio.
    n_bounded: int = 0
    n_left: int = 0
    unbounded: bool = False  # whether boxes came to leave too much: all slots are scanned
    # As for `Brute`; boxes are fitted to the clusters that are left, too.
    rebuild_below: float = 0.9
    unions_in_new_slots: bool = False
    n_parts: int = _PARTS
    lowered: Lowered = NONE_LOWERED

    def rebuild(self, clusters: Clusters, threads: Threads) -> NDArray[np.int64]:
        slots = np.flatnonzero(~np.isnan(clusters.weights[: clusters.n_slots]))
        self.unbounded = self.unbounded or self.n_left > _MOST_LEFT_LATER * self.n_bounded
        self.n_left = self.n_bounded = 0
        if self.unbounded:
            slots = slots[np.argsort(self.ages[slots])]  # so that whole runs are younger than some
        elif slots.size <= self.n_ordered // 2:
            slots = _in_order(self, slots, threads)
            self.n_ordered = slots.size
        gather(clusters, slots, threads)
        self.ages[: slots.size] = self.ages[slots]
        self.touched[:] = True
        refit(refitting(self, clusters, threads.scratches[0]), slots.size, threads)
        return slots

    def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
        best, slot = _begin(index, geometry, clusters, i, hint, cutoff, False, scratch)
        last = (clusters.n_slots - 1) // _GROUP_OF_RUNS
        home = min(i // _GROUP_OF_RUNS, last)
        index.n_bounded += LANES * (last + 1)
        for step in range(last + 1):
            g = _outward(home, step, last)
            near = _EIGHT
            if not index.unbounded:
                near = block_bounds(geometry, clusters, i, index.boxes, g, best, scratch)
            while near:
                start = g * _GROUP_OF_RUNS + lowest_set_bit(near) * RUN
                near &= near - 1
                stop = min(start + RUN, clusters.n_slots)
                if start < stop:
                    best, slot = nearest_in(geometry, clusters, i, start, stop, best, slot, scratch)
                    index.n_left += 1
        return best, slot

    def find(index, geometry, clusters, queries, first, last, scratch):
        values, slots, older = queries.values, queries.neighbors, queries.halved
        group, wanted = scratch.group, scratch.wanted
        last_group = (clusters.n_slots - 1) // _WIDE_GROUP
        for begin in range(first, last, _TOGETHER):
            count = take_group(queries.queue, begin, min(begin + _TOGETHER, last), group)
            for q in range(count):
                i, hint = group[q], hint_of(np.int64(slots[group[q]]))
                values[i], slots[i] = _begin(
                    index, geometry, clusters, i, hint, queries.cutoff, older, scratch
                )
            prepare_queries(geometry, clusters, group, 0, count, scratch)
            everyone, home, left = (1 << count) - 1, group[count // 2] // _WIDE_GROUP, 0
            if index.unbounded:
                _scan_all(index, geometry, clusters, queries, count, scratch)
                continue
            for step in range(last_group + 1):
                g = _outward(home, step, last_group)
                boxes, wide = index.boxes, index.wide_boxes
                _mark(geometry, clusters, wide, g, everyone, values, wanted[0], scratch)
                for w in range(LANES):
                    some, inner = wanted[0, w], LANES * g + w
                    if some:
                        _mark(geometry, clusters, boxes, inner, some, values, wanted[1], scratch)
                        left += _scan_eight(
                            index, geometry, clusters, queries, inner, count, scratch
                        )
            index.n_left += left
            index.n_bounded += count * (1 + (clusters.n_slots - 1) // RUN)

    def merged(index, clusters, i, j):
        if not np.isnan(clusters.weights[j]):  # a union has been undone
            index.ages[i] = index.former_ages[i]
        elif i != j:
            index.former_ages[i], index.ages[i] = index.ages[i], index.n_ages
            index.n_ages += 1
        include(index, clusters, i)
        include(index, clusters, j)

    def touch(index, i, j):
        index.touched[i // _GROUP_OF_RUNS] = True
        index.touched[j // _GROUP_OF_RUNS] = True

    def refit_part(index, clusters, part):
        n = index.touched.size
        for group in range(part * n // _PARTS, (part + 1) * n // _PARTS):
            if index.touched[group]:
                index.touched[group] = False
                for run in range(LANES * group, LANES * (group + 1)):
                    fit_run(index, clusters, run)
                fit_wide_box(index, group)


def scan(geometry: Any, clusters: Clusters, threads: Threads, audited: bool) -> Blocks | Brute:
    """The scan that suits the clusters, which fill the first slots: by blocks, or of all slots.

    The tree is the same to the bit, so that it may depend on the values.
    """
    n = clusters.n_slots
    bounded = hasattr(type(geometry), "box_bounds") and clusters.segments.places.shape[1] == 0
    if audited or n < FEWEST or not bounded or clusters.means.shape[0] == 0:
        return Brute()
    index = blocks(geometry, clusters, threads)
    adapted, scratch = for_clusters(geometry, clusters), threads.scratches[0]
    left = _runs_left(index, adapted, clusters, -(-n // _QUERIES_TRIED), scratch)
    return index if left <= _MOST_LEFT else Brute()


def blocks(geometry: Any, clusters: Clusters, threads: Threads) -> Blocks:
    """Boxes around the runs of clusters that fill the first slots, which are put in order."""
    n, n_features, capacity = clusters.n_slots, clusters.means.shape[0], clusters.weights.size
    coordinates, n_groups = block_coordinates(geometry, clusters), -(-n // _WIDE_GROUP) * LANES
    d, layout = coordinates.shape[0], box_layout(geometry, n_features)
    rows, widths = box_rows(geometry, n_features), np.ones(d)
    if coordinates is not clusters.means:
        rows, layout = 2 * d + 1, BoxLayout([2 * k for k in range(d)], [2 * d], [], [])
    elif hasattr(type(geometry), "column_widths"):
        widths = column_widths(geometry, clusters)
    index = Blocks(
        coordinates=coordinates,
        boxes=np.empty((n_groups, rows, LANES)),
        wide_boxes=np.empty((n_groups // LANES, rows, LANES)),
        columns=np.array(layout.columns, np.int64),
        weights=np.array(layout.weights, np.int64),
        features=np.array(layout.features, np.int64),
        feature_rows=np.array(layout.feature_rows, np.int64),
        widths=widths,
        touched=np.zeros(n_groups, bool),
        ages=np.zeros(capacity, np.int32),
        former_ages=np.zeros(capacity, np.int32),
        eldest=np.zeros(LANES * n_groups, np.int32),
        n_ages=n,
        n_ordered=n,
    )
    gather(clusters, _in_order(index, np.arange(n), threads), threads)
    index.ages[:n] = np.arange(n)  # at first the order of the slots is that of creation
    index.rebuild(clusters, threads)
    return index


def _in_order(index: Blocks, slots: NDArray[np.int64], threads: Threads) -> NDArray[np.int64]:
    """The slots in the order of a kd-tree whose leaves are runs, by the widest coordinates."""
    some = slots[:: -(-slots.size // _SAMPLE)]
    spreads = index.widths * [np.std(coordinate[some]) for coordinate in index.coordinates]
    widest = np.argsort(-spreads, kind="stable")[:_MOST_ORDERED]
    rows = np.empty((slots.size, widest.size))
    for column, k in enumerate(widest):
        rows[:, column] = index.widths[k] * index.coordinates[k, slots]
    return order_of_rows(rows, slots, _places(slots.size), threads, RUN, by_variance=True)


def _places(n: int) -> int:
    """A power of 2 of runs, with room for n slots."""
    runs = -(-n // RUN)
    return RUN << max(runs - 1, 0).bit_length()


@kernel
def _runs_left(index, geometry, clusters, step, scratch):
    """The share of runs that every step-th slot would scan, given the nearest slot of its run."""
    left, count = 0, 0
    for i in range(0, clusters.n_slots, step):
        best, start = np.inf, i // RUN * RUN
        for j in range(start, min(start + RUN, clusters.n_slots)):
            if j != i:
                best = min(best, dissimilarity(geometry, clusters, i, j, best, scratch))
        for g in range(index.boxes.shape[0]):
            near = block_bounds(geometry, clusters, i, index.boxes, g, best, scratch)
            while near:
                near &= near - 1
                left += 1
        count += 1
    return left * RUN / (count * clusters.n_slots)


@kernel
def _outward(home, step, last):
    """The numbers 0…last in the order of their distance from home, for step = 0, 1, …"""
    near = min(home, last - home)
    if step <= 2 * near:
        return home - (step + 1) // 2 if step % 2 else home + step // 2
    return step if home <= last - home else last - step


@kernel
def _begin(index, geometry, clusters, i, hint, cutoff, older, scratch):
    """The nearest of the slot of the hint, if any, and the slots in the same run."""
    ages, best, slot = index.ages, cutoff, np.int64(-1)
    if hint >= 0 and not (older and ages[hint] > ages[i]):
        best, slot = closer(geometry, clusters, i, hint, best, slot, scratch)
    start = i // RUN * RUN
    stop = min(start + RUN, clusters.n_slots)
    bounds, smallest, first = scratch.bounds, np.inf, -1
    lower_bounds(geometry, clusters, i, start, stop, scratch)
    for s in range(stop - start):
        j = start + s
        if j in (i, slot) or (older and ages[j] > ages[i]):
            bounds[s] = np.nan
        elif bounds[s] < smallest:
            smallest, first = bounds[s], s
    # The one with the smallest bound comes first: its d often rejects the others. Exact values of
    # some geometries overwrite the bounds, so that these are kept.
    if first >= 0 and smallest <= best:
        kept = scratch.other_bounds
        for s in range(stop - start):
            kept[s] = bounds[s]
        best, slot = closer(geometry, clusters, i, start + first, best, slot, scratch)
        for s in range(stop - start):
            if s != first and kept[s] <= best:
                best, slot = closer(geometry, clusters, i, start + s, best, slot, scratch)
    return best, slot


@kernel
def _mark(geometry, clusters, boxes, g, queries, values, wanted, scratch):
    """Find which of some queries may be near clusters in the eight boxes of group g."""
    for lane in range(LANES):
        wanted[lane] = 0
    left = queries
    while left:
        q = lowest_set_bit(left)
        left &= left - 1
        i = scratch.group[q]
        near = block_bounds(geometry, clusters, i, boxes, g, values[i], scratch)
        while near:
            lane = lowest_set_bit(near)
            near &= near - 1
            wanted[lane] |= 1 << q


@kernel
def _scan_eight(index, geometry, clusters, queries, g, count, scratch):
    """Scan the runs of group g for the queries to which they may be near; how many pairs they are.

    A run is passed over if it is that of the query, which is known already, or if one link for each
    pair is enough and all of its clusters are younger.
    """
    all_left = 0
    for lane in range(LANES):
        run, wanted, left = LANES * g + lane, scratch.wanted[1, lane], scratch.wanted[1, lane]
        while left:
            q = lowest_set_bit(left)
            left &= left - 1
            i = scratch.group[q]
            all_left += 1
            younger = queries.halved and index.eldest[run] >= index.ages[i]
            if i // RUN == run or younger:
                wanted -= 1 << q
        if wanted:
            start, stop = run * RUN, min((run + 1) * RUN, clusters.n_slots)
            _scan(index, geometry, clusters, queries, start, stop, wanted, count, scratch)
    return all_left


@kernel
def _scan_all(index, geometry, clusters, queries, count, scratch):
    """Scan all slots for the queries of the group, but for blocks of younger clusters."""
    for start in range(0, clusters.n_slots, BLOCK):
        stop, eldest = min(start + BLOCK, clusters.n_slots), index.eldest[start // RUN]
        for run in range(start // RUN, 1 + (stop - 1) // RUN):
            eldest = min(eldest, index.eldest[run])
        wanted = 0
        for q in range(count):
            if not (queries.halved and eldest >= index.ages[scratch.group[q]]):
                wanted |= 1 << q
        if wanted:
            _scan(index, geometry, clusters, queries, start, stop, wanted, count, scratch)


@kernel
def _scan(index, geometry, clusters, queries, start, stop, wanted, count, scratch):
    """Look for the neighbours of some queries of the group in a range of slots."""
    values, slots, older = queries.values, queries.neighbors, queries.halved
    group, pairs, ages = scratch.group, scratch.pairs, index.ages
    found = candidate_pairs(
        geometry, clusters, group, 0, count, wanted, start, stop, values, scratch
    )
    for f in range(found):
        i, j = group[pairs[f] // BLOCK], start + pairs[f] % BLOCK
        if not scratch.pair_bounds[f] <= values[i]:
            continue
        if j != i and j != slots[i] and not (older and ages[j] > ages[i]):
            values[i], slots[i] = closer(geometry, clusters, i, j, values[i], slots[i], scratch)
