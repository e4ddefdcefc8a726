"""``fastrbhc cluster``: cluster the rows of a table."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from fastrbhc._interrupts import importing
from fastrbhc._options import ALGORITHM_NAMES, MISSING_NAMES, NEIGHBOR_NAMES, LinkageOptions
from fastrbhc.cli.families import Asked, asked
from fastrbhc.cli.inputs import (
    COLUMN_HELP,
    add_graph_options,
    add_row_options,
    check_graph_file,
    displayed,
    graph_of,
    named_file,
    with_feature_names,
)
from fastrbhc.cli.labels import add_label_options, sizes_in_words, write_labels
from fastrbhc.cli.outputs import add_talk_options, print_json, speaker
from fastrbhc.cli.trees import add_tree_options, check_tree_outputs, draw_tree, write_tree

if TYPE_CHECKING:
    from fastrbhc import RBHC
    from fastrbhc.cli.tables import Table


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add this command to the parser."""
    command = add(
        "cluster",
        help="cluster the rows of a table",
        description=f"Cluster the rows of a table and print how many clusters there are. "
        f"{COLUMN_HELP}",
        epilog="Example: fastrbhc cluster counts.csv --family poisson --guess 10 "
        "--id name --labels labels.csv",
    )
    option = command.add_argument
    add_row_options(option)
    option(
        "--drop-empty-rows",
        action="store_true",
        help="leave out rows of zeros, which multinomial and von_mises_fisher cannot take; in "
        "--labels they have no cluster, and --tree is that of the others",
    )
    option(
        "--family",
        action="append",
        metavar="FAMILY[:COLUMNS]",
        help="auto (the default: one for counts or for zeros and ones if that is what all values "
        "are, one for each column if some hold text, and otherwise gaussian, with a smoothing "
        "derived from the rows), gaussian, ward, diagonal_gaussian, von_mises_fisher, poisson, "
        "multinomial, bernoulli, exponential, categorical. Columns of different kinds: "
        "poisson:visits,orders gaussian:age ignore:notes gives a family to each, and ward*0.5:age "
        "a weight to its dissimilarity",
    )
    option("--smoothing", type=float, metavar="VALUE", help="smoothing of a family that has it")
    option("--variance", type=float, metavar="VALUE", help="variance of a family that has it")
    stop = command.add_mutually_exclusive_group()
    for name, (flags, settings) in _linkage_options().items():
        place = stop if name == "threshold" else command
        place.add_argument(*flags, dest=name, **settings)
    stop.add_argument("--clusters", type=int, metavar="K", help="the number of clusters")
    stop.add_argument(
        "--guess",
        type=int,  # no default here: `--guess 8 --clusters 2` would pass unnoticed
        metavar="K",
        help="a rough guess at the number of clusters, from which the k-means heuristic "
        "finds a threshold",
    )
    option("--seed", type=int, default=0, help="seed of the heuristic (default 0)")
    add_graph_options(option, command.add_mutually_exclusive_group().add_argument)
    add_label_options(option)
    add_tree_options(option)
    add_talk_options(option)
    command.set_defaults(run=run)


def _linkage_options() -> dict[str, tuple[tuple[str, ...], dict[str, Any]]]:
    """The names of every option of `linkage` on the command line, and its argparse settings."""
    known: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
        "algorithm": (("--algorithm",), {"help": _choices(ALGORITHM_NAMES)}),
        "neighbors": (
            ("--neighbors",),
            {"help": f"how nearest clusters are found: {_choices(NEIGHBOR_NAMES)}"},
        ),
        "threshold": (
            ("--threshold",),
            {
                "type": _number_or_name,
                "metavar": "LAMBDA",
                "help": "merge while the dissimilarity is below this number; or predictive (the "
                "default), gap or evidence, which find one without a guess",
            },
        ),
        "n_jobs": (
            ("--jobs", "--n-jobs"),
            {"type": int, "metavar": "N", "help": "number of threads; -1 for all cores"},
        ),
        "progress": (("--progress",), {"action": "store_true", "help": "show a progress bar"}),
        "audit": (
            ("--audit",),
            {
                "nargs": "?",
                "const": True,
                "choices": ("sample",),
                "help": "count violations of reducibility, in all triples or in a sample, and "
                "print a report",
            },
        ),
        "missing": (
            ("--missing",),
            {
                "choices": MISSING_NAMES,
                "help": "what an empty cell, NA or nan means: error (the default), or ignore, for "
                "cells that were not observed. For families whose columns are separate, such as "
                "ward and poisson",
            },
        ),
    }
    return {
        field.name: (known[field.name][0], {"default": field.default, **known[field.name][1]})
        for field in fields(LinkageOptions)
    }


def _choices(names: tuple[str, ...]) -> str:
    first, *others, last = names
    return f"{first} (the default), {', '.join(others)} or {last}"


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def run(arguments: argparse.Namespace) -> None:
    """Read the table, cluster it, print a summary and write the requested files."""
    outputs = check_tree_outputs(arguments)
    with importing():
        from fastrbhc import RBHC
        from fastrbhc._row_validation import EmptyRowsError
        from fastrbhc.cli import tables  # noqa: F401
    say = speaker(arguments, arguments.labels, arguments.tree)
    wanted = asked(arguments.family, smoothing=arguments.smoothing, variance=arguments.variance)
    options = _checked_options(arguments, wanted)
    name = displayed(arguments.file)
    whole = _table(arguments, wanted)
    table, kept = whole.without_empty_rows() if arguments.drop_empty_rows else (whole, None)
    _check_size(arguments, table, name, "" if table is whole else " that are not empty")
    family = wanted.family_of(table, name, silent=arguments.quiet)
    try:
        rows = _rows(arguments, table, family, name, left_open=wanted.left_open)
    except EmptyRowsError as error:
        if hasattr(family, "parts"):  # a row may have zeros in some columns only
            raise
        raise ValueError(f"{error} --drop-empty-rows does that") from None
    start = time.perf_counter()
    model = RBHC(
        rows.family,
        n_clusters=arguments.clusters,
        n_clusters_guess=arguments.guess,
        compute_full_tree=arguments.tree is not None or arguments.plot is not None,
        random_state=arguments.seed,
        connectivity=graph_of(arguments),
        connect=arguments.connect,
        **options,
    )
    model.fit(rows.values, sample_weight=table.weights, feature_names=table.columns)
    seconds = time.perf_counter() - start
    for line in _summary(name, table, model, arguments):
        say(line)
    n_left_out = whole.values.shape[0] - table.values.shape[0]
    if table is not whole:
        say(f"left out: {n_left_out:,} of {whole.values.shape[0]:,} rows, which are all zeros")
    if model.dendrogram_.audit is not None:
        say(model.dendrogram_.audit)
    say(f"{seconds:.2f} s")
    labels = _labels_of_all(model.labels_, kept, whole.values.shape[0])
    _write(arguments, model, labels, whole.ids, table.ids)
    if outputs:
        say(f"wrote {' and '.join(outputs)}")
    if arguments.json:
        result = _result(name, table, model, seconds)
        labelled = [None if label == "" else label for label in labels]
        print_json(result | {"n_left_out": n_left_out, "ids": whole.ids, "labels": labelled})


def _checked_options(arguments: argparse.Namespace, wanted: Asked) -> dict[str, Any]:
    """The options of `linkage`, once everything is refused that needs no rows to be refused."""
    from fastrbhc._connectivity import check_options_on_graph
    from fastrbhc._validation import check_count, check_missing
    from fastrbhc.families import as_family

    options = {field.name: getattr(arguments, field.name) for field in fields(LinkageOptions)}
    has_graph = arguments.grid is not None or arguments.connectivity is not None
    if options["threshold"] is None:
        options["threshold"] = "predictive" if arguments.guess is None else "kmeans"
    for value, name in ((arguments.clusters, "n_clusters"), (arguments.guess, "n_clusters_guess")):
        if value is not None:
            check_count(value, name)
    if not 0 <= arguments.seed < 2**32:
        raise ValueError(f"seed has to be at least 0 and below 2**32, got {arguments.seed}")
    if not wanted.left_open:
        check_missing(arguments.missing, wanted.family)
    # What "auto" will be is not known yet: a family that takes all options stands for it.
    family = as_family("ward") if wanted.left_open else wanted.family
    checked = LinkageOptions(**options).checked(family)
    if arguments.connect and not has_graph:
        raise ValueError("--connect joins the pieces of a graph: give --connectivity or --grid")
    if has_graph:
        check_graph_file(arguments.connectivity)
        if checked.choice == "predictive" and arguments.clusters is None:
            raise ValueError(
                "with --connectivity or --grid, give --clusters, --guess or --threshold: the "
                "default, predictive, clusters samples of the rows, and samples have no graph"
            )
        check_options_on_graph(checked, chosen=arguments.clusters is not None)
        if arguments.drop_empty_rows:
            raise ValueError(
                "--drop-empty-rows leaves rows out, and the graph has a place for each of them: "
                "leave them out of both before"
            )
    return options


def _table(arguments: argparse.Namespace, wanted: Asked) -> Table:
    from fastrbhc.cli.tables import read_table

    with named_file(arguments.file) as path:
        table = read_table(
            path,
            arguments.id,
            weights=arguments.weights,
            drop=[*arguments.drop, *wanted.ignored],
            columns=wanted.columns,
            text=wanted.text,
            layer=arguments.layer,
            transpose=arguments.transpose,
            missing=arguments.missing,
        )
    return with_feature_names(table, arguments.feature_names)


def _check_size(arguments: argparse.Namespace, table: Table, name: str, which: str) -> None:
    """Reject tables of a single row, and more clusters than rows."""
    from fastrbhc._validation import check_count

    n = table.values.shape[0]
    if n < 2:
        raise ValueError(f"{name} has {n} rows{which}: at least 2 are needed")
    if arguments.clusters is not None:
        check_count(arguments.clusters, "n_clusters", n)


class _Rows(NamedTuple):
    """Rows that have been checked, with their family."""

    values: Any
    family: Any


def _rows(
    arguments: argparse.Namespace, table: Table, family: Any, name: str, *, left_open: bool
) -> _Rows:
    """The rows for a family, with the name of the file in messages."""
    from fastrbhc._options import layout_for
    from fastrbhc._row_validation import check_values, dense_if_needed, refuse_without_a_family
    from fastrbhc._table import encoded, placed
    from fastrbhc._validation import check_missing
    from fastrbhc.anndata import warn_of_other_counts
    from fastrbhc.tree.exports import check_newick_names

    check_missing(arguments.missing, family)
    if table.has_counts:
        warn_of_other_counts(table.values, family, "say --layer counts")
    if left_open and not family.domain.takes_sparse:
        refuse_without_a_family(table.values, name, "--family {}")
    rows = dense_if_needed(table.values, family, name)
    family = placed(family, rows, feature_names=table.columns)
    numbers = encoded(rows, family, table.columns)
    layout, missing = layout_for(arguments.neighbors), arguments.missing
    numbers = check_values(numbers, family, table.columns, name, layout, missing)
    if arguments.tree_format == "newick":
        check_newick_names(table.ids)
    return _Rows(rows if hasattr(family, "encode") else numbers, family)


def _write(
    arguments: argparse.Namespace,
    model: RBHC,
    labels: list[int | str],
    ids: list[str] | None,
    ids_of_tree: list[str] | None,
) -> None:
    """Write the requested outputs."""
    if arguments.labels is not None:
        write_labels(arguments.labels, ids, labels, arguments.escape_formulas)
    tree = model.dendrogram_
    if arguments.tree is not None:
        write_tree(arguments.tree, arguments.tree_format, tree, ids_of_tree)
    if arguments.plot is not None:
        draw_tree(arguments.plot, tree, model.labels_, ids_of_tree, threshold=model.threshold_)


def _summary(name: str, table: Table, model: RBHC, arguments: argparse.Namespace) -> list[str]:
    """The result in words."""
    import numpy as np
    from scipy.sparse import issparse

    from fastrbhc.families._description import described

    n, d = table.values.shape
    weighted = f", weighted by {arguments.weights}" if table.weights is not None else ""
    gaps = 0
    if not issparse(table.values):  # None is a category that is missing
        gaps = int(((table.values != table.values) | (table.values == None)).sum())  # noqa: E711
    unseen = f", {100.0 * gaps / (n * d):.2g} % of the cells missing" if gaps else ""
    first, *blocks = described(model.dendrogram_.family, table.columns)
    if isinstance(arguments.threshold, str):
        origin = f"by {arguments.threshold}"
    elif arguments.threshold is not None:
        origin = "as given"
    elif arguments.clusters is not None:
        origin = "the first merge not made"
    elif arguments.guess is not None:
        origin = f"k-means heuristic with guess {model.n_clusters_guess}, seed {arguments.seed}"
    else:
        origin = "by predictive"
    return [
        f"{name}: {n:,} rows, {d:,} columns{weighted}{unseen}",
        f"family {first}",
        *(f"  {block}" for block in blocks),
        f"lambda {model.threshold_:.6g} ({origin})",
        *([] if model.choice_ is None else [str(model.choice_)]),
        sizes_in_words(np.bincount(model.labels_).tolist()),
    ]


def _result(name: str, table: Table, model: RBHC, seconds: float) -> dict[str, Any]:
    """The result as items of JSON."""
    import numpy as np

    from fastrbhc.tree.origin import described

    tree: Any = model.dendrogram_
    n, d = table.values.shape
    return {
        "file": name,
        "n_rows": n,
        "n_columns": d,
        "columns": table.columns,
        "family": described(tree.family),
        "threshold": model.threshold_,
        "threshold_by": tree.chosen.by,
        "choice": None if model.choice_ is None else str(model.choice_),
        "n_clusters": model.n_clusters_,
        "sizes": np.bincount(model.labels_).tolist(),
        "n_inversions": tree.n_inversions,
        "audit": None if tree.audit is None else tree.audit.sentence,
        "seconds": round(seconds, 3),
    }


def _labels_of_all(labels: Any, kept: Any, n: int) -> list[int | str]:
    """The clusters of n rows of which some were kept, all if that is None; others have none."""
    if kept is None:
        return list(labels.tolist())
    found: list[int | str] = [""] * n
    for row, label in zip(kept, labels.tolist(), strict=True):
        found[row] = label
    return found
