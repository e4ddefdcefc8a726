"""Who wants to know when a program is compiled is told; kernels from the cache tell nothing."""

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
    """Not a fragment, and not a function of somebody else."""
    return event.data["dispatcher"]._compiler.pipeline_class is ProgramCompiler


def listening(begun: Callable[[], None], finished: Callable[[], None]) -> Any:
    """A context in which one function is called before, and one after, a program is compiled.

    Numba tells its listeners of every function that it compiles, so this costs nothing at calls.
    """
    return _event.install_listener("numba:compile", _Listener(begun, finished))
