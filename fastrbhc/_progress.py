"""A progress bar for the stages of a long job."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class Progress:
    """Called with (stage, number done); draws one tqdm bar a stage, or nothing."""

    def __init__(self, wanted: bool, totals: dict[str, int]) -> None:
        self._wanted = wanted
        self._totals = totals
        self._stage: str | None = None
        self._bar: Any = None

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
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
