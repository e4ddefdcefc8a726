"""The slider, moved by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from strategies import wide_counts
from trees import forest_with_ties

from fastrbhc import RBHC, linkage

# ipywidgets 8.0 opens its channel in a way that ipykernel has since deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:The `ipykernel.comm.Comm` class:DeprecationWarning")

X = np.random.default_rng(0).normal(size=(200, 3))


def test_moving_the_slider_redraws():
    tree = linkage(X, "ward")
    box = tree.explore(X, max_points=100)
    slider, line, image = box.children
    seen = {}
    for k in (2, 5, 20):
        slider.value = tree.levels[200 - k]
        place = tree.path().at(slider.value)
        assert f": {k} clusters, the heaviest of weight" in line.value
        assert f"cost {tree.path().costs[place]:,.6g}" in line.value
        assert bytes(image.value).startswith(b"\x89PNG")
        seen[k] = bytes(image.value)
    assert len(set(seen.values())) == 3


def test_sparse_rows():
    words = wide_counts("multinomial", 90, 20_000, 0)
    tree = linkage(words, "multinomial")
    slider, line, image = tree.explore(words, max_points=50).children
    slider.value = tree.levels[90 - 3]
    assert ": 3 clusters" in line.value
    assert bytes(image.value).startswith(b"\x89PNG")


def test_the_slider_begins_at_the_chosen_threshold():
    model = RBHC("ward", threshold="gap").fit(X)
    slider, line, _ = model.dendrogram_.explore(X, max_points=50).children
    assert slider.value == pytest.approx(model.threshold_)
    assert f": {model.n_clusters_} cluster" in line.value


def test_a_tree_that_does_not_remember_its_family():
    tree = dataclasses.replace(linkage(X, "ward"), origin=None)
    with pytest.raises(ValueError, match="does not remember its family"):
        tree.explore(X)
    assert tree.explore(X, family="ward", max_points=50).children


def test_the_slider_ranges_over_few_clusters():
    tree = linkage(X, "ward")
    slider, line, _ = tree.explore(X, max_clusters=10, max_points=50).children
    slider.value = 10.0**slider.min
    assert ": 10 clusters" in line.value
    slider.value = 10.0**slider.max
    assert ": 1 cluster," in line.value


@pytest.mark.parametrize(
    ("rows", "threshold"),
    [
        ([[0.0], [1.0]], None),
        (np.zeros((3, 2)), None),
        ([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [7.0, 1.0]], 2.0),
        ([[0.0], [1.0]], 0.1),
    ],
    ids=["two", "copies", "forest", "nothing merged"],
)
def test_small_trees(rows, threshold):
    slider, line, _ = linkage(rows, "ward", threshold=threshold).explore(rows).children
    for end in (slider.min, slider.max):
        slider.value = 10.0**end
        assert "cluster" in line.value


def test_rows_that_do_not_fit():
    with pytest.raises(ValueError, match="X has 2 rows and the tree has 7"):
        forest_with_ties().explore([[0.0], [1.0]])
