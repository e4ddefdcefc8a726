"""Relaxed Bayesian hierarchical clustering with exponential families.

`linkage` builds a tree, `RBHC` is the scikit-learn estimator, `fastrbhc.families` holds the
families; `predictive_threshold`, `gap_threshold`, `evidence_threshold` and `kmeans_threshold`
choose the threshold λ, and with it the number of clusters.
`bhc_linkage` and `BHC` are the original, Bayesian algorithm, with the models in `fastrbhc.bhc`.
`fastrbhc.plotting` draws; `fastrbhc.experiments` holds the paper's tables and figure,
`fastrbhc.anndata` clusters the cells of an AnnData, and `fastrbhc.distributed` is for rows beyond
the memory of one machine. `precompile` compiles kernels ahead of time. `suggest_family` says which
family suits a table. `show_versions` prints what a report of a bug should contain.

Names are loaded when they are asked for, so that the command line answers at once, and trees of
arrays need neither scikit-learn nor pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# It has to be the first, for Ctrl-C during all other imports.
from fastrbhc import _interrupts  # noqa: F401

if TYPE_CHECKING:
    from fastrbhc import anndata as anndata
    from fastrbhc import assessment as assessment
    from fastrbhc import bhc, families
    from fastrbhc import datasets as datasets
    from fastrbhc import distributed as distributed
    from fastrbhc import estimators as estimators
    from fastrbhc import experiments as experiments
    from fastrbhc import exports as exports
    from fastrbhc import path as path
    from fastrbhc import plotting as plotting
    from fastrbhc import reducibility as reducibility
    from fastrbhc import selection as selection
    from fastrbhc import suggestions as suggestions
    from fastrbhc import summaries as summaries
    from fastrbhc import thresholds as thresholds
    from fastrbhc import tree as tree
    from fastrbhc import widgets as widgets
    from fastrbhc._dissimilarity import dissimilarity, taylor_dissimilarity
    from fastrbhc._grid import grid
    from fastrbhc._linkage import linkage
    from fastrbhc._precompile import precompile
    from fastrbhc._versions import show_versions
    from fastrbhc.bhc._linkage import bhc_linkage
    from fastrbhc.bhc.estimator import BHC
    from fastrbhc.estimators import RBHC
    from fastrbhc.selection.number import predictive_threshold
    from fastrbhc.suggestions import suggest_family
    from fastrbhc.thresholds import evidence_threshold, gap_threshold, kmeans_threshold
    from fastrbhc.tree.dendrogram import Dendrogram

__version__ = "0.2.0"

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

# The modules of functions and classes; type checkers read the imports above, which are the same.
_HOMES = {
    "BHC": "fastrbhc.bhc.estimator",
    "Dendrogram": "fastrbhc.tree.dendrogram",
    "RBHC": "fastrbhc.estimators",
    "bhc_linkage": "fastrbhc.bhc._linkage",
    "dissimilarity": "fastrbhc._dissimilarity",
    "evidence_threshold": "fastrbhc.thresholds",
    "gap_threshold": "fastrbhc.thresholds",
    "grid": "fastrbhc._grid",
    "kmeans_threshold": "fastrbhc.thresholds",
    "linkage": "fastrbhc._linkage",
    "precompile": "fastrbhc._precompile",
    "predictive_threshold": "fastrbhc.selection.number",
    "show_versions": "fastrbhc._versions",
    "suggest_family": "fastrbhc.suggestions",
    "taylor_dissimilarity": "fastrbhc._dissimilarity",
}
_MODULES = {
    "anndata", "assessment", "bhc", "datasets", "distributed", "estimators", "experiments",
    "exports", "families", "path", "plotting", "reducibility", "selection", "suggestions",
    "summaries", "thresholds", "tree", "widgets",
}  # fmt: skip

if not TYPE_CHECKING:  # otherwise a misspelt name would pass for anything

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"fastrbhc.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = found  # so that this function is called once for each
        return found


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name[0] == "_"), *_HOMES, *_MODULES})
