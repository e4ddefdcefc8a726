"""The number of clusters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from trees import same_tree

import fastrbhc
from fastrbhc import RBHC, cli, linkage, predictive_threshold
from fastrbhc.families import DiagonalGaussian
from fastrbhc.selection.held_out import Prediction
from fastrbhc.selection.number import PredictiveChoice, choose, least_gain
from fastrbhc.tree.origin import Chosen


def blobs(k, n=300, d=2, distance=12.0, seed=0):
    """Rows of k normal clusters of equal size, apart in every column, and their true labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    centres = distance * np.column_stack([rng.permutation(k) for _ in range(d)])
    return rng.normal(size=(n, d)) + centres[labels], labels


def partition(labels):
    return {frozenset(np.flatnonzero(labels == label)) for label in np.unique(labels)}


# How many


@pytest.mark.parametrize(("k", "d"), [(2, 1), (2, 2), (3, 2), (5, 3), (4, 10)])
@pytest.mark.parametrize("family", ["auto", "ward"])
def test_clusters_that_are_far_apart_are_found(family, k, d):
    X, labels = blobs(k, d=d)
    model = RBHC(family).fit(X)
    assert partition(model.labels_) == partition(labels)
    assert model.choice_.n_clusters == k
    assert model.choice_.fewest <= k <= model.choice_.most
    assert model.choice_.gain > model.choice_.required


def test_clusters_of_counts_are_found():
    rng = np.random.default_rng(1)
    rates = np.array([[3.0, 40.0, 9.0], [40.0, 3.0, 9.0], [9.0, 9.0, 60.0]])
    X = rng.poisson(rates.repeat(60, axis=0))
    for name in ("poisson", "multinomial"):
        assert partition(RBHC(name).fit_predict(X)) == partition(np.arange(180) // 60)


NOISE = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "uniform": lambda rng, n, d: rng.uniform(size=(n, d)),
    "correlated": lambda rng, n, d: rng.normal(size=(n, d)) @ rng.normal(size=(d, d)),
    "poisson": lambda rng, n, d: rng.poisson(4.0, (n, d)),
    "multinomial": lambda rng, n, d: rng.multinomial(30, np.full(d, 1.0 / d), n),
}


@pytest.mark.parametrize(("n", "d"), [(40, 2), (150, 5), (500, 3)])
@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("normal", "auto"),
        ("normal", "ward"),
        ("uniform", "auto"),
        ("correlated", "auto"),
        ("poisson", "poisson"),
        ("multinomial", "multinomial"),
    ],
)
def test_noise_is_one_cluster(kind, family, n, d):
    model = RBHC(family).fit(NOISE[kind](np.random.default_rng(n), n, d))
    assert model.n_clusters_ == 1
    assert model.threshold_ == model.choice_.threshold == np.inf


@pytest.mark.parametrize("varied", [False, True], ids=["multinomial", "overdispersed"])
@pytest.mark.parametrize(("n", "d"), [(200, 2), (500, 5), (1_000, 20)])
def test_noise_with_uneven_totals_is_one_cluster(n, d, varied):
    # Shares of small totals are spread more widely: a narrow and a wide cluster at one place.
    rng = np.random.default_rng(n)
    totals = 10 + rng.poisson(rng.lognormal(4.0, 1.0, n))
    shares = rng.dirichlet(np.full(d, 20.0), n) if varied else np.full(d, 1.0 / d)
    assert RBHC("multinomial").fit(rng.multinomial(totals, shares)).n_clusters_ == 1


def test_clusters_with_uneven_totals_are_found():
    rng = np.random.default_rng(0)
    totals, classes = 10 + rng.poisson(rng.lognormal(4.0, 1.0, 600)), np.arange(600) % 3
    X = rng.multinomial(totals, rng.dirichlet(np.ones(10), 3)[classes])
    model = RBHC("multinomial").fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(classes, model.labels_) > 0.9


@pytest.mark.parametrize("X", [[[1.0], [2.0]], np.ones((9, 2)), np.eye(3)], ids=["2", "equal", "3"])
def test_too_little_to_tell(X):
    model = RBHC().fit(X)
    assert model.n_clusters_ == 1
    assert "One cluster" in str(model.choice_)


@pytest.mark.parametrize("family", ["multinomial", "von_mises_fisher"])
def test_one_column_without_any_difference(family):
    # All shares are 1, and all directions the same, up to rounding.
    model = RBHC(family).fit(np.random.default_rng(4).uniform(1.0, 9.0, (30, 1)))
    assert model.n_clusters_ == 1


def test_directions_that_differ_by_less_than_rounding():
    X = np.column_stack([1e-200 * np.random.default_rng(4).normal(size=20), np.ones(20)])
    assert RBHC("von_mises_fisher").fit(X).n_clusters_ == 1


@pytest.mark.parametrize("family", ["ward", "auto"])
def test_large_numbers_in_one_cluster(family):
    X = np.random.default_rng(5).normal(size=(22, 3)) * 1e80
    model = RBHC(family).fit(X)
    assert model.n_clusters_ == 1
    assert not model.predict(X).any()


# From predictions to a number


def prediction(gains, n_coordinates=2, n_rows=300, known_spread=False):
    numbers = np.arange(1, len(gains) + 1)
    likelihoods, errors = -5.0 + np.array(gains), np.full(len(gains), 0.01)
    return Prediction(numbers, likelihoods, errors, n_rows, n_coordinates, known_spread)


def test_the_gap_decides_within_the_limits():
    X, _ = blobs(2, distance=1_000.0)
    tree = linkage(X, "ward")
    # Four clusters predict best, two to four at least half as well; the gap is at two.
    found = choose(tree, prediction([0.0, 2.0, 2.5, 3.0]))
    assert (found.fewest, found.n_clusters, found.most) == (2, 2, 4)
    assert found.threshold == fastrbhc.gap_threshold(tree)
    assert tree.cut(threshold=found.threshold).max() == 1
    # Only three or four predict well: the gap at two is out of bounds.
    found = choose(tree, prediction([0.0, 1.0, 2.5, 3.0]))
    assert found.fewest == 3
    assert found.n_clusters in (3, 4, 5)
    assert tree.cut(threshold=found.threshold).max() + 1 == found.n_clusters


def test_only_numbers_that_some_threshold_yields():
    # Corners of a square: the two pairs are merged at the same level.
    X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    tree = linkage(X, "ward")
    found = choose(tree, prediction([0.0, 1.0, 3.0]))
    assert (found.n_clusters, found.fewest, found.most) == (4, 3, 4)
    assert tree.cut(threshold=found.threshold).max() + 1 == 4


def test_a_tree_that_no_threshold_divides():
    # With so small a smoothing all merges but the first are inversions.
    X = np.random.default_rng(0).normal(size=(13, 2))
    tree = linkage(X, DiagonalGaussian(1e-120))
    assert np.ptp(tree.levels) == 0.0
    found = choose(tree, prediction([0.0, 2.0, 3.0]))
    assert (found.n_clusters, found.fewest, found.threshold) == (1, 1, np.inf)
    assert "no λ divides the tree" in str(found)


@pytest.mark.parametrize("n_coordinates", [1, 4, 6, 8, 30])
def test_a_gain_is_required(n_coordinates):
    tree = linkage(blobs(2)[0], "ward")
    required = least_gain(prediction([0.0], n_coordinates))
    for gain, number in ((0.99 * required, 1), (1.01 * required, 2)):
        found = choose(tree, prediction([0.0, gain], n_coordinates))
        assert found.n_clusters == number
        assert found.required == required
        assert found.gain == pytest.approx(gain)
        assert found.gain_error == 0.01


def test_more_is_required_where_uniform_rows_gain_more():
    assert least_gain(prediction([0.0], 4, 2_000)) > least_gain(prediction([0.0], 4, 100))
    assert least_gain(prediction([0.0], 3, 2_000)) > least_gain(prediction([0.0], 20, 2_000)) > 0.0
    # More rows than were measured require as much as the most that were.
    assert least_gain(prediction([0.0], 4, 2_000)) == least_gain(prediction([0.0], 4, 9_000))


def test_families_that_fix_the_spread_are_not_compared_with_uniform_rows():
    required = {least_gain(prediction([0.0], q, 500, known_spread=True)) for q in (1, 5, 30)}
    assert len(required) == 1


# How it is told


def told(**changes):
    numbers = {"threshold": 3.0, "n_clusters": 3, "fewest": 2, "most": 5, "gain": 1.234}
    others = {"gain_error": 0.056, "required": 0.25}
    arrays = {"numbers": np.arange(1, 6), "log_likelihoods": np.zeros(5)}
    return str(PredictiveChoice(**{**numbers, **others, **arrays, **changes}))


def test_a_choice_in_words():
    assert told() == (
        "3 clusters. Between 2 and 5 predict held-out rows about as well, and the tree has its "
        "largest gap here (gain over one cluster 1.23 ± 0.06 per row)."
    )
    assert told(fewest=3, most=3) == (
        "3 clusters. No other number predicts held-out rows as well "
        "(gain over one cluster 1.23 ± 0.06 per row)."
    )
    assert told(n_clusters=1, gain=0.1, threshold=np.inf) == (
        "One cluster: no number of clusters predicts held-out rows clearly better "
        "(gain 0.10 ± 0.06 per row; 0.25 would be clear)."
    )


def test_a_choice_in_a_notebook():
    choice = RBHC("ward").fit(blobs(3)[0]).choice_
    assert repr(choice) == f"<PredictiveChoice: {choice}>"


# The same everywhere


def test_the_function_the_estimator_the_forest_and_the_command_line(tmp_path, capsys):
    X, _ = blobs(3)
    weights = np.arange(1.0, 301.0)
    whole = linkage(X, sample_weight=weights)
    choice = predictive_threshold(whole, X)
    model = RBHC().fit(X, sample_weight=weights)
    assert model.threshold_ == choice.threshold
    assert str(model.choice_) == str(choice)
    np.testing.assert_array_equal(model.choice_.log_likelihoods, choice.log_likelihoods)
    np.testing.assert_array_equal(model.labels_, whole.cut(threshold=choice.threshold))
    assert model.dendrogram_.chosen == Chosen(choice.threshold, "predictive")
    assert same_tree(model.dendrogram_, whole)
    forest = linkage(X, sample_weight=weights, threshold="predictive")
    assert forest.n_trees == 3
    np.testing.assert_array_equal(forest.cut(), model.labels_)
    pd.DataFrame(np.c_[X, weights], columns=["a", "b", "w"]).to_csv(
        tmp_path / "rows.csv", index=False
    )
    out = tmp_path / "labels.csv"
    command = ["cluster", str(tmp_path / "rows.csv"), "--weights", "w", "--labels", str(out)]
    assert cli.main(command) == 0
    assert str(choice) in capsys.readouterr().out
    np.testing.assert_array_equal(pd.read_csv(out)["cluster"], model.labels_)


@pytest.mark.parametrize("options", [{"n_clusters": 2}, {"threshold": 4.0}, {"threshold": "gap"}])
def test_other_choices_leave_none(options):
    assert RBHC("ward", **options).fit(blobs(2)[0]).choice_ is None


@pytest.mark.parametrize("family", ["auto", "ward"])
def test_neither_order_nor_copies_nor_units_matter(family):
    X, _ = blobs(4, distance=6.0)
    rng = np.random.default_rng(2)
    order, copies = rng.permutation(300), rng.integers(1, 4, 300)
    model = RBHC(family).fit(X, sample_weight=copies)
    assert model.n_clusters_ > 1
    repeated = RBHC(family).fit(X.repeat(copies, axis=0))
    np.testing.assert_array_equal(repeated.labels_, model.labels_.repeat(copies))
    shuffled = RBHC(family).fit(X[order], sample_weight=copies[order])
    np.testing.assert_array_equal(shuffled.labels_, model.labels_[order])
    other_units = RBHC(family).fit(1_000.0 * X + 5.0, sample_weight=copies)
    np.testing.assert_array_equal(other_units.labels_, model.labels_)


def test_refusals():
    X, _ = blobs(2)
    with pytest.raises(ValueError, match="X has 10 rows and the tree has 300"):
        predictive_threshold(linkage(X, "ward"), X[:10])
    with pytest.raises(ValueError, match="build the whole one"):
        predictive_threshold(linkage(X, "ward", threshold=1.0), X)
    with pytest.raises(ValueError, match="Negative values"):
        predictive_threshold(linkage(X, "ward"), X, family="poisson")
