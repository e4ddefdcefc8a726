"""A program of a user who checks types: `make types` runs mypy on it, with --strict.

Where a type is known, no Any may take its place: assert_type says so. Nobody calls it.
"""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import fastrbhc
import fastrbhc.distributed
from fastrbhc import BHC, RBHC, Dendrogram, bhc_linkage, families, linkage, suggest_family
from fastrbhc.assessment.report import ClusterAssessment
from fastrbhc.bhc import BayesianDendrogram, GammaPoisson
from fastrbhc.families import Family, Gaussian, Poisson, Product
from fastrbhc.selection.number import PredictiveChoice
from fastrbhc.suggestions import Suggestion
from fastrbhc.tree.goodness import Goodness
from fastrbhc.tree.path import ClusteringPath


def client() -> None:
    """Call what users call."""
    X = np.random.default_rng(0).poisson(5.0, (100, 3)).astype(np.float64)

    # Trees.
    tree = linkage(X, "poisson", threshold="gap", n_jobs=2)
    assert_type(tree, Dendrogram)
    assert_type(tree.merges, NDArray[np.int64])
    assert_type(tree.heights, NDArray[np.float64])
    assert_type(tree.n_leaves, int)
    assert_type(tree.threshold, float)
    assert_type(tree.n_inversions, int)
    assert_type(tree.cut(n_clusters=3), NDArray[np.int64])
    assert_type(tree.cut(threshold=[0.5, 1.0], min_size=2), NDArray[np.int64])
    assert_type(tree.members(3), NDArray[np.int64])
    assert_type(tree.leaves_order(), NDArray[np.int64])
    assert_type(tree.path(), ClusteringPath)
    assert_type(tree.to_scipy(), NDArray[np.float64])
    assert_type(tree.to_json(["a"] * 100), str)
    assert_type(tree.to_newick(), str)
    assert_type(tree.goodness(X), Goodness)
    assert_type(tree.stability(X, n_clusters=3), ClusterAssessment)
    assert_type(Dendrogram.from_json("{}"), Dendrogram)
    assert_type(fastrbhc.dissimilarity(X[:1], X[1:], "ward"), float)
    assert_type(linkage(X, connectivity=fastrbhc.grid(10, 10)).cut(), NDArray[np.int64])

    # Families.
    assert_type(families.as_family("poisson"), Family)
    assert_type(Poisson(smoothing=0.1), Poisson)
    assert_type(Poisson().smoothing, float)
    assert_type(Gaussian("auto"), Gaussian)
    linkage(X, Poisson(0.5))
    linkage(X, Product({"poisson": [0, 1], "gaussian": [2]}))
    linkage(X, {"poisson": [0, 1], "ward": ([2], 0.5)})
    suggestion = suggest_family(X)
    assert_type(suggestion, Suggestion)

    # λ.
    assert_type(fastrbhc.predictive_threshold(tree, X), PredictiveChoice)
    assert_type(fastrbhc.predictive_threshold(tree, X).n_clusters, int)
    assert_type(fastrbhc.gap_threshold(tree), float)
    assert_type(fastrbhc.evidence_threshold(tree), float)
    assert_type(fastrbhc.kmeans_threshold(X, "poisson", 8), float)

    # Estimators.
    model = RBHC("poisson", n_clusters=3).fit(X, sample_weight=np.ones(100))
    assert_type(model, RBHC)
    assert_type(model.labels_, NDArray[np.int64])
    assert_type(model.n_clusters_, int)
    assert_type(model.threshold_, float)
    assert_type(model.dendrogram_, Dendrogram)
    assert_type(model.predict(X), NDArray[np.int64])
    assert_type(model.predict_proba(X), NDArray[np.float64])
    assert_type(model.transform(X), NDArray[np.float64])
    assert_type(model.fit_predict(X), NDArray[np.int64])
    assert_type(model.assess(X), ClusterAssessment)
    bayesian = BHC(GammaPoisson(shape=2.0), alpha=0.5).fit(X)
    assert_type(bayesian, BHC)
    assert_type(bayesian.labels_, NDArray[np.int64])
    assert_type(bayesian.log_evidence_, float)
    assert_type(bayesian.dendrogram_, BayesianDendrogram)
    assert_type(bayesian.predict(X), NDArray[np.int64])
    assert_type(bhc_linkage(X, "poisson", 1.0), BayesianDendrogram)
    assert_type(bhc_linkage(X, "poisson", 1.0).probabilities, NDArray[np.float64])

    # Beyond memory.
    assert_type(
        fastrbhc.distributed.linkage(X, "ward"),
        Dendrogram | fastrbhc.distributed.PartitionedDendrogram,
    )
    assert_type(fastrbhc.distributed.linkage(X, "ward", output="memory"), Dendrogram)
    assert_type(fastrbhc.distributed.load("tree"), fastrbhc.distributed.PartitionedDendrogram)
    assert_type(
        fastrbhc.distributed.linkage(X, "ward", output="files"),
        fastrbhc.distributed.PartitionedDendrogram,
    )

    # A name that is not there is an error.
    print(fastrbhc.likage)  # type: ignore[attr-defined]
    linkage(X, algoritm="greedy")  # type: ignore[call-arg]
    tree.cut(3)  # type: ignore[arg-type]
