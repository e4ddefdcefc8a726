"""The tie rule: which of two equally near clusters, or pairs of clusters, comes first.

Every cluster has a *rank*. The rank of a point is its position in an order that depends only on
values, see `observations`; the rank of a union is the larger rank of its parts. Of two neighbours
at the same dissimilarity, the one of smaller rank is nearer. Pairs are ordered by their smaller
rank, then by their larger rank. No two pairs of active clusters have the same ranks, so the order
is total and the next merge is unique.
"""

from __future__ import annotations

from fastrbhc._engine.jit import kernel


@kernel
def rank_of_union(rank0, rank1):
    """The larger rank, so that no union comes before a neighbour that it replaces."""
    return max(rank0, rank1)


@kernel
def comes_before(value0, rank0, value1, rank1):
    """Whether a neighbour at value0 is nearer than one at value1."""
    return value0 < value1 or (value0 == value1 and rank0 < rank1)


@kernel
def ranks_before(rank_a0, rank_a1, rank_b0, rank_b1):
    """Whether the pair a comes before the pair b at the same dissimilarity."""
    smaller_a, smaller_b = min(rank_a0, rank_a1), min(rank_b0, rank_b1)
    if smaller_a != smaller_b:
        return smaller_a < smaller_b
    return max(rank_a0, rank_a1) < max(rank_b0, rank_b1)
