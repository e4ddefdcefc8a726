"""The test of a split against rows of one population."""

from __future__ import annotations

import numpy as np
import pytest

from fastrbhc import linkage
from fastrbhc._options import LinkageOptions
from fastrbhc.assessment import splits
from fastrbhc.assessment.report import SIGNIFICANCE
from fastrbhc.assessment.splits import deciding_merges, split_p_values
from fastrbhc.families import as_family


def p_values(X, name, nodes, weights=None, seed=0):
    family = as_family(name)
    tree = linkage(X, family, sample_weight=weights)
    options = LinkageOptions(n_jobs=1).checked(family)
    rng = np.random.default_rng(seed)
    done = []
    found = split_p_values(tree, X, weights, family, np.array(nodes), options, rng, done.append)
    assert done == list(range(len(nodes) + 1))
    return found


def three_heaps(rng, n=60):
    centres = np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 7.0]])
    return (centres[:, None] + rng.normal(size=(3, n, 2))).reshape(-1, 2)


@pytest.mark.parametrize("name", ["ward", "gaussian"])
def test_splits_of_heaps_and_of_what_is_in_them(name):
    X = three_heaps(np.random.default_rng(0))
    root = 2 * len(X) - 2
    found = p_values(X, name, [root, root - 1, root - 2])
    assert (found[:2] < SIGNIFICANCE).all()
    assert found[2] > SIGNIFICANCE


def test_counts():
    rng = np.random.default_rng(1)
    X = np.r_[rng.poisson(3.0, (80, 3)), rng.poisson([3.0, 20.0, 3.0], (80, 3))].astype(float)
    found = p_values(X, "poisson", [318, 317])
    assert found[0] < SIGNIFICANCE
    assert found[1] > SIGNIFICANCE


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setattr(splits, "_MOST_ROWS", 200)
    X = three_heaps(np.random.default_rng(2), 300)
    found = p_values(X, "ward", [1798, 1797, 1796])
    assert (found[:2] < SIGNIFICANCE).all()
    assert found[2] > SIGNIFICANCE


def test_weights():
    rng = np.random.default_rng(3)
    X, weights = three_heaps(rng), rng.integers(0, 4, 180).astype(float)
    found = p_values(X, "ward", [358, 357, 356], weights)
    assert (found[:2] < SIGNIFICANCE).all()
    assert found[2] > SIGNIFICANCE


def test_splits_that_cannot_be_tested():
    assert p_values(np.array([[0.0], [9.0]]), "ward", [2])[0] > SIGNIFICANCE
    assert p_values(np.ones((5, 2)), "ward", [8]).tolist() == [1.0]


def test_merges_are_undone_while_one_part_stays_whole():
    # (((0, 1), 2), ((3, 4), 5)): the first part is divided second, the other one third.
    tree = linkage([[0.0], [1.0], [4.0], [50.0], [51.0], [53.0]], "ward")
    inside = np.arange(5)[::-1]
    assert splits._numbers_undone(tree, 10, inside) == [1, 2]
    lonely = linkage([[0.0], [1.0], [4.0], [900.0]], "ward")
    assert splits._numbers_undone(lonely, 6, np.arange(3)[::-1]) == [1, 2, 3]


def test_siblings_with_few_distinct_rows_are_passed_over():
    rng = np.random.default_rng(4)
    X = np.r_[rng.normal(size=(20, 1)), rng.normal(size=(20, 1)) + 50.0, np.full((9, 1), 60.0)]
    tree = linkage(X, "ward")
    n, points = len(X), np.unique(X, return_inverse=True)[1].ravel()
    nodes = np.array([tree.merges[-1][0], *tree.merges[-2]])
    sizes = [tree.members(node).size for node in nodes]
    assert sorted(sizes) == [9, 20, 20]
    computed = deciding_merges(tree, nodes, points, None)
    root = 2 * n - 2
    assert computed.tolist() == [-1 if size == 9 else root for size in sizes]
    weights = np.where(X[:, 0] < 20.0, 0.0, 1.0)
    assert deciding_merges(tree, nodes, points, weights).tolist() == [-1, -1, -1]
