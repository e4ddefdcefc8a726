"""Files: outputs that are written whole or not at all, and arrays that are read with care."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
import shutil
import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fastrbhc._containers import check_memory, sound_sparse

# Errors that mean: the file may be written to, but not replaced. It may be mounted on its own, or
# its folder is somebody else's.
_NOT_REPLACED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV}


@contextlib.contextmanager
def replacing(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that replaces the one at the path when the block ends.

    It is written beside, under a temporary name, and renamed at the end. If the block fails or is
    interrupted, what was at the path is as it was, and nothing is left beside it. Links are
    followed, and permissions are kept. Devices and pipes, such as ``/dev/stdout``, are written to
    directly, and so is a file that cannot be replaced. Errors name the path.

    Parameters
    ----------
    path : str or Path
        Where to write.
    mode : {"w", "wb"}, default="w"
        Text, as UTF-8 without translation of line ends, or bytes.

    Yields
    ------
    file object

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> with replacing(path) as file:
    ...     _ = file.write("id,cluster\\n")
    ...     path.exists()
    False
    >>> path.read_text()
    'id,cluster\\n'
    """
    with _named(path):
        target = _target(os.fspath(path))
        if isinstance(target, int) or not _is_ordinary(target):
            if sys.stdout is not None:
                sys.stdout.flush()  # what was printed before comes first
            with _opened(os.dup(target) if isinstance(target, int) else target, mode) as file:
                yield file
            return
        if os.path.exists(target) and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
        name = f".fastrbhc-{secrets.token_hex(8)}.part"
        beside = os.path.join(os.path.dirname(target), name)
        try:
            number = _created(beside, target)
            with _opened(target if number is None else number, mode) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # a full disk may show only now
            if number is not None:
                _replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise


def _created(beside: str, target: str) -> int | None:
    """A new file; None if none can be made there, though the target can be written to."""
    try:
        # Unlike those of the module tempfile, it gets the usual permissions.
        return os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        if error.errno not in _NOT_REPLACED or not os.path.exists(target):
            raise
        return None


def save_picture(figure: Any, path: str | Path | IO[bytes]) -> None:
    """Write a figure of matplotlib; its suffix is its format, PNG without one.

    An open file gets a PNG.
    """
    if not isinstance(path, str | Path):
        figure.savefig(path, format="png")
        return
    suffix = Path(path).suffix.lower().removeprefix(".")
    with replacing(path, "wb") as file:
        figure.savefig(file, format=suffix or "png")


def _opened(file: int | str, mode: str) -> IO[Any]:
    if "b" in mode:
        return open(file, mode)
    return open(file, mode, encoding="utf-8", newline="")


def _replace(beside: str, target: str) -> None:
    """Put a finished file in the place of another, with the permissions of that one."""
    with contextlib.suppress(FileNotFoundError):
        old = os.stat(target)
        os.chmod(beside, stat.S_IMODE(old.st_mode))
        if hasattr(os, "chown"):
            with contextlib.suppress(OSError):  # only root may give a file away
                os.chown(beside, old.st_uid, old.st_gid)
    try:
        os.replace(beside, target)
    except OSError as error:
        if error.errno not in _NOT_REPLACED or not os.path.exists(target):
            raise
        shutil.copyfile(beside, target)
        os.unlink(beside)


def _target(path: str) -> str | int:
    """The file behind links, or the number of one that this process has open already."""
    path = os.path.abspath(path)
    for _ in range(40):  # as many links as Linux follows
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        # /dev/stdout and the like: opening them anew would write over what was printed before.
        if name.isdecimal() and folder in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
            return int(name)
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            return path
        path = os.path.join(folder, os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _is_ordinary(path: str) -> bool:
    """Whether it is a file, or will be one: not a device, a pipe or a folder."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True


@contextlib.contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Name the file in errors that come without a name, as that of a full disk does."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise OSError(f"{os.fspath(path)}: {error}") from error
        if error.filename is None or str(error.filename).endswith(".part"):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


class Arrays:
    """The arrays in an .npy or .npz file, each checked before it is read.

    A file may promise more than it holds, and what it promises is allocated first. So the header is
    compared with the size of the file, and with the memory of the machine. Pickles are refused.

    Parameters
    ----------
    path : Path
        The file; an array of an .npy file is named X.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            start = file.read(6)
        self._is_archive = start[:2] == b"PK"
        if not self._is_archive and start != np.lib.format.MAGIC_PREFIX:
            raise _FileError(f"{path.name} cannot be read: it is neither an .npy nor an .npz file")
        if not self._is_archive:
            self.names = ["X"]
            return
        with self._reading(), zipfile.ZipFile(path) as archive:
            self.names = [
                name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")
            ]

    def __getitem__(self, name: str) -> NDArray[Any]:
        with self._reading():
            if not self._is_archive:
                with self._path.open("rb") as file:
                    return self._read(file, self._path.stat().st_size)
            with zipfile.ZipFile(self._path) as archive:
                member = archive.getinfo(f"{name}.npy")
                with archive.open(member) as part:
                    return self._read(part, member.file_size)

    def matrix(self) -> Any:
        """X, or a sparse matrix in CSR form, or the only array."""
        if "X" in self.names:
            return self["X"]
        if {"data", "shape"} <= set(self.names):
            return self.sparse().tocsr()
        if len(self.names) == 1:
            return self[self.names[0]]
        found = f"none of its arrays {', '.join(self.names)}" if self.names else "no array in it"
        raise ValueError(f"{self._path.name} cannot be read: {found} is named X")

    def sparse(self) -> Any:
        """The sparse matrix whose parts are here, as SciPy's save_npz names them."""
        with self._reading():
            shape, kind = self["shape"], self._format()
            if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
                raise ValueError(f"shape is {shape.tolist()}, expected two whole numbers")
            wanted = _PARTS[kind]
            missing = [name for name in ("data", *wanted) if name not in self.names]
            if missing:
                raise ValueError(f"there is no {' and no '.join(missing)} of a {kind} matrix in it")
            parts = [self[name] for name in wanted]
            for name, part in zip(wanted, parts, strict=True):
                if part.dtype.kind not in "iu":
                    raise ValueError(f"{name} is an array of {part.dtype}, not of whole numbers")
            data = self["data"]
            if data.dtype.kind not in "biuf":
                raise ValueError(f"data is an array of {data.dtype}, not of numbers")
            given = (data, tuple(parts)) if kind == "coo" else (data, *parts)
            # SciPy compares the lengths of the parts now, and follows no index.
            matrix = getattr(sparse, f"{kind}_array")(given, shape=tuple(shape.tolist()))
        return sound_sparse(matrix, self._path.name, fits_memory=False)

    def _format(self) -> str:
        if "format" not in self.names:
            return "csr"
        found = self["format"]
        text = found.item() if found.ndim == 0 else found.tolist()
        name = text.decode("ascii", "replace") if isinstance(text, bytes) else str(text)
        if name not in _PARTS:
            raise ValueError(f"its format {name!r} is none of {', '.join(_PARTS)}")
        return name

    def _read(self, file: IO[bytes], size: int) -> NDArray[Any]:
        version = np.lib.format.read_magic(file)
        header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if header is None:
            raise ValueError(f"version {version} of the format is not for plain numbers")
        shape, _, dtype = header(file)
        if dtype.hasobject:
            raise ValueError(
                "it holds Python objects, which are not read because they could run programs. "
                "Save numbers instead"
            )
        if any(n < 0 for n in shape):
            raise ValueError(f"its shape is {shape}")
        promised = math.prod(shape) * dtype.itemsize
        if promised > size - file.tell():
            raise ValueError(
                f"it is cut short: an array of shape {shape} takes {promised:,} bytes, and it "
                f"has {size - file.tell():,}"
            )
        check_memory(shape, self._path.name)
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Any error of the libraries that read a damaged file, as one that names the file."""
        try:
            yield
        except (_FileError, MemoryError):
            raise
        except OSError as error:
            if error.filename is not None:
                raise
            raise self._error(error) from None
        except Exception as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> ValueError:
        return _FileError(f"{self._path.name} cannot be read: {error}")


class _FileError(ValueError):
    """An error that names its file already."""


# The parts of a sparse matrix beside its data, by format.
_PARTS = {
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}
