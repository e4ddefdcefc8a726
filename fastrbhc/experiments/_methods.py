"""The methods that Tables 2 and 3 of the paper compare, as functions of a data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage as classical_linkage

from fastrbhc._advice import deliberately
from fastrbhc._linkage import linkage
from fastrbhc._validation import check_choice
from fastrbhc.bhc import BHC
from fastrbhc.estimators import RBHC
from fastrbhc.tree.dendrogram import Dendrogram, dendrogram_of_merges

# Number of rows for the search for hyperparameters of BHC: with all rows, the search alone would
# take a quarter of an hour for Table 2.
SEARCH_ROWS = 500


@dataclass
class Dataset:
    """Rows whose clusters are known, and the family that they are clustered with."""

    X: NDArray[np.float64]
    labels: NDArray[Any]
    family: Any
    _tree: Dendrogram | None = field(default=None, repr=False)

    @property
    def n_clusters(self) -> int:
        """The true number of clusters."""
        return len(np.unique(self.labels))

    def tree(self, n_threads: int) -> Dendrogram:
        """The whole tree of the rows, built once."""
        if self._tree is None:
            with deliberately():
                self._tree = linkage(self.X, self.family, n_jobs=n_threads)
        return self._tree


# A method takes a data set, a seed and a number of threads, and returns labels.
Method = Callable[[Dataset, int, int], NDArray[np.int64]]


def _classical(name: str) -> Method:
    """A linkage by SciPy, cut at the true number of clusters.

    The cut undoes the last merges. ``fcluster`` would return fewer clusters where heights are
    equal, as they often are between counts.
    """

    def cluster(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
        Z = classical_linkage(data.X, name)
        tree = dendrogram_of_merges(Z[:, :2].astype(np.int64), Z[:, 2], np.ones(len(data.X)))
        return tree.cut(n_clusters=data.n_clusters)

    return cluster


def _relaxed(algorithm: str) -> Method:
    """RBHC, with λ from the heuristic and the true number of clusters as the guess."""

    def cluster(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
        model = RBHC(
            data.family,
            threshold="kmeans",
            n_clusters_guess=data.n_clusters,
            algorithm=algorithm,
            n_jobs=n_threads,
            random_state=seed,
        )
        with deliberately():
            return model.fit_predict(data.X)

    return cluster


def _bayesian(data: Dataset, seed: int, n_threads: int) -> NDArray[np.int64]:
    """BHC with the hyperparameters of largest evidence on a sample of the rows."""
    name = data.family.name
    rows = data.X
    if len(rows) > SEARCH_ROWS:
        chosen = np.random.default_rng(seed).choice(len(rows), SEARCH_ROWS, replace=False)
        rows = rows[np.sort(chosen)]
    tuned = BHC(name, hyperparameters="evidence", n_jobs=n_threads).fit(rows).model_
    # Hyperparameters that are not searched for, means and covariances, are those of all rows.
    found = {field: getattr(tuned, field) for field in tuned.tunable}
    model = BHC(name, hyperparameters=found, n_jobs=n_threads)
    return model.fit(data.X).labels_


# In the order of the paper's tables.
METHODS: dict[str, Method] = {
    "single": _classical("single"),
    "complete": _classical("complete"),
    "ward": _classical("ward"),
    "rbhc_greedy": _relaxed("greedy"),
    "rbhc_nnca": _relaxed("nn_chain"),
    "bhc": _bayesian,
}
TITLES = {
    "single": "single linkage",
    "complete": "complete linkage",
    "ward": "Ward's method",
    "rbhc_greedy": "RBHC-greedy",
    "rbhc_nnca": "RBHC-nnca",
    "bhc": "BHC",
}


def chosen(methods: Mapping[str, Method], names: Sequence[str] | None) -> Mapping[str, Method]:
    """The methods with these names, in the order of the tables; by default all."""
    if names is None:
        return methods
    for name in names:
        check_choice(name, "methods", tuple(methods))
    return {name: method for name, method in methods.items() if name in names}
