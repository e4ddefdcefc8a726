"""The exponential families, one per file.

Each is a record of its parameters: ``Poisson(smoothing=0.01)``. Functions take the record
or its name. CONTRIBUTING.md, "Add a family", shows how to write another one: a new module in
this directory is found automatically, and a class defined anywhere else can be used as it is.
"""

from __future__ import annotations

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc._register import import_modules
from fastrbhc.families._from_phi import from_phi
from fastrbhc.families._geometry import geometry_of
from fastrbhc.families._interface import Domain, Family, as_family, family, registered
from fastrbhc.families._smoothing import Smoothing, contraction, shift
from fastrbhc.families.bernoulli import Bernoulli
from fastrbhc.families.binomial import Binomial
from fastrbhc.families.categorical import Categorical
from fastrbhc.families.diagonal_gaussian import DiagonalGaussian
from fastrbhc.families.exponential import Exponential
from fastrbhc.families.gamma import Gamma
from fastrbhc.families.gaussian import Gaussian
from fastrbhc.families.geometric import Geometric
from fastrbhc.families.inverse_gaussian import InverseGaussian
from fastrbhc.families.log_normal import LogNormal
from fastrbhc.families.multinomial import Multinomial
from fastrbhc.families.negative_binomial import NegativeBinomial
from fastrbhc.families.pareto import Pareto
from fastrbhc.families.poisson import Poisson
from fastrbhc.families.product import Block, Product
from fastrbhc.families.rayleigh import Rayleigh
from fastrbhc.families.spherical_gaussian import SphericalGaussian
from fastrbhc.families.von_mises_fisher import VonMisesFisher
from fastrbhc.families.weibull import Weibull

# The imports above are for readers and type checkers; this finds every other module.
import_modules(__name__, __path__)

__all__ = [
    "Bernoulli",
    "Binomial",
    "Block",
    "Categorical",
    "DiagonalGaussian",
    "Domain",
    "Exponential",
    "Family",
    "Gamma",
    "Gaussian",
    "Geometric",
    "InverseGaussian",
    "LogNormal",
    "Multinomial",
    "NegativeBinomial",
    "Observations",
    "Pareto",
    "Poisson",
    "Product",
    "Rayleigh",
    "Smoothing",
    "SphericalGaussian",
    "VonMisesFisher",
    "Weibull",
    "as_family",
    "contraction",
    "family",
    "from_phi",
    "geometry_of",
    "registered",
    "shift",
]
