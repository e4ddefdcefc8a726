"""Rows with missing cells that nothing tells apart: all merges at d = 0, in one pass.

Two rows without a common observed column are at d = 0, and so are rows that agree where both are
observed. If there are many, thousands of pairs tie. The greedy algorithm would look up each row
again whenever its neighbour is merged, and find all the others at the same distance.

**The pass.** Of the pairs at d = 0 the one with the smallest rank comes first, then with the
smallest other rank; a union has the larger rank of the two. So the points are visited in the order
of their ranks. If the visited cluster i is at 0 from clusters of larger rank, it is merged into the
first of them, j, and the union is visited in the place of j. Otherwise it stays.

**Why this is the greedy order.** Call two clusters *alike* if they agree in every column that both
have observed. The mean of equal values is that value, to the bit, so the union of alike clusters p
and q has in each column the value of p or of q. Hence a cluster is alike to p∪q if and only if it
is to p and to q. If the visited cluster is alike to none of larger rank, it is never alike to one
of their unions either, nor has it been alike to one of smaller rank, which would have been merged
into it or into another. So the smaller ranks of the merges increase, and each merge is the first
of all pairs at 0 at its time.

**Alike is the same as d = 0**, as computed, unless a term underflows. The term of a column grows
with either weight and with the distance of the means. So the smallest term of all is that of two
neighbouring values of a column, both with the smallest weight. If that is not far above the
smallest numbers, there is no pass, and the greedy algorithm does everything.

In a product all this holds if every block has gaps. If one has none, there are no strangers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.portions import portions
from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.clusters.scratch import new_scratch
from fastrbhc._engine.geometry.contract import merge
from fastrbhc._engine.geometry.separable_columns import divergence
from fastrbhc._engine.jit import kernel

# Terms below this may underflow.
_SMALLEST_TERM = 1e-280
# Patterns of missing cells that are compared, to see whether there are any strangers.
_MOST_PATTERNS = 2048


class MergesAtZero(NamedTuple):
    """Merges in the order they were made, and the node that is in each slot of a cluster then."""

    children: NDArray[np.int64]  # (m, 2)
    nodes: NDArray[np.int64]  # (n,)


class SeparateColumns(NamedTuple):
    """A block of columns with weights of their own, and how its terms are computed."""

    family: Any
    scale: float
    offset: float
    factor: float  # of its terms in d
    values: slice  # the rows of ``means`` with the values
    weights: slice  # and with their weights


class _Values(NamedTuple):
    """The values of each column by number: equal values have equal numbers."""

    numbers: NDArray[np.int64]  # (n, d), −1 where a cell is missing
    starts: NDArray[np.int64]  # where the slots with each value begin in ``slots``
    slots: NDArray[np.int64]  # the slots of the first value, of the second, …


def merge_strangers(
    geometry: Any, blocks: Sequence[SeparateColumns], clusters: Clusters
) -> MergesAtZero | None:
    """Make all merges at d = 0; None if they are left to the algorithm that makes the others.

    The blocks are all that the geometry has. The slots hold points in the order of their ranks.
    Nodes are numbered as in `merge_log`. A union is in the slot of its part of larger rank.
    """
    n = clusters.n_slots
    observed = [clusters.means[block.weights, :n] > 0.0 for block in blocks]
    patterns = _patterns(np.concatenate(observed))
    if not _any_strangers(patterns):
        return None
    values = _numbered(clusters, blocks, observed)
    if values is None:
        return None
    everything = np.bitwise_or.reduce(patterns, axis=0)
    owners, nodes, children = np.arange(n), np.arange(n), np.empty((n, 2), np.int64)
    scratch, count = new_scratch(geometry, clusters.means.shape[0]), 0
    for first, last in portions(n, n):
        found = (patterns, everything, *values, owners, nodes, children)
        count = _merge_range(geometry, clusters, *found, count, first, last, scratch)
    return MergesAtZero(children[:count], nodes)


def _patterns(observed: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Which cells of each row are observed, as bits: (n, words)."""
    columns, n = observed.shape
    padded = np.zeros((n, -(-columns // 64) * 64), bool)
    padded[:, :columns] = observed.T
    return np.packbits(padded, axis=1).view(np.uint64)


def _any_strangers(patterns: NDArray[np.uint64]) -> bool:
    """Whether two rows have no observed column in common, among the first patterns at least."""
    distinct = np.unique(patterns, axis=0)[:_MOST_PATTERNS]
    bits = np.unpackbits(distinct.view(np.uint8), axis=1).astype(np.float32)
    return bool((bits @ bits.T == 0.0).any())


def _numbered(
    clusters: Clusters, blocks: Sequence[SeparateColumns], observed: list[NDArray[np.bool_]]
) -> _Values | None:
    """The values by number; None if two of them are so near that a term of d may underflow."""
    n = clusters.n_slots
    numbers, counts, slots, first = [], [], [], 0
    for block, known in zip(blocks, observed, strict=True):
        if not known.any():
            return None
        weight = float(clusters.means[block.weights, :n][known].min())
        for row, cells in zip(range(block.values.start, block.values.stop), known, strict=True):
            seen = np.flatnonzero(cells)
            means, rests = clusters.means[row, seen], clusters.residuals[row, seen]
            order = np.lexsort((rests, means))
            means, rests = means[order], rests[order]
            begins = np.ones(seen.size, bool)
            begins[1:] = (means[1:] != means[:-1]) | (rests[1:] != rests[:-1])
            least = _least_term(*block[:3], means[begins], rests[begins], weight)
            if not block.factor * least > _SMALLEST_TERM:
                return None
            own = np.full(n, -1)
            own[seen[order]] = first + np.cumsum(begins) - 1
            numbers.append(own)
            counts.append(np.diff(np.append(np.flatnonzero(begins), seen.size)))
            slots.append(seen[order])
            first += int(begins.sum())
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return _Values(np.column_stack(numbers), starts, np.concatenate(slots))


@kernel
def _least_term(family, scale, offset, means, rests, weight):
    """The smallest term of a column in d, of neighbouring values with the same weight."""
    least = np.inf
    for s in range(means.size - 1):
        step = scale * ((means[s + 1] - means[s]) + (rests[s + 1] - rests[s]))
        value0, value1 = scale * means[s] + offset, scale * means[s + 1] + offset
        mean = scale * (0.5 * means[s] + 0.5 * means[s + 1]) + offset
        term = divergence(family, value0, mean, -0.5 * step)
        term = weight * (term + divergence(family, value1, mean, 0.5 * step))
        if not term >= least:  # NaN too
            least = term
    return least


@kernel
def _merge_range(
    geometry,
    clusters,
    patterns,
    everything,
    numbers,
    starts,
    slots,
    owners,
    nodes,
    children,
    count,
    first,
    last,
    scratch,
):
    """Visit a range of the points; returns how many merges there are so far."""
    n, columns = numbers.shape
    for i in range(first, last):
        j, candidates = n, 0
        for k in range(columns):
            if numbers[i, k] >= 0:
                candidates += starts[numbers[i, k] + 1] - starts[numbers[i, k]]
        if candidates >= n - i:
            for other in range(i + 1, n):
                if _are_alike(numbers, i, other):
                    j = other
                    break
        else:
            for k in range(columns):  # those alike that share a column have a value in common
                value = numbers[i, k]
                if value >= 0:
                    for place in range(starts[value], starts[value + 1]):
                        other = _owner(owners, slots[place])
                        if i < other < j and _are_alike(numbers, i, other):
                            j = other
            if not _covers(patterns[i], everything):
                for other in range(i + 1, j):
                    if _are_strangers(patterns, i, other):
                        j = other
                        break
        if j == n:
            continue
        children[count, 0], children[count, 1] = min(nodes[i], nodes[j]), max(nodes[i], nodes[j])
        nodes[j] = n + count
        count += 1
        merge(geometry, clusters, j, i, scratch)
        owners[i] = j
        for k in range(columns):
            if numbers[j, k] < 0:
                numbers[j, k] = numbers[i, k]
        for w in range(patterns.shape[1]):
            patterns[j, w] |= patterns[i, w]
    return count


@kernel
def _owner(owners, slot):
    """The slot of the cluster that a point belongs to; the way there is shortened."""
    while owners[slot] != slot:
        owners[slot] = owners[owners[slot]]
        slot = owners[slot]
    return slot


@kernel
def _are_alike(numbers, i, j):
    for k in range(numbers.shape[1]):
        if numbers[i, k] >= 0 and numbers[j, k] >= 0 and numbers[i, k] != numbers[j, k]:
            return False
    return True


@kernel
def _are_strangers(patterns, i, j):
    shared = np.uint64(0)
    for w in range(patterns.shape[1]):
        shared |= patterns[i, w] & patterns[j, w]
    return shared == 0


@kernel
def _covers(pattern, everything):
    lacking = np.uint64(0)
    for w in range(pattern.size):
        lacking |= pattern[w] ^ everything[w]
    return lacking == 0
