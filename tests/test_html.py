"""Summaries for notebooks."""

from __future__ import annotations

import base64
import builtins
import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClusterMixin
from trees import forest_with_ties

from fastrbhc import RBHC, linkage
from fastrbhc.plotting import html as _html

X = np.random.default_rng(0).normal(size=(60, 2))
IMAGE = re.compile(r"<img alt='' src='data:image/(?:png|svg\+xml);base64,([^']*)'/>")


@pytest.fixture(scope="module")
def model():
    return RBHC("ward", threshold="kmeans", n_clusters_guess=3, random_state=0).fit(X)


def pictures(page):
    return [base64.b64decode(found) for found in IMAGE.findall(page)]


def test_a_tree():
    tree = linkage(X, "ward")
    page = tree._repr_html_()
    assert "<td style='text-align:left'>60</td>" in page
    (image,) = pictures(page)
    # Lines, which stay sharp, and the same ones whenever it is asked for.
    assert image.startswith(b"<?xml")
    assert b"<svg" in image
    assert len(image) < 150_000
    assert page == tree._repr_html_()
    assert "3 below λ = 20" in forest_with_ties()._repr_html_()


@pytest.mark.parametrize(
    ("connect", "trees", "joined"),
    [
        (False, "2, the pieces of its graph", "adjacent clusters only"),
        (True, None, "adjacent clusters, and at last the pieces of the graph"),
    ],
)
def test_a_tree_along_a_graph(connect, trees, joined):
    edges = [(k, k + 1) for k in range(59) if k != 29]
    page = linkage(X, "ward", connectivity=edges, connect=connect)._repr_html_()
    assert joined in page
    assert (trees or "pieces") in page
    assert "λ = inf" not in page


def test_a_tree_tells_what_it_remembers():
    text = RBHC("poisson", n_clusters=3).fit(np.round(9.0 * np.abs(X))).dendrogram_._repr_html_()
    for expected in ("Poisson(smoothing=0.01)", "columns", "for 3 clusters"):
        assert expected in text


def test_text_is_escaped():
    assert "&lt;b&gt;" in _html.table("<b>", [("<b>", "<b>")])
    assert "<b>" not in _html.table("<b>", [("<b>", "<b>")])
    assert "<b>" not in _html.grid("<b>", ["<b>"], [["<b>"]])


def test_a_model_shows_what_was_found_once_it_is_fitted(model):
    blank = RBHC("ward")
    assert not pictures(blank._repr_html_())
    assert "RBHC" in blank._repr_html_()
    assert not pictures(blank._repr_mimebundle_()["text/html"])
    for page in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert len(pictures(page)) == 1
        assert "SphericalGaussian(variance=1.0)" in page
        assert f"{model.threshold_:.6g}" in page
        assert f"<td style='text-align:left'>{model.n_clusters_}</td>" in page
        sizes = ", ".join(map(str, np.bincount(model.labels_)[:8]))
        assert sizes in page
        assert "sk-top-container" in page  # scikit-learn's own


def test_scikit_learn_may_be_told_to_show_text_only(model):
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_another_estimator_needs_one_word_more():
    class Other(_html.FittedHTML, ClusterMixin, BaseEstimator):
        def fit(self, X):
            self.dendrogram_ = linkage(X, "ward")
            self.labels_ = self.dendrogram_.cut(n_clusters=2)
            self.n_clusters_ = 2
            return self

    assert not pictures(Other()._repr_html_())
    page = Other().fit(X)._repr_html_()
    assert "<caption>Other</caption>" in page
    assert len(pictures(page)) == 1


def test_without_matplotlib_there_is_no_picture(model, monkeypatch):
    true_import = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return true_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    page = linkage(X, "ward")._repr_html_()
    assert "<td style='text-align:left'>60</td>" in page
    assert not pictures(page)
