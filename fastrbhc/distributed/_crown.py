"""The highest merges of a tree in stages, and the clusters below them.

The merges that a cut undoes are the last ones of each stage, because all stages have their merges
in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.merge_order import Ordering, joined_orderings, order_of
from fastrbhc._engine.traversal import UNNAMED, merged_minima, merged_sums, name_clusters
from fastrbhc.distributed._stage_files import Leaves, StageFiles


class Crown(NamedTuple):
    """The clusters of a cut, in the order of their labels, and the merges above them.

    Nodes are the clusters, 0 to k − 1, and then the merges.
    """

    weights: NDArray[np.float64]  # of the clusters
    merges: NDArray[np.int64]  # (k − 1, 2)
    heights: NDArray[np.float64]
    labels: NDArray[np.int64]  # of the clusters as they were named on the way down


class Undone(NamedTuple):
    """The merges that a cut undoes."""

    kept: list[int]  # the number of merges that are kept, by stage
    places: NDArray[np.int64]  # of those undone, stage by stage: the place of each among all


def undone_at(stages: Sequence[StageFiles], level: float) -> Undone:
    """The merges that are not below a level."""
    kept = [int(np.searchsorted(stage.read_levels(), level, side="left")) for stage in stages]
    tails = [_tail(stage, count) for stage, count in zip(stages, kept, strict=True)]
    return Undone(kept, _places(tails))


def last_undone(stages: Sequence[StageFiles], n_undone: int) -> Undone:
    """So many merges, the last ones of all."""
    counts = [max(stage.n_merges - n_undone, 0) for stage in stages]
    tails = [_tail(stage, count) for stage, count in zip(stages, counts, strict=True)]
    numbers = np.repeat(np.arange(len(stages)), [tail.levels.size for tail in tails])
    order = order_of(joined_orderings(tails))
    undone = np.bincount(numbers[order[order.size - n_undone :]], minlength=len(stages))
    kept = [stage.n_merges - int(count) for stage, count in zip(stages, undone, strict=True)]
    lasts = [
        tail.take(slice(tail.levels.size - int(count), None))
        for tail, count in zip(tails, undone, strict=True)
    ]
    return Undone(kept, _places(lasts))


def crown_of(
    stages: Sequence[StageFiles],
    undone: Undone,
    name_rows: Callable[[NDArray[np.int64], NDArray[np.int64]], None] | None = None,
) -> Crown:
    """The clusters of a cut and the tree above them.

    Parameters
    ----------
    stages : sequence of StageFiles
        The whole tree.
    undone : Undone
        The merges above the cut.
    name_rows : callable, optional
        Called with the rows of each cell, in ascending order, and the clusters that they belong to,
        as these are named on the way down. ``labels`` of the crown has their labels.
    """
    n_undone = undone.places.size
    firsts = np.cumsum([0, *(s.n_merges - k for s, k in zip(stages, undone.kept, strict=True))])
    names = [np.full(stage.n_left, UNNAMED) for stage in stages]
    undone_left = _undone_left(stages, undone.kept, firsts)
    pairs, heights = np.empty((n_undone, 2), np.int64), np.empty(n_undone)
    found: list[_Named] = []
    n_named = 0
    for number in range(len(stages) - 1, -1, -1):
        stage, kept = stages[number], undone.kept[number]
        is_top = number == len(stages) - 1
        if stage.of_rows and kept == stage.n_merges and name_rows is None and not is_top:
            continue
        leaves, children = stage.read_leaves(), stage.read_children()
        nodes = np.full(stage.n_leaves + stage.n_merges, UNNAMED)
        nodes[stage.read_left_nodes()] = names[number]
        above = _of_leaves(stage, leaves, undone_left)
        named, codes = name_clusters(
            children, kept, above, nodes, is_top, n_named, int(firsts[number])
        )
        places = undone.places[firsts[number] : firsts[number + 1]]
        pairs[places], heights[places] = codes, stage.read_heights()[kept:]
        if named.size:
            found.append(_named(stage, leaves, children, named))
            n_named += named.size
        if leaves.sources is not None and leaves.places is not None:
            for source in np.unique(leaves.sources):
                own = leaves.sources == source
                names[int(source)][leaves.places[own]] = nodes[: stage.n_leaves][own]
        elif name_rows is not None:
            name_rows(leaves.firsts, nodes[: stage.n_leaves])
    return _crown(found, pairs, heights, undone.places)


def _undone_left(
    stages: Sequence[StageFiles], kept: Sequence[int], firsts: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """For the clusters left by each stage the number of their own merge, −1 if it is kept."""
    found: list[NDArray[np.int64]] = []
    for stage, count, first in zip(stages, kept, firsts[:-1], strict=True):
        nodes = stage.read_left_nodes()
        place = nodes - stage.n_leaves - count
        own = np.where(place >= 0, first + place, -1)
        passed = nodes < stage.n_leaves
        if passed.any() and not stage.of_rows:
            own[passed] = _of_leaves(stage, stage.read_leaves(), found)[nodes[passed]]
        found.append(own)
    return found


def _of_leaves(
    stage: StageFiles, leaves: Leaves, of_left: Sequence[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """For the leaves of a stage what is known of the clusters left by others; −1 for rows."""
    values = np.full(stage.n_leaves, -1)
    if leaves.sources is not None and leaves.places is not None:
        for source in np.unique(leaves.sources):
            own = leaves.sources == source
            values[own] = of_left[int(source)][leaves.places[own]]
    return values


class _Named(NamedTuple):
    """Clusters that have been named in a stage."""

    weights: NDArray[np.float64]
    levels: NDArray[np.float64]
    firsts: NDArray[np.int64]


def _named(
    stage: StageFiles, leaves: Leaves, children: NDArray[np.int64], nodes: NDArray[np.int64]
) -> _Named:
    weights = np.concatenate([leaves.weights, merged_sums(children, leaves.weights)])
    firsts = np.concatenate([leaves.firsts, merged_minima(children, leaves.firsts)])
    levels = np.concatenate([leaves.levels, stage.read_levels()])
    return _Named(weights[nodes], levels[nodes], firsts[nodes])


def _crown(
    found: Sequence[_Named],
    pairs: NDArray[np.int64],
    heights: NDArray[np.float64],
    places: NDArray[np.int64],
) -> Crown:
    """The crown, with clusters numbered as all cuts are."""
    weights, levels, firsts = (np.concatenate(values) for values in zip(*found, strict=True))
    order = np.lexsort((firsts, levels, -weights))
    labels = np.empty(order.size, np.int64)
    labels[order] = np.arange(order.size)
    is_cluster = pairs >= 0
    merges = np.where(
        is_cluster,
        labels[np.where(is_cluster, pairs, 0)],
        order.size + places[np.where(is_cluster, 0, -2 - pairs)] if places.size else 0,
    )
    return Crown(weights[order], np.sort(merges, axis=1), heights, labels)


def _tail(stage: StageFiles, first: int) -> Ordering:
    """The ordering of the merges of a stage from one on."""
    if first == stage.n_merges:
        return Ordering(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    return stage.read_ordering().take(slice(first, None))


def _places(tails: Sequence[Ordering]) -> NDArray[np.int64]:
    """The place of each merge in the order of all of them."""
    order = order_of(joined_orderings(tails))
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return places
