"""Clusters of sparse rows: for each one the columns that are not zero, with the sums of their rows.

All clusters share one pool of entries. A cluster has a segment of it, in the order of the columns.
A segment never changes: a union gets a new one, so that a copy of a slot is a copy of two numbers,
and threads can merge pairs at the same time. The segments of parts are garbage once they are
merged, and `compact` closes the gaps.

A union has at most as many entries as its parts together. So the clusters alive never have more
entries than the rows had, whatever the order of merging, and a pool that is larger by three
quarters has room for that many new entries between two compactions.

Sums of whole numbers are exact. Those of other numbers are in double-double arithmetic, as means
of dense rows are.

In a product of families several blocks may be sparse. They share the pool, and a slot has one
segment for each: a block sees its own (`segments_of_block`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import inlined_kernel, kernel
from fastrbhc._engine.math.double_double import add
from fastrbhc._engine.records import record, replaced
from fastrbhc._engine.team import fetch_add


@record
class Segments:
    """The pool, and the segment of each slot; all empty if rows are dense."""

    columns: NDArray[np.int32]  # (capacity,)
    sums: NDArray[np.float64]  # (capacity,), weighted sums of the rows, not means
    rests: NDArray[np.float64]  # (capacity,), the digits after them; empty if sums are exact
    places: NDArray[np.int64]  # (n, 2s), where each of the s segments of a slot starts and ends
    end: NDArray[np.int64]  # (1,), the first free entry of the pool
    n_columns: int
    longest: int  # no union has more entries


def no_segments(n: int) -> Segments:
    """For dense rows."""
    return Segments(
        columns=np.empty(0, np.int32),
        sums=np.empty(0),
        rests=np.empty(0),
        places=np.zeros((n, 0), np.int64),
        end=np.zeros(1, np.int64),
        n_columns=0,
        longest=0,
    )


def new_segments(
    n: int,
    n_columns: tuple[int, ...],
    n_entries: tuple[int, ...],
    whole: bool,
    n_unions: int = 0,
) -> Segments:
    """An empty pool for n slots with a segment for each sparse block, and room for unions.

    Blocks have numbers of columns, and of entries in all rows together. Sums that are not whole
    numbers take more memory: there is less room for new entries then.
    """
    entries = sum(n_entries)
    longest = sum(map(min, n_entries, n_columns))
    room = entries + (3 * entries // 4 if whole else entries // 4) + longest * max(n_unions, 1)
    return Segments(
        columns=np.empty(room, np.int32),
        sums=np.empty(room),
        rests=np.empty(0 if whole else room),
        places=np.zeros((n, 2 * len(n_columns)), np.int64),
        end=np.zeros(1, np.int64),
        n_columns=sum(n_columns),
        longest=longest,
    )


def segments_of_block(segments: Segments, first: int, count: int, n_columns: int) -> Segments:
    """What a block of columns sees: ``count`` of the segments of each slot."""
    places = segments.places[:, 2 * first : 2 * (first + count)]
    longest = min(segments.longest, n_columns)
    return replaced(segments, places=places, n_columns=n_columns, longest=longest)


def joined_segments(segments: Segments, others: Segments) -> Segments:
    """One pool for the slots of two, those of the first one coming first."""
    end, other_end = int(segments.end[0]), int(others.end[0])

    def both(own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([own[:end], other[:other_end]])

    rests = np.empty(0)
    if segments.rests.size or others.rests.size:
        rests = both(*(_rests(pool) for pool in (segments, others)))
    return replaced(
        segments,
        columns=both(segments.columns, others.columns),
        sums=both(segments.sums, others.sums),
        rests=rests,
        places=np.concatenate([segments.places, others.places + end]),
        end=np.array([end + other_end]),
    )


def _rests(pool: Segments) -> NDArray[np.float64]:
    return pool.rests if pool.rests.size else np.zeros(pool.sums.size)


@kernel
def copy_segment(segments, source, target):
    """Let a slot have the segments of another."""
    for k in range(segments.places.shape[1]):
        segments.places[target, k] = segments.places[source, k]


@kernel
def n_entries(segments, slot):
    """The number of entries of a slot; 0 if rows are dense."""
    count = np.int64(0)
    for k in range(0, segments.places.shape[1], 2):
        count += segments.places[slot, k + 1] - segments.places[slot, k]
    return count


@kernel
def lacks_room(segments):
    """Whether the union of two clusters may not find room, so that the pool should be compacted."""
    return segments.columns.size - segments.end[0] < segments.longest


@kernel
def most_entries(segments, i, j):
    """At least the number of entries of the union of two slots."""
    return min(n_entries(segments, i) + n_entries(segments, j), segments.longest)


@inlined_kernel
def next_entries(columns, p, p_end, q, q_end):
    """One step along two segments in the order of their columns, of which p and q are next.

    Returns p and q after the step, and the entries of its column, −1 for a segment that lacks it.
    The loop goes on as long as either segment has entries left.
    """
    left = q >= q_end or (p < p_end and columns[p] <= columns[q])
    right = p >= p_end or (q < q_end and columns[q] <= columns[p])
    return p + np.int64(left), q + np.int64(right), p if left else -1, q if right else -1


@kernel
def unite_segments(segments, i, j):
    """Give slot i a new segment with the sums of slots i and j."""
    columns, sums, places = segments.columns, segments.sums, segments.places
    p, p_end, q, q_end = places[i, 0], places[i, 1], places[j, 0], places[j, 1]
    start = fetch_add(segments.end, 0, most_entries(segments, i, j))
    out = start
    while p < p_end or q < q_end:
        p, q, left, right = next_entries(columns, p, p_end, q, q_end)
        if right < 0:
            _copy_entry(segments, left, out)
        elif left < 0:
            _copy_entry(segments, right, out)
        else:
            columns[out], sums[out] = columns[left], sums[left] + sums[right]
            if segments.rests.size > 0:
                sums[out], segments.rests[out] = add(
                    sums[left], segments.rests[left], sums[right], segments.rests[right]
                )
        out += 1
    places[i, 0], places[i, 1] = start, out


@kernel
def _copy_entry(segments, source, target):
    segments.columns[target] = segments.columns[source]
    segments.sums[target] = segments.sums[source]
    if segments.rests.size > 0:
        segments.rests[target] = segments.rests[source]


@kernel
def rest_of(segments, entry):
    """The digits of an entry after those of its sum."""
    return segments.rests[entry] if segments.rests.size > 0 else 0.0


def compact(segments: Segments, count: int) -> None:
    """Close the gaps between the segments of the first slots; those of all others are lost."""
    if segments.places.shape[1]:
        places = segments.places[:count].reshape(-1, 2)  # a view
        segments.end[0] = _move_down(segments, places, np.argsort(places[:, 0], kind="stable"))


def compact_slots(segments: Segments, slots: NDArray[np.int64]) -> None:
    """The same for some of the slots, which stay where they are; all others are lost."""
    each = segments.places.shape[1] // 2
    if each:
        places = segments.places.reshape(-1, 2)  # a view
        which = (each * slots[:, None] + np.arange(each)).ravel()
        order = which[np.argsort(places[which, 0], kind="stable")]
        segments.end[0] = _move_down(segments, places, order)


@kernel
def _move_down(segments, places, order):
    """Move segments to the front of the pool, in the order of their places; the end of them."""
    out = 0
    for place in range(order.size):
        slot = order[place]
        start, stop = places[slot, 0], places[slot, 1]
        places[slot, 0] = out
        if start == out:
            out = stop
        else:
            for p in range(start, stop):
                _copy_entry(segments, p, out)
                out += 1
        places[slot, 1] = out
    return out
