"""Callbacks before and after a program is compiled; none for kernels loaded from the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import event

from fastrbhc._engine.compiler import ProgramCompiler

# Numba's own annotations are recent and partial.
_event: Any = event


class _Listener(event.Listener):
    def __init__(self, begun: Callable[[], None], finished: Callable[[], None]) -> None:
        self._begun = begun
        self._finished = finished

    def on_start(self, event: Any) -> None:
        if _is_program(event):
            self._begun()

    def on_end(self, event: Any) -> None:
        if _is_program(event):
            self._finished()


def _is_program(event: Any) -> bool:
    """Whether a program of this package is compiled, not a fragment or any other function."""
    return event.data["dispatcher"]._compiler.pipeline_class is ProgramCompiler


def listening(begun: Callable[[], None], finished: Callable[[], None]) -> Any:
    """A context in which ``begun`` and ``finished`` are called around each compilation.

    Numba notifies its listeners of compilations only, so calls of kernels cost nothing extra.
    """
    return _event.install_listener("numba:compile", _Listener(begun, finished))
