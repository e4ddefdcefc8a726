"""``fastrbhc cluster``: cluster the rows of a table."""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastrbhc._files import replacing, save_picture
from fastrbhc._options import ALGORITHM_NAMES, NEIGHBOR_NAMES, LinkageOptions
from fastrbhc._validation import MISSING_NAMES
from fastrbhc.cli.families import asked
from fastrbhc.cli.outputs import check_drawing, check_outputs, check_tree_name

if TYPE_CHECKING:
    from fastrbhc.cli.tables import Table

_SIZES_SHOWN = 10
# What a formula begins with; spreadsheets skip a tab or a carriage return before it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_COLUMN = "Columns are given by name, or by position in the file counted from 1."


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add this command to the parser."""
    command = add(
        "cluster",
        help="cluster the rows of a table",
        description="Cluster the rows of a table and print how many clusters there are. " + _COLUMN,
        epilog="Example: fastrbhc cluster counts.csv --family poisson --guess 10 "
        "--id name --labels labels.csv",
    )
    option = command.add_argument
    option(
        "file",
        metavar="FILE",
        help=".csv, .tsv or other text, .npy, .npz, .parquet, .mtx, .h5ad, or a folder of 10x "
        "Genomics. Sparse matrices stay sparse with families of counts",
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
    option("--id", metavar="COLUMN", help="the column that names the rows")
    option("--weights", metavar="COLUMN", help="the column with the weights of the rows")
    option(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column to leave out; may be given several times",
    )
    option(
        "--drop-empty-rows",
        action="store_true",
        help="leave out rows of zeros, which multinomial and von_mises_fisher cannot take; in "
        "--labels they have no cluster, and --tree is that of the others",
    )
    option(
        "--transpose",
        action="store_true",
        help="cluster the columns of an .mtx, .npy or .npz file: cells are columns in the "
        "matrix.mtx of 10x Genomics",
    )
    option("--layer", metavar="NAME", help="the layer of an .h5ad file to cluster, instead of X")
    option("--smoothing", type=float, metavar="VALUE", help="smoothing of a family that has it")
    option("--variance", type=float, metavar="VALUE", help="variance of a family that has it")
    option("--seed", type=int, default=0, help="seed of the heuristic (default 0)")
    option("--labels", metavar="OUT.csv", help="write the cluster of every row, as id,cluster")
    option(
        "--escape-formulas",
        action="store_true",
        help="in --labels, put an apostrophe before names that begin with = + - or @, which "
        "spreadsheets would take for formulas; other programs see the apostrophe",
    )
    option(
        "--tree",
        metavar="OUT",
        help="write the whole tree: as Newick to .nwk or .newick, as JSON to .json, as a page to "
        "look at to .html, and as a linkage matrix for SciPy to .npy or a name without suffix",
    )
    option("--plot", metavar="PICTURE", help="draw the highest merges of the tree and its clusters")
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
    outputs = check_outputs(
        "FILE, --labels, --tree and --plot",
        arguments.labels,
        arguments.tree,
        arguments.plot,
        read=arguments.file,
    )
    if arguments.plot is not None:
        check_drawing(arguments.plot)
    if arguments.tree is not None:
        check_tree_name(arguments.tree)
    from fastrbhc import RBHC
    from fastrbhc._options import layout_for
    from fastrbhc._row_validation import (
        EmptyRowsError,
        check_values,
        dense_if_needed,
        refuse_without_a_family,
    )
    from fastrbhc._table import encoded, placed
    from fastrbhc._validation import check_missing
    from fastrbhc.anndata import warn_of_other_counts
    from fastrbhc.cli.tables import read_table
    from fastrbhc.tree.exports import check_newick_names

    wanted = asked(arguments.family, smoothing=arguments.smoothing, variance=arguments.variance)
    if not wanted.left_open:
        check_missing(arguments.missing, wanted.family)  # before a long file is read
    table = read_table(
        arguments.file,
        arguments.id,
        weights=arguments.weights,
        drop=[*arguments.drop, *wanted.ignored],
        columns=wanted.columns,
        text=wanted.text,
        layer=arguments.layer,
        transpose=arguments.transpose,
        missing=arguments.missing,
    )
    name = Path(arguments.file).resolve().name
    whole, kept = table, None
    if arguments.drop_empty_rows:
        table, kept = table.without_empty_rows()
    if table.values.shape[0] < 2:
        left = " that are not empty" if table is not whole else ""
        raise ValueError(f"{name} has {table.values.shape[0]} rows{left}: at least 2 are needed")
    family = wanted.family_of(table, name)
    check_missing(arguments.missing, family)
    if table.has_counts:
        warn_of_other_counts(table.values, family, "say --layer counts")
    if wanted.left_open and not family.domain.takes_sparse:
        refuse_without_a_family(table.values, name, "--family {}")
    rows = dense_if_needed(table.values, family, name)
    family = placed(family, rows, feature_names=table.columns)
    numbers = encoded(rows, family, table.columns)
    try:  # with the name of the file in messages
        layout, missing = layout_for(arguments.neighbors), arguments.missing
        numbers = check_values(numbers, family, table.columns, name, layout, missing)
    except EmptyRowsError as error:
        if hasattr(family, "parts"):  # a row may have zeros in some columns only
            raise
        raise ValueError(f"{error} --drop-empty-rows does that") from None
    rows = rows if hasattr(family, "encode") else numbers
    if _is_newick(arguments.tree):
        check_newick_names(table.ids)
    options = {field.name: getattr(arguments, field.name) for field in fields(LinkageOptions)}
    if options["threshold"] is None:
        options["threshold"] = "predictive" if arguments.guess is None else "kmeans"
    start = time.perf_counter()
    model = RBHC(
        family,
        n_clusters=arguments.clusters,
        n_clusters_guess=arguments.guess,
        compute_full_tree=arguments.tree is not None or arguments.plot is not None,
        random_state=arguments.seed,
        **options,
    )
    model.fit(rows, sample_weight=table.weights, feature_names=table.columns)
    seconds = time.perf_counter() - start
    _summarise(name, table, model, arguments)
    if table is not whole:
        n, n_kept = whole.values.shape[0], table.values.shape[0]
        print(f"left out: {n - n_kept:,} of {n:,} rows, which are all zeros")
    if model.dendrogram_.audit is not None:
        print(model.dendrogram_.audit)
    print(f"{seconds:.2f} s")
    if arguments.labels is not None:
        labels = _labels_of_all(model.labels_, kept, whole.values.shape[0])
        _write_labels(arguments.labels, whole.ids, labels, arguments.escape_formulas)
    if arguments.tree is not None:
        _write_tree(arguments.tree, model.dendrogram_, table.ids)
    if arguments.plot is not None:
        _draw_tree(arguments.plot, model, table.ids)
    if outputs:
        print(f"wrote {' and '.join(outputs)}")


def _summarise(name: str, table: Table, model: Any, arguments: argparse.Namespace) -> None:
    import numpy as np
    from scipy.sparse import issparse

    from fastrbhc.families._description import described

    n, d = table.values.shape
    weighted = f", weighted by {arguments.weights}" if table.weights is not None else ""
    gaps = 0
    if not issparse(table.values):  # None is a category that is missing
        gaps = int(((table.values != table.values) | (table.values == None)).sum())  # noqa: E711
    unseen = f", {100.0 * gaps / (n * d):.2g} % of the cells missing" if gaps else ""
    print(f"{name}: {n:,} rows, {d:,} columns{weighted}{unseen}")
    first, *blocks = described(model.dendrogram_.family, table.columns)
    print(f"family {first}")
    for block in blocks:
        print(f"  {block}")
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
    print(f"lambda {model.threshold_:.6g} ({origin})")
    if model.choice_ is not None:
        print(model.choice_)
    sizes = np.bincount(model.labels_)
    shown = ", ".join(f"{size:,}" for size in sizes[:_SIZES_SHOWN])
    more = f", ... ({len(sizes) - _SIZES_SHOWN:,} more)" if len(sizes) > _SIZES_SHOWN else ""
    noun = "cluster" if len(sizes) == 1 else "clusters"
    print(f"{len(sizes):,} {noun}; rows in each: {shown}{more}")


def _labels_of_all(labels: Any, kept: Any, n: int) -> list[int | str]:
    """The clusters of n rows of which some were kept, all if that is None; others have none."""
    if kept is None:
        return list(labels.tolist())
    found: list[int | str] = [""] * n
    for row, label in zip(kept, labels.tolist(), strict=True):
        found[row] = label
    return found


def _write_labels(
    path: str, ids: list[str] | None, labels: list[int | str], escaping: bool
) -> None:
    names = list(range(len(labels)) if ids is None else ids)
    if escaping and ids is not None:
        names = [_escaped(name) for name in ids]
    with replacing(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "cluster"])
        writer.writerows(zip(names, labels, strict=True))


def _escaped(name: str) -> str:
    """A name that spreadsheets do not take for a formula; numbers stay as they are."""
    if not name.startswith(_FORMULA):
        return name
    try:
        float(name)
    except ValueError:
        return f"'{name}"
    return name


def _is_newick(path: str | None) -> bool:
    return path is not None and Path(path).suffix.lower() in {".nwk", ".newick"}


def _write_tree(path: str, tree: Any, ids: list[str] | None) -> None:
    import numpy as np

    suffix = Path(path).suffix.lower()
    if suffix == ".html":
        tree.to_html(path, names=ids)
    elif _is_newick(path) or suffix == ".json":
        text = tree.to_newick(ids) if _is_newick(path) else tree.to_json(ids)
        with replacing(path) as file:
            file.write(text + "\n")
    else:
        linkage_matrix = tree.to_scipy()
        with replacing(path, "wb") as file:
            np.save(file, linkage_matrix)


def _draw_tree(path: str, model: Any, ids: list[str] | None) -> None:
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(9.0, 4.8), dpi=120, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    model.dendrogram_.plot(axes, threshold=model.threshold_, labels=model.labels_, names=ids)
    save_picture(figure, path)
