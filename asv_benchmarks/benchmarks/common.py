"""What most benchmarks share: how often they run, and data that are made and compiled for once."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .datasets import rows_for
from .timing import warm_up

FAMILIES = (
    "spherical_gaussian",
    "gaussian",
    "poisson",
    "multinomial",
    "bernoulli",
    "exponential",
)


class Few:
    """Trees are long, and one run of each is much like another."""

    number = 1
    repeat = (3, 20, 0.5)  # at least three, at most twenty, no new one after half a second
    rounds = 1
    warmup_time = 0.0  # setup has compiled
    timeout = 900.0  # setup may compile


@functools.cache
def prepared(family: str, n: int, d: int, **options: Any) -> NDArray[np.float64]:
    """Rows that suit a family, once their tree is compiled: setup runs before every sample."""
    X = rows_for(family, n, d)
    warm_up(X, family, **options)
    return X
