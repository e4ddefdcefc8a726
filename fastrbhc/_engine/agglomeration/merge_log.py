"""The list of merges, while it is written, and which node each slot holds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record
from fastrbhc._engine.threads import Threads

# Some sixty slots are looked through in less time than Python takes to move them.
_FEW_SLOTS = 64


class Merges(NamedTuple):
    """What an agglomerator returns: merges in the order they were made."""

    children: NDArray[np.int64]  # (m, 2)
    heights: NDArray[np.float64]  # (m,)


@record
class MergeLog:
    """Merges in the order they were made. Nodes: leaves 0…n−1, the i-th merge makes n+i."""

    children: NDArray[np.int64]  # (n − 1, 2)
    heights: NDArray[np.float64]  # (n − 1,)
    nodes: NDArray[np.int64]  # (slots,), the node in each slot, −1 for a free slot
    n_merges: int  # how many have been made
    n_alive: int  # how many clusters are in slots


def empty_log(clusters: Clusters) -> MergeLog:
    """Every cluster is a leaf, named by its rank."""
    n = clusters.n_slots
    return MergeLog(np.empty((n - 1, 2), np.int64), np.empty(n - 1), clusters.ranks.copy(), 0, n)


def finished(log: MergeLog) -> Merges:
    """The merges that have been made."""
    return Merges(log.children[: log.n_merges], log.heights[: log.n_merges])


@kernel
def record_merge(log, n_leaves, place, i, j, union, height):
    """Note at a place of the list that slots i and j became the one in slot union."""
    log.children[place, 0] = min(log.nodes[i], log.nodes[j])
    log.children[place, 1] = max(log.nodes[i], log.nodes[j])
    log.heights[place] = height
    log.nodes[i] = log.nodes[j] = -1
    log.nodes[union] = n_leaves + place


@kernel
def advance_count(log, count):
    """Count merges that have been recorded."""
    log.n_merges += count
    log.n_alive -= count


@kernel
def many_free(log, clusters, share):
    """Whether less than that share of the slots holds a cluster: it is time to close the gaps.

    Not with so few slots that looking at the free ones is quicker than moving the others.
    """
    return clusters.n_slots > _FEW_SLOTS and log.n_alive < share * clusters.n_slots


def close_gaps(
    clusters: Clusters, index: Any, log: MergeLog, threads: Threads
) -> NDArray[np.int64]:
    """Let the index move the clusters together, and the nodes along; returns their old slots."""
    slots: NDArray[np.int64] = index.rebuild(clusters, threads)
    log.nodes[: slots.size] = log.nodes[slots]
    log.nodes[slots.size :] = -1
    return slots


def new_places(slots: NDArray[np.int64], used: int) -> NDArray[np.int64]:
    """Where each of the slots in use went; −1 for those that were free."""
    places = np.full(used, -1)
    places[slots] = np.arange(slots.size)
    return places
