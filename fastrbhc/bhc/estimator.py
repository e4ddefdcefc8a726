"""The scikit-learn estimator of Bayesian hierarchical clustering."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from fastrbhc._base_estimator import TreeEstimator
from fastrbhc._row_validation import names_of_columns
from fastrbhc._table import placed
from fastrbhc._validation import check_count, check_share, check_threads
from fastrbhc.bhc._interface import Model, ModelLike, as_model
from fastrbhc.bhc._linkage import fit_tree
from fastrbhc.bhc._rows import border_of, layout_for, supported
from fastrbhc.bhc.dendrogram import BayesianDendrogram
from fastrbhc.bhc.evidence import check_search
from fastrbhc.bhc.predictive import log_densities, log_densities_of_clusters
from fastrbhc.tree.origin import remembering


class BHC(TreeEstimator):
    """Bayesian hierarchical clustering (Heller & Ghahramani 2005).

    Parameters
    ----------
    model : str or record, default="gaussian"
        A conjugate model from `fastrbhc.bhc`, or its name: "gaussian" (normal-Wishart),
        "diagonal_gaussian" (normal-gamma), "poisson" (gamma), "multinomial" (Dirichlet),
        "bernoulli" (beta). Fields of a record that are None are open.
    alpha : float or "evidence", default=1.0
        Concentration of the Dirichlet process: the larger, the more clusters. With "evidence" it
        is chosen to maximise the evidence.
    hyperparameters : "data", "evidence", dict or record, default="data"
        The source of hyperparameters that the model leaves open. "data": moments of the data, see
        each model. "evidence": SciPy varies those that the model lists as ``tunable`` to maximise
        the bound of the evidence, on at most 2,000 rows; this takes dozens of trees. A dict gives
        some of them by name; a record replaces the model.
    n_clusters : int, optional
        The number of clusters, instead of a probability: the last merges are undone.
    probability : float, default=0.5
        From the root down, a node is a cluster once its probability r is at least this. Not
        used when ``n_clusters`` is given.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.
    progress : bool, default=False
        Show a progress bar.
    random_state : int, RandomState or None
        Seed of the sample of rows on which the evidence is maximised.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, numbered as by ``dendrogram_.cut``: the largest cluster is 0. Of
        equally large ones the lower comes first, by the largest height within.
    n_clusters_ : int
        Number of clusters.
    log_evidence_ : float
        Lower bound of the log marginal likelihood of the Dirichlet-process mixture.
    dendrogram_ : BayesianDendrogram
        The tree, with the probability of every merge.
    model_ : record
        The model with all its hyperparameters.
    alpha_ : float
        The α that was used.
    children_, distances_ : ndarray
        Merges and −log odds of the tree, as scikit-learn names them.
    n_leaves_ : int
        Number of rows.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Notes
    -----
    There is no ``sample_weight``: a row of weight 3 would be three rows, and in this model three
    equal rows need not be in one cluster. Repeat the rows instead.

    Examples
    --------
    >>> import numpy as np
    >>> from fastrbhc import BHC
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(5, (50, 2)), rng.poisson(50, (50, 2))])
    >>> model = BHC("poisson").fit(X)
    >>> model.n_clusters_
    2
    >>> model.predict([[4, 6], [48, 55]]).tolist()
    [0, 1]
    """

    dendrogram_: BayesianDendrogram
    model_: Model
    alpha_: float
    log_evidence_: float

    def __init__(
        self,
        model: ModelLike = "gaussian",
        *,
        alpha: float | str = 1.0,
        hyperparameters: Any = "data",
        n_clusters: int | None = None,
        probability: float = 0.5,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.alpha = alpha
        self.hyperparameters = hyperparameters
        self.n_clusters = n_clusters
        self.probability = probability
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: None = None, feature_names: Sequence[str] | None = None) -> BHC:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of counts or measurements; for counts also a sparse matrix, as in `bhc_linkage`.
        y : ignored
        feature_names : sequence of str, optional
            Names of the columns, for X without any, such as a vectoriser's
            ``get_feature_names_out()``. They are for messages and the tree; ``feature_names_in_``
            has those of a data frame alone.

        Returns
        -------
        BHC
            The fitted estimator.
        """
        model = placed(self._distribution(), X, feature_names=feature_names)
        check_search(self.alpha, self.hyperparameters)
        check_share(self.probability, "probability")
        n_threads = check_threads(self.n_jobs)
        layout = layout_for(model)
        rows = self._rows_of(X, model, reset=True, layout=layout, feature_names=feature_names)
        if self.n_clusters is not None:
            check_count(self.n_clusters, "n_clusters", rows.shape[0])
        tree, self.model_ = fit_tree(
            rows,
            model,
            self.alpha,
            self.hyperparameters,
            n_threads,
            self.progress,
            self.random_state,
        )
        self.alpha_ = math.exp(tree.log_alpha)
        self.log_evidence_ = tree.log_evidence
        tree = remembering(tree, names_of_columns(X, feature_names, rows.shape[1]))
        if self.n_clusters is None:
            self._keep_tree(tree, probability=self.probability)
        else:
            self._keep_tree(tree, n_clusters=self.n_clusters)
        self._rows = rows
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The most probable cluster of each new row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels as in ``labels_``; the smaller label if two clusters are equally likely.
        """
        labels: NDArray[np.int64] = self._log_joint(X).argmax(axis=1)
        return labels

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of each cluster for each new row, given that it belongs to one of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_samples, k)
            One column per cluster: n_k p(x | X_k), divided by its sum over the clusters.
        """
        joint = self._log_joint(X)
        shares: NDArray[np.float64] = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return shares

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log predictive density of new rows: a mixture over all nodes of the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            log p(x | rows of the fit), averaged over all clusterings consistent with the tree,
            including a new cluster for the row.
        """
        new = self._new_rows(X)
        return log_densities(self._rows, new, self.model_, self.dendrogram_)

    def _rows_of(
        self, X: ArrayLike, model: Model, *, reset: bool, layout: str, feature_names: Any = None
    ) -> Any:
        """X as rows for a model, in that layout."""
        border = border_of(model)
        rows = self._check(X, border, reset=reset, layout=layout, feature_names=feature_names)
        return supported(rows, model)

    def _new_rows(self, X: ArrayLike) -> Any:
        """X as rows for the model of the fit, sparse if those of the fit are."""
        check_is_fitted(self)
        layout = "sparse" if issparse(self._rows) else "dense"
        return self._rows_of(X, self.model_, reset=False, layout=layout)

    def _distribution(self) -> Model:
        return as_model(self.model, self.hyperparameters)

    def _findings(self) -> list[tuple[str, str]]:
        return [*super()._findings(), ("log evidence", f"≥ {self.log_evidence_:,.6g}")]

    def _log_joint(self, X: ArrayLike) -> NDArray[np.float64]:
        new = self._new_rows(X)
        sizes = np.bincount(self.labels_)
        densities = log_densities_of_clusters(self._rows, new, self.model_, self.labels_)
        joint: NDArray[np.float64] = densities + np.log(sizes)
        return joint
