"""Close lower bounds of d for sparse counts, whose cost is that of the columns two clusters share.

Let ψ(y) = y log y. For φ = ψ up to linear terms d is d_ψ, and if φ − c·ψ is convex it is at least
c·d_ψ. With s the sums of a cluster times the scale of the smoothing, o its offset, s̄ = Σ s, and

    T(s, n) = (s + n·o)·log(s + n·o),        G(n) = Σ (T(s, n) − T(0, n)),

summed over the entries of a cluster, n·Σ ψ(s/n + o) over all columns is G(n) − s̄·log n plus a
multiple of n. So columns in which both are zero are not needed, and with n = n_a + n_b

    d_ψ(a, b) = g_a + g_b − (G_ab(n) − (s̄_a + s̄_b)·log n),        g = G(n) − s̄·log n,
    G_ab(n) = G_a(n) + G_b(n) + Σ Δ,
    Δ = T(s_a + s_b, n) − T(s_a, n) − T(s_b, n) + T(0, n),

where the last sum is over the columns that both have. All but that sum depends on a few numbers of
each cluster. G(n) is concave in n, because the second derivative of T(s, n) − T(0, n) is o²/(s +
n·o) − o/n < 0, and the lowest of a few tangents bounds it from above.

d_ψ is a difference of larger terms, and logarithms are off a little; a margin covers both. d
itself is a sum of divergences, evaluated only where these bounds do not rule out a pair.
"""

from __future__ import annotations

import math

import numpy as np

from fastrbhc._engine.clusters.segments import next_entries
from fastrbhc._engine.jit import inlined_kernel, kernel, loose_kernel
from fastrbhc._engine.math.fast_log import LOG_OFF, ROUGH_LOG_OFF, quick_log, rough_logs
from fastrbhc._engine.simd import LANES, load, store

# Instead of 0 in u·log u.
TINY = 1e-300

# The tangents of G are at these multiples of a cluster's own weight. Two clusters of equal weight
# have a union at 2, a large cluster and a small one about 1.
_KNOTS = (1.0, 2.0, 6.0, 30.0)
N_KNOTS = len(_KNOTS)

# The error of g, G and Σ Δ beside the sums and shifts that they are made of.
_OVERLAPS_OFF = 4.0 * ROUGH_LOG_OFF + 16.0 * LOG_OFF

# Rows of ``scan_features``: g, s̄, the number of entries; then values at 0 and slopes of tangents.
COST, TOTAL, ENTRIES, TANGENTS = 0, 1, 2, 3
N_FEATURES = TANGENTS + 2 * N_KNOTS


@kernel
def put_costs(clusters, i, scale, offset):
    """Fill in the scan features of slot i."""
    features, segments, weight = clusters.scan_features, clusters.segments, clusters.weights[i]
    cost, slope, total = cost_and_slope(segments, i, scale, weight * offset)
    features[COST, i] = cost - total * math.log(weight)
    features[TOTAL, i] = total
    features[ENTRIES, i] = segments.places[i, 1] - segments.places[i, 0]
    for k in range(N_KNOTS):
        knot = weight * _KNOTS[k]
        cost, slope, total = cost_and_slope(segments, i, scale, knot * offset)
        features[TANGENTS + 2 * k, i] = cost - slope * (knot * offset)
        features[TANGENTS + 2 * k + 1, i] = slope * offset


@loose_kernel
def cost_and_slope(segments, i, scale, shift):
    """G(n), Σ log(1 + s/(n·o)) and s̄, where n·o is the shift."""
    shift = max(shift, TINY)
    log_shift = quick_log(shift)
    total, cost, slope = 0.0, 0.0, 0.0
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        s = scale * segments.sums[p]
        log = quick_log(s + shift)
        cost += (s + shift) * log - shift * log_shift
        slope += log - log_shift
        total += s
    return cost, slope, total


@inlined_kernel
def lowest_tangent(n, at0, slope0, at1, slope1, at2, slope2, at3, slope3):
    """The lowest of four tangents at n."""
    first, second = at0 + n * slope0, at1 + n * slope1
    third, fourth = at2 + n * slope2, at3 + n * slope3
    first = first if first < second else second
    third = third if third < fourth else fourth
    return first if first < third else third


@loose_kernel
def bounds_from_overlaps(clusters, i, start, stop, offset, overlaps):
    """Replace Σ Δ of slot i and the slots of a run by lower bounds of d_ψ; NaN if free."""
    features, weight = clusters.scan_features, clusters.weights[i]
    weights, costs = clusters.weights[start:stop], features[COST, start:stop]
    totals, entries = features[TOTAL, start:stop], features[ENTRIES, start:stop]
    cost, total, own = features[COST, i], features[TOTAL, i], features[ENTRIES, i]
    at0, slope0 = features[TANGENTS, start:stop], features[TANGENTS + 1, start:stop]
    at1, slope1 = features[TANGENTS + 2, start:stop], features[TANGENTS + 3, start:stop]
    at2, slope2 = features[TANGENTS + 4, start:stop], features[TANGENTS + 5, start:stop]
    at3, slope3 = features[TANGENTS + 6, start:stop], features[TANGENTS + 7, start:stop]
    own0, rise0 = features[TANGENTS, i], features[TANGENTS + 1, i]
    own1, rise1 = features[TANGENTS + 2, i], features[TANGENTS + 3, i]
    own2, rise2 = features[TANGENTS + 4, i], features[TANGENTS + 5, i]
    own3, rise3 = features[TANGENTS + 6, i], features[TANGENTS + 7, i]
    for s in range(stop - start):
        n = weight + weights[s]
        joint = lowest_tangent(n, own0, rise0, own1, rise1, own2, rise2, own3, rise3)
        joint += lowest_tangent(
            n, at0[s], slope0[s], at1[s], slope1[s], at2[s], slope2[s], at3[s], slope3[s]
        )
        joint += overlaps[s]
        both = total + totals[s]
        value = cost + costs[s] - joint + both * quick_log(n)
        size = both + (own + entries[s]) * n * offset
        terms = abs(cost) + abs(costs[s]) + abs(joint)
        overlaps[s] = value - _OVERLAPS_OFF * size - 1e-12 * terms


@loose_kernel
def put_shifts(weight, weights, offset, scratch):
    """n·o of the unions with a run of slots, and T(0, n), into rows 2 and 3 of scratch.matrix."""
    shifts, nothing = scratch.matrix[2], scratch.matrix[3]
    for s in range(weights.size):
        u = (weight + weights[s]) * offset
        u = u if u > TINY else TINY
        shifts[s], nothing[s] = u, u * quick_log(u)


@kernel
def gather_shifts(slots, start, scratch):
    """The same for some of the slots, into rows 4 and 5."""
    for e in range(slots.size):
        s = np.uint64(slots[e] - start)
        scratch.matrix[4, e], scratch.matrix[5, e] = scratch.matrix[2, s], scratch.matrix[3, s]
    for e in range(slots.size, -(-slots.size // LANES) * LANES):
        scratch.matrix[4, e], scratch.matrix[5, e] = 1.0, 0.0


@kernel
def overlaps(own, linear, shift, scale, others, scratch, out, size):
    """Δ of a query whose s is ``own`` with other clusters that have the column.

    The rows of ``others`` are their sums and log(s + n·o) at their own weights, rounded down; n·o
    and T(0, n) of the unions are those of `gather_shifts`. Δ grows with either s, so that sums
    rounded up give upper bounds. If ``linear``, T(s, n) of the others is replaced by its tangent at
    their own weights, which is below it; ``shift`` is the query's part of n·o. All arrays have room
    for a multiple of eight; most runs are short.
    """
    for e in range(0, size, LANES):
        u = load(scratch.matrix, (4, e))
        theirs = u + load(others, (0, e)) * scale
        mine, both = u + own, theirs + own
        gain = both * rough_logs(both) - mine * rough_logs(mine) + load(scratch.matrix, (5, e))
        if linear:
            gain = gain - (theirs * load(others, (1, e)) + shift)
        else:
            gain = gain - theirs * rough_logs(theirs)
        store(out[e:], gain)


@kernel
def overlaps_at(own, linear, shift, scale, others, u, out, size):
    """The same with the smallest shift u for all, as Δ falls with n: half as many logarithms."""
    constant = u * quick_log(u) - (own + u) * quick_log(own + u)
    for e in range(0, size, LANES):
        theirs = load(others, (0, e)) * scale + u
        both = theirs + own
        gain = both * rough_logs(both) + constant
        if linear:
            gain = gain - (theirs * load(others, (1, e)) + shift)
        else:
            gain = gain - theirs * rough_logs(theirs)
        store(out[e:], gain)


@kernel
def bound_by_walk(clusters, i, j, scale, offset):
    """A lower bound of d_ψ of one pair, without tangents."""
    features, weights = clusters.scan_features, clusters.weights
    n = weights[i] + weights[j]
    shift = max(n * offset, TINY)
    total = features[TOTAL, i] + features[TOTAL, j]
    joint, count = _walk(clusters.segments, i, j, scale, shift)
    value = features[COST, i] + features[COST, j] - joint + total * math.log(n)
    terms = abs(features[COST, i]) + abs(features[COST, j]) + abs(joint)
    return value - 16.0 * LOG_OFF * (total + count * shift) - 1e-12 * terms


@kernel
def _walk(segments, i, j, scale, shift):
    """Σ T(s_i + s_j, n) − T(0, n) over the entries of both, and their number."""
    columns, sums, places = segments.columns, segments.sums, segments.places
    p, p_end, q, q_end = places[i, 0], places[i, 1], places[j, 0], places[j, 1]
    result, count, nothing = 0.0, 0, shift * quick_log(shift)
    while p < p_end or q < q_end:
        p, q, left, right = next_entries(columns, p, p_end, q, q_end)
        value = shift
        if left >= 0:
            value += scale * sums[left]
        if right >= 0:
            value += scale * sums[right]
        result += value * quick_log(value) - nothing
        count += 1
    return result, count


@kernel
def spread(clusters, i, scale, scratch):
    """Spread slot i out over the scratch row."""
    segments, row = clusters.segments, scratch.spread[0]
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        row[segments.columns[p]] = scale * segments.sums[p]


@kernel
def gather_up(clusters, i, scratch):
    """Set the scratch row to zero again."""
    segments, row = clusters.segments, scratch.spread[0]
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        row[segments.columns[p]] = 0.0


@kernel
def overlap_with_spread(clusters, i, j, scale, offset, scratch):
    """Σ Δ of slot i, which is spread out, and slot j; Δ as `overlaps` has it."""
    segments, row, weights = clusters.segments, scratch.spread[0], clusters.weights
    mine, theirs = scratch.matrix[1], scratch.matrix[2]
    u = max((weights[i] + weights[j]) * offset, TINY)
    result, room = 0.0, mine.size - LANES
    for start in range(segments.places[j, 0], segments.places[j, 1], room):
        count = 0
        for p in range(start, min(start + room, segments.places[j, 1])):
            own = row[segments.columns[p]]
            mine[count], theirs[count] = own, scale * segments.sums[p]
            count += own > 0.0
        result += _sum_of_overlaps(mine, theirs, u, count)
    return result


@kernel
def _sum_of_overlaps(mine, theirs, u, count):
    """Σ Δ of two lists of s, which have room for a multiple of eight."""
    total = 0.0
    for e in range(count, -(-count // LANES) * LANES):
        mine[e], theirs[e] = 1.0, 1.0
    nothing = u * quick_log(u)
    for e in range(0, count, LANES):
        own, other = load(mine, (e,)) + u, load(theirs, (e,)) + u
        both = own + (other - u)
        gain = both * rough_logs(both) + nothing
        store(mine[e:], gain - (own * rough_logs(own) + other * rough_logs(other)))
    for e in range(count):
        total += mine[e]
    return total
