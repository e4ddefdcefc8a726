"""The Jensen gap of log determinants, without cancellation.

For smoothed covariances Σ₀, Σ₁ and A = (n₀Σ₀ + n₁Σ₁)/n, the gap is

    n log det A − n₀ log det Σ₀ − n₁ log det Σ₁ ≥ 0.

If the two covariances are alike, or all but the smoothing is small, its terms agree in most of
their digits. With A = LLᵀ, F = (n₀n₁/n²)·L⁻¹(Σ₀ − Σ₁)L⁻ᵀ, N₀ = (n/n₀)F and N₁ = −(n/n₁)F, we have
Σ₀ = L(I + N₀)Lᵀ and Σ₁ = L(I + N₁)Lᵀ. The traces of n₀N₀ and n₁N₁ cancel, so the gap is

    n₀D(N₀) + n₁D(N₁),        D(N) = tr N − log det(I + N) ≥ 0.

Let RRᵀ = I + N, with pivots 1 + qₖ. Then tr N is the sum of all qₖ and of the squares below the
diagonal of R, so that

    D(N) = Σₖ [qₖ − log(1 + qₖ)] + Σ_{m<k} R²ₖₘ.

No term is negative, and none needs the digits of 1 + qₖ. All is done in double-double, because a
flat cluster loses one digit per factor of ten between its largest variance and the smoothing.
"""

from __future__ import annotations

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.math.cholesky import PANEL, factor_rows_precisely
from fastrbhc._engine.math.double_double import add, divide, product, quotient, square_root
from fastrbhc._engine.math.entropy import log_excess

# The least pivot of I + N. Rounding must not make one negative.
_LEAST_PIVOT = 1e-40


@kernel
def jensen_gap(scatter, i, j, w0, w1, n_features, ridge, work):
    """The gap for the covariances of slots i and j with weights w0 and w1: same bits for (j, i).

    ``ridge`` is ε times the weight of both, and ``work`` has twice the rows of `factor_shape`.
    """
    for first in range(0, n_features, PANEL):
        factor_rows_precisely(scatter, i, j, n_features, first, ridge, work)
    relative = work[2 * n_features :]
    weight = w0 + w1
    _relative_difference(scatter, i, j, w0, w1, n_features, work, relative)
    # The factor of A is no longer needed.
    gap0 = _deficit(relative, n_features, weight, w0, 1.0, work)
    gap1 = _deficit(relative, n_features, weight, w1, -1.0, work)
    return w0 * gap0 + w1 * gap1


@kernel
def _relative_difference(scatter, i, j, w0, w1, d, factor, out):
    """The lower triangle of F, from the scatter n₀C₀ and n₁C₁; further digits in rows d…2d−1."""
    half, weight = scatter.shape[1] // 2, w0 + w1
    share0, rest0 = divide(w0, 0.0, weight)
    share1, rest1 = divide(w1, 0.0, weight)
    for k in range(d):
        for m in range(k + 1):
            entry = k * (k + 1) // 2 + m
            high0, low0 = product(share1, rest1, scatter[i, entry], scatter[i, half + entry])
            high1, low1 = product(share0, rest0, scatter[j, entry], scatter[j, half + entry])
            high, low = add(high0, low0, -high1, -low1)
            out[k, m] = out[m, k] = high
            out[d + k, m] = out[d + m, k] = low
    for k in range(d):
        for column in range(d):
            _eliminate(factor, d, k, out, k, column, True)
    for row in range(d):
        for k in range(row + 1):
            _eliminate(factor, d, k, out, row, k, False)


@kernel
def _eliminate(factor, d, k, out, row, column, by_rows):
    """One entry of L⁻¹M (by rows) or ML⁻ᵀ, once the entries before it are done."""
    high, low = out[row, column], out[d + row, column]
    for m in range(k):
        if by_rows:
            other, rest = out[m, column], out[d + m, column]
        else:
            other, rest = out[row, m], out[d + row, m]
        term, error = product(factor[k, m], factor[d + k, m], other, rest)
        high, low = add(high, low, -term, -error)
    out[row, column], out[d + row, column] = quotient(high, low, factor[k, k], factor[d + k, k])


@kernel
def _deficit(relative, d, weight, own, sign, root):
    """D(N) for N = sign·(weight/own)·F; ``root`` is overwritten by R."""
    scale, scale_rest = divide(weight, 0.0, own)
    scale, scale_rest = sign * scale, sign * scale_rest
    deficit = 0.0
    for k in range(d):
        for m in range(k + 1):
            high, low = product(scale, scale_rest, relative[k, m], relative[d + k, m])
            for t in range(m):
                term, error = product(root[k, t], root[d + k, t], root[m, t], root[d + m, t])
                high, low = add(high, low, -term, -error)
            if m < k:
                high, low = quotient(high, low, root[m, m], root[d + m, m])
                deficit += high * high
            else:
                pivot, rest = add(high, low, 1.0, 0.0)
                if pivot < _LEAST_PIVOT:
                    pivot, rest = _LEAST_PIVOT, 0.0
                deficit += log_excess(pivot, high)
                high, low = square_root(pivot, rest)
            root[k, m], root[d + k, m] = high, low
    return deficit
