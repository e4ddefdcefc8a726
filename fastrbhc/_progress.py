"""Progress bars for the stages of a long job, and a count of the kernels that it compiles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any

from fastrbhc._engine.compilations import listening

_LISTENING: list[Any] = []
_NOTHING = nullcontext()


def compiling_shown(wanted: bool) -> AbstractContextManager[None]:
    """Say that kernels are being compiled, and how many so far; nothing if all are on disk.

    The total is not known beforehand. Inside another such context this one is silent.
    """
    return _compiling_shown() if wanted and not _LISTENING else _NOTHING


@contextmanager
def _compiling_shown() -> Iterator[None]:
    bars: list[Any] = []

    def begun() -> None:
        if not bars:
            from tqdm.auto import tqdm

            form = "{desc}: {n_fmt} [{elapsed}]"
            bars.append(tqdm(desc="compiling kernels", bar_format=form, mininterval=0.0))

    def finished() -> None:
        for bar in bars:  # none, if another thread had begun before
            bar.update()

    _LISTENING.append(bars)
    try:
        with listening(begun, finished):
            yield
    finally:
        _LISTENING.remove(bars)
        for bar in bars:
            bar.close()


class Progress:
    """Called with (stage, number done); draws one tqdm bar per stage, or nothing."""

    def __init__(self, wanted: bool, totals: dict[str, int]) -> None:
        self._wanted = wanted
        self._totals = totals
        self._stage: str | None = None
        self._bar: Any = None
        self._compiling = compiling_shown(wanted)

    def __call__(self, stage: str, done: int) -> None:
        if not self._wanted:
            return
        if stage != self._stage:
            from tqdm.auto import tqdm

            self.close()
            self._stage = stage
            self._bar = tqdm(total=self._totals[stage], desc=stage, unit_scale=True)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Progress:
        self._compiling.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        self._compiling.__exit__(kind, error, trace)
