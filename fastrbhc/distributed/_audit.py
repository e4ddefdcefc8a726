"""The audit of a tree made cell by cell, with all rows in memory."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fastrbhc._build import audited
from fastrbhc._engine.agglomeration.merge_log import Merges
from fastrbhc._engine.clusters.duplicates import collapse
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._engine.geometry.contract import usual_backend
from fastrbhc._engine.planning.plan import plan
from fastrbhc._engine.traversal import common_labels
from fastrbhc._options import CheckedOptions
from fastrbhc.distributed._dividing import checked_rows
from fastrbhc.distributed._partitions import Source
from fastrbhc.families import geometry_of
from fastrbhc.families._missing import observe
from fastrbhc.reducibility.report import report_of
from fastrbhc.tree.dendrogram import Dendrogram


def audited_tree(tree: Dendrogram, source: Source, audit: Any, n_threads: int) -> Dendrogram:
    """The tree with its report on reducibility."""
    family = tree.family
    assert family is not None
    if family.reducible:
        return replace(tree, audit=report_of(tree, "proof", True))
    found = [checked_rows(part, family) for part in source.partitions if part.n_rows]
    X = np.concatenate([rows for rows, _ in found])
    weights = None if tree.leaf_weights is None else tree.leaf_weights
    rows = weighted(observe(family, X), weights)
    geometry = geometry_of(family, rows)
    points, point_of_row = collapse(rows)
    del X, found, rows
    # From merges of rows to those of points: which nodes are copies of one point?
    n, m = tree.n_leaves, points.shape[0]
    point_of_node = common_labels(tree.merges, point_of_row.astype(np.int64))
    in_steps = np.argsort(tree.steps)
    copies = point_of_node[n:][in_steps] >= 0  # the first of them all
    made = np.empty(n - 1, np.int64)
    made[in_steps] = np.arange(n - 1)
    number = np.where(point_of_node >= 0, point_of_node, 0)
    inner = point_of_node < 0
    number[inner] = m + made[np.flatnonzero(inner) - n] - np.count_nonzero(copies)
    merges = Merges(
        number[tree.merges[in_steps[~copies]]],
        np.ascontiguousarray(tree.heights[in_steps[~copies]]),
    )
    nodes = np.empty(m, np.int64)
    nodes[point_of_row] = np.arange(n)
    np.maximum.at(nodes, point_of_node[n:][in_steps[copies]], n + np.flatnonzero(copies))
    chosen = plan(
        False, m, points.width, "nn_chain", "auto", n_threads, usual_backend(geometry, points.width)
    )
    options = CheckedOptions("nn_chain", "auto", math.inf, n_threads, False, audit)
    return audited(
        tree, nodes, merges, points, point_of_row, geometry, chosen, options, lambda *_: None
    )
