"""How many cores this process may use."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba

# Numba's own annotations are recent and partial.
_config: Any = numba.config

_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def available_cores() -> int:
    """NUMBA_NUM_THREADS, if it is set; otherwise the cores that the process is allowed to use.

    These are the cores that it may run on, but no more than the share of time that a container
    grants: threads beyond that would only wait for each other.
    """
    wanted, usual = int(_config.NUMBA_NUM_THREADS), int(_config.NUMBA_DEFAULT_NUM_THREADS)
    if "NUMBA_NUM_THREADS" in os.environ or wanted != usual:
        return wanted
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else usual
    return max(1, min(allowed, usual, _granted()))


def numba_threads() -> int:
    """The most threads that Numba's own parallel kernels can have in this process."""
    return int(_config.NUMBA_NUM_THREADS)


@functools.cache
def _granted() -> int:
    """The least of all limits, rounded up; looked up once, which takes longer than a small tree."""
    return math.ceil(min(_quotas(_GROUPS, _OWN_GROUPS), default=os.cpu_count() or 1))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """The limits of Linux on the number of cores, of all groups that the process belongs to."""
    try:
        lines = own.read_text().splitlines()
    except OSError:  # another system
        return
    for line in lines:
        _, kinds, name = line.split(":", 2)
        if not kinds:
            for folder in _upwards(groups, name):
                yield from _quota(folder / "cpu.max")
        elif "cpu" in kinds.split(","):
            for folder in _upwards(groups / "cpu", name):
                yield from _quota(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us")


def _upwards(root: Path, name: str) -> Iterator[Path]:
    """The folder of a group, and of those around it; a container may see the outermost only."""
    folder = root / name.lstrip("/")
    yield from (each for each in (folder, *folder.parents) if each.is_relative_to(root))


def _quota(*files: Path) -> Iterator[float]:
    """Microseconds granted per period of so many microseconds; nothing if there is no limit."""
    try:
        granted, period = (int(word) for file in files for word in file.read_text().split())
    except (OSError, ValueError):  # no such file, or "max"
        return
    if granted > 0 and period > 0:
        yield granted / period
