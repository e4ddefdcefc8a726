"""The contract of a neighbour backend with the agglomerators.

A backend is a record with these methods. Clusters are identified by their slots; `ordering` breaks
ties. All backends give the same tree, to the bit.

The greedy algorithm requires that every pair of clusters is covered by the link of one of them: the
link must not come later than the pair. If the neighbour of every union is looked up among all other
clusters when the union is made, the younger cluster of each pair covers it. When a cluster is
looked up again, only older clusters have to be considered. Scans make use of this by keeping the
clusters in order of creation. A backend may choose another cluster of each pair. Then a new union
may have to be covered by the link of a cluster that was there before it, and that link is lowered:
see `confirm` and `Lowered`.

Methods that run inside kernels are declared below; those without a geometry are compiled once for
all families. The methods in plain Python are

``rebuild(clusters, threads)``
    Called when many slots are free: moves the clusters to the first slots, in an order that suits
    the backend, and returns the slots they came from.

and the properties

``rebuild_below``
    The share of slots in use below which a rebuild pays.
``unions_in_new_slots``
    Whether greedy is to put unions into new slots after all others.
``n_parts``
    The number of parts to refit.
``lowered``
    Links to be lowered, a `Lowered`.
``inside``
    The index that is kept up to date, if this one only restricts what another one finds.
``one_sided``
    Whether a cluster can be the neighbour of another without ever having one itself; if absent,
    it cannot.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.jit import contract, contract_with_default, inlined_kernel, kernel
from fastrbhc._engine.records import Job, record
from fastrbhc._engine.threads import Threads

# The entry for a neighbour that has yet to be looked up, if there is no hint. A hint, which is a
# slot that is likely near, is stored as −2 − slot.
UNKNOWN = -1


@inlined_kernel
def as_hint(slot):
    """The entry for a neighbour to be looked up, given a slot that is likely near, or −1."""
    return -2 - slot


@inlined_kernel
def hint_of(entry):
    """The slot that is likely near, or −1."""
    return -2 - entry


@record
class Queries:
    """Clusters whose nearest neighbours are to be looked up, and the results."""

    queue: NDArray[Any]  # slots
    values: NDArray[np.float64]  # by slot: d to the nearest cluster, where there is one
    neighbors: NDArray[Any]  # by slot: a hint before, the nearest cluster or −1 after; see `find`
    nearest: NDArray[np.float64]  # by place in the queue, as far as it goes: see `nearest_of_all`
    cutoff: float  # only clusters nearer than this count
    halved: bool  # whether one link for each pair of clusters is enough
    again: bool = False  # whether clusters have come back since the queries were last looked up


@record
class Lowered:
    """Slots whose links may be too high for a new union; they become stale lower bounds."""

    slots: NDArray[np.int64]  # (…,)
    bounds: NDArray[np.float64]  # by slot; infinite for all others
    count: int


# For backends in which no link has to be lowered.
NONE_LOWERED = Lowered(np.empty(0, np.int64), np.empty(0), 0)


@record
class Search:
    """The task of `look_up`."""

    index: Any
    geometry: Any
    clusters: Clusters
    queries: Queries


@record
class Fitting:
    """The task of `fit`, which does not depend on the geometry."""

    index: Any
    clusters: Clusters
    pairs: bool  # whether a range is a pair of slots, or parts of the index


@contract
def nearest(index, geometry, clusters, i, hint, cutoff, scratch):
    """(d, slot) of the cluster nearest to slot i with d < cutoff; slot −1 if there is none.

    ``hint`` is a slot that is likely near, or −1.
    """


@contract
def find(index, geometry, clusters, queries, first, last, scratch):
    """Look up the neighbours of the slots queue[first:last].

    If one link for each pair is enough, a backend may return a larger lower bound than the value
    before, with the slot itself as neighbour.
    """


@contract_with_default
def nearest_of_all(index, queries, i):
    """d from slot i, just looked up, to the nearest cluster of all, or a lower bound of it."""
    return queries.values[i]


@contract
def possible_violations(index, geometry, clusters, a, b, height, part, parts, scratch):
    """Write to scratch.hits every slot x that may violate reducibility when a and b are merged.

    That is every x whose ``violation_bounds`` are not above the height. Returns their number. Only
    one part of the index is searched, so that threads can share the parts; the number of parts is a
    power of 2.
    """


@contract_with_default
def merged(index, clusters, i, j):
    """Update the index after slot j has been merged into slot i."""


@contract_with_default
def confirm(index, clusters):
    """Let slots know of the unions that were looked up and not undone; fills ``lowered``."""


@contract_with_default
def touch(index, i, j):
    """Mark a merge for the next refitting. Several threads may mark merges at once."""


@contract_with_default
def refit_part(index, clusters, part):
    """Update one part after the marked merges. Several threads may refit parts at once."""


@contract_with_default
def refit_rest(index, clusters):
    """Update the rest of the index, above all parts, after they have been refitted."""


# The jobs of a backend, for kernels and for Python threads.


@kernel
def look_up(search, first, last, scratch):
    """Look up a range of the queries."""
    index, queries = search.index, search.queries
    find(index, search.geometry, search.clusters, queries, first, last, scratch)
    for q in range(first, min(last, queries.nearest.size)):
        queries.nearest[q] = nearest_of_all(index, queries, queries.queue[q])


@kernel
def fit(fitting, first, last, scratch):
    """Update the index for the merge of slot ``last`` into slot ``first``, or in some parts.

    One kernel for both, because most of their code is the same. The rest of the index, above all
    parts, is updated as part number n_parts. A pair of the same slot confirms all merges so far.
    """
    index, clusters = fitting.index, fitting.clusters
    if fitting.pairs:
        if first == last:
            confirm(index, clusters)
        else:
            merged(index, clusters, first, last)
    elif first == index.n_parts:
        refit_rest(index, clusters)
    else:
        for part in range(first, last):
            refit_part(index, clusters, part)


@record
class Refitting:
    """The jobs that keep an index up to date."""

    parts: Job  # for a range of the parts, and then for part n_parts
    merge: Job  # for one pair, given as its slots
    n_parts: int


def refitting(index: Any, clusters: Clusters, scratch: Any) -> Refitting:
    """The jobs for an index."""
    index = getattr(index, "inside", index)
    return Refitting(
        Job(fit, Fitting(index, clusters, False), scratch),
        Job(fit, Fitting(index, clusters, True), scratch),
        index.n_parts,
    )


def refit(jobs: Refitting, n_slots: int, threads: Threads) -> None:
    """Refit all parts and the rest on Python threads, for more slots than one call should take."""
    if jobs.n_parts:
        threads.run(jobs.parts, jobs.n_parts, 1e-8 * n_slots / jobs.n_parts)
        jobs.parts(jobs.n_parts, jobs.n_parts + 1, threads.scratches[0])
