"""Certificates: the merges of a finished tree are replayed, and each of them is checked.

A certificate needs no second tree to compare with, so it also works for data with ties, where
several trees are correct. It raises AssertionError and names the merge at fault.
"""

from __future__ import annotations

import itertools

import numpy as np
from naive import dissimilarity_and_magnitude

RELATIVE = 1e-9  # of the dissimilarity
ABSOLUTE = 1e-13  # of the terms that the textbook formula subtracts from one another


class Replay:
    """The active clusters while the merges of a tree are repeated in their original order."""

    def __init__(self, tree, X, weights, family):
        self.tree, self.family = tree, family
        self.X = np.asarray(X, float)
        self.weights = np.ones(len(X)) if weights is None else np.asarray(weights, float)
        assert tree.n_leaves == len(X)
        assert sorted(tree.steps) == list(range(len(tree.merges)))
        self.alive = {leaf: [leaf] for leaf in range(tree.n_leaves)}
        self._known = {}

    def d(self, a, b):
        """d of two active nodes, and a bound of its error."""
        pair = min(a, b), max(a, b)
        if pair not in self._known:
            parts = [(self.X[m], self.weights[m]) for m in map(self.alive.get, pair)]
            value, magnitude = dissimilarity_and_magnitude(*parts[0], *parts[1], self.family)
            self._known[pair] = value, RELATIVE * abs(value) + ABSOLUTE * magnitude
        return self._known[pair]

    def __iter__(self):
        """Yield (a, b, d, slack) before each merge, whose recorded height is checked."""
        tree = self.tree
        for row in np.argsort(tree.steps):
            a, b = (int(node) for node in tree.merges[row])
            assert a in self.alive, f"merge {row} joins node {a}, which is not there"
            assert b in self.alive, f"merge {row} joins node {b}, which is not there"
            value, slack = self.d(a, b)
            height = tree.heights[row]
            assert height >= 0.0, f"merge {row} has height {height}"
            assert abs(height - value) <= slack, f"merge {row} has height {height}, not {value}"
            assert height < tree.threshold, f"merge {row} reaches the threshold"
            yield a, b, value, slack
            members = self.alive.pop(a) + self.alive.pop(b)
            weight = self.weights[members].sum()
            assert abs(tree.weights[row] - weight) <= 1e-12 * weight, f"merge {row} weighs wrongly"
            self.alive[tree.n_leaves + int(row)] = members
        assert len(self.alive) == tree.n_trees

    def pairs_with(self, a, b):
        """Every pair of another active cluster with a or b."""
        for x in self.alive:
            if x not in (a, b):
                yield x, a
                yield x, b


def certify_greedy(tree, X, weights, family):
    """Every merge joins the nearest of all pairs, and merging stopped correctly."""
    replay = Replay(tree, X, weights, family)
    for a, b, value, slack in replay:
        for u, v in itertools.combinations(replay.alive, 2):
            other, other_slack = replay.d(u, v)
            assert value <= other + slack + other_slack, (
                f"{a} and {b} were merged at {value}, while {u} and {v} were at {other}"
            )
    _certify_no_pair_below(replay, replay.alive)


def certify_on_graph(tree, X, weights, family, edges):
    """Every merge joins the nearest of all adjacent pairs, and merging stopped correctly."""
    replay = Replay(tree, X, weights, family)
    adjacent = {frozenset(map(int, edge)) for edge in edges if edge[0] != edge[1]}
    rows = iter(np.argsort(tree.steps))
    for a, b, value, slack in replay:
        assert frozenset((a, b)) in adjacent, f"{a} and {b} were merged, and are not adjacent"
        for u, v in adjacent:
            other, other_slack = replay.d(u, v)
            assert value <= other + slack + other_slack, (
                f"{a} and {b} were merged at {value}, while {u} and {v} were at {other}"
            )
        union = tree.n_leaves + int(next(rows))
        renamed = (frozenset(union if x in (a, b) else x for x in pair) for pair in adjacent)
        adjacent = {pair for pair in renamed if len(pair) == 2}
    for u, v in adjacent:
        value, slack = replay.d(u, v)
        assert value + slack >= tree.threshold, f"{u} and {v} were left apart at {value}"


def certify_nn_chain(tree, X, weights, family, reducible=False):
    """Every merge joins a reciprocal nearest pair, and merging stopped correctly.

    With a threshold, a cluster leaves at a time when no other is within the threshold. If d is not
    reducible, a later union may come within the threshold after all. So three things are checked:
    every root had such a time; merges skipped only clusters that may have left; and two roots that
    are near each other were not both active when the first of them left.
    """
    roots = set(range(tree.n_leaves + len(tree.merges))) - set(tree.merges.ravel().tolist())
    replay = Replay(tree, X, weights, family)
    left = {}  # root: the first time, as a number of merges, at which it may have left
    born = {node: 0 if node < tree.n_leaves else None for node in roots}
    moment = 0
    for a, b, value, slack in replay:
        _note_roots_free_to_leave(replay, roots, left, born, moment)
        moment += 1
        for x, end in replay.pairs_with(a, b):
            other, other_slack = replay.d(x, end)
            assert x in left or value <= other + slack + other_slack, (
                f"{a} and {b} were merged at {value}, while {x} was at {other} from {end}"
            )
    if reducible or np.isinf(tree.threshold):
        _certify_no_pair_below(replay, replay.alive)
        return
    _note_roots_free_to_leave(replay, roots, left, born, moment)
    assert roots == set(left), f"{sorted(roots - set(left))} were left with near neighbours"
    together = [
        (u, v)
        for u, v in itertools.combinations(roots, 2)
        if left[u] >= born[v] and left[v] >= born[u]
    ]
    for pair in together:
        _certify_no_pair_below(replay, pair)


def _note_roots_free_to_leave(replay, roots, left, born, moment):
    """Note the roots that have no neighbour below the threshold among those yet to be merged."""
    if np.isinf(replay.tree.threshold):
        return
    active = [x for x in replay.alive if x not in roots]
    for root in roots & replay.alive.keys():
        if born[root] is None:
            born[root] = moment
        if root not in left and all(
            sum(replay.d(root, x)) >= replay.tree.threshold for x in active
        ):
            left[root] = moment


def _certify_no_pair_below(replay, nodes):
    for u, v in itertools.combinations(nodes, 2):
        value, slack = replay.d(u, v)
        assert value + slack >= replay.tree.threshold, (
            f"{u} and {v} were left apart at {value}, below {replay.tree.threshold}"
        )
