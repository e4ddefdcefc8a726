"""``fastrbhc info``: what a saved tree remembers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastrbhc._interrupts import importing
from fastrbhc.cli.cut import add_tree_argument
from fastrbhc.cli.inputs import named_file
from fastrbhc.cli.labels import sizes_in_words
from fastrbhc.cli.outputs import print_json
from fastrbhc.cli.trees import read_tree

if TYPE_CHECKING:
    from fastrbhc import Dendrogram

_HEIGHTS_SHOWN = 5


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add this command to the parser."""
    command = add(
        "info",
        help="what a saved tree remembers",
        description="Say what a saved tree is made of: rows, family, heights, the threshold that "
        "was chosen, and whether it is the greedy tree.",
        epilog="Example: fastrbhc info tree.json",
    )
    add_tree_argument(command.add_argument)
    command.add_argument("--json", action="store_true", help="print it as one JSON object")
    command.set_defaults(run=run, quiet=False)


def run(arguments: argparse.Namespace) -> None:
    """Read the tree, and print what it remembers."""
    with importing():
        import fastrbhc.tree.dendrogram  # noqa: F401
    with named_file(arguments.tree) as path:
        saved = read_tree(path)
    facts = _facts(saved.name, saved.tree, saved.ids)
    if arguments.json:
        print_json(facts)
        return
    for line in _lines(facts, saved.tree):
        print(line)


def _facts(name: str, tree: Dendrogram, ids: list[str] | None) -> dict[str, Any]:
    import numpy as np

    from fastrbhc.tree.origin import described, is_greedy

    chosen, origin = tree.chosen, tree.origin
    cut = None if chosen is None and tree.n_trees == 1 else np.bincount(tree.cut())
    weights = tree.leaf_weights
    return {
        "file": name,
        "version": None if origin is None else origin.version,
        "n_rows": tree.n_leaves,
        "total_weight": float(tree.n_leaves if weights is None else weights.sum()),
        "n_trees": tree.n_trees,
        "named": ids is not None,
        "family": None if tree.family is None else described(tree.family),
        "n_columns": tree.n_features,
        "columns": None if tree.feature_names is None else list(tree.feature_names),
        "missing": "error" if origin is None else origin.missing,
        "connectivity": None if origin is None else origin.connectivity,
        "algorithm": None if origin is None else origin.algorithm,
        "is_greedy": is_greedy(origin),
        "n_inversions": tree.n_inversions,
        "heights": {
            "lowest": float(tree.heights.min()) if tree.heights.size else None,
            "median": float(np.median(tree.heights)) if tree.heights.size else None,
            "highest": np.sort(tree.heights)[::-1][:_HEIGHTS_SHOWN].tolist(),
        },
        "threshold": None if chosen is None else chosen.threshold,
        "threshold_by": None if chosen is None else chosen.by,
        "n_clusters": None if cut is None else len(cut),
        "sizes": None if cut is None else cut.tolist(),
    }


def _lines(facts: dict[str, Any], tree: Dendrogram) -> list[str]:
    from fastrbhc.families._description import described

    forest = "" if facts["n_trees"] == 1 else f", in {facts['n_trees']:,} trees"
    weighted = "" if tree.leaf_weights is None else f", of total weight {facts['total_weight']:g}"
    columns = "" if facts["n_columns"] is None else f", {facts['n_columns']:,} columns"
    lines = [f"{facts['file']}: {facts['n_rows']:,} rows{weighted}{columns}{forest}"]
    if tree.family is None:
        lines.append("family unknown")
    else:
        first, *blocks = described(tree.family, tree.feature_names)
        lines += [f"family {first}", *(f"  {block}" for block in blocks)]
    if tree.heights.size:
        heights = facts["heights"]
        highest = ", ".join(f"{height:.6g}" for height in heights["highest"])
        lines.append(
            f"heights from {heights['lowest']:.6g}, median {heights['median']:.6g}, the highest "
            f"{highest}"
        )
    if tree.chosen is not None:
        lines.append(f"lambda {tree.chosen}")
    if facts["sizes"] is not None:
        lines.append(sizes_in_words(facts["sizes"]))
    return [*lines, _verdict(facts)]


def _verdict(facts: dict[str, Any]) -> str:
    """Whether it is the greedy tree, and whether heights fall."""
    n = facts["n_inversions"]
    falling = "no merge is" if n == 0 else f"{n:,} merge{' is' if n == 1 else 's are'}"
    inverted = f"{falling} below one of its parts"
    if facts["is_greedy"] is None:
        return f"how its merges were chosen is unknown; {inverted}"
    graph = {"graph": " along a graph", "joined": " along a graph whose pieces were joined"}
    where = graph.get(facts["connectivity"], "")
    verdict = "the exact greedy tree" if facts["is_greedy"] else "perhaps not the greedy tree"
    return f"{verdict}{where} (algorithm {facts['algorithm']}); {inverted}"
