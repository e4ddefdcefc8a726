"""Methods of an estimator for new rows: their clusters, dissimilarities, memberships and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.comparison import row_dissimilarities
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc.families import Family, geometry_of
from fastrbhc.families._missing import observe


class ForNewRows(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Base of an estimator whose ``fit`` calls ``_keep_clusters`` once there are labels."""

    # Of the estimator.
    labels_: NDArray[np.int64]
    n_clusters_: int
    _check: Any

    _layout = "dense"  # of the rows of the fit
    _missing = "error"  # what NaN means

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The cluster with the smallest dissimilarity to each new row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels as in ``labels_``; the smaller label if two clusters are equally near.
        """
        check_is_fitted(self)
        family = self._family  # the family of the fit: parameters may have been set since
        rows = self._observed(X, family)
        geometry = geometry_of(family, rows)
        return statistics.nearest_clusters(geometry, self._clusters, rows)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """The dissimilarity d between each row, as a cluster of its own, and each cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Columns are numbered as in ``labels_``; named rbhc0, rbhc1, … in a data frame, for which
            ``set_output(transform="pandas")`` asks. ``predict`` is the column with the smallest
            value. A cluster of rows of weight 0 is infinitely far away.

        Examples
        --------
        >>> from fastrbhc import RBHC
        >>> model = RBHC("ward", n_clusters=2).fit([[0.0], [2.0], [10.0]])
        >>> model.transform([[4.0]]).tolist()
        [[3.0, 9.0]]
        """
        return self._dissimilarities(X)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Soft membership of new rows in the clusters, from their dissimilarities.

        Joining row x to cluster c lowers the log likelihood of the best-fitting clusters by
        d(x, c) (with β = 1). If every cluster is as likely beforehand, the memberships are

            p(c | x) = exp(−d(x, c)) / Σ_b exp(−d(x, b)).

        So the cluster with the largest membership is that of ``predict``. Sizes of clusters do not
        weigh in, because then it would not be.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Numbers that add up to 1 in each row.

        Notes
        -----
        They are probabilities as far as rows follow the family. For the spherical Gaussian that
        includes its ``variance``: if it is smaller than that of the clusters, all memberships are
        close to 0 or 1. The same holds for counts that vary more than the family says, such as
        words in texts, and rows of large totals.

        Examples
        --------
        >>> from fastrbhc import RBHC
        >>> model = RBHC("ward", n_clusters=2).fit([[0.0], [1.0], [5.0], [6.0]])
        >>> model.predict_proba([[3.0], [2.5]]).round(2).tolist()
        [[0.5, 0.5], [0.84, 0.16]]
        """
        d = self._dissimilarities(X)
        shares: NDArray[np.float64] = np.exp(d.min(axis=1, keepdims=True) - d)
        return shares / shares.sum(axis=1, keepdims=True)

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """How well each row fits its nearest cluster: −min d, and so at most 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Larger for ordinary rows, smaller for outliers, as in scikit-learn's detectors of
            outliers. Up to a constant of the row, this is the logarithm of its density in the
            nearest cluster.

        Examples
        --------
        >>> from fastrbhc import RBHC
        >>> model = RBHC("ward", n_clusters=2).fit([[0.0], [2.0], [10.0]])
        >>> model.score_samples([[4.0], [100.0]]).tolist()
        [-3.0, -2025.0]
        """
        return -self._dissimilarities(X).min(axis=1)

    def _dissimilarities(self, X: ArrayLike) -> NDArray[np.float64]:
        """What `transform` returns, as an array whatever ``set_output`` says."""
        check_is_fitted(self)
        family = self._family  # the family of the fit: parameters may have been set since
        rows = self._observed(X, family)
        return row_dissimilarities(geometry_of(family, rows), self._clusters, rows)

    def _observed(self, X: ArrayLike, family: Family) -> Any:
        rows = self._check(X, family, reset=False, layout=self._layout, missing=self._missing)
        return observe(family, rows, gaps=self._missing == "ignore")

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def _keep_clusters(
        self,
        rows: NDArray[np.float64],
        family: Family,
        weights: NDArray[np.float64] | None,
        missing: str,
    ) -> None:
        """Keep the statistics of the clusters, for new rows."""
        self._family, self._missing = family, missing
        self._layout = "sparse" if issparse(rows) else "dense"
        points = weighted(observe(family, rows, gaps=missing == "ignore"), weights)
        geometry = geometry_of(family, points)
        self._clusters = statistics.clusters_of_groups(
            geometry, points, self.labels_, self.n_clusters_
        )
