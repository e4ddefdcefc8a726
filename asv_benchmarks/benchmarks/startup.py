"""What a user waits for before anything is clustered: the import, and the first call."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_PROGRAM = """
import sys, time
import numpy as np
begin = time.perf_counter()
import fastrbhc
X = np.random.default_rng(0).gamma(2.0, 20.0, size=(1_000, 3))
imported = time.perf_counter()
fastrbhc.linkage(X, sys.argv[1])
print(imported - begin, time.perf_counter() - imported)
"""


class Import:
    """Each in an interpreter of its own."""

    number = 1
    repeat = 5
    rounds = 1

    def timeraw_fastrbhc(self):
        """The package with all that it stands on."""
        return "import fastrbhc"

    def timeraw_dependencies(self):
        """What it stands on, alone: the part that is not ours."""
        return "import numba, scipy.cluster.hierarchy, sklearn.cluster, tqdm"


class FirstCall:
    """The first tree of a process: 1,000 rows of 3 columns, after the import."""

    params = (["spherical_gaussian", "poisson", "gaussian"],)
    param_names = ("family",)
    timeout = 900.0
    unit = "seconds"

    def setup_cache(self):
        """Time first calls with an empty cache, which is full then and kept for the second."""
        cold = {}
        for family in self.params[0]:
            cold[family] = _first_call(family, Path("numba", family))
        return cold

    setup_cache.timeout = 1_800.0

    def track_cold(self, cold, family):
        """Nothing is compiled yet: an empty NUMBA_CACHE_DIR."""
        return cold[family]

    def track_warm(self, cold, family):
        """Another process has compiled."""
        cache = Path("numba", family)
        return min(_first_call(family, cache) for _ in range(3))


def _first_call(family, cache):
    """Seconds of the first call in a fresh process with this cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache.absolute())}
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, family],
            env=environment,
            cwd=elsewhere,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout.split()[1])
