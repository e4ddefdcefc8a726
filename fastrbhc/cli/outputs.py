"""Output files: checked before the work, not after it."""

from __future__ import annotations

import os
from pathlib import Path

# Formats that `--tree` does not write: a name that ends so is a mistake.
_NO_TREE = {
    ".csv", ".tsv", ".txt", ".npz", ".parquet", ".xlsx",
    ".png", ".jpg", ".jpeg", ".svg", ".pdf",
    ".tre", ".tree", ".nw", ".nex", ".nexus",
}  # fmt: skip


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


def check_outputs(names: str, *paths: str | None, read: str | None = None) -> list[str]:
    """The requested output files: all different, and none of them an input."""
    outputs = [path for path in paths if path is not None]
    for path in outputs:
        check_writable(path)
    files = [Path(path).resolve() for path in (read, *outputs) if path is not None]
    if len(set(files)) < len(files):
        raise ValueError(f"{names} have to be different files")
    return outputs


def check_writable(path: str) -> None:
    """Reject a path that cannot be written to."""
    if path in ("", "-"):
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
