"""A close lower bound of d for sparse counts: one logarithm for each entry of one cluster.

With s the sums of a cluster times the scale of the smoothing, o its offset, and ψ(y) = y log y as in
`sketches`, let

    T(s, n) = (s + n·o)·log(s + n·o),        G(n) = Σ (T(s, n) − T(0, n)),

the sum over the entries of the cluster. Written out, n·Σ ψ(s/n + o) over all columns is
G(n) − s̄·log n plus a multiple of n, where s̄ = Σ s, so that

    d_ψ(a, b) = g_a + g_b − (G_ab(n) − (s̄_a + s̄_b)·log n),        g = G(n) − s̄·log n,

with n = n_a + n_b in the last term. Columns in which both are zero are not needed. Over the entries
of b,

    G_ab(n) = G_a(n) + Σ (T(s_a + s_b, n) − T(s_a, n)).

If a is spread out over a dense scratch row, this takes the entries of b alone. G_a(n) is a function of
one variable, increasing and concave in n, because the second derivative of T(s, n) − T(0, n) is
o²/(s + n·o) − o/n < 0. It is tabulated as needed at n = 2^(k/4), with its slope, and the lower of two
tangents bounds it from above. If b has many more entries than a, the entries of a are looked up in b,
and the tangent at n_b bounds G_b(n).

d_ψ is a difference of larger terms, and `quick_log` is off by up to 10⁻⁹; a margin covers both. d
itself is evaluated, as a sum of divergences, only where this bound does not rule out a pair.
"""

from __future__ import annotations

import math

from fastrbhc._engine.clusters.scratch import BLOCK
from fastrbhc._engine.clusters.segments import n_entries
from fastrbhc._engine.jit import kernel, loose_kernel
from fastrbhc._engine.math.fast_log import LOG_OFF, quick_log

# Knots per doubling of n, and how many are kept for a query: a factor of 2³².
_PER_DOUBLING = 4
N_KNOTS = 128

# Entries of the scratch row are this where a query has none, instead of 0·log 0.
_TINY = 1e-300

# The cached values of a slot.
COST, TOTAL, SLOPE, N_CACHED = 0, 1, 2, 3

# If the other cluster has this many times more entries, those of the query are looked up in it.
_MANY_TIMES = 8


@kernel
def put_costs(clusters, i, scale, offset):
    """Fill in the cached values of slot i: g, s̄ and the slope of G at its own weight."""
    weight = clusters.weights[i]
    cost, slope, total = _cost_and_slope(clusters.segments, i, scale, weight * offset)
    clusters.cached[i, COST] = cost - total * math.log(weight)
    clusters.cached[i, TOTAL] = total
    clusters.cached[i, SLOPE] = slope * offset


@loose_kernel
def _cost_and_slope(segments, i, scale, shift):
    """Σ T(s, n) − T(0, n), Σ log(1 + s/(n·o)) and Σ s, where n·o is the shift."""
    shift = max(shift, _TINY)
    log_shift = quick_log(shift)
    total, cost, slope = 0.0, 0.0, 0.0
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        s = scale * segments.sums[p]
        log = quick_log(s + shift)
        cost += (s + shift) * log - shift * log_shift
        slope += log - log_shift
        total += s
    return cost, slope, total


@kernel
def spread(clusters, i, scale, scratch):
    """Spread slot i out over the scratch row."""
    segments, row = clusters.segments, scratch.lanes[0]
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        row[segments.columns[p]] = scale * segments.sums[p]


@kernel
def gather_up(clusters, i, scratch):
    """Set the scratch row to zero again."""
    segments, row = clusters.segments, scratch.lanes[0]
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        row[segments.columns[p]] = 0.0


@kernel
def forget_knots(scratch, count):
    """Empty the tables of the first queries."""
    for q in range(count):
        for k in range(2 * N_KNOTS):
            scratch.matrix[q, k] = math.nan


@kernel
def entropy_bound(clusters, q, i, j, scale, offset, scratch):
    """A lower bound of d_ψ of slots i and j, where slot i is query q and has been spread out."""
    segments, cached, weights = clusters.segments, clusters.cached, clusters.weights
    n = weights[i] + weights[j]
    shift = max(n * offset, _TINY)
    total = cached[i, TOTAL] + cached[j, TOTAL]
    own, others = n_entries(segments, i), n_entries(segments, j)
    if others > _MANY_TIMES * own:
        # The tangent at n_j.
        joint = cached[j, COST] + cached[j, TOTAL] * math.log(weights[j])
        joint += weights[i] * cached[j, SLOPE] + _joint_by_search(segments, i, j, scale, shift)
    else:
        joint = _tabulated_cost(clusters, q, i, n, scale, offset, scratch)
        joint += _joint(segments, j, scale, shift, scratch.lanes[0], scratch.other_bounds)
    value = cached[i, COST] + cached[j, COST] - joint + total * math.log(n)
    size = total + (own + others) * shift
    terms = abs(cached[i, COST]) + abs(cached[j, COST]) + abs(joint)
    return value - 4.0 * LOG_OFF * size - 1e-12 * terms


@kernel
def pair_bound_by_walk(clusters, i, j, scale, offset):
    """The same for a pair without a scratch row."""
    cached, weights = clusters.cached, clusters.weights
    n = weights[i] + weights[j]
    shift = max(n * offset, _TINY)
    total = cached[i, TOTAL] + cached[j, TOTAL]
    joint, count = _walk(clusters.segments, i, j, scale, shift)
    value = cached[i, COST] + cached[j, COST] - joint + total * math.log(n)
    terms = abs(cached[i, COST]) + abs(cached[j, COST]) + abs(joint)
    return value - 4.0 * LOG_OFF * (total + count * shift) - 1e-12 * terms


@loose_kernel
def _joint(segments, j, scale, shift, row, values):
    """Σ T(s_i + s_j, n) − T(s_i, n) over the entries of slot j, with s_i in the scratch row."""
    start, stop = segments.places[j, 0], segments.places[j, 1]
    result = 0.0
    for first in range(start, stop, BLOCK):
        size = min(BLOCK, stop - first)
        # Apart from the arithmetic, which is vectorised.
        columns, sums = segments.columns[first : first + size], segments.sums[first : first + size]
        for e in range(size):
            values[e] = row[columns[e]]
        for e in range(size):
            before = values[e] + shift
            after = before + scale * sums[e]
            result += after * quick_log(after) - before * quick_log(before)
    return result


@kernel
def _joint_by_search(segments, i, j, scale, shift):
    """Σ T(s_i + s_j, n) − T(s_j, n) over the entries of slot i, looked up in those of slot j."""
    columns, sums = segments.columns, segments.sums
    low, stop = segments.places[j, 0], segments.places[j, 1]
    result = 0.0
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        column, high = columns[p], stop
        while low < high:
            middle = (low + high) >> 1
            if columns[middle] < column:
                low = middle + 1
            else:
                high = middle
        before = shift
        if low < stop and columns[low] == column:
            before += scale * sums[low]
        after = before + scale * sums[p]
        result += after * quick_log(after) - before * quick_log(before)
    return result


@kernel
def _walk(segments, i, j, scale, shift):
    """Σ T(s_i + s_j, n) − T(0, n) over the entries of both, and their number."""
    columns, sums, places = segments.columns, segments.sums, segments.places
    p, p_end, q, q_end = places[i, 0], places[i, 1], places[j, 0], places[j, 1]
    result, count, nothing = 0.0, 0, shift * quick_log(shift)
    while p < p_end or q < q_end:
        value = shift
        left = q >= q_end or (p < p_end and columns[p] <= columns[q])
        right = p >= p_end or (q < q_end and columns[q] <= columns[p])
        if left:
            value += scale * sums[p]
            p += 1
        if right:
            value += scale * sums[q]
            q += 1
        result += value * quick_log(value) - nothing
        count += 1
    return result, count


@kernel
def _tabulated_cost(clusters, q, i, n, scale, offset, scratch):
    """An upper bound of G_i(n), from the tangents at the knots on either side of n."""
    place = math.floor(_PER_DOUBLING * math.log2(n))
    first = math.floor(_PER_DOUBLING * math.log2(clusters.weights[i]))
    if place - first > N_KNOTS - 2:
        return math.inf
    lower = _tangent(clusters, q, i, place, first, n, scale, offset, scratch)
    return min(lower, _tangent(clusters, q, i, place + 1, first, n, scale, offset, scratch))


@kernel
def _tangent(clusters, q, i, place, first, n, scale, offset, scratch):
    """The tangent of G_i at a knot, evaluated at n."""
    table, entry = scratch.matrix[q], 2 * (place - first)
    knot = 2.0 ** (place / _PER_DOUBLING)
    if math.isnan(table[entry]):
        cost, slope, total = _cost_and_slope(clusters.segments, i, scale, knot * offset)
        table[entry], table[entry + 1] = cost, slope * offset
    return table[entry] + (n - knot) * table[entry + 1]
