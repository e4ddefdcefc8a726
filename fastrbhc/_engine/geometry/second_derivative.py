"""φ″ of a separable family that defines only its divergence.

The divergences on both sides of a mean contain φ″ and even powers of the step,

    (B(m + h, m) + B(m − h, m)) / h² = φ″(m) + c₁h² + c₂h⁴ + c₃h⁶ + …,

so the values for h, h/2, h/4 and h/8 can be combined to an error of h⁸ (Richardson extrapolation,
as in Romberg's method). Steps may then be as long as a thirtieth of the mean, where even a
divergence computed as a difference of large terms keeps many digits.
"""

from __future__ import annotations

import numpy as np

from fastrbhc._engine.geometry.separable_columns import divergence
from fastrbhc._engine.jit import kernel

# The first step to try, as a share of the mean, and how often it is doubled or halved.
_FIRST_STEP, _OCTAVES = 2.0**-5, 100

# The largest difference of the last two values without the term in h⁴. Their own error, in h⁶, is
# then mostly removed too, and the rounding error is not larger than this.
_AGREES = 1e-9


def second_derivative_by_steps(family, mean):
    """φ″ at the mean, to about 12 digits if the divergence has them; NaN if no step gives it.

    The right step depends on φ, which is unknown: it has to be short near a boundary, or where φ″
    changes quickly, and long where the mean happens to be small. So ever shorter and longer steps
    are tried, until two extrapolations agree.
    """
    unit = abs(mean) if mean != 0.0 else 1.0
    best, least = np.nan, np.inf
    for attempt in range(2 * _OCTAVES + 1):
        octave = (attempt + 1) // 2 * (1 - 2 * (attempt % 2))  # 0, −1, 1, −2, 2, …
        value, doubt = _extrapolated(family, mean, unit * _FIRST_STEP * 2.0**octave)
        if doubt < least:  # never if there is a NaN in it
            best, least = value, doubt
            if doubt < _AGREES:
                break
    return best


@kernel
def _extrapolated(family, mean, step):
    """φ″ from four steps, and the difference of the last two values it is derived from."""
    quotient0, quotient1 = _quotient(family, mean, step), _quotient(family, mean, step / 2.0)
    quotient2, quotient3 = _quotient(family, mean, step / 4.0), _quotient(family, mean, step / 8.0)
    # Without the term in h²,
    value0 = quotient1 + (quotient1 - quotient0) / 3.0
    value1 = quotient2 + (quotient2 - quotient1) / 3.0
    value2 = quotient3 + (quotient3 - quotient2) / 3.0
    # that in h⁴,
    value0 = value1 + (value1 - value0) / 15.0
    value1 = value2 + (value2 - value1) / 15.0
    # and that in h⁶.
    value = value1 + (value1 - value0) / 63.0
    if not quotient3 > 0.0:
        return value, np.nan
    return max(value, 0.0), abs(value1 - value0) / quotient3


@kernel
def _quotient(family, mean, step):
    """φ″ up to an error of step²; divided twice, because the square may underflow."""
    there = divergence(family, mean + step, mean, step)
    back = divergence(family, mean - step, mean, -step)
    return (there / step + back / step) / step
