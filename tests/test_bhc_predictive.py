"""Predictions for new rows."""

from __future__ import annotations

import math

import naive_bhc
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from test_bhc_models import draw, every_model

import fastrbhc
from fastrbhc import BHC
from fastrbhc.bhc import GammaPoisson, NormalWishart, as_model
from fastrbhc.bhc.predictive import log_densities, log_densities_of_clusters, log_node_weights


@every_model
def test_density_is_that_of_all_clusterings_of_the_tree(name):
    rng = np.random.default_rng(0)
    X, new, alpha = draw(name, rng, 7, 2), draw(name, rng, 5, 2), 0.8
    record = as_model(name).with_defaults(X)
    tree = fastrbhc.bhc_linkage(X, record, alpha)
    groups = naive_bhc.Groups(np.concatenate([X, new]), record)
    partitions = naive_bhc.tree_partitions(tree.merges, 7)
    joints = np.array([naive_bhc.log_joint(p, groups, math.log(alpha), 7) for p in partitions])
    posterior = joints - logsumexp(joints)
    for row in range(7, 12):
        terms = []
        for partition, weight in zip(partitions, posterior, strict=True):
            shares = [*(len(cluster) for cluster in partition), alpha]
            for cluster, share in zip([*partition, ()], shares, strict=True):
                density = groups.log_marginal((*cluster, row)) - (
                    groups.log_marginal(cluster) if cluster else 0.0
                )
                terms.append(weight + math.log(share / (7 + alpha)) + density)
        computed = log_densities(X, new[[row - 7]], record, tree)[0]
        assert computed == pytest.approx(logsumexp(terms), rel=1e-9)


def test_weights_of_nodes_add_up_to_one():
    X = draw("gaussian", np.random.default_rng(1), 200, 2)
    tree = fastrbhc.bhc_linkage(X, alpha=3.0)
    new_cluster = 3.0 / 203.0
    assert np.exp(log_node_weights(tree)).sum() + new_cluster == pytest.approx(1.0, rel=1e-12)


def test_density_integrates_to_one():
    X = np.random.default_rng(2).normal(size=(12, 1)) * 3.0
    model = BHC(NormalWishart(strength=0.5)).fit(X)
    total, _ = quad(lambda x: math.exp(model.score_samples([[x]])[0]), -2000, 2000, points=[0.0])
    assert total == pytest.approx(1.0, abs=1e-3)
    counts = BHC(GammaPoisson(2.0, 0.2)).fit([[3], [4], [5], [40]])
    total = np.exp(counts.score_samples(np.arange(2000.0)[:, None])).sum()
    assert total == pytest.approx(1.0, rel=1e-9)


@every_model
def test_density_under_each_cluster(name):
    rng = np.random.default_rng(3)
    X, new = draw(name, rng, 9), draw(name, rng, 4)
    record, labels = as_model(name).with_defaults(X), np.array([0, 1, 2, 0, 1, 2, 0, 1, 0])
    reference = [
        [
            naive_bhc.log_marginal_likelihood(np.vstack([X[labels == k], row]), record)
            - naive_bhc.log_marginal_likelihood(X[labels == k], record)
            for k in range(3)
        ]
        for row in new
    ]
    computed = log_densities_of_clusters(X, new, record, labels)
    np.testing.assert_allclose(computed, reference, rtol=1e-9, atol=1e-9)


def test_many_new_rows_are_looked_at_in_portions(monkeypatch):
    rng = np.random.default_rng(4)
    X, new = draw("poisson", rng, 20), draw("poisson", rng, 9)
    model = BHC("poisson").fit(X)
    whole, shares = model.score_samples(new), model.predict_proba(new)
    monkeypatch.setattr("fastrbhc.bhc.predictive._PORTION", 4)
    np.testing.assert_array_equal(model.score_samples(new), whole)
    np.testing.assert_array_equal(model.predict_proba(new), shares)


def test_new_counts_need_not_be_whole():
    X = draw("poisson", np.random.default_rng(5), 20)
    model = BHC("poisson").fit(X)
    near = model.score_samples(X[:1] + 1e-9)
    np.testing.assert_allclose(near, model.score_samples(X[:1]), rtol=1e-6)
    assert model.score_samples(X[:1] + 0.5)[0] != pytest.approx(near[0], rel=1e-6)


def test_new_counts_beyond_the_tables():
    X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    record = GammaPoisson(1.0, 1.0)
    model = BHC(record, n_clusters=1).fit(X)
    new = np.array([[500.0, 3.0]])
    reference = naive_bhc.log_marginal_likelihood(np.vstack([X, new]), record)
    reference -= naive_bhc.log_marginal_likelihood(X, record)
    computed = log_densities_of_clusters(X, new, record, model.labels_)
    assert computed[0, 0] == pytest.approx(reference, rel=1e-10)
