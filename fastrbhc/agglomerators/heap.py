"""A binary heap of slots, ordered by the pair that each slot would merge with.

Pairs are ordered by dissimilarity, then by the smaller, then by the larger of the two ranks.
Since every pair of clusters alive has its own pair of ranks, the order is total, and the pair
that greedy merges next is never in doubt.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import kernel


class Heap(NamedTuple):
    """Slots in heap order, and where each of them stands (−1: not in the heap)."""

    slots: NDArray[np.int64]
    positions: NDArray[np.int64]
    size: NDArray[np.int64]  # (1,)


def empty_heap(capacity: int) -> Heap:
    """A heap with room for that many slots."""
    return Heap(
        np.empty(capacity, np.int64), np.full(capacity, -1, np.int64), np.zeros(1, np.int64)
    )


@kernel
def pair_before(links, ranks, a, b):
    """Whether the pair of slot a comes before the pair of slot b."""
    if links.values[a] != links.values[b]:
        return links.values[a] < links.values[b]
    smaller_a, smaller_b = min(ranks[a], links.ranks[a]), min(ranks[b], links.ranks[b])
    if smaller_a != smaller_b:
        return smaller_a < smaller_b
    return max(ranks[a], links.ranks[a]) < max(ranks[b], links.ranks[b])


@kernel
def heapify(heap, links, ranks, n):
    """Fill the heap with the slots 0…n−1."""
    heap.size[0] = n
    for slot in range(n):
        heap.slots[slot] = slot
        heap.positions[slot] = slot
    for position in range(n // 2 - 1, -1, -1):
        sift_down(heap, links, ranks, position)


@kernel
def sift_down(heap, links, ranks, position):
    """Let a slot whose pair has come later sink to its place."""
    slot = heap.slots[position]
    while True:
        child = 2 * position + 1
        if child >= heap.size[0]:
            break
        if child + 1 < heap.size[0] and pair_before(
            links, ranks, heap.slots[child + 1], heap.slots[child]
        ):
            child += 1
        if not pair_before(links, ranks, heap.slots[child], slot):
            break
        _place(heap, position, heap.slots[child])
        position = child
    _place(heap, position, slot)


@kernel
def sift_up(heap, links, ranks, position):
    """Let a slot whose pair has come earlier rise to its place."""
    slot = heap.slots[position]
    while position > 0:
        parent = (position - 1) // 2
        if not pair_before(links, ranks, slot, heap.slots[parent]):
            break
        _place(heap, position, heap.slots[parent])
        position = parent
    _place(heap, position, slot)


@kernel
def update(heap, links, ranks, slot):
    """Restore the order after the pair of a slot has changed either way."""
    sift_up(heap, links, ranks, heap.positions[slot])
    sift_down(heap, links, ranks, heap.positions[slot])


@kernel
def insert(heap, links, ranks, slot):
    """Put a slot that is not in the heap into it."""
    _place(heap, heap.size[0], slot)
    heap.size[0] += 1
    sift_up(heap, links, ranks, heap.size[0] - 1)


@kernel
def remove(heap, links, ranks, slot):
    """Take a slot out of the heap."""
    position = heap.positions[slot]
    heap.positions[slot] = -1
    heap.size[0] -= 1
    last = heap.slots[heap.size[0]]
    if last != slot:
        _place(heap, position, last)
        update(heap, links, ranks, last)


@kernel
def _place(heap, position, slot):
    heap.slots[position] = slot
    heap.positions[slot] = position
