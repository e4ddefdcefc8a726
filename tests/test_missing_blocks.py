"""Missing cells in products of families and among categories, compared with the definition."""

import json
import pickle

import naive
import numpy as np
import pandas as pd
import pytest
from certificates import certify_greedy
from test_missing import rows_of
from test_product import numbers, people, with_positions

import fastrbhc
from fastrbhc import RBHC, dissimilarity, linkage
from fastrbhc._engine.clusters.partly_observed import PartlyObserved, side_by_side
from fastrbhc._table import placed
from fastrbhc.families import Block, Product, as_family, geometry_of
from fastrbhc.families._missing import filled, observe
from fastrbhc.tree.dendrogram import Dendrogram

NAN = np.nan
# Blocks with gaps first, last and between others; with and without scatter, mirrors and features.
COMBINATIONS = [
    ({"ward": [0], "poisson": [1], "bernoulli": [2]}, (0, 1, 2)),
    ({"poisson": [1, 2], "gaussian": [0, 3]}, (1, 2)),
    ({"gaussian": [0, 3], "poisson": [1, 2]}, (1,)),
    ({"diagonal_gaussian": [0], "inverse_gaussian": [4], "von_mises_fisher": [1, 3]}, (4,)),
    ({"exponential": [4], "ward": [0, 1, 2, 3]}, (4,)),
]
every_combination = pytest.mark.parametrize(("family", "gappy"), COMBINATIONS, ids=str)


def rows_with_gaps(n, seed, gappy, tied=False, share=0.3):
    """Five columns that suit all families, some with gaps, and no row without any cell."""
    X = numbers(n, seed, tied)
    gaps = np.random.default_rng(seed + 100).random((n, 5)) < share
    gaps[:, [k for k in range(5) if k not in gappy]] = False
    if len(gappy) == 3:  # where there are no other columns
        gaps[gaps[:, list(gappy)].all(axis=1), gappy[0]] = False
    X[gaps] = NAN
    return X


def customers(n=90, seed=0, share=0.15):
    """The table of three kinds of people with gaps in most of its columns, and the kinds."""
    table, kind = people(n, seed)
    table = table.astype({"visits": float, "orders": float, "member": float, "country": object})
    rng = np.random.default_rng(seed + 1)
    for name in ("visits", "orders", "country", "member"):
        table.loc[rng.random(n) < share, name] = None if name == "country" else NAN
    return table, kind


MIXED = {
    "poisson": ["visits", "orders"],
    "gaussian": ["age", "income"],
    "categorical": ["country"],
    "bernoulli": ["member"],
}


# Trees.


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@every_combination
def test_trees_follow_the_definition(family, gappy, tied):
    X = rows_with_gaps(30, 1, gappy, tied)
    family = with_positions(family, X)
    weights = np.random.default_rng(3).integers(1, 4, len(X)).astype(float)
    for given in (None, weights):
        for neighbors in ("auto", "brute", "kd_tree"):
            tree = linkage(X, family, missing="ignore", sample_weight=given, neighbors=neighbors)
            certify_greedy(tree, X, given, family)


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@every_combination
def test_backends_agree_to_the_bit(family, gappy, tied):
    X = rows_with_gaps(600, 2, gappy, tied)
    family = with_positions(family, X)
    scanned = linkage(X, family, missing="ignore", neighbors="brute", n_jobs=1)
    for options in ({"neighbors": "kd_tree"}, {"neighbors": "brute", "n_jobs": 2}):
        tree = linkage(X, family, missing="ignore", **options)
        assert np.array_equal(tree.merges, scanned.merges)
        assert np.array_equal(tree.heights, scanned.heights)


@every_combination
def test_direct_trees_are_those_of_the_greedy_algorithm(family, gappy):
    X = rows_with_gaps(150, 3, gappy, tied=True)
    family = with_positions(family, X)
    direct = linkage(X, family, missing="ignore")
    greedy = linkage(X, family, missing="ignore", algorithm="greedy")
    assert np.array_equal(direct.merges, greedy.merges)
    assert np.array_equal(direct.heights, greedy.heights)


def test_trees_of_mixed_tables_follow_the_definition():
    table, _ = customers(36)
    family = placed(as_family(MIXED), table)
    codes = family.encode(fastrbhc._table.table_of(table))
    for neighbors in ("auto", "brute", "kd_tree"):
        tree = linkage(table, MIXED, missing="ignore", neighbors=neighbors)
        certify_greedy(tree, codes, None, family)


def test_categories_by_themselves():
    X = np.array([["a", "x"], ["a", None], [None, "x"], ["b", "y"], ["b", "z"], ["c", "z"]], object)
    tree = linkage(X, "categorical", missing="ignore")
    assert tree.family.levels == (("a", "b", "c"), ("x", "y", "z"))
    certify_greedy(tree, tree.family.encode(fastrbhc._table.table_of(X)), None, tree.family)
    assert tree.cut(n_clusters=2).tolist() == [0, 0, 0, 1, 1, 1]


def test_without_gaps_nothing_changes():
    table, _ = people(200)
    ordinary, allowed = linkage(table, MIXED), linkage(table, MIXED, missing="ignore")
    assert np.array_equal(ordinary.merges, allowed.merges)
    assert np.array_equal(ordinary.heights, allowed.heights)


def test_a_row_without_a_cell_of_a_block_adds_nothing_there():
    family = {"poisson": [0, 1], "ward": [2]}
    a, b = [[NAN, NAN, 1.0], [NAN, NAN, 3.0]], [[5.0, 2.0, 4.0]]
    expected = dissimilarity([[1.0], [3.0]], [[4.0]], "ward")
    assert dissimilarity(a, b, family, missing="ignore") == expected


def test_weights_of_blocks_count():
    X = rows_with_gaps(40, 4, (0, 1, 2))[:, :2]
    X = X[~np.isnan(X).all(axis=1)]
    family = Product((Block("ward", [0], 0.5), Block("poisson", [1], 3.0)))
    parts = [
        dissimilarity(X[:20, [k]][seen0], X[20:, [k]][seen1], name)
        for k, name in enumerate(["ward", "poisson"])
        for seen0, seen1 in [(~np.isnan(X[:20, k]), ~np.isnan(X[20:, k]))]
    ]
    d = dissimilarity(X[:20], X[20:], family, missing="ignore")
    assert d == pytest.approx(0.5 * parts[0] + 3.0 * parts[1], rel=1e-13)


def test_one_block_is_its_family():
    X = rows_of("poisson", 60, 2)
    tree = linkage(X, {"poisson": [0, 1]}, missing="ignore")
    assert np.array_equal(tree.heights, linkage(X, "poisson", missing="ignore").heights)


def test_copies_have_the_same_gaps():
    X = np.array([[1.0, NAN, 0.0], [1.0, NAN, 0.0], [1.0, 2.0, 0.0], [7.0, 2.0, 3.0]])
    family = {"poisson": [0, 1], "ward": [2]}
    copies = linkage(X, family, missing="ignore")
    weighted = linkage(X[1:], family, missing="ignore", sample_weight=[2.0, 1.0, 1.0])
    assert copies.heights[0] == 0.0
    np.testing.assert_array_equal(copies.heights[1:], weighted.heights)


@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
@pytest.mark.parametrize(("family", "gappy"), COMBINATIONS[:3], ids=str)
def test_audits_count_all_violations(family, gappy, neighbors):
    X = rows_with_gaps(26, 6, gappy)
    family = with_positions(family, X)
    tree = linkage(X, family, missing="ignore", neighbors=neighbors, audit=True)
    expected = naive.violations(tree, X, None, family)
    assert tree.audit.triples == expected.triples
    assert len(expected.certain) <= tree.audit.violations
    assert tree.audit.violations <= len(expected.certain) + len(expected.open)


# Statistics.


def test_layout_of_blocks():
    X = np.array([[1.0, NAN, 5.0], [2.0, 4.0, 6.0]])
    family = placed(as_family({"poisson": [0, 1], "ward": [2]}), X)
    rows = observe(family, X)
    assert rows.layout == ((2, True), (1, False))
    np.testing.assert_array_equal(rows.means, [[1, 0, 1, 0, 5], [2, 4, 1, 1, 6]])
    np.testing.assert_array_equal(rows.observed, [[True, False, True], [True, True, True]])
    np.testing.assert_array_equal(rows.places_of_weights(), [2, 3, -2, -2, -1])
    values = rows.weighted(np.array([3.0, 1.0])).slot_values()
    np.testing.assert_array_equal(values, [[1, 4, 3, 0, 5], [2, 4, 1, 1, 6]])
    np.testing.assert_array_equal(rows.centred_means(), [[-0.5, 0, -0.5], [0.5, 0, 0.5]])
    assert rows.shape == (2, 3)
    assert rows.take(np.array([1])).layout == rows.layout
    assert observe(family, X, gaps=True).layout == ((2, True), (1, True))


def test_blocks_with_further_digits():
    whole, gappy = as_family("log_normal").observe(np.array([[2.0]])), np.array([[3.0]])
    rows = side_by_side([observe(as_family("poisson"), gappy, gaps=True), whole])
    assert isinstance(rows, PartlyObserved)
    assert (rows.residuals is None) == (whole.residuals is None)
    assert rows.means.shape == (1, 3)


def test_levels_have_the_weight_of_their_column():
    X = np.array([["a", "x"], [None, "y"]], object)
    family = placed(as_family("categorical"), X)
    rows = observe(family, family.encode(fastrbhc._table.table_of(X)))
    # The levels a, x and y, and all others of each column.
    np.testing.assert_array_equal(rows.means[:, :5], [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0]])
    np.testing.assert_array_equal(rows.means[:, 5:], [[1, 1, 1, 1, 1], [0, 1, 1, 0, 1]])
    assert type(geometry_of(family, rows)).__name__ == "Observed"


def test_categories_are_filled_with_the_most_frequent_level():
    X = np.array([["a", "x", 1.0], ["b", None, NAN], ["b", "x", 3.0], [None, "y", 2.0]], object)
    family = placed(as_family({"categorical": [0, 1], "ward": [2]}), X)
    codes = family.encode(fastrbhc._table.table_of(X))
    np.testing.assert_array_equal(
        filled(codes, family), [[0, 0, 1], [1, 0, 2], [1, 0, 3], [1, 1, 2]]
    )


# The border.


def test_blocks_that_need_all_cells_say_so():
    table, _ = customers(30)
    table.loc[7, "age"] = table.loc[9, "age"] = NAN
    with pytest.raises(
        ValueError, match=r"in the block 'gaussian': row 7, column 'age' \(and 1 more\)\..*'ignore'"
    ):
        linkage(table, MIXED, missing="ignore")
    with pytest.raises(ValueError, match=r"contains NaN: row \d+, column 'orders'.*Or say missing"):
        linkage(table, MIXED)


@pytest.mark.parametrize("gap", [None, NAN, pd.NA])
def test_missing_categories(gap):
    table = pd.DataFrame({"colour": ["red", gap, "blue", "red"], "size": [1.0, 2.0, 3.0, 4.0]})
    family = {"categorical": ["colour"], "ward": ["size"]}
    assert linkage(table, family, missing="ignore").n_trees == 1
    with pytest.raises(ValueError, match=r"row 1, column 'colour'.*'unknown'.*Or say missing="):
        linkage(table, family)
    table["colour"] = gap
    with pytest.raises(ValueError, match=r"all values of column 'colour' are missing"):
        linkage(table, family, missing="ignore")


def test_rows_without_any_cell_are_named():
    X = [[1.0, 2.0, 0.0], [NAN, NAN, 1.0], [3.0, 4.0, 2.0]]
    with pytest.raises(ValueError, match="no cell is observed: row 1"):
        linkage(X, {"poisson": [0], "ward": [1], "ignore": [2]}, missing="ignore")


def test_other_values_are_still_checked():
    X = [[1.0, 2.0], [NAN, 3.0], [-3.0, 4.0]]
    with pytest.raises(ValueError, match=r"Negative values .* row 2, column 0 is -3"):
        linkage(X, {"poisson": [0], "ward": [1]}, missing="ignore")


def test_strangers_are_counted_without_ignored_columns():
    X = np.full((40, 3), NAN)
    X[np.arange(40), np.arange(40) % 2] = 1.0 + np.arange(40)
    X[:, 2] = 1.0
    with pytest.warns(UserWarning, match=r"51 % of all pairs of rows have no observed column"):
        linkage(X, {"ward": [0], "poisson": [1], "ignore": [2]}, missing="ignore")


# Estimator, thresholds, tables.


@pytest.mark.parametrize("threshold", ["predictive", "gap", "kmeans"])
def test_thresholds_take_gaps(threshold):
    table, kind = customers(150)
    table["age"] /= 5.0
    table["income"] *= 2.0
    family = {**MIXED, "ward": MIXED["gaussian"]}
    del family["gaussian"]
    guess = 3 if threshold == "kmeans" else None
    model = RBHC(
        family, missing="ignore", threshold=threshold, n_clusters_guess=guess, random_state=0
    ).fit(table)
    assert model.n_clusters_ >= 2
    cut = model.dendrogram_.cut(n_clusters=3) if threshold == "predictive" else None
    if cut is not None:
        agreement = max(np.mean(cut[kind == k] == label) for k in range(3) for label in range(3))
        assert agreement > 0.8


def test_new_rows_with_and_without_gaps():
    table, _ = customers()
    model = RBHC(MIXED, missing="ignore", n_clusters=3).fit(table)
    new = table.iloc[:4].copy()
    new["country"] = ["FR", None, "Atlantis", "DE"]
    new.loc[2, "member"] = NAN
    family = model.dendrogram_.family
    expected = [
        [
            dissimilarity(new.iloc[[row]], table[model.labels_ == k], family, missing="ignore")
            for k in range(3)
        ]
        for row in range(4)
    ]
    np.testing.assert_allclose(model.transform(new), expected, rtol=1e-11)
    assert np.array_equal(model.predict(new), np.argmin(expected, axis=1))
    with pytest.raises(ValueError, match=r"in the block 'gaussian': row 0, column 'age'"):
        model.predict(new.assign(age=[NAN, 1.0, 2.0, 3.0]))


def test_a_fit_without_gaps_predicts_rows_with_gaps():
    table, _ = people(90)
    model = RBHC(MIXED, missing="ignore", n_clusters=3).fit(table)
    new = table.astype({"visits": float, "country": object})
    new.loc[0, "visits"], new.loc[1, "country"] = NAN, None
    assert np.array_equal(model.predict(new)[2:], model.predict(table)[2:])


def test_trees_remember_it():
    table, _ = customers()
    tree = linkage(table, MIXED, missing="ignore")
    for copy in (Dendrogram.from_json(tree.to_json()), pickle.loads(pickle.dumps(tree))):
        assert copy.origin.missing == "ignore"
        assert copy.summary(table, n_clusters=2).equals(tree.summary(table, n_clusters=2))
    assert json.loads(tree.to_json())["missing"] == "ignore"


def test_summaries_are_of_observed_cells():
    table, _ = customers()
    model = RBHC(MIXED, missing="ignore", n_clusters=3).fit(table)
    for summary in (model.summary(), model.dendrogram_.summary(table, n_clusters=3)):
        for k in range(3):
            own = table[model.labels_ == k]
            for name in ("visits", "orders", "age", "member"):
                assert summary.loc[k, f"mean_{name}"] == pytest.approx(own[name].mean(), rel=1e-12)
            share = own["country"].value_counts(normalize=True)
            assert summary.loc[k, "mean_country"] == f"{share.index[0]} ({share.iloc[0]:.0%})"
            assert summary.loc[k, "observed"] == pytest.approx(own.notna().to_numpy().mean())


def test_telling_columns():
    table, _ = customers()
    family = {**MIXED, "ward": MIXED["gaussian"]}
    del family["gaussian"]
    tree = linkage(table, family, missing="ignore")
    summary, labels = tree.summary(table, n_clusters=2, n_top=9), tree.cut(n_clusters=2)
    expected = dissimilarity(table[labels == 0], table[labels == 1], family, missing="ignore")
    np.testing.assert_allclose(summary["apart"], expected, rtol=1e-10)
    np.testing.assert_allclose(summary["top_share"], 1.0, rtol=1e-10)
    assert "country=" in summary.loc[0, "more_of"] + summary.loc[0, "less_of"]
    assert summary["observed"].between(0.8, 1.0).all()


def test_pictures_and_refusals():
    pytest.importorskip("matplotlib")
    table, _ = customers()
    tree = linkage(table, MIXED, missing="ignore")
    axes = tree.plot_clusters(table, n_clusters=3)
    assert axes.get_title(loc="left") == "3 clusters, 90 rows"
    with pytest.raises(ValueError, match=r"without missing cells\. Fill in the values"):
        tree.stability(table, n_clusters=2)
