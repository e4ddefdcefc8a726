"""``fastrbhc predict``: clusters of a saved tree for new rows.

A tree in a file has the merges of its rows, but not the rows. So the table that it was made of is
read again for the statistics of the clusters, and compared with the tree.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastrbhc._interrupts import importing
from fastrbhc.cli.cut import add_cut_options, add_tree_argument, check_for_labels, place_of_cut
from fastrbhc.cli.inputs import COLUMN_HELP, displayed, named_file
from fastrbhc.cli.labels import add_label_options, sizes_in_words, write_labels
from fastrbhc.cli.outputs import add_talk_options, check_outputs, print_json, speaker
from fastrbhc.cli.trees import SavedTree, read_tree

if TYPE_CHECKING:
    from fastrbhc import Dendrogram
    from fastrbhc.cli.tables import Table


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add this command to the parser."""
    command = add(
        "predict",
        help="the clusters of new rows, by a saved tree",
        description="Assign new rows to the nearest clusters of a saved tree, which needs the rows "
        "that the tree was made of. In both tables, the columns of the tree are found by their "
        f"names, and all others are left out. {COLUMN_HELP}",
        epilog="Example: fastrbhc predict tree.json counts.csv new.csv --id name",
    )
    option = command.add_argument
    add_tree_argument(option)
    option("rows", metavar="ROWS", help="the table that the tree was made of")
    option("file", metavar="NEW", help="the table of new rows, or - for standard input")
    add_cut_options(command.add_mutually_exclusive_group().add_argument)
    option("--id", metavar="COLUMN", help="the column of NEW that names the rows")
    option("--weights", metavar="COLUMN", help="the column of ROWS with the weights of the rows")
    option(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column to leave out of both tables, if the tree does not know its columns by name",
    )
    option("--layer", metavar="NAME", help="the layer of .h5ad files, instead of X")
    option(
        "--transpose", action="store_true", help="take the columns of ROWS and NEW for their rows"
    )
    add_label_options(option, are_the_result=True)
    add_talk_options(option)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Read the tree and both tables, and write the labels of the new rows."""
    if arguments.labels is None and not arguments.json:
        arguments.labels = "-"
    inputs = (arguments.tree, arguments.rows, arguments.file)
    if inputs.count("-") > 1:
        raise ValueError("only one of TREE, ROWS and NEW can be - for standard input")
    for given in inputs:
        outputs = check_outputs("TREE, ROWS, NEW and --labels", arguments.labels, read=given)
    check_for_labels(arguments)
    with importing():
        import numpy as np

        from fastrbhc._restored import restored
    say = speaker(arguments, arguments.labels)
    with named_file(arguments.tree) as path:
        saved = read_tree(path)
    tree = saved.tree
    if tree.family is None:
        raise ValueError(
            f"{saved.name} does not remember its family, without which new rows cannot be "
            "compared with its clusters: save the tree as .json"
        )
    where = place_of_cut(arguments, tree)
    made_of = _table(arguments, saved, arguments.rows, None, arguments.weights)
    rows = _rows(tree, made_of, displayed(arguments.rows))
    model = restored(tree, rows, sample_weight=made_of.weights, **where)
    new = _table(arguments, saved, arguments.file, arguments.id, None)
    labels = model.predict(_rows(tree, new, displayed(arguments.file)))
    sizes = np.bincount(labels, minlength=model.n_clusters_).tolist()
    if arguments.labels is not None:
        write_labels(arguments.labels, new.ids, labels.tolist(), arguments.escape_formulas)
    say(f"{displayed(arguments.file)}: {len(labels):,} rows, by {saved.name}")
    say(sizes_in_words(sizes))
    if outputs:
        say(f"wrote {' and '.join(outputs)}")
    if arguments.json:
        print_json(
            {
                "file": displayed(arguments.file),
                "n_rows": len(labels),
                "n_clusters": model.n_clusters_,
                "sizes": sizes,
                "ids": new.ids,
                "labels": labels.tolist(),
            }
        )


def _table(
    arguments: argparse.Namespace,
    saved: SavedTree,
    name: str,
    ids: str | None,
    weights: str | None,
) -> Table:
    """The columns of a tree in a table; all of them, if the tree does not know their names."""
    from fastrbhc.cli.tables import read_table
    from fastrbhc.tree.origin import missing_in

    names, family = saved.tree.feature_names, saved.tree.family
    with named_file(name) as path:
        return read_table(
            path,
            ids,
            weights=weights,
            drop=arguments.drop,
            columns=None if names is None else _kinds(family, names),
            only=names is not None,
            text=hasattr(family, "encode") and not hasattr(family, "blocks"),
            layer=arguments.layer,
            transpose=arguments.transpose,
            missing=missing_in(saved.tree),
        )


def _rows(tree: Dendrogram, table: Table, name: str) -> Any:
    """Rows for the family of a tree, with the name of the file in messages."""
    from fastrbhc._row_validation import check_values, dense_if_needed
    from fastrbhc._table import encoded
    from fastrbhc.tree.origin import missing_in

    family: Any = tree.family
    if len(table.columns) != tree.n_features:
        raise ValueError(
            f"{name} has {len(table.columns):,} columns of values, and the tree was made of "
            f"{tree.n_features:,}"
        )
    values = dense_if_needed(table.values, family, name)
    numbers = encoded(values, family, table.columns)
    numbers = check_values(numbers, family, table.columns, name, "auto", missing_in(tree))
    return values if hasattr(family, "encode") else numbers


def _kinds(family: Any, names: tuple[str, ...]) -> dict[str, bool]:
    """The columns of a tree, and whether they are text."""
    if not hasattr(family, "blocks"):
        return dict.fromkeys(names, hasattr(family, "encode"))
    kinds = dict.fromkeys(names, True)  # those of no block are read as they come
    for block in family.blocks:
        for column in block.columns:
            kinds[names[column]] = hasattr(block.family, "encode")
    return kinds
