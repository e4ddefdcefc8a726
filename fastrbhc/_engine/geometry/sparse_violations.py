"""Bounds of d(a∪x, b) for sparse clusters, for audits; the notation is that of `sparse_entropy`.

Let m = n_a + n_x, N = n_a + n_b + n_x and s_c = s_a + s_b. From the definition of d_ψ,

    d_ψ(a∪x, b) = G_a(m) − (s̄_a + s̄_x)·log m + g_b − G_ab(N) + (s̄_a + s̄_b + s̄_x)·log N + Σ Δ,
    Δ = T(s_a + s_x, m) − T(s_a, m) − T(s_c + s_x, N) + T(s_c, N),

where the last sum is over the entries of x, whatever a and b have: their sums are spread out over
two dense rows. The three G depend on x only by its weight. They are tabulated at some weights, once
for all x. G is concave, so between two of them it is above the chord and below the tangents.

With the share of 1 − y (`sparse_complement`), Q_a(m) + Q_b(n_b) − Q_ab(N) and a sum of the same
kind are added. Q is convex, so it is below the chord and above the tangents.
"""

from __future__ import annotations

import math

import numpy as np

from fastrbhc._engine.geometry.contract import ROUNDING
from fastrbhc._engine.geometry.sparse_complement import COMPLEMENT_COST
from fastrbhc._engine.geometry.sparse_entropy import COST, ENTRIES, TINY, TOTAL
from fastrbhc._engine.jit import kernel, loose_kernel
from fastrbhc._engine.math.fast_log import LOG_OFF, quick_log

# The most weights in a table, and by how much they differ if there are fewer.
_MOST_KNOTS, _STEP = 32, 0.005

# Numbers of a knot: the weight, G and its slope, Q and its slope.
_FIELDS = 5

# The error of all terms beside the sums and shifts that they are made of.
_OFF = 32.0 * LOG_OFF


@kernel
def range_of_weights(clusters, start, stop):
    """The smallest and the largest weight of a run of slots; infinity and 0 if all are free."""
    lightest, heaviest = np.inf, 0.0
    for s in range(start, stop):
        weight = clusters.weights[s]
        lightest = weight if weight < lightest else lightest
        heaviest = weight if weight > heaviest else heaviest
    return lightest, heaviest


@kernel
def begin_violations(geometry, clusters, a, b, lightest, heaviest, scratch):
    """Spread out a and b and fill the tables for x of these weights; the number of knots."""
    segments = clusters.segments
    for row, i in ((0, a), (1, b)):
        for p in range(segments.places[i, 0], segments.places[i, 1]):
            scratch.spread[row, segments.columns[p]] = geometry.scale * segments.sums[p]
    w0, w1 = clusters.weights[a], clusters.weights[b]
    # The table of the lighter one has the widest range.
    widest = math.log((min(w0, w1) + heaviest) / (min(w0, w1) + lightest))
    most = 2 + np.int64(min(widest / _STEP, _MOST_KNOTS - 2.0))
    for table, base in ((0, w0), (1, w1), (2, w0 + w1)):
        first, last = base + lightest, (base + heaviest) * (1.0 + 1e-6)
        ratio = (last / first) ** (1.0 / (most - 1))
        for k in range(most):
            knot = first * ratio**k if k < most - 1 else last
            _put_knot(geometry, clusters, a, b, table, knot, scratch.matrix[table], k, scratch)
    return most


@kernel
def end_violations(clusters, a, b, scratch):
    """Set the rows to zero again."""
    segments = clusters.segments
    for row, i in ((0, a), (1, b)):
        for p in range(segments.places[i, 0], segments.places[i, 1]):
            scratch.spread[row, segments.columns[p]] = 0.0


@kernel
def _put_knot(geometry, clusters, a, b, table, knot, values, k, scratch):
    """G and Q of a, of b or of both, at a weight."""
    place = _FIELDS * k
    values[place] = knot
    for field in range(1, _FIELDS):
        values[place + field] = 0.0
    if table != 1:
        _add_costs(geometry, clusters, a, 1, table == 2, False, knot, values, place, scratch)
    if table != 0:
        _add_costs(geometry, clusters, b, 0, table == 2, table == 2, knot, values, place, scratch)


@loose_kernel
def _add_costs(geometry, clusters, i, row, both, new_only, knot, values, place, scratch):
    """Add G, Q and slopes over the entries of slot i, with what the other row has if ``both``.

    With ``new_only``, entries that the other row has too have been counted.
    """
    segments, others = clusters.segments, scratch.spread[row]
    scale, ceiling = geometry.scale, geometry.ceiling
    v, u = max(knot * geometry.offset, TINY), knot * ceiling
    log_v, log_u = quick_log(v), quick_log(max(u, TINY))
    cost, slope, complement, fall = 0.0, 0.0, 0.0, 0.0
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        other = others[segments.columns[p]] if both else 0.0
        counted = 0.0 if new_only and other > 0.0 else 1.0
        s = scale * segments.sums[p] + other
        log = quick_log(s + v)
        cost += counted * ((s + v) * log - v * log_v)
        slope += counted * (log - log_v)
        if ceiling > 0.0:
            left = max(u - s, TINY)
            log = quick_log(left) - log_u
            complement += counted * (left * log + s)
            fall += counted * (log + s / u)
    values[place + 1] += cost
    values[place + 2] += slope * geometry.offset
    values[place + 3] += complement
    values[place + 4] += fall * ceiling


@kernel
def violation_bound(geometry, clusters, a, b, x, height, knots, scratch):
    """A lower bound of the larger of d(a∪x, b) and d(b∪x, a), or any value above the height."""
    if geometry.entropy_share == 0.0:
        return 0.0
    # The lighter one changes more.
    lighter = 0 if clusters.weights[a] < clusters.weights[b] else 1
    best = 0.0
    for turn in range(2):
        row = lighter if turn == 0 else 1 - lighter
        own, other = (a, b) if row == 0 else (b, a)
        value = _towards(geometry, clusters, own, other, row, x, knots, scratch)
        best = value if value > best else best  # not NaN, if terms overflow
        if best > height:
            break
    return best


@kernel
def _towards(geometry, clusters, own, other, row, x, knots, scratch):
    """A lower bound of d(own∪x, other), where the own sums are in a row of the scratch."""
    features, weights = clusters.scan_features, clusters.weights
    m = weights[own] + weights[x]
    n = weights[own] + weights[other] + weights[x]
    mine, both = scratch.matrix[row], scratch.matrix[2]
    i, j = _interval(mine, m, knots), _interval(both, n, knots)
    total = features[TOTAL, own] + features[TOTAL, x]
    everything = total + features[TOTAL, other]
    part = _chord(mine, i, 1, m)
    joint = min(_tangent(both, j, 1, n), _tangent(both, j + 1, 1, n))
    value = part - total * math.log(m) + features[COST, other] - joint + everything * math.log(n)
    terms = abs(part) + abs(features[COST, other]) + abs(joint)
    shift = geometry.offset
    if geometry.ceiling > 0.0:
        part = _tangent(mine, i + 1, 3, m)
        joint = _chord(both, j, 3, n)
        value += part + features[COMPLEMENT_COST, other] - joint
        terms += abs(part) + abs(joint)
        shift += geometry.ceiling
    value += _changes(geometry, clusters, x, row, m, n, scratch)
    entries = features[ENTRIES, own] + features[ENTRIES, other] + features[ENTRIES, x]
    value -= _OFF * (everything + entries * (n * shift)) + 1e-12 * terms
    return value * (geometry.entropy_share * ROUNDING)


@loose_kernel
def _changes(geometry, clusters, x, row, m, n, scratch):
    """The sum over the entries of x; see the top of this module."""
    segments, scale = clusters.segments, geometry.scale
    mine, others = scratch.spread[row], scratch.spread[1 - row]
    v, u = max(m * geometry.offset, TINY), max(n * geometry.offset, TINY)
    start, stop = segments.places[x, 0], segments.places[x, 1]
    result = 0.0
    for p in range(start, stop):
        k, s = segments.columns[p], scale * segments.sums[p]
        own, both = mine[k] + v, mine[k] + others[k] + u
        result += (own + s) * quick_log(own + s) - own * quick_log(own)
        result -= (both + s) * quick_log(both + s) - both * quick_log(both)
    if geometry.ceiling > 0.0:
        v, u = m * geometry.ceiling, n * geometry.ceiling
        log_v, log_u = quick_log(v), quick_log(u)
        for p in range(start, stop):
            k, s = segments.columns[p], scale * segments.sums[p]
            own, both = v - mine[k], u - mine[k] - others[k]
            less, least = max(own - s, TINY), max(both - s, TINY)
            own, both = max(own, TINY), max(both, TINY)
            result += less * (quick_log(less) - log_v) - own * (quick_log(own) - log_v)
            result -= least * (quick_log(least) - log_u) - both * (quick_log(both) - log_u)
    return result


@kernel
def _interval(values, n, knots):
    """The last knot but one, or the last that is not above n."""
    low, high = 0, knots - 1
    while high - low > 1:
        middle = (low + high) // 2
        if values[_FIELDS * middle] <= n:
            low = middle
        else:
            high = middle
    return low


@kernel
def _chord(values, k, field, n):
    """The chord between a knot and the next at n."""
    here, there = _FIELDS * k, _FIELDS * (k + 1)
    share = (n - values[here]) / (values[there] - values[here])
    return values[here + field] + share * (values[there + field] - values[here + field])


@kernel
def _tangent(values, k, field, n):
    """The tangent at a knot at n."""
    return values[_FIELDS * k + field] + values[_FIELDS * k + field + 1] * (n - values[_FIELDS * k])
