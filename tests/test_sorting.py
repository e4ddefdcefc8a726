"""Sorting by digits, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from fastrbhc._engine.math import radix_sort as _sorting
from fastrbhc._engine.math.radix_sort import stable_order

N = 5_000


def hashes(rng):
    return rng.integers(0, 2**63, N).astype(np.uint64) * np.uint64(2) + np.uint64(1)


KEYS = {
    "hashes": hashes,
    "repeated hashes": lambda rng: rng.choice(hashes(rng)[:70], N),
    "heights": lambda rng: rng.gamma(1.0, size=N),
    "scales": lambda rng: 10.0 ** rng.uniform(-300, 300, N),
    "zeros of both signs": lambda rng: rng.choice([0.0, -0.0, 1.0], N),
    "ties": lambda rng: rng.integers(0, 9, N) * 0.1,
    "all equal": lambda rng: np.full(N, 0.3),
    "agreeing but for the last digits": lambda rng: 1.0 + rng.integers(0, 99, N) * 2.0**-52,
    "a few runs": lambda rng: rng.integers(0, 200, N) + rng.integers(0, 3, N) * 2.0**-40,
    "infinite": lambda rng: np.where(rng.random(N) < 0.1, np.inf, rng.random(N)),
}


@pytest.mark.fast
@pytest.mark.parametrize("kind", KEYS)
def test_like_a_stable_argsort(kind):
    keys = KEYS[kind](np.random.default_rng(0))
    before = keys.copy()
    reference = np.argsort(keys, kind="stable")
    for n in (0, 1, 2, _sorting._FEW - 1, N):
        computed = stable_order(keys[:n])
        assert computed.dtype == np.int64
        np.testing.assert_array_equal(computed, reference[reference < n])
    np.testing.assert_array_equal(keys, before)


@pytest.mark.fast
def test_long_runs_are_sorted_by_all_digits(monkeypatch):
    """Insertion sort would take a million steps for each of these."""
    lowest = []
    by_digits = _sorting._by_digits

    def noting(values, order, from_bit):
        lowest.append(from_bit)
        return by_digits(values, order, from_bit)

    monkeypatch.setattr(_sorting, "_by_digits", noting)
    stable_order(KEYS["heights"](np.random.default_rng(1)))
    assert lowest == [_sorting._LEADING]
    stable_order(KEYS["agreeing but for the last digits"](np.random.default_rng(1)))
    assert lowest == [_sorting._LEADING, _sorting._LEADING, 0]
