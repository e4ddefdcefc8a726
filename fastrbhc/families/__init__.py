"""The exponential families, one per file.

Each is a record of its parameters: ``Poisson(smoothing=0.01)``. Functions take the record
or its name. CONTRIBUTING.md, "Add a family", shows how to write another one: a new module in
this directory is found automatically, and a class defined anywhere else can be used as it is.
"""

from __future__ import annotations

import importlib
import pkgutil

from fastrbhc._engine.clusters.observations import Observations
from fastrbhc.families._interface import (
    Domain,
    Family,
    as_family,
    family,
    registered,
)
from fastrbhc.families._smoothing import Smoothing, contraction, shift
from fastrbhc.families.bernoulli import Bernoulli
from fastrbhc.families.diagonal_gaussian import DiagonalGaussian
from fastrbhc.families.exponential import Exponential
from fastrbhc.families.gaussian import Gaussian
from fastrbhc.families.multinomial import Multinomial
from fastrbhc.families.poisson import Poisson
from fastrbhc.families.spherical_gaussian import SphericalGaussian
from fastrbhc.families.von_mises_fisher import VonMisesFisher

# The imports above are for readers and type checkers; this finds every other module.
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Bernoulli",
    "DiagonalGaussian",
    "Domain",
    "Exponential",
    "Family",
    "Gaussian",
    "Multinomial",
    "Observations",
    "Poisson",
    "Smoothing",
    "SphericalGaussian",
    "VonMisesFisher",
    "as_family",
    "contraction",
    "family",
    "registered",
    "shift",
]
