"""Which algorithm, which backend and how many threads.

The choice depends on the number of points, the number of columns and the properties of the family,
never on the values, so that the same shape always takes the same way.
"""

from __future__ import annotations

from typing import NamedTuple

from fastrbhc._engine.agglomeration.direct import MOST_POINTS
from fastrbhc._engine.geometry.contract import FEW_COLUMNS
from fastrbhc._engine.neighbors.backends import BACKENDS

# Kernels that know the family and the number of columns are compiled anew for each number: worth
# it from here on.
_WORTH_COMPILING = 5_000

# Below this much work, in pairs times columns, a second thread costs more than it brings.
_WORTH_A_THREAD = 20_000_000
# By levels on the kd-tree so many points: 20,000 × 2 took 30 ms on one thread and 22 ms on two.
_WORTH_A_THREAD_BY_LEVELS = 5_000


class Plan(NamedTuple):
    """The way from points to merges."""

    algorithm: str
    neighbors: str
    n_threads: int
    columns: tuple[int, ...]  # one entry per column, if kernels are to know their number; or none

    @property
    def scans(self) -> bool:
        """Whether look-ups go through all clusters."""
        return BACKENDS[self.neighbors].scans


def plan(
    reducible: bool, n: int, n_features: int, algorithm: str, neighbors: str, n_threads: int
) -> Plan:
    """Decide what was left to "auto"."""
    if algorithm == neighbors == "auto" and n <= MOST_POINTS and n_features <= FEW_COLUMNS:
        return Plan("direct", "kd_tree", 1, ())
    if algorithm == "auto":
        algorithm = "levels" if reducible else "greedy"
    if neighbors == "auto":
        few_columns = n_features <= FEW_COLUMNS and n > MOST_POINTS
        neighbors = "kd_tree" if few_columns else "brute"
    on_a_tree = not BACKENDS[neighbors].scans
    quick = on_a_tree and algorithm == "levels" and n < _WORTH_A_THREAD_BY_LEVELS
    if quick or n**2 * n_features < _WORTH_A_THREAD:
        n_threads = 1
    known = on_a_tree and n >= _WORTH_COMPILING and n_features <= FEW_COLUMNS
    return Plan(algorithm, neighbors, n_threads, tuple(range(n_features)) if known else ())
