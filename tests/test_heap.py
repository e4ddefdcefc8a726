"""The heap of pairs, against sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastrbhc._engine.agglomeration.heap import empty_heap, heapify, insert, pair_before, remove
from fastrbhc._engine.agglomeration.links import Links

pytestmark = pytest.mark.fast


def random_links(n, rng):
    """Links with many equal values, and the ranks of the slots."""
    ranks = rng.permutation(n)
    neighbors = (np.arange(n) + rng.integers(1, n, size=n)) % n
    values = rng.integers(0, 5, size=n).astype(float)
    return Links(values, neighbors, neighbors.copy(), ranks[neighbors]), ranks


def pair_key(links, ranks, slot):
    """The documented order: dissimilarity, smaller rank, larger rank."""
    pair = sorted((int(ranks[slot]), int(links.ranks[slot])))
    return float(links.values[slot]), *pair


def drain(heap, links, ranks):
    """Remove the first slot until the heap is empty."""
    keys = []
    while heap.size:
        first = heap.slots[0]
        keys.append(pair_key(links, ranks, first))
        remove(heap, links, ranks, first)
    return keys


def check_places(heap, n):
    size = heap.size
    inside = set(heap.slots[:size].tolist())
    assert len(inside) == size
    for slot in range(n):
        if slot in inside:
            assert heap.slots[heap.positions[slot]] == slot
        else:
            assert heap.positions[slot] == -1


@given(n=st.integers(2, 40), seed=st.integers(0, 2**32 - 1))
def test_slots_come_out_in_sorted_order(n, seed):
    links, ranks = random_links(n, np.random.default_rng(seed))
    heap = empty_heap(n)
    heapify(heap, links, ranks, n)
    check_places(heap, n)
    reference = sorted(pair_key(links, ranks, slot) for slot in range(n))
    assert drain(heap, links, ranks) == reference


@given(n=st.integers(2, 30), seed=st.integers(0, 2**32 - 1))
def test_order_survives_removals_returns_and_changes(n, seed):
    rng = np.random.default_rng(seed)
    links, ranks = random_links(n, rng)
    heap = empty_heap(n)
    heapify(heap, links, ranks, n)
    inside = set(range(n))
    while len(inside) > 1:
        slot = int(rng.choice(sorted(inside)))
        if len(inside) < n and rng.random() < 0.3:
            slot = int(rng.choice(sorted(set(range(n)) - inside)))
            insert(heap, links, ranks, slot)
            inside.add(slot)
        elif rng.random() < 0.6:
            remove(heap, links, ranks, slot)
            inside.remove(slot)
        else:
            remove(heap, links, ranks, slot)
            links.values[slot] = float(rng.integers(0, 5))
            links.ranks[slot] = ranks[rng.choice(np.delete(np.arange(n), slot))]
            insert(heap, links, ranks, slot)
        check_places(heap, n)
        reference = min(pair_key(links, ranks, slot) for slot in inside)
        assert pair_key(links, ranks, heap.slots[0]) == reference
    reference = sorted(pair_key(links, ranks, slot) for slot in inside)
    assert drain(heap, links, ranks) == reference


@given(n=st.integers(2, 20), seed=st.integers(0, 2**32 - 1))
def test_pairs_are_ordered_by_value_then_ranks(n, seed):
    links, ranks = random_links(n, np.random.default_rng(seed))
    for a in range(n):
        for b in range(n):
            reference = pair_key(links, ranks, a) < pair_key(links, ranks, b)
            assert pair_before(links, ranks, a, b) == reference


def test_heap_of_part_of_the_slots():
    links, ranks = random_links(12, np.random.default_rng(0))
    heap = empty_heap(12)
    heapify(heap, links, ranks, 7)
    check_places(heap, 12)
    reference = sorted(pair_key(links, ranks, slot) for slot in range(7))
    assert drain(heap, links, ranks) == reference
