"""Postings: for each column, the clusters that have it; and bounds of d to all of them at once.

The bounds of `sparse_entropy` need only the columns that two clusters share. So a query adds up
what it shares with all clusters at once, column by column, as a product of sparse matrices does,
and then passes over the clusters with a few operations each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.geometry.contract import ROUNDING
from fastrbhc._engine.geometry.sparse import SLOTS_AT_A_TIME
from fastrbhc._engine.geometry.sparse_complement import (
    add_complements,
    add_complements_at,
    subtract_complement_costs,
)
from fastrbhc._engine.geometry.sparse_entropy import (
    TINY,
    bounds_from_overlaps,
    gather_shifts,
    overlaps,
    overlaps_at,
    put_shifts,
)
from fastrbhc._engine.jit import kernel, loose_kernel
from fastrbhc._engine.math.fast_log import LOG_OFF, quick_log
from fastrbhc._engine.records import record
from fastrbhc._engine.simd import LANES
from fastrbhc._engine.threads import Threads

# Smaller sums are rounded up to this.
_SMALLEST_FLOAT32 = 1.2e-38

# If n·o varies by no more than this share of the smallest sum, its smallest value stands for all.
# Likewise for n·c, beside itself.
_SMALL_SHARE = 0.02

# If the query's part of n·o is no more than this share, tangents replace logarithms.
_LINEAR_SHARE = 0.1

# Runs of slots whose weights are not alike are this long.
_SHORTEST_RUN = 256

# Threads that fill the postings: each has a number for every column.
_MOST_PIECES = 4

# Shorter runs of postings are searched one by one.
_SHORT = 16


@record
class Postings:
    """For each column, the slots that have it, ascending."""

    starts: NDArray[np.int64]  # (columns + 1,)
    slots: NDArray[np.int32]  # (entries,)
    values: NDArray[np.float32]  # (2, entries + LANES), sums, rounded up; log(s + n·o), down
    runs: NDArray[np.int64]  # (…,), where runs of slots begin and end
    weights: NDArray[np.float64]  # (…, 2), the smallest and largest weight in each run
    places: NDArray[np.int64]  # (pieces, columns), for filling: the next place of each column
    smallest_of_pieces: NDArray[np.float64]  # (pieces,)
    smallest: float  # of all sums
    scale: float
    offset: float
    n_runs: int
    n_slots: int  # the first slots, which were in use when the postings were made


def new_postings(geometry: Any, clusters: Clusters, threads: Threads) -> Postings:
    """The postings of clusters that fill the first slots."""
    segments, n = clusters.segments, clusters.weights.size
    entries, pieces = int(segments.end[0]), min(threads.count, _MOST_PIECES)
    postings = Postings(
        starts=np.zeros(segments.n_columns + 1, np.int64),
        slots=np.zeros(entries, np.int32),
        values=np.ones((2, entries + LANES), np.float32),
        runs=np.zeros(n // _SHORTEST_RUN + 2, np.int64),
        weights=np.empty((n // _SHORTEST_RUN + 1, 2)),
        places=np.empty((pieces, segments.n_columns), np.int64),
        smallest_of_pieces=np.empty(pieces),
        smallest=np.inf,
        scale=geometry.scale,
        offset=geometry.offset,
        n_runs=0,
        n_slots=0,
    )
    fill_postings(postings, clusters, threads)
    return postings


def fill_postings(postings: Postings, clusters: Clusters, threads: Threads) -> None:
    """Sort the entries of all clusters by column; slots stay ascending.

    Threads share the slots, then the postings.
    """
    postings.n_slots = clusters.n_slots
    pieces = postings.smallest_of_pieces.size
    each = 1e-9 * (1 + postings.slots.size / pieces)  # seconds for one pass over a piece

    def share(work: Any, total: int, seconds: float) -> None:
        threads.run(lambda first, last, _: work(postings, clusters, first, last), total, seconds)

    share(_count_entries, pieces, each)
    postings.smallest = postings.smallest_of_pieces.min()
    _find_places(postings, clusters)
    share(_put_entries, pieces, 2.0 * each)
    share(_put_logs, int(postings.starts[-1]), 1e-9)


@kernel
def _slots_of_piece(postings, piece):
    """The first slot of a piece, and the one after its last."""
    pieces = postings.smallest_of_pieces.size
    return piece * postings.n_slots // pieces, (piece + 1) * postings.n_slots // pieces


@kernel
def _count_entries(postings, clusters, first, last):
    """Count the entries of each column in some pieces of the slots, and find the smallest sums."""
    segments = clusters.segments
    for piece in range(first, last):
        counts, smallest = postings.places[piece], np.inf
        for k in range(counts.size):
            counts[k] = 0
        start, stop = _slots_of_piece(postings, piece)
        for i in range(start, stop):
            for p in range(segments.places[i, 0], segments.places[i, 1]):
                counts[segments.columns[p]] += 1
                smallest = min(smallest, segments.sums[p])
        postings.smallest_of_pieces[piece] = smallest


@kernel
def _find_places(postings, clusters):
    """Turn the numbers of entries into their places, and find the weights of runs of slots."""
    starts, places, place = postings.starts, postings.places, 0
    for k in range(places.shape[1]):
        starts[k] = place
        for piece in range(places.shape[0]):
            places[piece, k], place = place, place + places[piece, k]
    starts[places.shape[1]] = place
    _find_runs(postings, clusters.weights)


@kernel
def _find_runs(postings, weights):
    """Divide the slots into runs, if possible of similar weights."""
    n, stop, run = postings.n_slots, 0, 0
    while stop < n:
        start = stop
        lightest, heaviest = weights[start], weights[start]
        stop += 1
        while stop < min(n, start + SLOTS_AT_A_TIME):
            low, high = min(lightest, weights[stop]), max(heaviest, weights[stop])
            if stop - start >= _SHORTEST_RUN and not _are_alike(postings, low, high):
                break
            lightest, heaviest = low, high
            stop += 1
        postings.runs[run], postings.runs[run + 1] = start, stop
        postings.weights[run, 0], postings.weights[run, 1] = lightest, heaviest
        run += 1
    postings.n_runs = run


@kernel
def _are_alike(postings, lightest, heaviest):
    """Whether the smallest n·o of a run of slots may stand for all."""
    small = _SMALL_SHARE * postings.scale * postings.smallest
    return (heaviest - lightest) * postings.offset <= small


@kernel
def _put_entries(postings, clusters, first, last):
    """Put the entries of some pieces of the slots into their places."""
    segments, values = clusters.segments, postings.values[0]
    for piece in range(first, last):
        places = postings.places[piece]
        start, stop = _slots_of_piece(postings, piece)
        for i in range(start, stop):
            for p in range(segments.places[i, 0], segments.places[i, 1]):
                place = places[segments.columns[p]]
                postings.slots[place] = i
                values[place] = max(segments.sums[p] * (1.0 + 2.0**-22), _SMALLEST_FLOAT32)
                places[segments.columns[p]] = place + 1


@loose_kernel
def _put_logs(postings, clusters, first, last):
    """Fill in the logarithms of a range of the postings."""
    sums, logs, slots = postings.values[0], postings.values[1], postings.slots
    weights = clusters.weights
    scale, offset = postings.scale, postings.offset
    for e in range(first, last):
        log = quick_log(scale * sums[e] + weights[slots[e]] * offset)
        logs[e] = log - (2.0 * LOG_OFF + 2.0**-22 * abs(log))


@kernel
def begin_scan(postings, clusters, i, scratch):
    """Put the first posting of every column of slot i into scratch.bits."""
    segments, positions = clusters.segments, scratch.bits[0]
    first = segments.places[i, 0]
    for p in range(first, segments.places[i, 1]):
        positions[p - first] = postings.starts[segments.columns[p]]


@kernel
def run_bounds(postings, geometry, clusters, i, run, last, scratch):
    """Fill scratch.matrix[0] with lower bounds of d from slot i to a run of slots before the last.

    The run has to follow that of the last call.
    """
    segments, positions = clusters.segments, scratch.bits[0]
    out, deltas = scratch.matrix[0], scratch.matrix[1]
    start, stop = postings.runs[run], min(postings.runs[run + 1], last)
    scale, offset, weight = postings.scale, postings.offset, clusters.weights[i]
    lightest, heaviest = postings.weights[run, 0], postings.weights[run, 1]
    alike = _are_alike(postings, lightest, heaviest)
    linear = weight * offset <= _LINEAR_SHARE * scale * postings.smallest
    least = max((weight + lightest) * offset, TINY)
    for s in range(stop - start):
        out[s] = 0.0
    if not alike:
        put_shifts(weight, clusters.weights[start:stop], offset, scratch)
    first = segments.places[i, 0]
    for p in range(first, segments.places[i, 1]):
        begin = positions[p - first]
        end = _end_of_run(postings.slots, begin, postings.starts[segments.columns[p] + 1], stop)
        if begin == end:
            continue
        positions[p - first] = end
        slots, others = postings.slots[begin:end], postings.values[:, begin : end + LANES]
        own = scale * segments.sums[p]
        if alike:
            shift = (weight - (heaviest - lightest)) * offset
            overlaps_at(own, linear, shift, scale, others, least, deltas, slots.size)
        else:
            gather_shifts(slots, start, scratch)
            overlaps(own, linear, weight * offset, scale, others, scratch, deltas, slots.size)
        if geometry.ceiling > 0.0:
            _complete(postings, geometry, clusters.weights, i, run, own, slots, others, scratch)
        for e in range(slots.size):
            out[np.uint64(slots[e] - start)] += deltas[e]
    if geometry.ceiling > 0.0:
        subtract_complement_costs(clusters, i, start, stop, geometry.ceiling, out)
    bounds_from_overlaps(clusters, i, start, stop, offset, out)
    factor = geometry.entropy_share * ROUNDING
    for s in range(stop - start):
        # NaN, if terms overflow, becomes 0, which is a bound too; free slots stay NaN.
        out[s] = out[s] * factor if out[s] > 0.0 else 0.0 * clusters.weights[start + s]


@kernel
def _complete(postings, geometry, weights, i, run, own, slots, others, scratch):
    """Add Δ′ to Δ of slot i, whose s is ``own``, and some postings of a column in a run."""
    deltas, ceilings = scratch.matrix[1], scratch.matrix[6]
    scale, ceiling, weight = geometry.scale, geometry.ceiling, weights[i]
    lightest, heaviest = postings.weights[run, 0], postings.weights[run, 1]
    if heaviest - lightest <= _SMALL_SHARE * lightest:
        least = (weight + lightest) * ceiling
        add_complements_at(own, scale, others, least, deltas, slots.size)
    else:
        for e in range(slots.size):
            ceilings[e] = (weight + weights[np.uint64(slots[e])]) * ceiling
        add_complements(own, scale, others, ceilings, deltas, slots.size)


@kernel
def _end_of_run(slots, begin, end, stop):
    """The first place from ``begin`` on whose slot is not before ``stop``; at most ``end``."""
    if begin == end or slots[end - 1] < stop:
        return end
    low, high = begin, end - 1
    while high - low > _SHORT:
        middle = (low + high) >> 1
        if slots[middle] < stop:
            low = middle
        else:
            high = middle
    while slots[low] < stop:
        low += 1
    return low
