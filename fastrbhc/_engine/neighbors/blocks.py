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
    lower_bounds,
    prepare_queries,
)
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.brute import closer, nearest_in, take_group
from fastrbhc._engine.neighbors.contract import NONE_LOWERED, Lowered, hint_of, refit, refitting
from fastrbhc._engine.neighbors.kd_order import order_of_rows
from fastrbhc._engine.neighbors.kd_tree import WIDENED, BoxLayout, box_layout
from fastrbhc._engine.records import record
from fastrbhc._engine.simd import LANES, lowest_set_bit
from fastrbhc._engine.threads import Threads

# Slots of a run, and of the runs whose boxes are bounded together.
RUN = 64
_GROUP_OF_RUNS, _WIDE_GROUP = LANES * RUN, LANES * LANES * RUN

# Queries that scan runs together: each is a bit of a number that is not negative.
_TOGETHER = 60

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
    # As for `Brute`; boxes are fitted to the clusters that are left, too.
    rebuild_below: float = 0.9
    unions_in_new_slots: bool = False
    n_parts: int = _PARTS
    lowered: Lowered = NONE_LOWERED

    def rebuild(self, clusters: Clusters, threads: Threads) -> NDArray[np.int64]:
        slots = np.flatnonzero(~np.isnan(clusters.weights[: clusters.n_slots]))
        if slots.size <= self.n_ordered // 2:
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
        for step in range(last + 1):
            g = _outward(home, step, last)
            near = block_bounds(geometry, clusters, i, index.boxes, g, best, scratch)
            while near:
                start = g * _GROUP_OF_RUNS + lowest_set_bit(near) * RUN
                near &= near - 1
                stop = min(start + RUN, clusters.n_slots)
                best, slot = nearest_in(geometry, clusters, i, start, stop, best, slot, scratch)
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
            home = group[count // 2] // _WIDE_GROUP
            for step in range(last_group + 1):
                g = _outward(home, step, last_group)
                _mark(geometry, clusters, index.wide_boxes, g, group, (1 << count) - 1, values, wanted[0], scratch)
                for w in range(LANES):
                    if wanted[0, w]:
                        _mark(geometry, clusters, index.boxes, LANES * g + w, group, wanted[0, w], values, wanted[1], scratch)
                        for r in range(LANES):
                            if wanted[1, r]:
                                run = LANES * (LANES * g + w) + r
                                _scan(index, geometry, clusters, run, wanted[1, r], count, older, values, slots, scratch)

    def merged(index, clusters, i, j):
        if not np.isnan(clusters.weights[j]):  # a union has been undone
            index.ages[i] = index.former_ages[i]
        elif i != j:
            index.former_ages[i], index.ages[i] = index.ages[i], index.n_ages
            index.n_ages += 1
        _include(index, clusters, i)
        _include(index, clusters, j)

    def touch(index, i, j):
        index.touched[i // _GROUP_OF_RUNS] = True
        index.touched[j // _GROUP_OF_RUNS] = True

    def refit_part(index, clusters, part):
        n = index.touched.size
        for group in range(part * n // _PARTS, (part + 1) * n // _PARTS):
            if index.touched[group]:
                index.touched[group] = False
                for run in range(LANES * group, LANES * (group + 1)):
                    _fit_run(index, clusters, run)
                _fit_wide_box(index, group)


def blocks(geometry: Any, clusters: Clusters, threads: Threads) -> Blocks:
    """Boxes around the runs of clusters that fill the first slots, which are put in order."""
    n, n_features, capacity = clusters.n_slots, clusters.means.shape[0], clusters.weights.size
    coordinates, n_groups = block_coordinates(geometry, clusters), -(-n // _WIDE_GROUP) * LANES
    d, layout = coordinates.shape[0], box_layout(geometry, n_features)
    rows, widths = box_rows(geometry, n_features), np.ones(d)
    if coordinates is not clusters.means:
        rows, layout = 2 * d + 1, BoxLayout([2 * k for k in range(d)], [2 * d], [], [])
    elif clusters.blocks:
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
    """The slots in the order of a kd-tree whose leaves are runs."""
    rows = np.empty((slots.size, index.widths.size))
    for k, width in enumerate(index.widths):
        rows[:, k] = width * index.coordinates[k, slots]
    return order_of_rows(rows, slots, _places(slots.size), threads, RUN)


def _places(n: int) -> int:
    """A power of 2 of runs, with room for n slots."""
    runs = -(-n // RUN)
    return RUN << max(runs - 1, 0).bit_length()


@kernel
def _outward(home, step, last):
    """The numbers 0…last in the order of their distance from home, for step = 0, 1, …"""
    near = min(home, last - home)
    if step <= 2 * near:
        return home - (step + 1) // 2 if step % 2 else home + step // 2
    return step if home <= last - home else last - step


@kernel
def _begin(index, geometry, clusters, i, hint, cutoff, older, scratch):
    """The slot of the hint, or else that of the smallest bound around slot i, if nearer."""
    ages = index.ages
    slot = hint if not older or (hint >= 0 and ages[hint] < ages[i]) else -1
    if slot < 0:
        stop, smallest = min((i // RUN + 1) * RUN, clusters.n_slots), np.inf
        start = max(stop - BLOCK, 0)
        lower_bounds(geometry, clusters, i, start, stop, scratch)
        for s in range(stop - start):
            j = start + s
            if scratch.bounds[s] < smallest and j != i and not (older and ages[j] > ages[i]):
                smallest, slot = scratch.bounds[s], j
    if slot < 0:
        return cutoff, np.int64(-1)
    return closer(geometry, clusters, i, slot, cutoff, -1, scratch)


@kernel
def _mark(geometry, clusters, boxes, g, group, queries, values, wanted, scratch):
    """Find which of some queries may be near clusters in the eight boxes of group g."""
    for lane in range(LANES):
        wanted[lane] = 0
    left = queries
    while left:
        q = lowest_set_bit(left)
        left &= left - 1
        i = group[q]
        near = block_bounds(geometry, clusters, i, boxes, g, values[i], scratch)
        while near:
            lane = lowest_set_bit(near)
            near &= near - 1
            wanted[lane] |= 1 << q


@kernel
def _scan(index, geometry, clusters, run, wanted, count, older, values, slots, scratch):
    """Look for the neighbours of some queries of the group in a run."""
    group, pairs, ages = scratch.group, scratch.pairs, index.ages
    start, stop = run * RUN, min((run + 1) * RUN, clusters.n_slots)
    if older:
        left = wanted
        while left:
            q = lowest_set_bit(left)
            left &= left - 1
            if index.eldest[run] >= ages[group[q]]:
                wanted -= 1 << q
    found = candidate_pairs(
        geometry, clusters, group, 0, count, wanted, start, stop, values, scratch
    )
    for f in range(found):
        i, j = group[pairs[f] // BLOCK], start + pairs[f] % BLOCK
        if not scratch.pair_bounds[f] <= values[i]:
            continue
        if j != i and j != slots[i] and not (older and ages[j] > ages[i]):
            values[i], slots[i] = closer(geometry, clusters, i, j, values[i], slots[i], scratch)


@kernel
def _fit_run(index, clusters, run):
    """Fit the box of a run to its clusters."""
    boxes, group, lane = index.boxes, run // LANES, run % LANES
    start, stop = run * RUN, min((run + 1) * RUN, clusters.n_slots)
    for k in range(index.columns.size):
        low, high = np.inf, -np.inf
        for s in range(start, stop):
            mean = np.float64(index.coordinates[k, s])
            low = mean if mean < low else low
            high = mean if mean > high else high
        if low <= high:
            low, high = low - WIDENED * abs(low), high + WIDENED * abs(high)
        boxes[group, index.columns[k], lane] = low
        boxes[group, index.columns[k] + 1, lane] = high
    lightest, eldest = np.inf, 2**31 - 1
    for s in range(start, stop):
        if clusters.weights[s] <= lightest:
            lightest = clusters.weights[s]
        if clusters.weights[s] > 0.0 and index.ages[s] < eldest:
            eldest = np.int64(index.ages[s])
    for k in range(index.weights.size):
        boxes[group, index.weights[k], lane] = lightest
    index.eldest[run] = eldest
    for e in range(index.features.size):
        low, high = np.inf, -np.inf
        for s in range(start, stop):
            if not np.isnan(clusters.weights[s]):
                value = clusters.cached[s, index.features[e]]
                low, high = min(low, value), max(high, value)
        boxes[group, index.feature_rows[e], lane] = low
        boxes[group, index.feature_rows[e] + 1, lane] = high


@kernel
def _fit_wide_box(index, group):
    """Fit the box around eight runs to their boxes."""
    for k in range(index.columns.size):
        _fit_interval(index, group, index.columns[k])
    for e in range(index.features.size):
        _fit_interval(index, group, index.feature_rows[e])
    lightest = np.inf
    for lane in range(LANES):
        lightest = min(lightest, index.boxes[group, index.weights[0], lane])
    for k in range(index.weights.size):
        index.wide_boxes[group // LANES, index.weights[k], group % LANES] = lightest


@kernel
def _fit_interval(index, group, row):
    low, high = np.inf, -np.inf
    for lane in range(LANES):
        low = min(low, index.boxes[group, row, lane])
        high = max(high, index.boxes[group, row + 1, lane])
    index.wide_boxes[group // LANES, row, group % LANES] = low
    index.wide_boxes[group // LANES, row + 1, group % LANES] = high


@kernel
def _include(index, clusters, i):
    """Widen the boxes around slot i, if there is a cluster in it, to contain the cluster."""
    if np.isnan(clusters.weights[i]):
        return
    run = i // RUN
    _widen(index, clusters, i, index.boxes, run)
    _widen(index, clusters, i, index.wide_boxes, run // LANES)


@kernel
def _widen(index, clusters, i, boxes, place):
    group, lane = place // LANES, place % LANES
    for k in range(index.columns.size):
        row, mean = index.columns[k], np.float64(index.coordinates[k, i])
        boxes[group, row, lane] = min(boxes[group, row, lane], mean - WIDENED * abs(mean))
        boxes[group, row + 1, lane] = max(boxes[group, row + 1, lane], mean + WIDENED * abs(mean))
    for k in range(index.weights.size):
        row = index.weights[k]
        boxes[group, row, lane] = min(boxes[group, row, lane], clusters.weights[i])
    for e in range(index.features.size):
        row, value = index.feature_rows[e], clusters.cached[i, index.features[e]]
        boxes[group, row, lane] = min(boxes[group, row, lane], value)
        boxes[group, row + 1, lane] = max(boxes[group, row + 1, lane], value)
