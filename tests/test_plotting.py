"""Plots: their elements are counted, and pictures are compared with stored ones."""

from __future__ import annotations

import functools
import io
import pickle

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from pictures import difference
from scipy import sparse
from strategies import wide_counts
from trees import chain, forest_with_ties

import fastrbhc
from fastrbhc import RBHC, Dendrogram, linkage
from fastrbhc.plotting import plot_clusters
from fastrbhc.plotting._frame import room_beside
from fastrbhc.plotting._style import FAINT, HUES, INK, LIGHT_INK, luminance, number, text_colour
from fastrbhc.plotting._ticks import RootLocator
from fastrbhc.plotting.clusters import ellipses, plane_of

mpl.use("agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def heaps(seed=0, n=25):
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [6.0, 1.0], [2.0, 7.0], [9.0, 8.0]])
    return (centres[:, None] + rng.normal(size=(4, n, 2))).reshape(-1, 2)


def counts(seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.poisson(rate, (40, 2)) for rate in ([5, 9], [30, 12], [14, 40])])


HEAPS = heaps()
COUNTS = counts()
GROUPS = np.repeat([0, 1, 2], 40)


@functools.cache
def whole():
    return linkage(HEAPS, "ward")


@functools.cache
def inverted():
    return linkage(np.random.default_rng(4).normal(size=(25, 2)), "gaussian")


def tip_texts(ax):
    return [text.get_text() for text in ax.get_xticklabels()]


def sizes_of(texts):
    return [int(text.strip("()").replace(",", "")) if text[0] == "(" else 1 for text in texts]


def annotations(ax):
    return [text.get_text() for text in ax.texts]


def colours_of(collection):
    return {mpl.colors.to_hex(colour) for colour in collection.get_colors()}


# Pictures

PICTURES = {
    "tree": lambda ax: whole().plot(ax, n_clusters=4),
    "tree_at_threshold": lambda ax: whole().plot(ax, threshold=60.0, max_leaves=12),
    "tree_plain": lambda ax: whole().plot(ax, max_leaves=20, scale="log"),
    "tree_of_two": lambda ax: linkage([[0.0], [1.0]], "ward").plot(ax, n_clusters=2),
    "tree_inversions": lambda ax: inverted().plot(ax, n_clusters=3),
    "tree_inversions_raw": lambda ax: inverted().plot(ax, n_clusters=3, raw_heights=True),
    "tree_linear": lambda ax: whole().plot(ax, n_clusters=7, max_leaves=10, scale="linear"),
    "forest": lambda ax: forest_with_ties().plot(ax),
    "heights": lambda ax: whole().plot_heights(ax, n_clusters=4),
    "heights_at_threshold": lambda ax: whole().plot_heights(ax, threshold=30.0, scale="log"),
    "path": lambda ax: whole().path().plot(ax),
    "clusters_gaussian": lambda ax: plot_clusters(HEAPS, whole().cut(n_clusters=4), ax),
    "clusters_ward": lambda ax: plot_clusters(HEAPS, whole().cut(n_clusters=14), ax, family="ward"),
    "clusters_poisson": lambda ax: plot_clusters(COUNTS, GROUPS, ax, family="poisson"),
    "tree_left": lambda ax: whole().plot(ax, n_clusters=4, max_leaves=12, orientation="left"),
    "tree_right": lambda ax: inverted().plot(
        ax, n_clusters=3, orientation="right", raw_heights=True
    ),
    "forest_bottom": lambda ax: forest_with_ties().plot(ax, orientation="bottom"),
    "clusters_elsewhere": lambda ax: plot_clusters(
        None, whole().cut(n_clusters=4), ax, coordinates=HEAPS @ [[1.0, 2.0], [0.5, -1.0]]
    ),
    "assessment": lambda ax: whole().stability(HEAPS, family="ward", n_clusters=5).plot(ax),
    "clusters_one_column": lambda ax: plot_clusters(COUNTS[:, :1], GROUPS, ax, family="poisson"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture(name, tmp_path):
    assert difference(name, PICTURES[name], tmp_path) is None


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("tree", lambda ax: whole().plot(ax, n_clusters=5)),
        ("tree_at_threshold", lambda ax: whole().plot(ax, threshold=90.0, max_leaves=12)),
        ("tree_inversions", PICTURES["tree_inversions_raw"]),
        ("heights", lambda ax: whole().plot_heights(ax, n_clusters=5)),
        ("heights_at_threshold", lambda ax: whole().plot_heights(ax, threshold=40.0, scale="log")),
        ("clusters_gaussian", lambda ax: plot_clusters(HEAPS, whole().cut(n_clusters=3), ax)),
        (
            "clusters_poisson",
            lambda ax: plot_clusters(COUNTS, (GROUPS + 1) % 3, ax, family="poisson"),
        ),
    ],
)
def test_the_comparison_notices_another_cut_or_colour(name, draw, tmp_path):
    assert "RMS" in difference(name, draw, tmp_path)


@pytest.mark.parametrize("name", ["tree", "forest", "heights", "clusters_gaussian"])
def test_the_comparison_notices_another_shade(name, tmp_path, monkeypatch):
    shades = (HUES[0], "#c88a00", *HUES[2:])
    # Bands of heights take their colour from there.
    for module in ("_style", "heights"):
        monkeypatch.setattr(f"fastrbhc.plotting.{module}.HUES", shades)
    assert "RMS" in difference(name, PICTURES[name], tmp_path)


# What the tree remembers


def test_plots_use_the_chosen_threshold():
    model = RBHC("ward", threshold="gap").fit(HEAPS)
    tree, level = model.dendrogram_, model.threshold_
    assert tree.n_trees == 1
    reference = tree.plot(threshold=level)
    computed = tree.plot()
    assert computed.get_title(loc="left") == reference.get_title(loc="left")
    assert f"{model.n_clusters_} clusters" in computed.get_title(loc="left")
    assert colours_of(computed.collections[0]) == colours_of(reference.collections[0])
    assert annotations(computed) == annotations(reference)
    title = tree.plot_heights(threshold=level).get_title(loc="left")
    assert tree.plot_heights().get_title(loc="left") == title
    assert f"{model.n_clusters_} clusters" in title


def test_plots_use_the_chosen_number_of_clusters():
    tree = RBHC("ward", n_clusters=7).fit(HEAPS).dendrogram_
    assert "7 clusters" in tree.plot().get_title(loc="left")
    assert "4 clusters" in tree.plot(n_clusters=4).get_title(loc="left")


def test_rows_are_drawn_with_the_family_of_the_tree():
    frame = pd.DataFrame(COUNTS, columns=["apples", "pears"])
    tree = linkage(frame, "poisson")
    computed = tree.plot_clusters(COUNTS, n_clusters=3)
    reference = plot_clusters(COUNTS, tree.cut(n_clusters=3), family="poisson")
    for found, expected in zip(computed.patches, reference.patches, strict=True):
        assert (found.width, found.height) == (expected.width, expected.height)
    assert (computed.get_xlabel(), computed.get_ylabel()) == ("apples", "pears")
    other = tree.plot_clusters(COUNTS, n_clusters=3, family="ward")
    assert other.patches[0].width != computed.patches[0].width
    with pytest.raises(ValueError, match="no λ was chosen"):
        tree.plot_clusters(COUNTS)


# Dendrograms


def test_leaves_tell_their_sizes():
    ax = whole().plot(max_leaves=10)
    assert len(tip_texts(ax)) == 10
    assert sum(sizes_of(tip_texts(ax))) == 100
    many = chain(5_000).plot(max_leaves=3)
    assert tip_texts(many) == ["4999", "4998", "(4,998)"]


def test_small_trees_are_drawn_whole():
    ax = linkage([[0.0], [1.0], [5.0]], "ward").plot(names=["ant", "bee", "cow"])
    assert tip_texts(ax) == ["cow", "ant", "bee"]
    assert ax.get_title(loc="left") == "3 rows"
    assert colours_of(ax.collections[0]) == {INK}


def test_branches_have_the_colours_of_the_cut():
    ax = whole().plot(n_clusters=4)
    assert colours_of(ax.collections[0]) == {*HUES[:4], FAINT}
    assert sorted(annotations(ax)) == ["0", "1", "2", "3", "4 clusters"]
    # Left to right, each cluster's leaves have its colour, and its number stands below.
    labels = whole().cut(n_clusters=4)[whole().leaves_order()]
    order = list(dict.fromkeys(labels.tolist()))
    drawn = list(dict.fromkeys(text.get_color() for text in ax.get_xticklabels()))
    assert drawn == [text_colour(HUES[label], ax) for label in order]
    numbers = [text for text in ax.texts if text.get_text().isdigit()]
    numbers.sort(key=lambda text: text.xy[0])
    assert [int(text.get_text()) for text in numbers] == order


def test_the_line_separates_what_is_merged_from_what_is_not():
    for k in (2, 4, 9):
        ax = whole().plot(n_clusters=k)
        (line,) = ax.lines
        assert whole().levels[99 - k] < line.get_ydata()[0] <= whole().levels[100 - k]
    (line,) = whole().plot(threshold=12.5).lines
    assert line.get_ydata()[0] == 12.5


def test_no_line_where_no_threshold_gives_the_clusters():
    grid = linkage([[0.0], [1.0], [10.0], [11.0]], "ward")
    assert not grid.plot(n_clusters=3).lines  # two merges at the same height
    assert not whole().plot(n_clusters=1).lines
    assert not whole().plot(threshold=np.inf).lines


def test_labels_from_elsewhere():
    labels = np.repeat([2, 0, -1, 1], 25)
    ax = whole().plot(labels=labels, threshold=50.0)
    assert colours_of(ax.collections[0]) == {HUES[0], HUES[1], HUES[2], FAINT}
    assert ax.lines[0].get_ydata()[0] == 50.0
    with pytest.raises(ValueError, match="either labels or n_clusters"):
        whole().plot(labels=labels, n_clusters=3)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        whole().plot(labels=[0, 1, 2])
    with pytest.raises(TypeError, match="whole numbers"):
        whole().plot(labels=np.zeros(100))


def test_a_forest_reaches_up_to_its_threshold():
    forest = forest_with_ties()
    ax = forest.plot()
    assert annotations(ax)[0] == "λ = 20"
    assert ax.lines[0].get_ydata()[0] == 20.0
    tops = [max(y for _, y in path.vertices) for path in ax.collections[0].get_paths()]
    assert sum(top == 20.0 for top in tops) == 3
    assert sum(sizes_of(tip_texts(ax))) == 7


def test_the_largest_of_many_trees():
    rows = np.random.default_rng(0).uniform(size=(400, 2))
    forest = linkage(rows, "ward", threshold=1e-3)
    assert forest.n_trees > 100
    ax = forest.plot()
    assert ax.get_title(loc="left").startswith(f"The 20 largest of {forest.n_trees:,} trees")
    sizes = np.sort(np.bincount(forest.cut(threshold=forest.threshold)))[::-1]
    assert sum(sizes_of(tip_texts(ax))) == sizes[:20].sum()
    assert len(tip_texts(ax)) == 40


def test_nothing_was_merged():
    ax = linkage([[0.0], [1.0], [5.0]], "ward", threshold=0.1).plot()
    assert tip_texts(ax) == ["0", "1", "2"]


def test_copies_of_one_row():
    ax = linkage(np.zeros((5, 2)), "ward").plot(n_clusters=2)
    assert ax.get_ylim()[1] > 0.0
    assert linkage(np.zeros((5, 2)), "ward").plot(scale="log").get_ylim()[1] > 0.0


def test_heights_of_inversions():
    row = int(np.flatnonzero(inverted().levels > inverted().heights)[0])

    def bars(ax):
        return {path.vertices[0, 1] for path in ax.collections[0].get_paths()}

    assert inverted().heights[row] in bars(inverted().plot(raw_heights=True))
    assert inverted().heights[row] not in bars(inverted().plot())
    assert set(inverted().levels) <= bars(inverted().plot())


def odds_against():
    """A tree whose heights are log odds, negative where a merge is likely."""
    merges = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]])
    heights = np.array([-6.0, -4.0, -5.0, -1.0, 3.0])
    return Dendrogram(merges, heights, np.array([2.0, 2.0, 2.0, 4.0, 6.0]), 6)


@pytest.mark.parametrize("scale", ["sqrt", "linear"])
def test_negative_heights_are_above_the_leaves(scale):
    ax = odds_against().plot(labels=[0, 0, 0, 0, 1, 1], threshold=0.0, scale=scale)
    paths = ax.collections[0].get_paths()
    floor = ax.get_ylim()[0]
    assert floor < -6.0
    assert min(path.vertices[:, 1].min() for path in paths) == floor
    assert {-6.0, -4.0, -1.0, 3.0} <= {path.vertices[0, 1] for path in paths}
    for k in range(1, 6):
        ax = odds_against().plot_heights(n_clusters=k, scale=scale)
        assert ax.lines[0].get_ydata().tolist() == [3.0, -1.0, -4.0, -4.0, -6.0]
        assert ax.get_ylim()[0] < -6.0
    assert odds_against().path().plot().get_xscale() == "linear"


def test_more_clusters_have_more_leaves():
    assert len(tip_texts(whole().plot(n_clusters=30))) == 60
    assert len(tip_texts(whole().plot(n_clusters=60))) == 80
    assert len(tip_texts(whole().plot(n_clusters=90))) == 40  # too many to be visible


@pytest.mark.parametrize("orientation", ["top", "bottom", "left", "right"])
def test_the_root_is_on_the_side_that_is_asked_for(orientation):
    ax = whole().plot(n_clusters=4, max_leaves=12, orientation=orientation)
    upright = orientation in ("top", "bottom")
    heights = ax.get_ylim() if upright else ax.get_xlim()
    assert (heights[0] < heights[1]) == (orientation in ("top", "right"))
    assert ax.get_ylim()[0] > ax.get_ylim()[1] or orientation in ("top",)
    tips = (ax.xaxis if upright else ax.yaxis).get_ticklabels()
    assert [text.get_text() for text in tips] == tip_texts(whole().plot(max_leaves=12))
    reference = whole().plot(n_clusters=4, max_leaves=12).collections[0].get_segments()
    computed = ax.collections[0].get_segments()
    for expected, found in zip(reference, computed, strict=True):
        np.testing.assert_array_equal(found if upright else found[:, ::-1], expected)


def test_an_order_of_ones_own():
    order = whole().leaves_order(optimal=True, X=HEAPS)
    ax = whole().plot(order=order, max_leaves=100)
    assert tip_texts(ax) == [str(row) for row in order]
    assert sizes_of(tip_texts(whole().plot(order=order, max_leaves=3)))
    for wrong, words in [
        (order[1:], "each of the 100 rows"),
        (np.zeros(100, int), "each of the rows 0 to 99 once"),
        (np.arange(100)[::-1] ^ 1, "have to stand side by side"),
    ]:
        with pytest.raises(ValueError, match=words):
            whole().plot(order=wrong)


def outside(ax):
    """By how many pixels texts reach out of the figure, on each side."""
    ax.figure.draw_without_rendering()
    box, whole = ax.get_tightbbox(), ax.figure.bbox
    beyond = [whole.x0 - box.x0, whole.y0 - box.y0, box.x1 - whole.x1, box.y1 - whole.y1]
    return [round(pixels) for pixels in beyond if pixels > 0.5]


LONG = [f"Quercus robur subsp. pedunculiflora {row}" for row in range(100)]


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.0, 2.2)])
@pytest.mark.parametrize("orientation", ["top", "bottom", "left", "right"])
def test_no_text_is_clipped_on_axes_of_ones_own(orientation, size):
    import matplotlib.pyplot as plt

    for names, k in [(None, None), (LONG, 4), (LONG, 20)]:
        _, ax = plt.subplots(figsize=size)
        whole().plot(ax, n_clusters=k, names=names, orientation=orientation)
        assert outside(ax) == []
        assert any("√" in text or "square-root" in text for text in words_of(ax))


def words_of(ax):
    return [ax.get_xlabel(), ax.get_ylabel(), *annotations(ax)]


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.0, 2.2)])
def test_no_text_of_the_other_plots_is_clipped(size):
    import matplotlib.pyplot as plt

    for draw in (
        lambda ax: whole().plot_heights(ax, n_clusters=4),
        lambda ax: plot_clusters(HEAPS, whole().cut(n_clusters=4), ax),
        lambda ax: plot_clusters(COUNTS[:, :1], GROUPS - 1, ax, family="poisson"),
    ):
        _, ax = plt.subplots(figsize=size)
        assert outside(draw(ax)) == []


def test_axes_say_that_their_scale_is_not_linear():
    words = {
        "sqrt": (" (square-root scale)", " (√ scale)"),
        "log": (" (logarithmic scale)", " (log scale)"),
        "linear": ("", ""),
    }
    for scale, (long, short) in words.items():
        assert whole().plot(scale=scale).get_ylabel() == "height of a merge" + long
        label = whole().plot_heights(scale=scale).get_ylabel()
        assert label == "height of the merge into k − 1" + short


def test_there_is_room_up_to_the_next_axes():
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2)
    gap = (right.get_position().x0 - left.get_position().x1) * 72.0 * figure.get_figwidth()
    assert 0.5 * gap < room_beside(left, "right") < gap
    assert room_beside(left, "left") == pytest.approx(0.125 * 72.0 * figure.get_figwidth())
    assert room_beside(plt.subplots(layout="constrained")[1], "left") == np.inf


def test_text_can_be_read_on_any_background():
    import matplotlib.pyplot as plt

    for style, expected in (("default", INK), ("dark_background", LIGHT_INK)):
        with plt.style.context(style):
            ax = whole().plot(n_clusters=12)
            assert ax.yaxis.label.get_color() == expected
            behind = luminance(ax.get_facecolor())
            for text in (*ax.texts, *ax.get_xticklabels()):
                low, high = sorted([luminance(text.get_color()), behind])
                assert (high + 0.05) / (low + 0.05) >= 4.5


def test_a_legend_has_the_colours_that_no_number_explains():
    import matplotlib.pyplot as plt

    assert whole().plot(n_clusters=4).get_legend() is None
    ax = whole().plot(plt.subplots()[1], labels=np.arange(100) % 5, max_leaves=100)
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown == ["0", "1", "2", "3", "4"]


def test_a_chain_does_not_recurse():
    ax = chain(200_000).plot(n_clusters=3)
    assert tip_texts(ax)[-1] == "(199,961)"


def test_refusals():
    with pytest.raises(ValueError, match="scale has to be one of"):
        whole().plot(scale="cubic")
    with pytest.raises(ValueError, match="max_leaves"):
        whole().plot(max_leaves=0)
    with pytest.raises(ValueError, match="2 names, expected 100"):
        whole().plot(names=["a", "b"])
    with pytest.raises(ValueError, match="either threshold or n_clusters"):
        whole().plot(threshold=1.0, n_clusters=2)


def test_pickled_figures_look_the_same():
    for ax in (whole().plot(n_clusters=3), whole().plot_heights(), whole().path().plot()):
        copy = pickle.loads(pickle.dumps(ax.figure))
        assert png(copy) == png(ax.figure)


def png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


# Heights and paths


def test_heights_against_the_number_of_clusters():
    ax = whole().plot_heights(n_clusters=4, max_clusters=10)
    k, heights = ax.lines[0].get_data()
    assert k.tolist() == list(range(2, 11))
    np.testing.assert_array_equal(heights, whole().levels[100 - k])
    upper, lower = whole().levels[96], whole().levels[95]
    assert ax.get_title(loc="left") == f"4 clusters for {number(lower)} < λ ≤ {number(upper)}"
    ring = ax.lines[-1].get_data()
    assert (ring[0][0], ring[1][0]) == (4, upper)


def test_the_threshold_is_marked_with_its_number_of_clusters():
    ax = whole().plot_heights(threshold=30.0)
    k = whole().cut(threshold=30.0).max() + 1
    assert annotations(ax) == [f"k = {k}", "λ = 30"]
    assert ax.get_title(loc="left").startswith(f"{k} clusters for ")


def test_heights_of_forests_and_ends():
    forest = forest_with_ties()
    ax = forest.plot_heights(threshold=20.0)
    assert ax.lines[0].get_xdata().tolist() == [4, 5, 6, 7]
    assert ax.get_title(loc="left") == "3 clusters for 12.5 < λ ≤ 20"
    assert (
        whole().plot_heights(n_clusters=1).get_title(loc="left").startswith("1 cluster for λ above")
    )
    ties = linkage([[0.0], [1.0], [10.0], [11.0]], "ward").plot_heights(n_clusters=3)
    assert "no λ gives exactly these" in ties.get_title(loc="left")
    alone = linkage([[0.0], [1.0]], "ward", threshold=0.1).plot_heights(n_clusters=2)
    assert alone.lines[0].get_xdata().size == 0
    assert chain(500).plot_heights(n_clusters=100).get_xscale() == "log"


def test_the_path_has_a_stair_for_every_clustering():
    ax = whole().path().plot()
    values, edges, _ = ax.patches[0].get_data()
    np.testing.assert_array_equal(values, whole().path().n_clusters)
    np.testing.assert_array_equal(edges[1:-1], whole().path().thresholds[:-1])
    long = chain(50_000).path().plot()
    values = long.patches[0].get_data()[0]
    assert values.size <= 3000
    assert values[[0, -2, -1]].tolist() == [50_000, 2, 1]


# Clusters


def test_full_covariances_are_those_of_the_clusters():
    labels = whole().cut(n_clusters=4)
    centres, covariances = ellipses(plane_of(HEAPS, "gaussian"), labels, 4, labels)
    for cluster in range(4):
        inside = HEAPS[labels == cluster]
        np.testing.assert_allclose(centres[cluster], inside.mean(axis=0))
        np.testing.assert_allclose(covariances[cluster], np.cov(inside.T, bias=True))


def test_diagonal_covariances_are_variances_of_the_columns():
    labels = whole().cut(n_clusters=4)
    _, covariances = ellipses(plane_of(HEAPS, "diagonal_gaussian"), labels, 4, labels)
    for cluster in range(4):
        variances = HEAPS[labels == cluster].var(axis=0)
        np.testing.assert_allclose(covariances[cluster], np.diag(variances))


def test_ellipses_of_directions_are_those_of_the_rows():
    X = HEAPS + 30.0
    labels = whole().cut(n_clusters=4)
    _, covariances = ellipses(plane_of(X, "von_mises_fisher"), labels, 4, labels)
    directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    for cluster in range(4):
        reference = np.cov(directions[labels == cluster].T, bias=True)
        np.testing.assert_allclose(covariances[cluster], reference, atol=1e-15)


def test_one_circle_for_all_spherical_clusters():
    labels = whole().cut(n_clusters=4)
    _, covariances = ellipses(plane_of(HEAPS, "ward"), labels, 4, labels)
    steps = np.concatenate([HEAPS[labels == c] - HEAPS[labels == c].mean(axis=0) for c in range(4)])
    for covariance in covariances:
        np.testing.assert_allclose(covariance, (steps**2).mean() * np.eye(2))


def test_variances_of_counts_are_their_means():
    _, covariances = ellipses(plane_of(COUNTS, "poisson"), GROUPS, 3, GROUPS)
    for cluster in range(3):
        mean = COUNTS[cluster == GROUPS].mean(axis=0)
        np.testing.assert_allclose(covariances[cluster], np.diag(mean), rtol=1e-12)


def test_proportions_vary_as_those_of_trials_do():
    """Simulated rows have the covariance of their family, seen along any two axes."""
    rng = np.random.default_rng(0)
    X = rng.multinomial(50, [0.5, 0.3, 0.15, 0.05], 50_000)
    plane = plane_of(X, "multinomial")
    labels = np.zeros(50_000, int)
    _, covariances = ellipses(plane, labels, 1, labels)
    np.testing.assert_allclose(covariances[0], np.cov(plane.points.T), atol=5e-5)
    p = X.sum(axis=0) / X.sum()
    exact = plane.axes @ (np.diag(p) - np.outer(p, p)) @ plane.axes.T / 50
    np.testing.assert_allclose(covariances[0], exact, rtol=1e-9)


def test_wide_rows_are_seen_along_principal_axes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5)) * [1.0, 30.0, 1.0, 10.0, 1.0]
    ax = plot_clusters(X, np.zeros(60, int))
    assert "principal axis 1" in ax.get_xlabel()
    drawn = ax.collections[0].get_offsets()
    np.testing.assert_allclose(np.abs(np.corrcoef(drawn[:, 0], X[:, 1])[0, 1]), 1.0, atol=0.01)
    np.testing.assert_allclose(np.abs(np.corrcoef(drawn[:, 1], X[:, 3])[0, 1]), 1.0, atol=0.01)


@pytest.mark.parametrize("name", ["poisson", "multinomial", "bernoulli"])
def test_sparse_rows_are_drawn_as_dense_ones(name, monkeypatch):
    X = wide_counts(name, 90, 20_000, 0)
    dense, labels = X.toarray(), np.arange(90) % 3
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    plane = plane_of(X, name)
    means = dense / dense.sum(axis=1, keepdims=True) if name == "multinomial" else dense
    centred = means - means.mean(axis=0)
    vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
    reference = vectors[:, :2] * values[:2]
    signs = np.sign((plane.points * reference).sum(axis=0))
    np.testing.assert_allclose(plane.points * signs, reference, atol=1e-9)
    share = np.square(values[0]) / np.square(values).sum()
    assert plane.names[0] == f"principal axis 1 ({100.0 * share:.0f} % of the variance)"
    found = ellipses(plane, labels, 3, labels)
    expected = ellipses(plane._replace(means=means), labels, 3, labels)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
    ax = plot_clusters(X, labels, family=name)
    assert len(ax.patches) == 3


@pytest.mark.parametrize("quadratic", [True, False])
def test_sparse_rows_of_a_family_with_variance_at_zero(quadratic):
    from typing import NamedTuple

    from fastrbhc.families import Domain, family

    @family(
        f"squares, {quadratic}",
        separable=True,
        reducible=True,
        quadratic=quadratic,
        domain=Domain(lower=0.0),
    )
    class Squares(NamedTuple):
        def divergence(family, value, mean, step):
            return step * step

    X, labels = wide_counts("poisson", 30, 100, 0), np.arange(30) % 3
    reference = plane_of(X.toarray(), Squares())
    for found, expected in zip(
        ellipses(reference._replace(means=X), labels, 3, labels),
        ellipses(reference, labels, 3, labels),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_names_sizes_and_rows_of_no_cluster():
    frame = pd.DataFrame(HEAPS, columns=["length", "width"])
    labels = np.where(np.arange(100) < 10, -1, whole().cut(n_clusters=4))
    ax = plot_clusters(frame, labels, max_points=50)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "width")
    assert ax.get_title(loc="left") == "4 clusters, 50 of 100 rows"
    assert sum(len(points.get_offsets()) for points in ax.collections) == 50
    everything = plot_clusters(frame, labels).collections[0]
    assert np.isclose(everything.get_facecolors()[:, :3], to_rgb(FAINT)).all(axis=1).sum() == 10
    grey = plot_clusters(frame, np.full(100, -1))
    assert not grey.patches


def test_legends_tell_clusters_and_ellipses():
    labels = np.where(np.arange(100) < 10, -1, whole().cut(n_clusters=4))
    shown = [text.get_text() for text in plot_clusters(HEAPS, labels).get_legend().get_texts()]
    sizes = np.bincount(labels[labels >= 0])
    assert shown[:4] == [f"{label}: {size} rows" for label, size in enumerate(sizes)]
    assert shown[4:] == ["in none: 10 rows", "2 standard deviations\nof gaussian"]
    many = plot_clusters(HEAPS, whole().cut(n_clusters=30)).get_legend().get_texts()
    assert [text.get_text() for text in many] == ["2 standard deviations\nof gaussian"]
    import matplotlib.pyplot as plt

    ax = plot_clusters(HEAPS, labels, plt.subplots(figsize=(9, 4))[1])
    assert ax.get_legend() is None
    title = "4 clusters, 100 rows; ellipses: 2 s.d. of gaussian"
    assert ax.get_title(loc="left") == title


def test_coordinates_from_elsewhere():
    frame = pd.DataFrame(HEAPS[:, ::-1], columns=["UMAP1", "UMAP2"])
    labels = whole().cut(n_clusters=4)
    ax = whole().plot_clusters(HEAPS, n_clusters=4, coordinates=frame)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("UMAP1", "UMAP2")
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), HEAPS[:, ::-1])
    assert not ax.patches
    numbers = {text.get_text(): text.xy for text in ax.texts}
    for label in range(4):
        expected = np.median(HEAPS[labels == label][:, ::-1], axis=0)
        np.testing.assert_allclose(numbers[str(label)], expected)
    with pytest.raises(ValueError, match=r"coordinates have shape \(100, 1\)"):
        plot_clusters(None, labels, coordinates=HEAPS[:, :1])
    with pytest.raises(ValueError, match="100 coordinates for 3 rows"):
        plot_clusters(HEAPS[:3], labels, coordinates=HEAPS)
    with pytest.raises(ValueError, match="NaN"):
        plot_clusters(None, labels, coordinates=np.full((100, 2), np.nan))
    with pytest.raises(ValueError, match="needs X"):
        plot_clusters(None, labels)


def test_few_rows():
    assert not plot_clusters([[1.0, 2.0, 3.0]], [0]).patches
    assert len(plot_clusters([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]], [0, 0]).patches) == 1
    assert not plot_clusters([[1.0, 2.0], [3.0, 4.0]], [0, 1]).patches


def test_ellipses_of_a_family_of_ones_own():
    from typing import NamedTuple

    from fastrbhc.families import Domain, family

    @family("plotted", separable=True, reducible=False, domain=Domain(lower=0.0))
    class Plotted(NamedTuple):
        def divergence(family, value, mean, step):
            return (value + 2.0 * mean) * step * step  # φ = x³, so that φ″ = 6x

    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    zeros = np.zeros(2, int)
    _, covariances = ellipses(plane_of(X, Plotted()), zeros, 1, zeros)
    np.testing.assert_allclose(covariances[0], np.diag([1 / 12, 1 / 18]), rtol=1e-9)


def test_clusters_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="labels have shape"):
        plot_clusters(HEAPS, [0, 1])
    with pytest.raises(ValueError, match="n_std"):
        plot_clusters(HEAPS, np.zeros(100, int), n_std=0.0)
    with pytest.raises(ValueError, match="Negative values"):
        plot_clusters(-COUNTS, GROUPS, family="poisson")


# Style


def test_nothing_of_matplotlib_is_imported_with_the_package():
    import subprocess
    import sys

    code = "import sys, fastrbhc, fastrbhc.plotting; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert fastrbhc.plotting.plot_clusters is plot_clusters


def test_colours_differ_for_all_eyes():
    """CIELAB distances, also as seen with each kind of colour blindness (Machado et al. 2009)."""
    blindness = [
        np.eye(3),
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]],
    ]  # fmt: skip
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    rgb = np.array([to_rgb(colour) for colour in HUES])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for matrix in blindness:
        xyz = np.clip(linear @ np.transpose(matrix), 0, 1) @ to_xyz.T / [0.9505, 1.0, 1.089]
        f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        lab = np.stack(
            [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1
        )
        distances = np.linalg.norm(lab[:, None] - lab, axis=2)
        assert distances[~np.eye(len(HUES), dtype=bool)].min() > 13.0


@pytest.mark.parametrize("top", [1.0, 7.3, 15.125, 15_300.0, 4.1e8, 3e-7])
def test_ticks_of_roots_are_round_and_apart(top):
    ticks = np.array(RootLocator().tick_values(0.0, top))
    assert ticks[0] == 0.0
    assert 4 <= ticks.size <= 8
    assert (np.diff(np.sqrt(ticks)) >= 0.99 * np.sqrt(top) / 7.0).all()
    assert all(float(f"{tick:.2g}") == pytest.approx(tick) for tick in ticks)
    part = RootLocator().tick_values(0.8 * top, top)
    assert len(part) >= 4


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.25"), (12.345, "12.35"), (1234.4, "1,234"), (2.5e8, "2.5e+08"), (0, "0")],
)
def test_numbers_as_people_write_them(value, text):
    assert number(value) == text


@pytest.mark.parametrize("method", ["plot", "plot_heights"])
def test_a_number_is_no_axes(method):
    with pytest.raises(TypeError, match=r"ax has to be Axes of matplotlib, got 3.*n_clusters="):
        getattr(whole(), method)(3)
    with pytest.raises(TypeError, match="ax has to be Axes"):
        plot_clusters(HEAPS, whole().cut(n_clusters=2), "left")
