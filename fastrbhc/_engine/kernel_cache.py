"""Compiled kernels on disk: found again by the next process, and never stale.

Numba's cache checks only the file that contains the kernel, and keeps one index per function. Here
the names of files contain a digest of all that machine code depends on, so every state of the
package has files of its own; there is one file per signature, and it begins with a checksum.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
from numba.core import caching
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

# Numba's own annotations are recent and partial.
config: Any = numba.config
_CACHE_WANTED = os.environ.get("FASTRBHC_NUMBA_CACHE", "1") != "0"
_PACKAGE = Path(__file__).parents[1]
_DECLARING = re.compile(rb"_engine\.(jit|records)\b")
_WARNED: list[str] = []
_WARNED_OF_DAMAGE: list[str] = []


class Turns(NamedTuple):
    """What a process calls around a compilation, if several of them fill one cache.

    Both are called with the path of the kernel's file.
    """

    begin: Callable[[str], None]  # returns once no other process is compiling the kernel
    end: Callable[[str, bool], None]  # the kernel is on disk; whether this process has compiled it


_TURNS: list[Turns] = []


@contextlib.contextmanager
def taking_turns(turns: Turns) -> Iterator[None]:
    """A context in which no kernel is compiled before ``turns.begin`` has returned."""
    _TURNS.append(turns)
    try:
        yield
    finally:
        _TURNS.pop()


@functools.cache
def _fingerprint() -> bytes:
    """Digest of everything that a compiled kernel may depend on.

    Numba checks only the file that contains the kernel: after a change in another file, or with
    other settings, it would silently load the old machine code.
    """
    digest = hashlib.sha256(f"{numba.__version__};{llvmlite.__version__};".encode())
    for name in ("BOUNDSCHECK", "OPT", "CPU_NAME", "CPU_FEATURES", "DEBUGINFO_DEFAULT"):
        digest.update(f"{name}={getattr(config, name, None)};".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        source, room = path.read_bytes(), path.relative_to(_PACKAGE).parts[0]
        # Kernels come from the engine, families and models, and from modules that declare some.
        if room in ("_engine", "families", "bhc") or _DECLARING.search(source):
            digest.update(source)
    return digest.digest()


def _is_of_the_package(kind: Any) -> bool:
    """Whether all classes in the type of an argument belong to the package.

    Numba identifies a record by its module and class: after its author edits the class, the next
    process would load the machine code of the old one. So kernels for a class of a user's own,
    at any depth of their arguments, are kept in memory only.
    """
    cls = getattr(kind, "instance_class", None)
    if cls is not None and cls.__module__.split(".")[0] != _PACKAGE.name:
        return False
    return all(map(_is_of_the_package, getattr(kind, "types", ())))


class _DamagedError(Exception):
    """A file of the cache is not as it was written."""


class _OneFileEach(IndexDataCacheFile):
    """One file per signature, with the signature's digest in its name, and no index.

    Numba reads an index of all signatures, adds a number to it and writes it back. If two processes
    do so at the same time, one may lose its entry, or both may take the same number. A file begins
    with a digest of its content: the machine code of a damaged one might do anything.

    Files are read from several folders, and written to the first.
    """

    def __init__(self, folders: list[str], filename_base: str, source_stamp: Any) -> None:
        super().__init__(folders[0], filename_base, source_stamp)
        self._folders = folders
        self._base = filename_base

    def save(self, key: Any, data: Any) -> None:
        try:
            self._save_data(self._name(key), (key, data))
        finally:
            if _TURNS:
                _TURNS[-1].end(self._path(key), True)

    def load(self, key: Any) -> Any:
        data = self._read(key)
        if data is None and _TURNS:
            _TURNS[-1].begin(self._path(key))
            data = self._read(key)  # another process may have compiled it in the meantime
            if data is not None:
                _TURNS[-1].end(self._path(key), False)
        return data

    def _read(self, key: Any) -> Any:
        try:
            kept, data = self._load_data(self._name(key))
        except FileNotFoundError:
            return None
        return data if kept == key else None

    def forget(self, key: Any) -> None:
        with contextlib.suppress(OSError):
            Path(self._cache_path, self._name(key)).unlink()

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(_digest(content))
            file.write(content)

    def _load_data(self, name: str) -> Any:
        for folder in self._folders:
            try:
                found = Path(folder, name).read_bytes()
            except OSError:  # none, or not for us to read
                continue
            size = len(_digest(b""))
            if found[:size] != _digest(found[size:]):
                raise _DamagedError(f"{name} in {folder}")
            return pickle.loads(found[size:])
        raise FileNotFoundError(name)

    def flush(self) -> None:
        for path in Path(self._cache_path).glob(f"{self._base}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> str:
        return str(self._data_path(self._name(key)))

    def _name(self, key: Any) -> str:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return f"{self._base}.{digest}.nbc"


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


class _ReadOnly:
    """The last of the places for a cache: kernels may be found in it, but none can be written."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _ReadOnly | None:
        return cls(function, file) if os.path.exists(file) else None

    def ensure_cache_path(self) -> None:
        raise OSError("no folder can be written")

    def get_cache_path(self) -> str:
        return _in_tree(self._py_file)

    def get_source_stamp(self) -> str:
        return ""  # files are named by the content of the source

    def get_disambiguator(self) -> str:
        return str(self._lineno)


def _in_tree(file: str) -> str:
    return os.path.join(os.path.dirname(file), "__pycache__")


def _has_home() -> bool:
    """Whether the user has a folder for caches; without one, Numba would make one named ~."""
    return "XDG_CACHE_HOME" in os.environ or os.path.isabs(os.path.expanduser("~"))


class KernelCacheImpl(CompileResultCacheImpl):
    """Where Numba keeps kernels, and how it names the files."""

    @property
    def _locator_classes(self) -> list[Any]:  # type: ignore[override]
        usual = CompileResultCacheImpl._locator_classes
        return [each for each in usual if _has_home() or "UserWide" not in each.__name__] + [
            _ReadOnly
        ]


class _ContentCache(FunctionCache):
    """Numba's cache on disk, with the state of the package in the file names."""

    _impl_class = KernelCacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        state = hashlib.sha256(_fingerprint() + self._own_file()).hexdigest()[:16]
        name = f"{self._impl.filename_base}-{state}"
        self._cache_file = _OneFileEach(self._folders(), name, state)

    def _own_file(self) -> bytes:
        """The content of the file with the kernel, which need not be part of the package."""
        try:
            return Path(self._impl.locator._py_file).read_bytes()
        except OSError:  # a notebook
            return repr(self._cache_file._source_stamp).encode()

    def _folders(self) -> list[str]:
        """The folder that Numba chose, and those it passed over because they cannot be written.

        Kernels may be in them all the same, as where an administrator has compiled them.
        """
        file, folders = self._impl.locator._py_file, [self._cache_path]
        preferred = [_in_tree(file)]
        if config.CACHE_DIR:
            name = caching._CacheLocator.get_suitable_cache_subpath(file)
            preferred.insert(0, os.path.join(config.CACHE_DIR, name))
        for folder in preferred:
            if folder == self._cache_path:
                break
            folders.append(folder)
        return folders

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Numba would first load the whole compiler, a third of a second per process. Machine code
        # does not need it, and a later compilation loads it when it starts.
        if not all(map(_is_of_the_package, sig)):
            return None
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except MemoryError:
            raise
        except Exception as error:  # a damaged file may raise anything: delete it
            _warn_of_damage(error)
            self._cache_file.forget(self._index_key(sig, target_context.codegen()))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if not all(map(_is_of_the_package, sig)):
            return
        try:
            super().save_overload(sig, data)
            self._forget_old_states()
        except OSError as error:
            _warn_once(f"compiled kernels could not be saved to disk ({error})")

    def _forget_old_states(self) -> None:
        state, week_ago = self._cache_file._source_stamp, time.time() - 7 * 24 * 3600
        for path in Path(self._cache_path).glob(f"{self._impl.filename_base}-*.nbc*"):
            with contextlib.suppress(OSError):  # another process may be quicker
                current = state in path.name and path.suffix == ".nbc"  # others were not finished
                if not current and path.stat().st_mtime < week_ago:
                    path.unlink()


def _warn_once(what: str) -> None:
    if not _WARNED:
        _WARNED.append(what)
        warnings.warn(
            f"fastrbhc: {what}; the first call of each process will be slow. "
            "Set NUMBA_CACHE_DIR to a writable directory.",
            RuntimeWarning,
            stacklevel=3,
        )


def _warn_of_damage(error: Exception) -> None:
    if not _WARNED_OF_DAMAGE:
        _WARNED_OF_DAMAGE.append(repr(error))
        warnings.warn(
            f"fastrbhc: a damaged kernel cache was ignored ({error!r}); what it held is compiled "
            "again.",
            RuntimeWarning,
            stacklevel=3,
        )


def cache_of(function: Callable[..., Any]) -> Any:
    """The cache for the programs of a kernel; None if they are kept in memory only."""
    if not _CACHE_WANTED:
        return None
    try:
        return _ContentCache(function)
    except RuntimeError as error:  # no directory can be written
        _warn_once(str(error))
        return None
