"""The loop around a kernel that works until it asks Python for something.

A kernel cannot be interrupted. So it is called for a fraction of a second at a time, keeps its
state in records, and says when it returns whether it has finished, was only out of budget, or wants
something done that only Python does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

# What a kernel says when it returns.
FINISHED, OUT_OF_BUDGET, WANTS_REBUILD, WANTS_LOOK_UP, WANTS_MERGES = 0, 1, 2, 3, 4

# How long a kernel is called for, about, so that Ctrl-C and the progress bar are answered well
# within half a second.
_SECONDS = 0.1


def run_interruptibly(
    advance: Callable[[int], int],
    requests: Mapping[int, Callable[[], None]],
    report: Callable[[], None],
) -> None:
    """Call ``advance(budget)`` until it has finished, and do what it asks for in between.

    The budget counts pairs of columns looked at, and adapts to the clock. How the work is cut never
    changes its result.
    """
    budget = 1_000_000
    while True:
        start = time.perf_counter()
        status = advance(budget)
        report()
        if status == FINISHED:
            return
        if status != OUT_OF_BUDGET:
            requests[status]()
            continue
        elapsed = max(time.perf_counter() - start, 1e-4)
        budget = max(1, int(budget * min(max(_SECONDS / elapsed, 0.25), 4.0)))
