"""From rows to a tree with probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.agglomeration.greedy import greedy
from fastrbhc._engine.agglomeration.space import Space
from fastrbhc._engine.neighbors.brute import Brute
from fastrbhc._engine.threads import Threads
from fastrbhc._engine.traversal import renumbered
from fastrbhc._progress import Progress
from fastrbhc._row_validation import names_of_columns
from fastrbhc._table import placed
from fastrbhc._validation import check_threads
from fastrbhc.bhc._interface import LOG_TREE, Model, ModelLike, as_model
from fastrbhc.bhc._rows import rows_of
from fastrbhc.bhc.dendrogram import BayesianDendrogram, bayesian_dendrogram
from fastrbhc.bhc.evidence import check_search, most_trials, places_of, search
from fastrbhc.bhc.potentials import clusters_of_rows, points_of, potentials_of, scratch_of
from fastrbhc.families import as_family
from fastrbhc.tree.origin import Origin, remembering

# Below this much work, in pairs times columns, a second thread costs more than it gains.
_WORTH_A_THREAD = 1_000_000


class Fitted(NamedTuple):
    """A tree, and the model with which it was built."""

    tree: BayesianDendrogram
    model: Model


def bhc_linkage(
    X: ArrayLike,
    model: ModelLike = "gaussian",
    alpha: float | str = 1.0,
    *,
    hyperparameters: Any = "data",
    feature_names: Sequence[str] | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    random_state: Any = None,
) -> BayesianDendrogram:
    """Bayesian hierarchical clustering of the rows of X (Heller & Ghahramani 2005).

    Every step merges the two clusters with the largest posterior probability of being one cluster.
    For each merge of a and b into c there are two hypotheses: that c is one cluster, or that its
    rows are divided as in the trees of a and b. The greedy tree is exact, in O(n) memory and O(n²)
    time.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows of counts or measurements: an array of any layout, a data frame, or, for counts,
        a sparse matrix. Large matrices with few non-zeros are not made dense.
    model : str or record, default="gaussian"
        A conjugate model from `fastrbhc.bhc`, or its name: "gaussian" (normal-Wishart),
        "diagonal_gaussian" (normal-gamma), "poisson" (gamma), "multinomial" (Dirichlet),
        "bernoulli" (beta).
    alpha : float or "evidence", default=1.0
        Concentration of the Dirichlet process: the larger, the more clusters.
    hyperparameters : "data", "evidence", dict or record, default="data"
        The source of hyperparameters that the model leaves open: moments of the data, or
        maximisation of the evidence, see `BHC`. A dict gives some of them by name.
    feature_names : sequence of str, optional
        Names of the columns, for X without any, as in `linkage`. Messages and the tree's
        ``summary`` use them.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.
    progress : bool, default=False
        Show a progress bar.
    random_state : int, RandomState or None
        Seed of the sample with which the evidence is maximised.

    Returns
    -------
    BayesianDendrogram
        Merges, their probabilities and the evidence; ``cut`` gives labels.

    Notes
    -----
    Ties are broken as in `linkage`, by a fixed hash of the values. Repeated rows are not collapsed:
    two copies are not always the most probable pair, because a row farther from the prior mean in
    the same direction may be stronger evidence. For the same reason there are no
    sample weights: a row of weight 3 would be three rows, which need not end in one cluster.

    Examples
    --------
    >>> import numpy as np, fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(5, (20, 2)), rng.poisson(50, (20, 2))])
    >>> tree = fastrbhc.bhc_linkage(X, "poisson")
    >>> tree.cut().tolist() == [1] * 20 + [0] * 20
    True
    >>> bool(tree.probabilities[-1] < 0.5)
    True
    """
    record = placed(as_model(model, hyperparameters), X, feature_names=feature_names)
    check_search(alpha, hyperparameters)
    n_threads = check_threads(n_jobs)
    rows = rows_of(X, record, feature_names=feature_names)
    names = names_of_columns(X, feature_names, rows.shape[1])
    fitted = fit_tree(rows, record, alpha, hyperparameters, n_threads, progress, random_state)
    return remembering(fitted.tree, names)


def fit_tree(
    X: Any,
    model: Model,
    alpha: float | str,
    hyperparameters: Any,
    n_threads: int,
    progress: bool,
    random_state: Any,
) -> Fitted:
    """The tree of rows that have been checked, and the complete model."""
    # In an order that depends only on their values, and so does everything that follows.
    order, _ = points_of(X).order_by_value()
    rows = X[order]
    totals = {
        "evidence": most_trials(len(places_of(model)) + 1),
        "neighbours": X.shape[0],
        "merging": X.shape[0] - 1,
    }

    def trial(sample: Any, candidate: Model, log_alpha: float) -> Any:
        return build(sample, candidate, log_alpha, n_threads)

    with Progress(progress, totals) as report:
        found, log_alpha = search(rows, model, alpha, hyperparameters, trial, report, random_state)
        tree = build(rows, found, log_alpha, n_threads, report)
    origin = Origin(None if found.family is None else as_family(found.family), X.shape[1])
    remembered = replace(in_given_order(tree, order), origin=origin, model=found)
    return Fitted(remembered, found)


def build(
    X: Any,
    model: Model,
    log_alpha: float,
    n_threads: int,
    report: Callable[[str, int], None] = lambda stage, done: None,
) -> BayesianDendrogram:
    """The tree of rows in the order that decides ties, under a complete model."""
    n = X.shape[0]
    # Values that are not finite are detected below.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        likelihood = model.likelihood(X)
        geometry = potentials_of(likelihood, log_alpha, n)
        count = 1 if n**2 * points_of(X).width < _WORTH_A_THREAD else n_threads
        with Threads([scratch_of(geometry, X) for _ in range(count)]) as threads:
            clusters = clusters_of_rows(geometry, X, padded=True)
            log_leaves = clusters.cached[:n, LOG_TREE] + model.log_base_measure(X)
            space = Space(geometry, clusters, Brute())
            merges = greedy(space, np.inf, threads, report)
    if merges.heights.size < n - 1:
        raise ValueError(
            f"the marginal likelihood of the model {model.name!r} is not finite for these rows and "
            "hyperparameters"
        )
    return bayesian_dendrogram(merges.children, merges.heights, log_leaves, log_alpha)


def in_given_order(tree: BayesianDendrogram, order: NDArray[np.intp]) -> BayesianDendrogram:
    """The same tree, with leaf i renumbered as order[i]."""
    return replace(tree, merges=renumbered(tree.merges, order.astype(np.int64), tree.n_leaves))
