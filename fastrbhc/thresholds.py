"""Choosing λ, the threshold that decides the number of clusters.

`kmeans_threshold` is the paper's heuristic and needs a guess of that number. `gap_threshold` and
`evidence_threshold` need none: they use the heights of the whole tree. The page
``docs/choosing-lambda.md`` compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from fastrbhc._engine.clusters import build as statistics
from fastrbhc._engine.clusters.duplicates import collapse
from fastrbhc._engine.clusters.observations import take, weighted
from fastrbhc._options import LinkageOptions
from fastrbhc._row_validation import check_rows
from fastrbhc._table import placed
from fastrbhc._validation import check_count, check_weights, check_whole
from fastrbhc.families import Family, as_family, geometry_of
from fastrbhc.families._interface import FamilyLike
from fastrbhc.families._missing import observe
from fastrbhc.selection.smoothing import resolve
from fastrbhc.tree.dendrogram import Dendrogram
from fastrbhc.tree.origin import family_for

# k-means centres are found on at most this many rows; all rows are then assigned to them.
SUBSAMPLE = 100_000


def kmeans_threshold(
    X: ArrayLike,
    family: FamilyLike,
    n_clusters_guess: int,
    *,
    multiplier: int = 4,
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
    missing: str = "error",
) -> float:
    """The paper's heuristic: the mean d between clusters that k-means finds.

    With a rough guess k̃ of the number of clusters, k-means (Euclidean, on the mean statistics)
    divides the rows into ``multiplier``·k̃ clusters, and λ is the average dissimilarity over all
    pairs of them, each with its own weight and statistics (Lee & Choi 2015, section 3.1).

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows of counts or measurements.
    family : str or record
        A record from `fastrbhc.families`, or its name.
    n_clusters_guess : int
        k̃, a rough guess. A larger guess gives a smaller λ. Another seed changes λ by a few per
        cent, which decides merges with heights close to it.
    multiplier : int, default=4
        Number of k-means clusters per guessed cluster.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    random_state : int, RandomState or None
        Seed of k-means.
    missing : {"error", "ignore"}, default="error"
        What NaN means; with "ignore", a cell that was not observed. For k-means it is filled in
        with the mean of its column; d is that of the observed cells, as in `linkage`.

    Returns
    -------
    float
        λ; infinite if all rows are the same, and so form one cluster.

    Notes
    -----
    Above 100,000 distinct rows the centres come from a random sample of 100,000 of them. All rows
    are then assigned to the nearest centre, since d grows with the size of clusters.

    Examples
    --------
    >>> import numpy as np, fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(5, (50, 2)), rng.poisson(50, (50, 2))])
    >>> threshold = fastrbhc.kmeans_threshold(X, "poisson", 2, random_state=0)
    >>> fastrbhc.linkage(X, "poisson", threshold=threshold).n_trees
    2
    """
    family = placed(as_family(family), X)
    check_count(n_clusters_guess, "n_clusters_guess")
    check_count(multiplier, "multiplier")
    options = LinkageOptions(missing=missing).checked(family)
    rows = check_rows(X, family, layout="auto", missing=missing)
    weights = check_weights(sample_weight, rows.shape[0])
    family, _ = resolve(family, rows, weights, options)
    return _kmeans_threshold(rows, family, n_clusters_guess, multiplier, weights, random_state)


def _kmeans_threshold(
    X: Any,
    family: Family,
    n_clusters_guess: int,
    multiplier: int,
    sample_weight: NDArray[np.float64] | None,
    random_state: Any,
) -> float:
    """The threshold for rows that have been checked."""
    rows = weighted(observe(family, X), sample_weight)
    if rows.weights is not None:
        rows = take(rows, np.flatnonzero(rows.weights))
    # Distinct points in hash order: the k-means clusters are the same for copies as for
    # weights, and for any order of the rows.
    points = collapse(rows).points
    labels, n_groups = _kmeans(points, multiplier * n_clusters_guess, random_state)
    if n_groups < 2:
        return np.inf
    geometry = geometry_of(family, points)
    clusters = statistics.clusters_of_groups(geometry, points, labels, n_groups)
    return float(statistics.dissimilarities(geometry, clusters).mean())


def _kmeans(points: Any, k: int, random_state: Any) -> tuple[NDArray[np.int64], int]:
    """Labels of at most k clusters of distinct points, none of them empty, and their number."""
    from sklearn.cluster import KMeans
    from sklearn.utils import check_random_state

    n = points.shape[0]
    if min(k, n) < 2:
        return np.zeros(n, np.int64), 1
    random = check_random_state(random_state)
    centred = points.centred_means()
    weights = points.all_weights()
    chosen = np.arange(n)
    if n > SUBSAMPLE:
        chosen = np.sort(random.choice(n, SUBSAMPLE, replace=False))
    model = KMeans(min(k, n), random_state=random)
    model.fit(centred[chosen], sample_weight=weights[chosen])
    labels = model.labels_ if chosen.size == n else model.predict(centred)
    used, numbered = np.unique(labels, return_inverse=True)
    return numbered.astype(np.int64), len(used)


def gap_threshold(tree: Dendrogram, *, max_clusters: int = 40) -> float:
    """The λ inside the largest gap between the heights of the last merges.

    Let h₁ ≥ h₂ ≥ … be the levels of the tree from its root down. The cut between hₖ and hₖ₊₁ has
    k + 1 clusters, and log(hₖ/hₖ₊₁) is large if these are well separated. But it is large for small
    k anyway: in rows without clusters, heights fall as a power of k (as k^(−1−2/d), for Ward's cost
    and rows that are uniform in d dimensions). For values with such a tail, the scaled spacings
    k·log(hₖ/hₖ₊₁) all have the same exponential distribution (Rényi 1953). Their median m is robust
    to a few large spacings, and m/k is the median of log(hₖ/hₖ₊₁) in the absence of clusters. λ is
    in the middle of the gap that exceeds this median the most.

    Parameters
    ----------
    tree : Dendrogram
        A whole tree, built without a threshold.
    max_clusters : int, default=40
        The largest number of clusters to consider; only that many heights are used.

    Returns
    -------
    float
        λ, which always gives at least two clusters; infinite only if all rows are the same.

    Notes
    -----
    Only ratios of heights matter: not the unit of the columns, the variance of a family, or
    overdispersion of counts. So it suits real data, which rarely follow a family exactly. Takes
    O(n) time in addition to the tree.

    References
    ----------
    A. Rényi, *On the theory of order statistics*, Acta Math. Hung. 4 (1953). Comparing gaps
    with a reference is the idea of R. Tibshirani, G. Walther and T. Hastie,
    *Estimating the number of clusters in a data set via the gap statistic*, JRSS B 63 (2001).

    Examples
    --------
    >>> import numpy as np, fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[0, 0], [9, 0], [0, 9], [9, 9]])
    >>> X = np.repeat(centres, 50, axis=0) + rng.normal(size=(200, 2))
    >>> tree = fastrbhc.linkage(X, "ward")
    >>> int(tree.cut(threshold=fastrbhc.gap_threshold(tree)).max()) + 1
    4
    """
    check_whole(tree)
    if check_count(max_clusters, "max_clusters") < 2:
        raise ValueError(f"max_clusters has to be at least 2, got {max_clusters}")
    excess = gap_excess(tree, max_clusters)
    return threshold_for(tree, 2 + int(np.argmax(excess)) if excess.size else _distinct(tree))


def gap_excess(tree: Dendrogram, max_clusters: int) -> NDArray[np.float64]:
    """How much wider the gap at 2, 3, … clusters is than the median without clusters."""
    levels = tree.levels[::-1][:max_clusters]
    levels = levels[levels > 0.0]  # copies merge at 0
    if levels.size < 2:
        return np.empty(0)
    ranks = np.arange(1, levels.size)
    spacings = -np.diff(np.log(levels))  # ratios might overflow
    found: NDArray[np.float64] = spacings - np.median(ranks * spacings) / ranks
    return found


def _distinct(tree: Dendrogram) -> int:
    """The number of distinct rows, 1 or 2, if there are too few for a gap."""
    return 1 + int(np.count_nonzero(tree.levels > 0.0))


def evidence_threshold(
    tree: Dendrogram,
    family: FamilyLike | None = None,
    n_features: int | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The λ whose clusters have the largest approximate evidence.

    The paper lets the variance of a Bayesian model go to 0. Before that limit, Laplace's method
    gives the evidence of a cluster of n rows (Lee & Choi 2015, section 3.1), with β = 1
    and a prior worth one row,

        log p(X_c) ≈ n φ(t) − (p/2) log(1 + n) + terms independent of the clusters,

    where a cluster has p parameters. A Dirichlet process with α = 1 gives a partition a probability
    proportional to ∏ Γ(n_c). So undoing a merge of a and b at height d changes the logarithm of the
    evidence by

        d + log Γ(n_a)Γ(n_b)/Γ(n_a + n_b) − (p/2) log (1 + n_a)(1 + n_b)/(1 + n_a + n_b).

    Merges are undone from the root down, and λ is where the sum is largest. The search ends where
    the clusters have as many parameters as there are rows: beyond, Laplace's method is not valid,
    and with a separate covariance every row would be a cluster.

    Parameters
    ----------
    tree : Dendrogram
        A whole tree, built without a threshold.
    family : str or record, optional
        Another family than the one that the tree remembers.
    n_features : int, optional
        Number of columns of the rows; by default as the tree remembers it.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; by default those of the tree.

    Returns
    -------
    float
        λ; infinite if one cluster is best.

    Notes
    -----
    The heights are interpreted as logarithms of likelihood ratios. That is right for rows that
    follow the family, and wrong for others: overdispersed counts, or a spherical Gaussian whose
    ``variance`` is not that of the clusters. For these it finds as many clusters as it takes to
    describe the rows, often dozens; see `gap_threshold`. k clusters have p·k parameters, so with
    fewer than 2p rows there is nothing to compare. Takes O(n) time in addition to the tree.

    Examples
    --------
    >>> import numpy as np, fastrbhc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(5, (50, 2)), rng.poisson(50, (50, 2))])
    >>> tree = fastrbhc.linkage(X, "poisson")
    >>> threshold = fastrbhc.evidence_threshold(tree)
    >>> int(tree.cut(threshold=threshold).max()) + 1
    2
    """
    family = family_for(tree, family)
    check_whole(tree)
    n_features = tree.n_features if n_features is None else n_features
    if n_features is None:
        raise ValueError("this tree does not remember its number of columns: give n_features=")
    check_count(n_features, "n_features")
    weights = check_weights(sample_weight, tree.n_leaves)
    leaves = tree.node_weights[: tree.n_leaves] if weights is None else weights
    weights = np.concatenate([leaves, tree.weights])
    proper = tree.levels > 0.0  # copies, and rows without weight, stay together
    a, b = weights[tree.merges[proper]].T
    prior = gammaln(a) + gammaln(b) - gammaln(a + b)
    p = family.n_parameters(n_features)
    penalty = 0.5 * p * np.log((1.0 + a) * (1.0 + b) / (1.0 + a + b))
    most_clusters = int(leaves.sum()) // max(p, 1)
    gains = (tree.heights[proper] + prior - penalty)[::-1][: max(most_clusters - 1, 0)]
    best = int(np.argmax(np.concatenate([[0.0], np.cumsum(gains)])))
    return threshold_for(tree, 1 + best)


def threshold_for(tree: Dendrogram, n_clusters: int) -> float:
    """A λ for a number of clusters, halfway to the level below; infinite for one cluster.

    If the two levels are the same, no λ divides the tree into so many: see `reachable_numbers`.
    """
    if n_clusters == 1:
        return np.inf
    undone = tree.n_leaves - n_clusters
    below = tree.levels[undone - 1] if undone else 0.0
    middle = float(0.5 * (tree.levels[undone] + below))
    return middle if middle > below else float(tree.levels[undone])  # neighbouring numbers


def reachable_numbers(tree: Dendrogram) -> NDArray[np.int64]:
    """The numbers of clusters of a whole tree into which some λ divides it, from 1 on.

    Merges at the same level are made together, and so are those below it that come after it.
    """
    steps = np.diff(tree.levels, prepend=0.0)
    return np.append(1, np.flatnonzero(steps[::-1]) + 2)


# Ways to choose λ by name: from the rows before there is a tree, or from the whole tree.
# Each takes (rows, family, guess, multiplier, weights, seed), or the tree, which remembers them.
FROM_ROWS: dict[str, Callable[..., float]] = {"kmeans": _kmeans_threshold}
FROM_TREE: dict[str, Callable[[Dendrogram], float]] = {
    "gap": gap_threshold,
    "evidence": evidence_threshold,
}
