"""Which clusters are adjacent in a graph whose nodes merge.

Every cluster has a linked list of its neighbours. A union has the lists of both parts. Entries name
neighbours by slots that may have been merged since; a forest of owners leads from there to the slot
of the cluster, with shortened paths. A list is cleaned when it is read: entries are renamed, and
those that name a neighbour a second time, or the cluster itself, are dropped. So lists need no
memory beyond the entries of the graph.

What is known of a slot lies in one row of a table: a neighbour is rarely near in memory, and its
row is one cache line.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.records import record

# Slots, nodes and entries are numbered in 32 bits: half of the memory, and of the time to read it.
MOST_NODES, MOST_ENTRIES = 2**30, 2**31 - 1
_LAST_STAMP = 2**31 - 2


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

    entries: NDArray[np.int32]  # (entries, 2), a neighbour, and the next entry of the list or −1
    heads: NDArray[np.int32]  # (n,), the first entry of each list, or −1
    owners: NDArray[np.int32]  # (n,), the slot that a slot was merged into, or itself
    nodes: NDArray[np.int32]  # (n,), the node of the tree in each slot, −1 for a free slot
    marks: NDArray[np.int32]  # (n,), the last search that came by
    link_slots: NDArray[np.int32]  # (n,), the nearest neighbour when it was looked up
    link_nodes: NDArray[np.int32]  # (n,), its node at that time
    found: NDArray[np.int32]  # (n,), the neighbours that a search has found
    stamp: int  # the number of searches
    complete: bool


def new_adjacency(graph: Graph | None, nodes: NDArray[np.int64]) -> Adjacency:
    """The neighbours of slots that hold these nodes; without a graph all are adjacent."""
    n = nodes.size
    table = np.full((n, 8), -1, np.int32)
    entries = np.empty((0, 2), np.int32)
    heads, owners, held, marks, link_slots, link_nodes = (table[:, k] for k in range(6))
    owners[:], held[:] = np.arange(n), nodes
    if graph is not None:
        entries = np.empty((graph.neighbors.size, 2), np.int32)
        entries[:, 0] = graph.neighbors
        entries[:, 1] = np.arange(1, graph.neighbors.size + 1)
        occupied = graph.starts[1:] > graph.starts[:-1]
        entries[graph.starts[1:][occupied] - 1, 1] = -1
        heads[occupied] = graph.starts[:-1][occupied]
    return Adjacency(
        entries=entries,
        heads=heads,
        owners=owners,
        nodes=held,
        marks=marks,
        link_slots=link_slots,
        link_nodes=link_nodes,
        found=np.empty(n, np.int32),
        stamp=0,
        complete=graph is None,
    )


@kernel
def unite_lists(adjacency, i, j):
    """Let slot i have the neighbours of slot j too, which is free from now on."""
    adjacency.owners[j] = i
    if adjacency.complete:
        return
    heads, entries = adjacency.heads, adjacency.entries
    entry = np.int64(heads[j])
    if entry < 0:
        return
    while entries[entry, 1] >= 0:
        entry = np.int64(entries[entry, 1])
    entries[entry, 1] = heads[i]
    heads[i], heads[j] = heads[j], -1


@kernel
def find_neighbors(adjacency, i, older):
    """Put the neighbours of slot i into ``found``, those that are older nodes or all; the number.

    Its list is cleaned on the way.
    """
    if adjacency.complete:
        return _find_all(adjacency, i, older)
    entries, nodes, marks, found = (
        adjacency.entries,
        adjacency.nodes,
        adjacency.marks,
        adjacency.found,
    )
    _next_search(adjacency)
    stamp, count = adjacency.stamp, 0
    marks[i] = stamp
    before, entry = np.int64(-1), np.int64(adjacency.heads[i])
    while entry >= 0:
        following = np.int64(entries[entry, 1])
        neighbor = _owner(adjacency.owners, np.int64(entries[entry, 0]))
        if marks[neighbor] != stamp:
            marks[neighbor] = stamp
            entries[entry, 0] = neighbor
            before = entry
            if not older or nodes[neighbor] < nodes[i]:
                found[count] = neighbor
                count += 1
        elif before >= 0:
            entries[before, 1] = following
        else:
            adjacency.heads[i] = following
        entry = following
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
