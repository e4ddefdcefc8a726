"""Bayesian trees: time by model and number of rows, and as a ratio to relaxed ones."""

from __future__ import annotations

import numpy as np

import fastrbhc

from .datasets import blobs, counts, proportions
from .linkage import Few
from .timing import compare, warm_up


def answers(n, d, n_clusters=20):
    """Answers of yes or no, from clusters with probabilities of their own."""
    rng = np.random.default_rng(0)
    shares = rng.random((n_clusters, d))
    return rng.random((n, d)) < shares[rng.integers(n_clusters, size=n)]


DATA = {
    "gaussian": lambda n: blobs(n, 3),
    "diagonal_gaussian": lambda n: blobs(n, 3),
    "poisson": lambda n: counts(n, 3),
    "multinomial": lambda n: proportions(n, 10),
    "bernoulli": lambda n: answers(n, 20),
}


class Models(Few):
    """Whole trees, by model and number of rows: the time grows as n²."""

    params = (list(DATA), [1_000, 2_000, 5_000])
    param_names = ("model", "n")

    def setup(self, model, n):
        """Compile, so that only the work is timed."""
        self.X = DATA[model](n)
        fastrbhc.bhc_linkage(self.X[:300], model)

    def time_tree(self, model, n):
        """With hyperparameters of the data."""
        fastrbhc.bhc_linkage(self.X, model)

    def peakmem_tree(self, model, n):
        """Resident memory at its peak."""
        fastrbhc.bhc_linkage(self.X, model)


class ManyColumns(Few):
    """1,000 rows of 50 columns, where factors are long."""

    params = (["gaussian", "diagonal_gaussian", "poisson"],)
    param_names = ("model",)

    def setup(self, model):
        """Compile, so that only the work is timed."""
        self.X = counts(1_000, 50) if model == "poisson" else blobs(1_000, 50)
        fastrbhc.bhc_linkage(self.X[:300], model)

    def time_tree(self, model):
        """With hyperparameters of the data."""
        fastrbhc.bhc_linkage(self.X, model)


class Evidence(Few):
    """Hyperparameters of the largest evidence: some dozens of trees of 2,000 rows."""

    params = (["gaussian", "poisson"],)
    param_names = ("model",)
    repeat = 1

    def setup(self, model):
        """Compile, so that only the work is timed."""
        self.X = DATA[model](2_000)
        fastrbhc.bhc_linkage(self.X[:300], model)

    def time_search(self, model):
        """The search, and the last tree."""
        fastrbhc.BHC(model, hyperparameters="evidence", random_state=0).fit(self.X)


class AgainstRelaxed:
    """Time of the Bayesian tree over that of the relaxed one by scanning, 5,000 × 3."""

    params = (["gaussian", "poisson"],)
    param_names = ("model",)
    timeout = 600.0
    unit = "ratio"

    def setup(self, model):
        """Compile, so that only the work is timed."""
        self.X = DATA[model](5_000)
        fastrbhc.bhc_linkage(self.X[:300], model)
        warm_up(self.X, model, neighbors="brute")

    def track_time(self, model):
        """Smaller is better."""
        return compare(
            lambda: fastrbhc.bhc_linkage(self.X, model),
            lambda: fastrbhc.linkage(self.X, model, neighbors="brute"),
        ).ratio
