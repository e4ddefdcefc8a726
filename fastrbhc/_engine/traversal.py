"""Walks through a tree, in passes over its merges: children come before their parents.

A pass upwards goes through the merges from the first to the last, a pass downwards the other way.
So nothing recurses and nothing needs a stack, however deep the tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import allocating_kernel, kernel

# What every tree needs takes its memory from Python: kernels that allocate take longer to compile.


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
    """The merges with leaves named by their nodes, and unions numbered on from next_node."""
    n = nodes.size
    leaves = children < n
    named = nodes[np.where(leaves, children, 0)]
    named[~leaves] = children[~leaves] - n + next_node
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
    """For each merge the sum of the values of its leaves: of weights, its total weight."""
    sums = np.empty(merges.shape[0], values.dtype)
    _sum_up(merges, values, sums)
    return sums


@kernel
def _sum_up(merges, values, sums):
    n = values.size
    for i in range(merges.shape[0]):
        a, b = merges[i, 0], merges[i, 1]
        sums[i] = (values[a] if a < n else sums[a - n]) + (values[b] if b < n else sums[b - n])


@allocating_kernel
def labels_after(merges, n_leaves, count):
    """Labels after the first `count` merges, numbered by first appearance."""
    root = np.arange(n_leaves + count)
    for i in range(count - 1, -1, -1):
        root[merges[i, 0]] = root[n_leaves + i]
        root[merges[i, 1]] = root[n_leaves + i]
    number = np.full(n_leaves + count, -1)
    labels = np.empty(n_leaves, np.int64)
    used = 0
    for leaf in range(n_leaves):
        if number[root[leaf]] < 0:
            number[root[leaf]] = used
            used += 1
        labels[leaf] = number[root[leaf]]
    return labels


@allocating_kernel
def leaf_spans(merges, n_leaves):
    """For every node the place of its first leaf in the order of leaves, and how many it has.

    The leaves of a node stand side by side in that order: those of its first child, then those of
    the second. Trees of a forest follow one another by their first rows.
    """
    m = merges.shape[0]
    sizes = np.ones(n_leaves + m, np.int64)
    for i in range(m):
        sizes[n_leaves + i] = sizes[merges[i, 0]] + sizes[merges[i, 1]]
    root = np.arange(n_leaves + m)
    for i in range(m - 1, -1, -1):
        root[merges[i, 0]] = root[n_leaves + i]
        root[merges[i, 1]] = root[n_leaves + i]
    starts = np.full(n_leaves + m, -1)
    place = 0
    for leaf in range(n_leaves):
        if starts[root[leaf]] < 0:
            starts[root[leaf]] = place
            place += sizes[root[leaf]]
    for i in range(m - 1, -1, -1):
        starts[merges[i, 0]] = starts[n_leaves + i]
        starts[merges[i, 1]] = starts[n_leaves + i] + sizes[merges[i, 0]]
    return starts, sizes


@allocating_kernel
def leaves_below(merges, n_leaves, node):
    """Whether each leaf belongs to the node."""
    below = np.zeros(max(n_leaves, node + 1), np.bool_)
    below[node] = True
    for i in range(node - n_leaves, -1, -1):
        if below[n_leaves + i]:
            below[merges[i, 0]] = True
            below[merges[i, 1]] = True
    return below[:n_leaves]


@allocating_kernel
def common_labels(merges, labels):
    """For every node the label that all of its leaves share, −1 if there is none."""
    n = labels.size
    common = np.empty(n + merges.shape[0], np.int64)
    common[:n] = labels
    for i in range(merges.shape[0]):
        a, b = common[merges[i, 0]], common[merges[i, 1]]
        common[n + i] = a if a == b else -1
    return common
