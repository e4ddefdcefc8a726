"""The dissimilarity of clusters once more, written for the fuzzer and independent of the package.

Means, sums and covariances of clusters are kept in double-double, from rows that are first scaled
by powers of two, so that nothing underflows or overflows on the way. The values come from forms in
which nothing cancels. Each comes with what it may be off by. `tests/exact.py` has the definition
itself in as many digits as one likes; it decides where these values are not certain enough.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numba import njit

from fastrbhc.families import as_family

WARD, FULL, DIAGONAL, DIRECTIONS, ENTROPY, SHARES, RATIOS = range(7)
KINDS = {
    "spherical_gaussian": WARD,
    "gaussian": FULL,
    "diagonal_gaussian": DIAGONAL,
    "von_mises_fisher": DIRECTIONS,
    "poisson": ENTROPY,
    "multinomial": ENTROPY,
    "bernoulli": SHARES,
    "exponential": RATIOS,
}

# A value and a minimum may be off by this share of it.
TOLERANCE = 1e-9

# Double-double has 106 bits; several operations follow one another, in the package as well.
_MEAN_OFF = 2.0**-96
_VALUE_OFF = 1e-13
SMALLEST = 1e-300  # a d over the weight of the union below which digits are lost
_LIFT = 500  # exponent of the unit of most statistics: far from both ends of the range

# 1/3, 1/5, … for the logarithm, as double-double.
_ODD = [Fraction(1, 2 * k + 1) for k in range(26)]
_ODD_HIGH = np.array([float(x) for x in _ODD])
_ODD_LOW = np.array([float(x - Fraction(float(x))) for x in _ODD])
_LN2 = (0.6931471805599453, 2.3190468138462996e-17)


class State(NamedTuple):
    """The clusters of a replay, one slot each, and what d depends on besides."""

    kind: int
    weights: np.ndarray  # (n, 2), as double-double
    means: np.ndarray  # (n, d, 2); sums, for directions
    spread: np.ndarray  # (n, …, 2): covariances, or directions of sums
    cached: np.ndarray  # (n, 2): log det, or length of sums
    exponents: np.ndarray  # (d,): columns have been multiplied by 2 to this power
    off: np.ndarray  # (d,): what a mean may be off by
    parameters: np.ndarray
    offsets: np.ndarray  # (d,): of the smoothing, in the unit of the column


# Double-double.


@njit(cache=True)
def _two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(cache=True)
def _quick_sum(a, b):
    s = a + b
    return s, b - (s - a)


@njit(cache=True)
def _two_product(a, b):
    p = a * b
    t = 134217729.0 * a
    a0 = t - (t - a)
    a1 = a - a0
    t = 134217729.0 * b
    b0 = t - (t - b)
    b1 = b - b0
    return p, ((a0 * b0 - p) + a0 * b1 + a1 * b0) + a1 * b1


@njit(cache=True)
def _add(a, a1, b, b1):
    s, e = _two_sum(a, b)
    t, f = _two_sum(a1, b1)
    s, e = _quick_sum(s, e + t)
    return _quick_sum(s, e + f)


@njit(cache=True)
def _multiply(a, a1, b, b1):
    p, e = _two_product(a, b)
    return _quick_sum(p, e + (a * b1 + a1 * b))


@njit(cache=True)
def _divide(a, a1, b, b1):
    q0 = a / b
    p, e = _multiply(b, b1, q0, 0.0)
    r, f = _add(a, a1, -p, -e)
    q1 = r / b
    p, e = _multiply(b, b1, q1, 0.0)
    r, f = _add(r, f, -p, -e)
    q0, q1 = _quick_sum(q0, q1)
    return _add(q0, q1, r / b, 0.0)


@njit(cache=True)
def _root(a, a1):
    if a <= 0.0:
        return 0.0, 0.0
    x = math.sqrt(a)
    p, e = _two_product(x, x)
    r, _ = _add(a, a1, -p, -e)
    return _quick_sum(x, r / (2.0 * x))


@njit(cache=True)
def _log1p(r, r1):
    """log(1 + r) as double-double, with the relative precision of r where r is small."""
    power = 0
    if abs(r) >= 0.25:
        x, x1 = _add(1.0, 0.0, r, r1)
        m, power = math.frexp(x)
        if m < 0.7:
            power -= 1
        x, x1 = math.ldexp(x, -power), math.ldexp(x1, -power)
        r, r1 = _add(x, x1, -1.0, 0.0)
    s, s1 = _add(2.0, 0.0, r, r1)
    z, z1 = _divide(r, r1, s, s1)
    y, y1 = _multiply(z, z1, z, z1)
    t, t1 = _ODD_HIGH[25], _ODD_LOW[25]
    for k in range(24, -1, -1):
        t, t1 = _multiply(t, t1, y, y1)
        t, t1 = _add(t, t1, _ODD_HIGH[k], _ODD_LOW[k])
    t, t1 = _multiply(t, t1, z, z1)
    t, t1 = 2.0 * t, 2.0 * t1
    if power:
        a, a1 = _multiply(_LN2[0], _LN2[1], float(power), 0.0)
        t, t1 = _add(t, t1, a, a1)
    return t, t1


@njit(cache=True)
def _gap(x, y, low_x, low_y):
    """y − x in double precision, relative to the difference itself."""
    s, e = _two_sum(y, -x)
    return s + (e + (low_y - low_x))


# Functions that vanish to second order, given u and 1 + u.


@njit(cache=True)
def _log_excess(u, ratio):
    """u − log(1 + u)."""
    if abs(u) > 0.03:
        return u - math.log(ratio)
    total = 0.0
    for k in range(13, 1, -1):
        total = (1.0 if k % 2 == 0 else -1.0) / k + u * total
    return total * u * u


@njit(cache=True)
def _entropy_excess(u, ratio):
    """(1 + u) log(1 + u) − u."""
    if abs(u) > 0.03:
        return (ratio * math.log(ratio) if ratio > 0.0 else 0.0) - u
    total = 0.0
    for k in range(13, 1, -1):
        total = (1.0 if k % 2 == 0 else -1.0) / (k * (k - 1.0)) + u * total
    return total * u * u


@njit(cache=True)
def _log1p_ratio(q):
    """log(1 + q)/q."""
    return math.log1p(q) / q if q > 1e-300 else 1.0


# d of two slots, and what it may be off by.


@njit(cache=True)
def value_of_pair(state, a, b, scratch):
    w0, w1 = state.weights[a, 0], state.weights[b, 0]
    if w0 == 0.0 or w1 == 0.0:
        return 0.0, 0.0
    if state.kind == WARD:
        value, off = _ward(state, a, b)
    elif state.kind == FULL:
        value, off = _full(state, a, b, scratch)
    elif state.kind == DIAGONAL:
        value, off = _diagonal(state, a, b)
    elif state.kind == DIRECTIONS:
        value, off = _directions(state, a, b)
    else:
        value, off = _bregman(state, a, b)
    # A square of a tiny step loses digits before it is multiplied by the weight.
    return value, off + _VALUE_OFF * value + SMALLEST * (1.0 + w0 + w1)


@njit(cache=True)
def _ward(state, a, b):
    means, off = state.means, state.off
    d = means.shape[1]
    largest = 0.0
    for j in range(d):
        step = _gap(means[a, j, 0], means[b, j, 0], means[a, j, 1], means[b, j, 1])
        largest = max(largest, abs(step), off[j])
    if largest == 0.0:
        return 0.0, 0.0
    total, doubt = 0.0, 0.0
    for j in range(d):
        step = _gap(means[a, j, 0], means[b, j, 0], means[a, j, 1], means[b, j, 1])
        step, error = abs(step) / largest, off[j] / largest
        total += step * step
        doubt += (2.0 * step + error) * error
    m0, e0 = math.frexp(state.weights[a, 0])
    m1, e1 = math.frexp(state.weights[b, 0])
    m, e = math.frexp(state.weights[a, 0] + state.weights[b, 0])
    mv, ev = math.frexp(state.parameters[0])
    ml, el = math.frexp(largest)
    factor = m0 * m1 / m / mv * ml * ml * 0.5
    power = e0 + e1 - e - ev + 2 * el - 2 * state.exponents[0]
    return math.ldexp(factor * total, power), math.ldexp(factor * doubt, power)


@njit(cache=True)
def _diagonal(state, a, b):
    means, spread, ridge = state.means, state.spread, state.parameters[0]
    w0, w1 = state.weights[a, 0], state.weights[b, 0]
    w = w0 + w1
    s0, s1 = w0 / w, w1 / w
    joint = w0 * s1 if w0 < w1 else w1 * s0
    total, doubt = 0.0, 0.0
    for j in range(means.shape[1]):
        v0, v1 = spread[a, j, 0], spread[b, j, 0]
        middle = ridge + s0 * v0 + s1 * v1
        step = abs(_gap(means[a, j, 0], means[b, j, 0], means[a, j, 1], means[b, j, 1]))
        part, more = _of_step(step, state.off[j], middle, joint, w)
        gap = _gap(v0, v1, spread[a, j, 1], spread[b, j, 1]) / middle
        off = _MEAN_OFF * (v0 + v1) / middle
        part += w0 * _log_excess(-s1 * gap, (ridge + v0) / middle)
        part += w1 * _log_excess(s0 * gap, (ridge + v1) / middle)
        more += joint * (2.0 * abs(gap) + off) * off
        total += part
        doubt += more
    return 0.5 * total, 0.5 * doubt


@njit(cache=True)
def _of_step(step, off, middle, joint, w):
    """n log(1 + s₀s₁ step²/middle), and what it may be off by."""
    lift = 500 if step < 1e-120 else 0
    lifted, error = math.ldexp(step, lift), math.ldexp(off, lift)
    x = lifted * lifted / middle
    q = math.ldexp(joint / w * x, -2 * lift)
    factor = _log1p_ratio(q)
    doubt = (2.0 * lifted + error) * error / middle
    return math.ldexp(joint * x * factor, -2 * lift), math.ldexp(joint * doubt, -2 * lift)


@njit(cache=True)
def _log_det(matrix, ridge, d, scratch):
    """log det(I + matrix/ridge), by LDLᵀ; factors and pivots stay in the scratch memory."""
    total, rest = 0.0, 0.0
    for i in range(d):
        for j in range(i):
            x, x1 = matrix[i * (i + 1) // 2 + j, 0], matrix[i * (i + 1) // 2 + j, 1]
            for k in range(j):
                p, p1 = _multiply(
                    scratch[j, k, 0], scratch[j, k, 1], scratch[d + i, k, 0], scratch[d + i, k, 1]
                )
                x, x1 = _add(x, x1, -p, -p1)
            scratch[d + i, j, 0], scratch[d + i, j, 1] = x, x1
            x, x1 = _divide(x, x1, scratch[j, j, 0], scratch[j, j, 1])
            scratch[i, j, 0], scratch[i, j, 1] = x, x1
        x, x1 = matrix[i * (i + 1) // 2 + i, 0], matrix[i * (i + 1) // 2 + i, 1]
        for k in range(i):
            p, p1 = _multiply(
                scratch[i, k, 0], scratch[i, k, 1], scratch[d + i, k, 0], scratch[d + i, k, 1]
            )
            x, x1 = _add(x, x1, -p, -p1)
        scratch[i, i, 0], scratch[i, i, 1] = _add(ridge, 0.0, x, x1)
        x, x1 = _divide(x, x1, ridge, 0.0)
        x, x1 = _log1p(x, x1)
        total, rest = _add(total, rest, x, x1)
    return total, rest


@njit(cache=True)
def _full(state, a, b, scratch):
    means, spread, ridge = state.means, state.spread, state.parameters[0]
    d = means.shape[1]
    w0, w1 = state.weights[a, 0], state.weights[b, 0]
    w, rest = _add(w0, state.weights[a, 1], w1, state.weights[b, 1])
    s0, r0 = _divide(w0, state.weights[a, 1], w, rest)
    s1, r1 = _divide(w1, state.weights[b, 1], w, rest)
    middle = scratch[2 * d :].reshape(-1, 2)
    widest = 0.0
    for k in range(d * (d + 1) // 2):
        p, p1 = _multiply(s0, r0, spread[a, k, 0], spread[a, k, 1])
        q, q1 = _multiply(s1, r1, spread[b, k, 0], spread[b, k, 1])
        middle[k, 0], middle[k, 1] = _add(p, p1, q, q1)
        widest = max(widest, abs(spread[a, k, 0]), abs(spread[b, k, 0]))
    log, low = _log_det(middle, ridge, d, scratch)
    p, p1 = _multiply(s0, r0, state.cached[a, 0], state.cached[a, 1])
    log, low = _add(log, low, -p, -p1)
    p, p1 = _multiply(s1, r1, state.cached[b, 0], state.cached[b, 1])
    log, low = _add(log, low, -p, -p1)
    # The step of the means, by forward substitution.
    largest = 0.0
    steps = middle[:d]
    for j in range(d):
        step = _gap(means[a, j, 0], means[b, j, 0], means[a, j, 1], means[b, j, 1])
        steps[j, 0] = step
        largest = max(largest, abs(step))
    lift = 500 if largest < 1e-120 else 0
    x, doubt = 0.0, 0.0
    for i in range(d):
        y, y1 = math.ldexp(steps[i, 0], lift), 0.0
        error = math.ldexp(state.off[i], lift)
        doubt += (2.0 * abs(y) + error) * error / ridge
        for k in range(i):
            p, p1 = _multiply(scratch[i, k, 0], scratch[i, k, 1], steps[k, 0], steps[k, 1])
            y, y1 = _add(y, y1, -p, -p1)
        steps[i, 0], steps[i, 1] = y, y1
        x += y * y / scratch[i, i, 0]
    joint = w0 * s1 if w0 < w1 else w1 * s0
    q = math.ldexp(joint / w * x, -2 * lift)
    of_step = math.ldexp(joint * x * _log1p_ratio(q), -2 * lift)
    pivots_off = d * d * _MEAN_OFF * widest / ridge
    doubt = math.ldexp(joint * doubt, -2 * lift) + pivots_off * (w + of_step) + 1e-31 * abs(log) * w
    return max(0.0, 0.5 * (w * (log + low) + of_step)), doubt


@njit(cache=True)
def _directions(state, a, b):
    sums, directions = state.means, state.spread
    d = sums.shape[1]
    length0, length1 = state.cached[a, 0], state.cached[b, 0]
    if length0 == 0.0 or length1 == 0.0:
        length0, length1 = max(length0, 1e-290), max(length1, 1e-290)
    gap, union = 0.0, 0.0
    for j in range(d):
        step = _gap(
            directions[a, j, 0], directions[b, j, 0], directions[a, j, 1], directions[b, j, 1]
        )
        gap += step * step
        part = _gap(-sums[a, j, 0], sums[b, j, 0], -sums[a, j, 1], sums[b, j, 1])
        union += (part / (length0 + length1)) ** 2
    factor = state.parameters[0] * length0 * (length1 / (length0 + length1))
    value = factor * gap / (1.0 + math.sqrt(union))
    # Sums that have cancelled to the last digits have no direction.
    off = 64.0 * _MEAN_OFF * (state.weights[a, 0] / length0 + state.weights[b, 0] / length1)
    return value, factor * min(4.0, (2.0 * math.sqrt(gap) + off) * off)


@njit(cache=True)
def _bregman(state, a, b):
    means, scale = state.means, state.parameters[0]
    w0, w1 = state.weights[a, 0], state.weights[b, 0]
    w = w0 + w1
    s0, s1 = w0 / w, w1 / w
    total, doubt = 0.0, 0.0
    for j in range(means.shape[1]):
        mean0, mean1 = means[a, j, 0], means[b, j, 0]
        step = _gap(mean0, mean1, means[a, j, 1], means[b, j, 1])
        off = scale * _MEAN_OFF * max(mean0, mean1)
        part, more = _column(
            state.kind != RATIOS,
            scale * mean0 + state.offsets[j],
            scale * mean1 + state.offsets[j],
            scale * step,
            off,
            w0,
            w1,
            s0,
            s1,
            -state.exponents[j],
        )
        total += part
        doubt += more
        if state.kind == SHARES:
            power = -state.exponents[j]
            rest0 = _gap(math.ldexp(mean0, power), 1.0, math.ldexp(means[a, j, 1], power), 0.0)
            rest1 = _gap(math.ldexp(mean1, power), 1.0, math.ldexp(means[b, j, 1], power), 0.0)
            part, more = _column(
                True,
                scale * max(rest0, 0.0) + state.parameters[1],
                scale * max(rest1, 0.0) + state.parameters[1],
                -math.ldexp(scale * step, power),
                scale * _MEAN_OFF,
                w0,
                w1,
                s0,
                s1,
                0,
            )
            total += part
            doubt += more
    return total, doubt


@njit(cache=True)
def _product(x, y, power):
    """xy·2^power, where xy may be out of range."""
    m0, e0 = math.frexp(x)
    m1, e1 = math.frexp(y)
    return math.ldexp(m0 * m1, e0 + e1 + power)


@njit(cache=True)
def _column(entropy, mean0, mean1, step, off, w0, w1, s0, s1, power):
    """w₀B(mean₀, mean) + w₁B(mean₁, mean) for x log x, times 2^power, or for −log x."""
    mean = s0 * mean0 + s1 * mean1
    if mean <= 0.0:
        return 0.0, 0.0
    u0, u1 = -s1 * (step / mean), s0 * (step / mean)
    ratio0, ratio1 = mean0 / mean, mean1 / mean
    joint = w0 * s1 if w0 < w1 else w1 * s0
    error = off / mean
    if abs(step) < 1e-100 * mean:  # squares of these might underflow
        slope = step / mean
        value = _product(0.5 * joint * slope, step if entropy else slope, power if entropy else 0)
        doubt = 4.0 * value * (min(1.0, off / abs(step)) if step != 0.0 else 0.0)
        rest = _product(joint * error, off if entropy else error, power if entropy else 0)
        return value, doubt + rest
    if entropy:
        total = w0 * _entropy_excess(u0, ratio0) + w1 * _entropy_excess(u1, ratio1)
        doubt = joint * error * error
        if step != 0.0:
            doubt += 4.0 * total * min(1.0, off / abs(step))
        return _product(total, mean, power), _product(doubt, mean, power)
    if ratio0 < 1e-290:
        total = w0 * (u0 - (math.log(mean0) - math.log(mean)))
    else:
        total = w0 * _log_excess(u0, ratio0)
    if ratio1 < 1e-290:
        total += w1 * (u1 - (math.log(mean1) - math.log(mean)))
    else:
        total += w1 * _log_excess(u1, ratio1)
    doubt = joint * error * error
    if step != 0.0:
        doubt += 4.0 * total * min(1.0, off / abs(step))
    return total, doubt


# Merging two slots.


@njit(cache=True)
def merge_slots(state, a, b, scratch):
    """Put the union of both into slot a."""
    if state.weights[b, 0] == 0.0:
        return
    if state.weights[a, 0] == 0.0:
        state.weights[a] = state.weights[b]
        state.means[a] = state.means[b]
        state.spread[a] = state.spread[b]
        state.cached[a] = state.cached[b]
        return
    d = state.means.shape[1]
    w0, w1 = state.weights[a], state.weights[b]
    w, rest = _add(w0[0], w0[1], w1[0], w1[1])
    if state.kind == DIRECTIONS:
        for j in range(d):
            x0, x1 = state.means[a, j], state.means[b, j]
            x, y = _add(x0[0], x0[1], x1[0], x1[1])
            state.means[a, j, 0], state.means[a, j, 1] = x, y
        _normalise(state, a)
    else:
        s0, r0 = _divide(w0[0], w0[1], w, rest)
        s1, r1 = _divide(w1[0], w1[1], w, rest)
        steps = scratch[0]
        for j in range(d):
            x0, x1 = state.means[a, j], state.means[b, j]
            steps[j, 0], steps[j, 1] = _add(x1[0], x1[1], -x0[0], -x0[1])
            if state.weights[a, 0] >= state.weights[b, 0]:
                p, q = _multiply(s1, r1, steps[j, 0], steps[j, 1])
                x, y = _add(x0[0], x0[1], p, q)
            else:
                p, q = _multiply(-s0, -r0, steps[j, 0], steps[j, 1])
                x, y = _add(x1[0], x1[1], p, q)
            state.means[a, j, 0], state.means[a, j, 1] = x, y
        if state.kind == FULL or state.kind == DIAGONAL:
            s, s_low = _multiply(s0, r0, s1, r1)
            for i in range(d):
                for j in range(i + 1):
                    if state.kind == DIAGONAL and i != j:
                        continue
                    k = i if state.kind == DIAGONAL else i * (i + 1) // 2 + j
                    x, y = _multiply(steps[i, 0], steps[i, 1], steps[j, 0], steps[j, 1])
                    x, y = _multiply(x, y, s, s_low)
                    p, q = _multiply(s0, r0, state.spread[a, k, 0], state.spread[a, k, 1])
                    x, y = _add(x, y, p, q)
                    p, q = _multiply(s1, r1, state.spread[b, k, 0], state.spread[b, k, 1])
                    x, y = _add(x, y, p, q)
                    state.spread[a, k, 0], state.spread[a, k, 1] = x, y
        if state.kind == FULL:
            x, y = _log_det(state.spread[a], state.parameters[0], d, scratch)
            state.cached[a, 0], state.cached[a, 1] = x, y
    state.weights[a, 0], state.weights[a, 1] = w, rest


@njit(cache=True)
def _normalise(state, i):
    """The length and the direction of a sum."""
    d, largest = state.means.shape[1], 0.0
    for j in range(d):
        largest = max(largest, abs(state.means[i, j, 0]))
    state.cached[i, 0] = state.cached[i, 1] = 0.0
    state.spread[i] = 0.0
    if largest == 0.0:
        return
    power = math.frexp(largest)[1]
    total, rest = 0.0, 0.0
    for j in range(d):
        x, x1 = math.ldexp(state.means[i, j, 0], -power), math.ldexp(state.means[i, j, 1], -power)
        p, p1 = _multiply(x, x1, x, x1)
        total, rest = _add(total, rest, p, p1)
    length, low = _root(total, rest)
    for j in range(d):
        x, x1 = math.ldexp(state.means[i, j, 0], -power), math.ldexp(state.means[i, j, 1], -power)
        x, x1 = _divide(x, x1, length, low)
        state.spread[i, j, 0], state.spread[i, j, 1] = x, x1
    state.cached[i, 0], state.cached[i, 1] = math.ldexp(length, power), math.ldexp(low, power)


@njit(cache=True)
def _add_directions(state, X, weights):
    """Sums of single rows: their directions, multiplied by their weights."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            state.means[i, j, 0], state.means[i, j, 1] = X[i, j], 0.0
        _normalise(state, i)
        for j in range(X.shape[1]):
            x, x1 = _multiply(weights[i], 0.0, state.spread[i, j, 0], state.spread[i, j, 1])
            state.means[i, j, 0], state.means[i, j, 1] = x, x1
        state.cached[i, 0], state.cached[i, 1] = weights[i], 0.0


@njit(cache=True)
def _add_proportions(means, totals, X):
    """Rows divided by their totals, times 2^_LIFT."""
    for i in range(X.shape[0]):
        power = math.frexp(X[i].max())[1] - _LIFT
        total, rest = 0.0, 0.0
        for j in range(X.shape[1]):
            total, rest = _add(total, rest, math.ldexp(X[i, j], -power), 0.0)
        for j in range(X.shape[1]):
            x, x1 = _divide(math.ldexp(X[i, j], -power), 0.0, total, rest)
            means[i, j, 0], means[i, j, 1] = math.ldexp(x, _LIFT), math.ldexp(x1, _LIFT)
        totals[i] = math.ldexp(total, power)


# Replays.


class Replayed(NamedTuple):
    """For each merge, in the order in which they were made."""

    values: np.ndarray  # d of the two parts
    doubts: np.ndarray  # what that may be off by
    nearest: np.ndarray  # the least that another pair may be at, with the tolerance added
    pairs: np.ndarray  # (m, 2): that pair, as nodes
    left: float  # the same among what is left at the end
    left_pair: np.ndarray


@njit(cache=True)
def _replay(state, n, children, unions, everywhere, ignored, scratch, upper, out):
    """``upper`` is the matrix of all pairs, if every merge is to be the least of all.

    Otherwise the two have to be nearest to each other, apart from ignored nodes.
    """
    values, doubts, nearest, pairs, left_pair = out
    slot_of = np.empty(n + children.shape[0], np.int64)
    node_of = np.arange(n)
    slot_of[:n] = np.arange(n)
    least = np.full(n, np.inf)
    where = np.full(n, -1, np.int64)
    if everywhere:
        for i in range(n):
            upper[i, i] = np.inf
            for j in range(i):
                value, doubt = value_of_pair(state, i, j, scratch)
                upper[i, j] = upper[j, i] = value * (1.0 + TOLERANCE) + doubt
        for i in range(n):
            _find_least(upper[i], node_of, least, where, i)
    for step in range(children.shape[0]):
        a, b = slot_of[children[step, 0]], slot_of[children[step, 1]]
        value, doubt = value_of_pair(state, a, b, scratch)
        values[step], doubts[step] = value, doubt
        nearest[step] = np.inf
        pairs[step] = -1
        if everywhere:
            for i in range(n):
                if node_of[i] >= 0 and least[i] < nearest[step]:
                    nearest[step] = least[i]
                    pairs[step, 0], pairs[step, 1] = node_of[i], node_of[where[i]]
        else:
            for i in range(n):
                if node_of[i] < 0 or i in (a, b) or ignored[node_of[i]]:
                    continue
                for end in (a, b):
                    other, off = value_of_pair(state, i, end, scratch)
                    other = other * (1.0 + TOLERANCE) + off
                    if other < nearest[step]:
                        nearest[step] = other
                        pairs[step, 0], pairs[step, 1] = node_of[i], node_of[end]
        merge_slots(state, a, b, scratch)
        node_of[a], node_of[b] = unions[step], -1
        slot_of[unions[step]] = a
        if everywhere:
            least[b] = np.inf
            for i in range(n):
                upper[b, i] = upper[i, b] = np.inf
            for i in range(n):
                if node_of[i] < 0 or i == a:
                    continue
                value, doubt = value_of_pair(state, i, a, scratch)
                upper[i, a] = upper[a, i] = value * (1.0 + TOLERANCE) + doubt
                if where[i] == a or where[i] == b:
                    _find_least(upper[i], node_of, least, where, i)
                elif upper[i, a] < least[i]:
                    least[i], where[i] = upper[i, a], a
            _find_least(upper[a], node_of, least, where, a)
    left = np.inf
    for i in range(n):
        if node_of[i] < 0:
            continue
        for j in range(i):
            if node_of[j] >= 0:
                value, doubt = value_of_pair(state, i, j, scratch)
                value = value * (1.0 + TOLERANCE) + doubt
                if value < left:
                    left = value
                    left_pair[0], left_pair[1] = node_of[i], node_of[j]
    return left


@njit(cache=True)
def _find_least(row, node_of, least, where, i):
    least[i], where[i] = np.inf, -1
    for j in range(row.size):
        if node_of[j] >= 0 and row[j] < least[i]:
            least[i], where[i] = row[j], j


@njit(cache=True)
def _values_to(state, i, scratch, values, doubts):
    for j in range(values.size):
        if j != i:
            values[j], doubts[j] = value_of_pair(state, j, i, scratch)


def state_of(family, X, weights, rest=None):
    """One cluster per row; ``rest`` are further digits of the rows."""
    family = as_family(family)
    kind = KINDS[family.name]
    X = np.ascontiguousarray(X, np.float64)
    n, d = X.shape
    weights = np.ones(n) if weights is None else np.array(weights, np.float64)
    packed = {FULL: d * (d + 1) // 2, DIAGONAL: d, DIRECTIONS: d}.get(kind, 0)
    means, spread = np.zeros((n, d, 2)), np.zeros((n, packed, 2))
    exponents, parameters = np.zeros(d, np.int64), np.zeros(2)
    off, offsets = np.zeros(d), np.zeros(d)
    state = State(
        kind,
        np.column_stack([weights, np.zeros(n)]),
        means,
        spread,
        np.zeros((n, 2)),
        exponents,
        off,
        parameters,
        offsets,
    )
    if kind in (WARD, FULL, DIAGONAL):
        _put_measurements(state, family, X, rest)
    elif kind == DIRECTIONS:
        parameters[0] = family.concentration
        _add_directions(state, X, weights)
    else:
        _put_counts(state, family, X, rest)
    return state


def _put_measurements(state, family, X, rest):
    if state.kind == WARD:
        state.parameters[0] = family.variance
        largest = np.abs(X - X[0]).max() if np.isfinite(X).all() else 1.0
        power = _LIFT - math.frexp(largest)[1]
    else:
        power = -(math.frexp(family.smoothing)[1] // 2)
        state.parameters[0] = math.ldexp(family.smoothing, 2 * power)
    state.exponents[:] = power
    # Differences from the first row, exactly: the sum of a rounded one and its error.
    high = X - X[0]
    rounded = X - high
    low = (X - (high + rounded)) + (rounded - X[0])
    if rest is not None:
        low = low + (rest - rest[0])
    state.means[:, :, 0], state.means[:, :, 1] = np.ldexp(high, power), np.ldexp(low, power)
    with np.errstate(over="ignore"):
        off = np.ldexp(np.abs(X).max(axis=0), power - 97)
    # Means of equal values are exact.
    state.off[:] = np.where(high.any(axis=0), np.minimum(off, 1e300), 0.0)


def _put_counts(state, family, X, rest):
    smoothing = family.smoothing
    state.exponents[:] = _LIFT
    if family.name == "multinomial":
        totals = np.empty(len(X))
        _add_proportions(state.means, totals, X)
        if family.weight_by_total:
            state.weights[:, 0] *= totals
        state.parameters[0] = 1.0 - smoothing
        state.offsets[:] = math.ldexp(smoothing / X.shape[1], _LIFT)
        return
    if family.name == "bernoulli":
        state.parameters[:] = 1.0 - smoothing, smoothing / 2.0
        state.offsets[:] = math.ldexp(smoothing / 2.0, _LIFT)
    else:
        largest = np.maximum(X.max(axis=0), smoothing)
        state.exponents[:] = _LIFT - np.frexp(np.where(largest > 0.0, largest, 1.0))[1]
        state.parameters[0] = 1.0
        state.offsets[:] = np.ldexp(smoothing, state.exponents)
    state.means[:, :, 0] = np.ldexp(X, state.exponents)
    if rest is not None:
        state.means[:, :, 1] = np.ldexp(rest, state.exponents)


def scratch_for(d):
    """Memory for `value_of_pair` and `merge_slots`."""
    # Factors, their products with the pivots, and one packed matrix.
    return np.zeros((3 * d + 2, max(d, 2), 2))


def replay(family, X, weights, children, unions, everywhere, ignored):
    """Make merges again; see `Replayed`."""
    state, n, m = state_of(family, X, weights), len(X), len(children)
    values, doubts, nearest = np.empty(m), np.empty(m), np.empty(m)
    pairs, left_pair = np.empty((m, 2), np.int64), np.full(2, -1)
    upper = np.empty((n, n) if everywhere else (1, 1))
    left = _replay(
        state,
        n,
        np.ascontiguousarray(children, np.int64),
        np.ascontiguousarray(unions, np.int64),
        everywhere,
        ignored,
        scratch_for(X.shape[1]),
        upper,
        (values, doubts, nearest, pairs, left_pair),
    )
    return Replayed(values, doubts, nearest, pairs, left, left_pair)


def values_to_last(family, X, weights, digits):
    """d of the last row, with weight 1, to each of the others, and what it may be off by.

    Rows that agree in the leading digits of their statistics, or in all, count as one.
    """
    state = state_of(family, X, weights)
    measured = state.kind in (WARD, FULL, DIAGONAL)
    kept = state.spread if state.kind == DIRECTIONS else state.means
    parts = X if measured else kept[:, :, :digits].reshape(len(X), -1)
    _, which = np.unique(parts[:-1], axis=0, return_inverse=True)
    which = which.ravel()
    total = np.bincount(which, weights=state.weights[:-1, 0])[which]
    weights = np.append(total, 1.0)
    if state.kind == DIRECTIONS:
        state = state_of(family, X, weights)
    state.weights[:, 0] = weights
    values, doubts = np.zeros(len(X)), np.zeros(len(X))
    _values_to(state, len(X) - 1, scratch_for(X.shape[1]), values, doubts)
    return values[:-1], doubts[:-1]


def dissimilarity(family, X0, X1, weights0=None, weights1=None):
    """d of two groups of rows, and what it may be off by."""
    X = np.concatenate([X0, X1])
    parts = [
        np.ones(len(rows)) if given is None else np.asarray(given, float)
        for rows, given in ((X0, weights0), (X1, weights1))
    ]
    state, scratch = state_of(family, X, np.concatenate(parts)), scratch_for(X.shape[1])
    for first, last in ((0, len(X0)), (len(X0), len(X))):
        for row in range(first + 1, last):
            merge_slots(state, first, row, scratch)
    return value_of_pair(state, 0, len(X0), scratch)
