"""Clusters as arrays of statistics, and the dissimilarity between two of them.

For a cluster c of weight n and mean statistic t let f(c) = n·φ(t). The dissimilarity is
(paper, eq. bhc_dis_star)

    d(a, b) = f(a) + f(b) − f(a∪b) = n_a·B_φ(t_a, t) + n_b·B_φ(t_b, t),

t being the mean of the union. The right-hand form, a sum of terms that are not negative,
is the one evaluated: the left one is a small difference of large numbers.

A *geometry* is what a family becomes once the number of columns is known: a record with
these methods, run inside kernels.

``dissimilarity(geometry, clusters, i, j, cutoff, scratch)``
    d of slots i and j: the same bits for (j, i), never negative. Where d ≥ cutoff any value
    that is not below the cutoff may be returned, so that hopeless pairs are given up early.
``lower_bounds(geometry, clusters, i, start, stop, scratch)``
    Fills scratch.bounds[:stop−start] with values not above what ``dissimilarity`` returns for
    slot i and the slots start…stop−1; NaN for free slots.
``candidates(geometry, clusters, i, start, stop, cutoff, scratch)``
    Writes to scratch.slots those of the slots start…stop−1 whose d from slot i may be at most the
    cutoff, and to scratch.bounds lower bounds of what ``dissimilarity`` returns for them; returns
    how many they are.
``aim(geometry, clusters, queue, first, last, scratch)``, then
``suspects(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch)``
    The same for a group of queries, the slots queue[first:last], at most GROUP of them, each with
    the cutoff that stands at its slot. A pair of the q-th query and the s-th slot of the run is
    written as q·BLOCK + s to scratch.suspects, with a lower bound in scratch.suspect_bounds.
    ``aim`` is called once a group, before any run.
``tile_values(geometry, clusters, i, start, cutoff, scratch)``
    Returns which slots of the tile that begins at start have d ≤ cutoff from slot i, as bits, and
    writes those d to their places in scratch.bounds[:TILE]; elsewhere anything may stand.
``box_bound(geometry, clusters, i, boxes, node, cutoff)``
    At most what ``dissimilarity`` returns for slot i and any cluster in the box of that node, or
    anything above the cutoff where that would be above it:
    its mean within the low and high of each column, its weight at least the smallest one,
    its extents (see below) within their low and high. A box has these numbers in this order;
    those of node 8g + s are boxes[g, :, s]. NaN for an empty box, whose weight is infinite.
``box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch)``
    The same for such bounds of the eight nodes of a group.
``merge(geometry, clusters, i, j, scratch)``
    Puts the union into slot i and frees slot j.

``pull_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch)``
    Fills scratch.bounds[:stop−start] with lower bounds of the larger one of d(a∪x, b) and d(b∪x, a)
    for every x in the slots start…stop−1, a and b being slots; NaN for free slots. Where that
    exceeds the cutoff anything above the cutoff will do. Reducibility asks for it, see `audit`.
``box_pull_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch)``
    The same for all x that a box may hold, of which none has a larger weight than the heaviest.

``n_extents(geometry)`` and ``extent(geometry, clusters, i, e)``
    How many measures of a cluster, beside its mean and weight, ``box_bound`` wants to know the
    smallest and largest of, and the e-th of them.

Four more are asked for outside the agglomerators: ``refresh(geometry, clusters, i, scratch)``
recomputes what is cached from the moments; ``curvature(geometry, clusters, i, j, centre, scratch)``
is δᵀφ″δ, where δ is the difference of the mean statistics of slots i and j and φ″ the second
derivative of the smoothed φ at the mean statistic of slot ``centre``, the same bits for (j, i);
``sizes(n_features)``, plain Python, tells what a cluster stores beside its mean; and
``with_coarse(clusters)``, plain Python too, returns the clusters with their coarse means filled in,
or with none if they would be of no use.
There are three geometries: `Quadratic`, `Separable` and the full-covariance one beside its
family.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.geometry.float32_screen import FOUR, STRIP, aims_shape, tile_shape
from fastrbhc._engine.jit import contract, inlined_contract, inlined_kernel, kernel, length
from fastrbhc._engine.math.double_double import weighted_mean
from fastrbhc._engine.simd import EIGHT, at_most, load, lowest

# Covers the rounding of a bound and of the value it bounds, for millions of columns;
# it lets through one pair in a billion that the exact bound would have stopped.
ROUNDING = 1.0 - 1e-9


# Slots come in tiles of this many; a tile is a leaf of the kd-tree.
TILE = EIGHT

# Slots after those of the points, at most, for an agglomerator to put clusters aside.
SPARE = 512

# Slots whose bounds are computed together, so that they stay in the first cache.
# 64 cost a fifth more time, 1024 the same.
BLOCK = 256

# Queries that look at a block together, while it is in the cache.
GROUP = 64


class Clusters(NamedTuple):
    """Statistics of all clusters alive, one a slot; in a free slot weight and means are NaN.

    Means are stored by column (d × n), so that a scan runs over neighbouring slots; by cluster
    where scans have coarse means to run over and exact values are all that is asked of the means.
    """

    weights: NDArray[np.float64]  # (n,)
    means: NDArray[np.float64]  # (d, n), the leading digits
    residuals: NDArray[np.float64]  # (d, n), the digits after them
    coarse: NDArray[np.float32]  # (d, n), means as bounds want them; d = 0 if not wanted
    order: NDArray[np.int64]  # (d,), the column that each row of coarse stands for
    centre: NDArray[np.float64]  # (d,), the middle of each column
    radius: NDArray[np.float64]  # (1,), the farthest that a mean lies from the centre
    slack: NDArray[np.float64]  # (1,), what rounding of coarse means may add to a bound
    moments: NDArray[np.float64]  # (n, q), scatter, see families/_cholesky; q = 0 if not needed
    cached: NDArray[np.float64]  # (n, r), values that follow from the moments
    outlines: NDArray[np.float64]  # (p, n), what scans need of moments and cached; p = 0 if nothing
    ranks: NDArray[np.int64]  # (n,), which of two equally near clusters comes first
    columns: tuple[int, ...]  # d entries, so that kernels know d; or none


class Sizes(NamedTuple):
    """What a geometry stores and needs, beside weights and means."""

    moments: int = 0  # numbers a cluster
    cached: int = 0  # numbers a cluster
    coarse: bool = False  # whether bounds use the means in single precision
    outline: int = 0  # numbers a cluster, for bounds of many slots at a time
    by_cluster: bool = False  # whether scans read coarse means only, and means a cluster at a time
    principal: bool = False  # whether points had better lie along their principal axes
    matrix: tuple[int, int] = (0, 0)  # scratch for one evaluation
    lanes: tuple[int, int] = (0, 0)  # scratch for many at a time


class Scratch(NamedTuple):
    """Memory that one thread may write to."""

    bounds: NDArray[np.float64]  # (BLOCK,)
    shares: NDArray[np.float64]  # (2, BLOCK)
    pulls: NDArray[np.float64]  # (BLOCK,), bounds of the other side
    direction: NDArray[np.float64]  # (d,)
    coarse: NDArray[np.float32]  # (BLOCK,)
    coarse_shares: NDArray[np.float32]  # (3, BLOCK)
    matrix: NDArray[np.float64]
    lanes: NDArray[np.float64]
    slots: NDArray[np.int64]  # (BLOCK,), candidates
    nodes: NDArray[np.int64]  # (128,), nodes of a tree that are yet to be visited
    node_bounds: NDArray[np.float64]  # (128,), their bounds
    group: NDArray[np.int64]  # (GROUP,), slots of queries
    suspects: NDArray[np.int64]  # (GROUP·BLOCK,), pairs of a query and a slot
    suspect_bounds: NDArray[np.float32]  # (GROUP·BLOCK,), at most their d
    hits: NDArray[np.int64]  # (…,), slots that a search has found; none unless asked for
    bits: NDArray[np.int64]  # for `float32_screen`, as are the next two
    tile: NDArray[np.float32]
    aims: NDArray[np.float32]


@contract
def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
    """d of two slots; see the module's documentation."""


@contract
def curvature(geometry, clusters, i, j, centre, scratch):
    """The second derivative of φ along two slots' difference; see the module's documentation."""


@contract
def lower_bounds(geometry, clusters, i, start, stop, scratch):
    """Lower bounds of d from slot i to a run of slots; see the module's documentation."""


@inlined_contract
def tile_values(geometry, clusters, i, start, cutoff, scratch):
    """d from slot i to the slots of a tile; see the module's documentation."""


@inlined_contract
def n_extents(geometry):
    """How many extents a box keeps; see the module's documentation."""


@inlined_contract
def extent(geometry, clusters, i, e):
    """The e-th extent of slot i; see the module's documentation."""


@inlined_contract
def box_bound(geometry, clusters, i, boxes, node, cutoff):
    """Lower bound of d from slot i to whatever a box holds; see the module's documentation."""


@inlined_contract
def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
    """The same for the boxes of a group of eight nodes; see the module's documentation."""


@contract
def pull_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
    """Bounds of how far a run of slots lets a and b apart; see the module's documentation."""


@contract
def box_pull_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
    """The same for whatever a box holds; see the module's documentation."""


@contract
def candidates(geometry, clusters, i, start, stop, cutoff, scratch):
    """The slots of a run that may be within the cutoff; see the module's documentation."""


@contract
def aim(geometry, clusters, queue, first, last, scratch):
    """Get ready for a group of queries; see the module's documentation."""


@contract
def suspects(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch):
    """The pairs of a group and a run that may be within cutoffs; see the module's documentation."""


@contract
def merge(geometry, clusters, i, j, scratch):
    """Replace slots i and j by their union in i; see the module's documentation."""


@contract
def refresh(geometry, clusters, i, scratch):
    """Recompute the cached values of slot i; see the module's documentation."""


@kernel
def n_columns(clusters):
    """d."""
    return length(clusters.columns, clusters.means.shape[0])


@kernel
def difference(clusters, i, j, k):
    """Mean of slot j less that of slot i in column k, to the last digit."""
    leading = clusters.means[k, j] - clusters.means[k, i]
    return leading + (clusters.residuals[k, j] - clusters.residuals[k, i])


@kernel
def merge_exact_means(clusters, i, j):
    """Weight, mean and rank of the union into slot i; slot j becomes free."""
    means, residuals = clusters.means, clusters.residuals
    w0, w1 = clusters.weights[i], clusters.weights[j]
    for k in range(n_columns(clusters)):
        means[k, i], residuals[k, i] = weighted_mean(
            w0, means[k, i], residuals[k, i], w1, means[k, j], residuals[k, j]
        )
    clusters.weights[i] = w0 + w1
    free(clusters, j)
    # The larger rank, so that no union comes before a neighbour that it replaces.
    clusters.ranks[i] = max(clusters.ranks[i], clusters.ranks[j])


@kernel
def free(clusters, j):
    """Take the cluster out of slot j."""
    clusters.weights[j] = np.nan
    for k in range(n_columns(clusters)):
        clusters.means[k, j] = np.nan


@kernel
def copy_slot(clusters, source, target):
    """Copy the cluster of one slot into another."""
    clusters.weights[target] = clusters.weights[source]
    clusters.ranks[target] = clusters.ranks[source]
    for k in range(n_columns(clusters)):
        clusters.means[k, target] = clusters.means[k, source]
        clusters.residuals[k, target] = clusters.residuals[k, source]
    for k in range(clusters.coarse.shape[0]):
        clusters.coarse[k, target] = clusters.coarse[k, source]
    for k in range(clusters.moments.shape[1]):
        clusters.moments[target, k] = clusters.moments[source, k]
    for k in range(clusters.cached.shape[1]):
        clusters.cached[target, k] = clusters.cached[source, k]
    for k in range(clusters.outlines.shape[0]):
        clusters.outlines[k, target] = clusters.outlines[k, source]


@inlined_kernel
def box_bounds_one_by_one(geometry, clusters, i, boxes, group, cutoff, scratch):
    """The bounds of eight boxes for geometries that have them one at a time."""
    for s in range(EIGHT):
        scratch.bounds[s] = box_bound(geometry, clusters, i, boxes, EIGHT * group + s, cutoff)
    return at_most(load(scratch.bounds, (0,)), cutoff)


@inlined_kernel
def values_of_near(geometry, clusters, i, start, cutoff, near, scratch):
    """The values of a tile where its bounds, as bits, are near; which values are, as bits."""
    left = near
    while left:
        s = lowest(left)
        left &= left - 1
        value = np.nan
        if start + s != i:
            value = dissimilarity(geometry, clusters, i, start + s, cutoff, scratch)
        scratch.bounds[s] = value
        if not value <= cutoff:
            near -= 1 << s
    return near


@kernel
def candidates_by_bounds(geometry, clusters, i, start, stop, cutoff, scratch):
    """The candidates of geometries that have nothing quicker than their bounds."""
    lower_bounds(geometry, clusters, i, start, stop, scratch)
    size, bounds = stop - start, scratch.bounds
    # As an integer: five times as fast as a boolean.
    found = np.int64(0)
    for s in range(size):
        found |= np.int64(bounds[s] <= cutoff)
    count = 0
    if found:
        for s in range(size):
            if bounds[s] <= cutoff:
                scratch.slots[count], bounds[count] = start + s, bounds[s]
                count += 1
    return count


@kernel
def suspects_one_by_one(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch):
    """The suspects of geometries that gain nothing by looking at several queries together.

    The most promising one of a query comes first, so that the others may be given up after it.
    """
    count = 0
    for q in range(first, last):
        i = np.int64(queue[q])
        more = candidates(geometry, clusters, i, start, stop, cutoffs[i], scratch)
        least, smallest = 0, np.inf
        for c in range(more):
            if scratch.bounds[c] < smallest and scratch.slots[c] != i:
                least, smallest = c, scratch.bounds[c]
        for c in range(more):
            other = least if c == 0 else 0 if c == least else c
            scratch.suspects[count + c] = (q - first) * BLOCK + scratch.slots[other] - start
            scratch.suspect_bounds[count + c] = _rounded_down(scratch.bounds[other])
        count += more
    return count


@kernel
def _rounded_down(bound):
    """In single precision, never above what it was, as far as that goes: no d is so negative."""
    return np.float32(max(min(bound - 1e-6 * abs(bound), 3e38), -3e38) - 1e-37)


def new_scratch(geometry: Any, n_features: int, most_hits: int = 0) -> Scratch:
    """Scratch memory for one thread."""
    sizes = geometry.sizes(n_features)
    n_coarse = n_features if sizes.coarse else 0
    return Scratch(
        bounds=np.empty(BLOCK),
        shares=np.empty((2, BLOCK)),
        pulls=np.empty(BLOCK),
        direction=np.empty(n_features),
        coarse=np.empty(BLOCK, np.float32),
        coarse_shares=np.empty((3, BLOCK), np.float32),
        matrix=np.empty(sizes.matrix),
        lanes=np.empty(sizes.lanes),
        slots=np.empty(BLOCK, np.int64),
        nodes=np.empty(128, np.int64),
        node_bounds=np.empty(128),
        group=np.empty(GROUP, np.int64),
        suspects=np.empty(GROUP * BLOCK, np.int64),
        suspect_bounds=np.empty(GROUP * BLOCK, np.float32),
        hits=np.empty(most_hits, np.int64),
        bits=np.empty((GROUP // FOUR, BLOCK // STRIP), np.int64),
        tile=np.zeros(tile_shape(n_coarse, BLOCK), np.float32),
        aims=np.zeros(aims_shape(n_coarse, GROUP), np.float32),
    )
