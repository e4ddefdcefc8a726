"""Walks through a tree, in passes over its merges: children come before their parents.

An upward pass runs from the first merge to the last, a downward pass from the last to the first. So
there is no recursion and no stack, however deep the tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel

# Merges that NumPy looks at together: enough for its speed, and few enough for the cache.
_AT_A_TIME = 1 << 14


def in_order(
    children: NDArray[np.int64], steps: NDArray[np.int64], n_leaves: int
) -> NDArray[np.int64]:
    """The merges in the order of the steps, renumbered, the smaller node first."""
    merges = np.empty_like(children)
    _put_in_order(children, steps, n_leaves, np.empty(steps.size, np.int64), merges)
    return merges


@kernel
def _put_in_order(children, steps, n_leaves, place, merges):
    for i in range(steps.size):
        place[steps[i]] = n_leaves + i
    for i in range(steps.size):
        a, b = children[steps[i], 0], children[steps[i], 1]
        a = a if a < n_leaves else place[a - n_leaves]
        b = b if b < n_leaves else place[b - n_leaves]
        merges[i, 0], merges[i, 1] = min(a, b), max(a, b)


def renumbered(
    children: NDArray[np.int64], nodes: NDArray[np.int64], next_node: int
) -> NDArray[np.int64]:
    """The merges with the given nodes for leaves, and unions numbered from next_node on.

    The smaller node comes first.
    """
    n, named = nodes.size, np.empty_like(children)
    for start in range(0, len(children), _AT_A_TIME):  # parts of all would take as much memory
        part = children[start : start + _AT_A_TIME].T
        first, second = np.where(part < n, nodes[np.minimum(part, n - 1)], part + (next_node - n))
        out = named[start : start + _AT_A_TIME]
        np.minimum(first, second, out=out[:, 0])
        np.maximum(first, second, out=out[:, 1])
    return named


def subtree_maxima(
    children: NDArray[np.int64], heights: NDArray[np.float64], n_leaves: int
) -> NDArray[np.float64]:
    """The largest height in the subtree of each merge."""
    maxima = heights.copy()
    _raise_to_maxima(children, n_leaves, maxima)
    return maxima


@kernel
def _raise_to_maxima(children, n_leaves, maxima):
    for i in range(maxima.size):
        for side in range(2):
            child = children[i, side] - n_leaves
            if child >= 0:
                maxima[i] = max(maxima[i], maxima[child])


def merged_sums(merges: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """The sum of the values of the leaves below each merge."""
    sums = np.empty(merges.shape[0], values.dtype)
    _sum_up(merges, values, sums)
    return sums


@kernel
def _sum_up(merges, values, sums):
    n = values.size
    for i in range(merges.shape[0]):
        a, b = merges[i, 0], merges[i, 1]
        sums[i] = (values[a] if a < n else sums[a - n]) + (values[b] if b < n else sums[b - n])


def merged_minima(merges: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest value of the leaves below each merge."""
    smallest = np.empty(merges.shape[0], np.int64)
    _find_minima(merges, values, smallest)
    return smallest


@kernel
def _find_minima(merges, values, smallest):
    n = values.size
    for i in range(merges.shape[0]):
        a, b = merges[i, 0], merges[i, 1]
        a = values[a] if a < n else smallest[a - n]
        b = values[b] if b < n else smallest[b - n]
        smallest[i] = min(a, b)


def roots_after(merges: NDArray[np.int64], n_leaves: int, count: int) -> NDArray[np.int64]:
    """The node that holds each leaf after the first `count` merges."""
    roots = np.arange(n_leaves + count)
    _descend_from_roots(merges[:count], n_leaves, roots)
    return roots[:n_leaves]


def appearances(
    clusters: NDArray[np.int64], n_nodes: int, most_clusters: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The clusters of the leaves, named by nodes, in the order in which they appear.

    Also the place of each node in that order, −1 for nodes that are no cluster.
    """
    nodes, numbers = np.empty(most_clusters, np.int64), np.full(n_nodes, -1)
    used = _find_appearances(clusters, numbers, nodes)
    return nodes[:used], numbers


@kernel
def _descend_from_roots(merges, n_leaves, roots):
    """Pass the root of every node on to its children."""
    for i in range(merges.shape[0] - 1, -1, -1):
        roots[merges[i, 0]] = roots[merges[i, 1]] = roots[n_leaves + i]


@kernel
def _find_appearances(clusters, numbers, nodes):
    used = 0
    for leaf in range(clusters.size):
        if numbers[clusters[leaf]] < 0:
            numbers[clusters[leaf]] = used
            nodes[used] = clusters[leaf]
            used += 1
    return used


def leaf_spans(
    merges: NDArray[np.int64], n_leaves: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Position of the first leaf of every node in the order of leaves, and number of its leaves.

    The leaves of a node are adjacent in that order: the leaves of its first child, then those of
    the second. The trees of a forest are ordered by their first rows.
    """
    n_nodes = n_leaves + merges.shape[0]
    roots, starts, sizes = np.arange(n_nodes), np.full(n_nodes, -1), np.ones(n_nodes, np.int64)
    _descend_from_roots(merges, n_leaves, roots)
    _find_spans(merges, n_leaves, roots, starts, sizes)
    return starts, sizes


@kernel
def _find_spans(merges, n_leaves, roots, starts, sizes):
    for i in range(merges.shape[0]):
        sizes[n_leaves + i] = sizes[merges[i, 0]] + sizes[merges[i, 1]]
    place = 0
    for leaf in range(n_leaves):
        if starts[roots[leaf]] < 0:
            starts[roots[leaf]] = place
            place += sizes[roots[leaf]]
    for i in range(merges.shape[0] - 1, -1, -1):
        starts[merges[i, 0]] = starts[n_leaves + i]
        starts[merges[i, 1]] = starts[n_leaves + i] + sizes[merges[i, 0]]


def leaves_below(merges: NDArray[np.int64], n_leaves: int, node: int) -> NDArray[np.bool_]:
    """Whether each leaf belongs to the node."""
    below = np.zeros(max(n_leaves, node + 1), np.bool_)
    below[node] = True
    _mark_below(merges, n_leaves, node, below)
    return below[:n_leaves]


@kernel
def _mark_below(merges, n_leaves, node, below):
    for i in range(node - n_leaves, -1, -1):
        if below[n_leaves + i]:
            below[merges[i, 0]] = True
            below[merges[i, 1]] = True


def common_labels(merges: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The label that all leaves of a node share, for every node; −1 if there is none."""
    common = np.concatenate([labels, np.empty(merges.shape[0], np.int64)])
    _share_labels(merges, labels.size, common)
    return common


@kernel
def _share_labels(merges, n_leaves, common):
    for i in range(merges.shape[0]):
        a, b = common[merges[i, 0]], common[merges[i, 1]]
        common[n_leaves + i] = a if a == b else -1


def grouped(
    merges: NDArray[np.int64],
    n_leaves: int,
    sizes: NDArray[np.float64],
    splits: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The tree of some of its merges, given in their order: all others are never undone.

    Where merges below such another one are undone, its smaller part goes with the larger part of
    what is left. Returns the group of each leaf, the merges of groups, and of every group and union
    of groups the highest node.
    """
    n_groups = n_leaves - merges.shape[0] + splits.size
    groups, tops = (
        np.full(n_leaves + merges.shape[0], -1),
        np.empty(n_groups + splits.size, np.int64),
    )
    joined = np.empty((splits.size, 2), np.int64)
    _group(merges, n_leaves, sizes, splits, groups, np.full(n_groups, -1))
    _join_groups(merges, n_leaves, splits, groups, np.arange(n_groups), joined, tops)
    return groups[:n_leaves].copy(), joined, tops


@kernel
def _group(merges, n_leaves, sizes, splits, groups, numbers):
    """The group of every node, from the roots down: of a split, the larger part keeps it."""
    used, place = 0, splits.size - 1
    for node in range(groups.size - 1, -1, -1):
        if groups[node] < 0:
            groups[node] = used
            used += 1
        i = node - n_leaves
        if i < 0:
            continue
        a, b = merges[i, 0], merges[i, 1]
        groups[a] = groups[b] = groups[node]
        if place >= 0 and splits[place] == i:
            groups[a if sizes[a] < sizes[b] else b] = used
            used += 1
            place -= 1
    seen = 0  # groups by their first rows
    for node in range(groups.size):
        if numbers[groups[node]] < 0:
            numbers[groups[node]] = seen
            seen += 1
        groups[node] = numbers[groups[node]]


@kernel
def _join_groups(merges, n_leaves, splits, groups, unions, joined, tops):
    """The merges of groups, and the highest node of each group and each union of groups."""
    place = 0
    for node in range(groups.size):
        i = node - n_leaves
        if place < splits.size and splits[place] == i:
            for side in range(2):
                part = unions[groups[merges[i, side]]]
                # Crumbs may have come later, and are no part of it.
                joined[place, side], tops[part] = part, merges[i, side]
            unions[groups[node]] = unions.size + place
            place += 1
        tops[unions[groups[node]]] = node


def subtree_sums(
    merges: NDArray[np.int64], values: NDArray[np.float64], n_leaves: int
) -> NDArray[np.float64]:
    """The sum of the values of all merges in the subtree of each merge."""
    sums = values.copy()
    _add_subtrees(merges, n_leaves, sums)
    return sums


@kernel
def _add_subtrees(merges, n_leaves, sums):
    for i in range(sums.size):
        for side in range(2):
            child = merges[i, side] - n_leaves
            if child >= 0:
                sums[i] += sums[child]


def best_overlaps(
    merges: NDArray[np.int64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_labels: int,
) -> NDArray[np.float64]:
    """The largest Jaccard index of each label's leaves with the leaves of any node.

    The index is the weight of the leaves in both over the weight of the leaves in either; 0 for a
    label without weight.
    """
    n, m = labels.size, merges.shape[0]
    best = np.zeros(n_labels)
    _find_overlaps(merges, labels, weights, np.empty(n + m), np.empty(n + m), best)
    return best


@kernel
def _find_overlaps(merges, labels, weights, sums, shared, best):
    n = labels.size
    for i in range(n):
        sums[i] = weights[i]
    for i in range(merges.shape[0]):
        sums[n + i] = sums[merges[i, 0]] + sums[merges[i, 1]]
    for label in range(best.size):
        own = 0.0
        for i in range(n):
            shared[i] = weights[i] if labels[i] == label else 0.0
            own += shared[i]
        for i in range(merges.shape[0]):
            shared[n + i] = shared[merges[i, 0]] + shared[merges[i, 1]]
        for node in range(n + merges.shape[0]):
            if shared[node] > 0.0:
                index = shared[node] / (sums[node] + own - shared[node])
                best[label] = max(best[label], index)


# The name of a node that is no cluster, nor below one.
UNNAMED = -1


def name_clusters(
    merges: NDArray[np.int64],
    kept: int,
    undone_leaves: NDArray[np.int64],
    names: NDArray[np.int64],
    is_top: bool,
    n_named: int,
    n_undone: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Name the clusters of a cut in a part of a tree, and pass names on to all nodes below them.

    Parameters
    ----------
    merges : ndarray of shape (m, 2)
        Children come before their parents.
    kept : int
        The number of merges that are not undone; the first ones.
    undone_leaves : ndarray of shape (n,)
        Leaves may be clusters of other parts: the numbers of their own merges if these are undone,
        else −1.
    names : ndarray of shape (n + m,)
        Names of nodes that parts above have given, or UNNAMED; changed in place.
    is_top : bool
        Whether nothing is above this part.
    n_named, n_undone : int
        How many clusters and undone merges other parts have had so far.

    Returns
    -------
    named : ndarray
        The nodes of the new clusters, in the order of their names.
    parts : ndarray of shape (m − kept, 2)
        The children of the undone merges: a name, or −2 − p for the undone merge number p.
    """
    m = merges.shape[0]
    named, parts = np.empty(2 * (m - kept) + 1, np.int64), np.empty((m - kept, 2), np.int64)
    count = _name_clusters(
        merges, kept, undone_leaves, names, is_top, n_named, n_undone, named, parts
    )
    return named[:count], parts


@kernel
def _name_clusters(merges, kept, undone_leaves, names, is_top, n_named, n_undone, named, parts):
    n, m, count = undone_leaves.size, merges.shape[0], 0
    if is_top and kept == m and (m > 0 or undone_leaves[0] < 0):
        names[n + m - 1], named[0] = n_named, n + m - 1
        count = 1
    for i in range(m - 1, kept - 1, -1):
        for side in range(2):
            child = merges[i, side]
            if child >= n + kept:
                parts[i - kept, side] = -2 - (n_undone + child - n - kept)
            elif child < n and undone_leaves[child] >= 0:
                parts[i - kept, side] = -2 - undone_leaves[child]
            else:
                parts[i - kept, side] = names[child] = n_named + count
                named[count] = child
                count += 1
    for i in range(kept - 1, -1, -1):
        names[merges[i, 0]] = names[merges[i, 1]] = names[n + i]
    return count
