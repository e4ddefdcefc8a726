"""The nearest-neighbour chain (the paper's Algorithms 2 and 3), in O(n) memory.

A chain c₀, c₁ = nn(c₀), c₂ = nn(c₁), … ends in a pair of clusters that are each other's nearest
neighbour; they are merged, and the chain continues from its remaining members. If d is reducible,
the tree is the greedy one. If it is not, the union may be nearer to a member of the chain than the
next member is: the chain is then cut back to that member, so that at every step each link is a true
nearest neighbour and each merge a reciprocal pair.

With a threshold λ the search stops at λ. A cluster without a neighbour below λ is finished and is
removed. It is always alone in its chain: every later member has its predecessor within λ.

In a cell of space, a cluster has no neighbour if something outside may be nearer. It is set aside
together with its chain, and so is every chain that leads to a cluster set aside. They stay where
they are, and remain the neighbours of others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.driver import (
    FINISHED,
    OUT_OF_BUDGET,
    STUCK,
    WANTS_REBUILD,
    run_interruptibly,
)
from fastrbhc._engine.agglomeration.merge_log import (
    MergeLog,
    Merges,
    advance_count,
    close_gaps,
    empty_log,
    finished,
    many_free,
    new_places,
    record_merge,
)
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.clusters.record import Clusters, free
from fastrbhc._engine.geometry.contract import dissimilarity, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import merged, nearest
from fastrbhc._engine.neighbors.ordering import comes_before
from fastrbhc._engine.records import record
from fastrbhc._engine.threads import Threads


@record
class Chain:
    """The chain, and the state of the algorithm."""

    geometry: Any
    clusters: Clusters
    index: Any
    log: MergeLog
    threshold: float
    rebuild_below: float
    slots: NDArray[np.int64]  # of the members
    values: NDArray[np.float64]  # d of each to the next
    size: int
    slots_of_ranks: NDArray[np.int64]  # (n,), −1 for ranks no longer active, or set aside
    first: int  # no smaller rank is active
    one_sided: bool  # whether clusters are set aside: see `neighbors.contract`


def nn_chain(
    space: Space,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Merges:
    """Merge reciprocal nearest neighbours until none is nearer than the threshold."""
    return finished(log_of_chain(space, threshold, threads, report))


def log_of_chain(
    space: Space,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> MergeLog:
    """The merges in the order they were made, and which node each slot holds afterwards."""
    clusters, log = space.clusters, empty_log(space.clusters)
    n = log.n_alive
    chain = Chain(
        geometry=space.geometry,
        clusters=clusters,
        index=space.index,
        log=log,
        threshold=threshold,
        rebuild_below=space.index.rebuild_below,
        slots=np.empty(n, np.int64),
        values=np.empty(n),
        size=0,
        slots_of_ranks=np.empty(n, np.int64),
        first=0,
        one_sided=getattr(space.index, "one_sided", False),
    )
    chain.slots_of_ranks[clusters.ranks[:n]] = np.arange(n)

    def advance(budget: int) -> int:
        return int(_advance(chain, budget, threads.scratches[0]))

    def rebuild() -> None:
        used, size = clusters.n_slots, chain.size
        slots = close_gaps(clusters, space.index, log, threads)
        chain.slots[:size] = new_places(slots, used)[chain.slots[:size]]
        ranks = clusters.ranks[: slots.size]
        active = chain.slots_of_ranks[ranks] >= 0
        chain.slots_of_ranks[ranks[active]] = np.flatnonzero(active)

    run_interruptibly(advance, {WANTS_REBUILD: rebuild}, lambda: report("merging", log.n_merges))
    return log


@kernel
def _advance(chain, budget, scratch):
    """Extend and shorten the chain until the budget is spent or no cluster remains."""
    geometry, clusters, index, log = chain.geometry, chain.clusters, chain.index, chain.log
    slots, values = chain.slots, chain.values
    while budget > 0:
        if log.n_alive < 2:
            return FINISHED
        if chain.size == 0:
            slots[0] = _first_slot(chain)
            if slots[0] < 0:
                return FINISHED
            chain.size = 1
        size = chain.size
        i = slots[size - 1]
        budget -= clusters.n_slots * clusters.width
        value, j = nearest(index, geometry, clusters, i, -1, chain.threshold, scratch)
        if chain.one_sided and (j < 0 or chain.slots_of_ranks[clusters.ranks[j]] < 0):
            for k in range(size):
                chain.slots_of_ranks[clusters.ranks[slots[k]]] = -1
            chain.size = 0
        elif j < 0:
            chain.slots_of_ranks[clusters.ranks[i]] = -1
            free(clusters, i)
            merged(index, clusters, i, i)
            log.nodes[i] = -1
            log.n_alive -= 1
            chain.size -= 1
        elif size > 1 and slots[size - 2] == j:
            chain.size -= 2
            record_merge(log, log.heights.size + 1, log.n_merges, j, i, j, value)
            advance_count(log, 1)
            chain.slots_of_ranks[clusters.ranks[i]] = -1
            chain.slots_of_ranks[clusters.ranks[j]] = -1
            merge(geometry, clusters, j, i, scratch)
            chain.slots_of_ranks[clusters.ranks[j]] = j
            merged(index, clusters, j, i)
            _cut_back(chain, j, scratch)
        elif size == log.n_alive:  # a chain visits no cluster twice
            return STUCK
        else:
            values[size - 1] = value
            slots[size] = j
            chain.size += 1
        if many_free(log, clusters, chain.rebuild_below):
            return WANTS_REBUILD
    return OUT_OF_BUDGET


@kernel
def _cut_back(chain, union, scratch):
    """End the chain at its first member that is nearer to the union than to its next member."""
    clusters = chain.clusters
    for k in range(chain.size - 1):
        i, following = chain.slots[k], chain.slots[k + 1]
        value = dissimilarity(chain.geometry, clusters, i, union, chain.values[k], scratch)
        rank, rank_following = clusters.ranks[union], clusters.ranks[following]
        if comes_before(value, rank, chain.values[k], rank_following):
            chain.size = k + 1
            return


@kernel
def _first_slot(chain):
    """The slot of the smallest rank, so that a chain starts at the same cluster in any index.

    −1 if all clusters are set aside.
    """
    while chain.first < chain.slots_of_ranks.size and chain.slots_of_ranks[chain.first] < 0:
        chain.first += 1
    if chain.first == chain.slots_of_ranks.size:
        return -1
    return chain.slots_of_ranks[chain.first]
