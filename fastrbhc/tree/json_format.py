"""Trees as JSON, written and read; everything that is read is checked.

Lists are flat, so trees of any depth take no recursion.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastrbhc._containers import memory
from fastrbhc._engine.traversal import subtree_maxima
from fastrbhc._options import MISSING_NAMES
from fastrbhc._stamps import version, warn_of
from fastrbhc._validation import check_names
from fastrbhc.tree._garbage import nothing_to_collect
from fastrbhc.tree.origin import (
    ALGORITHMS,
    CONNECTIVITIES,
    WAYS,
    Chosen,
    Origin,
    described,
    family_described,
    missing_in,
)

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

_FORMAT, _VERSION = "fastrbhc.dendrogram", 2
# Files of version 1 hold the tree alone.
_READ = (1, 2)
# The items of a tree that are arrays, or null.
ARRAYS = ("children", "heights", "weights", "steps", "leaf_weights")
# Bytes that a leaf takes in a tree and a cut.
_PER_LEAF = 64


def to_json(tree: Dendrogram, names: Sequence[Any] | None = None) -> str:
    """The tree as JSON; ``tree.to_json`` is the same.

    Parameters
    ----------
    tree : Dendrogram
        A tree or forest.
    names : sequence of length n_leaves, optional
        Names of the rows, to include in the output.

    Returns
    -------
    str
        One object of flat lists, without nesting:

        ``format``, ``version``
            "fastrbhc.dendrogram" and 2, which changes when a reader would have to.
        ``package_version``
            The version of fastrbhc that wrote it.
        ``n_leaves``
            Number of rows n. Leaves are the nodes 0…n−1.
        ``threshold``
            λ at which merging was stopped, null for a whole tree.
        ``children``
            Pairs of nodes; the i-th pair is joined into node n + i. Children come before parents.
        ``heights``, ``weights``, ``steps``
            One value per merge, as in `Dendrogram`; ``steps`` is empty if unknown.
        ``leaf_weights``
            One value per row; null if all are 1.
        ``family``
            An object with the ``name`` and the ``parameters`` of the family, the latter as an
            object. Null if it is unknown. An infinite parameter is the text "inf".
        ``n_features``, ``feature_names``
            Number of columns, and their names as a list; null if unknown.
        ``chosen``
            An object with the λ that was chosen (``threshold``, null if infinite), how (``by``),
            and ``n_clusters`` if that was given, else null. Null if none was chosen.
        ``missing``
            "ignore" if missing cells of the rows were ignored; otherwise there is no such item.
        ``algorithm``
            How the merges were chosen: "greedy", "levels", "nn_chain" or "cells"; there is no such
            item if that is unknown.
        ``connectivity``
            "graph" if only clusters merged that were adjacent in a graph, "joined" if the pieces of
            the graph were joined afterwards; otherwise there is no such item.
        ``approximate``
            true if only near neighbours were compared until few clusters were left; otherwise there
            is no such item.
        ``names``
            One name per row, if given.

    See Also
    --------
    from_json : reads it.

    Examples
    --------
    >>> import json
    >>> import fastrbhc
    >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward")
    >>> json.loads(tree.to_json())["children"]
    [[0, 1], [2, 3]]
    """
    texts = check_names(names, tree.n_leaves)
    with nothing_to_collect():
        content = content_of(tree)
        lists = {key: content[key].tolist() for key in ARRAYS if content[key] is not None}
        content |= lists
        if texts is not None:
            content["names"] = texts
        return json.dumps(content, allow_nan=False)


def content_of(tree: Dendrogram) -> dict[str, Any]:
    """The items of the JSON of a tree; arrays as they are, and all others as in JSON."""
    family, columns, chosen = tree.family, tree.feature_names, tree.chosen
    missing = missing_in(tree)
    algorithm = None if tree.origin is None else tree.origin.algorithm
    connectivity = None if tree.origin is None else tree.origin.connectivity
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "package_version": version(),
        "n_leaves": tree.n_leaves,
        "threshold": _finite(tree.threshold),
        "family": None if family is None else described(family),
        "n_features": tree.n_features,
        "feature_names": None if columns is None else list(columns),
        "chosen": None if chosen is None else _of_chosen(chosen),
        "children": tree.merges,
        "heights": tree.heights,
        "weights": tree.weights,
        "steps": tree.steps,
        "leaf_weights": tree.leaf_weights,
        **({} if missing == "error" else {"missing": missing}),
        **({} if algorithm is None else {"algorithm": algorithm}),
        **({} if connectivity is None else {"connectivity": connectivity}),
        **({"approximate": True} if tree.approximate else {}),
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _of_chosen(chosen: Chosen) -> dict[str, Any]:
    return {**asdict(chosen), "threshold": _finite(chosen.threshold)}


def from_json(text: str | bytes) -> Dendrogram:
    """A tree written by `to_json`; ``Dendrogram.from_json`` is the same.

    Parameters
    ----------
    text : str or bytes
        The output of ``to_json``. Names of rows are for other readers and are ignored.

    Returns
    -------
    Dendrogram
        The same tree, to the bit, and what it remembers. Trees from files of version 1 remember
        nothing.

    Raises
    ------
    ValueError
        The text is not a tree: everything in it is checked.

    Warns
    -----
    UserWarning
        Another major version of fastrbhc wrote it, or its family is not declared in this process.

    Examples
    --------
    >>> import fastrbhc
    >>> tree = fastrbhc.linkage([[0.0], [1.0], [5.0]], "ward")
    >>> fastrbhc.Dendrogram.from_json(tree.to_json())
    <Dendrogram: 3 leaves, 2 merges, heights up to 6.75>
    """
    with nothing_to_collect():
        try:
            content = json.loads(text)
        except RecursionError:
            raise ValueError("this is not a tree: it is nested too deeply") from None
    return from_content(content)


def from_content(content: Any) -> Dendrogram:
    """The tree of the items of its JSON, which are checked; arrays may be lists."""
    from fastrbhc.tree.dendrogram import Dendrogram

    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"this is not a tree: its 'format' is not {_FORMAT!r}")
    if type(content.get("version")) is not int or content["version"] not in _READ:
        raise ValueError(
            f"this tree has version {content.get('version')!r} of the format; only versions up to "
            f"{_VERSION} are supported"
        )
    warn_of(content.get("package_version"), "tree")
    n, threshold = _header(content)
    children = _column(content, "children", whole=True).reshape(-1, 2)
    heights, weights = _column(content, "heights"), _column(content, "weights")
    steps = _column(content, "steps", whole=True)
    leaf_weights = None
    if content.get("leaf_weights", 0) is not None:
        leaf_weights = _column(content, "leaf_weights")
    _check_merges(n, children, heights, weights, steps, leaf_weights)
    connectivity = content.get("connectivity")
    if connectivity is not None and connectivity not in CONNECTIVITIES:
        raise ValueError(f"this tree has the connectivity {connectivity!r}, which is not known")
    if threshold == np.inf and len(children) != n - 1 and connectivity != "graph":
        raise ValueError(
            f"this tree has no threshold, {n} leaves and {len(children)} merges: {n - 1} are needed"
        )
    tree = Dendrogram(
        children, heights, weights, n, threshold, steps=steps, leaf_weights=leaf_weights
    )
    if content["version"] == 1:
        return tree
    return replace(tree, origin=_origin(content), chosen=_chosen(content, tree))


def _origin(content: dict[str, Any]) -> Origin | None:
    """What the tree was built from; None if nothing of it is known."""
    family, n, names = (_item(content, key) for key in ("family", "n_features", "feature_names"))
    written = _item(content, "package_version")
    if not isinstance(written, str):
        raise ValueError(f"this tree has the package_version {written!r}: a text was expected")
    if n is not None and (type(n) is not int or n < 1):
        raise ValueError(f"this tree has n_features {n!r}: a positive whole number was expected")
    if names is not None:
        if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise ValueError("this tree has feature_names that are not a list of texts")
        if len(names) != n:
            raise ValueError(f"this tree has {n} columns and {len(names)} feature_names")
        names = tuple(names)
    known = None if family is None else family_described(family)
    if family is None and n is None:
        return None
    missing = content.get("missing", "error")
    if missing not in MISSING_NAMES:
        raise ValueError(f"this tree has missing {missing!r}, which is not known")
    algorithm = content.get("algorithm")
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise ValueError(f"this tree has the algorithm {algorithm!r}, which is not known")
    connectivity = content.get("connectivity")
    approximate = content.get("approximate", False)
    if not isinstance(approximate, bool):
        raise ValueError(f"this tree has approximate {approximate!r}: true or false was expected")
    return Origin(known, n, names, written, missing, algorithm, connectivity, approximate)


def _chosen(content: dict[str, Any], tree: Dendrogram) -> Chosen | None:
    """The λ that was chosen, at which the tree can be cut."""
    given = _item(content, "chosen")
    if given is None:
        return None
    if not (isinstance(given, dict) and set(given) == {"threshold", "by", "n_clusters"}):
        raise ValueError("this tree has a 'chosen' that is not a threshold, by and n_clusters")
    by, k = given["by"], given["n_clusters"]
    if by not in WAYS:
        raise ValueError(f"this tree has a threshold chosen by {by!r}, which is not known")
    level = _level(given["threshold"])
    if (k is None) != (by != "n_clusters"):
        raise ValueError(f"this tree has a threshold chosen by {by!r} and n_clusters {k!r}")
    if k is None and level > tree.threshold:
        raise ValueError(
            f"this tree was built up to {tree.threshold:g}, below the chosen {level:g}"
        )
    if k is not None and (type(k) is not int or not tree.n_trees <= k <= tree.n_leaves):
        raise ValueError(f"this tree cannot be cut into the chosen {k!r} clusters")
    return Chosen(level, by, k)


def _item(content: dict[str, Any], key: str) -> Any:
    if key not in content:
        raise ValueError(f"this tree has no {key!r}")
    return content[key]


def _header(content: dict[str, Any]) -> tuple[int, float]:
    """The number of leaves and the threshold."""
    n, threshold = _item(content, "n_leaves"), _item(content, "threshold")
    if type(n) is not int or n < 1:
        raise ValueError(f"this tree has n_leaves {n!r}: a positive whole number was expected")
    # A forest of leaves alone is a short text, whatever number it states.
    if n * _PER_LEAF > memory():
        raise ValueError(f"this tree states {n:,} leaves, more than this machine's memory can hold")
    return n, _level(threshold)


def _level(threshold: Any) -> float:
    """A threshold; null stands for infinity."""
    if threshold is None:
        return np.inf
    if type(threshold) not in (int, float) or not threshold >= 0.0:
        raise ValueError(f"this tree has the threshold {threshold!r}: a number was expected")
    return float(threshold) if threshold < 1e308 else np.inf


def _column(content: dict[str, Any], key: str, *, whole: bool = False) -> NDArray[Any]:
    """The numbers of one list, whose length is not checked."""
    given = _item(content, key)
    try:
        values = np.array(given)
    except (ValueError, RecursionError):
        raise ValueError(f"this tree has {key!r} that are not one list of numbers") from None
    if values.size == 0:
        values = values.astype(np.int64 if whole else np.float64)
    if values.dtype.kind not in ("i" if whole else "iuf"):
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"this tree holds something in {key!r} that is not {kind}")
    expected = (len(values), 2) if key == "children" and values.size else (values.size,)
    if values.shape != expected:
        raise ValueError(f"this tree has {key!r} of shape {values.shape}")
    return values.astype(np.int64 if whole else np.float64)


def _check_merges(
    n: int,
    children: NDArray[np.int64],
    heights: NDArray[np.float64],
    weights: NDArray[np.float64],
    steps: NDArray[np.int64],
    leaf_weights: NDArray[np.float64] | None,
) -> None:
    m = len(children)
    for name, values in {"heights": heights, "weights": weights, "steps": steps}.items():
        unknown = values is steps and steps.size == 0
        if values.shape != (m,) and not unknown:
            raise ValueError(f"this tree has {m} merges and {values.size} {name}")
    if leaf_weights is not None and leaf_weights.shape != (n,):
        raise ValueError(f"this tree has {n} leaves and {leaf_weights.size} leaf_weights")
    made = n + np.arange(m)
    if m >= n or (children < 0).any() or (children >= made[:, None]).any():
        raise ValueError("this tree has merges of nodes that are not there yet")
    if np.unique(children).size < children.size:
        raise ValueError("this tree has a node with two parents")
    if not np.isfinite(heights).all():
        raise ValueError("this tree has heights that are not finite")
    for name, found in (("weights", weights), ("leaf_weights", leaf_weights)):
        if found is not None and not (np.isfinite(found).all() and (found >= 0.0).all()):
            raise ValueError(f"this tree has {name} that are negative or not finite")
    if steps.size and not np.array_equal(np.sort(steps), np.arange(m)):
        raise ValueError(f"this tree has steps that are not the numbers 0 to {m - 1}")
    levels = subtree_maxima(children, heights, n)
    if (levels[1:] < levels[:-1]).any():
        raise ValueError("this tree has merges that are not in the order of their levels")
