"""Outputs: checked before the work, not after it; and what is said to people beside them."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

# The name of standard output, and of standard input.
STANDARD = "-"
# Formats that `--tree` does not write: a name that ends so is a mistake.
_NO_TREE = {
    ".csv", ".tsv", ".txt", ".npz", ".parquet", ".xlsx",
    ".png", ".jpg", ".jpeg", ".svg", ".pdf",
    ".tre", ".tree", ".nw", ".nex", ".nexus",
}  # fmt: skip
# And those that `--labels` does not write.
_NO_LABELS = {
    ".npy", ".npz", ".parquet", ".xlsx", ".json", ".html", ".nwk", ".newick",
    ".png", ".jpg", ".jpeg", ".svg", ".pdf", ".gz",
}  # fmt: skip


def add_talk_options(option: Callable[..., Any]) -> None:
    """Add ``--json`` and ``--quiet``."""
    option(
        "--json",
        action="store_true",
        help="print the result as one JSON object on standard output, and all else on standard "
        "error",
    )
    option("--quiet", "-q", action="store_true", help="print results and errors only")


def speaker(arguments: Any, *outputs: str | None) -> Callable[[object], None]:
    """A function that prints lines for people, where no result goes."""
    if arguments.quiet:
        return lambda line: None
    taken = arguments.json or STANDARD in outputs
    return lambda line: print(line, file=sys.stderr if taken else sys.stdout)


def print_json(content: dict[str, Any]) -> None:
    """Print an object on one line; numbers that JSON does not have are null."""
    print(json.dumps({key: _finite(value) for key, value in content.items()}, allow_nan=False))


def _finite(value: Any) -> Any:
    number = isinstance(value, float)
    return None if number and not float("-inf") < value < float("inf") else value


@contextlib.contextmanager
def writing(path: str, mode: str = "w") -> Iterator[IO[Any]]:
    """Open an output: a file that is written whole or not at all, or standard output."""
    if path != STANDARD:
        from fastrbhc._files import replacing

        with replacing(path, mode) as file:
            yield file
        return
    yield sys.stdout.buffer if "b" in mode else sys.stdout
    sys.stdout.flush()


def check_drawing(path: str, *, required: bool = True) -> None:
    """Reject plots if matplotlib is missing, or does not know the format of the picture."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        if required:
            raise ValueError("--plot needs matplotlib: pip install fastrbhc[plot]") from None
        return
    known = FigureCanvasBase.get_supported_filetypes()
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix and suffix not in known:
        raise ValueError(
            f"{path}: pictures cannot be written as .{suffix}. Give a name that ends in "
            f"{', '.join(f'.{name}' for name in sorted(known))}"
        )


def check_tree_name(path: str) -> None:
    """Reject the name of a tree that ends as another kind of file does."""
    if Path(path).suffix.lower() in _NO_TREE:
        raise ValueError(
            f"{path}: trees are not written as {Path(path).suffix}. Give a name that ends in .nwk "
            "or .newick for Newick, .json for JSON, .html for a page to look at, or .npy for "
            "SciPy's linkage matrix"
        )


def check_labels_name(path: str) -> None:
    """Reject the name of a table of labels that ends as another kind of file does."""
    if Path(path).suffix.lower() in _NO_LABELS:
        raise ValueError(
            f"{path}: labels are not written as {Path(path).suffix}. Give a name that ends in "
            ".csv, or in .tsv for tabs"
        )


def check_outputs(names: str, *paths: str | None, read: str | None = None) -> list[str]:
    """The requested output files: all different, and none of them an input.

    One of them may be standard output.
    """
    outputs = [path for path in paths if path is not None]
    for path in outputs:
        check_writable(path, or_standard=True)
    if outputs.count(STANDARD) > 1:
        raise ValueError(f"only one of {names} can be - for standard output")
    named = [path for path in (read, *outputs) if path not in (None, STANDARD)]
    files = [Path(path).resolve() for path in named if path is not None]
    if len(set(files)) < len(files):
        raise ValueError(f"{names} have to be different files")
    return [path for path in outputs if path != STANDARD]


def check_writable(path: str, *, or_standard: bool = False) -> None:
    """Reject a path that cannot be written to."""
    if path == STANDARD and or_standard:
        return
    if path in ("", STANDARD):
        raise ValueError(
            f"{path!r} is no name of a file to write; /dev/stdout stands for standard output"
        )
    target = Path(path)
    if target.is_dir() or path.endswith(("/", os.sep)):
        raise ValueError(f"{path} is a directory: give the name of a file to write")
    if not target.absolute().parent.is_dir():
        raise ValueError(f"there is no directory {target.parent} to write {target.name} to")
    place = target if target.exists() else target.absolute().parent
    if not os.access(place, os.W_OK):
        raise ValueError(f"{path} cannot be written: there is no permission to")
