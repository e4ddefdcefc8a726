"""Speed as a ratio: on a noisy machine the only number that keeps."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def ratio(peer: Callable[[], object], ours: Callable[[], object], repeats: int = 5) -> float:
    """Median of peer's time over ours, measured in turns."""
    return statistics.median(_seconds(peer) / _seconds(ours) for _ in range(repeats))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
