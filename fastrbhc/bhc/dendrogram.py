"""The tree with the posterior probabilities of its merges."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from fastrbhc._engine.jit import kernel
from fastrbhc._engine.traversal import subtree_maxima
from fastrbhc._validation import check_number, check_share
from fastrbhc.bhc.likelihoods.rising import log_rising
from fastrbhc.bhc.potentials import log_sum
from fastrbhc.tree.cuts import Stem, numbered
from fastrbhc.tree.dendrogram import Dendrogram, refuse_misplaced

if TYPE_CHECKING:
    from fastrbhc.bhc._interface import Model


def _nothing() -> NDArray[np.float64]:
    return np.empty(0)


@dataclass(frozen=True, eq=False, repr=False)
class BayesianDendrogram(Dendrogram):
    """A binary tree over the rows, with the probability of every merge.

    Merges are listed in the order in which they were made.

    Attributes
    ----------
    merges, weights, n_leaves, steps, origin
        As in `Dendrogram`. The family is the one that ``model`` puts a prior on.
    heights : ndarray of shape (n_leaves - 1,)
        Logarithms of the odds against each merge, −``log_odds``: negative if it is more likely than
        not. A parent is often below its child, because large clusters are more certain than small
        ones.
    log_alpha : float
        log α, with α the concentration of the Dirichlet process.
    log_hypotheses : ndarray of shape (n_leaves - 1,)
        log φ(X | H) = log αΓ(n)·p(X | H) of each merge, for the hypothesis of one cluster.
    log_trees : ndarray of shape (n_leaves - 1,)
        log φ(X | T) of each merge, the sum over all clusterings consistent with its subtree.
    log_gammas : ndarray of shape (n_leaves - 1,)
        log γ, the same sum without the data, by which φ(X | T) is divided to give p(X | T).
    log_evidence : float
        Lower bound of the log marginal likelihood of the Dirichlet-process mixture.
    model : record or None
        The model with all its hyperparameters. JSON leaves it out.

    Examples
    --------
    >>> import fastrbhc
    >>> from fastrbhc.bhc import GammaPoisson
    >>> X = [[3], [4], [40], [38]]
    >>> tree = fastrbhc.bhc_linkage(X, GammaPoisson(shape=1.0, rate=0.1), alpha=0.5)
    >>> tree.probabilities.round(3).tolist()
    [0.974, 0.814, 0.0]
    >>> tree.cut().tolist()
    [1, 1, 0, 0]
    >>> round(tree.log_evidence, 3)
    -17.001
    """

    log_alpha: float = 0.0
    log_hypotheses: NDArray[np.float64] = field(default_factory=_nothing)
    log_trees: NDArray[np.float64] = field(default_factory=_nothing)
    log_gammas: NDArray[np.float64] = field(default_factory=_nothing)
    log_evidence: float = math.nan
    model: Model | None = None

    @property
    def log_odds(self) -> NDArray[np.float64]:
        """Logarithms of the odds for each merge, log r/(1 − r)."""
        return -self.heights

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The posterior probability r of each merge, p(H | X, T)."""
        result: NDArray[np.float64] = expit(self.log_odds)
        return result

    @property
    def merge_costs(self) -> NDArray[np.float64]:
        """What each merge adds to the cost of a clustering, Σ −log φ(X_c | H) over its clusters c.

        A height compares with all clusterings of the two parts; this with the parts as they are.
        """
        # φ(X | H) of a leaf is its φ(X | T), and the height has log φ(X | T) of both parts in it.
        parts = self.merges - self.n_leaves
        excess = np.append(self.log_trees - self.log_hypotheses, 0.0)
        return self.heights - excess[np.maximum(parts, -1)].sum(axis=1)

    def stability(self, *_: Any, **__: Any) -> Never:
        """Refused: for a Bayesian tree, ``probabilities`` say how certain its merges are."""
        raise TypeError(
            "stability is for trees of linkage. Of a Bayesian tree, probabilities say how certain "
            "each merge is; for subsamples, build a tree of the same rows with linkage"
        )

    def cut(
        self,
        *misplaced: Never,
        threshold: float | ArrayLike | None = None,
        n_clusters: int | ArrayLike | None = None,
        min_size: int | None = None,
        probability: float | None = None,
    ) -> NDArray[np.int64]:
        """Labels of the rows: by default those of the cut at r < 0.5 (Heller & Ghahramani 2005).

        From the root down, a node is one cluster as soon as its r is at least the probability,
        whatever is below it. As r does not always fall towards the root, this differs from stopping
        when the nearest pair is less likely than that, which ``threshold`` does.

        Parameters
        ----------
        *misplaced
            None: every value has to be given with its name.
        threshold : float or list of floats, optional
            Stop merging at this height instead, as Lee & Choi (2015) put it: keep the merges up to
            the first that has −log odds ≥ threshold. 0 stands for r = 0.5.
        n_clusters : int or list of ints, optional
            Undo the last merges, so that exactly this many clusters remain.
        min_size : int, optional
            No cluster has fewer rows than this, as in `Dendrogram.cut`; only together with one of
            the two.
        probability : float, optional
            A limit other than 0.5, between 0 and 1.

        Returns
        -------
        labels : ndarray of shape (n_leaves,), int64
            Labels 0…k−1, the largest cluster first; more in `Dendrogram.cut`.

        Examples
        --------
        >>> import fastrbhc
        >>> from fastrbhc.bhc import GammaPoisson
        >>> tree = fastrbhc.bhc_linkage([[3], [4], [40], [38]], GammaPoisson(1.0, 0.1), 0.5)
        >>> tree.cut(probability=0.85).tolist()
        [1, 2, 0, 0]
        >>> tree.cut(threshold=0.0).tolist()
        [1, 1, 0, 0]
        """
        refuse_misplaced(misplaced)
        if sum(given is not None for given in (threshold, n_clusters, probability)) > 1:
            raise ValueError("cut needs one of threshold, n_clusters and probability, not several")
        if threshold is not None or n_clusters is not None:
            return self._cut(threshold, n_clusters, min_size)
        if min_size is not None:
            raise ValueError("min_size needs threshold or n_clusters: undoing merges from the last")
        share = 0.5 if probability is None else check_share(probability, "probability")
        clusters = np.arange(self.n_leaves + len(self.merges))
        _descend(self.merges, self.log_odds >= logit(share), self.n_leaves, clusters)
        return numbered(self._stem(), clusters[: self.n_leaves])

    def _stem(self) -> Stem:
        highest = subtree_maxima(self.merges, self.heights, self.n_leaves)
        return Stem(self.merges, self.levels, self.weights, highest, self.n_leaves)

    def _checked_level(self, threshold: Any) -> float:
        return check_number(threshold, "threshold")

    def to_scipy(self) -> NDArray[np.float64]:
        """A linkage matrix for ``scipy.cluster.hierarchy``, as for `Dendrogram`.

        Heights are relative to the lowest, because SciPy accepts none below 0, and a merge is
        raised to the height of an earlier one if necessary, with a warning that states how many.

        Returns
        -------
        Z : ndarray of shape (n_leaves - 1, 4), float64

        Examples
        --------
        >>> import fastrbhc
        >>> from fastrbhc.bhc import GammaPoisson
        >>> tree = fastrbhc.bhc_linkage([[3], [4], [40], [38]], GammaPoisson(1.0, 0.1), 0.5)
        >>> tree.to_scipy()[:, :2].astype(int).tolist()
        [[2, 3], [0, 1], [4, 5]]
        """
        raised = self.heights - self.heights.min()
        plain = Dendrogram(self.merges, raised, self.weights, self.n_leaves, np.inf, self.steps)
        return plain.to_scipy()

    def __repr__(self) -> str:
        likely = int(np.count_nonzero(self.heights <= 0.0))
        return (
            f"<BayesianDendrogram: {self.n_leaves} leaves, {likely} of {len(self.merges)} merges "
            f"with r ≥ 0.5, log evidence ≥ {self.log_evidence:.6g}>"
        )


def bayesian_dendrogram(
    merges: NDArray[np.int64],
    heights: NDArray[np.float64],
    log_leaves: NDArray[np.float64],
    log_alpha: float,
) -> BayesianDendrogram:
    """The tree of merges in their order, from log φ of the leaves and the odds against merges.

    These determine everything else: φ(X | H) of a merge is the product of φ(X | T) of its parts
    over the odds against it, and φ(X | T) is the sum of the two.
    """
    n, m = log_leaves.size, len(merges)
    hypotheses, trees, gammas, weights = (np.empty(m) for _ in range(4))
    _recur(merges, heights, log_leaves, log_alpha, hypotheses, trees, gammas, weights)
    # Γ(α)/Γ(α + n)·φ(X | T), where α itself may be too small for a float.
    log_normaliser = log_alpha + log_rising(math.exp(log_alpha) + 1.0, n - 1.0)
    return BayesianDendrogram(
        merges=merges,
        heights=heights,
        weights=weights,
        n_leaves=n,
        steps=np.arange(m),
        log_alpha=log_alpha,
        log_hypotheses=hypotheses,
        log_trees=trees,
        log_gammas=gammas,
        log_evidence=float(trees[-1] - log_normaliser),
    )


@kernel
def _recur(merges, heights, log_leaves, log_alpha, hypotheses, trees, gammas, weights):
    """φ(X | H), φ(X | T) and γ of every merge from those of its parts."""
    n = log_leaves.size
    for i in range(heights.size):
        weight, apart, gamma = 0.0, 0.0, 0.0
        for side in range(2):
            part = merges[i, side] - n
            if part < 0:
                weight += 1.0
                apart += log_leaves[part + n]
                gamma += log_alpha
            else:
                weight += weights[part]
                apart += trees[part]
                gamma += gammas[part]
        weights[i] = weight
        hypotheses[i] = apart - heights[i]
        trees[i] = log_sum(hypotheses[i], apart)
        gammas[i] = log_sum(log_alpha + math.lgamma(weight), gamma)


@kernel
def _descend(merges, likely, n_leaves, clusters):
    """Pass the cluster of each node on to its children; likely nodes outside of one start one."""
    for i in range(merges.shape[0] - 1, -1, -1):
        if clusters[n_leaves + i] != n_leaves + i or likely[i]:
            clusters[merges[i, 0]] = clusters[merges[i, 1]] = clusters[n_leaves + i]
