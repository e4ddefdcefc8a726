"""The scikit-learn estimator."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from strategies import ALL_FAMILIES, ordinary_rows

import fastrbhc
from fastrbhc import RBHC, families, linkage
from fastrbhc.tree.origin import Chosen

every_family = pytest.mark.parametrize("name", ALL_FAMILIES)


def draw(name, rng, n, n_features=2):
    return ordinary_rows(name, rng, n, n_features)


def two_groups(rng, n=30):
    return np.concatenate([rng.poisson(5, (n, 2)), rng.poisson(60, (n + 5, 2))])


# scikit-learn's own checks

# The tags do not claim support of the array API.
NOT_CLAIMED = {"check_array_api_input"}
# Passes negative numbers although the tags say that only positive ones are accepted.
NEGATIVE_INPUT = {"check_clustering"}
# Take every estimator with predict_proba for a classifier, and require its classes.
CLASSIFIERS = {"check_estimator_sparse_array", "check_estimator_sparse_matrix"}

# Compare labels after the rows were put into another order: numbers of equally heavy and equally
# low clusters, such as single rows, follow that order. Two clusters are not equal.
ANOTHER_ORDER = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}

CHECKED = [
    (RBHC(), NOT_CLAIMED),
    (RBHC("ward"), NOT_CLAIMED | ANOTHER_ORDER),
    (RBHC("poisson"), NOT_CLAIMED | NEGATIVE_INPUT | CLASSIFIERS | ANOTHER_ORDER),
]
IN_TWO_CLUSTERS = [RBHC(n_clusters=2), RBHC("ward", n_clusters=2), RBHC("poisson", n_clusters=2)]


def name_of(check):
    return getattr(check, "func", check).__name__


def applicable_checks():
    for estimator, left_out in CHECKED:
        for instance, check in estimator_checks_generator(estimator):
            if name_of(check) not in left_out:
                yield pytest.param(instance, check, id=f"{estimator.family}-{name_of(check)}")
    for estimator in IN_TWO_CLUSTERS:
        for instance, check in estimator_checks_generator(estimator):
            if name_of(check) in ANOTHER_ORDER:
                yield pytest.param(instance, check, id=f"{estimator.family}-{name_of(check)}")


@pytest.mark.parametrize(("estimator", "check"), list(applicable_checks()))
def test_scikit_learn(estimator, check):
    check(estimator)


# Attributes


@every_family
def test_attributes(name):
    X = draw(name, np.random.default_rng(0), 40)
    options = {"threshold": "kmeans", "n_clusters_guess": 2, "random_state": 0}
    model = RBHC(name, **options).fit(X)
    tree = model.dendrogram_
    assert model.threshold_ == fastrbhc.kmeans_threshold(X, name, 2, random_state=0)
    assert model.n_leaves_ == 40
    assert model.n_clusters_ == tree.n_trees == len(np.unique(model.labels_))
    np.testing.assert_array_equal(model.children_, tree.merges)
    np.testing.assert_array_equal(model.distances_, tree.heights)
    assert (model.distances_ < model.threshold_).all()
    np.testing.assert_array_equal(model.labels_, tree.cut(threshold=model.threshold_))
    assert model.n_features_in_ == 2
    assert model.choice_ is None
    np.testing.assert_array_equal(RBHC(name, **options).fit_predict(X), model.labels_)


def test_clusters_are_numbered_by_weight():
    X = two_groups(np.random.default_rng(1))
    model = RBHC("poisson", n_clusters=2).fit(X)
    assert model.labels_.tolist() == [1] * 30 + [0] * 35
    weights = np.r_[np.full(30, 9.0), np.ones(35)]
    model.fit(X, sample_weight=weights)
    assert model.labels_.tolist() == [0] * 30 + [1] * 35


@pytest.mark.parametrize(
    ("options", "by"),
    [
        ({"threshold": "kmeans", "random_state": 0}, "kmeans"),
        ({}, "predictive"),
        ({"threshold": "gap"}, "gap"),
        ({"threshold": "evidence"}, "evidence"),
        ({"threshold": 40.0}, "given"),
        ({"threshold": 40.0, "compute_full_tree": True}, "given"),
        ({"n_clusters": 7}, "n_clusters"),
    ],
)
def test_the_tree_remembers_how_it_was_cut(options, by):
    X = pd.DataFrame(two_groups(np.random.default_rng(3)), columns=["a", "b"])
    model = RBHC("poisson", **options).fit(X, sample_weight=np.arange(1.0, 66.0))
    tree = model.dendrogram_
    assert tree.chosen == Chosen(model.threshold_, by, options.get("n_clusters"))
    assert (tree.family, tree.n_features) == (families.Poisson(), 2)
    assert tree.feature_names == ("a", "b")
    np.testing.assert_array_equal(tree.cut(), model.labels_)
    whole = linkage(X, "poisson", sample_weight=np.arange(1.0, 66.0))
    np.testing.assert_array_equal(whole.cut(n_clusters=model.n_clusters_), model.labels_)
    pd.testing.assert_frame_equal(tree.summary(X), model.summary())


def test_a_number_of_clusters_decides_among_ties():
    model = RBHC("ward", n_clusters=3).fit([[1.0], [1.0], [1.0], [2.0]])
    assert model.dendrogram_.cut().tolist() == model.labels_.tolist()
    assert model.dendrogram_.cut().max() == 2


@pytest.mark.parametrize("n_clusters", [1, 2, 7, 39, 40])
def test_as_many_clusters_as_asked_for(n_clusters):
    X = draw("gaussian", np.random.default_rng(2), 40)
    model = RBHC("gaussian", n_clusters=n_clusters).fit(X)
    assert model.n_clusters_ == n_clusters
    assert set(model.labels_) == set(range(n_clusters))
    assert model.dendrogram_.n_trees == 1
    levels = model.dendrogram_.levels
    if n_clusters == 1:
        assert model.threshold_ == np.inf
    else:
        assert model.threshold_ == levels[40 - n_clusters]


def test_as_many_clusters_as_asked_for_among_copies():
    model = RBHC("ward", n_clusters=3).fit([[1.0], [1.0], [1.0], [2.0]])
    assert model.n_clusters_ == len(set(model.labels_)) == 3


def test_a_given_threshold():
    X = np.array([[0.0], [1.0], [5.0], [7.0]])  # merges at 0.25, 1 and 15.125
    for threshold, expected in [(0.0, 4), (0.25, 4), (0.26, 3), (1.0, 3), (2, 2), (np.inf, 1)]:
        model = RBHC("ward", threshold=threshold).fit(X)
        assert model.n_clusters_ == expected
        assert model.threshold_ == threshold


def test_compute_full_tree():
    X = two_groups(np.random.default_rng(3))
    stopped = RBHC("poisson", threshold=5.0).fit(X)
    full = RBHC("poisson", threshold=5.0, compute_full_tree=True).fit(X)
    np.testing.assert_array_equal(full.labels_, stopped.labels_)
    assert stopped.dendrogram_.n_trees == stopped.n_clusters_ > 1
    assert full.dendrogram_.n_trees == 1
    assert full.n_clusters_ == stopped.n_clusters_


@pytest.mark.parametrize(
    ("given_parameters", "message"),
    [
        ({"threshold": 1.0, "n_clusters": 2}, "either threshold or n_clusters, and not both"),
        ({"threshold": None}, "give either threshold or n_clusters"),
        (
            {"threshold": "k-means"},
            "threshold has to be one of 'predictive', 'gap', 'evidence', 'kmeans' or a number",
        ),
        ({"threshold": -1.0}, "threshold has to be at least 0"),
        ({"threshold": np.nan}, "threshold has to be at least 0"),
        ({"n_clusters": 0}, "n_clusters has to be at least 1"),
        ({"n_clusters": 4}, "n_clusters=4 is more than the number of rows, 3"),
        ({"n_clusters_guess": 0}, "n_clusters_guess has to be at least 1"),
        ({"multiplier": -1}, "multiplier has to be at least 1"),
        (
            {"algorithm": "slink"},
            "algorithm has to be one of 'auto', 'greedy', 'levels', 'nn_chain'",
        ),
        ({"neighbors": "tree"}, "neighbors has to be one of 'auto', .*'brute'"),
        ({"family": "gausian"}, "did you mean 'gaussian'"),
        ({"n_jobs": 0}, "n_jobs has to be positive"),
    ],
    ids=str,
)
def test_wrong_parameters(given_parameters, message):
    with pytest.raises(ValueError, match=message):
        RBHC(**given_parameters).fit(np.eye(3))


@pytest.mark.parametrize(
    "given_parameters",
    [{"n_clusters": 2.0}, {"n_clusters": True}, {"n_clusters_guess": "8"}, {"n_jobs": 1.5}],
    ids=str,
)
def test_parameters_of_the_wrong_type(given_parameters):
    with pytest.raises(TypeError, match=f"{next(iter(given_parameters))} has to be a whole number"):
        RBHC(**given_parameters).fit(np.eye(3))


def test_a_guess_that_is_not_used():
    X = two_groups(np.random.default_rng(3))
    with pytest.warns(UserWarning, match="guess is for threshold='kmeans'.* is 'predictive'") as w:
        RBHC("poisson", n_clusters_guess=2).fit(X)
    assert [warning.filename for warning in w] == [__file__]


# predict


@every_family
def test_predict_gives_the_nearest_cluster(name):
    rng = np.random.default_rng(4)
    X, new = draw(name, rng, 40), draw(name, rng, 25)
    model = RBHC(name, n_clusters=4).fit(X)
    groups = [X[model.labels_ == label] for label in range(4)]
    reference = [
        np.argmin([fastrbhc.dissimilarity(group, row[None], name) for group in groups])
        for row in new
    ]
    np.testing.assert_array_equal(model.predict(new), reference)
    np.testing.assert_array_equal(model.predict(new[:1]), reference[:1])


def test_predict_minds_the_weights():
    X, weights = np.array([[0.0], [4.0]]), np.array([1.0, 99.0])
    model = RBHC("ward", n_clusters=2).fit(X, sample_weight=weights)
    # Ward's cost of joining a cluster grows with its weight: ½·2.2² · ½ against ½·1.8² · 0.99
    assert model.labels_.tolist() == [1, 0]
    assert model.predict([[2.2], [3.9]]).tolist() == [1, 0]


def test_predict_uses_the_family_that_was_fitted():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = RBHC("ward", n_clusters=3).fit(X)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(family="gaussian").predict(X), before)


def test_predict_refuses():
    model = RBHC("poisson", n_clusters=2)
    with pytest.raises(NotFittedError):
        model.predict([[1.0, 2.0]])
    model.fit(two_groups(np.random.default_rng(5)))
    with pytest.raises(ValueError, match="X has 1 features, but RBHC is expecting 2 features"):
        model.predict([[1.0]])
    with pytest.raises(ValueError, match=r"Negative values .* row 0, column 1 is -2"):
        model.predict([[1.0, -2.0]])


# Containers


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames(frame):
    X = two_groups(np.random.default_rng(6))
    data = frame({"left": X[:, 0], "right": X[:, 1]})
    model = RBHC("poisson", n_clusters=2).fit(data)
    reference = RBHC("poisson", n_clusters=2).fit(X)
    assert model.feature_names_in_.tolist() == ["left", "right"]
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    np.testing.assert_array_equal(model.predict(data), reference.predict(X))
    turned = frame({"right": X[:, 1], "left": X[:, 0]})
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(turned)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("name", ["poisson", "multinomial", "bernoulli"])
def test_sparse_input_is_dense_input(container, name):
    X = (np.random.default_rng(7).random((30, 4)) < 0.4) * 1.0
    X[:, 0] = 1.0
    dense = RBHC(name, n_clusters=3).fit(X)
    model = RBHC(name, n_clusters=3).fit(container(X))
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    np.testing.assert_array_equal(model.distances_, dense.distances_)
    np.testing.assert_array_equal(model.predict(container(X)), dense.predict(X))


def test_sparse_input_where_zero_is_nothing_special():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        RBHC("ward").fit(sparse.csr_matrix(np.eye(3)))


@pytest.mark.parametrize(
    "changed",
    [
        lambda X: X.tolist(),
        lambda X: X.astype(np.float32),
        lambda X: X.astype(np.int16),
        np.asfortranarray,
        lambda X: X.repeat(2, axis=0)[::2],
    ],
    ids=["list", "float32", "int16", "fortran", "strided"],
)
def test_other_layouts(changed):
    X = two_groups(np.random.default_rng(8)).astype(float)
    before = X.copy()
    reference = RBHC("poisson", n_clusters=5).fit(X)
    model = RBHC("poisson", n_clusters=5).fit(changed(X))
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    np.testing.assert_array_equal(model.distances_, reference.distances_)
    np.testing.assert_array_equal(X, before)


def test_read_only_input():
    X = two_groups(np.random.default_rng(9)).astype(float)
    X.flags.writeable = False
    assert RBHC("poisson", n_clusters=2).fit(X).n_clusters_ == 2


# Weights and order

HEURISTIC = {"threshold": "kmeans", "n_clusters_guess": 2, "random_state": 0}
every_choice = pytest.mark.parametrize("options", [HEURISTIC, {}], ids=["kmeans", "predictive"])


@every_family
@every_choice
def test_weights_are_copies(name, options):
    rng = np.random.default_rng(10)
    X, weights = draw(name, rng, 30), rng.integers(1, 4, 30)
    model = RBHC(name, **options).fit(X, sample_weight=weights)
    copied = RBHC(name, **options).fit(X.repeat(weights, axis=0))
    np.testing.assert_array_equal(model.labels_.repeat(weights), copied.labels_)
    assert model.threshold_ == pytest.approx(copied.threshold_, rel=1e-12)
    new = draw(name, rng, 10)
    np.testing.assert_array_equal(model.predict(new), copied.predict(new))


@every_family
def test_labels_do_not_depend_on_the_order_of_rows(name):
    rng = np.random.default_rng(11)
    X, order = draw(name, rng, 40), rng.permutation(40)
    model = RBHC(name, **HEURISTIC).fit(X)
    shuffled = RBHC(name, **HEURISTIC).fit(X[order])
    assert model.n_clusters_ > 1
    np.testing.assert_array_equal(shuffled.labels_, model.labels_[order])


def test_labels_do_not_depend_on_the_number_of_threads():
    X = draw("gaussian", np.random.default_rng(12), 60)
    one, two = (RBHC(n_clusters=6, n_jobs=jobs).fit(X).labels_ for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


# Pickling, cloning, parameters, pipelines


def test_pickle_keeps_the_model():
    X = two_groups(np.random.default_rng(13))
    model = RBHC(families.Poisson(smoothing=0.5), n_clusters=3).fit(X)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.labels_, model.labels_)
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))
    assert restored.family == families.Poisson(smoothing=0.5)


def test_pickle_holds_the_version(monkeypatch):
    X = two_groups(np.random.default_rng(13))
    model = RBHC("poisson", n_clusters=3).fit(X)
    stored = pickle.dumps(model)
    assert not hasattr(pickle.loads(stored), "_fastrbhc_version")
    monkeypatch.setattr(fastrbhc, "__version__", "12.0.1")
    with pytest.warns(UserWarning, match=r"was written by .* and is read by 12\.0\.1"):
        restored = pickle.loads(stored)
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))
    unfitted = pickle.loads(pickle.dumps(RBHC("poisson", n_clusters=3)))
    assert unfitted.get_params() == RBHC("poisson", n_clusters=3).get_params()


def test_clone_copies_parameters_only():
    model = RBHC(families.Poisson(smoothing=0.5), n_clusters=3, n_jobs=1)
    model.fit(two_groups(np.random.default_rng(14)))
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "labels_")


def test_set_params():
    model = RBHC().set_params(family="poisson", n_clusters=2)
    assert model.fit(two_groups(np.random.default_rng(15))).n_clusters_ == 2


def test_pipeline():
    X = two_groups(np.random.default_rng(16))
    pipeline = make_pipeline(StandardScaler(), RBHC("ward", n_clusters=2)).fit(X)
    reference = RBHC("ward", n_clusters=2).fit(StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(
        pipeline.predict(X), reference.predict(StandardScaler().fit_transform(X))
    )
    np.testing.assert_array_equal(pipeline[-1].labels_, reference.labels_)


@pytest.mark.parametrize(
    ("family", "positive_only", "takes_sparse"),
    [
        ("ward", False, False),
        ("gaussian", False, False),
        ("poisson", True, True),
        ("bernoulli", True, True),
        ("exponential", True, False),
        (families.Exponential(smoothing=0.1), True, True),
    ],
    ids=str,
)
def test_tags(family, positive_only, takes_sparse):
    tags = RBHC(family).__sklearn_tags__()
    assert tags.input_tags.positive_only == positive_only
    assert tags.input_tags.sparse == takes_sparse


# Soft membership, scores and dissimilarities


@every_family
def test_dissimilarities_to_the_clusters(name):
    X, new = draw(name, np.random.default_rng(20), 40), draw(name, np.random.default_rng(21), 9)
    model = RBHC(name, n_clusters=3).fit(X)
    reference = [
        [fastrbhc.dissimilarity(X[model.labels_ == c], x[None], name) for c in range(3)]
        for x in new
    ]
    computed = model.transform(new)
    np.testing.assert_allclose(computed, reference, rtol=1e-9)
    np.testing.assert_array_equal(computed.argmin(axis=1), model.predict(new))
    np.testing.assert_array_equal(model.score_samples(new), -computed.min(axis=1))
    np.testing.assert_allclose(RBHC(name, n_clusters=3).fit_transform(X), model.transform(X))


@every_family
def test_memberships(name):
    X = draw(name, np.random.default_rng(22), 60)
    model = RBHC(name, n_clusters=4).fit(X)
    computed = model.predict_proba(X)
    d = model.transform(X)
    np.testing.assert_allclose(computed, np.exp(-d) / np.exp(-d).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(computed.sum(axis=1), 1.0)
    np.testing.assert_array_equal(computed.argmax(axis=1), model.predict(X))


def test_memberships_of_distant_rows():
    model = RBHC("ward", n_clusters=2).fit([[0.0], [1.0], [50.0], [51.0]])
    computed = model.predict_proba([[1e6], [-1e6]])
    assert np.isfinite(computed).all()
    assert computed.argmax(axis=1).tolist() == model.predict([[1e6], [-1e6]]).tolist()


def test_outliers_have_low_scores():
    X = np.random.default_rng(23).normal(size=(50, 2))
    model = RBHC("ward", n_clusters=1).fit(X)
    scores = model.score_samples(np.r_[X, [[30.0, 30.0]]])
    assert scores.argmin() == 50
    assert (scores <= 0.0).all()


def test_a_frame_of_dissimilarities():
    frame = pd.DataFrame(two_groups(np.random.default_rng(24)), columns=["a", "b"])
    model = RBHC("poisson", n_clusters=2).set_output(transform="pandas")
    computed = model.fit_transform(frame)
    assert list(computed.columns) == list(model.get_feature_names_out()) == ["rbhc0", "rbhc1"]
    assert computed.index.equals(frame.index)
    # Neither memberships nor scores become frames.
    assert isinstance(model.predict_proba(frame), np.ndarray)
    assert isinstance(model.score_samples(frame), np.ndarray)


def test_clusters_without_weight_have_no_members():
    X, weights = [[0.0], [1.0], [9.0], [10.0]], [1.0, 1.0, 0.0, 1.0]
    model = RBHC("ward", n_clusters=4).fit(X, sample_weight=weights)
    computed = model.predict_proba([[9.0]])
    assert np.isfinite(computed).all()
    assert (computed > 0.0).sum() == 3


@pytest.mark.parametrize("method", ["transform", "predict_proba", "score_samples", "assess"])
def test_methods_need_a_fit(method):
    with pytest.raises(NotFittedError):
        getattr(RBHC("ward"), method)([[1.0], [2.0]])


def test_rows_are_described_by_clusters_in_a_pipeline():
    X = np.random.default_rng(25).normal(size=(40, 3))
    steps = make_pipeline(StandardScaler(), RBHC("ward", n_clusters=5), StandardScaler())
    assert steps.fit_transform(X).shape == (40, 5)


# Names of columns


def words_of(pets):
    documents = ["cat cat dog", "cat dog dog", "sun moon", "moon moon sun"]
    return documents if pets else documents[2:]


def test_names_of_a_vectoriser():
    vectoriser = CountVectorizer()
    X = vectoriser.fit_transform(words_of(pets=True))
    names = vectoriser.get_feature_names_out()
    model = RBHC("multinomial", n_clusters=2).fit(X, feature_names=names)
    assert model.dendrogram_.feature_names == ("cat", "dog", "moon", "sun")
    assert list(model.summary().columns[-4:]) == ["mean_cat", "mean_dog", "mean_moon", "mean_sun"]
    pd.testing.assert_frame_equal(model.dendrogram_.summary(X.toarray()), model.summary())
    # New rows have no names either, so that there is nothing to compare or to warn of.
    assert not hasattr(model, "feature_names_in_")
    assert set(model.predict(vectoriser.transform(words_of(pets=False)))) < set(model.labels_)
    np.testing.assert_array_equal(
        RBHC("multinomial", n_clusters=2).fit_predict(X, feature_names=names), model.labels_
    )


def test_names_after_a_pipeline():
    steps = make_pipeline(CountVectorizer(), RBHC("multinomial", n_clusters=2))
    steps.fit(words_of(pets=True))
    assert list(steps[-1].summary().columns[-4:]) == ["mean_x0", "mean_x1", "mean_x2", "mean_x3"]
    frame = steps[-1].summary(feature_names=steps[:-1].get_feature_names_out())
    assert list(frame.columns[-4:]) == ["mean_cat", "mean_dog", "mean_moon", "mean_sun"]


def test_names_that_are_given_replace_those_of_a_frame():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 5.0]], columns=["a", "b"])
    model = RBHC("ward", n_clusters=1).fit(frame, feature_names=["left", "right"])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert list(model.summary().columns[-2:]) == ["mean_left", "mean_right"]


def test_names_in_messages_and_wrong_ones():
    X = sparse.csr_array([[1.0, 2.0], [0.0, -1.0]])
    for function in (RBHC("poisson").fit, partial(linkage, family="poisson")):
        with pytest.raises(ValueError, match="row 1, column 'dog' is -1"):
            function(X, feature_names=["cat", "dog"])
        with pytest.raises(ValueError, match="there are 1 feature_names, expected 2"):
            function(X, feature_names=["cat"])
        with pytest.raises(ValueError, match="feature_names is 'ab': a list with one name"):
            function(X, feature_names="ab")
