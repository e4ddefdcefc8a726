"""The tree as a page of its own, to look at in a browser; the page is in the folder ``page``."""

from __future__ import annotations

import html
import json
import math
import string
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrbhc._files import replacing
from fastrbhc._validation import check_choice, check_count, check_names
from fastrbhc.families._description import described
from fastrbhc.plotting._style import hues_on, plural
from fastrbhc.tree.crown import Crown, crown_of
from fastrbhc.tree.profiles import Profiles, profiles_of
from fastrbhc.tree.telling_columns import compared

if TYPE_CHECKING:
    from fastrbhc.families import Family
    from fastrbhc.tree.dendrogram import Dendrogram

# The scripts in this order.
_FILES = ("tree.html", "tree.css", "tree.js", "drawing.js", "actions.js")
SCALES = ("sqrt", "linear", "log")
# The backgrounds of the page, also in tree.css.
_PAPERS = {"light": "#ffffff", "dark": "#14171b"}
# Clusters at first, if nothing was chosen.
_CLUSTERS = 8
# More would be slow to draw, and cannot be told apart.
_MOST_LEAVES = 20_000
# Columns and labels that are named for each node.
_TOP, _TOP_LABELS, _MOST_COLUMNS, _MOST_LABELS = 6, 5, 200, 200


def to_html(
    tree: Dendrogram,
    path: str | Path | None = None,
    *,
    X: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    names: Sequence[Any] | None = None,
    threshold: float | None = None,
    n_clusters: int | None = None,
    max_leaves: int = 2_000,
    title: str | None = None,
    scale: str = "sqrt",
    feature_names: Sequence[str] | None = None,
    family: str | Family | None = None,
) -> str | None:
    """Write the tree as a page for browsers; ``tree.to_html`` is the same and describes it."""
    n = tree.n_leaves
    names = check_names(names, n)
    check_choice(scale, "scale", SCALES)
    if check_count(max_leaves, "max_leaves", _MOST_LEAVES) < 2:
        raise ValueError(f"max_leaves has to be at least 2, got {max_leaves}")
    crown = crown_of(tree, max_leaves)
    nodes = np.concatenate([crown.tips, n + crown.rows])
    numbers = np.full(n + len(tree.merges), -1)
    numbers[nodes] = np.arange(nodes.size)
    data: dict[str, Any] = _shape(tree, crown, nodes, numbers, names)
    data["cut"] = _first_cut(tree, crown, threshold, n_clusters, data["below"])
    data["scale"] = scale
    data["hues"] = {theme: hues_on(paper) for theme, paper in _PAPERS.items()}
    parts = crown.labels(n)
    if X is not None:
        profiles = profiles_of(tree, X, parts, _MOST_COLUMNS, family, feature_names)
        data["more"], data["less"] = _differences(profiles, data["pairs"])
    if labels is not None:
        data["labels"] = _shares(labels, parts, len(crown.tips), data["pairs"], n)
    title = f"Tree of {plural(n, 'row')}" if title is None else str(title)
    data["summary"] = _summary(tree, crown)
    page = files("fastrbhc.plotting").joinpath("page")
    read = {name: page.joinpath(name).read_text(encoding="utf-8") for name in _FILES}
    # Within a script nothing may look like the end of it, nor like a comment.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    whole = string.Template(read["tree.html"]).substitute(
        title=html.escape(title),
        style=read["tree.css"],
        script="\n".join(read[name] for name in _FILES if name.endswith(".js")),
        data=text.replace("<", "\\u003c"),
    )
    if path is None:
        return whole
    with replacing(path) as file:
        file.write(whole)
    return None


def _shape(
    tree: Dendrogram,
    crown: Crown,
    nodes: NDArray[np.int64],
    numbers: NDArray[np.int64],
    names: Sequence[str] | None,
) -> dict[str, Any]:
    """The nodes of the page: first the tips, from left to right, then the merges."""
    n, levels = tree.n_leaves, tree.levels
    merges = nodes >= n
    rows = np.where(merges, nodes - n, 0)
    heights, raised = np.zeros(nodes.size), np.zeros(nodes.size)
    heights[merges], raised[merges] = tree.heights[rows[merges]], levels[rows[merges]]
    hidden = np.ones(len(tree.merges), bool)
    hidden[crown.rows] = False
    # Merges of trees that are not drawn have no say.
    hidden &= _is_drawn(tree, crown)
    firsts = _first_rows(tree)[nodes]
    weights = tree.node_weights[nodes]
    return {
        "rows": n,
        "threshold": tree.threshold if math.isfinite(tree.threshold) else None,
        "undrawn": tree.n_trees - len(crown.roots),
        "below": float(levels[hidden].max()) if hidden.any() else None,
        "pairs": numbers[tree.merges[crown.rows]].tolist(),
        "node": nodes.tolist(),
        "row": firsts.tolist(),
        "size": crown.sizes[nodes].tolist(),
        "weight": weights.tolist(),
        "weighted": tree.leaf_weights is not None,
        "height": heights.tolist(),
        "level": raised.tolist(),
        "name": [
            None if is_merge else str(node) if names is None else names[node]
            for node, is_merge in zip(nodes.tolist(), merges.tolist(), strict=True)
        ],
    }


def _is_drawn(tree: Dendrogram, crown: Crown) -> NDArray[np.bool_]:
    """Whether each merge belongs to a tree that is drawn."""
    starts = crown.starts[tree.n_leaves :]
    first = np.sort(crown.starts[crown.roots])
    roots = crown.roots[np.argsort(crown.starts[crown.roots])]
    before = np.searchsorted(first, starts, side="right") - 1
    inside: NDArray[np.bool_] = (before >= 0) & (starts < (first + crown.sizes[roots])[before])
    return inside


def _first_rows(tree: Dendrogram) -> NDArray[np.int64]:
    """The smallest row of every node."""
    from fastrbhc._engine.traversal import merged_minima

    rows = np.arange(tree.n_leaves)
    return np.concatenate([rows, merged_minima(tree.merges, rows)])


def _first_cut(
    tree: Dendrogram,
    crown: Crown,
    threshold: float | None,
    n_clusters: int | None,
    below: float | None,
) -> dict[str, Any]:
    """Where the line is at first: as given, or chosen for the tree, or at a few clusters."""
    threshold, n_clusters = tree.cut_or_chosen(threshold, n_clusters)
    if threshold is not None or n_clusters is not None:
        k = int(tree.cut(threshold=threshold, n_clusters=n_clusters).max()) + 1
        k -= tree.n_trees - len(crown.roots)
        if threshold is not None and math.isfinite(threshold) and threshold > (below or -math.inf):
            return {"lambda": float(threshold), "count": k}
        return {"lambda": None, "count": max(1, min(k, len(crown.tips)))}
    if tree.n_trees > 1 and math.isfinite(tree.threshold):
        return {"lambda": tree.threshold, "count": len(crown.roots)}
    return {"lambda": None, "count": min(_CLUSTERS, len(crown.tips))}


def _summary(tree: Dendrogram, crown: Crown) -> str:
    """What the tree is, in a line."""
    parts = [plural(tree.n_leaves, "row")]
    if tree.n_trees > 1:
        trees = f"the {len(crown.roots):,} largest of {tree.n_trees:,} trees"
        trees += ", among which clusters are numbered"
        parts.append(trees if len(crown.roots) < tree.n_trees else f"{tree.n_trees:,} trees")
    if len(crown.rows) < len(tree.merges):
        parts.append(f"the highest {len(crown.rows):,} of {len(tree.merges):,} merges")
    if tree.n_inversions:
        parts.append(plural(tree.n_inversions, "inversion"))
    if tree.family is not None:
        parts.append(described(tree.family, tree.feature_names)[0])
    return ", ".join(parts)


def _sums_of_merges(tips: NDArray[Any], pairs: list[list[int]]) -> NDArray[Any]:
    """Values of the tips, and their sums below each merge."""
    sums = np.concatenate([tips, np.zeros((len(pairs), *tips.shape[1:]), tips.dtype)])
    for merge, (a, b) in enumerate(pairs, start=len(tips)):
        sums[merge] = sums[a] + sums[b]
    return sums


def _differences(profiles: Profiles, pairs: list[list[int]]) -> tuple[list[str], list[str]]:
    """For each node the columns of which it has more, and less, than all other rows."""
    known = ~np.isnan(profiles.means)
    own = np.where(known, profiles.weights[:, None], 0.0)
    weights = _sums_of_merges(own, pairs)
    sums = _sums_of_merges(own * np.nan_to_num(profiles.means), pairs)
    k = len(profiles.means)
    total, overall = weights[:k].sum(axis=0), sums[:k].sum(axis=0)
    with np.errstate(all="ignore"):
        means, rest = sums / weights, (overall - sums) / (total - weights)
        centre = overall / total
        spread = np.sqrt((own * (np.nan_to_num(profiles.means) - centre) ** 2).sum(axis=0) / total)
        apart = np.nan_to_num((means - rest) / spread, nan=0.0, posinf=0.0, neginf=0.0)
    more, less = [], []
    for node in range(len(weights)):
        order = np.argsort(-np.abs(apart[node]), kind="stable")[:_TOP]
        texts: tuple[list[str], list[str]] = ([], [])
        for column in order.tolist():
            if abs(apart[node, column]) < 1e-9:
                continue
            label, by_ratio, _ = profiles.columns[column]
            # What is left of a difference after rounding is nothing.
            others = max(rest[node, column], 0.0) if by_ratio else rest[node, column]
            words = f"{label} {compared(by_ratio, means[node, column], others)}"
            texts[int(apart[node, column] < 0.0)].append(words)
        more.append(", ".join(texts[0]))
        less.append(", ".join(texts[1]))
    return more, less


def _shares(
    labels: ArrayLike, parts: NDArray[np.int64], n_tips: int, pairs: list[list[int]], n: int
) -> list[str]:
    """The most frequent labels of every node, with their numbers of rows."""
    given = np.asarray(labels)
    if given.shape != (n,):
        raise ValueError(f"labels have shape {given.shape}, expected ({n},): one for every row")
    values, codes, sizes = np.unique(given.astype(str), return_inverse=True, return_counts=True)
    if values.size > _MOST_LABELS:  # a table of all would not fit
        kept = np.sort(np.argsort(-sizes, kind="stable")[:_MOST_LABELS])
        place = np.full(values.size, _MOST_LABELS)
        place[kept] = np.arange(_MOST_LABELS)
        values, codes = np.append(values[kept], "others"), place[codes]
    counts = np.zeros((n_tips, values.size), np.int64)
    np.add.at(counts, (parts[parts >= 0], codes[parts >= 0]), 1)
    texts = []
    for row in _sums_of_merges(counts, pairs):
        order = np.argsort(-row, kind="stable")[:_TOP_LABELS]
        words = [f"{values[label]} {row[label]:,}" for label in order.tolist() if row[label]]
        left = int(np.count_nonzero(row)) - len(words)
        texts.append(", ".join(words) + (f", {left:,} more" if left else ""))
    return texts
