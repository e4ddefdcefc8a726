"""User-defined families of a few lines, with both backends."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from trees import same_tree

import fastrbhc
from fastrbhc import RBHC, dissimilarity, families, linkage, taylor_dissimilarity
from fastrbhc._engine.clusters.record import difference, merge_means
from fastrbhc.families import _interface


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
    """Few rows, more rows, and enough rows for two threads."""

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


class LeastGeometry(NamedTuple):
    """Ward's cost, with only the two methods that have no default."""

    factor: float

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        w0, w1 = clusters.weights[i], clusters.weights[j]
        total = 0.0
        for k in range(clusters.means.shape[0]):
            step = difference(clusters, i, j, k)
            total += step * step
        return total * (w0 * w1 / (w0 + w1)) * geometry.factor

    def merge(geometry, clusters, i, j, scratch):
        merge_means(clusters, i, j)


@pytest.fixture
def least_family():
    """A family that is not separable, with only what is required."""

    @families.family("least", separable=False, reducible=False, domain=families.Domain())
    class Least(NamedTuple):
        def geometry(self, n_features):
            return LeastGeometry(0.5)

    yield Least()
    families._interface._REGISTER.pop("least")


@pytest.mark.parametrize("algorithm", ["greedy", "nn_chain"])
def test_two_methods_are_enough(least_family, algorithm):
    rng = np.random.default_rng(4)
    for X in (rng.normal(size=(300, 2)), rng.integers(0, 9, (300, 2))):
        ward = linkage(X, "ward", algorithm=algorithm)
        for neighbors in ("brute", "kd_tree"):
            tree = linkage(X, least_family, algorithm=algorithm, neighbors=neighbors, audit=True)
            assert same_tree(tree, ward)
            assert tree.audit.method == "exact"
            assert tree.audit.violations == 0


def test_two_methods_are_enough_for_groups_and_new_rows(least_family):
    X = np.random.default_rng(5).normal(size=(60, 3))
    assert dissimilarity(X[:9], X[9:], least_family) == dissimilarity(X[:9], X[9:], "ward")
    own, ward = (RBHC(family, n_clusters=4).fit(X[:40]) for family in (least_family, "ward"))
    np.testing.assert_array_equal(own.predict(X[40:]), ward.predict(X[40:]))
    with pytest.raises(TypeError, match="does not define its second derivative"):
        taylor_dissimilarity(X[:9], X[9:], least_family)


def test_a_class_of_the_same_name_has_kernels_of_its_own():
    """As in a notebook whose cell is executed again after a change."""

    def factor(number):
        class Changed(NamedTuple):
            def divergence(family, value, mean, step):
                return number * step * step

        return declared(Changed)

    X = [[1.0], [3.0], [9.0]]
    for number in (1.0, 5.0, 3.0):
        family = factor(number)
        assert dissimilarity(X[:1], X[1:2], family) == 2.0 * number
        assert linkage(X, family).heights[0] == 2.0 * number


# Declarations


class ExponentialLoss(NamedTuple):
    """φ(x) = exp(rate·x)."""

    rate: float = 1.0

    def divergence(family, value, mean, step):
        stretched = family.rate * step
        return math.exp(family.rate * mean) * (math.expm1(stretched) - stretched)


@pytest.fixture(scope="module")
def exponential_loss():
    yield families.family(
        "exponential_loss", separable=True, reducible=False, domain=families.Domain()
    )(ExponentialLoss)
    del _interface._REGISTER["exponential_loss"]


def by_definition(X0, X1, rate):
    def f(rows):
        return len(rows) * np.exp(rate * rows.mean(axis=0)).sum()

    return f(X0) + f(X1) - f(np.concatenate([X0, X1]))


def greedy_heights(X, rate):
    """Greedy merging of the nearest pair, by the definition."""
    groups, heights = [X[i : i + 1] for i in range(len(X))], []
    while len(groups) > 1:
        pairs = list(itertools.combinations(range(len(groups)), 2))
        values = [by_definition(groups[i], groups[j], rate) for i, j in pairs]
        i, j = pairs[int(np.argmin(values))]
        heights.append(min(values))
        groups[i] = np.concatenate([groups[i], groups[j]])
        del groups[j]
    return heights


def test_one_method_makes_a_family(exponential_loss):
    X = np.random.default_rng(9).normal(size=(15, 2))
    family = exponential_loss(rate=2)
    assert families.as_family("exponential_loss") == exponential_loss(1.0)
    reference = by_definition(X[:4], X[4:], 2.0)
    assert fastrbhc.dissimilarity(X[:4], X[4:], family) == pytest.approx(reference, rel=1e-12)
    tree = fastrbhc.linkage(X, family)
    in_order_made = tree.heights[np.argsort(tree.steps)]
    np.testing.assert_allclose(in_order_made, greedy_heights(X, 2.0), rtol=1e-10)


class Allocating(NamedTuple):
    """Squares, in a roundabout way."""

    rate: float = 1.0

    def divergence(family, value, mean, step):
        steps = np.zeros(2)
        steps[1] = step
        return (steps * steps).sum()


def test_a_method_may_allocate():
    name = "allocating"
    allocating = families.family(name, separable=True, reducible=False, domain=families.Domain())(
        Allocating
    )
    try:
        X = np.random.default_rng(10).normal(size=(15, 2))
        half = fastrbhc.linkage(X, families.SphericalGaussian(), algorithm="nn_chain").heights
        tree = fastrbhc.linkage(X, allocating(), algorithm="nn_chain")
        np.testing.assert_allclose(tree.heights, 2.0 * half)
    finally:
        del _interface._REGISTER[name]


class WithoutMethods(NamedTuple):
    rate: float = 1.0


@pytest.mark.fast
@pytest.mark.parametrize(("separable", "method"), [(True, "divergence"), (False, "geometry")])
def test_a_declaration_that_misses_its_method(separable, method):
    declare = families.family(
        "incomplete", separable=separable, reducible=False, domain=families.Domain()
    )
    with pytest.raises(TypeError, match=f"has to define the method '{method}'"):
        declare(WithoutMethods)
    assert "incomplete" not in families.registered()


class WithoutDomain(NamedTuple):
    rate: float = 1.0

    def divergence(family, value, mean, step):
        return step * step


@pytest.mark.fast
def test_a_declaration_that_misses_its_domain():
    declare = families.family("incomplete", separable=True, reducible=False)
    with pytest.raises(TypeError, match="WithoutDomain has to state its domain"):
        declare(WithoutDomain)
    assert "incomplete" not in families.registered()
