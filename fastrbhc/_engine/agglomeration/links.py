"""The nearest neighbour of each slot, as the greedy algorithm knows it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record


@record
class Links:
    """The nearest neighbour of each slot when it was last looked up."""

    values: NDArray[np.float64]  # d to the neighbour, or a lower bound if it was merged
    neighbors: NDArray[np.int64]  # its slot; −1: none below the threshold
    nodes: NDArray[np.int64]  # its node in the tree when it was found
    ranks: NDArray[np.int64]  # its rank at that time


def no_links(capacity: int) -> Links:
    """Links before any neighbour has been looked up."""
    return Links(np.full(capacity, np.inf), *(np.full(capacity, -1) for _ in range(3)))


@kernel
def link(clusters, nodes, links, i, value, slot):
    """Store the neighbour of slot i, or −1 for none.

    If it is slot i itself, the value is only a lower bound. Such a link is stale, and comes before
    all others at the same value.
    """
    known = slot >= 0 and slot != i
    links.values[i] = value
    links.neighbors[i] = slot
    links.nodes[i] = nodes[slot] if known else -1
    links.ranks[i] = clusters.ranks[slot] if known else -1


@kernel
def link_all(clusters, nodes, links, n):
    """Store the nodes and ranks of the neighbours of the first n slots."""
    for i in range(n):
        link(clusters, nodes, links, i, links.values[i], links.neighbors[i])


def relocate_links(links: Links, slots: NDArray[np.int64], places: NDArray[np.int32]) -> None:
    """Move the links along with their clusters, and renumber the neighbours."""
    n = slots.size
    for values in (links.values, links.neighbors, links.nodes, links.ranks):
        values[:n] = values[slots]
    neighbors = links.neighbors[:n]
    moved = np.where(neighbors >= 0, places[neighbors], -1)
    # A merged neighbour is replaced by the slot itself, which is never its own neighbour, so
    # that the link remains a stale lower bound.
    links.neighbors[:n] = np.where((neighbors >= 0) & (moved < 0), np.arange(n), moved)
