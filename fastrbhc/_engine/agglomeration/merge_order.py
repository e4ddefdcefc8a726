"""The order in which merges are listed if d is reducible: then any order gives the same tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.radix_sort import stable_order
from fastrbhc._engine.neighbors.ordering import rank_of_union
from fastrbhc._engine.traversal import in_order, subtree_maxima


class Ordering(NamedTuple):
    """What decides the place of merges, or of the clusters that a part of a tree begins with.

    Merges are in the order of their levels; at the same level those with the shallowest subtrees
    come first, and of these the one with the smallest key.
    """

    levels: NDArray[np.float64]  # the largest height within; 0 for points
    depths: NDArray[np.int64]  # merges on the longest path below, itself included; 0 for points
    keys: NDArray[np.int64]  # of a point that of its rank; of a merge the smaller one of its parts

    def take(self, which: NDArray[np.int64] | slice) -> Ordering:
        """That of some."""
        return Ordering(self.levels[which], self.depths[which], self.keys[which])


class OrderedMerges(NamedTuple):
    """Merges of a part of a tree, in order."""

    children: NDArray[np.int64]  # (m, 2)
    heights: NDArray[np.float64]  # (m,)
    ordering: Ordering
    steps: NDArray[np.int64]  # (m,), the position of each in the order in which they were made


def by_level(merges: Merges, n: int) -> Merges:
    """The merges in the order of their heights, which is valid because d is reducible.

    The order therefore does not depend on slots or rounds.
    """
    children, heights = merges
    levels = subtree_maxima(children, heights, n)
    order = stable_order(levels)
    places = _tied(levels, order)
    if places.size:
        depths, keys, _ = _depths_and_keys(children, np.zeros(n, np.int64), np.arange(n))
        order[places] = _in_order(Ordering(levels, depths, keys), order[places])
    del levels  # frees memory
    return Merges(in_order(children, order, n), heights[order])


def ordering_of(merges: Merges, leaves: Ordering) -> tuple[Ordering, Ordering]:
    """The ordering of merges of clusters, and that of all nodes if they are clusters themselves.

    A cluster has the larger key of its parts, as its rank is the larger one.
    """
    children, heights = merges
    n = leaves.keys.size
    levels = np.concatenate([leaves.levels, heights])
    _raise_to_maxima(children, n, levels)
    depths, keys, unions = _depths_and_keys(children, leaves.depths, leaves.keys)
    clusters = Ordering(
        levels, np.concatenate([leaves.depths, depths]), np.concatenate([leaves.keys, unions])
    )
    return Ordering(levels[n:], depths, keys), clusters


def ordered(merges: Merges, leaves: Ordering) -> tuple[OrderedMerges, Ordering]:
    """Merges of clusters in their order, and the ordering of all nodes as they were numbered."""
    found, clusters = ordering_of(merges, leaves)
    steps = order_of(found)
    in_their_order = OrderedMerges(
        in_order(merges.children, steps, leaves.keys.size),
        merges.heights[steps],
        found.take(steps),
        steps,
    )
    return in_their_order, clusters


def joined_orderings(parts: Sequence[Ordering]) -> Ordering:
    """The ordering of all that have been ordered by themselves, one part after another."""
    return Ordering(
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.depths for part in parts]),
        np.concatenate([part.keys for part in parts]),
    )


def order_of(merges: Ordering) -> NDArray[np.int64]:
    """The order of merges; those that nothing tells apart stay as they are."""
    order = stable_order(merges.levels)
    places = _tied(merges.levels, order)
    order[places] = _in_order(merges, order[places])
    return order


def _tied(levels: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places in the order at which a level is not the only one of its value."""
    in_order = levels[order]
    tied = in_order[1:] == in_order[:-1]
    if not tied.any():
        return np.empty(0, np.int64)
    return np.flatnonzero(np.append(tied, False) | np.append(False, tied))


def _in_order(merges: Ordering, some: NDArray[np.int64]) -> NDArray[np.int64]:
    levels, depths, keys = merges.take(some)
    order: NDArray[np.int64] = some[np.lexsort((keys, depths, levels))]
    return order


def _depths_and_keys(
    children: NDArray[np.int64], leaf_depths: NDArray[np.int64], leaf_keys: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For each merge the longest path below it, and the smaller and the larger key of its parts."""
    depths, smaller, unions = np.empty((3, children.shape[0]), np.int64)
    _find_depths_and_keys(children, leaf_depths, leaf_keys, depths, smaller, unions)
    return depths, smaller, unions


@kernel
def _find_depths_and_keys(children, leaf_depths, leaf_keys, depths, smaller, unions):
    n = leaf_keys.size
    for i in range(children.shape[0]):
        a, b = children[i, 0], children[i, 1]
        key_a = leaf_keys[a] if a < n else unions[a - n]
        key_b = leaf_keys[b] if b < n else unions[b - n]
        smaller[i], unions[i] = min(key_a, key_b), rank_of_union(key_a, key_b)
        depth_a = leaf_depths[a] if a < n else depths[a - n]
        depth_b = leaf_depths[b] if b < n else depths[b - n]
        depths[i] = 1 + max(depth_a, depth_b)


@kernel
def _raise_to_maxima(children, n, levels):
    for i in range(children.shape[0]):
        below = max(levels[children[i, 0]], levels[children[i, 1]])
        levels[n + i] = max(levels[n + i], below)
