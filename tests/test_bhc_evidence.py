"""Hyperparameters of the largest evidence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_bhc_models import draw, every_model

import fastrbhc
from fastrbhc import BHC
from fastrbhc.bhc import GammaPoisson, NormalWishart, as_model, evidence


def mixture(rng, n=120):
    """Counts of six clusters whose rates are drawn from Gamma(2, rate 0.05), as in the paper."""
    rates = rng.gamma(2.0, 20.0, size=(6, 2))
    return rng.poisson(rates[rng.integers(6, size=n)]).astype(float)


@every_model
def test_evidence_is_not_less_than_with_hyperparameters_of_the_data(name):
    X = draw(name, np.random.default_rng(0), 40)
    of_data = BHC(name).fit(X)
    searched = BHC(name, hyperparameters="evidence").fit(X)
    assert searched.log_evidence_ >= of_data.log_evidence_
    assert searched.alpha_ == 1.0
    alpha_too = BHC(name, hyperparameters="evidence", alpha="evidence").fit(X)
    assert alpha_too.log_evidence_ >= searched.log_evidence_ - 0.5


def test_evidence_is_about_the_largest_of_all():
    X = mixture(np.random.default_rng(1))
    model = BHC("poisson", hyperparameters="evidence").fit(X)
    others = [
        fastrbhc.bhc_linkage(X, GammaPoisson(shape, shape / mean)).log_evidence
        for shape in np.geomspace(0.03, 300.0, 13)
        for mean in np.geomspace(4.0, 400.0, 13)
    ]
    # The bound jumps by a few units where the tree changes.
    assert max(others) < model.log_evidence_ + 3.0
    assert np.median(others) < model.log_evidence_ - 30.0


def test_fields_that_are_given_are_not_searched():
    X = draw("gaussian", np.random.default_rng(2), 30)
    model = BHC(NormalWishart(strength=0.3), hyperparameters="evidence").fit(X)
    assert model.model_.strength == 0.3
    assert model.model_.scale_factor != as_model("gaussian").with_defaults(X).scale_factor
    scale = np.eye(3)
    given = BHC(NormalWishart(scale=scale), hyperparameters="evidence").fit(X)
    np.testing.assert_array_equal(given.model_.scale, scale)


def test_only_alpha():
    X = mixture(np.random.default_rng(3))
    record = as_model("poisson").with_defaults(X)
    model = BHC(record, alpha="evidence").fit(X)
    assert model.model_ == record
    for alpha in (model.alpha_ / 3.0, model.alpha_ * 3.0):
        assert BHC(record, alpha=alpha).fit(X).log_evidence_ < model.log_evidence_
    assert fastrbhc.bhc_linkage(X, record, "evidence").log_alpha == pytest.approx(
        math.log(model.alpha_)
    )


def test_many_rows_are_searched_by_sample(monkeypatch):
    X = mixture(np.random.default_rng(4))
    monkeypatch.setattr(evidence, "SAMPLE", 60)
    models = [
        BHC("poisson", hyperparameters="evidence", random_state=seed).fit(X) for seed in (0, 0, 1)
    ]
    assert models[0].model_ == models[1].model_ != models[2].model_
    shuffled = BHC("poisson", hyperparameters="evidence", random_state=0).fit(X[::-1])
    assert shuffled.model_ == models[0].model_  # the sample depends on values, not on positions
    whole = BHC("poisson").fit(X)
    assert models[0].log_evidence_ > whole.log_evidence_ - 20.0


def test_search_ends(monkeypatch):
    X = mixture(np.random.default_rng(5), 30)
    monkeypatch.setattr(evidence, "TRIALS_EACH", 4)
    trials = []
    original = evidence.search

    def counting(rows, model, alpha, hyperparameters, build, report, random_state):
        def report_too(stage, done):
            trials.append(done)

        return original(rows, model, alpha, hyperparameters, build, report_too, random_state)

    monkeypatch.setattr("fastrbhc.bhc._linkage.search", counting)
    BHC("poisson", hyperparameters="evidence").fit(X)
    assert trials == list(range(1, len(trials) + 1))
    assert 3 <= len(trials) <= 8


def test_progress(capsys):
    X = mixture(np.random.default_rng(6), 30)
    BHC("poisson", hyperparameters="evidence", progress=True).fit(X)
    shown = capsys.readouterr().err
    assert "evidence" in shown
    assert "merging" in shown


def test_hyperparameters_so_extreme_that_nothing_is_finite():
    X = mixture(np.random.default_rng(7), 30)
    model = BHC(GammaPoisson(1e308, 1e-308), alpha="evidence")
    with pytest.raises(ValueError, match="not finite"):
        model.fit(X)
