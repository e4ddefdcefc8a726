"""The share of 1 − y in the bounds of `sparse_entropy`, for φ = y log y + (1 − y) log(1 − y).

With c = 1 − o, the *ceiling*, 1 − y is c − s/n, and n·Σ ψ(1 − y) over all columns of a cluster is

    Q(n) = Σ q(s, n·c),        q(s, u) = (u − s)·log(1 − s/u) + s,

summed over its entries, plus multiples of n and of its total. So d of φ is d_ψ + d′ with

    d′(a, b) = Q_a(n_a) + Q_b(n_b) − Q_a(n) − Q_b(n) − Σ Δ′,        n = n_a + n_b,
    Δ′ = q(s_a + s_b, u) − q(s_a, u) − q(s_b, u),        u = n·c,

where the last sum is over the columns that both have. Δ′ is the integral of 1/(u − x − y) over x
from 0 to s_a and y from 0 to s_b. It grows with either s and falls with n.

The series q = Σ sᵏ/(k(k − 1)·uᵏ⁻¹) over k ≥ 2 has positive terms. Its first two make the terms
A/n and B/n² of Q, and the rest, times n³, falls with n. So

    Q(n) ≤ A/n + B/n² + C/n³,        C = n₀³·Q(n₀) − A·n₀² − B·n₀,

for n ≥ n₀. The bound is close with n₀ the cluster's own weight, and twice that for larger n.
"""

from __future__ import annotations

from fastrbhc._engine.clusters.segments import next_entries
from fastrbhc._engine.geometry.sparse_entropy import (
    ENTRIES,
    N_FEATURES,
    TANGENTS,
    TINY,
    cost_and_slope,
    lowest_tangent,
)
from fastrbhc._engine.jit import kernel, loose_kernel
from fastrbhc._engine.math.fast_log import LOG_OFF, ROUGH_LOG_OFF, quick_log, rough_logs
from fastrbhc._engine.simd import LANES, larger, load, store

# Smoothings of proportions are large, and two further tangents of G make the bounds much closer.
_FURTHER_KNOTS = (1.25, 3.5)

# Rows of ``scan_features`` behind those of `sparse_entropy`: Q at the cluster's own weight w, A/w,
# B/w² and the two C/w³; then the further tangents.
COMPLEMENT_COST, _SQUARES, _CUBES, _REST, _REST_FROM_2 = range(N_FEATURES, N_FEATURES + 5)
_FURTHER = N_FEATURES + 5
N_MORE_FEATURES = 9

# Errors beside n·c: of Q for each entry, and of Δ′ for each column that two clusters share.
_COST_OFF, _OVERLAP_OFF = 8.0 * LOG_OFF, 4.0 * ROUGH_LOG_OFF


@kernel
def put_complement_costs(clusters, i, scale, offset, ceiling):
    """Fill in the further scan features of slot i."""
    features, u = clusters.scan_features, clusters.weights[i] * ceiling
    cost, squares, cubes = _cost_and_powers(clusters.segments, i, scale, u)
    at_2 = _cost_and_powers(clusters.segments, i, scale, 2.0 * u)[0]
    features[COMPLEMENT_COST, i], features[_SQUARES, i], features[_CUBES, i] = cost, squares, cubes
    features[_REST, i] = cost - squares - cubes
    features[_REST_FROM_2, i] = 8.0 * at_2 - 4.0 * squares - 2.0 * cubes
    for k in range(2):
        shift = clusters.weights[i] * _FURTHER_KNOTS[k] * offset
        cost, slope, _ = cost_and_slope(clusters.segments, i, scale, shift)
        features[_FURTHER + 2 * k, i] = cost - slope * shift
        features[_FURTHER + 2 * k + 1, i] = slope * offset


@loose_kernel
def _cost_and_powers(segments, i, scale, u):
    """Q, Σ s²/(2u) and Σ s³/(6u²), where n·c is u."""
    log_u, total, squares, cubes = quick_log(u), 0.0, 0.0, 0.0
    for p in range(segments.places[i, 0], segments.places[i, 1]):
        s = scale * segments.sums[p]
        left = max(u - s, TINY)
        total += left * (quick_log(left) - log_u) + s
        square = s * (s / u)
        squares += square
        cubes += square * (s / u)
    return total, 0.5 * squares, cubes / 6.0


@loose_kernel
def subtract_complement_costs(clusters, i, start, stop, ceiling, overlaps):
    """Subtract bounds of d′ from Σ Δ of slot i and the slots of a run; Σ Δ′ has been added."""
    features, weight = clusters.scan_features, clusters.weights[i]
    weights, numbers = clusters.weights[start:stop], features[ENTRIES, start:stop]
    costs, squares = features[COMPLEMENT_COST, start:stop], features[_SQUARES, start:stop]
    cubes, rests = features[_CUBES, start:stop], features[_REST, start:stop]
    rests_from_2 = features[_REST_FROM_2, start:stop]
    cost, own = features[COMPLEMENT_COST, i], features[ENTRIES, i]
    own_squares, own_cubes = features[_SQUARES, i], features[_CUBES, i]
    own_rest, own_rest_from_2 = features[_REST, i], features[_REST_FROM_2, i]
    for s in range(stop - start):
        n = weight + weights[s]
        x, y = weight / n, weights[s] / n
        mine = own_rest if x > 0.5 else own_rest_from_2
        other = rests[s] if y > 0.5 else rests_from_2[s]
        joint = x * (own_squares + x * (own_cubes + x * mine))
        joint += y * (squares[s] + y * (cubes[s] + y * other))
        value = cost + costs[s] - joint
        fewer = own if own < numbers[s] else numbers[s]
        off = _COST_OFF * (own + numbers[s]) + _OVERLAP_OFF * fewer
        overlaps[s] -= value - off * (n * ceiling)
    lower_by_further_tangents(clusters, i, start, stop, overlaps)


@loose_kernel
def lower_by_further_tangents(clusters, i, start, stop, overlaps):
    """Add to Σ Δ by how much two more tangents bring down the bounds of G, at most 0."""
    features, weight, t = clusters.scan_features, clusters.weights[i], TANGENTS
    weights = clusters.weights[start:stop]
    at0, slope0 = features[t, start:stop], features[t + 1, start:stop]
    at1, slope1 = features[t + 2, start:stop], features[t + 3, start:stop]
    at2, slope2 = features[t + 4, start:stop], features[t + 5, start:stop]
    at3, slope3 = features[t + 6, start:stop], features[t + 7, start:stop]
    at4, slope4 = features[_FURTHER, start:stop], features[_FURTHER + 1, start:stop]
    at5, slope5 = features[_FURTHER + 2, start:stop], features[_FURTHER + 3, start:stop]
    own0, rise0, own1, rise1 = (
        features[t, i],
        features[t + 1, i],
        features[t + 2, i],
        features[t + 3, i],
    )
    own2, rise2, own3, rise3 = (
        features[t + 4, i],
        features[t + 5, i],
        features[t + 6, i],
        features[t + 7, i],
    )
    own4, rise4 = features[_FURTHER, i], features[_FURTHER + 1, i]
    own5, rise5 = features[_FURTHER + 2, i], features[_FURTHER + 3, i]
    for s in range(stop - start):
        n = weight + weights[s]
        mine = lowest_tangent(n, own0, rise0, own1, rise1, own2, rise2, own3, rise3)
        other = lowest_tangent(
            n, at0[s], slope0[s], at1[s], slope1[s], at2[s], slope2[s], at3[s], slope3[s]
        )
        further, another = own4 + n * rise4 - mine, own5 + n * rise5 - mine
        further = further if further < another else another
        overlaps[s] += further if further < 0.0 else 0.0
        further, another = at4[s] + n * slope4[s] - other, at5[s] + n * slope5[s] - other
        further = further if further < another else another
        overlaps[s] += further if further < 0.0 else 0.0


@kernel
def add_complements(own, scale, others, ceilings, out, size):
    """Add Δ′ to Δ of a query whose s is ``own`` with other clusters that have the column.

    The first row of ``others`` has their sums. The ceilings are n·c of each union. All arrays have
    room for a multiple of eight.
    """
    for e in range(size, -(-size // LANES) * LANES):
        ceilings[e] = 1.0
    for e in range(0, size, LANES):
        u = load(ceilings, (e,))
        # Sums that were rounded up may leave less than nothing.
        theirs = larger(u - load(others, (0, e)) * scale, own)
        mine, both = larger(u - own, TINY), larger(theirs - own, TINY)
        theirs = larger(theirs, TINY)
        gain = both * rough_logs(both) + u * rough_logs(u)
        gain = gain - (mine * rough_logs(mine) + theirs * rough_logs(theirs))
        store(out[e:], load(out, (e,)) + gain)


@kernel
def add_complements_at(own, scale, others, ceiling, out, size):
    """The same with the smallest ceiling for all, as Δ′ falls with n: half as many logarithms."""
    mine = max(ceiling - own, TINY)
    constant = ceiling * quick_log(ceiling) - mine * quick_log(mine)
    for e in range(0, size, LANES):
        theirs = larger(ceiling - load(others, (0, e)) * scale, own)
        both = larger(theirs - own, TINY)
        theirs = larger(theirs, TINY)
        gain = both * rough_logs(both) - theirs * rough_logs(theirs) + constant
        store(out[e:], load(out, (e,)) + gain)


@loose_kernel
def complement_with_spread(clusters, i, j, scale, ceiling, scratch):
    """Σ Δ′ of slot i, which is spread out, and slot j."""
    segments, row, weights = clusters.segments, scratch.spread[0], clusters.weights
    u = (weights[i] + weights[j]) * ceiling
    nothing, result = u * quick_log(u), 0.0
    for p in range(segments.places[j, 0], segments.places[j, 1]):
        own = row[segments.columns[p]]
        if own > 0.0:
            other = scale * segments.sums[p]
            mine, theirs = max(u - own, TINY), max(u - other, TINY)
            both = max(u - own - other, TINY)
            result += (both * quick_log(both) + nothing) - (
                mine * quick_log(mine) + theirs * quick_log(theirs)
            )
    return result


@kernel
def complement_by_walk(clusters, i, j, scale, ceiling):
    """A lower bound of d′ of one pair, without knots."""
    features, weights, segments = clusters.scan_features, clusters.weights, clusters.segments
    columns, sums, places = segments.columns, segments.sums, segments.places
    p, p_end, q, q_end = places[i, 0], places[i, 1], places[j, 0], places[j, 1]
    u = (weights[i] + weights[j]) * ceiling
    log_u, joint, count = quick_log(u), 0.0, 0
    while p < p_end or q < q_end:
        p, q, left, right = next_entries(columns, p, p_end, q, q_end)
        s = 0.0
        if left >= 0:
            s += scale * sums[left]
        if right >= 0:
            s += scale * sums[right]
        rest = max(u - s, TINY)
        joint += rest * (quick_log(rest) - log_u) + s
        count += 1
    parts = features[COMPLEMENT_COST, i] + features[COMPLEMENT_COST, j]
    return parts - joint - 2.0 * _COST_OFF * count * u
