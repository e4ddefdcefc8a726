"""Files and folders that are there whole or not at all."""

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
from typing import Any, Never

import numpy as np
from numpy.typing import NDArray

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Names of files and folders that are not finished begin with this.
_UNFINISHED = ".unfinished-"
# Temporary folders that others than their owner still read: they stay until the process ends.
_STAYING: list[TemporaryFolder] = []


class ScratchFullError(OSError):
    """The disk of the scratch folder has no room left."""


class TemporaryFolder:
    """A folder that is removed together with the object, or at the end of the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="fastrbhc-"))
        self.remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def stay(self) -> None:
        """Remove the folder at the end of the process, and not before."""
        if self not in _STAYING:
            _STAYING.append(self)

    def __deepcopy__(self, memo: Any) -> TemporaryFolder:
        return self

    def __reduce__(self) -> Never:
        raise TypeError(
            f"what is in the temporary folder {self.path} cannot be pickled, because the folder "
            "goes when this process ends: write it to a folder that stays, with save(folder) for a "
            "tree, and cut(..., output=folder) for labels"
        )


def _remove(path: Path, process: int) -> None:
    """Remove a folder of this process."""
    if os.getpid() == process:  # and not in a fork, which has the object too
        remove_folder(path)


def remove_folder(path: Path) -> None:
    """Remove a folder and what is in it, if it is there.

    Tasks that were cancelled may still be running. So it gets another name first, under which they
    can neither add to it nor give it a name themselves.
    """
    renamed = path.with_name(f"{_UNFINISHED}removed-{secrets.token_hex(4)}")
    try:
        os.rename(path, renamed)
    except OSError:
        renamed = path
    shutil.rmtree(renamed, ignore_errors=True)


@contextlib.contextmanager
def new_folder(path: Path, full: str | None = None) -> Iterator[Path]:
    """A folder to write to, which is at the path once the block has ended, and not before.

    If the block fails, nothing is left of it. If another process was faster, its folder stays.

    Parameters
    ----------
    path : Path
        Where the folder will be, in one that exists. An empty folder there is replaced.
    full : str, optional
        What to do about a full disk, if that is not one of a scratch folder.
    """
    beside = path.parent / f"{_UNFINISHED}{path.name}-{secrets.token_hex(4)}"
    try:
        with disk_errors(path, full):
            # The folder above it is not made: it is gone if the job was cancelled.
            beside.mkdir()
            yield beside
        with contextlib.suppress(FileExistsError):
            _rename(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _rename(beside: Path, path: Path) -> None:
    try:
        os.rename(beside, path)
    except OSError as error:
        if not path.is_dir():
            raise
        if any(path.iterdir()):
            raise FileExistsError from error
        path.rmdir()  # Windows does not replace it
        os.rename(beside, path)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to write to, which is at the path once the block has ended, and not before."""
    beside = path.with_name(f"{_UNFINISHED}{path.name}-{secrets.token_hex(4)}")
    try:
        with disk_errors(path):
            yield beside
            os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def disk_errors(path: Path, full: str | None = None) -> Iterator[None]:
    """Say what a full disk means, and which one it is."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL or (full is None and isinstance(error, ScratchFullError)):
            raise
        free = ""
        with contextlib.suppress(OSError):
            free = f" ({shutil.disk_usage(path.parent).free / 1e9:.1f} GB are free)"
        full = full or (
            "Give another folder as scratch=, on a larger disk; what is finished in this one is "
            "used again if the same call is repeated with it"
        )
        raise ScratchFullError(
            error.errno, f"there is no room left for {path.name}{free}. {full}", str(path.parent)
        ) from error


def sweep(folder: Path) -> None:
    """Remove what interrupted jobs have left unfinished."""
    for path in [*folder.glob(f"{_UNFINISHED}*"), *folder.glob(f"*/{_UNFINISHED}*")]:
        if path.is_dir():
            remove_folder(path)
        else:
            path.unlink(missing_ok=True)


def copy_files(source: Path, target: Path) -> None:
    """Copy the files of a folder to a new one."""
    # shutil.copytree would hide a full disk in a list of errors.
    target.mkdir()
    for path in source.iterdir():
        shutil.copyfile(path, target / path.name)


def write_json(path: Path, content: Any) -> None:
    """Write a small file."""
    with new_file(path) as file:
        file.write_text(json.dumps(content, indent=1, allow_nan=False), encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a small file with named values."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: it does not hold names and values")
    return content


def write_array(path: Path, values: NDArray[Any]) -> None:
    """Write an array to an .npy file."""
    # numpy.save does not say why it has failed, if the disk is full.
    values = np.ascontiguousarray(values)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(values))
        write_values(file, values)


def write_values(file: Any, values: NDArray[Any]) -> None:
    """Write the numbers of a contiguous array to an open file."""
    if values.size:
        file.write(values.reshape(-1).view(np.uint8).data)


def compact(numbers: NDArray[np.int64]) -> NDArray[Any]:
    """Whole numbers in 32 bits, if they fit."""
    fits = numbers.size == 0 or max(int(numbers.max()), -int(numbers.min())) < 2**31
    return numbers.astype(np.int32) if fits else numbers


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

    try:
        table = pq.read_table(path, columns=list(names))
        return tuple(table.column(name).to_numpy() for name in names)
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "a file of the tree is gone", str(path)) from None
    except (ValueError, KeyError, OSError) as error:
        if getattr(error, "errno", None):
            raise
        raise ValueError(f"{path} is damaged: {error}") from error
