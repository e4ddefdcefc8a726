"""From a tree and its rows to a report on how good it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from fastrbhc._build import build
from fastrbhc._engine.clusters.build import clusters_of_groups
from fastrbhc._engine.clusters.comparison import separations
from fastrbhc._engine.clusters.observations import weighted
from fastrbhc._engine.clusters.principal_axes import rotate_to_principal_axes
from fastrbhc._near_rows import require_near_rows
from fastrbhc._options import APPROXIMATE, CheckedOptions
from fastrbhc._validation import check_count, check_threads, whole_by
from fastrbhc.approximation.replay import nearest_at
from fastrbhc.approximation.report import ApproximationReport, CutComparison
from fastrbhc.families import Family, geometry_of
from fastrbhc.tree.origin import refuse_graph

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

# Cuts that are compared by default, and the fewest rows of the sample per cluster of such a cut.
_NUMBERS, _ROWS_PER_CLUSTER = (10, 100, 1_000), 20
# Values of d are accurate to about this share.
_ACCURACY = 1e-10


def checked_examination(
    tree: Dendrogram,
    X: Any,
    family: Family,
    *,
    n_merges: int,
    n_rows: int,
    n_clusters: Any,
    random_state: Any,
    n_jobs: int | None,
) -> ApproximationReport:
    """The report on a tree of rows that have been checked, after checks of everything else."""
    refuse_graph(tree, "a comparison with exact trees")
    if tree.n_trees > 1:
        raise ValueError(
            f"this is a forest of {tree.n_trees:,} trees, and the report is on whole trees: build "
            f"it with {whole_by(tree)}"
        )
    if X.shape[0] != tree.n_leaves:
        raise ValueError(f"X has {X.shape[0]} rows and the tree has {tree.n_leaves}")
    if tree.leaf_weights is not None and not tree.leaf_weights.all():
        raise ValueError(
            "some rows of the tree have the weight 0, and no d to others: build it without them"
        )
    check_count(n_merges, "n_merges")
    if check_count(n_rows, "n_rows") < 2:
        raise ValueError("n_rows has to be at least 2: a tree needs two rows")
    require_near_rows()
    numbers = None
    if n_clusters is not None:
        numbers = [check_count(k, "n_clusters", tree.n_leaves) for k in np.atleast_1d(n_clusters)]
    seed = check_random_state(random_state).randint(2**31 - 1)
    return examine(
        tree,
        X,
        family,
        n_merges=n_merges,
        n_rows=n_rows,
        n_clusters=numbers,
        rng=np.random.default_rng(seed),
        n_threads=check_threads(n_jobs),
    )


def examine(
    tree: Dendrogram,
    X: Any,
    family: Family,
    *,
    n_merges: int,
    n_rows: int,
    n_clusters: Sequence[int] | None,
    rng: np.random.Generator,
    n_threads: int,
) -> ApproximationReport:
    """The report on a whole tree of rows that have been checked."""
    rows = weighted(family.observe(X), tree.leaf_weights)
    geometry = geometry_of(family, rows)
    # Repeated rows merge at 0: no tree can do better.
    places = np.flatnonzero(tree.heights > 0.0)
    sample = np.sort(rng.choice(places, min(n_merges, places.size), replace=False))
    points = rotate_to_principal_axes(geometry, rows)
    heights, smallest = nearest_at(geometry, points, tree.merges, sample, n_threads)
    lost = heights - smallest
    return ApproximationReport(
        approximate=tree.approximate,
        n_leaves=tree.n_leaves,
        merges=sample.size,
        nearest=int(np.count_nonzero(lost <= _ACCURACY * heights)),
        excess=float(lost.sum() / smallest.sum()) if smallest.sum() > 0.0 else 0.0,
        **_compared(tree, X, family, n_rows, n_clusters, rng, n_threads),
    )


def _compared(
    tree: Dendrogram,
    X: Any,
    family: Family,
    n_rows: int,
    n_clusters: Sequence[int] | None,
    rng: np.random.Generator,
    n_threads: int,
) -> dict[str, Any]:
    """Cuts of the tree beside those of the exact tree of some rows."""
    n = tree.n_leaves
    chosen = np.arange(n) if n <= n_rows else np.sort(rng.choice(n, n_rows, replace=False))
    if n_clusters is None:
        numbers = [k for k in _NUMBERS if k * _ROWS_PER_CLUSTER <= chosen.size] or [2]
    else:
        numbers = list(n_clusters)
    weights = None if tree.leaf_weights is None else tree.leaf_weights[chosen]
    rows = X[chosen]
    options = CheckedOptions("auto", "auto", np.inf, n_threads, False, False)
    exact = build(rows, family, weights, options)
    again = build(
        rows, family, weights, CheckedOptions("auto", APPROXIMATE, np.inf, n_threads, False, False)
    )
    points = weighted(family.observe(rows), weights)
    geometry = geometry_of(family, points)
    total = float(exact.heights.sum())
    cuts = []
    for k in numbers:
        restricted = tree.cut(n_clusters=k)[chosen]
        present, labels = np.unique(restricted, return_inverse=True)
        reference = exact.cut(n_clusters=present.size)
        nearby = again.cut(n_clusters=present.size)
        cost, least, other = (
            _cost(geometry, points, own, present.size, total) for own in (labels, reference, nearby)
        )
        agreement = float(adjusted_rand_score(labels, reference))
        cuts.append(CutComparison(int(k), int(present.size), cost, least, other, agreement))
    return {"n_rows": int(chosen.size), "cuts": tuple(cuts)}


def _cost(geometry: Any, points: Any, labels: NDArray[np.int64], k: int, total: float) -> float:
    """The cost of merging rows into clusters: that of all, less that of joining the clusters."""
    clusters = clusters_of_groups(geometry, points, labels.astype(np.int64), k)
    return total - separations(geometry, clusters)[1]
