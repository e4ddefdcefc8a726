"""The geometry of families that sum one function of one variable over the columns.

See `separable_columns` for one column of d and its bounds, and `separable_float32` for scans of
many columns.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.record import LEAF_SIZE, Clusters, difference, merge_means
from fastrbhc._engine.geometry.contract import (
    FINITE,
    ROUNDING,
    Storage,
    n_features,
    values_of_near,
)
from fastrbhc._engine.geometry.separable_columns import (
    divergence,
    pair_bound,
    second_derivative,
    unknown_variance,
    variance_function,
)
from fastrbhc._engine.geometry.separable_float32 import (
    HIGH,
    LOW,
    mirror_bounds,
    mirror_candidates,
)
from fastrbhc._engine.geometry.ward import Ward
from fastrbhc._engine.jit import inlined_kernel, kernel
from fastrbhc._engine.records import replaced
from fastrbhc._engine.simd import (
    LANES,
    at_most,
    broadcast,
    is_vectorizable,
    larger,
    load,
    smaller,
    store,
)

# For user-defined families: whether the variance function accepts vectors of eight.
_VECTORIZABLE: dict[Any, bool] = {}


# Columns whose information is computed together, which costs less than one by one.
_COLUMNS_AT_A_TIME = 64


class Separable(NamedTuple):
    """d = Σⱼ n₀·B(t₀ⱼ, tⱼ) + n₁·B(t₁ⱼ, tⱼ), with B the divergence of the smoothed φ."""

    family: Any
    scale: float
    offset: float
    columns: tuple[int, ...] = ()

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        w0, w1 = clusters.weights[i], clusters.weights[j]
        share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
        total = 0.0
        for k in range(n_features(geometry, clusters)):
            mean0, mean1 = clusters.means[k, i], clusters.means[k, j]
            step = scale * difference(clusters, i, j, k)
            if step == 0.0:  # true of most columns if counts are sparse
                continue
            mean = scale * (share0 * mean0 + share1 * mean1) + offset
            value0, value1 = scale * mean0 + offset, scale * mean1 + offset
            total += w0 * divergence(family, value0, mean, -share1 * step) + w1 * divergence(
                family, value1, mean, share0 * step
            )
            if total > cutoff:  # no term is negative: the sum stays above
                break
        return total

    def curvature(geometry, clusters, i, j, centre, scratch):
        scale = geometry.scale  # inside φ, so φ″ has its square as a factor
        total = 0.0
        for k in range(n_features(geometry, clusters)):
            step = scale * difference(clusters, i, j, k)
            if step != 0.0:  # else the term is 0, even if φ″ is infinite
                mean = scale * clusters.means[k, centre] + geometry.offset
                total += second_derivative(geometry.family, mean) * step * step
        return total

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        _exact_bounds(geometry, clusters, i, start, stop, scratch)

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        near = _near(geometry, clusters, i, start, cutoff, scratch)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        family, scale, offset = geometry.family, geometry.scale, geometry.offset
        columns = n_features(geometry, clusters)
        w0, w1 = clusters.weights[i], load(boxes, (group, 2 * columns, 0))
        share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
        total = broadcast(0.0)
        for k in range(columns):
            mean0 = clusters.means[k, i]
            mean1 = larger(load(boxes, (group, 2 * k, 0)), mean0)
            mean1 = smaller(mean1, load(boxes, (group, 2 * k + 1, 0)))
            value0, value1 = scale * mean0 + offset, scale * mean1 + offset
            step = scale * (mean1 - mean0)
            total = total + pair_bound(family, value0, value1, step, share0, share1)
        return _store_bounds(total, w0, w1, cutoff, scratch)

    def violation_bounds(geometry, clusters, a, b, start, stop, cutoff, scratch):
        bounds, others = scratch.bounds, scratch.other_bounds
        _towards_bounds(geometry, clusters, a, b, start, stop, scratch, bounds)
        found = np.int64(0)
        for s in range(stop - start):
            found |= np.int64(bounds[s] <= cutoff)
        if found:
            _towards_bounds(geometry, clusters, b, a, start, stop, scratch, others)
            for s in range(stop - start):
                bounds[s] = bounds[s] if bounds[s] > others[s] else others[s]

    def box_violation_bound(geometry, clusters, a, b, boxes, node, heaviest, cutoff, scratch):
        if boxes[node // LANES, 2 * n_features(geometry, clusters), node % LANES] == np.inf:
            return np.nan
        bound = _box_towards_bound(geometry, clusters, a, b, boxes, node, heaviest)
        if bound > cutoff:
            return bound
        return max(bound, _box_towards_bound(geometry, clusters, b, a, boxes, node, heaviest))

    def merge(geometry, clusters, i, j, scratch):
        merge_means(clusters, i, j)
        mirrored, order = clusters.mirror.values, clusters.mirror.order
        for row in range(mirrored.shape[0]):
            value = geometry.scale * clusters.means[order[row], i] + geometry.offset
            mirrored[row, i] = min(max(value, LOW), HIGH)

    def with_mirror(self, clusters: Clusters) -> Clusters:
        """The clusters with their mirror, or without it if clipping hides most differences."""
        n_features, mirror = clusters.means.shape[0], clusters.mirror
        information, hidden, relative = np.zeros(n_features), 0.0, 0.0
        for first in range(0, n_features, _COLUMNS_AT_A_TIME):
            block = slice(first, first + _COLUMNS_AT_A_TIME)
            values = self.scale * clusters.means[block] + self.offset
            clipped = np.clip(values, LOW, HIGH)
            information[block] = self._column_information(clipped)
            hidden += float((self._column_information(values) - information[block]).sum())
            ends = np.fmin.reduce(clipped, axis=1), np.fmax.reduce(clipped, axis=1)
            lowest, highest = (end**2 / self._variances(end) for end in ends)
            relative += float(np.maximum(lowest, highest).sum())
        if not hidden <= information.sum():  # most information is out of range
            return replaced(clusters, mirror=replaced(mirror, values=mirror.values[:0]))
        mirror.order[:] = np.argsort(-information, kind="stable")
        for row, k in enumerate(mirror.order):
            mirror.values[row] = np.clip(self._values(clusters, k), LOW, HIGH)
        mirror.slack = 2.0**-43 * relative
        return clusters

    def _values(self, clusters: Clusters, k: int) -> NDArray[np.float64]:
        return self.scale * clusters.means[k] + self.offset

    def _column_information(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average contributions of columns to d, up to a factor; NaN if squares underflow."""
        means, spreads = np.nanmean(values, axis=1), np.nanvar(values, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(means > 0.0, spreads / self._variances(means), 0.0)

    def _variances(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """The variance function of each mean, one by one: it may be a user's, for numbers only."""
        return np.array([variance_function(self.family, mean) for mean in means], np.float64)

    def column_widths(self, clusters: Clusters) -> NDArray[np.float64]:
        """The root of φ″/2 at the mean of each column, or of what the family has instead."""
        means = self.scale * np.nanmean(clusters.means, axis=1) + self.offset
        second = type(self.family).second_derivative
        with np.errstate(all="ignore"):
            curvatures = np.array([second(self.family, mean) for mean in means])
        return self.scale * np.sqrt(np.nan_to_num(0.5 * curvatures, nan=1.0, posinf=1.0))

    def for_clusters(self, clusters: Clusters) -> Separable:
        """The geometry for scans of the mirror, if these clusters have one."""
        return MirroredSeparable(*self) if clusters.mirror.values.shape[0] else self

    def storage(self, n_features: int) -> Storage:
        mirrored = type(self.family).variance_function is not unknown_variance
        return Storage(mirrored=mirrored, by_cluster=mirrored)


class SeparableOneByOne(Separable):
    """The same for families whose bounds do not accept vectors of eight."""

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        _exact_bounds(geometry, clusters, i, start, start + LEAF_SIZE, scratch)
        near = at_most(load(scratch.bounds, (0,)), cutoff)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)

    def box_bounds(geometry, clusters, i, boxes, group, cutoff, scratch):
        for s in range(LANES):
            scratch.bounds[s] = _box_bound(geometry, clusters, i, boxes, LANES * group + s)
        return at_most(load(scratch.bounds, (0,)), cutoff)


class MirroredSeparable(Separable):
    """The same for clusters with a mirror to scan."""

    def lower_bounds(geometry, clusters, i, start, stop, scratch):
        mirror_bounds(geometry.family, clusters, i, start, stop, scratch)

    def candidate_slots(geometry, clusters, i, start, stop, cutoff, scratch):
        return mirror_candidates(geometry.family, clusters, i, start, stop, cutoff, scratch)

    def leaf_values(geometry, clusters, i, start, cutoff, scratch):
        near = 0
        stop = start + LEAF_SIZE
        count = mirror_candidates(geometry.family, clusters, i, start, stop, cutoff, scratch)
        for c in range(count):
            near |= 1 << (scratch.slots[c] - start)
        return values_of_near(geometry, clusters, i, start, cutoff, near, scratch)


def separable_geometry(family: Any, n_features: int) -> Ward | Separable:
    """The geometry of a separable family."""
    scale, offset = family.smoothing_map(n_features)
    if family.quadratic:
        # φ″/2 is the divergence of a unit step from any mean.
        return Ward(divergence(family, 1.0, 0.0, 1.0) * scale * scale)
    kind = Separable if variance_is_vectorizable(family) else SeparableOneByOne
    return kind(family, float(scale), float(offset))


def variance_is_vectorizable(family: Any) -> bool:
    """Whether bounds by the variance function accept vectors of eight."""
    cls: Any = type(family)
    if cls.variance_function is unknown_variance:
        return False
    if cls.__module__.startswith("fastrbhc.families."):
        return True  # known; the test below takes a tenth of a second
    if cls not in _VECTORIZABLE:
        _VECTORIZABLE[cls] = is_vectorizable(cls.variance_function, family)
    return _VECTORIZABLE[cls]


@kernel
def _box_bound(geometry, clusters, i, boxes, node):
    """Lower bound of d from slot i to all clusters in one box.

    d grows with either weight and along every ray from the mean of slot i, column by column: its
    minimum over the box is at that mean, clamped into the box.
    """
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    columns, group, lane = n_features(geometry, clusters), node // LANES, node % LANES
    w0, w1 = clusters.weights[i], boxes[group, 2 * columns, lane]
    if w1 == np.inf:
        return np.nan
    share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
    total = 0.0
    for k in range(columns):
        mean0 = clusters.means[k, i]
        mean1 = min(max(mean0, boxes[group, 2 * k, lane]), boxes[group, 2 * k + 1, lane])
        if mean1 != mean0:
            value0, value1 = scale * mean0 + offset, scale * mean1 + offset
            step = scale * (mean1 - mean0)
            total += pair_bound(family, value0, value1, step, share0, share1)
    return total * ((w0 + w1) * ROUNDING)


@inlined_kernel
def _near(geometry, clusters, i, start, cutoff, scratch):
    """Bit mask of the slots of a leaf with bounds of at most the cutoff."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    means, residuals = clusters.means, clusters.residuals
    w0, w1 = clusters.weights[i], load(clusters.weights, (start,))
    share0, share1 = w0 / (w0 + w1), w1 / (w0 + w1)
    total = broadcast(0.0)
    for k in range(n_features(geometry, clusters)):
        mean0, mean1 = means[k, i], load(means, (k, start))
        step = scale * ((mean1 - mean0) + (load(residuals, (k, start)) - residuals[k, i]))
        value0, value1 = scale * mean0 + offset, scale * mean1 + offset
        total = total + pair_bound(family, value0, value1, step, share0, share1)
    return _store_bounds(total, w0, w1, cutoff, scratch)


@inlined_kernel
def _store_bounds(total, w0, w1, cutoff, scratch):
    """Write eight bounds; returns a bit mask of those up to the cutoff, without free slots."""
    # NaN, for instance if a variance overflows, becomes 0, which is a bound too.
    bounds = larger(total * ((w0 + w1) * ROUNDING), 0.0)
    store(scratch.bounds, bounds)
    return at_most(bounds, cutoff) & at_most(w1, FINITE)


@kernel
def _exact_bounds(geometry, clusters, i, start, stop, scratch):
    """Lower bounds from the means in double precision."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    size = stop - start
    bounds, shares, others = scratch.bounds, scratch.shares[0], scratch.shares[1]
    weight, weights = clusters.weights[i], clusters.weights[start:stop]
    for s in range(size):
        bounds[s] = 0.0
        shares[s] = weight / (weight + weights[s])
        others[s] = weights[s] / (weight + weights[s])
    for k in range(n_features(geometry, clusters)):
        mean0, rest0 = clusters.means[k, i], clusters.residuals[k, i]
        means, rests = clusters.means[k, start:stop], clusters.residuals[k, start:stop]
        value0 = scale * mean0 + offset
        for s in range(size):
            step = scale * ((means[s] - mean0) + (rests[s] - rest0))
            value1 = scale * means[s] + offset
            bounds[s] += pair_bound(family, value0, value1, step, shares[s], others[s])
    for s in range(size):
        bounds[s] *= (weight + weights[s]) * ROUNDING


@kernel
def _towards_bounds(geometry, clusters, a, b, start, stop, scratch, bounds):
    """Lower bounds of d(a∪x, b) for the slots x of a run."""
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    shares, others = scratch.shares[0], scratch.shares[1]
    n_a, n_b, weights = clusters.weights[a], clusters.weights[b], clusters.weights[start:stop]
    for s in range(stop - start):
        bounds[s] = 0.0
        shares[s] = weights[s] / (n_a + weights[s])  # of x in a∪x
        others[s] = n_b / (n_a + weights[s] + n_b)  # of b in all three
    for k in range(n_features(geometry, clusters)):
        mean_a, mean_b = clusters.means[k, a], clusters.means[k, b]
        value_b, means = scale * mean_b + offset, clusters.means[k, start:stop]
        for s in range(stop - start):
            mean = mean_a + shares[s] * (means[s] - mean_a)
            value = scale * mean + offset
            step = shrink_by_rounding(
                scale * (mean_b - mean), scale * (abs(mean_a) + abs(means[s])), value_b
            )
            bounds[s] += pair_bound(family, value, value_b, step, 1.0 - others[s], others[s])
    for s in range(stop - start):
        bounds[s] *= (n_a + weights[s] + n_b) * ROUNDING


@kernel
def _box_towards_bound(geometry, clusters, a, b, boxes, node, heaviest):
    """Lower bound of d(a∪x, b) for all x in a box.

    The mean of a∪x is the mean of a, moved part of the way to the mean of x. That part is the share
    of x in the weight of a∪x, which is bounded above and below. So in each column the mean lies in
    an interval, and d is smallest at the mean of b clamped into it, with the smallest weight of
    a∪x.
    """
    family, scale, offset = geometry.family, geometry.scale, geometry.offset
    columns, group, lane = n_features(geometry, clusters), node // LANES, node % LANES
    n_a, n_b = clusters.weights[a], clusters.weights[b]
    lightest = boxes[group, 2 * columns, lane]
    least, most = lightest / (n_a + lightest), heaviest / (n_a + heaviest)
    weight = n_a + lightest + n_b
    share_b, total = n_b / weight, 0.0
    for k in range(columns):
        mean_a, mean_b = clusters.means[k, a], clusters.means[k, b]
        lowest, highest = boxes[group, 2 * k, lane], boxes[group, 2 * k + 1, lane]
        low, high = lowest - mean_a, highest - mean_a
        low = mean_a + low * (most if low < 0.0 else least)
        high = mean_a + high * (most if high > 0.0 else least)
        mean = min(max(mean_b, low), high)
        size = abs(mean_a) + max(abs(lowest), abs(highest))
        value, value_b = scale * mean + offset, scale * mean_b + offset
        step = shrink_by_rounding(scale * (mean_b - mean), scale * size, value_b)
        total += pair_bound(family, value, value_b, step, 1.0 - share_b, share_b)
    return total * weight * ROUNDING


@kernel
def shrink_by_rounding(step, size, value):
    """A step shortened by its rounding error, given the size of the terms it was computed from."""
    return math.copysign(max(abs(step) - 2e-15 * (size + abs(value)), 0.0), step)
