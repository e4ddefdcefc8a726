"""The folder for what does not fit into memory: files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Names of folders that are not finished begin with this.
_UNFINISHED = ".unfinished-"


class ScratchFullError(OSError):
    """The disk of the scratch folder has no room left."""


class TemporaryFolder:
    """A folder that is removed together with the object, or at the end of the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="fastrbhc-"))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write to, which is at the path once the block has ended, and not before.

    If the block fails, nothing is left of it. If another process was faster, its folder stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.parent / f"{_UNFINISHED}{path.name}-{secrets.token_hex(4)}"
    beside.mkdir()
    try:
        with disk_errors(path):
            yield beside
        with contextlib.suppress(FileExistsError):
            _rename(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _rename(beside: Path, path: Path) -> None:
    try:
        os.rename(beside, path)
    except OSError as error:
        if path.is_dir():
            raise FileExistsError from error
        raise


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Say what a full disk means, and which one it is."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        free = shutil.disk_usage(path.parent).free
        raise ScratchFullError(
            error.errno,
            f"there is no room left for {path.name} ({free / 1e9:.1f} GB are free). Give another "
            "folder as scratch=, on a larger disk; what is finished in this one is used again if "
            "the same call is repeated with it",
            str(path.parent),
        ) from error


def sweep(folder: Path) -> None:
    """Remove what interrupted jobs have left unfinished."""
    for path in folder.glob(f"*/{_UNFINISHED}*"):
        shutil.rmtree(path, ignore_errors=True)


def write_json(path: Path, content: Any) -> None:
    """Write a small file."""
    path.write_text(json.dumps(content, indent=1, allow_nan=False), encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a small file."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_slice(path: Path, start: int, stop: int) -> NDArray[Any]:
    """Some rows of an array in an .npy file, without the others."""
    stored = np.load(path, mmap_mode="r", allow_pickle=False)
    return np.array(stored[start:stop])


def write_table(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write arrays of one length as a parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Nearly all numbers differ, so that dictionaries and compression would only cost time.
    pq.write_table(pa.table(columns), path, compression="none", use_dictionary=False)


def read_table(path: Path, *names: str) -> tuple[NDArray[Any], ...]:
    """Some columns of a parquet file."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=list(names))
    return tuple(table.column(name).to_numpy() for name in names)
