"""Bounds of d(a∪x, b) for full covariances, by projection onto one direction, for audits.

Projected onto a direction v, d can only become smaller. On a line a∪x has a weight N₁, a mean m and
a variance V, and with N = N₁ + n_b, q = N₁n_b/N²·(m − t_b)²,

    d ≥ ½[N log((N₁V + n_b·σ_b²)/N + q) − N₁ log V − n_b log σ_b²].

This grows with N₁ and q. As a function of V it falls up to V* = σ_b² + (N/n_b)·q, where it is
½n_b log(V*/σ_b²), and grows from there. So with the smallest N₁, q and V that x allows, the bound
is its value at the larger of V and V*. The covariance of x need not be known: with s the share of x
in a∪x and u the step from a to x along v,

    V = (1−s)σ_a² + sσ_x² + s(1−s)u²,        m − t_a = s·u,

which is concave in s, and so is smallest at one end of a range of s.
"""

from __future__ import annotations

from fastrbhc._engine.geometry.contract import ROUNDING
from fastrbhc._engine.geometry.covariance_cache import LARGEST_EIGENVALUE
from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.fast_log import LOG_OFF, quick_log
from fastrbhc._engine.simd import LANES


@kernel
def slot_violation(ridge, clusters, d, a, b, x, cutoff, direction):
    """A lower bound of the larger of d(a∪x, b) and d(b∪x, a), or any value above the cutoff."""
    share = clusters.weights[a] / (clusters.weights[a] + clusters.weights[b])
    place, size = 0.0, 0.0
    for k in range(d):
        mean_a, mean_b, mean = clusters.means[k, a], clusters.means[k, b], clusters.means[k, x]
        direction[k] = mean - (mean_b + share * (mean_a - mean_b))
        place += direction[k] * mean
        size += abs(direction[k]) * (abs(mean) + abs(mean_a) + abs(mean_b))
    variance = _variance(ridge, clusters, d, x, direction, -1.0)
    weight = clusters.weights[x]
    return _violation(
        ridge, clusters, d, a, b, direction, weight, weight, place, place, variance, size, cutoff
    )


@kernel
def box_violation(ridge, clusters, d, a, b, boxes, node, heaviest, cutoff, direction):
    """The same for all x in a box, in the direction of the nearest point of the box."""
    group, lane = node // LANES, node % LANES
    share = clusters.weights[a] / (clusters.weights[a] + clusters.weights[b])
    low, high, size, length = 0.0, 0.0, 0.0, 0.0
    for k in range(d):
        mean_a, mean_b = clusters.means[k, a], clusters.means[k, b]
        left, right = boxes[group, 2 * k, lane], boxes[group, 2 * k + 1, lane]
        mean = mean_b + share * (mean_a - mean_b)
        step = min(max(mean, left), right) - mean
        direction[k] = step
        length += step * step
        low += step * (left if step > 0.0 else right)
        high += step * (right if step > 0.0 else left)
        size += abs(step) * (abs(mean_a) + abs(mean_b) + max(abs(left), abs(right)))
    if length == 0.0:
        return 0.0
    lightest = boxes[group, 2 * d, lane]
    return _violation(
        ridge,
        clusters,
        d,
        a,
        b,
        direction,
        lightest,
        heaviest,
        low,
        high,
        ridge * length,
        size,
        cutoff,
    )


@kernel
def _violation(
    ridge, clusters, d, a, b, direction, lightest, heaviest, low, high, variance, size, cutoff
):
    """The larger bound of both sides, with x between low and high along the direction."""
    place_a, place_b = 0.0, 0.0
    for k in range(d):
        place_a += direction[k] * clusters.means[k, a]
        place_b += direction[k] * clusters.means[k, b]
    n_a, n_b, slack = clusters.weights[a], clusters.weights[b], 1e-14 * size
    bound = towards_bound(
        n_a, place_a, _variance(ridge, clusters, d, a, direction, -1.0),
        n_b, place_b, _variance(ridge, clusters, d, b, direction, 1.0),
        lightest, heaviest, low, high, variance, slack, cutoff,
    )  # fmt: skip
    if bound > cutoff:
        return bound
    other = towards_bound(
        n_b, place_b, _variance(ridge, clusters, d, b, direction, -1.0),
        n_a, place_a, _variance(ridge, clusters, d, a, direction, 1.0),
        lightest, heaviest, low, high, variance, slack, cutoff,
    )  # fmt: skip
    return max(bound, other)


@kernel
def towards_bound(
    n_a, place_a, variance_a, n_b, place_b, variance_b, lightest, heaviest, low, high, variance,
    slack, cutoff,
):  # fmt: skip
    """Lower bound of d(a∪x, b) along a direction; see the top of this module."""
    least, most = lightest / (n_a + lightest), heaviest / (n_a + heaviest)
    low, high, step = low - place_a, high - place_a, place_b - place_a
    shortest = max(max(low, -high) - slack, 0.0)
    gap = max(
        low * (most if low < 0.0 else least) - step, step - high * (most if high > 0.0 else least)
    )
    gap = max(gap - slack, 0.0)
    union = (1.0 - least) * (variance_a + least * shortest * shortest) + least * variance
    union = min(union, (1.0 - most) * (variance_a + most * shortest * shortest) + most * variance)
    weight = n_a + lightest
    total = weight + n_b
    turning = variance_b + weight / total * gap * gap
    # log y ≤ y − 1 shows without a logarithm that the bound will not reach the cutoff.
    if 0.5 * n_b * (max(turning, union) / variance_b - 1.0) <= cutoff:
        return 0.0
    if union <= turning:
        return 0.5 * ROUNDING * n_b * (quick_log(turning / variance_b) - LOG_OFF)
    everything = (weight * union + n_b * turning) / total
    logs = total * (quick_log(everything / union) - LOG_OFF)
    return 0.5 * ROUNDING * (logs + n_b * (quick_log(union / variance_b) - LOG_OFF))


@kernel
def _variance(ridge, clusters, d, i, direction, sign):
    """The variance of slot i along a direction, rounded up or down."""
    total, length, entry = 0.0, 0.0, 0
    for k in range(d):
        row = 0.0
        for m in range(k):
            row += clusters.scatter[i, entry + m] * direction[m]
        total += direction[k] * (2.0 * row + clusters.scatter[i, entry + k] * direction[k])
        length += direction[k] * direction[k]
        entry += k + 1
    rounding = sign * 1e-13 * clusters.cached[i, d + LARGEST_EIGENVALUE]
    return max(total / clusters.weights[i] + rounding * length, 0.0) + ridge * length
