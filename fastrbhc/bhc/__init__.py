"""Bayesian hierarchical clustering (Heller & Ghahramani 2005), the original of the relaxed one.

`bhc_linkage` builds a tree with a probability for every merge and a bound of the evidence, `BHC` is
the scikit-learn estimator. The conjugate models are records of their hyperparameters, such as
``GammaPoisson(shape=2.0, rate=0.1)``, one per file; `_interface` is their contract. A new module in
``models`` is found by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastrbhc.bhc._interface import Model, as_model, model, registered
from fastrbhc.bhc._linkage import bhc_linkage
from fastrbhc.bhc.dendrogram import BayesianDendrogram
from fastrbhc.bhc.marginal import log_marginal_likelihood
from fastrbhc.bhc.models.beta_bernoulli import BetaBernoulli
from fastrbhc.bhc.models.beta_geometric import BetaGeometric
from fastrbhc.bhc.models.dirichlet_categorical import DirichletCategorical
from fastrbhc.bhc.models.dirichlet_multinomial import DirichletMultinomial
from fastrbhc.bhc.models.gamma_exponential import GammaExponential
from fastrbhc.bhc.models.gamma_poisson import GammaPoisson
from fastrbhc.bhc.models.normal_gamma import NormalGamma
from fastrbhc.bhc.models.normal_wishart import NormalWishart
from fastrbhc.bhc.models.product_of_models import ProductOfModels
from fastrbhc.bhc.models.von_mises_fisher_directions import VonMisesFisherDirections

if TYPE_CHECKING:
    from fastrbhc.bhc.estimator import BHC

__all__ = [
    "BHC",
    "BayesianDendrogram",
    "BetaBernoulli",
    "BetaGeometric",
    "DirichletCategorical",
    "DirichletMultinomial",
    "GammaExponential",
    "GammaPoisson",
    "Model",
    "NormalGamma",
    "NormalWishart",
    "ProductOfModels",
    "VonMisesFisherDirections",
    "as_model",
    "bhc_linkage",
    "log_marginal_likelihood",
    "model",
    "registered",
]

if not TYPE_CHECKING:  # otherwise a misspelt name would pass for anything

    def __getattr__(name: str) -> Any:
        if name != "BHC":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from fastrbhc.bhc.estimator import BHC  # it loads scikit-learn

        globals()["BHC"] = BHC
        return BHC


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name[0] == "_"), *__all__})
