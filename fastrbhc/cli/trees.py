"""Trees in files: written in three formats, read from two, and drawn."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastrbhc.cli.outputs import (
    STANDARD,
    check_drawing,
    check_labels_name,
    check_outputs,
    check_tree_name,
    writing,
)

if TYPE_CHECKING:
    from fastrbhc.tree.dendrogram import Dendrogram

TREE_FORMATS = ("json", "newick", "html", "npy")
_BY_SUFFIX = {".json": "json", ".nwk": "newick", ".newick": "newick", ".html": "html"}


class SavedTree(NamedTuple):
    """A tree with the names of its rows, if the file has them."""

    tree: Dendrogram
    ids: list[str] | None
    name: str  # of the file


def add_tree_options(option: Callable[..., Any]) -> None:
    """Add ``--tree``, its format, and ``--plot``."""
    option(
        "--tree",
        metavar="OUT",
        help="write the whole tree: as Newick to .nwk or .newick, as JSON to .json or to - for "
        "standard output, as a page to look at to .html, and as a linkage matrix for SciPy to .npy "
        "or a name without suffix",
    )
    option(
        "--tree-format",
        choices=TREE_FORMATS,
        help="the format of --tree, if its name does not say",
    )
    option("--plot", metavar="PICTURE", help="draw the highest merges of the tree and its clusters")


def check_tree_outputs(arguments: Any) -> list[str]:
    """Reject outputs of a command that cannot be written; returns the names of files."""
    names = "FILE, --labels, --tree and --plot"
    given = (arguments.labels, arguments.tree, arguments.plot)
    outputs = check_outputs(names, *given, read=arguments.file)
    if arguments.json and STANDARD in given:
        raise ValueError("--json prints to standard output, and so does -: leave one of them out")
    check_plot(arguments.plot)
    if arguments.labels is not None:
        check_labels_name(arguments.labels)
    if arguments.tree is not None:
        arguments.tree_format = format_of(arguments.tree, arguments.tree_format)
    elif arguments.tree_format is not None:
        raise ValueError("--tree-format is the format of --tree, which is not given")
    return outputs


def check_plot(path: str | None) -> None:
    """Reject a picture that cannot be drawn."""
    if path == STANDARD:
        raise ValueError("--plot needs the name of a file: pictures are not written to -")
    if path is not None:
        check_drawing(path)


def format_of(path: str, given: str | None) -> str:
    """The format of a tree to write, by its name if it is not given; refuses names of others."""
    if given is not None:
        return given
    check_tree_name(path)
    return "json" if path == STANDARD else _BY_SUFFIX.get(Path(path).suffix.lower(), "npy")


def write_tree(path: str, form: str, tree: Any, ids: Sequence[str] | None) -> None:
    """Write a tree in one of the formats."""
    if form != "npy":
        to_text = {"newick": tree.to_newick, "html": tree.to_html, "json": tree.to_json}[form]
        text = to_text(names=ids)
        with writing(path) as file:
            file.write(text + "\n")
        return
    import numpy as np

    linkage_matrix = tree.to_scipy()
    with writing(path, "wb") as file:
        np.save(file, linkage_matrix)


def draw_tree(path: str, tree: Any, labels: Any, ids: Sequence[str] | None, **at: Any) -> None:
    """Draw a tree with its clusters."""
    from matplotlib.figure import Figure

    from fastrbhc._files import save_picture

    figure: Any = Figure(figsize=(9.0, 4.8), dpi=120, facecolor="white", layout="constrained")
    tree.plot(figure.add_subplot(), labels=labels, names=ids, **at)
    save_picture(figure, path)


def read_tree(path: Path) -> SavedTree:
    """A tree from JSON, as `to_json` writes it, or from a linkage matrix in an .npy file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise ValueError(f"{path} is a directory: give the file of a tree, .json or .npy")
    with path.open("rb") as file:
        start = file.read(6)
    if start == b"\x93NUMPY":
        return SavedTree(_from_matrix(path), None, path.name)
    if _BY_SUFFIX.get(path.suffix.lower()) == "newick":
        raise ValueError(
            f"{path.name} is Newick by its name, which forgets weights and the order of merges: "
            "give the tree as .json or .npy"
        )
    return _from_json(path)


def _from_json(path: Path) -> SavedTree:
    from fastrbhc.tree._garbage import nothing_to_collect
    from fastrbhc.tree.json_format import from_content

    try:
        with nothing_to_collect():
            content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise ValueError(
            f"{path.name} is not a tree: give the .json or .npy file that --tree has written"
        ) from None
    try:
        tree = from_content(content)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    names = content.get("names")
    if names is not None and not (
        isinstance(names, list)
        and len(names) == tree.n_leaves
        and all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"{path.name} has names that are not one text for each of its leaves")
    return SavedTree(tree, names, path.name)


def _from_matrix(path: Path) -> Dendrogram:
    """The tree of a linkage matrix; checked as JSON is."""
    import numpy as np

    from fastrbhc._files import Arrays
    from fastrbhc._stamps import version
    from fastrbhc.tree.json_format import from_content

    matrix = Arrays(path).matrix()
    if matrix.ndim != 2 or matrix.shape[1] != 4 or matrix.dtype.kind not in "iuf":
        raise ValueError(
            f"{path.name} holds an array of shape {matrix.shape}, and a linkage matrix has four "
            "columns: two nodes, a height and a number of rows"
        )
    numbers = matrix.astype(np.float64)
    nodes = numbers[:, :2]
    if not (np.isfinite(numbers).all() and (nodes == np.floor(nodes)).all()):
        raise ValueError(f"{path.name} is not a linkage matrix: its nodes are not whole numbers")
    unknown = dict.fromkeys(("threshold", "family", "n_features", "feature_names", "chosen"))
    try:
        return from_content(
            {
                "format": "fastrbhc.dendrogram",
                "version": 2,
                "package_version": version(),
                "n_leaves": len(numbers) + 1,
                "children": np.sort(nodes.astype(np.int64), axis=1),
                "heights": numbers[:, 2],
                "weights": numbers[:, 3],
                "steps": [],
                "leaf_weights": None,
                **unknown,
            }
        )
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
