"""What the agglomerators ask of a neighbour backend.

A backend is a record of arrays with three methods, run inside kernels. Clusters are named by
their slot; of two at the same dissimilarity the one of smaller rank is nearer. All backends lead
to the same tree, to the bit.

Greedy needs of each pair of clusters that one of the two watches the other. Which one, is up to
the backend: all slots may watch all others, or each only those after it.

``nearest(index, geometry, clusters, i, first, cutoff, scratch)``
    (d, slot) of the cluster nearest to slot i, among the slots from ``first`` on and those with
    d < cutoff; slot −1 if none. With first = 0 that is the nearest of all; with first = i + 1 a
    backend that lets all slots watch all others may take it for 0.
``nearest_and_undercut(index, geometry, clusters, i, cutoff, links, hits, values, scratch)``
    The nearest of the slots that slot i watches, and the *reverse* query: every z that watches
    slot i and finds it nearer than the neighbour recorded in ``links``. Such z are written to
    ``hits``, their dissimilarities to ``values``; returns (d, slot, number of hits). Where d is
    not reducible, a new cluster may be nearer to z than both its parts were, and greedy has to
    be told.
``rebuild(index, geometry, clusters, new_slots)``
    Called when many slots are free: moves clusters to new slots, writes where each went
    (−1 for a free slot) and returns the number of slots in use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._jit import contract, kernel


class Links(NamedTuple):
    """The nearest neighbour of each slot, as the agglomerator knows it."""

    values: NDArray[np.float64]  # d to the neighbour, or a lower bound if it is gone
    neighbors: NDArray[np.int64]  # its slot; −1: none below the threshold
    nodes: NDArray[np.int64]  # the tree node it was when it was found
    ranks: NDArray[np.int64]  # the rank it had then


@contract
def nearest(index, geometry, clusters, i, first, cutoff, scratch):
    """Nearest cluster of slot i; see the module's documentation."""


@contract
def nearest_and_undercut(index, geometry, clusters, i, cutoff, links, hits, values, scratch):
    """Nearest cluster of slot i, and those it undercuts; see the module's documentation."""


@contract
def rebuild(index, geometry, clusters, new_slots):
    """Close the gaps; see the module's documentation."""


@kernel
def comes_before(value0, rank0, value1, rank1):
    """Whether a neighbour at value0 is nearer than one at value1: the rule for ties."""
    return value0 < value1 or (value0 == value1 and rank0 < rank1)


@kernel
def find_links(index, geometry, clusters, cutoff, start, stop, links, scratch):
    """Link the slots start…stop−1 to their nearest neighbours."""
    for i in range(start, stop):
        value, slot = nearest(index, geometry, clusters, i, i + 1, cutoff, scratch)
        links.values[i] = value
        links.neighbors[i] = slot
        links.nodes[i] = slot  # at the start the node of a slot is the slot
        links.ranks[i] = clusters.ranks[slot] if slot >= 0 else -1
