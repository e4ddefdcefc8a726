"""The contract of a geometry: the dissimilarity of two clusters, and lower bounds of it.

For a cluster c of weight n and mean statistic t let f(c) = n·φ(t). The dissimilarity is
(paper, section 3.1)

    d(a, b) = f(a) + f(b) − f(a∪b) = n_a·B_φ(t_a, t) + n_b·B_φ(t_b, t),

where t is the mean of the union. The right-hand form is the one evaluated, a sum of terms that are
not negative. The left-hand form is a small difference of large numbers.

A *geometry* belongs to a family and a number of columns. It is a record whose methods run inside
kernels. They form four contracts, by caller:

- all callers: ``dissimilarity``, ``merge``, ``refresh``, ``add_row``, ``storage``,
  ``scratch_shapes`` (in `clusters.scratch`), ``for_clusters``;
- scans (`neighbors.brute`): ``lower_bounds``, ``candidate_slots``, ``prepare_queries``,
  ``candidate_pairs``, ``with_mirror``, ``block_coordinates``, ``block_bounds``;
- the kd-tree: ``leaf_values`` (which the greedy algorithm calls too) and ``box_bounds``;
- audits of reducibility: ``violation_bounds`` and ``box_violation_bound``.

``curvature`` and ``put_covariances`` are for `taylor_dissimilarity`. A geometry has to define
``dissimilarity`` and ``merge``, and ``add_row`` if it stores scatter; ``curvature`` is needed for
Taylor values only. All other methods have a default. The default of a bound is 0: the tree is the
same, to the bit, but every pair is evaluated.

A geometry may have the field ``columns``, a tuple. With one entry per column, kernels know the
number of columns when they are compiled. If it is empty, one kernel serves any number of columns.
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

# Covers the rounding of a bound and of the value it bounds, for millions of columns. About one pair
# in a billion passes that the exact bound would have rejected.
ROUNDING = 1.0 - 1e-9

# Up to this many columns the kd-tree is faster than scanning, unless there are very few points.
# Ratio of the two times, 20,000 standard normal rows, Ward: 0.3 with 6 columns, 0.8 with 8, 2.4
# with 10. Scans see clusters too, in blocks: 50,000 × 16 in 50 blobs took 1.4 s on the kd-tree, and
# 0.5 s by blocks, processor time on one thread. So the number of columns decides.
FEW_COLUMNS = 8

# Kernels that know the number of columns are compiled for each number, which pays from this many
# points on.
WORTH_COMPILING = 5_000

# All bits, for `candidate_pairs`.
ALL_WANTED = -1

# Weights of occupied slots and boxes are at most this.
FINITE = 1.7e308


class Storage(NamedTuple):
    """The storage of clusters in addition to weights and means; returned by ``storage``."""

    scatter: int = 0  # numbers per cluster
    cached: int = 0  # numbers per cluster
    scan_features: int = 0  # numbers per cluster, for bounds of many slots at a time
    mirrored: bool = False  # whether scans use the means in single precision
    by_cluster: bool = False  # whether scans read the mirror only, and means one cluster at a time
    principal: bool = False  # whether to rotate points to their principal axes
    box_features: tuple[int, ...] = ()  # columns of ``cached`` whose range boxes store
    points_alike: bool = False  # whether all points have the same cached values
    sparse_columns: int = 0  # of rows that are sparse; scan features are used by leaves too then


# For all callers.


@python_contract
def storage(geometry: Any, n_features: int) -> Storage:
    """The storage that a geometry needs; by default only weights and means."""
    return Storage()


@python_contract
def for_clusters(geometry: Any, clusters: Clusters) -> Any:
    """A geometry that uses the mirror of these clusters, if any; by default the same one."""
    return geometry


@python_contract
def blocks_of(geometry: Any, n_features: int) -> tuple[tuple[Any, int], ...]:
    """Geometries of blocks of columns, with their numbers of columns, if d is a sum over blocks."""
    return ()


@python_contract
def block_factors(geometry: Any) -> tuple[float, ...]:
    """The factors of these blocks in d."""
    return ()


def box_rows(geometry: Any, n_features: int) -> int:
    """How many numbers a box has: see ``box_bounds``."""
    blocks = blocks_of(geometry, n_features)
    if blocks:
        return sum(box_rows(block, columns) for block, columns in blocks)
    return 2 * n_features + 1 + 2 * len(storage(geometry, n_features).box_features)


@python_contract
def column_widths(geometry: Any, clusters: Clusters) -> NDArray[np.float64]:
    """Factors that make columns of several blocks comparable, for the splits of the kd-tree.

    By default the columns become equally wide.
    """
    spreads = np.array([np.nanstd(column) for column in clusters.means])
    return 1.0 / np.where(spreads > 0.0, spreads, 1.0)


@python_contract
def usual_backend(geometry: Any, n_features: int) -> str | None:
    """The backend that "auto" stands for, if the number of columns does not decide."""
    return None


@python_contract
def separate_columns(geometry: Any, start: int, stop: int, factor: float) -> Any:
    """The columns in these rows of ``means`` if all have weights of their own: see `strangers`.

    A list of blocks; None if there are others, as by default.
    """
    return None


@python_contract
def with_columns(geometry: Any, columns: tuple[int, ...]) -> Any:
    """The geometry with this field ``columns``; by default unchanged if it has no such field."""
    return geometry._replace(columns=columns) if hasattr(geometry, "columns") else geometry


@contract
def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
    """d of slots i and j: the same bits for (j, i), never negative.

    If d is above the cutoff, any value above the cutoff may be returned, so that distant pairs are
    abandoned early.
    """


@contract
def merge(geometry, clusters, i, j, scratch):
    """Put the union of slots i and j into slot i, with its cached values, and free slot j."""


@contract_with_default
def refresh(geometry, clusters, i, scratch):
    """Complete slot i, whose weight, mean and scatter are set: fill in its cached values.

    By default there are none.
    """


@contract_with_default
def add_row(geometry, clusters, i, weight, values, residuals, scratch):
    """Add a row with a weight to the scatter of slot i, whose mean is known already.

    The residuals are further digits of the values. By default there is no scatter.
    """


@python_contract
def put_covariances(
    geometry: Any, clusters: Clusters, slots: NDArray[np.int64], covariances: NDArray[np.float64]
) -> None:
    """Set the scatter of slots from their weights and the given covariances, or variances.

    Cached values are not updated: these slots cannot be used for dissimilarities.
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

    They are not above the value of ``dissimilarity``. NaN for free slots. By default 0.
    """
    for s in range(stop - start):
        scratch.bounds[s] = 0.0 * clusters.weights[start + s]


@contract_with_default
def candidate_slots(geometry, clusters, i, start, stop, cutoff, scratch):
    """Find the slots among start…stop−1 whose d from slot i may be at most the cutoff.

    The slots are written to scratch.slots, and lower bounds of d to scratch.bounds. Returns their
    number. By default all bounds are computed and compared with the cutoff.
    """
    return candidates_by_bounds(geometry, clusters, i, start, stop, cutoff, scratch)


@kernel
def candidates_by_bounds(geometry, clusters, i, start, stop, cutoff, scratch):
    """The candidates for geometries with no faster test than their bounds."""
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
    """Prepare the queries queue[first:last] for ``candidate_pairs``; by default do nothing."""


@contract_with_default
def candidate_pairs(geometry, clusters, queue, first, last, wanted, start, stop, cutoffs, scratch):
    """Find the pairs of a query queue[first:last] and a slot start…stop−1 that may be near.

    There are at most GROUP queries; bit q of ``wanted`` is set if pairs of the q-th are wanted. The
    cutoff of a query is at its slot in ``cutoffs``. The pair of the q-th query and the s-th slot is
    written to scratch.pairs as q·BLOCK + s, with a lower bound in scratch.pair_bounds. Returns the
    number of pairs.

    By default queries are processed one by one. The slot with the smallest bound comes first: its d
    often rejects the others.
    """
    count = 0
    for q in range(first, last):
        if not (wanted >> (q - first)) & 1:
            continue
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


@python_contract
def block_coordinates(geometry: Any, clusters: Clusters) -> NDArray[Any]:
    """The coordinates of slots that boxes around runs of slots are made of.

    An array of the clusters, of a row per coordinate. By default the means.
    """
    return clusters.means


@inlined_contract_with_default
def block_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
    """The same as ``box_bounds`` for boxes of these coordinates; by default it is that."""
    return box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch)


# For the kd-tree.


@inlined_contract_with_default
def leaf_values(geometry, clusters, i, start, cutoff, scratch):
    """Find the slots with d ≤ cutoff from slot i, in the leaf that begins at slot ``start``.

    Returns a bit mask of them, and writes their d to scratch.bounds by position; other entries are
    undefined. By default all eight are evaluated.
    """
    taken = at_most(load(clusters.weights, (start,)), FINITE)
    return values_of_near(geometry, clusters, i, start, cutoff, taken, scratch)


@inlined_contract_with_default
def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
    """Bound d from slot i to all clusters in each of the eight boxes of a group.

    Returns a bit mask of the boxes with bounds of at most the cutoff, and writes the bounds to
    scratch.bounds. A box contains clusters with means between the low and high of each column, with
    at least its smallest weight, and with features between their low and high. Its numbers are in
    this order; those of node 8g + s are boxes[g, :, s]. The weight of an empty box is infinite, and
    its bit is not set. By default the bounds are 0.
    """
    store(scratch.bounds, broadcast(0.0))
    return at_most(load(boxes, (group, 2 * clusters.means.shape[0], 0)), FINITE)


# For audits of reducibility.


@contract_with_default
def violation_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
    """Bound the larger of d(a∪x, b) and d(b∪x, a) for every x in the slots start…stop−1.

    The lower bounds are written to scratch.bounds; NaN for free slots. If the larger one exceeds
    the cutoff, any value above the cutoff may be written. `fastrbhc.reducibility.audit` explains
    the purpose. By default the bounds are 0.
    """
    for s in range(stop - start):
        scratch.bounds[s] = 0.0 * clusters.weights[start + s]


@contract_with_default
def box_violation_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
    """The same for all x in a box, whose weights are at most ``heaviest``.

    NaN for an empty box.
    """
    return 0.0 * boxes[node // LANES, 2 * clusters.means.shape[0], node % LANES]


@inlined_kernel
def n_features(geometry, clusters):
    """The number of columns, as a constant if the geometry knows it."""
    return length(geometry.columns, clusters.means.shape[0])


@inlined_kernel
def values_of_near(geometry, clusters, i, start, cutoff, near, scratch):
    """Evaluate the slots of a leaf in the bit mask ``near``; the mask of those up to the cutoff."""
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
    """A bound in single precision, not above the given one; no d is below −3e38."""
    return np.float32(max(min(bound - 1e-6 * abs(bound), 3e38), -3e38) - 1e-37)
