"""The nearest-neighbour chain (the paper's Algorithms 2 and 3), in O(n) memory.

A chain c₀, c₁ = nn(c₀), c₂ = nn(c₁), … ends in a pair of clusters that are each other's nearest
neighbour; they are merged and the chain goes on from what is left of it. Where d is reducible
the tree is the greedy one. Where it is not, the union may be nearer to a member of the chain than
the next member is: the chain is then cut back to that member, so that at every step each
link is a true nearest neighbour and each merge a reciprocal pair.

With a threshold λ the search never looks past λ. A cluster that has no neighbour below λ is
finished and leaves. It can only stand alone in its chain: every later member has the one
before it within λ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.merge_log import (
    FINISHED,
    OUT_OF_BUDGET,
    WANTS_REBUILD,
    Merges,
    close_gaps,
    in_portions,
    made,
    many_free,
    new_places,
    no_merges,
    record,
)
from fastrbhc._engine.geometry.contract import Clusters, dissimilarity, free, merge
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.neighbors.contract import comes_before, merged, nearest, rebuild_below
from fastrbhc._engine.threads import Threads


class Chain(NamedTuple):
    """Slots of the chain, and the dissimilarity of each to the next."""

    slots: NDArray[np.int64]
    values: NDArray[np.float64]
    size: NDArray[np.int64]  # (1,)
    slots_of_ranks: NDArray[np.int64]  # (n,), −1 for ranks that are gone
    first: NDArray[np.int64]  # (1,), no smaller rank is left


def nn_chain(
    geometry: Any,
    clusters: Clusters,
    index: Any,
    threshold: float,
    threads: Threads,
    report: Callable[[str, int], None],
) -> Merges:
    """Merge reciprocal nearest neighbours until none is nearer than the threshold."""
    merges = no_merges(clusters)
    n = int(merges.alive[0])
    chain = Chain(
        np.empty(n, np.int64),
        np.empty(n),
        np.zeros(1, np.int64),
        np.empty(n, np.int64),
        np.zeros(1, np.int64),
    )
    chain.slots_of_ranks[clusters.ranks[:n]] = np.arange(n)
    scratch = threads.scratches[0]

    def advance(budget: int) -> int:
        return _chain_on(geometry, clusters, index, threshold, merges, chain, scratch, budget)

    def report_merges() -> None:
        report("merging", int(merges.made[0]))

    while in_portions(advance, report_merges) == WANTS_REBUILD:
        used, size = int(merges.alive[1]), chain.size[0]
        slots = close_gaps(geometry, clusters, index, merges, threads)
        chain.slots[:size] = new_places(slots, used)[chain.slots[:size]]
        chain.slots_of_ranks[clusters.ranks[: slots.size]] = np.arange(slots.size)
    return merges


@kernel
def _chain_on(geometry, clusters, index, threshold, merges, chain, scratch, budget):
    """Extend and shorten the chain until the budget is spent or no cluster is left."""
    slots, values, size = chain.slots, chain.values, chain.size
    while budget > 0:
        if merges.alive[0] < 2:
            return FINISHED
        if size[0] == 0:
            slots[0] = _first_slot(chain)
            size[0] = 1
        i = slots[size[0] - 1]
        budget -= merges.alive[1] * clusters.means.shape[0]
        value, j = nearest(index, geometry, clusters, i, -1, threshold, scratch)
        if j < 0:
            chain.slots_of_ranks[clusters.ranks[i]] = -1
            free(clusters, i)
            merged(index, geometry, clusters, i, i)
            merges.nodes[i] = -1
            merges.alive[0] -= 1
            size[0] -= 1
        elif size[0] > 1 and slots[size[0] - 2] == j:
            size[0] -= 2
            record(merges, merges.made[0], j, i, j, value)
            made(merges, 1)
            chain.slots_of_ranks[clusters.ranks[i]] = -1
            chain.slots_of_ranks[clusters.ranks[j]] = -1
            merge(geometry, clusters, j, i, scratch)
            chain.slots_of_ranks[clusters.ranks[j]] = j
            merged(index, geometry, clusters, j, i)
            _cut_back(geometry, clusters, chain, j, scratch)
        else:
            values[size[0] - 1] = value
            slots[size[0]] = j
            size[0] += 1
        if many_free(merges, rebuild_below(index)):
            return WANTS_REBUILD
    return OUT_OF_BUDGET


@kernel
def _cut_back(geometry, clusters, chain, union, scratch):
    """End the chain at its first member that is nearer to the union than to its next member."""
    for k in range(chain.size[0] - 1):
        i, following = chain.slots[k], chain.slots[k + 1]
        value = dissimilarity(geometry, clusters, i, union, chain.values[k], scratch)
        rank, rank_following = clusters.ranks[union], clusters.ranks[following]
        if comes_before(value, rank, chain.values[k], rank_following):
            chain.size[0] = k + 1
            return


@kernel
def _first_slot(chain):
    """The slot of the smallest rank, so that a chain starts at the same cluster in any index."""
    while chain.slots_of_ranks[chain.first[0]] < 0:
        chain.first[0] += 1
    return chain.slots_of_ranks[chain.first[0]]
