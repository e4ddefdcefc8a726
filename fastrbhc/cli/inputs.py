"""What commands read: rows from files or standard input, names of columns, and graphs."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastrbhc.cli.outputs import STANDARD

if TYPE_CHECKING:
    from fastrbhc.cli.tables import Table

COLUMN_HELP = "Columns are given by name, or by position in the file counted from 1."
# How files begin, by their suffixes; anything else is text.
_BEGINNINGS = {
    b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"PAR1": ".parquet", b"%%MatrixMarket": ".mtx",
    b"\x89HDF": ".h5ad",
}  # fmt: skip
_GZIP = b"\x1f\x8b"


def add_row_options(option: Callable[..., Any], *, weighted: bool = True) -> None:
    """Add the table of rows, and which of its columns are what."""
    option(
        "file",
        metavar="FILE",
        help=".csv, .tsv or other text, .npy, .npz, .parquet, .mtx, .h5ad, a folder of 10x "
        "Genomics, or - for standard input. Sparse matrices stay sparse with families of counts",
    )
    option("--id", metavar="COLUMN", help="the column that names the rows")
    if weighted:
        option("--weights", metavar="COLUMN", help="the column with the weights of the rows")
    option(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a column to leave out; may be given several times",
    )
    option(
        "--transpose",
        action="store_true",
        help="cluster the columns of an .mtx, .npy or .npz file: cells are columns in the "
        "matrix.mtx of 10x Genomics",
    )
    option("--layer", metavar="NAME", help="the layer of an .h5ad file to cluster, instead of X")
    option(
        "--feature-names",
        metavar="FILE",
        help="a text with one name in a line for each column, such as the words of a matrix",
    )


@contextlib.contextmanager
def named_file(name: str) -> Iterator[Path]:
    """The path of an input; what comes from standard input is kept in a file meanwhile.

    Tables are read more than once: for their layout, for their numbers, and for a mistake.
    """
    if name != STANDARD:
        yield Path(name)
        return
    if sys.stdin is None:
        raise ValueError("there is no standard input: give the name of a file")
    with tempfile.TemporaryDirectory(prefix="fastrbhc-") as folder:
        path = Path(folder, "standard input")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path.rename(path.with_suffix(_suffix_of(path)))


def _suffix_of(path: Path) -> str:
    """The suffix that a file would have, by its first bytes."""
    with path.open("rb") as file:
        start = file.read(16)
    if start.startswith(_GZIP):
        with contextlib.suppress(OSError, EOFError), gzip.open(path) as inner:
            market = inner.read(16).startswith(b"%%MatrixMarket")
            return ".mtx.gz" if market else ".gz"
        return ".gz"
    for beginning, suffix in _BEGINNINGS.items():
        if start.startswith(beginning):
            return suffix
    return ""


def displayed(name: str) -> str:
    """How an input is called in what is printed."""
    return "standard input" if name == STANDARD else Path(name).resolve().name


def with_feature_names(table: Table, path: str | None) -> Table:
    """A table whose columns have the names in a file, one in a line."""
    if path is None:
        return table
    names = names_in(path)
    if len(names) != len(table.columns):
        raise ValueError(
            f"{Path(path).name} has {len(names):,} names, and there are {len(table.columns):,} "
            "columns of values"
        )
    return table._replace(columns=names)


def names_in(path: str) -> list[str]:
    """The lines of a file."""
    from fastrbhc.cli.fast_text import open_text

    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with open_text(Path(path)) as text:
            return [line.rstrip("\r\n") for line in text]
    except UnicodeDecodeError:
        raise ValueError(f"{Path(path).name} is not a text in UTF-8") from None


# Graphs


def add_graph_options(option: Callable[..., Any], alternatives: Callable[..., Any]) -> None:
    """Add ``--connectivity`` or ``--grid``, which exclude each other, and ``--connect``."""
    alternatives(
        "--connectivity",
        metavar="GRAPH",
        help="merge adjacent clusters only: a sparse matrix (.npz, .mtx) with a row and a column "
        "for each row of FILE, or edges (.npy, .csv), two rows counted from 0 in each line",
    )
    alternatives(
        "--grid",
        type=int,
        nargs="+",
        metavar="N",
        help="merge adjacent clusters only: rows are the pixels of an image with this HEIGHT and "
        "WIDTH, row by row; other numbers of axes are possible too. FILE comes before it",
    )
    option(
        "--connect",
        action="store_true",
        help="join the pieces of a graph once each is a single cluster",
    )


def check_graph_file(path: str | None) -> None:
    """Refuse a graph that is not there, before rows are read."""
    if path is not None and not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")


def graph_of(arguments: Any) -> Any:
    """The graph that the options name, as `linkage` takes it; None if there is none."""
    import numpy as np
    from scipy.sparse import issparse

    from fastrbhc import grid
    from fastrbhc._files import Arrays
    from fastrbhc.cli.tables import read_table

    if arguments.grid is not None:
        return grid(*arguments.grid)
    if arguments.connectivity is None:
        return None
    path = Path(arguments.connectivity)
    if path.suffix.lower() in (".npy", ".npz"):
        return Arrays(path).matrix()
    table = read_table(path)
    if issparse(table.values) or table.values.shape[1] != 2:
        return table.values
    edges = table.values.astype(np.int64)
    if (edges != table.values).any():
        row = int(np.flatnonzero((edges != table.values).any(axis=1))[0])
        raise ValueError(
            f"{path.name} has {table.values[row].tolist()} in row {row}: edges are two whole "
            "numbers, rows counted from 0"
        )
    return edges
