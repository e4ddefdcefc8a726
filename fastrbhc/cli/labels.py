"""Clusters of rows as a table of two columns, and what is said of them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fastrbhc.cli.outputs import writing

_SIZES_SHOWN = 10
# What a formula begins with; spreadsheets skip a tab or a carriage return before it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def add_label_options(option: Callable[..., Any], *, are_the_result: bool = False) -> None:
    """Add ``--labels``, and how names are written."""
    usual = " (default: to standard output)" if are_the_result else ", or to - for standard output"
    option(
        "--labels",
        metavar="OUT.csv",
        help=f"write the cluster of every row, as id,cluster{usual}; with tabs to .tsv",
    )
    option(
        "--escape-formulas",
        action="store_true",
        help="in --labels, put an apostrophe before names that begin with = + - or @, which "
        "spreadsheets would take for formulas; other programs see the apostrophe",
    )


def write_labels(
    path: str, ids: Sequence[str] | None, labels: Sequence[int | str], escaping: bool
) -> None:
    """Write the clusters of rows, which are named by their positions if they have no names."""
    names: Sequence[Any] = range(len(labels)) if ids is None else ids
    if escaping and ids is not None:
        names = [_escaped(name) for name in ids]
    with writing(path) as file:
        delimiter = "\t" if Path(path).suffix.lower() == ".tsv" else ","
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
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


def sizes_in_words(sizes: Sequence[int]) -> str:
    """How many clusters there are, and how many rows the first of them have."""
    shown = ", ".join(f"{size:,}" for size in sizes[:_SIZES_SHOWN])
    more = f", ... ({len(sizes) - _SIZES_SHOWN:,} more)" if len(sizes) > _SIZES_SHOWN else ""
    noun = "cluster" if len(sizes) == 1 else "clusters"
    return f"{len(sizes):,} {noun}; rows in each: {shown}{more}"
