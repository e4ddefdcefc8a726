"""The log of merges while the tree is built, and the node in each slot."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.clusters.segments import lacks_room
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record
from fastrbhc._engine.threads import Threads

# Scanning 64 slots takes less time than moving them from Python.
_FEW_SLOTS = 64


class Merges(NamedTuple):
    """The result of an agglomerator: merges in the order they were made."""

    children: NDArray[np.int64]  # (m, 2)
    heights: NDArray[np.float64]  # (m,)


@record
class MergeLog:
    """Merges in the order they were made. Nodes: leaves 0…n−1, the i-th merge makes n+i."""

    children: NDArray[np.int64]  # (n − 1, 2)
    heights: NDArray[np.float64]  # (n − 1,)
    nodes: NDArray[Any]  # (slots,), the node in each slot, −1 for a free slot
    n_merges: int  # number of merges so far
    n_alive: int  # number of active clusters


def empty_log(clusters: Clusters) -> MergeLog:
    """A log without merges, in which every cluster is a leaf, numbered by its rank."""
    n = clusters.n_slots
    return MergeLog(np.empty((n - 1, 2), np.int64), np.empty(n - 1), clusters.ranks.copy(), 0, n)


def finished(log: MergeLog) -> Merges:
    """The merges made so far."""
    return Merges(log.children[: log.n_merges], log.heights[: log.n_merges])


@kernel
def record_merge(log, n_leaves, place, i, j, union, height):
    """Record at a place of the log that slots i and j were merged into slot ``union``."""
    log.children[place, 0] = min(log.nodes[i], log.nodes[j])
    log.children[place, 1] = max(log.nodes[i], log.nodes[j])
    log.heights[place] = height
    log.nodes[i] = log.nodes[j] = -1
    log.nodes[union] = n_leaves + place


@kernel
def advance_count(log, count):
    """Add recorded merges to the counts."""
    log.n_merges += count
    log.n_alive -= count


@kernel
def many_free(log, clusters, share):
    """Whether the share of occupied slots is so small that the clusters should be compacted.

    Never with few slots, where visiting the free ones is cheaper than moving the others, unless
    there is no room for the next union.
    """
    few = clusters.n_slots > _FEW_SLOTS and log.n_alive < share * clusters.n_slots
    return few or lacks_room(clusters.segments)


def close_gaps(
    clusters: Clusters, index: Any, log: MergeLog, threads: Threads
) -> NDArray[np.int64]:
    """Let the index compact the clusters, and move the nodes along; returns their old slots."""
    slots: NDArray[np.int64] = index.rebuild(clusters, threads)
    log.nodes[: slots.size] = log.nodes[slots]
    log.nodes[slots.size :] = -1
    return slots


def new_places(slots: NDArray[np.int64], used: int) -> NDArray[np.int32]:
    """The new slot of each old slot; −1 for free slots."""
    places = np.full(used, -1, np.int32)
    places[slots] = np.arange(slots.size, dtype=np.int32)
    return places
