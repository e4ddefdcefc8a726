"""What a user waits for before anything is clustered: the import, and the first call."""

from __future__ import annotations

import tempfile
from pathlib import Path

import fastrbhc

from .processes import CALLS, Setting, another_number_of_columns, cold, second_process

# The checkout, or the folder of installed packages, that this process imports from.
_SETTING = Setting(Path(fastrbhc.__file__).resolve().parents[1])


class Import:
    """Each in an interpreter of its own."""

    number = 1
    repeat = 5
    rounds = 1

    def timeraw_fastrbhc(self):
        """The package, which loads what it stands on when that is asked for."""
        return "import fastrbhc"

    def timeraw_linkage(self):
        """The function that builds trees, with all that it stands on."""
        return "from fastrbhc import linkage"

    def timeraw_estimator(self):
        """The estimator, which needs scikit-learn too."""
        return "from fastrbhc import RBHC"

    def timeraw_help(self):
        """The list of commands, as ``fastrbhc --help`` prints it."""
        return "from fastrbhc.cli.main import _parser; _parser([]).format_help()"

    def timeraw_dependencies(self):
        """What it stands on, alone: the part that is not ours."""
        return "import numba, scipy.cluster.hierarchy, sklearn.cluster, tqdm"


class FirstCall:
    """The first call of a process, after the import."""

    params = (list(CALLS),)
    param_names = ("call",)
    timeout = 900.0

    def setup_cache(self):
        """Time first calls with an empty cache, which is full then and kept for the second."""
        return {name: cold(call, _cache(name), _SETTING).ratio for name, call in CALLS.items()}

    setup_cache.timeout = 3_600.0

    def track_cold(self, ratios, call):
        """Nothing is compiled yet; in units of the yardstick, a chain of 21 small kernels."""
        return ratios[call]

    track_cold.unit = "first call / yardstick"

    def track_second_process(self, ratios, call):
        """Another process has compiled: by how much the first call is longer than a later one."""
        return max(0.0, second_process(CALLS[call], _cache(call), _SETTING).whole)

    track_second_process.unit = "seconds"


class AnotherNumberOfColumns:
    """Ward's method, 10,000 rows of 4 columns, once a process has compiled for 3."""

    timeout = 1_800.0
    unit = "first call / yardstick"

    def track_cold(self):
        """By how much the first call is longer than a later one."""
        with tempfile.TemporaryDirectory() as cache:
            return another_number_of_columns(Path(cache), _SETTING).ratio


def _cache(name):
    """A folder for what a call compiles, in asv's folder for what one setup leaves to others."""
    return Path("numba", str(list(CALLS).index(name)))
