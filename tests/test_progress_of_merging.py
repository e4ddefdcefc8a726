"""No algorithm goes on for ever, whatever a dissimilarity returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from fastrbhc import families, linkage
from fastrbhc._engine.agglomeration.driver import OUT_OF_BUDGET, STUCK, run_interruptibly
from fastrbhc._engine.clusters.record import merge_means


class CyclicGeometry(NamedTuple):
    """Not symmetric: every point's nearest neighbour is the next one on a circle."""

    circumference: float

    def dissimilarity(geometry, clusters, i, j, cutoff, scratch):
        return (clusters.means[0, j] - clusters.means[0, i]) % geometry.circumference

    def merge(geometry, clusters, i, j, scratch):
        merge_means(clusters, i, j)


@pytest.fixture
def cyclic_family():
    @families.family("cyclic", separable=False, reducible=True, domain=families.Domain())
    class Cyclic(NamedTuple):
        def geometry(self, n_features):
            return CyclicGeometry(300.0)

    yield Cyclic()
    families._interface._REGISTER.pop("cyclic")


@pytest.mark.parametrize("algorithm", ["levels", "nn_chain"])
@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
def test_a_circle_of_neighbours_is_noticed(cyclic_family, algorithm, neighbors):
    X = np.arange(300.0)[:, None]
    with pytest.raises(RuntimeError, match="made no progress"):
        linkage(X, cyclic_family, algorithm=algorithm, neighbors=neighbors)


@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
def test_a_union_nearer_than_its_parts_by_rounding(neighbors):
    """Directions on one line: d is 2 for the parts and, but for its last digit, for the union."""
    X, weights = [[1.2, -0.06], [-1.2, 0.06], [0.2, -0.01]], [2.0, 1.0, 4.0]
    options = {"sample_weight": weights, "threshold": 1.9999999999999998}
    reference = linkage(X, "cosine", algorithm="greedy", **options)
    computed = linkage(X, "cosine", algorithm="levels", neighbors=neighbors, **options)
    assert computed.n_trees <= 2
    np.testing.assert_allclose(computed.heights, reference.heights, atol=1e-15)


def test_corrections_end(cyclic_family):
    """On a circle with uneven gaps every cluster's neighbour is nearer to the next one."""
    X = np.cumsum(np.arange(1.0, 24.0))[:, None]
    with pytest.raises(RuntimeError, match="made no progress"):
        linkage(X, cyclic_family, algorithm="levels")


@pytest.mark.fast
def test_a_kernel_that_is_stuck_is_not_called_again():
    statuses = iter([OUT_OF_BUDGET, STUCK])
    with pytest.raises(RuntimeError, match="please report it"):
        run_interruptibly(lambda budget: next(statuses), {}, lambda: None)
    assert next(statuses, None) is None
