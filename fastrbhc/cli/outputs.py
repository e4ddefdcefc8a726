"""Output files: checked before the work, not after it."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def check_drawing() -> None:
    """Reject plots if matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("--plot needs matplotlib: pip install fastrbhc[plot]")


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
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"{path} is a directory: give the name of a file to write")
    if not target.absolute().parent.is_dir():
        raise ValueError(f"there is no directory {target.parent} to write {target.name} to")
