"""What the agglomerators ask of a neighbour backend.

A backend is a record of arrays with these methods. Clusters are named by their slot; of two at
the same dissimilarity the one of smaller rank is nearer. All backends lead to the same tree, to
the bit. All methods but ``refit`` and ``rebuild`` run inside kernels.

Greedy needs of each pair of clusters that one of the two *watches* the other: that its link, the
nearest cluster it knows of, is at most as far as the other one, or was when that one was alive. Two
ways lead there. If every cluster looks at all others when it is made (the kd-tree), then of each
pair the younger one watches the older, and no one else needs to be told. If each slot looks
only at the slots after it (scanning, half the work), a new cluster has to be told to the slots
before it that it undercuts: the *reverse* query.

``nearest(index, geometry, clusters, i, first, hint, cutoff, scratch)``
    (d, slot) of the cluster nearest to slot i, among the slots from ``first`` on and those with
    d < cutoff; slot −1 if none. A backend in which all look at all takes ``first`` for 0.
    ``hint`` is a slot that is likely near, or −1.
``find(index, geometry, clusters, queue, start, stop, later, cutoff, values, slots, scratch)``
    The same for the slots in queue[start:stop]: d goes to values, the neighbours to slots, where
    −2 − hint stands before. With ``later``, first is i + 1 for each.
``nearest_and_undercut(index, geometry, clusters, i, cutoff, links, hits, values, scratch)``
    The nearest of the slots that slot i looks at, and the reverse query: every z, of those that
    look at slot i, that finds it nearer than the neighbour recorded in ``links``. Such z are
    written to ``hits``, their dissimilarities to ``values``; returns (d, slot, number of hits).
``meet(…)``, the same arguments
    What greedy needs when the cluster in slot i is new: the above, or only the nearest.
``merged(index, geometry, clusters, i, j)``
    Slot j has been merged into slot i.
``touch(index, i, j)``, then ``refit(index, geometry, clusters, threads)``
    The same for many pairs: ``touch`` may run on several threads, ``refit`` makes it good.
``relink(index, links, i)`` and ``relink_all(index, links)``
    Links have changed, for backends that prune reverse queries by the largest of them.
``rebuild(index, geometry, clusters, threads)``
    Called when many slots are free: moves the clusters to the first slots, in an order that suits
    the backend, and returns the slots they came from.
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
def nearest(index, geometry, clusters, i, first, hint, cutoff, scratch):
    """Nearest cluster of slot i; see the module's documentation."""


@contract
def meet(index, geometry, clusters, i, cutoff, links, hits, values, scratch):
    """What greedy asks for a new cluster; see the module's documentation."""


@contract
def nearest_and_undercut(index, geometry, clusters, i, cutoff, links, hits, values, scratch):
    """Nearest cluster of slot i, and those it undercuts; see the module's documentation."""


@contract
def find(index, geometry, clusters, queue, start, stop, later, cutoff, values, slots, scratch):
    """Nearest clusters of many slots; see the module's documentation."""


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
def refit(index, geometry, clusters, threads):
    """Take note of all merges since the last time; see the module's documentation."""


@contract
def rebuild(index, geometry, clusters, threads):
    """Close the gaps; see the module's documentation."""


@kernel
def comes_before(value0, rank0, value1, rank1):
    """Whether a neighbour at value0 is nearer than one at value1: the rule for ties."""
    return value0 < value1 or (value0 == value1 and rank0 < rank1)


@kernel
def find_all(index, geometry, clusters, queue, start, stop, later, cutoff, values, slots, scratch):
    """The same as ``find``, compiled: a contract called from Python would run as Python."""
    find(index, geometry, clusters, queue, start, stop, later, cutoff, values, slots, scratch)
