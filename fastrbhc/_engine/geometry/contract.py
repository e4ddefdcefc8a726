"""What a geometry is asked for: the dissimilarity between two clusters, and lower bounds of it.

For a cluster c of weight n and mean statistic t let f(c) = n·φ(t). The dissimilarity is
(paper, eq. bhc_dis_star)

    d(a, b) = f(a) + f(b) − f(a∪b) = n_a·B_φ(t_a, t) + n_b·B_φ(t_b, t),

t being the mean of the union. The right-hand form, a sum of terms that are not negative,
is the one evaluated: the left one is a small difference of large numbers.

A *geometry* is what a family becomes once the number of columns is known: a record whose methods
run inside kernels. They fall into four contracts, by who asks:

- everybody: ``dissimilarity``, ``merge``, ``refresh``, ``add_row``, ``storage``,
  ``scratch_shapes`` (in `clusters.scratch`), ``for_clusters``;
- scans (`neighbors.brute`): ``lower_bounds``, ``candidate_slots``, ``prepare_queries``,
  ``candidate_pairs``, ``with_mirror``;
- the kd-tree: ``leaf_values`` (which the greedy algorithm asks for too) and ``box_bounds``;
- audits of reducibility: ``violation_bounds`` and ``box_violation_bound``;

and ``curvature`` and ``put_covariances`` are for `taylor_dissimilarity`. A geometry has to have
``dissimilarity`` and ``merge``, and ``add_row`` if it stores scatter. All other methods have a
default. The default of a bound is 0: the tree is the same, to the bit, but every pair is looked at.

A geometry may have the field ``columns``. It is a tuple with one entry per column where kernels are
to know their number, and an empty one where they are to serve for any number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import Clusters
from fastrbhc._engine.clusters.scratch import BLOCK
from fastrbhc._engine.clusters.scratch import ScratchShapes as ScratchShapes
from fastrbhc._engine.jit import (
    contract,
    contract_with_default,
    inlined_contract_with_default,
    inlined_kernel,
    kernel,
    length,
    python_contract,
)
from fastrbhc._engine.simd import LANES, at_most, broadcast, load, lowest_set_bit, store

# Covers the rounding of a bound and of the value it bounds, for millions of columns;
# it lets through one pair in a billion that the exact bound would have stopped.
ROUNDING = 1.0 - 1e-9

# Up to so many columns the kd-tree is quicker than scanning, if the points are not very few. Time
# by the kd-tree over time by scanning, 20,000 standard normal rows, Ward: 0.3 with 6 columns, 0.8
# with 8, 2.4 with 10. With more rows, or with clusters in them, the kd-tree gains.
FEW_COLUMNS = 8


# Weights of slots and boxes that hold anything are at most this.
FINITE = 1.7e308


class Storage(NamedTuple):
    """What clusters store beside weights and means; returned by ``storage``."""

    scatter: int = 0  # numbers per cluster
    cached: int = 0  # numbers per cluster
    scan_features: int = 0  # numbers per cluster, for bounds of many slots at a time
    mirrored: bool = False  # whether scans use the means in single precision
    by_cluster: bool = False  # whether scans read the mirror only, and means one cluster at a time
    principal: bool = False  # whether points had better lie along their principal axes
    box_features: tuple[int, ...] = ()  # columns of ``cached`` whose range a box has to know
    points_alike: bool = False  # whether what is cached of a point is the same for all points


# For everybody.


@python_contract
def storage(geometry: Any, n_features: int) -> Storage:
    """What clusters store for a geometry; by default only weights and means."""
    return Storage()


@python_contract
def for_clusters(geometry: Any, clusters: Clusters) -> Any:
    """The geometry that makes use of what these clusters have; by default the same one."""
    return geometry


def with_columns(geometry: Any, columns: tuple[int, ...]) -> Any:
    """The geometry whose kernels know the number of columns, if it has the field for that."""
    return geometry._replace(columns=columns) if hasattr(geometry, "columns") else geometry


@contract
def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
    """d of slots i and j: the same bits for (j, i), never negative.

    Where d ≥ cutoff any value that is not below the cutoff may be returned, so that hopeless pairs
    are given up early.
    """


@contract
def merge(geometry, clusters, i, j, scratch):
    """Put the union of slots i and j into slot i, with all that is cached, and free slot j."""


@contract_with_default
def refresh(geometry, clusters, i, scratch):
    """Complete slot i, whose weight, mean and scatter are those of the rows that it holds.

    What is cached is computed from them. By default nothing is.
    """


@contract_with_default
def add_row(geometry, clusters, i, weight, values, residuals, scratch):
    """Add a row with a weight to the scatter of slot i, whose mean is known already.

    The values of the row have further digits in the residuals. By default there is no scatter.
    """


@python_contract
def put_covariances(
    geometry: Any, clusters: Clusters, slots: NDArray[np.int64], covariances: NDArray[np.float64]
) -> None:
    """Give slots the scatter that belongs to their weights and these covariances, or variances.

    What is cached stays as it was: for slots that no dissimilarity is asked of.
    """
    raise TypeError(f"clusters of {type(geometry).__name__} have no covariance")


@contract
def curvature(geometry, clusters, i, j, centre, scratch):
    """δᵀφ″δ, the same bits for (j, i).

    δ is the difference of the mean statistics of slots i and j, and φ″ the second derivative of the
    smoothed φ at the mean statistic of the slot ``centre``.
    """


# For scans.


@python_contract
def with_mirror(geometry: Any, clusters: Clusters) -> Clusters:
    """The clusters with their mirror filled in, if ``storage`` asks for one."""
    return clusters


@contract_with_default
def lower_bounds(geometry, clusters, i, start, stop, scratch):
    """Fill scratch.bounds[:stop−start] with lower bounds of d from slot i to slots start…stop−1.

    They are not above what ``dissimilarity`` returns. NaN for free slots. By default 0.
    """
    for s in range(stop - start):
        scratch.bounds[s] = 0.0 * clusters.weights[start + s]


@contract_with_default
def candidate_slots(geometry, clusters, i, start, stop, cutoff, scratch):
    """Find those of the slots start…stop−1 whose d from slot i may be at most the cutoff.

    They are written to scratch.slots, lower bounds of d to scratch.bounds; returns how many there
    are. By default the bounds of all are computed and compared.
    """
    return candidates_by_bounds(geometry, clusters, i, start, stop, cutoff, scratch)


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


@contract_with_default
def prepare_queries(geometry, clusters, queue, first, last, scratch):
    """Get ready for ``candidate_pairs`` of the queries queue[first:last]; by default nothing."""


@contract_with_default
def candidate_pairs(geometry, clusters, queue, first, last, start, stop, cutoffs, scratch):
    """Find the pairs of a query queue[first:last] and a slot start…stop−1 that may be near.

    Each query has the cutoff that stands at its slot; there are at most GROUP of them. The pair of
    the q-th query and the s-th slot is written as q·BLOCK + s to scratch.pairs, with a lower bound
    in scratch.pair_bounds; returns how many there are.

    By default one query after the other. The most promising slot of each comes first, so that the
    others may be given up after it.
    """
    count = 0
    for q in range(first, last):
        i = np.int64(queue[q])
        more = candidate_slots(geometry, clusters, i, start, stop, cutoffs[i], scratch)
        least, smallest = 0, np.inf
        for c in range(more):
            if scratch.bounds[c] < smallest and scratch.slots[c] != i:
                least, smallest = c, scratch.bounds[c]
        for c in range(more):
            other = least if c == 0 else 0 if c == least else c
            scratch.pairs[count + c] = (q - first) * BLOCK + scratch.slots[other] - start
            scratch.pair_bounds[count + c] = _rounded_down(scratch.bounds[other])
        count += more
    return count


# For the kd-tree.


@inlined_contract_with_default
def leaf_values(geometry, clusters, i, start, cutoff, scratch):
    """Find the slots of the leaf that begins at start with d ≤ cutoff from slot i.

    Returns them as bits, and writes those d to their places in scratch.bounds; elsewhere anything
    may stand. By default all eight are evaluated.
    """
    taken = at_most(load(clusters.weights, (start,)), FINITE)
    return values_of_near(geometry, clusters, i, start, cutoff, taken, scratch)


@inlined_contract_with_default
def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
    """Bound d from slot i to whatever the boxes of the eight nodes of a group hold.

    Returns those with bounds of at most the cutoff as bits; the bounds go to scratch.bounds. A box
    holds clusters with means within the low and high of each column, with at least its smallest
    weight, and with features within their low and high. It has these numbers in this order, those
    of node 8g + s at boxes[g, :, s]. The weight of an empty box is infinite, and its bit is not
    set. By default the bounds are 0.
    """
    store(scratch.bounds, broadcast(0.0))
    return at_most(load(boxes, (group, 2 * clusters.means.shape[0], 0)), FINITE)


# For audits of reducibility.


@contract_with_default
def violation_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
    """Bound the larger one of d(a∪x, b) and d(b∪x, a) for every x in the slots start…stop−1.

    The lower bounds go to scratch.bounds; NaN for free slots. Where that exceeds the cutoff
    anything above the cutoff will do. See `fastrbhc.reducibility.audit` for what it is good for.
    By default they are 0.
    """
    for s in range(stop - start):
        scratch.bounds[s] = 0.0 * clusters.weights[start + s]


@contract_with_default
def box_violation_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
    """The same for all x that a box may hold, none of which weighs more than the heaviest.

    NaN for an empty box.
    """
    return 0.0 * boxes[node // LANES, 2 * clusters.means.shape[0], node % LANES]


@inlined_kernel
def n_features(geometry, clusters):
    """How many columns there are, as a constant where the geometry knows it."""
    return length(geometry.columns, clusters.means.shape[0])


@inlined_kernel
def values_of_near(geometry, clusters, i, start, cutoff, near, scratch):
    """The values of a leaf where its bounds, as bits, are near; which values are, as bits."""
    left = near
    while left:
        s = lowest_set_bit(left)
        left &= left - 1
        value = np.nan
        if start + s != i:
            value = dissimilarity(geometry, clusters, i, start + s, cutoff, scratch)
        scratch.bounds[s] = value
        if not value <= cutoff:
            near -= 1 << s
    return near


@kernel
def _rounded_down(bound):
    """In single precision, never above what it was, as far as that goes: no d is so negative."""
    return np.float32(max(min(bound - 1e-6 * abs(bound), 3e38), -3e38) - 1e-37)
