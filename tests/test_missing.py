"""Missing cells: d of the observed cells, compared with the definition in plain NumPy."""

from __future__ import annotations

import itertools
import json
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import fastrbhc
from fastrbhc import RBHC, dissimilarity, linkage
from fastrbhc._engine.clusters.build import clusters_of_groups
from fastrbhc._engine.clusters.partly_observed import PartlyObserved
from fastrbhc.families import Exponential, as_family, geometry_of
from fastrbhc.families._missing import (
    filled,
    names_of_those_that_take_missing,
    observe,
    takes_missing,
)
from fastrbhc.tree.dendrogram import Dendrogram

NAN = np.nan
NAMES = [name for name in names_of_those_that_take_missing() if as_family(name).separable]
# One family per kind of geometry and bounds.
FEW = ["spherical_gaussian", "poisson", "inverse_gaussian", "weibull"]


def rows_of(family, n, d, seed=0, share=0.25):
    """Rows in the domain of a family, some of whose cells are missing but no whole row."""
    rng, domain = np.random.default_rng(seed), as_family(family).domain
    X = rng.gamma(2.0, 3.0, size=(n, d))
    if np.isfinite(domain.upper):
        X = domain.lower + rng.integers(0, 2, size=(n, d)) * (domain.upper - domain.lower)
        X += rng.random((n, d)) * 0.5 * (0.5 * (domain.lower + domain.upper) - X)
    elif np.isfinite(domain.lower):
        X += domain.lower
    gaps = rng.random((n, d)) < share
    gaps[np.arange(n), rng.integers(0, d, n)] = False
    X[gaps] = NAN
    return X


def cost(X, weights, family):
    """f(c) = Σⱼ nⱼφ(tⱼ) over the observed cells, and the size of its terms."""
    family, observed = as_family(family), ~np.isnan(X)
    values = family.observe(np.where(observed, X, X[observed][0])).means
    scale, offset = family.smoothing_map(X.shape[1])
    total, size = 0.0, 0.0
    for j in range(X.shape[1]):
        seen = observed[:, j]
        n = weights[seen].sum()
        if n > 0.0:
            mean = np.average(values[seen, j], weights=weights[seen])
            term = n * float(family.phi(np.array([scale * mean + offset]))[0])
            total, size = total + term, size + abs(term) + n
    return total, size


def naive(X, weights, members0, members1, family):
    """d by its definition, and how accurate that is."""
    parts = [members0, members1, members0 + members1]
    (f0, s0), (f1, s1), (f, s) = (cost(X[m], weights[m], family) for m in parts)
    return f0 + f1 - f, 1e-13 * (s0 + s1 + s) + 1e-9 * abs(f0 + f1 - f)


def certify(tree, X, family, weights=None):
    """Replay the merges: each has the height of the definition, and no other pair is nearer."""
    weights = np.ones(len(X)) if weights is None else weights
    alive = {leaf: [leaf] for leaf in range(len(X))}
    known = {}

    def d(a, b):
        pair = min(a, b), max(a, b)
        if pair not in known:
            known[pair] = naive(X, weights, alive[a], alive[b], family)
        return known[pair]

    for row in np.argsort(tree.steps):
        a, b = (int(node) for node in tree.merges[row])
        value, slack = d(a, b)
        assert abs(tree.heights[row] - value) <= slack
        for x, y in itertools.combinations(alive, 2):
            other, other_slack = d(x, y)
            assert value <= other + slack + other_slack
        alive[len(X) + int(row)] = alive.pop(a) + alive.pop(b)
    assert len(alive) == tree.n_trees


@pytest.mark.parametrize("name", NAMES)
def test_trees_follow_the_definition(name):
    X = rows_of(name, 24, 3)
    certify(linkage(X, name, missing="ignore"), X, name)


@pytest.mark.parametrize("neighbors", ["brute", "kd_tree"])
@pytest.mark.parametrize("name", FEW)
def test_so_do_those_of_either_backend(name, neighbors):
    X = rows_of(name, 24, 3)
    certify(linkage(X, name, missing="ignore", neighbors=neighbors), X, name)


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("share", [0.05, 0.6])
def test_few_and_many_gaps(name, share):
    X = rows_of(name, 30, 6, seed=1, share=share)
    certify(linkage(X, name, missing="ignore"), X, name)


@pytest.mark.fast
@pytest.mark.parametrize("name", ["spherical_gaussian", "poisson"])
@pytest.mark.parametrize("neighbors", ["auto", "brute", "kd_tree"])
def test_small_trees(name, neighbors):
    X = rows_of(name, 11, 2, seed=16)
    certify(linkage(X, name, missing="ignore", neighbors=neighbors), X, name)


@pytest.mark.parametrize("name", FEW)
def test_weights(name):
    X = rows_of(name, 20, 3, seed=2)
    weights = np.random.default_rng(2).gamma(1.0, 2.0, 20)
    certify(linkage(X, name, missing="ignore", sample_weight=weights), X, name, weights)


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("d", [2, 5, 12])
def test_backends_agree_to_the_bit(name, d):
    X = rows_of(name, 700, d, seed=3, share=0.2)
    scanned = linkage(X, name, missing="ignore", neighbors="brute", n_jobs=1)
    for options in ({"neighbors": "kd_tree"}, {"neighbors": "brute", "n_jobs": 2}):
        tree = linkage(X, name, missing="ignore", **options)
        assert np.array_equal(tree.merges, scanned.merges)
        assert np.array_equal(tree.heights, scanned.heights)


def test_direct_trees_are_those_of_the_greedy_algorithm():
    X = rows_of("poisson", 150, 4, seed=4)
    direct = linkage(X, "poisson", missing="ignore")
    greedy = linkage(X, "poisson", missing="ignore", algorithm="greedy")
    assert np.array_equal(direct.merges, greedy.merges)
    assert np.array_equal(direct.heights, greedy.heights)


@pytest.mark.parametrize("name", FEW)
def test_without_gaps_nothing_changes(name, monkeypatch):
    X = rows_of(name, 300, 3, seed=5, share=0.0)
    ordinary = linkage(X, name, algorithm="greedy")
    allowed = linkage(X, name, algorithm="greedy", missing="ignore")
    assert np.array_equal(allowed.merges, ordinary.merges)
    assert np.array_equal(allowed.heights, ordinary.heights)
    # The same by the geometry for missing cells, which is not needed here.
    monkeypatch.setattr("fastrbhc._build.observe", partial(observe, gaps=True))
    tree = linkage(X, name, algorithm="greedy", missing="ignore")
    assert np.array_equal(tree.merges, ordinary.merges)
    if as_family(name).quadratic:
        np.testing.assert_allclose(tree.heights, ordinary.heights, rtol=1e-12)
    else:
        assert np.array_equal(tree.heights, ordinary.heights)


@pytest.mark.parametrize("name", FEW)
def test_the_order_of_rows_does_not_matter(name):
    X = rows_of(name, 250, 4, seed=6)
    X[::3] = np.ceil(X[::3])  # some ties
    order = np.random.default_rng(6).permutation(len(X))
    one, other = linkage(X, name, missing="ignore"), linkage(X[order], name, missing="ignore")
    assert np.array_equal(one.heights, other.heights)
    for k in (2, 7, 40):
        labels, moved = one.cut(n_clusters=k), other.cut(n_clusters=k)
        pairs = set(zip(labels[order].tolist(), moved.tolist(), strict=True))
        assert len(pairs) == k


def test_d_is_symmetric_to_the_bit():
    rows = rows_of("poisson", 40, 5, seed=7)
    for i in range(0, 40, 2):
        d = partial(dissimilarity, family="poisson", missing="ignore")
        assert d(rows[i : i + 1], rows[i + 1 :]) == d(rows[i + 1 :], rows[i : i + 1])


def test_rows_are_repeated_if_their_patterns_are_too():
    X = np.array([[1.0, NAN], [1.0, NAN], [1.0, 0.0], [NAN, 0.0], [5.0, 2.0]])
    points = observe(as_family("ward"), X)
    order, same = points.order_by_value()
    assert isinstance(points, PartlyObserved)
    assert same.sum() == 1
    assert set(order[np.flatnonzero(same)[0] - 1 : np.flatnonzero(same)[0] + 1]) == {0, 1}
    copies = linkage(X, "ward", missing="ignore")
    weighted = linkage(X[1:], "ward", missing="ignore", sample_weight=[2.0, 1.0, 1.0, 1.0])
    assert copies.heights[0] == 0.0
    np.testing.assert_array_equal(copies.heights[1:], weighted.heights)


def test_rows_without_weight_change_nothing():
    X = rows_of("poisson", 40, 3, seed=8)
    light = np.r_[X, [[0.0, NAN, 100.0]]]
    tree = linkage(light, "poisson", missing="ignore", sample_weight=np.r_[np.ones(40), 0.0])
    alone = linkage(X, "poisson", missing="ignore")
    np.testing.assert_array_equal(tree.heights[1:], alone.heights)
    assert tree.heights[0] == 0.0


def test_columns_known_to_one_side_add_nothing():
    assert dissimilarity([[1.0, NAN]], [[NAN, 4.0]], "ward", missing="ignore") == 0.0
    assert dissimilarity([[1.0, 3.0]], [[3.0, NAN]], "ward", missing="ignore") == 1.0


def test_a_column_that_nobody_observed():
    X = rows_of("exponential", 15, 3, seed=9)
    X[:, 0] = rows_of("exponential", 15, 1, seed=10)[:, 0]  # else pairs tie at 0
    empty = np.column_stack([X, np.full(15, NAN)])
    expected = linkage(X, "exponential", missing="ignore").heights
    tree = linkage(empty, "exponential", missing="ignore")
    np.testing.assert_array_equal(tree.heights, expected)
    assert np.isnan(tree.summary(empty, n_clusters=2)["mean_x3"]).all()


def test_wards_d_is_not_reducible():
    a = [[-1.0, 0.0]] + 9 * [[NAN, 0.0]]
    b = [[1.0, 0.0]] + 9 * [[NAN, 0.0]]
    x = [[0.0, 1.2]] + 9 * [[0.0, NAN]]
    d = partial(dissimilarity, family="ward", missing="ignore")
    assert d(a, b) == 1.0
    assert d(a, b) < d(a, x) == d(b, x) == pytest.approx(1.1090909)
    assert d(a + b, x) == pytest.approx(0.6857143)


def test_audits_search_and_certify():
    rng = np.random.default_rng(13)
    X = rng.normal(size=(80, 6))
    X[rng.random(X.shape) < 0.8 * rng.random(6)] = NAN
    X = X[~np.isnan(X).all(axis=1)]
    tree = linkage(X, "ward", missing="ignore", audit=True)
    assert tree.audit.method == "exact"
    assert tree.audit.certified
    for neighbors in ("brute", "kd_tree"):
        again = linkage(X, "ward", missing="ignore", audit=True, neighbors=neighbors)
        assert again.audit.violations == tree.audit.violations > 0


def test_chains_are_allowed_and_levels_are_not():
    X = rows_of("ward", 60, 3, seed=11)
    assert linkage(X, "ward", missing="ignore", algorithm="nn_chain", audit=True).n_trees == 1
    with pytest.raises(ValueError, match=r"with missing='ignore' they are not\. Use 'greedy'"):
        linkage(X, "ward", missing="ignore", algorithm="levels")


def test_means_that_agree_to_ten_digits():
    rng = np.random.default_rng(12)
    X = 1e5 + np.repeat([0.0, 1e-5], 50)[:, None] + 0.0 * rng.random((100, 2))
    X[rng.random(X.shape) < 0.3] = NAN
    X = X[~np.isnan(X).all(axis=1)]
    tree = linkage(X, "ward", missing="ignore")
    halves = [X[:, j] - 1e5 for j in range(2)]
    expected = 0.0
    for column in halves:
        low, high = (column < 5e-6).sum(), (column >= 5e-6).sum()
        step = np.nanmax(column) - np.nanmin(column)
        expected += 0.5 * low * high / (low + high) * step**2
    assert tree.heights.sum() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_extreme_units(unit):
    X = rows_of("ward", 30, 3, seed=13)
    plain, scaled = (
        linkage(X, "ward", missing="ignore"),
        linkage(X * unit, "ward", missing="ignore"),
    )
    np.testing.assert_allclose(scaled.heights / unit / unit, plain.heights, rtol=1e-10)


def test_bounds_are_never_too_high():
    # The kd-tree would miss neighbours: rows with and without gaps, light and heavy ones.
    rng = np.random.default_rng(14)
    X = rows_of("poisson", 600, 3, seed=14, share=0.4)
    X[:200] *= 50.0
    weights = rng.choice([1e-3, 1.0, 1e3], 600)
    options = {"missing": "ignore", "sample_weight": weights}
    scanned = linkage(X, "poisson", neighbors="brute", **options)
    searched = linkage(X, "poisson", neighbors="kd_tree", **options)
    assert np.array_equal(scanned.merges, searched.merges)
    assert np.array_equal(scanned.heights, searched.heights)


# Statistics.


@pytest.mark.fast
def test_groups_have_weights_and_means_by_column():
    X = np.array([[1.0, NAN, 2.0], [4.0, NAN, NAN], [NAN, 7.0, 8.0], [5.0, 7.0, NAN]])
    rows = observe(as_family("ward"), X).weighted(np.array([1.0, 3.0, 2.0, 0.1]))
    geometry = geometry_of(as_family("ward"), rows)
    clusters = clusters_of_groups(geometry, rows, np.array([0, 0, 1, 1]), 2)
    np.testing.assert_array_equal(clusters.weights, [4.0, 2.1])
    np.testing.assert_array_equal(clusters.means[3:].T, [[4.0, 0.0, 1.0], [0.1, 2.1, 2.0]])
    np.testing.assert_array_equal(clusters.means[:3].T[0, [0, 2]], [3.25, 2.0])
    np.testing.assert_array_equal(clusters.means[:3].T[1], [5.0, 7.0, 8.0])


@pytest.mark.fast
def test_rows_as_slots_and_as_points():
    X = np.array([[1.0, NAN], [3.0, 5.0], [NAN, 7.0]])
    rows = observe(as_family("ward"), X).weighted(np.array([2.0, 1.0, 4.0]))
    values = rows.slot_values()
    np.testing.assert_array_equal(values[:, :2], [[1.0, 5.0], [3.0, 5.0], [1.0, 7.0]])
    np.testing.assert_array_equal(values[:, 2:], [[2.0, 0.0], [1.0, 1.0], [0.0, 4.0]])
    np.testing.assert_array_equal(rows.centred_means(), [[-1.0, 0.0], [1.0, -1.0], [0.0, 1.0]])
    assert rows.take(np.array([1])).shape == (1, 2)


@pytest.mark.fast
def test_filling_in_keeps_to_the_range_of_a_column():
    X = np.array([[0.1, NAN, NAN], [0.1, 2.0, NAN], [0.1, 4.0, NAN], [NAN, 6.0, NAN]])
    np.testing.assert_array_equal(
        filled(X)[:, :2], [[0.1, 4.0], [0.1, 2.0], [0.1, 4.0], [0.1, 6.0]]
    )
    np.testing.assert_array_equal(filled(X)[:, 2], 0.1)


# The border.


@pytest.mark.parametrize("name", ["gaussian", "diagonal_gaussian", "von_mises_fisher", "auto"])
def test_other_families_say_which_can(name):
    with pytest.raises(ValueError, match=r"columns are separate.*bernoulli.*spherical_gaussian"):
        linkage([[1.0, 2.0], [3.0, NAN]], name, missing="ignore")


def test_totals_of_rows_cannot_be_missing():
    assert not takes_missing(as_family("multinomial"))
    with pytest.raises(ValueError, match=r"'multinomial' is not one"):
        RBHC("multinomial", missing="ignore").fit([[1.0, 2.0], [3.0, NAN]])


def test_the_error_without_the_option_mentions_it():
    with pytest.raises(ValueError, match=r"contains NaN: row 1, column 0.*Or say missing='ignore'"):
        linkage([[1.0], [NAN]], "ward")
    with pytest.raises(ValueError, match=r"contains NaN.*'ward' and 'poisson', take missing"):
        linkage([[1.0], [NAN]], "gaussian")
    with pytest.raises(ValueError, match=r"missing has to be"):
        linkage([[1.0], [2.0]], "ward", missing="drop")


def test_rows_without_any_cell_are_named():
    with pytest.raises(ValueError, match=r"no cell is observed: row 1 \(and 1 more\)"):
        linkage([[1.0], [NAN], [NAN], [2.0]], "ward", missing="ignore")


def test_other_values_are_still_checked():
    with pytest.raises(ValueError, match=r"Negative values .* row 1, column 'b' is -3"):
        linkage(pd.DataFrame({"a": [NAN, 1], "b": [2, -3]}), "poisson", missing="ignore")
    with pytest.raises(ValueError, match=r"row 2, column 0 is -3\."):  # not the mean of 1 and -3
        linkage([[1.0, 2.0], [NAN, 3.0], [-3.0, 4.0]], "poisson", missing="ignore")
    with pytest.raises(ValueError, match=r"infinity"):
        linkage([[1.0, NAN], [np.inf, 2.0]], "ward", missing="ignore")


def test_sparse_rows_have_no_missing_cells():
    X = csr_array(np.random.default_rng(0).poisson(0.01, (2000, 600)).astype(float))
    with pytest.raises(ValueError, match=r"is 0, and not missing"):
        linkage(X, "poisson", missing="ignore")
    with pytest.raises(ValueError, match=r"for dense rows"):
        linkage([[1.0, NAN], [2.0, 3.0]], "poisson", missing="ignore", neighbors="inverted")


def test_many_pairs_without_a_common_column():
    X = np.full((40, 8), NAN)
    X[np.arange(40), np.arange(40) % 8] = 1.0 + np.arange(40)
    with pytest.warns(UserWarning, match=r"9.* % of all pairs of rows have no observed column"):
        linkage(X, "ward", missing="ignore")


def test_counts_with_gaps_are_still_counts():
    X = np.random.default_rng(0).poisson(7.0, (30, 3)).astype(float)
    X[::4, 1] = NAN
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        linkage(X, "poisson", missing="ignore")


def test_data_frames_with_missing_values():
    frame = pd.DataFrame({"a": pd.array([1, None, 7], "Int64"), "b": [2.0, 3.0, None]})
    tree = linkage(frame, "poisson", missing="ignore")
    expected = linkage([[1, 2], [NAN, 3], [7, NAN]], "poisson", missing="ignore")
    assert np.array_equal(tree.heights, expected.heights)


# Estimator, thresholds, tables.


def two_groups(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.poisson(5.0, (n, 4)), rng.poisson(50.0, (n + 10, 4))]).astype(float)
    X[rng.random(X.shape) < 0.2] = NAN
    X[np.isnan(X).all(axis=1)] = 5.0
    return X, np.repeat([1, 0], [n, n + 10])


@pytest.mark.parametrize("threshold", ["predictive", "gap", "kmeans", 300.0])
def test_thresholds_find_the_groups(threshold):
    X, groups = two_groups()
    guess = 2 if threshold == "kmeans" else None
    model = RBHC(
        "poisson", missing="ignore", threshold=threshold, n_clusters_guess=guess, random_state=0
    ).fit(X)
    assert np.array_equal(model.labels_, groups)


def test_units_and_origins_do_not_change_the_choice():
    X = np.random.default_rng(0).normal(size=(150, 3)) + np.repeat([0.0, 8.0, 20.0], 50)[:, None]
    X[::2, 0] = X[1::4, 1] = NAN  # no two rows without a common column, which would tie
    X = np.round(X, 3)
    one = RBHC("ward", missing="ignore").fit(X)
    other = RBHC("ward", missing="ignore").fit(4.0 * X + 1024.0)
    assert one.n_clusters_ == 3
    assert np.array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(
        other.choice_.log_likelihoods - other.choice_.log_likelihoods[0],
        one.choice_.log_likelihoods - one.choice_.log_likelihoods[0],
        rtol=1e-6,
    )


def test_functions_for_thresholds_take_gaps():
    X, groups = two_groups()
    tree = linkage(X, "poisson", missing="ignore")
    assert fastrbhc.predictive_threshold(tree, X).n_clusters == 2
    level = fastrbhc.kmeans_threshold(X, "poisson", 2, random_state=0, missing="ignore")
    assert np.array_equal(tree.cut(threshold=level), groups)
    assert tree.cut(threshold=fastrbhc.evidence_threshold(tree)).max() >= 1


def test_new_rows_with_and_without_gaps():
    X, _ = two_groups()
    model = RBHC("poisson", missing="ignore", n_clusters=2).fit(X)
    new = np.array([[4.0, NAN, NAN, NAN], [NAN, 52.0, 48.0, NAN], [5.0, 6.0, 4.0, 5.0]])
    assert model.predict(new).tolist() == [1, 0, 1]
    expected = [
        [
            dissimilarity(row[None], X[model.labels_ == k], "poisson", missing="ignore")
            for k in (0, 1)
        ]
        for row in new
    ]
    np.testing.assert_allclose(model.transform(new), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"no cell is observed: row 0"):
        model.predict([[NAN] * 4])
    complete = RBHC("poisson", missing="ignore", n_clusters=2).fit(filled(X))
    assert complete.predict(new).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match=r"Or say missing='ignore'"):
        RBHC("poisson", n_clusters=2).fit(filled(X)).predict(new)


def test_the_tag_says_whether_nan_is_allowed():
    tags = RBHC("ward", missing="ignore").__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert not RBHC("ward").__sklearn_tags__().input_tags.allow_nan


def test_trees_remember_it():
    X, _ = two_groups()
    tree = linkage(X, "poisson", missing="ignore")
    for copy in (Dendrogram.from_json(tree.to_json()), pickle.loads(pickle.dumps(tree))):
        assert copy.origin.missing == "ignore"
    assert "missing" not in json.loads(linkage(filled(X), "poisson").to_json())
    wrong = json.loads(tree.to_json()) | {"missing": "drop"}
    with pytest.raises(ValueError, match=r"missing 'drop', which is not known"):
        Dendrogram.from_json(json.dumps(wrong))


def test_summaries_are_of_observed_cells():
    X, groups = two_groups()
    tree = linkage(X, "poisson", missing="ignore")
    tables = [
        tree.summary(X, n_clusters=2),
        RBHC("poisson", missing="ignore", n_clusters=2).fit(X).summary(),
    ]
    for table in tables:
        for k in (0, 1):
            own = X[groups == k]
            means = table.loc[k, [f"mean_x{j}" for j in range(4)]].to_numpy(float)
            np.testing.assert_allclose(means, np.nanmean(own, axis=0), rtol=1e-12)
            assert table.loc[k, "observed"] == pytest.approx((~np.isnan(own)).mean())
            assert table.loc[k, "size"] == len(own) == table.loc[k, "weight"]


def test_telling_columns_have_weights_of_their_own():
    X, groups = two_groups()
    table = linkage(X, "poisson", missing="ignore").summary(X, n_clusters=2, n_top=4)
    own, rest = X[groups == 0], X[groups == 1]
    expected = dissimilarity(own, rest, "poisson", missing="ignore")
    np.testing.assert_allclose(table["apart"], expected, rtol=1e-10)
    assert table["more_of"][0].count("×") == 4
    assert table["observed"].between(0.7, 0.9).all()


def test_pictures_fill_in_means():
    pytest.importorskip("matplotlib")
    X, _ = two_groups()
    tree = linkage(X[:, :2][~np.isnan(X[:, :2]).all(axis=1)], "poisson", missing="ignore")
    rows = X[:, :2][~np.isnan(X[:, :2]).all(axis=1)]
    axes = tree.plot_clusters(rows, n_clusters=2)
    assert axes.get_title(loc="left") == f"2 clusters, {len(rows)} rows"


def test_stability_is_refused():
    X, _ = two_groups()
    with pytest.raises(ValueError, match=r"without missing cells\. Fill in the values"):
        linkage(X, "poisson", missing="ignore").stability(X, n_clusters=2)
    with pytest.raises(ValueError, match=r"without missing cells\. Fill in the values"):
        RBHC("poisson", missing="ignore", n_clusters=2).fit(X).assess(X)


def test_own_families_take_gaps_too():
    family = fastrbhc.families.from_phi(
        lambda x: x**4, lambda x: 4.0 * x**3, domain=fastrbhc.families.Domain(lower=0.0)
    )
    X = rows_of("exponential", 12, 2, seed=15)
    certify(linkage(X, family, missing="ignore"), X, family)


def test_geometry_is_that_of_the_rows():
    X = np.array([[1.0, NAN], [2.0, 3.0]])
    rows = observe(Exponential(), X)
    assert rows.shape == (2, 2)
    assert type(geometry_of(Exponential(), rows)).__name__ == "Observed"
    np.testing.assert_array_equal(rows.observed, ~np.isnan(X))


def test_sparse_rows_are_not_told_to_ignore_gaps():
    X = csr_array(np.array([[1.0, np.nan], [2.0, 0.0], [0.0, 3.0]]))
    with pytest.raises(ValueError, match="contains NaN: row 0, column 1") as found:
        linkage(X, "poisson", neighbors="inverted")
    assert "missing" not in str(found.value)
