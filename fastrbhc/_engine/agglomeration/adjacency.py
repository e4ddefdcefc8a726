"""Which clusters are adjacent in a graph whose nodes merge.

The neighbours of every cluster lie side by side in one pool. They are named by slots that may have
been merged since; a forest of owners leads from there to the slot of the cluster, with shortened
paths. A union gets a list of its own at the end of the pool, with what its parts were adjacent to,
each neighbour once. When the pool is full, lists that are no longer needed are dropped: a union is
adjacent to no more clusters than its parts together, so twice the memory of the graph is enough.

What is known of a slot lies in one row of a table: a neighbour is rarely near in memory, and its
row is one cache line. As all the names of a list are known at once, their rows are asked for
together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import inlined_kernel, kernel
from fastrbhc._engine.prefetch import prefetch
from fastrbhc._engine.records import record

# Slots, nodes and places in the pool are numbered in 32 bits: half of the memory, and of the time
# to read it.
MOST_NODES, MOST_ENTRIES = 2**30, 2**30 - 1
_LAST_STAMP = 2**31 - 2
# Lists that are moved at a time.
_AT_A_TIME = 65_536


class Graph(NamedTuple):
    """An undirected graph without loops: every edge is an entry of both its ends."""

    starts: NDArray[np.int64]  # (n + 1,), where the entries of each node begin
    neighbors: NDArray[np.int32]  # (entries,)

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return self.starts.size - 1


@record
class Adjacency:
    """The lists of neighbours, and what is known of each slot; if complete, all are adjacent."""

    pool: NDArray[np.int32]  # (twice the entries of the graph,)
    starts: NDArray[np.int32]  # (n,), where each list begins in the pool
    counts: NDArray[np.int32]  # (n,), its length
    owners: NDArray[np.int32]  # (n,), the slot that a slot was merged into, or itself
    nodes: NDArray[np.int32]  # (n,), the node of the tree in each slot, −1 for a free slot
    marks: NDArray[np.int32]  # (n,), the last search that came by
    link_slots: NDArray[np.int32]  # (n,), the nearest neighbour when it was looked up
    link_nodes: NDArray[np.int32]  # (n,), its node at that time
    found: NDArray[np.int32]  # (n,), the neighbours that a search has found
    end: int  # of the last list in the pool
    stamp: int  # the number of searches
    complete: bool


def new_adjacency(graph: Graph | None, nodes: NDArray[np.int64]) -> Adjacency:
    """The neighbours of slots that hold these nodes; without a graph all are adjacent."""
    n = nodes.size
    table = np.full((n, 8), -1, np.int32)
    starts, counts, owners, held, marks, link_slots, link_nodes = (table[:, k] for k in range(7))
    owners[:], held[:] = np.arange(n), nodes
    n_entries = 0 if graph is None else graph.neighbors.size
    pool = np.empty(2 * n_entries, np.int32)
    starts[:], counts[:] = 0, 0
    if graph is not None:
        pool[:n_entries] = graph.neighbors
        starts[:], counts[:] = graph.starts[:-1], np.diff(graph.starts)
    return Adjacency(
        pool=pool,
        starts=starts,
        counts=counts,
        owners=owners,
        nodes=held,
        marks=marks,
        link_slots=link_slots,
        link_nodes=link_nodes,
        found=np.empty(n, np.int32),
        end=n_entries,
        stamp=0,
        complete=graph is None,
    )


def drop_old_lists(adjacency: Adjacency) -> None:
    """Move the lists of all clusters to the front of the pool."""
    slots = np.flatnonzero((adjacency.nodes >= 0) & (adjacency.counts > 0))
    slots = slots[np.argsort(adjacency.starts[slots])]
    end = 0
    for first in range(0, slots.size, _AT_A_TIME):
        some = slots[first : first + _AT_A_TIME]
        counts = adjacency.counts[some].astype(np.int64)
        stops = np.cumsum(counts)
        before = np.repeat(adjacency.starts[some] - (stops - counts), counts)
        adjacency.pool[end : end + stops[-1]] = adjacency.pool[before + np.arange(stops[-1])]
        adjacency.starts[some] = end + stops - counts
        end += int(stops[-1])
    adjacency.end = end


@inlined_kernel
def room_for_union(adjacency, i, j):
    """Whether there is room for the neighbours of two slots at the end of the pool."""
    needed = np.int64(adjacency.counts[i]) + np.int64(adjacency.counts[j])
    return adjacency.complete or needed <= adjacency.pool.size - adjacency.end


@kernel
def unite_lists(adjacency, weights, i, j):
    """Let slot i have the neighbours of slot j too, which is free from now on.

    They are all put into ``found``; their number.
    """
    adjacency.owners[j] = i
    if adjacency.complete:
        return _find_all(adjacency, i, False)
    starts, counts, pool, found = (
        adjacency.starts,
        adjacency.counts,
        adjacency.pool,
        adjacency.found,
    )
    _next_search(adjacency)
    adjacency.marks[i] = adjacency.stamp
    count = 0
    for slot in (i, j):
        first = np.int64(starts[slot])
        ask_for_list(adjacency, weights, first, counts[slot])
    for slot in (i, j):
        first = np.int64(starts[slot])
        count = _take(adjacency, first, counts[slot], adjacency.end, count)
    starts[i], counts[i] = adjacency.end, count
    adjacency.end += count
    first = np.int64(starts[i])
    for k in range(count):
        found[k] = pool[first + k]
    return count


@kernel
def find_older(adjacency, weights, i):
    """Put the neighbours of slot i that are older nodes into ``found``; their number.

    Its list is cleaned on the way.
    """
    if adjacency.complete:
        return _find_all(adjacency, i, True)
    pool, nodes, found = adjacency.pool, adjacency.nodes, adjacency.found
    _next_search(adjacency)
    adjacency.marks[i] = adjacency.stamp
    first = np.int64(adjacency.starts[i])
    ask_for_list(adjacency, weights, first, adjacency.counts[i])
    adjacency.counts[i] = _take(adjacency, first, adjacency.counts[i], first, 0)
    count = 0
    for place in range(first, first + adjacency.counts[i]):
        neighbor = np.int64(pool[place])
        if nodes[neighbor] < nodes[i]:
            found[count] = neighbor
            count += 1
    return count


@kernel
def ask_for_list(adjacency, weights, first, length):
    """Ask for what is known of the slots in a list, and for their clusters."""
    for place in range(first, first + length):
        slot = np.int64(adjacency.pool[place])
        prefetch(adjacency.owners, slot)
        prefetch(weights, slot)


@kernel
def _take(adjacency, first, length, start, count):
    """Add the neighbours in a list to those from a start on, each once; the number of these."""
    pool, marks, stamp = adjacency.pool, adjacency.marks, adjacency.stamp
    for place in range(first, first + length):
        neighbor = _owner(adjacency.owners, np.int64(pool[place]))
        if marks[neighbor] != stamp:
            marks[neighbor] = stamp
            pool[start + count] = neighbor
            count += 1
    return count


@kernel
def _find_all(adjacency, i, older):
    nodes, found, count = adjacency.nodes, adjacency.found, 0
    for j in range(nodes.size):
        if nodes[j] >= 0 and j != i and (not older or nodes[j] < nodes[i]):
            found[count] = j
            count += 1
    return count


@kernel
def _next_search(adjacency):
    """Number a search; marks of earlier ones differ from its number."""
    if adjacency.stamp >= _LAST_STAMP:
        for j in range(adjacency.marks.size):
            adjacency.marks[j] = -1
        adjacency.stamp = 0
    adjacency.stamp += 1


@kernel
def _owner(owners, slot):
    """The slot of the cluster that a slot belongs to; the path there is halved."""
    above = np.int64(owners[slot])
    while above != slot:
        top = np.int64(owners[above])
        owners[slot] = top
        slot, above = top, np.int64(owners[top])
    return slot
