"""Textbook versions of `fastrbhc.bhc` in plain Python, written from the definition.

Clusters are lists of rows, and a marginal likelihood is the product of the predictive densities of
one row after the other, by SciPy's distributions.
"""

from __future__ import annotations

import itertools
import math

import exact_bhc
import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln, ive, logsumexp


def log_marginal_likelihood(X, model):
    """log p(X | H) as Σ log p(x_i | x_1 … x_{i−1})."""
    X = np.atleast_2d(np.asarray(X, float))
    return sum(_PREDICTIVE[model.name](X[:i], X[i], model) for i in range(len(X)))


def _poisson(before, x, model):
    size, n = model.shape + before.sum(axis=0), len(before)
    share = (model.rate + n) / (model.rate + n + 1.0)
    return stats.nbinom.logpmf(x, size, share).sum()


def _multinomial(before, x, model):
    a = np.broadcast_to(model.concentration, x.shape) + before.sum(axis=0)
    return stats.dirichlet_multinomial.logpmf(x, a, x.sum())


def _bernoulli(before, x, model):
    yes = (model.yes + before.sum(axis=0)) / (model.yes + model.no + len(before))
    return stats.bernoulli.logpmf(x, yes).sum()


def _geometric(before, x, model):
    """The predictive distribution is beta-geometric: B(a + 1, b + x)/B(a, b)."""
    a, b = model.yes + len(before), model.no + before.sum(axis=0)
    return (betaln(a + 1.0, b + x) - betaln(a, b)).sum()


def _exponential(before, x, model):
    shape, waited = model.shape + len(before), model.waited + before.sum(axis=0)
    return stats.lomax.logpdf(x, shape, scale=waited).sum()


def _gaussian(before, x, model):
    mean = np.broadcast_to(model.mean, x.shape)
    return _student(before, x, mean, np.asarray(model.scale), model)


def _diagonal_gaussian(before, x, model):
    mean, scale = np.broadcast_to(model.mean, x.shape), np.broadcast_to(model.scale, x.shape)
    return sum(
        _student(before[:, [k]], x[[k]], mean[[k]], np.array([[scale[k]]]), model)
        for k in range(x.size)
    )


def _student(before, x, m, scale, model):
    """The predictive density is Student's, of location μ and shape Ψ(κ + 1)/(κ·degrees)."""
    n, d = before.shape
    strength, degrees = model.strength + n, model.degrees + n
    if n:
        mean = before.mean(axis=0)
        away, steps = mean - m, before - mean
        scale = scale + steps.T @ steps + model.strength * n / strength * np.outer(away, away)
        m = (model.strength * m + n * mean) / strength
    free = degrees - d + 1.0
    shape = scale * (strength + 1.0) / (strength * free)
    return stats.multivariate_t.logpdf(x, m, shape, df=free)


def _von_mises_fisher(before, x, model):
    """Normalising constants of the posteriors, by SciPy's scaled Bessel function."""
    rows = np.concatenate([before, x[None]])
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    prior = model.strength * np.asarray(model.mean) / np.linalg.norm(model.mean)
    lengths = [
        np.linalg.norm(prior + model.concentration * directions[:n].sum(axis=0))
        for n in (len(before), len(rows))
    ]
    order = x.size / 2.0 - 1.0

    def log_normaliser(kappa):
        power = order * np.log(kappa) - (order + 1.0) * np.log(2.0 * np.pi)
        return power - np.log(ive(order, kappa)) - kappa

    of_row = log_normaliser(model.concentration)
    return of_row + log_normaliser(lengths[0]) - log_normaliser(lengths[1])


_PREDICTIVE = {
    "von_mises_fisher": _von_mises_fisher,
    "geometric": _geometric,
    "exponential": _exponential,
    "poisson": _poisson,
    "multinomial": _multinomial,
    "bernoulli": _bernoulli,
    "gaussian": _gaussian,
    "diagonal_gaussian": _diagonal_gaussian,
}


class Groups:
    """Marginal likelihoods of groups of rows, each computed once."""

    def __init__(self, X, model):
        self.X, self.model, self.known = np.asarray(X, float), model, {}
        # SciPy's distributions of counts require integers.
        measurements = model.name.endswith(("gaussian", "exponential", "fisher"))
        whole = (np.floor(self.X) == self.X).all() or measurements
        self.of_rows = log_marginal_likelihood if whole else exact_bhc.log_marginal_likelihood

    def log_marginal(self, members):
        key = frozenset(members)
        if key not in self.known:
            self.known[key] = float(self.of_rows(self.X[sorted(key)], self.model))
        return self.known[key]


def tree(X, model, log_alpha=0.0):
    """Merge the pair with the largest odds until one cluster is left.

    Returns merges in SciPy's numbering and, for each, log odds, log φ(X | H) and log φ(X | T).
    """
    groups, n = Groups(X, model), len(X)
    alive = {i: ((i,), log_alpha + groups.log_marginal([i])) for i in range(n)}

    def hypothesis(a, b):
        members = alive[a][0] + alive[b][0]
        return log_alpha + gammaln(len(members)) + groups.log_marginal(members)

    merges, odds, hypotheses, trees = [], [], [], []
    known = {}
    while len(alive) > 1:
        for a, b in itertools.combinations(sorted(alive), 2):
            if (a, b) not in known:
                known[a, b] = hypothesis(a, b) - alive[a][1] - alive[b][1]
        a, b = max(known, key=known.get)
        together, apart = hypothesis(a, b), alive[a][1] + alive[b][1]
        node = n + len(merges)
        merges.append((a, b))
        odds.append(known[a, b])
        hypotheses.append(together)
        trees.append(float(np.logaddexp(together, apart)))
        members = alive.pop(a)[0] + alive.pop(b)[0]
        alive[node] = members, trees[-1]
        known = {pair: value for pair, value in known.items() if not {a, b} & set(pair)}
    return np.array(merges), np.array(odds), np.array(hypotheses), np.array(trees)


def partitions(members):
    """All partitions of a list."""
    if not members:
        yield []
        return
    first, rest = members[0], members[1:]
    for size in range(len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [x for x in rest if x not in others]
            for partition in partitions(left):
                yield [(first, *others), *partition]


def tree_partitions(merges, n):
    """All partitions whose clusters are nodes of the tree."""
    of_node = [[[(leaf,)]] for leaf in range(n)]
    members = [(leaf,) for leaf in range(n)]
    for a, b in merges:
        members.append(members[a] + members[b])
        apart = [left + right for left in of_node[a] for right in of_node[b]]
        of_node.append([[members[-1]], *apart])
    return of_node[-1]


def log_joint(partition, groups, log_alpha, n):
    """log p(partition)·p(X | partition) under the Dirichlet process."""
    prior = sum(log_alpha + gammaln(len(cluster)) for cluster in partition)
    alpha = math.exp(log_alpha)
    prior -= log_alpha + gammaln(alpha + n) - gammaln(alpha + 1.0)
    return prior + sum(groups.log_marginal(cluster) for cluster in partition)


def log_evidence(some_partitions, groups, log_alpha, n):
    """The logarithm of the sum over partitions."""
    return logsumexp([log_joint(p, groups, log_alpha, n) for p in some_partitions])
