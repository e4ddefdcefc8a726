"""The one place for compiler options, for the kernels' cache and for contracts.

A *kernel* is a jitted function. A *contract* is a function whose implementation
belongs to the record it is called with: ``divergence(family, ...)`` runs the method
``divergence`` of that family's class, in plain Python and in jitted code alike.
Records are ``NamedTuple`` classes, because that is the one way of handing a set of
functions to a kernel that Numba can also keep on disk.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import overload as _overload

# Numba's own annotations are recent and partial.
config: Any = numba.config
overload: Any = _overload

# Named even where it is the default: what a function leaves open, Numba takes from the first
# caller that is compiled, and exact values would depend on who asked for them first.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": False,
    "no_cfunc_wrapper": True,  # nobody calls kernels from C: a tenth of the time to compile
}
# Numba counts references to arrays, also to those in records: some twenty locked instructions each
# way for every call that is not inlined, a quarter of the time of a tree with shapes. What is
# called from the inside allocates nothing and keeps nothing, so there it is turned off; kernels
# that are called from such code take this over from it.
_BORROWED: dict[str, Any] = {"_nrt": False}
_CACHE_WANTED = os.environ.get("FASTRBHC_NUMBA_CACHE", "1") != "0"
_PACKAGE = Path(__file__).parents[1]
_KERNELS: list[Any] = []
_WARNED: list[str] = []


@functools.cache
def _fingerprint() -> bytes:
    """Digest of all that a compiled kernel may depend on.

    Numba looks only at the file that holds the kernel: a change in another file, or
    the same file built with other settings, would silently bring the old machine code.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for name in ("BOUNDSCHECK", "OPT", "CPU_NAME", "CPU_FEATURES", "DEBUGINFO_DEFAULT"):
        digest.update(f"{name}={getattr(config, name, None)};".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


class _ContentCache(FunctionCache):
    """Numba's cache on disk, with names of files that stand for one state of the package.

    Numba writes the index before the code it points to. Were the names those of another state, a
    second process could in between load the other state's code.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        own_file = repr(self._cache_file._source_stamp).encode()
        state = hashlib.sha256(_fingerprint() + own_file).hexdigest()[:16]
        name = f"{self._impl.filename_base}-{state}"
        self._cache_file = IndexDataCacheFile(self._cache_path, name, state)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a damaged file may raise anything: start it anew
            _warn_once(f"a damaged kernel cache was passed over ({error!r})")
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
            self._forget_old_states()
        except OSError as error:
            _warn_once(f"compiled kernels could not be kept on disk ({error})")

    def _forget_old_states(self) -> None:
        state, week_ago = self._cache_file._source_stamp, time.time() - 7 * 24 * 3600
        for path in Path(self._cache_path).glob(f"{self._impl.filename_base}-*.nb[ic]"):
            with contextlib.suppress(OSError):  # another process may be quicker
                if state not in path.name and path.stat().st_mtime < week_ago:
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


def fused_kernel(function: Callable[..., Any]) -> Any:
    """A kernel whose products and sums may be fused, for bounds that do not mind the last bit."""
    return _compiled(function, {**_OPTIONS, "fastmath": {"contract"}})


def loose_kernel(function: Callable[..., Any]) -> Any:
    """The same, and sums in any order: four times as fast for a sum of products."""
    return _compiled(function, {**_OPTIONS, "fastmath": {"contract", "reassoc"}})


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function with the package's options and keep the result on disk.

    Kernels let go of the interpreter lock, so Python threads run them side by side. That is all
    the parallelism there is: Numba's own (``prange``) takes no records inside records, starts
    thread pools that a forked child cannot use, and can abort when two threads enter it.
    """
    return _compiled(function, _OPTIONS)


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that becomes part of its callers, for what contracts have in common."""
    return _compiled(function, {**_OPTIONS, "forceinline": True})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    compiled = numba.njit(**options)(function)
    if _CACHE_WANTED and not config.DISABLE_JIT:
        try:
            compiled._cache = _ContentCache(function)
            _KERNELS.append(compiled)
        except RuntimeError as error:  # no directory can be written
            _warn_once(str(error))
    return compiled


def contract(declaration: Callable[..., Any]) -> Any:
    """Turn a declaration into a call of the record's own method of that name."""
    return _contract(declaration, {**_OPTIONS, **_BORROWED})


def inlined_contract(declaration: Callable[..., Any]) -> Any:
    """The same, for what is called millions of times.

    A record of arrays is some eighty words, which a call that is not inlined copies: inlining
    the bounds halved the time of a query. It also multiplies what has to be compiled.
    """
    return _contract(declaration, {**_OPTIONS, **_BORROWED, "forceinline": True})


def open_contract(declaration: Callable[..., Any]) -> Any:
    """The same for methods that users write, who may allocate an array or two."""
    return _contract(declaration, {**_OPTIONS, "_nrt": True, "forceinline": True})


def _contract(declaration: Callable[..., Any], options: dict[str, Any]) -> Any:
    name = declaration.__name__

    @functools.wraps(declaration)
    def call(record: Any, *arguments: Any) -> Any:
        return getattr(type(record), name)(record, *arguments)

    @overload(call, strict=False, jit_options=options)
    def implementation(record: Any, *arguments: Any) -> Any:
        return getattr(getattr(record, "instance_class", None), name, None)

    return call


def length(known: tuple[int, ...], otherwise: int) -> int:
    """How many there are, as a constant of the kernel if ``known`` has that many entries.

    A loop of known length is unrolled and kept in registers: with two or three columns a query
    of the kd-tree takes less than half the time. An empty tuple leaves the length open.
    """
    return len(known) or otherwise


@overload(length, strict=False, jit_options=_OPTIONS)
def _length(known: Any, otherwise: Any) -> Any:
    count = len(known)
    if count:
        return lambda known, otherwise: count
    return lambda known, otherwise: otherwise


@contextlib.contextmanager
def compiling_for(record: Any) -> Iterator[None]:
    """Keep kernels for a record defined outside the package in memory only.

    Numba names a record by its module and class: after its author edits the class,
    the next process would be handed the machine code of the old one.
    """
    if type(record).__module__.split(".")[0] == "fastrbhc" or not _KERNELS:
        yield
        return
    for compiled in _KERNELS:
        compiled._cache.disable()
    try:
        yield
    finally:
        for compiled in _KERNELS:
            compiled._cache.enable()
