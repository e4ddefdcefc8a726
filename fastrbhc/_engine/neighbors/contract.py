"""What the agglomerators ask of a neighbour backend.

A backend is a record with these methods. Clusters are named by their slot; ties are decided by
`ordering`. All backends lead to the same tree, to the bit.

Greedy needs of each two clusters that one *watches* the other: that its link, the nearest cluster
it knows of, is at most as far as the other one, or was when that one was alive. If every union
looks at all others when it is made, the younger of the two does that, and no one has to be told.
When a cluster is looked up again, those older than itself will do. Scanning makes use of that, by
keeping the clusters in the order of their making.

Methods that run inside kernels are declared below; those that know nothing of the geometry are
compiled once for all families. Plain Python are

``rebuild(clusters, threads)``
    Called when many slots are free: moves the clusters to the first slots, in an order that suits
    the backend, and returns the slots they came from.

and the properties

``rebuild_below``
    The share of slots in use below which that is worth its while.
``unions_in_new_slots``
    Whether greedy is to put unions into new slots after all others.
``n_parts``
    How many parts there are to refit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.jit import contract, contract_with_default, inlined_kernel, kernel
from fastrbhc._engine.records import Job, record
from fastrbhc._engine.threads import Threads

# What stands in the place of a neighbour that has yet to be looked up: nothing is known of it, or a
# slot that is likely near, as −2 − that slot.
UNKNOWN = -1


@inlined_kernel
def as_hint(slot):
    """What stands for a neighbour to be looked up, a slot being likely near; −1 for no slot."""
    return -2 - slot


@inlined_kernel
def hint_of(entry):
    """The slot that is likely near, or −1."""
    return -2 - entry


@record
class Queries:
    """Clusters whose nearest neighbours are wanted, and what was found."""

    queue: NDArray[Any]  # slots
    values: NDArray[np.float64]  # by slot: d to the nearest cluster, where there is one
    neighbors: NDArray[Any]  # by slot: a hint before, the nearest cluster or −1 after
    cutoff: float  # only what is nearer than this counts
    older: bool  # whether clusters younger than the one that asks may be left out


@record
class Search:
    """Everything that a look-up of neighbours depends on."""

    index: Any
    geometry: Any
    clusters: Clusters
    queries: Queries


@record
class Fitting:
    """What depends on where clusters are, but not on the geometry; see `fit`."""

    index: Any
    clusters: Clusters
    pairs: bool  # whether pairs of slots are told of, or parts of the index


@contract
def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
    """(d, slot) of the cluster nearest to slot i, of those with d < cutoff; slot −1 if none.

    ``hint`` is a slot that is likely near, or −1.
    """


@contract
def find(index, geometry, clusters, queries, first, last, scratch):
    """Look up the neighbours of the slots queue[first:last]."""


@contract
def possible_violations(index, geometry, clusters, a, b, height, part, parts, scratch):
    """Write to scratch.hits every slot x that may violate reducibility when a and b are merged.

    That is one whose ``violation_bounds`` are not above the height. Returns how many there are.
    Only one of so many parts of the index is looked at, so that threads can share them; how many
    parts there are is a power of 2.
    """


@contract_with_default
def merged(index, clusters, i, j):
    """Take note that slot j has been merged into slot i."""


@contract_with_default
def touch(index, i, j):
    """Take note later, when the parts are refitted. Pairs may be touched on several threads."""


@contract_with_default
def refit_part(index, clusters, part):
    """Take note of the merges in one part. Parts may be refitted on several threads."""


@contract_with_default
def refit_rest(index, clusters):
    """Take note of what all parts have in common, after they have been refitted."""


# The jobs that a backend can do, as kernels and Python threads share them.


@kernel
def look_up(search, first, last, scratch):
    """Look up some of the queries."""
    find(search.index, search.geometry, search.clusters, search.queries, first, last, scratch)


@kernel
def fit(fitting, first, last, scratch):
    """Take note of merges: that of slot ``last`` into slot ``first``, or those in some parts.

    One kernel for both, as most of it is the same. What all parts have in common comes after them,
    as the part number n_parts.
    """
    index, clusters = fitting.index, fitting.clusters
    if fitting.pairs:
        merged(index, clusters, first, last)
    elif first == index.n_parts:
        refit_rest(index, clusters)
    else:
        for part in range(first, last):
            refit_part(index, clusters, part)


@record
class Refitting:
    """The jobs that keep an index up to date."""

    parts: Job  # some of the parts, and after them part n_parts
    merge: Job  # of one pair, given as its slots
    n_parts: int


def refitting(index: Any, clusters: Clusters, scratch: Any) -> Refitting:
    """The jobs for an index."""
    return Refitting(
        Job(fit, Fitting(index, clusters, False), scratch),
        Job(fit, Fitting(index, clusters, True), scratch),
        index.n_parts,
    )


def refit(jobs: Refitting, n_slots: int, threads: Threads) -> None:
    """All parts and the rest, for as many slots as a kernel should not do in one go."""
    if jobs.n_parts:
        threads.run(jobs.parts, jobs.n_parts, 1e-8 * n_slots / jobs.n_parts)
        jobs.parts(jobs.n_parts, jobs.n_parts + 1, threads.scratches[0])
