"""Relaxed Bayesian hierarchical clustering with exponential families.

`linkage` builds a tree, `RBHC` is the scikit-learn estimator, `fastrbhc.families` holds the
families; `predictive_threshold`, `gap_threshold`, `evidence_threshold` and `kmeans_threshold`
choose the threshold λ, and with it the number of clusters.
`bhc_linkage` and `BHC` are the original, Bayesian algorithm, with the models in `fastrbhc.bhc`.
`fastrbhc.plotting` draws; `fastrbhc.experiments` is loaded when asked for: the paper's tables and
figure. So are `fastrbhc.anndata`, which clusters the cells of an AnnData, and
`fastrbhc.distributed`, for rows beyond the memory of one machine. `precompile` compiles kernels
ahead of time. `suggest_family` says which family suits a table. `show_versions` prints what a
report of a bug should contain.
"""

from __future__ import annotations

import importlib
from types import ModuleType

# _interrupts is the first, for Ctrl-C during all the others.
from fastrbhc import _interrupts, bhc, families  # noqa: F401
from fastrbhc._dissimilarity import dissimilarity, taylor_dissimilarity
from fastrbhc._grid import grid
from fastrbhc._linkage import linkage
from fastrbhc._precompile import precompile
from fastrbhc._versions import show_versions
from fastrbhc.bhc import BHC, bhc_linkage
from fastrbhc.estimators import RBHC
from fastrbhc.selection.number import predictive_threshold
from fastrbhc.suggestions import suggest_family
from fastrbhc.thresholds import evidence_threshold, gap_threshold, kmeans_threshold
from fastrbhc.tree.dendrogram import Dendrogram

__version__ = "0.1.0"

__all__ = [
    "BHC",
    "RBHC",
    "Dendrogram",
    "bhc",
    "bhc_linkage",
    "dissimilarity",
    "evidence_threshold",
    "families",
    "gap_threshold",
    "grid",
    "kmeans_threshold",
    "linkage",
    "precompile",
    "predictive_threshold",
    "show_versions",
    "suggest_family",
    "taylor_dissimilarity",
]


# Modules that are loaded when they are asked for.
_LATER = {"anndata", "distributed", "experiments", "exports", "path", "plotting", "summaries"}


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return importlib.import_module(f"fastrbhc.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
