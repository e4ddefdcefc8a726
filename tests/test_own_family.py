"""A family that a user declares in a few lines, on either backend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from trees import same_tree

from fastrbhc import families, linkage


@pytest.fixture
def own_family():
    """The example of CONTRIBUTING.md, as a user would write it."""

    @families.family(
        "times of arrival",
        separable=True,
        reducible=False,
        domain=families.Domain(lower=0.0, includes_lower=False),
    )
    class TimesOfArrival(NamedTuple):
        def divergence(family, value, mean, step):
            return (step / mean) ** 2 / (2.0 * value)

    yield TimesOfArrival()
    families._interface._REGISTER.pop("times of arrival")


def declared(cls):
    domain = families.Domain(lower=0.0, includes_lower=False)
    made = families.family("own", separable=True, reducible=False, domain=domain)(cls)
    families._interface._REGISTER.pop("own")
    return made()


def test_whatever_numba_compiles_may_be_used():
    @declared
    class WithComprehension(NamedTuple):
        def divergence(family, value, mean, step):
            return sum([factor * step * step for factor in (0.25, 0.5)])

    @declared
    class WithClosure(NamedTuple):
        def divergence(family, value, mean, step):
            square = lambda x: x * x  # noqa: E731
            return 0.75 * square(step)

    @declared
    class WithArray(NamedTuple):
        def divergence(family, value, mean, step):
            return 0.75 * np.array([step, step]).prod()

    X = np.random.default_rng(4).uniform(1.0, 9.0, size=(30, 2))
    reference = linkage(X, families.SphericalGaussian(1.0 / 1.5))
    for family in (WithComprehension, WithClosure, WithArray):
        computed = linkage(X, family)
        np.testing.assert_array_equal(computed.merges, reference.merges)
        np.testing.assert_allclose(computed.heights, reference.heights, rtol=1e-12)


@pytest.mark.parametrize("n", [20, 300, 3000])
def test_an_exception_is_heard(n):
    """Of few rows, of more, and of as many as two threads share."""

    @declared
    class Particular(NamedTuple):
        def divergence(family, value, mean, step):
            if value > 8.99:
                raise ValueError("too large", value)
            return step * step

    X = np.random.default_rng(5).uniform(1.0, 8.9, size=(n, 3))
    assert linkage(X, Particular, n_jobs=2).n_trees == 1
    X[n // 2, 1] = 9.0
    for algorithm in ("auto", "greedy", "nn_chain"):
        with pytest.raises(ValueError, match="too large"):
            linkage(X, Particular, algorithm=algorithm, n_jobs=2)
    X[n // 2, 1] = 7.0
    assert linkage(X, Particular, n_jobs=2).n_trees == 1


def test_the_same_tree_on_either_backend(own_family):
    rng = np.random.default_rng(3)
    X = rng.wald(1.0, 2.0, size=(700, 2))
    for rows, weights in ((X, None), (X, rng.uniform(0.1, 9.0, 700)), (np.ceil(4.0 * X), None)):
        trees = [
            linkage(
                rows, own_family, algorithm="greedy", neighbors=neighbors, sample_weight=weights
            )
            for neighbors in ("brute", "kd_tree")
        ]
        assert trees[0].n_trees == 1
        assert same_tree(*trees)
