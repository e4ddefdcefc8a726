"""Textbook versions of the algorithms in plain NumPy, written from the definition.

For a group c of weighted rows, f(c) = n·φ(t̄) with n the weight and t̄ the mean statistic, and

    d(a, b) = f(a) + f(b) − f(a∪b).

Nothing here is clever: clusters are lists of rows, and every statistic is computed from scratch.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from fastrbhc.families import as_family

TRANSLATION_INVARIANT = {"spherical_gaussian", "gaussian", "diagonal_gaussian"}


def _spherical_gaussian(rows, weights):
    mean = np.average(rows, axis=0, weights=weights)
    terms = mean**2 / 2.0
    return weights.sum(), terms.sum(), np.average((rows**2).sum(axis=1), weights=weights)


def _gaussian(rows, weights):
    mean = np.average(rows, axis=0, weights=weights)
    steps = rows - mean
    covariance = (weights / weights.sum() * steps.T) @ steps + 0.01 * np.eye(rows.shape[1])
    phi = -0.5 * np.linalg.slogdet(covariance)[1]
    # A determinant is as uncertain as its matrix is ill-conditioned.
    return weights.sum(), phi, abs(phi) + np.linalg.cond(covariance)


def _diagonal_gaussian(rows, weights):
    mean = np.average(rows, axis=0, weights=weights)
    variances = np.average((rows - mean) ** 2, axis=0, weights=weights) + 0.01
    logs = np.log(variances) / 2.0
    return weights.sum(), -logs.sum(), _size(logs) + logs.size


def _von_mises_fisher(rows, weights):
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    mean = np.average(directions, axis=0, weights=weights)
    return weights.sum(), np.linalg.norm(mean), 1.0


def _poisson(rows, weights):
    mean = np.average(rows, axis=0, weights=weights) + 0.01
    return weights.sum(), (mean * np.log(mean) - mean).sum(), _size(mean * np.log(mean), mean)


def _multinomial(rows, weights):
    totals = weights * rows.sum(axis=1)
    share = np.average(rows / rows.sum(axis=1, keepdims=True), axis=0, weights=totals)
    share = 0.9 * share + 0.1 / rows.shape[1]
    return totals.sum(), (share * np.log(share)).sum(), _size(share * np.log(share))


def _bernoulli(rows, weights):
    share = 0.9 * np.average(rows, axis=0, weights=weights) + 0.05
    yes, no = share * np.log(share), (1.0 - share) * np.log(1.0 - share)
    return weights.sum(), (yes + no).sum(), _size(yes, no)


def _exponential(rows, weights):
    logs = np.log(np.average(rows, axis=0, weights=weights))
    return weights.sum(), -logs.sum(), _size(logs) + logs.size


def _size(*terms):
    return sum(np.abs(term).sum() for term in terms)


def as_declared(family):
    """The textbook version of a family that is not listed here, from the φ that it declares."""

    def twin(rows, weights):
        observed = family.observe(rows)
        rows, weights = observed.means, observed.weighted(weights).weights
        scale, offset = family.smoothing_map(rows.shape[1])
        mean = scale * np.average(rows, axis=0, weights=weights) + offset
        terms = family.phi(mean)
        # What rounding of the mean changes: where φ is 0, as log x at 1, its slope still matters.
        slopes = (terms - family.phi(mean * (1.0 - 1e-6))) / 1e-6
        return weights.sum(), terms.sum(), _size(terms, slopes)

    return twin


# For a group: its weight, φ at its mean, and the magnitude of the numbers that φ came from.
FAMILIES = {
    "spherical_gaussian": _spherical_gaussian,
    "gaussian": _gaussian,
    "diagonal_gaussian": _diagonal_gaussian,
    "von_mises_fisher": _von_mises_fisher,
    "poisson": _poisson,
    "multinomial": _multinomial,
    "bernoulli": _bernoulli,
    "exponential": _exponential,
}


def _categorical(family, towards=None):
    """Shares of levels, and of all others in each column, moved towards equal ones."""
    if towards is None:
        towards = len(family.levels) / sum(map(len, family.levels))

    def twin(rows, weights):
        codes = [np.arange(-1, len(levels)) for levels in family.levels]
        ones = [cells[:, None] == own for cells, own in zip(rows.T, codes, strict=True)]
        shares = np.average(np.concatenate(ones, axis=1), axis=0, weights=weights)
        terms = _x_log_x((1.0 - family.smoothing) * shares + family.smoothing * towards)
        return weights.sum(), terms.sum(), _size(terms)

    return twin


def _product(rows0, weights0, rows1, weights1, family):
    """The sum over the blocks of columns, whose families have default parameters."""
    value, magnitude = 0.0, 0.0
    for block in family.blocks:
        columns = list(block.columns)
        kind = block.family if hasattr(block.family, "levels") else block.family.name
        part, size = dissimilarity_and_magnitude(
            rows0[:, columns], weights0, rows1[:, columns], weights1, kind
        )
        value, magnitude = value + block.weight * part, magnitude + block.weight * size
    return value, magnitude


def _with_gaps(rows0, weights0, rows1, weights1, family):
    """The sum over columns, of the rows in which they are observed."""
    value, magnitude = 0.0, 0.0
    for k in range(rows0.shape[1]):
        seen0, seen1 = ~np.isnan(rows0[:, k]), ~np.isnan(rows1[:, k])
        if seen0.any() and seen1.any():
            groups = rows0[seen0, k, None], weights0[seen0], rows1[seen1, k, None], weights1[seen1]
            kind, towards = family, None
            if hasattr(family, "levels"):
                towards = len(family.levels) / sum(map(len, family.levels))
                kind = family._replace(levels=(family.levels[k],))
            part, size = dissimilarity_and_magnitude(*groups, kind, towards)
            value, magnitude = value + part, magnitude + size
    return value, magnitude


def dissimilarity_and_magnitude(rows0, weights0, rows1, weights1, family, towards=None):
    """d, and the size of the terms that it is the difference of, for its rounding error.

    NaN stands for missing cells. The shares of levels are moved towards equal ones, unless
    ``towards`` says otherwise.
    """
    if hasattr(family, "blocks"):
        return _product(rows0, weights0, rows1, weights1, family)
    if np.isnan(rows0).any() or np.isnan(rows1).any():
        return _with_gaps(rows0, weights0, rows1, weights1, family)
    rows = np.concatenate([rows0, rows1])
    weights = np.concatenate([weights0, weights1])
    if isinstance(family, str) and family in TRANSLATION_INVARIANT:
        centre = np.average(rows, axis=0, weights=weights)
        rows0, rows1, rows = rows0 - centre, rows1 - centre, rows - centre
    groups = [(rows0, weights0), (rows1, weights1), (rows, weights)]
    if hasattr(family, "levels"):
        twin = _categorical(family, towards)
    else:
        twin = FAMILIES.get(family) or as_declared(as_family(family))
    (n0, phi0, size0), (n1, phi1, size1), (n, phi, size) = (twin(*g) for g in groups)
    return n0 * phi0 + n1 * phi1 - n * phi, n0 * size0 + n1 * size1 + n * size


def dissimilarity(rows0, weights0, rows1, weights1, family):
    """d(a, b) = f(a) + f(b) − f(a∪b)."""
    return dissimilarity_and_magnitude(rows0, weights0, rows1, weights1, family)[0]


class _Groups:
    """The active clusters, as lists of rows by SciPy's node numbers."""

    def __init__(self, X, weights, family):
        self.X = np.asarray(X, float)
        self.weights = np.ones(len(X)) if weights is None else np.asarray(weights, float)
        self.family = family
        self.alive = {i: [i] for i in range(len(X))}
        self.merges, self.heights = [], []

    def d(self, a, b):
        parts = [(self.X[m], self.weights[m]) for m in (self.alive[a], self.alive[b])]
        return dissimilarity(*parts[0], *parts[1], self.family)

    def merge(self, a, b, height):
        node = len(self.X) + len(self.merges)
        self.merges.append(sorted((a, b)))
        self.heights.append(height)
        self.alive[node] = self.alive.pop(a) + self.alive.pop(b)
        return node

    def result(self):
        return np.array(self.merges, np.int64).reshape(-1, 2), np.array(self.heights)


def greedy(X, weights, family, threshold=np.inf):
    """Merge the nearest of all pairs while it is nearer than the threshold (Algorithm 1)."""
    groups = _Groups(X, weights, family)
    known = {pair: groups.d(*pair) for pair in itertools.combinations(groups.alive, 2)}
    while known:
        (a, b), height = min(known.items(), key=lambda item: item[1])
        if height >= threshold:
            break
        node = groups.merge(a, b, height)
        known = {pair: d for pair, d in known.items() if not {a, b} & set(pair)}
        known |= {(x, node): groups.d(x, node) for x in groups.alive if x != node}
    return groups.result()


def greedy_on_graph(X, weights, family, edges, threshold=np.inf):
    """The same among adjacent pairs; a union is adjacent to whatever its parts were."""
    groups = _Groups(X, weights, family)
    adjacent = {frozenset(map(int, edge)) for edge in edges if edge[0] != edge[1]}
    while adjacent:
        height, (a, b) = min((groups.d(*pair), sorted(pair)) for pair in adjacent)
        if height >= threshold:
            break
        node = groups.merge(a, b, height)
        renamed = (frozenset(node if x in (a, b) else x for x in pair) for pair in adjacent)
        adjacent = {pair for pair in renamed if len(pair) == 2}
    return groups.result()


def nn_chain(X, weights, family, threshold=np.inf):
    """Follow nearest neighbours until two are each other's, and merge those (Algorithm 2).

    After a merge a new chain is started, so that no link is ever stale. A cluster without a
    neighbour below the threshold is set aside.
    """
    groups = _Groups(X, weights, family)
    finished, chain = set(), []
    while len(active := [x for x in groups.alive if x not in finished]) > 1:
        chain = chain or [active[0]]
        end = chain[-1]
        height, nearest = min((groups.d(end, x), x) for x in active if x != end)
        if height >= threshold:
            finished.add(end)
            chain = []
        elif len(chain) > 1 and height >= groups.d(end, chain[-2]):
            groups.merge(end, chain[-2], height)
            chain = []
        else:
            chain.append(nearest)
    return groups.result()


class Violations(NamedTuple):
    """The result of a triple loop; *open* holds triples that rounding leaves undecided."""

    triples: int
    certain: set  # (merge, x): c is nearer to x than a and b were
    open: set
    consequential: set  # (merge, x): and nearer than all others were
    consequential_open: set
    deficits: dict  # (merge, x): 1 − d(c, x) / min(d(a, x), d(b, x))


def violations(tree, X, weights, family):
    """Every merge of a tree, in order, with every other active cluster."""
    groups = _Groups(X, weights, family)

    def d(members0, members1):
        parts = [(groups.X[m], groups.weights[m]) for m in (members0, members1)]
        value, size = dissimilarity_and_magnitude(*parts[0], *parts[1], family)
        return value, 1e-9 * abs(value) + 1e-13 * size

    found = Violations(0, set(), set(), set(), set(), {})
    triples, alive = 0, groups.alive
    for row in np.argsort(tree.steps):
        a, b = (int(node) for node in tree.merges[row])
        union = alive[a] + alive[b]
        for x in alive.keys() - {a, b}:
            triples += 1
            value, slack = d(union, alive[x])
            near, near_slack = min(d(alive[part], alive[x]) for part in (a, b))
            slack += near_slack
            place = int(row), x
            if value < near + slack:
                (found.certain if value < near - slack else found.open).add(place)
                found.deficits[place] = 1.0 - value / near if near > 0.0 else 0.0
                nearest, rest = min(d(alive[y], alive[x]) for y in alive if y != x)
                if value < nearest + slack + rest:
                    sure = value < nearest - slack - rest
                    (found.consequential if sure else found.consequential_open).add(place)
        del alive[a], alive[b]
        alive[len(groups.X) + int(row)] = union
    return found._replace(triples=triples)


def greedy_by_matrix(X, family):
    """Algorithm 1 as it is usually written, on a full matrix; quick enough for hundreds of rows."""
    X = np.asarray(X, float)
    if family == "von_mises_fisher":
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    declared = as_family(family)
    if hasattr(declared, "transformed"):
        X = declared.observe(X).means
    n, d = X.shape
    weights, sums, products = np.ones(n), X.copy(), np.einsum("ij,ik->ijk", X, X)
    if family == "multinomial":
        weights = X.sum(axis=1)
    smoothing = declared.smoothing_map(d)
    phi = _PHI.get(family, lambda x: declared.phi(smoothing.scale * x + smoothing.offset))

    def cost(weights, sums, products):
        """f of every cluster at once, from its weight, sum of rows and sum of their squares."""
        mean = sums / weights[:, None]
        if family == "gaussian":
            covariance = products / weights[:, None, None] - np.einsum("ij,ik->ijk", mean, mean)
            return -0.5 * weights * np.linalg.slogdet(covariance + 0.01 * np.eye(d))[1]
        if family == "diagonal_gaussian":
            squares = np.diagonal(products, axis1=1, axis2=2) / weights[:, None]
            return -0.5 * weights * np.log(squares - mean**2 + 0.01).sum(axis=1)
        if family == "von_mises_fisher":
            return np.linalg.norm(sums, axis=1)
        return weights * phi(mean).sum(axis=1)

    def row(i):
        union = weights[i] + weights, sums[i] + sums, products[i] + products
        d = costs[i] + costs - cost(*union)
        d[~alive] = np.inf
        d[i] = np.inf
        return d

    alive, nodes = np.ones(n, bool), np.arange(n)
    costs = cost(weights, sums, products)
    matrix = np.array([row(i) for i in range(n)])
    merges, heights = [], []
    for step in range(n - 1):
        i, j = divmod(int(np.argmin(matrix)), n)
        merges.append(sorted((int(nodes[i]), int(nodes[j]))))
        heights.append(matrix[i, j])
        for statistic in (weights, sums, products):
            statistic[i] += statistic[j]
        costs[i] = cost(weights[[i]], sums[[i]], products[[i]])[0]
        alive[j], nodes[i] = False, n + step
        matrix[j], matrix[:, j] = np.inf, np.inf
        matrix[i] = matrix[:, i] = row(i)
    return np.array(merges), np.array(heights)


# φ of many means at once, one value per column.
_PHI = {
    "spherical_gaussian": lambda x: x**2 / 2.0,
    "poisson": lambda x: (x + 0.01) * np.log(x + 0.01) - (x + 0.01),
    "multinomial": lambda x: _x_log_x(0.9 * x + 0.1 / x.shape[1]),
    "bernoulli": lambda x: _x_log_x(0.9 * x + 0.05) + _x_log_x(0.95 - 0.9 * x),
    "exponential": lambda x: -np.log(x),
}


def _x_log_x(x):
    return x * np.log(x)
