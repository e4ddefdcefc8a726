"""What the scikit-learn estimators share: the check of rows, tags, attributes of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from fastrbhc._containers import column_names
from fastrbhc._row_validation import HasDomain, as_rows, check_values, names_of_columns
from fastrbhc._stamps import Stamped
from fastrbhc.plotting.html import FittedHTML


class TreeEstimator(Stamped, FittedHTML, ClusterMixin, BaseEstimator):
    """Base of estimators that build a tree of the rows and cut it into clusters.

    A subclass defines ``_distribution``. Its ``fit`` calls ``_check`` and ``_keep_tree``.
    """

    # Of a fit. The tree is a Dendrogram, or a BayesianDendrogram.
    dendrogram_: Any
    labels_: NDArray[np.int64]
    children_: NDArray[np.int64]
    distances_: NDArray[np.float64]
    n_clusters_: int
    n_leaves_: int
    n_features_in_: int

    def _distribution(self) -> HasDomain:
        """The family or model that the parameters name; the tags follow from its domain."""
        raise NotImplementedError

    def _check(
        self,
        X: ArrayLike,
        given: HasDomain,
        *,
        reset: bool,
        layout: str = "dense",
        feature_names: Any = None,
        missing: str | None = None,
    ) -> Any:
        """X as rows for a family or model: those of a fit (``reset``), or new ones."""
        # Before a product takes other columns for those of its blocks.
        named = not reset and column_names(X) is not None
        if named:
            self._check_columns(X, reset=False)
        values = as_rows(X, given, min_rows=2 if reset else 1, layout=layout)
        if not (reset or named):  # before a family finds that it has scales for other columns
            self._check_columns(X, reset=False)
        columns = names_of_columns(X, feature_names, values.shape[1])
        rows = check_values(values, given, columns, layout=layout, missing=missing)
        if reset:
            self._check_columns(X, reset=True)
        return rows

    def _check_columns(self, X: ArrayLike, *, reset: bool) -> None:
        """Keep the names and the number of columns, or compare them with those of the fit."""
        validate_data(self, X, reset=reset, skip_check_array=True)

    def _keep_tree(self, tree: Any, **cut: Any) -> None:
        """Keep the tree and the clusters of a cut, by default at the λ that it remembers."""
        self.dendrogram_ = tree
        self.children_, self.distances_ = tree.merges, tree.heights
        self.n_leaves_ = tree.n_leaves
        self.labels_ = tree.cut(**cut)
        self.n_clusters_ = int(self.labels_.max()) + 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        domain = self._distribution().domain
        tags.input_tags.positive_only = domain.lower >= 0.0
        tags.input_tags.sparse = domain.takes_sparse
        return tags
