"""Reports on reducibility: their contents, and whether a tree is the greedy one."""

from __future__ import annotations

import dataclasses

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import beta
from strategies import FAMILIES, REDUCIBLE, continuous_rows
from trees import leaf_sets

from fastrbhc import RBHC, linkage
from fastrbhc.reducibility import ReducibilityReport, first_departure

mpl.use("agg")


@pytest.fixture(scope="module")
def tree():
    X = np.random.default_rng(0).normal(size=(200, 2))
    return linkage(X, "gaussian", audit=True)


def sampled(violations, triples):
    return ReducibilityReport("sample", triples, violations, 0, violations, None, (), (), 0, True)


def test_trees_are_not_audited_unless_asked_for():
    assert linkage([[0.0], [1.0], [5.0]], "ward").audit is None


@pytest.mark.parametrize("family", FAMILIES)
def test_all_triples_of_a_whole_tree_are_covered(family):
    for n in (2, 3, 20):
        X = continuous_rows(family, n, 2, seed=1)
        assert linkage(X, family, audit=True).audit.triples == (n - 1) * (n - 2) // 2
        twice = np.concatenate([X, X])
        assert linkage(twice, family, audit=True).audit.triples == (2 * n - 1) * (2 * n - 2) // 2


@pytest.mark.parametrize("family", REDUCIBLE)
@pytest.mark.parametrize("audit", [True, "sample"])
def test_a_proof_needs_no_search(family, audit):
    X = continuous_rows(family, 50, 2, seed=2)
    for algorithm in ("auto", "greedy", "nn_chain"):
        report = linkage(X, family, algorithm=algorithm, audit=audit).audit
        assert report.method == "proof"
        assert report.violations == report.consequential == 0
        assert report.certified
        assert "proven reducible" in str(report)


def test_nothing_to_merge():
    report = linkage([[0.0], [1.0], [5.0]], "gaussian", threshold=0.0, audit=True).audit
    assert report.triples == report.violations == 0
    assert report.rate == 0.0
    assert "nothing was merged" in report.sentence
    assert "proven" not in str(report)
    assert report.plot().get_title(loc="left")


def test_what_is_said(tree):
    report = tree.audit
    assert report.violations > 0
    text = str(report)
    assert f"{report.triples:,}" in text
    assert f"{report.violations:,}" in text
    assert f"{100 * report.worst.deficit:.3g} %" in text
    assert "all of them" in text
    assert text.startswith(report.sentence)
    page = report._repr_html_()
    assert report.sentence in page
    assert page.count("<tr>") == 6
    assert f"{report.violations:,}" in page
    assert report.inversions == tree.n_inversions


def test_bands_cover_the_tree(tree):
    report, sizes = tree.audit, [len(leaves) for leaves in leaf_sets(tree)]
    for bands, values in ((report.by_height, tree.heights), (report.by_size, np.array(sizes))):
        for band in bands:
            inside = (band.lower <= values) & (values < band.upper)
            assert band.merges == inside.sum()
            assert band.violations == report.counts[inside].sum()
        assert sum(band.merges for band in bands) == len(tree.merges)


def test_as_a_data_frame(tree):
    frame = tree.audit.to_pandas()
    for kind in ("height", "size"):
        some = frame[frame["by"] == kind]
        assert some["violations"].sum() == tree.audit.violations
        assert some["triples"].sum() == tree.audit.triples


def test_the_picture(tree):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert tree.audit.plot(ax=ax) is ax
    points = ax.collections[0].get_offsets()
    assert len(points) == np.count_nonzero(tree.audit.counts)
    assert points[:, 1].sum() == tree.audit.violations
    assert ax.collections[0].get_array().max() == pytest.approx(100 * tree.audit.worst.deficit)
    plt.close("all")


@pytest.mark.parametrize("most", [1, 3, 10, 11, 4_000])
def test_the_picture_counts_in_whole_numbers(tree, most):
    import matplotlib.pyplot as plt

    counts = np.zeros_like(tree.audit.counts)
    counts[-3:] = [1, 1, most]
    ax = dataclasses.replace(tree.audit, counts=counts).plot()
    ax.figure.canvas.draw()
    low, high = ax.get_ylim()
    ticks = zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
    shown = [(tick, text.get_text()) for tick, text in ticks if low <= tick <= high]
    assert len(shown) >= 2
    assert all(text == f"{int(tick):,}" for tick, text in shown)
    assert not any(text.get_text() for text in ax.get_yticklabels(minor=True))
    plt.close("all")


@pytest.mark.parametrize(("violations", "triples"), [(0, 500), (3, 500), (500, 500), (7, 10**6)])
def test_intervals_of_samples(violations, triples):
    lower, upper = sampled(violations, triples).interval
    if violations > 0:
        assert lower == pytest.approx(beta.ppf(0.025, violations, triples - violations + 1))
    else:
        assert lower == 0.0
    if violations < triples:
        assert upper == pytest.approx(beta.ppf(0.975, violations + 1, triples - violations))
    else:
        assert upper == 1.0
    assert lower <= violations / triples <= upper


def test_all_triples_leave_nothing_to_guess(tree):
    assert tree.audit.interval == (tree.audit.rate, tree.audit.rate)


# Is it the greedy tree?


def test_greedy_trees_are_certified_by_construction(tree):
    assert tree.audit.certified
    assert tree.audit.departure is None


def test_chains_are_certified_by_the_greedy_tree():
    outcomes = set()
    for seed in range(12):
        X = np.random.default_rng(seed).normal(size=(20, 2))
        chain = linkage(X, "gaussian", algorithm="nn_chain", audit=True)
        greedy = linkage(X, "gaussian")
        ours, theirs = leaf_sets(chain), set(leaf_sets(greedy))
        missing = [row for row, leaves in enumerate(ours) if leaves not in theirs]
        assert chain.audit.certified == (not missing)
        assert chain.audit.departure == (missing[0] if missing else None)
        assert str(chain.audit).count("has no cluster like that") == bool(missing)
        outcomes.add(chain.audit.certified)
    assert outcomes == {True, False}  # otherwise these seeds test nothing


def test_chains_that_stop_early_are_not_certified():
    """The greedy algorithm may still merge a cluster that the chain has finished."""
    for seed in range(200):
        X = np.random.default_rng(seed).normal(size=(14, 2))
        heights = linkage(X, "gaussian").heights
        for threshold in np.quantile(heights, [0.5, 0.8]):
            forest = linkage(X, "gaussian", algorithm="nn_chain", threshold=threshold, audit=True)
            greedy = linkage(X, "gaussian", threshold=threshold)
            same = set(leaf_sets(forest)) == set(leaf_sets(greedy))
            assert forest.audit.certified == same


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "This is exactly the greedy tree; reducibility was violated in 123 of its 4,567 "
            "triples (2.7 %), which made no difference to the tree.",
        ),
        (
            {"violations": 0},
            "This is exactly the greedy tree; reducibility was violated in none of its 4,567 "
            "triples.",
        ),
        (
            {"method": "proof", "violations": 0},
            "This is exactly the greedy tree; the family is proven reducible, so that no triple "
            "had to be examined.",
        ),
        (
            {"method": "sample"},
            "This is exactly the greedy tree; reducibility was violated in 123 of 4,567 triples "
            "drawn at random (2.7 %; 95 % interval 2.2 % to 3.2 %), which made no difference to "
            "the tree.",
        ),
        (
            {"method": "sample", "violations": 0},
            "This is exactly the greedy tree; reducibility was violated in none of 4,567 triples "
            "drawn at random (0 %; 95 % interval 0 % to 0.081 %).",
        ),
        (
            {"violations": 1, "triples": 10**6},
            "This is exactly the greedy tree; reducibility was violated in 1 of its 1,000,000 "
            "triples (less than 0.01 %), which made no difference to the tree.",
        ),
        (
            {"certified": False, "departure": 77},
            "This is not the greedy tree, which has no cluster like that of merge 77; "
            "reducibility was violated in 123 of its 4,567 triples (2.7 %), 4 of them "
            "consequential.",
        ),
        (
            {"certified": False, "departure": 99, "violations": 0},
            "This is not the greedy tree, which has further clusters; reducibility was violated "
            "in none of its 4,567 triples.",
        ),
    ],
)
def test_the_verdict(changes, sentence):
    report = ReducibilityReport(
        "exact", 4_567, 123, 4, 123, None, (), (), 0, True, heights=np.arange(99.0)
    )
    assert dataclasses.replace(report, **changes).sentence == sentence


def test_two_rows_have_no_triples():
    report = linkage([[0.0], [1.0]], "gaussian", audit=True).audit
    assert report.sentence.endswith("there are no triples that could violate reducibility.")


def test_departures_of_equal_and_of_different_trees(tree):
    assert first_departure(tree, tree) is None
    other = linkage(np.random.default_rng(1).normal(size=(200, 2)), "gaussian")
    theirs = set(leaf_sets(other))
    rows = [row for row, leaves in enumerate(leaf_sets(tree)) if leaves not in theirs]
    assert first_departure(tree, other) == rows[0]


# The estimator, and invalid input


def test_the_estimator_audits_too():
    X = np.random.default_rng(2).normal(size=(60, 2))
    model = RBHC("gaussian", n_clusters=3, audit=True).fit(X)
    assert model.dendrogram_.audit.triples == 59 * 58 // 2
    assert RBHC("gaussian", n_clusters=3).fit(X).dendrogram_.audit is None


@pytest.mark.parametrize("wrong", ["all", 1, None, 0.5])
def test_anything_else_is_refused(wrong):
    X = [[0.0], [1.0], [2.0]]
    with pytest.raises(ValueError, match="audit has to be False, True or 'sample'"):
        linkage(X, "ward", audit=wrong)
    with pytest.raises(ValueError, match="audit has to be False, True or 'sample'"):
        RBHC("ward", n_clusters=2, audit=wrong).fit(X)


def test_reports_cannot_be_changed(tree):
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.audit.violations = 0
