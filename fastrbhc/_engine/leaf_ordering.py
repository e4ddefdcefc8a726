"""The order of the leaves of a tree in which neighbours are as near to one another as can be.

A tree with n leaves can be drawn in 2ⁿ⁻¹ orders. Bar-Joseph, Gifford & Jaakkola (2001) find the one
with the smallest sum of distances between neighbours: let C(l, r) be the smallest sum within a
node whose outermost leaves are l and r, with l below its one child a and r below the other, b.
Then, with D the distances,

    C(l, r) = min over k of [ min over j of ( C(l, j) + D(j, k) ) ] + C(k, r),

j being at the other end of a than l, and k at the other end of b than r. The inner minimum depends
on l and k only, so the whole takes O(n³) time, and O(n²) memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.traversal import leaf_spans

# Sums that one call looks at, some hundredths of a second.
_AT_A_TIME = 20_000_000


def best_order(
    merges: NDArray[np.int64], n_leaves: int, distances: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The leaves from left to right; of each tree of a forest by itself.

    Of the two directions of a whole tree the one is taken that has its first child on the left.
    """
    starts, sizes = leaf_spans(merges, n_leaves)
    order = np.empty(n_leaves, np.int64)
    order[starts[:n_leaves]] = np.arange(n_leaves)
    # Leaves by their place in any order, so that the leaves of a node are a range.
    near = distances[np.ix_(order, order)]
    sums, halves = np.zeros((n_leaves, n_leaves)), np.empty((n_leaves, n_leaves))
    for i in range(merges.shape[0]):
        a, b = merges[i].tolist()
        n_rows = max(1, _AT_A_TIME // int(sizes[b] * (sizes[a] + sizes[b])))
        for first in range(0, int(sizes[a]), n_rows):
            last = min(first + n_rows, int(sizes[a]))
            _add_merge(merges, n_leaves, starts, sizes, i, near, sums, halves, first, last)
    ends = np.full((n_leaves + merges.shape[0], 2), -1)
    _choose_ends(merges, n_leaves, starts, sizes, near, sums, ends)
    places = np.empty(n_leaves + merges.shape[0], np.int64)
    _place(merges, n_leaves, starts, sizes, ends, places)
    best = np.empty(n_leaves, np.int64)
    best[places[:n_leaves]] = np.arange(n_leaves)
    return best


@kernel
def _other_end(merges, n_leaves, starts, sizes, node, leaf):
    """The range of leaves that can be at the other end of a node: those of its other child."""
    if node < n_leaves:
        return starts[node], starts[node] + 1
    a, b = merges[node - n_leaves, 0], merges[node - n_leaves, 1]
    child = b if leaf < starts[b] else a
    return starts[child], starts[child] + sizes[child]


@kernel
def _add_merge(merges, n_leaves, starts, sizes, i, near, sums, halves, first, last):
    """C of a merge for some of the leaves of its first child."""
    a, b = merges[i, 0], merges[i, 1]
    for left in range(starts[a] + first, starts[a] + last):
        low, high = _other_end(merges, n_leaves, starts, sizes, a, left)
        for k in range(starts[b], starts[b] + sizes[b]):
            best = np.inf
            for j in range(low, high):
                best = min(best, sums[left, j] + near[k, j])
            halves[left, k] = best
        for right in range(starts[b], starts[b] + sizes[b]):
            low_k, high_k = _other_end(merges, n_leaves, starts, sizes, b, right)
            best = np.inf
            for k in range(low_k, high_k):
                best = min(best, halves[left, k] + sums[right, k])
            sums[left, right] = sums[right, left] = best


@kernel
def _choose_ends(merges, n_leaves, starts, sizes, near, sums, ends):
    """The outermost leaves of every node, left and right, from the roots down."""
    for i in range(merges.shape[0] - 1, -1, -1):
        a, b, node = merges[i, 0], merges[i, 1], n_leaves + i
        if ends[node, 0] < 0:
            best = np.inf
            for left in range(starts[a], starts[a] + sizes[a]):
                for right in range(starts[b], starts[b] + sizes[b]):
                    if sums[left, right] < best or ends[node, 0] < 0:
                        best = sums[left, right]
                        ends[node, 0], ends[node, 1] = left, right
        if ends[node, 0] >= starts[b]:
            a, b = b, a
        left, right = ends[node, 0], ends[node, 1]
        low_j, high_j = _other_end(merges, n_leaves, starts, sizes, a, left)
        low_k, high_k = _other_end(merges, n_leaves, starts, sizes, b, right)
        best, ends[a, 0], ends[b, 1] = np.inf, left, right
        for k in range(low_k, high_k):
            for j in range(low_j, high_j):
                total = sums[left, j] + near[k, j] + sums[right, k]
                if total < best or ends[a, 1] < 0:
                    best, ends[a, 1], ends[b, 0] = total, j, k


@kernel
def _place(merges, n_leaves, starts, sizes, ends, places):
    """The place of the first leaf of every node."""
    for node in range(places.size):
        places[node] = starts[node]  # roots keep theirs
    for i in range(merges.shape[0] - 1, -1, -1):
        a, b = merges[i, 0], merges[i, 1]
        if ends[n_leaves + i, 0] >= starts[b]:
            a, b = b, a
        places[a] = places[n_leaves + i]
        places[b] = places[n_leaves + i] + sizes[a]
