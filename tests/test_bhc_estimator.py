"""The scikit-learn estimator of Bayesian hierarchical clustering."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from test_bhc_models import draw, every_model

import fastrbhc
from fastrbhc import BHC
from fastrbhc.bhc import GammaPoisson, NormalWishart

# The tags do not claim support of the array API.
NOT_CLAIMED = {"check_array_api_input"}
# Passes negative numbers although the tags say that only positive ones are accepted.
NEGATIVE_INPUT = {"check_clustering"}
# Take every estimator with predict_proba for a classifier, and require its classes.
CLASSIFIERS = {"check_estimator_sparse_array", "check_estimator_sparse_matrix"}

CHECKED = [
    (BHC(), NOT_CLAIMED),
    (BHC("diagonal_gaussian"), NOT_CLAIMED),
    (BHC("poisson"), NOT_CLAIMED | NEGATIVE_INPUT | CLASSIFIERS),
]


def name_of(check):
    return getattr(check, "func", check).__name__


def applicable_checks():
    for estimator, left_out in CHECKED:
        for instance, check in estimator_checks_generator(estimator):
            if name_of(check) not in left_out:
                yield pytest.param(instance, check, id=f"{estimator.model}-{name_of(check)}")


@pytest.mark.parametrize(("estimator", "check"), list(applicable_checks()))
def test_scikit_learn(estimator, check):
    check(estimator)


def two_groups(rng, n=30):
    return np.concatenate([rng.poisson(5, (n, 2)), rng.poisson(60, (n + 5, 2))])


@every_model
def test_attributes(name):
    X = draw(name, np.random.default_rng(0), 40)
    model = BHC(name).fit(X)
    tree = fastrbhc.bhc_linkage(X, name)
    assert model.n_clusters_ == len(np.unique(model.labels_))
    np.testing.assert_array_equal(model.labels_, tree.cut())
    assert model.dendrogram_.model is model.model_
    assert model.dendrogram_.family.name == name
    assert model.dendrogram_.n_features == X.shape[1]
    assert model.log_evidence_ == tree.log_evidence == model.dendrogram_.log_evidence
    assert model.alpha_ == 1.0
    assert model.n_leaves_ == 40
    assert None not in [getattr(model.model_, field) for field in model.model_.tunable]
    np.testing.assert_array_equal(model.children_, tree.merges)
    np.testing.assert_array_equal(model.distances_, tree.heights)
    again = BHC(model.model_).fit(X)
    assert again.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-12)


def test_clusters_are_numbered_by_size():
    X = two_groups(np.random.default_rng(1))
    model = BHC("poisson").fit(X)
    assert model.labels_.tolist() == [1] * 30 + [0] * 35
    order = np.random.default_rng(2).permutation(65)
    np.testing.assert_array_equal(BHC("poisson").fit(X[order]).labels_, model.labels_[order])


@pytest.mark.parametrize("n_clusters", [1, 2, 7, 40])
def test_as_many_clusters_as_asked_for(n_clusters):
    X = draw("gaussian", np.random.default_rng(3), 40)
    model = BHC(n_clusters=n_clusters).fit(X)
    assert model.n_clusters_ == n_clusters == len(np.unique(model.labels_))


def test_another_probability():
    X = two_groups(np.random.default_rng(4))
    model = BHC("poisson", probability=0.999).fit(X)
    reference = model.dendrogram_.cut(probability=0.999)
    np.testing.assert_array_equal(model.labels_, reference)
    assert model.n_clusters_ > 2


def test_alpha_makes_clusters():
    X = draw("gaussian", np.random.default_rng(5), 60)
    few, many = (BHC(alpha=alpha).fit(X).n_clusters_ for alpha in (1e-6, 1e6))
    assert few < many


def test_predict():
    X = two_groups(np.random.default_rng(6))
    model = BHC("poisson").fit(X)
    new = np.array([[5, 5], [60, 60], [58, 70]])
    assert model.predict(new).tolist() == [1, 0, 0]
    shares = model.predict_proba(new)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(new))
    density = model.score_samples([[5, 5], [30, 30]])
    assert density[0] > density[1]
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_predict_refuses():
    model = BHC("poisson")
    with pytest.raises(NotFittedError):
        model.score_samples([[1.0, 2.0]])
    model.fit(two_groups(np.random.default_rng(7)))
    with pytest.raises(ValueError, match="X has 1 features, but BHC is expecting 2 features"):
        model.predict([[1.0]])
    with pytest.raises(ValueError, match=r"Negative values .* row 0, column 1 is -2"):
        model.predict_proba([[1.0, -2.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "gausian"}, "did you mean 'gaussian'"),
        ({"alpha": -1.0}, "alpha has to be positive"),
        ({"hyperparameters": "best"}, "has to be one of 'data', 'evidence'"),
        ({"hyperparameters": {"shape": 1.0}}, "no hyperparameter 'shape'"),
        ({"n_clusters": 4}, "n_clusters=4 is more than the number of rows, 3"),
        ({"probability": 2.0}, "probability has to lie between 0 and 1"),
        ({"n_jobs": 0}, "n_jobs has to be positive"),
    ],
    ids=str,
)
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        BHC(**options).fit(np.eye(3))


def test_hyperparameters_by_name_and_by_record():
    X = two_groups(np.random.default_rng(8))
    by_name = BHC("poisson", hyperparameters={"shape": 2.0, "rate": 0.1}).fit(X)
    by_record = BHC("poisson", hyperparameters=GammaPoisson(2.0, 0.1)).fit(X)
    as_a_model = BHC(GammaPoisson(2.0, 0.1)).fit(X)
    assert by_name.log_evidence_ == by_record.log_evidence_ == as_a_model.log_evidence_


def test_containers():
    X = two_groups(np.random.default_rng(9))
    reference = BHC("poisson").fit(X)
    frame = BHC("poisson").fit(pd.DataFrame(X, columns=["left", "right"]))
    assert frame.feature_names_in_.tolist() == ["left", "right"]
    np.testing.assert_array_equal(frame.labels_, reference.labels_)
    thin = BHC("poisson").fit(sparse.csr_matrix(X))
    np.testing.assert_array_equal(thin.labels_, reference.labels_)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        BHC().fit(sparse.csr_matrix(np.eye(3)))


def test_life_as_an_estimator():
    X = two_groups(np.random.default_rng(10))
    model = BHC(GammaPoisson(1.0, 0.1)).fit(X)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))
    copy = clone(BHC(NormalWishart(scale=np.eye(2)), n_clusters=3))
    assert copy.n_clusters == 3
    np.testing.assert_array_equal(copy.model.scale, np.eye(2))
    pipeline = make_pipeline(StandardScaler(), BHC()).fit(X)
    assert pipeline.predict(X).shape == (65,)
    assert "BHC" in repr(copy)


@pytest.mark.parametrize(
    ("model", "positive_only", "takes_sparse"),
    [("gaussian", False, False), ("poisson", True, True), ("bernoulli", True, True)],
)
def test_tags(model, positive_only, takes_sparse):
    tags = BHC(model).__sklearn_tags__()
    assert tags.input_tags.positive_only == positive_only
    assert tags.input_tags.sparse == takes_sparse
