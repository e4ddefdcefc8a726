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
