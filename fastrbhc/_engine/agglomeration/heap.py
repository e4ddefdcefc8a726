"""A binary heap of slots, ordered by the pair of each slot and its neighbour.

Pairs are ordered by dissimilarity, then by the rule of `ordering`, so that the next merge is always
unique. The dissimilarities are stored in heap order too, so that comparisons read adjacent memory
and not the links of distant slots.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.ordering import ranks_before
from fastrbhc._engine.records import record


@record
class Heap:
    """Slots in heap order, and the position of each slot (−1: not in the heap)."""

    keys: NDArray[np.float64]  # the dissimilarity of the slot in the same place
    slots: NDArray[np.int64]
    positions: NDArray[np.int64]
    size: int


def empty_heap(capacity: int) -> Heap:
    """A heap with room for ``capacity`` slots."""
    return Heap(
        np.empty(capacity),
        np.empty(capacity, np.int64),
        np.full(capacity, -1, np.int64),
        0,
    )


@kernel
def pair_before(links, ranks, a, b):
    """Whether the pair of slot a comes before the pair of slot b."""
    if links.values[a] != links.values[b]:
        return links.values[a] < links.values[b]
    return ranks_before(ranks[a], links.ranks[a], ranks[b], links.ranks[b])


@kernel
def heapify(heap, links, ranks, n):
    """Fill the heap with the slots 0…n−1."""
    heap.size = n
    for slot in range(n):
        _place(heap, slot, links.values[slot], slot)
    for position in range(n // 2 - 1, -1, -1):
        _sink(heap, links, ranks, position)


@kernel
def insert(heap, links, ranks, slot):
    """Insert a slot that is not in the heap."""
    _place(heap, heap.size, links.values[slot], slot)
    heap.size += 1
    _rise(heap, links, ranks, heap.size - 1)


@kernel
def remove(heap, links, ranks, slot):
    """Remove a slot from the heap."""
    position = heap.positions[slot]
    heap.positions[slot] = -1
    heap.size -= 1
    last = heap.slots[heap.size]
    if last != slot:
        _place(heap, position, heap.keys[heap.size], last)
        _rise(heap, links, ranks, position)
        _sink(heap, links, ranks, heap.positions[last])


@kernel
def _sink(heap, links, ranks, position):
    """Move the slot at a position down to its place."""
    keys, slots, size = heap.keys, heap.slots, heap.size
    key, slot = keys[position], slots[position]
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        if child + 1 < size and (
            keys[child + 1] < keys[child]
            or (
                keys[child + 1] == keys[child]
                and pair_before(links, ranks, slots[child + 1], slots[child])
            )
        ):
            child += 1
        if keys[child] > key or (
            keys[child] == key and not pair_before(links, ranks, slots[child], slot)
        ):
            break
        _place(heap, position, keys[child], slots[child])
        position = child
    _place(heap, position, key, slot)


@kernel
def _rise(heap, links, ranks, position):
    """Move the slot at a position up to its place."""
    keys, slots = heap.keys, heap.slots
    key, slot = keys[position], slots[position]
    while position > 0:
        parent = (position - 1) // 2
        if keys[parent] < key or (
            keys[parent] == key and not pair_before(links, ranks, slot, slots[parent])
        ):
            break
        _place(heap, position, keys[parent], slots[parent])
        position = parent
    _place(heap, position, key, slot)


@kernel
def _place(heap, position, key, slot):
    heap.keys[position] = key
    heap.slots[position] = slot
    heap.positions[slot] = position
