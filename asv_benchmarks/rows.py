"""Rows of the tables that are printed and saved, and a description of the machine."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import scipy

HEAD = "| work | measure | reached | to reach | seconds | runs |\n|---|---|---|---|---|---|"


class Row(NamedTuple):
    """One line of a table."""

    work: str
    measure: str
    reached: str
    to_reach: str
    seconds: float | None = None
    runs: int = 1
    value: float | None = None  # what was reached, as a number in the unit of the target

    def __str__(self) -> str:
        seconds = "" if self.seconds is None else f"{self.seconds:.3g}"
        cells = (self.work, self.measure, self.reached, self.to_reach, seconds, str(self.runs))
        return f"| {' | '.join(cells)} |"


def printed(rows: Iterable[Row]) -> Iterator[Row]:
    """The same rows, each printed as soon as it is measured."""
    print(HEAD, flush=True)
    for row in rows:
        print(row, flush=True)
        yield row


def machine() -> str:
    """The machine, the versions and the date."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return (
        f"{name}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}, SciPy {scipy.__version__}; "
        f"{datetime.date.today()}."
    )


def load() -> str:
    """The load of the machine in the last minutes, if the system reports it."""
    try:
        return f"Load average of the five minutes before: {os.getloadavg()[1]:.1f}."
    except (AttributeError, OSError):
        return ""
