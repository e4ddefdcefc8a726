"""Does a split of the tree divide rows better than a split of one population would?

For a merge of the rows of two clusters, let the j highest merges at and below it be undone. What
part of the cost of these rows is left then? Rows with clusters leave less than rows of one
population. `populations` draws such rows, `sparse_populations` does if rows are sparse, and the
trees of these show what chance leaves. With the mean m and the standard deviation s of its
logarithm over R draws, the logarithm y of what the rows leave has the p-value

    P(T > (m − y) / (s √(1 + 1/R))),    T with Student's distribution, R − 1 degrees of freedom,

the largest over all populations counts. The numbers j are 1, 2, … as long as one of the two
clusters stays undivided: several clusters that lie in a plane are noticed together, even if two
halves of them look like two halves of a cloud. The smallest p-value of these j, multiplied by their
number and by the number of splits tested (Bonferroni), is reported.

Where values are few, as counts often are, copies of one row are a cluster that nothing divides. So
both sides of a split need at least five distinct rows, effectively: 1/Σ p², where p are the shares
of the distinct rows. Of a cluster whose sibling has fewer, the next merge above is tested.

The test of a split by a Gaussian population is that of Liu, Hayes, Nobel & Marron (2008), carried
over to trees by Kimes, Liu, Hayes & Marron (2017).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import issparse

from fastrbhc._build import build
from fastrbhc._engine.traversal import leaf_spans
from fastrbhc._options import CheckedOptions
from fastrbhc.assessment.mixed_populations import mixed_populations
from fastrbhc.assessment.populations import populations
from fastrbhc.assessment.sparse_populations import sparse_populations
from fastrbhc.families import Family
from fastrbhc.tree.dendrogram import Dendrogram

# Numbers of merges that are undone.
_UNDONE = (1, 2, 3, 4, 6, 9)
# Trees drawn from each population, and of the rows themselves if they are too many for one.
DRAWS, _SAMPLES = 20, 5
# Distinct rows, effectively, on either side of a split.
FEWEST_DISTINCT = 5.0
# Values in a sample of rows; for a full covariance, values and products of two.
_VALUES, _FEWEST_ROWS, _MOST_ROWS = 100_000, 200, 1_000
# An entry of a sparse row takes as long as several values of a dense one.
_VALUES_PER_ENTRY = 8
# Differences of logarithms below this are not noticed, however little they vary by chance.
_SMALLEST_DEVIATION = 0.01
_NOTHING_LEFT = 1e-9


def split_p_values(
    tree: Dendrogram,
    X: Any,
    weights: NDArray[np.float64] | None,
    family: Family,
    nodes: NDArray[np.int64],
    options: CheckedOptions,
    rng: np.random.Generator,
    report: Callable[[int], None],
) -> NDArray[np.float64]:
    """The p-value of each of the given merges, adjusted for their number.

    ``report`` is called with the number of merges tested so far. Nodes are those of the tree,
    which has to be whole.
    """
    n = tree.n_leaves
    starts, sizes = leaf_spans(tree.merges, n)
    order = tree.leaves_order()
    most = _rows_in_a_sample(X, family)
    found = np.ones(nodes.size)

    def left_in(
        rows: Any, own: NDArray[np.float64] | None, undone: list[int]
    ) -> NDArray[np.float64]:
        rows = rows if issparse(rows) else np.ascontiguousarray(rows)
        built = build(rows, family, own, options)
        return _left(built.heights[::-1], undone)

    def weights_of(rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
        return None if weights is None else weights[rows]

    for place, node in enumerate(nodes.tolist()):
        report(place)
        within = (starts[n:] >= starts[node]) & (starts[n:] < starts[node] + sizes[node])
        inside = np.flatnonzero(within[: node - n + 1])[::-1]  # from the merge itself down
        heights, undone = tree.heights[inside], _numbers_undone(tree, node, inside)
        members = order[starts[node] : starts[node] + sizes[node]]
        if weights is not None:
            members = members[weights[members] > 0.0]
        if members.size <= undone[-1] or heights.sum() <= 0.0:
            continue
        sample = np.sort(rng.choice(members, min(most, members.size), replace=False))
        if members.size <= most:
            observed = _left(heights, undone)
        else:
            samples = [rng.choice(members, most, replace=False) for _ in range(_SAMPLES)]
            left = [left_in(X[rows], weights_of(rows), undone) for rows in samples]
            observed = np.mean(left, axis=0)
        own = weights_of(sample)
        p_values = np.zeros(len(undone))
        alike = sparse_populations if issparse(X) else populations
        if hasattr(family, "encode"):
            alike = mixed_populations
        for draw in alike(X[sample], own, family):
            chance = np.array([left_in(draw(rng), own, undone) for _ in range(DRAWS)])
            p_values = np.maximum(p_values, _p_values(observed, chance))
        found[place] = min(1.0, p_values.min() * len(undone) * nodes.size)
    report(nodes.size)
    return found


def _p_values(observed: NDArray[np.float64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of a value at most as large, by Student's distribution: chance is (R, j)."""
    deviation = np.maximum(chance.std(axis=0, ddof=1), _SMALLEST_DEVIATION)
    scores = (chance.mean(axis=0) - observed) / (deviation * np.sqrt(1.0 + 1.0 / len(chance)))
    p_values: NDArray[np.float64] = stats.t.sf(scores, len(chance) - 1)
    return p_values


def deciding_merges(
    tree: Dendrogram,
    nodes: NDArray[np.int64],
    points: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
) -> NDArray[np.int64]:
    """For each node, the first merge above that joins it with enough distinct rows; −1 for none.

    ``points`` has a number for every row, the same for equal rows.
    """
    n = tree.n_leaves
    starts, sizes = leaf_spans(tree.merges, n)
    order = tree.leaves_order()
    parents = np.full(n + len(tree.merges), -1)
    parents[tree.merges] = n + np.arange(len(tree.merges))[:, None]
    shares = np.ones(n) if weights is None else weights
    known: dict[int, bool] = {}

    def is_diverse(node: int) -> bool:
        if node not in known:
            rows = order[starts[node] : starts[node] + sizes[node]]
            masses = np.unique(points[rows], return_inverse=True)[1]
            totals = np.bincount(masses, shares[rows])
            known[node] = bool(
                np.square(totals.sum()) >= FEWEST_DISTINCT * np.square(totals).sum() > 0.0
            )
        return known[node]

    def decided(node: int) -> int:
        if not is_diverse(node):
            return -1
        while parents[node] >= 0:
            parent = int(parents[node])
            sibling = int(tree.merges[parent - n].sum()) - node
            if is_diverse(sibling):
                return parent
            node = parent
        return -1

    return np.array([decided(node) for node in nodes.tolist()])


def _rows_in_a_sample(X: Any, family: Family) -> int:
    n, n_features = X.shape
    if issparse(X):
        n_features = _VALUES_PER_ENTRY * (1 + X.nnz // n)
    values = n_features**2 if family.covariance == "full" else n_features
    return int(np.clip(_VALUES // values, _FEWEST_ROWS, _MOST_ROWS))


def _numbers_undone(tree: Dendrogram, node: int, inside: NDArray[np.int64]) -> list[int]:
    """How many merges may be undone so that one of the two parts of a node stays whole.

    ``inside`` are the merges of its subtree, the last one first.
    """
    parts = tree.merges[node - tree.n_leaves] - tree.n_leaves
    # Where the parts are divided in the order of undoing; single rows never are.
    places = [int(np.flatnonzero(inside == part)[0]) if part >= 0 else np.inf for part in parts]
    return [count for count in _UNDONE if count <= min(max(places), inside.size)]


def _left(heights: NDArray[np.float64], undone: list[int]) -> NDArray[np.float64]:
    """Logarithms of the shares of the cost that are left once so many merges are undone."""
    explained = np.cumsum(heights[: undone[-1]])[np.array(undone) - 1]
    total = max(float(heights.sum()), 1e-300)
    return np.log(np.maximum(1.0 - explained / total, _NOTHING_LEFT))
