"""From the stages of a tree to a `Dendrogram` in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.agglomeration.merge_order import joined_orderings, order_of
from fastrbhc._engine.traversal import in_order, merged_sums
from fastrbhc.distributed._stage_files import StageFiles
from fastrbhc.tree.dendrogram import Dendrogram
from fastrbhc.tree.origin import Origin


def dendrogram_of_stages(stages: Sequence[StageFiles], n_rows: int, origin: Origin) -> Dendrogram:
    """The tree with all its merges in order."""
    n_merges = sum(stage.n_merges for stage in stages)
    children = np.empty((n_merges, 2), np.int64)
    leaf_weights = np.ones(n_rows)
    left: dict[int, NDArray[np.int64]] = {}
    first = 0
    for stage in stages:
        nodes = _leaves(stage, left, leaf_weights)
        nodes = np.concatenate([nodes, n_rows + first + np.arange(stage.n_merges)])
        children[first : first + stage.n_merges] = nodes[stage.read_children()]
        left[stage.number] = nodes[stage.read_left_nodes()]
        first += stage.n_merges
    ordering = joined_orderings([stage.read_ordering() for stage in stages])
    order = order_of(ordering)
    reducible = origin.family is not None and origin.family.reducible
    steps = np.arange(n_merges) if reducible else _steps(stages, ordering.depths < 0)[order]
    del ordering
    merges = in_order(children, order, n_rows)
    del children
    heights = np.concatenate([stage.read_heights() for stage in stages])[order]
    return Dendrogram(
        merges,
        heights,
        merged_sums(merges, leaf_weights),
        n_rows,
        np.inf,
        steps,
        leaf_weights=None if (leaf_weights == 1.0).all() else leaf_weights,
        origin=origin,
    )


def _leaves(
    stage: StageFiles, left: dict[int, NDArray[np.int64]], leaf_weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The nodes that a stage begins with; the weights of rows are put where they belong."""
    leaves = stage.read_leaves()
    if leaves.sources is None or leaves.places is None:
        leaf_weights[leaves.firsts] = leaves.weights
        return leaves.firsts
    nodes = np.empty(stage.n_leaves, np.int64)
    for source in np.unique(leaves.sources):
        own = leaves.sources == source
        nodes[own] = left[int(source)][leaves.places[own]]
    return nodes


def _steps(stages: Sequence[StageFiles], of_copies: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The position of each merge if the stages are made one after another, but copies first."""
    firsts = np.cumsum([0, *(stage.n_merges for stage in stages)])
    made = np.concatenate(
        [first + stage.read_steps() for first, stage in zip(firsts[:-1], stages, strict=True)]
    )
    merges = np.empty_like(made)
    merges[made] = np.arange(made.size)
    merges = merges[np.argsort(~of_copies[merges], kind="stable")]
    steps = np.empty_like(made)
    steps[merges] = np.arange(made.size)
    return steps
