"""Relaxed Bayesian hierarchical clustering with exponential families.

`linkage` builds a tree, `RBHC` is the scikit-learn estimator, `fastrbhc.families` holds the
families, `kmeans_threshold` suggests the threshold λ that decides the number of clusters.
`bhc_linkage` and `BHC` are the original, Bayesian algorithm, with the models in `fastrbhc.bhc`.
`fastrbhc.experiments`, loaded when asked for, repeats the paper's Table 1 and Figure 1.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from fastrbhc import bhc, families
from fastrbhc.bhc import BHC, bhc_linkage
from fastrbhc.dendrogram import Dendrogram
from fastrbhc.estimators import RBHC
from fastrbhc.linkage import dissimilarity, linkage
from fastrbhc.taylor import taylor_dissimilarity
from fastrbhc.thresholds import kmeans_threshold

__version__ = "0.1.0"

__all__ = [
    "BHC",
    "RBHC",
    "Dendrogram",
    "bhc",
    "bhc_linkage",
    "dissimilarity",
    "families",
    "kmeans_threshold",
    "linkage",
    "taylor_dissimilarity",
]


def __getattr__(name: str) -> ModuleType:
    if name == "experiments":
        return importlib.import_module("fastrbhc.experiments")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
