"""``fastrbhc bhc``: the original Bayesian algorithm for the rows of a table."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastrbhc._interrupts import importing
from fastrbhc.cli.inputs import (
    COLUMN_HELP,
    add_row_options,
    displayed,
    named_file,
    with_feature_names,
)
from fastrbhc.cli.labels import add_label_options, sizes_in_words, write_labels
from fastrbhc.cli.outputs import add_talk_options, print_json, speaker
from fastrbhc.cli.trees import add_tree_options, check_tree_outputs, draw_tree, write_tree

if TYPE_CHECKING:
    from fastrbhc import BHC
    from fastrbhc.cli.tables import Table

_SOURCES = ("data", "evidence")


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add this command to the parser."""
    command = add(
        "bhc",
        help="cluster the rows of a table by the original Bayesian algorithm",
        description="Cluster the rows of a table by Bayesian hierarchical clustering, which finds "
        f"the number of clusters itself. {COLUMN_HELP}",
        epilog="Example: fastrbhc bhc counts.csv --model poisson --hyperparameters evidence "
        "--labels labels.csv",
    )
    option = command.add_argument
    add_row_options(option, weighted=False)
    option(
        "--model",
        default="gaussian",
        metavar="NAME",
        help="gaussian (the default), diagonal_gaussian, poisson, multinomial, bernoulli, "
        "exponential, geometric, categorical or von_mises_fisher",
    )
    option(
        "--alpha",
        type=_number_or_evidence,
        default=1.0,
        metavar="ALPHA",
        help="concentration of the Dirichlet process (default 1): the larger, the more clusters; "
        "or evidence, which chooses it",
    )
    option(
        "--hyperparameters",
        choices=_SOURCES,
        default="data",
        help="where hyperparameters come from: moments of the data (the default), or the largest "
        "evidence, which takes dozens of trees",
    )
    stop = command.add_mutually_exclusive_group().add_argument
    stop("--clusters", "--n-clusters", type=int, metavar="K", help="the number of clusters")
    stop(
        "--probability",
        type=float,
        metavar="R",
        help="from the root down, a node is a cluster once its probability is at least this "
        "(default 0.5)",
    )
    option("--seed", type=int, default=0, help="seed of the rows that evidence is computed for")
    option("--jobs", "--n-jobs", type=int, metavar="N", help="number of threads; -1 for all cores")
    option("--progress", action="store_true", help="show a progress bar")
    add_label_options(option)
    add_tree_options(option)
    add_talk_options(option)
    command.set_defaults(run=run)


def _number_or_evidence(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def run(arguments: argparse.Namespace) -> None:
    """Read the table, cluster it, print a summary and write the requested files."""
    outputs = check_tree_outputs(arguments)
    with importing():
        import numpy as np

        from fastrbhc import BHC
        from fastrbhc._validation import check_count, check_share, check_threads
        from fastrbhc.bhc import as_model
        from fastrbhc.bhc.evidence import check_search
        from fastrbhc.cli.tables import read_table
        from fastrbhc.tree.exports import check_newick_names
    say = speaker(arguments, arguments.labels, arguments.tree)
    model = as_model(arguments.model)
    check_search(arguments.alpha, arguments.hyperparameters)
    check_threads(arguments.jobs)
    probability = 0.5 if arguments.probability is None else arguments.probability
    check_share(probability, "probability")
    if arguments.clusters is not None:
        check_count(arguments.clusters, "n_clusters")
    with named_file(arguments.file) as path:
        table = read_table(
            path,
            arguments.id,
            drop=arguments.drop,
            text=hasattr(model, "encode"),
            layer=arguments.layer,
            transpose=arguments.transpose,
        )
    table = with_feature_names(table, arguments.feature_names)
    name = displayed(arguments.file)
    n = table.values.shape[0]
    if n < 2:
        raise ValueError(f"{name} has {n} rows: at least 2 are needed")
    if arguments.clusters is not None:
        check_count(arguments.clusters, "n_clusters", n)
    if arguments.tree_format == "newick":
        check_newick_names(table.ids)
    start = time.perf_counter()
    fitted = BHC(
        model,
        alpha=arguments.alpha,
        hyperparameters=arguments.hyperparameters,
        n_clusters=arguments.clusters,
        probability=probability,
        n_jobs=arguments.jobs,
        progress=arguments.progress,
        random_state=arguments.seed,
    ).fit(table.values, feature_names=table.columns)
    seconds = time.perf_counter() - start
    sizes = np.bincount(fitted.labels_).tolist()
    for line in _summary(name, table, fitted):
        say(line)
    say(sizes_in_words(sizes))
    say(f"{seconds:.2f} s")
    labels = fitted.labels_.tolist()
    if arguments.labels is not None:
        write_labels(arguments.labels, table.ids, labels, arguments.escape_formulas)
    tree = fitted.dendrogram_
    if arguments.tree is not None:
        write_tree(arguments.tree, arguments.tree_format, tree, table.ids)
    if arguments.plot is not None:
        draw_tree(arguments.plot, tree, fitted.labels_, table.ids)
    if outputs:
        say(f"wrote {' and '.join(outputs)}")
    if arguments.json:
        result = _result(name, table, fitted) | {"sizes": sizes, "seconds": round(seconds, 3)}
        print_json(result | {"ids": table.ids, "labels": labels})


def _summary(name: str, table: Table, fitted: BHC) -> list[str]:
    n, d = table.values.shape
    return [
        f"{name}: {n:,} rows, {d:,} columns",
        f"model {fitted.model_.name}, alpha {fitted.alpha_:.6g}",
        f"log evidence at least {fitted.log_evidence_:,.6g}",
    ]


def _result(name: str, table: Table, fitted: BHC) -> dict[str, Any]:
    n, d = table.values.shape
    return {
        "file": name,
        "n_rows": n,
        "n_columns": d,
        "columns": table.columns,
        "model": fitted.model_.name,
        "alpha": fitted.alpha_,
        "log_evidence": fitted.log_evidence_,
        "n_clusters": fitted.n_clusters_,
    }
