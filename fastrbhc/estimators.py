"""The scikit-learn estimator: validation and attributes, no mathematics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fastrbhc._base_estimator import TreeEstimator
from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._linkage import build
from fastrbhc._options import DEFAULT_GUESS, DEFAULT_MULTIPLIER, LinkageOptions
from fastrbhc._progress import compiling_shown
from fastrbhc._validation import check_count, check_weights, column_names
from fastrbhc.families import Family, as_family
from fastrbhc.thresholds import FROM_ROWS, FROM_TREE
from fastrbhc.tree.dendrogram import Dendrogram
from fastrbhc.tree.origin import Chosen, remembering
from fastrbhc.tree.summaries import summary_of_clusters


class RBHC(TreeEstimator):
    """Relaxed Bayesian hierarchical clustering.

    Parameters
    ----------
    family : str or record, default="gaussian"
        A record from `fastrbhc.families`, or its name.
    threshold : {"kmeans", "gap", "evidence"}, float or None, default="kmeans"
        λ, at which merging stops, or how to choose it. "kmeans" is the paper's heuristic, see
        `kmeans_threshold`. "gap" and "evidence" need no guess of the number of clusters, but the
        whole tree: see `gap_threshold` and `evidence_threshold`. Not used when ``n_clusters`` is
        given; a number given together with it is an error.
    n_clusters : int, optional
        The number of clusters, instead of a threshold.
    n_clusters_guess : int, default=8
        Rough guess for the heuristic "kmeans".
    multiplier : int, default=4
        Number of k-means clusters per guessed cluster in the heuristic.
    algorithm : {"auto", "greedy", "levels", "nn_chain"}, default="auto"
        See `linkage`.
    neighbors : {"auto", "brute", "kd_tree"}, default="auto"
        See `linkage`.
    compute_full_tree : bool, default=False
        Continue to the root beyond the threshold, so that the tree can be cut elsewhere too. If the
        threshold is chosen from the tree, the whole tree is always built.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.
    progress : bool, default=False
        Show a progress bar.
    random_state : int, RandomState or None
        Seed of the heuristic's k-means.
    audit : bool or "sample", default=False
        Count violations of reducibility: ``dendrogram_.audit`` is then the report, see `linkage`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, numbered as by ``dendrogram_.cut()``: the heaviest cluster is 0. Of
        equally heavy ones the lower comes first, by the largest height within; only if these agree
        too, numbers depend on the order of the rows.
    n_clusters_ : int
        Number of clusters.
    threshold_ : float
        The λ that was used; with ``n_clusters``, the level of the first merge not made.
    dendrogram_ : Dendrogram
        The tree, or the forest if merging stopped at λ. It remembers the family and λ.
    children_, distances_ : ndarray
        Merges and heights of the tree, as scikit-learn names them.
    n_leaves_ : int
        Number of rows.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from fastrbhc import RBHC
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(5, (50, 2)), rng.poisson(50, (50, 2))])
    >>> model = RBHC("poisson", n_clusters_guess=2, random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> model.predict([[4, 6], [48, 55]]).tolist()
    [1, 0]
    """

    def __init__(
        self,
        family: str | Family = "gaussian",
        *,
        threshold: str | float | None = "kmeans",
        n_clusters: int | None = None,
        n_clusters_guess: int = DEFAULT_GUESS,
        multiplier: int = DEFAULT_MULTIPLIER,
        algorithm: str = "auto",
        neighbors: str = "auto",
        compute_full_tree: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: Any = None,
        audit: bool | str = False,
    ) -> None:
        self.family = family
        self.threshold = threshold
        self.n_clusters = n_clusters
        self.n_clusters_guess = n_clusters_guess
        self.multiplier = multiplier
        self.algorithm = algorithm
        self.neighbors = neighbors
        self.compute_full_tree = compute_full_tree
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state
        self.audit = audit

    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> RBHC:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of counts or measurements.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row with weight 3 counts as three copies.

        Returns
        -------
        RBHC
            The fitted estimator.
        """
        family = self._distribution()
        options = LinkageOptions(
            algorithm=self.algorithm,
            neighbors=self.neighbors,
            threshold=self.threshold,
            n_jobs=self.n_jobs,
            progress=self.progress,
            audit=self.audit,
        ).checked(family)
        check_count(self.n_clusters_guess, "n_clusters_guess")
        check_count(self.multiplier, "multiplier")
        self._check_stopping_rule()
        rows = self._check(X, family, reset=True)
        weights = check_weights(sample_weight, rows.shape[0])
        choice, level = options.choice, options.threshold
        with compiling_shown(options.progress):
            if self.n_clusters is not None:
                check_count(self.n_clusters, "n_clusters", rows.shape[0])
                choice = None
            elif choice in FROM_ROWS:
                guess, seed = self.n_clusters_guess, self.random_state
                level = FROM_ROWS[choice](rows, family, guess, self.multiplier, weights, seed)
            stop = np.inf if self.compute_full_tree else level
            tree = build(rows, family, weights, replace(options, threshold=stop))
            if choice in FROM_TREE:
                level = FROM_TREE[choice](tree)
            chosen = self._chosen(tree, level, choice)
            self.threshold_ = chosen.threshold
            self._keep_tree(remembering(tree, column_names(X), chosen))
            self._keep_clusters(rows, family, weights)
        return self

    def fit_predict(
        self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """Cluster the rows of X and return their labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of counts or measurements.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``labels_``.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

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
        rows = self._check(X, family, reset=False)
        geometry = family.geometry(rows.shape[1])
        return statistics.nearest_clusters(geometry, self._clusters, family.observe(rows))

    def summary(self) -> Any:
        """A table of the clusters: size, weight, cost, mean parameters.

        Returns
        -------
        pandas.DataFrame
            One row per cluster, numbered as in ``labels_``. ``weight`` is the cluster's n in the
            dissimilarity, which for multinomial counts is their total, and ``mean_…`` is its mean
            statistic; the other columns are those of `fastrbhc.summaries.summary_of_clusters`.

        Examples
        --------
        >>> from fastrbhc import RBHC
        >>> model = RBHC("poisson", n_clusters=2).fit([[9, 1], [8, 2], [7, 2], [1, 9], [2, 7]])
        >>> model.summary()[["size", "mean_x0", "mean_x1"]].round(2).values.tolist()
        [[3.0, 8.0, 1.67], [2.0, 1.5, 8.0]]
        """
        check_is_fitted(self)
        return summary_of_clusters(
            self.dendrogram_,
            self.labels_,
            np.nan_to_num(self._clusters.weights),
            np.where(np.isnan(self._clusters.weights), np.nan, self._clusters.means).T,
            getattr(self, "feature_names_in_", None),
        )

    def _distribution(self) -> Family:
        return as_family(self.family)

    def _findings(self) -> list[tuple[str, str]]:
        return [
            ("family", str(self._family)),
            ("threshold λ", f"{self.threshold_:.6g}"),
            *super()._findings(),
        ]

    def _check_stopping_rule(self) -> None:
        if self.n_clusters is None and self.threshold is None:
            raise ValueError("give either threshold or n_clusters: nothing says when to stop")
        if self.n_clusters is not None and not isinstance(self.threshold, str | None):
            raise ValueError("give either threshold or n_clusters, and not both")

    def _chosen(self, tree: Dendrogram, level: float, choice: str | None) -> Chosen:
        if self.n_clusters is None:
            return Chosen(level, choice or "given")
        undone = tree.levels[tree.n_leaves - self.n_clusters :]
        return Chosen(float(undone[0]) if undone.size else np.inf, "n_clusters", self.n_clusters)

    def _keep_clusters(
        self, rows: NDArray[np.float64], family: Family, weights: NDArray[np.float64] | None
    ) -> None:
        """Keep the statistics of the clusters, for new rows."""
        self._family = family
        geometry = family.geometry(rows.shape[1])
        points = weighted(family.observe(rows), weights)
        self._clusters = statistics.clusters_of_groups(
            geometry, points, self.labels_, self.n_clusters_
        )
