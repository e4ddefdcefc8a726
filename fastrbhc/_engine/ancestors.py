"""The merge that joins two leaves, for many pairs of them.

Every merge links one leaf of its smaller part to one leaf of its larger part, and stamps the link
with its own number. Stamps grow along the links, and a path has at most log₂ n of them, because
behind each link the part is at least twice as large. The two paths meet at the merge of the last
link that was followed. No path is shortened, so memory is O(n) whatever the pairs are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.jit import kernel

# Pairs that are looked up in one call, some hundredths of a second.
_AT_A_TIME = 1 << 17


def joining_merges(
    merges: NDArray[np.int64], n_leaves: int, pairs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The first merge with both leaves of each pair; −1 for a leaf with itself, m for none."""
    m = merges.shape[0]
    links, stamps = np.arange(n_leaves), np.full(n_leaves, m)
    nodes, sizes = np.empty(n_leaves + m, np.int64), np.ones(n_leaves + m, np.int64)
    _link(merges, n_leaves, links, stamps, nodes, sizes)
    found = np.empty(pairs.shape[0], np.int64)
    for start in range(0, found.size, _AT_A_TIME):
        part = slice(start, start + _AT_A_TIME)
        _follow(pairs[part], m, links, stamps, found[part])
    return found


@kernel
def _link(merges, n_leaves, links, stamps, nodes, sizes):
    """The leaf that stands for each node, and where those of smaller parts lead."""
    for leaf in range(n_leaves):
        nodes[leaf] = leaf
    for i in range(merges.shape[0]):
        small, large = merges[i, 0], merges[i, 1]
        if sizes[small] > sizes[large]:
            small, large = large, small
        sizes[n_leaves + i] = sizes[small] + sizes[large]
        nodes[n_leaves + i] = nodes[large]
        links[nodes[small]], stamps[nodes[small]] = nodes[large], i


@kernel
def _follow(pairs, m, links, stamps, found):
    for pair in range(pairs.shape[0]):
        a, b = pairs[pair, 0], pairs[pair, 1]
        found[pair] = -1
        while a != b:
            if stamps[a] > stamps[b]:
                a, b = b, a
            if stamps[a] == m:  # both stand for whole trees
                found[pair] = m
                break
            found[pair] = stamps[a]
            a = links[a]
