"""First calls, each in a process of its own, and the yardstick of compile times beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

_HERE = Path(__file__).resolve().parents[1]
# Functions of the module time. Where others use the machine the processor's time is the one that
# keeps; it says as much, as to compile takes one thread.
ELAPSED, PROCESSOR = "perf_counter", "process_time"


class Call(NamedTuple):
    """A call whose first time is of interest."""

    rows: str  # a name in first_call.ROWS
    family: str
    n: int = 1_000
    d: int = 3
    function: str = "linkage"
    options: Mapping[str, Any] = MappingProxyType({})


class Setting(NamedTuple):
    """What all processes of a run share."""

    package: Path  # the checkout whose fastrbhc is measured
    clock: str = ELAPSED


class Times(NamedTuple):
    """What one process measured, in seconds."""

    first: float
    later: float

    @property
    def start(self) -> float:
        """What only the first call has to do: compile, or read what was compiled."""
        return self.first - self.later


class Cold(NamedTuple):
    """A first call with an empty cache."""

    seconds: float
    yardstick: float  # Y in seconds, from a process before and one after

    @property
    def ratio(self) -> float:
        """Our seconds over Y."""
        return self.seconds / self.yardstick


WARD = Call("normal", "ward")
POISSON = Call("counts", "poisson")
FULL_COVARIANCE = Call("blobs", "gaussian")
CALLS = {
    "Ward 1,000 × 3": WARD,
    "Poisson 1,000 × 3": POISSON,
    "full covariance 1,000 × 3": FULL_COVARIANCE,
    "full covariance 10,000 × 3, audit": FULL_COVARIANCE._replace(
        n=10_000, options={"audit": True}
    ),
    "BHC gaussian 1,000 × 3": FULL_COVARIANCE._replace(function="bhc_linkage"),
}
LONGER = WARD._replace(n=10_000)  # long enough for kernels that know the number of columns


def cold(call: Call, cache: Path, setting: Setting) -> Cold:
    """A first call with a cache that is empty, and full then."""
    return _beside_yardstick(lambda: times(call, cache, setting).first, setting)


def another_number_of_columns(cache: Path, setting: Setting) -> Cold:
    """What a fourth column costs a process, once another one has compiled for three."""
    times(LONGER, cache, setting)
    return _beside_yardstick(lambda: times(LONGER._replace(d=4), cache, setting).start, setting)


class Second(NamedTuple):
    """Seconds by which a first call is longer than a later one, once a process has compiled."""

    whole: float
    ours: float  # where a kernel that is not ours was compiled before, so that Numba is set up


def second_process(call: Call, cache: Path, setting: Setting, repeats: int = 5) -> Second:
    """What is left of a first call with a full cache: medians over fresh processes, in turns."""
    found = [
        [times(call, cache, setting, numba_is_set_up=ready).start for ready in (False, True)]
        for _ in range(repeats)
    ]
    return Second(*map(median, zip(*found, strict=True)))


def _beside_yardstick(measure: Callable[[], float], setting: Setting) -> Cold:
    """A measurement between two of Y: other work on the machine meets all three."""
    before = yardstick(setting)
    seconds = measure()
    return Cold(seconds, (before + yardstick(setting)) / 2.0)


def yardstick(setting: Setting) -> float:
    """Y in seconds, in a process of its own."""
    return float(_output("yardstick", setting.clock))


def times(call: Call, cache: Path, setting: Setting, *, numba_is_set_up: bool = False) -> Times:
    """A first call and later ones in a fresh process, with this cache."""
    options = dict(call.options)
    asked = {**call._asdict(), "options": options, "numba_is_set_up": numba_is_set_up}
    told = _output(
        "first_call",
        *(setting.clock, json.dumps(asked), str(setting.package)),
        PYTHONPATH=os.pathsep.join((str(setting.package), str(_HERE))),
        NUMBA_CACHE_DIR=str(cache.absolute()),
    )
    return Times(**json.loads(told))


def _output(module: str, *arguments: str, **variables: str) -> str:
    """What a module of this folder prints as a program."""
    environment = {**os.environ, "PYTHONPATH": str(_HERE), **variables}
    # Elsewhere, so that no package lies in the working directory.
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, "-m", f"{__package__}.{module}", *arguments],
            env=environment,
            cwd=elsewhere,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(f"{module} failed:\n{done.stderr}")
    return done.stdout
