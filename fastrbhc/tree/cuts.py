"""From a tree to labels: the merges that a cut undoes, and the numbers of its clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.math.radix_sort import stable_order
from fastrbhc._engine.traversal import appearances, grouped, merged_sums, roots_after
from fastrbhc._validation import check_count, whole_by, why_a_forest

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram


class Stem(NamedTuple):
    """A tree as cuts see it. Its leaves are rows, or groups of rows that no cut divides.

    Groups are in the order of their first rows.
    """

    merges: NDArray[np.int64]  # (m, 2)
    levels: NDArray[np.float64]  # (m,), at which merges are undone; never decreasing
    weights: NDArray[np.float64]  # (m,)
    highest: NDArray[np.float64]  # (m,), the largest height within
    n_leaves: int
    leaf_weights: NDArray[np.float64] | None = None  # (n_leaves,), or 1 each
    leaf_highest: NDArray[np.float64] | None = None  # (n_leaves,), or 0 each


class Condensed(NamedTuple):
    """The splits of a tree that leave enough rows on both sides."""

    stem: Stem
    groups: NDArray[np.int64]  # (n_leaves of the tree,): which leaf of the stem a row belongs to


# Numbers


def numbered(
    stem: Stem, clusters: NDArray[np.int64], n_clusters: int | None = None
) -> NDArray[np.int64]:
    """Labels of the leaves, each of which names its cluster by a node.

    The heaviest cluster is 0. Among equally heavy ones, that with the smaller largest height is
    first; if these agree as well, that with the earlier row. All cuts are numbered here.
    """
    most = stem.n_leaves if n_clusters is None else n_clusters
    nodes, numbers = appearances(clusters, int(clusters.max()) + 1, most)
    numbers[_in_order(stem, nodes, numbers)] = np.arange(nodes.size)
    return np.take(numbers, clusters)


def _in_order(
    stem: Stem, nodes: NDArray[np.int64], numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Clusters in the order of their labels, from the order of their first rows."""
    given, last = nodes, nodes[:0]
    if stem.leaf_weights is None:
        # Single rows are lighter than all others, and alike: they stay as they are.
        single = nodes < stem.n_leaves
        given, last = nodes[~single], nodes[single]
    # Nodes are numbered by level, so that ties are the exception.
    found = np.sort(given)
    levels, places = _of_nodes(stem, found, stem.leaf_highest, stem.highest, 0.0), numbers[found]
    lower, level = levels[:-1] < levels[1:], levels[:-1] == levels[1:]
    if not (lower | (level & (places[:-1] < places[1:]))).all():
        found = given[_stable(_of_nodes(stem, given, stem.leaf_highest, stem.highest, 0.0))]
    weights = _of_nodes(stem, found, stem.leaf_weights, stem.weights, 1.0)
    # As integers, bits of numbers that are not negative are in their order.
    lightness = np.iinfo(np.int64).max - (weights + 0.0).view(np.int64)
    return np.concatenate([found[stable_order(lightness.view(np.uint64))], last])


def _of_nodes(
    stem: Stem,
    nodes: NDArray[np.int64],
    leaves: NDArray[np.float64] | None,
    merges: NDArray[np.float64],
    default: float,
) -> NDArray[np.float64]:
    """Values of nodes, from those of all leaves and of all merges."""
    if nodes.size and nodes.min() >= stem.n_leaves:
        return merges[nodes - stem.n_leaves]
    values = np.full(nodes.size, default)
    merged = nodes >= stem.n_leaves
    values[merged] = merges[nodes[merged] - stem.n_leaves]
    if leaves is not None:
        values[~merged] = leaves[nodes[~merged]]
    return values


def _stable(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """A stable argsort; heights that are log odds may be negative."""
    if values.min(initial=0.0) < 0.0:
        return np.argsort(values, kind="stable")
    return stable_order(values)


# Cuts


def labels_after(stem: Stem, counts: Sequence[int]) -> NDArray[np.int64]:
    """Labels after each number of merges: one column each, (n_leaves, len(counts)).

    Rows are visited for the finest of these clusterings alone. The others are cuts of the small
    tree above it.
    """
    first = min(counts, default=len(stem.merges))
    roots = roots_after(stem.merges, stem.n_leaves, first)
    if len(counts) == 1:
        return numbered(stem, roots, stem.n_leaves - first)[:, None]
    n_nodes = stem.n_leaves + len(stem.merges)
    nodes, numbers = appearances(roots, n_nodes, stem.n_leaves - first)
    # The unions above are numbered on from the clusters, which are the leaves of the small tree.
    numbers[stem.n_leaves + first :] = nodes.size + np.arange(len(stem.merges) - first)
    crown = Stem(
        numbers[stem.merges[first:]],
        stem.levels[first:],
        stem.weights[first:],
        stem.highest[first:],
        nodes.size,
        _of_nodes(stem, nodes, stem.leaf_weights, stem.weights, 1.0),
        _of_nodes(stem, nodes, stem.leaf_highest, stem.highest, 0.0),
    )
    table = np.empty((nodes.size, len(counts)), np.int64)
    for column, count in enumerate(counts):
        table[:, column] = labels_after(crown, [count - first])[:, 0]
    return np.take(table, numbers[roots], axis=0)


def check_min_size(tree: Dendrogram, min_size: Any) -> int:
    """A smallest number of rows that all trees of a forest have."""
    size = check_count(min_size, "min_size", tree.n_leaves)
    if tree.n_trees > 1:
        sizes = np.bincount(roots_after(tree.merges, tree.n_leaves, len(tree.merges)))
        n_small = np.count_nonzero((sizes > 0) & (sizes < size))
        if n_small:
            raise ValueError(
                f"{n_small} of the {tree.n_trees} trees have fewer than min_size={size} rows, and "
                f"nothing to join: {why_a_forest(tree)}. Build it with {whole_by(tree)}"
            )
    return size


def condensed(stem: Stem, min_size: int) -> Condensed:
    """The tree without splits that leave fewer rows than that on one side.

    Such a crumb stays with the rows on the other side. Where these are divided further, it goes
    with the larger part, and of two equally large ones with the lower.
    """
    n, m = stem.n_leaves, len(stem.merges)
    sizes = np.append(np.ones(n), merged_sums(stem.merges, np.ones(n)))
    splits = np.flatnonzero(sizes[stem.merges].min(axis=1, initial=np.inf) >= min_size)
    n_groups = n - m + splits.size
    groups, merges, tops = grouped(stem.merges, n, sizes, splits)
    leaf_weights = np.bincount(groups, stem.leaf_weights, n_groups).astype(np.float64)
    highest = _of_nodes(stem, tops, stem.leaf_highest, stem.highest, 0.0)
    small_tree = Stem(
        merges,
        stem.levels[splits],
        merged_sums(merges, leaf_weights),
        highest[n_groups:],
        n_groups,
        leaf_weights,
        highest[:n_groups],
    )
    return Condensed(small_tree, groups)
