"""Memory of trees at its peak: of the whole process, and what a row costs beside itself."""

from __future__ import annotations

import gc
from pathlib import Path

import fastrbhc

from .common import FAMILIES, prepared
from .datasets import uniform
from .timing import warm_up


class Ward:
    """Ward's method in the plane, by number of rows."""

    params = ([10_000, 100_000, 1_000_000],)
    param_names = ("n",)
    timeout = 900.0

    def setup(self, n):
        """Compile: the compiler's memory is part of the peak either way."""
        self.X = uniform(n, 2)
        warm_up(self.X, "ward")

    def peakmem_tree(self, n):
        """Resident memory at its peak, with the rows, the interpreter and the compiler in it."""
        fastrbhc.linkage(self.X, "ward")

    def track_each_row(self, n):
        """What the tree takes at its peak over what was there before, a row; Linux only."""
        return grown(lambda: fastrbhc.linkage(self.X, "ward")) / n

    track_each_row.unit = "bytes / row"


class Families:
    """20,000 rows of 3 columns, by family, and 2,000 rows of 32 columns, which are scanned."""

    params = (list(FAMILIES), [3, 32])
    param_names = ("family", "d")
    timeout = 900.0

    def setup(self, family, d):
        """Compile: the compiler's memory is part of the peak either way."""
        self.X = prepared(family, 20_000 if d == 3 else 2_000, d)

    def peakmem_tree(self, family, d):
        """Resident memory at its peak, with the rows, the interpreter and the compiler in it."""
        fastrbhc.linkage(self.X, family)


def grown(work):
    """Bytes by which this process grew at the most while it worked."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    except OSError as error:
        raise NotImplementedError("the peak can be reset on Linux only") from error
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def resident(which):
    """Bytes of this process that are (VmRSS) or were (VmHWM) in memory; Linux only."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) * 1024
    raise NotImplementedError(f"no {which} in /proc/self/status")
