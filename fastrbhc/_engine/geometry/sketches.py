"""Lower bounds of d from a few numbers per cluster, for families of counts in sparse columns.

Let ψ(y) = y log y, let y₀ and y₁ be the values of a column, smoothed, and m their mean under the
weights n₀ and n₁. One column of d is J = n₀·B(y₀, m) + n₁·B(y₁, m) with B(y, m) = y log(y/m) − y + m,
if φ = ψ up to linear terms, and at least that if φ − ψ is convex.

**Columns added up.** J is convex and homogeneous in (n₀y₀, n₁y₁, n₀, n₁), so by the log-sum
inequality the J of sums over a group of columns, offsets included, is at most the sum of their J.

**Roots.** As −log z ≥ 1 − z, y log(y/m) = −2y log √(m/y) ≥ 2y − 2√(ym), so that
B(y, m) ≥ (√y − √m)². The smallest value of n₀(√y₀ − z)² + n₁(√y₁ − z)² over all z is
n₀n₁/(n₀+n₁)·(√y₀ − √y₁)². So J is at least that: Ward's cost of the roots.

A *sketch* is the vector of the roots of the group sums. Ward's cost of two sketches is a lower bound
of d, and `float32_screen` finds the few pairs below a cutoff at a nanosecond per pair. Sketches are
kept in the mirror of the clusters, divided by the largest root of all, which unions never exceed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.clusters.scratch import BLOCK
from fastrbhc._engine.geometry.contract import ROUNDING
from fastrbhc._engine.geometry.float32_means import mirror_distances, mirror_scale
from fastrbhc._engine.geometry.float32_screen import pack_block, screen, set_limit
from fastrbhc._engine.jit import fused_kernel, kernel

# More groups than this have no room in the scratch memory.
MOST_GROUPS = BLOCK


def groups_of_columns(n_columns: int, n_groups: int) -> NDArray[np.int16]:
    """A group for each column: by chance, but always the same, and all groups equally large."""
    places = np.random.default_rng(n_columns).permutation(n_columns)
    return (places % n_groups).astype(np.int16)


@kernel
def put_sketch(clusters, i, scale, offset, scratch):
    """Compute the sketch of slot i from its entries."""
    segments, mirror, sums = clusters.segments, clusters.mirror, scratch.bounds
    n_groups = mirror.values.shape[0]
    if n_groups == 0:
        return
    for g in range(n_groups):
        sums[g] = 0.0
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        sums[segments.groups[segments.columns[p]]] += segments.sums[p]
    factor = scale / clusters.weights[i]
    for g in range(n_groups):
        value = factor * sums[g] + offset * segments.group_sizes[g]
        mirror.values[g, i] = math.sqrt(value) / mirror.radius


@kernel
def sketch_bounds(clusters, i, start, stop, share, scratch):
    """Fill scratch.bounds with lower bounds of d from slot i to a run of slots; NaN if free.

    ``share`` is the c of a φ for which φ − c·ψ is convex.
    """
    bounds, distances = scratch.bounds, scratch.sums
    weight, weights = clusters.weights[i], clusters.weights[start:stop]
    if clusters.mirror.values.shape[0] == 0:
        for s in range(stop - start):
            bounds[s] = 0.0 * weights[s]
        return
    factor, slack = mirror_distances(clusters, i, start, stop, distances)
    for s in range(stop - start):
        bounds[s] = (
            (distances[s] * factor - slack)
            * (weight * weights[s] / (weight + weights[s]))
            * (share * ROUNDING)
        )


@kernel
def screen_sketches(clusters, queue, first, last, start, stop, cutoffs, share, scratch):
    """scratch.bits of the pairs whose sketches do not rule out a d of at most the cutoff."""
    per_cutoff, slack = mirror_scale(clusters, share)
    for q in range(first, last):
        cutoff = cutoffs[np.int64(queue[q])] + 1e-290 * (1.0 + share)
        set_limit(scratch.query_block, q - first, cutoff * per_cutoff, slack)
    pack_block(clusters.mirror.values, clusters.weights, start, stop, scratch.packed_block)
    screen(scratch.packed_block, stop - start, scratch.query_block, last - first, scratch.bits)


@fused_kernel
def towards_sketch_bounds(clusters, a, b, start, stop, share, scratch, bounds):
    """Lower bounds of d(a∪x, b) for the slots x of a run; NaN for free slots.

    The root of a group of a∪x is √(s·v_a² + (1−s)·v_x²), where v are roots and s the share of a in
    the weight. As a norm of (v_a, v_x) it moves by no more than these do, so it is off by at most
    2⁻²⁴ and the rounding of a few operations, together less than 2⁻²¹. With e = 2⁻²⁰√G for the
    difference of two such vectors, (l − e)² ≥ (1−θ)l² − e²/θ, as in `mirror_distances`.
    """
    size, values, sums = stop - start, clusters.mirror.values, scratch.sums
    n_a, n_b, weights = clusters.weights[a], clusters.weights[b], clusters.weights[start:stop]
    shares = scratch.float32_shares[0]
    for s in range(size):
        sums[s] = np.float32(0.0)
        shares[s] = np.float32(n_a / (n_a + weights[s]))
    for g in range(values.shape[0]):
        root_a, root_b = values[g, a], values[g, b]
        roots = values[g, start:stop]
        for s in range(size):
            square = roots[s] * roots[s]
            step = np.float32(math.sqrt(square + shares[s] * (root_a * root_a - square))) - root_b
            sums[s] += step * step
    radius = clusters.mirror.radius
    theta = 1e-3 + values.shape[0] * 2.0**-22
    slack = values.shape[0] * 2.0**-40 / theta
    for s in range(size):
        joined = n_a + weights[s]
        distance = ((1.0 - theta) * sums[s] - slack) * radius * radius
        bounds[s] = distance * (joined * n_b / (joined + n_b)) * (share * ROUNDING)
