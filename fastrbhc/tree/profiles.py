"""What parts of a tree are like, column by column: numbers for pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._engine.clusters.build import clusters_of_groups
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._row_validation import check_rows, column_names
from fastrbhc.families import Family, geometry_of
from fastrbhc.families._missing import observe
from fastrbhc.tree.observed_columns import layout_of, observed_columns
from fastrbhc.tree.origin import family_for, missing_in
from fastrbhc.tree.telling_columns import Column, columns_of, contrasts

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram


class Profiles(NamedTuple):
    """Parts of the rows, and the columns that tell them apart."""

    means: NDArray[np.float64]  # (k, c), NaN where nothing was observed
    weights: NDArray[np.float64]  # (k,), of the rows
    columns: list[Column]  # of categories, one for each level
    n_columns: int  # before the telling ones were chosen


def profiles_of(
    tree: Dendrogram,
    X: ArrayLike,
    labels: NDArray[np.int64],
    max_columns: int,
    family: str | Family | None = None,
    names: Sequence[str] | None = None,
    clusters_of_rows: NDArray[np.int64] | None = None,
) -> Profiles:
    """Means of the parts with these labels, 0…k−1.

    Of more columns than ``max_columns``, those are taken that tell the clusters apart, or else the
    parts.
    """
    family = family_for(tree, family)
    rows = check_rows(X, family, min_rows=1, layout="auto", missing=missing_in(tree))
    n, n_columns = rows.shape
    if n != tree.n_leaves:
        raise ValueError(f"X has {n} rows and the tree has {tree.n_leaves}")
    if names is None:
        names = column_names(X)
    if names is None and tree.n_features == n_columns:
        names = tree.feature_names
    weights = tree.node_weights[:n]
    inside = labels >= 0
    k = int(labels.max()) + 1
    # Rows of no part are one more, which is left out in the end.
    groups, count = np.where(inside, labels, k), k + (not inside.all())
    observed = weighted(observe(family, rows), weights)
    geometry = geometry_of(family, observed)
    clusters = clusters_of_groups(geometry, observed, groups, count)
    columns = columns_of(family, n_columns, names)
    compared = clusters
    if clusters_of_rows is not None and clusters_of_rows.max(initial=0) > 0:
        found, numbers = np.unique(clusters_of_rows, return_inverse=True)
        compared = clusters_of_groups(geometry, observed, numbers, found.size)
    terms, used = np.zeros(len(columns)), np.zeros(len(columns), bool)
    for one in contrasts(family, compared, n_columns):
        terms[one.columns] += one.terms
        used[one.columns] |= (one.own != 0.0) | (one.rest != 0.0)
    kept = np.flatnonzero(used | ~np.array([column.is_spare for column in columns], bool))
    chosen = kept
    if kept.size > max_columns:
        chosen = np.sort(kept[np.argsort(-terms[kept], kind="stable")[:max_columns]])
    place = np.full(len(columns), -1)
    place[chosen] = np.arange(chosen.size)
    means = np.zeros((k, chosen.size))
    for one in contrasts(family, clusters, n_columns):
        if one.slot < k:
            wanted = place[one.columns] >= 0
            means[one.slot, place[one.columns[wanted]]] = one.own[wanted]
    if not clusters.segments.n_columns and any(
        gaps for _, gaps in layout_of(family, clusters, n_columns)
    ):
        seen = observed_columns(family, clusters, n_columns).means[:k]
        means[np.isnan(seen[:, chosen])] = np.nan
    totals = np.bincount(labels[inside], weights[inside], minlength=k).astype(np.float64)
    means[totals == 0.0] = np.nan
    return Profiles(means, totals, [columns[c] for c in chosen], kept.size)
