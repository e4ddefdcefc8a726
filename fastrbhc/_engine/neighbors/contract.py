"""What the agglomerators ask of a neighbour backend.

A backend is a record of arrays with these methods. Clusters are named by their slot; of two at
the same dissimilarity the one of smaller rank is nearer. All backends lead to the same tree, to
the bit. All methods but ``rebuild`` run inside kernels.

Greedy needs of each two clusters that one *watches* the other: that its link, the nearest cluster
it knows of, is at most as far as the other one, or was when that one was alive. If every union
looks at all others when it is made, the younger of the two does that, and no one has to be told.
When a cluster is looked up again, those older than itself will do. Scanning makes use of that, by
keeping the clusters in the order of their making.

``nearest(index, geometry, clusters, i, hint, cutoff, scratch)``
    (d, slot) of the cluster nearest to slot i, of those with d < cutoff; slot −1 if none.
    ``hint`` is a slot that is likely near, or −1.
``find(index, geometry, clusters, queue, start, stop, older, cutoff, values, slots, scratch)``
    The same for the slots in queue[start:stop]: d goes to values, the neighbours to slots, where
    −2 − hint stands before. With ``older`` clusters younger than the one looked up may be left out.
``nearest_and_undercut(index, geometry, clusters, i, cutoff, links, hits, values, scratch)``
    The nearest cluster of slot i, and the reverse query: every z that finds slot i nearer than
    the neighbour recorded in ``links``. Such z are written to ``hits``, their dissimilarities to
    ``values``; returns (d, slot, number of hits).
``pulled(index, geometry, clusters, a, b, height, part, parts, scratch)``
    Writes to scratch.hits every slot x that may violate reducibility when slots a and b are merged
    at that height: whose ``pull_bounds`` are not above it. Returns how many there are. Only one
    of so many parts of the index is looked at, so that threads can share them; how many parts
    there are is a power of 2.
``slot_of_union(index, i)``
    Where the union that ``merge`` has put into slot i is to be moved, before ``merged``: greedy
    asks. The other algorithms leave it in slot i.
``merged(index, geometry, clusters, i, j)``
    Slot j has been merged into slot i.
``touch(index, i, j)``, then ``refit_part(index, geometry, clusters, part)`` for all parts, of which
there are ``refit_parts(index)``, and last ``refit_rest(index, geometry, clusters)``
    The same for many pairs. Pairs may be touched, and parts refitted, on several threads.
``relink(index, links, i)`` and ``relink_all(index, links)``
    Links have changed, for backends that prune reverse queries by the largest of them.
``rebuild(index, geometry, clusters, threads)``
    Called when many slots are free: moves the clusters to the first slots, in an order that suits
    the backend, and returns the slots they came from.
``rebuild_below(index)``
    The share of slots in use below which that is worth its while.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import contract, inlined_contract, kernel


class Links(NamedTuple):
    """The nearest neighbour of each slot, as the agglomerator knows it."""

    values: NDArray[np.float64]  # d to the neighbour, or a lower bound if it is gone
    neighbors: NDArray[np.int64]  # its slot; −1: none below the threshold
    nodes: NDArray[np.int64]  # the tree node it was when it was found
    ranks: NDArray[np.int64]  # the rank it had then


@contract
def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
    """Nearest cluster of slot i; see the module's documentation."""


@contract
def nearest_and_undercut(index, geometry, clusters, i, cutoff, links, hits, values, scratch):
    """Nearest cluster of slot i, and those it undercuts; see the module's documentation."""


@contract
def find(index, geometry, clusters, queue, start, stop, older, cutoff, values, slots, scratch):
    """Nearest clusters of many slots; see the module's documentation."""


@contract
def pulled(index, geometry, clusters, a, b, height, part, parts, scratch):
    """The slots that may violate reducibility; see the module's documentation."""


@contract
def slot_of_union(index, i):
    """Where greedy puts a union; see the module's documentation."""


@contract
def merged(index, geometry, clusters, i, j):
    """Slot j has been merged into slot i; see the module's documentation."""


@contract
def relink(index, links, i):
    """The link of slot i has changed; see the module's documentation."""


@contract
def relink_all(index, links):
    """All links may have changed; see the module's documentation."""


@contract
def touch(index, i, j):
    """The same, but wait for refit; see the module's documentation."""


@contract
def refit_parts(index):
    """How many parts there are to refit; see the module's documentation."""


@contract
def refit_part(index, geometry, clusters, part):
    """Take note of the merges in one part; see the module's documentation."""


@contract
def refit_rest(index, geometry, clusters):
    """Take note of what all parts have in common; see the module's documentation."""


@contract
def rebuild(index, geometry, clusters, threads):
    """Close the gaps; see the module's documentation."""


@inlined_contract
def rebuild_below(index):
    """When to close the gaps; see the module's documentation."""


@kernel
def comes_before(value0, rank0, value1, rank1):
    """Whether a neighbour at value0 is nearer than one at value1: the rule for ties."""
    return value0 < value1 or (value0 == value1 and rank0 < rank1)


def refit(index: Any, geometry: Any, clusters: Any, threads: Any) -> None:
    """All parts and the rest, for as many slots as a kernel should not do in one go."""
    parts = int(_count_parts(index))
    if parts:
        each = 1e-8 * clusters.weights.size / parts
        threads.run(
            lambda first, last, scratch: _refit_parts(index, geometry, clusters, first, last),
            parts,
            each,
        )
        _refit_rest(index, geometry, clusters)


# Compiled: a contract called from Python would run as Python.


@kernel
def _count_parts(index):
    return refit_parts(index)


@kernel
def _refit_parts(index, geometry, clusters, first, last):
    for part in range(first, last):
        refit_part(index, geometry, clusters, part)


@kernel
def _refit_rest(index, geometry, clusters):
    refit_rest(index, geometry, clusters)
