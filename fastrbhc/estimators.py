"""The scikit-learn estimator: validation and attributes, no mathematics."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fastrbhc._advice import warn_of_misfits
from fastrbhc._base_estimator import TreeEstimator
from fastrbhc._choosing import Guess, grow
from fastrbhc._connectivity import on_graph
from fastrbhc._gaps import refuse_gaps
from fastrbhc._new_rows import ForNewRows
from fastrbhc._options import (
    DEFAULT_GUESS,
    DEFAULT_MULTIPLIER,
    CheckedOptions,
    LinkageOptions,
    layout_for,
)
from fastrbhc._progress import compiling_shown
from fastrbhc._row_validation import names_of_columns
from fastrbhc._table import placed
from fastrbhc._validation import check_count, check_weights
from fastrbhc.assessment.assess import DEFAULT_RESAMPLES, DEFAULT_ROWS, assess
from fastrbhc.assessment.report import ClusterAssessment
from fastrbhc.families import Family, as_family
from fastrbhc.families._description import family_lines
from fastrbhc.families._interface import FamilyLike
from fastrbhc.selection.number import PredictiveChoice
from fastrbhc.suggesting.automatic import resolve
from fastrbhc.tree.dendrogram import Dendrogram
from fastrbhc.tree.goodness import Goodness, goodness_of_clusters
from fastrbhc.tree.origin import Chosen, remembering
from fastrbhc.tree.summaries import number_of_top_columns, summary_of_statistics


class RBHC(ForNewRows, TreeEstimator):
    """Relaxed Bayesian hierarchical clustering.

    Parameters
    ----------
    family : str, record or dict, default="auto"
        A record from `fastrbhc.families`, or its name. "auto" is for measurements in any units: a
        Gaussian with full covariance, ``Gaussian(smoothing="auto")``. If all values are counts, or
        zeros and ones, or a data frame has columns of text, it is what `suggest_family` says, and a
        warning names it. Columns of
        different kinds have a dict from families to columns: see `fastrbhc.families.Product`.
    threshold : {"predictive", "gap", "evidence", "kmeans"}, float or None, default="predictive"
        λ, at which merging stops, or how to choose it. "predictive" needs no guess and may find
        one cluster: see `predictive_threshold`. So do "gap", which finds at least two, and
        "evidence": see `gap_threshold` and `evidence_threshold`. "kmeans" is the paper's heuristic
        and needs a guess: see `kmeans_threshold`. Not used when ``n_clusters`` is given; a number
        given together with it is an error.
    n_clusters : int, optional
        The number of clusters, instead of a threshold.
    n_clusters_guess : int, optional
        Rough guess for the heuristic "kmeans"; 8 if there is none.
    multiplier : int, default=4
        Number of k-means clusters per guessed cluster in the heuristic.
    algorithm : {"auto", "greedy", "levels", "nn_chain"}, default="auto"
        See `linkage`.
    neighbors : {"auto", "brute", "kd_tree", "inverted", "approximate"}, default="auto"
        See `linkage`.
    compute_full_tree : bool, default=False
        Continue to the root beyond the threshold, so that the tree can be cut elsewhere too. If the
        threshold is chosen from the tree, the whole tree is always built.
    n_jobs : int, optional
        Number of threads; the result does not depend on it, unless neighbors="approximate".
    progress : bool, default=False
        Show a progress bar.
    random_state : int, RandomState or None
        Seed of k-means in the heuristic "kmeans"; nothing else is random.
    audit : bool or "sample", default=False
        Count violations of reducibility: ``dendrogram_.audit`` is then the report, see `linkage`.
    missing : {"error", "ignore"}, default="error"
        What NaN means, in the rows of the fit and in new ones. With "ignore" it is a cell that was
        not observed: see `linkage`. Thresholds by "predictive" and "kmeans" fill in the means of
        columns where they need points.
    connectivity : sparse matrix, array of edges, Grid or callable, optional
        Which rows are adjacent, so that only adjacent clusters merge: see `linkage`. New rows are
        assigned without it.
    connect : bool, default=False
        Whether the pieces of a graph are joined once each is a single cluster: see `linkage`.

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
    choice_ : PredictiveChoice or None
        The number of clusters and how sure it is, if λ was chosen by "predictive".
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
    >>> model = RBHC("poisson").fit(X)
    >>> model.n_clusters_
    2
    >>> print(model.choice_)  # doctest: +NORMALIZE_WHITESPACE
    2 clusters. Between 2 and 20 predict held-out rows about as well, and the tree has its largest
    gap here (gain over one cluster 1.00 ± 0.02 per row).
    >>> model.predict([[4, 6], [48, 55]]).tolist()
    [1, 0]
    """

    threshold_: float
    choice_: PredictiveChoice | None
    dendrogram_: Dendrogram

    def __init__(
        self,
        family: FamilyLike | dict[Any, Any] = "auto",
        *,
        threshold: str | float | None = "predictive",
        n_clusters: int | None = None,
        n_clusters_guess: int | None = None,
        multiplier: int = DEFAULT_MULTIPLIER,
        algorithm: str = "auto",
        neighbors: str = "auto",
        compute_full_tree: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: Any = None,
        audit: bool | str = False,
        missing: str = "error",
        connectivity: Any = None,
        connect: bool = False,
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
        self.missing = missing
        self.connectivity = connectivity
        self.connect = connect

    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> RBHC:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of counts or measurements.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row with weight 3 counts as three copies.
        feature_names : sequence of str, optional
            Names of the columns, for X without any, such as a vectoriser's
            ``get_feature_names_out()``. They are for messages, ``summary`` and the tree.
            ``feature_names_in_`` still has those of a data frame alone, because scikit-learn
            compares it with the names of new rows.

        Returns
        -------
        RBHC
            The fitted estimator.
        """
        family, said, _ = resolve(self.family, X, sample_weight)
        family = placed(family, X, feature_names=feature_names)
        options = LinkageOptions(
            algorithm=self.algorithm,
            neighbors=self.neighbors,
            threshold=self.threshold,
            n_jobs=self.n_jobs,
            progress=self.progress,
            audit=self.audit,
            missing=self.missing,
        ).checked(family)
        check_count(self.multiplier, "multiplier")
        self._check_stopping_rule()
        layout = layout_for(self.neighbors)
        rows = self._check(
            X,
            family,
            reset=True,
            layout=layout,
            feature_names=feature_names,
            missing=options.missing,
        )
        names = names_of_columns(X, feature_names, rows.shape[1])
        weights = check_weights(sample_weight, rows.shape[0])
        if self.n_clusters is not None:
            check_count(self.n_clusters, "n_clusters", rows.shape[0])
            options = replace(options, threshold=np.inf, choice=None)
        options = on_graph(options, self.connectivity, self.connect, X, weights, rows.shape[0])
        guess = Guess(self._guess(options), self.multiplier, self.random_state)
        warn_of_misfits(rows, family, names, said)
        with compiling_shown(options.progress):
            whole = self.compute_full_tree
            grown = grow([rows], family, weights, options, guess, whole=whole)
            chosen = self._chosen(grown.tree, grown.threshold, options.choice)
            self.threshold_, self.choice_ = chosen.threshold, grown.choice
            self._keep_tree(remembering(grown.tree, names, chosen))
            self._keep_clusters(rows, grown.family, weights, options.missing)
        return self

    def fit_predict(
        self,
        X: ArrayLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> NDArray[np.int64]:
        """Cluster the rows of X and return their labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of counts or measurements.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        feature_names : sequence of str, optional
            Names of the columns, for X without any.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``labels_``.
        """
        self.fit(X, sample_weight=sample_weight, feature_names=feature_names)
        return self.labels_

    def assess(
        self,
        X: ArrayLike,
        *,
        n_resamples: int = DEFAULT_RESAMPLES,
        max_rows: int = DEFAULT_ROWS,
        random_state: Any = 0,
        progress: bool = False,
    ) -> ClusterAssessment:
        """Whether the clusters are real: how well they come back, and a verdict on each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the fit, in the same order. Their weights are those of the fit.
        n_resamples : int, default=20
            Number of subsamples, each of half of the rows, drawn without replacement.
        max_rows : int, default=2000
            The largest number of rows in a subsample.
        random_state : int, RandomState or None, default=0
            Seed of the subsamples and of the rows drawn for comparison.
        progress : bool, default=False
            Show a progress bar.

        Returns
        -------
        ClusterAssessment
            One entry per cluster, numbered as in ``labels_``; `Dendrogram.stability` has more on
            the parameters.

        Examples
        --------
        >>> import numpy as np
        >>> from fastrbhc import RBHC
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.poisson(5, (50, 2)), rng.poisson(50, (60, 2))])
        >>> report = RBHC("poisson", n_clusters=2).fit(X).assess(X)
        >>> print(report.sentence)
        Both clusters are stable; together they explain 96 % of the cost.
        """
        check_is_fitted(self)
        refuse_gaps(X, self._family)
        return assess(
            self.dendrogram_,
            self._check(X, self._family, reset=False, layout=self._layout),
            self._family,
            self.labels_,
            n_resamples=n_resamples,
            max_rows=max_rows,
            random_state=random_state,
            n_jobs=self.n_jobs,
            progress=progress,
        )

    def goodness(self, X: ArrayLike) -> Goodness:
        """How much rows vary within the clusters, beside what the family allows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the fit, in the same order. Their weights are those of the fit.

        Returns
        -------
        Goodness
            Ratios per cluster, numbered as in ``labels_``, and column: see `Dendrogram.goodness`.

        Examples
        --------
        >>> import numpy as np
        >>> from fastrbhc import RBHC
        >>> X = np.random.default_rng(0).poisson([[4, 9]], (300, 2))
        >>> RBHC("poisson", n_clusters=1).fit(X).goodness(X).of_columns.round(1).tolist()
        [1.0, 0.9]
        """
        check_is_fitted(self)
        rows = self._check(X, self._family, reset=False, layout=self._layout)
        if rows.shape[0] != self.n_leaves_:
            raise ValueError(f"X has {rows.shape[0]} rows and the fit had {self.n_leaves_}")
        copies = np.asarray(self.dendrogram_.node_weights[: self.n_leaves_], dtype=np.float64)
        names = names_of_columns(X, None, rows.shape[1]) or self.dendrogram_.feature_names
        return goodness_of_clusters(self._family, rows, self.labels_, copies, names)

    def summary(
        self, n_top: int | None = None, *, feature_names: Sequence[str] | None = None
    ) -> Any:
        """A table of the clusters: size, weight, cost, mean parameters.

        Parameters
        ----------
        n_top : int, optional
            The number of columns that are named for each cluster, in the place of means: by
            default 10 if there are more than 50 columns. 0 for means of however many columns.
        feature_names : sequence of str, optional
            Names of the columns, by default those of the fit. After a pipeline, the names that
            its first steps make are ``pipeline[:-1].get_feature_names_out()``.

        Returns
        -------
        pandas.DataFrame
            One row per cluster, numbered as in ``labels_``. ``weight`` is the cluster's n in the
            dissimilarity, which for multinomial counts is their total, and ``mean_…`` is its mean
            statistic; the other columns are those of `fastrbhc.summaries.summary_of_clusters`. If
            there are more than 50 columns, ``more_of`` and ``less_of`` name those that tell a
            cluster most from all other rows.

        Examples
        --------
        >>> from fastrbhc import RBHC
        >>> model = RBHC("poisson", n_clusters=2).fit([[9, 1], [8, 2], [7, 2], [1, 9], [2, 7]])
        >>> model.summary()[["size", "mean_x0", "mean_x1"]].round(2).values.tolist()
        [[3.0, 8.0, 1.67], [2.0, 1.5, 8.0]]
        """
        check_is_fitted(self)
        return summary_of_statistics(
            self.dendrogram_,
            self.labels_,
            self._family,
            self._clusters,
            self.n_features_in_,
            names_of_columns(None, feature_names, self.n_features_in_)
            or self.dendrogram_.feature_names,
            number_of_top_columns(n_top, self.n_features_in_),
        )

    def _distribution(self) -> Family:
        return as_family(self.family)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "ignore"
        return tags

    def _findings(self) -> list[tuple[str, str]]:
        return [
            *family_lines(self._family, self.dendrogram_.feature_names),
            ("threshold λ", f"{self.threshold_:.6g}"),
            *super()._findings(),
        ]

    def _guess(self, options: CheckedOptions) -> int:
        if self.n_clusters_guess is None:
            return DEFAULT_GUESS
        guess = check_count(self.n_clusters_guess, "n_clusters_guess")
        if options.choice not in (None, "kmeans"):
            warnings.warn(
                f"n_clusters_guess is for threshold='kmeans', and threshold is {options.choice!r}: "
                "the guess is not used",
                UserWarning,
                stacklevel=3,
            )
        return guess

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
