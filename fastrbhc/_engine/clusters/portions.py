"""Work in portions, so that it can be interrupted."""

from __future__ import annotations

from collections.abc import Iterator

# Entries of rows, or of their scatter, that one call of a kernel processes.
_PORTION = 4_000_000


def portions(n: int, work_per_row: int) -> Iterator[tuple[int, int]]:
    """Runs of rows, each a fraction of a second of work: a kernel cannot be interrupted."""
    size = max(1, _PORTION // work_per_row)
    for start in range(0, n, size):
        yield start, min(n, start + size)
