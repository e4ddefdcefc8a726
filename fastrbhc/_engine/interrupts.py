"""Ctrl-C while the compiler runs: noted at once, answered between two kernels.

Python runs the handler of a signal at whatever it executes next. While a kernel is compiled, that
may be a callback of LLVM or a finaliser, where Python prints the exception and goes on; then Ctrl-C
is lost. It may also be the step between taking the compiler's lock and the block that returns it;
then no other thread can ever compile. So while the main thread compiles, the handler in place
only notes the signal, and the one it replaces is called at the next of the points where the
compiler can be left: see `answer`.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from numba.core.compiler_lock import global_compiler_lock


class _Noted:
    """The handler in place while the main thread compiles."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler
        self.signals: list[tuple[int, FrameType | None]] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if global_compiler_lock.is_locked():
            self.signals.append((number, frame))
        else:  # waiting while another thread compiles
            self.handler(number, frame)

    def answer(self) -> None:
        while self.signals:
            self.handler(*self.signals.pop(0))


class _Stopped(BaseException):
    """Takes the exception of a handler out of the compiler, which tries to explain others."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """A context in which Ctrl-C waits for `answer`, or for the end.

    Nothing changes outside the main thread, which alone receives signals, and where the handler is
    not a function of Python: an application around the interpreter may have its own.
    """
    handler = _handler()
    if handler is None:
        yield
        return
    noted = _Noted(handler)
    try:
        signal.signal(signal.SIGINT, noted)
        yield
    except _Stopped as stopped:
        raise stopped.error from None
    finally:
        if signal.getsignal(signal.SIGINT) is noted:  # or the handler has set another
            signal.signal(signal.SIGINT, handler)
        noted.answer()


def answer() -> None:
    """Answer a Ctrl-C that was noted, at a point where nothing is half done."""
    if _in_main_thread():
        noted = signal.getsignal(signal.SIGINT)
        if isinstance(noted, _Noted):
            try:
                noted.answer()
            except BaseException as error:
                raise _Stopped(error) from None


def _handler() -> Any:
    """The handler to replace, or None to leave it in place."""
    if not _in_main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, _Noted) or not callable(handler):
        return None
    try:
        signal.signal(signal.SIGINT, handler)
    except ValueError:  # in an interpreter beside the main one, as web servers have
        return None
    return handler


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
