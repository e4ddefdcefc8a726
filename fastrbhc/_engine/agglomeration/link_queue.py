"""A queue of links, the nearest first: a small heap of those that come soon, and a pile of others.

A link belongs to a cluster and has a value, d to its neighbour, and an order among links at the
same value. Links up to a limit are in the heap. All others are on a pile in no order, where one
more costs nothing and none is in the way of others. When the heap is empty, the limit rises to a
value below which few of the pile are. So the heap is small enough for the cache of the processor.

A link whose cluster has been merged stays until it is the first, or until the limit rises.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record

# The limit is the value of this rank in a sample of that size.
_SAMPLE, _RANK = 256, 32
# Piles up to this size are small enough for the heap.
_FEW = 4096


@record
class Links:
    """Some links, as a heap or as a pile."""

    values: NDArray[np.float64]
    orders: NDArray[np.int64]
    slots: NDArray[np.int32]
    nodes: NDArray[np.int32]  # the node that the slot held
    size: int


@record
class LinkQueue:
    """The heap, the pile and the limit between them."""

    near: Links
    far: Links
    limit: float  # links up to this value are in the heap
    sample: NDArray[np.float64]


def drop_empty(links: Links, n: int) -> None:
    """Keep those of the first n links of a pile that have a neighbour."""
    kept = np.flatnonzero(links.values[:n] < np.inf)
    for values in (links.values, links.orders, links.slots, links.nodes):
        values[: kept.size] = values[kept]
    links.size = kept.size


def empty_queue(n: int) -> LinkQueue:
    """A queue with room for n links."""
    return LinkQueue(_no_links(n), _no_links(n), -np.inf, np.empty(_SAMPLE))


def _no_links(n: int) -> Links:
    return Links(
        values=np.empty(n),
        orders=np.empty(n, np.int64),
        slots=np.empty(n, np.int32),
        nodes=np.empty(n, np.int32),
        size=0,
    )


@kernel
def order_of_pair(rank0, rank1):
    """A number that orders pairs by their smaller rank, then by their larger one."""
    return (min(rank0, rank1) << 31) | max(rank0, rank1)


@kernel
def push(queue, value, order, slot, node):
    """Add a link."""
    near, far = queue.near, queue.far
    if value <= queue.limit:
        _put(near, near.size, value, order, slot, node)
        near.size += 1
        _rise(near, near.size - 1)
    else:
        _put(far, far.size, value, order, slot, node)
        far.size += 1


@kernel
def remove_first(near):
    """Remove the first link of the heap."""
    near.size -= 1
    if near.size > 0:
        _copy(near, near.size, near, 0)
        _sink(near, 0)


@kernel
def refill(queue, nodes):
    """Raise the limit if the heap is empty, until there is a link below it or none at all."""
    near, far = queue.near, queue.far
    while near.size == 0 and far.size > 0:
        queue.limit = _next_limit(queue)
        kept = 0
        for place in range(far.size):
            if far.values[place] > queue.limit:
                _copy(far, place, far, kept)
                kept += 1
            elif nodes[far.slots[place]] == far.nodes[place]:
                _copy(far, place, near, near.size)
                near.size += 1
        far.size = kept
    for place in range(near.size // 2 - 1, -1, -1):
        _sink(near, place)


@kernel
def _next_limit(queue):
    """A value up to which there are few links of the pile, but at least one."""
    far, sample = queue.far, queue.sample
    if far.size <= _FEW:
        return np.inf
    for k in range(_SAMPLE):
        sample[k] = far.values[k * far.size // _SAMPLE]
    for k in range(_RANK):
        least = k
        for other in range(k + 1, _SAMPLE):
            if sample[other] < sample[least]:
                least = other
        sample[k], sample[least] = sample[least], sample[k]
    return sample[_RANK - 1]


@kernel
def _before(links, a, b):
    if links.values[a] != links.values[b]:
        return links.values[a] < links.values[b]
    return links.orders[a] < links.orders[b]


@kernel
def _rise(near, place):
    """Move the link at a place of the heap up to where it belongs."""
    while place > 0 and _before(near, place, (place - 1) // 2):
        _swap(near, place, (place - 1) // 2)
        place = (place - 1) // 2


@kernel
def _sink(near, place):
    """Move the link at a place of the heap down to where it belongs."""
    while True:
        child = 2 * place + 1
        if child >= near.size:
            return
        if child + 1 < near.size and _before(near, child + 1, child):
            child += 1
        if not _before(near, child, place):
            return
        _swap(near, place, child)
        place = child


@kernel
def _swap(links, a, b):
    value, order, slot, node = links.values[a], links.orders[a], links.slots[a], links.nodes[a]
    _copy(links, b, links, a)
    _put(links, b, value, order, slot, node)


@kernel
def _copy(links, source, others, target):
    _put(
        others,
        target,
        links.values[source],
        links.orders[source],
        links.slots[source],
        links.nodes[source],
    )


@kernel
def _put(links, place, value, order, slot, node):
    links.values[place], links.orders[place] = value, order
    links.slots[place], links.nodes[place] = slot, node
