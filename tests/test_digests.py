"""Trees and values, to the bit, against stored digests: see catalogue.py."""

from __future__ import annotations

import functools
import json

import pytest
from catalogue import (
    DIGESTS,
    catalogue,
    circumstances,
    digests_of,
    linear_algebra,
    uses_linear_algebra,
)

CASES = {case.name: case for case in catalogue()}
WRITTEN = json.loads(DIGESTS.read_text())
HERE = circumstances()

# Another compiler, or another library of logarithms, may round the last bit differently.
OTHERS = [
    f"{key} {HERE[key]}" for key, value in WRITTEN["circumstances"].items() if HERE[key] != value
]


def test_every_case_is_written_down():
    assert sorted(WRITTEN["cases"]) == sorted(CASES)


def test_threads_change_nothing():
    by_two = [name for name in WRITTEN["cases"] if name.endswith("-n_jobs=2")]
    assert by_two
    for name in by_two:
        assert WRITTEN["cases"][name] == WRITTEN["cases"][f"{name[:-1]}1"], name


# Rows of this case go through logarithms of NumPy, whose last digits depend on the processor.
PROBE = "poisson-greedy-brute-positive-300x1"
# Cases with the same rows whose heights differ on such a processor too.
HEIGHTS_OF_THE_PROCESSOR = ("bhc-poisson-sparse-", "bhc-diagonal_gaussian-")


@functools.cache
def other_logarithms():
    """Whether logarithms have other last digits here than where the digests were written down."""
    return digests_of(CASES[PROBE].compute())["rows"] != WRITTEN["cases"][PROBE]["rows"]


@pytest.mark.skipif(bool(OTHERS), reason=f"written down with other than {', '.join(OTHERS)}")
@pytest.mark.parametrize("name", CASES)
def test_nothing_has_changed(name):
    if uses_linear_algebra(name) and linear_algebra() != WRITTEN["linear_algebra"]:
        pytest.skip("written down with another BLAS")
    found, expected = digests_of(CASES[name].compute()), WRITTEN["cases"][name]
    alike = found["rows"] == expected["rows"] and not name.startswith(HEIGHTS_OF_THE_PROCESSOR)
    if not alike and other_logarithms():
        pytest.skip("written down on a processor with other last digits of logarithms")
    assert found["rows"] == expected["rows"], "not a matter of the engine: the rows differ"
    different = [key for key in {**expected, **found} if found.get(key) != expected.get(key)]
    assert not different, f"{' and '.join(different)} differ"
