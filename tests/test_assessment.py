"""The report on the clusters of a cut, and the methods that lead to it."""

from __future__ import annotations

import sys
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from calibration import words
from calibration.rows import NOISES, draw_case, separated
from scipy import sparse
from strategies import wide_counts

import fastrbhc
from fastrbhc import RBHC, linkage
from fastrbhc.assessment import assess as assessing
from fastrbhc.assessment import report as reporting
from fastrbhc.assessment.assess import assess
from fastrbhc.assessment.report import verdicts_of
from fastrbhc.families import Gaussian, as_family

mpl.use("agg")
STABLE, DOUBTFUL, CHANCE = reporting.VERDICTS
SMALL = 200  # rows of the noise in these tests; `make calibration` draws more of it


@pytest.fixture(scope="module")
def heaps():
    return separated(np.random.default_rng(0), 240, 2, 10.0)


@pytest.fixture(scope="module")
def report(heaps):
    return linkage(heaps[0], "ward").stability(heaps[0], n_clusters=3)


# Calibration, in small


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: f"{noise.name}-{noise.family}")
def test_noise_has_no_stable_clusters(noise):
    # At most one cluster in twenty is the promise.
    found = []
    for seed in range(4):
        case = draw_case(noise, seed, SMALL)
        tree = linkage(case.X, noise.family)
        found += tree.stability(case.X, family=noise.family, n_clusters=case.n_clusters).verdicts
    assert found.count(STABLE) == 0


@pytest.mark.parametrize("family", ["ward", "gaussian"])
@pytest.mark.parametrize("n_columns", [2, 5])
def test_separate_clusters_are_stable(family, n_columns):
    X, _ = separated(np.random.default_rng(1), 240, n_columns, 8.0)
    found = linkage(X, family).stability(X, family=family, n_clusters=3)
    assert found.verdicts == (STABLE,) * 3


def test_clusters_of_counts_are_stable():
    rng = np.random.default_rng(2)
    rates = np.array([[3.0, 3.0, 12.0], [3.0, 15.0, 3.0]])[np.arange(160) % 2]
    for family in ("poisson", "multinomial"):
        X = rng.poisson(rates).astype(float)
        found = linkage(X, family).stability(X, family=family, n_clusters=2)
        assert found.verdicts == (STABLE,) * 2


def test_a_real_cluster_is_stable_whatever_the_cut(heaps):
    X, truth = heaps
    tree = linkage(X, "ward")
    for k in (2, 3, 5):
        found = tree.stability(X, n_clusters=k)
        real = [
            c for c in range(k)
            if any(np.array_equal(found.labels == c, truth == t) for t in range(3))
        ]  # fmt: skip
        assert real
        assert all(found.verdicts[c] == STABLE for c in real)
    halves = set(range(5)) - set(real)
    assert all(found.verdicts[c] == CHANCE for c in halves)


# The numbers of the report


def test_numbers(heaps, report):
    X, _ = heaps
    tree = linkage(X, "ward")
    np.testing.assert_array_equal(report.labels, tree.cut(n_clusters=3))
    assert report.sizes.tolist() == np.bincount(report.labels).tolist() == [80, 80, 80]
    assert (report.jaccard > 0.95).all()
    assert ((report.lower <= report.jaccard) & (report.jaccard <= report.upper)).all()
    assert report.recoveries.shape == (20, 3)
    assert report.n_rows == 120
    np.testing.assert_allclose(report.born, tree.summary(n_clusters=3)["level"])
    assert (report.born < report.dies).all()
    assert sorted(set(report.dies)) == tree.levels[-2:].tolist()
    np.testing.assert_allclose(
        report.explained_together, tree.heights[-2:].sum() / tree.heights.sum()
    )
    for c in range(3):
        d = fastrbhc.dissimilarity(X[report.labels == c], X[report.labels != c], "ward")
        np.testing.assert_allclose(report.explained[c], d / tree.heights.sum())


def test_the_same_seed_gives_the_same_report(heaps, report):
    X, _ = heaps
    tree = linkage(X, "ward")
    again = tree.stability(X, n_clusters=3, n_jobs=1)
    np.testing.assert_array_equal(again.recoveries, report.recoveries)
    np.testing.assert_array_equal(again.p_values, report.p_values)
    other = tree.stability(X, n_clusters=3, random_state=1)
    assert not np.array_equal(other.p_values, report.p_values)


def test_few_rows_in_subsamples(heaps):
    X, _ = heaps
    found = linkage(X, "ward").stability(X, n_clusters=3, n_resamples=3, max_rows=9)
    assert found.n_rows == 9
    assert found.recoveries.shape == (3, 3)
    assert STABLE not in found.verdicts


def test_verdicts():
    found = verdicts_of(
        lower=np.array([0.9, 0.7, 0.9, 0.9]),
        p_values=np.array([0.01, 0.01, 0.2, 0.01]),
        rows_in_subsample=np.array([9, 9, 9, 4]),
    )
    assert found == (STABLE, DOUBTFUL, CHANCE, DOUBTFUL)


# What a tree and its rows may be


def test_a_forest_is_as_good_as_the_tree(heaps, report):
    X, _ = heaps
    forest = linkage(X, "ward", threshold=report.born.max() + 1.0)
    assert forest.n_trees == 3
    found = forest.stability(X)
    np.testing.assert_array_equal(found.p_values, report.p_values)
    np.testing.assert_array_equal(found.dies, report.dies)


def test_the_estimator_that_found_one_cluster():
    X = np.random.default_rng(0).normal(size=(150, 2))
    model = RBHC().fit(X)
    assert model.n_clusters_ == 1
    found = model.assess(X, n_resamples=2)
    assert "one cluster" in found.sentence
    assert "the only cluster" in repr(found)
    assert found.born.tolist() == [model.dendrogram_.levels[-1]]


@pytest.mark.parametrize("units", [[1.0, 1000.0], [0.001, 1.0]])
def test_units_do_not_matter_to_a_family_that_scales(units):
    rng = np.random.default_rng(1)
    X = np.concatenate(
        [
            rng.normal(size=(50, 2)),
            rng.normal(size=(60, 2)) + 7.0,
            rng.normal(size=(40, 2)) + np.array([14.0, 0.0]),
        ]
    )
    models = [RBHC(n_clusters=3).fit(rows) for rows in (X, X * units)]
    np.testing.assert_array_equal(models[1].labels_, models[0].labels_)
    reference, computed = (
        model.assess(rows, n_resamples=3)
        for model, rows in zip(models, (X, X * units), strict=True)
    )
    assert computed.verdicts == reference.verdicts
    for name in ("jaccard", "p_values", "explained", "silhouettes", "born", "dies"):
        np.testing.assert_allclose(
            getattr(computed, name), getattr(reference, name), rtol=1e-6, err_msg=name
        )


def test_the_family_that_was_found_is_the_one_that_measures():
    """Shares of the cost, silhouettes and levels are those of the scaled rows."""
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(size=(50, 2)), rng.normal(size=(60, 2)) + 7.0]) * [1.0, 1000.0]
    model = RBHC(n_clusters=2).fit(X)
    found = model.assess(X, n_resamples=2)
    family = model.dendrogram_.family
    assert family.scale is not None
    scaled_rows = (X - family.centre) / family.scale
    same = linkage(scaled_rows, Gaussian(family.smoothing)).stability(
        scaled_rows, n_clusters=2, n_resamples=2
    )
    for name in ("explained", "silhouettes", "born", "dies"):
        np.testing.assert_allclose(getattr(found, name), getattr(same, name), rtol=1e-8)


def test_one_cluster_and_single_rows():
    X = np.random.default_rng(3).normal(size=(30, 2))
    tree = linkage(X, "ward")
    one = tree.stability(X, n_clusters=1)
    assert one.dies.tolist() == [np.inf]
    assert one.p_values.tolist() == [1.0]
    assert one.sentence == "There is one cluster, and nothing to compare it with."
    assert one.verdicts == ("the only cluster",)
    assert one.plot().get_title(loc="left") == "1 cluster of all rows"
    rows = tree.stability(X, n_clusters=30)
    assert np.isnan(rows.jaccard).all()
    assert STABLE not in rows.verdicts
    halves = tree.stability(X, n_clusters=2)
    assert halves.sentence == "Neither cluster is distinguishable from chance."
    pair = linkage([[0.0], [1.0]], "ward").stability([[0.0], [1.0]], n_clusters=2)
    assert pair.verdicts == (CHANCE, CHANCE)


def test_weights(heaps):
    X, _ = heaps
    weights = np.random.default_rng(4).integers(0, 4, len(X)).astype(float)
    found = linkage(X, "ward", sample_weight=weights).stability(X, n_clusters=3)
    assert found.verdicts == (STABLE,) * 3
    np.testing.assert_allclose(found.weights, np.bincount(found.labels, weights))


def test_sparse_rows():
    rng = np.random.default_rng(5)
    X = rng.poisson(np.array([[0.2, 9.0], [9.0, 0.2]])[np.arange(100) % 2])
    tree = linkage(sparse.csr_array(X), "poisson")
    found = tree.stability(sparse.csr_array(X), family="poisson", n_clusters=2)
    dense = tree.stability(X, family="poisson", n_clusters=2)
    assert found.verdicts == (STABLE, STABLE)
    np.testing.assert_array_equal(found.p_values, dense.p_values)


@pytest.mark.parametrize("name", ["poisson", "multinomial", "bernoulli"])
def test_wide_sparse_rows_stay_sparse(name, monkeypatch):
    X = wide_counts(name, 150, 7_000, 7)
    tree = linkage(X, name)
    dense = X.toarray()
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    found = tree.stability(X, n_clusters=3, n_resamples=8)
    assert found.verdicts == (STABLE,) * 3
    again = RBHC(name, n_clusters=3).fit(X).assess(X, n_resamples=8)
    np.testing.assert_array_equal(again.p_values, found.p_values)
    # All but the p-values are those of the dense rows.
    monkeypatch.setattr(assessing, "split_p_values", lambda *args: np.zeros(args[4].size))
    reference = tree.stability(dense, n_clusters=3, n_resamples=8)
    measures = ["explained", "silhouettes", "born", "dies"]
    if name != "bernoulli":  # whose ties are broken in another order, which changes subsamples
        measures += ["jaccard", "lower", "upper"]
    for what in measures:
        np.testing.assert_allclose(getattr(found, what), getattr(reference, what), rtol=1e-9)
    assert found.explained_together == pytest.approx(reference.explained_together)


@pytest.mark.parametrize("noise", sorted(set(words.NOISES) - {"zeros and ones"}))
def test_sparse_noise_has_no_stable_clusters(noise):
    family, draw = words.NOISES[noise]
    for seed in range(2):
        assert STABLE not in words.verdicts(draw(np.random.default_rng(seed)), family, 3)


@pytest.mark.parametrize("name", ["diagonal_gaussian", "von_mises_fisher", "exponential"])
def test_other_families(name):
    rng = np.random.default_rng(6)
    X = rng.gamma(30.0, np.array([[0.1, 3.0], [3.0, 0.1]])[np.arange(120) % 2])
    found = linkage(X, name).stability(X, family=name, n_clusters=2)
    assert found.verdicts == (STABLE, STABLE)


def test_equal_rows():
    X = np.ones((20, 2))
    found = linkage(X, "ward").stability(X, n_clusters=2)
    assert found.verdicts == (CHANCE, CHANCE)
    assert found.explained_together == 0.0


def test_a_tree_that_knows_its_family(heaps, report):
    X, _ = heaps
    found = linkage(X, "ward").stability(X, n_clusters=3)
    np.testing.assert_array_equal(found.p_values, report.p_values)


def test_refusals(heaps):
    X, _ = heaps
    tree = linkage(X, "ward")
    with pytest.raises(ValueError, match="X has 10 rows and the tree has 240"):
        tree.stability(X[:10], n_clusters=2)
    with pytest.raises(ValueError, match="at least 2: an interval"):
        tree.stability(X, n_clusters=2, n_resamples=1)
    with pytest.raises(ValueError, match="at least 2: a tree"):
        tree.stability(X, n_clusters=2, max_rows=1)
    with pytest.raises(ValueError, match="not those of the whole greedy tree"):
        assess(tree, X, as_family("ward"), np.arange(240) % 2)
    with pytest.raises(TypeError, match="probabilities"):
        fastrbhc.bhc_linkage(X[:10], "normal_gamma").stability(X[:10])


def test_a_tree_that_does_not_know_its_family(heaps):
    tree = replace(linkage(heaps[0], "ward"), origin=None)
    with pytest.raises(ValueError, match="does not remember its family"):
        tree.stability(heaps[0], n_clusters=2)


# The estimator


def test_the_estimator_numbers_clusters_as_its_labels():
    rng = np.random.default_rng(7)
    X = np.r_[rng.normal(size=(40, 2)), rng.normal(size=(90, 2)) + 9.0]
    for options in ({"n_clusters": 2}, {}):
        model = RBHC("ward", **options).fit(X)
        found = model.assess(X)
        np.testing.assert_array_equal(found.labels, model.labels_)
        assert found.sizes.tolist() == [90, 40]
        assert found.verdicts == (STABLE, STABLE)


def test_a_progress_bar(heaps, capsys):
    RBHC("ward", n_clusters=2).fit(heaps[0]).assess(heaps[0], n_resamples=3, progress=True)
    shown = capsys.readouterr().err
    assert "subsamples" in shown
    assert "splits" in shown


# How it is shown


def test_sentences(report):
    def with_verdicts(*verdicts):
        import dataclasses

        return dataclasses.replace(report, verdicts=verdicts).sentence

    share = f"together they explain {100 * report.explained_together:.0f} % of the cost."
    assert report.sentence == f"All 3 clusters are stable; {share}"
    assert with_verdicts(CHANCE, CHANCE, CHANCE) == (
        "None of the 3 clusters is distinguishable from chance."
    )
    assert with_verdicts(STABLE, DOUBTFUL, STABLE) == (
        f"Of 3 clusters 2 are stable and 1 is doubtful; {share}"
    )
    assert with_verdicts(CHANCE, STABLE, DOUBTFUL) == (
        "Of 3 clusters 1 is stable, 1 is doubtful and 1 is not distinguishable from chance; "
        f"{share}"
    )
    assert with_verdicts(DOUBTFUL, DOUBTFUL, DOUBTFUL).startswith("Of 3 clusters 3 are doubtful;")


def test_text_and_page(report):
    text = repr(report)
    assert text.startswith(report.sentence)
    assert len(text.splitlines()) == 2 + 1 + 3
    page = report._repr_html_()
    assert "<td>stable</td>" in page
    assert "<img" in page


def test_a_table(report):
    frame = report.to_pandas()
    assert frame.index.name == "cluster"
    assert frame["verdict"].tolist() == [STABLE] * 3
    np.testing.assert_array_equal(frame["dies"], report.dies)


def test_a_table_needs_pandas(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        report.to_pandas()


def test_a_picture(report):
    ax = report.plot()
    texts = [text.get_text() for text in ax.texts]
    assert sorted(texts) == [f"{c}: {report.jaccard[c]:.2f}" for c in range(3)]
    assert ax.get_title(loc="left") == "3 clusters: 3 stable"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [STABLE]
    plt.close("all")
