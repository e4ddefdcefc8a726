"""``fastrbhc cut``: clusters of a saved tree."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastrbhc._interrupts import importing
from fastrbhc.cli.inputs import displayed, named_file
from fastrbhc.cli.labels import add_label_options, sizes_in_words, write_labels
from fastrbhc.cli.outputs import (
    add_talk_options,
    check_labels_name,
    check_outputs,
    print_json,
    speaker,
)
from fastrbhc.cli.trees import check_plot, draw_tree, read_tree

if TYPE_CHECKING:
    from fastrbhc import Dendrogram

# Ways to choose λ that need the tree alone.
_FROM_TREE = ("gap", "evidence")


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add this command to the parser."""
    command = add(
        "cut",
        help="clusters of a saved tree",
        description="Cut a tree that --tree has saved, and write the cluster of every row. Without "
        "an option, the tree is cut where it was cut when it was built.",
        epilog="Example: fastrbhc cut tree.json --clusters 5 --labels labels.csv",
    )
    option = command.add_argument
    add_tree_argument(option)
    add_cut_options(command.add_mutually_exclusive_group().add_argument)
    option(
        "--min-size",
        type=int,
        metavar="ROWS",
        help="no cluster has fewer rows: those of smaller ones stay with the cluster they joined",
    )
    add_label_options(option, are_the_result=True)
    option("--plot", metavar="PICTURE", help="draw the highest merges of the tree and its clusters")
    add_talk_options(option)
    command.set_defaults(run=run)


def add_tree_argument(option: Callable[..., Any]) -> None:
    """Add the saved tree."""
    option(
        "tree",
        metavar="TREE",
        help="a tree in JSON, a linkage matrix in an .npy file, or - for standard input",
    )


def add_cut_options(option: Callable[..., Any]) -> None:
    """Add the options that say where to cut, which exclude each other."""
    option(
        "--threshold",
        type=_number_or_way,
        metavar="LAMBDA",
        help="undo the merges at or above this number; or gap or evidence, which find one in the "
        "tree",
    )
    option("--clusters", "--n-clusters", type=int, metavar="K", help="the number of clusters")


def _number_or_way(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        if text in _FROM_TREE:
            return text
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number nor {' nor '.join(_FROM_TREE)}"
        ) from None


def run(arguments: argparse.Namespace) -> None:
    """Cut the tree, and write the labels."""
    # The labels are the result: they go to standard output, unless something says otherwise.
    if arguments.labels is None and not arguments.json:
        arguments.labels = "-"
    names = "TREE, --labels and --plot"
    outputs = check_outputs(names, arguments.labels, arguments.plot, read=arguments.tree)
    check_for_labels(arguments)
    check_plot(arguments.plot)
    with importing():
        import numpy as np

        import fastrbhc.tree.dendrogram  # noqa: F401
    say = speaker(arguments, arguments.labels)
    with named_file(arguments.tree) as path:
        tree, ids, _ = read_tree(path)
    where = place_of_cut(arguments, tree)
    labels = tree.cut(**where, min_size=arguments.min_size)
    sizes = np.bincount(labels).tolist()
    if arguments.labels is not None:
        write_labels(arguments.labels, ids, labels.tolist(), arguments.escape_formulas)
    if arguments.plot is not None:
        # With labels, a threshold draws a line.
        line = {} if arguments.min_size or "threshold" not in where else where
        draw_tree(arguments.plot, tree, labels, ids, **line)
    say(f"{displayed(arguments.tree)}: {tree.n_leaves:,} rows, {_in_words(where)}")
    say(sizes_in_words(sizes))
    if outputs:
        say(f"wrote {' and '.join(outputs)}")
    if arguments.json:
        print_json(
            {
                "file": displayed(arguments.tree),
                "n_rows": tree.n_leaves,
                "threshold": where.get("threshold"),
                "n_clusters": len(sizes),
                "sizes": sizes,
                "ids": ids,
                "labels": labels.tolist(),
            }
        )


def check_for_labels(arguments: argparse.Namespace) -> None:
    """Reject labels that cannot be written as asked."""
    if arguments.labels is not None:
        check_labels_name(arguments.labels)
        if arguments.json and arguments.labels == "-":
            raise ValueError(
                "--json prints to standard output, and so does --labels -: leave one of them out"
            )


def place_of_cut(arguments: argparse.Namespace, tree: Dendrogram) -> dict[str, Any]:
    """Where to cut, as arguments of `Dendrogram.cut`: as asked, or as the tree remembers."""
    if arguments.clusters is not None:
        return {"n_clusters": arguments.clusters}
    if isinstance(arguments.threshold, str):
        from fastrbhc.thresholds import FROM_TREE

        return {"threshold": float(FROM_TREE[arguments.threshold](tree))}
    threshold, n_clusters = tree.cut_or_chosen(arguments.threshold, None)
    if threshold is not None:
        return {"threshold": float(threshold)}
    if n_clusters is None and tree.n_trees == 1:
        raise ValueError(
            "the tree does not remember a cut: say --clusters K, --threshold LAMBDA or "
            "--threshold gap"
        )
    return {"n_clusters": n_clusters or tree.n_trees}


def _in_words(where: dict[str, Any]) -> str:
    """Where a tree is cut, as part of a sentence."""
    if "threshold" in where:
        return f"cut at lambda {where['threshold']:.6g}"
    return "cut by the number of clusters"
