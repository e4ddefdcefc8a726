"""Whether two trees over the same rows have the same clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastrbhc._engine.traversal import merged_sums

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram


def first_departure(tree: Dendrogram, other: Dendrogram, seed: int = 0) -> int | None:
    """The first merge of a tree whose cluster another tree over the same rows does not have.

    Clusters are compared by sums of random 64-bit numbers, one per row: the sums of two different
    clusters agree with probability 2⁻⁶⁴.

    Parameters
    ----------
    tree, other : Dendrogram
        Two trees over the same rows.
    seed : int, default=0
        Seed of the random numbers.

    Returns
    -------
    int or None
        A row of ``tree.merges``; None if the other tree has all of its clusters.

    Examples
    --------
    >>> import fastrbhc
    >>> from fastrbhc.reducibility import first_departure
    >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward")
    >>> other = fastrbhc.linkage([[0.0], [4.0], [5.0]], "ward")
    >>> first_departure(tree, tree), first_departure(tree, other)
    (None, 0)
    """
    numbers = np.random.default_rng(seed).integers(0, 2**64, tree.n_leaves, dtype=np.uint64)
    sums, others = (merged_sums(one.merges, numbers) for one in (tree, other))
    missing = ~np.isin(sums, others)
    return int(np.argmax(missing)) if missing.any() else None
