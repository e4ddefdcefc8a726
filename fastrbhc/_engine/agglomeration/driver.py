"""The loop around a kernel that runs until it needs Python.

A kernel cannot be interrupted. So it is called for a fraction of a second at a time and keeps its
state in records. Its return value says whether it has finished, has used up its budget, or requests
a step that only Python can do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

# Return values of such a kernel.
FINISHED, OUT_OF_BUDGET, WANTS_REBUILD, WANTS_LOOK_UP, WANTS_MERGES = 0, 1, 2, 3, 4

# Approximate duration of one call of a kernel, so that Ctrl-C and the progress bar react well
# within half a second.
_SECONDS = 0.1

# Longer batches of look-ups or merges are distributed by Python, which can be interrupted.
LONG_SECONDS = 0.1

# Pieces of a batch per thread of a team: enough to keep all threads busy to the end.
PIECES_PER_THREAD = 4


def run_interruptibly(
    advance: Callable[[int], int],
    requests: Mapping[int, Callable[[], None]],
    report: Callable[[], None],
) -> None:
    """Call ``advance(budget)`` until it has finished, and serve its requests in between.

    The budget counts pairs of clusters times columns, and adapts to the clock. The result does not
    depend on how the work is divided.
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
