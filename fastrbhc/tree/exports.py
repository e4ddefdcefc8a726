"""Trees in the formats of other programs: tables, graphs, Newick; `json_format` has JSON.

All functions take time and memory proportional to the number of leaves, and none recurses, so trees
of any depth can be exported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._engine.traversal import leaf_spans
from fastrbhc._optional import require
from fastrbhc._validation import check_names
from fastrbhc.tree._garbage import nothing_to_collect

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

# Newick labels that need no quotes; an unquoted underscore would be read as a blank.
_PLAIN = re.compile(r"[^\s()\[\]{}:;,'\"_]+")
# Characters that Newick has no way to write: all control characters but the tab, ends of lines
# and paragraphs, halves of surrogate pairs.
_UNWRITABLE = re.compile("[\0-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def to_pandas(tree: Dendrogram) -> Any:
    """The merges as a DataFrame; ``tree.to_pandas`` is the same.

    Parameters
    ----------
    tree : Dendrogram
        A tree or forest.

    Returns
    -------
    pandas.DataFrame
        One row per merge, indexed by its node, with the columns left, right (the two parts),
        height, level, weight, size (number of rows) and step (its position in the order in which
        merges were made).

    Examples
    --------
    >>> import fastrbhc
    >>> frame = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward").to_pandas()
    >>> frame.index.tolist(), frame["left"].tolist(), frame["size"].tolist()
    ([3, 4], [0, 2], [2, 3])
    """
    pd = require("pandas", "to_pandas")
    n, m = tree.n_leaves, len(tree.merges)
    _, sizes = leaf_spans(tree.merges, n)
    return pd.DataFrame(
        {
            "left": tree.merges[:, 0],
            "right": tree.merges[:, 1],
            "height": tree.heights,
            "level": tree.levels,
            "weight": tree.weights,
            "size": sizes[n:],
            "step": tree.steps if tree.steps.size == m else np.arange(m),
        },
        index=pd.RangeIndex(n, n + m, name="node"),
    )


def to_networkx(tree: Dendrogram, names: Sequence[Any] | None = None) -> Any:
    """The tree as a directed graph, from the root to the leaves; ``tree.to_networkx`` is the same.

    Parameters
    ----------
    tree : Dendrogram
        A tree or forest.
    names : sequence of length n_leaves, optional
        Names of the rows, stored as ``name`` of the leaves.

    Returns
    -------
    networkx.DiGraph
        Nodes are numbered as in ``tree.merges`` and have ``height`` (0 for leaves), ``weight`` and
        ``size``; edges have ``length``, the difference of the levels of their ends.

    Examples
    --------
    >>> import fastrbhc
    >>> graph = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward").to_networkx()
    >>> sorted(graph.edges)
    [(3, 0), (3, 1), (4, 2), (4, 3)]
    >>> graph.nodes[4]["size"]
    3
    """
    networkx = require("networkx", "to_networkx")
    texts = check_names(names, tree.n_leaves)
    n, m = tree.n_leaves, len(tree.merges)
    _, sizes = leaf_spans(tree.merges, n)
    heights = np.append(np.zeros(n), tree.heights)
    columns = (heights.tolist(), tree.node_weights.tolist(), sizes.tolist())
    parents = np.repeat(np.arange(n, n + m), 2).tolist()
    children = tree.merges.ravel()
    lengths = _lengths(tree)[children].tolist()
    graph = networkx.DiGraph()
    with nothing_to_collect():
        graph.add_nodes_from(
            (node, {"height": height, "weight": weight, "size": size})
            for node, (height, weight, size) in enumerate(zip(*columns, strict=True))
        )
        graph.add_edges_from(
            (parent, child, {"length": length})
            for parent, child, length in zip(parents, children.tolist(), lengths, strict=True)
        )
        if texts is not None:
            for leaf, name in enumerate(texts):
                graph.nodes[leaf]["name"] = name
    return graph


def to_newick(tree: Dendrogram, names: Sequence[Any] | None = None) -> str:
    """The tree in the Newick format; ``tree.to_newick`` is the same.

    Parameters
    ----------
    tree : Dendrogram
        A tree or forest.
    names : sequence of length n_leaves, optional
        Names of the rows; by default their numbers. Names with blanks, underscores or punctuation
        are put in quotes. Control characters, such as ends of lines, cannot be written.

    Returns
    -------
    str
        One tree, or one tree per line for a forest, each with a semicolon. The length of a branch
        is the difference of the levels of its ends, and never negative: inversions have length 0.

    Examples
    --------
    >>> import fastrbhc
    >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward")
    >>> tree.to_newick(["ant", "bee", "giant squid"])
    "('giant squid':6.75,(ant:0.25,bee:0.25):6.5);"
    """
    texts = check_names(names, tree.n_leaves)
    check_newick_names(texts)
    n, m = tree.n_leaves, len(tree.merges)
    starts, sizes = leaf_spans(tree.merges, n)
    order = np.empty(n, np.int64)
    order[starts[:n]] = np.arange(n)
    quoted = [str(leaf) for leaf in range(n)] if texts is None else [_quoted(t) for t in texts]
    lengths = _lengths(tree).tolist()
    # Before a leaf, open all nodes that begin with it; after a leaf, close all nodes that end with
    # it, from the smallest to the largest, which is their order.
    opening = np.bincount(starts[n:], minlength=n).tolist()
    last = starts[n:] + sizes[n:] - 1
    closing = (n + np.argsort(last, kind="stable")).tolist()
    to_close = np.bincount(last, minlength=n).tolist()
    is_root = np.ones(n + m, bool)
    is_root[tree.merges] = False
    ends_tree = is_root.tolist()
    parts: list[str] = []
    closed = 0
    for leaf, n_opening, n_closing in zip(order.tolist(), opening, to_close, strict=True):
        node = leaf
        parts.append("(" * n_opening + quoted[leaf])
        for _ in range(n_closing):
            parts.append(f":{lengths[node]})")
            node = closing[closed]
            closed += 1
        parts.append(";\n" if ends_tree[node] else f":{lengths[node]},")
    return "".join(parts).removesuffix("\n")


def check_newick_names(names: Sequence[str] | None) -> None:
    """Reject names with characters that Newick cannot write."""
    for row, name in enumerate(names or ()):
        found = _UNWRITABLE.search(name)
        if found is not None:
            raise ValueError(
                f"the name of row {row}, {name!r}, has the control character {found.group()!r}, "
                "which Newick cannot write: change the name, or write JSON"
            )


def _quoted(name: str) -> str:
    """A name in Newick syntax, quoted if necessary."""
    if _PLAIN.fullmatch(name):
        return name
    return "'" + name.replace("'", "''") + "'"


def _lengths(tree: Dendrogram) -> NDArray[np.float64]:
    """The length of the branch above every node; 0 above roots.

    Leaves are at level 0, or at the lowest merge if that is negative: heights may be log odds.
    """
    leaves = min(0.0, float(tree.levels[0])) if len(tree.merges) else 0.0
    own = np.append(np.full(tree.n_leaves, leaves), tree.levels)
    above = own.copy()
    above[tree.merges] = tree.levels[:, None]
    return above - own
