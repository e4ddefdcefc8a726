"""Few points, merged in one kernel: the greedy tree, whatever the reused memory contains."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from certificates import certify_greedy
from hypothesis import given
from hypothesis import strategies as st
from strategies import FAMILIES, continuous_rows, data_sets, tied_data_sets
from trees import merged_sets, same_tree

from fastrbhc import families, linkage
from fastrbhc._engine.agglomeration.direct import MOST_POINTS
from fastrbhc._engine.geometry.contract import FEW_COLUMNS
from fastrbhc._engine.planning.plan import plan

every_family = pytest.mark.parametrize("family", FAMILIES)


def as_more_points(X, family, **options):
    algorithm = "levels" if families.as_family(family).reducible else "greedy"
    return linkage(X, family, algorithm=algorithm, neighbors="brute", **options)


@pytest.mark.fast
def test_few_points_in_few_columns_are_merged_directly():
    for n, n_features, direct in [
        (2, 1, True),
        (MOST_POINTS, FEW_COLUMNS, True),
        (MOST_POINTS + 1, FEW_COLUMNS, False),
        (MOST_POINTS, FEW_COLUMNS + 1, False),
    ]:
        for reducible in (True, False):
            chosen = plan(reducible, n, n_features, "auto", "auto", 2).algorithm
            assert (chosen == "direct") == direct
            assert plan(reducible, n, n_features, "greedy", "auto", 2).algorithm == "greedy"
            assert plan(reducible, n, n_features, "auto", "brute", 2).algorithm != "direct"


@pytest.mark.fast
@every_family
@given(data=st.data(), quantile=st.floats(0.0, 1.0))
def test_the_tree_is_that_of_other_algorithms(family, data, quantile):
    X, weights = data.draw(st.one_of(data_sets(family), tied_data_sets(family)))
    reference = as_more_points(X, family, sample_weight=weights)
    computed = linkage(X, family, sample_weight=weights)
    assert same_tree(computed, reference)
    certify_greedy(computed, X, weights, family)
    threshold = np.quantile(reference.heights, quantile)
    forest = linkage(X, family, sample_weight=weights, threshold=threshold)
    assert same_tree(forest, as_more_points(X, family, sample_weight=weights, threshold=threshold))


@every_family
@pytest.mark.parametrize("n_features", [1, 3, FEW_COLUMNS])
def test_trees_of_more_points(family, n_features):
    n_features = max(n_features, 2) if family == "multinomial" else n_features
    for n in (MOST_POINTS, 7, 9, 120):
        X = continuous_rows(family, n, n_features, seed=n)
        assert same_tree(linkage(X, family), as_more_points(X, family))


@pytest.mark.fast
def test_what_was_merged_before_leaves_no_trace():
    """Families whose parameters are the same numbers, and points with further digits or without."""

    class Own(NamedTuple):
        smoothing: float = 0.5

        def divergence(family, value, mean, step):
            return 3.0 * step * step

    register = families.family("own", separable=True, reducible=False, domain=families.Domain())
    own = register(Own)()
    families._interface._REGISTER.pop("own")
    X = np.random.default_rng(0).integers(1, 9, size=(20, 2)) / 8.0
    kinds = [
        families.SphericalGaussian(1.0),  # half the curvature is 0.5
        families.Gaussian(0.5),
        families.Poisson(0.5),
        families.Exponential(0.5),
        families.Multinomial(0.5),
        own,
    ]
    for _ in range(2):
        for family in kinds:
            assert same_tree(linkage(X, family), as_more_points(X, family)), family


def test_threads_have_memory_of_their_own():
    data = [continuous_rows("gaussian", 100, 2, seed=seed) for seed in range(8)]
    references = [linkage(X, "gaussian") for X in data]
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(lambda X: linkage(X, "gaussian"), data * 5))
    for tree, reference in zip(trees, references * 5, strict=True):
        assert same_tree(tree, reference)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_chains_of_few_points_can_be_audited(family):
    X = continuous_rows(family, 40, 2, seed=1)
    chain = linkage(X, family, algorithm="nn_chain", audit=True)
    reference = linkage(X, family)
    assert chain.audit.certified == (merged_sets(chain) == merged_sets(reference))
