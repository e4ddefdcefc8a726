"""Which algorithm, which backend and how many threads.

The choice depends on the number of points, the number of columns and the properties of the family,
never on the values, so that data of the same shape always have the same plan.
"""

from __future__ import annotations

from typing import NamedTuple

from fastrbhc._engine.agglomeration.direct import MOST_POINTS
from fastrbhc._engine.geometry.contract import FEW_COLUMNS, WORTH_COMPILING
from fastrbhc._engine.neighbors.backends import BACKENDS

# Below this much work, in pairs times columns, a second thread costs more than it gains.
_WORTH_A_THREAD = 20_000_000
# The same for levels on the kd-tree, in points: 20,000 × 2 took 30 ms on one thread, 22 ms on two.
_WORTH_A_THREAD_BY_LEVELS = 5_000


class Plan(NamedTuple):
    """The way from points to merges."""

    algorithm: str
    neighbors: str
    n_threads: int
    columns: tuple[int, ...]  # one entry per column, if kernels are to know their number; or empty

    @property
    def scans(self) -> bool:
        """Whether look-ups scan all clusters."""
        return BACKENDS[self.neighbors].scans


def plan(
    reducible: bool,
    n: int,
    n_features: int,
    algorithm: str,
    neighbors: str,
    n_threads: int,
    usual: str | None = None,
) -> Plan:
    """Resolve the options that are "auto"; ``usual`` is the only backend that suits, if any."""
    if neighbors == "auto" and usual is not None:
        neighbors = usual
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
    known = on_a_tree and n >= WORTH_COMPILING and n_features <= FEW_COLUMNS
    return Plan(algorithm, neighbors, n_threads, tuple(range(n_features)) if known else ())
