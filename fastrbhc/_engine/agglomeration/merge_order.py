"""The order in which merges are listed if d is reducible: then any order gives the same tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.radix_sort import stable_order
from fastrbhc._engine.neighbors.ordering import rank_of_union
from fastrbhc._engine.traversal import in_order, subtree_maxima


def by_level(merges: Merges, n: int) -> Merges:
    """The merges in the order of their heights, which is valid because d is reducible.

    The order therefore does not depend on slots or rounds. Of merges at the same height, those with
    the shallowest subtrees come first, and of these the one with the smallest rank.
    """
    children, heights = merges
    levels = subtree_maxima(children, heights, n)
    order = stable_order(levels)
    ordered = levels[order]
    tied = ordered[1:] == ordered[:-1]
    del ordered
    if tied.any():
        places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
        some = order[places]
        depths, ranks = _depths_and_ranks(children, n)
        order[places] = some[np.lexsort((ranks[some], depths[some], levels[some]))]
    del levels  # frees memory
    return Merges(in_order(children, order, n), heights[order])


def _depths_and_ranks(
    children: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each merge the number of merges on the longest path below it, and its smaller rank.

    Leaves are numbered by their ranks, and no two merges have the same smaller rank.
    """
    depths, smaller, unions = np.zeros((3, children.shape[0]), np.int64)
    _find_depths_and_ranks(children, n, depths, smaller, unions)
    return depths, smaller


@kernel
def _find_depths_and_ranks(children, n, depths, smaller, unions):
    for i in range(children.shape[0]):
        a, b = children[i, 0] - n, children[i, 1] - n
        rank_a = unions[a] if a >= 0 else a + n
        rank_b = unions[b] if b >= 0 else b + n
        smaller[i], unions[i] = min(rank_a, rank_b), rank_of_union(rank_a, rank_b)
        if a >= 0:
            depths[i] = max(depths[i], depths[a] + 1)
        if b >= 0:
            depths[i] = max(depths[i], depths[b] + 1)
