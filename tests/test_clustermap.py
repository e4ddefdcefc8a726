"""Heat maps with trees: what they show, against means of rows."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from fastrbhc import Dendrogram, linkage
from fastrbhc.plotting import clustermap

mpl.use("agg")

RNG = np.random.default_rng(0)
GROUPS = np.repeat([0, 1, 2], [30, 20, 10])
RATES = np.array([[3.0, 20.0, 8.0, 1.0], [30.0, 2.0, 8.0, 9.0], [9.0, 9.0, 1.0, 20.0]])
FRAME = pd.DataFrame(RNG.poisson(RATES[GROUPS]), columns=["ants", "bees", "cats", "dogs"])
TREE = linkage(FRAME, "poisson")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def z_scores(means, weights):
    centre = np.average(means, axis=0, weights=weights)
    widths = np.sqrt(np.average((means - centre) ** 2, axis=0, weights=weights))
    return (means - centre) / widths


def drawn(found):
    """The numbers of the picture, and the edges of its rows."""
    mesh = found.ax_heatmap.collections[0]
    return np.ma.filled(mesh.get_array(), np.nan), mesh.get_coordinates()[:, 0, 1]


def means_of(tree, nodes, X):
    return np.array([X[tree.members(node)].mean(axis=0) for node in nodes])


@pytest.mark.parametrize("row_heights", ["rows", "equal"])
@pytest.mark.parametrize("max_leaves", [7, 200])
def test_parts_are_averaged(row_heights, max_leaves):
    found = clustermap(FRAME, TREE, n_clusters=3, row_heights=row_heights, max_leaves=max_leaves)
    k = min(max_leaves, 60)
    assert found.data.shape == (k, 4)
    sizes = np.array([len(TREE.members(node)) for node in found.nodes])
    assert sizes.sum() == 60
    if row_heights == "rows" and k == 7:  # the parts with the most rows are divided
        assert sizes.max() < 20
    means = means_of(TREE, found.nodes, FRAME.to_numpy())
    columns = [FRAME.columns.get_loc(name) for name in found.columns]
    reference = z_scores(means, sizes)[:, columns]
    np.testing.assert_allclose(found.data, reference, atol=1e-12)
    values, edges = drawn(found)
    np.testing.assert_array_equal(values, found.data)
    heights = sizes if row_heights == "rows" else np.ones(k)
    np.testing.assert_array_equal(np.diff(edges), heights)


def test_means_as_they_are():
    found = TREE.plot_clustermap(FRAME, z_score=False, column_tree=False, max_leaves=5)
    assert found.columns == list(FRAME.columns)
    np.testing.assert_allclose(found.data, means_of(TREE, found.nodes, FRAME.to_numpy()))
    assert found.ax_col_dendrogram is None
    assert found.ax_row_colors is None
    assert found.ax_cbar.get_ylabel() == "mean"


def test_clusters_are_a_strip_of_colours():
    found = TREE.plot_clustermap(FRAME, n_clusters=3)
    numbers = {text.get_text() for text in found.ax_row_colors.texts}
    assert numbers == {"0", "1", "2"}
    labels = TREE.cut(n_clusters=3)[found.nodes]
    borders = np.flatnonzero(np.diff(labels)) + 1
    lines = [line.get_ydata()[0] for line in found.ax_heatmap.lines]
    assert lines == borders.tolist()


def test_branches_end_at_the_middle_of_their_part():
    found = TREE.plot_clustermap(FRAME, max_leaves=7)
    edges = drawn(found)[1]
    middles = 0.5 * (edges[1:] + edges[:-1])
    segments = found.ax_row_dendrogram.collections[0].get_segments()
    ends = {float(y) for segment in segments for _, y in segment}
    assert set(middles) <= ends
    assert found.ax_row_dendrogram.get_ylim() == found.ax_heatmap.get_ylim() == (60.0, 0.0)


def test_columns_with_a_tree_of_ones_own():
    own = linkage(np.array([[0.0], [9.0], [1.0], [10.0]]), "ward")
    found = clustermap(FRAME, TREE, column_tree=own)
    assert found.columns == [FRAME.columns[k] for k in own.leaves_order()]
    with pytest.raises(ValueError, match="3 leaves, and there are 4 columns"):
        clustermap(FRAME, TREE, column_tree=linkage([[0.0], [1.0], [3.0]], "ward"))


def test_of_many_columns_the_telling_ones():
    X = RNG.poisson(1.0, size=(60, 300)).astype(float)
    X[:, [7, 100, 250]] += 5.0 * np.eye(3)[GROUPS]
    tree = linkage(X, "poisson")
    dense = clustermap(X, tree, labels=GROUPS, max_columns=3, optimal=False)
    assert sorted(dense.columns) == ["x100", "x250", "x7"]
    assert dense.ax_heatmap.get_xlabel() == "the 3 most telling of 300 columns"
    rows = sparse.csr_array(X)
    stays = clustermap(rows, tree, labels=GROUPS, max_columns=3, optimal=False)
    assert stays.columns == dense.columns
    np.testing.assert_allclose(stays.data, dense.data, atol=1e-9)


def test_missing_cells_are_seen_as_such():
    X = FRAME.to_numpy().astype(float)
    X[3, 1] = X[40, 2] = np.nan
    tree = linkage(X, "poisson", missing="ignore")
    found = clustermap(X, tree, column_tree=False, z_score=False)
    np.testing.assert_array_equal(found.data, X[found.nodes])
    assert np.isnan(drawn(found)[0]).sum() == 2


def test_columns_of_different_kinds():
    table = FRAME[["ants"]].assign(
        age=RNG.normal(30.0 + 20.0 * GROUPS, 2.0), town=np.array(["Bonn", "Paris", "Rome"])[GROUPS]
    )
    tree = linkage(table, {"poisson": ["ants"], "gaussian": ["age"], "categorical": ["town"]})
    found = clustermap(table, tree, column_tree=False, z_score=False, max_leaves=6)
    assert set(found.columns) == {"ants", "age", "town=Bonn", "town=Paris", "town=Rome"}
    for row, node in zip(found.data, tree_rows(tree, found), strict=True):
        shown = dict(zip(found.columns, row, strict=True))
        part = table.iloc[node]
        assert shown["age"] == pytest.approx(part["age"].mean())
        assert shown["town=Rome"] == pytest.approx((part["town"] == "Rome").mean())


def tree_rows(tree, found):
    return [tree.members(node) for node in found.nodes]


def test_small_trees_and_forests():
    two = clustermap([[0.0, 1.0], [1.0, 1.0]], linkage([[0.0, 1.0], [1.0, 1.0]], "ward"))
    # A column without differences has no z-scores.
    assert two.data[:, two.columns.index("x1")].tolist() == [0.0, 0.0]
    one = clustermap([[0.0], [1.0], [5.0]], linkage([[0.0], [1.0], [5.0]], "ward"))
    assert one.ax_col_dendrogram is None
    alone = Dendrogram(np.empty((0, 2), np.int64), np.empty(0), np.empty(0), 1)
    assert clustermap([[3.0, 4.0]], alone, family="ward").data.tolist() == [[0.0, 0.0]]
    forest = linkage(FRAME, "poisson", threshold=60.0)
    assert forest.n_trees > 1
    found = clustermap(FRAME, forest)
    assert sum(len(forest.members(node)) for node in found.nodes) == 60
    assert found.ax_row_colors is not None


def test_a_figure_of_ones_own():
    import matplotlib.pyplot as plt

    left, right = plt.figure(figsize=(10, 4), layout="constrained").subfigures(1, 2)
    assert clustermap(FRAME, TREE, figure=left).figure is left
    clustermap(FRAME, TREE, figure=right, n_clusters=3, cmap="magma")
    assert len(left.axes) == 4
    assert len(right.axes) == 5


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="59 rows and the tree has 60"):
        clustermap(FRAME[1:], TREE)
    with pytest.raises(ValueError, match="max_leaves has to be at least 2"):
        clustermap(FRAME, TREE, max_leaves=1)
    with pytest.raises(ValueError, match="row_heights has to be one of"):
        clustermap(FRAME, TREE, row_heights="tall")
